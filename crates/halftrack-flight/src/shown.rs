//! The picture of a frame as a digest.

use halftrack::client::Client;
use halftrack::{Body, Digest, Game};

use crate::bounded::{Bounded, ReadError};
use crate::write::append;

/// Short digests of the parts of a frame's picture. They say which part of a replayed frame differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The visible pose of the player.
    pub(crate) visible: u16,
    /// The predicted body.
    pub(crate) predicted: u16,
    /// Other players as drawn.
    pub(crate) others: u16,
    /// Counts of corrections, and the state of the session.
    pub(crate) counts: u16,
}

impl Shown {
    /// The picture of `client`. `memory` is scratch space.
    pub(crate) fn of<G: Game>(client: &Client<G>, memory: &mut Vec<u8>) -> Self {
        let reconciler = client.reconciler();
        memory.clear();
        if let Some(reconciler) = reconciler {
            append(&reconciler.visible(), memory);
        }
        let visible = short(digest(memory));
        let predicted = short(client.predicted().map_or(0, Body::digest));
        memory.clear();
        for remote in client.remotes().iter() {
            append(&remote.player, memory);
            append(&remote.visible, memory);
        }
        let others = short(digest(memory));
        memory.clear();
        append(&client.state(), memory);
        if let Some(reconciler) = reconciler {
            append(reconciler.stats(), memory);
        }
        Self { visible, predicted, others, counts: short(digest(memory)) }
    }

    pub(crate) fn write(self, to: &mut Vec<u8>) {
        for part in [self.visible, self.predicted, self.others, self.counts] {
            to.extend_from_slice(&part.to_le_bytes());
        }
    }

    pub(crate) fn read(from: &mut Bounded<'_>) -> Result<Self, ReadError> {
        let mut part = || -> Result<u16, ReadError> {
            let bytes = from.raw(2)?.first_chunk::<2>().ok_or(ReadError::Truncated)?;
            Ok(u16::from_le_bytes(*bytes))
        };
        Ok(Self { visible: part()?, predicted: part()?, others: part()?, counts: part()? })
    }
}

/// The highest bits of a digest: they are the best mixed.
fn short(digest: u64) -> u16 {
    let [.., low, high] = digest.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// A hash of bytes. It finds accidents, not attacks.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    whole.word(rest).word(bytes.len() as u64).finish()
}
