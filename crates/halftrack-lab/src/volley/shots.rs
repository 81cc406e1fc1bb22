//! Shots by the million: volley on the shipped networks, and what became of every press.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use halftrack::client::ClientConfig;
use halftrack::server::ServerConfig;
use halftrack::{Cadence, PlayerName};
use halftrack_netem::LinkConfig;
use serde::Serialize;

use std::sync::Arc;

use super::{Gunner, Range, Volley};
use crate::check::Violation;
use crate::lab::{Lab, LabConfig, LabError};
use crate::plan::{Plan, SHIPPED};
use crate::result::Emit;
use crate::samples::Samples;
use crate::seat::SeatConfig;

/// The networks that are played by default: names of shipped plans.
pub const NETWORKS: [&str; 5] = ["lan", "broadband", "transatlantic", "wifi", "mobile"];

/// A network.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Each way.
    pub link: LinkConfig,
}

impl Network {
    /// The network of the shipped plan with this name.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        let plan = Plan::read(text).ok()?;
        let link = plan.seats.first()?.link;
        Some(Self { name: name.to_owned(), link })
    }
}

/// What is played.
#[derive(Clone, Debug)]
pub struct ShotsConfig {
    /// On which networks.
    pub networks: Vec<Network>,
    /// Shots that are fired at least, on all of them together.
    pub shots: u64,
    /// What all dice start from.
    pub seed: u64,
    /// Runs at a time.
    pub threads: usize,
}

/// What became of the shots on one network.
#[derive(Clone, Debug, Serialize)]
pub struct ShotsFired {
    /// The network.
    pub network: String,
    /// The first seed, and how many there were.
    pub seed: u64,
    /// Rooms, one after the other, each with a seed of its own.
    pub runs: u64,
    /// Presses of all bots.
    pub presses: u64,
    /// What was measured, over all runs.
    pub emit: Emit,
    /// Births that were sent although a joint section covers their tick.
    pub births_in_joint_sections: u64,
    /// Ticks of input that were not simulated as sent.
    pub held_ticks: u64,
    /// Of so many.
    pub ticks: u64,
    /// Corrections of the group without a reason.
    pub unexplained: u64,
    /// Checks that failed.
    pub violated: u64,
    /// The first of them, with their seeds.
    pub list: Vec<(u64, Violation)>,
}

impl ShotsFired {
    /// Frames within which 99 of a hundred shots are on the screen.
    pub const MAX_FRAMES: f64 = 2.0;

    /// Whether every press was one shot.
    pub fn is_good(&self) -> bool {
        let Emit { shots, doubled, lost, unmatched, frames_to_screen, .. } = self.emit;
        shots == self.presses
            && doubled + lost + unmatched + self.births_in_joint_sections == 0
            && frames_to_screen.p99 <= Self::MAX_FRAMES
    }
}

/// Players of a room.
const PLAYERS: usize = 8;
/// How long a room plays: some six thousand shots.
const SPAN: Duration = Duration::from_secs(100);

/// One room.
struct Fired {
    presses: u64,
    emit: Emit,
    frames: Samples,
    births_in_joint_sections: u64,
    held_ticks: u64,
    ticks: u64,
    unexplained: u64,
    violated: u64,
    list: Vec<Violation>,
}

fn run(network: &Network, seed: u64, span: Duration) -> Result<Fired, LabError> {
    let server = ServerConfig { capacity: PLAYERS, max_connections: PLAYERS * 4, ..ServerConfig::default() };
    let mut lab = Lab::new(LabConfig::new(server, seed), Range::default())?;
    for index in 0..PLAYERS {
        // A number is a name.
        let Ok(name) = PlayerName::new(&format!("Gunner {index}")) else { continue };
        let client = ClientConfig::new(name, Cadence::default(), Arc::new(Volley));
        let bot = Gunner::new(seed.wrapping_mul(1_000).wrapping_add(index as u64));
        lab.join(SeatConfig::new(client, network.link), Box::new(bot))?;
    }
    lab.run(span);
    lab.drain();
    let measured = lab.measured();
    Ok(Fired {
        presses: lab.presses(),
        emit: measured.emit,
        frames: lab.frames_to_screen().clone(),
        births_in_joint_sections: lab.server().emissions().sent_jointly,
        held_ticks: (measured.input.held_ratio * measured.input.ticks as f64).round() as u64,
        ticks: measured.input.ticks,
        unexplained: measured.group.by_cause.unexplained + measured.own.by_cause.unexplained,
        violated: measured.invariants.violated,
        list: measured.invariants.list,
    })
}

