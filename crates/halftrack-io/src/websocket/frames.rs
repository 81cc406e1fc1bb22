//! The frames of a server's WebSocket, counted and checked below the library that joins them to messages.
//!
//! ```text
//!  byte 0   FIN (1 bit), RSV (3), opcode (4)
//!  byte 1   MASK (1), length (7): 126 means that two bytes of length follow, 127 that eight do
//!           mask (4 bytes), then the payload
//! ```
//!
//! The library swallows fragments and control frames. A limit on messages therefore never sees a peer that sends
//! continuation frames without end. [`Guarded`] counts every frame and every byte against the connection's [`Meter`],
//! and refuses each frame that no client of ours sends.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::OnceLock;

use halftrack::session::DisconnectReason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::door::{Meter, Received};

/// The longest payload of a frame. A client of ours sends far shorter ones.
pub(super) const MAX_PAYLOAD: usize = 16 * 1_024;
/// The longest payload of a control frame (RFC 6455, 5.5).
const MAX_CONTROL: usize = 125;
/// Bytes of a frame before its payload at most: eight bytes of length would be more than [`MAX_PAYLOAD`].
const MAX_HEAD: usize = 8;

/// Reads frame headers from a byte stream that is cut anywhere.
#[derive(Default)]
struct Frames {
    head: [u8; MAX_HEAD],
    head_bytes: usize,
    /// Bytes of the payload that have not come yet.
    left: usize,
}

/// A frame that no client of ours sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unwanted;

impl Frames {
    /// Takes the next bytes. Gives the number of frames whose headers end in them.
    fn take(&mut self, mut bytes: &[u8]) -> Result<u64, Unwanted> {
        let mut frames = 0;
        loop {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            let Some((byte, rest)) = bytes.split_first() else { return Ok(frames) };
            bytes = rest;
            let Some(place) = self.head.get_mut(self.head_bytes) else { return Err(Unwanted) };
            *place = *byte;
            self.head_bytes += 1;
            if let Some(length) = self.length()? {
                (self.left, self.head_bytes) = (length, 0);
                frames += 1;
            }
        }
    }

    /// The length of the payload, once the header is whole.
    fn length(&self) -> Result<Option<usize>, Unwanted> {
        const FIN: u8 = 0x80;
        const MASK: u8 = 0x80;
        const MASK_BYTES: usize = 4;
        // FIN, no extension bits, and then: binary, close, ping, pong. Clients of ours send no text and no fragments.
        let is_control = match (self.head_bytes, self.head[0]) {
            (0, _) => return Ok(None),
            (_, first) if first == FIN | 0x2 => false,
            (_, first) if [FIN | 0x8, FIN | 0x9, FIN | 0xa].contains(&first) => true,
            _ => return Err(Unwanted),
        };
        if self.head_bytes < 2 {
            return Ok(None);
        }
        let (is_masked, short) = (self.head[1] & MASK != 0, usize::from(self.head[1] & !MASK));
        if !is_masked || short == 127 || (is_control && short > MAX_CONTROL) {
            return Err(Unwanted);
        }
        if short <= MAX_CONTROL {
            return Ok((self.head_bytes == 2 + MASK_BYTES).then_some(short));
        }
        if self.head_bytes < 4 {
            return Ok(None);
        }
        let length = usize::from(u16::from_be_bytes([self.head[2], self.head[3]]));
        // The shortest way to write a length is the only one that is allowed.
        if length <= MAX_CONTROL || length > MAX_PAYLOAD {
            return Err(Unwanted);
        }
        Ok((self.head_bytes == 4 + MASK_BYTES).then_some(length))
    }
}

/// Why a [`Guarded`] stream was refused, if it was. A client's stream has no guard, and is never refused.
#[derive(Default)]
pub(crate) struct Refused {
    reason: OnceLock<DisconnectReason>,
    told: Notify,
}

