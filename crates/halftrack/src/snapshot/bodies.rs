//! Every body of a room, as the server tells each client of them in one datagram.
//!
//! ```text
//! base        1   there is a snapshot that the client has acknowledged; and 6 if so: how many ticks ago, less one
//!   changed       of the bodies in that snapshot, in order of player: which were told or met something (gaps)
//!                 each of those: what (see body)
//!   left out      of the same: which are not in this snapshot (gaps)
//! others     16   how many bodies follow that were not in it
//!   per body:
//!     player 16
//!     known   1   from an earlier snapshot; and 6 if so: how many ticks ago, less one
//!       changed 1 and what, if so
//!     full        otherwise: the body against a blank one, and its input
//! check      16   the digests of all bodies in this snapshot, added up
//! ```
//!
//! What was written of a body against a baseline serves every client that has the same one.

use core::time::Duration;
use std::collections::VecDeque;

use crate::cadence::Cadence;
use crate::cause::{Cause, Causes};
use crate::game::Contact;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::snapshot::body::{BodyCode, Told, encode_body};
use crate::snapshot::gaps::write_gaps;
use crate::snapshot::history::{BodyHistory, Course, HISTORY_TICKS, TickRecord};
use crate::snapshot::together::Together;
use crate::tick::Tick;
use crate::wire::{BitWriter, Coded};

/// Bits for how many ticks ago a baseline is, less one.
pub(crate) const AGO_BITS: u32 = 6;

/// The bodies of a room.
#[derive(Clone, Debug)]
pub struct Bodies<G: BodyCode> {
    together: Together<G>,
    tick: Tick,
    /// The bodies as they stood at the start of the tick at hand.
    before: Vec<G::Body>,
    /// In order of player.
    bodies: Vec<Kept<G>>,
    /// What has been written in this tick, for whoever needs it again.
    written: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Kept<G: BodyCode> {
    player: PlayerId,
    history: BodyHistory<G>,
    digest: u64,
    /// Of this tick, by how many ticks ago the baseline is, less one; the last is for those who have none.
    codes: [Option<Code>; HISTORY_TICKS as usize],
}

/// Where in `written` a body's code is.
#[derive(Clone, Copy, Debug)]
struct Code {
    told: Told,
    at: usize,
    bits: usize,
}

/// What one client knows of the bodies.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The newest snapshot that it has acknowledged.
    base: Option<Tick>,
    /// Snapshots sent to it, oldest first: who was in them.
    sent: VecDeque<(Tick, Vec<PlayerId>)>,
    /// Of each body, in order of player: what it knows.
    known: Vec<Known>,
    chosen: Vec<Chosen>,
    places: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    player: PlayerId,
    /// The newest acknowledged snapshot that it was in.
    at: Option<Tick>,
    /// For how many snapshots it has been left out.
    waiting: u32,
}

/// What a snapshot does with a body.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    /// Its place among the bodies; none for one that has left.
    body: Option<usize>,
    /// Its place in the base snapshot.
    place: Option<u16>,
    known: Option<Tick>,
    waiting: u32,
    fits: bool,
}

impl View {
    /// The client has decoded and checked the snapshot of `tick`. Gives false when that was never sent, or too long ago.
    pub fn acknowledge(&mut self, tick: Tick) -> bool {
        let Some((_, players)) = self.sent.iter().find(|(sent, _)| *sent == tick) else { return false };
        for known in &mut self.known {
            if players.binary_search(&known.player).is_ok() {
                known.at = known.at.max(Some(tick));
            }
        }
        self.base = self.base.max(Some(tick));
        true
    }

    /// The client has nothing to build on: the next snapshot tells everything in full.
    pub fn forget(&mut self) {
        self.base = None;
        for known in &mut self.known {
            known.at = None;
        }
    }

    /// Whether the snapshot of `tick` was sent to this client, not too long ago.
    pub fn was_sent(&self, tick: Tick) -> bool {
        self.players_of(tick).is_some()
    }

    /// The newest snapshot that the client has acknowledged.
    pub fn acknowledged(&self) -> Option<Tick> {
        self.base
    }

