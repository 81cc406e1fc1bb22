//! A room: the server's state machine on a thread of its own, at its exact cadence, and a handle to it.
//!
//! ```text
//!   links ──► Pipe ──► Mail ──► Run: wait until a tick is due or something must be answered
//!                                │   take what has arrived, in order, then tick, then hand out
//!   links ◄── Pipe ◄─────────────┘
//! ```
//!
//! Knows no transport: a link gets a pipe, whatever it is.

mod mail;
mod run;
mod stats;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use halftrack::server::{Server, ServerConfig, World};
use halftrack::session::{ConnectionId, DisconnectReason};
use halftrack::{ConfigError, SyncLink};
use halftrack::{Timestamp, Token};
use ring::rand::{SecureRandom, SystemRandom};
pub use stats::{Histogram, RoomStats, Traffic};

use crate::clock::now;
use crate::door::Place;
use crate::error::IoError;
use crate::pipe::{Patience, Pipe};
use crate::room::mail::{Doorbell, Mail, Wish};
use crate::room::run::{Calls, Run};
use crate::rooms::RoomName;

/// What a [`Room`] is built from.
#[derive(Clone, Debug)]
pub struct RoomConfig {
    /// The name of the room in logs. Default that of [`RoomName::default`]. Give each room of a process its own.
    pub name: RoomName,
    /// The state machine's. A [`ServerConfig::body_key`] of zeros is replaced by 16 random bytes when a room starts; any
    /// other one is kept.
    pub server: ServerConfig,
    /// A peer that takes nothing of what is written to it for so long is closed as too slow. Default 5 s, longer than a
    /// client waits before it takes the connection for cut itself. From 100 ms, below which a bad second of a mobile
    /// network ends it, to 1 min.
    pub stall: Duration,
    /// How long a closed peer may take to hear why. Default 500 ms, a few round trips. At most 10 s: a stop waits for it.
    pub linger: Duration,
}

impl Default for RoomConfig {
    fn default() -> Self {
        Self {
            name: RoomName::default(),
            server: ServerConfig::default(),
            stall: Duration::from_secs(5),
            linger: Duration::from_millis(500),
        }
    }
}

impl RoomConfig {
    fn patience(&self) -> Result<Patience, ConfigError> {
        let check = |field, value, least: Duration, most: Duration| {
            if value < least || value > most {
                return Err(ConfigError::Span { field, got: value, min: least, max: most });
            }
            Ok(())
        };
        check("stall", self.stall, Duration::from_millis(100), Duration::from_secs(60))?;
        check("linger", self.linger, Duration::ZERO, Duration::from_secs(10))?;
        Ok(Patience { stall: self.stall, linger: self.linger })
    }
}

/// Where a room's recording goes.
pub trait Journal: Send {
    /// Keeps these bytes, after those before. Called on the room's thread, before anything that follows from them is sent:
    /// everybody waits for it. Gives whether they were kept. If not, the room plays on and records no more.
    fn write(&mut self, bytes: &[u8]) -> bool;
}

/// A room that runs. It stops when this is dropped.
///
/// ```
/// use halftrack::cart::Rails;
/// use halftrack_io::{Room, RoomConfig};
///
/// let room = Room::start(RoomConfig::default(), Rails::default())?;
/// let carts = room.with(|server, _now| server.bodies().count())?;
/// assert_eq!(carts, 0);
/// room.stop();
/// assert!(room.with(|_, _| ()).is_err());
/// # Ok::<(), halftrack_io::IoError>(())
/// ```
pub struct Room<W: World> {
    handle: RoomHandle,
    calls: Calls<W>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<W: World> core::fmt::Debug for Room<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Room").field("ended", &self.handle.is_ended()).finish_non_exhaustive()
    }
}

impl<W: World + 'static> Room<W>
where
    Server<W>: Send,
{
    /// Starts a room. Its first tick is one cadence away.
    ///
    /// # Errors
    /// When a config is out of its range, or the system gives no thread or no random bytes. Nothing runs then.
    pub fn start(config: RoomConfig, world: W) -> Result<Self, IoError> {
        Self::start_recorded(config, None, |config, now| Ok(Server::new(config, world, now)?))
    }

    /// Starts a room whose server is made by `make`, and whose recording goes to `journal`: see [`Server::record`] and
    /// [`Server::recover`]. The config that `make` gets has its `body_key`.
    ///
    /// # Errors
    /// When `make` fails, a config is out of its range, or the system gives no thread or no random bytes. Nothing runs then.
    pub fn start_recorded<E>(
        config: RoomConfig,
        journal: Option<Box<dyn Journal>>,
        make: impl FnOnce(ServerConfig, Timestamp) -> Result<Server<W>, E>,
    ) -> Result<Self, E>
    where
        E: From<IoError>,
    {
        let patience = config.patience().map_err(IoError::from)?;
        let mut server = config.server;
        if server.body_key == [0; 16] {
            server.body_key = random_bytes().ok_or(IoError::NoRandomness)?;
        }
        let server = make(server, now())?;
        // Players of a recovered room count from the start.
        let mut stats = RoomStats::default();
        stats.players = server.players().count();
        let (mail, shown) = (Arc::<Mail>::default(), Arc::new(Mutex::new(stats)));
        let calls: Calls<W> = Arc::new(Mutex::new(Some(VecDeque::new())));
        let thread = thread::Builder::new().name(format!("room {}", config.name));
        let run = Run::new(config.name, server, mail.clone(), calls.clone(), shown.clone(), journal);
        let thread = thread.spawn(move || run.run()).map_err(IoError::Thread)?;
        let handle = RoomHandle { mail, shown, patience };
        Ok(Self { handle, calls, thread: Mutex::new(Some(thread)) })
    }
}

