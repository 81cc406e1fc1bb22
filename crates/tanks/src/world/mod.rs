//! The authority's side of the game: where tanks come into the world, what shots do, who dies and who comes back.
//!
//! ```text
//! order ──► orders ──(its tick is simulated)──► shot: fired? ──► shot: what it meets ──► damage ──► death
//!             │                                   │                                                  │ later
//!             └── refused, in its turn ───────────┴──► ShootRejected                              respawn
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
mod orders;
mod round;
mod shot;
mod spawn;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use halftrack::server::{Audience, Command, CommandRefused, Events, Order, Room, World};
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack::{Cause, Causes, Digest, PlayerId, PlayerName, ServerTime};

pub use command::TankCommand;
pub use config::{TankWorldConfig, WorldError};
pub use round::RoundConfig;

use crate::body::{MoveParams, Tank, TankPose};
use crate::collide::{TO_WALL, Vec2};
use crate::message::{CombatEvent, Reach, Rejection, ShootInput};
use crate::rules::Tanks;
use absent::{Absent, LeftTank};
use orders::{Due, Orders, Snapshot};
use round::{RoundClock, Turn};
use shot::{Flight, Target, fly, shooter};
use spawn::Dice;

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
    players: BTreeMap<PlayerId, Player>,
    absent: Absent,
    round: RoundClock,
    /// Memory for the tick at hand.
    due: Vec<Due>,
    targets: Vec<Target>,
}

