//! Snapshots in a client: clock, other bodies, the player's own body.

use std::sync::Arc;

use super::pace::Occasion;
use super::timing::Course;
use super::{Client, ahead};
use crate::cause::Cause;
use crate::game::Game;
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::session::SessionState;
use crate::snapshot::{Header, TickFate, read_own};
use crate::tick::Tick;
use crate::time::Timestamp;
use crate::wire::BitReader;

impl<G: Game> Client<G> {
    pub(super) fn receive_snapshot(&mut self, now: Timestamp, bytes: &[u8]) {
        let Some(own) = self.own.state.as_ref().filter(|_| self.session.state() == SessionState::LoggedIn)
        else {
            self.stats.early += 1;
            return;
        };
        let newest = (own.epoch, own.tick);
        let mut bits = BitReader::new(bytes);
        let mut told = core::mem::take(&mut self.own.told);
        let read = Header::read((own.tick, own.epoch), &mut bits)
            .and_then(|header| Ok((header, read_own::<G>(&mut told, &mut bits)?)));
        match read {
            Ok((header, _)) if (header.epoch, header.tick) <= newest => self.stats.stale += 1,
            Ok((header, _)) if header.tick > Tick::MAX_STATE => self.stats.malformed += 1,
            Ok((header, body)) => self.take_snapshot(now, &header, body, &told, &mut bits),
            Err(_) => self.stats.malformed += 1,
        }
        self.own.told = told;
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
        let decoded = self.others.read((header.epoch, header.tick), bits, &mut self.stats);
        let is_near = |own: &Authority<G>| {
            own.epoch == header.epoch && header.tick.since(own.tick) <= Self::BELIEVED_TICKS
        };
        if !decoded && !self.own.state.as_ref().is_some_and(is_near) {
            self.stats.malformed += 1;
            return;
        }
        self.stats.snapshots += 1;
        self.take_clock(now, header);
        if decoded {
            self.others.remotes.accepted(now, header.tick);
        }
        self.own.fates.count(header.tick, told, &mut self.stats);
        let causes = self.own.fates.take(header.tick, told);
        let Some(mut own) = self.own.state.take() else { return };
        (own.epoch, own.tick, own.body, own.causes) = (header.epoch, header.tick, body, causes);
        self.find_neighbours(&mut own);
        self.reconcile(now, &own);
        self.own.state = Some(own);
        while let Some(late) = self.own.fates.next_late(header.tick, told) {
            if let Some(reconciler) = &mut self.own.reconciler {
                reconciler.revise(late, Cause::LateInput);
            }
        }
        self.steer(now);
    }

    /// Feeds the clock: the round trip of the echoed input message, and the margins of input.
    fn take_clock(&mut self, now: Timestamp, header: &Header) {
        let known = self.own.state.as_ref().map(|own| own.epoch);
        if known != Some(header.epoch) {
            self.timing.jump(now, self.cadence, header);
            self.others.remotes.reset();
        }
        let sender = &self.sender;
        let course = self.timing.take_echo(now, self.cadence, header, |seq| sender.sent_at(seq));
        if course == Course::Jumped {
            self.others.remotes.reset();
        }
    }

    pub(super) fn find_neighbours(&self, own: &mut Authority<G>) {
        if let Some(player) = self.session.player() {
            let span = self.config.predict.max_pending;
            self.others.find_neighbours(&self.config.rules, player, span, own);
        }
    }

    pub(super) fn reconcile(&mut self, now: Timestamp, own: &Authority<G>) {
        // With a short round trip the state of a tick can arrive before the frame that would have sent its input. The input
        // would be acknowledged unsent: the server would never get it, nor report how late it was.
        // spec: CLOCK-03
        let occasion = core::mem::replace(&mut self.timing.occasion, Occasion::Arrival);
        self.send_due(now);
        self.timing.occasion = occasion;
        match self.timing.target(now) {
            Some(target) if self.own.reconciler.is_some() => {
                if let Some(reconciler) = &mut self.own.reconciler {
                    // Stale snapshots were dropped before.
                    let before = reconciler.predictor().stats().mispredicted;
                    let accepted = reconciler.accept(now, target, own);
                    debug_assert!(accepted.is_ok(), "the newest state is accepted");
                    let wrong = reconciler.predictor().stats().mispredicted > before;
                    if accepted.is_ok_and(|accepted| accepted.resync.is_some()) {
                        self.own.resynced = Some(now);
                    }
                    // Ticks that were pending across a restart are no samples of late input.
                    let lasting = self.config.predict.max_pending * 2;
                    let resynced = self.own.resynced.is_some_and(|at| now.saturating_since(at) <= lasting);
                    self.stats.mispredicted += u64::from(wrong && own.causes.is_of_input() && !resynced);
                }
            }
            Some(_) => self.begin(now, own),
            // The server's time is not known yet.
            None => {}
        }
    }

    /// Prediction begins.
    pub(super) fn begin(&mut self, now: Timestamp, own: &Authority<G>) {
        self.timing.begin(self.config.lead, self.cadence);
        let Some(target) = self.timing.target(now) else { return };
        let (rules, predict) = (Arc::clone(&self.config.rules), self.config.predict);
        let begun = Reconciler::new(rules, predict, self.config.correction, now, target, own);
        debug_assert!(begun.is_ok(), "configs have been checked");
        if let Ok(mut reconciler) = begun {
            reconciler.set_input(now, self.own.wanted);
            self.sender.sent_open = Some(reconciler.predictor().open_tick());
            self.own.reconciler = Some(reconciler);
        }
    }

    /// Steers the prediction clock towards its target.
    pub(super) fn steer(&mut self, now: Timestamp) {
        let Some(offset) = self.timing.server_offset(now) else { return };
        let Some(reconciler) = &mut self.own.reconciler else { return };
        let rate = self.timing.lead.rate(ahead(reconciler, now), offset);
        reconciler.set_rate(now, rate);
    }
}
