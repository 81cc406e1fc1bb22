//! Runs attacks one after another while honest players play, and holds what came of each against what is promised.
//!
//! Between attacks it is quiet for a moment: what honest players notice then is the machine's doing, and what an attack is
//! held against.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use crate::attack::{Attack, Expect, Failed, Field, Outcome};
use crate::honest::{COUNT, Honest, Noticed};
use crate::metrics::Metrics;
use crate::report::Row;
use crate::server::{Ground, Server};

/// What the suite is asked for.
pub(crate) struct Plan<'a> {
    pub(crate) attacks: Vec<&'static Attack>,
    pub(crate) span: Duration,
    pub(crate) seed: u64,
    /// Percentage points by which honest players may be worse off than when it is quiet.
    pub(crate) tolerance: f64,
    pub(crate) place: Place<'a>,
}

/// Which server.
pub(crate) enum Place<'a> {
    /// One of our own, of this program.
    Own(&'a Path),
    /// One that runs.
    At(std::net::SocketAddr),
}

/// The server's memory is bounded by this, whatever is done to it. Six players and a default room take 20 MiB; the rest is
/// what a thousand connections may make it keep.
pub(crate) const MAX_MEMORY: u64 = 96 << 20;
/// Lines that a server may log for one attack: a line for a login that was refused, none for a packet.
const MAX_LINES: u64 = 1_000;
/// An attack that is not done by then is stuck.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often an attack is tried when honest players were disturbed: a machine that stalls once does not do so three times
/// in the same place.
const TRIES: usize = 3;

/// Runs the plan, and tells of each attack as it is done. Gives the rows, and what honest players noticed when it was quiet.
pub(crate) fn run(plan: &Plan<'_>, mut tell: impl FnMut(&Row)) -> Result<(Vec<Row>, Noticed), Failed> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (mut rows, mut quiet) = (vec![], Noticed::default());
    for ground in [Ground::Guests, Ground::Tokens] {
        let attacks: Vec<_> = plan.attacks.iter().filter(|attack| attack.ground == ground).collect();
        let server = match &plan.place {
            _ if attacks.is_empty() => continue,
            Place::Own(program) => Server::start(program, ground)?,
            Place::At(_) if ground == Ground::Tokens => continue,
            Place::At(address) => Server::at(*address)?,
        };
        let field = Field::new(server, plan.span, plan.seed)?;
        let honest = Honest::start(&field, ground)?;
        let mut siege = Siege { runtime: &runtime, field, honest, quiet, tolerance: plan.tolerance };
        siege.rest(Duration::from_secs(2));
        // Until here they found their pace; from here on it counts.
        siege.quiet = quiet;
        siege.rest(plan.span.max(Duration::from_secs(3)));
        for attack in attacks {
            let row = siege.endure(attack)?;
            tell(&row);
            rows.push(row);
        }
        siege.outlive(rows.last_mut());
        quiet = siege.quiet;
        drop(siege.honest);
        siege.field.server.stop()?;
    }
    Ok((rows, quiet))
}

/// A server, those who play on it, and what is done to them.
struct Siege<'a> {
    runtime: &'a Runtime,
    field: Field,
    honest: Honest,
    /// What honest players noticed while nothing was done.
    quiet: Noticed,
    tolerance: f64,
}

