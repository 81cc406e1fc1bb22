//! What the server says of the controlled body, and what accepting it did. Data only.

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cause::Causes;
use crate::game::{Game, Neighbour};
use crate::tick::{Epoch, Tick};

/// An authoritative state of the controlled body: how it was *after* `tick`, which it thereby acknowledges.
#[derive_where(Debug, PartialEq)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Authority<G: Game> {
    /// The stretch of server time it belongs to.
    pub epoch: Epoch,
    /// The newest tick the server has simulated.
    pub tick: Tick,
    /// The body after it, settled.
    pub body: G::Body,
    /// The other bodies that it could touch before the prediction window ends, as they were after that tick.
    pub neighbours: Vec<Neighbour<G>>,
    /// What the server did to this player since the state accepted before this one.
    pub causes: Causes,
}

impl<G: Game> Clone for Authority<G> {
    fn clone(&self) -> Self {
        let Self { epoch, tick, body, ref neighbours, causes } = *self;
        Self { epoch, tick, body, neighbours: neighbours.clone(), causes }
    }

    /// Reuses the memory of `neighbours`, and reserves as much as `source` has: it knows how many there can be.
    fn clone_from(&mut self, source: &Self) {
        let Self { epoch, tick, body, ref neighbours, causes } = *source;
        self.neighbours.clear();
        self.neighbours.reserve(neighbours.capacity());
        self.neighbours.extend_from_slice(neighbours);
        (self.epoch, self.tick, self.body, self.causes) = (epoch, tick, body, causes);
    }
}

/// Whether the predictor predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It does.
    Predicting,
    /// The newest state is older than `max_pending`: the body stands until authority returns.
    Starved,
}

/// Why prediction was restarted from authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resync {
    /// The server's time broke off and began anew.
    NewEpoch,
    /// Authority was silent for longer than `max_pending`.
    Silence,
    /// The state was of the open tick or a later one: the clock was behind.
    Overtaken,
    /// The clock was wrong by more than `resync_error`.
    ClockError,
}

/// What accepting a state did.
#[derive_where(Clone, Copy, Debug, PartialEq)]
pub struct Rebuilt<G: Game> {
    /// The body predicted for this moment before.
    pub before: G::Body,
    /// The body predicted for this moment now.
    pub after: G::Body,
    /// What had been predicted of the state's own tick, if it was pending.
    pub expected: Option<G::Body>,
    /// Everything that may have made them differ.
    pub causes: Causes,
    /// Ticks replayed, the open one included.
    pub replayed_ticks: u32,
    /// Whether prediction was restarted.
    pub resync: Option<Resync>,
}
