//! The game's side of a server: what a [`World`] may send and be given, and what of it is refused.

use std::sync::Arc;
use std::time::Duration;

use crate::rig::carts::{config, nothing};
use crate::rig::{Rig, Way, ms};
use halftrack::cart::{Cart, CartBody, CartPose, Rails};
use halftrack::client::{Client, ClientConfig, ClientEvent, OrderRefused};
use halftrack::record::{Entry, Playback, Recording};
use halftrack::serde::{Deserialize, Serialize};
use halftrack::server::{
    Audience, Command, CommandRefused, EventTooLong, Events, Order, RecoverRefused, Recovery, Room, Server,
    ServerConfig, Stage, World, WorldIsRecorded,
};
use halftrack::session::{DisconnectReason, SessionEnd, SessionState};
use halftrack::snapshot::{BodyKey, BodyLimits};
use halftrack::wire::control::{Login, LoginRefused, PROTOCOL};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{
    Body, Cadence, Cause, Causes, ConfigError, Driver, FieldError, Game, MotionLimits, PlayerId, PlayerName,
    Settling, Status, Step, Tick, Timestamp,
};

/// Answers an order with an event of its first byte, as long as its next two bytes say; and keeps the refusals.
#[derive(Debug, Default)]
struct Echo {
    rails: Rails,
    waiting: Vec<(u8, usize)>,
    refused: Vec<EventTooLong>,
}

impl World for Echo {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        self.rails.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Cart>) {
        self.rails.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Cart>, events: &mut Events) {
        self.rails.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Cart>) -> Result<(), WireError> {
        let [number, low, high, ..] = order.bytes else { return Err(WireError::Truncated) };
        self.waiting.push((*number, usize::from(u16::from_le_bytes([*low, *high]))));
        Ok(())
    }

    fn resolve(&mut self, _: &mut Room<'_, Cart>, events: &mut Events) {
        for (number, bytes) in self.waiting.drain(..) {
            self.refused.extend(events.tell(Audience::All, &vec![number; bytes]).err());
        }
    }
}

fn echo() -> Rig<Echo> {
    Rig::new(ServerConfig::default(), Echo::default(), 7)
}

/// An order for an event of so many bytes.
fn order(number: u8, bytes: usize) -> Vec<u8> {
    let [low, high] = u16::try_from(bytes).unwrap().to_le_bytes();
    vec![number, low, high]
}

fn heard(events: &[ClientEvent]) -> Vec<(u8, usize)> {
    let game = events.iter().filter_map(|event| match event {
        ClientEvent::Game(bytes) => Some((bytes[0], bytes.len())),
        _ => None,
    });
    game.collect()
}

