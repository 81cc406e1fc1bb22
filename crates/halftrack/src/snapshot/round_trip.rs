//! What the server writes and what a client reads of it, over whole matches.

use core::ops::{Deref, DerefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::cadence::{Cadence, SubTick};
use crate::cart::{Cart, CartBody};
use crate::cause::Causes;
use crate::id::{BodyId, Driver, PlayerId};
use crate::input::TickInput;
use crate::input::message_tests::any_tick;
use crate::model::Body;
use crate::snapshot::{Bodies, BodyHistory, Course, Crowd, SnapshotError, TickRecord, View};
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter};

/// A room of carts in which every player owns one body, known by the player's number.
struct Carts {
    bodies: Bodies<Cart>,
    /// The body of each player that ever was there.
    ids: BTreeMap<u16, BodyId>,
    /// The input that a player begins with, until its first tick.
    wishes: BTreeMap<u16, i8>,
}

impl Carts {
    fn new(cadence: Cadence, tick: Tick) -> Self {
        let bodies = Bodies::new(Arc::new(Cart), cadence, tick);
        Self { bodies, ids: BTreeMap::new(), wishes: BTreeMap::new() }
    }

    /// A player comes with a cart, and drives it by `wish` from the next tick on.
    fn join(&mut self, number: u16, wish: i8, cart: CartBody) {
        self.bodies.join(PlayerId::new(number));
        self.spawn_for(number, wish, cart);
    }

    /// A player gets a cart, which is its only one.
    fn spawn_for(&mut self, number: u16, wish: i8, cart: CartBody) {
        let id = self.bodies.spawn(Driver::Player(PlayerId::new(number)), cart).unwrap();
        self.ids.insert(number, id);
        self.wishes.insert(number, wish);
    }

    fn leave(&mut self, number: u16) {
        self.bodies.leave(PlayerId::new(number));
    }

    /// The body of a player that is there, or was.
    fn id(&self, number: u16) -> BodyId {
        self.ids[&number]
    }

    /// The number of the player whose body has this place in the order of ids.
    fn at_place(&self, place: usize) -> u16 {
        self.records().nth(place).unwrap().1.player().unwrap().number()
    }

    /// The place of a player's body in the order of ids.
    fn place(&self, number: u16) -> usize {
        self.records().position(|(id, ..)| id == self.id(number)).unwrap()
    }

    fn body(&self, number: u16, tick: Tick) -> CartBody {
        self.history(self.id(number)).unwrap().get(tick).unwrap().after
    }
}

impl Deref for Carts {
    type Target = Bodies<Cart>;

    fn deref(&self) -> &Bodies<Cart> {
        &self.bodies
    }
}

impl DerefMut for Carts {
    fn deref_mut(&mut self) -> &mut Bodies<Cart> {
        &mut self.bodies
    }
}

fn bodies(count: u16) -> Carts {
    let mut carts = Carts::new(Cadence::default(), Tick::new(1_000));
    (0..count).for_each(|number| carts.join(number, 0, CartBody::at(f64::from(number))));
    carts
}

pub(super) fn crowd() -> Crowd<Cart> {
    Crowd::new(Arc::new(Cart), Cadence::default())
}

/// Every body goes on by the rules, told `input`, and pushed where `push` says so.
fn tick(carts: &mut Carts, mut told: impl FnMut(u16, i8) -> (TickInput<i8>, f64)) -> Tick {
    let held: BTreeMap<u16, (BodyId, i8)> = carts
        .records()
        .map(|(id, driver, record)| {
            let number = driver.player().unwrap().number();
            (number, (id, carts.wishes.get(&number).copied().unwrap_or(record.held)))
        })
        .collect();
    carts.wishes.clear();
    let told: BTreeMap<_, _> =
        held.iter().map(|(number, (id, held))| (*number, (*id, told(*number, *held)))).collect();
    carts.advance(|player| told[&player.number()].1.0);
    for (id, (_, push)) in told.into_values() {
        let mut after = *carts.history(id).unwrap().latest();
        after.x += push;
        after.settle();
        carts.alter(id, after, Causes::NONE).unwrap();
    }
    carts.tick()
}

pub(super) fn write(bodies: &mut Bodies<Cart>, view: &mut View, max_bytes: usize) -> Vec<u8> {
    let mut buffer = [0; 2_000];
    let mut bits = BitWriter::new(&mut buffer);
    bodies.write(view, max_bytes * 8, &mut bits);
    let length = bits.finish().unwrap();
    assert!(length <= max_bytes, "{length} bytes of {max_bytes}");
    buffer[..length].to_vec()
}

/// How a snapshot with six bits of age tells of everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    Full,
    Alone,
    /// Joint, of the same bodies.
    Same,
    /// Joint, though somebody came or went.
    Changed,
}

