//! [`Effects`]: what a body does in a tick besides moving. It touches other bodies, emits bodies, and is removed.

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use super::Game;
use crate::id::BodyId;

/// The bodies that a body touched in a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    /// One more than [`Self::KEPT`] if there were more.
    count: u8,
    ids: [BodyId; Self::KEPT],
}

impl Touched {
    /// Ids that are kept.
    pub const KEPT: usize = 4;
    /// The count when there were more.
    const MORE: u8 = 5;

    /// Whether the body touched no other.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ids of the bodies that it touched, at most [`Self::KEPT`] of them.
    pub fn ids(&self) -> &[BodyId] {
        self.ids.get(..usize::from(self.count).min(Self::KEPT)).unwrap_or_default()
    }

    /// Whether it touched body `id`, or so many that not all ids were kept.
    pub fn may_include(&self, id: BodyId) -> bool {
        usize::from(self.count) > Self::KEPT || self.ids().contains(&id)
    }

    pub(crate) fn add(&mut self, id: BodyId) {
        if self.ids().contains(&id) {
            return;
        }
        if let Some(slot) = self.ids.get_mut(usize::from(self.count)) {
            *slot = id;
            self.count += 1;
        } else {
            self.count = Self::MORE;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.ids().iter().for_each(|id| self.add(*id));
        self.count = self.count.max(other.count);
    }
}

/// A body that a rule emits.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Emission<G: Game> {
    /// Microseconds into the tick.
    pub(crate) at: u32,
    /// The body at that moment.
    pub(crate) body: G::Body,
}

/// What a body did in the steps of a tick so far, besides moving.
#[derive_where(Clone, Debug, Default)]
pub(crate) struct Effects<G: Game> {
    pub(crate) touched: Touched,
    /// In order. Allocates only when a body is emitted.
    pub(crate) emitted: Vec<Emission<G>>,
    /// The moment at which it was removed, microseconds into the tick.
    pub(crate) removed: Option<u32>,
    /// Emissions beyond the limit, or in the tick of the body's own birth.
    pub(crate) refused: u32,
    /// Emissions at or after the end of their step.
    pub(crate) overdue: u32,
    /// It was born in this tick, so it emits nothing.
    pub(crate) newborn: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_keeps_four_ids_and_then_may_include_any() {
        let mut touched = Touched::default();
        assert!(touched.is_empty() && !touched.may_include(BodyId::new(1)));
        for id in [1, 2, 1, 3, 4] {
            touched.add(BodyId::new(id));
        }
        assert_eq!(touched.ids(), [1, 2, 3, 4].map(BodyId::new));
        assert!(!touched.may_include(BodyId::new(5)));
        touched.add(BodyId::new(5));
        assert!(touched.may_include(BodyId::new(6)) && touched.ids().len() == 4);
        let mut other = Touched::default();
        other.add(BodyId::new(9));
        other.merge(&touched);
        assert!(other.may_include(BodyId::new(77)), "five ids do not fit");
    }
}
