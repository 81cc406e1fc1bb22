//! [`Entity`]: every kind of body in a match.

use halftrack::Body;

use crate::body::{Tank, TankPose};
use crate::platform::Platform;

/// A body of the game.
///
/// ```
/// use tanks::{Entity, Tank};
///
/// let body = Entity::from(Tank::new(3.0, 4.0, 0.25));
/// assert_eq!(body.tank().map(|tank| tank.hp), Some(Tank::MAX_HP));
/// assert_eq!(body.pose().y, 4.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Entity::Tank(Tank::new(0.0, 0.0, 0.0)))]
pub enum Entity {
    /// Driven by a player, or by the world.
    Tank(Tank),
    /// Emitted by a tank. It flies straight ahead.
    Rocket(Rocket),
    /// Pushed by tanks.
    Crate(Crate),
    /// A ferry that follows a timetable, and carries tanks and crates.
    Platform(Platform),
}

/// A rocket in flight.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub struct Rocket {
    /// Metres east.
    #[grid(1/1024, -512..=511)]
    pub x: f64,
    /// Metres north.
    #[grid(1/1024, -512..=511)]
    pub y: f64,
    /// Turns to the left of east.
    #[turns(1/65536)]
    pub heading: f64,
    /// The time that it has left, microseconds.
    #[micros(0..=1_800_000)]
    pub left: u32,
}

/// A crate: round, as large as a tank, and at rest unless it is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub struct Crate {
    /// Metres east.
    #[grid(1/1024, -512..=511)]
    pub x: f64,
    /// Metres north.
    #[grid(1/1024, -512..=511)]
    pub y: f64,
}

impl Rocket {
    /// Metres per second: almost three times as fast as a tank, and slow enough to be dodged at 20 m.
    pub const SPEED: f64 = 22.0;
    /// How long it flies, microseconds: 40 m.
    pub const LIFE_MICROS: u32 = 1_800_000;
    /// Hit points that it takes: three rockets destroy a tank.
    pub const DAMAGE: u8 = 40;
    /// From one rocket of a tank to its next, microseconds.
    pub const RELOAD_MICROS: u32 = 1_500_000;
}

impl Crate {
    /// A crate at rest.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }
}

impl Entity {
    /// The tank, if it is one.
    #[inline]
    pub fn tank(&self) -> Option<&Tank> {
        match self {
            Self::Tank(tank) => Some(tank),
            _ => None,
        }
    }

    /// The same, to change it.
    #[inline]
    pub fn tank_mut(&mut self) -> Option<&mut Tank> {
        match self {
            Self::Tank(tank) => Some(tank),
            _ => None,
        }
    }

    /// The rocket, if it is one.
    pub fn rocket(&self) -> Option<&Rocket> {
        match self {
            Self::Rocket(rocket) => Some(rocket),
            _ => None,
        }
    }

    /// The crate, if it is one.
    pub fn as_crate(&self) -> Option<&Crate> {
        match self {
            Self::Crate(cargo) => Some(cargo),
            _ => None,
        }
    }

    /// The platform, if it is one.
    pub fn platform(&self) -> Option<&Platform> {
        match self {
            Self::Platform(platform) => Some(platform),
            _ => None,
        }
    }

    /// Whether it is a tank that is no wreck.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.tank().is_some_and(Tank::is_alive)
    }

    /// What is drawn of it.
    #[inline]
    pub fn pose(&self) -> TankPose {
        match *self {
            Self::Tank(tank) => tank.pose(),
            Self::Rocket(Rocket { x, y, heading, .. }) => TankPose { x, y, heading },
            Self::Crate(Crate { x, y }) | Self::Platform(Platform { x, y, .. }) => {
                TankPose { x, y, heading: 0.0 }
            }
        }
    }
}

impl From<Tank> for Entity {
    fn from(tank: Tank) -> Self {
        Self::Tank(tank)
    }
}

impl From<Rocket> for Entity {
    fn from(rocket: Rocket) -> Self {
        Self::Rocket(rocket)
    }
}

impl From<Crate> for Entity {
    fn from(cargo: Crate) -> Self {
        Self::Crate(cargo)
    }
}

impl From<Platform> for Entity {
    fn from(platform: Platform) -> Self {
        Self::Platform(platform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack::wire::BitWriter;

    fn cost(body: Entity, baseline: Entity) -> usize {
        let mut bits = BitWriter::new(&mut []);
        body.write(&baseline, &mut bits);
        bits.len_bits()
    }

    /// What is in a body besides its tank: which kind it is, and whether that changed.
    #[test]
    fn a_tank_costs_two_bits_more_as_an_entity() {
        let (old, new) = (Tank::new(5.0, 5.0, 0.25), Tank::new(5.5, 4.5, 0.25));
        let mut bits = BitWriter::new(&mut []);
        new.write(&old, &mut bits);
        assert_eq!(cost(new.into(), old.into()), bits.len_bits() + 2);
        assert_eq!(cost(old.into(), old.into()), 2);
    }

    #[test]
    fn kinds_are_told_apart() {
        let platform = Platform::new([0.0, 0.0], [10.0, 0.0], 4_000_000);
        let rocket = Rocket { x: 0.0, y: 0.0, heading: 0.0, left: 1 };
        let all: [Entity; 4] =
            [Tank::new(0.0, 0.0, 0.0).into(), rocket.into(), Crate::new(0.0, 0.0).into(), platform.into()];
        for (at, one) in all.iter().enumerate() {
            let kinds = [
                one.tank().is_some(),
                one.rocket().is_some(),
                one.as_crate().is_some(),
                one.platform().is_some(),
            ];
            assert_eq!(kinds.iter().position(|is| *is), Some(at));
            assert!(all.iter().skip(at + 1).all(|other| other.digest() != one.digest()));
        }
    }
}
