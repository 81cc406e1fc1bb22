//! `tanks play`: a server and a few bots in one process, to be played at once.

use std::net::SocketAddr;

use halftrack_io::IoError;

use crate::app::{Phase, Source, StartError};
use crate::bots::{Base, BotsError, Company, CompanyConfig, Way};
use crate::config::Config;
use crate::server::Server;
use crate::summary::Summary;
use crate::words::Count;
use crate::{log, out, page};

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
    // A drain is short: players at this machine know that it ends.
    let mut sets = ["rooms.arena=proving-ground", "rooms.capacity=32", "log.level=warn", "drain.seconds=3"]
        .map(str::to_owned)
        .to_vec();
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
    let no_page = "(this build has no page: `cargo xtask web` builds it; bots and metrics are there)\n";
    let fight = if options.bots == 1 { "fights" } else { "fight" };
    out::print(format_args!(
        "play at {}\n{}{} {fight}. Ctrl-C ends it.\n",
        server.url(),
        if page::is_built() { "" } else { no_page },
        Count(options.bots, "bot")
    ))
    .map_err(StartError::Print)?;
    let company = match company {
        Ok(company) => company,
        Err(problem) => {
            server.stop().await;
            return Err(problem.into());
        }
    };
    // Bots leave as soon as it ends, by themselves: a drain does not wait for them, and nothing is disconnected.
    let mut phases = app.phase();
    let leave = async move {
        let ending = phases.wait_for(|phase| *phase != Phase::Serving).await.is_ok();
        debug_assert!(ending, "the server outlives its bots");
        tokio::task::spawn_blocking(move || company.stop()).await
    };
    let (fought, ()) = tokio::join!(leave, server.wait());
    server.stop().await;
    let fought = fought.ok().and_then(Result::ok).map_or_else(String::new, |fought| {
        let (shots, kills) = (Count(fought.shots, "shot"), Count(fought.kills, "kill"));
        format!("the bots fired {shots}, of which {} hit, and made {kills}\n", fought.hits)
    });
    out::print(format_args!("\n{fought}{}", Summary::of(&app))).map_err(StartError::Print)?;
    Ok(())
}

fn start_bots(server: &Server, count: u16) -> Result<Company, BotsError> {
    let base: Base = server.url().parse()?;
    let site = server.app().site();
    let config = CompanyConfig::new(&base, &site, None, Way::Quic)?;
    Company::start(CompanyConfig { count: usize::from(count), name_prefix: "Bot ".to_owned(), ..config })
}
