//! [`Remotes`]: all bodies but the player's own, and where each is drawn.
//!
//! They are drawn at a moment before the newest snapshot, so that their way is known: between two ticks the rules give the
//! pose to the bit. Past the newest snapshot the *picture* goes on by the rules for a bounded time and then stands. The game
//! reads the newest state of the server, which is never made up. Knows ticks and states, never packets.

mod delay;
mod sample;
mod shown;

pub use delay::{DelayConfig, RenderClock};
pub use sample::Sampling;

use sample::{Piece, Sampler, SavedSampler};
use shown::{Easings, Motion, Shown};

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::error::ConfigError;
use crate::game::Game;
use crate::id::{BodyId, Driver, PlayerId};
use crate::model::{Body, Offset, Pose};
use crate::present::{CorrectionConfig, Corrections, Outcome};
use crate::saved::{Unrestorable, ensure};
use crate::snapshot::Crowd;
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp};

/// What [`Remotes`] are built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemoteConfig {
    /// When they are drawn.
    pub delay: DelayConfig,
    /// How the picture follows when a guess turns out wrong; `None` derives it from [`Game::limits`] of each body. A
    /// difference beyond the snap thresholds is taken for a respawn or a teleport: there is no way between.
    pub correction: Option<CorrectionConfig>,
}

/// Another body, as of the last frame.
#[derive_where(Clone, Copy, Debug)]
pub struct Remote<'a, G: Game> {
    /// The body.
    pub id: BodyId,
    /// The source of its input: a player, for most.
    pub driver: Driver,
    /// Where it is drawn.
    pub visible: G::Pose,
    /// How the pose was found that the picture follows. What is left of an earlier wrong guess may still come on top.
    pub sampling: Sampling,
    /// The newest state from the server: read it for gameplay.
    pub state: &'a G::Body,
    /// The tick that it is the state after.
    pub state_tick: Tick,
    /// The body of the prediction that carries it, and on which it is drawn: see [`Game::carries`].
    pub carrier: Option<BodyId>,
    /// The server has removed it: it is drawn up to the end of its last tick, and is gone then.
    pub removed: bool,
}

/// Counters of [`Remotes`] since they were built. A picture is one body in one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteStats {
    /// Frames.
    pub frames: u64,
    /// Calls with a `now` before that of an earlier call; taken as that of the earlier one.
    pub backwards: u64,
    /// Pictures that were exact.
    pub exact: u64,
    /// Pictures between two states.
    pub interpolated: u64,
    /// Pictures past the newest state.
    pub extrapolated: u64,
    /// Pictures of bodies that had to stand.
    pub held: u64,
    /// Guesses that were wrong and are eased away.
    pub eased: u64,
    /// Bodies that were too far from where they are to be eased there: a guess was wrong, or states with the way between were
    /// late or lost.
    pub snapped: u64,
    /// Bodies that have appeared, for the first time or again.
    pub joins: u64,
    /// Bodies that have gone, or are not drawn any more.
    pub leaves: u64,
}

/// Every body but the player's own. Belongs to one [`Crowd`]: build another for another one.
///
/// ```
/// use std::sync::Arc;
/// use halftrack::cart::Cart;
/// use halftrack::snapshot::Crowd;
/// use halftrack::{Cadence, DelayConfig, RemoteConfig, Remotes, Timestamp};
///
/// let (rules, cadence) = (Arc::new(Cart), Cadence::default());
/// let config = RemoteConfig { delay: DelayConfig::default(), correction: None };
/// let mut remotes = Remotes::new(Arc::clone(&rules), config, cadence)?;
/// let crowd = Crowd::new(rules, cadence);
/// // After each snapshot that `crowd` has read: remotes.accepted(now, tick). On each frame:
/// remotes.frame(Timestamp::from_micros(1_000), None, &crowd);
/// assert_eq!(remotes.iter().count(), 0, "no snapshot has come");
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive_where(Clone, Debug)]
pub struct Remotes<G: Game> {
    clock: RenderClock,
    sampler: Sampler<G>,
    corrections: Corrections<G>,
    easings: Easings<G::Pose>,
    /// In order of their ids.
    kept: Vec<Kept<G>>,
    own: Option<PlayerId>,
    /// Bodies that are drawn elsewhere, in order of their ids.
    left_out: Vec<BodyId>,
    /// Bodies that were drawn elsewhere until now, and where.
    returning: Vec<(BodyId, G::Pose)>,
    /// Emitted bodies that have appeared or gone since they were last asked for.
    turns: Vec<(BodyId, Turn)>,
    now: Timestamp,
    crowd: News,
    stats: RemoteStats,
}

