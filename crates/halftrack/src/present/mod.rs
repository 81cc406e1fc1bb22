//! What is drawn of the controlled body: the predicted pose plus one offset that decays by contract.
//!
//! Knows poses, causes and time, never ticks or packets. Gameplay never reads it.

mod config;
mod corrections;
mod decay;

use core::time::Duration;

pub use config::CorrectionConfig;
pub(crate) use corrections::Corrections;
use decay::Decay;

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::error::ConfigError;
use crate::model::{Offset, Pose};
use crate::time::{Timestamp, whole_micros};

/// What became of a corrected prediction on screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The predicted pose did not change: nothing to correct.
    Unchanged,
    /// The visible pose was within the deadband, and is the predicted pose now.
    Negligible,
    /// The visible pose stays, and converges.
    Eased,
    /// The visible pose is the predicted pose at once.
    Snapped(Snap),
}

/// Why the visible pose was moved at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Snap {
    /// The body is meant to be elsewhere: respawn or teleport.
    Cause,
    /// Position or rotation was beyond its threshold.
    Size,
    /// States kept the correction from converging for longer than [`CorrectionConfig::escalate_after`].
    Standstill,
    /// The pose was not a number.
    NotFinite,
}

/// What moved the predicted pose further than the body can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A state of the server.
    State,
    /// Prediction itself: another body pushed it. No state keeps this correction from converging.
    Push,
}

/// One correction on its way to zero.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Tail {
    since: Timestamp,
    offset: Offset,
    position: Decay,
    rotation: Decay,
    budget: Duration,
}

impl Tail {
    fn at(&self, now: Timestamp) -> Offset {
        let elapsed = now.saturating_since(self.since);
        self.offset.scaled(self.position.fraction(elapsed), self.rotation.fraction(elapsed))
    }
}

/// Keeps the visible pose of the controlled body.
///
/// ```
/// use core::time::Duration;
/// use halftrack::cart::CartPose;
/// use halftrack::{Cadence, Cause, CorrectionConfig, MotionLimits, Outcome, Presenter, Timestamp};
///
/// let limits = MotionLimits {
///     top_speed: 8.0,
///     top_turn: 2.0,
///     grid_distance: 1.0 / 1024.0,
///     grid_angle: 1e-4,
/// };
/// let config = CorrectionConfig::for_motion(limits, Duration::from_millis(250), Cadence::default());
/// let predicted = |x| CartPose { x, wheel: 0.0 };
/// let start = Timestamp::ZERO;
/// let mut presenter = Presenter::new(config, start, predicted(0.0))?;
///
/// // Late input: the predicted pose jumps by half a metre, the visible one does not.
/// assert_eq!(presenter.correct(start, predicted(0.5), Some(Cause::LateInput)), Outcome::Eased);
/// assert_eq!(presenter.visible().x, 0.0);
/// assert_eq!(presenter.frame(start + Duration::from_millis(400), predicted(0.5)).x, 0.5);
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Presenter<P: Pose> {
    config: CorrectionConfig,
    now: Timestamp,
    predicted: P,
    visible: P,
    tail: Option<Tail>,
    /// The corrections since the offset was last zero, while it is not.
    episode: Option<Episode>,
}

/// Corrections that follow each other before the offset is zero again.
///
/// Without a bound, states that contradict each other would keep the visible pose away from the predicted one for ever. A
/// smaller residual shows nothing: residuals may alternate in sign or grow and shrink. So an episode ends only at zero, or
/// once the offset has been small for a whole budget.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Episode {
    since: Timestamp,
    /// The largest residual, as a part of the snap thresholds, and the budget that it has.
    largest: f64,
    budget: Duration,
    /// Since when the offset has been small beside the largest residual.
    small_since: Option<Timestamp>,
}

impl Episode {
    /// An offset below this part of the largest residual is small.
    const SMALL: f64 = 0.25;

    fn limit(&self) -> f64 {
        self.largest * Self::SMALL
    }
}

impl<P: Pose> Presenter<P> {
    /// The body can be this much faster than its top speed before a change counts as a jump: the prediction
    /// clock runs up to 20 % fast.
    const JUMP_SLACK: f64 = 1.25;

