//! The program `tanks`: it serves the tank game, plays it, and loads it.
//!
//! | module | what it is |
//! |---|---|
//! | `site` | what a server tells whoever wants to play: `/config.json` |

mod config;
#[cfg(test)]
mod scratch;
mod site;

fn main() {
    let _ = site::Site::PATH;
}
