//! Two teams, one ball, two goals.
//!
//! The rules alone move the ball, and players near it predict it. A rule changes only its own body, so the *ball* decides a
//! kick: a player's body shows its kicks in the tick that just ended, and the ball takes those within reach, in order of the
//! players' ids, at the start of the next one. Each press is shown in one tick, so it is one kick.

use core::time::Duration;
use std::sync::Arc;

use halftrack::model::Presses;
use halftrack::server::{Events, Room, World};
use halftrack::wire::control::Login;
use halftrack::{
    Body, Cause, Causes, Digest, Driver, Game, Input, MotionLimits, PlayerId, Pose2, Reach, Step,
};

use crate::plane::{Motion, Vector, at_most, length, meet, plus, toward};

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Football {
    /// The part of its speed that the ball loses in a second, roughly.
    pub friction: f64,
    /// Half the width of a goal, metres. With 0 there are no goals.
    pub goal: f64,
}

/// The player's wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct Pad {
    /// Where to run: at most 1 long.
    #[grid(1/16, -1..=1)]
    pub run: [f64; 2],
    /// Kicks so far.
    #[presses]
    pub kick: u8,
}

/// A body of the game.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub enum Thing {
    /// A player on the pitch.
    Player(Player),
    /// The ball.
    Ball(Ball),
    /// Goals of the team that plays towards the east, and of the other. It is not drawn.
    Score([u32; 2]),
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub struct Player {
    /// Where it is, and how fast it goes.
    pub motion: Motion,
    /// Turns, counterclockwise from east.
    #[turns(1/4096)]
    pub facing: f64,
    /// Whether its team plays towards the east.
    pub east: bool,
    /// The count of presses that it has seen.
    #[presses]
    pub seen: u8,
    /// Kicks in this tick.
    #[range(0..=15)]
    pub kicks: u8,
}

/// The ball.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub struct Ball {
    /// Where it is, and how fast it goes.
    pub motion: Motion,
    /// Kicks that it got so far; it wraps.
    pub kicked: u16,
    /// Whether it lies in a goal.
    pub scored: bool,
}

impl Player {
    const RADIUS: f64 = 0.5;
    /// Metres from its middle to that of a ball that it kicks.
    pub const KICK_REACH: f64 = 1.5;
    const KICK: f64 = 12.0;
    const RUN: f64 = 7.0;

    fn advance(&mut self, pad: Pad, step: &Step<'_, Football>) {
        let before = if step.into_tick().is_zero() { 0 } else { self.kicks };
        self.kicks = (before + Presses::since(self.seen, pad.kick)).min(15);
        self.seen = pad.kick;
        if pad.run != [0.0; 2] {
            self.facing = libm::atan2(pad.run[1], pad.run[0]) / core::f64::consts::TAU;
        }
        self.motion.velocity = plus([0.0; 2], at_most(pad.run, 1.0), Self::RUN);
        self.motion.glide(step.seconds(), walls(Self::RADIUS), 0.0);
    }
}

impl Ball {
    const RADIUS: f64 = 0.25;
    const TOP_SPEED: f64 = 15.0;

    fn advance(&mut self, rules: &Football, step: &mut Step<'_, Football>) {
        let begins = step.into_tick().is_zero();
        for other in step.neighbours() {
            let Thing::Player(player) = other.body else { continue };
            let far = length(plus(self.motion.position, player.motion.position, -1.0));
            if begins && player.kicks > 0 && far <= Player::KICK_REACH {
                self.push(toward(player.facing), Player::KICK * f64::from(player.kicks));
                self.kicked = self.kicked.wrapping_add(u16::from(player.kicks));
                step.touch(other.id);
            }
        }
        let slower = libm::exp(-rules.friction * step.seconds());
        self.motion.velocity = plus([0.0; 2], self.motion.velocity, slower);
        let meetings = step.neighbours().iter().filter_map(|other| {
            let Thing::Player(Player { mut motion, .. }) = other.body else { return None };
            motion.position = plus(motion.position, motion.velocity, step.into_tick().as_secs_f64());
            // A ball that a player has run into gets out of the way.
            let met = meet((&self.motion, true), &motion, Self::RADIUS + Player::RADIUS, (0.5, 2.0))?;
            (met.after < step.seconds()).then_some((met, other.id))
        });
        // Of several players in one tick, it bounces off the first.
        let first = meetings.min_by(|(one, _), (other, _)| one.after.total_cmp(&other.after));
        let mut left = step.seconds();
        if let Some((met, id)) = first {
            self.roll(rules, met.after);
            self.push(met.normal, -met.change);
            step.touch(id);
            left -= met.after;
        }
        self.roll(rules, left);
    }

