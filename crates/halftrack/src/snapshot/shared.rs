//! Snapshots of this tick that serve many clients: written once, copied for each.

use crate::snapshot::roster::RosterNumber;
use crate::tick::Tick;
use crate::wire::BitWriter;

/// What a snapshot that tells of everybody depends on, besides the tick: the snapshot that it builds on, if any, and
/// the roster which that told of completely.
pub(crate) type Basis = Option<(Tick, RosterNumber)>;

/// No datagram and no full state is as long as this: a caller without a limit must not make us take memory without one.
const MAX_BITS: usize = 1 << 23;

#[derive(Clone, Debug, Default)]
struct Written {
    basis: Basis,
    bytes: Vec<u8>,
    /// More than `bytes` has room for if it was longer than anybody could use.
    bits: usize,
}

/// What has been written in this tick. Its memory is used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    written: Vec<Written>,
    /// So many of those are of this tick.
    live: usize,
}

impl Shared {
    /// Nothing of what has been written is so any more.
    pub(crate) fn clear(&mut self) {
        self.live = 0;
    }

    /// Copies the snapshot on `basis`, and writes it first if nobody has needed it yet. Gives false, and copies nothing,
    /// if it takes more than `max_bits`.
    pub(crate) fn copy(
        &mut self,
        basis: Basis,
        max_bits: usize,
        bits: &mut BitWriter<'_>,
        write: impl FnOnce(&mut BitWriter<'_>),
    ) -> bool {
        let max_bits = max_bits.min(MAX_BITS);
        let found = self.written.iter().take(self.live).position(|written| written.basis == basis);
        let at = found.unwrap_or(self.live);
        if at >= self.written.len() {
            self.written.push(Written::default());
        }
        let Some(written) = self.written.get_mut(at) else { return false };
        // What was too long for others may not be for this one.
        let cut = written.bits > written.bytes.len() * 8 && written.bits <= max_bits;
        if found.is_none() || cut {
            self.live = self.live.max(at + 1);
            written.basis = basis;
            written.fill(max_bits, write);
        }
        let fits = written.bits <= max_bits;
        if fits {
            bits.copy(&written.bytes, written.bits);
        }
        fits
    }
}

impl Written {
    fn fill(&mut self, max_bits: usize, write: impl FnOnce(&mut BitWriter<'_>)) {
        let bytes = self.bytes.len().max(max_bits.div_ceil(8));
        self.bytes.resize(bytes, 0);
        let mut bits = BitWriter::new(&mut self.bytes);
        write(&mut bits);
        self.bits = bits.len_bits();
        bits.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_once_is_copied_and_what_is_too_long_is_not() {
        let mut shared = Shared::default();
        let mut buffer = [0; 32];
        let mut copy = |max_bits, basis, value: Option<u32>| {
            let mut bits = BitWriter::new(&mut buffer);
            let write = |bits: &mut BitWriter<'_>| {
                let value = value.expect("it has been written");
                (0..4).for_each(|_| bits.write(value, 32));
            };
            let fits = shared.copy(basis, max_bits, &mut bits, write);
            assert_eq!(bits.len_bits(), if fits { 128 } else { 0 });
            bits.finish().unwrap();
            fits.then(|| buffer[12])
        };
        let basis = Some((Tick::new(3), RosterNumber::default()));
        assert_eq!(copy(127, None, Some(7)), None);
        assert_eq!(copy(100, None, None), None);
        assert_eq!(copy(128, None, Some(7)), Some(7), "there was no room for its end");
        assert_eq!(copy(500, None, None), Some(7));
        assert_eq!(copy(500, basis, Some(8)), Some(8));
        assert_eq!(copy(128, None, None), Some(7));
        shared.clear();
        let mut bits = BitWriter::new(&mut buffer);
        assert!(shared.copy(None, 500, &mut bits, |bits| bits.write(9, 4)));
        assert_eq!(bits.len_bits(), 4);
    }
}
