//! What a player asks of a tank, quantised: what is sent is what is simulated.

use halftrack::Input;

/// A stick's position along one axis, from -1 to 1 in sixteenths.
///
/// Sixteenths are exact in binary, so that 0.5 is 0.5 on both sides, and 33 levels are finer than a thumb.
///
/// ```
/// use tanks::Axis;
///
/// assert_eq!(Axis::from_unit(0.5)?.value(), 0.5);
/// assert_eq!(Axis::from_unit(7.0)?, Axis::FULL);
/// assert!(Axis::from_unit(f32::NAN).is_err());
/// # Ok::<(), tanks::NotFinite>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Input)]
pub struct Axis(#[range(-16..=16)] i8);

/// An axis that is NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the axis is not a finite number")]
pub struct NotFinite;

impl Axis {
    /// Levels on either side of zero.
    pub const LEVELS: i8 = 16;
    /// At rest.
    pub const ZERO: Self = Self(0);
    /// Fully ahead, or fully to the left.
    pub const FULL: Self = Self(Self::LEVELS);

    /// The nearest level to `unit`, clamped to -1..=1.
    ///
    /// # Errors
    /// When it is NaN or infinite: that is a broken device or a hostile peer, not a direction.
    pub fn from_unit(unit: f32) -> Result<Self, NotFinite> {
        // spec: REPLAY-07
        if !unit.is_finite() {
            return Err(NotFinite);
        }
        let level = libm::roundf(unit.clamp(-1.0, 1.0) * f32::from(Self::LEVELS));
        Ok(Self::from_level(level as i8))
    }

    /// Level `level` of -16..=16, clamped.
    pub const fn from_level(level: i8) -> Self {
        if level > Self::LEVELS {
            Self(Self::LEVELS)
        } else if level < -Self::LEVELS {
            Self(-Self::LEVELS)
        } else {
            Self(level)
        }
    }

    /// Its level, -16..=16.
    pub const fn level(self) -> i8 {
        self.0
    }

    /// Its value, -1..=1, exact.
    #[inline]
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(Self::LEVELS)
    }
}

/// What a player asks of a tank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Input)]
pub struct TankInput {
    /// Positive turns to the left, as angles do.
    pub turn: Axis,
    /// Positive drives ahead.
    pub throttle: Axis,
    /// Counts presses of the rocket button: see [`Self::pressing`].
    #[presses]
    pub rocket: u8,
}

impl TankInput {
    /// Neither turns nor drives.
    pub const NEUTRAL: Self = Self { turn: Axis::ZERO, throttle: Axis::ZERO, rocket: 0 };

    /// From two sticks, each clamped to -1..=1 and put on its nearest level.
    ///
    /// # Errors
    /// When either is NaN or infinite.
    pub fn from_unit(turn: f32, throttle: f32) -> Result<Self, NotFinite> {
        Ok(Self { turn: Axis::from_unit(turn)?, throttle: Axis::from_unit(throttle)?, rocket: 0 })
    }

    /// The same with a count of presses of the rocket button. One more press is [`halftrack::model::Presses::next`] of it.
    #[must_use]
    pub const fn pressing(self, rocket: u8) -> Self {
        Self { rocket, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack::wire::{BitReader, BitWriter, WireError};

    #[test]
    fn values_clamp_and_round_to_the_nearest_level() {
        let level = |unit| Axis::from_unit(unit).unwrap().level();
        assert_eq!([level(1.0), level(1.1), level(-1.0), level(-9.0)], [16, 16, -16, -16]);
        assert_eq!([level(0.031), level(0.032), level(-0.0)], [0, 1, 0]);
        assert_eq!(level(f32::MAX), 16);
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(TankInput::from_unit(bad, 0.0), Err(NotFinite));
            assert_eq!(TankInput::from_unit(0.0, bad), Err(NotFinite));
        }
    }

    fn written(input: TankInput) -> ([u8; 2], usize) {
        let mut buffer = [0; 2];
        let mut writer = BitWriter::new(&mut buffer);
        input.write(&mut writer);
        let count = writer.len_bits();
        writer.finish().unwrap();
        (buffer, count)
    }

    #[test]
    fn every_input_survives_the_wire_and_no_bits_mean_nothing() {
        let mut seen = std::collections::HashSet::new();
        for both in 0..1u16 << 15 {
            let bytes = both.to_le_bytes();
            let input = TankInput::read(&mut BitReader::new(&bytes)).unwrap();
            let (buffer, count) = written(input);
            let mask = (1u16 << count) - 1;
            assert_eq!(u16::from_le_bytes(buffer), both & mask, "one way to write it");
            seen.insert(input);
        }
        assert_eq!(seen.len(), 33 * 33 * 16);
        let long = seen.iter().filter(|input| written(**input).1 == 15).count();
        assert_eq!(long, 33 * 33 * 16 - 15_344);
        assert_eq!(TankInput::read(&mut BitReader::new(&[0xff])), Err(WireError::Truncated));
    }

    #[test]
    fn what_a_key_gives_takes_fourteen_bits() {
        for turn in [-16, 0, 16] {
            for throttle in [-16, 0, 16] {
                let input = TankInput {
                    turn: Axis::from_level(turn),
                    throttle: Axis::from_level(throttle),
                    rocket: 0,
                };
                assert_eq!(written(input).1, 14, "{input:?}");
            }
        }
    }

    #[test]
    fn levels_survive_their_value() {
        for level in -16..=16 {
            let axis = Axis::from_level(level);
            assert_eq!(Axis::from_unit(axis.value() as f32), Ok(axis));
        }
        assert_eq!(Axis::from_level(17), Axis::FULL);
        assert_eq!(Axis::from_level(i8::MIN).value(), -1.0);
    }
}