pub(super) fn mode(bytes: &[u8]) -> Mode {
    match [bytes[0] & 1, bytes[0] >> 7, bytes[1] & 1] {
        [0, ..] => Mode::Full,
        [_, 0, _] => Mode::Alone,
        [_, _, 0] => Mode::Changed,
        _ => Mode::Same,
    }
}

/// Every tick that the reader has of the bodies of the snapshot, and of those that were removed, is as it was, to the bit.
pub(super) fn assert_true(bodies: &Bodies<Cart>, crowd: &Crowd<Cart>) {
    assert_true_except(bodies, crowd, |_, _| false);
}

/// The same, but for bodies in ticks in which the world acted on them after their snapshots.
pub(super) fn assert_true_except(
    bodies: &Bodies<Cart>,
    crowd: &Crowd<Cart>,
    is_revised: impl Fn(BodyId, Tick) -> bool,
) {
    let assert_history = |id: BodyId, shown: &BodyHistory<Cart>, truth: &BodyHistory<Cart>| {
        for (tick, shown) in shown.after(Tick::new(0)).filter(|(tick, _)| !is_revised(id, *tick)) {
            if let Some(truth) = truth.get(tick) {
                assert_same(shown, truth, &format!("body {id} at {tick}"));
            }
        }
    };
    for (id, truth) in bodies.departed() {
        let Some((_, history)) = crowd.kept().find(|(kept, _)| *kept == id) else { continue };
        assert_history(id, history, truth);
    }
    for (id, history) in crowd.bodies() {
        let truth = bodies.history(id).unwrap();
        assert_eq!((history.newest(), history.driver()), (bodies.tick(), truth.driver()));
        assert_history(id, history, truth);
    }
}

fn assert_same(shown: &TickRecord<Cart>, truth: &TickRecord<Cart>, who: &str) {
    assert_eq!(shown.after.digest(), truth.after.digest(), "{who}");
    assert_eq!(shown.held, truth.held, "{who}");
    // Of a tick whose end was told as a state, the way there may not be known.
    if shown.course != Course::Altered {
        assert_eq!((shown.input, shown.course), (truth.input, truth.course), "{who}");
    }
}

#[test]
fn a_crowd_that_goes_on_costs_a_few_bytes() {
    let (mut bodies, mut view, mut crowd) = (bodies(100), View::default(), crowd());
    for _ in 0..3 {
        let at = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
        let bytes = write(&mut bodies, &mut view, 2_000);
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        assert!(view.acknowledge(at));
    }
    assert_eq!(crowd.bodies().count(), 100);
    let at = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
    let bytes = write(&mut bodies, &mut view, 2_000);
    assert_eq!(bytes.len(), 4, "a hundred carts that keep doing what they did");
    crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
    assert_true(&bodies, &crowd);
}

#[test]
fn what_cannot_be_built_on_is_told_and_changes_nothing() {
    let (mut bodies, mut view, mut one, mut other) = (bodies(2), View::default(), crowd(), crowd());
    let at = tick(&mut bodies, |_, _| (TickInput::steady(3), 0.0));
    let first = write(&mut bodies, &mut view, 500);
    one.read(at, &mut BitReader::new(&first)).unwrap();
    view.acknowledge(at);
    let later = tick(&mut bodies, |_, _| (TickInput::steady(3), 0.0));
    let second = write(&mut bodies, &mut view, 500);
    let missing = Err(SnapshotError::MissingBaseline { baseline: at });
    assert_eq!(other.read(later, &mut BitReader::new(&second)), missing);
    assert_eq!(other.newest(), None);
    one.read(later, &mut BitReader::new(&second)).unwrap();
    let stale = Err(SnapshotError::Stale { newest: later });
    assert_eq!(one.read(later, &mut BitReader::new(&second)), stale);
}

#[test]
fn other_rules_on_one_side_are_seen() {
    let (mut bodies, mut view) = (bodies(2), View::default());
    let slower = Cadence::new(core::time::Duration::from_millis(51)).unwrap();
    let mut crowd = Crowd::new(Arc::new(Cart), slower);
    let at = tick(&mut bodies, |_, _| (TickInput::steady(8), 0.0));
    crowd.read(at, &mut BitReader::new(&write(&mut bodies, &mut view, 500))).unwrap();
    view.acknowledge(at);
    let later = tick(&mut bodies, |_, _| (TickInput::steady(8), 0.0));
    let bytes = write(&mut bodies, &mut view, 500);
    assert_eq!(crowd.read(later, &mut BitReader::new(&bytes)), Err(SnapshotError::CheckFailed));
}

#[test]
fn what_does_not_fit_waits_its_turn() {
    let (mut bodies, mut view, mut crowd) = (bodies(40), View::default(), crowd());
    let mut seen = BTreeSet::new();
    for round in 0..12 {
        let at = tick(&mut bodies, |number, _| (TickInput::steady((number % 8) as i8), 0.0));
        let bytes = write(&mut bodies, &mut view, 200);
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        view.acknowledge(at);
        assert_true(&bodies, &crowd);
        seen.extend(crowd.bodies().map(|(id, _)| id));
        assert!(round > 0 || seen.len() < 40, "they do not all fit at once");
    }
    assert_eq!(seen.len(), 40, "but each has had its turn");
}

