//! Bodies that have left, for as long as a snapshot can build on one in which they were still there.

use derive_where::derive_where;

use crate::game::Game;
use crate::snapshot::server_body::ServerBody;
use crate::tick::Tick;

/// So many are kept at most, about 6 KiB each at 20 Hz: when more than that leave within seconds, a room does not change
/// but empties, and those who stay can be told of one by one.
const MAX_DEPARTED: usize = 256;

/// Bodies that have left. The newest tick of each is the one at whose end it did.
#[derive_where(Clone, Debug)]
pub(crate) struct Departed<G: Game> {
    /// In order of their ids.
    bodies: Vec<ServerBody<G>>,
    /// The newest tick at whose end one left that is not kept, for want of room.
    dropped: Option<Tick>,
}

impl<G: Game> Departed<G> {
    /// Nobody.
    pub(crate) fn new() -> Self {
        Self { bodies: Vec::new(), dropped: None }
    }

    /// One that leaves now.
    pub(crate) fn push(&mut self, kept: ServerBody<G>) {
        if self.bodies.len() >= MAX_DEPARTED {
            let first = self.bodies.iter().enumerate().min_by_key(|(_, kept)| kept.history.newest());
            if let Some(first) = first.map(|(at, _)| at) {
                let dropped = self.bodies.remove(first);
                self.dropped = self.dropped.max(Some(dropped.history.newest()));
            }
        }
        let at = self.bodies.partition_point(|other| other.id <= kept.id);
        self.bodies.insert(at, kept);
    }

    /// Forgets those who left before the end of `oldest`.
    pub(crate) fn forget_before(&mut self, oldest: Tick) {
        self.bodies.retain(|kept| kept.history.newest() >= oldest);
    }

    /// Whether everybody who left at the end of `tick` or later is kept.
    pub(crate) fn has_all_since(&self, tick: Tick) -> bool {
        self.dropped < Some(tick)
    }

    /// All of them, in order of their ids.
    pub(crate) fn bodies(&self) -> &[ServerBody<G>] {
        &self.bodies
    }
}

/// Whether a body is still in the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    There,
    Gone,
}

/// Those who are there and those who have left, in order of their ids.
pub(crate) fn everybody<'a, G: Game>(
    there: &'a [ServerBody<G>],
    departed: &'a Departed<G>,
) -> impl Iterator<Item = (&'a ServerBody<G>, Whereabouts)> {
    let (mut there, mut gone) = (there.iter().peekable(), departed.bodies.iter().peekable());
    core::iter::from_fn(move || {
        let next = there.peek().map(|kept| kept.id);
        let gone = gone.next_if(|kept| next.is_none_or(|next| kept.id <= next));
        match gone {
            Some(kept) => Some((kept, Whereabouts::Gone)),
            None => there.next().map(|kept| (kept, Whereabouts::There)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cadence::Cadence;
    use crate::cart::{Cart, CartBody};
    use crate::id::{BodyId, Driver};
    use crate::snapshot::history::TickRecord;
    use crate::snapshot::roster::Member;

    fn kept(id: u64, tick: u32) -> ServerBody<Cart> {
        let member = Member { id: BodyId::new(id), driver: Driver::World, parent: None };
        let record = TickRecord::sent(0, CartBody::at(0.0), 0);
        ServerBody::new(Cadence::default(), Tick::new(tick), member, record)
    }

    #[test]
    fn who_left_is_kept_in_order_and_not_for_longer_than_is_asked() {
        let mut departed = Departed::new();
        for (player, tick) in [(5, 9), (2, 8), (7, 7)] {
            departed.push(kept(player, tick));
        }
        let there = [1, 5, 6].map(|player| kept(player, 10));
        let players = |departed: &Departed<Cart>| {
            let players = everybody(&there, departed).map(|(kept, where_)| (kept.id.number(), where_));
            players.collect::<Vec<_>>()
        };
        use Whereabouts::{Gone, There};
        assert_eq!(players(&departed), [(1, There), (2, Gone), (5, Gone), (5, There), (6, There), (7, Gone)]);
        departed.forget_before(Tick::new(8));
        assert_eq!(players(&departed), [(1, There), (2, Gone), (5, Gone), (5, There), (6, There)]);
        assert!(departed.has_all_since(Tick::new(0)));
    }

    #[test]
    fn when_too_many_leave_it_is_known_since_when_all_are_kept() {
        let mut departed = Departed::new();
        (0..).zip(100..).take(MAX_DEPARTED + 3).for_each(|(player, tick)| departed.push(kept(player, tick)));
        assert_eq!(departed.bodies().len(), MAX_DEPARTED);
        assert!(!departed.has_all_since(Tick::new(102)) && departed.has_all_since(Tick::new(103)));
    }
}
