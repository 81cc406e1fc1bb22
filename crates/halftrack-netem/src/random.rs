//! A small generator, the same everywhere: integers are exact, and `libm` is the only source of anything else.

/// `SplitMix64` (Steele, Lea and Flood 2014): eight bytes of state, passes `BigCrush`, and any seed is a good one.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// `purpose` keeps things that are given the same seed from rolling the same dice.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        Self { state: mix(mix(seed) ^ purpose) }
    }

    /// A generator of its own, so that what one draws from it does not shift what others draw.
    pub(crate) fn fork(&mut self) -> Self {
        Self { state: self.bits() }
    }

    /// True with this probability; always draws once.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A standard normal, drawn anew while it is further than `cut` from zero.
    pub(crate) fn normal_within(&mut self, cut: f64) -> f64 {
        loop {
            let drawn = self.normal();
            if drawn.abs() <= cut {
                return drawn;
            }
        }
    }

    /// Box and Muller 1958, one of the pair: fixed draws, and no state between calls.
    fn normal(&mut self) -> f64 {
        // In (0, 1]: the logarithm of zero is no radius.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }

    /// In `[0, 1)`, every value a multiple of 2^-53: exact.
    fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.bits() >> 11) as f64 * STEP
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }
}

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
