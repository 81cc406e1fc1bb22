//! Players, bodies, names and tokens.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A player of a room. Not used again while anything that names it can still arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlayerId(u16);

impl PlayerId {
    /// Player `number`.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A body of a room: 48 opaque bits, the same for the server and for every client. Not used again while a snapshot, a
/// history or a recording can name it.
///
/// Bodies are simulated in the order of their ids, so that every machine sums over neighbours in the same order. The bits
/// are a hash: they say nothing of how many bodies there are, or of when this one came.
///
/// ```
/// use halftrack::BodyId;
///
/// let id = BodyId::new(0x00ab_cdef_0123);
/// assert_eq!(id.to_string(), "00abcdef0123");
/// assert_eq!(BodyId::new(id.number()), id);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct BodyId(u64);

impl BodyId {
    /// Bits of an id.
    pub const BITS: u32 = 48;

    /// The id with the low [`Self::BITS`] bits of `number`.
    pub const fn new(number: u64) -> Self {
        Self(number & ((1 << Self::BITS) - 1))
    }

    /// The bits, as a number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The id of the body that this one emits as its `nth`. Server and clients find the same id by themselves, also when
    /// the emission was played a tick late.
    #[must_use]
    pub const fn emitted(self, nth: u32) -> Self {
        // spec: EMIT-02
        Self::new(Digest::new().word(self.0).word(nth as u64).finish() >> (u64::BITS - Self::BITS))
    }
}

impl From<u64> for BodyId {
    fn from(number: u64) -> Self {
        Self::new(number)
    }
}

impl From<BodyId> for u64 {
    fn from(id: BodyId) -> Self {
        id.0
    }
}

impl fmt::Display for BodyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

/// The source of a body's input. It stays the same for the body's whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Driver {
    /// The player who owns the body: its input moves it, its client predicts it, and it leaves with the player.
    Player(PlayerId),
    /// The world, by [`crate::server::Room::drive`]. The body costs bits only where its input changes.
    World,
    /// Nothing: its input is neutral for ever. A shell, a door on a timetable or a score costs its birth, and then no bits.
    Nothing,
}

impl Driver {
    /// The player who owns the body.
    pub const fn player(self) -> Option<PlayerId> {
        match self {
            Self::Player(player) => Some(player),
            Self::World | Self::Nothing => None,
        }
    }
}

/// What a player is called: something that can be shown to others without harm.
///
/// ```
/// use halftrack::PlayerName;
///
/// assert_eq!(PlayerName::new("  Ada ")?.as_str(), "Ada");
/// assert!(PlayerName::new("evil\u{202e}eman").is_err(), "it would turn the text after it around");
/// # Ok::<(), halftrack::NameRefused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "&str", into = "String")]
pub struct PlayerName(String);

/// Why a name cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameRefused {
    /// Nothing in it that can be seen.
    #[error("the name is empty")]
    Empty,
    /// More than 24 characters.
    #[error("the name has more than 24 characters")]
    TooLong,
    /// A control character, or one that is not seen but changes how others are.
    #[error("the name has a character that cannot be shown")]
    Character,
}

impl PlayerName {
    /// Characters at most.
    pub const MAX_CHARS: usize = 24;

