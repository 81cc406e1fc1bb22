//! [`ServerBody`]: a body as the server keeps it, with its last ticks and the ticks in which its motion was not foreseen.

use core::time::Duration;

use derive_where::derive_where;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::game::{Game, Neighbour, Touched};
use crate::id::{BodyId, Driver};
use crate::model::Body;
use crate::simulate::{Birth, Moved};
use crate::snapshot::history::{BodyHistory, Course, TickRecord};
use crate::snapshot::roster::Member;
use crate::snapshot::section::Motion;
use crate::tick::Tick;

/// A body that the rules removed in the newest tick, by [`crate::Step::remove`].
#[derive_where(Clone, Copy, Debug)]
pub struct Ended<G: Game> {
    /// Its id.
    pub id: BodyId,
    /// The source of its input.
    pub driver: Driver,
    /// The body that emitted it, which may be gone.
    pub parent: Option<BodyId>,
    /// Its last state.
    pub body: G::Body,
    /// How far into the tick it was removed.
    pub at: Duration,
    /// The bodies that it touched in the tick.
    pub touched: Touched,
}

/// A body of a room.
#[derive_where(Clone, Debug)]
pub(crate) struct ServerBody<G: Game> {
    pub(crate) id: BodyId,
    pub(crate) driver: Driver,
    /// The tick at whose end it was spawned, or in which it was born.
    pub(crate) spawned: Tick,
    /// Its birth follows from the rules: another body emitted it, and the world has done nothing to it.
    pub(crate) is_implied: bool,
    /// A rule removed it.
    pub(crate) is_over: bool,
    pub(crate) history: BodyHistory<G>,
    /// Hash of the newest state.
    pub(crate) digest: u64,
    /// Its input at the end of the newest tick.
    held: G::Input,
    /// The last ticks in which its input changed, its neighbours changed its motion, and the world altered it. They spare
    /// the search through the history of a body that went on as before, as most do.
    changed: Tick,
    met: Tick,
    altered: Tick,
    /// The last tick that has a cause.
    caused: Option<Tick>,
    /// The last tick in which the world acted on it after a snapshot of that tick was written.
    revised: Option<Tick>,
    /// The causes of that, which the next tick has.
    late: Causes,
}

impl<G: Game> ServerBody<G> {
    /// A body that exists from the end of `tick` on.
    pub(crate) fn new(cadence: Cadence, tick: Tick, member: Member, record: TickRecord<G>) -> Self {
        let Member { id, driver, parent } = member;
        let input = record.held;
        Self {
            id,
            driver,
            spawned: tick,
            is_implied: false,
            is_over: false,
            history: BodyHistory::begin(cadence, tick, driver, record).emitted_by(parent),
            digest: record.after.digest(),
            held: input,
            changed: tick,
            met: tick,
            altered: tick,
            caused: None,
            revised: None,
            late: Causes::NONE,
        }
    }

    /// A body that was emitted in `tick`, with the record of that tick.
    pub(crate) fn born(cadence: Cadence, tick: Tick, birth: &Birth<G>, record: TickRecord<G>) -> Self {
        let member = Member { id: birth.id, driver: Driver::Nothing, parent: Some(birth.parent) };
        let mut kept = Self { is_implied: true, ..Self::new(cadence, tick, member, record) };
        kept.history.set_birth(tick, birth);
        kept
    }

    /// The body of a roster.
    pub(crate) fn member(&self) -> Member {
        Member { id: self.id, driver: self.driver, parent: self.history.parent() }
    }

    /// The body as others see it in the next tick.
    pub(crate) fn neighbour(&self) -> Neighbour<G> {
        let Self { id, driver, ref history, .. } = *self;
        Neighbour { id, driver, parent: history.parent(), body: *history.latest() }
    }

    /// Bodies that it has emitted.
    pub(crate) fn emitted(&self) -> u32 {
        self.history.newest_record().map_or(0, |record| record.emitted)
    }

