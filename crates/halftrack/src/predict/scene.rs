//! The bodies of a prediction, simulated together from a state to the present by the same simulator that the server runs.
//!
//! ```text
//!  state after tick 41 ──► tick 42 ──► tick 43 ──► open tick 44, up to the present moment
//!        run 0              run 1       run 2       members only, evaluated anew in each frame
//! ```
//!
//! A *run* is every body at the end of a tick, in order of the ids: the bodies among which the next tick moves each of them.
//! Knows inputs, ticks and bodies; time and the player's wishes are the business of [`super::Predictor`].

use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;

use super::{Actor, Authority, Role};
use crate::cadence::Cadence;
use crate::game::{Effects, Game, Neighbour, Touched};
use crate::id::{BodyId, Driver};
use crate::input::TickInput;
use crate::model::Body;
use crate::replay::Replay;
use crate::simulate::{Birth, Moved, TickSimulator, count_emitted};
use crate::tick::Tick;
use crate::time::{ServerTime, whole_micros};

/// The bodies of a prediction.
#[derive_where(Clone, Debug)]
pub(crate) struct Scene<G: Game> {
    #[derive_where(skip(Debug))]
    rules: Arc<G>,
    cadence: Cadence,
    simulator: TickSimulator<G>,
    /// The tick of the state that it goes on from: run 0 is its end.
    baseline: Tick,
    /// The body that the player reads first.
    own: BodyId,
    /// All runs, one after the other, and the index at which each ends.
    bodies: Vec<Neighbour<G>>,
    marks: Vec<Mark<G>>,
    runs: Vec<usize>,
    /// Contacts in closed ticks.
    contacts: Vec<(BodyId, Touched)>,
    /// Births in closed ticks.
    births: Vec<(Tick, Birth<G>)>,
    /// Members that the rules removed in closed ticks.
    ends: Vec<PredictedEnd<G>>,
    /// The members at the present moment, in order of their ids; bodies that were emitted in the open tick come last.
    present: Vec<Present<G>>,
    predicted: G::Body,
    /// Scratch memory: the run that is being made.
    next: Vec<(Neighbour<G>, Mark<G>)>,
}

/// A body of a run, besides its state.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Mark<G: Game> {
    pub(crate) role: Role,
    pub(crate) emitted: u32,
    pub(crate) held: G::Input,
    pub(crate) known: Tick,
}

/// A member at the present moment.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Present<G: Game> {
    pub(crate) who: Neighbour<G>,
    pub(crate) role: Role,
    /// The bodies that it touched in the open tick so far.
    pub(crate) touched: Touched,
    /// The moment of the open tick at which the rules removed it, microseconds into the tick.
    pub(crate) removed: Option<u32>,
    /// Its birth, if that is in the open tick.
    pub(crate) birth: Option<Birth<G>>,
}

/// A member that the rules removed.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct PredictedEnd<G: Game> {
    pub(crate) who: Neighbour<G>,
    pub(crate) tick: Tick,
    /// Microseconds into that tick.
    pub(crate) at: u32,
    pub(crate) touched: Touched,
}

impl<G: Game> Present<G> {
    /// Whether it is there: the server has the last word on the bodies of players.
    pub(crate) fn is_there(&self) -> bool {
        self.removed.is_none() || self.role == Role::Own
    }
}

impl<G: Game> Mark<G> {
    fn of(actor: &Actor<G>) -> Self {
        let Actor { role, emitted, held, known, .. } = *actor;
        Self { role, emitted, held, known }
    }

    /// A body that was emitted in `tick` by one with this role.
    fn born(role: Role, tick: Tick) -> Self {
        let role = if role.is_member() { Role::Group } else { Role::Near };
        Self { role, emitted: 0, held: G::Input::default(), known: tick }
    }
}

impl<G: Game> Scene<G> {
    /// Bodies that are born in one prediction at most, of rules that emit without end: those after them appear with a state.
    pub(crate) const MAX_BORN: usize = 256;

    pub(crate) fn new(rules: Arc<G>, cadence: Cadence, state: &Authority<G>) -> Self {
        let mut scene = Self {
            cadence,
            simulator: TickSimulator::new(Arc::clone(&rules), cadence),
            rules,
            baseline: state.tick,
            own: state.own.id,
            bodies: Vec::new(),
            marks: Vec::new(),
            runs: Vec::new(),
            contacts: Vec::new(),
            births: Vec::new(),
            ends: Vec::new(),
            present: Vec::new(),
            predicted: state.own.body,
            next: Vec::new(),
        };
        scene.restart(state);
        scene
    }

