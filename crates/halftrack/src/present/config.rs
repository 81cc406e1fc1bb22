//! The numbers of the correction contract, and the check that they can be kept.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::error::ConfigError;
use crate::game::MotionLimits;

/// How the visible pose follows a corrected prediction.
///
/// Built for a body by [`CorrectionConfig::for_motion`], from what it can do; change single fields after that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrectionConfig {
    /// A position further off than this snaps. Metres. Too small: every late input is a jump. Too large: the
    /// tank is seen gliding through walls.
    pub snap_distance: f64,
    /// A rotation further off than this snaps. Radians, at most pi.
    pub snap_angle: f64,
    /// The fastest that a position is corrected, on top of the body's own motion. Metres per second.
    pub cap_speed: f64,
    /// The fastest that a rotation is corrected. Radians per second.
    pub cap_turn: f64,
    /// How long a correction may take. 400 ms: a player who is attending to something else does not notice.
    pub budget: Duration,
    /// How long the largest correction that is not snapped may take.
    pub max_budget: Duration,
    /// An episode of corrections that states keep from converging for longer than this snaps. In budgets of its largest
    /// residual, which is at least [`Self::budget`]. Default 2: one budget is what a single correction takes. From 1, at which
    /// two corrections in a row may snap, to 100, at which the visible pose may be wrong for a minute.
    pub escalate_after: f64,
    /// Time constant of the smallest offsets. 150 ms: slow enough to be smooth.
    pub slow_tau: Duration,
    /// Time constant of offsets near the snap threshold. 75 ms: being wrong by metres is worse than being quick.
    pub fast_tau: Duration,
    /// Positions off by no more than this are not eased but taken at once. Metres; at most one grid unit.
    pub deadband_distance: f64,
    /// Rotations off by no more than this are taken at once. Radians.
    pub deadband_angle: f64,
    /// The fastest that the body itself moves. A faster change of the predicted pose is eased like a
    /// correction. Metres per second.
    pub top_speed: f64,
    /// The fastest that the body itself turns. Radians per second.
    pub top_turn: f64,
}

impl CorrectionConfig {
    /// The part of the cap that a budget is laid out for; the rest is room for the landing.
    const PLANNED: f64 = 0.8;

    /// The config of a body that moves within `limits`.
    ///
    /// The worst that missing input can do is to hold full reverse where full ahead was meant, for the hold
    /// plus the tick it began in: `2 * top speed * (max_hold + C)`. That is eased; beyond it something else has
    /// happened, and it snaps. Correcting is at most as fast as the body itself.
    pub fn for_motion(limits: MotionLimits, max_hold: Duration, cadence: Cadence) -> Self {
        let span = (max_hold + cadence.interval()).as_secs_f64();
        // A body that cannot move by itself is corrected by a grid unit in an eighth of a second.
        let at_least = |top: f64, least: f64| if top < least { least } else { top };
        let top_speed = at_least(limits.top_speed, 8.0 * limits.grid_distance);
        let top_turn = at_least(limits.top_turn, 8.0 * limits.grid_angle);
        let snap_distance = 2.0 * top_speed * span;
        let snap_angle = (2.0 * top_turn * span).min(core::f64::consts::PI);
        let budget = Duration::from_millis(400);
        // The cap is the top speed, so both parts take at most this long.
        let longest = Duration::from_secs_f64(2.0 * span / Self::PLANNED) + Duration::from_millis(1);
        Self {
            snap_distance,
            snap_angle,
            cap_speed: top_speed,
            cap_turn: top_turn,
            budget,
            max_budget: longest.max(budget),
            escalate_after: 2.0,
            slow_tau: Duration::from_millis(150),
            fast_tau: Duration::from_millis(75),
            deadband_distance: limits.grid_distance,
            deadband_angle: limits.grid_angle,
            top_speed,
            top_turn,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            ("snap_distance", self.snap_distance),
            ("snap_angle", self.snap_angle),
            ("cap_speed", self.cap_speed),
            ("cap_turn", self.cap_turn),
            ("top_speed", self.top_speed),
            ("top_turn", self.top_turn),
        ];
        for (field, got) in positive {
            number(field, got, got > 0.0, "greater than zero")?;
        }
        number("snap_angle", self.snap_angle, self.snap_angle <= core::f64::consts::PI, "at most pi")?;
        let escalates = (1.0..=100.0).contains(&self.escalate_after);
        number("escalate_after", self.escalate_after, escalates, "from 1 to 100 budgets")?;
        let bands = [
            ("deadband_distance", self.deadband_distance, self.snap_distance),
            ("deadband_angle", self.deadband_angle, self.snap_angle),
        ];
        for (field, got, snap) in bands {
            number(field, got, (0.0..snap).contains(&got), "from zero to below the snap threshold")?;
        }
        time("fast_tau", self.fast_tau, !self.fast_tau.is_zero(), "greater than zero")?;
        time("slow_tau", self.slow_tau, self.slow_tau >= self.fast_tau, "at least fast_tau")?;
        time("budget", self.budget, self.budget >= self.slow_tau, "at least slow_tau")?;
        time("max_budget", self.max_budget, self.max_budget >= self.budget, "at least budget")?;
        let reaches =
            [("position", self.snap_distance, self.cap_speed), ("rotation", self.snap_angle, self.cap_turn)];
        for (part, snap, cap) in reaches {
            // spec: CORR-02
            let reach = Self::PLANNED * cap * self.max_budget.as_secs_f64();
            if reach < snap {
                return Err(ConfigError::CorrectionOutOfReach { part, snap, reach });
            }
        }
        Ok(())
    }

