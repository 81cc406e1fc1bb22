//! A steady match allocates nothing: neither whole clients and their server, nor each of their parts.

use crate::herd;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::herd::Herd;
use crate::range::{Range, forward};
use crate::rig::{Rig, input, ms};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Events, Room, Server, ServerConfig, Stage, World};
use halftrack::session::ConnectionId;
use halftrack::snapshot::{
    Bodies, BodyKey, BodyLimits, Crowd, SnapshotError, TickRecord, View, history_ticks,
};
use halftrack::wire::control::{Login, PROTOCOL};
use halftrack::wire::{BitReader, BitWriter};
use halftrack::{
    BodyId, Cadence, Causes, DelayConfig, Neighbour, PlayerId, PlayerName, RemoteConfig, RemoteStats,
    Remotes, SubTick, SyncLink, Tick, TickInput, Timestamp, Token,
};
use tanks::{Arena, Axis, Tank, TankInput, TankWorld, TankWorldConfig, Tanks};

fn proving_ground() -> Arc<Tanks> {
    Arc::new(Tanks::new(Arena::proving_ground().into()))
}

/// A player comes, with a tank.
fn join(bodies: &mut Bodies<Tanks>, player: u16, tank: Tank) {
    let player = PlayerId::new(player);
    bodies.join(player);
    bodies.spawn(halftrack::Driver::Player(player), tank.into()).expect("there is room");
}

#[test]
fn steady_state_frames_and_reconciles_allocate_nothing() {
    let tank = |n: u32| Tank::new(f64::from(n) * 4.0 - 40.0, 29.0, 0.0);
    let neighbour = |n: u32| Neighbour::new(BodyId::new(n.into()), halftrack::Driver::World, tank(n).into());
    let others = (0..20).map(neighbour).collect();
    let mut rig = Rig::with(ms(120), Tank::new(0.0, 20.0, 0.1), proving_ground(), others);
    rig.set(0.25, 1.0);
    // Until the list of recent diagnoses is full, and the states of the next second have come to be.
    for _ in 0..100 {
        rig.play(ms(50));
        rig.serve();
        rig.deliver().expect("newer");
    }
    rig.play(ms(1_000));
    let mut states = vec![];
    for _ in 0..20 {
        rig.serve();
        states.push(rig.server.clone());
    }

    let (mut frames, mut accepted) = (0, 0);
    let allocations = allocation_counter::measure(|| {
        for (round, state) in (0i8..).zip(&states) {
            for _ in 0..5 {
                rig.now = rig.now + Duration::from_millis(10);
                rig.client.set_input(rig.now, input(f32::from(round % 5) / 5.0, 1.0));
                rig.client.frame(rig.now);
                frames += 1;
            }
            let target = rig.client.predictor().time();
            accepted += u32::from(rig.client.accept(rig.now, target, state).is_ok());
        }
    });
    assert_eq!((frames, accepted), (100, 20));
    assert_eq!(allocations.count_total, 0);

    let cloned = allocation_counter::measure(|| drop(rig.client.clone()));
    assert!(cloned.count_total > 0, "the counter does count");
}

