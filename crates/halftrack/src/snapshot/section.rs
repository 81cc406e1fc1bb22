//! A section: the changes of some bodies since a baseline that the receiver has. The writing side; `decoder` reads.
//!
//! ```text
//! With P places (the bodies that the section is about, in order of their ids) and T ticks since the baseline:
//!
//! states    count(0)   states that the rules do not give
//!   per state, going up:
//!     at               a point of a line of P * T: place * T + ticks after the baseline, less one
//!     body             the state after that tick, against the state at the baseline, or at the spawn
//!     same      1      alone: its input after that tick is that after the baseline
//!     input            alone: if not
//!     same      1      alone: it has emitted as many bodies as at the baseline
//!     emitted   count(0)  alone: if not
//! driven    count(4)   changes of input by the world; left out if the world drives none of the places
//!   per change, going up:
//!     at               a point of a line of W * T, where W counts the places that the world drives: the input holds
//!                      from the end of that tick on
//!     input            another than before, written after that
//! changes   count(4)   changes of input by players
//!   per change, going up:
//!     at               a point of a line of Q * T * 256, where Q counts the places that players drive:
//!                      (place among these * T + ticks after the baseline, less one) * 256 + moment of the sub-tick
//!                      grid; 0 is the tick's start
//!     input            another than before, written after that
//! ```
//!
//! `count` and points are those of `gaps`. An input that is written after another takes bits for a counter of presses only if
//! that is another one. There are two kinds of section:
//!
//! - *joint*: the places are all bodies that existed since the baseline. The reader moves them through each tick together,
//!   each among the others as they stood at its start: from the tick after a body's spawn up to its last one. A tick in
//!   which the world altered a body has a state, which replaces the outcome of the rules. All changes are sent.
//! - *alone*: the reader moves each body without the others. A body that did not follow from that has one state, of the
//!   last tick that did not follow, and only the changes after it.
//!
//! In a joint section, a body that another one emits is born by the rules at both ends, and a body that the rules remove is
//! gone: neither takes a bit.
//!
//! A body that goes on as before takes no bits, and one that nothing drives is on no line of changes.

use derive_where::derive_where;

use crate::game::Game;
use crate::id::Driver;
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

/// Places, counted by the line that their changes of input lie on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lines {
    pub(crate) places: u64,
    pub(crate) players: u64,
    pub(crate) world: u64,
}

impl Lines {
    /// Counts one more place.
    #[inline]
    pub(crate) fn add(&mut self, driver: Driver) {
        self.places += 1;
        match driver {
            Driver::Player(_) => self.players += 1,
            Driver::World => self.world += 1,
            Driver::Nothing => {}
        }
    }
}

/// A section that is collected body by body. Its memory is used again.
#[derive_where(Clone, Debug)]
pub(crate) struct Section<G: Game> {
    motion: Motion,
    baseline: Tick,
    ticks: u32,
    lines: Lines,
    states: Vec<State<G>>,
    driven: Vec<Change<G::Input>>,
    changes: Vec<Change<G::Input>>,
}

/// A change of input: its point, and the input before and after it.
type Change<I> = (u64, I, I);

/// A state that the rules do not give.
#[derive_where(Clone, Copy, Debug)]
struct State<G: Game> {
    at: u64,
    after: G::Body,
    known: G::Body,
    /// If it is not that at the baseline's end.
    input: Option<G::Input>,
    /// Bodies that it has emitted, if these are not those at the baseline's end.
    emitted: Option<u32>,
}

