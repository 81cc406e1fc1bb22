//! What a door has counted. Plain numbers, copied out when somebody asks.

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
}
