//! The game that is played for the check: every tick of every body, by both builds of the rules.

use core::time::Duration;
use std::sync::Arc;

use super::emissions::{check_effects, check_named, check_partial};
use super::fields::{Difference, FieldPath, FieldValue, PathPart};
use super::live::Live;
use super::mistake::{CodecBaseline, GameMistake, Place};
use super::motion::Builds;
use super::neighbours::Among;
use super::plan::{CheckPlan, CheckReport, Dice};
use super::values::{Equality, body_codec, body_difference, settled_body, settled_input};
use crate::game::{Game, Neighbour, Touched};
use crate::id::{BodyId, Driver};
use crate::input::TickInput;
use crate::model::{Body, Input};
use crate::simulate::{Birth, Moved, TickSimulator};
use crate::tick::Tick;

/// A game on its way through the plan's ticks.
pub(super) struct Play<'a, G: Game> {
    plan: &'a CheckPlan<G>,
    /// Rules of the first build play the game. Those of the second must agree.
    first: TickSimulator<G>,
    second: TickSimulator<G>,
    dice: Dice,
    tick: Tick,
    inputs: Vec<G::Input>,
    bodies: Vec<Neighbour<G>>,
    /// The last input of each body.
    held: Vec<G::Input>,
    /// The bodies some ticks ago, and the tick: a baseline that a client may still have.
    earlier: (Tick, Vec<G::Body>),
    equality: Equality,
    report: CheckReport,
}

impl<'a, G: Game> Play<'a, G> {
    /// Ticks after which the earlier baseline is taken anew.
    const BASELINE_TICKS: u32 = 16;

    /// Checks everything that needs no motion.
    pub(super) fn start(first: G, second: G, plan: &'a CheckPlan<G>) -> Result<Self, GameMistake> {
        let missing = [
            ("bodies", plan.bodies.is_empty()),
            ("inputs", plan.inputs.is_empty()),
            ("ticks", plan.ticks == 0),
        ];
        if let Some((what, _)) = missing.iter().find(|(_, missing)| *missing) {
            return Err(GameMistake::EmptyPlan { what });
        }
        check_fingerprint(&first, &second)?;
        let blank = settled_body(Place::Blank, &G::Body::blank())?;
        Equality::default().check::<G>(Place::Blank, &blank, &blank)?;
        body_codec(Place::Blank, &blank, CodecBaseline::Blank, &blank)?;
        crate::snapshot::check_body_bytes::<G::Body>(crate::snapshot::MAX_BODY_BYTES)?;

        let inputs = settled_inputs(&plan.inputs)?;
        Builds { first: &first, second: &second }.check_substitutes(plan.cadence, &inputs)?;
        let tick = Tick::default();
        let settled = plan
            .bodies
            .iter()
            .enumerate()
            .map(|(body, value)| settled_body(Place::AfterTick { tick, body }, value));
        let bodies: Vec<_> = settled.collect::<Result<_, _>>()?;
        let simulator = |rules| TickSimulator::new(Arc::new(rules), plan.cadence);
        let mut play = Self {
            plan,
            first: simulator(first),
            second: simulator(second),
            dice: Dice::new(plan.seed),
            tick,
            inputs,
            held: vec![G::Input::default(); bodies.len()],
            earlier: (tick, bodies.clone()),
            bodies: (0..).zip(&bodies).map(numbered).collect(),
            equality: Equality::default(),
            report: CheckReport::default(),
        };
        play.check_values(&bodies)?;
        Ok(play)
    }

    /// Plays all ticks.
    pub(super) fn run(mut self) -> Result<CheckReport, GameMistake> {
        let (bodies, ticks) = (self.bodies.len() as u64, u64::from(self.plan.ticks));
        let seconds = u64::from(self.plan.ticks / self.plan.cadence.ticks_in(Duration::from_secs(1)).max(1));
        // One parity window for each second of play and at least one for each body, spread evenly.
        let windows = seconds.max(bodies);
        let mut played = 0;
        for tick in 0..ticks {
            self.play_tick()?;
            while played < windows && played * ticks / windows <= tick {
                self.check_parity(usize::try_from(played % bodies).unwrap_or(0))?;
                played += 1;
            }
        }
        self.report.constant_fields = self.equality.constant_fields();
        Ok(self.report)
    }

    fn place(&self, body: usize) -> Place {
        Place::AfterTick { tick: self.tick, body }
    }

