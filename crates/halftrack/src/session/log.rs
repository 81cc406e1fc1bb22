//! What one side has sent on the reliable lane and the other may not have: kept until it is acknowledged, so that
//! after a cut every message arrives exactly once.
//!
//! Messages are numbered from one, in each direction, for the life of the session; the numbers are counted on both
//! sides and never sent with a message, because the stream under them is ordered. When a connection is cut, both
//! sides say how many they have received, and the log goes on from there. Knows bytes, not what they mean.

use std::collections::VecDeque;

use serde::Serialize;

use crate::saved::{Piece, Unrestorable, ensure};
use crate::wire::Frame;

/// The log is full: the other side has been away for too long. The session cannot be resumed any more; whoever
/// comes back starts from full state, and is told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more has been sent than a resumed session can catch up with")]
pub struct LogOverflow;

/// A resume that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeRefused {
    /// The other side misses messages that are no longer kept.
    #[error("messages up to {kept_from} are no longer kept, and the other side has only {received}")]
    Overflow {
        /// How many the other side has received.
        received: u64,
        /// The last message that was dropped.
        kept_from: u64,
    },
    /// The other side claims messages that were never sent.
    #[error("the other side claims {received} messages of {sent} sent")]
    NeverSent {
        /// How many it claims.
        received: u64,
        /// How many there are.
        sent: u64,
    },
    /// Messages are numbered anew, and the other side is not known to have heard of it: what it has received may be some
    /// of the old ones.
    #[error("messages are numbered anew, and the other side may not know")]
    NumberedAnew,
}

/// Messages sent and not known to have arrived, and the count of messages received.
///
/// ```
/// use halftrack::session::ReliableLog;
///
/// let mut log = ReliableLog::new(64, 4_096);
/// log.push(b"one")?;
/// log.push(b"two")?;
/// assert_eq!(log.poll(), Some(b"one".as_slice()));
/// // The connection is cut; "one" has arrived, "two" was never written.
/// log.resume(1)?;
/// assert_eq!(log.poll(), Some(b"two".as_slice()));
/// assert_eq!(log.poll(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReliableLog {
    /// Lengths of the kept messages, oldest first: numbers `acknowledged + 1 ..= sent`.
    lengths: VecDeque<usize>,
    /// The messages themselves, one after the other, from `start` on. One piece of memory, used again and again.
    bytes: Vec<u8>,
    start: usize,
    max_messages: usize,
    max_bytes: usize,
    /// How many the other side is known to have received.
    acknowledged: u64,
    /// How many of the kept ones have been written to this connection, and how long they are together.
    written: usize,
    written_bytes: usize,
    /// How many messages have been received from the other side.
    received: u64,
    overflowed: bool,
    /// The other side is not known to have heard that this is another log than it had.
    unknown: bool,
}

impl ReliableLog {
    /// Bytes that the log of a session holds at least: four of the longest messages, so that no single message that a
    /// sender may send overflows it.
    pub const MIN_BYTES: usize = 4 * Frame::MAX_BYTES;

