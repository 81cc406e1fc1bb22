//! Emitted bodies on the wire: guns and shells in one room, and clients over a network that loses snapshots.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cadence::{Cadence, SubTick};
use crate::cause::Causes;
use crate::game::{Game, MotionLimits, Neighbour, Step};
use crate::id::{BodyId, Driver, PlayerId};
use crate::input::TickInput;
use crate::model::{Pose2, Presses};
use crate::simulate::{TickSimulator, count_emitted, emission_before};
use crate::snapshot::{Bodies, BodyKey, BodyLimits, Crowd, View};
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter};
use halftrack_derive::{Body, Input};

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Trigger {
    #[range(-8..=8)]
    drive: i8,
    #[presses]
    fire: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Thing::Gun { x: 0.0, fired: 0 })]
enum Thing {
    Gun {
        #[grid(1/1024, -1_000..=1_000)]
        x: f64,
        #[presses]
        fired: u8,
    },
    Shell {
        #[grid(1/1024, -1_000..=1_000)]
        x: f64,
        #[micros(0..=1_000_000)]
        left: u32,
        splits: bool,
    },
}

impl Thing {
    const fn x(&self) -> f64 {
        match *self {
            Self::Gun { x, .. } | Self::Shell { x, .. } => x,
        }
    }
}

#[derive(Debug)]
struct Battery {
    /// Its guns have shells.
    loaded: bool,
}

impl Battery {
    const SPEED: f64 = 40.0;
    const LIFE: u32 = 230_000;
}

impl Game for Battery {
    type Input = Trigger;
    type Body = Thing;
    type Pose = Pose2;

    fn advance(&self, thing: &mut Thing, input: Trigger, step: &mut Step<'_, Self>) {
        match thing {
            Thing::Gun { x, fired } => {
                let shots = if self.loaded { Presses::since(*fired, input.fire) } else { 0 };
                for press in 0..shots {
                    let splits = press % 2 == 1;
                    let shell = Thing::Shell { x: *x, left: Self::LIFE, splits };
                    step.emit(shell, Duration::ZERO);
                }
                *fired = input.fire;
                *x += f64::from(input.drive) * step.seconds();
            }
            Thing::Shell { x, left, splits } => {
                let span = (*left).min(step.span().subsec_micros());
                let (from, to) = (*x, *x + Self::SPEED * f64::from(span) * 1e-6);
                let is_met = |other: &&crate::game::Neighbour<Self>| {
                    let gun = matches!(other.body, Thing::Gun { .. }) && step.parent() != Some(other.id);
                    gun && from < other.x() && other.x() <= to
                };
                let met = step.neighbours().iter().filter(is_met);
                if let Some(met) = met.min_by(|one, other| one.x().total_cmp(&other.x())) {
                    let way = (met.x() - from) / Self::SPEED;
                    *x = met.x();
                    step.touch(met.id);
                    step.remove(Duration::from_secs_f64(way));
                    return;
                }
                *x = to;
                *left -= span;
                if *left == 0 {
                    let at = Duration::from_micros(u64::from(span));
                    // At the very end of a step it would be the next step's, which there is none of.
                    if *splits && span < step.span().subsec_micros() {
                        for behind in [0.0, 3.0] {
                            let x = *x - behind;
                            step.emit(Thing::Shell { x, left: Self::LIFE, splits: false }, at);
                        }
                    }
                    step.remove(at);
                }
            }
        }
    }

    fn pose(&self, thing: &Thing) -> Option<Pose2> {
        Some(Pose2 { x: thing.x(), y: 0.0, heading: 0.0 })
    }

    fn limits(&self, _: &Thing) -> MotionLimits {
        MotionLimits { top_speed: 40.0, top_turn: 1.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4 }
    }

