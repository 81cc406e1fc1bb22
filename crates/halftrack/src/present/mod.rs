//! What is drawn of the controlled body: the predicted pose plus one offset that decays by contract.
//!
//! Knows poses, causes and time, never ticks or packets. Gameplay never reads it.

mod config;
mod decay;

use core::time::Duration;

pub use config::{CorrectionConfig, MotionLimits};
use decay::Decay;

use crate::cause::Cause;
use crate::error::ConfigError;
use crate::exact::{Exact, exact, state};
use crate::game::{Offset, Pose};
use crate::time::Timestamp;

/// What became of a corrected prediction on screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snap {
    /// The body is meant to be elsewhere: respawn or teleport.
    Cause,
    /// Position or rotation was beyond its threshold.
    Size,
    /// States kept the correction from converging for more than two budgets.
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
#[derive(Clone, Copy, Debug)]
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
///     max_hold: Duration::from_millis(250),
/// };
/// let config = CorrectionConfig::for_motion(limits, Cadence::default());
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
#[derive(Clone, Debug)]
pub struct Presenter<P: Pose> {
    config: CorrectionConfig,
    now: Timestamp,
    predicted: P,
    visible: P,
    tail: Option<Tail>,
    /// Since when no state has left the offset smaller than it was.
    standing_since: Timestamp,
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
        Self { config, now, predicted, visible: predicted, tail: None, standing_since: now }
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
        let span = now.saturating_since(self.now);
        let by_itself = Self::moved_by_itself(&self.config, span, &self.predicted, &predicted);
        self.now = self.now.max(now);
        if by_itself {
            self.follow(predicted);
        } else {
            self.replace_tail(predicted, None, Change::Push);
        }
        self.visible
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

    /// What is added to the predicted pose as of the last call.
    pub fn offset(&self) -> Offset {
        self.tail.map_or(Offset::ZERO, |tail| tail.at(self.now))
    }

    /// When the correction under way is over at the latest.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.tail.map(|tail| tail.since + tail.budget)
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
            self.tail = None;
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
        self.track_convergence(&old, &offset);

        let outcome = if let Some(snap) = self.snap(&offset, budget, cause, change) {
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

    /// An episode runs from zero offset to zero offset; any state that leaves less than there was shows that it
    /// converges.
    fn track_convergence(&mut self, old: &Offset, new: &Offset) {
        if *old == Offset::ZERO || self.size(new) < self.size(old) {
            self.standing_since = self.now;
        }
    }

    /// How large an offset is, as a part of the snap thresholds.
    fn size(&self, offset: &Offset) -> f64 {
        (offset.distance() / self.config.snap_distance).max(offset.angle() / self.config.snap_angle)
    }

    fn snap(&self, offset: &Offset, budget: Duration, cause: Option<Cause>, change: Change) -> Option<Snap> {
        // spec: CORR-04
        if !offset.is_finite() {
            Some(Snap::NotFinite)
        } else if matches!(cause, Some(Cause::Respawn | Cause::Teleport)) {
            Some(Snap::Cause)
        } else if offset.distance() > self.config.snap_distance || offset.angle() > self.config.snap_angle {
            Some(Snap::Size)
        } else if change == Change::State && self.now.saturating_since(self.standing_since) > budget * 2 {
            Some(Snap::Standstill)
        } else {
            None
        }
    }
}

exact!([] Tail { since, offset, position, rotation, budget });
state!([P: Pose + Exact] Presenter<P> { now, predicted, visible, tail, standing_since } built { config });
