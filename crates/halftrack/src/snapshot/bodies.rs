//! [`Bodies`]: every body of a room, moved tick by tick, kept for a while, and sent to each client in one datagram.
//!
//! The bits are those of `encoder`. Clients that were sent all bodies share them with all others on the same base. A client
//! whose datagram has no room for all bodies is sent those that have waited longest.

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::game::{Game, Neighbour};
use crate::id::{BodyId, Driver, PlayerId};
use crate::input::TickInput;
use crate::model::{Body, FieldError, Input};
use crate::simulate::{Birth, Moved, TickSimulator};
use crate::snapshot::choice::choose;
use crate::snapshot::departed::{Departed, everybody};
use crate::snapshot::encoder::{Base, Chosen, SnapshotEncoder, ago};
use crate::snapshot::history::{BodyHistory, TickRecord, history_ticks};
use crate::snapshot::ids::BodyKey;
use crate::snapshot::roster::{Member, Rosters};
use crate::snapshot::section::Section;
use crate::snapshot::server_body::{Ended, ServerBody};
use crate::snapshot::shared::{Basis, Shared};
use crate::snapshot::view::{View, Who};
use crate::tick::{Epoch, Tick};
use crate::wire::BitWriter;

/// How long bodies wait for room by turns before everything is told in full: a burst is over by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// The bodies of a room.
#[derive_where(Clone, Debug)]
pub struct Bodies<G: Game> {
    cadence: Cadence,
    simulator: TickSimulator<G>,
    tick: Tick,
    /// Ticks have passed without players: the newest record of each body is from before. See [`Self::wake`].
    asleep: bool,
    epoch: Epoch,
    /// Ticks that are kept.
    history: u32,
    /// The bodies as they stood at the start of the tick at hand.
    before: Vec<Neighbour<G>>,
    /// In order of their ids.
    bodies: Vec<ServerBody<G>>,
    key: BodyKey,
    limits: BodyLimits,
    /// In order of their players.
    owned: Vec<(PlayerId, Owned)>,
    departed: Departed<G>,
    rosters: Rosters,
    /// The newest tick of which a snapshot was written.
    written: Option<Tick>,
    shared: Shared,
    section: Section<G>,
    chosen: Vec<Chosen>,
    escapes: Escapes,
    emissions: Emissions,
    /// Bodies that were born, and that the rules removed, in the newest tick.
    born: Vec<BodyId>,
    ended: Vec<Ended<G>>,
}

/// The bodies of one player.
#[derive(Clone, Debug)]
struct Owned {
    /// In order of their spawn.
    ids: Vec<BodyId>,
    /// Bodies that it ever had.
    spawned: u64,
    /// The tick in which the list last changed.
    changed: Tick,
}

/// The most bodies that a room takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bodies of the room.
    pub max_bodies: usize,
    /// Bodies of one player. All of them are in each of its datagrams, whole.
    pub max_owned: usize,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { max_bodies: 4_096, max_owned: 16 }
    }
}

/// A body that was not spawned. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnRefused {
    /// The room has as many bodies as it takes.
    #[error("the room has {max} bodies, its most: remove one, or raise `max_bodies`")]
    RoomFull {
        /// The limit.
        max: usize,
    },
    /// The player has as many bodies as fit into its datagrams.
    #[error("player {player} owns {max} bodies, the most that its datagrams hold: remove one first")]
    TooManyOwned {
        /// The player.
        player: PlayerId,
        /// The limit.
        max: usize,
    },
    /// No player of this room.
    #[error("player {player} is not in the room")]
    NoSuchPlayer {
        /// The player.
        player: PlayerId,
    },
}

/// A body that was not changed. Nothing else has either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyRefused {
    /// There is no such body: it was never spawned, or it was removed.
    #[error("there is no body {id}: it may have been removed before")]
    NoSuchBody {
        /// The id.
        id: BodyId,
    },
    /// The world does not drive it.
    #[error("body {id} is not driven by the world: spawn it with `Driver::World` to drive it")]
    NotDriven {
        /// The id.
        id: BodyId,
    },
}

