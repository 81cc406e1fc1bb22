//! The exact image of arrays, for which serde itself stops at 32 elements, and of nested types.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserializer, Serialize, Serializer};

/// Writes an array of any length, element by element. No length is written: it is part of the type.
///
/// # Errors
/// When the format's writer fails.
pub fn serialize<T, S, const N: usize>(array: &[T; N], serializer: S) -> Result<S::Ok, S::Error>
where
    T: Serialize,
    S: Serializer,
{
    let mut tuple = serializer.serialize_tuple(N)?;
    for element in array {
        tuple.serialize_element(element)?;
    }
    tuple.end()
}

/// Reads it.
///
/// # Errors
/// When there are fewer elements, or one that cannot be read.
pub fn deserialize<'de, T, D, const N: usize>(deserializer: D) -> Result<[T; N], D::Error>
where
    T: DeserializeOwned + Copy,
    D: Deserializer<'de>,
{
    deserializer.deserialize_tuple(N, Elements(PhantomData))
}

struct Elements<T, const N: usize>(PhantomData<T>);

impl<'de, T: DeserializeOwned + Copy, const N: usize> Visitor<'de> for Elements<T, N> {
    type Value = [T; N];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{N} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<[T; N], A::Error> {
        let mut elements = Vec::with_capacity(N);
        while elements.len() < N {
            let Some(element) = sequence.next_element()? else {
                return Err(A::Error::invalid_length(elements.len(), &self));
            };
            elements.push(element);
        }
        let read = elements.len();
        elements.try_into().map_err(|_| A::Error::invalid_length(read, &self))
    }
}

/// A nested body.
pub mod body {
    use serde::{Deserializer, Serializer};

    use crate::model::Body;

    /// Writes it.
    ///
    /// # Errors
    /// When the format's writer fails.
    pub fn serialize<T: Body, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn deserialize<'de, T: Body, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

/// A nested input.
pub mod input {
    use serde::{Deserializer, Serializer};

    use crate::model::Input;

    /// Writes it.
    ///
    /// # Errors
    /// When the format's writer fails.
    pub fn serialize<T: Input, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn deserialize<'de, T: Input, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}
