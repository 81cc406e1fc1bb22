//! Numbers that are mostly small, and a few points of a long line, written as the gaps between them.
//!
//! ```text
//! count(order)    with v = count + 2^order and n = floor(log2(v)) - order:
//!                 n ones, a zero, and the low n + order bits of v
//!
//! points          of a line of `length` points, `count` of them, going up; with the mean gap
//!                 m = floor((length - count) / count) and rice = floor(log2(m)), 0 if m is 0, at most 31:
//!   per point:
//!     gap         points left out before it: gap >> rice ones, a zero, and the low `rice` bits of the gap
//! ```
//!
//! Both ends know the length and the count, so the parameter costs nothing. For points at random this is within a
//! seventh of a bit of the best that any code can do, per point.

use crate::wire::{BitReader, BitWriter, WireError};

/// Ones before a count's zero, at most.
const MAX_COUNT_ONES: u32 = 24;
const MAX_RICE: u32 = 31;

/// Writes `count`, below 2^24; it is cheapest below 2^order.
pub(crate) fn write_count(count: u32, order: u32, bits: &mut BitWriter<'_>) {
    let value = count.saturating_add(1 << order);
    let more = value.ilog2() - order;
    write_ones(more.into(), bits);
    let width = more + order;
    bits.write(value & ((1 << width) - 1), width);
}

/// Reads a count.
///
/// # Errors
/// When the bits end too early, or it is larger than any.
pub(crate) fn read_count(order: u32, bits: &mut BitReader<'_>) -> Result<u32, WireError> {
    let mut more = 0;
    while bits.read_flag()? {
        more += 1;
        if more > MAX_COUNT_ONES {
            return Err(WireError::Invalid { field: "count" });
        }
    }
    let width = more + order;
    Ok((1 << width | bits.read(width)?) - (1 << order))
}

/// So many ones, and a zero.
fn write_ones(mut count: u64, bits: &mut BitWriter<'_>) {
    while count > 31 {
        bits.write(u32::MAX, 32);
        count -= 32;
    }
    let count = u32::try_from(count).unwrap_or(0);
    bits.write((1 << count) - 1, count);
    bits.write_flag(false);
}

/// A few points of a line, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    length: u64,
    rice: u32,
    /// The first point that can come next.
    next: u64,
}

impl Gaps {
    /// `count` points of a line of `length`.
    pub(crate) fn new(length: u64, count: u32) -> Self {
        let count = u64::from(count);
        // The mean gap, to the power of two below it.
        let mean = length.saturating_sub(count).checked_div(count).unwrap_or(0);
        Self { length, rice: mean.checked_ilog2().unwrap_or(0).min(MAX_RICE), next: 0 }
    }

    /// Bits that `count` points take at most, wherever they are.
    pub(crate) fn max_bits(length: u64, count: u32) -> usize {
        // The ones of all gaps together are fewer than two for each; of a line that is longer than any, a few more.
        count as usize * (Self::new(length, count).rice as usize + 3)
    }

    /// Writes `point`, which is after the one before it.
    pub(crate) fn write(&mut self, point: u64, bits: &mut BitWriter<'_>) {
        debug_assert!(self.next <= point && point < self.length, "{point} of {self:?}");
        let gap = point.saturating_sub(self.next);
        write_ones(gap >> self.rice, bits);
        let low = gap & ((1 << self.rice) - 1);
        bits.write(u32::try_from(low).unwrap_or(0), self.rice);
        self.next = point + 1;
    }

