//! The last ticks of one body: what it was told, how it ended up, and whether that followed. Bounded.

use std::collections::VecDeque;

use crate::cadence::Cadence;
use crate::game::Game;
use crate::input::TickInput;
use crate::replay::Replay;
use crate::tick::Tick;

/// One tick of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickRecord<G: Game> {
    /// What it was told.
    pub input: TickInput<G::Input>,
    /// How it was afterwards, settled.
    pub after: G::Body,
    /// Whether that is not what the rules alone make of it: something in the world changed it.
    pub interfered: bool,
}

/// The last ticks of a body, without a hole.
#[derive(Clone, Debug)]
pub struct BodyHistory<G: Game> {
    newest: Tick,
    records: VecDeque<TickRecord<G>>,
}

impl<G: Game> BodyHistory<G> {
    /// Ticks kept: 3.2 s at the default cadence, more than any acknowledgement takes.
    pub const TICKS: usize = 64;

    /// A body that is `after` at the end of `tick`, which nobody can have foreseen.
    pub fn new(tick: Tick, input: TickInput<G::Input>, after: G::Body) -> Self {
        let mut records = VecDeque::with_capacity(Self::TICKS);
        records.push_back(TickRecord { input, after, interfered: true });
        Self { newest: tick, records }
    }

    /// The next tick of a body that simply was told `input` and is `after` now. Whether it was interfered with is found
    /// by comparison with what the rules make of it when it is `alone`, never by hand.
    pub fn push(
        &mut self,
        cadence: Cadence,
        alone: &G::Surroundings,
        input: TickInput<G::Input>,
        after: G::Body,
    ) -> bool {
        let by_rules = self.records.back().map(|record| {
            let mut replay = Replay::<G>::new(cadence, alone, record.after);
            replay.tick(&input);
            *replay.body()
        });
        let interfered = by_rules != Some(after);
        self.push_record(TickRecord { input, after, interfered });
        interfered
    }

    /// The next tick, as it was told.
    pub(crate) fn push_record(&mut self, record: TickRecord<G>) {
        if self.records.len() >= Self::TICKS {
            self.records.pop_front();
        }
        self.records.push_back(record);
        self.newest = self.newest.next();
    }

    /// The newest tick.
    pub fn newest(&self) -> Tick {
        self.newest
    }

    /// The record of `tick`, if it is kept.
    pub fn get(&self, tick: Tick) -> Option<&TickRecord<G>> {
        let back = (tick <= self.newest).then(|| self.newest.since(tick) as usize)?;
        self.records.len().checked_sub(back + 1).and_then(|index| self.records.get(index))
    }

    /// The records after `tick`, oldest first; `None` when `tick` itself is not kept.
    pub fn after(&self, tick: Tick) -> Option<impl DoubleEndedIterator<Item = (Tick, &TickRecord<G>)>> {
        self.get(tick)?;
        let count = self.newest.since(tick) as usize;
        let first = self.records.len() - count;
        // Ticks are counted from the front: their number is that of the record.
        Some(self.records.iter().enumerate().skip(first).map(move |(index, record)| {
            let ahead = u32::try_from(index - first).unwrap_or(u32::MAX).saturating_add(1);
            (Tick::new(tick.number().saturating_add(ahead)), record)
        }))
    }
}
