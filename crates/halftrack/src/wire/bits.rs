//! Bits packed into bytes, lowest bit first, with no gaps.
//!
//! ```text
//! byte 0              byte 1
//! 7 6 5 4 3 2 1 0     7 6 5 4 3 2 1 0
//! b b b a a a a a     . c c c c c c b      write(a, 5), write(b, 4), write(c, 6)
//! ```

/// Bytes that do not mean anything. The sender is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// They end before the value does.
    #[error("the message ends in the middle of a value")]
    Truncated,
    /// They go on after the value.
    #[error("the message goes on after its end")]
    Trailing,
    /// A field has a value that it cannot have.
    #[error("{field} has a value that it cannot have")]
    Invalid {
        /// Which.
        field: &'static str,
    },
}

/// Writes bits into a buffer of the caller's, and remembers when it is full.
///
/// ```
/// use halftrack::wire::{BitReader, BitWriter};
///
/// let mut buffer = [0; 4];
/// let mut bits = BitWriter::new(&mut buffer);
/// bits.write(5, 3);
/// bits.write_signed(-2, 4);
/// assert_eq!(bits.finish(), Some(1));
/// let mut bits = BitReader::new(&buffer[..1]);
/// assert_eq!((bits.read(3), bits.read_signed(4)), (Ok(5), Ok(-2)));
/// ```
#[derive(Debug)]
pub struct BitWriter<'a> {
    bytes: &'a mut [u8],
    /// Whole bytes written.
    at: usize,
    /// Bits not yet written, lowest first; fewer than 32 between calls.
    held: u64,
    held_bits: u32,
    full: bool,
}

impl<'a> BitWriter<'a> {
    /// Writes into `bytes` from their beginning.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0, held: 0, held_bits: 0, full: false }
    }

    /// The lowest `count` bits of `value`; at most 32.
    #[inline]
    pub fn write(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && (count == 32 || value >> count == 0), "{value} in {count} bits");
        self.held |= u64::from(value) << self.held_bits;
        self.held_bits += count;
        if self.held_bits >= 32 {
            self.flush::<4>();
            self.held_bits -= 32;
        }
    }

    /// Puts the oldest `N` bytes of what is held into the buffer, as far as there is room.
    #[inline]
    fn flush<const N: usize>(&mut self) {
        let held = self.held.to_le_bytes();
        self.held >>= 8 * N;
        let Some(oldest) = held.first_chunk::<N>() else { return };
        match self.bytes.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut::<N>) {
            Some(bytes) => *bytes = *oldest,
            None => {
                let room = self.bytes.get_mut(self.at..).unwrap_or_default();
                room.iter_mut().zip(oldest).for_each(|(byte, held)| *byte = *held);
                self.full = true;
            }
        }
        self.at += N;
    }

    /// The first `count` bits of `bytes`, as another writer has left them there.
    pub fn copy(&mut self, bytes: &[u8], count: usize) {
        debug_assert!(count <= bytes.len() * 8, "{count} bits of {} bytes", bytes.len());
        let (whole, rest) = (count / 32, u32::try_from(count % 32).unwrap_or(0));
        let mut words = bytes.chunks(4);
        for word in words.by_ref().take(whole) {
            self.write(little_endian(word), 32);
        }
        if rest > 0 {
            self.write(words.next().map_or(0, little_endian) & ((1 << rest) - 1), rest);
        }
    }

    /// One bit.
    pub fn write_flag(&mut self, flag: bool) {
        self.write(u32::from(flag), 1);
    }

    /// A number that fits into `count` bits with its sign; from 1 to 32.
    pub fn write_signed(&mut self, value: i32, count: u32) {
        let unused = 32 - count.clamp(1, 32);
        debug_assert!(value << unused >> unused == value, "{value} in {count} bits with a sign");
        let mask = if count >= 32 { u32::MAX } else { (1 << count) - 1 };
        self.write(value.cast_unsigned() & mask, count);
    }

    /// Bits written so far, whether there was room for them or not.
    pub fn len_bits(&self) -> usize {
        self.at * 8 + self.held_bits as usize
    }

    /// Fills the last byte with zeros. Gives the length in bytes, or `None` if there was no room.
    pub fn finish(mut self) -> Option<usize> {
        for _ in 0..self.held_bits.div_ceil(8) {
            self.flush::<1>();
        }
        (!self.full).then_some(self.at)
    }
}

/// Up to four bytes as a number, the first one lowest.
fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Reads bits, and says when there are none.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    held: u64,
    held_bits: u32,
}

