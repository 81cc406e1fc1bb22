//! The rule by which a wait is chosen: long enough for most, and no longer than what that saves.
//!
//! Each sample is the wait that one datagram would have needed, in microseconds on whatever scale the caller has. Of
//! all samples kept, the one is chosen that costs least, when waiting costs its time and being late costs a fixed
//! time. So the choice is never more than that cost above the least sample, however bad the others are. A lost
//! datagram is no sample. Knows neither ticks nor clocks.

use core::time::Duration;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::time::whole_micros;

/// Whether what is waited for keeps its order. Being late costs `late_cost`; `window` samples are looked back on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Datagrams: each takes its own time.
    AnyOrder { late_cost: Duration, window: usize },
    /// A stream: one that is lost holds up all behind it. A run of late ones then shows a retransmission and not another
    /// route, and the next one will be as long.
    InOrder { late_cost: Duration, window: usize },
}

/// Chooses the wait with the least cost over the last samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LeastCost {
    late_cost: i64,
    guard: i64,
    window: usize,
    /// What was needed, oldest first.
    needed: VecDeque<i64>,
    /// The same, in order.
    sorted: Vec<i64>,
    target: Option<i64>,
    spread: u64,
    in_order: bool,
}

impl LeastCost {
    /// Whether loaded samples can have been saved by some that were built like `fresh`.
    pub(crate) fn is_sound(&self, fresh: &Self) -> bool {
        let built = |cost: &Self| (cost.late_cost, cost.guard, cost.window, cost.in_order);
        let mut needed: Vec<i64> = self.needed.iter().copied().collect();
        needed.sort_unstable();
        built(self) == built(fresh) && self.needed.len() <= self.window && needed == self.sorted
    }
}

impl LeastCost {
    /// So many in a row that were late show that the route has changed for the worse.
    const WORSE: usize = 2;
    /// So many in a row that were far too early show that it has changed for the better.
    const BETTER: usize = 8;
    /// What is far too early, on top of twice the usual spread or of what is rare.
    const FAR: i64 = 20_000;
    /// On a stream, a longer wait is kept while it costs no more than this above the best.
    const STEADY: i64 = 100_000;

    /// Looks back on `window` samples. Being late costs `late_cost`; `guard` is added to what is just enough.
    pub(crate) fn new(late_cost: Duration, guard: Duration, window: usize) -> Self {
        Self {
            late_cost: signed_micros(late_cost),
            guard: signed_micros(guard),
            window,
            needed: VecDeque::with_capacity(window),
            sorted: Vec::with_capacity(window),
            target: None,
            spread: 0,
            in_order: false,
        }
    }

    /// What is waited for keeps its order from here on, or does not.
    pub(crate) fn set_delivery(&mut self, delivery: Delivery) {
        let (late_cost, window) = match delivery {
            Delivery::AnyOrder { late_cost, window } | Delivery::InOrder { late_cost, window } => {
                (late_cost, window)
            }
        };
        (self.late_cost, self.window) = (signed_micros(late_cost), window);
        self.in_order = matches!(delivery, Delivery::InOrder { .. });
        let surplus = self.needed.len().saturating_sub(window);
        self.needed.drain(..surplus);
        self.sorted.clear();
        self.sorted.extend(&self.needed);
        self.sorted.sort_unstable();
    }

    /// A datagram would have needed this wait.
    pub(crate) fn add(&mut self, needed: i64) {
        let oldest = if self.needed.len() >= self.window { self.needed.pop_front() } else { None };
        self.needed.push_back(needed);
        self.forget_another_route();
        if let Some(at) = oldest.and_then(|oldest| self.sorted.binary_search(&oldest).ok()) {
            self.sorted.remove(at);
        }
        if self.sorted.len() + 1 == self.needed.len() {
            let at = self.sorted.partition_point(|before| *before < needed);
            self.sorted.insert(at, needed);
        } else {
            self.sorted.clear();
            self.sorted.extend(&self.needed);
            self.sorted.sort_unstable();
        }
        self.choose();
    }