    /// Starts at `now` with the visible pose where the predicted one is.
    ///
    /// # Errors
    /// When `config` has a number out of range, or promises what it cannot keep.
    pub fn new(config: CorrectionConfig, now: Timestamp, predicted: P) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::at_rest(config, now, predicted))
    }

    /// The same with a config that has been checked.
    pub(crate) fn at_rest(config: CorrectionConfig, now: Timestamp, predicted: P) -> Self {
        Self { config, now, predicted, visible: predicted, tail: None, episode: None }
    }

    /// Whether a body can have come from one pose to the other in that time by itself.
    pub(crate) fn moved_by_itself(config: &CorrectionConfig, span: Duration, from: &P, to: &P) -> bool {
        let elapsed = span.as_secs_f64() * Self::JUMP_SLACK;
        let moved = to.offset_from(from);
        moved.distance() <= config.top_speed * elapsed + config.deadband_distance
            && moved.angle() <= config.top_turn * elapsed + config.deadband_angle
    }

    /// The visible pose at `now`, the predicted one having moved by itself to `predicted`.
    pub fn frame(&mut self, now: Timestamp, predicted: P) -> P {
        self.go_to(now, predicted);
        self.visible
    }

    /// The same, with what became of a pose further off than the body goes by itself.
    pub(crate) fn go_to(&mut self, now: Timestamp, predicted: P) -> Outcome {
        self.go_on(now, now.saturating_since(self.now), predicted)
    }

    /// The same for a body whose time runs at half as much again as time does, at most.
    pub(crate) fn slew(&mut self, now: Timestamp, predicted: P) -> Outcome {
        let span = now.saturating_since(self.now);
        self.go_on(now, span + span / 2, predicted)
    }

    /// The predicted pose has gone to `predicted` within `span` of its own time.
    fn go_on(&mut self, now: Timestamp, span: Duration, predicted: P) -> Outcome {
        let by_itself = Self::moved_by_itself(&self.config, span, &self.predicted, &predicted);
        self.now = self.now.max(now);
        if by_itself {
            self.follow(predicted);
            return Outcome::Unchanged;
        }
        self.replace_tail(predicted, None, Change::Push)
    }

    /// Goes on from `visible`, the pose at which the body was drawn until now.
    #[must_use]
    pub(crate) fn drawn_at(mut self, visible: P) -> Self {
        (self.predicted, self.visible) = (visible, visible);
        self
    }

    /// The prediction for `now` has been rebuilt and is `predicted`; `cause` is why it changed.
    ///
    /// Call [`Self::frame`] with the pose predicted before, first: the difference between the two is what is
    /// corrected.
    pub fn correct(&mut self, now: Timestamp, predicted: P, cause: Option<Cause>) -> Outcome {
        self.now = self.now.max(now);
        if predicted == self.predicted {
            self.follow(predicted);
            return Outcome::Unchanged;
        }
        self.replace_tail(predicted, cause, Change::State)
    }

    /// The visible pose as of the last call.
    pub fn visible(&self) -> &P {
        &self.visible
    }

    /// The predicted pose as of the last call.
    pub(crate) fn predicted(&self) -> &P {
        &self.predicted
    }

    /// What is added to the predicted pose as of the last call.
    pub fn offset(&self) -> Offset {
        self.tail.map_or(Offset::ZERO, |tail| tail.at(self.now))
    }

    /// When the correction under way is over at the latest.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.tail.map(|tail| tail.since + tail.budget)
    }

    /// Keeps to another config from here on, which has been checked.
    pub(crate) fn limit(&mut self, config: CorrectionConfig) {
        self.config = config;
    }

    /// Whether a loaded presenter can have been saved by one.
    pub(crate) fn is_sound(&self) -> bool {
        self.tail.is_none_or(|tail| tail.position.is_sound() && tail.rotation.is_sound())
    }

    /// The config it keeps.
    pub fn config(&self) -> &CorrectionConfig {
        &self.config
    }

    /// The visible pose is the predicted one plus what is left of the tail.
    fn follow(&mut self, predicted: P) {
        self.predicted = predicted;
        let offset = self.tail.map(|tail| tail.at(self.now)).filter(|offset| *offset != Offset::ZERO);
        if offset.is_none() {
            (self.tail, self.episode) = (None, None);
        }
        self.visible = offset.map_or(predicted, |offset| predicted.displaced(&offset));
    }

    /// The visible pose stays where it is and the tail bridges the difference, unless it must snap.
    fn replace_tail(&mut self, predicted: P, cause: Option<Cause>, change: Change) -> Outcome {
        // spec: CORR-03
        let old = self.offset();
        let held = if old == Offset::ZERO { self.predicted } else { self.predicted.displaced(&old) };
        let offset = held.offset_from(&predicted);
        let (distance, angle) = (offset.distance(), offset.angle());
        let budget = self.config.budget_for(distance, angle);
        // A push begins no episode: no state keeps it from converging.
        if change == Change::State || self.episode.is_some() {
            self.episode = Some(self.episode_with(&old, &offset, budget));
        }

        let outcome = if let Some(snap) = self.snap(&offset, cause, change) {
            self.tail = None;
            Outcome::Snapped(snap)
        } else if distance <= self.config.deadband_distance && angle <= self.config.deadband_angle {
            self.tail = None;
            Outcome::Negligible
        } else {
            let config = &self.config;
            let tau = |size: f64, threshold: f64| config.tau_for(size / threshold);
            self.tail = Some(Tail {
                since: self.now,
                offset,
                position: Decay::new(distance, config.cap_speed, tau(distance, config.snap_distance), budget),
                rotation: Decay::new(angle, config.cap_turn, tau(angle, config.snap_angle), budget),
                budget,
            });
            Outcome::Eased
        };
        self.follow(predicted);
        outcome
    }

    /// The episode that the offset `new` belongs to, which takes the place of `old`.
    fn episode_with(&self, old: &Offset, new: &Offset, budget: Duration) -> Episode {
        // spec: CORR-06
        let size = self.size(new);
        let begins = Episode { since: self.now, largest: size, budget, small_since: None };
        let Some((known, tail)) = self.episode.zip(self.tail).filter(|_| *old != Offset::ZERO) else {
            return begins;
        };
        let small_since = self.small_since(&known, &tail);
        if small_since.is_some_and(|since| self.now.saturating_since(since) >= known.budget) {
            return begins;
        }
        let largest = known.largest.max(size);
        let mut episode = Episode { largest, budget: known.budget.max(budget), ..known };
        episode.small_since = (size < episode.limit()).then(|| small_since.unwrap_or(self.now));
        episode
    }

    /// Since when the offset has been small by now. A tail only shrinks, so the moment is found by bisection: it does not
    /// depend on how often frames were drawn.
    fn small_since(&self, episode: &Episode, tail: &Tail) -> Option<Timestamp> {
        let is_small =
            |micros: u64| self.size(&tail.at(tail.since + Duration::from_micros(micros))) < episode.limit();
        let (mut small, mut large) = (whole_micros(self.now.saturating_since(tail.since)), 0);
        if is_small(large) {
            return Some(episode.small_since.unwrap_or(tail.since));
        }
        if !is_small(small) {
            return None;
        }
        while small - large > 1 {
            let middle = large + (small - large) / 2;
            if is_small(middle) {
                small = middle;
            } else {
                large = middle;
            }
        }
        Some(tail.since + Duration::from_micros(small))
    }

    /// How large an offset is, as a part of the snap thresholds.
    fn size(&self, offset: &Offset) -> f64 {
        (offset.distance() / self.config.snap_distance).max(offset.angle() / self.config.snap_angle)
    }

    fn snap(&self, offset: &Offset, cause: Option<Cause>, change: Change) -> Option<Snap> {
        // spec: CORR-04, CORR-06
        let stands = |episode: Episode| {
            self.now.saturating_since(episode.since) > episode.budget.mul_f64(self.config.escalate_after)
        };
        if !offset.is_finite() {
            Some(Snap::NotFinite)
        } else if matches!(cause, Some(Cause::Respawn | Cause::Teleport)) {
            Some(Snap::Cause)
        } else if offset.distance() > self.config.snap_distance || offset.angle() > self.config.snap_angle {
            Some(Snap::Size)
        } else if change == Change::State && self.episode.is_some_and(stands) {
            Some(Snap::Standstill)
        } else {
            None
        }
    }
}
