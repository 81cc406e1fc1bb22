//! BODY: players with several bodies or none, bodies of the world, and bodies that nothing drives, over a whole room.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::rig::carts::{config, login, nothing, shuttle};
use crate::rig::{Direction, Rig, Way, ms};
use halftrack::cart::{Cart, CartBody, CartPose};
use halftrack::client::{Client, ClientConfig};
use halftrack::record::{Playback, Recording};
use halftrack::server::{
    BodyRefused, Command, CommandRefused, Events, RecoverRefused, Recovery, Room, Server, ServerConfig,
    SpawnRefused, Stage, World,
};
use halftrack::session::SessionState;
use halftrack::snapshot::{BodyKey, BodyLimits, Course};
use halftrack::wire::control::Login;
use halftrack::{
    Body, BodyId, Cadence, Cause, Causes, Driver, Game, Link, MessageKind, MotionLimits, PlayerId,
    PlayerName, Status, Step, Tick, TickInput, Timestamp,
};

/// An act of the world in the next tick, as the host orders it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// A cart for the player of this number, at so many metres.
    Own(u8, i16),
    /// A cart of the world, and one that nothing drives.
    Driven(i16),
    Undriven(i16),
    /// By its place among the bodies of the world, in order of their spawn.
    Drive(u8, i8),
    Push(u8, i8),
    Remove(u8),
    /// The body of a player at this place among its own.
    RemoveOwn(u8, u8),
}

impl Act {
    fn bytes(self) -> [u8; 4] {
        let pair = |kind, first: u8, second: i16| {
            let [low, high] = second.to_le_bytes();
            [kind, first, low, high]
        };
        match self {
            Self::Own(player, x) => pair(0, player, x),
            Self::Driven(x) => pair(1, 0, x),
            Self::Undriven(x) => pair(2, 0, x),
            Self::Drive(place, input) => pair(3, place, i16::from(input)),
            Self::Push(place, by) => pair(4, place, i16::from(by)),
            Self::Remove(place) => pair(5, place, 0),
            Self::RemoveOwn(player, place) => pair(6, player, i16::from(place)),
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [kind, first, low, high] = *bytes else { return None };
        let second = i16::from_le_bytes([low, high]);
        Some(match kind {
            0 => Self::Own(first, second),
            1 => Self::Driven(second),
            2 => Self::Undriven(second),
            3 => Self::Drive(first, second as i8),
            4 => Self::Push(first, second as i8),
            5 => Self::Remove(first),
            6 => Self::RemoveOwn(first, second as u8),
            _ => return None,
        })
    }
}

/// A yard of carts: players come with some of their own, and the host has more put there.
#[derive(Clone, Debug, Default)]
struct Yard {
    rules: Arc<Cart>,
    /// Places of the carts that each player comes with.
    at_join: Vec<f64>,
    /// The world's bodies, in order of their spawn.
    world: Vec<BodyId>,
    acts: Vec<Act>,
    /// In this tick it moves a body of the world by a hair, in secret.
    cheats_in: Option<Tick>,
    /// Carts of players that the room did not take.
    refused: Vec<SpawnRefused>,
    /// When a player leaves, its carts are left to the world, and the first cart of the others is put elsewhere.
    inherits: bool,
}

impl Yard {
    fn with(at_join: &[f64]) -> Self {
        Self { at_join: at_join.to_vec(), ..Self::default() }
    }

    fn act(&mut self, act: Act, room: &mut Room<'_, Cart>) {
        let cart = |x: i16| CartBody::at(f64::from(x));
        match act {
            Act::Own(player, x) => {
                let spawned = room.spawn(Driver::Player(PlayerId::new(player.into())), cart(x));
                self.refused.extend(spawned.err());
            }
            Act::Driven(x) => self.world.push(room.spawn(Driver::World, cart(x)).unwrap()),
            Act::Undriven(x) => self.world.push(room.spawn(Driver::Nothing, cart(x)).unwrap()),
            Act::Drive(place, input) => room.drive(self.world[usize::from(place)], input).unwrap(),
            Act::Push(place, by) => {
                let id = self.world[usize::from(place)];
                let cart = *room.body(id).unwrap();
                let pushed = CartBody { x: cart.x + f64::from(by) / 8.0, ..cart };
                room.alter(id, pushed, Causes::NONE).unwrap();
            }
            Act::Remove(place) => {
                let id = self.world.remove(usize::from(place));
                let last = *room.body(id).unwrap();
                assert_eq!(room.remove(id), Ok(last));
            }
            Act::RemoveOwn(player, place) => {
                let id = room.owned(PlayerId::new(player.into()))[usize::from(place)];
                room.remove(id).unwrap();
            }
        }
    }
}

impl World for Yard {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Cart>) {
        for x in &self.at_join {
            let x = x - 1_000.0 * f64::from(player.number());
            room.spawn(Driver::Player(player), CartBody::at(x)).unwrap();
        }
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Cart>, _: &mut Events) {
        if !self.inherits {
            return;
        }
        let carts: Vec<_> = room.bodies().map(|(id, driver, cart)| (id, driver, *cart)).collect();
        for (_, _, cart) in carts.iter().filter(|(_, driver, _)| driver.player() == Some(player)) {
            let id = room.spawn(Driver::World, *cart).unwrap();
            room.drive(id, 3).unwrap();
            self.world.push(id);
        }
        for id in &self.world {
            room.drive(*id, -2).unwrap();
        }
        let others =
            carts.iter().filter(|(_, driver, _)| driver.player().is_some_and(|other| other != player));
        for (id, _, cart) in others {
            let put = CartBody { x: cart.x + 40.0, ..*cart };
            room.alter(*id, put, Causes::NONE.with(Cause::Teleport)).unwrap();
        }
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        let act = Act::read(command.bytes).ok_or(CommandRefused::Refused { why: "no act" })?;
        self.acts.push(act);
        Ok(())
    }

