//! A hash of everything that both ends must share, exchanged in the first message.

use crate::cadence::{Cadence, SubTick};
use crate::digest::Digest;
use crate::game::Game;
use crate::input::MAX_CHANGES;
use crate::model::{Body, Input};
use crate::time::whole_micros;
use crate::wire::control::PROTOCOL;

/// A hash of the protocol, the cadence and its grid, the fields of inputs and bodies, and the rules.
pub fn shared_hash<G: Game>(rules: &G, cadence: Cadence) -> u64 {
    Digest::new()
        .word(u64::from(PROTOCOL))
        .word(u64::from(cadence.micros()))
        .word(u64::from(SubTick::PER_TICK))
        .word(MAX_CHANGES as u64)
        .word(whole_micros(rules.max_hold()))
        .word(G::Input::SCHEMA)
        .word(G::Body::SCHEMA)
        .word(G::Body::blank().digest())
        .word(rules.fingerprint())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::Cart;
    use core::time::Duration;

    #[test]
    fn another_cadence_is_another_hash() {
        let hash = |millis| shared_hash(&Cart, Cadence::new(Duration::from_millis(millis)).unwrap());
        assert_eq!(hash(50), hash(50));
        assert_ne!(hash(50), hash(51));
    }
}
