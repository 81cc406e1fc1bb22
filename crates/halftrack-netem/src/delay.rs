//! How long one datagram takes, and how long the mean one does.

use core::time::Duration;

use crate::random::Random;

/// Where the normal is cut, in sigmas.
const CUT: f64 = 3.0;

/// A normal delay, cut at three sigmas and at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delay {
    center_us: f64,
    sigma_us: f64,
}

impl Delay {
    pub(crate) fn new(delay: Duration, jitter: Duration) -> Self {
        Self { center_us: whole_micros(delay), sigma_us: whole_micros(jitter) }
    }

    /// One delay. Draws as often whatever the sigma is, so that turning it does not shift other dice.
    pub(crate) fn draw(&self, dice: &mut Random) -> Duration {
        // spec: NETEM-02
        span(self.center_us + self.sigma_us * dice.normal_within(CUT))
    }

    /// The middle of the delays, before they are cut at zero.
    pub(crate) fn center(&self) -> Duration {
        span(self.center_us)
    }

    /// The longest that is ever drawn.
    pub(crate) fn longest(&self) -> Duration {
        span(self.center_us + self.sigma_us * CUT)
    }

    /// The mean over all, when this share of them is delayed and the rest not at all.
    pub(crate) fn mean(&self, delayed_share: f64) -> Duration {
        span(self.mean_us() * delayed_share)
    }

    /// The mean of what is drawn: the center, or more when delays are cut at zero.
    fn mean_us(&self) -> f64 {
        if self.center_us >= self.sigma_us * CUT {
            return self.center_us;
        }
        // Integral of `max(0, center + sigma * z)` over the density of `z` from -CUT to CUT.
        let zero_at = -self.center_us / self.sigma_us;
        let above = below(CUT) - below(zero_at);
        let area = self.center_us * above + self.sigma_us * (density(zero_at) - density(CUT));
        area / (below(CUT) - below(-CUT))
    }
}

/// The standard normal's density.
fn density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / libm::sqrt(core::f64::consts::TAU)
}

/// The standard normal's share below `z`.
fn below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
}

fn whole_micros(span: Duration) -> f64 {
    // Config keeps spans below a minute: exact.
    span.as_micros() as f64
}

/// The nearest whole microsecond; nothing arrives before it was sent.
fn span(micros: f64) -> Duration {
    Duration::from_micros(libm::round(micros).max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 1_000_000;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn draws(delay: Delay) -> Vec<f64> {
        let mut dice = Random::new(11, 0);
        (0..DRAWS).map(|_| delay.draw(&mut dice).as_micros() as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / f64::from(DRAWS)
    }

    #[test]
    fn the_mean_is_that_of_what_is_drawn_even_where_it_is_cut_at_zero() {
        for (center, sigma) in [(30, 10), (31, 10), (15, 12), (60, 25), (5, 20), (0, 10), (20, 0), (0, 0)] {
            let delay = Delay::new(millis(center), millis(sigma));
            let (told, drawn) = (delay.mean(1.0).as_micros() as f64, mean(&draws(delay)));
            // Four standard errors of the mean, and a rounding.
            let tolerance = 4.0 * (sigma * 1_000) as f64 / f64::from(DRAWS).sqrt() + 0.5;
            assert!((told - drawn).abs() <= tolerance, "{center} ms, {sigma} ms: {told} told, {drawn} drawn");
        }
    }

    #[test]
    fn sigma_is_what_is_asked_for_within_what_the_cut_takes() {
        let delay = Delay::new(millis(100), millis(10));
        let drawn = draws(delay);
        let center = mean(&drawn);
        let squares: Vec<_> = drawn.iter().map(|value| (value - center) * (value - center)).collect();
        // A normal cut at three sigmas has a sigma of sqrt(1 - 6 density(3) / share within) = 0.98658.
        let sigma = mean(&squares).sqrt() / 10_000.0;
        assert!((sigma - 0.98658).abs() < 0.003, "{sigma}");
    }

    #[test]
    fn the_cut_is_at_three_sigmas_and_reached() {
        let delay = Delay::new(millis(100), millis(10));
        let drawn = draws(delay);
        let (least, most) = drawn.iter().fold((f64::MAX, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
        assert!((70_000.0..70_100.0).contains(&least), "{least}");
        assert!((129_900.0..=130_000.0).contains(&most), "{most}");
        assert_eq!(delay.longest(), millis(130));
        // 4.55 % lie beyond two sigmas, less the 0.27 % beyond three.
        let beyond = drawn.iter().filter(|value| (*value - 100_000.0).abs() > 20_000.0).count();
        let share = beyond as f64 / f64::from(DRAWS);
        assert!((share - 0.0429).abs() < 0.001, "{share}");
    }

    #[test]
    fn what_overtakes_has_no_part_in_the_mean() {
        let delay = Delay::new(millis(100), millis(10));
        assert_eq!(delay.mean(0.75), millis(75));
        assert_eq!(delay.mean(0.0), Duration::ZERO);
    }
}
