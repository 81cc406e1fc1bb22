//! The predicted bodies as a whole: prediction, authority and presentation, and a record of every correction.
//!
//! ```text
//!  input ──► Predictor ──► predicted bodies ───────────► gameplay
//!               ▲   │            │
//!     state ────┘   └─ verdicts ─┤
//!                        │       ▼
//!                        └──► Member: Presenter, DrawTime ──► visible pose ──► screen
//!                        │
//!                        └──► Diagnosis ──► tests, page, metrics
//! ```
//!
//! Knows ticks and states, never packets.

mod draw_time;
mod member;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

pub use member::Member;

use crate::cause::Cause;
use crate::clock::Rate;
use crate::error::{ConfigError, Ignored};
use crate::game::Game;
use crate::id::BodyId;
use crate::input::{Inputs, TickInput, Upto};
use crate::model::{Offset, Pose};
use crate::predict::{Authority, PredictConfig, Predictor, Present, Resync, Role, SavedPrediction};
use crate::present::{CorrectionConfig, Corrections, Outcome, Presenter};
use crate::saved::{Unrestorable, ensure};
use crate::stats::CorrectionStats;
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp};

/// The effect of one accepted state on one predicted body.
#[derive_where(Clone, Copy, Debug, PartialEq)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Diagnosis<G: Game> {
    // spec: DIAG-01
    /// The body.
    pub id: BodyId,
    /// When it was accepted.
    pub at: Timestamp,
    /// The tick that the state is the end of.
    pub server_tick: Tick,
    /// The body's pose in the state; `None` for a body that is not drawn, as in the next two.
    pub authoritative: Option<G::Pose>,
    /// The pose predicted for this moment before the state came.
    pub predicted_before: Option<G::Pose>,
    /// The pose predicted for this moment on top of the state.
    pub predicted_after: Option<G::Pose>,
    /// How far apart these two are, in metres.
    pub correction_distance: f64,
    /// How far apart they are turned, in radians.
    pub correction_angle: f64,
    /// Why; `None` when they are the same pose.
    pub cause: Option<Cause>,
    /// What was done about it on screen.
    pub outcome: Outcome,
    /// Ticks replayed, the open one included.
    pub replayed_ticks: u32,
    /// Whether prediction was restarted.
    pub resync: Option<Resync>,
}

impl<G: Game> Diagnosis<G> {
    /// The newest tick whose input the state has settled. A state is how things are *after* its tick, so it is
    /// that tick.
    pub fn acknowledged_tick(&self) -> Tick {
        self.server_tick
    }
}

/// The bodies outside the prediction, as far as a reconciler asks for them.
pub(crate) trait Outside<G: Game> {
    /// The pose of a body at a moment that snapshots cover.
    fn pose(&mut self, id: BodyId, time: ServerTime) -> Option<G::Pose>;

    /// The pose at which a body was drawn in the last frame.
    fn visible(&self, id: BodyId) -> Option<G::Pose>;

    /// The moment at which bodies outside the prediction were drawn in the last frame.
    fn render_time(&self) -> Option<ServerTime>;

    /// The moment at which they are drawn in a frame at `now`.
    fn render_time_at(&self, now: Timestamp) -> Option<ServerTime>;
}

/// Nothing is known of other bodies.
struct Alone;

impl<G: Game> Outside<G> for Alone {
    fn pose(&mut self, _: BodyId, _: ServerTime) -> Option<G::Pose> {
        None
    }

    fn visible(&self, _: BodyId) -> Option<G::Pose> {
        None
    }

    fn render_time(&self) -> Option<ServerTime> {
        None
    }

    fn render_time_at(&self, _: Timestamp) -> Option<ServerTime> {
        None
    }
}

/// A member before a state: at prediction time, and as it was drawn.
type Before<G> = (<G as Game>::Body, Option<<G as Game>::Pose>);

