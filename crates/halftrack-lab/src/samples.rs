//! Many numbers, and the few that are told of them.

use serde::Serialize;

/// What is told of many numbers: half, 95 % and 99 % of them are no greater than this, and none is greater than the
/// last. All zero when there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Half of them.
    pub p50: f64,
    /// 95 of a hundred.
    pub p95: f64,
    /// 99 of a hundred.
    pub p99: f64,
    /// All.
    pub max: f64,
}

/// Numbers in the order in which they came. Single precision: a millimetre in ten kilometres.
///
/// ```
/// let mut samples = halftrack_lab::Samples::default();
/// (1..=100).for_each(|number| samples.add(f64::from(number)));
/// assert_eq!(samples.distribution().p95, 95.0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f32>);

impl Samples {
    /// One more.
    pub fn add(&mut self, value: f64) {
        self.0.push(value as f32);
    }

    /// Those of another as well.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// All of them together.
    pub fn sum(&self) -> f64 {
        self.0.iter().map(|value| f64::from(*value)).sum()
    }

    /// What is told of them.
    pub fn distribution(&self) -> Distribution {
        let mut values = self.0.clone();
        let Some(last) = values.len().checked_sub(1) else { return Distribution::default() };
        // The nearest rank: a number that was there, never one between two.
        let mut rank = |share: f64| {
            let at = ((share * values.len() as f64).ceil() as usize).clamp(1, last + 1) - 1;
            f64::from(*values.select_nth_unstable_by(at, f32::total_cmp).1)
        };
        Distribution { p50: rank(0.5), p95: rank(0.95), p99: rank(0.99), max: rank(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_numbers_that_were_there() {
        let mut samples = Samples::default();
        assert_eq!(samples.distribution(), Distribution::default());
        samples.add(3.0);
        let one = Distribution { p50: 3.0, p95: 3.0, p99: 3.0, max: 3.0 };
        assert_eq!(samples.distribution(), one);
        let mut samples = Samples::default();
        (1..=200).rev().for_each(|value| samples.add(f64::from(value)));
        let told = Distribution { p50: 100.0, p95: 190.0, p99: 198.0, max: 200.0 };
        assert_eq!(samples.distribution(), told);
    }
}
