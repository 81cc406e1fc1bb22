//! What a game's server adds to its rules: who stands where, what orders do, who lives and who dies.
//!
//! Movement is the rules' and the server's own business; a world only says what else happens at the end of a tick.

mod stage;

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;

pub use stage::{Shown, Stage};

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::game::Game;
use crate::id::PlayerId;
use crate::snapshot::{Bodies, BodyHistory};
use crate::tick::Tick;
use crate::wire::control::{Login, LoginRefused};
use crate::wire::{Frame, WireError};

/// The body type of a world.
pub type BodyOf<W> = <<W as World>::Game as Game>::Body;

/// The authority's side of a game. Deterministic: no clock, no dice but its own.
pub trait World {
    /// The rules.
    type Game: Game;

    /// The rules of the room: the same at every call. Clients build theirs alike, and [`Game::fingerprint`] proves it.
    fn rules(&self) -> &Arc<Self::Game>;

    /// Checks a login before it reaches the sessions: the place for credentials and bans. `resumes` is the player whose
    /// session the login takes up again with that session's token, so credentials that expired since need not keep it out.
    ///
    /// # Errors
    /// The reason for which the login is refused.
    fn admit(&mut self, login: &Login, resumes: Option<PlayerId>) -> Result<(), LoginRefused> {
        let _ = (login, resumes);
        Ok(())
    }

    /// The part of a login's credentials that [`World::join`] needs: a team, a rank, a skin. The recording keeps it, so
    /// leave secrets out. Default none. At most [`Login::MAX_CLAIMS`] bytes: longer ones are refused as
    /// [`LoginRefused::CredentialsInvalid`].
    fn claims(&self, login: &Login) -> Option<String> {
        let _ = login;
        None
    }

    /// A player has come: gives its body at the end of the newest tick, which the library settles. It should not stand
    /// inside another. `login` is the one that [`World::admit`] has let in, as the recording keeps it, so that a playback
    /// is given the same: its `credentials` are those of [`World::claims`], and it has no `resume`. A world that
    /// remembers players who left knows them by `login.name`.
    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Self::Game>) -> BodyOf<Self>;

    /// A player is gone for good: it logged out, broke the protocol, was kicked, or did not come back within the
    /// grace. `room` still has its body. `events` are sent to the other players at once, before they hear that it left.
    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Self::Game>, events: &mut Events) {
        let _ = (player, room, events);
    }

    /// A player's client began anew and has forgotten all events so far; the player and its body are the same. Events that
    /// it has to know belong into the next [`World::resolve`]. By default there are none.
    fn restarted(&mut self, player: PlayerId) {
        let _ = player;
    }

    /// A player's reliable order has arrived. It is the player's, whatever it claims: the connection says so. What
    /// it does is decided in [`World::resolve`], of the tick it is meant for or of the next one.
    ///
    /// # Errors
    /// When the bytes are no order. The sender is to blame, and is disconnected. By default a world has no orders.
    fn order(&mut self, order: Order<'_>) -> Result<(), WireError> {
        let _ = order;
        Err(WireError::Invalid { field: "order" })
    }

    /// The host does something to the match, by [`crate::server::Server::command`]: a teleport, other parameters, a new
    /// round. The recording keeps the command and a playback gives it again, so the outcome may depend on nothing but the
    /// command and the world. Its effect on bodies belongs into the next [`World::resolve`].
    ///
    /// # Errors
    /// When the bytes are no command, or the world does not obey it. Nothing may have changed then. By default a world
    /// takes no commands.
    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        let _ = command;
        Err(CommandRefused::Unsupported)
    }

    /// Every body has moved through the newest tick. Decides what else happens at its end: changes bodies through
    /// `room`, reports it through `events`. Not called for a tick without bodies: an empty room costs nothing, live or
    /// played back. A world that counts time reads it from [`Room::tick`]. By default nothing does.
    fn resolve(&mut self, room: &mut Room<'_, Self::Game>, events: &mut Events) {
        let _ = (room, events);
    }

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

/// A command of the host.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The newest tick that has been simulated.
    pub newest: Tick,
    /// The command, as the game writes it.
    pub bytes: &'a [u8],
}

/// A command that was not obeyed. Nothing has changed, and nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandRefused {
    /// The world has no commands: see [`World::command`].
    #[error("this world takes no commands")]
    Unsupported,
    /// No entry of a recording holds it.
    #[error("the command has {bytes} bytes, and {max} are the most: split it")]
    TooLong {
        /// The command's length, bytes.
        bytes: usize,
        /// [`crate::server::Server::MAX_COMMAND_BYTES`].
        max: usize,
    },
    /// More was recorded since [`crate::server::Server::poll_record`] was last called than one frame holds.
    #[error("too many commands at once: let the server poll its recording between them")]
    TooMany,
    /// The bytes are no command of this world.
    #[error("the bytes are no command of this world: {0}")]
    Malformed(#[from] WireError),
    /// The world cannot do that.
    #[error("{why}")]
    Refused {
        /// Why not.
        why: &'static str,
    },
}

/// Every body of a room, now and in the recent past.
#[derive_where(Debug)]
pub struct Room<'a, G: Game> {
    cadence: Cadence,
    bodies: &'a mut Bodies<G>,
}

impl<'a, G: Game> Room<'a, G> {
    /// The room of these bodies.
    pub fn new(cadence: Cadence, bodies: &'a mut Bodies<G>) -> Self {
        Self { cadence, bodies }
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<G> {
        self.bodies.rules()
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
        self.bodies.settle(player, &mut body);
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

/// An event that no message can hold. Nothing was sent, and nothing was numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event has {bytes} bytes, and a message holds {max}: split it, or send less")]
pub struct EventTooLong {
    /// The event's length, bytes.
    pub bytes: usize,
    /// [`Events::MAX_BYTES`].
    pub max: usize,
}

impl Events {
    /// The longest event, bytes: the body of one frame of the reliable lane.
    pub const MAX_BYTES: usize = Frame::MAX_BODY;

    /// Sends an event to `audience`: reliably, in order, exactly once. Not to the player that [`World::leave`] is called
    /// for.
    ///
    /// # Errors
    /// When the event is longer than [`Self::MAX_BYTES`]. The events before and after it are sent all the same.
    pub fn tell(&mut self, audience: Audience, event: &[u8]) -> Result<(), EventTooLong> {
        // spec: GAME-01
        if event.len() > Self::MAX_BYTES {
            return Err(EventTooLong { bytes: event.len(), max: Self::MAX_BYTES });
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(event);
        self.told.push((audience, start..self.bytes.len()));
        Ok(())
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
