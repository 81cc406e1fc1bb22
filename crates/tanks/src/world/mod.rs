//! The authority's side of the game: spawns tanks, drives machines, and decides shots, deaths and respawns.
//!
//! ```text
//! order ──► orders ──(its tick is simulated)──► shot: fired? ──► shot: what it meets ──► damage ──► death
//!             │                                   │                                                  │ later
//!             └── refused, in its turn ───────────┴──► ShootRejected                              respawn
//! rocket that ended at a tank ──► damage
//! ```
//!
//! Leaving is no way out of a fight. A tank is in combat for the respawn time after its last shot and after the last hit
//! on it. A player that leaves in combat dies by that, whether it logs out, breaks the protocol, is kicked, or stays
//! away beyond the grace; the kill is its last attacker's. A player that comes back by the same name within the respawn
//! time has the tank that it left: the same hit points, or a wreck that respawns when its time is over. Every gun is
//! loaded one cooldown after its tank came, under any name.
//!
//! Movement is the rules' business, bytes and links are the server's.

mod absent;
mod command;
mod config;
mod machine;
mod orders;
mod rocket;
mod round;
mod shot;
mod spawn;
mod things;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use halftrack::server::{Audience, Command, CommandRefused, Events, Order, Room, World};
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack::{BodyId, Cause, Causes, Digest, Driver, PlayerId, PlayerName, ServerTime};

pub use command::TankCommand;
pub use config::{TankWorldConfig, WorldError};
pub use round::RoundConfig;

use crate::body::{MoveParams, Tank, TankPose};
use crate::collide::{TO_WALL, Vec2};
use crate::entity::{Crate, Entity, Rocket};
use crate::fighter::Fighter;
use crate::message::{CombatEvent, Reach, Rejection, ShootInput};
use crate::rules::Tanks;
use absent::{Absent, LeftTank};
use machine::{Machine, Thought};
use orders::{Due, Orders, Snapshot};
use round::{RoundClock, Turn};
use shot::{Flight, Target, fly, shooter};
use spawn::Dice;
use things::Things;

/// The authority's side of the game.
///
/// ```
/// use halftrack::server::World;
/// use tanks::{TankWorld, TankWorldConfig};
///
/// let world = TankWorld::new(TankWorldConfig { seed: 7, ..TankWorldConfig::default() })?;
/// assert_eq!(world.rules().arena(), &world.config().arena);
/// assert!(TankWorld::new(TankWorldConfig { damage: 0, ..TankWorldConfig::default() }).is_err());
/// # Ok::<(), tanks::WorldError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TankWorld {
    config: TankWorldConfig,
    rules: Arc<Tanks>,
    dice: Dice,
    /// Players before machines.
    fighters: BTreeMap<Fighter, FighterState>,
    /// In the order in which they came.
    watchers: Vec<Watcher>,
    absent: Absent,
    round: RoundClock,
    /// Memory for the tick at hand.
    due: Vec<Due>,
    targets: Vec<Target>,
    hits: Vec<(Option<BodyId>, BodyId)>,
    /// The crates and platforms that the world has spawned.
    things: Things,
}

/// A player without a tank: the room was full of bodies when it came.
#[derive(Clone, Debug)]
struct Watcher {
    player: PlayerId,
    name: PlayerName,
    /// Whether it has the scores so far.
    has_scores: bool,
}

/// The state of a fighter besides its tank.
#[derive(Clone, Debug)]
struct FighterState {
    body: BodyId,
    /// Machines have none: their names follow from their bodies.
    name: Option<PlayerName>,
    /// Of a machine.
    mind: Option<Machine>,
    orders: Orders,
    /// When it was hit last, and by whose shot.
    hit: Option<(ServerTime, Fighter)>,
    /// When it launched its last rocket, or when that ended.
    launched: Option<ServerTime>,
    /// When it comes back, if it is dead.
    back_at: Option<ServerTime>,
    /// Where the host wants it.
    place: Option<TankPose>,
    /// How the host wants it to move.
    params: Option<MoveParams>,
    /// Tanks that it destroyed, and times that it was destroyed.
    kills: u32,
    deaths: u32,
    /// Whether it has the scores of the fighters that were there before it.
    has_scores: bool,
}

