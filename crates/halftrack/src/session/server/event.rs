//! Things that happen in sessions and concern the game.

use crate::id::PlayerId;
use crate::session::ConnectionId;
use crate::wire::control::{Login, Report};

/// Something that the game's side of a server has to act on, in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A peer wants to log in. Check its credentials, then call [`super::SessionServer::log_in`] or
    /// [`super::SessionServer::refuse`].
    LoginRequested {
        /// The peer's connection.
        connection: ConnectionId,
        /// Its login.
        login: Box<Login>,
    },
    /// The first message of a session arrived, so its client has the token. From now on a login by name alone does not
    /// replace the session.
    Confirmed {
        /// The session's player.
        player: PlayerId,
    },
    /// A heartbeat arrived, and acknowledged reliable messages. Answer with
    /// [`super::SessionServer::answer_heartbeat`].
    Heartbeat {
        /// The connection to answer on.
        connection: ConnectionId,
        /// The player.
        player: PlayerId,
        /// The client's time in the heartbeat, microseconds: goes into the answer.
        sent_micros: u64,
        /// Messages that the client has received.
        received: u64,
        /// Messages that it was known to have received before.
        received_before: u64,
        /// It is the first acknowledgement of a log that was numbered anew.
        first: bool,
    },
    /// A reliable order arrived. It is already counted as received.
    Order {
        /// The connection that it came by.
        connection: ConnectionId,
        /// The player behind that connection, regardless of claims inside the order.
        player: PlayerId,
        /// The order, as the game writes it.
        bytes: Vec<u8>,
    },
    /// An input message arrived by the reliable link.
    Input {
        /// The player.
        player: PlayerId,
        /// The message, as [`crate::MoveInput`] writes it.
        bytes: Vec<u8>,
    },
    /// A client reported its corrections.
    Reported {
        /// The player.
        player: PlayerId,
        /// The report.
        report: Report,
    },
    /// A player lost its connection, and may resume within the grace.
    Away {
        /// The player.
        player: PlayerId,
    },
    /// A player left for good, and its session is gone.
    Left {
        /// The player.
        player: PlayerId,
    },
}
