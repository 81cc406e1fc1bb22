//! `tanks flight`: replays a player's bug report, and says what happened and whether it happened again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use halftrack::client::ClientEvent;
use halftrack::{Cause, Outcome, Reconciler, Tick, Timestamp};
use halftrack_flight::{FlightError, Replayer, Report, ReportError, Step};
use serde::Serialize;
use tanks::{SetupRefused, Tanks};

use crate::out;
use crate::words::Count;

/// Replays what a player's client was told, from a file that the page or a bot saved: every frame is held against what it
/// showed then. Ends with 1 if one of them differs, and with 2 if the report is damaged or has nothing to replay.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The report: a *.flight file.
    file: PathBuf,
    /// Tells everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Why there is nothing to tell.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path} is longer than any report: {MAX_BYTES} bytes")]
    Long { path: PathBuf },
    #[error("{path}: {source}")]
    Report { path: PathBuf, source: ReportError },
    #[error("{path}: {source}")]
    Setup { path: PathBuf, source: SetupRefused },
    #[error("{path}: {source}")]
    Flight { path: PathBuf, source: FlightError },
    #[error("{path}: there is no frame to replay{}", damage.as_ref().map(|damage| format!(": {damage}")).unwrap_or_default())]
    Nothing { path: PathBuf, damage: Option<String> },
}

/// More than any recorder keeps.
const MAX_BYTES: u64 = 320 << 20;
/// Corrections that are shown one by one.
const SHOWN: usize = 40;

/// Codes that the program ends with besides 0, as docs/FLIGHT.md says.
const DIFFERS: u8 = 1;
const DAMAGED: u8 = 2;

pub(crate) fn main(options: &Options) -> ExitCode {
    let told = match read(&options.file).and_then(|bytes| replay(&options.file, &bytes)) {
        Ok(told) => told,
        Err(problem) => {
            out::warn(format_args!("tanks: {problem}"));
            return ExitCode::from(DAMAGED);
        }
    };
    let printed = if options.json {
        out::line(serde_json::to_string_pretty(&told).unwrap_or_default())
    } else {
        out::print(text(&told))
    };
    if let Err(problem) = printed {
        out::warn(format_args!("tanks: standard output cannot be written to: {problem}"));
        return ExitCode::from(DAMAGED);
    }
    if let Some(damage) = &told.damage {
        out::warn(format_args!("tanks: {}: {damage}", options.file.display()));
    }
    ExitCode::from(code(&told))
}

