//! A state as a number: a hash of its `Debug` text, with every moment as its distance from now. What happens next depends
//! on how long ago something was, never on when.

use std::fmt::{Debug, Write};

use halftrack::Timestamp;

/// A hash of whatever is added to it.
pub(super) struct Fingerprint {
    now: u64,
    state: [u64; 2],
    text: String,
}

/// What the text of a moment begins with.
const MOMENT: &str = "Timestamp(";
/// Longer ago than anything waits for is long ago.
const LONG: i64 = 20_000_000;

impl Fingerprint {
    pub(super) fn new(now: Timestamp) -> Self {
        let state = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b];
        Self { now: now.as_micros(), state, text: String::with_capacity(4_096) }
    }

    pub(super) fn add(&mut self, part: &impl Debug) {
        // Writing into a text cannot fail.
        let _ = write!(self.text, "{part:?};");
    }

    pub(super) fn finish(mut self) -> u128 {
        let text = std::mem::take(&mut self.text);
        let mut parts = text.split(MOMENT);
        self.mix_text(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let micros: u64 = part[..digits].parse().unwrap_or(0);
            let since = micros.wrapping_sub(self.now).cast_signed();
            self.mix(since.clamp(-LONG, LONG).cast_unsigned());
            self.mix_text(&part[digits..]);
        }
        u128::from(self.state[0]) << 64 | u128::from(self.state[1])
    }

    fn mix_text(&mut self, text: &str) {
        for piece in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.mix(u64::from_le_bytes(word));
        }
        self.mix(text.len() as u64);
    }

    fn mix(&mut self, word: u64) {
        let [one, other] = &mut self.state;
        *one = (*one ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *one ^= *one >> 29;
        *other = (other.rotate_left(5) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        *other ^= *other >> 31;
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
        let late = u64::from(u32::MAX);
        assert_eq!(of(late, 1, 7), of(late, 2, 7), "both long ago");
    }
}
