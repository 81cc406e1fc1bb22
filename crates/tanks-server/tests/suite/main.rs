//! All integration tests of the crate as one program: the core's generic code is compiled once, not once per file.

mod network;
mod operator;
mod program;
mod recover;
mod rig;
