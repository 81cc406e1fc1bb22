//! A recorded match: played back it is the same to the bit, and a server goes on from it as if nothing had been.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::room_rig::{Dice, Rig, Way, ms};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::record::{Entry, Playback, Recording};
use halftrack::server::{
    Audience, Events, Order, RecoverRefused, Recovery, Room, Server, ServerConfig, World,
};
use halftrack::session::SessionState;
use halftrack::wire::WireError;
use halftrack::wire::control::{Login, Restart};
use halftrack::{Body, BodyId, Cadence, Causes, Driver, PlayerId, PlayerName, Tick, Timestamp};
use tanks::{
    About, Axis, CombatEvent, Phase, RoundConfig, Scores, Seen, ShootInput, Tank, TankInput, TankPlayback,
    TankWorld, TankWorldConfig, Tanks, open_recording,
};

const BAD: Way =
    Way { delay: Duration::from_millis(30), jitter: Duration::from_millis(12), loss: 0.02, duplicate: 0.01 };
const RUN: [u8; 16] = [7; 16];

fn world_config() -> TankWorldConfig {
    TankWorldConfig { seed: 3, ..TankWorldConfig::default() }
}

fn world() -> TankWorld {
    TankWorld::new(world_config()).unwrap()
}

fn recorded_rig(players: usize, seed: u64) -> Rig<TankWorld> {
    recorded_rig_of(&world_config(), players, seed)
}

fn recorded_rig_of(config: &TankWorldConfig, players: usize, seed: u64) -> Rig<TankWorld> {
    let mut rig = Rig::new(ServerConfig::default(), TankWorld::new(config.clone()).unwrap(), seed);
    assert!(rig.server.record(RUN, About::new("test", 1_700_000_000, config).encode()));
    for index in 0..players {
        let rules = Arc::new(Tanks::new(Arc::clone(&world_config().arena)));
        let name = PlayerName::new(&format!("bot {index}")).unwrap();
        rig.join(ClientConfig::new(name, Cadence::default(), rules), BAD);
    }
    rig
}

/// Drives anywhere, and shoots at whoever is first.
struct Bots(Vec<(Dice, TankInput, Timestamp, Timestamp)>);

impl Bots {
    fn new(count: usize, seed: u64) -> Self {
        let bot = |index| (Dice(seed + index as u64), TankInput::NEUTRAL, Timestamp::ZERO, Timestamp::ZERO);
        Self((0..count).map(bot).collect())
    }

    fn drive(&mut self, seat: usize, now: Timestamp, client: &mut Client<Tanks>) {
        let (dice, wish, next, next_shot) = &mut self.0[seat];
        if now >= *next {
            *next = now + ms(100 + dice.below(900));
            let mut axis = || Axis::from_level(dice.below(33) as i8 - 16);
            *wish = TankInput { turn: axis(), throttle: axis(), rocket: 0 };
        }
        client.set_input(now, *wish);
        let (Some(tank), Some((snapshot, at)), Some(reconciler)) =
            (client.predicted().copied(), client.seen(), client.reconciler())
        else {
            return;
        };
        let Some(other) = client.remotes().iter().next().map(|other| other.visible) else { return };
        if now < *next_shot || client.state() != SessionState::LoggedIn {
            return;
        }
        *next_shot = now + ms(400 + dice.below(500));
        let turns = (other.y - tank.pose().y).atan2(other.x - tank.pose().x) / std::f64::consts::TAU;
        let (tick, grid) = ShootInput::grid(client.cadence(), reconciler.predictor().time());
        let aim = ((turns * 65_536.0).round() as i64 & 0xffff) as u16;
        let seen = Seen::new(client.cadence(), snapshot, at);
        let _ = client.order(now, &ShootInput { tick, at: grid, aim, seen }.encode());
    }
}

fn played(players: usize, seconds: u64, seed: u64) -> (Rig<TankWorld>, Bots) {
    let (mut rig, mut bots) = (recorded_rig(players, seed), Bots::new(players, seed));
    rig.run(Duration::from_secs(seconds), |seat, now, client| bots.drive(seat, now, client));
    (rig, bots)
}

/// Every body: its id, its driver, and a hash of its state.
type Bodies = Vec<(BodyId, Driver, u64)>;

fn bodies(server: &Server<TankWorld>) -> Bodies {
    server.bodies().map(|(id, driver, tank)| (id, driver, tank.digest())).collect()
}

