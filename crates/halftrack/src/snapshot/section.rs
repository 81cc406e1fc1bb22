//! What happened to some bodies since a baseline that the receiver has of all of them. The writing side; `decoder` reads.
//!
//! ```text
//! With P places (the bodies that the section is about, in order of player) and T ticks since the baseline:
//!
//! states    count(0)   states that the rules do not give
//!   per state, going up:
//!     at               a point of a line of P * T: place * T + ticks after the baseline, less one
//!     body             how it was after that tick, against how it was in the baseline, or when it joined
//!     same      1      alone: its input at the end of that tick is that at the baseline's end
//!     input            alone: if not
//! changes   count(4)   changes of input
//!   per change, going up:
//!     at               a point of a line of P * T * 256: (place * T + ticks after the baseline, less one) * 256
//!                      + moment of the sub-tick grid; 0 is the tick's start
//!     input            another than before
//! ```
//!
//! `count` and points are those of `gaps`. There are two kinds of section:
//!
//! - *joint*: the places are all bodies that there were in the room from the baseline on, and the reader moves those who
//!   were there in a tick through it together, each among the others as they stood at its start: from the tick after the
//!   one in which a body joined, up to its last. Of other ticks nothing is told. A state is told for every tick in which
//!   the world altered a body; it takes the place of what the rules give. All changes are told.
//! - *alone*: the reader moves each body as if it were alone. A body whose last ticks followed from that has no state;
//!   another has one, that of the last tick which did not follow, and changes are told only from the tick after it on.
//!
//! Everything else follows: a body that goes on as before takes no bits at all.

use derive_where::derive_where;

use crate::game::Game;
use crate::model::{Body, Input};
use crate::snapshot::gaps::{Gaps, write_count};
use crate::snapshot::history::{BodyHistory, Course};
use crate::tick::Tick;
use crate::wire::BitWriter;

/// Of states there are usually none.
pub(crate) const STATES_ORDER: u32 = 0;
/// Changes are some: 5 bits up to 15 of them, 7 up to 47.
pub(crate) const CHANGES_ORDER: u32 = 4;
/// Moments of a tick, its start included.
pub(crate) const MOMENTS: u64 = 256;

/// How the reader moves the bodies of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// Each among all the others.
    Joint,
    /// Each as if it were alone.
    Alone,
}

/// What is to be told, collected body by body. Its memory is used again.
#[derive_where(Clone, Debug)]
pub(crate) struct Section<G: Game> {
    motion: Motion,
    baseline: Tick,
    ticks: u32,
    places: usize,
    states: Vec<State<G>>,
    changes: Vec<(u64, G::Input)>,
}

/// A state that the rules do not give.
#[derive_where(Clone, Copy, Debug)]
struct State<G: Game> {
    at: u64,
    after: G::Body,
    known: G::Body,
    /// If it is not that at the baseline's end.
    input: Option<G::Input>,
}

impl<G: Game> Section<G> {
    /// About nobody.
    pub(crate) fn new() -> Self {
        Self {
            motion: Motion::Alone,
            baseline: Tick::default(),
            ticks: 0,
            places: 0,
            states: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Begins anew: about `places` bodies, in the `ticks` ticks since `baseline`.
    pub(crate) fn begin(&mut self, motion: Motion, baseline: Tick, ticks: u32, places: usize) {
        self.states.clear();
        self.changes.clear();
        (self.motion, self.baseline, self.ticks, self.places) = (motion, baseline, ticks, places);
    }

    /// Collects what is to be told of the body at `place`, which comes after those before it, and which the reader has
    /// as it was at the end of `since`: the baseline, or the tick in which it joined.
    pub(crate) fn add(&mut self, place: usize, since: Tick, history: &BodyHistory<G>) {
        let Some(known) = history.get(since) else { return };
        let mut start = since;
        let mut held = known.input.last();
        match self.motion {
            Motion::Joint => {
                for (tick, record) in history.after(start).filter(|(_, r)| r.course == Course::Altered) {
                    let at = self.line(place, tick);
                    self.states.push(State { at, after: record.after, known: known.after, input: None });
                }
            }
            Motion::Alone => {
                let met = history.after(start).rev().find(|(_, record)| record.course != Course::Own);
                if let Some((tick, record)) = met {
                    let input = Some(record.input.last()).filter(|input| *input != held);
                    let at = self.line(place, tick);
                    self.states.push(State { at, after: record.after, known: known.after, input });
                    (start, held) = (tick, record.input.last());
                }
            }
        }
        self.add_changes(place, history, start, held);
    }

    fn add_changes(&mut self, place: usize, history: &BodyHistory<G>, start: Tick, mut held: G::Input) {
        for (tick, record) in history.after(start) {
            let moments = self.line(place, tick) * MOMENTS;
            if record.input.start() != held {
                self.changes.push((moments, record.input.start()));
            }
            for change in record.input.changes() {
                self.changes.push((moments + u64::from(change.at.index()), change.input));
            }
            held = record.input.last();
        }
    }

    fn line(&self, place: usize, tick: Tick) -> u64 {
        place as u64 * u64::from(self.ticks) + u64::from(tick.since(self.baseline).saturating_sub(1))
    }

    /// Writes it.
    pub(crate) fn write(&self, bits: &mut BitWriter<'_>) {
        let line = self.places as u64 * u64::from(self.ticks);
        let count = length(&self.states);
        write_count(count, STATES_ORDER, bits);
        let mut gaps = Gaps::new(line, count);
        for state in &self.states {
            gaps.write(state.at, bits);
            self.write_state(state, bits);
        }
        let count = length(&self.changes);
        write_count(count, CHANGES_ORDER, bits);
        let mut gaps = Gaps::new(line * MOMENTS, count);
        for (at, input) in &self.changes {
            gaps.write(*at, bits);
            input.write(bits);
        }
    }

    fn write_state(&self, state: &State<G>, bits: &mut BitWriter<'_>) {
        state.after.write(&state.known, bits);
        if self.motion == Motion::Alone {
            bits.write_flag(state.input.is_none());
            if let Some(input) = state.input {
                input.write(bits);
            }
        }
    }

    /// What it costs to write what has been collected.
    pub(crate) fn cost(&self) -> Cost {
        let mut bits = BitWriter::new(&mut []);
        for state in &self.states {
            self.write_state(state, &mut bits);
        }
        for (_, input) in &self.changes {
            input.write(&mut bits);
        }
        let (states, changes) = (length(&self.states), length(&self.changes));
        Cost { bits: bits.len_bits(), states, changes, others: 0 }
    }
}

/// What it costs to tell of bodies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Of everything but the numbers of players and the points of the section on the base.
    pub(crate) bits: usize,
    /// Points of its line of states.
    pub(crate) states: u32,
    /// Points of its line of changes.
    pub(crate) changes: u32,
    /// Bodies that are told by the number of their player.
    pub(crate) others: u32,
}

impl Cost {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            bits: self.bits + other.bits,
            states: self.states + other.states,
            changes: self.changes + other.changes,
            others: self.others + other.others,
        }
    }

    /// In bits, at most and without the numbers of players, if the section is about so many `places` and `ticks`.
    pub(crate) fn max_bits(self, places: usize, ticks: u32) -> usize {
        let line = places as u64 * u64::from(ticks);
        self.bits + Gaps::max_bits(line, self.states) + Gaps::max_bits(line * MOMENTS, self.changes)
    }
}

fn length<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
