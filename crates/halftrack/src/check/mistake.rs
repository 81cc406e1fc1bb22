//! The mistakes that the checker finds, each with its place, both values and advice.

use core::fmt::{self, Display};
use core::time::Duration;

use super::fields::{Difference, FieldPath, FieldValue};
use crate::error::ConfigError;
use crate::id::BodyId;
use crate::model::{FieldError, FieldProblem};
use crate::tick::Tick;
use crate::wire::WireError;

/// The value in which the checker found a mistake.
// No variant is named like a trait of the crate: compilers would name that trait by its full path in every error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A body after a tick. Tick 0 is the start: the bodies of the plan.
    AfterTick {
        /// The tick.
        tick: Tick,
        /// Index in [`CheckPlan::bodies`](super::CheckPlan::bodies).
        body: usize,
    },
    /// The blank body.
    Blank,
    /// An input, by its index in [`CheckPlan::inputs`](super::CheckPlan::inputs).
    PlanInput(usize),
    /// The released form of that input.
    Released(usize),
    /// The `Default` of the input.
    DefaultInput,
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterTick { tick, body } => write!(f, "tick {tick}, body {body}"),
            Self::Blank => f.write_str("Body::blank()"),
            Self::PlanInput(index) => write!(f, "input {index}"),
            Self::Released(index) => write!(f, "input {index}, released"),
            Self::DefaultInput => f.write_str("the default input"),
        }
    }
}

