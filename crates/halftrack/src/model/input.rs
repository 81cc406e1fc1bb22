//! [`Input`], and how one field of an input is settled, released and written.

use core::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::code::{full_bits, read_alone, write_alone};
use super::digits::{Digits, number_bits, with_digit};
use super::fields::{Each, Leaf, Maybe, Nested};
use super::levels::Levels;
use super::schema::Schema;
use super::settling::Settling;
use crate::wire::{BitReader, BitWriter, WireError};

/// The wishes of one player for one step. Its `Default` is the input while all keys and sticks are at rest.
///
/// Derive it. Axes are *levels*: the newest wins. A button that acts once is a `#[presses]` counter, so that a tap is
/// never lost with the tick that had it.
///
/// ```
/// use halftrack::Input;
/// use halftrack::model::Presses;
///
/// #[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
/// struct TankInput {
///     #[grid(1/16, -1..=1)]
///     turn: f32,
///     #[grid(1/16, -1..=1)]
///     throttle: f32,
///     #[presses]
///     fire: u8,
/// }
///
/// let mut input = TankInput { turn: 0.49, throttle: 1.0, fire: Presses::next(0) };
/// assert!(input.settle().is_clean());
/// assert_eq!(input.turn, 0.5, "both ends simulate the same");
/// assert_eq!(input.released(), TankInput { turn: 0.0, throttle: 0.0, fire: 1 });
/// assert_eq!(TankInput::MAX_BITS, 15);
/// ```
///
/// [`model`](crate::model) lists the attributes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an input",
    label = "not an input",
    note = "derive `Input` for your own types; a float needs `#[grid(step, range)]` or `#[turns(step)]`, \
            an integer behind a type alias needs `#[range(from..=to)]`"
)]
pub trait Input:
    Copy + PartialEq + Debug + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Hash of field names, kinds and ranges in order, those of nested types included.
    const SCHEMA: u64;
    /// The most bits that [`Self::write`] takes.
    const MAX_BITS: usize;
    /// The highest number that a settled value can be; `None` when it does not fit 32 bits.
    #[doc(hidden)]
    const LAST: Option<u32> = None;
    /// Whether it has a counter of presses.
    #[doc(hidden)]
    const PRESSES: bool = false;
    /// Whether it is one field with two common ends.
    #[doc(hidden)]
    const HAS_ENDS: bool = false;

    /// Quantises every field, before you simulate or send it: both ends must simulate the same. NaN becomes the
    /// `Default`'s value.
    fn settle(&mut self) -> Settling;

    /// The input when the player lets go: levels as in the `Default`, counters of presses as they are.
    #[must_use]
    fn released(self) -> Self;

    /// Writes the settled input.
    ///
    /// All fields together are one number, in a truncated binary code, if there are no more than 2^32 values.
    /// Otherwise each field is written by itself.
    fn write(&self, bits: &mut BitWriter<'_>);

    /// Reads an input. Gives settled inputs only.
    ///
    /// # Errors
    /// When the bits end too early.
    fn read(bits: &mut BitReader<'_>) -> Result<Self, WireError>;

    /// [`Self::settle`], with NaN as in `neutral`: the `Default` of the type around this one.
    #[doc(hidden)]
    fn settle_to(&mut self, neutral: &Self) -> Settling {
        let _ = neutral;
        self.settle()
    }

    /// [`Self::released`], with levels as in `neutral`.
    #[doc(hidden)]
    #[must_use]
    fn released_to(self, neutral: Self) -> Self {
        let _ = neutral;
        self.released()
    }

    /// Writes the input that follows `previous`, which the reader knows. Counters of presses take bits only when a button
    /// was pressed.
    fn write_after(&self, previous: &Self, bits: &mut BitWriter<'_>) {
        let Some(last) = Self::LEVELS.filter(|last| Self::PRESSES && *last < u32::MAX) else {
            return self.write(bits);
        };
        let levels = self.levels();
        // One number more says that a counter is another one.
        if Self::from_levels(levels, previous) == *self {
            write_alone(levels, u64::from(last) + 1, bits);
        } else {
            write_alone(u64::from(last) + 1, u64::from(last) + 1, bits);
            self.write(bits);
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// When the bits end too early, or counters that are the same were written all the same.
    fn read_after(previous: &Self, bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        let Some(last) = Self::LEVELS.filter(|last| Self::PRESSES && *last < u32::MAX) else {
            return Self::read(bits);
        };
        let levels = read_alone(u64::from(last) + 1, bits)?;
        if levels <= u64::from(last) {
            return Ok(Self::from_levels(levels, previous));
        }
        let input = Self::read(bits)?;
        // There is one way to write an input.
        let is_short = Self::from_levels(input.levels(), previous) == input;
        if is_short { Err(WireError::Invalid { field: "presses" }) } else { Ok(input) }
    }

    /// [`Self::LAST`] of the levels alone.
    #[doc(hidden)]
    const LEVELS: Option<u32> = Self::LAST;

    /// The levels as a number, without counters of presses.
    #[doc(hidden)]
    fn levels(&self) -> u64 {
        self.number()
    }

    /// The levels of a number, with the counters of `counters`.
    #[doc(hidden)]
    fn from_levels(number: u64, counters: &Self) -> Self {
        let _ = counters;
        Self::from_number(number)
    }

    /// The value as a number, if [`Self::LAST`] is one.
    #[doc(hidden)]
    fn number(&self) -> u64 {
        0
    }

    /// The value of a number.
    #[doc(hidden)]
    fn from_number(number: u64) -> Self {
        let _ = number;
        Self::default()
    }
}

/// One axis of whole steps is the smallest input.
impl Input for i8 {
    const SCHEMA: u64 = Schema::new("i8").finish();
    const MAX_BITS: usize = 8;

    fn settle(&mut self) -> Settling {
        Settling::default()
    }

    fn released(self) -> Self {
        0
    }

    fn write(&self, bits: &mut BitWriter<'_>) {
        bits.write_signed(i32::from(*self), 8);
    }

    fn read(bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        Self::try_from(bits.read_signed(8)?).map_err(|_| WireError::Invalid { field: "byte" })
    }
}

/// No input: all bodies move by themselves.
impl Input for () {
    const SCHEMA: u64 = Schema::new("()").finish();
    const MAX_BITS: usize = 0;

    fn settle(&mut self) -> Settling {
        Settling::default()
    }

    fn released(self) {}

    fn write(&self, _: &mut BitWriter<'_>) {}

    fn read(_: &mut BitReader<'_>) -> Result<Self, WireError> {
        Ok(())
    }
}

/// One field of an input, of type `T`. The derive calls it.
///
/// ```
/// use halftrack::model::{Grid, InputField, Leaf};
///
/// // #[grid(1/16, -1..=1)] turn: f32
/// type Turn = Leaf<Grid<1, 16, -16, 16>>;
/// assert_eq!(<Turn as InputField<f32>>::LAST, Some(32));
/// assert_eq!(<Turn as InputField<f32>>::number(&1.0), 32);
/// ```
pub trait InputField<T: Copy> {
    /// Hash of kind and range.
    const SCHEMA: u64;
    /// The most bits that [`Self::write`] takes.
    const MAX_BITS: usize;
    /// The highest number that a value can be; `None` when it does not fit 32 bits.
    const LAST: Option<u32>;
    /// Whether its two ends are common, see [`Levels::HAS_ENDS`].
    const HAS_ENDS: bool = false;
    /// Whether it has a counter of presses.
    const PRESSES: bool;
    /// [`Self::LAST`] without counters of presses.
    const LEVELS: Option<u32> = Self::LAST;

    /// A settled value for a place where the `Default` has none.
    fn start() -> T;

    /// Puts the value on its grid. NaN becomes the value of `neutral`.
    fn settle(value: &mut T, neutral: &T, field: &'static str, settling: &mut Settling);

    /// Levels as in `neutral`, counters as in `value`.
    fn released(value: T, neutral: T) -> T;

    /// The value as a number, if [`Self::LAST`] is one.
    fn number(value: &T) -> u64;

    /// The value of a number up to [`Self::LAST`].
    fn from_number(number: u64) -> T;

    /// The value as a number without counters of presses, if [`Self::LEVELS`] is one.
    fn levels(value: &T) -> u64 {
        Self::number(value)
    }

    /// The value of a number up to [`Self::LEVELS`], with the counters of `counters`.
    fn from_levels(number: u64, counters: &T) -> T {
        let _ = counters;
        Self::from_number(number)
    }

    /// Writes the value by itself.
    fn write(value: &T, bits: &mut BitWriter<'_>);

    /// Reads it.
    ///
    /// # Errors
    /// When the bits end too early.
    fn read(bits: &mut BitReader<'_>) -> Result<T, WireError>;
}

#[allow(clippy::cast_possible_truncation, reason = "compared before")]
impl<T: Copy + Default, C: Levels<T>> InputField<T> for Leaf<C> {
    const SCHEMA: u64 = C::SCHEMA;
    const MAX_BITS: usize = full_bits(C::LAST) as usize;
    const LAST: Option<u32> = if C::LAST <= u32::MAX as u64 { Some(C::LAST as u32) } else { None };
    const HAS_ENDS: bool = C::HAS_ENDS;
    const PRESSES: bool = C::PRESSES;
    const LEVELS: Option<u32> = if C::PRESSES { Some(0) } else { <Self as InputField<T>>::LAST };

    fn start() -> T {
        C::value(C::level(T::default()))
    }

    #[inline]
    fn levels(value: &T) -> u64 {
        if C::PRESSES { 0 } else { C::level(*value) }
    }

    #[inline]
    fn from_levels(number: u64, counters: &T) -> T {
        if C::PRESSES { *counters } else { C::value(number) }
    }

    #[inline]
    fn settle(value: &mut T, neutral: &T, field: &'static str, settling: &mut Settling) {
        C::settle(value, *neutral, field, settling);
    }

    #[inline]
    fn released(value: T, neutral: T) -> T {
        if C::PRESSES { value } else { neutral }
    }

    #[inline]
    fn number(value: &T) -> u64 {
        C::level(*value)
    }

    #[inline]
    fn from_number(number: u64) -> T {
        C::value(number)
    }

    #[inline]
    fn write(value: &T, bits: &mut BitWriter<'_>) {
        write_alone(C::level(*value), C::LAST, bits);
    }

    #[inline]
    fn read(bits: &mut BitReader<'_>) -> Result<T, WireError> {
        read_alone(C::LAST, bits).map(C::value)
    }
}

impl<T: Input> InputField<T> for Nested {
    const SCHEMA: u64 = T::SCHEMA;
    const MAX_BITS: usize = T::MAX_BITS;
    const LAST: Option<u32> = T::LAST;
    const HAS_ENDS: bool = T::HAS_ENDS;
    const PRESSES: bool = T::PRESSES;
    const LEVELS: Option<u32> = T::LEVELS;

    #[inline]
    fn levels(value: &T) -> u64 {
        value.levels()
    }

    #[inline]
    fn from_levels(number: u64, counters: &T) -> T {
        T::from_levels(number, counters)
    }

    fn start() -> T {
        let mut start = T::default();
        start.settle();
        start
    }

    #[inline]
    fn settle(value: &mut T, neutral: &T, _: &'static str, settling: &mut Settling) {
        settling.add(value.settle_to(neutral));
    }

    #[inline]
    fn released(value: T, neutral: T) -> T {
        value.released_to(neutral)
    }

    #[inline]
    fn number(value: &T) -> u64 {
        value.number()
    }

    #[inline]
    fn from_number(number: u64) -> T {
        T::from_number(number)
    }

    fn write(value: &T, bits: &mut BitWriter<'_>) {
        value.write(bits);
    }

    fn read(bits: &mut BitReader<'_>) -> Result<T, WireError> {
        T::read(bits)
    }
}

impl<T: Copy, C: InputField<T>, const N: usize> InputField<[T; N]> for Each<C> {
    const SCHEMA: u64 = Schema::new("array").number(N as i128).nested(C::SCHEMA).finish();
    const LAST: Option<u32> = {
        let (mut last, mut index) = (Some(0), 0);
        while index < N {
            last = with_digit(last, C::LAST);
            index += 1;
        }
        last
    };
    const MAX_BITS: usize = number_bits(<Self as InputField<[T; N]>>::LAST, N * C::MAX_BITS);
    const PRESSES: bool = C::PRESSES;
    const LEVELS: Option<u32> = {
        let (mut last, mut index) = (Some(0), 0);
        while index < N {
            last = with_digit(last, C::LEVELS);
            index += 1;
        }
        last
    };

    fn start() -> [T; N] {
        [C::start(); N]
    }

    fn levels(value: &[T; N]) -> u64 {
        let Some((first, rest)) = value.split_first() else { return 0 };
        let first = Digits::first(C::levels(first), C::LEVELS, C::HAS_ENDS);
        rest.iter().fold(first, |digits, value| digits.with(C::levels(value), C::LEVELS)).number()
    }

    fn from_levels(number: u64, counters: &[T; N]) -> [T; N] {
        let (mut digits, mut value) = (Digits::of(number), *counters);
        if let Some((first, rest)) = value.split_first_mut() {
            rest.iter_mut().rev().for_each(|value| *value = C::from_levels(digits.take(C::LEVELS), value));
            *first = C::from_levels(digits.take_first(C::LEVELS, C::HAS_ENDS), first);
        }
        value
    }

    #[inline]
    fn settle(value: &mut [T; N], neutral: &[T; N], field: &'static str, settling: &mut Settling) {
        value.iter_mut().zip(neutral).for_each(|(value, neutral)| C::settle(value, neutral, field, settling));
    }

    #[inline]
    fn released(mut value: [T; N], neutral: [T; N]) -> [T; N] {
        value.iter_mut().zip(neutral).for_each(|(value, neutral)| *value = C::released(*value, neutral));
        value
    }

    #[inline]
    fn number(value: &[T; N]) -> u64 {
        let Some((first, rest)) = value.split_first() else { return 0 };
        let first = Digits::first(C::number(first), C::LAST, C::HAS_ENDS);
        rest.iter().fold(first, |digits, value| digits.with(C::number(value), C::LAST)).number()
    }

    #[inline]
    fn from_number(number: u64) -> [T; N] {
        let (mut digits, mut value) = (Digits::of(number), Self::start());
        if let Some((first, rest)) = value.split_first_mut() {
            rest.iter_mut().rev().for_each(|value| *value = C::from_number(digits.take(C::LAST)));
            *first = C::from_number(digits.take_first(C::LAST, C::HAS_ENDS));
        }
        value
    }

    fn write(value: &[T; N], bits: &mut BitWriter<'_>) {
        match <Self as InputField<[T; N]>>::LAST {
            Some(last) => write_alone(Self::number(value), u64::from(last), bits),
            None => value.iter().for_each(|value| C::write(value, bits)),
        }
    }

    fn read(bits: &mut BitReader<'_>) -> Result<[T; N], WireError> {
        if let Some(last) = <Self as InputField<[T; N]>>::LAST {
            return read_alone(u64::from(last), bits).map(Self::from_number);
        }
        let mut value = Self::start();
        for value in &mut value {
            *value = C::read(bits)?;
        }
        Ok(value)
    }
}

/// `None` is number zero.
impl<T: Copy, C: InputField<T>> InputField<Option<T>> for Maybe<C> {
    const SCHEMA: u64 = Schema::new("option").nested(C::SCHEMA).finish();
    const LAST: Option<u32> = match C::LAST {
        Some(last) => last.checked_add(1),
        None => None,
    };
    const MAX_BITS: usize = number_bits(Self::LAST, 1 + C::MAX_BITS);
    const PRESSES: bool = {
        assert!(
            !C::PRESSES,
            "`#[presses]` cannot be inside an `Option`: a count that vanishes loses presses"
        );
        false
    };

    fn start() -> Option<T> {
        None
    }

    #[inline]
    fn settle(value: &mut Option<T>, neutral: &Option<T>, field: &'static str, settling: &mut Settling) {
        if let Some(value) = value {
            C::settle(value, &neutral.unwrap_or_else(C::start), field, settling);
        }
    }

    #[inline]
    fn released(_: Option<T>, neutral: Option<T>) -> Option<T> {
        neutral
    }

    #[inline]
    fn number(value: &Option<T>) -> u64 {
        value.as_ref().map_or(0, |value| 1 + C::number(value))
    }

    #[inline]
    fn from_number(number: u64) -> Option<T> {
        number.checked_sub(1).map(C::from_number)
    }

    fn write(value: &Option<T>, bits: &mut BitWriter<'_>) {
        if let Some(last) = Self::LAST {
            return write_alone(Self::number(value), u64::from(last), bits);
        }
        bits.write_flag(value.is_some());
        if let Some(value) = value {
            C::write(value, bits);
        }
    }

    fn read(bits: &mut BitReader<'_>) -> Result<Option<T>, WireError> {
        if let Some(last) = Self::LAST {
            return read_alone(u64::from(last), bits).map(Self::from_number);
        }
        bits.read_flag()?.then(|| C::read(bits)).transpose()
    }
}
