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
    /// Bytes of them. Default 64 KiB. From 1 to 16 MiB.
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
        count_within("table.max_log_bytes", self.max_log_bytes, 1, 16 << 20)
    }
}

/// One player's session.
#[derive(Clone, Debug)]
pub struct Session {
    name: PlayerName,
    token: Token,
    log: ReliableLog,
    presence: Presence,
    /// Something was heard of the player since it was let in for the first time: it knows that it was.
    heard_of: bool,
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
        let by_token = login.resume.and_then(|resume| self.player_with(resume.token));
        // spec: SESSION-11
        let Some(player) = by_token.or_else(|| self.player_unaware(&login.name)) else {
            let begins = login.resume.map_or(Continuity::New, |_| Continuity::Restarted(Restart::Unknown));
            return self.let_in(now, connection, login, token, begins);
        };
        let session = self.sessions.get_mut(&player).ok_or(LoginRefused::Full)?;
        // The newest connection wins: whoever holds the token is the player.
        // spec: SESSION-07
        let superseded = session.connection().filter(|old| *old != connection);
        let resumed = login.resume.filter(|_| by_token.is_some() && !session.rewound);
        let continuity = match resumed.map(|resume| session.log.resume(resume.received)) {
            Some(Ok(())) => Continuity::Resumed { received: session.log.received() },
            _ => {
                // The answer may be lost: until the player is heard of, nobody knows of the new numbers.
                session.log =
                    ReliableLog::numbered_anew(self.config.max_log_messages, self.config.max_log_bytes);
                let rewound = core::mem::take(&mut session.rewound);
                Continuity::Restarted(if rewound { Restart::Rewound } else { Restart::Overflow })
            }
        };
        session.presence = Presence::Here { connection, heard: now };
        // The token stays: a new one could be lost with the very answer that brings it, and the player with it.
        let accepted = LoginAccepted { player, token: session.token, continuity };
        Ok(LetIn { accepted, superseded })
    }

    fn player_with(&self, token: Token) -> Option<PlayerId> {
        self.sessions.iter().find(|(_, session)| session.token == token).map(|(player, _)| *player)
    }

    /// Whoever was let in by that name, was cut, and never said a word: the answer may have been lost on its way, and
    /// the token with it. The name must do, or the player would find it taken by itself.
    fn player_unaware(&self, name: &PlayerName) -> Option<PlayerId> {
        let unaware =
            |session: &Session| session.name == *name && !session.heard_of && session.connection().is_none();
        self.sessions.iter().find(|(_, session)| unaware(session)).map(|(player, _)| *player)
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
        if self.sessions.values().any(|session| session.name == login.name) {
            return Err(LoginRefused::NameTaken);
        }
        if self.sessions.len() >= self.config.capacity {
            return Err(LoginRefused::Full);
        }
        let player = self.free_player().ok_or(LoginRefused::Full)?;
        let session = Session {
            name: login.name.clone(),
            token,
            log: ReliableLog::new(self.config.max_log_messages, self.config.max_log_bytes),
            presence: Presence::Here { connection, heard: now },
            heard_of: false,
            rewound: false,
        };
        self.sessions.insert(player, session);
        Ok(LetIn { accepted: LoginAccepted { player, token, continuity }, superseded: None })
    }

    /// A session as it was before the server came back, without a connection.
    pub(crate) fn restore(&mut self, now: Timestamp, player: PlayerId, name: PlayerName, token: Token) {
        let log = ReliableLog::new(self.config.max_log_messages, self.config.max_log_bytes);
        let presence = Presence::Away { since: now };
        // Its token must be good for something: the name alone is not enough any more.
        let session = Session { name, token, log, presence, heard_of: true, rewound: false };
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

    /// Something came from that player.
    pub fn heard(&mut self, now: Timestamp, player: PlayerId) {
        if let Some(Session { presence: Presence::Here { heard, .. }, heard_of, .. }) =
            self.sessions.get_mut(&player)
        {
            *heard = now.max(*heard);
            *heard_of = true;
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
