//! The numbers of prediction, and the check that they make sense.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::error::ConfigError;

/// What a [`crate::Predictor`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_pending_holds_just_inside_and_not_just_outside() {
        let with = |max_pending| PredictConfig { max_pending, ..PredictConfig::default() }.check();
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(10));
        assert_eq!((with(min), with(max)), (Ok(()), Ok(())));
        for got in
            [Duration::ZERO, min - Duration::from_micros(1), max + Duration::from_micros(1), Duration::MAX]
        {
            assert_eq!(with(got), Err(ConfigError::MaxPendingOutOfRange { got, min, max }));
        }
    }

    #[test]
    fn resync_error_holds_just_inside_and_not_just_outside() {
        let with = |resync_error| PredictConfig { resync_error, ..PredictConfig::default() }.check();
        let (min, max) = (Duration::from_millis(50), Duration::from_secs(10));
        assert_eq!((with(min), with(max)), (Ok(()), Ok(())));
        for got in [Duration::ZERO, min - Duration::from_micros(1), max + Duration::from_micros(1)] {
            assert_eq!(with(got), Err(ConfigError::ResyncErrorOutOfRange { got }));
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let config = PredictConfig { max_pending: Duration::from_millis(60), ..PredictConfig::default() };
        let said = config.check().unwrap_err().to_string();
        assert_eq!(said, "max_pending is 60ms; choose one from 100ms (two ticks) to 10s");
    }
}
