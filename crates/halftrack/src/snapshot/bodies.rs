//! Every body of a room: moved tick by tick, kept for a while, and told to each client in one datagram.
//!
//! The bits are those of `telling`. A client that was told of everybody shares them with all who have the same base;
//! one for which there is no room for everybody is told of those who have waited longest.

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::game::Game;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::model::{Body, FieldError};
use crate::simulate::TickSimulator;
use crate::snapshot::choice::choose;
use crate::snapshot::departed::{Departed, everybody};
use crate::snapshot::history::{BodyHistory, TickRecord, history_ticks};
use crate::snapshot::kept::Kept;
use crate::snapshot::roster::Rosters;
use crate::snapshot::section::Section;
use crate::snapshot::shared::{Basis, Shared};
use crate::snapshot::telling::{Base, Chosen, Telling, ago};
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
    epoch: Epoch,
    /// Ticks that are kept.
    history: u32,
    /// The bodies as they stood at the start of the tick at hand.
    before: Vec<G::Body>,
    /// In order of player.
    bodies: Vec<Kept<G>>,
    departed: Departed<G>,
    rosters: Rosters,
    shared: Shared,
    section: Section<G>,
    chosen: Vec<Chosen>,
    escapes: Escapes,
}

/// Fields that left their range, by the rules or by the world, and were put back when their body was settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Escapes {
    /// How many.
    pub count: u64,
    /// The last of them: the player, the tick, and the field with its problem.
    pub last: Option<(PlayerId, Tick, FieldError)>,
}

impl Escapes {
    fn add(&mut self, player: PlayerId, tick: Tick, problem: FieldError) {
        self.count += 1;
        self.last = Some((player, tick, problem));
    }
}