    fn push(&mut self, way: Vector, speed: f64) {
        self.motion.velocity = at_most(plus(self.motion.velocity, way, speed), Self::TOP_SPEED);
    }

    fn roll(&mut self, rules: &Football, seconds: f64) {
        let walls = walls(Self::RADIUS);
        let [x, y] = plus(self.motion.position, self.motion.velocity, seconds);
        if x.abs() > walls[0] && y.abs() < rules.goal {
            self.scored = true;
            self.motion = Motion { position: [walls[0].copysign(x), y], velocity: [0.0; 2] };
        }
        self.motion.glide(seconds, walls, 1.0);
    }
}

impl Default for Football {
    fn default() -> Self {
        Self { friction: 0.5, goal: 3.0 }
    }
}

/// Half the length and half the width of the pitch, metres.
pub const PITCH: [f64; 2] = [20.0, 12.0];

fn walls(radius: f64) -> Vector {
    PITCH.map(|half| half - radius)
}

impl Game for Football {
    type Input = Pad;
    type Body = Thing;
    type Pose = Pose2;

    fn advance(&self, thing: &mut Thing, pad: Pad, step: &mut Step<'_, Self>) {
        match thing {
            Thing::Player(player) => player.advance(pad, step),
            Thing::Ball(ball) => ball.advance(self, step),
            Thing::Score(_) => {}
        }
    }

    fn pose(&self, thing: &Thing) -> Option<Pose2> {
        let (motion, heading) = match thing {
            Thing::Player(player) => (player.motion, player.facing),
            Thing::Ball(ball) => (ball.motion, 0.0),
            Thing::Score(_) => return None,
        };
        let [x, y] = motion.position;
        Some(Pose2 { x, y, heading })
    }

    fn limits(&self, thing: &Thing) -> MotionLimits {
        let top_speed = if let Thing::Ball(_) = thing { Ball::TOP_SPEED } else { Player::RUN };
        MotionLimits { top_speed, top_turn: 100.0, grid_distance: 1.0 / 1024.0, grid_angle: 2e-3 }
    }

    fn fingerprint(&self) -> u64 {
        [self.friction, self.goal].into_iter().fold(Digest::new().word(1), Digest::float).finish()
    }

    fn reach(&self, thing: &Thing, span: Duration) -> Option<Reach> {
        let [x, y] = self.pose(thing).map_or([1e6; 2], |pose| [pose.x, pose.y]);
        Some(match thing {
            // The ball meets players that run towards it, so their way is part of their extent.
            Thing::Player(_) => Reach::plane(x, y, Player::RADIUS + 7.5 * span.as_secs_f64(), 0.0),
            _ => Reach::plane(x, y, Player::KICK_REACH, 15.5 * span.as_secs_f64()),
        })
    }

    fn predicts(&self, own: &Thing, other: &Thing) -> bool {
        matches!((own, other), (Thing::Player(_), Thing::Ball(_)))
    }
}

/// The authority's side: teams, the score, and kick-off after a goal.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// The rules.
    pub rules: Arc<Football>,
}

impl World for Match {
    type Game = Football;

    fn rules(&self) -> &Arc<Football> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Football>) {
        if room.bodies().next().is_none() {
            let _ = room.spawn(Driver::Nothing, Thing::Ball(Ball::blank()));
            let _ = room.spawn(Driver::Nothing, Thing::Score([0; 2]));
        }
        let (number, east) = (player.number(), player.number().is_multiple_of(2));
        let position = [if east { -8.0 } else { 8.0 }, f64::from(number / 2 % 5) * 5.0 - 10.0];
        let motion = Motion { position, velocity: [0.0; 2] };
        // Where a room is full, the player watches.
        let body = Thing::Player(Player { motion, east, ..Player::blank() });
        let _ = room.spawn(Driver::Player(player), body);
    }

    fn resolve(&mut self, room: &mut Room<'_, Football>, _: &mut Events) {
        let (mut scored, mut score) = (None, None);
        for (id, _, thing) in room.bodies() {
            match *thing {
                Thing::Ball(ball) if ball.scored => scored = Some((id, ball)),
                Thing::Score(goals) => score = Some((id, goals)),
                _ => {}
            }
        }
        let (Some((ball_id, ball)), Some((score_id, mut goals))) = (scored, score) else { return };
        goals[usize::from(ball.motion.position[0] < 0.0)] += 1;
        let back = Thing::Ball(Ball { kicked: ball.kicked, ..Ball::blank() });
        let _ = room.alter(score_id, Thing::Score(goals), Causes::NONE);
        let _ = room.alter(ball_id, back, Causes::NONE.with(Cause::Teleport));
    }
}
