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
        // spec: NETEM-01
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }
}

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random { state: 0 };
        let drawn = [random.bits(), random.bits(), random.bits()];
        assert_eq!(drawn, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    #[test]
    fn never_and_always_are_that() {
        let mut random = Random::new(1, 0);
        assert!((0..100_000).all(|_| !random.happens(0.0)));
        assert!((0..100_000).all(|_| random.happens(1.0)));
    }

    #[test]
    fn a_share_is_met() {
        let mut random = Random::new(2, 0);
        let count = (0..1_000_000).filter(|_| random.happens(0.01)).count();
        // Four standard deviations of a binomial: 4 * sqrt(9900).
        assert!(count.abs_diff(10_000) < 400, "{count}");
    }

    #[test]
    fn neighbouring_seeds_purposes_and_forks_have_nothing_in_common() {
        let mut streams = vec![Random::new(1, 0), Random::new(2, 0), Random::new(1, 1)];
        let forks: Vec<_> = streams.iter_mut().flat_map(|random| [random.fork(), random.fork()]).collect();
        streams.extend(forks);
        let units: Vec<Vec<_>> =
            streams.iter_mut().map(|random| (0..10_000).map(|_| random.unit() - 0.5).collect()).collect();
        for (index, left) in units.iter().enumerate() {
            for right in &units[index + 1..] {
                let sum: f64 = left.iter().zip(right).map(|(left, right)| left * right * 12.0).sum();
                // A correlation with a standard error of 1 / 100.
                assert!((sum / 10_000.0).abs() < 0.04, "{sum}");
            }
        }
    }
}