    /// A rule removed it so many microseconds into the newest tick.
    pub(crate) fn end(&mut self, at: u32, moved: &Moved<G>) -> Ended<G> {
        self.is_over = true;
        self.history.set_ended(at);
        Ended {
            id: self.id,
            driver: self.driver,
            parent: self.history.parent(),
            body: moved.after,
            at: Duration::from_micros(u64::from(at)),
            touched: moved.touched,
        }
    }

    /// The input that it begins the next tick with, unless a player gives it another.
    pub(crate) fn held(&self) -> G::Input {
        self.held
    }

    /// The next tick.
    pub(crate) fn push(&mut self, mut record: TickRecord<G>) {
        let tick = self.history.newest().next();
        if !record.input.holds(self.held) {
            self.changed = tick;
        }
        if record.course != Course::Own {
            self.met = tick;
        }
        record.causes = record.causes.union(core::mem::take(&mut self.late));
        if !record.causes.is_empty() {
            self.caused = Some(tick);
        }
        self.held = record.held;
        self.digest = record.after.digest();
        self.history.push(record);
    }

    /// Whether no tick after `tick` has a cause.
    pub(crate) fn is_uncaused_since(&self, tick: Tick) -> bool {
        self.caused <= Some(tick)
    }

    /// Whether a snapshot of `tick` with this body in it may have another state than the record of that tick.
    pub(crate) fn is_revised(&self, tick: Tick) -> bool {
        self.revised >= Some(tick)
    }

    /// The world replaces its state at the end of `tick`, the newest. If a snapshot of that tick is `written`, the next tick
    /// has the causes, and no snapshot so far can be built on.
    pub(crate) fn alter(&mut self, tick: Tick, after: G::Body, causes: Causes, written: bool) {
        let Self { history, digest, met, altered, caused, revised, late, is_implied, .. } = self;
        *is_implied = false;
        if written {
            *late = late.union(causes);
        }
        if !causes.is_empty() {
            *caused = Some(tick);
        }
        history.alter(tick, |record| {
            record.causes = record.causes.union(causes);
            if record.after != after {
                record.after = after;
                record.course = Course::Altered;
                *digest = after.digest();
                (*met, *altered) = (tick, tick);
                *revised = if written { Some(tick) } else { *revised };
            }
        });
    }

    /// The world drives it by `input` from the end of `tick`, the newest, on. If a snapshot of that tick is `written`, no
    /// snapshot so far can be built on.
    pub(crate) fn drive(&mut self, tick: Tick, input: G::Input, written: bool) {
        if input != self.held {
            (self.held, self.changed) = (input, tick);
            self.history.alter(tick, |record| record.held = input);
            self.revised = if written { Some(tick) } else { self.revised };
        }
    }

    /// Time passes without it: it stands still up to the end of `tick`, and its history begins there.
    pub(crate) fn sleep_until(&mut self, cadence: Cadence, tick: Tick) {
        let record = TickRecord::sent(self.held, *self.history.latest(), self.emitted());
        *self = Self::new(cadence, tick, self.member(), record);
    }

    /// Whether a client that has the snapshot of `tick` with this body in it can be sent the rest. In the tick of its
    /// spawn, a snapshot may have been written before it.
    pub(crate) fn has(&self, tick: Tick) -> bool {
        tick > self.spawned && !self.is_revised(tick) && self.history.get(tick).is_some()
    }

    /// Whether a reader that moves it by `motion` needs no bits since `baseline`.
    pub(crate) fn goes_on(&self, baseline: Tick, motion: Motion) -> bool {
        let unforeseen = match motion {
            Motion::Joint => self.altered,
            Motion::Alone => self.met,
        };
        self.changed <= baseline && unforeseen <= baseline
    }

    /// The number of states since `baseline` for a reader that moves it by `motion`.
    pub(crate) fn states_since(&self, baseline: Tick, motion: Motion) -> usize {
        match motion {
            Motion::Joint if self.altered <= baseline => 0,
            Motion::Joint => {
                self.history.after(baseline).filter(|(_, record)| record.course == Course::Altered).count()
            }
            Motion::Alone => usize::from(self.met > baseline),
        }
    }
}