/// A hundred tanks in a crowd of which the client is told every tick but some.
#[test]
fn steady_state_frames_of_other_players_allocate_nothing() {
    let (cadence, rules) = (Cadence::default(), proving_ground());
    let mut bodies = Bodies::new(Arc::clone(&rules), cadence, Tick::new(100));
    for number in 0..100 {
        let (x, y) = (f64::from(number % 10), f64::from(number / 10));
        join(&mut bodies, number, Tank::new(x * 5.0 - 25.0, y * 5.0 - 25.0, 0.1));
    }
    let (mut view, mut crowd) = (View::default(), Crowd::new(Arc::clone(&rules), cadence));
    let config = RemoteConfig { delay: DelayConfig::default(), correction: None };
    let mut remotes = Remotes::new(rules, config, cadence).expect("a good config");
    let mut allocations = 0;
    for round in 0u16..100 {
        bodies.advance(|player| {
            let turn = f32::from((player.number() + round) % 7) / 7.0;
            TickInput::steady(input(turn, 1.0))
        });
        let mut buffer = [0; 8_000];
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(&mut view, 8_000 * 8, &mut bits);
        let length = bits.finish().expect("it fits");
        let now = Timestamp::from_micros(u64::from(round) * 50_000);
        let lost = round % 10 > 7;
        if !lost {
            crowd.read(bodies.tick(), &mut BitReader::new(&buffer[..length])).expect("newer");
            view.acknowledge(bodies.tick());
        }
        let drawn = allocation_counter::measure(|| {
            if !lost {
                remotes.accepted(now, bodies.tick());
            }
            for frame in 0..5 {
                remotes.frame(now + ms(frame * 10), Some(PlayerId::new(0)), &crowd);
            }
        });
        // Until everybody has come, and lists are as long as they get.
        allocations += if round < 20 { 0 } else { drawn.count_total };
    }
    let RemoteStats { exact, extrapolated, .. } = *remotes.stats();
    assert!(remotes.iter().count() == 99 && exact > 1_000 && extrapolated > 1_000);
    assert_eq!(allocations, 0);
}

#[test]
fn ticks_of_the_world_without_shots_allocate_nothing() {
    let mut range = Range::new(TankWorldConfig { damage: 100, ..TankWorldConfig::default() });
    let players: Vec<_> = (0..30).map(|_| range.join()).collect();
    for (player, aim) in players.iter().zip((0..=u16::MAX).step_by(2_000)) {
        range.inputs.insert(*player, forward());
        range.shoot(*player, aim);
    }
    range.ticks(80);
    let mut events = Events::default();
    for _ in 0..100 {
        range.bodies.advance(|_| TickInput::steady(forward()));
        let mut room = Room::new(Cadence::default(), &mut range.bodies);
        let world = &mut range.world;
        let allocations = allocation_counter::measure(|| world.resolve(&mut room, &mut events));
        assert_eq!(allocations.count_total, 0);
    }
}

/// A tick of fifty tanks, most of them in each other's way, told to ten clients whose acknowledgements are from 2 to 6 ticks
/// old.
fn serve(bodies: &mut Bodies<Tanks>, views: &mut [View]) -> usize {
    let number = bodies.tick().next().number();
    bodies.advance(|player| {
        let wish = |round: u32| {
            let stick = |step: u32| (step % 33) as f32 / 16.0 - 1.0;
            let step = round * 7 + u32::from(player.number()) * 5;
            input(stick(step), stick(step / 3))
        };
        let phase = (number + u32::from(player.number())) % 10;
        let round = (number + u32::from(player.number())) / 10;
        let mut told = TickInput::steady(wish(round - u32::from(phase == 0)));
        if phase == 0 {
            told.change(SubTick::new(77).expect("inside the tick"), wish(round)).expect("the first");
        }
        told
    });
    // One is shot at, now and then twice within the time of an acknowledgement.
    let hurt = PlayerId::new((number / 40 % 50) as u16);
    if number % 20 < 3 {
        let id = bodies.owned(hurt)[0];
        let tank = *bodies.history(id).expect("there").latest();
        bodies
            .alter(
                id,
                Tank { hp: 100 - (number % 3) as u8, ..tank.tank().copied().unwrap() }.into(),
                Causes::NONE,
            )
            .expect("there");
    }
    let mut buffer = [0; 1_100];
    let mut written = 0;
    for (late, view) in (2..).zip(views) {
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(view, 1_100 * 8, &mut bits);
        written += bits.finish().expect("it fits");
        view.acknowledge(Tick::new(number.saturating_sub(late % 5)));
    }
    written
}

