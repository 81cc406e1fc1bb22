//! The program `tanks`: it serves the tank game, plays it, and loads it.
//!
//! | module | what it is |
//! |---|---|
//! | `serve`, `server` | a server that runs: sockets, signals, its end |
//! | `app` | what its parts share; reload and drain |
//! | `bots` | clients that load a server, and what they measure |
//! | `play` | a server with a few machines, to be played at once |
//! | `flight` | a player's bug report, replayed |
//! | `lobby`, `world` | rooms made on demand, and the world in them |
//! | `gate`, `token`, `secret`, `bans` | which players are let in, and who decides |
//! | `record` | matches on disk, and found again after a crash |
//! | `replay` | a recorded match happens again |
//! | `identity` | the certificate, changed in good time |
//! | `http`, `admin`, `page`, `site` | what is served by HTTP |
//! | `metrics`, `process`, `summary`, `log` | what is told of it |
//! | `out`, `words` | printing; counts and dates in words |
//! | `config` | what an operator may choose |

mod admin;
mod app;
mod bans;
mod bots;
mod config;
mod exposition;
mod flight;
mod gate;
mod http;
mod identity;
mod lobby;
mod log;
mod metrics;
mod out;
mod page;
mod play;
mod process;
mod record;
mod replay;
#[cfg(test)]
mod scratch;
mod secret;
mod serve;
mod server;
mod site;
mod summary;
mod token;
mod words;
mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The tank game of Halftrack: client prediction on the server's own cadence, served, played and loaded by one program.
/// Without a command it plays: a server with six machines, tanks that it drives itself.
#[derive(Parser)]
#[command(name = "tanks", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Play(play::Options),
    Serve(serve::Options),
    Bots(bots::Options),
    Replay(replay::Options),
    Flight(flight::Options),
    /// Makes keys, and tokens that let players in where `auth.mode` is "tokens".
    Token(token::Options),
}

/// Nothing here is handled: it is told, and that is the end.
type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let command = Arguments::parse().command.unwrap_or_else(|| Command::Play(play::Options::default()));
    let done = match command {
        Command::Bots(options) => return bots::main(&options),
        Command::Replay(options) => return replay::main(&options),
        Command::Flight(options) => return flight::main(&options),
        Command::Play(options) => in_runtime(play::run(options)),
        Command::Serve(options) => in_runtime(serve::run(options)),
        Command::Token(options) => token::run(&options).map_err(Failed::from),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            out::warn(format_args!("tanks: {problem}"));
            ExitCode::from(2)
        }
    }
}

fn in_runtime<E: std::error::Error + 'static>(
    work: impl Future<Output = Result<(), E>>,
) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(work)?)
}
