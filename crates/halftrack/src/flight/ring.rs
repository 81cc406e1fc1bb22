//! What a recorder keeps: stretches of calls, each behind the state that it begins with. Bounded in bytes; the oldest go.

use core::ops::Range;
use core::time::Duration;
use std::collections::VecDeque;

use crate::client::Client;
use crate::exact::{Saver, State};
use crate::flight::call::Call;
use crate::flight::{FlightGame, FlightStats};
use crate::time::Timestamp;

/// Calls, and the client before the first of them.
pub(super) struct Stretch {
    /// The moment of the call before the first: what its own is counted from.
    pub(super) began: Timestamp,
    pub(super) key: Vec<u8>,
    pub(super) calls: Saver,
}

impl Stretch {
    fn bytes(&self) -> usize {
        self.key.capacity() + self.calls.capacity()
    }
}

pub(super) struct Ring {
    max_bytes: usize,
    stretches: VecDeque<Stretch>,
    /// Bytes of all but the newest.
    closed_bytes: usize,
    /// The moment of the newest call.
    last: Timestamp,
    /// Before this, no key state is tried: the last one was too large.
    retry: Timestamp,
    dropped: u64,
    blanks: u64,
}

impl Ring {
    pub(super) fn new(max_bytes: usize) -> Self {
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
    pub(super) fn wants_key(&self, now: Timestamp, every: Duration) -> bool {
        self.stretches.back().map_or(now >= self.retry, |newest| {
            now >= newest.began + every || newest.calls.as_bytes().len() >= self.max_bytes / 8
        })
    }

    /// A new stretch, from the client as it is.
    pub(super) fn begin<G: FlightGame>(&mut self, now: Timestamp, every: Duration, client: &Client<G>) {
        let size = self.stretches.back().map_or(4_096, |newest| newest.key.len() + newest.key.len() / 8);
        let mut saver = Saver::onto(Vec::with_capacity(size));
        client.save_state(&mut saver);
        let key = saver.finish().filter(|key| key.len() <= self.max_bytes / 4);
        let Some(mut key) = key else {
            // A game whose state does not fit is not recorded: half a report is none.
            self.blank();
            self.retry = now + every;
            return;
        };
        key.shrink_to_fit();
        if let Some(newest) = self.stretches.back_mut() {
            newest.calls.shrink_to_fit();
            self.closed_bytes += newest.bytes();
        }
        self.last = now;
        self.stretches.push_back(Stretch { began: now, key, calls: Saver::default() });
        self.make_room();
    }

    /// A call is made at `now`, or something is taken. Nothing is written while there is no state to build on.
    pub(super) fn call<G: FlightGame>(&mut self, now: Option<Timestamp>, call: &Call<'_, G>) {
        let Some(newest) = self.stretches.back_mut() else { return };
        call.save(now, &mut self.last, &mut newest.calls);
        // What is so long had no moment at which its state could be written. Its memory may be twice as much.
        if newest.calls.as_bytes().len() > self.max_bytes / 4 {
            self.blank();
        }
        self.make_room();
    }

    /// More of the last call.
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Saver)) {
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

    /// Where the last `count` bytes are that were written.
    pub(super) fn newest(&self, count: usize) -> Range<usize> {
        let end = self.stretches.back().map_or(0, |newest| newest.calls.as_bytes().len());
        end.saturating_sub(count)..end
    }

    /// Makes zeros of `secret` wherever it stands in these places of the newest stretch, taken together.
    pub(super) fn hide(&mut self, places: &[Range<usize>], secret: &[u8]) {
        let Some(newest) = self.stretches.back_mut() else { return };
        let bytes = newest.calls.as_mut_bytes();
        let places: Vec<usize> = places.iter().cloned().flatten().collect();
        for found in places.windows(secret.len()) {
            if found.iter().zip(secret).all(|(place, byte)| bytes.get(*place) == Some(byte)) {
                blacken(bytes, found);
            }
        }
    }

    /// Makes zeros of what is in these places of the newest stretch.
    pub(super) fn blacken(&mut self, places: &[usize]) {
        if let Some(newest) = self.stretches.back_mut() {
            blacken(newest.calls.as_mut_bytes(), places);
        }
    }

    pub(super) fn stretches(&self) -> impl ExactSizeIterator<Item = &Stretch> {
        self.stretches.iter()
    }

    pub(super) fn stats(&self) -> FlightStats {
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

pub(super) fn blacken(bytes: &mut [u8], places: &[usize]) {
    for place in places {
        bytes.get_mut(*place).into_iter().for_each(|byte| *byte = 0);
    }
}
