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

    /// The mean of what is drawn: the center, or more when delays are cut at zero.
    pub(crate) fn mean(&self) -> Duration {
        if self.center_us >= self.sigma_us * CUT {
            return self.center();
        }
        // Integral of `max(0, center + sigma * z)` over the density of `z` from -CUT to CUT.
        let zero_at = -self.center_us / self.sigma_us;
        let above = below(CUT) - below(zero_at);
        let area = self.center_us * above + self.sigma_us * (density(zero_at) - density(CUT));
        span(area / (below(CUT) - below(-CUT)))
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
