//! The one loop that moves a body through time: server, live prediction and replay all run it.
//!
//! It cuts any span at the cadence boundaries, settles the body at each, and knows nothing of who asks.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::game::{Contact, Game};
use crate::input::TickInput;
use crate::time::whole_micros;

/// A body on its way through ticks.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{Cadence, Replay};
/// use halftrack::cart::{Cart, CartBody, Rail};
///
/// let rail = Rail::default();
/// let mut replay = Replay::<Cart>::new(Cadence::default(), &rail, CartBody::at(0.0));
/// // 120 ms are applied as 50 + 50 + 20.
/// assert_eq!(replay.hold(8, Duration::from_millis(120)), 2);
/// assert_eq!(replay.phase(), Duration::from_millis(20));
/// assert!((replay.body().x - 0.96).abs() < 0.001);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a, G: Game> {
    cadence: Cadence,
    surroundings: &'a G::Surroundings,
    body: G::Body,
    /// Microseconds into the tick, below the cadence.
    phase: u32,
    contact: Contact,
}

impl<'a, G: Game> Replay<'a, G> {
    /// Starts with `body` at the beginning of a tick.
    pub fn new(cadence: Cadence, surroundings: &'a G::Surroundings, body: G::Body) -> Self {
        Self::resume(cadence, surroundings, body, 0)
    }

    /// Goes on with `body`, `phase` microseconds into a tick.
    pub(crate) fn resume(
        cadence: Cadence,
        surroundings: &'a G::Surroundings,
        body: G::Body,
        phase: u32,
    ) -> Self {
        Self { cadence, surroundings, body, phase, contact: Contact::Free }
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
        }
    }

    #[inline]
    fn advance(&mut self, input: G::Input, substep: u32) {
        let span = Duration::from_micros(u64::from(substep));
        let contact = G::advance(&mut self.body, input, span, self.surroundings);
        self.contact = self.contact.or(contact);
        self.phase += substep;
        if self.phase >= self.cadence.micros() {
            G::settle(&mut self.body);
            self.phase = 0;
        }
    }

    /// The body as it is now.
    pub fn body(&self) -> &G::Body {
        &self.body
    }

    /// How far into its tick it is.
    pub fn phase(&self) -> Duration {
        Duration::from_micros(u64::from(self.phase))
    }

    pub(crate) const fn phase_micros(&self) -> u32 {
        self.phase
    }

    /// Whether another body changed the motion since the start, or since this was last taken.
    pub fn take_contact(&mut self) -> Contact {
        core::mem::take(&mut self.contact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cadence::SubTick;
    use crate::cart::{Cart, CartBody, Rail};
    use proptest::prelude::*;

    const OPEN: Rail = Rail { blocked_at: None };

    fn replay(micros: u64) -> Replay<'static, Cart> {
        let cadence = Cadence::new(Duration::from_micros(micros)).unwrap();
        Replay::new(cadence, &OPEN, CartBody::at(0.0))
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
        let rail = Rail { blocked_at: Some(0.1) };
        let mut replay = Replay::<Cart>::new(Cadence::default(), &rail, CartBody::at(0.0));
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