#[test]
fn steady_state_ticks_and_snapshots_allocate_nothing() {
    let mut bodies = Bodies::new(proving_ground(), Cadence::default(), Tick::new(100));
    for number in 0..50u16 {
        let (x, y) = (f64::from(number % 10) * 4.0 - 20.0, f64::from(number / 10) * 4.0 - 10.0);
        join(&mut bodies, number, Tank::new(x, y, 0.0));
    }
    let mut views = vec![View::default(); 10];
    for _ in 0..200 {
        serve(&mut bodies, &mut views);
    }
    let mut written = 0;
    let allocations = allocation_counter::measure(|| {
        written = (0..100).map(|_| serve(&mut bodies, &mut views)).sum();
    });
    assert!(written > 100 * 10 * 20, "something is told");
    assert_eq!(allocations.count_total, 0);
}

/// A hundred bodies that the world drives, each by another input four times a second, sent to ten clients, of which one
/// reads.
#[test]
fn steady_ticks_and_snapshots_of_100_driven_bodies_allocate_nothing() {
    let rules = proving_ground();
    let mut bodies = Bodies::new(Arc::clone(&rules), Cadence::default(), Tick::new(100));
    join(&mut bodies, 0, Tank::new(0.0, -29.0, 0.0));
    let spawn = |number: u16| {
        let (x, y) = (f64::from(number % 10) * 5.0 - 25.0, f64::from(number / 10) * 5.0 - 25.0);
        bodies.spawn(halftrack::Driver::World, Tank::new(x, y, 0.1).into()).expect("there is room")
    };
    let driven: Vec<_> = (0..100).map(spawn).collect();
    let (mut views, mut crowd) = (vec![View::default(); 10], Crowd::new(rules, Cadence::default()));
    let (mut written, mut changes, mut on_server, mut in_client) = (0, 0, 0, 0);
    for round in 0u32..300 {
        let (mut buffer, mut length) = ([0; 4_000], 0);
        let served = allocation_counter::measure(|| {
            bodies.advance(|_| TickInput::steady(TankInput::NEUTRAL));
            for (number, id) in (0u32..).zip(&driven) {
                if (round + number).is_multiple_of(5) {
                    let stick = |step: u32| (step % 33) as f32 / 16.0 - 1.0;
                    let step = round * 7 + number * 5;
                    bodies.drive(*id, input(stick(step), stick(step / 3))).expect("there");
                }
            }
            let tick = bodies.tick();
            for (late, view) in (4..).zip(&mut views) {
                let mut bits = BitWriter::new(&mut buffer);
                bodies.write(view, 4_000 * 8, &mut bits);
                length = bits.finish().expect("it fits");
                view.acknowledge(Tick::new(tick.number().saturating_sub(late % 5)));
            }
        });
        let mut read = Ok(());
        let bits = &mut BitReader::new(&buffer[..length]);
        let decoded = allocation_counter::measure(|| read = crowd.read(bodies.tick(), bits));
        assert_eq!(read, Ok(()));
        // Until all bodies have come, and lists are as long as they get.
        if round >= 200 {
            on_server += served.count_total;
            in_client += decoded.count_total;
            written += length;
            changes += driven.iter().filter(|id| changed(&crowd, **id)).count();
        }
    }
    for id in driven {
        let (there, here) = (bodies.history(id).expect("there"), crowd.body(id).expect("there"));
        assert_eq!(there.latest(), here.latest());
    }
    assert!(written > 100 * 50 && changes > 100 * 15, "{written} bytes, {changes} changes");
    assert_eq!((on_server, in_client), (0, 0));
}

/// Whether the world changed the input of a body at the end of the newest tick.
fn changed(crowd: &Crowd<Tanks>, id: BodyId) -> bool {
    let record = crowd.newest().and_then(|newest| crowd.body(id)?.get(newest)).expect("there");
    record.held != record.input.last()
}

/// A room of twelve tanks, and one client that acknowledges each snapshot five ticks late.
struct LateReader {
    bodies: Bodies<Tanks>,
    view: View,
    crowd: Crowd<Tanks>,
}

/// How a snapshot builds on its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Alone,
    Same,
    Changed,
}

impl LateReader {
    fn new() -> Self {
        let rules = proving_ground();
        let mut bodies = Bodies::new(Arc::clone(&rules), Cadence::default(), Tick::new(100));
        for number in 0..12 {
            let tank = Tank::new(f64::from(number) * 4.0 - 24.0, 0.0, 0.0);
            join(&mut bodies, number, tank);
        }
        Self { bodies, view: View::default(), crowd: Crowd::new(rules, Cadence::default()) }
    }

