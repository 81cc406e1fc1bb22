//! [`BodyHistory`]: the last ticks of one body, with inputs, states and causes. Bounded.

use core::time::Duration;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::cause::{Cause, Causes};
use crate::game::{Game, Neighbour};
use crate::id::{BodyId, Driver};
use crate::input::TickInput;
use crate::model::Body;
use crate::saved::{Unrestorable, ensure};
use crate::simulate::{Birth, Moved, count_emitted};
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter};

/// How far back a body is kept at least: longer than any acknowledgement takes that a game can be played with.
const HISTORY_SPAN: Duration = Duration::from_millis(1_600);
/// Also at a long cadence: the ticks are few then, and cost little.
const MIN_HISTORY_TICKS: u32 = 64;

/// Ticks kept of a body: the least power of two that covers 1.6 s, and at least 64.
///
/// ```
/// use core::time::Duration;
/// use halftrack::Cadence;
/// use halftrack::snapshot::history_ticks;
///
/// assert_eq!(history_ticks(Cadence::default()), 64);
/// assert_eq!(history_ticks(Cadence::new(Duration::from_millis(5))?), 512);
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
pub fn history_ticks(cadence: Cadence) -> u32 {
    let whole = cadence.ticks_in(HISTORY_SPAN);
    let covering = if cadence.span_of(whole) < HISTORY_SPAN { whole + 1 } else { whole };
    covering.next_power_of_two().max(MIN_HISTORY_TICKS)
}

/// One tick of a body.
#[derive_where(Clone, Copy, Debug, PartialEq)]
pub struct TickRecord<G: Game> {
    /// Its input in the tick.
    pub input: TickInput<G::Input>,
    /// Its input after the tick: the last of the tick, or the one by which the world drives it from the next tick on.
    pub held: G::Input,
    /// How it was afterwards, settled.
    pub after: G::Body,
    /// Whether that follows from the rules.
    pub course: Course,
    /// What the world did to it.
    pub causes: Causes,
    /// Bodies that it has emitted up to the end of the tick, in its whole life.
    pub emitted: u32,
}

impl<G: Game> TickRecord<G> {
    /// The record of a tick that ended in a state that a snapshot has: the way there is not known.
    pub(crate) fn sent(input: G::Input, after: G::Body, emitted: u32) -> Self {
        let steady = TickInput::steady(input);
        Self { input: steady, held: input, after, course: Course::Altered, causes: Causes::NONE, emitted }
    }

    /// The record of a tick that the simulator has moved a body through. It had emitted so many bodies before.
    pub(crate) fn moved(input: TickInput<G::Input>, moved: &Moved<G>, emitted: u32) -> Self {
        let course = if moved.alone { Course::Own } else { Course::Met };
        let touched = (!moved.touched.is_empty()).then_some(Cause::Collision);
        let causes = touched.into_iter().collect();
        let emitted = count_emitted(emitted, moved.emitted);
        Self { input, held: input.last(), after: moved.after, course, causes, emitted }
    }
}

/// Whether the end of a tick follows from its beginning: found by comparison of every bit, never flagged by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Course {
    /// It is what the rules make of the body alone.
    Own,
    /// It is what the rules make of the body among the others, as they stood at the start of the tick.
    Met,
    /// It is neither: the world changed it, or it was not there before.
    Altered,
}

/// The last ticks of a body. A server's history has no holes. A client's has one for each tick that no snapshot covers.
#[derive_where(Clone, Debug)]
pub struct BodyHistory<G: Game> {
    driver: Driver,
    /// The body that emitted it.
    parent: Option<BodyId>,
    birth: Option<Born<G>>,
    /// The moment of the newest tick at which a rule removed it, microseconds into the tick.
    ended: Option<u32>,
    newest: Tick,
    /// The body at the end of that tick, where it is found without looking for the record: most want this one.
    latest: G::Body,
    /// By tick number, round and round: a power of two of them.
    records: Vec<Option<Numbered<G>>>,
}

/// The birth of a body that another one emitted, where it is known.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Born<G: Game> {
    pub(crate) tick: Tick,
    /// Microseconds into that tick, and the body at that moment.
    pub(crate) at: u32,
    pub(crate) body: G::Body,
}

#[derive_where(Clone, Copy, Debug)]
struct Numbered<G: Game> {
    tick: Tick,
    record: TickRecord<G>,
}

impl<G: Game> BodyHistory<G> {
    /// A body that is `after` at the end of `tick`. The way there is not known.
    pub fn new(
        cadence: Cadence,
        tick: Tick,
        driver: Driver,
        input: TickInput<G::Input>,
        after: G::Body,
    ) -> Self {
        let record = TickRecord { input, ..TickRecord::sent(input.last(), after, 0) };
        Self::begin(cadence, tick, driver, record)
    }

