//! The input of one tick: what it starts with, and at most three changes on the sub-tick grid.
//!
//! Changes are moments, not durations, so the steps of any value of this type add up to one cadence exactly.

use core::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cadence::{Cadence, SubTick};

/// The input changes inside its tick at a moment of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<I> {
    /// When.
    pub at: SubTick,
    /// To what.
    pub input: I,
}

/// One input held for a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold<I> {
    /// What was held.
    pub input: I,
    /// For how long.
    pub span: Duration,
}

/// Changes that a tick can hold besides its start.
pub const MAX_CHANGES: usize = 3;

/// The input of one tick.
///
/// ```
/// use halftrack::{Cadence, SubTick, TickInput};
///
/// let mut tick = TickInput::steady(0);
/// tick.change(SubTick::new(128).unwrap(), 7)?;
/// let spans: Vec<_> = tick.steps(Cadence::default()).map(|step| (step.input, step.span.as_millis())).collect();
/// assert_eq!(spans, [(0, 25), (7, 25)]);
/// # Ok::<(), halftrack::ChangeRefused>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickInput<I> {
    start: I,
    /// Filled from the front, moments strictly increasing, no change to the same input.
    changes: [Option<Change<I>>; MAX_CHANGES],
}

/// A change that its tick cannot take: it has three already, or one at or after that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tick takes no change at that moment: it has three already, or one that is not before it")]
pub struct ChangeRefused;

/// The start, and then each change.
impl<I: Serialize + Copy + PartialEq> Serialize for TickInput<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.start, &self.changes).serialize(serializer)
    }
}

impl<'de, I: Deserialize<'de> + Copy + PartialEq> Deserialize<'de> for TickInput<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (start, changes) = <(I, [Option<Change<I>>; MAX_CHANGES])>::deserialize(deserializer)?;
        let mut input = Self::steady(start);
        for change in changes.into_iter().flatten() {
            input.change(change.at, change.input).map_err(D::Error::custom)?;
        }
        if input.changes == changes { Ok(input) } else { Err(D::Error::custom("changes out of order")) }
    }
}

/// Neutral from end to end.
impl<I: Copy + PartialEq + Default> Default for TickInput<I> {
    fn default() -> Self {
        Self::steady(I::default())
    }
}

impl<I: Copy + PartialEq> TickInput<I> {
    /// One input for the whole tick.
    pub const fn steady(input: I) -> Self {
        Self { start: input, changes: [None; MAX_CHANGES] }
    }

    /// Whether it is `input` for the whole tick.
    #[inline]
    pub(crate) fn holds(&self, input: I) -> bool {
        let [first, ..] = &self.changes;
        first.is_none() && self.start == input
    }

    /// What it starts with.
    pub const fn start(&self) -> I {
        self.start
    }

    /// What it ends with.
    pub fn last(&self) -> I {
        self.changes().last().map_or(self.start, |change| change.input)
    }

    /// The changes, in order.
    pub fn changes(&self) -> impl Iterator<Item = Change<I>> + '_ {
        self.changes.iter().map_while(|change| *change)
    }

    /// Whether it has all the changes it can hold.
    pub fn is_full(&self) -> bool {
        self.changes.iter().all(Option::is_some)
    }

    /// Changes the input at `at`. The same input again is no change, and takes no room.
    ///
    /// # Errors
    /// When it is full, or `at` is not after its latest change: what is there is never altered.
    pub fn change(&mut self, at: SubTick, input: I) -> Result<(), ChangeRefused> {
        if self.changes().last().is_some_and(|latest| latest.at >= at) {
            return Err(ChangeRefused);
        }
        // spec: CADENCE-04 (equal quantised input makes no step)
        if input == self.last() {
            return Ok(());
        }
        let free = self.changes.iter_mut().find(|change| change.is_none()).ok_or(ChangeRefused)?;
        *free = Some(Change { at, input });
        Ok(())
    }

    /// The steps of the whole tick: their spans add up to the cadence.
    pub fn steps(&self, cadence: Cadence) -> impl Iterator<Item = Hold<I>> + use<I> {
        self.steps_until(cadence, cadence.micros())
    }

    /// The steps of the tick's first `end` microseconds; its latest change is no later than `end`.
    pub(crate) fn steps_until(&self, cadence: Cadence, end: u32) -> impl Iterator<Item = Hold<I>> + use<I> {
        let changes = self.changes.into_iter().flatten();
        let moments = changes.clone().map(move |change| cadence.micros_of(change.at));
        let begins = core::iter::once(0).chain(moments.clone());
        let ends = moments.chain(core::iter::once(end));
        let inputs = core::iter::once(self.start).chain(changes.map(|change| change.input));
        inputs.zip(begins.zip(ends)).map(|(input, (begin, end))| Hold {
            input,
            span: Duration::from_micros(u64::from(end.saturating_sub(begin))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(index: u8) -> SubTick {
        SubTick::new(index).unwrap()
    }

    #[test]
    fn a_tick_takes_three_changes_and_not_a_fourth() {
        let mut tick = TickInput::steady(0);
        for (index, input) in [(10, 1), (20, 2), (30, 3)] {
            assert!(!tick.is_full());
            assert_eq!(tick.change(moment(index), input), Ok(()));
        }
        assert!(tick.is_full());
        let before = tick;
        assert_eq!(tick.change(moment(40), 4), Err(ChangeRefused));
        assert_eq!(tick, before);
        assert_eq!((tick.start(), tick.last()), (0, 3));
    }

    #[test]
    fn changes_only_go_forward() {
        let mut tick = TickInput::steady(0);
        assert_eq!(tick.change(moment(10), 1), Ok(()));
        assert_eq!(tick.change(moment(10), 2), Err(ChangeRefused));
        assert_eq!(tick.change(moment(9), 2), Err(ChangeRefused));
        assert_eq!(tick.change(moment(11), 2), Ok(()));
        assert_eq!(tick.changes().count(), 2);
    }

    #[test]
    fn the_same_input_again_is_no_change() {
        let mut tick = TickInput::steady(5);
        assert_eq!(tick.change(moment(10), 5), Ok(()));
        assert_eq!(tick, TickInput::steady(5));
    }

    proptest! {
        #[test]
        fn steps_of_any_tick_add_up_to_the_cadence(
            micros in 5_000u64..=200_000,
            moments in prop::collection::btree_set(1u8..=255, 0..=3),
        ) {
            let cadence = Cadence::new(Duration::from_micros(micros)).unwrap();
            let mut tick = TickInput::steady(0usize);
            for (input, index) in moments.iter().enumerate() {
                tick.change(moment(*index), input + 1).unwrap();
            }
            let steps: Vec<_> = tick.steps(cadence).collect();
            prop_assert_eq!(steps.len(), moments.len() + 1);
            prop_assert_eq!(steps.iter().map(|step| step.span).sum::<Duration>(), cadence.interval());
            prop_assert!(steps.iter().all(|step| !step.span.is_zero()));
            prop_assert!(steps.iter().map(|step| step.input).eq(0..=moments.len()));
        }
    }
}
