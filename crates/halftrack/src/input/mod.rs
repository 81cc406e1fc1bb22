//! What the player asked for, tick by tick: the input of one tick, and the ticks the server has not acknowledged.

mod pending;
mod tick_input;

pub(crate) use pending::{ClosedTick, Pending};
pub use pending::{Origin, PendingTick};
pub use tick_input::{Change, ChangeRefused, MAX_CHANGES, Step, TickInput};
