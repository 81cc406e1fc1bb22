//! A whole server in memory, and clients as far as it can tell: they send input and acknowledge what they have.

pub(crate) mod herd;

use std::collections::VecDeque;
use std::sync::Arc;

use halftrack::server::{Server, ServerConfig};
use halftrack::session::ConnectionId;
use halftrack::wire::FrameReader;
use halftrack::wire::control::{FromClient, FromServer, Login, PROTOCOL};
use halftrack::{
    Completeness, MoveInput, PlayerName, Seq, SubTick, SyncLink, Tick, TickInput, Timestamp, Token,
    shared_hash,
};
use herd::Herd;
use tanks::{Arena, Axis, TankInput, TankWorld, TankWorldConfig, Tanks};

/// What kind of room it is.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) clients: u16,
    /// Metres.
    pub(crate) side: f64,
    /// Input changes of each tank, at random moments.
    pub(crate) changes_per_second: f64,
    /// How many ticks before the one that is told of the acknowledged one lies, for each client by its number.
    pub(crate) baseline_age: fn(u16) -> usize,
    /// Bodies that no player owns.
    pub(crate) herd: herd::Kind,
}

/// One client, as far as the server can tell.
pub(crate) struct Peer {
    connection: ConnectionId,
    message: MoveInput<TankInput>,
    /// Snapshots on their way to being acknowledged; lost ones are none.
    acks: VecDeque<Option<Tick>>,
    age: usize,
    datagram: Vec<u8>,
    reader: FrameReader,
    stream: Vec<u8>,
    /// The full state on its way: its tick, its length, and the bytes that have come.
    full: (Tick, usize, Vec<u8>),
}

/// A server and its clients.
pub(crate) struct Room {
    pub(crate) server: Server<Herd>,
    kind: Kind,
    peers: Vec<Peer>,
    now: Timestamp,
    dice: u64,
}

/// Of the snapshots: they are never acknowledged.
const LOSS: f64 = 0.02;

impl Room {
    pub(crate) fn new(kind: Kind) -> Self {
        let arena = Arc::new(Arena::new([kind.side, kind.side], vec![]).expect("a good size"));
        let world =
            TankWorld::new(TankWorldConfig { arena: Arc::clone(&arena), ..TankWorldConfig::default() });
        let config =
            ServerConfig { capacity: kind.clients.into(), max_connections: 300, ..ServerConfig::default() };
        let now = Timestamp::from_micros(1_000_000);
        let world = Herd::new(world.expect("good numbers"), kind.herd);
        let mut server = Server::new(config, world, now).expect("good numbers");
        let rules = Arc::new(Tanks::new(arena));
        let shared = shared_hash(&*rules, config.cadence);
        let peers: Vec<_> =
            (0..kind.clients).map(|number| Peer::log_in(&mut server, now, shared, number, kind)).collect();
        Self { server, kind, peers, now, dice: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Everybody in full, and the tick of that, as often as the server tells it a client by its stream.
    pub(crate) fn full_states(&mut self, client: usize, mut told: impl FnMut(Tick, &[u8])) {
        let peer = &mut self.peers[client];
        self.server.poll_stream(peer.connection, &mut peer.stream);
        let mut rest = peer.stream.as_slice();
        while let Some(frame) = peer.reader.next(&mut rest).expect("whole frames") {
            match FromServer::read(frame).expect("a message") {
                FromServer::Welcome(welcome) => {
                    peer.full = (Tick::new(welcome.tick), welcome.bodies as usize, vec![]);
                }
                FromServer::Bodies(piece) => {
                    let (tick, length, bytes) = &mut peer.full;
                    bytes.extend(piece);
                    if bytes.len() == *length {
                        told(*tick, bytes);
                    }
                }
                _ => {}
            }
        }
        peer.stream.clear();
    }

    fn unit(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1u64 << 53) as f64
    }

    fn wish(&mut self) -> TankInput {
        let mut axis = || Axis::from_level((self.unit() * 33.0) as i8 - 16);
        let (turn, throttle) = (axis(), axis());
        // All are moving.
        TankInput { turn, throttle: if throttle == Axis::ZERO { Axis::FULL } else { throttle }, rocket: 0 }
    }

    /// What every client sends for the next tick.
    pub(crate) fn prepare(&mut self) {
        let tick = self.server.tick().next();
        let per_tick = self.kind.changes_per_second * self.server.cadence().interval().as_secs_f64();
        for index in 0..self.peers.len() {
            let held = self.peers[index].message.ticks.last().map_or(TankInput::NEUTRAL, TickInput::last);
            let mut input = TickInput::steady(held);
            if self.unit() < per_tick || held == TankInput::NEUTRAL {
                let wish = self.wish();
                let at = SubTick::new((self.unit() * 255.0) as u8 + 1).expect("not zero");
                input.change(at, wish).expect("the first of its tick");
            }
            let lost = self.unit() < LOSS;
            self.peers[index].write(tick, input, lost);
        }
    }

    /// The server's tick: it takes all input, simulates, and writes and hands out all snapshots. `told` gets them.
    pub(crate) fn serve(&mut self, mut told: impl FnMut(usize, Tick, &[u8])) {
        for peer in &self.peers {
            self.server.handle_datagram(self.now, peer.connection, &peer.datagram);
        }
        self.now = self.now + self.server.cadence().interval();
        self.server.handle_timeout(self.now);
        let tick = self.server.tick();
        for (index, peer) in self.peers.iter().enumerate() {
            if let Some(snapshot) = self.server.poll_datagram(peer.connection) {
                told(index, tick, snapshot);
            }
        }
    }
}

impl Peer {
    fn log_in(server: &mut Server<Herd>, now: Timestamp, shared: u64, number: u16, kind: Kind) -> Self {
        let connection = ConnectionId::new(number.into());
        let mut token = [0; 16];
        [token[0], token[1]] = number.to_le_bytes();
        server.handle_connected(now, connection, SyncLink::Present, Token::new(token));
        let name = PlayerName::new(&format!("tank {number}")).expect("a good name");
        let login = Login { protocol: PROTOCOL, shared, name, resume: None, credentials: None };
        let mut bytes = vec![];
        assert!(FromClient::Login(login).append_to(&mut bytes));
        server.handle_stream(now, connection, &bytes);
        Self {
            connection,
            message: MoveInput::default(),
            acks: VecDeque::with_capacity(16),
            age: (kind.baseline_age)(number),
            datagram: vec![0; 1_100],
            reader: FrameReader::default(),
            stream: vec![],
            full: (Tick::default(), 0, vec![]),
        }
    }

    /// The input of `tick`, with the two before it, as an honest client repeats what is not acknowledged; and the
    /// acknowledgement that is due, or the one before it if that snapshot was lost.
    fn write(&mut self, tick: Tick, input: TickInput<TankInput>, lost: bool) {
        self.acks.push_back(tick.previous().filter(|_| !lost));
        let ack = if self.acks.len() >= self.age { self.acks.pop_front().flatten() } else { None };
        self.message.ack = ack.or(self.message.ack);
        self.message.seq = Seq::new(self.message.seq.number().wrapping_add(1));
        (self.message.newest, self.message.completeness) = (tick, Completeness::Closed);
        if self.message.ticks.len() >= 3 {
            self.message.ticks.remove(0);
        }
        self.message.ticks.push(input);
        self.datagram.resize(1_100, 0);
        let length = self.message.encode(&mut self.datagram).expect("it fits");
        self.datagram.truncate(length);
    }
}
