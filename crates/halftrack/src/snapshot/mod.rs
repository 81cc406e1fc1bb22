//! What the server tells of bodies: not where they went, but what the rules were told.
//!
//! Both ends run the same rules from the same settled state, so a body that keeps doing what it did needs no bits at
//! all, one that changes its input needs the change, and only one that met something needs its state.

mod bodies;
mod body;
mod crowd;
mod gaps;
mod header;
mod history;
mod own;
mod together;

pub use bodies::{Bodies, View};
pub use body::{BodyCode, DecodedBody, Told, decode_body, encode_body};
pub use crowd::{Crowd, SnapshotError};
pub use header::{Echo, Header};
pub use history::{BodyHistory, Course, HISTORY_TICKS, TickRecord};
pub use own::{MAX_FATES, TickFate, read_own, write_own};
pub(crate) use together::Together;
