//! The life of a session: what must outlive a connection so that a cut goes unnoticed.

mod log;

pub use log::{LogOverflow, ReliableLog, ResumeRefused};
