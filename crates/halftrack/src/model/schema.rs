//! A hash of declarations: both ends compare it, so that two builds with different fields refuse to play.

use crate::digest::Digest;

/// Hashes names, kinds and ranges at compile time.
///
/// The derives feed it every field in order. Feed it yourself when you write a codec by hand.
///
/// ```
/// use halftrack::model::Schema;
///
/// const NARROW: u64 = Schema::new("whole").number(0).number(100).finish();
/// const WIDE: u64 = Schema::new("whole").number(0).number(101).finish();
/// assert_ne!(NARROW, WIDE);
/// assert_ne!(Schema::new("a").text("bc").finish(), Schema::new("ab").text("c").finish());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Schema(Digest);

impl Schema {
    /// Begins with the kind of the field or type.
    #[must_use]
    pub const fn new(kind: &str) -> Self {
        Self(Digest::new()).text(kind)
    }

    /// Adds a name. Its length is hashed too, so that names cannot run into each other.
    #[must_use]
    pub const fn text(self, text: &str) -> Self {
        let mut digest = self.0.word(text.len() as u64);
        let mut rest = text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            digest = digest.word(*byte as u64);
            rest = after;
        }
        Self(digest)
    }

    /// Adds a number: a range's end, a step, a length.
    #[must_use]
    pub const fn number(self, number: i128) -> Self {
        let bits = number.cast_unsigned();
        let low = bits & u64::MAX as u128;
        // Both halves fit by construction.
        #[allow(clippy::cast_possible_truncation, reason = "a half of 128 bits")]
        Self(self.0.word(low as u64).word((bits >> 64) as u64))
    }

    /// Adds the schema of a field or a nested type.
    #[must_use]
    pub const fn nested(self, schema: u64) -> Self {
        Self(self.0.word(schema))
    }

    /// The hash.
    pub const fn finish(self) -> u64 {
        self.0.finish()
    }
}
