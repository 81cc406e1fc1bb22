//! The choice of the bodies that are predicted together with those of the player, and of those near them.
//!
//! It is made once for each state that is accepted, for everything that could touch the group before prediction time. Knows
//! bodies and ticks, never packets.

use core::time::Duration;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::cause::{Cause, Causes};
use crate::error::ConfigError;
use crate::game::{Game, Neighbour, Reach};
use crate::id::BodyId;
use crate::predict::{Actor, Authority, Role, Scene};
use crate::reconcile::Member;
use crate::simulate::has_emitted;
use crate::snapshot::{BodyHistory, Course, Crowd};
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp};

/// The limits of the group that is predicted together with the player's bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupConfig {
    /// The most bodies that join the player's own ones: bodies that these emitted, and those that [`Game::predicts`] names,
    /// the nearest first. The others are drawn at render time. Default 16, at most 256: each costs about 0.15 us for each
    /// pending tick of each state. With 0, a rocket appears only when the server says so.
    pub max_bodies: usize,
    /// The most bodies near the group that move with it, the nearest first, so that the group can meet them. Default 32, at
    /// most 256. With 0, the group drives through everybody and is corrected.
    pub max_near: usize,
    /// How long a body stays in the group after it could last touch it. Default 500 ms, at most 10 s: without it, a body at
    /// the rim would change its draw time to and fro.
    pub linger: Duration,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self { max_bodies: 16, max_near: 32, linger: Duration::from_millis(500) }
    }
}

impl GroupConfig {
    const MOST: usize = 256;
    const LONGEST: Duration = Duration::from_secs(10);

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { max_bodies, max_near, linger } = *self;
        if max_bodies > Self::MOST || max_near > Self::MOST || linger > Self::LONGEST {
            return Err(ConfigError::GroupOutOfRange { max_bodies, max_near, linger });
        }
        Ok(())
    }
}

/// The bodies that `predicts` has named lately.
#[derive_where(Clone, Debug)]
pub(super) struct Group<G: Game> {
    /// In order of their ids.
    joined: Vec<Joined>,
    /// Scratch memory: every other body, and the members found so far.
    others: Vec<Other>,
    members: Vec<(BodyId, Option<Reach>, G::Body)>,
    wanted: Vec<(bool, bool, usize)>,
    staying: Vec<Option<Reach>>,
}

/// A body of the group that the player does not own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Joined {
    id: BodyId,
    /// It stays until then.
    until: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Other {
    id: BodyId,
    parent: Option<BodyId>,
    reach: Option<Reach>,
    role: Option<Role>,
    /// Metres to the nearest member, at most.
    gap: f64,
}

/// The circumstances of a choice.
pub(super) struct Moment<'a, G: Game> {
    pub(super) rules: &'a G,
    pub(super) config: GroupConfig,
    pub(super) cadence: Cadence,
    pub(super) now: Timestamp,
    /// Prediction time, as far as it is known.
    pub(super) time: Option<ServerTime>,
    pub(super) longest: Duration,
    pub(super) crowd: &'a Crowd<G>,
    /// The prediction so far, and the tick of its state.
    pub(super) scene: Option<(&'a Scene<G>, Tick)>,
    /// The bodies that are drawn with the group, in order of their ids.
    pub(super) drawn: &'a [Member<G>],
}

