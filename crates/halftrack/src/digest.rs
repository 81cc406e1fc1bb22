//! A 64-bit hash of plain numbers: the same on every machine, quick, and not meant against an attacker.

/// Hashes what it is fed, in order.
///
/// ```
/// use halftrack::Digest;
///
/// let digest = |x: f64, hp: u8| Digest::new().float(x).word(hp.into()).finish();
/// assert_eq!(digest(1.5, 100), digest(1.5, 100));
/// assert_ne!(digest(1.5, 100), digest(1.5, 99));
/// assert_ne!(digest(0.0, 100), digest(-0.0, 100), "every bit counts");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// Of nothing yet.
    pub const fn new() -> Self {
        Self(0x6a09_e667_f3bc_c908)
    }

    /// And `word`.
    #[must_use]
    pub const fn word(self, word: u64) -> Self {
        // Multiply, then fold the high half into the low: every input bit reaches every output bit within two
        // words, and order matters.
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ (mixed >> 32))
    }

    /// And the bits of `float`.
    #[must_use]
    pub const fn float(self, float: f64) -> Self {
        self.word(float.to_bits())
    }

    /// The hash.
    pub const fn finish(self) -> u64 {
        self.word(0).0
    }
}
