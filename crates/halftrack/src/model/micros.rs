//! Timers in whole microseconds.

use core::time::Duration;

use super::code::full_bits;
use super::levels::Levels;
use super::schema::Schema;
use super::settling::{FieldProblem, Settling};
use crate::digest::Digest;

/// A timer from `LO` to `HI` microseconds: `#[micros(LO..=HI)]`, or `#[micros]` for up to 71 minutes.
///
/// Count microseconds, not ticks: rules may run several times per tick. Holds a [`Duration`], or a `u32`.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{Settling, model::{Levels, Micros}};
///
/// type Reload = Micros<0, 5_000_000>;
/// let (mut reload, mut settling) = (Duration::from_nanos(1_500), Settling::CLEAN);
/// Reload::settle(&mut reload, Duration::ZERO, "Gun.reload", &mut settling);
/// assert_eq!(reload, Duration::from_micros(2));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Micros<const LO: u32, const HI: u32>;

impl<const LO: u32, const HI: u32> Micros<LO, HI> {
    const LAST_LEVEL: u64 = {
        assert!(LO <= HI, "the range is empty: write it from its lowest to its highest value");
        (HI - LO) as u64
    };

    /// A running timer changes by a tick or a few: 18 bits reach 131 ms either way.
    const NEAR: u32 = if full_bits(Self::LAST_LEVEL) >= 22 { 18 } else { 0 };

    const fn schema(kind: &str) -> u64 {
        Schema::new("micros").text(kind).number(LO as i128).number(HI as i128).finish()
    }

    /// The nearest whole number of microseconds. Saturates far above any range.
    #[inline]
    fn whole(value: Duration) -> u64 {
        let seconds = value.as_secs().saturating_mul(1_000_000);
        seconds.saturating_add(u64::from((value.subsec_nanos() + 500) / 1_000))
    }
}

#[allow(clippy::cast_lossless, reason = "parameters of a type are constants")]
impl<const LO: u32, const HI: u32> Levels<Duration> for Micros<LO, HI> {
    const LAST: u64 = Self::LAST_LEVEL;
    const SCHEMA: u64 = Self::schema("Duration");
    const NEAR_BITS: u32 = Self::NEAR;

    #[inline]
    fn level(value: Duration) -> u64 {
        Self::whole(value).clamp(LO as u64, HI as u64) - LO as u64
    }

    #[inline]
    fn value(level: u64) -> Duration {
        Duration::from_micros(level + LO as u64)
    }

    #[inline]
    fn settle(value: &mut Duration, _: Duration, field: &'static str, settling: &mut Settling) {
        let whole = Self::whole(*value);
        let inside = whole.clamp(LO as u64, HI as u64);
        if inside != whole {
            settling.report(field, FieldProblem::OutOfRange);
        }
        *value = Duration::from_micros(inside);
    }

    fn check(value: &Duration) -> Result<(), FieldProblem> {
        let range = Duration::from_micros(LO as u64)..=Duration::from_micros(HI as u64);
        if range.contains(value) { Ok(()) } else { Err(FieldProblem::OutOfRange) }
    }

    #[inline]
    fn digest(value: &Duration, digest: Digest) -> Digest {
        digest.word(value.as_secs()).word(u64::from(value.subsec_nanos()))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a level is at most `HI - LO`")]
impl<const LO: u32, const HI: u32> Levels<u32> for Micros<LO, HI> {
    const LAST: u64 = Self::LAST_LEVEL;
    const SCHEMA: u64 = Self::schema("u32");
    const NEAR_BITS: u32 = Self::NEAR;

    #[inline]
    fn level(value: u32) -> u64 {
        u64::from(value.clamp(LO, HI) - LO)
    }

    #[inline]
    fn value(level: u64) -> u32 {
        LO + level as u32
    }

    #[inline]
    fn settle(value: &mut u32, _: u32, field: &'static str, settling: &mut Settling) {
        let inside = (*value).clamp(LO, HI);
        if inside != *value {
            *value = inside;
            settling.report(field, FieldProblem::OutOfRange);
        }
    }

    fn check(value: &u32) -> Result<(), FieldProblem> {
        if (LO..=HI).contains(value) { Ok(()) } else { Err(FieldProblem::OutOfRange) }
    }

    #[inline]
    fn digest(value: &u32, digest: Digest) -> Digest {
        digest.word(u64::from(*value))
    }
}
