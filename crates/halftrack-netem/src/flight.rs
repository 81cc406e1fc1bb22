//! Datagrams under way, by arrival, within bounds.

use core::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use halftrack::Timestamp;

/// The most datagrams or segments on one link: empty ones take memory too, and no byte limit sees them. Half a minute
/// of a flood of 2000 a second.
pub(crate) const MAX_UNDER_WAY: usize = 65_536;

/// Something on its way.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    arrival: Timestamp,
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Item {
    /// Those that arrive together arrive in the order they were sent in.
    fn key(&self) -> (Timestamp, u64) {
        (self.arrival, self.number)
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// What has been sent and not been taken out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    items: BinaryHeap<Reverse<Item>>,
    bytes: usize,
}

impl Flight {
    /// Puts `bytes` on the way.
    pub(crate) fn launch(&mut self, arrival: Timestamp, number: u64, bytes: Vec<u8>) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        self.items.push(Reverse(Item { arrival, number, bytes }));
    }

    /// The next that has arrived by `now`.
    pub(crate) fn land(&mut self, now: Timestamp) -> Option<Item> {
        self.next_arrival().filter(|arrival| *arrival <= now)?;
        let Reverse(item) = self.items.pop()?;
        self.bytes = self.bytes.saturating_sub(item.bytes.len());
        Some(item)
    }

    pub(crate) fn next_arrival(&self) -> Option<Timestamp> {
        self.items.peek().map(|Reverse(item)| item.arrival)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn has_room(&self, bytes: usize, max_bytes: usize) -> bool {
        self.items.len() < MAX_UNDER_WAY && bytes <= max_bytes.saturating_sub(self.bytes)
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_first_lands_first_and_together_as_sent() {
        let mut flight = Flight::default();
        for (number, arrival) in [(1, 30), (2, 20), (3, 10), (4, 20)] {
            flight.launch(Timestamp::from_micros(arrival), number, vec![0; 10]);
        }
        assert_eq!(flight.next_arrival(), Some(Timestamp::from_micros(10)));
        assert!(flight.land(Timestamp::from_micros(9)).is_none());
        let landed: Vec<_> =
            core::iter::from_fn(|| flight.land(Timestamp::from_micros(20))).map(|item| item.number).collect();
        assert_eq!(landed, [3, 2, 4]);
        assert_eq!((flight.len(), flight.bytes), (1, 10));
    }

    #[test]
    fn room_is_counted_in_bytes_and_in_items() {
        let mut flight = Flight::default();
        flight.launch(Timestamp::ZERO, 0, vec![0; 90]);
        assert!(flight.has_room(10, 100));
        assert!(!flight.has_room(11, 100));
        for number in 1..MAX_UNDER_WAY {
            assert!(flight.has_room(0, 100));
            flight.launch(Timestamp::ZERO, number as u64, vec![]);
        }
        assert!(!flight.has_room(0, 100));
        flight.clear();
        assert!(flight.has_room(100, 100));
    }
}
