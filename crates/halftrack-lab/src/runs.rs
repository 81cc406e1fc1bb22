//! Plans run by their seeds: each run on its own, the worst and the median of all, and what was expected.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use halftrack::server::ServerConfig;
use halftrack::{PredictConfig, SyncLink};
use halftrack_netem::LinkConfig;
use serde::Serialize;
use serde_json::{Map, Value};
use tanks::TankCommand;

use crate::check::{Rule, Violation};
use crate::dice::Dice;
use crate::lab::{Lab, LabConfig, LabError};
use crate::plan::{Bound, Plan, SeatPlan};
use crate::result::Measured;
use crate::seat::SeatConfig;
use crate::tank::{Bots, TankGame};
use crate::trace::Trace;

/// One run of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The plan's name.
    pub plan: String,
    /// The seed.
    pub seed: u64,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measured,
}

/// All runs of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlanResult {
    /// The plan's name.
    pub plan: String,
    /// The first seed.
    pub seed: u64,
    /// Simulated seconds of each run.
    pub seconds: f64,
    /// Clients.
    pub players: usize,
    /// Tanks that the world drives.
    pub machines: u8,
    /// Each number's worst over all runs: the greatest, or the least where less is worse.
    pub worst: Value,
    /// Each number's median over all runs.
    pub median: Value,
    /// The runs, by seed.
    pub runs: Vec<Run>,
    /// What was expected and did not come.
    pub failed: Vec<Failure>,
}

impl PlanResult {
    /// Everything that must hold and did not, with its seed.
    pub fn violations(&self) -> impl Iterator<Item = (u64, &Violation)> {
        self.runs.iter().flat_map(|run| run.measured.invariants.list.iter().map(|found| (run.seed, found)))
    }

    /// Whether everything held and came out as expected.
    pub fn is_good(&self) -> bool {
        self.failed.is_empty() && self.runs.iter().all(|run| run.measured.invariants.violated == 0)
    }
}

/// A number that was not what the plan expects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Its path in the result.
    pub path: String,
    /// The seed that shows it.
    pub seed: u64,
    /// What it was.
    pub got: f64,
    /// No less than this was expected.
    pub min: Option<f64>,
    /// No more than this was expected.
    pub max: Option<f64>,
}

/// Runs a plan once.
///
/// ```
/// use halftrack_lab::{Plan, run_once};
///
/// let plan = Plan::read("name = \"short\"\nseconds = 4\nplayers = 2\n[link]\ndelay_ms = 20")?;
/// let measured = run_once(&plan, 7)?;
/// assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
/// assert_eq!(measured, run_once(&plan, 7)?, "the same seed, the same run");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the plan has something in it that no lab can have.
pub fn run_once(plan: &Plan, seed: u64) -> Result<Measured, LabError> {
    let mut lab = tank_lab(plan, seed)?;
    play(plan, &mut lab);
    Ok(lab.measured())
}

/// Runs a plan once and writes down what one client goes through.
///
/// # Errors
/// When the plan has something in it that no lab can have.
pub fn trace_once(plan: &Plan, seed: u64, client: usize) -> Result<Trace, LabError> {
    let mut lab = tank_lab(plan, seed)?;
    lab.start_trace(client);
    play(plan, &mut lab);
    Ok(lab.trace().cloned().unwrap_or_default())
}

/// From the start of a plan to its end.
pub(crate) fn play(plan: &Plan, lab: &mut Lab<tanks::TankWorld>) {
    let warm_up = lab.warm_up();
    // Tourists are put where they live before anything counts.
    let game = TankGame::new(plan.bots, plan.seats.len());
    let mut at_home = vec![false; plan.seats.len()];
    // A server that stalls at the start lets them in later.
    while lab.elapsed() + STEP < plan.span && (lab.elapsed() < warm_up || at_home.contains(&false)) {
        lab.run(STEP);
        for (index, at_home) in at_home.iter_mut().enumerate().filter(|(_, at_home)| !**at_home) {
            let Some(player) = lab.client(index).and_then(|client| client.player()) else { continue };
            let home = game.home(index).or_else(|| floor(plan, lab, index));
            // A platform comes with the first tick.
            *at_home = home.is_some() || plan.bots != Bots::Ride;
            if let Some(home) = home {
                let (x, y, heading) = (home.x, home.y, home.heading);
                // A player that has left is put there when it is back.
                *at_home = lab.command(&TankCommand::Teleport { player, x, y, heading }.encode()).is_ok();
            }
        }
    }
    lab.run(plan.span.saturating_sub(lab.elapsed()));
    lab.drain();
}

