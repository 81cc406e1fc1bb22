//! The reliable lane to clients: control messages, which a cut loses, and game messages, which survive it.

use super::{Phase, SessionServer};
use crate::id::PlayerId;
use crate::session::{ConnectionId, DisconnectReason};
use crate::time::{ServerTime, Timestamp};
use crate::wire::control::{Closing, FromServer, HeartbeatReply};

impl SessionServer {
    /// Sends a control message. It is not numbered: a cut loses it.
    pub fn send(&mut self, now: Timestamp, connection: ConnectionId, message: &FromServer) {
        let mut frames = core::mem::take(&mut self.frames);
        frames.clear();
        let fits = message.append_to(&mut frames);
        debug_assert!(fits, "control messages fit into a frame");
        let waiting = self.connections.get_mut(&connection).map_or(0, |open| open.send(&frames));
        self.frames = frames;
        self.check_waiting(now, connection, waiting);
    }

    /// Sends a game message to a player: numbered, in order, and kept until the client acknowledges it. `frame` is one
    /// whole [`crate::wire::Frame`].
    pub fn tell(&mut self, now: Timestamp, player: PlayerId, frame: &[u8]) {
        let Some(session) = self.table.get_mut(player) else { return };
        let connection = session.connection();
        if session.log().push(frame).is_err() {
            // The log is full: the player was away for too long, or reads too slowly. Its next login restarts.
            if let Some(connection) = connection {
                self.stats.too_slow += 1;
                self.close(now, connection, DisconnectReason::TooSlow);
            }
            return;
        }
        self.flush(now, player);
    }

    /// Answers a heartbeat with the server's time and the number of orders received.
    pub fn answer_heartbeat(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        sent_micros: u64,
        time: ServerTime,
    ) {
        let Some(session) = self.player_of(connection).and_then(|player| self.table.get_mut(player)) else {
            return;
        };
        let received = session.log().received();
        let server_micros = time.as_micros();
        let reply = HeartbeatReply { sent_micros, held_micros: 0, server_micros, received };
        self.send(now, connection, &FromServer::HeartbeatReply(reply));
    }

    /// Ends a login, after [`FromServer::LoginAccepted`] and the game's own greeting: sends the game messages that the
    /// client has not acknowledged, and a warning while the server drains.
    pub fn finish_login(&mut self, now: Timestamp, player: PlayerId) {
        if let Phase::Draining { until } = self.phase
            && let Some(connection) = self.connection_of(player)
        {
            self.send(now, connection, &closing(now, until));
        }
        self.flush(now, player);
    }

    /// Sends a player the part of its log that its present connection has not carried yet.
    fn flush(&mut self, now: Timestamp, player: PlayerId) {
        let Some(session) = self.table.get_mut(player) else { return };
        let Some(connection) = session.connection() else { return };
        let mut waiting = 0;
        if let Some(open) = self.connections.get_mut(&connection) {
            while let Some(frame) = session.log().poll() {
                waiting = open.send(frame);
            }
        }
        self.check_waiting(now, connection, waiting);
    }

    fn check_waiting(&mut self, now: Timestamp, connection: ConnectionId, waiting: usize) {
        if waiting > self.config.max_stream_bytes {
            self.stats.too_slow += 1;
            self.close(now, connection, DisconnectReason::TooSlow);
        }
    }
}

pub(super) fn closing(now: Timestamp, until: Timestamp) -> FromServer {
    let within = until.saturating_since(now).as_millis();
    FromServer::Closing(Closing { within_millis: u32::try_from(within).unwrap_or(u32::MAX) })
}
