//! A room, clients who play by the rules, and short pipes between them, in steps of virtual time. Whoever does not play by
//! the rules gets at all of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Server, ServerConfig, World};
use halftrack::session::{ConnectionId, DisconnectReason};
use halftrack::{PlayerName, SyncLink, Timestamp, Token};
use halftrack_flight::FlightClient;
use tanks::{Axis, Seen, ShootInput, TankInput, TankWorld, TankWorldConfig, Tanks};

/// Between two frames, which is when everything happens.
pub(crate) const STEP: Duration = Duration::from_millis(10);
/// Every way takes so long.
const DELAY: Duration = Duration::from_millis(20);

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    pub(crate) stream: VecDeque<(Timestamp, Vec<u8>)>,
    pub(crate) datagrams: VecDeque<(Timestamp, Vec<u8>)>,
}

fn due(queue: &mut VecDeque<(Timestamp, Vec<u8>)>, now: Timestamp) -> Option<Vec<u8>> {
    queue.front().filter(|(arrival, _)| *arrival <= now)?;
    queue.pop_front().map(|(_, bytes)| bytes)
}

/// A client and its connection.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) client: FlightClient<Tanks>,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
    /// What it was told, but for what is about connections.
    pub(crate) events: Vec<ClientEvent>,
    /// Why its connections were closed by the server.
    pub(crate) closed: Vec<DisconnectReason>,
}

/// A room and its clients.
#[derive(Debug)]
pub(crate) struct Rig<W: World<Game = Tanks> = TankWorld> {
    pub(crate) now: Timestamp,
    pub(crate) server: Server<W>,
    pub(crate) seats: Vec<Seat>,
    next_connection: u64,
    /// What went over any pipe, if it is written down.
    pub(crate) record: Option<Vec<Packet>>,
}

/// Something that went over a pipe.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    StreamUp(Vec<u8>),
    DatagramUp(Vec<u8>),
    StreamDown(Vec<u8>),
    DatagramDown(Vec<u8>),
}

/// The tank game with that number of machines, which launch rockets.
pub(crate) fn tank_world(machines: u8) -> TankWorld {
    let config = TankWorldConfig { machines, machine_rockets: true, ..TankWorldConfig::default() };
    TankWorld::new(config).expect("a good world")
}

/// The same with crates and a platform.
pub(crate) fn yard_world(machines: u8) -> TankWorld {
    let config = TankWorldConfig {
        machines,
        machine_rockets: true,
        crates: 3,
        platforms: 1,
        ..TankWorldConfig::default()
    };
    TankWorld::new(config).expect("a good world")
}

impl<W: World<Game = Tanks>> Rig<W> {
    pub(crate) fn new(config: ServerConfig, world: W) -> Self {
        // Not at zero, so that nothing relies on it.
        let now = Timestamp::from_micros(12_340_000);
        let server = Server::new(config, world, now).expect("a good config");
        Self { now, server, seats: vec![], next_connection: 1, record: None }
    }

    /// A player who connects at once.
    pub(crate) fn join(&mut self, name: &str) -> usize {
        let client = Client::new(client_config(name, &self.server)).expect("a good config");
        let mut client = FlightClient::new(client);
        client.connect(self.now);
        self.seats.push(Seat {
            client,
            connection: None,
            up: Pipe::default(),
            down: Pipe::default(),
            events: vec![],
            closed: vec![],
        });
        self.seats.len() - 1
    }

    /// The next number of a connection, and a token that nobody else has.
    pub(crate) fn new_connection(&mut self) -> (ConnectionId, Token) {
        let number = self.next_connection;
        self.next_connection += 1;
        (ConnectionId::new(number), Token::new((u128::from(number) << 64 | 0x5eed).to_le_bytes()))
    }

    /// One step; `drive` is asked before every frame.
    pub(crate) fn step(&mut self, drive: &mut impl FnMut(usize, Timestamp, &mut FlightClient<Tanks>)) {
        self.now = self.now + STEP;
        self.deliver();
        self.server.handle_timeout(self.now);
        for (index, seat) in self.seats.iter_mut().enumerate() {
            drive(index, self.now, &mut seat.client);
            seat.client.frame(self.now);
        }
        self.carry();
    }

    pub(crate) fn run(
        &mut self,
        steps: usize,
        mut drive: impl FnMut(usize, Timestamp, &mut FlightClient<Tanks>),
    ) {
        for _ in 0..steps {
            self.step(&mut drive);
        }
    }

    fn deliver(&mut self) {
        for seat in &mut self.seats {
            let Some(connection) = seat.connection else { continue };
            while let Some(bytes) = due(&mut seat.up.stream, self.now) {
                self.server.handle_stream(self.now, connection, &bytes);
            }
            while let Some(bytes) = due(&mut seat.up.datagrams, self.now) {
                self.server.handle_datagram(self.now, connection, &bytes);
            }
            while let Some(bytes) = due(&mut seat.down.stream, self.now) {
                seat.client.handle_stream(self.now, &bytes);
            }
            while let Some(bytes) = due(&mut seat.down.datagrams, self.now) {
                seat.client.handle_datagram(self.now, &bytes);
            }
        }
    }

