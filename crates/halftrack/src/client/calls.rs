//! What a client is told and what is taken from it: all that changes it, recorded if it is.

use super::{Client, ClientEvent, OrderRefused};
use crate::client::pace::Occasion;
use crate::flight::{Call, FlightStats, Recorder};
use crate::lane::{LaneRouter, Link, MessageKind, SyncLink};
use crate::session::{DisconnectReason, SessionState};
use crate::snapshot::BodyCode;
use crate::time::Timestamp;
use crate::wire::control::{FromClient, FromServer};
use crate::wire::{Frame, FrameReader};

impl<G: BodyCode> Client<G> {
    /// Connects, if it is not connected or on its way.
    pub fn connect(&mut self, now: Timestamp) {
        self.note(now, &Call::Connect);
        let now = self.clamp(now);
        self.session.connect(now);
        self.follow_session(now);
    }

    /// Leaves.
    pub fn logout(&mut self, now: Timestamp) {
        self.note(now, &Call::Logout);
        let now = self.clamp(now);
        self.session.logout();
        self.follow_session(now);
    }

    /// The player wants `input` from `now` on.
    pub fn set_input(&mut self, now: Timestamp, input: G::Input) {
        self.note(now, &Call::SetInput(input));
        let now = self.clamp(now);
        let changed = input != self.wanted;
        self.wanted = input;
        if let Some(reconciler) = &mut self.reconciler {
            reconciler.set_input(now, input);
        }
        self.occasion = Occasion::Frame;
        self.send_due(now);
        self.occasion = Occasion::Timeout;
        // A change is worth a datagram of its own, and so is a release: the server must not have to wait for a tick's
        // end to know.
        // spec: LANE-06
        if changed {
            self.send_eagerly(now);
        }
    }

    /// Gives an order: reliably, in order, exactly once.
    ///
    /// # Errors
    /// When the player is not in, too much is on its way already, or the order is longer than
    /// [`Self::MAX_ORDER_BYTES`]. The session goes on as if nothing had been asked.
    pub fn order(&mut self, now: Timestamp, order: &[u8]) -> Result<(), OrderRefused> {
        self.note(now, &Call::Order(order));
        self.clamp(now);
        if self.session.state() != SessionState::LoggedIn {
            return Err(OrderRefused::NotLoggedIn);
        }
        let mut frame = Vec::with_capacity(order.len().min(Self::MAX_ORDER_BYTES) + Frame::HEADER);
        // spec: GAME-01
        if !(Frame { kind: FromClient::SHOOT_INPUT, body: order }).append_to(&mut frame) {
            return Err(OrderRefused::TooLong { bytes: order.len(), max: Self::MAX_ORDER_BYTES });
        }
        // Into the log and out of it in order: a newer order never replaces one that waits.
        // spec: LANE-07
        // An order for which there is no room must not cost the session: a log that has overflowed cannot be resumed.
        let log = self.session.log();
        if !log.has_room_for(frame.len()) || log.push(&frame).is_err() {
            return Err(OrderRefused::Full);
        }
        self.flush_log();
        Ok(())
    }

    /// A connection was made.
    pub fn handle_connected(&mut self, now: Timestamp, sync_link: SyncLink) {
        self.note(now, &Call::Connected(sync_link));
        let now = self.clamp(now);
        self.router = LaneRouter::new(self.config.policy, sync_link);
        self.reader = FrameReader::default();
        self.out.clear();
        (self.taken, self.probe, self.watch) = (true, false, None);
        self.session.handle_connected(now);
        self.follow_session(now);
    }

    /// The connection is gone, or could not be made; `reason` if the server said why.
    pub fn handle_disconnected(&mut self, now: Timestamp, reason: Option<DisconnectReason>) {
        self.note(now, &Call::Disconnected(reason));
        let now = self.clamp(now);
        self.session.handle_disconnected(now, reason.and_then(DisconnectReason::end));
        self.follow_session(now);
    }

    /// Bytes of the reliable stream have arrived.
    pub fn handle_stream(&mut self, now: Timestamp, mut bytes: &[u8]) {
        self.note(now, &Call::Stream(bytes));
        let now = self.clamp(now);
        loop {
            let message = match self.reader.next(&mut bytes) {
                Ok(None) => break,
                Ok(Some(frame)) => FromServer::read(frame),
                Err(error) => Err(error),
            };
            self.session.handle_heard(now);
            match message {
                Ok(message) => self.act_on(now, message),
                Err(_) => {
                    self.stats.malformed += 1;
                    self.session.fail();
                    break;
                }
            }
        }
        self.follow_session(now);
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, now: Timestamp, bytes: &[u8]) {
        self.note(now, &Call::Datagram(bytes));
        let now = self.clamp(now);
        self.session.handle_heard(now);
        self.hear_datagram(now);
        self.receive_snapshot(now, bytes);
    }

