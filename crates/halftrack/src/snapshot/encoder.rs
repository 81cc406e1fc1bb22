//! [`SnapshotEncoder`]: all bodies of a room in one datagram. `crowd` and `decoder` read.
//!
//! ```text
//! base         1   builds on a snapshot that the client has acknowledged; if so:
//!   ago        A   its age in ticks, less one: A is the base-2 logarithm of the ticks of history, 6 at 20 Hz
//!   joint      1   that snapshot has all bodies of its tick, and this one has all of its own
//!   joint:
//!     same     1   no body came or went since; if not:
//!       joined     count(0): bodies that are not in that snapshot, in order of their ids
//!         member   see below
//!         after O  the tick of its spawn, in ticks after that snapshot: O is the bits of the number of ticks since
//!         full     its state then
//!       left       count(0), and points of a line of all bodies of that snapshot and those that joined, in order of
//!                  their ids
//!         after O  its last tick, in ticks after that snapshot
//!     section      about all of these (see section)
//!   otherwise:
//!     left out     count(0), and points of a line as long as that snapshot has bodies: the ones that are not in this
//!                  snapshot (see gaps)
//!     section      alone, about all of them; it says nothing of those left out
//! unless joint:
//!   all        1   all bodies of the room are in this snapshot
//!   others         count(0): bodies that are not in the base, or are there but left out, in order of their ids
//!     per body:
//!       known   1  builds on an earlier snapshot; if so:
//!         ago   A  its age in ticks, less one
//!         place R  the body's place in it: R is the bits of its number of bodies, less one
//!         section  alone, about this body
//!       full       otherwise: member, and its state in full
//! check       16   the digests of all bodies in this snapshot and the number of the time epoch, added up; the low bits
//!
//! member: the id (48), then its driver: a player (1), and which (16); or else the world (1); or else whether another body
//!         emitted it (1), and which (48)
//! full:   the body against a blank one, its input, and count(0): the bodies that it has emitted
//! ```
//!
//! The bits for a client that was sent all bodies depend on its base alone, so they serve all clients with that base.

use derive_where::derive_where;

use crate::game::Game;
use crate::snapshot::departed::Departed;
use crate::snapshot::gaps::{Gaps, write_count};
use crate::snapshot::roster::{Member, place_of};
use crate::snapshot::section::{Cost, Motion, Section};
use crate::snapshot::server_body::ServerBody;
use crate::snapshot::turnover::{attendance, is_unchanged, write_full, write_member, write_turnover};
use crate::tick::{Epoch, Tick};
use crate::wire::BitWriter;

/// Bodies that joined or left are usually none.
pub(crate) const WHO_ORDER: u32 = 0;

/// The snapshot that another one builds on: its tick, and its bodies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base<'a> {
    pub(crate) tick: Tick,
    pub(crate) roster: &'a [Member],
}

/// A body that is in a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    /// Its place among the bodies of the room.
    pub(crate) body: usize,
    pub(crate) on: On,
}

/// The baseline of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The base, where it has this place.
    Base(usize),
    /// An earlier snapshot, where it has a place among so many.
    Known { tick: Tick, place: usize, places: usize },
    /// None: it is sent in full.
    Blank,
}

/// Writes the bodies of a room as they are at the end of `tick`.
#[derive_where(Debug)]
pub(crate) struct SnapshotEncoder<'a, G: Game> {
    pub(crate) tick: Tick,
    pub(crate) epoch: Epoch,
    /// Ticks of history.
    pub(crate) history: u32,
    /// In order of their ids.
    pub(crate) bodies: &'a [ServerBody<G>],
    pub(crate) section: &'a mut Section<G>,
}