impl<G: Game> Moment<'_, G> {
    /// An emission of an emission: so many at most are looked through for an ancestor that is still there.
    const MAX_GENERATIONS: usize = 16;
    /// A burst of lost snapshots: the choice holds for so much longer than the prediction at hand.
    const SPARE: Duration = Duration::from_millis(250);

    /// How far from the state the choice looks ahead.
    fn horizon(&self, tick: Tick) -> Duration {
        let ahead = self.time.map_or(Duration::ZERO, |time| time.saturating_since(self.cadence.end_of(tick)));
        (ahead + Self::SPARE).min(self.longest)
    }

    /// A body at the end of `tick`: by the newest snapshot, or as it was predicted if that does not have it.
    fn body(&self, id: BodyId, tick: Tick) -> Option<Actor<G>> {
        let told = self.crowd.body(id).filter(|history| history.newest() == tick);
        if let Some((history, record)) = told.and_then(|history| Some((history, history.newest_record()?))) {
            let mut actor = Actor::new(Role::Near, history.neighbour(id), tick);
            (actor.emitted, actor.held) = (record.emitted, record.held);
            actor.causes = self.causes(id, history, tick);
            return Some(actor);
        }
        let (scene, _) = self.scene?;
        let (who, mark) = scene.after(tick, id)?;
        let mut actor = Actor::new(Role::Near, *who, mark.known);
        (actor.emitted, actor.held) = (mark.emitted, mark.held);
        Some(actor)
    }

    /// The reasons for which a body may be another than was predicted.
    fn causes(&self, id: BodyId, history: &BodyHistory<G>, tick: Tick) -> Causes {
        let Some((scene, previous)) = self.scene else { return Causes::NONE };
        let Some((who, mark)) = scene.after(previous, id) else { return Causes::NONE };
        let (mut causes, mut met) = (Causes::NONE, false);
        let mut at = previous;
        while at < tick {
            at = at.next();
            match history.get(at) {
                Some(record) if record.course != Course::Altered => {
                    met |= record.course == Course::Met;
                    if !record.input.holds(scene.assumed(who.driver, mark, at)) {
                        causes = causes.with(Cause::OtherInput);
                    }
                }
                _ => causes = causes.with(Cause::World),
            }
        }
        // It met a body that has moved otherwise than was predicted, and no prediction has them touch.
        if met && scene.after(tick, id).is_none_or(|(who, _)| who.body != *history.latest()) {
            causes = causes.with(Cause::Collision);
        }
        let held = history.newest_record().map(|record| (record.held, tick));
        if held.is_some_and(|held| !scene.has_assumed(who.driver, mark, held)) {
            causes = causes.with(Cause::OtherInput);
        }
        causes
    }

    /// The body that emitted the one whose parent is `parent`, or the nearest ancestor that `is_there`.
    fn ancestor(&self, mut parent: Option<BodyId>, is_there: impl Fn(BodyId) -> bool) -> Option<BodyId> {
        for _ in 0..Self::MAX_GENERATIONS {
            let Some(id) = parent.filter(|id| !is_there(*id)) else { break };
            let known = self.crowd.any_body(id).map(BodyHistory::parent);
            parent = known.or_else(|| self.scene.map(|(scene, _)| scene.parent_of(id))).flatten();
        }
        parent
    }

    /// Whether the prediction at hand has a body as a member.
    fn was_member(&self, id: BodyId, tick: Tick) -> bool {
        self.scene.and_then(|(scene, _)| scene.after(tick, id)).is_some_and(|(_, mark)| mark.role.is_member())
    }

    /// Whether a body is drawn with the group: one that leaves is, until it has come to render time.
    fn is_drawn(&self, id: BodyId) -> bool {
        self.drawn.binary_search_by_key(&id, Member::id).is_ok()
    }

    fn state(&self, id: BodyId, tick: Tick) -> Option<Neighbour<G>> {
        let told = self.crowd.body(id).filter(|history| history.newest() == tick);
        told.map(|history| history.neighbour(id))
            .or_else(|| self.scene?.0.after(tick, id).map(|(who, _)| *who))
    }
}

impl<G: Game> Group<G> {
    pub(super) fn new() -> Self {
        Self {
            joined: Vec::new(),
            others: Vec::new(),
            members: Vec::new(),
            wanted: Vec::new(),
            staying: Vec::new(),
        }
    }

    pub(super) fn forget(&mut self) {
        self.joined.clear();
    }

    pub(super) fn saved(&self) -> &[Joined] {
        &self.joined
    }

    pub(super) fn restore(&mut self, joined: Vec<Joined>) -> bool {
        self.joined = joined;
        self.joined.len() <= 4 * GroupConfig::MOST && self.joined.is_sorted_by(|one, other| one.id < other.id)
    }

    /// Bodies of the group and bodies that leave it at most: as many leave in the time that one takes to be out.
    const fn most_joined(config: &GroupConfig) -> usize {
        4 * config.max_bodies
    }

