//! The player's side: clock, input, prediction, reconciliation, other players and events, composed.
//!
//! ```text
//!   handle_stream ───► ClientSession ──► login, events          set_input ──► Reconciler ──► MoveInput
//!   handle_datagram ─► Header ──► ServerClock, LeadController ────── rate ──────┘  ▲
//!                      own body, fates ────────────────────────── Authority ───────┘
//!                      Crowd ──► surroundings, other players
//!   poll_stream, poll_datagram, poll_event, poll_timeout
//! ```
//!
//! `handle_*` is what the network tells us, verbs what the application tells us, `poll_*` what we tell both; getters show
//! the rest. Call [`Client::frame`] when a frame is drawn, and [`Client::handle_timeout`] when
//! [`Client::poll_timeout`] says so if the program can wake up by itself: input then leaves at the end of its tick and
//! not on the next frame.

mod config;
mod fates;
mod stats;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

pub use config::ClientConfig;
pub use stats::ClientStats;

use crate::cadence::Cadence;
use crate::cause::{Cause, Causes};
use crate::client::fates::Fates;
use crate::clock::{ClockSample, LeadController, ServerClock};
use crate::error::ConfigError;
use crate::game::Game;
use crate::id::{PlayerId, PlayerName};
use crate::lane::{LaneRouter, Link, MessageKind, SyncLink};
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::seq::Seq;
use crate::session::{ClientSession, DisconnectReason, SessionCommand, SessionState};
use crate::snapshot::{BodyCode, Crowd, Header, SnapshotError, TickFate, read_own};
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp, whole_micros};
use crate::wire::control::{FromClient, FromServer, HeartbeatReply, LoginAccepted, Restart, Welcome};
use crate::wire::{BitReader, Completeness, Frame, FrameReader, MoveInput, WireError};

/// What the host is told, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// Make a connection, and tell what became of it.
    Connect,
    /// Write what [`Client::poll_stream`] still has, and close the connection.
    Close,
    /// The session is somewhere else now.
    Session(SessionState),
    /// The session could not go on, and begins anew: everything that was known is forgotten.
    Restarted(Restart),
    /// A player is there.
    Joined(PlayerId, PlayerName),
    /// A player is gone.
    Left(PlayerId),
    /// Something happened in the game: reliably, in order, exactly once.
    Game(Vec<u8>),
}

/// An order that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderRefused {
    /// The player is not in.
    #[error("the player is not logged in")]
    NotLoggedIn,
    /// The server has not acknowledged enough of what was sent, or it is too long for a message.
    #[error("too much is on its way to the server already, or the order is too long")]
    Full,
}

/// The client of one player.
///
/// ```
/// use halftrack::cart::{Cart, CartBody, Rail};
/// use halftrack::client::{Client, ClientConfig, ClientEvent};
/// use halftrack::{Cadence, Game, MotionLimits, PlayerName, SyncLink, Timestamp};
///
/// let limits = MotionLimits {
///     top_speed: 8.0,
///     top_turn: 20.0,
///     grid_distance: 1.0 / 1024.0,
///     grid_angle: 1e-4,
///     max_hold: Cart::MAX_HOLD,
/// };
/// let config = ClientConfig::new(PlayerName::new("Ada")?, Cadence::default(), Rail::default(), limits);
/// let mut client = Client::<Cart>::new(config)?;
/// client.connect(Timestamp::ZERO);
/// assert!(client.poll_event().into_iter().any(|event| event == ClientEvent::Connect));
/// // The host makes a connection, and says so; the login is on its way.
/// client.handle_connected(Timestamp::from_micros(20_000), SyncLink::Present);
/// let mut stream = vec![];
/// assert!(client.poll_stream(&mut stream));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client<G: BodyCode> {
    config: ClientConfig<G>,
    cadence: Cadence,
    now: Timestamp,
    session: ClientSession,
    shown_state: SessionState,
    router: LaneRouter,
    reader: FrameReader,
    out: Vec<u8>,
    events: VecDeque<ClientEvent>,
    names: BTreeMap<PlayerId, PlayerName>,

    clock: ServerClock,
    lead: LeadController,
    reconciler: Option<Reconciler<G>>,
    crowd: Crowd<G>,
    /// The newest state of the player, and what it moves among.
    own: Option<Authority<G>>,
    fates: Fates,
    /// When everything may be asked for in full again.
    next_full_request: Timestamp,
    needs_full: bool,

    wanted: G::Input,
    seq: Seq,
    /// When recent input messages were sent.
    sent: VecDeque<(Seq, Timestamp)>,
    last_sent: Option<Timestamp>,
    /// The open tick when input was last sent.
    sent_open: Option<Tick>,
    /// When an open tick is to be sent again.
    repeat_at: Option<Timestamp>,
    /// The newest input message, not yet taken by the host.
    datagram: Vec<u8>,
    taken: bool,
    stats: ClientStats,

    // Memory that is used again.
    message: MoveInput<G::Input>,
    told: Vec<TickFate>,
    bodies: Vec<G::Body>,
}

