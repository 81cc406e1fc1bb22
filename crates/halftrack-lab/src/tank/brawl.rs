//! A bot that goes for whoever it sees, rams and shoots.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use halftrack::client::Client;
use halftrack::{PlayerId, Tick, TickInput, Timestamp};
use halftrack_flight::FlightClient;
use tanks::{
    Arena, Axis, CombatEvent, Entity, Fighter, HULL_RADIUS, Hull, Phase, Ray, Rejection, Seen, ShootInput,
    Tank, TankInput, TankPose, TankWorldConfig, Tanks,
};

use super::{bearing, turn_to};
use crate::bot::{Bot, ShotCount};
use crate::dice::Dice;

/// A bot that rams and shoots.
#[derive(Clone, Debug)]
pub struct Brawler {
    arena: Arc<Arena>,
    range: f64,
    dice: Dice,
    next: Timestamp,
    /// None until the bot has a tank: its gun is loaded one cooldown after it came.
    next_shot: Option<Timestamp>,
    wish: TankInput,
    /// Whether a break between two rounds keeps the guns silent.
    in_break: bool,
    /// Players that were seen to drive or fire, if the bot spares the others.
    active: Option<BTreeSet<PlayerId>>,
    /// Hits of machines on its own tank.
    machine_hits: u64,
    /// The newest shots; what is older is counted.
    shots: VecDeque<Shot>,
    counted: ShotCount,
}

/// A little longer than a gun's cooldown.
const LOADING: Duration = Duration::from_millis(520);

/// A shot, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Shot {
    tick: Tick,
    at: u8,
    /// Whom it hits by what the screen shows.
    shown: Option<Fighter>,
    outcome: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Fired(Option<Fighter>),
    Rejected(Rejection),
}

impl Shot {
    fn count(&self, count: &mut ShotCount) {
        let Some(outcome) = self.outcome else { return };
        count.shots += 1;
        match outcome {
            Outcome::Fired(target) => {
                count.hits += u64::from(target.is_some());
                count.agreed += u64::from(target == self.shown);
            }
            Outcome::Rejected(why) => {
                count.rejected += 1;
                count.moot += u64::from(matches!(why, Rejection::Dead | Rejection::RoundOver));
            }
        }
    }
}

impl Brawler {
    /// Shots that wait for their outcome at most: those of a minute and more, longer than any session waits.
    const MAX_OPEN: usize = 256;

    /// A bot in this arena.
    pub fn new(arena: Arc<Arena>, seed: u64) -> Self {
        Self {
            arena,
            range: TankWorldConfig::default().range,
            dice: Dice::new(seed, "brawler"),
            next: Timestamp::ZERO,
            next_shot: None,
            wish: TankInput::NEUTRAL,
            in_break: false,
            active: None,
            machine_hits: 0,
            shots: VecDeque::new(),
            counted: ShotCount::default(),
        }
    }

    /// Neither hunts nor shoots a player that has not driven or fired yet: a newcomer may read the page first.
    #[must_use]
    pub fn sparing_newcomers(self) -> Self {
        Self { active: Some(BTreeSet::new()), ..self }
    }

    /// Notes which players have begun to play. Inputs of others are in the snapshots.
    fn look_for_activity(&mut self, client: &Client<Tanks>) {
        let (Some(active), Some(newest)) = (&mut self.active, client.crowd().newest()) else { return };
        active.retain(|player| client.name(*player).is_some());
        for (_, history) in client.crowd().bodies() {
            let input = history.get(newest).map(|record| record.input);
            if input.is_some_and(|input| input != TickInput::steady(TankInput::NEUTRAL)) {
                active.extend(history.driver().player());
            }
        }
    }

    /// Machines are no newcomers.
    fn spares(&self, fighter: Fighter) -> bool {
        let is_new = |active: &BTreeSet<_>| fighter.player().is_some_and(|player| !active.contains(&player));
        self.active.as_ref().is_some_and(is_new)
    }

