//! Volley: the smallest game in which every press is a shot. Carts on two rails fire at each other.
//!
//! A cart fires a shot for every press, without a reload. A shot flies straight, and the rules remove it when it hits a cart
//! of the other rail or its time is over. Nobody is hurt: carts go on.

mod gunner;
mod shots;

use std::sync::Arc;
use std::time::Duration;

use halftrack::model::Presses;
use halftrack::server::{Room, World};
use halftrack::wire::control::Login;
use halftrack::{Body, Driver, Game, Input, MotionLimits, PlayerId, Pose2, Reach, Step};

pub use gunner::Gunner;
pub use shots::{NETWORKS, Network, ShotsConfig, ShotsFired, fire};

/// The wish of a player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub struct Trigger {
    /// Metres per second along the rail.
    #[range(-8..=8)]
    pub drive: i8,
    /// Presses of the trigger.
    #[presses]
    pub fire: u8,
}

/// A body.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Piece::Cart { x: 0.0, far: false, fired: 0, burst: 0 })]
pub enum Piece {
    /// A cart with a gun.
    Cart {
        /// Metres along the rail.
        #[grid(1/1024, -64..=64)]
        x: f64,
        /// On the far rail, and fires back.
        far: bool,
        /// Presses that were played.
        #[presses]
        fired: u8,
        /// Shots that it has fired in this tick.
        #[range(0..=8)]
        burst: u8,
    },
    /// A shot.
    Shot {
        /// Metres along the rails.
        #[grid(1/1024, -96..=96)]
        x: f64,
        /// Metres from the near rail.
        #[grid(1/1024, -32..=64)]
        y: f64,
        /// Metres per second along the rails: shots that are fired at once part.
        #[range(-8..=8)]
        drift: i8,
        /// It flies to the near rail.
        back: bool,
        /// Microseconds until it ends by itself.
        #[micros(0..=1_000_000)]
        left: u32,
    },
}

impl Piece {
    const fn place(&self) -> [f64; 2] {
        match *self {
            Self::Cart { x, far, .. } => [x, if far { Volley::WIDTH } else { 0.0 }],
            Self::Shot { x, y, .. } => [x, y],
        }
    }
}

/// The rules.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Volley;

impl Volley {
    /// Metres from rail to rail.
    pub const WIDTH: f64 = 12.0;
    /// Half of a rail, metres.
    const RAIL: f64 = 40.0;
    /// Metres per second of a shot, across the rails.
    const SPEED: f64 = 40.0;
    /// Microseconds that a shot flies: a little longer than to the other rail.
    const LIFE: u32 = 350_000;
    /// Half of a cart, metres.
    const CART: f64 = 1.5;

    /// Fires for every press that was not played yet.
    fn shoot(cart: &mut Piece, fire: u8, step: &mut Step<'_, Self>) {
        let Piece::Cart { x, far, fired, burst } = cart else { return };
        if step.into_tick().is_zero() {
            *burst = 0;
        }
        // More than that are not made in a tick: the rest waits for the next one.
        let room = Step::<Self>::MAX_EMISSIONS as u8 - *burst;
        for _ in 0..Presses::since(*fired, fire).min(room) {
            *fired = Presses::next(*fired);
            *burst += 1;
            let (drift, y) = ((*fired % 5) as i8 * 3 - 6, if *far { Self::WIDTH } else { 0.0 });
            step.emit(Piece::Shot { x: *x, y, drift, back: *far, left: Self::LIFE }, Duration::ZERO);
        }
    }

    /// Flies on, to the first cart in the way or to the end of its time.
    fn fly(shot: &mut Piece, step: &mut Step<'_, Self>) {
        let Piece::Shot { x, y, drift, back, left } = shot else { return };
        let span = (*left).min(step.span().subsec_micros());
        let (speed, drift) = (if *back { -Self::SPEED } else { Self::SPEED }, f64::from(*drift));
        let to = *y + speed * f64::from(span) * 1e-6;
        let met = step.neighbours().iter().find_map(|other| {
            let Piece::Cart { x: at, far, .. } = other.body else { return None };
            let [_, rail] = other.body.place();
            let crosses = far != *back && (*y - rail) * (to - rail) <= 0.0 && *y != to;
            let seconds = (rail - *y) / speed;
            let near = (*x + drift * seconds - at).abs() <= Self::CART;
            (crosses && near).then_some((other.id, seconds))
        });
        let seconds = met.map_or(f64::from(span) * 1e-6, |(_, seconds)| seconds);
        *x += drift * seconds;
        *y += speed * seconds;
        *left -= span;
        if let Some((id, seconds)) = met {
            step.touch(id);
            step.remove(Duration::from_secs_f64(seconds.max(0.0)));
        } else if *left == 0 {
            step.remove(Duration::from_micros(u64::from(span)));
        }
    }
}

impl Game for Volley {
    type Input = Trigger;
    type Body = Piece;
    type Pose = Pose2;

    fn advance(&self, piece: &mut Piece, input: Trigger, step: &mut Step<'_, Self>) {
        Self::shoot(piece, input.fire, step);
        Self::fly(piece, step);
        if let Piece::Cart { x, .. } = piece {
            *x = (*x + f64::from(input.drive) * step.seconds()).clamp(-Self::RAIL, Self::RAIL);
        }
    }

    fn pose(&self, piece: &Piece) -> Option<Pose2> {
        let [x, y] = piece.place();
        Some(Pose2 { x, y, heading: 0.0 })
    }

    fn limits(&self, piece: &Piece) -> MotionLimits {
        let top_speed = if matches!(piece, Piece::Cart { .. }) { 8.0 } else { 41.0 };
        MotionLimits { top_speed, top_turn: 1.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4 }
    }

    fn fingerprint(&self) -> u64 {
        1
    }

    fn reach(&self, piece: &Piece, span: Duration) -> Option<Reach> {
        let [x, y] = piece.place();
        let is_cart = matches!(piece, Piece::Cart { .. });
        let (extent, speed) = if is_cart { (Self::CART + 0.01, 8.2) } else { (0.01, 42.0) };
        Some(Reach::plane(x, y, extent, speed * span.as_secs_f64()))
    }
}

/// The authority's side: every second player is on the far rail.
#[derive(Clone, Debug, Default)]
pub struct Range {
    rules: Arc<Volley>,
    joined: u32,
}

impl World for Range {
    type Game = Volley;

    fn rules(&self) -> &Arc<Volley> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Volley>) {
        let far = !self.joined.is_multiple_of(2);
        let x = f64::from(self.joined / 2 % 8) * 8.0 - 12.0;
        self.joined += 1;
        // Where a room is full, the player watches.
        let _ = room.spawn(Driver::Player(player), Piece::Cart { x, far, fired: 0, burst: 0 });
    }
}

#[cfg(test)]
mod tests {
    use halftrack::{CheckPlan, check_game};

    use super::*;

    #[test]
    fn the_rules_hold_what_every_game_must() {
        let carts = [(-3.0, false), (0.0, true), (2.0, false), (5.0, true)];
        let bodies = carts.map(|(x, far)| Piece::Cart { x, far, fired: 0, burst: 0 });
        let inputs = [(0, 0), (8, 1), (-8, 1), (3, 4), (0, 7)].map(|(drive, fire)| Trigger { drive, fire });
        let plan = CheckPlan { ticks: 200, ..CheckPlan::new(bodies.to_vec(), inputs.to_vec()) };
        let report = check_game(|| Volley, &plan).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(report.ticks >= 200 && report.constant_fields.is_empty(), "{report:?}");
    }
}
