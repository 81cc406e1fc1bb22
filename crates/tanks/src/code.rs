//! A tank on the wire, against one that the receiver has.
//!
//! ```text
//! near        1   has moved by less than two metres along each axis
//!   x, y     12   each, if so: 1/1024 m, against the other
//!   x, y     21   each, if not: 1/1024 m
//! heading     1   is another, and 16 if so: 1/65536 turn
//! params      1   are others, and 16 and 16 if so: speed in 1/256 m/s, turn speed in 1/16384 turn per second
//! hp          1   is another, and 8 if so
//! ```

use std::time::Duration;

use halftrack::snapshot::BodyCode;
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{Digest, Tick};

use crate::body::{GridTank, MoveParams, Tank};
use crate::collide::HULL_REACH;
use crate::recording;
use crate::rules::{Hull, Surroundings, Tanks};

/// Counted up with every change of the rules, `libm`'s version included: ends with different rules do not play.
const RULES: u64 = 1;

const NEAR_BITS: u32 = 12;
const FAR_BITS: u32 = 21;

/// How far along an axis those lie at most whom `tank` could meet in `span`.
fn reach(tank: &Tank, span: Duration) -> f64 {
    HULL_REACH
        + tank.params.speed().max(0.0) * span.as_secs_f64()
        + Tanks::SEPARATION_SPEED * span.as_secs_f64()
}

impl BodyCode for Tanks {
    #[inline]
    fn surround(around: &mut Surroundings, tanks: &[Tank], own: usize, span: Duration) {
        around.hulls.clear();
        let Some(tank) = tanks.get(own) else { return };
        let reach = reach(tank, span);
        for (other, hull) in tanks.iter().enumerate() {
            if (hull.x - tank.x).abs() <= reach && (hull.y - tank.y).abs() <= reach && other != own {
                around.hulls.push(Hull { x: hull.x, y: hull.y });
            }
        }
    }

    fn is_alone(around: &Surroundings) -> bool {
        around.hulls.is_empty()
    }

    fn neighbours(around: &Surroundings) -> usize {
        around.hulls.len()
    }

    #[inline]
    fn along(tank: &Tank, span: Duration) -> Option<(f64, f64)> {
        Some((tank.x, reach(tank, span)))
    }

    fn shared(alone: &Surroundings) -> u64 {
        let rules = Digest::new().word(RULES).float(Tank::GRID).float(Tank::HEADING_GRID);
        alone.arena.digest(rules).finish()
    }

    /// 102 bits: a tank far from the baseline, of which everything is another.
    const MAX_BODY_BYTES: usize = 13;

    fn blank() -> Tank {
        Tank::new(0.0, 0.0, 0.0)
    }

    fn write_body(tank: &Tank, baseline: &Tank, bits: &mut BitWriter<'_>) {
        let (tank, baseline) = (tank.to_grid(), baseline.to_grid());
        let moved = [tank.x.wrapping_sub(baseline.x), tank.y.wrapping_sub(baseline.y)];
        let near = moved.iter().all(|moved| fits(*moved, NEAR_BITS));
        bits.write_flag(near);
        let (parts, count) = if near { (moved, NEAR_BITS) } else { ([tank.x, tank.y], FAR_BITS) };
        for part in parts {
            bits.write_signed(part, count);
        }
        bits.write_flag(tank.heading != baseline.heading);
        if tank.heading != baseline.heading {
            bits.write(tank.heading.into(), 16);
        }
        bits.write_flag(tank.params != baseline.params);
        if tank.params != baseline.params {
            let (speed, turn_speed) = tank.params.units();
            bits.write(speed.into(), 16);
            bits.write(turn_speed.into(), 16);
        }
        bits.write_flag(tank.hp != baseline.hp);
        if tank.hp != baseline.hp {
            bits.write(tank.hp.into(), 8);
        }
    }

    fn read_body(baseline: &Tank, bits: &mut BitReader<'_>) -> Result<Tank, WireError> {
        let baseline = baseline.to_grid();
        let near = bits.read_flag()?;
        let mut read = |from: i32| {
            let part = bits.read_signed(if near { NEAR_BITS } else { FAR_BITS })?;
            let at = if near { from.saturating_add(part) } else { part };
            if fits(at, FAR_BITS) { Ok(at) } else { Err(WireError::Invalid { field: "position" }) }
        };
        let (x, y) = (read(baseline.x)?, read(baseline.y)?);
        let heading = if bits.read_flag()? { read_u16(bits)? } else { baseline.heading };
        let params = if bits.read_flag()? {
            let units = (read_u16(bits)?, read_u16(bits)?);
            MoveParams::from_units(units).map_err(|_| WireError::Invalid { field: "params" })?
        } else {
            baseline.params
        };
        let hp = if bits.read_flag()? { bits.read(8)? as u8 } else { baseline.hp };
        if hp > Tank::MAX_HP {
            return Err(WireError::Invalid { field: "hp" });
        }
        Ok(GridTank { x, y, heading, params, hp }.into())
    }

