//! The fates of this player's ticks on the server: causes of corrections, some of them provisional.
//!
//! A tick that was simulated with a substitute is *held* until its input arrives or is given up. So a correction that was
//! put down to lost input may turn out to be one of late input. Knows ticks and causes, never packets.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::cause::Causes;
use crate::client::stats::ClientStats;
use crate::input::Fate;
use crate::tick::Tick;

/// Corrections whose cause is not final.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fates {
    /// The newest tick whose fate has been taken.
    taken: Option<Tick>,
    waiting: VecDeque<Waiting>,
    /// Ticks that were held in the newest report, oldest first.
    held: VecDeque<Tick>,
}

/// A state that was corrected for held ticks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    state: Tick,
    /// The held ticks: from the first on, a bit each.
    first: Tick,
    #[serde(with = "halves")]
    held: u64,
}

/// Bits as two halves: they are no count, and every bit may be set.
mod halves {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bits: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
        (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let (low, high) = <(u32, u32)>::deserialize(deserializer)?;
        Ok(u64::from(high) << 32 | u64::from(low))
    }
}

impl Fates {
    /// Whether loaded fates can have been saved by some.
    pub(super) fn is_sound(&self) -> bool {
        self.waiting.len() <= Self::MAX_WAITING && self.held.iter().is_sorted()
    }
}

impl Fates {
    /// More corrections than happen before a fate is final.
    const MAX_WAITING: usize = 64;
    /// Input that has not come after these ticks was lost.
    const WAIT_TICKS: u32 = 64;

    /// Forgets everything. Held ticks count as neither late nor lost then.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Whether the cause of the correction by the state of `tick` is not final.
    pub(super) fn is_unsettled(&self, tick: Tick) -> bool {
        self.waiting.iter().any(|waiting| waiting.state == tick)
    }

    /// Counts each tick's fate once. Call it before [`Self::take`] with the same fates.
    pub(super) fn count(&mut self, newest: Tick, fates: &[Fate], stats: &mut ClientStats) {
        let oldest = numbered(newest, fates).next().map(|(tick, _)| tick);
        // No report has it any more, and its input had not come: it counts as lost.
        while self.held.front().is_some_and(|held| oldest.is_some_and(|oldest| *held < oldest)) {
            self.held.pop_front();
            stats.lost += 1;
        }
        self.held.retain(|held| {
            let back = newest.number().checked_sub(held.number()).and_then(|back| usize::try_from(back).ok());
            let at = back.and_then(|back| fates.len().checked_sub(back + 1));
            let fate = at.and_then(|at| fates.get(at)).copied();
            stats.late += u64::from(fate == Some(Fate::Late));
            stats.lost += u64::from(fate == Some(Fate::Lost));
            !matches!(fate, Some(Fate::Late | Fate::Lost))
        });
        for (tick, fate) in self.fresh(newest, fates) {
            stats.ticks += 1;
            match fate {
                Fate::AsSent => continue,
                Fate::Held => self.held.push_back(tick),
                Fate::Late => stats.late += 1,
                Fate::Lost => stats.lost += 1,
            }
            stats.held += 1;
        }
    }

    /// The index of the first of so many ticks up to `newest` that has not been taken yet.
    pub(super) fn first_fresh(&self, newest: Tick, ticks: usize) -> usize {
        let fresh = self.taken.map_or(ticks, |taken| newest.since(taken) as usize);
        ticks.saturating_sub(fresh)
    }

    /// Takes the fates of the ticks up to `newest`, oldest first. Returns the causes by input since the last that was taken.
    pub(super) fn take(&mut self, newest: Tick, fates: &[Fate]) -> Causes {
        self.waiting.retain(|waiting| newest.since(waiting.state) <= Self::WAIT_TICKS);
        let causes = self
            .fresh(newest, fates)
            .fold(Causes::NONE, |all, (_, fate)| fate.cause().map_or(all, |cause| all.with(cause)));
        let mut held = self.fresh(newest, fates).filter(|(_, fate)| **fate == Fate::Held);
        if let Some((first, _)) = held.next() {
            let bits =
                held.fold(1u64, |bits, (tick, _)| bits | 1u64.checked_shl(tick.since(first)).unwrap_or(0));
            if self.waiting.len() >= Self::MAX_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back(Waiting { state: newest, first, held: bits });
        }
        self.taken = self.taken.max(Some(newest));
        causes
    }

    fn fresh<'a>(&self, newest: Tick, fates: &'a [Fate]) -> impl Iterator<Item = (Tick, &'a Fate)> + use<'a> {
        let taken = self.taken;
        numbered(newest, fates).filter(move |(tick, _)| taken.is_none_or(|taken| *tick > taken))
    }

    /// The next state whose correction was for late input only, now that the fates of the ticks up to `newest` say so.
    pub(super) fn next_late(&mut self, newest: Tick, fates: &[Fate]) -> Option<Tick> {
        let mut found = None;
        self.waiting.retain_mut(|waiting| {
            if found.is_some() {
                return true;
            }
            for (tick, fate) in numbered(newest, fates) {
                let bit =
                    tick.number().checked_sub(waiting.first.number()).and_then(|at| 1u64.checked_shl(at));
                match (bit.filter(|bit| waiting.held & bit != 0), *fate) {
                    (Some(bit), Fate::Late) => waiting.held &= !bit,
                    // Lost it is, and stays.
                    (Some(_), Fate::Lost) => return false,
                    _ => {}
                }
            }
            if waiting.held == 0 {
                found = Some(waiting.state);
            }
            waiting.held != 0
        });
        found
    }
}

