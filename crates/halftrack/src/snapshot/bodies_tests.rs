//! Bodies of players, of the world and of nothing in one room: the server's side, and a client's over a network that loses
//! snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::cadence::Cadence;
use crate::cart::{Cart, CartBody};
use crate::cause::Causes;
use crate::id::{BodyId, Driver, PlayerId};
use crate::input::TickInput;
use crate::input::message_tests::any_tick;
use crate::model::{Body, FieldProblem};
use crate::snapshot::round_trip::{Mode, assert_true_except, crowd, mode, write};
use crate::snapshot::{
    Bodies, BodyKey, BodyLimits, BodyRefused, Course, Crowd, SpawnRefused, View, history_ticks,
};
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter};

fn room() -> Bodies<Cart> {
    Bodies::new(Arc::new(Cart), Cadence::default(), Tick::new(1_000))
}

fn player(number: u16) -> PlayerId {
    PlayerId::new(number)
}

/// Deeds of the world, at the end of a tick. Indices choose among the bodies or players that are there.
#[derive(Clone, Debug)]
enum Deed {
    Join,
    Leave(prop::sample::Index),
    /// For a player, by the world, or by nothing.
    Spawn(prop::sample::Index, u8, i16),
    Remove(prop::sample::Index),
    Drive(prop::sample::Index, i8),
    Alter(prop::sample::Index, i16),
}

/// A tick of a random match.
#[derive(Clone, Debug)]
struct Happening {
    told: Vec<(u16, TickInput<i8>)>,
    /// At the end of the tick, before its snapshots.
    deeds: Vec<Deed>,
    /// After its snapshots: players come and go between two ticks.
    late: Vec<Deed>,
    /// The first client is sent a full state instead of a snapshot.
    full: bool,
    /// By client.
    lost: [bool; 3],
    ack_lost: [bool; 3],
}

fn deed() -> impl Strategy<Value = Deed> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        1 => Just(Deed::Join),
        1 => index().prop_map(Deed::Leave),
        6 => (index(), 0u8..3, -8_000i16..8_000).prop_map(|(index, driver, x)| Deed::Spawn(index, driver, x)),
        4 => index().prop_map(Deed::Remove),
        10 => (index(), -8i8..=8).prop_map(|(index, input)| Deed::Drive(index, input)),
        3 => (index(), -800i16..800).prop_map(|(index, push)| Deed::Alter(index, push)),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    (
        prop::collection::vec((0u16..8, any_tick()), 0..3),
        prop::collection::vec(deed(), 0..3),
        prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(deed(), 0..3)],
        prop::bool::weighted(0.03),
        prop::array::uniform3(prop::bool::weighted(0.2)),
        prop::array::uniform3(prop::bool::weighted(0.3)),
    )
        .prop_map(|(told, deeds, late, full, lost, ack_lost)| Happening {
            told,
            deeds,
            late,
            full,
            lost,
            ack_lost,
        })
}

/// A room with a world that does deeds.
struct Match {
    bodies: Bodies<Cart>,
    next_player: u16,
    held: BTreeMap<PlayerId, i8>,
    removed: BTreeSet<BodyId>,
    /// Bodies that were driven or altered, and when.
    acted_on: Vec<(BodyId, Tick)>,
    /// Those of them on which the world acted after the snapshots of the tick.
    revised: BTreeSet<(BodyId, Tick)>,
}

impl Match {
    const MOST: usize = 50;

    fn new() -> Self {
        let mut this = Self {
            bodies: room(),
            next_player: 0,
            held: BTreeMap::new(),
            removed: BTreeSet::new(),
            acted_on: vec![],
            revised: BTreeSet::new(),
        };
        for number in 0..3i16 {
            this.act(&Deed::Join);
            let who = player(number as u16);
            for driver in [Driver::Player(who), Driver::Player(who), Driver::World, Driver::Nothing] {
                let cart = CartBody::at(f64::from(number) * 0.75 + this.bodies.count() as f64);
                this.bodies.spawn(driver, cart).unwrap();
            }
        }
        this
    }

    fn ids(&self, which: impl Fn(Driver) -> bool) -> Vec<BodyId> {
        self.bodies.records().filter(|(_, driver, _)| which(*driver)).map(|(id, ..)| id).collect()
    }