    /// Plays a tick that `alter` changes something in, and reads its snapshot. Returns the allocations and the mode.
    fn read(&mut self, alter: impl FnOnce(&mut Bodies<Tanks>)) -> (u64, Mode) {
        self.bodies.advance(|_| TickInput::steady(TankInput::NEUTRAL));
        alter(&mut self.bodies);
        let mut buffer = [0; 2_000];
        let mut bits = BitWriter::new(&mut buffer);
        self.bodies.write(&mut self.view, 2_000 * 8, &mut bits);
        let length = bits.finish().expect("it fits");
        let tick = self.bodies.tick();
        let mut read = Ok(());
        let bits = &mut BitReader::new(&buffer[..length]);
        let allocations = allocation_counter::measure(|| read = self.crowd.read(tick, bits));
        assert_eq!(read, Ok(()));
        self.view.acknowledge(Tick::new(tick.number() - 5));
        let mode = match [buffer[0] >> 7, buffer[1] & 1] {
            [0, _] => Mode::Alone,
            [_, 0] => Mode::Changed,
            _ => Mode::Same,
        };
        (allocations.count_total, mode)
    }
}

#[test]
fn steady_snapshots_of_bodies_alone_allocate_nothing() {
    let mut reader = LateReader::new();
    // A body that the world alters in every tick costs a state for each, unless it is read alone.
    let hurt = |bodies: &mut Bodies<Tanks>| {
        let (id, tank) = bodies.records().map(|(id, _, record)| (id, record.after)).next().expect("there");
        bodies
            .alter(
                id,
                Tank { hp: 1 + tank.tank().unwrap().hp % 99, ..tank.tank().copied().unwrap() }.into(),
                Causes::NONE,
            )
            .expect("there");
    };
    (0..100).for_each(|_| _ = reader.read(hurt));
    for _ in 0..50 {
        assert_eq!(reader.read(hurt), (0, Mode::Alone));
    }
}

#[test]
fn snapshots_after_a_join_or_a_leave_allocate_twice_at_most() {
    let mut reader = LateReader::new();
    (0..100).for_each(|_| _ = reader.read(|_| ()));
    assert_eq!(reader.read(|_| ()), (0, Mode::Same));
    let come = |bodies: &mut Bodies<Tanks>| join(bodies, 50, Tank::new(0.0, 20.0, 0.0));
    let leave = |bodies: &mut Bodies<Tanks>| bodies.leave(PlayerId::new(3));
    for change in [&come as &dyn Fn(&mut Bodies<Tanks>), &leave] {
        let (allocations, mode) = reader.read(change);
        assert!(allocations > 0 && mode == Mode::Changed);
        // A body joins at the end of a tick: it moves in the next one, and takes room in more lists.
        assert_eq!(reader.read(|_| ()).1, Mode::Changed);
        // Until the client has acknowledged a snapshot with the new players, each one repeats the change.
        for _ in 0..4 {
            assert_eq!(reader.read(|_| ()), (0, Mode::Changed));
        }
        assert_eq!(reader.read(|_| ()), (0, Mode::Same));
    }
}

#[test]
fn refused_snapshot_of_many_bodies_keeps_no_more_memory_than_histories_have() {
    let mut reader = LateReader::new();
    (0..100).for_each(|_| _ = reader.read(|_| ()));
    let mut many = Bodies::new(proving_ground(), Cadence::default(), Tick::new(1_000));
    for number in 0..2_000 {
        join(&mut many, number, Tank::new(f64::from(number % 50), 0.0, 0.0));
    }
    let mut buffer = vec![0; 60_000];
    let mut bits = BitWriter::new(&mut buffer);
    many.write(&mut View::default(), 60_000 * 8, &mut bits);
    let length = bits.finish().expect("it fits");
    // The check comes last.
    buffer[length - 2] ^= 0xff;
    let mut read = Ok(());
    let bits = &mut BitReader::new(&buffer[..length]);
    let memory = allocation_counter::measure(|| read = reader.crowd.read(many.tick(), bits));
    assert_eq!(read, Err(SnapshotError::CheckFailed));
    let histories = 12 * history_ticks(Cadence::default()) as usize * size_of::<TickRecord<Tanks>>();
    assert!(memory.bytes_max > 5 * histories as u64, "it took {} bytes", memory.bytes_max);
    assert!(memory.bytes_current <= histories as i64, "it keeps {} bytes", memory.bytes_current);
    assert_eq!(reader.read(|_| ()), (0, Mode::Same));
}