    fn resolve(&mut self, room: &mut Room<'_, Cart>, _: &mut Events) {
        for act in std::mem::take(&mut self.acts) {
            self.act(act, room);
        }
        if self.cheats_in == Some(room.tick()) {
            let id = self.world[0];
            let cart = *room.body(id).unwrap();
            room.alter(id, CartBody { x: cart.x + 1.0 / 1024.0, ..cart }, Causes::NONE).unwrap();
        }
    }
}

fn yard(at_join: &[f64]) -> Rig<Yard> {
    Rig::new(ServerConfig::default(), Yard::with(at_join), 7)
}

/// The host orders an act, which the next tick has.
fn act(rig: &mut Rig<Yard>, act: Act) {
    rig.server.command(&act.bytes()).unwrap();
}

/// The ids of the bodies that the client of a seat owns.
fn own(rig: &Rig<Yard>, seat: usize) -> Vec<BodyId> {
    rig.seats[seat].client.own().map(|(id, ..)| id).collect()
}

/// Every body of the client's player is predicted, and none was ever corrected.
fn assert_uncorrected(rig: &Rig<Yard>, seat: usize, bodies: usize) {
    let client = &rig.seats[seat].client;
    assert_eq!(own(rig, seat), rig.server.owned(client.player().unwrap()), "in order of their spawn");
    assert_eq!(client.own().count(), bodies);
    for (id, predicted, reconciler) in client.own() {
        let reconciler = reconciler.unwrap();
        assert_eq!(client.reconciler().unwrap().predictor().status(), Status::Predicting, "{id}");
        assert_eq!(reconciler.predicted(), predicted);
    }
    let stats = client.corrections();
    assert_eq!((stats.negligible, stats.eased, stats.snapped), (0, 0, 0), "{stats:?}");
    let client = client.stats();
    assert_eq!((client.check_failed, client.malformed, client.missing_baseline), (0, 0, 0), "{client:?}");
}

/// Every body that the client has is the server's, and it has all of them.
fn assert_same_bodies(rig: &Rig<Yard>, seat: usize) {
    let client = &rig.seats[seat].client;
    let mut ids = BTreeSet::new();
    for (id, history) in client.crowd().bodies() {
        let tick = history.newest();
        let (shown, truth) = (history.latest(), rig.server.body(id, tick).unwrap());
        assert_eq!(shown.digest(), truth.digest(), "{id} at {tick}");
        ids.insert(id);
    }
    assert_eq!(ids, rig.server.bodies().map(|(id, ..)| id).collect());
}

const WAYS: [Way; 2] =
    [Way::IDEAL, Way { delay: Duration::from_millis(60), jitter: Duration::ZERO, loss: 0.0, duplicate: 0.0 }];

#[test]
fn body_02_every_body_of_a_player_is_predicted_and_none_is_corrected() {
    for way in WAYS {
        let mut rig = yard(&[0.0, -100.0, -200.0]);
        let ada = rig.join(config("Ada"), way);
        let bob = rig.join(config("Bob"), way);
        rig.run(Duration::from_secs(1), nothing);
        let before: Vec<_> = rig.seats[ada].client.own().map(|(_, cart, _)| cart.x).collect();
        rig.run(Duration::from_secs(10), shuttle);
        for seat in [ada, bob] {
            assert_uncorrected(&rig, seat, 3);
            assert!(rig.seats[seat].client.corrections().unchanged > 3 * 180);
            assert_same_bodies(&rig, seat);
        }
        let client = &rig.seats[ada].client;
        let moved: Vec<_> = client.own().zip(before).map(|((_, cart, _), before)| cart.x - before).collect();
        assert!(moved.iter().all(|each| (each - moved[0]).abs() < 1e-6), "by the same input: {moved:?}");
        // The first is the one of the calls that speak of one body.
        let first = client.own().next().unwrap();
        assert_eq!(client.predicted(), Some(first.1));
        assert_eq!(client.reconciler().unwrap().first().map(|member| member.id()), Some(first.0));
        // All others are remotes, and none of its own is.
        let remotes: BTreeSet<_> = client.remotes().iter().map(|remote| remote.id).collect();
        assert_eq!(remotes, own(&rig, bob).into_iter().collect());
        let of_bob = client.bodies_of(rig.seats[bob].client.player().unwrap());
        assert_eq!(of_bob.map(|(id, _)| id).collect::<BTreeSet<_>>(), remotes);
    }
}

