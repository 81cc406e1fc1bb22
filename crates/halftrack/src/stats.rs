//! Counters of what was refused, restarted or made up. Plain numbers, for tests, programs and metrics alike.

/// What a [`crate::Predictor`] has counted since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
