//! What a snapshot does to a client: time, everybody else, and the player's own body.

use core::time::Duration;

use super::pace::Occasion;
use super::{Client, ahead};
use crate::cause::Cause;
use crate::clock::{ClockSample, LeadController};
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::session::SessionState;
use crate::snapshot::{BodyCode, Header, SnapshotError, TickFate, read_own};
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp, signed_difference};
use crate::wire::{BitReader, WireError};

impl<G: BodyCode> Client<G> {
    pub(super) fn receive_snapshot(&mut self, now: Timestamp, bytes: &[u8]) {
        let Some(own) = self.own.as_ref().filter(|_| self.session.state() == SessionState::LoggedIn) else {
            self.stats.early += 1;
            return;
        };
        let newest = (own.epoch, own.tick);
        let mut bits = BitReader::new(bytes);
        let mut told = core::mem::take(&mut self.told);
        let read = Header::read((own.tick, own.epoch), &mut bits)
            .and_then(|header| Ok((header, read_own::<G>(&mut told, &mut bits)?)));
        match read {
            Ok((header, _)) if (header.epoch, header.tick) <= newest => self.stats.stale += 1,
            Ok((header, _)) if header.tick > Tick::MAX_STATE => self.stats.malformed += 1,
            Ok((header, body)) => self.take_snapshot(now, &header, body, &told, &mut bits),
            Err(_) => self.stats.malformed += 1,
        }
        self.told = told;
    }

    pub(super) fn take_snapshot(
        &mut self,
        now: Timestamp,
        header: &Header,
        body: G::Body,
        told: &[TickFate],
        bits: &mut BitReader<'_>,
    ) {
        // spec: STALE-02
        let decoded = self.take_crowd(header.tick, bits);
        let ahead = self.own.as_ref().map_or(0, |own| header.tick.since(own.tick));
        if !decoded && ahead > Self::BELIEVED_TICKS {
            self.stats.malformed += 1;
            return;
        }
        self.stats.snapshots += 1;
        self.take_clock(now, header);
        if decoded {
            self.remotes.accepted(now, header.tick);
        }
        self.fates.count(header.tick, told, &mut self.stats);
        let causes = self.fates.take(header.tick, told);
        let Some(mut own) = self.own.take() else { return };
        (own.epoch, own.tick, own.body, own.causes) = (header.epoch, header.tick, body, causes);
        self.surround(&mut own);
        self.reconcile(now, &own);
        self.own = Some(own);
        while let Some(late) = self.fates.next_late(header.tick, told) {
            if let Some(reconciler) = &mut self.reconciler {
                reconciler.revise(late, Cause::LateInput);
            }
        }
        self.steer(now);
    }

    /// What the snapshot says of time: the round trip of the echoed datagram, and how early input came.
    pub(super) fn take_clock(&mut self, now: Timestamp, header: &Header) {
        let steps = self.clock.steps();
        let known = self.own.as_ref().map(|own| own.epoch);
        if known != Some(header.epoch) {
            // The server's time has jumped: what was measured before says nothing of it.
            let round_trip = self.clock.round_trip().unwrap_or_default();
            self.clock.reset();
            self.lead.reset();
            self.remotes.reset();
            self.clock.sample(ClockSample {
                sent: now - round_trip,
                held: Duration::ZERO,
                server: self.cadence.end_of(header.tick) + header.late.unwrap_or_default(),
                received: now,
            });
        }
        let Some(echo) = header.echo else { return };
        if self.echo.replace(echo.seq) != Some(echo.seq) {
            self.echoed = now;
        }
        let sent = self.sent.iter().find(|(seq, _)| *seq == echo.seq).map(|(_, sent)| *sent);
        if let (Some(sent), Some(held), Some(late)) = (sent, echo.held, header.late) {
            let server = self.cadence.end_of(header.tick) + late;
            self.clock.sample(ClockSample { sent, held, server, received: now });
        }
        if self.clock.steps() != steps {
            // One of the two clocks has jumped: what was measured against ours holds no longer.
            self.lead.reset();
            self.remotes.reset();
        }
        self.margin = echo.newest.or(self.margin);
        self.lead.arrived(signed_difference(self.cadence.end_of(header.tick).as_micros(), now.as_micros()));
        for margin in [echo.least, echo.newest].into_iter().flatten() {
            self.lead.report(margin.seq, margin.micros);
        }
    }

