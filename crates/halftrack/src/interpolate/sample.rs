//! Where a body is at a moment, from what is known of its ticks. Knows neither clocks nor screens.

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::game::{Game, Neighbour};
use crate::id::BodyId;
use crate::input::TickInput;
use crate::model::Body;
use crate::model::Pose;
use crate::present::CorrectionConfig;
use crate::saved::{Unrestorable, ensure};
use crate::simulate::{Birth, TickSimulator};
use crate::snapshot::{BodyHistory, Course, Crowd, TickRecord};
use crate::tick::Tick;
use crate::time::ServerTime;

/// How the pose of another body was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sampling {
    /// By the rules, from what the body was told: where it was on the server, to the bit.
    Exact,
    /// Between two states, where the way from one to the other is not known.
    Interpolated,
    /// Past the newest state, by the rules with the last input held: a guess, for the eye only.
    Extrapolated,
    /// Past the newest state by more than may be guessed: it stands.
    Held,
}

/// A tick that a body went through by itself: enough to draw it at any moment of that tick without looking it up again.
/// What is known of such a tick does not change any more.
#[derive_where(Clone, Copy, Debug)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Piece<G: Game> {
    tick: Tick,
    before: Neighbour<G>,
    input: TickInput<G::Input>,
}

/// Finds the poses of bodies at one moment after the other.
#[derive_where(Clone, Debug)]
pub(crate) struct Sampler<G: Game> {
    cadence: Cadence,
    simulator: TickSimulator<G>,
    /// How far past the newest state a pose may be guessed.
    max_extrapolate: Duration,
    /// Everybody at the start of the tick at hand.
    start: Standing<G>,
    /// Everybody as last told.
    last: Standing<G>,
}

/// The bodies among which a body is simulated inside a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    /// Those that changed its state at the tick's end: none, for most bodies.
    WhoMattered,
    /// All of them. A body that is pressed from two sides may move inside the tick and be back at its end.
    All,
}

/// Bodies at one moment, in order of their ids.
#[derive_where(Clone, Debug)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Standing<G: Game> {
    gathered: Gathered,
    bodies: Vec<Neighbour<G>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Gathered {
    Nothing,
    At(Tick),
    Newest,
}

impl<G: Game> Standing<G> {
    const fn new() -> Self {
        Self { gathered: Gathered::Nothing, bodies: Vec::new() }
    }

    /// All bodies of `crowd` at the end of a tick or in their newest state, and the place of body `id` among them.
    fn gather(&mut self, crowd: &Crowd<G>, which: Gathered, id: BodyId) -> Option<usize> {
        if self.gathered != which {
            self.gathered = which;
            self.bodies.clear();
            for (id, history) in crowd.kept() {
                // A body that ended with the tick is in nobody's way in the next.
                let over = |tick: Tick| history.newest() == tick && crowd.newest() > Some(tick);
                let tick = match which {
                    Gathered::At(tick) if over(tick) => continue,
                    Gathered::At(tick) => tick,
                    Gathered::Newest | Gathered::Nothing => history.newest(),
                };
                let Some(record) = history.get(tick) else { continue };
                self.bodies.push(Neighbour { body: record.after, ..history.neighbour(id) });
            }
        }
        self.bodies.binary_search_by_key(&id, |body| body.id).ok()
    }
}

/// The state of a [`Sampler`].
pub(crate) type SavedSampler<G> = (Standing<G>, Standing<G>);

impl<G: Game> Sampler<G> {
    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        let Self { cadence: _, simulator: _, max_extrapolate: _, start, last } = self;
        (start, last)
    }

    pub(crate) fn restore(&mut self, (start, last): SavedSampler<G>) -> Result<(), Unrestorable> {
        ensure(start.is_sound() && last.is_sound(), "drawn bodies")?;
        (self.start, self.last) = (start, last);
        Ok(())
    }
}

impl<G: Game> Standing<G> {
    fn is_sound(&self) -> bool {
        let bodies = self.bodies.iter().all(|body| body.check().is_ok());
        bodies && self.bodies.is_sorted_by_key(|body| body.id)
    }
}

impl<G: Game> Piece<G> {
    pub(crate) fn is_sound(&self) -> bool {
        self.before.body.check().is_ok()
    }
}

impl<G: Game> Sampler<G> {
    pub(crate) fn new(rules: Arc<G>, cadence: Cadence, max_extrapolate: Duration) -> Self {
        let simulator = TickSimulator::new(rules, cadence);
        Self { cadence, simulator, max_extrapolate, start: Standing::new(), last: Standing::new() }
    }

    /// The rules.
    pub(crate) fn rules(&self) -> &G {
        self.simulator.rules()
    }

    /// The crowd is another than before.
    pub(crate) fn forget(&mut self) {
        self.start.gathered = Gathered::Nothing;
        self.last.gathered = Gathered::Nothing;
    }

