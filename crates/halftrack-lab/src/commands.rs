//! The commands that take long: `soak`, `endure` and `model`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use halftrack_lab::model::{Bounds, Planted, SessionModel, explore};
use halftrack_lab::{
    Finding, Plan, SHIPPED, SoakConfig, SoakSummary, endure, keep_panics, resident_bytes, soak,
};

use crate::{Failed, plan_text};

#[derive(clap::Args)]
pub(crate) struct SoakArguments {
    /// How long: 90s, 10m, 1h, 2d.
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = read_span)]
    span: Duration,
    /// Files, or names of shipped plans, that others are made of. Default: all that are shipped.
    #[arg(long, value_name = "PLAN", num_args = 1..)]
    plans: Vec<String>,
    /// Where the dice start: the same seed gives the same plans. Default: another one every time.
    #[arg(long)]
    seed: Option<u64>,
    /// Runs at a time. Default: as many as there are cores.
    #[arg(long)]
    jobs: Option<usize>,
    /// So long one finding is shrunk at most.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = read_span)]
    shrink: Duration,
    /// Writes the shortest plan of each finding into this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct EndureArguments {
    /// Simulated days.
    #[arg(long, default_value_t = 30)]
    days: u32,
    /// A file, or the name of a shipped plan, whose clients play. Its span and events are not looked at.
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// The seed, instead of the plan's.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(clap::Args)]
pub(crate) struct ModelArguments {
    /// Actions, one after the other, at most.
    #[arg(long, default_value_t = 14)]
    depth: usize,
    /// States at most: each takes a few kilobytes while it waits.
    #[arg(long, default_value_t = 2_000_000)]
    states: usize,
    /// Clients.
    #[arg(long, default_value_t = 1)]
    clients: usize,
    /// Connections, of all clients together.
    #[arg(long, default_value_t = 3)]
    links: usize,
    /// Events for each client.
    #[arg(long, default_value_t = 2)]
    events: u8,
    /// Orders of each client.
    #[arg(long, default_value_t = 1)]
    orders: u8,
    /// Seconds that go by.
    #[arg(long, default_value_t = 3)]
    seconds: u8,
    /// How often somebody leaves, is removed, or wants in again.
    #[arg(long, default_value_t = 0)]
    wishes: u8,
    /// How often the server is killed, and goes on from what it wrote.
    #[arg(long, default_value_t = 0)]
    kills: u8,
    /// Logins of a thief, by the name of the first client or with the token it was given for that.
    #[arg(long, default_value_t = 0)]
    thefts: u8,
}

/// A small room that costs little: two clients that draw no more often than the server ticks.
const SMALL_ROOM: &str = "name = \"days\"\nplayers = 2\nframe_hz = 20\nwake = \"boundary\"\n\
                          [link]\ndelay_ms = 20\njitter_ms = 3\nloss = 0.002";

/// Progress is told this often.
const TOLD: Duration = Duration::from_secs(30);

