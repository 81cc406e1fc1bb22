//! A snapshot in bits: every body of a room, as a client is told of them in one datagram. The writing side; `crowd` and
//! `decoder` read.
//!
//! ```text
//! base         1   builds on a snapshot that the client has acknowledged; if so:
//!   ago        A   how many ticks ago that is, less one: A is the base-2 logarithm of the ticks of history, 6 at 20 Hz
//!   joint      1   that snapshot told of everybody, and this one does
//!   joint:
//!     same     1   nobody joined or left since; if not:
//!       joined     count(0): bodies that were not in that snapshot, in order of player
//!         player   count(2): numbers left out since the one before, or since 0
//!         after O  how many ticks after that snapshot it joined: O is the bits of the number of ticks since
//!         full     the body as it was then, against a blank one, and its input
//!       left       count(0), and points of a line of all bodies of that snapshot and those who joined, in order of player
//!         after O  how many ticks after that snapshot its last tick was
//!     section      about all of these (see section)
//!   otherwise:
//!     left out     count(0), and points of a line as long as that snapshot has bodies: which, in order of player, are
//!                  not in this one (see gaps)
//!     section      alone, about all of them; it says nothing of those left out
//! unless joint:
//!   others         count(0): bodies that are not in the base, or are there but left out, in order of player
//!     per body:
//!       player     count(2): numbers left out since the one before, or since 0
//!       known   1  builds on an earlier snapshot; if so:
//!         ago   A  how many ticks ago, less one
//!         section  alone, about this body
//!       full       otherwise: the body against a blank one, and its input
//! check       16   the digests of all bodies in this snapshot and the number of the time epoch, added up; the low bits
//! ```
//!
//! What is written for a client that was told of everybody depends on its base alone, so it serves all who have it.

use derive_where::derive_where;

use crate::game::Game;
use crate::id::PlayerId;
use crate::model::{Body, Input};
use crate::snapshot::departed::Departed;
use crate::snapshot::gaps::{Gaps, write_count};
use crate::snapshot::kept::Kept;
use crate::snapshot::section::{Cost, Motion, Section};
use crate::snapshot::turnover::{attendance, is_unchanged, write_turnover};
use crate::tick::{Epoch, Tick};
use crate::wire::BitWriter;

/// Of those who left or joined there are usually none.
pub(crate) const WHO_ORDER: u32 = 0;
/// Players are numbered as they come, so most numbers are near the one before.
pub(crate) const PLAYER_ORDER: u32 = 2;

/// What a snapshot builds on: one of this tick, which told of these players.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base<'a> {
    pub(crate) tick: Tick,
    pub(crate) roster: &'a [PlayerId],
}

/// A body that is in a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    /// Its place among the bodies of the room.
    pub(crate) body: usize,
    pub(crate) on: On,
}

/// What a body is told against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The base, where it has this place.
    Base(usize),
    /// An earlier snapshot.
    Known(Tick),
    /// Nothing.
    Blank,
}

/// Writes the bodies of a room as they are at the end of `tick`.
#[derive_where(Debug)]
pub(crate) struct Telling<'a, G: Game> {
    pub(crate) tick: Tick,
    pub(crate) epoch: Epoch,
    /// Ticks of history.
    pub(crate) history: u32,
    /// In order of player.
    pub(crate) bodies: &'a [Kept<G>],
    pub(crate) section: &'a mut Section<G>,
}

