//! What a tank does in a step: it answers presses, drives, pushes, and is carried and pushed.

use core::time::Duration;

use halftrack::{Contact, Step};

use super::{Tanks, forward, touch_nearest};
use crate::body::Tank;
use crate::collide::{HULL_RADIUS, Round, Space, Vec2};
use crate::entity::{Entity, Rocket};
use crate::input::TankInput;
use crate::ray::Ray;

/// From the middle of a tank to the rocket that it launches, metres: just outside its hull.
const MUZZLE: f64 = HULL_RADIUS + 0.3;
/// The part of its speed towards a crate that a tank keeps while it pushes.
const PUSHING: f64 = 0.4;

impl Tanks {
    #[inline]
    pub(super) fn advance_tank(&self, tank: &mut Tank, input: TankInput, step: &mut Step<'_, Self>) {
        if input.rocket != tank.presses {
            self.answer(tank, input.rocket, step);
        }
        if tank.reload > 0 {
            tank.reload = tank.reload.saturating_sub(micros(step));
        }
        if step.neighbours().is_empty() {
            self.advance_alone(tank, input, step.seconds());
            return;
        }
        let ride = Self::ride(step);
        let from = self.carry(Vec2::new(tank.x, tank.y), ride, step);
        (tank.x, tank.y) = (from.x, from.y);
        if !tank.is_alive() {
            return;
        }
        let seconds = step.seconds();
        let (heading, motion) = Self::drive(tank, input, seconds);
        tank.heading = heading;
        let hulls = Self::hulls(step.neighbours(), ride, as_tank_sees);
        let space = Space { arena: &self.arena, hulls };
        let push = space.separation(from, Self::SEPARATION_SPEED * seconds);
        let slowed = slow(step, from, ride.map_or(Vec2::ZERO, |ride| ride.gone), motion);
        let is_slowed = slowed != motion;
        let motion = push.map_or(slowed, |push| slowed + push);
        // A tank at rest stays, to the bit, also against a wall.
        if motion == Vec2::ZERO && !is_slowed {
            return;
        }
        let (at, contact) = space.slide(from, motion);
        (tank.x, tank.y) = (at.x, at.y);
        // Pushed and slowed where it was, stopped where it is.
        if push.is_some() || is_slowed {
            touch_nearest(step, from);
        }
        if contact == Contact::Touched {
            touch_nearest(step, at);
        }
    }

    /// The same for a tank that nothing is near to, as for most tanks in most steps.
    #[inline]
    fn advance_alone(&self, tank: &mut Tank, input: TankInput, seconds: f64) {
        if !tank.is_alive() {
            return;
        }
        let (heading, motion) = Self::drive(tank, input, seconds);
        tank.heading = heading;
        if motion == Vec2::ZERO {
            return;
        }
        let space = Space { arena: &self.arena, hulls: core::iter::empty() };
        let (at, _) = space.slide(Vec2::new(tank.x, tank.y), motion);
        (tank.x, tank.y) = (at.x, at.y);
    }

    /// Answers presses: one rocket, or none from a wreck or a tube that is not loaded. A press is never kept for later, so
    /// what comes of it depends on the moment of the press alone.
    #[cold]
    fn answer(&self, tank: &mut Tank, presses: u8, step: &mut Step<'_, Self>) {
        tank.presses = presses;
        if !tank.is_alive() || tank.reload > 0 {
            return;
        }
        tank.reload = Rocket::RELOAD_MICROS;
        let ray = Ray::along(Vec2::new(tank.x, tank.y), tank.heading);
        // Not beyond a thin wall that the tank leans against.
        let Vec2 { x, y } = ray.point(MUZZLE.min(ray.to_arena(&self.arena) - 0.01).max(0.0));
        let rocket = Rocket { x, y, heading: tank.heading, left: Rocket::LIFE_MICROS };
        step.emit(Entity::Rocket(rocket), Duration::ZERO);
    }

    /// Heading first, then position along the new heading.
    #[inline]
    fn drive(tank: &Tank, input: TankInput, seconds: f64) -> (f64, Vec2) {
        // spec: REPLAY-07
        let heading = tank.heading + input.turn.value() * tank.params.turn_speed() * seconds;
        let way = input.throttle.value() * tank.params.speed() * seconds;
        if way == 0.0 {
            return (heading, Vec2::ZERO);
        }
        (heading, forward(heading) * way)
    }
}

/// A tank is stopped by other tanks, and by the cores of crates.
#[inline]
fn as_tank_sees(other: &Entity, at: Vec2) -> Option<Round> {
    match other {
        Entity::Tank(_) => Some(Round::hull(at)),
        Entity::Crate(_) => Some(Round::core(at)),
        Entity::Rocket(_) | Entity::Platform(_) => None,
    }
}

/// The part of a motion that is left to a tank at `from` which drives into crates. They have `gone` with it.
#[inline]
fn slow(step: &Step<'_, Tanks>, from: Vec2, gone: Vec2, motion: Vec2) -> Vec2 {
    let mut motion = motion;
    for cargo in step.neighbours().iter().filter_map(|other| other.as_crate()) {
        let way = Vec2::new(cargo.x, cargo.y) + gone - from;
        let Some((direction, distance)) = way.split() else { continue };
        let into = motion.dot(direction);
        if into > 0.0 && distance < Round::hull(from).apart {
            motion = motion - direction * (into * (1.0 - PUSHING));
        }
    }
    motion
}

pub(super) fn micros(step: &Step<'_, Tanks>) -> u32 {
    u32::try_from(step.span().as_micros()).unwrap_or(u32::MAX)
}
