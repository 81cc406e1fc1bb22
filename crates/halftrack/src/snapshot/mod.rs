//! What the server tells of bodies: not where they went, but what the rules were told.
//!
//! Both ends run the same rules from the same settled state, so a body that keeps doing what it did needs no bits at
//! all, one that changes its input needs the change, and only one that the world altered needs its state.

mod bodies;
mod body;
mod choice;
mod crowd;
mod decoder;
mod departed;
mod gaps;
mod header;
mod history;
mod kept;
mod own;
mod places;
mod roster;
#[cfg(test)]
mod round_trip;
mod scratch;
mod section;
mod shared;
mod telling;
mod turnover;
mod view;

pub use bodies::{Bodies, Escapes};
pub use body::MAX_BODY_BYTES;
pub(crate) use body::{SNAPSHOT_REST_BYTES, check_body_bytes};
pub(crate) use crowd::SavedCrowd;
pub use crowd::{Crowd, SnapshotError};
pub use header::{Echo, Header};
pub use history::{BodyHistory, Course, TickRecord, history_ticks};
pub use own::{MAX_FATES, TickFate, read_own, write_own};
pub(crate) use own::{fates_that_fit, write_fates};
pub use view::View;
