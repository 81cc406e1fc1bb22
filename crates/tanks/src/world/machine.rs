//! Machines: tanks that the world drives. They roam, turn towards the nearest tank in sight, and shoot at it, not too well.
//!
//! A machine thinks four times a second, so it costs four changes of input a second on the wire. Its dice are its own, so
//! a playback drives it the same way.

use std::f64::consts::TAU;
use std::time::Duration;

use halftrack::model::Presses;
use halftrack::server::Room;
use halftrack::{BodyId, Cadence, Digest, ServerTime, Tick};

use super::spawn::Dice;
use crate::arena::Arena;
use crate::body::Tank;
use crate::collide::Vec2;
use crate::input::{Axis, TankInput};
use crate::message::{Seen, ShootInput};
use crate::ray::Ray;
use crate::rules::Tanks;

/// From one thought to the next.
const THINK: Duration = Duration::from_millis(250);
/// How long it drives to a place before it wants another.
const PATIENCE: Duration = Duration::from_secs(6);
/// It is there within this distance, metres.
const NEAR: f64 = 3.0;
/// It keeps this distance from the tank that it shoots at, metres.
const STAND_OFF: f64 = 14.0;
/// It looks so far ahead for walls, metres.
const LOOK_AHEAD: f64 = 5.0;
/// The largest error of its aim to either side, turns: 5 degrees, so that one shot in three hits a tank at 15 m.
const AIM_ERROR: f64 = 0.014;
/// It launches rockets within this distance, metres.
const ROCKET_RANGE: f64 = 30.0;
/// And with its hull at most so far off, turns: 14 degrees, as rockets fly where the hull points.
const ROCKET_ERROR: f64 = 0.04;
/// How likely it is to launch one when it can.
const ROCKET_CHANCE: f64 = 0.4;
/// The longest pause after its gun is ready.
const PAUSE: Duration = Duration::from_millis(1_500);

/// The mind of a machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    dice: Dice,
    goal: Vec2,
    /// When it wants another goal.
    bored_at: ServerTime,
    next_thought: Tick,
    next_shot: ServerTime,
    /// Presses of its rocket button.
    presses: u8,
}

/// The outcome of a thought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thought {
    pub(super) input: TankInput,
    pub(super) shot: Option<ShootInput>,
}

impl Machine {
    pub(super) fn new(id: BodyId, seed: u64) -> Self {
        Self {
            dice: Dice::new(seed ^ id.number()),
            goal: Vec2::ZERO,
            bored_at: ServerTime::ZERO,
            next_thought: Tick::default(),
            next_shot: ServerTime::ZERO,
            presses: 0,
        }
    }

    /// Thinks at the end of the newest tick, if it is time to. `gun_ready` is when it may fire next.
    pub(super) fn think(
        &mut self,
        id: BodyId,
        room: &Room<'_, Tanks>,
        arena: &Arena,
        range: f64,
        gun_ready: ServerTime,
        rockets: bool,
    ) -> Option<Thought> {
        let (cadence, tick) = (room.cadence(), room.tick());
        if tick < self.next_thought {
            return None;
        }
        self.next_thought = Tick::new(tick.number().saturating_add(cadence.ticks_in(THINK).max(1)));
        let own = *room.body(id)?.tank()?;
        if !own.is_alive() {
            return Some(Thought { input: TankInput::NEUTRAL.pressing(self.presses), shot: None });
        }
        let here = Vec2::new(own.x, own.y);
        let now = cadence.end_of(tick);
        let others = room.bodies().filter(|(other, _, body)| *other != id && body.is_alive());
        let target = others
            .filter_map(|(.., body)| body.tank())
            .map(|tank| Vec2::new(tank.x, tank.y) - here)
            .filter(|way| is_in_sight(arena, here, *way, range))
            .min_by(|one, other| one.dot(*one).total_cmp(&other.dot(*other)));
        let way = match target {
            // Around it, not into it.
            Some(way) if way.dot(way) < STAND_OFF * STAND_OFF => Vec2::new(-way.y, way.x),
            Some(way) => way,
            None => self.roam(here, arena, now),
        };
        let shot = target.and_then(|way| self.shoot(way, cadence, tick, now.max(gun_ready)));
        if let Some(way) = target.filter(|_| rockets && own.reload == 0) {
            self.launch(&own, way);
        }
        let input = steer(&own, clear_way(arena, here, way)).pressing(self.presses);
        Some(Thought { input, shot })
    }

