//! A body as the server keeps it: its last ticks, and when it last did something that the rules do not foresee.

use derive_where::derive_where;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::game::Game;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::model::Body;
use crate::snapshot::history::{BodyHistory, Course, TickRecord};
use crate::snapshot::section::Motion;
use crate::tick::Tick;

/// A body of a room.
#[derive_where(Clone, Debug)]
pub(crate) struct Kept<G: Game> {
    pub(crate) player: PlayerId,
    pub(crate) joined: Tick,
    pub(crate) history: BodyHistory<G>,
    /// Of the body as it is now.
    pub(crate) digest: u64,
    /// Its input at the end of the newest tick.
    held: G::Input,
    /// The last ticks in which its input changed, the others made a difference, and the world altered it: they spare
    /// the search through the history of most bodies, which went on as before.
    changed: Tick,
    met: Tick,
    altered: Tick,
}

impl<G: Game> Kept<G> {
    /// One that is there from the end of `tick` on.
    pub(crate) fn new(
        cadence: Cadence,
        tick: Tick,
        player: PlayerId,
        input: G::Input,
        body: G::Body,
    ) -> Self {
        Self {
            player,
            joined: tick,
            history: BodyHistory::new(cadence, tick, TickInput::steady(input), body),
            digest: body.digest(),
            held: input,
            changed: tick,
            met: tick,
            altered: tick,
        }
    }

    /// The next tick.
    pub(crate) fn push(&mut self, record: TickRecord<G>) {
        let tick = self.history.newest().next();
        if record.input != TickInput::steady(self.held) {
            self.changed = tick;
        }
        if record.course != Course::Own {
            self.met = tick;
        }
        self.held = record.input.last();
        self.digest = record.after.digest();
        self.history.push(record);
    }

    /// The world makes something else of it at the end of `tick`, the newest.
    pub(crate) fn alter(&mut self, tick: Tick, after: G::Body, causes: Causes) {
        let Self { history, digest, met, altered, .. } = self;
        history.alter(tick, |record| {
            record.causes = record.causes.union(causes);
            if record.after != after {
                record.after = after;
                record.course = Course::Altered;
                *digest = after.digest();
                (*met, *altered) = (tick, tick);
            }
        });
    }

    /// Whether whoever was told of its player in a snapshot of `tick` was told of this body, and that is kept. In the tick
    /// in which it joined, it may have been another.
    pub(crate) fn has(&self, tick: Tick) -> bool {
        tick > self.joined && self.history.get(tick).is_some()
    }

    /// Whether a reader who moves it by `motion` need be told nothing since `baseline`.
    pub(crate) fn goes_on(&self, baseline: Tick, motion: Motion) -> bool {
        let unforeseen = match motion {
            Motion::Joint => self.altered,
            Motion::Alone => self.met,
        };
        self.changed <= baseline && unforeseen <= baseline
    }

    /// How many states have to be told since `baseline` to a reader who moves it by `motion`.
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
