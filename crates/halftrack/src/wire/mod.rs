//! Bits to types and back. On write the caller is responsible; on read everything is checked.
//!
//! Every decoder is total: any bytes give a value or a named [`WireError`].

mod bits;
pub mod control;
mod frame;
mod move_input;

pub use bits::{BitReader, BitWriter, Coded, WireError};
pub use frame::{Frame, FrameReader};
#[cfg(test)]
pub(crate) use move_input::tests as move_input_tests;
pub use move_input::{Completeness, MoveInput};
pub(crate) use move_input::{read_tick, write_tick};
