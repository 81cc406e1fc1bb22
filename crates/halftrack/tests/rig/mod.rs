//! A server and its clients in one place and in virtual time, with a network between them that a test can break.
//!
//! Nothing of ours is replaced: bytes come out of the real polls and go into the real handlers. Time jumps from one
//! happening to the next, so that whatever is due is done at its microsecond.
#![allow(dead_code, reason = "each test uses its own part of it")]

pub(crate) mod carts;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Server, ServerConfig, World};
use halftrack::session::{ConnectionId, DisconnectReason};
use halftrack::wire::FrameReader;
use halftrack::wire::control::{FromClient, FromServer};
use halftrack::{Link, MessageKind, SyncLink, Timestamp, Token};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What a way through the network does to what is sent on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) delay: Duration,
    /// Uniform, on top of the delay.
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
}

impl Way {
    pub(crate) const IDEAL: Self =
        Self { delay: Duration::ZERO, jitter: Duration::ZERO, loss: 0.0, duplicate: 0.0 };

    pub(crate) fn delayed(delay: Duration) -> Self {
        Self { delay, ..Self::IDEAL }
    }
}

/// A small generator: the same seed, the same network.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (self.unit() * limit as f64) as u64
    }
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
struct Pipe {
    datagrams: BTreeMap<(Timestamp, u64), Vec<u8>>,
    stream: VecDeque<(Timestamp, Vec<u8>)>,
    count: u64,
}

impl Pipe {
    fn send_datagram(&mut self, now: Timestamp, way: Way, dice: &mut Dice, bytes: &[u8]) {
        let copies = 1 + u32::from(dice.unit() < way.duplicate);
        for _ in 0..copies {
            if dice.unit() < way.loss {
                continue;
            }
            let at = now + way.delay + way.jitter.mul_f64(dice.unit());
            self.count += 1;
            self.datagrams.insert((at, self.count), bytes.to_vec());
        }
    }

    /// In order; a loss is a retransmission, which everything behind it waits for.
    fn send_stream(&mut self, now: Timestamp, way: Way, dice: &mut Dice, bytes: &[u8]) {
        let mut at = now + way.delay + way.jitter.mul_f64(dice.unit());
        while dice.unit() < way.loss {
            at = at + way.delay * 2 + ms(20);
        }
        let after = self.stream.back().map_or(at, |(before, _)| *before);
        self.stream.push_back((at.max(after), bytes.to_vec()));
    }

    fn next(&self) -> Option<Timestamp> {
        let datagram = self.datagrams.keys().next().map(|(at, _)| *at);
        datagram.into_iter().chain(self.stream.front().map(|(at, _)| *at)).min()
    }

    fn take_datagram(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        let entry = self.datagrams.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    fn take_stream(&mut self, now: Timestamp) -> Option<Vec<u8>> {
        self.stream.front().filter(|(at, _)| *at <= now)?;
        self.stream.pop_front().map(|(_, bytes)| bytes)
    }
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// Every message that the two ends of a connection put on a link, before the network does anything to it.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    messages: Vec<(Direction, Link, MessageKind)>,
    up: FrameReader,
    down: FrameReader,
}

impl Tap {
    fn reconnect(&mut self) {
        (self.up, self.down) = (FrameReader::default(), FrameReader::default());
    }

    fn stream(&mut self, direction: Direction, mut bytes: &[u8]) {
        let reader = if direction == Direction::Up { &mut self.up } else { &mut self.down };
        while let Some(frame) = reader.next(&mut bytes).unwrap() {
            let kind = match direction {
                Direction::Up => FromClient::read(frame).unwrap().kind(),
                Direction::Down => FromServer::read(frame).unwrap().kind(),
            };
            self.messages.push((direction, Link::Reliable, kind));
        }
    }

    fn datagram(&mut self, direction: Direction) {
        let kind = if direction == Direction::Up { MessageKind::MoveInput } else { MessageKind::PlayerState };
        self.messages.push((direction, Link::Sync, kind));
    }

    /// How many messages of `kind` took `link`.
    pub(crate) fn count(&self, direction: Direction, link: Link, kind: MessageKind) -> usize {
        self.messages.iter().filter(|message| **message == (direction, link, kind)).count()
    }
}

/// One player's place.
pub(crate) struct Seat<W: World> {
    pub(crate) client: Client<W::Game>,
    pub(crate) up: Way,
    pub(crate) down: Way,
    pub(crate) sync_link: SyncLink,
    /// Datagrams to the server are dropped; those to the client.
    pub(crate) datagrams_cut: (bool, bool),
    /// Time between frames.
    pub(crate) frame: Duration,
    /// Whether the client also wakes at tick boundaries.
    pub(crate) wakes: bool,
    /// What the reliable link takes longer than the sync link.
    pub(crate) stream_lag: Duration,
    /// The client's own clock shows so much more than the rig's.
    pub(crate) clock_ahead: Duration,
    /// And runs this much fast, from the rig's start on.
    pub(crate) clock_ppm: u64,
    /// Neither frames nor arrivals until then: a suspended tab.
    pub(crate) frozen_until: Timestamp,
    pub(crate) events: Vec<ClientEvent>,
    /// Ends of connections that the client was told of.
    pub(crate) closed: Vec<DisconnectReason>,
    pub(crate) bytes_down: u64,
    pub(crate) datagrams_down: u64,
    pub(crate) tap: Tap,
    next_frame: Timestamp,
    connection: Option<ConnectionId>,
    to_server: Pipe,
    to_client: Pipe,
}

impl<W: World> Seat<W> {
    /// What the client's own clock shows.
    pub(crate) fn local(&self, now: Timestamp) -> Timestamp {
        now + self.clock_ahead + Duration::from_micros(now.as_micros() * self.clock_ppm / 1_000_000)
    }

