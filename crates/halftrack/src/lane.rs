//! Which delivery promise a message gets, and which link keeps it. Knows kinds, not contents.

/// A delivery promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Everything arrives, once, in order.
    ReliableOrdered,
    /// The newest arrives as soon as it can; what is older than what has arrived is worth nothing.
    HighFrequencySync,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageKind {
    /// A player's input, tick by tick. An explicit zero on release is one like any other.
    MoveInput,
    /// The states of a snapshot.
    PlayerState,
    /// A player's intent to fire.
    ShootInput,
    /// What became of a shot: hit, damage, death, rejection, respawn.
    CombatEvent,
    /// A client introduces itself.
    Login,
    /// It is let in.
    LoginAccepted,
    /// It is not, and why.
    LoginRefused,
    /// What it begins with.
    Welcome,
    /// A client leaves.
    Logout,
    /// Are you there?
    Heartbeat,
    /// Yes.
    HeartbeatReply,
    /// How a client corrected itself.
    Report,
    /// The server is about to end.
    Closing,
    /// A player has come.
    PlayerJoined,
    /// A player has gone.
    PlayerLeft,
}

impl MessageKind {
    /// Every kind there is.
    pub const ALL: [Self; 15] = [
        Self::MoveInput,
        Self::PlayerState,
        Self::ShootInput,
        Self::CombatEvent,
        Self::Login,
        Self::LoginAccepted,
        Self::LoginRefused,
        Self::Welcome,
        Self::Logout,
        Self::Heartbeat,
        Self::HeartbeatReply,
        Self::Report,
        Self::Closing,
        Self::PlayerJoined,
        Self::PlayerLeft,
    ];

    /// Whether the stale filter may drop an older one: by its kind, whatever lane it takes.
    pub const fn is_latest_wins(self) -> bool {
        // spec: STALE-03, LANE-07
        matches!(self, Self::MoveInput | Self::PlayerState)
    }

    const fn index(self) -> u16 {
        1 << self as u16
    }
}

/// Which lane each kind of message takes. A value: a host that wants another one makes it.
///
/// ```
/// use halftrack::{DeliveryPolicy, Lane, MessageKind};
///
/// let policy = DeliveryPolicy::default();
/// assert_eq!(policy.lane(MessageKind::MoveInput), Lane::HighFrequencySync);
/// let cautious = policy.with(MessageKind::MoveInput, Lane::ReliableOrdered);
/// assert_eq!(cautious.lane(MessageKind::MoveInput), Lane::ReliableOrdered);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryPolicy {
    /// A bit for each kind on the sync lane.
    sync: u16,
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
}

/// Something that carries bytes to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// An ordered stream. Every session has one.
    Reliable,
    /// Datagrams.
    Sync,
}

/// Whether a session has a link for datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncLink {
    /// It has.
    Present,
    /// It has not: sync traffic takes the reliable link, newest first, and the session works.
    Absent,
}

/// Picks the lane of a message by policy, and the link of a lane by what the session has.
///
/// ```
/// use halftrack::{DeliveryPolicy, LaneRouter, Link, MessageKind, SyncLink};
///
/// let router = LaneRouter::new(DeliveryPolicy::default(), SyncLink::Absent);
/// assert_eq!(router.link(MessageKind::MoveInput), Link::Reliable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneRouter {
    policy: DeliveryPolicy,
    sync_link: SyncLink,
}

impl LaneRouter {
    /// A router for a session with these links.
    pub const fn new(policy: DeliveryPolicy, sync_link: SyncLink) -> Self {
        Self { policy, sync_link }
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
        // spec: LANE-04, LANE-05
        match (self.lane(kind), self.sync_link) {
            (Lane::HighFrequencySync, SyncLink::Present) => Link::Sync,
            _ => Link::Reliable,
        }
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
    fn lane_04_with_a_sync_link_sync_traffic_uses_it_and_nothing_else_does() {
        for kind in MessageKind::ALL {
            let sync = with_sync().lane(kind) == Lane::HighFrequencySync;
            assert_eq!(with_sync().link(kind), if sync { Link::Sync } else { Link::Reliable }, "{kind:?}");
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
    fn lane_07_a_fire_intent_is_reliable_and_never_latest_wins() {
        for router in [with_sync(), without_sync()] {
            assert_eq!(router.lane(MessageKind::ShootInput), Lane::ReliableOrdered);
            assert_eq!(router.link(MessageKind::ShootInput), Link::Reliable);
        }
        assert!(!MessageKind::ShootInput.is_latest_wins());
    }

    #[test]
    fn lane_08_a_hosts_own_policy_is_obeyed() {
        let policy = DeliveryPolicy::default()
            .with(MessageKind::MoveInput, Lane::ReliableOrdered)
            .with(MessageKind::Heartbeat, Lane::HighFrequencySync);
        let router = LaneRouter::new(policy, SyncLink::Present);
        assert_eq!(router.link(MessageKind::MoveInput), Link::Reliable);
        assert_eq!(router.link(MessageKind::Heartbeat), Link::Sync);
        assert_eq!(router.link(MessageKind::PlayerState), Link::Sync, "the rest stays");
    }

    #[test]
    fn stale_03_shots_and_combat_events_are_never_latest_wins() {
        for kind in MessageKind::ALL {
            let on_sync_lane = with_sync().lane(kind) == Lane::HighFrequencySync;
            assert_eq!(kind.is_latest_wins(), on_sync_lane, "{kind:?}, by the default policy");
        }
        for kind in [MessageKind::ShootInput, MessageKind::CombatEvent] {
            assert!(!kind.is_latest_wins(), "{kind:?}");
        }
    }
}