/// Everybody in full by a lane that loses nothing, and then one snapshot that has no room for all.
#[test]
fn a_snapshot_without_room_for_everybody_does_not_make_the_next_one_larger() {
    let (mut bodies, mut view, mut crowd) = (bodies(40), View::default(), crowd());
    let mut buffer = [0; 2_000];
    let mut bits = BitWriter::new(&mut buffer);
    assert!(!bodies.write_full(&mut view, 40 * 40, &mut bits) && bits.len_bits() == 0);
    assert!(bodies.write_full(&mut view, 16_000, &mut bits));
    let length = bits.finish().unwrap();
    crowd.read(bodies.tick(), &mut BitReader::new(&buffer[..length])).unwrap();
    assert_true(&bodies, &crowd);
    // Nothing has been acknowledged, and still everything builds on it.
    let drive = |bodies: &mut Carts| tick(bodies, |_, _| (TickInput::steady(8), 0.0));
    let mut counts = vec![];
    for max_bytes in [120, 60, 60, 120, 120] {
        let at = drive(&mut bodies);
        let bytes = write(&mut bodies, &mut view, max_bytes);
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        view.acknowledge(at);
        assert_true(&bodies, &crowd);
        counts.push((mode(&bytes), crowd.bodies().count() == 40));
    }
    assert_eq!(counts, [(Mode::Same, true); 5]);
    // Pushed about, they need more than that; but then all can be told from the last time that everybody was.
    let at = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.5));
    let bytes = write(&mut bodies, &mut view, 100);
    crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
    view.acknowledge(at);
    assert!(crowd.bodies().count() < 40);
    let at = drive(&mut bodies);
    let bytes = write(&mut bodies, &mut view, 800);
    crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
    assert_true(&bodies, &crowd);
    assert_eq!((mode(&bytes), crowd.bodies().count()), (Mode::Same, 40));
}

/// Plays `ticks` ticks in which nothing is lost; gives the bytes of each snapshot.
fn play(
    bodies: &mut Carts,
    ticks: u32,
    mut told: impl FnMut(u32, u16, i8) -> (TickInput<i8>, f64),
) -> (Crowd<Cart>, Vec<usize>) {
    let (mut view, mut crowd) = (View::default(), crowd());
    let lengths = (0..ticks).map(|round| {
        let at = tick(bodies, |number, held| told(round, number, held));
        let bytes = write(bodies, &mut view, 2_000);
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        view.acknowledge(at);
        assert_true(bodies, &crowd);
        bytes.len()
    });
    let lengths = lengths.collect();
    (crowd, lengths)
}

#[test]
fn carts_that_block_each_other_cost_nothing() {
    let mut bodies = bodies(10);
    let (_, lengths) = play(&mut bodies, 30, |_, number, _| {
        // The last ones stand, the others run into them.
        (TickInput::steady(if number < 7 { 8 } else { 0 }), 0.0)
    });
    let met = |(.., record): (BodyId, Driver, &TickRecord<Cart>)| record.course == Course::Met;
    assert!(bodies.records().any(met), "they do meet");
    assert!(lengths[2..].iter().all(|length| *length == 4), "{lengths:?}");
}

#[test]
fn what_the_world_alters_is_told_and_what_follows_from_it_is_not() {
    let mut bodies = bodies(5);
    let (_, lengths) = play(&mut bodies, 20, |round, number, _| {
        let push = if round == 10 && number == 1 { 0.5 } else { 0.0 };
        (TickInput::steady(2), push)
    });
    // A count of one instead of none, where, and the state: nobody else, though the others meet it elsewhere now. It moved
    // by little, and its wheel and speed are as they were or nearly.
    let state = 45;
    assert_eq!(lengths[10] * 8, (30usize + 2 + 3 + state).next_multiple_of(8));
    assert!(lengths[11..].iter().all(|length| *length == 4), "{lengths:?}");
}

#[test]
fn who_joins_is_told_in_full_and_who_leaves_by_place() {
    let (mut bodies, mut view, mut crowd) = (bodies(20), View::default(), crowd());
    let mut next = |bodies: &mut Carts| {
        let at = tick(bodies, |_, held| (TickInput::steady(held), 0.0));
        let bytes = write(bodies, &mut view, 2_000);
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        view.acknowledge(at);
        assert_true(bodies, &crowd);
        (bytes.len(), crowd.bodies().map(|(id, _)| id).collect::<Vec<_>>())
    };
    next(&mut bodies);
    assert_eq!(next(&mut bodies).0, 4);
    let leaves = bodies.at_place(3);
    bodies.leave(leaves);
    bodies.join(30, 0, CartBody::at(-20.0));
    let (length, ids) = next(&mut bodies);
    assert!(ids.contains(&bodies.id(30)) && !ids.contains(&bodies.id(leaves)) && ids.len() == 20);
    // Base, joint and not the same, which joined (3 bits that it is one, 65 for its id and driver) and when, which left and
    // when, no state, no change, check.
    assert_eq!(
        length * 8,
        (9usize + 3 + 65 + 1 + full(&CartBody::at(-20.0)).len() + 8 + 3 + 5 + 1 + 1 + 5 + 16)
            .next_multiple_of(8)
    );
    assert_eq!(next(&mut bodies).0, 4, "and then everybody is known");
}

