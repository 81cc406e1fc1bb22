//! What keeps bots from playing, and what to do about it.

use std::path::PathBuf;
use std::sync::Arc;

use halftrack::{ConfigError, NameRefused};
use halftrack_io::IoError;
use halftrack_netem::NetemError;
use tanks::ArenaError;

use super::fetch::Base;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BotsError {
    #[error("write the server's address as http://HOST:PORT")]
    Url,
    #[error("https is not spoken here: give the server's own address, as http://HOST:PORT")]
    Https,
    #[error("nobody answers at {base}: is `tanks serve` running there? ({source})")]
    Nobody { base: Base, source: std::io::Error },
    #[error("{base} does not answer as a web server does: is that the port of `tanks serve`? ({source})")]
    NotHttp { base: Base, source: hyper::Error },
    #[error("{base} took too long to answer: is the server overloaded, or a firewall in between?")]
    Slow { base: Base },
    #[error("{base} has no {path} (HTTP {status}): is that the port of `tanks serve`?")]
    NotTanks { base: Base, path: &'static str, status: u16 },
    #[error("{base} tells something else than a tanks server does: are both of the same version? ({source})")]
    NotASite { base: Base, source: serde_json::Error },
    #[error("{base} says more than anybody would")]
    TooLong { base: Base },
    #[error("the server speaks version {server} of the protocol, this program {ours}: update the older one")]
    Protocol { server: u16, ours: u16 },
    #[error("the server lets in whoever has a token: sign one with --token-key FILE")]
    TokenNeeded,
    #[error(transparent)]
    Key(#[from] crate::token::KeyError),
    #[error(
        "{count} bots do not fit: a room of this server holds {capacity}; ask for fewer, or a larger room"
    )]
    TooMany { count: usize, capacity: usize },
    #[error("the server's arena cannot be: {0}")]
    Arena(#[from] ArenaError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Io(#[from] IoError),
    #[error("the network that was asked for cannot be: {0}")]
    Link(#[from] NetemError),
    #[error("{0}: choose another --name-prefix")]
    Name(#[from] NameRefused),
    #[error("nobody got in: {0}")]
    NobodyIn(Arc<IoError>),
    #[error("nobody got in")]
    NobodyInSilently,
    #[error("stopped before measuring began")]
    Stopped,
    #[error("cannot write {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("standard output cannot be written to: {0}")]
    Print(#[source] std::io::Error),
    #[error("the system gave no thread or no runtime: {0}")]
    Thread(#[source] std::io::Error),
}
