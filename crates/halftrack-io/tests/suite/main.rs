//! All integration tests of the crate as one program: the core's generic code is compiled once, not once per file.

mod amplification;
mod http;
mod limits;
mod migration;
mod newcomers;
mod play;
#[path = "../rig/mod.rs"]
mod rig;
mod saved_token;
mod sync_link;
mod trouble;
mod websocket;
