//! Every body of a room, as a client is told of them. Reads what `telling` writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::cadence::Cadence;
use crate::id::PlayerId;
use crate::snapshot::body::BodyCode;
use crate::snapshot::draft::{About, Draft, Place};
use crate::snapshot::gaps::{Gaps, read_count};
use crate::snapshot::history::{BodyHistory, history_ticks};
use crate::snapshot::section::Motion;
use crate::snapshot::telling::{PLAYER_ORDER, WHO_ORDER};
use crate::snapshot::together::Together;
use crate::tick::Tick;
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
#[derive(Clone, Debug)]
pub struct Crowd<G: BodyCode> {
    cadence: Cadence,
    /// Ticks that are kept.
    history: u32,
    together: Together<G>,
    bodies: BTreeMap<PlayerId, BodyHistory<G>>,
    /// Who was in the snapshots that were read, oldest first.
    rosters: VecDeque<(Tick, Arc<[PlayerId]>)>,
}

impl<G: BodyCode> Crowd<G> {
    /// Nobody is known. `alone` is the world without bodies.
    pub fn new(cadence: Cadence, alone: G::Surroundings) -> Self {
        Self {
            cadence,
            history: history_ticks(cadence),
            together: Together::new(cadence, alone),
            bodies: BTreeMap::new(),
            rosters: VecDeque::new(),
        }
    }

    /// The newest snapshot that was read: what is acknowledged.
    pub fn newest(&self) -> Option<Tick> {
        self.rosters.back().map(|(tick, _)| *tick)
    }

    /// The bodies of the newest snapshot.
    pub fn bodies(&self) -> impl Iterator<Item = (PlayerId, &BodyHistory<G>)> {
        let players = self.rosters.back().map(|(_, players)| &**players).unwrap_or_default();
        players.iter().filter_map(|player| self.bodies.get(player).map(|history| (*player, history)))
    }

