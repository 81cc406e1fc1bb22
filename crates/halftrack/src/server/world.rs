//! What a game's server adds to its rules: who stands where, what orders do, who lives and who dies.
//!
//! Movement is the rules' and the server's own business; a world only says what else happens at the end of a tick.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::game::Game;
use crate::id::{PlayerId, PlayerName};
use crate::server::stage::Shown;
use crate::snapshot::{Bodies, BodyCode, BodyHistory};
use crate::tick::Tick;
use crate::wire::WireError;
use crate::wire::control::{Login, LoginRefused};

/// The body type of a world.
pub type Body<W> = <<W as World>::Game as Game>::Body;

/// The authority's side of a game. Deterministic: no clock, no dice but its own.
pub trait World {
    /// The rules.
    type Game: BodyCode;

    /// The world without bodies.
    fn alone(&self) -> &<Self::Game as Game>::Surroundings;

    /// Checks a login before it reaches the sessions: the place for credentials and bans. `resumes` is the player whose
    /// session the login takes up again with that session's token, so credentials that expired since need not keep it out.
    ///
    /// # Errors
    /// The reason for which the login is refused.
    fn admit(&mut self, login: &Login, resumes: Option<PlayerId>) -> Result<(), LoginRefused> {
        let _ = (login, resumes);
        Ok(())
    }

    /// A player has come: how its body is at the end of the newest tick. It should not stand inside another. `name` is
    /// the name that [`World::admit`] has let in: a world that remembers players who left knows them by it.
    fn join(&mut self, player: PlayerId, name: &PlayerName, room: &mut Room<'_, Self::Game>) -> Body<Self>;

    /// A player is gone for good: it logged out, broke the protocol, was kicked, or did not come back within the
    /// grace. `room` still has its body. `events` are sent to the other players at once, before they hear that it left.
    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Self::Game>, events: &mut Events);

    /// A player's reliable order has arrived. It is the player's, whatever it claims: the connection says so. What
    /// it does is decided in [`World::resolve`], of the tick it is meant for or of the next one.
    ///
    /// # Errors
    /// When the bytes are no order. The sender is to blame, and is disconnected.
    fn order(&mut self, order: Order<'_>) -> Result<(), WireError>;

    /// Every body has moved through the newest tick. Decides what else happens at its end: changes bodies through
    /// `room`, reports it through `events`. Not called for a tick without bodies: an empty room costs nothing, live or
    /// played back. A world that counts time reads it from [`Room::tick`].
    fn resolve(&mut self, room: &mut Room<'_, Self::Game>, events: &mut Events);

    /// A hash of everything that it knows besides bodies: what a recording is held against.
    fn digest(&self) -> u64 {
        0
    }
}

/// A reliable order of a player.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Whose it is.
    pub player: PlayerId,
    /// The newest tick that has been simulated.
    pub newest: Tick,
    /// The order, as the game writes it.
    pub bytes: &'a [u8],
    /// What the player has been shown: for orders that claim to have seen something.
    pub shown: Shown<'a>,
}

/// Every body of a room, now and in the recent past.
#[derive(Debug)]
pub struct Room<'a, G: BodyCode> {
    cadence: Cadence,
    bodies: &'a mut Bodies<G>,
}

impl<'a, G: BodyCode> Room<'a, G> {
    /// The room of these bodies.
    pub fn new(cadence: Cadence, bodies: &'a mut Bodies<G>) -> Self {
        Self { cadence, bodies }
    }

    /// The cadence.
    pub fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// The newest tick: the bodies are as they are at its end.
    pub fn tick(&self) -> Tick {
        self.bodies.tick()
    }

    /// Every player's body, in order of player.
    pub fn bodies(&self) -> impl Iterator<Item = (PlayerId, &G::Body)> {
        self.bodies.actors().map(|(player, record)| (player, &record.after))
    }

    /// A player's body.
    pub fn body(&self, player: PlayerId) -> Option<&G::Body> {
        self.history(player)?.get(self.tick()).map(|record| &record.after)
    }

    /// The last ticks of a player's body, the newest one included.
    pub fn history(&self, player: PlayerId) -> Option<&BodyHistory<G>> {
        self.bodies.history(player)
    }

    /// A player's body as it was `into` a tick, exactly, if that is still kept. This goes through every body: rule out by
    /// [`Self::history`] what cannot matter first.
    pub fn body_at(&mut self, player: PlayerId, tick: Tick, into: Duration) -> Option<G::Body> {
        self.bodies.body_at(player, tick, into)
    }

    /// Makes something else of a player's body at the end of the newest tick, and says why: a death, a respawn, a
    /// teleport or other parameters are causes; less health alone is none. The body is settled.
    pub fn alter(&mut self, player: PlayerId, mut body: G::Body, causes: Causes) {
        G::settle(&mut body);
        self.bodies.alter(player, body, causes);
    }
}

/// Who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everybody in the room.
    All,
    /// One player.
    Only(PlayerId),
}

/// Reliable events of a tick, in order.
#[derive(Clone, Debug, Default)]
pub struct Events {
    told: Vec<(Audience, core::ops::Range<usize>)>,
    bytes: Vec<u8>,
}

impl Events {
    /// Tells `audience` an event: reliably, in order, exactly once.
    pub fn tell(&mut self, audience: Audience, event: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(event);
        self.told.push((audience, start..self.bytes.len()));
    }

    /// What has been told, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Audience, &[u8])> {
        self.told
            .iter()
            .map(|(audience, range)| (*audience, self.bytes.get(range.clone()).unwrap_or_default()))
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.told.clear();
        self.bytes.clear();
    }
}