/// Fields that left their range, by the rules or by the world, and were put back when their body was settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Escapes {
    /// Their number.
    pub count: u64,
    /// The last of them: the body, the tick, and the field with its problem.
    pub last: Option<(BodyId, Tick, FieldError)>,
}

/// Bodies that rules emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emissions {
    /// Bodies that were born.
    pub born: u64,
    /// Emissions beyond [`crate::Step::MAX_EMISSIONS`] in a tick, or by a body in the tick of its own birth. They are not
    /// made.
    pub refused: u64,
    /// Emissions at or after the end of their step. They are not made.
    pub overdue: u64,
    /// Bodies that were born into a full room, and removed at the end of that tick.
    pub crowded_out: u64,
    /// Births that were written into joint sections, which the rules give for free: only of bodies that the world altered.
    /// A snapshot that serves several clients counts once.
    pub sent_jointly: u64,
}

impl Emissions {
    fn count<G: Game>(&mut self, moved: &Moved<G>) {
        self.refused += u64::from(moved.refused);
        self.overdue += u64::from(moved.overdue);
    }
}

impl Escapes {
    fn add(&mut self, id: BodyId, tick: Tick, problem: FieldError) {
        self.count += 1;
        self.last = Some((id, tick, problem));
    }
}

impl<G: Game> Bodies<G> {
    /// A room without bodies, which stands at the end of `tick`.
    pub fn new(rules: Arc<G>, cadence: Cadence, tick: Tick) -> Self {
        Self {
            cadence,
            simulator: TickSimulator::new(rules, cadence),
            tick,
            asleep: false,
            epoch: Epoch::default(),
            history: history_ticks(cadence),
            before: Vec::new(),
            bodies: Vec::new(),
            key: BodyKey::new([0; 16]),
            limits: BodyLimits::default(),
            owned: Vec::new(),
            departed: Departed::new(),
            rosters: Rosters::new(),
            written: None,
            shared: Shared::default(),
            section: Section::new(),
            chosen: Vec::new(),
            escapes: Escapes::default(),
            emissions: Emissions::default(),
            born: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Snapshots belong to `epoch` from now on: their check covers it.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.shared.clear();
        }
    }

    /// Fields that left their range.
    pub fn escapes(&self) -> Escapes {
        self.escapes
    }

    /// Bodies that rules emitted so far.
    pub fn emissions(&self) -> Emissions {
        self.emissions
    }

    /// The bodies that were born in the newest tick, in order of their births.
    pub fn born(&self) -> &[BodyId] {
        &self.born
    }

    /// The bodies that the rules removed in the newest tick, in order of their ids.
    pub fn ended(&self) -> &[Ended<G>] {
        &self.ended
    }

    /// The same room with another secret for its ids, and other limits.
    #[must_use]
    pub fn with_limits(self, key: BodyKey, limits: BodyLimits) -> Self {
        Self { key, limits, ..self }
    }

    /// Other limits than before: those that a recording was made with.
    pub(crate) fn set_limits(&mut self, limits: BodyLimits) {
        self.limits = limits;
    }

    /// The most bodies.
    pub(crate) fn limits(&self) -> BodyLimits {
        self.limits
    }

    /// The number of bodies that still fit.
    pub(crate) fn vacancies(&self) -> usize {
        self.limits.max_bodies.saturating_sub(self.bodies.len())
    }

    /// Settles a body that is not in the room yet, or in another state than there, and counts a field that left its range.
    fn settle(&mut self, id: BodyId, body: &mut G::Body) {
        if let Some(problem) = body.settle().problem() {
            self.escapes.add(id, self.tick, problem);
        }
    }

    /// A player may own bodies from now on.
    pub fn join(&mut self, player: PlayerId) {
        self.wake();
        let fresh = Owned { ids: Vec::new(), spawned: 0, changed: self.tick };
        match self.owner_place(player) {
            Ok(at) => self.owned.get_mut(at).into_iter().for_each(|(_, owned)| *owned = fresh.clone()),
            Err(at) => self.owned.insert(at, (player, fresh)),
        }
    }

