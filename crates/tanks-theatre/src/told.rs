//! What the page reads as JSON. Fighters are their keys (`Fighter::key`). Other numbers are metres and milliseconds of the
//! time line; angles are radians to the left of east.

use std::borrow::Cow;

use serde::Serialize;
use tanks::{Arena, Obstacle};

/// What happens, when the picture is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Told {
    Joined {
        fighter: u64,
        name: String,
    },
    Left {
        fighter: u64,
    },
    Fired {
        shooter: u64,
        aim: f64,
        from: [f64; 2],
        to: [f64; 2],
    },
    /// A rocket was launched, or has ended.
    Rocket {
        id: u64,
        life: &'static str,
        at: [f64; 2],
        heading: f64,
    },
    Hit {
        shooter: u64,
        target: u64,
    },
    Damage {
        target: u64,
        amount: u8,
    },
    Death {
        fighter: u64,
        by: u64,
    },
    Respawn {
        fighter: u64,
    },
    /// A round begins (`over` is false), or is over; a draw has no winner.
    Round {
        number: u32,
        over: bool,
        winner: Option<u64>,
    },
    Report {
        fighter: u64,
        corrections: Vec<(&'static str, u16)>,
        snapped: u16,
    },
}

/// What the time line shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Mark {
    /// A fighter died.
    Kill { at_ms: f64, fighter: u64, name: String, by: u64, by_name: String },
    /// A round is over; a draw has no winner.
    Round { at_ms: f64, number: u32, winner: Option<String> },
    /// A client told what it had to correct since it told last.
    Report { at_ms: f64, fighter: u64, name: String, corrections: Vec<(&'static str, u16)>, snapped: u16 },
    /// The server ended without a word, and another went on.
    Recovered { at_ms: f64 },
}

/// A player or a machine that is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Standing<'a> {
    pub(crate) fighter: u64,
    pub(crate) name: Cow<'a, str>,
    pub(crate) hp: u8,
    pub(crate) kills: u32,
    pub(crate) deaths: u32,
    pub(crate) shots: u32,
    pub(crate) hits: u32,
}

/// The file, as far as it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct About<'a> {
    pub(crate) room: &'a str,
    /// Seconds since 1970.
    pub(crate) started: u64,
    pub(crate) tick_ms: f64,
    pub(crate) arena: Ground,
    /// Why it ends before the end of the file, in words.
    pub(crate) damage: Option<String>,
    /// From where on it does not come out as it was recorded, milliseconds of the time line.
    pub(crate) differs_ms: Option<f64>,
    pub(crate) marks_left_out: u64,
}

/// An arena as the page draws it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ground {
    size: [f64; 2],
    obstacles: Vec<Thing>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Thing {
    Block { min: [f64; 2], max: [f64; 2] },
    Pillar { center: [f64; 2], radius: f64 },
}

impl Ground {
    pub(crate) fn of(arena: &Arena) -> Self {
        let thing = |obstacle: &Obstacle| match *obstacle {
            Obstacle::Block { min, max } => Thing::Block { min, max },
            Obstacle::Pillar { center, radius } => Thing::Pillar { center, radius },
        };
        Self { size: arena.size(), obstacles: arena.obstacles().iter().map(thing).collect() }
    }
}

/// Numbers that are none are `null`.
pub(crate) fn json(what: &impl Serialize) -> String {
    serde_json::to_string(what).unwrap_or_else(|_| "null".to_owned())
}