pub(crate) fn run_soak(arguments: &SoakArguments) -> Result<ExitCode, Failed> {
    let plans: Result<Vec<_>, Failed> = if arguments.plans.is_empty() {
        SHIPPED.iter().map(|(name, text)| read(name, text)).collect()
    } else {
        arguments.plans.iter().map(|name| read(name, &plan_text(name)?)).collect()
    };
    // A time of day as a seed: nobody has run these plans before.
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_millis() as u64);
    let config = SoakConfig {
        plans: plans?,
        seed: arguments.seed.unwrap_or_else(fresh),
        jobs: arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        span: arguments.span,
        shrink_span: arguments.shrink,
    };
    if let Some(out) = &arguments.out {
        fs::create_dir_all(out).map_err(|problem| format!("{}: {problem}", out.display()))?;
    }
    println!("seed {}, {} at a time, for {:?}", config.seed, config.jobs, config.span);
    let stop = stop_on_interrupt();
    keep_panics();
    let told = Mutex::new(Instant::now());
    let summary = soak(&config, stop, |summary: &SoakSummary, finding: Option<&Finding>| {
        if let Some(finding) = finding {
            tell(finding, arguments.out.as_deref());
        }
        let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.elapsed() >= TOLD {
            *told = Instant::now();
            println!("{summary}");
        }
    });
    println!("{summary}; seed {}", config.seed);
    Ok(if summary.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(name: &str, text: &str) -> Result<Plan, Failed> {
    Ok(Plan::read(text).map_err(|problem| format!("{name}: {problem}"))?)
}

fn tell(finding: &Finding, out: Option<&Path>) {
    let text =
        format!("# {}\n{}", finding.fault.to_string().replace('\n', "\n# "), finding.shortest.to_text());
    println!("\nfound in run {}; the shortest plan that shows it:\n\n{text}", finding.run);
    let Some(out) = out else { return };
    let files = [(format!("finding-{}.toml", finding.run), text), {
        (format!("finding-{}-whole.toml", finding.run), finding.found_by.to_text())
    }];
    for (name, text) in files {
        let path = out.join(name);
        match fs::write(&path, text) {
            Ok(()) => println!("written to {}", path.display()),
            Err(problem) => eprintln!("halftrack-lab: {}: {problem}", path.display()),
        }
    }
}

pub(crate) fn run_endure(arguments: &EndureArguments) -> Result<ExitCode, Failed> {
    let mut plan = match &arguments.plan {
        Some(name) => read(name, &plan_text(name)?)?,
        None => read("days", SMALL_ROOM)?,
    };
    plan.happenings.clear();
    plan.seed = arguments.seed.unwrap_or(plan.seed);
    let mib = |bytes: Option<u64>| {
        bytes.map_or("?".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1_048_576.0))
    };
    println!("{} players, seed {}; {} MiB", plan.seats.len(), plan.seed, mib(resident_bytes()));
    let endured = endure(&plan, arguments.days, |day| {
        println!(
            "day {:>3}: tick {:>9}, {} checks, {} violated, {} MiB, {:.0} s",
            day.number,
            day.tick,
            day.checked,
            day.violated,
            mib(day.resident_bytes),
            day.elapsed.as_secs_f64()
        );
    })?;
    let invariants = &endured.measured.invariants;
    let broken: Vec<_> =
        invariants.list.iter().filter(|found| found.rule != halftrack_lab::Rule::Recovered).collect();
    println!(
        "{} ticks, {} logins, {} slips of time; events {:?}; {} MiB",
        endured.ticks,
        endured.logins,
        endured.slips,
        endured.measured.events,
        mib(resident_bytes())
    );
    broken.iter().for_each(|found| println!("{found:?}"));
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn run_model(arguments: &ModelArguments) -> ExitCode {
    let bounds = Bounds {
        clients: arguments.clients,
        links: arguments.links,
        events: arguments.events,
        orders: arguments.orders,
        seconds: arguments.seconds,
        wishes: arguments.wishes,
        kills: arguments.kills,
        thefts: arguments.thefts,
    };
    let explored = explore(&SessionModel::new(bounds, Planted::Nothing), arguments.depth, arguments.states);
    println!("{bounds:?}\n{explored}");
    if explored.broken.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Set by Ctrl-C: what is under way is brought to its end, and told.
fn stop_on_interrupt() -> &'static AtomicBool {
    static STOP: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        // Without it, Ctrl-C is what it always was.
        let Ok(runtime) = runtime else { return };
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            STOP.store(true, Ordering::Relaxed);
        }
    });
    &STOP
}

/// A number and a unit.
fn read_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is no time: write 90s, 10m, 1h or 2d");
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let read = |text| read_span(text).ok().map(|span| span.as_secs());
        assert_eq!(["90s", "10m", "1h", "2d"].map(read), [90, 600, 3_600, 172_800].map(Some));
        assert_eq!(["", "h", "1", "1.5h", "-1s", "1y", "1 h", "5µ"].map(read), [None; 8]);
    }

    #[test]
    fn the_small_room_can_be_read() {
        assert!(read("days", SMALL_ROOM).is_ok());
    }
}
