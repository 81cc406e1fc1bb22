//! What a link does to its traffic, and what cannot be asked of it.

use core::time::Duration;

use crate::error::NetemError;

/// Satellites and the worst mobile links stay below a second; a minute is beyond any network worth simulating.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// Three of these are a minute too.
const MAX_JITTER: Duration = Duration::from_secs(20);
/// Longer bursts than that are a partition: see `set_blocked`.
const MAX_BURST: f64 = 1_000.0;
/// At less than that one datagram takes longer than a session lasts.
const MIN_RATE: u64 = 1_000;
/// 100 Gbit/s: a full-size datagram in an eighth of a microsecond.
const MAX_RATE: u64 = 100_000_000_000;
/// One Ethernet payload: below it a full-size datagram would never pass.
const MIN_QUEUE_BYTES: usize = 1_500;
/// Fits a 32-bit `usize`, and is more than one link should ever hold.
const MAX_QUEUE_BYTES: usize = 1 << 30;

/// What one direction of a link does to what is sent over it. The default is ideal: at once, everything, once.
///
/// Probabilities are shares from 0 to 1. Times are cut to whole microseconds.
///
/// ```
/// use core::time::Duration;
/// use halftrack_netem::LinkConfig;
///
/// let mobile = LinkConfig {
///     delay: Duration::from_millis(60),
///     jitter: Duration::from_millis(25),
///     loss: 0.03,
///     burst: 3.0,
///     ..LinkConfig::default()
/// };
/// assert!(mobile.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkConfig {
    /// One-way delay around which jitter lies. Default 0; at most 60 s.
    pub delay: Duration,
    /// Sigma of the delay: normal, cut at three of these to either side (drawn anew beyond, which leaves 98.7 % of it
    /// as standard deviation), and never less than no delay at all. Default 0; at most 20 s. More than a third of
    /// `delay` lifts the mean: see `mean_delay` of the links.
    pub jitter: Duration,
    /// Whether nothing overtakes: what would arrive before something sent earlier arrives together with it. Without
    /// it, jitter reorders, as in Linux netem. Default `false`. It wins over `reorder`.
    pub keep_order: bool,
    /// Share of datagrams lost in the long run. Default 0.
    pub loss: f64,
    /// Mean number of datagrams lost in a row: a two-state Gilbert-Elliott chain. Default 1: independent losses,
    /// which come in runs of `1 / (1 - loss)` by chance; a `burst` below that means the same. At most 1000.
    pub burst: f64,
    /// Share of datagrams sent without their delay, so that they overtake those before them, as in Linux netem.
    /// Default 0. Without `delay` there is nothing to overtake.
    pub reorder: f64,
    /// Share of datagrams that arrive twice, each copy with a delay of its own. Default 0.
    pub duplicate: f64,
    /// Share of datagrams that are damaged. The transport is an authenticated one: it notices, so they are dropped and
    /// counted, never delivered. Default 0.
    pub corrupt: f64,
    /// Payload bits per second that leave the sender, one datagram after the other; `None` (the default) for no
    /// limit. 1 kbit/s to 100 Gbit/s.
    pub rate_bits_per_second: Option<u64>,
    /// With a rate: payload bytes that wait for it, the one being sent included; what does not fit is dropped and
    /// counted. Without: payload bytes that are under way. Default 1 MiB, ten seconds of a busy client's traffic, so
    /// that an unread link stays small and nothing else notices; 1500 bytes to 1 GiB. A home router has 64 to 256 kB.
    pub max_queue_bytes: usize,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            keep_order: false,
            loss: 0.0,
            burst: 1.0,
            reorder: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            rate_bits_per_second: None,
            max_queue_bytes: 1 << 20,
        }
    }
}

impl LinkConfig {
    /// Whether a link can do this; the error says which field cannot be, and what to give instead.
    pub fn check(&self) -> Result<(), NetemError> {
        span("delay", self.delay, MAX_DELAY)?;
        span("jitter", self.jitter, MAX_JITTER)?;
        ratio("loss", self.loss)?;
        ratio("reorder", self.reorder)?;
        ratio("duplicate", self.duplicate)?;
        ratio("corrupt", self.corrupt)?;
        burst(self.burst)?;
        rate(self.rate_bits_per_second)?;
        queue(self.max_queue_bytes)
    }
}

