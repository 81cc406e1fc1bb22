//! What a door has counted. Plain numbers, copied out when somebody asks.

use halftrack::session::DisconnectReason;

/// Who is there, and who was turned away and why, since the door was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorStats {
    /// Connections there are, by all links, those that are still shaking hands included.
    pub connections: usize,
    /// Of those, how many are still shaking hands.
    pub unfinished: usize,
    /// Connections to the HTTP server that are not WebSockets.
    pub http_connections: usize,
    /// Addresses that are remembered.
    pub addresses: usize,
    /// Addresses that are banned.
    pub bans: usize,
    /// Refused: there are as many connections as there may be.
    pub full: u64,
    /// Refused: there are as many from that address as there may be.
    pub address_full: u64,
    /// Refused: that address begins handshakes too fast.
    pub handshake_rate: u64,
    /// Refused: that address is banned.
    pub banned: u64,
    /// Refused: a page of another origin, by WebSocket or WebTransport.
    pub origin: u64,
    /// Refused: connections to the HTTP server, in all or from one address.
    pub http_refused: u64,
    /// Refused: HTTP requests and connections of an address that makes too many per second.
    pub request_rate: u64,
    /// Asked to come again and show that they receive at the address that they send from.
    pub retries: u64,
    /// Gave up on: the handshake, or the head of the first HTTP request, took too long.
    pub handshake_timeouts: u64,
    /// Handshakes that came to nothing.
    pub handshakes_failed: u64,
    /// Connections closed because the peer sent too much.
    pub too_much: u64,
    /// Logins refused before there was a room for them.
    pub refused: u64,
    /// Datagrams that came before a login. They are dropped.
    pub stray_datagrams: u64,
    /// Connections whose peer went on from another address, by QUIC migration.
    pub moved: u64,
    /// See [`Self::closed`].
    pub(crate) closed: Closed,
}

impl DoorStats {
    /// Connections that were closed for that reason before they had a room.
    pub fn closed(&self, reason: DisconnectReason) -> u64 {
        self.closed.count(reason)
    }
}

/// Closed connections, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closed([u64; DisconnectReason::ALL.len()]);

impl Closed {
    pub(crate) fn count(&self, reason: DisconnectReason) -> u64 {
        Self::place(reason).and_then(|place| self.0.get(place)).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, reason: DisconnectReason) {
        if let Some(count) = Self::place(reason).and_then(|place| self.0.get_mut(place)) {
            *count += 1;
        }
    }

    /// Counts those of another in.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    fn place(reason: DisconnectReason) -> Option<usize> {
        DisconnectReason::ALL.iter().position(|each| *each == reason)
    }
}
