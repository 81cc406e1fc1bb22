//! How one offset fades: a pure function of the time since it began. Knows neither poses nor states.
//!
//! The speed is `min(cap, size / min(tau, time left))`, solved in closed form, so how often it is read changes
//! nothing. Three stretches, each met without a jump in speed:
//!
//! ```text
//! size |\            capped: straight, at the cap
//!      | \
//!      |  `.         exponential: time constant tau
//!      |    `-.
//!      |       `-.   landing: straight, from one tau before the deadline to exactly zero at it
//!      +----------`--> time
//! ```
//!
//! It reaches zero in time if and only if `size <= cap * budget`; whoever builds one sees to that.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::whole_micros;

/// The fading of a size. Times are in microseconds, as floats: this is a curve, not a clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decay {
    size: f64,
    /// Per microsecond.
    cap: f64,
    tau: f64,
    budget: f64,
}

impl Decay {
    /// Whether a loaded decay can have been saved by one.
    pub(super) fn is_sound(&self) -> bool {
        let Self { size, cap, tau, budget } = *self;
        size.is_finite() && cap > 0.0 && tau > 0.0 && tau <= budget && budget.is_finite()
    }
}

impl Decay {
    /// `size` fades at no more than `cap` per second, with time constant `tau`, within `budget`.
    pub(crate) fn new(size: f64, cap: f64, tau: Duration, budget: Duration) -> Self {
        let budget = micros(budget);
        Self { size, cap: cap / 1e6, tau: micros(tau).min(budget), budget }
    }

    /// The part that is left `elapsed` after it began: from 1 down to exactly 0 at the budget.
    pub(crate) fn fraction(&self, elapsed: Duration) -> f64 {
        let elapsed = micros(elapsed);
        if elapsed >= self.budget || self.size <= 0.0 {
            return 0.0;
        }
        // spec: CORR-02
        let landing = self.budget - self.tau;
        let capped_until = (self.size / self.cap - self.tau).clamp(0.0, landing);
        let after_cap = self.size - self.cap * elapsed.min(capped_until);
        let fading = (elapsed.min(landing) - capped_until).max(0.0);
        let faded = after_cap * libm::exp(-fading / self.tau);
        let left = if elapsed > landing { (self.budget - elapsed) / self.tau } else { 1.0 };
        faded * left / self.size
    }
}

fn micros(span: Duration) -> f64 {
    // Exact below 2^53 microseconds, which is 285 years.
    whole_micros(span) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_small_one_fades_exponentially_and_lands_at_the_deadline() {
        let decay = Decay::new(0.1, 8.0, ms(100), ms(400));
        assert_eq!(decay.fraction(ms(0)), 1.0);
        assert!((decay.fraction(ms(100)) - (-1.0f64).exp()).abs() < 1e-12);
        assert!((decay.fraction(ms(350)) - (-3.0f64).exp() * 0.5).abs() < 1e-12);
        assert!(decay.fraction(Duration::from_micros(399_999)) > 0.0);
        assert_eq!(decay.fraction(ms(400)), 0.0);
        assert_eq!(decay.fraction(Duration::MAX), 0.0);
    }

    #[test]
    fn a_large_one_runs_at_the_cap_first() {
        let decay = Decay::new(2.0, 8.0, ms(100), ms(400));
        // Capped until 8 m/s * 100 ms = 0.8 m are left, that is for 150 ms.
        assert!((decay.fraction(ms(100)) * 2.0 - 1.2).abs() < 1e-12);
        assert!((decay.fraction(ms(150)) * 2.0 - 0.8).abs() < 1e-12);
        assert!(decay.fraction(ms(160)) * 2.0 > 0.72);
    }

    #[test]
    fn the_largest_that_fits_runs_at_the_cap_to_the_end() {
        let decay = Decay::new(3.2, 8.0, ms(100), ms(400));
        for at in [100, 200, 300, 350, 399] {
            assert!(
                (decay.fraction(ms(at)) * 3.2 - 8.0 * (0.4 - at as f64 / 1e3)).abs() < 1e-9,
                "at {at} ms"
            );
        }
    }

    #[test]
    fn nothing_stays_nothing() {
        assert_eq!(Decay::new(0.0, 8.0, ms(100), ms(400)).fraction(ms(0)), 0.0);
    }

    proptest! {
        /// The contract: never grows, never faster than the cap, zero at the deadline and, as far as floats go, not before.
        #[test]
        fn it_shrinks_within_the_cap_and_ends_at_the_deadline(
            cap in 0.01f64..100.0,
            tau in 1u64..1_000,
            budget in 1u64..2_000,
            reach in 0.0001f64..=1.0,
            frames in prop::collection::vec(1u64..40_000, 1..200),
        ) {
            let (tau, budget) = (ms(tau), ms(budget));
            let size = cap * budget.as_secs_f64() * reach;
            let decay = Decay::new(size, cap, tau, budget);
            let (mut at, mut last) = (Duration::ZERO, size);
            prop_assert_eq!(decay.fraction(at), 1.0);
            for frame in frames {
                let span = Duration::from_micros(frame);
                at += span;
                let left = decay.fraction(at) * size;
                prop_assert!(left.is_finite() && left >= 0.0);
                prop_assert!(left <= last, "grew from {last} to {left}");
                prop_assert!(last - left <= cap * span.as_secs_f64() * (1.0 + 1e-6) + 1e-12);
                // After seven hundred time constants there is no float left that is not zero.
                let underflown = at.as_micros() > 700 * tau.as_micros();
                prop_assert!(left == 0.0 || at < budget);
                prop_assert!(left > 0.0 || at >= budget || underflown);
                last = left;
            }
            prop_assert_eq!(decay.fraction(budget), 0.0);
        }
    }
}