/// A change of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Appeared,
    Gone,
}

/// Whether the crowd has read anything since the last frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    None,
    Some,
}

#[derive_where(Clone, Debug)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Kept<G: Game> {
    id: BodyId,
    driver: Driver,
    /// Another body emitted it.
    emitted: bool,
    state: G::Body,
    state_tick: Tick,
    removed: bool,
    /// None until what is drawn has come to the first state known.
    shown: Option<Shown<G::Pose>>,
    /// The body that carries it, and the displacement by that.
    carrier: Option<BodyId>,
    shift: Offset,
    /// The tick that is drawn: looked up once, drawn a few times.
    piece: Option<Piece<G>>,
}

impl<G: Game> Remotes<G> {
    /// Nobody is drawn yet.
    ///
    /// # Errors
    /// When a field of `config` is out of its range, or it promises more than it can keep.
    pub fn new(rules: Arc<G>, config: RemoteConfig, cadence: Cadence) -> Result<Self, ConfigError> {
        Ok(Self {
            clock: RenderClock::new(config.delay, cadence)?,
            sampler: Sampler::new(Arc::clone(&rules), cadence, config.delay.max_extrapolate),
            corrections: Corrections::new(rules, cadence, config.correction)?,
            easings: Easings::new(),
            kept: Vec::new(),
            own: None,
            left_out: Vec::new(),
            returning: Vec::new(),
            turns: Vec::new(),
            now: Timestamp::ZERO,
            crowd: News::None,
            stats: RemoteStats::default(),
        })
    }

    /// The crowd has read the snapshot of `tick`, which arrived at `now`.
    pub fn accepted(&mut self, now: Timestamp, tick: Tick) {
        self.clock.arrived(now, tick);
        self.learned();
    }

    /// The crowd has read something.
    pub(crate) fn learned(&mut self) {
        self.crowd = News::Some;
        self.sampler.forget();
    }

    /// The server's clock has slipped (a new time epoch), or the caller's has jumped ahead: what was measured of arrivals
    /// is forgotten. All bodies stay, and are drawn where they were until newer states come.
    pub fn reset(&mut self) {
        self.clock.reset();
    }

    /// Leaves these bodies out from the next frame on, given in order of their ids: they are drawn elsewhere.
    pub(crate) fn leave_out(&mut self, ids: &[BodyId]) {
        if self.left_out != ids {
            self.left_out.clear();
            self.left_out.extend_from_slice(ids);
            self.crowd = News::Some;
        }
    }

    /// Draws a body from the next frame on that was drawn elsewhere until now, at `visible`.
    pub(crate) fn take_over(&mut self, id: BodyId, visible: G::Pose) {
        self.returning.push((id, visible));
    }

