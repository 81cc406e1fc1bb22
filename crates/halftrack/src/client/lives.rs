//! Births and ends of emitted bodies, each told once: as predicted, and then as confirmed or revoked.

use std::collections::VecDeque;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::cause::{Cause, Causes};
use crate::game::{Game, Touched};
use crate::id::BodyId;
use crate::predict::{Authority, Predictor, Role, Scene};
use crate::simulate::has_emitted;
use crate::snapshot::{BodyHistory, Crowd, history_ticks};
use crate::tick::Tick;
use crate::time::ServerTime;

/// The birth or the end of a body that another body emitted.
///
/// Play the sound of a shot at `Born`, and the explosion at `Ended`: each comes when the picture shows it. A body that this
/// client predicts comes as [`Certainty::Predicted`] first, and later, once, as [`Certainty::Confirmed`] or
/// [`Certainty::Revoked`]. All others come as confirmed.
#[derive_where(Clone, Copy, Debug, PartialEq)]
pub struct LifeEvent<G: Game> {
    /// The emitted body.
    pub id: BodyId,
    /// The body that emitted it.
    pub parent: Option<BodyId>,
    /// What happened.
    pub life: Life,
    /// How certain that is.
    pub certainty: Certainty,
    /// The moment of it in the server's time.
    pub at: ServerTime,
    /// The body at that moment.
    pub body: G::Body,
    /// The bodies that it touched in the tick of its end.
    pub touched: Touched,
    /// Why it was revoked.
    pub cause: Option<Cause>,
}

/// A turn in the life of an emitted body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// It was emitted.
    Born,
    /// The rules removed it, by [`crate::Step::remove`], or the world did.
    Ended,
}

/// How certain a [`LifeEvent`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Certainty {
    /// This client's rules say so, and the server has not got there.
    Predicted,
    /// The server says so.
    Confirmed,
    /// It was predicted, and did not happen: the shooter had died, or the target was elsewhere.
    Revoked,
}

/// The emitted bodies that are drawn, or were until their end.
#[derive_where(Clone, Debug)]
pub(super) struct Lives<G: Game> {
    /// In order of their ids.
    list: Vec<Tracked<G>>,
    events: VecDeque<LifeEvent<G>>,
    /// Events that the host did not take in time.
    pub(super) dropped: u64,
}

/// An emitted body.
#[derive_where(Clone, Copy, Debug)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Tracked<G: Game> {
    id: BodyId,
    parent: Option<BodyId>,
    born: Certainty,
    ended: Option<Certainty>,
    /// The group draws it, or did until its end: [`crate::Remotes`] leaves it out.
    grouped: bool,
    /// The newest moment that was told of it.
    at: ServerTime,
    body: G::Body,
}

impl<G: Game> Lives<G> {
    /// More than a room emits within a prediction window.
    const MAX_TRACKED: usize = 2_048;
    /// Events that wait for the host at most. A host that draws takes them every frame.
    const MAX_EVENTS: usize = 4_096;

    pub(super) fn new() -> Self {
        Self { list: Vec::new(), events: VecDeque::new(), dropped: 0 }
    }

    pub(super) fn forget(&mut self) {
        self.list.clear();
        self.events.clear();
    }

    pub(super) fn saved(&self) -> &[Tracked<G>] {
        &self.list
    }

    pub(super) fn restore(&mut self, list: Vec<Tracked<G>>) -> bool {
        self.list = list;
        self.list.len() <= Self::MAX_TRACKED && self.list.is_sorted_by(|one, other| one.id < other.id)
    }

    /// The next event.
    pub(super) fn poll(&mut self) -> Option<LifeEvent<G>> {
        self.events.pop_front()
    }

