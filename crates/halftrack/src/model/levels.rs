//! One field as a number of a known range: integers, flags and counters of presses.

use super::code::near_bits;
use super::schema::Schema;
use super::settling::{FieldProblem, Settling};
use crate::digest::Digest;

/// A field of type `T` as one number, its *level*, from 0 to [`Self::LAST`].
///
/// The derives choose an implementation by the field's attribute: [`Grid`](super::Grid), [`Turns`](super::Turns),
/// [`Micros`](super::Micros), [`Whole`], [`Presses`] or [`Flag`]. Write your own for a type that the library does not
/// know, and use it in a hand-written [`Body`](super::Body).
///
/// ```
/// use halftrack::model::{Levels, Whole};
///
/// type Percent = Whole<0, 100>;
/// assert_eq!(<Percent as Levels<u8>>::LAST, 100);
/// assert_eq!(<Percent as Levels<u8>>::level(7), 7);
/// let value: i16 = Whole::<-100, 100>::value(0);
/// assert_eq!(value, -100);
/// ```
#[diagnostic::on_unimplemented(
    message = "this attribute does not fit a field of type `{T}`",
    label = "not a field for this attribute",
    note = "floats take `#[grid(step, range)]` or `#[turns(step)]`, integers `#[range(from..=to)]`, \
            `core::time::Duration` and `u32` `#[micros]`, and `u8` `#[presses]`"
)]
pub trait Levels<T: Copy> {
    /// The highest level.
    const LAST: u64;
    /// Hash of kind and range.
    const SCHEMA: u64;
    /// Whether the level behind the last is the first again.
    const WRAPS: bool = false;
    /// Width of a near difference in bits; zero for none.
    const NEAR_BITS: u32 = near_bits(Self::LAST);
    /// Whether it has two ends that a key or a stick reaches often. Their codes are made short in an input.
    const HAS_ENDS: bool = false;
    /// Whether it counts presses, which [`Input::released`](super::Input::released) keeps.
    const PRESSES: bool = false;

    /// The level nearest to `value`. Total: NaN and values out of range give some level.
    fn level(value: T) -> u64;

    /// The value of a level, which is at most [`Self::LAST`].
    fn value(level: u64) -> T;

    /// Puts `value` on its nearest level. NaN becomes `instead`, settled.
    fn settle(value: &mut T, instead: T, field: &'static str, settling: &mut Settling);

    /// Whether rules may meet this value, settled or not.
    ///
    /// # Errors
    /// See [`Body::check`](super::Body::check).
    fn check(value: &T) -> Result<(), FieldProblem>;

    /// Adds every bit of `value`.
    fn digest(value: &T, digest: Digest) -> Digest;
}

/// An integer from `LO` to `HI`: `#[range(LO..=HI)]`, or the type's whole range without an attribute.
///
/// ```
/// use halftrack::{Settling, model::{Levels, Whole}};
///
/// let mut ammo = 250u8;
/// let mut settling = Settling::CLEAN;
/// Whole::<0, 100>::settle(&mut ammo, 0, "Gun.ammo", &mut settling);
/// assert_eq!(ammo, 100);
/// assert!(!settling.is_clean());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Whole<const LO: i128, const HI: i128>;

macro_rules! whole {
    ($($int:ident)*) => {$(
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_lossless,
            clippy::unnecessary_cast,
            reason = "the range was checked to fit the type"
        )]
        impl<const LO: i128, const HI: i128> Levels<$int> for Whole<LO, HI> {
            const LAST: u64 = {
                assert!(LO <= HI, "the range is empty: write it from its lowest to its highest value");
                assert!(
                    LO >= $int::MIN as i128 && HI <= $int::MAX as i128,
                    concat!("the range does not fit an `", stringify!($int), "`")
                );
                (HI - LO) as u64
            };
            const SCHEMA: u64 = Schema::new("whole").text(stringify!($int)).number(LO).number(HI).finish();
            const HAS_ENDS: bool = true;

            #[inline]
            fn level(value: $int) -> u64 {
                value.clamp(LO as $int, HI as $int).abs_diff(LO as $int) as u64
            }

            #[inline]
            fn value(level: u64) -> $int {
                (LO as $int).wrapping_add(level as $int)
            }

            #[inline]
            fn settle(value: &mut $int, _: $int, field: &'static str, settling: &mut Settling) {
                let inside = (*value).clamp(LO as $int, HI as $int);
                if inside != *value {
                    *value = inside;
                    settling.report(field, FieldProblem::OutOfRange);
                }
            }

            #[inline]
            fn check(value: &$int) -> Result<(), FieldProblem> {
                let inside = (LO as $int..=HI as $int).contains(value);
                if inside { Ok(()) } else { Err(FieldProblem::OutOfRange) }
            }

            #[inline]
            fn digest(value: &$int, digest: Digest) -> Digest {
                digest.word(*value as u64)
            }
        }
    )*};
}

