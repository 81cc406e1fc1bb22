//! One step of a body: the only door between a rule and the world around its body.

use core::time::Duration;

use derive_where::derive_where;

use super::effects::{Effects, Emission};
use super::{Game, Neighbour};
use crate::cadence::Cadence;
use crate::id::BodyId;
use crate::tick::Tick;
use crate::time::{ServerTime, whole_micros};

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
    pub(crate) neighbours: &'a [Neighbour<G>],
    pub(crate) id: BodyId,
    pub(crate) parent: Option<BodyId>,
    pub(crate) effects: &'a mut Effects<G>,
}

impl<'a, G: Game> Step<'a, G> {
    /// Bodies that a body can emit in one tick. More are refused, and counted.
    pub const MAX_EMISSIONS: usize = 8;

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

    /// The id of the moving body.
    #[inline]
    pub fn id(&self) -> BodyId {
        self.id
    }

    /// The body that emitted the moving body. It may be gone by now.
    #[inline]
    pub fn parent(&self) -> Option<BodyId> {
        self.parent
    }

    /// The moving body as it was at the start of the tick, or at its birth if it was born in this tick.
    #[inline]
    pub fn own_at_start(&self) -> &'a G::Body {
        self.at_start
    }

    /// The other bodies within [`Game::reach`], frozen as they were at the start of the tick, in order of their ids. A
    /// newborn body has its parent among them.
    #[inline]
    pub fn neighbours(&self) -> &'a [Neighbour<G>] {
        self.neighbours
    }

    /// Marks that body `id` stood in the way or pushed. A client may have known it as another one, so a correction of this
    /// motion is then a [`crate::Cause::Collision`].
    #[inline]
    pub fn touch(&mut self, id: BodyId) {
        self.effects.touched.add(id);
    }

    /// Emits a body: a shell, a rocket, a thrown crate. It is born `at` this time into the step as `body`, and moves from
    /// there to the end of the tick, with neutral input, among the same neighbours. Other bodies see it from the next tick
    /// on.
    ///
    /// Let `at` and `body` follow from the moving body and its input, never from [`Self::span`]: the newest step grows from
    /// frame to frame and is simulated anew each time. An emission at or after the end of the step is not made: keep what
    /// remains in a timer of the body, and the next step emits it. At most [`Self::MAX_EMISSIONS`] are made in a tick, and
    /// none in the tick of the body's own birth.
    pub fn emit(&mut self, body: G::Body, at: Duration) {
        // spec: EMIT-01
        let effects = &mut *self.effects;
        let at = u32::try_from(whole_micros(at)).unwrap_or(u32::MAX);
        if at >= self.span {
            effects.overdue += 1;
        } else if effects.newborn || effects.emitted.len() >= Self::MAX_EMISSIONS {
            effects.refused += 1;
        } else {
            effects.emitted.push(Emission { at: self.phase + at, body });
        }
    }

    /// Removes the moving body, `at` this time into the step: it hit something, or its time is over. What you make of the
    /// body in this step is its last state, and it takes no further step. `at` is at most the step's end.
    pub fn remove(&mut self, at: Duration) {
        let at = u32::try_from(whole_micros(at)).unwrap_or(u32::MAX).min(self.span);
        self.effects.removed.get_or_insert(self.phase + at);
    }
}
