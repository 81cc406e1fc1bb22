//! A hash of everything that both ends must share, exchanged in the first message.

use crate::cadence::{Cadence, SubTick};
use crate::digest::Digest;
use crate::game::Game;
use crate::input::MAX_CHANGES;
use crate::snapshot::BodyCode;
use crate::time::whole_micros;
use crate::wire::control::PROTOCOL;

/// Of the protocol, the cadence and its grid, and the rules and the world of the game.
pub fn shared_hash<G: BodyCode>(cadence: Cadence, alone: &G::Surroundings) -> u64 {
    Digest::new()
        .word(u64::from(PROTOCOL))
        .word(u64::from(cadence.micros()))
        .word(u64::from(SubTick::PER_TICK))
        .word(MAX_CHANGES as u64)
        .word(whole_micros(<G as Game>::MAX_HOLD))
        .word(G::shared(alone))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, Rail};
    use core::time::Duration;

    #[test]
    fn another_cadence_is_another_hash() {
        let hash = |millis| {
            shared_hash::<Cart>(Cadence::new(Duration::from_millis(millis)).unwrap(), &Rail::default())
        };
        assert_eq!(hash(50), hash(50));
        assert_ne!(hash(50), hash(51));
    }
}
