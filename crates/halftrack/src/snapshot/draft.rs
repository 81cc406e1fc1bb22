//! What a snapshot makes of bodies, before it is known whether it is true. Reads what `section` writes.

use core::ops::Range;

use crate::cadence::SubTick;
use crate::cause::Causes;
use crate::id::PlayerId;
use crate::input::{MAX_CHANGES, TickInput};
use crate::snapshot::body::BodyCode;
use crate::snapshot::gaps::{Gaps, read_count};
use crate::snapshot::history::{Course, TickRecord};
use crate::snapshot::section::{CHANGES_ORDER, MOMENTS, Motion, STATES_ORDER};
use crate::snapshot::together::Together;
use crate::snapshot::turnover::read_full;
use crate::tick::Tick;
use crate::wire::{BitReader, Coded, WireError};

/// Bodies on their way through the ticks of a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Draft<G: BodyCode> {
    bodies: Vec<Drafted>,
    records: Vec<TickRecord<G>>,
}

/// The ticks of a body that a snapshot tells of, its last one included.
#[derive(Clone, Debug)]
struct Drafted {
    player: PlayerId,
    first: Tick,
    records: Range<usize>,
    /// It is in the snapshot: it has not left.
    there: bool,
}

/// What a section is about, as far as the reader knows it.
#[derive(Debug)]
pub(crate) struct About<'a, G: BodyCode> {
    pub(crate) motion: Motion,
    pub(crate) baseline: Tick,
    /// Ticks since the baseline; at least one.
    pub(crate) ticks: u32,
    /// So many of them are known already of every body: less than all, and none unless the motion is joint.
    pub(crate) known_ticks: u32,
    /// In order of player.
    pub(crate) places: &'a [Place<'a, G>],
}

/// A body that a section is about.
#[derive(Debug)]
pub(crate) struct Place<'a, G: BodyCode> {
    pub(crate) player: PlayerId,
    /// Of the baseline, or of the tick in which it joined.
    pub(crate) known: &'a TickRecord<G>,
    /// After the ticks that are known already.
    pub(crate) newest: &'a G::Body,
    /// Nothing is told of it.
    pub(crate) left_out: bool,
    /// The ticks since the baseline that it was there in, counted from zero. Unless the motion is joint, all.
    pub(crate) present: Range<u32>,
    pub(crate) came: Came,
    pub(crate) there: bool,
}

/// Since when a body has been known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// It is in the baseline.
    Before,
    /// It is told of for the first time: how it joined is news.
    Since,
}

/// A state that the rules do not give.
#[derive(Clone, Copy, Debug)]
struct State<G: BodyCode> {
    /// Place and tick in one.
    at: u64,
    after: G::Body,
    input: G::Input,
}

impl<G: BodyCode> State<G> {
    fn record(&self) -> TickRecord<G> {
        let input = TickInput::steady(self.input);
        TickRecord { input, after: self.after, course: Course::Altered, causes: Causes::NONE }
    }
}

impl<G: BodyCode> About<'_, G> {
    /// Points of the line of states.
    fn line(&self) -> u64 {
        self.places.len() as u64 * u64::from(self.ticks)
    }

    fn read_states(&self, bits: &mut BitReader<'_>) -> Result<Vec<State<G>>, WireError> {
        let invalid = WireError::Invalid { field: "state" };
        let count = read_count(STATES_ORDER, bits)?;
        let mut gaps = Gaps::new(self.line(), count);
        let mut states: Vec<State<G>> = Vec::new();
        for _ in 0..count {
            let at = gaps.read(bits)?;
            let place = usize::try_from(at / u64::from(self.ticks)).map_err(|_| invalid)?;
            let tick = u32::try_from(at % u64::from(self.ticks)).map_err(|_| invalid)?;
            let told = |told: &&Place<'_, G>| !told.left_out && told.present.contains(&tick);
            let known = self.places.get(place).filter(told).ok_or(invalid)?.known;
            let after = G::read_body(&known.after, bits)?;
            let mut input = known.input.last();
            if self.motion == Motion::Alone {
                if !bits.read_flag()? {
                    input = G::Input::read(bits)?;
                }
                let again = states.last().is_some_and(|last| last.at / u64::from(self.ticks) == place as u64);
                if again {
                    return Err(invalid);
                }
            }
            states.push(State { at, after, input });
        }
        Ok(states)
    }
}

