//! What a peer's messages do: logging in and out, answers, orders and input.

use core::cell::Cell;
use core::time::Duration;

use super::player::{Player, Received};
use super::{Phase, Server, Shown, World, closing, player_in};
use crate::id::{PlayerId, PlayerName};
use crate::input::{Arrival, InputQueue, InputQueueConfig};
use crate::lane::{Link, MessageKind};
use crate::record::Entry;
use crate::session::{ConnectionId, DisconnectReason};
use crate::snapshot::{BodyCode, MAX_BODY_BYTES, View};
use crate::time::Timestamp;
use crate::wire::BitWriter;
use crate::wire::control::{
    Continuity, FromClient, FromServer, Heartbeat, HeartbeatReply, Login, LoginAccepted, LoginRefused,
    PlayerJoined, PlayerLeft, Restart, Welcome,
};

impl<W: World> Server<W> {
    /// A player is told of everybody by the reliable lane no more often than this: a full frame a second is little beside
    /// twenty snapshots.
    const FULL_STATE: Duration = Duration::from_secs(1);

    pub(super) fn act_on(&mut self, now: Timestamp, connection: ConnectionId, message: &FromClient) {
        let Some(player) = self.player_of(connection) else {
            match message {
                FromClient::Login(login) => self.log_in(now, connection, login),
                // Connected is not logged in.
                // spec: SERVER-03
                _ => self.refuse_malformed(connection),
            }
            return;
        };
        self.hear_of(now, player);
        self.hear_sign_of_life(now, connection);
        match message {
            FromClient::SyncHeard(heard) => self.take_sync_heard(connection, *heard),
            FromClient::Login(_) => self.refuse_malformed(connection),
            FromClient::Logout(()) => {
                self.remove_player(player);
                self.close(connection, DisconnectReason::LoggedOut);
            }
            FromClient::Heartbeat(heartbeat) => self.answer(now, connection, player, heartbeat),
            FromClient::ShootInput(bytes) => self.order(now, connection, player, bytes),
            FromClient::MoveInput(bytes) => self.receive_input(now, player, bytes, Link::Reliable),
            FromClient::Report(report) => {
                if let Some(player) = self.player_mut(player) {
                    player.report.add(report);
                }
                self.stats.reported.add(&report.corrections);
                self.stats.reported_sizes.add(&report.sizes);
                self.stats.reported_snaps += u64::from(report.snapped);
            }
        }
    }

    /// A message of that player has arrived. The first of a session confirms it: from then on the name alone does not
    /// replace it, also not after a crash.
    fn hear_of(&mut self, now: Timestamp, player: PlayerId) {
        if self.table.heard(now, player) {
            self.write_entry(|| Entry::Delivered { player, received: 0 });
        }
    }

    pub(super) fn log_in(&mut self, now: Timestamp, connection: ConnectionId, login: &Login) {
        let Some(token) = self.connections.get(&connection).map(|open| open.token) else { return };
        let admitted = self.stage.world.admit(login, self.table.resumes(login)).and_then(|()| {
            let claims = self.stage.world.claims(login);
            let too_long = claims.as_ref().is_some_and(|claims| claims.len() > Login::MAX_CLAIMS);
            if too_long { Err(LoginRefused::CredentialsInvalid) } else { Ok(claims) }
        });
        let let_in =
            admitted.and_then(|claims| Ok((self.table.login(now, connection, login, token)?, claims)));
        let (let_in, claims) = match let_in {
            Ok(let_in) => let_in,
            Err(refused) => {
                self.stats.refused += 1;
                self.send(connection, &FromServer::LoginRefused(refused));
                self.close(connection, DisconnectReason::Refused);
                return;
            }
        };
        if let Some(old) = let_in.superseded {
            self.close(old, DisconnectReason::Superseded);
        }
        if let Some(replaced) = let_in.replaced {
            self.forget_player(replaced);
        }
        self.stats.logins += 1;
        let LoginAccepted { player, continuity, .. } = let_in.accepted;
        if let Some(open) = self.connections.get_mut(&connection) {
            open.player = Some(player);
        }
        self.watch_sync(now, connection);
        let begins = matches!(continuity, Continuity::New | Continuity::Restarted(Restart::Unknown));
        if begins {
            let (name, token) = (login.name.clone(), let_in.accepted.token);
            let login = Login::recorded(self.table.shared(), name.clone(), claims.clone());
            self.write_entry(|| Entry::Joined { player, name, token, claims });
            self.add_player(player, &login);
        } else if continuity.begins() {
            self.write_entry(|| Entry::Restarted { player });
            self.stage.restarted(player);
        } else {
            if let_in.confirms {
                self.write_entry(|| Entry::Delivered { player, received: 0 });
            }
            self.write_orders_of(player);
        }
        let open = self.connections.get(&connection);
        let link = open.map_or(Link::Sync, |open| open.router.link(MessageKind::MoveInput));
        if let Some(player) = self.player_mut(player) {
            player.connected(connection);
            if continuity.begins() {
                player.queue.begin(link);
                // Whoever begins, or begins anew, knows nobody: not what was shown, not who is there.
                player.view = View::default();
            }
        }
        let Some(body) = self.own_body(player) else {
            if begins {
                self.tell_of_newcomer(player, &login.name);
            }
            self.refuse_body(connection, player);
            return;
        };
        self.send(connection, &FromServer::LoginAccepted(let_in.accepted));
        let bodies = if continuity.begins() { self.full_state(now, player, body.len()) } else { None };
        self.welcome(connection, body, bodies.unwrap_or_default());
        if begins {
            self.tell_of_newcomer(player, &login.name);
        }
        if continuity.begins() {
            self.tell_who_is_there(player);
        }
        if let Phase::Draining { until } = self.phase {
            self.send(connection, &closing(now, until));
        }
        self.flush(player);
    }

