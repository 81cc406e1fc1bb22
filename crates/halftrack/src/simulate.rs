//! The tick simulator: moves bodies through a tick, each among the others as they stood at its start.
//!
//! Server and client run the same code, so a client that is sent the inputs of a tick gets the server's bodies.
//! Sweep-and-prune along the first axis finds the neighbours.

mod part;

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;

use crate::cadence::Cadence;
use crate::game::{Effects, Game, Neighbour, Reach, Touched};
use crate::id::{BodyId, Driver};
use crate::input::TickInput;
use crate::model::FieldError;
use crate::replay::Replay;
use crate::tick::Tick;
use crate::time::whole_micros;

/// Moves bodies through ticks by the rules of a game.
#[derive_where(Clone, Debug)]
pub(crate) struct TickSimulator<G: Game> {
    #[derive_where(skip(Debug))]
    rules: Arc<G>,
    cadence: Cadence,
    /// Bodies looked at so far, a measure of the work done; and the most that may be.
    work: u64,
    work_limit: u64,
    /// The reach of every body of the tick at hand, and the largest extent among them.
    reaches: Vec<Option<Reach>>,
    max_extent: f64,
    /// The bodies of the tick in order of their first coordinate; empty when all pairs are tested.
    line: Vec<(f64, usize)>,
    /// Scratch memory: candidates of the broad phase, and the neighbours of the body at hand.
    near: Vec<usize>,
    neighbours: Vec<Neighbour<G>>,
    /// Bodies that were emitted in the tick at hand.
    births: Vec<Birth<G>>,
}

/// The outcome of one tick for one body.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Moved<G: Game> {
    /// The body at the end of the tick, settled.
    pub(crate) after: G::Body,
    /// Whether the same input gives the same body without the others.
    pub(crate) alone: bool,
    pub(crate) touched: Touched,
    /// The moment at which a rule removed it, microseconds into the tick.
    pub(crate) removed: Option<u32>,
    /// Bodies that it emitted.
    pub(crate) emitted: u32,
    /// Emissions that were not made: beyond the limit, in its birth tick, or after the end of their step.
    pub(crate) refused: u32,
    pub(crate) overdue: u32,
    /// A field that left its range and was put back.
    pub(crate) problem: Option<FieldError>,
}

/// A body that was emitted in a tick, at the moment of its birth.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Birth<G: Game> {
    pub(crate) id: BodyId,
    pub(crate) parent: BodyId,
    /// Microseconds into the tick.
    pub(crate) at: u32,
    pub(crate) body: G::Body,
}

impl<G: Game> Birth<G> {
    /// The newborn body in this state, as others see it.
    pub(crate) const fn newborn(&self, body: G::Body) -> Neighbour<G> {
        Neighbour { id: self.id, driver: Driver::Nothing, parent: Some(self.parent), body }
    }
}

/// Bodies that a body has emitted, after `more` of them. The count wraps where the wire ends.
pub(crate) const fn count_emitted(emitted: u32, more: u32) -> u32 {
    emitted.wrapping_add(more) % EMITTED_WRAPS
}

const EMITTED_WRAPS: u32 = 1 << 20;

/// The number of the emission that was so many before the next one.
pub(crate) const fn emission_before(emitted: u32, back: u32) -> u32 {
    count_emitted(emitted, EMITTED_WRAPS - back % EMITTED_WRAPS)
}

/// Whether body `id` is one of the latest that `parent` has emitted, of which there are so many.
pub(crate) fn has_emitted(parent: BodyId, emitted: u32, id: BodyId) -> bool {
    /// More than a body emits within a prediction window.
    const MAX_LOOKED_BACK: u32 = 256;
    (1..=MAX_LOOKED_BACK).any(|back| parent.emitted(emission_before(emitted, back)) == id)
}

/// All bodies of a room at the start of a tick.
pub(crate) struct TickStart<'a, G: Game> {
    simulator: &'a mut TickSimulator<G>,
    tick: Tick,
    before: &'a [Neighbour<G>],
}

impl<G: Game> TickSimulator<G> {
    /// Work of a neighbour: a rule looks at it in each step of a tick, and several times.
    const NEIGHBOUR: u64 = 64;
    /// Work of a body in a look at the past: its history is not in the cache.
    const LOOK_BACK: u64 = 8;
    /// Bodies that are born in a tick of a room at most, in order of their parents' ids: rules that emit without end fill
    /// neither the server's memory nor a client's. Both ends stop at the same one.
    pub(crate) const MAX_BIRTHS: usize = 1_024;
    /// With fewer bodies than this, testing all pairs is cheaper than sorting.
    const FEW: usize = 16;

