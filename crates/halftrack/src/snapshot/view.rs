//! What one client knows of the bodies: which snapshots it was sent, and which of them it has.

use std::collections::VecDeque;

use crate::id::PlayerId;
use crate::snapshot::roster::{RosterNumber, Rosters};
use crate::tick::Tick;

/// What one client knows of the bodies.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The newest snapshot that it has acknowledged.
    base: Option<Tick>,
    /// Snapshots sent to it, oldest first.
    sent: VecDeque<Sent>,
    /// Bodies that the newest snapshot had no room for, in order: for how many snapshots that has been so.
    waiting: Vec<(PlayerId, u32)>,
}

#[derive(Clone, Debug)]
struct Sent {
    tick: Tick,
    acknowledged: bool,
    who: Who,
}

/// Whom a snapshot tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Everybody in the room.
    All(RosterNumber),
    /// Those that there was room for, in order.
    Some(Vec<PlayerId>),
}

impl Who {
    /// Their players, if that is still known.
    pub(crate) fn players<'a>(&'a self, rosters: &'a Rosters) -> Option<&'a [PlayerId]> {
        match self {
            Self::All(number) => rosters.players(*number),
            Self::Some(players) => Some(players),
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
        true
    }

    /// The client has nothing to build on: the next snapshot tells everything in full.
    pub fn forget(&mut self) {
        self.base = None;
        for sent in &mut self.sent {
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

    /// The same, and whom it told of, if that is still kept.
    pub(crate) fn base(&self) -> Option<(Tick, &Who)> {
        let base = self.base?;
        let at = self.sent.binary_search_by_key(&base, |sent| sent.tick).ok()?;
        self.sent.get(at).map(|sent| (base, &sent.who))
    }

    /// The newest snapshot that it has acknowledged and that told of `player`.
    pub(crate) fn newest_with(&self, player: PlayerId, rosters: &Rosters) -> Option<Tick> {
        let told = |who: &Who| who.players(rosters).is_some_and(|all| all.binary_search(&player).is_ok());
        let newest = self.sent.iter().rev().find(|sent| sent.acknowledged && told(&sent.who));
        newest.map(|sent| sent.tick)
    }

    /// For how many snapshots there has been no room for `player`.
    pub(crate) fn waiting(&self, player: PlayerId) -> u32 {
        let at = self.waiting.binary_search_by_key(&player, |(player, _)| *player).ok();
        at.and_then(|at| self.waiting.get(at)).map_or(0, |(_, snapshots)| *snapshots)
    }

    /// The snapshot of `tick` told of `who`; these wait now, in order. At most `keep` snapshots are remembered.
    pub(crate) fn send(&mut self, tick: Tick, who: Who, waiting: Vec<(PlayerId, u32)>, keep: usize) {
        self.waiting = waiting;
        if self.sent.capacity() < keep {
            self.sent.reserve_exact(keep - self.sent.len());
        }
        if self.sent.back().is_some_and(|newest| newest.tick == tick) {
            self.sent.pop_back();
        } else if self.sent.len() >= keep {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { tick, acknowledged: false, who });
    }
}
