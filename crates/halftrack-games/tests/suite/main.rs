//! All integration tests of the crate as one program.

mod hover;
mod rig;
mod rules;
