//! State written down to the bit, and read back. Knows plain numbers and collections; types tell what they consist of.
//!
//! ```text
//! number      1 to 10   seven bits a byte, the lowest first; the highest bit says that there is more
//! signed      1 to 10   the same, of 0, -1, 1, -2, ... counted from zero
//! float       8         its bits, little-endian
//! option      1         0 none, 1 some and what
//! list                  how many, and each
//! bits        1         how many bytes, and the bits in them
//! ```
//!
//! On load everything is checked: numbers are far from where sums of them would overflow, and nothing is longer than what
//! there is to read. Floats may be anything, as they may in a client that has gone wrong.

mod values;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use crate::wire::{BitReader, BitWriter, WireError};

/// Where state is written to.
///
/// ```
/// use halftrack::flight::{Exact, Loader, Saver};
///
/// let mut saver = Saver::default();
/// (7u32, Some(0.1f64)).save(&mut saver);
/// let mut loader = Loader::new(saver.as_bytes());
/// assert_eq!(Exact::load(&mut loader), Ok((7u32, Some(0.1f64))));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Saver {
    bytes: Vec<u8>,
    /// Something did not fit: what was written cannot be read back.
    failed: bool,
}

/// Called from everywhere: never inlined, or the page would be some kilobytes longer.
impl Saver {
    /// Goes on behind `bytes`.
    pub(crate) fn onto(bytes: Vec<u8>) -> Self {
        Self { bytes, failed: false }
    }

    /// What was written; `None` when some of it did not fit.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        (!self.failed).then_some(self.bytes)
    }

    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// What was written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.failed = false;
    }

    /// One byte.
    #[inline(never)]
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A number; the smaller, the shorter.
    #[inline(never)]
    pub fn number(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                self.bytes.push(low);
                return;
            }
            self.bytes.push(low | 0x80);
        }
    }

    #[inline(never)]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes, after how many there are.
    pub fn list(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Bits of a few things that belong together, at most [`Self::MAX_BITS`].
    pub fn bits(&mut self, write: impl FnOnce(&mut BitWriter<'_>)) {
        let mut buffer = [0; Self::MAX_BITS / 8];
        let mut bits = BitWriter::new(&mut buffer);
        write(&mut bits);
        let length =
            bits.finish().and_then(|length| Some((u8::try_from(length).ok()?, buffer.get(..length)?)));
        match length {
            Some((length, written)) => {
                self.bytes.push(length);
                self.bytes.extend_from_slice(written);
            }
            None => self.failed = true,
        }
    }

    /// The most bits that belong together.
    pub const MAX_BITS: usize = 255 * 8;
}

/// Where state is read from. Believes nothing.
#[derive(Clone, Debug)]
pub struct Loader<'a> {
    bytes: &'a [u8],
}

impl<'a> Loader<'a> {
    /// Numbers of a state lie below this: no sum of a few of them overflows.
    const BELOW: u64 = 1 << 60;
    /// The most that any list of a state has.
    const MAX_LENGTH: usize = 1 << 16;

    /// Reads `bytes` from their beginning.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Bytes that are left.
    pub const fn left(&self) -> usize {
        self.bytes.len()
    }

    /// One byte.
    ///
    /// # Errors
    /// When there is none.
    pub fn byte(&mut self) -> Result<u8, WireError> {
        let (byte, rest) = self.bytes.split_first().ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(*byte)
    }

    /// A number, whichever fits.
    ///
    /// # Errors
    /// When it does not end, or is too large.
    pub fn any_number(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part.leading_zeros() < shift {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(WireError::Invalid { field: "number" })
    }

    /// A number of a state.
    ///
    /// # Errors
    /// When it does not end, or is larger than any that a client comes to.
    pub fn number(&mut self) -> Result<u64, WireError> {
        let number = self.any_number()?;
        if number < Self::BELOW { Ok(number) } else { Err(WireError::Invalid { field: "number" }) }
    }

    /// So many bytes.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Bytes, after how many there are.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn list(&mut self) -> Result<&'a [u8], WireError> {
        let count = usize::try_from(self.number()?).map_err(|_| WireError::Truncated)?;
        self.take(count)
    }

    /// How many things follow, each of at least a byte.
    ///
    /// # Errors
    /// When there is no room for so many.
    pub fn count(&mut self) -> Result<usize, WireError> {
        let count = usize::try_from(self.number()?).map_err(|_| WireError::Truncated)?;
        if count > self.left() {
            return Err(WireError::Truncated);
        }
        if count > Self::MAX_LENGTH {
            return Err(WireError::Invalid { field: "length" });
        }
        Ok(count)
    }