    /// Takes the emitted bodies that have appeared in the picture, or gone from it, since the last call.
    pub(crate) fn take_turns(&mut self) -> impl Iterator<Item = (BodyId, Turn)> + '_ {
        self.turns.drain(..)
    }

    /// Where a body was drawn in the last frame.
    pub(crate) fn visible(&self, id: BodyId) -> Option<G::Pose> {
        let at = self.kept.binary_search_by_key(&id, |kept| kept.id).ok()?;
        self.kept.get(at)?.shown.as_ref().map(|shown| shown.visible)
    }

    /// The first body after `previous` in order of the ids that is drawn and rides on something.
    pub(crate) fn next_rider(
        &self,
        previous: Option<BodyId>,
        rides: impl Fn(&G::Body) -> bool,
    ) -> Option<BodyId> {
        let from = self.kept.partition_point(|kept| Some(kept.id) <= previous);
        let mut rest = self.kept.iter().skip(from).filter(|kept| kept.shown.is_some());
        rest.find(|kept| rides(&kept.state)).map(|kept| kept.id)
    }

    /// Draws a body displaced by the way of its carrier.
    pub(crate) fn carry(&mut self, id: BodyId, carrier: Option<BodyId>, shift: &Offset) {
        let Ok(at) = self.kept.binary_search_by_key(&id, |kept| kept.id) else { return };
        if let Some(kept) = self.kept.get_mut(at) {
            (kept.carrier, kept.shift) = (carrier, *shift);
        }
    }

    /// The pose of a body at `time`, if snapshots have it, as prediction would have it: nothing is drawn.
    pub(crate) fn pose_at(&mut self, crowd: &Crowd<G>, id: BodyId, time: ServerTime) -> Option<G::Pose> {
        let Self { sampler, corrections, .. } = self;
        let history = crowd.any_body(id)?;
        sampler.pose_among_all(crowd, id, history, time, || corrections.of(history.latest()))
    }

    /// Brings all bodies but those of `own` to `now`. `crowd` is the one whose snapshots were accepted.
    pub fn frame(&mut self, now: Timestamp, own: Option<PlayerId>, crowd: &Crowd<G>) {
        self.stats.frames += 1;
        self.stats.backwards += u64::from(now < self.now);
        if self.crowd == News::Some || own != self.own {
            self.own = own;
            self.crowd = News::None;
            self.sampler.forget();
            self.correct_guesses(crowd);
            self.meet(crowd);
        }
        self.now = self.now.max(now);
        if let Some(time) = self.clock.frame(self.now) {
            self.let_go(time, crowd);
            self.draw(time, crowd);
        }
    }

    /// Lets go of bodies that were removed, and that have been drawn to the end of their last tick.
    fn let_go(&mut self, time: ServerTime, crowd: &Crowd<G>) {
        // spec: REMOTE-06
        let ends = |kept: &Kept<G>| crowd.end_of(kept.id);
        let before = self.kept.len();
        let mut drawn = 0;
        let turns = &mut self.turns;
        self.kept.retain(|kept| {
            let goes = kept.removed && ends(kept).is_none_or(|end| end <= time);
            drawn += u64::from(goes && kept.shown.is_some());
            if goes && kept.emitted {
                turns.push((kept.id, Turn::Gone));
            }
            !goes
        });
        self.left(before, drawn);
    }

    /// Forgets corrections of bodies that left, of which so many were drawn.
    fn left(&mut self, before: usize, drawn: u64) {
        if self.kept.len() < before {
            let kept = &self.kept;
            self.easings.retain(|id| kept.binary_search_by_key(&id, |kept| kept.id).is_ok());
        }
        self.stats.leaves += drawn;
    }

    /// All bodies at `time`. One that is not known at that time stays as it was.
    fn draw(&mut self, time: ServerTime, crowd: &Crowd<G>) {
        let mut known = crowd.kept().peekable();
        for kept in &mut self.kept {
            let id = kept.id;
            let along = kept.piece.as_ref().and_then(|piece| self.sampler.along(piece, time));
            if let (Some(pose), Some(shown)) = (along, &mut kept.shown) {
                let config = || self.corrections.of(&kept.state);
                let sampled = (pose, Sampling::Exact);
                self.easings.show(id, shown, self.now, sampled, Motion::ByTheRules, config);
                self.stats.exact += 1;
                continue;
            }
            while known.next_if(|(each, _)| *each < id).is_some() {}
            let history = known.next_if(|(each, _)| *each == id).map(|(_, history)| history);
            let config = || self.corrections.of(&kept.state);
            let sampled = history.and_then(|history| self.sampler.pose(crowd, id, history, time, config));
            kept.piece = history.and_then(|history| self.sampler.piece(id, history, time));
            // spec: BODY-07
            if sampled.is_none() && history.is_some_and(|history| self.sampler.is_hidden(history, time)) {
                if kept.shown.take().is_some() {
                    self.easings.retain(|each| each != id);
                    self.stats.leaves += 1;
                }
                continue;
            }
            match (sampled, &mut kept.shown) {
                (Some(sampled), Some(shown)) => {
                    let snaps = self.easings.show(id, shown, self.now, sampled, Motion::Anyhow, config);
                    self.stats.snapped += u64::from(snaps);
                }
                (None, Some(shown)) => {
                    let stays = (shown.pose, Sampling::Held);
                    self.easings.show(id, shown, self.now, stays, Motion::Anyhow, config);
                }
                (Some((pose, sampling)), None) => {
                    kept.shown = Some(Shown::new(pose, sampling));
                    self.stats.joins += 1;
                    if kept.emitted {
                        self.turns.push((id, Turn::Appeared));
                    }
                }
                (None, None) => {}
            }
            if let Some(shown) = &kept.shown {
                self.stats.count(shown.sampling);
            }
        }
        self.easings.drawn(self.now);
    }

    /// What was guessed of the last frame may be known by now: the picture stays, and converges.
    fn correct_guesses(&mut self, crowd: &Crowd<G>) {
        let Some(time) = self.clock.render_time() else { return };
        for (id, history) in crowd.kept() {
            let Ok(at) = self.kept.binary_search_by_key(&id, |kept| kept.id) else { continue };
            let Some(Kept { state, shown: Some(shown), .. }) = self.kept.get_mut(at) else { continue };
            if shown.sampling == Sampling::Exact {
                continue;
            }
            let config = || self.corrections.of(state);
            let sampled = self.sampler.pose(crowd, id, history, time, config);
            let Some(sampled) = sampled else { continue };
            match self.easings.correct(id, shown, self.now, sampled, config()) {
                Outcome::Unchanged | Outcome::Negligible => {}
                Outcome::Eased => self.stats.eased += 1,
                Outcome::Snapped(_) => self.stats.snapped += 1,
            }
        }
    }

    /// Takes in new bodies and the newest states, and marks bodies that were removed.
    fn meet(&mut self, crowd: &Crowd<G>) {
        // spec: REMOTE-06
        let rules = self.sampler.rules();
        // A body that was born and ended since the last frame is in no snapshot, and is drawn all the same.
        let clock = &self.clock;
        let fleeting = crowd.fleeting().filter(|(id, _)| clock.render_time() < crowd.end_of(*id));
        for (id, history) in crowd.bodies().chain(fleeting) {
            let (state_tick, state, driver) = (history.newest(), *history.latest(), history.driver());
            let is_own = driver.player().is_some() && driver.player() == self.own;
            if is_own || self.left_out.binary_search(&id).is_ok() {
                continue;
            }
            match self.kept.binary_search_by_key(&id, |kept| kept.id) {
                // spec: REMOTE-05
                Ok(at) => {
                    if let Some(kept) = self.kept.get_mut(at) {
                        (kept.state_tick, kept.state) = (state_tick, state);
                    }
                }
                // spec: BODY-07
                Err(at) if rules.pose(&state).is_some() => {
                    let returns = self.returning.iter().find(|(returning, _)| *returning == id);
                    let shown = returns.map(|(_, visible)| Shown::new(*visible, Sampling::Exact));
                    let fresh = Kept {
                        id,
                        driver,
                        emitted: history.parent().is_some(),
                        state,
                        state_tick,
                        removed: false,
                        shown,
                        carrier: None,
                        shift: Offset::ZERO,
                        piece: None,
                    };
                    self.kept.insert(at, fresh);
                }
                Err(_) => {}
            }
        }
        self.returning.clear();
        let (own, left_out, before) = (self.own, &self.left_out, self.kept.len());
        self.kept.retain_mut(|kept| {
            kept.removed = crowd.is_gone(kept.id);
            let is_own = own.is_some() && kept.driver.player() == own;
            !is_own && left_out.binary_search(&kept.id).is_err()
        });
        self.left(before, 0);
    }

    /// Every body that is drawn, in order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = Remote<'_, G>> {
        self.kept.iter().filter_map(|kept| {
            kept.shown.as_ref().map(|shown| Remote {
                id: kept.id,
                driver: kept.driver,
                visible: if kept.shift == Offset::ZERO {
                    shown.visible
                } else {
                    shown.visible.displaced(&kept.shift)
                },
                carrier: kept.carrier,
                sampling: shown.sampling,
                state: &kept.state,
                state_tick: kept.state_tick,
                removed: kept.removed,
            })
        })
    }

    /// The moment of server time that all of them are drawn at; `None` before the first frame after a first snapshot.
    pub fn render_time(&self) -> Option<ServerTime> {
        self.clock.render_time()
    }

    /// How long ago that was, when the server's clock shows `server_now`.
    pub fn delay(&self, server_now: ServerTime) -> Option<Duration> {
        self.clock.delay(server_now)
    }

    /// The clock that chooses it.
    pub fn clock(&self) -> &RenderClock {
        &self.clock
    }

    /// What has been counted.
    pub fn stats(&self) -> &RemoteStats {
        &self.stats
    }
}