/// The middle of the platform of a rider, as it will be at the end of the next tick.
fn floor(plan: &Plan, lab: &Lab<tanks::TankWorld>, index: usize) -> Option<tanks::TankPose> {
    let floors = lab.server().bodies().filter_map(|(.., body)| body.platform());
    let floor = *floors.filter(|_| plan.bots == Bots::Ride).nth(index)?;
    let [x, y] = floor.at(plan.cadence.end_of(lab.server().tick().next()));
    Some(tanks::TankPose { x, y, heading: 0.0 })
}

const STEP: Duration = Duration::from_millis(50);

/// The lab of a plan, at its start.
///
/// # Errors
/// When the plan has something in it that no lab can have.
pub fn tank_lab(plan: &Plan, seed: u64) -> Result<Lab<tanks::TankWorld>, LabError> {
    lab_of(plan, lab_config(plan, seed))
}

/// The lab of a plan that dice have made: on any network that a session survives.
pub(crate) fn rough_lab(plan: &Plan, seed: u64) -> Result<Lab<tanks::TankWorld>, LabError> {
    let drain = Duration::from_secs(60);
    lab_of(plan, LabConfig { rough: true, drain, ..lab_config(plan, seed) })
}

/// The lab of a plan that goes on and on: nothing is measured, for that would be kept, but everything is checked.
pub(crate) fn endless_lab(plan: &Plan, seed: u64) -> Result<Lab<tanks::TankWorld>, LabError> {
    let warm_up = Duration::from_secs(u64::from(u32::MAX));
    let contact_reach = f64::INFINITY;
    lab_of(plan, LabConfig { rough: true, warm_up, contact_reach, ..lab_config(plan, seed) })
}

fn lab_config(plan: &Plan, seed: u64) -> LabConfig {
    let server = ServerConfig {
        cadence: plan.cadence,
        first_tick: plan.first_tick,
        capacity: plan.seats.len().max(1),
        max_connections: plan.seats.len() * 4 + 16,
        // Bodies are in the order of their ids: another one with each seed.
        body_key: body_key(seed),
        ..ServerConfig::default()
    };
    let usual = LabConfig::new(server, seed);
    LabConfig { warm_up: usual.warm_up.min(plan.span / 4), contact_reach: contact_reach(plan), ..usual }
}

fn body_key(seed: u64) -> [u8; 16] {
    let mut dice = Dice::new(seed, "bodies");
    (u128::from(dice.roll()) << 64 | u128::from(dice.roll())).to_le_bytes()
}

fn lab_of(plan: &Plan, config: LabConfig) -> Result<Lab<tanks::TankWorld>, LabError> {
    let game = TankGame::new(plan.bots, plan.seats.len())
        .with_machines(plan.machines)
        .with_things(plan.crates, plan.platforms);
    let seed = config.seed;
    let mut lab = Lab::new(config, game.world(seed))?;
    for (index, seat) in plan.seats.iter().enumerate() {
        // A number is a name.
        let Ok(mut client) = game.client(index, plan.cadence) else { continue };
        client.lead.stream_late_cost = plan.stream_late_cost;
        let config = SeatConfig {
            sync_link: seat.sync_link,
            frames: seat.frames,
            wake: seat.wake,
            clock_ppm: seat.clock_ppm,
            ..SeatConfig::new(client, seat.link)
        };
        lab.join(config, game.bot(index, seed))?;
    }
    for (at, happening) in &plan.happenings {
        lab.schedule(*at, *happening);
    }
    Ok(lab)
}

