//! Snapshots in a client: clock, other bodies, the player's own body.

use std::sync::Arc;

use super::group::Moment;
use super::pace::Occasion;
use super::timing::Course;
use super::{Client, ahead};
use crate::cause::{Cause, Causes};
use crate::game::{Game, Neighbour};
use crate::id::Driver;
use crate::predict::{Actor, Authority, Role};
use crate::reconcile::{Member, Reconciler};
use crate::session::SessionState;
use crate::snapshot::{Header, OwnBodies};
use crate::tick::{Epoch, Tick};
use crate::time::Timestamp;
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
        let known = &self.own.ids;
        let read = Header::read((tick, epoch), &mut bits)
            .and_then(|header| section.read(known, &mut bits).map(|()| header));
        match read {
            Ok(header) if (header.epoch, header.tick) <= newest => self.stats.stale += 1,
            Ok(header) if header.tick > Tick::MAX_STATE => self.stats.malformed += 1,
            Ok(header) => self.take_snapshot(now, &header, &section, &mut bits),
            Err(_) => self.stats.malformed += 1,
        }
        self.own.section = section;
    }

    fn take_snapshot(
        &mut self,
        now: Timestamp,
        header: &Header,
        section: &OwnBodies<G>,
        bits: &mut BitReader<'_>,
    ) {
        self.catch_up(now);
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
        self.send_before_state(now);
        self.take_states(now, section, |place| by_input.union(section.causes_of(place, fresh)));
        self.reconcile(now);
        while let Some(late) = self.own.fates.next_late(header.tick, &section.fates) {
            if let Some(reconciler) = &mut self.own.reconciler {
                reconciler.revise(late, Cause::LateInput);
            }
        }
        self.steer(now);
    }

    /// Replaces the states of the player's bodies by those of a snapshot, and chooses the group around them.
    pub(super) fn take_states(
        &mut self,
        now: Timestamp,
        section: &OwnBodies<G>,
        causes: impl Fn(usize) -> Causes,
    ) {
        let Self { own, others, lives, config, session, timing, cadence, .. } = self;
        let Some((epoch, tick)) = own.newest else { return };
        own.ids.clone_from(&section.ids);
        let driver = session.player().map_or(Driver::Nothing, Driver::Player);
        let bodies = section.ids.iter().zip(&section.bodies).zip(&section.emitted).enumerate();
        let mut actors = bodies.map(|(place, ((id, body), emitted))| Actor {
            emitted: *emitted,
            causes: causes(place),
            ..Actor::new(Role::Own, Neighbour::new(*id, driver, *body), tick)
        });
        let Some(first) = actors.next() else {
            for member in own.reconciler.iter().flat_map(Reconciler::members) {
                if let Some(visible) = member.visible().filter(|_| member.role() != Role::Own) {
                    others.remotes.take_over(member.id(), *visible);
                }
            }
            own.end_prediction();
            lives.end_prediction(&others.crowd, *cadence);
            return;
        };
        let state = own.state.get_or_insert_with(|| Authority::of(epoch, tick, first));
        state.restart(epoch, tick, first);
        actors.for_each(|actor| state.push(actor));
        let predictor = own.reconciler.as_ref().map(Reconciler::predictor);
        let moment = Moment {
            rules: &*config.rules,
            config: config.group,
            cadence: *cadence,
            now,
            time: predictor.map(|known| known.time()).or_else(|| timing.target(now)),
            longest: config.predict.max_pending,
            crowd: &others.crowd,
            scene: predictor
                .filter(|known| known.baseline().epoch == epoch)
                .map(|known| (known.scene(), known.baseline().tick)),
            drawn: own.reconciler.as_ref().map_or(&[], Reconciler::members),
        };
        own.group.choose(&moment, state);
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

    /// Sends input that is due, before a state acknowledges its tick.
    ///
    /// With a short round trip the state of a tick can arrive before the frame that would have sent its input. The input
    /// would be acknowledged unsent: the server would never get it, nor report how late it was.
    fn send_before_state(&mut self, now: Timestamp) {
        // spec: CLOCK-03
        let occasion = core::mem::replace(&mut self.timing.occasion, Occasion::Arrival);
        self.send_due(now);
        self.timing.occasion = occasion;
    }

    /// Brings the bodies of the prediction to `now`, before a state of the others is read: a correction begins where the
    /// screen is, and a body that is drawn behind the others' newest state must not jump to what that says.
    pub(super) fn catch_up(&mut self, now: Timestamp) {
        let Self { own, others, lives, .. } = self;
        if let Some(reconciler) = &mut own.reconciler {
            reconciler.catch_up(now, others);
            lives.predicted(reconciler.predictor());
        }
    }

    /// Lets prediction go on from the newest states.
    fn reconcile(&mut self, now: Timestamp) {
        // Unless the server's time is not known yet.
        let Some(target) = self.timing.target(now) else { return };
        let Self { own, others, .. } = self;
        let Some(state) = &own.state else { return };
        let Some(reconciler) = &mut own.reconciler else {
            self.begin(now);
            return;
        };
        let wrong = |reconciler: &Reconciler<G>| {
            let of = |actor: &Actor<G>| reconciler.member(actor.id).map_or(0, Member::mispredicted);
            let by_input =
                state.actors().filter(|actor| actor.role == Role::Own && actor.causes.is_of_input());
            by_input.map(of).sum::<u64>()
        };
        let before = wrong(reconciler);
        // Stale snapshots were dropped before.
        let accepted = reconciler.accept_among(now, target, state, others);
        debug_assert!(accepted.is_ok(), "the newest state is accepted");
        if accepted.is_ok_and(|accepted| accepted.resync.is_some()) {
            own.resynced = Some(now);
        }
        self.lives.predicted(reconciler.predictor());
        self.lives.accepted(reconciler.predictor(), state, &others.crowd);
        // Ticks that were pending across a restart are no samples of late input.
        let lasting = self.config.predict.max_pending * 2;
        let resynced = own.resynced.is_some_and(|at| now.saturating_since(at) <= lasting);
        self.stats.mispredicted += u64::from(wrong(reconciler) > before && !resynced);
    }

    /// Begins to predict the player's bodies, if there are any.
    fn begin(&mut self, now: Timestamp) {
        self.timing.begin(self.config.lead, self.cadence);
        let (Some(target), Some(state)) = (self.timing.target(now), &self.own.state) else { return };
        let (rules, predict) = (Arc::clone(&self.config.rules), self.config.predict);
        let configs = (predict, self.config.correction);
        let start = (now, target, self.own.wanted);
        let begun = Reconciler::new_among(rules, configs, start, state, &mut self.others);
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
