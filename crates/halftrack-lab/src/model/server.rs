//! The server's end: the real `SessionServer`, and a host that takes its bytes, closes and events.
//!
//! Checked here: a player has one connection, a token resumes its own player and opens nothing to a thief, no player is
//! removed before its grace is over, no honest message is malformed, and orders arrive once and in order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use halftrack::session::{DisconnectReason, SessionEvent, SessionServer, SessionServerConfig};
use halftrack::wire::FrameReader;
use halftrack::wire::control::{Continuity, FromClient, FromServer, Login, Restart};
use halftrack::{PlayerId, ServerTime, SyncLink, Timestamp};

use super::link::{Down, Link, number, token, token_number};
use super::session::Planted;

/// Orders and events of one client, by its name, as far as the server has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// Events sent, numbered from one.
    pub(super) events: u8,
    /// Those up to this one may be lost: the session began anew after them.
    pub(super) events_excused: u8,
    /// The newest order heard.
    pub(super) orders: u8,
    /// The session began anew since: some may be missing.
    orders_gap: bool,
}

/// The server, and the books that its sessions are checked against.
#[derive(Clone, Debug)]
pub(super) struct Server {
    sessions: SessionServer,
    grace: Duration,
    pub(super) said: Vec<Said>,
    /// The client of each player.
    clients: BTreeMap<PlayerId, usize>,
    /// The player that each token was given to, while its session lives.
    given: BTreeMap<u8, PlayerId>,
    /// Players that the thief logged in as, while they are there.
    stolen: BTreeSet<PlayerId>,
    /// Since when players have been away.
    away: BTreeMap<PlayerId, Timestamp>,
    pub(super) timed: Timestamp,
}

impl Server {
    pub(super) fn new(config: SessionServerConfig, clients: usize) -> Self {
        Self {
            sessions: SessionServer::new(config).expect("in range"),
            grace: config.table.grace,
            said: vec![Said::default(); clients],
            clients: BTreeMap::new(),
            given: BTreeMap::new(),
            stolen: BTreeSet::new(),
            away: BTreeMap::new(),
            timed: Timestamp::ZERO,
        }
    }

    /// A connection was made.
    pub(super) fn connected(&mut self, now: Timestamp, at: usize) {
        self.sessions.handle_connected(now, number(at), SyncLink::Absent, token(at));
    }

    /// A message of a client has arrived.
    pub(super) fn hear(
        &mut self,
        now: Timestamp,
        links: &mut [Link],
        at: usize,
        message: &FromClient,
        planted: Planted,
    ) -> Result<(), String> {
        let mut stream = Vec::new();
        assert!(message.append_to(&mut stream), "a message of a client fits into a frame");
        let mut bytes = stream.as_slice();
        while let Some(event) = self.sessions.handle_stream(now, number(at), &mut bytes) {
            match event {
                SessionEvent::LoginRequested { login, .. } => {
                    self.log_in(now, links, at, &login, planted)?;
                }
                // The client's clock is no part of a session.
                SessionEvent::Heartbeat { connection, .. } => {
                    self.sessions.answer_heartbeat(now, connection, u64::MAX, ServerTime::ZERO);
                }
                SessionEvent::Order { bytes, .. } => {
                    self.hear_order(links[at].client, bytes.first().copied().unwrap_or(0))?;
                }
                event => self.follow(now, &event),
            }
        }
        self.carry(links, planted)
    }

    fn hear_order(&mut self, client: usize, number: u8) -> Result<(), String> {
        let said = &mut self.said[client];
        let next = number == said.orders + 1 || (said.orders_gap && number > said.orders);
        if !next {
            return Err(format!("order {number} of client {client} is heard after order {}", said.orders));
        }
        (said.orders, said.orders_gap) = (number, false);
        Ok(())
    }

