//! All integration tests of the crate as one program: the core's generic code is compiled once, not once per file.

mod bodies;
mod carriers;
mod client_messages;
mod clippy_for_rules;
mod clock;
mod complaints;
mod config;
mod documents;
mod emission;
mod escalation;
mod escapes;
mod from_the_documents;
mod group;
mod hostile;
mod lanes;
mod modules;
mod naive_model;
mod presses;
mod range;
mod remote;
#[path = "../rig/mod.rs"]
mod rig;
mod room;
mod saved_token;
mod session;
mod substeps;
mod sync_link;
mod timetable;
mod world;