    fn act(&mut self, deed: &Deed) {
        let players: Vec<_> = self.bodies.players().collect();
        match deed {
            Deed::Join => {
                self.bodies.join(player(self.next_player));
                self.held.insert(player(self.next_player), 0);
                self.next_player += 1;
            }
            Deed::Leave(index) => {
                if players.len() > 1 {
                    let leaves = *index.get(&players);
                    self.removed.extend(self.bodies.owned(leaves));
                    self.held.remove(&leaves);
                    self.bodies.leave(leaves);
                }
            }
            Deed::Spawn(index, driver, x) => {
                let driver = match driver {
                    0 => Driver::Player(*index.get(&players)),
                    1 => Driver::World,
                    _ => Driver::Nothing,
                };
                if self.bodies.count() < Self::MOST {
                    let id = self.bodies.spawn(driver, CartBody::at(f64::from(*x) / 1024.0)).unwrap();
                    assert!(!self.removed.contains(&id), "an id is not used again");
                }
            }
            Deed::Remove(index) => {
                let ids = self.ids(|_| true);
                if !ids.is_empty() {
                    let id = *index.get(&ids);
                    self.bodies.remove(id).unwrap();
                    self.removed.insert(id);
                }
            }
            Deed::Drive(index, input) => {
                let ids = self.ids(|driver| driver == Driver::World);
                if !ids.is_empty() {
                    let id = *index.get(&ids);
                    self.bodies.drive(id, *input).unwrap();
                    self.acted_on.push((id, self.bodies.tick()));
                }
            }
            Deed::Alter(index, push) => {
                let ids = self.ids(|_| true);
                if !ids.is_empty() {
                    let id = *index.get(&ids);
                    let cart = *self.bodies.history(id).unwrap().latest();
                    let pushed = CartBody { x: cart.x + f64::from(*push) / 1024.0, ..cart };
                    self.bodies.alter(id, pushed, Causes::NONE).unwrap();
                    self.acted_on.push((id, self.bodies.tick()));
                }
            }
        }
    }

    fn tick(&mut self, told: &[(u16, TickInput<i8>)]) -> Tick {
        let held = &mut self.held;
        let inputs: BTreeMap<_, _> = held
            .iter_mut()
            .map(|(player, held)| {
                let told = told.iter().find(|(number, _)| *number == player.number() % 8);
                let input = told.map_or(TickInput::steady(*held), |(_, input)| *input);
                *held = input.last();
                (*player, input)
            })
            .collect();
        self.bodies.advance(|player| inputs[&player]);
        self.bodies.tick()
    }
}

/// The parts of the format that a match has used.
#[derive(Debug, Default)]
struct Used {
    modes: BTreeMap<Mode, usize>,
    incomplete: usize,
    driven: usize,
    met: usize,
}

/// Plays a match for three clients, of which the first has short datagrams. Each body that a client reads is the server's,
/// to the bit, in every tick.
fn play(happenings: &[Happening], max_bytes: usize) -> Used {
    let (mut this, mut used) = (Match::new(), Used::default());
    let mut clients = [max_bytes, 400, 1_200].map(|bytes| (bytes, View::default(), crowd()));
    for happening in happenings {
        let at = this.tick(&happening.told);
        happening.deeds.iter().for_each(|deed| this.act(deed));
        for (.., record) in this.bodies.records() {
            used.met += usize::from(record.course == Course::Met);
            used.driven += usize::from(record.held != record.input.last());
        }
        for (client, (max_bytes, view, crowd)) in clients.iter_mut().enumerate() {
            if client == 0 && happening.full {
                let mut buffer = [0; 2_000];
                let mut bits = BitWriter::new(&mut buffer);
                assert!(this.bodies.write_full(view, 16_000, &mut bits));
                let length = bits.finish().unwrap();
                read(crowd, at, &buffer[..length]);
                assert_true_except(&this.bodies, crowd, |id, tick| this.revised.contains(&(id, tick)));
                continue;
            }
            let bytes = write(&mut this.bodies, view, *max_bytes);
            *used.modes.entry(mode(&bytes)).or_default() += 1;
            if happening.lost[client] {
                continue;
            }
            read(crowd, at, &bytes);
            assert_true_except(&this.bodies, crowd, |id, tick| this.revised.contains(&(id, tick)));
            let complete = crowd.bodies().map(|(id, _)| id).eq(this.ids(|_| true));
            used.incomplete += usize::from(!complete);
            assert!(complete || client < 2, "the longest datagrams hold all of them");
            if complete {
                assert!(this.removed.iter().all(|id| crowd.is_gone(*id)));
            }
            if !happening.ack_lost[client] {
                assert!(view.acknowledge(at));
            }
        }
        this.acted_on.clear();
        happening.late.iter().for_each(|deed| this.act(deed));
        this.revised.extend(this.acted_on.drain(..));
    }
    used
}

