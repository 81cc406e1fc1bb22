//! What is said on the reliable lane: control messages, and game messages that outlive a connection.

use super::player::Player;
use super::{Audience, Server, World, player_in};
use crate::id::PlayerId;
use crate::session::{ConnectionId, DisconnectReason};
use crate::wire::Frame;
use crate::wire::control::{FromServer, PlayerJoined};

impl<W: World> Server<W> {
    /// Tells of what happened in a tick.
    pub(super) fn tell_events(&mut self) {
        let events = core::mem::take(&mut self.stage.events);
        for (audience, body) in events.iter() {
            let mut frames = core::mem::take(&mut self.frames);
            frames.clear();
            let fits = Frame { kind: FromServer::COMBAT_EVENT, body }.append_to(&mut frames);
            debug_assert!(fits, "`Events::tell` refuses an event that does not fit");
            match audience {
                // An empty message would be counted by this side alone.
                _ if !fits => {}
                Audience::Only(player) => self.tell(player, &frames),
                Audience::All => {
                    for index in 0..self.players.len() {
                        if let Some(player) = self.players.get(index).map(|player| player.id) {
                            self.tell(player, &frames);
                        }
                    }
                }
            }
            self.frames = frames;
        }
        self.stage.events = events;
    }

    /// A control message, which is not numbered.
    pub(super) fn send(&mut self, connection: ConnectionId, message: &FromServer) {
        let mut frames = core::mem::take(&mut self.frames);
        frames.clear();
        let fits = message.append_to(&mut frames);
        debug_assert!(fits, "a message of ours fits into a frame");
        self.write_out(connection, &frames);
        self.frames = frames;
    }

    pub(super) fn write_out(&mut self, connection: ConnectionId, frames: &[u8]) {
        let waiting = self.connections.get_mut(&connection).map_or(0, |open| open.send(frames));
        if waiting > self.config.max_stream_bytes {
            self.stats.too_slow += 1;
            self.close(connection, DisconnectReason::TooSlow);
        }
    }

    /// A game message for one player: numbered, and kept until it is known to have arrived.
    pub(super) fn tell(&mut self, player: PlayerId, frame: &[u8]) {
        let Some(session) = self.table.get_mut(player) else { return };
        let connection = session.connection();
        if session.log().push(frame).is_err() {
            // Away for too long, or reading too slowly: it begins anew when it comes back, and is told so.
            if let Some(connection) = connection {
                self.stats.too_slow += 1;
                self.close(connection, DisconnectReason::TooSlow);
            }
            return;
        }
        self.flush(player);
    }

    pub(super) fn tell_all(&mut self, message: &FromServer, except: Option<PlayerId>) {
        let mut frame = Vec::new();
        let fits = message.append_to(&mut frame);
        debug_assert!(fits, "a message of ours fits into a frame");
        let told: Vec<_> =
            self.players.iter().map(|player| player.id).filter(|id| Some(*id) != except).collect();
        for player in told {
            self.tell(player, &frame);
        }
    }

    pub(super) fn tell_who_is_there(&mut self, player: PlayerId) {
        let there: Vec<_> = self.table.players().map(|(id, session)| (id, session.name().clone())).collect();
        for (id, name) in there {
            let mut frame = Vec::new();
            if FromServer::PlayerJoined(PlayerJoined { player: id, name }).append_to(&mut frame) {
                self.tell(player, &frame);
            }
        }
    }

    /// Writes what the player has not been sent by its present connection.
    pub(super) fn flush(&mut self, player: PlayerId) {
        let Some(session) = self.table.get_mut(player) else { return };
        let Some(connection) = session.connection() else { return };
        let mut waiting = 0;
        if let Some(open) = self.connections.get_mut(&connection) {
            while let Some(frame) = session.log().poll() {
                waiting = open.send(frame);
            }
        }
        if waiting > self.config.max_stream_bytes {
            self.stats.too_slow += 1;
            self.close(connection, DisconnectReason::TooSlow);
        }
    }

    pub(super) fn player_mut(&mut self, player: PlayerId) -> Option<&mut Player<W::Game>> {
        player_in(&mut self.players, player)
    }
}
