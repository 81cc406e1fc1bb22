//! The reading side of `section`: reads bodies and moves them through the ticks of a snapshot. [`Crowd`] takes them over
//! once the whole snapshot has proved right.
//!
//! [`Crowd`]: super::Crowd

use core::ops::Range;

use derive_where::derive_where;

use crate::cadence::SubTick;
use crate::cause::Causes;
use crate::game::Game;
use crate::game::Neighbour;
use crate::id::{BodyId, Driver};
use crate::input::{MAX_CHANGES, TickInput};
use crate::model::{Body, Input};
use crate::simulate::{Birth, Moved, TickSimulator, count_emitted};
use crate::snapshot::gaps::{Gaps, read_count};
use crate::snapshot::history::{Course, TickRecord};
use crate::snapshot::places::{Came, Place};
use crate::snapshot::roster::Member;
use crate::snapshot::scratch::empty;
use crate::snapshot::section::{CHANGES_ORDER, Lines, MOMENTS, Motion, STATES_ORDER};
use crate::snapshot::turnover::{read_emitted, read_full, read_member};
use crate::tick::{Epoch, Tick};
use crate::wire::{BitReader, WireError};

/// The bodies of the snapshot at hand. All of this is scratch memory, used again by the next one.
#[derive_where(Clone, Debug)]
pub(crate) struct SnapshotDecoder<G: Game> {
    bodies: Vec<DecodedBody<G>>,
    /// Of all bodies, one after the other.
    records: Vec<TickRecord<G>>,
    /// The states of the section at hand, going up.
    states: Vec<State<G>>,
    /// The changes of input by the world in the section at hand, going up.
    driven: Vec<(u64, G::Input)>,
    /// The bodies of a joint section, in order of their ids, at the end of the tick at hand.
    moving: Vec<Moving<G>>,
    /// Those that are there in the tick at hand, as they stood at its start.
    before: Vec<Neighbour<G>>,
    /// More bodies were born in the section at hand than any room holds.
    overborn: bool,
}

/// A body of a joint section on its way through the ticks.
#[derive_where(Clone, Debug)]
struct Moving<G: Game> {
    now: Neighbour<G>,
    emitted: u32,
    /// Its index among the decoded bodies.
    decoded: usize,
    /// Its place, if the section is about it: it was born since otherwise.
    place: Option<u64>,
    /// The ticks since the baseline that it is there in, counted from zero.
    present: Range<u32>,
}

/// The ticks of a body that are new, its last one included.
#[derive_where(Clone, Debug)]
struct DecodedBody<G: Game> {
    member: Member,
    first: Tick,
    records: Range<usize>,
    /// It is in the snapshot: it has not left.
    there: bool,
    /// Its birth, if it was born by the rules since the baseline.
    birth: Option<Birth<G>>,
    /// The moment of its last tick at which the rules removed it, if they did.
    ended: Option<u32>,
}

/// The subject of a section: both ends know it before its bits.
#[derive_where(Debug)]
pub(crate) struct About<'a, G: Game> {
    pub(crate) motion: Motion,
    pub(crate) baseline: Tick,
    /// Ticks since the baseline; at least one.
    pub(crate) ticks: u32,
    /// So many of them are known already of every body: less than all, and none unless the motion is joint.
    pub(crate) known_ticks: u32,
    /// In order of their ids.
    pub(crate) places: &'a [Place<G>],
}

/// A state that the rules do not give.
#[derive_where(Clone, Copy, Debug)]
struct State<G: Game> {
    /// Place and tick in one.
    at: u64,
    after: G::Body,
    input: G::Input,
    emitted: u32,
}

impl<G: Game> State<G> {
    fn record(&self) -> TickRecord<G> {
        TickRecord::sent(self.input, self.after, self.emitted)
    }
}