/// While its player drives, so that a wrong start of its prediction would show.
#[test]
fn body_02_a_body_spawned_later_is_predicted_from_its_first_snapshot_on() {
    for way in WAYS {
        let mut rig = yard(&[0.0]);
        let ada = rig.join(config("Ada"), way);
        rig.run(Duration::from_secs(2), shuttle);
        for (count, x) in [(2, -300), (3, -600), (4, 500)] {
            act(&mut rig, Act::Own(0, x));
            let mut seen = false;
            rig.run(ms(1_730), |seat, now, client| {
                shuttle(seat, now, client);
                let bodies = client.own().count();
                seen |= bodies == count;
                assert!(bodies == if seen { count } else { count - 1 });
                assert!(
                    client.own().all(|(.., reconciler)| reconciler.is_some()),
                    "predicted from the start"
                );
            });
            assert!(seen);
            assert_uncorrected(&rig, ada, count);
        }
        assert_same_bodies(&rig, ada);
    }
}

#[test]
fn body_02_a_removed_body_is_owned_no_more_and_its_corrections_still_count() {
    for way in WAYS {
        let mut rig = yard(&[0.0, -100.0, -200.0]);
        let ada = rig.join(config("Ada"), way);
        rig.run(Duration::from_secs(2), shuttle);
        let before = own(&rig, ada);
        let unchanged = rig.seats[ada].client.corrections().unchanged;
        // The first of them: the next one takes its place in the calls that speak of one body.
        act(&mut rig, Act::RemoveOwn(0, 0));
        rig.run(Duration::from_secs(2), shuttle);
        assert_eq!(own(&rig, ada), before[1..]);
        assert_uncorrected(&rig, ada, 2);
        let client = &rig.seats[ada].client;
        assert_eq!(client.predicted(), client.own().next().map(|(_, cart, _)| cart));
        assert!(client.corrections().unchanged > unchanged + 2 * 35);
        assert_eq!(client.authoritative(before[0]), None);
        assert!(client.crowd().is_gone(before[0]));
        // The last of those that are left, while another one comes.
        act(&mut rig, Act::RemoveOwn(0, 1));
        act(&mut rig, Act::Own(0, 700));
        rig.run(Duration::from_secs(2), shuttle);
        assert_uncorrected(&rig, ada, 2);
        assert_eq!(own(&rig, ada)[0], before[1]);
    }
}

/// A respawn as another body: in one tick the only body goes and another one comes.
#[test]
fn body_02_a_body_that_takes_the_place_of_the_only_one_is_predicted_at_once() {
    for way in WAYS {
        let mut rig = yard(&[0.0]);
        let ada = rig.join(config("Ada"), way);
        rig.run(Duration::from_secs(2), shuttle);
        for x in [-300, 300, -150] {
            let before = own(&rig, ada);
            act(&mut rig, Act::RemoveOwn(0, 0));
            act(&mut rig, Act::Own(0, x));
            rig.run(ms(1_310), |seat, now, client| {
                shuttle(seat, now, client);
                assert!(client.reconciler().is_some(), "there is always one");
            });
            assert_uncorrected(&rig, ada, 1);
            assert_ne!(own(&rig, ada), before);
        }
        let stats = rig.server.input_stats(PlayerId::new(0)).unwrap();
        assert_eq!((stats.stale, stats.far_future), (0, 0), "{stats:?}");
    }
}

#[test]
fn body_02_a_player_without_bodies_watches_until_it_gets_one() {
    for way in WAYS {
        let mut rig = yard(&[]);
        for x in [100, 110, 120] {
            act(&mut rig, Act::Driven(x));
        }
        let ada = rig.join(config("Ada"), way);
        rig.run(Duration::from_secs(1), shuttle);
        for round in 0..3 {
            act(&mut rig, Act::Drive(0, 4 - 3 * round));
            let (datagrams, bytes) = (rig.seats[ada].datagrams_down, rig.seats[ada].bytes_down);
            rig.run(Duration::from_secs(8), shuttle);
            let seat = &rig.seats[ada];
            assert_eq!((seat.client.state(), seat.closed.len()), (SessionState::LoggedIn, 0));
            assert_eq!((seat.client.own().count(), seat.client.predicted()), (0, None));
            assert!(seat.client.stats().snapshots > 150, "{:?}", seat.client.stats());
            assert_same_bodies(&rig, ada);
            assert_eq!(seat.client.remotes().iter().count(), 3, "the others are drawn");
            // Acknowledgements flow: a snapshot builds on the one before, and is short.
            let datagrams = seat.datagrams_down - datagrams;
            let each = (seat.bytes_down - bytes) / datagrams;
            assert!(datagrams > 150 && each < 30, "{datagrams} of {each} bytes");
            assert_eq!(rig.server.stats().full_states, 0);

            act(&mut rig, Act::Own(0, -200 - 50 * i16::from(round)));
            rig.run(Duration::from_secs(3), shuttle);
            assert_uncorrected(&rig, ada, 1);
            act(&mut rig, Act::RemoveOwn(0, 0));
            rig.run(ms(500), shuttle);
        }
    }
}

