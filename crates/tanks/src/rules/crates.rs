//! What a crate does in a step: it gives way to tanks and to other crates, and is carried.

use halftrack::Step;

use super::{Tanks, touch_nearest};
use crate::collide::{Round, Space, Vec2};
use crate::entity::{Crate, Entity};

impl Tanks {
    /// A crate that nothing touches stays, to the bit.
    pub(super) fn advance_crate(&self, cargo: &mut Crate, step: &mut Step<'_, Self>) {
        let ride = Self::ride(step);
        let from = self.carry(Vec2::new(cargo.x, cargo.y), ride, step);
        let space = Space { arena: &self.arena, hulls: Self::hulls(step.neighbours(), ride, as_crate_sees) };
        let push = space.separation(from, Self::SEPARATION_SPEED * step.seconds());
        // Walls stop it; hulls do not: two crates that overlap push each other apart.
        let walls = Space { arena: &self.arena, hulls: core::iter::empty() };
        let at = push.map_or(from, |push| walls.slide(from, push).0);
        (cargo.x, cargo.y) = (at.x, at.y);
        if push.is_some() {
            touch_nearest(step, from);
        }
    }
}

fn as_crate_sees(other: &Entity, at: Vec2) -> Option<Round> {
    match other {
        Entity::Tank(_) => Some(Round::pusher(at)),
        Entity::Crate(_) => Some(Round::hull(at)),
        Entity::Rocket(_) | Entity::Platform(_) => None,
    }
}
