//! The authority: it simulates every tick exactly once, from what each player sent in time, and tells everybody.
//!
//! ```text
//!   handle_stream ──► Connection ──► login, orders ──► SessionTable, World
//!   handle_datagram ─────────────────────► Player: InputQueue, View
//!   handle_timeout ──► TickClock ──► per tick due:  take inputs ─► Bodies::advance ─► World::resolve ─► events
//!                                └─► once:          a snapshot for every player, or everybody in full by the stream
//!   poll_stream, poll_datagram, poll_close, poll_timeout
//! ```
//!
//! `handle_*` is what the network tells us, verbs what the host tells us, `poll_*` what we tell the network. Bytes are
//! made when something is handled, never when it is polled, so any order of draining gives the same bytes. Hand over
//! what has arrived *before* `handle_timeout`: after a stall of the host, input that came during it then still counts.

mod acts;
mod clock;
mod config;
mod connection;
mod player;
mod record;
mod reliable;
mod stage;
mod stats;
mod sync;
mod world;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

pub use config::ServerConfig;
pub use record::{RecoverRefused, Recovery, WorldIsRecorded};
pub use stage::{Shown, Stage};
pub use stats::ServerStats;
pub use world::{Audience, Body, Command, CommandRefused, EventTooLong, Events, Order, Room, World};

use crate::cadence::Cadence;
use crate::error::ConfigError;
use crate::game::Game;
use crate::id::{PlayerId, PlayerName, Token};
use crate::input::{Fate, InputStats, TickInput};
use crate::lane::{LaneRouter, Link, MessageKind, SyncLink};
use crate::record::Entry;
use crate::server::clock::TickClock;
use crate::server::connection::Connection;
use crate::server::player::{BodyTooLong, Player, Written};
use crate::server::record::Writing;
use crate::session::{ConnectionId, DisconnectReason, SessionTable, TableConfig};
use crate::shared::shared_hash;
use crate::snapshot::{BodyCode, SNAPSHOT_REST_BYTES, check_body_bytes};
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::control::{Closing, FromClient, FromServer};
use crate::wire::{Frame, MoveInput};

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
    table: SessionTable,
    connections: BTreeMap<ConnectionId, Connection>,
    /// In order of player, as the bodies are.
    players: Vec<Player<W::Game>>,
    stage: Stage<W>,
    writing: Option<Writing<W::Game>>,
    closes: VecDeque<ConnectionId>,
    phase: Phase,
    stats: ServerStats,
    /// The input of players who are gone.
    past_input: InputStats,

    // Memory that is used again.
    message: MoveInput<<W::Game as Game>::Input>,
    frames: Vec<u8>,
}

/// Whether the server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Nobody new is let in, and it ends by then.
    Draining {
        until: Timestamp,
    },
    Stopped,
}

impl<W: World> Server<W> {
    /// A room that begins at `now`, and is ready.
    ///
    /// # Errors
    /// When a field of `config` is out of its range, or the game's bodies do not fit into snapshots. Nothing was started.
    pub fn new(config: ServerConfig, world: W, now: Timestamp) -> Result<Self, ConfigError> {
        // spec: SERVER-11
        config.check()?;
        check_body_bytes::<W::Game>(config.max_datagram_bytes.saturating_sub(SNAPSHOT_REST_BYTES))?;
        let table = TableConfig {
            capacity: config.capacity,
            grace: config.grace,
            silence: config.silence,
            ..TableConfig::new(shared_hash::<W::Game>(config.cadence, world.alone()))
        };
        Ok(Self {
            clock: TickClock::new(config.cadence, config.max_catch_up, now, config.first_tick),
            table: SessionTable::new(table)?,
            connections: BTreeMap::new(),
            players: Vec::with_capacity(config.capacity),
            stage: Stage::new(config.cadence, world, config.first_tick),
            writing: None,
            closes: VecDeque::new(),
            phase: Phase::Serving,
            stats: ServerStats::default(),
            past_input: InputStats::default(),
            message: MoveInput::default(),
            frames: Vec::new(),
            config,
        })
    }

