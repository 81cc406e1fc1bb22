//! Plans by the thousand: shipped ones and others made of them by dice, on fresh seeds, for as long as there is time.
//! What must always hold is checked; whatever breaks it is shrunk to the shortest plan that does.
//!
//! What a plan *expects* is not looked at, nor how soon everything is usual again after a trouble: these are numbers of
//! one network, and a worse one may rightly miss them.

mod endure;
mod shrink;
mod vary;

use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use halftrack::Status;
use halftrack::session::SessionState;

pub use endure::{Day, Endured, endure, resident_bytes};
pub use shrink::shrink;

use crate::check::Rule;
use crate::dice::Dice;
use crate::lab::Lab;
use crate::plan::Plan;
use crate::result::Measured;
use crate::runs::{play, rough_lab};
use vary::vary;

/// What a soak is given.
#[derive(Clone, Debug)]
pub struct SoakConfig {
    /// What other plans are made of.
    pub plans: Vec<Plan>,
    /// Where the dice start: the same seed gives the same plans in the same order.
    pub seed: u64,
    /// Runs at a time.
    pub jobs: usize,
    /// No run is begun after so long.
    pub span: Duration,
    /// So long one finding is shrunk at most.
    pub shrink_span: Duration,
}

/// What kind of thing broke. Only what breaks in the same way is the same finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Something that must always hold did not.
    Rule(Rule),
    /// A panic.
    Panic,
    /// A client was not in, or stood still, at the end, long after the last trouble.
    NotIn,
    /// The plan could not be run at all.
    Refused,
}

/// What broke, when and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What kind of thing.
    pub broken: Broken,
    /// When, from the start of the run.
    pub at: Duration,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:.1} s: {}", self.broken, self.at.as_secs_f64(), self.what)
    }
}

/// A fault, and the shortest plan that shows it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The number of the run.
    pub run: u64,
    /// What was found first.
    pub fault: Fault,
    /// The plan by which it was found.
    pub found_by: Plan,
    /// What is left of it.
    pub shortest: Plan,
}

/// How far a soak has come.
#[derive(Clone, Debug, Default)]
pub struct SoakSummary {
    /// Plans run.
    pub runs: u64,
    /// Simulated time of all rooms together.
    pub simulated: Duration,
    /// Simulated time of all clients together.
    pub played: Duration,
    /// Checks made.
    pub checked: u64,
    /// Real time.
    pub elapsed: Duration,
    /// What broke, each kind of thing once.
    pub findings: Vec<Finding>,
    /// Runs that broke in a way that had been found before.
    pub again: u64,
}

impl fmt::Display for SoakSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = |span: Duration| span.as_secs_f64() / 3_600.0;
        write!(
            f,
            "{:>6.0} s: {} runs, {:.1} simulated hours ({:.1} of players), {} checks, {} findings",
            self.elapsed.as_secs_f64(),
            self.runs,
            hours(self.simulated),
            hours(self.played),
            self.checked,
            self.findings.len(),
        )?;
        if self.again > 0 {
            write!(f, ", seen again {} times", self.again)?;
        }
        Ok(())
    }
}

/// Runs plans until the time is over or `stop` is set. `note` is told after every run, and of every finding.
pub fn soak(
    config: &SoakConfig,
    stop: &AtomicBool,
    note: impl Fn(&SoakSummary, Option<&Finding>) + Sync,
) -> SoakSummary {
    let started = Instant::now();
    let shared = Mutex::new((0u64, SoakSummary::default()));
    let over = || stop.load(Ordering::Relaxed) || started.elapsed() >= config.span;
    std::thread::scope(|scope| {
        for _ in 0..config.jobs.max(1) {
            scope.spawn(|| {
                while !over() && !config.plans.is_empty() {
                    let run = take_number(&shared);
                    let plan = plan_of(config, run);
                    let (fault, checked) = judge(&plan, run.is_multiple_of(16));
                    let known = with(&shared, |summary| {
                        summary.runs += 1;
                        summary.simulated += plan.span;
                        summary.played += plan.span * u32::try_from(plan.seats.len()).unwrap_or(0);
                        summary.checked += checked;
                        summary.elapsed = started.elapsed();
                        let kind = fault.as_ref().map(|fault| fault.broken);
                        summary.findings.iter().any(|finding| Some(finding.fault.broken) == kind)
                    });
                    let finding = fault.filter(|_| !known).map(|fault| find(config, run, plan, fault, stop));
                    with(&shared, |summary| {
                        summary.again += u64::from(known);
                        summary.findings.extend(finding.clone());
                        note(summary, finding.as_ref());
                    });
                }
            });
        }
    });
    let mut summary = with(&shared, |summary| summary.clone());
    summary.elapsed = started.elapsed();
    summary
}

fn take_number(shared: &Mutex<(u64, SoakSummary)>) -> u64 {
    let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    shared.0 += 1;
    shared.0 - 1
}

fn with<T>(shared: &Mutex<(u64, SoakSummary)>, change: impl FnOnce(&mut SoakSummary) -> T) -> T {
    let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    change(&mut shared.1)
}

