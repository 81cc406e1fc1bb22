//! Who came and went since a base. The layout is that of `telling`.

use derive_where::derive_where;

use crate::game::Game;
use crate::id::PlayerId;
use crate::model::{Body, Input};
use crate::snapshot::departed::{Departed, Whereabouts, everybody};
use crate::snapshot::gaps::{Gaps, read_count, write_count};
use crate::snapshot::kept::Kept;
use crate::snapshot::scratch::empty;
use crate::snapshot::telling::{Base, PLAYER_ORDER, WHO_ORDER};
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter, WireError};

/// A body that was there at some time since a base, as the server has it.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Attendant<'a, G: Game> {
    pub(crate) kept: &'a Kept<G>,
    /// From the end of which tick on the reader has it: the base's, or the one in which it joined.
    pub(crate) since: Tick,
    /// It is not in the base.
    joined: bool,
    left: bool,
}

/// Everybody who was there at some time since `base`, which told of everybody; in order of player. None if that cannot be
/// said, because a player is another body now than it was, or because too many have left.
pub(crate) fn attendance<'a, G: Game>(
    base: Base<'_>,
    there: &'a [Kept<G>],
    departed: &'a Departed<G>,
) -> Option<Vec<Attendant<'a, G>>> {
    if !departed.has_all_since(base.tick) {
        return None;
    }
    let mut known = base.roster.iter().peekable();
    let mut attendance: Vec<Attendant<'_, G>> = Vec::with_capacity(there.len() + departed.bodies().len());
    for (kept, whereabouts) in everybody(there, departed) {
        let last = kept.history.newest();
        let left = whereabouts == Whereabouts::Gone;
        if left && last < base.tick {
            continue;
        }
        let joined = known.next_if(|player| **player == kept.player).is_none();
        // Nobody has moved among this one.
        if joined && left && last <= kept.joined.max(base.tick) {
            continue;
        }
        let twice = attendance.last().is_some_and(|before| before.kept.player == kept.player);
        let since = if joined { kept.joined } else { base.tick };
        let odd = if joined { kept.joined < base.tick } else { kept.joined > base.tick };
        if twice || odd || kept.history.get(since).is_none() {
            return None;
        }
        attendance.push(Attendant { kept, since, joined, left });
    }
    known.next().is_none().then_some(attendance)
}

/// Whether nobody came or went.
pub(crate) fn is_unchanged<G: Game>(attendance: &[Attendant<'_, G>]) -> bool {
    attendance.iter().all(|attendant| !attendant.joined && !attendant.left)
}

/// Writes who came and went in the `ticks` ticks since `baseline`.
pub(crate) fn write_turnover<G: Game>(
    attendance: &[Attendant<'_, G>],
    baseline: Tick,
    ticks: u32,
    bits: &mut BitWriter<'_>,
) {
    let joined = || attendance.iter().filter(|attendant| attendant.joined);
    write_count(u32::try_from(joined().count()).unwrap_or(0), WHO_ORDER, bits);
    let mut next = 0;
    for Attendant { kept, since, .. } in joined() {
        let number = u32::from(kept.player.number());
        write_count(number.saturating_sub(next), PLAYER_ORDER, bits);
        next = number + 1;
        bits.write(since.since(baseline), offset_bits(ticks));
        if let Some(record) = kept.history.get(*since) {
            record.after.write(&G::Body::blank(), bits);
            record.input.last().write(bits);
        }
    }
    let left = || attendance.iter().enumerate().filter(|(_, attendant)| attendant.left);
    let count = u32::try_from(left().count()).unwrap_or(0);
    write_count(count, WHO_ORDER, bits);
    let mut gaps = Gaps::new(attendance.len() as u64, count);
    for (place, Attendant { kept, .. }) in left() {
        gaps.write(place as u64, bits);
        bits.write(kept.history.newest().since(baseline), offset_bits(ticks));
    }
}

/// The bodies that joined or left since a base, as the reader has it. Its memory is used again.
#[derive_where(Clone, Debug)]
pub(crate) struct Turnover<G: Game> {
    /// In order of player.
    pub(crate) joined: Vec<Joined<G>>,
    /// Places among all bodies since the base, in order, and after how many ticks since then they left.
    left: Vec<(u64, u32)>,
}

/// A body that is not in the base.
#[derive_where(Clone, Debug)]
pub(crate) struct Joined<G: Game> {
    pub(crate) player: PlayerId,
    /// Ticks since the base at whose end it joined.
    pub(crate) after: u32,
    /// The body at that moment, and its input.
    pub(crate) body: G::Body,
    pub(crate) input: G::Input,
}

impl<G: Game> Turnover<G> {
    /// No body joined or left.
    pub(crate) fn none() -> Self {
        Self { joined: Vec::new(), left: Vec::new() }
    }

    /// Makes it that of a room in which no body joined or left.
    pub(crate) fn clear(&mut self) {
        self.joined.clear();
        self.left.clear();
    }

    /// The same, and keeps memory for so many bodies at most.
    pub(crate) fn forget(&mut self, max_bodies: usize) {
        empty(&mut self.joined, max_bodies);
        empty(&mut self.left, max_bodies);
    }

    /// Reads which bodies joined or left in the `ticks` ticks since a snapshot of `roster`.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub(crate) fn read(
        &mut self,
        roster: &[PlayerId],
        ticks: u32,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        self.clear();
        let mut next = 0;
        for _ in 0..read_count(WHO_ORDER, bits)? {
            let player = read_player(next, bits)?;
            next = u32::from(player.number()) + 1;
            if roster.binary_search(&player).is_ok() {
                return Err(WireError::Invalid { field: "joined" });
            }
            let after = read_offset(ticks, bits)?;
            let (body, input) = read_full::<G>(bits)?;
            self.joined.push(Joined { player, after, body, input });
        }
        let count = read_count(WHO_ORDER, bits)?;
        let mut gaps = Gaps::new((roster.len() + self.joined.len()) as u64, count);
        for _ in 0..count {
            self.left.push((gaps.read(bits)?, read_offset(ticks, bits)?));
        }
        Ok(())
    }

    /// After how many ticks the body at `place` left, if it did.
    pub(crate) fn left_after(&self, place: usize) -> Option<u32> {
        let at = self.left.binary_search_by_key(&(place as u64), |(place, _)| *place).ok()?;
        self.left.get(at).map(|(_, after)| *after)
    }
}

/// A body in full, and its input.
///
/// # Errors
/// When the bits end too early or mean nothing.
pub(crate) fn read_full<G: Game>(bits: &mut BitReader<'_>) -> Result<(G::Body, G::Input), WireError> {
    Ok((G::Body::read(&G::Body::blank(), bits)?, G::Input::read(bits)?))
}

/// The number of a player, at least `next`.
///
/// # Errors
/// When the bits end too early, or there is no such number.
pub(crate) fn read_player(next: u32, bits: &mut BitReader<'_>) -> Result<PlayerId, WireError> {
    let number = u16::try_from(next + read_count(PLAYER_ORDER, bits)?);
    number.map(PlayerId::new).map_err(|_| WireError::Invalid { field: "player" })
}

/// Bits of a number of ticks up to `ticks`.
fn offset_bits(ticks: u32) -> u32 {
    u32::BITS - ticks.leading_zeros()
}

fn read_offset(ticks: u32, bits: &mut BitReader<'_>) -> Result<u32, WireError> {
    let offset = bits.read(offset_bits(ticks))?;
    if offset <= ticks { Ok(offset) } else { Err(WireError::Invalid { field: "after" }) }
}