/// Predicts, reconciles and presents the bodies of a player, and the group that is predicted with them.
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
/// use halftrack::cart::{Cart, CartBody};
/// use halftrack::{Authority, Epoch, PredictConfig, Reconciler, ServerTime, Tick, Timestamp};
///
/// let mut state = Authority::<Cart>::new(Epoch::default(), Tick::new(9), CartBody::at(0.0));
/// let (start, server_time) = (Timestamp::ZERO, ServerTime::from_micros(500_000));
/// let (rules, config) = (Arc::new(Cart), PredictConfig::default());
/// let mut cart = Reconciler::new(rules, config, None, start, server_time, &state)?;
///
/// // A quarter of a second at rest; then the server says that it was all the same to it.
/// let now = start + Duration::from_millis(250);
/// cart.frame(now);
/// state.tick = Tick::new(11);
/// let diagnosis = cart.accept(now, server_time + Duration::from_millis(250), &state)?;
/// assert_eq!((diagnosis.cause, diagnosis.correction_distance), (None, 0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive_where(Clone, Debug)]
pub struct Reconciler<G: Game> {
    #[derive_where(skip(Debug))]
    rules: Arc<G>,
    corrections: Corrections<G>,
    predictor: Predictor<G>,
    /// In order of their ids.
    members: Vec<Member<G>>,
    /// The latest diagnoses of the group, and counts of all its corrections.
    recent: VecDeque<Diagnosis<G>>,
    group: CorrectionStats,
    /// Corrections of bodies that the player owns no more.
    past: CorrectionStats,
    /// Bodies that have left the group since they were last asked for, and where they were drawn.
    left: Vec<(BodyId, G::Pose)>,
}

impl<G: Game> Reconciler<G> {
    /// How many of the latest diagnoses are kept of each body that the player owns, and of its group together: three seconds
    /// at the default cadence.
    pub const RECENT: usize = 64;
    /// Bodies that leave between two frames at most, as many as a group can have.
    const MAX_LEFT: usize = 256;

    /// Starts at `now` from `authority`, with `time` the server's time now plus the lead. Without `correction`, the
    /// thresholds of corrections follow from [`Game::limits`] of the body.
    ///
    /// # Errors
    /// When a config or the game's limits are out of range, or the state is of a tick that no server reaches.
    pub fn new(
        rules: Arc<G>,
        predict: PredictConfig,
        correction: Option<CorrectionConfig>,
        now: Timestamp,
        time: ServerTime,
        authority: &Authority<G>,
    ) -> Result<Self, ConfigError> {
        let start = (now, time, G::Input::default());
        Self::new_among(rules, (predict, correction), start, authority, &mut Alone)
    }

    /// The same among other bodies, of which some may have been drawn before, of a player that wants an input.
    pub(crate) fn new_among(
        rules: Arc<G>,
        (predict, correction): (PredictConfig, Option<CorrectionConfig>),
        (now, time, wanted): (Timestamp, ServerTime, G::Input),
        authority: &Authority<G>,
        outside: &mut impl Outside<G>,
    ) -> Result<Self, ConfigError> {
        let corrections = Corrections::new(Arc::clone(&rules), predict.cadence, correction)?;
        let predictor = Predictor::counting(Arc::clone(&rules), predict, (now, time), authority, wanted)?;
        let mut reconciler = Self {
            rules,
            corrections,
            predictor,
            members: Vec::new(),
            recent: VecDeque::new(),
            group: CorrectionStats::default(),
            past: CorrectionStats::default(),
            left: Vec::new(),
        };
        reconciler.meet(now, outside);
        Ok(reconciler)
    }

    /// Brings everything to `now`. Returns the visible pose of the first body that the player owns; `None` if it is not
    /// drawn.
    pub fn frame(&mut self, now: Timestamp) -> Option<G::Pose> {
        self.frame_among(now, &mut Alone)
    }

