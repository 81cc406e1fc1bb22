//! Sessions of a few clients with one server, over connections that are cut, late and given up in every order.
//!
//! Both ends are the real ones: `ClientSession` and `SessionServer`. A connection is an ordered stream: what
//! is sent on it arrives in order and once, or not at all from some point on; and it may arrive long after its sender has
//! given it up. Time goes by in seconds, and whoever waits for a timeout may be a second late.

use std::time::Duration;

use halftrack::session::{
    DisconnectReason, SessionCommand, SessionEnd, SessionServerConfig, SessionState, TableConfig,
};
use halftrack::wire::control::{FromClient, FromServer, Login, LoginRefused, PROTOCOL, Resume};
use halftrack::{PlayerName, Timestamp, Token};

use super::Model;
use super::client::{Player, is_over};
use super::fingerprint::Fingerprint;
use super::link::{Down, Link, token_number};
use super::server::Server;

/// How much may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Clients.
    pub clients: usize,
    /// Connections, of all clients together.
    pub links: usize,
    /// Events for each client.
    pub events: u8,
    /// Orders of each client.
    pub orders: u8,
    /// Seconds.
    pub seconds: u8,
    /// Players who leave, are removed, or try again.
    pub wishes: u8,
    /// How often the server is killed, and goes on from what it wrote.
    pub kills: u8,
    /// How often a thief logs in: by the name of client 0, or with the token that it was given for that.
    pub thefts: u8,
}

impl Default for Bounds {
    /// What is explored in a few seconds.
    fn default() -> Self {
        Self { clients: 1, links: 3, events: 2, orders: 1, seconds: 3, wishes: 0, kills: 0, thefts: 0 }
    }
}

/// A mistake that is made on purpose, outside of what is explored: to see that it is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// The first event of a session that goes on is left out.
    LostOnResume,
    /// It is sent twice.
    DoubledOnResume,
    /// A connection that is superseded is not closed.
    TwoOwners,
    /// A session that replaces another of its name is given the other's token.
    TokenHandedOn,
}

/// What can happen. Connections are numbered as they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A second goes by.
    Second,
    /// The next message of a client arrives at the server.
    Up(usize),
    /// The next message of the server arrives at the client.
    Down(usize),
    /// A connection is cut, and everything under way on it is lost. Neither end notices.
    Cut(usize),
    /// The server notices that a connection is gone.
    ServerNotices(usize),
    /// The client does.
    ClientNotices(usize),
    /// A connection that a client wants is made.
    Made(usize),
    /// It cannot be made.
    NotMade(usize),
    /// A client looks at the clock.
    ClientTime(usize),
    /// The server does.
    ServerTime,
    /// Something happens that a client's player is to hear of.
    Event(usize),
    /// A client's player gives an order.
    Order(usize),
    /// A client's player leaves.
    Leave(usize),
    /// It wants in again.
    Return(usize),
    /// It is removed by an operator.
    Kick(usize),
    /// The server is killed, and comes back as it was when it last said anything.
    Kill,
    /// The thief connects and logs in by the name of client 0.
    StealName,
    /// The thief connects and logs in with its token.
    StealToken,
}

/// A few clients, a server, and what is between them.
#[derive(Clone, Debug)]
pub struct SessionModel {
    bounds: Bounds,
    planted: Planted,
    now: Timestamp,
    began: Timestamp,
    players: Vec<Player>,
    server: Server,
    /// The server as it was when it last sent something.
    written: Server,
    links: Vec<Link>,
    wishes: u8,
    kills: u8,
    thefts: u8,
    /// The newest token that the thief was given, and its number: tokens have no text of their own.
    stolen: Option<(Token, Option<u8>)>,
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const GRACE: Duration = Duration::from_secs(8);
pub(super) const SHARED: u64 = 7;
/// Messages that each end keeps: few, so that it overflows.
pub(super) const KEPT: usize = 2;

impl SessionModel {
    /// All clients are about to connect.
    ///
    /// # Panics
    /// Never: these configs are in range.
    pub fn new(bounds: Bounds, planted: Planted) -> Self {
        let table = TableConfig {
            grace: GRACE,
            silence: SECOND * 3,
            max_log_messages: KEPT,
            ..TableConfig::new(SHARED)
        };
        let config = SessionServerConfig { table, login: SECOND * 4, ..SessionServerConfig::new(SHARED) };
        let server = Server::new(config, bounds.clients);
        let now = Timestamp::ZERO + SECOND * 100;
        let mut model = Self {
            bounds,
            planted,
            now,
            began: now,
            players: (0..bounds.clients).map(|client| Player::new(client, now)).collect(),
            written: server.clone(),
            server,
            links: Vec::new(),
            wishes: 0,
            kills: 0,
            thefts: 0,
            stolen: None,
        };
        (0..bounds.clients).for_each(|client| model.follow(client));
        model
    }