impl Refused {
    pub(super) fn set(&self, reason: DisconnectReason) {
        if self.reason.set(reason).is_ok() {
            self.told.notify_one();
        }
    }

    /// Waits until the stream is refused, for ever if it never is.
    pub(super) async fn reason(&self) -> DisconnectReason {
        loop {
            if let Some(reason) = self.reason.get() {
                return *reason;
            }
            self.told.notified().await;
        }
    }
}

/// The stream under a WebSocket. It counts what it reads, and hands nothing on once the peer is refused.
///
/// From then on it discards a bounded number of bytes, and then reads nothing more: the system holds back the peer, and
/// the peer has time to read the close frame. A socket that is closed with unread bytes resets the connection, and the
/// reset can overtake that frame.
pub(super) struct Guarded<'a, S> {
    stream: S,
    meter: &'a Meter,
    refused: &'a Refused,
    frames: Frames,
    /// Frames and bytes so far.
    received: Received,
    /// Bytes that may still be discarded.
    discards: usize,
}

impl<'a, S> Guarded<'a, S> {
    /// Several times what a system keeps for a socket that it has not grown.
    const MAX_DISCARDED: usize = 512 * 1_024;

    pub(super) fn new(stream: S, meter: &'a Meter, refused: &'a Refused) -> Self {
        let (frames, received) = Default::default();
        Self { stream, meter, refused, frames, received, discards: Self::MAX_DISCARDED }
    }

