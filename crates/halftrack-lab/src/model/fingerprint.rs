//! A state as a number: its `Debug` text, hashed as it is written, with every moment as its distance from now. What
//! happens next depends on how long ago something was, never on when.

use std::fmt::{self, Debug, Write};

use halftrack::Timestamp;

/// A hash of text that is written into it.
pub(super) struct Fingerprint {
    now: u64,
    state: [u64; 2],
    /// How much of `Timestamp(` the text has just ended with, and the number after it.
    matched: usize,
    micros: Option<u64>,
}

/// What the text of a moment begins with.
const MOMENT: &[u8] = b"Timestamp(";
/// Longer ago than anything waits for is long ago.
const LONG: i64 = 20_000_000;

impl Fingerprint {
    pub(super) fn new(now: Timestamp) -> Self {
        let state = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b];
        Self { now: now.as_micros(), state, matched: 0, micros: None }
    }

    pub(super) fn add(&mut self, part: &impl Debug) {
        // Writing into a hash cannot fail.
        let _ = write!(self, "{part:?};");
    }

    pub(super) fn finish(&self) -> u128 {
        u128::from(self.state[0]) << 64 | u128::from(self.state[1])
    }

    fn mix(&mut self, word: u64) {
        let [one, other] = &mut self.state;
        *one = (*one ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *one ^= *one >> 29;
        *other = (other.rotate_left(5) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }

    fn byte(&mut self, byte: u8) {
        if let Some(micros) = self.micros {
            if byte.is_ascii_digit() {
                self.micros = Some(micros.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')));
                return;
            }
            let since = micros.wrapping_sub(self.now).cast_signed();
            self.mix(since.clamp(-LONG, LONG).cast_unsigned());
            (self.micros, self.matched) = (None, 0);
        }
        self.matched = match () {
            () if byte == MOMENT[self.matched] => self.matched + 1,
            () => usize::from(byte == MOMENT[0]),
        };
        if self.matched == MOMENT.len() {
            (self.matched, self.micros) = (0, Some(0));
        }
        self.mix(u64::from(byte));
    }
}

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.byte(byte));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(now: u64, moment: u64, other: u32) -> u128 {
        let mut hash = Fingerprint::new(Timestamp::from_micros(now));
        hash.add(&(Timestamp::from_micros(moment), other));
        hash.finish()
    }

    #[test]
    fn moments_count_by_their_distance_and_all_else_as_it_is() {
        assert_eq!(of(1_000, 900, 7), of(5_000, 4_900, 7));
        assert_ne!(of(1_000, 900, 7), of(1_000, 901, 7));
        assert_ne!(of(1_000, 900, 7), of(1_000, 900, 8));
        assert_ne!(of(1_000, 1_100, 7), of(1_000, 900, 7));
        assert_eq!(of(u64::from(u32::MAX), 1, 7), of(u64::from(u32::MAX), 2, 7), "both long ago");
    }
}
