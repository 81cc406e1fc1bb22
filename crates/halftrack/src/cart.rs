//! The smallest complete game: a cart on a rail, pushed left or right, with one other cart in its way.
//!
//! It is what the examples and the core's own tests run on. Copy its shape, not its physics.

use core::time::Duration;
use std::sync::Arc;

use halftrack_derive::{Body, Pose};

use crate::game::{Game, MotionLimits, Reach, Step};
use crate::id::{Driver, PlayerId};
use crate::wire::{WireError, control::Login};
use crate::world::{Audience, Events, Order, Room, World};

/// The rules: a cart goes as its driver pushes, and cannot pass the next cart ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cart;

/// A cart: where it is on the rail, and how fast full input drives it.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub struct CartBody {
    /// Metres along the rail.
    #[grid(1/1024, -1_000_000..=1_000_000)]
    pub x: f64,
    /// Turns of its wheel, in [0, 1).
    #[turns(1/65536)]
    pub wheel: f64,
    /// Metres per second at full input.
    #[grid(1/1024, 0..=1_000)]
    pub speed: f64,
}

impl CartBody {
    /// A cart standing at `x`.
    pub const fn at(x: f64) -> Self {
        Self { x, wheel: 0.0, speed: 8.0 }
    }
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Pose)]
pub struct CartPose {
    /// Metres along the rail.
    #[x]
    pub x: f64,
    /// Turns of the wheel.
    #[turns]
    pub wheel: f64,
}

impl Game for Cart {
    /// From -8 (full left) to 8 (full right).
    type Input = i8;
    type Body = CartBody;
    type Pose = CartPose;

    fn advance(&self, cart: &mut CartBody, input: i8, step: &mut Step<'_, Self>) {
        let drive = f64::from(input.clamp(-8, 8)) / 8.0;
        let moved = drive * cart.speed * step.seconds();
        // The wheel slips: its turn is not linear in the way, so a tick cut differently ends differently.
        cart.wheel += 0.1 * moved + 0.3 * moved * moved;
        let start = step.own_at_start().x;
        let ahead = step.neighbours().iter().filter(|other| other.x >= start);
        match ahead.min_by(|one, other| one.x.total_cmp(&other.x)) {
            Some(next) if cart.x <= next.x && cart.x + moved > next.x => {
                cart.x = next.x;
                step.touch(next.id);
            }
            _ => cart.x += moved,
        }
    }

    fn pose(&self, cart: &CartBody) -> Option<CartPose> {
        Some(CartPose { x: cart.x, wheel: cart.wheel })
    }

    fn limits(&self, cart: &CartBody) -> MotionLimits {
        MotionLimits { top_speed: cart.speed, top_turn: 20.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4 }
    }

    fn fingerprint(&self) -> u64 {
        1
    }

    fn reach(&self, cart: &CartBody, span: Duration) -> Option<Reach> {
        // Settling adds up to half a grid step to each tick: at most 0.1 m/s at the shortest cadence.
        Some(Reach::plane(cart.x, 0.0, 0.001, (cart.speed + 0.1) * span.as_secs_f64()))
    }
}

/// The authority's side: carts come in ten metres behind each other, and each has a bell.
#[derive(Clone, Debug, Default)]
pub struct Rails {
    rules: Arc<Cart>,
    /// Who has rung, and how, since the last tick.
    rung: Vec<(PlayerId, u8)>,
}

impl World for Rails {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Cart>) {
        let last = room.bodies().map(|(.., cart)| cart.x).reduce(f64::min);
        // Where a room is full, the player watches.
        let _ = room.spawn(Driver::Player(player), CartBody::at(last.map_or(0.0, |last| last - 10.0)));
    }

    fn leave(&mut self, player: PlayerId, _: &mut Room<'_, Cart>, _: &mut Events) {
        self.rung.retain(|(ringing, _)| *ringing != player);
    }

    fn order(&mut self, order: Order<'_, Cart>) -> Result<(), WireError> {
        let [how] = order.bytes else { return Err(WireError::Invalid { field: "bell" }) };
        self.rung.push((order.player, *how));
        Ok(())
    }

    fn resolve(&mut self, _: &mut Room<'_, Cart>, events: &mut Events) {
        for (player, how) in self.rung.drain(..) {
            let [low, high] = player.number().to_le_bytes();
            // Three bytes always fit.
            let _ = events.tell(Audience::All, &[low, high, how]);
        }
    }
}
