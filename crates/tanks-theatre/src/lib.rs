//! A recorded match in the page: any moment of it, at any speed, in the same numbers that the page draws a live match from.
//!
//! The match happens again, by the rules. To go back, there are copies of it every so many ticks, made while the file is
//! read for the first time. Everything but `browser` compiles and is tested natively; `API.md` is what the page sees.
//!
//! A crate of its own, because it is a wasm of its own: whoever only plays does not wait for the server's side of the game.
//!
//! | module | what it is |
//! |---|---|
//! | `theatre` | [`Theatre`]: a file, where in it one is, and how fast time goes |
//! | `index` | the first reading, in slices: copies to go back to, and what is marked on the time line |
//! | `run` | a playback, and what is known of fighters besides their tanks |
//! | `moment` | where tanks are between two ticks |
//! | `things` | rockets, crates and platforms between two ticks, and births and ends of rockets |
//! | `view` | a frame as a flat list of numbers |
//! | `told` | what the page reads as JSON |
//! | `browser` | what the page calls |

mod index;
mod moment;
mod run;
mod theatre;
mod things;
mod told;
mod view;

#[cfg(target_arch = "wasm32")]
mod browser;

#[cfg(target_arch = "wasm32")]
pub use browser::PageTheatre;
pub use index::Limits;
pub use theatre::{Theatre, Wish};
