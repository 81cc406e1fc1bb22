//! The smallest complete game: a cart on a rail, pushed left or right, with one other cart in its way.
//!
//! It is what the examples and the core's own tests run on. Copy its shape, not its physics.

use core::time::Duration;

use crate::digest::Digest;
use crate::flight::{Exact, FlightGame, Loader, Saver};
use crate::game::{Contact, Game, Offset, Pose};
use crate::id::PlayerId;
use crate::server::{Audience, Events, Order, Room, World};
use crate::snapshot::BodyCode;
use crate::wire::control::Login;
use crate::wire::{BitReader, BitWriter, WireError};

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cart;

/// A cart: where it is on the rail, and how fast full input drives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CartBody {
    /// Metres along the rail.
    pub x: f64,
    /// Turns of its wheel, in [0, 1).
    pub wheel: f64,
    /// Metres per second at full input.
    pub speed: f64,
}

impl CartBody {
    /// A cart standing at `x`.
    pub const fn at(x: f64) -> Self {
        Self { x, wheel: 0.0, speed: 8.0 }
    }
}

/// What is on the rail besides the cart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rail {
    /// Another cart, which ours cannot pass going up.
    pub blocked_at: Option<f64>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CartPose {
    /// Metres along the rail.
    pub x: f64,
    /// Turns of the wheel.
    pub wheel: f64,
}

/// Grid of the wire: 1/1024 m, and 1/65536 turn.
const METRE: f64 = 1024.0;
const TURN: f64 = 65536.0;

impl Game for Cart {
    /// From -8 (full left) to 8 (full right).
    type Input = i8;
    type Body = CartBody;
    type Surroundings = Rail;
    type Pose = CartPose;

    fn neutral() -> i8 {
        0
    }

    fn advance(body: &mut CartBody, input: i8, span: Duration, rail: &Rail) -> Contact {
        let drive = f64::from(input.clamp(-8, 8)) / 8.0;
        let moved = drive * body.speed * f64::from(span.subsec_micros()) / 1e6;
        // The wheel slips: its turn is not linear in the way, so a tick cut differently ends differently.
        body.wheel += 0.1 * moved + 0.3 * moved * moved;
        match rail.blocked_at {
            Some(limit) if body.x <= limit && body.x + moved > limit => {
                body.x = limit;
                Contact::Touched
            }
            _ => {
                body.x += moved;
                Contact::Free
            }
        }
    }

    fn settle(body: &mut CartBody) {
        // Adding zero turns -0.0 into 0.0.
        body.x = libm::round(body.x * METRE) / METRE + 0.0;
        body.speed = libm::round(body.speed * METRE) / METRE + 0.0;
        let wheel = libm::round(body.wheel * TURN) / TURN;
        body.wheel = wheel - libm::floor(wheel);
    }

    fn pose(body: &CartBody) -> CartPose {
        CartPose { x: body.x, wheel: body.wheel }
    }

    fn digest(body: &CartBody) -> u64 {
        Digest::new().float(body.x).float(body.wheel).float(body.speed).finish()
    }
}

/// The authority's side: carts come in ten metres behind each other, and each has a bell.
#[derive(Clone, Debug, Default)]
pub struct Rails {
    rail: Rail,
    /// Who has rung, and how, since the last tick.
    rung: Vec<(PlayerId, u8)>,
}

impl World for Rails {
    type Game = Cart;

    fn alone(&self) -> &Rail {
        &self.rail
    }

    fn join(&mut self, _: PlayerId, _: &Login, room: &mut Room<'_, Cart>) -> CartBody {
        let last = room.bodies().map(|(_, cart)| cart.x).reduce(f64::min);
        CartBody::at(last.map_or(0.0, |last| last - 10.0))
    }

    fn leave(&mut self, player: PlayerId, _: &mut Room<'_, Cart>, _: &mut Events) {
        self.rung.retain(|(ringing, _)| *ringing != player);
    }

    fn order(&mut self, order: Order<'_>) -> Result<(), WireError> {
        let [how] = order.bytes else { return Err(WireError::Invalid { field: "bell" }) };
        self.rung.push((order.player, *how));
        Ok(())
    }

    fn resolve(&mut self, _: &mut Room<'_, Cart>, events: &mut Events) {
        for (player, how) in self.rung.drain(..) {
            let [low, high] = player.number().to_le_bytes();
            let told = events.tell(Audience::All, &[low, high, how]);
            debug_assert!(told.is_ok(), "three bytes fit");
        }
    }
}

/// A cart is written as it is: it is too small to be worth comparing.
impl BodyCode for Cart {
    fn surround(rail: &mut Rail, carts: &[CartBody], own: usize, _: Duration) {
        let Some(x) = carts.get(own).map(|cart| cart.x) else { return };
        let others = carts.iter().enumerate().filter(|(other, _)| *other != own).map(|(_, cart)| cart.x);
        // The nearest one ahead is in the way.
        rail.blocked_at = others.filter(|other| *other >= x).reduce(f64::min);
    }

    fn shared(_: &Rail) -> u64 {
        Digest::new().float(METRE).float(TURN).finish()
    }

    /// Three numbers of 32 bits.
    const MAX_BODY_BYTES: usize = 12;

    fn blank() -> CartBody {
        CartBody::at(0.0)
    }

    fn write_body(body: &CartBody, _: &CartBody, bits: &mut BitWriter<'_>) {
        for (part, unit) in [(body.x, METRE), (body.wheel, TURN), (body.speed, METRE)] {
            // A settled cart is on the grid: this is exact.
            #[allow(clippy::cast_possible_truncation, reason = "a float that does not fit saturates")]
            bits.write_signed((part * unit) as i32, 32);
        }
    }

    fn read_body(_: &CartBody, bits: &mut BitReader<'_>) -> Result<CartBody, WireError> {
        let mut read = |unit: f64| Ok(f64::from(bits.read_signed(32)?) / unit);
        let body = CartBody { x: read(METRE)?, wheel: read(TURN)?, speed: read(METRE)? };
        if (0.0..1.0).contains(&body.wheel) { Ok(body) } else { Err(WireError::Invalid { field: "wheel" }) }
    }
}

impl FlightGame for Cart {
    fn save_world(rail: &Rail, to: &mut Saver) {
        rail.blocked_at.save(to);
    }

    fn load_world(from: &mut Loader<'_>) -> Result<Rail, WireError> {
        Ok(Rail { blocked_at: Exact::load(from)? })
    }
}

impl Exact for CartBody {
    fn save(&self, to: &mut Saver) {
        [self.x, self.wheel, self.speed].save(to);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let [x, wheel, speed] = Exact::load(from)?;
        Ok(Self { x, wheel, speed })
    }
}

impl Exact for CartPose {
    fn save(&self, to: &mut Saver) {
        [self.x, self.wheel].save(to);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let [x, wheel] = Exact::load(from)?;
        Ok(Self { x, wheel })
    }
}

impl Pose for CartPose {
    fn offset_from(&self, other: &Self) -> Offset {
        let turns = self.wheel - other.wheel;
        let shorter = turns - libm::round(turns);
        Offset {
            position: [self.x - other.x, 0.0, 0.0],
            rotation: [0.0, shorter * core::f64::consts::TAU, 0.0],
        }
    }

    fn displaced(&self, offset: &Offset) -> Self {
        let ([x, ..], [_, turned, _]) = (offset.position, offset.rotation);
        Self { x: self.x + x, wheel: self.wheel + turned / core::f64::consts::TAU }
    }
}
