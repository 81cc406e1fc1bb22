//! A client of the model: the real `ClientSession`, its player, and the messages that both have heard.

use halftrack::session::{ClientSession, SessionConfig, SessionState};
use halftrack::wire::control::LoginAccepted;
use halftrack::{PlayerName, Timestamp};

use super::link::token_number;
use super::session::{GRACE, KEPT, SECOND, SHARED};

/// A client and its player.
#[derive(Clone, Debug)]
pub(super) struct Player {
    pub(super) session: ClientSession,
    pub(super) link: Option<usize>,
    pub(super) dialling: bool,
    /// The connection whose token it holds.
    pub(super) token: Option<u8>,
    pub(super) orders: u8,
    /// Orders up to this one may be lost: the session began anew after them.
    pub(super) orders_excused: u8,
    /// The newest event heard.
    pub(super) events: u8,
    /// It has been told that the session began anew since: some may be missing.
    pub(super) events_gap: bool,
    /// Since when it has not been in.
    pub(super) out: Option<Timestamp>,
    pub(super) kicked: bool,
    /// When it last wanted in, and that it had been in, or wanted to be, before.
    pub(super) tried: Timestamp,
    pub(super) returned: bool,
}

impl Player {
    pub(super) fn new(client: usize, now: Timestamp) -> Self {
        let config = SessionConfig {
            heartbeat: SECOND,
            silence: SECOND * 2,
            login: SECOND * 2,
            grace: GRACE,
            first_pause: SECOND,
            max_pause: SECOND,
            max_log_messages: KEPT,
            ..SessionConfig::new(PlayerName::new(&client.to_string()).expect("a number is a name"), SHARED)
        };
        let mut session = ClientSession::new(config).expect("in range");
        session.connect(now);
        Self {
            session,
            link: None,
            dialling: false,
            token: None,
            orders: 0,
            orders_excused: 0,
            events: 0,
            events_gap: true,
            out: Some(now),
            kicked: false,
            tried: now,
            returned: false,
        }
    }

    pub(super) fn let_in(&mut self, accepted: &LoginAccepted) {
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        self.out = None;
        self.token = token_number(accepted.token);
        if accepted.continuity.begins() {
            (self.orders_excused, self.events_gap) = (self.orders, true);
        }
    }

    pub(super) fn hear_event(&mut self, client: usize, number: u8) -> Result<(), String> {
        let next = number == self.events + 1 || (self.events_gap && number > self.events);
        if !next {
            return Err(format!("client {client} hears event {number} after event {}", self.events));
        }
        (self.events, self.events_gap) = (number, false);
        Ok(())
    }
}

pub(super) fn is_over(state: SessionState) -> bool {
    matches!(state, SessionState::Failed(_) | SessionState::TimedOut | SessionState::LoggedOut)
}