    /// When it shows `due`; a little early, if it drifts.
    fn global(&self, now: Timestamp, due: Timestamp) -> Timestamp {
        now + due.saturating_since(self.local(now))
    }
}

/// A server, its clients, and the network between them.
pub(crate) struct Rig<W: World> {
    pub(crate) now: Timestamp,
    pub(crate) server: Server<W>,
    pub(crate) seats: Vec<Seat<W>>,
    pub(crate) dice: Dice,
    /// The server does nothing until then.
    pub(crate) stalled_until: Timestamp,
    /// What the server has written down, if it does.
    pub(crate) record: Vec<u8>,
    next_connection: u64,
}

impl<W: World> Rig<W> {
    pub(crate) fn new(config: ServerConfig, world: W, seed: u64) -> Self {
        // Not at zero, so that nothing relies on it.
        let now = Timestamp::from_micros(12_345_678);
        Self {
            now,
            server: Server::new(config, world, now).unwrap(),
            seats: vec![],
            dice: Dice(seed),
            stalled_until: now,
            record: vec![],
            next_connection: 1,
        }
    }

    /// Adds a client, which connects at once.
    pub(crate) fn join(&mut self, config: ClientConfig<W::Game>, way: Way) -> usize {
        let mut client = Client::new(config).unwrap();
        client.connect(self.now);
        self.seats.push(Seat {
            client,
            up: way,
            down: way,
            sync_link: SyncLink::Present,
            datagrams_cut: (false, false),
            frame: Duration::from_micros(16_667),
            wakes: true,
            stream_lag: Duration::ZERO,
            clock_ahead: Duration::ZERO,
            clock_ppm: 0,
            frozen_until: self.now,
            events: vec![],
            closed: vec![],
            bytes_down: 0,
            datagrams_down: 0,
            tap: Tap::default(),
            next_frame: self.now,
            connection: None,
            to_server: Pipe::default(),
            to_client: Pipe::default(),
        });
        self.seats.len() - 1
    }

    /// The connection of a client goes away under both.
    pub(crate) fn cut(&mut self, seat: usize) {
        let seat = &mut self.seats[seat];
        (seat.to_server, seat.to_client) = (Pipe::default(), Pipe::default());
        if let Some(connection) = seat.connection.take() {
            self.server.handle_disconnected(self.now, connection);
            seat.client.handle_disconnected(seat.local(self.now), None);
        }
    }

    /// The server's process is gone, and another goes on in its place. No client is told: their links are dead.
    pub(crate) fn replace(&mut self, server: Server<W>) {
        self.server = server;
        for seat in &mut self.seats {
            (seat.to_server, seat.to_client) = (Pipe::default(), Pipe::default());
            if seat.connection.take().is_some() {
                seat.client.handle_disconnected(seat.local(self.now), None);
            }
        }
    }

    pub(crate) fn connection(&self, seat: usize) -> Option<ConnectionId> {
        self.seats[seat].connection
    }

    /// Lets time pass. `drive` is asked before every frame of every client.
    pub(crate) fn run(
        &mut self,
        span: Duration,
        mut drive: impl FnMut(usize, Timestamp, &mut Client<W::Game>),
    ) {
        let end = self.now + span;
        loop {
            self.deliver();
            self.wake(&mut drive);
            self.carry();
            let next = self.next();
            if next > end {
                break;
            }
            assert!(next > self.now, "time stands still at {:?}", self.now);
            self.now = next;
        }
        self.now = end;
    }

    fn next(&self) -> Timestamp {
        let server = self.server.poll_timeout().map(|due| due.max(self.stalled_until));
        let seats = self.seats.iter().flat_map(|seat| {
            let woken = seat.client.poll_timeout().filter(|_| seat.wakes);
            let woken = woken.map(|due| seat.global(self.now, due));
            let own = [Some(seat.next_frame), woken, seat.to_client.next()];
            let own = own.into_iter().flatten().map(|due| due.max(seat.frozen_until));
            let up = seat.to_server.next().map(|due| due.max(self.stalled_until));
            own.chain(up)
        });
        let next = seats.chain(server).min().unwrap_or(Timestamp::from_micros(u64::MAX));
        // What is due now has been done; a timeout that has passed is for the next microsecond.
        next.max(self.now + Duration::from_micros(1))
    }

