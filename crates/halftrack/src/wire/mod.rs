//! Bits to types and back. On write the caller is responsible; on read everything is checked.
//!
//! Every decoder is total: any bytes give a value or a named [`WireError`].

mod bits;
pub mod control;
mod frame;

pub use bits::{BitReader, BitWriter, WireError};
pub use frame::{Frame, FrameReader, read_bytes, write_bytes};
