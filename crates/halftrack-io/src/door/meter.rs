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
    packets: Bucket,
    packet_bytes: Bucket,
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

    /// Whether anything is counted at all.
    pub(crate) fn is_kept(&self) -> bool {
        self.door.is_some()
    }

    /// What came by the transport since the last look, whether anybody read it or not.
    pub(crate) fn transport(&self, packets: u64, bytes: u64) -> Result<(), DisconnectReason> {
        let Some(door) = &self.door else { return Ok(()) };
        let (limits, now) = (door.limits(), now());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = read.packets.take(now, limits.packets(), packets)
            && read.packet_bytes.take(now, limits.packet_bytes(), bytes);
        if fits { Ok(()) } else { Err(too_much(door)) }
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
        if fits { Ok(()) } else { Err(too_much(door)) }
    }
}

fn too_much(door: &Shared) -> DisconnectReason {
    door.count(|stats| stats.too_much += 1);
    DisconnectReason::TooMuch
}
