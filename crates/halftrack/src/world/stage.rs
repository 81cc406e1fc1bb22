//! [`Stage`]: a world and its bodies, moved tick by tick. The same calls in the same order give the same match, to the bit:
//! from the players of a server, or from a recording.
//!
//! Knows neither links nor sessions.

use core::cell::Cell;
use std::sync::Arc;

use derive_where::derive_where;

use super::{BodyOf, Command, CommandRefused, Events, Order, Room, World};
use crate::cadence::Cadence;
use crate::digest::Digest;
use crate::game::Game;
use crate::id::{BodyId, Driver, PlayerId};
use crate::input::TickInput;
use crate::snapshot::{Bodies, BodyHistory, BodyKey, BodyLimits, Ended, Escapes, View};
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
    /// The input of each player in the newest tick, in order of player.
    inputs: Vec<(PlayerId, TickInput<<W::Game as Game>::Input>)>,
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
    pub fn new(cadence: Cadence, world: W, tick: Tick, key: BodyKey, limits: BodyLimits) -> Self {
        let bodies = Bodies::new(Arc::clone(world.rules()), cadence, tick).with_limits(key, limits);
        Self { cadence, world, bodies, events: Events::default(), inputs: Vec::new(), joins: 0 }
    }

    /// A player has come. Its bodies are settled: both sides start from the bits that the wire has.
    pub fn join(&mut self, player: PlayerId, login: &Login) {
        // spec: GAME-03
        self.bodies.join(player);
        self.world.join(player, login, &mut Room::new(self.cadence, &mut self.bodies));
        if let Err(at) = self.inputs.binary_search_by_key(&player, |(player, _)| *player) {
            self.inputs.insert(at, (player, TickInput::default()));
        }
        // Memory for its history, and a place among the others.
        self.joins += Self::JOIN + Self::JOIN_EACH * self.bodies.count() as u64;
    }

    /// A player has gone. [`Self::events`] has what happened by that.
    pub fn leave(&mut self, player: PlayerId) {
        self.events.clear();
        self.world.leave(player, &mut Room::new(self.cadence, &mut self.bodies), &mut self.events);
        self.bodies.leave(player);
        self.inputs.retain(|(there, _)| *there != player);
    }

    /// A player's client began anew.
    pub fn restarted(&mut self, player: PlayerId) {
        self.world.restarted(player);
    }

    /// A player's order.
    ///
    /// # Errors
    /// When it is none. Nothing has changed then.
    pub fn order(
        &mut self,
        player: PlayerId,
        bytes: &[u8],
        shown: Shown<'_, W::Game>,
    ) -> Result<(), WireError> {
        let newest = self.bodies.tick();
        self.world.order(Order { player, newest, bytes, shown })
    }

    /// A player's order that arrives now, with the snapshots that it was sent. Returns whether its claims to have seen
    /// something were true.
    ///
    /// # Errors
    /// When it is malformed. Nothing has changed then.
    pub(crate) fn order_live(
        &mut self,
        player: PlayerId,
        bytes: &[u8],
        view: &View,
    ) -> (Result<(), WireError>, bool) {
        let answer = Cell::new(true);
        let newest = self.bodies.tick();
        let shown = Shown::new(view, &self.bodies, &answer);
        let taken = self.world.order(Order { player, newest, bytes, shown });
        (taken, answer.get())
    }

    /// A command of the host.
    ///
    /// # Errors
    /// When the world does not obey it. Nothing has changed then.
    pub fn command(&mut self, bytes: &[u8]) -> Result<(), CommandRefused> {
        let newest = self.bodies.tick();
        self.world.command(Command { newest, bytes })
    }

    /// The next tick: every body moves by its input, then the world decides what else happens. `told` gives the input of
    /// each player, and is called once for each, in order of player.
    pub fn advance(&mut self, mut told: impl FnMut(PlayerId) -> TickInput<<W::Game as Game>::Input>) {
        if self.bodies.is_empty() {
            self.pass(1);
            return;
        }
        for (player, input) in &mut self.inputs {
            *input = told(*player);
        }
        let inputs = &self.inputs;
        self.bodies.advance(|player| {
            let at = inputs.binary_search_by_key(&player, |(player, _)| *player).ok();
            at.and_then(|at| inputs.get(at)).map_or_else(TickInput::default, |(_, input)| *input)
        });
        self.events.clear();
        self.world.resolve(&mut Room::new(self.cadence, &mut self.bodies), &mut self.events);
    }

    /// Ticks without players: the bodies sleep. Does nothing while there is a player.
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

    /// Every body at the end of the newest tick, in order of the ids.
    pub fn bodies(&self) -> impl Iterator<Item = (BodyId, Driver, &BodyOf<W>)> {
        self.bodies.records().map(|(id, driver, record)| (id, driver, &record.after))
    }

    /// A body that is there, and what it was in the ticks before.
    pub fn history(&self, id: BodyId) -> Option<&BodyHistory<W::Game>> {
        self.bodies.history(id)
    }

    /// The bodies that other bodies emitted in the newest tick, as [`Room::born`].
    pub fn born(&self) -> &[BodyId] {
        self.bodies.born()
    }

    /// The bodies that the rules removed in the newest tick, as [`Room::ended`].
    pub fn ended(&self) -> &[Ended<W::Game>] {
        self.bodies.ended()
    }

    /// The bodies that a player owns, in order of their spawn.
    pub fn owned(&self, player: PlayerId) -> &[BodyId] {
        self.bodies.owned(player)
    }

    /// The first body that a player owns, for games in which each player has one.
    pub fn body_of(&self, player: PlayerId) -> Option<&BodyOf<W>> {
        self.bodies.history(*self.owned(player).first()?).map(BodyHistory::latest)
    }

    /// The input of each player in the newest tick, and a hash of its bodies at the end of it, in order of player.
    pub(crate) fn told(
        &self,
    ) -> impl Iterator<Item = (PlayerId, TickInput<<W::Game as Game>::Input>, u64)> + '_ {
        self.inputs.iter().map(|(player, input)| (*player, *input, self.bodies.digest_of(*player)))
    }

    /// A hash of all bodies that no player owns.
    pub(crate) fn digest_of_others(&self) -> u64 {
        self.bodies.digest_of_others()
    }

    /// The game's side.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// A hash of everything that the next tick depends on, but for what bodies were in the ticks before: those are
    /// hashed when it is their turn.
    pub fn digest(&self) -> u64 {
        let start = Digest::new().word(u64::from(self.tick().number())).word(self.world.digest());
        let each = |digest: Digest, (id, _, body): (BodyId, Driver, u64)| digest.word(id.number()).word(body);
        self.bodies.digests().fold(start, each).finish()
    }
}

