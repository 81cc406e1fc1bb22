//! What a server has counted.

use crate::sizes::CorrectionSizes;
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
    /// Fields of bodies that left their range and were put back: [`crate::server::Server::last_escape`] names the last.
    pub escapes: u64,
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
    /// Players disconnected because their body takes more than [`crate::Body::MAX_BITS`].
    pub bodies_too_long: u64,
    /// Times that a player's input stopped arriving by datagram while its reliable link lived.
    pub sync_up_dead: u64,
    /// Times that a client reported the same of snapshots.
    pub sync_down_dead: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Times that a player who was in was told of everybody in full by the reliable lane, in place of a snapshot, because
    /// snapshots had no room for everybody.
    pub full_states: u64,
    /// Corrections as clients report them.
    pub reported: ByCause,
    /// How large these were, in classes. A client may claim any size: see [`CorrectionSizes`].
    pub reported_sizes: CorrectionSizes,
    /// Of these, the ones that snapped.
    pub reported_snaps: u64,
}

impl ServerStats {
    /// Counts what another server has counted in.
    pub fn merge(&mut self, other: &Self) {
        // All of them are named: one that is added is not forgotten.
        let Self {
            ticks,
            catch_up_ticks,
            slips,
            escapes,
            backwards,
            logins,
            refused,
            inputs,
            stale_inputs,
            bad_acks,
            malformed_datagrams,
            stray_datagrams,
            malformed_streams,
            too_many_orders,
            too_slow,
            too_many_connections,
            snapshots,
            full_states,
            bodies_too_long,
            sync_up_dead,
            sync_down_dead,
            reported,
            reported_sizes,
            reported_snaps,
        } = other;
        self.ticks += ticks;
        self.catch_up_ticks += catch_up_ticks;
        self.slips += slips;
        self.escapes += escapes;
        self.backwards += backwards;
        self.logins += logins;
        self.refused += refused;
        self.inputs += inputs;
        self.stale_inputs += stale_inputs;
        self.bad_acks += bad_acks;
        self.malformed_datagrams += malformed_datagrams;
        self.stray_datagrams += stray_datagrams;
        self.malformed_streams += malformed_streams;
        self.too_many_orders += too_many_orders;
        self.too_slow += too_slow;
        self.too_many_connections += too_many_connections;
        self.snapshots += snapshots;
        self.full_states += full_states;
        self.bodies_too_long += bodies_too_long;
        self.sync_up_dead += sync_up_dead;
        self.sync_down_dead += sync_down_dead;
        self.reported.merge(reported);
        self.reported_sizes.merge(reported_sizes);
        self.reported_snaps += reported_snaps;
    }
}
