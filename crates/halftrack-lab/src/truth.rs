//! What really happened: every tick of every body, and every event, as the server's own world has them.
//!
//! [`Recorded`] is a world around another: it changes nothing and writes down what the other did. Knows neither links
//! nor clients.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use halftrack::server::{Audience, Command, CommandRefused, Events, Order, Room, World};
use halftrack::snapshot::{BodyHistory, Course, TickRecord};
use halftrack::wire::WireError;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::{
    BodyId, Cadence, Causes, Driver, Game, Neighbour, PlayerId, Pose as _, Replay, ServerTime, Tick,
    TickInput,
};

/// A world, and a record of what happens in it.
#[derive(Debug)]
pub struct Recorded<W: World> {
    world: W,
    /// An observer: what is noted in it changes nothing in the world, so it needs no permission to change that.
    truth: RefCell<Truth<W::Game>>,
}

impl<W: World> Recorded<W> {
    pub(crate) fn new(world: W, cadence: Cadence) -> Self {
        let rules = Arc::clone(world.rules());
        Self { world, truth: RefCell::new(Truth::new(cadence, rules)) }
    }

    /// The world.
    pub fn world(&self) -> &W {
        &self.world
    }

    pub(crate) fn truth(&self) -> Ref<'_, Truth<W::Game>> {
        self.truth.borrow()
    }

    pub(crate) fn truth_mut(&self) -> RefMut<'_, Truth<W::Game>> {
        self.truth.borrow_mut()
    }
}

impl<W: World> World for Recorded<W> {
    type Game = W::Game;

    fn rules(&self) -> &Arc<W::Game> {
        self.world.rules()
    }

    fn admit(&mut self, login: &Login, resumes: Option<PlayerId>) -> Result<(), LoginRefused> {
        self.world.admit(login, resumes)
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, W::Game>) {
        self.truth.get_mut().untold.insert(player, VecDeque::new());
        self.world.join(player, login, room);
        self.truth.get_mut().spawned(room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, W::Game>, events: &mut Events) {
        self.truth.get_mut().untold.remove(&player);
        self.world.leave(player, room, events);
        self.truth.get_mut().left(player, room, events);
    }

    fn restarted(&mut self, player: PlayerId) {
        // The server has dropped its log of the session: only events from here on are delivered.
        if let Some(untold) = self.truth.get_mut().untold.get_mut(&player) {
            untold.clear();
        }
        self.world.restarted(player);
    }

    fn claims(&self, login: &Login) -> Option<String> {
        self.world.claims(login)
    }

    fn order(&mut self, order: Order<'_, W::Game>) -> Result<(), WireError> {
        self.world.order(order)
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        self.world.command(command)
    }

    fn resolve(&mut self, room: &mut Room<'_, W::Game>, events: &mut Events) {
        self.truth.get_mut().moved(room);
        self.world.resolve(room, events);
        self.truth.get_mut().resolved(room, events);
    }

    fn digest(&self) -> u64 {
        self.world.digest()
    }
}

/// What happened, as far back as anybody asks.
#[derive_where(Debug)]
pub(crate) struct Truth<G: Game> {
    cadence: Cadence,
    #[derive_where(skip(Debug))]
    rules: Arc<G>,
    kept_ticks: u32,
    /// Every body, those included that were removed a short while ago.
    tracks: BTreeMap<BodyId, Track<G>>,
    /// Events that each player is to hear, oldest first: their tick, and a hash.
    untold: BTreeMap<PlayerId, VecDeque<(Tick, u64)>>,
    /// Whether a body of a player has ever moved while its player wanted it to.
    player_moved: bool,
    bodies: Vec<Neighbour<G>>,
    /// Bodies that other bodies emitted, those included that ended a short while ago; and how many came before these.
    emissions: VecDeque<Emission>,
    forgotten: u64,
    /// Bodies that the bodies of each player have emitted.
    emitted: BTreeMap<PlayerId, u64>,
}

/// A body that another one emitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emission {
    pub(crate) id: BodyId,
    pub(crate) parent: BodyId,
    /// The player whose body emitted it, or emitted the body that did.
    pub(crate) player: Option<PlayerId>,
    pub(crate) tick: Tick,
    pub(crate) at: ServerTime,
    /// When the rules or the world removed it.
    pub(crate) end: Option<ServerTime>,
}

#[derive_where(Debug)]
struct Track<G: Game> {
    driver: Driver,
    parent: Option<BodyId>,
    /// Oldest first, without holes; the last is of `newest`.
    records: VecDeque<TickRecord<G>>,
    newest: Tick,
    /// Whether it moved in the newest tick.
    moved: bool,
    /// Whether it was removed.
    gone: bool,
}

