//! `tanks replay`: a recorded match happens again, as fast as it can.

mod picture;
mod told;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use halftrack::record::{Entry, RecordingRefused};
use serde::Serialize;
use tanks::TankPlayback;

use crate::out::{self, Reader};
use crate::record::{Length, RecordError, read_match};
use crate::words::Count;
use picture::Picture;
use told::Told;

/// Plays back a recorded match: who did what, and whether it comes out as it was recorded
///
/// Ends with 0; 1 when a tick comes out otherwise than it was recorded; 2 when the file cannot be read or asks
/// for too much work; 3 when its end is cut or damaged, and what is before that was used.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tanks replay recordings/main.001763280000.0000.htrec\n  \
    tanks replay --verify recordings/*.htrec\n  \
    tanks replay --html match.html recordings/main.001763280000.0000.htrec")]
pub(crate) struct Options {
    /// Recordings, as `tanks serve --record DIR` writes them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Says only whether every tick comes out as it was recorded, and how fast that was found
    #[arg(long)]
    verify: bool,
    /// Draws the match into this file, for a browser
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    html: Option<PathBuf>,
    /// Tells it as JSON, a line for each file
    #[arg(long)]
    json: bool,
    /// Plays on where a recording asks for more work than a match of its size, and reads one that is longer than 1 GiB
    #[arg(long)]
    allow_long: bool,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("--html draws one match: name one file")]
    OnePicture,
    #[error("{}: {source}; use --allow-long to play it all the same", path.display())]
    Refused { path: PathBuf, source: RecordingRefused },
    #[error("standard output cannot be written to: {0}")]
    Print(#[source] io::Error),
}

/// What came of one file.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    file: String,
    ticks: u64,
    seconds: f64,
    bytes: usize,
    bytes_per_player_minute: f64,
    times_real_time: f64,
    differs: Option<Differs>,
    damaged: Option<String>,
    recovered: u32,
    ended: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Differs {
    tick: u32,
    player: Option<u16>,
    name: Option<String>,
}

/// Plays files back.
pub(crate) fn main(options: &Options) -> ExitCode {
    let (mut worst, mut gone) = (0, false);
    if options.html.is_some() && options.files.len() > 1 {
        out::warn(format_args!("tanks: {}", ReplayError::OnePicture));
        return ExitCode::from(2);
    }
    for file in &options.files {
        let code = match replay(options, file) {
            Ok((outcome, reader)) => {
                gone = reader == Reader::Gone;
                match (&outcome.differs, &outcome.damaged) {
                    (Some(_), _) => 1,
                    (None, Some(_)) => 3,
                    (None, None) => 0,
                }
            }
            Err(problem) => {
                out::warn(format_args!("tanks: {problem}"));
                2
            }
        };
        // A difference is worse than a file that is not there, and that is worse than one whose end is.
        let rank = |code| [1, 2, 3, 0].iter().position(|other| *other == code);
        if rank(code) < rank(worst) {
            worst = code;
        }
        if gone {
            break;
        }
    }
    ExitCode::from(worst)
}

fn replay(options: &Options, file: &Path) -> Result<(Outcome, Reader), ReplayError> {
    let length = if options.allow_long { Length::Any } else { Length::Bounded };
    let (about, mut playback) = read_match(file, length)?;
    if options.allow_long {
        playback = playback.unbounded();
    }
    let mut progress = Progress::new(file);
    let mut told = Told::new(&about);
    let mut picture = options.html.is_some().then(Picture::default);
    let (mut ticks, mut player_ticks, mut recovered, mut ended) = (0u64, 0u64, 0, false);
    let (mut differs, begin) = (None, Instant::now());
    while let Some(entry) = playback.next() {
        match &entry {
            Entry::Tick => {
                ticks += 1;
                player_ticks += playback.recording().told().len() as u64;
            }
            Entry::Passed { ticks: passed } => ticks += u64::from(*passed),
            Entry::Recovered { .. } => recovered += 1,
            Entry::Ended => ended = true,
            _ => {}
        }
        if differs.is_none()
            && let Some(found) = playback.differs()
        {
            let name = found.player.and_then(|player| playback.name(player));
            differs = Some(Differs {
                tick: found.tick.number(),
                player: found.player.map(halftrack::PlayerId::number),
                name: name.map(ToString::to_string),
            });
        }
        if !options.verify {
            told.hear(&entry, &playback);
        }
        if let Some(picture) = &mut picture {
            picture.see(&entry, &playback);
        }
        progress.show(&playback);
    }
    if let Some(source) = playback.refused() {
        return Err(ReplayError::Refused { path: file.to_owned(), source });
    }
    let took = begin.elapsed().as_secs_f64();
    let tick = playback.stage().cadence().interval().as_secs_f64();
    let (seconds, bytes) = (ticks as f64 * tick, playback.recording().len());
    let outcome = Outcome {
        file: file.display().to_string(),
        ticks,
        seconds,
        bytes,
        bytes_per_player_minute: bytes as f64 / (player_ticks as f64 * tick / 60.0).max(1.0 / 60.0),
        times_real_time: seconds / took.max(1e-9),
        differs,
        damaged: playback.recording().damage().map(|damage| damage.to_string()),
        recovered,
        ended,
    };
    if let (Some(path), Some(picture)) = (&options.html, &picture) {
        let page = picture.page(&about, &told, &outcome);
        fs::write(path, page).map_err(|source| ReplayError::Write { path: path.clone(), source })?;
    }
    let reader = if options.json {
        let line = if options.verify { serde_json::to_string(&outcome) } else { told.json(&outcome) };
        out::line(line.unwrap_or_default())
    } else {
        let told = if options.verify { String::new() } else { told.to_string() };
        out::print(format_args!("{told}{}", verdict(&outcome, options.files.len() > 1)))
    };
    Ok((outcome, reader.map_err(ReplayError::Print)?))
}

/// A line every few seconds for whoever waits at a terminal.
struct Progress<'a> {
    file: &'a Path,
    entries: u32,
    next: Option<Instant>,
}

impl<'a> Progress<'a> {
    const EVERY: Duration = Duration::from_secs(2);
    /// Entries from one look at the clock to the next.
    const ENTRIES: u32 = 1_024;

    fn new(file: &'a Path) -> Self {
        let next = io::stderr().is_terminal().then(|| Instant::now() + Self::EVERY);
        Self { file, entries: 0, next }
    }

    fn show(&mut self, playback: &TankPlayback) {
        self.entries = self.entries.wrapping_add(1);
        let Some(next) = self.next.filter(|_| self.entries.is_multiple_of(Self::ENTRIES)) else { return };
        if Instant::now() < next {
            return;
        }
        self.next = Some(Instant::now() + Self::EVERY);
        let (read, tick) = (playback.recording(), playback.stage().tick().number());
        let percent = 100.0 * read.whole() as f64 / read.len().max(1) as f64;
        out::warn(format_args!("{}: tick {tick}, {percent:.0} % of the file", self.file.display()));
    }
}

/// Lines that say how the recording compares.
fn verdict(outcome: &Outcome, many: bool) -> String {
    let file = if many { format!("{}: ", outcome.file) } else { String::new() };
    let damaged = outcome.damaged.as_ref().map_or_else(String::new, |damaged| format!("{file}{damaged}\n"));
    let compared = match &outcome.differs {
        None => format!(
            "verified {} ({:.0} s of play, {:.0} times as fast; {} bytes, {:.0} per player and minute)",
            Count(outcome.ticks, "tick"),
            outcome.seconds,
            outcome.times_real_time,
            outcome.bytes,
            outcome.bytes_per_player_minute
        ),
        Some(Differs { tick, player: Some(player), name }) => {
            let name = name.as_deref().unwrap_or("who has left");
            format!("differs from tick {tick} on, first in player {player} ({name})")
        }
        Some(Differs { tick, player: None, .. }) => {
            format!("differs by tick {tick}, in a machine or in what the world knows besides tanks")
        }
    };
    format!("{damaged}{file}{compared}\n")
}
