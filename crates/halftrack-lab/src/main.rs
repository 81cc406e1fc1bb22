//! `halftrack-lab`: plans run in virtual time, as numbers for what the player sees.

mod commands;
mod shots;

use std::fs;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use halftrack_lab::tank::Bots;
use halftrack_lab::{Plan, SHIPPED, Wake, compare, report, run_plans, table, trace_once};

/// Runs the real server and clients over a seeded network in virtual time, and tells what the player sees.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs plans; exit code 1 when an invariant breaks or an expectation fails.
    Run(RunArguments),
    /// Runs plans made by dice on fresh seeds until the time is over, and shrinks what breaks; exit code 1 when anything
    /// did.
    Soak(commands::SoakArguments),
    /// Runs one small room for simulated days; exit code 1 when anything that must hold did not.
    Endure(commands::EndureArguments),
    /// Tries every order of loss, cut, late arrival and timeout on sessions in small; exit code 1 when anything is lost,
    /// doubled or owned twice.
    Model(commands::ModelArguments),
    /// Fires shots by the million over bad networks, and finds out what became of each press; exit code 1 when a shot was
    /// lost, doubled, taken back for no reason or late on the screen, or its birth was sent where the rules give it.
    Shots(shots::ShotsArguments),
    /// Lists the plans that come with the lab; `run` takes their names.
    List,
    /// Shows what differs between two results.
    Compare {
        /// A file that `run --json` has written.
        before: PathBuf,
        /// Another one.
        after: PathBuf,
    },
}

#[derive(clap::Args)]
struct RunArguments {
    /// Files, or names of shipped plans.
    #[arg(required = true, value_name = "PLAN.toml")]
    plans: Vec<String>,
    /// The first seed, instead of the plan's.
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds, instead of the plan's.
    #[arg(long)]
    runs: Option<u64>,
    /// How long, instead of the plan's seconds.
    #[arg(long)]
    seconds: Option<f64>,
    /// How the bots play, instead of the plan's.
    #[arg(long)]
    bots: Option<BotsName>,
    /// When clients act, instead of the plan's.
    #[arg(long)]
    wake: Option<WakeName>,
    /// Runs at a time. Default: as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// Writes every run, the worst and the median into this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes a report with pictures into this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum BotsName {
    Brawl,
    Tour,
    Rockets,
    Push,
    Ride,
}

#[derive(Clone, Copy, ValueEnum)]
enum WakeName {
    Frame,
    Boundary,
}

/// Nothing here is handled: it is told, and that is the end.
type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Soak(arguments) => commands::run_soak(&arguments),
        Command::Endure(arguments) => commands::run_endure(&arguments),
        Command::Model(arguments) => Ok(commands::run_model(&arguments)),
        Command::Shots(arguments) => shots::run_shots(&arguments),
        Command::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        Command::Compare { before, after } => show_difference(&before, &after),
    };
    outcome.unwrap_or_else(|problem| {
        eprintln!("halftrack-lab: {problem}");
        ExitCode::from(2)
    })
}

fn list() {
    for (name, text) in SHIPPED {
        let about: Vec<_> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        println!("{name:16}{}", about.join(" "));
    }
}

fn show_difference(before: &PathBuf, after: &PathBuf) -> Result<ExitCode, Failed> {
    let read = |path: &PathBuf| -> Result<serde_json::Value, Failed> {
        let text = fs::read_to_string(path).map_err(|problem| format!("{}: {problem}", path.display()))?;
        Ok(serde_json::from_str(&text)?)
    };
    print!("{}", compare(&read(before)?, &read(after)?)?);
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &RunArguments) -> Result<ExitCode, Failed> {
    let plans =
        arguments.plans.iter().map(|name| read_plan(name, arguments)).collect::<Result<Vec<_>, _>>()?;
    let threads =
        arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let progress = Progress::new(&plans);
    let results = run_plans(&plans, threads, |plan| progress.step(&plan.name))?;
    progress.clear();
    print!("{}", table(&results));
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "plans": results }))?;
        fs::write(path, text + "\n").map_err(|problem| format!("{}: {problem}", path.display()))?;
    }
    if let Some(path) = &arguments.html {
        let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
        let traces =
            plans.iter().map(|plan| trace_once(plan, plan.seed, 0)).collect::<Result<Vec<_>, _>>()?;
        let text = report(&command, &results, &traces);
        fs::write(path, text).map_err(|problem| format!("{}: {problem}", path.display()))?;
    }
    let bad: Vec<_> =
        results.iter().filter(|result| !result.is_good()).map(|result| result.plan.as_str()).collect();
    if bad.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("halftrack-lab: not as it should be: {}", bad.join(", "));
    Ok(ExitCode::FAILURE)
}

/// What is in the file of that name, or in the shipped plan.
fn plan_text(name: &str) -> Result<String, Failed> {
    let shipped = SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    match fs::read_to_string(name) {
        Ok(text) => Ok(text),
        Err(problem) => Ok(shipped.ok_or_else(|| format!("{name}: {problem}"))?),
    }
}

fn read_plan(name: &str, arguments: &RunArguments) -> Result<Plan, Failed> {
    let mut plan = Plan::read(&plan_text(name)?).map_err(|problem| format!("{name}: {problem}"))?;
    plan.seed = arguments.seed.unwrap_or(plan.seed);
    plan.runs = arguments.runs.unwrap_or(plan.runs).max(1);
    if let Some(seconds) = arguments.seconds {
        plan.span = Duration::try_from_secs_f64(seconds.max(1.0))?;
    }
    plan.bots = match arguments.bots {
        Some(BotsName::Brawl) => Bots::Brawl,
        Some(BotsName::Tour) => Bots::Tour,
        Some(BotsName::Rockets) => Bots::Rockets,
        Some(BotsName::Push) => Bots::Push,
        Some(BotsName::Ride) => Bots::Ride,
        None => plan.bots,
    };
    if plan.bots == Bots::Tour {
        plan.machines = 0;
    }
    if let Some(wake) = arguments.wake {
        for seat in &mut plan.seats {
            seat.wake = match wake {
                WakeName::Frame => Wake::Frame,
                WakeName::Boundary => Wake::Boundary,
            };
        }
    }
    Ok(plan)
}

/// A bar on the terminal, if there is one.
struct Progress {
    all: usize,
    done: AtomicUsize,
}

impl Progress {
    const WIDTH: usize = 40;

    fn new(plans: &[Plan]) -> Self {
        let all = plans.iter().map(|plan| usize::try_from(plan.runs).unwrap_or(usize::MAX) + 1).sum();
        Self { all, done: AtomicUsize::new(0) }
    }

    fn step(&self, plan: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let mut terminal = std::io::stderr();
        if terminal.is_terminal() {
            let full = done * Self::WIDTH / self.all.max(1);
            let bar = "#".repeat(full) + &".".repeat(Self::WIDTH - full.min(Self::WIDTH));
            let _ = write!(terminal, "\r[{bar}] {done}/{} runs, {plan:20}", self.all);
        }
    }

    fn clear(&self) {
        let mut terminal = std::io::stderr();
        if terminal.is_terminal() {
            let _ = write!(terminal, "\r{:90}\r", "");
        }
    }
}