    pub(crate) fn new(rules: Arc<G>, cadence: Cadence) -> Self {
        Self {
            rules,
            cadence,
            work: 0,
            work_limit: u64::MAX,
            reaches: Vec::new(),
            max_extent: 0.0,
            line: Vec::new(),
            near: Vec::new(),
            neighbours: Vec::new(),
            births: Vec::new(),
        }
    }

    /// Forgets the tick, and keeps memory for so many bodies at most.
    pub(crate) fn forget(&mut self, max_bodies: usize) {
        let Self { reaches, line, near, neighbours, births, .. } = self;
        births.clear();
        births.shrink_to(max_bodies);
        reaches.clear();
        reaches.shrink_to(max_bodies);
        line.clear();
        line.shrink_to(max_bodies);
        near.clear();
        near.shrink_to(max_bodies);
        neighbours.clear();
        neighbours.shrink_to(max_bodies);
    }

    /// The rules that it simulates.
    pub(crate) fn rules(&self) -> &Arc<G> {
        &self.rules
    }

    /// Limits the work: see [`Self::is_spent`].
    pub(crate) fn limit_work(&mut self, limit: u64) {
        self.work_limit = limit;
    }

    /// Whether more work has been done than the limit.
    pub(crate) fn is_spent(&self) -> bool {
        self.work > self.work_limit
    }

    /// Bodies looked at so far.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Begins `tick`, at whose start the bodies are `before`.
    pub(crate) fn start<'a>(&'a mut self, tick: Tick, before: &'a [Neighbour<G>]) -> TickStart<'a, G> {
        let span = self.cadence.interval();
        let rules = &*self.rules;
        self.births.clear();
        self.reaches.clear();
        self.reaches.extend(before.iter().map(|body| rules.reach(body, span)));
        // Room for all, as any body may touch all others: a crowd that moves together must not allocate.
        self.near.clear();
        self.near.reserve(before.len());
        self.neighbours.clear();
        self.neighbours.reserve(before.len());
        self.line.clear();
        if before.len() >= Self::FEW {
            self.max_extent = self.reaches.iter().flatten().map(|reach| reach.extent).fold(0.0, f64::max);
            let places = self.reaches.iter().map(|reach| reach.map(|Reach { at: [first, ..], .. }| first));
            self.line.extend(places.zip(0..).map_while(|(at, index)| Some((at?, index))));
            self.line.sort_unstable_by(|(at, _), (other, _)| at.total_cmp(other));
        }
        if self.line.len() != before.len() {
            self.line.clear();
        }
        TickStart { simulator: self, tick, before }
    }

    /// Collects the neighbours of body `own` of `before` in the tick that was started with it.
    #[inline]
    fn find_neighbours(&mut self, before: &[Neighbour<G>], own: usize) {
        /// The rounding error of a sum of distances.
        const SLACK: f64 = 1e-6;
        let Self { reaches, near, line, neighbours, .. } = self;
        neighbours.clear();
        let reach = reaches.get(own).copied().flatten();
        let Some((reach, [first, ..])) = reach.filter(|_| !line.is_empty()).map(|reach| (reach, reach.at))
        else {
            self.work += before.len() as u64;
            let others = before.iter().zip(&*reaches).enumerate().filter(|(other, _)| *other != own);
            let near = others.filter(|(_, (_, other))| is_near(reach.as_ref(), other.as_ref()));
            neighbours.extend(near.map(|(_, (body, _))| *body));
            return;
        };
        let far = reach.travel + reach.extent + self.max_extent + SLACK;
        let from = line.partition_point(|(other, _)| *other < first - far);
        let reached = line.iter().skip(from).take_while(|(other, _)| *other <= first + far);
        near.clear();
        let mut candidates = 0;
        near.extend(reached.map(|(_, index)| *index).filter(|other| {
            candidates += 1;
            let touches = reaches.get(*other).copied().flatten().is_some_and(|other| reach.touches(&other));
            *other != own && touches
        }));
        self.work += candidates;
        // In the order of `before`: rules that sum over neighbours then give the same bits in every caller.
        near.sort_unstable();
        neighbours.extend(near.iter().filter_map(|index| before.get(*index)));
    }