impl<G: Game> Telling<'_, G> {
    /// How many ticks ago that was, less one, if a snapshot of then can be built on.
    pub(crate) fn ago(&self, tick: Tick) -> Option<u32> {
        ago(self.tick, tick, self.history)
    }

    /// Bits of that.
    fn ago_bits(&self) -> u32 {
        self.history.ilog2()
    }

    /// Whether it takes fewer states to have the reader move everybody together: the rules then account for contact,
    /// but each time that the world altered a body has to be told, for the others met it as it was in between.
    fn is_joint_cheaper<'k>(&self, baseline: Tick, mut everybody: impl Iterator<Item = &'k Kept<G>>) -> bool {
        let alone: usize = self.bodies.iter().map(|kept| kept.states_since(baseline, Motion::Alone)).sum();
        let joint = everybody.try_fold(0, |joint, kept| {
            Some(joint + kept.states_since(baseline, Motion::Joint)).filter(|joint| *joint <= alone)
        });
        joint.is_some()
    }

    /// Makes `chosen` every body, each on the base if it was there all the time since.
    pub(crate) fn choose_all(&self, base: Option<Base<'_>>, chosen: &mut Vec<Chosen>) {
        let on = |kept: &Kept<G>| match base.filter(|base| kept.has(base.tick)) {
            Some(base) => base.roster.binary_search(&kept.player).map_or(On::Blank, On::Base),
            None => On::Blank,
        };
        chosen.clear();
        chosen.extend(self.bodies.iter().enumerate().map(|(body, kept)| Chosen { body, on: on(kept) }));
    }

    /// Writes all bodies for readers who know all of them from the snapshot of `baseline` on. Gives false, and writes
    /// nothing, if another way is cheaper.
    pub(crate) fn write_same(&mut self, baseline: Tick, bits: &mut BitWriter<'_>) -> bool {
        if !self.is_joint_cheaper(baseline, self.bodies.iter()) {
            return false;
        }
        self.write_base_tick(baseline, bits);
        bits.write_flag(true);
        bits.write_flag(true);
        self.section.begin(Motion::Joint, baseline, self.tick.since(baseline), self.bodies.len());
        for (place, kept) in self.bodies.iter().enumerate() {
            self.add_joint(place, baseline, kept);
        }
        self.section.write(bits);
        self.write_check(self.bodies.iter(), bits);
        true
    }

    /// The same for readers who know everybody of `base`, of whom some may have left and others joined.
    pub(crate) fn write_changed(
        &mut self,
        base: Base<'_>,
        departed: &Departed<G>,
        bits: &mut BitWriter<'_>,
    ) -> bool {
        let Some(everybody) = attendance(base, self.bodies, departed) else { return false };
        if is_unchanged(&everybody) {
            return self.write_same(base.tick, bits);
        }
        if !self.is_joint_cheaper(base.tick, everybody.iter().map(|attendant| attendant.kept)) {
            return false;
        }
        let ticks = self.tick.since(base.tick);
        self.write_base_tick(base.tick, bits);
        bits.write_flag(true);
        bits.write_flag(false);
        write_turnover(&everybody, base.tick, ticks, bits);
        self.section.begin(Motion::Joint, base.tick, ticks, everybody.len());
        for (place, attendant) in everybody.iter().enumerate() {
            self.add_joint(place, attendant.since, attendant.kept);
        }
        self.section.write(bits);
        self.write_check(self.bodies.iter(), bits);
        true
    }

    fn write_check<'k>(&self, bodies: impl Iterator<Item = &'k Kept<G>>, bits: &mut BitWriter<'_>)
    where
        G: 'k,
    {
        let epoch = u64::from(self.epoch.number());
        let check = bodies.fold(epoch, |sum, kept| sum.wrapping_add(kept.digest));
        bits.write(u32::try_from(check & 0xffff).unwrap_or(0), 16);
    }

    fn write_base_tick(&self, baseline: Tick, bits: &mut BitWriter<'_>) {
        bits.write_flag(true);
        bits.write(self.ago(baseline).unwrap_or(0), self.ago_bits());
    }

    fn add_joint(&mut self, place: usize, since: Tick, kept: &Kept<G>) {
        if !kept.goes_on(since, Motion::Joint) {
            self.section.add(place, since, &kept.history);
        }
    }

    /// Writes the `chosen` bodies, which are in order.
    pub(crate) fn write_chosen(
        &mut self,
        base: Option<Base<'_>>,
        chosen: &[Chosen],
        bits: &mut BitWriter<'_>,
    ) {
        match base {
            Some(base) => {
                self.write_base_tick(base.tick, bits);
                bits.write_flag(false);
                self.write_base(base, chosen, bits);
            }
            None => bits.write_flag(false),
        }
        let others = || chosen.iter().filter(|chosen| !matches!(chosen.on, On::Base(_)));
        write_count(u32::try_from(others().count()).unwrap_or(0), WHO_ORDER, bits);
        let mut next = 0;
        for other in others() {
            let Some(kept) = self.bodies.get(other.body) else { continue };
            let number = u32::from(kept.player.number());
            write_count(number.saturating_sub(next), PLAYER_ORDER, bits);
            next = number + 1;
            self.write_other(other, bits);
        }
        self.write_check(chosen.iter().filter_map(|chosen| self.bodies.get(chosen.body)), bits);
    }

    fn write_base(&mut self, base: Base<'_>, chosen: &[Chosen], bits: &mut BitWriter<'_>) {
        let places = base.roster.len();
        let on_base = chosen.iter().filter_map(|chosen| match chosen.on {
            On::Base(place) => Some((place, self.bodies.get(chosen.body)?)),
            On::Known(_) | On::Blank => None,
        });
        let left_out = u32::try_from(places.saturating_sub(on_base.clone().count())).unwrap_or(0);
        write_count(left_out, WHO_ORDER, bits);
        let mut gaps = Gaps::new(places as u64, left_out);
        self.section.begin(Motion::Alone, base.tick, self.tick.since(base.tick), places);
        let mut next = 0;
        for (place, kept) in on_base {
            (next..place).for_each(|left_out| gaps.write(left_out as u64, bits));
            next = place + 1;
            if !kept.goes_on(base.tick, Motion::Alone) {
                self.section.add(place, base.tick, &kept.history);
            }
        }
        (next..places).for_each(|left_out| gaps.write(left_out as u64, bits));
        self.section.write(bits);
    }

    fn write_other(&mut self, other: &Chosen, bits: &mut BitWriter<'_>) {
        let Some(kept) = self.bodies.get(other.body) else { return };
        let known = match other.on {
            On::Known(known) => self.ago(known).map(|ago| (known, ago)),
            On::Base(_) | On::Blank => None,
        };
        bits.write_flag(known.is_some());
        if let Some((known, ago)) = known {
            bits.write(ago, self.ago_bits());
            self.section.begin(Motion::Alone, known, self.tick.since(known), 1);
            self.section.add(0, known, &kept.history);
            self.section.write(bits);
        } else if let Some(record) = kept.history.get(self.tick) {
            record.after.write(&G::Body::blank(), bits);
            record.input.last().write(bits);
        }
    }

    /// What a body costs.
    pub(crate) fn cost(&mut self, base: Option<Base<'_>>, chosen: &Chosen) -> Cost {
        match (base, chosen.on, self.bodies.get(chosen.body)) {
            (Some(base), On::Base(place), Some(kept)) => {
                let places = base.roster.len();
                self.section.begin(Motion::Alone, base.tick, self.tick.since(base.tick), places);
                self.section.add(place, base.tick, &kept.history);
                self.section.cost()
            }
            _ => {
                let mut bits = BitWriter::new(&mut []);
                self.write_other(chosen, &mut bits);
                Cost { bits: bits.len_bits(), others: 1, ..Cost::default() }
            }
        }
    }

    /// Bits that a snapshot takes at most if its bodies cost so much.
    pub(crate) fn max_bits(&self, base: Option<Base<'_>>, cost: Cost) -> usize {
        let (places, ticks) = base.map_or((0, 0), |base| (base.roster.len(), self.tick.since(base.tick)));
        // Four counts of up to 16 bits; and to say of whom of the base it does not tell takes at most a bit for each.
        let counts = 4 * (2 * 16 + 1) + places;
        2 + self.ago_bits() as usize
            + counts
            + 16
            + cost.max_bits(places, ticks)
            + self.players_max_bits(cost.others)
    }

    /// Bits that so many players of this room take at most: as if their numbers were equally far apart, for the bits of a
    /// count grow more slowly than it does.
    fn players_max_bits(&self, count: u32) -> usize {
        let last = self.bodies.last().map_or(0, |kept| u32::from(kept.player.number()));
        let apart = last.checked_div(count).unwrap_or(0) + 1;
        let bits = 2 * ((apart + (1 << PLAYER_ORDER)).ilog2() + 1) - PLAYER_ORDER + 1;
        count as usize * bits as usize
    }
}

/// How many ticks before `now` the snapshot of `tick` was, less one, if it can be built on with so much `history`.
pub(crate) fn ago(now: Tick, tick: Tick, history: u32) -> Option<u32> {
    now.since(tick).checked_sub(1).filter(|ago| *ago < history - 1)
}
