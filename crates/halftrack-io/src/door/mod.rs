//! The door of a server: who may come in, how many, how fast, and how much they may say. One for all links,
//! so that nobody gets twice by two links.
//!
//! ```text
//!   endpoint, websocket ── admit ──► Table: bans, handshakes, connections by address ──► Place, until dropped
//!   links ── read ──► Meter: messages and bytes of one peer ──► TooMuch
//!   the program ── ban, set_limits, set_origins ──► Door ── stats ──► DoorStats
//! ```
//!
//! Knows addresses and counts, not what is said.

mod bucket;
mod limits;
mod meter;
mod stats;
mod table;

use core::fmt;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use halftrack::session::DisconnectReason;
use halftrack::wire::control::Login;
use halftrack::{ConfigError, SyncLink, Timestamp};
pub use limits::Limits;
pub(crate) use meter::{Meter, Received};
pub(crate) use stats::Closed;
pub use stats::DoorStats;
pub(crate) use table::Proof;
use table::{Table, network};

use crate::clock::now;
use crate::error::IoError;
use crate::login::TurnedAway;
use crate::origin::Origin;
use crate::pipe::Pipe;
use crate::rooms::{RoomName, Rooms};

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this address is banned")]
    Banned,
    /// By QUIC, it is asked to come again and show its address; a TCP peer has done so.
    #[error("the address is not proven")]
    Unproven,
    #[error("too many handshakes from this address: try again in a second")]
    TooFast,
    #[error("the server is full: try again later")]
    Full,
    #[error("too many connections from this address")]
    AddressFull,
}

pub(crate) struct Shared {
    rooms: Arc<dyn Rooms>,
    /// Read for every message; written when an operator reloads a config.
    limits: RwLock<Limits>,
    origins: RwLock<Vec<Origin>>,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    table: Table,
    /// Of connections that are in a room, by the number of their place.
    pipes: BTreeMap<u64, (IpAddr, Weak<Pipe>)>,
    next: u64,
}

impl Shared {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> Limits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, count: impl FnOnce(&mut DoorStats)) {
        count(&mut self.inside().table.stats);
    }
}

/// What leads to a server's rooms, by every link: build one, and give it to the
/// [`Endpoint`](crate::Endpoint), the [`WebSockets`](crate::WebSockets) and the
/// [`HttpServer`](crate::HttpServer). Clones are the same door.
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
///
/// use halftrack::cart::Rails;
/// use halftrack_io::{Door, Limits, Room, RoomConfig};
///
/// let room = Room::start(RoomConfig::default(), Rails::default())?;
/// let door = Door::new(Arc::new(room.handle()), Limits { max_connections: 64, ..Limits::default() })?;
/// let address: IpAddr = "192.0.2.1".parse().unwrap();
/// door.ban(address, None)?;
/// assert_eq!(door.bans(), [(address, None)]);
/// assert!(door.unban(address));
/// assert_eq!(door.stats().connections, 0);
/// # Ok::<(), halftrack_io::IoError>(())
/// ```
#[derive(Clone)]
pub struct Door(Arc<Shared>);

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("limits", &self.limits()).finish_non_exhaustive()
    }
}

impl Door {
    /// Addresses that can be banned at the same time.
    pub const MAX_BANS: usize = Table::MAX_BANS;

    /// A door to `rooms`.
    ///
    /// # Errors
    /// When a limit is out of its range.
    pub fn new(rooms: Arc<dyn Rooms>, limits: Limits) -> Result<Self, ConfigError> {
        limits.check()?;
        Ok(Self(Arc::new(Shared {
            rooms,
            limits: RwLock::new(limits),
            origins: RwLock::default(),
            inside: Mutex::default(),
        })))
    }

    /// What is allowed.
    pub fn limits(&self) -> Limits {
        self.0.limits()
    }

    /// Allows something else from here on, also to those who are there: rates hold at once; whoever is above
    /// a number of connections stays.
    ///
    /// # Errors
    /// When a limit is out of its range. What was allowed before still is.
    pub fn set_limits(&self, limits: Limits) -> Result<(), ConfigError> {
        limits.check()?;
        *self.0.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
        tracing::info!("limits changed");
        Ok(())
    }

    /// Lets pages from these origins in by WebSocket and WebTransport, besides those that the server's own host has served.
    /// Takes the place of what was set before.
    pub fn set_origins(&self, origins: Vec<Origin>) {
        *self.0.origins.write().unwrap_or_else(PoisonError::into_inner) = origins;
    }

    /// Lets nobody in from `address`, until then or until further notice, and closes what it has open; its
    /// players are removed. A ban of an IPv6 address is one of its /64.
    ///
    /// # Errors
    /// When [`Self::MAX_BANS`] are banned already. Nothing was closed then.
    pub fn ban(&self, address: IpAddr, until: Option<Timestamp>) -> Result<(), IoError> {
        let network = network(address);
        let pipes: Vec<_> = {
            let mut inside = self.0.inside();
            if !inside.table.ban(now(), network, until) {
                return Err(IoError::TooManyBans);
            }
            let theirs = inside.pipes.values().filter(|(from, _)| *from == network);
            theirs.filter_map(|(_, pipe)| pipe.upgrade()).collect()
        };
        tracing::info!(connections = pipes.len(), "address banned");
        tracing::debug!(%network, "address banned");
        for pipe in pipes {
            pipe.close(DisconnectReason::Kicked, |_| false);
        }
        Ok(())
    }

    /// Lets `address` in again. Gives whether it was banned.
    pub fn unban(&self, address: IpAddr) -> bool {
        self.0.inside().table.unban(network(address))
    }

