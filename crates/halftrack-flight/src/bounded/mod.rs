//! A postcard reader for files that may be hostile.
//!
//! Postcard checks that bytes do not end too early. [`Bounded`] also checks sizes, so that loaded numbers can be added
//! and multiplied without overflow, and so that a few bytes cannot ask for much memory:
//!
//! | value | bound |
//! |---|---|
//! | `u64`, `i64`, `usize` | magnitude below 2^60 |
//! | `Duration` | at most 100 days |
//! | lists and maps | at most 1,048,576 elements, and no more than bytes are left |
//! | strings, byte strings | no more than bytes are left |
//!
//! Floats may have any bits: a client that went wrong may hold a NaN, and its report must still load.

use core::fmt;
use core::time::Duration;

use halftrack::wire::control::Welcome;
use serde::Deserialize;
use serde::de::value::U32Deserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

/// Bytes that are not what a recorder writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The bytes end in the middle of a value.
    #[error("the bytes end in the middle of a value")]
    Truncated,
    /// Bytes follow the last value.
    #[error("bytes follow the last value")]
    Trailing,
    /// The bytes do not encode a value of the expected type.
    #[error("the bytes do not encode a value of the expected type")]
    Malformed,
    /// An integer that no client reaches.
    #[error("a number is 2^60 or more")]
    Number,
    /// A time span that no client reaches.
    #[error("a time span is longer than 100 days")]
    Span,
    /// A list that no client has, or that is longer than the bytes that are left.
    #[error("a list has {got} elements; at most {max} can be here")]
    Length {
        /// Elements that it claims.
        got: u64,
        /// Elements that it may have.
        max: usize,
    },
    /// A type refused its value. Serde passes the reason on as text only.
    #[error("{0}")]
    Refused(Box<str>),
}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Refused(message.to_string().into())
    }
}

impl From<postcard::Error> for ReadError {
    fn from(error: postcard::Error) -> Self {
        match error {
            postcard::Error::DeserializeUnexpectedEnd => Self::Truncated,
            _ => Self::Malformed,
        }
    }
}

/// A [`Deserializer`] of postcard's format that checks sizes.
#[derive(Clone, Debug)]
pub(crate) struct Bounded<'de> {
    rest: &'de [u8],
}

impl<'de> Bounded<'de> {
    /// Integers lie below this. No sum of a few of them overflows.
    const BELOW: u64 = 1 << 60;
    /// Ten times the longest session that anybody has played.
    const MAX_SPAN: Duration = Duration::from_secs(100 * 24 * 3_600);
    /// Elements of a list. The longest one that a client has is a full state of which not all bytes have come yet.
    const MAX_ELEMENTS: usize = Welcome::MAX_BODIES_BYTES;

    pub(crate) const fn new(bytes: &'de [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that are left.
    pub(crate) const fn rest(&self) -> &'de [u8] {
        self.rest
    }

    /// Reads the next value.
    pub(crate) fn value<T: Deserialize<'de>>(&mut self) -> Result<T, ReadError> {
        T::deserialize(self)
    }

    /// Takes the next `count` bytes.
    pub(crate) fn raw(&mut self, count: usize) -> Result<&'de [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ReadError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Checks that nothing is left.
    pub(crate) const fn finish(&self) -> Result<(), ReadError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ReadError::Trailing) }
    }

    /// A value without bounds, as postcard reads it.
    fn plain<T: Deserialize<'de>>(&mut self) -> Result<T, ReadError> {
        let (value, rest) = postcard::take_from_bytes(self.rest)?;
        self.rest = rest;
        Ok(value)
    }

    fn number(&mut self) -> Result<u64, ReadError> {
        let number: u64 = self.plain()?;
        if number < Self::BELOW { Ok(number) } else { Err(ReadError::Number) }
    }

    /// A length of at most `most`, and at most as many as bytes are left: an element takes a byte at least.
    fn length(&mut self, most: usize) -> Result<usize, ReadError> {
        let got: u64 = self.plain()?;
        let max = most.min(self.rest.len());
        let length = usize::try_from(got).ok().filter(|length| *length <= max);
        length.ok_or(ReadError::Length { got, max })
    }

    fn bytes(&mut self) -> Result<&'de [u8], ReadError> {
        let length = self.length(usize::MAX)?;
        self.raw(length)
    }

    fn text(&mut self) -> Result<&'de str, ReadError> {
        core::str::from_utf8(self.bytes()?).map_err(|_| ReadError::Malformed)
    }

    /// Refuses a span that is too long, and leaves it to be read.
    fn check_span(&self) -> Result<(), ReadError> {
        let (secs, nanos): (u64, u32) = self.clone().plain()?;
        // The seconds first: `Duration::new` panics when it overflows.
        let holds = secs <= Self::MAX_SPAN.as_secs() && Duration::new(secs, nanos) <= Self::MAX_SPAN;
        if holds { Ok(()) } else { Err(ReadError::Span) }
    }
}

/// Values without a bound of their own.
macro_rules! plain {
    ($($method:ident $visit:ident $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            visitor.$visit(self.plain::<$type>()?)
        }
    )*};
}

/// Postcard's format does not say what it holds, so these cannot be read. 128-bit integers have no place in a state.
macro_rules! refused {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ReadError> {
            Err(ReadError::Malformed)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Bounded<'de> {
    type Error = ReadError;

    plain! {
        deserialize_bool visit_bool bool;
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_f32 visit_f32 f32;
        deserialize_f64 visit_f64 f64;
        deserialize_char visit_char char;
    }

    refused! {
        deserialize_any deserialize_identifier deserialize_ignored_any deserialize_i128 deserialize_u128
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let number: i64 = self.plain()?;
        if number.unsigned_abs() >= Bounded::BELOW {
            return Err(ReadError::Number);
        }
        visitor.visit_i64(number)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.number()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_bytes(self.bytes()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.plain::<bool>()? { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let left = self.length(Bounded::MAX_ELEMENTS)?;
        visitor.visit_seq(Elements { from: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_seq(Elements { from: self, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_tuple(left, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let left = self.length(Bounded::MAX_ELEMENTS)?;
        visitor.visit_map(Elements { from: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == "Duration" {
            self.check_span()?;
        }
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_enum(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a list, a tuple or a map.
struct Elements<'a, 'de> {
    from: &'a mut Bounded<'de>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for Elements<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.from).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Elements<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        de::SeqAccess::next_element_seed(self, seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        seed.deserialize(&mut *self.from)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::EnumAccess<'de> for &mut Bounded<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let variant: U32Deserializer<ReadError> = self.plain::<u32>()?.into_deserializer();
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Bounded<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_tuple(left, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}

#[cfg(test)]
mod tests;