    /// Who was in the snapshot of `tick`.
    fn players_of(&self, tick: Tick) -> Option<&[PlayerId]> {
        self.sent.iter().find(|(sent, _)| *sent == tick).map(|(_, players)| players.as_slice())
    }
}

impl<G: BodyCode> Bodies<G> {
    /// A room without bodies, which stands at the end of `tick`. `alone` is the world without any.
    pub fn new(cadence: Cadence, alone: G::Surroundings, tick: Tick) -> Self {
        Self {
            together: Together::new(cadence, alone),
            tick,
            before: Vec::new(),
            bodies: Vec::new(),
            written: Vec::new(),
        }
    }

    /// A body that is there from the end of this tick on.
    pub fn join(&mut self, player: PlayerId, input: G::Input, body: G::Body) {
        let history = BodyHistory::new(self.tick, TickInput::steady(input), body);
        let kept = Kept { player, history, digest: G::digest(&body), codes: [None; HISTORY_TICKS as usize] };
        match self.bodies.binary_search_by_key(&player, |kept| kept.player) {
            Ok(at) => self.bodies.splice(at..=at, [kept]).for_each(drop),
            Err(at) => self.bodies.insert(at, kept),
        }
    }

    /// A body that is no more.
    pub fn leave(&mut self, player: PlayerId) {
        self.bodies.retain(|kept| kept.player != player);
    }

    /// Simulates the next tick: everybody is told something, and moves among the others as they stood at its start.
    pub fn advance(&mut self, mut told: impl FnMut(PlayerId) -> TickInput<G::Input>) {
        self.before.clear();
        self.before.extend(
            self.bodies.iter().filter_map(|kept| kept.history.get(self.tick)).map(|record| record.after),
        );
        self.tick = self.tick.next();
        self.written.clear();
        for (own, kept) in self.bodies.iter_mut().enumerate() {
            let input = told(kept.player);
            let moved = self.together.tick(&self.before, own, &input);
            let (Some((after, contact)), Some(before)) = (moved, self.before.get(own)) else { continue };
            // By comparison, whatever the rules say of contact.
            let course =
                if self.together.tick_alone(*before, &input) == after { Course::Own } else { Course::Met };
            let causes = match contact {
                Contact::Touched => Causes::NONE.with(Cause::Collision),
                Contact::Free => Causes::NONE,
            };
            kept.history.push(TickRecord { input, after, course, causes });
            kept.digest = G::digest(&after);
            kept.codes = [None; HISTORY_TICKS as usize];
        }
    }

    /// The world has made something else of a body at the end of the tick, for these causes.
    pub fn alter(&mut self, player: PlayerId, after: G::Body, causes: Causes) {
        let Ok(at) = self.bodies.binary_search_by_key(&player, |kept| kept.player) else { return };
        let Some(kept) = self.bodies.get_mut(at) else { return };
        let Some(record) = kept.history.get_mut(self.tick) else { return };
        record.causes = record.causes.union(causes);
        if record.after != after {
            record.after = after;
            record.course = Course::Altered;
            kept.digest = G::digest(&after);
        }
    }

    /// The tick at whose end the bodies stand.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// Every body and what it was told and did in the tick, in order of player.
    pub fn actors(&self) -> impl Iterator<Item = (PlayerId, &TickRecord<G>)> {
        self.bodies.iter().filter_map(|kept| Some((kept.player, kept.history.get(self.tick)?)))
    }

    /// The body of `player` when it was `into` the tick, as it was then among the others; `None` when that is not
    /// kept.
    pub fn body_at(&mut self, player: PlayerId, tick: Tick, into: Duration) -> Option<G::Body> {
        let start = tick.previous()?;
        let input = self.history(player)?.get(tick)?.input;
        self.before.clear();
        let mut own = None;
        for kept in &self.bodies {
            let Some(record) = kept.history.get(start) else { continue };
            if kept.player == player {
                own = Some(self.before.len());
            }
            self.before.push(record.after);
        }
        self.together.part_of_tick(&self.before, own?, &input, into)
    }