#[test]
fn body_02_bodies_of_a_player_outlive_a_cut_and_leave_with_it() {
    let mut rig = yard(&[0.0, -100.0]);
    let ada = rig.join(config("Ada"), Way::delayed(ms(30)));
    let bob = rig.join(config("Bob"), Way::delayed(ms(30)));
    rig.run(Duration::from_secs(2), shuttle);
    // While it is away it gets a body and loses one.
    rig.cut(ada);
    act(&mut rig, Act::RemoveOwn(0, 0));
    act(&mut rig, Act::Own(0, 400));
    rig.run(Duration::from_secs(3), shuttle);
    let client = &rig.seats[ada].client;
    assert_eq!(client.state(), SessionState::LoggedIn);
    assert_eq!(own(&rig, ada), rig.server.owned(client.player().unwrap()));
    assert!(client.own().all(|(.., reconciler)| reconciler.is_some()));
    assert_eq!(client.corrections().of(Cause::Unexplained), 0, "{:?}", client.corrections());
    let ids = own(&rig, ada);
    let now = rig.now;
    rig.seats[ada].client.logout(now);
    rig.run(ms(500), shuttle);
    assert_eq!(rig.server.bodies().count(), 2);
    let client = &rig.seats[bob].client;
    assert!(ids.iter().all(|id| client.crowd().is_gone(*id) && client.drawn(*id).is_none()));
    assert_uncorrected(&rig, bob, 2);
}

/// Carts of one player that are in each other's way are predicted together, as the server moves them.
#[test]
fn body_02_bodies_of_a_player_that_meet_are_corrected_by_nothing() {
    let mut rig = yard(&[0.0, -0.1, -0.2, 3.0]);
    let ada = rig.join(config("Ada"), Way::delayed(ms(60)));
    act(&mut rig, Act::Undriven(9));
    let mut met = 0;
    for _ in 0..400 {
        rig.run(ms(50), shuttle);
        let owned =
            rig.seats[ada].client.crowd().bodies().filter(|(_, body)| body.driver().player().is_some());
        let courses = owned.filter_map(|(_, body)| Some(body.get(body.newest())?.course));
        met += courses.filter(|course| *course != Course::Own).count();
    }
    let client = &rig.seats[ada].client;
    let stats = client.corrections();
    assert_eq!(Cause::ALL.map(|cause| stats.of(cause)), [0; Cause::ALL.len()], "{stats:?}");
    assert!(stats.unchanged > 1_000 && met > 8, "met {met} times: {stats:?}");
    assert_eq!(client.stats().check_failed, 0);
    assert_same_bodies(&rig, ada);
}

/// All own bodies are in each datagram, whole: its length limits their number.
#[test]
fn body_02_the_most_bodies_of_a_player_fit_beside_the_most_bodies_of_a_room() {
    for (max_datagram_bytes, at_least) in [(1_100, 40), (250, 9)] {
        let server = ServerConfig { max_datagram_bytes, ..ServerConfig::default() };
        let mut rig = Rig::new(server, Yard::with(&[0.0]), 7);
        rig.join(config("Ada"), Way { jitter: ms(10), loss: 0.05, ..Way::delayed(ms(40)) });
        rig.seats[0].frame = ms(50);
        rig.run(Duration::from_secs(1), shuttle);
        let mut most = 1;
        for number in 0..940 {
            let full = !rig.server.world().refused.is_empty();
            // Of a short datagram's bodies one comes and goes, so that the ids are sent again and again.
            if full && number % 50 == 20 {
                act(&mut rig, Act::RemoveOwn(0, 0));
                act(&mut rig, Act::Own(0, -20 * number));
            } else if !full && number % 10 == 0 {
                act(&mut rig, Act::Own(0, -20 * number));
                rig.run(ms(50), shuttle);
                most += usize::from(rig.server.world().refused.is_empty());
            }
            act(&mut rig, Act::Undriven(1_000 + number));
            if number % 50 == 49 {
                rig.run(ms(200), shuttle);
            }
        }
        rig.run(Duration::from_secs(3), shuttle);
        let player = PlayerId::new(0);
        assert_eq!(rig.server.world().refused, [SpawnRefused::TooManyOwned { player, max: most }]);
        assert!(own(&rig, 0).len() == most && most >= at_least, "{most}");
        let stats = rig.seats[0].client.stats();
        assert_eq!((stats.check_failed, stats.malformed), (0, 0), "{stats:?}");
        let corrections = rig.seats[0].client.corrections();
        assert_eq!(corrections.of(Cause::Unexplained), 0, "{corrections:?}");
        assert_same_bodies(&rig, 0);
    }
}

/// A full state by the reliable lane names bodies that no snapshot has brought: those are lost meanwhile.
#[test]
fn body_02_a_body_that_comes_with_a_full_state_is_known_before_snapshots_build_on_it() {
    let short = ServerConfig { max_datagram_bytes: 200, ..ServerConfig::default() };
    let mut came = 0;
    for before in (1_000..2_400).step_by(50) {
        let mut rig = Rig::new(short, Yard::with(&[0.0]), 7);
        let ada = rig.join(config("Ada"), Way::delayed(ms(20)));
        for x in 0..80 {
            act(&mut rig, Act::Undriven(100 + 10 * x));
        }
        let restless = |rig: &mut Rig<Yard>, span: u64| {
            for _ in 0..span / 50 {
                for place in 0..80 {
                    act(rig, Act::Push(place, 1));
                }
                rig.run(ms(50), shuttle);
            }
        };
        restless(&mut rig, before);
        rig.seats[ada].datagrams_cut = (false, true);
        act(&mut rig, Act::Own(0, -300));
        act(&mut rig, Act::RemoveOwn(0, 0));
        restless(&mut rig, 50);
        let full_states = rig.server.stats().full_states;
        restless(&mut rig, 100);
        came += rig.server.stats().full_states - full_states;
        rig.seats[ada].datagrams_cut = (false, false);
        restless(&mut rig, 1_000);
        let client = &rig.seats[ada].client;
        let stats = client.stats();
        assert_eq!((stats.check_failed, stats.malformed), (0, 0), "{before}: {stats:?}");
        assert_eq!(own(&rig, ada), rig.server.owned(PlayerId::new(0)), "{before}");
        let corrections = client.corrections();
        assert_eq!(corrections.of(Cause::Unexplained), 0, "{before}: {corrections:?}");
    }
    assert!(came > 0, "a full state comes in between at least once");
}

