//! All integration tests of the crate as one program: the core's generic code is compiled once, not once per file.

mod bodies;
mod dist;
mod flight;
mod machines;
mod play;
mod rig;
