//! Halftrack: netcode for authoritative action games, as a library that no engine owns.
//!
//! *Bytes, time and randomness come in as arguments; decisions go out through polls; everything between is a
//! pure function.*
//!
//! The map:
//!
//! | module | what it is |
//! |---|---|
//! | `time`, `tick`, `cadence` | whole microseconds, tick numbers, the length of a tick and the grid inside it |
//! | `game` | what a game must provide; [`cart`] is the smallest complete example |
//! | `clock` | the server's time, the lead, and prediction time as an integer function of monotonic time |
//! | `seq`, `id`, `lane` | numbers that wrap, who is who, which promise a message gets |
//! | [`wire`] | bits to types and back |
//! | [`session`] | what must outlive a connection |
//! | `input` | the input of a tick, the ticks not acknowledged, the server's queue of what has come |
//! | `replay` | the one loop that moves a body through time |
//! | [`snapshot`] | what the server tells of bodies: what the rules were told, not where they went |
//! | [`client`] | the player's side: everything here, composed |
//! | [`server`] | the authority: what a game's server adds, and the tick that everybody shares |
//! | `predict` | prediction of the controlled body on the server's cadence |
//! | `present` | what is drawn: the predicted pose plus one decaying offset |
//! | `interpolate` | other players: when they are drawn, and where |
//! | `reconcile` | the above composed: states in, predicted and visible pose out, each correction named |
//! | `parity` | a checker for a game's own rules |
//! | `shared` | a hash of what both ends must share |
//! | [`flight`], `exact` | a flight recorder of a client: all that it was told, and its state to the bit |
//! | `cause`, `error`, `stats`, `digest` | why a correction, why a refusal, how often, and a hash |
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod cadence;
pub mod cart;
mod cause;
pub mod client;
mod clock;
mod digest;
mod error;
mod exact;
pub mod flight;
mod game;
mod id;
mod input;
mod interpolate;
mod lane;
mod parity;
mod predict;
mod present;
mod reconcile;
pub mod record;
mod replay;
mod seq;
pub mod server;
pub mod session;
mod shared;
mod sizes;
pub mod snapshot;
mod stats;
mod sync_watch;
mod tick;
mod time;
pub mod wire;

pub use cadence::{Cadence, SubTick};
pub use cause::{Cause, Causes};
pub use clock::{ClockSample, LeadConfig, LeadController, PredictionClock, Rate, ServerClock};
pub use digest::Digest;
pub use error::{ConfigError, Ignored};
pub use game::{Contact, Game, Offset, Pose};
pub use id::{NameRefused, NoToken, PlayerId, PlayerName, Token};
pub use input::{
    Arrival, Change, ChangeRefused, Fate, InputQueue, InputQueueConfig, InputStats, MAX_CHANGES, Margin,
    Origin, PendingTick, Step, TickInput,
};
pub use interpolate::{DelayConfig, Remote, RemoteConfig, RemoteStats, Remotes, RenderClock, Sampling};
pub use lane::{DeliveryPolicy, Lane, LaneRouter, Link, MessageKind, SyncLink};
pub use parity::{Disparity, ParityFrame, ParityReport, verify_parity};
pub use predict::{Authority, PredictConfig, Predictor, Rebuilt, Resync, Status};
pub use present::{CorrectionConfig, MotionLimits, Outcome, Presenter, Snap};
pub use reconcile::{Diagnosis, Reconciler};
pub use replay::Replay;
pub use seq::{Seq, StaleFilter};
pub use shared::shared_hash;
pub use sizes::{CauseSizes, CorrectionSizes, SizeCounts};
pub use stats::{ByCause, CorrectionStats, PredictStats};
pub use tick::{Epoch, Tick};
pub use time::{ServerTime, Timestamp};
