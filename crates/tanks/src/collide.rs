//! A round hull swept through the arena and along other hulls: it stops at what it meets and slides on.
//!
//! Swept, so that no speed and no cadence lets it through a wall; and in a bounded number of contacts. Knows
//! shapes and metres, neither tanks nor time.

use core::ops::{Add, Mul, Sub};

use halftrack::Contact;

use crate::arena::{Arena, Obstacle};

/// How far a hull's middle stays from whatever it touches. Round: turning on the spot never needs room.
pub const HULL_RADIUS: f64 = 1.5;

/// Grid of positions: settling moves a hull by at most 0.71 of this.
const GRID: f64 = 1.0 / 1024.0;
/// Hulls keep this much more distance, so that settling never puts one into a wall: 0.71 of the grid by the
/// rounding of this tick, on top of up to one grid that is not worth pushing back for.
const SKIN: f64 = 3.0 * GRID;
pub(crate) const TO_WALL: f64 = HULL_RADIUS + SKIN;
const TO_HULL: f64 = 2.0 * HULL_RADIUS + SKIN;
/// The most that a hull which has come too near a wall is put back by in one step.
const PUSH_BACK: f64 = 4.0 * GRID;

/// Surfaces met in one step. A corner is two; with more, a hull is wedged and stays.
const MAX_CONTACTS: usize = 4;
/// Metres. A motion that goes into a surface by no more than this goes along it.
const GRAZE: f64 = 1e-9;

/// A point or a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vec2 {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl Vec2 {
    pub(crate) const ZERO: Self = Self { x: 0.0, y: 0.0 };

    pub(crate) const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y
    }

    /// Direction and length; `None` when it has no direction.
    fn split(self) -> Option<(Self, f64)> {
        let length = self.dot(self).sqrt();
        (length > 0.0).then(|| (self * (1.0 / length), length))
    }
}

impl From<[f64; 2]> for Vec2 {
    fn from([x, y]: [f64; 2]) -> Self {
        Self { x, y }
    }
}

impl Add for Vec2 {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }
}

impl Sub for Vec2 {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y)
    }
}

impl Mul<f64> for Vec2 {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self::new(self.x * factor, self.y * factor)
    }
}

/// A box along the axes, grown by `reach` on all sides, its corners round: where the middle of a hull cannot go.
///
/// Blocks, pillars and other hulls are all of this kind; the last two have no box in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    center: Vec2,
    /// Half of the box's sides.
    half: Vec2,
    reach: f64,
    contact: Contact,
}

impl From<&Obstacle> for Shape {
    fn from(obstacle: &Obstacle) -> Self {
        let (center, half, radius) = match *obstacle {
            Obstacle::Block { min, max } => {
                let (min, max) = (Vec2::from(min), Vec2::from(max));
                ((min + max) * 0.5, (max - min) * 0.5, 0.0)
            }
            Obstacle::Pillar { center, radius } => (center.into(), Vec2::ZERO, radius),
        };
        Self { center, half, reach: radius + TO_WALL, contact: Contact::Free }
    }
}

impl Shape {
    fn hull(center: Vec2) -> Self {
        Self { center, half: Vec2::ZERO, reach: TO_HULL, contact: Contact::Touched }
    }

    /// From the nearest point of the box to `point`; zero inside it.
    #[inline]
    fn from_box(&self, point: Vec2) -> Vec2 {
        let beyond = |to: f64, half: f64| {
            let beyond = to.abs() - half;
            if beyond > 0.0 { beyond.copysign(to) } else { 0.0 }
        };
        let to = point - self.center;
        Vec2::new(beyond(to.x, self.half.x), beyond(to.y, self.half.y))
    }

    /// How far the hull of a tank at `point` is from it; negative when it is in it.
    pub(crate) fn clearance(&self, point: Vec2) -> f64 {
        match self.from_box(point).split() {
            Some((_, distance)) => distance - self.reach,
            None => self.way_out(point).1 - self.reach,
        }
    }

    /// From inside the box: the way to its nearest side, and the distance, negative.
    fn way_out(&self, point: Vec2) -> (Vec2, f64) {
        let to = point - self.center;
        let (x, y) = (to.x.abs() - self.half.x, to.y.abs() - self.half.y);
        if x > y { (Vec2::new(1f64.copysign(to.x), 0.0), x) } else { (Vec2::new(0.0, 1f64.copysign(to.y)), y) }
    }

