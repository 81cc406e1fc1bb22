//! CLOCK: the server's time and the lead, in virtual time, over links that misbehave.
//!
//! A client that closes a tick and sends it; a server that takes it, and tells in each snapshot how early input came.
//! The components are the product's; only the link is made up here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::Cart;
use halftrack::{
    Arrival, Cadence, ClockSample, InputQueue, InputQueueConfig, LeadConfig, LeadController, Margin,
    MoveInput, PredictionClock, Rate, Seq, ServerClock, ServerTime, Tick, TickInput, Timestamp,
};

const MS: i64 = 1_000;
const SECOND: u64 = 1_000_000;

/// How the world behaves at a moment. Times in microseconds.
#[derive(Clone, Copy, Debug)]
struct Weather {
    up: i64,
    down: i64,
    /// Sigma.
    jitter: i64,
    loss: f64,
    server_stalled: bool,
    client_stalled: bool,
}

const CALM: Weather = Weather {
    up: 30 * MS,
    down: 30 * MS,
    jitter: 0,
    loss: 0.0,
    server_stalled: false,
    client_stalled: false,
};

/// What is on the way, by arrival.
#[derive(Clone, Debug)]
enum Packet {
    Input { seq: Seq, sent: u64, tick: Tick },
    Snapshot { newest: Option<Margin>, least: Option<Margin>, echo: Option<(u64, u64)>, server: u64 },
}

/// A sample of the run, twenty times a second. Microseconds.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: u64,
    /// Prediction time less the server's real time.
    true_lead: i64,
    /// The estimate less the server's real time.
    estimate_error: i64,
    /// The margin that input sent now has on an average link.
    margin: i64,
    target_margin: i64,
    rate: Rate,
}

struct World {
    weather: fn(u64) -> Weather,
    /// The client's clock runs this much fast.
    ppm: i64,
    dice: u64,
    on_the_way: BTreeMap<(u64, u64), Packet>,
    packets: u64,
    clock: ServerClock,
    lead: Option<LeadController>,
    prediction: Option<PredictionClock>,
    next_close: Option<Tick>,
    seq: Seq,
    queue: InputQueue<Cart>,
    echo: Option<(u64, u64)>,
    next_tick: Tick,
    late: Vec<u64>,
    last_estimate: ServerTime,
    seen: Vec<Seen>,
}

const CADENCE: u64 = 50_000;
/// The server's clock less real time.
const SERVER_AHEAD: u64 = 5_000_000;

impl World {
    fn new(weather: fn(u64) -> Weather, seed: u64) -> Self {
        let first = Tick::new(u32::try_from(SERVER_AHEAD / CADENCE).unwrap());
        Self {
            weather,
            ppm: 0,
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            on_the_way: BTreeMap::new(),
            packets: 0,
            clock: ServerClock::default(),
            lead: None,
            prediction: None,
            next_close: None,
            seq: Seq::default(),
            queue: InputQueue::new(Arc::new(Cart), InputQueueConfig::default(), first.previous().unwrap())
                .unwrap(),
            echo: None,
            next_tick: first,
            late: vec![],
            last_estimate: ServerTime::ZERO,
            seen: vec![],
        }
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

    fn local(&self, real: u64) -> Timestamp {
        Timestamp::from_micros(real.saturating_add_signed(real as i64 * self.ppm / 1_000_000))
    }

    fn send(&mut self, real: u64, delay: i64, packet: Packet) {
        let weather = (self.weather)(real);
        if self.unit() < weather.loss {
            return;
        }
        let jitter = (self.bell() * weather.jitter as f64) as i64;
        let arrival = real + u64::try_from((delay + jitter).max(100)).unwrap();
        self.packets += 1;
        self.on_the_way.insert((arrival, self.packets), packet);
    }

    fn run(mut self, seconds: u64) -> Self {
        // Half a millisecond at a time: fine enough for every threshold below.
        for real in (0..seconds * SECOND).step_by(500) {
            while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= real) {
                let (arrival, packet) = (entry.key().0, entry.get().clone());
                let weather = (self.weather)(real);
                let stalled = match packet {
                    Packet::Input { .. } => weather.server_stalled,
                    Packet::Snapshot { .. } => weather.client_stalled,
                };
                entry.remove();
                if stalled {
                    // It waits in the socket until somebody looks.
                    self.packets += 1;
                    self.on_the_way.insert((real + 500, self.packets), packet);
                } else {
                    self.arrive(arrival.max(real), &packet);
                }
            }
            self.server(real);
            self.client(real);
        }
        self
    }