impl Siege<'_> {
    /// Lets it be quiet for so long.
    fn rest(&mut self, span: Duration) {
        let before = self.honest.noticed();
        std::thread::sleep(span);
        self.quiet = self.quiet.plus(self.honest.noticed().since(before));
    }

    fn endure(&mut self, attack: &'static Attack) -> Result<Row, Failed> {
        let (mut tries, mut in_all) = (1, Noticed::default());
        loop {
            let mut row = self.attack_once(attack)?;
            self.rest(Duration::from_millis(400));
            row.tries = tries;
            // A try that is not the last is not forgotten: its players were there.
            in_all = in_all.plus(row.noticed);
            row.noticed_in_all = in_all;
            self.judge_honest(&mut row);
            if row.disturbed.is_empty() || tries == TRIES {
                return Ok(row);
            }
            tries += 1;
            // Until whoever was cut is not waited for any more, and has left its name.
            self.rest(Duration::from_secs(4));
        }
    }

    fn attack_once(&mut self, attack: &'static Attack) -> Result<Row, Failed> {
        let begun = Instant::now();
        let server = &self.field.server;
        let (before, noticed, logged) = (server.metrics()?, self.honest.noticed(), server.logged());
        let (memory_before, _) = server.memory();
        let attacking = async { tokio::time::timeout(PATIENCE, (attack.run)(&self.field)).await };
        let mut outcome = match self.runtime.block_on(attacking) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(problem)) => failed(problem.to_string()),
            Err(_) => failed(format!("not done in {PATIENCE:?}")),
        };
        let noticed = self.honest.noticed().since(noticed);
        let after = self.settle(&before, &mut outcome)?;
        let (memory_after, memory_most) = server.memory();
        if memory_most > MAX_MEMORY {
            outcome.wrong.push(format!("the server had {} MiB of memory", memory_most >> 20));
        }
        let lines = server.logged() - logged;
        if lines > MAX_LINES {
            outcome.wrong.push(format!("the server logged {lines} lines"));
        }
        if server.panics() > 0 {
            outcome.wrong.push(format!("the server panicked:\n{}", server.last_words()));
        }
        Ok(Row {
            attack,
            answers: after.answers(&before),
            outcome,
            noticed,
            noticed_in_all: noticed,
            tries: 1,
            disturbed: vec![],
            memory: [memory_before, memory_most, memory_after],
            lines,
            took: begun.elapsed(),
        })
    }

    /// Waits until the counters are where they should be, for a while.
    fn settle(&self, before: &Metrics, outcome: &mut Outcome) -> Result<Metrics, Failed> {
        let patience = Instant::now() + Duration::from_secs(5);
        loop {
            let after = self.field.server.metrics()?;
            let missing: Vec<_> = outcome
                .expects
                .iter()
                .filter_map(|expect| match expect {
                    Expect::AtLeast(counter, least) => {
                        let moved = after.moved(before, counter);
                        (moved < *least).then(|| format!("{counter} moved by {moved}, not by {least}"))
                    }
                    Expect::AtMost(counter, most) => {
                        let moved = after.moved(before, counter);
                        (moved > *most).then(|| format!("{counter} moved by {moved}, more than {most}"))
                    }
                })
                .collect();
            if missing.is_empty() || Instant::now() > patience {
                outcome.wrong.extend(missing);
                return Ok(after);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether, after everything, nobody is there but the honest players: what attackers had is given back. What is not is
    /// the last attack's to answer for, because nobody knows whose it is.
    fn outlive(&self, last: Option<&mut Row>) {
        let patience = Instant::now() + Duration::from_secs(15);
        let mut wrong = String::new();
        while Instant::now() < patience {
            let Ok(metrics) = self.field.server.metrics() else { break };
            let left = ["halftrack_connections", "halftrack_players", "halftrack_handshakes"];
            let left = left.map(|gauge| metrics.get(gauge) as usize);
            if left == [COUNT, COUNT, 0] || !self.field.server.is_ours() {
                return;
            }
            let [connections, players, handshakes] = left;
            wrong = format!(
                "after all: {connections} connections, {players} players, {handshakes} handshakes are left"
            );
            std::thread::sleep(Duration::from_millis(200));
        }
        if let Some(last) = last {
            eprintln!("hostile: {wrong}");
            last.outcome.wrong.push(wrong);
        }
    }

    /// Whether honest players were disturbed, held against when it is quiet.
    fn judge_honest(&self, row: &mut Row) {
        let noticed = &row.noticed;
        let mut check = |is_so: bool, otherwise: String| {
            if !is_so {
                row.disturbed.push(otherwise);
            }
        };
        check(self.honest.present() == COUNT, format!("{} of {COUNT} are in", self.honest.present()));
        check(noticed.disconnects == 0, format!("{} were cut", noticed.disconnects));
        check(noticed.unexplained == 0, format!("{} corrections without a cause", noticed.unexplained));
        check(noticed.check_failed == 0, format!("{} snapshots did not add up", noticed.check_failed));
        let (late, usual) = (noticed.late_percent(), self.quiet.late_percent());
        check(late <= usual + self.tolerance, format!("{late:.2} % late input, {usual:.2} % when quiet"));
        let (corrected, usual) = (noticed.correction_percent(), self.quiet.correction_percent());
        check(
            corrected <= usual + self.tolerance,
            format!("{corrected:.2} % of ticks corrected, {usual:.2} % when quiet"),
        );
    }
}

fn failed(problem: String) -> Outcome {
    Outcome { wrong: vec![problem], ..Outcome::default() }
}