impl TankWorld {
    /// A world without players.
    ///
    /// # Errors
    /// When the config has something that cannot be.
    pub fn new(config: TankWorldConfig) -> Result<Self, WorldError> {
        config.check()?;
        Ok(Self {
            rules: Arc::new(Tanks::new(Arc::clone(&config.arena))),
            dice: Dice::new(config.seed),
            fighters: BTreeMap::new(),
            watchers: Vec::new(),
            absent: Absent::default(),
            round: RoundClock::default(),
            due: Vec::new(),
            targets: Vec::new(),
            hits: Vec::new(),
            things: Things::new(&config),
            config,
        })
    }

    /// How combat goes.
    pub fn config(&self) -> &TankWorldConfig {
        &self.config
    }

    /// Puts a player's tank somewhere else, at the end of the next tick. The newest wish counts.
    ///
    /// # Errors
    /// When there is no such player, or no tank can stand there: in a wall, or not at a number of metres at all.
    /// Other tanks are no hindrance: they are pushed away.
    pub fn teleport(&mut self, player: PlayerId, x: f64, y: f64, heading: f64) -> Result<(), WorldError> {
        let finite = [x, y, heading].iter().all(|part| part.is_finite());
        let stands = finite && self.config.arena.clearance([x, y]) >= TO_WALL;
        let player = self.fighters.get_mut(&player.into()).ok_or(WorldError::NoSuchPlayer)?;
        if !stands {
            return Err(WorldError::Place { x, y });
        }
        player.place = Some(TankPose { x, y, heading: heading - libm::floor(heading) });
        Ok(())
    }

    /// Makes a player's tank move by other parameters, from the end of the next tick on. They stay over a respawn.
    ///
    /// # Errors
    /// When there is no such player.
    pub fn set_params(&mut self, player: PlayerId, params: MoveParams) -> Result<(), WorldError> {
        let player = self.fighters.get_mut(&player.into()).ok_or(WorldError::NoSuchPlayer)?;
        player.params = Some(params);
        Ok(())
    }

    /// Decides every order that is due, by moment and then by fighter.
    fn shoot(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let (cadence, newest) = (room.cadence(), room.tick());
        let mut due = core::mem::take(&mut self.due);
        due.clear();
        for (fighter, FighterState { orders, .. }) in &mut self.fighters {
            orders.judge(cadence, newest, self.config.claim);
            orders.take_due(*fighter, cadence, newest, &mut due);
        }
        // spec: COMBAT-05
        due.sort_unstable_by_key(Due::key);
        for order in &due {
            let (fighter, shot) = (order.fighter(), &order.shot);
            match order.refused.map_or_else(|| self.fire(room, fighter, shot), Err) {
                Ok(flight) => self.land(room, events, fighter, shot, flight),
                Err(why) => {
                    if let Fighter::Player(player) = fighter {
                        let rejected = CombatEvent::ShootRejected { tick: shot.tick, at: shot.at, why };
                        tell(events, Audience::Only(player), &rejected);
                    }
                }
            }
        }
        self.due = due;
    }

    /// Fires a shot, if that can be.
    fn fire(
        &mut self,
        room: &mut Room<'_, Tanks>,
        fighter: Fighter,
        shot: &ShootInput,
    ) -> Result<Flight, Rejection> {
        if !self.round.is_open(shot.tick) {
            return Err(Rejection::RoundOver);
        }
        let FighterState { body, orders, .. } = self.fighters.get_mut(&fighter).ok_or(Rejection::TooLate)?;
        let from = shooter(&self.config, room, *body, orders, shot)?;
        orders.fire(shot.moment(room.cadence()));
        Ok(fly(&self.config, room, *body, &from, shot, &mut self.targets))
    }

    /// The outcome of a shot that was fired.
    fn land(
        &mut self,
        room: &mut Room<'_, Tanks>,
        events: &mut Events,
        shooter: Fighter,
        shot: &ShootInput,
        flight: Flight,
    ) {
        let ShootInput { tick, at, aim, .. } = *shot;
        let reach = Reach::from_metres(flight.reach);
        tell(events, Audience::All, &CombatEvent::Fired { shooter, tick, at, aim, reach });
        if let Some(target) = flight.target {
            tell(events, Audience::All, &CombatEvent::Hit { shooter, target, tick, at });
            self.damage(room, events, Some(shooter), target, self.config.damage);
        }
    }

