//! `check_game` passes good games, and finds nine deliberate mistakes with the words that each gives. `--nocapture` prints
//! them.
#![allow(clippy::disallowed_types, reason = "a HashMap in rules is one of the mistakes")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::ball_line::{
    Ball, DIGEST_WITHOUT_HP, EQUAL_WITHOUT_HP, FORGETS_HP, Line, Rules, SHORT, SHRINKS, SpoiltBody,
    TOO_FEW_BITS, Wrong, assert_says, check, message,
};
use halftrack::cart::{Cart, CartBody};
use halftrack::{
    Body, Cadence, CheckPlan, Game, Input, MotionLimits, Offset, Pose, Pose3, Reach, Step, check_game,
};

#[test]
fn rules_without_mistakes_pass() {
    let report = check(|| Wrong::<'-'>).unwrap();
    assert_eq!((report.ticks, report.moves, report.order_dependent), (600, 1_800, 0));
    assert!(report.contacts > 20 && report.rebuilds > 10_000, "{report:?}");
    assert_eq!(report.constant_fields, []);
    assert_eq!(check(|| SpoiltBody::<'-'>).unwrap(), report);
}

#[test]
fn the_cart_passes_at_every_cadence() {
    let bodies = vec![CartBody::at(0.0), CartBody::at(1.5), CartBody { speed: 3.0, ..CartBody::at(4.0) }];
    for micros in [5_000, 16_667, 50_000, 200_000] {
        let plan = CheckPlan {
            cadence: Cadence::new(Duration::from_micros(micros)).unwrap(),
            ticks: 400,
            ..CheckPlan::new(bodies.clone(), vec![-8, -1, 0, 5, 8])
        };
        let report = check_game(|| Cart, &plan).unwrap();
        assert!(report.contacts > 0 && report.rebuilds > 100, "{micros}: {report:?}");
    }
}

#[test]
fn mistake_1_a_counter_in_advance() {
    #[derive(Default)]
    struct Counts(AtomicU32);
    impl Line for Counts {
        type Body = Ball;
        fn advance(&self, ball: &mut Ball, _: &Step<'_, Rules<Self>>) {
            ball.x += f64::from(self.0.fetch_add(1, Ordering::Relaxed) % 8) / 1024.0;
        }
    }
    let message = message("1. a counter in advance", Counts::default);
    let parts =
        ["tick 1, body 2: advance gave another result when it was called again (x: ", "must not keep state"];
    assert_says(&message, &parts);
}

#[test]
fn mistake_2_a_field_that_the_codec_forgets() {
    let message = message("2. a field that the codec forgets", || SpoiltBody::<FORGETS_HP>);
    let parts = [
        "tick 0, body 0: written against Body::blank() and read back, it is another one (hp: 100 and 0)",
        "write must write every field",
    ];
    assert_says(&message, &parts);
}

#[test]
fn mistake_3_a_range_that_is_too_narrow() {
    let narrow = message("3. a range that is too narrow", || Wrong::<'r'>);
    let parts = ["tick 41, body 0: Ball.x is outside its range (101 became 100)", "declare a wider range"];
    assert_says(&narrow, &parts);
    let few = message("3b. too few bits in the codec", || SpoiltBody::<TOO_FEW_BITS>);
    assert_says(&few, &["tick 0, body 0: written against", "(x: -3 and ", "as many bits as its range needs"]);
}

#[test]
fn mistake_4_a_settle_that_is_not_idempotent() {
    let message = message("4. a settle that is not idempotent", || SpoiltBody::<SHRINKS>);
    let parts =
        ["tick 0, body 0: settle changed a value that was settled already (x: -2.625 and ", "idempotent"];
    assert_says(&message, &parts);
}

#[test]
fn mistake_5_a_digest_that_leaves_a_field_out() {
    let digest = message("5. a digest that leaves a field out", || SpoiltBody::<DIGEST_WITHOUT_HP>);
    assert_says(
        &digest,
        &["tick 0, body 0: digest does not see that hp differs (100 and 90)", "Hash every field"],
    );
    let equality = message("5b. == that leaves a field out", || SpoiltBody::<EQUAL_WITHOUT_HP>);
    assert_says(
        &equality,
        &["tick 0, body 0: == does not see that hp differs (100 and 90)", "Derive PartialEq"],
    );
}

#[test]
fn mistake_6_a_reach_that_is_too_small() {
    let message = message("6. a reach that is too small", || Wrong::<'e'>);
    let parts = [
        ", body ",
        "among its neighbours within reach it ends elsewhere",
        " is out of its reach and touches it",
    ];
    assert_says(&message, &parts);
}

#[test]
fn mistake_7_rules_that_depend_on_hash_order() {
    struct Ordered(HashMap<u32, u32>);
    impl Line for Ordered {
        type Body = Ball;
        fn advance(&self, ball: &mut Ball, _: &Step<'_, Rules<Self>>) {
            // Two orders give the same number once in 16,384 times.
            let number = self.0.keys().fold(0, |number, key| (number * 31 + key) % 16_384);
            ball.x += f64::from(number) / 1024.0;
        }
    }
    let build = || Ordered((0..64).map(|key| (key, key)).collect());
    let message = message("7. rules that depend on HashMap order", build);
    let parts = [
        "tick 1, body 0: advance gave another result with rules that were built a second time (x: ",
        "HashMap",
    ];
    assert_says(&message, &parts);
}