    /// A player who was there before comes in once more, as it did then.
    pub(super) fn begin(&mut self, player: PlayerId, login: &Login) {
        self.add_player(player, login);
        self.tell_of_newcomer(player, &login.name);
        self.tell_who_is_there(player);
    }

    fn tell_of_newcomer(&mut self, player: PlayerId, name: &PlayerName) {
        let joined = PlayerJoined { player, name: name.clone() };
        self.tell_all(&FromServer::PlayerJoined(joined), Some(player));
    }

    pub(super) fn add_player(&mut self, player: PlayerId, login: &Login) {
        // spec: SERVER-01
        let Some(fresh) = self.fresh_player(player) else { return };
        self.stage.join(player, login);
        match self.players.binary_search_by_key(&player, |player| player.id) {
            Ok(_) => debug_assert!(false, "a number is not given twice"),
            Err(at) => self.players.insert(at, fresh),
        }
    }

    /// One whose input is awaited from the next tick on.
    pub(super) fn fresh_player(&self, player: PlayerId) -> Option<Player<W::Game>> {
        let tick = self.stage.tick();
        let config = InputQueueConfig {
            cadence: self.config.cadence,
            horizon: self.config.horizon,
            ..InputQueueConfig::default()
        };
        let queue = InputQueue::new(config, tick);
        debug_assert!(queue.is_ok(), "configs have been checked");
        Some(Player::new(player, queue.ok()?, tick))
    }

    pub(super) fn remove_player(&mut self, player: PlayerId) {
        if self.table.remove(player).is_some() {
            self.forget_player(player);
        }
    }

    /// A player whose session is over already.
    pub(super) fn forget_player(&mut self, player: PlayerId) {
        self.write_report_of(player);
        self.write_entry(|| Entry::Left { player });
        self.stage.leave(player);
        if let Some(stats) = self.input_stats(player) {
            self.past_input = self.past_input.plus(stats);
        }
        self.players.retain(|each| each.id != player);
        for open in self.connections.values_mut().filter(|open| open.player == Some(player)) {
            open.player = None;
        }
        self.tell_events();
        self.tell_all(&FromServer::PlayerLeft(PlayerLeft { player }), None);
    }

    fn welcome(&mut self, connection: ConnectionId, body: Vec<u8>, bodies: Vec<u8>) {
        let welcome = Welcome {
            tick: self.stage.bodies.tick().number(),
            epoch: self.clock.epoch().number(),
            body,
            bodies,
        };
        self.send(connection, &FromServer::Welcome(welcome));
    }

    /// A player's body, against a blank one; none when it is longer than the game said.
    fn own_body(&self, player: PlayerId) -> Option<Vec<u8>> {
        let mut buffer = [0; MAX_BODY_BYTES];
        let buffer = buffer.get_mut(..W::Game::MAX_BODY_BYTES)?;
        let mut bits = BitWriter::new(buffer);
        if let Some(record) =
            self.stage.bodies.history(player).and_then(|history| history.get(self.stage.bodies.tick()))
        {
            W::Game::write_body(&record.after, &W::Game::blank(), &mut bits);
        }
        let length = bits.finish()?;
        buffer.get(..length).map(<[u8]>::to_vec)
    }

    /// The player's body cannot be sent, so its client could never play.
    pub(super) fn refuse_body(&mut self, connection: ConnectionId, player: PlayerId) {
        self.stats.bodies_too_long += 1;
        self.remove_player(player);
        self.close(connection, DisconnectReason::BodyTooLong);
    }

    /// Everybody in full, if there is room for that in a frame beside the player's own `body` of so many bytes. From here
    /// on the player is told what has changed since.
    fn full_state(&mut self, now: Timestamp, player: PlayerId, body: usize) -> Option<Vec<u8>> {
        let player = player_in(&mut self.players, player)?;
        player.next_full = now + Self::FULL_STATE;
        let mut buffer = vec![0; Welcome::room(body)];
        let max_bits = buffer.len() * 8;
        let mut bits = BitWriter::new(&mut buffer);
        if !self.stage.bodies.write_full(&mut player.view, max_bits, &mut bits) {
            return None;
        }
        let length = bits.finish();
        debug_assert!(length.is_some(), "what is written fits");
        buffer.truncate(length.unwrap_or(0));
        Some(buffer)
    }

