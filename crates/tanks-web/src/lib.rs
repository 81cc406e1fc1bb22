//! The client of the page: the core's client and the tank game in wasm, on links of the browser.
//!
//! Everything but `browser` compiles and is tested natively; that one is the thin layer on the browser's own objects.
//! `API.md` is what the page sees of it.
//!
//! | module | what it is |
//! |---|---|
//! | `site` | what the server tells before one plays: cadence, arena, addresses, certificates |
//! | `json` | the little JSON that is read |
//! | `play` | [`Play`]: a player's client with all that the page can ask of it; bytes and time come in as arguments |
//! | `network` | the bad network in between, both directions, both lanes |
//! | `gun` | the own gun as far as it can be foretold |
//! | `switches` | parts of the netcode that can be turned off, to see what each is for |
//! | `bodies` | rockets, crates and platforms as they are drawn |
//! | `rockets` | presses of the rocket button, and births and ends of rockets |
//! | `view` | a frame as a flat list of numbers |
//! | `told` | what the page is told of, within bounds |
//! | `gauge` | how evenly snapshots come, and traffic |
//! | `record` | the whole session in numbers, within bounds |
//! | `diagnostics` | all of that as JSON |
//! | `browser` | WebTransport, WebSocket, timers, panics, and what the page calls |

mod bodies;
mod diagnostics;
mod gauge;
mod gun;
mod json;
mod network;
mod play;
mod record;
mod rockets;
mod site;
mod switches;
mod told;
mod view;

#[cfg(target_arch = "wasm32")]
mod browser;

#[cfg(target_arch = "wasm32")]
pub use browser::{TankClient, break_down, golden_hash, on_panic};
pub use gun::NotFired;
pub use json::JsonError;
pub use network::LinkSettings;
pub use play::{Play, Task, Ways};
pub use site::{Address, Site, SiteError};
pub use switches::{Mode, Part};
