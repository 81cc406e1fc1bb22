//! A client's flight recorder: what it kept replays exactly, whatever the network did, and whatever becomes of the report.

use std::collections::BTreeMap;
use std::time::Duration;

use halftrack::cart::{Cart, Rail, Rails};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::flight::{Damage, FlightConfig, Replayer, Report, ReportError, Step};
use halftrack::server::{Server, ServerConfig};
use halftrack::session::{ConnectionId, SessionState};
use halftrack::wire::control::{Continuity, FromServer, LoginAccepted};
use halftrack::{Cadence, Digest, Game, MotionLimits, PlayerId, PlayerName, SyncLink, Timestamp, Token};
use proptest::prelude::*;

const SMALL: FlightConfig = FlightConfig { max_bytes: 256 << 10, key_every: Duration::from_secs(1) };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The same seed, the same network.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)) % limit
    }
}

/// What is on its way, by when it arrives; a stream's bytes never overtake each other.
#[derive(Default)]
struct Way {
    datagrams: BTreeMap<(Timestamp, u64), Vec<u8>>,
    stream: BTreeMap<(Timestamp, u64), Vec<u8>>,
    count: u64,
}

impl Way {
    fn send(&mut self, now: Timestamp, dice: &mut Dice, reliable: bool, bytes: &[u8]) {
        self.count += 1;
        let at = now + ms(20 + dice.below(40));
        if reliable {
            let last = self.stream.keys().next_back().map_or(at, |(last, _)| at.max(*last));
            self.stream.insert((last, self.count), bytes.to_vec());
        } else if dice.below(10) > 0 {
            self.datagrams.insert((at, self.count), bytes.to_vec());
        }
    }

    fn arrived(of: &mut BTreeMap<(Timestamp, u64), Vec<u8>>, now: Timestamp) -> Option<Vec<u8>> {
        let first = of.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }
}

struct Seat {
    client: Client<Cart>,
    connection: Option<ConnectionId>,
    up: Way,
    down: Way,
    next_frame: Timestamp,
    asleep_until: Timestamp,
}

/// A server and clients over a bad network: loss, jitter, cuts, stalls, frames that are missed.
struct Rig {
    now: Timestamp,
    dice: Dice,
    server: Server<Rails>,
    seats: Vec<Seat>,
    connections: u64,
    server_asleep_until: Timestamp,
}

fn config(name: &str) -> ClientConfig<Cart> {
    let limits = MotionLimits {
        top_speed: 8.0,
        top_turn: 20.0,
        grid_distance: 1.0 / 1024.0,
        grid_angle: 1e-4,
        max_hold: Cart::MAX_HOLD,
    };
    let mut config =
        ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Rail::default(), limits);
    config.session.credentials = Some(SECRET.to_owned());
    config
}

fn recorded(name: &str, flight: FlightConfig) -> Client<Cart> {
    let mut client = Client::new(config(name)).unwrap();
    client.record(flight).unwrap();
    client
}

const SECRET: &str = "a secret of the player's";

impl Rig {
    fn new(players: usize, flight: FlightConfig, seed: u64) -> Self {
        let now = Timestamp::from_micros(5_000_000);
        let server = Server::new(ServerConfig::default(), Rails::default(), now).unwrap();
        let seats = (0..players).map(|player| {
            let mut client = recorded(&format!("Player {player}"), flight);
            client.connect(now);
            let (up, down) = Default::default();
            Seat { client, connection: None, up, down, next_frame: now, asleep_until: now }
        });
        let (dice, seats) = (Dice(seed), seats.collect());
        Self { now, dice, server, seats, connections: 0, server_asleep_until: now }
    }