    /// A body whose history begins with the record of `tick`.
    pub(crate) fn begin(cadence: Cadence, tick: Tick, driver: Driver, record: TickRecord<G>) -> Self {
        let records = vec![None; history_ticks(cadence) as usize];
        let (parent, birth, ended) = (None, None, None);
        let mut history = Self { driver, parent, birth, ended, newest: tick, latest: record.after, records };
        history.insert(tick, record);
        history
    }

    /// The same, of a body that `parent` emitted.
    #[must_use]
    pub(crate) fn emitted_by(self, parent: Option<BodyId>) -> Self {
        Self { parent, ..self }
    }

    /// The body was born in `tick`, as an emission.
    pub(crate) fn set_birth(&mut self, tick: Tick, birth: &Birth<G>) {
        self.birth = Some(Born { tick, at: birth.at, body: birth.body });
    }

    /// A rule removed the body so many microseconds into the newest tick.
    pub(crate) fn set_ended(&mut self, at: u32) {
        self.ended = Some(at);
    }

    /// The source of its input.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// The body that emitted it.
    pub fn parent(&self) -> Option<BodyId> {
        self.parent
    }

    /// Its birth, if it was emitted and that is known.
    pub(crate) fn birth(&self) -> Option<&Born<G>> {
        self.birth.as_ref()
    }

    /// The tick of its birth, and how far into that tick it was born, if it was emitted and that is known.
    pub fn born(&self) -> Option<(Tick, Duration)> {
        self.birth.map(|born| (born.tick, Duration::from_micros(u64::from(born.at))))
    }

    /// How far into the newest tick a rule removed it.
    pub fn ended(&self) -> Option<Duration> {
        self.ended.map(|at| Duration::from_micros(u64::from(at)))
    }

    /// The next tick.
    pub(crate) fn push(&mut self, record: TickRecord<G>) {
        self.insert(self.newest.next(), record);
    }

    /// Makes something else of the record of a tick that is kept.
    pub(crate) fn alter(&mut self, tick: Tick, alter: impl FnOnce(&mut TickRecord<G>)) {
        let slot = self.slot(tick);
        let slot = self.records.get_mut(slot).and_then(Option::as_mut).filter(|slot| slot.tick == tick);
        let Some(slot) = slot else { return };
        alter(&mut slot.record);
        if tick == self.newest {
            self.latest = slot.record.after;
        }
    }

    /// What is known of `tick`. One that is too old to be kept is not.
    pub(crate) fn insert(&mut self, tick: Tick, record: TickRecord<G>) {
        if tick >= self.newest {
            (self.newest, self.latest) = (tick, record.after);
        }
        let slot = self.slot(tick);
        if (self.newest.since(tick) as usize) < self.records.len()
            && let Some(slot) = self.records.get_mut(slot)
        {
            *slot = Some(Numbered { tick, record });
        }
    }

    /// Where `tick` is kept, if it is.
    #[inline]
    fn slot(&self, tick: Tick) -> usize {
        tick.number() as usize & self.records.len().wrapping_sub(1)
    }

    /// The newest tick.
    pub fn newest(&self) -> Tick {
        self.newest
    }

    /// The body at the end of that tick.
    pub fn latest(&self) -> &G::Body {
        &self.latest
    }

    /// The body at the end of the newest tick as others see it in the next one.
    pub(crate) fn neighbour(&self, id: BodyId) -> Neighbour<G> {
        Neighbour { id, driver: self.driver, parent: self.parent, body: self.latest }
    }

    /// The record of the newest tick.
    pub(crate) fn newest_record(&self) -> Option<&TickRecord<G>> {
        self.get(self.newest)
    }

    /// The record of `tick`, if it is kept.
    pub fn get(&self, tick: Tick) -> Option<&TickRecord<G>> {
        let slot = self.records.get(self.slot(tick))?.as_ref()?;
        (slot.tick == tick).then_some(&slot.record)
    }

    /// The records after `tick` up to the newest, oldest first; none for ticks that are not kept.
    pub fn after(&self, tick: Tick) -> impl DoubleEndedIterator<Item = (Tick, &TickRecord<G>)> {
        let kept = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let from = tick.number().max(self.newest.number().saturating_sub(kept));
        (from..self.newest.number()).filter_map(|number| {
            let tick = Tick::new(number).next();
            self.get(tick).map(|record| (tick, record))
        })
    }
}

/// A [`BodyHistory`] as serde sees it: its records as bits, each against the record before, and few bytes.
pub(crate) type SavedHistory<G> =
    ((Driver, Option<BodyId>, SavedBirth<G>, Option<u32>), Tick, Vec<SavedRecord<G>>);

/// The birth of an emitted body.
pub(crate) type SavedBirth<G> = Option<(Tick, u32, <G as Game>::Body)>;

