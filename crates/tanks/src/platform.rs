//! [`Platform`]: a ferry whose place follows from the time alone.

use core::time::Duration;

use halftrack::{Body, ServerTime};

use crate::arena::Arena;
use crate::collide::{TO_WALL, Vec2};

/// A square floor that goes to and fro between two points, and carries what stands on it.
///
/// Its place is a function of the server's time, whole multiples of the grid at every moment. So it costs no bits, and a
/// rider that is moved by the same distances never drifts.
///
/// ```
/// use halftrack::ServerTime;
/// use tanks::Platform;
///
/// let ferry = Platform::new([0.0, 0.0], [12.0, 0.0], 16_000_000);
/// assert_eq!(ferry.at(ServerTime::from_micros(8_000_000)), [12.0, 0.0]);
/// assert_eq!(ferry.at(ServerTime::from_micros(12_000_000)), [6.0, 0.0], "on its way back");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Platform::new([0.0, 0.0], [0.0, 0.0], 10_000_000))]
pub struct Platform {
    /// Metres east, of its middle.
    #[grid(1/1024, -512..=511)]
    pub x: f64,
    /// Metres north.
    #[grid(1/1024, -512..=511)]
    pub y: f64,
    /// Where it is at time zero.
    #[grid(1/16, -512..=511)]
    pub from: [f32; 2],
    /// Where it is half a period later.
    #[grid(1/16, -512..=511)]
    pub to: [f32; 2],
    /// There and back, microseconds.
    #[micros(1_000_000..=600_000_000)]
    pub period: u32,
}

impl Platform {
    /// Half of its side, metres: two tanks fit onto it.
    pub const HALF: f64 = 3.0;
    /// The fastest platform, metres per second. A tank can catch up with it.
    pub const TOP_SPEED: f64 = 4.0;
    const GRID: f64 = 1.0 / 1024.0;

    /// A platform as it is at time zero. `period` is in microseconds; a shorter one than [`Self::TOP_SPEED`] allows becomes
    /// the shortest possible.
    pub fn new(from: [f32; 2], to: [f32; 2], period: u32) -> Self {
        let mut platform = Self { x: f64::from(from[0]), y: f64::from(from[1]), from, to, period };
        platform.settle();
        platform.period = platform.period.max(platform.shortest_period());
        platform
    }

    /// The same at another time.
    #[must_use]
    pub fn moved_to(self, time: ServerTime) -> Self {
        let [x, y] = self.at(time);
        Self { x, y, ..self }
    }

    /// The place of its middle at `time`.
    pub fn at(&self, time: ServerTime) -> [f64; 2] {
        let Vec2 { x, y } = self.middle(time);
        [x, y]
    }

    /// Whether a point is on it.
    #[inline]
    pub fn supports(&self, x: f64, y: f64) -> bool {
        (x - self.x).abs() <= Self::HALF && (y - self.y).abs() <= Self::HALF
    }

    pub(crate) fn middle(&self, time: ServerTime) -> Vec2 {
        let period = self.period.max(self.shortest_period());
        let part = (time.as_micros() % u64::from(period)) as f64 / f64::from(period) * 2.0;
        let way = if part > 1.0 { 2.0 - part } else { part };
        // Starts and ends slowly, at most half as fast again as the mean.
        let eased = way * way * (3.0 - 2.0 * way);
        let along = |from: f32, to: f32| {
            let (from, to) = (f64::from(from), f64::from(to));
            libm::floor((from + (to - from) * eased) / Self::GRID + 0.5) * Self::GRID
        };
        Vec2::new(along(self.from[0], self.to[0]), along(self.from[1], self.to[1]))
    }

    /// How far it goes within a span that begins at `time`.
    pub(crate) fn way(&self, time: ServerTime, span: Duration) -> Vec2 {
        self.middle(time + span) - self.middle(time)
    }

    /// The shortest period for its way, whatever it was made of.
    fn shortest_period(&self) -> u32 {
        let [east, north] = [self.to[0] - self.from[0], self.to[1] - self.from[1]].map(f64::from);
        // Half a period each way, and its top speed is half as fast again as the mean.
        let seconds = 3.0 * libm::hypot(east, north) / Self::TOP_SPEED;
        ((seconds * 1e6) as u32).saturating_add(1).max(1_000_000)
    }

