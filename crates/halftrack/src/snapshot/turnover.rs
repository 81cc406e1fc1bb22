//! Bodies that came and went since a base. The layout is that of `encoder`.

use derive_where::derive_where;

use crate::game::Game;
use crate::id::{BodyId, Driver, PlayerId};
use crate::model::{Body, Input};
use crate::simulate::count_emitted;
use crate::snapshot::departed::{Departed, Whereabouts, everybody};
use crate::snapshot::encoder::{Base, WHO_ORDER};
use crate::snapshot::gaps::{Gaps, read_count, write_count};
use crate::snapshot::history::TickRecord;
use crate::snapshot::roster::Member;
use crate::snapshot::scratch::empty;
use crate::snapshot::server_body::ServerBody;
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter, WireError};

/// A body that was there at some time since a base, as the server has it.
#[derive_where(Clone, Copy, Debug)]
pub(crate) struct Attendant<'a, G: Game> {
    pub(crate) kept: &'a ServerBody<G>,
    /// From the end of which tick on the reader has it: the base's, or the one in which it joined.
    pub(crate) since: Tick,
    /// It is not in the base, and its birth does not follow from the rules.
    joined: bool,
    /// It is gone, and its end does not follow from the rules.
    left: bool,
}

/// All bodies that existed at some time since `base`, which has all bodies of its tick; in order of their ids. Those are
/// left out that the reader finds by the rules: bodies that another one emitted since. `None` if too many have left to know,
/// or the world acted on one after that snapshot.
pub(crate) fn attendance<'a, G: Game>(
    base: Base<'_>,
    there: &'a [ServerBody<G>],
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
        let joined = known.next_if(|member| member.id == kept.id).is_none();
        let by_world = left && !kept.is_over;
        if joined && kept.is_implied && kept.spawned > base.tick && !by_world {
            // spec: EMIT-03
            continue;
        }
        // It was gone at the end of the base. Or no other body moved among it, unless the reader would let it be born.
        let is_emitted = kept.history.birth().is_some();
        if joined && left && (last <= base.tick || (last <= kept.spawned && !is_emitted)) {
            continue;
        }
        let twice = attendance.last().is_some_and(|before| before.kept.id == kept.id);
        let since = if joined { kept.spawned } else { base.tick };
        let odd = if joined { kept.spawned < base.tick } else { kept.spawned > base.tick };
        let revised = !joined && kept.is_revised(base.tick);
        if twice || odd || revised || kept.history.get(since).is_none() {
            return None;
        }
        attendance.push(Attendant { kept, since, joined, left: by_world });
    }
    known.next().is_none().then_some(attendance)
}

