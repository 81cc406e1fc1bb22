//! The sessions of a room, as the server keeps them: who is in, by which connection, and who may come back.
//!
//! Knows connections by the numbers that the host gives them; has neither clock nor dice.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::error::{ConfigError, count_within, time_within};
use crate::id::{PlayerId, PlayerName, Token};
use crate::session::ReliableLog;
use crate::time::Timestamp;
use crate::wire::control::{Continuity, Login, LoginAccepted, LoginRefused, PROTOCOL, Restart};

/// A connection, numbered by the host; a number is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// Connection `number`.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// What a [`SessionTable`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableConfig {
    /// Players at most, those who may come back included. Default 100. From 1 to 32,768, half of the numbers there are:
    /// one is then not used again at once.
    pub capacity: usize,
    /// A hash of everything that both ends must share.
    pub shared: u64,
    /// How long a player who was cut may come back. Default 30 s: a tunnel, a changed network, a restarted page. Zero is
    /// not at all; at most 1 h.
    pub grace: Duration,
    /// After so long without a word a connection is taken for cut. Default 6 s: longer than the client's own, so that
    /// the client is the one that comes back. From 100 ms to 1 h.
    pub silence: Duration,
    /// Reliable game messages kept for each player. Default 1,024. From 1 to 65,536.
    pub max_log_messages: usize,
    /// Bytes of them. Default 64 KiB. From 16,396, four of the longest messages, to 16 MiB.
    pub max_log_bytes: usize,
}

impl TableConfig {
    /// The defaults, for rules of this hash.
    pub const fn new(shared: u64) -> Self {
        Self {
            capacity: 100,
            shared,
            grace: Duration::from_secs(30),
            silence: Duration::from_secs(6),
            max_log_messages: 1_024,
            max_log_bytes: 64 * 1_024,
        }
    }
}

impl TableConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let hour = Duration::from_secs(3_600);
        count_within("table.capacity", self.capacity, 1, 32_768)?;
        time_within("table.grace", self.grace, Duration::ZERO, hour)?;
        time_within("table.silence", self.silence, Duration::from_millis(100), hour)?;
        count_within("table.max_log_messages", self.max_log_messages, 1, 65_536)?;
        count_within("table.max_log_bytes", self.max_log_bytes, ReliableLog::MIN_BYTES, 16 << 20)
    }
}

/// One player's session.
#[derive(Clone, Debug)]
pub struct Session {
    name: PlayerName,
    token: Token,
    log: ReliableLog,
    presence: Presence,
    /// A message of this session has arrived, so its client has the token.
    confirmed: bool,
    /// Messages that it was sent are lost, and others will have their numbers.
    rewound: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Here { connection: ConnectionId, heard: Timestamp },
    Away { since: Timestamp },
}

impl Session {
    /// What the player is called.
    pub fn name(&self) -> &PlayerName {
        &self.name
    }

    /// Reliable game messages, in both directions.
    pub fn log(&mut self) -> &mut ReliableLog {
        &mut self.log
    }

    /// The connection it has, unless it is cut.
    pub fn connection(&self) -> Option<ConnectionId> {
        match self.presence {
            Presence::Here { connection, .. } => Some(connection),
            Presence::Away { .. } => None,
        }
    }
}

/// What a login came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetIn {
    /// What the client is told.
    pub accepted: LoginAccepted,
    /// The connection that the player had before: to be closed as superseded.
    pub superseded: Option<ConnectionId>,
    /// This login is the first sign that the session's client has its token.
    pub confirms: bool,
    /// The player of an unconfirmed session of the same name. The session and its token are gone; its body is to go too.
    pub replaced: Option<PlayerId>,
}

/// Every session of a room.
#[derive(Clone, Debug)]
pub struct SessionTable {
    config: TableConfig,
    sessions: BTreeMap<PlayerId, Session>,
    next_player: u16,
    closed: bool,
}

