//! Floats on a grid: lengths in a range, and headings that wrap.

use super::levels::Levels;
use super::schema::Schema;
use super::settling::{FieldProblem, Settling};
use crate::digest::Digest;

/// The nearest whole number, halves away from zero. Saturates, and NaN is zero.
///
/// By hand because `round` is a call on most targets, and this runs for every field at the end of every tick.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "a float that does not fit saturates")]
fn nearest(value: f64) -> i32 {
    (value + 0.5f64.copysign(value)) as i32
}

/// The level of a range's end, for ranges that are not literals. Fails to compile when the grid does not have it.
#[doc(hidden)]
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "asserted to be whole and below 2^30")]
pub const fn end_level(end: f64, num: u32, den: u32) -> i32 {
    let level = end * den as f64 / num as f64;
    assert!(
        level.abs() <= (1 << 30) as f64,
        "the range has more than 2^30 grid steps; choose a coarser grid"
    );
    assert!(level as i32 as f64 == level, "the grid does not divide the range");
    level as i32
}

/// Whether `f32` holds every level: exactly if the step is a power of two, within a quarter of a step otherwise.
const fn fits_f32(num: u32, den: u32, lo: i32, hi: i32) -> bool {
    let max = if lo.unsigned_abs() > hi.unsigned_abs() { lo.unsigned_abs() } else { hi.unsigned_abs() };
    max <= if num.is_power_of_two() && den.is_power_of_two() { 1 << 24 } else { 1 << 22 }
}

/// A float in steps of `NUM / DEN`, from step `LO` to step `HI`: `#[grid(NUM/DEN, from..=to)]`.
///
/// ```
/// use halftrack::{Settling, model::{Grid, Levels}};
///
/// // #[grid(1/16, -1..=1)]
/// type Stick = Grid<1, 16, -16, 16>;
/// let (mut stick, mut settling) = (0.49, Settling::CLEAN);
/// Stick::settle(&mut stick, 0.0, "Input.stick", &mut settling);
/// assert_eq!(stick, 0.5);
/// assert_eq!(Stick::level(0.5f64), 24);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Grid<const NUM: u32, const DEN: u32, const LO: i32, const HI: i32>;

impl<const NUM: u32, const DEN: u32, const LO: i32, const HI: i32> Grid<NUM, DEN, LO, HI> {
    const LAST_LEVEL: u64 = {
        assert!(NUM > 0 && DEN > 0, "a grid's step must be above zero");
        assert!(LO <= HI, "the range is empty: write it from its lowest to its highest value");
        assert!(
            LO >= -(1 << 30) && HI <= 1 << 30,
            "the range has more than 2^30 grid steps; choose a coarser grid"
        );
        HI.abs_diff(LO) as u64
    };

    const fn schema(float: &str) -> u64 {
        Schema::new("grid")
            .text(float)
            .number(NUM as i128)
            .number(DEN as i128)
            .number(LO as i128)
            .number(HI as i128)
            .finish()
    }

    /// In steps. A step that is a power of two costs one exact multiplication.
    #[inline]
    fn steps(value: f64) -> f64 {
        value * f64::from(DEN) / f64::from(NUM)
    }

    /// The value of a step. Division gives the float nearest to a decimal: 3/10 is the literal `0.3`.
    #[inline]
    fn at(step: i32) -> f64 {
        f64::from(step) * f64::from(NUM) / f64::from(DEN)
    }

    /// The step for NaN, and for values with their nearest step out of range.
    #[cold]
    fn outside(value: f64, instead: f64, field: &'static str, settling: &mut Settling) -> i32 {
        let steps = Self::steps(if value.is_nan() { instead } else { value });
        let step = nearest(steps).clamp(LO, HI);
        if !value.is_finite() {
            settling.report(field, FieldProblem::NotFinite);
        } else if (steps - f64::from(step)).abs() > 0.5 {
            settling.report(field, FieldProblem::OutOfRange);
        }
        step
    }

    #[inline]
    fn settled(value: f64, instead: f64, field: &'static str, settling: &mut Settling) -> f64 {
        let step = nearest(Self::steps(value));
        let step = if LO <= step && step <= HI && !value.is_nan() {
            step
        } else {
            Self::outside(value, instead, field, settling)
        };
        Self::at(step)
    }
}

/// Twice the range's width around the range: rules may leave it inside a tick, but never meet 1e300.
fn check_float(value: f64, lo: f64, hi: f64) -> Result<(), FieldProblem> {
    let slack = 2.0 * (hi - lo);
    if !value.is_finite() {
        Err(FieldProblem::NotFinite)
    } else if value < lo - slack || value > hi + slack {
        Err(FieldProblem::OutOfRange)
    } else {
        Ok(())
    }
}

#[allow(clippy::cast_possible_truncation, reason = "levels are checked to fit the float")]
impl<const NUM: u32, const DEN: u32, const LO: i32, const HI: i32> Levels<f64> for Grid<NUM, DEN, LO, HI> {
    const LAST: u64 = Self::LAST_LEVEL;
    const SCHEMA: u64 = Self::schema("f64");
    const HAS_ENDS: bool = true;

    #[inline]
    fn level(value: f64) -> u64 {
        u64::from(nearest(Self::steps(value)).clamp(LO, HI).abs_diff(LO))
    }

    #[inline]
    fn value(level: u64) -> f64 {
        Self::at(LO.wrapping_add_unsigned(level as u32))
    }

