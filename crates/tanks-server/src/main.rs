//! The program `tanks`: it serves the tank game, plays it, and loads it.
//!
//! | module | what it is |
//! |---|---|
//! | `site` | what a server tells whoever wants to play: `/config.json` |

mod config;
mod gate;
mod identity;
mod lobby;
mod log;
mod metrics;
mod process;
#[cfg(test)]
mod scratch;
mod site;
mod token;
mod world;

fn main() {
    let _ = site::Site::PATH;
}