impl<'a> BitReader<'a> {
    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, held: 0, held_bits: 0 }
    }

    /// The next `count` bits; at most 32.
    ///
    /// # Errors
    /// When there are not so many.
    #[inline]
    pub fn read(&mut self, count: u32) -> Result<u32, WireError> {
        debug_assert!(count <= 32);
        while self.held_bits < count {
            let (byte, rest) = self.bytes.split_first().ok_or(WireError::Truncated)?;
            self.held |= u64::from(*byte) << self.held_bits;
            self.held_bits += 8;
            self.bytes = rest;
        }
        let mask = (1u64 << count) - 1;
        let value = self.held & mask;
        self.held >>= count;
        self.held_bits -= count;
        // Masked to 32 bits.
        u32::try_from(value).map_err(|_| WireError::Truncated)
    }

    /// One bit.
    ///
    /// # Errors
    /// When there is none.
    pub fn read_flag(&mut self) -> Result<bool, WireError> {
        Ok(self.read(1)? == 1)
    }

    /// `count` bits with a sign; from 1 to 32.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn read_signed(&mut self, count: u32) -> Result<i32, WireError> {
        let value = self.read(count)?;
        let unused = 32 - count.clamp(1, 32);
        Ok((value << unused).cast_signed() >> unused)
    }

    /// The bytes after the one that has been begun, of which nothing but zeros may be left.
    ///
    /// # Errors
    /// When something else is.
    pub(crate) fn rest(self) -> Result<&'a [u8], WireError> {
        if self.held == 0 { Ok(self.bytes) } else { Err(WireError::Trailing) }
    }

    /// Ends the message: nothing but the zeros of the last byte may be left.
    ///
    /// # Errors
    /// When there is more.
    pub fn finish(self) -> Result<(), WireError> {
        if self.held == 0 && self.held_bits < 8 && self.bytes.is_empty() {
            Ok(())
        } else {
            Err(WireError::Trailing)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_lowest_bit_first() {
        let mut buffer = [0xff; 3];
        let mut bits = BitWriter::new(&mut buffer);
        bits.write(0b10101, 5);
        bits.write(0b0110, 4);
        bits.write(0b110011, 6);
        assert_eq!(bits.len_bits(), 15);
        assert_eq!(bits.finish(), Some(2));
        assert_eq!(buffer, [0b1101_0101, 0b0110_0110, 0xff]);
    }

    #[test]
    fn a_full_buffer_is_told_and_never_overrun() {
        let mut buffer = [0; 2];
        let mut bits = BitWriter::new(&mut buffer);
        bits.write(0xffff, 16);
        assert_eq!(bits.finish(), Some(2));
        let mut bits = BitWriter::new(&mut buffer);
        bits.write(0x1_ffff, 17);
        assert_eq!(bits.len_bits(), 17);
        assert_eq!(bits.finish(), None);
    }

    /// Values that fit are written; one beyond either end is a mistake of the caller, and is found in debug builds.
    #[test]
    #[cfg(debug_assertions)]
    fn a_signed_value_that_does_not_fit_is_found_before_it_is_cut() {
        let write = |value: i32, count: u32| {
            let written = std::panic::catch_unwind(|| {
                let mut buffer = [0; 8];
                let mut bits = BitWriter::new(&mut buffer);
                bits.write_signed(value, count);
                bits.finish()
            });
            written.is_ok()
        };
        assert_eq!([-8, 7, -9, 8].map(|value| write(value, 4)), [true, true, false, false]);
        assert_eq!([-1, 0, 1, -2].map(|value| write(value, 1)), [true, true, false, false]);
        assert!(write(i32::MIN, 32) && write(i32::MAX, 32));
    }

    #[test]
    fn reading_ends_where_the_bytes_do() {
        let mut bits = BitReader::new(&[0xff]);
        assert_eq!(bits.read(5), Ok(31));
        assert_eq!(bits.read(4), Err(WireError::Truncated));
        assert_eq!(BitReader::new(&[]).read(1), Err(WireError::Truncated));
        assert_eq!(BitReader::new(&[]).finish(), Ok(()));
        assert_eq!(BitReader::new(&[0]).finish(), Err(WireError::Trailing));
        let mut padded = BitReader::new(&[0b0000_0001]);
        assert_eq!(padded.read(1), Ok(1));
        assert_eq!(padded.finish(), Ok(()));
        let mut dirty = BitReader::new(&[0b0000_0011]);
        assert_eq!(dirty.read(1), Ok(1));
        assert_eq!(dirty.finish(), Err(WireError::Trailing));
    }

    proptest! {
        /// Wherever the copy begins, and whatever is behind it.
        #[test]
        fn a_copy_is_what_was_copied(bytes in prop::collection::vec(any::<u8>(), 0..40), cut in any::<prop::sample::Index>(), before in 0u32..32) {
            let count = cut.index(bytes.len() * 8 + 1);
            let mut buffer = [0; 64];
            let mut bits = BitWriter::new(&mut buffer);
            bits.write(0, before);
            bits.copy(&bytes, count);
            bits.write(0b101, 3);
            prop_assert_eq!(bits.len_bits(), before as usize + count + 3);
            let length = bits.finish().unwrap();
            let (mut copied, mut original) = (BitReader::new(&buffer[..length]), BitReader::new(&bytes));
            copied.read(before).unwrap();
            for _ in 0..count {
                prop_assert_eq!(copied.read_flag(), original.read_flag());
            }
            prop_assert_eq!(copied.read(3), Ok(0b101));
            prop_assert_eq!(copied.finish(), Ok(()));
        }

        /// Nothing behind the buffer is needed to know that it is full, and all of it is used.
        #[test]
        fn a_buffer_is_full_by_the_bit(size in 0usize..12, fields in prop::collection::vec(1u32..=32, 0..6)) {
            let mut buffer = vec![0; size];
            let mut bits = BitWriter::new(&mut buffer);
            let mut count = 0;
            for field in fields {
                bits.write(u32::MAX >> (32 - field), field);
                count += field as usize;
            }
            let bytes = count.div_ceil(8);
            prop_assert_eq!(bits.finish(), (bytes <= size).then_some(bytes));
            prop_assert!(buffer.iter().take(count / 8).all(|byte| *byte == 0xff));
        }

        #[test]
        fn what_is_written_is_read(fields in prop::collection::vec((any::<u32>(), 1u32..=32), 0..60)) {
            let mut buffer = [0; 256];
            let mut bits = BitWriter::new(&mut buffer);
            let signed = |value: u32, count: u32| (value << (32 - count)).cast_signed() >> (32 - count);
            for (value, count) in &fields {
                bits.write_signed(signed(*value, *count), *count);
            }
            let length = bits.finish().unwrap();
            let mut bits = BitReader::new(&buffer[..length]);
            for (value, count) in &fields {
                prop_assert_eq!(bits.read_signed(*count), Ok(signed(*value, *count)));
            }
            prop_assert_eq!(bits.finish(), Ok(()));
        }
    }
}
