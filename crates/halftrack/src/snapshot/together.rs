//! Bodies moved through a tick together, each among the others as they stood at its start.
//!
//! The one way in which server and reader do this, so that what the server finds, the reader finds too.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::cause::{Cause, Causes};
use crate::game::Contact;
use crate::input::TickInput;
use crate::replay::Replay;
use crate::snapshot::body::BodyCode;
use crate::snapshot::history::{Course, TickRecord};

/// Moves bodies through ticks.
#[derive(Clone, Debug)]
pub(crate) struct Together<G: BodyCode> {
    cadence: Cadence,
    alone: G::Surroundings,
    /// `alone`, and whoever is near the body at hand: its memory is used again.
    around: G::Surroundings,
}

impl<G: BodyCode> Together<G> {
    /// In a world that is `alone` without bodies.
    pub(crate) fn new(cadence: Cadence, alone: G::Surroundings) -> Self {
        Self { cadence, around: alone.clone(), alone }
    }

    /// What becomes of body `own` of `before` in a tick in which it is told `input`.
    #[inline]
    pub(crate) fn tick(
        &mut self,
        before: &[G::Body],
        own: usize,
        input: TickInput<G::Input>,
    ) -> Option<TickRecord<G>> {
        let body = *before.get(own)?;
        G::surround(&mut self.around, before, own, self.cadence.interval());
        let mut replay = Replay::<G>::new(self.cadence, &self.around, body);
        replay.tick(&input);
        let after = *replay.body();
        // By comparison, whatever the rules say of contact.
        let course = if self.tick_alone(body, &input) == after { Course::Own } else { Course::Met };
        let causes = match replay.take_contact() {
            Contact::Touched => Causes::NONE.with(Cause::Collision),
            Contact::Free => Causes::NONE,
        };
        Some(TickRecord { input, after, course, causes })
    }

    /// What a body would be if it were alone.
    #[inline]
    pub(crate) fn tick_alone(&self, body: G::Body, input: &TickInput<G::Input>) -> G::Body {
        let mut replay = Replay::<G>::new(self.cadence, &self.alone, body);
        replay.tick(input);
        *replay.body()
    }

    /// What body `own` of `before` is `into` a tick in which it is told `input`, at most a tick long.
    pub(crate) fn part_of_tick(
        &mut self,
        before: &[G::Body],
        own: usize,
        input: &TickInput<G::Input>,
        into: Duration,
    ) -> Option<G::Body> {
        let body = *before.get(own)?;
        let into = into.min(self.cadence.interval());
        G::surround(&mut self.around, before, own, into);
        Some(Self::part_among(self.cadence, &self.around, body, input, into))
    }

    /// The same of a body that is alone.
    pub(crate) fn part_of_tick_alone(
        &self,
        body: G::Body,
        input: &TickInput<G::Input>,
        into: Duration,
    ) -> G::Body {
        Self::part_among(self.cadence, &self.alone, body, input, into.min(self.cadence.interval()))
    }

    fn part_among(
        cadence: Cadence,
        around: &G::Surroundings,
        body: G::Body,
        input: &TickInput<G::Input>,
        into: Duration,
    ) -> G::Body {
        let mut replay = Replay::<G>::new(cadence, around, body);
        let mut left = into;
        for step in input.steps(cadence) {
            let span = step.span.min(left);
            replay.hold(step.input, span);
            left -= span;
        }
        *replay.body()
    }

    /// What body `own` of `before` is after it was told `input` for `span`, however many ticks that is, while the
    /// others stand.
    pub(crate) fn hold(
        &mut self,
        before: &[G::Body],
        own: usize,
        input: G::Input,
        span: Duration,
    ) -> Option<G::Body> {
        let body = *before.get(own)?;
        G::surround(&mut self.around, before, own, span);
        let mut replay = Replay::<G>::new(self.cadence, &self.around, body);
        replay.hold(input, span);
        Some(*replay.body())
    }
}