/// The snapshots that a player was sent, for orders that claim to have seen something.
#[derive_where(Clone, Copy, Debug)]
pub struct Shown<'a, G: Game>(Source<'a, G>);

#[derive_where(Clone, Copy, Debug)]
enum Source<'a, G: Game> {
    /// The snapshots themselves, and the answers so far.
    Sent(&'a View, &'a Bodies<G>, &'a Cell<bool>),
    /// The answer of a recording.
    Recorded(bool),
}

impl<'a, G: Game> Shown<'a, G> {
    /// The snapshots of `view`. `answer` becomes false when a claim was not true.
    pub(crate) fn new(view: &'a View, bodies: &'a Bodies<G>, answer: &'a Cell<bool>) -> Self {
        answer.set(true);
        Self(Source::Sent(view, bodies, answer))
    }

    /// As it was answered when the order came.
    pub const fn recorded(answer: bool) -> Self {
        Self(Source::Recorded(answer))
    }

    /// Whether the snapshot of `tick` was sent to the player, not too long ago. Ask once for each order: it is recorded
    /// with one answer.
    pub fn was_sent(&self, tick: Tick) -> bool {
        self.answer(|view, _| view.was_sent(tick))
    }

    /// Whether the snapshot of `tick` was sent to the player, not too long ago, with body `id` in it. Ask once for each
    /// order, by this or by [`Self::was_sent`].
    pub fn was_shown(&self, id: BodyId, tick: Tick) -> bool {
        self.answer(|view, bodies| bodies.was_shown(view, id, tick))
    }

    fn answer(&self, ask: impl FnOnce(&View, &Bodies<G>) -> bool) -> bool {
        match self.0 {
            Source::Sent(view, bodies, answer) => {
                let shown = ask(view, bodies);
                answer.set(answer.get() && shown);
                shown
            }
            Source::Recorded(answer) => answer,
        }
    }
}