impl<G: Game> Track<G> {
    /// A body whose newest tick is `tick`.
    fn new(driver: Driver, tick: Tick, history: &BodyHistory<G>) -> Self {
        // A room without players sleeps: the tick before the first one may be known as well.
        let ticks = tick.previous().into_iter().chain([tick]);
        let records = ticks.filter_map(|tick| history.get(tick)).copied().collect();
        Self { driver, parent: history.parent(), records, newest: tick, moved: true, gone: false }
    }

    fn get(&self, tick: Tick) -> Option<&TickRecord<G>> {
        let back = (tick <= self.newest).then(|| self.newest.since(tick) as usize)?;
        self.records.get(self.records.len().checked_sub(back + 1)?)
    }

    /// Where it was at the start of `tick`, if it moved through it.
    fn start_of(&self, tick: Tick) -> Option<&G::Body> {
        let before = self.get(tick.previous()?)?;
        (self.newest >= tick).then_some(&before.after)
    }

    /// Takes `tick` from its history: the next one, or the newest one as the world has left it.
    fn take(&mut self, tick: Tick, history: &BodyHistory<G>, kept_ticks: u32) {
        let Some(record) = history.get(tick) else { return };
        match self.records.back_mut() {
            Some(newest) if self.newest == tick => *newest = *record,
            Some(_) if self.newest.next() == tick => self.records.push_back(*record),
            _ => *self = Self::new(self.driver, tick, history),
        }
        self.newest = tick;
        if self.records.len() > kept_ticks as usize {
            self.records.pop_front();
        }
        let before = tick.previous().and_then(|tick| self.get(tick));
        self.moved = before.is_none_or(|before| before.after != record.after);
    }
}

/// How an event that a client was told fits what was to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is the next one.
    Next,
    /// It is a later one: so many before it were left out.
    After(usize),
    /// It is none that was still to be told.
    Never,
    /// Its player is gone: it was under way for longer than the session lasted.
    Gone,
}

impl<G: Game> Truth<G> {
    /// Longer than anything is looked back on.
    const KEPT: Duration = Duration::from_secs(8);

    fn new(cadence: Cadence, rules: Arc<G>) -> Self {
        Self {
            cadence,
            rules,
            kept_ticks: cadence.ticks_in(Self::KEPT) + 2,
            tracks: BTreeMap::new(),
            untold: BTreeMap::new(),
            player_moved: false,
            bodies: Vec::new(),
            emissions: VecDeque::new(),
            forgotten: 0,
            emitted: BTreeMap::new(),
        }
    }

    /// Begins a track for every body that has none.
    fn spawned(&mut self, room: &Room<'_, G>) {
        for (id, driver, _) in room.bodies() {
            let Some(history) = room.history(id) else { continue };
            self.tracks.entry(id).or_insert_with(|| Track::new(driver, room.tick(), history));
        }
    }

    /// Every body has moved through the newest tick, and the world has done nothing to it yet. A body that the world
    /// removes at the end of a tick was in the way of the others in it.
    fn moved(&mut self, room: &Room<'_, G>) {
        self.spawned(room);
        self.emitted(room);
        self.take(room);
        if !self.player_moved {
            let mut players = self.tracks.values().filter(|track| track.driver.player().is_some());
            self.player_moved = players.any(|track| self.is_driven(track, room.tick()));
        }
    }

    fn take(&mut self, room: &Room<'_, G>) {
        let end = self.cadence.end_of(room.tick());
        for (id, track) in &mut self.tracks {
            match room.history(*id) {
                Some(history) => track.take(room.tick(), history, self.kept_ticks),
                None if track.gone => {}
                None => {
                    track.gone = true;
                    // The rules did not remove it in this tick, or it is known already: the world did.
                    let emission = self.emissions.iter_mut().rev().find(|emission| emission.id == *id);
                    emission.into_iter().for_each(|emission| {
                        emission.end.get_or_insert(end);
                    });
                }
            }
        }
    }

