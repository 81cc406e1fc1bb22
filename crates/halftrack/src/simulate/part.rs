//! Ticks as prediction runs them: the open one up to a moment, and closed ones without the comparison by which only a room
//! tells a motion alone from one among others.

use super::{Moved, TickSimulator, TickStart};
use crate::game::{Effects, Game, Neighbour};
use crate::input::TickInput;
use crate::replay::Replay;
use crate::tick::Tick;

impl<G: Game> TickSimulator<G> {
    /// Body `own` of `before`, `into` microseconds into the tick, and its effects up to then.
    pub(crate) fn open(
        &mut self,
        tick: Tick,
        before: &[Neighbour<G>],
        own: usize,
        input: &TickInput<G::Input>,
        into: u32,
    ) -> Option<(G::Body, Effects<G>)> {
        let who = before.get(own)?;
        if before.len() > 1 {
            self.neighbours_within(before, own, self.cadence.interval());
        } else {
            self.neighbours.clear();
        }
        let mut replay = Replay::of(&*self.rules, self.cadence, tick, &self.neighbours, who);
        let mut current = input.start();
        for change in input.changes() {
            let at = self.cadence.micros_of(change.at);
            if at >= into {
                break;
            }
            replay.hold_until(current, at);
            current = change.input;
        }
        replay.hold_until(current, into);
        Some((*replay.body(), replay.into_effects()))
    }
}

impl<G: Game> TickStart<'_, G> {
    /// Moves body `own` through the tick, as [`Self::tick`] does, without asking whether the others mattered.
    pub(crate) fn run(&mut self, own: usize, input: &TickInput<G::Input>, emitted: u32) -> Option<Moved<G>> {
        let Self { simulator, tick, before } = self;
        let who = before.get(own)?;
        simulator.find_neighbours(before, own);
        let mut replay = Replay::of(&*simulator.rules, simulator.cadence, *tick, &simulator.neighbours, who);
        let problem = replay.tick_settling(input).problem();
        let mut moved = Moved::new(*replay.body(), replay.effects(), problem);
        if moved.emitted > 0 {
            let effects = replay.into_effects();
            moved.refused += simulator.bear(who.id, emitted, effects);
        }
        Some(moved)
    }
}
