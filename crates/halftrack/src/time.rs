//! The two timelines, in whole microseconds: the caller's monotonic clock and the server's.
//!
//! They are different types because mixing them up is the oldest bug of netcode. Neither knows a clock: time
//! comes in as an argument, its origin is the caller's business.

use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

macro_rules! timeline {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(u64);

        impl $name {
            /// The origin of this timeline.
            pub const ZERO: Self = Self(0);

            /// The moment `micros` microseconds after the origin.
            pub const fn from_micros(micros: u64) -> Self {
                Self(micros)
            }

            /// Microseconds since the origin.
            pub const fn as_micros(self) -> u64 {
                self.0
            }

            /// How long after `earlier` this is; zero when it is not after it.
            pub const fn saturating_since(self, earlier: Self) -> Duration {
                Duration::from_micros(self.0.saturating_sub(earlier.0))
            }

            /// The distance to `other`, whichever of the two is later.
            pub const fn abs_diff(self, other: Self) -> Duration {
                Duration::from_micros(self.0.abs_diff(other.0))
            }
        }

        impl Add<Duration> for $name {
            type Output = Self;

            /// Saturates at the end of the timeline, 584,000 years on.
            fn add(self, span: Duration) -> Self {
                Self(self.0.saturating_add(whole_micros(span)))
            }
        }

        impl Sub<Duration> for $name {
            type Output = Self;

            /// Saturates at the origin.
            fn sub(self, span: Duration) -> Self {
                Self(self.0.saturating_sub(whole_micros(span)))
            }
        }
    };
}

timeline! {
    /// A moment of the caller's own monotonic clock, in microseconds from an origin the caller chose.
    ///
    /// ```
    /// use core::time::Duration;
    /// use halftrack::Timestamp;
    ///
    /// let start = Timestamp::from_micros(1_000);
    /// let later = start + Duration::from_millis(16);
    /// assert_eq!(later.saturating_since(start), Duration::from_millis(16));
    /// assert_eq!(start.saturating_since(later), Duration::ZERO);
    /// ```
    Timestamp
}

timeline! {
    /// A moment of the server's simulation clock, in microseconds: tick `k` is `[k * C, (k + 1) * C)`.
    ///
    /// A client's *prediction time* is of this type too: its estimate of the server's clock plus its lead.
    ///
    /// ```
    /// use halftrack::{Cadence, ServerTime, Tick};
    ///
    /// let cadence = Cadence::default();
    /// assert_eq!(cadence.tick_at(ServerTime::from_micros(2_149_999)), Tick::new(42));
    /// ```
    ServerTime
}

/// A span in whole microseconds, cut off below that and saturating above.
pub(crate) fn whole_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// `left - right`, saturating.
pub(crate) fn signed_difference(left: u64, right: u64) -> i64 {
    let size = i64::try_from(left.abs_diff(right)).unwrap_or(i64::MAX);
    if left >= right { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let end = ServerTime::from_micros(u64::MAX);
        assert_eq!(end + Duration::from_micros(1), end);
        assert_eq!(end + Duration::MAX, end);
        assert_eq!(ServerTime::ZERO - Duration::from_micros(1), ServerTime::ZERO);
    }

    proptest! {
        #[test]
        fn adding_and_taking_away_is_exact(at in 0..u64::MAX / 2, span in 0..u64::MAX / 2) {
            let start = Timestamp::from_micros(at);
            let end = start + Duration::from_micros(span);
            prop_assert_eq!(end.as_micros(), at + span);
            prop_assert_eq!(end.saturating_since(start), Duration::from_micros(span));
            prop_assert_eq!(start.abs_diff(end), end.abs_diff(start));
            prop_assert_eq!(end - Duration::from_micros(span), start);
        }
    }
}