    /// Forgets everything, and goes on from `state`.
    pub(crate) fn restart(&mut self, state: &Authority<G>) {
        (self.baseline, self.own) = (state.tick, state.own.id);
        self.bodies.clear();
        self.marks.clear();
        self.runs.clear();
        self.contacts.clear();
        self.births.clear();
        self.ends.clear();
        for actor in state.actors() {
            self.bodies.push(actor.who);
            self.marks.push(Mark::of(actor));
        }
        self.runs.push(self.bodies.len());
        self.present.clear();
        self.predicted = state.own.body;
    }

    /// The newest tick that is closed.
    fn newest(&self) -> Tick {
        let closed = u32::try_from(self.runs.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Tick::new(self.baseline.number().saturating_add(closed))
    }

    /// The run at the end of `tick`.
    fn run(&self, tick: Tick) -> Option<Range<usize>> {
        let nth = tick.number().checked_sub(self.baseline.number())? as usize;
        let end = *self.runs.get(nth)?;
        let start = nth.checked_sub(1).and_then(|before| self.runs.get(before)).copied().unwrap_or(0);
        Some(start..end)
    }

    fn bodies_of(&self, run: &Range<usize>) -> &[Neighbour<G>] {
        self.bodies.get(run.clone()).unwrap_or_default()
    }

    /// A body at the end of `tick`, if it was simulated and is alive then.
    pub(crate) fn after(&self, tick: Tick, id: BodyId) -> Option<(&Neighbour<G>, &Mark<G>)> {
        let run = self.run(tick)?;
        let at = run.start + self.bodies_of(&run).binary_search_by_key(&id, |who| who.id).ok()?;
        Some((self.bodies.get(at)?, self.marks.get(at)?))
    }

    /// All bodies at the end of `tick`.
    pub(crate) fn all_after(&self, tick: Tick) -> impl Iterator<Item = (&Neighbour<G>, &Mark<G>)> {
        let run = self.run(tick).unwrap_or_default();
        let marks = self.marks.get(run.clone()).unwrap_or_default();
        self.bodies_of(&run).iter().zip(marks)
    }

    /// Bodies that touched others in closed ticks.
    pub(crate) fn contacts(&self) -> &[(BodyId, Touched)] {
        &self.contacts
    }

    /// The input that is assumed in `tick` for a body that the player does not own.
    pub(crate) fn assumed(&self, driver: Driver, mark: &Mark<G>, tick: Tick) -> G::Input {
        assumed(&*self.rules, self.cadence, driver, mark, tick)
    }

    /// Whether the prediction has assumed the same input in each tick after `known`, the open one included, as with `held`,
    /// the input that the body had at the end of `known`. Input that is held for too long becomes neutral, so the answer
    /// may be no although the input has not changed.
    pub(crate) fn has_assumed(
        &self,
        driver: Driver,
        mark: &Mark<G>,
        (held, known): (G::Input, Tick),
    ) -> bool {
        let fresh = Mark { held, known, ..*mark };
        let (mut tick, open) = (known.next(), self.newest().next());
        while self.assumed(driver, mark, tick) == self.assumed(driver, &fresh, tick) {
            if tick >= open {
                return true;
            }
            tick = tick.next();
        }
        false
    }

    /// Simulates the ticks after the newest, the player's input in which is `own`.
    pub(crate) fn close<'a>(&mut self, own: impl IntoIterator<Item = &'a TickInput<G::Input>>) {
        let mut own = own.into_iter();
        while let Some(input) = self.close_alone(&mut own) {
            let tick = self.newest();
            let Some(run) = self.run(tick) else { return };
            self.close_together(tick.next(), &run, input);
            self.runs.push(self.bodies.len());
        }
    }

