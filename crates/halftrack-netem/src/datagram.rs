//! Datagrams that may be lost, late, twice or out of order.

use core::time::Duration;

use halftrack::Timestamp;

use crate::config::LinkConfig;
use crate::error::NetemError;
use crate::flight::Flight;
use crate::path::{Fate, Passage, Path};
use crate::random::Random;
use crate::stats::LinkStats;

/// So that a stream link of the same seed rolls other dice.
const PURPOSE: u64 = 0x6461_7461;

/// One direction of a link that carries datagrams, as [`LinkConfig`] says.
///
/// On its way a datagram meets, in this order: a partition; the queue and the rate; loss; damage; delay, or none when
/// it overtakes; a copy of itself with a delay of its own. Whatever was decided is decided: later changes of config
/// leave what is under way alone.
///
/// *Memory.* Without a rate at most `max_queue_bytes` are under way, unread ones included. With a rate, twice (as each
/// may have a copy) `max_queue_bytes` and what the rate lets through within the longest delay. In both cases at most
/// 65,536 datagrams. What does not fit is dropped and counted, a copy just not made.
///
/// A `now` before that of an earlier call is taken as that, and counted.
///
/// ```
/// use core::time::Duration;
/// use halftrack::Timestamp;
/// use halftrack_netem::{DatagramLink, LinkConfig};
///
/// let config = LinkConfig { delay: Duration::from_millis(30), ..LinkConfig::default() };
/// let mut link = DatagramLink::new(config, 7)?;
/// link.send(Timestamp::ZERO, b"input");
///
/// let arrival = Timestamp::from_micros(30_000);
/// assert_eq!(link.poll_timeout(), Some(arrival));
/// assert_eq!(link.poll(Timestamp::from_micros(29_999)), None);
/// assert_eq!(link.poll(arrival), Some(b"input".to_vec()));
/// # Ok::<(), halftrack_netem::NetemError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DatagramLink {
    path: Path,
    flight: Flight,
    /// The highest number delivered.
    newest: u64,
    /// The latest arrival so far, which nothing overtakes where order is kept.
    last_arrival: Timestamp,
}

impl DatagramLink {
    /// A link that does what `config` says, by dice that depend on `seed` alone.
    pub fn new(config: LinkConfig, seed: u64) -> Result<Self, NetemError> {
        let path = Path::new(config, seed, PURPOSE)?;
        Ok(Self { path, flight: Flight::default(), newest: 0, last_arrival: Timestamp::ZERO })
    }

    /// Puts a datagram on its way, or loses it.
    pub fn send(&mut self, now: Timestamp, bytes: &[u8]) {
        let now = self.path.advance(now);
        let mut dice = self.path.count_sent(bytes);
        if self.path.passage == Passage::Blocked {
            self.path.stats.blocked += 1;
            return;
        }
        if !self.path.bottleneck.has_room(now, bytes.len(), self.path.config.max_queue_bytes) {
            self.path.stats.queue_dropped += 1;
            return;
        }
        let gone = self.path.bottleneck.leave(now, bytes.len());
        if self.path.fate(&mut dice) == Fate::Arrives {
            self.launch(gone, bytes, &mut dice);
        }
    }

    /// The next datagram that has arrived by `now`, in order of arrival.
    pub fn poll(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        let now = self.path.advance(now);
        let item = self.flight.land(now)?;
        self.path.count_delivered(&item.bytes);
        self.path.stats.reordered += u64::from(item.number < self.newest);
        self.newest = self.newest.max(item.number);
        Some(item.bytes)
    }

    /// When the next datagram arrives, or arrived and was not taken out; `None` when none is under way.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.flight.next_arrival()
    }

    /// Changes what happens to datagrams sent from here on; what is on its way stays on its way.
    pub fn set_config(&mut self, config: LinkConfig) -> Result<(), NetemError> {
        self.path.set_config(config)
    }

    /// Begins or ends a partition, in which everything sent is lost; what was sent before still arrives.
    pub fn set_blocked(&mut self, now: Timestamp, passage: Passage) {
        self.path.advance(now);
        self.path.passage = passage;
    }

    /// Drops everything that is under way.
    pub fn clear(&mut self) {
        self.path.clear(self.flight.len());
        self.flight.clear();
        self.last_arrival = Timestamp::ZERO;
    }

    /// How many datagrams are under way, those not taken out included.
    pub fn under_way(&self) -> usize {
        self.flight.len()
    }

    /// What the link has counted.
    pub fn stats(&self) -> &LinkStats {
        &self.path.stats
    }

    /// The mean one-way delay of what arrives, cut at zero and overtaking included; without waiting for the rate or
    /// for order, which depend on the traffic.
    pub fn mean_delay(&self) -> Duration {
        self.path.delay.mean(1.0 - self.overtaking())
    }

    fn launch(&mut self, gone: Timestamp, bytes: &[u8], dice: &mut Random) {
        let overtakes = dice.happens(self.overtaking());
        let copied = dice.happens(self.path.config.duplicate);
        let delay = self.path.delay.draw(dice);
        let delay = if overtakes { Duration::ZERO } else { delay };
        // spec: NETEM-08
        if !self.flight.has_room(bytes.len(), self.max_bytes()) {
            self.path.stats.queue_dropped += 1;
            return;
        }
        self.path.stats.overtaking += u64::from(overtakes);
        self.launch_at(gone + delay, bytes);
        if copied && self.flight.has_room(bytes.len(), self.max_bytes()) {
            self.path.stats.duplicated += 1;
            let delay = self.path.delay.draw(dice);
            self.launch_at(gone + delay, bytes);
        }
    }

    fn launch_at(&mut self, arrival: Timestamp, bytes: &[u8]) {
        // spec: NETEM-05
        // Noted for every datagram, so that order can be kept from any moment on.
        self.last_arrival = self.last_arrival.max(arrival);
        let arrival = if self.path.config.keep_order { self.last_arrival } else { arrival };
        self.flight.launch(arrival, self.path.stats.sent, bytes.to_vec());
    }

    /// The share that overtakes: none where order is kept.
    fn overtaking(&self) -> f64 {
        if self.path.config.keep_order { 0.0 } else { self.path.config.reorder }
    }

    fn max_bytes(&self) -> usize {
        let queue = self.path.config.max_queue_bytes;
        match self.path.config.rate_bits_per_second {
            None => queue,
            Some(_) => queue.saturating_add(self.path.bytes_in_delay()).saturating_mul(2),
        }
    }
}
