//! The state that prediction goes on from, and the outcome of accepting one. Data only.

use core::ops::{Deref, DerefMut};

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cause::Causes;
use crate::game::{Game, Neighbour};
use crate::id::{BodyId, Driver};
use crate::tick::{Epoch, Tick};

/// The part of a body in a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The player owns it: the player's input moves it.
    Own,
    /// It is predicted together with the bodies that the player owns: they emitted it, or [`Game::predicts`] names it.
    Group,
    /// It leaves the group, and is predicted until it is drawn at render time again.
    Leaving,
    /// It is near the group and moves by the input that is known of it, so that the group can meet it. It is drawn at render
    /// time, as all bodies outside the group are.
    Near,
}

impl Role {
    /// Whether a body with this role is predicted for the screen.
    pub const fn is_member(self) -> bool {
        !matches!(self, Self::Near)
    }
}

/// A body of an [`Authority`]. Its state is read through it: `actor.body`, `actor.id`.
#[derive_where(Clone, Copy, Debug, PartialEq)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Actor<G: Game> {
    /// The body at the end of the tick, settled.
    pub who: Neighbour<G>,
    /// Its part in the prediction.
    pub role: Role,
    /// The number of bodies that it has emitted in its life: the ids of its next emissions follow from it.
    pub emitted: u32,
    /// The newest input that is known of it, if the player does not own it: it is assumed to hold.
    pub held: G::Input,
    /// The tick of that input.
    pub known: Tick,
    /// What the server did to it since the state that was accepted before.
    pub causes: Causes,
}

impl<G: Game> Deref for Actor<G> {
    type Target = Neighbour<G>;

    #[inline]
    fn deref(&self) -> &Neighbour<G> {
        &self.who
    }
}

impl<G: Game> DerefMut for Actor<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Neighbour<G> {
        &mut self.who
    }
}

impl<G: Game> Actor<G> {
    /// A body in `role` at the end of `tick`: its input is neutral and known, and nothing happened to it.
    pub fn new(role: Role, who: Neighbour<G>, tick: Tick) -> Self {
        Self { who, role, emitted: 0, held: G::Input::default(), known: tick, causes: Causes::NONE }
    }
}

/// An authoritative state: the bodies of a prediction as they were *after* `tick`, which the state thereby acknowledges.
///
/// ```
/// use halftrack::cart::{Cart, CartBody};
/// use halftrack::{Authority, BodyId, Driver, Epoch, Neighbour, Tick};
///
/// let ahead = Neighbour::new(BodyId::new(7), Driver::World, CartBody::at(2.0));
/// let state = Authority::<Cart>::new(Epoch::default(), Tick::new(9), CartBody::at(0.0)).among([ahead]);
/// assert_eq!((state.own.body.x, state.others().len()), (0.0, 1));
/// ```
#[derive_where(Debug, PartialEq)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Authority<G: Game> {
    /// The stretch of server time it belongs to.
    pub epoch: Epoch,
    /// The newest tick the server has simulated.
    pub tick: Tick,
    /// The first body that the player owns: [`crate::Predictor::predicted`] gives it.
    pub own: Actor<G>,
    /// In order of their ids.
    others: Vec<Actor<G>>,
}

impl<G: Game> Authority<G> {
    /// A state of one body that the player owns, and of no other. Its id is the last one, so that no other body has it.
    pub fn new(epoch: Epoch, tick: Tick, body: G::Body) -> Self {
        let id = BodyId::new(u64::MAX);
        Self::of(epoch, tick, Actor::new(Role::Own, Neighbour::new(id, Driver::Nothing, body), tick))
    }

    /// A state of one body that the player owns, and of no other.
    pub fn of(epoch: Epoch, tick: Tick, own: Actor<G>) -> Self {
        Self { epoch, tick, own, others: Vec::new() }
    }

    /// Begins another state in the same memory.
    pub(crate) fn restart(&mut self, epoch: Epoch, tick: Tick, own: Actor<G>) {
        (self.epoch, self.tick, self.own) = (epoch, tick, own);
        self.others.clear();
    }