    /// Tells a player of everybody by the reliable lane, if snapshots do not get there. Gives whether it did: the snapshot
    /// of this tick is told by that.
    pub(super) fn heal(&mut self, now: Timestamp, connection: ConnectionId, player: PlayerId) -> bool {
        let Some(known) = player_in(&mut self.players, player) else { return false };
        if now < known.next_full || !self.stage.bodies.needs_full(&known.view) {
            return false;
        }
        let Some(body) = self.own_body(player) else { return false };
        let Some(bodies) = self.full_state(now, player, body.len()) else { return false };
        self.welcome(connection, body, bodies);
        self.stats.full_states += 1;
        true
    }

    pub(super) fn answer(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        player: PlayerId,
        heartbeat: &Heartbeat,
    ) {
        let Some(session) = self.table.get_mut(player) else { return };
        let before = session.log().acknowledged();
        let first = session.log().is_unknown();
        if session.log().acknowledge(heartbeat.received).is_err() {
            self.refuse_malformed(connection);
            return;
        }
        let received = session.log().received();
        self.write_delivered(player, before, heartbeat.received, first);
        self.write_orders_of(player);
        if self.clock.slips_at(now) {
            // It has waited out a stall, and the time that it would be told is not the time that goes on: better no
            // answer than this one. The next heartbeat has one.
            return;
        }
        let reply = HeartbeatReply {
            sent_micros: heartbeat.sent_micros,
            held_micros: 0,
            server_micros: self.clock.time(now).as_micros(),
            received,
        };
        self.send(connection, &FromServer::HeartbeatReply(reply));
    }

    fn order(&mut self, now: Timestamp, connection: ConnectionId, player: PlayerId, bytes: &[u8]) {
        let interval = Duration::from_secs(1) / self.config.orders_per_second;
        let Some(known) = player_in(&mut self.players, player) else { return };
        if !known.may_order(now, interval) {
            self.stats.too_many_orders += 1;
            self.remove_player(player);
            self.close(connection, DisconnectReason::TooMuch);
            return;
        }
        if let Some(session) = self.table.get_mut(player) {
            session.log().receive();
        }
        // Whatever it claims, it is the order of the player whose connection it came by.
        // spec: SERVER-02
        let shown = Cell::new(true);
        let taken = self.stage.order(player, bytes, Shown::new(&known.view, &shown));
        // One that is none is written as nothing: it was received all the same.
        let bytes = if taken.is_ok() { bytes.to_vec() } else { Vec::new() };
        self.write_entry(|| match shown.get() {
            true => Entry::Ordered { player, bytes },
            false => Entry::OrderedUnseen { player, bytes },
        });
        if taken.is_err() {
            self.refuse_malformed(connection);
        }
    }

    pub(super) fn receive_input(&mut self, now: Timestamp, player: PlayerId, bytes: &[u8], link: Link) {
        if self.message.decode(bytes).is_err() {
            self.stats.malformed_datagrams += 1;
            return;
        }
        self.take_input(now, player, link);
    }

    /// Takes the input message that was decoded last.
    pub(super) fn take_input(&mut self, now: Timestamp, player: PlayerId, link: Link) {
        self.hear_of(now, player);
        let arrival = if self.clock.is_behind(now) { Arrival::CatchingUp } else { Arrival::Live };
        let time = self.clock.time(now);
        let Some(player) = player_in(&mut self.players, player) else { return };
        match player.receive(now, time, &self.message, arrival, link) {
            Received::Taken => self.stats.inputs += 1,
            Received::Stale => self.stats.stale_inputs += 1,
            Received::BadAck => self.stats.bad_acks += 1,
        }
    }

    pub(super) fn refuse_malformed(&mut self, connection: ConnectionId) {
        self.stats.malformed_streams += 1;
        // It is told not to come back: its player would only stand around until the grace is over.
        if let Some(player) = self.player_of(connection) {
            self.remove_player(player);
        }
        self.close(connection, DisconnectReason::Malformed);
    }

    /// The connection is to be closed. Its player, if it still has one, is away.
    pub(super) fn close(&mut self, connection: ConnectionId, reason: DisconnectReason) {
        let Some(open) = self.connections.get_mut(&connection).filter(|open| open.closing.is_none()) else {
            return;
        };
        open.closing = Some(reason);
        self.closes.push_back(connection);
        let now = self.clock.now();
        self.table.disconnected(now, connection);
        for player in self.players.iter_mut().filter(|player| player.connection == Some(connection)) {
            player.disconnected();
        }
    }
}
