//! Bytes that one hostile client can put into a recording in a minute, by each kind of message. `docs/RECORDING.md` has the
//! same numbers.

use std::time::Duration;

use halftrack::record::Entry;
use halftrack::server::{Server, ServerConfig};
use halftrack::session::{ConnectionId, DisconnectReason};
use halftrack::wire::FrameReader;
use halftrack::wire::control::{
    FromClient, FromServer, Heartbeat, Login, LoginAccepted, PROTOCOL, Report, Resume,
};
use halftrack::{
    Cadence, Cause, Completeness, MoveInput, PlayerName, Seq, SubTick, SyncLink, Tick, TickInput, Timestamp,
    Token, shared_hash,
};
use tanks::{
    About, Axis, CombatEvent, Rejection, Seen, ShootInput, TankInput, TankWorld, TankWorldConfig, Tanks,
    open_recording,
};

/// Messages a second, as many as a server takes from one peer by default.
const MESSAGES: u64 = 600;

/// A server that records, and one client that says anything.
struct Room {
    server: Server<TankWorld>,
    now: Timestamp,
    connection: u64,
    record: Vec<u8>,
    reader: FrameReader,
    accepted: Option<LoginAccepted>,
    /// Numbered messages that have come.
    received: u64,
    rejected: Vec<Rejection>,
    closed: Vec<DisconnectReason>,
    seq: u16,
}

impl Room {
    fn new() -> Self {
        let config = TankWorldConfig::default();
        let about = About::new("test", 1, &config).encode();
        let now = Timestamp::ZERO;
        let mut server = Server::new(
            ServerConfig { orders_per_second: 20, ..ServerConfig::default() },
            TankWorld::new(config).unwrap(),
            now,
        )
        .unwrap();
        assert!(server.record([0; 16], about));
        let (reader, record) = (FrameReader::default(), vec![]);
        let (rejected, closed) = (vec![], vec![]);
        Self {
            server,
            now,
            connection: 0,
            record,
            reader,
            accepted: None,
            received: 0,
            rejected,
            closed,
            seq: 0,
        }
    }

    /// A new connection that logs in.
    fn log_in(&mut self, name: &str, resume: Option<Token>) {
        self.connection += 1;
        (self.reader, self.accepted) = (FrameReader::default(), None);
        let id = ConnectionId::new(self.connection);
        let mut token = [0; 16];
        token[..8].copy_from_slice(&self.connection.to_le_bytes());
        self.server.handle_connected(self.now, id, SyncLink::Present, Token::new(token));
        let rules = Tanks::new(TankWorldConfig::default().arena);
        let login = Login {
            protocol: PROTOCOL,
            shared: shared_hash(&rules, Cadence::default()),
            name: PlayerName::new(name).unwrap(),
            resume: resume.map(|token| Resume { token, received: Some(0) }),
            credentials: None,
        };
        self.say(&FromClient::Login(login));
        self.listen();
        assert!(self.accepted.is_some(), "let in");
    }

    fn say(&mut self, message: &FromClient) {
        let mut bytes = vec![];
        assert!(message.append_to(&mut bytes));
        self.server.handle_stream(self.now, ConnectionId::new(self.connection), &bytes);
        self.server.poll_record(&mut self.record);
    }

    fn listen(&mut self) {
        let id = ConnectionId::new(self.connection);
        let mut bytes = vec![];
        self.server.poll_stream(id, &mut bytes);
        let mut rest = &bytes[..];
        while let Some(frame) = self.reader.next(&mut rest).unwrap() {
            let message = FromServer::read(frame).unwrap();
            let numbered = matches!(
                message,
                FromServer::CombatEvent(_) | FromServer::PlayerJoined(_) | FromServer::PlayerLeft(_)
            );
            self.received += u64::from(numbered);
            match message {
                FromServer::LoginAccepted(accepted) => self.accepted = Some(accepted),
                FromServer::CombatEvent(bytes) => {
                    if let Ok(CombatEvent::ShootRejected { why, .. }) = CombatEvent::decode(&bytes) {
                        self.rejected.push(why);
                    }
                }
                _ => {}
            }
        }
        while self.server.poll_datagram(id).is_some() {}
        while let Some((connection, reason)) = self.server.poll_close() {
            self.closed.push(reason);
            self.server.handle_closed(connection);
        }
    }

    /// A minute in which `act` is called so many times a second. Gives the bytes that the recording grew by, less those of
    /// a client that only stays: 20 ticks and a check a second.
    fn minute(&mut self, times: u64, mut act: impl FnMut(&mut Self, u64)) -> usize {
        let before = self.record.len();
        let interval = Duration::from_micros(1_000_000 / times);
        for number in 0..60 * times {
            self.now = self.now + interval;
            self.server.handle_timeout(self.now);
            self.server.poll_record(&mut self.record);
            act(self, number);
            self.listen();
        }
        (self.record.len() - before).saturating_sub(60 * (20 * 4 + 12))
    }

    fn heartbeat(&mut self) {
        let received = self.received;
        self.say(&FromClient::Heartbeat(Heartbeat { sent_micros: 1, received }));
    }

    fn tick(&self) -> Tick {
        self.server.tick()
    }

    fn is_in(&self) -> bool {
        self.server.player_of(ConnectionId::new(self.connection)).is_some()
    }

    fn assert_plays_back(&self) {
        let (_, mut playback) = open_recording(self.record.clone()).unwrap();
        while playback.next().is_some() {}
        assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
    }
}

