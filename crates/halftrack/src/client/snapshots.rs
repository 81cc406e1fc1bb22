//! Snapshots in a client: clock, other bodies, the player's own body.

use std::sync::Arc;

use super::own::{Own, OwnBody};
use super::pace::Occasion;
use super::timing::Course;
use super::{Client, ahead};
use crate::cause::{Cause, Causes};
use crate::game::Game;
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::session::SessionState;
use crate::snapshot::{Header, OwnBodies};
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::BitReader;

impl<G: Game> Client<G> {
    pub(super) fn receive_snapshot(&mut self, now: Timestamp, bytes: &[u8]) {
        let logged_in = self.session.state() == SessionState::LoggedIn;
        let Some(newest) = self.own.newest.filter(|_| logged_in) else {
            self.stats.early += 1;
            return;
        };
        let (epoch, tick) = newest;
        let mut bits = BitReader::new(bytes);
        let mut section = core::mem::take(&mut self.own.section);
        // The ids of the bodies at hand are those of every snapshot since the one that was acknowledged.
        let mut known = core::mem::take(&mut self.own.known);
        known.clear();
        known.extend(self.own.bodies.iter().map(|body| body.id));
        let read = Header::read((tick, epoch), &mut bits)
            .and_then(|header| section.read(&known, &mut bits).map(|()| header));
        match read {
            Ok(header) if (header.epoch, header.tick) <= newest => self.stats.stale += 1,
            Ok(header) if header.tick > Tick::MAX_STATE => self.stats.malformed += 1,
            Ok(header) => self.take_snapshot(now, &header, &section, &mut bits),
            Err(_) => self.stats.malformed += 1,
        }
        (self.own.section, self.own.known) = (section, known);
    }

    fn take_snapshot(
        &mut self,
        now: Timestamp,
        header: &Header,
        section: &OwnBodies<G>,
        bits: &mut BitReader<'_>,
    ) {
        // spec: STALE-02
        let decoded = self.others.read((header.epoch, header.tick), bits, &mut self.stats);
        let is_near = |(epoch, tick): (Epoch, Tick)| {
            epoch == header.epoch && header.tick.since(tick) <= Self::BELIEVED_TICKS
        };
        if !decoded && !self.own.newest.is_some_and(is_near) {
            self.stats.malformed += 1;
            return;
        }
        self.stats.snapshots += 1;
        self.take_clock(now, header);
        if decoded {
            self.others.remotes.accepted(now, header.tick);
        }
        let fresh = self.own.fates.first_fresh(header.tick, section.fates.len());
        self.own.fates.count(header.tick, &section.fates, &mut self.stats);
        let by_input = self.own.fates.take(header.tick, &section.fates);
        self.own.newest = Some((header.epoch, header.tick));
        let gone = self.take_own_states(section, |place| by_input.union(section.causes_of(place, fresh)));
        self.reconcile(now, gone.as_ref());
        while let Some(late) = self.own.fates.next_late(header.tick, &section.fates) {
            for reconciler in self.own.reconcilers_mut() {
                reconciler.revise(late, Cause::LateInput);
            }
        }
        self.steer(now);
    }

    /// Replaces the states of the player's bodies by those of a snapshot. Bodies that are not in it are gone: returns the
    /// prediction of one of these.
    pub(super) fn take_own_states(
        &mut self,
        section: &OwnBodies<G>,
        causes: impl Fn(usize) -> Causes,
    ) -> Option<Reconciler<G>> {
        let Own { newest, bodies, past, .. } = &mut self.own;
        let (epoch, tick) = (*newest)?;
        let mut gone = None;
        if bodies.iter().any(|body| !section.ids.contains(&body.id)) {
            let (left, rest) =
                core::mem::take(bodies).into_iter().partition(|body| section.ids.contains(&body.id));
            *bodies = left;
            for reconciler in Vec::into_iter(rest).filter_map(|body| body.reconciler) {
                past.merge(reconciler.stats());
                gone = Some(reconciler);
            }
        }
        let span = self.config.predict.max_pending;
        for (place, (id, body)) in section.ids.iter().zip(&section.bodies).enumerate() {
            let at = bodies.iter().position(|body| body.id == *id).unwrap_or_else(|| {
                let (body, neighbours) = (*body, Vec::new());
                let state = Authority { epoch, tick, body, neighbours, causes: Causes::NONE };
                bodies.push(OwnBody { id: *id, state, reconciler: None });
                bodies.len() - 1
            });
            if at != place {
                let body = bodies.remove(at);
                bodies.insert(place.min(bodies.len()), body);
            }
            if let Some(OwnBody { state, .. }) = bodies.get_mut(place) {
                (state.epoch, state.tick, state.body, state.causes) = (epoch, tick, *body, causes(place));
                self.others.find_neighbours(&self.config.rules, *id, span, state);
            }
        }
        gone
    }

