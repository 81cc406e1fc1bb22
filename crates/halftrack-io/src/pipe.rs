//! Where a state machine and one connection of it meet: what has arrived, what is to go out, how it ended.
//!
//! ```text
//!   link ── deliver_stream, deliver_datagram, end ──►  inbound ── take ─────────────► Server or Client
//!        ◄──── next_stream, next_datagram ──────────  outbound ◄─ hand_out, close ──
//! ```
//!
//! The two sides never wait for each other's work, only for each other's locks, which are held for copies. Everything is
//! bounded: the link stops reading when its stream is not taken, an old datagram makes room for a new one, and nothing
//! is asked of the state machine while what it said before is still being written. Knows bytes, not messages.

use core::fmt;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use halftrack::Timestamp;
use halftrack::session::DisconnectReason;
use tokio::sync::Notify;

use crate::clock::now;

/// How soon the state machine should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// At once: there may be something to answer.
    Now,
    /// Before it next acts on its own: a datagram is not answered, and has its time of arrival with it.
    Next,
}

/// Tells the state machine that there is something for it.
pub(crate) trait Bell: Send + Sync {
    fn ring(&self, urgency: Urgency);
}

/// Something that came from the peer.
#[derive(Clone, Debug)]
pub(crate) enum Arrived {
    Stream(Bytes),
    Datagram(Bytes),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer or the network ended it, for this reason if one was given.
    Theirs(Option<DisconnectReason>),
    /// The link ended it: the peer does not read, sends too much, or is not wanted.
    Ours(DisconnectReason),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Theirs(Some(reason)) => write!(f, "by the peer: {reason}"),
            Self::Theirs(None) => f.write_str("cut"),
            Self::Ours(reason) => write!(f, "by the server: {reason}"),
        }
    }
}

/// What the writer of the reliable stream is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Write what is in the buffer.
    Go,
    /// Write it, then close.
    Close(DisconnectReason),
}

/// How patient a link is with its peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// A write that takes longer ends the connection.
    pub(crate) stall: Duration,
    /// So long the end of a connection may take.
    pub(crate) linger: Duration,
}

struct Inbound {
    queue: VecDeque<(Timestamp, Arrived)>,
    /// Of the stream, with what each piece costs besides.
    stream_bytes: usize,
    datagrams: usize,
    dropped: u64,
    end: Option<End>,
}

#[derive(Default)]
struct Outbound {
    stream: Vec<u8>,
    datagram: Option<Bytes>,
    /// What was taken last has not been written yet.
    writing: bool,
    /// The state machine came while that was so, and may have more.
    starved: bool,
    closing: Option<DisconnectReason>,
}

/// See the module.
pub(crate) struct Pipe {
    bell: Box<dyn Bell>,
    patience: Patience,
    inbound: Mutex<Inbound>,
    space: Notify,
    outbound: Mutex<Outbound>,
    stream_out: Notify,
    datagram_out: Notify,
    ping: Mutex<Ping>,
}

/// The round trip to the peer, as the transport has it or as pings measure it.
#[derive(Default)]
struct Ping {
    round_trip: Option<Duration>,
    /// The number of the newest ping, and when it was sent.
    sent: Option<(u64, Timestamp)>,
    answered: bool,
}

/// What a [`Pipe::hand_out`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandedOut {
    pub(crate) stream_bytes: usize,
    pub(crate) datagram_bytes: Option<usize>,
    /// A datagram that the link had not taken was replaced.
    pub(crate) replaced: bool,
}

impl Pipe {
    /// Of the stream, so much waits for the state machine before the link stops reading.
    const MAX_STREAM: usize = 16 * 1_024;
    /// What a piece costs besides its bytes: pieces of one byte must not be free.
    const PIECE: usize = 64;
    /// Datagrams that wait at most, oldest dropped first: a tick's worth of the most eager client several times over.
    const MAX_DATAGRAMS: usize = 32;

