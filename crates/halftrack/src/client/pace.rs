//! The host's habits: frames only, and at which period, or timeouts too.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{Timestamp, whole_micros};

/// The reason for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A frame, or a call of the application during one.
    Frame,
    /// A timeout that the client asked for.
    #[default]
    Timeout,
    /// Bytes arrived.
    Arrival,
}

/// Recent frames and timeouts of the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pace {
    last_frame: Option<Timestamp>,
    /// Microseconds between recent frames, round and round.
    intervals: [u32; Self::FRAMES],
    frames: usize,
    /// The last ticks that ended: a one for each whose end the host woke up for.
    woken: u16,
}

impl Default for Pace {
    /// A host is assumed to wake up for timeouts until it misses them.
    fn default() -> Self {
        Self { last_frame: None, intervals: [0; Self::FRAMES], frames: 0, woken: u16::MAX }
    }
}

impl Pace {
    const FRAMES: usize = 32;
    /// A host that wakes up for a tick's end does so within this time.
    const MISSED: Duration = Duration::from_millis(2);
    /// Frames that differ by more, but for one in eight at either end, keep no time.
    const UNEVEN: u32 = 4_000;

    /// A frame is drawn.
    pub(super) fn frame(&mut self, now: Timestamp) {
        if let Some(last) = self.last_frame.filter(|last| now > *last) {
            let interval = u32::try_from(whole_micros(now.saturating_since(last))).unwrap_or(u32::MAX);
            if let Some(slot) = self.intervals.get_mut(self.frames % Self::FRAMES) {
                *slot = interval;
            }
            self.frames = self.frames.wrapping_add(1);
        }
        self.last_frame = self.last_frame.max(Some(now));
    }

    /// The end of a tick was found to have passed, so long ago.
    pub(super) fn tick_ended(&mut self, occasion: Occasion, ago: Duration) {
        // An arrival at the boundary may just have been quicker than the timeout.
        if occasion != Occasion::Arrival || ago >= Self::MISSED {
            self.woken = self.woken << 1 | u16::from(occasion == Occasion::Timeout);
        }
    }

    /// How far frames are apart, if input leaves only with them and they keep time.
    pub(super) fn period(&self) -> Option<Duration> {
        if self.frames < Self::FRAMES || self.woken.count_ones() >= u16::BITS / 2 {
            return None;
        }
        let mut sorted = self.intervals;
        sorted.sort_unstable();
        let at = |eighths: usize| sorted.get(Self::FRAMES * eighths / 8).copied().unwrap_or(0);
        let even = at(7).saturating_sub(at(1)) <= Self::UNEVEN;
        even.then(|| Duration::from_micros(u64::from(at(4).max(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(intervals: impl Iterator<Item = u64>) -> Pace {
        let (mut pace, mut now) = (Pace::default(), Timestamp::from_micros(5));
        assert_eq!(pace.period(), None);
        (0..16).for_each(|_| pace.tick_ended(Occasion::Frame, Duration::ZERO));
        pace.frame(now);
        for interval in intervals {
            now = now + Duration::from_micros(interval);
            pace.frame(now);
        }
        pace
    }

    #[test]
    fn even_frames_have_a_period_and_a_hitch_changes_nothing() {
        assert_eq!(drawn((0..31).map(|_| 16_667)).period(), None, "not enough to tell");
        assert_eq!(drawn((0..32).map(|_| 16_667)).period(), Some(Duration::from_micros(16_667)));
        let hitch = (0..40).map(|frame| if frame == 20 { 300_000 } else { 16_667 });
        assert_eq!(drawn(hitch).period(), Some(Duration::from_micros(16_667)));
        assert_eq!(drawn((0..40).map(|frame| 5_000 + frame % 7 * 5_000)).period(), None);
    }

    #[test]
    fn who_is_woken_does_not_wait_for_frames() {
        let mut pace = drawn((0..40).map(|_| 16_667));
        assert_eq!(pace.period(), Some(Duration::from_micros(16_667)));
        let none = Duration::ZERO;
        (0..8).for_each(|_| pace.tick_ended(Occasion::Timeout, none));
        (0..8).for_each(|_| pace.tick_ended(Occasion::Arrival, Pace::MISSED - Duration::from_micros(1)));
        assert_eq!(pace.period(), None);
        (0..5).for_each(|_| pace.tick_ended(Occasion::Frame, none));
        (0..4).for_each(|_| pace.tick_ended(Occasion::Arrival, Pace::MISSED));
        assert_eq!(pace.period(), Some(Duration::from_micros(16_667)));
    }
}
