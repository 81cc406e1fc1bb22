//! The state of a prediction as serde sees it, and the check after loading.

use serde::Serialize;

use super::{Authority, OpenTick, Predictor, Scheduled, Status};
use crate::clock::PredictionClock;
use crate::game::Game;
use crate::input::Pending;
use crate::model::Body;
use crate::saved::{Unrestorable, ensure};
use crate::stats::PredictStats;
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp};

/// The state of a [`Predictor`]: all but its rules and config.
pub(crate) type SavedPrediction<G> = (
    (PredictionClock, Timestamp, ServerTime, Status),
    (Authority<G>, Pending<<G as Game>::Input>, OpenTick<<G as Game>::Input>),
    (<G as Game>::Input, Option<Scheduled<<G as Game>::Input>>, Option<ServerTime>),
    (Tick, Option<(Tick, <G as Game>::Input)>, Option<Tick>, PredictStats),
);

impl<G: Game> Predictor<G> {
    pub(crate) fn saved(&self) -> impl Serialize + '_ {
        // Named one by one: a new field cannot be forgotten.
        let Self {
            rules: _,
            cadence: _,
            resync_error: _,
            window_ticks: _,
            clock,
            now,
            time,
            status,
            baseline,
            pending,
            open,
            scene: _,
            verdicts: _,
            wanted,
            scheduled,
            last_change,
            first_recorded,
            held,
            resync_through,
            stats,
        } = self;
        (
            (clock, now, time, status),
            (baseline, pending, open),
            (wanted, scheduled, last_change),
            (first_recorded, held, resync_through, stats),
        )
    }

    pub(crate) fn restore(&mut self, saved: SavedPrediction<G>) -> Result<(), Unrestorable> {
        let limit = self.pending.limit();
        let (times, bodies, inputs, ticks) = saved;
        (self.clock, self.now, self.time, self.status) = times;
        (self.baseline, self.pending, self.open) = bodies;
        (self.wanted, self.scheduled, self.last_change) = inputs;
        (self.first_recorded, self.held, self.resync_through, self.stats) = ticks;
        self.check(limit)?;
        // The bodies follow from the state and the inputs since.
        self.replay();
        ensure(self.scene.is_sound(), "predicted bodies")
    }

    fn check(&self, limit: usize) -> Result<(), Unrestorable> {
        let (baseline, open) = (&self.baseline, &self.open);
        let follows = self.pending.follows(baseline.tick, open.tick) && baseline.tick <= Tick::MAX_STATE;
        ensure(follows && self.pending.limit() == limit && self.pending.is_within_limit(), "pending ticks")?;
        ensure(self.clock.is_sound(), "prediction clock")?;
        let sound = baseline.actors().all(|actor| actor.body.check().is_ok() && actor.known <= baseline.tick);
        ensure(sound && baseline.is_in_order(), "predicted bodies")
    }
}