    /// Bits of a few things that belong together.
    ///
    /// # Errors
    /// When they end too early, mean nothing, or go on.
    pub fn bits<T>(
        &mut self,
        read: impl FnOnce(&mut BitReader<'_>) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        let length = usize::from(self.byte()?);
        let mut bits = BitReader::new(self.take(length)?);
        let value = read(&mut bits)?;
        bits.finish()?;
        Ok(value)
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// When there is.
    pub const fn finish(self) -> Result<(), WireError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(WireError::Trailing) }
    }
}

/// A value that is written down to the bit.
///
/// Unlike [`crate::wire::Coded`] and [`crate::snapshot::BodyCode`] it is for values that are *not* on the grid of the wire: a
/// body in the middle of a tick, a pose on its way. What is loaded is what was saved, to the bit; what no client could
/// have saved is refused.
pub trait Exact: Sized {
    /// Writes it.
    fn save(&self, to: &mut Saver);

    /// Reads it, and checks it.
    ///
    /// # Errors
    /// When the bytes end too early or mean nothing.
    fn load(from: &mut Loader<'_>) -> Result<Self, WireError>;
}

/// A part of a client that is built from its config: only what has come on top of that is written, and read into one
/// that was built from the same.
pub(crate) trait State {
    fn save_state(&self, to: &mut Saver);
    fn load_state(&mut self, from: &mut Loader<'_>) -> Result<(), WireError>;
}

impl<T: Exact> State for T {
    fn save_state(&self, to: &mut Saver) {
        self.save(to);
    }