    /// The same with bodies near it, which move by neutral input.
    #[must_use]
    pub fn among(mut self, neighbours: impl IntoIterator<Item = Neighbour<G>>) -> Self {
        let tick = self.tick;
        neighbours.into_iter().for_each(|who| self.push(Actor::new(Role::Near, who, tick)));
        self
    }

    /// Adds a body, unless one with its id is there.
    pub fn push(&mut self, actor: Actor<G>) {
        if let (Err(at), true) = (self.place(actor.id), actor.id != self.own.id) {
            self.others.insert(at, actor);
        }
    }

    /// More that may have corrected a body.
    pub(crate) fn add_causes(&mut self, id: BodyId, causes: Causes) {
        if let Some(actor) = self.place(id).ok().and_then(|at| self.others.get_mut(at)) {
            actor.causes = actor.causes.union(causes);
        }
    }

    fn place(&self, id: BodyId) -> Result<usize, usize> {
        self.others.binary_search_by_key(&id, |actor| actor.who.id)
    }

    /// Whether a loaded state lists each body once, in order.
    pub(crate) fn is_in_order(&self) -> bool {
        self.others.is_sorted_by(|one, other| one.id < other.id) && self.place(self.own.id).is_err()
    }

    /// All bodies but [`Self::own`], in order of their ids.
    pub fn others(&self) -> &[Actor<G>] {
        &self.others
    }

    /// The same as rules see them: for a [`crate::Replay`] among them.
    pub fn neighbours(&self) -> Vec<Neighbour<G>> {
        self.others.iter().map(|actor| actor.who).collect()
    }

    /// Reserves memory for so many others.
    pub(crate) fn reserve(&mut self, others: usize) {
        self.others.reserve(others.saturating_sub(self.others.len()));
    }

    /// All bodies, in order of their ids.
    pub fn actors(&self) -> impl Iterator<Item = &Actor<G>> {
        let at = self.place(self.own.id).unwrap_or_else(|at| at);
        let (before, after) = self.others.split_at_checked(at).unwrap_or_default();
        before.iter().chain(core::iter::once(&self.own)).chain(after)
    }

    /// The body with this id.
    pub fn get(&self, id: BodyId) -> Option<&Actor<G>> {
        if id == self.own.id {
            return Some(&self.own);
        }
        self.others.get(self.place(id).ok()?)
    }
}

impl<G: Game> Clone for Authority<G> {
    fn clone(&self) -> Self {
        Self { others: self.others.clone(), ..*self }
    }

    /// Reuses the memory, and reserves as much as `source` has: it knows how many bodies there can be.
    fn clone_from(&mut self, source: &Self) {
        self.restart(source.epoch, source.tick, source.own);
        self.others.reserve(source.others.capacity());
        self.others.extend_from_slice(&source.others);
    }
}

/// Whether the predictor predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It does.
    Predicting,
    /// The newest state is older than `max_pending`: the body stands until authority returns.
    Starved,
}

/// Why prediction was restarted from authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resync {
    /// The server's time broke off and began anew.
    NewEpoch,
    /// Authority was silent for longer than `max_pending`.
    Silence,
    /// The state was of the open tick or a later one: the clock was behind.
    Overtaken,
    /// The clock was wrong by more than `resync_error`.
    ClockError,
}

/// The outcome of accepting a state, for the first body that the player owns.
#[derive_where(Clone, Copy, Debug, PartialEq)]
pub struct Rebuilt<G: Game> {
    /// The body predicted for this moment before.
    pub before: G::Body,
    /// The body predicted for this moment now.
    pub after: G::Body,
    /// What had been predicted of the state's own tick, if it was pending.
    pub expected: Option<G::Body>,
    /// Everything that may have made them differ.
    pub causes: Causes,
    /// Ticks replayed, the open one included.
    pub replayed_ticks: u32,
    /// Whether prediction was restarted.
    pub resync: Option<Resync>,
}