/// Ten carts in a row, the last of which stand and stop the others; `leaves` and `joins` by round, and a client that has
/// what was told in round 2 and is told the next snapshot in round 8.
fn told_of_a_row(mut happens: impl FnMut(u32, &mut Carts)) -> (Carts, Crowd<Cart>, Vec<u8>) {
    let (mut bodies, mut view, mut crowd) = (bodies(10), View::default(), crowd());
    for round in 0..=8 {
        happens(round, &mut bodies);
        let at = tick(&mut bodies, |number, _| (TickInput::steady(if number < 7 { 8 } else { 0 }), 0.0));
        if round == 2 || round == 8 {
            let bytes = write(&mut bodies, &mut view, 1_000);
            crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
            view.acknowledge(at);
            assert_true(&bodies, &crowd);
            if round == 8 {
                return (bodies, crowd, bytes);
            }
        }
    }
    unreachable!("round 8 has come")
}

#[test]
fn who_came_and_went_between_two_snapshots_was_in_the_way() {
    let stood_in_the_way = |round, bodies: &mut Carts| match round {
        4 => bodies.join(20, 0, CartBody::at(5.25)),
        7 => bodies.leave(20),
        _ => {}
    };
    let (bodies, crowd, bytes) = told_of_a_row(stood_in_the_way);
    assert_eq!(mode(&bytes), Mode::Changed);
    assert_eq!(crowd.bodies().count(), 10);
    let (undisturbed, _, plain) = told_of_a_row(|_, _| ());
    let ends = |bodies: &Carts| bodies.records().map(|(.., record)| record.after).collect::<Vec<_>>();
    assert_ne!(ends(&bodies), ends(&undisturbed), "it did make a difference");
    // Three bits that it is one, 65 for its id and driver, three for when, it, and three and four for when it left.
    assert_eq!(mode(&plain), Mode::Same);
    assert!(bytes.len() <= plain.len() + (3 + 65 + 3 + 104 + 3 + 4 + 3 + 8usize).div_ceil(8));
    // Who was never there in a tick is not worth a bit.
    let (_, _, unseen) = told_of_a_row(|round, bodies| {
        if round == 4 {
            bodies.join(20, 0, CartBody::at(5.25));
            bodies.leave(20);
        }
    });
    assert_eq!(unseen, plain);
}

#[test]
fn who_left_was_in_the_way_until_then_and_who_joined_is_from_then_on() {
    for when in 3..=8 {
        let (_, crowd, bytes) = told_of_a_row(|round, bodies| {
            if round == when {
                bodies.leave(7);
                bodies.join(21, 0, CartBody::at(9.5));
            }
        });
        assert_eq!(mode(&bytes), Mode::Changed, "round {when}");
        let players = crowd.bodies().map(|(_, history)| history.driver().player().unwrap().number());
        assert_eq!(players.collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2, 3, 4, 5, 6, 8, 9, 21]));
    }
}

#[test]
fn a_body_in_the_past_is_where_it_was_among_those_who_have_left_since() {
    let mut bodies = bodies(3);
    let drive = |bodies: &mut Carts| {
        tick(bodies, |number, _| (TickInput::steady(if number == 0 { 8 } else { 0 }), 0.0))
    };
    let cadence = Cadence::default();
    let stopped = (0..5).map(|_| drive(&mut bodies)).last().unwrap();
    let truth = bodies.body(0, stopped);
    assert_eq!(truth.x, 1.0, "the next one is in its way");
    bodies.leave(1);
    let free = drive(&mut bodies);
    let id = bodies.id(0);
    let end = |bodies: &mut Bodies<Cart>, tick| {
        let mut body = bodies.body_at(id, tick, cadence.interval()).unwrap();
        body.settle();
        body
    };
    assert_eq!(end(&mut bodies, stopped), truth);
    let truth = bodies.body(0, free);
    assert_eq!(end(&mut bodies, free), truth);
}