impl<G: BodyCode> Client<G> {
    /// More input messages than are ever on the way.
    const MAX_SENT: usize = 256;
    /// The longest input message: what fits into one datagram on every path.
    const MAX_DATAGRAM: usize = 1_100;
    /// Events that wait for the host at most: a host that draws takes them every frame.
    const MAX_EVENTS: usize = 16_384;
    /// The most that waits to be written. Nothing of ours comes near it while the host writes at all.
    const MAX_OUT: usize = 256 * 1_024;
    /// Everything is asked for in full no more often than this.
    const FULL_REQUEST: Duration = Duration::from_millis(250);
    /// A snapshot that is so far ahead of the one before it is believed only if everybody in it adds up: one wrong bit in
    /// its tick must not make every true one stale.
    const BELIEVED_TICKS: u32 = 64;
    /// Input that is sent so long after its tick's end was held up by this side: it tells nothing of the network.
    const HITCH: Duration = Duration::from_millis(60);

    /// A client that nothing has been asked of.
    ///
    /// # Errors
    /// When a config is out of its range.
    pub fn new(config: ClientConfig<G>) -> Result<Self, ConfigError> {
        let cadence = config.predict.cadence;
        let session = ClientSession::new(config.session.clone());
        Ok(Self {
            cadence,
            now: Timestamp::ZERO,
            shown_state: session.state(),
            session,
            router: LaneRouter::new(config.policy, SyncLink::Absent),
            reader: FrameReader::default(),
            out: Vec::new(),
            events: VecDeque::new(),
            names: BTreeMap::new(),
            clock: ServerClock::default(),
            lead: LeadController::new(config.lead, Duration::ZERO),
            reconciler: None,
            crowd: Crowd::new(cadence, config.alone.clone()),
            own: None,
            fates: Fates::default(),
            next_full_request: Timestamp::ZERO,
            needs_full: false,
            wanted: G::neutral(),
            seq: Seq::default(),
            sent: VecDeque::with_capacity(Self::MAX_SENT),
            last_sent: None,
            sent_open: None,
            repeat_at: None,
            datagram: Vec::new(),
            taken: true,
            stats: ClientStats::default(),
            message: MoveInput::default(),
            told: Vec::new(),
            bodies: Vec::new(),
            config,
        })
    }

    /// Connects, if it is not connected or on its way.
    pub fn connect(&mut self, now: Timestamp) {
        let now = self.clamp(now);
        self.session.connect(now);
        self.follow_session(now);
    }

    /// Leaves.
    pub fn logout(&mut self, now: Timestamp) {
        let now = self.clamp(now);
        self.session.logout();
        self.follow_session(now);
    }

