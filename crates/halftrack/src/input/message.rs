//! `MoveInput`: what a player asked for in the ticks that are not acknowledged, in one datagram.
//!
//! ```text
//! seq              16   newest wins; echoed, for the round trip: the client knows when it sent which
//! ack               1   and 32 if set: the newest snapshot that was decoded and checked
//! count             8   ticks that follow, at most MAX_TICKS
//!   newest         32   number of the last of them         } if count is not zero
//!   open            1   the last can still be extended     }
//!   per tick, oldest first:
//!     same          1   starts as the tick before it ended (not in the first)
//!     start             an input, if not the same
//!     changes       1   has any
//!       number      2   less one, at most 2
//!       per change:
//!         at        8   moment of the sub-tick grid, strictly increasing, never 0
//!         input         never what it was before
//! ```

use crate::cadence::SubTick;
use crate::input::{MAX_CHANGES, TickInput};
use crate::model::Input;
use crate::seq::Seq;
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter, WireError};

/// Whether a tick's input is all there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completeness {
    /// The tick is over.
    #[default]
    Closed,
    /// The tick goes on: later changes may be added, what is there stays.
    Open,
}

/// What a player asked for, tick by tick. Its memory is used again from one message to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveInput<I> {
    /// Its number in this player's stream.
    pub seq: Seq,
    /// The newest snapshot that the client could use.
    pub ack: Option<Tick>,
    /// The tick of the last of `ticks`.
    pub newest: Tick,
    /// Whether that tick is over.
    pub completeness: Completeness,
    /// The input of consecutive ticks, oldest first. At most [`Self::MAX_TICKS`].
    pub ticks: Vec<TickInput<I>>,
}

impl<I> Default for MoveInput<I> {
    fn default() -> Self {
        Self {
            seq: Seq::default(),
            ack: None,
            newest: Tick::default(),
            completeness: Completeness::Closed,
            ticks: Vec::new(),
        }
    }
}

impl<I> MoveInput<I> {
    /// The most ticks in a message: 6 s at the default cadence, 0.6 s at 200 Hz. What is older is too late anyway.
    pub const MAX_TICKS: usize = 128;
}

impl<I: Input> MoveInput<I> {
    /// Writes it into `buffer`; gives its length, or `None` if there is no room. Ticks beyond the most that a
    /// message holds are left out, oldest first.
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut bits = BitWriter::new(buffer);
        bits.write(u32::from(self.seq.number()), 16);
        bits.write_flag(self.ack.is_some());
        if let Some(ack) = self.ack {
            bits.write(ack.number(), 32);
        }
        let left_out = self.ticks.len().saturating_sub(Self::MAX_TICKS);
        let ticks = self.ticks.get(left_out..).unwrap_or_default();
        bits.write(u32::try_from(ticks.len()).ok()?, 8);
        if !ticks.is_empty() {
            bits.write(self.newest.number(), 32);
            bits.write_flag(self.completeness == Completeness::Open);
        }
        let mut before = None;
        for tick in ticks {
            write_tick(&mut bits, before, tick);
            before = Some(tick.last());
        }
        bits.finish()
    }

    /// Reads it from `bytes`, which it must fill. On an error, what it holds is unspecified.
    ///
    /// # Errors
    /// When the bytes are not a message.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let mut bits = BitReader::new(bytes);
        self.seq = Seq::new(u16::try_from(bits.read(16)?).map_err(|_| WireError::Invalid { field: "seq" })?);
        self.ack = if bits.read_flag()? { Some(Tick::new(bits.read(32)?)) } else { None };
        let count = bits.read(8)?;
        if count as usize > Self::MAX_TICKS {
            return Err(WireError::Invalid { field: "count" });
        }
        (self.newest, self.completeness) = (Tick::default(), Completeness::Closed);
        if count > 0 {
            self.newest = Tick::new(bits.read(32)?);
            if bits.read_flag()? {
                self.completeness = Completeness::Open;
            }
            // The oldest would lie before the first tick there is.
            if self.newest.number() < count - 1 {
                return Err(WireError::Invalid { field: "newest" });
            }
        }
        self.ticks.clear();
        let mut before = None;
        for _ in 0..count {
            let tick = read_tick(&mut bits, before)?;
            before = Some(tick.last());
            self.ticks.push(tick);
        }
        bits.finish()
    }

    /// Its ticks with their numbers, oldest first.
    pub fn numbered(&self) -> impl Iterator<Item = (Tick, &TickInput<I>)> {
        let count = u32::try_from(self.ticks.len()).unwrap_or(u32::MAX);
        let first = self.newest.number().saturating_sub(count.saturating_sub(1));
        Tick::new(first).onwards().zip(&self.ticks)
    }
}

