//! The tank rules as a [`Game`]: kinematics, collision, settling.

mod crates;
mod rocket;
mod tank;

use std::sync::Arc;
use std::time::Duration;

use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{BodyId, Digest, Game, MotionLimits, Neighbour, Reach, Step, Tick};

use crate::arena::Arena;
use crate::body::{MoveParams, Tank, TankPose};
use crate::collide::{HULL_REACH, Round, Space, Vec2};
use crate::entity::{Crate, Entity, Rocket};
use crate::input::TankInput;
use crate::platform::Platform;
use crate::recording;

/// The rules of the reference game: tanks, rockets, crates and platforms in an arena.
///
/// ```
/// use halftrack::Game;
/// use tanks::{Arena, Tanks};
///
/// let rules = Tanks::new(Arena::proving_ground().into());
/// assert_ne!(rules.fingerprint(), Tanks::new(Arena::open_ground(200).into()).fingerprint());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tanks {
    arena: Arc<Arena>,
}

/// Counted up with every change of the rules, `libm`'s version included: ends with different rules do not play.
const VERSION: u64 = 2;

/// Where the middle of a tank is: all that a shot or another tank sees of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hull {
    /// Metres east.
    pub x: f64,
    /// Metres north.
    pub y: f64,
}

impl Tanks {
    /// How fast two hulls that overlap are pushed apart, each: metres per second. They overlap because both
    /// moved at once; a metre and a half per tick would look like an explosion. A crate is never pushed faster.
    pub(crate) const SEPARATION_SPEED: f64 = 4.0;

    /// The rules of a game in `arena`.
    pub fn new(arena: Arc<Arena>) -> Self {
        Self { arena }
    }

    /// The walls and obstacles.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The hulls that stand in the way of a tank or of a crate, `seen` as it sees each kind. What rides with it on platform
    /// `on` has gone as far as that since the start of the tick.
    #[inline]
    fn hulls(
        neighbours: &[Neighbour<Self>],
        on: Option<Ride>,
        seen: impl Fn(&Entity, Vec2) -> Option<Round> + Clone,
    ) -> impl Iterator<Item = Round> + Clone {
        neighbours.iter().filter_map(move |other| {
            let TankPose { x, y, .. } = other.pose();
            let gone = on.filter(|ride| ride.platform.supports(x, y)).map_or(Vec2::ZERO, |ride| ride.gone);
            seen(&other.body, Vec2::new(x, y) + gone)
        })
    }

    /// The platform that the moving body stood on at the start of the tick, which carries it until the tick's end.
    fn ride(step: &Step<'_, Self>) -> Option<Ride> {
        let (x, y) = match step.own_at_start() {
            Entity::Tank(Tank { x, y, .. }) | Entity::Crate(Crate { x, y }) => (*x, *y),
            Entity::Rocket(_) | Entity::Platform(_) => return None,
        };
        step.neighbours().iter().find_map(|other| {
            let platform = *other.platform().filter(|platform| platform.supports(x, y))?;
            let (time, span) = (step.time(), step.span());
            let gone = platform.way(time - step.into_tick(), step.into_tick() + span);
            Some(Ride { id: other.id, platform, way: platform.way(time, span), gone })
        })
    }

    /// Carries a hull at `from`, which nothing but a wall stops: hulls in the way are pushed.
    fn carry(&self, from: Vec2, ride: Option<Ride>, step: &mut Step<'_, Self>) -> Vec2 {
        let Some(ride) = ride.filter(|ride| ride.way != Vec2::ZERO) else { return from };
        step.touch(ride.id);
        Space { arena: &self.arena, hulls: core::iter::empty() }.slide(from, ride.way).0
    }
}

/// A ride on a platform in a step.
#[derive(Clone, Copy, Debug)]
struct Ride {
    id: BodyId,
    platform: Platform,
    /// The platform's way in the step.
    way: Vec2,
    /// The same from the start of the tick to the end of the step.
    gone: Vec2,
}

/// Marks the hulls within reach of a hull at `at`, or else the nearest one.
fn touch_nearest(step: &mut Step<'_, Tanks>, at: Vec2) {
    let mut nearest = None;
    for other in step.neighbours() {
        let (Entity::Tank(Tank { x, y, .. }) | Entity::Crate(Crate { x, y })) = other.body else { continue };
        let way = Vec2::new(x, y) - at;
        let away = way.dot(way);
        if away <= HULL_REACH * HULL_REACH {
            step.touch(other.id);
        }
        if nearest.is_none_or(|(least, _)| away < least) {
            nearest = Some((away, other.id));
        }
    }
    if let Some((_, nearest)) = nearest {
        step.touch(nearest);
    }
}

