//! The rules of a game, and the types that they are made of.
//!
//! Server, live prediction and replay call these same functions, so they cannot drift apart.

mod effects;
mod neighbour;
mod step;

use core::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use effects::Effects;
pub use effects::Touched;
pub use neighbour::Neighbour;
pub use step::Step;

use crate::model::{Body, Input, Pose};
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter, WireError, read_bytes, write_bytes};

/// The rules of one game: a value that both ends build alike and share by reference.
///
/// Arena, tuning and callbacks are fields of the type that implements it. [`crate::cart`] is the smallest complete
/// example. [`crate::check_game`] checks an implementation.
///
/// Every function must give the same bits on every machine that plays: use no clock, no random numbers, no `HashMap`
/// order, and `libm` instead of the platform's `sin`, `cos` and `exp`.
pub trait Game: Sized + Send + Sync + 'static {
    /// The player's wish. Its `Default` is neutral.
    type Input: Input;

    /// All state that the motion of a body depends on, parameters and timers included. It takes at most
    /// [`crate::snapshot::MAX_BODY_BYTES`], and 64 bytes less than
    /// [`crate::server::ServerConfig::max_datagram_bytes`]: the constructors of server and client check that.
    type Body: Body;

    /// The drawn part of a body.
    type Pose: Pose;

    /// Moves `body` through one step, in which `input` is held. A step never crosses the end of a tick and is never empty.
    /// Change nothing but `body`, and depend on nothing but the arguments and `self`.
    fn advance(&self, body: &mut Self::Body, input: Self::Input, step: &mut Step<'_, Self>);

    /// The pose at which `body` is drawn. `None` for a body that is not drawn, such as a score or a timer: it is state.
    fn pose(&self, body: &Self::Body) -> Option<Self::Pose>;

    /// The fastest motion of `body`: the thresholds of its corrections follow from it.
    fn limits(&self, body: &Self::Body) -> MotionLimits;

    /// A hash of everything about these rules that both ends must share: arena, tuning, and a version that you count up
    /// with every change of the code.
    fn fingerprint(&self) -> u64;

    /// The space that `body` can touch within `span`, for the broad phase. `None`, the default, tests the body against
    /// every other one.
    ///
    /// A body that is out of reach is left out of [`Step::neighbours`]. [`Self::advance`] must give the same bits with it
    /// and without it.
    fn reach(&self, body: &Self::Body, span: Duration) -> Option<Reach> {
        let _ = (body, span);
        None
    }

    /// Whether a client predicts `other` together with `own`, a body that it predicts already: a crate that the player's
    /// tank pushes, a ball within reach of the foot, the platform under it. The default is no.
    ///
    /// Bodies that the player owns, and bodies that those emit, are always predicted. What this names joins them while it
    /// could touch one of them before prediction time, and is drawn at prediction time then. Every other body is drawn at
    /// render time, a little in the past.
    fn predicts(&self, own: &Self::Body, other: &Self::Body) -> bool {
        let _ = (own, other);
        false
    }

    /// Whether `other` carries `body`, as a platform carries what stands on it. `body` is then drawn where it stands on
    /// `other`, also when the two are drawn at different times. The default is no.
    fn carries(&self, other: &Self::Body, body: &Self::Body) -> bool {
        let _ = (other, body);
        false
    }

    /// How long missing input is replaced by the last one known before it becomes neutral.
    ///
    /// 250 ms covers a burst of lost datagrams. A shorter hold turns every hiccup into a stop; a longer one lets the body
    /// of a dead connection drive over a cliff.
    fn max_hold(&self) -> Duration {
        Duration::from_millis(250)
    }

    /// The substitute for the input of a tick that has none: `last` is the newest input known, and `age` the time from
    /// its tick to this one (one cadence for the tick right after it).
    ///
    /// Server and client both call it, so both make up the same input. Past [`Self::max_hold`] the default lets go of all
    /// axes and keeps the counters of presses: a counter that fell back to zero would look like more presses.
    fn substitute(&self, last: Option<Self::Input>, age: Duration) -> Self::Input {
        let last = last.unwrap_or_default();
        if age <= self.max_hold() { last } else { last.released() }
    }

    /// Writes a player's order as a recording keeps it; it came when `newest` was the newest tick. Override it to write
    /// orders that you know shorter. An order is at most as long as a message of the reliable lane.
    fn write_order(order: &[u8], newest: Tick, bits: &mut BitWriter<'_>) {
        let _ = newest;
        write_bytes(order, bits);
    }

    /// Reads an order of [`Self::write_order`], or another one with the same meaning.
    ///
    /// # Errors
    /// When the bits end too early or are no order.
    fn read_order(newest: Tick, bits: &mut BitReader<'_>) -> Result<Vec<u8>, WireError> {
        let _ = newest;
        read_bytes(bits)
    }
}

/// The space that a body can touch: a box around it that covers its hull and its way.
///
/// Two bodies are neighbours in a tick if, along each axis, their distance is at most the [`Self::travel`] of the one that
/// moves plus both [`Self::extent`]s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// The middle of the body, metres.
    pub at: [f64; 3],
    /// The distance from there to its surface, metres.
    pub extent: f64,
    /// How far it can move within the span, metres, pushes included.
    pub travel: f64,
}

impl Reach {
    /// The reach of a body on a plane.
    pub const fn plane(x: f64, y: f64, extent: f64, travel: f64) -> Self {
        Self { at: [x, y, 0.0], extent, travel }
    }

    /// The reach of a body in space.
    pub const fn space(at: [f64; 3], extent: f64, travel: f64) -> Self {
        Self { at, extent, travel }
    }

    /// Whether a body with this reach can touch `other`, which stands still.
    pub fn touches(&self, other: &Self) -> bool {
        let far = self.travel + self.extent + other.extent;
        self.at.iter().zip(&other.at).all(|(at, other)| (other - at).abs() <= far)
    }
}

/// The fastest motion of a body, and the grid of its pose: [`crate::CorrectionConfig::for_motion`] derives the thresholds
/// of corrections from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MotionLimits {
    /// Metres per second.
    pub top_speed: f64,
    /// Radians per second.
    pub top_turn: f64,
    /// Grid of positions on the wire, metres.
    pub grid_distance: f64,
    /// Grid of rotations on the wire, radians.
    pub grid_angle: f64,
}

/// Whether another body (not the fixed arena) changed a motion.
///
/// A client knows other bodies only as they were, so a prediction with contact may be corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::Cart;

    #[test]
    fn substitute_holds_up_to_the_limit_and_not_a_microsecond_longer() {
        let limit = Cart.max_hold();
        assert_eq!(Cart.substitute(Some(3), limit), 3);
        assert_eq!(Cart.substitute(Some(3), limit + Duration::from_micros(1)), 0);
        assert_eq!(Cart.substitute(None, Duration::ZERO), 0);
    }

    #[test]
    fn reach_covers_both_hulls_and_the_way_along_each_axis() {
        let own = Reach::plane(0.0, 0.0, 1.0, 0.5);
        let at = |x, y, z| Reach::space([x, y, z], 2.0, 100.0);
        for inside in [at(3.5, 0.0, 0.0), at(0.0, -3.5, 0.0), at(0.0, 0.0, 3.5), at(3.5, 3.5, -3.5)] {
            assert!(own.touches(&inside), "{inside:?}");
        }
        for outside in [at(3.501, 0.0, 0.0), at(0.0, -3.501, 0.0), at(0.0, 0.0, 3.501)] {
            assert!(!own.touches(&outside), "{outside:?}");
        }
    }
}
