//! Reports of a client's flight recorder replay exactly on any network. Damaged and hostile ones do no harm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, CartBody, Rails};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Events, Order, Room, Server, ServerConfig, World};
use halftrack::session::{ConnectionId, SessionState};
use halftrack::snapshot::OwnBodies;
use halftrack::wire::control::{Continuity, FromServer, Login, LoginAccepted, Welcome};
use halftrack::wire::{BitWriter, WireError};
use halftrack::{BodyId, Cadence, Digest, Driver, PlayerId, PlayerName, SyncLink, Timestamp, Token};
use halftrack_flight::{
    Damage, FlightClient, FlightConfig, FlightError, Replayer, Report, ReportError, Step,
};
use proptest::prelude::*;

const SMALL: FlightConfig = FlightConfig { max_bytes: 256 << 10, key_every: Duration::from_secs(1) };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Random numbers: the same seed gives the same network.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)) % limit
    }
}

/// Bytes in transit, by arrival. The bytes of a stream never overtake each other.
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

/// Rails that may also have traffic: second carts of the players, and carts of the world that come and go.
#[derive(Default)]
struct Yard {
    rails: Rails,
    traffic: bool,
    /// Carts of the world, oldest first.
    carts: Vec<(BodyId, Driver)>,
}

impl Yard {
    fn second(player: PlayerId) -> CartBody {
        CartBody::at(500.0 + 50.0 * f64::from(player.number()))
    }
}

impl World for Yard {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        self.rails.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Cart>) {
        self.rails.join(player, login, room);
        if self.traffic {
            room.spawn(Driver::Player(player), Self::second(player)).unwrap();
        }
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Cart>, events: &mut Events) {
        self.rails.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Cart>) -> Result<(), WireError> {
        self.rails.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Cart>, events: &mut Events) {
        self.rails.resolve(room, events);
        let tick = room.tick().number();
        if !self.traffic || !tick.is_multiple_of(10) {
            return;
        }
        // A second cart is taken away, and another one comes after it.
        let players: BTreeSet<_> = room.bodies().filter_map(|(_, driver, _)| driver.player()).collect();
        for player in players {
            match *room.owned(player) {
                [_] => {
                    room.spawn(Driver::Player(player), Self::second(player)).unwrap();
                }
                [_, second] if (tick / 10 + u32::from(player.number())).is_multiple_of(4) => {
                    room.remove(second).unwrap();
                }
                _ => {}
            }
        }
        let driver = if tick.is_multiple_of(20) { Driver::World } else { Driver::Nothing };
        let cart = CartBody::at(-20.0 * f64::from(tick % 100));
        self.carts.push((room.spawn(driver, cart).unwrap(), driver));
        if self.carts.len() > 6 {
            room.remove(self.carts.remove(0).0).unwrap();
        }
        for (number, (id, driver)) in self.carts.iter().enumerate() {
            if *driver == Driver::World {
                room.drive(*id, [3, -5, 0][(tick as usize / 10 + number) % 3]).unwrap();
            }
        }
    }
}

struct Seat {
    client: FlightClient<Cart>,
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
    server: Server<Yard>,
    seats: Vec<Seat>,
    connections: u64,
    server_asleep_until: Timestamp,
}

fn config(name: &str) -> ClientConfig<Cart> {
    let mut config = ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Arc::new(Cart));
    config.session.credentials = Some(SECRET.to_owned());
    config
}

fn recorded(name: &str, flight: FlightConfig) -> FlightClient<Cart> {
    let mut client = FlightClient::new(Client::new(config(name)).unwrap());
    client.record(flight, vec![]).unwrap();
    client
}

fn replayer<'a>(report: &'a Report<'a>) -> Result<Replayer<'a, Cart>, FlightError> {
    Replayer::new(report, Arc::new(Cart))
}

const SECRET: &str = "a secret of the player's";

impl Rig {
    fn new(players: usize, flight: FlightConfig, seed: u64) -> Self {
        Self::of(Yard::default(), players, flight, seed)
    }

    /// With traffic: players own several bodies, and the world has some.
    fn busy(players: usize, flight: FlightConfig, seed: u64) -> Self {
        Self::of(Yard { traffic: true, ..Yard::default() }, players, flight, seed)
    }

