//! The bad network in between: both directions, both lanes, changeable while it runs.
//!
//! Everything goes through it, also when nothing is asked of it: so a change never lets a stream overtake itself. Knows
//! bytes and time, neither messages nor transports.

use core::time::Duration;

use halftrack::{Link, Timestamp};
use halftrack_netem::{DatagramLink, LinkConfig, NetemError, Passage, StreamLink};

use crate::json::{Json, JsonError};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the server.
    Up,
    /// From it.
    Down,
}

/// What the page asks of a direction. What is left out is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// One way, milliseconds.
    delay_ms: f64,
    /// Sigma of the delay, milliseconds.
    jitter_ms: f64,
    /// Share of datagrams lost, 0 to 1.
    loss: f64,
    /// Mean number of datagrams lost in a row; 0 and 1 mean that losses do not depend on each other.
    burst: f64,
    /// Share of datagrams that overtake, 0 to 1.
    reorder: f64,
    /// Share of datagrams that arrive twice, 0 to 1.
    duplicate: f64,
    /// Kilobits per second; 0 for no limit.
    rate_kbit: f64,
}

impl LinkSettings {
    /// Reads settings: an object of numbers.
    ///
    /// # Errors
    /// When it is not, or one of them is none of ours.
    pub fn read(json: &str) -> Result<Self, JsonError> {
        const KNOWN: &str = "delay_ms, jitter_ms, loss, burst, reorder, duplicate, rate_kbit";
        let mut settings = Self::default();
        let Json::Object(entries) = Json::read(json)? else {
            return Err(JsonError::Unknown { known: KNOWN });
        };
        for (key, value) in entries {
            let number =
                value.number().ok_or(JsonError::Key { key: "link", expected: "an object of numbers" })?;
            let slot = match key.as_str() {
                "delay_ms" => &mut settings.delay_ms,
                "jitter_ms" => &mut settings.jitter_ms,
                "loss" => &mut settings.loss,
                "burst" => &mut settings.burst,
                "reorder" => &mut settings.reorder,
                "duplicate" => &mut settings.duplicate,
                "rate_kbit" => &mut settings.rate_kbit,
                _ => return Err(JsonError::Unknown { known: KNOWN }),
            };
            *slot = number;
        }
        Ok(settings)
    }

    /// As the links take it.
    pub(crate) fn config(&self) -> LinkConfig {
        let millis = |ms: f64| Duration::try_from_secs_f64(ms.max(0.0) / 1e3).unwrap_or(Duration::MAX);
        LinkConfig {
            delay: millis(self.delay_ms),
            jitter: millis(self.jitter_ms),
            loss: self.loss,
            burst: self.burst.max(1.0),
            reorder: self.reorder,
            duplicate: self.duplicate,
            // A float saturates; one that is too small is refused where it is checked.
            rate_bits_per_second: (self.rate_kbit > 0.0).then_some((self.rate_kbit * 1e3) as u64),
            ..LinkConfig::default()
        }
    }
}

#[derive(Debug)]
struct Lanes {
    sync: DatagramLink,
    reliable: StreamLink,
}

impl Lanes {
    fn new(seed: u64) -> Result<Self, NetemError> {
        let config = LinkConfig::default();
        Ok(Self { sync: DatagramLink::new(config, seed)?, reliable: StreamLink::new(config, seed)? })
    }

    fn poll(&mut self, now: Timestamp) -> Option<(Link, Vec<u8>)> {
        let datagram = self.sync.poll(now).map(|bytes| (Link::Sync, bytes));
        datagram.or_else(|| self.reliable.poll(now).map(|bytes| (Link::Reliable, bytes)))
    }
}

/// Both directions.
#[derive(Debug)]
pub(crate) struct Network {
    up: Lanes,
    down: Lanes,
}

impl Network {
    /// One that does nothing.
    pub(crate) fn new(seed: u64) -> Result<Self, NetemError> {
        Ok(Self { up: Lanes::new(seed)?, down: Lanes::new(seed ^ 1)? })
    }

    /// Puts bytes on their way.
    ///
    /// # Errors
    /// When a stream has no room for them: it cannot go on.
    pub(crate) fn send(
        &mut self,
        now: Timestamp,
        direction: Direction,
        link: Link,
        bytes: &[u8],
    ) -> Result<(), NetemError> {
        let lanes = self.lanes(direction);
        match link {
            Link::Sync => {
                lanes.sync.send(now, bytes);
                Ok(())
            }
            Link::Reliable => lanes.reliable.send(now, bytes),
        }
    }

