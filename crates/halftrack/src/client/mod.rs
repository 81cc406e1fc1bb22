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

mod calls;
mod config;
mod fates;
mod pace;
mod saved;
mod sending;
mod snapshots;
mod stats;
mod sync;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

pub use config::ClientConfig;
pub use stats::ClientStats;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::client::fates::Fates;
use crate::client::pace::{Occasion, Pace};
use crate::client::sending::{Reported, ahead};
use crate::clock::{ClockSample, LeadController, ServerClock};
use crate::error::ConfigError;
use crate::flight::Recorder;
use crate::id::{PlayerId, PlayerName, Token};
use crate::input::Margin;
use crate::interpolate::{RemoteConfig, Remotes};
use crate::lane::{LaneRouter, SyncLink};
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::seq::Seq;
use crate::session::{ClientSession, SessionCommand, SessionState};
use crate::snapshot::{BodyCode, Crowd, MAX_BODY_BYTES, TickFate, check_body_bytes};
use crate::sync_watch::SyncWatch;
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::control::{Closing, FromServer, HeartbeatReply, LoginAccepted, Restart, Welcome};
use crate::wire::{BitReader, Frame, FrameReader, MoveInput};

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
    /// The server ends within so long.
    Closing(Duration),
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
    /// The server has not acknowledged enough of what was sent. The order can be given again later.
    #[error("too much is on its way to the server already: try again later")]
    Full,
    /// No message can hold it.
    #[error("the order has {bytes} bytes, and a message holds {max}: split it, or send less")]
    TooLong {
        /// The order's length, bytes.
        bytes: usize,
        /// [`Client::MAX_ORDER_BYTES`].
        max: usize,
    },
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
    pace: Pace,
    /// Of the call at hand.
    occasion: Occasion,
    /// The open tick when that was last looked at.
    open: Option<Tick>,
    reconciler: Option<Reconciler<G>>,
    crowd: Crowd<G>,
    remotes: Remotes<G>,
    /// The newest state of the player, and what it moves among.
    own: Option<Authority<G>>,
    fates: Fates,
    /// When prediction was last restarted from authority.
    resynced: Option<Timestamp>,
    /// How early the newest input came that the server has told that of.
    margin: Option<Margin>,
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
    /// It is to be sent as a datagram too, although it takes the reliable link.
    probe: bool,
    next_probe: Timestamp,
    /// Whether snapshots arrive by datagram, if they should.
    watch: Option<SyncWatch>,
    /// When a snapshot last echoed an input message that none before it had echoed, and which.
    echoed: Timestamp,
    echo: Option<Seq>,
    /// What has been told of how predictions were corrected.
    reported: Reported,
    stats: ClientStats,
    /// What is told of every call, if it is recorded.
    recorder: Option<Box<dyn Recorder<G>>>,

    // Memory that is used again.
    message: MoveInput<G::Input>,
    told: Vec<TickFate>,
    bodies: Vec<G::Body>,
}

impl<G: BodyCode> Client<G> {
    /// More input messages than are ever on the way.
    const MAX_SENT: usize = 256;
    /// The longest input message.
    const MAX_DATAGRAM: usize = SyncLink::DATAGRAM_BYTES;
    /// Events that wait for the host at most: a host that draws takes them every frame.
    const MAX_EVENTS: usize = 16_384;
    /// The most that waits to be written. Nothing of ours comes near it while the host writes at all.
    const MAX_OUT: usize = 256 * 1_024;
    /// Everything is asked for in full no more often than this.
    const FULL_REQUEST: Duration = Duration::from_millis(250);
    /// A snapshot that is so far ahead of the one before it is believed only if everybody in it adds up: one wrong bit in
    /// its tick must not make every true one stale.
    const BELIEVED_TICKS: u32 = 64;
    /// A quarter of what the low bits of a snapshot's tick, and of its epoch, can tell apart.
    const ROUND_TICKS: u32 = 1 << 14;
    const ROUND_EPOCHS: u32 = 1 << 6;
    /// Input that is sent so long after its tick's end was held up by this side: it tells nothing of the network.
    const HITCH: Duration = Duration::from_millis(60);

    /// The longest order, bytes: the body of one frame of the reliable lane.
    pub const MAX_ORDER_BYTES: usize = Frame::MAX_BODY;

