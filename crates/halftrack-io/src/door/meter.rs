//! How much one peer sends, counted where its link reads, before any of it costs a room something.

use std::sync::{Arc, Mutex, PoisonError};

use halftrack::session::DisconnectReason;
use halftrack::wire::FrameReader;

use crate::clock::now;
use crate::door::bucket::Bucket;
use crate::door::{Limits, Shared};

#[derive(Default)]
struct Read {
    messages: Bucket,
    bytes: Bucket,
    /// A piece of the stream can hold many messages; only this knows how many.
    frames: FrameReader,
    packets: Bucket,
    packet_bytes: Bucket,
    /// What the transport had received at the last look.
    received: Received,
    logged_in: bool,
}

/// Everything that a peer's transport has received: packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
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

    /// Everything that the transport has received so far, whether it was read or not. Before its login a peer has a
    /// fixed allowance: it has little to say, and a rate would let it go on.
    pub(crate) fn transport(&self, received: Received) -> Result<(), DisconnectReason> {
        let Some(door) = &self.door else { return Ok(()) };
        let (limits, now) = (door.limits(), now());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let before = core::mem::replace(&mut read.received, received);
        let fits = if read.logged_in {
            let packets = received.packets.saturating_sub(before.packets);
            let bytes = received.bytes.saturating_sub(before.bytes);
            read.packets.take(now, limits.packets(), packets)
                && read.packet_bytes.take(now, limits.packet_bytes(), bytes)
        } else {
            received.packets <= Limits::NEWCOMER_PACKETS && received.bytes <= Limits::NEWCOMER_BYTES
        };
        if fits { Ok(()) } else { Err(too_much(door)) }
    }

    /// The login has arrived: from here on the rates count.
    pub(crate) fn logged_in(&self) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).logged_in = true;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::Door;
    use std::sync::Arc;

    #[test]
    fn a_newcomer_has_an_allowance_and_a_player_a_rate() {
        let door = Door::new(Arc::new(|_: &crate::RoomName| None), Limits::default()).unwrap();
        let most = Received { packets: Limits::NEWCOMER_PACKETS, bytes: Limits::NEWCOMER_BYTES };
        for (over, fits) in [(0, true), (1, false)] {
            let packets = Received { packets: most.packets + over, ..most };
            assert_eq!(Meter::of(door.0.clone()).transport(packets).is_ok(), fits);
            let bytes = Received { bytes: most.bytes + over, ..most };
            assert_eq!(Meter::of(door.0.clone()).transport(bytes).is_ok(), fits);
        }
        assert_eq!(door.stats().too_much, 2);
        let meter = Meter::of(door.0.clone());
        assert_eq!(meter.transport(most), Ok(()));
        meter.logged_in();
        let burst = door.limits().packets().burst;
        let later = Received { packets: most.packets + burst, ..most };
        assert_eq!(meter.transport(later), Ok(()), "the handshake is not held against a player");
        let more = Received { packets: later.packets + 50, ..later };
        assert_eq!(meter.transport(more), Err(DisconnectReason::TooMuch));
    }
}
