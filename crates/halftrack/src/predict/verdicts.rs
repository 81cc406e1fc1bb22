//! The verdict on each body of a state that is accepted: what had been predicted of it, and why it may have been corrected.

use derive_where::derive_where;

use super::scene::Scene;
use super::{Authority, Resync, Role};
use crate::cause::{Cause, Causes};
use crate::game::{Game, Touched};
use crate::id::BodyId;
use crate::tick::Tick;

/// Verdicts on the bodies of the newest state, in order of their ids. The memory is used again.
#[derive_where(Clone, Debug, Default)]
pub(crate) struct Verdicts<G: Game> {
    list: Vec<Verdict<G>>,
    /// Contact of bodies that were born since the state, in order of their ids.
    newborn: Vec<(BodyId, Touched)>,
    /// Causes of every body, whatever it did.
    common: Causes,
}

/// The verdict on one body.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Verdict<G: Game> {
    id: BodyId,
    role: Role,
    /// What had been predicted of it at the end of the state's tick, if that was pending.
    pub(crate) expected: Option<G::Body>,
    /// Everything that may have made prediction and state differ.
    pub(crate) causes: Causes,
    /// Its state, or the input that is assumed from there on, is another one than was predicted.
    changed: bool,
    /// It touched another body that changed or that the state does not have, or one that did so itself.
    pushed: bool,
    /// The bodies that it touched, in the prediction before the state and in the one after it.
    touched: Touched,
}

impl<G: Game> Verdicts<G> {
    /// Begins with the prediction that `state` replaces. It went on from the state after tick `previous`.
    pub(crate) fn begin(
        &mut self,
        scene: &Scene<G>,
        previous: Tick,
        state: &Authority<G>,
        resync: Option<Resync>,
    ) {
        self.list.clear();
        self.newborn.clear();
        self.common = resync.map(|_| Cause::Resync).into_iter().collect();
        for actor in state.actors() {
            let before = scene.after(state.tick, actor.id);
            let foreseen = before.is_some_and(|(_, mark)| {
                actor.role == Role::Own || scene.has_assumed(actor.driver, mark, (actor.held, actor.known))
            });
            let same = foreseen && before.is_some_and(|(who, _)| who.body == actor.body);
            let other_input = (before.is_some() && !foreseen).then_some(Cause::OtherInput);
            // In a restart nothing was pending.
            let expected = before.filter(|_| resync.is_none() && state.tick > previous);
            self.list.push(Verdict {
                id: actor.id,
                role: actor.role,
                expected: expected.map(|(who, _)| who.body),
                causes: actor.causes.union(other_input.into_iter().collect()),
                changed: !same,
                pushed: false,
                touched: Touched::default(),
            });
        }
        self.touch(scene);
    }

    /// Collects contact in a prediction.
    fn touch(&mut self, scene: &Scene<G>) {
        let closed = scene.contacts().iter().map(|(id, touched)| (*id, touched));
        let open = scene.present().iter().map(|present| (present.who.id, &present.touched));
        // The last tick of a body that ended is in no run.
        let ends = scene.ends().iter().map(|end| (end.who.id, &end.touched));
        for (id, touched) in closed.chain(open).chain(ends).filter(|(_, touched)| !touched.is_empty()) {
            if let Ok(at) = self.list.binary_search_by_key(&id, |verdict| verdict.id) {
                self.list.get_mut(at).into_iter().for_each(|verdict| verdict.touched.merge(touched));
            } else {
                match self.newborn.binary_search_by_key(&id, |(newborn, _)| *newborn) {
                    Ok(at) => {
                        self.newborn.get_mut(at).into_iter().for_each(|(_, known)| known.merge(touched));
                    }
                    Err(at) => self.newborn.insert(at, (id, *touched)),
                }
            }
        }
    }

    /// Ends with the prediction that goes on from `state`.
    pub(crate) fn end(&mut self, scene: &Scene<G>, state: &Authority<G>, more: Option<Cause>) {
        self.touch(scene);
        self.common = self.common.union(more.into_iter().collect());
        for verdict in &mut self.list {
            verdict.pushed = has_met_lost(state, &verdict.touched);
        }
        self.spread();
        let common = self.common;
        for verdict in &mut self.list {
            let collided = match verdict.role {
                Role::Own => !verdict.touched.is_empty(),
                Role::Group | Role::Leaving | Role::Near => verdict.pushed,
            };
            let collision = collided.then_some(Cause::Collision);
            verdict.causes = verdict.causes.union(common).union(collision.into_iter().collect());
        }
        let Self { list, newborn, .. } = self;
        newborn.retain(|(_, touched)| {
            let moves = |other: &Verdict<G>| other.changed || other.pushed;
            has_met_lost(state, touched)
                || list.iter().any(|other| moves(other) && touched.may_include(other.id))
        });
    }

    /// Finds the bodies that were pushed as they were not predicted to be.
    ///
    /// A body that is where it was predicted to be pushes as it was predicted to, unless another one pushes it first: each
    /// round goes one body further along a row of them.
    fn spread(&mut self) {
        loop {
            let mut found = false;
            for at in 0..self.list.len() {
                let Some(verdict) = self.list.get(at).filter(|verdict| !verdict.pushed) else { continue };
                let pushed = self.list.iter().any(|other| {
                    let moves = other.changed || other.pushed;
                    // Rules may say so of one of the two only.
                    let met =
                        || verdict.touched.may_include(other.id) || other.touched.ids().contains(&verdict.id);
                    moves && other.id != verdict.id && met()
                });
                if let Some(verdict) = self.list.get_mut(at).filter(|_| pushed) {
                    (verdict.pushed, found) = (true, true);
                }
            }
            if !found {
                break;
            }
        }
    }

    /// The verdict on a body of the state.
    pub(crate) fn of(&self, id: BodyId) -> Option<&Verdict<G>> {
        let at = self.list.binary_search_by_key(&id, |verdict| verdict.id).ok()?;
        self.list.get(at)
    }

    /// The causes of body `id`, which `parent` has emitted since the state.
    pub(crate) fn causes_of_newborn(
        &self,
        scene: &Scene<G>,
        id: BodyId,
        mut parent: Option<BodyId>,
    ) -> Causes {
        let met = |id: BodyId| self.newborn.binary_search_by_key(&id, |(newborn, _)| *newborn).is_ok();
        let mut own: Causes = met(id).then_some(Cause::Collision).into_iter().collect();
        // An emission of an emission: so many at most are born in a prediction window.
        for _ in 0..Self::MAX_GENERATIONS {
            let Some(id) = parent else { break };
            if let Some(verdict) = self.of(id) {
                return verdict.causes.union(own);
            }
            own = own.union(met(id).then_some(Cause::Collision).into_iter().collect());
            parent = scene.parent_of(id);
        }
        self.common.union(own)
    }

    const MAX_GENERATIONS: usize = 16;
}

/// Whether a body touched one that the state does not have.
fn has_met_lost<G: Game>(state: &Authority<G>, touched: &Touched) -> bool {
    touched.ids().iter().any(|id| state.get(*id).is_none())
}