    /// A client that nothing has been asked of.
    ///
    /// # Errors
    /// When a config is out of its range, or the game's bodies are longer than [`MAX_BODY_BYTES`].
    pub fn new(config: ClientConfig<G>) -> Result<Self, ConfigError> {
        config.predict.check()?;
        check_body_bytes::<G>(MAX_BODY_BYTES)?;
        config.policy.check()?;
        let cadence = config.predict.cadence;
        let session = ClientSession::new(config.session.clone())?;
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
            lead: LeadController::new(config.lead, Duration::ZERO)?,
            pace: Pace::default(),
            occasion: Occasion::Timeout,
            open: None,
            reconciler: None,
            crowd: Crowd::new(cadence, config.alone.clone()),
            remotes: remotes(&config)?,
            own: None,
            fates: Fates::default(),
            resynced: None,
            margin: None,
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
            probe: false,
            next_probe: Timestamp::ZERO,
            watch: None,
            echoed: Timestamp::ZERO,
            echo: None,
            reported: Reported::default(),
            stats: ClientStats::default(),
            recorder: None,
            message: MoveInput::default(),
            told: Vec::new(),
            bodies: Vec::new(),
            config,
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

    /// The token that brings this player back after a crash of this process: save it when [`ClientEvent::Session`] says
    /// that the player is in, forget it when the session is over, and give it to the next process as
    /// [`crate::session::SessionConfig::resume`]. None when there is no session to come back to. It is a secret: its
    /// holder is the player.
    pub fn resume_token(&self) -> Option<Token> {
        self.session.resume_token()
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

    /// Every other player, as of the last frame: where it is drawn, and the newest state that the server told of it.
    pub fn remotes(&self) -> &Remotes<G> {
        &self.remotes
    }

    /// What the player was looking at in the last frame, for orders that claim to have seen something: the newest
    /// snapshot there was, and the moment of server time at which the others were drawn.
    pub fn seen(&self) -> Option<(Tick, ServerTime)> {
        Some((self.crowd.newest()?, self.remotes.render_time()?))
    }

    /// The newest state of a player that the server told, and its tick.
    pub fn authoritative(&self, player: PlayerId) -> Option<(Tick, &G::Body)> {
        let tick = self.crowd.newest()?;
        self.crowd.body(player)?.get(tick).map(|record| (tick, &record.after))
    }

    /// The state that the server told of another player for the moment at which it is drawn: what belongs to the
    /// picture, where [`Self::authoritative`] is what has become of it since. `None` where nothing was told.
    pub fn drawn(&self, player: PlayerId) -> Option<&G::Body> {
        let before = self.cadence.tick_at(self.remotes.render_time()?).previous()?;
        self.crowd.body(player)?.get(before).map(|record| &record.after)
    }

    /// What the server's clock shows at `now`, as far as is known.
    pub fn server_time(&self, now: Timestamp) -> Option<ServerTime> {
        self.clock.at(now)
    }

    /// The shortest round trip of the last seconds.
    pub fn round_trip(&self) -> Option<Duration> {
        self.clock.round_trip()
    }

    /// The mean round trip of the last second, to be shown to a player.
    pub fn mean_round_trip(&self) -> Option<Duration> {
        self.clock.mean_round_trip()
    }

    /// How far ahead of the server's clock prediction aims to be.
    pub fn lead(&self) -> Option<Duration> {
        self.server_offset(self.now).map(|offset| self.lead.lead(offset))
    }

    /// How early the newest input came that the server has told that of: before its tick was simulated, or after.
    pub fn margin(&self) -> Option<Margin> {
        self.margin
    }

    /// Whether the host has something to take: to write, to send, or to be told.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty() || !self.taken || self.probe || !self.events.is_empty()
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
            // Whatever states came before it.
            // spec: STALE-03
            FromServer::CombatEvent(bytes) => {
                self.session.log().receive();
                self.tell(ClientEvent::Game(bytes));
            }
            FromServer::PlayerJoined(joined) => {
                self.session.log().receive();
                self.names.insert(joined.player, joined.name.clone());
                self.tell(ClientEvent::Joined(joined.player, joined.name));
            }
            FromServer::Closing(Closing { within_millis }) => {
                self.tell(ClientEvent::Closing(Duration::from_millis(u64::from(within_millis))));
            }
            FromServer::SyncHeard(heard) => self.take_sync_heard(now, heard),
            FromServer::PlayerLeft(left) => {
                self.session.log().receive();
                self.names.remove(&left.player);
                self.remotes.left(left.player);
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
        self.watch_sync(now);
        self.flush_log();
    }

    /// The session begins, or begins anew: nothing that was known holds.
    fn forget(&mut self) {
        self.names.clear();
        self.clock.reset();
        self.lead.reset();
        self.reconciler = None;
        self.crowd = Crowd::new(self.cadence, self.config.alone.clone());
        if let Ok(remotes) = remotes(&self.config) {
            self.remotes = remotes;
        }
        self.own = None;
        self.fates.reset();
        (self.resynced, self.margin) = (None, None);
        (self.sent_open, self.repeat_at, self.needs_full) = (None, None, false);
        self.sent.clear();
        self.reported = Reported::default();
    }

    fn take_welcome(&mut self, welcome: &Welcome) {
        // spec: SESSION-10
        let mut bits = BitReader::new(&welcome.body);
        let Ok(body) = G::read_body(&G::blank(), &mut bits) else {
            self.stats.malformed += 1;
            return;
        };
        let tick = Tick::new(welcome.tick).min(Tick::MAX_STATE);
        if !welcome.bodies.is_empty() && self.crowd.newest() < Some(tick) {
            self.take_crowd(tick, &mut BitReader::new(&welcome.bodies));
        }
        // Later ones tell of everybody only: what is known of the player itself is newer. Unless it was away for so long
        // that the low bits of ticks and epochs in snapshots would be taken for those of another round.
        let rounds = self.own.as_ref().is_some_and(|own| {
            let slips = welcome.epoch.saturating_sub(own.epoch.number());
            let is_far = tick.since(own.tick) >= Self::ROUND_TICKS || slips >= Self::ROUND_EPOCHS;
            // Prediction refuses states from before its baseline, so an older epoch would leave it without any.
            is_far && (Epoch::new(welcome.epoch), tick) > (own.epoch, own.tick)
        });
        if self.own.is_none() || rounds {
            let mut own = Authority {
                epoch: Epoch::new(welcome.epoch),
                tick,
                body,
                surroundings: self.config.alone.clone(),
                causes: Causes::NONE,
            };
            self.surround(&mut own);
            self.own = Some(own);
        }
    }

    fn take_heartbeat(&mut self, now: Timestamp, reply: &HeartbeatReply) {
        // spec: CLOCK-01
        self.session.handle_heartbeat(now, reply);
        let sent = Timestamp::from_micros(reply.sent_micros);
        self.hear_sign_of_life(now, sent);
        self.clock.sample(ClockSample {
            sent,
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

fn remotes<G: BodyCode>(config: &ClientConfig<G>) -> Result<Remotes<G>, ConfigError> {
    let remote = RemoteConfig { delay: config.delay, correction: config.correction };
    Remotes::new(remote, config.predict.cadence, config.alone.clone())
}
