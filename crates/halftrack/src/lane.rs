//! Which delivery promise a message gets, and which link keeps it. Knows kinds, not contents.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
pub use crate::kind::MessageKind;

/// A delivery promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// Everything arrives, once, in order.
    ReliableOrdered,
    /// The newest arrives as soon as it can; what is older than what has arrived is worth nothing.
    HighFrequencySync,
}

/// Which lane each kind of message takes. A host that wants other lanes passes its own policy to
/// [`ClientConfig`](crate::client::ClientConfig) or [`ServerConfig`](crate::server::ServerConfig); each end sends by its
/// own. Only `MoveInput` and `PlayerState` have a choice: a policy with any other kind on the sync lane is refused by
/// [`Client::new`](crate::client::Client::new) and [`Server::new`](crate::server::Server::new).
///
/// ```
/// use halftrack::{DeliveryPolicy, Lane, MessageKind};
///
/// let policy = DeliveryPolicy::default();
/// assert_eq!(policy.lane(MessageKind::MoveInput), Lane::HighFrequencySync);
/// let cautious = policy.with(MessageKind::MoveInput, Lane::ReliableOrdered);
/// assert_eq!(cautious.lane(MessageKind::MoveInput), Lane::ReliableOrdered);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryPolicy {
    /// A bit for each kind on the sync lane.
    sync: u32,
}

impl Default for DeliveryPolicy {
    /// Input and states on the sync lane, everything else on the reliable one.
    fn default() -> Self {
        // spec: LANE-01, LANE-02, LANE-03
        Self { sync: 0 }
            .with(MessageKind::MoveInput, Lane::HighFrequencySync)
            .with(MessageKind::PlayerState, Lane::HighFrequencySync)
    }
}

impl DeliveryPolicy {
    /// The same, but for `kind`.
    #[must_use]
    pub const fn with(self, kind: MessageKind, lane: Lane) -> Self {
        let sync = match lane {
            Lane::HighFrequencySync => self.sync | kind.index(),
            Lane::ReliableOrdered => self.sync & !kind.index(),
        };
        Self { sync }
    }

    /// The lane that `kind` takes.
    pub const fn lane(self, kind: MessageKind) -> Lane {
        if self.sync & kind.index() != 0 { Lane::HighFrequencySync } else { Lane::ReliableOrdered }
    }

    /// Refuses a policy with a kind on the sync lane that has no choice: it would be accepted and not obeyed.
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        // spec: LANE-10
        let mut sync =
            MessageKind::ALL.into_iter().filter(|kind| self.lane(*kind) == Lane::HighFrequencySync);
        sync.find(|kind| !kind.has_choice_of_lane()).map_or(Ok(()), |kind| Err(ConfigError::Lane { kind }))
    }
}

/// Something that carries bytes to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Link {
    /// An ordered stream. Every session has one.
    Reliable,
    /// Datagrams.
    Sync,
}

/// Whether a session has a link for datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SyncLink {
    /// It has.
    Present,
    /// It has not: sync traffic takes the reliable link, newest first, and the session works.
    Absent,
}

impl SyncLink {
    /// The longest datagram that either end sends by default, in bytes: it fits on every path of the internet.
    pub const DATAGRAM_BYTES: usize = 1_100;

    /// The sync link of a connection that takes datagrams of up to so many bytes; zero where it takes none. One that is
    /// too short for a message of ours is as good as absent: some messages would never arrive.
    pub const fn of_max_datagram(bytes: usize) -> Self {
        // spec: LANE-05
        if bytes >= Self::DATAGRAM_BYTES { Self::Present } else { Self::Absent }
    }
}

/// Picks the lane of a message by policy, and the link of a lane by the links that work.
///
/// A sync link that the peer reports to be dead is not used, except for probes, until the peer reports that datagrams
/// arrive again.
///
/// ```
/// use halftrack::{DeliveryPolicy, LaneRouter, Link, MessageKind, SyncLink};
///
/// let router = LaneRouter::new(DeliveryPolicy::default(), SyncLink::Absent);
/// assert_eq!(router.link(MessageKind::MoveInput), Link::Reliable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRouter {
    policy: DeliveryPolicy,
    sync_link: SyncLink,
    /// The peer receives our datagrams, as far as it has said.
    heard: bool,
}

