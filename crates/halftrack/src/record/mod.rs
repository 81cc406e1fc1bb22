//! A match on disk: everything that its world was told, in order. Played back, it is the same match to the bit.
//!
//! ```text
//! magic         8   "HTRECORD"
//! version       1   3
//! length        2   of the header, little-endian
//! header            postcard: shared hash, cadence (us), first tick, run (16 bytes), about (bytes of the host's)
//! check         4   of all that is before
//! frames, one after the other:
//!   length          a varint of at most four bytes: of the entries, times two, and one if they are a tick alone; not zero
//!   entries         postcard: the number of a variant and its fields, as in `Entry`
//!     0 Tick        after its number, which a tick alone has not: bits, for every player in order of number
//!       same    1   told what it was told at the end of the tick before, all the time
//!       told        if not: its input, as in a MoveInput after a tick that ended like the last one
//!       trace   2   of the hash of its body at the end of the tick
//!                   filled up to a whole byte
//!     16 and more   an order of the player with that place, less 16, among those who are there, as the game writes it:
//!                   bits, filled up to a whole byte
//!   check       2   of all that is before it in the file
//! ```
//!
//! A frame is what was written at once, before anything that follows from it was sent to anybody. Checks go over
//! everything before them, so a frame that is cut, damaged, out of place or from another file ends the recording:
//! what is before it holds.

mod entry;
mod playback;
mod reader;
mod recorder;

pub(crate) use entry::work_limit;
pub use entry::{Entry, Header};
pub use playback::{Difference, Playback};
pub use reader::{Damage, Recording, RecordingRefused};
pub use recorder::Recorder;
