//! Counters of what was refused, restarted or made up. Plain numbers, for tests, programs and metrics alike.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::present::Outcome;
use crate::sizes::CorrectionSizes;

/// What a [`crate::Predictor`] has counted since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredictStats {
    /// States accepted.
    pub accepted: u64,
    /// States older than the baseline.
    pub stale: u64,
    /// States of the baseline's own tick.
    pub duplicate: u64,
    /// States of a tick no server can reach.
    pub unknown_tick: u64,
    /// Calls with a `now` before that of an earlier call; taken as that of the earlier one.
    pub backwards: u64,
    /// Accepted states whose body was not, to the bit, what had been predicted of their tick.
    pub mispredicted: u64,
    /// Restarts from authority.
    pub resyncs: u64,
    /// Times prediction stopped because authority was silent for `max_pending`.
    pub starved: u64,
    /// Ticks recorded as neutral because one call spanned more than the game's hold.
    pub stalled_ticks: u64,
    /// Input changes that had to wait for a free moment or the next boundary.
    pub delayed_changes: u64,
}

/// What a [`crate::Reconciler`] has counted since it was built: one entry per accepted state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionStats {
    /// By their cause.
    pub causes: ByCause,
    /// States that changed nothing of the predicted pose.
    pub unchanged: u64,
    /// Corrections within the deadband.
    pub negligible: u64,
    /// Corrections eased.
    pub eased: u64,
    /// Corrections snapped.
    pub snapped: u64,
    /// How large they were, by their cause.
    pub sizes: CorrectionSizes,
}

/// Corrections by their cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByCause([u64; Cause::ALL.len()]);

impl ByCause {
    /// How many of this cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.iter().find_map(|(each, count)| (each == cause).then_some(count)).unwrap_or(0)
    }

    /// Of every cause, in order of precedence.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().zip(self.0)
    }

    /// Counts those of another in.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    pub(crate) fn add(&mut self, counts: &[u16; Cause::ALL.len()]) {
        for (all, more) in self.0.iter_mut().zip(counts) {
            *all = all.saturating_add(u64::from(*more));
        }
    }

    /// What has come since `before`, as far as it fits, and counts it into that.
    pub(crate) fn take_since(&self, before: &mut Self) -> [u16; Cause::ALL.len()] {
        let mut fresh = [0; Cause::ALL.len()];
        for ((fresh, now), before) in fresh.iter_mut().zip(self.0).zip(&mut before.0) {
            *fresh = u16::try_from(now.saturating_sub(*before)).unwrap_or(u16::MAX);
            *before += u64::from(*fresh);
        }
        fresh
    }

    pub(crate) fn reduce(&mut self, cause: Cause, by: u64) {
        for (each, count) in Cause::ALL.iter().zip(&mut self.0) {
            *count = count.saturating_sub(if *each == cause { by } else { 0 });
        }
    }
}

impl CorrectionStats {
    /// Counts those of another in.
    pub fn merge(&mut self, other: &Self) {
        self.causes.merge(&other.causes);
        self.sizes.merge(&other.sizes);
        self.unchanged += other.unchanged;
        self.negligible += other.negligible;
        self.eased += other.eased;
        self.snapped += other.snapped;
    }

    /// Corrections of this cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.causes.of(cause)
    }

    /// Corrections of every cause, in order of precedence.
    pub fn by_cause(&self) -> impl Iterator<Item = (Cause, u64)> {
        self.causes.iter()
    }

    /// One of so many metres and radians that was counted as `from` was one of `to`.
    pub(crate) fn revise(&mut self, (from, to): (Cause, Cause), distance: f64, angle: f64) {
        for (each, count) in Cause::ALL.iter().zip(&mut self.causes.0) {
            *count = count.saturating_sub(u64::from(*each == from)) + u64::from(*each == to);
        }
        self.sizes.forget(from, distance, angle);
        self.sizes.record(to, distance, angle);
    }

    /// A state was accepted: it corrected so many metres and radians, if it corrected anything.
    pub(crate) fn count(&mut self, cause: Option<Cause>, outcome: Outcome, distance: f64, angle: f64) {
        if let Some(cause) = cause {
            if let Some(count) = self.causes.0.get_mut(cause as usize) {
                *count += 1;
            }
            self.sizes.record(cause, distance, angle);
        }
        let counter = match outcome {
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Negligible => &mut self.negligible,
            Outcome::Eased => &mut self.eased,
            Outcome::Snapped(_) => &mut self.snapped,
        };
        *counter += 1;
    }
}
