//! What is written down of a prediction, and the check that it is one.

use super::{OpenTick, Predictor, Scheduled, Seal};
use crate::exact::{Exact, Loader, Saver, State, exact, exact_enum};
use crate::flight::FlightGame;
use crate::input::TickInput;
use crate::tick::Tick;
use crate::wire::{Coded, WireError};

exact_enum!(Seal { Open, Sent });
exact!([G: FlightGame] OpenTick<G> { tick, input, origin, body, phase, contact, seal });

impl<I: Coded + Copy + PartialEq> Exact for Scheduled<I> {
    fn save(&self, to: &mut Saver) {
        let Self { at, input, seal } = self;
        at.save(to);
        TickInput::steady(*input).save(to);
        seal.save(to);
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let (at, input) = (Exact::load(from)?, TickInput::load(from)?.start());
        Ok(Self { at, input, seal: Exact::load(from)? })
    }
}

/// The baseline is not written: it is what the predictor is built from.
impl<G: FlightGame> State for Predictor<G> {
    fn save_state(&self, to: &mut Saver) {
        // All of them are named: one that is added is not forgotten.
        let Self {
            cadence: _,
            resync_error: _,
            window_ticks: _,
            clock,
            now,
            time,
            status,
            baseline: _,
            pending,
            open,
            predicted,
            contact,
            wanted,
            scheduled,
            last_change,
            first_recorded,
            held,
            resync_through,
            stats,
        } = self;
        clock.save(to);
        now.save(to);
        time.save(to);
        status.save(to);
        pending.save_state(to);
        open.save(to);
        predicted.save(to);
        contact.save(to);
        TickInput::steady(*wanted).save(to);
        scheduled.save(to);
        last_change.save(to);
        first_recorded.save(to);
        held.map(|(tick, input)| (tick, TickInput::steady(input))).save(to);
        resync_through.save(to);
        stats.save(to);
    }

    fn load_state(&mut self, from: &mut Loader<'_>) -> Result<(), WireError> {
        self.clock.load_state(from)?;
        self.now.load_state(from)?;
        self.time.load_state(from)?;
        self.status.load_state(from)?;
        self.pending.load_state(from)?;
        self.open.load_state(from)?;
        self.predicted.load_state(from)?;
        self.contact.load_state(from)?;
        self.wanted = TickInput::load(from)?.start();
        self.scheduled.load_state(from)?;
        self.last_change.load_state(from)?;
        self.first_recorded.load_state(from)?;
        let held = Option::<(Tick, TickInput<G::Input>)>::load(from)?;
        self.held = held.map(|(tick, input)| (tick, input.start()));
        self.resync_through.load_state(from)?;
        self.stats.load_state(from)?;
        let follows = self.pending.follows(self.baseline.tick, self.open.tick);
        if follows && self.open.phase < self.cadence.micros() {
            Ok(())
        } else {
            Err(WireError::Invalid { field: "prediction" })
        }
    }
}