impl<G: Game> SnapshotEncoder<'_, G> {
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
    fn is_joint_cheaper<'k>(
        &self,
        baseline: Tick,
        mut everybody: impl Iterator<Item = &'k ServerBody<G>>,
    ) -> bool {
        let alone: usize = self.bodies.iter().map(|kept| kept.states_since(baseline, Motion::Alone)).sum();
        let joint = everybody.try_fold(0, |joint, kept| {
            Some(joint + kept.states_since(baseline, Motion::Joint)).filter(|joint| *joint <= alone)
        });
        joint.is_some()
    }

    /// Makes `chosen` every body, each on the base if it was there all the time since.
    pub(crate) fn choose_all(&self, base: Option<Base<'_>>, chosen: &mut Vec<Chosen>) {
        let on = |kept: &ServerBody<G>| match base.filter(|base| kept.has(base.tick)) {
            Some(base) => place_of(base.roster, kept.id).map_or(On::Blank, On::Base),
            None => On::Blank,
        };
        chosen.clear();
        chosen.extend(self.bodies.iter().enumerate().map(|(body, kept)| Chosen { body, on: on(kept) }));
    }

    /// Writes all bodies for readers who know all of them from the snapshot of `baseline` on. Gives false, and writes
    /// nothing, if another way is cheaper, or the world acted on a body after that snapshot.
    pub(crate) fn write_same(&mut self, baseline: Tick, bits: &mut BitWriter<'_>) -> bool {
        let revised = self.bodies.iter().any(|kept| kept.is_revised(baseline));
        if revised || !self.is_joint_cheaper(baseline, self.bodies.iter()) {
            return false;
        }
        self.write_base_tick(baseline, bits);
        bits.write_flag(true);
        bits.write_flag(true);
        self.section.begin(Motion::Joint, baseline, self.tick.since(baseline));
        for kept in self.bodies {
            self.add_joint(baseline, kept);
        }
        self.section.write(bits);
        self.write_check(self.bodies.iter(), bits);
        true
    }

    /// The same for readers who know everybody of `base`, of whom some may have left and others joined. Adds the births that
    /// it writes to `births`.
    pub(crate) fn write_changed(
        &mut self,
        base: Base<'_>,
        departed: &Departed<G>,
        births: &mut u64,
        bits: &mut BitWriter<'_>,
    ) -> bool {
        let Some(everybody) = attendance(base, self.bodies, departed) else { return false };
        let unchanged = is_unchanged(&everybody);
        if !self.is_joint_cheaper(base.tick, everybody.iter().map(|attendant| attendant.kept)) {
            return false;
        }
        let ticks = self.tick.since(base.tick);
        self.write_base_tick(base.tick, bits);
        bits.write_flag(true);
        bits.write_flag(unchanged);
        if !unchanged {
            *births += write_turnover(&everybody, base.tick, ticks, bits);
        }
        self.section.begin(Motion::Joint, base.tick, ticks);
        for attendant in &everybody {
            self.add_joint(attendant.since, attendant.kept);
        }
        self.section.write(bits);
        self.write_check(self.bodies.iter(), bits);
        true
    }

    fn write_check<'k>(&self, bodies: impl Iterator<Item = &'k ServerBody<G>>, bits: &mut BitWriter<'_>)
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

    fn add_joint(&mut self, since: Tick, kept: &ServerBody<G>) {
        if kept.goes_on(since, Motion::Joint) {
            self.section.skip(kept.driver);
        } else {
            self.section.add(since, &kept.history);
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
        bits.write_flag(chosen.len() == self.bodies.len());
        let others = || chosen.iter().filter(|chosen| !matches!(chosen.on, On::Base(_)));
        write_count(u32::try_from(others().count()).unwrap_or(0), WHO_ORDER, bits);
        for other in others() {
            self.write_other(other, bits);
        }
        self.write_check(chosen.iter().filter_map(|chosen| self.bodies.get(chosen.body)), bits);
    }

    fn write_base(&mut self, base: Base<'_>, chosen: &[Chosen], bits: &mut BitWriter<'_>) {
        let places = base.roster.len();
        let on_base = chosen.iter().filter_map(|chosen| match chosen.on {
            On::Base(place) => Some((place, self.bodies.get(chosen.body)?)),
            On::Known { .. } | On::Blank => None,
        });
        let left_out = u32::try_from(places.saturating_sub(on_base.clone().count())).unwrap_or(0);
        write_count(left_out, WHO_ORDER, bits);
        let mut gaps = Gaps::new(places as u64, left_out);
        self.section.begin(Motion::Alone, base.tick, self.tick.since(base.tick));
        let mut on_base = on_base.peekable();
        for (place, member) in base.roster.iter().enumerate() {
            match on_base.next_if(|(on, _)| *on == place) {
                Some((_, kept)) if !kept.goes_on(base.tick, Motion::Alone) => {
                    self.section.add(base.tick, &kept.history);
                }
                Some(_) => self.section.skip(member.driver),
                None => {
                    gaps.write(place as u64, bits);
                    self.section.skip(member.driver);
                }
            }
        }
        self.section.write(bits);
    }

    fn write_other(&mut self, other: &Chosen, bits: &mut BitWriter<'_>) {
        let Some(kept) = self.bodies.get(other.body) else { return };
        let known = match other.on {
            On::Known { tick, place, places } => self.ago(tick).map(|ago| (tick, ago, place, places)),
            On::Base(_) | On::Blank => None,
        };
        bits.write_flag(known.is_some());
        if let Some((known, ago, place, places)) = known {
            bits.write(ago, self.ago_bits());
            bits.write(u32::try_from(place).unwrap_or(0), place_bits(places));
            self.section.begin(Motion::Alone, known, self.tick.since(known));
            self.section.add(known, &kept.history);
            self.section.write(bits);
        } else if let Some(record) = kept.history.get(self.tick) {
            write_member(kept.member(), bits);
            write_full(record, bits);
        }
    }

    /// What a body costs.
    pub(crate) fn cost(&mut self, base: Option<Base<'_>>, chosen: &Chosen) -> Cost {
        match (base, chosen.on, self.bodies.get(chosen.body)) {
            (Some(base), On::Base(_), Some(kept)) => {
                self.section.begin(Motion::Alone, base.tick, self.tick.since(base.tick));
                self.section.add(base.tick, &kept.history);
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
        // Five counts of up to 16 bits; and at most a bit for each body of the base, for those left out.
        let counts = 5 * (2 * 16 + 1) + places;
        3 + self.ago_bits() as usize + counts + 16 + cost.max_bits(places, ticks)
    }
}

/// Bits of a place among so many.
pub(crate) fn place_bits(places: usize) -> u32 {
    usize::BITS - places.saturating_sub(1).leading_zeros()
}

/// How many ticks before `now` the snapshot of `tick` was, less one, if it can be built on with so much `history`.
pub(crate) fn ago(now: Tick, tick: Tick, history: u32) -> Option<u32> {
    now.since(tick).checked_sub(1).filter(|ago| *ago < history - 1)
}
