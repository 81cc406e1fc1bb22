//! Frames of the reliable lane: messages cut out of an ordered stream of bytes.
//!
//! ```text
//! length     2   little-endian, of what follows: 1 ..= MAX_BODY + 1
//! kind       1   what the body is
//! body           length - 1 bytes
//! ```
//!
//! Knows neither what kinds there are nor what is in a body.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::{BitReader, BitWriter, WireError};

/// One message of the reliable lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the body is.
    pub kind: u8,
    /// The message.
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// The longest body. No message needs a tenth of it; a peer that announces more is wrong or hostile.
    pub const MAX_BODY: usize = 4_096;
    pub(crate) const HEADER: usize = 3;
    /// The longest frame.
    pub(crate) const MAX_BYTES: usize = Self::HEADER + Self::MAX_BODY;

    /// Appends it to `stream`. Gives false, and appends nothing, when the body is too long.
    #[must_use]
    pub fn append_to(&self, stream: &mut Vec<u8>) -> bool {
        let Ok(length) = u16::try_from(self.body.len() + 1) else { return false };
        if self.body.len() > Self::MAX_BODY {
            return false;
        }
        stream.extend_from_slice(&length.to_le_bytes());
        stream.push(self.kind);
        stream.extend_from_slice(self.body);
        true
    }
}

/// Finds the frames in a stream that arrives in pieces. Holds at most one frame that is not complete.
///
/// ```
/// use halftrack::wire::{Frame, FrameReader};
///
/// let mut stream = Vec::new();
/// assert!(Frame { kind: 7, body: b"hello" }.append_to(&mut stream));
/// let mut reader = FrameReader::default();
/// let mut pieces = stream.chunks(3);
/// let mut seen = vec![];
/// for piece in pieces {
///     let mut rest = piece;
///     while let Some(frame) = reader.next(&mut rest)? {
///         seen.push((frame.kind, frame.body.to_vec()));
///     }
/// }
/// assert_eq!(seen, [(7, b"hello".to_vec())]);
/// # Ok::<(), halftrack::wire::WireError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    /// The frame under way, header and all.
    held: Vec<u8>,
    /// Whether `held` was given out, and is to be cleared.
    given: bool,
    failed: bool,
}

impl FrameReader {
    /// The next complete frame, taking from the front of `piece` what it needs; `None` when `piece` is used up and
    /// the frame is not complete. Call it until then with each piece that arrives.
    ///
    /// # Errors
    /// When a length is out of range. Nothing after it can be trusted: the stream has failed for good.
    pub fn next(&mut self, piece: &mut &[u8]) -> Result<Option<Frame<'_>>, WireError> {
        const INVALID: WireError = WireError::Invalid { field: "frame.length" };
        if self.failed {
            return Err(INVALID);
        }
        if core::mem::take(&mut self.given) {
            self.held.clear();
        }
        if !self.fill(piece, 2) {
            return Ok(None);
        }
        let length = match self.held.as_slice() {
            [low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
            _ => return Ok(None),
        };
        if length == 0 || length > Frame::MAX_BODY + 1 {
            // Checked before anything is held of it.
            self.failed = true;
            return Err(INVALID);
        }
        if !self.fill(piece, length + 2) {
            return Ok(None);
        }
        self.given = true;
        let frame = self.held.get(Frame::HEADER - 1..).and_then(<[u8]>::split_first);
        Ok(frame.map(|(kind, body)| Frame { kind: *kind, body }))
    }

    /// Whether a loaded reader can have been saved by one.
    pub(crate) fn is_sound(&self) -> bool {
        !self.given && self.held.len() <= Frame::MAX_BODY + Frame::HEADER
    }

    /// Bytes of the frame that is not complete.
    pub(crate) fn unfinished(&self) -> usize {
        if self.given { 0 } else { self.held.len() }
    }

    /// Takes from `piece` until `wanted` bytes are held; gives whether they are.
    fn fill(&mut self, piece: &mut &[u8], wanted: usize) -> bool {
        let missing = wanted.saturating_sub(self.held.len()).min(piece.len());
        let (taken, rest) = piece.split_at(missing);
        self.held.extend_from_slice(taken);
        *piece = rest;
        self.held.len() >= wanted
    }
}