impl<G: Game> About<'_, G> {
    /// The places of each line.
    fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        self.places.iter().for_each(|place| lines.add(place.driver));
        lines
    }

    fn read_states(
        &self,
        lines: Lines,
        states: &mut Vec<State<G>>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        let invalid = WireError::Invalid { field: "state" };
        let count = read_count(STATES_ORDER, bits)?;
        let mut gaps = Gaps::new(lines.places * u64::from(self.ticks), count);
        states.clear();
        for _ in 0..count {
            let at = gaps.read(bits)?;
            let place = usize::try_from(at / u64::from(self.ticks)).map_err(|_| invalid)?;
            let tick = u32::try_from(at % u64::from(self.ticks)).map_err(|_| invalid)?;
            let is_in = |place: &&Place<G>| !place.left_out && place.present.contains(&tick);
            let known = self.places.get(place).filter(is_in).ok_or(invalid)?;
            let after = G::Body::read(&known.known, bits)?;
            let (mut input, mut emitted) = (known.held, known.emitted);
            if self.motion == Motion::Alone {
                if !bits.read_flag()? {
                    input = G::Input::read(bits)?;
                }
                if !bits.read_flag()? {
                    emitted = read_emitted(0, bits)?;
                }
                let again = states.last().is_some_and(|last| last.at / u64::from(self.ticks) == place as u64);
                if again {
                    return Err(invalid);
                }
            }
            states.push(State { at, after, input, emitted });
        }
        Ok(())
    }

    /// Reads changes of input by the world, which lie on a line of so many points.
    fn read_driven(
        &self,
        line: u64,
        states: &[State<G>],
        driven: &mut Vec<(u64, G::Input)>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        driven.clear();
        if line == 0 {
            return Ok(());
        }
        let ticks = u64::from(self.ticks);
        let count = read_count(CHANGES_ORDER, bits)?;
        let mut gaps = Gaps::new(line, count);
        let mut places = (0u64..).zip(self.places).filter(|(_, place)| place.driver == Driver::World);
        let mut place = places.next();
        let (mut nth, mut held) = (0, None);
        for _ in 0..count {
            let at = gaps.read(bits)?;
            while nth < at / ticks {
                (nth, held, place) = (nth + 1, None, places.next());
            }
            let (index, known) = place.ok_or(WireError::Invalid { field: "driven" })?;
            let before = held.unwrap_or_else(|| {
                let state = states.get(states.partition_point(|state| state.at < index * ticks));
                let alone = state.filter(|state| self.motion == Motion::Alone && state.at / ticks == index);
                alone.map_or(known.held, |state| state.input)
            });
            let to = G::Input::read_after(&before, bits)?;
            held = Some(to);
            driven.push((at, to));
        }
        Ok(())
    }
}

/// Changes of input by players, read one by one.
struct Changes {
    gaps: Gaps,
    left: u32,
    /// The point of the next one. Its input follows in the bits.
    next: Option<u64>,
}

impl Changes {
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
            self.next = Some(self.gaps.read(bits)?);
        }
        Ok(())
    }

    /// The input of the tick at point `at` of the line of ticks, where it was `held` before.
    fn tick<I: Input>(
        &mut self,
        at: u64,
        held: I,
        bits: &mut BitReader<'_>,
    ) -> Result<TickInput<I>, WireError> {
        let invalid = WireError::Invalid { field: "change" };
        let mut input = TickInput::steady(held);
        while let Some(point) = self.next.filter(|point| point / MOMENTS == at) {
            let to = I::read_after(&input.last(), bits)?;
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
        self.next.is_some_and(|point| point / MOMENTS < at)
    }
}

impl<G: Game> SnapshotDecoder<G> {
    pub(crate) fn new() -> Self {
        Self {
            bodies: Vec::new(),
            records: Vec::new(),
            states: Vec::new(),
            driven: Vec::new(),
            moving: Vec::new(),
            before: Vec::new(),
            overborn: false,
        }
    }

    /// Forgets the snapshot, and keeps memory for so many bodies at most, each with so many ticks.
    pub(crate) fn forget(&mut self, max_bodies: usize, max_ticks: usize) {
        let max_records = max_bodies.saturating_mul(max_ticks);
        empty(&mut self.bodies, max_bodies);
        empty(&mut self.records, max_records);
        empty(&mut self.states, max_records);
        empty(&mut self.driven, max_records);
        empty(&mut self.moving, max_bodies);
        empty(&mut self.before, max_bodies);
    }

