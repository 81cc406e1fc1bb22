//! A rate with a burst, and whether something still fits into it. Knows no clock: it is told the time.

use core::time::Duration;

use halftrack::Timestamp;

/// So many per second in the long run, so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) per_second: u64,
    pub(super) burst: u64,
}

impl Rate {
    /// One whose burst is what comes in `span`, and at least one.
    pub(super) fn over(per_second: u64, span: Duration) -> Self {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self { per_second, burst: (per_second.saturating_mul(millis) / 1_000).max(1) }
    }
}

/// What has been taken and not been allowed again. It keeps that, and not what is left: so another rate can
/// be asked for at any time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// In millionths.
    taken: u64,
    at: Timestamp,
}

impl Bucket {
    const ONE: u64 = 1_000_000;

    /// Takes `count`, if so many are left.
    pub(super) fn take(&mut self, now: Timestamp, rate: Rate, count: u64) -> bool {
        self.settle(now, rate);
        let taken = self.taken.saturating_add(count.saturating_mul(Self::ONE));
        let fits = taken <= rate.burst.saturating_mul(Self::ONE);
        if fits {
            self.taken = taken;
        }
        fits
    }

    /// Whether nothing is missing: then it is as good as a new one.
    pub(super) fn is_whole(&mut self, now: Timestamp, rate: Rate) -> bool {
        self.settle(now, rate);
        self.taken == 0
    }

    fn settle(&mut self, now: Timestamp, rate: Rate) {
        let micros = u64::try_from(now.saturating_since(self.at).as_micros()).unwrap_or(u64::MAX);
        self.taken = self.taken.saturating_sub(micros.saturating_mul(rate.per_second));
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10, burst: 3 };

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut bucket = Bucket::default();
        let taken = |bucket: &mut Bucket, now| (0..9).filter(|_| bucket.take(now, RATE, 1)).count();
        assert_eq!(taken(&mut bucket, at(0)), 3);
        assert_eq!(taken(&mut bucket, at(99)), 0, "a millisecond too early");
        assert_eq!(taken(&mut bucket, at(100)), 1);
        assert_eq!(taken(&mut bucket, at(50)), 0, "time that goes back gives nothing");
        assert!(!bucket.is_whole(at(300), RATE));
        assert!(bucket.is_whole(at(400), RATE));
        assert_eq!(taken(&mut bucket, at(60_000)), 3, "what was not used does not add up");
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut bucket = Bucket::default();
        assert!(!bucket.take(at(0), RATE, 4) && bucket.take(at(0), RATE, 3) && !bucket.take(at(0), RATE, 1));
        let wider = Rate { burst: 5, ..RATE };
        assert!(bucket.take(at(0), wider, 2), "another rate holds at once");
        assert!(!bucket.take(at(0), RATE, u64::MAX), "and no number is too high");
    }

    #[test]
    fn a_burst_is_what_comes_in_a_span() {
        assert_eq!(Rate::over(600, Duration::from_secs(2)), Rate { per_second: 600, burst: 1_200 });
        assert_eq!(Rate::over(1, Duration::from_millis(100)).burst, 1);
    }
}
