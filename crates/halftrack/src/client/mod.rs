//! The player's side: clock, input, prediction, reconciliation, other players and events, composed.
//!
//! ```text
//!   handle_stream ───► ClientSession ──► login, events          set_input ──► Reconciler ──► MoveInput
//!   handle_datagram ─► Header ──► ServerClock, LeadController ────── rate ──────┘  ▲
//!                      own body, fates ────────────────────────── Authority ───────┘
//!                      Crowd ──► neighbours, other players
//!   poll_stream, poll_datagram, poll_event, poll_timeout
//! ```
//!
//! `handle_*` calls come from the network, verbs from the application, and `poll_*` calls drain the output. Poll after every
//! other call, in any order. Getters change nothing. Call [`Client::frame`] when a frame is drawn, and [`Client::handle_timeout`] when
//! [`Client::poll_timeout`] says so if the program can wake up by itself: input then leaves at the end of its tick and
//! not on the next frame.

mod calls;
mod carry;
mod config;
mod fates;
mod group;
mod lives;
mod others;
mod own;
mod pace;
mod saved;
mod sender;
mod sending;
mod snapshots;
mod stats;
mod sync;
mod timing;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use derive_where::derive_where;

pub use config::ClientConfig;
pub use group::GroupConfig;
pub use lives::{Certainty, Life, LifeEvent};
pub use stats::ClientStats;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::client::carry::Carriers;
use crate::client::lives::Lives;
use crate::client::others::Others;
use crate::client::own::Own;
use crate::client::sender::InputSender;
use crate::client::sending::ahead;
use crate::client::timing::Timing;
use crate::clock::ClockSample;
use crate::error::ConfigError;
use crate::game::Game;
use crate::id::{BodyId, PlayerId, PlayerName, Token};
use crate::input::Margin;
use crate::interpolate::Remotes;
use crate::lane::{LaneRouter, SyncLink};
use crate::predict::Role;
use crate::reconcile::{Member, Reconciler};
use crate::session::{ClientSession, SessionCommand, SessionState};
use crate::snapshot::{BodyHistory, Crowd, MAX_BODY_BYTES, check_body_bytes};
use crate::stats::CorrectionStats;
use crate::sync_watch::SyncWatch;
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::control::{Closing, FromServer, HeartbeatReply, LoginAccepted, Restart, Welcome};
use crate::wire::{BitReader, Frame, FrameReader};

/// An event for the host. Poll them in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// Make a connection, then call [`Client::handle_connected`] or [`Client::handle_disconnected`].
    Connect,
    /// Write the rest of [`Client::poll_stream`], and close the connection.
    Close,
    /// The session changed state.
    Session(SessionState),
    /// The session could not be resumed and begins anew. Drop all game state that you kept.
    Restarted(Restart),
    /// A player joined.
    Joined(PlayerId, PlayerName),
    /// A player left.
    Left(PlayerId),
    /// The server ends within this time.
    Closing(Duration),
    /// A game event: reliable, in order, exactly once.
    Game(Vec<u8>),
}

/// An order that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderRefused {
    /// The player is not logged in.
    #[error("the player is not logged in")]
    NotLoggedIn,
    /// Too many orders are not acknowledged yet. Give the order again later.
    #[error("too much is on its way to the server already: try again later")]
    Full,
    /// The order is longer than a message.
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
/// use std::sync::Arc;
/// use halftrack::cart::Cart;
/// use halftrack::client::{Client, ClientConfig, ClientEvent};
/// use halftrack::{Cadence, PlayerName, SyncLink, Timestamp};
///
/// let config = ClientConfig::new(PlayerName::new("Ada")?, Cadence::default(), Arc::new(Cart));
/// let mut client = Client::new(config)?;
/// client.connect(Timestamp::ZERO);
/// assert!(client.poll_event().into_iter().any(|event| event == ClientEvent::Connect));
/// // The host makes a connection, and says so; the login is on its way.
/// client.handle_connected(Timestamp::from_micros(20_000), SyncLink::Present);
/// let mut stream = vec![];
/// assert!(client.poll_stream(&mut stream));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive_where(Debug)]
pub struct Client<G: Game> {
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

    timing: Timing,
    sender: InputSender<G::Input>,
    own: Own<G>,
    others: Others<G>,
    lives: Lives<G>,
    carriers: Carriers,
    /// Scratch memory: bodies that are drawn with the group.
    left_out: Vec<BodyId>,
    /// Checks that snapshots arrive by datagram, if they should.
    watch: Option<SyncWatch>,
    stats: ClientStats,
}