fn played_bodies(playback: &TankPlayback) -> Bodies {
    playback.stage().bodies().map(|(id, driver, tank)| (id, driver, tank.digest())).collect()
}

/// A match as it happens: the bodies at the end of each tick, by the server, and the combat, by its clients.
#[derive(Default)]
struct Live(BTreeMap<Tick, Bodies>);

impl Live {
    /// In steps so short that no body comes or goes between the end of a tick and a look at it.
    fn run(&mut self, rig: &mut Rig<TankWorld>, span: Duration, bots: &mut Bots) {
        for _ in 0..span.as_millis() {
            rig.run(ms(1), |seat, now, client| bots.drive(seat, now, client));
            let tick = rig.server.tick();
            self.0.entry(tick).or_insert_with(|| bodies(&rig.server));
        }
    }
}

/// The scores by the events that one client received.
fn received_scores(events: &[ClientEvent]) -> Scores {
    let mut scores = Scores::default();
    for event in events {
        match event {
            ClientEvent::Joined(player, name) => scores.joined(*player, name.clone()),
            ClientEvent::Left(player) => scores.left(*player),
            ClientEvent::Game(bytes) => scores.count(&CombatEvent::decode(bytes).unwrap()),
            _ => {}
        }
    }
    scores
}

#[test]
fn record_01_a_playback_has_every_body_of_every_tick_every_event_and_every_score_of_the_match() {
    let (mut rig, mut bots, mut live) = (recorded_rig(4, 5), Bots::new(4, 5), Live::default());
    live.run(&mut rig, Duration::from_secs(40), &mut bots);
    // A player leaves, another is cut and resumes.
    let now = rig.now;
    let players = [0, 2, 3].map(|seat| (seat, rig.seats[seat].client.player().unwrap()));
    rig.seats[1].client.logout(now);
    rig.cut(2);
    live.run(&mut rig, Duration::from_secs(18), &mut bots);
    // Events in flight arrive.
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
    rig.server.stop();
    rig.server.poll_record(&mut rig.record);

    let (about, mut playback) = open_recording(rig.record.clone()).unwrap();
    assert_eq!((about.room.as_str(), about.started), ("test", 1_700_000_000));
    let (mut ticks, mut checks, mut compared, mut ended) = (0, 0, 0, false);
    let (mut scores, mut heard) = (Scores::default(), [vec![], vec![], vec![]]);
    let mut here = vec![];
    while let Some(entry) = playback.next() {
        if matches!(entry, Entry::Tick | Entry::Left { .. }) {
            for (audience, bytes) in playback.stage().events().iter() {
                let event = CombatEvent::decode(bytes).unwrap();
                scores.count(&event);
                for ((_, player), heard) in players.iter().zip(&mut heard) {
                    let own = audience == Audience::All || audience == Audience::Only(*player);
                    if own && here.contains(player) {
                        heard.push(event);
                    }
                }
            }
        }
        match entry {
            Entry::Tick => {
                ticks += 1;
                let tick = playback.stage().tick();
                if let Some(bodies) = live.0.get(&tick) {
                    assert_eq!(played_bodies(&playback), *bodies, "tick {tick}");
                    compared += 1;
                }
            }
            Entry::Check { .. } => checks += 1,
            Entry::Joined { player, name, .. } => {
                here.push(player);
                scores.joined(player, name);
            }
            Entry::Left { player } => scores.left(player),
            Entry::Ended => ended = true,
            _ => {}
        }
    }
    assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
    assert_eq!(playback.stage().tick(), rig.server.tick());
    assert_eq!((ticks, checks, ended), (1_200, 60, true));
    assert!(compared > 1_150, "the bodies of {compared} ticks were compared");
    assert_eq!(played_bodies(&playback), bodies(&rig.server));
    assert_eq!(playback.stage().bodies().count(), 3);
    for ((seat, player), heard) in players.into_iter().zip(heard) {
        assert_eq!(rig.seats[seat].client.player(), Some(player), "the cut session was resumed");
        assert!(heard.len() > 100, "{} events", heard.len());
        // Each event once and in order; only the first difference is worth reading.
        let told = events(&rig, seat);
        let differs = told.iter().zip(&heard).position(|(told, played)| told != played);
        let at = differs.unwrap_or(told.len().min(heard.len()));
        assert_eq!(told.get(at), heard.get(at), "event {at} of seat {seat}: heard, and played back");
    }
    assert_eq!(received_scores(&rig.seats[0].events), scores);
    let ranked = scores.ranked();
    assert_eq!(ranked.len(), 4, "the player that left included");
    assert!(ranked.iter().map(|score| score.hits).sum::<u32>() > 10, "{ranked:?}");
    assert!(ranked.iter().map(|score| score.kills).sum::<u32>() > 0, "{ranked:?}");
    // An honest match asks for a small part of the work that its size allows.
    let (work, bytes) = (playback.stage().work(), rig.record.len() as u64);
    assert!(work < 256 * bytes, "{} for each byte", work / bytes);
    let minutes = 4.0;
    let per_minute = rig.record.len() as f64 / minutes;
    assert!(per_minute < 3_000.0, "{per_minute} bytes for a player's minute, of four");
}

