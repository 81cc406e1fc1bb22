//! The server's side of every session: connections, logins, the reliable lane, timeouts and closes.
//!
//! ```text
//!   handle_connected, handle_stream, handle_datagram, handle_disconnected, handle_timeout
//!        │
//!        ▼
//!   Connection: frames in, lane router, bytes out ◄────► SessionTable: players and their ReliableLogs
//!        │                                                     ▲
//!        ▼                                                     │
//!   SessionEvent: login, order, input, leave ...       log_in, send, tell, remove, drain, stop
//!   poll_stream, poll_close
//! ```
//!
//! Never touches a game, a body or a tick. [`crate::server::Server`] acts on the events for a game; the lab's model
//! checker explores this very type.

mod config;
mod connection;
mod event;
mod recovery;
mod sending;
mod sync;
#[cfg(test)]
mod tests;

use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

pub use config::{SessionServerConfig, SessionStats};
pub use event::SessionEvent;

use crate::error::ConfigError;
use crate::id::{PlayerId, PlayerName, Token};
use crate::lane::{LaneRouter, SyncLink};
use crate::session::server::connection::{Connection, Peer};
use crate::session::server::sending::closing;
use crate::session::{ConnectionId, DisconnectReason, LetIn, SessionTable};
use crate::time::Timestamp;
use crate::wire::control::{FromClient, FromServer, Heartbeat, Login, LoginRefused};

/// Every connection and session of a room, without the game.
///
/// Call `handle_*` for the network, verbs for the host, and drain `poll_*` after each call. Take every
/// [`SessionEvent`] before the next call: an event describes the sessions as they are now. `now` must not go back.
///
/// ```
/// use halftrack::session::{ConnectionId, SessionEvent, SessionServer, SessionServerConfig};
/// use halftrack::wire::control::{FromClient, FromServer, Login, PROTOCOL};
/// use halftrack::{PlayerName, SyncLink, Timestamp, Token};
///
/// let now = Timestamp::ZERO;
/// let mut sessions = SessionServer::new(SessionServerConfig::new(7))?;
/// let connection = ConnectionId::new(1);
/// sessions.handle_connected(now, connection, SyncLink::Absent, Token::new([1; 16]));
/// let name = PlayerName::new("Ada")?;
/// let login = Login { protocol: PROTOCOL, shared: 7, name, resume: None, credentials: None };
/// let mut stream = vec![];
/// assert!(FromClient::Login(login).append_to(&mut stream));
/// let mut bytes = stream.as_slice();
/// while let Some(event) = sessions.handle_stream(now, connection, &mut bytes) {
///     let SessionEvent::LoginRequested { connection, login } = event else { continue };
///     if let Some(let_in) = sessions.log_in(now, connection, &login) {
///         sessions.send(now, connection, &FromServer::LoginAccepted(let_in.accepted));
///         sessions.finish_login(now, let_in.accepted.player);
///     }
/// }
/// assert_eq!(sessions.players().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SessionServer {
    config: SessionServerConfig,
    table: SessionTable,
    connections: BTreeMap<ConnectionId, Connection>,
    phase: Phase,
    closes: VecDeque<ConnectionId>,
    events: VecDeque<SessionEvent>,
    stats: SessionStats,
    /// Scratch for encoding a message.
    frames: Vec<u8>,
}

/// Whether new players are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Only resumes are let in, and the server stops by then.
    Draining {
        until: Timestamp,
    },
    Stopped,
}

/// Shows the state that later behaviour depends on: two servers with one config and equal text behave alike. Counters
/// and tokens are left out.
impl fmt::Debug for SessionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config: _, table, connections, phase, closes, events, stats: _, frames: _ } = self;
        let state = (table, connections, phase, closes, events);
        f.debug_tuple("SessionServer").field(&state).finish()
    }
}

