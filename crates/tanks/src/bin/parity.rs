//! A short demonstration: what rubber-bands, what does not, and the proof, on the tank rules.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use halftrack::{
    Authority, Body, Cadence, Cause, Causes, CheckPlan, Epoch, Game, Pose as _, PredictConfig, Reconciler,
    Replay, Tick, TickInput, Timestamp, check_game,
};
use tanks::{Arena, Entity, Tank, TankInput, Tanks};

fn main() -> Result<(), Box<dyn Error>> {
    println!("Halftrack: prediction on the server's own cadence. Tank rules, 20 Hz, walls and all.\n");
    rubber_band()?;
    parity()?;
    loopback()?;
    println!("Next: README.md, and `cargo test` for the same under every script the tests can think of.");
    Ok(())
}

/// A player's hands: something else every 400 ms or so, at moments that have nothing to do with ticks.
fn hands(at: Duration) -> Result<TankInput, tanks::NotFinite> {
    let wishes = [(0.0, 1.0), (0.5, 1.0), (-1.0, 0.75), (0.25, -0.5), (1.0, 1.0), (0.0, 0.0), (-0.5, 1.0)];
    let (turn, throttle) = wishes[at.as_micros() as usize / 413_007 % wishes.len()];
    TankInput::from_unit(turn, throttle)
}

fn arena() -> Arc<Tanks> {
    Arc::new(Tanks::new(Arc::new(Arena::proving_ground())))
}

/// Where the trouble came from: the same input, integrated over other spans of time.
fn rubber_band() -> Result<(), Box<dyn Error>> {
    println!("1. One second of full throttle and half turn, cut in different ways:");
    let rules = arena();
    let mut start = Tank::new(-30.0, 26.0, 0.95);
    start.settle();
    let input = TankInput::from_unit(0.5, 1.0)?;
    let cut = |cadence| {
        let mut replay = Replay::new(&*rules, cadence, Tick::new(1), &[], start.into());
        replay.hold(input, Duration::from_millis(999));
        *replay.body()
    };
    let in_pieces = |pieces: u32| Cadence::new(Duration::from_millis(999) / pieces).map(cut);
    // What a server makes of it, tick by tick.
    let server = cut(Cadence::default());
    let off = |body: &Entity| body.pose().offset_from(&server.pose()).distance();
    println!("     as five steps of 200 ms     {:7.3} m from the server", off(&in_pieces(5)?));
    println!("     as ten steps of 100 ms      {:7.3} m", off(&in_pieces(10)?));
    println!("     per frame at 60 Hz          {:7.3} m", off(&in_pieces(60)?));

    // What a client predicts of it, in frames at 60 Hz from the first full tick on.
    let mut session = Session::start()?;
    session.client.set_input(session.now, input);
    let before_first = Duration::from_millis(40);
    for frame in 0..=60 {
        let at = before_first + Duration::from_micros(frame * 16_650);
        session.client.frame(session.now + at);
    }
    let predicted = session.client.predicted();
    let equal = if predicted.digest() == server.digest() { "equal to the bit" } else { "NOT equal" };
    println!("     predicted, frames at 60 Hz  {:7.3} m, {equal}\n", off(predicted));
    Ok(())
}

/// The rules under the public checker, at several cadences and frame rates.
fn parity() -> Result<(), Box<dyn Error>> {
    println!(
        "2. Three tanks play for ten seconds, and every frame is rebuilt from each state of the last second:"
    );
    let tanks = [Tank::new(-30.0, 26.0, 0.95), Tank::new(-26.0, 26.0, 0.5), Tank::new(-30.0, 22.0, 0.2)];
    let wishes =
        (0..7).map(|wish| hands(Duration::from_micros(413_007) * wish)).collect::<Result<Vec<_>, _>>()?;
    for cadence in [16_667, 50_000, 200_000] {
        for hz in [30, 60, 144, 1000] {
            let cadence = Cadence::new(Duration::from_micros(cadence))?;
            let plan = CheckPlan {
                cadence,
                ticks: cadence.ticks_in(Duration::from_secs(10)),
                frame: Duration::from_secs(1) / hz,
                ..CheckPlan::new(tanks.iter().map(|tank| (*tank).into()).collect(), wishes.clone())
            };
            let report = check_game(|| Tanks::new(Arena::proving_ground().into()), &plan)?;
            println!(
                "     C = {:7.3} ms, frames at {hz:4} Hz: {:4} ticks, {:7} rebuilds, all equal to the bit",
                cadence.interval().as_secs_f64() * 1e3,
                report.ticks,
                report.rebuilds
            );
        }
    }
    println!();
    Ok(())
}

