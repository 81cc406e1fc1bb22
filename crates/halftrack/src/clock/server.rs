//! What the server's clock shows, estimated from round trips. Knows samples, neither packets nor sessions.
//!
//! Of the samples of the last seconds the one with the shortest round trip is believed: a queue can only make a
//! round trip longer, so the shortest is the one whose two halves are most nearly equal. The estimate is slewed
//! towards it by 5 %, and never runs backwards.

use core::time::Duration;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::time::{ServerTime, Timestamp, signed_difference, whole_micros};

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSample {
    /// When the client sent what the server echoes.
    pub sent: Timestamp,
    /// How long the server held it before it answered.
    pub held: Duration,
    /// What the server's clock showed when it answered.
    pub server: ServerTime,
    /// When the answer arrived.
    pub received: Timestamp,
}

impl ClockSample {
    /// How long it was on the way, there and back.
    pub fn round_trip(&self) -> Duration {
        self.received.saturating_since(self.sent).saturating_sub(self.held)
    }

    /// The server's clock less the client's, in microseconds, if both ways took equally long.
    fn offset_micros(&self) -> i64 {
        let half = whole_micros(self.round_trip()) / 2;
        let server = self.server.as_micros().saturating_add(half);
        signed_difference(server, self.received.as_micros())
    }

    /// How wrong it may be by now: half the round trip, and 100 ppm of its age for clocks that drift apart.
    fn doubt_micros(&self, now: Timestamp) -> u64 {
        let age = whole_micros(now.saturating_since(self.received));
        (whole_micros(self.round_trip()) / 2).saturating_add(age / 10_000)
    }
}

/// An estimate of the server's clock.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{ClockSample, ServerClock, ServerTime, Timestamp};
///
/// let at = Timestamp::from_micros;
/// let mut clock = ServerClock::default();
/// assert_eq!(clock.at(at(0)), None, "nothing is known yet");
/// clock.sample(ClockSample {
///     sent: at(0),
///     held: Duration::from_millis(10),
///     server: ServerTime::from_micros(700_000),
///     received: at(50_000),
/// });
/// // 40 ms on the way: the answer is 20 ms old.
/// assert_eq!(clock.at(at(50_000)), Some(ServerTime::from_micros(720_000)));
/// assert_eq!(clock.round_trip(), Some(Duration::from_millis(40)));
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServerClock {
    samples: VecDeque<ClockSample>,
    estimate: Option<Estimate>,
    refused: u64,
    steps: u64,
}

/// From `now` on, `time` passes as monotonic time does, plus `error` spread out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Estimate {
    now: Timestamp,
    time: ServerTime,
    /// Microseconds still to be slewed.
    error: i64,
    /// No earlier time is ever shown: where it stood when it was found to be far ahead.
    floor: ServerTime,
}

impl Estimate {
    /// One microsecond of correction in 20.
    const SLEW_DIVISOR: u64 = 20;

    fn unbounded_at(&self, now: Timestamp) -> ServerTime {
        let elapsed = whole_micros(now.saturating_since(self.now));
        let slewed = self.error.unsigned_abs().min(elapsed / Self::SLEW_DIVISOR);
        let passed = self.time + Duration::from_micros(elapsed);
        let slewed = Duration::from_micros(slewed);
        if self.error < 0 { passed - slewed } else { passed + slewed }
    }

    fn at(&self, now: Timestamp) -> ServerTime {
        self.unbounded_at(now).max(self.floor)
    }
}

impl ServerClock {
    /// Whether a loaded clock can have been saved by one.
    pub(crate) fn is_sound(&self) -> bool {
        self.samples.len() <= Self::MAX_SAMPLES
    }
}

impl ServerClock {
    /// How long a sample is believed. A quiet moment comes along within this, and a changed route is learnt by then.
    const WINDOW: Duration = Duration::from_secs(5);
    /// What [`Self::mean_round_trip`] covers: some twenty snapshots, and short enough to follow a change of the link.
    const RECENT: Duration = Duration::from_secs(1);
    /// Samples kept: more than a snapshot's rate times the window would add nothing.
    const MAX_SAMPLES: usize = 128;
    /// Beyond this error the estimate is set, not slewed: 5 % would take ten seconds.
    const STEP: u64 = 500_000;
    /// What clocks that are read by threads may be wrong by.
    const SLACK: u64 = 5_000;
    /// A longer round trip is no round trip but a mistake.
    const LONGEST: Duration = Duration::from_secs(10);