    /// Takes hit points from `target`, and its life with the last of them. `shooter` is credited, if it is still there.
    fn damage(
        &mut self,
        room: &mut Room<'_, Tanks>,
        events: &mut Events,
        shooter: Option<Fighter>,
        target: Fighter,
        most: u8,
    ) {
        let Some(state) = self.fighters.get_mut(&target) else { return };
        let Some(mut tank) = tank_of(room, state.body) else { return };
        let amount = most.min(tank.hp);
        tank.hp -= amount;
        let (hp, tick) = (tank.hp, room.tick());
        let causes = if tank.is_alive() { Causes::NONE } else { Causes::NONE.with(Cause::Death) };
        alter(room, state.body, tank, causes);
        tell(events, Audience::All, &CombatEvent::DamageApplied { target, amount, hp, tick });
        let now = room.cadence().end_of(tick);
        state.hit = shooter.map_or(state.hit, |shooter| Some((now, shooter)));
        state.back_at = (!tank.is_alive()).then(|| now + self.config.respawn_after);
        if !tank.is_alive() {
            let by = shooter.unwrap_or(target);
            tell(events, Audience::All, &CombatEvent::Death { fighter: target, by, tick });
            state.deaths = state.deaths.saturating_add(1);
            tell(events, Audience::All, &state.score(target));
            if let Some(shooter) = shooter {
                self.credit(events, shooter);
            }
        }
    }

    /// Counts a kill for `by`, if it is still there.
    fn credit(&mut self, events: &mut Events, by: Fighter) {
        let Some(state) = self.fighters.get_mut(&by) else { return };
        state.kills = state.kills.saturating_add(1);
        tell(events, Audience::All, &state.score(by));
    }

    /// Gives a player a tank: the one that it left within the respawn time, or a fresh one. Returns false when the room is
    /// full.
    fn seat(
        &mut self,
        player: PlayerId,
        name: &PlayerName,
        has_scores: bool,
        room: &mut Room<'_, Tanks>,
    ) -> bool {
        // spec: COMBAT-09
        if room.vacancies() == 0 {
            return false;
        }
        let now = room.cadence().end_of(room.tick());
        let mut tank = fresh_tank(&self.config, &mut self.dice, room, self.config.params);
        let left = self.absent.take(now, name);
        if let Some(left) = left {
            tank.hp = left.hp;
        }
        let Ok(body) = room.spawn(Driver::Player(player), tank.into()) else { return false };
        let mut state = FighterState::new(body, Some(name.clone()), None, now + self.config.cooldown);
        state.back_at = left.filter(|left| left.hp == 0).map(|left| left.until);
        state.has_scores = has_scores;
        self.fighters.insert(player.into(), state);
        true
    }

    /// Gives tanks to players that watch, as soon as there is room: first come, first served.
    fn seat_watchers(&mut self, room: &mut Room<'_, Tanks>) {
        while let Some(Watcher { player, name, has_scores }) = self.watchers.first().cloned() {
            if !self.seat(player, &name, has_scores, room) {
                return;
            }
            self.watchers.remove(0);
        }
    }

    /// Spawns machines until there are as many as the host wants, or the room is full.
    fn muster(&mut self, room: &mut Room<'_, Tanks>) {
        let machines = self.fighters.keys().filter(|fighter| fighter.player().is_none()).count();
        let now = room.cadence().end_of(room.tick());
        let missing = usize::from(self.config.machines).saturating_sub(machines);
        for _ in 0..missing.min(room.vacancies()) {
            let tank = fresh_tank(&self.config, &mut self.dice, room, self.config.params);
            let Ok(body) = room.spawn(Driver::World, tank.into()) else { return };
            let mind = Machine::new(body, self.config.seed);
            let state = FighterState::new(body, None, Some(mind), now + self.config.cooldown);
            self.fighters.insert(Fighter::Machine(body), state);
        }
    }