/// A minute against a server 50 ms away, on time; then the same with a burst of lost input every five seconds.
fn loopback() -> Result<(), Box<dyn Error>> {
    println!("3. A minute of play against a server 50 ms away:");
    for lossy in [false, true] {
        let report = Session::start()?.play(Duration::from_secs(60), lossy)?;
        let what = if lossy { "200 ms of input lost every 5 s" } else { "all input on time" };
        println!("     {what}: {} states, {} ticks replayed", report.states, report.replayed);
        println!("       corrections by cause: {}", report.causes);
        println!(
            "       predicted pose moved by at most {:.3} m at once; the visible one by at most {:.3} m per frame",
            report.largest, report.visible_step
        );
    }
    println!();
    Ok(())
}

/// A client and a server, 50 ms apart each way.
struct Session {
    rules: Arc<Tanks>,
    client: Reconciler<Tanks>,
    now: Timestamp,
    server: Authority<Tanks>,
    known: Option<(Tick, TankInput)>,
    on_the_way: VecDeque<(Timestamp, Authority<Tanks>)>,
}

struct Report {
    states: u64,
    replayed: u64,
    causes: String,
    largest: f64,
    visible_step: f64,
}

impl Session {
    const ONE_WAY: Duration = Duration::from_millis(50);
    /// Input arrives 10 ms before it is needed.
    const LEAD: Duration = Duration::from_millis(60);

    fn start() -> Result<Self, Box<dyn Error>> {
        let mut body = Tank::new(-30.0, 26.0, 0.95);
        body.settle();
        let server = Authority::new(Epoch::default(), Tick::new(100), body.into());
        let cadence = Cadence::default();
        let rules = arena();
        let now = Timestamp::ZERO;
        let time = cadence.end_of(server.tick) + Self::LEAD;
        let client = Reconciler::new(Arc::clone(&rules), PredictConfig::default(), None, now, time, &server)?;
        Ok(Self { rules, client, now, server, known: None, on_the_way: VecDeque::new() })
    }

    fn play(mut self, span: Duration, lossy: bool) -> Result<Report, Box<dyn Error>> {
        let (start, frame) = (self.now, Duration::from_micros(16_667));
        let (mut largest, mut visible_step, mut replayed) = (0.0f64, 0.0f64, 0);
        while self.now < start + span {
            self.now = self.now + frame;
            let elapsed = self.now.saturating_since(start);
            self.client.set_input(self.now, hands(elapsed)?);
            let lost = lossy && elapsed.as_millis() % 5_000 > 4_800;
            self.serve(self.client.predictor().clock().at(self.now) - Self::LEAD, lost);
            let before = self.client.visible().copied();
            self.client.frame(self.now);
            while self.on_the_way.front().is_some_and(|(arrival, _)| *arrival <= self.now) {
                let Some((_, state)) = self.on_the_way.pop_front() else { break };
                let target = self.client.predictor().time();
                let diagnosis = self.client.accept(self.now, target, &state)?;
                largest = largest.max(diagnosis.correction_distance);
                replayed += u64::from(diagnosis.replayed_ticks);
            }
            if let (Some(before), Some(after)) = (before, self.client.visible()) {
                visible_step = visible_step.max((after.x - before.x).hypot(after.y - before.y));
            }
        }
        let named = |(cause, count): (Cause, u64)| (count > 0).then(|| format!("{cause} {count}"));
        let causes: Vec<_> = self.client.stats().by_cause().filter_map(named).collect();
        let causes = if causes.is_empty() { "none".to_owned() } else { causes.join(", ") };
        let states = self.client.predictor().stats().accepted;
        Ok(Report { states, replayed, causes, largest, visible_step })
    }

    /// The server simulates what is due by `time`.
    fn serve(&mut self, time: halftrack::ServerTime, lost: bool) {
        let cadence = Cadence::default();
        while cadence.end_of(self.server.tick.next()) <= time {
            let tick = self.server.tick.next();
            let recorded =
                self.client.predictor().pending().find(|pending| pending.tick == tick).filter(|_| !lost);
            let input = recorded.map(|pending| pending.input).unwrap_or_else(|| {
                let age = self.known.map_or(Duration::MAX, |(known, _)| cadence.span_of(tick.since(known)));
                TickInput::steady(self.rules.substitute(self.known.map(|(_, input)| input), age))
            });
            self.server.own.causes = if recorded.is_some() {
                self.known = Some((tick, input.last()));
                Causes::NONE
            } else {
                Causes::NONE.with(Cause::LostInput)
            };
            let mut replay = Replay::new(&*self.rules, cadence, tick, &[], self.server.own.body);
            replay.tick(&input);
            (self.server.own.body, self.server.tick) = (*replay.body(), tick);
            self.on_the_way.push_back((self.now + Self::ONE_WAY, self.server.clone()));
        }
    }
}
