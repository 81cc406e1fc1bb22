//! The server's end in small: the real session table, and around it what `halftrack::server` does with one. Checked here:
//! a player has one connection, a token brings back its own player and opens nothing to a thief, orders come once and in
//! order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use halftrack::session::{ConnectionId, DisconnectReason, SessionTable};
use halftrack::wire::control::{
    Continuity, FromClient, FromServer, Heartbeat, HeartbeatReply, Login, Restart,
};
use halftrack::{PlayerId, Timestamp, Token};

use super::fingerprint::Fingerprint;
use super::session::Planted;

/// What is under way to a client.
#[derive(Clone, Debug)]
pub(super) enum Down {
    Message(FromServer),
    Closed(DisconnectReason),
}

/// A connection, and what is under way on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// The client, or the one whose name the thief uses.
    pub(super) client: usize,
    pub(super) thief: bool,
    pub(super) up: VecDeque<FromClient>,
    pub(super) down: VecDeque<Down>,
    /// Nothing gets through any more, in either direction.
    pub(super) cut: bool,
    pub(super) client_gone: bool,
    pub(super) server_gone: bool,
    /// Whose it is, as the server has it.
    pub(super) player: Option<PlayerId>,
}

impl Link {
    /// The tokens that are under way.
    pub(super) fn add_tokens(&self, hash: &mut Fingerprint) {
        let up = self.up.iter().filter_map(|message| match message {
            FromClient::Login(login) => login.resume.and_then(|resume| token_number(resume.token)),
            _ => None,
        });
        let down = self.down.iter().filter_map(|down| match down {
            Down::Message(FromServer::LoginAccepted(accepted)) => token_number(accepted.token),
            _ => None,
        });
        up.chain(down).for_each(|number| hash.add(&number));
    }
}

/// What the server knows of one client's orders and events, by its name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// Events told, numbered from one.
    pub(super) events: u8,
    /// Those up to this one may be lost: the session began anew after them.
    pub(super) events_excused: u8,
    /// The newest order heard.
    pub(super) orders: u8,
    /// The session began anew since: some may be missing.
    orders_gap: bool,
}

/// The server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) table: SessionTable,
    pub(super) said: Vec<Said>,
    /// Whom a token was given to, while its session lives.
    given: BTreeMap<u8, PlayerId>,
    /// Players that the thief logged in as, while they are there.
    stolen: BTreeSet<PlayerId>,
    /// Since when players have been away.
    away: BTreeMap<PlayerId, Timestamp>,
    pub(super) timed: Timestamp,
}

impl Server {
    pub(super) fn new(table: SessionTable, clients: usize) -> Self {
        let said = vec![Said::default(); clients];
        let (given, stolen, away) = Default::default();
        Self { table, said, given, stolen, away, timed: Timestamp::ZERO }
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
        let client = links[at].client;
        let Some(player) = links[at].player else {
            return match message {
                FromClient::Login(login) => self.log_in(now, links, at, login, planted),
                other => Err(format!("{other:?} came before a login")),
            };
        };
        self.table.heard(now, player);
        match message {
            FromClient::Login(_) => return Err("a second login by one connection".to_owned()),
            FromClient::Logout(()) => {
                self.remove(player, client);
                self.close(now, links, at, DisconnectReason::LoggedOut);
            }
            FromClient::Heartbeat(heartbeat) => self.answer(player, &mut links[at], heartbeat)?,
            FromClient::ShootInput(bytes) => {
                if let Some(session) = self.table.get_mut(player) {
                    session.log().receive();
                }
                self.hear_order(client, bytes.first().copied().unwrap_or(0))?;
            }
            _ => {}
        }
        Ok(())
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
        let connection = number(at);
        let mut let_in = match self.table.login(now, connection, login, token(at)) {
            Ok(let_in) => let_in,
            Err(refused) => {
                send(&mut links[at], Down::Message(FromServer::LoginRefused(refused)));
                self.close(now, links, at, DisconnectReason::Refused);
                return Ok(());
            }
        };
        if let Some(replaced) = let_in.replaced {
            if planted == Planted::TokenHandedOn {
                let old = self.given.iter().find(|(_, player)| **player == replaced);
                old.into_iter().for_each(|(number, _)| let_in.accepted.token = token(usize::from(*number)));
            }
            self.forget(replaced, links[at].client);
        }
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
        if let Some(old) = let_in.superseded.filter(|_| planted != Planted::TwoOwners) {
            let old = (0..links.len()).find(|at| number(*at) == old);
            old.into_iter().for_each(|old| self.close(now, links, old, DisconnectReason::Superseded));
        }
        if let Some(number) = token_number(accepted.token) {
            self.given.insert(number, accepted.player);
        }
        self.away.remove(&accepted.player);
        links[at].player = Some(accepted.player);
        let said = &mut self.said[links[at].client];
        if accepted.continuity.begins() {
            (said.events_excused, said.orders_gap) = (said.events, true);
        }
        if accepted.continuity == Continuity::Restarted(Restart::Unknown) && known.is_some() {
            return Err(format!("{known:?} was forgotten before its grace was over"));
        }
        send(&mut links[at], Down::Message(FromServer::LoginAccepted(accepted)));
        let resumed = matches!(accepted.continuity, Continuity::Resumed { .. });
        self.flush(links, accepted.player, planted, resumed);
        Ok(())
    }