/// A world that is another from one tick on: it moves one tank by the smallest distance there is, or only has another
/// hash.
struct Changed {
    world: TankWorld,
    from: Tick,
    /// Whose tank; `None` changes the hash.
    player: Option<PlayerId>,
    now: Tick,
}

impl World for Changed {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.world.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        self.world.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.world.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.world.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.world.resolve(room, events);
        self.now = room.tick();
        if let Some(player) = self.player.filter(|_| room.tick() == self.from) {
            let (id, tank) = room.body_of(player).map(|(id, tank)| (id, *tank)).unwrap();
            room.alter(
                id,
                Tank { x: tank.pose().x + Tank::GRID, ..tank.tank().copied().unwrap() }.into(),
                Causes::NONE,
            )
            .unwrap();
        }
    }

    fn digest(&self) -> u64 {
        let other = self.player.is_none() && self.now >= self.from;
        self.world.digest() ^ u64::from(other)
    }
}

/// The recording keeps two bits of each body and tick, so a difference shows in its own tick three times out of four, and
/// within a few ticks always. A whole hash is kept every second.
#[test]
fn record_02_a_difference_is_named_by_its_player_and_tick() {
    let (rig, _) = played(3, 20, 9);
    let play = |from: Tick, player: Option<PlayerId>| {
        let recording = Recording::open(rig.record.clone()).unwrap();
        let changed = Changed { world: world(), from, player, now: Tick::default() };
        let mut playback = Playback::new(recording, changed).unwrap();
        while playback.next().is_some() {}
        playback.differs()
    };
    let never = rig.server.tick().next();
    assert_eq!(play(never, None), None, "the same world does not differ");
    let (mut at_once, mut all, mut unseen) = (0, 0, 0);
    for player in (0..3).map(|seat| rig.seats[seat].client.player().unwrap()) {
        for from in (20..380).step_by(15).map(Tick::new) {
            all += 1;
            // A wall can push a tank back in the next tick: then only one tick differs, and by chance its two bits do not.
            let Some(differs) = play(from, Some(player)) else {
                unseen += 1;
                continue;
            };
            assert_eq!(differs.player, Some(player), "from tick {from}: {differs:?}");
            assert!(differs.tick >= from && differs.tick.since(from) <= 8, "from tick {from}: {differs:?}");
            at_once += u32::from(differs.tick == from);
        }
    }
    assert!(at_once * 3 >= all * 2, "{at_once} of {all} in the tick itself");
    assert!(unseen * 20 <= all, "{unseen} of {all} unseen");
    // A world that differs in no body is found by the next whole hash, and no player is blamed.
    for from in [30, 31, 200].map(Tick::new) {
        let differs = play(from, None).unwrap();
        assert_eq!(differs.player, None, "from tick {from}");
        assert!(differs.tick >= from && differs.tick.since(from) < 20, "from tick {from}: {differs:?}");
    }
}

/// The same world but for its dice: players come in elsewhere, from the first tick on.
#[test]
fn record_02_another_world_differs_from_its_first_player_on() {
    let (rig, _) = played(3, 20, 9);
    let recording = Recording::open(rig.record.clone()).unwrap();
    let other = TankWorld::new(TankWorldConfig { seed: 4, ..world_config() }).unwrap();
    let mut playback = Playback::new(recording, other).unwrap();
    while playback.next().is_some() {}
    let differs = playback.differs().unwrap();
    assert!(differs.tick < Tick::new(8), "{differs:?}");
    assert_eq!(differs.player, Some(PlayerId::new(0)), "the first that came in");
}

