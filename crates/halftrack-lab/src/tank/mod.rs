//! The tank game in the lab: an arena that the players and machines fit into, and bots.

mod brawl;
mod tour;

use std::f64::consts::TAU;
use std::sync::Arc;

use halftrack::client::ClientConfig;
use halftrack::{Cadence, NameRefused, PlayerName};
use tanks::{Arena, Tank, TankPose, TankWorld, TankWorldConfig, Tanks};

pub use brawl::Brawler;
pub use tour::Tourist;

/// How the bots play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bots {
    /// Near each other: they collide and shoot.
    Brawl,
    /// Apart: nobody ever meets anybody. There are no machines then.
    Tour,
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
    arena: Arc<Arena>,
}

impl TankGame {
    /// For so many players, at most [`MAX_PLAYERS`], and no machines.
    ///
    /// # Panics
    /// Never: the arenas that it builds can be built.
    pub fn new(bots: Bots, players: usize) -> Self {
        let players = players.clamp(1, MAX_PLAYERS);
        Self { bots, players, machines: 0, arena: Arc::new(arena_of(bots, players)) }
    }

    /// The same with so many machines, at most [`TankWorldConfig::MAX_MACHINES`], if the bots brawl. Their arena has room for
    /// both.
    #[must_use]
    pub fn with_machines(self, machines: u8) -> Self {
        let most = if self.bots == Bots::Brawl { TankWorldConfig::MAX_MACHINES } else { 0 };
        let machines = machines.min(most);
        let arena = Arc::new(arena_of(self.bots, self.players + usize::from(machines)));
        Self { machines, arena, ..self }
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
        let (arena, machines) = (Arc::clone(&self.arena), self.machines);
        let config = TankWorldConfig { arena, machines, seed, ..TankWorldConfig::default() };
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
        match self.home(index) {
            Some(home) => Box::new(Tourist::new(home, seed)),
            None => Box::new(Brawler::new(Arc::clone(&self.arena), seed)),
        }
    }
}

/// The arena for so many tanks.
fn arena_of(bots: Bots, tanks: usize) -> Arena {
    match bots {
        Bots::Brawl if tanks <= 16 => Arena::proving_ground(),
        Bots::Brawl => Arena::open_ground(tanks),
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
