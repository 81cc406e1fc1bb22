//! Births and ends of emitted bodies, each told once: as predicted, and then as confirmed or revoked.

use std::collections::VecDeque;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::cause::{Cause, Causes};
use crate::game::{Game, Touched};
use crate::id::BodyId;
use crate::predict::{Authority, Predictor, Role, Scene};
use crate::snapshot::Crowd;
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
    /// The group draws it, or did: [`crate::Remotes`] leaves it out.
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
    pub(super) fn ended(&self) -> impl Iterator<Item = BodyId> + '_ {
        let ended = self.list.iter().filter(|tracked| tracked.grouped && tracked.ended.is_some());
        ended.map(|tracked| tracked.id)
    }

    /// Forgets bodies that ended in the group, and that `is_past` at render time, too.
    pub(super) fn forget_past(&mut self, is_past: impl Fn(BodyId) -> bool) {
        let over = |tracked: &Tracked<G>| tracked.ended == Some(Certainty::Confirmed);
        self.list.retain(|tracked| !(over(tracked) && is_past(tracked.id)));
    }

    /// A body has left the group: from here on it is drawn as others are.
    pub(super) fn leave(&mut self, id: BodyId) {
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

    /// The prediction has been brought to the present: tells of births and ends in it.
    pub(super) fn predicted(&mut self, predictor: &Predictor<G>) {
        // spec: EMIT-04
        let (scene, cadence) = (predictor.scene(), predictor.cadence());
        let moment =
            |tick: Tick, at: u32| cadence.start_of(tick) + core::time::Duration::from_micros(at.into());
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
        let (scene, cadence) = (predictor.scene(), predictor.cadence());
        let grouped = state.others().iter().filter(|actor| actor.role == Role::Group);
        for actor in grouped.filter(|actor| actor.parent.is_some()) {
            if let Some(tracked) = self.place(actor.id).ok().and_then(|place| self.list.get_mut(place)) {
                tracked.grouped = true;
            } else if crowd.body(actor.id).is_some() {
                let at = cadence.end_of(state.tick);
                let fresh = Tracked::born(actor.id, actor.parent, at, actor.body);
                self.bear(Tracked { born: Certainty::Confirmed, ..fresh });
            }
        }
        let Self { list, events, dropped } = self;
        let mut told = Vec::new();
        list.retain_mut(|tracked| {
            if !tracked.grouped || tracked.ended == Some(Certainty::Confirmed) {
                return true;
            }
            let causes = || predictor.verdict(tracked.id, tracked.parent).1;
            let (events, stays) = tracked.judge(scene, cadence, crowd, causes());
            told.extend(events.into_iter().flatten());
            // The group has no room for it: it is drawn as others are.
            let goes_on = tracked.born == Certainty::Confirmed && tracked.ended.is_none();
            tracked.grouped &= !goes_on || scene.present_of(tracked.id).is_some();
            stays
        });
        for event in told {
            if events.len() >= Self::MAX_EVENTS {
                events.pop_front();
                *dropped += 1;
            }
            events.push_back(event);
        }
    }

    /// A body outside the group appeared in the picture, or has gone from it.
    pub(super) fn drawn(&mut self, id: BodyId, life: Life, cadence: Cadence, crowd: &Crowd<G>) {
        let Some(history) = crowd.any_body(id).filter(|history| history.parent().is_some()) else { return };
        match (life, self.place(id)) {
            (Life::Born, Err(_)) => {
                let birth = history.birth();
                let at = birth.map_or(cadence.end_of(history.newest()), |born| {
                    cadence.start_of(born.tick) + core::time::Duration::from_micros(born.at.into())
                });
                let body = birth.map_or(*history.latest(), |born| born.body);
                let fresh = Tracked::born(id, history.parent(), at, body);
                self.bear(Tracked { born: Certainty::Confirmed, grouped: false, ..fresh });
            }
            (Life::Ended, Ok(place)) => {
                let mut tracked = self.list.remove(place);
                let over = cadence.start_of(history.newest()) + history.ended().unwrap_or(cadence.interval());
                (tracked.at, tracked.body) = (over, *history.latest());
                self.tell(tracked.event(Life::Ended, Certainty::Confirmed));
            }
            _ => {}
        }
    }
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

    /// Holds it against a state. Gives what is to be told of it, and whether it stays.
    fn judge(
        &mut self,
        scene: &Scene<G>,
        cadence: Cadence,
        crowd: &Crowd<G>,
        causes: Causes,
    ) -> ([Option<LifeEvent<G>>; 2], bool) {
        let id = self.id;
        let cause = Some(causes.foremost().unwrap_or(Cause::Unexplained));
        let revoked = |event: LifeEvent<G>| LifeEvent { cause, ..event };
        let known = crowd.any_body(id);
        let mut first = None;
        if self.born == Certainty::Predicted {
            if known.is_some() {
                self.born = Certainty::Confirmed;
                first = Some(self.event(Life::Born, Certainty::Confirmed));
            } else if !is_of_group(scene, id) {
                return ([Some(revoked(self.event(Life::Born, Certainty::Revoked))), None], false);
            }
        }
        let over = known.filter(|history| history.ended().is_some() || crowd.is_gone(id));
        if let Some(history) = over {
            let end = cadence.start_of(history.newest()) + history.ended().unwrap_or(cadence.interval());
            (self.at, self.body) = (end, *history.latest());
            self.ended = Some(Certainty::Confirmed);
            // It stays until it is over at render time: until then the others must not draw it again.
            return ([first, Some(self.event(Life::Ended, Certainty::Confirmed))], true);
        }
        if self.born == Certainty::Confirmed && known.is_none() && crowd.is_gone(id) {
            // No snapshot has it any more, and its last state was forgotten.
            return ([first, Some(self.event(Life::Ended, Certainty::Confirmed))], false);
        }
        if self.ended == Some(Certainty::Predicted) && scene.present_of(id).is_some() {
            self.ended = None;
            return ([first, Some(revoked(self.event(Life::Ended, Certainty::Revoked)))], true);
        }
        ([first, None], true)
    }
}
