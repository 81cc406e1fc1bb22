//! The plan of a check, its report, and the dice that choose inputs and moments.

use core::time::Duration;

use derive_where::derive_where;

use super::fields::FieldPath;
use crate::cadence::{Cadence, SubTick};
use crate::game::Game;
use crate::input::TickInput;

/// The game that [`check_game`](super::check_game) plays: where the bodies start, and what their players want.
///
/// A check finds only mistakes that its play runs into. Put some bodies so close that they touch, give each parameter of a
/// body at least two values, and list inputs that reach every part of your rules.
///
/// ```
/// use halftrack::CheckPlan;
/// use halftrack::cart::{Cart, CartBody};
///
/// let plan: CheckPlan<Cart> = CheckPlan::new(vec![CartBody::at(0.0), CartBody::at(1.5)], vec![-8, 0, 3, 8]);
/// assert_eq!(plan.ticks, 600);
/// let longer = CheckPlan { ticks: 2_000, seed: 7, ..plan };
/// assert_eq!(longer.inputs.len(), 4);
/// ```
#[derive_where(Clone, Debug, PartialEq)]
pub struct CheckPlan<G: Game> {
    /// The cadence. Default 20 Hz. Check each one that your servers use: rules see other steps at each.
    pub cadence: Cadence,
    /// The bodies at the start. They play together and meet each other.
    pub bodies: Vec<G::Body>,
    /// The inputs that players choose from. Each holds one for some ticks and changes it at any moment inside a tick.
    pub inputs: Vec<G::Input>,
    /// Ticks to play. Default 600, half a minute at 20 Hz: long enough to meet walls and each other.
    pub ticks: u32,
    /// The mean time between two frames of live prediction. Default 16.667 ms (60 Hz). Frames are uneven, from an
    /// eighth of this to twice this. From 0.5 ms to 50 ms: every frame costs up to a second of replay for each tick in a
    /// second, and a longer frame would be a stall.
    pub frame: Duration,
    /// The seed of all choices: the same plan plays the same game.
    pub seed: u64,
}

impl<G: Game> CheckPlan<G> {
    /// A plan of half a minute at 20 Hz.
    pub fn new(bodies: Vec<G::Body>, inputs: Vec<G::Input>) -> Self {
        Self {
            cadence: Cadence::default(),
            bodies,
            inputs,
            ticks: 600,
            frame: Duration::from_micros(16_667),
            seed: 1,
        }
    }
}

/// The work that a check without mistakes did.
///
/// Look at [`Self::contacts`] and [`Self::constant_fields`] once: a play in which nothing happens proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Ticks played.
    pub ticks: u64,
    /// Moves of a body through a tick.
    pub moves: u64,
    /// Moves in which another body made a difference.
    pub contacts: u64,
    /// Bodies that were emitted. They are checked in the tick of their birth, and take no further part in the play.
    pub emissions: u64,
    /// Moves that end with other bits if the neighbours are listed in another order.
    ///
    /// That is allowed, since all ends list them in the same order. Rules without it are easier to reason about.
    pub order_dependent: u64,
    /// Times that live prediction was rebuilt from an earlier state and came out equal.
    pub rebuilds: u64,
    /// Bits of the longest body written.
    pub longest_body_bits: usize,
    /// Fields that had the same value in all bodies at all times: the check says nothing about them.
    pub constant_fields: Vec<FieldPath>,
}

/// Random numbers: `SplitMix64`, for which any seed is a good one.
#[derive(Clone, Debug)]
pub(super) struct Dice {
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Below `end`, which is above zero.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// One of `choices`, or the default if there is none.
    pub(super) fn pick<T: Copy + Default>(&mut self, choices: &[T]) -> T {
        let number = usize::try_from(self.below(choices.len() as u64)).unwrap_or(0);
        choices.get(number).copied().unwrap_or_default()
    }

    /// The input of a tick after one that ended with `last`: mostly held, else changed up to three times inside the tick.
    ///
    /// Inputs last a fifth of a second at any cadence, so that bodies get somewhere.
    pub(super) fn tick_input<I: Copy + PartialEq + Default>(
        &mut self,
        cadence: Cadence,
        last: I,
        inputs: &[I],
    ) -> TickInput<I> {
        let ticks = u64::from(cadence.ticks_in(Duration::from_millis(200))).max(2);
        let start = if self.below(ticks) == 0 { self.pick(inputs) } else { last };
        let mut input = TickInput::steady(start);
        if self.below(ticks) == 0 {
            for _ in 0..=self.below(3) {
                let moment = u8::try_from(self.below(256)).ok().and_then(SubTick::new);
                let wanted = self.pick(inputs);
                // A moment that is not after the last change is refused: then there are fewer changes.
                let _refused = moment.map(|moment| input.change(moment, wanted));
            }
        }
        input
    }

    /// A time from zero to `end`.
    pub(super) fn span(&mut self, end: Duration) -> Duration {
        let micros = u64::try_from(end.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(self.below(micros + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_hold_inputs_and_change_them_inside_ticks() {
        let mut dice = Dice::new(3);
        let (mut last, mut steady, mut changes) = (0, 0, [0; 4]);
        for _ in 0..1_000 {
            let input = dice.tick_input(Cadence::default(), last, &[-8, 0, 8]);
            steady += u32::from(input == TickInput::steady(last));
            changes[input.changes().count()] += 1;
            last = input.last();
        }
        assert!((500..800).contains(&steady), "{steady} of 1000 ticks only hold");
        assert!(changes.iter().all(|count| *count > 5), "{changes:?} ticks with so many changes");
        assert_eq!(dice.pick::<u8>(&[]), 0);
        assert_eq!(dice.span(Duration::ZERO), Duration::ZERO);
    }
}
