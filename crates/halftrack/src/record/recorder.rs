//! Writes a recording, as bytes for the host to put where they last.

use derive_where::derive_where;

use crate::digest::Digest;
use crate::game::Game;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::input::write_tick;
use crate::record::entry::{
    Entry, FIRST_ORDER, Header, MAGIC, MAX_FRAME, TRACE_BITS, VERSION, add_bytes, check_of,
};
use crate::tick::Tick;
use crate::wire::{BitWriter, Frame};

/// A recording that is being written.
#[derive_where(Clone, Debug)]
pub struct Recorder<G: Game> {
    /// Who is there, in order, and what each was told last.
    held: Vec<(PlayerId, G::Input)>,
    /// The newest tick.
    tick: Tick,
    /// Entries since the last frame.
    entries: Vec<u8>,
    /// They are a tick, and nothing else.
    tick_alone: bool,
    /// Ticks after them in which nobody was there.
    passed: u32,
    /// Of everything written so far.
    digest: Digest,
    /// What comes before the next frame: the header of a recording that begins.
    prelude: Vec<u8>,
}

impl<G: Game> Recorder<G> {
    /// A recording that begins.
    pub fn new(header: &Header) -> Self {
        let tick = Tick::new(header.first_tick);
        let mut prelude = MAGIC.to_vec();
        prelude.push(VERSION);
        let mut buffer = vec![0; usize::from(u16::MAX)];
        let header = postcard::to_slice(header, &mut buffer);
        debug_assert!(header.is_ok(), "a header is a few kilobytes at most");
        let header = header.unwrap_or_default();
        prelude.extend_from_slice(&u16::try_from(header.len()).unwrap_or(0).to_le_bytes());
        prelude.extend_from_slice(header);
        let digest = add_bytes(Digest::new(), &prelude);
        prelude.extend_from_slice(&check_of(digest));
        Self { held: Vec::new(), tick, entries: Vec::new(), tick_alone: false, passed: 0, digest, prelude }
    }

    /// One that goes on after what was read.
    pub(super) fn after(held: Vec<(PlayerId, G::Input)>, tick: Tick, digest: Digest) -> Self {
        Self { held, tick, entries: Vec::new(), tick_alone: false, passed: 0, digest, prelude: Vec::new() }
    }

    /// Something was told.
    pub fn write(&mut self, entry: &Entry) {
        debug_assert!(*entry != Entry::Tick, "a tick has more to it");
        self.make_room();
        match entry {
            Entry::Joined { player, .. } => enter(&mut self.held, *player, G::Input::default()),
            Entry::Left { player } => self.held.retain(|(there, _)| there != player),
            Entry::Ordered { player, bytes } => {
                let place = self.held.binary_search_by_key(player, |(there, _)| *there);
                let place = place.ok().and_then(|place| u8::try_from(place).ok());
                if let Some(first) = place.and_then(|place| place.checked_add(FIRST_ORDER)) {
                    return self.append_order(first, bytes);
                }
            }
            _ => {}
        }
        self.append(entry);
    }

    fn append_order(&mut self, first: u8, order: &[u8]) {
        self.make_room();
        self.entries.push(first);
        let start = self.entries.len();
        self.entries.resize(start + Frame::MAX_BODY + 16, 0);
        let mut bits = BitWriter::new(self.entries.get_mut(start..).unwrap_or_default());
        G::write_order(order, self.tick, &mut bits);
        let length = bits.finish();
        debug_assert!(length.is_some(), "an order fits");
        self.entries.truncate(start + length.unwrap_or(0));
    }

    /// What came before the next entry: a tick that was alone is not any more, and ticks of nobody.
    fn make_room(&mut self) {
        if core::mem::take(&mut self.tick_alone) {
            self.entries.insert(0, 0);
        }
        let ticks = core::mem::take(&mut self.passed);
        if ticks > 0 {
            self.tick = Tick::new(self.tick.number().saturating_add(ticks));
            self.append(&Entry::Passed { ticks });
        }
    }

    fn append(&mut self, entry: &Entry) {
        self.make_room();
        // An entry is an order at most, and those are short.
        let mut buffer = [0; 8_192];
        let written = postcard::to_slice(entry, &mut buffer);
        debug_assert!(written.is_ok(), "an entry fits");
        self.entries.extend_from_slice(written.unwrap_or_default());
    }

    /// A tick was simulated, and nobody was there.
    pub fn tick_of_nobody(&mut self) {
        if self.passed >= Entry::MAX_PASSED {
            self.make_room();
        }
        self.passed += 1;
    }

