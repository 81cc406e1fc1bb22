//! The bodies that a client's player owns in a snapshot: whole states, and what became of the player's input.
//!
//! ```text
//! same         1   the player owns the bodies that it owned in the snapshot that it has acknowledged; if not:
//!   ids            count(0), and the id of each (48), in order of their spawn
//! bodies           each of them against a blank one, in that order: they need nothing that came before
//! emitted      1   some of them have emitted bodies; if so, count(6) for each: how many
//! ticks        9   the number of ticks that follow, the snapshot's own the last
//! plain        1   in all of them the input was simulated as sent, and nothing happened to the bodies
//!   per tick, oldest first, if not:
//!     told     1   something else
//!       fate   2   0 as sent, 1 held, 2 late, 3 lost
//!       per body:
//!         world 1  something happened to it, and what, one bit each: teleport, respawn, death, params, collision
//! ```
//!
//! A state is never rebuilt from the client's own inputs: that would confirm whatever the client believed. The ticks are
//! those since the snapshot that the client has acknowledged, so a lost snapshot loses no cause.

use derive_where::derive_where;

use crate::cause::{Cause, Causes};
use crate::game::Game;
use crate::id::BodyId;
use crate::input::Fate;
use crate::model::Body;
use crate::snapshot::gaps::{read_count, write_count};
use crate::snapshot::turnover::{read_emitted, read_id, write_id};
use crate::wire::{BitReader, BitWriter, WireError};

const TICKS_BITS: u32 = 9;
/// A body that emits anything soon has emitted some dozens.
const EMITTED_ORDER: u32 = 6;

/// The most ticks in a snapshot: 2.5 s at 200 Hz, more than a client can have pending.
pub const MAX_FATES: usize = (1 << TICKS_BITS) - 1;

/// The most bodies that a player can own, whatever their size.
pub const MAX_OWNED: usize = 64;

/// Causes by the world, in the order of their bits.
const WORLD: [Cause; 5] = [Cause::Teleport, Cause::Respawn, Cause::Death, Cause::Params, Cause::Collision];

/// Bits of a tick at most, for a player with so many bodies.
const fn fate_bits(bodies: usize) -> usize {
    3 + bodies * (1 + WORLD.len())
}

/// The bodies of a player, and what became of its input in the latest ticks. Its memory is used again.
#[derive_where(Clone, Debug, Default, PartialEq)]
pub struct OwnBodies<G: Game> {
    /// In order of their spawn.
    pub ids: Vec<BodyId>,
    /// The state of each.
    pub bodies: Vec<G::Body>,
    /// The number of bodies that each has emitted.
    pub emitted: Vec<u32>,
    /// The fate of the player's input in the latest ticks, oldest first, at most [`MAX_FATES`].
    pub fates: Vec<Fate>,
    /// The world's doings to each body in each of these ticks, tick by tick.
    pub causes: Vec<Causes>,
}

impl<G: Game> OwnBodies<G> {
    /// The world's doings to the body at `place`, from the tick at index `from` on.
    pub(crate) fn causes_of(&self, place: usize, from: usize) -> Causes {
        let ticks = self.causes.chunks(self.ids.len().max(1)).skip(from);
        ticks.filter_map(|tick| tick.get(place)).fold(Causes::NONE, |all, causes| all.union(*causes))
    }

    /// Reads the section. `known` are the bodies that the player owned in the snapshot that it has acknowledged.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    pub fn read(&mut self, known: &[BodyId], bits: &mut BitReader<'_>) -> Result<(), WireError> {
        let Self { ids, bodies, emitted, fates, causes } = self;
        ids.clear();
        if bits.read_flag()? {
            ids.extend_from_slice(known);
        } else {
            for _ in 0..read_count(0, bits)? {
                let id = read_id(bits)?;
                if ids.contains(&id) || ids.len() >= MAX_OWNED {
                    return Err(WireError::Invalid { field: "own" });
                }
                ids.push(id);
            }
        }
        bodies.clear();
        for _ in 0..ids.len() {
            bodies.push(G::Body::read(&G::Body::blank(), bits)?);
        }
        emitted.clear();
        emitted.resize(ids.len(), 0);
        if bits.read_flag()? {
            for emitted in emitted {
                *emitted = read_emitted(EMITTED_ORDER, bits)?;
            }
        }
        let count = bits.read(TICKS_BITS)?;
        let plain = bits.read_flag()?;
        fates.clear();
        causes.clear();
        for _ in 0..count {
            let told = !plain && bits.read_flag()?;
            fates.push(if told { read_fate(bits)? } else { Fate::AsSent });
            for _ in 0..ids.len() {
                causes.push(if told { read_causes(bits)? } else { Causes::NONE });
            }
        }
        Ok(())
    }

    /// Writes the section. With `known`, the client knows the ids.
    pub fn write(&self, known: bool, bits: &mut BitWriter<'_>) {
        write_ids(&self.ids, known, bits);
        self.bodies.iter().for_each(|body| body.write(&G::Body::blank(), bits));
        write_emitted(self.emitted.iter().copied(), bits);
        let causes = |tick: usize, body: usize| self.causes.get(tick * self.ids.len() + body).copied();
        let fates = self.fates.iter().enumerate();
        let fates =
            fates.map(|(tick, fate)| (*fate, move |body: usize| causes(tick, body).unwrap_or_default()));
        write_fates(fates, self.ids.len(), bits);
    }
}