    /// Reads the next point.
    ///
    /// # Errors
    /// When the bits end too early, or it is not on the line.
    pub(crate) fn read(&mut self, bits: &mut BitReader<'_>) -> Result<u64, WireError> {
        let left = self.length.saturating_sub(self.next);
        let mut high = 0u64;
        while bits.read_flag()? {
            high += 1;
        }
        // There are fewer ones than bits in any message: no overflow.
        let gap = (high << self.rice) + u64::from(bits.read(self.rice)?);
        if gap >= left {
            return Err(WireError::Invalid { field: "point" });
        }
        let point = self.next + gap;
        self.next = point + 1;
        Ok(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(length: u64, points: &[u64]) -> (Vec<u8>, usize) {
        let mut buffer = vec![0; 9_000];
        let mut bits = BitWriter::new(&mut buffer);
        let mut gaps = Gaps::new(length, u32::try_from(points.len()).unwrap());
        points.iter().for_each(|point| gaps.write(*point, &mut bits));
        let count = bits.len_bits();
        let length = bits.finish().unwrap();
        buffer.truncate(length);
        (buffer, count)
    }

    fn read(length: u64, count: usize, bytes: &[u8]) -> Result<Vec<u64>, WireError> {
        let mut bits = BitReader::new(bytes);
        let mut gaps = Gaps::new(length, u32::try_from(count).unwrap());
        let points = (0..count).map(|_| gaps.read(&mut bits)).collect::<Result<_, _>>()?;
        bits.finish().map(|()| points)
    }

    #[test]
    fn few_are_cheap_and_many_are_not_dear() {
        let some = |step: usize| (1..100).step_by(step).collect::<Vec<u64>>();
        assert_eq!(written(100, &[]).1, 0);
        assert!(written(100, &some(33)).1 <= 20, "{}", written(100, &some(33)).1);
        assert!(written(100, &some(4)).1 <= 75, "{}", written(100, &some(4)).1);
        assert_eq!(written(100, &(0..100).collect::<Vec<_>>()).1, 100);
    }

    #[test]
    fn points_that_are_not_there_are_refused() {
        let (bytes, _) = written(11, &[3, 10]);
        assert_eq!(read(11, 2, &bytes), Ok(vec![3, 10]));
        assert_eq!(read(10, 2, &bytes), Err(WireError::Invalid { field: "point" }));
        assert_eq!(read(0, 2, &[0]), Err(WireError::Invalid { field: "point" }));
    }

    #[test]
    fn small_counts_are_short() {
        let length = |count, order| {
            let mut bits = BitWriter::new(&mut []);
            write_count(count, order, &mut bits);
            bits.len_bits()
        };
        assert_eq!([0, 1, 3, 100].map(|count| length(count, 0)), [1, 3, 5, 13]);
        assert_eq!([0, 15, 16, 47, 48].map(|count| length(count, 4)), [5, 5, 7, 7, 9]);
        let refused = read_count(0, &mut BitReader::new(&[0xff; 8]));
        assert_eq!(refused, Err(WireError::Invalid { field: "count" }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(points in prop::collection::btree_set(0u64..200_000, 0..200), longer in 0u64..1 << 40) {
            let points: Vec<_> = points.into_iter().collect();
            for length in [200_000, 200_000 + longer] {
                let (bytes, count) = written(length, &points);
                prop_assert_eq!(read(length, points.len(), &bytes), Ok(points.clone()));
                prop_assert!(length > 1 << 32 || count <= Gaps::max_bits(length, points.len() as u32));
            }
        }

        /// Whatever is left out of a list, saying so takes no more bits than the list is long.
        #[test]
        fn a_short_line_takes_at_most_its_length(length in 1u64..300, points in prop::collection::btree_set(0u64..300, 0..300)) {
            let points: Vec<_> = points.into_iter().filter(|point| *point < length).collect();
            prop_assert!(written(length, &points).1 as u64 <= length);
        }

        #[test]
        fn counts_are_read_as_written(count in 0u32..1 << 24, order in 0u32..6) {
            let mut buffer = [0; 8];
            let mut bits = BitWriter::new(&mut buffer);
            write_count(count, order, &mut bits);
            let length = bits.finish().unwrap();
            let mut bits = BitReader::new(&buffer[..length]);
            prop_assert_eq!(read_count(order, &mut bits), Ok(count));
            prop_assert_eq!(bits.finish(), Ok(()));
        }

        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..300), length in 0u64..1 << 40, count in 0usize..100) {
            if let Ok(points) = read(length, count, &bytes) {
                prop_assert!(points.iter().all(|point| *point < length));
                prop_assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
            }
            let _ = read_count(4, &mut BitReader::new(&bytes));
        }
    }
}