    /// Where a hull at `at` that moves by `motion`, no longer than `length`, first meets it.
    #[inline]
    fn hit(&self, at: Vec2, motion: Vec2, length: f64) -> Option<Hit> {
        let away = self.from_box(at);
        let square = away.dot(away);
        let far = self.reach + length;
        // Its surface is convex: whoever moves away from its nearest point never meets it.
        if square > far * far || (away.dot(motion) >= 0.0 && square > 0.0) {
            return None;
        }
        let (time, normal, depth) = if square > self.reach * self.reach {
            let (time, normal) = self.sweep(at, motion)?;
            (time, normal, 0.0)
        } else {
            let (normal, distance) = axial(away).or_else(|| away.split()).unwrap_or_else(|| self.way_out(at));
            (0.0, normal, self.reach - distance)
        };
        let meets = motion.dot(normal) < -GRAZE;
        meets.then_some(Hit { time, normal, depth, contact: self.contact })
    }

    /// The part of `motion` before it meets the surface from outside, and the surface's direction there.
    #[inline]
    fn sweep(&self, at: Vec2, motion: Vec2) -> Option<(f64, Vec2)> {
        let to = at - self.center;
        let (enter_x, leave_x) = slab(to.x, motion.x, self.half.x + self.reach)?;
        let (enter_y, leave_y) = slab(to.y, motion.y, self.half.y + self.reach)?;
        let time = enter_x.max(enter_y);
        if time > leave_x.min(leave_y) || time > 1.0 {
            return None;
        }
        // Between the outer lines already: then it is beside a corner.
        let entry = at + motion * time.max(0.0);
        let beyond = self.from_box(entry);
        if beyond.x != 0.0 && beyond.y != 0.0 {
            return circle(at, motion, entry - beyond, self.reach);
        }
        let normal = if enter_x > enter_y {
            Vec2::new(-1f64.copysign(motion.x), 0.0)
        } else {
            Vec2::new(0.0, -1f64.copysign(motion.y))
        };
        Some((time.max(0.0), normal))
    }
}

/// Direction and length of a vector along an axis, without a root.
#[inline]
fn axial(vector: Vec2) -> Option<(Vec2, f64)> {
    if vector.y == 0.0 && vector.x != 0.0 {
        Some((Vec2::new(1f64.copysign(vector.x), 0.0), vector.x.abs()))
    } else if vector.x == 0.0 && vector.y != 0.0 {
        Some((Vec2::new(0.0, 1f64.copysign(vector.y)), vector.y.abs()))
    } else {
        None
    }
}

/// When a coordinate enters and leaves `-half..half`; `None` when it never is between.
#[inline]
fn slab(at: f64, motion: f64, half: f64) -> Option<(f64, f64)> {
    if motion == 0.0 {
        return (at.abs() < half).then_some((f64::NEG_INFINITY, f64::INFINITY));
    }
    let ahead = half.copysign(motion);
    Some(((-ahead - at) / motion, (ahead - at) / motion))
}

/// A circle met from outside.
#[inline]
fn circle(at: Vec2, motion: Vec2, center: Vec2, radius: f64) -> Option<(f64, Vec2)> {
    let between = at - center;
    let approach = between.dot(motion);
    let outside = between.dot(between) - radius * radius;
    let discriminant = approach * approach - motion.dot(motion) * outside;
    if discriminant <= 0.0 || approach >= 0.0 {
        return None;
    }
    // The smaller root, in the form that does not cancel.
    let time = outside / (discriminant.sqrt() - approach);
    let (normal, _) = (between + motion * time).split()?;
    (time <= 1.0).then_some((time.max(0.0), normal))
}

/// Where a motion meets a surface.
#[derive(Clone, Copy, Debug)]
struct Hit {
    /// The part of the motion before it.
    time: f64,
    /// Away from the surface.
    normal: Vec2,
    /// How much too near the hull is there.
    depth: f64,
    contact: Contact,
}

/// What a hull moves among.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a, H> {
    pub(crate) arena: &'a Arena,
    /// The middles of other hulls.
    pub(crate) hulls: H,
}