impl LaneRouter {
    /// The policy that it follows.
    pub const fn policy(&self) -> DeliveryPolicy {
        self.policy
    }

    /// A router for a session with these links.
    pub const fn new(policy: DeliveryPolicy, sync_link: SyncLink) -> Self {
        Self { policy, sync_link, heard: true }
    }

    /// The same with what the peer has reported of our datagrams.
    #[must_use]
    pub const fn with_sync_heard(self, heard: bool) -> Self {
        Self { heard, ..self }
    }

    /// Whether the peer receives our datagrams, as far as it has said.
    pub const fn is_sync_heard(&self) -> bool {
        self.heard
    }

    /// Whether the session has a link for datagrams.
    pub const fn sync_link(&self) -> SyncLink {
        self.sync_link
    }

    /// The lane of a message.
    pub const fn lane(&self, kind: MessageKind) -> Lane {
        self.policy.lane(kind)
    }

    /// The link that carries it.
    pub const fn link(&self, kind: MessageKind) -> Link {
        // spec: LANE-04, LANE-05, LANE-11
        match (self.lane(kind), self.sync_link) {
            (Lane::HighFrequencySync, SyncLink::Present) if self.heard => Link::Sync,
            _ => Link::Reliable,
        }
    }

    /// Whether a message of this kind takes the reliable link only because the sync link is dead. Some of them are then
    /// sent as datagrams too, so that the peer can notice when datagrams arrive again.
    pub const fn needs_probes(&self, kind: MessageKind) -> bool {
        let sync = matches!((self.lane(kind), self.sync_link), (Lane::HighFrequencySync, SyncLink::Present));
        sync && !self.heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_sync() -> LaneRouter {
        LaneRouter::new(DeliveryPolicy::default(), SyncLink::Present)
    }

    fn without_sync() -> LaneRouter {
        LaneRouter::new(DeliveryPolicy::default(), SyncLink::Absent)
    }

    #[test]
    fn lane_01_input_and_states_take_the_sync_lane() {
        for kind in [MessageKind::MoveInput, MessageKind::PlayerState] {
            assert_eq!(with_sync().lane(kind), Lane::HighFrequencySync);
        }
    }

    #[test]
    fn lane_02_shots_and_combat_events_take_the_reliable_lane() {
        for kind in [MessageKind::ShootInput, MessageKind::CombatEvent] {
            assert_eq!(with_sync().lane(kind), Lane::ReliableOrdered);
        }
    }

    #[test]
    fn lane_03_every_control_message_takes_the_reliable_lane() {
        let sync = [MessageKind::MoveInput, MessageKind::PlayerState];
        for kind in MessageKind::ALL.into_iter().filter(|kind| !sync.contains(kind)) {
            assert_eq!(with_sync().lane(kind), Lane::ReliableOrdered, "{kind:?}");
        }
    }

    #[test]
    fn lane_05_without_a_sync_link_everything_uses_the_reliable_one() {
        for kind in MessageKind::ALL {
            assert_eq!(without_sync().link(kind), Link::Reliable);
            assert_eq!(without_sync().lane(kind), with_sync().lane(kind), "the promise does not change");
        }
    }

    #[test]
    fn lane_05_a_connection_whose_datagrams_are_too_short_has_no_sync_link() {
        for (bytes, link) in [(0, SyncLink::Absent), (1_099, SyncLink::Absent), (1_100, SyncLink::Present)] {
            assert_eq!(SyncLink::of_max_datagram(bytes), link, "{bytes} bytes");
        }
    }

    #[test]
    fn lane_11_a_dead_sync_link_carries_nothing_but_probes_of_sync_traffic() {
        let dead = with_sync().with_sync_heard(false);
        for kind in MessageKind::ALL {
            assert_eq!(dead.link(kind), Link::Reliable, "{kind:?}");
            assert_eq!(dead.needs_probes(kind), with_sync().link(kind) == Link::Sync, "{kind:?}");
            assert!(!with_sync().needs_probes(kind) && !without_sync().needs_probes(kind), "{kind:?}");
            assert!(!without_sync().with_sync_heard(false).needs_probes(kind), "{kind:?}");
        }
        assert_eq!(dead.with_sync_heard(true), with_sync());
    }
}
