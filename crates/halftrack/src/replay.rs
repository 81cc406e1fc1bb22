//! The one loop that moves a body through time: server, live prediction and replay all run it.
//!
//! It cuts any span at the cadence boundaries, settles the body at each, and knows nothing of who asks.

use core::time::Duration;

use derive_where::derive_where;

use crate::cadence::Cadence;
use crate::game::{Contact, Effects, Game, Neighbour, Step};
use crate::id::BodyId;
use crate::input::TickInput;
use crate::model::{Body, Settling};
use crate::tick::Tick;
use crate::time::whole_micros;

/// A body on its way through ticks.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{Cadence, Replay, Tick};
/// use halftrack::cart::{Cart, CartBody};
///
/// let mut replay = Replay::new(&Cart, Cadence::default(), Tick::new(1), &[], CartBody::at(0.0));
/// // 120 ms are applied as 50 + 50 + 20.
/// assert_eq!(replay.hold(8, Duration::from_millis(120)), 2);
/// assert_eq!((replay.tick_now(), replay.phase()), (Tick::new(3), Duration::from_millis(20)));
/// assert!((replay.body().x - 0.96).abs() < 0.001);
/// ```
#[derive_where(Clone, Debug)]
pub struct Replay<'a, G: Game> {
    #[derive_where(skip(Debug))]
    rules: &'a G,
    cadence: Cadence,
    tick: Tick,
    neighbours: &'a [Neighbour<G>],
    id: BodyId,
    parent: Option<BodyId>,
    /// The body at the start of the tick, or at its birth.
    start: G::Body,
    body: G::Body,
    /// Microseconds into the tick, below the cadence.
    phase: u32,
    effects: Effects<G>,
}

impl<'a, G: Game> Replay<'a, G> {
    /// Starts with `body` at the beginning of `tick`, among `neighbours` that stand still.
    #[inline]
    pub fn new(
        rules: &'a G,
        cadence: Cadence,
        tick: Tick,
        neighbours: &'a [Neighbour<G>],
        body: G::Body,
    ) -> Self {
        let (id, parent, phase, effects) = (BodyId::default(), None, 0, Effects::default());
        Self { rules, cadence, tick, neighbours, id, parent, start: body, body, phase, effects }
    }

    /// The same with the body of `who`, its id and its parent.
    #[inline]
    pub(crate) fn of(
        rules: &'a G,
        cadence: Cadence,
        tick: Tick,
        neighbours: &'a [Neighbour<G>],
        who: &Neighbour<G>,
    ) -> Self {
        let Neighbour { id, parent, body, .. } = *who;
        let (phase, effects) = (0, Effects::default());
        Self { rules, cadence, tick, neighbours, id, parent, start: body, body, phase, effects }
    }

    /// The body has this id, and `parent` emitted it.
    #[inline]
    #[must_use]
    pub fn named(self, id: BodyId, parent: Option<BodyId>) -> Self {
        Self { id, parent, ..self }
    }

    /// The body is born at this moment, `phase` microseconds into the tick.
    #[must_use]
    pub(crate) fn born(mut self, phase: u32) -> Self {
        (self.phase, self.effects.newborn) = (phase, true);
        self
    }

    /// Holds `input` for `span` (whole microseconds), in substeps that end at the cadence boundaries, and
    /// settles the body at each. Gives the number of ticks that ended.
    pub fn hold(&mut self, input: G::Input, span: Duration) -> u64 {
        // spec: REPLAY-01, REPLAY-03
        let mut remaining = whole_micros(span);
        let mut ended = 0;
        while remaining > 0 {
            let left = self.cadence.micros() - self.phase;
            let substep = u32::try_from(remaining).map_or(left, |remaining| remaining.min(left));
            self.advance(input, substep);
            self.end_tick();
            remaining -= u64::from(substep);
            ended += u64::from(self.phase == 0);
        }
        ended
    }

    /// Runs a whole tick, from its beginning to its end.
    pub fn tick(&mut self, input: &TickInput<G::Input>) {
        debug_assert_eq!(self.phase, 0, "a tick starts at its beginning");
        let last = self.changes(input);
        self.hold_until(last, self.cadence.micros());
    }

    /// The same, with the outcome of settling the body.
    #[inline]
    pub(crate) fn tick_settling(&mut self, input: &TickInput<G::Input>) -> Settling {
        debug_assert_eq!(self.phase, 0, "a tick starts at its beginning");
        let last = self.changes(input);
        // Changes lie before the tick's end, so this is never empty.
        self.advance(last, self.cadence.micros().saturating_sub(self.phase));
        self.end_tick()
    }

    /// Holds `input` until `phase` microseconds into the tick, with the outcome of settling the body if that is its end.
    pub(crate) fn hold_settling(&mut self, input: G::Input, phase: u32) -> Settling {
        let span = phase.saturating_sub(self.phase);
        if span > 0 {
            self.advance(input, span);
        }
        self.end_tick()
    }

