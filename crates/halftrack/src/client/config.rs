//! The config of a client.

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;

use super::group::GroupConfig;
use crate::cadence::Cadence;
use crate::clock::LeadConfig;
use crate::game::Game;
use crate::id::PlayerName;
use crate::interpolate::DelayConfig;
use crate::lane::DeliveryPolicy;
use crate::predict::PredictConfig;
use crate::present::CorrectionConfig;
use crate::session::SessionConfig;
use crate::shared::shared_hash;

/// The config of a [`crate::client::Client`].
#[derive_where(Clone, Debug)]
pub struct ClientConfig<G: Game> {
    /// The rules, built like the server's: a hash of them is part of the login.
    #[derive_where(skip(Debug))]
    pub rules: Arc<G>,
    /// Getting in, staying in, coming back. [`Self::new`] sets its `shared`.
    pub session: SessionConfig,
    /// Prediction; the cadence is the server's.
    pub predict: PredictConfig,
    /// Which bodies are predicted together with the player's own ones, and how many.
    pub group: GroupConfig,
    /// How corrections are shown. Default `None`: each body's follows from [`crate::Game::limits`].
    pub correction: Option<CorrectionConfig>,
    /// How far ahead to run.
    pub lead: LeadConfig,
    /// How far behind other players are drawn.
    pub delay: DelayConfig,
    /// Which lane each kind of message takes.
    pub policy: DeliveryPolicy,
    /// The delay after which an open tick with a change is sent again. Default 15 ms, from 10 to 20: a sooner copy would be
    /// lost with the first, a later one would be late.
    pub repeat: Duration,
}

impl<G: Game> ClientConfig<G> {
    /// The defaults, for a player of this name on a server of this cadence.
    pub fn new(name: PlayerName, cadence: Cadence, rules: Arc<G>) -> Self {
        Self {
            session: SessionConfig::new(name, shared_hash(&*rules, cadence)),
            rules,
            predict: PredictConfig { cadence, ..PredictConfig::default() },
            group: GroupConfig::default(),
            correction: None,
            lead: LeadConfig::default(),
            delay: DelayConfig::default(),
            policy: DeliveryPolicy::default(),
            repeat: Duration::from_millis(15),
        }
    }
}
