//! A bad network between a client and its link: the lab's, at the pace of a real clock.

use halftrack::{Link, Timestamp};
use halftrack_io::{Between, Direction};
use halftrack_netem::{DatagramLink, LinkConfig, NetemError, StreamLink};

/// Both directions, each by the same config and its own dice.
#[derive(Debug)]
pub(super) struct BadLink {
    up: Way,
    down: Way,
}

#[derive(Debug)]
struct Way {
    datagrams: DatagramLink,
    stream: StreamLink,
}

impl Way {
    fn new(config: LinkConfig, seed: u64) -> Result<Self, NetemError> {
        Ok(Self { datagrams: DatagramLink::new(config, seed)?, stream: StreamLink::new(config, seed)? })
    }

    fn poll(&mut self, now: Timestamp) -> Option<(Link, Vec<u8>)> {
        let datagram = self.datagrams.poll(now).map(|bytes| (Link::Sync, bytes));
        datagram.or_else(|| self.stream.poll(now).map(|bytes| (Link::Reliable, bytes)))
    }
}

impl BadLink {
    /// More than a stream ever has under way: a client keeps less for one that does not move.
    const MAX_BYTES: usize = 16 << 20;

    pub(super) fn new(config: LinkConfig, seed: u64) -> Result<Self, NetemError> {
        let config = LinkConfig { max_queue_bytes: Self::MAX_BYTES, ..config };
        Ok(Self { up: Way::new(config, seed ^ 0x7570)?, down: Way::new(config, seed ^ 0x646f_776e)? })
    }
}

impl Between for BadLink {
    fn send(&mut self, now: Timestamp, direction: Direction, link: Link, bytes: &[u8]) {
        let way = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        match link {
            Link::Sync => way.datagrams.send(now, bytes),
            Link::Reliable => {
                let sent = way.stream.send(now, bytes);
                debug_assert!(sent.is_ok(), "{sent:?}");
            }
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<(Direction, Link, Vec<u8>)> {
        let up = self.up.poll(now).map(|(link, bytes)| (Direction::Up, link, bytes));
        up.or_else(|| self.down.poll(now).map(|(link, bytes)| (Direction::Down, link, bytes)))
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        let due = |way: &Way| [way.datagrams.poll_timeout(), way.stream.poll_timeout()];
        [due(&self.up), due(&self.down)].into_iter().flatten().flatten().min()
    }

    fn reset(&mut self) {
        for way in [&mut self.up, &mut self.down] {
            way.datagrams.clear();
            way.stream.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn everything_of_the_stream_comes_out_in_order_and_some_datagrams_do_not() {
        let config = LinkConfig { delay: Duration::from_millis(20), loss: 0.3, ..LinkConfig::default() };
        let mut link = BadLink::new(config, 5).unwrap();
        for number in 0..200u8 {
            link.send(Timestamp::ZERO, Direction::Up, Link::Reliable, &[number]);
            link.send(Timestamp::ZERO, Direction::Down, Link::Sync, &[number]);
        }
        assert_eq!(link.poll(Timestamp::ZERO), None);
        let (mut stream, mut datagrams) = (vec![], 0);
        while let Some(due) = link.poll_timeout() {
            match link.poll(due) {
                Some((Direction::Up, Link::Reliable, bytes)) => stream.extend(bytes),
                Some((Direction::Down, Link::Sync, _)) => datagrams += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(stream, (0..200).collect::<Vec<u8>>());
        assert!((100..180).contains(&datagrams), "{datagrams}");
    }
}