whole!(u8 u16 u32 u64 i8 i16 i32 i64);

/// A `bool`. It needs no attribute.
///
/// ```
/// use halftrack::model::{Flag, Levels};
///
/// assert_eq!((Flag::level(true), Flag::value(0)), (1, false));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Flag;

impl Levels<bool> for Flag {
    const LAST: u64 = 1;
    const SCHEMA: u64 = Schema::new("bool").finish();

    #[inline]
    fn level(value: bool) -> u64 {
        u64::from(value)
    }

    #[inline]
    fn value(level: u64) -> bool {
        level != 0
    }

    #[inline]
    fn settle(_: &mut bool, _: bool, _: &'static str, _: &mut Settling) {}

    fn check(_: &bool) -> Result<(), FieldProblem> {
        Ok(())
    }

    #[inline]
    fn digest(value: &bool, digest: Digest) -> Digest {
        digest.word(u64::from(*value))
    }
}

/// A counter of presses in a `u8`: `#[presses]`. It has 4 bits and wraps.
///
/// Count a button that acts once instead of sending whether it is down: a tap inside a lost or late tick is then never
/// lost and never doubled. Your body stores the last count it saw, also as `#[presses]`.
///
/// Keep the count in your program, and count on from the count in the body whenever a session or a body begins: zero for a
/// new body, the stored count for one that a player comes back to. A count that starts elsewhere looks like presses.
///
/// ```
/// use halftrack::model::Presses;
///
/// let seen = 15;
/// assert_eq!(Presses::since(seen, Presses::next(seen)), 1);
/// assert_eq!(Presses::next(seen), 0, "it wraps");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Presses;

impl Presses {
    /// Counts before the counter is zero again. 16 presses between two ticks are beyond any thumb.
    pub const COUNT: u8 = 16;

    /// The count after one more press.
    #[must_use]
    pub const fn next(count: u8) -> u8 {
        count.wrapping_add(1) % Self::COUNT
    }

    /// Presses since a body saw the count `seen`.
    #[must_use]
    pub const fn since(seen: u8, count: u8) -> u8 {
        count.wrapping_sub(seen) % Self::COUNT
    }
}

impl Levels<u8> for Presses {
    const LAST: u64 = Self::COUNT as u64 - 1;
    const SCHEMA: u64 = Schema::new("presses").finish();
    const WRAPS: bool = true;
    const PRESSES: bool = true;

    #[inline]
    fn level(value: u8) -> u64 {
        u64::from(value % Self::COUNT)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a level is below 16")]
    fn value(level: u64) -> u8 {
        level as u8
    }

    /// Wraps: a counter that went past 15 is no problem.
    #[inline]
    fn settle(value: &mut u8, _: u8, _: &'static str, _: &mut Settling) {
        *value %= Self::COUNT;
    }

    fn check(value: &u8) -> Result<(), FieldProblem> {
        if *value < Self::COUNT { Ok(()) } else { Err(FieldProblem::OutOfRange) }
    }

    #[inline]
    fn digest(value: &u8, digest: Digest) -> Digest {
        digest.word(u64::from(*value))
    }
}
