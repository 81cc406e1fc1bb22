//! A few of many: which places of a list are meant, written as the gaps between them.
//!
//! ```text
//! count    16   how many
//! rice      4   bits of a gap that are written as they are       } if count is not zero
//!   per one of them:
//!     gap       places left out before it: gap >> rice ones, a zero, and the low bits
//! ```
//!
//! The parameter is chosen for the list at hand, so three of a hundred cost about 20 bits and thirty about 90.

use crate::wire::{BitReader, BitWriter, WireError};

const COUNT_BITS: u32 = 16;
const RICE_BITS: u32 = 4;

/// Writes `places`, which go up, of a list.
pub(crate) fn write_gaps(places: &[u16], bits: &mut BitWriter<'_>) {
    let count = u32::try_from(places.len()).unwrap_or(0);
    bits.write(count, COUNT_BITS);
    let Some(last) = places.last() else { return };
    let left_out = (u32::from(*last) + 1).saturating_sub(count);
    // The mean gap, to the power of two below it: within a few percent of the best.
    let rice = (left_out / count).checked_ilog2().unwrap_or(0);
    bits.write(rice, RICE_BITS);
    let mut next = 0;
    for place in places {
        let gap = u32::from(*place).saturating_sub(next);
        for _ in 0..gap >> rice {
            bits.write_flag(true);
        }
        bits.write_flag(false);
        bits.write(gap & ((1 << rice) - 1), rice);
        next = u32::from(*place) + 1;
    }
}

/// Reads the places of a list that is `length` long into `places`.
///
/// # Errors
/// When the bits end too early, or a place is not in the list.
pub(crate) fn read_gaps(
    length: usize,
    places: &mut Vec<u16>,
    bits: &mut BitReader<'_>,
) -> Result<(), WireError> {
    let invalid = WireError::Invalid { field: "places" };
    places.clear();
    let count = bits.read(COUNT_BITS)?;
    // Checked before anything is taken for it.
    if count as usize > length {
        return Err(invalid);
    }
    if count == 0 {
        return Ok(());
    }
    let rice = bits.read(RICE_BITS)?;
    let mut next = 0usize;
    for _ in 0..count {
        let mut high = 0usize;
        while bits.read_flag()? {
            high += 1;
        }
        let gap = (high << rice) + bits.read(rice)? as usize;
        let place = next + gap;
        if place >= length {
            return Err(invalid);
        }
        places.push(u16::try_from(place).map_err(|_| invalid)?);
        next = place + 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(places: &[u16]) -> (Vec<u8>, usize) {
        let mut buffer = vec![0; 9_000];
        let mut bits = BitWriter::new(&mut buffer);
        write_gaps(places, &mut bits);
        let count = bits.len_bits();
        let length = bits.finish().unwrap();
        buffer.truncate(length);
        (buffer, count)
    }

    #[test]
    fn few_are_cheap_and_many_are_not_dear() {
        assert_eq!(written(&[]).1, 16);
        let some = |step: usize| (0..100).step_by(step).map(|place| place + 1).collect::<Vec<u16>>();
        assert!(written(&some(33)).1 <= 16 + 4 + 26, "{}", written(&some(33)).1);
        assert!(written(&some(4)).1 <= 16 + 4 + 75, "{}", written(&some(4)).1);
        let all: Vec<u16> = (0..100).collect();
        assert_eq!(written(&all).1, 16 + 4 + 100);
    }

    #[test]
    fn places_that_are_not_there_are_refused() {
        let (bytes, _) = written(&[3, 9]);
        let mut places = vec![];
        assert_eq!(read_gaps(10, &mut places, &mut BitReader::new(&bytes)), Ok(()));
        let invalid = Err(WireError::Invalid { field: "places" });
        assert_eq!(read_gaps(9, &mut places, &mut BitReader::new(&bytes)), invalid);
        assert_eq!(read_gaps(1, &mut places, &mut BitReader::new(&bytes)), invalid, "more than there are");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(places in prop::collection::btree_set(0u16..2_000, 0..200)) {
            let places: Vec<_> = places.into_iter().collect();
            let (bytes, _) = written(&places);
            let (mut read, mut bits) = (vec![], BitReader::new(&bytes));
            prop_assert_eq!(read_gaps(2_000, &mut read, &mut bits), Ok(()));
            prop_assert_eq!(bits.finish(), Ok(()));
            prop_assert_eq!(read, places);
        }

        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..300), length in 0usize..3_000) {
            let mut places = vec![];
            if read_gaps(length, &mut places, &mut BitReader::new(&bytes)).is_ok() {
                prop_assert!(places.iter().all(|place| usize::from(*place) < length));
                prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