    /// Platforms for an arena, at most `count`: each where the longest free lane along an axis is left. The same arena gives
    /// the same platforms.
    pub(crate) fn fleet(arena: &Arena, count: u8) -> Vec<Self> {
        let mut fleet: Vec<Self> = Vec::new();
        for _ in 0..count {
            let Some((from, to)) = longest_lane(arena, &fleet) else { break };
            let length = f64::from((to[0] - from[0]).abs() + (to[1] - from[1]).abs());
            // 2.5 m/s in the mean: a tank that drives beside it is faster.
            let period = (length * 2.0 / 2.5 * 1e6) as u32;
            fleet.push(Self::new(from, to, period));
        }
        fleet
    }

    /// Whether its lane, riders included, comes near a point.
    fn is_near_lane(&self, point: Vec2) -> bool {
        let within = |at: f64, one: f32, other: f32| {
            let (low, high) = (f64::from(one.min(other)), f64::from(one.max(other)));
            (low - LANE_APART..=high + LANE_APART).contains(&at)
        };
        within(point.x, self.from[0], self.to[0]) && within(point.y, self.from[1], self.to[1])
    }
}

/// From the middle of a platform to the nearest wall: a rider at its edge has room.
const CLEAR: f64 = Platform::HALF + TO_WALL;
/// Lanes have this between their middles, so that riders of two platforms never touch.
const LANE_APART: f64 = 2.0 * CLEAR;
/// Points along each side that are looked at, whatever the arena's size.
const LATTICE: u32 = 64;
/// A shorter lane is no way to go, and a longer one takes too long, metres.
const SHORTEST: f64 = 8.0;
const LONGEST: f64 = 36.0;

fn longest_lane(arena: &Arena, fleet: &[Platform]) -> Option<([f32; 2], [f32; 2])> {
    let [width, height] = arena.size();
    let along = |index: u32, side: f64| {
        // On the grid of a lane's ends.
        let at = ((f64::from(index) + 0.5) / f64::from(LATTICE) - 0.5) * side;
        libm::floor(at * 16.0) / 16.0
    };
    let is_free = |point: Vec2| {
        arena.clearance([point.x, point.y]) >= CLEAR && !fleet.iter().any(|other| other.is_near_lane(point))
    };
    let mut best: Option<(f64, Vec2, Vec2)> = None;
    for eastward in [true, false] {
        let point = |line: u32, at: u32| {
            let (column, row) = if eastward { (at, line) } else { (line, at) };
            Vec2::new(along(column, width), along(row, height))
        };
        for line in 0..LATTICE {
            let mut start = None;
            for at in 0..LATTICE {
                let here = point(line, at);
                if !is_free(here) {
                    start = None;
                    continue;
                }
                let from = *start.get_or_insert(here);
                let way = here - from;
                let length = way.x + way.y;
                if length > LONGEST {
                    continue;
                }
                if length >= SHORTEST && best.is_none_or(|(longest, ..)| length > longest) {
                    best = Some((length, from, here));
                }
            }
        }
    }
    best.map(|(_, from, to)| ([from.x as f32, from.y as f32], [to.x as f32, to.y as f32]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_keeps_its_timetable_on_the_grid_and_below_its_top_speed() {
        let ferry = Platform::new([-3.0, 4.5], [20.0, 4.5], 1_000_000);
        assert!(ferry.period > 17_000_000, "its way takes that long");
        let step = Duration::from_micros(16_667);
        for nth in 0..4_000u32 {
            let time = ServerTime::ZERO + step * nth;
            let mut here = ferry.moved_to(time);
            let before = here;
            assert!(here.settle().is_clean());
            assert_eq!(here, before, "it is on the grid at any moment");
            let way = ferry.way(time, step);
            assert!(way.dot(way).sqrt() <= Platform::TOP_SPEED * step.as_secs_f64() + Platform::GRID);
        }
    }

    #[test]
    fn lanes_are_free_of_walls_and_of_each_other() {
        for arena in [Arena::proving_ground(), Arena::open_ground(16), Arena::open_ground(200)] {
            let fleet = Platform::fleet(&arena, 4);
            assert!(!fleet.is_empty());
            for ferry in &fleet {
                for part in 0..=100u32 {
                    let time = ServerTime::from_micros(u64::from(ferry.period / 200 * part));
                    let at = ferry.at(time);
                    assert!(arena.clearance(at) >= CLEAR - 0.75, "{at:?} of {ferry:?}");
                    let others = fleet.iter().filter(|other| *other != ferry);
                    assert!(others.into_iter().all(|other| !other.is_near_lane(at.into())));
                }
            }
        }
        assert_eq!(Platform::fleet(&Arena::new([8.0, 8.0], vec![]).unwrap(), 2), [], "no room");
    }
}
