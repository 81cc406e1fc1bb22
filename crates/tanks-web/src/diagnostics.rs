//! What the page reads as JSON: combat as it is drawn, players, numbers for plots, and the whole session.

use core::f64::consts::TAU;
use core::time::Duration;
use std::borrow::Cow;

use halftrack::client::{Client, ClientStats};
use halftrack::session::SessionState;
use halftrack::{BodyId, Cadence, CorrectionStats, Reconciler, ServerTime, SubTick, Tick};
use serde::Serialize;
use tanks::{CombatEvent, Fighter, Phase, RoundState, TankPose, Tanks, Vitals};

use crate::bodies::kind_name;
use crate::gauge::Traffic;
use crate::play::Play;
use crate::record::{Correction, Grouped, Sample};
use crate::rockets::Counts;
use crate::told::Told;

/// The state's name for programs; its words are for people.
pub(crate) fn state_name(state: SessionState) -> &'static str {
    match state {
        SessionState::Idle => "idle",
        SessionState::Connecting => "connecting",
        SessionState::LoginPending => "login_pending",
        SessionState::LoggedIn => "logged_in",
        SessionState::Reconnecting => "reconnecting",
        SessionState::Failed(_) => "failed",
        SessionState::TimedOut => "timed_out",
        SessionState::LoggedOut => "logged_out",
    }
}

/// Whether a connection that was closed is what the state is about. A session that failed has words of its own.
pub(crate) fn is_out(state: SessionState) -> bool {
    matches!(state, SessionState::Reconnecting | SessionState::TimedOut)
}

/// Where a shot goes, radians.
pub(crate) fn aim_of(event: &CombatEvent) -> Option<f64> {
    match *event {
        CombatEvent::Fired { aim, .. } => Some(f64::from(aim) / 65_536.0 * TAU),
        _ => None,
    }
}

fn moment(cadence: Cadence, tick: Tick, at: u8) -> ServerTime {
    let start = cadence.start_of(tick);
    SubTick::new(at).map_or(start, |at| start + cadence.offset_of(at))
}

fn is_own(client: &Client<Tanks>, fighter: Fighter) -> bool {
    fighter.player().is_some_and(|player| client.player() == Some(player))
}

/// In how long the picture of others is at the moment of a shot. The own ones are drawn at once: the player has seen
/// itself fire.
pub(crate) fn picture_in(client: &Client<Tanks>, event: &CombatEvent) -> Duration {
    let (shooter, tick, at) = match *event {
        CombatEvent::Fired { shooter, tick, at, .. } | CombatEvent::Hit { shooter, tick, at, .. } => {
            (shooter, tick, at)
        }
        _ => return Duration::ZERO,
    };
    let drawn = client.remotes().render_time().filter(|_| !is_own(client, shooter));
    let moment = moment(client.cadence(), tick, at);
    // No picture is further behind than this; a wrong tick must not hold a shot back for ever.
    drawn.map_or(Duration::ZERO, |drawn| moment.saturating_since(drawn).min(Duration::from_secs(1)))
}

/// The round that is on, as the page shows it.
pub(crate) fn round(client: &Client<Tanks>, state: &RoundState) -> Told {
    let winner = if let Phase::Over { winner } = state.phase { winner } else { None };
    let ends_ms = client.cadence().end_of(state.until).as_micros() as f64 / 1e3;
    let (over, winner) = (state.phase != Phase::Playing, winner.map(Fighter::key));
    Told::Round { number: state.number, over, winner, ends_ms }
}