/// Carts that push against each other come and go all the time, and a third of all snapshots and acknowledgements is lost.
#[test]
fn everybody_is_moved_together_across_joins_and_leaves() {
    let (mut bodies, mut dice) = (bodies(8), 7u32);
    let mut roll = |sides: u32| {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (dice >> 16) % sides
    };
    let mut clients = [(); 3].map(|()| (View::default(), crowd()));
    let (mut modes, mut met, mut next) = (BTreeMap::new(), 0, 30);
    for _ in 0..600 {
        if roll(8) == 0 && bodies.records().count() < 20 {
            bodies.join(next, 8, CartBody::at(f64::from(roll(30)) / 4.0));
            next += 1;
        }
        if roll(9) == 0 && bodies.records().count() > 4 {
            let leaves = bodies.at_place(roll(4) as usize);
            bodies.leave(leaves);
        }
        let at = tick(&mut bodies, |_, held| {
            let changes = roll(10) == 0;
            (TickInput::steady(if changes { roll(17) as i8 - 8 } else { held }), 0.0)
        });
        met += bodies.records().filter(|(.., record)| record.course == Course::Met).count();
        for (view, crowd) in &mut clients {
            let bytes = write(&mut bodies, view, 1_100);
            *modes.entry(mode(&bytes)).or_insert(0) += 1;
            if roll(3) > 0 {
                crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
                assert_true(&bodies, crowd);
                assert_eq!(crowd.bodies().count(), bodies.records().count());
                if roll(3) > 0 {
                    view.acknowledge(at);
                }
            }
        }
    }
    assert!(met > 300, "they do meet: {met}");
    assert!(modes[&Mode::Changed] > 300 && modes[&Mode::Same] > 300, "{modes:?}");
    assert_eq!(modes.get(&Mode::Alone), None, "{modes:?}");
}

#[test]
fn when_too_many_have_left_each_body_is_told_alone() {
    let (mut bodies, mut view, mut crowd) = (bodies(300), View::default(), crowd());
    let mut big = vec![0; 8_000];
    let mut tell = |bodies: &mut Carts| {
        let at = tick(bodies, |_, held| (TickInput::steady(held), 0.0));
        let mut bits = BitWriter::new(&mut big);
        bodies.write(&mut view, 64_000, &mut bits);
        let length = bits.finish().unwrap();
        crowd.read(at, &mut BitReader::new(&big[..length])).unwrap();
        view.acknowledge(at);
        assert_true(bodies, &crowd);
        mode(&big)
    };
    assert_eq!(tell(&mut bodies), Mode::Full);
    (0..10).for_each(|number| bodies.leave(number));
    assert_eq!(tell(&mut bodies), Mode::Changed);
    (10..280).for_each(|number| bodies.leave(number));
    assert_eq!(tell(&mut bodies), Mode::Alone);
    assert_eq!(tell(&mut bodies), Mode::Same);
}

#[test]
fn a_body_that_replaces_another_of_the_same_player_is_told_anew() {
    let (mut bodies, mut view, mut crowd) = (bodies(3), View::default(), crowd());
    for round in 0..12u8 {
        if round % 3 == 2 {
            // In a tick of which the client knows the one before.
            let before = bodies.id(1);
            bodies.remove(before).unwrap();
            bodies.spawn_for(1, 4, CartBody::at(50.0 + f64::from(round)));
            assert_ne!(bodies.id(1), before);
        }
        let at = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
        let bytes = write(&mut bodies, &mut view, 500);
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        view.acknowledge(at);
        assert_true(&bodies, &crowd);
        let shown = crowd.body(bodies.id(1)).unwrap().get(at).unwrap().after;
        assert_eq!((shown, crowd.bodies().count()), (bodies.body(1, at), 3));
    }
}

#[test]
fn clients_with_one_base_are_told_the_same_bits() {
    let mut bodies = bodies(6);
    let mut views = [View::default(), View::default(), View::default()];
    let at = tick(&mut bodies, |_, _| (TickInput::steady(1), 0.0));
    views.iter_mut().for_each(|view| drop(write(&mut bodies, view, 500)));
    views[..2].iter_mut().for_each(|view| assert!(view.acknowledge(at)));
    tick(&mut bodies, |number, _| (TickInput::steady(i8::from(number > 2)), 0.0));
    let [one, other, third] = views.each_mut().map(|view| write(&mut bodies, view, 500));
    assert_eq!(one, other);
    assert!(third.len() > 2 * one.len(), "it has nothing to build on");
    // A bit less room than that takes, and somebody waits.
    let mut crowd = crowd();
    crowd.read(bodies.tick(), &mut BitReader::new(&third)).unwrap();
    assert_eq!(crowd.bodies().count(), 6);
    let less = write(&mut bodies, &mut View::default(), third.len() - 1);
    let mut crowd = self::crowd();
    crowd.read(bodies.tick(), &mut BitReader::new(&less)).unwrap();
    assert!((1..6).contains(&crowd.bodies().count()));
}

