//! What can be asked of `tanks bots`.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use halftrack_io::{CertificateHash, RoomName, Trust};
use halftrack_lab::Frames;
use halftrack_netem::LinkConfig;

use super::bot::Play;
use super::company::{CompanyConfig, Way};
use super::error::BotsError;
use super::fetch::Base;
use crate::site::Site;
use crate::token::Signer;

/// Load a server with bots, and tell what they see of it
///
/// Bots are native clients with everything that a player's has: prediction, interpolation, reconnecting. They come in one
/// after the other; 3 s after the last of them measuring begins. The figures are those of the lab: docs/LAB.md.
///
/// Ends with 0, or with 1 when no bot got in, or one of them is not in at the end.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: a hundred players for a minute, on a bad mobile network\n  \
    tanks bots --count 100 --seconds 60 --delay-ms 60 --jitter-ms 25 --loss 0.03 --burst 3 --json bots.json")]
pub(crate) struct Options {
    /// Where the server's pages are
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7777")]
    pub(super) connect: String,
    /// How many bots
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = positive)]
    pub(super) count: usize,
    /// How long to measure, in seconds
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = seconds)]
    pub(super) seconds: f64,
    /// Write the figures there, as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// The room to play in [default: the server's]
    #[arg(long, value_name = "ROOM", value_parser = |text: &str| RoomName::new(text))]
    pub(super) room: Option<RoomName>,
    /// By WebSocket instead of QUIC
    #[arg(long)]
    websocket: bool,
    /// How bots play
    #[arg(long, value_enum, default_value_t)]
    play: Play,
    /// Frames that each draws in a second, up to 1000; 0: irregular, 5 to 40 ms apart
    #[arg(long, value_name = "HZ", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    frame_hz: u32,
    /// Added delay, one way, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = "Network, each way of each bot")]
    delay_ms: f64,
    /// Its standard deviation, in milliseconds; normal, cut at three of these
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = "Network, each way of each bot")]
    jitter_ms: f64,
    /// Share of datagrams that are lost, from 0 to 1; of a stream they come later
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Network, each way of each bot")]
    loss: f64,
    /// Mean number of datagrams lost in a row, from 1
    #[arg(long, value_name = "N", default_value_t = 1.0, help_heading = "Network, each way of each bot")]
    burst: f64,
    /// What the bots' dice and those of their networks start from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Bots that come in a second; more than 50 a server may refuse for a while
    #[arg(long, value_name = "N", default_value_t = 40.0, value_parser = rate)]
    rate: f64,
    /// Threads that the bots share [default: one for each core and 50 bots, whichever is fewer]
    #[arg(long, value_name = "N", value_parser = positive)]
    threads: Option<usize>,
    /// What their names begin with [default: bot, and the number of the process]
    #[arg(long, value_name = "TEXT")]
    name_prefix: Option<String>,
    /// The private key to sign each bot's token with, where the server wants tokens (see tanks token)
    #[arg(long, value_name = "FILE")]
    token_key: Option<PathBuf>,
    /// The service that the tokens are for, where the server has an auth.audience
    #[arg(long, value_name = "TEXT", requires = "token_key")]
    token_audience: Option<String>,
    /// Trust the certificate of this SHA-256 hash, and not what the server's pages say; may be repeated
    #[arg(long, value_name = "HEX")]
    trust_hash: Vec<CertificateHash>,
    /// Record each bot, in a megabyte of memory, and write there what those were told that were corrected outside contact
    /// (see tanks flight)
    #[arg(long, value_name = "DIR")]
    flight: Option<PathBuf>,
    /// No progress line
    #[arg(long, short)]
    pub(super) quiet: bool,
}

impl Options {
    pub(super) fn company(&self, base: &Base, site: &Site) -> Result<CompanyConfig, BotsError> {
        let way = if self.websocket { Way::WebSocket } else { Way::Quic };
        let mut config = CompanyConfig::new(base, site, self.room.as_ref(), way)?;
        if !self.trust_hash.is_empty() {
            config.trust = Trust::Hashes(self.trust_hash.clone());
        }
        if let Some(path) = &self.flight {
            let failed = |source| BotsError::File { path: path.clone(), source };
            std::fs::create_dir_all(path).map_err(failed)?;
        }
        // A run that was killed a moment ago still has its names.
        let own = || format!("bot{:x}-", std::process::id() & 0xfff);
        Ok(CompanyConfig {
            count: self.count,
            pause: Duration::from_secs_f64(1.0 / self.rate),
            frames: if self.frame_hz == 0 { Frames::Irregular } else { Frames::Hz(self.frame_hz) },
            play: self.play,
            seed: self.seed,
            link: self.link()?,
            name_prefix: self.name_prefix.clone().unwrap_or_else(own),
            audience: self.token_audience.clone(),
            signer: self.token_key.as_deref().map(Signer::from_file).transpose()?.map(Arc::new),
            threads: self.threads.unwrap_or_else(|| default_threads(self.count)).min(self.count),
            flight: self.flight.clone(),
            ..config
        })
    }

    /// What is asked of the network; none when nothing is.
    fn link(&self) -> Result<Option<LinkConfig>, BotsError> {
        let span = |millis: f64| Duration::try_from_secs_f64(millis / 1e3).unwrap_or(Duration::MAX);
        let (loss, burst) = (self.loss, self.burst);
        let (delay, jitter) = (span(self.delay_ms), span(self.jitter_ms));
        let link = LinkConfig { delay, jitter, loss, burst, ..LinkConfig::default() };
        link.check()?;
        Ok((link != LinkConfig { burst, ..LinkConfig::default() }).then_some(link))
    }
}

/// A thread more costs others their turn: only where there is work for it.
fn default_threads(count: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    cores.min(count.div_ceil(50))
}

fn positive(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("a whole number from 1 on")
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let within = |seconds: &f64| (0.1..=86_400.0).contains(seconds);
    text.parse().ok().filter(within).ok_or("seconds from 0.1 to 86400")
}

fn rate(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|rate: &f64| (0.1..=1_000.0).contains(rate)).ok_or("a number from 0.1 to 1000")
}