#[test]
fn body_08_a_full_state_of_two_thousand_bodies_comes_in_pieces() {
    let many = ServerConfig { max_bodies: 4_096, ..ServerConfig::default() };
    for way in WAYS {
        let mut rig = Rig::new(many, Yard::with(&[0.0]), 7);
        rig.join(config("Ada"), Way::IDEAL);
        rig.run(ms(500), nothing);
        for number in 0..2_000 {
            act(&mut rig, if number % 4 == 0 { Act::Driven(number * 3) } else { Act::Undriven(-number * 3) });
        }
        rig.run(ms(100), nothing);
        assert_eq!(rig.server.bodies().count(), 2_001);
        // One that comes now is sent all of them, and then short snapshots.
        let bob = rig.join(config("Bob"), way);
        rig.run(ms(1_000), nothing);
        let pieces = rig.seats[bob].tap.count(Direction::Down, Link::Reliable, MessageKind::Bodies);
        assert!((6..20).contains(&pieces), "{pieces} pieces of a frame each");
        assert_eq!(rig.seats[bob].tap.count(Direction::Down, Link::Reliable, MessageKind::Welcome), 1);
        let (datagrams, bytes) = (rig.seats[bob].datagrams_down, rig.seats[bob].bytes_down);
        rig.run(ms(2_000), shuttle);
        let seat = &rig.seats[bob];
        let each = (seat.bytes_down - bytes) / (seat.datagrams_down - datagrams);
        assert!(each < 60, "{each} bytes each");
        assert_eq!(seat.client.crowd().bodies().count(), 2_002);
        assert_same_bodies(&rig, bob);
        assert_uncorrected(&rig, bob, 1);
        // The first player's snapshots had no room for so many new bodies: it was sent a full state too.
        assert_eq!(rig.server.stats().full_states, 1);
        assert!(rig.seats[0].tap.count(Direction::Down, Link::Reliable, MessageKind::Bodies) >= pieces);
        assert_same_bodies(&rig, 0);
        assert_uncorrected(&rig, 0, 1);
    }
}

