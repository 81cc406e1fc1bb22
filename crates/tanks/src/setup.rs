//! The rules as bytes, for reports of a flight recorder: their arena, to the bit.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arena::{Arena, ArenaError, Obstacle};
use crate::rules::Tanks;

/// Setup bytes from which no rules can be built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupRefused {
    /// The bytes are damaged, or of another game.
    #[error("the setup of the match cannot be read")]
    Malformed,
    /// The arena cannot be built.
    #[error("the arena of the match cannot be built: {0}")]
    Arena(#[from] ArenaError),
}

#[derive(Serialize, Deserialize)]
struct Setup {
    size: [f64; 2],
    obstacles: Vec<Obstacle>,
}

impl Tanks {
    /// More bytes than the setup of an arena with [`Arena::MAX_OBSTACLES`] has: 34 for each obstacle.
    const MAX_SETUP_BYTES: usize = 64 + 34 * Arena::MAX_OBSTACLES;

    /// The bytes from which [`Self::from_setup`] builds the same rules.
    ///
    /// ```
    /// use tanks::{Arena, Tanks};
    ///
    /// let rules = Tanks::new(Arena::proving_ground().into());
    /// assert_eq!(Tanks::from_setup(&rules.setup())?, rules);
    /// # Ok::<(), tanks::SetupRefused>(())
    /// ```
    pub fn setup(&self) -> Vec<u8> {
        let setup = Setup { size: self.arena().size(), obstacles: self.arena().obstacles().to_vec() };
        let written = postcard::to_allocvec(&setup);
        debug_assert!(written.is_ok(), "an arena is plain numbers");
        written.unwrap_or_default()
    }

    /// Builds rules from [`Self::setup`]. The bytes may come from anywhere.
    ///
    /// # Errors
    /// When the bytes are no setup, or of an arena that cannot be built.
    pub fn from_setup(bytes: &[u8]) -> Result<Self, SetupRefused> {
        // Before anything is allocated: a list of obstacles is as long as its bytes.
        if bytes.len() > Self::MAX_SETUP_BYTES {
            return Err(SetupRefused::Malformed);
        }
        match postcard::take_from_bytes::<Setup>(bytes) {
            Ok((setup, [])) => Ok(Self::new(Arc::new(Arena::new(setup.size, setup.obstacles)?))),
            _ => Err(SetupRefused::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use halftrack::{Body, Game};

    use super::*;
    use crate::body::{MoveParams, Tank, TankPose};

    #[test]
    fn an_arena_is_read_as_it_was_written() {
        for arena in
            [Arena::proving_ground(), Arena::open_ground(200), Arena::new([8.0, 9.5], vec![]).unwrap()]
        {
            let rules = Tanks::new(Arc::new(arena));
            let bytes = rules.setup();
            let read = Tanks::from_setup(&bytes).unwrap();
            assert_eq!((&read, read.fingerprint()), (&rules, rules.fingerprint()));
            for cut in 0..bytes.len() {
                assert_eq!(Tanks::from_setup(&bytes[..cut]), Err(SetupRefused::Malformed), "cut at {cut}");
            }
            assert_eq!(Tanks::from_setup(&[&bytes, &[0u8][..]].concat()), Err(SetupRefused::Malformed));
        }
    }

    #[test]
    fn arenas_hold_just_inside_and_not_just_outside() {
        let setup = |size: [f64; 2], count: usize| {
            let obstacles = vec![Obstacle::Block { min: [0.0; 2], max: [1.0; 2] }; count];
            Tanks::from_setup(&postcard::to_allocvec(&Setup { size, obstacles }).unwrap())
        };
        let max = Arena::MAX_OBSTACLES;
        assert!(setup([60.0; 2], max).is_ok());
        let refused = ArenaError::TooManyObstacles { got: max + 1, max };
        assert_eq!(setup([60.0; 2], max + 1), Err(SetupRefused::Arena(refused)));
        assert_eq!(setup([60.0; 2], 100 * max), Err(SetupRefused::Malformed), "too long to look at");
        assert!(setup([8.0; 2], 0).is_ok() && setup([7.9; 2], 0).is_err());
        assert!(setup([f64::NAN; 2], 0).is_err());
        // A length without its elements.
        let huge = postcard::to_allocvec(&([60.0f64; 2], u64::MAX)).unwrap();
        assert_eq!(Tanks::from_setup(&huge), Err(SetupRefused::Malformed));
    }

    #[test]
    fn a_tank_in_the_middle_of_a_tick_is_read_as_it_was_written() {
        let params = MoveParams::new(29.9, 1.99).unwrap();
        let tank = Tank { x: 0.1, y: -1e-300, heading: 1.0 / 3.0, params, hp: 7, presses: 15, reload: 3 };
        let bytes = postcard::to_allocvec(&(tank, tank.pose())).unwrap();
        assert_eq!(postcard::from_bytes::<(Tank, TankPose)>(&bytes), Ok((tank, tank.pose())));
        assert!(tank.check().is_ok());
        let broken = Tank { y: f64::NAN, ..tank };
        assert!(broken.check().is_err(), "a loaded state is checked");
    }
}
