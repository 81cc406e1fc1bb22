//! The program `tanks`: it serves the tank game, plays it, and loads it.
//!
//! | module | what it is |
//! |---|---|
//! | `serve`, `server` | a server that runs: sockets, signals, its end |
//! | `app` | what its parts share; reload and drain |
//! | `lobby`, `world` | rooms made on demand, and the world in them |
//! | `gate`, `token`, `secret` | who is let in, and who may say so |
//! | `identity` | the certificate, changed in good time |
//! | `http`, `admin`, `page`, `site` | what is served by HTTP |
//! | `metrics`, `process`, `summary`, `log` | what is told of it |
//! | `config` | what an operator may choose |

mod admin;
mod app;
mod config;
mod gate;
mod http;
mod identity;
mod lobby;
mod log;
mod metrics;
mod page;
mod process;
#[cfg(test)]
mod scratch;
mod secret;
mod serve;
mod server;
mod site;
mod summary;
mod token;
mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The tank game of Halftrack: client prediction on the server's own cadence, served, played and loaded by one program.
#[derive(Parser)]
#[command(version, subcommand_required = false)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Options),
    /// Makes keys, and tokens that let players in where `auth.mode` is "tokens".
    Token(token::Options),
}

/// Nothing here is handled: it is told, and that is the end.
type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("tanks: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Option<Command>) -> Result<(), Failed> {
    match command {
        None => Ok(()),
        Some(Command::Token(options)) => Ok(token::run(&options)?),
        Some(Command::Serve(options)) => Ok(runtime()?.block_on(serve::run(options))?),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failed> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}
