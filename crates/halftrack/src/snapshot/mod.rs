//! Snapshots: the bodies of a room, sent as the inputs of the rules instead of their outcome.
//!
//! Both ends run the same rules from the same settled state, so a body that keeps doing what it did needs no bits at
//! all, one that changes its input needs the change, and only one that the world altered needs its state.

mod bodies;
#[cfg(test)]
mod bodies_tests;
mod body;
mod choice;
mod crowd;
mod decoder;
mod departed;
#[cfg(test)]
mod emission_tests;
mod encoder;
mod gaps;
mod header;
mod history;
mod ids;
mod own;
mod places;
mod roster;
#[cfg(test)]
mod round_trip;
mod scratch;
mod section;
mod server_body;
mod shared;
mod turnover;
mod view;

pub use bodies::{Bodies, BodyLimits, BodyRefused, Emissions, Escapes, SpawnRefused};
pub use body::MAX_BODY_BYTES;
pub(crate) use body::{SNAPSHOT_REST_BYTES, check_body_bytes};
pub(crate) use crowd::SavedCrowd;
pub use crowd::{Crowd, SnapshotError};
pub use header::{Echo, Header};
pub use history::{BodyHistory, Course, TickRecord, history_ticks};
pub use ids::BodyKey;
pub use own::{MAX_FATES, MAX_OWNED, OwnBodies};
pub(crate) use own::{fates_that_fit, write_emitted, write_fates, write_ids, write_plain_fates};
pub use server_body::Ended;
pub use view::View;
