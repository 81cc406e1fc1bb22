//! What a game must tell the netcode: its input, its body, its surroundings, and the pure rules between them.
//!
//! Server, live prediction and replay call these same functions, so they cannot drift apart.

use core::fmt::Debug;
use core::time::Duration;

use crate::wire::Coded;

/// The rules of one game, as pure functions. The type itself is only a name; it is never built.
///
/// [`crate::cart`] is the smallest complete example. [`crate::verify_parity`] checks an implementation.
///
/// Everything here must be deterministic to the bit on every machine that plays: no clock, no random numbers,
/// no `HashMap` order, and `libm` rather than the platform's `sin`, `cos` and `exp`.
pub trait Game: Debug + Clone + Copy + PartialEq + 'static {
    /// What the player asks for, *quantised*: what is sent is what is simulated. Refuse NaN and infinity where
    /// it is built.
    type Input: Copy + PartialEq + Debug + Coded;

    /// Everything about the body that its motion depends on, parameters and timers included.
    type Body: Copy + PartialEq + Debug;

    /// What the body moves among: the arena, and the other bodies as they stood at the start of the tick.
    ///
    /// Implement [`Clone::clone_from`] to reuse buffers: it is called once per accepted state.
    type Surroundings: Clone + Debug;

    /// What is drawn.
    type Pose: Pose;

    /// How long missing input is replaced by the last one known before it becomes neutral.
    ///
    /// 250 ms covers a burst of lost datagrams; a player who has vanished for longer must not drive on. Much
    /// less turns every hiccup into a stop; much more lets a dead connection drive over a cliff.
    const MAX_HOLD: Duration = Duration::from_millis(250);

    /// The input of a player who touches nothing.
    fn neutral() -> Self::Input;

    /// Makes of the body what it is after `input` was held for `span`, which is never zero and never crosses
    /// the end of a tick. What it becomes depends on the arguments alone.
    fn advance(
        body: &mut Self::Body,
        input: Self::Input,
        span: Duration,
        surroundings: &Self::Surroundings,
    ) -> Contact;

    /// Puts the body on the grid of the wire, *every* field: run by both sides at the end of each tick.
    ///
    /// Idempotent; and what it gives survives encoding and decoding bit for bit.
    fn settle(body: &mut Self::Body);

    /// Where the body is drawn.
    fn pose(body: &Self::Body) -> Self::Pose;

    /// A hash of every bit of the body: equal bodies, equal digests, and otherwise not by any usual accident.
    fn digest(body: &Self::Body) -> u64;

    /// What stands in for the input of a tick that has none: `last` is the newest input known and `age` how
    /// long before this tick its own was (one cadence for the tick right after it).
    ///
    /// Both sides call it, so what the server made up, the client made up too.
    fn substitute(last: Option<Self::Input>, age: Duration) -> Self::Input {
        match last {
            Some(input) if age <= Self::MAX_HOLD => input,
            _ => Self::neutral(),
        }
    }
}

/// Whether another body (not the fixed arena) changed a motion.
///
/// A client knows other bodies only as they were, so a prediction with contact is one that may be corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contact {
    /// Nobody was in the way.
    #[default]
    Free,
    /// Another body stood in the way or pushed.
    Touched,
}

impl Contact {
    /// Touched if either was.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Free, Self::Free) => Self::Free,
            _ => Self::Touched,
        }
    }
}

/// A position and a rotation that can be told apart and displaced, in whatever types the game draws with.
///
/// The netcode needs no more than this of the game's mathematics: two dimensions or three, headings or
/// quaternions (for those, the offset's rotation is the scaled axis of `self * other.inverse()`).
pub trait Pose: Copy + PartialEq + Debug {
    /// What must be added to `other` to arrive here; rotation by the shorter way.
    fn offset_from(&self, other: &Self) -> Offset;

    /// This pose, moved and turned by `offset`. With [`Offset::ZERO`] it is the same pose, bit for bit.
    #[must_use]
    fn displaced(&self, offset: &Offset) -> Self;
}

/// The difference between two poses: a vector in metres and a rotation vector in radians.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    /// Metres.
    pub position: [f64; 3],
    /// Radians about each axis: direction is the axis, length the angle.
    pub rotation: [f64; 3],
}

impl Offset {
    /// No difference.
    pub const ZERO: Self = Self { position: [0.0; 3], rotation: [0.0; 3] };

    /// Length of the position's part, in metres.
    pub fn distance(&self) -> f64 {
        length(self.position)
    }

    /// Size of the rotation's part, in radians, never negative.
    pub fn angle(&self) -> f64 {
        length(self.rotation)
    }

    /// Whether every number in it is one.
    pub fn is_finite(&self) -> bool {
        self.position.iter().chain(&self.rotation).all(|part| part.is_finite())
    }

    /// Position and rotation scaled, each by its own factor.
    pub(crate) fn scaled(&self, position: f64, rotation: f64) -> Self {
        Self {
            position: self.position.map(|part| part * position),
            rotation: self.rotation.map(|part| part * rotation),
        }
    }
}

fn length([x, y, z]: [f64; 3]) -> f64 {
    libm::sqrt(x * x + y * y + z * z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::Cart;

    #[test]
    fn substitute_holds_up_to_the_limit_and_not_a_microsecond_longer() {
        let limit = Cart::MAX_HOLD;
        assert_eq!(Cart::substitute(Some(3), limit), 3);
        assert_eq!(Cart::substitute(Some(3), limit + Duration::from_micros(1)), Cart::neutral());
        assert_eq!(Cart::substitute(None, Duration::ZERO), Cart::neutral());
    }

    #[test]
    fn offsets_measure_both_parts() {
        let offset = Offset { position: [3.0, 0.0, -4.0], rotation: [0.0, -0.5, 0.0] };
        assert_eq!((offset.distance(), offset.angle()), (5.0, 0.5));
        let half = offset.scaled(0.5, 0.0);
        assert_eq!((half.distance(), half.angle()), (2.5, 0.0));
        assert!(offset.is_finite());
        for broken in [f64::NAN, f64::INFINITY] {
            assert!(!Offset { position: [broken, 0.0, 0.0], ..offset }.is_finite());
            assert!(!Offset { rotation: [0.0, 0.0, broken], ..offset }.is_finite());
        }
    }
}
