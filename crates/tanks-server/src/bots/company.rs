//! Bots that play together on a server until they are told to stop, and what they have come to so far.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use halftrack::client::ClientConfig;
use halftrack::{Cadence, Cause, PlayerName};
use halftrack_io::{IoError, RoomName, Target, Trust};
use halftrack_lab::Frames;
use halftrack_netem::LinkConfig;
use tanks::{Arena, Tanks};
use tokio::runtime::Builder;

use super::bot::Play;
use super::crowd::{Crowd, Outcome};
use super::error::BotsError;
use super::fetch::Base;
use crate::site::{Auth, Site};
use crate::token::{Audience, Claims, Signer, seconds};

/// What a [`Company`] is built from.
#[derive(Clone, Debug)]
pub(super) struct CompanyConfig {
    pub(super) target: Target,
    pub(super) trust: Trust,
    pub(super) cadence: Cadence,
    pub(super) arena: Arc<Arena>,
    /// How many bots. Default 1.
    pub(super) count: usize,
    /// From one that comes to the next. Default 25 ms: half as often as a server lets one address shake hands.
    pub(super) pause: Duration,
    /// When each draws. Default 60 Hz.
    pub(super) frames: Frames,
    pub(super) play: Play,
    /// What their dice and those of their links start from.
    pub(super) seed: u64,
    /// What is between each of them and the server, either way. Default: nothing.
    pub(super) link: Option<LinkConfig>,
    /// Their names are this and a number.
    pub(super) name_prefix: String,
    /// Signs a token for each, where the server asks for one.
    pub(super) signer: Option<Arc<Signer>>,
    /// The service that its tokens are for.
    pub(super) audience: Option<String>,
    /// Threads that they share. Default 1.
    pub(super) threads: usize,
    /// Where a report of each goes that was corrected outside contact. Default: nothing is recorded.
    pub(super) flight: Option<PathBuf>,
}

/// By which link bots come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    #[default]
    Quic,
    WebSocket,
}

impl CompanyConfig {
    /// The defaults, for the server at `base`, which told `site` of itself; the room of those who ask for none.
    pub(super) fn new(
        base: &Base,
        site: &Site,
        room: Option<&RoomName>,
        way: Way,
    ) -> Result<Self, BotsError> {
        let (scheme, port) = match way {
            Way::Quic => ("quic", site.quic.port),
            Way::WebSocket => ("ws", base.port),
        };
        let authority = Base { port, ..base.clone() }.authority();
        let room = room.map_or(site.default_room.as_str(), RoomName::as_str);
        let hashes = site.quic.hashes();
        Ok(Self {
            target: format!("{scheme}://{authority}/room/{room}").parse()?,
            trust: if hashes.is_empty() { Trust::System } else { Trust::Hashes(hashes) },
            cadence: Cadence::new(Duration::from_micros(site.cadence_us))?,
            arena: Arc::new(site.arena.build()?),
            count: 1,
            pause: Duration::from_millis(25),
            frames: Frames::Hz(60),
            play: Play::Brawl,
            seed: 1,
            link: None,
            name_prefix: "bot ".to_owned(),
            signer: None,
            audience: None,
            threads: 1,
            flight: None,
        })
    }

    /// Whether the server would let them in, as far as it has said.
    pub(super) fn check(&self, site: &Site) -> Result<(), BotsError> {
        if site.auth == Auth::Tokens && self.signer.is_none() {
            return Err(BotsError::TokenNeeded);
        }
        if self.count > site.room_capacity {
            return Err(BotsError::TooMany { count: self.count, capacity: site.room_capacity });
        }
        self.client(self.count).map(drop)
    }

    /// The client of bot `index`.
    pub(super) fn client(&self, index: usize) -> Result<ClientConfig<Tanks>, BotsError> {
        let name = PlayerName::new(&format!("{}{index}", self.name_prefix))?;
        let rules = Arc::new(Tanks::new(Arc::clone(&self.arena)));
        let mut config = ClientConfig::new(name, self.cadence, rules);
        config.session.credentials = self.signer.as_ref().map(|signer| {
            /// Longer than bots play.
            const VALID_S: u64 = 2 * 24 * 3_600;
            let sub = config.session.name.as_str().to_owned();
            let aud = self.audience.clone().map(Audience::One);
            signer.sign(&Claims { sub, exp: seconds(SystemTime::now()) + VALID_S, aud, ..Claims::default() })
        });
        Ok(config)
    }
}

