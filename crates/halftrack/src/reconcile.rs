//! The controlled body as a whole: prediction, authority and presentation, and a record of every correction.
//!
//! ```text
//!  input ──► Predictor ──► predicted body ─────────────► gameplay
//!               ▲   │            │
//!     state ────┘   └─ Rebuilt ──┤
//!                        │       ▼
//!                        └──► Presenter ──► visible pose ──► screen
//!                        │
//!                        └──► Diagnosis ──► tests, page, metrics
//! ```
//!
//! Knows ticks and states, never packets.

use std::collections::VecDeque;
use std::sync::Arc;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::clock::Rate;
use crate::error::{ConfigError, Ignored};
use crate::game::{Game, MotionLimits};
use crate::input::{Inputs, TickInput, Upto};
use crate::model::{Offset, Pose};
use crate::predict::{Authority, PredictConfig, Predictor, Rebuilt, Resync, SavedPrediction};
use crate::present::{CorrectionConfig, Corrections, Outcome, Presenter};
use crate::saved::{Unrestorable, ensure};
use crate::stats::CorrectionStats;
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp};

/// What one accepted state did to the controlled body.
#[derive_where(Clone, Copy, Debug, PartialEq)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Diagnosis<G: Game> {
    // spec: DIAG-01
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

/// Predicts, reconciles and presents the controlled body.
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
/// use halftrack::cart::{Cart, CartBody};
/// use halftrack::{Authority, Causes, Epoch, PredictConfig, Reconciler, ServerTime, Tick, Timestamp};
///
/// let mut state = Authority::<Cart> {
///     epoch: Epoch::default(),
///     tick: Tick::new(9),
///     body: CartBody::at(0.0),
///     neighbours: vec![],
///     causes: Causes::NONE,
/// };
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
    /// Limits of the newest state: the presenter's config follows from them.
    limits: MotionLimits,
    predictor: Predictor<G>,
    /// None while the body is not drawn.
    presenter: Option<Presenter<G::Pose>>,
    recent: VecDeque<Diagnosis<G>>,
    stats: CorrectionStats,
}