/// Fates with their ticks, the last being `newest`.
fn numbered(newest: Tick, fates: &[Fate]) -> impl Iterator<Item = (Tick, &Fate)> {
    let count = u32::try_from(fates.len()).unwrap_or(0);
    let before = newest.number().saturating_sub(count);
    Tick::new(before).next().onwards().zip(fates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;

    fn fates(inputs: &[Fate]) -> Vec<Fate> {
        inputs.to_vec()
    }

    #[test]
    fn each_tick_is_taken_once() {
        use Fate::{AsSent, Held, Lost};
        let mut known = Fates::default();
        assert_eq!(known.take(Tick::new(10), &fates(&[AsSent, Held])), Causes::NONE.with(Cause::LostInput));
        assert_eq!(known.take(Tick::new(12), &fates(&[AsSent, Held, AsSent, AsSent])), Causes::NONE);
        assert_eq!(known.take(Tick::new(13), &fates(&[Lost])), Causes::NONE.with(Cause::LostInput));
    }

    #[test]
    fn each_tick_is_counted_once_by_its_last_word() {
        use Fate::{AsSent, Held, Late, Lost};
        let (mut known, mut stats) = (Fates::default(), ClientStats::default());
        let mut told = |newest: u32, inputs: &[Fate]| {
            let (newest, fates) = (Tick::new(newest), fates(inputs));
            known.count(newest, &fates, &mut stats);
            known.take(newest, &fates);
            [stats.ticks, stats.held, stats.late, stats.lost]
        };
        assert_eq!(told(12, &[AsSent, Held, Held]), [3, 2, 0, 0]);
        assert_eq!(told(12, &[AsSent, Held, Held]), [3, 2, 0, 0], "nothing new");
        assert_eq!(told(13, &[AsSent, Late, Held, Held]), [4, 3, 1, 0]);
        assert_eq!(told(14, &[AsSent, Late, Lost, Held, Late]), [5, 4, 2, 1], "late when first told of");
        assert_eq!(told(15, &[Late, Lost, Held, Late, AsSent]), [6, 4, 2, 1]);
        assert_eq!(told(17, &[Late, AsSent, AsSent, AsSent]), [8, 4, 2, 2], "13 is not told of any more");
        assert_eq!(told(18, &[Late, AsSent, AsSent, AsSent, AsSent]), [9, 4, 2, 2]);
        // Snapshots were lost, and the server does not remember that far: what is not told of is not counted.
        assert_eq!(told(40, &[AsSent, Held]), [11, 5, 2, 2]);
    }

    #[test]
    fn a_held_tick_turns_out_to_be_late() {
        use Fate::{AsSent, Held, Late};
        let mut known = Fates::default();
        known.take(Tick::new(10), &fates(&[Held, Held]));
        let then = fates(&[Late, Held, AsSent]);
        known.take(Tick::new(11), &then);
        assert_eq!(known.next_late(Tick::new(11), &then), None, "one of the two is still open");
        let then = fates(&[Late, Late, AsSent, AsSent]);
        assert_eq!(known.next_late(Tick::new(12), &then), Some(Tick::new(10)));
        assert_eq!(known.next_late(Tick::new(12), &then), None, "and that is said once");
    }

    #[test]
    fn what_waits_is_bounded_and_forgotten() {
        let mut known = Fates::default();
        for tick in 1..200 {
            known.take(Tick::new(tick), &fates(&[Fate::Held]));
        }
        assert_eq!(known.waiting.len(), Fates::MAX_WAITING);
        assert!(known.is_unsettled(Tick::new(199)) && !known.is_unsettled(Tick::new(1)));
        assert_eq!(
            known.waiting.back().map(|waiting| waiting.state),
            Some(Tick::new(199)),
            "the newest are kept"
        );
        known.take(Tick::new(199 + Fates::WAIT_TICKS), &fates(&[Fate::AsSent]));
        assert_eq!(known.waiting.len(), 1);
        known.take(Tick::new(200 + Fates::WAIT_TICKS), &fates(&[Fate::AsSent]));
        assert_eq!(known.waiting.len(), 0);
        known.reset();
        assert_eq!((known.taken, known.waiting.len()), (None, 0));
    }

    #[test]
    fn a_lost_tick_stays_lost() {
        use Fate::{Held, Late, Lost};
        let mut known = Fates::default();
        known.take(Tick::new(10), &fates(&[Held, Held]));
        assert_eq!(known.next_late(Tick::new(10), &fates(&[Late, Lost])), None);
        assert_eq!(known.next_late(Tick::new(10), &fates(&[Late, Late])), None);
    }
}
