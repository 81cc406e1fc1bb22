//! Cheats in combat that take an aim: a player with a client of ours among gunners, in a room of their own.

use std::time::{Duration, Instant};

use tanks::{HULL_RADIUS, ShootInput};

use crate::attack::{Failed, Field, Outcome, attacks};
use crate::fighter::{Fighter, Gunners, Shot, aim, passes_by, reaches, shot};

attacks! { Guests:
    "logout-to-heal", "a logout and a login by the same name at 25 hp: in the fight, and when it is over" => logout_to_heal;
    "late-and-rewound", "shots 440 ms late that claim 250 ms of rewind, at tanks where they were 690 ms ago" => late_and_rewound;
}

const ROOM: &str = "duel";
/// A tank is in combat for so long after a hit, and is remembered for as long after a logout.
const RESPAWN: Duration = Duration::from_secs(3);
const COOLDOWN: Duration = Duration::from_millis(500);

/// A shot in time at `victim` by a gunner who sees it, where it was at the end of the newest tick that all have heard of.
fn honest_shot(field: &Field, gunners: &Gunners, victim: &Fighter) -> Option<(usize, ShootInput)> {
    let (cadence, places) = (field.cadence, gunners.places(victim));
    let now = victim.server_time()?;
    let seen = cadence.start_of(cadence.tick_at(now)) - cadence.interval();
    let place = victim.trail_from(seen).next()?;
    places.iter().find_map(|(gunner, from)| {
        let aim = aim(*from, place);
        let moment = cadence.end_of(cadence.tick_at(now)) + cadence.interval();
        reaches(&field.arena, &places, *from, aim, place).then(|| (*gunner, shot(cadence, moment, seen, aim)))
    })
}

/// A victim that a gunner has a clear shot at. One that has not leaves again, unhurt, and comes in elsewhere.
async fn victim(field: &Field, gunners: &mut Gunners, name: &str) -> Result<Fighter, Failed> {
    for _ in 0..20 {
        gunners.stay().await;
        let mut victim = Fighter::enter(field, ROOM, name).await?;
        victim.play(Duration::from_millis(300)).await;
        if honest_shot(field, gunners, &victim).is_some() {
            return Ok(victim);
        }
        victim.leave().await;
    }
    Err("no place to come in at has a clear line of fire".into())
}

/// Shoots at a victim until it has 25 hp left. Gives its hit points.
async fn wound(field: &Field, gunners: &mut Gunners, victim: &mut Fighter) -> Result<u8, Failed> {
    for _ in 0..12 {
        let hp = victim.tank().map_or(0, |tank| tank.hp);
        if hp <= 25 {
            return Ok(hp);
        }
        if let Some((gunner, shot)) = honest_shot(field, gunners, victim) {
            gunners.shoot(gunner, &shot, victim).await?;
        }
        victim.play(COOLDOWN).await;
        gunners.stay().await;
    }
    Err("a tank that stands still was not hit three times".into())
}

async fn logout_to_heal(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut gunners = Gunners::enter(field, ROOM).await?;
    // A logout in combat is a death. After the fight the tank keeps its hit points.
    for (name, calm, expected) in [("patient", Duration::ZERO, 0), ("convalescent", RESPAWN, 25)] {
        let mut victim = victim(field, &mut gunners, name).await?;
        let before = wound(field, &mut gunners, &mut victim).await?;
        outcome.check(before == 25, format!("{name}: {before} hp after three hits"));
        if !calm.is_zero() {
            victim.play(calm + Duration::from_millis(200)).await;
        }
        victim.leave().await;
        gunners.stay().await;
        let again = Fighter::enter(field, ROOM, name).await?;
        let after = again.tank().map_or(0, |tank| tank.hp);
        outcome.sent("logouts at 25 hp", 1);
        outcome.saw(format!("back with {after} hp"));
        outcome.check(
            after == expected,
            format!("{name} had {before} hp, and came back with {after}, not {expected}"),
        );
        again.leave().await;
    }
    gunners.leave().await;
    Ok(outcome)
}

