//! A client's own time: a clock that is ahead and drifts, and the frames it draws by it.

use std::time::Duration;

use halftrack::Timestamp;

use crate::dice::Dice;

/// When a client draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// So many times a second, from 1 to 1,000.
    Hz(u32),
    /// From 5 to 40 ms after the last time.
    Irregular,
}

/// When a client may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Only when it draws: a page in a browser.
    Frame,
    /// Also when its own timeouts are due, as at the end of a tick: a native program.
    Boundary,
}

/// A clock that shows something else than the lab's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalClock {
    pub(crate) ahead: Duration,
    /// Parts per million that it runs fast.
    pub(crate) ppm: i32,
}

impl LocalClock {
    /// What it shows at `now`.
    pub(crate) fn local(self, now: Timestamp) -> Timestamp {
        let gained = i64::try_from(now.as_micros()).unwrap_or(i64::MAX) / 1_000 * i64::from(self.ppm) / 1_000;
        Timestamp::from_micros((now + self.ahead).as_micros().saturating_add_signed(gained))
    }

    /// The first moment at which it shows `due` or more.
    pub(crate) fn global(self, due: Timestamp) -> Timestamp {
        let shown = u128::from((due - self.ahead).as_micros());
        let rate = u128::try_from(1_000_000 + i64::from(self.ppm)).unwrap_or(1);
        let near = u64::try_from(shown * 1_000_000 / rate).unwrap_or(u64::MAX);
        // Off by what is rounded away, at most a thousandth of the drift.
        let mut at = near.saturating_sub(2);
        while self.local(Timestamp::from_micros(at)) < due {
            at += 1;
        }
        Timestamp::from_micros(at)
    }
}

/// The frames of one client, by its own clock.
#[derive(Clone, Debug)]
pub struct FrameClock {
    frames: Frames,
    origin: Timestamp,
    next: Timestamp,
    dice: Dice,
}

impl FrameClock {
    /// From `local` on. The first frame falls anywhere: a display knows nothing of ticks.
    pub fn new(frames: Frames, local: Timestamp, mut dice: Dice) -> Self {
        let longest = match frames {
            Frames::Hz(hz) => 1_000_000 / u64::from(hz.max(1)),
            Frames::Irregular => 40_000,
        };
        let origin = local + Duration::from_micros(dice.below(longest.max(1)));
        Self { frames, origin, next: origin, dice }
    }

    /// When the next frame is due, by the client's clock.
    pub fn due(&self) -> Timestamp {
        self.next
    }

    /// One was drawn at `local`. Those that were missed are left out.
    pub fn drawn(&mut self, local: Timestamp) {
        self.next = match self.frames {
            Frames::Hz(hz) => {
                let hz = u64::from(hz.max(1));
                let gone = u64::try_from(local.saturating_since(self.origin).as_micros()).unwrap_or(0);
                // Whole microseconds, of a rate that is exact in the long run.
                let next = (gone + 1) * hz / 1_000_000 + 1;
                self.origin + Duration::from_micros(next * 1_000_000 / hz)
            }
            Frames::Irregular => local + Duration::from_micros(5_000 + self.dice.below(35_001)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_read_both_ways() {
        for ppm in [-500, -1, 0, 1, 200, 500] {
            let clock = LocalClock { ahead: Duration::from_secs(3), ppm };
            for micros in (12_345_678..900_000_000).step_by(7_777_777) {
                let now = Timestamp::from_micros(micros);
                let due = clock.local(now);
                let at = clock.global(due);
                assert_eq!(clock.local(at), due, "{ppm} ppm at {micros}");
                assert!(at <= now);
            }
        }
        let fast = LocalClock { ahead: Duration::ZERO, ppm: 200 };
        assert_eq!(fast.local(Timestamp::from_micros(10_000_000)), Timestamp::from_micros(10_002_000));
    }

    #[test]
    fn frames_come_at_their_rate_and_missed_ones_are_left_out() {
        for hz in [30, 50, 60, 144, 1_000] {
            let mut frames = FrameClock::new(Frames::Hz(hz), Timestamp::ZERO, Dice::new(1, "frames"));
            let first = frames.due();
            for count in 1..=u64::from(hz) * 3 {
                frames.drawn(frames.due());
                let exact = first + Duration::from_micros(count * 1_000_000 / u64::from(hz));
                assert_eq!(frames.due(), exact, "frame {count} at {hz} Hz");
            }
            frames.drawn(frames.due() + Duration::from_secs(5));
            assert!(frames.due() > first + Duration::from_secs(8));
            assert!(frames.due() <= first + Duration::from_secs(8) + Duration::from_micros(34_000));
        }
        let mut frames = FrameClock::new(Frames::Irregular, Timestamp::ZERO, Dice::new(1, "frames"));
        for _ in 0..1_000 {
            let before = frames.due();
            frames.drawn(before);
            let span = frames.due().saturating_since(before);
            assert!((5_000..=40_000).contains(&span.as_micros()));
        }
    }
}