    /// The bodies that ended in the group. At render time they may still be there.
    pub(super) fn over(&self) -> impl Iterator<Item = BodyId> + '_ {
        let over = self.list.iter().filter(|tracked| tracked.grouped && tracked.ended.is_some());
        over.map(|tracked| tracked.id)
    }

    /// A body has left the group: it is drawn among the others from now on.
    pub(super) fn left(&mut self, id: BodyId) {
        if let Some(tracked) = self.place(id).ok().and_then(|place| self.list.get_mut(place)) {
            tracked.grouped = false;
        }
    }

    fn place(&self, id: BodyId) -> Result<usize, usize> {
        self.list.binary_search_by_key(&id, |tracked| tracked.id)
    }

    fn tell(&mut self, event: LifeEvent<G>) {
        if self.events.len() >= Self::MAX_EVENTS {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Begins to track a body, unless it is tracked.
    fn bear(&mut self, tracked: Tracked<G>) {
        let Err(at) = self.place(tracked.id) else { return };
        if self.list.len() >= Self::MAX_TRACKED {
            return;
        }
        self.list.insert(at, tracked);
        self.tell(tracked.event(Life::Born, tracked.born));
    }

    /// Prediction ends: the player owns no body any more. Bodies that the server has are drawn among the others from now
    /// on, and the others are revoked.
    pub(super) fn end_prediction(&mut self, crowd: &Crowd<G>, cadence: Cadence) {
        let mut told = Vec::new();
        self.list.retain_mut(|tracked| {
            let cause = Some(Cause::World);
            let known = crowd.any_body(tracked.id);
            if !tracked.grouped || tracked.ended == Some(Certainty::Confirmed) {
                return known.is_some();
            }
            if tracked.ended.take().is_some() {
                told.push(LifeEvent { cause, ..tracked.event(Life::Ended, Certainty::Revoked) });
            }
            tracked.grouped = false;
            if tracked.born == Certainty::Confirmed {
                return true;
            }
            tracked.born = if known.is_some() { Certainty::Confirmed } else { Certainty::Revoked };
            (tracked.at, tracked.body) =
                birth_of(crowd, tracked.id, cadence).unwrap_or((tracked.at, tracked.body));
            let cause = cause.filter(|_| known.is_none());
            told.push(LifeEvent { cause, ..tracked.event(Life::Born, tracked.born) });
            known.is_some()
        });
        told.into_iter().for_each(|event| self.tell(event));
    }

    /// The prediction has been brought to the present: tells of births and ends in it.
    pub(super) fn predicted(&mut self, predictor: &Predictor<G>) {
        // spec: EMIT-04
        let (scene, cadence) = (predictor.scene(), predictor.cadence());
        let moment = |tick: Tick, at: u32| moment(cadence, tick, at);
        for (tick, birth) in scene.births().iter().filter(|(_, birth)| is_of_group(scene, birth.id)) {
            self.bear(Tracked::born(birth.id, Some(birth.parent), moment(*tick, birth.at), birth.body));
        }
        let open = predictor.open_tick();
        for birth in scene.present().iter().filter_map(|present| present.birth.as_ref()) {
            self.bear(Tracked::born(birth.id, Some(birth.parent), moment(open, birth.at), birth.body));
        }
        for end in scene.ends() {
            self.end(end.who.id, moment(end.tick, end.at), end.who.body, end.touched);
        }
        for present in scene.present().iter().filter(|present| present.role != Role::Own) {
            if let Some(at) = present.removed {
                self.end(present.who.id, moment(open, at), present.who.body, present.touched);
            }
        }
    }

    fn end(&mut self, id: BodyId, at: ServerTime, body: G::Body, touched: Touched) {
        let Some(tracked) = self.place(id).ok().and_then(|place| self.list.get_mut(place)) else { return };
        if tracked.ended.is_none() {
            (tracked.ended, tracked.at, tracked.body) = (Some(Certainty::Predicted), at, body);
            let event = LifeEvent { touched, ..tracked.event(Life::Ended, Certainty::Predicted) };
            self.tell(event);
        }
    }

    /// A state was accepted: confirms and revokes by it. `state` has the bodies of the group.
    pub(super) fn accepted(&mut self, predictor: &Predictor<G>, state: &Authority<G>, crowd: &Crowd<G>) {
        // spec: EMIT-04
        let cadence = predictor.cadence();
        let grouped = state.others().iter().filter(|actor| actor.role == Role::Group);
        for actor in grouped.filter(|actor| actor.parent.is_some()) {
            if let Some(tracked) = self.place(actor.id).ok().and_then(|place| self.list.get_mut(place)) {
                tracked.grouped = true;
            } else if crowd.body(actor.id).is_some() {
                let (at, body) =
                    birth_of(crowd, actor.id, cadence).unwrap_or((cadence.end_of(state.tick), actor.body));
                let fresh = Tracked::born(actor.id, actor.parent, at, body);
                self.bear(Tracked { born: Certainty::Confirmed, ..fresh });
            }
        }
        let evidence = Evidence { predictor, state, crowd };
        let mut told = Vec::new();
        self.list.retain_mut(|tracked| {
            if !tracked.grouped {
                return true;
            }
            let (events, stays) = tracked.judge(&evidence, cadence);
            told.extend(events.into_iter().flatten());
            stays
        });
        told.into_iter().for_each(|event| self.tell(event));
    }

    /// A body outside the group appeared in the picture, or has gone from it.
    pub(super) fn drawn(&mut self, id: BodyId, life: Life, cadence: Cadence, crowd: &Crowd<G>) {
        let Some(history) = crowd.any_body(id).filter(|history| history.parent().is_some()) else { return };
        let fresh = || {
            let birth = birth_of(crowd, id, cadence);
            let (at, body) = birth.unwrap_or((cadence.end_of(history.newest()), *history.latest()));
            let fresh = Tracked::born(id, history.parent(), at, body);
            Tracked { born: Certainty::Confirmed, grouped: false, ..fresh }
        };
        match (life, self.place(id)) {
            (Life::Born, Err(_)) => self.bear(fresh()),
            (Life::Ended, place) => {
                // One that lived for less than a frame is told all the same.
                let mut tracked = match place {
                    Ok(place) => self.list.remove(place),
                    Err(_) => {
                        self.tell(fresh().event(Life::Born, Certainty::Confirmed));
                        fresh()
                    }
                };
                let over = cadence.start_of(history.newest()) + history.ended().unwrap_or(cadence.interval());
                (tracked.at, tracked.body) = (over, *history.latest());
                self.tell(tracked.event(Life::Ended, Certainty::Confirmed));
            }
            (Life::Born, Ok(place)) => {
                let unsettled = |tracked: &&mut Tracked<G>| tracked.born == Certainty::Predicted;
                let Some(tracked) = self.list.get_mut(place).filter(unsettled) else { return };
                (tracked.born, tracked.grouped) = (Certainty::Confirmed, false);
                (tracked.at, tracked.body) =
                    birth_of(crowd, id, cadence).unwrap_or((tracked.at, tracked.body));
                let event = tracked.event(Life::Born, Certainty::Confirmed);
                self.tell(event);
            }
        }
    }
}

/// The newest state, and the prediction that goes on from it.
struct Evidence<'a, G: Game> {
    predictor: &'a Predictor<G>,
    state: &'a Authority<G>,
    crowd: &'a Crowd<G>,
}

