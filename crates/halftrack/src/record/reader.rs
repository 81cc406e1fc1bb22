//! Reads a recording, up to where it is whole.

use core::fmt;
use std::sync::Arc;

use derive_where::derive_where;

use crate::cadence::Cadence;
use crate::digest::Digest;
use crate::game::Game;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::input::read_tick;
use crate::record::entry::{
    Entry, FIRST_ORDER, Header, MAGIC, MAX_FRAME, TRACE_BITS, VERSION, add_bytes, check_of,
};
use crate::record::recorder::{Recorder, enter, trace};
use crate::tick::Tick;
use crate::wire::control::Login;
use crate::wire::{BitReader, WireError};
use crate::world::{Stage, World};

/// A file that is no recording, or not one for this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingRefused {
    /// It begins like something else.
    #[error("this is no recording")]
    Foreign,
    /// Another version.
    #[error("the recording has version {got} of the format; this program reads version {VERSION}")]
    Version {
        /// Its version.
        got: u8,
    },
    /// Its beginning is cut or damaged, so nothing in it can be trusted.
    #[error("the beginning of the recording is damaged")]
    Damaged,
    /// Other rules, another cadence or another arena.
    #[error("the recording is of a match by other rules: play it back with the version that recorded it")]
    Rules,
    /// It asks for far more work than a match of its size: more bodies in one place than a match ever has.
    #[error("by tick {} the recording asks for more work than a match of its size: it may be forged", .tick.number())]
    Work {
        /// The newest tick that was played.
        tick: Tick,
    },
}

/// The bodies that are not as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Differs {
    /// Bodies of this player.
    Player(PlayerId),
    /// Bodies that no player owns.
    Others,
}

impl Differs {
    pub(crate) fn player(self) -> Option<PlayerId> {
        match self {
            Self::Player(player) => Some(player),
            Self::Others => None,
        }
    }
}

/// Where a recording stopped being whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Bytes up to there.
    pub whole: usize,
    /// Bytes from there on.
    pub rest: usize,
    /// They are the beginning of something that was not written to its end, and nothing else.
    pub cut: bool,
    /// The newest tick before it.
    pub tick: Tick,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "damaged after tick {}: {} bytes from byte {} on are not used",
            self.tick.number(),
            self.rest,
            self.whole
        )
    }
}

/// A recording that is being read. A clone reads on from the same place.
#[derive_where(Clone, Debug)]
pub struct Recording<G: Game> {
    bytes: Arc<[u8]>,
    header: Header,
    cadence: Cadence,
    /// Where the next frame begins, if all is whole up to there.
    whole: usize,
    digest: Digest,
    damaged: bool,
    cut: bool,
    cursor: Cursor<G>,
}

/// The position inside a recording: everything that reading an entry changes.
#[derive_where(Clone, Debug)]
struct Cursor<G: Game> {
    /// The newest tick that was read.
    tick: Tick,
    /// The unread entries of the current frame lie from `at` to `end`.
    at: usize,
    end: usize,
    /// The current frame is one tick and nothing else.
    tick_alone: bool,
    /// The newest tick with a check: each has one at most.
    checked: Option<Tick>,
    held: Vec<(PlayerId, G::Input)>,
    told: Vec<(PlayerId, TickInput<G::Input>, u32)>,
    /// The trace of the bodies that no player owns.
    others: u32,
}

impl<G: Game> Recording<G> {
    /// Opens a recording.
    ///
    /// # Errors
    /// When it is none.
    pub fn open(bytes: impl Into<Arc<[u8]>>) -> Result<Self, RecordingRefused> {
        let bytes = bytes.into();
        let (header, whole, digest) = read_header(&bytes)?;
        let micros = core::time::Duration::from_micros(u64::from(header.cadence_micros));
        let cadence = Cadence::new(micros).map_err(|_| RecordingRefused::Damaged)?;
        let tick = Tick::new(header.first_tick);
        if tick > Tick::MAX_STATE {
            return Err(RecordingRefused::Damaged);
        }
        let (held, told) = (Vec::new(), Vec::new());
        let cursor = Cursor { tick, at: 0, end: 0, tick_alone: false, checked: None, held, told, others: 0 };
        Ok(Self { bytes, header, cadence, whole, digest, damaged: false, cut: false, cursor })
    }

    /// What it begins with.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How long a tick is.
    pub fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// The newest tick that was read.
    pub fn tick(&self) -> Tick {
        self.cursor.tick
    }

    /// What everybody was told in that tick, in order of player, and what is recorded of the hash of its body.
    pub fn told(&self) -> &[(PlayerId, TickInput<G::Input>, u32)] {
        &self.cursor.told
    }

