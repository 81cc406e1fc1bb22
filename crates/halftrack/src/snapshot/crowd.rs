//! Every body of a room, as a client is told of them. Reads what `telling` writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::cadence::Cadence;
use crate::exact::{Exact, Loader, Saver, State};
use crate::flight::FlightGame;
use crate::id::PlayerId;
use crate::snapshot::body::BodyCode;
use crate::snapshot::draft::{About, Came, Draft, Place};
use crate::snapshot::gaps::{Gaps, read_count};
use crate::snapshot::history::{BodyHistory, history_ticks};
use crate::snapshot::section::Motion;
use crate::snapshot::telling::WHO_ORDER;
use crate::snapshot::together::Together;
use crate::snapshot::turnover::{Joined, Turnover, read_player};
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

    /// The body of a player, if it is one of those.
    pub fn body(&self, player: PlayerId) -> Option<&BodyHistory<G>> {
        let (_, players) = self.rosters.back()?;
        players.contains(&player).then(|| self.bodies.get(&player)).flatten()
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
        let mut there = None;
        if bits.read_flag()? {
            let baseline = self.read_baseline(tick, bits)?;
            let roster = self.rosters.iter().rev().find(|(read, _)| *read == baseline);
            let roster = roster.ok_or(SnapshotError::MissingBaseline { baseline })?;
            let roster = Arc::clone(&roster.1);
            if bits.read_flag()? {
                there = Some(self.read_joint(tick, baseline, &roster, &mut draft, bits)?);
            } else {
                let left_out = read_left_out(roster.len(), bits)?;
                self.read_alone(tick, baseline, &roster, &left_out, &mut draft, bits)?;
            }
        }
        if there.is_none() {
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
        let roster = there.unwrap_or_else(|| draft.players().collect());
        self.take(tick, roster, &draft);
        Ok(())
    }

    fn read_baseline(&self, tick: Tick, bits: &mut BitReader<'_>) -> Result<Tick, WireError> {
        let ago = bits.read(self.history.ilog2())?;
        let number = tick.number().checked_sub(ago + 1);
        number.map(Tick::new).ok_or(WireError::Invalid { field: "ago" })
    }

    /// Everybody since the base, among each other. Gives who is left of them if that is not who was in the base.
    fn read_joint(
        &mut self,
        tick: Tick,
        baseline: Tick,
        roster: &Arc<[PlayerId]>,
        draft: &mut Draft<G>,
        bits: &mut BitReader<'_>,
    ) -> Result<Arc<[PlayerId]>, SnapshotError> {
        let ticks = tick.since(baseline);
        let same = bits.read_flag()?;
        let turnover = if same { Turnover::none() } else { Turnover::read(roster, ticks, bits)? };
        // What was read since then of the same bodies was found to be true, and need not be found again.
        let newest = self.rosters.back().filter(|(_, players)| same && players == roster);
        let newest = newest.map_or(baseline, |newest| newest.0);
        let known = Known { bodies: &self.bodies, baseline, newest, ticks };
        let about = About {
            motion: Motion::Joint,
            baseline,
            ticks,
            known_ticks: newest.since(baseline),
            places: &known.places(roster, &turnover)?,
        };
        draft.read(&about, &mut self.together, bits)?;
        Ok(if same { Arc::clone(roster) } else { draft.players().collect() })
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
        let ticks = tick.since(baseline);
        let known = Known { bodies: &self.bodies, baseline, newest: baseline, ticks };
        let place = |(place, player): (u64, &PlayerId)| {
            let left_out = left_out.binary_search(&place).is_ok();
            Some(Place { left_out, ..known.place(*player)? })
        };
        let places: Option<Vec<_>> = (0..).zip(roster).map(place).collect();
        let about = About {
            motion: Motion::Alone,
            baseline,
            ticks,
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

/// What is known of the bodies that a snapshot builds on.
struct Known<'a, G: BodyCode> {
    bodies: &'a BTreeMap<PlayerId, BodyHistory<G>>,
    baseline: Tick,
    /// Up to here the ticks since then are known already.
    newest: Tick,
    /// Ticks since the baseline.
    ticks: u32,
}

impl<'a, G: BodyCode> Known<'a, G> {
    /// Everybody who was in the base or joined since, in order of player.
    fn places(
        &self,
        roster: &[PlayerId],
        turnover: &'a Turnover<G>,
    ) -> Result<Vec<Place<'a, G>>, SnapshotError> {
        let missing = SnapshotError::MissingBaseline { baseline: self.baseline };
        let mut joined = turnover.joined.iter().peekable();
        let mut base = roster.iter().peekable();
        let mut places = Vec::with_capacity(roster.len() + turnover.joined.len());
        loop {
            let next = base.peek().copied();
            let place = match joined.next_if(|joined| next.is_none_or(|next| joined.player < *next)) {
                Some(joined) => self.joined_place(joined),
                None => match base.next() {
                    Some(player) => self.place(*player).ok_or(missing)?,
                    None => break,
                },
            };
            places.push(match turnover.left_after(places.len()) {
                None => place,
                // Who joined and left was there for a tick at least, or it would not be told.
                Some(last) if place.came == Came::Since && last <= place.present.start => {
                    return Err(WireError::Invalid { field: "left" }.into());
                }
                Some(last) => Place { present: place.present.start..last, there: false, ..place },
            });
        }
        Ok(places)
    }

    /// A body of the base.
    fn place(&self, player: PlayerId) -> Option<Place<'a, G>> {
        let history = self.bodies.get(&player)?;
        let (known, newest) = (history.get(self.baseline)?, &history.get(self.newest)?.after);
        let present = 0..self.ticks;
        Some(Place { player, known, newest, left_out: false, present, came: Came::Before, there: true })
    }

    fn joined_place(&self, joined: &'a Joined<G>) -> Place<'a, G> {
        Place {
            player: joined.player,
            known: &joined.record,
            newest: &joined.record.after,
            left_out: false,
            present: joined.after..self.ticks,
            came: Came::Since,
            there: true,
        }
    }
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

impl<G: FlightGame> State for Crowd<G> {
    fn save_state(&self, to: &mut Saver) {
        let Self { cadence: _, history: _, together: _, bodies, rosters } = self;
        to.number(bodies.len() as u64);
        for (player, history) in bodies {
            player.save(to);
            history.save(to);
        }
        to.number(rosters.len() as u64);
        let mut before: Option<&Arc<[PlayerId]>> = None;
        for (tick, players) in rosters {
            tick.save(to);
            // Most snapshots are of the same players as the one before.
            let same = before == Some(players);
            same.save(to);
            if !same {
                to.number(players.len() as u64);
                players.iter().for_each(|player| player.save(to));
            }
            before = Some(players);
        }
    }

    fn load_state(&mut self, from: &mut Loader<'_>) -> Result<(), WireError> {
        /// Records of all bodies together: some hundred bytes each.
        const MAX_RECORDS: usize = 1 << 20;
        const INVALID: WireError = WireError::Invalid { field: "crowd" };
        let count = from.count()?;
        if count.saturating_mul(self.history as usize) > MAX_RECORDS {
            return Err(INVALID);
        }
        self.bodies.clear();
        for _ in 0..count {
            self.bodies.insert(PlayerId::load(from)?, BodyHistory::load(self.cadence, from)?);
        }
        self.rosters.clear();
        for _ in 0..from.count()? {
            let tick = Tick::load(from)?;
            let newer = self.newest().is_none_or(|newest| tick > newest);
            let before = self.rosters.back().map(|(_, players)| Arc::clone(players));
            let players = if bool::load(from)? { before.ok_or(INVALID)? } else { Vec::load(from)?.into() };
            if !newer || !players.is_sorted() || self.rosters.len() >= self.history as usize {
                return Err(INVALID);
            }
            self.rosters.push_back((tick, players));
        }
        Ok(())
    }
}
