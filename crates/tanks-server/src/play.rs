//! `tanks play`: a server and a few bots in one process, to be played at once.

use std::net::SocketAddr;

use halftrack_io::IoError;

use crate::app::{Source, StartError};
use crate::bots::{Base, BotsError, Company, CompanyConfig, Way};
use crate::config::Config;
use crate::server::Server;
use crate::summary::Summary;
use crate::{log, page};

/// Plays at once: a server and bots in one process, for this machine. What `tanks` does when it is told nothing.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tanks                      six bots fight; open the address that is printed\n  \
    tanks play --bots 12\n  \
    tanks play --listen [::]:7777    for others on the network too")]
pub(crate) struct Options {
    /// How many bots fight.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(0..=64))]
    bots: u16,
    /// Where to listen, TCP and UDP. Default 127.0.0.1:7777, or any port that is free when that one is not.
    #[arg(long, short, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Replaces one key of the config, as in --set rooms.arena=open:50: see `tanks serve --print-config`.
    #[arg(long, short, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { bots: 6, listen: None, set: vec![] }
    }
}

/// What can go wrong before anybody plays.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlayError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Bots(#[from] BotsError),
}

/// Plays until Ctrl-C.
pub(crate) async fn run(options: Options) -> Result<(), PlayError> {
    // A small arena with something to hide behind, and quiet unless something is wrong.
    let mut sets =
        ["rooms.arena=proving-ground", "rooms.capacity=32", "log.level=warn"].map(str::to_owned).to_vec();
    sets.extend(options.set);
    sets.extend(options.listen.map(|listen| format!("listen={listen}")));
    let source = Source { file: None, sets };
    let config = source.load().map_err(StartError::from)?;
    let log = log::start(&config.log).map_err(StartError::from)?;
    let mut server = match Server::start(config.clone(), source.clone(), Some(log.clone())).await {
        Err(StartError::Io(IoError::AddressInUse { .. })) if options.listen.is_none() => {
            let anywhere = Config { listen: SocketAddr::new(config.listen.ip(), 0), ..config };
            Server::start(anywhere, source, Some(log)).await?
        }
        started => started?,
    };
    let app = server.app().clone();
    let company = start_bots(&server, options.bots);
    println!("play at {}", server.url());
    if !page::is_built() {
        println!("(this build has no page: `cargo xtask web` builds it; bots and metrics are there)");
    }
    println!("{} bots fight. Ctrl-C ends it.", options.bots);
    let company = match company {
        Ok(company) => company,
        Err(problem) => {
            server.stop().await;
            return Err(problem.into());
        }
    };
    server.wait().await;
    // First: a bot that leaves by itself is no disconnection.
    let fought = tokio::task::spawn_blocking(move || company.stop()).await;
    server.stop().await;
    println!();
    if let Ok(Ok(fought)) = fought {
        let (shots, hits, kills) = (fought.shots, fought.hits, fought.kills);
        println!("the bots fired {shots} shots, hit {hits} times and made {kills} kills");
    }
    print!("{}", Summary::of(&app));
    Ok(())
}

fn start_bots(server: &Server, count: u16) -> Result<Company, BotsError> {
    let base: Base = server.url().parse()?;
    let site = server.app().site();
    let config = CompanyConfig::new(&base, &site, None, Way::Quic)?;
    Company::start(CompanyConfig { count: usize::from(count), name_prefix: "Bot ".to_owned(), ..config })
}