    /// Time has passed. Early, late and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.note(now, &Call::Timeout);
        let now = self.clamp(now);
        self.pass(now);
    }

    fn pass(&mut self, now: Timestamp) {
        self.check_sync(now);
        self.session.handle_timeout(now);
        self.follow_session(now);
        self.send_due(now);
        self.report(now);
    }

    /// A frame is drawn at `now`: everything is brought there. Gives the player's visible pose, once there is one.
    pub fn frame(&mut self, now: Timestamp) -> Option<G::Pose> {
        self.note(now, &Call::Frame);
        let now = self.clamp(now);
        self.pace.frame(now);
        self.lead.set_frames(self.pace.period());
        self.occasion = Occasion::Frame;
        self.pass(now);
        self.send_ahead(now);
        self.occasion = Occasion::Timeout;
        self.remotes.frame(now, self.session.player(), &self.crowd);
        let pose = self.reconciler.as_mut().map(|reconciler| reconciler.frame(now));
        if let Some(mut recorder) = self.recorder.take() {
            recorder.shown(self);
            self.recorder = Some(recorder);
        }
        pose
    }

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        // Whoever is cut or has left sends nothing again: it would be asked for without end.
        let repeat_at = self.repeat_at.filter(|_| self.session.state() == SessionState::LoggedIn);
        let due = [self.session.poll_timeout(), self.next_boundary(), repeat_at, self.sync_due()];
        due.into_iter().flatten().min()
    }

    /// What the host is told next.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let event = self.events.pop_front();
        if event.is_some() {
            self.note_taken(&Call::PollEvent);
        }
        event
    }

    /// Appends to `into` what is to be written to the reliable stream. Gives whether there was anything.
    pub fn poll_stream(&mut self, into: &mut Vec<u8>) -> bool {
        let mut any = !self.out.is_empty();
        into.append(&mut self.out);
        // spec: LANE-05, LANE-08
        if self.router.link(MessageKind::MoveInput) == Link::Reliable && !self.taken {
            self.taken = true;
            any |= Frame { kind: FromClient::MOVE_INPUT, body: &self.datagram }.append_to(into);
        }
        if any {
            self.note_taken(&Call::PollStream);
        }
        any
    }

    /// The datagram that is to be sent. One that was not taken has been replaced by a newer one, which tells the same
    /// and more.
    pub fn poll_datagram(&mut self) -> Option<&[u8]> {
        let by_datagram = self.router.link(MessageKind::MoveInput) == Link::Sync;
        let due = self.probe || (by_datagram && !self.taken);
        if due {
            self.probe = false;
            self.taken |= by_datagram;
            self.note_taken(&Call::PollDatagram);
        }
        due.then_some(self.datagram.as_slice())
    }
}

/// The flight recorder, which [`Client::record`] begins.
impl<G: BodyCode> Client<G> {
    /// What happened of late, as one piece that replays exactly (`docs/FLIGHT.md`); `note` is for whoever reads it. `None`
    /// when nothing is recorded. At most as long as the ring, and a little.
    pub fn flight_report(&mut self, note: &str) -> Option<Vec<u8>> {
        let mut recorder = self.recorder.take()?;
        let report = recorder.report(self, note);
        self.recorder = Some(recorder);
        Some(report)
    }

    /// What is recorded at the moment; `None` when nothing is.
    pub fn flight_stats(&self) -> Option<FlightStats> {
        self.recorder.as_ref().map(|recorder| recorder.stats())
    }

    pub(crate) fn set_recorder(&mut self, recorder: Box<dyn Recorder<G>>) {
        self.recorder = Some(recorder);
    }

    /// A call is about to be made. Not inlined: every call does it, and the page would be longer.
    #[inline(never)]
    fn note(&mut self, now: Timestamp, call: &Call<'_, G>) {
        if let Some(mut recorder) = self.recorder.take() {
            recorder.call(self, now, call);
            self.recorder = Some(recorder);
        }
    }

    /// Something was taken.
    #[inline(never)]
    fn note_taken(&mut self, call: &Call<'_, G>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.taken(call);
        }
    }
}
