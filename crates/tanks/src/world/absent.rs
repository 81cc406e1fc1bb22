//! Tanks whose players left a short while ago, by name: leaving neither heals a tank nor brings it back to life.

use std::collections::BTreeMap;

use halftrack::{Digest, PlayerName, ServerTime};

/// Names remembered at most, some 100 bytes each. Only a damaged tank or a wreck is remembered, for the respawn time. A
/// player with more names than this gains nothing by them: each name has a fresh tank anyway.
const MAX_NAMES: usize = 1_024;

/// A tank as its player left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeftTank {
    /// Zero for a wreck.
    pub(super) hp: u8,
    /// Forgotten from here on. A wreck respawns then.
    pub(super) until: ServerTime,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Absent {
    tanks: BTreeMap<PlayerName, LeftTank>,
}

impl Absent {
    /// Remembers a tank. When there are too many names, the one that would be forgotten next makes room.
    pub(super) fn remember(&mut self, now: ServerTime, name: PlayerName, tank: LeftTank) {
        self.tanks.retain(|_, other| now < other.until);
        self.tanks.insert(name, tank);
        if self.tanks.len() > MAX_NAMES {
            let next = self.tanks.iter().min_by_key(|(name, tank)| (tank.until, *name));
            if let Some(next) = next.map(|(name, _)| name.clone()) {
                self.tanks.remove(&next);
            }
        }
    }

    /// The tank that the player of this name left, unless that is too long ago.
    pub(super) fn take(&mut self, now: ServerTime, name: &PlayerName) -> Option<LeftTank> {
        self.tanks.remove(name).filter(|tank| now < tank.until)
    }

    pub(super) fn digest(&self, digest: Digest) -> Digest {
        let each = |digest: Digest, (name, tank): (&PlayerName, &LeftTank)| {
            let name = name.as_str().bytes().fold(Digest::new(), |name, byte| name.word(u64::from(byte)));
            digest.word(name.finish()).word(u64::from(tank.hp)).word(tank.until.as_micros())
        };
        self.tanks.iter().fold(digest, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> PlayerName {
        PlayerName::new(&format!("n{number}")).unwrap()
    }

    fn at(second: u64) -> ServerTime {
        ServerTime::from_micros(second * 1_000_000)
    }

    #[test]
    fn a_tank_is_remembered_once_and_until_its_time_is_over() {
        let tank = LeftTank { hp: 25, until: at(3) };
        let mut absent = Absent::default();
        for (now, expected) in [(at(2), Some(tank)), (at(3), None)] {
            absent.remember(at(0), name(1), tank);
            assert_eq!(absent.take(now, &name(1)), expected);
            assert_eq!(absent.take(now, &name(1)), None, "taken");
        }
    }

    #[test]
    fn a_thousand_names_take_bounded_memory_and_the_newest_stay() {
        let mut absent = Absent::default();
        for number in 0..3 * MAX_NAMES {
            let until = ServerTime::from_micros(10_000_000 + number as u64);
            absent.remember(at(0), name(number), LeftTank { hp: 1, until });
        }
        assert_eq!(absent.tanks.len(), MAX_NAMES);
        assert_eq!(absent.take(at(1), &name(0)), None);
        assert!(absent.take(at(1), &name(3 * MAX_NAMES - 1)).is_some());
        absent.remember(at(11), name(0), LeftTank { hp: 1, until: at(12) });
        assert_eq!(absent.tanks.len(), 1, "names whose time is over are forgotten");
    }
}
