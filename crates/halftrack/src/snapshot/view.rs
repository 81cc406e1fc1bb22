//! [`View`]: the snapshots that a client was sent, and the ones that it has acknowledged.

use std::collections::VecDeque;

use crate::id::BodyId;
use crate::snapshot::roster::{Member, RosterNumber, Rosters, place_of};
use crate::tick::Tick;

/// The bodies that a client knows.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The newest snapshot that it has acknowledged.
    base: Option<Tick>,
    /// One that tells of everybody and is under way to it by a lane that loses nothing: it will be there before long, and
    /// what is written meanwhile builds on it, for whatever told of fewer would take its place.
    under_way: Option<Tick>,
    /// Snapshots sent to it, oldest first.
    sent: VecDeque<Sent>,
    /// Bodies that the newest snapshot had no room for, in order: for how many snapshots that has been so.
    waiting: Vec<(BodyId, u32)>,
    /// So many snapshots in a row had no room for somebody.
    incomplete: u32,
}

#[derive(Clone, Debug)]
struct Sent {
    tick: Tick,
    acknowledged: bool,
    /// It is a full state, and not a snapshot.
    full: bool,
    who: Who,
}

/// The bodies of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// All bodies of the room.
    All(RosterNumber),
    /// Those that there was room for, in order of their ids.
    Some(Vec<Member>),
}

impl Who {
    /// Its bodies, if they are still known.
    pub(crate) fn members<'a>(&'a self, rosters: &'a Rosters) -> Option<&'a [Member]> {
        match self {
            Self::All(number) => rosters.members(*number),
            Self::Some(members) => Some(members),
        }
    }
}

impl View {
    /// The client has decoded and checked the snapshot of `tick`. Gives false when that was never sent, or too long ago.
    pub fn acknowledge(&mut self, tick: Tick) -> bool {
        let Ok(at) = self.sent.binary_search_by_key(&tick, |sent| sent.tick) else { return false };
        if let Some(sent) = self.sent.get_mut(at) {
            sent.acknowledged = true;
        }
        self.base = self.base.max(Some(tick));
        // Nothing that was written since could be read without it.
        self.under_way = self.under_way.filter(|under_way| tick < *under_way);
        true
    }

    /// The client has nothing to build on: the next snapshot tells everything in full, unless that is under way already.
    pub fn forget(&mut self) {
        self.base = None;
        for sent in &mut self.sent {
            sent.acknowledged = Some(sent.tick) == self.under_way;
        }
    }

    /// What was under way to the client may never arrive.
    pub(crate) fn cut(&mut self) {
        if let Some(under_way) = self.under_way.take()
            && let Some(sent) = self.sent.iter_mut().find(|sent| sent.tick == under_way)
        {
            sent.acknowledged = false;
        }
    }

    /// Whether the snapshot of `tick` was sent to this client, not too long ago.
    pub fn was_sent(&self, tick: Tick) -> bool {
        self.sent.binary_search_by_key(&tick, |sent| sent.tick).is_ok()
    }

    /// The newest snapshot that the client has acknowledged.
    pub fn acknowledged(&self) -> Option<Tick> {
        self.base
    }

    /// The same, if it is a snapshot: a client takes the bodies that its player owns from snapshots alone.
    pub(crate) fn acknowledged_snapshot(&self) -> Option<Tick> {
        let base = self.base?;
        let at = self.sent.binary_search_by_key(&base, |sent| sent.tick).ok()?;
        self.sent.get(at).filter(|sent| !sent.full).map(|sent| sent.tick)
    }

    /// What the client has or will have when the next snapshot arrives, and whom it told of, if that is still kept.
    pub(crate) fn base(&self) -> Option<(Tick, &Who)> {
        let base = self.base.max(self.under_way)?;
        let at = self.sent.binary_search_by_key(&base, |sent| sent.tick).ok()?;
        self.sent.get(at).map(|sent| (base, &sent.who))
    }

    /// The newest snapshot that it has, or will have, and that told of everybody.
    pub(crate) fn complete_base(&self) -> Option<(Tick, RosterNumber)> {
        self.sent.iter().rev().filter(|sent| sent.acknowledged).find_map(|sent| match sent.who {
            Who::All(number) => Some((sent.tick, number)),
            Who::Some(_) => None,
        })
    }

    /// The snapshot of everybody that is under way by another lane.
    pub(crate) fn under_way(&self) -> Option<Tick> {
        self.under_way
    }

    /// How many snapshots in a row had no room for somebody.
    pub(crate) fn incomplete(&self) -> u32 {
        self.incomplete
    }