    /// Does what a session asks for, as a client does.
    fn follow(&mut self, client: usize) {
        let player = &mut self.players[client];
        while let Some(command) = player.session.poll_command() {
            match command {
                SessionCommand::Connect => player.dialling = true,
                SessionCommand::Close => {
                    player.dialling = false;
                    if let Some(link) = player.link.take().and_then(|at| self.links.get_mut(at)) {
                        link.client_gone = true;
                        link.down.clear();
                    }
                }
                SessionCommand::Send(message) => send(&mut self.links, player.link, message),
                SessionCommand::Restarted(_) => {}
            }
        }
        let state = player.session.state();
        if state == SessionState::LoggedIn {
            while let Some(order) = player.session.log().poll().map(<[u8]>::to_vec) {
                send(&mut self.links, player.link, FromClient::ShootInput(order));
            }
        } else {
            player.out = player.out.or(Some(self.now));
        }
    }

    fn connected(&mut self, client: usize) {
        let player = &mut self.players[client];
        player.dialling = false;
        let at = self.links.len();
        player.link = Some(at);
        self.links.push(Link { client, ..Link::default() });
        self.server.connected(self.now, at);
        player.session.handle_connected(self.now);
        self.follow(client);
    }

    fn disconnected(&mut self, client: usize, reason: Option<DisconnectReason>) -> Result<(), String> {
        let player = &mut self.players[client];
        player.dialling = false;
        if let Some(link) = player.link.take().and_then(|at| self.links.get_mut(at)) {
            link.client_gone = true;
            link.down.clear();
        }
        player.session.handle_disconnected(self.now, reason.and_then(DisconnectReason::end));
        self.follow(client);
        self.check_end(client)
    }

    /// A message of the server reaches a client.
    fn hear(&mut self, client: usize, message: &FromServer) -> Result<(), String> {
        let (now, player) = (self.now, &mut self.players[client]);
        player.session.handle_heard(now);
        let logged_in = player.session.state() == SessionState::LoggedIn;
        match message {
            FromServer::LoginAccepted(accepted) => {
                player.session.handle_accepted(now, accepted);
                player.let_in(accepted);
            }
            FromServer::LoginRefused(refused) => player.session.handle_refused(*refused),
            FromServer::HeartbeatReply(reply) if logged_in => player.session.handle_heartbeat(now, reply),
            FromServer::CombatEvent(bytes) if logged_in => {
                player.session.log().receive();
                player.hear_event(client, bytes.first().copied().unwrap_or(0))?;
            }
            _ => {}
        }
        self.follow(client);
        self.check_end(client)
    }

    /// A session ends for good only for a reason.
    fn check_end(&self, client: usize) -> Result<(), String> {
        let player = &self.players[client];
        let SessionState::Failed(end) = player.session.state() else { return Ok(()) };
        let out = player.out.map_or(Duration::ZERO, |out| self.now.saturating_since(out));
        let rightly = match end {
            SessionEnd::Kicked => player.kicked,
            // Its own name, of a session that it has no token of any more: because it left, or has tried for long enough.
            // Or the thief was quicker: a guest's name belongs to nobody.
            SessionEnd::Refused(LoginRefused::NameTaken) => {
                player.returned || out >= GRACE || self.thefts > 0
            }
            _ => false,
        };
        if rightly { Ok(()) } else { Err(format!("client {client} failed: {end}")) }
    }

    /// Whether a client must look at the clock before time goes on.
    fn overdue(&self, client: usize) -> bool {
        let due = self.players[client].session.poll_timeout();
        due.is_some_and(|due| due + SECOND <= self.now)
    }

    fn due(&self, client: usize) -> bool {
        self.players[client].session.poll_timeout().is_some_and(|due| due <= self.now)
    }

    /// Keeps the server's state if it has sent something: its recording is written before.
    fn write(&mut self, before: usize) {
        if self.bounds.kills > 0 && self.links.iter().map(|link| link.down.len()).sum::<usize>() > before {
            self.written = self.server.as_written();
        }
    }

