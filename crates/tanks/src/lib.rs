//! The reference game: what a tank does with its input, what stands in its way, and what shots do.
//!
//! One pure step for server, prediction and replay; combat is the server's alone. Knows nothing of networks, screens
//! or clocks.
//!
//! | module | what it is |
//! |---|---|
//! | `input` | turn, throttle and presses, quantised before anything predicts with them |
//! | `body` | a tank, its movement parameters, and the grid of the wire |
//! | `entity` | every kind of body: tanks, rockets, crates, platforms |
//! | `platform` | a ferry on a timetable, and the lanes for it in an arena |
//! | `arena` | walls and obstacles, and which of them are near |
//! | `collide` | a hull swept along them |
//! | `rules` | all of it as a [`halftrack::Game`] |
//! | `setup` | the rules as bytes, for reports of a flight recorder |
//! | `message` | what is said about combat: the order to shoot, and what the server tells |
//! | `ray` | how far a shot goes before a wall or a hull |
//! | `world` | the authority's side: where tanks come in, what shots do, who dies and who comes back |
//! | `vitals` | the client's side: hit points, life, kills and deaths, from states and events |
//! | `recording` | a recorded match: how its world was made, and who did what in it |
//! | [`golden`] | a long brawl in one number, for every platform to reproduce |
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod arena;
mod body;
mod collide;
mod entity;
mod fighter;
pub mod golden;
mod input;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod instances;
mod message;
mod platform;
mod ray;
mod recording;
mod rules;
mod setup;
mod vitals;
mod world;

pub use arena::{Arena, ArenaError, Obstacle};
pub use body::{MoveParams, ParamsError, Tank, TankPose};
pub use collide::HULL_RADIUS;
pub use entity::{Crate, Entity, Rocket};
pub use fighter::Fighter;
pub use input::{Axis, NotFinite, TankInput};
pub use message::{CombatEvent, Phase, Reach, Rejection, Seen, ShootInput};
pub use platform::Platform;
pub use ray::Ray;
pub use recording::{About, MatchRefused, Score, Scores, TankPlayback, open_recording};
pub use rules::{Hull, Tanks};
pub use setup::SetupRefused;
pub use vitals::{RoundState, Vital, Vitals};
pub use world::{RoundConfig, TankCommand, TankWorld, TankWorldConfig, WorldError};