/// A recorded match with bodies of all drivers.
fn recorded() -> (Rig<Yard>, Vec<u8>) {
    let config_of_match = ServerConfig { body_key: [9; 16], max_bodies: 50, ..ServerConfig::default() };
    let mut rig = Rig::new(config_of_match, Yard::with(&[0.0, -50.0]), 7);
    assert!(rig.server.record([7; 16], vec![]));
    rig.join(config("Ada"), Way::delayed(ms(10)));
    let bob = rig.join(config("Bob"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(1), shuttle);
    let acts = [
        Act::Driven(20),
        Act::Undriven(25),
        Act::Drive(0, 7),
        Act::Own(1, 80),
        Act::Driven(900),
        Act::Drive(2, 3),
        Act::Push(1, 5),
        Act::RemoveOwn(0, 0),
        Act::Drive(0, -7),
        Act::Remove(1),
        Act::Drive(1, 8),
    ];
    for each in acts {
        act(&mut rig, each);
        rig.run(ms(370), shuttle);
    }
    let now = rig.now;
    rig.seats[bob].client.logout(now);
    rig.run(Duration::from_secs(1), shuttle);
    let record = rig.record.clone();
    (rig, record)
}

#[test]
fn body_09_bodies_of_the_world_are_played_back_and_recovered_to_the_bit() {
    let (rig, record) = recorded();
    let recording = || Recording::<Cart>::open(record.clone()).unwrap();
    let mut playback = Playback::new(recording(), Yard::with(&[0.0, -50.0])).unwrap();
    while playback.next().is_some() {}
    assert_eq!(playback.differs(), None);
    assert!(playback.stage().bodies().eq(rig.server.bodies()), "the same bodies, ids and drivers");
    assert_eq!(playback.stage().tick(), rig.server.tick());
    let drivers: Vec<_> = rig.server.bodies().map(|(_, driver, _)| driver).collect();
    assert_eq!(drivers.iter().filter(|driver| **driver == Driver::World).count(), 2);

    // The key and the limits are those of the recording, whatever the config says.
    let recovery = Recovery { run: [7; 16], rewound: false };
    let recover = |world| Server::recover(ServerConfig::default(), world, rig.now, recording(), recovery);
    let (mut recovered, _) = recover(Yard::with(&[0.0, -50.0])).unwrap();
    assert!(recovered.bodies().eq(rig.server.bodies()));
    assert_eq!(recovered.owned(PlayerId::new(0)), rig.server.owned(PlayerId::new(0)));
    // It goes on as the first would have: the inputs of the world's bodies are held.
    let before: Vec<_> = recovered.bodies().map(|(id, _, cart)| (id, cart.x)).collect();
    let due = recovered.poll_timeout().unwrap();
    recovered.handle_timeout(due);
    let driven = recovered.world().world[1];
    let x = |id: BodyId| before.iter().find(|(each, _)| *each == id).unwrap().1;
    let moved = recovered.body(driven, recovered.tick()).unwrap().x - x(driven);
    assert!((moved - 0.4).abs() < 0.01, "{moved} m in a tick at full input");
}

#[test]
fn body_09_a_difference_in_a_body_that_no_player_owns_is_noticed_within_a_second() {
    let (rig, record) = recorded();
    let recording = || Recording::<Cart>::open(record.clone()).unwrap();
    let mut exact = 0;
    for back in (25..65).step_by(3) {
        let tick = Tick::new(rig.server.tick().number() - back);
        let forged = Yard { cheats_in: Some(tick), ..Yard::with(&[0.0, -50.0]) };
        let mut playback = Playback::new(recording(), forged.clone()).unwrap();
        while playback.next().is_some() {}
        let differs = playback.differs().unwrap();
        assert_eq!(differs.player, None);
        // A trace has few bits, so one in four differences is noticed in a later tick only.
        exact += usize::from(differs.tick == tick);
        assert!(differs.tick >= tick && differs.tick.since(tick) <= 20, "{differs:?} of {tick}");
        let recovery = Recovery { run: [7; 16], rewound: false };
        let recovered = Server::recover(ServerConfig::default(), forged, rig.now, recording(), recovery);
        assert!(matches!(recovered, Err(RecoverRefused::Differs(found)) if found == differs));
    }
    assert!(exact > 6, "{exact} of 14 were noticed at once");
}

/// A player leaves between two ticks, after the snapshots of the first: clients may have acknowledged these.
#[test]
fn bodies_that_outlive_their_player_and_those_moved_by_its_leave_are_sent_without_a_full_state() {
    let lossy = Way { loss: 0.2, ..Way::delayed(ms(30)) };
    for (way, seed) in [(Way::IDEAL, 7), (Way::delayed(ms(30)), 7), (lossy, 1), (lossy, 2), (lossy, 3)] {
        let inherits = Yard { inherits: true, ..Yard::with(&[0.0, -50.0]) };
        let mut rig = Rig::new(ServerConfig::default(), inherits, seed);
        let seats = ["Ada", "Bob", "Eve"].map(|name| rig.join(config(name), way));
        for x in [300, 330] {
            act(&mut rig, Act::Driven(x));
        }
        rig.run(Duration::from_secs(2), shuttle);
        for seat in [0, 2] {
            let now = rig.now + ms(20);
            rig.run(ms(20), shuttle);
            rig.seats[seat].client.logout(now);
            rig.run(ms(777), shuttle);
        }
        rig.seats[seats[1]].down = Way::IDEAL;
        rig.run(ms(500), nothing);
        let client = &rig.seats[seats[1]].client;
        let (stats, corrections) = (client.stats(), client.corrections());
        assert_eq!((stats.check_failed, stats.missing_baseline, stats.full_requests), (0, 0, 0), "{stats:?}");
        let causes = (corrections.of(Cause::Teleport), corrections.of(Cause::Unexplained));
        assert_eq!(causes, (4, 0), "{way:?}: {corrections:?}");
        assert_eq!(rig.server.bodies().count(), 2 + 2 + 4);
        assert_same_bodies(&rig, seats[1]);
    }
}

/// The stage of a yard without players.
fn stage(limits: BodyLimits) -> Stage<Yard> {
    let yard = Yard::with(&[0.0]);
    Stage::new(Cadence::default(), yard, Tick::new(9), BodyKey::new([1; 16]), limits)
}

fn order(stage: &mut Stage<Yard>, act: Act) {
    stage.command(&act.bytes()).unwrap();
}

#[test]
fn body_06_bodies_of_an_empty_room_stand_still_and_go_on_with_the_first_player() {
    let mut stage = stage(BodyLimits::default());
    let ada = PlayerId::new(3);
    stage.join(ada, &login("Ada"));
    order(&mut stage, Act::Driven(20));
    order(&mut stage, Act::Undriven(70));
    order(&mut stage, Act::Drive(0, 8));
    let x = |stage: &Stage<Yard>| {
        let id = stage.world().world[0];
        stage.bodies().find(|(each, ..)| *each == id).unwrap().2.x
    };
    (0..11).for_each(|_| stage.advance(|_| TickInput::steady(2)));
    assert!((x(&stage) - 24.0).abs() < 0.01, "ten ticks of 0.4 m");
    stage.leave(ada);
    let before: Vec<_> = stage.bodies().map(|(id, driver, cart)| (id, driver, *cart)).collect();
    assert_eq!(before.len(), 2, "the player's went with it");
    for _ in 0..100 {
        stage.advance(|_| panic!("there is no player"));
    }
    stage.pass(10_000);
    assert_eq!(stage.tick(), Tick::new(9 + 11 + 100 + 10_000));
    assert!(stage.bodies().map(|(id, driver, cart)| (id, driver, *cart)).eq(before.iter().copied()));
    stage.join(PlayerId::new(4), &login("Bob"));
    (0..10).for_each(|_| stage.advance(|_| TickInput::default()));
    assert!((x(&stage) - 28.0).abs() < 0.01, "it goes on by the input that it had: {}", x(&stage));
}

#[test]
fn body_06_a_client_that_wakes_a_room_sees_its_bodies_go_on() {
    let mut rig = yard(&[0.0]);
    assert!(rig.server.record([7; 16], vec![]));
    let ada = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(ms(500), shuttle);
    for each in [Act::Driven(100), Act::Undriven(170), Act::Drive(0, 4)] {
        act(&mut rig, each);
    }
    rig.run(ms(1_000), shuttle);
    let now = rig.now;
    rig.seats[ada].client.logout(now);
    rig.run(ms(100), shuttle);
    let bodies = |rig: &Rig<Yard>| rig.server.bodies().map(|(id, _, cart)| (id, *cart)).collect::<Vec<_>>();
    let (before, tick) = (bodies(&rig), rig.server.tick());
    assert_eq!(before.len(), 2);
    rig.run(Duration::from_secs(20), shuttle);
    assert_eq!(
        (bodies(&rig), rig.server.tick().since(tick)),
        (before.clone(), 400),
        "time passes, and they stand"
    );
    let bob = rig.join(config("Bob"), Way::delayed(ms(20)));
    rig.run(ms(2_000), shuttle);
    assert_ne!(bodies(&rig), before);
    assert_same_bodies(&rig, bob);
    assert_uncorrected(&rig, bob, 1);
    assert_eq!(rig.seats[bob].client.remotes().iter().count(), 2);
    // The recording of it plays back.
    let recording = Recording::<Cart>::open(rig.record.clone()).unwrap();
    let mut playback = Playback::new(recording, Yard::with(&[0.0])).unwrap();
    while playback.next().is_some() {}
    assert_eq!(playback.differs(), None);
    assert!(playback.stage().bodies().eq(rig.server.bodies()));
}

/// Tries everything that a room refuses, and keeps the answers.
#[derive(Default)]
struct Clumsy {
    rules: Arc<Cart>,
    spawns: Vec<Result<BodyId, SpawnRefused>>,
    refusals: Vec<Result<(), BodyRefused>>,
}

impl World for Clumsy {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Cart>) {
        let cart = CartBody::at(0.0);
        let own = room.spawn(Driver::Player(player), cart).unwrap();
        let gone = room.spawn(Driver::World, cart).unwrap();
        let undriven = room.spawn(Driver::Nothing, cart).unwrap();
        room.remove(gone).unwrap();
        let before: Vec<_> = room.bodies().map(|(id, driver, cart)| (id, driver, *cart)).collect();
        self.refusals = vec![
            room.remove(gone).map(drop),
            room.drive(gone, 3),
            room.alter(gone, cart, Causes::NONE),
            room.drive(own, 3),
            room.drive(undriven, 3),
        ];
        self.spawns = vec![room.spawn(Driver::Player(PlayerId::new(77)), cart)];
        self.spawns.extend((0..3).map(|_| room.spawn(Driver::Player(player), cart)));
        let spawned: Vec<_> = self.spawns.iter().flatten().copied().collect();
        spawned.iter().for_each(|id| assert!(room.remove(*id).is_ok()));
        assert!(room.bodies().map(|(id, driver, cart)| (id, driver, *cart)).eq(before));
        self.spawns.extend((0..20).map(|_| room.spawn(Driver::Nothing, cart)));
    }
}