    /// The way to its goal; another goal when it is there or has tried for too long.
    fn roam(&mut self, here: Vec2, arena: &Arena, now: ServerTime) -> Vec2 {
        let way = self.goal - here;
        if now >= self.bored_at || way.dot(way) < NEAR * NEAR {
            let [width, height] = arena.size();
            self.goal = Vec2::new((self.dice.unit() - 0.5) * width, (self.dice.unit() - 0.5) * height);
            self.bored_at = now + PATIENCE;
        }
        self.goal - here
    }

    /// Presses the rocket button now and then, when its hull points at a tank that is near.
    fn launch(&mut self, own: &Tank, way: Vec2) {
        let error = turns(way) - own.heading;
        let error = error - libm::round(error);
        let near = way.dot(way) < ROCKET_RANGE * ROCKET_RANGE;
        if near && error.abs() < ROCKET_ERROR && self.dice.unit() < ROCKET_CHANCE {
            self.presses = Presses::next(self.presses);
        }
    }

    fn shoot(&mut self, way: Vec2, cadence: Cadence, newest: Tick, ready: ServerTime) -> Option<ShootInput> {
        let moment = cadence.end_of(newest);
        if moment < ready.max(self.next_shot) {
            return None;
        }
        self.next_shot = moment + PAUSE.mul_f64(self.dice.unit());
        let error = (self.dice.unit() * 2.0 - 1.0) * AIM_ERROR;
        let aim = turns(way) + error;
        let aim = (aim - libm::floor(aim)) * 65_536.0;
        let seen = Seen { snapshot: newest, before_micros: 0 };
        Some(ShootInput { tick: newest.next(), at: 0, aim: aim as u16, seen })
    }

    pub(super) fn digest(&self, digest: Digest) -> Digest {
        let times = [self.bored_at.as_micros(), self.next_shot.as_micros()];
        let digest = digest.word(self.dice.state()).float(self.goal.x).float(self.goal.y);
        let digest = times.into_iter().fold(digest, Digest::word);
        digest.word(u64::from(self.next_thought.number())).word(u64::from(self.presses))
    }
}

/// The direction of a way, turns to the left of east.
fn turns(way: Vec2) -> f64 {
    libm::atan2(way.y, way.x) / TAU
}

fn ray(here: Vec2, direction: f64) -> Ray {
    let part = direction - libm::floor(direction);
    Ray::new([here.x, here.y], (part * 65_536.0) as u16)
}

fn is_in_sight(arena: &Arena, here: Vec2, way: Vec2, range: f64) -> bool {
    let distance = libm::hypot(way.x, way.y);
    distance <= range && ray(here, turns(way)).to_arena(arena) >= distance
}

/// The direction nearest to `way` in which no wall is near.
fn clear_way(arena: &Arena, here: Vec2, way: Vec2) -> f64 {
    let wish = turns(way);
    let sides = [0.0, 0.08, -0.08, 0.17, -0.17, 0.25, -0.25, 0.4, -0.4];
    let mut clear = sides.iter().map(|side| wish + side);
    clear.find(|direction| ray(here, *direction).to_arena(arena) > LOOK_AHEAD).unwrap_or(wish)
}

/// The input that turns a tank into a direction and drives it there.
fn steer(tank: &Tank, direction: f64) -> TankInput {
    let error = direction - tank.heading;
    let error = error - libm::round(error);
    let level = |value: f64| Axis::from_level(libm::round(value.clamp(-1.0, 1.0) * 4.0) as i8 * 4);
    let throttle = if error.abs() < 0.12 { 1.0 } else { 0.25 };
    TankInput { turn: level(error * 8.0), throttle: level(throttle), rocket: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_turns_the_short_way_round() {
        let tank = Tank::new(0.0, 0.0, 0.9);
        let left = steer(&tank, 0.1);
        assert!(left.turn.level() > 0 && left.throttle.level() > 0, "{left:?}");
        assert!(steer(&tank, 0.7).turn.level() < 0);
        assert_eq!(steer(&tank, -0.1), TankInput { throttle: Axis::FULL, ..TankInput::NEUTRAL });
    }

    #[test]
    fn a_wall_hides_a_tank_and_bends_the_way() {
        let block = crate::arena::Obstacle::Block { min: [-1.0, -4.0], max: [1.0, 4.0] };
        let arena = Arena::new([40.0, 40.0], vec![block]).unwrap();
        let (here, way) = (Vec2::new(-5.0, 0.0), Vec2::new(10.0, 0.0));
        assert!(!is_in_sight(&arena, here, way, 60.0));
        assert!(is_in_sight(&arena, here, Vec2::new(0.0, 10.0), 60.0));
        assert!(!is_in_sight(&arena, here, Vec2::new(0.0, 10.0), 9.0), "out of range");
        assert_ne!(clear_way(&arena, here, way), 0.0);
        assert_eq!(clear_way(&arena, here, Vec2::new(0.0, 10.0)), 0.25);
    }
}
