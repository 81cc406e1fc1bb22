//! What a host may choose about combat, and what it may not.

use std::sync::Arc;
use std::time::Duration;

use crate::arena::Arena;
use crate::body::{MoveParams, Tank};
use crate::message::Reach;
use crate::world::RoundConfig;
use crate::world::spawn;

/// How combat goes. Checked by [`crate::TankWorld::new`].
#[derive(Clone, Debug)]
pub struct TankWorldConfig {
    /// Where it goes on. Default: [`Arena::proving_ground`]. Both ends must have the same.
    pub arena: Arc<Arena>,
    /// How tanks move when they come. Default: [`MoveParams::default`].
    pub params: MoveParams,
    /// Hit points that a shot takes. Default 25: four shots kill, so that the second one can still be escaped. At
    /// 100 the first shot decides; at 1 nobody dies.
    pub damage: u8,
    /// Between two shots of a player, by the moments they are fired at, not by when they arrive. Default 500 ms: a
    /// miss costs something. Every shot walks everybody who was near, so no less than 20 ms.
    pub cooldown: Duration,
    /// From a death to the respawn, up to the end of its tick. Default 3 s: long enough to see by whom, short enough
    /// not to leave. Never zero: a death is seen for a tick at least.
    pub respawn_after: Duration,
    /// Metres that a shot goes from the middle of the hull. Default 60: across the proving ground's short side, not
    /// its long one.
    pub range: f64,
    /// How far before a shot's own moment others are looked at, at most. Default 250 ms: delay and interpolation of a
    /// link with a round trip of 150 ms. More lets a slow link hit who is long behind a wall; at zero everybody must
    /// aim ahead.
    pub max_rewind: Duration,
    /// How old a shot may be when it is decided, and how far before that others are looked at, its rewind included.
    /// Default 500 ms: a lost packet on the reliable lane and its second try. With a bound for each alone, a shot that
    /// is made late on purpose would see 750 ms back.
    pub history: Duration,
    /// How far before the end of the newest snapshot it had a player can have been looking. Default 300 ms: the
    /// longest delay that others are drawn with. A claim beyond it is not honest.
    pub claim: Duration,
    /// Rounds with a winner, and breaks between them. Default `None`: one match without an end.
    pub rounds: Option<RoundConfig>,
    /// Tanks that the world drives, besides those of the players. Default none. At most [`Self::MAX_MACHINES`].
    pub machines: u8,
    /// Whether machines launch rockets besides shooting. Default no.
    pub machine_rockets: bool,
    /// Crates that anybody can push. Default none. At most [`Self::MAX_CRATES`].
    pub crates: u8,
    /// Platforms that go to and fro and carry what stands on them, as far as the arena has free lanes for them. Default none.
    /// At most [`Self::MAX_PLATFORMS`].
    pub platforms: u8,
    /// What the world's dice start from: the same orders and the same seed give the same match. Default 1; a host
    /// draws one.
    pub seed: u64,
}

impl Default for TankWorldConfig {
    fn default() -> Self {
        Self {
            arena: Arc::new(Arena::proving_ground()),
            params: MoveParams::default(),
            damage: 25,
            cooldown: Duration::from_millis(500),
            respawn_after: Duration::from_secs(3),
            range: 60.0,
            max_rewind: Duration::from_millis(250),
            history: Duration::from_millis(500),
            claim: Duration::from_millis(300),
            rounds: None,
            machines: 0,
            machine_rockets: false,
            crates: 0,
            platforms: 0,
            seed: 1,
        }
    }
}

/// What cannot be done with a world.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A shot that takes nothing, or more than there is.
    #[error("damage is {got}; choose one from 1 to {max}", max = Tank::MAX_HP)]
    Damage {
        /// Hit points.
        got: u8,
    },
    /// A time that is too short or too long.
    #[error("{field} is {got:?}; choose one from {min:?} to {max:?}")]
    Time {
        /// Of which field.
        field: &'static str,
        /// What it is.
        got: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// Too short to reach anybody, too long to be told, or not a number.
    #[error("range is {got} m; choose one from 3 to {max}", max = Reach::MAX_METRES)]
    Range {
        /// Metres.
        got: f64,
    },
    /// More machines than a world drives.
    #[error("machines is {got}; choose one from 0 to {max}", max = TankWorldConfig::MAX_MACHINES)]
    Machines {
        /// The number.
        got: u8,
    },
    /// More crates than an arena has room for.
    #[error("crates is {got}; choose one from 0 to {max}", max = TankWorldConfig::MAX_CRATES)]
    Crates {
        /// The number.
        got: u8,
    },
    /// More platforms than an arena has lanes for.
    #[error("platforms is {got}; choose one from 0 to {max}", max = TankWorldConfig::MAX_PLATFORMS)]
    Platforms {
        /// The number.
        got: u8,
    },
    /// No place for a tank between the walls.
    #[error("the arena has no place for a tank")]
    NoPlace,
    /// Not a place in the arena where a tank can stand.
    #[error("a tank cannot stand at {x} m, {y} m")]
    Place {
        /// Metres east.
        x: f64,
        /// Metres north.
        y: f64,
    },
    /// Nobody with that number is in the room.
    #[error("there is no such player")]
    NoSuchPlayer,
}