    /// Adds to `state`, which has the bodies of the player, those of the group and those near it.
    pub(super) fn choose(&mut self, moment: &Moment<'_, G>, state: &mut Authority<G>) {
        // spec: GROUP-01
        let horizon = moment.horizon(state.tick);
        self.list(moment, state, horizon);
        self.members.clear();
        let reach = |body: &G::Body| moment.rules.reach(body, horizon);
        self.members.extend(state.actors().map(|own| (own.id, reach(&own.body), own.body)));
        let own = self.members.len();
        let mut next = 0;
        while let Some(member) = self.members.get(next).copied() {
            self.join(moment, (member, state.tick), own);
            next += 1;
        }
        self.stay(moment, state.tick, own);
        self.limit_near(moment.config.max_near);
        self.push(moment, state);
    }

    /// Lists all other bodies.
    fn list(&mut self, moment: &Moment<'_, G>, state: &Authority<G>, horizon: Duration) {
        self.others.clear();
        let reach = |body: &G::Body| moment.rules.reach(body, horizon);
        let other = |id: BodyId, parent: Option<BodyId>, body: &G::Body| Other {
            id,
            parent,
            reach: reach(body),
            role: None,
            gap: f64::INFINITY,
        };
        let told = moment.crowd.bodies().filter(|(_, history)| history.newest() == state.tick);
        let told = told.filter(|(id, _)| state.get(*id).is_none());
        self.others.extend(told.map(|(id, history)| other(id, history.parent(), history.latest())));
        let known = self.others.len();
        // A body that a snapshot has no room for, or that a lost one would have had, goes on as it was predicted.
        let Some((scene, _)) = moment.scene else { return };
        let covers = moment.crowd.newest() == Some(state.tick);
        for (who, _) in scene.all_after(state.tick) {
            let is_told = self
                .others
                .get(..known)
                .is_some_and(|others| others.binary_search_by_key(&who.id, |other| other.id).is_ok());
            let is_gone = covers && moment.crowd.is_gone(who.id);
            // The state counts the emissions of the player's bodies: those that the server did not make are not waited for.
            let parent = who.parent.and_then(|parent| state.get(parent));
            let was_never = parent.is_some_and(|parent| !has_emitted(parent.id, parent.emitted, who.id));
            if !is_told && !is_gone && !was_never && state.get(who.id).is_none() {
                self.others.push(other(who.id, who.parent, &who.body));
            }
        }
        self.others.sort_unstable_by_key(|other| other.id);
        // A shell that split is gone: the gun that fired it stands for it.
        for at in 0..self.others.len() {
            let Some(other) = self.others.get(at).filter(|other| other.parent.is_some()) else { continue };
            let is_other = |id: BodyId| self.others.binary_search_by_key(&id, |other| other.id).is_ok();
            let parent = moment.ancestor(other.parent, |id| state.get(id).is_some() || is_other(id));
            self.others.get_mut(at).into_iter().for_each(|other| other.parent = parent);
        }
    }

    fn was_joined(joined: &[Joined], id: BodyId) -> bool {
        joined.binary_search_by_key(&id, |joined| joined.id).is_ok()
    }

    /// Lets the bodies join that `member` emitted, or that `predicts` names for it, the known and the nearest first.
    fn join(
        &mut self,
        moment: &Moment<'_, G>,
        ((id, reach, body), tick): ((BodyId, Option<Reach>, G::Body), Tick),
        own: usize,
    ) {
        let Self { joined, others, members, wanted, .. } = self;
        wanted.clear();
        for (at, other) in others.iter_mut().enumerate() {
            let gap = gap(reach.as_ref(), other.reach.as_ref());
            other.gap = other.gap.min(gap);
            let emitted = other.parent == Some(id);
            if other.role == Some(Role::Group) || (gap > 0.0 && !emitted) {
                continue;
            }
            if gap <= 0.0 {
                other.role = Some(Role::Near);
            }
            let state = || moment.state(other.id, tick);
            if emitted || state().is_some_and(|who| moment.rules.predicts(&body, &who.body)) {
                wanted.push((!emitted, !Self::was_joined(joined, other.id), at));
            }
        }
        let gap = |at: usize| others.get(at).map_or(f64::INFINITY, |other| other.gap);
        wanted.sort_unstable_by(|(named, fresh, at), (other_named, other_fresh, other)| {
            let order = (named, fresh).cmp(&(other_named, other_fresh));
            order.then(gap(*at).total_cmp(&gap(*other))).then(at.cmp(other))
        });
        for (_, _, at) in wanted.iter() {
            let Some(other) = others.get_mut(*at) else { continue };
            if members.len() - own >= moment.config.max_bodies {
                break;
            }
            let Some(who) = moment.state(other.id, tick) else { continue };
            other.role = Some(Role::Group);
            members.push((other.id, other.reach, who.body));
            let until = moment.now + moment.config.linger;
            match joined.binary_search_by_key(&other.id, |joined| joined.id) {
                Ok(at) => joined.get_mut(at).into_iter().for_each(|joined| joined.until = until),
                Err(at) => joined.insert(at, Joined { id: other.id, until }),
            }
        }
    }

