//! The server's side of a dead sync link: it notices when a player's input no longer arrives by datagram, says so, and does
//! as the client says of snapshots.

use super::connection::Connection;
use super::{Server, World};
use crate::id::PlayerId;
use crate::lane::{Lane, Link, MessageKind, SyncLink};
use crate::session::ConnectionId;
use crate::sync_watch::SyncWatch;
use crate::time::Timestamp;
use crate::wire::control::{FromServer, SyncHeard};

impl<W: World> Server<W> {
    /// The link that messages of this kind take to a peer at the moment. The sync lane falls back to the reliable link
    /// while the peer does not receive datagrams. `None` when there is no such connection.
    pub fn link(&self, connection: ConnectionId, kind: MessageKind) -> Option<Link> {
        self.connections.get(&connection).map(|open| open.router.link(kind))
    }

    /// Whether a peer's input arrives by datagram. False without a sync link, before the login, and while it is dead.
    pub fn receives_datagrams(&self, connection: ConnectionId) -> bool {
        let watch = self.connections.get(&connection).and_then(|open| open.watch);
        watch.is_some_and(|watch| !watch.is_dead())
    }

    /// A player was let in: its input arrives from here on.
    pub(super) fn watch_sync(&mut self, now: Timestamp, connection: ConnectionId) {
        if let Some(open) = self.connections.get_mut(&connection) {
            let sync = open.router.sync_link() == SyncLink::Present
                && open.router.lane(MessageKind::MoveInput) == Lane::HighFrequencySync;
            open.watch = sync.then(|| SyncWatch::new(now, self.config.cadence));
        }
    }

    /// A datagram of a player has arrived.
    pub(super) fn receive_datagram(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        player: PlayerId,
        bytes: &[u8],
    ) {
        if self.message.decode(bytes).is_err() {
            self.stats.malformed_datagrams += 1;
            return;
        }
        // spec: LANE-11
        let mut watch = self.connections.get_mut(&connection).and_then(|open| open.watch.as_mut());
        let returns = watch.as_mut().is_some_and(|watch| watch.datagram(now));
        let dead = watch.is_some_and(|watch| watch.is_dead());
        if returns {
            self.send(connection, &FromServer::SyncHeard(SyncHeard { arriving: true }));
        }
        // While datagrams are dead this is a probe. The same message comes by the reliable link, and by its order the
        // queue knows late input from lost input.
        if !dead {
            self.take_input(now, player, Link::Sync);
        }
    }

    /// The peer sent something by the reliable link.
    pub(super) fn hear_sign_of_life(&mut self, now: Timestamp, connection: ConnectionId) {
        if let Some(watch) = self.connections.get_mut(&connection).and_then(|open| open.watch.as_mut()) {
            watch.peer_is_alive(now);
        }
    }

    /// Time has passed: datagrams of some players may be found dead.
    pub(super) fn check_sync(&mut self, now: Timestamp) {
        let falls_silent = |open: &mut Connection| {
            open.closing.is_none() && open.watch.as_mut().is_some_and(|watch| watch.falls_silent(now))
        };
        let mut dead = Vec::new();
        dead.extend(self.connections.iter_mut().filter_map(|(id, open)| falls_silent(open).then_some(*id)));
        for connection in dead {
            self.stats.sync_up_dead += 1;
            self.send(connection, &FromServer::SyncHeard(SyncHeard { arriving: false }));
        }
    }

    /// The client says whether snapshots arrive by datagram.
    pub(super) fn take_sync_heard(&mut self, connection: ConnectionId, heard: SyncHeard) {
        if let Some(open) = self.connections.get_mut(&connection) {
            self.stats.sync_down_dead += u64::from(open.router.is_sync_heard() && !heard.arriving);
            open.router = open.router.with_sync_heard(heard.arriving);
        }
    }
}