/// What there is to know of a player besides its body.
#[derive(Clone, Debug)]
struct Player {
    name: PlayerName,
    orders: Orders,
    /// When it was hit last, and by whose shot.
    hit: Option<(ServerTime, PlayerId)>,
    /// When it comes back, if it is dead.
    back_at: Option<ServerTime>,
    /// Where the host wants it.
    place: Option<TankPose>,
    /// How the host wants it to move.
    params: Option<MoveParams>,
    /// Others whom it destroyed, and times that it was destroyed.
    kills: u32,
    deaths: u32,
    /// Whether it has the scores of the players that were there before it.
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
            players: BTreeMap::new(),
            absent: Absent::default(),
            round: RoundClock::default(),
            due: Vec::new(),
            targets: Vec::new(),
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
        let player = self.players.get_mut(&player).ok_or(WorldError::NoSuchPlayer)?;
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
        let player = self.players.get_mut(&player).ok_or(WorldError::NoSuchPlayer)?;
        player.params = Some(params);
        Ok(())
    }

    /// Every order that is due has its outcome, by moment and then by player.
    fn shoot(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let (cadence, newest) = (room.cadence(), room.tick());
        let mut due = core::mem::take(&mut self.due);
        due.clear();
        for (player, Player { orders, .. }) in &mut self.players {
            orders.judge(cadence, newest, self.config.claim);
            orders.take_due(*player, cadence, newest, &mut due);
        }
        // spec: COMBAT-05
        due.sort_unstable_by_key(Due::key);
        for order in &due {
            let (player, shot) = (order.player(), &order.shot);
            match order.refused.map_or_else(|| self.fire(room, player, shot), Err) {
                Ok(flight) => self.land(room, events, player, shot, flight),
                Err(why) => {
                    let rejected = CombatEvent::ShootRejected { tick: shot.tick, at: shot.at, why };
                    tell(events, Audience::Only(player), &rejected);
                }
            }
        }
        self.due = due;
    }

    /// Fires a shot, if that can be.
    fn fire(
        &mut self,
        room: &mut Room<'_, Tanks>,
        player: PlayerId,
        shot: &ShootInput,
    ) -> Result<Flight, Rejection> {
        if !self.round.is_open(shot.tick) {
            return Err(Rejection::RoundOver);
        }
        let orders = &mut self.players.get_mut(&player).ok_or(Rejection::TooLate)?.orders;
        let from = shooter(&self.config, room, player, orders, shot)?;
        orders.fire(shot.moment(room.cadence()));
        Ok(fly(&self.config, room, player, &from, shot, &mut self.targets))
    }

    /// What comes of a shot that was fired.
    fn land(
        &mut self,
        room: &mut Room<'_, Tanks>,
        events: &mut Events,
        shooter: PlayerId,
        shot: &ShootInput,
        flight: Flight,
    ) {
        let ShootInput { tick, at, aim, .. } = *shot;
        let reach = Reach::from_metres(flight.reach);
        tell(events, Audience::All, &CombatEvent::Fired { shooter, tick, at, aim, reach });
        if let Some(target) = flight.target {
            tell(events, Audience::All, &CombatEvent::Hit { shooter, target, tick, at });
            self.damage(room, events, shooter, target);
        }
    }

    /// Takes hit points from `target`, and its life with the last of them.
    fn damage(
        &mut self,
        room: &mut Room<'_, Tanks>,
        events: &mut Events,
        shooter: PlayerId,
        target: PlayerId,
    ) {
        let Some(mut tank) = room.body(target).copied() else { return };
        let amount = self.config.damage.min(tank.hp);
        tank.hp -= amount;
        let (hp, tick) = (tank.hp, room.tick());
        let causes = if tank.is_alive() { Causes::NONE } else { Causes::NONE.with(Cause::Death) };
        room.alter(target, tank, causes);
        tell(events, Audience::All, &CombatEvent::DamageApplied { target, amount, hp, tick });
        let now = room.cadence().end_of(tick);
        let player = self.players.get_mut(&target);
        if let Some(player) = player {
            player.hit = Some((now, shooter));
            player.back_at = (!tank.is_alive()).then(|| now + self.config.respawn_after);
        }
        if !tank.is_alive() {
            tell(events, Audience::All, &CombatEvent::Death { player: target, by: shooter, tick });
            if let Some(player) = self.players.get_mut(&target) {
                player.deaths = player.deaths.saturating_add(1);
                tell(events, Audience::All, &player.score(target));
            }
            self.credit(events, shooter);
        }
    }

    /// Counts a kill for `by`, if it is still there.
    fn credit(&mut self, events: &mut Events, by: PlayerId) {
        let Some(player) = self.players.get_mut(&by) else { return };
        player.kills = player.kills.saturating_add(1);
        tell(events, Audience::All, &player.score(by));
    }

    /// Begins and ends rounds.
    fn turn(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let Some(config) = self.config.rounds else { return };
        match self.round.tick(config, room.cadence(), room.tick(), self.players.len()) {
            None => return,
            Some(Turn::First) => self.players.values_mut().for_each(|player| player.has_scores = true),
            Some(Turn::Next) => self.begin_round(room, events),
            Some(Turn::End) => {
                let scores = self.players.iter().map(|(player, state)| (*player, state.kills, state.deaths));
                self.round.finish(round::winner(scores));
            }
        }
        if let Some(event) = self.round.event() {
            tell(events, Audience::All, &event);
        }
    }

    /// Fresh tanks for all players, scores at zero, and guns that are loaded when no shot can look back into the break.
    fn begin_round(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let tick = room.tick();
        let now = room.cadence().end_of(tick);
        let loaded_at = now + self.config.cooldown.max(self.config.max_rewind);
        self.absent = Absent::default();
        for (player, state) in &mut self.players {
            (state.kills, state.deaths, state.hit, state.back_at) = (0, 0, None, None);
            state.has_scores = true;
            state.orders.reload(loaded_at);
            let Some(tank) = room.body(*player).copied() else { continue };
            let fresh = fresh_tank(&self.config, &mut self.dice, room, tank.params);
            room.alter(*player, fresh, Causes::NONE.with(Cause::Respawn));
            // The round says it for all others: an event for each tank would fill the log of a large room.
            if !tank.is_alive() {
                tell(events, Audience::All, &CombatEvent::Respawn { player: *player, tick });
            }
        }
    }

    /// Sends the round and the scores so far to players that came, or whose clients began anew, since the last tick.
    fn tell_newcomers(&mut self, events: &mut Events) {
        // spec: COMBAT-11
        let newcomers: Vec<PlayerId> = self
            .players
            .iter_mut()
            .filter_map(|(player, state)| {
                (!core::mem::replace(&mut state.has_scores, true)).then_some(*player)
            })
            .collect();
        for newcomer in newcomers {
            if let Some(round) = self.round.event() {
                tell(events, Audience::Only(newcomer), &round);
            }
            for (player, state) in
                self.players.iter().filter(|(_, state)| (state.kills, state.deaths) != (0, 0))
            {
                tell(events, Audience::Only(newcomer), &state.score(*player));
            }
        }
    }

    /// What the host wished for since the last tick.
    fn grant(&mut self, room: &mut Room<'_, Tanks>) {
        for (player, wishes) in &mut self.players {
            let (place, params) = (wishes.place.take(), wishes.params.take());
            if place.is_none() && params.is_none() {
                continue;
            }
            let Some(mut tank) = room.body(*player).copied() else { continue };
            let mut causes = Causes::NONE;
            if let Some(TankPose { x, y, heading }) = place {
                tank = Tank { x, y, heading, ..tank };
                causes = causes.with(Cause::Teleport);
            }
            if let Some(params) = params {
                tank.params = params;
                causes = causes.with(Cause::Params);
            }
            room.alter(*player, tank, causes);
        }
    }

    /// Whoever has been dead for long enough comes back.
    fn respawn(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        // spec: COMBAT-07
        let tick = room.tick();
        let now = room.cadence().end_of(tick);
        for (player, state) in &mut self.players {
            if state.back_at.is_none_or(|back_at| now < back_at) {
                continue;
            }
            state.back_at = None;
            let Some(wreck) = room.body(*player).copied() else { continue };
            let fresh = fresh_tank(&self.config, &mut self.dice, room, wreck.params);
            room.alter(*player, fresh, Causes::NONE.with(Cause::Respawn));
            tell(events, Audience::All, &CombatEvent::Respawn { player: *player, tick });
        }
    }
}