/// Allocations by call.
#[derive(Debug, Default)]
struct Allocations {
    calls: BTreeMap<&'static str, u64>,
}

impl Allocations {
    /// Makes a call, and counts.
    fn count<T>(&mut self, name: &'static str, call: impl FnOnce() -> T) -> T {
        let mut result = None;
        let counted = allocation_counter::measure(|| result = Some(call())).count_total;
        if counted > 0 {
            *self.calls.entry(name).or_default() += counted;
        }
        result.expect("it was called")
    }
}

/// One direction of a link that delivers everything after [`Match::DELAY`].
#[derive(Default)]
struct Pipe {
    datagrams: VecDeque<(Timestamp, Vec<u8>)>,
    stream: VecDeque<(Timestamp, Vec<u8>)>,
}

fn arrived(queue: &mut VecDeque<(Timestamp, Vec<u8>)>, now: Timestamp) -> Option<Vec<u8>> {
    queue.front().filter(|(at, _)| now >= *at)?;
    queue.pop_front().map(|(_, bytes)| bytes)
}

struct Driver {
    client: Client<Tanks>,
    connection: ConnectionId,
    drives: bool,
    wish: TankInput,
    up: Pipe,
    down: Pipe,
}

/// A real server and real clients in virtual time.
struct Match {
    now: Timestamp,
    server: Server<Herd>,
    drivers: Vec<Driver>,
    /// The host's buffers.
    datagram: Vec<u8>,
    stream: Vec<u8>,
    on_server: Allocations,
    in_clients: Allocations,
}

impl Match {
    const STEP: Duration = Duration::from_millis(5);
    const STEPS_PER_TICK: u64 = 10;
    const DELAY: Duration = Duration::from_millis(30);

    fn new(players: u16, herd: herd::Kind, arena: Arena, (crates, platforms): (u8, u8)) -> Self {
        let arena = Arc::new(arena);
        let world =
            TankWorldConfig { arena: Arc::clone(&arena), crates, platforms, ..TankWorldConfig::default() };
        let config = ServerConfig { capacity: players.into(), ..ServerConfig::default() };
        let now = Timestamp::from_micros(1_000_000);
        let world = Herd::new(TankWorld::new(world).expect("a good config"), herd);
        let server = Server::new(config, world, now).expect("a good config");
        let rules = Arc::new(Tanks::new(arena));
        let driver = |number: u16| {
            let name = PlayerName::new(&format!("tank {number}")).expect("a good name");
            let config = ClientConfig::new(name, Cadence::default(), Arc::clone(&rules));
            let mut client = Client::new(config).expect("a good config");
            client.connect(now);
            Driver {
                client,
                connection: ConnectionId::new(number.into()),
                drives: number % 4 != 3,
                wish: TankInput::NEUTRAL,
                up: Pipe::default(),
                down: Pipe::default(),
            }
        };
        Self {
            now,
            server,
            drivers: (0..players).map(driver).collect(),
            datagram: Vec::with_capacity(2_000),
            stream: Vec::with_capacity(100_000),
            on_server: Allocations::default(),
            in_clients: Allocations::default(),
        }
    }

    fn play(&mut self, ticks: u64) {
        for step in 0..ticks * Self::STEPS_PER_TICK {
            self.now = self.now + Self::STEP;
            self.serve();
            for (number, index) in (0u64..).zip(0..self.drivers.len()) {
                self.drive(index, step + number * 7);
                self.carry(index);
            }
        }
    }

