//! The parts of a game: [`Input`], [`Body`] and [`Pose`], and the derives that write them.
//!
//! You declare each field once. The derives write settling, codec, digest, size limit and schema hash, and the serde
//! impls that recordings use, bit for bit. Your crate needs no serde of its own.
//!
//! | attribute | on | meaning |
//! |---|---|---|
//! | `#[grid(1/1024, -512..=512)]` | `f32`, `f64` | steps of 1/1024 from -512 to 512 |
//! | `#[turns(1/65536)]` | `f32`, `f64` | part of a turn, wrapped into [0, 1) |
//! | `#[micros]`, `#[micros(0..=5_000_000)]` | `Duration`, `u32` | a timer in whole microseconds |
//! | `#[range(0..=100)]` | integers up to 64 bits | default: the whole range of the type |
//! | `#[presses]` | `u8` | a counter of 4 bits that wraps, see [`Presses`] |
//! | none | `bool`, your own types | your own types derive the same trait |
//! | `#[blank(Tank::new())]` | the type | the body that both ends know without being sent one; write the usual one |
//! | `#[exact_image(Body)]` | the type | names the one derive that writes the serde impls, if you use several; `own`: you write them |
//!
//! Arrays and `Option` take the attribute of their content. Enums may have fields. Ranges may name constants.
//!
//! ```
//! use halftrack::{Body, Input, Pose};
//!
//! const ARENA: f64 = 512.0;
//!
//! #[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
//! struct Pad {
//!     #[range(-16..=16)]
//!     throttle: i8,
//!     #[presses]
//!     jump: u8,
//!     aim: Option<Aim>,
//! }
//!
//! /// In an input and in a body: one of the two derives writes the serde impls.
//! #[derive(Clone, Copy, Debug, Default, PartialEq, Input, Body)]
//! #[exact_image(Body)]
//! struct Aim {
//!     #[turns(1/256)]
//!     at: f32,
//! }
//!
//! #[derive(Clone, Copy, Debug, PartialEq, Body)]
//! struct Runner {
//!     #[grid(1/1024, -ARENA..=ARENA)]
//!     position: [f64; 3],
//!     aim: Aim,
//!     #[presses]
//!     jumps_seen: u8,
//! }
//!
//! #[derive(Clone, Copy, Debug, PartialEq, Pose)]
//! struct RunnerPose {
//!     #[position]
//!     position: [f64; 3],
//!     #[turns]
//!     facing: f64,
//! }
//!
//! assert_eq!(Pad::MAX_BITS, 18, "33 * 16 * 257 values");
//! assert_eq!(Runner::MAX_BITS, 1 + 3 * (2 + 21) + (1 + 9) + 5);
//! ```

mod body;
mod code;
mod digits;
#[doc(hidden)]
pub mod exact;
mod fields;
mod grid;
mod input;
mod levels;
mod micros;
mod offset;
#[doc(hidden)]
pub mod pose;
mod schema;
mod settling;

pub use body::{Body, BodyField};
#[doc(hidden)]
pub use digits::{Digits, count, number_bits, read_number, with_choice, with_digit, write_number};
pub use fields::{Each, Leaf, Maybe, Nested};
#[doc(hidden)]
pub use fields::{most, read_variant, variant_bits, write_variant};
#[doc(hidden)]
pub use grid::end_level;
pub use grid::{Grid, Turns};
pub use input::{Input, InputField};
pub use levels::{Flag, Levels, Presses, Whole};
pub use micros::Micros;
pub use offset::{Offset, Pose};
pub use pose::{Pose2, Pose3};
pub use schema::Schema;
pub use settling::{FieldError, FieldProblem, Settling};
