//! A small generator: the same seed, the same run, on every platform.

/// Dice of a seed.
///
/// ```
/// use halftrack_lab::Dice;
///
/// let (mut one, mut other) = (Dice::new(7, "bot"), Dice::new(7, "bot"));
/// assert_eq!(one.below(1_000), other.below(1_000));
/// ```
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of `seed` for one purpose: those for another fall differently.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mixed = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(seed ^ mixed);
        dice.roll();
        dice
    }

    /// Any number: a seed for something else.
    pub fn roll(&mut self) -> u64 {
        // SplitMix64: any seed will do, zero included.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.unit() * limit as f64) as u64
    }
}
