//! All integration tests of the crate as one program.

mod ball_alone;
mod ball_passes;
mod ball_plays;
mod footballer;
mod hover;
mod rig;
mod rules;
