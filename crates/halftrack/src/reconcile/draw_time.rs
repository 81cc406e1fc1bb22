//! [`DrawTime`]: the moment at which a member of the group is drawn, between render time and prediction time.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{ServerTime, Timestamp};

/// How far behind prediction time a member is drawn.
///
/// A body that joins the group is drawn at render time, a few hundred milliseconds behind. An offset that bridged the
/// distance would drag it through walls, so its *time* runs faster instead, and slower when it leaves: it is drawn on its
/// simulated path all the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DrawTime {
    behind: Duration,
    aim: Aim,
    now: Timestamp,
}

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Aim {
    /// To prediction time.
    Present,
    /// To render time.
    Past,
}

impl DrawTime {
    /// Draw time runs at 1.5 or 0.5 times the rate of time: a body that is late by a quarter of a second is there after half
    /// a second, and its speed on screen still looks like its own.
    const SLEW: u32 = 2;

    /// So far behind prediction time at `now`, on the way to it.
    pub(super) const fn behind(now: Timestamp, behind: Duration) -> Self {
        Self { behind, aim: Aim::Present, now }
    }

    pub(super) fn aim(&mut self, aim: Aim) {
        self.aim = aim;
    }

    /// Brings it to `now`.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let slewed = now.saturating_since(self.now) / Self::SLEW;
        self.now = self.now.max(now);
        self.behind = match self.aim {
            Aim::Present => self.behind.saturating_sub(slewed),
            Aim::Past => self.behind.saturating_add(slewed),
        };
    }

    /// The moment at which the member is drawn, when prediction is at `time`.
    pub(super) fn at(&self, time: ServerTime) -> ServerTime {
        time - self.behind
    }

    /// How far behind prediction time that is.
    pub(super) const fn lag(&self) -> Duration {
        self.behind
    }

    /// Whether it is prediction time.
    pub(super) const fn is_present(&self) -> bool {
        self.behind.is_zero()
    }

    /// Whether it goes to render time, and has come to `render`.
    pub(super) fn has_left(&self, time: ServerTime, render: Option<ServerTime>) -> bool {
        self.aim == Aim::Past && render.is_none_or(|render| self.at(time) <= render)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn draw_time_runs_at_one_and_a_half_and_at_half_the_rate() {
        let start = Timestamp::from_micros(1_000_000);
        let mut draw = DrawTime::behind(start, ms(250));
        draw.advance(start + ms(100));
        assert_eq!(draw.lag(), ms(200));
        draw.advance(start + ms(50));
        assert_eq!(draw.lag(), ms(200), "an earlier call changes nothing");
        draw.advance(start + ms(500));
        assert!(draw.is_present());
        draw.aim(Aim::Past);
        draw.advance(start + ms(700));
        assert_eq!(draw.lag(), ms(100));
        let time = ServerTime::from_micros(5_000_000);
        assert!(!draw.has_left(time, Some(ServerTime::from_micros(4_899_999))));
        assert!(draw.has_left(time, Some(ServerTime::from_micros(4_900_000))));
    }
}
