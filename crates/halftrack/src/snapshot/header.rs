//! What a snapshot begins with: which tick it is of, and what the server has to say of this client's datagrams.
//!
//! ```text
//! tick     16   the low bits of the tick that the bodies stand at the end of
//! epoch     8   the low bits of the time epoch
//! late     10   how long after the end of that tick it was written: 64 us each; all ones: too long to say
//! echo      1   an input datagram of this client has arrived, and
//!   seq    16   the newest
//!   held   16   how long ago that was when this was written: 16 us each; all ones: too long to say
//!   newest  1   the newest of them that had a margin, and it: 20, see below
//!   least   1   the one with the least margin of the last 16, if it is another, and it: 20
//!
//! a margin: which datagram, counted back from the echoed one (6), and how early it came (14, signed, 128 us each)
//! ```
//!
//! What is cut off is completed by what the receiver already knows: it is never off by half of what the bits can say.

use core::time::Duration;

use crate::input::Margin;
use crate::seq::Seq;
use crate::tick::{Epoch, Tick};
use crate::time::whole_micros;
use crate::wire::{BitReader, BitWriter, WireError};

const TICK_BITS: u32 = 16;
const EPOCH_BITS: u32 = 8;
const BACK_BITS: u32 = 6;

/// A span in so many bits, in units of so many microseconds. All ones mean: too long to say.
struct SpanField {
    bits: u32,
    unit: u64,
}

const LATE: SpanField = SpanField { bits: 10, unit: 64 };
const HELD: SpanField = SpanField { bits: 16, unit: 16 };

impl SpanField {
    const fn unknown(&self) -> u32 {
        (1 << self.bits) - 1
    }

    fn write(&self, span: Option<Duration>, bits: &mut BitWriter<'_>) {
        let units = span.and_then(|span| u32::try_from(whole_micros(span) / self.unit).ok());
        bits.write(units.map_or(self.unknown(), |units| units.min(self.unknown())), self.bits);
    }

    fn read(&self, bits: &mut BitReader<'_>) -> Result<Option<Duration>, WireError> {
        let units = bits.read(self.bits)?;
        Ok((units != self.unknown()).then(|| Duration::from_micros(u64::from(units) * self.unit)))
    }
}

/// Margins: signed, in units of 128 us, rounded towards late; those beyond a second are a second.
const MARGIN_BITS: u32 = 14;
const MARGIN_SHIFT: u32 = 7;
const MARGIN_MAX: i64 = (1 << (MARGIN_BITS - 1)) - 1;

/// The newest input datagram of this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Which.
    pub seq: Seq,
    /// How long before the snapshot was written it had arrived, if that can be said.
    pub held: Option<Duration>,
    /// The newest datagram that had a margin. None that is too many datagrams ago can be told.
    pub newest: Option<Margin>,
    /// The one with the least margin of late.
    pub least: Option<Margin>,
}

/// The beginning of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The bodies stand at the end of this tick.
    pub tick: Tick,
    /// The stretch of server time it belongs to.
    pub epoch: Epoch,
    /// How long after the end of the tick it was written, if that can be said: not while the server catches up.
    pub late: Option<Duration>,
    /// What became of this client's datagrams.
    pub echo: Option<Echo>,
}

impl Header {
    /// Writes it.
    pub fn write(&self, bits: &mut BitWriter<'_>) {
        bits.write(self.tick.number() & mask(TICK_BITS), TICK_BITS);
        bits.write(self.epoch.number() & mask(EPOCH_BITS), EPOCH_BITS);
        LATE.write(self.late, bits);
        bits.write_flag(self.echo.is_some());
        let Some(echo) = self.echo else { return };
        bits.write(u32::from(echo.seq.number()), 16);
        HELD.write(echo.held, bits);
        write_margin(echo.seq, echo.newest, bits);
        write_margin(echo.seq, echo.least.filter(|least| Some(*least) != echo.newest), bits);
    }

    /// Reads it. `near` is the newest tick and epoch that the receiver knows of.
    ///
    /// # Errors
    /// When the bits end too early, or name what cannot be.
    pub fn read(near: (Tick, Epoch), bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        let tick = nearest(bits.read(TICK_BITS)?, TICK_BITS, near.0.number());
        let tick = Tick::new(tick.ok_or(WireError::Invalid { field: "tick" })?);
        let epoch = nearest(bits.read(EPOCH_BITS)?, EPOCH_BITS, near.1.number());
        let epoch = Epoch::new(epoch.ok_or(WireError::Invalid { field: "epoch" })?);
        let late = LATE.read(bits)?;
        let mut echo = None;
        if bits.read_flag()? {
            let seq = u16::try_from(bits.read(16)?).map_err(|_| WireError::Invalid { field: "seq" })?;
            let seq = Seq::new(seq);
            let held = HELD.read(bits)?;
            let newest = read_margin(seq, bits)?;
            let least = read_margin(seq, bits)?.or(newest);
            echo = Some(Echo { seq, held, newest, least });
        }
        Ok(Self { tick, epoch, late, echo })
    }
}

const fn mask(count: u32) -> u32 {
    (1 << count) - 1
}

