//! Dead sync links: notices that a player's input no longer arrives by datagram and says so to the client, and reroutes
//! snapshots when the client reports the same of them.

use super::SessionServer;
use super::connection::Connection;
use crate::lane::{Lane, MessageKind, SyncLink};
use crate::session::ConnectionId;
use crate::sync_watch::SyncWatch;
use crate::time::Timestamp;
use crate::wire::control::{FromServer, SyncHeard};

impl SessionServer {
    /// Whether a peer's input arrives by datagram. False without a sync link, before the login, and while it is dead.
    pub fn receives_datagrams(&self, connection: ConnectionId) -> bool {
        let watch = self.connections.get(&connection).and_then(|open| open.watch);
        watch.is_some_and(|watch| !watch.is_dead())
    }

    /// A well-formed input datagram of a player arrived. Returns whether to use it: while datagrams are dead it is a
    /// probe. The same message comes by the reliable link, and by its order the queue tells late input from lost input.
    pub fn handle_datagram(&mut self, now: Timestamp, connection: ConnectionId) -> bool {
        // spec: LANE-11
        let Some(open) = self.connections.get_mut(&connection) else { return false };
        let Some(player) = open.player() else { return false };
        let mut watch = open.watch.as_mut();
        let returns = watch.as_mut().is_some_and(|watch| watch.datagram(now));
        let dead = watch.is_some_and(|watch| watch.is_dead());
        if returns {
            self.send(now, connection, &FromServer::SyncHeard(SyncHeard { arriving: true }));
        }
        if !dead {
            self.hear_of(now, player);
        }
        !dead
    }

    /// Looks for players whose datagrams have stopped arriving, and says so to their clients.
    pub fn check_datagrams(&mut self, now: Timestamp) {
        let falls_silent = |open: &mut Connection| {
            open.closing.is_none() && open.watch.as_mut().is_some_and(|watch| watch.falls_silent(now))
        };
        let mut dead = Vec::new();
        dead.extend(self.connections.iter_mut().filter_map(|(id, open)| falls_silent(open).then_some(*id)));
        for connection in dead {
            self.stats.sync_up_dead += 1;
            self.send(now, connection, &FromServer::SyncHeard(SyncHeard { arriving: false }));
        }
    }

    /// Watches the datagrams of a player that has just logged in.
    pub(super) fn watch_datagrams(&mut self, now: Timestamp, connection: ConnectionId) {
        if let Some(open) = self.connections.get_mut(&connection) {
            let sync = open.router.sync_link() == SyncLink::Present
                && open.router.lane(MessageKind::MoveInput) == Lane::HighFrequencySync;
            open.watch = sync.then(|| SyncWatch::new(now, self.config.datagram_interval));
        }
    }

    /// A message by the reliable link shows that the peer is alive.
    pub(super) fn hear_sign_of_life(&mut self, now: Timestamp, connection: ConnectionId) {
        if let Some(watch) = self.connections.get_mut(&connection).and_then(|open| open.watch.as_mut()) {
            watch.peer_is_alive(now);
        }
    }

    /// A client reports whether snapshots arrive by datagram.
    pub(super) fn take_sync_heard(&mut self, connection: ConnectionId, heard: SyncHeard) {
        if let Some(open) = self.connections.get_mut(&connection) {
            self.stats.sync_down_dead += u64::from(open.router.is_sync_heard() && !heard.arriving);
            open.router = open.router.with_sync_heard(heard.arriving);
        }
    }
}