    fn kill(&mut self) {
        self.kills += 1;
        self.server = self.written.clone();
        self.server.recovered(self.now, &mut self.links);
        self.server.timed = self.now;
        self.written = self.server.as_written();
    }
}

fn send(links: &mut [Link], at: Option<usize>, message: FromClient) {
    if let Some(link) = at.and_then(|at| links.get_mut(at)).filter(|link| !link.cut && !link.server_gone) {
        link.up.push_back(message);
    }
}

impl Model for SessionModel {
    type Action = Action;

    fn actions(&self, into: &mut Vec<Action>) {
        let seconds = self.now.saturating_since(self.began);
        let in_time = (0..self.players.len()).all(|client| !self.overdue(client))
            && self.now.saturating_since(self.server.timed.max(self.began)) < SECOND * 2;
        if seconds < SECOND * u32::from(self.bounds.seconds) && in_time {
            into.push(Action::Second);
        }
        if self.server.timed.max(self.began) < self.now {
            into.push(Action::ServerTime);
        }
        for (at, link) in self.links.iter().enumerate() {
            if !link.up.is_empty() && !link.cut && !link.server_gone {
                into.push(Action::Up(at));
            }
            let current = self.is_current(at);
            if !link.down.is_empty() && current {
                into.push(Action::Down(at));
            }
            let nothing_to_lose = link.cut
                || (link.client_gone && link.up.is_empty())
                || (link.server_gone && link.down.is_empty());
            if !nothing_to_lose {
                into.push(Action::Cut(at));
            }
            if !link.server_gone && (link.cut || link.client_gone) {
                into.push(Action::ServerNotices(at));
            }
            if link.cut && current && !link.thief {
                into.push(Action::ClientNotices(at));
            }
        }
        for (client, player) in self.players.iter().enumerate() {
            if player.dialling {
                if self.links.len() < self.bounds.links {
                    into.push(Action::Made(client));
                }
                into.push(Action::NotMade(client));
            }
            if self.due(client) {
                into.push(Action::ClientTime(client));
            }
            let logged_in = player.session.state() == SessionState::LoggedIn;
            if logged_in && player.orders < self.bounds.orders {
                into.push(Action::Order(client));
            }
            let known = self.server.player_named(client).is_some();
            if known && self.server.said[client].events < self.bounds.events {
                into.push(Action::Event(client));
            }
            if self.wishes < self.bounds.wishes {
                if is_over(player.session.state()) {
                    into.push(Action::Return(client));
                } else {
                    into.push(Action::Leave(client));
                }
                if known {
                    into.push(Action::Kick(client));
                }
            }
        }
        if self.kills < self.bounds.kills {
            into.push(Action::Kill);
        }
        if self.thefts < self.bounds.thefts && self.links.len() < self.bounds.links {
            into.push(Action::StealName);
            if self.stolen.is_some() {
                into.push(Action::StealToken);
            }
        }
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        let (now, before) = (self.now, self.links.iter().map(|link| link.down.len()).sum());
        match action {
            Action::Second => self.now = now + SECOND,
            Action::Up(at) => {
                if let Some(message) = self.links[at].up.pop_front() {
                    self.server.hear(now, &mut self.links, at, &message, self.planted)?;
                }
            }
            Action::Down(at) => {
                let Link { client, thief, .. } = self.links[at];
                match self.links[at].down.pop_front() {
                    Some(Down::Message(FromServer::LoginAccepted(accepted))) if thief => {
                        self.stolen = Some((accepted.token, token_number(accepted.token)));
                    }
                    // The thief only listens.
                    _ if thief => {}
                    Some(Down::Message(message)) => self.hear(client, &message)?,
                    Some(Down::Closed(reason)) => self.disconnected(client, Some(reason))?,
                    None => {}
                }
                return Ok(());
            }
            Action::Cut(at) => {
                let link = &mut self.links[at];
                link.cut = true;
                link.up.clear();
                link.down.clear();
            }
            Action::ServerNotices(at) => self.server.gone(now, &mut self.links, at),
            Action::ClientNotices(at) => self.disconnected(self.links[at].client, None)?,
            Action::Made(client) => self.connected(client),
            Action::NotMade(client) => self.disconnected(client, None)?,
            Action::ClientTime(client) => {
                self.players[client].session.handle_timeout(now);
                self.follow(client);
                self.check_end(client)?;
            }
            Action::ServerTime => self.server.expire(now, &mut self.links)?,
            Action::Event(client) => {
                if let Some(player) = self.server.player_named(client) {
                    self.server.tell(now, &mut self.links, player, client)?;
                }
            }
            Action::Order(client) => {
                let player = &mut self.players[client];
                let order = [player.orders + 1];
                // As `Client::order` does: what does not fit is refused, and nothing else happens.
                if player.session.log().has_room_for(order.len()) && player.session.log().push(&order).is_ok()
                {
                    player.orders += 1;
                }
                self.follow(client);
            }
            Action::Leave(client) => {
                self.wishes += 1;
                self.players[client].session.logout();
                self.follow(client);
            }
            Action::Return(client) => self.come(client),
            Action::Kick(client) => {
                self.wishes += 1;
                if let Some(player) = self.server.player_named(client) {
                    self.players[client].kicked = true;
                    self.server.kick(now, &mut self.links, player)?;
                }
            }
            Action::Kill => self.kill(),
            Action::StealName => self.steal(None),
            Action::StealToken => self.steal(self.stolen.map(|(token, _)| token)),
        }
        self.write(before);
        self.server.check(&self.links)
    }

