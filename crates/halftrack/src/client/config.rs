//! What a client is built from.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::clock::LeadConfig;
use crate::id::PlayerName;
use crate::interpolate::DelayConfig;
use crate::lane::DeliveryPolicy;
use crate::predict::PredictConfig;
use crate::present::{CorrectionConfig, MotionLimits};
use crate::session::SessionConfig;
use crate::shared::shared_hash;
use crate::snapshot::BodyCode;

/// What a [`crate::client::Client`] is built from.
#[derive(Clone, Debug)]
pub struct ClientConfig<G: BodyCode> {
    /// The world without bodies, the same as the server's: a hash of it is part of the login.
    pub alone: G::Surroundings,
    /// Getting in, staying in, coming back. Its `shared` is set by [`Self::new`].
    pub session: SessionConfig,
    /// Prediction; the cadence is the server's.
    pub predict: PredictConfig,
    /// What is shown of a correction.
    pub correction: CorrectionConfig,
    /// How far ahead to run.
    pub lead: LeadConfig,
    /// How far behind other players are drawn.
    pub delay: DelayConfig,
    /// Which lane each kind of message takes.
    pub policy: DeliveryPolicy,
    /// After so long an open tick that was sent for a change is sent again: the change is what is worth repeating.
    /// Default 15 ms, from 10 to 20: sooner it would share the fate of the first, later it would be late.
    pub repeat: Duration,
}

impl<G: BodyCode> ClientConfig<G> {
    /// The defaults, for a player of this name in a world that is `alone` without bodies; `limits` are what a body can
    /// do, for the size and speed of corrections.
    pub fn new(name: PlayerName, cadence: Cadence, alone: G::Surroundings, limits: MotionLimits) -> Self {
        Self {
            session: SessionConfig::new(name, shared_hash::<G>(cadence, &alone)),
            alone,
            predict: PredictConfig { cadence, ..PredictConfig::default() },
            correction: CorrectionConfig::for_motion(limits, cadence),
            lead: LeadConfig::default(),
            delay: DelayConfig::default(),
            policy: DeliveryPolicy::default(),
            repeat: Duration::from_millis(15),
        }
    }
}
