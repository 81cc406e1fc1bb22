//! The authority: [`Server`] simulates every tick exactly once, from the input that arrived in time, and sends the result.
//!
//! ```text
//!   handle_stream ──► SessionServer ──► SessionEvent ──► route: Stage (join, order, leave), Player (input)
//!   handle_datagram ──► SessionServer: is it live? ─────► Player: InputQueue, View
//!   handle_timeout ──► TickClock ──► per tick due:  take inputs ─► Stage: Bodies::advance, World::resolve ─► events
//!                                └─► once:          a snapshot for every player, or all bodies in full by the stream
//!   every step ──► Happened ──► MatchRecorder
//!   poll_record, then poll_stream, poll_datagram, poll_close, poll_timeout
//! ```
//!
//! The network calls `handle_*`, the host calls verbs, and both drain `poll_*`. Handling makes the bytes, polling only
//! takes them, so any order of draining gives the same bytes. Hand over everything that has arrived *before* you call
//! `handle_timeout`: after a stall of the host, input that came during it then still counts.

mod clock;
mod config;
mod player;
mod record;
mod recover;
mod route;
mod snapshots;
mod stats;

use core::time::Duration;

pub use crate::snapshot::{BodyRefused, SpawnRefused};
pub use crate::world::{
    Audience, BodyOf, Command, CommandRefused, EventTooLong, Events, Order, Room, Shown, Stage, World,
};
pub use config::ServerConfig;
pub use record::WorldIsRecorded;
pub use recover::{RecoverRefused, Recovery};
pub use stats::ServerStats;

use crate::cadence::Cadence;
use crate::error::ConfigError;
use crate::game::Game;
use crate::id::{BodyId, Driver, PlayerId, PlayerName, Token};
use crate::input::MoveInput;
use crate::input::{Fate, InputStats, TickInput};
use crate::lane::{Link, MessageKind, SyncLink};
use crate::model::{Body, FieldError};
use crate::record::Header;
use crate::server::clock::TickClock;
use crate::server::player::{Player, Players};
use crate::server::record::{Happened, MatchRecorder};
use crate::session::{ConnectionId, DisconnectReason, SessionServer};
use crate::shared::shared_hash;
use crate::snapshot::{Bodies, BodyKey, Emissions, SNAPSHOT_REST_BYTES, check_body_bytes};
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::Frame;
use crate::wire::control::{FromServer, Welcome};

/// The server of one room.
///
/// ```
/// use halftrack::cart::Rails;
/// use halftrack::server::{Server, ServerConfig};
/// use halftrack::session::ConnectionId;
/// use halftrack::{SyncLink, Timestamp, Token};
///
/// let start = Timestamp::ZERO;
/// let mut server = Server::new(ServerConfig::default(), Rails::default(), start)?;
/// // Tokens come from the host: nobody may guess one.
/// server.handle_connected(start, ConnectionId::new(1), SyncLink::Present, Token::new([7; 16]));
/// // The host feeds it what arrives, and calls it when it asks to be called.
/// let due = server.poll_timeout().unwrap();
/// server.handle_timeout(due);
/// assert_eq!(server.stats().ticks, 1);
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Server<W: World> {
    config: ServerConfig,
    clock: TickClock,
    sessions: SessionServer,
    players: Players<W::Game>,
    stage: Stage<W>,
    recorder: MatchRecorder<W::Game>,
    stats: ServerStats,

    // Scratch memory.
    message: MoveInput<<W::Game as Game>::Input>,
    frames: Vec<u8>,
}

impl<W: World> Server<W> {
    /// A room that begins at `now`, and is ready.
    ///
    /// # Errors
    /// When a field of `config` is out of its range, or the game's bodies do not fit into snapshots. Nothing was started.
    pub fn new(config: ServerConfig, world: W, now: Timestamp) -> Result<Self, ConfigError> {
        // spec: SERVER-11
        config.check()?;
        check_body_bytes::<BodyOf<W>>(config.max_datagram_bytes.saturating_sub(SNAPSHOT_REST_BYTES))?;
        let most = Bodies::<W::Game>::most_in_full(Welcome::MAX_BODIES_BYTES);
        if config.max_bodies > most {
            let body_bytes = BodyOf::<W>::MAX_BITS.div_ceil(8);
            return Err(ConfigError::TooManyBodies { got: config.max_bodies, body_bytes, most });
        }
        let shared = shared_hash(&**world.rules(), config.cadence);
        Ok(Self {
            clock: TickClock::new(config.cadence, config.max_catch_up, now, config.first_tick),
            sessions: SessionServer::new(config.sessions(shared))?,
            players: Players::new(config.capacity),
            stage: Stage::new(
                config.cadence,
                world,
                config.first_tick,
                BodyKey::new(config.body_key),
                config.body_limits(BodyOf::<W>::MAX_BITS),
            ),
            recorder: MatchRecorder::off(),
            stats: ServerStats::default(),
            message: MoveInput::default(),
            frames: Vec::new(),
            config,
        })
    }

