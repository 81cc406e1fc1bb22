//! What a game with many bodies must tell besides its rules.

use core::time::Duration;

use crate::error::ConfigError;
use crate::game::Game;
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter, Frame, WireError};

/// What a game with many bodies must tell besides its rules: what stands around a body, and how one is written
/// against one that the receiver has.
pub trait BodyCode: Game {
    /// Makes `around` what body `own` of `bodies` moves among for `span`: the world as it already is in `around`, and
    /// every other body that it could meet in that time. One that it could not may be left out, and the rest keep
    /// their order: whoever asks, for however long, the rules must make the same of it.
    fn surround(around: &mut Self::Surroundings, bodies: &[Self::Body], own: usize, span: Duration);

    /// Whether nobody is in `around`: moving among them is moving alone. Where that is not known, both are tried.
    fn is_alone(around: &Self::Surroundings) -> bool {
        let _ = around;
        false
    }

    /// Bodies in `around`, for a measure of the work that they are. Default one.
    fn neighbours(around: &Self::Surroundings) -> usize {
        usize::from(!Self::is_alone(around))
    }

    /// Where `body` is along a line of the game's choice, and how far from there along it bodies lie at most that it could
    /// meet in `span`: then not each has to be held against each. Whoever lies further, [`Self::surround`] leaves out too.
    fn along(body: &Self::Body, span: Duration) -> Option<(f64, f64)> {
        let _ = (body, span);
        None
    }

    /// A hash of everything about the rules and the world without bodies that both ends must share.
    fn shared(alone: &Self::Surroundings) -> u64;

    /// A body that both ends have without being told: what a body is written against when the receiver has none.
    fn blank() -> Self::Body;

    /// The most bytes that [`Self::write_body`] writes of any body against [`Self::blank`], the last one filled up. At
    /// most [`MAX_BODY_BYTES`], and 64 less than [`crate::server::ServerConfig::max_datagram_bytes`]: the constructors of
    /// server and client check that. A body that takes more during play cannot be sent, so its player is disconnected
    /// with [`crate::session::DisconnectReason::BodyTooLong`] and counted in
    /// [`crate::server::ServerStats::bodies_too_long`].
    const MAX_BODY_BYTES: usize;

    /// Writes `body`, settled, so that whoever has `baseline` can read it.
    fn write_body(body: &Self::Body, baseline: &Self::Body, bits: &mut BitWriter<'_>);

    /// Reads it. Gives settled bodies only.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    fn read_body(baseline: &Self::Body, bits: &mut BitReader<'_>) -> Result<Self::Body, WireError>;

    /// Writes a player's order as a recording keeps it: it came when `newest` was the newest tick. A game that knows what
    /// is in it can make it shorter. At most a message of the reliable lane long.
    fn write_order(order: &[u8], newest: Tick, bits: &mut BitWriter<'_>) {
        let _ = newest;
        write_bytes(order, bits);
    }

    /// Reads the order, or one that means the same.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    fn read_order(newest: Tick, bits: &mut BitReader<'_>) -> Result<Vec<u8>, WireError> {
        let _ = newest;
        read_bytes(bits)
    }
}

/// The longest body of any game, bytes: a snapshot has to hold one beside its header, whatever the path's datagrams.
pub const MAX_BODY_BYTES: usize = 512;

/// Bytes of a snapshot that are not the player's own body: its header (14), the fates of a dozen ticks (15), and what is
/// said of others when there is room for none of them.
pub(crate) const SNAPSHOT_REST_BYTES: usize = 64;

/// Refuses a game whose bodies take more than `max` bytes, by what it says and by its blank body.
pub(crate) fn check_body_bytes<G: BodyCode>(max: usize) -> Result<(), ConfigError> {
    // spec: GAME-02
    let mut bits = BitWriter::new(&mut []);
    G::write_body(&G::blank(), &G::blank(), &mut bits);
    let blank = bits.len_bits().div_ceil(8);
    let max = max.min(MAX_BODY_BYTES);
    if G::MAX_BODY_BYTES > max {
        return Err(ConfigError::BodyTooLong { bytes: G::MAX_BODY_BYTES, max });
    }
    if blank > G::MAX_BODY_BYTES {
        return Err(ConfigError::BodyTooLong { bytes: blank, max: G::MAX_BODY_BYTES });
    }
    Ok(())
}

const LENGTH_BITS: u32 = 13;

/// Writes bytes as they are: their number in 13 bits, and each.
pub fn write_bytes(bytes: &[u8], bits: &mut BitWriter<'_>) {
    debug_assert!(bytes.len() <= Frame::MAX_BODY, "no message is longer");
    let bytes = bytes.get(..Frame::MAX_BODY).unwrap_or(bytes);
    bits.write(u32::try_from(bytes.len()).unwrap_or(0), LENGTH_BITS);
    bytes.iter().for_each(|byte| bits.write(u32::from(*byte), 8));
}

/// Reads them.
///
/// # Errors
/// When there are not so many, or more than in any message.
pub fn read_bytes(bits: &mut BitReader<'_>) -> Result<Vec<u8>, WireError> {
    let length = bits.read(LENGTH_BITS)? as usize;
    if length > Frame::MAX_BODY {
        return Err(WireError::Invalid { field: "length" });
    }
    (0..length).map(|_| Ok(u8::try_from(bits.read(8)?).unwrap_or(0))).collect()
}