/// Bounds of lag compensation, as `docs/SECURITY.md` has them.
const REWIND: Duration = Duration::from_millis(250);
const HINDSIGHT: Duration = Duration::from_millis(500);
/// How late a shot is at the end of the tick in which it is to be decided. One tick later it is still taken.
const LATE: Duration = Duration::from_millis(440);
/// Metres by which an aim must meet the past, and miss the present.
const MARGIN: f64 = 0.2;

/// A shot that is [`LATE`] and claims [`REWIND`]. It meets `target` where it was then, and misses it wherever it was within
/// [`HINDSIGHT`]. None when no gunner has such a shot now.
fn shot_at_the_past(field: &Field, gunners: &Gunners, target: &Fighter) -> Option<(usize, ShootInput)> {
    let (cadence, places) = (field.cadence, gunners.places(target));
    let decided = cadence.end_of(cadence.tick_at(target.server_time()?));
    let moment = decided - LATE;
    let seen = moment - REWIND;
    let then = target.trail_from(seen).next()?;
    // A tick more: the shot may be decided a tick earlier than expected.
    let later: Vec<_> = target.trail_from(decided - HINDSIGHT - cadence.interval()).collect();
    places.iter().find_map(|(gunner, from)| {
        let aim = aim_between(*from, then, &later)?;
        reaches(&field.arena, &places, *from, aim, then).then(|| (*gunner, shot(cadence, moment, seen, aim)))
    })
}

/// An aim that meets a hull at `then`, and misses one at each place of `later`, by the same margin.
fn aim_between(from: [f64; 2], then: [f64; 2], later: &[[f64; 2]]) -> Option<u16> {
    let straight = aim(from, then);
    let margin = |aim: u16| {
        let misses = later.iter().map(|place| passes_by(from, aim, *place) - HULL_RADIUS);
        misses.fold(HULL_RADIUS - passes_by(from, aim, then), f64::min)
    };
    // Up to 18 degrees to either side: a hull at 5 m is as wide.
    let aims = (-100..=100_i16).map(|side| straight.wrapping_add_signed(side * 32));
    let best = aims.max_by(|one, other| margin(*one).total_cmp(&margin(*other)))?;
    (margin(best) >= MARGIN).then_some(best)
}

async fn late_and_rewound(field: &Field) -> Result<Outcome, Failed> {
    const WANTED: u64 = 3;
    let (mut outcome, begun) = (Outcome::default(), Instant::now());
    let mut gunners = Gunners::enter(field, ROOM).await?;
    let mut runner = Fighter::enter(field, ROOM, "runner").await?.with_driver();
    runner.play(Duration::from_secs(1)).await;
    let (mut fired, mut honest_hit, mut spoke) = (0, false, Instant::now());
    while fired < WANTED && begun.elapsed() < Duration::from_secs(40) {
        runner.play(Duration::from_millis(16)).await;
        if spoke.elapsed() > Duration::from_secs(1) {
            gunners.stay().await;
            spoke = Instant::now();
        }
        // A shot in time first: it shows that these aims meet a tank that drives.
        let next = if honest_hit { shot_at_the_past } else { honest_shot };
        let Some((gunner, shot)) = next(field, &gunners, &runner) else { continue };
        let result = gunners.shoot(gunner, &shot, &mut runner).await?;
        match (honest_hit, result) {
            (false, result) => honest_hit = result == Shot::Hit,
            (true, Shot::Rejected(why)) => outcome.saw(format!("rejected: {why}")),
            (true, _) => {
                fired += 1;
                outcome.sent("late shots", 1);
                outcome.saw(if result == Shot::Hit { "hit" } else { "missed" });
            }
        }
        // A gun cools down by the moments of its shots, which are late.
        runner.play(COOLDOWN + LATE).await;
    }
    outcome.check(honest_hit, "no shot in time hit a tank that drives");
    outcome.check(fired == WANTED, format!("{fired} of {WANTED} late shots were fired"));
    outcome.check(outcome.seen.of("hit") == 0, "a late shot hit a tank where it was more than 500 ms before");
    runner.leave().await;
    gunners.leave().await;
    Ok(outcome)
}
