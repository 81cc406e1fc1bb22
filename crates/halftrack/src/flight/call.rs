//! One call of a client as bytes, and what a frame showed as a digest.
//!
//! ```text
//! kind            1   of the table below
//! moment    1 to 10   signed, microseconds after that of the call before; not with what is taken
//! and:
//!  1 connect                            8 datagram       bytes
//!  2 logout                             9 timeout
//!  3 set_input     an input, as bits   10 frame          the digest of what it showed, 8
//!  4 order         bytes               11 poll_event     (only what gave something)
//!  5 connected     0 with datagrams,   12 poll_stream
//!                  1 without           13 poll_datagram
//!  6 disconnected  0, or its code
//!  7 stream        bytes
//! ```

use crate::client::Client;
use crate::digest::Digest;
use crate::exact::{Exact, Loader, Saver};
use crate::flight::FlightGame;
use crate::game::Game;
use crate::lane::SyncLink;
use crate::session::DisconnectReason;
use crate::time::{Timestamp, signed_difference};
use crate::wire::{Coded, WireError};

/// What a client is told, or what is taken from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call<'a, G: Game> {
    Connect,
    Logout,
    SetInput(G::Input),
    Order(&'a [u8]),
    Connected(SyncLink),
    Disconnected(Option<DisconnectReason>),
    Stream(&'a [u8]),
    Datagram(&'a [u8]),
    Timeout,
    /// What it showed follows when it has.
    Frame,
    PollEvent,
    PollStream,
    PollDatagram,
}

impl<'a, G: Game> Call<'a, G> {
    /// Writes it. `last` is the moment of the call before, and then of this one.
    pub(super) fn save(&self, now: Option<Timestamp>, last: &mut Timestamp, to: &mut Saver) {
        to.byte(match self {
            Self::Connect => 1,
            Self::Logout => 2,
            Self::SetInput(_) => 3,
            Self::Order(_) => 4,
            Self::Connected(_) => 5,
            Self::Disconnected(_) => 6,
            Self::Stream(_) => 7,
            Self::Datagram(_) => 8,
            Self::Timeout => 9,
            Self::Frame => 10,
            Self::PollEvent => 11,
            Self::PollStream => 12,
            Self::PollDatagram => 13,
        });
        if let Some(now) = now {
            signed_difference(now.as_micros(), last.as_micros()).save(to);
            *last = now;
        }
        match self {
            Self::SetInput(input) => to.bits(|bits| input.write(bits)),
            Self::Order(bytes) | Self::Stream(bytes) | Self::Datagram(bytes) => to.list(bytes),
            Self::Connected(sync_link) => sync_link.save(to),
            Self::Disconnected(reason) => to.number(reason.map_or(0, |reason| u64::from(reason.code()))),
            _ => {}
        }
    }

    /// Reads it, and brings `last` to its moment.
    pub(super) fn load(last: &mut Timestamp, from: &mut Loader<'a>) -> Result<Self, WireError> {
        let kind = from.byte()?;
        if kind < 11 {
            let later = i64::load(from)?;
            let moment = last.as_micros().checked_add_signed(later).filter(|moment| moment >> 60 == 0);
            *last = Timestamp::from_micros(moment.ok_or(WireError::Invalid { field: "moment" })?);
        }
        Ok(match kind {
            1 => Self::Connect,
            2 => Self::Logout,
            3 => Self::SetInput(from.bits(G::Input::read)?),
            4 => Self::Order(from.list()?),
            5 => Self::Connected(SyncLink::load(from)?),
            6 => Self::Disconnected(match from.number()? {
                0 => None,
                code => Some(reason_of(code).ok_or(WireError::Invalid { field: "reason" })?),
            }),
            7 => Self::Stream(from.list()?),
            8 => Self::Datagram(from.list()?),
            9 => Self::Timeout,
            10 => Self::Frame,
            11 => Self::PollEvent,
            12 => Self::PollStream,
            13 => Self::PollDatagram,
            _ => return Err(WireError::Invalid { field: "call" }),
        })
    }
}

fn reason_of(code: u64) -> Option<DisconnectReason> {
    DisconnectReason::from_code(u32::try_from(code).ok()?)
}

/// What a frame showed: a short digest of each part, to tell which one differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The visible pose of the player.
    pub(super) visible: u16,
    /// The predicted body.
    pub(super) predicted: u16,
    /// Everybody else as drawn.
    pub(super) others: u16,
    /// Counts of corrections, and where the session is.
    pub(super) counts: u16,
}

impl Shown {
    /// What `client` shows. `memory` is used again.
    pub(super) fn of<G: FlightGame>(client: &Client<G>, memory: &mut Saver) -> Self {
        let reconciler = client.reconciler();
        memory.clear();
        if let Some(reconciler) = reconciler {
            reconciler.visible().save(memory);
        }
        let visible = short(digest(memory.as_bytes()));
        let predicted = short(client.predicted().map_or(0, G::digest));
        memory.clear();
        for remote in client.remotes().iter() {
            remote.player.save(memory);
            remote.visible.save(memory);
        }
        let others = short(digest(memory.as_bytes()));
        memory.clear();
        client.state().save(memory);
        if let Some(reconciler) = reconciler {
            reconciler.stats().save(memory);
        }
        Self { visible, predicted, others, counts: short(digest(memory.as_bytes())) }
    }

    pub(super) fn save(self, to: &mut Saver) {
        for part in [self.visible, self.predicted, self.others, self.counts] {
            part.to_le_bytes().into_iter().for_each(|byte| to.byte(byte));
        }
    }

    pub(super) fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let mut part = || Ok(u16::from_le_bytes([from.byte()?, from.byte()?]));
        Ok(Self { visible: part()?, predicted: part()?, others: part()?, counts: part()? })
    }
}

fn short(digest: u64) -> u16 {
    let [low, high, ..] = (digest >> 48).to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// A hash of bytes: for accidents, not against an attacker.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    whole.word(rest).word(bytes.len() as u64).finish()
}
