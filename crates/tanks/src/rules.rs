//! The tank rules as a [`Game`]: kinematics, collision, settling.

use std::sync::Arc;
use std::time::Duration;

use halftrack::{Contact, Game, MotionLimits};

use crate::arena::Arena;
use crate::body::{MoveParams, Tank, TankPose};
use crate::collide::{Space, Vec2};
use crate::input::TankInput;

/// The rules of the reference game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tanks;

/// Another tank, as it stood at the start of the tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hull {
    /// Metres east.
    pub x: f64,
    /// Metres north.
    pub y: f64,
}

/// What a tank moves among.
#[derive(Debug, PartialEq)]
pub struct Surroundings {
    /// The fixed world.
    pub arena: Arc<Arena>,
    /// The other tanks, frozen.
    pub hulls: Vec<Hull>,
}

impl Surroundings {
    /// `arena`, and nobody in it.
    pub fn empty(arena: Arc<Arena>) -> Self {
        Self { arena, hulls: Vec::new() }
    }
}

impl Clone for Surroundings {
    fn clone(&self) -> Self {
        Self { arena: Arc::clone(&self.arena), hulls: self.hulls.clone() }
    }

    /// Reuses the memory of `hulls`.
    fn clone_from(&mut self, source: &Self) {
        self.arena.clone_from(&source.arena);
        self.hulls.clone_from(&source.hulls);
    }
}

impl Tanks {
    /// How fast two tanks that overlap are pushed apart, each: metres per second. They overlap because both
    /// moved at once; a metre and a half per tick would look like an explosion.
    pub(crate) const SEPARATION_SPEED: f64 = 4.0;

    /// What a tank with these parameters can do, for [`halftrack::CorrectionConfig::for_motion`].
    pub fn motion_limits(params: MoveParams) -> MotionLimits {
        MotionLimits {
            // A tank that cannot move by itself can still be pushed.
            top_speed: params.speed().max(Self::SEPARATION_SPEED),
            top_turn: params.turn_speed().max(MoveParams::default().turn_speed()) * core::f64::consts::TAU,
            grid_distance: Tank::GRID,
            grid_angle: Tank::HEADING_GRID * core::f64::consts::TAU,
            max_hold: Self::MAX_HOLD,
        }
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
    type Surroundings = Surroundings;
    type Pose = TankPose;

    fn neutral() -> TankInput {
        TankInput::NEUTRAL
    }

    #[inline]
    fn advance(tank: &mut Tank, input: TankInput, span: Duration, surroundings: &Surroundings) -> Contact {
        if !tank.is_alive() {
            return Contact::Free;
        }
        let seconds = f64::from(span.subsec_micros()) * 1e-6;
        let (heading, motion) = Self::drive(tank, input, seconds);
        tank.heading = heading;
        let space = Space {
            arena: &surroundings.arena,
            hulls: surroundings.hulls.iter().map(|hull| Vec2::new(hull.x, hull.y)),
        };
        let from = Vec2::new(tank.x, tank.y);
        let push = space.separation(from, Self::SEPARATION_SPEED * seconds);
        let motion = push.map_or(motion, |push| motion + push);
        // A tank at rest stays, to the bit, also against a wall.
        if motion == Vec2::ZERO {
            return Contact::Free;
        }
        let (at, contact) = space.slide(from, motion);
        (tank.x, tank.y) = (at.x, at.y);
        if push.is_some() { Contact::Touched } else { contact }
    }

    #[inline]
    fn settle(tank: &mut Tank) {
        *tank = tank.to_grid().into();
    }

    fn pose(tank: &Tank) -> TankPose {
        tank.pose()
    }

    fn digest(tank: &Tank) -> u64 {
        tank.digest()
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
