//! Ordered bytes that are only ever late.

use core::time::Duration;
use std::collections::VecDeque;

use halftrack::Timestamp;

use crate::config::LinkConfig;
use crate::error::NetemError;
use crate::flight::MAX_UNDER_WAY;
use crate::path::{Fate, Passage, Path};
use crate::random::Random;
use crate::stats::LinkStats;

/// So that a datagram link of the same seed rolls other dice.
const PURPOSE: u64 = 0x7374_7265;

/// What is lost as one: the payload of a QUIC packet that fits every path.
const SEGMENT_BYTES: usize = 1_200;

/// Added to a round trip before the first retransmission, as Linux TCP does (`TCP_RTO_MIN`).
const MIN_RTO: Duration = Duration::from_millis(200);

/// After this many retransmissions a segment gets through whatever the loss, so that every byte arrives in the end:
/// by then it is `2^6 - 1` timeouts late.
const MAX_RETRANSMISSIONS: u32 = 6;

/// One direction of a link that carries ordered bytes, as [`LinkConfig`] says: every byte arrives, once, in order.
///
/// Bytes travel in segments of up to 1200. A segment that is lost or damaged is sent again a timeout later: a round
/// trip of the configured `delay` plus 200 ms, as Linux TCP, and twice the last for each time that it is lost again, six
/// times at most; the seventh transmission gets through. Bursts hit segments that follow each other; a retransmission
/// comes so much later that its loss is independent. Whatever was sent behind waits for it: head-of-line blocking. So
/// does jitter: a segment never overtakes. Retransmissions take nothing of the rate. `keep_order`, `reorder` and
/// `duplicate` mean nothing here.
///
/// *A partition* holds back what is sent, and what waits for the rate or for another try when it begins. When it ends,
/// all of it is sent again a timeout later. What had left before it still arrives.
///
/// *Memory.* At most `max_queue_bytes` and 65,536 segments are held back, under way or unread; what does not fit is
/// refused as a whole, so that the caller can wait, as it must with any stream.
///
/// A `now` before that of an earlier call is taken as that, and counted.
///
/// ```
/// use core::time::Duration;
/// use halftrack::Timestamp;
/// use halftrack_netem::{LinkConfig, StreamLink};
///
/// let config = LinkConfig { delay: Duration::from_millis(30), loss: 0.5, ..LinkConfig::default() };
/// let mut link = StreamLink::new(config, 7)?;
/// link.send(Timestamp::ZERO, b"first, ")?;
/// link.send(Timestamp::ZERO, b"second")?;
///
/// let mut read = vec![];
/// while let Some(arrival) = link.poll_timeout() {
///     read.extend(link.poll(arrival).unwrap_or_default());
/// }
/// assert_eq!(read, b"first, second");
/// # Ok::<(), halftrack_netem::NetemError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamLink {
    path: Path,
    /// Under way, in the order of the stream, which is that of arrival.
    flying: VecDeque<Segment>,
    /// Behind all of those, waiting for the end of a partition.
    held: VecDeque<Segment>,
    /// In both.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Segment {
    bytes: Vec<u8>,
    dice: Random,
    /// When the transmission that gets through begins its way.
    leaves: Timestamp,
    arrival: Timestamp,
}

impl StreamLink {
    /// A link that does what `config` says, by dice that depend on `seed` alone.
    pub fn new(config: LinkConfig, seed: u64) -> Result<Self, NetemError> {
        let path = Path::new(config, seed, PURPOSE)?;
        Ok(Self { path, flying: VecDeque::new(), held: VecDeque::new(), bytes: 0 })
    }

    /// Puts bytes on their way: all of them, or none when there is no room.
    pub fn send(&mut self, now: Timestamp, bytes: &[u8]) -> Result<(), NetemError> {
        let now = self.path.advance(now);
        let free = self.free_bytes();
        if bytes.len() > free {
            self.path.stats.queue_dropped += 1;
            return Err(NetemError::Full { got: bytes.len(), free });
        }
        for part in bytes.chunks(SEGMENT_BYTES) {
            let dice = self.path.count_sent(part);
            let segment = Segment { bytes: part.to_vec(), dice, leaves: now, arrival: now };
            self.bytes += part.len();
            match self.path.passage {
                Passage::Open => self.transmit(now, Duration::ZERO, segment),
                Passage::Blocked => self.held.push_back(segment),
            }
        }
        Ok(())
    }

