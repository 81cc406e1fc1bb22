//! Which arena is played in, as an operator writes it.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use tanks::Arena;

/// An arena by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArenaChoice {
    ProvingGround,
    /// For so many.
    Open(usize),
}

impl Default for ArenaChoice {
    /// Large enough for a crowd, small enough to meet somebody.
    fn default() -> Self {
        Self::Open(100)
    }
}

impl ArenaChoice {
    pub(crate) fn build(self) -> Arena {
        match self {
            Self::ProvingGround => Arena::proving_ground(),
            Self::Open(players) => Arena::open_ground(players),
        }
    }
}

impl FromStr for ArenaChoice {
    type Err = NoArena;

    fn from_str(text: &str) -> Result<Self, NoArena> {
        if text == "proving-ground" {
            return Ok(Self::ProvingGround);
        }
        let players = text.strip_prefix("open:").and_then(|players| players.parse().ok());
        players.filter(|players| (1..=1_000).contains(players)).map(Self::Open).ok_or(NoArena)
    }
}

/// A name that no arena has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such arena: choose \"proving-ground\", or \"open:N\" with N from 1 to 1000")]
pub(crate) struct NoArena;

impl fmt::Display for ArenaChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProvingGround => f.write_str("proving-ground"),
            Self::Open(players) => write!(f, "open:{players}"),
        }
    }
}

impl<'de> Deserialize<'de> for ArenaChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for choice in [ArenaChoice::ProvingGround, ArenaChoice::Open(1), ArenaChoice::Open(1_000)] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for text in ["", "open", "open:", "open:0", "open:1001", "open:-3", "moon"] {
            assert_eq!(text.parse::<ArenaChoice>(), Err(NoArena), "{text}");
        }
    }
}