    /// The same among other bodies.
    pub(crate) fn frame_among(&mut self, now: Timestamp, outside: &mut impl Outside<G>) -> Option<G::Pose> {
        self.catch_up(now, outside);
        let render = self.behind_render(now, outside);
        let Self { members, left, .. } = self;
        members.retain(|member| {
            let goes = member.has_left(render);
            left.extend(member.base().filter(|_| goes).map(|pose| (member.id(), *pose)));
            !goes
        });
        self.visible().copied()
    }

    /// Brings prediction to `now`, and draws every member.
    pub(crate) fn catch_up(&mut self, now: Timestamp, outside: &mut impl Outside<G>) {
        self.predictor.update(now);
        self.meet(now, outside);
        let (time, render) = (self.predictor.time(), self.behind_render(now, outside));
        for member in &mut self.members {
            member.draw.advance(now, render);
            let pose = sample(member, &*self.rules, &mut self.predictor, time, outside);
            member.draw(&self.corrections, now, pose);
        }
    }

    /// How far render time is behind prediction time in a frame at `now`.
    fn behind_render(&self, now: Timestamp, outside: &impl Outside<G>) -> Option<Duration> {
        outside.render_time_at(now).map(|render| self.predictor.time().saturating_since(render))
    }

    /// Takes in the bodies that the prediction has now, and lets go of those that it has not.
    fn meet(&mut self, now: Timestamp, outside: &mut impl Outside<G>) {
        let mut joined = Vec::new();
        let Self { rules, corrections, predictor, members, past, left, .. } = self;
        members.iter_mut().for_each(|member| member.is_present = false);
        let time = predictor.time();
        let scene = predictor.scene();
        for present in scene.present().iter().filter(|present| present.is_there()) {
            let Present { who, role, .. } = present;
            match members.binary_search_by_key(&who.id, |member| member.who.id) {
                Ok(place) => {
                    if let Some(member) = members.get_mut(place) {
                        (member.who, member.is_present) = (*who, true);
                        member.take_role(*role);
                    }
                }
                // It has left in a frame since the state that says that it leaves.
                Err(_) if *role == Role::Leaving => {}
                Err(place) => {
                    let mut member = Member::new(corrections, now, (*who, *role), rules.pose(&who.body));
                    // spec: EMIT-04
                    let drawn = outside.visible(who.id).zip(outside.render_time());
                    if let Some((visible, render)) = drawn.filter(|_| *role == Role::Group) {
                        let newborn = scene.births().iter().any(|(_, birth)| birth.id == who.id);
                        if !newborn && present.birth.is_none() {
                            member = member.joining(now, visible, time.saturating_since(render));
                            joined.push(who.id);
                        }
                    }
                    members.insert(place, member);
                }
            }
        }
        // A body that was drawn beside its path comes back to it.
        for member in members.iter_mut().filter(|member| joined.contains(&member.who.id)) {
            let pose = sample(member, rules, predictor, time, outside);
            if let Some((presenter, pose)) = member.presenter.as_mut().zip(pose) {
                let outcome = presenter.correct(now, pose, None);
                member.jumps += u64::from(matches!(outcome, Outcome::Snapped(_)));
            }
        }
        let scene = predictor.scene();
        let has_ended = |id: BodyId| {
            let removed = || scene.present().iter().any(|present| present.who.id == id);
            scene.ends().iter().any(|end| end.who.id == id) || removed()
        };
        members.retain(|member| {
            if member.is_present {
                return true;
            }
            // The newest state does not know it: after a restart, snapshots need a moment to have all bodies. One that the
            // rules removed is over, and one that a body emitted may never have been.
            let is_unknown = member.who.parent.is_none() && !has_ended(member.who.id);
            match (member.role, member.base()) {
                (Role::Own, _) => past.merge(&member.stats),
                // A client that draws no frames takes none of them.
                (_, Some(pose)) if is_unknown && left.len() < Self::MAX_LEFT => {
                    left.push((member.who.id, *pose));
                }
                _ => {}
            }
            false
        });
    }

