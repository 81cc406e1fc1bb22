//! The bytes of every message, held against files: another implementation can be held against the same.
//!
//! A file is the bytes in hexadecimal, and what they mean after a `#`. `UPDATE_GOLDEN=1 cargo test -p tanks --test
//! golden_wire` writes them anew; a change of theirs is a change of the protocol.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use halftrack::server::{Server, ServerConfig};
use halftrack::session::ConnectionId;
use halftrack::snapshot::{Crowd, Header, OwnBodies};
use halftrack::wire::control::{
    Closing, Continuity, FromClient, FromServer, Heartbeat, HeartbeatReply, Login, LoginAccepted,
    LoginRefused, PROTOCOL, PlayerJoined, PlayerLeft, Report, ReportedCounts, ReportedSizes, Restart, Resume,
    SyncHeard, Welcome,
};
use halftrack::wire::{BitReader, FrameReader};
use halftrack::{
    BodyId, Cadence, Completeness, Driver, Epoch, MoveInput, PlayerId, PlayerName, Seq, SubTick, SyncLink,
    Tick, TickInput, Timestamp, Token, shared_hash,
};
use tanks::{
    Arena, Axis, CombatEvent, Fighter, Phase, Reach, Rejection, Seen, ShootInput, TankInput, TankWorld,
    TankWorldConfig, Tanks,
};

/// Compares with the file of that name, or writes it.
fn hold(name: &str, meaning: &str, bytes: &[u8]) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.hex"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let mut text = format!("# {meaning}\n");
        for line in bytes.chunks(32) {
            let words: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{}", words.join(" ")).unwrap();
        }
        fs::write(&path, text).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let golden: Vec<u8> =
        lines.flat_map(str::split_whitespace).map(|word| u8::from_str_radix(word, 16).unwrap()).collect();
    assert_eq!(bytes, golden, "{name} is not what it was: {meaning}");
    golden
}

fn name(text: &str) -> PlayerName {
    PlayerName::new(text).unwrap()
}

#[test]
fn what_a_client_says() {
    let login = Login {
        protocol: PROTOCOL,
        shared: 0x0123_4567_89ab_cdef,
        name: name("Ada"),
        resume: None,
        credentials: None,
    };
    let resume = Some(Resume { token: Token::new([0x5a; 16]), received: Some(300) });
    let back = Login { resume, credentials: Some("secret".to_owned()), ..login.clone() };
    let reclaim = Login { resume: resume.map(|resume| Resume { received: None, ..resume }), ..login.clone() };
    let shot = ShootInput {
        tick: Tick::new(1_234),
        at: 128,
        aim: 16_384,
        seen: Seen { snapshot: Tick::new(1_229), before_micros: 41_000 },
    };
    let counts = |class: usize, count, thousandths| {
        let mut classes = [0; 9];
        classes[class] = count;
        ReportedCounts { classes, thousandths }
    };
    let sizes = vec![
        ReportedSizes { cause: 5, distance: counts(3, 3, 61), angle: counts(0, 3, 0) },
        ReportedSizes { cause: 7, distance: counts(8, 1, 4_500), angle: counts(5, 1, 200) },
    ];
    let messages = [
        ("login", "Login of Ada, new", FromClient::Login(login)),
        (
            "login_resume",
            "Login of Ada, who comes back with a token after 300 messages, and has credentials",
            FromClient::Login(back),
        ),
        (
            "login_reclaim",
            "Login of Ada in another process, which has a saved token and nothing else",
            FromClient::Login(reclaim),
        ),
        ("logout", "Logout", FromClient::Logout(())),
        (
            "heartbeat",
            "Heartbeat sent at 5,000,000 us, 7 messages received",
            FromClient::Heartbeat(Heartbeat { sent_micros: 5_000_000, received: 7 }),
        ),
        (
            "report",
            "Report of 3 corrections by collision and 1 by late input, one of which snapped, and their sizes",
            FromClient::Report(Report { corrections: [0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0], snapped: 1, sizes }),
        ),
        (
            "sync_heard_by_client",
            "SyncHeard: the server's datagrams arrive",
            FromClient::SyncHeard(SyncHeard { arriving: true }),
        ),
        (
            "shoot_input",
            "ShootInput in tick 1234 at 128/256, aim north, seen 41 ms before the end of 1229",
            FromClient::ShootInput(shot.encode()),
        ),
    ];
    for (file, meaning, message) in messages {
        let mut bytes = vec![];
        assert!(message.append_to(&mut bytes));
        let golden = hold(file, meaning, &bytes);
        let frame = FrameReader::default().next(&mut golden.as_slice()).unwrap().map(FromClient::read);
        assert_eq!(frame, Some(Ok(message)));
    }
}