    /// Lets every machine think, and drives it.
    fn drive(&mut self, room: &mut Room<'_, Tanks>) {
        let open = self.round.is_open(room.tick().next());
        for state in self.fighters.values_mut() {
            let FighterState { body, mind: Some(mind), orders, .. } = state else { continue };
            let ready = orders.ready_at(self.config.cooldown);
            let TankWorldConfig { arena, range, machine_rockets, .. } = &self.config;
            let thought = mind.think(*body, room, arena, *range, ready, open && *machine_rockets);
            let Some(Thought { input, shot }) = thought else { continue };
            let driven = room.drive(*body, input);
            debug_assert!(driven.is_ok(), "{driven:?}");
            if let Some(shot) = shot.filter(|_| open) {
                // A machine never has so many orders that one is refused.
                let _ = orders.push(shot, Snapshot::Sent);
            }
        }
    }

    /// Begins and ends rounds.
    fn turn(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let Some(config) = self.config.rounds else { return };
        match self.round.tick(config, room.cadence(), room.tick(), self.players()) {
            None => return,
            Some(Turn::First) => self.all_have_scores(),
            Some(Turn::Next) => self.begin_round(room, events),
            Some(Turn::End) => {
                let scores =
                    self.fighters.iter().map(|(fighter, state)| (*fighter, state.kills, state.deaths));
                self.round.finish(round::winner(scores));
            }
        }
        if let Some(event) = self.round.event() {
            tell(events, Audience::All, &event);
        }
    }

    /// Fresh tanks for all fighters, scores at zero, and guns that are loaded when no shot can look back into the break.
    fn begin_round(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let tick = room.tick();
        let now = room.cadence().end_of(tick);
        let loaded_at = now + self.config.cooldown.max(self.config.max_rewind);
        self.absent = Absent::default();
        self.all_have_scores();
        for (fighter, state) in &mut self.fighters {
            (state.kills, state.deaths, state.hit, state.back_at) = (0, 0, None, None);
            state.orders.reload(loaded_at);
            let Some(tank) = tank_of(room, state.body) else { continue };
            let fresh = renewed(&tank, fresh_tank(&self.config, &mut self.dice, room, tank.params));
            alter(room, state.body, fresh, Causes::NONE.with(Cause::Respawn));
            // The round says it for all others: an event for each tank would fill the log of a large room.
            if !tank.is_alive() {
                tell(events, Audience::All, &CombatEvent::Respawn { fighter: *fighter, tick });
            }
        }
    }

    /// A round began, and its event is for all: no player needs another.
    fn all_have_scores(&mut self) {
        self.fighters.values_mut().for_each(|state| state.has_scores = true);
        self.watchers.iter_mut().for_each(|watcher| watcher.has_scores = true);
    }

    /// Sends the round and the scores so far to players that came, or whose clients began anew, since the last tick.
    fn tell_newcomers(&mut self, events: &mut Events) {
        // spec: COMBAT-11
        let watchers = self.watchers.iter_mut().map(|watcher| (watcher.player, &mut watcher.has_scores));
        let players = self.fighters.iter_mut();
        let players = players.filter_map(|(fighter, state)| Some((fighter.player()?, &mut state.has_scores)));
        let newcomers: Vec<PlayerId> = players
            .chain(watchers)
            .filter_map(|(player, has_scores)| (!core::mem::replace(has_scores, true)).then_some(player))
            .collect();
        for newcomer in newcomers {
            if let Some(round) = self.round.event() {
                tell(events, Audience::Only(newcomer), &round);
            }
            for (fighter, state) in
                self.fighters.iter().filter(|(_, state)| (state.kills, state.deaths) != (0, 0))
            {
                tell(events, Audience::Only(newcomer), &state.score(*fighter));
            }
        }
    }

    /// The number of players.
    fn players(&self) -> usize {
        self.fighters.keys().filter(|fighter| fighter.player().is_some()).count()
    }