/// Changes of input, read one by one.
struct Changes<I> {
    gaps: Gaps,
    left: u32,
    next: Option<(u64, I)>,
}

impl<I: Coded + Copy + PartialEq> Changes<I> {
    fn read(line: u64, bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        let left = read_count(CHANGES_ORDER, bits)?;
        if u64::from(left) > line * (MAX_CHANGES as u64 + 1) {
            return Err(WireError::Invalid { field: "changes" });
        }
        let mut changes = Self { gaps: Gaps::new(line * MOMENTS, left), left, next: None };
        changes.step(bits)?;
        Ok(changes)
    }

    fn step(&mut self, bits: &mut BitReader<'_>) -> Result<(), WireError> {
        self.next = None;
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            self.next = Some((self.gaps.read(bits)?, I::read(bits)?));
        }
        Ok(())
    }

    /// The input of the tick at point `at` of the line of ticks, where it was `held` before.
    fn tick(&mut self, at: u64, held: I, bits: &mut BitReader<'_>) -> Result<TickInput<I>, WireError> {
        let invalid = WireError::Invalid { field: "change" };
        let mut input = TickInput::steady(held);
        while let Some((point, to)) = self.next.filter(|(point, _)| point / MOMENTS == at) {
            if to == input.last() {
                return Err(invalid);
            }
            match u8::try_from(point % MOMENTS).ok().and_then(SubTick::new) {
                // Points go up: the tick's start comes before its changes.
                None => input = TickInput::steady(to),
                Some(moment) => input.change(moment, to).map_err(|_| invalid)?,
            }
            self.step(bits)?;
        }
        Ok(input)
    }

    /// Whether any of the changes before point `at` of the line of ticks is left.
    fn is_behind(&self, at: u64) -> bool {
        self.next.is_some_and(|(point, _)| point / MOMENTS < at)
    }
}

impl<G: BodyCode> Draft<G> {
    /// Of nobody.
    pub(crate) fn new() -> Self {
        Self { bodies: Vec::new(), records: Vec::new() }
    }