#[test]
fn body_01_a_room_refuses_by_name_and_changes_nothing() {
    let limits = BodyLimits { max_bodies: 8, max_owned: 3 };
    let mut stage =
        Stage::new(Cadence::default(), Clumsy::default(), Tick::new(9), BodyKey::new([1; 16]), limits);
    let player = PlayerId::new(3);
    stage.join(player, &login("Ada"));
    let world = stage.world();
    let names: Vec<_> = world.refusals.iter().map(|refusal| refusal.unwrap_err().to_string()).collect();
    for missing in &names[..3] {
        assert!(missing.starts_with("there is no body "), "{missing}");
    }
    for undriven in &names[3..] {
        assert!(undriven.ends_with("is not driven by the world: spawn it with `Driver::World` to drive it"));
    }
    assert_eq!(world.spawns[0], Err(SpawnRefused::NoSuchPlayer { player: PlayerId::new(77) }));
    assert!(world.spawns[1].is_ok() && world.spawns[2].is_ok());
    assert_eq!(world.spawns[3], Err(SpawnRefused::TooManyOwned { player, max: 3 }));
    let spawned = world.spawns[4..].iter().take_while(|spawn| spawn.is_ok()).count();
    assert_eq!(spawned, 6, "and then the room is full");
    let full = SpawnRefused::RoomFull { max: 8 };
    assert!(world.spawns[4 + spawned..].iter().all(|spawn| *spawn == Err(full)));
    assert_eq!((stage.bodies().count(), stage.escapes().count), (8, 0));
    assert_eq!(full.to_string(), "the room has 8 bodies, its most: remove one, or raise `max_bodies`");
}