    /// The name `name`, without the white space around it.
    ///
    /// # Errors
    /// When it is empty, too long, or has a character that cannot be shown.
    pub fn new(name: &str) -> Result<Self, NameRefused> {
        let name = name.trim();
        if name.is_empty() {
            return Err(NameRefused::Empty);
        }
        // A character has at most four bytes: what is longer need not be counted.
        if name.len() > 4 * Self::MAX_CHARS || name.chars().count() > Self::MAX_CHARS {
            return Err(NameRefused::TooLong);
        }
        if name.chars().any(|character| !is_shown(character)) || has_stacked_marks(name) {
            return Err(NameRefused::Character);
        }
        Ok(Self(name.to_owned()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Neither a control character, nor one of those that hide, join or turn around what is beside them, nor one that takes up
/// room and shows nothing: with those, two names could look the same. What has no meaning that everybody shares is out too.
fn is_shown(character: char) -> bool {
    let unseen = matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    let private = matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..)
        || u32::from(character) & 0xfffe == 0xfffe;
    // One kind of space is enough to tell two words apart.
    let blank = character.is_whitespace() && character != ' ' && character != '\u{3000}';
    !character.is_control() && !unseen && !private && !blank
}

/// Marks that are drawn over what is before them. Two on one letter are a language; a pile of them covers the lines above
/// and below.
fn has_stacked_marks(name: &str) -> bool {
    const MOST: usize = 2;
    let is_mark = |character: char| {
        matches!(character,
            '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
    };
    let mut pile = 0;
    name.chars().enumerate().any(|(at, character)| {
        pile = if is_mark(character) { pile + 1 } else { 0 };
        // The first would be drawn over what somebody else wrote.
        pile > MOST || (pile > 0 && at == 0)
    })
}

impl TryFrom<&str> for PlayerName {
    type Error = NameRefused;

    fn try_from(name: &str) -> Result<Self, NameRefused> {
        Self::new(name)
    }
}

impl From<PlayerName> for String {
    fn from(name: PlayerName) -> Self {
        name.0
    }
}

impl fmt::Display for PlayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What lets a player come back to a session. Known to the two ends only; random, from the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Token([u8; 16]);

impl Token {
    /// A token of these bytes, which nobody can guess.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes. They are a secret: do not log them.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The token as 32 hexadecimal digits, for a place that outlives the process. It is a secret: keep it out of logs and
    /// addresses. [`str::parse`] reads it.
    ///
    /// ```
    /// use halftrack::Token;
    ///
    /// let token = Token::new([0x5a; 16]);
    /// let saved = token.reveal();
    /// assert_eq!(saved, "5a".repeat(16));
    /// assert_eq!(saved.parse(), Ok(token));
    /// assert!("5a".parse::<Token>().is_err());
    /// ```
    pub fn reveal(&self) -> String {
        // By hand: numbers of 128 bits are a kilobyte of code in a page.
        let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
        self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is 32 hexadecimal digits")]
pub struct NoToken;

impl core::str::FromStr for Token {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let (mut bytes, mut digits) = ([0; 16], text.chars());
        let mut digit = || digits.next().and_then(|digit| digit.to_digit(16)).ok_or(NoToken);
        for byte in &mut bytes {
            *byte = u8::try_from(digit()? << 4 | digit()?).map_err(|_| NoToken)?;
        }
        if digits.next().is_none() { Ok(Self(bytes)) } else { Err(NoToken) }
    }
}

/// Says nothing: a token in a log lets whoever reads it play on.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_just_inside_and_not_just_outside() {
        assert!(PlayerName::new(&"é".repeat(24)).is_ok());
        assert_eq!(PlayerName::new(&"e".repeat(25)), Err(NameRefused::TooLong));
        assert_eq!(PlayerName::new(&"𝕏".repeat(1_000_000)), Err(NameRefused::TooLong));
        for empty in ["", " ", "\t\n", "\u{3000}"] {
            assert_eq!(PlayerName::new(empty), Err(NameRefused::Empty), "{empty:?}");
        }
    }

    #[test]
    fn control_characters_and_bidi_tricks_are_refused() {
        for bad in [
            "a\0b",
            "a\nb",
            "a\u{1b}[31mb",
            "a\u{202e}b",
            "a\u{2066}b",
            "a\u{200b}b",
            "a\u{feff}b",
            "a\u{e0041}b",
            "a\u{3164}b",
            "\u{2800}",
            "a\u{fe0f}b",
            "a\u{a0}b",
            "a\u{e000}b",
            "a\u{ffff}b",
            "\u{301}a",
            "a\u{301}\u{302}\u{303}b",
        ] {
            assert_eq!(PlayerName::new(bad), Err(NameRefused::Character), "{bad:?}");
        }
        for good in ["Ada", "Zoë", "Zoe\u{308}", "Viê\u{323}t", "名前", "山田\u{3000}太郎", "a b", "x_X-1"]
        {
            assert!(PlayerName::new(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn a_token_survives_its_text_and_other_texts_are_none() {
        let token = Token::new(core::array::from_fn(|at| at as u8 * 17));
        assert_eq!(token.reveal(), "00112233445566778899aabbccddeeff");
        assert_eq!(token.reveal().to_uppercase().parse(), Ok(token));
        let digits = token.reveal();
        for text in ["", &digits[1..], &format!("{digits}0"), &format!("+{}", &digits[1..]), &"é".repeat(16)]
        {
            assert_eq!(text.parse::<Token>(), Err(NoToken), "{text}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", Token::new([7; 16])), "Token(..)");
    }
}
