//! A serde serializer that lists fields: their paths, their values, and their bytes as postcard writes them.

use serde::Serialize;
use serde::ser::{
    Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::fields::{FieldPath, FieldValue, Leaf, PathPart};

/// Lists the fields of the value that it serializes.
#[derive(Debug, Default)]
pub(super) struct Lister {
    path: Vec<PathPart>,
    pub(super) leaves: Vec<Leaf>,
}

/// A value that has no image: postcard cannot write it either.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("serde cannot write this value")]
pub(super) struct NoImage;

impl Error for NoImage {
    fn custom<T: core::fmt::Display>(_: T) -> Self {
        Self
    }
}

impl Lister {
    fn leaf(&mut self, value: FieldValue, encoded: &impl Serialize) -> Result<(), NoImage> {
        let bytes = postcard::to_allocvec(encoded).map_err(|_| NoImage)?;
        self.leaves.push(Leaf { path: FieldPath(self.path.clone()), value, bytes });
        Ok(())
    }

    fn nested<T: Serialize + ?Sized>(&mut self, part: PathPart, value: &T) -> Result<(), NoImage> {
        self.path.push(part);
        let written = value.serialize(&mut *self);
        self.path.pop();
        written
    }

    fn variant(&mut self, index: u32, variant: &'static str) -> Result<(), NoImage> {
        self.leaf(FieldValue::Variant(variant), &index)
    }
}

/// The fields of a struct, a tuple, a list or a variant, one after the other.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    lister: &'a mut Lister,
    next: usize,
    /// Length of the path without the variant's name.
    depth: usize,
}

impl<'a> Parts<'a> {
    fn of(lister: &'a mut Lister) -> Self {
        Self { next: 0, depth: lister.path.len(), lister }
    }

    fn of_variant(lister: &'a mut Lister, index: u32, variant: &'static str) -> Result<Self, NoImage> {
        let depth = lister.path.len();
        lister.variant(index, variant)?;
        lister.path.push(PathPart::Name(variant));
        Ok(Self { lister, next: 0, depth })
    }

    fn named<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), NoImage> {
        self.lister.nested(PathPart::Name(name), value)
    }

    fn numbered<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoImage> {
        self.next += 1;
        self.lister.nested(PathPart::Index(self.next - 1), value)
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        self.lister.path.truncate(self.depth);
    }
}

macro_rules! leaves {
    ($($function:ident($type:ty) => $value:expr;)*) => {
        $(fn $function(self, value: $type) -> Result<(), NoImage> {
            self.leaf($value(value), &value)
        })*
    };
}

fn text(value: impl core::fmt::Debug) -> FieldValue {
    FieldValue::Text(format!("{value:?}").into())
}

impl<'a> Serializer for &'a mut Lister {
    type Ok = ();
    type Error = NoImage;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    leaves! {
        serialize_bool(bool) => FieldValue::Flag;
        serialize_i8(i8) => |value| FieldValue::Signed(i64::from(value));
        serialize_i16(i16) => |value| FieldValue::Signed(i64::from(value));
        serialize_i32(i32) => |value| FieldValue::Signed(i64::from(value));
        serialize_i64(i64) => FieldValue::Signed;
        serialize_i128(i128) => text;
        serialize_u8(u8) => |value| FieldValue::Unsigned(u64::from(value));
        serialize_u16(u16) => |value| FieldValue::Unsigned(u64::from(value));
        serialize_u32(u32) => |value| FieldValue::Unsigned(u64::from(value));
        serialize_u64(u64) => FieldValue::Unsigned;
        serialize_u128(u128) => text;
        serialize_f32(f32) => FieldValue::Single;
        serialize_f64(f64) => FieldValue::Double;
        serialize_char(char) => text;
        serialize_str(&str) => text;
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), NoImage> {
        self.leaf(text(value), &crate::saved::Piece(value))
    }

    fn serialize_none(self) -> Result<(), NoImage> {
        self.leaf(FieldValue::Variant("None"), &None::<()>)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoImage> {
        self.leaf(FieldValue::Variant("Some"), &Some(()))?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NoImage> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NoImage> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<(), NoImage> {
        self.variant(index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NoImage> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), NoImage> {
        self.variant(index, variant)?;
        self.nested(PathPart::Name(variant), value)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Parts<'a>, NoImage> {
        let length = length.ok_or(NoImage)?;
        self.leaf(FieldValue::Unsigned(length as u64), &length)?;
        Ok(Parts::of(self))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, NoImage> {
        Ok(Parts::of(self))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, NoImage> {
        Ok(Parts::of(self))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, NoImage> {
        Parts::of_variant(self, index, variant)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Parts<'a>, NoImage> {
        self.serialize_seq(length)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, NoImage> {
        Ok(Parts::of(self))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, NoImage> {
        Parts::of_variant(self, index, variant)
    }

    /// As in postcard: the bytes must be the same.
    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! parts {
    ($($trait:ident, $function:ident;)*) => {
        $(impl $trait for Parts<'_> {
            type Ok = ();
            type Error = NoImage;

            fn $function<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoImage> {
                self.numbered(value)
            }

            fn end(self) -> Result<(), NoImage> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
    SerializeTupleVariant, serialize_field;
}

/// Keys and values are numbered in one sequence.
impl SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = NoImage;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoImage> {
        self.numbered(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoImage> {
        self.numbered(value)
    }

    fn end(self) -> Result<(), NoImage> {
        Ok(())
    }
}

impl SerializeStruct for Parts<'_> {
    type Ok = ();
    type Error = NoImage;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), NoImage> {
        self.named(name, value)
    }

    fn end(self) -> Result<(), NoImage> {
        Ok(())
    }
}

impl SerializeStructVariant for Parts<'_> {
    type Ok = ();
    type Error = NoImage;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), NoImage> {
        self.named(name, value)
    }

    fn end(self) -> Result<(), NoImage> {
        Ok(())
    }
}
