//! What a client tells the server of its input, and when.

use core::time::Duration;

use super::Client;
use crate::cause::Cause;
use crate::exact::exact;
use crate::game::Game;
use crate::lane::{Link, MessageKind};
use crate::predict::Status;
use crate::reconcile::Reconciler;
use crate::session::SessionState;
use crate::sizes::CorrectionSizes;
use crate::snapshot::BodyCode;
use crate::stats::ByCause;
use crate::tick::Tick;
use crate::time::{Timestamp, signed_difference, whole_micros};
use crate::wire::control::{FromClient, Report};
use crate::wire::{Completeness, MoveInput};

/// What the server has been told of corrections, of the reconciler that is at work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    corrections: ByCause,
    sizes: CorrectionSizes,
    snapped: u64,
    next: Timestamp,
}

/// What an input message tells besides the ticks that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Closed,
    /// The open tick, which can still be extended.
    Open,
    /// The open tick, which will not be.
    Complete,
}

impl<G: BodyCode> Client<G> {
    /// Sends what a tick's end, or time, has made due.
    pub(super) fn send_due(&mut self, now: Timestamp) {
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        self.steer(now);
        let open = self.reconciler.as_mut().map(|reconciler| {
            reconciler.update(now);
            reconciler.predictor().open_tick()
        });
        if let (true, Some(open), Some(reconciler)) = (open > self.open, open, &self.reconciler) {
            let ago = reconciler.predictor().time().saturating_since(self.cadence.start_of(open));
            self.pace.tick_ended(self.occasion, ago);
        }
        self.open = open;
        let idle = self.idle_from().is_none_or(|idle| now >= idle);
        if open != self.sent_open || (idle && self.own.is_some()) {
            self.send(now, What::Closed);
            self.sent_open = open;
        }
        if self.repeat_at.is_some_and(|repeat| now >= repeat) {
            self.repeat_at = None;
            // A stream does not lose the first copy. A second one may be lost itself, and hold up all behind it.
            if self.router.link(MessageKind::MoveInput) == Link::Sync {
                self.send(now, What::Open);
            }
        }
    }

    /// From when on something is sent even if no tick has ended: acknowledgements and the round trip must go on. Later
    /// than a tick that a slowed clock makes longer.
    pub(super) fn idle_from(&self) -> Option<Timestamp> {
        self.last_sent.map(|last| last + self.cadence.interval() * 3 / 2)
    }

    /// Sends the open tick at once, and again a little later. A stick that moves on every frame does not send more
    /// often than the tick can take changes.
    pub(super) fn send_eagerly(&mut self, now: Timestamp) {
        if self.session.state() != SessionState::LoggedIn || self.reconciler.is_none() {
            return;
        }
        let spacing = self.cadence.interval() / 4;
        let too_soon = self.repeat_at.is_some() && self.last_sent.is_some_and(|last| now < last + spacing);
        if !too_soon {
            self.send(now, What::Open);
            self.repeat_at = Some(now + self.config.repeat);
        }
    }

    /// Who acts only on frames knows now what will be until the next one: a tick that ends before it is sent at once.
    pub(super) fn send_ahead(&mut self, now: Timestamp) {
        let Some(period) = self.pace.period().filter(|period| *period <= self.cadence.interval()) else {
            return;
        };
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        let Some(reconciler) = &self.reconciler else { return };
        let predictor = reconciler.predictor();
        let ends = self.cadence.end_of(predictor.open_tick()) <= predictor.clock().at(now + period);
        if ends && self.sent_open == Some(predictor.open_tick()) && predictor.status() == Status::Predicting {
            let next = predictor.open_tick().next();
            self.send(now, What::Complete);
            // Its end is nothing new to the server then, and a change in it has been told again.
            (self.sent_open, self.repeat_at) = (Some(next), None);
        }
    }

