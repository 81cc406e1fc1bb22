//! Whose time it is. Three things, kept apart:
//!
//! - [`ServerClock`]: what the server's clock shows, from round trips;
//! - [`LeadController`]: how far ahead of it prediction should run, from how early the server says input came;
//! - [`PredictionClock`]: the time that prediction knows, slewed from where it is to where those two want it.
//!
//! Two rules are shared by whatever waits for datagrams: how long to wait (`cost`) and how to get there (`steer`). Input
//! that leaves only with frames has one more (`lattice`).
//!
//! None of them knows sessions: a heartbeat and a snapshot feed them alike.

mod cost;
mod lattice;
mod lead;
mod prediction;
mod server;
mod steer;

pub(crate) use cost::{Delivery, LeastCost, signed_micros};
pub use lead::{LeadConfig, LeadController};
pub use prediction::{PredictionClock, Rate};
pub use server::{ClockSample, ServerClock};
pub(crate) use steer::{Steering, Urgency};