#[test]
fn a_base_is_built_on_as_long_as_it_is_kept() {
    for micros in [50_000, 5_000] {
        let cadence = Cadence::new(core::time::Duration::from_micros(micros)).unwrap();
        let kept = crate::snapshot::history_ticks(cadence);
        let mut bodies = Carts::new(cadence, Tick::new(7));
        (0..4).for_each(|number| bodies.join(number, 3, CartBody::at(f64::from(number))));
        let (mut view, mut crowd) = (View::default(), Crowd::new(Arc::new(Cart), cadence));
        let at = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
        let bytes = write(&mut bodies, &mut view, 500);
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        view.acknowledge(at);
        for ago in 1..=kept {
            let now = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
            let bytes = write(&mut bodies, &mut view.clone(), 500);
            assert_eq!(bytes.len() > 10, ago >= kept, "{ago} ticks ago");
            let mut crowd = crowd.clone();
            crowd.read(now, &mut BitReader::new(&bytes)).unwrap();
            assert_true(&bodies, &crowd);
        }
    }
}

/// The layout, field by field, as another implementation would write it: value and bits.
fn fields(fields: &[(u32, u32)]) -> Vec<u8> {
    let mut buffer = [0; 100];
    let mut bits = BitWriter::new(&mut buffer);
    fields.iter().for_each(|(value, count)| bits.write(*value, *count));
    let length = bits.finish().unwrap();
    buffer[..length].to_vec()
}

fn check(bodies: &Bodies<Cart>) -> u32 {
    let sum = bodies.records().fold(0u64, |sum, (.., record)| sum.wrapping_add(record.after.digest()));
    (sum & 0xffff) as u32
}

/// A point of a line, as the gap from the point before it with so many low bits: ones for the rest of it, a zero, and
/// these.
fn gap(gap: u32, low_bits: u32) -> [(u32, u32); 2] {
    let ones = gap >> low_bits;
    [((1 << ones) - 1, ones + 1), (gap & ((1 << low_bits) - 1), low_bits)]
}

/// The id of a body, and its driver.
fn member(bodies: &Bodies<Cart>, id: BodyId) -> Vec<(u32, u32)> {
    let number = id.number();
    let halves = [(number as u32 & 0xff_ffff, 24), ((number >> 24) as u32, 24)];
    let driver = match bodies.history(id).unwrap().driver() {
        Driver::Player(player) => vec![(1, 1), (u32::from(player.number()), 16)],
        Driver::World => vec![(0, 1), (1, 1)],
        Driver::Nothing => vec![(0, 1), (0, 1)],
    };
    halves.into_iter().chain(driver).collect()
}

/// Three carts. The second of them in order of ids is told 5 at moment 77 of the first of two ticks since the base.
fn changed_since_the_base(mut also: impl FnMut(&mut Carts)) -> (Carts, View) {
    let (mut bodies, mut view) = (bodies(3), View::default());
    let second = bodies.at_place(1);
    let base = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
    write(&mut bodies, &mut view, 500);
    view.acknowledge(base);
    tick(&mut bodies, |number, held| {
        let mut input = TickInput::steady(held);
        if number == second {
            input.change(SubTick::new(77).unwrap(), 5).unwrap();
        }
        (input, 0.0)
    });
    also(&mut bodies);
    tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
    also(&mut bodies);
    (bodies, view)
}

#[test]
fn the_bits_of_a_joint_snapshot_are_these() {
    let (mut bodies, mut view) = changed_since_the_base(|_| ());
    let bits = [
        (1, 1), // base
        (1, 6), // two ticks ago
        (1, 1), // joint
        (1, 1), // no body came or went
        (0, 1), // no states; and no list of changes by the world, which drives none of them
        (0, 1), // a change: no ones before the zero,
        (1, 4), // 1 + 16 without its highest bit
        // The line has 3 * 2 * 256 points, the parameter is floor(log2(1535)) = 10; the point is (1 * 2 + 0) * 256 + 77.
        (0, 1),
        (589, 10),
        (5, 8),
        (check(&bodies), 16),
    ];
    assert_eq!(write(&mut bodies, &mut view, 500), fields(&bits));
}

/// The bits of a cart that is sent in full.
fn full(cart: &CartBody) -> Vec<(u32, u32)> {
    against(cart, &CartBody::blank())
}

/// The bits of a cart of which the reader has another state.
fn against(cart: &CartBody, known: &CartBody) -> Vec<(u32, u32)> {
    let mut buffer = [0; 32];
    let mut bits = BitWriter::new(&mut buffer);
    cart.write(known, &mut bits);
    let count = bits.len_bits();
    bits.finish().unwrap();
    let mut bits = BitReader::new(&buffer);
    (0..count).map(|_| (bits.read(1).unwrap(), 1)).collect()
}

