//! What a match is: a world and its bodies, moved tick by tick by what they are told. Whoever tells them the same in the
//! same order gets the same match, to the bit: a server from its players, a playback from a recording.
//!
//! Knows neither links nor sessions.

use core::cell::Cell;
use std::sync::Arc;

use super::{BodyOf, Command, CommandRefused, Events, Order, Room, World};
use crate::cadence::Cadence;
use crate::digest::Digest;
use crate::game::Game;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::snapshot::{Bodies, Escapes, View};
use crate::tick::Tick;
use crate::wire::WireError;
use crate::wire::control::Login;

/// A world and its bodies.
#[derive(Clone, Debug)]
pub struct Stage<W: World> {
    cadence: Cadence,
    pub(crate) world: W,
    pub(crate) bodies: Bodies<W::Game>,
    pub(crate) events: Events,
    /// Work of the players that came.
    joins: u64,
}

impl<W: World> Stage<W> {
    /// Work of a player that comes, and on top of it for each one that is there.
    const JOIN: u64 = 2_048;
    const JOIN_EACH: u64 = 32;

    /// The work done so far, in bodies looked at: some nanoseconds each. A recording may ask for so much by its size:
    /// see [`crate::record::RecordingRefused::Work`].
    pub fn work(&self) -> u64 {
        self.joins + self.bodies.work()
    }

    /// No more than so much work is to be done. A stage that has done more is of no use.
    pub(crate) fn limit_work(&mut self, limit: u64) {
        self.bodies.limit_work(limit.saturating_sub(self.joins));
    }

    /// `world` without bodies, at the end of `tick`.
    pub fn new(cadence: Cadence, world: W, tick: Tick) -> Self {
        let bodies = Bodies::new(Arc::clone(world.rules()), cadence, tick);
        Self { cadence, world, bodies, events: Events::default(), joins: 0 }
    }

    /// A player has come. Its body is settled: both sides start from the bits that the wire has.
    pub fn join(&mut self, player: PlayerId, login: &Login) {
        // spec: GAME-03
        let mut body = self.world.join(player, login, &mut Room::new(self.cadence, &mut self.bodies));
        self.bodies.settle(player, &mut body);
        self.bodies.join(player, Default::default(), body);
        // Memory for its history, and a place among the others.
        self.joins += Self::JOIN + Self::JOIN_EACH * self.bodies.actors().count() as u64;
    }

    /// A player has gone. [`Self::events`] has what happened by that.
    pub fn leave(&mut self, player: PlayerId) {
        self.events.clear();
        self.world.leave(player, &mut Room::new(self.cadence, &mut self.bodies), &mut self.events);
        self.bodies.leave(player);
    }

    /// A player's client began anew.
    pub fn restarted(&mut self, player: PlayerId) {
        self.world.restarted(player);
    }

    /// A player's order.
    ///
    /// # Errors
    /// When it is none. Nothing has changed then.
    pub fn order(&mut self, player: PlayerId, bytes: &[u8], shown: Shown<'_>) -> Result<(), WireError> {
        let newest = self.bodies.tick();
        self.world.order(Order { player, newest, bytes, shown })
    }

    /// A command of the host.
    ///
    /// # Errors
    /// When the world does not obey it. Nothing has changed then.
    pub fn command(&mut self, bytes: &[u8]) -> Result<(), CommandRefused> {
        let newest = self.bodies.tick();
        self.world.command(Command { newest, bytes })
    }

    /// The next tick: every body moves by its input, then the world decides what else happens.
    pub fn advance(&mut self, told: impl FnMut(PlayerId) -> TickInput<<W::Game as Game>::Input>) {
        if self.bodies.is_empty() {
            self.pass(1);
            return;
        }
        self.bodies.advance(told);
        self.events.clear();
        self.world.resolve(&mut Room::new(self.cadence, &mut self.bodies), &mut self.events);
    }

    /// Ticks without bodies, in constant time. Does nothing while there is a body.
    pub fn pass(&mut self, ticks: u32) {
        if self.bodies.is_empty() {
            self.bodies.pass(ticks);
            self.events.clear();
        }
    }

    /// Fields of bodies that left their range: the rules or the world let them escape.
    pub fn escapes(&self) -> Escapes {
        self.bodies.escapes()
    }

    /// Events of the newest tick, or of the player that left since.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The newest tick.
    pub fn tick(&self) -> Tick {
        self.bodies.tick()
    }

    /// How long a tick is.
    pub fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// Every body at the end of the newest tick, in order of player.
    pub fn bodies(&self) -> impl Iterator<Item = (PlayerId, &BodyOf<W>)> {
        self.bodies.actors().map(|(player, record)| (player, &record.after))
    }

    /// A hash of each of them.
    pub fn digests(&self) -> impl Iterator<Item = (PlayerId, u64)> + '_ {
        self.bodies.digests()
    }

    /// The game's side.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// A hash of everything that the next tick depends on, but for what bodies were in the ticks before: those are
    /// hashed when it is their turn.
    pub fn digest(&self) -> u64 {
        let start = Digest::new().word(u64::from(self.tick().number())).word(self.world.digest());
        let each = |digest: Digest, (player, body): (PlayerId, u64)| {
            digest.word(u64::from(player.number())).word(body)
        };
        self.digests().fold(start, each).finish()
    }
}

/// What a player has been shown, for orders that claim to have seen something.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// By what it was sent, and what has been answered.
    View(&'a View, &'a Cell<bool>),
    /// As it was answered before.
    Recorded(bool),
}

impl<'a> Shown<'a> {
    /// By what it was sent. `answer` becomes false when a claim was not true.
    pub fn new(view: &'a View, answer: &'a Cell<bool>) -> Self {
        answer.set(true);
        Self(Source::View(view, answer))
    }

    /// As it was answered when the order came.
    pub const fn recorded(answer: bool) -> Self {
        Self(Source::Recorded(answer))
    }

    /// Whether the snapshot of `tick` was sent to the player, not too long ago. Ask once for each order: it is recorded
    /// with one answer.
    pub fn was_sent(&self, tick: Tick) -> bool {
        match self.0 {
            Source::View(view, answer) => {
                let sent = view.was_sent(tick);
                answer.set(answer.get() && sent);
                sent
            }
            Source::Recorded(answer) => answer,
        }
    }
}