    /// Reads a section, and runs the rules on it.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub(crate) fn read(
        &mut self,
        about: &About<'_, G>,
        simulator: &mut TickSimulator<G>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        let (lines, ticks) = (about.lines(), u64::from(about.ticks));
        about.read_states(lines, &mut self.states, bits)?;
        about.read_driven(lines.world * ticks, &self.states, &mut self.driven, bits)?;
        let mut changes = Changes::read(lines.players * ticks, bits)?;
        let first = self.bodies.len();
        self.overborn = false;
        let (mut used_states, mut used_driven) = (0, 0);
        let mut lines = Lines::default();
        for place in about.places {
            let here = lines;
            lines.add(place.driver);
            if !place.left_out {
                let before = lines.places * ticks;
                let state = match about.motion {
                    Motion::Joint => None,
                    Motion::Alone => self.states.get(used_states).filter(|state| state.at < before).copied(),
                };
                used_states += usize::from(state.is_some());
                let state = state.map(|state| (state.at - here.places * ticks, state));
                match place.driver {
                    Driver::Player(_) => {
                        self.read_owned(about, place, here.players * ticks, state, &mut changes, bits)?;
                    }
                    Driver::World => {
                        let line = here.world * ticks;
                        self.read_world_driven(about, place, line, state, &mut used_driven)?;
                    }
                    Driver::Nothing => self.read_undriven(about, place, state),
                }
            }
            // A change of a body that is not there, or of a tick before its state.
            if changes.is_behind(lines.players * ticks) {
                return Err(WireError::Invalid { field: "change" });
            }
        }
        // One of a body that is left out, or of a tick in which it was not there, or before its state.
        if used_driven != self.driven.len() {
            return Err(WireError::Invalid { field: "driven" });
        }
        match about.motion {
            Motion::Joint => self.move_jointly(first, about, simulator),
            Motion::Alone => self.move_alone(first, about, simulator),
        }
        if self.overborn { Err(WireError::Invalid { field: "born" }) } else { Ok(()) }
    }

    /// Reads the inputs of a player's body, whose line begins at `line`, after its state if it has one: that of so many
    /// ticks after the baseline, less one.
    fn read_owned(
        &mut self,
        about: &About<'_, G>,
        place: &Place<G>,
        line: u64,
        state: Option<(u64, State<G>)>,
        changes: &mut Changes,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        if changes.is_behind(line + u64::from(place.present.start)) {
            return Err(WireError::Invalid { field: "change" });
        }
        let start = self.begin_body(place, state);
        let (begin, mut held) = first_input(place, state);
        for at in begin..u64::from(place.present.end) {
            let input = changes.tick(line + at, held, bits)?;
            held = input.last();
            self.push_input(about, place, at, input, held);
        }
        self.end_body(about, place, start);
        Ok(())
    }

    /// The same of a body that the world drives. So many of the changes of the section are `used` before it.
    fn read_world_driven(
        &mut self,
        about: &About<'_, G>,
        place: &Place<G>,
        line: u64,
        state: Option<(u64, State<G>)>,
        used: &mut usize,
    ) -> Result<(), WireError> {
        let start = self.begin_body(place, state);
        let (begin, mut held) = first_input(place, state);
        for at in begin..u64::from(place.present.end) {
            let input = TickInput::steady(held);
            if let Some((_, to)) = self.driven.get(*used).filter(|(point, _)| *point == line + at) {
                *used += 1;
                if *to == held {
                    return Err(WireError::Invalid { field: "driven" });
                }
                held = *to;
            }
            self.push_input(about, place, at, input, held);
        }
        self.end_body(about, place, start);
        Ok(())
    }

    /// The same of a body that nothing drives.
    fn read_undriven(&mut self, about: &About<'_, G>, place: &Place<G>, state: Option<(u64, State<G>)>) {
        let start = self.begin_body(place, state);
        let (begin, held) = first_input(place, state);
        for at in begin..u64::from(place.present.end) {
            self.push_input(about, place, at, TickInput::steady(held), held);
        }
        self.end_body(about, place, start);
    }

    /// Begins the records of a body. Returns where they begin.
    fn begin_body(&mut self, place: &Place<G>, state: Option<(u64, State<G>)>) -> usize {
        let start = self.records.len();
        if place.came == Came::Since {
            self.records.push(TickRecord::sent(place.held, place.known, place.emitted));
        }
        self.records.extend(state.as_ref().map(|(_, state)| state.record()));
        start
    }

    /// The input of the tick that is so many ticks after the baseline, less one, unless it is known already.
    fn push_input(
        &mut self,
        about: &About<'_, G>,
        place: &Place<G>,
        at: u64,
        input: TickInput<G::Input>,
        held: G::Input,
    ) {
        if at >= u64::from(about.known_ticks) {
            let (after, emitted) = place.newest;
            let (course, causes) = (Course::Own, Causes::NONE);
            self.records.push(TickRecord { input, held, after, course, causes, emitted });
        }
    }

    fn end_body(&mut self, about: &About<'_, G>, place: &Place<G>, start: usize) {
        let records = start..self.records.len();
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        let first = about.baseline.number().saturating_add((place.present.end + 1).saturating_sub(count));
        let Place { id, driver, parent, there, .. } = *place;
        let member = Member { id, driver, parent };
        let (first, birth, ended) = (Tick::new(first), None, None);
        self.bodies.push(DecodedBody { member, first, records, there, birth, ended });
    }

    /// Moves each body as if it were alone, from its state on if it has one, else from the baseline.
    fn move_alone(&mut self, first: usize, about: &About<'_, G>, simulator: &TickSimulator<G>) {
        let places = about.places.iter().filter(|place| !place.left_out);
        for (decoded, place) in self.bodies.iter().skip(first).zip(places) {
            let Place { id, driver, parent, known, mut emitted, .. } = *place;
            let mut who = Neighbour { id, driver, parent, body: known };
            let records = self.records.get_mut(decoded.records.clone()).unwrap_or_default();
            for (tick, record) in decoded.first.onwards().zip(records) {
                match record.course {
                    Course::Altered => (who.body, emitted) = (record.after, record.emitted),
                    Course::Own | Course::Met => {
                        // Whether the rules remove it does not matter: the snapshot says whether it is there.
                        let moved = simulator.tick_alone(tick, &who, &record.input);
                        (who.body, emitted) = (moved.after, count_emitted(emitted, moved.emitted));
                    }
                }
                (record.after, record.emitted) = (who.body, emitted);
            }
        }
    }

    /// The most ticks of newborn bodies in a section: a room's worth of them for a second.
    const MAX_BORN_TICKS: usize = 1 << 17;

    /// Moves all bodies tick by tick, each among the others that were there. Bodies that are born on the way move too.
    fn move_jointly(&mut self, first: usize, about: &About<'_, G>, simulator: &mut TickSimulator<G>) {
        self.moving.clear();
        let places = (0u64..).zip(about.places).zip(first..);
        self.moving.extend(places.map(|((number, place), decoded)| {
            let Place { id, driver, parent, newest: (body, emitted), ref present, .. } = *place;
            let now = Neighbour { id, driver, parent, body };
            Moving { now, emitted, decoded, place: Some(number), present: present.clone() }
        }));
        let mut born_ticks = 0;
        for tick in about.known_ticks..about.ticks {
            let Self { bodies, records, states, moving, before, .. } = self;
            before.clear();
            before.extend(
                moving.iter().filter(|moving| moving.present.contains(&tick)).map(|moving| moving.now),
            );
            let number = Tick::new(about.baseline.number().saturating_add(tick + 1));
            let mut start = simulator.start(number, before);
            let present = moving.iter_mut().filter(|moving| moving.present.contains(&tick));
            for (own, body) in present.enumerate() {
                let Some(decoded) = bodies.get_mut(body.decoded) else { continue };
                // The last record is that of the last tick in which it was there.
                let to_come = (body.present.end - tick) as usize;
                let Some(at) = decoded.records.end.checked_sub(to_come) else { continue };
                let Some(slot) = records.get_mut(at) else { continue };
                let Some(moved) = start.tick(own, &slot.input, body.emitted) else { continue };
                let mut record =
                    TickRecord { held: slot.held, ..TickRecord::moved(slot.input, &moved, body.emitted) };
                let point = body.place.map(|place| place * u64::from(about.ticks) + u64::from(tick));
                let state = point.and_then(|point| {
                    let found = states.binary_search_by_key(&point, |state| state.at).ok()?;
                    states.get(found)
                });
                if let Some(state) = state {
                    record.after = state.after;
                    record.course = Course::Altered;
                } else if let Some(ended) = moved.removed {
                    // spec: EMIT-03
                    (decoded.ended, decoded.there) = (Some(ended), false);
                    decoded.records.end = at + 1;
                    body.present.end = tick + 1;
                }
                (body.now.body, body.emitted) = (record.after, record.emitted);
                *slot = record;
            }
            if !start.has_births() {
                continue;
            }
            for nth in 0.. {
                let Some((birth, moved)) = start.birth(nth) else { break };
                let ticks = about.ticks - tick;
                born_ticks += ticks as usize;
                self.overborn |= born_ticks > Self::MAX_BORN_TICKS;
                if self.overborn {
                    return;
                }
                // A body that the world acted on since its birth is sent, and has a place.
                let at = moving.partition_point(|moving| moving.now.id < birth.id);
                if moving.get(at).is_none_or(|next| next.now.id != birth.id) {
                    let decoded = bodies.len();
                    let born = newborn(&birth, &moved, number, records, ticks as usize);
                    let end = if born.ended.is_some() { tick + 1 } else { about.ticks };
                    let now = Neighbour {
                        id: birth.id,
                        driver: Driver::Nothing,
                        parent: Some(birth.parent),
                        body: moved.after,
                    };
                    bodies.push(born);
                    moving
                        .insert(at, Moving { now, emitted: 0, decoded, place: None, present: tick + 1..end });
                }
            }
        }
    }

    /// Reads a body in full.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub(crate) fn read_full(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> Result<(), WireError> {
        let start = self.records.len();
        let member = read_member(bits)?;
        self.records.push(read_full(bits)?);
        let (records, birth, ended) = (start..start + 1, None, None);
        self.bodies.push(DecodedBody { member, first: tick, records, there: true, birth, ended });
        Ok(())
    }

    /// Puts the bodies in order of their ids.
    ///
    /// # Errors
    /// When one is there twice.
    pub(crate) fn sort(&mut self) -> Result<(), WireError> {
        // Stable or not is all the same: equal ones are refused.
        self.bodies.sort_unstable_by_key(|decoded| decoded.member.id);
        let twice = self.bodies.windows(2).any(|pair| matches!(pair, [a, b] if a.member.id == b.member.id));
        if twice { Err(WireError::Invalid { field: "id" }) } else { Ok(()) }
    }

    /// The low bits of the sum of their digests and the epoch.
    pub(crate) fn check(&self, epoch: Epoch) -> u32 {
        let last = |decoded: &DecodedBody<G>| self.records.get(decoded.records.clone())?.last();
        let ends = self.bodies.iter().filter(|decoded| decoded.there).filter_map(last);
        let sum = ends.fold(u64::from(epoch.number()), |sum, record| sum.wrapping_add(record.after.digest()));
        u32::try_from(sum & 0xffff).unwrap_or(0)
    }

    /// The ids of the snapshot, in order if the bodies are.
    pub(crate) fn ids(&self) -> impl Iterator<Item = BodyId> {
        self.bodies.iter().filter(|decoded| decoded.there).map(|decoded| decoded.member.id)
    }

    /// Every body with its new ticks; also those that have left since the baseline.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = Decoded<'_, G>> {
        self.bodies.iter().map(|decoded| {
            let records = self.records.get(decoded.records.clone()).unwrap_or_default();
            let DecodedBody { member, first, birth, ended, .. } = *decoded;
            Decoded { member, first, records, birth, ended }
        })
    }
}