    pub(crate) fn new(bell: Box<dyn Bell>, patience: Patience) -> Self {
        Self {
            bell,
            patience,
            inbound: Mutex::new(Inbound {
                queue: VecDeque::new(),
                stream_bytes: 0,
                datagrams: 0,
                dropped: 0,
                end: None,
            }),
            space: Notify::new(),
            outbound: Mutex::default(),
            stream_out: Notify::new(),
            datagram_out: Notify::new(),
            ping: Mutex::default(),
        }
    }

    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// The round trip to the peer, once there is one.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.ping().round_trip
    }

    fn ping(&self) -> MutexGuard<'_, Ping> {
        self.ping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbound(&self) -> MutexGuard<'_, Inbound> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outbound(&self) -> MutexGuard<'_, Outbound> {
        self.outbound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The link's side.
impl Pipe {
    /// From one ping to the next, where the transport has no round trip of its own.
    const PING_EVERY: Duration = Duration::from_secs(2);

    /// The transport has measured the round trip.
    pub(crate) fn set_round_trip(&self, round_trip: Duration) {
        self.ping().round_trip = Some(round_trip);
    }

    /// What to send as a ping, if one is due. One that is not answered makes room for the next.
    pub(crate) fn next_ping(&self, now: Timestamp) -> Option<[u8; 8]> {
        let mut ping = self.ping();
        let number = match ping.sent {
            Some((_, at)) if now < at + Self::PING_EVERY => return None,
            Some((number, _)) => number.wrapping_add(1),
            None => 0,
        };
        (ping.sent, ping.answered) = (Some((number, now)), false);
        Some(number.to_le_bytes())
    }

    /// A pong has come. One that answers no ping of ours, or answers it twice, says nothing.
    pub(crate) fn take_pong(&self, now: Timestamp, payload: &[u8]) {
        let mut ping = self.ping();
        if let Some((number, at)) = ping.sent
            && payload == number.to_le_bytes()
            && !ping.answered
        {
            (ping.round_trip, ping.answered) = (Some(now.saturating_since(at)), true);
        }
    }

    /// Bytes of the reliable stream have arrived. Waits while too much of it has not been taken.
    pub(crate) async fn deliver_stream(&self, bytes: Bytes) {
        loop {
            {
                let mut inbound = self.inbound();
                if inbound.stream_bytes < Self::MAX_STREAM {
                    inbound.stream_bytes += bytes.len() + Self::PIECE;
                    inbound.queue.push_back((now(), Arrived::Stream(bytes)));
                    break;
                }
            }
            self.space.notified().await;
        }
        self.bell.ring(Urgency::Now);
    }

    pub(crate) fn deliver_datagram(&self, bytes: Bytes) {
        let mut inbound = self.inbound();
        if inbound.datagrams >= Self::MAX_DATAGRAMS {
            let oldest =
                inbound.queue.iter().position(|(_, arrived)| matches!(arrived, Arrived::Datagram(_)));
            oldest.and_then(|oldest| inbound.queue.remove(oldest));
            inbound.datagrams -= 1;
            inbound.dropped += 1;
        }
        let first = inbound.queue.is_empty();
        inbound.datagrams += 1;
        inbound.queue.push_back((now(), Arrived::Datagram(bytes)));
        drop(inbound);
        if first {
            self.bell.ring(Urgency::Next);
        }
    }

    /// The connection has ended. The first end counts.
    pub(crate) fn end(&self, end: End) {
        self.inbound().end.get_or_insert(end);
        self.bell.ring(Urgency::Now);
    }

    /// Waits for something to write, and moves it into `buffer`. What was taken before has been written.
    pub(crate) async fn next_stream(&self, buffer: &mut Vec<u8>) -> Writing {
        buffer.clear();
        loop {
            let starved = {
                let mut outbound = self.outbound();
                outbound.writing = !outbound.stream.is_empty();
                core::mem::swap(&mut outbound.stream, buffer);
                if let Some(reason) = outbound.closing {
                    return Writing::Close(reason);
                }
                if outbound.writing {
                    return Writing::Go;
                }
                core::mem::take(&mut outbound.starved)
            };
            if starved {
                self.bell.ring(Urgency::Now);
            }
            self.stream_out.notified().await;
        }
    }

    pub(crate) async fn next_datagram(&self) -> Bytes {
        loop {
            if let Some(datagram) = self.outbound().datagram.take() {
                return datagram;
            }
            self.datagram_out.notified().await;
        }
    }
}

/// The state machine's side.
impl Pipe {
    /// Appends what has arrived to `into`. Gives how it ended, if it did, and how many datagrams were dropped since.
    pub(crate) fn take<T>(
        &self,
        into: &mut Vec<T>,
        mut each: impl FnMut(Timestamp, Arrived) -> T,
    ) -> (Option<End>, u64) {
        let mut inbound = self.inbound();
        into.extend(inbound.queue.drain(..).map(|(at, arrived)| each(at, arrived)));
        let full = inbound.stream_bytes >= Self::MAX_STREAM;
        (inbound.stream_bytes, inbound.datagrams) = (0, 0);
        let taken = (inbound.end, core::mem::take(&mut inbound.dropped));
        drop(inbound);
        if full {
            self.space.notify_one();
        }
        taken
    }

    /// Takes what there is to say. `stream` is asked only when the link has written what it was given before: until
    /// then a sync message that takes the stream can still be replaced by its successor.
    pub(crate) fn hand_out(
        &self,
        stream: impl FnOnce(&mut Vec<u8>) -> bool,
        datagram: Option<Bytes>,
    ) -> HandedOut {
        let mut handed = HandedOut::default();
        let mut outbound = self.outbound();
        if outbound.closing.is_some() {
            return handed;
        }
        if outbound.writing || !outbound.stream.is_empty() {
            outbound.starved = true;
        } else if stream(&mut outbound.stream) {
            handed.stream_bytes = outbound.stream.len();
        }
        if let Some(datagram) = datagram {
            handed.datagram_bytes = Some(datagram.len());
            handed.replaced = outbound.datagram.replace(datagram).is_some();
        }
        drop(outbound);
        if handed.stream_bytes > 0 {
            self.stream_out.notify_one();
        }
        if handed.datagram_bytes.is_some() {
            self.datagram_out.notify_one();
        }
        handed
    }

    /// More of the stream, behind what waits already: for bytes that cannot be asked for later.
    pub(crate) fn append(&self, bytes: &[u8]) -> HandedOut {
        let mut outbound = self.outbound();
        if outbound.closing.is_none() {
            outbound.stream.extend_from_slice(bytes);
        }
        drop(outbound);
        self.stream_out.notify_one();
        HandedOut { stream_bytes: bytes.len(), ..HandedOut::default() }
    }

    /// Says the last, and closes.
    pub(crate) fn close(&self, reason: DisconnectReason, last: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut outbound = self.outbound();
        if outbound.closing.is_none() {
            last(&mut outbound.stream);
            outbound.closing = Some(reason);
        }
        drop(outbound);
        self.stream_out.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Clone, Default)]
    struct Rung(Arc<[AtomicU32; 2]>);

    impl Bell for Rung {
        fn ring(&self, urgency: Urgency) {
            let [now, next] = &*self.0;
            let count = if urgency == Urgency::Now { now } else { next };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Rung {
        fn counts(&self) -> [u32; 2] {
            [self.0[0].load(Ordering::Relaxed), self.0[1].load(Ordering::Relaxed)]
        }
    }

    fn pipe() -> (Pipe, Rung) {
        let patience = Patience { stall: Duration::from_secs(5), linger: Duration::from_millis(500) };
        let rung = Rung::default();
        (Pipe::new(Box::new(rung.clone()), patience), rung)
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    fn taken(pipe: &Pipe) -> Vec<Arrived> {
        let mut arrived = vec![];
        pipe.take(&mut arrived, |_, what| what);
        arrived
    }

    #[test]
    fn datagrams_wait_and_ring_once_and_the_oldest_makes_room() {
        let (pipe, rung) = pipe();
        for number in 0..40 {
            pipe.deliver_datagram(Bytes::from(vec![number]));
        }
        assert_eq!(rung.counts(), [0, 1]);
        let mut arrived = vec![];
        let (end, dropped) = pipe.take(&mut arrived, |_, what| what);
        assert_eq!((end, dropped, arrived.len()), (None, 8, 32));
        assert!(matches!(&arrived[0], Arrived::Datagram(bytes) if bytes[..] == [8]));
    }

    #[test]
    fn a_stream_that_nobody_takes_is_not_read_on() {
        let (pipe, rung) = pipe();
        let piece = Bytes::from(vec![0; 4_096]);
        let mut pieces = 0;
        while poll(pipe.deliver_stream(piece.clone())).is_ready() {
            pieces += 1;
        }
        assert_eq!((pieces, rung.counts()), (4, [4, 0]));
        assert_eq!(taken(&pipe).len(), 4);
        assert!(poll(pipe.deliver_stream(piece)).is_ready(), "room again");
        let mut bytes = 0;
        while poll(pipe.deliver_stream(Bytes::from_static(&[1]))).is_ready() {
            bytes += 1;
        }
        assert!(bytes < 256, "a byte is not free: {bytes}");
    }

    #[test]
    fn nothing_is_asked_for_while_something_is_written() {
        let (pipe, rung) = pipe();
        let say = |text: &'static [u8]| {
            move |into: &mut Vec<u8>| {
                into.extend_from_slice(text);
                true
            }
        };
        let mut buffer = vec![];
        assert_eq!(pipe.hand_out(say(b"one"), None).stream_bytes, 3);
        assert_eq!(poll(pipe.next_stream(&mut buffer)), Poll::Ready(Writing::Go));
        assert_eq!(buffer, b"one");
        assert_eq!(pipe.hand_out(|_| panic!("being written"), None).stream_bytes, 0);
        assert!(poll(pipe.next_stream(&mut buffer)).is_pending(), "written, and nothing new");
        assert_eq!(rung.counts(), [1, 0], "whoever was turned away is told");
        pipe.hand_out(say(b"two"), None);
        pipe.close(DisconnectReason::Kicked, say(b"!"));
        assert_eq!(
            poll(pipe.next_stream(&mut buffer)),
            Poll::Ready(Writing::Close(DisconnectReason::Kicked))
        );
        assert_eq!(buffer, b"two!");
    }

    #[test]
    fn the_newest_datagram_wins() {
        let (pipe, _) = pipe();
        let mut replaced = 0;
        for number in 0..3 {
            replaced += u32::from(pipe.hand_out(|_| false, Some(Bytes::from(vec![number]))).replaced);
        }
        assert_eq!(replaced, 2);
        assert_eq!(poll(pipe.next_datagram()), Poll::Ready(Bytes::from_static(&[2])));
        assert!(poll(pipe.next_datagram()).is_pending());
    }

    #[test]
    fn the_first_end_counts() {
        let (pipe, _) = pipe();
        pipe.end(End::Ours(DisconnectReason::TooSlow));
        pipe.end(End::Theirs(None));
        assert_eq!(pipe.take(&mut Vec::<()>::new(), |_, _| ()).0, Some(End::Ours(DisconnectReason::TooSlow)));
    }

    #[test]
    fn a_round_trip_is_from_a_ping_to_its_own_answer() {
        let patience = Patience { stall: Duration::from_secs(9), linger: Duration::from_secs(9) };
        let pipe = Pipe::new(Box::new(Rung::default()), patience);
        let at = |millis: u64| Timestamp::from_micros(millis * 1_000);
        let first = pipe.next_ping(at(0)).unwrap();
        assert_eq!(pipe.next_ping(at(1_999)), None, "one is under way");
        pipe.take_pong(at(20), b"made up");
        pipe.take_pong(at(20), &first[..7]);
        assert_eq!(pipe.round_trip(), None, "that answers nothing");
        pipe.take_pong(at(30), &first);
        pipe.take_pong(at(90), &first);
        assert_eq!(pipe.round_trip(), Some(Duration::from_millis(30)));
        let second = pipe.next_ping(at(2_000)).unwrap();
        pipe.take_pong(at(2_001), &first);
        assert_eq!(pipe.round_trip(), Some(Duration::from_millis(30)), "the first one's time is over");
        pipe.take_pong(at(2_050), &second);
        assert_eq!(pipe.round_trip(), Some(Duration::from_millis(50)));
    }
}
