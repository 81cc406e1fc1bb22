//! A frame as a flat list of numbers, laid out as that of a live match: `crates/tanks-web/API.md` has the layout, and
//! `web/src/client.ts` reads it. What only a recording has comes after it; `API.md` has that.

use core::f64::consts::TAU;

use tanks::TankPose;

use crate::moment::{Row, along, find, way};
use crate::things::{self, Thing};

/// The number of the layout that the page knows.
const LAYOUT: f64 = 3.0;
/// Numbers before the first tank.
const HEADER: usize = 64;
/// A tank's flag: it is no wreck.
const ALIVE: f64 = 2.0;

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    /// Microseconds of the time line: where the picture is, and the end of the tick before it.
    pub(crate) at: u64,
    pub(crate) tick_at: u64,
    pub(crate) interval: u64,
    pub(crate) length: u64,
    /// The server's number of that tick.
    pub(crate) tick: u32,
    /// How much faster than the wall time goes now; 0 if it stands.
    pub(crate) pace: f64,
    pub(crate) speed: f64,
    /// Share of the file that was read.
    pub(crate) read: f64,
    /// Events that wait.
    pub(crate) events: usize,
}

/// A picture between two ticks: all bodies at the one, and at the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bodies<'a> {
    pub(crate) tanks: [&'a [Row]; 2],
    pub(crate) things: [&'a [Thing]; 2],
}

/// Writes a frame between two ticks.
pub(crate) fn write(numbers: &mut Vec<f64>, around: &Around, bodies: Bodies<'_>) {
    let [before, after] = bodies.tanks;
    numbers.clear();
    let millis = |micros: u64| micros as f64 / 1e3;
    let into = around.at.saturating_sub(around.tick_at) as f64 / 1e3;
    let server = f64::from(around.tick) * millis(around.interval) + into;
    numbers.resize(HEADER, 0.0);
    // No pose of an own tank, and no clocks of a client.
    numbers.iter_mut().take(22).skip(10).for_each(|number| *number = f64::NAN);
    for (place, number) in [
        (0, LAYOUT),
        (1, millis(around.at)),
        (3, -1.0),
        (4, before.len() as f64),
        (5, HEADER as f64),
        (30, server),
        (31, f64::NAN),
        (32, server),
        (33, f64::from(around.tick)),
        (34, -1.0),
        (47, around.events as f64),
        (48, millis(around.length)),
        (49, around.read),
        (50, if around.pace > 0.0 { 1.0 } else { 0.0 }),
        (51, around.speed),
    ] {
        if let Some(slot) = numbers.get_mut(place) {
            *slot = number;
        }
    }
    for row in before {
        write_tank(numbers, around, row, find(after, row.fighter));
    }
    let things_at = numbers.len();
    let count = write_things(numbers, around, bodies.things);
    let path_at = numbers.len();
    for (place, number) in [(7, path_at), (52, count), (53, things_at)] {
        if let Some(slot) = numbers.get_mut(place) {
            *slot = number as f64;
        }
    }
}

/// Gives how many were written.
fn write_things(numbers: &mut Vec<f64>, around: &Around, [before, after]: [&[Thing]; 2]) -> usize {
    let share = around.at.saturating_sub(around.tick_at) as f64 / around.interval as f64;
    let mut count = 0;
    for thing in before {
        let Some(pose) = things::between(thing, things::find(after, thing.id), share.min(1.0)) else {
            continue;
        };
        let [x, y, heading] = three(&pose);
        let [told_x, told_y, told_heading] = three(&thing.pose);
        let owner = thing.owner.map_or(-1.0, |owner| owner.key() as f64);
        let id = thing.id.number() as f64;
        numbers.extend([
            id,
            thing.kind,
            x,
            y,
            heading,
            0.0,
            owner,
            f64::NAN,
            -1.0,
            told_x,
            told_y,
            told_heading,
        ]);
        count += 1;
    }
    count
}

fn write_tank(numbers: &mut Vec<f64>, around: &Around, before: &Row, after: Option<&Row>) {
    let seconds = around.interval as f64 / 1e6;
    let way = way(before, after, seconds);
    let share = around.at.saturating_sub(around.tick_at) as f64 / around.interval as f64;
    let pose = along(&before.pose, way, share.min(1.0));
    // The newest shot that the picture has reached.
    let shots = [after.and_then(|after| after.shot), before.shot];
    let shot = shots.into_iter().flatten().find(|shot| shot.at <= around.at);
    let (aim, age) = shot.map_or((f64::NAN, f64::NAN), |shot| (shot.aim, (around.at - shot.at) as f64 / 1e3));
    let (sin, cos) = libm::sincos(pose.heading * TAU);
    let speed = way.map_or(0.0, |way| (way.position[0] * cos + way.position[1] * sin) / seconds);
    let [x, y, heading] = three(&pose);
    let [told_x, told_y, told_heading] = three(&before.pose);
    numbers.extend([
        // Below 2^49, so exact.
        before.fighter.key() as f64,
        x,
        y,
        heading,
        speed * around.pace,
        f64::from(before.hp),
        if before.hp > 0 { ALIVE } else { 0.0 },
        aim,
        age,
        f64::from(before.kills),
        f64::from(before.deaths),
        told_x,
        told_y,
        told_heading,
        around.at.saturating_sub(around.tick_at) as f64 / 1e3,
        // Nothing is said of what carries it.
        -1.0,
    ]);
}

/// A pose as the page has it: metres, metres, radians.
fn three(pose: &TankPose) -> [f64; 3] {
    [pose.x, pose.y, pose.heading * TAU]
}
