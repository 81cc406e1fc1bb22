//! The config of a client as a report keeps it: without credentials, token and rules.

use core::time::Duration;
use std::sync::Arc;

use halftrack::client::{ClientConfig, GroupConfig};
use halftrack::session::SessionConfig;
use halftrack::{
    Body, CorrectionConfig, DelayConfig, DeliveryPolicy, Digest, Game, Input, LeadConfig, PlayerName,
    PredictConfig, Token, shared_hash,
};
use serde::{Deserialize, Serialize};

use crate::bounded::{Bounded, ReadError};
use crate::write::append;

/// Hashes are arrays: as numbers they would be out of bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Preface {
    /// The rules, and the layout of their inputs and bodies.
    rules: [u8; 8],
    shared: [u8; 8],
    name: PlayerName,
    heartbeat: Duration,
    silence: Duration,
    login: Duration,
    grace: Duration,
    first_pause: Duration,
    max_pause: Duration,
    max_log_messages: usize,
    max_log_bytes: usize,
    /// Whether it began with a saved token. The token itself is a secret: its holder could play on.
    resumes: bool,
    predict: PredictConfig,
    correction: Option<CorrectionConfig>,
    lead: LeadConfig,
    delay: DelayConfig,
    policy: DeliveryPolicy,
    repeat: Duration,
    group: GroupConfig,
}

impl Preface {
    pub(crate) fn of<G: Game>(config: &ClientConfig<G>) -> Self {
        // Every field is named, so that a new one does not compile until it is decided whether to keep it.
        let ClientConfig { rules, session, predict, correction, lead, delay, policy, repeat, group } = config;
        let SessionConfig {
            name,
            credentials: _,
            resume,
            shared,
            heartbeat,
            silence,
            login,
            grace,
            first_pause,
            max_pause,
            max_log_messages,
            max_log_bytes,
        } = session;
        Self {
            rules: fingerprint(&**rules, predict),
            shared: shared.to_le_bytes(),
            name: name.clone(),
            heartbeat: *heartbeat,
            silence: *silence,
            login: *login,
            grace: *grace,
            first_pause: *first_pause,
            max_pause: *max_pause,
            max_log_messages: *max_log_messages,
            max_log_bytes: *max_log_bytes,
            resumes: resume.is_some(),
            predict: *predict,
            correction: *correction,
            lead: *lead,
            delay: *delay,
            policy: *policy,
            repeat: *repeat,
            group: *group,
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = append(self, &mut bytes);
        debug_assert!(written, "a config is plain numbers and a name");
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut from = Bounded::new(bytes);
        let preface = from.value()?;
        from.finish()?;
        Ok(preface)
    }

    /// Whether a client with these rules was recorded.
    pub(crate) fn is_of<G: Game>(&self, rules: &G) -> bool {
        self.rules == fingerprint(rules, &self.predict)
    }

    pub(crate) fn config<G: Game>(self, rules: Arc<G>) -> ClientConfig<G> {
        ClientConfig {
            rules,
            session: SessionConfig {
                name: self.name,
                credentials: None,
                resume: self.resumes.then(|| Token::new([0; 16])),
                shared: u64::from_le_bytes(self.shared),
                heartbeat: self.heartbeat,
                silence: self.silence,
                login: self.login,
                grace: self.grace,
                first_pause: self.first_pause,
                max_pause: self.max_pause,
                max_log_messages: self.max_log_messages,
                max_log_bytes: self.max_log_bytes,
            },
            predict: self.predict,
            correction: self.correction,
            lead: self.lead,
            delay: self.delay,
            policy: self.policy,
            repeat: self.repeat,
            group: self.group,
        }
    }
}

fn fingerprint<G: Game>(rules: &G, predict: &PredictConfig) -> [u8; 8] {
    let shared = shared_hash(rules, predict.cadence);
    let hash = Digest::new().word(shared).word(<G::Input as Input>::SCHEMA).word(<G::Body as Body>::SCHEMA);
    hash.finish().to_le_bytes()
}
