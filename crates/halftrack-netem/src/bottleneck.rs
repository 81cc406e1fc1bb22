//! A rate, and the queue in front of it: what leaves when, and what finds no room.
//!
//! Knows sizes and times, not bytes.

use core::time::Duration;
use std::collections::VecDeque;

use halftrack::Timestamp;

use crate::flight::MAX_UNDER_WAY;

const BITS_TIMES_MICROS: u64 = 8 * 1_000_000;

/// One thing leaves after the other; the queue is drop-tail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bottleneck {
    bits_per_second: Option<u64>,
    /// Those not gone yet: when each is gone, and its size.
    waiting: VecDeque<(Timestamp, usize)>,
    waiting_bytes: usize,
    /// When the last is gone, in whole microseconds and what is left of one, in units of `1 / bits_per_second`.
    free_at: Timestamp,
    left_over: u64,
}

impl Bottleneck {
    pub(crate) fn new(bits_per_second: Option<u64>) -> Self {
        Self { bits_per_second, ..Self::default() }
    }

    /// Changes the rate for what comes; what waits leaves as it would have.
    pub(crate) fn set_rate(&mut self, bits_per_second: Option<u64>) {
        if self.bits_per_second != bits_per_second {
            self.bits_per_second = bits_per_second;
            self.free_at = self.last_gone();
            self.left_over = 0;
        }
    }

    /// Whether `bytes` may line up at `now`, with at most `max_bytes` waiting, the one that is leaving included.
    pub(crate) fn has_room(&mut self, now: Timestamp, bytes: usize, max_bytes: usize) -> bool {
        self.forget_gone(now);
        self.bits_per_second.is_none()
            || (self.waiting.len() < MAX_UNDER_WAY && bytes <= max_bytes.saturating_sub(self.waiting_bytes))
    }

    /// Lines up `bytes` at `now`: when the last bit of them is gone.
    pub(crate) fn leave(&mut self, now: Timestamp, bytes: usize) -> Timestamp {
        self.forget_gone(now);
        let Some(rate) = self.bits_per_second else { return now.max(self.free_at) };
        if self.free_at < now {
            self.free_at = now;
            self.left_over = 0;
        }
        // Whole microseconds per datagram would make a fast link slower than it is: the rest is carried over.
        let units = (bytes as u64).saturating_mul(BITS_TIMES_MICROS).saturating_add(self.left_over);
        self.free_at = self.free_at + Duration::from_micros(units / rate);
        self.left_over = units % rate;
        let gone = self.last_gone();
        self.waiting.push_back((gone, bytes));
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        gone
    }

    /// The whole microsecond by which the last is gone.
    fn last_gone(&self) -> Timestamp {
        self.free_at + Duration::from_micros(u64::from(self.left_over > 0))
    }

    fn forget_gone(&mut self, now: Timestamp) {
        while let Some(&(gone, bytes)) = self.waiting.front()
            && gone <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
        }
    }

    /// Nothing waits any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.bits_per_second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn a_datagram_takes_its_bits_at_the_rate() {
        let mut bottleneck = Bottleneck::new(Some(1_000_000));
        assert_eq!(bottleneck.leave(at(0), 1_250), at(10_000));
        assert_eq!(bottleneck.leave(at(0), 125), at(11_000));
        assert_eq!(bottleneck.leave(at(50_000), 125), at(51_000), "an idle sender saves nothing up");
    }

    #[test]
    fn a_fast_link_is_as_fast_as_its_rate_and_no_faster() {
        // 0.3 us each.
        let mut bottleneck = Bottleneck::new(Some(2_666_666_667));
        let gone: Vec<_> = (0..10_000).map(|_| bottleneck.leave(at(0), 100).as_micros()).collect();
        assert_eq!(gone[..4], [1, 1, 1, 2], "never before its last bit");
        assert_eq!(gone[9_999], 3_000);
    }

    #[test]
    fn what_is_gone_makes_room() {
        let mut bottleneck = Bottleneck::new(Some(8_000_000));
        bottleneck.leave(at(0), 1_000);
        bottleneck.leave(at(0), 1_000);
        assert!(bottleneck.has_room(at(999), 500, 2_500));
        assert!(!bottleneck.has_room(at(999), 501, 2_500));
        assert!(bottleneck.has_room(at(1_000), 1_500, 2_500));
        assert!(!bottleneck.has_room(at(1_000), 1_501, 2_500));
        assert!(bottleneck.has_room(at(2_000), 2_500, 2_500));
    }

    #[test]
    fn empty_ones_are_bounded_too() {
        let mut bottleneck = Bottleneck::new(Some(1_000));
        bottleneck.leave(at(0), 1_000);
        for _ in 1..MAX_UNDER_WAY {
            assert!(bottleneck.has_room(at(0), 0, 2_000));
            bottleneck.leave(at(0), 0);
        }
        assert!(!bottleneck.has_room(at(0), 0, 2_000));
    }

    #[test]
    fn what_is_gone_is_forgotten_without_being_asked_for_room() {
        let mut bottleneck = Bottleneck::new(Some(8_000_000));
        for step in 0..1_000 {
            bottleneck.leave(at(step * 100), 100);
        }
        assert_eq!((bottleneck.waiting.len(), bottleneck.waiting_bytes), (1, 100));
    }

    #[test]
    fn a_part_of_a_microsecond_is_rounded_up_when_the_rate_changes() {
        let mut bottleneck = Bottleneck::new(Some(3_000_000));
        assert_eq!(bottleneck.leave(at(0), 1), at(3));
        bottleneck.set_rate(Some(1_000_000));
        assert_eq!(bottleneck.leave(at(0), 1), at(11));
    }

    #[test]
    fn a_new_rate_is_for_what_comes() {
        let mut bottleneck = Bottleneck::new(Some(1_000_000));
        assert_eq!(bottleneck.leave(at(0), 1_250), at(10_000));
        bottleneck.set_rate(Some(10_000_000));
        assert_eq!(bottleneck.leave(at(0), 1_250), at(11_000));
        bottleneck.set_rate(None);
        assert_eq!(bottleneck.leave(at(0), 1_250), at(11_000), "still behind the others");
        assert_eq!(bottleneck.leave(at(20_000), 1_250), at(20_000));
        bottleneck.set_rate(Some(1_000_000));
        bottleneck.leave(at(20_000), 125_000);
        bottleneck.clear();
        assert_eq!(bottleneck.leave(at(20_000), 125), at(21_000));
    }
}
