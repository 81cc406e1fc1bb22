//! A network in virtual time: links that delay, lose, reorder and duplicate by seed.
//!
//! Sans-IO: bytes and time come in as arguments, what has arrived goes out through `poll`. Same config, seed and
//! calls, same bytes out, on every platform. Knows nothing of what the bytes mean, nor of clocks, sockets or threads.
//!
//! A link is one direction between two ends. [`DatagramLink`] is for the sync lane, [`StreamLink`] for the reliable one.
//!
//! | module | what it is |
//! |---|---|
//! | `config` | what a link does to its traffic, and what cannot be asked of it |
//! | `datagram` | datagrams that may be lost, late, twice or out of order |
//! | `stream` | ordered bytes that are only ever late |
//! | `path` | what both share: the dice, the loss chain, the rate and the moment |
//! | `flight` | datagrams under way, by arrival, within bounds |
//! | `bottleneck` | a rate, and the queue in front of it |
//! | `delay` | how long one datagram takes, and how long the mean one does |
//! | `loss` | a two-state chain: how much is lost, in bursts of what length |
//! | `random` | a small generator, the same everywhere |
//! | `stats` | counters |
//! | `error` | what is refused, and what to do instead |
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod bottleneck;
mod config;
mod datagram;
mod delay;
mod error;
mod flight;
mod loss;
mod path;
mod random;
mod stats;
mod stream;

pub use config::LinkConfig;
pub use datagram::DatagramLink;
pub use error::NetemError;
pub use path::Passage;
pub use stats::LinkStats;
pub use stream::StreamLink;