    /// Reads a snapshot of `tick`.
    ///
    /// # Errors
    /// When it cannot be used; nothing has changed then.
    pub fn read(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> Result<(), SnapshotError> {
        if let Some(newest) = self.newest().filter(|newest| tick <= *newest) {
            return Err(SnapshotError::Stale { newest });
        }
        let mut draft = Draft::new();
        let mut same = None;
        if bits.read_flag()? {
            let baseline = self.read_baseline(tick, bits)?;
            let roster = self.rosters.iter().rev().find(|(read, _)| *read == baseline);
            let roster = roster.ok_or(SnapshotError::MissingBaseline { baseline })?;
            let roster = Arc::clone(&roster.1);
            if bits.read_flag()? {
                self.read_joint(tick, baseline, &roster, &mut draft, bits)?;
                same = Some(roster);
            } else {
                let left_out = read_left_out(roster.len(), bits)?;
                self.read_alone(tick, baseline, &roster, &left_out, &mut draft, bits)?;
            }
        }
        if same.is_none() {
            let mut next = 0;
            for _ in 0..read_count(WHO_ORDER, bits)? {
                let player = read_player(next, bits)?;
                next = u32::from(player.number()) + 1;
                self.read_other(tick, player, &mut draft, bits)?;
            }
            draft.sort()?;
        }
        if bits.read(16)? != draft.check() {
            return Err(SnapshotError::CheckFailed);
        }
        let roster = same.unwrap_or_else(|| draft.bodies().map(|(player, ..)| player).collect());
        self.take(tick, roster, &draft);
        Ok(())
    }

    fn read_baseline(&self, tick: Tick, bits: &mut BitReader<'_>) -> Result<Tick, WireError> {
        let ago = bits.read(self.history.ilog2())?;
        let number = tick.number().checked_sub(ago + 1);
        number.map(Tick::new).ok_or(WireError::Invalid { field: "ago" })
    }

    /// All bodies of the base, among each other.
    fn read_joint(
        &mut self,
        tick: Tick,
        baseline: Tick,
        roster: &Arc<[PlayerId]>,
        draft: &mut Draft<G>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), SnapshotError> {
        // What was read since then of the same bodies was found to be true, and need not be found again.
        let newest =
            self.rosters.back().filter(|(_, players)| players == roster).map_or(baseline, |newest| newest.0);
        let place = |player: &PlayerId| {
            let history = self.bodies.get(player)?;
            let (known, newest) = (history.get(baseline)?, &history.get(newest)?.after);
            Some(Place { player: *player, known, newest, left_out: false })
        };
        let places: Option<Vec<_>> = roster.iter().map(place).collect();
        let about = About {
            motion: Motion::Joint,
            baseline,
            ticks: tick.since(baseline),
            known_ticks: newest.since(baseline),
            places: &places.ok_or(SnapshotError::MissingBaseline { baseline })?,
        };
        Ok(draft.read(&about, &mut self.together, bits)?)
    }

    /// Bodies of `roster`, each alone, except those who are left out (in order).
    fn read_alone(
        &mut self,
        tick: Tick,
        baseline: Tick,
        roster: &[PlayerId],
        left_out: &[u64],
        draft: &mut Draft<G>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), SnapshotError> {
        let place = |(place, player): (u64, &PlayerId)| {
            let known = self.bodies.get(player).and_then(|history| history.get(baseline))?;
            let left_out = left_out.binary_search(&place).is_ok();
            Some(Place { player: *player, known, newest: &known.after, left_out })
        };
        let places: Option<Vec<_>> = (0..).zip(roster).map(place).collect();
        let about = About {
            motion: Motion::Alone,
            baseline,
            ticks: tick.since(baseline),
            known_ticks: 0,
            places: &places.ok_or(SnapshotError::MissingBaseline { baseline })?,
        };
        Ok(draft.read(&about, &mut self.together, bits)?)
    }

    /// A body that was not in the base.
    fn read_other(
        &mut self,
        tick: Tick,
        player: PlayerId,
        draft: &mut Draft<G>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), SnapshotError> {
        if bits.read_flag()? {
            let baseline = self.read_baseline(tick, bits)?;
            return self.read_alone(tick, baseline, &[player], &[], draft, bits);
        }
        Ok(draft.read_full(player, tick, bits)?)
    }

    fn take(&mut self, tick: Tick, roster: Arc<[PlayerId]>, draft: &Draft<G>) {
        for (player, first, records) in draft.bodies() {
            for (at, record) in first.onwards().zip(records) {
                let history = self.bodies.entry(player);
                history
                    .or_insert_with(|| BodyHistory::new(self.cadence, at, record.input, record.after))
                    .insert(at, *record);
            }
        }
        if self.rosters.len() >= self.history as usize {
            self.rosters.pop_front();
        }
        self.rosters.push_back((tick, roster));
        // Whoever has not been told of for so long cannot be built on any more.
        self.bodies.retain(|_, history| tick.since(history.newest()) < self.history);
    }

    /// Every body that is kept, in the newest snapshot or not, in order of player.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (PlayerId, &BodyHistory<G>)> {
        self.bodies.iter().map(|(player, history)| (*player, history))
    }
}

/// The number of a player, at least `next`.
fn read_player(next: u32, bits: &mut BitReader<'_>) -> Result<PlayerId, WireError> {
    let number = u16::try_from(next + read_count(PLAYER_ORDER, bits)?);
    number.map(PlayerId::new).map_err(|_| WireError::Invalid { field: "player" })
}

/// Places of a roster of `length`, in order.
fn read_left_out(length: usize, bits: &mut BitReader<'_>) -> Result<Vec<u64>, WireError> {
    let count = read_count(WHO_ORDER, bits)?;
    let mut gaps = Gaps::new(length as u64, count);
    let mut places = Vec::new();
    for _ in 0..count {
        places.push(gaps.read(bits)?);
    }
    Ok(places)
}
