//! [`Crowd`]: all bodies of a room as a client has them. Reads the snapshots that `encoder` writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use derive_where::derive_where;
use serde::Serialize;

use crate::cadence::Cadence;
use crate::game::Game;
use crate::id::BodyId;
use crate::saved::{Unrestorable, ensure};
use crate::simulate::TickSimulator;
use crate::snapshot::decoder::{About, Decoded, SnapshotDecoder};
use crate::snapshot::encoder::{WHO_ORDER, place_bits};
use crate::snapshot::gaps::read_count;
use crate::snapshot::history::{BodyHistory, SavedHistory, history_ticks};
use crate::snapshot::places::{Known, Places};
use crate::snapshot::section::Motion;
use crate::tick::{Epoch, Tick};
use crate::time::ServerTime;
use crate::wire::{BitReader, WireError};

/// Why a snapshot could not be used. Nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bits mean nothing.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It builds on what this client does not have: full state is to be asked for.
    #[error("the snapshot builds on one of tick {baseline}, which is not here")]
    MissingBaseline {
        /// Which.
        baseline: Tick,
    },
    /// The bodies that came out are not those that went in: the two ends play by different rules.
    #[error("the bodies do not add up to what the server says")]
    CheckFailed,
    /// Not newer than what has been read.
    #[error("the snapshot is not newer than the one of tick {newest}")]
    Stale {
        /// The newest.
        newest: Tick,
    },
}

/// What a client knows of the bodies of a room.
#[derive_where(Clone, Debug)]
pub struct Crowd<G: Game> {
    cadence: Cadence,
    /// The time epoch of the next snapshot.
    epoch: Epoch,
    /// Ticks that are kept.
    history: u32,
    simulator: TickSimulator<G>,
    bodies: BTreeMap<BodyId, BodyHistory<G>>,
    /// The ids of the bodies of the snapshots that were read, oldest first.
    rosters: VecDeque<(Tick, Arc<[BodyId]>)>,
    /// The newest snapshot has all bodies of the room.
    complete: bool,

    // Scratch memory, empty between snapshots: see [`Self::forget`].
    places: Places<G>,
    decoder: SnapshotDecoder<G>,
}

impl<G: Game> Crowd<G> {
    /// Nobody is known.
    pub fn new(rules: Arc<G>, cadence: Cadence) -> Self {
        Self {
            cadence,
            epoch: Epoch::default(),
            history: history_ticks(cadence),
            simulator: TickSimulator::new(rules, cadence),
            bodies: BTreeMap::new(),
            rosters: VecDeque::new(),
            complete: false,
            places: Places::new(),
            decoder: SnapshotDecoder::new(),
        }
    }

    /// The newest snapshot that was read: what is acknowledged.
    pub fn newest(&self) -> Option<Tick> {
        self.rosters.back().map(|(tick, _)| *tick)
    }

    /// The bodies of the newest snapshot.
    pub fn bodies(&self) -> impl Iterator<Item = (BodyId, &BodyHistory<G>)> {
        let ids = self.rosters.back().map(|(_, ids)| &**ids).unwrap_or_default();
        ids.iter().filter_map(|id| self.bodies.get(id).map(|history| (*id, history)))
    }

    /// A body of the newest snapshot.
    pub fn body(&self, id: BodyId) -> Option<&BodyHistory<G>> {
        let (_, ids) = self.rosters.back()?;
        ids.binary_search(&id).ok().and_then(|_| self.bodies.get(&id))
    }

    /// A body that is kept, in the newest snapshot or not.
    pub(crate) fn any_body(&self, id: BodyId) -> Option<&BodyHistory<G>> {
        self.bodies.get(&id)
    }

    /// Whether the newest snapshot proves that there is no body `id` any more: it has all bodies, or that one has been
    /// missing from all snapshots for as long as any is kept.
    pub fn is_gone(&self, id: BodyId) -> bool {
        let is_in = |(_, ids): &(Tick, Arc<[BodyId]>)| ids.binary_search(&id).is_ok();
        !self.rosters.back().is_some_and(is_in) && (self.complete || !self.bodies.contains_key(&id))
    }

    /// The last moment that is known of a body, in the newest snapshot or not.
    pub(crate) fn end_of(&self, id: BodyId) -> Option<ServerTime> {
        let history = self.bodies.get(&id)?;
        let last = history.newest();
        Some(match history.ended() {
            Some(ended) => self.cadence.start_of(last) + ended,
            None => self.cadence.end_of(last),
        })
    }

