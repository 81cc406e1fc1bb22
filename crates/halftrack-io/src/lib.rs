//! Native links of Halftrack: the core's state machines on real networks.
//!
//! | module | what it is |
//! |---|---|
//! | `clock` | the process's monotonic clock |
//! | `room` | a room on its own thread, at its exact cadence |
//! | `rooms` | names of rooms, and who finds them |
//! | `login` | the first frame of a connection, read before a room hears of it |
//! | `door` | who may come in, how many, how fast, and how much they may say |
//! | `endpoint` | one UDP port: WebTransport for browsers, raw QUIC for native clients |
//! | `websocket` | the reliable-only link, beside a program's pages |
//! | `http` | an HTTP server for both |
//! | `socket` | the UDP socket: bounds what an unproven address is sent |
//! | `origin` | which page a browser's request comes from |
//! | `listen` | sockets for IPv4 and IPv6 |
//! | `client` | a client that runs by itself, and a handle to it |
//! | `target` | where a client connects to |
//! | `certificate` | the server's certificate, and whom a client trusts |
//! | `quic` | bytes between a QUIC connection and a pipe |
//! | `watch` | how much a QUIC peer sends and from where, from its first packet on |
//! | `pipe` | where a state machine and one connection meet, everything bounded |
//! | `error` | what can go wrong, and what to do |
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod certificate;
mod client;
mod clock;
mod door;
mod endpoint;
mod error;
mod http;
mod listen;
mod login;
mod origin;
mod pipe;
mod quic;
mod room;
mod rooms;
mod socket;
mod target;
mod watch;
mod websocket;

pub use axum;
pub use certificate::{Certificate, CertificateHash, Trust};
pub use client::{Between, ClientHandle, Direction, LinkStats, connect, connect_through};
pub use clock::now;
pub use door::{Door, DoorStats, Limits};
pub use endpoint::{Endpoint, EndpointConfig};
pub use error::{Cause, IoError};
pub use http::HttpServer;
pub use origin::Origin;
pub use room::{Histogram, Journal, Room, RoomConfig, RoomHandle, RoomStats, Traffic};
pub use rooms::{NoRoom, RoomName, Rooms};
pub use target::Target;
pub use websocket::WebSockets;
