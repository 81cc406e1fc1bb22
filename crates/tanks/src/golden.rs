//! A long brawl in one number: what every platform must reproduce to the bit.
//!
//! Three tanks in a small arena drive by a fixed sequence: into walls, round pillars, against each other, with
//! one to four steps per tick. If two builds agree on the digest after a million ticks, they agree on the rules.

use std::sync::Arc;

use halftrack::{BodyId, Cadence, Contact, Digest, Driver, Neighbour, Replay, SubTick, Tick, TickInput};

use crate::arena::{Arena, Obstacle};
use crate::body::Tank;
use crate::collide::{HULL_RADIUS, Vec2};
use crate::entity::Entity;
use crate::input::{Axis, TankInput};
use crate::rules::Tanks;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Golden {
    /// Of every body after every tick.
    pub digest: u64,
    /// Tank-ticks in which a tank touched another.
    pub touched: u64,
    /// Tank-ticks that ended at a wall, a block or a pillar.
    pub at_walls: u64,
}

/// Plays `ticks` ticks.
pub fn play(ticks: u32) -> Golden {
    let obstacles = vec![
        Obstacle::Block { min: [-8.0, -2.0], max: [-2.0, 3.0] },
        Obstacle::Block { min: [6.0, 5.0], max: [12.0, 6.0] },
        Obstacle::Pillar { center: [6.0, -4.0], radius: 1.5 },
    ];
    let arena = Arc::new(Arena::index(Vec2::new(16.0, 12.0), obstacles));
    let mut tanks = [Tank::new(-12.0, 8.0, 0.0), Tank::new(12.0, -8.0, 0.5), Tank::new(0.0, 9.0, 0.75)];
    let rules = Tanks::new(Arc::clone(&arena));
    let mut dice = Dice(0x1234_5678_9abc_def0);
    let mut held = tanks.map(|_| TankInput::NEUTRAL);
    let mut golden = Golden { digest: 0, touched: 0, at_walls: 0 };
    let mut digest = Digest::new();

    for tick in Tick::new(1).onwards().take(ticks as usize) {
        let before = tanks;
        for (own, (tank, held)) in tanks.iter_mut().zip(&mut held).enumerate() {
            let others = (0..).zip(before).filter(|(other, _)| *other != own);
            let numbered = |(other, tank): (_, Tank)| {
                Neighbour::new(BodyId::new(other as u64), Driver::World, tank.into())
            };
            let others: Vec<_> = others.map(numbered).collect();
            let input = dice.tick(*held);
            *held = input.last();
            let mut replay = Replay::new(&rules, Cadence::default(), tick, &others, (*tank).into());
            replay.tick(&input);
            let Entity::Tank(after) = *replay.body() else { continue };
            *tank = after;
            digest = digest.word(hash(tank));
            golden.touched += u64::from(replay.take_contact() == Contact::Touched);
            golden.at_walls += u64::from(arena.clearance([tank.x, tank.y]) < HULL_RADIUS + 8.0 * Tank::GRID);
        }
    }
    golden.digest = digest.finish();
    golden
}

/// A hash of every bit of a tank, which stays as it is when fields are declared otherwise.
fn hash(tank: &Tank) -> u64 {
    let (speed, turn_speed) = tank.params.units();
    let small = u64::from(speed) | u64::from(turn_speed) << 16 | u64::from(tank.hp) << 32;
    Digest::new().float(tank.x).float(tank.y).float(tank.heading).word(small).finish()
}

/// A small generator of our own: the sequence must never change under us.
struct Dice(u64);

impl Dice {
    /// A number below `limit`, which is small.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % limit
    }

    fn axis(&mut self) -> Axis {
        let level = self.below(33) as i8 - Axis::LEVELS;
        // Rather too much than too little, or they never get anywhere.
        Axis::from_level(level * 2)
    }

    /// Mostly goes on as before; now and then up to three changes.
    fn tick(&mut self, held: TankInput) -> TickInput<TankInput> {
        let mut input = TickInput::steady(held);
        if self.below(4) == 0 {
            let mut moment = 0;
            for _ in 0..=self.below(3) {
                moment += 1 + self.below(80) as u8;
                let change = TankInput { turn: self.axis(), throttle: self.axis(), rocket: 0 };
                if let Some(at) = SubTick::new(moment) {
                    // Moments go up and there are three at most, so each is taken.
                    let taken = input.change(at, change);
                    debug_assert!(taken.is_ok());
                }
            }
        }
        input
    }
}