    /// The first difference between the newest tick of `stage` and the recording.
    pub(crate) fn differs_from<W: World<Game = G>>(&self, stage: &Stage<W>) -> Option<Differs> {
        let mut pairs = stage.told().zip(&self.cursor.told);
        let differs = pairs
            .find(|((player, _, hash), (there, _, recorded))| player != there || trace(*hash) != *recorded);
        let others = trace(stage.digest_of_others()) != self.cursor.others;
        let player = differs.map(|((player, ..), _)| Differs::Player(player));
        player.or(others.then_some(Differs::Others))
    }

    /// How long it is in all, bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes from its beginning that are whole, as far as it has been read.
    pub fn whole(&self) -> usize {
        self.whole
    }

    /// Where it stopped being whole, once that has been reached.
    pub fn damage(&self) -> Option<Damage> {
        self.damaged.then(|| Damage {
            whole: self.whole,
            rest: self.bytes.len().saturating_sub(self.whole),
            cut: self.cut,
            tick: self.cursor.tick,
        })
    }

    /// The next entry; `None` at the end, or where it is not whole any more.
    #[allow(clippy::should_implement_trait, reason = "after a tick, it has more to tell than an item")]
    pub fn next(&mut self) -> Option<Entry> {
        if self.cursor.at == self.cursor.end && !self.damaged && self.whole < self.bytes.len() {
            self.open_frame();
        }
        if self.cursor.at == self.cursor.end {
            return None;
        }
        // `open_frame` has read every entry of the frame once.
        self.cursor.read_entry(&self.bytes).ok()
    }

    /// A recorder that goes on where this one ends. What is after [`Self::whole`] is to be cut off first.
    pub fn go_on(&self) -> Recorder<G> {
        Recorder::after(self.cursor.held.clone(), self.cursor.tick, self.digest)
    }

    /// The next frame, if it is whole.
    fn open_frame(&mut self) {
        let rest = self.bytes.get(self.whole..).unwrap_or_default();
        let Some((length, tick_alone, prefix)) = read_length(rest) else {
            (self.damaged, self.cut) = (true, rest.len() < 4 && rest.iter().all(|byte| byte & 0x80 != 0));
            return;
        };
        let end = prefix + length;
        let (Some(frame), Some(check)) = (rest.get(..end), rest.get(end..end + 2)) else {
            (self.damaged, self.cut) = (true, true);
            return;
        };
        let digest = add_bytes(self.digest, frame);
        if check_of(digest).get(..2) != Some(check) {
            self.damaged = true;
            return;
        }
        // A frame counts as a whole or not at all: a bad entry in a frame with a good check means that another program
        // wrote it, and a recovery must not go on from half of it.
        let (at, end_of_entries) = (self.whole + prefix, self.whole + end);
        let mut ahead = Cursor { at, end: end_of_entries, tick_alone, ..self.cursor.clone() };
        while ahead.at < ahead.end {
            if ahead.read_entry(&self.bytes).is_err() {
                self.damaged = true;
                return;
            }
        }
        (self.cursor.at, self.cursor.end, self.cursor.tick_alone) = (at, end_of_entries, tick_alone);
        self.digest = digest;
        self.whole += end + 2;
    }
}

impl<G: Game> Cursor<G> {
    /// Reads the next entry of the current frame.
    fn read_entry(&mut self, bytes: &[u8]) -> Result<Entry, WireError> {
        let invalid = |_| WireError::Invalid { field: "entry" };
        let bytes = bytes.get(self.at..self.end).ok_or(WireError::Truncated)?;
        if let Some((first, order)) = bytes.split_first().filter(|_| !self.tick_alone)
            && let Some(place) = first.checked_sub(FIRST_ORDER)
        {
            let (player, _) =
                self.held.get(usize::from(place)).ok_or(WireError::Invalid { field: "place" })?;
            let mut bits = BitReader::new(order);
            let bytes = G::read_order(self.tick, &mut bits)?;
            self.at = self.end - bits.rest()?.len();
            return Ok(Entry::Ordered { player: *player, bytes });
        }
        let (entry, mut rest) = if core::mem::take(&mut self.tick_alone) {
            (Entry::Tick, bytes)
        } else {
            postcard::take_from_bytes(bytes).map_err(invalid)?
        };
        match &entry {
            Entry::Joined { claims: Some(claims), .. } if claims.len() > Login::MAX_CLAIMS => {
                return Err(WireError::Invalid { field: "claims" });
            }
            Entry::Joined { player, .. } => {
                enter(&mut self.held, *player, G::Input::default());
                if self.held.len() > Entry::MAX_PLAYERS {
                    return Err(WireError::Invalid { field: "players" });
                }
            }
            Entry::Left { player } => self.held.retain(|(there, _)| there != player),
            Entry::Check { .. } if self.checked == Some(self.tick) => {
                return Err(WireError::Invalid { field: "check" });
            }
            Entry::Check { .. } => self.checked = Some(self.tick),
            Entry::Tick => {
                let mut bits = BitReader::new(rest);
                self.told.clear();
                for (player, held) in &mut self.held {
                    let same = bits.read_flag()?;
                    let told = Some(*held);
                    let input = if same { TickInput::steady(*held) } else { read_tick(&mut bits, told)? };
                    *held = input.last();
                    self.told.push((*player, input, bits.read(TRACE_BITS)?));
                }
                self.others = bits.read(TRACE_BITS)?;
                rest = bits.rest()?;
                self.tick = after(self.tick, 1)?;
            }
            Entry::Passed { ticks } => {
                if !self.held.is_empty() || *ticks > Entry::MAX_PASSED {
                    return Err(WireError::Invalid { field: "passed" });
                }
                self.told.clear();
                self.tick = after(self.tick, *ticks)?;
            }
            _ => {}
        }
        self.at = self.end - rest.len();
        Ok(entry)
    }
}

