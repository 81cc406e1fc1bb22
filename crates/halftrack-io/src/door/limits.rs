//! What peers are allowed, as numbers. Knows neither peers nor clocks.

use core::time::Duration;

use halftrack::ConfigError;

use crate::door::bucket::Rate;

/// What a [`Door`](crate::Door) allows. Everything is on by default; nothing can be turned off, only widened.
///
/// ```
/// use halftrack_io::Limits;
///
/// let limits = Limits { max_per_address: 8, ..Limits::default() };
/// assert!(limits.check().is_ok());
/// assert!(Limits { max_per_address: 0, ..limits }.check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time, by all links together, those that are still shaking hands included. Default
    /// 1,024: more than a process simulates. From 1 to 65,536, above which ports and file handles are the
    /// limit.
    pub max_connections: usize,
    /// Connections at a time from one address, by all links together; an IPv6 address counts by its /64,
    /// which is what one customer has. Default 256, a quarter of all: 200 bots can come from one machine, and
    /// nobody fills the server alone. Behind a proxy everybody has the proxy's address: raise it there. From
    /// 1 to 65,536.
    pub max_per_address: usize,
    /// Handshakes that one address may begin per second, in the long run. Default 50: each costs the server a
    /// signature and a key exchange. From 1 to 100,000.
    pub handshakes_per_second: usize,
    /// Handshakes that one address may begin at once. Default 250, so that 200 bots can come from one
    /// machine. From 1 to 100,000.
    pub handshake_burst: usize,
    /// How long a peer may take to shake hands and to name its room, and then again to log in; on HTTP, to send
    /// the head of a request. Default 5 s: several lost packets. From 100 ms, below which far peers never get in, to 1 min.
    pub handshake: Duration,
    /// From so many unfinished handshakes on, peers by QUIC must first show that they receive at the address
    /// that they send from; that costs them one round trip. Default 64, which newcomers who finish theirs in
    /// 100 ms reach only at 640 per second. Zero is always. At most 65,536.
    pub retry_from: usize,
    /// Connections at a time to the HTTP server that are not WebSockets. Default 1,024; a page needs some for
    /// a moment. From one address, [`Self::max_per_address`]. From 1 to 65,536.
    pub max_http: usize,
    /// HTTP requests from one address per second, in the long run; opening a connection counts as one. Five seconds'
    /// worth may come at once. Default 100: a page takes about ten, and 50 players behind one address can load it at
    /// once. Behind a proxy everybody has the proxy's address: raise it there. From 1 to 100,000.
    pub requests_per_second: usize,
    /// Messages that a peer may send per second, in the long run: datagrams, frames of the stream, messages
    /// of a WebSocket. Default 600: a client of ours sends at most 7 per tick, which is 140 at 20 Hz; raise
    /// it for cadences below 12 ms. From 10 to 1,000,000.
    pub messages_per_second: usize,
    /// Bytes of payload that a peer may send per second, in the long run. Default 128 KiB: a cart
    /// whose input changes with every frame sends 2 KiB, and more only when it says again what a bad network
    /// has lost. From 1 KiB to 1 GiB.
    pub bytes_per_second: usize,
    /// So much of both may come at once, as the time in which it is allowed. Default 2 s: 1,200 messages and
    /// 256 KiB, which is more than a client has to say again after a cut (1,024 messages, 64 KiB). From 100
    /// ms to 1 min.
    pub burst: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 1_024,
            max_per_address: 256,
            handshakes_per_second: 50,
            handshake_burst: 250,
            handshake: Duration::from_secs(5),
            retry_from: 64,
            max_http: 1_024,
            requests_per_second: 100,
            messages_per_second: 600,
            bytes_per_second: 128 * 1_024,
            burst: Duration::from_secs(2),
        }
    }
}

impl Limits {
    /// Packets of QUIC that a peer may send before it has logged in. A handshake, the request of a browser and a
    /// login take about 15; the rest is for packets that are lost and sent again.
    pub(super) const NEWCOMER_PACKETS: u64 = 256;
    /// Bytes of these packets. A handshake and the longest login take about 12 KiB.
    pub(super) const NEWCOMER_BYTES: u64 = 32 * 1_024;

    /// Whether every field is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            ("max_connections", self.max_connections, 1, 65_536),
            ("max_per_address", self.max_per_address, 1, 65_536),
            ("handshakes_per_second", self.handshakes_per_second, 1, 100_000),
            ("handshake_burst", self.handshake_burst, 1, 100_000),
            ("retry_from", self.retry_from, 0, 65_536),
            ("max_http", self.max_http, 1, 65_536),
            ("requests_per_second", self.requests_per_second, 1, 100_000),
            ("messages_per_second", self.messages_per_second, 10, 1_000_000),
            ("bytes_per_second", self.bytes_per_second, 1 << 10, 1 << 30),
        ];
        for (field, got, min, max) in counts {
            if got < min || got > max {
                return Err(ConfigError::Count { field, got, min, max });
            }
        }
        let spans = [("handshake", self.handshake), ("burst", self.burst)];
        for (field, got) in spans {
            let (min, max) = (Duration::from_millis(100), Duration::from_secs(60));
            if got < min || got > max {
                return Err(ConfigError::Span { field, got, min, max });
            }
        }
        Ok(())
    }

    pub(super) fn handshakes(&self) -> Rate {
        Rate { per_second: self.handshakes_per_second as u64, burst: self.handshake_burst as u64 }
    }

    pub(super) fn requests(&self) -> Rate {
        Rate::over(self.requests_per_second as u64, Duration::from_secs(5))
    }

    pub(super) fn messages(&self) -> Rate {
        Rate::over(self.messages_per_second as u64, self.burst)
    }

    pub(super) fn bytes(&self) -> Rate {
        Rate::over(self.bytes_per_second as u64, self.burst)
    }

    /// Packets of QUIC, or frames of a WebSocket: one for each message, and as many again that carry none.
    pub(super) fn packets(&self) -> Rate {
        Rate::over(2 * self.messages_per_second as u64, self.burst)
    }

    /// Their bytes: payload that is sent twice at the worst, and what is around it.
    pub(super) fn packet_bytes(&self) -> Rate {
        const AROUND: u64 = 128;
        Rate::over(2 * (self.bytes_per_second as u64 + AROUND * self.messages_per_second as u64), self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_their_ranges() {
        let good = Limits::default();
        assert_eq!(good.check(), Ok(()));
        let bad = [
            (Limits { max_connections: 0, ..good }, "max_connections is 0; choose one from 1 to 65536"),
            (Limits { max_per_address: 65_537, ..good }, "max_per_address is 65537"),
            (Limits { handshakes_per_second: 0, ..good }, "handshakes_per_second is 0"),
            (Limits { handshake_burst: 0, ..good }, "handshake_burst is 0"),
            (Limits { retry_from: 65_537, ..good }, "retry_from is 65537"),
            (Limits { max_http: 0, ..good }, "max_http is 0"),
            (Limits { requests_per_second: 0, ..good }, "requests_per_second is 0"),
            (Limits { messages_per_second: 9, ..good }, "messages_per_second is 9"),
            (Limits { bytes_per_second: 1_023, ..good }, "bytes_per_second is 1023"),
            (Limits { handshake: Duration::from_millis(99), ..good }, "handshake is 99ms"),
            (Limits { burst: Duration::from_secs(61), ..good }, "burst is 61s; choose one from 100ms to 60s"),
        ];
        for (limits, said) in bad {
            let problem = limits.check().unwrap_err().to_string();
            assert!(problem.starts_with(said), "{problem}");
        }
    }
}