/// The plan of a run: the same for the same seed, whoever runs it.
fn plan_of(config: &SoakConfig, run: u64) -> Plan {
    let mut dice = Dice::new(config.seed.wrapping_add(run.wrapping_mul(0x9e37_79b9)), "soak");
    let at = usize::try_from(dice.below(config.plans.len() as u64)).unwrap_or(0);
    let mut plan = vary(&config.plans[at.min(config.plans.len() - 1)], &mut dice);
    plan.name = format!("{} {run}", plan.name);
    plan
}

fn find(config: &SoakConfig, run: u64, found_by: Plan, fault: Fault, stop: &AtomicBool) -> Finding {
    let began = Instant::now();
    let shortest = shrink(&found_by, |plan| {
        // By chance another seed shows it where this one does not any more.
        let seeds: Vec<_> = (0..SEEDS).map(|more| plan.seed.wrapping_add(more)).collect();
        seeds.into_iter().find_map(|seed| {
            if stop.load(Ordering::Relaxed) || began.elapsed() >= config.shrink_span {
                return None;
            }
            plan.seed = seed;
            let again = judge(plan, fault.broken == Broken::Rule(Rule::Repeatable)).0?;
            (again.broken == fault.broken).then_some(again.at)
        })
    });
    Finding { run, fault, found_by, shortest }
}

/// Seeds that are tried before something is said to be needed.
const SEEDS: u64 = 3;

/// Runs a plan and says what broke, and how many checks were made. Twice if it is to be `repeated`.
pub fn judge(plan: &Plan, repeated: bool) -> (Option<Fault>, u64) {
    let run = || panic::catch_unwind(AssertUnwindSafe(|| run_to_the_end(plan)));
    let (measured, fault) = match run() {
        Ok(Ok(ended)) => ended,
        Ok(Err(problem)) => {
            return (Some(Fault { broken: Broken::Refused, at: Duration::ZERO, what: problem }), 0);
        }
        Err(payload) => {
            let at = plan.span;
            return (Some(Fault { broken: Broken::Panic, at, what: panic_text(payload.as_ref()) }), 0);
        }
    };
    let checked = measured.invariants.checked;
    let broken = fault.or_else(|| broken_rule(&measured)).or_else(|| {
        let same = !repeated || matches!(run(), Ok(Ok((again, _))) if again == measured);
        let what = "the same seed gave another result".to_owned();
        (!same).then_some(Fault { broken: Broken::Rule(Rule::Repeatable), at: plan.span, what })
    });
    (broken, checked)
}

fn run_to_the_end(plan: &Plan) -> Result<(Measured, Option<Fault>), String> {
    let mut lab = rough_lab(plan, plan.seed).map_err(|problem| problem.to_string())?;
    play(plan, &mut lab);
    // What goes wrong until the end may rightly not be over.
    let calm = plan.happenings.iter().all(|(at, what)| *at + what.span() + CALM <= plan.span);
    let fault =
        (calm && plan.span >= CALM).then(|| not_in(&mut lab).or_else(|| lab.nobody_played())).flatten();
    let fault = fault.map(|what| Fault { broken: Broken::NotIn, at: plan.span, what });
    Ok((lab.measured(), fault))
}

/// Somebody who is not in, or stands still, and goes on like that: on a bad network everybody does for a moment.
fn not_in(lab: &mut Lab<tanks::TankWorld>) -> Option<String> {
    let ill = |lab: &Lab<tanks::TankWorld>, index: usize| {
        let client = lab.client(index)?;
        let predicting = client.reconciler().map(|own| own.predictor().status());
        let well = client.state() == SessionState::LoggedIn && predicting == Some(Status::Predicting);
        (!well).then(|| format!("client {index} is {}: {predicting:?}", client.state()))
    };
    let mut left: Vec<_> = (0..lab.clients()).collect();
    for _ in 0..120 {
        left.retain(|index| ill(lab, *index).is_some());
        if left.is_empty() {
            return None;
        }
        lab.run(Duration::from_millis(250));
    }
    left.first().and_then(|index| ill(lab, *index))
}

/// So long after the last trouble everybody is in.
const CALM: Duration = Duration::from_secs(45);

fn broken_rule(measured: &Measured) -> Option<Fault> {
    let found = measured.invariants.list.iter().find(|found| found.rule != Rule::Recovered)?;
    let at = Duration::try_from_secs_f64(found.at_s).unwrap_or_default();
    let who = found.client.map_or(String::new(), |client| format!("client {client}: "));
    Some(Fault { broken: Broken::Rule(found.rule), at, what: format!("{who}{}", found.what) })
}

thread_local! {
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From here on a panic is not printed, but kept with its place for whoever catches it.
pub fn keep_panics() {
    panic::set_hook(Box::new(|panicked| {
        let text = panicked.to_string();
        PANICKED.with(|kept| *kept.borrow_mut() = Some(text));
    }));
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let kept = PANICKED.with(|kept| kept.borrow_mut().take());
    let said = || {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
    };
    kept.unwrap_or_else(said)
}