    /// Notes the births and ends of the newest tick.
    fn emitted(&mut self, room: &Room<'_, G>) {
        let tick = room.tick();
        let ended = |id: BodyId| room.ended().iter().find(move |ended| ended.id == id);
        for id in room.born().iter().copied() {
            let history = room.history(id);
            let parent =
                history.map_or_else(|| ended(id).and_then(|ended| ended.parent), |known| known.parent());
            let Some(parent) = parent else { continue };
            // Of one that was born and ended in this tick, only the end is known.
            let born = history.and_then(|history| history.born()).map(|(_, into)| into);
            let into = born.or(ended(id).map(|ended| ended.at)).unwrap_or_default();
            // A full room removes it at once.
            let over = history.is_none() && ended(id).is_none();
            let player = self.player_of(parent);
            if let Some(player) = player {
                *self.emitted.entry(player).or_default() += 1;
            }
            let at = self.cadence.start_of(tick) + into;
            let end = over.then(|| self.cadence.end_of(tick));
            self.emissions.push_back(Emission { id, parent, player, tick, at, end });
        }
        for ended in room.ended() {
            let emission = self.emissions.iter_mut().rev().find(|emission| emission.id == ended.id);
            let end = self.cadence.start_of(tick) + ended.at;
            emission.into_iter().for_each(|emission| emission.end = Some(end));
        }
        let kept_ticks = self.kept_ticks;
        let is_old = |emission: &Emission| emission.end.is_some() && tick.since(emission.tick) > kept_ticks;
        while self.emissions.front().is_some_and(is_old) {
            self.emissions.pop_front();
            self.forgotten += 1;
        }
    }

    /// The player who owns a body, or the body that emitted it, and so on.
    fn player_of(&self, mut id: BodyId) -> Option<PlayerId> {
        for _ in 0..8 {
            let track = self.tracks.get(&id);
            if let Some(player) = track.and_then(|track| track.driver.player()) {
                return Some(player);
            }
            let emission = || self.emissions.iter().rev().find(|emission| emission.id == id);
            id = track.map_or_else(|| emission().map(|emission| emission.parent), |track| track.parent)?;
        }
        None
    }

    /// An emission by its number, counted from zero. `None` for one that is forgotten, or has not been.
    pub(crate) fn emission(&self, number: u64) -> Option<&Emission> {
        self.emissions.get(usize::try_from(number.checked_sub(self.forgotten)?).ok()?)
    }

    /// The numbers of the emissions that are known: the first, and the next one to come.
    pub(crate) fn emissions(&self) -> std::ops::Range<u64> {
        self.forgotten..self.forgotten + self.emissions.len() as u64
    }

    /// Bodies that the bodies of a player have emitted.
    pub(crate) fn emitted_by(&self, player: PlayerId) -> u64 {
        self.emitted.get(&player).copied().unwrap_or(0)
    }

    /// The body that emitted body `id`, if another one did.
    pub(crate) fn parent(&self, id: BodyId) -> Option<BodyId> {
        self.tracks.get(&id)?.parent
    }

    /// Whether the world replaced the state of a body in the ticks after `after` up to `through`.
    pub(crate) fn was_altered(&self, id: BodyId, after: Tick, through: Tick) -> bool {
        self.records(id, after, through).any(|record| record.course == Course::Altered)
    }

    /// Whether the input of a body changed in the ticks after `after` up to `through`.
    pub(crate) fn input_changed(&self, id: BodyId, after: Tick, through: Tick) -> bool {
        let mut held = None;
        self.records(id, after, through).any(|record| {
            let before = held.replace(record.held);
            record.input != TickInput::steady(before.unwrap_or(record.input.start()))
                || record.held != record.input.last()
        })
    }

    fn records(&self, id: BodyId, after: Tick, through: Tick) -> impl Iterator<Item = &TickRecord<G>> {
        let track = self.tracks.get(&id);
        let ticks = after.number() + 1..=through.number();
        track
            .into_iter()
            .flat_map(move |track| ticks.clone().filter_map(|number| track.get(Tick::new(number))))
    }

    /// Whether the pose of a body changed in `tick` while its input was not neutral; of one that is not drawn, anything.
    fn is_driven(&self, track: &Track<G>, tick: Tick) -> bool {
        let ends = track.start_of(tick).zip(track.get(tick));
        ends.is_some_and(|(before, record)| {
            let moved = match (self.rules.pose(before), self.rules.pose(&record.after)) {
                (None, None) => *before != record.after,
                (before, after) => before != after,
            };
            moved && record.input != TickInput::default()
        })
    }

    /// The world has acted at the end of the newest tick.
    fn resolved(&mut self, room: &Room<'_, G>, events: &Events) {
        let tick = room.tick();
        self.spawned(room);
        self.take(room);
        let kept_ticks = self.kept_ticks;
        self.tracks.retain(|_, track| !track.gone || tick.since(track.newest) < kept_ticks);
        self.expect(tick, events);
    }

    /// A player has left, and its bodies with it.
    fn left(&mut self, player: PlayerId, room: &Room<'_, G>, events: &Events) {
        let owned = self.tracks.values_mut().filter(|track| track.driver.player() == Some(player));
        owned.for_each(|track| track.gone = true);
        self.expect(room.tick(), events);
    }