    /// Feeds the clock: the round trip of the echoed input message, and the margins of input.
    fn take_clock(&mut self, now: Timestamp, header: &Header) {
        let known = self.own.newest.map(|(epoch, _)| epoch);
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

    /// Lets prediction go on from the newest states. `gone` is the prediction of a body that the player owns no more.
    fn reconcile(&mut self, now: Timestamp, gone: Option<&Reconciler<G>>) {
        // With a short round trip the state of a tick can arrive before the frame that would have sent its input. The input
        // would be acknowledged unsent: the server would never get it, nor report how late it was.
        // spec: CLOCK-03
        let occasion = core::mem::replace(&mut self.timing.occasion, Occasion::Arrival);
        self.send_due(now);
        self.timing.occasion = occasion;
        // Unless the server's time is not known yet.
        let Some(target) = self.timing.target(now) else { return };
        if self.own.first().or(gone).is_none() {
            self.begin(now);
            return;
        }
        self.begin_beside(now, target, gone);
        let (mut wrong, mut resynced) = (false, false);
        for OwnBody { state, reconciler, .. } in &mut self.own.bodies {
            let Some(reconciler) = reconciler.as_mut() else { continue };
            if reconciler.predictor().baseline().tick == state.tick {
                // It has just begun beside the others.
                continue;
            }
            let before = reconciler.predictor().stats().mispredicted;
            // Stale snapshots were dropped before.
            let accepted = reconciler.accept(now, target, state);
            debug_assert!(accepted.is_ok(), "the newest state is accepted");
            wrong |= reconciler.predictor().stats().mispredicted > before && state.causes.is_of_input();
            resynced |= accepted.is_ok_and(|accepted| accepted.resync.is_some());
        }
        if resynced {
            self.own.resynced = Some(now);
        }
        // Ticks that were pending across a restart are no samples of late input.
        let lasting = self.config.predict.max_pending * 2;
        let resynced = self.own.resynced.is_some_and(|at| now.saturating_since(at) <= lasting);
        self.stats.mispredicted += u64::from(wrong && !resynced);
    }

    /// Begins to predict bodies that were spawned since the last snapshot, by the input and the clock of the others.
    fn begin_beside(&mut self, now: Timestamp, target: ServerTime, gone: Option<&Reconciler<G>>) {
        while let Some(at) = self.own.bodies.iter().position(|body| body.reconciler.is_none()) {
            let known = self.own.reconcilers().find(|known| {
                Some((known.predictor().baseline().epoch, known.predictor().baseline().tick))
                    < self.own.newest
            });
            let Some(fresh) = self.own.bodies.get(at) else { return };
            let beside = known.or(gone).map(|known| known.beside(now, target, &fresh.state));
            let Some(Ok(beside)) = beside else { return };
            if let Some(body) = self.own.bodies.get_mut(at) {
                body.reconciler = Some(beside);
            }
        }
    }

    /// Begins to predict the player's bodies, if there are any.
    fn begin(&mut self, now: Timestamp) {
        if self.own.bodies.is_empty() {
            return;
        }
        self.timing.begin(self.config.lead, self.cadence);
        let Some(target) = self.timing.target(now) else { return };
        for body in &mut self.own.bodies {
            let (rules, predict) = (Arc::clone(&self.config.rules), self.config.predict);
            let begun = Reconciler::new(rules, predict, self.config.correction, now, target, &body.state);
            debug_assert!(begun.is_ok(), "configs have been checked");
            if let Ok(mut reconciler) = begun {
                reconciler.set_input(now, self.own.wanted);
                self.sender.sent_open = Some(reconciler.predictor().open_tick());
                body.reconciler = Some(reconciler);
            }
        }
    }

    /// Steers the prediction clock towards its target.
    pub(super) fn steer(&mut self, now: Timestamp) {
        let Some(offset) = self.timing.server_offset(now) else { return };
        let Some(first) = self.own.first() else { return };
        let rate = self.timing.lead.rate(ahead(first, now), offset);
        self.own.reconcilers_mut().for_each(|reconciler| reconciler.set_rate(now, rate));
    }
}
