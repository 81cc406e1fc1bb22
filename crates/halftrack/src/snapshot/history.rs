//! The last ticks of one body: what it was told, how it ended up, and whether that followed. Bounded.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::exact::{Exact, Loader, Saver};
use crate::game::Game;
use crate::input::TickInput;
use crate::snapshot::BodyCode;
use crate::tick::Tick;
use crate::wire::{WireError, read_tick, write_tick};

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickRecord<G: Game> {
    /// What it was told.
    pub input: TickInput<G::Input>,
    /// How it was afterwards, settled.
    pub after: G::Body,
    /// Whether that follows from the rules.
    pub course: Course,
    /// What the world did to it.
    pub causes: Causes,
}

/// Whether the end of a tick follows from its beginning: found by comparison of every bit, never flagged by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It is what the rules make of the body alone.
    Own,
    /// It is what the rules make of the body among the others, as they stood at the start of the tick.
    Met,
    /// It is neither: the world changed it, or it was not there before.
    Altered,
}

/// The last ticks of a body. A server's has no holes; a client's has where it was not told.
#[derive(Clone, Debug)]
pub struct BodyHistory<G: Game> {
    newest: Tick,
    /// The body at the end of that tick, where it is found without looking for the record: most want this one.
    latest: G::Body,
    /// By tick number, round and round: a power of two of them.
    records: Vec<Option<Numbered<G>>>,
}

#[derive(Clone, Copy, Debug)]
struct Numbered<G: Game> {
    tick: Tick,
    record: TickRecord<G>,
}

impl<G: Game> BodyHistory<G> {
    /// A body that is `after` at the end of `tick`, which nobody can have foreseen.
    pub fn new(cadence: Cadence, tick: Tick, input: TickInput<G::Input>, after: G::Body) -> Self {
        let records = vec![None; history_ticks(cadence) as usize];
        let mut history = Self { newest: tick, latest: after, records };
        history.insert(tick, TickRecord { input, after, course: Course::Altered, causes: Causes::NONE });
        history
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

/// What is written of a record builds on the one before it, as it does on the wire: bodies are settled, so that is exact.
impl<G: BodyCode> BodyHistory<G> {
    pub(crate) fn save(&self, to: &mut Saver) {
        self.newest.save(to);
        to.number(self.records.iter().flatten().count() as u64);
        let mut before: Option<&Numbered<G>> = None;
        // Round from the oldest, if nothing is missing.
        let (newer, older) = self.records.split_at_checked(self.slot(self.newest.next())).unwrap_or_default();
        for record in older.iter().chain(newer).flatten() {
            to.bits(|bits| {
                bits.write_flag(before.map(|before| before.tick.next()) == Some(record.tick));
                if before.map(|before| before.tick.next()) != Some(record.tick) {
                    bits.write(record.tick.number(), 32);
                }
                let TickRecord { input, after, course, causes } = &record.record;
                write_tick(bits, before.map(|before| before.record.input.last()), input);
                bits.write(*course as u32, 2);
                bits.write_flag(!causes.is_empty());
                if !causes.is_empty() {
                    bits.write(u32::from(causes.bits()), 16);
                }
                let known = before.map_or_else(G::blank, |before| before.record.after);
                bits.write_flag(*after == known);
                if *after != known {
                    G::write_body(after, &known, bits);
                }
            });
            before = Some(record);
        }
    }

    pub(crate) fn load(cadence: Cadence, from: &mut Loader<'_>) -> Result<Self, WireError> {
        const INVALID: WireError = WireError::Invalid { field: "history" };
        let newest = Tick::load(from)?;
        let records = vec![None; history_ticks(cadence) as usize];
        let mut history = Self { newest, latest: G::blank(), records };
        let mut before: Option<Numbered<G>> = None;
        for _ in 0..from.count()? {
            let loaded = from.bits(|bits| {
                let follows = bits.read_flag()?;
                let next = before.filter(|_| follows).map(|before| before.tick.next());
                let tick = match next {
                    Some(next) => next,
                    None => Tick::new(bits.read(32)?),
                };
                let input = read_tick(bits, before.map(|before| before.record.input.last()))?;
                let course = match bits.read(2)? {
                    0 => Course::Own,
                    1 => Course::Met,
                    2 => Course::Altered,
                    _ => return Err(INVALID),
                };
                let causes = if bits.read_flag()? { bits.read(16)? } else { 0 };
                let causes = u16::try_from(causes).ok().and_then(Causes::from_bits).ok_or(INVALID)?;
                let known = before.map_or_else(G::blank, |before| before.record.after);
                let after = if bits.read_flag()? { known } else { G::read_body(&known, bits)? };
                Ok(Numbered { tick, record: TickRecord { input, after, course, causes } })
            })?;
            let slot = history.slot(loaded.tick);
            match history.records.get_mut(slot) {
                Some(slot) if loaded.tick <= newest => *slot = Some(loaded),
                _ => return Err(INVALID),
            }
            before = Some(loaded);
        }
        history.latest = history.get(newest).ok_or(INVALID)?.after;
        Ok(history)
    }
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
            TickInput::steady(0),
            CartBody::at(0.0),
        );
        for number in 101..=170 {
            let after = CartBody::at(f64::from(number));
            history.push(TickRecord {
                input: TickInput::steady(1),
                after,
                course: Course::Own,
                causes: Causes::NONE,
            });
        }
        let oldest = Tick::new(170 - 63);
        assert_eq!(history.get(oldest).map(|record| record.after), Some(CartBody::at(107.0)));
        assert!(history.get(Tick::new(106)).is_none() && history.get(Tick::new(171)).is_none());
        assert_eq!(history.after(Tick::new(0)).count(), 64);
        assert!(history.after(Tick::new(168)).map(|(tick, _)| tick.number()).eq([169, 170]));
    }
}