    /// Carries out the wishes of the host since the last tick.
    fn grant(&mut self, room: &mut Room<'_, Tanks>) {
        for wishes in self.fighters.values_mut() {
            let (place, params) = (wishes.place.take(), wishes.params.take());
            if place.is_none() && params.is_none() {
                continue;
            }
            let Some(mut tank) = tank_of(room, wishes.body) else { continue };
            let mut causes = Causes::NONE;
            if let Some(TankPose { x, y, heading }) = place {
                tank = Tank { x, y, heading, ..tank };
                causes = causes.with(Cause::Teleport);
            }
            if let Some(params) = params {
                tank.params = params;
                causes = causes.with(Cause::Params);
            }
            alter(room, wishes.body, tank, causes);
        }
    }

    /// Brings back tanks that have been wrecks for long enough.
    fn respawn(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        // spec: COMBAT-07
        let tick = room.tick();
        let now = room.cadence().end_of(tick);
        for (fighter, state) in &mut self.fighters {
            if state.back_at.is_none_or(|back_at| now < back_at) {
                continue;
            }
            state.back_at = None;
            let Some(wreck) = tank_of(room, state.body) else { continue };
            let fresh = renewed(&wreck, fresh_tank(&self.config, &mut self.dice, room, wreck.params));
            alter(room, state.body, fresh, Causes::NONE.with(Cause::Respawn));
            tell(events, Audience::All, &CombatEvent::Respawn { fighter: *fighter, tick });
        }
    }
}

impl World for TankWorld {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        if !self.seat(player, &login.name, false, room) {
            self.watchers.push(Watcher { player, name: login.name.clone(), has_scores: false });
        }
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        // spec: COMBAT-09
        self.watchers.retain(|watcher| watcher.player != player);
        let fighter = Fighter::Player(player);
        let Some(left) = self.fighters.remove(&fighter) else { return };
        let (Some(tank), Some(name)) = (tank_of(room, left.body), &left.name) else { return };
        let (tick, mut hp) = (room.tick(), tank.hp);
        let now = room.cadence().end_of(tick);
        let mut until = left.back_at.unwrap_or(now + self.config.respawn_after);
        if tank.is_alive() && left.is_in_combat(now, self.config.respawn_after) {
            // An attacker that has left itself is credited with nothing.
            let by =
                left.hit.map(|(_, by)| by).filter(|by| self.fighters.contains_key(by)).unwrap_or(fighter);
            tell(events, Audience::All, &CombatEvent::Death { fighter, by, tick });
            self.credit(events, by);
            (hp, until) = (0, now + self.config.respawn_after);
        }
        if hp < Tank::MAX_HP {
            self.absent.remember(now, name.clone(), LeftTank { hp, until });
        }
    }

    fn restarted(&mut self, player: PlayerId) {
        // spec: COMBAT-11
        if let Some(state) = self.fighters.get_mut(&player.into()) {
            state.has_scores = false;
        }
        if let Some(watcher) = self.watchers.iter_mut().find(|watcher| watcher.player == player) {
            watcher.has_scores = false;
        }
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        let shot = ShootInput::decode(order.bytes)?;
        let Some(state) = self.fighters.get_mut(&order.player.into()) else { return Ok(()) };
        let sent = order.shown.was_sent(shot.seen.snapshot);
        state.orders.push(shot, if sent { Snapshot::Sent } else { Snapshot::NeverSent })
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        TankCommand::decode(command.bytes)?.obey(self).map_err(|refused| match refused {
            WorldError::NoSuchPlayer => CommandRefused::Refused { why: "there is no such player" },
            _ => CommandRefused::Refused { why: "no tank can stand there" },
        })
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        // Shots meet tanks where they stood in this tick: the host's wishes and respawns come at its end.
        self.shoot(room, events);
        self.burst(room, events);
        self.grant(room);
        self.respawn(room, events);
        self.turn(room, events);
        self.seat_watchers(room);
        self.things.spawn(&self.config, room);
        self.muster(room);
        self.drive(room);
        self.tell_newcomers(events);
    }

    fn digest(&self) -> u64 {
        // Scores are left out: deaths, which are in, determine them.
        let micros = |time: Option<ServerTime>| time.map_or(u64::MAX, ServerTime::as_micros);
        let each = |digest: Digest, (fighter, state): (&Fighter, &FighterState)| {
            let (hit, by) = state.hit.unzip();
            let digest = digest.word(fighter.key()).word(micros(state.back_at));
            let place = state.place.map(|place| [place.x, place.y, place.heading].map(f64::to_bits));
            let params = state.params.map(MoveParams::units).map(|(speed, turn)| [speed.into(), turn.into()]);
            let wishes = place.into_iter().flatten().chain(params.into_iter().flatten());
            let digest = wishes.fold(digest, Digest::word);
            let digest = digest.word(micros(hit)).word(by.map_or(u64::MAX, Fighter::key));
            let digest = digest.word(micros(state.launched));
            let digest = state.mind.as_ref().map_or(digest, |mind| mind.digest(digest));
            state.orders.digest(digest)
        };
        let digest = Digest::new().word(self.dice.state()).word(self.things.state());
        let digest = self.round.digest(self.absent.digest(digest));
        let digest =
            self.watchers.iter().fold(digest, |digest, watcher| digest.word(watcher.player.number().into()));
        self.fighters.iter().fold(digest, each).finish()
    }
}

