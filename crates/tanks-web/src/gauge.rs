//! What the client does not keep: how evenly snapshots come, and what traffic there was.

use halftrack::client::Client;
use halftrack::{Tick, Timestamp};
use serde::Serialize;
use tanks::Tanks;

/// Traffic since the page was loaded.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Traffic {
    pub(crate) datagrams_up: u64,
    pub(crate) datagrams_down: u64,
    pub(crate) datagram_bytes_up: u64,
    pub(crate) datagram_bytes_down: u64,
    pub(crate) stream_bytes_up: u64,
    pub(crate) stream_bytes_down: u64,
    /// Datagrams that the browser was too busy for.
    pub(crate) datagrams_dropped: u64,
}

impl Traffic {
    pub(crate) fn bytes_up(&self) -> u64 {
        self.datagram_bytes_up + self.stream_bytes_up
    }

    pub(crate) fn bytes_down(&self) -> u64 {
        self.datagram_bytes_down + self.stream_bytes_down
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    pub(crate) traffic: Traffic,
    /// Mean deviation of arrivals, as RFC 3550 has it, microseconds.
    pub(crate) jitter_micros: f64,
    /// Of the newest snapshot: how long after the end of its tick it came, by two clocks.
    transit: Option<i64>,
    newest: Option<Tick>,
}

impl Gauge {
    /// The connection is another one.
    pub(crate) fn reset(&mut self) {
        (self.jitter_micros, self.transit, self.newest) = (0.0, None, None);
    }

    /// The client has been given bytes.
    pub(crate) fn look(&mut self, now: Timestamp, client: &Client<Tanks>) {
        let newest = client.crowd().newest();
        let Some(tick) = newest.filter(|_| newest > self.newest) else { return };
        self.newest = newest;
        let transit = signed(now.as_micros()) - signed(client.cadence().end_of(tick).as_micros());
        if let Some(last) = self.transit.replace(transit) {
            self.jitter_micros += ((transit - last).abs() as f64 - self.jitter_micros) / 16.0;
        }
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
