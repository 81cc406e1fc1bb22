//! What a tick of the server costs: `cargo run --release -p tanks --example server_cost`.
//!
//! The whole server in memory: N clients and N tanks, all see all, all moving, each changing its input twice a second at
//! random moments. Every client sends its input once a tick with the acknowledgement of a snapshot that is three to seven
//! ticks old, and 2 % of the snapshots are lost. Measured is everything that the server does in a tick, on one thread that
//! waits for nothing: taking N input datagrams, simulating, and writing and handing out N snapshots.
//!
//! Then eight real clients, 30 ms away, in a room with five hundred bodies that no player owns. A hundred of these roam, each
//! with another input four times a second. Measured are the server's tick, and in a client everything that a snapshot costs
//! and everything that a frame costs.

mod room;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Server, ServerConfig};
use halftrack::session::ConnectionId;
use halftrack::{Cadence, Driver, PlayerName, SyncLink, Timestamp, Token};
use room::herd::{self, Herd};
use room::{Kind, Room};
use tanks::{Arena, Axis, TankInput, TankWorld, TankWorldConfig, Tanks};

const TICKS: usize = 600;

fn main() {
    println!("| clients | arena | median | mean | 99 % | bytes per snapshot | allocations per tick |");
    println!("|---|---|---|---|---|---|---|");
    for (clients, side) in [(100, 400.0), (100, 60.0), (250, 600.0), (250, 100.0)] {
        let baseline_age = |number| 3 + usize::from(number % 5);
        let herd = herd::Kind::NONE;
        let mut room = Room::new(Kind { clients, side, changes_per_second: 2.0, baseline_age, herd });
        let (mut bytes, mut snapshots) = (0usize, 0u32);
        let mut costs: Vec<Duration> = (0..TICKS)
            .map(|_| {
                room.prepare();
                (0..usize::from(clients)).for_each(|client| room.full_states(client, |_, _| ()));
                let start = Instant::now();
                room.serve(|_, _, snapshot| {
                    bytes += snapshot.len();
                    snapshots += 1;
                });
                start.elapsed()
            })
            .collect();
        // The first ones tell everybody of everybody in full.
        costs.drain(..TICKS / 4);
        let bytes = bytes as f64 / f64::from(snapshots);
        let mut allocations = 0;
        for _ in 0..100 {
            room.prepare();
            allocations += allocation_counter::measure(|| room.serve(|_, _, _| ())).count_total;
        }
        let allocations = allocations as f64 / 100.0;
        println!("| {clients} | {side} m | {} | {bytes:.0} | {allocations:.2} |", spread(&mut costs));
    }
    herd_cost();
}

/// Median, mean, and the cost that one in a hundred exceeds, as columns of a table.
fn spread(costs: &mut [Duration]) -> String {
    let mean = costs.iter().sum::<Duration>() / u32::try_from(costs.len()).expect("few");
    costs.sort_unstable();
    let worst = costs[costs.len() * 99 / 100];
    format!("{:.0} us | {:.0} us | {:.0} us", micros(costs[costs.len() / 2]), micros(mean), micros(worst))
}

/// One direction of a link: when each message arrives.
type Pipe = VecDeque<(Timestamp, Vec<u8>)>;

fn arrived(pipe: &mut Pipe, now: Timestamp) -> Option<Vec<u8>> {
    pipe.front().filter(|(at, _)| now >= *at)?;
    pipe.pop_front().map(|(_, bytes)| bytes)
}

/// A real client and its link. Streams and datagrams up, and down.
struct Seat {
    client: Client<Tanks>,
    connection: ConnectionId,
    token: Token,
    up: [Pipe; 2],
    down: [Pipe; 2],
}

/// Costs of a room with a herd, one for each tick, each snapshot and each frame.
#[derive(Default)]
struct Costs {
    ticks: Vec<Duration>,
    snapshots: Vec<Duration>,
    frames: Vec<Duration>,
}