    fn play_tick(&mut self) -> Result<(), GameMistake> {
        self.tick = self.tick.next();
        let (cadence, dice, choices) = (self.plan.cadence, &mut self.dice, &self.inputs);
        let inputs: Vec<_> = self.held.iter().map(|last| dice.tick_input(cadence, *last, choices)).collect();
        let (moves, births) = self.move_all(&inputs)?;
        for (own, (input, moved)) in inputs.iter().zip(&moves).enumerate() {
            self.check_move(own, input, moved)?;
            self.check_emissions(own, input, moved, &births)?;
        }
        let after: Vec<_> = moves.iter().map(|moved| moved.after).collect();
        self.check_values(&after)?;
        if self.tick.since(self.earlier.0) >= Self::BASELINE_TICKS {
            self.earlier = (self.tick, after.clone());
        }
        self.bodies.iter_mut().zip(after).for_each(|(known, after)| known.body = after);
        self.held = inputs.iter().map(TickInput::last).collect();
        self.report.ticks += 1;
        Ok(())
    }

    /// Moves every body three times: twice by the first build, in different orders, and once by the second.
    fn move_all(
        &mut self,
        inputs: &[TickInput<G::Input>],
    ) -> Result<(Vec<Moved<G>>, Births<G>), GameMistake> {
        let Self { first, second, tick, bodies, .. } = self;
        let mut start = first.start(*tick, bodies);
        let moves: Vec<_> =
            inputs.iter().enumerate().filter_map(|(own, input)| start.tick(own, input, 0)).collect();
        let mut births = vec![];
        while let Some(birth) = start.birth(births.len()) {
            births.push(birth);
        }
        let function = "advance";
        // Backwards, so that each call comes after calls for other bodies than before.
        for (own, (input, moved)) in inputs.iter().zip(&moves).enumerate().rev() {
            let place = Place::AfterTick { tick: *tick, body: own };
            let again = start.tick(own, input, 0);
            if let Some(difference) = again.and_then(|again| moved_difference(moved, &again)) {
                return Err(GameMistake::NotPure { place, function, difference });
            }
        }
        let mut start = second.start(*tick, bodies);
        for (own, (input, moved)) in inputs.iter().zip(&moves).enumerate() {
            let place = Place::AfterTick { tick: *tick, body: own };
            let other = start.tick(own, input, 0);
            if let Some(difference) = other.and_then(|other| moved_difference(moved, &other)) {
                return Err(GameMistake::BuildsDiffer { place, function, difference });
            }
        }
        Ok((moves, births))
    }

    /// Checks everything that a body did in its move besides moving, and the newborn bodies.
    fn check_emissions(
        &mut self,
        own: usize,
        input: &TickInput<G::Input>,
        moved: &Moved<G>,
        births: &[(Birth<G>, Moved<G>)],
    ) -> Result<(), GameMistake> {
        let place = self.place(own);
        let Some(id) = self.bodies.get(own).map(|body| body.id) else { return Ok(()) };
        check_effects(place, moved, false, &self.bodies)?;
        check_named(place, &**self.first.rules(), &self.bodies, own)?;
        let births = || births.iter().filter(|(birth, _)| birth.parent == id);
        for (_, moved) in births() {
            check_effects(place, moved, true, &self.bodies)?;
            let after = settled_body(place, &moved.after)?;
            let bits = body_codec(place, &after, CodecBaseline::Blank, &G::Body::blank())?;
            self.report.longest_body_bits = self.report.longest_body_bits.max(bits);
            self.report.emissions += 1;
        }
        // A body that emits nothing in the whole tick may do so in a part of it.
        let often = (self.tick.number() as usize + own).is_multiple_of(8);
        if moved.emitted > 0 || often {
            let births: Vec<_> = births().map(|(birth, _)| *birth).collect();
            let micros = self.plan.cadence.micros();
            let moments = [micros / 7, micros / 2, micros - micros / 5];
            let at = (self.tick, &*self.bodies, own);
            check_partial(place, &mut self.first, at, input, (&births, &moments))?;
        }
        Ok(())
    }