    /// A peer has connected. `token` is a fresh one that nobody can guess, for a session that may begin here.
    pub fn handle_connected(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        sync_link: SyncLink,
        token: Token,
    ) {
        let now = self.clock.clamp(now);
        let router = LaneRouter::new(self.config.policy, sync_link);
        let known =
            self.connections.insert(connection, Connection::new(router, token, now + self.config.login));
        debug_assert!(known.is_none(), "the number of a connection is not used again");
        if self.phase == Phase::Stopped {
            self.close(connection, DisconnectReason::Stopped);
        } else if self.connections.len() > self.config.max_connections {
            self.stats.too_many_connections += 1;
            self.close(connection, DisconnectReason::TooMany);
        }
    }

    /// Bytes of a peer's reliable stream have arrived.
    pub fn handle_stream(&mut self, now: Timestamp, connection: ConnectionId, mut bytes: &[u8]) {
        let now = self.clock.clamp(now);
        loop {
            let Some(open) = self.connections.get_mut(&connection).filter(|open| open.closing.is_none())
            else {
                return;
            };
            // Lent out while a message is acted on, which may close the connection.
            let mut reader = core::mem::take(&mut open.reader);
            let message = match reader.next(&mut bytes) {
                Ok(None) => None,
                Ok(Some(frame)) => Some(FromClient::read(frame)),
                Err(error) => Some(Err(error)),
            };
            if let Some(open) = self.connections.get_mut(&connection) {
                open.reader = reader;
            }
            match message {
                None => return,
                Some(Ok(message)) => self.act_on(now, connection, &message),
                Some(Err(_)) => self.refuse_malformed(connection),
            }
        }
    }

    /// A datagram of a peer has arrived.
    pub fn handle_datagram(&mut self, now: Timestamp, connection: ConnectionId, bytes: &[u8]) {
        let now = self.clock.clamp(now);
        match self.player_of(connection) {
            Some(player) => self.receive_datagram(now, connection, player, bytes),
            // It may have outrun the login, or been late for the logout.
            None => self.stats.stray_datagrams += 1,
        }
    }

    /// A peer is gone. Its player may come back, for a while.
    pub fn handle_disconnected(&mut self, now: Timestamp, connection: ConnectionId) {
        let now = self.clock.clamp(now);
        if let Some(Connection { player: Some(player), closing: None, .. }) =
            self.connections.remove(&connection)
        {
            self.table.disconnected(now, connection);
            if let Some(player) = self.player_mut(player) {
                player.disconnected();
            }
        }
        self.closes.retain(|closing| *closing != connection);
    }

    /// Time has passed. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.clock.clamp(now);
        if self.phase == Phase::Stopped {
            return;
        }
        self.expire(now);
        self.check_sync(now);
        let epoch = self.clock.epoch();
        let due = self.clock.due(now);
        self.write_slips();
        for _ in 0..due {
            self.simulate();
        }
        if self.clock.epoch() != epoch {
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

    /// When [`Self::handle_timeout`] is to be called next: when a tick is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        (self.phase != Phase::Stopped).then(|| self.clock.next_due())
    }

    /// Appends to `into` what is to be written to the reliable stream of `connection`. Gives whether there was anything.
    pub fn poll_stream(&mut self, connection: ConnectionId, into: &mut Vec<u8>) -> bool {
        let Some(open) = self.connections.get_mut(&connection) else { return false };
        let mut any = open.take_out(into);
        // Without a sync link the newest snapshot goes here; one that was never taken has been replaced.
        // spec: LANE-05
        if open.router.link(MessageKind::PlayerState) == Link::Reliable && open.closing.is_none() {
            let player = open.player;
            let player = player.and_then(|id| player_in(&mut self.players, id));
            if let Some(body) = player.and_then(Player::take_snapshot) {
                any |= Frame { kind: FromServer::PLAYER_STATE, body }.append_to(into);
            }
        }
        any
    }

