//! Sequence numbers that wrap, and the filter that lets only newer ones pass.

use serde::{Deserialize, Serialize};

/// The number of a message in its stream. Wraps after 65,535, so it has no order, only nearness.
///
/// ```
/// use halftrack::Seq;
///
/// assert!(Seq::new(1).is_newer_than(Seq::new(65_535)));
/// assert!(!Seq::new(65_535).is_newer_than(Seq::new(1)));
/// assert!(!Seq::new(7).is_newer_than(Seq::new(7)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seq(u16);

impl Seq {
    /// Number `number`.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Whether this came after `other`: less than half of all numbers ahead of it.
    pub const fn is_newer_than(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        ahead != 0 && ahead < 1 << 15
    }
}

/// Passes a message only if it is newer than every one that has passed. One per stream: a player's filter knows
/// nothing of another's.
///
/// ```
/// use halftrack::{Seq, StaleFilter};
///
/// let mut filter = StaleFilter::default();
/// assert!(filter.accept(Seq::new(9)));
/// assert!(!filter.accept(Seq::new(9)) && !filter.accept(Seq::new(8)));
/// assert!(filter.accept(Seq::new(12)));
/// assert_eq!(filter.dropped(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaleFilter {
    newest: Option<Seq>,
    dropped: u64,
}

impl StaleFilter {
    /// Whether the message numbered `seq` is newer than what has passed; it has passed then.
    pub fn accept(&mut self, seq: Seq) -> bool {
        // spec: STALE-04
        let newer = self.newest.is_none_or(|newest| seq.is_newer_than(newest));
        if newer {
            self.newest = Some(seq);
        } else {
            self.dropped += 1;
        }
        newer
    }

    /// The newest that has passed.
    pub fn newest(&self) -> Option<Seq> {
        self.newest
    }

    /// How many it has dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nearness_at_its_limits() {
        let zero = Seq::new(0);
        assert!(Seq::new(32_767).is_newer_than(zero));
        assert!(!Seq::new(32_768).is_newer_than(zero));
        assert!(!zero.is_newer_than(Seq::new(32_768)));
        assert_eq!(Seq::new(u16::MAX).next(), zero);
    }

    #[test]
    fn stale_04_sequencing_survives_the_wrap() {
        let (mut filter, mut seq) = (StaleFilter::default(), Seq::new(65_000));
        for _ in 0..200_000 {
            assert!(filter.accept(seq));
            assert!(!filter.accept(seq), "the same again");
            seq = seq.next();
        }
        assert_eq!(filter.dropped(), 200_000);
    }

    proptest! {
        /// Against plain numbers that do not wrap: what passes is what is above all before it, as long as nothing
        /// is late by half of all numbers.
        #[test]
        fn the_filter_is_a_running_maximum(steps in prop::collection::vec(-200i64..200, 1..500), start in 0u64..1 << 20) {
            let (mut filter, mut newest, mut at) = (StaleFilter::default(), None::<u64>, start + 100_000);
            for step in steps {
                at = at.saturating_add_signed(step);
                let passes = newest.is_none_or(|newest| at > newest);
                prop_assert_eq!(filter.accept(Seq::new((at % 65_536) as u16)), passes);
                newest = newest.max(Some(at));
            }
        }
    }
}
