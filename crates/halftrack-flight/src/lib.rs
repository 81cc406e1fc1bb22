//! A flight recorder of a client: every call that changed it, in a ring of bounded size, and reports that replay exactly.
//!
//! ```text
//!  host ──► FlightClient<G> ──► Client<G>
//!               │ every call, its moment and its bytes; a digest of each frame's picture
//!               ▼
//!            Ring: | key state, calls | key state, calls | key state, calls ...     the oldest are dropped
//!               │
//!  flight_report() ─► bytes ──► Replayer<G>: the same calls to the same client, each frame compared with its digest
//! ```
//!
//! A client is a pure function of its calls, so a state and the calls after it are all that there is to know. Secrets are
//! not written: neither credentials nor the token of the session. `docs/FLIGHT.md` describes the file.
//!
//! | module | what it is |
//! |---|---|
//! | `client` | [`FlightClient`]: a client and its recorder |
//! | `recorder` | fills the ring, and keeps tokens out of it |
//! | `ring` | stretches of calls behind key states, bounded in bytes |
//! | `call`, `shown` | one call as bytes, the picture of a frame as a digest |
//! | `report`, `preface` | [`Report`]: the ring as a file, and the client's config in it |
//! | `replayer` | [`Replayer`]: the calls again, frame by frame |
//! | `bounded`, `write` | postcard's format, read with bounds and written |
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

mod bounded;
mod call;
mod client;
mod preface;
mod recorder;
mod replayer;
mod report;
mod ring;
mod shown;
mod write;

use core::time::Duration;

pub use bounded::ReadError;
pub use client::FlightClient;
use halftrack::{ConfigError, Timestamp};
pub use replayer::{Difference, FlightError, Replayer, Step};
pub use report::{Damage, Report, ReportError};

/// Config of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightConfig {
    /// Bytes of the ring at most. Default 4 MiB: 25 minutes among a few players, four among two hundred.
    /// From 256 KiB, below which the key state of a full room leaves no room for calls, to 256 MiB.
    pub max_bytes: usize,
    /// Time between key states. Default 15 s: shorter ones take more room, longer ones lose more when the oldest is
    /// dropped. From 1 s to 10 min. A key state is also taken when an eighth of the ring was written since the last.
    pub key_every: Duration,
}

impl Default for FlightConfig {
    fn default() -> Self {
        Self { max_bytes: 4 << 20, key_every: Duration::from_secs(15) }
    }
}

impl FlightConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let (min, max, got) = (256 << 10, 256 << 20, self.max_bytes);
        if !(min..=max).contains(&got) {
            return Err(ConfigError::Count { field: "flight.max_bytes", got, min, max });
        }
        let (min, max, got) = (Duration::from_secs(1), Duration::from_secs(600), self.key_every);
        if !(min..=max).contains(&got) {
            return Err(ConfigError::Span { field: "flight.key_every", got, min, max });
        }
        Ok(())
    }
}

/// The state of a recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightStats {
    /// Bytes in the ring.
    pub bytes: usize,
    /// Key states in it.
    pub keys: usize,
    /// Bytes of the newest key state.
    pub key_bytes: usize,
    /// The moment at which a report would begin.
    pub since: Option<Timestamp>,
    /// Stretches that were dropped to make room.
    pub dropped: u64,
    /// Times that the whole ring was dropped because no key state could be taken for too long.
    pub blanks: u64,
}