/// The state of [`Remotes`].
pub(crate) type SavedRemotes<G> = (
    (RenderClock, SavedSampler<G>, Easings<<G as Game>::Pose>, Vec<Kept<G>>),
    (Option<PlayerId>, Vec<BodyId>, Vec<(BodyId, <G as Game>::Pose)>),
    (Timestamp, News, RemoteStats),
);

impl<G: Game> Remotes<G> {
    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        let Self {
            clock,
            sampler,
            corrections: _,
            easings,
            kept,
            own,
            left_out,
            returning,
            turns: _,
            now,
            crowd,
            stats,
        } = self;
        ((clock, sampler.saved(), easings, kept), (own, left_out, returning), (now, crowd, stats))
    }

    pub(crate) fn restore(&mut self, saved: SavedRemotes<G>) -> Result<(), Unrestorable> {
        let ((clock, sampler, easings, kept), (own, left_out, returning), rest) = saved;
        ensure(clock.is_sound(&self.clock), "render clock")?;
        self.sampler.restore(sampler)?;
        (self.clock, self.easings, self.kept) = (clock, easings, kept);
        (self.own, self.left_out, self.returning) = (own, left_out, returning);
        (self.now, self.crowd, self.stats) = rest;
        let in_order = self.kept.is_sorted_by(|one, other| one.id < other.id);
        let bodies = self.kept.iter().all(|kept| kept.state.check().is_ok() && kept.piece_is_sound());
        ensure(in_order && bodies && self.easings.is_sound(), "other bodies")
    }
}

impl<G: Game> Kept<G> {
    fn piece_is_sound(&self) -> bool {
        self.piece.is_none_or(|piece| piece.is_sound())
    }
}

impl RemoteStats {
    fn count(&mut self, sampling: Sampling) {
        let counter = match sampling {
            Sampling::Exact => &mut self.exact,
            Sampling::Interpolated => &mut self.interpolated,
            Sampling::Extrapolated => &mut self.extrapolated,
            Sampling::Held => &mut self.held,
        };
        *counter += 1;
    }
}