    fn server_time(real: u64) -> ServerTime {
        ServerTime::from_micros(real + SERVER_AHEAD)
    }

    fn server(&mut self, real: u64) {
        if (self.weather)(real).server_stalled {
            return;
        }
        let cadence = Cadence::default();
        while cadence.end_of(self.next_tick) <= Self::server_time(real) {
            self.queue.take();
            self.next_tick = self.next_tick.next();
            let server = Self::server_time(real).as_micros();
            let echo = self.echo.map(|(sent, arrived)| (sent, real - arrived));
            let (newest, least) = (self.queue.newest_margin(), self.queue.least_margin());
            let delay = (self.weather)(real).down;
            self.send(real, delay, Packet::Snapshot { newest, least, echo, server });
        }
    }

    fn arrive(&mut self, real: u64, packet: &Packet) {
        match packet {
            Packet::Input { seq, sent, tick } => {
                let message = MoveInput {
                    seq: *seq,
                    newest: *tick,
                    ticks: vec![TickInput::steady(1)],
                    ..MoveInput::default()
                };
                // Behind its own clock by a tick or more: it has been stalled, and is not to blame others.
                let behind = Cadence::default().end_of(self.next_tick) + Duration::from_millis(10)
                    < Self::server_time(real);
                let arrival = if behind { Arrival::CatchingUp } else { Arrival::Live };
                if self.queue.receive(Self::server_time(real), &message, arrival) {
                    self.echo = Some((*sent, real));
                    if *tick < self.next_tick {
                        self.late.push(real);
                    }
                }
            }
            Packet::Snapshot { newest, least, echo, server } => {
                let received = self.local(real);
                if let Some((sent, held)) = echo {
                    self.clock.sample(ClockSample {
                        sent: Timestamp::from_micros(*sent),
                        held: Duration::from_micros(*held),
                        server: ServerTime::from_micros(*server),
                        received,
                    });
                }
                if let Some(lead) = &mut self.lead {
                    for margin in [least, newest].into_iter().flatten() {
                        lead.report(margin.seq, margin.micros);
                    }
                }
            }
        }
    }

    fn client(&mut self, real: u64) {
        if (self.weather)(real).client_stalled {
            return;
        }
        let now = self.local(real);
        let cadence = Cadence::default();
        let Some(estimate) = self.clock.at(now) else {
            // Nothing known: say hello, to have something echoed.
            if real.is_multiple_of(100_000) {
                self.seq = self.seq.next();
                let delay = (self.weather)(real).up;
                self.send(
                    real,
                    delay,
                    Packet::Input { seq: self.seq, sent: now.as_micros(), tick: Tick::default() },
                );
            }
            return;
        };
        assert!(estimate >= self.last_estimate, "the estimate ran backwards");
        self.last_estimate = estimate;
        let half = self.clock.round_trip().unwrap_or_default() / 2;
        let lead = self.lead.get_or_insert_with(|| {
            LeadController::new(LeadConfig::default(), half + Duration::from_millis(20)).unwrap()
        });
        // Both as microseconds ahead of the client's own clock.
        let ahead = |time: ServerTime| time.as_micros() as i64 - now.as_micros() as i64;
        let server = ahead(estimate);
        let aimed = |lead: &LeadController| {
            ServerTime::from_micros(now.as_micros().saturating_add_signed(lead.aim(server)))
        };
        let prediction = self.prediction.get_or_insert_with(|| PredictionClock::new(now, aimed(lead)));
        // Beyond half a second prediction restarts; that is the predictor's rule.
        if prediction.at(now).abs_diff(aimed(lead)) > Duration::from_millis(500) {
            *prediction = PredictionClock::new(now, aimed(lead));
            self.next_close = None;
        }
        prediction.set_rate(now, lead.rate(ahead(prediction.at(now)), server));
        let time = prediction.at(now);

        let next = *self.next_close.get_or_insert(cadence.tick_at(time));
        if cadence.end_of(next) <= time {
            let newest = cadence.tick_at(time).previous().unwrap();
            self.seq = self.seq.next();
            // More than a tick at once: a hitch of our own.
            if newest == next {
                let before_end = ahead(cadence.end_of(newest));
                lead.sent(now, self.seq, before_end, before_end);
            }
            self.next_close = Some(newest.next());
            let packet = Packet::Input { seq: self.seq, sent: now.as_micros(), tick: newest };
            let delay = (self.weather)(real).up;
            self.send(real, delay, packet);
        }
        if real.is_multiple_of(CADENCE) {
            self.see(real);
        }
    }

