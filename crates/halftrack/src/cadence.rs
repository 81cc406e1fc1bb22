//! The server's fixed simulation interval, and the grid of moments inside it. Knows no clock.

use core::num::NonZeroU8;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::tick::Tick;
use crate::time::{ServerTime, whole_micros};

/// The cadence `C`: how long one tick is, in whole microseconds, from 5 to 200 ms.
///
/// 50 ms (20 Hz) is the default: what the server simulates and sends at. Shorter costs bandwidth and CPU in
/// proportion and lowers delay by less than it saves; longer is felt in every collision.
///
/// ```
/// use core::time::Duration;
/// use halftrack::Cadence;
///
/// let cadence = Cadence::new(Duration::from_micros(16_667))?;
/// assert_eq!(cadence.ticks_in(Duration::from_secs(2)), 119);
/// assert!(Cadence::new(Duration::from_millis(4)).is_err());
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Cadence {
    micros: u32,
}

impl Default for Cadence {
    fn default() -> Self {
        Self { micros: 50_000 }
    }
}

impl TryFrom<u32> for Cadence {
    type Error = ConfigError;

    /// A cadence of so many microseconds.
    fn try_from(micros: u32) -> Result<Self, ConfigError> {
        Self::new(Duration::from_micros(u64::from(micros)))
    }
}

impl From<Cadence> for u32 {
    fn from(cadence: Cadence) -> Self {
        cadence.micros
    }
}

impl Cadence {
    /// The shortest cadence: 200 Hz.
    pub const MIN: Duration = Duration::from_millis(5);
    /// The longest cadence: 5 Hz.
    pub const MAX: Duration = Duration::from_millis(200);

    /// A cadence of `interval`.
    ///
    /// # Errors
    /// When it lies outside 5..=200 ms, or is not a whole number of microseconds.
    pub fn new(interval: Duration) -> Result<Self, ConfigError> {
        if interval < Self::MIN || interval > Self::MAX {
            return Err(ConfigError::CadenceOutOfRange { got: interval });
        }
        if !interval.subsec_nanos().is_multiple_of(1_000) {
            return Err(ConfigError::CadenceNotWholeMicros { got: interval });
        }
        Ok(Self { micros: interval.subsec_micros() })
    }

    /// How long a tick is.
    pub const fn interval(self) -> Duration {
        Duration::from_micros(self.micros as u64)
    }

    pub(crate) const fn micros(self) -> u32 {
        self.micros
    }

    /// The tick that `time` lies in; the last tick there is for all time after it.
    pub fn tick_at(self, time: ServerTime) -> Tick {
        Tick::new(u32::try_from(time.as_micros() / u64::from(self.micros)).unwrap_or(u32::MAX))
    }

    /// When `tick` begins.
    pub fn start_of(self, tick: Tick) -> ServerTime {
        ServerTime::from_micros(u64::from(tick.number()) * u64::from(self.micros))
    }

    /// When `tick` ends, which is when the next one begins.
    pub fn end_of(self, tick: Tick) -> ServerTime {
        ServerTime::from_micros((u64::from(tick.number()) + 1) * u64::from(self.micros))
    }

    /// The first tick that begins at or after `time`.
    pub fn first_tick_from(self, time: ServerTime) -> Tick {
        let tick = self.tick_at(time);
        if self.start_of(tick) < time { tick.next() } else { tick }
    }

    /// How many whole ticks fit into `span`.
    pub fn ticks_in(self, span: Duration) -> u32 {
        u32::try_from(whole_micros(span) / u64::from(self.micros)).unwrap_or(u32::MAX)
    }

    /// How long `ticks` ticks are.
    pub fn span_of(self, ticks: u32) -> Duration {
        Duration::from_micros(u64::from(ticks) * u64::from(self.micros))
    }

    /// How far into its tick `moment` lies.
    pub fn offset_of(self, moment: SubTick) -> Duration {
        Duration::from_micros(u64::from(self.micros_of(moment)))
    }

    /// Whole microseconds, rounded down: strictly increasing, since a grid cell is at least 19 us.
    pub(crate) const fn micros_of(self, moment: SubTick) -> u32 {
        // At most 255 * 200,000: fits.
        moment.index() as u32 * self.micros / SubTick::PER_TICK
    }

