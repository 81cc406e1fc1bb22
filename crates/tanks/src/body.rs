//! A tank: where it stands, what it can do, and its exact image on the grid of the wire.

use halftrack::{Body, Pose};

/// How a tank moves: decided by the server, confirmed at login, part of the body, so that a replay from any
/// baseline uses those that held then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Body)]
pub struct MoveParams {
    /// 1/256 m/s.
    #[range(0..=7680)]
    speed: u16,
    /// 1/16384 turn per second.
    #[range(0..=32768)]
    turn_speed: u16,
}

/// Movement parameters that no tank can have.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// Not within 0..=30 m/s.
    #[error("speed is {got} m/s; choose one from 0 to 30")]
    Speed {
        /// Metres per second.
        got: f64,
    },
    /// Not within 0..=2 turns per second.
    #[error("turn speed is {got} turns per second; choose one from 0 to 2")]
    TurnSpeed {
        /// Turns per second.
        got: f64,
    },
}

impl Default for MoveParams {
    /// 8 m/s, and a full turn in 3.2 s: quick enough to dodge, slow enough to aim at.
    fn default() -> Self {
        Self { speed: 8 * 256, turn_speed: 16_384 / 16 * 5 }
    }
}

impl MoveParams {
    /// The fastest tank. Faster than this, a player at 5 Hz sees it twice on its way across the screen.
    pub const MAX_SPEED: f64 = 30.0;
    /// The nimblest tank, turns per second.
    pub const MAX_TURN_SPEED: f64 = 2.0;

    const SPEED_UNIT: f64 = 1.0 / 256.0;
    const TURN_UNIT: f64 = 1.0 / 16_384.0;

    /// `speed` in metres per second and `turn_speed` in turns per second, each put on its grid.
    ///
    /// # Errors
    /// When one is out of its range or not a number.
    pub fn new(speed: f64, turn_speed: f64) -> Result<Self, ParamsError> {
        if !(0.0..=Self::MAX_SPEED).contains(&speed) {
            return Err(ParamsError::Speed { got: speed });
        }
        if !(0.0..=Self::MAX_TURN_SPEED).contains(&turn_speed) {
            return Err(ParamsError::TurnSpeed { got: turn_speed });
        }
        Ok(Self {
            speed: libm::round(speed / Self::SPEED_UNIT) as u16,
            turn_speed: libm::round(turn_speed / Self::TURN_UNIT) as u16,
        })
    }

    /// What is on the wire: speed in 1/256 m/s, turn speed in 1/16384 turn per second.
    pub const fn units(self) -> (u16, u16) {
        (self.speed, self.turn_speed)
    }

    /// From the wire.
    ///
    /// # Errors
    /// When one is out of its range.
    pub fn from_units((speed, turn_speed): (u16, u16)) -> Result<Self, ParamsError> {
        Self::new(f64::from(speed) * Self::SPEED_UNIT, f64::from(turn_speed) * Self::TURN_UNIT)
    }

    /// Top speed, metres per second.
    #[inline]
    pub fn speed(self) -> f64 {
        f64::from(self.speed) * Self::SPEED_UNIT
    }

    /// Top turn speed, turns per second.
    #[inline]
    pub fn turn_speed(self) -> f64 {
        f64::from(self.turn_speed) * Self::TURN_UNIT
    }
}

/// A tank, as the rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Tank::new(0.0, 0.0, 0.0))]
pub struct Tank {
    /// Metres east. The grid is below a millimetre: far below a pixel.
    #[grid(1/1024, -512..=511)]
    pub x: f64,
    /// Metres north.
    #[grid(1/1024, -512..=511)]
    pub y: f64,
    /// Turns to the left of east; in [0, 1) once settled. The grid is 0.0055 degrees: 5 mm at 50 m.
    #[turns(1/65536)]
    pub heading: f64,
    /// How it moves.
    pub params: MoveParams,
    /// Hit points. At zero it is a wreck, and does not move.
    #[range(0..=100)]
    pub hp: u8,
    /// The presses of the rocket button that it has answered.
    #[presses]
    pub presses: u8,
    /// Until it can launch another rocket, microseconds.
    #[micros(0..=1_500_000)]
    pub reload: u32,
}

/// What is drawn of a tank.
#[derive(Clone, Copy, Debug, PartialEq, Pose)]
pub struct TankPose {
    /// Metres east.
    #[x]
    pub x: f64,
    /// Metres north.
    #[y]
    pub y: f64,
    /// Turns to the left of east.
    #[turns]
    pub heading: f64,
}

impl Tank {
    /// Grid of positions, metres.
    pub const GRID: f64 = 1.0 / 1024.0;
    /// Grid of headings, turns.
    pub const HEADING_GRID: f64 = 1.0 / 65_536.0;
    /// Hit points of a fresh tank.
    pub const MAX_HP: u8 = 100;