impl<G: Game> Client<G> {
    /// Events that wait for the host at most. A host that draws takes them every frame.
    const MAX_EVENTS: usize = 16_384;
    /// Bytes that wait for the stream at most. A host that writes at all stays far below.
    const MAX_OUT: usize = 256 * 1_024;
    /// A snapshot further ahead than this, or of another epoch, is used only if its bodies add up. Otherwise one wrong bit
    /// would make all true snapshots stale.
    const BELIEVED_TICKS: u32 = 64;
    /// A quarter of the range of the low bits of a snapshot's tick, and of its epoch.
    const ROUND_TICKS: u32 = 1 << 14;
    const ROUND_EPOCHS: u32 = 1 << 6;
    /// Input sent this long after its tick's end was delayed by this side, so it is no sample of the network.
    const HITCH: Duration = Duration::from_millis(60);

    /// The longest order, bytes: the body of one frame of the reliable lane.
    pub const MAX_ORDER_BYTES: usize = Frame::MAX_BODY;

    /// An idle client. Call [`Self::connect`].
    ///
    /// # Errors
    /// When a config is out of its range, or the game's bodies are longer than [`MAX_BODY_BYTES`].
    pub fn new(config: ClientConfig<G>) -> Result<Self, ConfigError> {
        config.predict.check()?;
        check_body_bytes::<G::Body>(MAX_BODY_BYTES)?;
        config.policy.check()?;
        config.group.check()?;
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
            timing: Timing::new(config.lead)?,
            sender: InputSender::new(),
            own: Own::new(),
            others: Others::new(&config)?,
            lives: Lives::new(),
            carriers: Carriers::default(),
            left_out: Vec::new(),
            watch: None,
            stats: ClientStats::default(),
            config,
        })
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<G> {
        &self.config.rules
    }

    /// The state of the session.
    pub fn state(&self) -> SessionState {
        self.session.state()
    }

    /// The player's id, once logged in.
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

    /// A player's name.
    pub fn name(&self, player: PlayerId) -> Option<&PlayerName> {
        self.names.get(&player)
    }

    /// All players of the room.
    pub fn players(&self) -> impl Iterator<Item = (PlayerId, &PlayerName)> {
        self.names.iter().map(|(player, name)| (*player, name))
    }

    /// The predicted body that the player owns, the first if there are several: read it for gameplay. From the welcome
    /// until prediction begins it is the server's state.
    pub fn predicted(&self) -> Option<&G::Body> {
        // spec: RECON-03
        self.own.predicted(*self.own.ids.first()?)
    }

    /// Prediction, reconciliation and presentation of that body and of all that are predicted with it, once they have begun.
    pub fn reconciler(&self) -> Option<&Reconciler<G>> {
        self.own.reconciler.as_ref()
    }

    /// Every body that the player owns, in order of their spawn: its id, its predicted state, and its part in the prediction
    /// once that has begun.
    pub fn own(&self) -> impl Iterator<Item = (BodyId, &G::Body, Option<&Member<G>>)> {
        // spec: BODY-02
        let member = |id| self.own.reconciler.as_ref().and_then(|known| known.member(id));
        self.own.ids.iter().filter_map(move |id| Some((*id, self.own.predicted(*id)?, member(*id))))
    }

    /// The bodies that are predicted together with the player's own ones: those that they emitted, and those that
    /// [`Game::predicts`] names. They are drawn here, and not among [`Self::remotes`].
    pub fn group(&self) -> impl Iterator<Item = &Member<G>> {
        // spec: GROUP-01
        let members = self.own.reconciler.iter().flat_map(Reconciler::members);
        members.filter(|member| member.role() != Role::Own)
    }

    /// The bodies that a player owns in the newest snapshot, in order of their ids.
    pub fn bodies_of(&self, player: PlayerId) -> impl Iterator<Item = (BodyId, &BodyHistory<G>)> {
        let owns = move |history: &BodyHistory<G>| history.driver().player() == Some(player);
        self.others.crowd.bodies().filter(move |(_, history)| owns(history))
    }

    /// Corrections of all bodies that the player owns or owned in this session.
    pub fn corrections(&self) -> CorrectionStats {
        self.own.corrections()
    }

    /// Corrections of the bodies of [`Self::group`] in this session.
    pub fn group_corrections(&self) -> CorrectionStats {
        self.own.group_corrections()
    }

    /// All bodies of the newest snapshot as the server has them, the player's own included.
    pub fn crowd(&self) -> &Crowd<G> {
        &self.others.crowd
    }

    /// All other bodies as of the last frame: the drawn pose and the newest state from the server.
    pub fn remotes(&self) -> &Remotes<G> {
        &self.others.remotes
    }

    /// The player's view in the last frame, for orders that refer to it: the newest snapshot, and the server time at which
    /// others were drawn.
    pub fn seen(&self) -> Option<(Tick, ServerTime)> {
        Some((self.others.crowd.newest()?, self.others.remotes.render_time()?))
    }

    /// The newest state of a body from the server, and its tick.
    pub fn authoritative(&self, id: BodyId) -> Option<(Tick, &G::Body)> {
        let tick = self.others.crowd.newest()?;
        self.others.crowd.body(id)?.get(tick).map(|record| (tick, &record.after))
    }

    /// The state of another body at the moment at which it is drawn. It belongs to the picture;
    /// [`Self::authoritative`] is newer. `None` when no snapshot has it.
    pub fn drawn(&self, id: BodyId) -> Option<&G::Body> {
        let before = self.cadence.tick_at(self.others.remotes.render_time()?).previous()?;
        self.others.crowd.body(id)?.get(before).map(|record| &record.after)
    }

    /// The server's time at `now`, once it is known.
    pub fn server_time(&self, now: Timestamp) -> Option<ServerTime> {
        self.timing.clock.at(now)
    }

    /// The shortest round trip of the last seconds.
    pub fn round_trip(&self) -> Option<Duration> {
        self.timing.clock.round_trip()
    }

    /// The mean round trip of the last second, to be shown to a player.
    pub fn mean_round_trip(&self) -> Option<Duration> {
        self.timing.clock.mean_round_trip()
    }

    /// How far ahead of the server's clock prediction aims to be.
    pub fn lead(&self) -> Option<Duration> {
        self.timing.server_offset(self.now).map(|offset| self.timing.lead.lead(offset))
    }

    /// The margin of the newest input that the server reported on: how long before its tick was simulated it came.
    pub fn margin(&self) -> Option<Margin> {
        self.timing.margin
    }

    /// Whether a `poll_*` call would give something.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty() || self.sender.has_output() || !self.events.is_empty()
    }

    /// The cadence.
    pub fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// Counters.
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
impl<G: Game> Client<G> {
    /// Carries out the session's commands, and reports its state.
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
            // The host does not write: the connection is as good as cut.
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
            FromServer::Bodies(piece) => {
                self.catch_up(now);
                if !self.others.take_piece(&piece, &mut self.stats) {
                    self.stats.malformed += 1;
                }
            }
            FromServer::HeartbeatReply(reply) => self.take_heartbeat(now, &reply),
            FromServer::PlayerState(bytes) => self.receive_snapshot(now, &bytes),
            // Reliable events do not wait for snapshots.
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