    /// A player is gone, and all its bodies.
    pub fn leave(&mut self, player: PlayerId) {
        let owned = self.owner_place(player).ok().map(|at| self.owned.remove(at));
        for id in owned.into_iter().flat_map(|(_, owned)| owned.ids) {
            let _ = self.remove(id);
        }
    }

    /// Spawns a body, which exists from the end of this tick on, and is settled. Its input is neutral at first.
    ///
    /// # Errors
    /// When the room or the player has no place for it.
    pub fn spawn(&mut self, driver: Driver, mut body: G::Body) -> Result<BodyId, SpawnRefused> {
        self.wake();
        let BodyLimits { max_bodies, max_owned } = self.limits;
        if self.bodies.len() >= max_bodies {
            return Err(SpawnRefused::RoomFull { max: max_bodies });
        }
        let settling = body.settle();
        let id = match driver {
            Driver::Player(player) => {
                let owned = self.owned_by(player).ok_or(SpawnRefused::NoSuchPlayer { player })?;
                if owned.ids.len() >= max_owned {
                    return Err(SpawnRefused::TooManyOwned { player, max: max_owned });
                }
                let spawned = owned.spawned;
                self.fresh_id(|key, salt| key.owned(player, spawned + (salt << 32)))
            }
            Driver::World | Driver::Nothing => {
                let (tick, digest) = (self.tick, body.digest());
                self.fresh_id(|key, salt| key.spawned(tick, digest, salt))
            }
        };
        if let Some(problem) = settling.problem() {
            self.escapes.add(id, self.tick, problem);
        }
        let tick = self.tick;
        if let Some(owned) = self.owned_by_mut(driver) {
            owned.ids.push(id);
            owned.spawned += 1;
            owned.changed = tick;
        }
        let member = Member { id, driver, parent: None };
        let record = TickRecord::sent(G::Input::default(), body, 0);
        self.insert(ServerBody::new(self.cadence, self.tick, member, record));
        self.change_roster();
        Ok(id)
    }

    fn insert(&mut self, body: ServerBody<G>) {
        let at = self.bodies.partition_point(|other| other.id < body.id);
        self.bodies.insert(at, body);
    }

    /// The first id of a row that no body has, and that no snapshot can still name.
    fn fresh_id(&self, mut make: impl FnMut(BodyKey, u64) -> BodyId) -> BodyId {
        let mut salt = 0;
        loop {
            let id = make(self.key, salt);
            let gone = self.departed.bodies().binary_search_by_key(&id, |kept| kept.id).is_ok();
            if self.place(id).is_err() && !gone {
                return id;
            }
            salt += 1;
        }
    }

    /// Removes a body at the end of this tick. Returns its last state.
    ///
    /// # Errors
    /// When there is no such body.
    pub fn remove(&mut self, id: BodyId) -> Result<G::Body, BodyRefused> {
        self.wake();
        let at = self.place(id).map_err(|_| BodyRefused::NoSuchBody { id })?;
        let gone = self.bodies.remove(at);
        let last = *gone.history.latest();
        self.depart(gone);
        self.change_roster();
        Ok(last)
    }

    fn depart(&mut self, gone: ServerBody<G>) {
        let tick = self.tick;
        if let Some(owned) = self.owned_by_mut(gone.driver) {
            owned.ids.retain(|owned| *owned != gone.id);
            owned.changed = tick;
        }
        self.departed.push(gone);
    }

    /// Drives a body by `input` from the end of this tick on, until it is driven by another.
    ///
    /// # Errors
    /// When there is no such body, or the world does not drive it.
    pub fn drive(&mut self, id: BodyId, mut input: G::Input) -> Result<(), BodyRefused> {
        self.wake();
        input.settle();
        let at = self.place(id).map_err(|_| BodyRefused::NoSuchBody { id })?;
        let kept = self.bodies.get_mut(at).filter(|kept| kept.driver == Driver::World);
        let written = self.written == Some(self.tick);
        kept.ok_or(BodyRefused::NotDriven { id })?.drive(self.tick, input, written);
        self.shared.clear();
        Ok(())
    }