    /// Bodies that were born and ended after the snapshot before the newest one, so that no snapshot lists them.
    pub(crate) fn fleeting(&self) -> impl Iterator<Item = (BodyId, &BodyHistory<G>)> {
        let ids = self.rosters.back().map(|(_, ids)| &**ids).unwrap_or_default();
        let all = ids.len() == self.bodies.len();
        let others = self.bodies.iter().filter(move |(id, history)| {
            !all && history.ended().is_some() && history.birth().is_some() && ids.binary_search(id).is_err()
        });
        others.map(|(id, history)| (*id, history))
    }

    /// The next snapshots claim to belong to `epoch`: their check proves it.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    /// Reads a snapshot of `tick`.
    ///
    /// # Errors
    /// When it cannot be used; nothing has changed then.
    pub fn read(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> Result<(), SnapshotError> {
        if let Some(newest) = self.newest().filter(|newest| tick <= *newest) {
            return Err(SnapshotError::Stale { newest });
        }
        let read = self.decode(tick, bits);
        if read.is_ok() {
            self.take(tick);
        }
        self.forget();
        read
    }

    /// Reads a snapshot into the decoder, and checks it.
    fn decode(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> Result<(), SnapshotError> {
        let mut joint = false;
        if bits.read_flag()? {
            let baseline = self.read_baseline(tick, bits)?;
            let roster = self.rosters.iter().rev().find(|(read, _)| *read == baseline);
            let roster = roster.ok_or(SnapshotError::MissingBaseline { baseline })?;
            let roster = Arc::clone(&roster.1);
            joint = bits.read_flag()?;
            if joint {
                self.read_joint(tick, baseline, &roster, bits)?;
                // Bodies that were born since come last.
                self.decoder.sort()?;
            } else {
                self.places.read_left_out(roster.len(), bits)?;
                self.read_alone(tick, baseline, &roster, bits)?;
            }
        }
        let mut complete = true;
        if !joint {
            complete = bits.read_flag()?;
            for _ in 0..read_count(WHO_ORDER, bits)? {
                self.read_other(tick, bits)?;
            }
            self.decoder.sort()?;
        }
        if bits.read(16)? != self.decoder.check(self.epoch) {
            return Err(SnapshotError::CheckFailed);
        }
        self.complete = complete;
        Ok(())
    }

    fn read_baseline(&self, tick: Tick, bits: &mut BitReader<'_>) -> Result<Tick, WireError> {
        let ago = bits.read(self.history.ilog2())?;
        let number = tick.number().checked_sub(ago + 1);
        number.map(Tick::new).ok_or(WireError::Invalid { field: "ago" })
    }

    /// Reads all bodies that were there since the baseline, each moved among the others.
    fn read_joint(
        &mut self,
        tick: Tick,
        baseline: Tick,
        roster: &Arc<[BodyId]>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), SnapshotError> {
        let ticks = tick.since(baseline);
        let same = self.places.read_turnover(roster, ticks, bits)?;
        // The check of a newer snapshot with the same bodies has proved its ticks right: they are not moved again.
        let newest = self.rosters.back().filter(|(_, players)| same && players == roster);
        let newest = newest.map_or(baseline, |newest| newest.0);
        self.places.begin_joint(Known { bodies: &self.bodies, baseline, newest, ticks }, roster)?;
        let places = self.places.list();
        let known_ticks = newest.since(baseline);
        let about = About { motion: Motion::Joint, baseline, ticks, known_ticks, places };
        Ok(self.decoder.read(&about, &mut self.simulator, bits)?)
    }

    /// Reads the bodies of `roster` but for those left out, each moved as if it were alone.
    fn read_alone(
        &mut self,
        tick: Tick,
        baseline: Tick,
        roster: &[BodyId],
        bits: &mut BitReader<'_>,
    ) -> Result<(), SnapshotError> {
        let ticks = tick.since(baseline);
        self.places.begin_alone(Known { bodies: &self.bodies, baseline, newest: baseline, ticks }, roster)?;
        let about =
            About { motion: Motion::Alone, baseline, ticks, known_ticks: 0, places: self.places.list() };
        Ok(self.decoder.read(&about, &mut self.simulator, bits)?)
    }

    /// Reads a body that is not in the baseline, or is left out there.
    fn read_other(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> Result<(), SnapshotError> {
        if bits.read_flag()? {
            let baseline = self.read_baseline(tick, bits)?;
            let roster = self.rosters.iter().rev().find(|(read, _)| *read == baseline);
            let (_, roster) = roster.ok_or(SnapshotError::MissingBaseline { baseline })?;
            let place = bits.read(place_bits(roster.len()))?;
            let id = *roster.get(place as usize).ok_or(WireError::Invalid { field: "place" })?;
            self.places.leave_none_out();
            return self.read_alone(tick, baseline, &[id], bits);
        }
        Ok(self.decoder.read_full(tick, bits)?)
    }

    /// Takes the bodies of the decoder over.
    fn take(&mut self, tick: Tick) {
        for Decoded { member, first, records, birth, ended } in self.decoder.bodies() {
            let Some(oldest) = records.first() else { continue };
            let fresh =
                || BodyHistory::begin(self.cadence, first, member.driver, *oldest).emitted_by(member.parent);
            let history = self.bodies.entry(member.id).or_insert_with(fresh);
            for (at, record) in first.onwards().zip(records) {
                history.insert(at, *record);
            }
            if let Some(birth) = &birth {
                history.set_birth(first, birth);
            }
            if let Some(ended) = ended {
                history.set_ended(ended);
            }
        }
        let roster = self.decoded_roster();
        if self.rosters.len() >= self.history as usize {
            self.rosters.pop_front();
        }
        self.rosters.push_back((tick, roster));
        // No snapshot can build on an older state of a body.
        self.bodies.retain(|_, history| tick.since(history.newest()) < self.history);
    }

    /// The ids of the decoder. A list that is kept already is shared: most snapshots have the bodies of the last.
    fn decoded_roster(&self) -> Arc<[BodyId]> {
        let is_same = |ids: &[BodyId]| self.decoder.ids().eq(ids.iter().copied());
        let same = self.rosters.iter().rev().find(|(_, ids)| is_same(ids));
        same.map_or_else(|| self.decoder.ids().collect(), |(_, ids)| Arc::clone(ids))
    }

    /// Empties the scratch memory. It keeps room for the ticks of all bodies that are known, so the next snapshot
    /// allocates nothing. It keeps no more: a snapshot that lies about many bodies is refused, and its memory freed.
    fn forget(&mut self) {
        let max_bodies = self.bodies.len();
        self.places.forget(max_bodies);
        self.decoder.forget(max_bodies, self.history as usize);
        self.simulator.forget(max_bodies);
    }

    /// Every body that is kept, in the newest snapshot or not, in order of the ids.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (BodyId, &BodyHistory<G>)> {
        self.bodies.iter().map(|(id, history)| (*id, history))
    }
}

/// The state of a [`Crowd`]: its bodies, the ids of each snapshot where they are not those of the one before, and whether
/// the newest has all bodies.
pub(crate) type SavedCrowd<G> = (Vec<(BodyId, SavedHistory<G>)>, Vec<(Tick, Option<Vec<BodyId>>)>, bool);

impl<G: Game> Crowd<G> {
    /// Records of all bodies together that are loaded at most: some hundred bytes each.
    const MAX_RECORDS: usize = 1 << 20;

    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        let Self {
            cadence: _,
            epoch: _,
            history: _,
            simulator: _,
            bodies,
            rosters,
            complete,
            places: _,
            decoder: _,
        } = self;
        let bodies: Vec<_> = bodies.iter().map(|(id, history)| (id, history.saved())).collect();
        let mut before: Option<&Arc<[BodyId]>> = None;
        let rosters = rosters.iter().map(|(tick, ids)| {
            let same = before.replace(ids) == Some(ids);
            (tick, (!same).then_some(&**ids))
        });
        (bodies, rosters.collect::<Vec<_>>(), complete)
    }

    pub(crate) fn restore(&mut self, (bodies, rosters, complete): SavedCrowd<G>) -> Result<(), Unrestorable> {
        let few = bodies.len().saturating_mul(self.history as usize) <= Self::MAX_RECORDS;
        ensure(few && rosters.len() <= self.history as usize, "bodies of the room")?;
        self.bodies.clear();
        for (id, history) in bodies {
            self.bodies.insert(id, BodyHistory::restored(self.cadence, history)?);
        }
        self.rosters.clear();
        self.complete = complete;
        let mut before: Arc<[BodyId]> = Vec::new().into();
        for (tick, ids) in rosters {
            before = ids.map_or(before, Into::into);
            let newer = self.newest().is_none_or(|newest| tick > newest);
            ensure(newer && before.is_sorted(), "bodies of snapshots")?;
            self.rosters.push_back((tick, Arc::clone(&before)));
        }
        Ok(())
    }
}
