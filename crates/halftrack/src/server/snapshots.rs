//! State on its way to players: a snapshot per tick, and all bodies in full by the reliable lane.

use core::time::Duration;

use super::player::{BodyTooLong, Written};
use super::{Server, World};
use crate::id::PlayerId;
use crate::lane::MessageKind;
use crate::model::Body;
use crate::server::BodyOf;
use crate::session::{ConnectionId, DisconnectReason};
use crate::snapshot::MAX_BODY_BYTES;
use crate::time::Timestamp;
use crate::wire::BitWriter;
use crate::wire::control::{FromServer, Welcome};

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
            if self.heal(now, connection, id) {
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

    /// Sends a player all bodies by the reliable lane, if its snapshots have no room for them. Returns whether it did:
    /// this replaces the snapshot of the tick.
    fn heal(&mut self, now: Timestamp, connection: ConnectionId, player: PlayerId) -> bool {
        let Some(known) = self.players.get_mut(player) else { return false };
        if now < known.next_full || !self.stage.bodies.needs_full(&known.view) {
            return false;
        }
        let Some(body) = self.own_body(player) else { return false };
        let Some(bodies) = self.full_state(now, player, body.len()) else { return false };
        self.welcome(now, connection, body, bodies);
        self.stats.full_states += 1;
        true
    }

    pub(super) fn welcome(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        body: Vec<u8>,
        bodies: Vec<u8>,
    ) {
        let tick = self.stage.tick().number();
        let welcome = Welcome { tick, epoch: self.clock.epoch().number(), body, bodies };
        self.sessions.send(now, connection, &FromServer::Welcome(welcome));
    }

    /// A player's body against a blank one. `None` when it is longer than the game said.
    pub(super) fn own_body(&self, player: PlayerId) -> Option<Vec<u8>> {
        let mut buffer = [0; MAX_BODY_BYTES];
        let buffer = buffer.get_mut(..BodyOf::<W>::MAX_BITS.div_ceil(8))?;
        let mut bits = BitWriter::new(buffer);
        if let Some(record) =
            self.stage.bodies.history(player).and_then(|history| history.get(self.stage.bodies.tick()))
        {
            record.after.write(&BodyOf::<W>::blank(), &mut bits);
        }
        let length = bits.finish()?;
        buffer.get(..length).map(<[u8]>::to_vec)
    }

    /// All bodies in full, if they fit into a frame beside the player's own `body` of so many bytes. Later snapshots
    /// are deltas against them.
    pub(super) fn full_state(&mut self, now: Timestamp, player: PlayerId, body: usize) -> Option<Vec<u8>> {
        self.stage.bodies.set_epoch(self.clock.epoch());
        let player = self.players.get_mut(player)?;
        player.next_full = now + Self::FULL_STATE;
        let mut buffer = vec![0; Welcome::room(body)];
        let max_bits = buffer.len() * 8;
        let mut bits = BitWriter::new(&mut buffer);
        if !self.stage.bodies.write_full(&mut player.view, max_bits, &mut bits) {
            return None;
        }
        let length = bits.finish();
        debug_assert!(length.is_some(), "a full state that was written fits");
        buffer.truncate(length.unwrap_or(0));
        Some(buffer)
    }

    /// Removes a player whose body cannot be sent: its client could never play.
    pub(super) fn refuse_body(&mut self, player: PlayerId) {
        self.stats.bodies_too_long += 1;
        self.sessions.remove(player, DisconnectReason::BodyTooLong);
    }
}
