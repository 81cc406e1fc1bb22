//! A report as bytes: the contents of a recorder in one file that needs nothing else.
//!
//! ```text
//! "halftrack flight"   16
//! version               2   little-endian; counted up with every change of the format, that of states included
//! then sections, each:
//!   kind                1   1 preface, 2 note, 3 key state, 4 calls, 5 end, 6 setup
//!   length              4   little-endian
//!   check               8   a hash of kind, length and contents, little-endian
//!   contents
//! ```
//!
//! The order is: preface (the client's config, without secrets), setup (the game's bytes), note, then the stretches. Each
//! stretch is a key state, which begins with the moment from which its calls are counted, and its calls in pieces of a
//! few kilobytes, cut anywhere. The end is empty. Everything before a damaged section can be used.

use std::borrow::Cow;

use halftrack::Timestamp;

use crate::bounded::{Bounded, ReadError};
use crate::preface::Preface;
use crate::ring::{Ring, blacken};
use crate::shown::digest;
use crate::write::append;

const MAGIC: &[u8; 16] = b"halftrack flight";
/// Version of the format of reports, that of states included.
const VERSION: u16 = 5;

const PREFACE: u8 = 1;
const NOTE: u8 = 2;
const KEY: u8 = 3;
const CALLS: u8 = 4;
const END: u8 = 5;
const SETUP: u8 = 6;

/// Bytes of calls in one section. All that is lost before a wrong byte is the rest of its section.
const PIECE: usize = 4_096;
/// Characters of a note.
const MAX_NOTE: usize = 1_024;

/// Why no report can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file is of another kind.
    #[error("this is no flight report")]
    NotAReport,
    /// Another version of the program wrote it.
    #[error(
        "the report is of version {got} and this program reads version {VERSION}: use the one that wrote it"
    )]
    Version {
        /// The report's version.
        got: u16,
    },
    /// Nothing in it can be replayed.
    #[error("the report has no state to begin with")]
    Empty,
}

/// Where the usable part of a report ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The rest is missing.
    #[error("the report is cut after {at} bytes; what is before is used")]
    Cut {
        /// Bytes before the section that is cut.
        at: usize,
    },
    /// The check of a section does not match its contents, or the section is out of place.
    #[error("the report is damaged at byte {at}; what is before is used")]
    Changed {
        /// Bytes before that section.
        at: usize,
    },
}

/// A report that was read, up to the first damage.
///
/// Build the rules from [`Self::setup`], and replay it with a [`Replayer`](crate::Replayer).
#[derive(Clone, Debug)]
pub struct Report<'a> {
    preface: &'a [u8],
    setup: &'a [u8],
    note: String,
    stretches: Vec<Written<'a>>,
    damage: Option<Damage>,
}

/// A stretch of a report.
#[derive(Clone, Debug)]
pub(crate) struct Written<'a> {
    pub(crate) began: Timestamp,
    pub(crate) key: &'a [u8],
    pub(crate) calls: Vec<u8>,
}

impl<'a> Report<'a> {
    /// Reads a report up to the first damage.
    ///
    /// # Errors
    /// When it is no report, of another version, or has no key state that can be used.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReportError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(ReportError::NotAReport)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(ReportError::NotAReport)?;
        let got = u16::from_le_bytes(*version);
        if got != VERSION {
            return Err(ReportError::Version { got });
        }
        let (preface, setup): (&[u8], &[u8]) = Default::default();
        let mut report = Self { preface, setup, note: String::new(), stretches: Vec::new(), damage: None };
        let mut from = Bounded::new(rest);
        // spec: FLIGHT-03
        report.damage = loop {
            let at = bytes.len() - from.rest().len();
            match section(&mut from) {
                Err(_) => break Some(Damage::Cut { at }),
                Ok(Some((END, _))) => break None,
                Ok(Some((kind, contents))) if report.take(kind, contents).is_some() => {}
                Ok(_) => break Some(Damage::Changed { at }),
            }
        };
        if report.stretches.is_empty() { Err(ReportError::Empty) } else { Ok(report) }
    }

    /// Takes a section; `None` when it is out of place.
    fn take(&mut self, kind: u8, contents: &'a [u8]) -> Option<()> {
        match kind {
            PREFACE if self.preface.is_empty() => self.preface = contents,
            SETUP if self.setup.is_empty() => self.setup = contents,
            NOTE => {
                let note = String::from_utf8_lossy(contents);
                self.note = note.chars().filter(|each| !each.is_control()).take(MAX_NOTE).collect();
            }
            KEY => {
                let mut from = Bounded::new(contents);
                let began = from.value().ok().map(Timestamp::from_micros)?;
                self.stretches.push(Written { began, key: from.rest(), calls: Vec::new() });
            }
            CALLS => self.stretches.last_mut()?.calls.extend_from_slice(contents),
            _ => return None,
        }
        Some(())
    }

    /// The bytes that were given to [`FlightClient::record`](crate::FlightClient::record). They are not checked: a
    /// hostile report may have any.
    pub fn setup(&self) -> &'a [u8] {
        self.setup
    }

    /// The note of the person who saved the report.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Number of key states.
    pub fn keys(&self) -> usize {
        self.stretches.len()
    }

    /// Bytes of all key states.
    pub fn key_bytes(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.key.len()).sum()
    }

    /// The damage that ends the usable part, if there is any.
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }

    pub(crate) fn stretches(&self) -> &[Written<'a>] {
        &self.stretches
    }

    pub(crate) fn preface(&self) -> Result<Preface, ReadError> {
        Preface::read(self.preface)
    }
}

/// The next section; `None` when its check does not match.
fn section<'a>(from: &mut Bounded<'a>) -> Result<Option<(u8, &'a [u8])>, ReadError> {
    let kind = from.raw(1)?.first().copied().ok_or(ReadError::Truncated)?;
    let length = from.raw(4)?.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
    let check = from.raw(8)?.first_chunk::<8>().map_or(0, |check| u64::from_le_bytes(*check));
    let contents = from.raw(usize::try_from(length).unwrap_or(usize::MAX))?;
    Ok((check == check_of(kind, contents)).then_some((kind, contents)))
}

fn check_of(kind: u8, contents: &[u8]) -> u64 {
    // The length is part of the digest.
    digest(contents) ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The whole ring as a report. `hidden` are places of its newest stretch that become zeros.
pub(crate) fn write(preface: &[u8], setup: &[u8], note: &str, ring: &Ring, hidden: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ring.stats().bytes + preface.len() + setup.len() + 4_096);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    add(PREFACE, preface, &mut bytes);
    add(SETUP, setup, &mut bytes);
    add(NOTE, note.chars().take(MAX_NOTE).collect::<String>().as_bytes(), &mut bytes);
    let mut key = Vec::new();
    for (number, stretch) in (1..).zip(ring.stretches()) {
        key.clear();
        append(&stretch.began.as_micros(), &mut key);
        key.extend_from_slice(&stretch.key);
        add(KEY, &key, &mut bytes);
        let mut calls = Cow::Borrowed(stretch.calls.as_slice());
        if number == ring.stretches().len() && !hidden.is_empty() {
            blacken(calls.to_mut(), hidden);
        }
        calls.chunks(PIECE).for_each(|piece| add(CALLS, piece, &mut bytes));
    }
    add(END, &[], &mut bytes);
    bytes
}

fn add(kind: u8, contents: &[u8], to: &mut Vec<u8>) {
    // A ring is at most 256 MiB.
    let length = u32::try_from(contents.len()).unwrap_or(u32::MAX);
    to.push(kind);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(&check_of(kind, contents).to_le_bytes());
    to.extend_from_slice(contents);
}
