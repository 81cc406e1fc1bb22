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
    /// Standard deviation of the delay: normal, cut at three of these to either side (drawn anew beyond), and never
    /// less than no delay at all. Default 0; at most 20 s. More than a third of `delay` lifts the mean: see
    /// `mean_delay` of the links.
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
