//! Crates and platforms: what the world puts into the arena besides tanks.

use halftrack::Driver;
use halftrack::server::Room;

use super::TankWorldConfig;
use super::spawn::{self, Dice};
use crate::collide::Vec2;
use crate::entity::{Crate, Entity};
use crate::platform::Platform;
use crate::rules::Tanks;

/// What is still to be spawned. Crates and platforms are never removed.
#[derive(Clone, Debug)]
pub(super) struct Things {
    /// Of its own: the places of tanks are the same with and without crates.
    dice: Dice,
    crates: u8,
    /// The next one last.
    platforms: Vec<Platform>,
}

impl Things {
    pub(super) fn new(config: &TankWorldConfig) -> Self {
        const SALT: u64 = 0x9e6c_63d0_676a_9a99;
        let mut platforms = Platform::fleet(&config.arena, config.platforms);
        platforms.reverse();
        Self { dice: Dice::new(config.seed ^ SALT), crates: config.crates, platforms }
    }

    /// All that is to come depends on this and on the config.
    pub(super) fn state(&self) -> u64 {
        self.dice.state() ^ u64::from(self.crates) << 8 ^ self.platforms.len() as u64
    }

    /// Spawns what is missing, as far as there is room.
    pub(super) fn spawn(&mut self, config: &TankWorldConfig, room: &mut Room<'_, Tanks>) {
        let now = room.cadence().end_of(room.tick());
        while let Some(platform) = self.platforms.last() {
            if room.spawn(Driver::Nothing, platform.moved_to(now).into()).is_err() {
                return;
            }
            self.platforms.pop();
        }
        while self.crates > 0 && room.vacancies() > 0 {
            let others: Vec<Vec2> = super::hulls(room).collect();
            let Some(place) = spawn::place(&config.arena, &mut self.dice, others.iter().copied()) else {
                return;
            };
            if room.spawn(Driver::Nothing, Entity::Crate(Crate::new(place.x, place.y))).is_err() {
                return;
            }
            self.crates -= 1;
        }
    }
}
