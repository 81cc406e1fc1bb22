//! Whose time it is. Three things, kept apart:
//!
//! - [`ServerClock`]: what the server's clock shows, from round trips;
//! - [`LeadController`]: how far ahead of it prediction should run, from how early the server says input came;
//! - [`PredictionClock`]: the time that prediction knows, slewed from where it is to where those two want it.
//!
//! None of them knows sessions: a heartbeat and a snapshot feed them alike.

mod lead;
mod prediction;
mod server;

pub use lead::{LeadConfig, LeadController};
pub use prediction::{PredictionClock, Rate};
pub use server::{ClockSample, ServerClock};
