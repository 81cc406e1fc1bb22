//! A report as bytes: what a recorder has, in one piece that needs nothing else.
//!
//! ```text
//! "halftrack flight"   16
//! version               2   little-endian; counted up with every change of what is written, states included
//! then sections, each:
//!   kind                1   1 preface, 2 note, 3 key state, 4 calls, 5 the end
//!   length              4   little-endian
//!   check               8   a hash of kind, length and contents, little-endian
//!   contents
//! ```
//!
//! First the preface: the client's config, without credentials, and the world. Then the note. Then each stretch: its key
//! state, which begins with the moment that its calls are counted from, and its calls in pieces of a few kilobytes, cut
//! anywhere. Then the end, which is empty. Whatever is damaged, everything before it can be used.

use std::borrow::Cow;

use crate::client::ClientConfig;
use crate::exact::{Exact, Loader, Saver};
use crate::flight::FlightGame;
use crate::flight::call::digest;
use crate::flight::ring::{Ring, blacken};
use crate::id::Token;
use crate::session::SessionConfig;
use crate::time::Timestamp;
use crate::wire::WireError;

const MAGIC: &[u8; 16] = b"halftrack flight";
/// Of the layout of a report and of every state in it.
const VERSION: u16 = 2;

const PREFACE: u8 = 1;
const NOTE: u8 = 2;
const KEY: u8 = 3;
const CALLS: u8 = 4;
const END: u8 = 5;

/// Calls in one section: what is lost at most where a byte is wrong.
const PIECE: usize = 4_096;
/// Characters of a note.
const MAX_NOTE: usize = 1_024;

/// Why bytes are no report at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// They begin with something else.
    #[error("this is no flight report")]
    NotAReport,
    /// Another version of the program wrote them.
    #[error(
        "the report is of version {got} and this program reads version {VERSION}: use the one that wrote it"
    )]
    Version {
        /// The report's.
        got: u16,
    },
    /// There is nothing in it that could be replayed.
    #[error("the report has no state to begin with")]
    Empty,
}

/// Where a report ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The rest is missing.
    #[error("the report is cut after {at} bytes; what is before is used")]
    Cut {
        /// Bytes that are there.
        at: usize,
    },
    /// Something in it is not what was written.
    #[error("the report is damaged at byte {at}; what is before is used")]
    Changed {
        /// Where.
        at: usize,
    },
}

/// A report, as far as it is whole.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    preface: &'a [u8],
    note: String,
    stretches: Vec<Written<'a>>,
    damage: Option<Damage>,
}

/// A stretch of a report.
#[derive(Clone, Debug)]
pub(super) struct Written<'a> {
    pub(super) began: Timestamp,
    pub(super) key: &'a [u8],
    pub(super) calls: Vec<u8>,
}

impl<'a> Report<'a> {
    /// Reads as much as is whole.
    ///
    /// # Errors
    /// When it is no report, or nothing of it can be used.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ReportError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(ReportError::NotAReport)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(ReportError::NotAReport)?;
        let got = u16::from_le_bytes(*version);
        if got != VERSION {
            return Err(ReportError::Version { got });
        }
        let mut report = Self { preface: &[], note: String::new(), stretches: Vec::new(), damage: None };
        let mut loader = Loader::new(rest);
        // spec: FLIGHT-03
        report.damage = loop {
            let at = bytes.len() - loader.left();
            match section(&mut loader) {
                Err(_) => break Some(Damage::Cut { at }),
                Ok(Some((END, _))) => break None,
                Ok(Some((kind, contents))) if report.take(kind, contents).is_some() => {}
                Ok(_) => break Some(Damage::Changed { at }),
            }
        };
        if report.stretches.is_empty() { Err(ReportError::Empty) } else { Ok(report) }
    }

    /// Takes a section that is whole; `None` when it has no place here.
    fn take(&mut self, kind: u8, contents: &'a [u8]) -> Option<()> {
        match kind {
            PREFACE if self.preface.is_empty() => self.preface = contents,
            NOTE => {
                let note = String::from_utf8_lossy(contents);
                self.note = note.chars().filter(|each| !each.is_control()).take(MAX_NOTE).collect();
            }
            KEY => {
                let mut loader = Loader::new(contents);
                let began = Timestamp::load(&mut loader).ok()?;
                let key = loader.take(loader.left()).ok()?;
                self.stretches.push(Written { began, key, calls: Vec::new() });
            }
            CALLS => self.stretches.last_mut()?.calls.extend_from_slice(contents),
            _ => return None,
        }
        Some(())
    }

    /// What whoever saved it had to say.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Key states in it.
    pub fn keys(&self) -> usize {
        self.stretches.len()
    }

    /// Bytes of its key states.
    pub fn key_bytes(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.key.len()).sum()
    }

    /// Where it ends before its end.
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }

    pub(super) fn stretches(&self) -> &[Written<'a>] {
        &self.stretches
    }

    /// The config that the client was built from.
    pub(super) fn config<G: FlightGame>(&self) -> Result<ClientConfig<G>, WireError> {
        let mut from = Loader::new(self.preface);
        let shared = from.any_number()?;
        let config = ClientConfig {
            session: load_session(shared, &mut from)?,
            predict: Exact::load(&mut from)?,
            correction: Exact::load(&mut from)?,
            lead: Exact::load(&mut from)?,
            delay: Exact::load(&mut from)?,
            policy: Exact::load(&mut from)?,
            repeat: Exact::load(&mut from)?,
            alone: G::load_world(&mut from)?,
        };
        from.finish()?;
        Ok(config)
    }
}