    fn of(world: Yard, players: usize, flight: FlightConfig, seed: u64) -> Self {
        let now = Timestamp::from_micros(5_000_000);
        let server = Server::new(ServerConfig::default(), world, now).unwrap();
        let seats = (0..players).map(|player| {
            let mut client = recorded(&format!("Player {player}"), flight);
            client.connect(now);
            let (up, down) = Default::default();
            Seat { client, connection: None, up, down, next_frame: now, asleep_until: now }
        });
        let (dice, seats) = (Dice(seed), seats.collect());
        Self { now, dice, server, seats, connections: 0, server_asleep_until: now }
    }

    /// A token that is easy to find in a report.
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

    /// Cuts the connection on both sides.
    fn cut(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        (seat.up, seat.down) = Default::default();
        if let Some(connection) = seat.connection.take() {
            self.server.handle_disconnected(self.now, connection);
            seat.client.handle_disconnected(self.now, None);
        }
    }
}

/// A session with cuts, sleeping tabs, a stalled server and a logout.
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

/// Replays a report exactly. Gives the number of frames, the number of compared key states, and the events.
fn replay(bytes: &[u8]) -> (u64, u64, Vec<ClientEvent>) {
    let report = Report::read(bytes).unwrap();
    let mut replayer = replayer(&report).unwrap();
    let (mut keys, mut events) = (0, vec![]);
    while let Some(step) = replayer.step() {
        match step {
            Step::Key(differs) => {
                assert_eq!(differs, None);
                keys += 1;
            }
            Step::Event(event) => events.push(event.expect("an event that was recorded")),
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
        "control characters are left out"
    );
    let (frames, keys, events) = replay(&bytes);
    assert!(frames > 400 && keys > 5, "{frames} frames, {keys} states");
    let resumed = |event: &ClientEvent| *event == ClientEvent::Session(SessionState::LoggedIn);
    assert!(events.iter().any(resumed), "the cut is in it: {events:?}");
    // The replayed client ends as the recorded one.
    let mut replayer = replayer(&report).unwrap();
    while replayer.step().is_some() {}
    assert_eq!(replayer.client().stats(), client.stats());
    assert_eq!(replayer.client().predicted(), client.predicted());
    assert_eq!(replayer.client().poll_timeout(), client.poll_timeout());
}

/// Bodies are spawned, driven and removed while calls are recorded, the player's own among them.
#[test]
fn flight_01_a_report_of_a_player_with_several_bodies_replays_exactly() {
    let mut rig = Rig::busy(2, SMALL, 6);
    let (mut owned, mut others) = ([false; 3], vec![]);
    for round in 0..60 {
        rig.run(ms(150));
        let client = &rig.seats[0].client;
        owned[client.own().count()] = true;
        others.extend(client.remotes().iter().map(|remote| remote.driver));
        if round == 40 {
            rig.cut(0);
        }
    }
    assert!(owned[1] && owned[2], "a second body was taken away and came again");
    let [one, other] = [0, 1].map(|seat| Driver::Player(rig.seats[seat].client.player().unwrap()));
    assert!([Driver::World, Driver::Nothing, other].iter().all(|driver| others.contains(driver)));
    assert!(!others.contains(&one), "own bodies are no others");
    for seat in &mut rig.seats {
        let (frames, keys, _) = replay(&seat.client.flight_report("").unwrap());
        assert!(frames > 150 && keys > 2, "{frames} frames, {keys} states");
    }
}

/// The state of a large room comes in many messages, and a key state is taken between two of them.
#[test]
fn flight_01_a_key_state_amid_a_full_state_replays() {
    const SENT: usize = 200_000;
    let frame = |message: FromServer| {
        let mut bytes = vec![];
        assert!(message.append_to(&mut bytes));
        bytes
    };
    // The player owns nothing.
    let mut own = vec![0; 64];
    let mut bits = BitWriter::new(&mut own);
    OwnBodies::<Cart>::default().write(false, &mut bits);
    let length = bits.finish().unwrap();
    own.truncate(length);
    let at = Timestamp::from_micros;
    let flight = FlightConfig { key_every: Duration::from_secs(1), ..FlightConfig::default() };
    let mut client = recorded("Ada", flight);
    client.connect(at(1_000));
    while client.poll_event().is_some() {}
    client.handle_connected(at(2_000), SyncLink::Present);
    assert!(client.poll_stream(&mut vec![]));
    let token = Token::new(Rig::token(1));
    let accepted = LoginAccepted { player: PlayerId::new(7), token, continuity: Continuity::New };
    client.handle_stream(at(3_000), &frame(FromServer::LoginAccepted(accepted)));
    let bodies = u32::try_from(SENT + 1).unwrap();
    client.handle_stream(at(4_000), &frame(FromServer::Welcome(Welcome { tick: 9, epoch: 0, own, bodies })));
    for piece in vec![0xa5; SENT].chunks(4_000) {
        client.handle_stream(at(5_000), &frame(FromServer::Bodies(piece.to_vec())));
    }
    while client.poll_event().is_some() {}
    let before = client.flight_stats().unwrap();
    for step in 0..100 {
        client.frame(at(10_000 + step * 16_000));
    }
    let stats = client.flight_stats().unwrap();
    assert!(stats.keys > before.keys && stats.key_bytes > SENT && stats.blanks == 0, "{stats:?}");
    let (frames, keys, _) = replay(&client.flight_report("").unwrap());
    assert!(frames == 100 && keys > 0, "{frames} frames, {keys} states");
}

#[test]
fn flight_02_a_report_holds_no_secret() {
    let mut rig = Rig::new(1, FlightConfig::default(), 3);
    for _ in 0..4 {
        rig.run(ms(2_500));
        rig.cut(0);
    }
    rig.run(ms(2_500));
    let bytes = rig.seats[0].client.flight_report("").unwrap();
    assert!(rig.connections >= 5, "each connection has a token of its own");
    let has = |secret: &[u8]| bytes.windows(secret.len()).any(|found| found == secret);
    assert!(!has(SECRET.as_bytes()), "credentials");
    assert!(!has(b"oken 0123"), "a token, or a part of one");
    assert!(has(b"Player 0"), "the search works");
    replay(&bytes);
}

/// A client that begins with a saved token replays exactly, and the token is not in its report.
#[test]
fn flight_02_a_saved_token_is_not_in_a_report() {
    let (at, token) = (Timestamp::from_micros, Token::new(Rig::token(1)));
    let mut config = config("Ada");
    config.session.resume = Some(token);
    let mut client = FlightClient::new(Client::new(config).unwrap());
    client.record(SMALL, vec![]).unwrap();
    client.connect(at(1_000));
    while client.poll_event().is_some() {}
    client.handle_connected(at(2_000), SyncLink::Present);
    let mut login = vec![];
    assert!(client.poll_stream(&mut login));
    let has = |bytes: &[u8]| bytes.windows(16).any(|found| found == Rig::token(1));
    assert!(has(&login), "the login has it");
    client.handle_disconnected(at(3_000), None);
    for step in 0..200 {
        while client.poll_event().is_some() {}
        client.frame(at(7_000 + step * 16_000));
    }
    let bytes = client.flight_report("").unwrap();
    assert!(!has(&bytes) && replay(&bytes).0 == 200);
}

/// The stream is cut inside the message with the token. The report is saved before and after the connection ends.
#[test]
fn flight_02_half_a_login_leaves_no_secret() {
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

/// The login is accepted and the session ends within one call, so no call sees the player in.
#[test]
fn flight_02_a_token_is_hidden_when_the_same_bytes_end_the_session() {
    let token = Token::new(Rig::token(1));
    let accepted = LoginAccepted { player: PlayerId::new(7), token, continuity: Continuity::New };
    let mut stream = vec![];
    assert!(FromServer::LoginAccepted(accepted).append_to(&mut stream));
    // A length that no message has, and bytes behind it.
    stream.extend([0, 0]);
    stream.extend(Rig::token(2));
    let (mut client, at) = (recorded("Ada", SMALL), Timestamp::from_micros);
    client.connect(at(1_000));
    while client.poll_event().is_some() {}
    client.handle_connected(at(2_000), SyncLink::Present);
    client.handle_stream(at(3_000), &stream);
    client.frame(at(4_000));
    assert!(!matches!(client.state(), SessionState::LoggedIn | SessionState::LoginPending));
    let bytes = client.flight_report("").unwrap();
    assert!(!bytes.windows(9).any(|found| found == b"oken 0123"));
    assert_eq!(replay(&bytes).0, 1);
}

/// The host makes a second connection before it says that the first is gone.
#[test]
fn flight_02_a_second_connection_hides_half_a_login_of_the_first() {
    let token = Token::new(Rig::token(1));
    let accepted = LoginAccepted { player: PlayerId::new(7), token, continuity: Continuity::New };
    let mut stream = vec![];
    assert!(FromServer::LoginAccepted(accepted).append_to(&mut stream));
    let (mut client, at) = (recorded("Ada", SMALL), Timestamp::from_micros);
    client.connect(at(1_000));
    while client.poll_event().is_some() {}
    client.handle_connected(at(2_000), SyncLink::Present);
    client.handle_stream(at(3_000), &stream[..stream.len() - 1]);
    client.handle_connected(at(4_000), SyncLink::Present);
    client.handle_stream(at(5_000), &stream);
    client.frame(at(6_000));
    let bytes = client.flight_report("").unwrap();
    assert!(!bytes.windows(9).any(|found| found == b"oken 0123"));
    assert_eq!(replay(&bytes).0, 1);
}

#[test]
fn flight_03_a_damaged_report_is_used_up_to_the_damage() {
    let mut rig = troubled(2, SMALL);
    let bytes = rig.seats[0].client.flight_report("").unwrap();
    let (whole, ..) = replay(&bytes);
    let mut last = 0;
    for part in [3, 4, 5, 6, 7] {
        let cut = &bytes[..bytes.len() * part / 8];
        let report = Report::read(cut).unwrap();
        assert!(matches!(report.damage(), Some(Damage::Cut { at }) if at <= cut.len()));
        let mut replayer = replayer(&report).unwrap();
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
    // The version before this one, and one of the future.
    for got in [3, 99] {
        changed[16] = got;
        let refused = Report::read(&changed).unwrap_err();
        assert_eq!(refused, ReportError::Version { got: got.into() });
        assert!(refused.to_string().contains("use the one that wrote it"), "{refused}");
    }
}

/// The kind of each section of a report, and the place of its contents.
fn sections(bytes: &[u8]) -> Vec<(u8, core::ops::Range<usize>)> {
    let (mut at, mut found) = (18, vec![]);
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        found.push((bytes[at], at + 13..at + 13 + length));
        at += 13 + length;
    }
    found
}

/// Corrects the check of a section, as `docs/FLIGHT.md` describes it.
fn seal(bytes: &mut [u8], kind: u8, contents: core::ops::Range<usize>) {
    let (words, rest) = bytes[contents.clone()].as_chunks::<8>();
    let whole = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let check = whole.word(rest).word(contents.len() as u64).finish();
    let check = check ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes[contents.start - 8..contents.start].copy_from_slice(&check.to_le_bytes());
}

/// An attacker can write anything into a report, with matching checks.
#[test]
fn flight_04_a_hostile_report_breaks_nothing() {
    let mut rig = Rig::busy(3, SMALL, 5);
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
        let Ok(mut replayer) = replayer(&report) else { continue };
        while replayer.step().is_some() {}
        replayed += 1;
    }
    assert!(replayed > 100, "{replayed}");
}

#[test]
fn a_report_carries_its_setup_and_refuses_other_rules() {
    let mut client = FlightClient::new(Client::new(config("Ada")).unwrap());
    client.record(SMALL, b"an arena".to_vec()).unwrap();
    client.frame(Timestamp::from_micros(1_000));
    let bytes = client.flight_report("").unwrap();
    let report = Report::read(&bytes).unwrap();
    assert_eq!(report.setup(), b"an arena");
    assert!(replayer(&report).is_ok());
    // The fingerprint of the rules is the first thing in the preface.
    let mut other = bytes.clone();
    let (kind, preface) = sections(&other)[0].clone();
    other[preface.start] ^= 1;
    seal(&mut other, kind, preface);
    let report = Report::read(&other).unwrap();
    assert_eq!(replayer(&report).unwrap_err(), FlightError::Rules);
}

#[test]
fn flight_05_a_client_that_is_not_recorded_has_no_report() {
    let mut client = FlightClient::new(Client::new(config("Ada")).unwrap());
    client.connect(Timestamp::ZERO);
    assert_eq!((client.flight_report("").is_none(), client.flight_stats()), (true, None));
    let mut with = |flight| client.record(flight, vec![]);
    let (fewest, most) = (256 << 10, 256 << 20);
    for (max_bytes, good) in [(fewest - 1, false), (fewest, true), (most, true), (most + 1, false)] {
        assert_eq!(with(FlightConfig { max_bytes, ..SMALL }).is_ok(), good, "{max_bytes}");
    }
    for (millis, good) in [(999, false), (1_000, true), (600_000, true), (600_001, false)] {
        assert_eq!(with(FlightConfig { key_every: ms(millis), ..SMALL }).is_ok(), good, "{millis}");
    }
}

/// The host never takes its events, so no key state can be taken.
#[test]
fn flight_06_the_ring_is_bounded_when_the_host_takes_no_events() {
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

    /// Reports begin in the middle of a session. Each later key state is the same to the byte.
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