/// What bots have come to so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    /// Bots that are in.
    pub(super) players: usize,
    /// Bots whose session is over for good.
    pub(super) ended: usize,
    /// Connections that ended.
    pub(super) disconnects: u64,
    pub(super) shots: u64,
    pub(super) hits: u64,
    pub(super) kills: u64,
    /// Ticks whose input was late.
    pub(super) late_ticks: u64,
    /// Corrections of each cause, in the order of [`Cause::ALL`].
    pub(super) by_cause: [u64; Cause::ALL.len()],
    /// Why one of those who are not in is not.
    pub(super) problem: Option<Arc<IoError>>,
}

impl Summary {
    /// Corrections of every cause.
    pub(super) fn corrections(&self) -> u64 {
        self.by_cause.iter().sum()
    }

    fn add(&mut self, other: &Self) {
        self.players += other.players;
        self.ended += other.ended;
        self.disconnects += other.disconnects;
        self.shots += other.shots;
        self.hits += other.hits;
        self.kills += other.kills;
        self.late_ticks += other.late_ticks;
        self.by_cause.iter_mut().zip(other.by_cause).for_each(|(sum, more)| *sum += more);
        self.problem = self.problem.take().or_else(|| other.problem.clone());
    }
}

/// What is wanted of the bots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Playing = 0,
    Measuring = 1,
    Measured = 2,
    Leaving = 3,
}

/// What threads share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    phase: AtomicU8,
}

impl Shared {
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Playing,
            1 => Phase::Measuring,
            2 => Phase::Measured,
            _ => Phase::Leaving,
        }
    }
}

type Worker = (JoinHandle<Result<Outcome, BotsError>>, Arc<Mutex<Summary>>);

/// Bots that play. They leave when this is dropped.
#[derive(Debug)]
pub(super) struct Company {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
}

impl Company {
    /// Starts them; whether they get in shows in the summary.
    pub(super) fn start(config: CompanyConfig) -> Result<Self, BotsError> {
        let (config, shared) = (Arc::new(config), Arc::<Shared>::default());
        let mut company = Self { shared, workers: Vec::new() };
        let threads = config.threads.clamp(1, config.count.max(1));
        for first in 0..threads {
            let (config, shared) = (Arc::clone(&config), Arc::clone(&company.shared));
            let shown = Arc::<Mutex<Summary>>::default();
            let mine = Arc::clone(&shown);
            let runtime = Builder::new_current_thread().enable_all().build().map_err(BotsError::Thread)?;
            let run = move || {
                runtime.block_on(async { Crowd::new(&config, &shared, &mine, (first, threads)).run().await })
            };
            let thread = thread::Builder::new().name("tanks bots".to_owned()).spawn(run);
            company.workers.push((thread.map_err(BotsError::Thread)?, shown));
        }
        Ok(company)
    }

    /// What they have come to so far.
    pub(super) fn summary(&self) -> Summary {
        let mut sum = Summary::default();
        for (_, shown) in &self.workers {
            sum.add(&shown.lock().unwrap_or_else(PoisonError::into_inner));
        }
        sum
    }

    /// Whether a thread has given up.
    pub(super) fn is_broken(&self) -> bool {
        self.workers.iter().any(|(thread, _)| thread.is_finished())
    }

    /// Numbers count from here on.
    pub(super) fn begin(&self) {
        self.want(Phase::Measuring);
    }

    /// Numbers do not count any more.
    pub(super) fn end(&self) {
        self.want(Phase::Measured);
    }

    /// Lets everybody leave, in bounded time, and gives what was measured.
    pub(super) fn measured(mut self) -> Result<Outcome, BotsError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<Outcome, BotsError> {
        self.want(Phase::Leaving);
        let mut all = Outcome::default();
        for (thread, _) in self.workers.drain(..) {
            // A panic has been reported by its own thread.
            if let Ok(outcome) = thread.join() {
                let outcome = outcome?;
                all.counts.extend(outcome.counts);
                all.findings.append(outcome.findings);
            }
        }
        Ok(all)
    }

    fn want(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Relaxed);
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
