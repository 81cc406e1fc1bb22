//! Bots for everything in the arena that is no tank: one that also launches rockets, one that pushes crates, and one that
//! rides a platform.

use std::f64::consts::TAU;
use std::time::Duration;

use halftrack::Timestamp;
use halftrack::client::Client;
use halftrack::model::Presses;
use halftrack_flight::FlightClient;
use tanks::{Axis, Entity, TankInput, TankPose, Tanks};

use super::{Brawler, turn_to};
use crate::bot::{Bot, ShotCount};
use crate::dice::Dice;

/// A brawler that presses the rocket button as well, often before the tube is loaded.
#[derive(Debug)]
pub struct Rocketeer {
    brawler: Brawler,
    dice: Dice,
    next: Timestamp,
    presses: u8,
}

impl Rocketeer {
    /// The brawler, with rockets.
    pub fn new(brawler: Brawler, seed: u64) -> Self {
        Self { brawler, dice: Dice::new(seed, "rocketeer"), next: Timestamp::ZERO, presses: 0 }
    }
}

impl Bot<Tanks> for Rocketeer {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        let wish = self.brawler.drive(now, client)?;
        if now >= self.next && client.reconciler().is_some() {
            self.next = now + Duration::from_micros(500_000 + self.dice.below(2_000_000));
            self.presses = Presses::next(self.presses);
        }
        Some(wish.pressing(self.presses))
    }

    fn hear(&mut self, client: &Client<Tanks>, event: &[u8]) {
        self.brawler.hear(client, event);
    }

    fn combat(&self) -> Option<ShotCount> {
        self.brawler.combat()
    }
}

/// A bot that pushes the nearest crate, and now and then backs away from it.
#[derive(Clone, Debug)]
pub struct Pusher {
    dice: Dice,
    next: Timestamp,
    wish: TankInput,
}

impl Pusher {
    /// A bot.
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed, "pusher"), next: Timestamp::ZERO, wish: TankInput::NEUTRAL }
    }
}

/// Every body that the client shows but the player's own.
fn shown(client: &Client<Tanks>) -> impl Iterator<Item = Entity> + '_ {
    let group = client.group().map(|member| *member.predicted());
    group.chain(client.remotes().iter().map(|remote| *remote.state))
}

impl Bot<Tanks> for Pusher {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        let tank = *client.predicted()?.tank()?;
        if now < self.next {
            return Some(self.wish);
        }
        // Twice a second, at moments that fall anywhere.
        self.next = now + Duration::from_micros(300_000 + self.dice.below(400_000));
        let crates = shown(client).filter(|body| body.as_crate().is_some()).map(|body| body.pose());
        let away = |pose: &TankPose| (pose.x - tank.x).hypot(pose.y - tank.y);
        let nearest = crates.min_by(|one, other| away(one).total_cmp(&away(other)));
        self.wish = match nearest.filter(|_| self.dice.below(6) > 0) {
            Some(cargo) => {
                let turn = turn_to(&tank, &cargo);
                // Turns on the spot first, as far as it takes.
                let throttle = if turn.abs() < 0.12 { Axis::FULL } else { Axis::ZERO };
                // So much of its turning speed that it points there by the next decision.
                TankInput { turn: Axis::from_level((turn * 64.0) as i8), throttle, rocket: 0 }
            }
            None => {
                let mut axis = || Axis::from_level(self.dice.below(33) as i8 - 16);
                TankInput { turn: axis(), throttle: axis(), rocket: 0 }
            }
        };
        Some(self.wish)
    }
}

/// A bot that drives around on the platform that it stands on.
#[derive(Clone, Debug)]
pub struct Rider {
    dice: Dice,
    next: Timestamp,
    wish: TankInput,
}

impl Rider {
    /// Metres from the middle of the platform: further away it goes back.
    const AWAY: f64 = 0.8;

    /// A bot.
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed, "rider"), next: Timestamp::ZERO, wish: TankInput::NEUTRAL }
    }
}

impl Bot<Tanks> for Rider {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        let tank = *client.predicted()?.tank()?;
        if now < self.next {
            return Some(self.wish);
        }
        self.next = now + Duration::from_micros(200_000 + self.dice.below(400_000));
        let floors = shown(client).filter(|body| body.platform().is_some()).map(|body| body.pose());
        let mut floors = floors.map(|floor| [floor.x - tank.x, floor.y - tank.y]);
        let under = floors.find(|[x, y]| x.hypot(*y) < 6.0);
        self.wish = match under {
            Some([x, y]) => {
                let (sin, cos) = (tank.heading * TAU).sin_cos();
                let ahead = x * cos + y * sin;
                let level = if x.hypot(y) < Self::AWAY {
                    self.dice.below(5) as i8 - 2
                } else if ahead > 0.0 {
                    2
                } else {
                    -2
                };
                // Always turning: no two inputs are the same for long.
                let turn = Axis::from_level(self.dice.below(9) as i8 + 4);
                TankInput { turn, throttle: Axis::from_level(level), rocket: 0 }
            }
            None => TankInput::NEUTRAL,
        };
        Some(self.wish)
    }
}
