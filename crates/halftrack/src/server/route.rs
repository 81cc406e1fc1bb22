//! Session events and their effect on the game: players join and leave, orders and input arrive.

use core::time::Duration;
use std::sync::Arc;

use super::player::{Player, Received};
use super::record::Happened;
use super::{Audience, Server, World};
use crate::id::{PlayerId, PlayerName};
use crate::input::{Arrival, InputQueue, InputQueueConfig};
use crate::lane::{Link, MessageKind};
use crate::session::{ConnectionId, DisconnectReason, LetIn, SessionEvent};
use crate::snapshot::View;
use crate::time::Timestamp;
use crate::wire::Frame;
use crate::wire::control::{
    Continuity, FromServer, Login, LoginAccepted, LoginRefused, PlayerJoined, PlayerLeft, Restart,
};

impl<W: World> Server<W> {
    /// Acts on the session events that wait.
    pub(super) fn route_all(&mut self, now: Timestamp) {
        while let Some(event) = self.sessions.poll_event() {
            self.route(now, event);
        }
    }

    pub(super) fn route(&mut self, now: Timestamp, event: SessionEvent) {
        match event {
            SessionEvent::LoginRequested { connection, login } => self.log_in(now, connection, &login),
            SessionEvent::Confirmed { player } => self.note(&Happened::Confirmed { player }),
            SessionEvent::Heartbeat { connection, player, sent_micros, received, received_before, first } => {
                self.note(&Happened::Acknowledged { player, received, received_before, first });
                // After a stall, the time of an answer would not be the time that goes on: better none. The next
                // heartbeat gets one.
                if !self.clock.slips_at(now) {
                    let time = self.clock.time(now);
                    self.sessions.answer_heartbeat(now, connection, sent_micros, time);
                }
            }
            SessionEvent::Order { connection, player, bytes } => self.order(now, connection, player, &bytes),
            SessionEvent::Input { player, bytes } => match self.message.decode(&bytes) {
                Ok(()) => self.take_input(now, player, Link::Reliable),
                Err(_) => self.stats.malformed_datagrams += 1,
            },
            SessionEvent::Reported { player, report } => {
                self.note(&Happened::Reported { player, report: &report });
                self.stats.reported.add(&report.corrections);
                self.stats.reported_sizes.add(&report.sizes);
                self.stats.reported_snaps += u64::from(report.snapped);
            }
            SessionEvent::Away { player } => {
                if let Some(player) = self.players.get_mut(player) {
                    player.disconnected();
                }
            }
            SessionEvent::Left { player } => self.forget_player(now, player),
        }
    }

    fn log_in(&mut self, now: Timestamp, connection: ConnectionId, login: &Login) {
        let admitted = self.stage.world.admit(login, self.sessions.resumes(login)).and_then(|()| {
            let claims = self.stage.world.claims(login);
            let too_long = claims.as_ref().is_some_and(|claims| claims.len() > Login::MAX_CLAIMS);
            if too_long { Err(LoginRefused::CredentialsInvalid) } else { Ok(claims) }
        });
        let claims = match admitted {
            Ok(claims) => claims,
            Err(refused) => {
                self.sessions.refuse(now, connection, refused);
                return;
            }
        };
        let Some(let_in) = self.sessions.log_in(now, connection, login) else { return };
        // The player's old connection, or the unconfirmed session of its name.
        self.route_all(now);
        let LoginAccepted { player, continuity, token } = let_in.accepted;
        let joins = matches!(continuity, Continuity::New | Continuity::Restarted(Restart::Unknown));
        if joins {
            let login = Login::recorded(self.sessions.shared(), login.name.clone(), claims);
            self.note(&Happened::Joined { player, token, login: &login });
            self.add_player(player, &login);
        } else if continuity.begins() {
            self.note(&Happened::Restarted { player });
            self.stage.restarted(player);
        } else {
            self.note(&Happened::Resumed { player, confirms: let_in.confirms });
        }
        self.attach(connection, player, continuity);
        self.greet(now, connection, &let_in, joins.then_some(&login.name));
    }

    /// Gives a player its new connection.
    fn attach(&mut self, connection: ConnectionId, player: PlayerId, continuity: Continuity) {
        let router = self.sessions.router(connection);
        let link = router.map_or(Link::Sync, |router| router.link(MessageKind::MoveInput));
        if let Some(player) = self.players.get_mut(player) {
            player.connected(connection);
            if continuity.begins() {
                player.queue.begin(link);
                // A client that begins has no baseline, and knows no other player.
                player.view = View::default();
            }
        }
    }

    /// Sends a player that logged in everything that its client starts from. `newcomer` is its name if it has just joined.
    fn greet(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        let_in: &LetIn,
        newcomer: Option<&PlayerName>,
    ) {
        let LoginAccepted { player, continuity, .. } = let_in.accepted;
        if let Some(own) = self.own_bodies(player) {
            self.sessions.send(now, connection, &FromServer::LoginAccepted(let_in.accepted));
            let bodies = if continuity.begins() { self.full_state(now, player) } else { Vec::new() };
            self.welcome(now, connection, own, &bodies);
        } else {
            self.refuse_body(player);
        }
        if let Some(name) = newcomer {
            self.announce(now, player, name);
        }
        if continuity.begins() {
            self.send_roster(now, player);
        }
        self.sessions.finish_login(now, player);
    }

