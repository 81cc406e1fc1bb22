//! The program `hostile`: attacks a live tank server on this machine while honest clients play, and tells what came of it.
//!
//! | module | what it is |
//! |---|---|
//! | `attack` | what an attack is, and what it comes to |
//! | `attacks` | all of them, a file for each family |
//! | `suite` | runs them one after another, and holds them against what is promised |
//! | `honest` | those who only want to play, and what they notice |
//! | `server` | the program under attack |
//! | `metrics` | what it has counted |
//! | `peer` | raw connections by every link |
//! | `fighter` | attackers that aim with a client of ours |
//! | `bytes`, `dice` | messages as bytes, true and untrue; seeded chance |
//! | `tokens` | signed tokens, good and bad |
//! | `report` | the table, and JSON |

mod attack;
mod attacks;
mod bytes;
mod dice;
mod fighter;
mod honest;
mod metrics;
mod peer;
mod report;
mod server;
mod suite;
mod tokens;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use serde_json::json;

use crate::attack::{Attack, Failed};
use crate::suite::{Place, Plan};

/// Attacks a live tank server on this machine while honest clients play, and tells for each attack what was sent, what was
/// answered, what the honest players noticed, and what memory the server had. Ends with 1 when something is not as
/// `docs/SECURITY.md` promises, and with 2 when it could not run.
///
/// It starts the server itself, on a free port, talks to 127.0.0.1 only, and ends only what it has started.
#[derive(Parser)]
#[command(
    name = "hostile",
    version,
    after_help = "Examples:\n  \
    cargo run --release -p tanks-hostile                              everything, in about three minutes\n  \
    cargo run --release -p tanks-hostile -- --seconds 1               everything, briefly\n  \
    cargo run --release -p tanks-hostile -- --only half-open-quic     one attack\n  \
    cargo run --release -p tanks-hostile -- --list                    what there is"
)]
struct Arguments {
    /// Only this attack, or those whose names begin with this. May be given more than once.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Lists the attacks, and does nothing else.
    #[arg(long)]
    list: bool,
    /// How long an attack goes on that could go on for ever.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Writes everything that was measured to this file as well.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The program to attack. Default: `tanks`, built now from this workspace.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Attacks a server that runs already on this machine, as http://127.0.0.1:PORT, with the attacks that guests can make.
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    target: Option<String>,
    /// Percentage points of late input, and of corrections, that honest players may have more than when it is quiet. The
    /// machine's own stalls are in it: attackers, players and server share its cores.
    #[arg(long, default_value_t = 2.0)]
    tolerance: f64,
    /// What the dice start from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("hostile: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Gives whether everything was as promised.
fn run(arguments: &Arguments) -> Result<bool, Failed> {
    let attacks = chosen(&arguments.only)?;
    if arguments.list {
        for attack in attacks {
            println!("{:24} {}", attack.name, attack.what);
        }
        return Ok(true);
    }
    let program;
    let place = match &arguments.target {
        Some(target) => Place::At(here(target)?),
        None => {
            program = arguments.server.clone().map_or_else(build, Ok)?;
            Place::Own(&program)
        }
    };
    let span = Duration::from_secs(arguments.seconds);
    let plan = Plan { attacks, span, seed: arguments.seed, tolerance: arguments.tolerance, place };
    println!("{}", report::HEAD);
    let (rows, quiet) = suite::run(&plan, |row| {
        println!("{}", row.line());
        for problem in row.problems() {
            eprintln!("hostile: {}: {problem}", row.attack.name);
        }
    })?;
    let failed = rows.iter().filter(|row| !row.is_good()).count();
    let most = rows.iter().map(|row| row.memory[1]).max().unwrap_or(0);
    let noticed = rows.iter().fold(honest::Noticed::default(), |all, row| all.plus(row.noticed_in_all));
    println!(
        "\n{} attacks, {failed} not as promised. Honest players: {} corrections outside contact and {:.3} % late input in {} \
         ticks under attack, {} and {:.3} % in {} when it was quiet. The server's memory: at most {} MiB of {} MiB.",
        rows.len(),
        noticed.corrections,
        noticed.late_percent(),
        noticed.ticks,
        quiet.corrections,
        quiet.late_percent(),
        quiet.ticks,
        most >> 20,
        suite::MAX_MEMORY >> 20,
    );
    if let Some(file) = &arguments.json {
        let rows: Vec<_> = rows.iter().map(report::Row::json).collect();
        let told = json!({
            "seconds": arguments.seconds,
            "seed": arguments.seed,
            "tolerance_percent": arguments.tolerance,
            "memory_bound_bytes": suite::MAX_MEMORY,
            "quiet": report::noticed(&quiet),
            "under_attack": report::noticed(&noticed),
            "attacks": rows,
        });
        std::fs::write(file, serde_json::to_string_pretty(&told)?)?;
    }
    Ok(failed == 0)
}

fn chosen(only: &[String]) -> Result<Vec<&'static Attack>, Failed> {
    if let Some(unknown) =
        only.iter().find(|name| !attacks::all().any(|attack| attack.name.starts_with(*name)))
    {
        return Err(format!("there is no attack {unknown:?}: --list shows them").into());
    }
    let wanted = |attack: &&Attack| only.is_empty() || only.iter().any(|name| attack.name.starts_with(name));
    Ok(attacks::all().filter(wanted).collect())
}

/// The address in that URL, if it is this machine's: nobody else's server is attacked with this.
fn here(target: &str) -> Result<SocketAddr, Failed> {
    let address = target.strip_prefix("http://").unwrap_or(target).trim_end_matches('/');
    let address: SocketAddr = address.parse().map_err(|_| "write --target as http://127.0.0.1:PORT")?;
    if server::is_here(&address) {
        return Ok(address);
    }
    Err("only a server at 127.0.0.1 is attacked, and only one that you started".into())
}

/// Builds the server as this program was built, and gives where it is.
fn build() -> Result<PathBuf, Failed> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name("tanks");
    if let Ok(cargo) = std::env::var("CARGO") {
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--locked", "-p", "tanks-server"]);
        if own.parent().is_some_and(|folder| folder.ends_with("release")) {
            command.arg("--release");
        }
        if !command.status()?.success() {
            return Err("the server cannot be built".into());
        }
    }
    if !Path::new(&program).exists() {
        return Err("there is no server beside this program: `cargo build --release -p tanks-server`".into());
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_once() {
        let names: Vec<_> = attacks::all().map(|attack| attack.name).collect();
        let once: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(once.len(), names.len());
        assert!(chosen(&["nothing".to_owned()]).is_err());
    }

    #[test]
    fn only_this_machine_is_attacked() {
        assert!(here("http://127.0.0.1:7777/").is_ok());
        for other in
            ["http://192.0.2.1:7777", "http://example.org:80", "http://[::1]:1", "http://0.0.0.0:1", ""]
        {
            assert!(here(other).is_err(), "{other}");
        }
    }
}