    /// Who is banned, and until when; of IPv6, the first address of the /64.
    pub fn bans(&self) -> Vec<(IpAddr, Option<Timestamp>)> {
        self.0.inside().table.bans(now())
    }

    /// Whether `address` is banned: for what a program serves besides rooms.
    pub fn is_banned(&self, address: IpAddr) -> bool {
        self.0.inside().table.is_banned(now(), network(address))
    }

    /// What it has counted.
    pub fn stats(&self) -> DoorStats {
        self.0.inside().table.counted(now())
    }

    /// Brings a connection that has sent its login to its room.
    pub(crate) fn enter(
        &self,
        name: &RoomName,
        login: &Login,
        sync_link: SyncLink,
        place: &Place,
    ) -> Result<Arc<Pipe>, TurnedAway> {
        let room = self.0.rooms.find(name, login)?;
        Ok(room.enter(sync_link, place)?)
    }

    /// Counts a connection that is closed before it has a room.
    pub(crate) fn count_closed(&self, reason: DisconnectReason) {
        self.count(|stats| {
            stats.closed.add(reason);
            stats.refused += u64::from(reason == DisconnectReason::Refused);
        });
    }

    pub(crate) fn allows_origin(&self, origin: &Origin) -> bool {
        self.0.origins.read().unwrap_or_else(PoisonError::into_inner).contains(origin)
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut DoorStats)) {
        self.0.count(count);
    }

    /// Somebody at `address` wants in, and begins a handshake.
    pub(crate) fn admit(&self, address: IpAddr, proof: Proof) -> Result<Place, Refusal> {
        let (limits, network) = (self.limits(), network(address));
        let mut inside = self.0.inside();
        inside.table.admit(now(), &limits, network, proof)?;
        inside.next += 1;
        let place = Place {
            door: self.0.clone(),
            address: Arc::new(PeerAddress(Mutex::new(address.to_canonical()))),
            number: inside.next,
            shaking: AtomicBool::new(true),
        };
        Ok(place)
    }

    /// Somebody at `address` connects to the HTTP server.
    pub(crate) fn admit_http(&self, address: IpAddr) -> Option<HttpPlace> {
        let (limits, network) = (self.limits(), network(address));
        let admitted = self.0.inside().table.admit_http(now(), &limits, network);
        admitted.then(|| HttpPlace { door: self.0.clone(), network })
    }
}

/// Where a peer is. The address changes when a QUIC connection migrates.
#[derive(Debug)]
pub(crate) struct PeerAddress(Mutex<IpAddr>);

impl PeerAddress {
    pub(crate) fn current(&self) -> IpAddr {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, address: IpAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }
}

/// A connection's place among those that are open at the same time. Dropped, it is free again.
pub(crate) struct Place {
    door: Arc<Shared>,
    address: Arc<PeerAddress>,
    number: u64,
    /// The handshake is unfinished.
    shaking: AtomicBool,
}

impl Place {
    /// Where the peer is.
    pub(crate) fn address(&self) -> IpAddr {
        self.address.current()
    }

    /// The same, for others who show it: it follows the connection.
    pub(crate) fn shared_address(&self) -> Arc<PeerAddress> {
        self.address.clone()
    }

    /// The peer goes on from `address`, which it has proven. Bans and limits of that address hold from here on.
    ///
    /// # Errors
    /// When a new arrival would not be let in from there. The connection is to be closed.
    pub(crate) fn move_to(&self, address: IpAddr) -> Result<(), DisconnectReason> {
        let (address, limits) = (address.to_canonical(), self.door.limits());
        let mut inside = self.door.inside();
        let (old, new) = (network(self.address()), network(address));
        if old != new {
            inside.table.relocate(now(), &limits, old, new).map_err(|refusal| match refusal {
                Refusal::Banned => DisconnectReason::Kicked,
                _ => DisconnectReason::TooMany,
            })?;
            if let Some((from, _)) = inside.pipes.get_mut(&self.number) {
                *from = new;
            }
        }
        self.address.set(address);
        Ok(())
    }

    /// The handshake is done.
    pub(crate) fn shaken(&self) {
        if self.shaking.swap(false, Ordering::Relaxed) {
            self.door.count(|stats| stats.unfinished -= 1);
        }
    }

    /// It has a room now, and `pipe` to it: a ban closes it.
    pub(crate) fn attach(&self, pipe: &Arc<Pipe>) {
        let banned = {
            let mut inside = self.door.inside();
            let network = network(self.address());
            inside.pipes.insert(self.number, (network, Arc::downgrade(pipe)));
            inside.table.is_banned(now(), network)
        };
        if banned {
            pipe.close(DisconnectReason::Kicked, |_| false);
        }
    }

    /// Counts a datagram that came before the login.
    pub(crate) fn count_stray(&self) {
        self.door.count(|stats| stats.stray_datagrams += 1);
    }

    /// What counts what its peer sends.
    pub(crate) fn meter(&self) -> Meter {
        Meter::of(self.door.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shaken();
        let mut inside = self.door.inside();
        inside.pipes.remove(&self.number);
        inside.table.leave(network(self.address.current()));
    }
}

/// A place among connections to the HTTP server.
pub(crate) struct HttpPlace {
    door: Arc<Shared>,
    network: IpAddr,
}

impl Drop for HttpPlace {
    fn drop(&mut self) {
        self.door.inside().table.leave_http(self.network);
    }
}

/// Counts one that a link has open, until it is dropped.
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn one(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(open.clone())
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
