//! Tanks in a flight recorder: bodies and poses to the bit, settled or not, and the arena. Knows no recorder.

use std::sync::Arc;

use halftrack::flight::{Exact, FlightGame, Loader, Saver};
use halftrack::wire::WireError;

use crate::arena::{Arena, Obstacle};
use crate::body::{MoveParams, Tank, TankPose};
use crate::rules::{Surroundings, Tanks};

const BLOCK: u8 = 0;
const PILLAR: u8 = 1;

impl FlightGame for Tanks {
    fn save_world(alone: &Surroundings, to: &mut Saver) {
        let arena = &alone.arena;
        arena.size().save(to);
        to.number(arena.obstacles().len() as u64);
        for obstacle in arena.obstacles() {
            match obstacle {
                Obstacle::Block { min, max } => {
                    to.byte(BLOCK);
                    (*min, *max).save(to);
                }
                Obstacle::Pillar { center, radius } => {
                    to.byte(PILLAR);
                    (*center, *radius).save(to);
                }
            }
        }
    }

    fn load_world(from: &mut Loader<'_>) -> Result<Surroundings, WireError> {
        let invalid = WireError::Invalid { field: "arena" };
        let size = Exact::load(from)?;
        let count = from.count()?;
        if count > Arena::MAX_OBSTACLES {
            return Err(invalid);
        }
        let obstacles = (0..count).map(|_| match from.byte()? {
            BLOCK => <([f64; 2], [f64; 2])>::load(from).map(|(min, max)| Obstacle::Block { min, max }),
            PILLAR => {
                <([f64; 2], f64)>::load(from).map(|(center, radius)| Obstacle::Pillar { center, radius })
            }
            _ => Err(invalid),
        });
        let arena = Arena::new(size, obstacles.collect::<Result<_, _>>()?).map_err(|_| invalid)?;
        Ok(Surroundings::empty(Arc::new(arena)))
    }
}

/// Whether a number is where tanks are, or near: rules that meet others may take for ever.
fn is_near(number: f64) -> bool {
    number.abs() <= 1e6
}

impl Exact for Tank {
    fn save(&self, to: &mut Saver) {
        let Self { x, y, heading, params, hp } = self;
        [*x, *y, *heading].save(to);
        params.units().save(to);
        hp.save(to);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let invalid = WireError::Invalid { field: "tank" };
        let [x, y, heading]: [f64; 3] = Exact::load(from)?;
        let params = MoveParams::from_units(Exact::load(from)?).map_err(|_| invalid)?;
        let hp = u8::load(from)?;
        let good = [x, y, heading].into_iter().all(is_near) && hp <= Self::MAX_HP;
        if good { Ok(Self { x, y, heading, params, hp }) } else { Err(invalid) }
    }
}

impl Exact for TankPose {
    fn save(&self, to: &mut Saver) {
        let Self { x, y, heading } = self;
        [*x, *y, *heading].save(to);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let [x, y, heading] = Exact::load(from)?;
        Ok(Self { x, y, heading })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack::snapshot::BodyCode;

    #[test]
    fn an_arena_is_read_as_it_was() {
        for arena in
            [Arena::proving_ground(), Arena::open_ground(200), Arena::new([8.0, 9.5], vec![]).unwrap()]
        {
            let alone = Surroundings::empty(Arc::new(arena));
            let mut saver = Saver::default();
            Tanks::save_world(&alone, &mut saver);
            let read = Tanks::load_world(&mut Loader::new(saver.as_bytes())).unwrap();
            assert_eq!((&read, Tanks::shared(&read)), (&alone, Tanks::shared(&alone)));
            for cut in 0..saver.as_bytes().len() {
                assert!(
                    Tanks::load_world(&mut Loader::new(&saver.as_bytes()[..cut])).is_err(),
                    "cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn a_tank_anywhere_in_a_tick_is_read_as_it_was() {
        let params = MoveParams::new(29.9, 1.99).unwrap();
        let tank = Tank { x: 0.1, y: -1e-300, heading: 1.0 / 3.0, params, hp: 7 };
        let mut saver = Saver::default();
        tank.save(&mut saver);
        tank.pose().save(&mut saver);
        let mut loader = Loader::new(saver.as_bytes());
        assert_eq!((Tank::load(&mut loader), TankPose::load(&mut loader)), (Ok(tank), Ok(tank.pose())));
        let mut saver = Saver::default();
        Tank { y: f64::NAN, ..tank }.save(&mut saver);
        assert!(Tank::load(&mut Loader::new(saver.as_bytes())).is_err());
    }
}