/// An event as the page draws it; `own` is where the own tank is drawn.
pub(crate) fn combat(client: &Client<Tanks>, own: Option<TankPose>, event: &CombatEvent) -> Option<Told> {
    let in_ms = picture_in(client, event).as_secs_f64() * 1e3;
    let told = match *event {
        CombatEvent::Fired { shooter, tick, reach, .. } => {
            let aim = aim_of(event).unwrap_or_default();
            let own_shot = is_own(client, shooter);
            // A shot leaves the tank where it is drawn, or where it was if that is not drawn yet.
            let known = client.crowd().bodies().find(|(id, body)| Fighter::of(*id, body.driver()) == shooter);
            let then = known.and_then(|(_, history)| history.get(tick)).map(|record| record.after.pose());
            let mut others = client.remotes().iter();
            let drawn = others.find(|other| Fighter::of(other.id, other.driver) == shooter);
            let drawn = drawn.map(|other| other.visible);
            let from = if own_shot { own.or(then) } else { then.or(drawn) };
            let from = from.map_or([f64::NAN; 2], |pose| [pose.x, pose.y]);
            let (sin, cos) = libm::sincos(aim);
            let to = [from[0] + cos * reach.metres(), from[1] + sin * reach.metres()];
            let (shooter, tick) = (shooter.key(), tick.number());
            Told::Fired { shooter, own: own_shot, tick, aim, from, to, in_ms }
        }
        CombatEvent::Hit { shooter, target, tick, .. } => {
            let (shooter, target, tick) = (shooter.key(), target.key(), tick.number());
            Told::Hit { shooter, target, tick, in_ms }
        }
        CombatEvent::DamageApplied { target, amount, hp, tick } => {
            Told::Damage { target: target.key(), amount, hp, tick: tick.number() }
        }
        CombatEvent::Death { fighter, by, tick } => {
            Told::Death { fighter: fighter.key(), by: by.key(), tick: tick.number() }
        }
        CombatEvent::Respawn { fighter, tick } => {
            Told::Respawn { fighter: fighter.key(), tick: tick.number() }
        }
        CombatEvent::ShootRejected { tick, why, .. } => {
            Told::Rejected { tick: tick.number(), why: why.name() }
        }
        CombatEvent::Round { number, phase, until, .. } => {
            round(client, &RoundState { number, phase, until })
        }
        // Read by `fighters()` and the view.
        CombatEvent::Score { .. } => return None,
    };
    Some(told)
}

/// A line of the scoreboard.
#[derive(Serialize)]
struct Standing<'a> {
    fighter: u64,
    name: Cow<'a, str>,
    own: bool,
    hp: Option<u8>,
    kills: u32,
    deaths: u32,
}

/// Players, then machines.
pub(crate) fn fighters(client: &Client<Tanks>, vitals: &Vitals, machines: &[BodyId]) -> String {
    let players = client.players().map(|(player, name)| (player.into(), Cow::Borrowed(name.as_str())));
    let machines = machines.iter().map(|id| {
        let machine = Fighter::Machine(*id);
        (machine, Cow::Owned(machine.machine_name().unwrap_or_default()))
    });
    let standing = |(fighter, name): (Fighter, _)| {
        let vital = vitals.of(fighter);
        Standing {
            fighter: fighter.key(),
            name,
            own: is_own(client, fighter),
            hp: vital.and_then(|vital| vital.hp),
            kills: vital.map_or(0, |vital| vital.kills),
            deaths: vital.map_or(0, |vital| vital.deaths),
        }
    };
    json(&players.chain(machines).map(standing).collect::<Vec<_>>())
}

#[derive(Serialize)]
struct Now<'a> {
    version: &'static str,
    state: &'static str,
    transport: Option<&'a str>,
    transport_why: Option<&'a str>,
    sample: Sample,
    causes: Vec<(&'static str, u64)>,
    outcomes: Outcomes,
    recent: Vec<Correction>,
    group: Group,
    rockets: Counts,
    own_ticks: OwnTicks,
    /// Of the own ticks, the share that the server made up for.
    hold_ratio: f64,
    remotes: Remote,
    prediction: Prediction,
    traffic: Traffic,
    client: Counted,
}