impl<G: Game> Reconciler<G> {
    /// How many of the latest diagnoses are kept: three seconds at the default cadence.
    pub const RECENT: usize = 64;

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
        let corrections = Corrections::new(Arc::clone(&rules), predict.cadence, correction)?;
        let limits = rules.limits(&authority.body);
        let predictor = Predictor::new(Arc::clone(&rules), predict, now, time, authority)?;
        let presenter = rules
            .pose(predictor.predicted())
            .map(|pose| Presenter::new(corrections.of(&authority.body), now, pose))
            .transpose()?;
        let recent = VecDeque::with_capacity(Self::RECENT);
        let stats = CorrectionStats::default();
        Ok(Self { rules, corrections, limits, predictor, presenter, recent, stats })
    }

    /// Another body of the same player, spawned since the last state: predicted by the same input on the same clock, from
    /// `authority`, which this reconciler has not accepted yet.
    ///
    /// # Errors
    /// When the state is stale or impossible, as for [`Self::accept`].
    pub(crate) fn beside(
        &self,
        now: Timestamp,
        target: ServerTime,
        authority: &Authority<G>,
    ) -> Result<Self, Ignored> {
        let mut predictor = self.predictor.clone();
        predictor.accept(now, target, authority)?;
        let config = self.corrections.of(&authority.body);
        let pose = self.rules.pose(predictor.predicted());
        Ok(Self {
            rules: Arc::clone(&self.rules),
            corrections: self.corrections.clone(),
            limits: self.rules.limits(&authority.body),
            predictor,
            presenter: pose.map(|pose| Presenter::at_rest(config, now, pose)),
            recent: VecDeque::with_capacity(Self::RECENT),
            stats: CorrectionStats::default(),
        })
    }

    /// Brings everything to `now`. Returns the visible pose; `None` for a body that is not drawn.
    pub fn frame(&mut self, now: Timestamp) -> Option<G::Pose> {
        self.predictor.update(now);
        let Some(pose) = self.rules.pose(self.predictor.predicted()) else {
            self.presenter = None;
            return None;
        };
        Some(self.draw(now, pose))
    }

    fn draw(&mut self, now: Timestamp, pose: G::Pose) -> G::Pose {
        let presenter = self.presenter.get_or_insert_with(|| {
            let config = self.corrections.of(&self.predictor.baseline().body);
            Presenter::at_rest(config, now, pose)
        });
        presenter.frame(now, pose)
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

    /// Takes an authoritative state that arrived at `now`; `target` is the server's time now plus the lead.
    ///
    /// # Errors
    /// When the state is stale, a duplicate or impossible: counted, and only time has moved on.
    pub fn accept(
        &mut self,
        now: Timestamp,
        target: ServerTime,
        authority: &Authority<G>,
    ) -> Result<Diagnosis<G>, Ignored> {
        let rebuilt = self.predictor.accept(now, target, authority);
        // The state or not, time has moved on: what is corrected is seen from where the screen is now.
        let moved = rebuilt.map_or(*self.predictor.predicted(), |rebuilt| rebuilt.before);
        if let Some(pose) = self.rules.pose(&moved) {
            self.draw(now, pose);
        }
        let rebuilt = rebuilt?;
        let limits = self.rules.limits(&authority.body);
        if limits != self.limits {
            self.limits = limits;
            if let Some(presenter) = &mut self.presenter {
                presenter.limit(self.corrections.of(&authority.body));
            }
        }
        let (before, after) = (self.rules.pose(&rebuilt.before), self.rules.pose(&rebuilt.after));
        // A body that is not drawn is compared as a whole.
        let differs = before != after || (after.is_none() && rebuilt.before != rebuilt.after);
        let cause = differs.then(|| cause_of(&rebuilt));
        let outcome = match (&mut self.presenter, after) {
            (Some(presenter), Some(after)) => presenter.correct(now, after, cause),
            _ if differs => Outcome::Negligible,
            _ => Outcome::Unchanged,
        };
        let correction = after.zip(before).map_or(Offset::ZERO, |(after, before)| after.offset_from(&before));
        let diagnosis = Diagnosis {
            at: now,
            server_tick: authority.tick,
            authoritative: self.rules.pose(&authority.body),
            predicted_before: before,
            predicted_after: after,
            correction_distance: correction.distance(),
            correction_angle: correction.angle(),
            cause,
            outcome,
            replayed_ticks: rebuilt.replayed_ticks,
            resync: rebuilt.resync,
        };
        // spec: DIAG-03
        self.stats.count(cause, outcome, diagnosis.correction_distance, diagnosis.correction_angle);
        if self.recent.len() >= Self::RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(diagnosis);
        Ok(diagnosis)
    }

    /// Brings prediction to `now`, and draws nothing.
    pub fn update(&mut self, now: Timestamp) {
        self.predictor.update(now);
    }

    /// The server has had the last word on what it did before the state of `tick`: a correction that was put down to
    /// lost input was one of `cause`.
    pub fn revise(&mut self, tick: Tick, cause: Cause) {
        let told = self.recent.iter_mut().find(|diagnosis| diagnosis.server_tick == tick);
        if let Some(told) = told.filter(|told| told.cause == Some(Cause::LostInput)) {
            told.cause = Some(cause);
            let (distance, angle) = (told.correction_distance, told.correction_angle);
            self.stats.revise((Cause::LostInput, cause), distance, angle);
        }
    }

    /// What gameplay reads: the predicted body.
    pub fn predicted(&self) -> &G::Body {
        // spec: RECON-03
        self.predictor.predicted()
    }

    /// The visible pose: the predicted one plus what is left of a correction. `None` for a body that is not drawn.
    pub fn visible(&self) -> Option<&G::Pose> {
        self.presenter.as_ref().map(Presenter::visible)
    }

    /// The prediction inside.
    pub fn predictor(&self) -> &Predictor<G> {
        &self.predictor
    }

    /// The presentation inside; `None` for a body that is not drawn.
    pub fn presenter(&self) -> Option<&Presenter<G::Pose>> {
        self.presenter.as_ref()
    }

    /// The latest diagnoses, oldest first, at most [`Self::RECENT`].
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = &Diagnosis<G>> + ExactSizeIterator {
        // spec: DIAG-02
        self.recent.iter()
    }

    /// How many corrections of each cause there have been, and what became of them.
    pub fn stats(&self) -> &CorrectionStats {
        &self.stats
    }
}

/// The state of a [`Reconciler`].
pub(crate) type SavedReconciler<G> =
    (SavedPrediction<G>, Option<Presenter<<G as Game>::Pose>>, VecDeque<Diagnosis<G>>, CorrectionStats);

impl<G: Game> Reconciler<G> {
    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        let Self { rules: _, corrections: _, limits: _, predictor, presenter, recent, stats } = self;
        (predictor.saved(), presenter, recent, stats)
    }

    pub(crate) fn restore(&mut self, saved: SavedReconciler<G>) -> Result<(), Unrestorable> {
        let (predictor, presenter, recent, stats) = saved;
        self.predictor.restore(predictor)?;
        (self.presenter, self.recent, self.stats) = (presenter, recent, stats);
        let baseline = &self.predictor.baseline().body;
        let config = self.corrections.of(baseline);
        self.limits = self.rules.limits(baseline);
        ensure(self.recent.len() <= Self::RECENT, "diagnoses")?;
        let sound = |presenter: &Presenter<G::Pose>| *presenter.config() == config && presenter.is_sound();
        ensure(self.presenter.as_ref().is_none_or(sound), "presentation")
    }
}

/// The cause that takes precedence; `Unexplained` when neither side knows of any.
fn cause_of<G: Game>(rebuilt: &Rebuilt<G>) -> Cause {
    // spec: CORR-05
    rebuilt.causes.foremost().unwrap_or(Cause::Unexplained)
}
