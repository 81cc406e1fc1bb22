//! What really happened: every tick of every body, and every event, as the server's own world has them.
//!
//! [`Recorded`] is a world around another: it changes nothing and writes down what the other did. Knows neither links
//! nor clients.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use halftrack::server::{Audience, BodyOf, Command, CommandRefused, Events, Order, Room, World};
use halftrack::snapshot::{Course, TickRecord};
use halftrack::wire::WireError;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::{Cadence, Causes, Game, PlayerId, Replay, ServerTime, Tick};

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

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, W::Game>) -> BodyOf<Self> {
        self.truth.get_mut().tracks.insert(player, Track::default());
        self.world.join(player, login, room)
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, W::Game>, events: &mut Events) {
        self.truth.get_mut().tracks.remove(&player);
        self.world.leave(player, room, events);
        self.truth.get_mut().expect(room.tick(), events);
    }

    fn restarted(&mut self, player: PlayerId) {
        // The server has dropped its log of the session: only events from here on are delivered.
        if let Some(track) = self.truth.get_mut().tracks.get_mut(&player) {
            track.untold.clear();
        }
        self.world.restarted(player);
    }

    fn claims(&self, login: &Login) -> Option<String> {
        self.world.claims(login)
    }

    fn order(&mut self, order: Order<'_>) -> Result<(), WireError> {
        self.world.order(order)
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        self.world.command(command)
    }

    fn resolve(&mut self, room: &mut Room<'_, W::Game>, events: &mut Events) {
        self.world.resolve(room, events);
        self.truth.get_mut().record(room, events);
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
    kept_ticks: usize,
    tracks: BTreeMap<PlayerId, Track<G>>,
    bodies: Vec<G::Body>,
}

#[derive_where(Debug)]
struct Track<G: Game> {
    /// Oldest first, without holes; the last is of `newest`.
    records: VecDeque<TickRecord<G>>,
    newest: Tick,
    /// Whether it moved in the newest tick.
    moved: bool,
    /// Events that its player is to hear, oldest first: their tick, and a hash.
    untold: VecDeque<(Tick, u64)>,
}

impl<G: Game> Default for Track<G> {
    fn default() -> Self {
        let newest = Tick::default();
        Self { records: VecDeque::new(), newest, moved: false, untold: VecDeque::new() }
    }
}

impl<G: Game> Track<G> {
    fn get(&self, tick: Tick) -> Option<&TickRecord<G>> {
        let back = (tick <= self.newest).then(|| self.newest.since(tick) as usize)?;
        self.records.get(self.records.len().checked_sub(back + 1)?)
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
        let kept_ticks = cadence.ticks_in(Self::KEPT) as usize + 2;
        Self { cadence, rules, kept_ticks, tracks: BTreeMap::new(), bodies: Vec::new() }
    }

    fn record(&mut self, room: &Room<'_, G>, events: &Events) {
        let tick = room.tick();
        for (player, track) in &mut self.tracks {
            let Some(record) = room.history(*player).and_then(|history| history.get(tick)) else { continue };
            track.moved = track.records.back().is_none_or(|before| before.after != record.after);
            track.newest = tick;
            track.records.push_back(*record);
            if track.records.len() > self.kept_ticks {
                track.records.pop_front();
            }
        }
        self.expect(tick, events);
    }

    /// These events are sent to the clients of those who are there.
    fn expect(&mut self, tick: Tick, events: &Events) {
        for (audience, event) in events.iter() {
            let event = (tick, hash(event));
            match audience {
                Audience::All => self.tracks.values_mut().for_each(|track| track.untold.push_back(event)),
                Audience::Only(player) => {
                    if let Some(track) = self.tracks.get_mut(&player) {
                        track.untold.push_back(event);
                    }
                }
            }
        }
    }

    /// What the world did to `player` in the ticks after `after` up to `through`, as far as is known.
    pub(crate) fn causes(&self, player: PlayerId, after: Tick, through: Tick) -> Causes {
        let Some(track) = self.tracks.get(&player) else { return Causes::NONE };
        let ticks = after.number() + 1..=through.number();
        let records = ticks.filter_map(|number| track.get(Tick::new(number)));
        records.fold(Causes::NONE, |causes, record| causes.union(record.causes))
    }

    /// Whether what happened to `player` in `tick` is still known.
    pub(crate) fn remembers(&self, player: PlayerId, tick: Tick) -> bool {
        self.tracks.get(&player).is_some_and(|track| track.get(tick).is_some())
    }

    /// The least distance between `player` and anybody else at the ends of these ticks, metres.
    pub(crate) fn nearest(&self, player: PlayerId, after: Tick, through: Tick) -> f64 {
        use halftrack::Pose as _;
        let Some(own) = self.tracks.get(&player) else { return f64::INFINITY };
        let mut nearest = f64::INFINITY;
        for number in after.number()..=through.number() {
            let tick = Tick::new(number);
            let Some(record) = own.get(tick) else { continue };
            let pose = self.rules.pose(&record.after);
            let others = self.tracks.iter().filter(|(other, _)| **other != player);
            for other in others.filter_map(|(_, track)| track.get(tick)) {
                nearest = nearest.min(self.rules.pose(&other.after).offset_from(&pose).distance());
            }
        }
        nearest
    }

    /// Where `player` was at `time`, to the bit, and whether its tick was interfered with. `None` when that has not been
    /// simulated, or too long ago.
    pub(crate) fn pose_at(&mut self, player: PlayerId, time: ServerTime) -> Option<(G::Pose, Course)> {
        let tick = self.cadence.tick_at(time);
        let track = self.tracks.get(&player)?;
        let before = track.get(tick.previous()?)?.after;
        let record = *track.get(tick)?;
        let mut left = time.saturating_since(self.cadence.start_of(tick));
        let others = if record.course == Course::Own {
            &[][..]
        } else {
            self.gather(player, tick.previous()?);
            &self.bodies
        };
        let mut replay = Replay::new(&*self.rules, self.cadence, tick, others, before);
        for step in record.input.steps(self.cadence) {
            let span = step.span.min(left);
            if span.is_zero() {
                break;
            }
            replay.hold(step.input, span);
            left -= span;
        }
        Some((self.rules.pose(replay.body()), record.course))
    }

    /// Collects the bodies of all other players at the end of `tick`.
    fn gather(&mut self, player: PlayerId, tick: Tick) {
        let others = self.tracks.iter().filter(|(other, _)| **other != player);
        self.bodies.clear();
        self.bodies.extend(others.filter_map(|(_, track)| track.get(tick)).map(|record| record.after));
    }

    /// How many bodies other than that of `player` moved in the newest tick.
    pub(crate) fn moving_others(&self, player: PlayerId) -> u64 {
        self.tracks.iter().filter(|(other, track)| track.moved && **other != player).count() as u64
    }

    /// `player` was told an event.
    pub(crate) fn told(&mut self, player: PlayerId, event: &[u8]) -> Told {
        let Some(track) = self.tracks.get_mut(&player) else { return Told::Gone };
        let hash = hash(event);
        match track.untold.iter().position(|(_, untold)| *untold == hash) {
            Some(left_out) => {
                track.untold.drain(..=left_out);
                if left_out == 0 { Told::Next } else { Told::After(left_out) }
            }
            None => Told::Never,
        }
    }

    /// Events up to `through` that `player` has not been told.
    pub(crate) fn untold(&self, player: PlayerId, through: Tick) -> usize {
        let track = self.tracks.get(&player);
        track.map_or(0, |track| track.untold.iter().take_while(|(tick, _)| *tick <= through).count())
    }
}

/// FNV-1a, and the length.
fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