    /// Reads a section, and runs the rules on it.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub(crate) fn read(
        &mut self,
        about: &About<'_, G>,
        together: &mut Together<G>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        let states = about.read_states(bits)?;
        let mut changes = Changes::read(about.line(), bits)?;
        let first = self.bodies.len();
        let mut told = states.iter().peekable();
        let mut next = 0u64;
        for place in about.places {
            let begin = next;
            next += u64::from(about.ticks);
            if !place.left_out {
                let state = match about.motion {
                    Motion::Joint => None,
                    Motion::Alone => told.next_if(|state| state.at < next),
                };
                self.read_body(about, place, begin..next, state, &mut changes, bits)?;
            }
            // Said of somebody who is not there, or of a tick before the last state.
            if changes.is_behind(next) {
                return Err(WireError::Invalid { field: "change" });
            }
        }
        match about.motion {
            Motion::Joint => self.move_jointly(first, about, &states, together),
            Motion::Alone => self.move_alone(first, about, together),
        }
        Ok(())
    }

    /// The inputs of a body, and its state if one is told.
    fn read_body(
        &mut self,
        about: &About<'_, G>,
        place: &Place<'_, G>,
        line: Range<u64>,
        state: Option<&State<G>>,
        changes: &mut Changes<G::Input>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        let start = self.records.len();
        let known = line.start + u64::from(about.known_ticks);
        let present = line.start + u64::from(place.present.start)..line.start + u64::from(place.present.end);
        if changes.is_behind(present.start) {
            return Err(WireError::Invalid { field: "change" });
        }
        if place.came == Came::Since {
            self.records.push(*place.known);
        }
        let begin = state.map_or(present.start, |state| state.at + 1);
        self.records.extend(state.map(State::record));
        let mut held = state.map_or(place.known.input.last(), |state| state.input);
        for at in begin..present.end {
            let input = changes.tick(at, held, bits)?;
            held = input.last();
            if at >= known {
                let after = *place.newest;
                self.records.push(TickRecord { input, after, course: Course::Own, causes: Causes::NONE });
            }
        }
        let records = start..self.records.len();
        let told = u32::try_from(records.len()).unwrap_or(u32::MAX);
        let first = about.baseline.number().saturating_add((place.present.end + 1).saturating_sub(told));
        let there = place.there;
        self.bodies.push(Drafted { player: place.player, first: Tick::new(first), records, there });
        Ok(())
    }

    /// From the state that was told, or the baseline, on.
    fn move_alone(&mut self, first: usize, about: &About<'_, G>, together: &Together<G>) {
        let places = about.places.iter().filter(|place| !place.left_out);
        for (drafted, place) in self.bodies.iter().skip(first).zip(places) {
            let mut body = place.known.after;
            for record in self.records.get_mut(drafted.records.clone()).unwrap_or_default() {
                body = match record.course {
                    Course::Altered => record.after,
                    Course::Own | Course::Met => together.tick_alone(body, &record.input),
                };
                record.after = body;
            }
        }
    }

    /// Tick by tick, each among all others who were there.
    fn move_jointly(
        &mut self,
        first: usize,
        about: &About<'_, G>,
        states: &[State<G>],
        together: &mut Together<G>,
    ) {
        let mut bodies: Vec<G::Body> = about.places.iter().map(|place| *place.newest).collect();
        let mut before = Vec::with_capacity(bodies.len());
        for tick in about.known_ticks..about.ticks {
            let is_present = |place: &Place<'_, G>| place.present.contains(&tick);
            let present = about.places.iter().zip(&bodies).filter(|(place, _)| is_present(place));
            before.clear();
            before.extend(present.map(|(_, body)| *body));
            let drafted = about.places.iter().zip(self.bodies.iter().skip(first)).zip(&mut bodies);
            let present = (0u64..).zip(drafted).filter(|(_, ((place, _), _))| is_present(place));
            let mut among = together.among(&before);
            for (own, (number, ((place, drafted), body))) in present.enumerate() {
                // The last record is that of the last tick in which it was there.
                let to_come = (place.present.end - tick) as usize;
                let Some(slot) = drafted.records.end.checked_sub(to_come) else { continue };
                let Some(slot) = self.records.get_mut(slot) else { continue };
                let Some(mut record) = among.tick(own, slot.input) else { continue };
                let at = number * u64::from(about.ticks) + u64::from(tick);
                if let Ok(found) = states.binary_search_by_key(&at, |state| state.at)
                    && let Some(state) = states.get(found)
                {
                    record.after = state.after;
                    record.course = Course::Altered;
                }
                *body = record.after;
                *slot = record;
            }
        }
    }

    /// A body that is told in full.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub(crate) fn read_full(
        &mut self,
        player: PlayerId,
        tick: Tick,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        let start = self.records.len();
        self.records.push(read_full(bits)?);
        self.bodies.push(Drafted { player, first: tick, records: start..start + 1, there: true });
        Ok(())
    }

    /// Puts the bodies in order of player.
    ///
    /// # Errors
    /// When one is there twice.
    pub(crate) fn sort(&mut self) -> Result<(), WireError> {
        self.bodies.sort_by_key(|drafted| drafted.player);
        let twice = self.bodies.windows(2).any(|pair| matches!(pair, [a, b] if a.player == b.player));
        if twice { Err(WireError::Invalid { field: "player" }) } else { Ok(()) }
    }

    /// The low bits of the sum of their digests.
    pub(crate) fn check(&self) -> u32 {
        let last = |drafted: &Drafted| self.records.get(drafted.records.clone())?.last();
        let ends = self.bodies.iter().filter(|drafted| drafted.there).filter_map(last);
        let sum = ends.fold(0u64, |sum, record| sum.wrapping_add(G::digest(&record.after)));
        u32::try_from(sum & 0xffff).unwrap_or(0)
    }

    /// Who is in the snapshot, in order if the bodies are.
    pub(crate) fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.bodies.iter().filter(|drafted| drafted.there).map(|drafted| drafted.player)
    }

    /// Every body, in the snapshot or not any more, with the ticks of it that are told.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = (PlayerId, Tick, &[TickRecord<G>])> {
        self.bodies.iter().map(|drafted| {
            let records = self.records.get(drafted.records.clone()).unwrap_or_default();
            (drafted.player, drafted.first, records)
        })
    }
}