    /// Checks one move of one body, which both builds agree about.
    fn check_move(
        &mut self,
        own: usize,
        input: &TickInput<G::Input>,
        moved: &Moved<G>,
    ) -> Result<(), GameMistake> {
        let place = self.place(own);
        let Self { first, second, tick, bodies, .. } = self;
        let (tick, cadence, builds) =
            (*tick, self.plan.cadence, Builds { first: &**first.rules(), second: &**second.rules() });
        let Some(body) = bodies.get(own) else { return Ok(()) };
        let among = Among { rules: builds.first, cadence, tick, bodies, own, body };
        settled_body(place, &among.unsettled(input))?;

        let alone = first.tick_alone(tick, body, input).after;
        if let Some(difference) = body_difference(&moved.after, &alone) {
            self.report.contacts += 1;
            if moved.touched.is_empty() {
                return Err(GameMistake::TouchMissing { place, difference });
            }
        }
        // Reach of a whole tick, of a part of it, and of as long as missing input is held.
        let tick = cadence.interval();
        for span in [tick, self.dice.span(tick), builds.first.max_hold()] {
            among.check_reach(place, input, span)?;
        }
        self.report.order_dependent += u64::from(among.depends_on_order(input));
        builds.check_motion(place, cadence, body, &alone)?;
        self.report.moves += 1;
        Ok(())
    }

    /// Codec, digest and equality of the bodies `after` the tick.
    fn check_values(&mut self, after: &[G::Body]) -> Result<(), GameMistake> {
        let (tick, earlier) = &self.earlier;
        let blank = G::Body::blank();
        for (own, body) in after.iter().enumerate() {
            let place = Place::AfterTick { tick: self.tick, body: own };
            let next = (own + 1) % after.len();
            // The same body first: the checks below compare by digest too.
            for other in [Some(body), self.bodies.get(own).map(|known| &known.body), after.get(next)]
                .into_iter()
                .flatten()
            {
                self.equality.check::<G>(place, body, other)?;
            }
            let baselines = [
                (CodecBaseline::Blank, Some(&blank)),
                (CodecBaseline::Earlier { tick: *tick }, earlier.get(own)),
                (CodecBaseline::Other { body: next }, after.get(next)),
            ];
            for (baseline, against) in baselines {
                let Some(against) = against else { continue };
                let bits = body_codec(place, body, baseline, against)?;
                self.report.longest_body_bits = self.report.longest_body_bits.max(bits);
            }
        }
        Ok(())
    }

    fn check_parity(&mut self, own: usize) -> Result<(), GameMistake> {
        let live = Live::start(self.first.rules(), self.plan, self.tick, own, &self.bodies)?;
        if let Some(mut live) = live {
            self.report.rebuilds += live.play(self.plan, &self.inputs, &mut self.dice)?;
        }
        Ok(())
    }
}

/// The bodies that were born in a tick, and how each ended it.
type Births<G> = Vec<(Birth<G>, Moved<G>)>;

/// A body of the plan, by its index.
fn numbered<G: Game>((index, body): (u64, &G::Body)) -> Neighbour<G> {
    Neighbour::new(BodyId::new(index), Driver::World, *body)
}

fn check_fingerprint<G: Game>(first: &G, second: &G) -> Result<(), GameMistake> {
    let fingerprint = first.fingerprint();
    let others = [first.fingerprint(), second.fingerprint()];
    match others.into_iter().find(|other| *other != fingerprint) {
        Some(second) => Err(GameMistake::FingerprintsDiffer { first: fingerprint, second }),
        None => Ok(()),
    }
}

fn settled_inputs<I: Input>(inputs: &[I]) -> Result<Vec<I>, GameMistake> {
    settled_input(Place::DefaultInput, &I::default())?;
    let settled = inputs.iter().enumerate().map(|(index, input)| {
        let input = settled_input(Place::PlanInput(index), input)?;
        settled_input(Place::Released(index), &input.released())?;
        Ok(input)
    });
    settled.collect()
}

/// Body, contact, or whether others made a difference: the first in which two moves differ.
fn moved_difference<G: Game>(first: &Moved<G>, second: &Moved<G>) -> Option<Difference> {
    let contact = || {
        let named =
            |touched: Touched| FieldValue::Variant(if touched.is_empty() { "no call" } else { "called" });
        (first.touched != second.touched).then(|| Difference {
            field: FieldPath(vec![PathPart::Name("step.touch()")]),
            first: named(first.touched),
            second: named(second.touched),
        })
    };
    body_difference(&first.after, &second.after).or_else(contact)
}