    /// The history of a body.
    pub fn history(&self, player: PlayerId) -> Option<&BodyHistory<G>> {
        let at = self.bodies.binary_search_by_key(&player, |kept| kept.player).ok()?;
        self.bodies.get(at).map(|kept| &kept.history)
    }

    /// Writes what the client of `view` is to know of all bodies, in at most `max_bits`. What does not fit waits, and
    /// comes before what has waited for less.
    pub fn write(&mut self, view: &mut View, max_bits: usize, bits: &mut BitWriter<'_>) {
        self.know(view);
        let base = view.base.filter(|base| self.ago(*base).is_some() && view.players_of(*base).is_some());
        self.choose(view, base, max_bits);

        bits.write_flag(base.is_some());
        if let Some(ago) = base.and_then(|base| self.ago(base)) {
            bits.write(ago, AGO_BITS);
            self.write_base(view, ago, bits);
        }
        self.write_others(view, bits);
        let in_it = || {
            view.chosen.iter().filter(|chosen| chosen.fits).filter_map(|chosen| self.bodies.get(chosen.body?))
        };
        let check = in_it().fold(0u64, |sum, kept| sum.wrapping_add(kept.digest));
        bits.write(u32::try_from(check & 0xffff).unwrap_or(0), 16);

        let mut players: Vec<_> = in_it().map(|kept| kept.player).collect();
        players.sort_unstable();
        if view.sent.len() >= HISTORY_TICKS as usize {
            view.sent.pop_front();
        }
        view.sent.push_back((self.tick, players));
    }

    /// How many ticks ago that was, less one, if it is kept.
    fn ago(&self, tick: Tick) -> Option<u32> {
        self.tick.since(tick).checked_sub(1).filter(|ago| *ago < HISTORY_TICKS - 1)
    }

    /// Brings the list of what the client knows up to the bodies that there are.
    fn know(&self, view: &mut View) {
        let current = self.bodies.iter().map(|kept| kept.player);
        if !current.clone().eq(view.known.iter().map(|known| known.player)) {
            let old = core::mem::take(&mut view.known);
            view.known.extend(current.map(|player| {
                let known = old.iter().find(|known| known.player == player).copied();
                known.unwrap_or(Known { player, at: None, waiting: 0 })
            }));
        }
    }

    /// Decides which bodies are in the snapshot.
    fn choose(&mut self, view: &mut View, base: Option<Tick>, max_bits: usize) {
        let mut chosen = core::mem::take(&mut view.chosen);
        chosen.clear();
        let in_base = base.and_then(|base| view.players_of(base)).unwrap_or_default();
        for (place, player) in (0..).zip(in_base) {
            let body = self.bodies.binary_search_by_key(player, |kept| kept.player).ok();
            let waiting = body.and_then(|body| view.known.get(body)).map_or(0, |known| known.waiting);
            chosen.push(Chosen { body, place: Some(place), known: base, waiting, fits: body.is_some() });
        }
        for (body, (kept, known)) in self.bodies.iter().zip(&view.known).enumerate() {
            if in_base.binary_search(&kept.player).is_err() {
                let at = known.at.filter(|at| self.ago(*at).is_some() && kept.history.get(*at).is_some());
                chosen.push(Chosen {
                    body: Some(body),
                    place: None,
                    known: at,
                    waiting: known.waiting,
                    fits: true,
                });
            }
        }
        // Who has waited longest comes first; the order of the rest stays.
        let mut order: Vec<usize> = (0..chosen.len()).collect();
        order.sort_by_key(|index| core::cmp::Reverse(chosen.get(*index).map_or(0, |chosen| chosen.waiting)));
        let mut left = max_bits.saturating_sub(Self::OVERHEAD_BITS);
        for index in order {
            let Some(choice) = chosen.get_mut(index) else { continue };
            let Some(body) = choice.body else { continue };
            let cost = self.cost(body, choice);
            choice.fits = cost <= left;
            left = left.saturating_sub(if choice.fits { cost } else { 0 });
            if let Some(known) = view.known.get_mut(body) {
                known.waiting = if choice.fits { 0 } else { known.waiting.saturating_add(1) };
            }
        }
        view.chosen = chosen;
    }