/// So many ticks later, if there are so many.
fn after(tick: Tick, ticks: u32) -> Result<Tick, WireError> {
    let later = tick.number().checked_add(ticks).map(Tick::new);
    later.filter(|tick| *tick <= Tick::MAX_STATE).ok_or(WireError::Invalid { field: "tick" })
}

fn read_header(bytes: &[u8]) -> Result<(Header, usize, Digest), RecordingRefused> {
    const FIXED: usize = MAGIC.len() + 3;
    let fixed = bytes.first_chunk::<FIXED>().ok_or(RecordingRefused::Foreign)?;
    let [a, b, c, d, e, f, g, h, version, low, high] = fixed;
    if [*a, *b, *c, *d, *e, *f, *g, *h] != MAGIC {
        return Err(RecordingRefused::Foreign);
    }
    if *version != VERSION {
        return Err(RecordingRefused::Version { got: *version });
    }
    let end = FIXED + usize::from(u16::from_le_bytes([*low, *high]));
    let (before, check) = (bytes.get(..end), bytes.get(end..end + 4));
    let (before, check) = before.zip(check).ok_or(RecordingRefused::Damaged)?;
    let digest = add_bytes(Digest::new(), before);
    if check_of(digest) != check {
        return Err(RecordingRefused::Damaged);
    }
    let header = before.get(FIXED..).and_then(|header| postcard::from_bytes(header).ok());
    Ok((header.ok_or(RecordingRefused::Damaged)?, end + 4, digest))
}

/// A frame's length, whether it is a tick alone, and how many bytes that takes.
fn read_length(bytes: &[u8]) -> Option<(usize, bool, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let length = number >> 1;
            return (1..=MAX_FRAME).contains(&length).then_some((length, number & 1 == 1, index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::Cart;
    use crate::id::{PlayerName, Token};

    fn recorder() -> Recorder<Cart> {
        Recorder::new(&Header::for_tests())
    }

    #[test]
    fn record_11_a_frame_with_one_bad_entry_is_left_out_as_a_whole() {
        let (mut recorder, mut bytes) = (recorder(), vec![]);
        let player = PlayerId::new(1);
        let (name, token) = (PlayerName::new("Ada").unwrap(), Token::new([0; 16]));
        recorder.write(&Entry::Joined { player, name, token, claims: None });
        recorder.take(&mut bytes);
        let good = bytes.len();
        // A tick has at most one check. No recorder of a server writes a second one.
        recorder.write(&Entry::Left { player });
        recorder.write(&Entry::Check { digest: 1 });
        recorder.write(&Entry::Check { digest: 2 });
        recorder.take(&mut bytes);

        let mut recording = Recording::<Cart>::open(bytes.clone()).unwrap();
        assert!(matches!(recording.next(), Some(Entry::Joined { .. })));
        assert_eq!(recording.next(), None, "not even the entries before the bad one");
        let damage = recording.damage().unwrap();
        assert_eq!((damage.whole, damage.rest, damage.cut), (good, bytes.len() - good, false));

        // A recovery cuts the file there and goes on: the player is still in the match.
        bytes.truncate(damage.whole);
        let mut next = recording.go_on();
        next.write(&Entry::Ordered { player, bytes: vec![7] });
        next.take(&mut bytes);
        let mut recording = Recording::<Cart>::open(bytes).unwrap();
        recording.next();
        assert_eq!(recording.next(), Some(Entry::Ordered { player, bytes: vec![7] }));
        assert_eq!((recording.next(), recording.damage()), (None, None));
    }

    #[test]
    fn an_empty_frame_is_damage_and_not_the_end() {
        let mut bytes = vec![];
        recorder().take(&mut bytes);
        let (_, good, digest) = read_header(&bytes).unwrap();
        for length in [0, 1] {
            let mut bytes = bytes.clone();
            bytes.push(length);
            bytes.extend_from_slice(&check_of(add_bytes(digest, &[length]))[..2]);
            let mut recording = Recording::<Cart>::open(bytes).unwrap();
            assert_eq!(recording.next(), None);
            assert_eq!(recording.damage().map(|damage| damage.whole), Some(good), "length {length}");
        }
    }
}