impl<H: Iterator<Item = Vec2> + Clone> Space<'_, H> {
    /// Moves a hull from `from` along `motion`: up to what it meets, and along that.
    #[inline]
    pub(crate) fn slide(&self, from: Vec2, motion: Vec2) -> (Vec2, Contact) {
        let length = motion.x.abs() + motion.y.abs();
        let near = self.arena.near(from, length);
        let end = from + motion;
        if near.is_empty() && self.hulls.clone().next().is_none() && self.arena.has_room(end) {
            return (end, Contact::Free);
        }
        self.slide_among(near, from, motion, length)
    }

    /// [`Self::slide`], with `near` all that `motion`, no longer than `length`, can meet besides hulls and walls.
    #[inline(never)]
    fn slide_among(&self, near: &[Shape], from: Vec2, motion: Vec2, length: f64) -> (Vec2, Contact) {
        let (mut at, mut left, mut contact) = (from, motion, Contact::Free);
        let mut met: Option<Vec2> = None;
        for _ in 0..MAX_CONTACTS {
            if left.dot(left) <= GRAZE * GRAZE {
                break;
            }
            let Some(hit) = self.first_hit(near, at, left, length) else {
                return (at + left, contact);
            };
            at = at + left * hit.time;
            contact = contact.or(hit.contact);
            // Hulls push each other apart by themselves.
            if hit.depth > GRID && hit.contact == Contact::Free {
                at = at + hit.normal * hit.depth.min(PUSH_BACK);
            }
            let rest = left * (1.0 - hit.time);
            left = rest - hit.normal * rest.dot(hit.normal);
            // Between two surfaces: what slides along one goes into the other.
            if met.is_some_and(|normal| left.dot(normal) < -GRAZE) {
                break;
            }
            met = Some(hit.normal);
        }
        (at, contact)
    }

    /// How a hull at `at` is pushed away from hulls it overlaps: each gives way by half, and by at most `most`.
    pub(crate) fn separation(&self, at: Vec2, most: f64) -> Option<Vec2> {
        let mut push: Option<Vec2> = None;
        for hull in self.hulls.clone() {
            let between = at - hull;
            if between.dot(between) >= (TO_HULL - GRID) * (TO_HULL - GRID) {
                continue;
            }
            // Two hulls in the very same place have no way apart but to drive.
            let Some((normal, distance)) = between.split() else { continue };
            let away = normal * most.min((TO_HULL - distance) / 2.0);
            push = Some(push.unwrap_or(Vec2::ZERO) + away);
        }
        push.map(|push| match push.split() {
            Some((direction, length)) if length > most => direction * most,
            _ => push,
        })
    }

    /// The first surface that `motion`, no longer than `length`, meets. Of two at once, the one found first.
    #[inline]
    fn first_hit(&self, near: &[Shape], at: Vec2, motion: Vec2, length: f64) -> Option<Hit> {
        let mut first = self.outer_walls(at, motion);
        let shapes = near.iter().copied().chain(self.hulls.clone().map(Shape::hull));
        for shape in shapes {
            if let Some(hit) = shape.hit(at, motion, length)
                && first.is_none_or(|first| hit.time < first.time)
            {
                first = Some(hit);
                if hit.time == 0.0 {
                    break;
                }
            }
        }
        first
    }

    #[inline]
    fn outer_walls(&self, at: Vec2, motion: Vec2) -> Option<Hit> {
        if self.arena.has_room(at + motion) {
            return None;
        }
        let room = self.arena.room();
        let x = wall(at.x, motion.x, room.x).map(|hit| hit.facing(|side| Vec2::new(side, 0.0)));
        let y = wall(at.y, motion.y, room.y).map(|hit| hit.facing(|side| Vec2::new(0.0, side)));
        match (x, y) {
            (Some(x), Some(y)) => Some(if y.time < x.time { y } else { x }),
            (x, y) => x.or(y),
        }
    }
}

/// A meeting with an outer wall, along one axis.
#[derive(Clone, Copy, Debug)]
struct WallHit {
    time: f64,
    /// The direction away from the wall, along its axis.
    side: f64,
    depth: f64,
}

impl WallHit {
    fn facing(self, normal: impl Fn(f64) -> Vec2) -> Hit {
        Hit { time: self.time, normal: normal(self.side), depth: self.depth, contact: Contact::Free }
    }
}

