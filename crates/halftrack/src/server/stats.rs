//! What a server has counted.

use crate::stats::ByCause;

/// Plain numbers, for tests, programs and metrics alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Ticks simulated.
    pub ticks: u64,
    /// Of these, ticks that were simulated after a later one was due.
    pub catch_up_ticks: u64,
    /// Stalls too long to be caught up with: each began a new epoch.
    pub slips: u64,
    /// Calls with a `now` before that of an earlier one; taken as that.
    pub backwards: u64,
    /// Players let in, those who came back included.
    pub logins: u64,
    /// Logins refused.
    pub refused: u64,
    /// Input messages taken.
    pub inputs: u64,
    /// Input messages older than one before them; dropped whole.
    pub stale_inputs: u64,
    /// Input messages that acknowledge what was never sent, or too long ago. Their input was taken.
    pub bad_acks: u64,
    /// Datagrams that mean nothing; dropped.
    pub malformed_datagrams: u64,
    /// Datagrams of nobody who is logged in; dropped.
    pub stray_datagrams: u64,
    /// Connections closed for what they sent on the reliable lane.
    pub malformed_streams: u64,
    /// Connections closed because they sent too many orders.
    pub too_many_orders: u64,
    /// Connections closed because they read too slowly.
    pub too_slow: u64,
    /// Connections refused because there were too many.
    pub too_many_connections: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Times that a player who was in was told of everybody in full by the reliable lane, in place of a snapshot, because
    /// snapshots had no room for everybody.
    pub full_states: u64,
    /// Corrections as clients report them.
    pub reported: ByCause,
    /// Of these, the ones that snapped.
    pub reported_snaps: u64,
}
