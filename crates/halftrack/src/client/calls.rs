//! All calls that change a client: a flight recorder logs exactly these.

use super::lives::{Life, LifeEvent};
use super::{Client, ClientEvent, OrderRefused};
use crate::client::pace::Occasion;
use crate::game::Game;
use crate::interpolate::Turn;
use crate::lane::{LaneRouter, Link, MessageKind, SyncLink};
use crate::model::Input;
use crate::predict::Role;
use crate::reconcile::{Member, Reconciler};
use crate::session::{DisconnectReason, SessionState};
use crate::time::Timestamp;
use crate::wire::control::{FromClient, FromServer};
use crate::wire::{Frame, FrameReader};

impl<G: Game> Client<G> {
    /// Connects, if it is not connected or on its way.
    pub fn connect(&mut self, now: Timestamp) {
        let now = self.clamp(now);
        self.session.connect(now);
        self.follow_session(now);
    }

    /// Logs out and ends the session.
    pub fn logout(&mut self, now: Timestamp) {
        let now = self.clamp(now);
        self.session.logout();
        self.follow_session(now);
    }

    /// The player wants `input` from `now` on. It is settled: both ends simulate what the wire has.
    pub fn set_input(&mut self, now: Timestamp, mut input: G::Input) {
        let now = self.clamp(now);
        input.settle();
        let changed = input != self.own.wanted;
        self.own.wanted = input;
        if let Some(reconciler) = &mut self.own.reconciler {
            reconciler.set_input(now, input);
        }
        self.timing.occasion = Occasion::Frame;
        self.send_due(now);
        self.timing.occasion = Occasion::Timeout;
        // A change is sent at once, and so is a release: the server does not wait for the tick's end.
        // spec: LANE-06
        if changed {
            self.send_eagerly(now);
        }
    }

    /// Gives an order: reliably, in order, exactly once.
    ///
    /// # Errors
    /// When the player is not logged in, too many orders are not acknowledged yet, or the order is longer than
    /// [`Self::MAX_ORDER_BYTES`]. The session is not affected.
    pub fn order(&mut self, now: Timestamp, order: &[u8]) -> Result<(), OrderRefused> {
        self.clamp(now);
        if self.session.state() != SessionState::LoggedIn {
            return Err(OrderRefused::NotLoggedIn);
        }
        let mut frame = Vec::with_capacity(order.len().min(Self::MAX_ORDER_BYTES) + Frame::HEADER);
        // spec: GAME-01
        if !(Frame { kind: FromClient::SHOOT_INPUT, body: order }).append_to(&mut frame) {
            return Err(OrderRefused::TooLong { bytes: order.len(), max: Self::MAX_ORDER_BYTES });
        }
        // The log is a queue: a newer order never replaces one that waits.
        // spec: LANE-07
        // Refused before the log overflows: a session with an overflowed log cannot be resumed.
        let log = self.session.log();
        if !log.has_room_for(frame.len()) || log.push(&frame).is_err() {
            return Err(OrderRefused::Full);
        }
        self.flush_log();
        Ok(())
    }

    /// A connection was made.
    pub fn handle_connected(&mut self, now: Timestamp, sync_link: SyncLink) {
        let now = self.clamp(now);
        self.router = LaneRouter::new(self.config.policy, sync_link);
        self.reader = FrameReader::default();
        self.out.clear();
        self.sender.connected();
        self.watch = None;
        self.session.handle_connected(now);
        self.follow_session(now);
    }

    /// The connection is gone, or could not be made; `reason` if the server said why.
    pub fn handle_disconnected(&mut self, now: Timestamp, reason: Option<DisconnectReason>) {
        let now = self.clamp(now);
        self.session.handle_disconnected(now, reason.and_then(DisconnectReason::end));
        self.follow_session(now);
    }

    /// Bytes of the reliable stream have arrived.
    pub fn handle_stream(&mut self, now: Timestamp, mut bytes: &[u8]) {
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
        let now = self.clamp(now);
        self.session.handle_heard(now);
        self.hear_datagram(now);
        self.receive_snapshot(now, bytes);
    }

    /// Time has passed. Early, late and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Timestamp) {
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

    /// Brings everything to `now` for a frame. Returns the player's visible pose, once there is one.
    pub fn frame(&mut self, now: Timestamp) -> Option<G::Pose> {
        let now = self.clamp(now);
        self.timing.pace.frame(now);
        self.timing.lead.set_frames(self.timing.pace.period());
        self.timing.occasion = Occasion::Frame;
        self.pass(now);
        self.send_ahead(now);
        self.timing.occasion = Occasion::Timeout;
        self.draw(now)
    }

    /// Draws every body. Returns the visible pose of the player's first.
    fn draw(&mut self, now: Timestamp) -> Option<G::Pose> {
        let Self { own, others, lives, .. } = self;
        if let Some(reconciler) = &mut own.reconciler {
            reconciler.frame_among(now, others);
            lives.predicted(reconciler.predictor());
            for (id, visible) in reconciler.take_left() {
                others.remotes.take_over(id, visible);
                lives.left(id);
            }
        }
        self.leave_out();
        let Self { own, others, lives, carriers, cadence, .. } = self;
        others.remotes.frame(now, self.session.player(), &others.crowd);
        for (id, turn) in others.remotes.take_turns() {
            let life = if turn == Turn::Appeared { Life::Born } else { Life::Ended };
            lives.drawn(id, life, *cadence, &others.crowd);
        }
        carriers.draw(now, own, others);
        own.reconciler.as_ref().and_then(Reconciler::visible).copied()
    }

    /// Lets the others be drawn without the group, and without bodies that have ended in it.
    fn leave_out(&mut self) {
        let Self { own, others, lives, left_out, .. } = self;
        left_out.clear();
        let members = own.reconciler.iter().flat_map(Reconciler::members);
        left_out.extend(members.filter(|member| member.role() != Role::Own).map(Member::id));
        left_out.extend(lives.over());
        left_out.sort_unstable();
        left_out.dedup();
        others.remotes.leave_out(left_out);
    }

    /// The next birth or end of an emitted body: see [`LifeEvent`].
    pub fn poll_life(&mut self) -> Option<LifeEvent<G>> {
        self.lives.poll()
    }

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        // Only while logged in: a cut session repeats nothing, and its host would be woken forever.
        let repeat_at = self.sender.repeat_at.filter(|_| self.session.state() == SessionState::LoggedIn);
        let due = [self.session.poll_timeout(), self.next_boundary(), repeat_at, self.sync_due()];
        due.into_iter().flatten().min()
    }

    /// The next event for the host.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Appends bytes for the reliable stream to `into`. Returns whether there were any.
    pub fn poll_stream(&mut self, into: &mut Vec<u8>) -> bool {
        let mut any = !self.out.is_empty();
        into.append(&mut self.out);
        // spec: LANE-05, LANE-08
        if self.router.link(MessageKind::MoveInput) == Link::Reliable
            && let Some(body) = self.sender.take_for_stream()
        {
            any |= Frame { kind: FromClient::MOVE_INPUT, body }.append_to(into);
        }
        any
    }

    /// The next datagram. A newer one replaces one that you did not take, and holds all of its ticks.
    pub fn poll_datagram(&mut self) -> Option<&[u8]> {
        self.sender.take_datagram(self.router.link(MessageKind::MoveInput) == Link::Reliable)
    }
}
