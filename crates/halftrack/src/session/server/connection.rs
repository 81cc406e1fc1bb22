//! One connection of a peer: the frame it is sending, the bytes that wait for it, and the player behind it.

use crate::id::{PlayerId, Token};
use crate::lane::LaneRouter;
use crate::session::DisconnectReason;
use crate::sync_watch::SyncWatch;
use crate::time::Timestamp;
use crate::wire::FrameReader;

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) router: LaneRouter,
    pub(super) reader: FrameReader,
    pub(super) peer: Peer,
    /// Judges whether input arrives by datagram. `None` before the login and without a sync link.
    pub(super) watch: Option<SyncWatch>,
    /// Frames of the reliable lane that the host has not taken yet, in order.
    out: Vec<u8>,
    pub(super) closing: Option<DisconnectReason>,
}

/// The peer's progress through the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// It has to log in before `deadline`. `token` is for a session that begins on this connection.
    LoggingIn {
        token: Token,
        deadline: Timestamp,
    },
    LoggedIn(PlayerId),
}

impl Connection {
    pub(super) fn new(router: LaneRouter, token: Token, deadline: Timestamp) -> Self {
        Self {
            router,
            reader: FrameReader::default(),
            peer: Peer::LoggingIn { token, deadline },
            watch: None,
            out: Vec::new(),
            closing: None,
        }
    }

    /// The player behind it. `None` before the login, and once it is to be closed.
    pub(super) fn player(&self) -> Option<PlayerId> {
        match self.peer {
            Peer::LoggedIn(player) if self.closing.is_none() => Some(player),
            _ => None,
        }
    }

    /// Whether the peer has not logged in by its deadline.
    pub(super) fn misses_login(&self, now: Timestamp) -> bool {
        let late = matches!(self.peer, Peer::LoggingIn { deadline, .. } if now >= deadline);
        late && self.closing.is_none()
    }

    /// Appends frames, unless it is to be closed. Returns the number of bytes that wait.
    pub(super) fn send(&mut self, frames: &[u8]) -> usize {
        if self.closing.is_none() {
            self.out.extend_from_slice(frames);
        }
        self.out.len()
    }

    /// Moves the waiting bytes into `into`. Returns whether there were any.
    pub(super) fn take_out(&mut self, into: &mut Vec<u8>) -> bool {
        into.extend_from_slice(&self.out);
        let any = !self.out.is_empty();
        self.out.clear();
        any
    }
}