    /// The player wants `input` from `now` on.
    pub fn set_input(&mut self, now: Timestamp, input: G::Input) {
        let now = self.clamp(now);
        let changed = input != self.wanted;
        self.wanted = input;
        if let Some(reconciler) = &mut self.reconciler {
            reconciler.set_input(now, input);
        }
        self.send_due(now);
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
    /// When the player is not in, or too much is on its way already.
    pub fn order(&mut self, now: Timestamp, order: &[u8]) -> Result<(), OrderRefused> {
        self.clamp(now);
        if self.session.state() != SessionState::LoggedIn {
            return Err(OrderRefused::NotLoggedIn);
        }
        let mut frame = Vec::with_capacity(order.len() + 3);
        let fits = Frame { kind: FromClient::SHOOT_INPUT, body: order }.append_to(&mut frame);
        if !fits || self.session.log().push(&frame).is_err() {
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
        self.taken = true;
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
        self.receive_snapshot(now, bytes);
    }

    /// Time has passed. Early, late and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.clamp(now);
        self.session.handle_timeout(now);
        self.follow_session(now);
        self.send_due(now);
    }

    /// A frame is drawn at `now`: everything is brought there. Gives the player's visible pose, once there is one.
    pub fn frame(&mut self, now: Timestamp) -> Option<G::Pose> {
        let now = self.clamp(now);
        self.handle_timeout(now);
        self.reconciler.as_mut().map(|reconciler| reconciler.frame(now))
    }

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = [self.session.poll_timeout(), self.next_boundary(), self.repeat_at];
        due.into_iter().flatten().min()
    }

    /// What the host is told next.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
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
        any
    }

    /// The datagram that is to be sent. One that was not taken has been replaced by a newer one, which tells the same
    /// and more.
    pub fn poll_datagram(&mut self) -> Option<&[u8]> {
        let due = self.router.link(MessageKind::MoveInput) == Link::Sync && !self.taken;
        due.then(|| {
            self.taken = true;
            self.datagram.as_slice()
        })
    }

    /// Where the session is.
    pub fn state(&self) -> SessionState {
        self.session.state()
    }

    /// Who the player is, once it has been let in.
    pub fn player(&self) -> Option<PlayerId> {
        self.session.player()
    }

    /// What a player is called.
    pub fn name(&self, player: PlayerId) -> Option<&PlayerName> {
        self.names.get(&player)
    }

    /// Who is there.
    pub fn players(&self) -> impl Iterator<Item = (PlayerId, &PlayerName)> {
        self.names.iter().map(|(player, name)| (*player, name))
    }

    /// The player's body as it is predicted: what gameplay reads. From the welcome on there is one; until prediction
    /// has begun, it is the server's.
    pub fn predicted(&self) -> Option<&G::Body> {
        // spec: RECON-03
        let predicted = self.reconciler.as_ref().map(Reconciler::predicted);
        predicted.or(self.own.as_ref().map(|own| &own.body))
    }

    /// Prediction, reconciliation and presentation of the player's body, once they have begun.
    pub fn reconciler(&self) -> Option<&Reconciler<G>> {
        self.reconciler.as_ref()
    }

    /// Every body that the newest snapshot told of, the player's own included, as the server has it.
    pub fn crowd(&self) -> &Crowd<G> {
        &self.crowd
    }

    /// The newest state of a player that the server told, and its tick.
    pub fn authoritative(&self, player: PlayerId) -> Option<(Tick, &G::Body)> {
        let tick = self.crowd.newest()?;
        let (_, history) = self.crowd.bodies().find(|(each, _)| *each == player)?;
        history.get(tick).map(|record| (tick, &record.after))
    }

    /// What the server's clock shows at `now`, as far as is known.
    pub fn server_time(&self, now: Timestamp) -> Option<ServerTime> {
        self.clock.at(now)
    }

    /// The shortest round trip of the last seconds.
    pub fn round_trip(&self) -> Option<Duration> {
        self.clock.round_trip()
    }

    /// How far ahead of the server's clock prediction aims to be.
    pub fn lead(&self) -> Option<Duration> {
        self.server_offset(self.now).map(|offset| self.lead.lead(offset))
    }

    /// Where in the server's time the player acts now: the open tick and the grid moment in it, for orders.
    pub fn moment(&self) -> Option<(Tick, u8)> {
        let predictor = self.reconciler.as_ref()?.predictor();
        let into = predictor.time().saturating_since(self.cadence.start_of(predictor.open_tick()));
        let moments = whole_micros(into) * 256 / u64::from(self.cadence.micros());
        Some((predictor.open_tick(), u8::try_from(moments).unwrap_or(u8::MAX)))
    }

    /// The cadence.
    pub fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// What it has counted.
    pub fn stats(&self) -> &ClientStats {
        &self.stats
    }

    fn clamp(&mut self, now: Timestamp) -> Timestamp {
        self.stats.backwards += u64::from(now < self.now);
        self.now = self.now.max(now);
        self.now
    }

    fn tell(&mut self, event: ClientEvent) {
        if self.events.len() >= Self::MAX_EVENTS {
            self.events.pop_front();
            self.stats.events_dropped += 1;
        }
        self.events.push_back(event);
    }
}

