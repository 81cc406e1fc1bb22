//! REMOTE: bodies of other players, in virtual time, over links that misbehave.
//!
//! A server that moves carts and tells of every tick; a client that draws them. The components are the product's; only
//! the link is made up here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, CartBody, CartPose};
use halftrack::snapshot::{Bodies, Course, Crowd, SnapshotError, View, history_ticks};
use halftrack::wire::{BitReader, BitWriter};
use halftrack::{
    Body, BodyId, Cadence, Causes, CorrectionConfig, DelayConfig, Driver, Game, MotionLimits, PlayerId,
    RemoteConfig, Remotes, Sampling, ServerTime, SubTick, Tick, TickInput, Timestamp,
};
use proptest::prelude::*;

const MS: i64 = 1_000;
const SECOND: u64 = 1_000_000;
/// Unless a test wants another.
const CADENCE: u64 = 50_000;
/// The server's clock less real time.
const SERVER_AHEAD: u64 = 5_000_000;
/// Seconds until the first acknowledgement is back and what was drawn before is gone: before it, snapshots tell states.
const LOGIN: f64 = 1.0;
/// What a cart can do by itself, in metres per second.
const TOP_SPEED: f64 = 8.0;

/// How the world behaves at a moment. Times in microseconds.
#[derive(Clone, Copy, Debug)]
struct Weather {
    down: i64,
    /// Sigma.
    jitter: i64,
    loss: f64,
    server_stalled: bool,
    client_stalled: bool,
}

const CALM: Weather =
    Weather { down: 30 * MS, jitter: 0, loss: 0.0, server_stalled: false, client_stalled: false };

/// What the client showed of one player's body in one frame.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: u64,
    id: BodyId,
    player: PlayerId,
    render: ServerTime,
    /// Server time less render time, in microseconds.
    delay: i64,
    visible: CartPose,
    sampling: Sampling,
    state: CartBody,
    state_tick: Tick,
    newest: Tick,
    /// Where it really was at the render time, if it is known.
    truth: Option<CartPose>,
}

struct World {
    cadence: Cadence,
    weather: fn(u64) -> Weather,
    dice: u64,
    /// Snapshots on the way, by arrival.
    down: BTreeMap<(u64, u64), (Tick, Vec<u8>)>,
    /// Acknowledgements on the way.
    up: BTreeMap<(u64, u64), Tick>,
    packets: u64,
    bodies: Bodies<Cart>,
    view: View,
    /// What each player holds.
    held: BTreeMap<PlayerId, i8>,
    /// How often a player changes its mind, per tick.
    fickle: f64,
    crowd: Crowd<Cart>,
    remotes: Remotes<Cart>,
    frame_micros: u64,
    /// What else happens after a tick.
    script: fn(&mut World, Tick),
    /// Ticks in which a cart was in another's way.
    met: usize,
    /// How every body was after every tick.
    told: BTreeMap<(Tick, BodyId), CartBody>,
    seen: Vec<Seen>,
}

fn config() -> RemoteConfig {
    let limits = MotionLimits {
        top_speed: TOP_SPEED,
        top_turn: 60.0,
        grid_distance: 1.0 / 1024.0,
        grid_angle: core::f64::consts::TAU / 65536.0,
    };
    let correction = CorrectionConfig::for_motion(limits, Duration::from_millis(250), Cadence::default());
    RemoteConfig { delay: DelayConfig::default(), correction: Some(correction) }
}

fn player(number: u16) -> PlayerId {
    PlayerId::new(number)
}

impl World {
    fn new(weather: fn(u64) -> Weather, seed: u64) -> Self {
        Self::at_cadence(Cadence::default(), weather, seed)
    }

    fn at_cadence(cadence: Cadence, weather: fn(u64) -> Weather, seed: u64) -> Self {
        let first = cadence.tick_at(ServerTime::from_micros(SERVER_AHEAD));
        let mut world = Self {
            cadence,
            weather,
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            down: BTreeMap::new(),
            up: BTreeMap::new(),
            packets: 0,
            bodies: Bodies::new(Arc::new(Cart), cadence, first.previous().unwrap()),
            view: View::default(),
            held: BTreeMap::new(),
            fickle: 0.1,
            crowd: Crowd::new(Arc::new(Cart), cadence),
            remotes: Remotes::new(Arc::new(Cart), config(), cadence).unwrap(),
            frame_micros: 16_667,
            script: |_, _| {},
            met: 0,
            told: BTreeMap::new(),
            seen: vec![],
        };
        for number in 0..3 {
            world.join(number, f64::from(number) * 10_000.0);
        }
        world
    }