/// The walls at `-room` and `room`.
fn wall(at: f64, motion: f64, room: f64) -> Option<WallHit> {
    let side = 1f64.copysign(motion);
    let (ahead, speed) = (room - at * side, motion.abs());
    if speed <= GRAZE || ahead > speed {
        return None;
    }
    Some(WallHit { time: (ahead / speed).max(0.0), side: -side, depth: (-ahead).max(0.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arena(obstacles: Vec<Obstacle>) -> Arena {
        Arena::new([200.0, 200.0], obstacles).unwrap()
    }

    fn space<'a>(arena: &'a Arena, hulls: &[Vec2]) -> Space<'a, std::vec::IntoIter<Vec2>> {
        Space { arena, hulls: hulls.to_vec().into_iter() }
    }

    fn block() -> Obstacle {
        Obstacle::Block { min: [0.0, 0.0], max: [10.0, 10.0] }
    }

    #[test]
    fn a_wall_stops_what_goes_into_it_and_lets_the_rest_slide() {
        let arena = arena(vec![]);
        let (at, contact) = space(&arena, &[]).slide(Vec2::new(95.0, 0.0), Vec2::new(6.0, 2.0));
        assert_eq!(contact, Contact::Free);
        assert!((at.x - (100.0 - TO_WALL)).abs() < 1e-12);
        assert!((at.y - 2.0).abs() < 1e-12, "the way along the wall is not lost");
    }

    #[test]
    fn a_corner_of_the_arena_holds() {
        let arena = arena(vec![]);
        let (at, _) = space(&arena, &[]).slide(Vec2::new(97.0, 97.0), Vec2::new(5.0, 4.0));
        assert!((at.x - (100.0 - TO_WALL)).abs() < 1e-12 && (at.y - (100.0 - TO_WALL)).abs() < 1e-12);
    }

    #[test]
    fn a_block_is_met_at_its_faces_and_round_its_corners() {
        let arena = arena(vec![block()]);
        let slide = |x, y, mx, my| space(&arena, &[]).slide(Vec2::new(x, y), Vec2::new(mx, my)).0;
        let face = slide(-3.0, 5.0, 4.0, 0.0);
        assert!((face.x + TO_WALL).abs() < 1e-12 && face.y == 5.0);
        let past = slide(-3.0, 10.0 + TO_WALL + 0.001, 6.0, 0.0);
        assert_eq!(past.x, 3.0, "just outside passes");
        let corner = slide(-3.0, 10.0 + TO_WALL - 0.2, 5.0, 0.0);
        assert!(corner.y > 10.0 + TO_WALL - 0.2 && corner.x > -1.0, "just inside is led round it: {corner:?}");
        let diagonal = slide(-3.0, -3.0, 4.0, 4.0);
        assert!(Shape::from(&block()).clearance(diagonal) >= -1e-9);
    }

    #[test]
    fn hulls_are_met_and_told() {
        let arena = arena(vec![]);
        let other = [Vec2::new(5.0, 0.0)];
        let (at, contact) = space(&arena, &other).slide(Vec2::ZERO, Vec2::new(6.0, 0.0));
        assert_eq!(contact, Contact::Touched);
        assert!((at.x - (5.0 - TO_HULL)).abs() < 1e-12);
        let (_, passing) = space(&arena, &other).slide(Vec2::new(0.0, TO_HULL + 0.001), Vec2::new(6.0, 0.0));
        assert_eq!(passing, Contact::Free);
    }

    #[test]
    fn overlapping_hulls_give_way_by_half_and_within_the_limit() {
        let arena = arena(vec![]);
        let push = |distance: f64, most| space(&arena, &[Vec2::ZERO]).separation(Vec2::new(distance, 0.0), most);
        assert_eq!(push(TO_HULL, 1.0), None);
        assert_eq!(push(TO_HULL - GRID, 1.0), None, "settling alone does not push");
        assert!((push(TO_HULL - 0.5, 1.0).unwrap().x - 0.25).abs() < 1e-12);
        assert_eq!(push(0.5, 0.1).unwrap().x, 0.1);
        assert_eq!(push(0.0, 0.1), None);
        let around = [Vec2::new(-1.0, 0.0), Vec2::new(-1.0, 0.1), Vec2::new(-1.0, -0.1)];
        let push = space(&arena, &around).separation(Vec2::ZERO, 0.1).unwrap();
        assert!((push.x - 0.1).abs() < 1e-9, "three do not push harder than one may");
    }

    #[test]
    fn a_hull_too_near_is_put_back_only_when_it_moves_in() {
        let arena = arena(vec![block()]);
        let near = Vec2::new(-TO_WALL + 2.0 * GRID, 5.0);
        let (at, _) = space(&arena, &[]).slide(near, Vec2::new(0.1, 0.0));
        assert!((at.x + TO_WALL).abs() < 1e-12);
        let (at, _) = space(&arena, &[]).slide(near, Vec2::new(0.0, 0.1));
        assert_eq!(at, near + Vec2::new(0.0, 0.1));
    }

    proptest! {
        /// Whatever the motion: no obstacle is entered or crossed, and no way is gained.
        #[test]
        fn nothing_tunnels(x in -96.0f64..96.0, y in -96.0f64..96.0, angle in 0.0f64..6.3, length in 0.0f64..8.0) {
            let thin = Obstacle::Block { min: [-90.0, -0.1], max: [90.0, 0.1] };
            let obstacles = vec![
                thin,
                Obstacle::Block { min: [20.0, 4.0], max: [40.0, 60.0] },
                Obstacle::Pillar { center: [-30.0, 30.0], radius: 6.0 },
                Obstacle::Pillar { center: [-30.0, -30.0], radius: 0.05 },
            ];
            let arena = arena(obstacles);
            let from = Vec2::new(x, y);
            prop_assume!(arena.clearance([x, y]) >= TO_WALL);
            let motion = Vec2::new(angle.cos(), angle.sin()) * length;
            let (at, _) = space(&arena, &[]).slide(from, motion);
            prop_assert!(arena.clearance([at.x, at.y]) >= TO_WALL - 1e-6, "{at:?}");
            let moved = at - from;
            prop_assert!(moved.dot(moved).sqrt() <= length + 1e-9);
            if x.abs() < 80.0 {
                prop_assert_eq!(y > 0.0, at.y > 0.0, "crossed the thin wall");
            }
        }
    }
}
