//! What the player asked for, tick by tick: the input of one tick, the ticks that the server has not acknowledged,
//! and the server's own queue of what has come.

mod pending;
mod queue;
mod tick_input;

pub(crate) use pending::{ClosedTick, Pending};
pub use pending::{Origin, PendingTick};
pub use queue::{Arrival, Fate, InputQueue, InputQueueConfig, InputStats, Margin};
pub use tick_input::{Change, ChangeRefused, MAX_CHANGES, Step, TickInput};
