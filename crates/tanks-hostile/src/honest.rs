//! Honest players: clients of ours that drive around all the time, by both links, and what they notice.
//!
//! They have a thread of their own, so that the attackers' work in this process does not delay them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use halftrack::client::ClientConfig;
use halftrack::session::SessionState;
use halftrack::{Cause, PlayerName, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_io::{ClientHandle, Trust, connect};
use halftrack_lab::Bot as _;
use halftrack_lab::tank::Tourist;
use tanks::{TankPose, Tanks};
use tokio::runtime::Builder;

use crate::attack::{Failed, Field};
use crate::server::Ground;

/// How many come by QUIC, and how many by WebSocket.
const BY_QUIC: usize = 4;
const BY_WEBSOCKET: usize = 2;
pub(crate) const COUNT: usize = BY_QUIC + BY_WEBSOCKET;

/// What they have noticed, all together, since they came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noticed {
    pub(crate) ticks: u64,
    /// Ticks whose input came too late.
    pub(crate) late: u64,
    /// Ticks whose input was lost, or not there in time for another reason.
    pub(crate) held: u64,
    /// Corrections because another tank was in the way, or because of a shot.
    pub(crate) contact: u64,
    /// All other corrections.
    pub(crate) corrections: u64,
    /// Of these, the ones that nobody can explain.
    pub(crate) unexplained: u64,
    /// Snapshots that did not add up.
    pub(crate) check_failed: u64,
    pub(crate) disconnects: u64,
}

impl Noticed {
    #[must_use]
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            ticks: self.ticks - before.ticks,
            late: self.late - before.late,
            held: self.held - before.held,
            contact: self.contact - before.contact,
            corrections: self.corrections.saturating_sub(before.corrections),
            unexplained: self.unexplained.saturating_sub(before.unexplained),
            check_failed: self.check_failed - before.check_failed,
            disconnects: self.disconnects - before.disconnects,
        }
    }

    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            ticks: self.ticks + other.ticks,
            late: self.late + other.late,
            held: self.held + other.held,
            contact: self.contact + other.contact,
            corrections: self.corrections + other.corrections,
            unexplained: self.unexplained + other.unexplained,
            check_failed: self.check_failed + other.check_failed,
            disconnects: self.disconnects + other.disconnects,
        }
    }

    /// Of a hundred ticks, how many had late input.
    pub(crate) fn late_percent(&self) -> f64 {
        percent(self.late, self.ticks)
    }

    /// For a hundred ticks, how many corrections there were outside contact.
    pub(crate) fn correction_percent(&self) -> f64 {
        percent(self.corrections, self.ticks)
    }
}

fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 }
}

/// See the module. Dropped, they leave.
pub(crate) struct Honest {
    handles: Arc<Vec<ClientHandle<Tanks>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Honest {
    /// Lets them in, and waits until all are there.
    pub(crate) fn start(field: &Field, ground: Ground) -> Result<Self, Failed> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut handles = vec![];
        {
            let _inside = runtime.enter();
            for number in 0..COUNT {
                handles.push(join(field, ground, number)?);
            }
        }
        let handles = Arc::new(handles);
        let over = Arc::new(AtomicBool::new(false));
        let (playing, ending) = (Arc::clone(&handles), Arc::clone(&over));
        let thread = thread::Builder::new().name("honest".to_owned()).spawn(move || {
            runtime.block_on(play(&playing, &ending));
        })?;
        let honest = Self { handles, over, thread: Some(thread) };
        let patience = Instant::now() + Duration::from_secs(20);
        while honest.present() < COUNT {
            if Instant::now() > patience {
                let problem = honest.handles.iter().find_map(ClientHandle::last_error);
                return Err(format!("honest players do not get in: {problem:?}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(honest)
    }

    /// How many are in.
    pub(crate) fn present(&self) -> usize {
        self.handles.iter().filter(|handle| handle.state() == SessionState::LoggedIn).count()
    }

    pub(crate) fn noticed(&self) -> Noticed {
        let mut noticed = Noticed::default();
        for handle in self.handles.iter() {
            handle.read(|client| {
                let stats = client.stats();
                noticed.ticks += stats.ticks;
                noticed.late += stats.late;
                noticed.held += stats.held;
                noticed.check_failed += stats.check_failed;
                for (cause, count) in client.corrections().by_cause() {
                    match cause {
                        Cause::Collision | Cause::Death | Cause::Respawn | Cause::Teleport => {
                            noticed.contact += count;
                        }
                        _ => noticed.corrections += count,
                    }
                    noticed.unexplained += if cause == Cause::Unexplained { count } else { 0 };
                }
            });
            noticed.disconnects += handle.stats().disconnects;
        }
        noticed
    }
}

impl Drop for Honest {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn join(field: &Field, ground: Ground, number: usize) -> Result<ClientHandle<Tanks>, Failed> {
    let name = format!("Honest {number}");
    let scheme = if number < BY_QUIC { "quic" } else { "ws" };
    let credentials = (ground == Ground::Tokens).then(|| field.server.keys.good(&name));
    client(field, &format!("{scheme}://{}", field.address()), &name, credentials)
}

/// A client of ours that connects to `target`.
pub(crate) fn client(
    field: &Field,
    target: &str,
    name: &str,
    credentials: Option<String>,
) -> Result<ClientHandle<Tanks>, Failed> {
    let rules = Arc::new(Tanks::new(Arc::clone(&field.arena)));
    let mut config = ClientConfig::new(PlayerName::new(name)?, field.cadence, rules);
    config.session.credentials = credentials;
    let hashes = field.server.config()?;
    let hashes = hashes["quic"]["certificate_hashes"].as_array().cloned().unwrap_or_default();
    let hashes = hashes.iter().filter_map(|hash| hash.as_str()?.parse().ok()).collect();
    Ok(connect(target.parse()?, Trust::Hashes(hashes), config)?)
}

/// Draws frames until it is over, and leaves.
async fn play(handles: &[ClientHandle<Tanks>], over: &AtomicBool) {
    const FRAME: Duration = Duration::from_micros(16_667);
    let mut drivers: Vec<_> = (0..handles.len()).map(|number| Driver::new(number as u64)).collect();
    let mut frames = tokio::time::interval(FRAME);
    while !over.load(Ordering::Relaxed) {
        frames.tick().await;
        for (handle, driver) in handles.iter().zip(&mut drivers) {
            while handle.poll_event().is_some() {}
            handle.act(|now, client| {
                driver.drive(now, client);
                client.frame(now);
            });
        }
    }
    for handle in handles {
        handle.logout();
    }
    // The last word is still on its way.
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// Drives around wherever it came in.
pub(crate) struct Driver {
    seed: u64,
    tourist: Option<(TankPose, Tourist)>,
}

impl Driver {
    /// Metres. Nobody drives that far from its place: it came in somewhere else.
    const ELSEWHERE: f64 = 22.0;

    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, tourist: None }
    }

    pub(crate) fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) {
        let Some(tank) = client.predicted() else { return };
        let here = TankPose { x: tank.pose().x, y: tank.pose().y, heading: tank.pose().heading };
        self.tourist.take_if(|(home, _)| (home.x - here.x).hypot(home.y - here.y) >= Self::ELSEWHERE);
        let (_, tourist) = self.tourist.get_or_insert_with(|| (here, Tourist::new(here, self.seed)));
        if let Some(input) = tourist.drive(now, client) {
            client.set_input(now, input);
        }
    }
}