/// Every prefix of a recording is the match up to there, and so is one with anything at all after it.
#[test]
fn record_03_a_cut_or_damaged_tail_is_told_and_what_is_before_it_is_used() {
    let (rig, _) = played(2, 4, 11);
    let whole = rig.record;
    let play = |bytes: Vec<u8>| {
        let (_, mut playback) = open_recording(bytes).unwrap();
        while playback.next().is_some() {}
        assert_eq!(playback.differs(), None);
        (playback.stage().tick(), playback.recording().damage())
    };
    let (last, damage) = play(whole.clone());
    assert_eq!(damage, None);
    let begin = open_recording(whole.clone()).unwrap().1.recording().whole();
    for end in (begin..whole.len()).step_by(11) {
        let (tick, damage) = play(whole[..end].to_vec());
        let held = damage.map_or(end, |damage| damage.whole);
        assert!(tick <= last && end - held < 64, "cut at {end}: {tick:?}, {damage:?}");
        for change in [1, 0x80] {
            let mut damaged = whole.clone();
            damaged[end] ^= change;
            let (tick, damage) = play(damaged);
            let damage = damage.unwrap();
            assert!(damage.whole <= end && damage.whole + damage.rest == whole.len(), "{damage:?}");
            assert!(tick == damage.tick && tick < last);
        }
    }
    for tail in [vec![0; 4_096], vec![0xff; 9], vec![1, 2, 3]] {
        let (tick, damage) = play([whole.clone(), tail.clone()].concat());
        assert_eq!((tick, damage.map(|damage| damage.rest)), (last, Some(tail.len())));
    }
    for bad in [vec![], b"HTRECORD".to_vec(), whole[..40].to_vec(), vec![0; 100]] {
        assert!(open_recording(bad).is_err());
    }
    let mut later = whole.clone();
    later[8] = 5;
    let said = open_recording(later).unwrap_err().to_string();
    assert_eq!(said, "the recording has version 5 of the format; this program reads version 4");
}

