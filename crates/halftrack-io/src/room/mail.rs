//! What a room is told from outside: who has come, who has something for it, that it should stop. The room sleeps here.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use halftrack::session::{ConnectionId, DisconnectReason};
use halftrack::{SyncLink, Timestamp, Token};

use crate::clock::now;
use crate::door::PeerAddress;
use crate::pipe::{Bell, Pipe, Urgency};

/// A connection that the room does not know yet.
pub(super) struct Newcomer {
    pub(super) connection: ConnectionId,
    pub(super) sync_link: SyncLink,
    pub(super) token: Token,
    pub(super) pipe: Arc<Pipe>,
}

/// What is asked of the room as such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    #[default]
    Serve,
    Drain(Duration),
    Stop,
}

#[derive(Default)]
struct Inside {
    newcomers: Vec<Newcomer>,
    /// Connections with something in their pipe; one may stand here more than once.
    ready: Vec<ConnectionId>,
    wish: Wish,
    /// Whether the room should get up before its time.
    urgent: bool,
    /// The room is no more, for this reason.
    closed: Option<DisconnectReason>,
    next: u64,
    /// Connections that are here: for operators, who ask from other threads.
    known: BTreeMap<ConnectionId, Known>,
}

/// What is asked about a connection from outside the room.
struct Known {
    address: Arc<PeerAddress>,
    pipe: Weak<Pipe>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Mail {
    inside: Mutex<Inside>,
    door: Condvar,
}

/// What was found on waking up. Its memory is used again.
#[derive(Default)]
pub(super) struct Delivery {
    pub(super) newcomers: Vec<Newcomer>,
    pub(super) ready: Vec<ConnectionId>,
    pub(super) wish: Wish,
}

impl Mail {
    /// Newcomers that wait at most: as many as can come while a room is busy for a tick.
    const MAX_NEWCOMERS: usize = 1_024;

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `due`, or until something cannot wait.
    pub(super) fn wait(&self, due: Option<Timestamp>, delivery: &mut Delivery) {
        let mut inside = self.inside();
        while let Some(due) = due
            && !inside.urgent
        {
            let left = due.saturating_since(now());
            if left.is_zero() {
                break;
            }
            inside = self.door.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        inside.urgent = false;
        delivery.wish = inside.wish;
        delivery.newcomers.append(&mut inside.newcomers);
        delivery.ready.append(&mut inside.ready);
    }

    /// Lets a connection in. `None` when there is no room any more, or it cannot keep up.
    pub(super) fn enter(
        &self,
        sync_link: SyncLink,
        token: Token,
        address: Arc<PeerAddress>,
        pipe: impl FnOnce(ConnectionId) -> Arc<Pipe>,
    ) -> Option<Arc<Pipe>> {
        let mut inside = self.inside();
        if inside.closed.is_some() || inside.newcomers.len() >= Self::MAX_NEWCOMERS {
            return None;
        }
        inside.next += 1;
        let connection = ConnectionId::new(inside.next);
        let pipe = pipe(connection);
        inside.known.insert(connection, Known { address, pipe: Arc::downgrade(&pipe) });
        inside.newcomers.push(Newcomer { connection, sync_link, token, pipe: pipe.clone() });
        inside.urgent = true;
        drop(inside);
        self.door.notify_one();
        Some(pipe)
    }

    /// A connection is gone.
    pub(super) fn forget(&self, connection: ConnectionId) {
        self.inside().known.remove(&connection);
    }

    pub(super) fn address(&self, connection: ConnectionId) -> Option<IpAddr> {
        self.inside().known.get(&connection).map(|known| known.address.current())
    }

    pub(super) fn round_trip(&self, connection: ConnectionId) -> Option<Duration> {
        let pipe = self.inside().known.get(&connection)?.pipe.upgrade()?;
        pipe.round_trip()
    }

    /// Says what is wished; a stop is not taken back.
    pub(super) fn wish(&self, wish: Wish) {
        let mut inside = self.inside();
        inside.wish = inside.wish.max(wish);
        inside.urgent = true;
        drop(inside);
        self.door.notify_one();
    }

    /// Gets the room up.
    pub(super) fn wake(&self) {
        self.inside().urgent = true;
        self.door.notify_one();
    }

    /// The room is no more, for `reason`. Returns the newcomers that it has not let in.
    pub(super) fn close(&self, reason: DisconnectReason) -> Vec<Newcomer> {
        let mut inside = self.inside();
        inside.closed = Some(reason);
        inside.known.clear();
        core::mem::take(&mut inside.newcomers)
    }

    pub(super) fn closed(&self) -> Option<DisconnectReason> {
        self.inside().closed
    }
}

/// The bell of one connection.
pub(super) struct Doorbell {
    pub(super) mail: Arc<Mail>,
    pub(super) connection: ConnectionId,
}

impl Bell for Doorbell {
    fn ring(&self, urgency: Urgency) {
        let mut inside = self.mail.inside();
        if inside.closed.is_some() {
            return;
        }
        inside.ready.push(self.connection);
        if urgency == Urgency::Now {
            inside.urgent = true;
            drop(inside);
            self.mail.door.notify_one();
        }
    }
}