    /// The player wants `input` from `now` on.
    pub fn set_input(&mut self, now: Timestamp, input: G::Input) {
        self.predictor.set_input(now, input);
    }

    /// Runs the prediction clock at `rate` from `now` on.
    pub fn set_rate(&mut self, now: Timestamp, rate: Rate) {
        self.predictor.set_rate(now, rate);
    }

    /// The recorded ticks that the server has not acknowledged: see [`Predictor::inputs`].
    pub fn inputs(&mut self, upto: Upto, into: &mut Vec<TickInput<G::Input>>) -> Inputs {
        self.predictor.inputs(upto, into)
    }

    /// Takes an authoritative state that arrived at `now`; `target` is the server's time now plus the lead. Returns its
    /// effect on the first body that the player owns.
    ///
    /// # Errors
    /// When the state is stale, a duplicate or impossible: counted, and only time has moved on.
    pub fn accept(
        &mut self,
        now: Timestamp,
        target: ServerTime,
        authority: &Authority<G>,
    ) -> Result<Diagnosis<G>, Ignored> {
        self.accept_among(now, target, authority, &mut Alone)
    }

    /// The same among other bodies.
    pub(crate) fn accept_among(
        &mut self,
        now: Timestamp,
        target: ServerTime,
        authority: &Authority<G>,
        outside: &mut impl Outside<G>,
    ) -> Result<Diagnosis<G>, Ignored> {
        // The state or not, time has moved on: corrections begin where the screen is now.
        self.catch_up(now, outside);
        // A `now` that went back has been counted.
        let now = now.max(self.predictor.now());
        let rebuilt = self.predictor.accept(now, target, authority)?;
        let mut told = Diagnosis {
            id: authority.own.id,
            at: now,
            server_tick: authority.tick,
            authoritative: self.rules.pose(&authority.own.body),
            predicted_before: None,
            predicted_after: self.rules.pose(&rebuilt.after),
            correction_distance: 0.0,
            correction_angle: 0.0,
            cause: None,
            outcome: Outcome::Unchanged,
            replayed_ticks: rebuilt.replayed_ticks,
            resync: rebuilt.resync,
        };
        let (common, mut members) = (told, core::mem::take(&mut self.members));
        for member in &mut members {
            let id = member.id();
            let Some(present) = self.predictor.scene().present_of(id).copied() else { continue };
            let drawn = member.presenter.as_ref().map(|presenter| *presenter.predicted());
            let before = (member.who.body, drawn);
            (member.who, member.is_present) = (present.who, true);
            member.take_role(present.role);
            let diagnosis = correct(
                member,
                (&*self.rules, &self.corrections, &mut self.predictor),
                (&before, authority, common),
                outside,
            );
            if id == authority.own.id {
                told = diagnosis;
            }
            if member.role == Role::Own {
                member.note(diagnosis);
            } else {
                // spec: GROUP-03
                let Diagnosis { cause, outcome, correction_distance, correction_angle, .. } = diagnosis;
                self.group.count(cause, outcome, correction_distance, correction_angle);
                if self.recent.len() >= Self::RECENT {
                    self.recent.pop_front();
                }
                self.recent.push_back(diagnosis);
            }
        }
        self.members = members;
        self.meet(now, outside);
        Ok(told)
    }

    /// Brings prediction to `now`, and draws nothing.
    pub fn update(&mut self, now: Timestamp) {
        self.predictor.update(now);
    }

    /// The server has had the last word on what it did before the state of `tick`: a correction that was put down to
    /// lost input was one of `cause`.
    pub fn revise(&mut self, tick: Tick, cause: Cause) {
        self.members.iter_mut().for_each(|member| member.revise(tick, cause));
    }

    /// What gameplay reads: the first body that the player owns, as predicted.
    pub fn predicted(&self) -> &G::Body {
        // spec: RECON-03
        self.predictor.predicted()
    }

    /// Every predicted body, in order of the ids.
    pub fn members(&self) -> &[Member<G>] {
        &self.members
    }

