//! What the player asked for, tick by tick: the input of one tick, the ticks that the server has not acknowledged,
//! and the server's own queue of what has come.

mod message;
mod pending;
mod queue;
mod tick_input;

#[cfg(test)]
pub(crate) use message::tests as message_tests;
pub use message::{Completeness, MoveInput};
pub(crate) use message::{read_tick, write_tick};
pub(crate) use pending::{ClosedTick, Pending};
pub use pending::{Inputs, Origin, PendingTick, Upto};
pub use queue::{Arrival, Fate, InputQueue, InputQueueConfig, InputStats, Margin};
pub use tick_input::{Change, ChangeRefused, Hold, MAX_CHANGES, TickInput};
