//! All fields of an input as the digits of one number, each with a radix of its own.
//!
//! Three axes of 33 levels take 18 bits by themselves and 16 as one number. The derives call these functions.

use super::code::{full_bits, read_alone, write_alone};
use crate::wire::{BitReader, BitWriter, WireError};

/// Bits of one number up to `last`, or of fields that are written one by one.
#[doc(hidden)]
#[must_use]
pub const fn number_bits(last: Option<u32>, one_by_one: usize) -> usize {
    match last {
        Some(last) => full_bits(last as u64) as usize,
        None => one_by_one,
    }
}

/// The highest number when a digit is put behind a number.
#[doc(hidden)]
#[must_use]
pub const fn with_digit(number: Option<u32>, digit: Option<u32>) -> Option<u32> {
    match (number, digit) {
        (Some(number), Some(digit)) => narrow((number as u64 + 1).checked_mul(digit as u64 + 1)),
        _ => None,
    }
}

/// The highest number when either of two things may be meant.
#[doc(hidden)]
#[must_use]
pub const fn with_choice(first: Option<u32>, second: Option<u32>) -> Option<u32> {
    match (first, second) {
        (Some(first), Some(second)) => narrow(Some(first as u64 + second as u64 + 2)),
        _ => None,
    }
}

/// Numbers up to `last`.
#[doc(hidden)]
#[inline]
#[must_use]
pub const fn count(last: Option<u32>) -> u64 {
    match last {
        Some(last) => last as u64 + 1,
        None => 1,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "compared before")]
const fn narrow(count: Option<u64>) -> Option<u32> {
    match count {
        Some(count) if count <= 1 << 32 => Some((count - 1) as u32),
        _ => None,
    }
}

/// Writes an input as one number.
#[doc(hidden)]
#[inline]
pub fn write_number(number: u64, last: u32, bits: &mut BitWriter<'_>) {
    write_alone(number, u64::from(last), bits);
}

/// Reads it.
///
/// # Errors
/// When the bits end too early.
#[doc(hidden)]
#[inline]
pub fn read_number(last: u32, bits: &mut BitReader<'_>) -> Result<u64, WireError> {
    read_alone(u64::from(last), bits)
}

/// A number whose digits are fields, each with a radix of its own. The first field is the most significant.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Digits(u64);

impl Digits {
    #[inline]
    #[must_use]
    pub fn of(number: u64) -> Self {
        Self(number)
    }

    /// Puts the first field. Long codes go to the highest numbers, so the range is turned by one: its last value comes
    /// before its first, and both extremes of a key or stick are among the short codes.
    #[inline]
    #[must_use]
    pub fn first(digit: u64, last: Option<u32>, has_ends: bool) -> Self {
        Self(if has_ends { (digit + 1) % count(last) } else { digit })
    }

    /// Puts the next field.
    #[inline]
    #[must_use]
    pub fn with(self, digit: u64, last: Option<u32>) -> Self {
        Self(self.0 * count(last) + digit)
    }

    /// Takes the last field that is still in it.
    #[inline]
    pub fn take(&mut self, last: Option<u32>) -> u64 {
        let digit = self.0 % count(last);
        self.0 /= count(last);
        digit
    }

    /// Takes the first field, when all others are taken.
    #[inline]
    pub fn take_first(&mut self, last: Option<u32>, has_ends: bool) -> u64 {
        let radix = count(last);
        let digit = self.0 % radix;
        if has_ends { (digit + radix - 1) % radix } else { digit }
    }

    /// Whether the number belongs to a variant with numbers up to `last`. If not, its numbers are passed over.
    #[inline]
    pub fn is_within(&mut self, last: Option<u32>) -> bool {
        let count = count(last);
        let within = self.0 < count;
        if !within {
            self.0 -= count;
        }
        within
    }

    #[inline]
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}
