//! One shot: whether it is fired, and what it meets where the shooter saw it.
//!
//! Only looks at the room; what comes of a hit is not decided here.

use std::time::Duration;

use halftrack::server::Room;
use halftrack::snapshot::{BodyHistory, history_ticks};
use halftrack::{BodyId, Cadence, Cause, Driver, ServerTime, Tick};

use crate::body::Tank;
use crate::collide::{HULL_RADIUS, Vec2};
use crate::entity::Entity;
use crate::fighter::Fighter;
use crate::message::{Rejection, ShootInput};
use crate::platform::Platform;
use crate::ray::Ray;
use crate::rules::{Hull, Tanks};
use crate::world::TankWorldConfig;
use crate::world::orders::Orders;

/// What a hull that is too near a wall can be put back by in a tick, and some more: metres.
const PUT_BACK: f64 = 0.1;

/// How a shot flew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// Metres from the middle of the shooter's hull.
    pub(super) reach: f64,
    /// The tank that it met.
    pub(super) target: Option<Fighter>,
}

/// A tank that the shot may meet, and the moment at which it is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    id: BodyId,
    driver: Driver,
    tick: Tick,
    into: Duration,
}

/// Whether a shot of the tank `id` is fired: the tank at that moment, exactly.
pub(super) fn shooter(
    config: &TankWorldConfig,
    room: &mut Room<'_, Tanks>,
    id: BodyId,
    orders: &Orders,
    shot: &ShootInput,
) -> Result<Tank, Rejection> {
    let cadence = room.cadence();
    let moment = shot.moment(cadence);
    // spec: COMBAT-02
    if cadence.end_of(room.tick()).saturating_since(moment) > config.history {
        return Err(Rejection::TooLate);
    }
    let history = room.history(id).ok_or(Rejection::TooLate)?;
    let start = shot.tick.previous().ok_or(Rejection::TooLate)?;
    let before = history.get(start).ok_or(Rejection::TooLate)?;
    // spec: COMBAT-07 (nor from an earlier life)
    if !before.after.is_alive()
        || history.after(start).any(|(_, record)| record.causes.contains(Cause::Death))
    {
        return Err(Rejection::Dead);
    }
    if !orders.is_ready(moment, config.cooldown) {
        return Err(Rejection::CoolingDown);
    }
    let into = moment.saturating_since(cadence.start_of(shot.tick));
    let body = room.body_at(id, shot.tick, into);
    body.as_ref().and_then(Entity::tank).copied().ok_or(Rejection::TooLate)
}

/// Where a shot from `from`, the tank `id`, ends. `targets` is memory to be used again.
pub(super) fn fly(
    config: &TankWorldConfig,
    room: &mut Room<'_, Tanks>,
    id: BodyId,
    from: &Tank,
    shot: &ShootInput,
    targets: &mut Vec<Target>,
) -> Flight {
    let ray = Ray::new([from.x, from.y], shot.aim);
    let mut flight = Flight { reach: ray.to_arena(&config.arena).min(config.range), target: None };
    let (cadence, own) = (room.cadence(), shot.moment(room.cadence()));
    let seen = seen_at(config, room, shot);
    targets.clear();
    for (other, driver, body) in room.bodies() {
        // Wrecks stop no shots, and shells fly over crates and rockets.
        if other != id
            && body.is_alive()
            && let Some(history) = room.history(other)
            && let Some(target) = target((other, driver), history, cadence, seen, own)
            && may_meet(&ray, flight.reach, history, target)
        {
            targets.push(target);
        }
    }
    for target in targets.iter() {
        let body = room.body_at(target.id, target.tick, target.into);
        let Some(body) = body.as_ref().and_then(Entity::tank) else { continue };
        // Of two equally near, the first by id: tanks are tested in that order.
        if let Some(distance) = ray.to_hull(Hull { x: body.x, y: body.y })
            && (distance < flight.reach || flight.target.is_none() && distance <= flight.reach)
        {
            flight = Flight { reach: distance, target: Some(Fighter::of(target.id, target.driver)) };
        }
    }
    flight
}

/// The moment that the shooter was looking at: as it claims, but neither after its shot, nor more than `max_rewind` before
/// it, nor more than `history` before now. So a late shot sees no further back than a shot in time may be late: lateness
/// and rewind together are at most `history`. What is no longer kept of bodies cuts it too.
fn seen_at(config: &TankWorldConfig, room: &Room<'_, Tanks>, shot: &ShootInput) -> ServerTime {
    // spec: COMBAT-03
    let (cadence, own) = (room.cadence(), shot.moment(room.cadence()));
    let before = Duration::from_micros(shot.seen.before_micros.into());
    // A tick is walked from the end of the one before it.
    let oldest = Tick::new(room.tick().number().saturating_sub(history_ticks(cadence) - 2));
    let hindsight = cadence.end_of(room.tick()) - config.history;
    let earliest = (own - config.max_rewind).max(hindsight).max(cadence.start_of(oldest));
    (cadence.end_of(shot.seen.snapshot) - before).max(earliest).min(own)
}

/// When to look at somebody who was seen at `seen` by a shot fired at `own`: never at what it was before it died, came
/// back or was put elsewhere. `None` when that was after the shot.
fn target(
    (id, driver): (BodyId, Driver),
    history: &BodyHistory<Tanks>,
    cadence: Cadence,
    seen: ServerTime,
    own: ServerTime,
) -> Option<Target> {
    // spec: COMBAT-04
    const BREAKS: [Cause; 3] = [Cause::Death, Cause::Respawn, Cause::Teleport];
    let before = cadence.tick_at(seen).previous()?;
    let mut since = history.after(before).rev();
    let broken = since.find(|(_, record)| BREAKS.iter().any(|cause| record.causes.contains(*cause)));
    let moment = broken.map_or(seen, |(tick, _)| cadence.end_of(tick).max(seen));
    let tick = cadence.tick_at(moment);
    let into = moment.saturating_since(cadence.start_of(tick));
    (moment <= own).then_some(Target { id, driver, tick, into })
}

/// Whether somebody can have been near enough, by where it stood at the start of the tick and how fast it is.
fn may_meet(ray: &Ray, length: f64, history: &BodyHistory<Tanks>, target: Target) -> bool {
    let start = target.tick.previous().and_then(|start| history.get(start));
    start.and_then(|start| start.after.tank()).is_some_and(|tank| {
        let speed = tank.params.speed() + Tanks::SEPARATION_SPEED + Platform::TOP_SPEED;
        let way = speed * target.into.as_secs_f64();
        ray.passes(Vec2::new(tank.x, tank.y), length, HULL_RADIUS + way + PUT_BACK)
    })
}