    /// How long an offset of this size may take.
    pub(crate) fn budget_for(&self, distance: f64, angle: f64) -> Duration {
        let seconds = (distance / self.cap_speed).max(angle / self.cap_turn) / Self::PLANNED;
        Duration::from_secs_f64(seconds.min(self.max_budget.as_secs_f64())).max(self.budget)
    }

    /// The time constant of an offset that is `ratio` of its snap threshold.
    pub(crate) fn tau_for(&self, ratio: f64) -> Duration {
        self.slow_tau - (self.slow_tau - self.fast_tau).mul_f64(ratio.clamp(0.0, 1.0))
    }
}

fn number(field: &'static str, got: f64, holds: bool, wanted: &'static str) -> Result<(), ConfigError> {
    let good = got.is_finite() && holds;
    if good { Ok(()) } else { Err(ConfigError::CorrectionNumber { field, got, wanted }) }
}

fn time(field: &'static str, got: Duration, holds: bool, wanted: &'static str) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError::CorrectionTime { field, got, wanted }) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn config() -> CorrectionConfig {
        let limits = MotionLimits {
            top_speed: 8.0,
            top_turn: 2.0,
            grid_distance: 1.0 / 1024.0,
            grid_angle: core::f64::consts::TAU / 65536.0,
        };
        CorrectionConfig::for_motion(limits, Duration::from_millis(250), Cadence::default())
    }

    #[test]
    fn what_is_derived_holds_at_every_cadence_and_speed() {
        for millis in [5, 16, 50, 200] {
            for speed in [0.1, 8.0, 300.0] {
                let limits = MotionLimits {
                    top_speed: speed,
                    top_turn: speed / 3.0,
                    grid_distance: 1.0 / 1024.0,
                    grid_angle: 1e-4,
                };
                let cadence = Cadence::new(Duration::from_millis(millis)).unwrap();
                assert_eq!(
                    CorrectionConfig::for_motion(limits, Duration::from_millis(250), cadence).check(),
                    Ok(())
                );
            }
        }
        assert!((config().snap_distance - 4.8).abs() < 1e-9);
    }

    #[test]
    fn corr_02_a_cap_that_cannot_cover_the_snap_threshold_is_refused() {
        let good = CorrectionConfig { max_budget: Duration::from_millis(750), ..config() };
        assert_eq!(good.check(), Ok(()), "0.8 * 8 m/s * 750 ms are 4.8 m");
        let short = CorrectionConfig { max_budget: Duration::from_millis(749), ..config() };
        assert!(matches!(short.check(), Err(ConfigError::CorrectionOutOfReach { part: "position", .. })));
        let slow = CorrectionConfig { cap_turn: 1.9, ..good };
        assert!(matches!(slow.check(), Err(ConfigError::CorrectionOutOfReach { part: "rotation", .. })));
    }

    #[test]
    fn every_number_is_checked() {
        type Set = fn(&mut CorrectionConfig, f64);
        let broken: [(&str, Set); 9] = [
            ("escalate_after", |config, bad| config.escalate_after = bad),
            ("snap_distance", |config, bad| config.snap_distance = bad),
            ("snap_angle", |config, bad| config.snap_angle = bad),
            ("cap_speed", |config, bad| config.cap_speed = bad),
            ("cap_turn", |config, bad| config.cap_turn = bad),
            ("deadband_distance", |config, bad| config.deadband_distance = bad),
            ("deadband_angle", |config, bad| config.deadband_angle = bad),
            ("top_speed", |config, bad| config.top_speed = bad),
            ("top_turn", |config, bad| config.top_turn = bad),
        ];
        for (name, set) in broken {
            for bad in [f64::NAN, f64::INFINITY, -1.0] {
                let mut config = config();
                set(&mut config, bad);
                match config.check() {
                    Err(ConfigError::CorrectionNumber { field, .. }) => assert_eq!(field, name),
                    other => panic!("{name} = {bad}: {other:?}"),
                }
            }
            if !name.starts_with("deadband") {
                let mut config = config();
                set(&mut config, 0.0);
                assert!(config.check().is_err(), "{name} = 0");
            }
        }
        for (budgets, holds) in [(0.999, false), (1.0, true), (100.0, true), (100.1, false)] {
            let config = CorrectionConfig { escalate_after: budgets, ..config() };
            assert_eq!(config.check().is_ok(), holds, "{budgets} budgets");
        }
        let half_turn = CorrectionConfig { snap_angle: core::f64::consts::PI, cap_turn: 9.0, ..config() };
        assert_eq!(half_turn.check(), Ok(()));
        assert!(CorrectionConfig { snap_angle: 3.15, ..half_turn }.check().is_err());
        let exact = CorrectionConfig { deadband_distance: 0.0, deadband_angle: 0.0, ..config() };
        assert_eq!(exact.check(), Ok(()));
        assert!(CorrectionConfig { deadband_distance: 4.8, ..config() }.check().is_err());
    }

    #[test]
    fn every_time_is_in_order() {
        let ms = Duration::from_millis;
        let cases = [
            ("fast_tau", CorrectionConfig { fast_tau: ms(0), ..config() }),
            ("slow_tau", CorrectionConfig { slow_tau: ms(74), ..config() }),
            ("budget", CorrectionConfig { budget: ms(149), ..config() }),
            ("max_budget", CorrectionConfig { max_budget: ms(399), ..config() }),
        ];
        for (name, config) in cases {
            match config.check() {
                Err(ConfigError::CorrectionTime { field, .. }) => assert_eq!(field, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        let tight = CorrectionConfig { slow_tau: ms(75), budget: ms(75), ..config() };
        assert_eq!(tight.check(), Ok(()));
    }

    #[test]
    fn budgets_grow_with_the_offset_and_time_constants_shrink() {
        let config = config();
        assert_eq!(config.budget_for(0.1, 0.0), config.budget);
        assert_eq!(config.budget_for(3.2, 0.0).as_millis(), 500);
        assert_eq!(config.budget_for(0.0, 0.8).as_millis(), 500);
        assert_eq!(config.budget_for(1e9, 0.0), config.max_budget);
        assert_eq!(config.tau_for(0.0), config.slow_tau);
        assert_eq!(config.tau_for(1.0), config.fast_tau);
        assert_eq!(config.tau_for(0.5).as_micros(), 112_500);
    }
}