impl<G: Game> Section<G> {
    /// About nobody.
    pub(crate) fn new() -> Self {
        Self {
            motion: Motion::Alone,
            baseline: Tick::default(),
            ticks: 0,
            lines: Lines::default(),
            states: Vec::new(),
            driven: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Begins anew: about the `ticks` ticks since `baseline`.
    pub(crate) fn begin(&mut self, motion: Motion, baseline: Tick, ticks: u32) {
        self.states.clear();
        self.driven.clear();
        self.changes.clear();
        (self.motion, self.baseline, self.ticks, self.lines) = (motion, baseline, ticks, Lines::default());
    }

    /// The next place is a body that goes on as before, or that is left out.
    #[inline]
    pub(crate) fn skip(&mut self, driver: Driver) {
        self.lines.add(driver);
    }

    /// The next place is the body of `history`, which the reader has as it was at the end of `since`: the baseline, or the
    /// tick of its spawn.
    pub(crate) fn add(&mut self, since: Tick, history: &BodyHistory<G>) {
        let lines = self.lines;
        self.lines.add(history.driver());
        let Some(known) = history.get(since) else { return };
        let mut start = since;
        let mut held = known.held;
        match self.motion {
            Motion::Joint => {
                for (tick, record) in history.after(start).filter(|(_, r)| r.course == Course::Altered) {
                    let at = self.point(lines.places, tick);
                    let (input, emitted) = (None, None);
                    self.states.push(State { at, after: record.after, known: known.after, input, emitted });
                }
            }
            Motion::Alone => {
                let met = history.after(start).rev().find(|(_, record)| record.course != Course::Own);
                if let Some((tick, record)) = met {
                    let input = Some(record.held).filter(|input| *input != held);
                    let emitted = Some(record.emitted).filter(|emitted| *emitted != known.emitted);
                    let at = self.point(lines.places, tick);
                    self.states.push(State { at, after: record.after, known: known.after, input, emitted });
                    (start, held) = (tick, record.held);
                }
            }
        }
        match history.driver() {
            Driver::Player(_) => self.add_changes(lines.players, history, start, held),
            Driver::World => self.add_driven(lines.world, history, start, held),
            Driver::Nothing => {}
        }
    }

    fn add_changes(&mut self, place: u64, history: &BodyHistory<G>, start: Tick, mut held: G::Input) {
        for (tick, record) in history.after(start) {
            let moments = self.point(place, tick) * MOMENTS;
            if record.input.start() != held {
                self.changes.push((moments, held, record.input.start()));
            }
            held = record.input.start();
            for change in record.input.changes() {
                self.changes.push((moments + u64::from(change.at.index()), held, change.input));
                held = change.input;
            }
            held = record.held;
        }
    }

    fn add_driven(&mut self, place: u64, history: &BodyHistory<G>, start: Tick, mut held: G::Input) {
        for (tick, record) in history.after(start) {
            if record.held != held {
                self.driven.push((self.point(place, tick), held, record.held));
                held = record.held;
            }
        }
    }

    /// A point of a line of ticks.
    fn point(&self, place: u64, tick: Tick) -> u64 {
        place * u64::from(self.ticks) + u64::from(tick.since(self.baseline).saturating_sub(1))
    }

    /// Writes it.
    pub(crate) fn write(&self, bits: &mut BitWriter<'_>) {
        let (lines, ticks) = (self.lines, u64::from(self.ticks));
        let count = length(&self.states);
        write_count(count, STATES_ORDER, bits);
        let mut gaps = Gaps::new(lines.places * ticks, count);
        for state in &self.states {
            gaps.write(state.at, bits);
            self.write_state(state, bits);
        }
        if lines.world > 0 {
            write_changes(&self.driven, lines.world * ticks, bits);
        }
        write_changes(&self.changes, lines.players * ticks * MOMENTS, bits);
    }

    fn write_state(&self, state: &State<G>, bits: &mut BitWriter<'_>) {
        state.after.write(&state.known, bits);
        if self.motion == Motion::Alone {
            bits.write_flag(state.input.is_none());
            if let Some(input) = state.input {
                input.write(bits);
            }
            bits.write_flag(state.emitted.is_none());
            if let Some(emitted) = state.emitted {
                write_count(emitted, 0, bits);
            }
        }
    }

    /// What it costs to write what has been collected.
    pub(crate) fn cost(&self) -> Cost {
        let mut bits = BitWriter::new(&mut []);
        for state in &self.states {
            self.write_state(state, &mut bits);
        }
        for (_, before, input) in self.changes.iter().chain(&self.driven) {
            input.write_after(before, &mut bits);
        }
        let (states, driven) = (length(&self.states), length(&self.driven));
        Cost { bits: bits.len_bits(), states, driven, changes: length(&self.changes), others: 0 }
    }
}

fn write_changes<I: Input>(changes: &[Change<I>], line: u64, bits: &mut BitWriter<'_>) {
    let count = length(changes);
    write_count(count, CHANGES_ORDER, bits);
    let mut gaps = Gaps::new(line, count);
    for (at, before, input) in changes {
        gaps.write(*at, bits);
        input.write_after(before, bits);
    }
}

/// The cost of bodies in a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Bits of everything but the points of the section on the base.
    pub(crate) bits: usize,
    /// Points of its line of states.
    pub(crate) states: u32,
    /// Points of its lines of changes.
    pub(crate) driven: u32,
    pub(crate) changes: u32,
    /// Bodies that are not on the base.
    pub(crate) others: u32,
}

impl Cost {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            bits: self.bits + other.bits,
            states: self.states + other.states,
            driven: self.driven + other.driven,
            changes: self.changes + other.changes,
            others: self.others + other.others,
        }
    }

    /// Bits at most, if the section is about so many `places` and `ticks`.
    pub(crate) fn max_bits(self, places: usize, ticks: u32) -> usize {
        let line = places as u64 * u64::from(ticks);
        self.bits
            + Gaps::max_bits(line, self.states)
            + Gaps::max_bits(line, self.driven)
            + Gaps::max_bits(line * MOMENTS, self.changes)
    }
}

fn length<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