    /// What a token is made of: found nowhere in a report.
    fn token(connection: u64) -> [u8; 16] {
        let mut bytes = *b"token 0123456789";
        bytes[0] = u8::try_from(connection).unwrap();
        bytes
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + ms(1);
            let now = self.now;
            if now >= self.server_asleep_until {
                self.server.handle_timeout(now);
            }
            for index in 0..self.seats.len() {
                self.turn(now, index);
            }
        }
    }

    fn turn(&mut self, now: Timestamp, index: usize) {
        let Self { dice, server, seats, .. } = self;
        let seat = &mut seats[index];
        if now < seat.asleep_until {
            return;
        }
        if let Some(connection) = seat.connection {
            if now >= self.server_asleep_until {
                while let Some(bytes) = Way::arrived(&mut seat.up.stream, now) {
                    server.handle_stream(now, connection, &bytes);
                }
                while let Some(bytes) = Way::arrived(&mut seat.up.datagrams, now) {
                    server.handle_datagram(now, connection, &bytes);
                }
            }
            while let Some(bytes) = Way::arrived(&mut seat.down.stream, now) {
                // In pieces that cut messages anywhere.
                let cut = dice.below(bytes.len() as u64 + 1) as usize;
                seat.client.handle_stream(now, &bytes[..cut]);
                seat.client.handle_stream(now, &bytes[cut..]);
            }
            while let Some(bytes) = Way::arrived(&mut seat.down.datagrams, now) {
                seat.client.handle_datagram(now, &bytes);
            }
        }
        if seat.client.poll_timeout().is_some_and(|due| now >= due) {
            seat.client.handle_timeout(now);
        }
        if now >= seat.next_frame {
            seat.next_frame = now + ms(if dice.below(50) == 0 { 90 } else { 16 });
            let phase = now.as_micros() / 313_000 + index as u64 * 3;
            seat.client.set_input(now, [0, 3, 5, 0, -4, -4][(phase % 6) as usize]);
            if dice.below(40) == 0 {
                let _ = seat.client.order(now, &[7]);
            }
            seat.client.frame(now);
        }
        while let Some(event) = seat.client.poll_event() {
            match event {
                ClientEvent::Connect => self.connections += 1,
                ClientEvent::Close => {}
                _ => continue,
            }
            if let Some(old) = seat.connection.take() {
                server.handle_disconnected(now, old);
            }
            (seat.up, seat.down) = Default::default();
            if event == ClientEvent::Connect {
                let connection = ConnectionId::new(self.connections);
                seat.connection = Some(connection);
                server.handle_connected(
                    now,
                    connection,
                    SyncLink::Present,
                    Token::new(Self::token(self.connections)),
                );
                seat.client.handle_connected(now, SyncLink::Present);
            }
        }
        let Some(connection) = seat.connection else { return };
        let mut stream = vec![];
        if seat.client.poll_stream(&mut stream) {
            seat.up.send(now, dice, true, &stream);
        }
        if let Some(datagram) = seat.client.poll_datagram() {
            seat.up.send(now, dice, false, datagram);
        }
        stream.clear();
        if server.poll_stream(connection, &mut stream) {
            seat.down.send(now, dice, true, &stream);
        }
        while let Some(datagram) = server.poll_datagram(connection) {
            seat.down.send(now, dice, false, datagram);
        }
    }

    /// The connection goes away under both.
    fn cut(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        (seat.up, seat.down) = Default::default();
        if let Some(connection) = seat.connection.take() {
            self.server.handle_disconnected(self.now, connection);
            seat.client.handle_disconnected(self.now, None);
        }
    }
}

/// A session in which everything goes wrong that can, and goes on.
fn troubled(seed: u64, flight: FlightConfig) -> Rig {
    let mut rig = Rig::new(3, flight, seed);
    for round in 0..16 {
        rig.run(ms(3_000));
        match round % 6 {
            0 | 3 => rig.cut(0),
            1 => rig.seats[0].asleep_until = rig.now + ms(3_000),
            2 => rig.server_asleep_until = rig.now + ms(1_500),
            4 => rig.seats[1].client.logout(rig.now),
            _ => {}
        }
    }
    rig.run(ms(4_000));
    assert_eq!(rig.seats[0].client.state(), SessionState::LoggedIn);
    rig
}

/// Replays it; gives frames, key states that were found to be the same, and events.
fn replay(bytes: &[u8]) -> (u64, u64, Vec<ClientEvent>) {
    let report = Report::read(bytes).unwrap();
    let mut replayer = Replayer::<Cart>::new(&report).unwrap();
    let (mut keys, mut events) = (0, vec![]);
    while let Some(step) = replayer.step() {
        match step {
            Step::Key(differs) => {
                assert_eq!(differs, None);
                keys += 1;
            }
            Step::Event(event) => events.push(event.expect("what was told then is told now")),
            Step::Broken(problem) => panic!("{problem}"),
            _ => {}
        }
    }
    assert_eq!(replayer.first_difference(), None);
    assert_eq!(replayer.exact_frames(), replayer.frames());
    (replayer.frames(), keys, events)
}