/// Plays until `shots` shots were fired. Calls `done` with the shots so far.
///
/// # Errors
/// When a network is one that no lab can have.
pub fn fire(config: &ShotsConfig, done: impl Fn(u64) + Sync) -> Result<Vec<ShotsFired>, LabError> {
    let networks = config.networks.len().max(1);
    let each = config.shots.div_ceil(networks as u64).max(1);
    // As many rooms for each network as it takes by what a room fires on average; and more if that was not enough.
    let per_second = 69.0;
    let seconds = (each as f64 / per_second).max(1.0);
    let rooms = (seconds / SPAN.as_secs_f64()).ceil().max(1.0) as u64;
    let span = Duration::from_secs_f64(seconds / rooms as f64) + Gunner::WAITS;
    let results = config.networks.iter().map(|_| Mutex::new(Vec::new())).collect::<Vec<_>>();
    let fired = |network: usize| -> u64 {
        let results = results[network].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        results
            .iter()
            .filter_map(|(_, room): &(u64, Result<Fired, LabError>)| room.as_ref().ok())
            .map(|room| room.emit.shots)
            .sum()
    };
    let mut next_seed = vec![config.seed; config.networks.len()];
    let mut jobs: Vec<_> = (0..rooms).flat_map(|_| 0..config.networks.len()).collect();
    while !jobs.is_empty() {
        let seeded: Vec<_> = jobs
            .iter()
            .map(|network| {
                let seed = next_seed[*network];
                next_seed[*network] = seed.wrapping_add(1);
                (*network, seed)
            })
            .collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..config.threads.clamp(1, seeded.len()) {
                scope.spawn(|| {
                    while let Some((network, seed)) =
                        seeded.get(next.fetch_add(1, Ordering::Relaxed)).copied()
                    {
                        let room = run(&config.networks[network], seed, span);
                        let mut results =
                            results[network].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        results.push((seed, room));
                        drop(results);
                        done((0..config.networks.len()).map(&fired).sum());
                    }
                });
            }
        });
        // The dice were slower: one more room each. A room that cannot be built ends it.
        let broken = results.iter().any(|results| {
            let results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            results.iter().any(|(_, room)| room.is_err())
        });
        jobs = (0..config.networks.len()).filter(|network| !broken && fired(*network) < each).collect();
    }
    let rooms = results
        .into_iter()
        .map(|rooms| rooms.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    config.networks.iter().zip(rooms).map(|(network, rooms)| sum_up(network, config.seed, rooms)).collect()
}

fn sum_up(
    network: &Network,
    seed: u64,
    mut rooms: Vec<(u64, Result<Fired, LabError>)>,
) -> Result<ShotsFired, LabError> {
    // Threads end as they like.
    rooms.sort_by_key(|(seed, _)| *seed);
    let mut sum = ShotsFired {
        network: network.name.clone(),
        seed,
        runs: rooms.len() as u64,
        presses: 0,
        emit: Emit::default(),
        births_in_joint_sections: 0,
        held_ticks: 0,
        ticks: 0,
        unexplained: 0,
        violated: 0,
        list: Vec::new(),
    };
    let mut frames = Samples::default();
    for (seed, room) in rooms {
        let room = room?;
        sum.presses += room.presses;
        sum.emit.add(&room.emit);
        frames.append(room.frames);
        sum.births_in_joint_sections += room.births_in_joint_sections;
        sum.held_ticks += room.held_ticks;
        sum.ticks += room.ticks;
        sum.unexplained += room.unexplained;
        sum.violated += room.violated;
        let more = 50usize.saturating_sub(sum.list.len());
        sum.list.extend(room.list.into_iter().take(more).map(|found| (seed, found)));
    }
    sum.emit.frames_to_screen = frames.distribution();
    Ok(sum)
}