impl<G: Game> Evidence<'_, G> {
    /// An emission of an emission: so many at most are looked through for a cause.
    const MAX_GENERATIONS: usize = 16;

    /// Everything that may have made the life of a body another one: what happened to it, or to an ancestor.
    fn causes(&self, id: BodyId, parent: Option<BodyId>) -> Causes {
        let mut causes = self.predictor.verdict(id, parent).1;
        let mut ancestor = parent;
        for _ in 0..Self::MAX_GENERATIONS {
            let Some(id) = ancestor.filter(|_| causes.is_empty()) else { break };
            let known = self.crowd.any_body(id);
            ancestor = known.and_then(BodyHistory::parent).or_else(|| self.predictor.scene().parent_of(id));
            if self.state.get(id).is_some() {
                causes = self.predictor.verdict(id, ancestor).1;
            } else if let Some(history) = known {
                // It is gone: by the rules in a tick with these causes, or by the world.
                let last = history.newest_record().map_or(Causes::NONE, |record| record.causes);
                causes = if history.ended().is_some() { last } else { last.with(Cause::World) };
            } else if ancestor.is_none() {
                causes = causes.with(Cause::World);
            }
        }
        causes
    }

    /// Whether a body that no snapshot lists was emitted: it was born and ended between two of them. Its parent has counted
    /// it.
    fn was_emitted(&self, id: BodyId, parent: Option<BodyId>) -> bool {
        let Some(parent) = parent else { return false };
        let told = || Some(self.crowd.body(parent)?.newest_record()?.emitted);
        let count = self.state.get(parent).map(|actor| actor.emitted).or_else(told).unwrap_or(0);
        has_emitted(parent, count, id)
    }
}