    fn fingerprint(&self) -> u64 {
        1
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

struct Viewer {
    view: View,
    crowd: Crowd<Battery>,
    max_bytes: usize,
    acked: Option<Tick>,
}

/// A room of guns that fire at random, and clients whose snapshots and acknowledgements are lost at random.
struct Match {
    bodies: Bodies<Battery>,
    viewers: Vec<Viewer>,
    held: BTreeMap<u16, Trigger>,
    dice: Dice,
    /// Births and ends as the room has them.
    lives: BTreeMap<BodyId, (Option<Tick>, Option<Tick>)>,
    /// Snapshots in which every body was joint.
    joint: u64,
    /// Bytes of the newest snapshot.
    bytes: usize,
}

fn room(limits: BodyLimits) -> Bodies<Battery> {
    Bodies::new(Arc::new(Battery { loaded: true }), Cadence::default(), Tick::new(1_000))
        .with_limits(BodyKey::new([3; 16]), limits)
}

impl Match {
    const GUNS: u16 = 4;

    fn new(seed: u64, max_bytes: &[usize], limits: BodyLimits) -> Self {
        Self::of(room(limits), seed, max_bytes)
    }

    fn of(mut bodies: Bodies<Battery>, seed: u64, max_bytes: &[usize]) -> Self {
        for number in 0..Self::GUNS {
            bodies.join(PlayerId::new(number));
            let x = f64::from(number) * 6.0;
            bodies.spawn(Driver::Player(PlayerId::new(number)), Thing::Gun { x, fired: 0 }).unwrap();
        }
        let viewer = |max_bytes: &usize| Viewer {
            view: View::default(),
            crowd: Crowd::new(Arc::clone(bodies.rules()), Cadence::default()),
            max_bytes: *max_bytes,
            acked: None,
        };
        let held = (0..Self::GUNS).map(|number| (number, Trigger::default())).collect();
        let viewers = max_bytes.iter().map(viewer).collect();
        Self { bodies, viewers, held, dice: Dice(seed), lives: BTreeMap::new(), joint: 0, bytes: 0 }
    }

    fn tick(&mut self, fires: u64) {
        let Self { bodies, held, dice, .. } = self;
        let mut told = BTreeMap::new();
        for (number, held) in held.iter_mut() {
            let mut input = TickInput::steady(*held);
            let mut at = 0;
            while dice.chance(fires) {
                at += 1 + dice.below(60);
                held.fire = Presses::next(held.fire);
                held.drive = i8::try_from(dice.below(17)).unwrap() - 8;
                let Some(moment) = u8::try_from(at).ok().and_then(SubTick::new) else { break };
                if input.change(moment, *held).is_err() {
                    break;
                }
            }
            *held = input.last();
            told.insert(*number, input);
        }
        bodies.advance(|player| told[&player.number()]);
        let tick = bodies.tick();
        for id in bodies.born() {
            self.lives.entry(*id).or_default().0 = Some(tick);
        }
        for ended in bodies.ended() {
            assert!(ended.at <= Cadence::default().interval());
            self.lives.entry(ended.id).or_default().1 = Some(tick);
        }
    }

    /// The world acts on shells now and then.
    fn interfere(&mut self) {
        let Self { bodies, dice, .. } = self;
        let shells: Vec<_> = bodies
            .records()
            .filter(|(.., record)| matches!(record.after, Thing::Shell { .. }))
            .map(|(id, _, record)| (id, record.after))
            .collect();
        for (id, shell) in shells {
            if dice.chance(40) {
                let Thing::Shell { x, left, splits } = shell else { unreachable!() };
                bodies.alter(id, Thing::Shell { x: x + 0.5, left, splits }, Causes::NONE).unwrap();
            } else if dice.chance(40) {
                bodies.remove(id).unwrap();
            }
        }
    }

    fn send(&mut self, lost_one_in: u64) {
        let Self { bodies, viewers, dice, .. } = self;
        for viewer in viewers {
            let mut buffer = [0; 2_000];
            let mut bits = BitWriter::new(&mut buffer);
            bodies.write(&mut viewer.view, viewer.max_bytes * 8, &mut bits);
            let length = bits.finish().unwrap();
            assert!(length <= viewer.max_bytes);
            self.bytes = length;
            if dice.chance(lost_one_in) {
                continue;
            }
            let bytes = &buffer[..length];
            let same = bytes[0] & 1 == 1 && bytes[0] >> 7 == 1 && bytes[1] & 1 == 1;
            self.joint += u64::from(same);
            viewer.crowd.read(bodies.tick(), &mut BitReader::new(bytes)).unwrap();
            let roster = |crowd: &Crowd<Battery>| crowd.bodies().map(|(id, _)| id).collect::<Vec<_>>();
            let truth: Vec<_> = bodies.records().map(|(id, ..)| id).collect();
            let told = roster(&viewer.crowd);
            assert!(told.iter().all(|id| truth.contains(id)), "a body that is gone");
            assert!(!same || told == truth, "every body is in a joint snapshot");
            for (id, history) in viewer.crowd.kept() {
                let departed = || bodies.departed().find(|(gone, _)| *gone == id).map(|(_, gone)| gone);
                let Some(truth) = bodies.history(id).or_else(departed) else { continue };
                assert_eq!((history.driver(), history.parent()), (truth.driver(), truth.parent()));
                for (tick, record) in history.after(Tick::default()) {
                    let Some(truth) = truth.get(tick) else { continue };
                    assert_eq!(record.after, truth.after, "{id} after {tick}");
                    assert_eq!(record.emitted, truth.emitted, "{id} after {tick}");
                }
                if let Some(born) = history.birth() {
                    let truth = truth.birth().unwrap();
                    assert_eq!((born.tick, born.at, born.body), (truth.tick, truth.at, truth.body), "{id}");
                }
                if history.ended().is_some() {
                    assert_eq!((history.newest(), history.ended()), (truth.newest(), truth.ended()), "{id}");
                }
            }
            viewer.acked = viewer.crowd.newest();
            if !dice.chance(lost_one_in) {
                assert!(viewer.view.acknowledge(bodies.tick()));
            }
        }
    }
}

#[test]
fn emit_03_emitted_bodies_are_the_same_for_every_client_over_a_lossy_network() {
    let (mut born, mut joint, mut sent_jointly) = (0, 0, 0);
    for seed in 0..30 {
        let mut game = Match::new(seed, &[1_200, 150, 60], BodyLimits::default());
        for _ in 0..300 {
            game.tick(6);
            game.interfere();
            game.send(4);
        }
        born += game.bodies.emissions().born;
        joint += game.joint;
        sent_jointly += game.bodies.emissions().sent_jointly;
    }
    assert!(born > 5_000 && joint > 3_000, "{born} shells, {joint} joint snapshots");
    assert!(sent_jointly > 100, "{sent_jointly} births of shells that the world altered");
}

#[test]
fn emit_03_births_and_ends_by_the_rules_take_no_bits_in_joint_sections() {
    // The same inputs, once with shells and once without.
    let rules = Arc::new(Battery { loaded: false });
    let empty = Bodies::new(rules, Cadence::default(), Tick::new(1_000))
        .with_limits(BodyKey::new([3; 16]), BodyLimits::default());
    let mut with = Match::new(7, &[1_200], BodyLimits::default());
    let mut without = Match::of(empty, 7, &[1_200]);
    let mut born_and_ended = 0;
    for tick in 0..400 {
        for game in [&mut with, &mut without] {
            game.tick(6);
            game.send(1_000_000);
        }
        let turned = !with.bodies.born().is_empty() && !with.bodies.ended().is_empty();
        born_and_ended += u32::from(turned);
        assert_eq!(with.bytes, without.bytes, "tick {tick}: {:?}", with.bodies.born());
    }
    assert!(with.joint >= 399 && born_and_ended > 100, "{} joint, {born_and_ended}", with.joint);
    assert_eq!(without.bodies.emissions().born, 0);
    assert_eq!(with.bodies.emissions().sent_jointly, 0);
}

#[test]
fn a_full_room_removes_newborn_bodies_and_clients_follow() {
    let limits = BodyLimits { max_bodies: 6, ..BodyLimits::default() };
    let mut game = Match::new(11, &[1_200, 200], limits);
    for _ in 0..300 {
        game.tick(4);
        game.send(3);
        assert!(game.bodies.count() <= 6);
    }
    let emissions = game.bodies.emissions();
    assert!(emissions.crowded_out > 100 && emissions.born > emissions.crowded_out, "{emissions:?}");
}

#[test]
fn emit_02_the_same_press_gives_the_same_id_in_whatever_tick_it_is_played() {
    let born = |late: u32| {
        let mut bodies = room(BodyLimits::default());
        bodies.join(PlayerId::new(1));
        bodies.spawn(Driver::Player(PlayerId::new(1)), Thing::Gun { x: 0.0, fired: 0 }).unwrap();
        let mut born = vec![];
        for tick in 0..6 {
            let fire = if tick >= late { 2 } else { 0 };
            bodies.advance(|_| TickInput::steady(Trigger { drive: 0, fire }));
            born.extend_from_slice(bodies.born());
        }
        born
    };
    assert_eq!(born(3).len(), 2);
    assert_eq!(born(0)[..2], born(3), "later on, one of the early shells has split");
}

#[test]
fn emit_02_the_count_of_emissions_wraps() {
    let gun = BodyId::new(5);
    let before = [Neighbour::new(gun, Driver::World, Thing::Gun { x: 0.0, fired: 0 })];
    let mut simulator = TickSimulator::new(Arc::new(Battery { loaded: true }), Cadence::default());
    let mut start = simulator.start(Tick::new(9), &before);
    let last = (1 << 20) - 1;
    let moved = start.tick(0, &TickInput::steady(Trigger { drive: 0, fire: 3 }), last).unwrap();
    let born: Vec<_> = (0..3).map_while(|nth| start.birth(nth)).map(|(birth, _)| birth.id).collect();
    assert_eq!(born, [last, 0, 1].map(|nth| gun.emitted(nth)));
    assert_eq!(count_emitted(last, moved.emitted), 2);
    assert_eq!([1, 2, 3, 4].map(|back| emission_before(2, back)), [1, 0, last, last - 1]);
}

/// Snapshots on a base of up to three seconds ago, with births and ends of bodies that no snapshot had.
#[test]
fn emit_03_births_and_ends_since_an_old_base_are_found_by_the_rules() {
    for seed in 0..8 {
        let mut game = Match::new(seed, &[1_200, 300], BodyLimits::default());
        for silence in [0, 5, 20, 45, 60, 70, 3] {
            for tick in 0..=silence {
                game.tick(4);
                // All is lost but the last.
                game.send(if tick < silence { 1 } else { 1_000_000 });
            }
        }
        assert!(game.bodies.emissions().born > 100 && game.joint > 0, "{} joint", game.joint);
    }
}

#[test]
fn a_shell_is_found_at_any_moment_of_its_birth_tick() {
    let mut bodies = room(BodyLimits::default());
    bodies.join(PlayerId::new(1));
    bodies.spawn(Driver::Player(PlayerId::new(1)), Thing::Gun { x: 0.0, fired: 0 }).unwrap();
    let mut input = TickInput::steady(Trigger::default());
    input.change(SubTick::new(128).unwrap(), Trigger { drive: 0, fire: 1 }).unwrap();
    bodies.advance(|_| input);
    let [id] = *bodies.born() else { panic!("one shell") };
    let tick = bodies.tick();
    assert_eq!(bodies.history(id).unwrap().latest().x(), 1.0, "25 ms at 40 m/s");
    let mut at = |millis: u64| bodies.body_at(id, tick, Duration::from_millis(millis)).map(|shell| shell.x());
    assert_eq!([at(24), at(25), at(50)], [None, Some(0.0), Some(1.0)]);
    assert!((at(35).unwrap() - 0.4).abs() < 1e-9);
}

/// Emits in its birth tick, without end, and after its step.
#[test]
fn emit_01_emissions_beyond_the_limits_are_not_made_and_counted() {
    struct Flood;
    impl Game for Flood {
        type Input = Trigger;
        type Body = Thing;
        type Pose = Pose2;

        fn advance(&self, thing: &mut Thing, _: Trigger, step: &mut Step<'_, Self>) {
            for _ in 0..20 {
                step.emit(*thing, Duration::ZERO);
            }
            step.emit(*thing, step.span());
        }

        fn pose(&self, thing: &Thing) -> Option<Pose2> {
            Battery { loaded: true }.pose(thing)
        }

        fn limits(&self, thing: &Thing) -> MotionLimits {
            Battery { loaded: true }.limits(thing)
        }

        fn fingerprint(&self) -> u64 {
            2
        }
    }
    let limits = BodyLimits { max_bodies: 50, ..BodyLimits::default() };
    let mut bodies = Bodies::new(Arc::new(Flood), Cadence::default(), Tick::new(5))
        .with_limits(BodyKey::new([3; 16]), limits);
    bodies.join(PlayerId::new(1));
    bodies.spawn(Driver::World, Thing::Gun { x: 0.0, fired: 0 }).unwrap();
    bodies.advance(|_| TickInput::default());
    assert_eq!(bodies.count(), 9);
    let emissions = bodies.emissions();
    assert_eq!((emissions.born, emissions.refused, emissions.overdue), (8, 12 + 8 * 20, 9));
    for _ in 0..5 {
        bodies.advance(|_| TickInput::default());
    }
    assert_eq!(bodies.count(), 50);
    // Without a limit of the room, the tick has one.
    let limits = BodyLimits { max_bodies: 100_000, ..BodyLimits::default() };
    let mut bodies = Bodies::new(Arc::new(Flood), Cadence::default(), Tick::new(5))
        .with_limits(BodyKey::new([3; 16]), limits);
    bodies.join(PlayerId::new(1));
    bodies.spawn(Driver::World, Thing::Gun { x: 0.0, fired: 0 }).unwrap();
    for _ in 0..5 {
        let (count, refused) = (bodies.count(), bodies.emissions().refused);
        bodies.advance(|_| TickInput::default());
        let born = bodies.count() - count;
        assert_eq!(born, (8 * count).min(1_024), "nine times as many in each tick");
        // Twelve of each body that was there, all 20 of each newborn, and those beyond the limit of the tick.
        let beyond = (8 * count).saturating_sub(1_024);
        assert_eq!(bodies.emissions().refused - refused, (12 * count + 20 * born + beyond) as u64);
    }
    assert!(bodies.count() > 2_000);
}