/// The network.
impl SessionServer {
    /// A server without connections.
    ///
    /// # Errors
    /// When a field of `config` is out of its range.
    pub fn new(config: SessionServerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            table: SessionTable::new(config.table)?,
            config,
            connections: BTreeMap::new(),
            phase: Phase::Serving,
            closes: VecDeque::new(),
            events: VecDeque::new(),
            stats: SessionStats::default(),
            frames: Vec::new(),
        })
    }

    /// A peer connected. `token` must be fresh and impossible to guess: a session that begins here gets it.
    pub fn handle_connected(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        sync_link: SyncLink,
        token: Token,
    ) {
        let router = LaneRouter::new(self.config.policy, sync_link);
        let open = Connection::new(router, token, now + self.config.login);
        let known = self.connections.insert(connection, open);
        debug_assert!(known.is_none(), "the number of a connection is not used again");
        if self.is_stopped() {
            self.close(now, connection, DisconnectReason::Stopped);
        } else if self.connections.len() > self.config.max_connections {
            self.stats.too_many_connections += 1;
            self.close(now, connection, DisconnectReason::TooMany);
        }
    }

    /// Bytes of a peer's reliable stream arrived. Reads messages off the front of `bytes` until one causes an event.
    /// Act on the event and call again, until there is none and `bytes` is used up.
    pub fn handle_stream(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        bytes: &mut &[u8],
    ) -> Option<SessionEvent> {
        loop {
            // A message is read after the events of the one before it: they may close the connection.
            if let Some(event) = self.poll_event() {
                return Some(event);
            }
            let open = self.connections.get_mut(&connection).filter(|open| open.closing.is_none())?;
            let message = match open.reader.next(bytes) {
                Ok(None) => return None,
                Ok(Some(frame)) => FromClient::read(frame),
                Err(error) => Err(error),
            };
            match message {
                Ok(message) => self.receive(now, connection, message),
                Err(_) => self.refuse_malformed(now, connection),
            }
        }
    }

    fn receive(&mut self, now: Timestamp, connection: ConnectionId, message: FromClient) {
        let Some(player) = self.player_of(connection) else {
            match message {
                FromClient::Login(login) => {
                    self.events
                        .push_back(SessionEvent::LoginRequested { connection, login: Box::new(login) });
                }
                // Connected is not logged in.
                // spec: SERVER-03
                _ => self.refuse_malformed(now, connection),
            }
            return;
        };
        self.hear_of(now, player);
        self.hear_sign_of_life(now, connection);
        match message {
            FromClient::SyncHeard(heard) => self.take_sync_heard(connection, heard),
            FromClient::Login(_) => self.refuse_malformed(now, connection),
            FromClient::Logout(()) => self.remove(player, DisconnectReason::LoggedOut),
            FromClient::Heartbeat(heartbeat) => self.acknowledge(now, connection, player, heartbeat),
            FromClient::ShootInput(bytes) => {
                self.count_order(player);
                self.events.push_back(SessionEvent::Order { connection, player, bytes });
            }
            FromClient::MoveInput(bytes) => self.events.push_back(SessionEvent::Input { player, bytes }),
            FromClient::Report(report) => self.events.push_back(SessionEvent::Reported { player, report }),
        }
    }

    /// A message of `player` arrived. The first one of a session confirms it.
    fn hear_of(&mut self, now: Timestamp, player: PlayerId) {
        if self.table.heard(now, player) {
            self.events.push_back(SessionEvent::Confirmed { player });
        }
    }

    fn acknowledge(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        player: PlayerId,
        heartbeat: Heartbeat,
    ) {
        let Heartbeat { sent_micros, received, .. } = heartbeat;
        let Some(session) = self.table.get_mut(player) else { return };
        let (received_before, first) = (session.log().acknowledged(), session.log().is_unknown());
        if session.log().acknowledge(received).is_err() {
            self.refuse_malformed(now, connection);
            return;
        }
        let event =
            SessionEvent::Heartbeat { connection, player, sent_micros, received, received_before, first };
        self.events.push_back(event);
    }

    /// A peer is gone. Its player may resume within the grace.
    pub fn handle_disconnected(&mut self, now: Timestamp, connection: ConnectionId) {
        if let Some(player) = self.connections.remove(&connection).and_then(|open| open.player()) {
            self.table.disconnected(now, connection);
            self.events.push_back(SessionEvent::Away { player });
        }
        self.closes.retain(|closing| *closing != connection);
    }

    /// Time has passed. Closes connections that are silent or did not log in, and removes players whose grace is over.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let expired = self.table.handle_timeout(now);
        for connection in expired.connections {
            self.close(now, connection, DisconnectReason::Silent);
        }
        self.events.extend(expired.players.into_iter().map(|player| SessionEvent::Left { player }));
        let late = self.connections.iter().filter(|(_, open)| open.misses_login(now));
        let late: Vec<_> = late.map(|(connection, _)| *connection).collect();
        for connection in late {
            self.close(now, connection, DisconnectReason::LoginTimeout);
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// Appends the bytes for the reliable stream of `connection` to `into`. Returns whether there were any.
    pub fn poll_stream(&mut self, connection: ConnectionId, into: &mut Vec<u8>) -> bool {
        self.poll_peer(connection, into).0
    }

    /// The same, and the player and router of the connection.
    pub(crate) fn poll_peer(
        &mut self,
        connection: ConnectionId,
        into: &mut Vec<u8>,
    ) -> (bool, Option<(PlayerId, LaneRouter)>) {
        let Some(open) = self.connections.get_mut(&connection) else { return (false, None) };
        (open.take_out(into), open.player().map(|player| (player, open.router)))
    }

    /// A connection to close, and the reason: each once. Write the bytes that [`Self::poll_stream`] still has for it,
    /// close it, then call [`Self::handle_closed`].
    pub fn poll_close(&mut self) -> Option<(ConnectionId, DisconnectReason)> {
        let closing = |connection| self.connections.get(&connection)?.closing;
        core::iter::from_fn(|| self.closes.pop_front())
            .find_map(|connection| Some((connection, closing(connection)?)))
    }

    /// A connection of [`Self::poll_close`] has been closed.
    pub fn handle_closed(&mut self, connection: ConnectionId) {
        if self.connections.get(&connection).is_some_and(|open| open.closing.is_some()) {
            self.connections.remove(&connection);
            self.closes.retain(|closing| *closing != connection);
        }
    }
}

