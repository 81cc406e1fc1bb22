//! [`World`]: the part of a game that only its server has. It spawns, drives, alters and removes bodies, and decides the
//! outcome of orders.
//!
//! The rules move bodies. A world acts at the end of each tick.

mod stage;

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;

pub use stage::{Shown, Stage};

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::game::Game;
use crate::id::{BodyId, Driver, PlayerId};
use crate::snapshot::{Bodies, BodyHistory, BodyRefused, Ended, SpawnRefused};
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

    /// A player has come, at the end of the newest tick. Spawn its bodies here by [`Room::spawn`] with
    /// [`Driver::Player`]: none, one or several, now or later. A body should not stand inside another. `login` is the one
    /// that [`World::admit`] has let in, as the recording keeps it, so that a playback is given the same: its
    /// `credentials` are those of [`World::claims`], and it has no `resume`. A world that remembers players who left knows
    /// them by `login.name`.
    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Self::Game>);

    /// A player is gone for good: it logged out, broke the protocol, was kicked, or did not come back within the
    /// grace. `room` still has its bodies, and removes them after this call. `events` are sent to the other players at
    /// once, before they hear that it left.
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
    fn order(&mut self, order: Order<'_, Self::Game>) -> Result<(), WireError> {
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
    /// `room`, reports it through `events`. Not called for a tick without players: an empty room sleeps, live or played
    /// back, and its bodies stand where they are. A world that counts time reads it from [`Room::tick`]. By default
    /// nothing happens.
    fn resolve(&mut self, room: &mut Room<'_, Self::Game>, events: &mut Events) {
        let _ = (room, events);
    }

    /// A hash of everything that it knows besides bodies: what a recording is held against.
    fn digest(&self) -> u64 {
        0
    }
}

/// A reliable order of a player.
#[derive_where(Clone, Copy, Debug)]
pub struct Order<'a, G: Game> {
    /// Whose it is.
    pub player: PlayerId,
    /// The newest tick that has been simulated.
    pub newest: Tick,
    /// The order, as the game writes it.
    pub bytes: &'a [u8],
    /// The snapshots that the player was sent, for orders that claim to have seen something.
    pub shown: Shown<'a, G>,
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

    /// Every body, in order of the ids.
    pub fn bodies(&self) -> impl Iterator<Item = (BodyId, Driver, &G::Body)> {
        self.bodies.records().map(|(id, driver, record)| (id, driver, &record.after))
    }

    /// A body.
    pub fn body(&self, id: BodyId) -> Option<&G::Body> {
        self.history(id).map(BodyHistory::latest)
    }

    /// The bodies that a player owns, in order of their spawn.
    pub fn owned(&self, player: PlayerId) -> &[BodyId] {
        self.bodies.owned(player)
    }

    /// The first body that a player owns, for games in which each player has one.
    pub fn body_of(&self, player: PlayerId) -> Option<(BodyId, &G::Body)> {
        let id = *self.owned(player).first()?;
        Some((id, self.body(id)?))
    }

    /// The last ticks of a body, the newest one included.
    pub fn history(&self, id: BodyId) -> Option<&BodyHistory<G>> {
        self.bodies.history(id)
    }

    /// A body as it was `into` a tick, exactly, if that is still kept. This goes through every body: rule out by
    /// [`Self::history`] what cannot matter first.
    pub fn body_at(&mut self, id: BodyId, tick: Tick, into: Duration) -> Option<G::Body> {
        self.bodies.body_at(id, tick, into)
    }

    /// The bodies that other bodies emitted in the newest tick, in order of their births. [`BodyHistory::parent`] names the
    /// body that emitted each.
    pub fn born(&self) -> &[BodyId] {
        self.bodies.born()
    }

    /// The bodies that the rules removed in the newest tick by [`crate::Step::remove`], in order of their ids: what a
    /// shell hit, and where. They are not in the room any more.
    pub fn ended(&self) -> &[Ended<G>] {
        // spec: EMIT-05
        self.bodies.ended()
    }

    /// The number of bodies that still fit into the room.
    pub fn vacancies(&self) -> usize {
        self.bodies.vacancies()
    }

    /// Spawns a body at the end of the newest tick, and settles it. Its input is neutral at first.
    ///
    /// # Errors
    /// When the room is full, or the player owns too many bodies or is not here. Nothing has changed then.
    pub fn spawn(&mut self, driver: Driver, body: G::Body) -> Result<BodyId, SpawnRefused> {
        // spec: BODY-01
        self.bodies.spawn(driver, body)
    }

    /// Removes a body at the end of the newest tick. Returns its last state.
    ///
    /// # Errors
    /// When there is no such body, because it was removed before, for example.
    pub fn remove(&mut self, id: BodyId) -> Result<G::Body, BodyRefused> {
        self.bodies.remove(id)
    }

    /// Drives a body of [`Driver::World`] by `input`, from the start of the next tick until it is driven by another. The
    /// snapshot of this tick has it already, and only changes cost bits.
    ///
    /// # Errors
    /// When there is no such body, or the world does not drive it: the input of a player's body is the player's.
    pub fn drive(&mut self, id: BodyId, input: G::Input) -> Result<(), BodyRefused> {
        // spec: BODY-04
        self.bodies.drive(id, input)
    }

    /// Replaces the state of a body at the end of the newest tick, and settles it. `causes` name the correction that its
    /// owner may see: a death, a respawn, a teleport or other parameters. Less health alone is no cause.
    ///
    /// # Errors
    /// When there is no such body.
    pub fn alter(&mut self, id: BodyId, body: G::Body, causes: Causes) -> Result<(), BodyRefused> {
        self.bodies.alter(id, body, causes)
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