impl TankWorldConfig {
    /// The most machines: each looks for an enemy every quarter of a second.
    pub const MAX_MACHINES: u8 = 100;
    /// The most crates: with more, the arena shown is full of them.
    pub const MAX_CRATES: u8 = 64;
    /// The most platforms: the arena shown has lanes for four.
    pub const MAX_PLATFORMS: u8 = 4;

    /// Whether a world can be of it.
    pub(super) fn check(&self) -> Result<(), WorldError> {
        if !(1..=Tank::MAX_HP).contains(&self.damage) {
            return Err(WorldError::Damage { got: self.damage });
        }
        let millis = Duration::from_millis;
        let times = [
            ("cooldown", self.cooldown, millis(20), millis(60_000)),
            ("respawn_after", self.respawn_after, millis(1), millis(600_000)),
            ("max_rewind", self.max_rewind, Duration::ZERO, millis(1_000)),
            ("history", self.history, millis(200), millis(2_000)),
            ("claim", self.claim, Duration::ZERO, millis(1_000)),
        ];
        let rounds = self.rounds.map(|RoundConfig { length, pause }| {
            [
                ("rounds.length", length, millis(10_000), millis(86_400_000)),
                ("rounds.pause", pause, millis(1_000), millis(300_000)),
            ]
        });
        for (field, got, min, max) in times.into_iter().chain(rounds.into_iter().flatten()) {
            if got < min || got > max {
                return Err(WorldError::Time { field, got, min, max });
            }
        }
        if self.machines > Self::MAX_MACHINES {
            return Err(WorldError::Machines { got: self.machines });
        }
        if self.crates > Self::MAX_CRATES {
            return Err(WorldError::Crates { got: self.crates });
        }
        if self.platforms > Self::MAX_PLATFORMS {
            return Err(WorldError::Platforms { got: self.platforms });
        }
        if !(3.0..=Reach::MAX_METRES).contains(&self.range) {
            return Err(WorldError::Range { got: self.range });
        }
        if spawn::has_place(&self.arena) { Ok(()) } else { Err(WorldError::NoPlace) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Obstacle;

    fn refused(change: impl Fn(&mut TankWorldConfig)) -> Option<WorldError> {
        let mut config = TankWorldConfig::default();
        change(&mut config);
        config.check().err()
    }

    #[test]
    fn every_limit_holds_just_inside_and_not_just_outside() {
        assert_eq!(refused(|_| ()), None);
        for (damage, good) in [(0, false), (1, true), (100, true), (101, false)] {
            assert_eq!(refused(|config| config.damage = damage).is_none(), good, "damage {damage}");
        }
        for (machines, good) in [(0, true), (100, true), (101, false)] {
            assert_eq!(refused(|config| config.machines = machines).is_none(), good, "machines {machines}");
        }
        for (crates, good) in [(0, true), (64, true), (65, false)] {
            assert_eq!(refused(|config| config.crates = crates).is_none(), good, "crates {crates}");
        }
        for (platforms, good) in [(0, true), (4, true), (5, false)] {
            assert_eq!(
                refused(|config| config.platforms = platforms).is_none(),
                good,
                "platforms {platforms}"
            );
        }
        for (range, good) in
            [(2.999, false), (3.0, true), (2_047.0, true), (2_047.1, false), (f64::NAN, false)]
        {
            assert_eq!(refused(|config| config.range = range).is_none(), good, "range {range}");
        }
        type Field = fn(&mut TankWorldConfig) -> &mut Duration;
        let fields: [(Field, u64, u64); 5] = [
            (|config| &mut config.cooldown, 20, 60_000),
            (|config| &mut config.respawn_after, 1, 600_000),
            (|config| &mut config.max_rewind, 0, 1_000),
            (|config| &mut config.history, 200, 2_000),
            (|config| &mut config.claim, 0, 1_000),
        ];
        let micro = Duration::from_micros(1);
        for (field, min, max) in fields {
            let (min, max) = (Duration::from_millis(min), Duration::from_millis(max));
            for got in [min, max] {
                assert_eq!(refused(|config| *field(config) = got), None);
            }
            for got in [min.checked_sub(micro), Some(max + micro)].into_iter().flatten() {
                let error = refused(|config| *field(config) = got);
                assert!(
                    matches!(error, Some(WorldError::Time { got: told, .. }) if told == got),
                    "{error:?}"
                );
            }
        }
    }

    #[test]
    fn an_arena_without_a_place_is_refused() {
        let block = Obstacle::Block { min: [-3.0, -3.0], max: [3.0, 3.0] };
        let full = Arc::new(Arena::new([8.0, 8.0], vec![block]).unwrap());
        assert_eq!(refused(|config| config.arena = Arc::clone(&full)), Some(WorldError::NoPlace));
        let bare = Arc::new(Arena::new([8.0, 8.0], vec![]).unwrap());
        assert_eq!(refused(|config| config.arena = Arc::clone(&bare)), None);
    }
}
