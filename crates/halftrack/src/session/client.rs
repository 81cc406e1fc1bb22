//! One session as the client lives it: connecting, logging in, staying, being cut and coming back.
//!
//! Knows connections only by what it is told of them, and nothing of game, clock or ticks.
//!
//! ```text
//!            connect()          connected            accepted
//!   Idle ──────────────► Connecting ────► LoginPending ────► LoggedIn ──── logout() ──► LoggedOut
//!                          ▲    │              │  │             │
//!                 it is    │    │ failed       │  │ refused     │ cut, or silent for too long
//!                 time     │    ▼              │  ▼             │
//!                       Reconnecting ◄─────────┘ Failed ◄───────┘ closed for good
//!                          │
//!                          └── for longer than the grace ──► TimedOut
//! ```

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::error::{ConfigError, count_within, time_within};
use crate::id::{PlayerId, PlayerName, Token};
use crate::saved::Unrestorable;
use crate::session::ReliableLog;
use crate::session::log::SavedLog;
use crate::time::{Timestamp, whole_micros};
use crate::wire::control::{
    Continuity, FromClient, Heartbeat, HeartbeatReply, Login, LoginAccepted, LoginRefused, PROTOCOL, Restart,
    Resume,
};

/// What a [`ClientSession`] is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// What the player is called.
    pub name: PlayerName,
    /// What the host asks for, if it does. At most 3,900 bytes: a login is one frame.
    pub credentials: Option<String>,
    /// A token that an earlier process of this player has saved: see [`ClientSession::resume_token`]. Within the server's
    /// grace it brings the player and its body back at once, also while the server has not noticed yet that the earlier
    /// process is gone. When the server does not know it, the login goes on as a new one. Default none.
    pub resume: Option<Token>,
    /// A hash of everything that both ends must share.
    pub shared: u64,
    /// How often a heartbeat is sent. Default 1 s. From 50 ms, which is a load, to 1 min.
    pub heartbeat: Duration,
    /// After so long without a word from the server the connection is taken for cut. Default 4 s: three heartbeats
    /// lost, and a slow fourth. From two heartbeats, since one is lost at times, to 1 h.
    pub silence: Duration,
    /// How long connecting and logging in may take together. Default 5 s. From 100 ms, a slow round trip, to 1 min.
    pub login: Duration,
    /// How long coming back is tried. Default 30 s, as long as the server keeps a session. Zero is never; at most 1 h.
    pub grace: Duration,
    /// The first pause before coming back; each later one is twice as long, up to `max_pause`. Default 250 ms.
    /// From 10 ms, below which a server that is down is stormed, to 1 min.
    pub first_pause: Duration,
    /// The longest pause. Default 2 s: a server that comes back has everybody in before they lose patience. From the first one to 10 min.
    pub max_pause: Duration,
    /// Reliable game messages kept for a resume. Default 1,024. From 1 to 65,536.
    pub max_log_messages: usize,
    /// Bytes of them. Default 64 KiB. From 16,396, four of the longest messages, to 16 MiB.
    pub max_log_bytes: usize,
}

impl SessionConfig {
    /// The defaults, for a player of this name and rules of this hash.
    pub fn new(name: PlayerName, shared: u64) -> Self {
        Self {
            name,
            credentials: None,
            resume: None,
            shared,
            heartbeat: Duration::from_secs(1),
            silence: Duration::from_secs(4),
            login: Duration::from_secs(5),
            grace: Duration::from_secs(30),
            first_pause: Duration::from_millis(250),
            max_pause: Duration::from_secs(2),
            max_log_messages: 1_024,
            max_log_bytes: 64 * 1_024,
        }
    }
}

impl SessionConfig {
    /// Bytes of credentials at most: with the longest name and a token, the login still fits into a frame.
    const MAX_CREDENTIALS: usize = 3_900;

    fn check(&self) -> Result<(), ConfigError> {
        let secs = Duration::from_secs;
        time_within("session.heartbeat", self.heartbeat, Duration::from_millis(50), secs(60))?;
        time_within("session.silence", self.silence, self.heartbeat * 2, secs(3_600))?;
        time_within("session.login", self.login, Duration::from_millis(100), secs(60))?;
        time_within("session.grace", self.grace, Duration::ZERO, secs(3_600))?;
        time_within("session.first_pause", self.first_pause, Duration::from_millis(10), secs(60))?;
        time_within("session.max_pause", self.max_pause, self.first_pause, secs(600))?;
        let credentials = self.credentials.as_ref().map_or(0, String::len);
        count_within("session.credentials", credentials, 0, Self::MAX_CREDENTIALS)?;
        count_within("session.max_log_messages", self.max_log_messages, 1, 65_536)?;
        count_within("session.max_log_bytes", self.max_log_bytes, ReliableLog::MIN_BYTES, 16 << 20)
    }
}

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionState {
    /// Nothing has been asked of it.
    Idle,
    /// A connection is being made.
    Connecting,
    /// Connected, and not logged in: that is for the server to say.
    LoginPending,
    /// The player is in.
    LoggedIn,
    /// Cut: it tries to come back.
    Reconnecting,
    /// It is over, and the server said why.
    Failed(SessionEnd),
    /// It is over: coming back took too long.
    TimedOut,
    /// It is over, as was wished.
    LoggedOut,
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("not connected"),
            Self::Connecting => f.write_str("connecting"),
            Self::LoginPending => f.write_str("logging in"),
            Self::LoggedIn => f.write_str("logged in"),
            Self::Reconnecting => f.write_str("cut, and coming back"),
            Self::Failed(end) => write!(f, "failed: {end}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::LoggedOut => f.write_str("logged out"),
        }
    }
}