    /// Adds a player of a recording.
    pub(super) fn join_again(&mut self, now: Timestamp, player: PlayerId, login: &Login) {
        self.add_player(player, login);
        self.announce(now, player, &login.name);
        self.send_roster(now, player);
    }

    fn add_player(&mut self, player: PlayerId, login: &Login) {
        // spec: SERVER-01
        let Some(fresh) = self.fresh_player(player) else { return };
        self.stage.join(player, login);
        self.players.insert(fresh);
    }

    /// A player whose input is expected from the next tick on.
    pub(super) fn fresh_player(&self, player: PlayerId) -> Option<Player<W::Game>> {
        let tick = self.stage.tick();
        let config = InputQueueConfig {
            cadence: self.config.cadence,
            horizon: self.config.horizon,
            ..InputQueueConfig::default()
        };
        let queue = InputQueue::new(Arc::clone(self.stage.world.rules()), config, tick);
        debug_assert!(queue.is_ok(), "configs have been checked");
        Some(Player::new(player, queue.ok()?, tick))
    }

    /// A session is over: takes its player out of the game.
    fn forget_player(&mut self, now: Timestamp, player: PlayerId) {
        self.note(&Happened::Left { player });
        self.stage.leave(player);
        self.players.remove(player);
        self.tell_events(now);
        self.tell_all(now, &FromServer::PlayerLeft(PlayerLeft { player }), None);
    }

    fn order(&mut self, now: Timestamp, connection: ConnectionId, player: PlayerId, bytes: &[u8]) {
        let interval = Duration::from_secs(1) / self.config.orders_per_second;
        let Some(known) = self.players.get_mut(player) else { return };
        if !known.may_order(now, interval) {
            self.stats.too_many_orders += 1;
            self.sessions.remove(player, DisconnectReason::TooMuch);
            return;
        }
        // The player is the one behind the connection, regardless of claims inside the order.
        // spec: SERVER-02
        let (taken, seen) = self.stage.order_live(player, bytes, &known.view);
        // A malformed order is recorded as an empty one: it counts as received.
        let bytes = if taken.is_ok() { bytes } else { &[] };
        self.note(&Happened::Ordered { player, bytes, seen });
        if taken.is_err() {
            self.sessions.refuse_malformed(now, connection);
        }
    }

    /// Takes the input message that was decoded last.
    pub(super) fn take_input(&mut self, now: Timestamp, player: PlayerId, link: Link) {
        let arrival = if self.clock.is_behind(now) { Arrival::CatchingUp } else { Arrival::Live };
        let time = self.clock.time(now);
        let Some(player) = self.players.get_mut(player) else { return };
        match player.receive(now, time, &self.message, arrival, link) {
            Received::Taken => self.stats.inputs += 1,
            Received::Stale => self.stats.stale_inputs += 1,
            Received::BadAck => self.stats.bad_acks += 1,
        }
    }

    /// Sends the world's events of the newest tick, or of the player that just left.
    pub(super) fn tell_events(&mut self, now: Timestamp) {
        let Self { stage, sessions, players, frames, .. } = self;
        for (audience, body) in stage.events.iter() {
            frames.clear();
            let fits = Frame { kind: FromServer::COMBAT_EVENT, body }.append_to(frames);
            debug_assert!(fits, "`Events::tell` refuses an event that does not fit");
            match audience {
                // Only this side would count an empty message.
                _ if !fits => {}
                Audience::Only(player) => sessions.tell(now, player, frames),
                Audience::All => players.iter().for_each(|player| sessions.tell(now, player.id, frames)),
            }
        }
    }

    fn tell_all(&mut self, now: Timestamp, message: &FromServer, except: Option<PlayerId>) {
        let Self { sessions, players, frames, .. } = self;
        frames.clear();
        let fits = message.append_to(frames);
        debug_assert!(fits, "control messages fit into a frame");
        let others = players.iter().filter(|player| Some(player.id) != except);
        others.for_each(|player| sessions.tell(now, player.id, frames));
    }

    /// Sends all other players the name of a new one.
    fn announce(&mut self, now: Timestamp, player: PlayerId, name: &PlayerName) {
        let joined = PlayerJoined { player, name: name.clone() };
        self.tell_all(now, &FromServer::PlayerJoined(joined), Some(player));
    }

    /// Sends a player the names of all players.
    pub(super) fn send_roster(&mut self, now: Timestamp, player: PlayerId) {
        let names: Vec<_> = self.sessions.players().map(|(id, name)| (id, name.clone())).collect();
        for (id, name) in names {
            self.frames.clear();
            let joined = FromServer::PlayerJoined(PlayerJoined { player: id, name });
            if joined.append_to(&mut self.frames) {
                self.sessions.tell(now, player, &self.frames);
            }
        }
    }
}
