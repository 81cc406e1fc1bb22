//! Bits of one number of a known range, alone or against a baseline.
//!
//! ```text
//! alone                truncated binary: all codes have k or k + 1 bits, and no code is left over
//! against a baseline
//!   changed     1      left out when the number itself has one bit or none
//!   far         1      if it changed and has a near code
//!   number             if far: as alone
//!   difference  n      if near: with its sign
//! ```

use crate::wire::{BitReader, BitWriter, WireError};

/// Width of a number from 0 to `last`, in bits: the longer of its truncated binary codes.
pub(crate) const fn full_bits(last: u64) -> u32 {
    u64::BITS - last.leading_zeros()
}

/// Width of the difference that counts as near, for numbers up to `last`; zero when a near code would not pay.
///
/// Half of the full width and one bit: a position on a grid of 1/1024 m in a range of 2 km is near within 2 m.
pub(crate) const fn near_bits(last: u64) -> u32 {
    let full = full_bits(last);
    if full < 10 || full > 40 { 0 } else { full / 2 + 1 }
}

/// Codes of the shorter kind, and their width.
#[inline]
const fn short(last: u64) -> (u64, u32) {
    match last.checked_add(1) {
        Some(count) => {
            let bits = count.ilog2();
            ((1u64 << bits).wrapping_mul(2).wrapping_sub(count), bits)
        }
        None => (u64::MAX, u64::BITS),
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "each half is cut to its 32 bits")]
fn write_bits(value: u64, count: u32, bits: &mut BitWriter<'_>) {
    if count <= 32 {
        bits.write(value as u32, count);
    } else {
        bits.write(value as u32, 32);
        bits.write((value >> 32) as u32, count - 32);
    }
}

#[inline]
fn read_bits(count: u32, bits: &mut BitReader<'_>) -> Result<u64, WireError> {
    if count <= 32 {
        return bits.read(count).map(u64::from);
    }
    let low = bits.read(32)?;
    Ok(u64::from(bits.read(count - 32)?) << 32 | u64::from(low))
}

/// Writes `level`, from 0 to `last`.
#[inline]
pub(crate) fn write_alone(level: u64, last: u64, bits: &mut BitWriter<'_>) {
    debug_assert!(level <= last, "{level} of {last}");
    let (short, count) = short(last);
    if level < short || count == u64::BITS {
        write_bits(level, count, bits);
    } else {
        let long = level.wrapping_add(short);
        write_bits(long >> 1, count, bits);
        bits.write_flag(long & 1 == 1);
    }
}

/// Reads a number from 0 to `last`. Every code means one: there is nothing to refuse.
#[inline]
pub(crate) fn read_alone(last: u64, bits: &mut BitReader<'_>) -> Result<u64, WireError> {
    let (short, count) = short(last);
    let level = read_bits(count, bits)?;
    if level < short || count == u64::BITS {
        return Ok(level);
    }
    Ok((level << 1 | u64::from(bits.read_flag()?)).wrapping_sub(short))
}

/// How a number is written against a baseline. All of it is known at compile time.
#[derive(Clone, Copy)]
pub(crate) struct Delta {
    pub(crate) last: u64,
    pub(crate) near: u32,
    /// Whether the number behind `last` is zero again.
    pub(crate) wraps: bool,
}

impl Delta {
    const fn has_flag(self) -> bool {
        full_bits(self.last) > 1
    }

    /// The most bits that it takes.
    pub(crate) const fn max_bits(self) -> usize {
        (full_bits(self.last) + self.has_flag() as u32 + (self.near > 0) as u32) as usize
    }

    /// From `baseline` to `level`, the shorter way if numbers wrap. Only numbers of up to 40 bits have a near code.
    #[inline]
    fn difference(self, level: u64, baseline: u64) -> i64 {
        let difference = level.cast_signed().wrapping_sub(baseline.cast_signed());
        let count = self.last.cast_signed().wrapping_add(1);
        match self.wraps {
            true if difference > count / 2 => difference - count,
            true if difference < -(count / 2) => difference + count,
            _ => difference,
        }
    }

    #[inline]
    pub(crate) fn write(self, level: u64, baseline: u64, bits: &mut BitWriter<'_>) {
        if self.has_flag() {
            bits.write_flag(level != baseline);
            if level == baseline {
                return;
            }
        }
        if self.near > 0 {
            let difference = self.difference(level, baseline);
            let half = 1i64 << (self.near - 1);
            let near =
                i32::try_from(difference).ok().filter(|near| (-half..half).contains(&i64::from(*near)));
            bits.write_flag(near.is_none());
            if let Some(near) = near {
                bits.write_signed(near, self.near);
                return;
            }
        }
        write_alone(level, self.last, bits);
    }

