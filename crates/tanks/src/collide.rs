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
/// From how far a hull that does not move can be touched, and some more.
pub(crate) const HULL_REACH: f64 = TO_HULL + 0.1;
/// How deep a tank can push into a crate before it is stopped as by a wall, metres: more than it drives in a tick.
const CRATE_RIM: f64 = 0.75;
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

    const EAST: Self = Self { x: 1.0, y: 0.0 };
    const NORTH: Self = Self { x: 0.0, y: 1.0 };

    fn abs(self) -> Self {
        Self::new(self.x.abs(), self.y.abs())
    }

    /// 1 or -1 for each part.
    fn signs(self) -> Self {
        Self::new(1f64.copysign(self.x), 1f64.copysign(self.y))
    }

    /// Parts below zero made zero.
    fn or_zero(self) -> Self {
        let or_zero = |part: f64| if part > 0.0 { part } else { 0.0 };
        Self::new(or_zero(self.x), or_zero(self.y))
    }

    pub(crate) fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y
    }

    /// Direction and length; `None` when it has no direction.
    pub(crate) fn split(self) -> Option<(Self, f64)> {
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

/// Part by part.
impl Mul for Vec2 {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.x * other.x, self.y * other.y)
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
    fn hull(hull: Round) -> Self {
        Self { center: hull.at, half: Vec2::ZERO, reach: hull.apart, contact: Contact::Touched }
    }

    /// How far the hull of a tank at `point` is from it; negative when it is in it.
    pub(crate) fn clearance(&self, point: Vec2) -> f64 {
        let beyond = (point - self.center).abs() - self.half;
        let inside = beyond.x.max(beyond.y).min(0.0);
        let away = beyond.or_zero();
        inside + away.dot(away).sqrt() - self.reach
    }

    /// Makes it the `first` thing met by a hull at `at` that moves by `motion`, no longer than `length`, if so.
    #[inline]
    fn meet(&self, at: Vec2, motion: Vec2, length: f64, first: &mut Hit) {
        // It looks the same from all four quarters: seen from the first, `to` has no signs.
        let to = at - self.center;
        let quarter = to.signs();
        let (to, motion) = (to.abs(), motion * quarter);
        let beyond = to - self.half;
        let far = self.reach + length;
        if beyond.x > far || beyond.y > far {
            return;
        }
        match (beyond.x > 0.0, beyond.y > 0.0) {
            (true, false) => {
                let normal = Vec2::new(quarter.x, 0.0);
                let (x, y) = ((beyond.x, motion.x), (to.y, motion.y));
                if !self.meet_face(x, y, self.half.y, normal, first) {
                    self.meet_anywhere(to, motion, quarter, first);
                }
            }
            (false, true) => {
                let normal = Vec2::new(0.0, quarter.y);
                let (x, y) = ((to.x, motion.x), (beyond.y, motion.y));
                if !self.meet_face(y, x, self.half.x, normal, first) {
                    self.meet_anywhere(to, motion, quarter, first);
                }
            }
            (true, true) => self.meet_corner(to, motion, quarter, first),
            (false, false) => {
                let (way_out, depth) = self.way_out(beyond);
                self.offer(0.0, way_out * quarter, depth, motion.dot(way_out), first);
            }
        }
    }

    /// A hull before a face: how far `beyond` it and moving how, where `along` it and moving how. The face is
    /// `half` long either way. Gives false when it passes the face's end before it meets it.
    #[inline(always)]
    fn meet_face(
        &self,
        (beyond, into): (f64, f64),
        (along, by): (f64, f64),
        half: f64,
        normal: Vec2,
        first: &mut Hit,
    ) -> bool {
        let before = beyond - self.reach;
        if into >= -GRAZE || before + into > 0.0 {
            return true;
        }
        let time = if before > 0.0 { before / -into } else { 0.0 };
        if (along + by * time).abs() > half {
            return false;
        }
        self.offer(time, normal, -before, into, first);
        true
    }

    /// A hull beside a corner, or anywhere around a pillar.
    #[inline]
    fn meet_corner(&self, to: Vec2, motion: Vec2, quarter: Vec2, first: &mut Hit) {
        let away = to - self.half;
        // The surface is convex: whoever moves away from its nearest point, or along it, never meets it. (A hull is
        // more than a metre from a corner, so this is no wider than the graze itself.)
        if away.dot(motion) >= -GRAZE {
            return;
        }
        if away.dot(away) <= self.reach * self.reach {
            let (normal, distance) = away.split().unwrap_or((Vec2::EAST, 0.0));
            self.offer(0.0, normal * quarter, self.reach - distance, motion.dot(normal), first);
            return;
        }
        // Right beside a corner there is nothing else to meet, nor is there where the box is a point.
        let beside = away.x <= self.reach && away.y <= self.reach;
        if !beside && self.half != Vec2::ZERO {
            self.meet_anywhere(to, motion, quarter, first);
        } else if let Some((time, normal)) = circle(away, motion, self.reach) {
            self.offer(time, normal * quarter, 0.0, motion.dot(normal), first);
        }
    }

    /// The general case: from outside, whatever part of the surface it may be.
    #[inline(never)]
    fn meet_anywhere(&self, to: Vec2, motion: Vec2, quarter: Vec2, first: &mut Hit) {
        if let Some((time, normal)) = self.sweep(to, motion) {
            self.offer(time, normal * quarter, 0.0, motion.dot(normal), first);
        }
    }

    /// A meeting, by a motion that goes `into` the surface so far (below zero): the first if it is.
    #[inline]
    fn offer(&self, time: f64, normal: Vec2, depth: f64, into: f64, first: &mut Hit) {
        if time < first.time && into < -GRAZE {
            *first = Hit { time, normal, depth, contact: self.contact };
        }
    }

    /// From inside the box: the way to its nearest side, and how deep the hull is.
    fn way_out(&self, beyond: Vec2) -> (Vec2, f64) {
        let (normal, beyond) =
            if beyond.x > beyond.y { (Vec2::EAST, beyond.x) } else { (Vec2::NORTH, beyond.y) };
        (normal, self.reach - beyond)
    }

    /// The part of `motion` before a hull, `to` away from the middle, meets the surface from anywhere outside,
    /// and the surface's direction there.
    fn sweep(&self, to: Vec2, motion: Vec2) -> Option<(f64, Vec2)> {
        let (enter_x, leave_x) = slab(to.x, motion.x, self.half.x + self.reach)?;
        let (enter_y, leave_y) = slab(to.y, motion.y, self.half.y + self.reach)?;
        let time = enter_x.max(enter_y).max(0.0);
        if time > leave_x.min(leave_y) || time > 1.0 {
            return None;
        }
        let entry = to + motion * time;
        let beyond = (entry.abs() - self.half).or_zero();
        if beyond.x > 0.0 && beyond.y > 0.0 {
            let corner = self.half * entry.signs();
            return circle(to - corner, motion, self.reach);
        }
        let normal = if enter_x > enter_y { Vec2::EAST } else { Vec2::NORTH };
        Some((time, normal * entry.signs()))
    }
}