/// The number nearest to `near` whose low `count` bits are `low`; `None` when that is below zero or above all numbers.
fn nearest(low: u32, count: u32, near: u32) -> Option<u32> {
    let range = 1u32 << count;
    let ahead = low.wrapping_sub(near) & mask(count);
    if ahead < range / 2 { near.checked_add(ahead) } else { near.checked_sub(range - ahead) }
}

fn write_margin(echoed: Seq, margin: Option<Margin>, bits: &mut BitWriter<'_>) {
    let back = |margin: &Margin| u32::from(echoed.number().wrapping_sub(margin.seq.number()));
    let told = margin.filter(|margin| back(margin) <= mask(BACK_BITS));
    bits.write_flag(told.is_some());
    if let Some(margin) = told {
        bits.write(back(&margin), BACK_BITS);
        let units = (margin.micros >> MARGIN_SHIFT).clamp(-MARGIN_MAX, MARGIN_MAX);
        bits.write_signed(i32::try_from(units).unwrap_or(0), MARGIN_BITS);
    }
}

fn read_margin(echoed: Seq, bits: &mut BitReader<'_>) -> Result<Option<Margin>, WireError> {
    if !bits.read_flag()? {
        return Ok(None);
    }
    let back = u16::try_from(bits.read(BACK_BITS)?).map_err(|_| WireError::Invalid { field: "margin" })?;
    let units = i64::from(bits.read_signed(MARGIN_BITS)?);
    Ok(Some(Margin { seq: Seq::new(echoed.number().wrapping_sub(back)), micros: units << MARGIN_SHIFT }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(header: &Header, near: (Tick, Epoch)) -> Result<Header, WireError> {
        let mut buffer = [0; 32];
        let mut bits = BitWriter::new(&mut buffer);
        header.write(&mut bits);
        let length = bits.finish().unwrap();
        Header::read(near, &mut BitReader::new(&buffer[..length]))
    }

    fn header(tick: u32) -> Header {
        let margin = |seq, micros| Some(Margin { seq: Seq::new(seq), micros });
        let echo = Echo {
            seq: Seq::new(3),
            held: Some(Duration::from_micros(48_000)),
            newest: margin(2, 12_800),
            least: margin(65_530, -1_280),
        };
        Header {
            tick: Tick::new(tick),
            epoch: Epoch::new(0),
            late: Some(Duration::from_micros(640)),
            echo: Some(echo),
        }
    }

    #[test]
    fn the_bytes_are_these() {
        let mut buffer = [0; 32];
        let mut bits = BitWriter::new(&mut buffer);
        header(0x0001_2345).write(&mut bits);
        assert_eq!(bits.len_bits(), 16 + 8 + 10 + 1 + 16 + 16 + 21 + 21, "fourteen bytes");
        assert_eq!(bits.finish(), Some(14));
        assert_eq!(buffer[..6], [0x45, 0x23, 0, 10, 0b0001_1100, 0]);
    }

    #[test]
    fn stale_04_ticks_and_epochs_survive_the_wrap_of_their_bits() {
        for near in [0u32, 1, 0x7fff, 0x8000, 0xffff, 0x0001_0000, 0xffff_fffe] {
            for away in [-32_768i64, -1, 0, 1, 32_767] {
                let Ok(tick) = u32::try_from(i64::from(near) + away) else { continue };
                let sent = header(tick);
                assert_eq!(round_trip(&sent, (Tick::new(near), Epoch::new(0))), Ok(sent), "{near} {away}");
            }
        }
        let sent = Header { epoch: Epoch::new(256), ..header(9) };
        assert_eq!(round_trip(&sent, (Tick::new(9), Epoch::new(255))), Ok(sent));
        let before_the_first = round_trip(&header(0xffff), (Tick::new(0), Epoch::new(0)));
        assert_eq!(before_the_first, Err(WireError::Invalid { field: "tick" }));
    }

    #[test]
    fn what_is_too_long_or_too_old_is_not_said() {
        let mut sent = header(5);
        sent.late = Some(Duration::from_millis(66));
        let echo = sent.echo.as_mut().unwrap();
        echo.held = Some(Duration::from_secs(2));
        echo.newest = Some(Margin { seq: Seq::new(3u16.wrapping_sub(64)), micros: 0 });
        echo.least = Some(Margin { seq: Seq::new(3u16.wrapping_sub(63)), micros: -5_000_000 });
        let read = round_trip(&sent, (Tick::new(5), Epoch::new(0))).unwrap();
        assert_eq!(read.late, None);
        let echo = read.echo.unwrap();
        assert_eq!((echo.held, echo.newest), (None, None));
        assert_eq!(echo.least.unwrap().micros, -(8_191 << 7), "a second late is late enough");
    }

    proptest! {
        #[test]
        fn margins_are_never_rounded_to_the_good(micros in -2_000_000i64..2_000_000) {
            let mut sent = header(5);
            sent.echo.as_mut().unwrap().newest = Some(Margin { seq: Seq::new(3), micros });
            let read = round_trip(&sent, (Tick::new(5), Epoch::new(0))).unwrap().echo.unwrap().newest.unwrap();
            prop_assert!(read.micros <= micros || micros < -1_000_000);
            prop_assert!((read.micros - micros).abs() < 128 || micros.abs() > 1_000_000);
        }

        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..20), near in any::<u32>()) {
            let _ = Header::read((Tick::new(near), Epoch::new(near)), &mut BitReader::new(&bytes));
        }
    }
}