#[test]
fn flight_01_a_report_replays_exactly_after_the_ring_has_wrapped() {
    let mut rig = troubled(1, SMALL);
    let client = &mut rig.seats[0].client;
    let stats = client.flight_stats().unwrap();
    assert!(stats.dropped >= 3 && stats.blanks == 0, "{stats:?}");
    assert!(stats.bytes <= SMALL.max_bytes, "{stats:?}");
    let bytes = client.flight_report("a note\nof two lines").unwrap();
    let report = Report::read(&bytes).unwrap();
    assert_eq!(
        (report.damage(), report.note()),
        (None, "a noteof two lines"),
        "what cannot be shown is left out"
    );
    let (frames, keys, events) = replay(&bytes);
    assert!(frames > 400 && keys > 5, "{frames} frames, {keys} states");
    let resumed = |event: &ClientEvent| *event == ClientEvent::Session(SessionState::LoggedIn);
    assert!(events.iter().any(resumed), "the cut is in it: {events:?}");
    // And the client that was replayed is the one that was recorded.
    let mut replayer = Replayer::<Cart>::new(&report).unwrap();
    while replayer.step().is_some() {}
    assert_eq!(replayer.client().stats(), client.stats());
    assert_eq!(replayer.client().predicted(), client.predicted());
    assert_eq!(replayer.client().poll_timeout(), client.poll_timeout());
}

#[test]
fn flight_02_a_report_tells_no_secret() {
    let mut rig = Rig::new(1, FlightConfig::default(), 3);
    for _ in 0..4 {
        rig.run(ms(2_500));
        rig.cut(0);
    }
    rig.run(ms(2_500));
    let bytes = rig.seats[0].client.flight_report("").unwrap();
    assert!(rig.connections >= 5, "so many tokens were given");
    let has = |secret: &[u8]| bytes.windows(secret.len()).any(|found| found == secret);
    assert!(!has(SECRET.as_bytes()), "credentials");
    assert!(!has(b"oken 0123"), "a token, or a part of one");
    assert!(has(b"Player 0"), "what is searched for would be found");
    replay(&bytes);
}

/// A client that begins with a saved token replays exactly, and its report does not have the token.
#[test]
fn flight_02_a_saved_token_is_not_in_a_report() {
    let (at, token) = (Timestamp::from_micros, Token::new(Rig::token(1)));
    let mut config = config("Ada");
    config.session.resume = Some(token);
    let mut client = Client::new(config).unwrap();
    client.record(SMALL).unwrap();
    client.connect(at(1_000));
    while client.poll_event().is_some() {}
    client.handle_connected(at(2_000), SyncLink::Present);
    let mut login = vec![];
    assert!(client.poll_stream(&mut login));
    let has = |bytes: &[u8]| bytes.windows(16).any(|found| found == Rig::token(1));
    assert!(has(&login), "the server is sent it");
    client.handle_disconnected(at(3_000), None);
    for step in 0..200 {
        while client.poll_event().is_some() {}
        client.frame(at(7_000 + step * 16_000));
    }
    let bytes = client.flight_report("").unwrap();
    assert!(!has(&bytes) && replay(&bytes).0 == 200);
}

/// Cut in the middle of the message that has the token: while it waits for the rest, and when that never comes.
#[test]
fn flight_02_half_a_login_tells_no_secret_either() {
    let accepted = LoginAccepted {
        player: PlayerId::new(7),
        token: Token::new(Rig::token(1)),
        continuity: Continuity::New,
    };
    let mut login = vec![];
    assert!(FromServer::LoginAccepted(accepted).append_to(&mut login));
    let at = Timestamp::from_micros;
    for cut in 1..login.len() {
        let mut client = recorded("Ada", SMALL);
        client.connect(at(1_000));
        while client.poll_event().is_some() {}
        client.handle_connected(at(2_000), SyncLink::Present);
        client.handle_stream(at(3_000), &login[..cut / 2]);
        client.handle_stream(at(4_000), &login[cut / 2..cut]);
        client.frame(at(5_000));
        let has =
            |bytes: &[u8]| bytes.windows(4).any(|found| Rig::token(1).windows(4).any(|part| part == found));
        let waiting = client.flight_report("").unwrap();
        assert!(!has(&waiting), "cut at {cut}");
        replay(&waiting);
        client.handle_disconnected(at(6_000), None);
        for step in 0..200 {
            while client.poll_event().is_some() {}
            client.frame(at(7_000 + step * 16_000));
        }
        let bytes = client.flight_report("").unwrap();
        assert!(!has(&bytes), "cut at {cut}, and gone");
        replay(&bytes);
    }
}