    /// What was said is put on its way.
    fn carry(&mut self) {
        let arrival = self.now + DELAY;
        for index in 0..self.seats.len() {
            while let Some(event) = self.seats[index].client.poll_event() {
                match event {
                    ClientEvent::Connect => self.connect(index),
                    ClientEvent::Close => self.close(index),
                    other => self.seats[index].events.push(other),
                }
            }
            let seat = &mut self.seats[index];
            let Some(connection) = seat.connection else { continue };
            let mut bytes = vec![];
            if seat.client.poll_stream(&mut bytes) {
                note(&mut self.record, Packet::StreamUp, &bytes);
                seat.up.stream.push_back((arrival, bytes));
            }
            while let Some(bytes) = seat.client.poll_datagram() {
                note(&mut self.record, Packet::DatagramUp, bytes);
                seat.up.datagrams.push_back((arrival, bytes.to_vec()));
            }
            let mut bytes = vec![];
            if self.server.poll_stream(connection, &mut bytes) {
                note(&mut self.record, Packet::StreamDown, &bytes);
                seat.down.stream.push_back((arrival, bytes));
            }
            while let Some(bytes) = self.server.poll_datagram(connection) {
                note(&mut self.record, Packet::DatagramDown, bytes);
                seat.down.datagrams.push_back((arrival, bytes.to_vec()));
            }
        }
        while let Some((connection, reason)) = self.server.poll_close() {
            self.server.handle_closed(connection);
            if let Some(seat) = self.seats.iter_mut().find(|seat| seat.connection == Some(connection)) {
                // What is still on its way arrives before the end does.
                while let Some((_, bytes)) = seat.down.stream.pop_front() {
                    seat.client.handle_stream(self.now, &bytes);
                }
                seat.connection = None;
                seat.closed.push(reason);
                seat.client.handle_disconnected(self.now, Some(reason));
            }
        }
    }

    fn connect(&mut self, index: usize) {
        self.close(index);
        let (connection, token) = self.new_connection();
        let seat = &mut self.seats[index];
        seat.connection = Some(connection);
        self.server.handle_connected(self.now, connection, SyncLink::Present, token);
        seat.client.handle_connected(self.now, SyncLink::Present);
    }

    /// The client closes its connection, if it has one.
    fn close(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        (seat.up, seat.down) = (Pipe::default(), Pipe::default());
        if let Some(connection) = seat.connection.take() {
            let mut bytes = vec![];
            if seat.client.poll_stream(&mut bytes) {
                self.server.handle_stream(self.now, connection, &bytes);
            }
            self.server.handle_disconnected(self.now, connection);
        }
    }
}

fn note(record: &mut Option<Vec<Packet>>, kind: fn(Vec<u8>) -> Packet, bytes: &[u8]) {
    if let Some(record) = record {
        record.push(kind(bytes.to_vec()));
    }
}

/// What a client of that room is built from.
pub(crate) fn client_config<W: World<Game = Tanks>>(name: &str, server: &Server<W>) -> ClientConfig<Tanks> {
    let (name, rules) = (PlayerName::new(name).expect("a good name"), Arc::clone(server.world().rules()));
    ClientConfig::new(name, server.cadence(), rules)
}

/// To and fro in curves, another one for every seat.
pub(crate) fn stroll(seat: usize, now: Timestamp, client: &mut FlightClient<Tanks>) {
    let beat = now.as_micros() / 290_000 + 3 * seat as u64;
    let level = |wish: u64| Axis::from_level((wish % 33) as i8 - Axis::LEVELS);
    client.set_input(now, TankInput { turn: level(beat * 7), throttle: level(beat * 5 + 11), rocket: 0 });
}

/// Fires, as a player would: at what is drawn now.
pub(crate) fn shoot(now: Timestamp, client: &mut FlightClient<Tanks>, aim: u16) -> Option<ShootInput> {
    let cadence = client.cadence();
    let (tick, at) = ShootInput::grid(cadence, client.reconciler()?.predictor().time());
    let (snapshot, drawn) = client.seen()?;
    let shot = ShootInput { tick, at, aim, seen: Seen::new(cadence, snapshot, drawn) };
    client.order(now, &shot.encode()).ok()?;
    Some(shot)
}

/// Where to aim at the nearest other.
pub(crate) fn aim(client: &Client<Tanks>) -> Option<u16> {
    let (own, player) = (client.predicted()?, client.player()?);
    let others = client.crowd().bodies().filter(|(_, history)| history.driver().player() != Some(player));
    let ways = others.map(|(_, history)| {
        (history.latest().pose().x - own.pose().x, history.latest().pose().y - own.pose().y)
    });
    let (x, y) = ways.min_by(|one, other| one.0.hypot(one.1).total_cmp(&other.0.hypot(other.1)))?;
    let turns = y.atan2(x) / core::f64::consts::TAU;
    Some((turns.rem_euclid(1.0) * 65_536.0) as u16)
}