    fn place(&self, id: BodyId) -> Result<usize, usize> {
        self.bodies.binary_search_by_key(&id, |kept| kept.id)
    }

    fn owner_place(&self, player: PlayerId) -> Result<usize, usize> {
        self.owned.binary_search_by_key(&player, |(owner, _)| *owner)
    }

    fn owned_by(&self, player: PlayerId) -> Option<&Owned> {
        self.owned.get(self.owner_place(player).ok()?).map(|(_, owned)| owned)
    }

    fn owned_by_mut(&mut self, driver: Driver) -> Option<&mut Owned> {
        let at = self.owner_place(driver.player()?).ok()?;
        self.owned.get_mut(at).map(|(_, owned)| owned)
    }

    /// The bodies of a player, in order of their spawn.
    pub fn owned(&self, player: PlayerId) -> &[BodyId] {
        self.owned_by(player).map(|owned| &*owned.ids).unwrap_or_default()
    }

    /// The same, and whether a client that has the snapshot of `tick` knows that it is these.
    pub(crate) fn owned_since(&self, player: PlayerId, tick: Option<Tick>) -> (&[BodyId], bool) {
        // In the tick of the change itself, a snapshot may have been written before it.
        let owned = self.owned_by(player);
        owned.map_or((&[], false), |owned| (&owned.ids, Some(owned.changed) < tick))
    }

    fn change_roster(&mut self) {
        self.rosters.change(self.bodies.iter().map(ServerBody::member));
        self.shared.clear();
    }

    /// Simulates the next tick: each body moves by its input among the others as they stood at the tick's start. `inputs`
    /// gives the input of a player.
    pub fn advance(&mut self, mut inputs: impl FnMut(PlayerId) -> TickInput<G::Input>) {
        self.wake();
        self.before.clear();
        self.before.extend(self.bodies.iter().map(ServerBody::neighbour));
        self.born.clear();
        self.ended.clear();
        self.tick = self.tick.next();
        self.shared.clear();
        let mut start = self.simulator.start(self.tick, &self.before);
        for (own, kept) in self.bodies.iter_mut().enumerate() {
            let input = match kept.driver {
                Driver::Player(player) => inputs(player),
                Driver::World | Driver::Nothing => TickInput::steady(kept.held()),
            };
            let emitted = kept.emitted();
            if let Some(moved) = start.tick(own, &input, emitted) {
                if let Some(problem) = moved.problem {
                    self.escapes.add(kept.id, self.tick, problem);
                }
                kept.push(TickRecord::moved(input, &moved, emitted));
                self.emissions.count(&moved);
                if let Some(at) = moved.removed {
                    self.ended.push(kept.end(at, &moved));
                }
            }
        }
        let mut born = Vec::new();
        if start.has_births() {
            for nth in 0.. {
                let Some((birth, moved)) = start.birth(nth) else { break };
                let record = TickRecord::moved(TickInput::default(), &moved, 0);
                born.push((ServerBody::born(self.cadence, self.tick, &birth, record), moved));
            }
        }
        if !born.is_empty() || !self.ended.is_empty() {
            self.turn_over(born);
        }
        self.forget();
    }

    /// Takes in the bodies that were born in the newest tick, and removes those that the rules removed in it.
    fn turn_over(&mut self, born: Vec<(ServerBody<G>, Moved<G>)>) {
        // spec: EMIT-01
        while let Some(at) = self.bodies.iter().position(|kept| kept.is_over) {
            let gone = self.bodies.remove(at);
            self.depart(gone);
        }
        for (mut kept, moved) in born {
            if let Some(problem) = moved.problem {
                self.escapes.add(kept.id, self.tick, problem);
            }
            self.emissions.count(&moved);
            if self.place(kept.id).is_ok() {
                // One of 2^48 ids is another body's.
                continue;
            }
            self.emissions.born += 1;
            self.born.push(kept.id);
            if let Some(at) = moved.removed {
                self.ended.push(kept.end(at, &moved));
                self.departed.push(kept);
            } else if self.bodies.len() < self.limits.max_bodies {
                self.insert(kept);
            } else {
                // Clients let it be born by the rules, so they are told that it is gone.
                self.emissions.crowded_out += 1;
                self.departed.push(kept);
            }
        }
        self.change_roster();
    }