/// The host.
impl SessionServer {
    /// Lets a peer in, after [`SessionEvent::LoginRequested`] and a check of its credentials. `None` when the sessions
    /// refuse it: the peer hears of that. Otherwise take the events, for the player may have been connected elsewhere,
    /// send [`LetIn::accepted`] and the game's greeting, and call [`Self::finish_login`].
    pub fn log_in(&mut self, now: Timestamp, connection: ConnectionId, login: &Login) -> Option<LetIn> {
        let open = self.connections.get(&connection).filter(|open| open.closing.is_none())?;
        let Peer::LoggingIn { token, .. } = open.peer else { return None };
        let let_in = match self.table.login(now, connection, login, token) {
            Ok(let_in) => let_in,
            Err(refused) => {
                self.refuse(now, connection, refused);
                return None;
            }
        };
        if let Some(old) = let_in.superseded {
            self.close(now, old, DisconnectReason::Superseded);
        }
        if let Some(player) = let_in.replaced {
            self.events.push_back(SessionEvent::Left { player });
        }
        self.stats.logins += 1;
        if let Some(open) = self.connections.get_mut(&connection) {
            open.peer = Peer::LoggedIn(let_in.accepted.player);
        }
        self.watch_datagrams(now, connection);
        Some(let_in)
    }

    /// Refuses a login, says why, and closes the connection.
    pub fn refuse(&mut self, now: Timestamp, connection: ConnectionId, refused: LoginRefused) {
        self.stats.refused += 1;
        self.send(now, connection, &FromServer::LoginRefused(refused));
        self.close(now, connection, DisconnectReason::Refused);
    }