/// The session and the reliable lane.
impl<G: BodyCode> Client<G> {
    /// Does what the session asks for, and tells where it is.
    fn follow_session(&mut self, now: Timestamp) {
        while let Some(command) = self.session.poll_command() {
            match command {
                SessionCommand::Connect => self.tell(ClientEvent::Connect),
                SessionCommand::Close => self.tell(ClientEvent::Close),
                SessionCommand::Send(message) => {
                    let fits = message.append_to(&mut self.out);
                    debug_assert!(fits, "a message of ours fits into a frame");
                }
                SessionCommand::Restarted(why) => self.tell(ClientEvent::Restarted(why)),
            }
        }
        if self.out.len() > Self::MAX_OUT {
            // Nobody writes it: the connection is as good as cut.
            self.out.clear();
            self.tell(ClientEvent::Close);
            self.session.handle_disconnected(now, None);
        }
        if self.session.state() != self.shown_state {
            self.shown_state = self.session.state();
            self.tell(ClientEvent::Session(self.shown_state));
        }
    }

    fn act_on(&mut self, now: Timestamp, message: FromServer) {
        match message {
            FromServer::LoginAccepted(accepted) => self.log_in(now, &accepted),
            FromServer::LoginRefused(refused) => self.session.handle_refused(refused),
            _ if self.session.state() != SessionState::LoggedIn => self.stats.early += 1,
            FromServer::Welcome(welcome) => self.take_welcome(&welcome),
            FromServer::HeartbeatReply(reply) => self.take_heartbeat(now, &reply),
            FromServer::PlayerState(bytes) => self.receive_snapshot(now, &bytes),
            FromServer::CombatEvent(bytes) => {
                self.session.log().receive();
                self.tell(ClientEvent::Game(bytes));
            }
            FromServer::PlayerJoined(joined) => {
                self.session.log().receive();
                self.names.insert(joined.player, joined.name.clone());
                self.tell(ClientEvent::Joined(joined.player, joined.name));
            }
            FromServer::PlayerLeft(left) => {
                self.session.log().receive();
                self.names.remove(&left.player);
                self.tell(ClientEvent::Left(left.player));
            }
        }
    }

    fn log_in(&mut self, now: Timestamp, accepted: &LoginAccepted) {
        self.session.handle_accepted(now, accepted);
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        if accepted.continuity.begins() {
            self.forget();
        }
        self.flush_log();
    }

    /// The session begins, or begins anew: nothing that was known holds.
    fn forget(&mut self) {
        self.names.clear();
        self.clock.reset();
        self.lead.reset();
        self.reconciler = None;
        self.crowd = Crowd::new(self.cadence, self.config.alone.clone());
        self.own = None;
        self.fates.reset();
        (self.sent_open, self.repeat_at, self.needs_full) = (None, None, false);
        self.sent.clear();
    }

    fn take_welcome(&mut self, welcome: &Welcome) {
        // spec: SESSION-10
        let mut bits = BitReader::new(&welcome.body);
        let Ok(body) = G::read_body(&G::blank(), &mut bits) else {
            self.stats.malformed += 1;
            return;
        };
        if self.own.is_none() {
            self.own = Some(Authority {
                epoch: Epoch::new(welcome.epoch),
                tick: Tick::new(welcome.tick).min(Tick::MAX_STATE),
                body,
                surroundings: self.config.alone.clone(),
                causes: Causes::NONE,
            });
        }
    }

