//! The tank rules as a [`Game`]: kinematics, collision, settling.

use std::sync::Arc;
use std::time::Duration;

use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{Contact, Digest, Game, MotionLimits, Reach, Step, Tick};

use crate::arena::Arena;
use crate::body::{MoveParams, Tank, TankPose};
use crate::collide::{HULL_REACH, Space, Vec2};
use crate::input::TankInput;
use crate::recording;

/// The rules of the reference game: tanks in an arena.
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
const VERSION: u64 = 1;

/// Where the middle of a tank is: all that a shot or another tank sees of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hull {
    /// Metres east.
    pub x: f64,
    /// Metres north.
    pub y: f64,
}

impl Tanks {
    /// How fast two tanks that overlap are pushed apart, each: metres per second. They overlap because both
    /// moved at once; a metre and a half per tick would look like an explosion.
    pub(crate) const SEPARATION_SPEED: f64 = 4.0;

    /// The rules of a game in `arena`.
    pub fn new(arena: Arc<Arena>) -> Self {
        Self { arena }
    }

    /// The walls and obstacles.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
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

/// Marks the tanks within reach of a hull at `at`, or else the nearest one.
fn touch_nearest(step: &mut Step<'_, Tanks>, at: Vec2) {
    let away = |other: &Tank| {
        let way = Vec2::new(other.x, other.y) - at;
        way.dot(way)
    };
    let mut nearest = None;
    for other in step.neighbours() {
        let away = away(other);
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
    type Body = Tank;
    type Pose = TankPose;

    #[inline]
    fn advance(&self, tank: &mut Tank, input: TankInput, step: &mut Step<'_, Self>) {
        if !tank.is_alive() {
            return;
        }
        let seconds = step.seconds();
        let (heading, motion) = Self::drive(tank, input, seconds);
        tank.heading = heading;
        let hulls = step.neighbours().iter().map(|other| Vec2::new(other.x, other.y));
        let space = Space { arena: &self.arena, hulls };
        let from = Vec2::new(tank.x, tank.y);
        let push = space.separation(from, Self::SEPARATION_SPEED * seconds);
        let motion = push.map_or(motion, |push| motion + push);
        // A tank at rest stays, to the bit, also against a wall.
        if motion == Vec2::ZERO {
            return;
        }
        let (at, contact) = space.slide(from, motion);
        (tank.x, tank.y) = (at.x, at.y);
        if push.is_some() || contact == Contact::Touched {
            touch_nearest(step, at);
        }
    }

    fn pose(&self, tank: &Tank) -> Option<TankPose> {
        Some(tank.pose())
    }

    fn limits(&self, tank: &Tank) -> MotionLimits {
        let turn = tank.params.turn_speed().max(MoveParams::default().turn_speed());
        MotionLimits {
            // A tank that cannot move by itself can still be pushed.
            top_speed: tank.params.speed().max(Self::SEPARATION_SPEED),
            top_turn: turn * core::f64::consts::TAU,
            grid_distance: Tank::GRID,
            grid_angle: Tank::HEADING_GRID * core::f64::consts::TAU,
        }
    }

    fn fingerprint(&self) -> u64 {
        let rules = Digest::new().word(VERSION).float(Tank::GRID).float(Tank::HEADING_GRID);
        self.arena.digest(rules).finish()
    }

    #[inline]
    fn reach(&self, tank: &Tank, span: Duration) -> Option<Reach> {
        let speed = tank.params.speed() + Self::SEPARATION_SPEED;
        Some(Reach::plane(tank.x, tank.y, HULL_REACH * 0.5, speed * span.as_secs_f64()))
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