/// Why a session ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The player is not let in.
    #[error(transparent)]
    Refused(#[from] LoginRefused),
    /// The player came in by another connection.
    #[error("the player came in from somewhere else")]
    Superseded,
    /// An operator removed the player.
    #[error("removed by an operator")]
    Kicked,
    /// The room that was asked for is not there.
    #[error("there is no such room")]
    UnknownRoom,
    /// The client sent more than the server takes from one.
    #[error("the server takes no more: this client sent too much")]
    TooMuch,
    /// The server cannot send the player's body: the game's code on the server is wrong.
    #[error("the server cannot send this player's body: the game's code has to be corrected")]
    BodyTooLong,
    /// The two ends disagree about what was sent: one of them is broken.
    #[error("the server broke the protocol")]
    Broken,
}

/// What the host is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// Make a connection, and tell what became of it.
    Connect,
    /// Close the connection there is.
    Close,
    /// Write this to the reliable lane.
    Send(FromClient),
    /// The session began anew: forget the game's state, a full one comes.
    Restarted(Restart),
}

/// A session with a server.
#[derive(Clone, Debug)]
pub struct ClientSession {
    config: SessionConfig,
    state: SessionState,
    player: Option<PlayerId>,
    token: Option<Token>,
    /// The token of an earlier process, until a login was answered.
    saved: Option<Token>,
    log: ReliableLog,
    commands: VecDeque<SessionCommand>,
    /// When the server was last heard of.
    heard: Timestamp,
    /// When what is under way has taken too long, or the next try is due.
    deadline: Timestamp,
    next_heartbeat: Timestamp,
    /// Since when the session has been cut.
    cut: Option<Timestamp>,
    tries: u32,
    /// Why it was not let in when it last came back, if that may pass.
    refused: Option<LoginRefused>,
    /// Logins that were given up before they were answered: the server may yet hear them.
    logins_under_way: u32,
    round_trip: Option<Duration>,
    /// How many messages the server has been told of.
    acknowledged: u64,
}

impl ClientSession {
    /// Messages after which the server is told at once how many have arrived: a quarter of what it keeps.
    const ACKNOWLEDGE_AFTER: u64 = 256;

    /// A session that nothing has been asked of.
    ///
    /// # Errors
    /// When a field of `config` is out of its range.
    pub fn new(config: SessionConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let log = ReliableLog::new(config.max_log_messages, config.max_log_bytes);
        Ok(Self {
            saved: config.resume,
            config,
            state: SessionState::Idle,
            player: None,
            token: None,
            log,
            commands: VecDeque::new(),
            heard: Timestamp::ZERO,
            deadline: Timestamp::ZERO,
            next_heartbeat: Timestamp::ZERO,
            cut: None,
            tries: 0,
            refused: None,
            logins_under_way: 0,
            round_trip: None,
            acknowledged: 0,
        })
    }

    /// Connects, if it is not connected or on its way.
    pub fn connect(&mut self, now: Timestamp) {
        let over =
            matches!(self.state, SessionState::Failed(_) | SessionState::TimedOut | SessionState::LoggedOut);
        if over || self.state == SessionState::Idle {
            (self.player, self.token, self.cut, self.tries) = (None, self.saved, None, 0);
            self.refused = None;
            self.log = ReliableLog::new(self.config.max_log_messages, self.config.max_log_bytes);
            self.start_connecting(now);
        }
    }

    /// Leaves.
    pub fn logout(&mut self) {
        if self.state == SessionState::LoggedIn {
            self.commands.push_back(SessionCommand::Send(FromClient::Logout(())));
        }
        self.logins_under_way += u32::from(self.state == SessionState::LoginPending);
        self.end(SessionState::LoggedOut);
    }

