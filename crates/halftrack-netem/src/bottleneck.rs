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
        let Some(rate) = self.bits_per_second else { return now.max(self.free_at) };
        if self.free_at < now {
            self.free_at = now;
            self.left_over = 0;
        }
        // Whole microseconds per datagram would make a fast link slower than it is: the rest is carried over.
        let units = (bytes as u64).saturating_mul(BITS_TIMES_MICROS).saturating_add(self.left_over);
        self.free_at = self.free_at + Duration::from_micros(units / rate);
        self.left_over = units % rate;
        let gone =
            Timestamp::from_micros(self.free_at.as_micros().saturating_add(u64::from(self.left_over > 0)));
        self.waiting.push_back((gone, bytes));
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        gone
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
