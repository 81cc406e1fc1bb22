//! One connection of a peer, logged in or not: what has come by it in part, and what waits to go out.

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
    /// For a session that begins here.
    pub(super) token: Token,
    /// When it must have logged in.
    pub(super) deadline: Timestamp,
    pub(super) player: Option<PlayerId>,
    /// Whether input arrives by datagram, once it should.
    pub(super) watch: Option<SyncWatch>,
    /// Frames of the reliable lane, in order, not yet taken by the host.
    out: Vec<u8>,
    pub(super) closing: Option<DisconnectReason>,
}

impl Connection {
    pub(super) fn new(router: LaneRouter, token: Token, deadline: Timestamp) -> Self {
        Self {
            router,
            reader: FrameReader::default(),
            token,
            deadline,
            player: None,
            watch: None,
            out: Vec::new(),
            closing: None,
        }
    }

    /// Appends frames. Gives how much waits.
    pub(super) fn send(&mut self, frames: &[u8]) -> usize {
        if self.closing.is_none() {
            self.out.extend_from_slice(frames);
        }
        self.out.len()
    }

    /// Moves what waits into `into`; gives whether there was anything.
    pub(super) fn take_out(&mut self, into: &mut Vec<u8>) -> bool {
        into.extend_from_slice(&self.out);
        let any = !self.out.is_empty();
        self.out.clear();
        any
    }
}