    /// The server takes everything that has arrived, and then its tick if one is due.
    fn serve(&mut self) {
        let Self { now, server, drivers, on_server, .. } = self;
        for Driver { connection, up, .. } in drivers {
            while let Some(bytes) = arrived(&mut up.stream, *now) {
                on_server.count("handle_stream", || server.handle_stream(*now, *connection, &bytes));
            }
            while let Some(bytes) = arrived(&mut up.datagrams, *now) {
                on_server.count("handle_datagram", || server.handle_datagram(*now, *connection, &bytes));
            }
        }
        if on_server.count("poll_timeout", || server.poll_timeout()).is_some_and(|due| *now >= due) {
            on_server.count("handle_timeout", || server.handle_timeout(*now));
        }
        assert_eq!(on_server.count("poll_close", || server.poll_close()), None);
    }

    /// A client takes everything that has arrived. It draws every third step, and turns its stick four times a second.
    fn drive(&mut self, index: usize, step: u64) {
        let (now, counts) = (self.now, &mut self.in_clients);
        let Driver { client, drives, wish, down, .. } = &mut self.drivers[index];
        while let Some(bytes) = arrived(&mut down.stream, now) {
            counts.count("handle_stream", || client.handle_stream(now, &bytes));
        }
        while let Some(bytes) = arrived(&mut down.datagrams, now) {
            counts.count("handle_datagram", || client.handle_datagram(now, &bytes));
        }
        if counts.count("poll_timeout", || client.poll_timeout()).is_some_and(|due| now >= due) {
            counts.count("handle_timeout", || client.handle_timeout(now));
        }
        if step.is_multiple_of(3) {
            if *drives && step % 50 < 3 {
                let level = |step: u64| Axis::from_level((step % 33) as i8 - Axis::LEVELS);
                *wish = TankInput { turn: level(step / 3), throttle: level(step / 7), rocket: 0 };
            }
            counts.count("set_input", || client.set_input(now, *wish));
            counts.count("frame", || client.frame(now));
        }
    }

    /// Puts everything on its way that a client and the server have for each other.
    fn carry(&mut self, index: usize) {
        let Self { now, server, datagram, stream, on_server, in_clients, .. } = self;
        let Driver { client, connection, up, down, .. } = &mut self.drivers[index];
        while let Some(event) = in_clients.count("poll_event", || client.poll_event()) {
            if event == ClientEvent::Connect {
                let token = Token::new((index as u128).to_le_bytes());
                server.handle_connected(*now, *connection, SyncLink::Present, token);
                client.handle_connected(*now, SyncLink::Present);
            }
        }
        let at = *now + Self::DELAY;
        let mut take = |counts: &mut Allocations,
                        pipe: &mut Pipe,
                        poll: &mut dyn FnMut(&mut Vec<u8>, &mut Vec<u8>)| {
            counts.count("poll_stream, poll_datagram", || poll(stream, datagram));
            for (bytes, queue) in [(&mut *stream, &mut pipe.stream), (&mut *datagram, &mut pipe.datagrams)] {
                if !bytes.is_empty() {
                    queue.push_back((at, bytes.clone()));
                    bytes.clear();
                }
            }
        };
        take(in_clients, up, &mut |stream, datagram| {
            client.poll_stream(stream);
            datagram.extend_from_slice(client.poll_datagram().unwrap_or_default());
        });
        take(on_server, down, &mut |stream, datagram| {
            server.poll_stream(*connection, stream);
            datagram.extend_from_slice(server.poll_datagram(*connection).unwrap_or_default());
        });
    }
}

