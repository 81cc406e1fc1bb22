//! Why a connection is closed by the server. The number travels as the close code of the transport.

use crate::session::SessionEnd;

/// Why the server closed a connection, and who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// The peer sent what means nothing, or what it had no right to send. The peer's fault.
    #[error("the peer broke the protocol")]
    Malformed,
    /// The peer did not log in in time. The peer's fault, or the network's.
    #[error("nobody logged in")]
    LoginTimeout,
    /// The login was refused; why was told before. Nobody's fault, or the peer's.
    #[error("the login was refused")]
    Refused,
    /// The player came in by another connection. Nobody's fault.
    #[error("the player came in from somewhere else")]
    Superseded,
    /// The player left. Nobody's fault.
    #[error("the player left")]
    LoggedOut,
    /// Nothing was heard for too long. The network's fault.
    #[error("nothing was heard for too long")]
    Silent,
    /// The peer reads too slowly for what it is told. The peer's fault, or the network's.
    #[error("the peer reads too slowly")]
    TooSlow,
    /// An operator removed the player. The player's fault, presumably.
    #[error("removed by an operator")]
    Kicked,
    /// There are too many connections. The server's limits.
    #[error("too many connections")]
    TooMany,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Stopped,
    /// The peer asked for a room that is not there. The peer's fault, or the host's.
    #[error("there is no such room")]
    UnknownRoom,
    /// The peer sends more than the server takes from one. The peer's fault.
    #[error("the peer sends too much")]
    TooMuch,
    /// The player's body takes more bytes than the game said that a body takes. The game's fault.
    #[error("the player's body is too long to be sent: the game's code has to be corrected")]
    BodyTooLong,
    /// The game's code on the server panicked, and its room ended by that. The game's fault.
    #[error("the room failed by a mistake in the game's code")]
    RoomFailed,
}

impl DisconnectReason {
    /// Every reason there is.
    pub const ALL: [Self; 14] = [
        Self::Malformed,
        Self::LoginTimeout,
        Self::Refused,
        Self::Superseded,
        Self::LoggedOut,
        Self::Silent,
        Self::TooSlow,
        Self::Kicked,
        Self::TooMany,
        Self::Stopped,
        Self::UnknownRoom,
        Self::TooMuch,
        Self::BodyTooLong,
        Self::RoomFailed,
    ];

    /// Its number on the wire: a transport's close code. Zero is none of ours.
    pub const fn code(self) -> u32 {
        self as u32 + 1
    }

    /// Its name in metrics and for programs, as in `too_slow`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::LoginTimeout => "login_timeout",
            Self::Refused => "refused",
            Self::Superseded => "superseded",
            Self::LoggedOut => "logged_out",
            Self::Silent => "silent",
            Self::TooSlow => "too_slow",
            Self::Kicked => "kicked",
            Self::TooMany => "too_many",
            Self::Stopped => "stopped",
            Self::UnknownRoom => "unknown_room",
            Self::TooMuch => "too_much",
            Self::BodyTooLong => "body_too_long",
            Self::RoomFailed => "room_failed",
        }
    }

    /// The reason of that number.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// Whether a client that is told this should not come back by itself.
    pub const fn end(self) -> Option<SessionEnd> {
        match self {
            Self::Malformed => Some(SessionEnd::Broken),
            Self::Superseded => Some(SessionEnd::Superseded),
            Self::Kicked => Some(SessionEnd::Kicked),
            Self::UnknownRoom => Some(SessionEnd::UnknownRoom),
            // It would do it again.
            Self::TooMuch => Some(SessionEnd::TooMuch),
            Self::BodyTooLong => Some(SessionEnd::BodyTooLong),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_number_and_its_name() {
        for reason in DisconnectReason::ALL {
            assert_eq!(DisconnectReason::from_code(reason.code()), Some(reason));
            let letters: String = reason.name().split('_').collect();
            assert_eq!(letters, format!("{reason:?}").to_lowercase());
        }
        assert_eq!(DisconnectReason::from_code(0), None);
        assert_eq!(DisconnectReason::from_code(99), None);
    }
}