fn span(field: &'static str, got: Duration, max: Duration) -> Result<(), NetemError> {
    if got <= max { Ok(()) } else { Err(NetemError::Span { field, got, max }) }
}

/// A range contains no NaN, so this refuses it too.
fn ratio(field: &'static str, got: f64) -> Result<(), NetemError> {
    if (0.0..=1.0).contains(&got) { Ok(()) } else { Err(NetemError::Ratio { field, got }) }
}

fn burst(got: f64) -> Result<(), NetemError> {
    let holds = (1.0..=MAX_BURST).contains(&got);
    if holds { Ok(()) } else { Err(NetemError::Burst { got, max: MAX_BURST }) }
}

fn rate(got: Option<u64>) -> Result<(), NetemError> {
    match got {
        Some(got) if !(MIN_RATE..=MAX_RATE).contains(&got) => {
            Err(NetemError::Rate { got, min: MIN_RATE, max: MAX_RATE })
        }
        _ => Ok(()),
    }
}

fn queue(got: usize) -> Result<(), NetemError> {
    let holds = (MIN_QUEUE_BYTES..=MAX_QUEUE_BYTES).contains(&got);
    if holds { Ok(()) } else { Err(NetemError::Queue { got, min: MIN_QUEUE_BYTES, max: MAX_QUEUE_BYTES }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `change` makes of the ideal link.
    fn check(change: impl FnOnce(&mut LinkConfig)) -> Result<(), NetemError> {
        let mut config = LinkConfig::default();
        change(&mut config);
        config.check()
    }

    #[test]
    fn the_ideal_link_is_one() {
        assert_eq!(LinkConfig::default().check(), Ok(()));
    }

    #[test]
    fn times_end_at_their_longest() {
        let micro = Duration::from_micros(1);
        assert!(check(|c| c.delay = MAX_DELAY).is_ok());
        assert!(check(|c| c.delay = MAX_DELAY + micro).is_err());
        assert!(check(|c| c.jitter = MAX_JITTER).is_ok());
        assert!(check(|c| c.jitter = MAX_JITTER + micro).is_err());
    }

    #[test]
    fn shares_are_from_none_to_all() {
        type Field = fn(&mut LinkConfig) -> &mut f64;
        let fields: [Field; 4] =
            [|c| &mut c.loss, |c| &mut c.reorder, |c| &mut c.duplicate, |c| &mut c.corrupt];
        for field in fields {
            for inside in [0.0, -0.0, f64::MIN_POSITIVE, 1.0] {
                assert!(check(|c| *field(c) = inside).is_ok(), "{inside}");
            }
            for outside in [-f64::MIN_POSITIVE, 1.0f64.next_up(), f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
            {
                let refused = check(|c| *field(c) = outside);
                assert!(matches!(refused, Err(NetemError::Ratio { .. })), "{outside}");
            }
        }
    }

    #[test]
    fn bursts_are_of_one_at_least() {
        for inside in [1.0, MAX_BURST] {
            assert!(check(|c| c.burst = inside).is_ok(), "{inside}");
        }
        for outside in [1.0f64.next_down(), MAX_BURST.next_up(), 0.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(check(|c| c.burst = outside), Err(NetemError::Burst { .. })), "{outside}");
        }
    }

    #[test]
    fn rates_and_queues_have_two_ends() {
        for (inside, outside) in [(MIN_RATE, MIN_RATE - 1), (MAX_RATE, MAX_RATE + 1)] {
            assert!(check(|c| c.rate_bits_per_second = Some(inside)).is_ok());
            assert!(check(|c| c.rate_bits_per_second = Some(outside)).is_err());
        }
        for (inside, outside) in
            [(MIN_QUEUE_BYTES, MIN_QUEUE_BYTES - 1), (MAX_QUEUE_BYTES, MAX_QUEUE_BYTES + 1)]
        {
            assert!(check(|c| c.max_queue_bytes = inside).is_ok());
            assert!(check(|c| c.max_queue_bytes = outside).is_err());
        }
    }

    #[test]
    fn the_error_says_what_to_do() {
        let refused = check(|c| c.rate_bits_per_second = Some(0)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "rate_bits_per_second is 0; give 1000 to 100000000000, or None for no limit"
        );
        let refused = check(|c| c.delay = Duration::from_secs(61)).unwrap_err();
        assert_eq!(refused.to_string(), "delay is 61s; give at most 60s");
    }
}