    /// What was measured before the route changed says nothing of the new one.
    fn forget_another_route(&mut self) {
        let Some(target) = self.target else { return };
        let newest = |count: usize| self.needed.iter().rev().take(count).copied();
        let worse = !self.in_order
            && self.needed.len() > Self::WORSE
            && newest(Self::WORSE).all(|needed| needed > target);
        let spread = i64::try_from(self.spread).unwrap_or(i64::MAX);
        let far = target.saturating_sub(Self::FAR);
        // Where the spread was so wide that nothing lies twice beyond it, what only one in eight did before them will do.
        let before = self.needed.len().saturating_sub(Self::BETTER);
        let rare = self.sorted.get(Self::BETTER - 1 + before / 8).copied().unwrap_or(i64::MIN);
        let early = far.saturating_sub(spread.saturating_mul(2)).max(rare.min(far));
        let better = self.needed.len() > Self::BETTER && newest(Self::BETTER).all(|needed| needed < early);
        let kept = match (worse, better) {
            (true, _) => Self::WORSE,
            (_, true) => Self::BETTER,
            _ => return,
        };
        self.needed.drain(..self.needed.len() - kept);
    }

    /// The place with the least sum of the time it costs and the cost of being late.
    fn choose(&mut self) {
        let count = i64::try_from(self.sorted.len()).unwrap_or(i64::MAX).max(1);
        let costs = self.sorted.iter().zip(1..).map(|(needed, in_time)| {
            let late = count - in_time;
            (needed.saturating_add(self.late_cost.saturating_mul(late) / count), *needed)
        });
        let Some((cheapest, best)) = costs.min() else { return };
        // A window that happens to have few retransmissions in it does not show that they are over.
        let kept = self.target.filter(|_| self.in_order).map(|target| target.saturating_sub(self.guard));
        let costs_little = |kept: &i64| {
            let cost = kept.saturating_add(self.late_cost_at(kept.saturating_add(self.guard)));
            *kept > best && cost <= cheapest.saturating_add(Self::STEADY)
        };
        let best = kept.filter(costs_little).unwrap_or(best);
        let usual = self.sorted.get(self.sorted.len() / 2).copied().unwrap_or(best);
        self.spread = u64::try_from(best.saturating_sub(usual)).unwrap_or(0);
        self.target = Some(best.saturating_add(self.guard));
    }

    /// What half of the samples needed at most.
    pub(crate) fn usual(&self) -> Option<i64> {
        self.sorted.get(self.sorted.len() / 2).copied()
    }

    /// What being late costs, on average, for those who wait for `wait`, the guard included.
    pub(crate) fn late_cost_at(&self, wait: i64) -> i64 {
        let wait = wait.saturating_sub(self.guard);
        let in_time = self.sorted.partition_point(|needed| *needed <= wait);
        let late = i64::try_from(self.sorted.len() - in_time).unwrap_or(i64::MAX);
        let count = i64::try_from(self.sorted.len()).unwrap_or(i64::MAX).max(1);
        self.late_cost.saturating_mul(late) / count
    }

    /// The wait to aim for, the guard included; `None` while there is nothing to tell from.
    pub(crate) fn target(&self) -> Option<i64> {
        self.target
    }

    /// How far above the usual need the target lies.
    pub(crate) fn spread(&self) -> u64 {
        self.spread
    }

    /// Forgets every sample. How far they spread is kept: a clock that has jumped says nothing of the network.
    pub(crate) fn clear(&mut self) {
        self.needed.clear();
        self.sorted.clear();
        self.target = None;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.needed.len()
    }
}

pub(crate) fn signed_micros(span: Duration) -> i64 {
    i64::try_from(whole_micros(span)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the samples lie: at least the least of them, and never above it by more than being late costs.
        #[test]
        fn the_choice_is_bounded_by_the_cost(samples in prop::collection::vec(-5_000_000i64..5_000_000, 1..600)) {
            let mut cost = LeastCost::new(Duration::from_millis(300), Duration::from_millis(1), 256);
            for sample in samples {
                cost.add(sample);
                let least = cost.needed.iter().min().unwrap();
                let above = cost.target().unwrap() - least;
                prop_assert!((1_000..=301_000).contains(&above), "{above}");
                prop_assert!(cost.len() <= 256);
            }
        }
    }
}
