//! The places of a section: the bodies that it is about, as the reader has them. `decoder` reads the section itself.
//!
//! Places are copies of the few parts of a history that a section builds on. A reference would tie the list to the
//! histories, and its memory could not be used again for the next snapshot.

use core::ops::Range;
use std::collections::BTreeMap;

use derive_where::derive_where;

use crate::game::Game;
use crate::id::{BodyId, Driver};
use crate::snapshot::crowd::SnapshotError;
use crate::snapshot::encoder::WHO_ORDER;
use crate::snapshot::gaps::{Gaps, read_count};
use crate::snapshot::history::BodyHistory;
use crate::snapshot::scratch::empty;
use crate::snapshot::turnover::{Joined, Turnover};
use crate::tick::Tick;
use crate::wire::{BitReader, WireError};

/// A body that a section is about.
#[derive_where(Clone, Debug)]
pub(crate) struct Place<G: Game> {
    pub(crate) id: BodyId,
    pub(crate) driver: Driver,
    pub(crate) parent: Option<BodyId>,
    /// The body at the end of the baseline, or of the tick in which it joined.
    pub(crate) known: G::Body,
    /// Its input at that moment.
    pub(crate) held: G::Input,
    /// Bodies that it had emitted by then.
    pub(crate) emitted: u32,
    /// The body after the ticks that are known already, and the bodies that it had emitted.
    pub(crate) newest: (G::Body, u32),
    /// The section says nothing of it.
    pub(crate) left_out: bool,
    /// The ticks since the baseline that it was there in, counted from zero. Unless the motion is joint, all.
    pub(crate) present: Range<u32>,
    pub(crate) came: Came,
    /// It is in the snapshot: it has not left.
    pub(crate) there: bool,
}

/// Since when a body has been known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// It is in the baseline.
    Before,
    /// It joined since: the snapshot has its state of that moment.
    Since,
}

/// The histories that a section builds on.
#[derive_where(Clone, Copy)]
pub(crate) struct Known<'a, G: Game> {
    pub(crate) bodies: &'a BTreeMap<BodyId, BodyHistory<G>>,
    pub(crate) baseline: Tick,
    /// Up to this tick, the ticks since the baseline are known already.
    pub(crate) newest: Tick,
    /// Ticks since the baseline.
    pub(crate) ticks: u32,
}

/// The places of one section after the other. All of this is scratch memory.
#[derive_where(Clone, Debug)]
pub(crate) struct Places<G: Game> {
    /// In order of their ids.
    list: Vec<Place<G>>,
    turnover: Turnover<G>,
    /// Indices into the roster of the baseline, in order.
    left_out: Vec<u64>,
}

impl<G: Game> Places<G> {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), turnover: Turnover::none(), left_out: Vec::new() }
    }

    /// The places of the section at hand, in order of their ids.
    pub(crate) fn list(&self) -> &[Place<G>] {
        &self.list
    }

    /// Reads which bodies joined or left in the `ticks` ticks since a snapshot of `roster`. Returns whether none did.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub(crate) fn read_turnover(
        &mut self,
        roster: &[BodyId],
        ticks: u32,
        bits: &mut BitReader<'_>,
    ) -> Result<bool, WireError> {
        self.turnover.clear();
        let same = bits.read_flag()?;
        if !same {
            self.turnover.read(roster, ticks, bits)?;
        }
        Ok(same)
    }

    /// Begins a joint section: about the bodies of `roster`, and those of the turnover that was read.
    ///
    /// # Errors
    /// When a body of the baseline is not known, or one left before it joined.
    pub(crate) fn begin_joint(
        &mut self,
        known: Known<'_, G>,
        roster: &[BodyId],
    ) -> Result<(), SnapshotError> {
        let missing = SnapshotError::MissingBaseline { baseline: known.baseline };
        let mut joined = self.turnover.joined.iter().peekable();
        let mut base = roster.iter().peekable();
        self.list.clear();
        self.list.reserve(roster.len() + self.turnover.joined.len());
        loop {
            let next = base.peek().copied();
            let place = match joined.next_if(|joined| next.is_none_or(|next| joined.id < *next)) {
                Some(joined) => known.joined_place(joined),
                None => match base.next() {
                    Some(id) => known.place(*id).ok_or(missing)?,
                    None => break,
                },
            };
            self.list.push(match self.turnover.left_after(self.list.len()) {
                None => place,
                Some(last) if place.came == Came::Since && last < place.present.start => {
                    return Err(WireError::Invalid { field: "left" }.into());
                }
                Some(last) => Place { present: place.present.start..last, there: false, ..place },
            });
        }
        Ok(())
    }

    /// Reads which bodies of a roster of `length` the snapshot leaves out.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub(crate) fn read_left_out(&mut self, length: usize, bits: &mut BitReader<'_>) -> Result<(), WireError> {
        let count = read_count(WHO_ORDER, bits)?;
        let mut gaps = Gaps::new(length as u64, count);
        self.left_out.clear();
        for _ in 0..count {
            self.left_out.push(gaps.read(bits)?);
        }
        Ok(())
    }

    /// The next section leaves no body out.
    pub(crate) fn leave_none_out(&mut self) {
        self.left_out.clear();
    }

    /// Begins a section about the bodies of `roster`, each alone, except those that were read as left out.
    ///
    /// # Errors
    /// When a body of the baseline is not known.
    pub(crate) fn begin_alone(
        &mut self,
        known: Known<'_, G>,
        roster: &[BodyId],
    ) -> Result<(), SnapshotError> {
        let missing = SnapshotError::MissingBaseline { baseline: known.baseline };
        self.list.clear();
        for (index, id) in (0u64..).zip(roster) {
            let left_out = self.left_out.binary_search(&index).is_ok();
            self.list.push(Place { left_out, ..known.place(*id).ok_or(missing)? });
        }
        Ok(())
    }

    /// Forgets the section, and keeps memory for so many bodies at most.
    pub(crate) fn forget(&mut self, max_bodies: usize) {
        empty(&mut self.list, max_bodies);
        empty(&mut self.left_out, max_bodies);
        self.turnover.forget(max_bodies);
    }
}

impl<G: Game> Known<'_, G> {
    /// A body of the baseline.
    fn place(&self, id: BodyId) -> Option<Place<G>> {
        let history = self.bodies.get(&id)?;
        let (known, newest) = (history.get(self.baseline)?, history.get(self.newest)?);
        Some(Place {
            id,
            driver: history.driver(),
            parent: history.parent(),
            known: known.after,
            held: known.held,
            emitted: known.emitted,
            newest: (newest.after, newest.emitted),
            left_out: false,
            present: 0..self.ticks,
            came: Came::Before,
            there: true,
        })
    }

    fn joined_place(&self, joined: &Joined<G>) -> Place<G> {
        Place {
            id: joined.id,
            driver: joined.driver,
            parent: joined.parent,
            known: joined.record.after,
            held: joined.record.held,
            emitted: joined.record.emitted,
            newest: (joined.record.after, joined.record.emitted),
            left_out: false,
            present: joined.after..self.ticks,
            came: Came::Since,
            there: true,
        }
    }
}
