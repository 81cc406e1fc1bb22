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
    /// Bodies looked at so far: a measure of the work done, and where it is to end.
    work: u64,
    work_limit: u64,
    /// The bodies of a tick along the game's line, in order of that; empty when each is held against each.
    line: Vec<(f64, usize)>,

    // Memory that is used again.
    near: Vec<usize>,
    bodies: Vec<G::Body>,
}

/// Bodies as they stand at the start of a tick.
pub(crate) struct Among<'a, G: BodyCode> {
    together: &'a mut Together<G>,
    before: &'a [G::Body],
}

impl<G: BodyCode> Together<G> {
    /// In a world that is `alone` without bodies.
    pub(crate) fn new(cadence: Cadence, alone: G::Surroundings) -> Self {
        let (line, near, bodies) = (Vec::new(), Vec::new(), Vec::new());
        Self { cadence, around: alone.clone(), alone, work: 0, work_limit: u64::MAX, line, near, bodies }
    }

    /// A neighbour is looked at in each step of a tick, and several times.
    const NEIGHBOUR: u64 = 64;
    /// A look at the past goes through the history of every body, which is not at hand.
    const LOOK_BACK: u64 = 8;

    /// No more than so much work is to be done.
    pub(crate) fn limit_work(&mut self, limit: u64) {
        self.work_limit = limit;
    }

    /// Whether more work has been done than was to be.
    pub(crate) fn is_spent(&self) -> bool {
        self.work > self.work_limit
    }

    /// Bodies looked at so far.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// A tick is to begin, in which bodies stand like this.
    pub(crate) fn among<'a>(&'a mut self, before: &'a [G::Body]) -> Among<'a, G> {
        let span = self.cadence.interval();
        let places = before.iter().map(|body| G::along(body, span).map(|(at, _)| at));
        self.line.clear();
        if before.len() >= Self::FEW {
            self.line.extend(places.zip(0..).map_while(|(at, index)| Some((at?, index))));
            self.line.sort_unstable_by(|(at, _), (other, _)| at.total_cmp(other));
        }
        if self.line.len() != before.len() {
            self.line.clear();
        }
        Among { together: self, before }
    }

    /// So few are held against each other one by one.
    const FEW: usize = 16;

    /// Makes `around` what body `own` of `before` moves among for a tick.
    #[inline]
    fn surround(&mut self, before: &[G::Body], own: usize) -> Option<()> {
        /// What a sum of two numbers may be off by.
        const SLACK: f64 = 1e-6;
        let span = self.cadence.interval();
        let Some((at, reach)) = G::along(before.get(own)?, span).filter(|_| !self.line.is_empty()) else {
            self.work += before.len() as u64;
            G::surround(&mut self.around, before, own, span);
            return Some(());
        };
        let from = self.line.partition_point(|(other, _)| *other < at - reach - SLACK);
        let reached = self.line.iter().skip(from).take_while(|(other, _)| *other <= at + reach + SLACK);
        self.near.clear();
        self.near.extend(reached.map(|(_, index)| *index));
        self.work += self.near.len() as u64;
        // As they stand in `before`: the rules go through them in that order.
        self.near.sort_unstable();
        self.bodies.clear();
        self.bodies.extend(self.near.iter().filter_map(|index| before.get(*index)));
        let own = self.near.binary_search(&own).ok()?;
        G::surround(&mut self.around, &self.bodies, own, span);
        Some(())
    }

    /// What becomes of body `own` of `before` in a tick in which it is told `input`.
    #[inline]
    fn tick(&mut self, before: &[G::Body], own: usize, input: TickInput<G::Input>) -> Option<TickRecord<G>> {
        let body = *before.get(own)?;
        self.surround(before, own)?;
        self.work += Self::NEIGHBOUR * G::neighbours(&self.around) as u64;
        let mut replay = Replay::<G>::new(self.cadence, &self.around, body);
        replay.tick(&input);
        let after = *replay.body();
        // By comparison, whatever the rules say of contact; but for who met nobody there is nothing to compare.
        let is_own = G::is_alone(&self.around) || self.tick_alone(body, &input) == after;
        let course = if is_own { Course::Own } else { Course::Met };
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
        self.work += Self::LOOK_BACK * before.len() as u64;
        G::surround(&mut self.around, before, own, into);
        self.work += Self::NEIGHBOUR * G::neighbours(&self.around) as u64;
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

impl<G: BodyCode> Among<'_, G> {
    /// What becomes of body `own` in a tick in which it is told `input`.
    #[inline]
    pub(crate) fn tick(&mut self, own: usize, input: TickInput<G::Input>) -> Option<TickRecord<G>> {
        if self.together.is_spent() {
            return None;
        }
        self.together.tick(self.before, own, input)
    }
}