    /// The tick that `time` lies in, and how far in it.
    fn within(&self, time: ServerTime) -> (Tick, Duration) {
        let tick = self.cadence.tick_at(time);
        (tick, time.saturating_since(self.cadence.start_of(tick)))
    }

    /// What `history` knows of the tick that `time` lies in, if the body went through it by itself: most do.
    pub(crate) fn piece(&self, id: BodyId, history: &BodyHistory<G>, time: ServerTime) -> Option<Piece<G>> {
        let (tick, _) = self.within(time);
        let ends = history.ended().is_some() && history.newest() == tick;
        let record = history.get(tick).filter(|record| record.course == Course::Own && !ends)?;
        let before = history.get(tick.previous()?)?;
        let before = Neighbour { body: before.after, ..history.neighbour(id) };
        Some(Piece { tick, before, input: record.input })
    }

    /// The pose at `time`, if that lies in `piece`.
    pub(crate) fn along(&self, piece: &Piece<G>, time: ServerTime) -> Option<G::Pose> {
        let (tick, into) = self.within(time);
        let alone = || self.simulator.part_of_tick_alone(tick, &piece.before, &piece.input, into);
        (tick == piece.tick).then(|| self.simulator.rules().pose(&alone())).flatten()
    }

    /// The pose of body `id`, whose ticks are `history`, at `time`; `None` before its first state, and for a body that is
    /// not drawn.
    pub(crate) fn pose(
        &mut self,
        crowd: &Crowd<G>,
        id: BodyId,
        history: &BodyHistory<G>,
        time: ServerTime,
        config: impl FnOnce() -> CorrectionConfig,
    ) -> Option<(G::Pose, Sampling)> {
        self.sample((crowd, id, history), time, Among::WhoMattered, config)
    }

    /// The same among all bodies of each tick, also where they changed nothing by its end: as prediction has it.
    pub(crate) fn pose_among_all(
        &mut self,
        crowd: &Crowd<G>,
        id: BodyId,
        history: &BodyHistory<G>,
        time: ServerTime,
        config: impl FnOnce() -> CorrectionConfig,
    ) -> Option<G::Pose> {
        self.sample((crowd, id, history), time, Among::All, config).map(|(pose, _)| pose)
    }

    fn sample(
        &mut self,
        (crowd, id, history): (&Crowd<G>, BodyId, &BodyHistory<G>),
        time: ServerTime,
        among: Among,
        config: impl FnOnce() -> CorrectionConfig,
    ) -> Option<(G::Pose, Sampling)> {
        // spec: REMOTE-01
        let (tick, into) = self.within(time);
        let start = tick.previous()?;
        if into.is_zero()
            && let Some(record) = history.get(start)
        {
            return Some((self.simulator.rules().pose(&record.after)?, Sampling::Exact));
        }
        if tick > history.newest() && history.ended().is_some() {
            return Some((self.simulator.rules().pose(history.latest())?, Sampling::Exact));
        }
        let into = match history.ended() {
            Some(ended) if tick == history.newest() => into.min(ended),
            _ => into,
        };
        if let Some(born) = history.birth().filter(|born| born.tick == tick) {
            let birth = Birth { id, parent: history.parent()?, at: born.at, body: born.body };
            self.start.gather(crowd, Gathered::At(start), id);
            let moved = self.simulator.part_of_birth(tick, &self.start.bodies, &birth, into)?;
            return Some((self.simulator.rules().pose(&moved.after)?, Sampling::Exact));
        }
        if tick > history.newest() {
            return self.past_the_newest(crowd, id, history, time);
        }
        let by_the_rules = history.get(tick).filter(|record| record.course != Course::Altered);
        if let (Some(before), Some(record)) = (history.get(start), by_the_rules) {
            if record.course == Course::Own && among == Among::WhoMattered {
                // Nobody need be looked for around it.
                let before = Neighbour { body: before.after, ..history.neighbour(id) };
                let body = self.simulator.part_of_tick_alone(tick, &before, &record.input, into);
                return Some((self.simulator.rules().pose(&body)?, Sampling::Exact));
            }
            let own = self.start.gather(crowd, Gathered::At(start), id)?;
            let body = self.simulator.part_of_tick(tick, &self.start.bodies, own, &record.input, into)?;
            return Some((self.simulator.rules().pose(&body)?, Sampling::Exact));
        }
        let pose = self.between(history, tick, time, &config())?;
        Some((pose, Sampling::Interpolated))
    }

    /// Whether the body with this history is not drawn at `time`.
    pub(crate) fn is_hidden(&self, history: &BodyHistory<G>, time: ServerTime) -> bool {
        let (tick, _) = self.within(time);
        let record = tick.previous().and_then(|start| history.get(start.min(history.newest())));
        record.is_some_and(|record| self.rules().pose(&record.after).is_none())
    }

