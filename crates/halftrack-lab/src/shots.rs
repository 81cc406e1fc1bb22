//! The command `shots`.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use halftrack_lab::volley::{NETWORKS, Network, ShotsConfig, ShotsFired, fire};

use crate::Failed;

#[derive(clap::Args)]
pub(crate) struct ShotsArguments {
    /// Shots to fire, on all networks together. The game fires a few more.
    #[arg(long, default_value_t = 1_000_000)]
    shots: u64,
    /// Where the dice start: the same seed fires the same shots.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Names of shipped plans, whose links are played.
    #[arg(long, value_name = "PLAN", value_delimiter = ',', default_values_t = NETWORKS.map(str::to_owned))]
    networks: Vec<String>,
    /// Rooms at a time. Default: as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// Prints the result as JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run_shots(arguments: &ShotsArguments) -> Result<ExitCode, Failed> {
    let networks = arguments.networks.iter().map(|name| {
        Network::shipped(name)
            .ok_or_else(|| format!("{name} is no shipped plan: `halftrack-lab list` lists them"))
    });
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let config = ShotsConfig {
        networks: networks.collect::<Result<_, _>>()?,
        shots: arguments.shots.max(1),
        seed: arguments.seed,
        threads: arguments.threads.unwrap_or_else(cores),
    };
    let begun = Instant::now();
    let told = Mutex::new(begun);
    let every = Duration::from_secs(if std::io::stderr().is_terminal() { 1 } else { 10 });
    let fired = fire(&config, |shots| {
        let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.elapsed() >= every {
            *told = Instant::now();
            let seconds = begun.elapsed().as_secs();
            let _ = writeln!(std::io::stderr(), "{shots} of {} shots fired, {seconds} s", config.shots);
        }
    })?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&serde_json::json!({ "networks": fired }))?);
    } else {
        print!("{}", table(&fired));
    }
    eprintln!("{:.0} s", begun.elapsed().as_secs_f64());
    let bad: Vec<_> =
        fired.iter().filter(|fired| !fired.is_good()).map(|fired| fired.network.as_str()).collect();
    if bad.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("halftrack-lab: not every press is one shot, in time and for free: {}", bad.join(", "));
    Ok(ExitCode::FAILURE)
}

/// A column for each network.
fn table(fired: &[ShotsFired]) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &dyn Fn(&ShotsFired) -> String| {
        let _ = write!(text, "{name:44}");
        fired.iter().for_each(|fired| {
            let _ = write!(text, "{:>14}", value(fired));
        });
        text.push('\n');
    };
    row("", &|fired| fired.network.clone());
    row("presses", &|fired| fired.presses.to_string());
    row("shots", &|fired| fired.emit.shots.to_string());
    row("  lost", &|fired| fired.emit.lost.to_string());
    row("  doubled", &|fired| fired.emit.doubled.to_string());
    row("  unmatched", &|fired| fired.emit.unmatched.to_string());
    row("ticks of input", &|fired| fired.ticks.to_string());
    row("  not simulated as sent", &|fired| fired.held_ticks.to_string());
    row("births predicted", &|fired| fired.emit.born_predicted.to_string());
    row("  confirmed", &|fired| fired.emit.confirmed.to_string());
    row("  revoked", &|fired| fired.emit.revoked.to_string());
    row("    by late input", &|fired| fired.emit.revoked_by.late_input.to_string());
    row("    by lost input", &|fired| fired.emit.revoked_by.lost_input.to_string());
    row("    by a restart of prediction", &|fired| fired.emit.revoked_by.resync.to_string());
    row("    by collision", &|fired| fired.emit.revoked_by.collision.to_string());
    row("    without a reason", &|fired| fired.emit.revoked_by.unexplained.to_string());
    row("births sent in joint sections", &|fired| fired.births_in_joint_sections.to_string());
    row("frames from press to screen, p50", &|fired| fired.emit.frames_to_screen.p50.to_string());
    row("  p99", &|fired| fired.emit.frames_to_screen.p99.to_string());
    row("  max", &|fired| fired.emit.frames_to_screen.max.to_string());
    row("in view of others", &|fired| fired.emit.views.to_string());
    row("  not drawn in some frame", &|fired| fired.emit.unseen.to_string());
    row("corrections without a reason", &|fired| fired.unexplained.to_string());
    row("invariants violated", &|fired| fired.violated.to_string());
    for (fired, (seed, found)) in
        fired.iter().flat_map(|fired| fired.list.iter().map(move |found| (fired, found)))
    {
        let client = found.client.map_or("the server".to_owned(), |client| format!("client {client}"));
        let _ = writeln!(
            text,
            "VIOLATED {:?} at {:.3} s of seed {seed} on {}, {client}: {}",
            found.rule, found.at_s, fired.network, found.what
        );
    }
    text
}