    fn write_order(order: &[u8], newest: Tick, bits: &mut BitWriter<'_>) {
        recording::write_order(order, newest, bits);
    }

    fn read_order(newest: Tick, bits: &mut BitReader<'_>) -> Result<Vec<u8>, WireError> {
        recording::read_order(newest, bits)
    }
}

/// Whether a number fits into so many bits with its sign.
fn fits(number: i32, count: u32) -> bool {
    let unused = 32 - count;
    (number << unused) >> unused == number
}

fn read_u16(bits: &mut BitReader<'_>) -> Result<u16, WireError> {
    Ok(bits.read(16)? as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_tank() -> impl Strategy<Value = Tank> {
        let params =
            (0.0f64..30.0, 0.0f64..2.0).prop_map(|(speed, turn)| MoveParams::new(speed, turn).unwrap());
        let position = -1_000_000i32..1_000_000;
        (position.clone(), position, any::<u16>(), params, 0u8..=Tank::MAX_HP)
            .prop_map(|(x, y, heading, params, hp)| GridTank { x, y, heading, params, hp }.into())
    }

    fn written(tank: &Tank, baseline: &Tank) -> (Vec<u8>, usize) {
        let mut buffer = [0; 32];
        let mut bits = BitWriter::new(&mut buffer);
        Tanks::write_body(tank, baseline, &mut bits);
        let count = bits.len_bits();
        let length = bits.finish().unwrap();
        (buffer[..length].to_vec(), count)
    }

    #[test]
    fn a_tank_that_was_pushed_costs_four_bytes() {
        let baseline = Tank::new(5.0, 5.0, 0.25);
        assert_eq!(written(&Tank { x: 5.5, y: 4.5, ..baseline }, &baseline).1, 28);
        let limit = 2_047.0 / 1_024.0;
        assert_eq!(written(&Tank { x: 5.0 + limit, ..baseline }, &baseline).1, 28);
        assert_eq!(written(&Tank { x: 7.0, ..baseline }, &baseline).1, 46, "two metres are not near");
    }

    #[test]
    fn what_no_tank_can_be_is_refused() {
        let baseline = Tank::new(0.0, 0.0, 0.0);
        let read = |write: &dyn Fn(&mut BitWriter<'_>)| {
            let mut buffer = [0; 32];
            let mut bits = BitWriter::new(&mut buffer);
            write(&mut bits);
            let length = bits.finish().unwrap();
            Tanks::read_body(&baseline, &mut BitReader::new(&buffer[..length]))
        };
        let still = |bits: &mut BitWriter<'_>| {
            bits.write_flag(true);
            bits.write(0, 24);
            bits.write_flag(false);
        };
        let fast = read(&|bits| {
            still(bits);
            bits.write_flag(true);
            bits.write(0xffff_ffff, 32);
            bits.write_flag(false);
        });
        assert_eq!(fast, Err(WireError::Invalid { field: "params" }));
        let hale = read(&|bits| {
            still(bits);
            bits.write_flag(false);
            bits.write_flag(true);
            bits.write(101, 8);
        });
        assert_eq!(hale, Err(WireError::Invalid { field: "hp" }));
        let edge = Tank::new(1_023.9, 0.0, 0.0);
        let mut buffer = [0; 8];
        let mut bits = BitWriter::new(&mut buffer);
        bits.write_flag(true);
        bits.write_signed(2_000, 12);
        bits.write_signed(0, 12);
        bits.finish().unwrap();
        let out = Tanks::read_body(&edge, &mut BitReader::new(&buffer));
        assert_eq!(out, Err(WireError::Invalid { field: "position" }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_to_the_bit(tank in any_tank(), baseline in any_tank(), near in any::<bool>()) {
            let tank = if near { Tank { x: baseline.x + 0.5, y: baseline.y, ..tank } } else { tank };
            let (bytes, _) = written(&tank, &baseline);
            prop_assert!(bytes.len() <= Tanks::MAX_BODY_BYTES);
            let mut bits = BitReader::new(&bytes);
            let read = Tanks::read_body(&baseline, &mut bits).unwrap();
            prop_assert_eq!(read.digest(), tank.digest());
            prop_assert_eq!(bits.finish(), Ok(()));
        }

        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..20), baseline in any_tank()) {
            if let Ok(tank) = Tanks::read_body(&baseline, &mut BitReader::new(&bytes)) {
                prop_assert_eq!(Tank::from(tank.to_grid()).digest(), tank.digest(), "settled");
            }
        }
    }
}
