//! The memory of a recorder: stretches of calls, each behind the key state that it begins with.
//!
//! Bounded in bytes. When it is full, the oldest stretch is dropped as a whole: calls without a state cannot be replayed.

use core::ops::Range;
use core::time::Duration;
use std::collections::VecDeque;

use halftrack::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::FlightStats;
use crate::call::Call;
use crate::write::append;

/// A key state, and the calls after it.
pub(crate) struct Stretch {
    /// The moment from which that of the first call is counted.
    pub(crate) began: Timestamp,
    pub(crate) key: Vec<u8>,
    pub(crate) calls: Vec<u8>,
}

impl Stretch {
    fn bytes(&self) -> usize {
        self.key.capacity() + self.calls.capacity()
    }
}

pub(crate) struct Ring {
    max_bytes: usize,
    stretches: VecDeque<Stretch>,
    /// Bytes of all stretches but the newest.
    closed_bytes: usize,
    /// The moment of the newest call.
    last: Timestamp,
    /// No key state is tried before this: the last one was too large.
    retry: Timestamp,
    dropped: u64,
    blanks: u64,
}

impl Ring {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            stretches: VecDeque::new(),
            closed_bytes: 0,
            last: Timestamp::ZERO,
            retry: Timestamp::ZERO,
            dropped: 0,
            blanks: 0,
        }
    }

    /// Whether a new stretch should begin.
    pub(crate) fn wants_key(&self, now: Timestamp, every: Duration) -> bool {
        self.stretches.back().map_or(now >= self.retry, |newest| {
            now >= newest.began + every || newest.calls.len() >= self.max_bytes / 8
        })
    }

    /// Begins a new stretch with `state`.
    pub(crate) fn begin<T: Serialize>(&mut self, now: Timestamp, every: Duration, state: &T) {
        let size = self.stretches.back().map_or(4_096, |newest| newest.key.len() + newest.key.len() / 8);
        let mut key = Vec::with_capacity(size);
        if !append(state, &mut key) || key.len() > self.max_bytes / 4 {
            // A state that does not fit leaves no room for calls: record nothing rather than half a report.
            self.blank();
            self.retry = now + every;
            return;
        }
        key.shrink_to_fit();
        if let Some(newest) = self.stretches.back_mut() {
            newest.calls.shrink_to_fit();
            self.closed_bytes += newest.bytes();
        }
        self.last = now;
        self.stretches.push_back(Stretch { began: now, key, calls: Vec::new() });
        self.make_room();
    }

    /// Appends a call; a poll has no moment. Drops it while there is no key state to build on.
    pub(crate) fn call<I: Serialize + DeserializeOwned>(
        &mut self,
        now: Option<Timestamp>,
        call: &Call<'_, I>,
    ) {
        let Some(newest) = self.stretches.back_mut() else { return };
        let written = call.write(now, &mut self.last, &mut newest.calls);
        // A stretch as long as this had no moment at which a key state could be taken. Its capacity may be twice its
        // length.
        if !written || newest.calls.len() > self.max_bytes / 4 {
            self.blank();
        }
        self.make_room();
    }

    /// Appends to the newest call.
    pub(crate) fn extend(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(newest) = self.stretches.back_mut() {
            write(&mut newest.calls);
        }
    }

    fn make_room(&mut self) {
        // spec: FLIGHT-06
        while self.stretches.len() > 1 && self.stats().bytes > self.max_bytes {
            let oldest = self.stretches.pop_front();
            self.closed_bytes -= oldest.map_or(0, |oldest| oldest.bytes());
            self.dropped += 1;
        }
    }

    fn blank(&mut self) {
        self.stretches.clear();
        self.closed_bytes = 0;
        self.blanks += 1;
    }

    /// The place of the last `count` bytes of the newest stretch.
    pub(crate) fn newest(&self, count: usize) -> Range<usize> {
        let end = self.newest_calls().len();
        end.saturating_sub(count)..end
    }

    /// The calls of the newest stretch.
    pub(crate) fn newest_calls(&self) -> &[u8] {
        self.stretches.back().map_or(&[], |newest| &newest.calls)
    }

    /// Overwrites these places of the newest stretch with zeros.
    pub(crate) fn blacken(&mut self, places: &[usize]) {
        if let Some(newest) = self.stretches.back_mut() {
            blacken(&mut newest.calls, places);
        }
    }

    pub(crate) fn stretches(&self) -> impl ExactSizeIterator<Item = &Stretch> {
        self.stretches.iter()
    }

    pub(crate) fn stats(&self) -> FlightStats {
        FlightStats {
            bytes: self.closed_bytes + self.stretches.back().map_or(0, Stretch::bytes),
            keys: self.stretches.len(),
            key_bytes: self.stretches.back().map_or(0, |newest| newest.key.len()),
            since: self.stretches.front().map(|oldest| oldest.began),
            dropped: self.dropped,
            blanks: self.blanks,
        }
    }
}

pub(crate) fn blacken(bytes: &mut [u8], places: &[usize]) {
    for place in places {
        bytes.get_mut(*place).into_iter().for_each(|byte| *byte = 0);
    }
}
