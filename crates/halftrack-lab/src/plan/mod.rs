//! Plans: who plays on which network for how long, what goes wrong meanwhile, and what must come out.

mod file;
mod shipped;
mod write;

use std::collections::BTreeMap;
use std::time::Duration;

use halftrack::{Cadence, ConfigError, SyncLink, Tick};
use halftrack_netem::{LinkConfig, NetemError};
use tanks::TankWorldConfig;

pub use file::Bound;
pub use shipped::SHIPPED;

use crate::lab::{Cut, Happening};
use crate::pace::{Frames, Wake};
use crate::runs::number_at;
use crate::tank::{Bots, MAX_PLAYERS};
use file::{EventKeys, EventKind, LinkKeys, PlanFile, WakeName, WayName};

/// A plan that has been read and can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// How long it goes on.
    pub span: Duration,
    /// The length of a tick.
    pub cadence: Cadence,
    /// The tick that the room has just ended when it begins.
    pub first_tick: Tick,
    /// What clients without datagrams take being late to cost.
    pub stream_late_cost: Duration,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, one after the other.
    pub runs: u64,
    /// How the bots play.
    pub bots: Bots,
    /// Tanks that the world drives.
    pub machines: u8,
    /// Crates in the arena.
    pub crates: u8,
    /// Platforms in the arena, as far as it has lanes for them.
    pub platforms: u8,
    /// The clients.
    pub seats: Vec<SeatPlan>,
    /// What goes wrong.
    pub happenings: Vec<(Duration, Happening)>,
    /// What must come out, by path of the result.
    pub expect: BTreeMap<String, Bound>,
}

/// One client of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeatPlan {
    /// Each way.
    pub link: LinkConfig,
    /// Whether there are datagrams.
    pub sync_link: SyncLink,
    /// When it draws.
    pub frames: Frames,
    /// When else it acts.
    pub wake: Wake,
    /// How fast its clock runs.
    pub clock_ppm: i32,
}

