//! Other bodies on screen: almost always at their sampled pose, sometimes on the way there.
//!
//! Most bodies have nothing to ease at any moment, and there may be hundreds, so the state of easing is kept apart.

use serde::{Deserialize, Serialize};

use crate::id::BodyId;
use crate::interpolate::Sampling;
use crate::model::Pose;
use crate::present::{CorrectionConfig, Outcome, Presenter};
use crate::time::Timestamp;

/// One body on screen.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Shown<P: Pose> {
    /// Where it is sampled.
    pub(super) pose: P,
    /// Where it is drawn.
    pub(super) visible: P,
    pub(super) sampling: Sampling,
    course: Course,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Course {
    /// It is drawn where it is sampled.
    There,
    /// It is on its way there.
    Eased,
}

/// Where a pose has come from, as far as that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Motion {
    /// By the rules from where it was: it cannot have jumped.
    ByTheRules,
    /// From something else that is known, or guessed.
    Anyhow,
}

impl<P: Pose> Shown<P> {
    pub(super) fn new(pose: P, sampling: Sampling) -> Self {
        Self { pose, visible: pose, sampling, course: Course::There }
    }
}

/// Bodies that are on their way, in order of their ids.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Easings<P: Pose> {
    /// When everybody was drawn last.
    drawn: Timestamp,
    eased: Vec<(BodyId, Presenter<P>)>,
}

impl<P: Pose> Easings<P> {
    pub(super) fn new() -> Self {
        Self { drawn: Timestamp::ZERO, eased: Vec::new() }
    }

    /// A frame has been drawn at `now`.
    pub(super) fn drawn(&mut self, now: Timestamp) {
        self.drawn = now;
    }

    /// Draws body `id` at `now`, sampled at `pose`. `config` is that of its body. Gives whether it had to snap.
    #[inline]
    pub(super) fn show(
        &mut self,
        id: BodyId,
        shown: &mut Shown<P>,
        now: Timestamp,
        (pose, sampling): (P, Sampling),
        motion: Motion,
        config: impl FnOnce() -> CorrectionConfig,
    ) -> bool {
        shown.sampling = sampling;
        if shown.course == Course::There && motion == Motion::ByTheRules {
            (shown.pose, shown.visible) = (pose, pose);
            return false;
        }
        let (config, span) = (config(), now.saturating_since(self.drawn));
        let by_itself = || Presenter::moved_by_itself(&config, span, &shown.pose, &pose);
        if shown.course == Course::There && by_itself() {
            (shown.pose, shown.visible) = (pose, pose);
            return false;
        }
        let outcome =
            self.with_presenter(id, shown, (self.drawn, config), |presenter| presenter.go_to(now, pose));
        shown.pose = pose;
        matches!(outcome, Outcome::Snapped(_))
    }

    /// The drawn pose of body `id` was a guess, and is known to be `pose` by now.
    pub(super) fn correct(
        &mut self,
        id: BodyId,
        shown: &mut Shown<P>,
        now: Timestamp,
        (pose, sampling): (P, Sampling),
        config: CorrectionConfig,
    ) -> Outcome {
        shown.sampling = sampling;
        let outcome =
            self.with_presenter(id, shown, (now, config), |presenter| presenter.correct(now, pose, None));
        shown.pose = pose;
        outcome
    }

    /// Lets the presenter of body `id` do something; one that rests at `since` is made if there is none, and one that rests
    /// afterwards is not kept.
    fn with_presenter<R>(
        &mut self,
        id: BodyId,
        shown: &mut Shown<P>,
        (since, config): (Timestamp, CorrectionConfig),
        act: impl FnOnce(&mut Presenter<P>) -> R,
    ) -> R {
        let found = self.eased.binary_search_by_key(&id, |(eased, _)| *eased);
        let mut fresh = Presenter::at_rest(config, since, shown.pose);
        let presenter = match found {
            Ok(at) => self.eased.get_mut(at).map_or(&mut fresh, |(_, presenter)| presenter),
            Err(_) => &mut fresh,
        };
        presenter.limit(config);
        let done = act(presenter);
        shown.visible = *presenter.visible();
        let rests = presenter.deadline().is_none();
        shown.course = if rests { Course::There } else { Course::Eased };
        match found {
            Ok(at) if rests => drop(self.eased.remove(at)),
            Err(at) if !rests => self.eased.insert(at, (id, fresh)),
            _ => {}
        }
        done
    }

    /// Whether loaded easings can have been saved by some.
    pub(super) fn is_sound(&self) -> bool {
        let in_order = self.eased.is_sorted_by(|(one, _), (other, _)| one < other);
        in_order && self.eased.iter().all(|(_, eased)| eased.is_sound() && eased.config().check().is_ok())
    }

    /// Forgets those who are not drawn any more.
    pub(super) fn retain(&mut self, is_drawn: impl Fn(BodyId) -> bool) {
        self.eased.retain(|(id, _)| is_drawn(*id));
    }
}
