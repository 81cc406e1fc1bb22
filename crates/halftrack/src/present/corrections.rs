//! The correction config of each body, from the limits that the rules give it.

use std::sync::Arc;

use derive_where::derive_where;

use super::CorrectionConfig;
use crate::cadence::Cadence;
use crate::error::ConfigError;
use crate::game::{Game, MotionLimits};
use crate::model::Body;

/// Gives each body its correction config: a rocket's speed must not loosen a tank's snap threshold.
#[derive_where(Clone, Debug)]
pub(crate) struct Corrections<G: Game> {
    #[derive_where(skip(Debug))]
    rules: Arc<G>,
    cadence: Cadence,
    /// The host's choice, for all bodies.
    chosen: Option<CorrectionConfig>,
    /// Limits and config of the blank body: most bodies have the same, and need no check.
    blank: (MotionLimits, CorrectionConfig),
}

impl<G: Game> Corrections<G> {
    /// Without a `chosen` config, configs follow from [`Game::limits`].
    ///
    /// # Errors
    /// When `chosen`, or the limits of the blank body, are out of range.
    pub(crate) fn new(
        rules: Arc<G>,
        cadence: Cadence,
        chosen: Option<CorrectionConfig>,
    ) -> Result<Self, ConfigError> {
        let limits = rules.limits(&G::Body::blank());
        let config = chosen.unwrap_or_else(|| Self::derive(&rules, cadence, limits));
        config.check()?;
        Ok(Self { rules, cadence, chosen, blank: (limits, config) })
    }

    fn derive(rules: &G, cadence: Cadence, limits: MotionLimits) -> CorrectionConfig {
        CorrectionConfig::for_motion(limits, rules.max_hold(), cadence)
    }

    /// The limits of `body`.
    pub(crate) fn limits(&self, body: &G::Body) -> MotionLimits {
        self.rules.limits(body)
    }

    /// The config of `body`. One with limits out of range has the blank body's.
    pub(crate) fn of(&self, body: &G::Body) -> CorrectionConfig {
        let (limits, config) = self.blank;
        if self.chosen.is_some() {
            return config;
        }
        let own = self.rules.limits(body);
        if own == limits {
            return config;
        }
        let derived = Self::derive(&self.rules, self.cadence, own);
        if derived.check().is_ok() { derived } else { config }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody};

    #[test]
    fn a_faster_body_has_wider_thresholds_and_an_impossible_one_those_of_the_blank_body() {
        let corrections = Corrections::new(Arc::new(Cart), Cadence::default(), None).unwrap();
        let of = |speed| corrections.of(&CartBody { speed, ..CartBody::at(0.0) });
        assert!((of(8.0).snap_distance - 4.8).abs() < 1e-9);
        assert!((of(80.0).snap_distance - 48.0).abs() < 1e-9);
        assert!(of(0.0).snap_distance < 0.01, "a body that cannot move snaps");
        assert_eq!(of(f64::NAN), of(0.0), "as the blank body, which cannot move");
        let chosen = Corrections::new(Arc::new(Cart), Cadence::default(), Some(of(80.0))).unwrap();
        assert_eq!(chosen.of(&CartBody::at(0.0)), of(80.0));
    }
}
