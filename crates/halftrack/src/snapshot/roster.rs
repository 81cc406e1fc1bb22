//! Rosters: the lists of bodies that snapshots were about, for as long as a snapshot can build on them.
//!
//! A client that was sent every body needs no list of its own: the number of the roster says it all.

use std::collections::VecDeque;

use crate::id::{BodyId, Driver};
use crate::tick::Tick;

/// A body of a roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: BodyId,
    pub(crate) driver: Driver,
    /// The body that emitted it.
    pub(crate) parent: Option<BodyId>,
}

/// The place of a body in a roster.
pub(crate) fn place_of(roster: &[Member], id: BodyId) -> Option<usize> {
    roster.binary_search_by_key(&id, |member| member.id).ok()
}

/// The number of a room's roster: another one whenever a body comes or goes after a client was sent the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RosterNumber(u32);

#[derive(Clone, Debug)]
struct Roster {
    number: RosterNumber,
    /// The last tick in which a client was sent it.
    sent: Option<Tick>,
    /// In order of their ids.
    members: Vec<Member>,
}

/// The rosters of a room, oldest first, the current one last. Never empty.
#[derive(Clone, Debug)]
pub(crate) struct Rosters {
    rosters: VecDeque<Roster>,
}

impl Rosters {
    /// Of a room without bodies.
    pub(crate) fn new() -> Self {
        let empty = Roster { number: RosterNumber::default(), sent: None, members: Vec::new() };
        Self { rosters: VecDeque::from([empty]) }
    }

    /// Bodies came or went: these are left, in order of their ids.
    pub(crate) fn change(&mut self, members: impl Iterator<Item = Member>) {
        match self.rosters.back_mut() {
            // No client knows of it: it may as well never have been.
            Some(Roster { sent: None, members: current, .. }) => {
                current.clear();
                current.extend(members);
            }
            _ => {
                let number = RosterNumber(self.current().0.wrapping_add(1));
                self.rosters.push_back(Roster { number, sent: None, members: members.collect() });
            }
        }
    }

    /// The number of the current one.
    pub(crate) fn current(&self) -> RosterNumber {
        self.rosters.back().map(|roster| roster.number).unwrap_or_default()
    }

    /// A client is sent the current one in `tick`.
    pub(crate) fn send(&mut self, tick: Tick) {
        if let Some(current) = self.rosters.back_mut() {
            current.sent = Some(tick);
        }
    }

    /// The bodies of a roster, if it is kept.
    pub(crate) fn members(&self, number: RosterNumber) -> Option<&[Member]> {
        let roster = self.rosters.iter().rev().find(|roster| roster.number == number)?;
        Some(&roster.members)
    }

    /// Forgets the rosters that were sent before `oldest` only.
    pub(crate) fn forget_before(&mut self, oldest: Tick) {
        while self.rosters.len() > 1 && self.rosters.front().is_some_and(|first| first.sent < Some(oldest)) {
            self.rosters.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(numbers: &[u64]) -> Vec<Member> {
        numbers
            .iter()
            .map(|number| Member { id: BodyId::new(*number), driver: Driver::World, parent: None })
            .collect()
    }

    #[test]
    fn a_roster_is_kept_while_a_snapshot_can_build_on_it() {
        let mut rosters = Rosters::new();
        let first = rosters.current();
        rosters.change(members(&[1, 2]).into_iter());
        assert_eq!(rosters.current(), first, "no client was sent the empty one");
        rosters.send(Tick::new(5));
        rosters.change(members(&[2]).into_iter());
        assert_ne!(rosters.current(), first);
        assert_eq!(rosters.members(first), Some(&*members(&[1, 2])));
        rosters.forget_before(Tick::new(5));
        assert!(rosters.members(first).is_some());
        rosters.forget_before(Tick::new(6));
        assert_eq!(rosters.members(first), None);
        rosters.forget_before(Tick::new(900));
        assert_eq!(rosters.members(rosters.current()), Some(&*members(&[2])), "the current one stays");
    }
}
