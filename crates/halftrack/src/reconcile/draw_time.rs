//! [`DrawTime`]: the moment at which a member of the group is drawn, between render time and prediction time.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{ServerTime, Timestamp};

/// How far behind prediction time a member is drawn.
///
/// A body that joins the group is drawn at render time, a few hundred milliseconds behind. An offset that bridged the
/// distance would drag it through walls, so its *time* runs faster instead, and slower when it leaves: it is drawn on its
/// simulated path all the way. Render time jumps ahead after a stall of the link, so a body that leaves may have to run
/// after it.
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

    /// Brings it to `now`. Render time is so far behind prediction time then; `None` while nothing is drawn there.
    pub(super) fn advance(&mut self, now: Timestamp, render: Option<Duration>) {
        let slewed = now.saturating_since(self.now) / Self::SLEW;
        self.now = self.now.max(now);
        let goal = match self.aim {
            Aim::Present => Duration::ZERO,
            Aim::Past => render.unwrap_or(self.behind),
        };
        self.behind = if self.behind > goal {
            self.behind.saturating_sub(slewed).max(goal)
        } else {
            self.behind.saturating_add(slewed).min(goal)
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

    /// Whether it goes to render time, so far behind prediction time, and is there.
    pub(super) fn has_left(&self, render: Option<Duration>) -> bool {
        self.aim == Aim::Past && render.is_none_or(|render| self.behind == render)
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
        draw.advance(start + ms(100), None);
        assert_eq!(draw.lag(), ms(200));
        draw.advance(start + ms(50), None);
        assert_eq!(draw.lag(), ms(200), "an earlier call changes nothing");
        draw.advance(start + ms(500), None);
        assert!(draw.is_present());
        draw.aim(Aim::Past);
        draw.advance(start + ms(600), Some(ms(120)));
        assert!(draw.lag() == ms(50) && !draw.has_left(Some(ms(120))));
        draw.advance(start + ms(800), Some(ms(120)));
        assert!(draw.lag() == ms(120) && draw.has_left(Some(ms(120))), "no further than render time");
        assert_eq!(draw.at(ServerTime::from_micros(5_000_000)), ServerTime::from_micros(4_880_000));
    }

    #[test]
    fn a_body_that_leaves_runs_after_a_render_time_that_has_jumped_ahead() {
        let start = Timestamp::from_micros(1_000_000);
        let mut draw = DrawTime::behind(start, ms(900));
        draw.aim(Aim::Past);
        draw.advance(start + ms(100), Some(ms(100)));
        assert!(draw.lag() == ms(850) && !draw.has_left(Some(ms(100))));
        draw.advance(start + ms(1_700), Some(ms(100)));
        assert!(draw.lag() == ms(100) && draw.has_left(Some(ms(100))));
        assert!(draw.has_left(None), "nothing is drawn at render time");
    }
}