    /// Bodies that are not named any more stay for a while, and leave then.
    fn stay(&mut self, moment: &Moment<'_, G>, tick: Tick, own: usize) {
        let Self { joined, others, members, staying, .. } = self;
        let mut places = (moment.config.max_bodies + own).saturating_sub(members.len());
        staying.clear();
        // A body that was emitted since, and for which there is no place, leaves as others do.
        for other in others.iter().filter(|other| other.role != Some(Role::Group)) {
            if let Err(at) = joined.binary_search_by_key(&other.id, |joined| joined.id)
                && joined.len() < Self::most_joined(&moment.config)
                && moment.was_member(other.id, tick)
            {
                joined.insert(at, Joined { id: other.id, until: moment.now });
            }
        }
        joined.retain(|joined| {
            let Ok(at) = others.binary_search_by_key(&joined.id, |other| other.id) else { return false };
            let Some(other) = others.get_mut(at) else { return false };
            if other.role == Some(Role::Group) {
                return true;
            }
            let stays = joined.until > moment.now && places > 0;
            if !stays && !moment.is_drawn(joined.id) {
                return false;
            }
            places -= usize::from(stays);
            other.role = Some(if stays { Role::Group } else { Role::Leaving });
            staying.push(other.reach);
            true
        });
        // Many that leave slowly: the first of them go at once.
        while joined.len() > Self::most_joined(&moment.config) {
            let first = (0..joined.len()).min_by_key(|at| joined.get(*at).map(|joined| joined.until));
            let Some(gone) = first.map(|at| joined.remove(at)) else { break };
            if let Ok(at) = others.binary_search_by_key(&gone.id, |other| other.id) {
                others.get_mut(at).into_iter().for_each(|other| other.role = Some(Role::Near));
            }
        }
        // They meet their neighbours as the others of the group do.
        for reach in staying.iter() {
            for other in others.iter_mut() {
                let gap = gap(reach.as_ref(), other.reach.as_ref());
                other.gap = other.gap.min(gap);
                if other.role.is_none() && gap <= 0.0 {
                    other.role = Some(Role::Near);
                }
            }
        }
    }

    fn limit_near(&mut self, max_near: usize) {
        let near = self.others.iter().filter(|other| other.role == Some(Role::Near)).count();
        for _ in max_near..near {
            let near = self.others.iter_mut().filter(|other| other.role == Some(Role::Near));
            if let Some(farthest) = near.max_by(|one, other| one.gap.total_cmp(&other.gap)) {
                farthest.role = None;
            }
        }
    }

    fn push(&self, moment: &Moment<'_, G>, state: &mut Authority<G>) {
        state.reserve(self.others.len().min(moment.config.max_near + Self::most_joined(&moment.config) + 64));
        for other in &self.others {
            let (Some(role), Some(mut actor)) = (other.role, moment.body(other.id, state.tick)) else {
                continue;
            };
            actor.role = role;
            state.push(actor);
        }
        // A body that was emitted late is where it is because its parent's input came late.
        for _ in 0..2 {
            for other in self.others.iter().filter(|other| other.role == Some(Role::Group)) {
                let causes = other.parent.and_then(|parent| state.get(parent)).map(|parent| parent.causes);
                if let Some(causes) = causes {
                    state.add_causes(other.id, causes);
                }
            }
        }
    }
}

/// How far apart two bodies are at least when both have moved towards each other; at most zero if they can touch. A body
/// without a reach can touch all.
fn gap(one: Option<&Reach>, other: Option<&Reach>) -> f64 {
    let (Some(one), Some(other)) = (one, other) else { return f64::NEG_INFINITY };
    let far = one.travel + one.extent + other.travel + other.extent;
    one.at
        .iter()
        .zip(&other.at)
        .map(|(one, other)| (one - other).abs() - far)
        .fold(f64::NEG_INFINITY, f64::max)
}