    #[inline]
    fn tick(
        &mut self,
        tick: Tick,
        before: &[Neighbour<G>],
        own: usize,
        input: &TickInput<G::Input>,
        emitted: u32,
    ) -> Option<Moved<G>> {
        let who = before.get(own)?;
        let id = who.id;
        self.find_neighbours(before, own);
        self.work += Self::NEIGHBOUR * self.neighbours.len() as u64;
        let mut replay = Replay::of(&*self.rules, self.cadence, tick, &self.neighbours, who);
        let problem = replay.tick_settling(input).problem();
        let after = *replay.body();
        let mut moved = Moved::new(after, replay.effects(), problem);
        // By comparison, whatever the rules say of contact; but without neighbours there is nothing to compare.
        if !self.neighbours.is_empty() {
            let alone = before.get(own).map(|who| self.tick_alone(tick, who, input));
            moved.alone = alone.is_some_and(|alone| alone.is_same(&moved));
        }
        if moved.emitted > 0 {
            moved.refused += self.bear(id, emitted, replay.into_effects());
        }
        Some(moved)
    }

    /// Notes the bodies that body `id` has emitted in the tick. It had emitted so many before. Gives the number of those
    /// for which the tick has no room: they count as emitted all the same, so that ids depend on the parent alone.
    fn bear(&mut self, id: BodyId, emitted: u32, effects: Effects<G>) -> u32 {
        // spec: EMIT-01
        let room = Self::MAX_BIRTHS.saturating_sub(self.births.len());
        let beyond = effects.emitted.len().saturating_sub(room);
        self.births.extend((0u32..).zip(effects.emitted).take(room).map(|(nth, emission)| Birth {
            id: id.emitted(count_emitted(emitted, nth)),
            parent: id,
            at: emission.at,
            body: emission.body,
        }));
        u32::try_from(beyond).unwrap_or(u32::MAX)
    }

    /// The tick of a body if there were no others.
    #[inline]
    pub(crate) fn tick_alone(&self, tick: Tick, who: &Neighbour<G>, input: &TickInput<G::Input>) -> Moved<G> {
        let mut replay = Replay::of(&*self.rules, self.cadence, tick, &[], who);
        let problem = replay.tick_settling(input).problem();
        Moved::new(*replay.body(), replay.effects(), problem)
    }

    /// A newborn body at the end of its birth tick, which was started with `before`.
    fn first_tick(&mut self, tick: Tick, before: &[Neighbour<G>], birth: &Birth<G>) -> Moved<G> {
        let rules = &*self.rules;
        let reach = rules.reach(&birth.body, self.cadence.interval());
        self.neighbours.clear();
        let near =
            before.iter().zip(&self.reaches).filter(|(_, other)| is_near(reach.as_ref(), other.as_ref()));
        self.neighbours.extend(near.map(|(other, _)| *other));
        self.work += before.len() as u64 + Self::NEIGHBOUR * self.neighbours.len() as u64;
        let moved = self.grow(tick, &self.neighbours, birth, self.cadence.micros());
        let alone =
            self.neighbours.is_empty() || self.grow(tick, &[], birth, self.cadence.micros()).is_same(&moved);
        Moved { alone, ..moved }
    }

    /// A newborn body, `phase` microseconds into its birth tick.
    fn grow(&self, tick: Tick, neighbours: &[Neighbour<G>], birth: &Birth<G>, phase: u32) -> Moved<G> {
        let mut replay = Replay::new(&*self.rules, self.cadence, tick, neighbours, birth.body)
            .named(birth.id, Some(birth.parent))
            .born(birth.at);
        let problem = replay.hold_settling(G::Input::default(), phase).problem();
        Moved::new(*replay.body(), replay.effects(), problem)
    }

    /// A newborn body `into` its birth tick, among the bodies that stood there at its start. `None` before its birth.
    pub(crate) fn part_of_birth(
        &mut self,
        tick: Tick,
        before: &[Neighbour<G>],
        birth: &Birth<G>,
        into: Duration,
    ) -> Option<Moved<G>> {
        let phase = u32::try_from(whole_micros(into)).unwrap_or(u32::MAX).min(self.cadence.micros());
        if phase < birth.at {
            return None;
        }
        collect_neighbours(&*self.rules, &birth.body, before.iter().copied(), into, &mut self.neighbours);
        Some(self.grow(tick, &self.neighbours, birth, phase))
    }

    /// Body `own` of `before`, `into` the tick, at most at its end.
    pub(crate) fn part_of_tick(
        &mut self,
        tick: Tick,
        before: &[Neighbour<G>],
        own: usize,
        input: &TickInput<G::Input>,
        into: Duration,
    ) -> Option<G::Body> {
        let body = *before.get(own)?;
        let into = into.min(self.cadence.interval());
        self.work += Self::LOOK_BACK * before.len() as u64;
        self.neighbours_within(before, own, into);
        self.work += Self::NEIGHBOUR * self.neighbours.len() as u64;
        Some(self.part_among(tick, &self.neighbours, &body, input, into))
    }