/// A difference is told first: it is between frames that are whole.
fn code(told: &Told) -> u8 {
    match (&told.difference, &told.damage) {
        (Some(_), _) => DIFFERS,
        (None, Some(_)) => DAMAGED,
        (None, None) => 0,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Unread> {
    let mut bytes = vec![];
    let file = std::fs::File::open(path);
    let read = file.and_then(|mut file| {
        file.by_ref().take(64).read_to_end(&mut bytes)?;
        // Anything else is not read to its end, which it may not have.
        if matches!(Report::read(&bytes), Err(ReportError::NotAReport)) {
            return Ok(0);
        }
        file.take(MAX_BYTES + 1 - bytes.len() as u64).read_to_end(&mut bytes)
    });
    match read {
        Err(source) => Err(Unread::File { path: path.to_owned(), source }),
        Ok(_) if bytes.len() as u64 > MAX_BYTES => Err(Unread::Long { path: path.to_owned() }),
        Ok(_) => Ok(bytes),
    }
}

/// What a report has to tell. Times are seconds from its beginning.
#[derive(Debug, Serialize)]
struct Told {
    bytes: usize,
    note: String,
    /// Where the file ends before its end.
    damage: Option<String>,
    player: Option<String>,
    seconds: f64,
    keys: usize,
    key_bytes: usize,
    frames: u64,
    exact_frames: u64,
    /// The first frame or state that is not as it was.
    difference: Option<Differs>,
    datagrams: u64,
    datagram_bytes: usize,
    stream_bytes: usize,
    inputs: u64,
    orders: u64,
    sessions: Vec<Session>,
    causes: BTreeMap<&'static str, u64>,
    corrections: Vec<Correction>,
}

#[derive(Debug, Serialize)]
struct Differs {
    at: f64,
    frame: u64,
    what: String,
    /// What the replay shows there: metres and turns.
    visible: Option<[f64; 3]>,
    predicted: Option<[f64; 3]>,
}

#[derive(Debug, Serialize)]
struct Session {
    at: f64,
    state: String,
}

#[derive(Clone, Debug, Serialize)]
struct Correction {
    at: f64,
    tick: u32,
    cause: &'static str,
    metres: f64,
    degrees: f64,
    outcome: String,
    resync: Option<String>,
    replayed_ticks: u32,
}

fn replay(path: &Path, bytes: &[u8]) -> Result<Told, Unread> {
    let report = Report::read(bytes).map_err(|source| Unread::Report { path: path.to_owned(), source })?;
    let rules = Tanks::from_setup(report.setup());
    let rules = rules.map_err(|source| Unread::Setup { path: path.to_owned(), source })?;
    let replayer = Replayer::new(&report, Arc::new(rules));
    let mut replayer = replayer.map_err(|source| Unread::Flight { path: path.to_owned(), source })?;
    let mut told = Told {
        bytes: bytes.len(),
        note: report.note().to_owned(),
        damage: report.damage().map(|damage| damage.to_string()),
        player: None,
        seconds: 0.0,
        keys: report.keys(),
        key_bytes: report.key_bytes(),
        frames: 0,
        exact_frames: 0,
        difference: None,
        datagrams: 0,
        datagram_bytes: 0,
        stream_bytes: 0,
        inputs: 0,
        orders: 0,
        sessions: vec![],
        causes: BTreeMap::new(),
        corrections: vec![],
    };
    let mut corrections = BTreeMap::new();
    told.sessions.push(Session { at: 0.0, state: replayer.client().state().to_string() });
    while let Some(step) = replayer.step() {
        let at = since(&replayer, replayer.at());
        told.seconds = told.seconds.max(at);
        let arrived = matches!(step, Step::Datagram(_) | Step::Stream(_));
        match step {
            Step::Input => told.inputs += 1,
            Step::Order(_) => told.orders += 1,
            Step::Stream(count) => told.stream_bytes += count,
            Step::Datagram(count) => {
                told.datagrams += 1;
                told.datagram_bytes += count;
            }
            Step::Disconnected(reason) => {
                let why = reason.map_or_else(|| "by the network".to_owned(), |reason| reason.to_string());
                told.sessions.push(Session { at, state: format!("the connection is gone: {why}") });
            }
            Step::Event(Some(ClientEvent::Session(state))) => {
                told.sessions.push(Session { at, state: state.to_string() });
            }
            Step::Event(Some(ClientEvent::Restarted(_))) => {
                told.sessions.push(Session { at, state: "begun anew".to_owned() });
            }
            // What cannot be read at the end of a report that is cut has been told.
            Step::Broken(problem) if told.damage.is_none() => {
                told.damage =
                    Some(format!("at {at:.3} s a call cannot be read: {problem}; what is before is used"));
            }
            _ => {}
        }
        if told.difference.is_none() {
            told.difference = differs(&replayer);
        }
        if arrived {
            note_corrections(&replayer, &mut corrections);
        }
    }
    told.frames = replayer.frames();
    if told.frames == 0 {
        return Err(Unread::Nothing { path: path.to_owned(), damage: told.damage });
    }
    told.exact_frames = replayer.exact_frames();
    let client = replayer.client();
    told.player = client.player().and_then(|player| client.name(player)).map(ToString::to_string);
    told.corrections = corrections.into_values().collect();
    for correction in &told.corrections {
        *told.causes.entry(correction.cause).or_default() += 1;
    }
    Ok(told)
}

fn since(replayer: &Replayer<'_, Tanks>, at: Timestamp) -> f64 {
    at.saturating_since(replayer.began()).as_secs_f64()
}

fn differs(replayer: &Replayer<'_, Tanks>) -> Option<Differs> {
    let difference = replayer.first_difference()?;
    let reconciler = replayer.client().reconciler();
    Some(Differs {
        at: since(replayer, difference.at),
        frame: difference.frame,
        what: difference.to_string(),
        visible: reconciler.and_then(Reconciler::visible).map(|pose| [pose.x, pose.y, pose.heading]),
        predicted: replayer
            .client()
            .predicted()
            .map(|tank| [tank.pose().x, tank.pose().y, tank.pose().heading]),
    })
}

/// What is known of corrections by now: the last word on some comes later.
fn note_corrections(replayer: &Replayer<'_, Tanks>, found: &mut BTreeMap<(Timestamp, Tick), Correction>) {
    let Some(reconciler) = replayer.client().reconciler() else { return };
    let recent = reconciler.recent().rev().take_while(|diagnosis| diagnosis.at >= replayer.began());
    for diagnosis in recent {
        let Some(cause) = diagnosis.cause else { continue };
        let known = found.entry((diagnosis.at, diagnosis.server_tick)).or_insert_with(|| Correction {
            at: since(replayer, diagnosis.at),
            tick: diagnosis.server_tick.number(),
            cause: cause.name(),
            metres: diagnosis.correction_distance,
            degrees: diagnosis.correction_angle.to_degrees(),
            outcome: match diagnosis.outcome {
                Outcome::Unchanged => "unchanged".to_owned(),
                Outcome::Negligible => "negligible".to_owned(),
                Outcome::Eased => "eased".to_owned(),
                Outcome::Snapped(why) => format!("snapped: {why:?}").to_lowercase(),
            },
            resync: diagnosis.resync.map(|resync| format!("{resync:?}").to_lowercase()),
            replayed_ticks: diagnosis.replayed_ticks,
        });
        known.cause = cause.name();
    }
}

fn text(told: &Told) -> String {
    let mut text = String::new();
    let line = &mut |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line(
        "report",
        format!("{} kB, {} key states of {} kB", told.bytes / 1_000, told.keys, told.key_bytes / 1_000),
    );
    if !told.note.is_empty() {
        line("note", told.note.clone());
    }
    if let Some(player) = &told.player {
        line("player", player.clone());
    }
    line("duration", format!("{:.3} s, {}", told.seconds, Count(told.frames, "frame")));
    let (datagrams, kilobytes) = (told.datagrams, told.datagram_bytes / 1_000);
    line(
        "told",
        format!("{datagrams} datagrams of {kilobytes} kB, {} kB of stream", told.stream_bytes / 1_000),
    );
    line("said", format!("{} inputs, {} orders", told.inputs, told.orders));
    for session in &told.sessions {
        line("session", format!("{:>9.3} s  {}", session.at, session.state));
    }
    let causes = told.causes.iter().map(|(cause, count)| format!("{count} {cause}"));
    let causes = causes.collect::<Vec<_>>().join(", ");
    line(
        "corrections",
        format!("{}{}{causes}", told.corrections.len(), if causes.is_empty() { "" } else { ": " }),
    );
    for correction in worst(&told.corrections) {
        let Correction { at, tick, cause, metres, degrees, outcome, .. } = correction;
        let resync = correction.resync.as_ref().map_or_else(String::new, |why| format!(", restarted: {why}"));
        let what = format!(
            "{at:>9.3} s  tick {tick}  {cause:<12} {metres:.3} m {degrees:.1} deg  {outcome}{resync}"
        );
        line("", what);
    }
    if told.corrections.len() > SHOWN {
        line("", format!("and {} smaller ones: see --json", told.corrections.len() - SHOWN));
    }
    if let Some(damage) = &told.damage {
        line("damage", damage.clone());
    }
    let whole = if told.damage.is_some() { "; the rest of the report is damaged" } else { "" };
    let verdict = match &told.difference {
        None => format!("replayed {} exactly{whole}", Count(told.exact_frames, "frame")),
        Some(Differs { at, what, visible, predicted, .. }) => format!(
            "replayed {} of {} frames exactly; the first difference is at {at:.3} s: {what} now visible {visible:?}, \
             predicted {predicted:?}",
            told.exact_frames, told.frames
        ),
    };
    let _ = writeln!(text, "{verdict}");
    text
}

/// The largest, in the order in which they came. What was not in contact is what people write reports for.
fn worst(all: &[Correction]) -> Vec<&Correction> {
    let mut shown: Vec<_> = all.iter().collect();
    let plain = |correction: &Correction| correction.cause == Cause::Collision.name();
    shown.sort_by(|one, other| plain(one).cmp(&plain(other)).then(other.metres.total_cmp(&one.metres)));
    shown.truncate(SHOWN);
    shown.sort_by(|one, other| one.at.total_cmp(&other.at));
    shown
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use halftrack::client::{Client, ClientConfig};
    use halftrack::server::{Server, ServerConfig};
    use halftrack::session::ConnectionId;
    use halftrack::{Cadence, PlayerName, SyncLink, Token};
    use halftrack_flight::{FlightClient, FlightConfig};
    use tanks::{TankInput, TankWorld, TankWorldConfig};

    use super::*;

    /// A report that somebody has saved.
    pub(crate) fn replays_exactly(path: &Path) {
        let told = replay(path, &read(path).unwrap()).unwrap();
        assert!(told.frames > 0 && told.exact_frames == told.frames && told.difference.is_none(), "{told:?}");
    }

    /// Two who drive into each other for four seconds; what the first one's recorder has.
    fn recorded() -> Vec<u8> {
        let world = TankWorldConfig::default();
        let (arena, mut now) = (Arc::clone(&world.arena), Timestamp::from_micros(9_000_000));
        let mut server = Server::new(ServerConfig::default(), TankWorld::new(world).unwrap(), now).unwrap();
        let mut clients: Vec<_> = ["Ada", "Bob"]
            .into_iter()
            .map(|name| {
                let (name, rules) =
                    (PlayerName::new(name).unwrap(), Arc::new(Tanks::new(Arc::clone(&arena))));
                let config = ClientConfig::new(name, Cadence::default(), rules);
                let mut client = FlightClient::new(Client::<Tanks>::new(config).unwrap());
                client.record(FlightConfig::default(), client.rules().setup()).unwrap();
                client.connect(now);
                client
            })
            .collect();
        for step in 0..1_000u64 {
            now = now + Duration::from_millis(4);
            server.handle_timeout(now);
            for (number, client) in (1u64..).zip(&mut clients) {
                let connection = ConnectionId::new(number);
                client.set_input(
                    now,
                    TankInput::from_unit(0.3, if step % 200 < 150 { 1.0 } else { -1.0 }).unwrap(),
                );
                client.frame(now);
                while let Some(event) = client.poll_event() {
                    if event == ClientEvent::Connect {
                        let token = Token::new(u128::from(number).to_le_bytes());
                        server.handle_connected(now, connection, SyncLink::Present, token);
                        client.handle_connected(now, SyncLink::Present);
                    }
                }
                let mut stream = vec![];
                client.poll_stream(&mut stream);
                server.handle_stream(now, connection, &stream);
                // Some of the input is lost.
                if let Some(datagram) = client.poll_datagram().filter(|_| step % 7 > 0) {
                    server.handle_datagram(now, connection, datagram);
                }
                stream.clear();
                server.poll_stream(connection, &mut stream);
                client.handle_stream(now, &stream);
                if let Some(datagram) = server.poll_datagram(connection) {
                    client.handle_datagram(now, datagram);
                }
            }
        }
        clients[0].flight_report("it jumped").unwrap()
    }

    #[test]
    fn a_report_is_replayed_and_told() {
        let (path, bytes) = (Path::new("ada.flight"), recorded());
        let told = replay(path, &bytes).unwrap();
        assert_eq!((told.frames, told.exact_frames, told.difference.is_none()), (1_000, 1_000, true));
        assert_eq!(
            (told.player.as_deref(), told.note.as_str(), &told.damage),
            (Some("Ada"), "it jumped", &None)
        );
        assert!(told.datagrams > 50 && told.seconds > 3.9, "{told:?}");
        let states: Vec<_> = told.sessions.iter().map(|session| session.state.as_str()).collect();
        assert_eq!(states, ["not connected", "connecting", "logging in", "logged in"]);
        assert!(text(&told).ends_with("replayed 1000 frames exactly\n"), "{}", text(&told));
        let all: u64 = told.causes.values().sum();
        assert_eq!(all, told.corrections.len() as u64);

        let cut = replay(path, &bytes[..bytes.len() * 2 / 3]).unwrap();
        assert!(cut.damage.is_some() && cut.frames > 100 && cut.frames == cut.exact_frames, "{cut:?}");
        let words = |bytes: &[u8]| replay(path, bytes).unwrap_err().to_string();
        assert_eq!(words(b"<html>"), "ada.flight: this is no flight report");
        assert!(words(&bytes[..20]).starts_with("ada.flight: "));
    }

    #[test]
    fn flight_08_a_damaged_report_is_told_as_such_wherever_it_is_cut_or_changed() {
        let (path, bytes) = (Path::new("ada.flight"), recorded());
        assert_eq!(code(&replay(path, &bytes).unwrap()), 0);
        let damaged = |bytes: &[u8], what: &str| match replay(path, bytes) {
            Ok(told) => {
                assert!(told.frames > 0 && told.exact_frames == told.frames, "{what}: {told:?}");
                assert_eq!(code(&told), DAMAGED, "{what}: {told:?}");
                assert!(
                    text(&told).ends_with("the rest of the report is damaged\n"),
                    "{what}: {}",
                    text(&told)
                );
            }
            Err(problem) => assert!(problem.to_string().starts_with("ada.flight: "), "{what}: {problem}"),
        };
        // Every byte of the first sections and of the last one, and some of all between.
        let near = |at: usize| at < 600 || at + 40 > bytes.len() || at.is_multiple_of(997);
        for at in (0..bytes.len()).filter(|at| near(*at)) {
            damaged(&bytes[..at], &format!("cut after {at} bytes"));
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            damaged(&changed, &format!("a bit of byte {at} changed"));
        }
        // The first key state, and no call after it.
        let first = (0..bytes.len()).find_map(|at| match replay(path, &bytes[..at]) {
            Err(problem @ Unread::Nothing { .. }) => Some(problem.to_string()),
            _ => None,
        });
        let first = first.expect("a report with a state and without a frame");
        assert!(first.starts_with("ada.flight: there is no frame to replay: the report is cut"), "{first}");
    }
}
