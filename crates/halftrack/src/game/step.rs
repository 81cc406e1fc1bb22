//! One step of a body: the only door between a rule and the world around its body.

use core::time::Duration;

use derive_where::derive_where;

use super::{Contact, Game};
use crate::cadence::Cadence;
use crate::tick::Tick;
use crate::time::ServerTime;

/// One step of a body, as [`Game::advance`] sees it: how long it is, when it is, and who is near.
///
/// A tick is one step, or several where the input changes inside it.
#[derive_where(Debug)]
pub struct Step<'a, G: Game> {
    pub(crate) cadence: Cadence,
    pub(crate) tick: Tick,
    /// Microseconds from the tick's start to the step's.
    pub(crate) phase: u32,
    /// Microseconds, never zero.
    pub(crate) span: u32,
    pub(crate) at_start: &'a G::Body,
    pub(crate) neighbours: &'a [G::Body],
    pub(crate) contact: Contact,
}

impl<'a, G: Game> Step<'a, G> {
    /// How long the step is: whole microseconds, never zero, at most a tick.
    #[inline]
    pub fn span(&self) -> Duration {
        Duration::from_micros(u64::from(self.span))
    }

    /// The same in seconds.
    #[inline]
    pub fn seconds(&self) -> f64 {
        f64::from(self.span) * 1e-6
    }

    /// The tick that the step belongs to.
    #[inline]
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// How far into its tick the step begins. Zero in the first step of a tick: the place for whatever happens once per
    /// tick.
    #[inline]
    pub fn into_tick(&self) -> Duration {
        Duration::from_micros(u64::from(self.phase))
    }

    /// The server's time at the beginning of the step, for rules that follow a timetable.
    #[inline]
    pub fn time(&self) -> ServerTime {
        self.cadence.start_of(self.tick) + self.into_tick()
    }

    /// The moving body as it was at the start of the tick.
    #[inline]
    pub fn own_at_start(&self) -> &'a G::Body {
        self.at_start
    }

    /// The other bodies within [`Game::reach`], frozen as they were at the start of the tick.
    #[inline]
    pub fn neighbours(&self) -> &'a [G::Body] {
        self.neighbours
    }

    /// Marks that another body stood in the way or pushed. A client knows other bodies only as they were, so it names a
    /// correction of this motion [`crate::Cause::Collision`].
    #[inline]
    pub fn touch(&mut self) {
        self.contact = Contact::Touched;
    }
}