/// Two hulls touch at 3 m. A client knows another as it was a round trip ago, and predicts itself as far ahead: meanwhile
/// both have moved. When the plan lets things go wrong, that may be long ago.
fn contact_reach(plan: &Plan) -> f64 {
    if !plan.happenings.is_empty() {
        return f64::INFINITY;
    }
    let old = |seat: &SeatPlan| {
        let LinkConfig { delay, jitter, loss, .. } = seat.link;
        // A lost segment holds up a stream, again and again. A client is never further ahead than what it keeps pending,
        // and knows others no longer ago.
        let is_lossy_stream = seat.sync_link == SyncLink::Absent && loss > 0.0;
        let held_up =
            if is_lossy_stream { 2.0 * PredictConfig::default().max_pending.as_secs_f64() } else { 0.0 };
        2.0 * delay.as_secs_f64() + 8.0 * jitter.as_secs_f64() + held_up
    };
    let oldest = plan.seats.iter().map(old).fold(0.0, f64::max);
    // Two tanks, or a rocket and a tank, towards each other.
    let closing = if plan.bots == Bots::Rockets { 30.0 } else { 16.0 };
    3.2 + closing * (oldest + 0.25 + 3.0 * plan.cadence.interval().as_secs_f64())
}

/// Runs plans by their seeds, on so many threads. The first seed of each is run twice: it must give the same. `done` is
/// told after each run.
///
/// # Errors
/// When a plan has something in it that no lab can have.
pub fn run_plans(
    plans: &[Plan],
    threads: usize,
    done: impl Fn(&Plan) + Sync,
) -> Result<Vec<PlanResult>, LabError> {
    let jobs: Vec<_> = plans
        .iter()
        .flat_map(|plan| {
            let seeds = (0..plan.runs).map(|run| plan.seed.wrapping_add(run));
            std::iter::once(plan.seed).chain(seeds).map(move |seed| (plan, seed))
        })
        .collect();
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while let Some(((plan, seed), slot)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(at).zip(results.get(at))
                } {
                    let result = run_once(plan, *seed);
                    if let Ok(mut slot) = slot.lock() {
                        *slot = Some(result);
                    }
                    done(plan);
                }
            });
        }
    });
    let mut measured = results.into_iter().filter_map(|slot| slot.into_inner().ok().flatten());
    plans.iter().map(|plan| sum_up(plan, &mut measured)).collect()
}

/// Takes the runs of one plan, the repeated first one before all.
fn sum_up(
    plan: &Plan,
    results: &mut impl Iterator<Item = Result<Measured, LabError>>,
) -> Result<PlanResult, LabError> {
    let again = results.next().transpose()?;
    let mut runs = Vec::new();
    for (seed, measured) in (plan.seed..).zip(results.take(usize::try_from(plan.runs).unwrap_or(0))) {
        let mut measured = measured?;
        if let Some(again) = again.as_ref().filter(|_| seed == plan.seed) {
            let same = *again == measured;
            let invariants = &mut measured.invariants;
            invariants.checked += 1;
            if !same {
                invariants.violated += 1;
                let what = "the same seed gave another result".to_owned();
                invariants.list.push(Violation { at_s: 0.0, client: None, rule: Rule::Repeatable, what });
            }
        }
        runs.push(Run { plan: plan.name.clone(), seed, measured });
    }
    let values: Vec<_> = runs.iter().map(|run| as_value(&run.measured)).collect();
    let failed = plan.expect.iter().filter_map(|(path, bound)| fails(path, *bound, &runs, &values)).collect();
    Ok(PlanResult {
        plan: plan.name.clone(),
        seed: plan.seed,
        seconds: plan.span.as_secs_f64(),
        players: plan.seats.len(),
        machines: plan.machines,
        worst: merge(&values, "", &|path, numbers| {
            if less_is_worse(path) { numbers[0] } else { numbers[numbers.len() - 1] }
        }),
        median: merge(&values, "", &|_, numbers| numbers[(numbers.len() - 1) / 2]),
        runs,
        failed,
    })
}

/// The run that is furthest outside of what is expected.
fn fails(path: &str, bound: Bound, runs: &[Run], values: &[Value]) -> Option<Failure> {
    let outside = |got: f64| {
        let above = bound.max.map_or(f64::NEG_INFINITY, |max| got - max);
        above.max(bound.min.map_or(f64::NEG_INFINITY, |min| min - got))
    };
    let got = runs.iter().zip(values).filter_map(|(run, value)| Some((run.seed, number_at(value, path)?)));
    let (seed, got) = got.max_by(|one, other| outside(one.1).total_cmp(&outside(other.1)))?;
    let Bound { min, max } = bound;
    (outside(got) > 0.0).then(|| Failure { path: path.to_owned(), seed, got, min, max })
}