/// When a coordinate enters and leaves `-half..half`; `None` when it never is between.
fn slab(at: f64, motion: f64, half: f64) -> Option<(f64, f64)> {
    if motion == 0.0 {
        return (at.abs() < half).then_some((f64::NEG_INFINITY, f64::INFINITY));
    }
    let ahead = half.copysign(motion);
    Some(((-ahead - at) / motion, (ahead - at) / motion))
}

/// A circle around the origin, met by `motion` from outside.
#[inline]
fn circle(from: Vec2, motion: Vec2, radius: f64) -> Option<(f64, Vec2)> {
    let approach = from.dot(motion);
    let outside = from.dot(from) - radius * radius;
    let discriminant = approach * approach - motion.dot(motion) * outside;
    if discriminant <= 0.0 || approach >= 0.0 {
        return None;
    }
    // The smaller root, in the form that does not cancel. There, the distance is the radius: no root for that.
    let time = outside / (discriminant.sqrt() - approach);
    let time = if time > 0.0 { time } else { 0.0 };
    (time <= 1.0).then(|| (time, (from + motion * time) * (1.0 / radius)))
}

/// Where a motion meets a surface.
#[derive(Clone, Copy, Debug)]
struct Hit {
    /// The part of the motion before it; infinite when it meets none.
    time: f64,
    /// Away from the surface.
    normal: Vec2,
    /// How much too near the hull is there.
    depth: f64,
    contact: Contact,
}

impl Hit {
    const NEVER: Self = Self { time: f64::INFINITY, normal: Vec2::ZERO, depth: 0.0, contact: Contact::Free };
}

/// Another hull, as the one that moves sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Round {
    pub(crate) at: Vec2,
    /// The least distance between the two middles.
    pub(crate) apart: f64,
    /// The part of the way apart that the one that moves takes.
    pub(crate) share: f64,
}