    /// Flags, counts and check, and the gaps of a list at their worst.
    const OVERHEAD_BITS: usize = 1 + 6 + 20 + 20 + 16 + 16;

    /// Bits that a body takes at most.
    fn cost(&mut self, body: usize, chosen: &Chosen) -> usize {
        let code = self.code(body, chosen.known).map_or(0, |code| code.bits);
        // A place in a list of gaps is never dearer than this, changed or left out.
        code + if chosen.place.is_some() { 20 } else { 16 + 1 + 6 + 1 }
    }

    /// The place of the code for those who have no baseline.
    const FULL: usize = HISTORY_TICKS as usize - 1;

    /// What is to be told of a body since `known`, or in full: written once, and used by whoever needs it.
    fn code(&mut self, body: usize, known: Option<Tick>) -> Option<Code> {
        let place = match known {
            Some(known) => self.ago(known)? as usize,
            None => Self::FULL,
        };
        let kept = self.bodies.get_mut(body)?;
        if let Some(code) = kept.codes.get(place).copied().flatten() {
            return Some(code);
        }
        let mut buffer = [0; 512];
        let mut bits = BitWriter::new(&mut buffer);
        let told = match known {
            Some(known) => encode_body(&kept.history, known, &mut bits)?,
            None => {
                let record = kept.history.get(self.tick)?;
                G::write_body(&record.after, &G::blank(), &mut bits);
                record.input.last().write(&mut bits);
                Told::Changed
            }
        };
        let count = bits.len_bits();
        let length = bits.finish()?;
        let code = Code { told, at: self.written.len(), bits: count };
        self.written.extend_from_slice(buffer.get(..length)?);
        *kept.codes.get_mut(place)? = Some(code);
        Some(code)
    }

    fn copy(&self, code: Code, bits: &mut BitWriter<'_>) {
        let bytes = self.written.get(code.at..).unwrap_or_default();
        for (index, byte) in bytes.iter().take(code.bits.div_ceil(8)).enumerate() {
            let count = u32::try_from((code.bits - index * 8).min(8)).unwrap_or(8);
            bits.write(u32::from(*byte) & ((1 << count) - 1), count);
        }
    }

    /// The bodies that were in the base snapshot.
    fn write_base(&mut self, view: &mut View, ago: u32, bits: &mut BitWriter<'_>) {
        let base = Tick::new(self.tick.number() - ago - 1);
        let (chosen, mut places) = (core::mem::take(&mut view.chosen), core::mem::take(&mut view.places));
        let mut changed: Vec<(u16, Code)> = Vec::new();
        for choice in chosen.iter().filter(|choice| choice.fits) {
            if let (Some(body), Some(place)) = (choice.body, choice.place)
                && let Some(code) = self.code(body, Some(base)).filter(|code| code.told == Told::Changed)
            {
                changed.push((place, code));
            }
        }
        places.clear();
        places.extend(changed.iter().map(|(place, _)| *place));
        write_gaps(&places, bits);
        for (_, code) in &changed {
            self.copy(*code, bits);
        }
        places.clear();
        places.extend(chosen.iter().filter(|choice| !choice.fits).filter_map(|choice| choice.place));
        write_gaps(&places, bits);
        (view.chosen, view.places) = (chosen, places);
    }

    /// The bodies that were not.
    fn write_others(&mut self, view: &View, bits: &mut BitWriter<'_>) {
        let others = || view.chosen.iter().filter(|choice| choice.fits && choice.place.is_none());
        bits.write(u32::try_from(others().count()).unwrap_or(0), 16);
        for choice in others() {
            let Some(body) = choice.body else { continue };
            let ago = choice.known.and_then(|known| self.ago(known));
            let Some(code) = self.code(body, choice.known) else { continue };
            let Some(kept) = self.bodies.get(body) else { continue };
            bits.write(u32::from(kept.player.number()), 16);
            bits.write_flag(ago.is_some());
            if let Some(ago) = ago {
                bits.write(ago, AGO_BITS);
                bits.write_flag(code.told == Told::Changed);
            }
            self.copy(code, bits);
        }
    }
}
