//! `tanks play`: a server with a few machines, to be played at once.

use std::net::SocketAddr;

use halftrack_io::IoError;

use crate::app::{Source, StartError};
use crate::config::Config;
use crate::server::Server;
use crate::summary::Summary;
use crate::words::Count;
use crate::{log, out, page};

/// Plays at once: a server with machines, tanks that it drives itself, for this machine. What `tanks` does when it is told
/// nothing.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Examples:\n  \
    tanks                            six machines; open the address that is printed\n  \
    tanks play --machines 12\n  \
    tanks play --listen [::]:7777    for others on the network too")]
pub(crate) struct Options {
    /// How many machines fight; short for --set rooms.machines=N. From 0 to 100 [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    machines: Option<u8>,
    /// Where to listen, TCP and UDP. Default 127.0.0.1:7777, or any port that is free when that one is not.
    #[arg(long, short, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Replaces one key of the config, as in --set rooms.arena=open:50: see `tanks serve --print-config`.
    #[arg(long, short, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// A small arena with something to hide behind, and quiet unless something is wrong. A drain is short: players at this
/// machine know that it ends.
const SETS: [&str; 6] = [
    "rooms.arena=proving-ground",
    "rooms.capacity=32",
    "rooms.machines=6",
    "rooms.crates=8",
    "log.level=warn",
    "drain.seconds=3",
];

/// Plays until Ctrl-C.
pub(crate) async fn run(options: Options) -> Result<(), StartError> {
    let mut sets = SETS.map(str::to_owned).to_vec();
    sets.extend(options.set);
    sets.extend(options.machines.map(|machines| format!("rooms.machines={machines}")));
    sets.extend(options.listen.map(|listen| format!("listen={listen}")));
    let source = Source { file: None, sets };
    let config = source.load()?;
    let machines = config.rooms.machines();
    let log = log::start(&config.log)?;
    let mut server = match Server::start(config.clone(), source.clone(), Some(log.clone())).await {
        Err(StartError::Io(IoError::AddressInUse { .. })) if options.listen.is_none() => {
            let anywhere = Config { listen: SocketAddr::new(config.listen.ip(), 0), ..config };
            Server::start(anywhere, source, Some(log)).await?
        }
        started => started?,
    };
    let app = server.app().clone();
    let no_page = "(this build has no page: `cargo xtask web` builds it; bots and metrics are there)\n";
    let wait = if machines == 1 { "waits" } else { "wait" };
    out::print(format_args!(
        "play at {}\n{}{} {wait} for you. Ctrl-C ends it.\n",
        server.url(),
        if page::is_built() { "" } else { no_page },
        Count(machines, "machine")
    ))
    .map_err(StartError::Print)?;
    server.wait().await;
    server.stop().await;
    out::print(format_args!("\n{}", Summary::of(&app))).map_err(StartError::Print)?;
    Ok(())
}