    /// The newest acknowledged snapshot with body `id`: its tick, the body's place in it, and the number of its bodies.
    pub(crate) fn newest_with(&self, id: BodyId, rosters: &Rosters) -> Option<(Tick, usize, usize)> {
        self.sent.iter().rev().filter(|sent| sent.acknowledged).find_map(|sent| {
            let members = sent.who.members(rosters)?;
            Some((sent.tick, place_of(members, id)?, members.len()))
        })
    }

    /// Whether the snapshot of `tick` was sent to this client, not too long ago, and had body `id` in it.
    pub(crate) fn was_shown(&self, id: BodyId, tick: Tick, rosters: &Rosters) -> bool {
        let at = self.sent.binary_search_by_key(&tick, |sent| sent.tick).ok();
        let members = at.and_then(|at| self.sent.get(at)).and_then(|sent| sent.who.members(rosters));
        members.is_some_and(|members| place_of(members, id).is_some())
    }

    /// For how many snapshots there has been no room for body `id`.
    pub(crate) fn waiting(&self, id: BodyId) -> u32 {
        let at = self.waiting.binary_search_by_key(&id, |(id, _)| *id).ok();
        at.and_then(|at| self.waiting.get(at)).map_or(0, |(_, snapshots)| *snapshots)
    }

    /// The snapshot of `tick` told of `who`; these wait now, in order. At most `keep` snapshots are remembered.
    pub(crate) fn send(&mut self, tick: Tick, who: Who, waiting: Vec<(BodyId, u32)>, keep: usize) {
        self.incomplete = if waiting.is_empty() { 0 } else { self.incomplete.saturating_add(1) };
        self.waiting = waiting;
        if self.sent.capacity() < keep {
            self.sent.reserve_exact(keep - self.sent.len());
        }
        if self.sent.back().is_some_and(|newest| newest.tick == tick) {
            self.sent.pop_back();
        } else if self.sent.len() >= keep {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { tick, acknowledged: false, full: false, who });
    }

    /// The snapshot of `tick` told of `who`, which is everybody, by a lane that loses nothing.
    pub(crate) fn send_surely(&mut self, tick: Tick, who: Who, keep: usize) {
        self.cut();
        self.send(tick, who, Vec::new(), keep);
        if let Some(sent) = self.sent.back_mut() {
            (sent.acknowledged, sent.full) = (true, true);
        }
        self.under_way = Some(tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: usize = 64;

    fn at(number: u32) -> Tick {
        Tick::new(number)
    }

    fn all() -> Who {
        Who::All(RosterNumber::default())
    }

    fn base(view: &View) -> Option<u32> {
        view.base().map(|(tick, _)| tick.number())
    }

    #[test]
    fn what_is_under_way_is_built_on_until_it_is_acknowledged() {
        let mut view = View::default();
        view.send(at(1), Who::Some(vec![]), vec![(BodyId::new(3), 1)], KEEP);
        assert!(view.acknowledge(at(1)));
        view.send_surely(at(2), all(), KEEP);
        assert_eq!((base(&view), view.acknowledged(), view.incomplete()), (Some(2), Some(at(1)), 0));
        // Asking for everything does not help what is coming anyway.
        view.forget();
        assert_eq!((base(&view), view.acknowledged()), (Some(2), None));
        assert_eq!(view.complete_base().map(|(tick, _)| tick), Some(at(2)));
        view.send(at(3), all(), vec![], KEEP);
        assert!(view.acknowledge(at(1)) && view.under_way().is_some());
        assert!(view.acknowledge(at(3)) && view.under_way().is_none());
        assert_eq!(base(&view), Some(3));
        view.forget();
        assert_eq!((base(&view), view.complete_base()), (None, None), "now it does");
    }

    #[test]
    fn what_was_under_way_by_a_connection_that_is_gone_is_not_built_on() {
        let mut view = View::default();
        view.send(at(1), all(), vec![], KEEP);
        assert!(view.acknowledge(at(1)));
        view.send_surely(at(2), all(), KEEP);
        view.cut();
        assert_eq!((base(&view), view.complete_base().map(|(tick, _)| tick)), (Some(1), Some(at(1))));
        // Unless the client says that it did arrive.
        assert!(view.acknowledge(at(2)));
        assert_eq!(base(&view), Some(2));
    }

    #[test]
    fn snapshots_without_room_for_somebody_are_counted_in_a_row() {
        let mut view = View::default();
        for (tick, waiting, count) in [(1, 1, 1), (2, 1, 2), (3, 0, 0), (4, 1, 1)] {
            let waiting = vec![(BodyId::new(3), 1); waiting];
            view.send(at(tick), all(), waiting, KEEP);
            assert_eq!(view.incomplete(), count);
        }
    }
}