/// A tank that is left in combat is a wreck when its player comes back: in the match, played back, and after a crash while
/// it was away.
#[test]
fn record_09_a_tank_outlives_a_logout_also_played_back_and_after_a_crash() {
    for crash in [false, true] {
        let (mut rig, mut bots) = played(3, 20, 61);
        let (now, left) = (rig.now, rig.seats[1].client.player().unwrap());
        rig.seats[1].client.logout(now);
        rig.run(ms(300), |seat, now, client| bots.drive(seat, now, client));
        assert!(rig.server.bodies().all(|(_, driver, _)| driver.player() != Some(left)));
        let died = |event: &CombatEvent| matches!(event, CombatEvent::Death { fighter, .. } if *fighter == left.into());
        assert!(events(&rig, 0).iter().rev().take(9).any(died), "the others see it die");
        if crash {
            let (server, _) = recover(&rig, false).unwrap();
            rig.replace(server);
            rig.run(ms(600), |seat, now, client| bots.drive(seat, now, client));
        }
        let now = rig.now;
        rig.seats[1].client.connect(now);
        rig.run(ms(500), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
        let again = rig.seats[1].client.player().unwrap();
        let hp = |rig: &Rig<TankWorld>| rig.server.body_of(again).map(|tank| tank.tank().unwrap().hp);
        assert!(again != left && hp(&rig) == Some(0), "a wreck, crash: {crash}");
        rig.run(Duration::from_secs(3), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
        assert_eq!(hp(&rig), Some(Tank::MAX_HP), "back, crash: {crash}");
        let (_, mut playback) = open_recording(rig.record.clone()).unwrap();
        while playback.next().is_some() {}
        assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
        assert_eq!(played_bodies(&playback), bodies(&rig.server));
    }
}

/// What a client was told of combat, in order.
fn events(rig: &Rig<TankWorld>, seat: usize) -> Vec<CombatEvent> {
    let game = |event: &ClientEvent| match event {
        ClientEvent::Game(bytes) => Some(CombatEvent::decode(bytes).unwrap()),
        _ => None,
    };
    rig.seats[seat].events.iter().filter_map(game).collect()
}

fn recover(
    rig: &Rig<TankWorld>,
    rewound: bool,
) -> Result<(Server<TankWorld>, Recording<Tanks>), RecoverRefused> {
    let recording = Recording::open(rig.record.clone()).unwrap();
    let recovery = Recovery { run: [8; 16], rewound };
    Server::recover(ServerConfig::default(), world(), rig.now, recording, recovery)
}

#[test]
fn recover_01_after_a_crash_everybody_goes_on_and_every_event_is_seen_once() {
    let (mut rig, mut bots) = played(5, 20, 21);
    for _ in 0..3 {
        let (before, tick, epoch) = (bodies(&rig.server), rig.server.tick(), rig.server.epoch());
        let names: Vec<_> = (0..5).map(|seat| rig.seats[seat].client.player()).collect();
        let (server, read) = recover(&rig, false).unwrap();
        assert_eq!((server.tick(), bodies(&server), read.damage()), (tick, before, None));
        assert!(server.epoch() > epoch);
        rig.replace(server);
        // Down time is not simulated.
        rig.run(Duration::from_secs(15), |seat, now, client| bots.drive(seat, now, client));
        assert_eq!(rig.server.tick().since(tick), 300);
        for (seat, name) in rig.seats.iter().zip(names) {
            assert_eq!((seat.client.state(), seat.client.player()), (SessionState::LoggedIn, name));
            let restarted = |event: &ClientEvent| matches!(event, ClientEvent::Restarted(_));
            assert!(!seat.events.iter().any(restarted));
        }
    }
    // What is on its way arrives.
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
    // The recording has the whole match, over all crashes: what was told is what happened, each once and in order.
    let (_, mut playback) = open_recording(rig.record.clone()).unwrap();
    let mut told: Vec<Vec<CombatEvent>> = vec![vec![]; 5];
    let seat_of = |player| (0..5).find(|seat| rig.seats[*seat].client.player() == Some(player)).unwrap();
    while let Some(entry) = playback.next() {
        if entry != Entry::Tick {
            continue;
        }
        let players = playback.stage().bodies().filter_map(|(_, driver, _)| driver.player());
        let here: Vec<_> = players.map(seat_of).collect();
        for (audience, bytes) in playback.stage().events().iter() {
            let event = CombatEvent::decode(bytes).unwrap();
            match audience {
                Audience::All => here.iter().for_each(|seat| told[*seat].push(event)),
                Audience::Only(player) => told[seat_of(player)].push(event),
            }
        }
    }
    assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
    for (seat, told) in told.iter().enumerate() {
        assert!(told.len() > 50);
        assert_eq!(&events(&rig, seat), told, "seat {seat}");
    }
}

#[test]
fn recover_03_after_a_power_loss_players_keep_their_tanks_and_begin_anew() {
    let (mut rig, mut bots) = played(3, 20, 33);
    let (then, length) = (rig.server.tick(), rig.record.len());
    rig.run(ms(900), |seat, now, client| bots.drive(seat, now, client));
    // What was written in the last second is gone, and a part of a frame is left of it.
    rig.record.truncate(length + 5);
    let tanks: Vec<Tank> = {
        let (early, _) = recover(&rig, true).unwrap();
        early.bodies().map(|(.., body)| *body.tank().unwrap()).collect()
    };
    let (server, read) = recover(&rig, true).unwrap();
    assert!(read.damage().is_some_and(|damage| damage.whole == length));
    rig.record.truncate(read.whole());
    assert_eq!((server.tick(), tanks.len()), (then, 3));
    rig.replace(server);
    rig.run(Duration::from_secs(10), |seat, now, client| bots.drive(seat, now, client));
    for seat in &rig.seats {
        assert_eq!(seat.client.state(), SessionState::LoggedIn);
        let rewound = |event: &&ClientEvent| matches!(event, ClientEvent::Restarted(Restart::Rewound));
        assert_eq!(seat.events.iter().filter(rewound).count(), 1);
        let (id, ..) = seat.client.own().next().unwrap();
        assert_eq!(rig.server.owned(seat.client.player().unwrap()), [id]);
        let (tick, state) = seat.client.authoritative(id).unwrap();
        assert_eq!(rig.server.body(id, tick), Some(state));
    }
    let (_, mut playback) = open_recording(rig.record.clone()).unwrap();
    while playback.next().is_some() {}
    assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
    assert_eq!(playback.stage().tick(), rig.server.tick());
}

#[test]
fn recover_04_what_cannot_be_gone_on_with_is_refused() {
    let (mut rig, _) = played(2, 3, 41);
    assert!(!rig.record.is_empty());
    let recovery = Recovery { run: RUN, rewound: false };
    let recording = || Recording::open(rig.record.clone()).unwrap();
    let other = TankWorld::new(TankWorldConfig { seed: 4, ..world_config() }).unwrap();
    let refused = Server::recover(ServerConfig::default(), other, rig.now, recording(), recovery);
    assert!(matches!(refused, Err(RecoverRefused::Differs(_))));
    let slow = ServerConfig { cadence: Cadence::new(ms(100)).unwrap(), ..ServerConfig::default() };
    assert!(matches!(
        Server::recover(slow, world(), rig.now, recording(), recovery),
        Err(RecoverRefused::Recording(_))
    ));
    assert!(!rig.server.record(RUN, vec![]), "it does already, and players are in");
    rig.server.stop();
    rig.server.poll_record(&mut rig.record);
    assert!(matches!(recover(&rig, false), Err(RecoverRefused::Over)));
}

/// Time in which nobody is there costs nothing, and a stall of the server is in it.
#[test]
fn empty_rooms_and_stalls_are_recorded_in_a_few_bytes() {
    let mut rig = recorded_rig(1, 51);
    rig.run(Duration::from_secs(2), |_, _, _| ());
    assert!(rig.record.len() < 2_000);
    let now = rig.now;
    rig.seats[0].client.logout(now);
    rig.run(Duration::from_secs(1), |_, _, _| ());
    let empty = rig.record.len();
    rig.run(Duration::from_secs(600), |_, _, _| ());
    assert_eq!(rig.record.len(), empty, "nobody is there");
    let now = rig.now;
    rig.seats[0].client.connect(now);
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
    rig.stalled_until = rig.now + Duration::from_secs(4);
    rig.run(Duration::from_secs(6), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
    let (mut slips, mut passed) = (0, 0);
    let (_, mut playback) = open_recording(rig.record.clone()).unwrap();
    while let Some(entry) = playback.next() {
        slips += u32::from(entry == Entry::Slipped);
        if let Entry::Passed { ticks } = entry {
            passed += ticks;
        }
    }
    assert_eq!((playback.differs(), slips), (None, 1));
    assert!(passed >= 12_000, "{passed}");
    assert_eq!(playback.stage().tick(), rig.server.tick());
    let (server, _) = recover(&rig, false).unwrap();
    assert_eq!((server.tick(), bodies(&server)), (rig.server.tick(), bodies(&rig.server)));
    assert!(server.epoch() > rig.server.epoch());
}

#[test]
fn combat_12_a_playback_has_the_rounds_and_winners_that_clients_heard_of() {
    let rounds = RoundConfig { length: Duration::from_secs(12), pause: Duration::from_secs(2) };
    let config = TankWorldConfig { rounds: Some(rounds), damage: 100, ..world_config() };
    let (mut rig, mut bots) = (recorded_rig_of(&config, 3, 10), Bots::new(3, 10));
    rig.run(Duration::from_secs(45), |seat, now, client| bots.drive(seat, now, client));
    let is_round = |event: &CombatEvent| matches!(event, CombatEvent::Round { .. });
    let heard: Vec<_> = events(&rig, 0).into_iter().filter(is_round).collect();
    assert!(heard.len() > 5, "{heard:?}");
    let has_winner = |event: &CombatEvent| {
        matches!(event, CombatEvent::Round { phase: Phase::Over { winner: Some(_) }, .. })
    };
    assert!(heard.iter().any(has_winner), "{heard:?}");

    let (_, mut playback) = open_recording(rig.record.clone()).unwrap();
    let mut played = vec![];
    while let Some(entry) = playback.next() {
        if entry == Entry::Tick {
            let events = playback.stage().events().iter();
            let to_all = events.filter(|(audience, _)| *audience == Audience::All);
            played.extend(to_all.filter_map(|(_, bytes)| CombatEvent::decode(bytes).ok()).filter(is_round));
        }
    }
    assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
    // The last one may still be on its way.
    assert_eq!(played[..heard.len()], heard);
    assert!(played.len() <= heard.len() + 1);
}