/// Writes the input of a tick, against what the tick before it ended with.
pub(crate) fn write_tick<I: Input>(bits: &mut BitWriter<'_>, before: Option<I>, tick: &TickInput<I>) {
    if let Some(before) = before {
        bits.write_flag(before == tick.start());
    }
    match before {
        Some(before) if before == tick.start() => {}
        Some(before) => tick.start().write_after(&before, bits),
        None => tick.start().write(bits),
    }
    let count = u32::try_from(tick.changes().count()).unwrap_or(0);
    bits.write_flag(count > 0);
    if count > 0 {
        bits.write(count - 1, 2);
        let mut before = tick.start();
        for change in tick.changes() {
            bits.write(u32::from(change.at.index()), 8);
            change.input.write_after(&before, bits);
            before = change.input;
        }
    }
}

/// Reads it.
pub(crate) fn read_tick<I: Input>(
    bits: &mut BitReader<'_>,
    before: Option<I>,
) -> Result<TickInput<I>, WireError> {
    // There is one way to write a tick, and this is not it.
    let invalid = |field| Err(WireError::Invalid { field });
    let same = before.is_some() && bits.read_flag()?;
    let start = match before {
        Some(before) if same => before,
        Some(before) => I::read_after(&before, bits)?,
        None => I::read(bits)?,
    };
    if !same && before == Some(start) {
        return invalid("start");
    }
    let mut tick = TickInput::steady(start);
    if !bits.read_flag()? {
        return Ok(tick);
    }
    let count = bits.read(2)? as usize + 1;
    if count > MAX_CHANGES {
        return invalid("changes");
    }
    for _ in 0..count {
        let index = u8::try_from(bits.read(8)?).ok();
        let Some(at) = index.and_then(SubTick::new) else { return invalid("change.at") };
        let input = I::read_after(&tick.last(), bits)?;
        if input == tick.last() {
            return invalid("change.input");
        }
        if tick.change(at, input).is_err() {
            return invalid("change.at");
        }
    }
    Ok(tick)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_tick() -> impl Strategy<Value = TickInput<i8>> {
        (any::<i8>(), prop::collection::vec((1u8..=255, any::<i8>()), 0..5)).prop_map(|(start, changes)| {
            let mut tick = TickInput::steady(start);
            for (index, input) in changes {
                let _ = tick.change(SubTick::new(index).unwrap(), input);
            }
            tick
        })
    }

    fn any_message() -> impl Strategy<Value = MoveInput<i8>> {
        let header = (any::<u16>(), prop::option::of(any::<u32>()), 128u32.., any::<bool>());
        (header, prop::collection::vec(any_tick(), 0..20)).prop_map(|((seq, ack, newest, open), ticks)| {
            let some = !ticks.is_empty();
            MoveInput {
                seq: Seq::new(seq),
                ack: ack.map(Tick::new),
                newest: if some { Tick::new(newest) } else { Tick::default() },
                completeness: if open && some { Completeness::Open } else { Completeness::Closed },
                ticks,
            }
        })
    }

    fn encoded(message: &MoveInput<i8>) -> Vec<u8> {
        let mut buffer = [0; 1_100];
        let length = message.encode(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }

    #[test]
    fn the_bytes_are_these() {
        let mut tick = TickInput::steady(3);
        tick.change(SubTick::new(0x80).unwrap(), -1).unwrap();
        let message = MoveInput {
            seq: Seq::new(0x0201),
            ack: None,
            newest: Tick::new(0x10),
            completeness: Completeness::Open,
            ticks: vec![tick, TickInput::steady(-1)],
        };
        let golden = [
            0x01, 0x02, // seq
            0x04, 0x20, 0, 0, 0, 0x0e, // no ack, two ticks, newest 16, open, start 3
            0x04, 0xf0, 0x3f, // one change at 128 to -1; the same, no changes
        ];
        assert_eq!(encoded(&message), golden);
    }

    #[test]
    fn a_tick_that_goes_on_costs_two_bits() {
        let mut message = MoveInput { newest: Tick::new(500), ..MoveInput::default() };
        let length = |message: &MoveInput<i8>| encoded(message).len();
        message.ticks = vec![TickInput::steady(7); 1];
        let one = length(&message);
        message.ticks = vec![TickInput::steady(7); 41];
        assert_eq!(length(&message) - one, 10);
    }

    #[test]
    fn only_the_newest_ticks_go_out_and_too_many_do_not_come_in() {
        let mut message = MoveInput { newest: Tick::new(500), ..MoveInput::default() };
        message.ticks = (0..200).map(|n| TickInput::steady(n as u8 as i8)).collect();
        let mut read = MoveInput::<i8>::default();
        read.decode(&encoded(&message)).unwrap();
        assert_eq!(read.ticks, message.ticks[72..]);
        assert_eq!(read.numbered().next().map(|(tick, _)| tick), Some(Tick::new(373)));
        let mut bytes = encoded(&message);
        // 129 in the eight bits after the 17 of the header.
        bytes[2] = (bytes[2] & 1) | (129 << 1 & 0xff) as u8;
        bytes[3] = (bytes[3] & !1) | 1;
        assert_eq!(read.decode(&bytes), Err(WireError::Invalid { field: "count" }));
    }

    #[test]
    fn ticks_before_the_first_are_refused() {
        let mut message =
            MoveInput { newest: Tick::new(1), ticks: vec![TickInput::steady(1); 2], ..MoveInput::default() };
        let mut read = MoveInput::<i8>::default();
        assert_eq!(read.decode(&encoded(&message)), Ok(()));
        message.newest = Tick::new(0);
        assert_eq!(read.decode(&encoded(&message)), Err(WireError::Invalid { field: "newest" }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(message in any_message()) {
            let mut read = MoveInput::<i8>::default();
            prop_assert_eq!(read.decode(&encoded(&message)), Ok(()));
            prop_assert_eq!(read, message);
        }

        /// Any bytes give a message or an error, and a message is written as it was read.
        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut read = MoveInput::<i8>::default();
            if read.decode(&bytes) == Ok(()) {
                prop_assert_eq!(encoded(&read), bytes);
            }
        }

        #[test]
        fn mutated_messages_are_read_or_refused(message in any_message(), at in any::<prop::sample::Index>(), flip in 1u8..) {
            let mut bytes = encoded(&message);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let mut read = MoveInput::<i8>::default();
            if read.decode(&bytes) == Ok(()) {
                prop_assert_eq!(&encoded(&read), &bytes);
            }
            bytes.truncate(at);
            let _ = read.decode(&bytes);
        }

        #[test]
        fn a_buffer_that_is_too_small_is_told(message in any_message(), cut in any::<prop::sample::Index>()) {
            let length = encoded(&message).len();
            let mut buffer = vec![0; cut.index(length)];
            prop_assert_eq!(message.encode(&mut buffer), None);
        }
    }
}