    /// A tick was simulated: the input of each player and a hash of its bodies after it, in order of player, and a hash of
    /// all bodies that no player owns.
    pub fn tick(&mut self, told: impl Iterator<Item = (PlayerId, TickInput<G::Input>, u64)>, others: u64) {
        self.make_room();
        // The one tick that a frame is written for has no number before it.
        self.tick_alone = self.entries.is_empty();
        if !self.tick_alone {
            self.append(&Entry::Tick);
        }
        self.tick = self.tick.next();
        let start = self.entries.len();
        // A flag, a start, three changes and a trace: as much as any input can take.
        self.entries.resize(start + 1 + self.held.len() * 64, 0);
        let mut bits = BitWriter::new(self.entries.get_mut(start..).unwrap_or_default());
        let mut told = told.peekable();
        for (player, held) in &mut self.held {
            while told.next_if(|(other, ..)| *other < *player).is_some() {}
            let Some((_, input, hash)) = told.next_if(|(other, ..)| other == player) else {
                debug_assert!(false, "whoever is there is told something");
                break;
            };
            let same = input == TickInput::steady(*held);
            bits.write_flag(same);
            if !same {
                write_tick(&mut bits, Some(*held), &input);
            }
            bits.write(trace(hash), TRACE_BITS);
            *held = input.last();
        }
        bits.write(trace(others), TRACE_BITS);
        let length = bits.finish();
        debug_assert!(length.is_some(), "a tick fits");
        self.entries.truncate(start + length.unwrap_or(0));
    }

    /// Whether an entry of so many bytes fits into the frame at hand, with half of it left for other entries.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.entries.len() + bytes <= MAX_FRAME / 2
    }

    /// Whether no player is in the match.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether nothing of it has been taken yet.
    pub fn is_blank(&self) -> bool {
        !self.prelude.is_empty()
    }

    /// Appends to `into` what is to be written now, as one frame, before anything that follows from it is sent. Gives
    /// whether there was anything.
    pub fn take(&mut self, into: &mut Vec<u8>) -> bool {
        let any = !self.prelude.is_empty() || !self.entries.is_empty();
        into.append(&mut self.prelude);
        if !self.entries.is_empty() {
            debug_assert!(self.entries.len() <= MAX_FRAME, "a frame is what one turn was told");
            let start = into.len();
            let mut length = self.entries.len() << 1 | usize::from(core::mem::take(&mut self.tick_alone));
            while length >= 0x80 {
                into.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
                length >>= 7;
            }
            into.push(u8::try_from(length).unwrap_or(0));
            into.append(&mut self.entries);
            self.digest = add_bytes(self.digest, into.get(start..).unwrap_or_default());
            into.extend_from_slice(check_of(self.digest).get(..2).unwrap_or_default());
        }
        any
    }
}

/// A player comes in, in order.
pub(super) fn enter<I>(held: &mut Vec<(PlayerId, I)>, player: PlayerId, input: I) {
    match held.binary_search_by_key(&player, |(there, _)| *there) {
        Ok(at) => held.splice(at..=at, [(player, input)]).for_each(drop),
        Err(at) => held.insert(at, (player, input)),
    }
}

/// What is kept of a body's hash.
pub(super) fn trace(hash: u64) -> u32 {
    u32::try_from(hash & ((1 << TRACE_BITS) - 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::Cart;
    use crate::id::{PlayerName, Token};
    use crate::record::Recording;

    /// What a server tells at once, as letters: a tick, a join, an order, ticks of nobody.
    fn read_back(turns: &[&str]) -> String {
        let header = Header::for_tests();
        let (mut recorder, mut bytes) = (Recorder::<Cart>::new(&header), vec![]);
        let player = PlayerId::new(1);
        for turn in turns {
            for each in turn.chars() {
                let told = TickInput::steady(0);
                match each {
                    't' => recorder.tick([(player, told, 3)].into_iter(), 0),
                    'j' => recorder.write(&Entry::Joined {
                        player,
                        name: PlayerName::new("Ada").unwrap(),
                        token: Token::new([0; 16]),
                        claims: None,
                    }),
                    'o' => recorder.write(&Entry::Ordered { player, bytes: vec![7] }),
                    'l' => recorder.write(&Entry::Left { player }),
                    _ => recorder.tick_of_nobody(),
                }
            }
            recorder.take(&mut bytes);
        }
        let mut recording = Recording::<Cart>::open(bytes).unwrap();
        let mut read = String::new();
        while let Some(entry) = recording.next() {
            match entry {
                Entry::Tick => read.push('t'),
                Entry::Joined { .. } => read.push('j'),
                Entry::Ordered { .. } => read.push('o'),
                Entry::Left { .. } => read.push('l'),
                Entry::Passed { ticks } => (0..ticks).for_each(|_| read.push('.')),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(recording.damage(), None, "{turns:?}");
        read
    }

    #[test]
    fn whatever_is_told_at_once_is_read_in_its_order() {
        for turns in [
            &["..", "j", "t", "t"][..],
            &["j", "tt", "t"],
            &["j", "ttt", "tot", "ott", "t"],
            &["jt", "to", "tl", "..", "jtt"],
            &["j", "ttl..jt", "tott"],
        ] {
            assert_eq!(read_back(turns), turns.concat());
        }
    }
}