    pub(super) fn send(&mut self, now: Timestamp, what: What) {
        let mut message = core::mem::take(&mut self.message);
        message.ticks.clear();
        message.completeness = Completeness::Closed;
        if let Some(reconciler) = &mut self.reconciler {
            let written = match what {
                What::Closed => false,
                What::Open => reconciler.write_open(&mut message),
                What::Complete => reconciler.write_complete(&mut message),
            };
            if !written {
                reconciler.write_closed(&mut message);
            }
            self.stats.eager_inputs += u64::from(written && what == What::Open);
        }
        self.seq = self.seq.next();
        message.seq = self.seq;
        message.ack = self.acknowledgement(now);
        self.datagram.resize(Self::MAX_DATAGRAM, 0);
        let mut length = message.encode(&mut self.datagram);
        while length.is_none() && !message.ticks.is_empty() {
            // What is oldest is too late anyway.
            message.ticks.drain(..message.ticks.len().div_ceil(4));
            length = message.encode(&mut self.datagram);
        }
        self.datagram.truncate(length.unwrap_or(0));
        self.taken = length.is_none();
        self.plan_probe(now);
        self.note_sent(now, &message);
        self.stats.inputs += 1;
        self.message = message;
    }

    /// The newest snapshot that the server may build on; none when everything is to be told in full.
    pub(super) fn acknowledgement(&mut self, now: Timestamp) -> Option<Tick> {
        if self.needs_full && now >= self.next_full_request {
            self.next_full_request = now + Self::FULL_REQUEST;
            self.stats.full_requests += 1;
            return None;
        }
        self.crowd.newest()
    }

    pub(super) fn note_sent(&mut self, now: Timestamp, message: &MoveInput<G::Input>) {
        self.last_sent = Some(now);
        if self.sent.len() >= Self::MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back((message.seq, now));
        let Some(reconciler) = &self.reconciler else { return };
        let end = self.cadence.end_of(message.newest);
        let prompt = reconciler.predictor().time().saturating_since(end) < Self::HITCH;
        // A copy of what was sent before says nothing of when the first one arrived.
        let news = self.sent_open.is_none_or(|sent| message.newest >= sent);
        if message.completeness == Completeness::Closed && !message.ticks.is_empty() && prompt && news {
            let before_end = signed_difference(end.as_micros(), now.as_micros());
            self.lead.set_link(self.router.link(MessageKind::MoveInput));
            self.lead.sent(now, message.seq, ahead(reconciler, now), before_end);
        }
    }

    /// Tells the server's operator how predictions were corrected, now and then, when they were.
    pub(super) fn report(&mut self, now: Timestamp) {
        const EVERY: Duration = Duration::from_secs(2);
        let logged_in = self.session.state() == SessionState::LoggedIn;
        let Some(reconciler) = self.reconciler.as_ref().filter(|_| logged_in && now >= self.reported.next)
        else {
            return;
        };
        self.reported.next = now + EVERY;
        let stats = reconciler.stats();
        let (mut corrections, mut sizes) = (stats.causes, stats.sizes);
        // Lost or late: for these that is not settled yet.
        let lost = reconciler.recent().filter(|diagnosis| diagnosis.cause == Some(Cause::LostInput));
        for diagnosis in lost.filter(|diagnosis| self.fates.is_unsettled(diagnosis.server_tick)) {
            corrections.reduce(Cause::LostInput, 1);
            let (distance, angle) = (diagnosis.correction_distance, diagnosis.correction_angle);
            sizes.forget(Cause::LostInput, distance, angle);
        }
        let snapped = u16::try_from(stats.snapped.saturating_sub(self.reported.snapped)).unwrap_or(u16::MAX);
        let corrections = corrections.take_since(&mut self.reported.corrections);
        let sizes = sizes.take_since(&mut self.reported.sizes);
        self.reported.snapped += u64::from(snapped);
        let report = Report { corrections, snapped, sizes };
        if report != Report::default() {
            let fits = FromClient::Report(report).append_to(&mut self.out);
            debug_assert!(fits, "a message of ours fits into a frame");
        }
    }

    /// When the open tick ends, by our own clock.
    pub(super) fn next_boundary(&self) -> Option<Timestamp> {
        if self.session.state() != SessionState::LoggedIn || self.own.is_none() {
            return None;
        }
        let idle = self.idle_from();
        let Some(reconciler) = &self.reconciler else { return idle };
        let predictor = reconciler.predictor();
        if predictor.status() == Status::Starved {
            // The open tick does not end before a state comes: whoever waited for it would never sleep.
            return idle;
        }
        let left =
            self.cadence.end_of(predictor.open_tick()).saturating_since(predictor.clock().at(self.now));
        let rate = u64::try_from(1_000_000 + i64::from(predictor.clock().rate().ppm())).unwrap_or(1_000_000);
        // Rounded up: a call that comes too early would only have to be made again.
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

exact!([] Reported { corrections, sizes, snapped, next });
