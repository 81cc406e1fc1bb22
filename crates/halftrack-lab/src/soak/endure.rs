//! One small room for days: sessions that live on and on, whoever comes and goes, and whatever goes wrong now and then.
//!
//! Numbers are not kept, only checked: what is watched must not grow either.

use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::lab::{Happening, LabError};
use crate::plan::Plan;
use crate::result::Measured;
use crate::runs::endless_lab;

/// A simulated day of it.
#[derive(Clone, Copy, Debug)]
pub struct Day {
    /// Counted from one.
    pub number: u32,
    /// The room's newest tick.
    pub tick: u32,
    /// Checks made so far, and those that failed.
    pub checked: u64,
    /// Those that failed.
    pub violated: u64,
    /// Memory of the process, if the system says.
    pub resident_bytes: Option<u64>,
    /// Real time since the start.
    pub elapsed: Duration,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Endured {
    /// What was checked and counted.
    pub measured: Measured,
    /// The stretches of server time that there were, less one.
    pub slips: u64,
    /// Logins.
    pub logins: u64,
    /// Ticks simulated.
    pub ticks: u64,
}

/// A trouble every so often: by this much, and by chance as much again.
const BETWEEN: Duration = Duration::from_secs(15);

/// Lets a plan's room go on for `days` with troubles at random, told day by day. The first client is cut and stalls, but
/// never leaves: its session is as old as the room.
///
/// # Errors
/// When the plan has something in it that no lab can have.
pub fn endure(plan: &Plan, days: u32, mut day: impl FnMut(Day)) -> Result<Endured, LabError> {
    let began = Instant::now();
    let mut lab = endless_lab(plan, plan.seed)?;
    let mut dice = Dice::new(plan.seed, "endure");
    let mut next = Duration::from_secs(10);
    for number in 1..=days {
        let end = Duration::from_secs(86_400) * number;
        while next < end {
            lab.schedule(next, trouble(plan.seats.len(), &mut dice));
            lab.run(next.saturating_sub(lab.elapsed()));
            next += BETWEEN + Duration::from_millis(dice.below(15_000));
        }
        lab.run(end.saturating_sub(lab.elapsed()));
        let so_far = lab.measured().invariants;
        day(Day {
            number,
            tick: lab.server().tick().number(),
            checked: so_far.checked,
            violated: so_far.violated,
            resident_bytes: resident_bytes(),
            elapsed: began.elapsed(),
        });
    }
    lab.drain();
    let stats = lab.server().stats();
    Ok(Endured { measured: lab.measured(), slips: stats.slips, logins: stats.logins, ticks: stats.ticks })
}

fn trouble(players: usize, dice: &mut Dice) -> Happening {
    let client = usize::try_from(dice.below(players as u64)).unwrap_or(0);
    let span = Duration::from_millis(100 + dice.below(5_000));
    match dice.below(12) {
        0 => Happening::ServerStall(span),
        1 => Happening::ClientStall(client, span),
        2 => Happening::Partition(client, span),
        3 => Happening::RouteChange(client, Duration::from_millis(dice.below(120)), span),
        4 | 5 => Happening::Reconnect(client),
        _ if client == 0 => Happening::Reconnect(client),
        _ => Happening::Leave(client, span / 10),
    }
}

/// Memory of this process that is not swapped out, where the system tells: Linux does.
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1_024)
}
