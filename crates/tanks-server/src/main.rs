//! The program `tanks`: it serves the tank game, plays it, and loads it.
//!
//! | module | what it is |
//! |---|---|
//! | `site` | what a server tells whoever wants to play: `/config.json` |
//! | `bots` | clients that load a server, and what they measure |

mod bots;
#[cfg_attr(not(test), allow(dead_code, reason = "what a server tells is told by a server"))]
mod site;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "tanks", version, about = "Serves the tank game, plays it, and loads it.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bots(bots::Options),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bots(options) => bots::main(&options),
    }
}