    /// Takes a sample. Samples that cannot be are counted and forgotten.
    pub fn sample(&mut self, sample: ClockSample) {
        // spec: CLOCK-01
        let possible = sample.received >= sample.sent + sample.held && sample.round_trip() <= Self::LONGEST;
        if !possible {
            self.refused += 1;
            return;
        }
        let now = sample.received;
        while self.samples.len() >= Self::MAX_SAMPLES
            || self.samples.front().is_some_and(|oldest| now.saturating_since(oldest.received) > Self::WINDOW)
        {
            self.samples.pop_front();
        }
        // A round trip is right to within half of itself. What cannot be right together with the newest is of before one
        // of the clocks jumped.
        let newest = sample.doubt_micros(now).saturating_add(Self::SLACK);
        self.samples.retain(|older| {
            let apart = older.offset_micros().abs_diff(sample.offset_micros());
            apart <= newest.saturating_add(older.doubt_micros(now))
        });
        self.samples.push_back(sample);
        let best =
            self.samples.iter().min_by_key(|sample| sample.doubt_micros(now)).copied().unwrap_or(sample);
        self.aim(now, best.offset_micros());
    }

    fn aim(&mut self, now: Timestamp, offset: i64) {
        let target = ServerTime::from_micros(now.as_micros().saturating_add_signed(offset));
        let Some(estimate) = self.estimate else {
            self.estimate = Some(Estimate { now, time: target, error: 0, floor: ServerTime::ZERO });
            return;
        };
        let time = estimate.unbounded_at(now);
        let error = signed_difference(target.as_micros(), time.as_micros());
        self.estimate = Some(if error.unsigned_abs() > Self::STEP {
            self.steps += 1;
            Estimate { now, time: target, error: 0, floor: estimate.at(now) }
        } else {
            Estimate { now, time, error, floor: estimate.floor }
        });
    }

    /// What the server's clock shows at `now`, as far as is known; `None` before the first sample.
    pub fn at(&self, now: Timestamp) -> Option<ServerTime> {
        // spec: CLOCK-02
        self.estimate.map(|estimate| estimate.at(now))
    }

    /// The shortest round trip of the last seconds.
    pub fn round_trip(&self) -> Option<Duration> {
        self.samples.iter().map(ClockSample::round_trip).min()
    }

    /// The mean round trip over the second before the newest sample: what a player calls ping. The clock itself uses
    /// [`Self::round_trip`], which ignores queues and jitter.
    pub fn mean_round_trip(&self) -> Option<Duration> {
        let newest = self.samples.back()?.received;
        let recent =
            self.samples.iter().filter(|sample| newest.saturating_since(sample.received) <= Self::RECENT);
        let (sum, count) = recent.fold((Duration::ZERO, 0), |(sum, count), sample| {
            (sum.saturating_add(sample.round_trip()), count + 1)
        });
        sum.checked_div(count)
    }

    /// Forgets everything: another server, or the same one in a new time epoch.
    pub fn reset(&mut self) {
        self.samples.clear();
        self.estimate = None;
    }

    /// Samples that could not be.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Times the estimate was set rather than slewed.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    /// The server's clock is this much ahead.
    const AHEAD: u64 = 3_000_000;

    /// A round trip that starts at `sent`, `up` and `down` on the way.
    fn trip(sent: u64, up: u64, down: u64) -> ClockSample {
        ClockSample {
            sent: at(sent),
            held: Duration::from_micros(7_000),
            server: ServerTime::from_micros(sent + up + 7_000 + AHEAD),
            received: at(sent + up + 7_000 + down),
        }
    }

    fn error(clock: &ServerClock, now: u64) -> i64 {
        signed_difference(clock.at(at(now)).unwrap().as_micros(), now + AHEAD)
    }

    #[test]
    fn equal_ways_give_the_exact_time() {
        let mut clock = ServerClock::default();
        clock.sample(trip(1_000, 30_000, 30_000));
        assert_eq!(error(&clock, 68_000), 0);
        assert_eq!(error(&clock, 9_000_000), 0, "and it goes on without samples");
    }

    #[test]
    fn the_mean_round_trip_follows_the_last_second_and_not_the_best_sample() {
        let mut clock = ServerClock::default();
        assert_eq!(clock.mean_round_trip(), None);
        clock.sample(trip(0, 5_000, 5_000));
        assert_eq!(clock.mean_round_trip(), Some(Duration::from_millis(10)));
        for sample in 0..20 {
            let jitter = if sample % 2 == 0 { 10_000 } else { 30_000 };
            clock.sample(trip(1_500_000 + sample * 50_000, 50_000 + jitter, 50_000));
        }
        assert_eq!(clock.round_trip(), Some(Duration::from_millis(10)), "the best of five seconds");
        assert_eq!(clock.mean_round_trip(), Some(Duration::from_millis(120)), "the mean of the last one");
    }

