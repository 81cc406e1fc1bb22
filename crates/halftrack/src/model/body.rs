//! [`Body`], and how one field of a body is settled, checked, hashed and written.

use core::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::code::Delta;
use super::fields::{Each, Leaf, Maybe, Nested};
use super::levels::Levels;
use super::schema::Schema;
use super::settling::{FieldError, Settling};
use crate::digest::Digest;
use crate::wire::{BitReader, BitWriter, WireError};

/// A thing that rules move: everything its motion depends on, parameters and timers included.
///
/// Derive it. You declare each field once, with its grid and range, and get all of this plus the serde impls:
///
/// ```
/// use core::time::Duration;
/// use halftrack::Body;
/// use halftrack::wire::{BitReader, BitWriter};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Body)]
/// struct Tank {
///     #[grid(1/1024, -512..=512)]
///     position: [f64; 2],
///     #[turns(1/65536)]
///     heading: f64,
///     #[range(0..=100)]
///     hp: u8,
///     #[micros(0..=5_000_000)]
///     reload: Duration,
///     #[presses]
///     shots_seen: u8,
///     turret: Turret,
/// }
///
/// #[derive(Clone, Copy, Debug, PartialEq, Body)]
/// enum Turret {
///     Stowed,
///     Aimed {
///         #[turns(1/4096)]
///         at: f32,
///     },
/// }
///
/// let mut tank = Tank { position: [3.0001, 4.0], hp: 100, turret: Turret::Aimed { at: 0.25 }, ..Tank::blank() };
/// assert!(tank.settle().is_clean());
/// assert_eq!(tank.position, [3.0, 4.0]);
///
/// let mut buffer = [0; 32];
/// let mut bits = BitWriter::new(&mut buffer);
/// tank.write(&Tank::blank(), &mut bits);
/// assert!(bits.len_bits() <= Tank::MAX_BITS);
/// let length = bits.finish().unwrap();
/// let read = Tank::read(&Tank::blank(), &mut BitReader::new(&buffer[..length]));
/// assert_eq!(read, Ok(tank));
/// ```
///
/// [`model`](crate::model) lists the attributes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a body",
    label = "not a body",
    note = "derive `Body` for your own types; a float needs `#[grid(step, range)]` or `#[turns(step)]`, \
            an integer behind a type alias needs `#[range(from..=to)]`"
)]
pub trait Body: Copy + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Hash of field names, kinds and ranges in order, those of nested types included.
    const SCHEMA: u64;
    /// The most bits that [`Self::write`] takes.
    const MAX_BITS: usize;

    /// The body that both ends know without being sent one. New bodies are written against it.
    ///
    /// Choose one with `#[blank(..)]` on the type: full states are short if it is like most bodies. Otherwise the derive
    /// takes the value nearest to zero of each range, `None`, and the first variant.
    fn blank() -> Self;

    /// Puts every field on its grid. Both ends run it at the end of every tick.
    ///
    /// Idempotent. Leaves no NaN, which becomes its range's start, and no -0.0.
    fn settle(&mut self) -> Settling;

    /// Checks a body that was loaded from a file, settled or not.
    ///
    /// # Errors
    /// When a float is not finite, or further from its range than twice the range's width; or when any other field is
    /// outside its range. Names the first such field.
    fn check(&self) -> Result<(), FieldError>;

    /// Writes the settled body against `baseline`, which the receiver has. Cheap when little changed.
    fn write(&self, baseline: &Self, bits: &mut BitWriter<'_>);

    /// Reads a body that was written against `baseline`. Gives settled bodies only.
    ///
    /// # Errors
    /// When the bits end too early or give a field that no settled body has.
    fn read(baseline: &Self, bits: &mut BitReader<'_>) -> Result<Self, WireError>;

    /// A hash of every bit of every field, settled or not.
    fn digest(&self) -> u64;
}

/// One field of a body, of type `T`. The derive calls it.
///
/// ```
/// use halftrack::model::{BodyField, Each, Grid, Leaf};
///
/// // #[grid(1/16, 0..=10)] corners: [f64; 4]
/// type Corners = Each<Leaf<Grid<1, 16, 0, 160>>>;
/// assert_eq!(<Corners as BodyField<[f64; 4]>>::blank(), [0.0; 4]);
/// ```
pub trait BodyField<T: Copy> {
    /// Hash of kind and range.
    const SCHEMA: u64;
    /// The most bits that [`Self::write`] takes.
    const MAX_BITS: usize;

    /// The value in a blank body.
    fn blank() -> T;

    /// Puts the value on its grid.
    fn settle(value: &mut T, field: &'static str, settling: &mut Settling);

    /// Checks a loaded value.
    ///
    /// # Errors
    /// See [`Body::check`].
    fn check(value: &T, field: &'static str) -> Result<(), FieldError>;

    /// Whether both are the same when settled.
    fn same(value: &T, baseline: &T) -> bool;

    /// Adds every bit of the value.
    fn digest(value: &T, digest: Digest) -> Digest;

    /// Writes the value against a baseline.
    fn write(value: &T, baseline: &T, bits: &mut BitWriter<'_>);

    /// Reads it, settled.
    ///
    /// # Errors
    /// See [`Body::read`].
    fn read(baseline: &T, field: &'static str, bits: &mut BitReader<'_>) -> Result<T, WireError>;

    /// A settled copy. Decoders use it, so that even an unsettled baseline gives settled bodies.
    #[inline]
    fn settled(value: &T, field: &'static str) -> T {
        let mut settled = *value;
        Self::settle(&mut settled, field, &mut Settling::default());
        settled
    }
}

const fn delta<T: Copy, C: Levels<T>>() -> Delta {
    Delta { last: C::LAST, near: C::NEAR_BITS, wraps: C::WRAPS }
}

impl<T: Copy + Default, C: Levels<T>> BodyField<T> for Leaf<C> {
    const SCHEMA: u64 = C::SCHEMA;
    const MAX_BITS: usize = delta::<T, C>().max_bits();

    fn blank() -> T {
        C::value(C::level(T::default()))
    }

    #[inline]
    fn settle(value: &mut T, field: &'static str, settling: &mut Settling) {
        C::settle(value, C::value(0), field, settling);
    }

    fn check(value: &T, field: &'static str) -> Result<(), FieldError> {
        C::check(value).map_err(|problem| FieldError { field, problem })
    }

    #[inline]
    fn same(value: &T, baseline: &T) -> bool {
        C::level(*value) == C::level(*baseline)
    }

    #[inline]
    fn digest(value: &T, digest: Digest) -> Digest {
        C::digest(value, digest)
    }

    #[inline]
    fn write(value: &T, baseline: &T, bits: &mut BitWriter<'_>) {
        delta::<T, C>().write(C::level(*value), C::level(*baseline), bits);
    }

    #[inline]
    fn read(baseline: &T, field: &'static str, bits: &mut BitReader<'_>) -> Result<T, WireError> {
        Ok(C::value(delta::<T, C>().read(C::level(*baseline), field, bits)?))
    }
}

/// One bit when nothing changed.
impl<T: Body> BodyField<T> for Nested {
    const SCHEMA: u64 = T::SCHEMA;
    const MAX_BITS: usize = 1 + T::MAX_BITS;

    fn blank() -> T {
        T::blank()
    }

    #[inline]
    fn settle(value: &mut T, _: &'static str, settling: &mut Settling) {
        settling.add(value.settle());
    }

    fn check(value: &T, _: &'static str) -> Result<(), FieldError> {
        value.check()
    }

    #[inline]
    fn same(value: &T, baseline: &T) -> bool {
        value == baseline
    }

    #[inline]
    fn digest(value: &T, digest: Digest) -> Digest {
        digest.word(value.digest())
    }

    fn write(value: &T, baseline: &T, bits: &mut BitWriter<'_>) {
        let changed = value != baseline;
        bits.write_flag(changed);
        if changed {
            value.write(baseline, bits);
        }
    }

    fn read(baseline: &T, field: &'static str, bits: &mut BitReader<'_>) -> Result<T, WireError> {
        if bits.read_flag()? { T::read(baseline, bits) } else { Ok(Self::settled(baseline, field)) }
    }
}

/// One bit when nothing changed, and otherwise every element against that of the baseline.
impl<T: Copy, C: BodyField<T>, const N: usize> BodyField<[T; N]> for Each<C> {
    const SCHEMA: u64 = Schema::new("array").number(N as i128).nested(C::SCHEMA).finish();
    const MAX_BITS: usize = 1 + N * C::MAX_BITS;

    fn blank() -> [T; N] {
        [C::blank(); N]
    }

    #[inline]
    fn settle(value: &mut [T; N], field: &'static str, settling: &mut Settling) {
        value.iter_mut().for_each(|value| C::settle(value, field, settling));
    }

    fn check(value: &[T; N], field: &'static str) -> Result<(), FieldError> {
        value.iter().try_for_each(|value| C::check(value, field))
    }

    #[inline]
    fn same(value: &[T; N], baseline: &[T; N]) -> bool {
        value.iter().zip(baseline).all(|(value, baseline)| C::same(value, baseline))
    }

    #[inline]
    fn digest(value: &[T; N], digest: Digest) -> Digest {
        value.iter().fold(digest, |digest, value| C::digest(value, digest))
    }

    fn write(value: &[T; N], baseline: &[T; N], bits: &mut BitWriter<'_>) {
        let changed = !Self::same(value, baseline);
        bits.write_flag(changed);
        if changed {
            value.iter().zip(baseline).for_each(|(value, baseline)| C::write(value, baseline, bits));
        }
    }

    fn read(baseline: &[T; N], field: &'static str, bits: &mut BitReader<'_>) -> Result<[T; N], WireError> {
        if !bits.read_flag()? {
            return Ok(Self::settled(baseline, field));
        }
        let mut value = *baseline;
        for (value, baseline) in value.iter_mut().zip(baseline) {
            *value = C::read(baseline, field, bits)?;
        }
        Ok(value)
    }
}

/// One bit for `Some`, and its content against the baseline's, or against a blank one.
impl<T: Copy, C: BodyField<T>> BodyField<Option<T>> for Maybe<C> {
    const SCHEMA: u64 = Schema::new("option").nested(C::SCHEMA).finish();
    const MAX_BITS: usize = 1 + C::MAX_BITS;

    fn blank() -> Option<T> {
        None
    }

    #[inline]
    fn settle(value: &mut Option<T>, field: &'static str, settling: &mut Settling) {
        if let Some(value) = value {
            C::settle(value, field, settling);
        }
    }

    fn check(value: &Option<T>, field: &'static str) -> Result<(), FieldError> {
        value.as_ref().map_or(Ok(()), |value| C::check(value, field))
    }

    #[inline]
    fn same(value: &Option<T>, baseline: &Option<T>) -> bool {
        match (value, baseline) {
            (Some(value), Some(baseline)) => C::same(value, baseline),
            (None, None) => true,
            _ => false,
        }
    }

    #[inline]
    fn digest(value: &Option<T>, digest: Digest) -> Digest {
        match value {
            Some(value) => C::digest(value, digest.word(1)),
            None => digest.word(0),
        }
    }

    fn write(value: &Option<T>, baseline: &Option<T>, bits: &mut BitWriter<'_>) {
        bits.write_flag(value.is_some());
        if let Some(value) = value {
            C::write(value, &baseline.unwrap_or_else(C::blank), bits);
        }
    }

    fn read(
        baseline: &Option<T>,
        field: &'static str,
        bits: &mut BitReader<'_>,
    ) -> Result<Option<T>, WireError> {
        let some = bits.read_flag()?;
        some.then(|| C::read(&baseline.unwrap_or_else(C::blank), field, bits)).transpose()
    }
}