/// An event that no frame holds is refused where it is made. It takes no number, so a resume after it neither repeats
/// nor skips a message.
#[test]
fn game_01_an_event_too_long_for_a_frame_is_refused_and_a_resume_repeats_nothing() {
    let mut rig = echo();
    let ada = rig.join(config("Ada"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(1), nothing);
    let longest = Events::MAX_BYTES;
    for (number, bytes) in [(1, 1), (2, longest), (9, longest + 1), (3, 1), (4, 1)] {
        rig.seats[ada].client.order(rig.now, &order(number, bytes)).unwrap();
        rig.run(ms(100), nothing);
    }
    rig.cut(ada);
    rig.run(Duration::from_secs(1), nothing);
    for number in [5, 6] {
        rig.seats[ada].client.order(rig.now, &order(number, 1)).unwrap();
    }
    rig.run(Duration::from_secs(1), nothing);
    assert_eq!(heard(&rig.seats[ada].events), [(1, 1), (2, longest), (3, 1), (4, 1), (5, 1), (6, 1)]);
    let refused = &rig.server.world().refused;
    assert_eq!(refused, &[EventTooLong { bytes: longest + 1, max: longest }]);
    assert_eq!(
        refused[0].to_string(),
        "the event has 4097 bytes, and a message holds 4096: split it, or send less"
    );
    assert_eq!(rig.seats[ada].closed, []);
}

/// The longest order arrives; one byte more is refused with both numbers, and the session goes on.
#[test]
fn game_01_an_order_too_long_for_a_frame_is_refused_with_its_size_and_the_limit() {
    let mut rig = echo();
    let ada = rig.join(config("Ada"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(1), nothing);
    let (now, longest) = (rig.now, Client::<Cart>::MAX_ORDER_BYTES);
    let long = |bytes: usize| {
        let mut order = order(7, 2);
        order.resize(bytes, 0);
        order
    };
    let client = &mut rig.seats[ada].client;
    let refused = client.order(now, &long(longest + 1)).unwrap_err();
    assert_eq!(refused, OrderRefused::TooLong { bytes: longest + 1, max: longest });
    assert_eq!(
        refused.to_string(),
        "the order has 4097 bytes, and a message holds 4096: split it, or send less"
    );
    client.order(now, &long(longest)).unwrap();
    rig.run(Duration::from_secs(1), nothing);
    rig.cut(ada);
    rig.run(Duration::from_secs(1), nothing);
    assert_eq!(rig.seats[ada].client.state(), SessionState::LoggedIn);
    assert_eq!(heard(&rig.seats[ada].events), [(7, 2)]);
}

/// Carts with a load, which pass through each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Truck<const MOST: usize>;

/// A cart that takes `bytes` bytes on the wire, and declares `MOST` as its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "halftrack::serde")]
struct TruckBody<const MOST: usize> {
    cart: CartBody,
    /// Bytes of the whole body, at least 14.
    bytes: u16,
}

impl<const MOST: usize> Game for Truck<MOST> {
    type Input = i8;
    type Body = TruckBody<MOST>;
    type Pose = CartPose;

    fn advance(&self, truck: &mut Self::Body, input: i8, step: &mut Step<'_, Self>) {
        let moved = f64::from(input) * step.seconds();
        truck.cart.x += moved;
        // Not linear: a tick that is cut differently ends differently.
        truck.cart.wheel += moved * moved;
    }

    fn pose(&self, truck: &Self::Body) -> Option<CartPose> {
        Cart.pose(&truck.cart)
    }

    fn limits(&self, truck: &Self::Body) -> MotionLimits {
        Cart.limits(&truck.cart)
    }

    fn fingerprint(&self) -> u64 {
        Cart.fingerprint()
    }
}

impl<const MOST: usize> Body for TruckBody<MOST> {
    const SCHEMA: u64 = 0;
    const MAX_BITS: usize = MOST * 8;

    fn blank() -> Self {
        Self { cart: CartBody::blank(), bytes: 14 }
    }

    fn settle(&mut self) -> Settling {
        self.cart.settle()
    }

    fn check(&self) -> Result<(), FieldError> {
        self.cart.check()
    }

    /// 14 bytes, and the load.
    fn write(&self, _: &Self, bits: &mut BitWriter<'_>) {
        bits.write(self.bytes.into(), 16);
        for (part, unit) in [(self.cart.x, 1024.0), (self.cart.wheel, 65_536.0), (self.cart.speed, 1024.0)] {
            bits.write_signed((part * unit) as i32, 32);
        }
        (14..self.bytes).for_each(|_| bits.write(0, 8));
    }

    fn read(_: &Self, bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        let bytes = u16::try_from(bits.read(16)?).unwrap();
        let mut part = |unit: f64| Ok::<_, WireError>(f64::from(bits.read_signed(32)?) / unit);
        let cart = CartBody { x: part(1024.0)?, wheel: part(65_536.0)?, speed: part(1024.0)? };
        (14..bytes).try_for_each(|_| bits.read(8).map(drop))?;
        Ok(Self { cart, bytes })
    }

    fn digest(&self) -> u64 {
        self.cart.digest() ^ u64::from(self.bytes)
    }
}

/// Trucks that come in with a load of `bytes` and take on one of as many bytes as an order says.
#[derive(Debug, Default)]
struct Trucks<const MOST: usize> {
    rules: Arc<Truck<MOST>>,
    bytes: u16,
    loads: Vec<(PlayerId, u16)>,
}

impl<const MOST: usize> World for Trucks<MOST> {
    type Game = Truck<MOST>;

    fn rules(&self) -> &Arc<Truck<MOST>> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Truck<MOST>>) {
        let truck = TruckBody { bytes: self.bytes, ..TruckBody::blank() };
        room.spawn(Driver::Player(player), truck).unwrap();
    }

    fn leave(&mut self, _: PlayerId, _: &mut Room<'_, Truck<MOST>>, _: &mut Events) {}

    fn order(&mut self, order: Order<'_, Truck<MOST>>) -> Result<(), WireError> {
        let [low, high] = order.bytes else { return Err(WireError::Truncated) };
        self.loads.push((order.player, u16::from_le_bytes([*low, *high])));
        Ok(())
    }

    fn resolve(&mut self, room: &mut Room<'_, Truck<MOST>>, _: &mut Events) {
        for (player, bytes) in self.loads.drain(..) {
            let (id, body) = room.body_of(player).map(|(id, body)| (id, *body)).unwrap();
            room.alter(id, TruckBody { bytes, ..body }, Causes::NONE).unwrap();
        }
    }
}

fn trucks<const MOST: usize>(bytes: u16) -> Rig<Trucks<MOST>> {
    Rig::new(ServerConfig::default(), Trucks { bytes, ..Trucks::default() }, 7)
}

fn trucker<const MOST: usize>(name: &str) -> ClientConfig<Truck<MOST>> {
    ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Arc::new(Truck))
}

fn plays<const MOST: usize>(rig: &Rig<Trucks<MOST>>, seat: usize) -> bool {
    let client = &rig.seats[seat].client;
    client.state() == SessionState::LoggedIn
        && client.reconciler().is_some_and(|own| own.predictor().status() == Status::Predicting)
}

/// The constructors of both ends refuse a game whose bodies no snapshot holds, just outside and not just inside.
#[test]
fn game_02_a_game_whose_bodies_no_snapshot_holds_is_refused_at_setup() {
    let now = Timestamp::ZERO;
    assert!(Server::new(ServerConfig::default(), Trucks::<512>::default(), now).is_ok());
    let refused = Server::new(ServerConfig::default(), Trucks::<513>::default(), now).unwrap_err();
    assert_eq!(refused, ConfigError::BodyTooLong { bytes: 513, max: 512 });
    assert_eq!(
        refused.to_string(),
        "a body of the game takes 513 bytes on the wire, and 512 are the most: write less of it, correct \
         Body::MAX_BITS, or raise max_datagram_bytes"
    );
    assert!(Client::new(trucker::<512>("Ada")).is_ok());
    assert_eq!(Client::new(trucker::<513>("Ada")).unwrap_err(), refused);

    let small = ServerConfig { max_datagram_bytes: 300, ..ServerConfig::default() };
    assert!(Server::new(small, Trucks::<236>::default(), now).is_ok());
    let refused = Server::new(small, Trucks::<237>::default(), now).unwrap_err();
    assert_eq!(refused, ConfigError::BodyTooLong { bytes: 237, max: 236 });

    // A full state of a mebibyte holds so many with their ids, parents and inputs, and one more is refused.
    let many = |max_bodies| ServerConfig { max_bodies, ..ServerConfig::default() };
    let refused = Server::new(many(1_975), Trucks::<512>::default(), now).unwrap_err();
    assert_eq!(refused, ConfigError::TooManyBodies { got: 1_975, body_bytes: 512, most: 1_974 });
    assert!(Server::new(many(1_974), Trucks::<512>::default(), now).is_ok());

    let refused = Server::new(ServerConfig::default(), Trucks::<13>::default(), now).unwrap_err();
    assert_eq!(refused, ConfigError::BodyTooLong { bytes: 14, max: 13 }, "the blank body takes 14");
}

/// A body of exactly its limit is played with. One byte more, from the start or during play, closes the connection with
/// its own reason: the client neither waits nor comes back.
#[test]
fn game_02_a_body_that_outgrows_its_limit_ends_the_session_by_name() {
    let mut rig = trucks::<512>(512);
    let ada = rig.join(trucker("Ada"), Way::delayed(ms(10)));
    let bob = rig.join(trucker("Bob"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, 3));
    assert!(plays(&rig, ada) && plays(&rig, bob));
    let corrections = rig.seats[ada].client.reconciler().unwrap().stats();
    assert_eq!(corrections.of(Cause::Unexplained), 0, "{corrections:?}");

    rig.seats[ada].client.order(rig.now, &513u16.to_le_bytes()).unwrap();
    rig.run(Duration::from_secs(2), |_, _, _| {});
    assert_eq!(rig.seats[ada].client.state(), SessionState::Failed(SessionEnd::BodyTooLong));
    assert_eq!(rig.seats[ada].closed, [DisconnectReason::BodyTooLong]);
    assert_eq!((rig.server.stats().bodies_too_long, rig.server.bodies().count()), (1, 1));
    assert!(plays(&rig, bob), "the other player plays on");

    let mut rig = trucks::<512>(513);
    let ada = rig.join(trucker("Ada"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(2), |_, _, _| {});
    assert_eq!(rig.seats[ada].client.state(), SessionState::Failed(SessionEnd::BodyTooLong));
    assert_eq!((rig.server.stats().bodies_too_long, rig.server.bodies().count()), (1, 0));
}

/// Carts that come in where their credentials say, off the grid, and that the host moves: a command is a player and a
/// distance in thirds of a metre.
#[derive(Clone, Debug, Default)]
struct Depot {
    rails: Rails,
    moves: Vec<(PlayerId, i8)>,
    /// Logins that players came in with.
    logins: Vec<Login>,
    there: Vec<PlayerId>,
    /// A version of the game without commands, if it has none.
    obeys: bool,
}

impl World for Depot {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        self.rails.rules()
    }

    /// Of `secret:place`, the place.
    fn claims(&self, login: &Login) -> Option<String> {
        login.credentials.as_ref()?.split_once(':').map(|(_, place)| place.to_owned())
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Cart>) {
        self.logins.push(login.clone());
        self.there.push(player);
        let place = login.credentials.as_ref().and_then(|place| place.parse().ok());
        room.spawn(Driver::Player(player), CartBody::at(place.unwrap_or(0.0))).unwrap();
    }

    fn leave(&mut self, player: PlayerId, _: &mut Room<'_, Cart>, _: &mut Events) {
        self.there.retain(|there| *there != player);
    }

    fn order(&mut self, order: Order<'_, Cart>) -> Result<(), WireError> {
        self.rails.order(order)
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        let [player, thirds] = command.bytes else { return Err(WireError::Truncated.into()) };
        let player = PlayerId::new(u16::from(*player));
        if !self.obeys || !self.there.contains(&player) {
            return Err(CommandRefused::Refused { why: "there is no such player" });
        }
        self.moves.push((player, thirds.cast_signed()));
        Ok(())
    }

    fn resolve(&mut self, room: &mut Room<'_, Cart>, events: &mut Events) {
        for (player, thirds) in self.moves.drain(..) {
            let (id, body) = room.body_of(player).map(|(id, body)| (id, *body)).unwrap();
            let moved = CartBody { x: body.x + f64::from(thirds) / 3.0, ..body };
            room.alter(id, moved, Causes::NONE.with(Cause::Teleport)).unwrap();
        }
        self.rails.resolve(room, events);
    }
}

fn depot() -> Depot {
    Depot { obeys: true, ..Depot::default() }
}

fn with_credentials(name: &str, credentials: &str) -> ClientConfig<Cart> {
    let mut config = config(name);
    config.session.credentials = Some(credentials.to_owned());
    config
}

/// A body off the grid is put on it, so both sides start from the same bits; the world learns by what login the player
/// came, and sees of its credentials what it wants to be recorded.
#[test]
fn game_03_join_is_given_the_login_and_its_body_is_settled() {
    // Before any tick has settled it: the welcome of a player is written from this.
    let mut stage =
        Stage::new(Cadence::default(), depot(), Tick::new(9), BodyKey::new([1; 16]), BodyLimits::default());
    let (name, credentials) = (PlayerName::new("Ada").unwrap(), Some("3.3336".to_owned()));
    let login = Login { protocol: PROTOCOL, shared: 0, name, resume: None, credentials };
    stage.join(PlayerId::new(0), &login);
    let body = *stage.bodies().next().unwrap().2;
    assert_eq!(body.x, 3_414.0 / 1_024.0, "3.3336 m on a grid of 1/1024 m");

    let mut rig = Rig::new(ServerConfig::default(), depot(), 7);
    let ada = rig.join(with_credentials("Ada", "hunter2:3.3336"), Way::delayed(ms(10)));
    rig.run(ms(200), nothing);
    let logins = &rig.server.world().logins;
    assert_eq!(logins.iter().map(|login| login.name.as_str()).collect::<Vec<_>>(), ["Ada"]);
    assert_eq!(logins[0].credentials.as_deref(), Some("3.3336"), "not the secret");
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, 5));
    let stats = rig.seats[ada].client.reconciler().unwrap().stats();
    assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
}