    fn answer(&mut self, player: PlayerId, link: &mut Link, heartbeat: &Heartbeat) -> Result<(), String> {
        let Some(session) = self.table.get_mut(player) else { return Ok(()) };
        if session.log().acknowledge(heartbeat.received).is_err() {
            return Err(format!("{player:?} acknowledges {}, which it was never sent", heartbeat.received));
        }
        let received = session.log().received();
        // When it was sent is no part of a session.
        let reply = HeartbeatReply { sent_micros: u64::MAX, held_micros: 0, server_micros: 0, received };
        send(link, Down::Message(FromServer::HeartbeatReply(reply)));
        Ok(())
    }

    /// Something happens that a client is to hear of, if its player is there.
    pub(super) fn tell(&mut self, now: Timestamp, links: &mut [Link], player: PlayerId, client: usize) {
        let said = &mut self.said[client];
        said.events += 1;
        let event = [said.events];
        let Some(session) = self.table.get_mut(player) else { return };
        let connection = session.connection();
        if session.log().push(&event).is_err() {
            let at = (0..links.len()).find(|at| Some(number(*at)) == connection);
            at.into_iter().for_each(|at| self.close(now, links, at, DisconnectReason::TooSlow));
            return;
        }
        self.flush(links, player, Planted::Nothing, false);
    }

    /// Writes what the player has not been sent by its present connection.
    fn flush(&mut self, links: &mut [Link], player: PlayerId, planted: Planted, resumed: bool) {
        let Some(session) = self.table.get_mut(player) else { return };
        let connection = session.connection();
        let Some(link) = links.iter_mut().zip(0..).find(|(_, at)| Some(number(*at)) == connection) else {
            return;
        };
        let mut first = resumed;
        while let Some(event) = session.log().poll().map(<[u8]>::to_vec) {
            let copies = match planted {
                Planted::LostOnResume if first => 0,
                Planted::DoubledOnResume if first => 2,
                _ => 1,
            };
            first = false;
            (0..copies).for_each(|_| send(link.0, Down::Message(FromServer::CombatEvent(event.clone()))));
        }
    }

    /// The server's end of a connection is closed, for `reason`.
    fn close(&mut self, now: Timestamp, links: &mut [Link], at: usize, reason: DisconnectReason) {
        let link = &mut links[at];
        if !link.server_gone {
            send(link, Down::Closed(reason));
            self.gone(now, links, at);
        }
    }

    /// A connection is no more, as far as the server is concerned.
    pub(super) fn gone(&mut self, now: Timestamp, links: &mut [Link], at: usize) {
        links[at].server_gone = true;
        links[at].up.clear();
        if let Some(player) = links[at].player.take()
            && self.table.player_of(number(at)).is_some()
        {
            self.away.insert(player, now);
        }
        self.table.disconnected(now, number(at));
    }

