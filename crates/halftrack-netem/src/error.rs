//! What a link refuses, and what to do instead.

use core::time::Duration;

/// Why a link was not built or changed, or did not take what it was given. Nothing has changed.
///
/// ```
/// use halftrack_netem::{DatagramLink, LinkConfig};
///
/// let refused = DatagramLink::new(LinkConfig { loss: 30.0, ..LinkConfig::default() }, 1).unwrap_err();
/// assert_eq!(refused.to_string(), "loss is 30; give a share from 0 to 1 (0.01 is one in a hundred)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetemError {
    /// A probability that is none.
    #[error("{field} is {got}; give a share from 0 to 1 (0.01 is one in a hundred)")]
    Ratio {
        /// The field's name.
        field: &'static str,
        /// What it was.
        got: f64,
    },
    /// A mean burst that is shorter than one datagram, or longer than any test would see.
    #[error("burst is {got}; give a mean number of datagrams from 1 (independent losses) to {max}")]
    Burst {
        /// What it was.
        got: f64,
        /// The longest.
        max: f64,
    },
    /// A time that is too long.
    #[error("{field} is {got:?}; give at most {max:?}")]
    Span {
        /// The field's name.
        field: &'static str,
        /// What it was.
        got: Duration,
        /// The longest.
        max: Duration,
    },
    /// A rate at which nothing moves, or faster than a microsecond clock can tell from none.
    #[error("rate_bits_per_second is {got}; give {min} to {max}, or None for no limit")]
    Rate {
        /// What it was.
        got: u64,
        /// The slowest.
        min: u64,
        /// The fastest.
        max: u64,
    },
    /// A queue in which no full-size datagram fits, or that is no bound on memory.
    #[error("max_queue_bytes is {got}; give {min} (one full-size datagram) to {max}")]
    Queue {
        /// What it was.
        got: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// A stream has no room for these bytes. None of them was taken.
    #[error(
        "the stream has room for {free} bytes, not for {got}; read the far end, send less, or raise \
         max_queue_bytes"
    )]
    Full {
        /// How many bytes were given.
        got: usize,
        /// How many would be taken.
        free: usize,
    },
}
