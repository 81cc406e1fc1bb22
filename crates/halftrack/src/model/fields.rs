//! How fields are put together: a number, a nested type, an array, an option; and enums by the number of a variant.

use core::marker::PhantomData;

use super::code::{full_bits, read_alone, write_alone};
use crate::wire::{BitReader, BitWriter, WireError};

/// A field as one number: `C` is its [`Levels`](super::Levels).
///
/// ```
/// use halftrack::model::{BodyField, Leaf, Whole};
///
/// assert_eq!(<Leaf<Whole<0, 100>> as BodyField<u8>>::MAX_BITS, 8, "changed, and seven bits");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Leaf<C>(PhantomData<C>);

/// A field of a type that derives the same trait.
///
/// ```
/// use halftrack::{Body, model::{BodyField, Nested}};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Body)]
/// struct Lamp {
///     lit: bool,
/// }
///
/// assert_eq!(<Nested as BodyField<Lamp>>::MAX_BITS, 2, "changed, and one bit");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Nested;

/// A field that is an array: `C` codes each element.
///
/// ```
/// use halftrack::model::{BodyField, Each, Flag, Leaf};
///
/// assert_eq!(<Each<Leaf<Flag>> as BodyField<[bool; 6]>>::MAX_BITS, 7, "changed, and six bits");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Each<C>(PhantomData<C>);

/// A field that is an `Option`: `C` codes its content.
///
/// ```
/// use halftrack::model::{BodyField, Flag, Leaf, Maybe};
///
/// assert_eq!(<Maybe<Leaf<Flag>> as BodyField<Option<bool>>>::MAX_BITS, 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Maybe<C>(PhantomData<C>);

/// Bits of a variant's number in an enum of `variants`.
#[doc(hidden)]
#[must_use]
pub const fn variant_bits(variants: u32) -> usize {
    full_bits((variants as u64).saturating_sub(1)) as usize
}

/// Writes a variant's number.
#[doc(hidden)]
pub fn write_variant(variant: u32, variants: u32, bits: &mut BitWriter<'_>) {
    write_alone(u64::from(variant), u64::from(variants).saturating_sub(1), bits);
}

/// Reads a variant's number, which is below `variants`.
///
/// # Errors
/// When the bits end too early.
#[doc(hidden)]
pub fn read_variant(variants: u32, bits: &mut BitReader<'_>) -> Result<u32, WireError> {
    let variant = read_alone(u64::from(variants).saturating_sub(1), bits)?;
    u32::try_from(variant).map_err(|_| WireError::Invalid { field: "variant" })
}

/// The largest of some widths.
#[doc(hidden)]
#[must_use]
pub const fn most(widths: &[usize]) -> usize {
    let (mut most, mut rest) = (0, widths);
    while let Some((width, after)) = rest.split_first() {
        most = if *width > most { *width } else { most };
        rest = after;
    }
    most
}