    /// A player is gone for good.
    pub(super) fn remove(&mut self, player: PlayerId, client: usize) {
        self.table.remove(player);
        self.forget(player, client);
    }

    fn forget(&mut self, player: PlayerId, client: usize) {
        self.given.retain(|_, holder| *holder != player);
        self.stolen.remove(&player);
        self.away.remove(&player);
        let said = &mut self.said[client];
        (said.events_excused, said.orders_gap) = (said.events, true);
    }

    /// Somebody is removed by an operator.
    pub(super) fn kick(&mut self, now: Timestamp, links: &mut [Link], player: PlayerId, client: usize) {
        let connection = self.table.get_mut(player).and_then(|session| session.connection());
        self.remove(player, client);
        let at = (0..links.len()).find(|at| Some(number(*at)) == connection);
        at.into_iter().for_each(|at| self.close(now, links, at, DisconnectReason::Kicked));
    }

    /// Time has passed.
    pub(super) fn expire(
        &mut self,
        now: Timestamp,
        links: &mut [Link],
        grace: std::time::Duration,
    ) -> Result<(), String> {
        self.timed = now;
        let names: BTreeMap<_, _> =
            self.table.players().map(|(player, session)| (player, session.name().clone())).collect();
        let expired = self.table.handle_timeout(now);
        for connection in expired.connections {
            let at = (0..links.len()).find(|at| number(*at) == connection);
            if let Some(player) = at.and_then(|at| links[at].player) {
                self.away.insert(player, now);
            }
            at.into_iter().for_each(|at| self.close(now, links, at, DisconnectReason::Silent));
        }
        for player in expired.players {
            let away = self.away.get(&player).map_or(grace, |since| now.saturating_since(*since));
            if away < grace {
                return Err(format!("{player:?} is gone after {away:?}"));
            }
            let client = names.get(&player).and_then(client_of).unwrap_or(0);
            self.forget(player, client);
        }
        Ok(())
    }

    /// The process is killed and comes back as it was when it last said anything.
    pub(super) fn recovered(&mut self, now: Timestamp, links: &mut [Link]) {
        for at in 0..links.len() {
            links[at].cut = true;
            links[at].down.clear();
            self.gone(now, links, at);
        }
    }

    /// Nobody may have two owners, and both books must say the same.
    pub(super) fn check(&mut self, links: &[Link]) -> Result<(), String> {
        for (at, link) in links.iter().enumerate().filter(|(_, link)| !link.server_gone) {
            if let Some(player) = link.player {
                let owner = self.table.get_mut(player).and_then(|session| session.connection());
                if owner != Some(number(at)) {
                    return Err(format!("{player:?} is connection {at}'s, and {owner:?}'s too"));
                }
            }
        }
        Ok(())
    }

    /// All of it, tokens included: they do not show in any text.
    pub(super) fn add_to(&self, hash: &mut Fingerprint) {
        hash.add(self);
    }

    /// The player of that name.
    pub(super) fn player_named(&self, client: usize) -> Option<PlayerId> {
        self.table
            .players()
            .find(|(_, session)| client_of(session.name()) == Some(client))
            .map(|(player, _)| player)
    }
}

fn send(link: &mut Link, what: Down) {
    if !link.cut && !link.client_gone && !link.server_gone {
        link.down.push_back(what);
    }
}

/// The token that a session gets which begins on that connection.
fn token(at: usize) -> Token {
    Token::new([u8::try_from(at).unwrap_or(u8::MAX); 16])
}

pub(super) fn token_number(known: Token) -> Option<u8> {
    (0..=u8::MAX).find(|number| token(usize::from(*number)) == known)
}

pub(super) fn number(at: usize) -> ConnectionId {
    ConnectionId::new(at as u64)
}

/// Clients are called by their number.
fn client_of(name: &halftrack::PlayerName) -> Option<usize> {
    name.as_str().parse().ok()
}
