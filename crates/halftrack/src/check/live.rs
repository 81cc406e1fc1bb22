//! Parity: live prediction equals replay from every state of the last second, to the bit.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use super::mistake::{GameMistake, Place};
use super::plan::{CheckPlan, Dice};
use super::values::body_difference;
use crate::error::ConfigError;
use crate::game::{Game, Neighbour};
use crate::input::{PendingTick, TickInput};
use crate::predict::{Actor, Authority, PredictConfig, Predictor, Role};
use crate::simulate::{TickSimulator, count_emitted};
use crate::tick::{Epoch, Tick};
use crate::time::Timestamp;

/// Live prediction of one body among others that stand still, and a server that plays the same input.
pub(super) struct Live<G: Game> {
    rules: Arc<G>,
    /// Index of the body in the plan.
    own: usize,
    /// Its baseline stays at the start of the window, so that there is something to replay.
    predictor: Predictor<G>,
    now: Timestamp,
    /// The states after every tick since that baseline.
    states: VecDeque<Authority<G>>,
}

impl<G: Game> Live<G> {
    /// How far back states are kept and replayed from.
    const WINDOW: Duration = Duration::from_secs(1);
    /// A longer frame is a stall, and prediction treats it as one.
    const LONGEST_FRAME: Duration = Duration::from_millis(100);

    /// Starts with the settled `body` after `tick`, among `neighbours`.
    pub(super) fn start(
        rules: &Arc<G>,
        plan: &CheckPlan<G>,
        tick: Tick,
        own: usize,
        bodies: &[Neighbour<G>],
    ) -> Result<Option<Self>, ConfigError> {
        let Some(who) = bodies.get(own).copied() else { return Ok(None) };
        let others = bodies.iter().enumerate().filter(|(other, _)| *other != own);
        let own_body = Actor::new(Role::Own, who, tick);
        let authority = Authority::of(Epoch::default(), tick, own_body).among(others.map(|(_, body)| *body));
        let config = PredictConfig { cadence: plan.cadence, ..PredictConfig::default() };
        let (now, time) = (Timestamp::ZERO, plan.cadence.end_of(tick));
        let predictor = Predictor::new(Arc::clone(rules), config, now, time, &authority)?;
        Ok(Some(Self { rules: Arc::clone(rules), own, predictor, now, states: VecDeque::new() }))
    }

    /// Plays a little longer than the window, and rebuilds every frame from every state. Gives the number of rebuilds.
    pub(super) fn play(
        &mut self,
        plan: &CheckPlan<G>,
        inputs: &[G::Input],
        dice: &mut Dice,
    ) -> Result<u64, GameMistake> {
        let end = self.now + Self::WINDOW + plan.cadence.span_of(2);
        let longest = plan.frame.saturating_mul(2).clamp(Self::LONGEST_FRAME / 100, Self::LONGEST_FRAME);
        let mut rebuilds = 0;
        while self.now < end {
            self.now = self.now + dice.span(longest).max(longest / 16);
            self.predictor.update(self.now);
            if dice.below(4) == 0 {
                self.predictor.set_input(self.now, dice.pick(inputs));
            }
            self.serve();
            rebuilds += self.rebuild()?;
        }
        Ok(rebuilds)
    }

    /// Simulates the ticks that have closed.
    fn serve(&mut self) {
        let newest = self.states.back().unwrap_or(self.predictor.baseline()).tick;
        let open = self.predictor.open_tick();
        let closed: Vec<_> =
            self.predictor.pending().filter(|at| at.tick > newest && at.tick < open).collect();
        for PendingTick { tick, input, .. } in closed {
            let before = self.states.back().unwrap_or(self.predictor.baseline());
            self.states.push_back(self.after(before, tick, &input));
        }
    }

    /// All bodies after `tick`, in which the player's input was `input`.
    fn after(&self, before: &Authority<G>, tick: Tick, input: &TickInput<G::Input>) -> Authority<G> {
        let bodies: Vec<_> = before.actors().map(|actor| actor.who).collect();
        let mut simulator = TickSimulator::new(Arc::clone(&self.rules), self.predictor.cadence());
        let mut start = simulator.start(tick, &bodies);
        let mut moved = before.actors().enumerate().map(|(place, actor)| {
            let input = if actor.role == Role::Own { *input } else { TickInput::default() };
            let moved = start.tick(place, &input, actor.emitted);
            let body = moved.map_or(actor.body, |moved| moved.after);
            let emitted = moved.map_or(actor.emitted, |moved| count_emitted(actor.emitted, moved.emitted));
            Actor { who: Neighbour { body, ..actor.who }, emitted, known: tick, ..*actor }
        });
        let bodies: Vec<_> = moved.by_ref().collect();
        let own = bodies.iter().find(|actor| actor.role == Role::Own).copied().unwrap_or(before.own);
        let mut state = Authority::of(before.epoch, tick, own);
        bodies.into_iter().for_each(|actor| state.push(actor));
        state
    }

    /// Rebuilds the present from each state in turn. Gives their number.
    fn rebuild(&self) -> Result<u64, GameMistake> {
        let live = self.predictor.predicted();
        let place = Place::AfterTick { tick: self.predictor.open_tick(), body: self.own };
        let mut rebuilt = self.predictor.clone();
        for state in &self.states {
            let accepted = rebuilt.accept(self.now, rebuilt.time(), state);
            debug_assert!(accepted.is_ok(), "states come in order");
            if let Some(difference) = body_difference(live, rebuilt.predicted()) {
                return Err(GameMistake::ReplayDiffers { place, baseline: state.tick, difference });
            }
        }
        Ok(self.states.len() as u64)
    }
}