    /// A fresh tank.
    pub fn new(x: f64, y: f64, heading: f64) -> Self {
        Self { x, y, heading, params: MoveParams::default(), hp: Self::MAX_HP, presses: 0, reload: 0 }
    }

    /// Whether it can move.
    pub fn is_alive(&self) -> bool {
        self.hp > 0
    }

    /// What is drawn of it.
    pub fn pose(&self) -> TankPose {
        TankPose { x: self.x, y: self.y, heading: self.heading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::f64::consts::TAU;
    use halftrack::wire::BitWriter;
    use proptest::prelude::*;

    fn settle(tank: &Tank) -> Tank {
        let mut settled = *tank;
        settled.settle();
        settled
    }

    #[test]
    fn params_hold_just_inside_and_not_just_outside() {
        assert_eq!(MoveParams::new(8.0, 0.3125), Ok(MoveParams::default()));
        let params = MoveParams::new(17.3, 1.1).unwrap();
        assert_eq!(MoveParams::from_units(params.units()), Ok(params));
        assert!(MoveParams::new(30.0, 2.0).is_ok() && MoveParams::new(0.0, 0.0).is_ok());
        for speed in [30.001, -0.001, f64::NAN, f64::INFINITY] {
            assert!(matches!(MoveParams::new(speed, 0.1), Err(ParamsError::Speed { .. })));
        }
        for turn in [2.001, -0.001, f64::NAN] {
            assert!(matches!(MoveParams::new(8.0, turn), Err(ParamsError::TurnSpeed { .. })));
        }
    }

    #[test]
    fn settling_leaves_no_negative_zero_and_no_whole_turn() {
        let tank = settle(&Tank::new(-0.0001, -0.0, 0.999_999));
        assert_eq!([tank.x, tank.y, tank.heading].map(f64::to_bits), [0.0f64.to_bits(); 3]);
        assert_eq!(settle(&Tank::new(0.0, 0.0, -0.25)).heading, 0.75);
        assert_eq!(settle(&Tank::new(f64::NAN, 0.0, f64::NAN)).x, -512.0, "the start of the range");
    }

    #[test]
    fn differences_take_the_shorter_way_round() {
        let at = |heading| TankPose { x: 1.0, y: 2.0, heading };
        let offset = at(0.05).offset_from(&at(0.95));
        assert!((offset.rotation[2] - 0.1 * TAU).abs() < 1e-12);
        assert!((at(0.95).displaced(&offset).heading - 1.05).abs() < 1e-12);
        assert!(at(0.4).offset_from(&at(0.9)).angle() <= TAU / 2.0 + 1e-12);
    }

    #[test]
    fn every_field_counts_in_the_digest() {
        let tank = Tank::new(1.0, 2.0, 0.5);
        let others = [
            Tank { x: 1.5, ..tank },
            Tank { y: 2.5, ..tank },
            Tank { heading: 0.25, ..tank },
            Tank { params: MoveParams::new(9.0, 0.3125).unwrap(), ..tank },
            Tank { params: MoveParams::new(8.0, 0.5).unwrap(), ..tank },
            Tank { hp: 99, ..tank },
            Tank { presses: 1, ..tank },
            Tank { reload: 1, ..tank },
        ];
        for other in others {
            assert_ne!(other.digest(), tank.digest());
        }
    }

    fn cost(tank: &Tank, baseline: &Tank) -> usize {
        let mut bits = BitWriter::new(&mut []);
        tank.write(baseline, &mut bits);
        bits.len_bits()
    }

    #[test]
    fn a_pushed_tank_costs_four_bytes_and_a_fresh_one_nine() {
        let baseline = Tank::new(5.0, 5.0, 0.25);
        assert_eq!(cost(&Tank { x: 5.5, y: 4.5, ..baseline }, &baseline).div_ceil(8), 4);
        assert_eq!(cost(&Tank::new(-400.0, 300.0, 0.5), &Tank::blank()).div_ceil(8), 9);
    }

    proptest! {
        #[test]
        fn settling_is_idempotent_and_near(x in -500.0f64..500.0, y in -500.0f64..500.0, heading in -3.0f64..3.0) {
            let tank = Tank::new(x, y, heading);
            let settled = settle(&tank);
            prop_assert_eq!(settle(&settled).digest(), settled.digest());
            prop_assert!((settled.x - x).abs() <= Tank::GRID / 2.0);
            prop_assert!((0.0..1.0).contains(&settled.heading));
            prop_assert!(settled.pose().offset_from(&tank.pose()).angle() <= TAU * Tank::HEADING_GRID / 2.0 + 1e-12);
        }
    }
}