fn read(crowd: &mut Crowd<Cart>, tick: Tick, bytes: &[u8]) {
    let mut bits = BitReader::new(bytes);
    assert_eq!(crowd.read(tick, &mut bits), Ok(()));
    assert_eq!(bits.finish(), Ok(()));
}

proptest! {
    /// Bodies of all drivers that block each other, spawns, removals, drives and alterations, lost snapshots, lost
    /// acknowledgements, and datagrams that are too short for all bodies.
    #[test]
    fn decoded_bodies_are_those_of_the_server_whatever_drives_them(
        happenings in prop::collection::vec(happening(), 1..120), max_bytes in 40usize..200,
    ) {
        play(&happenings, max_bytes);
    }
}

#[test]
fn random_matches_use_every_part_of_the_format() {
    let mut runner = TestRunner::deterministic();
    let tree = prop::collection::vec(happening(), 800).new_tree(&mut runner).unwrap();
    let used = play(&tree.current(), 70);
    let modes = [Mode::Full, Mode::Alone, Mode::Same, Mode::Changed];
    assert!(modes.iter().all(|mode| used.modes.get(mode).is_some_and(|count| *count > 5)), "{used:?}");
    assert!(used.incomplete > 40 && used.driven > 200 && used.met > 300, "{used:?}");
}

/// Writes a snapshot, which arrives and is acknowledged. Returns its bytes.
fn exchange(bodies: &mut Bodies<Cart>, view: &mut View, crowd: &mut Crowd<Cart>) -> Vec<u8> {
    let bytes = write(bodies, view, 2_000);
    read(crowd, bodies.tick(), &bytes);
    assert!(view.acknowledge(bodies.tick()));
    bytes
}

fn steady(bodies: &mut Bodies<Cart>) {
    bodies.advance(|_| TickInput::default());
}

#[test]
fn body_04_a_drive_is_in_the_snapshot_of_its_own_tick_on_every_base() {
    // Without a base, from the base on, and where the body has to be moved alone.
    for wanted in [Mode::Full, Mode::Same, Mode::Alone] {
        let (mut bodies, mut view, mut crowd) = (room(), View::default(), crowd());
        bodies.join(player(0));
        let driven = bodies.spawn(Driver::World, CartBody::at(0.0)).unwrap();
        let altered = bodies.spawn(Driver::Nothing, CartBody::at(50.0)).unwrap();
        if wanted != Mode::Full {
            steady(&mut bodies);
            exchange(&mut bodies, &mut view, &mut crowd);
        }
        for _ in 0..2 {
            steady(&mut bodies);
            if wanted == Mode::Alone {
                let cart = *bodies.history(altered).unwrap().latest();
                bodies.alter(altered, CartBody { x: cart.x + 3.0, ..cart }, Causes::NONE).unwrap();
            }
        }
        bodies.drive(driven, 5).unwrap();
        let at = bodies.tick();
        let bytes = exchange(&mut bodies, &mut view, &mut crowd);
        assert_eq!(mode(&bytes), wanted);
        assert_eq!(crowd.body(driven).unwrap().get(at).unwrap().held, 5, "{wanted:?}");
        assert_eq!(bodies.history(driven).unwrap().latest().x, 0.0, "it moves from the next tick on");

        // Then it goes on without a bit, and another drive by the same input is none.
        bodies.drive(driven, 5).unwrap();
        steady(&mut bodies);
        bodies.drive(driven, 5).unwrap();
        let bytes = exchange(&mut bodies, &mut view, &mut crowd);
        assert_eq!(bytes.len(), (9usize + 1 + 5 + 5 + 16).div_ceil(8), "no state and no change: {wanted:?}");
        assert_eq!(bodies.history(driven).unwrap().latest().x, 5.0 * 0.05);
        assert_true_except(&bodies, &crowd, |_, _| false);
    }
}