/// Writes the ids, unless the client knows them.
pub(crate) fn write_ids(ids: &[BodyId], known: bool, bits: &mut BitWriter<'_>) {
    bits.write_flag(known);
    if !known {
        write_count(u32::try_from(ids.len()).unwrap_or(0), 0, bits);
        ids.iter().for_each(|id| write_id(*id, bits));
    }
}

/// Writes how many bodies each of the own ones has emitted.
pub(crate) fn write_emitted(emitted: impl Iterator<Item = u32> + Clone, bits: &mut BitWriter<'_>) {
    let any = emitted.clone().any(|emitted| emitted > 0);
    bits.write_flag(any);
    if any {
        emitted.for_each(|emitted| write_count(emitted, EMITTED_ORDER, bits));
    }
}

/// Writes so many ticks in which the input was simulated as sent, and nothing happened to the bodies.
pub(crate) fn write_plain_fates(ticks: u32, bits: &mut BitWriter<'_>) {
    bits.write(ticks, TICKS_BITS);
    bits.write_flag(true);
}

fn is_plain(fate: Fate, bodies: usize, causes: impl Fn(usize) -> Causes) -> bool {
    fate == Fate::AsSent && (0..bodies).all(|body| causes(body).is_empty())
}

/// Writes the fates of the latest ticks, oldest first, at most [`MAX_FATES`]: that of the input, and the causes of each of
/// so many bodies.
pub(crate) fn write_fates<C: Fn(usize) -> Causes>(
    fates: impl ExactSizeIterator<Item = (Fate, C)> + Clone,
    bodies: usize,
    bits: &mut BitWriter<'_>,
) {
    let left_out = fates.len().saturating_sub(MAX_FATES);
    let fates = fates.skip(left_out);
    bits.write(u32::try_from(fates.len()).unwrap_or(0), TICKS_BITS);
    let plain = fates.clone().all(|(fate, causes)| is_plain(fate, bodies, causes));
    bits.write_flag(plain);
    if plain {
        return;
    }
    for (fate, causes) in fates {
        let plain = is_plain(fate, bodies, &causes);
        bits.write_flag(!plain);
        if !plain {
            write_fate(fate, bits);
            (0..bodies).for_each(|body| write_causes(causes(body), bits));
        }
    }
}

/// The number of fates, the newest, that fit into `max_bits`.
pub(crate) fn fates_that_fit<C: Fn(usize) -> Causes>(
    fates: impl ExactSizeIterator<Item = (Fate, C)> + DoubleEndedIterator + Clone,
    bodies: usize,
    max_bits: usize,
) -> usize {
    let room = max_bits.saturating_sub(TICKS_BITS as usize + 1);
    let each = fate_bits(bodies);
    if fates.len() * each <= room || fates.clone().all(|(fate, causes)| is_plain(fate, bodies, causes)) {
        return fates.len();
    }
    let used = fates.rev().scan(0, |bits, (fate, causes)| {
        *bits += if is_plain(fate, bodies, causes) { 1 } else { each };
        Some(*bits)
    });
    used.take_while(|bits| *bits <= room).count()
}

fn write_fate(fate: Fate, bits: &mut BitWriter<'_>) {
    let fate = match fate {
        Fate::AsSent => 0,
        Fate::Held => 1,
        Fate::Late => 2,
        Fate::Lost => 3,
    };
    bits.write(fate, 2);
}

fn read_fate(bits: &mut BitReader<'_>) -> Result<Fate, WireError> {
    Ok(match bits.read(2)? {
        0 => Fate::AsSent,
        1 => Fate::Held,
        2 => Fate::Late,
        _ => Fate::Lost,
    })
}

fn write_causes(causes: Causes, bits: &mut BitWriter<'_>) {
    bits.write_flag(!causes.is_empty());
    if !causes.is_empty() {
        WORLD.iter().for_each(|cause| bits.write_flag(causes.contains(*cause)));
    }
}

