//! Saved states: the error of one that no client can have been in, and bytes as serde should see them.

use core::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// A saved state that no client can have been in: damaged, crafted, or saved by another version.
///
/// ```
/// assert_eq!(halftrack::Unrestorable { part: "prediction" }.to_string(), "no client was ever in this state: prediction");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no client was ever in this state: {part}")]
pub struct Unrestorable {
    /// The part of the state that contradicts itself, or the config.
    pub part: &'static str,
}

/// Refuses a part of a state that does not hold.
pub(crate) fn ensure(holds: bool, part: &'static str) -> Result<(), Unrestorable> {
    if holds { Ok(()) } else { Err(Unrestorable { part }) }
}

/// Bytes in one piece: serde would take a `Vec<u8>` for a list of numbers, of which a reader takes fewer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece<B>(pub(crate) B);

impl<B: AsRef<[u8]>> Serialize for Piece<B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0.as_ref())
    }
}

impl<'de> Deserialize<'de> for Piece<Vec<u8>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        deserializer.deserialize_bytes(Bytes).map(Self)
    }
}
