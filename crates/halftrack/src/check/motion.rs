//! Checks of a body's drawn motion: poses, limits, and agreement of both builds about them.

use serde::Serialize;

use super::fields::Image;
use super::mistake::{GameMistake, Place};
use crate::cadence::Cadence;
use crate::game::Game;
use crate::model::{Offset, Pose};
use crate::present::{CorrectionConfig, Presenter};

/// Both builds of the rules.
pub(super) struct Builds<'a, G> {
    pub(super) first: &'a G,
    pub(super) second: &'a G,
}

impl<G: Game> Builds<'_, G> {
    /// Checks the motion of a body through a tick without others, from `before` to `after`.
    ///
    /// Pushes may be faster than the limits: the client eases them.
    pub(super) fn check_motion(
        &self,
        place: Place,
        cadence: Cadence,
        before: &G::Body,
        after: &G::Body,
    ) -> Result<(), GameMistake> {
        let rules = self.first;
        let (from, to) = (rules.pose(before), self.checked_pose(place, after)?);
        self.agree(place, "limits", |rules| rules.limits(after))?;
        self.agree(place, "reach", |rules| {
            rules.reach(after, cadence.interval()).map(|reach| (reach.at, reach.extent, reach.travel))
        })?;
        let config = |body| CorrectionConfig::for_motion(rules.limits(body), rules.max_hold(), cadence);
        let configs = [config(before), config(after)];
        for config in &configs {
            config.check().map_err(|problem| GameMistake::LimitsUnusable { place, problem })?;
        }
        // A body that is not drawn has no pose that could be too fast.
        let Some((from, to)) = from.zip(to) else { return Ok(()) };
        // A boost may begin or end within the tick, so the limits of either end will do.
        let span = cadence.interval();
        if configs.iter().any(|config| Presenter::moved_by_itself(config, span, &from, &to)) {
            return Ok(());
        }
        let [config, _] = configs;
        let (moved, seconds) = (to.offset_from(&from), span.as_secs_f64());
        let (speed, turn) = (moved.distance() / seconds, moved.angle() / seconds);
        let by_way = speed / config.top_speed >= turn / config.top_turn;
        let (speed, limit, unit) =
            if by_way { (speed, config.top_speed, "m/s") } else { (turn, config.top_turn, "rad/s") };
        Err(GameMistake::TooFast { place, speed, limit, unit })
    }

    /// Checks the substitutes for missing input after each of `inputs`.
    pub(super) fn check_substitutes(&self, cadence: Cadence, inputs: &[G::Input]) -> Result<(), GameMistake> {
        let hold = self.first.max_hold();
        let ages = [cadence.interval(), hold, hold.saturating_add(cadence.interval())];
        for (index, input) in inputs.iter().enumerate() {
            for age in ages {
                self.agree(Place::PlanInput(index), "substitute", |rules| {
                    rules.substitute(Some(*input), age)
                })?;
            }
        }
        self.agree(Place::DefaultInput, "substitute", |rules| rules.substitute(None, hold))?;
        self.agree(Place::DefaultInput, "max_hold", |rules| rules.max_hold())
    }

    fn checked_pose(&self, place: Place, body: &G::Body) -> Result<Option<G::Pose>, GameMistake> {
        self.agree(place, "pose", |rules| rules.pose(body))?;
        let Some(pose) = self.first.pose(body) else { return Ok(None) };
        let image = Image::of(&pose);
        let still = pose.displaced(&Offset::ZERO);
        if let Some(difference) = image.difference(&Image::of(&still)) {
            return Err(GameMistake::PoseNotStill { place, difference });
        }
        match image.leaves.into_iter().find(|leaf| leaf.value.is_not_finite()) {
            Some(leaf) => Err(GameMistake::PoseNotFinite { place, field: leaf.path, value: leaf.value }),
            None => Ok(Some(pose)),
        }
    }

    /// Calls a function twice with the first build and once with the second: all must agree.
    fn agree<T: Serialize>(
        &self,
        place: Place,
        function: &'static str,
        call: impl Fn(&G) -> T,
    ) -> Result<(), GameMistake> {
        let image = Image::of(&call(self.first));
        if let Some(difference) = image.difference(&Image::of(&call(self.first))) {
            return Err(GameMistake::NotPure { place, function, difference });
        }
        match image.difference(&Image::of(&call(self.second))) {
            Some(difference) => Err(GameMistake::BuildsDiffer { place, function, difference }),
            None => Ok(()),
        }
    }
}