#[test]
fn what_a_server_says() {
    let accepted = |continuity| {
        FromServer::LoginAccepted(LoginAccepted {
            player: PlayerId::new(300),
            token: Token::new([0x5a; 16]),
            continuity,
        })
    };
    let reply =
        HeartbeatReply { sent_micros: 5_000_000, held_micros: 12, server_micros: 61_000_000, received: 3 };
    let welcome = Welcome { tick: 1_220, epoch: 0, own: vec![1, 2, 3], bodies: 300 };
    let messages = [
        ("login_accepted_new", "LoginAccepted as player 300, a new session", accepted(Continuity::New)),
        (
            "login_accepted_resumed",
            "the same, resumed after 5 messages of the client",
            accepted(Continuity::Resumed { received: 5 }),
        ),
        (
            "login_accepted_restarted",
            "the same, restarted because the log overflowed",
            accepted(Continuity::Restarted(Restart::Overflow)),
        ),
        (
            "login_accepted_reclaimed",
            "the same, restarted because another process came with the token",
            accepted(Continuity::Restarted(Restart::Reclaimed)),
        ),
        (
            "login_refused_protocol",
            "LoginRefused: the server speaks version 7",
            FromServer::LoginRefused(LoginRefused::Protocol { server: 7 }),
        ),
        (
            "login_refused_name",
            "LoginRefused: the name is taken",
            FromServer::LoginRefused(LoginRefused::NameTaken),
        ),
        (
            "heartbeat_reply",
            "HeartbeatReply, held for 12 us, at 61 s of the server's time, 3 messages received",
            FromServer::HeartbeatReply(reply),
        ),
        (
            "sync_heard_by_server",
            "SyncHeard: the client's datagrams do not arrive",
            FromServer::SyncHeard(SyncHeard { arriving: false }),
        ),
        ("closing", "Closing within 30 s", FromServer::Closing(Closing { within_millis: 30_000 })),
        (
            "player_joined",
            "PlayerJoined: Bob is player 2",
            FromServer::PlayerJoined(PlayerJoined { player: PlayerId::new(2), name: name("Bob") }),
        ),
        (
            "player_left",
            "PlayerLeft: player 2",
            FromServer::PlayerLeft(PlayerLeft { player: PlayerId::new(2) }),
        ),
        (
            "welcome",
            "Welcome at tick 1220: three bytes of own bodies, and 300 bytes of all bodies follow",
            FromServer::Welcome(welcome),
        ),
        ("bodies", "Bodies: a piece of two bytes", FromServer::Bodies(vec![4, 5])),
    ];
    for (file, meaning, message) in messages {
        let mut bytes = vec![];
        assert!(message.append_to(&mut bytes));
        let golden = hold(file, meaning, &bytes);
        let frame = FrameReader::default().next(&mut golden.as_slice()).unwrap().map(FromServer::read);
        assert_eq!(frame, Some(Ok(message)));
    }
}

#[test]
fn what_is_told_of_combat() {
    let [ada, bob] = [1, 2].map(|number| Fighter::Player(PlayerId::new(number)));
    let machine = Fighter::Machine(BodyId::new(0xb0d1_e500_0042));
    let tick = Tick::new(1_234);
    let events = [
        (
            "fired",
            "Ada fires north in tick 1234 at 128/256, 24.5 m far",
            CombatEvent::Fired { shooter: ada, tick, at: 128, aim: 16_384, reach: Reach::from_metres(24.5) },
        ),
        ("hit", "and hits Bob", CombatEvent::Hit { shooter: ada, target: bob, tick, at: 128 }),
        (
            "damage_applied",
            "which takes 25 points and leaves 50",
            CombatEvent::DamageApplied { target: bob, amount: 25, hp: 50, tick },
        ),
        ("death", "Bob dies by Ada", CombatEvent::Death { fighter: bob, by: ada, tick }),
        (
            "death_by_machine",
            "Bob dies by the machine in body 0xb0d1e5000042",
            CombatEvent::Death { fighter: bob, by: machine, tick },
        ),
        ("respawn", "Bob is back", CombatEvent::Respawn { fighter: bob, tick }),
        (
            "shoot_rejected",
            "a shot came too late",
            CombatEvent::ShootRejected { tick, at: 128, why: Rejection::TooLate },
        ),
        (
            "score",
            "Ada has destroyed 300 others and was destroyed 5 times",
            CombatEvent::Score { fighter: ada, kills: 300, deaths: 5 },
        ),
        (
            "round_playing",
            "round 2 is played until the end of tick 6234",
            CombatEvent::Round { number: 2, phase: Phase::Playing, since: tick, until: Tick::new(6_234) },
        ),
        (
            "round_over",
            "Ada has won round 2; the next begins at the end of tick 1394",
            CombatEvent::Round {
                number: 2,
                phase: Phase::Over { winner: Some(ada) },
                since: tick,
                until: Tick::new(1_394),
            },
        ),
    ];
    for (file, meaning, event) in events {
        let golden = hold(&format!("combat_{file}"), meaning, &event.encode());
        assert_eq!(CombatEvent::decode(&golden), Ok(event));
    }
}