    /// Bodies looked at so far, to move them and to look back: a measure of the work done.
    pub fn work(&self) -> u64 {
        self.simulator.work()
    }

    /// No more than so much work is to be done: what is left of a tick is not simulated then, and the bodies are of no use.
    pub(crate) fn limit_work(&mut self, limit: u64) {
        self.simulator.limit_work(limit);
    }

    /// The rules that they move by.
    pub fn rules(&self) -> &Arc<G> {
        self.simulator.rules()
    }

    /// Whether no player is in the room.
    pub fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// The players of the room, in order.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> + '_ {
        self.owned.iter().map(|(player, _)| *player)
    }

    /// Lets `ticks` ticks without players pass at once. Bodies sleep, so it costs the same however many there are.
    pub(crate) fn pass(&mut self, ticks: u32) {
        debug_assert!(self.owned.is_empty(), "players move through every tick");
        self.tick = Tick::new(self.tick.number().saturating_add(ticks));
        self.asleep = true;
        self.shared.clear();
        self.forget();
    }

    /// Begins the history of every body anew, after a sleep. Call it before anything that changes a body or moves it.
    fn wake(&mut self) {
        if core::mem::take(&mut self.asleep) {
            for kept in &mut self.bodies {
                kept.sleep_until(self.cadence, self.tick);
            }
        }
    }

    /// Forgets rosters and bodies that left, as soon as no client can build on them.
    fn forget(&mut self) {
        let oldest = Tick::new(self.tick.number().saturating_sub(self.history));
        self.rosters.forget_before(oldest);
        self.departed.forget_before(oldest);
    }

    /// The world replaces the state of a body at the end of the tick, for these causes. The state is settled.
    ///
    /// # Errors
    /// When there is no such body.
    pub fn alter(&mut self, id: BodyId, mut after: G::Body, causes: Causes) -> Result<(), BodyRefused> {
        self.wake();
        let at = self.place(id).map_err(|_| BodyRefused::NoSuchBody { id })?;
        self.settle(id, &mut after);
        if let Some(kept) = self.bodies.get_mut(at) {
            kept.alter(self.tick, after, causes, self.written == Some(self.tick));
            self.shared.clear();
        }
        Ok(())
    }

    /// The tick at whose end the bodies stand.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// Every body with its record of the tick, in order of the ids.
    pub fn records(&self) -> impl Iterator<Item = (BodyId, Driver, &TickRecord<G>)> {
        self.bodies.iter().filter_map(|kept| Some((kept.id, kept.driver, kept.history.newest_record()?)))
    }

    /// A body at the end of `tick`, if that is kept. In a sleeping room, only the newest tick is.
    pub fn after(&self, id: BodyId, tick: Tick) -> Option<&G::Body> {
        let history = self.history(id)?;
        if self.asleep {
            return (tick == self.tick).then(|| history.latest());
        }
        history.get(tick).map(|record| &record.after)
    }

    /// The number of bodies.
    pub fn count(&self) -> usize {
        self.bodies.len()
    }

    /// A hash of every body at the end of the tick, in order of the ids.
    pub fn digests(&self) -> impl Iterator<Item = (BodyId, Driver, u64)> + '_ {
        self.bodies.iter().map(|kept| (kept.id, kept.driver, kept.digest))
    }

    /// A hash of the bodies of a player at the end of the tick.
    pub(crate) fn digest_of(&self, player: PlayerId) -> u64 {
        let owned = self.owned(player).iter().filter_map(|id| self.bodies.get(self.place(*id).ok()?));
        owned.fold(0, |sum, kept| sum.wrapping_add(kept.digest))
    }

    /// A hash of the bodies that no player owns.
    pub(crate) fn digest_of_others(&self) -> u64 {
        let others = self.bodies.iter().filter(|kept| kept.driver.player().is_none());
        others.fold(0, |sum, kept| sum.wrapping_add(kept.digest))
    }

    /// A body as it was `into` the tick, among the others of then; `None` when that is not kept, or no more work is to be
    /// done.
    pub fn body_at(&mut self, id: BodyId, tick: Tick, into: Duration) -> Option<G::Body> {
        let start = tick.previous()?;
        if self.simulator.is_spent() {
            return None;
        }
        let history = self.history(id)?;
        let input = history.get(tick)?.input;
        let born = history.birth().filter(|born| born.tick == tick).copied();
        let parent = history.parent();
        self.before.clear();
        let mut own = None;
        // Bodies that left since were in the way all the same.
        for (kept, _) in everybody(&self.bodies, &self.departed) {
            let Some(record) = kept.history.get(start).filter(|_| kept.history.newest() >= tick) else {
                continue;
            };
            if kept.id == id {
                own = Some(self.before.len());
            }
            let body = record.after;
            self.before.push(Neighbour { body, ..kept.neighbour() });
        }
        if let Some(born) = born {
            let birth = Birth { id, parent: parent?, at: born.at, body: born.body };
            return self.simulator.part_of_birth(tick, &self.before, &birth, into).map(|moved| moved.after);
        }
        self.simulator.part_of_tick(tick, &self.before, own?, &input, into)
    }

    /// The history of a body.
    pub fn history(&self, id: BodyId) -> Option<&BodyHistory<G>> {
        self.get(id).map(|kept| &kept.history)
    }

    /// A body.
    pub(crate) fn get(&self, id: BodyId) -> Option<&ServerBody<G>> {
        self.bodies.get(self.place(id).ok()?)
    }

    /// The histories of those who have left and are still kept.
    #[cfg(test)]
    pub(crate) fn departed(&self) -> impl Iterator<Item = (BodyId, &BodyHistory<G>)> {
        self.departed.bodies().iter().map(|kept| (kept.id, &kept.history))
    }

    /// Whether the snapshot of `tick` was sent to the client of `view`, not too long ago, with body `id` in it.
    pub(crate) fn was_shown(&self, view: &View, id: BodyId, tick: Tick) -> bool {
        view.was_shown(id, tick, &self.rosters)
    }

    /// Writes what the client of `view` is to know of all bodies, in at most `max_bits`: once per tick. What does not fit
    /// waits, and comes before what has waited for less.
    pub fn write(&mut self, view: &mut View, max_bits: usize, bits: &mut BitWriter<'_>) {
        self.written = Some(self.tick);
        let shared = self.basis(view).is_some_and(|basis| self.write_shared(basis, max_bits, bits));
        if !shared {
            self.write_apart(view, max_bits, bits);
            return;
        }
        view.send(self.tick, Who::All(self.rosters.current()), Vec::new(), self.history as usize);
        self.rosters.send(self.tick);
    }

    /// Writes everybody in full for the client of `view`, for a lane that loses nothing: what is written next builds on it,
    /// acknowledged or not. In this tick [`Self::write`] is not to be called for that client any more: it would tell of
    /// fewer by the same number. Gives false, and writes nothing, if it takes more than `max_bits`.
    pub fn write_full(&mut self, view: &mut View, max_bits: usize, bits: &mut BitWriter<'_>) -> bool {
        let fits = self.write_shared(None, max_bits, bits);
        if fits {
            self.written = Some(self.tick);
            view.send_surely(self.tick, Who::All(self.rosters.current()), self.history as usize);
            self.rosters.send(self.tick);
        }
        fits
    }

    /// Counts and the check of a full state, bytes.
    const FULL_REST: usize = 32;
    /// Of each body in a full state: flags, id, driver and parent, its state, an input, and the count of its emissions.
    const FULL_EACH: usize =
        (G::Body::MAX_BITS + 2 * BodyId::BITS as usize + 4 + 41 + G::Input::MAX_BITS).div_ceil(8);

    /// Bytes that all bodies in full take at most.
    pub(crate) fn full_bytes(&self) -> usize {
        Self::FULL_REST + self.bodies.len() * Self::FULL_EACH
    }

    /// The most bodies that a full state of so many bytes can always hold.
    pub(crate) const fn most_in_full(bytes: usize) -> usize {
        bytes.saturating_sub(Self::FULL_REST) / Self::FULL_EACH
    }

    /// Whether the client of `view` will not come to know everybody by snapshots that have no room for them: it has had
    /// such ones for a second, or just now and has nothing to build on.
    pub fn needs_full(&self, view: &View) -> bool {
        if view.incomplete() == 0 {
            return false;
        }
        let under_way = view.under_way().is_some_and(|tick| ago(self.tick, tick, self.history).is_some());
        let patience = self.base(view).map_or(0, |_| self.cadence.ticks_in(PATIENCE));
        !under_way && view.incomplete() > patience
    }

    /// What the client's snapshot builds on, and whom that told of; none when it has to begin anew.
    fn base<'a>(&'a self, view: &'a View) -> Option<(Base<'a>, &'a Who)> {
        let (tick, who) = view.base()?;
        ago(self.tick, tick, self.history)?;
        Some((Base { tick, roster: who.members(&self.rosters)? }, who))
    }

    /// The same, if it is shared with others. If it told of some only, an older one that told of everybody is tried first:
    /// from there all can be moved together, which the newer one would need states for.
    fn basis(&self, view: &View) -> Option<Basis> {
        match self.base(view) {
            None => Some(None),
            Some((base, Who::All(number))) => Some(Some((base.tick, *number))),
            Some((_, Who::Some(_))) => {
                let (tick, number) = view.complete_base()?;
                ago(self.tick, tick, self.history)?;
                self.rosters.members(number).map(|_| Some((tick, number)))
            }
        }
    }

    /// Writes the snapshot of everybody. Gives false, and writes nothing, if it takes more than `max_bits`.
    fn write_shared(&mut self, basis: Basis, max_bits: usize, bits: &mut BitWriter<'_>) -> bool {
        let Self {
            tick, epoch, history, bodies, departed, section, chosen, rosters, shared, emissions, ..
        } = self;
        let mut encoder = SnapshotEncoder { tick: *tick, epoch: *epoch, history: *history, bodies, section };
        shared.copy(basis, max_bits, bits, |bits| {
            let base = basis.and_then(|(tick, number)| Some(Base { tick, roster: rosters.members(number)? }));
            // Whoever was told of the current roster knows everybody who has been here since.
            let joint = base.is_some_and(|base| match basis {
                Some((_, number)) if number == rosters.current() => encoder.write_same(base.tick, bits),
                _ => encoder.write_changed(base, departed, &mut emissions.sent_jointly, bits),
            });
            if !joint {
                encoder.choose_all(base, chosen);
                encoder.write_chosen(base, chosen, bits);
            }
        })
    }

    /// Writes as much as there is room for, for one client: rare, so it may take its time.
    fn write_apart(&mut self, view: &mut View, max_bits: usize, bits: &mut BitWriter<'_>) {
        // A base whose bodies take too much room to list is of no use. Each body can still build on it.
        let base = self.base(view).filter(|(base, _)| base.roster.len() <= max_bits / 2);
        let base = base.map(|(base, _)| (base.tick, base.roster.to_vec()));
        let base = base.as_ref().map(|(tick, roster)| Base { tick: *tick, roster });
        let Self { tick, epoch, history, bodies, section, chosen, rosters, .. } = self;
        let mut encoder = SnapshotEncoder { tick: *tick, epoch: *epoch, history: *history, bodies, section };
        let waiting = choose(&mut encoder, base, view, rosters, max_bits, chosen);
        encoder.write_chosen(base, chosen, bits);
        let who = if waiting.is_empty() {
            rosters.send(*tick);
            Who::All(rosters.current())
        } else {
            let members = chosen.iter().filter_map(|chosen| bodies.get(chosen.body));
            Who::Some(members.map(ServerBody::member).collect())
        };
        view.send(*tick, who, waiting, *history as usize);
    }
}