    /// A peer has connected. `token` must be fresh and impossible to guess: a session that begins here gets it.
    pub fn handle_connected(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        sync_link: SyncLink,
        token: Token,
    ) {
        let now = self.clock.clamp(now);
        self.sessions.handle_connected(now, connection, sync_link, token);
    }

    /// Bytes of a peer's reliable stream have arrived.
    pub fn handle_stream(&mut self, now: Timestamp, connection: ConnectionId, mut bytes: &[u8]) {
        let now = self.clock.clamp(now);
        while let Some(event) = self.sessions.handle_stream(now, connection, &mut bytes) {
            self.route(now, event);
        }
    }

    /// A datagram of a peer has arrived.
    pub fn handle_datagram(&mut self, now: Timestamp, connection: ConnectionId, bytes: &[u8]) {
        let now = self.clock.clamp(now);
        let Some(player) = self.sessions.player_of(connection) else {
            // It may have outrun the login, or been late for the logout.
            self.stats.stray_datagrams += 1;
            return;
        };
        if self.message.decode(bytes).is_err() {
            self.stats.malformed_datagrams += 1;
            return;
        }
        let live = self.sessions.handle_datagram(now, connection);
        self.route_all(now);
        if live {
            self.take_input(now, player, Link::Sync);
        }
    }

    /// A peer is gone. Its player may resume within the grace.
    pub fn handle_disconnected(&mut self, now: Timestamp, connection: ConnectionId) {
        let now = self.clock.clamp(now);
        self.sessions.handle_disconnected(now, connection);
        self.route_all(now);
    }

