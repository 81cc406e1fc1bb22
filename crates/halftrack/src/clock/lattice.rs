//! Input that leaves only when a frame is drawn: the lead at which its tick ends just after that frame's next one.
//!
//! Who acts only on frames knows at each what will be until the next: a tick that ends before it is complete, and is sent
//! with this frame, before its end. Which frame that is depends on the lead in steps: a lead that is a little too short
//! loses a whole frame, one that is a little longer gains nothing, and a rule for smooth spreads would go up and down that
//! saw forever. So the leads are tried that put the end of a tick just after a frame, and the one is taken that costs least
//! over the ticks of late. Knows neither ticks nor packets.

use core::time::Duration;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::clock::cost::{LeastCost, signed_micros};

/// Frames at equal distances, as input has met them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Lattice {
    period: i64,
    /// Of recent ticks: their end on the server's clock less when they were sent by ours, microseconds.
    sent: VecDeque<i64>,
    target: Option<i64>,
}

impl Lattice {
    /// Whether a loaded lattice can have been saved by one.
    pub(crate) fn is_sound(&self) -> bool {
        self.period >= 1 && self.sent.len() <= Self::TICKS
    }
}

impl Lattice {
    /// Ticks that are looked back on: enough to see how frames and ticks fall, few enough to follow it.
    const TICKS: usize = 16;
    /// How long after a frame a tick should end: the lead is not steered to the microsecond, nor are frames drawn so.
    const CLEAR: i64 = 2_000;
    /// What another lead must save, for the present one to be left.
    const WORTH: i64 = 1_500;

    /// Frames that are `period` apart, which is not zero.
    pub(crate) fn new(period: Duration) -> Self {
        let mut lattice = Self { period: 1, sent: VecDeque::with_capacity(Self::TICKS), target: None };
        lattice.set_period(period);
        lattice
    }

    /// Frames are so far apart from here on.
    pub(crate) fn set_period(&mut self, period: Duration) {
        self.period = signed_micros(period).max(1);
    }

    /// A tick was sent so long before its end on the server's clock.
    pub(crate) fn sent(&mut self, before_end: i64) {
        if self.sent.len() >= Self::TICKS {
            self.sent.pop_front();
        }
        self.sent.push_back(before_end);
    }

    /// Forgets what was measured.
    pub(crate) fn clear(&mut self) {
        self.sent.clear();
        self.target = None;
    }

    /// Chooses anew, where `network` is what datagrams needed once they were sent. No lead below `least` is chosen.
    pub(crate) fn choose(&mut self, network: &LeastCost, least: i64) {
        let Some(enough) = network.target() else { return };
        let candidates = self.sent.iter().flat_map(|sent| {
            let frames = (enough - sent).div_euclid(self.period);
            let below = sent.saturating_add(frames.saturating_mul(self.period)).saturating_add(Self::CLEAR);
            // Sent a frame before that: from just above what is enough, to a frame less.
            [below - self.period, below]
        });
        let leads = candidates.map(|lead| lead.max(least));
        let Some((cheapest, best)) = leads.map(|lead| (self.cost(lead, network), lead)).min() else { return };
        // The present one, put on the frames as they fall now.
        let kept = self.target.map(|target| target.saturating_add(self.drift(target)).max(least));
        // One that lies further below than a frame would be late always: that is no bargain at any price.
        let kept = kept.filter(|kept| *kept >= best.saturating_sub(self.period));
        let kept = kept.filter(|kept| self.cost(*kept, network) <= cheapest.saturating_add(Self::WORTH));
        self.target = Some(kept.unwrap_or(best));
    }

    /// From `lead` to the nearest lead at which the tick sent last ends just after a frame; none if that is far.
    fn drift(&self, lead: i64) -> i64 {
        let Some(sent) = self.sent.back() else { return 0 };
        let above = (sent + Self::CLEAR - lead).rem_euclid(self.period);
        let off = if above > self.period / 2 { above - self.period } else { above };
        if off.abs() <= Self::CLEAR { off } else { 0 }
    }

    /// What a lead costs: its time, and that of being late, over the ticks of late. With it, each of them would have been
    /// sent with the last frame before its end.
    fn cost(&self, lead: i64, network: &LeastCost) -> i64 {
        let late = self.sent.iter().map(|sent| {
            let before = (sent - lead).rem_euclid(self.period);
            network.late_cost_at(lead.saturating_add(before))
        });
        let count = i64::try_from(self.sent.len()).unwrap_or(1).max(1);
        lead.saturating_add(late.fold(0i64, i64::saturating_add) / count)
    }

    /// How far ahead to be; `None` while there is nothing to tell from.
    pub(crate) fn target(&self) -> Option<i64> {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000;
    const FRAME: Duration = Duration::from_millis(16);

    /// A network that needs so much, always.
    fn network(needed: i64) -> LeastCost {
        let mut network = LeastCost::new(Duration::from_millis(300), Duration::from_millis(1), 64);
        (0..20).for_each(|_| network.add(needed));
        network
    }

    fn lattice(sent: impl Fn(i64) -> i64) -> Lattice {
        let mut lattice = Lattice::new(FRAME);
        (0..16).for_each(|tick| lattice.sent(sent(tick)));
        lattice
    }

    #[test]
    fn a_tick_ends_just_after_the_frame_after_the_one_that_sends_it() {
        // Frames are 4, 20, 36 ms before the end of every tick; 11 ms are enough: it is sent with the one at 20, if the
        // tick ends between that and the next.
        let mut frames = lattice(|_| 36 * MS);
        frames.choose(&network(10 * MS), 0);
        assert_eq!(frames.target(), Some(4 * MS + 2 * MS));
        // 21 ms are enough: with the one at 36.
        frames.clear();
        (0..16).for_each(|_| frames.sent(36 * MS));
        frames.choose(&network(20 * MS), 0);
        assert_eq!(frames.target(), Some(20 * MS + 2 * MS));
    }

    #[test]
    fn no_lead_below_the_least_is_chosen() {
        let mut frames = lattice(|_| 36 * MS);
        frames.choose(&network(10 * MS), 9 * MS);
        assert_eq!(frames.target(), Some(9 * MS));
    }

    #[test]
    fn a_far_server_is_not_given_up() {
        // To be late always would cost 300 ms, and to be in time 400: that is no bargain.
        let mut frames = lattice(|_| 36 * MS);
        frames.choose(&network(400 * MS), 3 * MS);
        let target = frames.target().unwrap();
        assert!((380 * MS..404 * MS).contains(&target), "{target}");
        // Nor when it has become far.
        let mut frames = lattice(|_| 36 * MS);
        frames.choose(&network(10 * MS), 3 * MS);
        frames.choose(&network(400 * MS), 3 * MS);
        assert_eq!(frames.target(), Some(target));
    }

    #[test]
    fn ticks_that_fall_on_frames_anyhow_need_what_the_network_needs() {
        let mut frames = lattice(|tick| 30 * MS + tick * MS);
        frames.choose(&network(10 * MS), 0);
        let target = frames.target().unwrap();
        assert!((8 * MS..12 * MS).contains(&target), "{target}");
    }

    #[test]
    fn frames_that_drift_are_followed() {
        let mut frames = lattice(|_| 36 * MS);
        frames.choose(&network(10 * MS), 0);
        (0..16).for_each(|_| frames.sent(36 * MS + 500));
        frames.choose(&network(10 * MS), 0);
        assert_eq!(frames.target(), Some(6 * MS + 500));
    }
}