/// The direction that a heading, in turns, points in.
///
/// Taken apart into quarter turns, which are exact, and at most an eighth of a turn either way: a tank that
/// points north moves north to the bit, and `libm` is spared its search for the quadrant.
#[inline]
pub(crate) fn forward(heading: f64) -> Vec2 {
    // Added to a float below 2^51, it leaves no room for a fraction: what is left is rounded to whole numbers,
    // and they stand in its low bits. Two additions, where a conversion there and back takes five times that.
    const WHOLE: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    let rounded = heading * 4.0 + WHOLE;
    let quarters = rounded.to_bits();
    let (sin, cos) = libm::sincos((heading - (rounded - WHOLE) * 0.25) * core::f64::consts::TAU);
    match quarters & 3 {
        0 => Vec2::new(cos, sin),
        1 => Vec2::new(-sin, cos),
        2 => Vec2::new(-cos, -sin),
        _ => Vec2::new(sin, -cos),
    }
}

impl Game for Tanks {
    type Input = TankInput;
    type Body = Entity;
    type Pose = TankPose;

    #[inline]
    fn advance(&self, body: &mut Entity, input: TankInput, step: &mut Step<'_, Self>) {
        match body {
            Entity::Tank(tank) => self.advance_tank(tank, input, step),
            Entity::Rocket(rocket) => self.advance_rocket(rocket, step),
            Entity::Crate(cargo) => self.advance_crate(cargo, step),
            Entity::Platform(platform) => *platform = platform.moved_to(step.time() + step.span()),
        }
    }

    #[inline]
    fn pose(&self, body: &Entity) -> Option<TankPose> {
        Some(body.pose())
    }

    fn limits(&self, body: &Entity) -> MotionLimits {
        let (top_speed, turns) = match body {
            Entity::Tank(tank) => {
                let turn = tank.params.turn_speed().max(MoveParams::default().turn_speed());
                // A tank that cannot move by itself can still be pushed.
                (tank.params.speed().max(Self::SEPARATION_SPEED), turn)
            }
            Entity::Rocket(_) => (Rocket::SPEED, MoveParams::default().turn_speed()),
            Entity::Crate(_) => (Self::SEPARATION_SPEED, MoveParams::default().turn_speed()),
            Entity::Platform(_) => (Platform::TOP_SPEED, MoveParams::default().turn_speed()),
        };
        MotionLimits {
            top_speed,
            top_turn: turns * core::f64::consts::TAU,
            grid_distance: Tank::GRID,
            grid_angle: Tank::HEADING_GRID * core::f64::consts::TAU,
        }
    }

    fn fingerprint(&self) -> u64 {
        let rules = Digest::new().word(VERSION).float(Tank::GRID).float(Tank::HEADING_GRID);
        self.arena.digest(rules).finish()
    }

    #[inline]
    fn reach(&self, body: &Entity, span: Duration) -> Option<Reach> {
        const PUSHED: f64 = Tanks::SEPARATION_SPEED + Platform::TOP_SPEED;
        let (speed, extent) = match body {
            Entity::Tank(tank) => (tank.params.speed() + PUSHED, HULL_REACH * 0.5),
            Entity::Rocket(_) => (Rocket::SPEED, 0.1),
            Entity::Crate(_) => (PUSHED, HULL_REACH * 0.5),
            // It moves whatever is near.
            Entity::Platform(_) => (0.0, Platform::HALF),
        };
        let TankPose { x, y, .. } = body.pose();
        Some(Reach::plane(x, y, extent, speed * span.as_secs_f64()))
    }

    fn predicts(&self, own: &Entity, other: &Entity) -> bool {
        match own {
            Entity::Tank(_) | Entity::Crate(_) => matches!(other, Entity::Crate(_) | Entity::Platform(_)),
            Entity::Rocket(_) | Entity::Platform(_) => false,
        }
    }

    fn carries(&self, other: &Entity, body: &Entity) -> bool {
        let stands = matches!(body, Entity::Tank(_) | Entity::Crate(_));
        let TankPose { x, y, .. } = body.pose();
        stands && other.platform().is_some_and(|platform| platform.supports(x, y))
    }

    fn write_order(order: &[u8], newest: Tick, bits: &mut BitWriter<'_>) {
        recording::write_order(order, newest, bits);
    }

    fn read_order(newest: Tick, bits: &mut BitReader<'_>) -> Result<Vec<u8>, WireError> {
        recording::read_order(newest, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_is_right_all_around_and_exact_at_quarter_turns() {
        for step in -65_536..131_072 {
            let heading = f64::from(step) / 65_536.0 + 1e-6;
            let (sin, cos) = libm::sincos(heading * core::f64::consts::TAU);
            let forward = forward(heading);
            assert!((forward.x - cos).abs() < 1e-14 && (forward.y - sin).abs() < 1e-14, "at {heading}");
        }
        let directions = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
        for (quarter, (x, y)) in (-4..8).zip(directions.into_iter().cycle()) {
            assert_eq!(forward(f64::from(quarter) * 0.25), Vec2::new(x, y));
        }
    }
}
