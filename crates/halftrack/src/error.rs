//! What can be refused, and why: bad configuration (the caller's fault) and unusable states (the sender's).

use core::time::Duration;

use crate::kind::MessageKind;
use crate::tick::Tick;

/// A configuration that cannot keep its promises. Nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A cadence outside 5..=200 ms.
    #[error("cadence is {got:?}; choose one from 5 ms to 200 ms")]
    CadenceOutOfRange {
        /// The interval that was asked for.
        got: Duration,
    },
    /// A cadence with a fraction of a microsecond.
    #[error("cadence is {got:?}; round it to whole microseconds")]
    CadenceNotWholeMicros {
        /// The interval that was asked for.
        got: Duration,
    },
    /// A prediction window too short to hold one tick, or so long that its memory is no longer bounded sanely.
    #[error("max_pending is {got:?}; choose one from {min:?} (two ticks) to {max:?}")]
    MaxPendingOutOfRange {
        /// The window that was asked for.
        got: Duration,
        /// The shortest at this cadence.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A first state of a tick so high that no prediction window fits after it.
    #[error("the first state is of tick {tick}, past the last that a server can reach")]
    UnknownTick {
        /// The state's tick.
        tick: Tick,
    },
    /// A clock error that would resync at every breath of jitter, or never.
    #[error("resync_error is {got:?}; choose one from 50 ms to 10 s")]
    ResyncErrorOutOfRange {
        /// The error that was asked for.
        got: Duration,
    },
    /// A delivery policy with a kind of message on the sync lane that must not be lost.
    #[error(
        "policy: {kind:?} must take the reliable lane; only MoveInput and PlayerState may take the sync lane"
    )]
    Lane {
        /// The kind.
        kind: MessageKind,
    },
    /// A number of things that is out of its range.
    #[error("{field} is {got}; choose one from {min} to {max}")]
    Count {
        /// The field's name.
        field: &'static str,
        /// What it was.
        got: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// More bodies than the full state for a new client can hold.
    #[error(
        "max_bodies is {got}, and a full state holds {most} bodies of {body_bytes} bytes: choose at most {most}, or \
         smaller bodies"
    )]
    TooManyBodies {
        /// `max_bodies`.
        got: usize,
        /// The longest body, bytes.
        body_bytes: usize,
        /// The most.
        most: usize,
    },
    /// A group that prediction cannot carry.
    #[error(
        "the group is {max_bodies} bodies, {max_near} near them, and a linger of {linger:?}: choose at most 256, 256 and \
         10 s"
    )]
    GroupOutOfRange {
        /// `max_bodies`.
        max_bodies: usize,
        /// `max_near`.
        max_near: usize,
        /// `linger`.
        linger: Duration,
    },
    /// A game whose bodies do not fit into a snapshot.
    #[error(
        "a body of the game takes {bytes} bytes on the wire, and {max} are the most: write less of it, correct \
         Body::MAX_BITS, or raise max_datagram_bytes"
    )]
    BodyTooLong {
        /// Bytes that a body takes.
        bytes: usize,
        /// The most that it may take.
        max: usize,
    },
    /// A time that is out of its range.
    #[error("{field} is {got:?}; choose one from {min:?} to {max:?}")]
    Span {
        /// The field's name.
        field: &'static str,
        /// What it was.
        got: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A number of a correction config that is NaN, infinite, negative, or zero where it must not be.
    #[error("correction: {field} is {got}; it must be finite and {wanted}")]
    CorrectionNumber {
        /// The field's name.
        field: &'static str,
        /// What it was.
        got: f64,
        /// What it must be.
        wanted: &'static str,
    },
    /// A time of a correction config that is out of order with the others.
    #[error("correction: {field} is {got:?}; it must be {wanted}")]
    CorrectionTime {
        /// The field's name.
        field: &'static str,
        /// What it was.
        got: Duration,
        /// What it must be.
        wanted: &'static str,
    },
    /// The longest budget at the capped speed does not reach as far as the snap threshold.
    #[error(
        "correction: {part} up to {snap} would be eased, but {reach} is all that the cap covers within \
         max_budget; raise cap or max_budget, or lower snap"
    )]
    CorrectionOutOfReach {
        /// `position` or `rotation`.
        part: &'static str,
        /// The snap threshold.
        snap: f64,
        /// What can be covered.
        reach: f64,
    },
}

/// Refuses a time outside `min..=max`.
pub(crate) fn time_within(
    field: &'static str,
    got: Duration,
    min: Duration,
    max: Duration,
) -> Result<(), ConfigError> {
    let holds = (min..=max).contains(&got);
    if holds { Ok(()) } else { Err(ConfigError::Span { field, got, min, max }) }
}

/// Refuses a number outside `min..=max`.
pub(crate) fn count_within(
    field: &'static str,
    got: usize,
    min: usize,
    max: usize,
) -> Result<(), ConfigError> {
    let holds = (min..=max).contains(&got);
    if holds { Ok(()) } else { Err(ConfigError::Count { field, got, min, max }) }
}

/// Why an authoritative state was not applied. Counted, and harmless: nothing has changed but the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ignored {
    /// Older than the newest accepted one: applying it would rewind.
    #[error("state of tick {tick} is older than the baseline of tick {baseline}")]
    Stale {
        /// The state's tick.
        tick: Tick,
        /// The newest accepted tick.
        baseline: Tick,
    },
    /// The newest accepted one again.
    #[error("state of tick {tick} is the baseline already")]
    Duplicate {
        /// The state's tick.
        tick: Tick,
    },
    /// A tick so high that no prediction window fits after it: no server that lives by the contract sends it.
    #[error("state of tick {tick} lies past the last tick a server can reach")]
    UnknownTick {
        /// The state's tick.
        tick: Tick,
    },
}