fn herd_cost() {
    const SECONDS: u64 = 40;
    let herd = herd::Kind { movers: 100, changes_per_second: 4.0, standing: 400, stander: Driver::Nothing };
    let arena = Arc::new(Arena::new([400.0, 400.0], vec![]).expect("a good size"));
    let world = TankWorldConfig { arena: Arc::clone(&arena), ..TankWorldConfig::default() };
    let world = Herd::new(TankWorld::new(world).expect("good numbers"), herd);
    let mut now = Timestamp::from_micros(1_000_000);
    let mut server = Server::new(ServerConfig::default(), world, now).expect("good numbers");
    let rules = Arc::new(Tanks::new(arena));
    let seat = |number: u64| {
        let name = PlayerName::new(&format!("tank {number}")).expect("a good name");
        let config = ClientConfig::new(name, Cadence::default(), Arc::clone(&rules));
        let mut client = Client::new(config).expect("a good config");
        client.connect(now);
        let (connection, token) = (ConnectionId::new(number), Token::new(u128::from(number).to_le_bytes()));
        Seat { client, connection, token, up: Default::default(), down: Default::default() }
    };
    let mut seats: Vec<_> = (0..8).map(seat).collect();
    let mut costs = Costs::default();
    for milli in 0..SECONDS * 1_000 {
        now = now + Duration::from_millis(1);
        serve(now, &mut server, &mut seats, &mut costs.ticks);
        for (number, seat) in (0u64..).zip(&mut seats) {
            play(now, milli + number * 37, seat, &mut costs);
            carry(now, &mut server, seat);
        }
        // The first seconds have full states.
        if milli == SECONDS * 250 {
            costs = Costs::default();
        }
    }
    let known = seats.iter().map(|seat| seat.client.crowd().bodies().count()).min();
    assert_eq!(known, Some(8 + usize::from(herd.count())), "every client knows every body");
    assert!(seats.iter().all(|seat| seat.client.stats().check_failed == 0));
    println!();
    println!("| 8 players, {} roam, {} stand | median | mean | 99 % |", herd.movers, herd.standing);
    println!("|---|---|---|---|");
    println!("| server, a tick | {} |", spread(&mut costs.ticks));
    println!("| client, a snapshot | {} |", spread(&mut costs.snapshots));
    println!("| client, a frame | {} |", spread(&mut costs.frames));
}

/// The server takes everything that has arrived, and then its tick if one is due.
fn serve(now: Timestamp, server: &mut Server<Herd>, seats: &mut [Seat], costs: &mut Vec<Duration>) {
    let mut datagrams = vec![];
    for seat in &mut *seats {
        while let Some(bytes) = arrived(&mut seat.up[0], now) {
            server.handle_stream(now, seat.connection, &bytes);
        }
        while let Some(bytes) = arrived(&mut seat.up[1], now) {
            datagrams.push((seat.connection, bytes));
        }
    }
    let due = server.poll_timeout().is_some_and(|due| now >= due);
    let start = Instant::now();
    for (connection, bytes) in &datagrams {
        server.handle_datagram(now, *connection, bytes);
    }
    server.handle_timeout(now);
    if due {
        costs.push(start.elapsed());
    }
}

/// A client takes everything that has arrived, draws at 62 Hz, and turns its stick twice a second.
fn play(now: Timestamp, milli: u64, seat: &mut Seat, costs: &mut Costs) {
    let client = &mut seat.client;
    while let Some(bytes) = arrived(&mut seat.down[0], now) {
        client.handle_stream(now, &bytes);
    }
    while let Some(bytes) = arrived(&mut seat.down[1], now) {
        let start = Instant::now();
        client.handle_datagram(now, &bytes);
        costs.snapshots.push(start.elapsed());
    }
    if client.poll_timeout().is_some_and(|due| now >= due) {
        client.handle_timeout(now);
    }
    if milli.is_multiple_of(500) {
        let level = |part: u64| Axis::from_level((milli / part % 33) as i8 - Axis::LEVELS);
        client.set_input(now, TankInput { turn: level(370), throttle: level(730), rocket: 0 });
    }
    if milli.is_multiple_of(16) {
        let start = Instant::now();
        let _ = client.frame(now);
        costs.frames.push(start.elapsed());
    }
}

/// Puts everything on its way that a client and the server have for each other.
fn carry(now: Timestamp, server: &mut Server<Herd>, seat: &mut Seat) {
    let Seat { client, connection, token, up, down } = seat;
    while let Some(event) = client.poll_event() {
        if event == ClientEvent::Connect {
            server.handle_connected(now, *connection, SyncLink::Present, *token);
            client.handle_connected(now, SyncLink::Present);
        }
    }
    let at = now + Duration::from_millis(30);
    let mut stream = vec![];
    if client.poll_stream(&mut stream) {
        up[0].push_back((at, core::mem::take(&mut stream)));
    }
    up[1].extend(client.poll_datagram().map(|bytes| (at, bytes.to_vec())));
    if server.poll_stream(*connection, &mut stream) {
        down[0].push_back((at, stream));
    }
    down[1].extend(server.poll_datagram(*connection).map(|bytes| (at, bytes.to_vec())));
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
