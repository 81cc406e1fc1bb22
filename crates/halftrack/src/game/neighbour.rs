//! [`Neighbour`]: another body as a rule sees it.

use core::ops::Deref;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use super::Game;
use crate::id::{BodyId, Driver};

/// Another body as a rule sees it: as it stood at the start of the tick. Its fields are read through it: `other.x` is
/// `other.body.x`.
///
/// ```
/// use halftrack::cart::{Cart, CartBody};
/// use halftrack::{BodyId, Driver, Neighbour};
///
/// let other = Neighbour::<Cart>::new(BodyId::new(7), Driver::World, CartBody::at(2.5));
/// assert_eq!((other.x, other.parent), (2.5, None));
/// ```
#[derive_where(Clone, Copy, Debug, PartialEq)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Neighbour<G: Game> {
    /// Its id.
    pub id: BodyId,
    /// The source of its input.
    pub driver: Driver,
    /// The body that emitted it.
    pub parent: Option<BodyId>,
    /// Its state.
    pub body: G::Body,
}

impl<G: Game> Neighbour<G> {
    /// A body that no other emitted.
    pub const fn new(id: BodyId, driver: Driver, body: G::Body) -> Self {
        Self { id, driver, parent: None, body }
    }
}

impl<G: Game> Deref for Neighbour<G> {
    type Target = G::Body;

    #[inline]
    fn deref(&self) -> &G::Body {
        &self.body
    }
}