/// The first mistake that [`check_game`](super::check_game) found in the rules of a game.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GameMistake {
    /// The plan plays nothing.
    #[error("the plan has no {what}, so nothing would be checked")]
    EmptyPlan {
        /// The missing part.
        what: &'static str,
    },
    /// Server and clients would refuse these rules.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Two calls with the same arguments gave different results.
    #[error(
        "{place}: {function} gave another result when it was called again ({difference}). Rules must not keep \
         state between calls, read clocks or use random numbers"
    )]
    NotPure {
        /// Where.
        place: Place,
        /// The function of [`Game`](crate::Game).
        function: &'static str,
        /// The first and the second result.
        difference: Difference,
    },
    /// Two values of the rules, built by the same function, gave different results.
    #[error(
        "{place}: {function} gave another result with rules that were built a second time ({difference}). Server \
         and client each build their own: results must not depend on HashMap order, addresses, files or a \
         counter of instances"
    )]
    BuildsDiffer {
        /// Where.
        place: Place,
        /// The function of [`Game`](crate::Game).
        function: &'static str,
        /// The results of both.
        difference: Difference,
    },
    /// `fingerprint` gave two values for the same rules.
    #[error(
        "fingerprint gave {first:#x}, then {second:#x} for rules that were built alike: no client could join. \
         Hash only tuning, arena and a version, in a fixed order"
    )]
    FingerprintsDiffer {
        /// The first value.
        first: u64,
        /// The second value.
        second: u64,
    },
    /// Prediction rebuilt from an earlier state is another body than live prediction shows.
    #[error(
        "{place}: prediction replayed from the state after tick {baseline} differs from live prediction \
         ({difference}). advance must depend on nothing but its arguments, also when a step is cut short"
    )]
    ReplayDiffers {
        /// The open tick, and the body.
        place: Place,
        /// The tick after which the replay began.
        baseline: Tick,
        /// Live and replayed.
        difference: Difference,
    },
    /// A value left its declared range, or was NaN or infinite, when it was settled.
    #[error(
        "{place}: {problem}{}. settle had to replace it: {}",
        change(.difference),
        advice(.problem)
    )]
    Escaped {
        /// Where.
        place: Place,
        /// The field and its problem, as `settle` reports it.
        problem: FieldError,
        /// Before and after settling, where the serde image has the field.
        difference: Option<Difference>,
    },
    /// Settling a settled value changed it.
    #[error(
        "{place}: settle changed a value that was settled already ({difference}). It must be idempotent: round to \
         a grid once, and do nothing to a value on the grid"
    )]
    SettleNotIdempotent {
        /// Where.
        place: Place,
        /// Settled once and twice.
        difference: Difference,
    },
    /// A settled value has a float that no settled value may have.
    #[error("{place}: settle left {value} in {field}. Settled values have neither NaN nor infinity nor -0.0")]
    NotSettled {
        /// Where.
        place: Place,
        /// The field.
        field: FieldPath,
        /// Its value.
        value: FieldValue,
    },
    /// `Body::check` refused a settled body.
    #[error(
        "{place}: check refused a settled body ({problem}). Recordings and saved states could not be loaded"
    )]
    CheckRefused {
        /// Where.
        place: Place,
        /// The error of `check`.
        problem: FieldError,
    },
    /// A value came out of its codec with other bits.
    #[error(
        "{place}: written against {baseline} and read back, it is another one ({difference}). write must write \
         every field that is not as in the baseline, in as many bits as its range needs, and read must read it"
    )]
    CodecLoses {
        /// Where.
        place: Place,
        /// The baseline.
        baseline: CodecBaseline,
        /// Written and read.
        difference: Difference,
    },
    /// `read` could not read the bits that `write` wrote.
    #[error("{place}: written against {baseline}, it cannot be read back: {problem}. read must mirror write")]
    CodecUnreadable {
        /// Where.
        place: Place,
        /// The baseline.
        baseline: CodecBaseline,
        /// The error of `read`.
        problem: WireError,
    },
    /// `write` took more bits than declared.
    #[error(
        "{place}: written against {baseline}, it takes {bits} bits, and MAX_BITS is {max}. Raise MAX_BITS to the \
         longest value there can be"
    )]
    TooManyBits {
        /// Where.
        place: Place,
        /// The baseline.
        baseline: CodecBaseline,
        /// Bits written.
        bits: usize,
        /// `MAX_BITS`.
        max: usize,
    },
    /// Two bodies that differ have the same digest.
    #[error(
        "{place}: digest does not see that {} differs ({} and {}): two bodies have the digest {digest:#x}. Hash \
         every field, or a client that has another body is not found out",
        .difference.field, .difference.first, .difference.second
    )]
    DigestMisses {
        /// Where.
        place: Place,
        /// The field and both values.
        difference: Difference,
        /// The digest of both.
        digest: u64,
    },
    /// Two bodies with the same bits have different digests.
    #[error(
        "{place}: digest gave {first:#x} and {second:#x} for bodies with the same bits. It must depend on the \
         fields alone"
    )]
    DigestVaries {
        /// Where.
        place: Place,
        /// One digest.
        first: u64,
        /// The other.
        second: u64,
    },
    /// `==` calls two bodies equal that differ.
    #[error(
        "{place}: == does not see that {} differs ({} and {}). Derive PartialEq: an equal body is not sent again",
        .difference.field, .difference.first, .difference.second
    )]
    EqualityMisses {
        /// Where.
        place: Place,
        /// The field and both values.
        difference: Difference,
    },
    /// `==` calls two bodies unequal that serde writes alike.
    #[error(
        "{place}: two bodies are unequal by ==, but serde writes them alike. Recordings need every field: let \
         Serialize and Deserialize have them all"
    )]
    ImageMisses {
        /// Where.
        place: Place,
    },
    /// serde wrote a body that it cannot read back to the bit.
    #[error(
        "{place}: serde cannot read back the body that it wrote. Serialize and Deserialize must mirror each other"
    )]
    ImageUnreadable {
        /// Where.
        place: Place,
    },
    /// A body moved differently among the neighbours that `reach` finds than among all others.
    #[error(
        "{place}: among its neighbours within reach it ends elsewhere than among all others after {span:?} \
         ({difference}){}. Game::reach is too small: extent must cover the hull, and travel the way in the span, \
         pushes included",
        culprit(.missed)
    )]
    ReachTooSmall {
        /// Where.
        place: Place,
        /// The time that the body moved for.
        span: Duration,
        /// A body out of reach that makes a difference by itself.
        missed: Option<usize>,
        /// Among neighbours and among all.
        difference: Difference,
    },
    /// Another body changed a motion, and the rules did not say so.
    #[error(
        "{place}: another body changed its motion ({difference}), but advance did not call step.touch(). Without \
         it, corrections by collisions have no known cause"
    )]
    TouchMissing {
        /// Where.
        place: Place,
        /// With the others and without.
        difference: Difference,
    },
    /// A body moved by itself faster than its limits.
    #[error(
        "{place}: it moved by itself at {speed:.3} {unit}, and limits allows {limit:.3}. Correct MotionLimits, or \
         bound the speed in advance; teleports and respawns are the World's to do"
    )]
    TooFast {
        /// Where.
        place: Place,
        /// The mean speed over the tick.
        speed: f64,
        /// The limit.
        limit: f64,
        /// `m/s` or `rad/s`.
        unit: &'static str,
    },
    /// `limits` gave numbers from which no correction can be derived.
    #[error("{place}: limits cannot be used ({problem})")]
    LimitsUnusable {
        /// Where.
        place: Place,
        /// The reason.
        problem: ConfigError,
    },
    /// A pose has a number that cannot be drawn.
    #[error("{place}: pose has {value} in {field}, which cannot be drawn")]
    PoseNotFinite {
        /// Where.
        place: Place,
        /// The field.
        field: FieldPath,
        /// Its value.
        value: FieldValue,
    },
    /// A pose displaced by nothing is another pose, or is not at no distance from itself.
    #[error(
        "{place}: the pose displaced by a zero offset is another pose ({difference}). A body at rest would tremble"
    )]
    PoseNotStill {
        /// Where.
        place: Place,
        /// The pose and the displaced pose.
        difference: Difference,
    },
    /// A body emitted more than is made, or in the tick of its own birth.
    #[error(
        "{place}: {count} bodies were emitted that are not made: {}. Let a timer or a count in the body end its \
         emissions",
        if *.newborn {
            "a body emits none in the tick of its own birth".to_owned()
        } else {
            format!("a body emits {} in a tick", .max)
        }
    )]
    EmissionsRefused {
        /// The body; for a newborn one, its parent.
        place: Place,
        /// Emissions that were not made.
        count: u32,
        /// The most that are made in a tick.
        max: usize,
        /// The body that emitted them was born in that tick.
        newborn: bool,
    },
    /// A body was emitted at or after the end of a step.
    #[error(
        "{place}: {count} bodies were emitted at or after the end of a step, and are not made. Keep what remains in a \
         timer of the body, and let the next step emit"
    )]
    EmissionOverdue {
        /// The body; for a newborn one, its parent.
        place: Place,
        /// Emissions that were not made.
        count: u32,
    },
    /// A tick that is open emits other bodies than the whole tick does.
    #[error(
        "{place}: {into:?} into the tick it has emitted other bodies than the whole tick gives up to then ({difference}). \
         Let the moment and the body of an emission follow from body and input, never from step.span(): emit before you \
         move"
    )]
    EmissionDependsOnSpan {
        /// The body that emits.
        place: Place,
        /// The part of the tick that was evaluated.
        into: Duration,
        /// In the open tick and in the whole one.
        difference: Difference,
    },
    /// `advance` touched a body that is not there.
    #[error(
        "{place}: step.touch({id}) names no body of the room. Touch only ids of step.neighbours(): a correction is put \
         down to the bodies that were touched"
    )]
    TouchedUnknown {
        /// Where.
        place: Place,
        /// The id.
        id: BodyId,
    },
    /// `predicts` names more bodies than a group holds, or all of them.
    #[error(
        "{place}: predicts names {named} of {others} other bodies{}. A group holds {max} by default, and each costs time \
         in every frame: name only what the body can move, push or stand on",
        if *.far { ", some of them far out of reach" } else { "" }
    )]
    PredictsTooMany {
        /// The body that is predicted.
        place: Place,
        /// The bodies that are named together with it.
        named: usize,
        /// All other bodies.
        others: usize,
        /// The most that join by default.
        max: usize,
        /// Some of the named ones are out of reach.
        far: bool,
    },
    /// Bodies carry each other in a circle.
    #[error(
        "{place}: it is carried by a body that it carries itself, by way of {through} others: none can be drawn first"
    )]
    CarriersInCircle {
        /// A body of the circle.
        place: Place,
        /// The other bodies of the circle, but for the first carrier.
        through: usize,
    },
}

/// The baseline that a value was written against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecBaseline {
    /// The blank body.
    Blank,
    /// The same body after an earlier tick.
    Earlier {
        /// The tick.
        tick: Tick,
    },
    /// Another body after the same tick.
    Other {
        /// Its index.
        body: usize,
    },
    /// Inputs have no baseline.
    Nothing,
}

impl Display for CodecBaseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("Body::blank()"),
            Self::Earlier { tick } => write!(f, "the same body after tick {tick}"),
            Self::Other { body } => write!(f, "body {body}"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

fn change(difference: &Option<Difference>) -> String {
    let both = difference.as_ref().map(|both| format!(" ({} became {})", both.first, both.second));
    both.unwrap_or_default()
}

fn advice(problem: &FieldError) -> &'static str {
    match problem.problem {
        FieldProblem::NotFinite => "look for a division by zero or the root of a negative number in advance",
        FieldProblem::OutOfRange => "clamp the field in advance, or declare a wider range",
    }
}

fn culprit(missed: &Option<usize>) -> String {
    missed.map_or(String::new(), |body| format!("; body {body} is out of its reach and touches it"))
}