    fn see(&mut self, real: u64) {
        let (Some(lead), Some(prediction)) = (&self.lead, &self.prediction) else { return };
        let now = self.local(real);
        let server = Self::server_time(real).as_micros() as i64;
        let true_lead = prediction.at(now).as_micros() as i64 - server;
        let estimate = self.last_estimate.as_micros() as i64;
        let margin = true_lead - (self.weather)(real).up;
        // What the margin would be if the lead were what the controller wants.
        let local = now.as_micros() as i64;
        let target_margin = lead.aim(estimate - local) + local - server - (self.weather)(real).up;
        self.seen.push(Seen {
            at: real,
            true_lead,
            estimate_error: estimate - server,
            margin,
            target_margin,
            rate: prediction.rate(),
        });
    }

    fn seen_from(&self, seconds: f64) -> &[Seen] {
        let from = (seconds * SECOND as f64) as u64;
        &self.seen[self.seen.partition_point(|seen| seen.at < from)..]
    }

    /// From two seconds after `event` on (and until `until`), the margin is within -5/+15 ms of its target, and the rate
    /// does not change its sign.
    fn assert_right_again(&self, event: f64, until: f64) {
        let until = (until * SECOND as f64) as u64;
        let mut sign = 0;
        for seen in self.seen_from(event + 2.0).iter().take_while(|seen| seen.at < until) {
            let off = seen.margin - seen.target_margin;
            assert!((-5 * MS..=15 * MS).contains(&off), "{off} us off at {seen:?}");
            let now = seen.rate.ppm().signum();
            assert!(now == 0 || sign == 0 || now == sign, "the rate turned round at {seen:?}");
            sign = if now == 0 { sign } else { now };
        }
    }

    fn late_between(&self, from: f64, until: f64) -> usize {
        let range = (from * SECOND as f64) as u64..(until * SECOND as f64) as u64;
        self.late.iter().filter(|at| range.contains(at)).count()
    }
}

#[test]
fn clock_03_a_constant_delay_needs_that_delay_and_a_millisecond() {
    let world = World::new(|_| CALM, 1).run(20);
    world.assert_right_again(0.0, 20.0);
    for seen in world.seen_from(3.0) {
        assert!((500..3_000).contains(&seen.margin), "{seen:?}");
        assert!(seen.estimate_error.abs() <= 300, "{seen:?}");
    }
    assert_eq!(world.late_between(1.0, 20.0), 0);
}

#[test]
fn clock_03_jitter_is_covered_but_not_to_the_last() {
    for (jitter, most) in [(3 * MS, 12 * MS), (12 * MS, 40 * MS)] {
        let weather: fn(u64) -> Weather = match jitter {
            3_000 => |_| Weather { jitter: 3 * MS, ..CALM },
            _ => |_| Weather { jitter: 12 * MS, ..CALM },
        };
        let world = World::new(weather, 1).run(60);
        let mut margins: Vec<_> = world.seen_from(5.0).iter().map(|seen| seen.margin).collect();
        margins.sort_unstable();
        let middle = margins[margins.len() / 2];
        assert!((jitter..most).contains(&middle), "jitter {jitter}: margin {middle}");
        let late = world.late_between(5.0, 60.0);
        assert!(late < 55 * 20 / 25, "jitter {jitter}: {late} of {} late", 55 * 20);
    }
}