/// Whether nobody came or went.
pub(crate) fn is_unchanged<G: Game>(attendance: &[Attendant<'_, G>]) -> bool {
    attendance.iter().all(|attendant| !attendant.joined && !attendant.left)
}

/// Writes the bodies that came and went in the `ticks` ticks since `baseline`. Returns how many of them were born by the rules.
pub(crate) fn write_turnover<G: Game>(
    attendance: &[Attendant<'_, G>],
    baseline: Tick,
    ticks: u32,
    bits: &mut BitWriter<'_>,
) -> u64 {
    let joined = || attendance.iter().filter(|attendant| attendant.joined);
    write_count(u32::try_from(joined().count()).unwrap_or(0), WHO_ORDER, bits);
    for Attendant { kept, since, .. } in joined() {
        write_member(kept.member(), bits);
        bits.write(since.since(baseline), offset_bits(ticks));
        if let Some(record) = kept.history.get(*since) {
            write_full(record, bits);
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
    joined().filter(|attendant| attendant.kept.history.birth().is_some()).count() as u64
}

/// The bodies that joined or left since a base, as the reader has it. Its memory is used again.
#[derive_where(Clone, Debug)]
pub(crate) struct Turnover<G: Game> {
    /// In order of their ids.
    pub(crate) joined: Vec<Joined<G>>,
    /// Places among all bodies since the base, in order, and after how many ticks since then they left.
    left: Vec<(u64, u32)>,
}

/// A body that is not in the base.
#[derive_where(Clone, Debug)]
pub(crate) struct Joined<G: Game> {
    pub(crate) id: BodyId,
    pub(crate) driver: Driver,
    pub(crate) parent: Option<BodyId>,
    /// Ticks since the base at whose end it joined.
    pub(crate) after: u32,
    /// Its record of that tick.
    pub(crate) record: TickRecord<G>,
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
        roster: &[BodyId],
        ticks: u32,
        bits: &mut BitReader<'_>,
    ) -> Result<(), WireError> {
        self.clear();
        for _ in 0..read_count(WHO_ORDER, bits)? {
            let Member { id, driver, parent } = read_member(bits)?;
            let in_order = self.joined.last().is_none_or(|last| last.id < id);
            if !in_order || roster.binary_search(&id).is_ok() {
                return Err(WireError::Invalid { field: "joined" });
            }
            let after = read_offset(ticks, bits)?;
            let record = read_full(bits)?;
            self.joined.push(Joined { id, driver, parent, after, record });
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

/// A body in full, its input, and the number of bodies that it has emitted.
///
/// # Errors
/// When the bits end too early or mean nothing.
pub(crate) fn read_full<G: Game>(bits: &mut BitReader<'_>) -> Result<TickRecord<G>, WireError> {
    let (body, input) = (G::Body::read(&G::Body::blank(), bits)?, G::Input::read(bits)?);
    Ok(TickRecord::sent(input, body, read_emitted(EMITTED_ORDER, bits)?))
}

/// Writes the same.
pub(crate) fn write_full<G: Game>(record: &TickRecord<G>, bits: &mut BitWriter<'_>) {
    record.after.write(&G::Body::blank(), bits);
    record.held.write(bits);
    write_count(record.emitted, EMITTED_ORDER, bits);
}

/// Most bodies have emitted none.
const EMITTED_ORDER: u32 = 0;

/// Reads how many bodies a body has emitted.
///
/// # Errors
/// When the bits end too early, or no body can have emitted so many.
pub(crate) fn read_emitted(order: u32, bits: &mut BitReader<'_>) -> Result<u32, WireError> {
    let emitted = read_count(order, bits)?;
    if count_emitted(emitted, 0) == emitted {
        Ok(emitted)
    } else {
        Err(WireError::Invalid { field: "emitted" })
    }
}

/// Half of the bits of an id: what one write takes.
const HALF: u32 = BodyId::BITS / 2;

/// Writes an id.
pub(crate) fn write_id(id: BodyId, bits: &mut BitWriter<'_>) {
    let half = |bits: u64| u32::try_from(bits & ((1 << HALF) - 1)).unwrap_or(0);
    bits.write(half(id.number()), HALF);
    bits.write(half(id.number() >> HALF), HALF);
}

/// Reads an id.
///
/// # Errors
/// When the bits end too early.
pub(crate) fn read_id(bits: &mut BitReader<'_>) -> Result<BodyId, WireError> {
    let low = u64::from(bits.read(HALF)?);
    Ok(BodyId::new(u64::from(bits.read(HALF)?) << HALF | low))
}

/// Writes the id of a body, its driver, and the body that emitted it.
pub(crate) fn write_member(member: Member, bits: &mut BitWriter<'_>) {
    write_id(member.id, bits);
    bits.write_flag(member.driver.player().is_some());
    match member.driver {
        Driver::Player(player) => bits.write(u32::from(player.number()), 16),
        Driver::World => bits.write_flag(true),
        Driver::Nothing => {
            bits.write_flag(false);
            bits.write_flag(member.parent.is_some());
            if let Some(parent) = member.parent {
                write_id(parent, bits);
            }
        }
    }
}

/// Reads the id of a body, its driver, and the body that emitted it.
///
/// # Errors
/// When the bits end too early.
pub(crate) fn read_member(bits: &mut BitReader<'_>) -> Result<Member, WireError> {
    let id = read_id(bits)?;
    let mut parent = None;
    let driver = if bits.read_flag()? {
        let player = u16::try_from(bits.read(16)?).map_err(|_| WireError::Invalid { field: "driver" })?;
        Driver::Player(PlayerId::new(player))
    } else if bits.read_flag()? {
        Driver::World
    } else {
        parent = bits.read_flag()?.then(|| read_id(bits)).transpose()?;
        Driver::Nothing
    };
    Ok(Member { id, driver, parent })
}

/// Bits of a number of ticks up to `ticks`.
fn offset_bits(ticks: u32) -> u32 {
    u32::BITS - ticks.leading_zeros()
}

fn read_offset(ticks: u32, bits: &mut BitReader<'_>) -> Result<u32, WireError> {
    let offset = bits.read(offset_bits(ticks))?;
    if offset <= ticks { Ok(offset) } else { Err(WireError::Invalid { field: "after" }) }
}