/// The next section; `None` when it is not what was written.
fn section<'a>(from: &mut Loader<'a>) -> Result<Option<(u8, &'a [u8])>, WireError> {
    let kind = from.byte()?;
    let length = from.take(4)?.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
    let check = from.take(8)?.first_chunk::<8>().map_or(0, |check| u64::from_le_bytes(*check));
    let contents = from.take(usize::try_from(length).unwrap_or(usize::MAX))?;
    Ok((check == check_of(kind, contents)).then_some((kind, contents)))
}

fn check_of(kind: u8, contents: &[u8]) -> u64 {
    // The length is part of the digest.
    digest(contents) ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The config, without what nobody else is to know.
pub(super) fn preface<G: FlightGame>(config: &ClientConfig<G>) -> Vec<u8> {
    let ClientConfig { alone, session, predict, correction, lead, delay, policy, repeat } = config;
    let mut to = Saver::default();
    to.number(session.shared);
    save_session(session, &mut to);
    predict.save(&mut to);
    correction.save(&mut to);
    lead.save(&mut to);
    delay.save(&mut to);
    policy.save(&mut to);
    repeat.save(&mut to);
    G::save_world(alone, &mut to);
    to.as_bytes().to_vec()
}

fn save_session(config: &SessionConfig, to: &mut Saver) {
    let SessionConfig { name, credentials: _, shared: _, resume, .. } = config;
    let SessionConfig { heartbeat, silence, login, grace, first_pause, max_pause, .. } = config;
    name.save(to);
    [heartbeat, silence, login, grace, first_pause, max_pause].into_iter().for_each(|span| span.save(to));
    config.max_log_messages.save(to);
    config.max_log_bytes.save(to);
    // Only that there is one: its holder could play on.
    resume.is_some().save(to);
}

fn load_session(shared: u64, from: &mut Loader<'_>) -> Result<SessionConfig, WireError> {
    Ok(SessionConfig {
        name: Exact::load(from)?,
        credentials: None,
        shared,
        heartbeat: Exact::load(from)?,
        silence: Exact::load(from)?,
        login: Exact::load(from)?,
        grace: Exact::load(from)?,
        first_pause: Exact::load(from)?,
        max_pause: Exact::load(from)?,
        max_log_messages: Exact::load(from)?,
        max_log_bytes: Exact::load(from)?,
        resume: bool::load(from)?.then(|| Token::new([0; 16])),
    })
}

/// Everything in `ring`, but for what is `hidden` of its newest stretch.
pub(super) fn write(preface: &[u8], note: &str, ring: &Ring, hidden: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ring.stats().bytes + preface.len() + 4_096);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    append(PREFACE, preface, &mut bytes);
    append(NOTE, note.chars().take(MAX_NOTE).collect::<String>().as_bytes(), &mut bytes);
    let mut key = Saver::default();
    for (number, stretch) in (1..).zip(ring.stretches()) {
        key.clear();
        stretch.began.save(&mut key);
        key.raw(&stretch.key);
        append(KEY, key.as_bytes(), &mut bytes);
        let mut calls = Cow::Borrowed(stretch.calls.as_bytes());
        if number == ring.stretches().len() && !hidden.is_empty() {
            blacken(calls.to_mut(), hidden);
        }
        calls.chunks(PIECE).for_each(|piece| append(CALLS, piece, &mut bytes));
    }
    append(END, &[], &mut bytes);
    bytes
}

fn append(kind: u8, contents: &[u8], to: &mut Vec<u8>) {
    // A ring is bounded by far less.
    let length = u32::try_from(contents.len()).unwrap_or(u32::MAX);
    to.push(kind);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(&check_of(kind, contents).to_le_bytes());
    to.extend_from_slice(contents);
}