    fn take_heartbeat(&mut self, now: Timestamp, reply: &HeartbeatReply) {
        // spec: CLOCK-01
        self.session.handle_heartbeat(now, reply);
        self.clock.sample(ClockSample {
            sent: Timestamp::from_micros(reply.sent_micros),
            held: Duration::from_micros(u64::from(reply.held_micros)),
            server: ServerTime::from_micros(reply.server_micros),
            received: now,
        });
    }

    fn flush_log(&mut self) {
        while let Some(frame) = self.session.log().poll() {
            self.out.extend_from_slice(frame);
        }
    }
}

/// What the server tells of the world.
impl<G: BodyCode> Client<G> {
    fn receive_snapshot(&mut self, now: Timestamp, bytes: &[u8]) {
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

    fn take_snapshot(
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
    fn take_clock(&mut self, now: Timestamp, header: &Header) {
        let steps = self.clock.steps();
        let known = self.own.as_ref().map(|own| own.epoch);
        if known != Some(header.epoch) {
            // The server's time has jumped: what was measured before says nothing of it.
            let round_trip = self.clock.round_trip().unwrap_or_default();
            self.clock.reset();
            self.lead.reset();
            self.clock.sample(ClockSample {
                sent: now - round_trip,
                held: Duration::ZERO,
                server: self.cadence.end_of(header.tick) + header.late.unwrap_or_default(),
                received: now,
            });
        }
        let Some(echo) = header.echo else { return };
        let sent = self.sent.iter().find(|(seq, _)| *seq == echo.seq).map(|(_, sent)| *sent);
        if let (Some(sent), Some(held), Some(late)) = (sent, echo.held, header.late) {
            let server = self.cadence.end_of(header.tick) + late;
            self.clock.sample(ClockSample { sent, held, server, received: now });
        }
        if self.clock.steps() != steps {
            // One of the two clocks has jumped: what was measured against ours holds no longer.
            self.lead.reset();
        }
        for margin in [echo.least, echo.newest].into_iter().flatten() {
            self.lead.report(margin.seq, margin.micros);
        }
    }

    /// Reads of everybody else. Gives whether that added up.
    fn take_crowd(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> bool {
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
    fn surround(&mut self, own: &mut Authority<G>) {
        let Some(player) = self.session.player() else { return };
        let newest = self.crowd.newest();
        self.bodies.clear();
        self.bodies.push(own.body);
        let others = self.crowd.bodies().filter(|(other, _)| *other != player);
        self.bodies.extend(others.filter_map(|(_, history)| Some(history.get(newest?)?.after)));
        G::surround(&mut own.surroundings, &self.bodies, 0, self.config.predict.max_pending);
    }

    fn reconcile(&mut self, now: Timestamp, own: &Authority<G>) {
        match self.target(now) {
            Some(target) if self.reconciler.is_some() => {
                if let Some(reconciler) = &mut self.reconciler {
                    // What is stale has been sorted out already.
                    let accepted = reconciler.accept(now, target, own);
                    debug_assert!(accepted.is_ok(), "the newest state is accepted");
                }
            }
            Some(_) => self.begin(now, own),
            // Nothing is known of the server's time yet.
            None => {}
        }
    }

    /// Prediction begins.
    fn begin(&mut self, now: Timestamp, own: &Authority<G>) {
        let round_trip = self.clock.round_trip().unwrap_or_default();
        self.lead = LeadController::new(self.config.lead, round_trip / 2 + self.cadence.interval() / 2);
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
    fn server_offset(&self, now: Timestamp) -> Option<i64> {
        let server = i64::try_from(self.clock.at(now)?.as_micros()).ok()?;
        server.checked_sub(i64::try_from(now.as_micros()).ok()?)
    }

    /// Where prediction should be at `now`: the server's time plus the lead.
    fn target(&self, now: Timestamp) -> Option<ServerTime> {
        let aim = self.lead.aim(self.server_offset(now)?);
        Some(ServerTime::from_micros(now.as_micros().saturating_add_signed(aim)))
    }

    /// Runs prediction towards where it should be.
    fn steer(&mut self, now: Timestamp) {
        let Some(offset) = self.server_offset(now) else { return };
        let Some(reconciler) = &mut self.reconciler else { return };
        let rate = self.lead.rate(ahead(reconciler, now), offset);
        reconciler.set_rate(now, rate);
    }
}

/// What is told to the server.
impl<G: BodyCode> Client<G> {
    /// Sends what a tick's end, or time, has made due.
    fn send_due(&mut self, now: Timestamp) {
        if self.session.state() != SessionState::LoggedIn {
            return;
        }
        self.steer(now);
        let open = self.reconciler.as_mut().map(|reconciler| {
            reconciler.update(now);
            reconciler.predictor().open_tick()
        });
        let idle = self.idle_from().is_none_or(|idle| now >= idle);
        if open != self.sent_open || (idle && self.own.is_some()) {
            self.send(now, Completeness::Closed);
            self.sent_open = open;
        }
        if self.repeat_at.is_some_and(|repeat| now >= repeat) {
            self.repeat_at = None;
            self.send(now, Completeness::Open);
        }
    }

    /// From when on something is sent even if no tick has ended: acknowledgements and the round trip must go on. Later
    /// than a tick that a slowed clock makes longer.
    fn idle_from(&self) -> Option<Timestamp> {
        self.last_sent.map(|last| last + self.cadence.interval() * 3 / 2)
    }

    /// Sends the open tick at once, and again a little later. A stick that moves on every frame does not send more
    /// often than the tick can take changes.
    fn send_eagerly(&mut self, now: Timestamp) {
        if self.session.state() != SessionState::LoggedIn || self.reconciler.is_none() {
            return;
        }
        let spacing = self.cadence.interval() / 4;
        let too_soon = self.repeat_at.is_some() && self.last_sent.is_some_and(|last| now < last + spacing);
        if !too_soon {
            self.send(now, Completeness::Open);
            self.repeat_at = Some(now + self.config.repeat);
        }
    }

    fn send(&mut self, now: Timestamp, completeness: Completeness) {
        let mut message = core::mem::take(&mut self.message);
        message.ticks.clear();
        message.completeness = Completeness::Closed;
        if let Some(reconciler) = &mut self.reconciler {
            let open = completeness == Completeness::Open && reconciler.write_open(&mut message);
            if !open {
                reconciler.write_closed(&mut message);
            }
            self.stats.eager_inputs += u64::from(open);
        }
        self.seq = self.seq.next();
        message.seq = self.seq;
        message.sent_micros = u32::try_from(now.as_micros() & u64::from(u32::MAX)).unwrap_or(0);
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
        self.note_sent(now, &message);
        self.stats.inputs += 1;
        self.message = message;
    }

    /// The newest snapshot that the server may build on; none when everything is to be told in full.
    fn acknowledgement(&mut self, now: Timestamp) -> Option<Tick> {
        if self.needs_full && now >= self.next_full_request {
            self.next_full_request = now + Self::FULL_REQUEST;
            self.stats.full_requests += 1;
            return None;
        }
        self.crowd.newest()
    }

    fn note_sent(&mut self, now: Timestamp, message: &MoveInput<G::Input>) {
        self.last_sent = Some(now);
        if self.sent.len() >= Self::MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back((message.seq, now));
        let Some(reconciler) = &self.reconciler else { return };
        let ended = self.cadence.end_of(message.newest);
        let prompt = reconciler.predictor().time().saturating_since(ended) < Self::HITCH;
        // A copy of what was sent before says nothing of when the first one arrived.
        let news = self.sent_open.is_none_or(|sent| message.newest >= sent);
        if message.completeness == Completeness::Closed && !message.ticks.is_empty() && prompt && news {
            self.lead.sent(message.seq, ahead(reconciler, now));
        }
    }

    /// When the open tick ends, by our own clock.
    fn next_boundary(&self) -> Option<Timestamp> {
        if self.session.state() != SessionState::LoggedIn || self.own.is_none() {
            return None;
        }
        let idle = self.idle_from();
        let Some(reconciler) = &self.reconciler else { return idle };
        let predictor = reconciler.predictor();
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
fn ahead<G: Game>(reconciler: &Reconciler<G>, now: Timestamp) -> i64 {
    let time = i64::try_from(reconciler.predictor().clock().at(now).as_micros()).unwrap_or(i64::MAX);
    time.saturating_sub(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}
