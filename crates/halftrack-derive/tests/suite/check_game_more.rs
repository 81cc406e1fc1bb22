//! `check_game` finds mistakes beyond the nine of `check_game.rs`: in values, poses, inputs and plans.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::ball_line::{
    Ball, DIGEST_VARIES, IMAGE_READS_OTHER, IMAGE_WITHOUT_HP, KEEPS_NAN, Line, READS_MORE, REFUSES, Rules,
    Spoilt, SpoiltBody, WRITES_MORE, Wrong, assert_says, message, plan,
};
use halftrack::model::Schema;
use halftrack::serde::{Deserialize, Serialize};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{
    Body, CheckPlan, ConfigError, Game, GameMistake, Input, MotionLimits, Offset, Pose, Pose2, Reach,
    Settling, Step, check_game,
};

/// Remembers its last call, and forgets that a step has a length.
#[derive(Default)]
struct Caches(Mutex<Option<(u32, Duration, u64, Ball)>>);

impl Line for Caches {
    type Body = Ball;

    fn advance(&self, ball: &mut Ball, step: &Step<'_, Rules<Self>>) {
        let start = step.own_at_start().digest();
        let key = (step.tick().number(), step.into_tick(), start);
        let mut last = self.0.lock().unwrap();
        match *last {
            Some((tick, into, from, result)) if (tick, into, from) == key => *ball = result,
            _ => *last = Some((key.0, key.1, key.2, *ball)),
        }
    }
}

#[test]
fn a_cache_that_forgets_the_length_of_a_step_is_found_by_replay() {
    let lonely = CheckPlan::new(vec![Ball { x: 0.0, hp: 50 }], vec![-8, 0, 8]);
    let mistake = check_game(|| Rules(Caches::default()), &lonely).unwrap_err();
    println!("{mistake}");
    assert!(matches!(mistake, GameMistake::ReplayDiffers { .. }), "{mistake}");
    assert_says(&mistake.to_string(), &["body 0: prediction replayed from the state after tick ", "(x: "]);
}

#[test]
fn values_that_cannot_be_used_are_found() {
    let nan = message("NaN in advance", || Wrong::<'n'>);
    assert_says(
        &nan,
        &["tick 41, body 0: Ball.x is NaN or infinite (NaN became -100)", "a division by zero"],
    );
    let touch = message("step.touch() not called", || Wrong::<'t'>);
    assert_says(&touch, &["another body changed its motion (", "did not call step.touch()"]);
    let pose = message("a pose that cannot be drawn", || Wrong::<'p'>);
    assert_says(&pose, &["tick 1, body 0: pose has inf in y"]);
    let limits = message("limits that are no numbers", || Wrong::<'l'>);
    assert_says(&limits, &["tick 1, body 0: limits cannot be used (correction: "]);
    let reads = message("a read that reads more", || SpoiltBody::<READS_MORE>);
    assert_says(&reads, &["cannot be read back: ", "read must mirror write"]);
    let writes = message("a write that writes more", || SpoiltBody::<WRITES_MORE>);
    assert_says(&writes, &["cannot be read back: the message goes on after its end"]);
    let refuses = message("a check that refuses good bodies", || SpoiltBody::<REFUSES>);
    assert_says(&refuses, &["Body::blank(): check refused a settled body (Ball.x is outside its range)"]);
    let body = Spoilt::<KEEPS_NAN>(Ball { x: -0.0, hp: 1 });
    let keeps = check_game(|| Rules(SpoiltBody), &CheckPlan::new(vec![body], vec![0])).unwrap_err();
    assert_says(&keeps.to_string(), &["tick 0, body 0: settle left -0 in x"]);
}

#[test]
fn fingerprints_of_two_builds_must_be_equal() {
    struct Numbered(u32);
    impl Line for Numbered {
        type Body = Ball;
        fn fingerprint(&self) -> u64 {
            self.0.into()
        }
    }
    let instances = AtomicU32::new(7);
    let message =
        message("a fingerprint of the instance", || Numbered(instances.fetch_add(1, Ordering::Relaxed)));
    assert_says(&message, &["fingerprint gave 0x7, then 0x8", "no client could join"]);
}

#[test]
fn plans_that_play_nothing_are_refused() {
    let empty = [
        ("bodies", CheckPlan { bodies: vec![], ..plan::<Wrong<'-'>>() }),
        ("inputs", CheckPlan { inputs: vec![], ..plan() }),
        ("ticks", CheckPlan { ticks: 0, ..plan() }),
    ];
    for (missing, plan) in empty {
        let found = check_game(|| Rules(Wrong), &plan);
        assert_eq!(found, Err(GameMistake::EmptyPlan { what: missing }));
    }
}