fn read_causes(bits: &mut BitReader<'_>) -> Result<Causes, WireError> {
    let mut causes = Causes::NONE;
    if bits.read_flag()? {
        for cause in WORLD {
            if bits.read_flag()? {
                causes = causes.with(cause);
            }
        }
    }
    Ok(causes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody};
    use proptest::prelude::*;

    fn any_fate() -> impl Strategy<Value = Fate> {
        prop_oneof![Just(Fate::AsSent), Just(Fate::Held), Just(Fate::Late), Just(Fate::Lost)]
    }

    fn any_causes() -> impl Strategy<Value = Causes> {
        let world = prop::collection::vec(prop::sample::select(WORLD.to_vec()), 0..3);
        world.prop_map(|world| world.into_iter().collect::<Causes>())
    }

    fn own(bodies: usize, fates: Vec<Fate>, causes: Vec<Causes>) -> OwnBodies<Cart> {
        let ids: Vec<_> = (0..bodies as u64).map(|number| BodyId::new(900 - number)).collect();
        let bodies = (0..bodies).map(|place| CartBody::at(place as f64 + 2.5)).collect();
        let emitted = vec![0; ids.len()];
        OwnBodies { ids, bodies, emitted, fates, causes }
    }

    fn plain(bodies: usize, ticks: usize) -> OwnBodies<Cart> {
        own(bodies, vec![Fate::AsSent; ticks], vec![Causes::NONE; ticks * bodies])
    }

    fn round_trip(sent: &OwnBodies<Cart>, known: bool) -> (OwnBodies<Cart>, usize) {
        let mut buffer = [0; 4_000];
        let mut bits = BitWriter::new(&mut buffer);
        sent.write(known, &mut bits);
        let count = bits.len_bits();
        let length = bits.finish().unwrap();
        let mut read = OwnBodies::default();
        let ids = if known { &*sent.ids } else { &[] };
        read.read(ids, &mut BitReader::new(&buffer[..length])).unwrap();
        (read, count)
    }

    #[test]
    fn a_body_to_which_nothing_happened_costs_its_state_and_twelve_bits() {
        let sent = plain(1, 4);
        assert_eq!(round_trip(&sent, true), (sent, 40 + 12));
    }

    #[test]
    fn ids_are_sent_until_the_client_knows_them() {
        let sent = plain(2, 1);
        let (read, count) = round_trip(&sent, false);
        assert_eq!((read, count), (sent, 1 + 3 + 2 * 48 + 2 * 40 + 11));
        let nothing = plain(0, 3);
        assert_eq!(round_trip(&nothing, false), (nothing, 1 + 1 + 11));
    }

    #[test]
    fn the_oldest_are_left_out_when_there_are_too_many() {
        let mut sent = plain(1, MAX_FATES + 5);
        sent.fates[4] = Fate::Held;
        sent.fates[5] = Fate::Held;
        sent.causes[5] = Causes::NONE.with(Cause::Death);
        let (read, _) = round_trip(&sent, true);
        assert_eq!((&*read.fates, &*read.causes), (&sent.fates[5..], &sent.causes[5..]));
    }

    #[test]
    fn the_newest_fates_that_fit_are_kept_just_inside_and_not_just_outside() {
        let fates = [Fate::AsSent, Fate::Held, Fate::AsSent, Fate::Held];
        let with_causes = || fates.iter().map(|fate| (*fate, |_: usize| Causes::NONE));
        let fit = |bits: usize| fates_that_fit(with_causes(), 1, bits);
        // 10 bits of header; 9 for one that was held, 1 for a plain one.
        assert_eq!([9, 18, 19, 20, 28, 29, 30].map(fit), [0, 0, 1, 2, 2, 3, 4]);
        let plain = [(Fate::AsSent, |_: usize| Causes::NONE); 40];
        assert_eq!(fates_that_fit(plain.into_iter(), 1, 10), 40, "plain ones take no bits");
    }

    #[test]
    fn causes_belong_to_one_body_and_to_its_ticks() {
        let mut sent = plain(2, 3);
        sent.causes[1] = Causes::NONE.with(Cause::Death);
        sent.causes[4] = Causes::NONE.with(Cause::Teleport);
        let (read, _) = round_trip(&sent, true);
        assert_eq!(read.causes_of(0, 0), Causes::NONE.with(Cause::Teleport));
        assert_eq!(read.causes_of(1, 0), Causes::NONE.with(Cause::Death));
        assert_eq!(read.causes_of(1, 1), Causes::NONE);
    }

    proptest! {
        #[test]
        fn fates_survive_the_wire(
            ticks in prop::collection::vec((any_fate(), any_causes(), any_causes()), 0..60), known in any::<bool>(),
        ) {
            let fates = ticks.iter().map(|(fate, ..)| *fate).collect();
            let causes = ticks.iter().flat_map(|(_, first, second)| [*first, *second]).collect();
            let sent = own(2, fates, causes);
            prop_assert_eq!(round_trip(&sent, known).0, sent);
        }

        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..800), known in 0u64..5) {
            let known: Vec<_> = (0..known).map(BodyId::new).collect();
            let mut own = OwnBodies::<Cart>::default();
            let _ = own.read(&known, &mut BitReader::new(&bytes));
            prop_assert!(own.fates.len() <= MAX_FATES && own.ids.len() <= MAX_OWNED);
        }
    }
}