    fn log_in(
        &mut self,
        now: Timestamp,
        links: &mut [Link],
        at: usize,
        login: &Login,
        planted: Planted,
    ) -> Result<(), String> {
        let known = login.resume.and_then(|resume| token_number(resume.token));
        let known = known.and_then(|number| self.given.get(&number).copied());
        let Some(mut let_in) = self.sessions.log_in(now, number(at), login) else { return Ok(()) };
        if planted == Planted::TokenHandedOn {
            let old = self.given.iter().find(|(_, player)| Some(**player) == let_in.replaced);
            old.into_iter().for_each(|(number, _)| let_in.accepted.token = token(usize::from(*number)));
        }
        self.follow_all(now);
        let accepted = let_in.accepted;
        if login.resume.is_none() && accepted.token != token(at) {
            return Err(format!(
                "a login by name is given a token of before: {:?}",
                token_number(accepted.token)
            ));
        }
        if known.is_none()
            && !matches!(accepted.continuity, Continuity::New | Continuity::Restarted(Restart::Unknown))
        {
            return Err(format!("a dead token brings back {:?}", accepted.player));
        }
        if known.is_some() && self.stolen.contains(&accepted.player) != links[at].thief {
            return Err(format!("{:?} has a thief, and another who holds its token", accepted.player));
        }
        if links[at].thief {
            self.stolen.insert(accepted.player);
        }
        if known.is_some_and(|known| known != accepted.player) {
            return Err(format!("the token of {known:?} made its holder {:?}", accepted.player));
        }
        if let Some(number) = token_number(accepted.token) {
            self.given.insert(number, accepted.player);
        }
        self.away.remove(&accepted.player);
        self.clients.insert(accepted.player, links[at].client);
        links[at].player = Some(accepted.player);
        let said = &mut self.said[links[at].client];
        if accepted.continuity.begins() {
            (said.events_excused, said.orders_gap) = (said.events, true);
        }
        if accepted.continuity == Continuity::Restarted(Restart::Unknown) && known.is_some() {
            return Err(format!("{known:?} was forgotten before its grace was over"));
        }
        self.sessions.send(now, number(at), &FromServer::LoginAccepted(accepted));
        self.sessions.finish_login(now, accepted.player);
        Ok(())
    }

    /// Keeps the books.
    fn follow(&mut self, now: Timestamp, event: &SessionEvent) {
        match event {
            SessionEvent::Away { player } => {
                self.away.insert(*player, now);
            }
            SessionEvent::Left { player } => {
                self.given.retain(|_, holder| holder != player);
                self.stolen.remove(player);
                self.away.remove(player);
                if let Some(said) = self.clients.remove(player).map(|client| &mut self.said[client]) {
                    (said.events_excused, said.orders_gap) = (said.events, true);
                }
            }
            _ => {}
        }
    }

    fn follow_all(&mut self, now: Timestamp) {
        while let Some(event) = self.sessions.poll_event() {
            self.follow(now, &event);
        }
    }

    /// Puts the server's messages and closes on their way.
    fn carry(&mut self, links: &mut [Link], planted: Planted) -> Result<(), String> {
        let mut stream = Vec::new();
        for (at, link) in links.iter_mut().enumerate() {
            stream.clear();
            self.sessions.poll_stream(number(at), &mut stream);
            let (mut bytes, mut reader, mut resumes) = (stream.as_slice(), FrameReader::default(), false);
            while let Some(frame) = reader.next(&mut bytes).map_err(|error| error.to_string())? {
                let message = FromServer::read(frame).map_err(|error| error.to_string())?;
                let first = resumes && matches!(message, FromServer::CombatEvent(_));
                resumes = match &message {
                    FromServer::LoginAccepted(accepted) => !accepted.continuity.begins(),
                    _ => resumes && !first,
                };
                let copies = match planted {
                    Planted::LostOnResume if first => 0,
                    Planted::DoubledOnResume if first => 2,
                    _ => 1,
                };
                (0..copies).for_each(|_| link.send_down(Down::Message(message.clone())));
            }
        }
        while let Some((connection, reason)) = self.sessions.poll_close() {
            let Some(at) = (0..links.len()).find(|at| number(*at) == connection) else { continue };
            if reason == DisconnectReason::Malformed {
                return Err(format!("connection {at} is closed because it broke the protocol"));
            }
            if planted == Planted::TwoOwners && reason == DisconnectReason::Superseded {
                continue;
            }
            links[at].send_down(Down::Closed(reason));
            links[at].close_server_end();
            self.sessions.handle_closed(connection);
        }
        Ok(())
    }