    /// A log that keeps at most so many messages and bytes.
    pub fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self {
            lengths: VecDeque::new(),
            bytes: Vec::new(),
            start: 0,
            max_messages,
            max_bytes,
            acknowledged: 0,
            written: 0,
            written_bytes: 0,
            received: 0,
            overflowed: false,
            unknown: false,
        }
    }

    /// A log in the place of another, of which the other side has yet to hear. Until it acknowledges something, by a
    /// connection on which it was told, it cannot be resumed: the numbers that it knows may be those of the old one.
    pub fn numbered_anew(max_messages: usize, max_bytes: usize) -> Self {
        Self { unknown: true, ..Self::new(max_messages, max_bytes) }
    }

    /// Whether a message of so many bytes would be taken. What is sent because somebody wants it can be refused by this,
    /// and the session goes on.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        let fits = self.lengths.len() < self.max_messages
            && self.kept_bytes().saturating_add(bytes) <= self.max_bytes;
        fits && !self.overflowed
    }

    /// Takes a message to be sent.
    ///
    /// # Errors
    /// When the log is full. The message is not taken, and the session can no longer be resumed.
    pub fn push(&mut self, message: &[u8]) -> Result<(), LogOverflow> {
        // An empty message still takes a place: sizes of zero must not get round the limits.
        if !self.has_room_for(message.len()) {
            self.overflowed = true;
            return Err(LogOverflow);
        }
        // What is forgotten makes room before more is taken, at most once for as much as is kept.
        if self.start > self.kept_bytes() {
            self.bytes.drain(..core::mem::take(&mut self.start));
        }
        self.bytes.extend_from_slice(message);
        self.lengths.push_back(message.len());
        Ok(())
    }

    /// The next message to be written to this connection.
    pub fn poll(&mut self) -> Option<&[u8]> {
        let length = *self.lengths.get(self.written)?;
        let from = self.start + self.written_bytes;
        self.written += 1;
        self.written_bytes += length;
        self.bytes.get(from..from + length)
    }

    /// The other side says that it has received so many in all: those are forgotten.
    ///
    /// # Errors
    /// When it claims what was never written to it.
    pub fn acknowledge(&mut self, received: u64) -> Result<(), ResumeRefused> {
        let written = self.acknowledged + self.written as u64;
        if received > written {
            return Err(ResumeRefused::NeverSent { received, sent: written });
        }
        self.unknown = false;
        self.forget_through(received);
        Ok(())
    }

    /// A new connection of the same session: the other side has received so many. Polling goes on after them.
    ///
    /// # Errors
    /// When it misses what is no longer kept, claims what was never sent, or may not know of this log. Nothing has
    /// changed then.
    pub fn resume(&mut self, received: u64) -> Result<(), ResumeRefused> {
        if self.unknown {
            return Err(ResumeRefused::NumberedAnew);
        }
        let sent = self.acknowledged + self.lengths.len() as u64;
        if received > sent {
            return Err(ResumeRefused::NeverSent { received, sent });
        }
        if self.overflowed || received < self.acknowledged {
            return Err(ResumeRefused::Overflow { received, kept_from: self.acknowledged });
        }
        self.forget_through(received);
        (self.written, self.written_bytes) = (0, 0);
        Ok(())
    }

    /// The other side had so many, as was written down when it said so.
    pub(crate) fn deliver(&mut self, received: u64) {
        self.unknown = false;
        self.forget_through(received);
    }

    /// Whether the other side may not know of this log yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown
    }

    fn forget_through(&mut self, received: u64) {
        while self.acknowledged < received {
            let Some(length) = self.lengths.pop_front() else { break };
            self.start += length;
            self.acknowledged += 1;
            if let Some(written) = self.written.checked_sub(1) {
                self.written = written;
                self.written_bytes -= length;
            }
        }
    }

    /// A message of the other side has arrived, and is acted on.
    pub fn receive(&mut self) {
        self.received += 1;
    }

    /// How many messages of the other side have arrived: what it is told, to forget them.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// How many messages the other side is known to have.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Messages and bytes kept.
    pub fn len(&self) -> (usize, usize) {
        (self.lengths.len(), self.kept_bytes())
    }

    fn kept_bytes(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether everything sent has arrived.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }
}

/// The state of a [`ReliableLog`]: lengths and bytes of its messages, and its counts.
pub(crate) type SavedLog = ((VecDeque<usize>, Piece<Vec<u8>>), (u64, usize, u64, bool, bool));