    /// The predicted body with this id.
    pub fn member(&self, id: BodyId) -> Option<&Member<G>> {
        let place = self.members.binary_search_by_key(&id, |member| member.who.id).ok()?;
        self.members.get(place)
    }

    pub(crate) fn member_mut(&mut self, id: BodyId) -> Option<&mut Member<G>> {
        let place = self.members.binary_search_by_key(&id, |member| member.who.id).ok()?;
        self.members.get_mut(place)
    }

    pub(crate) fn rules(&self) -> &Arc<G> {
        &self.rules
    }

    /// The member at a place of [`Self::members`], the member that carries it, and the way of that one from the rider's draw
    /// time to its own.
    pub(crate) fn carrier_of(
        &mut self,
        place: usize,
        outside: &mut impl Outside<G>,
    ) -> Option<(BodyId, BodyId, Offset)> {
        let Self { rules, predictor, members, .. } = self;
        let rider = members.get(place)?;
        let carrier = members.iter().find(|member| {
            member.who.id != rider.who.id && rules.carries(&member.who.body, &rider.who.body)
        })?;
        let (visible, time) = (*carrier.base()?, predictor.time());
        // The carrier at the draw time of the rider.
        let then = if rider.draw.is_present() {
            rules.pose(&carrier.who.body)?
        } else {
            sample_at(carrier, rules, predictor, rider.draw.at(time), outside)?
        };
        Some((rider.who.id, carrier.who.id, visible.offset_from(&then)))
    }

    /// The first body that the player owns.
    pub fn first(&self) -> Option<&Member<G>> {
        self.member(self.predictor.baseline().own.id)
    }

    /// The visible pose of the first body that the player owns: the predicted one plus what is left of a correction. `None`
    /// for a body that is not drawn.
    pub fn visible(&self) -> Option<&G::Pose> {
        self.first().and_then(Member::visible)
    }

    /// The prediction inside.
    pub fn predictor(&self) -> &Predictor<G> {
        &self.predictor
    }

    /// The presentation of the first body that the player owns; `None` for a body that is not drawn.
    pub fn presenter(&self) -> Option<&Presenter<G::Pose>> {
        self.first().and_then(Member::presenter)
    }

    /// The latest diagnoses of the first body that the player owns, oldest first, at most [`Self::RECENT`].
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = &Diagnosis<G>> + ExactSizeIterator {
        // spec: DIAG-02
        self.first().map_or(&self.recent, |member| &member.recent).iter()
    }

    /// The latest diagnoses of the group, oldest first, at most [`Self::RECENT`].
    pub fn recent_of_group(&self) -> impl DoubleEndedIterator<Item = &Diagnosis<G>> + ExactSizeIterator {
        self.recent.iter()
    }

    /// How many corrections of each cause there have been of the first body that the player owns, and what became of them.
    pub fn stats(&self) -> &CorrectionStats {
        self.first().map_or(&self.past, Member::stats)
    }

    /// The same of all bodies that the player owns or owned.
    pub fn corrections(&self) -> CorrectionStats {
        let mut all = self.past;
        let own = self.members.iter().filter(|member| member.role == Role::Own);
        own.for_each(|member| all.merge(&member.stats));
        all
    }

    /// The same of the bodies of the group that the player does not own.
    pub fn group_corrections(&self) -> &CorrectionStats {
        &self.group
    }

    /// Takes the bodies that have left the group since the last call, and the poses at which they were drawn.
    pub(crate) fn take_left(&mut self) -> impl Iterator<Item = (BodyId, G::Pose)> + '_ {
        self.left.drain(..)
    }
}