fn input(turn: i8, throttle: i8) -> TankInput {
    TankInput { turn: Axis::from_level(turn), throttle: Axis::from_level(throttle), rocket: 0 }
}

/// Two ticks: full ahead, then a turn to the left from the middle of the second on.
fn driving(newest: u32, seq: u16, ack: Option<u32>) -> MoveInput<TankInput> {
    let mut turning = TickInput::steady(input(0, 16));
    turning.change(SubTick::new(128).unwrap(), input(8, 16)).unwrap();
    MoveInput {
        seq: Seq::new(seq),
        ack: ack.map(Tick::new),
        newest: Tick::new(newest),
        completeness: Completeness::Closed,
        ticks: vec![TickInput::steady(input(0, 16)), turning],
    }
}

fn encoded(message: &MoveInput<TankInput>) -> Vec<u8> {
    let mut buffer = vec![0; 1_100];
    let length = message.encode(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

#[test]
fn input_of_two_ticks() {
    let message = driving(1_234, 9, Some(1_230));
    let golden = hold(
        "move_input",
        "MoveInput 9: ticks 1233 and 1234, the second with a change in its middle; 1230 acknowledged",
        &encoded(&message),
    );
    let mut read = MoveInput::default();
    assert_eq!(read.decode(&golden), Ok(()));
    assert_eq!(read, message);
}

/// A room at tick 1000. So many players have just come; so many machines come with its first tick.
fn room(players: u64, machines: u8) -> (Server<TankWorld>, Arc<Tanks>) {
    let arena = Arc::new(Arena::new([100.0, 100.0], vec![]).unwrap());
    let rules = Arc::new(Tanks::new(Arc::clone(&arena)));
    let world = TankWorldConfig { arena, machines, seed: 1, ..TankWorldConfig::default() };
    let now = Timestamp::from_micros(1_000_000);
    let config = ServerConfig { first_tick: Tick::new(1_000), body_key: [7; 16], ..ServerConfig::default() };
    let mut server = Server::new(config, TankWorld::new(world).unwrap(), now).unwrap();
    for number in 0..players {
        let connection = ConnectionId::new(number);
        server.handle_connected(now, connection, SyncLink::Present, Token::new([number as u8; 16]));
        let shared = shared_hash(&*rules, Cadence::default());
        let login = Login {
            protocol: PROTOCOL,
            shared,
            name: name(&format!("tank {number}")),
            resume: None,
            credentials: None,
        };
        let mut bytes = vec![];
        assert!(FromClient::Login(login).append_to(&mut bytes));
        server.handle_stream(now, connection, &bytes);
    }
    (server, rules)
}

/// The state that the first player starts from: the section of its own bodies, and all bodies.
fn welcome(server: &mut Server<TankWorld>) -> (Vec<u8>, Vec<u8>) {
    let (mut stream, mut frames) = (vec![], FrameReader::default());
    server.poll_stream(ConnectionId::new(0), &mut stream);
    let (mut rest, mut own, mut bodies, mut length) = (stream.as_slice(), vec![], vec![], 0);
    while let Some(frame) = frames.next(&mut rest).unwrap() {
        match FromServer::read(frame).unwrap() {
            FromServer::Welcome(welcome) => (own, length) = (welcome.own, welcome.bodies as usize),
            FromServer::Bodies(piece) => bodies.extend(piece),
            _ => {}
        }
    }
    assert!(length > 0 && bodies.len() == length, "{} of {length} bytes", bodies.len());
    (own, bodies)
}

/// The first client of a room, as far as snapshots go.
struct Reader {
    crowd: Crowd<Tanks>,
    own: OwnBodies<Tanks>,
    known: Vec<BodyId>,
}

impl Reader {
    /// Reads the state that it starts from, at the end of tick 1000.
    fn new(rules: Arc<Tanks>, own: &[u8], bodies: &[u8]) -> Self {
        let mut reader =
            Self { crowd: Crowd::new(rules, Cadence::default()), own: OwnBodies::default(), known: vec![] };
        reader.own.read(&[], &mut BitReader::new(own)).unwrap();
        reader.crowd.read(Tick::new(1_000), &mut BitReader::new(bodies)).unwrap();
        reader.known.clone_from(&reader.own.ids);
        reader
    }

    /// Reads a snapshot of `tick`, and compares it with the server.
    fn read(&mut self, tick: u32, bytes: &[u8], server: &Server<TankWorld>) {
        let (mut bits, tick) = (BitReader::new(bytes), Tick::new(tick));
        let header = Header::read((Tick::new(1_000), Epoch::default()), &mut bits).unwrap();
        assert_eq!(header.tick, tick);
        self.own.read(&self.known, &mut bits).unwrap();
        self.known.clone_from(&self.own.ids);
        assert_eq!(self.own.ids, server.owned(PlayerId::new(0)));
        assert_eq!(Some(&self.own.bodies[0]), server.body(self.own.ids[0], tick));
        self.crowd.read(tick, &mut bits).unwrap();
        bits.finish().unwrap();
        for (id, history) in self.crowd.bodies() {
            assert_eq!(history.get(tick).map(|record| &record.after), server.body(id, tick));
        }
    }
}

/// One tick, in which each of so many players drives; the first acknowledges the snapshot of `ack`. Gives the snapshot for
/// the first.
fn step(server: &mut Server<TankWorld>, players: u64, seq: u16, ack: Option<u32>) -> Vec<u8> {
    let newest = server.tick().number() + 1;
    let due = server.poll_timeout().unwrap();
    for number in 0..players {
        let bytes = encoded(&driving(newest, seq, ack.filter(|_| number == 0)));
        server.handle_datagram(due - server.cadence().interval(), ConnectionId::new(number), &bytes);
    }
    server.handle_timeout(due);
    server.poll_datagram(ConnectionId::new(0)).unwrap().to_vec()
}

#[test]
fn snapshots() {
    let (mut server, rules) = room(3, 0);
    let acks = [Some(1_000), Some(1_001), None];
    let told: Vec<_> = (1..).zip(acks).map(|(seq, ack)| step(&mut server, 3, seq, ack)).collect();
    let meanings = [
        (
            "snapshot_joined",
            "PlayerState of tick 1001, on 1000: the player's body with its id, and two tanks that joined",
        ),
        ("snapshot_joint", "PlayerState of tick 1002, on 1001: the player's body, and changes of input"),
        ("snapshot_full", "PlayerState of tick 1003: the player's body with its id, and three tanks in full"),
    ];
    let (own, bodies) = welcome(&mut server);
    let own = hold("own_bodies", "own bodies of a Welcome of tick 1000: one tank", &own);
    let bodies = hold("full_state", "all bodies of a Welcome of tick 1000: one tank", &bodies);
    let mut reader = Reader::new(rules, &own, &bodies);
    for ((file, meaning), (bytes, tick)) in meanings.into_iter().zip(told.iter().zip(1_001..)) {
        reader.read(tick, &hold(file, meaning, bytes), &server);
    }
}

#[test]
fn snapshots_of_machines() {
    let (mut server, rules) = room(1, 2);
    let (own, bodies) = welcome(&mut server);
    let mut reader = Reader::new(rules, &own, &bodies);
    // Machines come in the first tick with a player, and think in every fifth tick.
    for (seq, tick) in (1..).zip(1_001..=1_006) {
        let bytes = step(&mut server, 1, seq, Some(tick - 1));
        let held = match tick {
            1_001 => {
                hold("snapshot_machines", "PlayerState of tick 1001, on 1000: two machines joined", &bytes)
            }
            1_006 => hold(
                "snapshot_driven",
                "PlayerState of tick 1006, on 1005: the world changes the input of one machine",
                &bytes,
            ),
            _ => bytes,
        };
        reader.read(tick, &held, &server);
        let machines = server.bodies().filter(|(_, driver, _)| *driver == Driver::World).count();
        assert_eq!(machines, 2, "at tick {tick}");
    }
}
