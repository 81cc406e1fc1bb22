//! The life of a session: getting in, staying in, and coming back so that a cut goes unnoticed.
//!
//! A heartbeat carries liveness, a round trip and a clock sample, and owns nothing else; the clock is elsewhere.

mod client;
mod log;
mod reason;
mod server;
mod table;

pub(crate) use client::SavedSession;
pub use client::{ClientSession, SessionCommand, SessionConfig, SessionEnd, SessionState};
pub use log::{LogOverflow, ReliableLog, ResumeRefused};
pub use reason::DisconnectReason;
pub use server::{SessionEvent, SessionServer, SessionServerConfig, SessionStats};
pub use table::{ConnectionId, Expired, LetIn, Session, SessionTable, TableConfig};
