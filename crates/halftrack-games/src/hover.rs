//! Hover craft: they glide, turn by thrust, and bounce off each other and off the walls.
//!
//! # Contact that conserves momentum
//!
//! A rule changes only its own body, so both bodies of a pair compute the push, each for itself. It must be the same push.
//! So it follows from nothing but the two bodies as they stood at the start of the tick, and happens once per tick: at the
//! moment at which the pair would touch if both glided on. A sweep against the other's frozen hull in each step of a tick
//! would give each body another push, since their steps are cut where the input of each changes.

use core::time::Duration;
use std::sync::Arc;

use halftrack::server::{Room, World};
use halftrack::wire::control::Login;
use halftrack::{
    Body, BodyId, Digest, Driver, Game, Input, MotionLimits, Neighbour, PlayerId, Pose2, Reach, Step,
};

use crate::plane::{Motion, Vector, at_most, length, meet, plus, toward};

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hover {
    /// Half the width of the square rink, metres: at most 64, on the grid of positions.
    pub rink: f64,
    /// The part of its speed that a craft loses in a second, roughly. With 0 it glides on forever.
    pub drag: f64,
    /// The part of the speed at which two craft meet that they part with.
    pub bounce: f64,
}

impl Default for Hover {
    fn default() -> Self {
        Self { rink: 24.0, drag: 0.6, bounce: 0.8 }
    }
}

/// The player's wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct Pad {
    /// From -1, full astern, to 1, full ahead.
    #[grid(1/16, -1..=1)]
    pub thrust: f64,
    /// From -1, clockwise, to 1.
    #[grid(1/16, -1..=1)]
    pub turn: f64,
}

/// A hover craft.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub struct Craft {
    /// Where it is, and how fast it goes.
    pub motion: Motion,
    /// Turns, counterclockwise from east.
    #[turns(1/65536)]
    pub heading: f64,
    /// Tonnes.
    #[grid(1/8, 1..=4)]
    pub mass: f64,
}

impl Craft {
    /// Metres from its middle to its rim.
    pub const RADIUS: f64 = 1.0;
    /// Metres per second: faster ones are slowed down. Twice as fast as thrust and drag of [`Hover::default`] make it, as
    /// only a push by a heavier craft does.
    pub const TOP_SPEED: f64 = 40.0;
    const CRUISE: f64 = 20.0;
    /// Metres per second squared at full thrust.
    const THRUST: f64 = 12.0;
    /// Turns per second.
    const TURN: f64 = 0.6;
    /// Metres per second at which two craft part at least that have come to overlap.
    const PART: f64 = 1.0;

    /// A craft of one tonne that rests at `position`.
    pub const fn at(position: [f64; 2]) -> Self {
        Self { motion: Motion { position, velocity: [0.0; 2] }, heading: 0.0, mass: 1.0 }
    }
}

/// A push by another craft.
struct Push {
    /// Seconds into the tick.
    at: f64,
    /// Tonnes times metres per second.
    momentum: Vector,
    other: BodyId,
}

impl Hover {
    /// The push that `own` gets in this tick from `other`, whose own one is exactly the opposite. Both are as they stood at
    /// the start of the tick.
    fn push(&self, (own, id): (&Craft, BodyId), other: &Neighbour<Self>) -> Option<Push> {
        let one = (&own.motion, id < other.id);
        let met = meet(one, &other.motion, 2.0 * Craft::RADIUS, (self.bounce, Craft::PART))?;
        let common = own.mass * other.mass / (own.mass + other.mass);
        let momentum = plus([0.0; 2], met.normal, -common * met.change);
        Some(Push { at: met.after, momentum, other: other.id })
    }

    /// Moves a craft that nothing touches for so many seconds.
    fn glide(&self, craft: &mut Craft, pad: Pad, seconds: f64) {
        craft.heading += pad.turn * Craft::TURN * seconds;
        let sped = plus(craft.motion.velocity, toward(craft.heading), pad.thrust * Craft::THRUST * seconds);
        let slowed = plus([0.0; 2], sped, libm::exp(-self.drag * seconds));
        craft.motion.velocity = at_most(slowed, Craft::TOP_SPEED);
        craft.motion.glide(seconds, [self.rink - Craft::RADIUS; 2], self.bounce);
    }
}

impl Game for Hover {
    type Input = Pad;
    type Body = Craft;
    type Pose = Pose2;

    fn advance(&self, craft: &mut Craft, pad: Pad, step: &mut Step<'_, Self>) {
        let start = step.into_tick().as_secs_f64();
        let end = (step.into_tick() + step.span()).as_secs_f64();
        let own = (step.own_at_start(), step.id());
        let pushes = step.neighbours().iter().filter_map(|other| self.push(own, other));
        // Nothing is allocated while nothing touches.
        let mut pushes: Vec<_> = pushes.filter(|push| (start..end).contains(&push.at)).collect();
        pushes.sort_by(|one, other| one.at.total_cmp(&other.at));
        let mut now = start;
        for push in pushes {
            self.glide(craft, pad, push.at - now);
            craft.motion.velocity = plus(craft.motion.velocity, push.momentum, 1.0 / craft.mass);
            step.touch(push.other);
            now = push.at;
        }
        self.glide(craft, pad, end - now);
    }

    fn pose(&self, craft: &Craft) -> Option<Pose2> {
        let [x, y] = craft.motion.position;
        Some(Pose2 { x, y, heading: craft.heading })
    }

    fn limits(&self, craft: &Craft) -> MotionLimits {
        let top_speed = length(craft.motion.velocity).max(Craft::CRUISE) + 0.5;
        let top_turn = core::f64::consts::TAU * Craft::TURN + 0.1;
        MotionLimits { top_speed, top_turn, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4 }
    }

    fn fingerprint(&self) -> u64 {
        let Self { rink, drag, bounce } = *self;
        [rink, drag, bounce].into_iter().fold(Digest::new().word(1), Digest::float).finish()
    }

    /// Both craft move, so the way of each is part of its extent.
    fn reach(&self, craft: &Craft, span: Duration) -> Option<Reach> {
        let [x, y] = craft.motion.position;
        Some(Reach::plane(x, y, Craft::RADIUS + (Craft::TOP_SPEED + 0.1) * span.as_secs_f64(), 0.0))
    }

    /// The craft that the player may meet: the bounce is then seen where and when it happens.
    fn predicts(&self, _: &Craft, _: &Craft) -> bool {
        true
    }
}

/// The authority's side: every player gets a craft, some heavier than others.
#[derive(Clone, Debug, Default)]
pub struct Rink {
    /// The rules.
    pub rules: Arc<Hover>,
}

impl World for Rink {
    type Game = Hover;

    fn rules(&self) -> &Arc<Hover> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Hover>) {
        let number = player.number();
        // Places on a ring, by the golden section, until one is free.
        let place = |nth: u16| {
            let turns = f64::from(number.wrapping_add(nth)) * 0.618_034;
            plus([0.0; 2], toward(turns), 0.6 * self.rules.rink)
        };
        let is_free = |at: &Vector| {
            room.bodies()
                .all(|(.., craft)| length(plus(craft.motion.position, *at, -1.0)) > 3.0 * Craft::RADIUS)
        };
        let position = (0..64).map(place).find(is_free).unwrap_or_default();
        let craft = Craft { mass: 1.0 + 0.5 * f64::from(number % 3), ..Craft::at(position) };
        // Where a room is full, the player watches.
        let _ = room.spawn(Driver::Player(player), craft);
    }
}