    /// Drops all state of an earlier session.
    fn forget(&mut self) {
        self.names.clear();
        self.timing.forget();
        self.sender.forget();
        self.own.forget();
        self.others.forget(&self.config);
        self.lives.forget();
        self.carriers.forget();
    }

    fn take_welcome(&mut self, welcome: &Welcome) {
        // spec: SESSION-10
        let mut section = core::mem::take(&mut self.own.section);
        let read = section.read(&[], &mut BitReader::new(&welcome.own));
        let length = welcome.bodies as usize;
        if read.is_err() || length > Welcome::MAX_BODIES_BYTES {
            self.stats.malformed += 1;
            self.own.section = section;
            return;
        }
        let at = (Epoch::new(welcome.epoch), Tick::new(welcome.tick).min(Tick::MAX_STATE));
        if length > 0 {
            self.others.begin_full(at, length);
        }
        // A later welcome brings the other bodies only: the player's own state is newer here. But after a long absence the
        // low bits of ticks and epochs in snapshots would be ambiguous, so its state counts.
        let rounds = self.own.newest.is_some_and(|(epoch, tick)| {
            let slips = at.0.number().saturating_sub(epoch.number());
            let is_far = at.1.since(tick) >= Self::ROUND_TICKS || slips >= Self::ROUND_EPOCHS;
            // Prediction refuses states from before its baseline, so an older epoch would leave it without any.
            is_far && at > (epoch, tick)
        });
        if self.own.newest.is_none() || rounds {
            self.own.newest = Some(at);
            self.take_states(self.now, &section, |_| Causes::NONE);
        }
        self.own.section = section;
    }

    fn take_heartbeat(&mut self, now: Timestamp, reply: &HeartbeatReply) {
        // spec: CLOCK-01
        self.session.handle_heartbeat(now, reply);
        let sent = Timestamp::from_micros(reply.sent_micros);
        self.hear_sign_of_life(now, sent);
        self.timing.clock.sample(ClockSample {
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