    #[test]
    fn the_shortest_round_trip_is_believed() {
        let mut clock = ServerClock::default();
        clock.sample(trip(0, 30_000, 90_000));
        assert_eq!(error(&clock, 127_000), -30_000);
        clock.sample(trip(200_000, 30_000, 32_000));
        let found = 269_000;
        assert_eq!(error(&clock, found), -30_000, "no jump");
        assert_eq!(error(&clock, found + 100_000), -25_000, "5 % at a time");
        assert_eq!(error(&clock, found + 580_000), -1_000, "half the rest of the difference");
        clock.sample(trip(1_000_000, 80_000, 30_000));
        assert_eq!(error(&clock, 1_200_000), -1_000, "a longer one changes nothing");
    }

    #[test]
    fn after_the_window_a_longer_one_is_believed() {
        let mut clock = ServerClock::default();
        clock.sample(trip(0, 20_000, 20_000));
        for second in 1..=6 {
            clock.sample(trip(second * 1_000_000, 60_000, 20_000));
        }
        assert_eq!(clock.round_trip(), Some(Duration::from_millis(80)));
        assert_eq!(error(&clock, 8_000_000), 20_000, "the way there is longer now, and cannot be told apart");
    }

    #[test]
    fn impossible_samples_are_counted_and_change_nothing() {
        let mut clock = ServerClock::default();
        clock.sample(trip(0, 20_000, 20_000));
        let good = trip(100_000, 20_000, 20_000);
        clock.sample(ClockSample { received: at(99_999), ..good });
        clock.sample(ClockSample { held: Duration::from_millis(48), ..good });
        clock.sample(ClockSample { held: Duration::MAX, ..good });
        clock.sample(ClockSample { sent: at(0), received: at(20_000_000), ..good });
        assert_eq!((clock.refused(), error(&clock, 200_000)), (4, 0));
        clock.sample(ClockSample {
            held: Duration::from_millis(47),
            server: ServerTime::from_micros(3_147_000),
            ..good
        });
        assert_eq!(clock.refused(), 4, "nothing on the way is the shortest there is");
    }

    #[test]
    fn a_large_error_is_set_at_once_and_never_backwards() {
        let mut clock = ServerClock::default();
        clock.sample(trip(0, 20_000, 20_000));
        let mut ahead = trip(6_000_000, 20_000, 20_000);
        ahead.server = ahead.server + Duration::from_micros(500_001);
        clock.sample(ahead);
        assert_eq!((clock.steps(), error(&clock, 6_047_000)), (1, 500_001));
        // And back: it stands until the truth has caught up.
        clock.sample(trip(12_000_000, 20_000, 20_000));
        let stands = clock.at(at(12_047_000)).unwrap();
        assert_eq!(clock.at(at(12_500_000)), Some(stands));
        assert_eq!((clock.steps(), error(&clock, 12_600_000)), (2, 0));
    }

    #[test]
    fn it_can_be_forgotten() {
        let mut clock = ServerClock::default();
        clock.sample(trip(0, 20_000, 20_000));
        clock.reset();
        assert_eq!((clock.at(at(1)), clock.round_trip()), (None, None));
    }

    proptest! {
        /// Whatever arrives, the estimate never runs backwards, and its memory is bounded.
        #[test]
        fn clock_02_the_estimate_never_runs_backwards(
            trips in prop::collection::vec((0u64..400_000, 0u64..300_000, 0u64..300_000, 0u64..2_000_000), 1..300),
        ) {
            let (mut clock, mut sent, mut now, mut last) = (ServerClock::default(), 0, 0, ServerTime::ZERO);
            for (wait, up, down, wrong) in trips {
                sent += wait;
                let mut sample = trip(sent, up, down);
                if wrong > 1_900_000 {
                    sample.server = sample.server + Duration::from_micros(wrong);
                }
                now = now.max(sample.received.as_micros());
                sample.received = at(now);
                clock.sample(sample);
                for later in [0, 1, 5_000] {
                    let shown = clock.at(at(now + later)).unwrap();
                    prop_assert!(shown >= last);
                    last = shown;
                }
                now += 5_000;
                prop_assert!(clock.samples.len() <= ServerClock::MAX_SAMPLES);
            }
        }
    }
}