/// The predicted pose of a member at its draw time, when prediction is at `time`.
fn sample<G: Game>(
    member: &Member<G>,
    rules: &G,
    predictor: &mut Predictor<G>,
    time: ServerTime,
    outside: &mut impl Outside<G>,
) -> Option<G::Pose> {
    if member.draw.is_present() {
        return rules.pose(&member.who.body);
    }
    let pose = sample_at(member, rules, predictor, member.draw.at(time), outside);
    pose.or(member.presenter.as_ref().map(|presenter| *presenter.predicted()))
}

/// The pose of a member at an earlier moment.
fn sample_at<G: Game>(
    member: &Member<G>,
    rules: &G,
    predictor: &mut Predictor<G>,
    at: ServerTime,
    outside: &mut impl Outside<G>,
) -> Option<G::Pose> {
    // spec: GROUP-04
    match predictor.member_at(member.who.id, at) {
        Some(body) => rules.pose(&body),
        None => outside.pose(member.who.id, at),
    }
}

/// Corrects a member that was predicted and drawn as `before` says, now that the prediction is rebuilt on `state`.
fn correct<G: Game>(
    member: &mut Member<G>,
    (rules, corrections, predictor): (&G, &Corrections<G>, &mut Predictor<G>),
    (before, state, common): (&Before<G>, &Authority<G>, Diagnosis<G>),
    outside: &mut impl Outside<G>,
) -> Diagnosis<G> {
    let (body, before) = *before;
    let actor = state.get(member.who.id);
    let limited = actor.map_or(member.who.body, |actor| actor.body);
    member.limit(corrections, &limited);
    let after = sample(member, rules, predictor, predictor.time(), outside);
    // A body that is not drawn is compared as a whole.
    let differs = before != after || (after.is_none() && body != member.who.body);
    let (expected, causes) = predictor.verdict(member.who.id, member.who.parent);
    // spec: CORR-05
    let cause = differs.then(|| causes.foremost().unwrap_or(Cause::Unexplained));
    let outcome = match (&mut member.presenter, after) {
        (Some(presenter), Some(after)) => presenter.correct(common.at, after, cause),
        _ if differs => Outcome::Negligible,
        _ => Outcome::Unchanged,
    };
    let correction = after.zip(before).map_or(Offset::ZERO, |(after, before)| after.offset_from(&before));
    let (distance, angle) = (correction.distance(), correction.angle());
    // spec: DIAG-03
    member.stats.count(cause, outcome, distance, angle);
    member.accepted += u64::from(actor.is_some());
    let wrong = expected.zip(actor).is_some_and(|(expected, actor)| expected != actor.body);
    member.mispredicted += u64::from(wrong);
    Diagnosis {
        id: member.who.id,
        authoritative: actor.and_then(|actor| rules.pose(&actor.body)),
        predicted_before: before,
        predicted_after: after,
        correction_distance: distance,
        correction_angle: angle,
        cause,
        outcome,
        ..common
    }
}

/// The state of a [`Reconciler`].
pub(crate) type SavedReconciler<G> =
    (SavedPrediction<G>, (Vec<Member<G>>, VecDeque<Diagnosis<G>>), (CorrectionStats, CorrectionStats));

impl<G: Game> Reconciler<G> {
    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        let Self { rules: _, corrections: _, predictor, members, recent, group, past, left: _ } = self;
        (predictor.saved(), (members, recent), (group, past))
    }

    pub(crate) fn restore(&mut self, saved: SavedReconciler<G>) -> Result<(), Unrestorable> {
        let (predictor, (members, recent), (group, past)) = saved;
        self.predictor.restore(predictor)?;
        (self.members, self.recent, self.group, self.past) = (members, recent, group, past);
        let few = |recent: &VecDeque<Diagnosis<G>>| recent.len() <= Self::RECENT;
        let bounded = few(&self.recent) && self.members.iter().all(|member| few(&member.recent));
        ensure(bounded, "diagnoses")?;
        let in_order = self.members.is_sorted_by(|one, other| one.who.id < other.who.id);
        ensure(in_order && self.members.iter().all(Member::is_sound), "presentation")?;
        ensure(self.first().is_some(), "own body")
    }
}