impl<G: Game> Bodies<G> {
    /// A room without bodies, which stands at the end of `tick`.
    pub fn new(rules: Arc<G>, cadence: Cadence, tick: Tick) -> Self {
        Self {
            cadence,
            simulator: TickSimulator::new(rules, cadence),
            tick,
            epoch: Epoch::default(),
            history: history_ticks(cadence),
            before: Vec::new(),
            bodies: Vec::new(),
            departed: Departed::new(),
            rosters: Rosters::new(),
            shared: Shared::default(),
            section: Section::new(),
            chosen: Vec::new(),
            escapes: Escapes::default(),
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

    /// Settles `body` of `player`, and counts a field that left its range.
    pub(crate) fn settle(&mut self, player: PlayerId, body: &mut G::Body) {
        if let Some(problem) = body.settle().problem() {
            self.escapes.add(player, self.tick, problem);
        }
    }

    /// A body that is there from the end of this tick on.
    pub fn join(&mut self, player: PlayerId, input: G::Input, body: G::Body) {
        let kept = Kept::new(self.cadence, self.tick, player, input, body);
        match self.bodies.binary_search_by_key(&player, |kept| kept.player) {
            Ok(at) => self.bodies.splice(at..=at, [kept]).for_each(|replaced| self.departed.push(replaced)),
            Err(at) => self.bodies.insert(at, kept),
        }
        self.change_roster();
    }

    /// A body that is no more.
    pub fn leave(&mut self, player: PlayerId) {
        let Ok(at) = self.bodies.binary_search_by_key(&player, |kept| kept.player) else { return };
        self.departed.push(self.bodies.remove(at));
        self.change_roster();
    }

    fn change_roster(&mut self) {
        self.rosters.change(self.bodies.iter().map(|kept| kept.player));
        self.shared.clear();
    }

    /// Simulates the next tick: everybody is told something, and moves among the others as they stood at its start.
    pub fn advance(&mut self, mut told: impl FnMut(PlayerId) -> TickInput<G::Input>) {
        self.before.clear();
        self.before.extend(
            self.bodies.iter().filter_map(|kept| kept.history.get(self.tick)).map(|record| record.after),
        );
        self.tick = self.tick.next();
        self.shared.clear();
        let mut start = self.simulator.start(self.tick, &self.before);
        for (own, kept) in self.bodies.iter_mut().enumerate() {
            let input = told(kept.player);
            if let Some(moved) = start.tick(own, &input) {
                if let Some(problem) = moved.problem {
                    self.escapes.add(kept.player, self.tick, problem);
                }
                kept.push(TickRecord::moved(input, &moved));
            }
        }
        self.forget();
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

    /// Whether there is no body.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// So many ticks without bodies pass at once.
    pub(crate) fn pass(&mut self, ticks: u32) {
        debug_assert!(self.bodies.is_empty(), "bodies move through every tick");
        self.tick = Tick::new(self.tick.number().saturating_add(ticks));
        self.shared.clear();
        self.forget();
    }

    /// Rosters and bodies of players who left, as soon as no client can build on them.
    fn forget(&mut self) {
        let oldest = Tick::new(self.tick.number().saturating_sub(self.history));
        self.rosters.forget_before(oldest);
        self.departed.forget_before(oldest);
    }

    /// The world has made something else of a body at the end of the tick, for these causes. This comes before the tick
    /// is told to anybody.
    pub fn alter(&mut self, player: PlayerId, after: G::Body, causes: Causes) {
        let Ok(at) = self.bodies.binary_search_by_key(&player, |kept| kept.player) else { return };
        if let Some(kept) = self.bodies.get_mut(at) {
            kept.alter(self.tick, after, causes);
            self.shared.clear();
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

    /// What every body was told in the tick, and its hash at the end of it, in order of player.
    pub(crate) fn told(&self) -> impl Iterator<Item = (PlayerId, TickInput<G::Input>, u64)> + '_ {
        let told = |kept: &Kept<G>| Some((kept.player, kept.history.get(self.tick)?.input, kept.digest));
        self.bodies.iter().filter_map(told)
    }

    /// A hash of every body at the end of the tick, in order of player.
    pub fn digests(&self) -> impl Iterator<Item = (PlayerId, u64)> + '_ {
        self.bodies.iter().map(|kept| (kept.player, kept.digest))
    }

    /// The body of `player` when it was `into` the tick, as it was then among the others; `None` when that is not
    /// kept, or no more work is to be done.
    pub fn body_at(&mut self, player: PlayerId, tick: Tick, into: Duration) -> Option<G::Body> {
        let start = tick.previous()?;
        if self.simulator.is_spent() {
            return None;
        }
        let input = self.history(player)?.get(tick)?.input;
        self.before.clear();
        let mut own = None;
        // Whoever has left since was in the way all the same.
        for (kept, _) in everybody(&self.bodies, &self.departed) {
            let Some(record) = kept.history.get(start).filter(|_| kept.history.newest() >= tick) else {
                continue;
            };
            if kept.player == player {
                own = Some(self.before.len());
            }
            self.before.push(record.after);
        }
        self.simulator.part_of_tick(tick, &self.before, own?, &input, into)
    }

    /// The history of a body.
    pub fn history(&self, player: PlayerId) -> Option<&BodyHistory<G>> {
        let at = self.bodies.binary_search_by_key(&player, |kept| kept.player).ok()?;
        self.bodies.get(at).map(|kept| &kept.history)
    }

    /// The histories of those who have left and are still kept.
    #[cfg(test)]
    pub(crate) fn departed(&self) -> impl Iterator<Item = (PlayerId, &BodyHistory<G>)> {
        self.departed.bodies().iter().map(|kept| (kept.player, &kept.history))
    }

    /// Writes what the client of `view` is to know of all bodies, in at most `max_bits`: once per tick. What does not fit
    /// waits, and comes before what has waited for less.
    pub fn write(&mut self, view: &mut View, max_bits: usize, bits: &mut BitWriter<'_>) {
        let shared = self.basis(view).is_some_and(|basis| self.write_shared(basis, max_bits, bits));
        if !shared {
            self.write_apart(view, max_bits, bits);
            return;
        }
        view.send(self.tick, Who::All(self.rosters.current()), Vec::new(), self.history as usize);
        self.rosters.tell(self.tick);
    }

    /// Writes everybody in full for the client of `view`, for a lane that loses nothing: what is written next builds on it,
    /// acknowledged or not. In this tick [`Self::write`] is not to be called for that client any more: it would tell of
    /// fewer by the same number. Gives false, and writes nothing, if it takes more than `max_bits`.
    pub fn write_full(&mut self, view: &mut View, max_bits: usize, bits: &mut BitWriter<'_>) -> bool {
        let fits = self.write_shared(None, max_bits, bits);
        if fits {
            view.send_surely(self.tick, Who::All(self.rosters.current()), self.history as usize);
            self.rosters.tell(self.tick);
        }
        fits
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
        Some((Base { tick, roster: who.players(&self.rosters)? }, who))
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
                self.rosters.players(number).map(|_| Some((tick, number)))
            }
        }
    }

    /// Writes the snapshot of everybody. Gives false, and writes nothing, if it takes more than `max_bits`.
    fn write_shared(&mut self, basis: Basis, max_bits: usize, bits: &mut BitWriter<'_>) -> bool {
        let Self { tick, epoch, history, bodies, departed, section, chosen, rosters, shared, .. } = self;
        let mut telling = Telling { tick: *tick, epoch: *epoch, history: *history, bodies, section };
        shared.copy(basis, max_bits, bits, |bits| {
            let base = basis.and_then(|(tick, number)| Some(Base { tick, roster: rosters.players(number)? }));
            // Whoever was told of the current roster knows everybody who has been here since.
            let joint = base.is_some_and(|base| match basis {
                Some((_, number)) if number == rosters.current() => telling.write_same(base.tick, bits),
                _ => telling.write_changed(base, departed, bits),
            });
            if !joint {
                telling.choose_all(base, chosen);
                telling.write_chosen(base, chosen, bits);
            }
        })
    }

    /// Writes as much as there is room for, for one client: rare, so it may take its time.
    fn write_apart(&mut self, view: &mut View, max_bits: usize, bits: &mut BitWriter<'_>) {
        let base = self.base(view).map(|(base, _)| (base.tick, base.roster.to_vec()));
        let base = base.as_ref().map(|(tick, roster)| Base { tick: *tick, roster });
        let Self { tick, epoch, history, bodies, section, chosen, rosters, .. } = self;
        let mut telling = Telling { tick: *tick, epoch: *epoch, history: *history, bodies, section };
        let waiting = choose(&mut telling, base, view, rosters, max_bits, chosen);
        telling.write_chosen(base, chosen, bits);
        let who = if waiting.is_empty() {
            rosters.tell(*tick);
            Who::All(rosters.current())
        } else {
            let players = chosen.iter().filter_map(|chosen| bodies.get(chosen.body));
            Who::Some(players.map(|kept| kept.player).collect())
        };
        view.send(*tick, who, waiting, *history as usize);
    }
}
