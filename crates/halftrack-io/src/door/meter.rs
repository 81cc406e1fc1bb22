//! How much one peer sends, counted where its link reads, before any of it costs a room something.

use std::sync::{Arc, Mutex, PoisonError};

use halftrack::session::DisconnectReason;
use halftrack::wire::FrameReader;

use crate::clock::now;
use crate::door::Shared;
use crate::door::bucket::Bucket;

#[derive(Default)]
struct Read {
    messages: Bucket,
    bytes: Bucket,
    /// A piece of the stream can hold many messages; only this knows how many.
    frames: FrameReader,
}

/// See the module. That of a client lets everything pass: it chose its server.
#[derive(Default)]
pub(crate) struct Meter {
    door: Option<Arc<Shared>>,
    read: Mutex<Read>,
}

impl Meter {
    pub(super) fn of(door: Arc<Shared>) -> Self {
        Self { door: Some(door), read: Mutex::default() }
    }

    /// A piece of the stream: as many messages as end in it, and at least one, or pieces of one byte would be
    /// free.
    pub(crate) fn stream(&self, piece: &[u8]) -> Result<(), DisconnectReason> {
        self.take(piece.len(), |frames| {
            let (mut rest, mut count) = (piece, 0);
            // What is no frame is the room's business, and ends the connection.
            while let Ok(Some(_)) = frames.next(&mut rest) {
                count += 1;
            }
            count.max(1)
        })
    }

    /// A datagram, or what else comes as one message.
    pub(crate) fn message(&self, bytes: usize) -> Result<(), DisconnectReason> {
        self.take(bytes, |_| 1)
    }

    fn take(
        &self,
        bytes: usize,
        count: impl FnOnce(&mut FrameReader) -> u64,
    ) -> Result<(), DisconnectReason> {
        let Some(door) = &self.door else { return Ok(()) };
        let (limits, now) = (door.limits(), now());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let count = count(&mut read.frames);
        let fits = read.messages.take(now, limits.messages(), count)
            && read.bytes.take(now, limits.bytes(), bytes as u64);
        if fits {
            return Ok(());
        }
        door.count(|stats| stats.too_much += 1);
        Err(DisconnectReason::TooMuch)
    }
}