#[test]
fn claims_that_are_too_long_are_refused_as_credentials() {
    let mut rig = Rig::new(ServerConfig::default(), depot(), 7);
    let longest = "x".repeat(Login::MAX_CLAIMS);
    let ada = rig.join(with_credentials("Ada", &format!(":{longest}")), Way::delayed(ms(10)));
    let bob = rig.join(with_credentials("Bob", &format!(":{longest}x")), Way::delayed(ms(10)));
    rig.run(ms(500), nothing);
    let refused = SessionState::Failed(SessionEnd::Refused(LoginRefused::CredentialsInvalid));
    assert_eq!([ada, bob].map(|seat| rig.seats[seat].client.state()), [SessionState::LoggedIn, refused]);
}

/// A recorded match in which the host moved a cart three times.
fn commanded() -> (Rig<Depot>, Vec<u8>) {
    let mut rig = Rig::new(ServerConfig::default(), depot(), 7);
    assert!(rig.server.record([7; 16], vec![]));
    rig.join(with_credentials("Ada", "hunter2:3.3333"), Way::delayed(ms(10)));
    rig.join(with_credentials("Bob", "hunter3:-40"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(1), crate::rig::carts::shuttle);
    for thirds in [7, -20, 31] {
        rig.server.command(&[0, thirds as i8 as u8]).unwrap();
        rig.run(ms(730), crate::rig::carts::shuttle);
    }
    assert_eq!(rig.server.command(&[9, 1]), Err(CommandRefused::Refused { why: "there is no such player" }));
    rig.run(Duration::from_secs(1), crate::rig::carts::shuttle);
    let record = rig.record.clone();
    (rig, record)
}

/// Commands of the host are in the recording: playback and recovery come out as the match did, and the world cannot be
/// changed behind the recording's back.
#[test]
fn record_10_commands_of_the_host_are_recorded_and_the_world_is_not_changed_otherwise() {
    let (mut rig, record) = commanded();
    assert_eq!(rig.server.world_mut().unwrap_err(), WorldIsRecorded);
    let teleports = rig.seats[0].client.reconciler().unwrap().stats().of(Cause::Teleport);
    assert_eq!(teleports, 3, "the player saw them");

    let mut playback = Playback::new(Recording::<Cart>::open(record.clone()).unwrap(), depot()).unwrap();
    let mut commands = vec![];
    while let Some(entry) = playback.next() {
        if let Entry::Commanded { bytes } = entry {
            commands.push(bytes[1].cast_signed());
        }
    }
    assert_eq!((commands, playback.differs()), (vec![7, -20, 31], None), "the refused one is not in it");
    assert!(playback.stage().bodies().eq(rig.server.bodies()), "the same match, to the bit");
    let secrets = [b"hunter2", b"hunter3"];
    assert!(secrets.iter().all(|secret| !record.windows(7).any(|bytes| bytes == *secret)));
    assert!(record.windows(6).any(|bytes| bytes == b"3.3333"), "the claims are");

    let recovery = Recovery { run: [7; 16], rewound: false };
    let recording = || Recording::open(record.clone()).unwrap();
    let recover = |world| Server::recover(ServerConfig::default(), world, rig.now, recording(), recovery);
    let (recovered, _) = recover(depot()).unwrap();
    assert!(recovered.bodies().eq(rig.server.bodies()));

    // A game that no longer obeys what it obeyed then is another game.
    let deaf = Depot::default();
    let mut playback = Playback::new(recording(), deaf.clone()).unwrap();
    while playback.next().is_some() {}
    assert!(playback.differs().is_some());
    assert!(matches!(recover(deaf), Err(RecoverRefused::Differs(_))));

    rig.server.stop_recording();
    assert!(rig.server.world_mut().is_ok());
}

#[test]
fn commands_are_refused_by_name_and_recorded_in_an_empty_room() {
    let now = Timestamp::ZERO;
    let mut carts = Server::new(ServerConfig::default(), Rails::default(), now).unwrap();
    assert_eq!(carts.command(&[1]), Err(CommandRefused::Unsupported));
    let mut server =
        Server::new(ServerConfig::default(), Depot { there: vec![PlayerId::new(0)], ..depot() }, now)
            .unwrap();
    let long = vec![0; Server::<Depot>::MAX_COMMAND_BYTES + 1];
    assert_eq!(server.command(&long), Err(CommandRefused::TooLong { bytes: 4_097, max: 4_096 }));
    assert_eq!(server.command(&[0]), Err(CommandRefused::Malformed(WireError::Truncated)));

    // Nothing waits for a first player: the recording of an empty room does not pile up in memory.
    assert!(server.record([7; 16], vec![]));
    let mut record = vec![];
    for _ in 0..3 {
        server.command(&[0, 1]).unwrap();
        assert!(server.poll_record(&mut record));
    }
    let mut recording = Recording::<Cart>::open(record).unwrap();
    let commands = std::iter::from_fn(|| recording.next());
    assert_eq!(commands.filter(|entry| matches!(entry, Entry::Commanded { .. })).count(), 3);
    // Without polls in between, commands end where a frame would get too long.
    let taken = (0..1_000_000).take_while(|_| server.command(&[0, 1]).is_ok()).count();
    assert!((10_000..1_000_000).contains(&taken), "{taken}");
    assert_eq!(server.command(&[0, 1]), Err(CommandRefused::TooMany));
    assert!(server.poll_record(&mut vec![]) && server.command(&[0, 1]).is_ok());
}

/// Every poll takes what it gives, so `while let` ends.
#[test]
fn a_connection_to_be_closed_is_polled_once() {
    let mut rig = Rig::new(ServerConfig::default(), Rails::default(), 7);
    let player = {
        let ada = rig.join(config("Ada"), Way::delayed(ms(10)));
        rig.run(Duration::from_secs(1), nothing);
        rig.seats[ada].client.player().unwrap()
    };
    let connection = rig.connection(0).unwrap();
    rig.server.kick(player);
    let closes: Vec<_> = (0..5).map_while(|_| rig.server.poll_close()).collect();
    assert_eq!(closes, [(connection, DisconnectReason::Kicked)]);
    assert_eq!(rig.server.connections().count(), 1, "known until it is closed");
    rig.server.handle_closed(connection);
    assert_eq!(rig.server.connections().count(), 0);
}