fn report() -> FromClient {
    FromClient::Report(Report { corrections: [u16::MAX; Cause::ALL.len()], snapped: u16::MAX, sizes: vec![] })
}

#[test]
fn record_07_reports_are_one_entry_a_second() {
    let mut room = Room::new();
    room.log_in("reporter", None);
    let grown = room.minute(MESSAGES, |room, _| room.say(&report()));
    assert!(room.is_in());
    println!("reports: {grown} bytes a minute");
    assert!((1_000..=60 * 49).contains(&grown), "{grown} bytes");
    let mut room = Room::new();
    room.log_in("reporter", None);
    let once = FromClient::Report(Report { corrections: [1; Cause::ALL.len()], snapped: 2, sizes: vec![] });
    room.minute(10, |room, number| {
        if number < 5 {
            room.say(&once);
        }
        room.heartbeat();
    });
    room.say(&once);
    room.say(&FromClient::Logout(()));
    let (_, mut playback) = open_recording(room.record.clone()).unwrap();
    let mut reports = vec![];
    while let Some(entry) = playback.next() {
        if let Entry::Reported { corrections, snapped, .. } = entry {
            reports.push((corrections.iter().map(|(_, count)| u32::from(*count)).sum::<u32>(), snapped));
        }
    }
    assert_eq!(reports, [(55, 10), (11, 2)], "five that are one, and the last before the logout");
}

#[test]
fn record_07_orders_are_bounded_and_a_flood_of_them_is_closed() {
    // Each as long as an order can be, with a claim that was never shown.
    let order = |tick: Tick| {
        let seen = Seen { snapshot: Tick::MAX, before_micros: u32::MAX };
        let at = 255;
        FromClient::ShootInput(
            ShootInput { tick: Tick::new(u32::MAX - tick.number()), at, aim: u16::MAX, seen }.encode(),
        )
    };
    let mut room = Room::new();
    room.log_in("gunner", None);
    let grown = room.minute(20, |room, _| {
        room.say(&order(room.tick()));
        room.heartbeat();
    });
    assert!(room.is_in(), "twenty a second may go on for ever");
    assert_eq!(room.rejected.len(), 1_200 - 1, "each has its outcome");
    println!("orders: {grown} bytes a minute");
    assert!((20_000..=32_000).contains(&grown), "{grown} bytes");
    room.assert_plays_back();

    let mut room = Room::new();
    room.log_in("gunner", None);
    let grown = room.minute(MESSAGES, |room, _| {
        if room.is_in() {
            room.say(&order(room.tick()));
        }
    });
    println!("orders until closed: {grown} bytes");
    assert_eq!(room.closed, [DisconnectReason::TooMuch]);
    assert!((500..540).contains(&room.rejected.len()), "{} were taken", room.rejected.len());
    assert!(grown <= 16_000, "{grown} bytes");
    assert_eq!(room.server.stats().too_many_orders, 1);
    room.assert_plays_back();
}

#[test]
fn record_07_input_and_heartbeats_are_bounded() {
    let mut room = Room::new();
    room.log_in("dancer", None);
    let mut dice = 1_u64;
    let grown = room.minute(100, |room, number| {
        if !number.is_multiple_of(5) {
            return;
        }
        let mut axis = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Axis::from_level((dice >> 33) as i8 % 17)
        };
        let mut wild = || TankInput { turn: axis(), throttle: axis(), rocket: 0 };
        let mut tick = TickInput::steady(wild());
        for at in [50, 120, 251] {
            let _ = tick.change(SubTick::new(at).unwrap(), wild());
        }
        room.seq += 1;
        let message = MoveInput {
            seq: Seq::new(room.seq),
            ack: None,
            newest: Tick::new(room.tick().number() + 2),
            completeness: Completeness::Closed,
            ticks: vec![tick],
        };
        let mut buffer = [0; 1_100];
        let length = message.encode(&mut buffer).unwrap();
        room.server.handle_datagram(room.now, ConnectionId::new(room.connection), &buffer[..length]);
    });
    println!("input: {grown} bytes a minute");
    assert!((6_000..=16_000).contains(&grown), "{grown} bytes");
    room.assert_plays_back();

    let mut room = Room::new();
    room.log_in("heart", None);
    let grown = room.minute(MESSAGES, |room, _| room.heartbeat());
    println!("heartbeats: {grown} bytes a minute");
    assert!(grown <= 100, "{grown} bytes");
}

#[test]
fn record_07_logins_cost_a_bounded_number_of_bytes_each() {
    // As many handshakes as an address has, and the longest names there are.
    let (mut room, mut logins) = (Room::new(), 0);
    let name = |number: u64| format!("{}{}", "\u{1f600}".repeat(20), number % 1_000);
    let grown = room.minute(50, |room, number| {
        room.log_in(&name(number), None);
        room.say(&FromClient::Logout(()));
        logins += 1;
    });
    let each = grown as f64 / f64::from(logins);
    println!("logins: {each:.0} bytes each, {grown} bytes a minute");
    assert!(each <= 135.0, "{each} bytes for a login and a logout");
    room.assert_plays_back();

    // A session that is taken up again is in no recording.
    let mut room = Room::new();
    room.log_in("storm", None);
    let token = room.accepted.unwrap().token;
    let grown = room.minute(50, |room, _| room.log_in("storm", Some(token)));
    println!("resumes: {grown} bytes a minute");
    assert!(grown <= 100, "{grown} bytes");
}
