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
//! | [`model`] | inputs, bodies and poses, and the derives that write them from their fields |
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
//! | [`check`] | [`check_game`]: plays a game's rules and names the first mistake in them |
//! | `shared` | a hash of what both ends must share |
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

// The derives name this crate by its name, also when it is compiled itself.
extern crate self as halftrack;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod cadence;
pub mod cart;
mod cause;
pub mod check;
pub mod client;
mod clock;
mod digest;
mod error;
mod game;
mod id;
mod input;
#[cfg(all(debug_assertions, not(test)))]
#[doc(hidden)]
pub mod instances;
mod interpolate;
mod kind;
mod lane;
pub mod model;
mod predict;
mod present;
mod reconcile;
pub mod record;
mod replay;
mod saved;
mod seq;
pub mod server;
pub mod session;
mod shared;
mod simulate;
mod sizes;
pub mod snapshot;
mod stats;
mod sync_watch;
mod tick;
mod time;
pub mod wire;
mod world;

pub use cadence::{Cadence, SubTick};
pub use cause::{Cause, Causes};
pub use check::{CheckPlan, CheckReport, GameMistake, check_game};
pub use clock::{ClockSample, LeadConfig, LeadController, PredictionClock, Rate, ServerClock};
pub use digest::Digest;
pub use error::{ConfigError, Ignored};
pub use game::{Contact, Game, MotionLimits, Neighbour, Reach, Step, Touched};
pub use halftrack_derive::{Body, Input, Pose};
pub use id::{BodyId, Driver, NameRefused, NoToken, PlayerId, PlayerName, Token};
pub use input::{
    Arrival, Change, ChangeRefused, Completeness, Fate, Hold, InputQueue, InputQueueConfig, InputStats,
    Inputs, MAX_CHANGES, Margin, MoveInput, Origin, PendingTick, TickInput, Upto,
};
pub use interpolate::{DelayConfig, Remote, RemoteConfig, RemoteStats, Remotes, RenderClock, Sampling};
pub use lane::{DeliveryPolicy, Lane, LaneRouter, Link, MessageKind, SyncLink};
pub use model::{Body, FieldError, FieldProblem, Input, Offset, Pose, Pose2, Pose3, Settling};
pub use predict::{Actor, Authority, PredictConfig, Predictor, Rebuilt, Resync, Role, Status};
pub use present::{CorrectionConfig, Outcome, Presenter, Snap};
pub use reconcile::{Diagnosis, Member, Reconciler};
pub use replay::Replay;
pub use saved::Unrestorable;
pub use seq::{Seq, StaleFilter};
pub use shared::shared_hash;
pub use sizes::{CauseSizes, CorrectionSizes, SizeCounts};
pub use stats::{ByCause, CorrectionStats, PredictStats};
pub use tick::{Epoch, Tick};
pub use time::{ServerTime, Timestamp};

// The derives write serde impls for crates that do not depend on serde.
#[doc(hidden)]
pub use serde;