/// Carts that are drawn only while they can drive at all.
#[derive(Debug, Default)]
struct Ghosts;

impl Game for Ghosts {
    type Input = i8;
    type Body = CartBody;
    type Pose = CartPose;

    fn advance(&self, cart: &mut CartBody, input: i8, step: &mut Step<'_, Self>) {
        cart.x += f64::from(input) * cart.speed * step.seconds() / 8.0;
    }

    fn pose(&self, cart: &CartBody) -> Option<CartPose> {
        (cart.speed > 1.0).then_some(CartPose { x: cart.x, wheel: cart.wheel })
    }

    fn limits(&self, cart: &CartBody) -> MotionLimits {
        Cart.limits(cart)
    }

    fn fingerprint(&self) -> u64 {
        2
    }
}

/// Two players with a cart each, and a score, whose speed is changed by the test.
#[derive(Debug, Default)]
struct Haunted {
    rules: Arc<Ghosts>,
    /// The speed of the first player's cart, and where it is put.
    put: Option<(f64, f64)>,
}

impl World for Haunted {
    type Game = Ghosts;

    fn rules(&self) -> &Arc<Ghosts> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Ghosts>) {
        room.spawn(Driver::Player(player), CartBody::at(-10.0 * f64::from(player.number()))).unwrap();
        let score = CartBody { speed: 0.0, ..CartBody::at(7.0) };
        room.spawn(Driver::Nothing, score).unwrap();
    }

    fn resolve(&mut self, room: &mut Room<'_, Ghosts>, _: &mut Events) {
        if let Some((speed, x)) = self.put.take() {
            let (id, cart) = room.body_of(PlayerId::new(0)).map(|(id, cart)| (id, *cart)).unwrap();
            room.alter(id, CartBody { speed, x, ..cart }, Causes::NONE.with(Cause::Respawn)).unwrap();
        }
    }
}

#[test]
fn body_07_a_body_without_a_pose_is_state_and_is_not_drawn() {
    let mut rig = Rig::new(ServerConfig::default(), Haunted::default(), 7);
    let seats = ["Ada", "Bob"].map(|name| {
        let name = PlayerName::new(name).unwrap();
        let config = ClientConfig::new(name, Cadence::default(), Arc::new(Ghosts));
        let seat = rig.join(config, Way::delayed(ms(30)));
        rig.run(ms(500), |_, _, _| {});
        seat
    });
    let [ada, bob] = seats;
    let drive = |_: usize, now: Timestamp, client: &mut Client<Ghosts>| client.set_input(now, 2);
    let drawn = |rig: &Rig<Haunted>| {
        let own = rig.seats[ada].client.reconciler().unwrap();
        assert_eq!(own.visible().is_some(), own.presenter().is_some());
        let remotes: Vec<_> = rig.seats[bob].client.remotes().iter().map(|remote| remote.driver).collect();
        assert!(remotes.is_empty() || remotes == [Driver::Player(PlayerId::new(0))], "no score: {remotes:?}");
        (own.visible().is_some(), !remotes.is_empty())
    };
    rig.run(Duration::from_secs(1), drive);
    assert_eq!(drawn(&rig), (true, true));
    let scores = rig.server.bodies().filter(|(_, driver, _)| *driver == Driver::Nothing).map(|(id, ..)| id);
    let scores: Vec<_> = scores.collect();
    assert_eq!(scores.len(), 2);
    for (x, round) in [(0.0, 0), (0.125, 1), (60.0, 2)] {
        // It dies, and is state only.
        let before = rig.seats[bob].client.remotes().stats().leaves;
        rig.server.world_mut().unwrap().put = Some((0.5, 5.0 * f64::from(round)));
        rig.run(Duration::from_secs(1), drive);
        assert_eq!(drawn(&rig), (false, false), "{round}");
        assert_eq!(rig.seats[bob].client.remotes().stats().leaves, before + 1);
        let client = &rig.seats[bob].client;
        assert!(scores.iter().all(|score| client.authoritative(*score).unwrap().1.x == 7.0));
        let own = rig.server.owned(PlayerId::new(0))[0];
        assert_eq!(client.authoritative(own).unwrap().1.speed, 0.5);
        // It comes back elsewhere, with no way in between.
        rig.server.world_mut().unwrap().put = Some((8.0, x));
        rig.run(ms(60), drive);
        let mut last = None;
        rig.run(ms(940), |seat, now, client| {
            drive(seat, now, client);
            if let (true, Some(pose)) = (seat == ada, client.frame(now)) {
                assert!(last.is_none_or(|last: f64| (pose.x - last).abs() < 0.1), "{last:?} {pose:?}");
                assert!((pose.x - x).abs() < 3.0, "{round}: {pose:?}");
                last = Some(pose.x);
            }
        });
        assert_eq!(drawn(&rig), (true, true), "{round}");
        for seat in seats {
            let client = &rig.seats[seat].client;
            assert_eq!((client.corrections().of(Cause::Unexplained), client.stats().check_failed), (0, 0));
            assert_eq!(client.corrections().eased, 0, "{round}: {:?}", client.corrections());
        }
    }
}