    /// A connection was made.
    pub fn handle_connected(&mut self, now: Timestamp) {
        // Connected is not logged in.
        // spec: SESSION-01
        if self.state == SessionState::Connecting {
            self.state = SessionState::LoginPending;
            self.heard = now;
            // Without a player nothing of that session is known here but its token.
            let received = self.player.map(|_| self.log.received());
            let resume = self.token.map(|token| Resume { token, received });
            self.commands.push_back(SessionCommand::Send(FromClient::Login(Login {
                protocol: PROTOCOL,
                shared: self.config.shared,
                name: self.config.name.clone(),
                resume,
                credentials: self.config.credentials.clone(),
            })));
        }
    }

    /// The connection is gone, or could not be made; `end` if the server said that it is for good.
    pub fn handle_disconnected(&mut self, now: Timestamp, end: Option<SessionEnd>) {
        let connected = matches!(
            self.state,
            SessionState::Connecting | SessionState::LoginPending | SessionState::LoggedIn
        );
        match end {
            _ if !connected => {}
            // By itself, perhaps: a login that it gave up was still under way. No more often than that: two who hold the
            // same token would take the player from each other for ever.
            Some(SessionEnd::Superseded) if self.logins_under_way > 0 => {
                self.logins_under_way -= 1;
                self.come_back(now);
            }
            Some(end) => self.state = SessionState::Failed(end),
            None => self.come_back(now),
        }
    }

    /// The server let the player in.
    pub fn handle_accepted(&mut self, now: Timestamp, accepted: &LoginAccepted) {
        if self.state != SessionState::LoginPending {
            return;
        }
        // spec: SESSION-06
        match accepted.continuity {
            Continuity::Resumed { received } => {
                if self.player != Some(accepted.player) || self.log.resume(received).is_err() {
                    self.end(SessionState::Failed(SessionEnd::Broken));
                    return;
                }
            }
            Continuity::New | Continuity::Restarted(_) => {
                self.log = ReliableLog::new(self.config.max_log_messages, self.config.max_log_bytes);
            }
        }
        if let Continuity::Restarted(why) = accepted.continuity {
            self.commands.push_back(SessionCommand::Restarted(why));
        }
        self.state = SessionState::LoggedIn;
        (self.player, self.token, self.saved) = (Some(accepted.player), Some(accepted.token), None);
        (self.cut, self.tries, self.refused) = (None, 0, None);
        self.heard = now;
        self.next_heartbeat = now;
        self.acknowledged = self.log.received();
    }

    /// The server did not.
    pub fn handle_refused(&mut self, refused: LoginRefused) {
        if self.state != SessionState::LoginPending {
            return;
        }
        // Whoever comes back may find its own name taken, by itself: the server has yet to notice that it was cut.
        if self.cut.is_some() && refused == LoginRefused::NameTaken {
            self.refused = Some(refused);
            self.commands.push_back(SessionCommand::Close);
            self.come_back(self.heard);
            return;
        }
        self.end(SessionState::Failed(SessionEnd::Refused(refused)));
    }

    /// The server answered a heartbeat. The clock sample in it is for whoever keeps the clock.
    pub fn handle_heartbeat(&mut self, now: Timestamp, reply: &HeartbeatReply) {
        // spec: SESSION-05
        self.handle_heard(now);
        let sent = Timestamp::from_micros(reply.sent_micros);
        let held = Duration::from_micros(u64::from(reply.held_micros));
        self.round_trip = Some(now.saturating_since(sent).saturating_sub(held));
        if self.state == SessionState::LoggedIn && self.log.acknowledge(reply.received).is_err() {
            self.end(SessionState::Failed(SessionEnd::Broken));
        }
    }

    /// Anything at all came from the server.
    pub fn handle_heard(&mut self, now: Timestamp) {
        self.heard = self.heard.max(now);
    }