    #[inline]
    fn settle(value: &mut f64, instead: f64, field: &'static str, settling: &mut Settling) {
        *value = Self::settled(*value, instead, field, settling);
    }

    fn check(value: &f64) -> Result<(), FieldProblem> {
        check_float(*value, Self::at(LO), Self::at(HI))
    }

    #[inline]
    fn digest(value: &f64, digest: Digest) -> Digest {
        digest.float(*value)
    }
}

/// One turn in `STEPS` steps, wrapped into [0, 1): `#[turns(1/STEPS)]`.
///
/// ```
/// use halftrack::{Settling, model::{Levels, Turns}};
///
/// let (mut heading, mut settling) = (-0.25, Settling::CLEAN);
/// Turns::<65_536>::settle(&mut heading, 0.0, "Tank.heading", &mut settling);
/// assert_eq!(heading, 0.75);
/// assert!(settling.is_clean(), "a whole turn more or less is the same heading");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Turns<const STEPS: u32>;

impl<const STEPS: u32> Turns<STEPS> {
    const LAST_LEVEL: u64 = {
        assert!(STEPS > 0 && STEPS <= 1 << 30, "a turn has from 1 to 2^30 steps");
        STEPS as u64 - 1
    };

    #[inline]
    fn steps(value: f64) -> f64 {
        value * f64::from(STEPS)
    }

    #[inline]
    fn wrapped(steps: f64) -> u32 {
        // A turn has fewer than 2^31 steps, so the remainder is never negative.
        nearest(steps).rem_euclid(STEPS.cast_signed()).unsigned_abs()
    }

    #[inline]
    fn at(step: u32) -> f64 {
        f64::from(step) / f64::from(STEPS)
    }

    #[cold]
    fn outside(value: f64, instead: f64, field: &'static str, settling: &mut Settling) -> u32 {
        let finite = value.is_finite();
        settling.report(field, if finite { FieldProblem::OutOfRange } else { FieldProblem::NotFinite });
        Self::wrapped(Self::steps(if value.is_nan() { instead } else { value }))
    }

    #[inline]
    fn settled(value: f64, instead: f64, field: &'static str, settling: &mut Settling) -> f64 {
        let steps = Self::steps(value);
        // Further from zero than an `i32` counts, or NaN.
        let counted = steps.abs() < 2_147_483_647.0;
        Self::at(if counted { Self::wrapped(steps) } else { Self::outside(value, instead, field, settling) })
    }
}

#[allow(clippy::cast_possible_truncation, reason = "levels are checked to fit the float")]
impl<const STEPS: u32> Levels<f64> for Turns<STEPS> {
    const LAST: u64 = Self::LAST_LEVEL;
    const SCHEMA: u64 = Schema::new("turns").text("f64").number(STEPS as i128).finish();
    const WRAPS: bool = true;

    #[inline]
    fn level(value: f64) -> u64 {
        u64::from(Self::wrapped(Self::steps(value)))
    }

    #[inline]
    fn value(level: u64) -> f64 {
        Self::at(level as u32)
    }

    #[inline]
    fn settle(value: &mut f64, instead: f64, field: &'static str, settling: &mut Settling) {
        *value = Self::settled(*value, instead, field, settling);
    }

    fn check(value: &f64) -> Result<(), FieldProblem> {
        check_float(*value, 0.0, 1.0)
    }

    #[inline]
    fn digest(value: &f64, digest: Digest) -> Digest {
        digest.float(*value)
    }
}

/// The same for `f32`, which is exact in `f64` and back.
macro_rules! single {
    ([$($params:tt)*] $codec:ty, $schema:expr, $fits:expr) => {
        #[allow(clippy::cast_possible_truncation, reason = "levels are checked to fit the float")]
        impl<$($params)*> Levels<f32> for $codec {
            const LAST: u64 = {
                assert!($fits, "the grid is too fine for an `f32`; use an `f64` or a coarser grid");
                Self::LAST_LEVEL
            };
            const SCHEMA: u64 = $schema;
            const WRAPS: bool = <Self as Levels<f64>>::WRAPS;
            const HAS_ENDS: bool = <Self as Levels<f64>>::HAS_ENDS;

            #[inline]
            fn level(value: f32) -> u64 {
                <Self as Levels<f64>>::level(f64::from(value))
            }

            #[inline]
            fn value(level: u64) -> f32 {
                <Self as Levels<f64>>::value(level) as f32
            }

            #[inline]
            fn settle(value: &mut f32, instead: f32, field: &'static str, settling: &mut Settling) {
                *value = Self::settled(f64::from(*value), f64::from(instead), field, settling) as f32;
            }

            fn check(value: &f32) -> Result<(), FieldProblem> {
                <Self as Levels<f64>>::check(&f64::from(*value))
            }

            #[inline]
            fn digest(value: &f32, digest: Digest) -> Digest {
                digest.word(u64::from(value.to_bits()))
            }
        }
    };
}

single!(
    [const NUM: u32, const DEN: u32, const LO: i32, const HI: i32] Grid<NUM, DEN, LO, HI>,
    Self::schema("f32"),
    fits_f32(NUM, DEN, LO, HI)
);
single!(
    [const STEPS: u32] Turns<STEPS>,
    Schema::new("turns").text("f32").number(STEPS as i128).finish(),
    fits_f32(1, STEPS, 0, STEPS.cast_signed())
);