    /// Runs a tick up to its latest change; gives the input from there on.
    pub(crate) fn changes(&mut self, input: &TickInput<G::Input>) -> G::Input {
        let mut current = input.start();
        for change in input.changes() {
            self.hold_until(current, self.cadence.micros_of(change.at));
            current = change.input;
        }
        current
    }

    /// Holds `input` until `phase` microseconds into the tick, which is not before now and at most its end.
    #[inline]
    pub(crate) fn hold_until(&mut self, input: G::Input, phase: u32) {
        let span = phase.saturating_sub(self.phase);
        if span > 0 {
            self.advance(input, span);
            self.end_tick();
        }
    }

    #[inline]
    fn advance(&mut self, input: G::Input, span: u32) {
        let Self { rules, cadence, tick, neighbours, id, parent, start, body, phase, effects } = self;
        if effects.removed.is_none() {
            let mut step = Step {
                cadence: *cadence,
                tick: *tick,
                phase: *phase,
                span,
                at_start: start,
                neighbours,
                id: *id,
                parent: *parent,
                effects,
            };
            rules.advance(body, input, &mut step);
        }
        *phase += span;
    }

    /// Settles the body and begins the next tick, if this one is over.
    #[inline]
    fn end_tick(&mut self) -> Settling {
        if self.phase < self.cadence.micros() {
            return Settling::CLEAN;
        }
        let settling = self.body.settle();
        (self.start, self.phase, self.tick) = (self.body, 0, self.tick.next());
        settling
    }

    /// The body as it is now.
    pub fn body(&self) -> &G::Body {
        &self.body
    }

    /// The tick that it is in.
    pub fn tick_now(&self) -> Tick {
        self.tick
    }

    /// How far into its tick it is.
    pub fn phase(&self) -> Duration {
        Duration::from_micros(u64::from(self.phase))
    }

    /// Whether another body changed the motion since the start, or since this was last taken.
    pub fn take_contact(&mut self) -> Contact {
        let touched = core::mem::take(&mut self.effects.touched);
        if touched.is_empty() { Contact::Free } else { Contact::Touched }
    }

    /// What the body did besides moving.
    pub(crate) fn effects(&self) -> &Effects<G> {
        &self.effects
    }

    pub(crate) fn effects_mut(&mut self) -> &mut Effects<G> {
        &mut self.effects
    }

    /// The same, and goes on without.
    pub(crate) fn into_effects(self) -> Effects<G> {
        self.effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cadence::SubTick;
    use crate::cart::{Cart, CartBody};
    use crate::id::Driver;
    use proptest::prelude::*;

    fn replay(micros: u64) -> Replay<'static, Cart> {
        let cadence = Cadence::new(Duration::from_micros(micros)).unwrap();
        Replay::new(&Cart, cadence, Tick::new(1), &[], CartBody::at(0.0))
    }

    #[test]
    fn a_tick_is_its_steps_one_after_the_other() {
        let mut input = TickInput::steady(3);
        input.change(SubTick::new(77).unwrap(), -8).unwrap();
        let mut whole = replay(50_000);
        whole.tick(&input);
        let mut pieces = replay(50_000);
        for step in input.steps(Cadence::default()) {
            pieces.hold(step.input, step.span);
        }
        assert_eq!(whole.body(), pieces.body());
        assert_eq!(whole.phase(), Duration::ZERO);
    }

    #[test]
    fn contact_is_told_once() {
        let ahead = [Neighbour::new(BodyId::new(1), Driver::World, CartBody::at(0.1))];
        let mut replay = Replay::new(&Cart, Cadence::default(), Tick::new(1), &ahead, CartBody::at(0.0));
        replay.hold(8, Duration::from_millis(10));
        assert_eq!(replay.take_contact(), Contact::Free);
        replay.hold(8, Duration::from_millis(10));
        assert_eq!(replay.take_contact(), Contact::Touched);
        assert_eq!(replay.take_contact(), Contact::Free);
    }

    proptest! {
        /// At every cadence: the ticks that end and the phase that is left account for every microsecond, and
        /// cutting the span anywhere on a boundary changes nothing.
        #[test]
        fn no_microsecond_is_lost(micros in 5_000u64..=200_000, ticks in 0u64..40, rest in 0u64..200_000) {
            let rest = rest % micros;
            let span = Duration::from_micros(ticks * micros + rest);
            let mut whole = replay(micros);
            prop_assert_eq!(whole.hold(5, span), ticks);
            prop_assert_eq!(whole.phase(), Duration::from_micros(rest));
            let mut pieces = replay(micros);
            for _ in 0..ticks {
                prop_assert_eq!(pieces.hold(5, Duration::from_micros(micros)), 1);
            }
            prop_assert_eq!(pieces.hold(5, Duration::from_micros(rest)), 0);
            prop_assert_eq!(whole.body(), pieces.body());
        }
    }
}