#[test]
fn flight_03_of_a_cut_report_everything_before_is_used() {
    let mut rig = troubled(2, SMALL);
    let bytes = rig.seats[0].client.flight_report("").unwrap();
    let (whole, ..) = replay(&bytes);
    let mut last = 0;
    for part in [3, 4, 5, 6, 7] {
        let cut = &bytes[..bytes.len() * part / 8];
        let report = Report::read(cut).unwrap();
        assert!(matches!(report.damage(), Some(Damage::Cut { at }) if at <= cut.len()));
        let mut replayer = Replayer::<Cart>::new(&report).unwrap();
        while replayer.step().is_some() {}
        assert_eq!((replayer.first_difference(), replayer.exact_frames()), (None, replayer.frames()));
        assert!(replayer.frames() > last && replayer.frames() < whole);
        last = replayer.frames();
    }
    let mut changed = bytes.clone();
    let at = changed.len() * 3 / 4;
    changed[at] ^= 1;
    let report = Report::read(&changed).unwrap();
    assert!(
        matches!(report.damage(), Some(Damage::Changed { at: found }) if found <= at && at - found < 80_000)
    );
    assert_eq!(Report::read(b"halftrack flight").unwrap_err(), ReportError::NotAReport);
    assert_eq!(Report::read(&bytes[..18]).unwrap_err(), ReportError::Empty);
    changed[16] = 99;
    assert_eq!(Report::read(&changed).unwrap_err(), ReportError::Version { got: 99 });
}

/// Where each section of a report is: its kind, and its contents.
fn sections(bytes: &[u8]) -> Vec<(u8, core::ops::Range<usize>)> {
    let (mut at, mut found) = (18, vec![]);
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        found.push((bytes[at], at + 13..at + 13 + length));
        at += 13 + length;
    }
    found
}

/// Makes the check of a section right again, as `docs/FLIGHT.md` has it.
fn seal(bytes: &mut [u8], kind: u8, contents: core::ops::Range<usize>) {
    let (words, rest) = bytes[contents.clone()].as_chunks::<8>();
    let whole = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let check = whole.word(rest).word(contents.len() as u64).finish();
    let check = check ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes[contents.start - 8..contents.start].copy_from_slice(&check.to_le_bytes());
}

/// Whoever wrote a report may have written anything into it, and the checks to match.
#[test]
fn flight_04_a_hostile_report_breaks_nothing() {
    let mut rig = Rig::new(3, SMALL, 5);
    rig.run(ms(2_500));
    let good = rig.seats[0].client.flight_report("").unwrap();
    let (mut dice, mut replayed) = (Dice(9), 0);
    for _ in 0..600 {
        let mut bytes = good.clone();
        let places: Vec<_> =
            sections(&bytes).into_iter().filter(|(_, contents)| !contents.is_empty()).collect();
        let (kind, contents) = places[dice.below(places.len() as u64) as usize].clone();
        for _ in 0..1 + dice.below(3) {
            let at = contents.start + dice.below(contents.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1 << dice.below(8)][dice.below(6) as usize];
        }
        seal(&mut bytes, kind, contents);
        let report = Report::read(&bytes).unwrap();
        let Ok(mut replayer) = Replayer::<Cart>::new(&report) else { continue };
        while replayer.step().is_some() {}
        replayed += 1;
    }
    assert!(replayed > 100, "{replayed}");
}

#[test]
fn flight_05_a_client_that_is_not_recorded_has_no_report() {
    let mut client = Client::new(config("Ada")).unwrap();
    client.connect(Timestamp::ZERO);
    assert_eq!((client.flight_report("").is_none(), client.flight_stats()), (true, None));
    let mut with = |flight| client.record(flight);
    let (fewest, most) = (256 << 10, 256 << 20);
    for (max_bytes, good) in [(fewest - 1, false), (fewest, true), (most, true), (most + 1, false)] {
        assert_eq!(with(FlightConfig { max_bytes, ..SMALL }).is_ok(), good, "{max_bytes}");
    }
    for (millis, good) in [(999, false), (1_000, true), (600_000, true), (600_001, false)] {
        assert_eq!(with(FlightConfig { key_every: ms(millis), ..SMALL }).is_ok(), good, "{millis}");
    }
}

/// A host that never takes its events: no state can be written, and memory stays bounded all the same.
#[test]
fn flight_06_the_ring_is_bounded_whatever_the_host_does() {
    let mut client = recorded("Ada", SMALL);
    client.connect(Timestamp::ZERO);
    for step in 0..100_000 {
        client.frame(Timestamp::from_micros(step * 1_000));
        assert!(client.flight_stats().unwrap().bytes <= SMALL.max_bytes);
    }
    assert!(client.flight_stats().unwrap().blanks > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// What is restored from a key state goes on as what it was taken from: each report begins in the middle, and every
    /// later state of it is the same to the byte.
    #[test]
    fn flight_07_a_restored_client_goes_on_identically(seed in any::<u64>(), cut in 500u64..2_500, asleep in 0u64..3_000) {
        let mut rig = Rig::new(2, SMALL, seed);
        rig.run(ms(cut));
        rig.cut(0);
        rig.run(ms(1_500));
        rig.seats[0].asleep_until = rig.now + ms(asleep);
        rig.run(ms(asleep + 1_200));
        for seat in &mut rig.seats {
            replay(&seat.client.flight_report("").unwrap());
        }
    }
}
