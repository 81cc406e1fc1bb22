//! What a flight recorder costs: `cargo run --release -p tanks --example flight_cost`.
//!
//! One recorded client among N, all moving and changing their input twice a second, at 60 frames per second and with 2 % of
//! the snapshots lost. Measured are its key states (how long they take and how long they are), what is kept of each second,
//! and what recording adds to a frame: the digest of what it showed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Server, ServerConfig};
use halftrack::session::ConnectionId;
use halftrack::{Cadence, PlayerName, SyncLink, Timestamp, Token};
use halftrack_flight::{FlightClient, FlightConfig, Replayer, Report};
use tanks::{Arena, Axis, TankInput, TankWorld, TankWorldConfig, Tanks};

const SECONDS: u64 = 40;

struct Seat {
    client: FlightClient<Tanks>,
    connection: Option<ConnectionId>,
    /// How long calls took with which a key state was taken.
    keys: Vec<Duration>,
    frames: Vec<Duration>,
}

/// What a call is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Frame,
    Other,
}

impl Seat {
    fn call(&mut self, kind: Kind, call: impl FnOnce(&mut FlightClient<Tanks>)) {
        let taken = |client: &FlightClient<Tanks>| {
            client.flight_stats().map_or(0, |stats| stats.keys as u64 + stats.dropped)
        };
        let (before, start) = (taken(&self.client), Instant::now());
        call(&mut self.client);
        let took = start.elapsed();
        if taken(&self.client) > before {
            self.keys.push(took);
        } else if kind == Kind::Frame {
            self.frames.push(took);
        }
    }
}

fn main() {
    println!(
        "| players | key state | takes | at most | kept per second | in 4 MiB | a frame more | report | replayed |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for players in [2, 16, 64, 200] {
        measure(players);
    }
}

fn measure(players: u64) {
    let arena = Arc::new(Arena::open_ground(usize::try_from(players).expect("few")));
    let mut now = Timestamp::from_micros(1_000_000);
    let world = TankWorldConfig { arena: Arc::clone(&arena), ..TankWorldConfig::default() };
    let mut server = Server::new(
        ServerConfig { capacity: 256, max_connections: 300, ..ServerConfig::default() },
        TankWorld::new(world).expect("a world"),
        now,
    )
    .expect("a server");
    let seat = |player: u64| {
        let name = PlayerName::new(&format!("Player {player}")).expect("a name");
        let rules = Arc::new(Tanks::new(Arc::clone(&arena)));
        let config = ClientConfig::new(name, Cadence::default(), rules);
        let flight = FlightConfig { key_every: Duration::from_secs(2), ..FlightConfig::default() };
        let mut client = FlightClient::new(Client::new(config).expect("a client"));
        if player == 0 {
            client.record(flight, client.rules().setup()).expect("a recorder");
        }
        client.connect(now);
        Seat { client, connection: None, keys: vec![], frames: vec![] }
    };
    let mut seats: Vec<_> = (0..players).map(seat).collect();
    let mut dice = 7u64;
    for milli in 0..SECONDS * 1_000 {
        now = now + Duration::from_millis(1);
        server.handle_timeout(now);
        for (index, seat) in (0u64..).zip(&mut seats) {
            // The first two draw: one is recorded, and one is not.
            if index < 2 && milli % 16 == 0 {
                seat.call(Kind::Frame, |client| {
                    let _ = client.frame(now);
                });
            }
            if (milli + index * 37) % 500 == 0 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let level =
                    |part: u64| Axis::from_level(i8::try_from((dice >> part) % 33).expect("small") - 16);
                let input = TankInput { turn: level(40), throttle: level(50), rocket: 0 };
                seat.call(Kind::Other, |client| client.set_input(now, input));
            }
            if index > 1 && seat.client.poll_timeout().is_some_and(|due| now >= due) {
                seat.client.handle_timeout(now);
            }
            turn(now, index, seat, &mut server, &mut dice);
        }
    }
    let [mut with, mut without] = [0, 1].map(|index| core::mem::take(&mut seats[index].frames));
    let mut keys = core::mem::take(&mut seats[0].keys);
    let client = &mut seats[0].client;
    let (stats, bytes) =
        (client.flight_stats().expect("recorded"), client.flight_report("").expect("recorded"));
    let report = Report::read(&bytes).expect("a report");
    let rules = Tanks::from_setup(report.setup()).expect("an arena");
    let mut replayer = Replayer::new(&report, Arc::new(rules)).expect("a client");
    let start = Instant::now();
    while replayer.step().is_some() {}
    let replayed = start.elapsed();
    assert_eq!((replayer.first_difference(), stats.blanks), (None, 0));
    let span = now.saturating_since(stats.since.expect("something")).as_secs_f64();
    let calls = (stats.bytes - report.key_bytes()) as f64 / span;
    // As it is by default: a key state in fifteen seconds.
    let kept = calls + stats.key_bytes as f64 / 15.0;
    // The first were taken before everybody was there.
    keys.drain(..3);
    let (median, worst) = (middle(&mut keys), keys.iter().max().copied().unwrap_or_default());
    println!(
        "| {players} | {:.1} kB | {:.0} us | {:.0} us | {:.1} kB | {:.0} s | {:.1} us of {:.1} us | {:.0} kB | {} frames in {:.0} ms |",
        stats.key_bytes as f64 / 1e3,
        micros(median),
        micros(worst),
        kept / 1e3,
        f64::from(4 << 20) / kept,
        micros(middle(&mut with)) - micros(middle(&mut without)),
        micros(middle(&mut with)),
        bytes.len() as f64 / 1e3,
        replayer.exact_frames(),
        replayed.as_secs_f64() * 1e3,
    );
}

/// What the host of a client does: everything is carried at once.
fn turn(now: Timestamp, index: u64, seat: &mut Seat, server: &mut Server<TankWorld>, dice: &mut u64) {
    while let Some(event) = seat.client.poll_event() {
        if event == ClientEvent::Connect {
            let connection = ConnectionId::new(index);
            server.handle_connected(
                now,
                connection,
                SyncLink::Present,
                Token::new(u128::from(index).to_le_bytes()),
            );
            seat.client.handle_connected(now, SyncLink::Present);
            seat.connection = Some(connection);
        }
    }
    let Some(connection) = seat.connection else { return };
    let mut stream = vec![];
    if seat.client.poll_stream(&mut stream) {
        server.handle_stream(now, connection, &stream);
    }
    if let Some(datagram) = seat.client.poll_datagram() {
        server.handle_datagram(now, connection, datagram);
    }
    stream.clear();
    if server.poll_stream(connection, &mut stream) {
        seat.call(Kind::Other, |client| client.handle_stream(now, &stream));
    }
    if let Some(datagram) = server.poll_datagram(connection) {
        *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if *dice >> 33 & 63 != 0 {
            seat.call(Kind::Other, |client| client.handle_datagram(now, datagram));
        }
    }
}

fn middle(costs: &mut [Duration]) -> Duration {
    costs.sort_unstable();
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