impl Round {
    /// Two tanks, or two crates, each of which gives way by half.
    pub(crate) const fn hull(at: Vec2) -> Self {
        Self { at, apart: TO_HULL, share: 0.5 }
    }

    /// A tank, as a crate sees it: the crate gives way.
    pub(crate) const fn pusher(at: Vec2) -> Self {
        Self { at, apart: TO_HULL, share: 1.0 }
    }

    /// A crate, as a tank sees it: the tank pushes into its rim, and only the core stops it.
    pub(crate) const fn core(at: Vec2) -> Self {
        Self { at, apart: TO_HULL - CRATE_RIM, share: 0.5 }
    }
}

/// What a hull moves among.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a, H> {
    pub(crate) arena: &'a Arena,
    /// Other hulls.
    pub(crate) hulls: H,
}

impl<H: Iterator<Item = Round> + Clone> Space<'_, H> {
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
        let mut met = Vec2::ZERO;
        for _ in 0..MAX_CONTACTS {
            let hit = self.first_hit(near, at, left, length);
            if hit.time > 1.0 {
                return (at + left, contact);
            }
            at = at + left * hit.time;
            contact = contact.or(hit.contact);
            // Hulls push each other apart by themselves.
            if hit.depth > GRID && hit.contact == Contact::Free {
                at = at + hit.normal * hit.depth.min(PUSH_BACK);
            }
            let rest = left * (1.0 - hit.time);
            left = rest - hit.normal * rest.dot(hit.normal);
            // Between two surfaces: what slides along one goes into the other.
            if left.dot(met) < -GRAZE || left.dot(left) <= GRAZE * GRAZE {
                break;
            }
            met = hit.normal;
        }
        (at, contact)
    }

    /// How a hull at `at` is pushed away from hulls it overlaps: by its share of each way apart, and by at most `most`.
    pub(crate) fn separation(&self, at: Vec2, most: f64) -> Option<Vec2> {
        let mut push: Option<Vec2> = None;
        for hull in self.hulls.clone() {
            let between = at - hull.at;
            if between.dot(between) >= (hull.apart - GRID) * (hull.apart - GRID) {
                continue;
            }
            // Two hulls in the very same place have no way apart but to drive.
            let Some((normal, distance)) = between.split() else { continue };
            let away = normal * most.min((hull.apart - distance) * hull.share);
            push = Some(push.unwrap_or(Vec2::ZERO) + away);
        }
        push.map(|push| match push.split() {
            Some((direction, length)) if length > most => direction * most,
            _ => push,
        })
    }

    /// The first surface that `motion`, no longer than `length`, meets; of two at once, the one found first.
    #[inline]
    fn first_hit(&self, near: &[Shape], at: Vec2, motion: Vec2, length: f64) -> Hit {
        let mut first = Hit::NEVER;
        if !self.arena.has_room(at + motion) {
            let room = self.arena.room();
            wall(at.x, motion.x, room.x, Vec2::EAST, &mut first);
            wall(at.y, motion.y, room.y, Vec2::NORTH, &mut first);
        }
        for shape in near {
            shape.meet(at, motion, length, &mut first);
        }
        for hull in self.hulls.clone() {
            Shape::hull(hull).meet(at, motion, length, &mut first);
        }
        first
    }
}

/// The outer walls at `-room` and `room` along `axis`, where a hull is `at` and moves by `motion`.
fn wall(at: f64, motion: f64, room: f64, axis: Vec2, first: &mut Hit) {
    let side = 1f64.copysign(motion);
    let (ahead, speed) = (room - at * side, motion.abs());
    let time = (ahead / speed).max(0.0);
    if speed > GRAZE && time <= 1.0 && time < first.time {
        *first = Hit { time, normal: axis * -side, depth: (-ahead).max(0.0), contact: Contact::Free };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arena(obstacles: Vec<Obstacle>) -> Arena {
        Arena::new([200.0, 200.0], obstacles).unwrap()
    }

    fn space<'a>(arena: &'a Arena, hulls: &'a [Vec2]) -> Space<'a, impl Iterator<Item = Round> + Clone> {
        Space { arena, hulls: hulls.iter().map(|at| Round::hull(*at)) }
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
        assert!(
            corner.y > 10.0 + TO_WALL - 0.2 && corner.x > -1.0,
            "just inside is led round it: {corner:?}"
        );
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
        let push =
            |distance: f64, most| space(&arena, &[Vec2::ZERO]).separation(Vec2::new(distance, 0.0), most);
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
