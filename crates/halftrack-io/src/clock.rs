//! The process's monotonic clock, as the core counts time. Knows nothing but that.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use halftrack::Timestamp;

/// One origin for everything in the process: a room and a client in it can be compared.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

fn origin() -> Instant {
    *ORIGIN.get_or_init(Instant::now)
}

/// Now, in microseconds since the process first asked.
///
/// ```
/// let before = halftrack_io::now();
/// assert!(halftrack_io::now() >= before);
/// ```
pub fn now() -> Timestamp {
    let micros = origin().elapsed().as_micros();
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// That moment, for timers.
pub(crate) fn instant_of(at: Timestamp) -> Instant {
    origin() + Duration::from_micros(at.as_micros())
}
