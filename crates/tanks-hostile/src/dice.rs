//! The same seed, the same packets: a failure can be had again.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// The bytes with one bit of them turned over.
    pub(crate) fn flip(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let at = self.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << self.below(8);
        }
        bytes
    }

    /// The first part of the bytes.
    pub(crate) fn cut(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes[..self.below(bytes.len())].to_vec()
    }
}