/// The bodies that are predicted with the player's tank.
#[derive(Default, Serialize)]
struct Group {
    causes: Vec<(&'static str, u64)>,
    /// Oldest first.
    recent: Vec<Grouped>,
}

fn group(client: &Client<Tanks>) -> Group {
    let Some(reconciler) = client.reconciler() else { return Group::default() };
    let stats = reconciler.group_corrections();
    Group { causes: causes(stats), recent: recent(client, reconciler) }
}

fn recent(client: &Client<Tanks>, reconciler: &Reconciler<Tanks>) -> Vec<Grouped> {
    let kind = |id| {
        let member = reconciler.member(id).map(|member| member.predicted());
        let told = client.crowd().body(id).map(|history| history.latest());
        // Of all that is predicted with a tank, only rockets come to an end.
        member.or(told).map_or("rocket", kind_name)
    };
    let told = reconciler.recent_of_group().filter_map(|diagnosis| {
        let correction = Correction::of(diagnosis, diagnosis.cause?);
        Some(Grouped { body: diagnosis.id.number(), kind: kind(diagnosis.id), correction })
    });
    told.collect()
}

fn causes(stats: &CorrectionStats) -> Vec<(&'static str, u64)> {
    stats.by_cause().map(|(cause, count)| (cause.name(), count)).collect()
}

/// What the server did with the ticks of this player.
#[derive(Serialize)]
struct OwnTicks {
    /// Simulated with the input that was sent.
    as_sent: u64,
    /// Made up for, because input was late or lost; which of the two turns out later.
    made_up: u64,
    late: u64,
    lost: u64,
}

#[derive(Default, Serialize)]
struct Outcomes {
    unchanged: u64,
    negligible: u64,
    eased: u64,
    snapped: u64,
}

#[derive(Serialize)]
struct Remote {
    exact: u64,
    interpolated: u64,
    extrapolated: u64,
    held: u64,
    eased: u64,
    snapped: u64,
    /// Of all pictures of others, the share that had to stand.
    held_ratio: f64,
}

#[derive(Default, Serialize)]
struct Prediction {
    accepted: u64,
    mispredicted: u64,
    resyncs: u64,
    starved: u64,
    stalled_ticks: u64,
    delayed_changes: u64,
}

#[derive(Serialize)]
struct Counted {
    snapshots: u64,
    stale: u64,
    early: u64,
    malformed: u64,
    missing_baseline: u64,
    check_failed: u64,
    full_requests: u64,
    inputs: u64,
    eager_inputs: u64,
    events_dropped: u64,
}

impl From<&ClientStats> for Counted {
    fn from(stats: &ClientStats) -> Self {
        Self {
            snapshots: stats.snapshots,
            stale: stats.stale,
            early: stats.early,
            malformed: stats.malformed,
            missing_baseline: stats.missing_baseline,
            check_failed: stats.check_failed,
            full_requests: stats.full_requests,
            inputs: stats.inputs,
            eager_inputs: stats.eager_inputs,
            events_dropped: stats.events_dropped,
        }
    }
}

fn ratio(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

fn gather(play: &Play, sample: Sample) -> Now<'_> {
    let client = &play.client;
    let corrections = client.reconciler().map(|reconciler| *reconciler.stats()).unwrap_or_default();
    let predicted = client.reconciler().map(|reconciler| *reconciler.predictor().stats()).unwrap_or_default();
    let remotes = client.remotes().stats();
    let stats = client.stats();
    let as_sent = stats.ticks.saturating_sub(stats.held);
    Now {
        version: env!("CARGO_PKG_VERSION"),
        state: state_name(client.state()),
        transport: play.transport.as_ref().map(|(kind, _)| *kind),
        transport_why: play.transport.as_ref().map(|(_, why)| why.as_str()),
        sample,
        causes: causes(&corrections),
        outcomes: Outcomes {
            unchanged: corrections.unchanged,
            negligible: corrections.negligible,
            eased: corrections.eased,
            snapped: corrections.snapped,
        },
        recent: play.record.latest(32),
        group: group(client),
        rockets: play.rockets.counts(),
        own_ticks: OwnTicks { as_sent, made_up: stats.held, late: stats.late, lost: stats.lost },
        hold_ratio: ratio(stats.held, stats.ticks),
        remotes: Remote {
            exact: remotes.exact,
            interpolated: remotes.interpolated,
            extrapolated: remotes.extrapolated,
            held: remotes.held,
            eased: remotes.eased,
            snapped: remotes.snapped,
            held_ratio: ratio(
                remotes.held,
                remotes.held + remotes.exact + remotes.interpolated + remotes.extrapolated,
            ),
        },
        prediction: Prediction {
            accepted: predicted.accepted,
            mispredicted: predicted.mispredicted,
            resyncs: predicted.resyncs,
            starved: predicted.starved,
            stalled_ticks: predicted.stalled_ticks,
            delayed_changes: predicted.delayed_changes,
        },
        traffic: play.gauge.traffic,
        client: client.stats().into(),
    }
}

/// Numbers for plots.
pub(crate) fn now(play: &Play, sample: Sample) -> String {
    json(&gather(play, sample))
}

#[derive(Serialize)]
struct Export<'a> {
    now: Now<'a>,
    corrections: &'a std::collections::VecDeque<Correction>,
    samples: &'a [Sample],
}

/// The whole session.
pub(crate) fn export(play: &Play, sample: Sample) -> String {
    let (corrections, samples) = (play.record.corrections(), play.record.samples());
    json(&Export { now: gather(play, sample), corrections, samples })
}

/// Numbers that are none are `null`.
fn json(what: &impl Serialize) -> String {
    serde_json::to_string(what).unwrap_or_else(|_| "null".to_owned())
}
