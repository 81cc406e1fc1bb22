//! A seam between a client and its link, for programs that make a network worse than it is. Nothing here does.

use halftrack::{Link, Timestamp};

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// What everything passes on its way between a client and its link. It may hold it up, and of datagrams it may lose,
/// double and swap some; pieces of the stream must all come out, in order.
pub trait Between: Send {
    /// Something goes in.
    fn send(&mut self, now: Timestamp, direction: Direction, link: Link, bytes: &[u8]);

    /// Something comes out that is due.
    fn poll(&mut self, now: Timestamp) -> Option<(Direction, Link, Vec<u8>)>;

    /// When there will be something.
    fn poll_timeout(&self) -> Option<Timestamp>;

    /// The connection is gone, and with it whatever was on the way.
    fn reset(&mut self);
}
