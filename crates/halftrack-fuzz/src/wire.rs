//! Frames and messages of both lanes: whatever is read can be written, and is read as the same.

use halftrack::wire::control::{FromClient, FromServer};
use halftrack::wire::{BitReader, Frame, FrameReader, WireError};
use halftrack::{Cadence, Input, MoveInput, Tick};
use tanks::TankInput;

use crate::budget::within;
use crate::crowd;

/// A stream, cut into pieces: the same frames however it is cut, and never more held than one of them.
pub fn frame(bytes: &[u8]) {
    let Some((size, stream)) = bytes.split_first() else { return };
    let whole = read_frames(stream, stream.len().max(1));
    let pieces = read_frames(stream, usize::from(*size) + 1);
    assert_eq!(whole, pieces);
    let mut written = vec![];
    for (kind, body) in &whole.0 {
        assert!(Frame { kind: *kind, body }.append_to(&mut written));
    }
    assert_eq!(stream.get(..written.len()), Some(written.as_slice()));
}

type Frames = (Vec<(u8, Vec<u8>)>, Result<(), WireError>);

fn read_frames(stream: &[u8], size: usize) -> Frames {
    let mut reader = FrameReader::default();
    let mut frames = vec![];
    for mut piece in stream.chunks(size) {
        loop {
            // Growing by doubling, from a frame to the next power of two.
            match within(4 * Frame::MAX_BODY, || reader.next(&mut piece)) {
                Ok(None) => break,
                Ok(Some(frame)) => frames.push((frame.kind, frame.body.to_vec())),
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(()))
}

/// A message is as long as its frame, and some of what is in it is copied.
const MESSAGE_BYTES: usize = 4 * Frame::MAX_BODY;

fn frame_of(bytes: &[u8]) -> Option<Frame<'_>> {
    let (kind, body) = bytes.split_first()?;
    Some(Frame { kind: *kind, body: body.get(..Frame::MAX_BODY).unwrap_or(body) })
}

/// What the server reads of a client's stream.
pub fn from_client(bytes: &[u8]) {
    let Some(frame) = frame_of(bytes) else { return };
    let Ok(message) = within(MESSAGE_BYTES, || FromClient::read(frame)) else { return };
    let mut stream = vec![];
    assert!(message.append_to(&mut stream), "what came in a frame fits into one");
    let again = FrameReader::default().next(&mut stream.as_slice()).map(|frame| frame.map(FromClient::read));
    assert_eq!(again, Ok(Some(Ok(message))));
}

/// A message of the server's stream, as a client reads it. Own bodies of a welcome, and a piece that is a whole full state,
/// are read too.
pub fn from_server(bytes: &[u8]) {
    let Some(frame) = frame_of(bytes) else { return };
    let Ok(message) = within(MESSAGE_BYTES, || FromServer::read(frame)) else { return };
    let mut stream = vec![];
    assert!(message.append_to(&mut stream), "what came in a frame fits into one");
    let again = FrameReader::default().next(&mut stream.as_slice()).map(|frame| frame.map(FromServer::read));
    assert_eq!(again, Ok(Some(Ok(message.clone()))));
    match message {
        FromServer::Welcome(welcome) => {
            let own = crowd::read_own(&[], &mut BitReader::new(&welcome.own));
            assert!(own.is_none_or(|own| own.ids.is_empty() || !welcome.own.is_empty()));
        }
        FromServer::Bodies(piece) => {
            crowd::read(&mut crowd::nobody(Cadence::default()), Tick::new(100), &piece);
        }
        _ => {}
    }
}

/// Input as a datagram: there is one way to write it.
pub fn move_input(bytes: &[u8]) {
    written_as_read::<TankInput>(bytes);
    written_as_read::<i8>(bytes);
}

fn written_as_read<I: Input>(bytes: &[u8]) {
    let mut message = MoveInput::<I>::default();
    let room = MoveInput::<I>::MAX_TICKS * 2 * size_of::<halftrack::TickInput<I>>();
    if within(room, || message.decode(bytes)).is_err() {
        return;
    }
    let mut buffer = vec![0; bytes.len()];
    assert_eq!(message.encode(&mut buffer), Some(bytes.len()));
    assert_eq!(buffer, bytes);
    let numbered: Vec<_> = message.numbered().map(|(tick, _)| tick).collect();
    assert_eq!(numbered.len(), message.ticks.len());
    assert!(numbered.last().is_none_or(|last| *last == message.newest));
}

/// Bits that are left.
pub(crate) fn bits_left(mut bits: BitReader<'_>) -> usize {
    core::iter::from_fn(|| bits.read(1).ok()).count()
}

/// The frames of a stream, each as its kind and its body.
pub(crate) fn frames(stream: &[u8]) -> Vec<Vec<u8>> {
    read_frames(stream, stream.len().max(1))
        .0
        .into_iter()
        .map(|(kind, body)| [vec![kind], body].concat())
        .collect()
}