    /// Reads of everybody else. Gives whether that added up.
    pub(super) fn take_crowd(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> bool {
        let counter = match self.crowd.read(tick, bits) {
            Ok(()) => {
                self.needs_full = false;
                return true;
            }
            Err(SnapshotError::MissingBaseline { .. }) => &mut self.stats.missing_baseline,
            Err(SnapshotError::CheckFailed) => &mut self.stats.check_failed,
            Err(SnapshotError::Wire(
                WireError::Truncated | WireError::Trailing | WireError::Invalid { .. },
            )) => &mut self.stats.malformed,
            Err(SnapshotError::Stale { .. }) => &mut self.stats.stale,
        };
        *counter += 1;
        self.needs_full = true;
        false
    }

    /// What the player moves among: everybody else as the newest snapshot has them.
    pub(super) fn surround(&mut self, own: &mut Authority<G>) {
        let Some(player) = self.session.player() else { return };
        let newest = self.crowd.newest();
        self.bodies.clear();
        self.bodies.push(own.body);
        let others = self.crowd.bodies().filter(|(other, _)| *other != player);
        let known = others.filter(|(_, history)| Some(history.newest()) == newest);
        self.bodies.extend(known.map(|(_, history)| *history.latest()));
        G::surround(&mut own.surroundings, &self.bodies, 0, self.config.predict.max_pending);
    }

    pub(super) fn reconcile(&mut self, now: Timestamp, own: &Authority<G>) {
        // On a short way the state of a tick can be here before the frame that would have sent its input. It would then
        // be acknowledged unsent: the server would never have it, nor could it say how late it was.
        // spec: CLOCK-03
        let occasion = core::mem::replace(&mut self.occasion, Occasion::Arrival);
        self.send_due(now);
        self.occasion = occasion;
        match self.target(now) {
            Some(target) if self.reconciler.is_some() => {
                if let Some(reconciler) = &mut self.reconciler {
                    // What is stale has been sorted out already.
                    let before = reconciler.predictor().stats().mispredicted;
                    let accepted = reconciler.accept(now, target, own);
                    debug_assert!(accepted.is_ok(), "the newest state is accepted");
                    let wrong = reconciler.predictor().stats().mispredicted > before;
                    if accepted.is_ok_and(|accepted| accepted.resync.is_some()) {
                        self.resynced = Some(now);
                    }
                    // What was pending when prediction restarted says nothing of input.
                    let lasting = self.config.predict.max_pending * 2;
                    let resynced = self.resynced.is_some_and(|at| now.saturating_since(at) <= lasting);
                    self.stats.mispredicted += u64::from(wrong && own.causes.is_of_input() && !resynced);
                }
            }
            Some(_) => self.begin(now, own),
            // Nothing is known of the server's time yet.
            None => {}
        }
    }

    /// Prediction begins.
    pub(super) fn begin(&mut self, now: Timestamp, own: &Authority<G>) {
        let round_trip = self.clock.round_trip().unwrap_or_default();
        let lead = LeadController::new(self.config.lead, round_trip / 2 + self.cadence.interval() / 2);
        debug_assert!(lead.is_ok(), "configs have been checked");
        let Ok(lead) = lead else { return };
        self.lead = lead;
        let Some(target) = self.target(now) else { return };
        let begun = Reconciler::new(self.config.predict, self.config.correction, now, target, own);
        debug_assert!(begun.is_ok(), "configs have been checked");
        if let Ok(mut reconciler) = begun {
            reconciler.set_input(now, self.wanted);
            self.sent_open = Some(reconciler.predictor().open_tick());
            self.reconciler = Some(reconciler);
        }
    }

    /// The server's clock less ours, in microseconds.
    pub(super) fn server_offset(&self, now: Timestamp) -> Option<i64> {
        let server = i64::try_from(self.clock.at(now)?.as_micros()).ok()?;
        server.checked_sub(i64::try_from(now.as_micros()).ok()?)
    }

    /// Where prediction should be at `now`: the server's time plus the lead.
    pub(super) fn target(&self, now: Timestamp) -> Option<ServerTime> {
        let aim = self.lead.aim(self.server_offset(now)?);
        Some(ServerTime::from_micros(now.as_micros().saturating_add_signed(aim)))
    }

    /// Runs prediction towards where it should be.
    pub(super) fn steer(&mut self, now: Timestamp) {
        let Some(offset) = self.server_offset(now) else { return };
        let Some(reconciler) = &mut self.reconciler else { return };
        let rate = self.lead.rate(ahead(reconciler, now), offset);
        reconciler.set_rate(now, rate);
    }
}
