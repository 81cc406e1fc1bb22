//! Where a tank comes into the world: clear of walls, and as far from the others as a few throws of dice find.
//!
//! Knows the arena and points, not players.

use core::f64::consts::TAU;

use crate::arena::Arena;
use crate::body::TankPose;
use crate::collide::{HULL_RADIUS, TO_WALL, Vec2};

/// From a hull's middle to the nearest wall: room to turn into any direction and drive off.
const CLEAR: f64 = TO_WALL + 0.5;
/// From one hull's middle to another's: two hulls would fit between.
const APART: f64 = 4.0 * HULL_RADIUS;
/// Places thrown for. The best of so many is far from everybody without always being the same corner.
const THROWS: u32 = 24;
/// Places along each side that are looked at when no throw is good: bounded, whatever the arena's size.
const LATTICE: u32 = 32;

/// Dice of our own: the sequence must never change under us.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// All that is to come depends on this.
    pub(super) fn state(&self) -> u64 {
        self.0
    }

    /// A number in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        // SplitMix64: any seed will do, zero included.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A place for a tank among `others`, facing the middle.
pub(super) fn place(
    arena: &Arena,
    dice: &mut Dice,
    others: impl Iterator<Item = Vec2> + Clone,
) -> Option<TankPose> {
    let [width, height] = arena.size();
    let mut best = Best { arena, others, found: None };
    for _ in 0..THROWS {
        best.offer(Vec2::new((dice.unit() - 0.5) * width, (dice.unit() - 0.5) * height));
    }
    // More tanks than the lattice has places leave none of them free: the best throw will do.
    let roomy = best.others.clone().count() < (LATTICE * LATTICE) as usize;
    if best.found.is_none() || roomy && best.found.is_some_and(|(_, square)| square < APART * APART) {
        lattice(arena).for_each(|point| best.offer(point));
    }
    best.found.map(|(point, _)| facing_the_middle(point))
}

/// Whether there is a place at all.
pub(super) fn has_place(arena: &Arena) -> bool {
    lattice(arena).any(|point| is_clear(arena, point))
}

/// The best place so far, and the square of how far from everybody it is.
struct Best<'a, I> {
    arena: &'a Arena,
    others: I,
    found: Option<(Vec2, f64)>,
}

impl<I: Iterator<Item = Vec2> + Clone> Best<'_, I> {
    fn offer(&mut self, point: Vec2) {
        let best = self.found.map_or(f64::NEG_INFINITY, |(_, best)| best);
        let mut nearest = f64::INFINITY;
        for other in self.others.clone() {
            let to = other - point;
            nearest = nearest.min(to.dot(to));
            // In a full arena most places are ruled out by the first few tanks.
            if nearest <= best {
                return;
            }
        }
        if nearest > best && is_clear(self.arena, point) {
            self.found = Some((point, nearest));
        }
    }
}

fn is_clear(arena: &Arena, point: Vec2) -> bool {
    arena.clearance([point.x, point.y]) >= CLEAR
}

/// Points all over the arena, at the middles of equal cells.
fn lattice(arena: &Arena) -> impl Iterator<Item = Vec2> + use<> {
    let [width, height] = arena.size();
    let along = |index: u32, side: f64| ((f64::from(index) + 0.5) / f64::from(LATTICE) - 0.5) * side;
    (0..LATTICE * LATTICE)
        .map(move |cell| Vec2::new(along(cell % LATTICE, width), along(cell / LATTICE, height)))
}

fn facing_the_middle(Vec2 { x, y }: Vec2) -> TankPose {
    TankPose { x, y, heading: libm::atan2(-y, -x) / TAU }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::forward;
    use proptest::prelude::*;

    fn distance(pose: TankPose, other: Vec2) -> f64 {
        libm::hypot(pose.x - other.x, pose.y - other.y)
    }

    #[test]
    fn places_face_the_middle() {
        for (x, y) in [(9.0, 0.0), (-9.0, 0.0), (0.0, 9.0), (0.0, -9.0), (-3.0, 4.0)] {
            let pose = facing_the_middle(Vec2::new(x, y));
            let ahead = Vec2::new(x, y) + forward(pose.heading) * libm::hypot(x, y);
            assert!(ahead.dot(ahead) < 1e-20, "{ahead:?}");
        }
    }

    #[test]
    fn a_full_arena_still_gives_the_best_place_there_is() {
        let arena = Arena::new([12.0, 12.0], vec![]).unwrap();
        // Everywhere but in one corner.
        let others: Vec<_> = [(-4.0, -4.0), (-4.0, 4.0), (4.0, -4.0)].map(|(x, y)| Vec2::new(x, y)).to_vec();
        for seed in 0..50 {
            let pose = place(&arena, &mut Dice::new(seed), others.iter().copied()).unwrap();
            assert!(others.iter().all(|other| distance(pose, *other) >= APART), "{pose:?}");
        }
    }

    proptest! {
        #[test]
        fn places_are_clear_of_walls_and_far_from_others(seed in any::<u64>(), count in 0usize..30) {
            let arena = Arena::proving_ground();
            let mut dice = Dice::new(seed);
            let mut others: Vec<Vec2> = vec![];
            for _ in 0..count {
                let pose = place(&arena, &mut dice, others.iter().copied()).unwrap();
                prop_assert!(arena.clearance([pose.x, pose.y]) >= CLEAR);
                prop_assert!(others.iter().all(|other| distance(pose, *other) >= APART));
                others.push(Vec2::new(pose.x, pose.y));
            }
            let again = place(&arena, &mut Dice::new(seed), core::iter::empty());
            prop_assert_eq!(again, place(&arena, &mut Dice::new(seed), core::iter::empty()));
        }
    }
}
