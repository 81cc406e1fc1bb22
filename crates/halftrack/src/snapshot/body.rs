//! How long a body may be on the wire.

use crate::error::ConfigError;
use crate::model::Body;
use crate::wire::BitWriter;

/// The longest body of any game, bytes: a snapshot has to hold one beside its header, whatever the path's datagrams.
pub const MAX_BODY_BYTES: usize = 512;

/// Bytes of a snapshot besides the player's own body: its header (14), the fates of a dozen ticks (15), and the section of
/// the other bodies when there is room for none of them.
pub(crate) const SNAPSHOT_REST_BYTES: usize = 64;

/// Refuses bodies that take more than `max` bytes, by their declared size and by the blank body.
pub(crate) fn check_body_bytes<B: Body>(max: usize) -> Result<(), ConfigError> {
    // spec: GAME-02
    let mut bits = BitWriter::new(&mut []);
    B::blank().write(&B::blank(), &mut bits);
    let blank = bits.len_bits().div_ceil(8);
    let max = max.min(MAX_BODY_BYTES);
    let bytes = B::MAX_BITS.div_ceil(8);
    if bytes > max {
        return Err(ConfigError::BodyTooLong { bytes, max });
    }
    if blank > bytes {
        return Err(ConfigError::BodyTooLong { bytes: blank, max: bytes });
    }
    Ok(())
}