#[test]
fn fields_that_never_change_are_listed() {
    let same = |x| Ball { x, hp: 100 };
    let far = CheckPlan::new(vec![same(-15.0), same(15.0)], vec![-1, 0, 1]);
    let report = check_game(|| Rules(Wrong::<'-'>), &CheckPlan { ticks: 50, ..far }).unwrap();
    let constant: Vec<_> = report.constant_fields.iter().map(ToString::to_string).collect();
    assert_eq!((constant, report.contacts), (vec!["hp".to_owned()], 0));
}

#[test]
fn a_body_that_no_snapshot_can_hold_is_refused() {
    #[derive(Clone, Copy, Debug, PartialEq, Body)]
    struct Train {
        #[range(0..=4_000_000_000)]
        cars: [u32; 200],
    }
    struct Trains;
    impl Game for Trains {
        type Input = ();
        type Body = Train;
        type Pose = Pose2;
        fn advance(&self, _: &mut Train, (): (), _: &mut Step<'_, Self>) {}
        fn pose(&self, _: &Train) -> Option<Pose2> {
            Some(Pose2::default())
        }
        fn limits(&self, _: &Train) -> MotionLimits {
            MotionLimits { top_speed: 1.0, top_turn: 1.0, grid_distance: 0.001, grid_angle: 0.001 }
        }
        fn fingerprint(&self) -> u64 {
            0
        }
    }
    let found = check_game(|| Trains, &CheckPlan::new(vec![Train::blank()], vec![()]));
    assert!(matches!(found, Err(GameMistake::Config(ConfigError::BodyTooLong { .. }))), "{found:?}");
}

/// All ends list neighbours in the same order, so this is no mistake.
#[test]
fn rules_that_depend_on_the_order_of_neighbours_are_counted() {
    struct First;
    impl Line for First {
        type Body = Ball;
        fn advance(&self, ball: &mut Ball, step: &Step<'_, Rules<Self>>) {
            // Only where a neighbour has stopped the ball: then it is marked as touched.
            if let [first, _, ..] = step.neighbours()
                && ball.hp < step.own_at_start().hp
            {
                ball.hp = if first.x > 0.0 { 50 } else { 60 };
            }
        }
        /// All bodies, since each may be the first.
        fn extent(&self) -> f64 {
            100.0
        }
    }
    let report = check_game(|| Rules(First), &plan()).unwrap();
    assert!(report.order_dependent > 0, "{report:?}");
}

#[test]
fn state_that_only_calls_for_other_bodies_change_is_found() {
    /// Two calls in a row agree: it remembers the body before the last one.
    #[derive(Default)]
    struct Remembers(Mutex<(u64, f64)>);
    impl Line for Remembers {
        type Body = Ball;
        fn advance(&self, ball: &mut Ball, step: &Step<'_, Rules<Self>>) {
            let mut last = self.0.lock().unwrap();
            let own = step.own_at_start().digest();
            if last.0 != own {
                *last = (own, step.own_at_start().x - last.1);
            }
            ball.x += last.1.clamp(-1.0, 1.0) * step.seconds();
        }
    }
    let message = message("state of the body before", Remembers::default);
    assert_says(&message, &["tick 1, body ", "advance gave another result when it was called again (x: "]);
}

/// A pose that creeps when it is displaced, even by nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "halftrack::serde")]
struct OddPose {
    x: f64,
    creep: f64,
}

impl Pose for OddPose {
    fn offset_from(&self, other: &Self) -> Offset {
        Offset { position: [self.x - other.x, 0.0, 0.0], ..Offset::ZERO }
    }

    fn displaced(&self, offset: &Offset) -> Self {
        Self { x: self.x + offset.position[0] + self.creep, ..*self }
    }
}

/// An input whose codec, if spoilt, loses the sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "halftrack::serde")]
struct Push<const SPOILT: bool>(i8);

impl<const SPOILT: bool> Input for Push<SPOILT> {
    const SCHEMA: u64 = Schema::new("push").finish();
    const MAX_BITS: usize = 5;

    fn settle(&mut self) -> Settling {
        Settling::CLEAN
    }

    fn released(self) -> Self {
        Self(0)
    }

    fn write(&self, bits: &mut BitWriter<'_>) {
        bits.write_signed(self.0.into(), 5);
    }

    fn read(bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        let push = bits.read_signed(5)? as i8;
        Ok(Self(if SPOILT { push.abs() } else { push }))
    }
}

/// A game with one odd function, by name. Each build has another number.
struct Odd<const SPOILT_INPUT: bool>(&'static str, u32);

impl<const SPOILT_INPUT: bool> Odd<SPOILT_INPUT> {
    fn odd(&self, function: &str) -> u32 {
        if self.0 == function { self.1 } else { 0 }
    }
}

impl<const SPOILT_INPUT: bool> Game for Odd<SPOILT_INPUT> {
    type Input = Push<SPOILT_INPUT>;
    type Body = Ball;
    type Pose = OddPose;

    fn advance(&self, ball: &mut Ball, input: Self::Input, step: &mut Step<'_, Self>) {
        ball.x = (ball.x + f64::from(input.0) * step.seconds()).clamp(-20.0, 20.0);
    }

    fn pose(&self, ball: &Ball) -> Option<OddPose> {
        let creep = if self.0 == "displaced" { 0.5 } else { 0.0 };
        Some(OddPose { x: ball.x + f64::from(self.odd("pose")), creep })
    }

    fn limits(&self, _: &Ball) -> MotionLimits {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let calls = if self.0 == "again" { CALLS.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let top_speed = 8.0 + f64::from(self.odd("limits")) + f64::from(calls);
        MotionLimits { top_speed, top_turn: 1.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-3 }
    }

    fn fingerprint(&self) -> u64 {
        1
    }

    fn reach(&self, ball: &Ball, _: Duration) -> Option<Reach> {
        Some(Reach::plane(ball.x, 0.0, 1.0 + f64::from(self.odd("reach")), 1.0))
    }

    fn substitute(&self, _: Option<Self::Input>, _: Duration) -> Self::Input {
        Push(i8::try_from(self.odd("substitute")).unwrap())
    }
}

fn odd<const SPOILT_INPUT: bool>(function: &'static str, inputs: &[i8]) -> Result<(), String> {
    let builds = AtomicU32::new(0);
    let build = || Odd::<SPOILT_INPUT>(function, builds.fetch_add(1, Ordering::Relaxed));
    let inputs = inputs.iter().map(|push| Push(*push)).collect();
    let plan = CheckPlan { ticks: 50, ..CheckPlan::new(vec![Ball { x: 0.0, hp: 1 }], inputs) };
    let mistake = check_game(build, &plan).map(|_| ()).map_err(|mistake| mistake.to_string());
    println!("{function}: {mistake:?}");
    mistake
}

#[test]
fn every_function_of_both_builds_must_agree() {
    assert_eq!(odd::<false>("none", &[-8, 0, 8]), Ok(()));
    for (function, part) in [
        ("pose", "tick 1, body 0: pose gave another result with rules that were built a second time (x: "),
        (
            "limits",
            "tick 1, body 0: limits gave another result with rules that were built a second time (top_speed: 8 ",
        ),
        ("reach", "tick 1, body 0: reach gave another result with rules that were built a second time ("),
        (
            "substitute",
            "input 0: substitute gave another result with rules that were built a second time (value: 0 and 1)",
        ),
        ("again", "tick 1, body 0: limits gave another result when it was called again (top_speed: 8 and 9)"),
        ("displaced", "tick 1, body 0: the pose displaced by a zero offset is another pose (x: "),
    ] {
        assert_says(&odd::<false>(function, &[-8, 0, 8]).unwrap_err(), &[part]);
    }
}

#[test]
fn inputs_must_survive_their_codec() {
    let lost = odd::<true>("none", &[3, -8]).unwrap_err();
    assert_says(
        &lost,
        &["input 1: written against nothing and read back, it is another one (value: -8 and 8)"],
    );
}

#[test]
fn serde_and_digest_must_see_every_field() {
    let image = message("serde that leaves a field out", || SpoiltBody::<IMAGE_WITHOUT_HP>);
    assert_says(&image, &["tick 0, body 0: two bodies are unequal by ==, but serde writes them alike"]);
    let unreadable = message("serde that reads another body", || SpoiltBody::<IMAGE_READS_OTHER>);
    assert_says(&unreadable, &["Body::blank(): serde cannot read back the body that it wrote"]);
    let varies = message("a digest that counts", || SpoiltBody::<DIGEST_VARIES>);
    assert_says(&varies, &["Body::blank(): digest gave 0x", " for bodies with the same bits"]);
}
