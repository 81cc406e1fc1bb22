//! [`BodyKey`]: makes the ids of bodies, by a keyed hash of where each comes from.
//!
//! A counter would tell every client how many bodies were spawned, hidden ones included. The hash is SipHash-2-4: it is
//! short, and an observer of ids learns nothing of the key.

use crate::id::{BodyId, PlayerId};
use crate::tick::Tick;

/// The secret of a room from which the ids of its bodies are made. A recording keeps it, so that a playback has the same
/// ids.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BodyKey([u64; 2]);

impl BodyKey {
    /// The key with these bytes.
    pub fn new(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
        Self([u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes(rest)])
    }

    /// The id of the body that `player` owns as its `nth`.
    pub(crate) fn owned(self, player: PlayerId, nth: u64) -> BodyId {
        self.id([1, u64::from(player.number()), nth])
    }

    /// The id of a body that the world spawned with this hash at the end of `tick`. `salt` tells equal ones apart.
    pub(crate) fn spawned(self, tick: Tick, digest: u64, salt: u64) -> BodyId {
        self.id([2 | u64::from(tick.number()) << 8, digest, salt])
    }

    fn id(self, words: [u64; 3]) -> BodyId {
        BodyId::new(self.hash(words))
    }

    /// SipHash-2-4 of three words.
    fn hash(self, words: [u64; 3]) -> u64 {
        let Self([k0, k1]) = self;
        let mut state = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        let length = 24 << 56;
        for word in words.into_iter().chain([length]) {
            state[3] ^= word;
            state = round(round(state));
            state[0] ^= word;
        }
        state[2] ^= 0xff;
        let [a, b, c, d] = round(round(round(round(state))));
        a ^ b ^ c ^ d
    }
}

fn round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    [a, b, c, d]
}

/// Prints nothing of the key: with it, ids could be foretold.
impl core::fmt::Debug for BodyKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("BodyKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_siphash_2_4() {
        // The vector of the paper's reference code for 24 bytes 0, 1, 2, ... and the key 0, 1, 2, ...
        let key = BodyKey::new(core::array::from_fn(|at| at as u8));
        let word = |first: u8| u64::from_le_bytes(core::array::from_fn(|at| first + at as u8));
        assert_eq!(key.hash([word(0), word(8), word(16)]), 0xb8ad_50c6_f649_af94);
    }

    #[test]
    fn ids_differ_by_origin_and_by_key() {
        let key = BodyKey::new([7; 16]);
        let ids = [
            key.owned(PlayerId::new(1), 0),
            key.owned(PlayerId::new(1), 1),
            key.owned(PlayerId::new(2), 0),
            key.spawned(Tick::new(1), 5, 0),
            key.spawned(Tick::new(2), 5, 0),
            key.spawned(Tick::new(1), 6, 0),
            key.spawned(Tick::new(1), 5, 1),
            BodyKey::new([8; 16]).owned(PlayerId::new(1), 0),
        ];
        for (place, id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(id), "{id}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        assert_eq!(format!("{:?}", BodyKey::new([7; 16])), "BodyKey(..)");
    }
}