/// A body that was born in `tick`, with room for its records of so many ticks, that one included.
fn newborn<G: Game>(
    birth: &Birth<G>,
    moved: &Moved<G>,
    tick: Tick,
    records: &mut Vec<TickRecord<G>>,
    ticks: usize,
) -> DecodedBody<G> {
    let member = Member { id: birth.id, driver: Driver::Nothing, parent: Some(birth.parent) };
    let ticks = if moved.removed.is_some() { 1 } else { ticks };
    let start = records.len();
    let record = TickRecord::moved(TickInput::default(), moved, 0);
    records.resize(start + ticks, record);
    let (there, ended) = (moved.removed.is_none(), moved.removed);
    DecodedBody { member, first: tick, records: start..start + ticks, there, birth: Some(*birth), ended }
}

/// A body of a snapshot.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Decoded<'a, G: Game> {
    pub(crate) member: Member,
    /// The first of its new ticks.
    pub(crate) first: Tick,
    pub(crate) records: &'a [TickRecord<G>],
    pub(crate) birth: Option<Birth<G>>,
    /// The moment of its last tick at which the rules removed it.
    pub(crate) ended: Option<u32>,
}

/// The first tick whose input the section has, counted from zero after the baseline, and the input before it.
fn first_input<G: Game>(place: &Place<G>, state: Option<(u64, State<G>)>) -> (u64, G::Input) {
    state.map_or((u64::from(place.present.start), place.held), |(at, state)| (at + 1, state.input))
}
