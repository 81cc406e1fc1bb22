//! The closed ticks that the server has not acknowledged, without a hole, oldest first.
//!
//! Knows ticks and what was predicted of them, never packets.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::input::{Completeness, TickInput};
use crate::model::Input;
use crate::tick::Tick;

/// Where the input of a tick comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// The player: it is on its way to the server.
    Recorded,
    /// Made up by [`crate::Game::substitute`], as the server will: nothing was recorded for the tick.
    Substituted,
}

/// A tick that the server has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PendingTick<I> {
    /// Its number.
    pub tick: Tick,
    /// Its input.
    pub input: TickInput<I>,
    /// Where that comes from.
    pub origin: Origin,
}

/// Which ticks [`crate::Predictor::inputs`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upto {
    /// Those that are over.
    Closed,
    /// The open one too, which can still be extended.
    Open,
    /// The open one too, which will not be: for a caller that does not act again before it ends.
    Complete,
}

/// The newest of some tick inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// Its tick.
    pub newest: Tick,
    /// Whether it is all there.
    pub completeness: Completeness,
}

/// A pending tick that is over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "I: Input")]
pub(crate) struct ClosedTick<I> {
    pub(crate) input: TickInput<I>,
    pub(crate) origin: Origin,
}

/// The closed pending ticks, one after the other from `first` on. Its memory is taken once, when it is built.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "I: Input")]
pub(crate) struct Pending<I> {
    first: Tick,
    closed: VecDeque<ClosedTick<I>>,
    limit: usize,
}

impl<I> Pending<I> {
    /// Room for `limit` ticks.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { first: Tick::default(), closed: VecDeque::with_capacity(limit), limit }
    }

    /// Forgets everything and starts over at `first`.
    pub(crate) fn restart(&mut self, first: Tick) {
        self.closed.clear();
        self.first = first;
    }

    /// Takes the next tick. The prediction window is the limit, so there is always room.
    pub(crate) fn push(&mut self, tick: ClosedTick<I>) {
        debug_assert!(self.closed.len() < self.limit, "the window ends before the memory does");
        self.closed.push_back(tick);
    }

    /// Removes the ticks `..= acknowledged`, and no other.
    pub(crate) fn prune_through(&mut self, acknowledged: Tick) {
        // spec: CORR-01, REPLAY-04
        let count = acknowledged.next().since(self.first) as usize;
        let count = count.min(self.closed.len());
        self.first = acknowledged.next();
        self.closed.drain(..count);
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn is_within_limit(&self) -> bool {
        self.closed.len() <= self.limit
    }

    pub(crate) fn newest(&self) -> Option<&ClosedTick<I>> {
        self.closed.back()
    }

    pub(crate) fn newest_tick(&self) -> Option<Tick> {
        let after_first = u32::try_from(self.closed.len()).ok()?.checked_sub(1)?;
        Some(Tick::new(self.first.number().saturating_add(after_first)))
    }

    /// Whether these are the ticks from the one after `baseline` to the one before `open`.
    pub(crate) fn follows(&self, baseline: Tick, open: Tick) -> bool {
        let after = self.newest_tick().unwrap_or(baseline).next();
        self.first == baseline.next() && after == open
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Tick, &ClosedTick<I>)> {
        self.first.onwards().zip(&self.closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(input: i8) -> ClosedTick<i8> {
        ClosedTick { input: TickInput::steady(input), origin: Origin::Recorded }
    }

    fn ten_to_fifteen() -> Pending<i8> {
        let mut pending = Pending::with_limit(8);
        pending.restart(Tick::new(10));
        (0..6).for_each(|input| pending.push(closed(input)));
        pending
    }

    fn numbers(pending: &Pending<i8>) -> Vec<(u32, i8)> {
        pending.iter().map(|(tick, closed)| (tick.number(), closed.input.start())).collect()
    }

    #[test]
    fn pruning_takes_exactly_what_is_acknowledged() {
        let mut pending = ten_to_fifteen();
        pending.prune_through(Tick::new(12));
        assert_eq!(numbers(&pending), [(13, 3), (14, 4), (15, 5)]);
    }

    #[test]
    fn pruning_at_the_edges() {
        let mut pending = ten_to_fifteen();
        pending.prune_through(Tick::new(10));
        assert_eq!(numbers(&pending).first(), Some(&(11, 1)));
        pending.prune_through(Tick::new(15));
        assert_eq!(numbers(&pending), []);
        pending.prune_through(Tick::new(40));
        assert_eq!(numbers(&pending), []);
    }
}
