//! The client's own body in a snapshot: as it is, and what the server did with it tick by tick.
//!
//! ```text
//! body             against a blank one: it needs nothing that came before
//! ticks        9   how many are told of, the snapshot's own the last
//! plain        1   in all of them the input was simulated as sent, and nothing happened
//!   per tick, oldest first, if not:
//!     told     1   something else
//!       fate   2   0 as sent, 1 held, 2 late, 3 lost
//!       world  1   something happened, and which, one bit each: teleport, respawn, death, params, collision
//! ```
//!
//! It is never rebuilt from the client's own inputs: that would confirm whatever the client believed. And it is told
//! since the snapshot that the client has, so a lost snapshot loses no cause.

use crate::cause::{Cause, Causes};
use crate::game::Game;
use crate::input::Fate;
use crate::model::Body;
use crate::wire::{BitReader, BitWriter, WireError};

const TICKS_BITS: u32 = 9;

/// The most ticks that are told of: 2.5 s at 200 Hz, more than a client can have pending.
pub const MAX_FATES: usize = (1 << TICKS_BITS) - 1;

/// Bits of a fate at most: two flags, what became of the input, and what the world did.
const FATE_BITS: usize = 4 + WORLD.len();

/// What the world can do to a body, in the order of their bits.
const WORLD: [Cause; 5] = [Cause::Teleport, Cause::Respawn, Cause::Death, Cause::Params, Cause::Collision];

/// What the server did with a player in one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickFate {
    /// What it did with the input.
    pub input: Fate,
    /// What the world did to the body.
    pub world: Causes,
}

impl TickFate {
    const PLAIN: Self = Self { input: Fate::AsSent, world: Causes::NONE };

    /// Everything that may have made this tick another than the client expected.
    pub fn causes(self) -> Causes {
        self.input.cause().map_or(self.world, |cause| self.world.with(cause))
    }
}

/// Writes a body and the fates of its latest ticks, oldest first, at most [`MAX_FATES`].
pub fn write_own<G: Game>(
    body: &G::Body,
    fates: impl ExactSizeIterator<Item = TickFate> + Clone,
    bits: &mut BitWriter<'_>,
) {
    body.write(&G::Body::blank(), bits);
    write_fates(fates, bits);
}

/// Writes the fates alone, after the body.
pub(crate) fn write_fates(fates: impl ExactSizeIterator<Item = TickFate> + Clone, bits: &mut BitWriter<'_>) {
    let left_out = fates.len().saturating_sub(MAX_FATES);
    let fates = fates.skip(left_out);
    bits.write(u32::try_from(fates.len()).unwrap_or(0), TICKS_BITS);
    let plain = fates.clone().all(|fate| fate == TickFate::PLAIN);
    bits.write_flag(plain);
    if !plain {
        fates.for_each(|fate| write_fate(fate, bits));
    }
}

/// How many fates, the newest, fit into `max_bits`.
pub(crate) fn fates_that_fit(
    fates: impl ExactSizeIterator<Item = TickFate> + DoubleEndedIterator + Clone,
    max_bits: usize,
) -> usize {
    let room = max_bits.saturating_sub(TICKS_BITS as usize + 1);
    let plain = |fate: &TickFate| *fate == TickFate::PLAIN;
    if fates.len() * FATE_BITS <= room || fates.clone().all(|fate| plain(&fate)) {
        return fates.len();
    }
    let used = fates.rev().scan(0, |bits, fate| {
        *bits += if plain(&fate) { 1 } else { FATE_BITS };
        Some(*bits)
    });
    used.take_while(|bits| *bits <= room).count()
}

/// Reads a body, and the fates of its latest ticks into `fates`.
///
/// # Errors
/// When the bits end too early or mean nothing.
pub fn read_own<G: Game>(fates: &mut Vec<TickFate>, bits: &mut BitReader<'_>) -> Result<G::Body, WireError> {
    let body = G::Body::read(&G::Body::blank(), bits)?;
    let count = bits.read(TICKS_BITS)?;
    let plain = bits.read_flag()?;
    fates.clear();
    for _ in 0..count {
        fates.push(if plain { TickFate::PLAIN } else { read_fate(bits)? });
    }
    Ok(body)
}

