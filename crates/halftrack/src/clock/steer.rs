//! How a clock is brought to where it should be: by a bounded rate, without passing it, and without trembling.

use serde::{Deserialize, Serialize};

use crate::clock::Rate;

/// Whether the newest datagram known of was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Urgency {
    Calm,
    Late,
}

/// Whether the clock is on its way to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Steering {
    Still,
    Astir,
}

impl Steering {
    /// Steering ends at this error: half a millisecond is nobody's trouble.
    const STILL: u64 = 500;
    /// And begins above these, for the target itself trembles with every sample: soon upwards, where something would be
    /// late, and downwards only when a quarter of the spread could be saved besides.
    const ASTIR_UP: u64 = 1_000;
    const ASTIR_DOWN: u64 = 2_000;
    /// An error above this is steered against at the full rate.
    const URGENT: u64 = 40_000;
    /// The usual rate.
    const GENTLE: i32 = 50_000;
    /// Parts per million for each microsecond of error: gone in about 0.4 s.
    const STEEPNESS: i64 = 5;

    /// The rate at which to gain `error` microseconds; above zero is towards where less is late.
    pub(crate) fn rate(&mut self, error: i64, spread: u64, urgency: Urgency) -> Rate {
        let size = error.unsigned_abs();
        if size < Self::STILL {
            *self = Self::Still;
        } else if size > if error > 0 { Self::ASTIR_UP } else { Self::ASTIR_DOWN + spread / 4 } {
            *self = Self::Astir;
        }
        if *self == Self::Still {
            return Rate::ZERO;
        }
        let hurry = size > Self::URGENT || (urgency == Urgency::Late && error > 0);
        let limit = i64::from(if hurry { Rate::FASTEST.ppm() } else { Self::GENTLE });
        let ppm = error.saturating_mul(Self::STEEPNESS).clamp(-limit, limit);
        Rate::from_ppm(i32::try_from(ppm).unwrap_or(0))
    }
}