#[test]
fn body_04_a_drive_between_two_snapshots_is_sent_with_its_tick() {
    let (mut bodies, mut view, mut crowd) = (room(), View::default(), crowd());
    bodies.join(player(0));
    let ids = [0.0, 100.0, 200.0].map(|x| bodies.spawn(Driver::World, CartBody::at(x)).unwrap());
    steady(&mut bodies);
    exchange(&mut bodies, &mut view, &mut crowd);
    steady(&mut bodies);
    for (ticks, input) in [(2, 8), (1, -3), (3, 0)] {
        bodies.drive(ids[0], input).unwrap();
        bodies.drive(ids[2], -input).unwrap();
        (0..ticks).for_each(|_| steady(&mut bodies));
        // The last of several drives in one tick counts.
        bodies.drive(ids[1], input - 1).unwrap();
        bodies.drive(ids[1], input).unwrap();
    }
    let bytes = exchange(&mut bodies, &mut view, &mut crowd);
    assert_eq!(mode(&bytes), Mode::Same);
    assert_true_except(&bodies, &crowd, |_, _| false);
    let x = |id: BodyId| crowd.body(id).unwrap().latest().x;
    let moved = x(ids[2]) - 200.0;
    assert!((moved + (2.0 * 8.0 - 3.0) * 0.05).abs() < 0.01, "full input is 8 m/s: {moved} m");
}

/// The bits of each of some snapshots of a room with so many undriven bodies besides others. `drive` gives the input of all
/// players in the next tick.
fn lengths(undriven: usize, drive: impl Fn(u32, &mut Bodies<Cart>, &[BodyId]) -> i8) -> Vec<usize> {
    let (mut bodies, mut view, mut crowd) = (room(), View::default(), crowd());
    for number in 0..4u16 {
        bodies.join(player(number));
        let cart = CartBody::at(f64::from(number) * 100.0);
        bodies.spawn(Driver::Player(player(number)), cart).unwrap();
    }
    let driven: Vec<_> = (0..3)
        .map(|number| bodies.spawn(Driver::World, CartBody::at(-100.0 * f64::from(number + 1))).unwrap())
        .collect();
    for number in 0..undriven {
        bodies.spawn(Driver::Nothing, CartBody::at(2_000.0 + number as f64)).unwrap();
    }
    let (mut big, mut held) = (vec![0; 3_000], 0);
    (0..10u32)
        .map(|round| {
            bodies.advance(|_| TickInput::steady(held));
            held = drive(round, &mut bodies, &driven);
            let mut bits = BitWriter::new(&mut big);
            bodies.write(&mut view, 24_000, &mut bits);
            let count = bits.len_bits();
            let length = bits.finish().unwrap();
            read(&mut crowd, bodies.tick(), &big[..length]);
            assert!(view.acknowledge(bodies.tick()));
            assert_true_except(&bodies, &crowd, |_, _| false);
            assert_eq!(crowd.bodies().count(), 7 + undriven);
            count
        })
        .collect()
}

#[test]
fn body_05_undriven_bodies_cost_no_bits_once_they_are_known() {
    for undriven in [1, 100] {
        let quiet = |undriven| lengths(undriven, |_, _, _| 0);
        assert_eq!(quiet(undriven)[1..], quiet(0)[1..], "nothing changes");
        assert!(quiet(undriven)[0] > quiet(0)[0], "their birth costs bits");
        // A change has the same place on its line: they are not on it.
        let restless = |undriven| {
            lengths(undriven, |round, bodies, driven| {
                bodies.drive(driven[round as usize % 3], (round % 5) as i8).unwrap();
                (round % 7) as i8
            })
        };
        assert_eq!(restless(undriven)[1..], restless(0)[1..], "the inputs of others change");
        assert!(restless(0)[5] > quiet(0)[5] + 20);
    }
}

/// Runs a call that is to be refused, and asserts that it changes nothing.
fn refused<R>(bodies: &mut Bodies<Cart>, call: impl FnOnce(&mut Bodies<Cart>) -> R) -> R {
    let before = format!("{bodies:?}");
    let refused = call(bodies);
    assert_eq!(format!("{bodies:?}"), before, "nothing has changed");
    refused
}

