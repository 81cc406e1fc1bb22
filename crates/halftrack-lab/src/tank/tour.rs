//! A bot that drives, turns and stops in a place of its own, and never meets anybody.

use std::time::Duration;

use halftrack::Timestamp;
use halftrack_flight::FlightClient;
use tanks::{Axis, TankInput, TankPose, Tanks};

use super::turn_to;
use crate::bot::Bot;
use crate::dice::Dice;

/// A bot that stays around its place.
#[derive(Clone, Debug)]
pub struct Tourist {
    home: TankPose,
    dice: Dice,
    next: Timestamp,
    wish: TankInput,
}

impl Tourist {
    /// Further from home than this, metres, it goes back. Then it goes on for at most 0.9 s at 8 m/s, and has room for
    /// twice that.
    const AWAY: f64 = 9.0;
    /// Further away than this it is not home yet.
    const ELSEWHERE: f64 = 24.0;

    /// A bot whose place is around `home`.
    pub fn new(home: TankPose, seed: u64) -> Self {
        Self { home, dice: Dice::new(seed, "tourist"), next: Timestamp::ZERO, wish: TankInput::NEUTRAL }
    }
}

impl Bot<Tanks> for Tourist {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        let tank = client.predicted()?.tank()?;
        let off = (tank.x - self.home.x).hypot(tank.y - self.home.y);
        if off > Self::ELSEWHERE {
            return Some(TankInput::NEUTRAL);
        }
        if now >= self.next {
            // Twice a second, at moments that fall anywhere.
            self.next = now + Duration::from_micros(100_000 + self.dice.below(800_000));
            self.wish = if off > Self::AWAY {
                let turn = turn_to(tank, &self.home);
                // Turns on the spot first, so that it never goes further.
                let throttle = if turn.abs() < 0.1 { Axis::FULL } else { Axis::ZERO };
                TankInput { turn: Axis::from_level((turn * 128.0) as i8), throttle, rocket: 0 }
            } else {
                let mut axis = || Axis::from_level(self.dice.below(33) as i8 - 16);
                TankInput { turn: axis(), throttle: axis(), rocket: 0 }
            };
        }
        Some(self.wish)
    }
}
