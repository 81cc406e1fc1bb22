//! [`Fighter`]: the one who drives a tank, a player or the world itself.

use core::fmt;

use halftrack::{BodyId, Driver, PlayerId};
use serde::{Deserialize, Serialize};

/// A player, or a machine: a tank that the world drives.
///
/// On the wire and in the page it is one number: twice the player's number, or twice the id of the machine's body and
/// one more.
///
/// ```
/// use halftrack::{BodyId, Driver, PlayerId};
/// use tanks::Fighter;
///
/// let machine = Fighter::of(BodyId::new(9), Driver::World);
/// assert_eq!(machine.key(), 19);
/// assert_eq!(Fighter::from_key(19), machine);
/// assert_eq!(Fighter::from(PlayerId::new(9)).key(), 18);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub enum Fighter {
    /// A player.
    Player(PlayerId),
    /// A tank that the world drives.
    Machine(BodyId),
}

impl Fighter {
    /// The longest one on the wire: 49 bits, seven to a byte.
    pub const MAX_BYTES: usize = 7;

    /// The fighter in a body.
    pub fn of(id: BodyId, driver: Driver) -> Self {
        driver.player().map_or(Self::Machine(id), Self::Player)
    }

    /// The player, if it is one.
    pub fn player(self) -> Option<PlayerId> {
        match self {
            Self::Player(player) => Some(player),
            Self::Machine(_) => None,
        }
    }

    /// The fighter as one number, below 2^49.
    pub fn key(self) -> u64 {
        match self {
            Self::Player(player) => u64::from(player.number()) * 2,
            Self::Machine(id) => id.number() * 2 + 1,
        }
    }

    /// The fighter of a number. Bits that no fighter has are left out.
    pub fn from_key(key: u64) -> Self {
        if key & 1 == 1 {
            Self::Machine(BodyId::new(key >> 1))
        } else {
            Self::Player(PlayerId::new((key >> 1 & 0xffff) as u16))
        }
    }

    /// The name of a machine: the same on every screen, by the id of its body. Players have names of their own.
    pub fn machine_name(self) -> Option<String> {
        const NAMES: [&str; 16] = [
            "Anvil", "Badger", "Cobalt", "Drummer", "Ember", "Flint", "Gravel", "Hammer", "Iron", "Jackal",
            "Kestrel", "Lancer", "Mortar", "Nettle", "Onyx", "Piston",
        ];
        let Self::Machine(id) = self else { return None };
        let name = NAMES.get((id.number() & 15) as usize).copied().unwrap_or_default();
        Some(format!("{name}-{:02}", id.number() / 16 % 100))
    }
}

impl From<PlayerId> for Fighter {
    fn from(player: PlayerId) -> Self {
        Self::Player(player)
    }
}

impl From<u64> for Fighter {
    fn from(key: u64) -> Self {
        Self::from_key(key)
    }
}

impl From<Fighter> for u64 {
    fn from(fighter: Fighter) -> Self {
        fighter.key()
    }
}

impl fmt::Display for Fighter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Player(player) => player.fmt(f),
            Self::Machine(id) => write!(f, "machine {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_fighter_survives_its_number(player in any::<u16>(), body in any::<u64>()) {
            for fighter in [Fighter::Player(PlayerId::new(player)), Fighter::Machine(BodyId::new(body))] {
                prop_assert_eq!(Fighter::from_key(fighter.key()), fighter);
                prop_assert!(fighter.key() < 1 << 49, "exact in a float of the page");
                let mut buffer = [0; 10];
                let bytes = postcard::to_slice(&fighter, &mut buffer).unwrap();
                prop_assert!(bytes.len() <= Fighter::MAX_BYTES);
                prop_assert_eq!(postcard::from_bytes::<Fighter>(bytes), Ok(fighter));
            }
        }
    }

    #[test]
    fn only_machines_have_names_by_their_body() {
        assert_eq!(Fighter::Player(PlayerId::new(3)).machine_name(), None);
        let name = Fighter::Machine(BodyId::new(71 * 16 + 1)).machine_name();
        assert_eq!(name.as_deref(), Some("Badger-71"));
    }
}