impl ReliableLog {
    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        let Self {
            lengths,
            bytes,
            start,
            max_messages: _,
            max_bytes: _,
            acknowledged,
            written,
            written_bytes: _,
            received,
            overflowed,
            unknown,
        } = self;
        let bytes = Piece(bytes.get(*start..).unwrap_or_default());
        ((lengths, bytes), (acknowledged, written, received, overflowed, unknown))
    }

    pub(crate) fn restore(
        &mut self,
        ((lengths, Piece(bytes)), counts): SavedLog,
    ) -> Result<(), Unrestorable> {
        (self.lengths, self.bytes, self.start) = (lengths, bytes, 0);
        (self.acknowledged, self.written, self.received, self.overflowed, self.unknown) = counts;
        let whole = self.lengths.iter().fold(0usize, |sum, length| sum.saturating_add(*length));
        let fits = self.lengths.len() <= self.max_messages && whole <= self.max_bytes;
        ensure(fits && whole == self.bytes.len() && self.written <= self.lengths.len(), "reliable log")?;
        self.written_bytes = self.lengths.iter().take(self.written).sum();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log() -> ReliableLog {
        ReliableLog::new(4, 10)
    }

    #[test]
    fn limits_hold_just_inside_and_not_just_outside() {
        let mut full = log();
        for _ in 0..4 {
            assert_eq!(full.push(b""), Ok(()));
        }
        assert_eq!(full.push(b""), Err(LogOverflow), "a fifth, though it has no bytes");
        let mut full = log();
        assert_eq!(full.push(b"0123456789"), Ok(()));
        assert_eq!(full.push(b"0"), Err(LogOverflow));
        assert_eq!(full.len(), (1, 10));
    }

    #[test]
    fn after_an_overflow_a_resume_is_refused_by_name() {
        let mut log = log();
        log.push(b"0123456789").unwrap();
        assert_eq!(log.push(b"x"), Err(LogOverflow));
        log.poll();
        log.acknowledge(1).unwrap();
        assert_eq!(log.push(b"y"), Err(LogOverflow), "a message is missing: nothing after it may pass");
        assert_eq!(log.resume(1), Err(ResumeRefused::Overflow { received: 1, kept_from: 1 }));
    }

    #[test]
    fn claims_are_checked() {
        let mut log = log();
        log.push(b"a").unwrap();
        log.push(b"b").unwrap();
        log.poll();
        assert_eq!(log.acknowledge(2), Err(ResumeRefused::NeverSent { received: 2, sent: 1 }));
        assert_eq!(log.acknowledge(1), Ok(()));
        assert_eq!(log.acknowledge(1), Ok(()), "told again");
        assert_eq!(log.acknowledge(0), Ok(()), "told late");
        assert_eq!(log.resume(3), Err(ResumeRefused::NeverSent { received: 3, sent: 2 }));
        assert_eq!(log.resume(0), Err(ResumeRefused::Overflow { received: 0, kept_from: 1 }));
        assert_eq!(log.resume(1), Ok(()));
        assert_eq!(log.poll(), Some(b"b".as_slice()));
    }

    proptest! {
        /// A sender, a receiver and a stream between them that is cut at any place, with whatever was on the way lost:
        /// every message arrives exactly once, in order.
        #[test]
        fn session_08_every_message_arrives_exactly_once_across_any_cuts(
            script in prop::collection::vec(prop_oneof![
                4 => Just('s'), // send
                4 => Just('w'), // write one to the stream
                4 => Just('d'), // deliver one from the stream
                2 => Just('a'), // acknowledge
                1 => Just('c'), // cut and resume
            ], 0..300),
        ) {
            let (mut sender, mut receiver) = (ReliableLog::new(1_000, 100_000), ReliableLog::new(1, 1));
            let (mut sent, mut got) = (0u32, vec![]);
            let mut stream: VecDeque<Vec<u8>> = VecDeque::new();
            let deliver = |stream: &mut VecDeque<Vec<u8>>, receiver: &mut ReliableLog, got: &mut Vec<u32>| {
                if let Some(message) = stream.pop_front() {
                    receiver.receive();
                    got.push(u32::from_le_bytes(message.try_into().unwrap()));
                }
            };
            for action in script.into_iter().chain("c".chars()) {
                match action {
                    's' => {
                        sender.push(&sent.to_le_bytes()).unwrap();
                        sent += 1;
                    }
                    'w' => stream.extend(sender.poll().map(<[u8]>::to_vec)),
                    'd' => deliver(&mut stream, &mut receiver, &mut got),
                    'a' => sender.acknowledge(receiver.received()).unwrap(),
                    _ => {
                        stream.clear();
                        sender.resume(receiver.received()).unwrap();
                    }
                }
            }
            while let Some(message) = sender.poll() {
                stream.push_back(message.to_vec());
            }
            while !stream.is_empty() {
                deliver(&mut stream, &mut receiver, &mut got);
            }
            prop_assert_eq!(got, (0..sent).collect::<Vec<_>>());
            sender.acknowledge(receiver.received()).unwrap();
            prop_assert!(sender.is_empty());
            prop_assert_eq!(sender.len(), (0, 0));
        }
    }
}