/// The birth of a body, if a snapshot has it.
fn birth_of<G: Game>(crowd: &Crowd<G>, id: BodyId, cadence: Cadence) -> Option<(ServerTime, G::Body)> {
    let born = crowd.any_body(id)?.birth()?;
    Some((moment(cadence, born.tick, born.at), born.body))
}

/// So many microseconds into a tick.
fn moment(cadence: Cadence, tick: Tick, at: u32) -> ServerTime {
    cadence.start_of(tick) + core::time::Duration::from_micros(at.into())
}

/// Whether a body that was born in a closed tick is of the group: it lives, or it ended as a member.
fn is_of_group<G: Game>(scene: &Scene<G>, id: BodyId) -> bool {
    let lives = scene.present().iter().any(|present| present.who.id == id);
    lives || scene.ends().iter().any(|end| end.who.id == id)
}

impl<G: Game> Tracked<G> {
    fn born(id: BodyId, parent: Option<BodyId>, at: ServerTime, body: G::Body) -> Self {
        Self { id, parent, born: Certainty::Predicted, ended: None, grouped: true, at, body }
    }

    fn event(&self, life: Life, certainty: Certainty) -> LifeEvent<G> {
        let Self { id, parent, at, body, .. } = *self;
        LifeEvent { id, parent, life, certainty, at, body, touched: Touched::default(), cause: None }
    }

    /// Compares it with a state. Returns the events to report, and whether it stays tracked.
    fn judge(&mut self, evidence: &Evidence<'_, G>, cadence: Cadence) -> ([Option<LifeEvent<G>>; 2], bool) {
        let (scene, crowd) = (evidence.predictor.scene(), evidence.crowd);
        let id = self.id;
        if self.ended == Some(Certainty::Confirmed) {
            // A snapshot on an older base can still bring it.
            let forgotten = self.at + cadence.span_of(history_ticks(cadence));
            return ([None, None], cadence.end_of(evidence.state.tick) < forgotten);
        }
        let parent = self.parent;
        let revoked = |event: LifeEvent<G>| {
            let causes = evidence.causes(id, parent);
            LifeEvent { cause: Some(causes.foremost().unwrap_or(Cause::Unexplained)), ..event }
        };
        let known = crowd.any_body(id);
        let mut first = None;
        if self.born == Certainty::Predicted {
            if known.is_some() || (!is_of_group(scene, id) && evidence.was_emitted(id, self.parent)) {
                self.born = Certainty::Confirmed;
                (self.at, self.body) = birth_of(crowd, id, cadence).unwrap_or((self.at, self.body));
                first = Some(self.event(Life::Born, Certainty::Confirmed));
            } else if !is_of_group(scene, id) {
                let ended = self.ended.map(|_| revoked(self.event(Life::Ended, Certainty::Revoked)));
                return ([ended, Some(revoked(self.event(Life::Born, Certainty::Revoked)))], false);
            }
        }
        let over = known.filter(|history| history.ended().is_some() || crowd.is_gone(id));
        if let Some(history) = over {
            let end = cadence.start_of(history.newest()) + history.ended().unwrap_or(cadence.interval());
            (self.at, self.body, self.ended) = (end, *history.latest(), Some(Certainty::Confirmed));
            // It stays until it is over at render time: until then the others must not draw it again.
            return ([first, Some(self.event(Life::Ended, Certainty::Confirmed))], true);
        }
        if self.born == Certainty::Confirmed && known.is_none() && crowd.is_gone(id) {
            // No snapshot has it any more, and its last state was forgotten.
            self.ended = Some(Certainty::Confirmed);
            return ([first, Some(self.event(Life::Ended, Certainty::Confirmed))], true);
        }
        if self.ended == Some(Certainty::Predicted) && scene.present_of(id).is_some() {
            self.ended = None;
            return ([first, Some(revoked(self.event(Life::Ended, Certainty::Revoked)))], true);
        }
        // It left at once: there was no place for it.
        self.grouped &= self.ended.is_some() || is_of_group(scene, id);
        ([first, None], true)
    }
}