impl<W: World> Room<W> {
    /// Calls that wait at most.
    const MAX_CALLS: usize = 256;

    /// For the registry of rooms.
    pub fn handle(&self) -> RoomHandle {
        self.handle.clone()
    }

    /// Does something on the room's thread, between two ticks, and gives what came of it. Waits for that: as long as a
    /// tick takes at worst. What the server has to say afterwards is handed out at once.
    ///
    /// # Errors
    /// When the room has ended, or far too many wait already.
    pub fn with<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Server<W>, Timestamp) -> R + Send + 'static,
    ) -> Result<R, IoError> {
        let (answer, answered) = mpsc::sync_channel(1);
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = calls.as_mut().filter(|calls| calls.len() < Self::MAX_CALLS);
            let call = move |server: &mut Server<W>, now| {
                let _ = answer.send(call(server, now));
            };
            waiting.ok_or(IoError::RoomEnded)?.push_back(Box::new(call));
        }
        self.handle.mail.wake();
        answered.recv().map_err(|_| IoError::RoomEnded)
    }

    /// Lets nobody new in from here on, and tells everybody that the room ends `within` so long. Again, it does nothing.
    pub fn drain(&self, within: Duration) {
        self.handle.mail.wish(Wish::Drain(within));
    }

    /// Ends the room: everybody is told, the thread ends. Waits for it, as long as a tick takes at worst. Again, it does
    /// nothing.
    pub fn stop(&self) {
        self.handle.mail.wish(Wish::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the game has been logged by its own thread.
            let _ = thread.join();
        }
    }

    /// What it has counted.
    pub fn stats(&self) -> RoomStats {
        self.handle.stats()
    }

    /// Where a connection that is here comes from: what a [`Door`](crate::Door) can ban. Together with
    /// [`Server::connection_of`], the address of a player.
    pub fn address(&self, connection: ConnectionId) -> Option<IpAddr> {
        self.handle.mail.address(connection)
    }

    /// The round trip of a connection that is here: by QUIC the transport's own, smoothed; by WebSocket that of the newest
    /// ping, at most a few seconds old. `None` before the first one is known.
    pub fn round_trip(&self, connection: ConnectionId) -> Option<Duration> {
        self.handle.mail.round_trip(connection)
    }
}

impl<W: World> Drop for Room<W> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A room as links and registries know it.
#[derive(Clone)]
pub struct RoomHandle {
    mail: Arc<Mail>,
    shown: Arc<Mutex<RoomStats>>,
    patience: Patience,
}

impl core::fmt::Debug for RoomHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RoomHandle").field("ended", &self.is_ended()).finish_non_exhaustive()
    }
}

impl RoomHandle {
    /// What the room has counted.
    pub fn stats(&self) -> RoomStats {
        *self.shown()
    }

    /// Whether it has ended.
    pub fn is_ended(&self) -> bool {
        self.mail.closed().is_some()
    }

    fn shown(&self) -> MutexGuard<'_, RoomStats> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for this room, whose place is `place`.
    pub(crate) fn enter(&self, sync_link: SyncLink, place: &Place) -> Result<Arc<Pipe>, DisconnectReason> {
        // Without randomness somebody could guess it, and be the player.
        let token = random_bytes().ok_or(DisconnectReason::Stopped)?;
        let pipe = |connection| {
            let bell = Doorbell { mail: self.mail.clone(), connection };
            Arc::new(Pipe::new(Box::new(bell), self.patience))
        };
        let entered = self.mail.enter(sync_link, Token::new(token), place.shared_address(), pipe);
        let refused = self.mail.closed().unwrap_or(DisconnectReason::TooMany);
        let pipe = entered.ok_or(refused)?;
        place.attach(&pipe);
        Ok(pipe)
    }
}

/// Random bytes of the system, for secrets. None when it has none to give.
fn random_bytes() -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use halftrack::cart::{Cart, Rails};
    use halftrack::wire::control::{FromClient, Login, PROTOCOL};
    use halftrack::{BodyId, Cadence, PlayerName, shared_hash};

    use super::*;

    /// The id of the first body in a room.
    fn first_body(body_key: [u8; 16]) -> BodyId {
        let server = ServerConfig { body_key, ..ServerConfig::default() };
        let room = Room::start(RoomConfig { server, ..RoomConfig::default() }, Rails::default()).unwrap();
        let found = room.with(|server, now| {
            let (peer, mut bytes) = (ConnectionId::new(1), vec![]);
            let name = PlayerName::new("Ada").unwrap();
            let shared = shared_hash(&Cart, Cadence::default());
            let login = Login { protocol: PROTOCOL, shared, name, resume: None, credentials: None };
            assert!(FromClient::Login(login).append_to(&mut bytes));
            server.handle_connected(now, peer, SyncLink::Absent, Token::new([1; 16]));
            server.handle_stream(now, peer, &bytes);
            server.bodies().next().map(|(id, ..)| id)
        });
        found.unwrap().unwrap()
    }

    #[test]
    fn ids_of_bodies_are_made_by_a_random_key_unless_one_is_given() {
        let [first, second] = [first_body([0; 16]), first_body([0; 16])];
        assert_ne!(first, second, "each room has a key of its own");
        assert_eq!(first_body([7; 16]), first_body([7; 16]));
        assert_ne!(first_body([7; 16]), first_body([8; 16]));
    }
}