    fn join(&mut self, number: u16, x: f64) {
        self.held.insert(player(number), 4);
        self.bodies.join(player(number));
        self.bodies.spawn(Driver::Player(player(number)), CartBody::at(x)).unwrap();
    }

    /// The only body of a player.
    fn id(&self, number: u16) -> BodyId {
        self.bodies.owned(player(number))[0]
    }

    fn unit(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Twelve dice make a bell, cut at three sigma.
    fn bell(&mut self) -> f64 {
        ((0..12).map(|_| self.unit()).sum::<f64>() - 6.0).clamp(-3.0, 3.0)
    }

    fn run(mut self, seconds: u64) -> Self {
        let mut next_frame = 0;
        // Half a millisecond at a time: fine enough for every threshold below.
        for real in (0..seconds * SECOND).step_by(500) {
            self.server(real);
            if !(self.weather)(real).client_stalled {
                self.client(real);
                if real >= next_frame {
                    next_frame = real + self.frame_micros;
                    self.frame(real);
                }
            }
        }
        self
    }

    fn server_time(real: u64) -> ServerTime {
        ServerTime::from_micros(real + SERVER_AHEAD)
    }

    fn server(&mut self, real: u64) {
        while let Some(entry) = self.up.first_entry().filter(|entry| entry.key().0 <= real) {
            let tick = entry.remove();
            self.view.acknowledge(tick);
        }
        let weather = (self.weather)(real);
        while !weather.server_stalled
            && self.cadence.end_of(self.bodies.tick().next()) <= Self::server_time(real)
        {
            let tick = self.tick();
            let bytes = self.write();
            if self.unit() >= weather.loss {
                let jitter = (self.bell() * weather.jitter as f64) as i64;
                let arrival = real + u64::try_from((weather.down + jitter).max(100)).unwrap();
                self.packets += 1;
                self.down.insert((arrival, self.packets), (tick, bytes));
            }
        }
    }

    fn tick(&mut self) -> Tick {
        let mut told = BTreeMap::new();
        for (player, held) in self.held.clone() {
            let mut input = TickInput::steady(held);
            if self.unit() < self.fickle {
                let at = SubTick::new(1 + (self.unit() * 254.0) as u8).unwrap();
                let new = (self.unit() * 17.0) as i8 - 8;
                input.change(at, new).unwrap();
                self.held.insert(player, new);
            }
            told.insert(player, input);
        }
        self.bodies.advance(|player| told[&player]);
        let tick = self.bodies.tick();
        self.met += self.bodies.records().filter(|(.., record)| record.course == Course::Met).count();
        (self.script)(self, tick);
        self.told.extend(self.bodies.records().map(|(id, _, record)| ((tick, id), record.after)));
        tick
    }

    fn write(&mut self) -> Vec<u8> {
        let mut buffer = [0; 1_100];
        let mut bits = BitWriter::new(&mut buffer);
        self.bodies.write(&mut self.view, 1_100 * 8, &mut bits);
        let length = bits.finish().unwrap();
        buffer[..length].to_vec()
    }

    fn client(&mut self, real: u64) {
        while let Some(entry) = self.down.first_entry().filter(|entry| entry.key().0 <= real) {
            let (tick, bytes) = entry.remove();
            match self.crowd.read(tick, &mut BitReader::new(&bytes)) {
                Ok(()) => {
                    self.remotes.accepted(Timestamp::from_micros(real), tick);
                    self.packets += 1;
                    self.up.insert((real + 30_000, self.packets), tick);
                }
                Err(SnapshotError::Stale { .. } | SnapshotError::MissingBaseline { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn frame(&mut self, real: u64) {
        let before = self.remotes.render_time();
        self.remotes.frame(Timestamp::from_micros(real), Some(player(0)), &self.crowd);
        let Some(render) = self.remotes.render_time() else { return };
        assert!(Some(render) >= before, "drawing went back");
        let tick = self.cadence.tick_at(render);
        let into = render.saturating_since(self.cadence.start_of(tick));
        for remote in self.remotes.iter() {
            let truth = self.bodies.body_at(remote.id, tick, into).and_then(|body| Cart.pose(&body));
            self.seen.push(Seen {
                at: real,
                id: remote.id,
                player: remote.driver.player().unwrap(),
                render,
                delay: (real + SERVER_AHEAD) as i64 - render.as_micros() as i64,
                visible: remote.visible,
                sampling: remote.sampling,
                state: *remote.state,
                state_tick: remote.state_tick,
                newest: self.crowd.newest().unwrap(),
                truth,
            });
        }
    }

    fn seen_between(&self, from: f64, until: f64) -> &[Seen] {
        let micros = |seconds: f64| (seconds * SECOND as f64) as u64;
        let start = self.seen.partition_point(|seen| seen.at < micros(from));
        let end = self.seen.partition_point(|seen| seen.at < micros(until));
        &self.seen[start..end]
    }

    /// The delay that is exceeded as often as not, in microseconds.
    fn middle_delay(&self, from: f64, until: f64) -> i64 {
        let mut delays: Vec<_> = self.seen_between(from, until).iter().map(|seen| seen.delay).collect();
        delays.sort_unstable();
        delays[delays.len() / 2]
    }

    /// The part of the pictures that were found in this way.
    fn share(&self, from: f64, until: f64, sampling: Sampling) -> f64 {
        let seen = self.seen_between(from, until);
        seen.iter().filter(|seen| seen.sampling == sampling).count() as f64 / seen.len() as f64
    }
}

#[test]
fn remote_01_between_two_states_the_pose_is_exact_by_the_rules() {
    for seed in 1..4 {
        let mut world = World::new(|_| CALM, seed);
        world.fickle = 0.5;
        let world = world.run(10);
        let seen = world.seen_between(LOGIN, 10.0);
        assert!(seen.len() > 1_000);
        for seen in seen {
            assert_eq!(seen.sampling, Sampling::Exact, "seed {seed}: {seen:?}");
            assert_eq!(Some(seen.visible), seen.truth, "seed {seed}: to the bit: {seen:?}");
        }
        let stats = *world.remotes.stats();
        assert_eq!(stats.exact + stats.interpolated, world.seen.len() as u64);
        assert_eq!((stats.extrapolated, stats.held, stats.snapped), (0, 0, 0));
    }
}

#[test]
fn remote_01_jitter_loss_and_frame_rates_leave_it_exact_where_it_says_so() {
    for (seed, frame_micros) in [(1, 1_000), (2, 4_000), (3, 6_944), (4, 16_667), (5, 33_333), (6, 100_000)] {
        let mut world = World::new(|_| Weather { jitter: 8 * MS, loss: 0.05, ..CALM }, seed);
        world.frame_micros = frame_micros;
        let world = world.run(20);
        let exact = world.seen.iter().filter(|seen| seen.sampling == Sampling::Exact);
        let mut off = 0;
        for seen in exact.clone() {
            // What is left of an earlier guess may still be on its way out.
            off += usize::from(Some(seen.visible) != seen.truth);
        }
        let all = exact.count();
        assert!(all * 10 > world.seen.len() * 8, "{all} of {} exact", world.seen.len());
        assert!(off * 10 < all, "seed {seed}: {off} of {all} off");
    }
}

#[test]
fn remote_01_what_the_rules_do_not_explain_is_bridged_and_a_teleport_is_not() {
    let mut world = World::new(|_| CALM, 1);
    world.fickle = 0.0;
    world.script = |world, tick| {
        let push = match tick.number() {
            150 => 0.3,
            200 => 50.0,
            _ => return,
        };
        let id = world.id(1);
        let mut body = world.bodies.history(id).unwrap().get(tick).unwrap().after;
        body.x += push;
        body.settle();
        world.bodies.alter(id, body, Causes::NONE).unwrap();
    };
    let world = world.run(8);
    let seen = world.seen_between(LOGIN, 8.0);
    let of_one: Vec<_> = seen.iter().filter(|seen| seen.player == player(1)).collect();
    let pushed: Vec<_> = of_one.iter().filter(|seen| seen.sampling == Sampling::Interpolated).collect();
    assert!((4..=8).contains(&pushed.len()), "the frames of two ticks: {}", pushed.len());
    let jumps: Vec<_> =
        of_one.windows(2).filter(|pair| (pair[1].visible.x - pair[0].visible.x).abs() > 0.4).collect();
    assert_eq!(jumps.len(), 1, "the teleport is one jump and the push none");
    let step = jumps[0][1].visible.x - jumps[0][0].visible.x;
    assert!((50.2..50.3).contains(&step), "with the way of the tick in which it stood: {step}");
    let first = Cadence::default().end_of(Tick::new(200));
    assert!(jumps[0][0].render < first && first <= jumps[0][1].render, "at the end of its tick");
}

#[test]
fn remote_01_carts_that_meet_are_drawn_near_where_they_are() {
    let mut world = World::new(|_| CALM, 1);
    for (number, x) in [(3, 0.2), (4, 0.4), (5, 0.9)] {
        world.join(number, x);
    }
    world.fickle = 0.4;
    let world = world.run(20);
    assert!(world.met > 20, "{} meetings", world.met);
    for seen in world.seen_between(LOGIN, 20.0) {
        let off = (seen.visible.x - seen.truth.unwrap().x).abs();
        // At most what a cart drives in a tick.
        assert!(off <= 0.4, "{off} m off: {seen:?}");
    }
}

#[test]
fn remote_02_a_constant_delay_is_met_by_an_interval_and_a_guard() {
    let world = World::new(|_| CALM, 1).run(10);
    for seen in &world.seen {
        // Half a millisecond is the grain of this world.
        assert!((81 * MS..=82 * MS).contains(&seen.delay), "{seen:?}");
    }
}

#[test]
fn remote_02_every_cadence_has_its_own_interval_and_the_same_jitter() {
    for micros in [5_000, 16_667, 33_333, 100_000, 200_000] {
        let cadence = Cadence::new(Duration::from_micros(micros)).unwrap();
        let world = World::at_cadence(cadence, |_| Weather { jitter: 4 * MS, ..CALM }, 1).run(30);
        let above = world.middle_delay(5.0, 30.0) - 30 * MS - micros as i64;
        assert!((4 * MS..14 * MS).contains(&above), "{above} above the least at {micros}");
        let exact = world.share(5.0, 30.0, Sampling::Exact);
        assert!(exact > 0.97, "{exact} exact at {micros}");
    }
}

#[test]
fn remote_02_jitter_is_covered_but_not_to_the_last() {
    for (jitter, most) in [(3 * MS, 10 * MS), (12 * MS, 36 * MS)] {
        let weather: fn(u64) -> Weather = match jitter {
            3_000 => |_| Weather { jitter: 3 * MS, ..CALM },
            _ => |_| Weather { jitter: 12 * MS, ..CALM },
        };
        for seed in 1..4 {
            let world = World::new(weather, seed).run(60);
            let above = world.middle_delay(5.0, 60.0) - 80 * MS;
            assert!((jitter..most).contains(&above), "jitter {jitter}: {above} above the least");
            let guessed = world.share(5.0, 60.0, Sampling::Extrapolated);
            assert!(guessed < 0.03, "jitter {jitter}: {guessed} of the pictures were guesses");
            assert_eq!(world.share(5.0, 60.0, Sampling::Held), 0.0);
        }
    }
}

/// Why the default is what it is.
#[test]
fn remote_02_half_the_cost_saves_little_and_gives_up_on_bad_links() {
    let run = |weather: fn(u64) -> Weather, millis: u64| {
        let mut world = World::new(weather, 7);
        let late_cost = Duration::from_millis(millis);
        let config = RemoteConfig { delay: DelayConfig { late_cost, ..DelayConfig::default() }, ..config() };
        world.remotes = Remotes::new(Arc::new(Cart), config, world.cadence).unwrap();
        let world = world.run(60);
        (world.middle_delay(5.0, 60.0), world.share(5.0, 60.0, Sampling::Extrapolated))
    };
    let wifi = |_| Weather { jitter: 12 * MS, loss: 0.02, ..CALM };
    let bad = |_| Weather { jitter: 60 * MS, down: 190 * MS, loss: 0.1, ..CALM };
    let (half, whole) = (run(wifi, 180), run(wifi, 360));
    assert!((0..8 * MS).contains(&(whole.0 - half.0)), "{half:?} {whole:?}");
    let (less, whole) = (run(bad, 150), run(bad, 360));
    assert!(less.1 > 0.3 && whole.1 < 0.07, "{less:?} {whole:?}");
}

#[test]
fn remote_02_a_changed_route_is_learnt_within_two_seconds_and_unlearnt() {
    let route = |at: u64| {
        let longer = if (10 * SECOND..20 * SECOND).contains(&at) { 80 * MS } else { 0 };
        Weather { down: 30 * MS + longer, jitter: MS, ..CALM }
    };
    for seed in 1..6 {
        let world = World::new(route, seed).run(30);
        for (from, until, least) in [(3.0, 10.0, 80), (12.0, 20.0, 160), (22.0, 30.0, 80)] {
            for seen in world.seen_between(from, until) {
                let above = seen.delay - least * MS;
                assert!((-MS..12 * MS).contains(&above), "seed {seed}: {above} above the least at {seen:?}");
            }
            assert!(world.share(from, until, Sampling::Extrapolated) < 0.02, "seed {seed} from {from}");
        }
    }
}

#[test]
fn remote_02_an_unstable_minute_leaves_nothing_behind() {
    let minute = |at: u64| {
        if (10 * SECOND..70 * SECOND).contains(&at) {
            Weather { jitter: 60 * MS, down: 120 * MS, loss: 0.1, ..CALM }
        } else {
            Weather { jitter: MS, ..CALM }
        }
    };
    for seed in 1..4 {
        let world = World::new(minute, seed).run(90);
        let bad = world.middle_delay(20.0, 70.0);
        assert!((170 * MS..400 * MS).contains(&bad), "seed {seed}: {bad} while it lasts");
        for seen in world.seen_between(85.0, 90.0) {
            assert!((79 * MS..92 * MS).contains(&seen.delay), "seed {seed}: {seen:?}");
        }
        let soon = world.middle_delay(74.0, 75.0);
        assert!(soon < 100 * MS, "seed {seed}: {soon} four seconds later");
    }
}

#[test]
fn remote_02_loss_alone_does_not_raise_the_delay() {
    let world = World::new(|_| Weather { loss: 0.3, ..CALM }, 1).run(30);
    for seen in world.seen_between(1.0, 30.0) {
        assert!((81 * MS..=82 * MS).contains(&seen.delay), "{seen:?}");
    }
}

#[test]
fn remote_03_updates_that_stop_are_bridged_for_a_bounded_time_and_then_all_stand() {
    let outage = |at: u64| Weather { loss: f64::from(u8::from(at > 5 * SECOND)), ..CALM };
    let mut world = World::new(outage, 1);
    world.fickle = 0.0;
    let world = world.run(8);
    let last = world.seen.last().unwrap();
    assert_eq!(last.newest, last.state_tick);
    let end = Cadence::default().end_of(last.state_tick);
    let limit = end + Duration::from_millis(250);
    for seen in world.seen_between(5.0, 8.0) {
        let expected = match seen.render {
            time if time <= end => Sampling::Exact,
            time if time < limit => Sampling::Extrapolated,
            _ => Sampling::Held,
        };
        assert_eq!(seen.sampling, expected, "{seen:?}");
        assert!(seen.render <= limit, "drawing stands too");
    }
    assert_eq!(world.share(6.0, 8.0, Sampling::Held), 1.0);
    let stood: Vec<_> = world.seen_between(6.0, 8.0).iter().filter(|seen| seen.player == player(1)).collect();
    assert!(stood.windows(2).all(|pair| pair[0].visible == pair[1].visible), "nobody moves");
    let beyond = stood[0].visible.x - stood[0].state.x;
    assert!((0.9..1.1).contains(&beyond), "a quarter of a second at 4 m/s: {beyond}");
}

#[test]
fn remote_03_updates_that_resume_are_converged_to() {
    let outage = |at: u64| {
        let out = (5 * SECOND..6 * SECOND).contains(&at);
        Weather { loss: f64::from(u8::from(out)), ..CALM }
    };
    for seed in 1..6 {
        let mut world = World::new(outage, seed);
        world.fickle = 0.5;
        let world = world.run(9);
        for seen in world.seen_between(7.2, 9.0) {
            assert_eq!(seen.sampling, Sampling::Exact, "seed {seed}: {seen:?}");
            assert_eq!(Some(seen.visible), seen.truth, "seed {seed}: {seen:?}");
            assert!((81 * MS..=82 * MS).contains(&seen.delay), "seed {seed}: {seen:?}");
        }
    }
}

#[test]
fn remote_03_a_wrong_guess_is_eased_away_and_never_a_jump() {
    let cap = config().correction.unwrap().cap_speed;
    let mut eased = 0;
    for seed in 1..6 {
        let mut world = World::new(|_| Weather { jitter: 25 * MS, down: 80 * MS, loss: 0.15, ..CALM }, seed);
        world.fickle = 0.3;
        let world = world.run(20);
        for number in [1, 2] {
            let of_one: Vec<_> = world.seen.iter().filter(|seen| seen.player == player(number)).collect();
            for pair in of_one.windows(2) {
                // Its own way, at a clock up to a fifth fast, and that of the correction.
                let seconds = (pair[1].at - pair[0].at) as f64 / 1e6;
                let most = (1.25 * TOP_SPEED + cap) * seconds + 0.002;
                let moved = (pair[1].visible.x - pair[0].visible.x).abs();
                assert!(moved <= most, "seed {seed}: {moved} of {most} m at {:?}", pair[1]);
            }
        }
        assert_eq!(world.remotes.stats().snapped, 0, "seed {seed}");
        eased += world.remotes.stats().eased;
    }
    assert!(eased > 20, "{eased} wrong guesses");
}

#[test]
fn remote_03_a_stalled_server_and_a_suspended_client_are_got_over() {
    let server = |at: u64| Weather { server_stalled: (5 * SECOND..6 * SECOND).contains(&at), ..CALM };
    let client = |at: u64| Weather { client_stalled: (5 * SECOND..15 * SECOND).contains(&at), ..CALM };
    for (world, end) in [(World::new(server, 1), 6), (World::new(client, 1), 15)] {
        let world = world.run(end + 4);
        let after = end as f64;
        for seen in world.seen_between(after + 1.5, after + 4.0) {
            assert_eq!(seen.sampling, Sampling::Exact, "{seen:?}");
            assert_eq!(Some(seen.visible), seen.truth, "{seen:?}");
            assert!((80 * MS..=86 * MS).contains(&seen.delay), "{seen:?}");
        }
    }
}

#[test]
fn remote_04_an_older_snapshot_changes_nothing_and_drawing_never_goes_back() {
    // More jitter than an interval: they overtake each other. Each frame asserts that drawing goes on.
    for seed in 1..6 {
        let world = World::new(|_| Weather { jitter: 60 * MS, down: 200 * MS, ..CALM }, seed).run(20);
        let mut newest = BTreeMap::new();
        for seen in &world.seen {
            let before = newest.insert(seen.id, seen.state_tick);
            assert!(before.is_none_or(|before| before <= seen.state_tick), "seed {seed}: {seen:?}");
        }
    }
}

#[test]
fn remote_04_what_is_drawn_as_known_is_never_newer_than_what_has_arrived() {
    for seed in 1..4 {
        let world = World::new(|_| Weather { jitter: 20 * MS, loss: 0.1, ..CALM }, seed).run(30);
        for seen in &world.seen {
            let known = matches!(seen.sampling, Sampling::Exact | Sampling::Interpolated);
            assert_eq!(known, seen.render <= Cadence::default().end_of(seen.state_tick), "{seen:?}");
            assert!(seen.state_tick <= seen.newest);
        }
    }
}

#[test]
fn remote_05_state_is_what_the_server_told_whatever_is_drawn() {
    // The speed of a cart stands for its health here: the rules never change it, only the server does.
    let mut world = World::new(|_| Weather { jitter: 25 * MS, loss: 0.25, ..CALM }, 1);
    world.script = |world, tick| {
        if tick.number() % 7 == 0 {
            let id = world.id(1);
            let mut body = world.bodies.history(id).unwrap().get(tick).unwrap().after;
            body.speed = f64::from(tick.number() % 5 + 1);
            world.bodies.alter(id, body, Causes::NONE).unwrap();
        }
    };
    let world = world.run(30);
    let mut guesses = 0;
    for seen in &world.seen {
        assert_eq!(world.told.get(&(seen.state_tick, seen.id)), Some(&seen.state), "{seen:?}");
        guesses += usize::from(seen.sampling == Sampling::Extrapolated);
    }
    assert!(guesses > 100, "{guesses} guesses");
}

#[test]
fn remote_06_bodies_are_drawn_from_their_first_state_to_the_end_of_their_last_tick() {
    let mut world = World::new(|_| CALM, 1);
    world.script = |world, tick| match tick.number() {
        150 => world.join(7, 70_000.0),
        200 => {
            world.bodies.leave(player(7));
            world.held.remove(&player(7));
        }
        // When nothing that names the old one is kept any more, the number may be another's.
        300 => world.join(7, 70_000.0),
        _ => {}
    };
    let world = world.run(12);
    let cadence = Cadence::default();
    assert!(world.seen_between(11.0, 12.0).iter().any(|seen| seen.player == player(7)));
    let seven: Vec<_> =
        world.seen_between(0.0, 10.0).iter().filter(|seen| seen.player == player(7)).collect();
    let (first, last) = (seven[0], seven[seven.len() - 1]);
    let joined = cadence.end_of(Tick::new(150));
    assert!(first.render >= joined && first.render < joined + Duration::from_millis(17), "{first:?}");
    let removed = cadence.end_of(Tick::new(200));
    assert!(last.render < removed && last.render >= removed - Duration::from_millis(17), "{last:?}");
    assert_eq!(last.sampling, Sampling::Exact);
    let stats = world.remotes.stats();
    assert_eq!(
        (stats.joins, stats.leaves),
        (4, 1),
        "two that were there, and two that came, one of which went"
    );
    assert!(world.seen.iter().all(|seen| seen.player != player(0)), "the player's own is not a remote");
}

#[test]
fn remote_06_a_removed_body_is_held_while_the_snapshots_without_it_are_lost() {
    let outage = |at: u64| {
        let lost = (201 * CADENCE..207 * CADENCE).contains(&(at + SERVER_AHEAD));
        Weather { loss: f64::from(u8::from(lost)), ..CALM }
    };
    let mut world = World::new(outage, 1);
    world.script = |world, tick| {
        if tick.number() == 200 {
            world.bodies.leave(player(2));
            world.held.remove(&player(2));
        }
    };
    let world = world.run(8);
    let two: Vec<_> = world.seen.iter().filter(|seen| seen.player == player(2)).collect();
    let last = two[two.len() - 1];
    assert_eq!(last.state_tick, Tick::new(199), "{last:?}");
    let told = Cadence::default().end_of(Tick::new(206)).as_micros() + CALM.down as u64 - SERVER_AHEAD;
    assert!(
        (told - 17_000..=told + 500).contains(&last.at),
        "until the snapshot of tick 206 comes: {last:?}"
    );
    assert_eq!((world.remotes.stats().joins, world.remotes.stats().leaves), (2, 1));
}

/// Forty carts, of which a datagram holds a few, for some ticks; `each` is told the round after each frame.
fn crowded(rounds: u64, mut each: impl FnMut(u64, &mut Bodies<Cart>, &mut Remotes<Cart>, &Crowd<Cart>)) {
    let mut bodies = Bodies::new(Arc::new(Cart), Cadence::default(), Tick::new(100));
    for number in 0..40 {
        bodies.join(player(number));
        let cart = CartBody::at(f64::from(number) * 10.0);
        bodies.spawn(Driver::Player(player(number)), cart).unwrap();
    }
    let (mut view, mut crowd) = (View::default(), Crowd::new(Arc::new(Cart), Cadence::default()));
    let mut remotes = Remotes::new(Arc::new(Cart), config(), Cadence::default()).unwrap();
    for round in 0..rounds {
        bodies.advance(|player| TickInput::steady((u64::from(player.number()) * 7 + round) as i8 % 8));
        let mut buffer = [0; 80];
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(&mut view, 80 * 8, &mut bits);
        let length = bits.finish().unwrap();
        crowd.read(bodies.tick(), &mut BitReader::new(&buffer[..length])).unwrap();
        view.acknowledge(bodies.tick());
        let now = Timestamp::from_micros(round * CADENCE);
        remotes.accepted(now, bodies.tick());
        for frame in 0..5 {
            remotes.frame(now + Duration::from_millis(frame * 10), None, &crowd);
            each(round, &mut bodies, &mut remotes, &crowd);
        }
    }
}

#[test]
fn remote_06_who_is_left_out_of_a_snapshot_is_held_and_not_removed() {
    let mut most = 0;
    crowded(60, |round, _, remotes, crowd| {
        let count = remotes.iter().count();
        assert!(count >= most, "nobody vanishes");
        most = count;
        if round == 59 {
            assert!(crowd.bodies().count() < 40, "they do not all fit");
            assert_eq!(most, 40);
        }
    });
}

#[test]
fn remote_06_a_removed_body_goes_without_a_complete_snapshot_too_and_does_not_come_back() {
    let (mut removed, mut vanished) = (vec![], BTreeSet::new());
    let kept = u64::from(history_ticks(Cadence::default()));
    crowded(30 + kept + 5, |round, bodies, remotes, crowd| {
        if round == 30 && removed.is_empty() {
            removed = (0..40).step_by(3).map(|number| bodies.owned(player(number))[0]).collect();
            removed.iter().for_each(|id| assert!(bodies.remove(*id).is_ok()));
        }
        assert!(crowd.bodies().count() < 26, "they never all fit");
        let drawn: Vec<_> = remotes.iter().map(|remote| remote.id).collect();
        for id in &removed {
            let is_drawn = drawn.contains(id);
            assert!(!(is_drawn && vanished.contains(id)), "{id} is back in round {round}");
            if !is_drawn {
                vanished.insert(*id);
            }
        }
        assert!(
            !(31..=40).contains(&round) || vanished.len() < removed.len(),
            "they may just have been left out"
        );
        if round > 30 + kept {
            assert_eq!(vanished.len(), removed.len());
            assert_eq!(drawn.len(), 26, "the others stay");
        }
    });
}

#[test]
fn remote_06_ones_own_is_left_out_from_when_it_is_known() {
    let mut world = World::new(|_| CALM, 1).run(1);
    let now = Timestamp::from_micros(SECOND);
    for (own, drawn) in [(Some(0), vec![1, 2]), (Some(1), vec![0, 2]), (None, vec![0, 1, 2])] {
        for _ in 0..2 {
            world.remotes.frame(now, own.map(player), &world.crowd);
        }
        let players = world.remotes.iter().map(|remote| remote.driver.player().unwrap().number());
        assert_eq!(players.collect::<BTreeSet<_>>(), BTreeSet::from_iter(drawn));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever arrives whenever, and whenever is drawn: drawing never goes back, and never further past what has
    /// arrived than it may.
    #[test]
    fn remote_04_drawing_never_goes_back_over_any_arrivals(
        events in prop::collection::vec((0u64..300_000, 0u32..200, prop::bool::ANY), 1..300),
    ) {
        let mut clock = halftrack::RenderClock::new(DelayConfig::default(), Cadence::default()).unwrap();
        let (mut now, mut newest, mut last) = (0, 0, None);
        for (wait, tick, arrives) in events {
            now += wait;
            if arrives {
                newest = newest.max(tick);
                clock.arrived(Timestamp::from_micros(now), Tick::new(tick));
            }
            let shown = clock.frame(Timestamp::from_micros(now));
            prop_assert!(shown >= last);
            let limit = Cadence::default().end_of(Tick::new(newest)) + Duration::from_millis(250);
            prop_assert!(shown.is_none_or(|shown| shown <= limit));
            last = shown;
        }
    }
}
