//! The tank game in the lab: an arena that the players and machines fit into, and bots.

mod brawl;
mod cargo;
mod tour;

use std::f64::consts::TAU;
use std::sync::Arc;

use halftrack::client::ClientConfig;
use halftrack::{Cadence, NameRefused, PlayerName};
use tanks::{Arena, Tank, TankPose, TankWorld, TankWorldConfig, Tanks};

pub use brawl::Brawler;
pub use cargo::{Pusher, Rider, Rocketeer};
pub use tour::Tourist;

/// How the bots play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bots {
    /// Near each other: they collide and shoot.
    Brawl,
    /// Apart: nobody ever meets anybody. There are no machines then.
    Tour,
    /// As in a brawl, and they launch rockets.
    Rockets,
    /// On open ground: they push the nearest crate.
    Push,
    /// On platforms, one for each, as far as there are so many.
    Ride,
}

/// The most players that [`Bots::Tour`] has room for: twenty by twenty places in the largest arena.
pub const MAX_PLAYERS: usize = 400;

/// Metres from one tourist's place to the next.
const PLACE: f64 = 50.0;

/// A game of tanks: what both ends must share.
#[derive(Clone, Debug)]
pub struct TankGame {
    bots: Bots,
    players: usize,
    machines: u8,
    crates: u8,
    platforms: u8,
    arena: Arc<Arena>,
}

impl TankGame {
    /// For so many players, at most [`MAX_PLAYERS`], and no machines.
    ///
    /// # Panics
    /// Never: the arenas that it builds can be built.
    pub fn new(bots: Bots, players: usize) -> Self {
        let players = players.clamp(1, MAX_PLAYERS);
        Self { bots, players, machines: 0, crates: 0, platforms: 0, arena: Arc::new(arena_of(bots, players)) }
    }

    /// The same with so many machines, at most [`TankWorldConfig::MAX_MACHINES`], if the bots brawl. Their arena has room for
    /// both.
    #[must_use]
    pub fn with_machines(self, machines: u8) -> Self {
        let most = if self.bots == Bots::Tour { 0 } else { TankWorldConfig::MAX_MACHINES };
        let machines = machines.min(most);
        let arena = Arc::new(arena_of(self.bots, self.players + usize::from(machines)));
        Self { machines, arena, ..self }
    }

    /// The same with so many crates and platforms, at most as many as a world has.
    #[must_use]
    pub fn with_things(self, crates: u8, platforms: u8) -> Self {
        let crates = crates.min(TankWorldConfig::MAX_CRATES);
        Self { crates, platforms: platforms.min(TankWorldConfig::MAX_PLATFORMS), ..self }
    }

    /// The arena.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The server's world.
    ///
    /// # Panics
    /// Never: the arena has places for tanks.
    pub fn world(&self, seed: u64) -> TankWorld {
        let Self { machines, crates, platforms, .. } = *self;
        let arena = Arc::clone(&self.arena);
        let config =
            TankWorldConfig { arena, machines, crates, platforms, seed, ..TankWorldConfig::default() };
        TankWorld::new(config).expect("the arena has places")
    }

    /// The client of player `index`.
    ///
    /// # Errors
    /// Never: a number is a name.
    pub fn client(&self, index: usize, cadence: Cadence) -> Result<ClientConfig<Tanks>, NameRefused> {
        let rules = Arc::new(Tanks::new(Arc::clone(&self.arena)));
        Ok(ClientConfig::new(PlayerName::new(&format!("Bot {index}"))?, cadence, rules))
    }

    /// Where player `index` begins, if that is not for the world to say.
    pub fn home(&self, index: usize) -> Option<TankPose> {
        let along = places_along(self.players);
        let middle = |place: usize| (place as f64 + 0.5 - along as f64 / 2.0) * PLACE;
        let home = TankPose { x: middle(index % along), y: middle(index / along), heading: 0.0 };
        (self.bots == Bots::Tour).then_some(home)
    }

    /// The bot of player `index`.
    pub fn bot(&self, index: usize, seed: u64) -> Box<dyn crate::Bot<Tanks>> {
        let seed = seed.wrapping_mul(1_000).wrapping_add(index as u64);
        let brawler = || Brawler::new(Arc::clone(&self.arena), seed);
        match (self.bots, self.home(index)) {
            (Bots::Rockets, _) => Box::new(Rocketeer::new(brawler(), seed)),
            (Bots::Push, _) => Box::new(Pusher::new(seed)),
            (Bots::Ride, _) => Box::new(Rider::new(seed)),
            (_, Some(home)) => Box::new(Tourist::new(home, seed)),
            _ => Box::new(brawler()),
        }
    }
}

/// The arena for so many tanks.
fn arena_of(bots: Bots, tanks: usize) -> Arena {
    match bots {
        Bots::Brawl | Bots::Rockets if tanks <= 16 => Arena::proving_ground(),
        Bots::Brawl | Bots::Rockets => Arena::open_ground(tanks),
        Bots::Push | Bots::Ride if tanks <= 8 => {
            Arena::new([80.0, 80.0], vec![]).expect("the sides are in range")
        }
        Bots::Push | Bots::Ride => Arena::open_ground(tanks),
        Bots::Tour => {
            let side = places_along(tanks) as f64 * PLACE;
            Arena::new([side, side], vec![]).expect("the sides are in range")
        }
    }
}

/// Tourists stand in a square.
fn places_along(players: usize) -> usize {
    (1..).find(|along| along * along >= players).unwrap_or(1)
}

/// Turns from where `tank` points to where `to` is, from -0.5 to 0.5.
fn turn_to(tank: &Tank, to: &TankPose) -> f64 {
    let turn = bearing(tank, to.x, to.y) - tank.heading;
    turn - turn.round()
}

/// The direction from `tank` to a point, in turns to the left of east.
fn bearing(tank: &Tank, x: f64, y: f64) -> f64 {
    (y - tank.y).atan2(x - tank.x) / TAU
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_fits() {
        for (players, machines) in [1, 2, 8, 16, 17, 50, 100, 399, 400].into_iter().zip([0, 100].repeat(5)) {
            for bots in [Bots::Brawl, Bots::Tour] {
                let game = TankGame::new(bots, players).with_machines(machines);
                let expected = if bots == Bots::Brawl { machines } else { 0 };
                assert_eq!(game.world(1).config().machines, expected);
                for index in 0..players {
                    let home = game.home(index);
                    assert!(
                        home.is_none_or(|home| game.arena().clearance([home.x, home.y]) > PLACE / 2.0 - 1.0)
                    );
                }
            }
        }
    }
}