    /// All tanks that are drawn alive, and where.
    fn seen(client: &Client<Tanks>) -> impl Iterator<Item = (Fighter, TankPose)> + '_ {
        let alive = |id| client.drawn(id).is_some_and(Entity::is_alive);
        let others = client.remotes().iter();
        // A tank that is known to have died since is drawn as a wreck.
        let living = others.filter(move |other| other.state.is_alive() && alive(other.id));
        living.map(|other| (Fighter::of(other.id, other.driver), other.visible))
    }

    fn think(&mut self, now: Timestamp, tank: &Tank, prey: Option<&TankPose>) {
        // Twice a second, at moments that fall anywhere.
        self.next = now + Duration::from_micros(100_000 + self.dice.below(800_000));
        let hunting = self.dice.below(3) > 0;
        self.wish = match prey {
            Some(prey) if hunting => {
                let turn = Axis::from_level((turn_to(tank, prey) * 128.0) as i8);
                TankInput { turn, throttle: Axis::FULL, rocket: 0 }
            }
            _ => {
                let mut axis = || Axis::from_level(self.dice.below(33) as i8 - 16);
                TankInput { turn: axis(), throttle: axis(), rocket: 0 }
            }
        };
    }

    /// Shoots at `prey`, as well as a person does: two of three are aimed at the hull.
    fn shoot(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>, prey: &TankPose) {
        let (Some(reconciler), Some((snapshot, drawn))) = (client.reconciler(), client.seen()) else {
            return;
        };
        let Some(tank) = reconciler.predicted().tank().copied() else { return };
        let seen = Seen::new(client.cadence(), snapshot, drawn);
        let (tick, at) = ShootInput::grid(client.cadence(), reconciler.predictor().time());
        let away = (prey.x - tank.x).hypot(prey.y - tank.y).max(HULL_RADIUS);
        let beside = (self.dice.unit() - 0.5) * 3.0 * HULL_RADIUS;
        let aim = bearing(&tank, prey.x, prey.y) + beside.atan2(away) / std::f64::consts::TAU;
        let aim = ((aim * 65_536.0).round() as i64 & 0xffff) as u16;
        let ray = Ray::new([tank.x, tank.y], aim);
        let reach = ray.to_arena(&self.arena).min(self.range);
        let hulls = Self::seen(client).filter_map(|(fighter, pose)| {
            let distance = ray.to_hull(Hull { x: pose.x, y: pose.y })?;
            (distance <= reach).then_some((distance, fighter))
        });
        let shown = hulls.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, fighter)| fighter);
        if shown.is_some_and(|fighter| self.spares(fighter)) {
            return;
        }
        let order = ShootInput { tick, at, aim, seen };
        if client.order(now, &order.encode()).is_ok() {
            self.shots.push_back(Shot { tick, at, shown, outcome: None });
            if self.shots.len() > Self::MAX_OPEN
                && let Some(oldest) = self.shots.pop_front()
            {
                oldest.count(&mut self.counted);
            }
        }
    }

    fn outcome(&mut self, tick: Tick, at: u8, outcome: Outcome) {
        let shot = self.shots.iter_mut().rev().find(|shot| (shot.tick, shot.at) == (tick, at));
        if let Some(shot) = shot {
            shot.outcome = Some(outcome);
        }
    }
}

impl Bot<Tanks> for Brawler {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        let tank = *client.predicted()?.tank()?;
        let next_shot = *self.next_shot.get_or_insert(now + LOADING);
        let shoots = now >= next_shot && tank.is_alive() && !self.in_break;
        // Looking around takes time where there are many: only when something comes of it.
        if now < self.next && !shoots {
            return Some(self.wish);
        }
        self.look_for_activity(client);
        let away = |pose: &TankPose| (pose.x - tank.x).hypot(pose.y - tank.y);
        let prey = Self::seen(client).filter(|(fighter, _)| !self.spares(*fighter));
        let nearest = prey.min_by(|one, other| away(&one.1).total_cmp(&away(&other.1)));
        if now >= self.next {
            self.think(now, &tank, nearest.as_ref().map(|(_, pose)| pose));
        }
        if let Some((_, prey)) = nearest.filter(|_| shoots) {
            self.next_shot = Some(now + LOADING + Duration::from_micros(self.dice.below(400_000)));
            self.shoot(now, client, &prey);
        }
        Some(self.wish)
    }

    fn hear(&mut self, client: &Client<Tanks>, event: &[u8]) {
        let own = client.player().map(Fighter::from);
        let event = CombatEvent::decode(event);
        if let (Some(active), Ok(CombatEvent::Fired { shooter, .. })) = (&mut self.active, &event) {
            active.extend(shooter.player());
        }
        match event {
            Ok(CombatEvent::Fired { shooter, tick, at, .. }) if Some(shooter) == own => {
                self.outcome(tick, at, Outcome::Fired(None));
            }
            Ok(CombatEvent::Hit { shooter, target, tick, at }) if Some(shooter) == own => {
                self.outcome(tick, at, Outcome::Fired(Some(target)));
            }
            Ok(CombatEvent::Hit { shooter: Fighter::Machine(_), target, .. }) if Some(target) == own => {
                self.machine_hits += 1;
            }
            Ok(CombatEvent::Round { phase, .. }) => {
                self.in_break = phase != Phase::Playing;
                // The gun of a new round is loaded as that of a newcomer.
                self.next_shot = None;
            }
            Ok(CombatEvent::ShootRejected { tick, at, why }) => {
                self.outcome(tick, at, Outcome::Rejected(why));
            }
            _ => {}
        }
    }

    fn combat(&self) -> Option<ShotCount> {
        let mut count = ShotCount { machine_hits: self.machine_hits, ..self.counted };
        self.shots.iter().for_each(|shot| shot.count(&mut count));
        Some(count)
    }
}