/// Why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Not TOML, or a key that there is not.
    #[error("{0}")]
    File(#[from] toml::de::Error),
    /// A link that cannot be.
    #[error("link: {0}")]
    Link(#[from] NetemError),
    /// A cadence that cannot be.
    #[error("cadence_ms: {0}")]
    Cadence(#[from] ConfigError),
    /// A number that is out of its range.
    #[error("line {line}: {key} is {got}; choose one from {min} to {max}")]
    Range {
        /// Where, counted from one.
        line: usize,
        /// Which key.
        key: &'static str,
        /// What it is.
        got: f64,
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// A key that this kind of event must have, or cannot have.
    #[error("line {line}: {key} {problem}")]
    Event {
        /// Where, counted from one.
        line: usize,
        /// Which key.
        key: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Machines among bots that never meet anybody.
    #[error("line {line}: machines is {got}; tourists meet nobody: choose 0, or bots = \"brawl\"")]
    Machines {
        /// Where, counted from one.
        line: usize,
        /// What it is.
        got: u8,
    },
    /// A path that no result has.
    #[error("line {line}: no result has a number at \"{path}\"")]
    Path {
        /// Where, counted from one.
        line: usize,
        /// The path.
        path: String,
    },
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// When it says what cannot be, with the line where it does.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let file: PlanFile = toml::from_str(text)?;
        let check = |key: &'static str, got: f64, min: f64, max: f64| {
            let line = line_of(text, key, 0);
            let holds = (min..=max).contains(&got);
            if holds { Ok(()) } else { Err(PlanError::Range { line, key, got, min, max }) }
        };
        check("seconds", file.seconds, 1.0, 36_000.0)?;
        check("players", file.players as f64, 1.0, MAX_PLAYERS as f64)?;
        check("machines", f64::from(file.machines), 0.0, f64::from(TankWorldConfig::MAX_MACHINES))?;
        let machines = u8::try_from(file.machines).unwrap_or(u8::MAX);
        check("crates", f64::from(file.crates), 0.0, f64::from(TankWorldConfig::MAX_CRATES))?;
        check("platforms", f64::from(file.platforms), 0.0, f64::from(TankWorldConfig::MAX_PLATFORMS))?;
        if machines > 0 && file.bots == Bots::Tour {
            return Err(PlanError::Machines { line: line_of(text, "machines", 0), got: machines });
        }
        check("runs", file.runs as f64, 1.0, 10_000.0)?;
        check("cadence_ms", file.cadence_ms, 5.0, 200.0)?;
        check("first_tick", f64::from(file.first_tick), 0.0, f64::from(Tick::MAX_STATE.number()))?;
        check("stream_late_cost_ms", file.stream_late_cost_ms, 10.0, 60_000.0)?;
        check("frame_hz", f64::from(file.frame_hz), 0.0, 1_000.0)?;
        for (at, client) in file.client.iter().enumerate() {
            let (line, max) = (line_of(text, "index", at), file.players as f64 - 1.0);
            if client.index >= file.players {
                return Err(PlanError::Range { line, key: "index", got: client.index as f64, min: 0.0, max });
            }
        }
        let seats: Result<Vec<_>, _> = (0..file.players).map(|index| seat(text, &file, index)).collect();
        let mut happenings = Vec::new();
        for (at, event) in file.event.iter().enumerate() {
            happen(text, at, event, file.players, &mut happenings)?;
        }
        for path in file.expect.keys() {
            if number_at(&crate::runs::blank(), path).is_none() {
                return Err(PlanError::Path { line: line_of(text, path, 0), path: path.clone() });
            }
        }
        Ok(Self {
            name: file.name,
            span: Duration::from_secs_f64(file.seconds),
            cadence: Cadence::new(Duration::from_micros((file.cadence_ms * 1e3).round() as u64))?,
            first_tick: Tick::new(file.first_tick),
            stream_late_cost: millis(file.stream_late_cost_ms),
            seed: file.seed,
            runs: file.runs,
            bots: file.bots,
            machines,
            crates: u8::try_from(file.crates).unwrap_or(u8::MAX),
            platforms: u8::try_from(file.platforms).unwrap_or(u8::MAX),
            seats: seats?,
            happenings,
            expect: file.expect,
        })
    }
}

fn wake(name: WakeName) -> Wake {
    match name {
        WakeName::Frame => Wake::Frame,
        WakeName::Boundary => Wake::Boundary,
    }
}

fn seat(text: &str, file: &PlanFile, index: usize) -> Result<SeatPlan, PlanError> {
    // The last of several wins, key by key.
    let mut keys = file.link.clone();
    let (mut hz, mut wakes) = (file.frame_hz, file.wake);
    for client in file.client.iter().filter(|client| client.index == index) {
        keys = client.over(&keys);
        (hz, wakes) = (client.frame_hz.unwrap_or(hz), client.wake.unwrap_or(wakes));
    }
    let range = |key: &'static str, got: f64, min: f64, max: f64| {
        let holds = (min..=max).contains(&got);
        let line = line_of(text, key, 0);
        if holds { Ok(got) } else { Err(PlanError::Range { line, key, got, min, max }) }
    };
    let clock_ppm = keys.clock_ppm.unwrap_or(0);
    range("clock_ppm", f64::from(clock_ppm), -10_000.0, 10_000.0)?;
    range("frame_hz", f64::from(hz), 0.0, 1_000.0)?;
    Ok(SeatPlan {
        link: link(&keys, range)?,
        sync_link: if keys.sync_lane.unwrap_or(true) { SyncLink::Present } else { SyncLink::Absent },
        frames: if hz == 0 { Frames::Irregular } else { Frames::Hz(hz) },
        wake: wake(wakes),
        clock_ppm,
    })
}

fn link(
    keys: &LinkKeys,
    range: impl Fn(&'static str, f64, f64, f64) -> Result<f64, PlanError>,
) -> Result<LinkConfig, PlanError> {
    let span = |key, ms: Option<f64>| range(key, ms.unwrap_or(0.0), 0.0, 20_000.0).map(millis);
    let kbps = range("rate_kbps", keys.rate_kbps.unwrap_or(0.0), 0.0, 1e8)?;
    let config = LinkConfig {
        delay: span("delay_ms", keys.delay_ms)?,
        jitter: span("jitter_ms", keys.jitter_ms)?,
        keep_order: keys.keep_order.unwrap_or(false),
        loss: keys.loss.unwrap_or(0.0),
        burst: keys.burst.unwrap_or(1.0),
        reorder: keys.reorder.unwrap_or(0.0),
        duplicate: keys.duplicate.unwrap_or(0.0),
        corrupt: keys.corrupt.unwrap_or(0.0),
        rate_bits_per_second: (kbps > 0.0).then_some((kbps * 1e3).round() as u64),
        ..LinkConfig::default()
    };
    config.check()?;
    Ok(config)
}

fn millis(ms: f64) -> Duration {
    Duration::from_micros((ms * 1e3).round() as u64)
}

fn happen(
    text: &str,
    at: usize,
    event: &EventKeys,
    players: usize,
    happenings: &mut Vec<(Duration, Happening)>,
) -> Result<(), PlanError> {
    let line = line_of(text, "at_s", at);
    let range = |key: &'static str, got: f64, min: f64, max: f64| {
        let holds = (min..=max).contains(&got);
        if holds { Ok(got) } else { Err(PlanError::Range { line, key, got, min, max }) }
    };
    let problem = |key: &'static str, problem: &'static str| Err(PlanError::Event { line, key, problem });
    let start = Duration::from_secs_f64(range("at_s", event.at_s, 0.0, 36_000.0)?);
    let span = match (event.kind, event.for_s) {
        (EventKind::Reconnect, _) => Duration::ZERO,
        (_, Some(for_s)) => Duration::from_secs_f64(range("for_s", for_s, 0.0, 36_000.0)?),
        (_, None) => return problem("for_s", "is missing: how long does it last?"),
    };
    let delay = match (event.kind, event.delay_ms) {
        (EventKind::RouteChange, Some(ms)) => millis(range("delay_ms", ms, 0.0, 20_000.0)?),
        (EventKind::RouteChange, None) => return problem("delay_ms", "is missing: what does it change to?"),
        (_, Some(_)) => return problem("delay_ms", "is for route_change only"),
        (_, None) => Duration::ZERO,
    };
    let cut = match (event.kind, event.way) {
        (EventKind::DatagramsCut, Some(WayName::Up)) => Cut::Up,
        (EventKind::DatagramsCut, Some(WayName::Down)) => Cut::Down,
        (EventKind::DatagramsCut, None) => Cut::Both,
        (_, Some(_)) => return problem("way", "is for datagrams_cut only"),
        (_, None) => Cut::Both,
    };
    if event.kind == EventKind::ServerStall {
        if event.client.is_some() {
            return problem("client", "is not for server_stall: there is one server");
        }
        happenings.push((start, Happening::ServerStall(span)));
        return Ok(());
    }
    if let Some(client) = event.client {
        range("client", client as f64, 0.0, players as f64 - 1.0)?;
    }
    let clients = event.client.map_or(0..players, |client| client..client + 1);
    happenings.extend(clients.map(|client| {
        let happening = match event.kind {
            EventKind::ClientStall => Happening::ClientStall(client, span),
            EventKind::Partition => Happening::Partition(client, span),
            EventKind::DatagramsCut => Happening::DatagramsCut(client, cut, span),
            EventKind::RouteChange => Happening::RouteChange(client, delay, span),
            EventKind::Leave => Happening::Leave(client, span),
            _ => Happening::Reconnect(client),
        };
        (start, happening)
    }));
    Ok(())
}

/// The line of the `at`-th time that a key stands in a plan, both counted from zero; the answer from one.
fn line_of(text: &str, key: &str, at: usize) -> usize {
    let stands = |line: &str| {
        let line = line.trim_start().trim_start_matches('"');
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start_matches('"').trim_start().starts_with('='))
    };
    let mut lines = text.lines().zip(1..).filter(|(line, _)| stands(line));
    lines.nth(at).map_or(1, |(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
name = "example"
seconds = 60
players = 8
cadence_ms = 50
frame_hz = 60
wake = "frame"
seed = 1
runs = 5
bots = "brawl"
[link]
delay_ms = 30.0
jitter_ms = 10.0
keep_order = false
loss = 0.01
burst = 2.0
reorder = 0.0
duplicate = 0.0
corrupt = 0.0
rate_kbps = 0
sync_lane = true
clock_ppm = 0
[[client]]
index = 3
delay_ms = 120.0
[[event]]
at_s = 20.0
kind = "client_stall"
client = 2
for_s = 5.0
[[event]]
at_s = 30
kind = "route_change"
for_s = 5
delay_ms = 130.0
[expect]
"own.mispredict_ratio" = { max = 0.0025 }
"remote.delay_ms.p50" = { min = 10, max = 80 }
"#;

    #[test]
    fn the_example_says_what_it_says() {
        let plan = Plan::read(EXAMPLE).unwrap();
        assert_eq!((plan.name.as_str(), plan.span, plan.runs), ("example", Duration::from_secs(60), 5));
        assert_eq!(plan.seats.len(), 8);
        assert_eq!(plan.seats[3].link.delay, Duration::from_millis(120));
        assert_eq!(plan.seats[3].link.jitter, Duration::from_millis(10));
        assert_eq!(plan.seats[4].link.delay, Duration::from_millis(30));
        let stall = Happening::ClientStall(2, Duration::from_secs(5));
        assert_eq!(plan.happenings[0], (Duration::from_secs(20), stall));
        assert_eq!(plan.happenings.len(), 1 + 8, "an event without a client is for all of them");
        assert_eq!(plan.machines, 0, "as in every plan that says nothing of them");
        assert_eq!(Plan::read(&EXAMPLE.replace("seed = 1", "machines = 6")).unwrap().machines, 6);
        assert_eq!(plan.expect["own.mispredict_ratio"], Bound { min: None, max: Some(0.0025) });
    }

    /// The line after a change of the example.
    fn refused(from: &str, to: &str) -> String {
        assert!(EXAMPLE.contains(from));
        Plan::read(&EXAMPLE.replace(from, to)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let unknown = [
            ("seconds = 60", "secs = 60", "line 3"),
            ("loss = 0.01", "los = 0.01", "line 15"),
            ("delay_ms = 120.0", "delay = 120.0", "line 25"),
            ("client = 2", "seat = 2", "line 29"),
            ("{ max = 0.0025 }", "{ most = 0.0025 }", "line 37"),
            ("wake = \"frame\"", "wake = \"never\"", "line 7"),
            ("kind = \"client_stall\"", "kind = \"nap\"", "line 28"),
        ];
        for (from, to, line) in unknown {
            let said = refused(from, to);
            assert!(said.contains(line), "{to}: {said}");
        }
        let said = refused("players = 8", "players = 0");
        assert_eq!(said, "line 4: players is 0; choose one from 1 to 400");
        let said = refused("\"own.mispredict_ratio\"", "\"own.misprediction\"");
        assert_eq!(said, "line 37: no result has a number at \"own.misprediction\"");
        let said = refused("for_s = 5\ndelay_ms = 130.0", "for_s = 5");
        assert_eq!(said, "line 32: delay_ms is missing: what does it change to?");
        let said = refused("for_s = 5\ndelay_ms = 130.0", "for_s = 5\ndelay_ms = 130.0\nway = \"up\"");
        assert_eq!(said, "line 32: way is for datagrams_cut only");
        let said = refused("seed = 1", "machines = 101");
        assert_eq!(said, "line 8: machines is 101; choose one from 0 to 100");
        let said = refused("seed = 1\nruns = 5\nbots = \"brawl\"", "machines = 1\nbots = \"tour\"");
        assert_eq!(said, "line 8: machines is 1; tourists meet nobody: choose 0, or bots = \"brawl\"");
        assert!(refused("client = 2", "client = 8").contains("line 27: client is 8"));
        assert!(refused("index = 3", "index = 8").contains("line 24: index is 8"));
        assert!(refused("loss = 0.01", "loss = 30").contains("loss is 30"));
    }
}