    /// A body without others, `into` the tick, at most at its end.
    pub(crate) fn part_of_tick_alone(
        &self,
        tick: Tick,
        who: &Neighbour<G>,
        input: &TickInput<G::Input>,
        into: Duration,
    ) -> G::Body {
        self.part_among(tick, &[], who, input, into.min(self.cadence.interval()))
    }

    fn part_among(
        &self,
        tick: Tick,
        neighbours: &[Neighbour<G>],
        who: &Neighbour<G>,
        input: &TickInput<G::Input>,
        into: Duration,
    ) -> G::Body {
        let mut replay = Replay::of(&*self.rules, self.cadence, tick, neighbours, who);
        let mut left = into;
        for step in input.steps(self.cadence) {
            let span = step.span.min(left);
            replay.hold(step.input, span);
            left -= span;
        }
        *replay.body()
    }

    /// Body `own` of `before`, which is at the start of `tick`, after `input` was held for `span`, however many ticks that
    /// is. The others stand.
    pub(crate) fn hold(
        &mut self,
        tick: Tick,
        before: &[Neighbour<G>],
        own: usize,
        input: G::Input,
        span: Duration,
    ) -> Option<G::Body> {
        let who = before.get(own)?;
        self.neighbours_within(before, own, span);
        let mut replay = Replay::of(&*self.rules, self.cadence, tick, &self.neighbours, who);
        replay.hold(input, span);
        Some(*replay.body())
    }

    fn neighbours_within(&mut self, before: &[Neighbour<G>], own: usize, span: Duration) {
        let Some(body) = before.get(own) else { return };
        let others = before.iter().enumerate().filter(|(other, _)| *other != own).map(|(_, body)| *body);
        collect_neighbours(&*self.rules, body, others, span, &mut self.neighbours);
    }
}

impl<G: Game> TickStart<'_, G> {
    /// Moves body `own` through the tick. `None` when there is no such body, or the work is spent.
    ///
    /// It has emitted so many bodies before.
    #[inline]
    pub(crate) fn tick(&mut self, own: usize, input: &TickInput<G::Input>, emitted: u32) -> Option<Moved<G>> {
        if self.simulator.is_spent() {
            return None;
        }
        self.simulator.tick(self.tick, self.before, own, input, emitted)
    }

    /// Whether bodies were emitted in the tick so far.
    #[inline]
    pub(crate) fn has_births(&self) -> bool {
        !self.simulator.births.is_empty()
    }

    /// The body that was emitted in the tick as number `nth`, and how it stands at the tick's end.
    pub(crate) fn birth(&mut self, nth: usize) -> Option<(Birth<G>, Moved<G>)> {
        let birth = *self.simulator.births.get(nth)?;
        if self.simulator.is_spent() {
            return None;
        }
        Some((birth, self.simulator.first_tick(self.tick, self.before, &birth)))
    }
}

impl<G: Game> Moved<G> {
    #[inline]
    fn new(after: G::Body, effects: &Effects<G>, problem: Option<FieldError>) -> Self {
        Self {
            after,
            alone: true,
            touched: effects.touched,
            removed: effects.removed,
            emitted: u32::try_from(effects.emitted.len()).unwrap_or(0),
            refused: effects.refused,
            overdue: effects.overdue,
            problem,
        }
    }

    /// Whether a body that was moved like this is the same for others.
    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        self.after == other.after && self.removed == other.removed && self.emitted == other.emitted
    }
}

/// Replaces `into` by the bodies of `others` that `body` can touch within `span`.
pub(crate) fn collect_neighbours<G: Game>(
    rules: &G,
    body: &G::Body,
    others: impl Iterator<Item = Neighbour<G>>,
    span: Duration,
    into: &mut Vec<Neighbour<G>>,
) {
    let reach = rules.reach(body, span);
    into.clear();
    // Room for all, or a body that meets more others than ever before would allocate in the middle of a match.
    into.reserve(others.size_hint().1.unwrap_or(0));
    into.extend(others.filter(|other| is_near(reach.as_ref(), rules.reach(other, span).as_ref())));
}

/// Whether a body can touch another one; `None` reaches everywhere.
fn is_near(own: Option<&Reach>, other: Option<&Reach>) -> bool {
    own.zip(other).is_none_or(|(own, other)| own.touches(other))
}