    /// Goes on with the last input for as long as may be, and then stands.
    fn past_the_newest(
        &mut self,
        crowd: &Crowd<G>,
        id: BodyId,
        history: &BodyHistory<G>,
        time: ServerTime,
    ) -> Option<(G::Pose, Sampling)> {
        // spec: REMOTE-03
        let held = history.get(history.newest()).map(|record| record.held)?;
        let past = time.saturating_since(self.cadence.end_of(history.newest()));
        let span = past.min(self.max_extrapolate);
        let own = self.last.gather(crowd, Gathered::Newest, id)?;
        let next = history.newest().next();
        let body = self.simulator.hold(next, &self.last.bodies, own, held, span)?;
        // At the limit itself it stands already: that is where drawing waits.
        let sampling = if past >= self.max_extrapolate { Sampling::Held } else { Sampling::Extrapolated };
        Some((self.simulator.rules().pose(&body)?, sampling))
    }

    /// Straight from the last state known before `time` to the first one after it, unless they are too far apart.
    fn between(
        &self,
        history: &BodyHistory<G>,
        tick: Tick,
        time: ServerTime,
        config: &CorrectionConfig,
    ) -> Option<G::Pose> {
        let start = tick.previous()?;
        let (to, after) = history.after(start).next()?;
        let (from, before) = history.after(Tick::default()).rev().find(|(known, _)| *known <= start)?;
        let pose = |record: &TickRecord<G>| self.simulator.rules().pose(&record.after);
        let (before, after) = (pose(before)?, pose(after)?);
        let way = after.offset_from(&before);
        if way.distance() > config.snap_distance || way.angle() > config.snap_angle {
            return Some(before);
        }
        let span = |tick: Tick| time.abs_diff(self.cadence.end_of(tick)).as_secs_f64();
        let part = span(from) / (span(from) + span(to));
        Some(before.displaced(&way.scaled(part, part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody};
    use crate::cause::Causes;
    use crate::present::Corrections;

    fn sampler() -> Sampler<Cart> {
        Sampler::new(Arc::new(Cart), Cadence::default(), Duration::from_millis(250))
    }

    fn crowd() -> Crowd<Cart> {
        Crowd::new(Arc::new(Cart), Cadence::default())
    }

    /// Snaps at 4.8 m.
    fn config() -> CorrectionConfig {
        Corrections::new(Arc::new(Cart), Cadence::default(), None).unwrap().of(&CartBody::at(0.0))
    }

    /// A body of which only these ticks are known, and where it was after them.
    fn known(places: &[(u32, f64)]) -> BodyHistory<Cart> {
        let record = |x| TickRecord {
            input: TickInput::steady(0),
            held: 0,
            after: CartBody::at(x),
            course: Course::Altered,
            causes: Causes::NONE,
            emitted: 0,
        };
        let mut history = BodyHistory::new(
            Cadence::default(),
            Tick::new(places[0].0),
            crate::id::Driver::World,
            TickInput::steady(0),
            CartBody::at(places[0].1),
        );
        for (tick, x) in places {
            history.insert(Tick::new(*tick), record(*x));
        }
        history
    }

    fn at(history: &BodyHistory<Cart>, millis: u64) -> Option<(f64, Sampling)> {
        let time = ServerTime::from_micros(millis * 1_000);
        let sampled = sampler().pose(&crowd(), BodyId::new(1), history, time, config);
        sampled.map(|(pose, sampling)| (pose.x, sampling))
    }

    #[test]
    fn a_hole_is_bridged_straight() {
        // Known at 500 ms and at 700 ms.
        let history = known(&[(9, 1.0), (13, 3.0)]);
        assert_eq!(at(&history, 500), Some((1.0, Sampling::Exact)));
        assert_eq!(at(&history, 550), Some((1.5, Sampling::Interpolated)));
        assert_eq!(at(&history, 600), Some((2.0, Sampling::Interpolated)));
        let (x, sampling) = at(&history, 690).unwrap();
        assert!((x - 2.9).abs() < 1e-9 && sampling == Sampling::Interpolated);
        assert_eq!(at(&history, 700), Some((3.0, Sampling::Exact)));
    }

    #[test]
    fn a_jump_has_no_way_between() {
        let history = known(&[(9, 1.0), (10, 5.9)]);
        assert_eq!(at(&history, 549), Some((1.0, Sampling::Interpolated)));
        assert_eq!(at(&history, 550), Some((5.9, Sampling::Exact)));
        let near = known(&[(9, 1.0), (10, 5.7)]);
        assert_eq!(at(&near, 525), Some((3.35, Sampling::Interpolated)));
    }

    #[test]
    fn before_the_first_state_there_is_nobody() {
        let history = known(&[(9, 1.0), (10, 1.5)]);
        assert_eq!(at(&history, 499), None);
        assert_eq!(at(&history, 0), None);
    }
}