    /// An event for a client happens.
    pub(super) fn tell(
        &mut self,
        now: Timestamp,
        links: &mut [Link],
        player: PlayerId,
        client: usize,
    ) -> Result<(), String> {
        let said = &mut self.said[client];
        said.events += 1;
        let mut frame = Vec::new();
        assert!(
            FromServer::CombatEvent(vec![said.events]).append_to(&mut frame),
            "an event fits into a frame"
        );
        self.sessions.tell(now, player, &frame);
        self.follow_all(now);
        self.carry(links, Planted::Nothing)
    }

    /// The server notices that a connection is gone.
    pub(super) fn gone(&mut self, now: Timestamp, links: &mut [Link], at: usize) {
        links[at].close_server_end();
        self.sessions.handle_disconnected(now, number(at));
        self.follow_all(now);
    }

    /// An operator removes a player.
    pub(super) fn kick(
        &mut self,
        now: Timestamp,
        links: &mut [Link],
        player: PlayerId,
    ) -> Result<(), String> {
        self.sessions.remove(player, DisconnectReason::Kicked);
        self.follow_all(now);
        self.carry(links, Planted::Nothing)
    }

    /// Time has passed.
    pub(super) fn expire(&mut self, now: Timestamp, links: &mut [Link]) -> Result<(), String> {
        self.timed = now;
        self.sessions.handle_timeout(now);
        while let Some(event) = self.sessions.poll_event() {
            if let SessionEvent::Left { player } = event {
                let away = self.away.get(&player).map_or(self.grace, |since| now.saturating_since(*since));
                if away < self.grace {
                    return Err(format!("{player:?} is gone after {away:?}"));
                }
            }
            self.follow(now, &event);
        }
        self.carry(links, Planted::Nothing)
    }

    /// The part that survives a kill: connections without a login leave no trace.
    pub(super) fn as_written(&self) -> Self {
        let mut written = self.clone();
        for connection in self.sessions.connections().filter(|at| self.sessions.player_of(*at).is_none()) {
            written.sessions.handle_disconnected(self.timed, connection);
        }
        written
    }

    /// The process was killed, and came back without connections.
    pub(super) fn recovered(&mut self, now: Timestamp, links: &mut [Link]) {
        for at in 0..links.len() {
            links[at].cut = true;
            links[at].down.clear();
            self.gone(now, links, at);
        }
    }

    /// A player has one connection, and the model's book says the same as the server's.
    pub(super) fn check(&self, links: &[Link]) -> Result<(), String> {
        for (at, link) in links.iter().enumerate().filter(|(_, link)| !link.server_gone) {
            if let Some(player) = link.player {
                let owner = self.sessions.connection_of(player);
                if owner != Some(number(at)) {
                    return Err(format!("{player:?} is connection {at}'s, and {owner:?}'s too"));
                }
            }
            let player = self.sessions.player_of(number(at));
            if player != link.player {
                return Err(format!(
                    "connection {at} is {player:?}'s, and {:?} logged in by it",
                    link.player
                ));
            }
        }
        Ok(())
    }

    /// The player of that name.
    pub(super) fn player_named(&self, client: usize) -> Option<PlayerId> {
        let named = |name: &str| name.parse() == Ok(client);
        self.sessions.players().find(|(_, name)| named(name.as_str())).map(|(player, _)| player)
    }
}
