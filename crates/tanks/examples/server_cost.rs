//! What a tick of the server costs: `cargo run --release -p tanks --example server_cost`.
//!
//! The whole server in memory: N clients and N tanks, all see all, all moving, each changing its input twice a second at
//! random moments. Every client sends its input once a tick with the acknowledgement of what it has, spread over four
//! ticks and more, and 2 % of the snapshots are lost. Measured is the CPU time of this thread, for everything that the
//! server does in a tick: taking N input datagrams, simulating, and writing and handing out N snapshots.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use halftrack::server::{Server, ServerConfig};
use halftrack::session::ConnectionId;
use halftrack::wire::control::{FromClient, Login, PROTOCOL};
use halftrack::wire::{Completeness, MoveInput};
use halftrack::{PlayerName, Seq, SubTick, SyncLink, Tick, TickInput, Timestamp, Token, shared_hash};
use tanks::{Arena, Axis, Surroundings, TankInput, TankWorld, TankWorldConfig, Tanks};

const TICKS: u32 = 600;

fn main() {
    println!("| clients | arena | median | mean | 99 % | bytes per snapshot | allocations per tick |");
    println!("|---|---|---|---|---|---|---|");
    for (count, side) in [(100, 400.0), (100, 60.0), (250, 600.0), (250, 100.0)] {
        let mut room = Room::new(count, side);
        let mut costs: Vec<Duration> = (0..TICKS).map(|_| room.tick()).collect();
        costs.drain(..TICKS as usize / 4);
        let (bytes, snapshots) = (room.bytes, room.snapshots);
        let allocations = allocation_counter::measure(|| {
            for _ in 0..100 {
                room.prepare();
                room.serve();
            }
        });
        let own = allocation_counter::measure(|| {
            for _ in 0..100 {
                room.prepare();
            }
        });
        let mean = costs.iter().sum::<Duration>() / u32::try_from(costs.len()).expect("few");
        costs.sort_unstable();
        println!(
            "| {count} | {side} m | {:.0} us | {:.0} us | {:.0} us | {:.0} | {:.2} |",
            micros(costs[costs.len() / 2]),
            micros(mean),
            micros(costs[costs.len() * 99 / 100]),
            bytes as f64 / f64::from(snapshots),
            allocations.count_total.saturating_sub(own.count_total) as f64 / 100.0,
        );
    }
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

/// One client, as far as the server can tell.
struct Peer {
    connection: ConnectionId,
    message: MoveInput<TankInput>,
    /// Snapshots on their way to being acknowledged; lost ones are none.
    acks: VecDeque<Option<Tick>>,
    delay: usize,
    datagram: Vec<u8>,
}

struct Room {
    server: Server<TankWorld>,
    peers: Vec<Peer>,
    now: Timestamp,
    dice: u64,
    bytes: u64,
    snapshots: u32,
}

impl Room {
    fn new(count: u16, side: f64) -> Self {
        let arena = Arc::new(Arena::new([side, side], vec![]).expect("a good size"));
        let world =
            TankWorld::new(TankWorldConfig { arena: Arc::clone(&arena), ..TankWorldConfig::default() })
                .expect("good numbers");
        let config = ServerConfig { capacity: count.into(), max_connections: 300, ..ServerConfig::default() };
        let now = Timestamp::from_micros(1_000_000);
        let mut server = Server::new(config, world, now).expect("good numbers");
        let shared = shared_hash::<Tanks>(config.cadence, &Surroundings::empty(arena));
        let peers = (0..count).map(|number| {
            let connection = ConnectionId::new(number.into());
            let [low, high] = number.to_le_bytes();
            let mut token = [0; 16];
            (token[0], token[1]) = (low, high);
            server.handle_connected(now, connection, SyncLink::Present, Token::new(token));
            let name = PlayerName::new(&format!("tank {number}")).expect("a good name");
            let login = Login { protocol: PROTOCOL, shared, name, resume: None, credentials: None };
            let mut bytes = vec![];
            assert!(FromClient::Login(login).append_to(&mut bytes));
            server.handle_stream(now, connection, &bytes);
            bytes.clear();
            server.poll_stream(connection, &mut bytes);
            Peer {
                connection,
                message: MoveInput::default(),
                acks: VecDeque::with_capacity(16),
                // Two to six ticks: acknowledgements of a room are never all of one tick.
                delay: 2 + usize::from(number % 5),
                datagram: vec![0; 1_100],
            }
        });
        let peers = peers.collect();
        let mut drained = vec![];
        for number in 0..count {
            server.poll_stream(ConnectionId::new(number.into()), &mut drained);
        }
        Self { server, peers, now, dice: 0x9e37_79b9_7f4a_7c15, bytes: 0, snapshots: 0 }
    }

    fn unit(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1u64 << 53) as f64
    }

    /// What every client sends for the next tick. Not measured.
    fn prepare(&mut self) {
        let tick = self.server.tick().next();
        for index in 0..self.peers.len() {
            let held = self.peers[index].message.ticks.last().map_or(TankInput::NEUTRAL, TickInput::last);
            let mut input = TickInput::steady(held);
            if self.unit() < 0.1 || held == TankInput::NEUTRAL {
                let mut axis = || Axis::from_level((self.unit() * 33.0) as i8 - 16);
                let wish = TankInput { turn: axis(), throttle: axis() };
                let at = SubTick::new((self.unit() * 255.0) as u8 + 1).expect("not zero");
                input.change(at, wish).expect("the first of its tick");
            }
            let lost = self.unit() < 0.02;
            let peer = &mut self.peers[index];
            peer.acks.push_back(tick.previous().filter(|_| !lost));
            let ack = if peer.acks.len() > peer.delay { peer.acks.pop_front().flatten() } else { None };
            peer.message.seq = Seq::new(peer.message.seq.number().wrapping_add(1));
            // One that was lost is not acknowledged; the one before it is, again.
            peer.message.ack = ack.or(peer.message.ack);
            peer.message.newest = tick;
            peer.message.completeness = Completeness::Closed;
            // Three ticks in every datagram, as an honest client repeats what is not acknowledged.
            if peer.message.ticks.len() >= 3 {
                peer.message.ticks.remove(0);
            }
            peer.message.ticks.push(input);
            peer.datagram.resize(1_100, 0);
            let length = peer.message.encode(&mut peer.datagram).expect("it fits");
            peer.datagram.truncate(length);
        }
    }

    fn serve(&mut self) {
        for peer in &self.peers {
            self.server.handle_datagram(self.now, peer.connection, &peer.datagram);
        }
        self.now = self.now + self.server.cadence().interval();
        self.server.handle_timeout(self.now);
        for peer in &self.peers {
            if let Some(snapshot) = self.server.poll_datagram(peer.connection) {
                self.bytes += snapshot.len() as u64;
                self.snapshots += 1;
            }
        }
    }

    fn tick(&mut self) -> Duration {
        self.prepare();
        let start = Instant::now();
        self.serve();
        start.elapsed()
    }
}