impl World for TankWorld {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) -> Tank {
        // spec: COMBAT-09
        let now = room.cadence().end_of(room.tick());
        let mut tank = fresh_tank(&self.config, &mut self.dice, room, self.config.params);
        let left = self.absent.take(now, &login.name);
        if let Some(left) = left {
            tank.hp = left.hp;
        }
        let back_at = left.filter(|left| left.hp == 0).map(|left| left.until);
        let orders = Orders::loaded_at(now + self.config.cooldown);
        let state = Player {
            name: login.name.clone(),
            orders,
            hit: None,
            back_at,
            place: None,
            params: None,
            kills: 0,
            deaths: 0,
            has_scores: false,
        };
        self.players.insert(player, state);
        tank
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        // spec: COMBAT-09
        let (Some(left), Some(tank)) = (self.players.remove(&player), room.body(player)) else { return };
        let (tick, mut hp) = (room.tick(), tank.hp);
        let now = room.cadence().end_of(tick);
        let mut until = left.back_at.unwrap_or(now + self.config.respawn_after);
        if tank.is_alive() && left.is_in_combat(now, self.config.respawn_after) {
            // An attacker that has left itself is credited with nothing.
            let by = left.hit.map(|(_, by)| by).filter(|by| self.players.contains_key(by)).unwrap_or(player);
            tell(events, Audience::All, &CombatEvent::Death { player, by, tick });
            self.credit(events, by);
            (hp, until) = (0, now + self.config.respawn_after);
        }
        if hp < Tank::MAX_HP {
            self.absent.remember(now, left.name, LeftTank { hp, until });
        }
    }

    fn restarted(&mut self, player: PlayerId) {
        // spec: COMBAT-11
        if let Some(player) = self.players.get_mut(&player) {
            player.has_scores = false;
        }
    }

    fn order(&mut self, order: Order<'_>) -> Result<(), WireError> {
        let shot = ShootInput::decode(order.bytes)?;
        let Some(player) = self.players.get_mut(&order.player) else { return Ok(()) };
        let sent = order.shown.was_sent(shot.seen.snapshot);
        player.orders.push(shot, if sent { Snapshot::Sent } else { Snapshot::NeverSent })
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        TankCommand::decode(command.bytes)?.obey(self).map_err(|refused| match refused {
            WorldError::NoSuchPlayer => CommandRefused::Refused { why: "there is no such player" },
            _ => CommandRefused::Refused { why: "no tank can stand there" },
        })
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        // What was shot at in this tick stood where it stood: the host's wishes and respawns are of its end.
        self.shoot(room, events);
        self.grant(room);
        self.respawn(room, events);
        self.turn(room, events);
        self.tell_newcomers(events);
    }

    fn digest(&self) -> u64 {
        // Scores are left out: deaths, which are in, determine them.
        let micros = |time: Option<ServerTime>| time.map_or(u64::MAX, ServerTime::as_micros);
        let each = |digest: Digest, (player, state): (&PlayerId, &Player)| {
            let (hit, by) = state.hit.unzip();
            let digest = digest.word(u64::from(player.number())).word(micros(state.back_at));
            let place = state.place.map(|place| [place.x, place.y, place.heading].map(f64::to_bits));
            let params = state.params.map(MoveParams::units).map(|(speed, turn)| [speed.into(), turn.into()]);
            let wishes = place.into_iter().flatten().chain(params.into_iter().flatten());
            let digest = wishes.fold(digest, Digest::word);
            let digest = digest.word(micros(hit)).word(by.map_or(u64::MAX, |by| u64::from(by.number())));
            state.orders.digest(digest)
        };
        let digest = self.round.digest(self.absent.digest(Digest::new().word(self.dice.state())));
        self.players.iter().fold(digest, each).finish()
    }
}

impl Player {
    /// Whether it fired or was hit less than `span` ago.
    fn is_in_combat(&self, now: ServerTime, span: Duration) -> bool {
        let last = self.orders.fired().max(self.hit.map(|(at, _)| at));
        last.is_some_and(|last| now < last + span)
    }

    fn score(&self, player: PlayerId) -> CombatEvent {
        CombatEvent::Score { player, kills: self.kills, deaths: self.deaths }
    }
}

/// A tank with all its hit points, clear of walls and of everybody, its own wreck included.
fn fresh_tank(config: &TankWorldConfig, dice: &mut Dice, room: &Room<'_, Tanks>, params: MoveParams) -> Tank {
    let middles: Vec<_> = room.bodies().map(|(_, tank)| Vec2::new(tank.x, tank.y)).collect();
    let pose = spawn::place(&config.arena, dice, middles.iter().copied());
    // The constructor has seen that there is a place.
    let TankPose { x, y, heading } = pose.unwrap_or(TankPose { x: 0.0, y: 0.0, heading: 0.0 });
    Tank { params, ..Tank::new(x, y, heading) }
}

fn tell(events: &mut Events, audience: Audience, event: &CombatEvent) {
    const { assert!(CombatEvent::MAX_BYTES <= Events::MAX_BYTES) };
    let told = events.tell(audience, event.encode_into(&mut [0; CombatEvent::MAX_BYTES]));
    debug_assert!(told.is_ok(), "{told:?}");
}
