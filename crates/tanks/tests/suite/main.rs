//! All integration tests of the crate as one program: the core's generic code is compiled once, not once per file.

mod allocations;
mod brawl;
mod cadence;
mod cargo;
mod check_game;
mod combat;
mod corr;
mod crafted;
mod diag;
mod forge;
mod golden;
mod golden_wire;
#[path = "../../examples/room/herd.rs"]
mod herd;
mod machines;
mod neighbours;
mod outcomes;
mod range;
mod recon;
mod record;
mod recording_bounds;
mod replay;
mod rig;
mod rockets;
#[path = "../../../halftrack/tests/rig/mod.rs"]
mod room_rig;
mod snapshot;
mod whole_match;