    /// Time has passed. Early, late and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let cut_for_too_long = self.cut.is_some_and(|cut| now >= cut + self.config.grace);
        match self.state {
            SessionState::Reconnecting if cut_for_too_long => self.give_up(),
            SessionState::Reconnecting if now >= self.deadline => self.start_connecting(now),
            SessionState::Connecting | SessionState::LoginPending if now >= self.deadline => {
                self.commands.push_back(SessionCommand::Close);
                self.come_back(now);
            }
            SessionState::LoggedIn if now >= self.heard + self.config.silence => {
                self.commands.push_back(SessionCommand::Close);
                self.come_back(now);
            }
            SessionState::LoggedIn if now >= self.next_heartbeat || self.owes_acknowledgement() => {
                self.next_heartbeat = now + self.config.heartbeat;
                self.acknowledged = self.log.received();
                let heartbeat = Heartbeat { sent_micros: now.as_micros(), received: self.log.received() };
                self.commands.push_back(SessionCommand::Send(FromClient::Heartbeat(heartbeat)));
            }
            _ => {}
        }
    }

    /// Makes a heartbeat due at `now`, unless one was sent since `since`.
    pub(crate) fn hasten_heartbeat(&mut self, now: Timestamp, since: Timestamp) {
        if self.next_heartbeat < since + self.config.heartbeat {
            self.next_heartbeat = self.next_heartbeat.min(now);
        }
    }

    /// Whether the server keeps so much for a resume that it should be told before the next heartbeat is due.
    fn owes_acknowledgement(&self) -> bool {
        self.log.received().saturating_sub(self.acknowledged) >= Self::ACKNOWLEDGE_AFTER
    }

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        match self.state {
            SessionState::Connecting | SessionState::LoginPending => Some(self.deadline),
            SessionState::Reconnecting => {
                Some(self.cut.map_or(self.deadline, |cut| self.deadline.min(cut + self.config.grace)))
            }
            SessionState::LoggedIn => Some(self.next_heartbeat.min(self.heard + self.config.silence)),
            _ => None,
        }
    }

    /// What the host is to do next.
    pub fn poll_command(&mut self) -> Option<SessionCommand> {
        self.commands.pop_front()
    }

    fn start_connecting(&mut self, now: Timestamp) {
        self.state = SessionState::Connecting;
        let deadline = now + self.config.login;
        self.deadline = self.cut.map_or(deadline, |cut| deadline.min(cut + self.config.grace));
        self.commands.push_back(SessionCommand::Connect);
    }

    /// Cut: tries again after a pause that doubles each time.
    fn come_back(&mut self, now: Timestamp) {
        // spec: SESSION-03
        self.logins_under_way += u32::from(self.state == SessionState::LoginPending);
        let cut = *self.cut.get_or_insert(now);
        if now >= cut + self.config.grace {
            self.give_up();
            return;
        }
        self.state = SessionState::Reconnecting;
        let doubled = 1u64.checked_shl(self.tries).unwrap_or(u64::MAX);
        let pause = whole_micros(self.config.first_pause).saturating_mul(doubled);
        self.deadline = now + Duration::from_micros(pause).min(self.config.max_pause);
        self.tries = self.tries.saturating_add(1);
    }

    /// Coming back took too long; if the server said why, that is why.
    fn give_up(&mut self) {
        self.state = self
            .refused
            .map_or(SessionState::TimedOut, |refused| SessionState::Failed(SessionEnd::Refused(refused)));
    }

    /// The server said what means nothing: it is not worth talking to.
    pub fn fail(&mut self) {
        self.end(SessionState::Failed(SessionEnd::Broken));
    }

    fn end(&mut self, state: SessionState) {
        self.state = state;
        self.commands.push_back(SessionCommand::Close);
    }

    /// Where it is.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Who the player is, once it has been let in.
    pub fn player(&self) -> Option<PlayerId> {
        self.player
    }

    /// The token that brings this player back, once it was let in and until the session is over: for a host that wants to
    /// come back after a crash, by [`SessionConfig::resume`]. It is a secret: its holder is the player.
    pub fn resume_token(&self) -> Option<Token> {
        let over = matches!(self.state, SessionState::Failed(_) | SessionState::LoggedOut);
        self.token.filter(|_| !over)
    }

    /// The round trip of the latest heartbeat.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Reliable game messages, in both directions.
    pub fn log(&mut self) -> &mut ReliableLog {
        &mut self.log
    }
}
/// The state of a [`ClientSession`]. Of tokens, only that there are some: they are secrets.
pub(crate) type SavedSession = (
    (SessionState, Option<PlayerId>, bool, bool, SavedLog),
    (Timestamp, Timestamp, Timestamp, Option<Timestamp>),
    (u32, Option<LoginRefused>, u32, Option<Duration>, u64),
);

impl ClientSession {
    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        // Named one by one: a new field cannot be forgotten.
        let Self {
            config: _,
            state,
            player,
            token,
            saved,
            log,
            commands,
            heard,
            deadline,
            next_heartbeat,
            cut,
            tries,
            refused,
            logins_under_way,
            round_trip,
            acknowledged,
        } = self;
        debug_assert!(commands.is_empty(), "commands are done before anything else is");
        (
            (state, player, token.is_some(), saved.is_some(), log.saved()),
            (heard, deadline, next_heartbeat, cut),
            (tries, refused, logins_under_way, round_trip, acknowledged),
        )
    }

    pub(crate) fn restore(&mut self, saved: SavedSession) -> Result<(), Unrestorable> {
        let ((state, player, token, resumes, log), times, rest) = saved;
        (self.state, self.player) = (state, player);
        self.token = token.then(|| Token::new([0; 16]));
        self.saved = resumes.then(|| Token::new([0; 16]));
        self.commands.clear();
        (self.heard, self.deadline, self.next_heartbeat, self.cut) = times;
        (self.tries, self.refused, self.logins_under_way, self.round_trip, self.acknowledged) = rest;
        self.log.restore(log)
    }
}
