//! Tick numbers and time epochs. Knows nothing of how long a tick is.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The number of one interval of the server's cadence.
///
/// 2^32 ticks are 6.8 years at 20 Hz and 248 days at 200 Hz: a room ends before they do, so ticks are ordered
/// and never wrap here. (What the wire makes of them is the wire's business.)
///
/// ```
/// use halftrack::Tick;
///
/// let tick = Tick::new(41);
/// assert_eq!(tick.next(), Tick::new(42));
/// assert_eq!(Tick::new(50).since(tick), 9);
/// assert_eq!(tick.since(Tick::new(50)), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tick(u32);

impl Tick {
    /// The last tick there is.
    pub const MAX: Self = Self(u32::MAX);

    /// The newest tick an authoritative state may name: room is left for a full prediction window after it.
    pub const MAX_STATE: Self = Self(u32::MAX - (1 << 16));

    /// Tick number `number`.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The tick after this one; the last tick is its own successor.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The tick before this one, if there is one.
    pub const fn previous(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// This tick and those after it, without end: the last one repeats.
    pub fn onwards(self) -> impl Iterator<Item = Self> {
        core::iter::successors(Some(self), |tick| Some(tick.next()))
    }

    /// How many ticks after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which stretch of unbroken server time a state belongs to.
///
/// A server that cannot catch up after a stall lets its clock slip and counts its epoch up: tick numbers go on,
/// but where they lie in real time has changed, so clients resync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(u32);

impl Epoch {
    /// Epoch number `number`.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_hold() {
        assert_eq!(Tick::MAX.next(), Tick::MAX);
        assert_eq!(Tick::new(0).previous(), None);
        assert_eq!(Tick::new(1).previous(), Some(Tick::new(0)));
        assert_eq!(Tick::MAX.since(Tick::MAX_STATE), 1 << 16);
    }
}
