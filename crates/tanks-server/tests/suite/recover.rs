//! `kill -9` in the middle of a match: the next process goes on with it, and nobody misses anything.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::rig::{Folder, Program, Server, tanks, until};
use halftrack::client::{ClientConfig, ClientEvent};
use halftrack::record::{Entry, Recording};
use halftrack::server::Audience;
use halftrack::session::SessionState;
use halftrack::{Cadence, PlayerId, PlayerName, Tick};
use halftrack_io::{CertificateHash, ClientHandle, Trust, connect};
use serde_json::Value;
use tanks::{
    Arena, Axis, CombatEvent, Fighter, Seen, ShootInput, TankInput, TankPlayback, Tanks, open_recording,
};

const PLAYERS: usize = 16;

/// Somebody who drives and shoots, and remembers all that it was told.
struct Player {
    handle: ClientHandle<Tanks>,
    heard: Vec<CombatEvent>,
    restarts: usize,
    dice: u64,
    frames: u64,
}

impl Player {
    fn new(server: &Server, index: usize) -> Self {
        let site: Value = serde_json::from_str(&server.get("/config.json").body).unwrap();
        let hashes = site["quic"]["certificate_hashes"].as_array().unwrap();
        let hashes = hashes.iter().map(|hash| hash.as_str().unwrap().parse::<CertificateHash>().unwrap());
        // Both links: three of four by QUIC.
        let scheme = if index % 4 == 3 { "ws" } else { "quic" };
        let target = format!("{scheme}://{}", server.address).parse().unwrap();
        let rules = Arc::new(Tanks::new(Arc::new(Arena::proving_ground())));
        let name = PlayerName::new(&format!("player {index}")).unwrap();
        let config = ClientConfig::new(name, Cadence::default(), rules);
        let handle = connect(target, Trust::Hashes(hashes.collect()), config).unwrap();
        Self { handle, heard: vec![], restarts: 0, dice: index as u64, frames: 0 }
    }

    fn frame(&mut self, shoots: bool) {
        self.frames += 1;
        self.handle.frame();
        while let Some(event) = self.handle.poll_event() {
            match event {
                ClientEvent::Game(bytes) => self.heard.push(CombatEvent::decode(&bytes).unwrap()),
                ClientEvent::Restarted(_) => self.restarts += 1,
                _ => {}
            }
        }
        if self.frames % 30 == self.dice % 30 {
            self.dice =
                self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let axis = |byte: u64| Axis::from_level((byte % 33) as i8 - 16);
            self.handle.set_input(TankInput {
                turn: axis(self.dice >> 40),
                throttle: axis(self.dice >> 50),
                rocket: 0,
            });
            if shoots && self.handle.state() == SessionState::LoggedIn {
                self.shoot();
            }
        }
    }

    /// At whoever is first.
    fn shoot(&self) {
        let order = self.handle.read(|client| {
            let (tank, reconciler) = (client.predicted()?, client.reconciler()?);
            let (snapshot, at) = client.seen()?;
            let other = client.remotes().iter().next()?.visible;
            let turns = (other.y - tank.tank().unwrap().y).atan2(other.x - tank.tank().unwrap().x)
                / std::f64::consts::TAU;
            let (tick, grid) = ShootInput::grid(client.cadence(), reconciler.predictor().time());
            let aim = ((turns * 65_536.0).round() as i64 & 0xffff) as u16;
            Some(ShootInput { tick, at: grid, aim, seen: Seen::new(client.cadence(), snapshot, at) })
        });
        if let Some(order) = order {
            let _ = self.handle.order(&order.encode());
        }
    }

    fn newest(&self) -> Option<Tick> {
        self.handle.read(|client| client.crowd().newest())
    }

    fn id(&self) -> PlayerId {
        self.handle.read(|client| client.player().unwrap())
    }
}

/// Lets everybody play for so long.
fn play(players: &mut [Player], span: Duration, shoots: bool) {
    let start = Instant::now();
    while start.elapsed() < span {
        players.iter_mut().for_each(|player| player.frame(shoots));
        thread::sleep(Duration::from_millis(15));
    }
}

/// Files in there whose names end like this, in order.
fn files(folder: &Folder, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    files.sort();
    files
}

fn all_in(players: &mut [Player]) -> bool {
    players.iter_mut().for_each(|player| player.frame(false));
    players.iter().all(|player| player.handle.state() == SessionState::LoggedIn)
}

