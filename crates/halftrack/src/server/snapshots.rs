//! State on its way to players: a snapshot per tick, and all bodies in full by the reliable lane.

use core::time::Duration;

use super::player::{BodyTooLong, Written};
use super::{Server, World};
use crate::id::PlayerId;
use crate::lane::MessageKind;
use crate::model::Body;
use crate::server::BodyOf;
use crate::session::{ConnectionId, DisconnectReason};
use crate::snapshot::OwnBodies;
use crate::time::Timestamp;
use crate::wire::control::{FromServer, Welcome};
use crate::wire::{BitWriter, Frame};

impl<W: World> Server<W> {
    /// The shortest time between two full states for a player: a full frame a second is little beside twenty snapshots.
    const FULL_STATE: Duration = Duration::from_secs(1);

    /// Writes the snapshot of the newest tick for every connected player, after `due` ticks.
    pub(super) fn write_snapshots(&mut self, now: Timestamp, due: u32) {
        self.stage.bodies.set_epoch(self.clock.epoch());
        let late = self.clock.time(now).saturating_since(self.config.cadence.end_of(self.stage.tick()));
        let written = Written {
            now,
            epoch: self.clock.epoch(),
            late: (due == 1).then_some(late),
            max_bytes: self.config.max_datagram_bytes,
        };
        let mut too_long = Vec::new();
        let mut place = 0;
        while let Some(player) = self.players.at_mut(place) {
            place += 1;
            let (id, Some(connection)) = (player.id, player.connection) else { continue };
            let incomplete = now >= player.next_full && self.stage.bodies.needs_full(&player.view);
            if incomplete && self.heal(now, connection, id) {
                continue;
            }
            let probes = self
                .sessions
                .router(connection)
                .is_some_and(|router| router.needs_probes(MessageKind::PlayerState));
            let Some(player) = self.players.at_mut(place - 1) else { break };
            match player.write(written, &mut self.stage.bodies) {
                Ok(()) => self.stats.snapshots += 1,
                Err(BodyTooLong) => too_long.push(id),
            }
            if probes {
                player.plan_probe(now);
            }
        }
        for player in too_long {
            self.refuse_body(player);
        }
        self.route_all(now);
    }

    /// Sends a player all bodies by the reliable lane: its snapshots have no room for them. Returns whether it did: this
    /// replaces the snapshot of the tick.
    fn heal(&mut self, now: Timestamp, connection: ConnectionId, player: PlayerId) -> bool {
        let Some(own) = self.own_bodies(player) else { return false };
        let bodies = self.full_state(now, player);
        if bodies.is_empty() {
            return false;
        }
        self.welcome(now, connection, own, &bodies);
        self.stats.full_states += 1;
        true
    }

    /// Sends the state that a client starts from: the player's own bodies, and all `bodies` in pieces behind it.
    pub(super) fn welcome(&mut self, now: Timestamp, connection: ConnectionId, own: Vec<u8>, bodies: &[u8]) {
        let tick = self.stage.tick().number();
        let length = u32::try_from(bodies.len()).unwrap_or(0);
        let welcome = Welcome { tick, epoch: self.clock.epoch().number(), own, bodies: length };
        self.sessions.send(now, connection, &FromServer::Welcome(welcome));
        for piece in bodies.chunks(Frame::MAX_BODY) {
            self.sessions.send(now, connection, &FromServer::Bodies(piece.to_vec()));
        }
    }

    /// The bodies that a player owns, whole. `None` when one is longer than the game said.
    pub(super) fn own_bodies(&self, player: PlayerId) -> Option<Vec<u8>> {
        let mut own = OwnBodies::<W::Game>::default();
        let bodies = &self.stage.bodies;
        for id in bodies.owned(player) {
            let body = *bodies.history(*id)?.latest();
            let mut bits = BitWriter::new(&mut []);
            body.write(&BodyOf::<W>::blank(), &mut bits);
            if bits.len_bits() > BodyOf::<W>::MAX_BITS {
                return None;
            }
            own.ids.push(*id);
            own.bodies.push(body);
            own.emitted.push(bodies.get(*id)?.emitted());
        }
        let mut buffer = vec![0; Frame::MAX_BODY];
        let mut bits = BitWriter::new(&mut buffer);
        own.write(false, &mut bits);
        let length = bits.finish()?;
        buffer.truncate(length);
        Some(buffer)
    }

    /// All bodies in full. Later snapshots are deltas against them. Empty when they are too long for any message.
    pub(super) fn full_state(&mut self, now: Timestamp, player: PlayerId) -> Vec<u8> {
        self.stage.bodies.set_epoch(self.clock.epoch());
        let Some(player) = self.players.get_mut(player) else { return Vec::new() };
        player.next_full = now + Self::FULL_STATE;
        let mut buffer = vec![0; self.stage.bodies.full_bytes().min(Welcome::MAX_BODIES_BYTES)];
        let max_bits = buffer.len() * 8;
        let mut bits = BitWriter::new(&mut buffer);
        if !self.stage.bodies.write_full(&mut player.view, max_bits, &mut bits) {
            return Vec::new();
        }
        let length = bits.finish();
        debug_assert!(length.is_some(), "a full state that was written fits");
        buffer.truncate(length.unwrap_or(0));
        buffer
    }

    /// Removes a player whose body cannot be sent: its client could never play.
    pub(super) fn refuse_body(&mut self, player: PlayerId) {
        self.stats.bodies_too_long += 1;
        self.sessions.remove(player, DisconnectReason::BodyTooLong);
    }
}