fn write_fate(fate: TickFate, bits: &mut BitWriter<'_>) {
    bits.write_flag(fate != TickFate::PLAIN);
    if fate == TickFate::PLAIN {
        return;
    }
    let input = match fate.input {
        Fate::AsSent => 0,
        Fate::Held => 1,
        Fate::Late => 2,
        Fate::Lost => 3,
    };
    bits.write(input, 2);
    bits.write_flag(!fate.world.is_empty());
    if !fate.world.is_empty() {
        WORLD.iter().for_each(|cause| bits.write_flag(fate.world.contains(*cause)));
    }
}

fn read_fate(bits: &mut BitReader<'_>) -> Result<TickFate, WireError> {
    if !bits.read_flag()? {
        return Ok(TickFate::PLAIN);
    }
    let input = match bits.read(2)? {
        0 => Fate::AsSent,
        1 => Fate::Held,
        2 => Fate::Late,
        _ => Fate::Lost,
    };
    let mut world = Causes::NONE;
    if bits.read_flag()? {
        for cause in WORLD {
            if bits.read_flag()? {
                world = world.with(cause);
            }
        }
    }
    Ok(TickFate { input, world })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody};
    use proptest::prelude::*;

    fn any_fate() -> impl Strategy<Value = TickFate> {
        let input = prop_oneof![Just(Fate::AsSent), Just(Fate::Held), Just(Fate::Late), Just(Fate::Lost)];
        let world = prop::collection::vec(prop::sample::select(WORLD.to_vec()), 0..3);
        (input, world)
            .prop_map(|(input, world)| TickFate { input, world: world.into_iter().collect::<Causes>() })
    }

    fn round_trip(fates: &[TickFate]) -> (CartBody, Vec<TickFate>, usize) {
        let mut buffer = [0; 1_100];
        let mut bits = BitWriter::new(&mut buffer);
        write_own::<Cart>(&CartBody::at(2.5), fates.iter().copied(), &mut bits);
        let count = bits.len_bits();
        let length = bits.finish().unwrap();
        let mut read = vec![];
        let body = read_own::<Cart>(&mut read, &mut BitReader::new(&buffer[..length])).unwrap();
        (body, read, count)
    }

    #[test]
    fn a_player_whom_nothing_happened_to_costs_its_body_and_ten_bits() {
        let (body, fates, bits) = round_trip(&[TickFate::PLAIN; 4]);
        assert_eq!((body, fates, bits), (CartBody::at(2.5), vec![TickFate::PLAIN; 4], 40 + 10));
    }

    #[test]
    fn the_oldest_are_left_out_when_there_are_too_many() {
        let held = TickFate { input: Fate::Held, world: Causes::NONE };
        let mut fates = vec![TickFate::PLAIN; MAX_FATES + 5];
        fates[4] = held;
        fates[5] = TickFate { world: Causes::NONE.with(Cause::Death), ..held };
        assert_eq!(round_trip(&fates).1, fates[5..]);
    }

    #[test]
    fn the_newest_fates_that_fit_are_kept_just_inside_and_not_just_outside() {
        let held = TickFate { input: Fate::Held, world: Causes::NONE };
        let fates = [TickFate::PLAIN, held, TickFate::PLAIN, held];
        let fit = |bits: usize| fates_that_fit(fates.iter().copied(), bits);
        // 10 bits of header; 9 for one that was held, 1 for a plain one.
        assert_eq!([9, 18, 19, 20, 28, 29, 30].map(fit), [0, 0, 1, 2, 2, 3, 4]);
        assert_eq!(fates_that_fit([TickFate::PLAIN; 40].into_iter(), 10), 40, "plain ones take no bits");
    }

    #[test]
    fn a_fate_and_the_world_add_up() {
        let fate = TickFate { input: Fate::Late, world: Causes::NONE.with(Cause::Collision) };
        assert_eq!(fate.causes(), Causes::NONE.with(Cause::LateInput).with(Cause::Collision));
        assert!(TickFate::PLAIN.causes().is_empty());
    }

    proptest! {
        #[test]
        fn fates_survive_the_wire(fates in prop::collection::vec(any_fate(), 0..60)) {
            prop_assert_eq!(round_trip(&fates).1, fates);
        }

        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut fates = vec![];
            let _ = read_own::<Cart>(&mut fates, &mut BitReader::new(&bytes));
            prop_assert!(fates.len() <= MAX_FATES);
        }
    }
}