    fn load_state(&mut self, from: &mut Loader<'_>) -> Result<(), WireError> {
        *self = T::load(from)?;
        Ok(())
    }
}

/// [`Exact`] for a struct, by its fields. All of them have to be named: one that is added is not forgotten.
macro_rules! exact {
    ([$($generics:tt)*] $type:ty { $($field:ident),* $(,)? } $(if |$loaded:ident| $holds:expr)?) => {
        impl<$($generics)*> $crate::exact::Exact for $type {
            fn save(&self, to: &mut $crate::exact::Saver) {
                let Self { $($field),* } = self;
                $($crate::exact::Exact::save($field, to);)*
            }

            fn load(from: &mut $crate::exact::Loader<'_>) -> Result<Self, $crate::wire::WireError> {
                $(let $field = $crate::exact::Exact::load(from)?;)*
                let loaded = Self { $($field),* };
                $(
                    let $loaded = &loaded;
                    if !($holds) {
                        return Err($crate::wire::WireError::Invalid { field: stringify!($type) });
                    }
                )?
                Ok(loaded)
            }
        }
    };
}

/// [`Exact`] for an enum without fields: a byte, by the order in which it declares them.
macro_rules! exact_enum {
    ($type:ty { $($variant:ident),* $(,)? }) => {
        impl $crate::exact::Exact for $type {
            fn save(&self, to: &mut $crate::exact::Saver) {
                // That all of them are named is checked here.
                match self { $(Self::$variant => {})* }
                to.byte(*self as u8);
            }

            fn load(from: &mut $crate::exact::Loader<'_>) -> Result<Self, $crate::wire::WireError> {
                let at = from.byte()?;
                let invalid = $crate::wire::WireError::Invalid { field: stringify!($type) };
                [$(Self::$variant),*].into_iter().find(|each| *each as u8 == at).ok_or(invalid)
            }
        }
    };
}

/// [`State`] for a struct: the fields that are written, and those that are as they were built.
macro_rules! state {
    ([$($generics:tt)*] $type:ty { $($kept:ident),* $(,)? } built { $($built:ident),* $(,)? } $(if |$loaded:ident| $holds:expr)?) => {
        impl<$($generics)*> $crate::exact::State for $type {
            fn save_state(&self, to: &mut $crate::exact::Saver) {
                let Self { $($kept,)* $($built: _,)* } = self;
                $($crate::exact::State::save_state($kept, to);)*
            }

            fn load_state(&mut self, from: &mut $crate::exact::Loader<'_>) -> Result<(), $crate::wire::WireError> {
                let Self { $($kept,)* $($built: _,)* } = self;
                $($crate::exact::State::load_state($kept, from)?;)*
                $(
                    let $loaded = &*self;
                    if !($holds) {
                        return Err($crate::wire::WireError::Invalid { field: stringify!($type) });
                    }
                )?
                Ok(())
            }
        }
    };
}

pub(crate) use {exact, exact_enum, state};

macro_rules! exact_numbers {
    ($($type:ty),*) => {$(
        impl Exact for $type {
            fn save(&self, to: &mut Saver) {
                to.number(u64::from(*self));
            }

            fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
                Self::try_from(from.number()?).map_err(|_| WireError::Invalid { field: stringify!($type) })
            }
        }
    )*};
}

exact_numbers!(u16, u32, u64);

/// A count: the same on every machine.
impl Exact for usize {
    fn save(&self, to: &mut Saver) {
        to.number(*self as u64);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        Self::try_from(from.number()?).map_err(|_| WireError::Invalid { field: "count" })
    }
}

/// [`Exact`] for a struct that is a name for what is in it.
macro_rules! exact_in {
    ($type:ty) => {
        impl $crate::exact::Exact for $type {
            fn save(&self, to: &mut $crate::exact::Saver) {
                self.0.save(to);
            }

            fn load(from: &mut $crate::exact::Loader<'_>) -> Result<Self, $crate::wire::WireError> {
                $crate::exact::Exact::load(from).map(Self)
            }
        }
    };
}

pub(crate) use exact_in;

impl Exact for u8 {
    fn save(&self, to: &mut Saver) {
        to.byte(*self);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        from.byte()
    }
}

impl Exact for i64 {
    fn save(&self, to: &mut Saver) {
        to.number(((self << 1) ^ (self >> 63)).cast_unsigned());
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let folded = from.number()?;
        Ok((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }
}

impl Exact for i32 {
    fn save(&self, to: &mut Saver) {
        i64::from(*self).save(to);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        Self::try_from(i64::load(from)?).map_err(|_| WireError::Invalid { field: "i32" })
    }
}

impl Exact for bool {
    fn save(&self, to: &mut Saver) {
        to.byte(u8::from(*self));
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::Invalid { field: "bool" }),
        }
    }
}

impl Exact for f64 {
    fn save(&self, to: &mut Saver) {
        to.raw(&self.to_bits().to_le_bytes());
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let bytes = from.take(8)?.first_chunk::<8>().ok_or(WireError::Truncated)?;
        Ok(Self::from_bits(u64::from_le_bytes(*bytes)))
    }
}

impl Exact for Duration {
    fn save(&self, to: &mut Saver) {
        to.number(self.as_secs());
        to.number(u64::from(self.subsec_nanos()));
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        // A hundred days: no client waits longer, and no multiple of it overflows.
        const LONGEST: u64 = 100 * 24 * 3_600;
        let (seconds, nanos) = (from.number()?, u32::load(from)?);
        if seconds > LONGEST || nanos >= 1_000_000_000 {
            return Err(WireError::Invalid { field: "duration" });
        }
        Ok(Self::new(seconds, nanos))
    }
}

impl<T: Exact> Exact for Option<T> {
    fn save(&self, to: &mut Saver) {
        self.is_some().save(to);
        if let Some(value) = self {
            value.save(to);
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        if bool::load(from)? { T::load(from).map(Some) } else { Ok(None) }
    }
}

impl<A: Exact, B: Exact> Exact for (A, B) {
    fn save(&self, to: &mut Saver) {
        self.0.save(to);
        self.1.save(to);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        Ok((A::load(from)?, B::load(from)?))
    }
}

impl<T: Exact + Copy + Default, const N: usize> Exact for [T; N] {
    fn save(&self, to: &mut Saver) {
        self.iter().for_each(|each| each.save(to));
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let mut loaded = [T::default(); N];
        for each in &mut loaded {
            *each = T::load(from)?;
        }
        Ok(loaded)
    }
}

macro_rules! exact_lists {
    ($($type:ident),*) => {$(
        impl<T: Exact> Exact for $type<T> {
            fn save(&self, to: &mut Saver) {
                to.number(self.len() as u64);
                self.iter().for_each(|each| each.save(to));
            }

            fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
                (0..from.count()?).map(|_| T::load(from)).collect()
            }
        }
    )*};
}

exact_lists!(Vec, VecDeque);

impl<K: Exact + Ord, V: Exact> Exact for BTreeMap<K, V> {
    fn save(&self, to: &mut Saver) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.save(to);
            value.save(to);
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        (0..from.count()?).map(|_| <(K, V)>::load(from)).collect()
    }
}

/// Numbers that lie near each other, each as what it is more than the one before it.
pub(crate) fn save_near<'a>(numbers: impl ExactSizeIterator<Item = &'a i64>, to: &mut Saver) {
    to.number(numbers.len() as u64);
    let mut before = 0i64;
    for number in numbers {
        number.wrapping_sub(before).save(to);
        before = *number;
    }
}

/// Reads them.
pub(crate) fn load_near(from: &mut Loader<'_>) -> Result<VecDeque<i64>, WireError> {
    let count = from.count()?;
    let mut numbers = VecDeque::with_capacity(count);
    let mut before = 0i64;
    for _ in 0..count {
        before = before.wrapping_add(i64::load(from)?);
        if before.unsigned_abs() >= Loader::BELOW {
            return Err(WireError::Invalid { field: "number" });
        }
        numbers.push_back(before);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests;