impl FighterState {
    /// A fighter that has just come, with a gun that is loaded from `loaded_at` on.
    fn new(body: BodyId, name: Option<PlayerName>, mind: Option<Machine>, loaded_at: ServerTime) -> Self {
        Self {
            body,
            name,
            mind,
            orders: Orders::loaded_at(loaded_at),
            hit: None,
            launched: None,
            back_at: None,
            place: None,
            params: None,
            kills: 0,
            deaths: 0,
            has_scores: false,
        }
    }

    /// Whether it fired or was hit less than `span` ago.
    fn is_in_combat(&self, now: ServerTime, span: Duration) -> bool {
        let last = self.orders.fired().max(self.hit.map(|(at, _)| at)).max(self.launched);
        last.is_some_and(|last| now < last + span)
    }

    fn score(&self, fighter: Fighter) -> CombatEvent {
        CombatEvent::Score { fighter, kills: self.kills, deaths: self.deaths }
    }
}

/// A tank with all its hit points, clear of walls and of other tanks, its own wreck included.
fn fresh_tank(config: &TankWorldConfig, dice: &mut Dice, room: &Room<'_, Tanks>, params: MoveParams) -> Tank {
    let middles: Vec<_> = hulls(room).collect();
    let pose = spawn::place(&config.arena, dice, middles.iter().copied());
    // The constructor has seen that there is a place.
    let TankPose { x, y, heading } = pose.unwrap_or(TankPose { x: 0.0, y: 0.0, heading: 0.0 });
    Tank { params, reload: Rocket::RELOAD_MICROS, ..Tank::new(x, y, heading) }
}

/// A fresh tank for one that was there: presses that it has answered are not answered again.
fn renewed(before: &Tank, fresh: Tank) -> Tank {
    Tank { presses: before.presses, ..fresh }
}

/// The middles of all tanks and crates.
fn hulls(room: &Room<'_, Tanks>) -> impl Iterator<Item = Vec2> {
    room.bodies().filter_map(|(.., body)| match body {
        Entity::Tank(Tank { x, y, .. }) | Entity::Crate(Crate { x, y }) => Some(Vec2::new(*x, *y)),
        Entity::Rocket(_) | Entity::Platform(_) => None,
    })
}

fn tank_of(room: &Room<'_, Tanks>, body: BodyId) -> Option<Tank> {
    room.body(body).and_then(Entity::tank).copied()
}

/// Replaces the state of a tank that is there.
fn alter(room: &mut Room<'_, Tanks>, body: BodyId, tank: Tank, causes: Causes) {
    let altered = room.alter(body, tank.into(), causes);
    debug_assert!(altered.is_ok(), "{altered:?}");
}

fn tell(events: &mut Events, audience: Audience, event: &CombatEvent) {
    const { assert!(CombatEvent::MAX_BYTES <= Events::MAX_BYTES) };
    let told = events.tell(audience, event.encode_into(&mut [0; CombatEvent::MAX_BYTES]));
    debug_assert!(told.is_ok(), "{told:?}");
}
