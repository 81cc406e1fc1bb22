//! Checks of the broad phase: bodies out of reach must make no difference.

use core::time::Duration;

use super::mistake::{GameMistake, Place};
use super::values::body_difference;
use crate::cadence::Cadence;
use crate::game::{Effects, Game, Neighbour, Step};
use crate::input::TickInput;
use crate::replay::Replay;
use crate::simulate::collect_neighbours;
use crate::tick::Tick;

/// A body among all bodies of a room, at the start of a tick.
pub(super) struct Among<'a, G: Game> {
    pub(super) rules: &'a G,
    pub(super) cadence: Cadence,
    pub(super) tick: Tick,
    pub(super) bodies: &'a [Neighbour<G>],
    pub(super) own: usize,
    pub(super) body: &'a Neighbour<G>,
}

impl<G: Game> Among<'_, G> {
    fn others(&self) -> impl Iterator<Item = (usize, &Neighbour<G>)> {
        self.bodies.iter().enumerate().filter(|(other, _)| *other != self.own)
    }

    /// The bodies within reach for `span`.
    fn near(&self, span: Duration) -> Vec<Neighbour<G>> {
        let mut near = vec![];
        collect_neighbours(self.rules, self.body, self.others().map(|(_, body)| *body), span, &mut near);
        near
    }

    /// The body after `span` among `neighbours`. The tick's last input is held if the span is longer than the tick.
    fn after(&self, neighbours: &[Neighbour<G>], input: &TickInput<G::Input>, span: Duration) -> G::Body {
        let Neighbour { id, parent, body, .. } = *self.body;
        let mut replay = Replay::new(self.rules, self.cadence, self.tick, neighbours, body).named(id, parent);
        let mut left = span;
        for step in input.steps(self.cadence) {
            let span = step.span.min(left);
            replay.hold(step.input, span);
            left -= span;
        }
        replay.hold(input.last(), left);
        *replay.body()
    }

    /// The body at the end of the tick, before it is settled.
    pub(super) fn unsettled(&self, input: &TickInput<G::Input>) -> G::Body {
        let (mut body, mut effects, mut phase) = (self.body.body, Effects::default(), 0);
        let neighbours = self.near(self.cadence.interval());
        for hold in input.steps(self.cadence) {
            let span = hold.span.subsec_micros();
            let (cadence, tick, id, parent) = (self.cadence, self.tick, self.body.id, self.body.parent);
            let (at_start, neighbours, effects) = (&self.body.body, &*neighbours, &mut effects);
            let mut step = Step { cadence, tick, phase, span, at_start, neighbours, id, parent, effects };
            self.rules.advance(&mut body, hold.input, &mut step);
            phase += span;
        }
        body
    }

    /// Whether the tick ends with other bits if the neighbours are listed backwards.
    pub(super) fn depends_on_order(&self, input: &TickInput<G::Input>) -> bool {
        let span = self.cadence.interval();
        let mut near = self.near(span);
        if near.len() < 2 {
            return false;
        }
        let after = self.after(&near, input, span);
        near.reverse();
        body_difference(&after, &self.after(&near, input, span)).is_some()
    }

    /// Compares the motion among neighbours within reach with the motion among all others.
    pub(super) fn check_reach(
        &self,
        place: Place,
        input: &TickInput<G::Input>,
        span: Duration,
    ) -> Result<(), GameMistake> {
        let all: Vec<_> = self.others().map(|(_, body)| *body).collect();
        let near = self.near(span);
        if near.len() == all.len() {
            return Ok(());
        }
        let found = self.after(&near, input, span);
        match body_difference(&found, &self.after(&all, input, span)) {
            Some(difference) => {
                let missed = self.missed(input, span);
                Err(GameMistake::ReachTooSmall { place, span, missed, difference })
            }
            None => Ok(()),
        }
    }

    /// A body out of reach that changes the motion even if it is the only other one.
    fn missed(&self, input: &TickInput<G::Input>, span: Duration) -> Option<usize> {
        let reach = self.rules.reach(self.body, span)?;
        let far =
            |body: &Neighbour<G>| self.rules.reach(body, span).is_some_and(|other| !reach.touches(&other));
        let alone = self.after(&[], input, span);
        let touches =
            |body: &Neighbour<G>| body_difference(&self.after(&[*body], input, span), &alone).is_some();
        self.others().find(|(_, body)| far(body) && touches(body)).map(|(other, _)| other)
    }
}