#[test]
fn body_01_refused_calls_name_the_reason_and_change_nothing() {
    let limits = BodyLimits { max_bodies: 5, max_owned: 2 };
    let mut bodies = room().with_limits(BodyKey::new([3; 16]), limits);
    bodies.join(player(0));
    bodies.join(player(1));
    let cart = CartBody::at(1.0);
    let own = bodies.spawn(Driver::Player(player(0)), cart).unwrap();
    let undriven = bodies.spawn(Driver::Nothing, cart).unwrap();
    let driven = bodies.spawn(Driver::World, cart).unwrap();
    let gone = bodies.spawn(Driver::World, cart).unwrap();
    assert_eq!(bodies.remove(gone), Ok(cart));

    let nobody = Driver::Player(player(7));
    let unknown = refused(&mut bodies, |bodies| bodies.spawn(nobody, cart));
    assert_eq!(unknown, Err(SpawnRefused::NoSuchPlayer { player: player(7) }));
    let missing = Err(BodyRefused::NoSuchBody { id: gone });
    assert_eq!(refused(&mut bodies, |bodies| bodies.remove(gone)).map(drop), missing);
    assert_eq!(refused(&mut bodies, |bodies| bodies.drive(gone, 1)), missing);
    assert_eq!(refused(&mut bodies, |bodies| bodies.alter(gone, cart, Causes::NONE)), missing);
    for id in [own, undriven] {
        let refused = refused(&mut bodies, |bodies| bodies.drive(id, 1));
        assert_eq!(refused, Err(BodyRefused::NotDriven { id }));
    }
    assert_eq!(bodies.drive(driven, 1), Ok(()));

    // Limits hold just inside and not just outside. A body that is refused is not settled, and no escape is counted.
    let nan = CartBody { x: f64::NAN, ..cart };
    bodies.spawn(Driver::Player(player(0)), cart).unwrap();
    let many = refused(&mut bodies, |bodies| bodies.spawn(Driver::Player(player(0)), nan));
    assert_eq!(many, Err(SpawnRefused::TooManyOwned { player: player(0), max: 2 }));
    bodies.spawn(Driver::Player(player(1)), cart).unwrap();
    for driver in [Driver::World, Driver::Nothing, Driver::Player(player(1))] {
        let full = refused(&mut bodies, |bodies| bodies.spawn(driver, nan));
        assert_eq!(full, Err(SpawnRefused::RoomFull { max: 5 }));
    }
    assert_eq!(bodies.escapes().count, 0);

    // A place that is free again is taken, in the room and among the bodies of a player.
    bodies.remove(undriven).unwrap();
    bodies.spawn(Driver::Player(player(1)), cart).unwrap();
    bodies.remove(own).unwrap();
    assert_eq!(bodies.owned(player(0)).len(), 1);
    let another = bodies.spawn(Driver::Player(player(0)), cart).unwrap();
    assert_eq!((bodies.owned(player(0)).len(), bodies.owned(player(0))[1]), (2, another));
    bodies.leave(player(0));
    assert_eq!((bodies.count(), bodies.owned(player(0))), (3, &[][..]));
    let unknown = refused(&mut bodies, |bodies| bodies.spawn(Driver::Player(player(0)), cart));
    assert_eq!(unknown, Err(SpawnRefused::NoSuchPlayer { player: player(0) }));
}

#[test]
fn bodies_are_settled_at_their_spawn_and_escapes_are_counted_whatever_drives_them() {
    let mut bodies = room();
    bodies.join(player(0));
    let drivers = [Driver::Player(player(0)), Driver::World, Driver::Nothing];
    for (count, driver) in (1..).zip(drivers) {
        let id = bodies.spawn(driver, CartBody { x: f64::NAN, ..CartBody::at(0.0) }).unwrap();
        let escapes = bodies.escapes();
        let (escaped, tick, problem) = escapes.last.unwrap();
        assert_eq!((escapes.count, escaped, tick), (2 * count - 1, id, bodies.tick()));
        assert_eq!((problem.field, problem.problem), ("CartBody.x", FieldProblem::NotFinite));
        let settled = *bodies.history(id).unwrap().latest();
        assert!(settled.check().is_ok() && settled.x.is_finite());

        let id = bodies.spawn(driver, CartBody { speed: 1_001.0, ..CartBody::at(0.0) }).unwrap();
        let (escaped, _, problem) = bodies.escapes().last.unwrap();
        assert_eq!((escaped, problem.problem), (id, FieldProblem::OutOfRange));
        assert_eq!(bodies.history(id).unwrap().latest().speed, 1_000.0);
    }
    // Off the grid is no escape.
    let id = bodies.spawn(Driver::World, CartBody::at(3.3336)).unwrap();
    assert_eq!((bodies.history(id).unwrap().latest().x, bodies.escapes().count), (3_414.0 / 1_024.0, 6));
}

