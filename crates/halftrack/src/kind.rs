//! The kinds of messages.

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
    /// The state that it starts from.
    Welcome,
    /// A piece of the state of all bodies.
    Bodies,
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
    /// Whether this end receives the datagrams of the other.
    SyncHeard,
}

impl MessageKind {
    /// Every kind there is.
    pub const ALL: [Self; 17] = [
        Self::MoveInput,
        Self::PlayerState,
        Self::ShootInput,
        Self::CombatEvent,
        Self::Login,
        Self::LoginAccepted,
        Self::LoginRefused,
        Self::Welcome,
        Self::Bodies,
        Self::Logout,
        Self::Heartbeat,
        Self::HeartbeatReply,
        Self::Report,
        Self::Closing,
        Self::PlayerJoined,
        Self::PlayerLeft,
        Self::SyncHeard,
    ];

    /// Whether a policy may choose its lane: a newer `MoveInput` or `PlayerState` makes up for a lost one. Every other
    /// kind must arrive, so it is always [`ReliableOrdered`](crate::Lane::ReliableOrdered).
    pub const fn has_choice_of_lane(self) -> bool {
        matches!(self, Self::MoveInput | Self::PlayerState)
    }

    pub(crate) const fn index(self) -> u32 {
        1 << self as u32
    }
}