    /// The next bytes that have arrived by `now`. Where they end says nothing: a stream has no borders.
    pub fn poll(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        let now = self.path.advance(now);
        self.poll_timeout().filter(|arrival| *arrival <= now)?;
        let Segment { bytes, .. } = self.flying.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes.len());
        self.path.count_delivered(&bytes);
        Some(bytes)
    }

    /// When the next bytes arrive, or arrived and were not taken out; `None` when none are under way. What a partition
    /// holds back is not under way.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.flying.front().map(|segment| segment.arrival)
    }

    /// Changes what happens to bytes sent from here on; what is on its way stays on its way.
    pub fn set_config(&mut self, config: LinkConfig) -> Result<(), NetemError> {
        self.path.set_config(config)
    }

    /// Begins a partition, in which everything sent is held back, or ends it.
    pub fn set_blocked(&mut self, now: Timestamp, passage: Passage) {
        let now = self.path.advance(now);
        match (self.path.passage, passage) {
            (Passage::Open, Passage::Blocked) => self.hold_back(now),
            (Passage::Blocked, Passage::Open) => self.release(now),
            _ => {}
        }
        self.path.passage = passage;
    }

    /// Drops everything that is under way or held back, as when a connection is cut and another made.
    pub fn clear(&mut self) {
        self.path.clear(self.under_way());
        self.flying.clear();
        self.held.clear();
        self.bytes = 0;
    }

    /// How many segments are under way, those held back and those not taken out included.
    pub fn under_way(&self) -> usize {
        self.flying.len() + self.held.len()
    }

    /// Bytes under way, held back or unread: the fill of the sender's socket buffer.
    pub fn under_way_bytes(&self) -> usize {
        self.bytes
    }

    /// What the link has counted, in segments.
    pub fn stats(&self) -> &LinkStats {
        &self.path.stats
    }

    /// The mean one-way delay of a segment that waits for nothing: no loss, no rate, none before it.
    pub fn mean_delay(&self) -> Duration {
        self.path.delay.mean(1.0)
    }

    /// Holds back the first that has not left, and all that would have to wait for it anyway.
    fn hold_back(&mut self, now: Timestamp) {
        let left = self.flying.iter().take_while(|segment| segment.leaves <= now).count();
        self.held = self.flying.split_off(left);
        self.path.bottleneck.clear();
    }

    fn release(&mut self, now: Timestamp) {
        let waited = self.timeout();
        while let Some(segment) = self.held.pop_front() {
            self.path.stats.retransmitted += 1;
            self.transmit(now, waited, segment);
        }
    }

    /// Sends one segment, `waited` later than it could have been.
    fn transmit(&mut self, now: Timestamp, waited: Duration, mut segment: Segment) {
        let gone = self.path.bottleneck.leave(now, segment.bytes.len());
        segment.leaves = gone + waited + self.retransmit(&mut segment.dice);
        let arrival = segment.leaves + self.path.delay.draw(&mut segment.dice);
        // spec: NETEM-06, NETEM-07
        segment.arrival = self.flying.back().map_or(arrival, |before| arrival.max(before.arrival));
        self.flying.push_back(segment);
    }

    /// How much later a segment goes for being lost.
    fn retransmit(&mut self, dice: &mut Random) -> Duration {
        let mut waited = Duration::ZERO;
        let mut timeout = self.timeout();
        let mut arrives = self.path.fate(dice) == Fate::Arrives;
        for count in 1..=MAX_RETRANSMISSIONS {
            if arrives {
                break;
            }
            self.path.stats.retransmitted += 1;
            waited += timeout;
            timeout *= 2;
            arrives = count == MAX_RETRANSMISSIONS || self.path.fate_apart(dice) == Fate::Arrives;
        }
        waited
    }

    fn timeout(&self) -> Duration {
        self.path.delay.center() * 2 + MIN_RTO
    }

    fn free_bytes(&self) -> usize {
        let segments = MAX_UNDER_WAY.saturating_sub(self.under_way());
        self.path.config.max_queue_bytes.saturating_sub(self.bytes).min(segments * SEGMENT_BYTES)
    }
}