#[test]
fn ids_of_bodies_depend_on_the_key_and_on_their_origin_alone() {
    let spawn = |key: u8, others: u16| {
        let mut bodies = room().with_limits(BodyKey::new([key; 16]), BodyLimits::default());
        for number in 0..others {
            bodies.join(player(100 + number));
            bodies.spawn(Driver::Player(player(100 + number)), CartBody::at(9.0)).unwrap();
        }
        bodies.join(player(0));
        let own = [0, 1].map(|_| bodies.spawn(Driver::Player(player(0)), CartBody::at(0.0)).unwrap());
        let equal = [0, 1].map(|_| bodies.spawn(Driver::World, CartBody::at(7.0)).unwrap());
        assert_eq!(bodies.owned(player(0)), own);
        assert!(bodies.records().is_sorted_by(|one, other| one.0 < other.0));
        [own, equal].concat()
    };
    let ids = spawn(1, 0);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 4, "equal bodies have ids of their own");
    assert_eq!(spawn(1, 3), ids, "the ids do not depend on other players");
    assert!(spawn(2, 0).iter().all(|id| !ids.contains(id)), "another key gives other ids");
}

/// Bodies of which a base has more than a short datagram can list.
#[test]
fn a_snapshot_fits_however_many_bodies_its_base_has() {
    let (mut bodies, mut view, mut crowd) = (room(), View::default(), crowd());
    bodies.join(player(0));
    let ids: Vec<_> = (0..1_000)
        .map(|number| bodies.spawn(Driver::Nothing, CartBody::at(f64::from(number))).unwrap())
        .collect();
    steady(&mut bodies);
    let mut buffer = vec![0; 40_000];
    let mut bits = BitWriter::new(&mut buffer);
    assert!(bodies.write_full(&mut view, 320_000, &mut bits));
    let length = bits.finish().unwrap();
    read(&mut crowd, bodies.tick(), &buffer[..length]);
    let mut seen = BTreeSet::new();
    for _ in 0..60 {
        steady(&mut bodies);
        for id in &ids {
            let cart = *bodies.history(*id).unwrap().latest();
            bodies.alter(*id, CartBody { speed: (cart.speed + 1.0) % 100.0, ..cart }, Causes::NONE).unwrap();
        }
        let bytes = write(&mut bodies, &mut view, 60);
        read(&mut crowd, bodies.tick(), &bytes);
        assert!(view.acknowledge(bodies.tick()));
        assert_true_except(&bodies, &crowd, |_, _| false);
        seen.extend(crowd.bodies().map(|(id, _)| id));
    }
    assert!(seen.len() > 150, "{} of them had their turn", seen.len());
    assert!(u64::from(history_ticks(Cadence::default())) > 60);
}

#[test]
fn body_03_ids_are_not_used_again_and_the_same_match_has_the_same() {
    let play = |key: [u8; 16]| {
        let mut bodies = room().with_limits(BodyKey::new(key), BodyLimits::default());
        bodies.join(player(1));
        let mut ids = vec![];
        for _ in 0..3 {
            // Equal bodies in one tick, and others in the place of removed ones.
            for driver in [Driver::World, Driver::World, Driver::Nothing, Driver::Player(player(1))] {
                let id = bodies.spawn(driver, CartBody::at(2.0)).unwrap();
                bodies.remove(id).unwrap();
                ids.push(id);
                ids.push(bodies.spawn(driver, CartBody::at(2.0)).unwrap());
            }
            bodies.advance(|_| TickInput::default());
        }
        ids
    };
    let ids = play([1; 16]);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    assert_eq!(play([1; 16]), ids);
    assert!(play([2; 16]).iter().all(|id| !ids.contains(id)), "ids follow from the key");
}
