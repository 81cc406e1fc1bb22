//! The prediction clock: the one time that the predictor knows. Knows nothing of packets or of how its rate is chosen.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{ServerTime, Timestamp};

/// Millionths: a rate of 1 ppm gains one microsecond per second.
const MILLION: u64 = 1_000_000;

/// How much faster than monotonic time a prediction clock runs, in parts per million, within +-20 %.
///
/// ```
/// use halftrack::Rate;
///
/// assert_eq!(Rate::from_ppm(50_000).ppm(), 50_000);
/// assert_eq!(Rate::from_ppm(900_000), Rate::FASTEST);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "i32", into = "i32")]
pub struct Rate(i32);

impl From<i32> for Rate {
    fn from(ppm: i32) -> Self {
        Self::from_ppm(ppm)
    }
}

impl From<Rate> for i32 {
    fn from(rate: Rate) -> Self {
        rate.0
    }
}

impl Rate {
    /// As fast as monotonic time.
    pub const ZERO: Self = Self(0);
    /// 20 % fast: for late input and errors over 40 ms. A tank that moves 20 % too fast for a moment is seen by
    /// few; more is seen by all.
    pub const FASTEST: Self = Self(200_000);
    /// 20 % slow.
    pub const SLOWEST: Self = Self(-200_000);

    /// `ppm` parts per million, brought into range.
    pub const fn from_ppm(ppm: i32) -> Self {
        if ppm > Self::FASTEST.0 {
            Self::FASTEST
        } else if ppm < Self::SLOWEST.0 {
            Self::SLOWEST
        } else {
            Self(ppm)
        }
    }

    /// Parts per million.
    pub const fn ppm(self) -> i32 {
        self.0
    }

    /// Prediction microseconds in a million monotonic ones.
    const fn per_million(self) -> u64 {
        MILLION.saturating_add_signed(self.0 as i64)
    }
}

/// Prediction time as an integer function of monotonic time.
///
/// It is computed from an anchor and never added up call by call, so how often it is read changes nothing. The
/// anchor moves only when the rate does, and carries the fraction of a microsecond along: over any history of
/// rates, not one is lost.
///
/// ```
/// use halftrack::{PredictionClock, Rate, ServerTime, Timestamp};
///
/// let mut clock = PredictionClock::new(Timestamp::ZERO, ServerTime::from_micros(7_000));
/// clock.set_rate(Timestamp::from_micros(1_000), Rate::from_ppm(50_000));
/// // One second later it has gained 50 ms.
/// assert_eq!(clock.at(Timestamp::from_micros(1_001_000)), ServerTime::from_micros(1_058_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredictionClock {
    anchor_now: Timestamp,
    anchor: ServerTime,
    /// Millionths of a microsecond past `anchor`, below a million.
    carry: u64,
    rate: Rate,
}

impl PredictionClock {
    /// Whether a loaded clock can have been saved by one.
    pub(crate) fn is_sound(&self) -> bool {
        self.carry < MILLION
    }
}

impl PredictionClock {
    /// A clock that shows `time` at `now` and runs at rate zero.
    pub const fn new(now: Timestamp, time: ServerTime) -> Self {
        Self { anchor_now: now, anchor: time, carry: 0, rate: Rate::ZERO }
    }

    /// What it shows at `now`; before its anchor, what it shows there.
    pub fn at(&self, now: Timestamp) -> ServerTime {
        self.read(now).0
    }

    /// The rate it runs at.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Runs at `rate` from `now` on.
    pub fn set_rate(&mut self, now: Timestamp, rate: Rate) {
        if rate != self.rate {
            let (time, carry) = self.read(now);
            *self = Self { anchor_now: now.max(self.anchor_now), anchor: time, carry, rate };
        }
    }

    fn read(&self, now: Timestamp) -> (ServerTime, u64) {
        let elapsed = now.as_micros().saturating_sub(self.anchor_now.as_micros());
        let per_million = self.rate.per_million();
        // Whole seconds gain whole microseconds: taken apart, no product can overflow.
        let whole = (elapsed / MILLION).saturating_mul(per_million);
        let parts = elapsed % MILLION * per_million + self.carry;
        let micros = whole.saturating_add(parts / MILLION);
        (self.anchor + Duration::from_micros(micros), parts % MILLION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn before_its_anchor_it_stands() {
        let clock = PredictionClock::new(at(500), ServerTime::from_micros(9));
        assert_eq!(clock.at(at(0)), ServerTime::from_micros(9));
        assert_eq!(clock.at(at(501)), ServerTime::from_micros(10));
    }

    #[test]
    fn a_rate_set_in_the_past_takes_effect_at_the_anchor() {
        let mut clock = PredictionClock::new(at(500), ServerTime::from_micros(9));
        clock.set_rate(at(0), Rate::FASTEST);
        assert_eq!(clock.at(at(510)), ServerTime::from_micros(21));
    }

    #[test]
    fn a_thousand_years_do_not_overflow() {
        let mut clock = PredictionClock::new(at(0), ServerTime::ZERO);
        clock.set_rate(at(0), Rate::FASTEST);
        let years = 1_000 * 365 * 86_400 * MILLION;
        assert_eq!(clock.at(at(years)).as_micros(), years / 10 * 12);
        assert_eq!(clock.at(at(u64::MAX)).as_micros(), u64::MAX);
    }

    #[test]
    fn rates_are_clamped_just_outside_and_kept_just_inside() {
        assert_eq!(Rate::from_ppm(199_999).ppm(), 199_999);
        assert_eq!(Rate::from_ppm(200_001), Rate::FASTEST);
        assert_eq!(Rate::from_ppm(-199_999).ppm(), -199_999);
        assert_eq!(Rate::from_ppm(i32::MIN), Rate::SLOWEST);
    }

    proptest! {
        /// Against exact arithmetic on the whole history: the sum of elapsed * rate, divided once.
        #[test]
        fn no_fraction_is_lost_over_any_history_of_rates(
            history in prop::collection::vec((0u64..5_000_000, -250_000i32..250_000), 0..60),
        ) {
            let mut clock = PredictionClock::new(at(0), ServerTime::ZERO);
            let (mut now, mut millionths, mut rate) = (0u64, 0u128, 0i64);
            for (wait, ppm) in history {
                now += wait;
                millionths += u128::from(wait) * u128::try_from(1_000_000 + rate).unwrap();
                prop_assert_eq!(u128::from(clock.at(at(now)).as_micros()), millionths / 1_000_000);
                rate = i64::from(ppm.clamp(-200_000, 200_000));
                clock.set_rate(at(now), Rate::from_ppm(ppm));
            }
        }

        #[test]
        fn it_never_runs_backwards(rate in -200_000i32..=200_000, start in 0u64..1_000, step in 0u64..100) {
            let mut clock = PredictionClock::new(at(0), ServerTime::ZERO);
            clock.set_rate(at(500), Rate::from_ppm(rate));
            prop_assert!(clock.at(at(start)) <= clock.at(at(start + step)));
        }
    }
}