/// Everything that a server and its clients do in a tick, while players drive about and none joins, leaves or shoots.
fn assert_steady_match_allocates_nothing(players: u16, herd: herd::Kind, arena: Arena, things: (u8, u8)) {
    const TICKS: u64 = 100;
    let mut played = Match::new(players, herd, arena, things);
    // Until histories and filters are full. The slowest list is that of the last corrections.
    played.play(400);
    let counts = |played: &Match| {
        let stats = |driver: &Driver| {
            let stats = driver.client.stats();
            let failed = stats.malformed + stats.missing_baseline + stats.check_failed;
            [stats.snapshots, stats.eager_inputs, failed]
        };
        played.drivers.iter().map(stats).collect::<Vec<_>>()
    };
    let before = counts(&played);
    (played.on_server, played.in_clients) = Default::default();
    played.play(TICKS);
    assert!(played.on_server.calls.is_empty(), "on the server: {:?}", played.on_server);
    // A body that joins the group of a client needs memory there.
    let joins = things != (0, 0);
    assert!(joins || played.in_clients.calls.is_empty(), "in {players} clients: {:?}", played.in_clients);

    for ((driver, before), after) in played.drivers.iter().zip(before).zip(counts(&played)) {
        let [snapshots, eager, failed] = std::array::from_fn(|at| after[at] - before[at]);
        assert_eq!((snapshots, failed), (TICKS, 0));
        assert_eq!(eager >= TICKS / 20 * 3, driver.drives, "{eager} changes");
        // The group draws what it predicts.
        let client = &driver.client;
        let drawn = client.remotes().iter().count() + client.group().count();
        assert!(drawn >= usize::from(players + herd.count()) - 1, "{drawn} drawn");
    }
}

#[test]
fn steady_match_of_8_allocates_nothing() {
    assert_steady_match_allocates_nothing(8, herd::Kind::NONE, Arena::proving_ground(), (0, 0));
}

#[test]
fn steady_match_among_crates_and_platforms_allocates_nothing_on_the_server() {
    let arena = Arena::new([60.0, 60.0], vec![]).expect("a good size");
    assert_steady_match_allocates_nothing(8, herd::Kind::NONE, arena, (12, 2));
}

#[test]
fn steady_match_of_100_allocates_nothing() {
    let arena = Arena::new([400.0, 400.0], vec![]).expect("a good size");
    assert_steady_match_allocates_nothing(100, herd::Kind::NONE, arena, (0, 0));
}

#[test]
fn steady_match_among_100_driven_and_100_standing_bodies_allocates_nothing() {
    let stander = halftrack::Driver::Nothing;
    let herd = herd::Kind { movers: 100, changes_per_second: 4.0, standing: 100, stander };
    let arena = Arena::new([400.0, 400.0], vec![]).expect("a good size");
    assert_steady_match_allocates_nothing(4, herd, arena, (0, 0));
}

#[test]
fn a_sleeping_room_allocates_nothing_and_wakes_with_its_bodies() {
    let config = TankWorldConfig { machines: 50, ..TankWorldConfig::default() };
    let world = TankWorld::new(config).expect("good numbers");
    let (key, limits) = (BodyKey::new([1; 16]), BodyLimits::default());
    let mut stage = Stage::new(Cadence::default(), world, Tick::new(9), key, limits);
    let name = PlayerName::new("Ada").expect("a good name");
    let login = Login { protocol: PROTOCOL, shared: 0, name, resume: None, credentials: None };
    let ada = PlayerId::new(1);
    stage.join(ada, &login);
    (0..5).for_each(|_| stage.advance(|_| TickInput::default()));
    stage.leave(ada);
    let bodies = |stage: &Stage<TankWorld>| -> Vec<_> {
        stage.bodies().map(|(id, driver, tank)| (id, driver, *tank)).collect()
    };
    let before = bodies(&stage);
    assert_eq!(before.len(), 50, "machines stay");
    let asleep = allocation_counter::measure(|| {
        for _ in 0..1_000 {
            stage.advance(|_| TickInput::default());
        }
    });
    assert_eq!(asleep.count_total, 0);
    assert_eq!((stage.tick(), bodies(&stage)), (Tick::new(9 + 5 + 1_000), before.clone()));
    stage.join(ada, &login);
    (0..40).for_each(|_| stage.advance(|_| TickInput::default()));
    assert_ne!(bodies(&stage)[..50], before[..], "they go on");
}