    /// These events are sent to the clients of the players that are there.
    fn expect(&mut self, tick: Tick, events: &Events) {
        for (audience, event) in events.iter() {
            let event = (tick, hash(event));
            match audience {
                Audience::All => self.untold.values_mut().for_each(|untold| untold.push_back(event)),
                Audience::Only(player) => {
                    if let Some(untold) = self.untold.get_mut(&player) {
                        untold.push_back(event);
                    }
                }
            }
        }
    }

    /// Whether a body of a player has ever moved while its player wanted it to: not by a teleport or a push.
    pub(crate) fn player_moved(&self) -> bool {
        self.player_moved
    }

    /// What the world did to a body in the ticks after `after` up to `through`, as far as is known.
    pub(crate) fn causes(&self, id: BodyId, after: Tick, through: Tick) -> Causes {
        let records = self.records(id, after, through);
        records.fold(Causes::NONE, |causes, record| causes.union(record.causes))
    }

    /// Whether what happened to a body in `tick` is still known.
    pub(crate) fn remembers(&self, id: BodyId, tick: Tick) -> bool {
        self.tracks.get(&id).is_some_and(|track| track.get(tick).is_some())
    }

    /// The least distance between a body and any other at the ends of these ticks, metres.
    pub(crate) fn nearest(&self, id: BodyId, after: Tick, through: Tick) -> f64 {
        let Some(own) = self.tracks.get(&id) else { return f64::INFINITY };
        let mut nearest = f64::INFINITY;
        for number in after.number()..=through.number() {
            let tick = Tick::new(number);
            let Some(pose) = own.get(tick).and_then(|record| self.rules.pose(&record.after)) else {
                continue;
            };
            for other in self.others(id).filter_map(|track| track.get(tick)) {
                let other = self.rules.pose(&other.after);
                nearest = other.map_or(nearest, |other| nearest.min(other.offset_from(&pose).distance()));
            }
        }
        nearest
    }

    fn others(&self, id: BodyId) -> impl Iterator<Item = &Track<G>> {
        self.tracks.iter().filter(move |(other, _)| **other != id).map(|(_, track)| track)
    }

    /// Where a body was at `time`, to the bit, and whether its tick was interfered with. `None` when that has not been
    /// simulated, or too long ago, or the body is not drawn.
    pub(crate) fn pose_at(&mut self, id: BodyId, time: ServerTime) -> Option<(G::Pose, Course)> {
        let tick = self.cadence.tick_at(time);
        let track = self.tracks.get(&id)?;
        let parent = track.parent;
        let (before, record) = (*track.start_of(tick)?, *track.get(tick)?);
        let mut left = time.saturating_since(self.cadence.start_of(tick));
        let mut bodies = core::mem::take(&mut self.bodies);
        bodies.clear();
        if record.course != Course::Own {
            let others = self.tracks.iter().filter(|(other, _)| **other != id);
            bodies.extend(others.filter_map(|(other, track)| {
                let body = *track.start_of(tick)?;
                Some(Neighbour { parent: track.parent, ..Neighbour::new(*other, track.driver, body) })
            }));
        }
        let mut replay = Replay::new(&*self.rules, self.cadence, tick, &bodies, before).named(id, parent);
        for step in record.input.steps(self.cadence) {
            let span = step.span.min(left);
            if span.is_zero() {
                break;
            }
            replay.hold(step.input, span);
            left -= span;
        }
        let pose = self.rules.pose(replay.body());
        self.bodies = bodies;
        Some((pose?, record.course))
    }

    /// How many bodies that `player` does not own moved in the newest tick.
    pub(crate) fn moving_others(&self, player: PlayerId) -> u64 {
        let others = self.tracks.values().filter(|track| track.driver.player() != Some(player));
        others.filter(|track| track.moved && !track.gone).count() as u64
    }

    /// `player` was told an event.
    pub(crate) fn told(&mut self, player: PlayerId, event: &[u8]) -> Told {
        let Some(expected) = self.untold.get_mut(&player) else { return Told::Gone };
        let hash = hash(event);
        match expected.iter().position(|(_, untold)| *untold == hash) {
            Some(left_out) => {
                expected.drain(..=left_out);
                if left_out == 0 { Told::Next } else { Told::After(left_out) }
            }
            None => Told::Never,
        }
    }

    /// Events up to `through` that `player` has not been told.
    pub(crate) fn untold(&self, player: PlayerId, through: Tick) -> usize {
        let untold = self.untold.get(&player);
        untold.map_or(0, |untold| untold.iter().take_while(|(tick, _)| *tick <= through).count())
    }
}

/// FNV-1a, and the length.
fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