/// One record: its tick, its input unless the one before it holds, the input after it unless it is the tick's last, its
/// course, causes and emissions, and the body if it is another than before, in the bits of the wire.
pub(crate) type SavedRecord<G> = (
    Tick,
    (Option<TickInput<<G as Game>::Input>>, Option<<G as Game>::Input>),
    (Course, Causes, u32),
    Option<Vec<u8>>,
);

impl<G: Game> BodyHistory<G> {
    pub(crate) fn saved(&self) -> SavedHistory<G> {
        let (newer, older) = self.records.split_at_checked(self.slot(self.newest.next())).unwrap_or_default();
        let mut before: Option<&TickRecord<G>> = None;
        let records = older.iter().chain(newer).flatten().map(|Numbered { tick, record }| {
            let known = before.map_or_else(G::Body::blank, |before| before.after);
            let held = before.map(|before| TickInput::steady(before.held));
            before = Some(record);
            let input = Some(record.input).filter(|input| Some(*input) != held);
            let after = (record.after != known).then(|| body_bits(&record.after, &known));
            let next = Some(record.held).filter(|held| *held != record.input.last());
            (*tick, (input, next), (record.course, record.causes, record.emitted), after)
        });
        let birth = self.birth.map(|born| (born.tick, born.at, born.body));
        ((self.driver, self.parent, birth, self.ended), self.newest, records.collect())
    }

    pub(crate) fn restored(cadence: Cadence, saved: SavedHistory<G>) -> Result<Self, Unrestorable> {
        const INVALID: Unrestorable = Unrestorable { part: "history of a body" };
        let ((driver, parent, birth, ended), newest, saved) = saved;
        let records = vec![None; history_ticks(cadence) as usize];
        let within = |at: u32| at <= cadence.micros();
        let sound = birth.is_none_or(|(tick, at, _)| tick <= newest && within(at));
        ensure(sound && ended.is_none_or(within), INVALID.part)?;
        let birth = birth.map(|(tick, at, body)| Born { tick, at, body });
        let mut history = Self { driver, parent, birth, ended, newest, latest: G::Body::blank(), records };
        let mut before: Option<TickRecord<G>> = None;
        for (tick, (input, next), (course, causes, emitted), after) in saved {
            let held = before.map(|before| TickInput::steady(before.held));
            let known = before.map_or_else(G::Body::blank, |before| before.after);
            let input = input.or(held).ok_or(INVALID)?;
            let after = match after {
                Some(bits) => G::Body::read(&known, &mut BitReader::new(&bits)).map_err(|_| INVALID)?,
                None => known,
            };
            let held = next.unwrap_or(input.last());
            let record = TickRecord { input, held, after, course, causes, emitted };
            let slot = history.slot(tick);
            match history.records.get_mut(slot) {
                Some(slot) if tick <= newest => *slot = Some(Numbered { tick, record }),
                _ => return Err(INVALID),
            }
            before = Some(record);
        }
        history.latest = history.get(newest).ok_or(INVALID)?.after;
        Ok(history)
    }
}

/// A settled body in the bits of the wire.
fn body_bits<B: Body>(body: &B, baseline: &B) -> Vec<u8> {
    let mut buffer = vec![0; B::MAX_BITS.div_ceil(8)];
    let mut bits = BitWriter::new(&mut buffer);
    body.write(baseline, &mut bits);
    let length = bits.finish().unwrap_or(0);
    buffer.truncate(length);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody};

    #[test]
    fn the_history_covers_its_span_at_every_cadence_and_no_more_than_it_must() {
        for micros in (5_000..=200_000).step_by(41) {
            let cadence = Cadence::new(Duration::from_micros(micros)).unwrap();
            let ticks = history_ticks(cadence);
            assert!(ticks.is_power_of_two() && cadence.span_of(ticks) >= HISTORY_SPAN);
            assert!(ticks == MIN_HISTORY_TICKS || cadence.span_of(ticks / 2) < HISTORY_SPAN);
        }
    }

    #[test]
    fn the_last_ticks_are_kept_and_none_before_them() {
        let mut history = BodyHistory::<Cart>::new(
            Cadence::default(),
            Tick::new(100),
            Driver::World,
            TickInput::steady(0),
            CartBody::at(0.0),
        );
        for number in 101..=170 {
            let after = CartBody::at(f64::from(number));
            history.push(TickRecord {
                input: TickInput::steady(1),
                held: 1,
                after,
                course: Course::Own,
                causes: Causes::NONE,
                emitted: 0,
            });
        }
        let oldest = Tick::new(170 - 63);
        assert_eq!(history.get(oldest).map(|record| record.after), Some(CartBody::at(107.0)));
        assert!(history.get(Tick::new(106)).is_none() && history.get(Tick::new(171)).is_none());
        assert_eq!(history.after(Tick::new(0)).count(), 64);
        assert!(history.after(Tick::new(168)).map(|(tick, _)| tick.number()).eq([169, 170]));
    }
}