    /// The same for one body of the player without others, which most predictions are. Gives the input of the first tick that
    /// it does not simulate: there are other bodies, or the body emits one or is removed.
    fn close_alone<'a>(
        &mut self,
        own: &mut impl Iterator<Item = &'a TickInput<G::Input>>,
    ) -> Option<&'a TickInput<G::Input>> {
        let newest = self.newest();
        let run = self.run(newest)?;
        let (Some(who), Some(mark), 1) = (self.bodies.get(run.start), self.marks.get(run.start), run.len())
        else {
            return own.next();
        };
        if mark.role != Role::Own {
            return own.next();
        }
        let (who, mark) = (*who, *mark);
        let mut replay = Replay::of(&*self.rules, self.cadence, newest.next(), &[], &who);
        for input in own {
            replay.tick_settling(input);
            let effects = replay.effects_mut();
            if !effects.emitted.is_empty() || effects.removed.is_some() {
                return Some(input);
            }
            if !effects.touched.is_empty() {
                self.contacts.push((who.id, core::mem::take(&mut effects.touched)));
            }
            self.bodies.push(Neighbour { body: *replay.body(), ..who });
            self.marks.push(mark);
            self.runs.push(self.bodies.len());
        }
        None
    }

    fn close_together(&mut self, tick: Tick, run: &Range<usize>, own: &TickInput<G::Input>) {
        let Self { rules, cadence, simulator, bodies, marks, contacts, births, ends, next, .. } = self;
        next.clear();
        let before = bodies.get(run.clone()).unwrap_or_default();
        let known = marks.get(run.clone()).unwrap_or_default();
        let mut start = simulator.start(tick, before);
        for (place, (who, mark)) in before.iter().zip(known).enumerate() {
            let input = input_of((&**rules, *cadence), who, mark, tick, own);
            let Some(moved) = start.run(place, &input, mark.emitted) else { continue };
            let Moved { after, touched, emitted, removed, .. } = moved;
            let who = Neighbour { body: after, ..*who };
            if !touched.is_empty() {
                contacts.push((who.id, touched));
            }
            match removed {
                Some(at) if matches!(mark.role, Role::Group | Role::Leaving) => {
                    ends.push(PredictedEnd { who, tick, at, touched });
                }
                // The server has the last word on the bodies of players.
                Some(_) if mark.role == Role::Near => {}
                _ => {
                    let emitted = count_emitted(mark.emitted, emitted);
                    next.push((who, Mark { emitted, ..*mark }));
                }
            }
        }
        for nth in 0.. {
            // spec: EMIT-01
            if !start.has_births() || births.len() >= Self::MAX_BORN {
                break;
            }
            let Some((birth, moved)) = start.birth(nth) else { break };
            let role = role_of(before, known, birth.parent);
            let mark = Mark::born(role, tick);
            let who = birth.newborn(moved.after);
            let place = next.partition_point(|(other, _)| other.id < who.id);
            if next.get(place).is_some_and(|(other, _)| other.id == who.id) {
                continue;
            }
            births.push((tick, birth));
            if !moved.touched.is_empty() {
                contacts.push((who.id, moved.touched));
            }
            match moved.removed {
                Some(at) if role.is_member() => {
                    ends.push(PredictedEnd { who, tick, at, touched: moved.touched });
                }
                Some(_) => {}
                None => next.insert(place, (who, mark)),
            }
        }
        bodies.extend(next.iter().map(|(who, _)| *who));
        marks.extend(next.iter().map(|(_, mark)| *mark));
    }

    /// Brings the members to `phase` microseconds into the open tick, the player's input in which is `own`.
    pub(crate) fn evaluate(&mut self, own: &TickInput<G::Input>, phase: u32) {
        let tick = self.newest();
        let Some(run) = self.run(tick) else { return };
        let tick = tick.next();
        let Self { rules, cadence, simulator, bodies, marks, present, predicted, .. } = self;
        present.clear();
        let before = bodies.get(run.clone()).unwrap_or_default();
        let marks = marks.get(run.clone()).unwrap_or_default();
        let mut emitted = Vec::new();
        for (place, (who, mark)) in before.iter().zip(marks).enumerate() {
            if !mark.role.is_member() {
                continue;
            }
            let input = input_of((&**rules, *cadence), who, mark, tick, own);
            let opened = simulator.open(tick, before, place, &input, phase);
            let Some((body, effects)) = opened else { continue };
            if who.id == self.own {
                *predicted = body;
            }
            let Effects { touched, removed, emitted: born, .. } = effects;
            present.push(Present {
                who: Neighbour { body, ..*who },
                role: mark.role,
                touched,
                removed,
                birth: None,
            });
            emitted.extend((0u32..).zip(born).map(|(nth, emission)| Birth {
                id: who.id.emitted(count_emitted(mark.emitted, nth)),
                parent: who.id,
                at: emission.at,
                body: emission.body,
            }));
        }
        emitted.truncate(Self::MAX_BORN.saturating_sub(self.births.len()));
        for birth in emitted {
            let into = Duration::from_micros(u64::from(phase));
            if let Some(Moved { after, touched, removed, .. }) =
                simulator.part_of_birth(tick, before, &birth, into)
            {
                let (who, role) = (birth.newborn(after), Role::Group);
                present.push(Present { who, role, touched, removed, birth: Some(birth) });
            }
        }
    }

    /// The first body that the player owns, at the present moment.
    pub(crate) fn predicted(&self) -> &G::Body {
        &self.predicted
    }

    /// The members at the present moment.
    pub(crate) fn present(&self) -> &[Present<G>] {
        &self.present
    }

    /// A member at the present moment, if it is there.
    pub(crate) fn present_of(&self, id: BodyId) -> Option<&Present<G>> {
        self.present.iter().find(|present| present.who.id == id && present.is_there())
    }

    /// The body that emitted one that was born in a closed tick.
    pub(crate) fn parent_of(&self, id: BodyId) -> Option<BodyId> {
        self.births.iter().find(|(_, birth)| birth.id == id).map(|(_, birth)| birth.parent)
    }

    /// Births in closed ticks.
    pub(crate) fn births(&self) -> &[(Tick, Birth<G>)] {
        &self.births
    }

    /// Members that the rules removed in closed ticks.
    pub(crate) fn ends(&self) -> &[PredictedEnd<G>] {
        &self.ends
    }

    /// A member at `time`, which lies in a closed tick or in the open one. The player does not own it.
    pub(crate) fn at(&mut self, id: BodyId, time: ServerTime) -> Option<G::Body> {
        let tick = self.cadence.tick_at(time);
        let into = time.saturating_since(self.cadence.start_of(tick));
        let before = tick.previous()?;
        let run = self.run(before)?;
        let bodies = self.bodies.get(run.clone())?;
        let Ok(place) = bodies.binary_search_by_key(&id, |who| who.id) else {
            let (_, birth) = self.births.iter().find(|(born, birth)| *born == tick && birth.id == id)?;
            return self.simulator.part_of_birth(tick, bodies, birth, into).map(|moved| moved.after);
        };
        let (who, mark) = (bodies.get(place)?, self.marks.get(run.start + place)?);
        let input = input_of((&*self.rules, self.cadence), who, mark, tick, &TickInput::default());
        let phase = u32::try_from(whole_micros(into)).unwrap_or(u32::MAX);
        self.simulator.open(tick, bodies, place, &input, phase).map(|(body, _)| body)
    }

    /// Whether all bodies are within their ranges.
    pub(crate) fn is_sound(&self) -> bool {
        self.bodies.iter().all(|who| who.body.check().is_ok())
    }
}

/// The input of a body in `tick`, while `own` is that of the player.
#[inline]
fn input_of<G: Game>(
    (rules, cadence): (&G, Cadence),
    who: &Neighbour<G>,
    mark: &Mark<G>,
    tick: Tick,
    own: &TickInput<G::Input>,
) -> TickInput<G::Input> {
    if mark.role == Role::Own {
        *own
    } else {
        TickInput::steady(assumed(rules, cadence, who.driver, mark, tick))
    }
}

fn assumed<G: Game>(rules: &G, cadence: Cadence, driver: Driver, mark: &Mark<G>, tick: Tick) -> G::Input {
    match driver {
        Driver::Nothing => G::Input::default(),
        Driver::World => mark.held,
        Driver::Player(_) => rules.substitute(Some(mark.held), cadence.span_of(tick.since(mark.known))),
    }
}

fn role_of<G: Game>(before: &[Neighbour<G>], marks: &[Mark<G>], id: BodyId) -> Role {
    let place = before.binary_search_by_key(&id, |who| who.id).ok();
    place.and_then(|place| marks.get(place)).map_or(Role::Near, |mark| mark.role)
}
