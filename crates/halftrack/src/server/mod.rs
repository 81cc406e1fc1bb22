//! The authority: it simulates every tick exactly once, from what each player sent in time, and tells everybody.

mod world;

pub use world::{Audience, Body, Events, Order, Room, World};