    /// Time has passed. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.clock.clamp(now);
        if self.sessions.is_stopped() {
            return;
        }
        self.sessions.handle_timeout(now);
        self.route_all(now);
        self.sessions.check_datagrams(now);
        self.route_all(now);
        let epoch = self.clock.epoch();
        let due = self.clock.due(now);
        let slipped = self.clock.epoch() != epoch;
        if slipped {
            self.note(&Happened::Slipped);
        }
        for _ in 0..due {
            self.simulate(now);
        }
        if slipped {
            self.players.iter_mut().for_each(|player| player.queue.slip());
        }
        if due > 0 {
            self.stats.catch_up_ticks += u64::from(due - 1);
            self.write_snapshots(now, due);
        }
        if self.stage.tick() >= Tick::MAX_STATE {
            self.stop();
        }
    }

    /// Simulates the next tick.
    fn simulate(&mut self, now: Timestamp) {
        // One tick of input per tick of time: no player is faster than the clock.
        let mut players = self.players.iter_mut();
        self.stage.advance(|player| {
            let player = players.find(|there| there.id == player);
            player.map_or_else(TickInput::default, |player| player.queue.take().0)
        });
        self.clock.simulated();
        self.stats.ticks += 1;
        self.recorder.note(&Happened::Ticked { stage: &self.stage });
        self.tell_events(now);
        self.route_all(now);
    }

    /// When [`Self::handle_timeout`] is to be called next: when a tick is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        (!self.sessions.is_stopped()).then(|| self.clock.next_due())
    }

    /// Appends the bytes for the reliable stream of `connection` to `into`. Returns whether there were any.
    pub fn poll_stream(&mut self, connection: ConnectionId, into: &mut Vec<u8>) -> bool {
        let (mut any, peer) = self.sessions.poll_peer(connection, into);
        let Some((player, router)) = peer else { return any };
        // Without a sync link the newest snapshot goes here; one that was never taken has been replaced.
        // spec: LANE-05
        if router.link(MessageKind::PlayerState) == Link::Reliable
            && let Some(body) = self.players.get_mut(player).and_then(Player::take_snapshot)
        {
            any |= Frame { kind: FromServer::PLAYER_STATE, body }.append_to(into);
        }
        any
    }

    /// The datagram that is to be sent to `connection`.
    pub fn poll_datagram(&mut self, connection: ConnectionId) -> Option<&[u8]> {
        let (player, router) = self.sessions.peer(connection)?;
        let player = self.players.get_mut(player)?;
        let by_datagram = router.link(MessageKind::PlayerState) == Link::Sync;
        if by_datagram { player.take_snapshot() } else { player.take_probe() }
    }

    /// A connection that is to be closed, and why: each once. Write what [`Self::poll_stream`] still has for it, close it,
    /// and call [`Self::handle_closed`].
    pub fn poll_close(&mut self) -> Option<(ConnectionId, DisconnectReason)> {
        self.sessions.poll_close()
    }

    /// A connection that [`Self::poll_close`] gave has been closed.
    pub fn handle_closed(&mut self, connection: ConnectionId) {
        self.sessions.handle_closed(connection);
    }

    /// Removes a player for good.
    pub fn kick(&mut self, player: PlayerId) {
        self.sessions.remove(player, DisconnectReason::Kicked);
        self.route_all(self.clock.now());
    }

    /// Lets only resumes in from now on, and warns all players that the room ends `within` this time. Call
    /// [`Self::stop`] to end it.
    pub fn drain(&mut self, within: Duration) {
        let now = self.clock.now();
        self.sessions.drain(now, within);
        self.route_all(now);
    }

    /// Ends the room: closes every connection, and simulates no more ticks. A second call does nothing.
    pub fn stop(&mut self) {
        if !self.sessions.is_stopped() {
            self.note(&Happened::Ended);
        }
        let now = self.clock.now();
        self.sessions.stop(now);
        self.route_all(now);
    }

    /// Whether players are let in.
    pub fn is_ready(&self) -> bool {
        self.sessions.is_serving()
    }

    /// The newest tick that has been simulated.
    pub fn tick(&self) -> Tick {
        self.stage.tick()
    }

    /// The stretch of server time that it is in.
    pub fn epoch(&self) -> Epoch {
        self.clock.epoch()
    }

    /// The server's time at `now`.
    pub fn time(&self, now: Timestamp) -> ServerTime {
        self.clock.time(now)
    }

    /// The cadence.
    pub fn cadence(&self) -> Cadence {
        self.config.cadence
    }

    /// Connections that the server knows of, those to be closed included.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.sessions.connections()
    }

    /// Every body, in order of the ids. Players who may come back have theirs.
    pub fn bodies(&self) -> impl Iterator<Item = (BodyId, Driver, &BodyOf<W>)> {
        self.stage.bodies()
    }

    /// A body at the end of a recent tick.
    pub fn body(&self, id: BodyId, tick: Tick) -> Option<&BodyOf<W>> {
        self.stage.bodies.after(id, tick)
    }

    /// The bodies that a player owns, in order of their spawn.
    pub fn owned(&self, player: PlayerId) -> &[BodyId] {
        self.stage.owned(player)
    }

    /// The first body that a player owns, for games in which each player has one.
    pub fn body_of(&self, player: PlayerId) -> Option<&BodyOf<W>> {
        self.stage.body_of(player)
    }

    /// The players of the room, in order; those who may come back included.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> + '_ {
        self.players.iter().map(|player| player.id)
    }

    /// The name of a player.
    pub fn name(&self, player: PlayerId) -> Option<&PlayerName> {
        self.sessions.name(player)
    }

    /// Counters of a player's input.
    pub fn input_stats(&self, player: PlayerId) -> Option<&InputStats> {
        self.players.get(player).map(|player| player.queue.stats())
    }

    /// Counters of all players' input, those that left included.
    pub fn all_input_stats(&self) -> InputStats {
        self.players.all_input_stats()
    }

    /// What became of a player's input of a recent tick, as far as it is remembered. What was held may still turn out to
    /// be late or lost.
    pub fn fate(&self, player: PlayerId, tick: Tick) -> Option<Fate> {
        self.players.get(player)?.queue.fate(tick)
    }

    /// The player that came by `connection`.
    pub fn player_of(&self, connection: ConnectionId) -> Option<PlayerId> {
        self.sessions.player_of(connection)
    }

    /// The connection by which `player` is there; none while it is away.
    pub fn connection_of(&self, player: PlayerId) -> Option<ConnectionId> {
        self.sessions.connection_of(player)
    }

    /// Players who are away: their connection is gone, and they may come back within the grace.
    pub fn away(&self) -> usize {
        self.players.iter().filter(|player| player.connection.is_none()).count()
    }

    /// The link that messages of this kind take to a peer at the moment. The sync lane falls back to the reliable link
    /// while the peer does not receive datagrams. `None` when there is no such connection.
    pub fn link(&self, connection: ConnectionId, kind: MessageKind) -> Option<Link> {
        self.sessions.router(connection).map(|router| router.link(kind))
    }

    /// Whether a peer's input arrives by datagram. False without a sync link, before the login, and while it is dead.
    pub fn receives_datagrams(&self, connection: ConnectionId) -> bool {
        self.sessions.receives_datagrams(connection)
    }

    /// The game's side.
    pub fn world(&self) -> &W {
        &self.stage.world
    }

    /// The game's side, to be changed by hand. Prefer [`Self::command`], which a recording keeps.
    ///
    /// # Errors
    /// While the match is recorded: the recording would no longer be the match.
    pub fn world_mut(&mut self) -> Result<&mut W, WorldIsRecorded> {
        // spec: RECORD-10
        if self.recorder.is_on() { Err(WorldIsRecorded) } else { Ok(&mut self.stage.world) }
    }

    /// The longest command, bytes.
    pub const MAX_COMMAND_BYTES: usize = Frame::MAX_BODY;

    /// Gives the world a command: see [`World::command`]. It is recorded, so a playback and a recovery obey it too.
    ///
    /// # Errors
    /// When the world does not obey it, or it is too long. Nothing has changed then.
    pub fn command(&mut self, bytes: &[u8]) -> Result<(), CommandRefused> {
        if bytes.len() > Self::MAX_COMMAND_BYTES {
            return Err(CommandRefused::TooLong { bytes: bytes.len(), max: Self::MAX_COMMAND_BYTES });
        }
        if !self.recorder.has_room_for(Self::MAX_COMMAND_BYTES) {
            return Err(CommandRefused::TooMany);
        }
        self.stage.command(bytes)?;
        self.note(&Happened::Commanded { bytes });
        Ok(())
    }

    /// Records the whole match from now on. Take the bytes of [`Self::poll_record`] before you take anything else. While
    /// it records, the host changes the world by [`Self::command`] alone. Returns whether it records: with players or
    /// bodies in the room it is too late.
    pub fn record(&mut self, run: [u8; 16], about: Vec<u8>) -> bool {
        let begins = !self.recorder.is_on() && self.sessions.is_empty() && self.stage.bodies.count() == 0;
        if begins {
            let header = Header {
                shared: shared_hash(&**self.stage.world.rules(), self.config.cadence),
                cadence_micros: self.config.cadence.micros(),
                first_tick: self.tick().number(),
                run,
                body_key: self.config.body_key,
                limits: self.stage.bodies.limits().into(),
                about,
            };
            self.recorder = MatchRecorder::new(&header);
        }
        begins
    }

    /// Appends to `into` the bytes to write before anything else of this server is sent: a client then never hears of
    /// something that a crash of the process can undo. Returns whether there were any.
    pub fn poll_record(&mut self, into: &mut Vec<u8>) -> bool {
        self.recorder.poll(into)
    }

    /// Stops recording. A server cannot recover from a recording that was stopped.
    pub fn stop_recording(&mut self) {
        self.recorder = MatchRecorder::off();
    }

    fn note(&mut self, happened: &Happened<'_, W>) {
        self.recorder.note(happened);
    }

    /// The last field of a body that left its range, with its body and tick: the rules or the world let it escape.
    pub fn last_escape(&self) -> Option<(BodyId, Tick, FieldError)> {
        self.stage.escapes().last
    }

    /// The bodies that rules emitted so far.
    pub fn emissions(&self) -> Emissions {
        self.stage.bodies.emissions()
    }

    /// The counters.
    pub fn stats(&self) -> ServerStats {
        let sessions = self.sessions.stats();
        ServerStats {
            slips: self.clock.slips(),
            escapes: self.stage.escapes().count,
            backwards: self.clock.backwards(),
            logins: sessions.logins,
            refused: sessions.refused,
            malformed_streams: sessions.malformed_streams,
            too_slow: sessions.too_slow,
            too_many_connections: sessions.too_many_connections,
            sync_up_dead: sessions.sync_up_dead,
            sync_down_dead: sessions.sync_down_dead,
            ..self.stats
        }
    }
}