#[test]
fn clock_03_asymmetric_delays_are_found_by_the_margin() {
    let world = World::new(|_| Weather { up: 80 * MS, down: 20 * MS, ..CALM }, 1).run(20);
    world.assert_right_again(0.0, 20.0);
    let last = world.seen.last().unwrap();
    assert!((last.estimate_error - 30 * MS).abs() < MS, "the estimate cannot know: {last:?}");
    assert!((500..3_000).contains(&last.margin), "but input knows: {last:?}");
}

#[test]
fn clock_02_a_drift_of_200_ppm_is_followed() {
    for ppm in [200, -200] {
        let mut world = World::new(|_| Weather { jitter: MS, ..CALM }, 1);
        world.ppm = ppm;
        let world = world.run(60);
        for seen in world.seen_from(3.0) {
            assert!(seen.estimate_error.abs() < 4 * MS, "{seen:?}");
            assert!((0..12 * MS).contains(&seen.margin), "{seen:?}");
        }
    }
}

#[test]
fn clock_03_a_server_stall_is_not_blamed_on_the_network() {
    let stall = |at: u64| Weather { server_stalled: (10 * SECOND..11 * SECOND).contains(&at), ..CALM };
    let world = World::new(stall, 1).run(20);
    let before = world.seen_from(9.5)[0].true_lead;
    world.assert_right_again(11.0, 20.0);
    for seen in world.seen_from(9.5) {
        assert!((seen.true_lead - before).abs() < 5 * MS, "the lead stays: {seen:?}");
    }
}

#[test]
fn clock_02_a_suspended_client_is_right_again_within_two_seconds() {
    let stall =
        |at: u64| Weather { client_stalled: (10 * SECOND..40 * SECOND).contains(&at), jitter: MS, ..CALM };
    let mut world = World::new(stall, 1);
    world.ppm = 100;
    let world = world.run(50);
    world.assert_right_again(40.0, 50.0);
    assert_eq!(world.late_between(42.0, 50.0), 0);
}

#[test]
fn clock_03_a_changed_route_is_learnt_and_unlearnt() {
    let route = |at: u64| {
        let longer = if (10 * SECOND..20 * SECOND).contains(&at) { 80 * MS } else { 0 };
        Weather { up: 30 * MS + longer, down: 30 * MS + longer, jitter: MS, ..CALM }
    };
    for seed in 1..4 {
        let world = World::new(route, seed).run(30);
        world.assert_right_again(10.0, 20.0);
        world.assert_right_again(20.0, 30.0);
        for (from, until) in [(12.0, 20.0), (22.0, 30.0)] {
            let until = (until * SECOND as f64) as u64;
            for seen in world.seen_from(from).iter().take_while(|seen| seen.at < until) {
                assert!((0..20 * MS).contains(&seen.margin), "seed {seed}: {seen:?}");
            }
        }
        assert!(world.late_between(12.0, 20.0) <= 3, "seed {seed}: of 160");
    }
}

#[test]
fn clock_03_loss_alone_does_not_raise_the_lead() {
    /// The middle lead of a run, over some runs.
    fn lead(weather: fn(u64) -> Weather) -> i64 {
        let runs = (1..=4).map(|seed| {
            let world = World::new(weather, seed).run(30);
            let mut leads: Vec<_> = world.seen_from(3.0).iter().map(|seen| seen.true_lead).collect();
            leads.sort_unstable();
            leads[leads.len() / 2]
        });
        runs.sum::<i64>() / 4
    }
    let without = lead(|_| Weather { jitter: 2 * MS, ..CALM });
    let with = lead(|_| Weather { jitter: 2 * MS, loss: 0.05, ..CALM });
    assert!(with < without + 3 * MS / 2, "{without} without loss, {with} with");
    let world = World::new(|_| Weather { loss: 0.05, ..CALM }, 1).run(20);
    world.assert_right_again(0.0, 20.0);
}