const LENGTH_BITS: u32 = 13;

/// Writes bytes as they are: their number in 13 bits, and each.
pub fn write_bytes(bytes: &[u8], bits: &mut BitWriter<'_>) {
    debug_assert!(bytes.len() <= Frame::MAX_BODY, "no message is longer");
    let bytes = bytes.get(..Frame::MAX_BODY).unwrap_or(bytes);
    bits.write(u32::try_from(bytes.len()).unwrap_or(0), LENGTH_BITS);
    bytes.iter().for_each(|byte| bits.write(u32::from(*byte), 8));
}

/// Reads bytes of [`write_bytes`].
///
/// # Errors
/// When the bits end too early, or there are more bytes than in any message.
pub fn read_bytes(bits: &mut BitReader<'_>) -> Result<Vec<u8>, WireError> {
    let length = bits.read(LENGTH_BITS)? as usize;
    if length > Frame::MAX_BODY {
        return Err(WireError::Invalid { field: "length" });
    }
    (0..length).map(|_| Ok(u8::try_from(bits.read(8)?).unwrap_or(0))).collect()
}

/// The bytes of the incomplete frame: one that was given out is over.
impl Serialize for FrameReader {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let held = if self.given { &[][..] } else { &self.held };
        (held, self.failed).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FrameReader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (held, failed) = <(Vec<u8>, bool)>::deserialize(deserializer)?;
        Ok(Self { held, given: false, failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(pieces: &[&[u8]]) -> Result<Vec<(u8, Vec<u8>)>, WireError> {
        let (mut reader, mut seen) = (FrameReader::default(), vec![]);
        for piece in pieces {
            let mut rest = *piece;
            while let Some(frame) = reader.next(&mut rest)? {
                seen.push((frame.kind, frame.body.to_vec()));
            }
            assert!(rest.is_empty(), "a piece is used up");
            assert!(reader.held.len() <= Frame::MAX_BODY + Frame::HEADER);
        }
        Ok(seen)
    }

    #[test]
    fn the_bytes_are_these() {
        let mut stream = vec![];
        assert!(Frame { kind: 9, body: &[1, 2, 3] }.append_to(&mut stream));
        assert!(Frame { kind: 8, body: &[] }.append_to(&mut stream));
        assert_eq!(stream, [4, 0, 9, 1, 2, 3, 1, 0, 8]);
    }

    #[test]
    fn lengths_hold_just_inside_and_not_just_outside() {
        let mut stream = vec![];
        assert!(Frame { kind: 1, body: &[5; Frame::MAX_BODY] }.append_to(&mut stream));
        assert_eq!(read_all(&[&stream]), Ok(vec![(1, vec![5; Frame::MAX_BODY])]));
        let length = stream.len();
        assert!(!Frame { kind: 1, body: &[5; Frame::MAX_BODY + 1] }.append_to(&mut stream));
        assert!(!Frame { kind: 1, body: &[5; 70_000] }.append_to(&mut stream));
        assert_eq!(stream.len(), length, "and nothing was written");
        let invalid = Err(WireError::Invalid { field: "frame.length" });
        assert_eq!(read_all(&[&[0, 0]]), invalid);
        assert_eq!(read_all(&[&[0x02, 0x10]]), invalid, "4,098");
        assert_eq!(read_all(&[&[0x01, 0x10]]), Ok(vec![]), "4,097 is the longest");
    }

    #[test]
    fn a_stream_that_failed_stays_so() {
        let mut reader = FrameReader::default();
        assert!(reader.next(&mut [0u8, 0].as_slice()).is_err());
        assert!(reader.next(&mut [1u8, 0, 7].as_slice()).is_err());
    }

    proptest! {
        #[test]
        fn any_cut_of_the_stream_gives_the_same_frames(
            frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..60)), 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        ) {
            let mut stream = vec![];
            for (kind, body) in &frames {
                let appended = Frame { kind: *kind, body }.append_to(&mut stream);
                prop_assert!(appended);
            }
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read_all(&pieces), Ok(frames));
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            let pieces: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
            let _ = read_all(&pieces);
        }
    }
}