    #[inline]
    pub(crate) fn read(
        self,
        baseline: u64,
        field: &'static str,
        bits: &mut BitReader<'_>,
    ) -> Result<u64, WireError> {
        if self.has_flag() && !bits.read_flag()? {
            return Ok(baseline);
        }
        if self.near == 0 || bits.read_flag()? {
            return read_alone(self.last, bits);
        }
        let difference = i64::from(bits.read_signed(self.near)?);
        let level = baseline.cast_signed().wrapping_add(difference);
        let level = if self.wraps { level.rem_euclid(self.last.cast_signed() + 1) } else { level };
        u64::try_from(level).ok().filter(|level| *level <= self.last).ok_or(WireError::Invalid { field })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut BitWriter<'_>)) -> (Vec<u8>, usize) {
        let mut buffer = [0; 32];
        let mut bits = BitWriter::new(&mut buffer);
        write(&mut bits);
        let count = bits.len_bits();
        let length = bits.finish().unwrap();
        (buffer[..length].to_vec(), count)
    }

    #[test]
    fn every_bit_pattern_means_one_number() {
        for last in 0..70u64 {
            let mut seen = [false; 70];
            for pattern in 0..=255u8 {
                let level = read_alone(last, &mut BitReader::new(&[pattern])).unwrap();
                seen[usize::try_from(level).unwrap()] = true;
            }
            assert_eq!(seen.iter().filter(|seen| **seen).count() as u64, last + 1);
        }
    }

    #[test]
    fn widths_at_powers_of_two() {
        assert_eq!([0, 1, 2, 255, 256, u64::MAX].map(full_bits), [0, 1, 2, 8, 9, 64]);
        assert_eq!([511, 512, 1 << 21, 1 << 39, 1 << 40].map(near_bits), [0, 6, 12, 21, 0]);
        for (level, bits) in [(0, 5), (30, 5), (31, 6), (32, 6)] {
            assert_eq!(written(|bits| write_alone(level, 32, bits)).1, bits, "{level} of 32");
        }
    }

    fn range() -> impl Strategy<Value = (u64, u64, u64)> {
        prop_oneof![0u64..2_000, 0u64..1 << 42, any::<u64>(), Just(u64::MAX)]
            .prop_flat_map(|last| (Just(last), 0..=last, 0..=last))
    }

    proptest! {
        #[test]
        fn numbers_survive_within_their_width((last, level, _) in range()) {
            let (bytes, count) = written(|bits| write_alone(level, last, bits));
            prop_assert!(count <= full_bits(last) as usize && count + 1 >= full_bits(last) as usize);
            prop_assert_eq!(read_alone(last, &mut BitReader::new(&bytes)), Ok(level));
        }

        #[test]
        fn numbers_survive_against_any_baseline((last, level, baseline) in range(), step in -3_000i64..3_000, wraps in any::<bool>()) {
            let near = baseline.saturating_add_signed(step).min(last);
            for level in [level, near, baseline, 0, last] {
                let delta = Delta { last, near: near_bits(last), wraps: wraps && last < u64::MAX };
                let (bytes, count) = written(|bits| delta.write(level, baseline, bits));
                prop_assert!(count <= delta.max_bits(), "{count} of {}", delta.max_bits());
                prop_assert_eq!(delta.read(baseline, "level", &mut BitReader::new(&bytes)), Ok(level));
            }
        }

        #[test]
        fn reading_is_total((last, baseline, _) in range(), wraps in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let delta = Delta { last, near: near_bits(last), wraps: wraps && last < u64::MAX };
            if let Ok(level) = delta.read(baseline, "level", &mut BitReader::new(&bytes)) {
                prop_assert!(level <= last);
            }
        }
    }

    #[test]
    fn a_near_code_takes_the_shorter_way_around() {
        let delta = Delta { last: 65_535, near: 9, wraps: true };
        assert_eq!(written(|bits| delta.write(3, 65_500, bits)).1, 11);
        let straight = Delta { wraps: false, ..delta };
        assert_eq!(written(|bits| straight.write(3, 65_500, bits)).1, 18);
    }
}