#[test]
fn the_bits_of_a_joint_snapshot_with_another_roster_are_these() {
    let (mut bodies, mut view) = changed_since_the_base(|_| ());
    let (second, third) = (bodies.at_place(1), bodies.at_place(2));
    let joined = CartBody { speed: 2.0, ..CartBody::at(-3.0) };
    bodies.join(6, 0, joined);
    // The places of the line of all four.
    let [changed, left] = [second, third].map(|number| bodies.place(number) as u32);
    bodies.leave(third);
    let id = bodies.id(6);
    let bits = [
        (1, 1),    // base
        (1, 6),    // two ticks ago
        (1, 1),    // joint
        (0, 1),    // not the same
        (0b01, 2), // one joined: a one, a zero,
        (0, 1),    // 1 + 1 without its highest bit
    ]
    .into_iter()
    .chain(member(&bodies, id))
    // Two ticks after the base, of at most two; the body, its input, and no emissions.
    .chain([(2, 2)])
    .chain(full(&joined))
    .chain([(0, 8), (0, 1)])
    // One left, of a line of 4, so the parameter is 1; its last tick is two after the base.
    .chain([(0b01, 2), (0, 1)])
    .chain(gap(left, 1))
    .chain([(2, 2)])
    // No states; a change, as above. The line has 4 * 2 * 256 points, and the parameter stays.
    .chain([(0, 1), (0, 1), (1, 4)])
    .chain(gap(changed * 512 + 77, 10))
    .chain([(5, 8), (check(&bodies), 16)])
    .collect::<Vec<_>>();
    assert_eq!(write(&mut bodies, &mut view, 500), fields(&bits));
}

#[test]
fn the_bits_of_a_snapshot_of_bodies_alone_are_these() {
    // The first is put elsewhere in each of two ticks: moved together, that takes two states, and alone it takes one.
    let state = CartBody { speed: 3.0, ..CartBody::at(70.0) };
    let mut pushed = 60.0;
    let (mut bodies, mut view) = changed_since_the_base(|bodies| {
        pushed += 5.0;
        let id = bodies.id(bodies.at_place(0));
        bodies.alter(id, CartBody { x: pushed, ..state }, Causes::NONE).unwrap();
    });
    let first = bodies.id(bodies.at_place(0));
    let known = bodies.history(first).unwrap().get(Tick::new(1_001)).unwrap().after;
    let third = bodies.at_place(2);
    bodies.leave(third);
    let joined = CartBody { speed: 2.0, ..CartBody::at(-3.0) };
    bodies.join(6, 0, joined);
    let id = bodies.id(6);
    let bits = [
        (1, 1),    // base
        (1, 6),    // two ticks ago
        (0, 1),    // not joint
        (0b01, 2), // one is left out: a one, a zero,
        (0, 1),    // 1 + 1 without its highest bit;
        // of a line of 3, so the parameter is 1: a gap of two is a one, a zero, and a zero.
        (0b001, 3),
        (0b01, 2), // one state
        (0, 1),
        // The line has 3 * 2 points, so the parameter is 2; the point is 0 * 2 + 1.
        (0, 1),
        (1, 2),
    ]
    .into_iter()
    .chain(against(&state, &known))
    .chain([
        (1, 1), // its input is that after the base
        (1, 1), // and it has emitted no more
        (0, 1), // a change, as above
        (1, 4),
        (0, 1),
        (589, 10),
        (5, 8),
        (1, 1),    // these are all bodies of the room
        (0b01, 2), // another: as above
        (0, 1),
        (0, 1), // in full: its id and driver, the body, its input, and no emissions
    ])
    .chain(member(&bodies, id))
    .chain(full(&joined))
    .chain([(0, 8), (0, 1), (check(&bodies), 16)])
    .collect::<Vec<_>>();
    assert_eq!(write(&mut bodies, &mut view, 500), fields(&bits));
}

/// What happens in a tick of a random match.
#[derive(Clone, Debug)]
struct Happening {
    told: Vec<(u16, TickInput<i8>)>,
    pushed: Vec<(u16, i16)>,
    joins: bool,
    leaves: Option<u16>,
    /// By client.
    lost: [bool; 3],
    ack_lost: [bool; 3],
}

fn happening() -> impl Strategy<Value = Happening> {
    (
        prop::collection::vec((0u16..30, any_tick()), 0..6),
        prop::collection::vec((0u16..60, -800i16..800), 0..2),
        prop::bool::weighted(0.05),
        prop::option::weighted(0.05, 0u16..40),
        prop::array::uniform3(prop::bool::weighted(0.2)),
        prop::array::uniform3(prop::bool::weighted(0.3)),
    )
        .prop_map(|(told, pushed, joins, leaves, lost, ack_lost)| Happening {
            told,
            pushed,
            joins,
            leaves,
            lost,
            ack_lost,
        })
}

