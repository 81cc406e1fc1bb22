//! The last ticks of one body: what it was told, how it ended up, and whether that followed. Bounded.

use crate::cause::Causes;
use crate::game::Game;
use crate::input::TickInput;
use crate::tick::Tick;

/// Ticks kept of a body: 3.2 s at the default cadence, more than any acknowledgement takes.
pub const HISTORY_TICKS: u32 = 64;

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
    /// By tick number, round and round.
    records: Vec<Option<Numbered<G>>>,
}

#[derive(Clone, Copy, Debug)]
struct Numbered<G: Game> {
    tick: Tick,
    record: TickRecord<G>,
}

impl<G: Game> BodyHistory<G> {
    /// A body that is `after` at the end of `tick`, which nobody can have foreseen.
    pub fn new(tick: Tick, input: TickInput<G::Input>, after: G::Body) -> Self {
        let records = vec![None; HISTORY_TICKS as usize];
        let mut history = Self { newest: tick, records };
        history.insert(tick, TickRecord { input, after, course: Course::Altered, causes: Causes::NONE });
        history
    }

    /// The next tick.
    pub(crate) fn push(&mut self, record: TickRecord<G>) {
        self.insert(self.newest.next(), record);
    }

    /// The record of `tick`, to be changed.
    pub(crate) fn get_mut(&mut self, tick: Tick) -> Option<&mut TickRecord<G>> {
        let slot = self.records.get_mut((tick.number() % HISTORY_TICKS) as usize)?.as_mut()?;
        (slot.tick == tick).then_some(&mut slot.record)
    }

    /// What is known of `tick`. One that is too old to be kept is not.
    pub(crate) fn insert(&mut self, tick: Tick, record: TickRecord<G>) {
        self.newest = self.newest.max(tick);
        if self.newest.since(tick) < HISTORY_TICKS
            && let Some(slot) = self.records.get_mut((tick.number() % HISTORY_TICKS) as usize)
        {
            *slot = Some(Numbered { tick, record });
        }
    }

    /// The newest tick.
    pub fn newest(&self) -> Tick {
        self.newest
    }

    /// The record of `tick`, if it is kept.
    pub fn get(&self, tick: Tick) -> Option<&TickRecord<G>> {
        let slot = self.records.get((tick.number() % HISTORY_TICKS) as usize)?.as_ref()?;
        (slot.tick == tick).then_some(&slot.record)
    }

    /// The records after `tick` up to the newest, oldest first; none for ticks that are not kept.
    pub fn after(&self, tick: Tick) -> impl DoubleEndedIterator<Item = (Tick, &TickRecord<G>)> {
        let from = tick.number().max(self.newest.number().saturating_sub(HISTORY_TICKS));
        (from..self.newest.number()).filter_map(|number| {
            let tick = Tick::new(number).next();
            self.get(tick).map(|record| (tick, record))
        })
    }
}