impl SessionTable {
    /// A table without sessions.
    ///
    /// # Errors
    /// When a field of `config` is out of its range.
    pub fn new(config: TableConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config, sessions: BTreeMap::new(), next_player: 0, closed: false })
    }

    /// Somebody wants in, by `connection`. `token` is a fresh one that nobody can guess, for a new session;
    /// credentials are the host's business, and have been checked.
    ///
    /// # Errors
    /// Why not. The connection is to be told, and closed; no other session is touched.
    pub fn login(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        login: &Login,
        token: Token,
    ) -> Result<LetIn, LoginRefused> {
        if login.protocol != PROTOCOL {
            return Err(LoginRefused::Protocol { server: PROTOCOL });
        }
        if login.shared != self.config.shared {
            return Err(LoginRefused::Rules);
        }
        let Some((player, resume)) = self.resumes(login).zip(login.resume) else {
            let begins = login.resume.map_or(Continuity::New, |_| Continuity::Restarted(Restart::Unknown));
            return self.let_in(now, connection, login, token, begins);
        };
        let session = self.sessions.get_mut(&player).ok_or(LoginRefused::Full)?;
        // The newest connection wins: whoever holds the token is the player.
        // spec: SESSION-07
        let superseded = session.connection().filter(|old| *old != connection);
        let goes_on = |received| !session.rewound && session.log.resume(received).is_ok();
        let resumed = resume.received.is_some_and(goes_on);
        let continuity = if resumed {
            Continuity::Resumed { received: session.log.received() }
        } else {
            // The answer may be lost: until the player is heard of, nobody knows of the new numbers.
            session.log = ReliableLog::numbered_anew(self.config.max_log_messages, self.config.max_log_bytes);
            // spec: SESSION-13
            Continuity::Restarted(match (core::mem::take(&mut session.rewound), resume.received) {
                (true, _) => Restart::Rewound,
                (false, None) => Restart::Reclaimed,
                (false, Some(_)) => Restart::Overflow,
            })
        };
        session.presence = Presence::Here { connection, heard: now };
        let confirms = !core::mem::replace(&mut session.confirmed, true);
        // The token stays: a new one could be lost with the very answer that brings it, and the player with it.
        let accepted = LoginAccepted { player, token: session.token, continuity };
        Ok(LetIn { accepted, superseded, confirms, replaced: None })
    }

    /// The hash of everything that both ends share.
    pub(crate) fn shared(&self) -> u64 {
        self.config.shared
    }

    /// The player whose session `login` takes up again: it holds that session's token, and comes by the same name.
    pub fn resumes(&self, login: &Login) -> Option<PlayerId> {
        let token = login.resume?.token;
        let holds = |session: &Session| session.token == token && session.name == login.name;
        self.sessions.iter().find(|(_, session)| holds(session)).map(|(player, _)| *player)
    }

    fn let_in(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        login: &Login,
        token: Token,
        continuity: Continuity,
    ) -> Result<LetIn, LoginRefused> {
        if self.closed {
            return Err(LoginRefused::Draining);
        }
        let namesake = self.sessions.iter().find(|(_, session)| session.name == login.name);
        // Its client may never have had the answer, and the token with it: the name alone must do. The session ends and a
        // new one begins, with a fresh token. Were it handed on, anybody could log in by a name, keep the token, and take
        // over the player who comes by that name next.
        // spec: SESSION-11, SESSION-12
        let replaced = match namesake {
            Some((player, session)) if !session.confirmed && session.connection().is_none() => Some(*player),
            Some(_) => return Err(LoginRefused::NameTaken),
            None => None,
        };
        if replaced.is_none() && self.sessions.len() >= self.config.capacity {
            return Err(LoginRefused::Full);
        }
        let player = self.free_player().ok_or(LoginRefused::Full)?;
        replaced.and_then(|replaced| self.sessions.remove(&replaced));
        let session = Session {
            name: login.name.clone(),
            token,
            log: ReliableLog::new(self.config.max_log_messages, self.config.max_log_bytes),
            presence: Presence::Here { connection, heard: now },
            confirmed: false,
            rewound: false,
        };
        self.sessions.insert(player, session);
        let accepted = LoginAccepted { player, token, continuity };
        Ok(LetIn { accepted, superseded: None, confirms: false, replaced })
    }

    /// A session as it was before the server came back, without a connection.
    pub(crate) fn restore(&mut self, now: Timestamp, player: PlayerId, name: PlayerName, token: Token) {
        let log = ReliableLog::new(self.config.max_log_messages, self.config.max_log_bytes);
        let presence = Presence::Away { since: now };
        let session = Session { name, token, log, presence, confirmed: false, rewound: false };
        self.sessions.insert(player, session);
        self.next_player = player.number().wrapping_add(1);
    }

    /// Messages of that player are numbered anew.
    pub(crate) fn restart(&mut self, player: PlayerId) {
        if let Some(session) = self.sessions.get_mut(&player) {
            session.log = ReliableLog::numbered_anew(self.config.max_log_messages, self.config.max_log_bytes);
        }
    }

    /// The server came back: nobody has a connection; `rewound` when messages that were sent are lost.
    pub(crate) fn all_away(&mut self, now: Timestamp, rewound: bool) {
        for session in self.sessions.values_mut() {
            (session.presence, session.rewound) = (Presence::Away { since: now }, rewound);
        }
    }

    /// Nobody new is let in any more; those who were cut may still come back.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Numbers go round, so that one is not used again for as long as can be.
    fn free_player(&mut self) -> Option<PlayerId> {
        for _ in 0..=u16::MAX {
            let player = PlayerId::new(self.next_player);
            self.next_player = self.next_player.wrapping_add(1);
            if !self.sessions.contains_key(&player) {
                return Some(player);
            }
        }
        None
    }

    /// Whose connection that is. What comes by it is that player's, whatever it claims.
    pub fn player_of(&self, connection: ConnectionId) -> Option<PlayerId> {
        self.sessions
            .iter()
            .find(|(_, session)| session.connection() == Some(connection))
            .map(|(player, _)| *player)
    }

    /// A message of that player has arrived. Gives whether it is the first of its session: its client has the token.
    pub fn heard(&mut self, now: Timestamp, player: PlayerId) -> bool {
        match self.sessions.get_mut(&player) {
            Some(Session { presence: Presence::Here { heard, .. }, confirmed, .. }) => {
                *heard = now.max(*heard);
                !core::mem::replace(confirmed, true)
            }
            _ => false,
        }
    }

    /// A message of that player had arrived before the server came back.
    pub(crate) fn confirm(&mut self, player: PlayerId) {
        if let Some(session) = self.sessions.get_mut(&player) {
            session.confirmed = true;
        }
    }

    /// That connection is gone. Its player may come back, for a while.
    pub fn disconnected(&mut self, now: Timestamp, connection: ConnectionId) {
        for session in self.sessions.values_mut().filter(|session| session.connection() == Some(connection)) {
            session.presence = Presence::Away { since: now };
        }
    }

    /// A player leaves for good, or is made to.
    pub fn remove(&mut self, player: PlayerId) -> Option<Session> {
        self.sessions.remove(&player)
    }

    /// Time has passed: connections that have been silent for too long, to be closed, and players who have been away
    /// for too long, who are gone.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Expired {
        let mut expired = Expired::default();
        let TableConfig { silence, grace, .. } = self.config;
        for (player, session) in &mut self.sessions {
            match session.presence {
                Presence::Here { connection, heard } if now >= heard + silence => {
                    expired.connections.push(connection);
                    session.presence = Presence::Away { since: now };
                }
                Presence::Away { since } if now >= since + grace => expired.players.push(*player),
                _ => {}
            }
        }
        for player in &expired.players {
            self.sessions.remove(player);
        }
        expired
    }

    /// A player's session.
    pub fn get(&self, player: PlayerId) -> Option<&Session> {
        self.sessions.get(&player)
    }

    /// A player's session.
    pub fn get_mut(&mut self, player: PlayerId) -> Option<&mut Session> {
        self.sessions.get_mut(&player)
    }

    /// How many players there are, those who may come back included.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Players, those who may come back included.
    pub fn players(&self) -> impl Iterator<Item = (PlayerId, &Session)> {
        self.sessions.iter().map(|(player, session)| (*player, session))
    }
}

/// What time has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Connections to be closed.
    pub connections: Vec<ConnectionId>,
    /// Players who are gone.
    pub players: Vec<PlayerId>,
}