/// Where a smaller number is the worse one.
fn less_is_worse(path: &str) -> bool {
    const LESS: [&str; 8] =
        ["ticks", "margin_ms", "agreed_ratio", "shots", "hits", "machine_hits", "told", "checked"];
    path.split('.').any(|part| LESS.contains(&part))
        && !path.contains("pending_ticks")
        && !path.contains("mispredicted")
}

/// One value of several of the same shape: numbers by `choose`, from the least to the greatest; lists are left out.
fn merge(values: &[Value], path: &str, choose: &impl Fn(&str, &[f64]) -> f64) -> Value {
    match values.first() {
        Some(Value::Object(first)) => {
            let mut merged = Map::new();
            for key in first.keys() {
                let parts: Vec<_> = values.iter().filter_map(|value| value.get(key).cloned()).collect();
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if !matches!(parts.first(), Some(Value::Array(_))) {
                    merged.insert(key.clone(), merge(&parts, &path, choose));
                }
            }
            Value::Object(merged)
        }
        Some(Value::Number(number)) => {
            let mut numbers: Vec<_> = values.iter().filter_map(Value::as_f64).collect();
            numbers.sort_by(f64::total_cmp);
            let chosen = choose(path, &numbers);
            if number.is_f64() { Value::from(chosen) } else { Value::from(chosen as u64) }
        }
        other => other.cloned().unwrap_or(Value::Null),
    }
}

/// A result as the JSON that it is written as.
fn as_value(measured: &Measured) -> Value {
    serde_json::to_value(measured).unwrap_or(Value::Null)
}

/// A result in which nothing was measured: it has every path.
pub(crate) fn blank() -> Value {
    as_value(&Measured::default())
}

/// The number at a path, as `own.correction_m.p95`.
pub(crate) fn number_at(value: &Value, path: &str) -> Option<f64> {
    path.split('.').try_fold(value, |value, key| value.get(key))?.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, change: impl Fn(&mut Measured)) -> Run {
        let mut measured = Measured::default();
        change(&mut measured);
        Run { plan: "test".to_owned(), seed, measured }
    }

    #[test]
    fn the_worst_is_the_greatest_except_where_less_is_worse() {
        let ratios = [(0.98, 3, 5.0), (1.0, 9, 1.0), (0.99, 4, 2.0)];
        let runs = ratios.map(|(agreed, snaps, margin)| {
            run(1, |measured| {
                (measured.combat.agreed_ratio, measured.own.snaps) = (agreed, snaps);
                measured.input.margin_ms.p50 = margin;
            })
        });
        let values = runs.map(|run| as_value(&run.measured));
        let pick = |path: &str, numbers: &[f64]| if less_is_worse(path) { numbers[0] } else { numbers[2] };
        let worst = merge(&values, "", &pick);
        assert_eq!(number_at(&worst, "combat.agreed_ratio"), Some(0.98));
        assert_eq!(number_at(&worst, "own.snaps"), Some(9.0));
        assert_eq!(number_at(&worst, "input.margin_ms.p50"), Some(1.0));
        assert_eq!(number_at(&merge(&values, "", &|_, numbers| numbers[1]), "own.snaps"), Some(4.0));
        assert_eq!(number_at(&worst, "invariants.list"), None);
    }

    #[test]
    fn every_run_must_be_as_expected_and_the_worst_seed_is_named() {
        let runs: Vec<_> = [(1, 2), (2, 7), (3, 5)]
            .map(|(seed, snaps)| run(seed, |measured| measured.own.snaps = snaps))
            .to_vec();
        let values: Vec<_> = runs.iter().map(|run| as_value(&run.measured)).collect();
        let bound = |min, max| fails("own.snaps", Bound { min, max }, &runs, &values);
        assert_eq!(bound(Some(2.0), Some(7.0)), None);
        assert_eq!(bound(None, Some(4.0)).map(|failure| (failure.seed, failure.got)), Some((2, 7.0)));
        assert_eq!(bound(Some(3.0), None).map(|failure| (failure.seed, failure.got)), Some((1, 2.0)));
    }
}
