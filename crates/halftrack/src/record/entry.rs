//! What is in a recording.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::digest::Digest;
use crate::id::{PlayerId, PlayerName, Token};
use crate::snapshot::BodyLimits;
use crate::wire::control::Report;

pub(super) const MAGIC: [u8; 8] = *b"HTRECORD";
/// 2: a tank outlives the logout of its player for a while, in the game that this format is for; reports are folded.
/// 3: a join has its claims; commands of the host.
/// 4: the key of body ids, and a trace of the bodies that no player owns.
pub(super) const VERSION: u8 = 4;
/// Entries that begin with this or more are orders of the player with that place among those who are there.
pub(super) const FIRST_ORDER: u8 = 0x10;
/// Entries of one frame, bytes: far more than a tick has, and no more than a reader will hold.
pub(super) const MAX_FRAME: usize = 1 << 20;
/// Bits of a body's hash in every tick. Two find who differs first in a tick or two, for a sixteenth of what a
/// player's recording may cost.
pub(super) const TRACE_BITS: u32 = 2;

/// Work that every recording may ask for, in the unit of [`crate::server::Stage::work`]: half a second of it.
const FREE_WORK: u64 = 1 << 26;
/// Work that each byte of it adds: some 20 us. A body in a tick takes three bits and pays by that for a dozen neighbours in
/// contact with it, more than there is room for.
const WORK_PER_BYTE: u64 = 2_048;

/// The work that a recording may ask for in its first `bytes` bytes.
pub(crate) fn work_limit(bytes: usize) -> u64 {
    FREE_WORK + WORK_PER_BYTE * bytes as u64
}

/// What a recording begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// A hash of everything that whoever plays it back must share: cadence, grid, rules, the world without bodies.
    pub shared: u64,
    /// How long a tick is, microseconds.
    pub cadence_micros: u32,
    /// The tick that had just ended when it began.
    pub first_tick: u32,
    /// The run of the machine that it was written in: another one, and what had not been synced may be lost.
    pub run: [u8; 16],
    /// The secret of the ids of bodies, so that a playback has the same: see [`crate::server::ServerConfig::body_key`].
    pub body_key: [u8; 16],
    /// The most bodies of the room and of a player: a world can hear of them.
    pub limits: (u32, u32),
    /// What the host wants to know: how its world was made.
    pub about: Vec<u8>,
}

impl Header {
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        let (run, body_key) = ([0; 16], [0; 16]);
        let limits = BodyLimits::default().into();
        Self { shared: 1, cadence_micros: 50_000, first_tick: 0, run, body_key, limits, about: vec![] }
    }

    pub(crate) fn limits(&self) -> BodyLimits {
        let (max_bodies, max_owned) = self.limits;
        BodyLimits { max_bodies: max_bodies as usize, max_owned: max_owned as usize }
    }
}

impl From<BodyLimits> for (u32, u32) {
    fn from(limits: BodyLimits) -> Self {
        let number = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        (number(limits.max_bodies), number(limits.max_owned))
    }
}

/// Something that the world was told, or that a server must know to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A tick was simulated. What everybody was told in it is the recording's to say.
    Tick,
    /// A player has come. The token is what it comes back with.
    Joined {
        /// Who.
        player: PlayerId,
        /// What it is called.
        name: PlayerName,
        /// For coming back.
        token: Token,
        /// What of its credentials the world was given: see [`crate::server::World::claims`].
        claims: Option<String>,
    },
    /// A player has gone for good.
    Left {
        /// Who.
        player: PlayerId,
    },
    /// A player's order, which claims nothing that it was not shown.
    Ordered {
        /// Whose.
        player: PlayerId,
        /// The order, as the game writes it; empty, if it was none.
        bytes: Vec<u8>,
    },
    /// A player's order, which claims what it was never shown.
    OrderedUnseen {
        /// Whose.
        player: PlayerId,
        /// The order.
        bytes: Vec<u8>,
    },
    /// A player came back, and begins anew: its reliable messages are numbered from one again.
    Restarted {
        /// Who.
        player: PlayerId,
    },
    /// A player is known to have so many of the reliable messages.
    Delivered {
        /// Who.
        player: PlayerId,
        /// How many.
        received: u64,
    },
    /// How a client had to correct itself, as it told.
    Reported {
        /// Which.
        player: PlayerId,
        /// Causes, as places in [`Cause::ALL`], and how many corrections each was of.
        corrections: Vec<(u8, u16)>,
        /// Of these, the ones that snapped.
        snapped: u16,
    },
    /// The server's time slipped: a new epoch.
    Slipped,
    /// The server ended without a word, and another goes on from here, in this run of the machine. `rewound` when
    /// something after this may have been told to players and is lost.
    Recovered {
        /// Whether something is lost.
        rewound: bool,
        /// The run of the machine.
        run: [u8; 16],
    },
    /// So many ticks in which nobody was there.
    Passed {
        /// How many, at most [`Self::MAX_PASSED`].
        ticks: u32,
    },
    /// A hash of everything at the end of the newest tick.
    Check {
        /// See [`crate::server::Stage::digest`].
        digest: u64,
    },
    /// The match is over.
    Ended,
    /// The host gave the world a command, which it obeyed.
    Commanded {
        /// The command, as the game writes it.
        bytes: Vec<u8>,
    },
}

impl Entry {
    /// What a client told.
    pub fn reported(player: PlayerId, report: &Report) -> Self {
        let counts = (0..).zip(report.corrections).filter(|(_, count)| *count > 0);
        Self::Reported { player, corrections: counts.collect(), snapped: report.snapped }
    }

    /// The cause that a place in a report means.
    pub fn cause(place: u8) -> Option<Cause> {
        Cause::ALL.get(usize::from(place)).copied()
    }

    /// Ticks that pass in one entry: a week at 20 Hz.
    pub const MAX_PASSED: u32 = 1 << 24;
    /// Players that are there at once: as many as a room can hold. Each takes some kilobytes to play back.
    pub const MAX_PLAYERS: usize = 4_096;
}

/// A hash of bytes that goes on from one frame to the next.
pub(super) fn add_bytes(digest: Digest, bytes: &[u8]) -> Digest {
    let word = |digest: Digest, chunk: &[u8]| {
        digest.word(chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    };
    bytes.chunks(8).fold(digest.word(bytes.len() as u64), word)
}

/// What of it is written.
pub(super) fn check_of(digest: Digest) -> [u8; 4] {
    let [a, b, c, d, ..] = digest.finish().to_le_bytes();
    [a, b, c, d]
}