    fn kindly(&self) -> Option<Action> {
        for (at, link) in self.links.iter().enumerate() {
            let current = self.is_current(at);
            if !link.up.is_empty() && !link.cut && !link.server_gone {
                return Some(Action::Up(at));
            }
            if !link.down.is_empty() && current {
                return Some(Action::Down(at));
            }
            if !link.server_gone && (link.cut || link.client_gone) {
                return Some(Action::ServerNotices(at));
            }
            if link.cut && current && !link.thief {
                return Some(Action::ClientNotices(at));
            }
        }
        for (client, player) in self.players.iter().enumerate() {
            if player.dialling {
                return Some(Action::Made(client));
            }
            if self.due(client) {
                return Some(Action::ClientTime(client));
            }
            // A person waits a moment before trying again.
            if is_over(player.session.state()) && player.tried < self.now {
                return Some(Action::Return(client));
            }
        }
        if self.server.timed.max(self.began) < self.now {
            return Some(Action::ServerTime);
        }
        let all_in = self.players.iter().all(|player| player.session.state() == SessionState::LoggedIn);
        (!all_in).then_some(Action::Second)
    }

    fn settled(&self) -> Result<(), String> {
        for (client, (player, said)) in self.players.iter().zip(&self.server.said).enumerate() {
            if player.events < said.events && said.events > said.events_excused {
                return Err(format!("client {client} never hears event {}", player.events + 1));
            }
            if said.orders < player.orders && player.orders > player.orders_excused {
                return Err(format!("order {} of client {client} is never heard", said.orders + 1));
            }
        }
        Ok(())
    }

    fn fingerprint(&self) -> u128 {
        let mut hash = Fingerprint::new(self.now);
        // How much may still happen is part of where one is.
        let left = self.now.saturating_since(self.began).min(SECOND * u32::from(self.bounds.seconds));
        let stolen = self.stolen.map(|(_, number)| number);
        hash.add(&(left.as_secs(), self.wishes, self.kills, self.thefts, stolen));
        hash.add(&self.players);
        hash.add(&self.server);
        for link in &self.links {
            hash.add(link);
            link.add_tokens(&mut hash);
        }
        if self.bounds.kills > self.kills {
            hash.add(&self.written);
        }
        hash.finish()
    }
}

impl SessionModel {
    /// Whether a client or the thief still reads that connection.
    fn is_current(&self, at: usize) -> bool {
        let link = &self.links[at];
        link.thief || self.players[link.client].link == Some(at)
    }

    /// The thief connects, and logs in as client 0. It says nothing else, and waits on its connection until that is cut.
    fn steal(&mut self, token: Option<Token>) {
        self.thefts += 1;
        let login = Login {
            protocol: PROTOCOL,
            shared: SHARED,
            name: PlayerName::new("0").expect("a number is a name"),
            resume: token.map(|token| Resume { token, received: Some(0) }),
            credentials: None,
        };
        let up = [FromClient::Login(login)].into();
        self.server.connected(self.now, self.links.len());
        self.links.push(Link { thief: true, up, ..Link::default() });
    }

    fn come(&mut self, client: usize) {
        self.wishes = self.wishes.saturating_add(1);
        let now = self.now;
        let player = &mut self.players[client];
        player.session.connect(now);
        (player.token, player.tried, player.out, player.kicked) = (None, now, Some(now), false);
        player.returned = true;
        (player.orders_excused, player.events_gap) = (player.orders, true);
        self.follow(client);
    }
}
