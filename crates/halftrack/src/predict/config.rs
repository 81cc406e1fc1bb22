//! The numbers of prediction, and the check that they make sense.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::error::ConfigError;

/// What a [`crate::Predictor`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictConfig {
    /// The server's cadence. Both ends must share it.
    pub cadence: Cadence,
    /// How far prediction may run ahead of the newest state. Default 2 s: beyond it a player is no longer
    /// playing the match that the server sees. From two ticks to 10 s; it bounds memory and the longest replay.
    pub max_pending: Duration,
    /// The clock error beyond which prediction restarts instead of slewing. Default 500 ms: at 5 % that would
    /// take ten seconds to slew away. From 50 ms (jitter) to 10 s.
    pub resync_error: Duration,
}

impl Default for PredictConfig {
    fn default() -> Self {
        Self {
            cadence: Cadence::default(),
            max_pending: Duration::from_secs(2),
            resync_error: Duration::from_millis(500),
        }
    }
}

impl PredictConfig {
    const LONGEST_PENDING: Duration = Duration::from_secs(10);

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let (min, max) = (self.cadence.span_of(2), Self::LONGEST_PENDING);
        if self.max_pending < min || self.max_pending > max {
            return Err(ConfigError::MaxPendingOutOfRange { got: self.max_pending, min, max });
        }
        if self.resync_error < Duration::from_millis(50) || self.resync_error > Duration::from_secs(10) {
            return Err(ConfigError::ResyncErrorOutOfRange { got: self.resync_error });
        }
        Ok(())
    }
}
