//! `tanks serve`.

use std::path::PathBuf;

use crate::app::{Source, StartError};
use crate::config::DEFAULT_FILE;
use crate::log;
use crate::out;
use crate::server::Server;
use crate::summary::Summary;

/// Serves the game: a page, rooms, health and metrics on one port number.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tanks serve                                        on 127.0.0.1:7777, for this machine\n  \
    tanks serve --listen [::]:7777                     for every network, IPv4 and IPv6\n  \
    tanks serve --print-config > tanks.toml            every key with its default and its reason\n  \
    tanks serve --config tanks.toml --set log.format=json\n  \
    tanks serve --recover recordings                   records matches, and goes on after a crash\n\n\
    Signals: SIGTERM drains and ends, SIGHUP reads config, certificate and keys again, Ctrl-C ends at once.")]
pub(crate) struct Options {
    /// The config file.
    #[arg(long, short, value_name = "FILE", env = "TANKS_CONFIG")]
    config: Option<PathBuf>,
    /// Where to listen, TCP and UDP; short for --set listen=ADDRESS.
    #[arg(long, short, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Replaces one key of the config, as in --set rooms.capacity=64. May be given more than once.
    #[arg(long, short, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Writes every match to a file in this folder; short for --set record.folder=DIR. `tanks replay` plays them back.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// The same, and goes on with the matches there that never ended: what to start with after a crash, or always.
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    recover: Option<PathBuf>,
    /// Prints the commented default config, and does nothing else.
    #[arg(long)]
    print_config: bool,
    /// Checks the config and the files that it names, and does nothing else.
    #[arg(long)]
    check_config: bool,
}

/// Serves until it is told to end.
pub(crate) async fn run(options: Options) -> Result<(), StartError> {
    if options.print_config {
        out::print(DEFAULT_FILE).map_err(StartError::Print)?;
        return Ok(());
    }
    let mut sets = options.set;
    sets.extend(options.listen.map(|listen| format!("listen={listen}")));
    let quoted = |folder: &PathBuf| format!("record.folder={:?}", folder.display().to_string());
    sets.extend(options.record.iter().chain(&options.recover).map(quoted));
    sets.extend(options.recover.is_some().then(|| "record.recover=true".to_owned()));
    let source = Source { file: options.config, sets };
    let config = source.load()?;
    if options.check_config {
        crate::app::App::new(config, source, None)?;
        out::line("the config can be used").map_err(StartError::Print)?;
        return Ok(());
    }
    let log = log::start(&config.log)?;
    let mut server = Server::start(config, source, Some(log)).await?;
    out::line(format_args!("serving on {}", server.url())).map_err(StartError::Print)?;
    let app = server.app().clone();
    server.wait().await;
    server.stop().await;
    out::print(Summary::of(&app)).map_err(StartError::Print)?;
    Ok(())
}