    /// The datagram that is to be sent to `connection`.
    pub fn poll_datagram(&mut self, connection: ConnectionId) -> Option<&[u8]> {
        let open = self.connections.get(&connection)?;
        let by_datagram = open.router.link(MessageKind::PlayerState) == Link::Sync;
        let player = open.player.filter(|_| open.closing.is_none())?;
        let player = player_in(&mut self.players, player)?;
        if by_datagram { player.take_snapshot() } else { player.take_probe() }
    }

    /// A connection that is to be closed, and why: each once. Write what [`Self::poll_stream`] still has for it, close it,
    /// and call [`Self::handle_closed`].
    pub fn poll_close(&mut self) -> Option<(ConnectionId, DisconnectReason)> {
        let closing = |connection| self.connections.get(&connection)?.closing;
        core::iter::from_fn(|| self.closes.pop_front())
            .find_map(|connection| Some((connection, closing(connection)?)))
    }

    /// A connection that [`Self::poll_close`] gave has been closed.
    pub fn handle_closed(&mut self, connection: ConnectionId) {
        if self.connections.get(&connection).is_some_and(|open| open.closing.is_some()) {
            self.connections.remove(&connection);
            self.closes.retain(|closing| *closing != connection);
        }
    }

    /// Removes a player for good.
    pub fn kick(&mut self, player: PlayerId) {
        let connection = self.player_mut(player).and_then(|player| player.connection);
        self.remove_player(player);
        if let Some(connection) = connection {
            self.close(connection, DisconnectReason::Kicked);
        }
    }

    /// Lets nobody new in from here on, and tells everybody that the room ends `within` so long. When it does is for the
    /// host to say: see [`Self::stop`].
    pub fn drain(&mut self, within: Duration) {
        if self.phase == Phase::Serving {
            let now = self.clock.now();
            let until = now + within;
            self.phase = Phase::Draining { until };
            self.table.close();
            let message = closing(now, until);
            let players: Vec<_> = self.players.iter().filter_map(|player| player.connection).collect();
            for connection in players {
                self.send(connection, &message);
            }
        }
    }

    /// Ends the room: every connection is to be closed, no tick is simulated any more. Again, it does nothing.
    pub fn stop(&mut self) {
        if self.phase != Phase::Stopped {
            self.write_end();
        }
        self.phase = Phase::Stopped;
        self.table.close();
        let open: Vec<_> = self.connections.keys().copied().collect();
        for connection in open {
            self.close(connection, DisconnectReason::Stopped);
        }
    }

    /// Whether players are let in.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Serving
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
        self.connections.keys().copied()
    }

    /// Every player's body, in order of player; those who may come back included.
    pub fn bodies(&self) -> impl Iterator<Item = (PlayerId, &Body<W>)> {
        self.stage.bodies()
    }

    /// A player's body at the end of a recent tick.
    pub fn body(&self, player: PlayerId, tick: Tick) -> Option<&Body<W>> {
        self.stage.bodies.history(player)?.get(tick).map(|record| &record.after)
    }

    /// What a player is called.
    pub fn name(&self, player: PlayerId) -> Option<&PlayerName> {
        self.table.players().find(|(id, _)| *id == player).map(|(_, session)| session.name())
    }

    /// What has been counted of a player's input.
    pub fn input_stats(&self, player: PlayerId) -> Option<&InputStats> {
        let at = self.players.binary_search_by_key(&player, |player| player.id).ok()?;
        self.players.get(at).map(|player| player.queue.stats())
    }

    /// What has been counted of the input of everybody, those who are gone included.
    pub fn all_input_stats(&self) -> InputStats {
        self.players.iter().fold(self.past_input, |all, player| all.plus(player.queue.stats()))
    }

    /// What became of a player's input of a recent tick, as far as it is remembered. What was held may still turn out to
    /// be late or lost.
    pub fn fate(&self, player: PlayerId, tick: Tick) -> Option<Fate> {
        let at = self.players.binary_search_by_key(&player, |player| player.id).ok()?;
        self.players.get(at)?.queue.fate(tick)
    }

    /// The player that came by `connection`.
    pub fn player_of(&self, connection: ConnectionId) -> Option<PlayerId> {
        self.connections.get(&connection).filter(|open| open.closing.is_none())?.player
    }

    /// The connection by which `player` is there; none while it is away.
    pub fn connection_of(&self, player: PlayerId) -> Option<ConnectionId> {
        let at = self.players.binary_search_by_key(&player, |player| player.id).ok()?;
        self.players.get(at)?.connection
    }

    /// Players who are away: their connection is gone, and they may come back within the grace.
    pub fn away(&self) -> usize {
        self.players.iter().filter(|player| player.connection.is_none()).count()
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
        if self.writing.is_some() { Err(WorldIsRecorded) } else { Ok(&mut self.stage.world) }
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
        if !self.has_room_for_command() {
            return Err(CommandRefused::TooMany);
        }
        self.stage.command(bytes)?;
        self.write_entry(|| Entry::Commanded { bytes: bytes.to_vec() });
        Ok(())
    }

    /// What it has counted.
    pub fn stats(&self) -> ServerStats {
        ServerStats { slips: self.clock.slips(), backwards: self.clock.backwards(), ..self.stats }
    }
}

