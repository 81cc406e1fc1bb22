//! Counters of a client.

use serde::{Deserialize, Serialize};

/// Plain numbers, for tests, programs and metrics alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStats {
    /// Snapshots used.
    pub snapshots: u64,
    /// Snapshots not newer than one that was used; dropped.
    pub stale: u64,
    /// Snapshots that came before the welcome; dropped.
    pub early: u64,
    /// Malformed snapshots and messages; dropped.
    pub malformed: u64,
    /// Snapshots whose other bodies build on a missing baseline. The player's own body was used, and a full state is
    /// requested.
    pub missing_baseline: u64,
    /// Snapshots whose other bodies do not add up: the two ends play by different rules.
    pub check_failed: u64,
    /// Requests for a full state.
    pub full_requests: u64,
    /// Ticks that the server says it simulated of the player.
    pub ticks: u64,
    /// Of these, ticks that it simulated without all of their input.
    pub held: u64,
    /// Of these, ticks whose input came after all, in the datagram that first carried it: late.
    pub late: u64,
    /// Of these, ticks whose input came first in a later datagram, or not while the server reported on them: lost.
    pub lost: u64,
    /// States that were not, to the bit, what had been predicted, for held ticks and nothing else: the world did nothing
    /// to the player, and prediction was not restarted.
    pub mispredicted: u64,
    /// Input messages sent.
    pub inputs: u64,
    /// Of these, ones for a change in a tick that is still open.
    pub eager_inputs: u64,
    /// Calls with a `now` before that of an earlier one; taken as that.
    pub backwards: u64,
    /// Events that the host did not take in time; dropped, oldest first.
    pub events_dropped: u64,
    /// Times that snapshots stopped arriving by datagram while the reliable link lived.
    pub sync_down_dead: u64,
    /// Times that the server reported the same of this client's input.
    pub sync_up_dead: u64,
}
