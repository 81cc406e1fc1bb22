//! Why a prediction was corrected. The server says what it did; nothing here guesses from a size.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The reason of a correction.
///
/// Declared in order of precedence: when several apply, the first is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// Prediction was restarted from authority.
    Resync,
    /// The server put the body somewhere else.
    Teleport,
    /// The body came back to life.
    Respawn,
    /// The body died.
    Death,
    /// Its movement parameters changed.
    Params,
    /// The server sent a state of a body of the predicted group that the rules do not give: the world changed it.
    World,
    /// A body of the predicted group moved by another input than the one that was assumed for it.
    OtherInput,
    /// Another body was in the way, on either side.
    Collision,
    /// The input of a tick never came in time, and came first in a later datagram or never.
    LostInput,
    /// The input of a tick came after it was simulated.
    LateInput,
    /// None of the above: the two sides disagree about the rules. Zero in every healthy run.
    Unexplained,
}

impl Cause {
    /// All causes, in order of precedence.
    pub const ALL: [Self; 11] = [
        Self::Resync,
        Self::Teleport,
        Self::Respawn,
        Self::Death,
        Self::Params,
        Self::World,
        Self::OtherInput,
        Self::Collision,
        Self::LostInput,
        Self::LateInput,
        Self::Unexplained,
    ];

    /// Its name in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resync => "resync",
            Self::Teleport => "teleport",
            Self::Respawn => "respawn",
            Self::Death => "death",
            Self::Params => "params",
            Self::World => "world",
            Self::OtherInput => "other_input",
            Self::Collision => "collision",
            Self::LostInput => "lost_input",
            Self::LateInput => "late_input",
            Self::Unexplained => "unexplained",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of causes: what the server did to one player in a span of ticks.
///
/// ```
/// use halftrack::{Cause, Causes};
///
/// let causes = Causes::NONE.with(Cause::LateInput).with(Cause::Collision);
/// assert!(causes.contains(Cause::LateInput));
/// assert_eq!(causes.foremost(), Some(Cause::Collision));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Causes(u16);

impl TryFrom<u16> for Causes {
    type Error = &'static str;

    fn try_from(bits: u16) -> Result<Self, &'static str> {
        if bits >> Cause::ALL.len() == 0 { Ok(Self(bits)) } else { Err("these bits are no causes") }
    }
}

impl From<Causes> for u16 {
    fn from(causes: Causes) -> Self {
        causes.0
    }
}

impl Causes {
    /// The empty set: every input came on time and nothing interfered.
    pub const NONE: Self = Self(0);

    /// This set and `cause`.
    #[must_use]
    pub const fn with(self, cause: Cause) -> Self {
        Self(self.0 | cause.bit())
    }

    /// Everything in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `cause` is in it.
    pub const fn contains(self, cause: Cause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether input that was late or lost is in it, and nothing else.
    pub(crate) const fn is_of_input(self) -> bool {
        self.0 != 0 && self.0 & !(Cause::LateInput.bit() | Cause::LostInput.bit()) == 0
    }

    /// The one that takes precedence.
    pub fn foremost(self) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| self.contains(*cause))
    }
}

impl FromIterator<Cause> for Causes {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Self {
        causes.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_its_own_bit_and_precedence_is_the_declared_order() {
        for (index, first) in Cause::ALL.into_iter().enumerate() {
            let alone = Causes::NONE.with(first);
            for other in Cause::ALL {
                assert_eq!(alone.contains(other), first == other);
            }
            let rest: Causes = Cause::ALL.into_iter().skip(index).collect();
            assert_eq!(rest.foremost(), Some(first));
            assert_eq!(rest.union(Causes::NONE), rest);
        }
        let late = Causes::NONE.with(Cause::LateInput);
        assert!(late.is_of_input() && late.with(Cause::LostInput).is_of_input());
        assert!(!Causes::NONE.is_of_input() && !late.with(Cause::Collision).is_of_input());
        assert!(Causes::NONE.is_empty());
        assert_eq!(Causes::NONE.foremost(), None);
    }
}