/// What time does.
impl<W: World> Server<W> {
    /// Connections that are silent or never logged in, and players who have been away for too long.
    fn expire(&mut self, now: Timestamp) {
        let expired = self.table.handle_timeout(now);
        for connection in expired.connections {
            self.close(connection, DisconnectReason::Silent);
        }
        for player in expired.players {
            self.forget_player(player);
        }
        let hangs =
            |open: &Connection| open.player.is_none() && open.closing.is_none() && now >= open.deadline;
        while let Some(connection) =
            self.connections.iter().find(|(_, open)| hangs(open)).map(|(connection, _)| *connection)
        {
            self.close(connection, DisconnectReason::LoginTimeout);
        }
    }

    /// Simulates the next tick.
    fn simulate(&mut self) {
        // One tick of input per tick of time: nobody is faster than the clock.
        let mut players = self.players.iter_mut();
        self.stage.advance(|body| {
            let player = players.find(|player| player.id == body);
            player.map_or(TickInput::steady(W::Game::neutral()), |player| player.queue.take().0)
        });
        self.clock.simulated();
        self.stats.ticks += 1;
        self.write_tick();
        self.tell_events();
    }

    fn write_snapshots(&mut self, now: Timestamp, due: u32) {
        let late = self.clock.time(now).saturating_since(self.config.cadence.end_of(self.stage.tick()));
        let written = Written {
            now,
            epoch: self.clock.epoch(),
            late: (due == 1).then_some(late),
            max_bytes: self.config.max_datagram_bytes,
        };
        let mut too_long = Vec::new();
        for index in 0..self.players.len() {
            let Some(player) = self.players.get(index) else { break };
            let (id, Some(connection)) = (player.id, player.connection) else { continue };
            if self.heal(now, connection, id) {
                continue;
            }
            let open = self.connections.get(&connection);
            let probes = open.is_some_and(|open| open.router.needs_probes(MessageKind::PlayerState));
            if let Some(player) = self.players.get_mut(index) {
                match player.write(written, &mut self.stage.bodies) {
                    Ok(()) => self.stats.snapshots += 1,
                    Err(BodyTooLong) => too_long.push((connection, id)),
                }
                if probes {
                    player.plan_probe(now);
                }
            }
        }
        for (connection, player) in too_long {
            self.refuse_body(connection, player);
        }
    }
}

fn closing(now: Timestamp, until: Timestamp) -> FromServer {
    let within = until.saturating_since(now).as_millis();
    FromServer::Closing(Closing { within_millis: u32::try_from(within).unwrap_or(u32::MAX) })
}

fn player_in<G: BodyCode>(players: &mut [Player<G>], id: PlayerId) -> Option<&mut Player<G>> {
    let at = players.binary_search_by_key(&id, |player| player.id).ok()?;
    players.get_mut(at)
}
