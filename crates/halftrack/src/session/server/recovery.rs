//! Sessions made again from a recording, after a crash.

use super::SessionServer;
use crate::id::{PlayerId, PlayerName, Token};
use crate::time::Timestamp;

impl SessionServer {
    /// Makes a session as it was before the crash, without a connection.
    pub(crate) fn restore(&mut self, now: Timestamp, player: PlayerId, name: PlayerName, token: Token) {
        self.table.restore(now, player, name, token);
    }

    /// The hash of everything that both ends share.
    pub(crate) fn shared(&self) -> u64 {
        self.table.shared()
    }

    /// A message of the session had arrived.
    pub(crate) fn confirm(&mut self, player: PlayerId) {
        self.table.confirm(player);
    }

    /// The session had been numbered anew.
    pub(crate) fn restart(&mut self, player: PlayerId) {
        self.table.restart(player);
    }

    /// An order of the player arrived.
    pub(crate) fn count_order(&mut self, player: PlayerId) {
        if let Some(session) = self.table.get_mut(player) {
            session.log().receive();
        }
    }

    /// The client had acknowledged so many messages.
    pub(crate) fn deliver(&mut self, player: PlayerId, received: u64) {
        if let Some(session) = self.table.get_mut(player) {
            session.log().deliver(received);
        }
    }

    /// Ends the recovery: all players are away. `rewound` when messages that were sent are lost.
    pub(crate) fn all_away(&mut self, now: Timestamp, rewound: bool) {
        self.table.all_away(now, rewound);
    }
}