    /// What has arrived.
    pub(crate) fn poll(&mut self, now: Timestamp, direction: Direction) -> Option<(Link, Vec<u8>)> {
        self.lanes(direction).poll(now)
    }

    /// When something arrives next.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let lanes = [&self.up, &self.down];
        lanes
            .iter()
            .flat_map(|lanes| [lanes.sync.poll_timeout(), lanes.reliable.poll_timeout()])
            .flatten()
            .min()
    }

    /// Changes what happens to what is sent from here on.
    ///
    /// # Errors
    /// When a number is out of its range; nothing has changed then.
    pub(crate) fn set(&mut self, direction: Direction, config: LinkConfig) -> Result<(), NetemError> {
        let lanes = self.lanes(direction);
        lanes.sync.set_config(config)?;
        lanes.reliable.set_config(config)
    }

    /// Begins or ends a partition.
    pub(crate) fn set_passage(&mut self, now: Timestamp, passage: Passage) {
        for lanes in [&mut self.up, &mut self.down] {
            lanes.sync.set_blocked(now, passage);
            lanes.reliable.set_blocked(now, passage);
        }
    }

    /// The connection is another one.
    pub(crate) fn clear(&mut self) {
        for lanes in [&mut self.up, &mut self.down] {
            lanes.sync.clear();
            lanes.reliable.clear();
        }
    }

    /// Segments of the stream to the server that are under way.
    pub(crate) fn stream_backlog(&self) -> usize {
        self.up.reliable.under_way()
    }

    fn lanes(&mut self, direction: Direction) -> &mut Lanes {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_a_page_says() {
        let settings: LinkSettings =
            LinkSettings::read(r#"{"delay_ms":60,"loss":0.02,"rate_kbit":64}"#).unwrap();
        let config = settings.config();
        assert_eq!((config.delay, config.loss), (Duration::from_millis(60), 0.02));
        assert_eq!((config.burst, config.rate_bits_per_second), (1.0, Some(64_000)));
        assert!(config.check().is_ok() && LinkSettings::default().config() == LinkConfig::default());
        for bad in [r#"{"delay_ms":1e9}"#, r#"{"loss":2}"#, r#"{"rate_kbit":0.5}"#] {
            let settings = LinkSettings::read(bad).unwrap();
            assert!(settings.config().check().is_err(), "{bad}");
        }
        assert!(LinkSettings::read(r#"{"delay":60}"#).is_err(), "a slip of the pen is noticed");
    }

    #[test]
    fn a_change_takes_hold_and_a_stream_keeps_its_order() {
        let mut network = Network::new(1).unwrap();
        let at = |ms: u64| Timestamp::from_micros(ms * 1_000);
        let delay = LinkConfig { delay: Duration::from_millis(80), ..LinkConfig::default() };
        network.set(Direction::Down, delay).unwrap();
        for link in [Link::Sync, Link::Reliable] {
            network.send(at(0), Direction::Down, link, b"one").unwrap();
        }
        network.set(Direction::Down, LinkConfig::default()).unwrap();
        for link in [Link::Sync, Link::Reliable] {
            network.send(at(10), Direction::Down, link, b"two").unwrap();
        }
        assert_eq!(network.poll(at(10), Direction::Down), Some((Link::Sync, b"two".to_vec())));
        assert_eq!(network.poll(at(10), Direction::Down), None);
        assert_eq!(network.poll_timeout(), Some(at(80)));
        let mut late = vec![];
        while let Some((link, bytes)) = network.poll(at(80), Direction::Down) {
            late.push((link, bytes));
        }
        let expected = [(Link::Sync, b"one"), (Link::Reliable, b"one"), (Link::Reliable, b"two")];
        assert_eq!(late, expected.map(|(link, bytes)| (link, bytes.to_vec())));
    }

    #[test]
    fn a_partition_loses_datagrams_and_holds_the_stream() {
        let mut network = Network::new(1).unwrap();
        let now = Timestamp::from_micros(5);
        network.set_passage(now, Passage::Blocked);
        network.send(now, Direction::Up, Link::Sync, b"gone").unwrap();
        network.send(now, Direction::Up, Link::Reliable, b"kept").unwrap();
        assert_eq!(network.poll(now, Direction::Up), None);
        assert_eq!(network.stream_backlog(), 1);
        network.set_passage(now, Passage::Open);
        let later = now + Duration::from_secs(5);
        assert_eq!(network.poll(later, Direction::Up), Some((Link::Reliable, b"kept".to_vec())));
    }
}
