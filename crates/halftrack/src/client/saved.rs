//! A client's whole state, written down and read back into one that was built from the same config.
//!
//! Not written: memory that is only used again, what the session's secrets are, and the bytes that wait to be written to the
//! stream. These may hold secrets too, and only how many they are makes a difference.

use super::{Client, ClientConfig};
use crate::exact::{Exact, Loader, Saver, State};
use crate::flight::FlightGame;
use crate::id::Token;
use crate::input::TickInput;
use crate::lane::{LaneRouter, SyncLink};
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::session::SessionState;
use crate::tick::Tick;
use crate::wire::WireError;

impl<G: FlightGame> Client<G> {
    /// Whether its state can be written down: the host has taken its events, and there is no half of a login in it.
    pub(crate) fn is_at_rest(&self) -> bool {
        let state = self.session.state();
        let no_login = state == SessionState::LoggedIn || self.unfinished() == 0;
        self.events.is_empty() && state != SessionState::LoginPending && no_login
    }

    /// What it was built from.
    pub(crate) fn config(&self) -> &ClientConfig<G> {
        &self.config
    }

    /// Bytes of a message of the stream that is not complete.
    pub(crate) fn unfinished(&self) -> usize {
        self.reader.unfinished()
    }

    /// What lets whoever has it play on.
    pub(crate) fn token(&self) -> Option<&Token> {
        self.session.token()
    }
}

impl<G: FlightGame> State for Client<G> {
    fn save_state(&self, to: &mut Saver) {
        // All of them are named: one that is added is not forgotten.
        let Self {
            config: _,
            cadence: _,
            now,
            session,
            shown_state,
            router,
            reader,
            out,
            events: _,
            names,
            clock,
            lead,
            pace,
            occasion: _,
            open,
            reconciler,
            crowd,
            remotes,
            own,
            fates,
            resynced,
            margin,
            next_full_request,
            needs_full,
            wanted,
            seq,
            sent,
            last_sent,
            sent_open,
            repeat_at,
            datagram,
            taken,
            probe,
            next_probe,
            watch,
            echoed,
            echo,
            reported,
            stats,
            recorder: _,
            message: _,
            told: _,
            bodies,
        } = self;
        now.save(to);
        session.save_state(to);
        shown_state.save(to);
        router.sync_link().save(to);
        router.is_sync_heard().save(to);
        reader.save(to);
        out.len().save(to);
        names.save(to);
        clock.save(to);
        lead.save_state(to);
        pace.save(to);
        open.save(to);
        bodies.save(to);
        own.is_some().save(to);
        if let Some(own) = own {
            own.epoch.save(to);
            own.tick.save(to);
            own.body.save(to);
            own.causes.save(to);
        }
        reconciler.is_some().save(to);
        if let Some(reconciler) = reconciler {
            debug_assert_eq!(
                own.as_ref().map(|own| (own.epoch, own.tick)),
                Some((reconciler.predictor().baseline().epoch, reconciler.predictor().baseline().tick)),
                "prediction builds on the newest state"
            );
            reconciler.save_state(to);
        }
        crowd.save_state(to);
        remotes.save_state(to);
        fates.save(to);
        resynced.save(to);
        margin.save(to);
        next_full_request.save(to);
        needs_full.save(to);
        TickInput::steady(*wanted).save(to);
        seq.save(to);
        sent.save(to);
        last_sent.save(to);
        sent_open.save(to);
        repeat_at.save(to);
        to.list(datagram);
        taken.save(to);
        probe.save(to);
        next_probe.save(to);
        watch.save(to);
        echoed.save(to);
        echo.save(to);
        reported.save(to);
        stats.save(to);
    }

    fn load_state(&mut self, from: &mut Loader<'_>) -> Result<(), WireError> {
        self.now.load_state(from)?;
        self.session.load_state(from)?;
        self.shown_state.load_state(from)?;
        let router = LaneRouter::new(self.config.policy, SyncLink::load(from)?);
        self.router = router.with_sync_heard(bool::load(from)?);
        self.reader.load_state(from)?;
        let waiting = usize::load(from)?;
        if waiting > 2 * Self::MAX_OUT {
            return Err(WireError::Invalid { field: "out" });
        }
        self.out.clear();
        self.out.resize(waiting, 0);
        self.events.clear();
        self.names.load_state(from)?;
        self.clock.load_state(from)?;
        self.lead.load_state(from)?;
        self.pace.load_state(from)?;
        self.open.load_state(from)?;
        self.bodies.load_state(from)?;
        self.load_own(from)?;
        self.crowd.load_state(from)?;
        self.remotes.load_state(from)?;
        self.fates.load_state(from)?;
        self.resynced.load_state(from)?;
        self.margin.load_state(from)?;
        self.next_full_request.load_state(from)?;
        self.needs_full.load_state(from)?;
        self.wanted = TickInput::load(from)?.start();
        self.seq.load_state(from)?;
        self.sent.load_state(from)?;
        self.last_sent.load_state(from)?;
        self.sent_open.load_state(from)?;
        self.repeat_at.load_state(from)?;
        self.datagram = from.list()?.to_vec();
        self.taken.load_state(from)?;
        self.probe.load_state(from)?;
        self.next_probe.load_state(from)?;
        self.watch.load_state(from)?;
        self.echoed.load_state(from)?;
        self.echo.load_state(from)?;
        self.reported.load_state(from)?;
        self.stats.load_state(from)
    }
}

impl<G: FlightGame> Client<G> {
    /// The newest state of the player, among those who were there, and prediction on top of it.
    fn load_own(&mut self, from: &mut Loader<'_>) -> Result<(), WireError> {
        (self.own, self.reconciler) = (None, None);
        if bool::load(from)? {
            let mut own = Authority {
                epoch: Exact::load(from)?,
                tick: Exact::load(from)?,
                body: G::Body::load(from)?,
                surroundings: self.config.alone.clone(),
                causes: Exact::load(from)?,
            };
            if own.tick > Tick::MAX_STATE {
                return Err(WireError::Invalid { field: "tick" });
            }
            G::surround(&mut own.surroundings, &self.bodies, 0, self.config.predict.max_pending);
            self.own = Some(own);
        }
        if bool::load(from)? {
            let invalid = WireError::Invalid { field: "prediction" };
            let own = self.own.as_ref().ok_or(invalid)?;
            let (predict, correction) = (self.config.predict, self.config.correction);
            let time = self.cadence.end_of(own.tick);
            let begun = Reconciler::new(predict, correction, self.now, time, own);
            let mut reconciler = begun.map_err(|_| invalid)?;
            reconciler.load_state(from)?;
            self.reconciler = Some(reconciler);
        }
        Ok(())
    }
}
