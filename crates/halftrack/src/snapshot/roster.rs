//! Who was in the room: the rosters that clients have been told of, as long as a snapshot can build on them.
//!
//! A client that was told of everybody needs no list of its own: the number of the roster says it all.

use std::collections::VecDeque;

use crate::id::PlayerId;
use crate::tick::Tick;

/// Which roster of a room: another number whenever somebody joins or leaves after a client was told of the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RosterNumber(u32);

#[derive(Clone, Debug)]
struct Roster {
    number: RosterNumber,
    /// The last tick in which a client was told of it.
    told: Option<Tick>,
    /// In order.
    players: Vec<PlayerId>,
}

/// The rosters of a room, oldest first, the current one last. Never empty.
#[derive(Clone, Debug)]
pub(crate) struct Rosters {
    rosters: VecDeque<Roster>,
}

impl Rosters {
    /// Of a room without bodies.
    pub(crate) fn new() -> Self {
        let empty = Roster { number: RosterNumber::default(), told: None, players: Vec::new() };
        Self { rosters: VecDeque::from([empty]) }
    }

    /// Who joined or left: these are the players now, in order.
    pub(crate) fn change(&mut self, players: impl Iterator<Item = PlayerId>) {
        match self.rosters.back_mut() {
            // Nobody knows of it: it may as well never have been.
            Some(Roster { told: None, players: current, .. }) => {
                current.clear();
                current.extend(players);
            }
            _ => {
                let number = RosterNumber(self.current().0.wrapping_add(1));
                self.rosters.push_back(Roster { number, told: None, players: players.collect() });
            }
        }
    }

    /// The number of the current one.
    pub(crate) fn current(&self) -> RosterNumber {
        self.rosters.back().map(|roster| roster.number).unwrap_or_default()
    }

    /// A client is told of the current one in `tick`.
    pub(crate) fn tell(&mut self, tick: Tick) {
        if let Some(current) = self.rosters.back_mut() {
            current.told = Some(tick);
        }
    }

    /// Its players, if it is kept.
    pub(crate) fn players(&self, number: RosterNumber) -> Option<&[PlayerId]> {
        let roster = self.rosters.iter().rev().find(|roster| roster.number == number)?;
        Some(&roster.players)
    }

    /// Forgets those that were told of before `oldest` only.
    pub(crate) fn forget_before(&mut self, oldest: Tick) {
        while self.rosters.len() > 1 && self.rosters.front().is_some_and(|first| first.told < Some(oldest)) {
            self.rosters.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roster_is_kept_while_it_can_be_built_on() {
        let players = |numbers: &[u16]| numbers.iter().map(|n| PlayerId::new(*n)).collect::<Vec<_>>();
        let mut rosters = Rosters::new();
        let first = rosters.current();
        rosters.change(players(&[1, 2]).into_iter());
        assert_eq!(rosters.current(), first, "nobody was told of the empty one");
        rosters.tell(Tick::new(5));
        rosters.change(players(&[2]).into_iter());
        assert_ne!(rosters.current(), first);
        assert_eq!(rosters.players(first), Some(&*players(&[1, 2])));
        rosters.forget_before(Tick::new(5));
        assert!(rosters.players(first).is_some());
        rosters.forget_before(Tick::new(6));
        assert_eq!(rosters.players(first), None);
        rosters.forget_before(Tick::new(900));
        assert_eq!(rosters.players(rosters.current()), Some(&*players(&[2])), "the current one stays");
    }
}
