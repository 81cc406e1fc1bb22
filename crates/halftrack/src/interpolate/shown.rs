//! What is on screen of each other player: almost always where it is sampled, and sometimes on its way there.
//!
//! Of most players nothing is to be eased at any moment, and there may be hundreds: what easing needs is kept apart.

use crate::exact::{Exact, Loader, Saver, State, exact, exact_enum};
use crate::game::Pose;
use crate::id::PlayerId;
use crate::interpolate::Sampling;
use crate::present::{CorrectionConfig, Outcome, Presenter};
use crate::time::Timestamp;
use crate::wire::WireError;

/// One player on screen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<P: Pose> {
    /// Where it is sampled.
    pub(super) pose: P,
    /// Where it is drawn.
    pub(super) visible: P,
    pub(super) sampling: Sampling,
    course: Course,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Those who are on their way, in order of player.
#[derive(Clone, Debug)]
pub(super) struct Easings<P: Pose> {
    config: CorrectionConfig,
    /// When everybody was drawn last.
    drawn: Timestamp,
    eased: Vec<(PlayerId, Presenter<P>)>,
}

impl<P: Pose> Easings<P> {
    /// `config` has been checked.
    pub(super) fn new(config: CorrectionConfig) -> Self {
        Self { config, drawn: Timestamp::ZERO, eased: Vec::new() }
    }

    /// A frame has been drawn at `now`.
    pub(super) fn drawn(&mut self, now: Timestamp) {
        self.drawn = now;
    }

    /// Draws `player` at `now`, sampled at `pose`.
    #[inline]
    pub(super) fn show(
        &mut self,
        player: PlayerId,
        shown: &mut Shown<P>,
        now: Timestamp,
        (pose, sampling): (P, Sampling),
        motion: Motion,
    ) {
        shown.sampling = sampling;
        if shown.course == Course::There
            && (motion == Motion::ByTheRules
                || Presenter::moved_by_itself(
                    &self.config,
                    now.saturating_since(self.drawn),
                    &shown.pose,
                    &pose,
                ))
        {
            (shown.pose, shown.visible) = (pose, pose);
            return;
        }
        self.with_presenter(player, shown, self.drawn, |presenter| {
            presenter.frame(now, pose);
        });
        shown.pose = pose;
    }

    /// What was drawn of `player` was a guess, and is known to be `pose` by now.
    pub(super) fn correct(
        &mut self,
        player: PlayerId,
        shown: &mut Shown<P>,
        now: Timestamp,
        (pose, sampling): (P, Sampling),
    ) -> Outcome {
        shown.sampling = sampling;
        let outcome = self.with_presenter(player, shown, now, |presenter| presenter.correct(now, pose, None));
        shown.pose = pose;
        outcome
    }

    /// Lets the presenter of `player` do something; one that rests at `since` is made if there is none, and one that rests
    /// afterwards is not kept.
    fn with_presenter<R>(
        &mut self,
        player: PlayerId,
        shown: &mut Shown<P>,
        since: Timestamp,
        act: impl FnOnce(&mut Presenter<P>) -> R,
    ) -> R {
        let found = self.eased.binary_search_by_key(&player, |(eased, _)| *eased);
        let mut fresh = Presenter::at_rest(self.config, since, shown.pose);
        let presenter = match found {
            Ok(at) => self.eased.get_mut(at).map_or(&mut fresh, |(_, presenter)| presenter),
            Err(_) => &mut fresh,
        };
        let done = act(presenter);
        shown.visible = *presenter.visible();
        let rests = presenter.deadline().is_none();
        shown.course = if rests { Course::There } else { Course::Eased };
        match found {
            Ok(at) if rests => drop(self.eased.remove(at)),
            Err(at) if !rests => self.eased.insert(at, (player, fresh)),
            _ => {}
        }
        done
    }

    /// Forgets those who are not drawn any more.
    pub(super) fn retain(&mut self, is_drawn: impl Fn(PlayerId) -> bool) {
        self.eased.retain(|(player, _)| is_drawn(*player));
    }
}

exact_enum!(Course { There, Eased });
exact!([P: Pose + Exact] Shown<P> { pose, visible, sampling, course });

impl<P: Pose + Exact> State for Easings<P> {
    fn save_state(&self, to: &mut Saver) {
        let Self { config: _, drawn, eased } = self;
        drawn.save(to);
        to.number(eased.len() as u64);
        for (player, presenter) in eased {
            player.save(to);
            presenter.visible().save(to);
            presenter.save_state(to);
        }
    }

    fn load_state(&mut self, from: &mut Loader<'_>) -> Result<(), WireError> {
        self.drawn.load_state(from)?;
        self.eased.clear();
        for _ in 0..from.count()? {
            let player = PlayerId::load(from)?;
            let mut presenter = Presenter::at_rest(self.config, self.drawn, P::load(from)?);
            presenter.load_state(from)?;
            self.eased.push((player, presenter));
        }
        let in_order = self.eased.is_sorted_by(|(one, _), (other, _)| one < other);
        if in_order { Ok(()) } else { Err(WireError::Invalid { field: "easings" }) }
    }
}