    /// Closes a connection that broke the protocol. Its player is removed at once: the client will not come back, and
    /// the body would stand around until the grace is over.
    pub fn refuse_malformed(&mut self, now: Timestamp, connection: ConnectionId) {
        self.stats.malformed_streams += 1;
        match self.player_of(connection) {
            Some(player) => self.remove(player, DisconnectReason::Malformed),
            None => self.close(now, connection, DisconnectReason::Malformed),
        }
    }

    /// Removes a player for good, and closes its connection, if it has one, for `reason`.
    pub fn remove(&mut self, player: PlayerId, reason: DisconnectReason) {
        if let Some(session) = self.table.remove(player) {
            session.connection().map(|connection| self.mark_closing(connection, reason));
            self.events.push_back(SessionEvent::Left { player });
        }
    }

    /// Lets only resumes in from now on, and warns all players that the room ends within this time. Call
    /// [`Self::stop`] to end it.
    pub fn drain(&mut self, now: Timestamp, within: Duration) {
        if self.phase == Phase::Serving {
            let until = now + within;
            self.phase = Phase::Draining { until };
            self.table.close();
            let connected: Vec<_> =
                self.table.players().filter_map(|(_, session)| session.connection()).collect();
            for connection in connected {
                self.send(now, connection, &closing(now, until));
            }
        }
    }

    /// Closes every connection, and lets nobody in any more.
    pub fn stop(&mut self, now: Timestamp) {
        self.phase = Phase::Stopped;
        self.table.close();
        let open: Vec<_> = self.connections.keys().copied().collect();
        for connection in open {
            self.close(now, connection, DisconnectReason::Stopped);
        }
    }

    /// Closes a connection. Its player may resume within the grace.
    fn close(&mut self, now: Timestamp, connection: ConnectionId, reason: DisconnectReason) {
        if let Some(player) = self.mark_closing(connection, reason) {
            self.table.disconnected(now, connection);
            self.events.push_back(SessionEvent::Away { player });
        }
    }

    /// Queues a connection to be closed. Returns its player.
    fn mark_closing(&mut self, connection: ConnectionId, reason: DisconnectReason) -> Option<PlayerId> {
        let open = self.connections.get_mut(&connection).filter(|open| open.closing.is_none())?;
        let player = open.player();
        open.closing = Some(reason);
        self.closes.push_back(connection);
        player
    }
}

/// Questions.
impl SessionServer {
    /// Whether new players are let in.
    pub fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }

    /// Whether [`Self::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// All connections, those to be closed included.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.connections.keys().copied()
    }

    /// The links of a connection.
    pub fn router(&self, connection: ConnectionId) -> Option<LaneRouter> {
        self.connections.get(&connection).map(|open| open.router)
    }

    /// The player behind a connection. `None` once it is to be closed.
    pub fn player_of(&self, connection: ConnectionId) -> Option<PlayerId> {
        self.connections.get(&connection)?.player()
    }

    /// The player behind a connection, and its links, in one lookup: the host asks once per datagram.
    pub(crate) fn peer(&self, connection: ConnectionId) -> Option<(PlayerId, LaneRouter)> {
        let open = self.connections.get(&connection)?;
        Some((open.player()?, open.router))
    }

    /// The connection of a player. `None` while it is away.
    pub fn connection_of(&self, player: PlayerId) -> Option<ConnectionId> {
        self.table.get(player)?.connection()
    }

    /// The player whose session `login` would resume.
    pub fn resumes(&self, login: &Login) -> Option<PlayerId> {
        self.table.resumes(login)
    }

    /// All players and their names, those who are away included.
    pub fn players(&self) -> impl Iterator<Item = (PlayerId, &PlayerName)> {
        self.table.players().map(|(player, session)| (player, session.name()))
    }

    /// The name of a player.
    pub fn name(&self, player: PlayerId) -> Option<&PlayerName> {
        Some(self.table.get(player)?.name())
    }

    /// Whether there are no players, not even one that is away.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The counters.
    pub fn stats(&self) -> SessionStats {
        self.stats
    }
}