    fn check(&mut self, bytes: &[u8]) -> Result<(), DisconnectReason> {
        let frames = self.frames.take(bytes).map_err(|Unwanted| DisconnectReason::Malformed)?;
        // At least one: each read costs as much as a frame, also when it is of one byte.
        self.received.packets += frames.max(1);
        self.received.bytes += bytes.len() as u64;
        self.meter.transport(self.received)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<'_, S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            if this.discards == 0 {
                // Nothing wakes this: the link's patience ends it.
                return Poll::Pending;
            }
            // It takes from the task's budget, so a peer that sends without end yields to other tasks.
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            let bytes = buffer.filled().get(before..).unwrap_or_default();
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if this.refused.reason.get().is_none() {
                match this.check(bytes) {
                    Ok(()) => return Poll::Ready(Ok(())),
                    Err(reason) => {
                        this.refused.set(reason);
                        buffer.set_filled(before);
                        // The close frame is written before the rest is discarded. Otherwise a quick flood could use up the
                        // discards first, and the socket would end without a code.
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
            }
            this.discards = this.discards.saturating_sub(bytes.len());
            buffer.set_filled(before);
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<'_, S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::DuplexStream;

    /// A frame as a client sends it: these first two bytes, `more` of the length, a mask, and a payload.
    fn frame(first: u8, second: u8, more: &[u8], payload: usize) -> Vec<u8> {
        [&[first, second][..], more, &[1, 2, 3, 4], &vec![7; payload]].concat()
    }

    fn taken(bytes: &[u8]) -> Result<u64, Unwanted> {
        Frames::default().take(bytes)
    }

    #[test]
    fn frames_of_our_clients_are_counted_however_they_are_cut() {
        let frames = [
            frame(0x82, 0x80, &[], 0),
            frame(0x82, 0x80 | 125, &[], 125),
            frame(0x82, 0x80 | 126, &[0, 126], 126),
            frame(0x82, 0x80 | 126, &[0x40, 0], MAX_PAYLOAD),
            frame(0x89, 0x80 | 125, &[], 125),
            frame(0x8a, 0x80, &[], 0),
            frame(0x88, 0x82, &[], 2),
        ];
        let all = frames.concat();
        assert_eq!(taken(&all), Ok(7));
        for piece in [1, 2, 3, 7, 1_000] {
            let mut reader = Frames::default();
            let counted: u64 = all.chunks(piece).map(|bytes| reader.take(bytes).unwrap()).sum();
            assert_eq!((counted, reader.left, reader.head_bytes), (7, 0, 0), "in pieces of {piece}");
        }
    }

    #[test]
    fn frames_that_no_client_of_ours_sends_are_refused() {
        let unwanted = [
            ("a continuation", frame(0x80, 0x80, &[], 0)),
            ("a continuation that is not the last", frame(0x00, 0x80, &[], 0)),
            ("the first of several fragments", frame(0x02, 0x80, &[], 0)),
            ("text", frame(0x81, 0x80, &[], 0)),
            ("a reserved opcode", frame(0x83, 0x80, &[], 0)),
            ("a reserved control opcode", frame(0x8b, 0x80, &[], 0)),
            ("an extension bit", frame(0xc2, 0x80, &[], 0)),
            ("a fragmented ping", frame(0x09, 0x80, &[], 0)),
            ("no mask", frame(0x82, 0x01, &[], 1)),
            ("a long ping", frame(0x89, 0x80 | 126, &[0, 126], 126)),
            ("a length in too many bytes", frame(0x82, 0x80 | 126, &[0, 125], 125)),
            ("one byte too long", frame(0x82, 0x80 | 126, &[0x40, 1], 0)),
            ("a length of eight bytes", frame(0x82, 0x80 | 127, &[0; 8], 0)),
        ];
        for (name, bytes) in unwanted {
            assert_eq!(taken(&bytes), Err(Unwanted), "{name}");
            let mut reader = Frames::default();
            let drip = bytes.iter().try_for_each(|byte| reader.take(&[*byte]).map(drop));
            assert_eq!(drip, Err(Unwanted), "{name}, byte by byte");
            let after = [frame(0x82, 0x85, &[], 5), bytes].concat();
            assert_eq!(taken(&after), Err(Unwanted), "{name}, after a good frame");
        }
    }

    /// Bytes that the pipe of a test keeps, as a system does for a socket.
    const SYSTEM_BYTES: usize = 64 * 1_024;

    /// Lets others run for so long that nothing is left to do.
    async fn settled() {
        for _ in 0..100_000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_refused_stream_hands_nothing_on_and_discards_a_bounded_number_of_bytes() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut peer, stream) = tokio::io::duplex(SYSTEM_BYTES);
        let (meter, refused) = (Meter::default(), Refused::default());
        let mut guarded = Guarded::new(stream, &meter, &refused);
        peer.write_all(&frame(0x82, 0x83, &[], 3)).await.unwrap();
        let mut read = [0; 64];
        assert_eq!(guarded.read(&mut read).await.unwrap(), 9);
        assert!(refused.reason.get().is_none());
        let flood = frame(0x80, 0x80, &[], 0).repeat(200_000);
        let max = Guarded::<DuplexStream>::MAX_DISCARDED;
        assert!(flood.len() > max + SYSTEM_BYTES);
        let mut written = 0;
        let flooding = async {
            while let Ok(length) = peer.write(&flood[written..]).await {
                written += length;
            }
        };
        tokio::select! {
            read = guarded.read(&mut read) => panic!("{read:?}: nothing is handed on, and it does not end"),
            () = flooding => panic!("it is not read to its end"),
            // Both wait by now: nothing is left that could wake one of them.
            () = settled() => {}
        }
        assert!((max..=max + SYSTEM_BYTES + read.len()).contains(&written), "{written} bytes");
        assert_eq!(refused.reason().await, DisconnectReason::Malformed);
    }

    #[tokio::test]
    async fn a_refused_stream_ends_when_its_peer_does() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut peer, stream) = tokio::io::duplex(SYSTEM_BYTES);
        let (meter, refused) = (Meter::default(), Refused::default());
        let mut guarded = Guarded::new(stream, &meter, &refused);
        peer.write_all(&frame(0x80, 0x80, &[], 0)).await.unwrap();
        drop(peer);
        assert_eq!(guarded.read(&mut [0; 64]).await.unwrap(), 0);
    }
}
