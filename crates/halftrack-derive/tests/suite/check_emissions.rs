//! `check_game` finds deliberate mistakes in emissions, contact and groups, and passes the same rules without them.

use std::time::Duration;

use halftrack::model::Presses;
use halftrack::{
    Body, BodyId, CheckPlan, CheckReport, Game, GameMistake, Input, MotionLimits, Pose2, Reach, Step,
    check_game,
};

use crate::ball_line::assert_says;

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Trigger {
    #[range(-8..=8)]
    drive: i8,
    #[presses]
    fire: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Thing::Gun { x: 0.0, fired: 0, left: 0 })]
enum Thing {
    Gun {
        #[grid(1/1024, -1_000..=1_000)]
        x: f64,
        #[presses]
        fired: u8,
        #[range(0..=1_000)]
        left: u16,
    },
    Shell {
        #[grid(1/1024, -1_000..=1_000)]
        x: f64,
    },
}

impl Thing {
    const fn x(&self) -> f64 {
        match *self {
            Self::Gun { x, .. } | Self::Shell { x } => x,
        }
    }
}

/// Guns on a line, with one mistake or none.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spoilt {
    Nothing,
    EmitsWithoutEnd,
    NewbornEmits,
    EmitsAtTheEnd,
    MovesFirst,
    MomentFromSpan,
    TouchesNobody,
    PredictsAll,
    PredictsFar,
    Circle,
}

struct Guns(Spoilt);

impl Game for Guns {
    type Input = Trigger;
    type Body = Thing;
    type Pose = Pose2;

    fn advance(&self, thing: &mut Thing, input: Trigger, step: &mut Step<'_, Self>) {
        match thing {
            Thing::Gun { x, fired, left } => {
                let travel = f64::from(input.drive) * step.seconds();
                if self.0 == Spoilt::MovesFirst {
                    *x += travel;
                }
                let shots = match self.0 {
                    Spoilt::EmitsWithoutEnd => 20,
                    _ => u16::from(Presses::since(*fired, input.fire).min(2)).min(*left),
                };
                let at = match self.0 {
                    Spoilt::EmitsAtTheEnd => step.span(),
                    Spoilt::MomentFromSpan => step.span() / 2,
                    _ => Duration::ZERO,
                };
                for _ in 0..shots {
                    step.emit(Thing::Shell { x: *x }, at);
                }
                *fired = input.fire;
                *left = left.saturating_sub(shots);
                if self.0 != Spoilt::MovesFirst {
                    *x += travel;
                }
                *x = x.clamp(-500.0, 500.0);
                if self.0 == Spoilt::TouchesNobody && step.tick().number() == 7 {
                    step.touch(BodyId::new(77));
                }
            }
            Thing::Shell { x } => {
                if self.0 == Spoilt::NewbornEmits {
                    step.emit(Thing::Shell { x: *x }, Duration::ZERO);
                }
                *x += step.seconds();
            }
        }
    }

    fn pose(&self, thing: &Thing) -> Option<Pose2> {
        Some(Pose2 { x: thing.x(), ..Pose2::default() })
    }

    fn limits(&self, _: &Thing) -> MotionLimits {
        MotionLimits { top_speed: 8.0, top_turn: 1.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-3 }
    }

    fn reach(&self, thing: &Thing, span: Duration) -> Option<Reach> {
        Some(Reach::plane(thing.x(), 0.0, 0.5, 8.0 * span.as_secs_f64()))
    }

    fn predicts(&self, own: &Thing, other: &Thing) -> bool {
        let near = (own.x() - other.x()).abs() < 3.0;
        near || matches!(self.0, Spoilt::PredictsAll | Spoilt::PredictsFar)
    }

    fn carries(&self, other: &Thing, body: &Thing) -> bool {
        let above = (other.x() - body.x()).abs() < 1.5;
        above && (self.0 == Spoilt::Circle || other.x() < body.x())
    }

    fn fingerprint(&self) -> u64 {
        1
    }
}

fn check(spoilt: Spoilt, count: u16, apart: f64) -> Result<CheckReport, GameMistake> {
    let gun = |nth: u16| Thing::Gun {
        x: f64::from(nth) * apart,
        fired: 0,
        left: if nth == 0 { 1_000 } else { 40 },
    };
    let inputs = (0..6u8).map(|fire| Trigger { drive: [-8, -3, 0, 2, 5, 8][usize::from(fire)], fire });
    let plan = CheckPlan { ticks: 200, ..CheckPlan::new((0..count).map(gun).collect(), inputs.collect()) };
    check_game(|| Guns(spoilt), &plan)
}

fn message(spoilt: Spoilt, count: u16, apart: f64) -> String {
    let message = check(spoilt, count, apart).expect_err("a mistake").to_string();
    println!("{spoilt:?}:\n    {message}\n");
    message
}

#[test]
fn rules_that_emit_without_mistakes_pass() {
    let report = check(Spoilt::Nothing, 3, 40.0).unwrap();
    assert!(report.emissions > 30, "{report:?}");
    assert!(check(Spoilt::Nothing, 24, 2.5).is_ok(), "two neighbours each");
}

#[test]
fn mistake_emissions_without_end_or_in_the_birth_tick() {
    let message_of = |spoilt| message(spoilt, 3, 40.0);
    let endless = message_of(Spoilt::EmitsWithoutEnd);
    assert_says(
        &endless,
        &["tick 1, body 0: 12 bodies were emitted that are not made: a body emits 8 in a tick"],
    );
    let newborn = message_of(Spoilt::NewbornEmits);
    let parts = [": 1 bodies were emitted that are not made: a body emits none in the tick of its own birth"];
    assert_says(&newborn, &parts);
    assert_says(&newborn, &["tick ", ", body "]);
}

#[test]
fn mistake_emissions_after_their_step() {
    let overdue = message(Spoilt::EmitsAtTheEnd, 3, 40.0);
    assert_says(&overdue, &["tick ", "at or after the end of a step, and are not made", "timer"]);
}

#[test]
fn mistake_emissions_that_depend_on_the_span() {
    let moved = message(Spoilt::MovesFirst, 3, 40.0);
    assert_says(&moved, &["tick ", ", body ", "than the whole tick gives", "x: ", "emit before you move"]);
    let moment = message(Spoilt::MomentFromSpan, 3, 40.0);
    assert_says(&moment, &["into the tick it has emitted other bodies than the whole tick", "step.span()"]);
}

#[test]
fn mistake_a_touched_body_that_is_not_there() {
    let touched = message(Spoilt::TouchesNobody, 3, 40.0);
    assert_says(&touched, &["tick 7, body 0: step.touch(00000000004d) names no body of the room"]);
}

#[test]
fn mistake_predicts_names_too_many_or_all() {
    let many = message(Spoilt::PredictsAll, 24, 0.25);
    assert_says(
        &many,
        &["tick 1, body 0: predicts names 23 of 23 other bodies. A group holds 16 by default"],
    );
    let far = message(Spoilt::PredictsFar, 6, 100.0);
    assert_says(&far, &["predicts names 5 of 5 other bodies, some of them far out of reach"]);
}

#[test]
fn mistake_bodies_that_carry_each_other() {
    let circle = message(Spoilt::Circle, 3, 1.0);
    assert_says(&circle, &["tick 1, body 0: it is carried by a body that it carries itself"]);
}