proptest! {
    /// Carts that block each other, joins, leaves, changes, pushes, lost snapshots, lost acknowledgements, and datagrams
    /// that are too small: every body that is told of is as it is, to the bit, in every tick.
    #[test]
    fn what_is_told_is_true(match_ in prop::collection::vec(happening(), 1..100), max_bytes in 100usize..1_100) {
        let mut bodies = bodies(8);
        let mut players: Vec<u16> = (0..8).collect();
        let mut clients = [max_bytes, 1_100, 1_100].map(|bytes| (bytes, View::default(), crowd()));
        let mut lowest_free = 30;
        for happening in match_ {
            if let Some(leaves) = happening.leaves.filter(|leaves| players.contains(leaves)) {
                players.retain(|player| *player != leaves);
                bodies.leave(leaves);
            }
            if happening.joins {
                // Numbers are not used again.
                players.push(lowest_free);
                bodies.join(lowest_free, 2, CartBody::at(f64::from(lowest_free % 8)));
                lowest_free += 1;
            }
            let at = tick(&mut bodies, |number, held| {
                let told = happening.told.iter().find(|told| told.0 == number % 30);
                let pushed = happening.pushed.iter().find(|pushed| pushed.0 == number % 30);
                let push = pushed.map_or(0.0, |(_, push)| f64::from(*push) / 1024.0);
                (told.map_or(TickInput::steady(held), |told| told.1), push)
            });
            for (client, (max_bytes, view, crowd)) in clients.iter_mut().enumerate() {
                let bytes = write(&mut bodies, view, *max_bytes);
                if happening.lost[client] {
                    continue;
                }
                let mut bits = BitReader::new(&bytes);
                prop_assert_eq!(crowd.read(at, &mut bits), Ok(()));
                prop_assert_eq!(bits.finish(), Ok(()));
                assert_true(&bodies, crowd);
                if !happening.ack_lost[client] {
                    prop_assert!(view.acknowledge(at));
                }
            }
        }
    }

    /// Any bits are a snapshot or an error, on any base, and one that is refused changes nothing.
    #[test]
    fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..300), flip in any::<prop::sample::Index>()) {
        let (mut bodies, mut view, mut crowd) = (bodies(5), View::default(), crowd());
        let at = tick(&mut bodies, |_, _| (TickInput::steady(3), 0.0));
        crowd.read(at, &mut BitReader::new(&write(&mut bodies, &mut view, 500))).unwrap();
        let _ = crowd.clone().read(at.next(), &mut BitReader::new(&bytes));
        // The same on a base that is there, of this tick or an earlier one: alone, and joint, where the bits begin with
        // whether the bodies are the same.
        for (joint, ago) in [(0, 0), (1, 0), (0, 5), (1, 5)] {
            let mut on_base = vec![0b0000_0001 | ago << 1 | joint << 7];
            on_base.extend(&bytes);
            let later = Tick::new(at.number() + 1 + u32::from(ago));
            let mut crowd = crowd.clone();
            if crowd.read(later, &mut BitReader::new(&on_base)).is_err() {
                prop_assert_eq!(crowd.newest(), Some(at));
            }
        }
        view.acknowledge(at);
        let later = tick(&mut bodies, |_, _| (TickInput::steady(5), 0.1));
        let mut mutated = write(&mut bodies, &mut view, 500);
        let flipped = flip.index(mutated.len());
        mutated[flipped] ^= 1 << (flipped % 8);
        if crowd.read(later, &mut BitReader::new(&mutated)).is_err() {
            prop_assert_eq!(crowd.newest(), Some(at));
            prop_assert!(crowd.bodies().all(|(_, history)| history.newest() == at));
        }
    }

    /// Whatever becomes of the bits of a match on their way, they are a snapshot or an error.
    #[test]
    fn mutated_snapshots_are_read_or_refused(
        match_ in prop::collection::vec(happening(), 1..30),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let (mut bodies, mut view, mut crowd) = (bodies(8), View::default(), crowd());
        for (round, happening) in (0u16..).zip(match_) {
            if happening.joins {
                bodies.join(30 + round, 2, CartBody::at(f64::from(round % 8)));
            }
            happening.leaves.iter().for_each(|leaves| bodies.leave(*leaves));
            let tick = tick(&mut bodies, |number, held| {
                let told = happening.told.iter().find(|told| told.0 == number % 30);
                let pushed = happening.pushed.iter().any(|pushed| pushed.0 == number % 30);
                (told.map_or(TickInput::steady(held), |told| told.1), if pushed { 0.25 } else { 0.0 })
            });
            let bytes = write(&mut bodies, &mut view, 300);
            let mut mutated = bytes.clone();
            let at = at.index(mutated.len());
            mutated[at] ^= flip;
            let _ = crowd.clone().read(tick, &mut BitReader::new(&mutated));
            let _ = crowd.clone().read(tick, &mut BitReader::new(&mutated[..at]));
            if !happening.lost[0] {
                prop_assert_eq!(crowd.read(tick, &mut BitReader::new(&bytes)), Ok(()));
            }
            if !happening.lost[0] && !happening.ack_lost[0] {
                view.acknowledge(tick);
            }
        }
    }
}