#[test]
fn mistake_8_motion_faster_than_limits() {
    let message = message("8. motion faster than limits", || Wrong::<'v'>);
    let parts =
        [", body ", "it moved by itself at ", " m/s, and limits allows 5.000", "Correct MotionLimits"];
    assert_says(&message, &parts);
}

#[test]
fn mistake_9_max_bits_that_are_too_few() {
    let message = message("9. MAX_BITS that are too few", || SpoiltBody::<SHORT>);
    let parts = ["tick 0, body ", "it takes ", " bits, and MAX_BITS is 20. Raise MAX_BITS"];
    assert_says(&message, &parts);
}

/// Drones in space: they fly, turn, and stop each other.
struct Drones;

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Stick {
    #[grid(1/8, -1..=1)]
    push: [f32; 3],
    #[grid(1/8, -1..=1)]
    yaw: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Drone {
    #[grid(1/512, -64..=64)]
    position: [f64; 3],
    #[turns(1/4096)]
    yaw: f64,
    mode: Mode,
    best: Option<Height>,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Height {
    #[grid(1/16, -64..=64)]
    metres: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
enum Mode {
    Landed,
    Flying {
        #[micros(0..=60_000_000)]
        since: Duration,
    },
}

impl Drones {
    const SPEED: f64 = 6.0;
    const RADIUS: f64 = 0.5;
}

impl Game for Drones {
    type Input = Stick;
    type Body = Drone;
    type Pose = Pose3;

    fn advance(&self, drone: &mut Drone, stick: Stick, step: &mut Step<'_, Self>) {
        let way = Self::SPEED / 2.0 * step.seconds();
        let target: [f64; 3] = std::array::from_fn(|axis| {
            (drone.position[axis] + f64::from(stick.push[axis]) * way).clamp(-4.0, 4.0)
        });
        drone.yaw += f64::from(stick.yaw) * 0.25 * step.seconds();
        let distance = |from: &[f64; 3], to: &[f64; 3]| {
            from.iter().zip(to).map(|(from, to)| (from - to) * (from - to)).sum::<f64>()
        };
        let blocks = |other: &Drone| {
            let touching = 4.0 * Self::RADIUS * Self::RADIUS;
            let after = distance(&target, &other.position);
            after < touching && after < distance(&drone.position, &other.position)
        };
        if let Some(other) = step.neighbours().iter().find(|other| blocks(other)) {
            step.touch(other.id);
        } else {
            drone.position = target;
        }
        drone.mode = match drone.mode {
            _ if drone.position[2] <= 0.0 => Mode::Landed,
            Mode::Landed => Mode::Flying { since: Duration::ZERO },
            Mode::Flying { since } => {
                Mode::Flying { since: (since + step.span()).min(Duration::from_secs(60)) }
            }
        };
        if drone.position[2] > 1.0 {
            drone.best = Some(Height { metres: drone.position[2] as f32 });
        }
    }

    fn pose(&self, drone: &Drone) -> Option<Pose3> {
        let turned = Offset { rotation: [0.0, 0.0, drone.yaw * std::f64::consts::TAU], ..Offset::ZERO };
        Some(Pose3 { position: drone.position, ..Pose3::default() }.displaced(&turned))
    }

    fn limits(&self, _: &Drone) -> MotionLimits {
        MotionLimits { top_speed: Self::SPEED, top_turn: 1.6, grid_distance: 1.0 / 256.0, grid_angle: 2e-3 }
    }

    fn fingerprint(&self) -> u64 {
        3
    }

    fn reach(&self, drone: &Drone, span: Duration) -> Option<Reach> {
        Some(Reach::space(drone.position, Self::RADIUS, Self::SPEED * span.as_secs_f64()))
    }
}

#[test]
fn a_game_in_space_passes_with_enough_bodies_for_the_sweep() {
    let at = |number: u32| {
        let place = |count: u32| f64::from(number / count % 3) * 2.5 - 2.5;
        Drone { position: [place(1), place(3), place(9)], ..Drone::blank() }
    };
    let sticks = [[1.0, 0.0, 0.0], [-1.0, 0.5, 0.25], [0.0, -1.0, 1.0], [0.0, 1.0, -1.0]];
    let inputs = sticks.map(|push| Stick { push, yaw: push[0] }).to_vec();
    let plan = CheckPlan { ticks: 300, ..CheckPlan::new((0..20).map(at).collect(), inputs) };
    let report = check_game(|| Drones, &plan).unwrap();
    println!("{report:?}");
    assert!(report.contacts > 100 && report.constant_fields.is_empty(), "{report:?}");
    assert!(report.longest_body_bits <= Drone::MAX_BITS);
}