    /// The first moment of the grid that lies at or after `offset` microseconds into a tick, and not at its
    /// start; `None` when that is the tick's end.
    pub(crate) fn moment_from(self, offset: u32) -> Option<SubTick> {
        let offset = u64::from(offset);
        let cells = u64::from(SubTick::PER_TICK);
        // Smallest m with floor(m * C / 256) >= offset, that is m * C >= offset * 256.
        let moment = (offset * cells).div_ceil(u64::from(self.micros));
        u8::try_from(moment.max(1)).ok().and_then(SubTick::new)
    }
}

/// A moment inside a tick at which its input may change: one of 255 grid instants, not the tick's start.
///
/// The grid is `C / 256`: 0.2 ms at the default cadence, finer than any display or input device, and one byte
/// on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubTick(NonZeroU8);

impl SubTick {
    /// Grid cells in a tick.
    pub const PER_TICK: u32 = 256;

    /// The grid instant `index / 256` of the tick; `None` for zero, which is the tick's start.
    pub const fn new(index: u8) -> Option<Self> {
        match NonZeroU8::new(index) {
            Some(index) => Some(Self(index)),
            None => None,
        }
    }

    /// Its index in the tick, 1..=255.
    pub const fn index(self) -> u8 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(index: u8) -> SubTick {
        SubTick::new(index).unwrap()
    }

    fn any_cadence() -> impl Strategy<Value = Cadence> {
        (5_000u64..=200_000).prop_map(|micros| Cadence::new(Duration::from_micros(micros)).unwrap())
    }

    #[test]
    fn the_range_holds_just_inside_and_not_just_outside() {
        for good in [5_000, 200_000] {
            assert!(Cadence::new(Duration::from_micros(good)).is_ok());
        }
        for bad in [0, 4_999, 200_001, 1_050_000] {
            let got = Duration::from_micros(bad);
            assert_eq!(Cadence::new(got), Err(ConfigError::CadenceOutOfRange { got }));
        }
        let got = Duration::from_nanos(16_666_667);
        assert_eq!(Cadence::new(got), Err(ConfigError::CadenceNotWholeMicros { got }));
    }

    #[test]
    fn every_grid_moment_rounds_up_to_itself_at_every_cadence() {
        for millis in 5..=200 {
            let cadence = Cadence::new(Duration::from_millis(millis)).unwrap();
            for index in 1..=255 {
                let moment = moment(index);
                let at = cadence.micros_of(moment);
                assert_eq!(cadence.moment_from(at), Some(moment));
                let after = SubTick::new(index.wrapping_add(1));
                assert_eq!(cadence.moment_from(at + 1), after, "one microsecond later is the next moment");
            }
            assert_eq!(cadence.moment_from(0), Some(moment(1)));
            assert_eq!(cadence.moment_from(cadence.micros()), None);
        }
    }

    proptest! {
        #[test]
        fn ticks_partition_time(cadence in any_cadence(), micros in 0u64..800_000_000_000_000) {
            let time = ServerTime::from_micros(micros);
            let tick = cadence.tick_at(time);
            prop_assume!(tick < Tick::MAX);
            prop_assert!(cadence.start_of(tick) <= time && time < cadence.end_of(tick));
            prop_assert_eq!(cadence.end_of(tick), cadence.start_of(tick.next()));
            let first = cadence.first_tick_from(time);
            prop_assert!(cadence.start_of(first) >= time);
            prop_assert!(cadence.start_of(first).saturating_since(time) < cadence.interval());
        }

        #[test]
        fn grid_moments_are_never_before_what_they_round(cadence in any_cadence(), offset in 0u32..200_000) {
            prop_assume!(offset < cadence.micros());
            match cadence.moment_from(offset) {
                Some(rounded) => {
                    prop_assert!(cadence.micros_of(rounded) >= offset);
                    if rounded.index() > 1 {
                        prop_assert!(cadence.micros_of(moment(rounded.index() - 1)) < offset);
                    }
                }
                None => prop_assert!(cadence.micros_of(moment(255)) < offset),
            }
        }

        #[test]
        fn whole_ticks_of_a_span(cadence in any_cadence(), ticks in 0u32..100_000) {
            let span = cadence.span_of(ticks);
            prop_assert_eq!(cadence.ticks_in(span), ticks);
            if ticks > 0 {
                prop_assert_eq!(cadence.ticks_in(span - Duration::from_micros(1)), ticks - 1);
            }
        }
    }
}