    /// What has arrived is handed over.
    fn deliver(&mut self) {
        for seat in &mut self.seats {
            let Some(connection) = seat.connection else { continue };
            if self.now >= self.stalled_until {
                while let Some(bytes) = seat.to_server.take_stream(self.now) {
                    self.server.handle_stream(self.now, connection, &bytes);
                }
                while let Some(bytes) = seat.to_server.take_datagram(self.now) {
                    self.server.handle_datagram(self.now, connection, &bytes);
                }
            }
            if self.now >= seat.frozen_until {
                while let Some(bytes) = seat.to_client.take_stream(self.now) {
                    seat.client.handle_stream(seat.local(self.now), &bytes);
                }
                while let Some(bytes) = seat.to_client.take_datagram(self.now) {
                    seat.client.handle_datagram(seat.local(self.now), &bytes);
                }
            }
        }
    }

    /// Whoever is due acts.
    fn wake(&mut self, drive: &mut impl FnMut(usize, Timestamp, &mut Client<W::Game>)) {
        if self.now >= self.stalled_until {
            self.server.handle_timeout(self.now);
        }
        for (index, seat) in self.seats.iter_mut().enumerate() {
            if self.now < seat.frozen_until {
                continue;
            }
            let local = seat.local(self.now);
            if seat.wakes && seat.client.poll_timeout().is_some_and(|due| local >= due) {
                seat.client.handle_timeout(local);
            }
            if self.now >= seat.next_frame {
                seat.next_frame = self.now + seat.frame;
                drive(index, local, &mut seat.client);
                seat.client.frame(local);
            }
        }
    }

    /// What was said is put on its way; what follows from it is written first.
    fn carry(&mut self) {
        self.server.poll_record(&mut self.record);
        for seat in &mut self.seats {
            while let Some(event) = seat.client.poll_event() {
                match event {
                    ClientEvent::Connect => {
                        let connection = ConnectionId::new(self.next_connection);
                        let token = u128::from(self.next_connection) << 64 | 0x5eed;
                        self.next_connection += 1;
                        (seat.to_server, seat.to_client) = (Pipe::default(), Pipe::default());
                        seat.connection = Some(connection);
                        seat.tap.reconnect();
                        let token = Token::new(token.to_le_bytes());
                        self.server.handle_connected(self.now, connection, seat.sync_link, token);
                        seat.client.handle_connected(seat.local(self.now), seat.sync_link);
                    }
                    ClientEvent::Close => {
                        let mut bytes = vec![];
                        if let Some(connection) = seat.connection.take() {
                            if seat.client.poll_stream(&mut bytes) {
                                seat.tap.stream(Direction::Up, &bytes);
                                self.server.handle_stream(self.now, connection, &bytes);
                            }
                            self.server.handle_disconnected(self.now, connection);
                        }
                        (seat.to_server, seat.to_client) = (Pipe::default(), Pipe::default());
                    }
                    other => seat.events.push(other),
                }
            }
            let Some(connection) = seat.connection else { continue };
            let (now, dice) = (self.now, &mut self.dice);
            let mut bytes = vec![];
            if seat.client.poll_stream(&mut bytes) {
                seat.tap.stream(Direction::Up, &bytes);
                seat.to_server.send_stream(now + seat.stream_lag, seat.up, dice, &bytes);
            }
            while let Some(bytes) = seat.client.poll_datagram() {
                seat.tap.datagram(Direction::Up);
                if !seat.datagrams_cut.0 {
                    seat.to_server.send_datagram(now, seat.up, dice, bytes);
                }
            }
            bytes.clear();
            if self.server.poll_stream(connection, &mut bytes) {
                seat.tap.stream(Direction::Down, &bytes);
                seat.to_client.send_stream(now + seat.stream_lag, seat.down, dice, &bytes);
            }
            while let Some(bytes) = self.server.poll_datagram(connection) {
                seat.bytes_down += bytes.len() as u64;
                seat.datagrams_down += 1;
                seat.tap.datagram(Direction::Down);
                if !seat.datagrams_cut.1 {
                    seat.to_client.send_datagram(now, seat.down, dice, bytes);
                }
            }
        }
        while let Some((connection, reason)) = self.server.poll_close() {
            self.server.handle_closed(connection);
            if let Some(seat) = self.seats.iter_mut().find(|seat| seat.connection == Some(connection)) {
                // What is still on its way arrives before the end does.
                while let Some((_, bytes)) = seat.to_client.stream.pop_front() {
                    seat.client.handle_stream(seat.local(self.now), &bytes);
                }
                seat.connection = None;
                (seat.to_server, seat.to_client) = (Pipe::default(), Pipe::default());
                seat.closed.push(reason);
                seat.client.handle_disconnected(seat.local(self.now), Some(reason));
            }
        }
    }
}