#[test]
fn recover_02_after_kill_9_sixteen_players_go_on_and_every_event_is_seen_once() {
    let folder = Folder::new();
    let path = folder.path().to_str().unwrap();
    let arguments = |how, address| {
        let sets = ["--set", "rooms.arena=proving-ground", "--set", "rooms.machines=3"];
        [&["serve", how, path, "--listen", address], &sets[..]].concat()
    };
    let server = Program::server(&arguments("--record", "127.0.0.1:0"));
    let address = server.address.clone();
    let mut players: Vec<_> = (0..PLAYERS).map(|index| Player::new(&server, index)).collect();
    until("sixteen", || all_in(&mut players));
    play(&mut players, Duration::from_secs(4), true);
    let ids: Vec<_> = players.iter().map(Player::id).collect();

    // Nobody is told: the process is gone from one moment to the next.
    server.program.kill();
    play(&mut players, Duration::from_millis(700), true);
    let seen = players.iter().filter_map(Player::newest).max().unwrap();
    let mut server = Program::server(&arguments("--recover", &address));
    let ready = Instant::now();
    until("the old process is noticed", || {
        players.iter_mut().for_each(|player| player.frame(false));
        server.metric("halftrack_room_logins_total{room=\"main\"}") >= PLAYERS as f64
    });
    until("sixteen again", || all_in(&mut players));
    println!("all {PLAYERS} are back {:?} after the new process was ready", ready.elapsed());
    let log = server.program.log();
    assert_eq!(log.matches("a match goes on").count(), 1, "{log}");
    assert!(!log.contains("a room was made"), "the room went on, and no other was made in its place:\n{log}");
    assert!(!log.contains("a player joined"), "they joined before the crash, and were logged then:\n{log}");
    assert_eq!(players.iter().map(Player::id).collect::<Vec<_>>(), ids);
    play(&mut players, Duration::from_secs(3), true);
    // The last of them come back to life, and everything arrives.
    play(&mut players, Duration::from_secs(4), false);
    let said = server.interrupt();
    assert!(said.status.success(), "{}", said.err);

    let files = files(&folder, ".htrec");
    let [file] = files.as_slice() else { panic!("one match, one file: {files:?}") };
    let (_, mut playback) = open_recording(std::fs::read(file).unwrap()).unwrap();
    let mut told: Vec<Vec<CombatEvent>> = vec![vec![]; PLAYERS];
    let mut killed = None;
    let place = |player: PlayerId| ids.iter().position(|id| *id == player).unwrap();
    while let Some(entry) = playback.next() {
        match entry {
            Entry::Recovered { rewound, .. } => {
                assert!(!rewound);
                killed = Some(playback.stage().tick());
            }
            Entry::Tick => {
                let drivers = playback.stage().bodies().map(|(_, driver, _)| driver);
                let here: Vec<_> = drivers.filter_map(|driver| driver.player().map(place)).collect();
                let tanks = playback.stage().bodies().filter(|(.., body)| body.tank().is_some());
                assert_eq!(tanks.count(), here.len() + 3, "machines are there, and stay");
                for (audience, bytes) in playback.stage().events().iter() {
                    let event = CombatEvent::decode(bytes).unwrap();
                    match audience {
                        Audience::All => here.iter().for_each(|index| told[*index].push(event)),
                        Audience::Only(player) => told[place(player)].push(event),
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
    let killed = killed.unwrap();
    assert!(seen <= killed, "somebody saw {seen:?}, and the recording ends with {killed:?}");
    for (player, told) in players.iter().zip(&told) {
        assert_eq!(player.restarts, 0);
        assert!(told.len() > 30);
        assert_eq!(&player.heard, told, "{:?}", player.id());
    }
    let verified = tanks(&["replay", "--verify", file.to_str().unwrap()]);
    assert!(verified.status.success() && verified.out.starts_with("verified "), "{}", verified.out);
    let seen = tanks(&["replay", file.to_str().unwrap()]);
    let machines = machines(&playback);
    assert_eq!(machines.len(), 3);
    // A machine is in the table from its first shot on.
    assert!(machines.iter().any(|name| seen.out.contains(name)), "{machines:?}\n{}", seen.out);
}

/// The names of the machines of a match.
fn machines(playback: &TankPlayback) -> Vec<String> {
    let tanks = playback.stage().bodies().filter(|(.., body)| body.tank().is_some());
    let fighters = tanks.map(|(id, driver, _)| Fighter::of(id, driver));
    fighters.filter_map(Fighter::machine_name).collect()
}

/// A disk that takes nothing more: the match goes on, the operator is told, and a later process knows that it was so.
#[test]
fn record_04_a_full_disk_ends_the_recording_and_not_the_match() {
    let folder = Folder::new();
    let path = folder.path().to_str().unwrap();
    // A file may not become longer than this many kilobytes: the next byte fails, as on a full disk.
    let program = env!("CARGO_BIN_EXE_tanks");
    let command = format!(
        "ulimit -f 4; trap '' XFSZ; exec {program} serve --record {path} --listen 127.0.0.1:0 --set rooms.arena=proving-ground"
    );
    let mut server = Program::shell(&command);
    let bots = server.bots(4, 6, &[]);
    until("the operator is told", || server.metric("halftrack_recording_failures_total") >= 1.0);
    let before = server.metric("halftrack_room_ticks_total{room=\"main\"}");
    until("ticks go on", || server.metric("halftrack_room_ticks_total{room=\"main\"}") > before + 10.0);
    assert!(server.program.log().contains("this match is not recorded any more, and goes on"));
    let said = bots.end();
    assert!(said.status.success(), "{}{}", said.out, said.err);
    assert_eq!(files(&folder, ".incomplete.htrec").len(), 1);
    server.program.kill();
    // Players were told more than is in it: whoever goes on from it says so.
    let mut server = Program::server(&[
        "serve",
        "--recover",
        path,
        "--listen",
        "127.0.0.1:0",
        "--set",
        "rooms.arena=proving-ground",
    ]);
    until("the match goes on", || server.program.log().contains("a match goes on"));
    assert!(server.program.log().contains("rewound=true"), "{}", server.program.log());
}

/// Every room comes back, a tail that means nothing is put aside, and what was recorded can be looked at.
#[test]
fn every_room_comes_back_and_its_match_can_be_seen() {
    let folder = Folder::new();
    let path = folder.path().to_str().unwrap();
    let two_machines = ["--set", "rooms.machines=2"];
    let serve = ["serve", "--record", path, "--listen", "127.0.0.1:0"];
    let server = Program::server(&[&serve[..], &two_machines].concat());
    let (main, duel) = (server.bots(3, 2, &[]), server.bots(2, 2, &["--room", "duel"]));
    until("both rooms", || {
        server.players() == 3.0 && server.metric("halftrack_room_players{room=\"duel\"}") == 2.0
    });
    let bodies = |server: &Server, driver| server.metric(&format!("halftrack_bodies{{driver=\"{driver}\"}}"));
    assert_eq!((bodies(&server, "player"), bodies(&server, "world")), (5.0, 4.0));
    thread::sleep(Duration::from_secs(2));
    server.program.kill();
    drop((main, duel));
    let recordings = files(&folder, ".htrec");
    assert_eq!(recordings.len(), 2, "{recordings:?}");
    let key =
        |file: &PathBuf| Recording::<Tanks>::open(std::fs::read(file).unwrap()).unwrap().header().body_key;
    let keys = [key(&recordings[0]), key(&recordings[1]), [0; 16]];
    assert!(
        keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2],
        "each room has a secret of its own"
    );
    let (mut torn, file) = (std::fs::read(&recordings[1]).unwrap(), recordings[1].to_str().unwrap());
    let whole = tanks(&["replay", "--verify", file]);
    assert!(whole.status.success(), "{}", whole.out);
    torn.extend([0; 700]);
    std::fs::write(file, &torn).unwrap();
    let damaged = tanks(&["replay", file]);
    assert_eq!(damaged.status.code(), Some(3));
    assert!(
        damaged.out.contains("700 bytes from byte") && damaged.out.contains("verified "),
        "{}",
        damaged.out
    );

    let mut server = Program::server(&["serve", "--recover", path, "--listen", "127.0.0.1:0"]);
    until("both matches go on", || server.program.log().matches("a match goes on").count() == 2);
    assert_eq!(server.players(), 3.0);
    assert_eq!(server.metric("halftrack_room_players{room=\"duel\"}"), 2.0);
    // This process wants no machines: those of the match are in its recording.
    until("machines go on", || (bodies(&server, "player"), bodies(&server, "world")) == (5.0, 4.0));
    let said = server.interrupt();
    assert!(said.status.success());
    assert_eq!(files(&folder, ".damaged").len(), 1);

    let page = folder.path().join("match.html");
    let seen = tanks(&["replay", "--html", page.to_str().unwrap(), file]);
    assert!(seen.status.success() && seen.out.contains("the server came back"), "{}{}", seen.out, seen.err);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<polyline") && html.contains("verified") && html.contains("2 machines"));
    let (_, mut playback) = open_recording(std::fs::read(file).unwrap()).unwrap();
    while playback.next().is_some() {}
    let machines = machines(&playback);
    assert!(machines.len() == 2 && machines.iter().all(|name| html.contains(name)), "{machines:?}");
    let both = [recordings[0].to_str().unwrap(), file];
    let json = tanks(&["replay", "--verify", "--json", both[0], both[1]]);
    assert_eq!(json.out.lines().count(), 2);
    assert_eq!(tanks(&["replay", "Cargo.toml"]).status.code(), Some(2));
    // They ended in order: nobody waits for them.
    let mut server = Program::server(&["serve", "--recover", path, "--listen", "127.0.0.1:0"]);
    assert!(!server.program.log().contains("a match goes on"));
}
