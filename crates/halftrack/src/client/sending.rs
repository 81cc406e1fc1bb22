//! When a client sends its input.

use core::time::Duration;

use super::Client;
use super::pace::Occasion;
use super::sender::Encoded;
use crate::game::Game;
use crate::input::{Completeness, Inputs, Upto};
use crate::lane::{Link, MessageKind};
use crate::predict::Status;
use crate::reconcile::Reconciler;
use crate::session::SessionState;
use crate::tick::Tick;
use crate::time::{Timestamp, signed_difference, whole_micros};
use crate::wire::control::FromClient;

impl<G: Game> Client<G> {
    /// Sends input when a tick ended, or when nothing was sent for too long.
    pub(super) fn send_due(&mut self, now: Timestamp) {
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        self.steer(now);
        self.own.reconciler.iter_mut().for_each(|reconciler| reconciler.update(now));
        let open = self.own.reconciler.as_ref().map(|reconciler| reconciler.predictor().open_tick());
        if let (true, Some(open), Some(reconciler)) = (open > self.own.open, open, &self.own.reconciler) {
            let ago = reconciler.predictor().time().saturating_since(self.cadence.start_of(open));
            self.timing.pace.tick_ended(self.timing.occasion, ago);
        }
        self.own.open = open;
        let idle = self.sender.idle_from(self.cadence.interval()).is_none_or(|idle| now >= idle);
        // A state that arrives is no occasion to say that nothing has changed.
        let idle = idle && self.own.newest.is_some() && self.timing.occasion != Occasion::Arrival;
        if open != self.sender.sent_open || idle {
            self.send(now, Upto::Closed);
            self.sender.sent_open = open;
        }
        if self.sender.repeat_at.is_some_and(|repeat| now >= repeat) {
            self.sender.repeat_at = None;
            // A stream loses nothing, and a second copy would only delay the bytes behind it.
            if self.router.link(MessageKind::MoveInput) == Link::Sync {
                self.send(now, Upto::Open);
            }
        }
    }

    /// Sends the open tick at once, and again a little later. A stick that moves on every frame does not send more
    /// often than the tick can take changes.
    pub(super) fn send_eagerly(&mut self, now: Timestamp) {
        if self.session.state() != SessionState::LoggedIn || self.own.reconciler.is_none() {
            return;
        }
        let spacing = self.cadence.interval() / 4;
        let too_soon =
            self.sender.repeat_at.is_some() && self.sender.last_sent.is_some_and(|last| now < last + spacing);
        if !too_soon {
            self.send(now, Upto::Open);
            self.sender.repeat_at = Some(now + self.config.repeat);
        }
    }

    /// A host that acts only on frames cannot change its input before the next one. So a tick that ends before that is sent
    /// at once, as complete.
    pub(super) fn send_ahead(&mut self, now: Timestamp) {
        let Some(period) = self.timing.pace.period().filter(|period| *period <= self.cadence.interval())
        else {
            return;
        };
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        let Some(reconciler) = &self.own.reconciler else { return };
        let predictor = reconciler.predictor();
        let ends = self.cadence.end_of(predictor.open_tick()) <= predictor.clock().at(now + period);
        if ends
            && self.sender.sent_open == Some(predictor.open_tick())
            && predictor.status() == Status::Predicting
        {
            let next = predictor.open_tick().next();
            self.send(now, Upto::Complete);
            // Its end needs no message of its own then, and its changes need no second copy.
            (self.sender.sent_open, self.sender.repeat_at) = (Some(next), None);
        }
    }

    pub(super) fn send(&mut self, now: Timestamp, upto: Upto) {
        let ack = self.others.acknowledge(now, &mut self.stats);
        let own = &mut self.own;
        let nothing = Inputs { newest: Tick::default(), completeness: Completeness::Closed };
        let mut eager = false;
        let encoded = self.sender.encode(now, ack, |ticks| {
            let inputs = own.take_inputs(upto, ticks).unwrap_or(nothing);
            eager = inputs.completeness == Completeness::Open;
            inputs
        });
        self.stats.eager_inputs += u64::from(eager);
        if self.router.needs_probes(MessageKind::MoveInput) {
            self.sender.plan_probe(now);
        }
        self.note_sent(now, encoded);
        self.stats.inputs += 1;
    }

    /// Tells the lead of a message that closes a tick.
    fn note_sent(&mut self, now: Timestamp, encoded: Encoded) {
        let Some(reconciler) = &self.own.reconciler else { return };
        let end = self.cadence.end_of(encoded.newest);
        let prompt = reconciler.predictor().time().saturating_since(end) < Self::HITCH;
        // A copy of an earlier message says nothing of when the first one arrived.
        let news = self.sender.sent_open.is_none_or(|sent| encoded.newest >= sent);
        if encoded.closes_a_tick && prompt && news {
            let before_end = signed_difference(end.as_micros(), now.as_micros());
            let ahead = ahead(reconciler, now);
            self.timing.lead.set_link(self.router.link(MessageKind::MoveInput));
            self.timing.lead.sent(now, encoded.seq, ahead, before_end);
        }
    }

    /// Reports to the server's operator how predictions were corrected.
    pub(super) fn report(&mut self, now: Timestamp) {
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        if let Some(report) = self.own.report(now) {
            let fits = FromClient::Report(report).append_to(&mut self.out);
            debug_assert!(fits, "a message of ours fits into a frame");
        }
    }

    /// When the open tick ends, by our own clock.
    pub(super) fn next_boundary(&self) -> Option<Timestamp> {
        if self.session.state() != SessionState::LoggedIn || self.own.newest.is_none() {
            return None;
        }
        let idle = self.sender.idle_from(self.cadence.interval());
        let Some(reconciler) = &self.own.reconciler else { return idle };
        let predictor = reconciler.predictor();
        if predictor.status() == Status::Starved {
            // The open tick does not end before a state comes: a host that waited for it would never sleep.
            return idle;
        }
        let left =
            self.cadence.end_of(predictor.open_tick()).saturating_since(predictor.clock().at(self.now));
        let rate = u64::try_from(1_000_000 + i64::from(predictor.clock().rate().ppm())).unwrap_or(1_000_000);
        // Rounded up: a call that comes too early has to be made again.
        let left = (whole_micros(left) * 1_000_000).div_ceil(rate) + 1;
        let boundary = self.now + Duration::from_micros(left);
        Some(idle.map_or(boundary, |idle| idle.min(boundary)).max(self.now + Duration::from_micros(1)))
    }
}

/// How far prediction is ahead of our own clock, in microseconds.
pub(super) fn ahead<G: Game>(reconciler: &Reconciler<G>, now: Timestamp) -> i64 {
    let time = i64::try_from(reconciler.predictor().clock().at(now).as_micros()).unwrap_or(i64::MAX);
    time.saturating_sub(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}
