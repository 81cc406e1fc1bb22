//! What the page is told of, in JSON: who comes and goes, what happens, and what goes wrong.

use std::collections::VecDeque;

use serde::Serialize;

/// One thing. Fighters are their keys (`Fighter::key`). Other numbers are ticks, metres and milliseconds; angles are
/// radians to the left of east.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Told {
    /// The session changed state; `why` if the server closed the connection and said why.
    State { state: &'static str, text: String, why: Option<&'static str> },
    /// A connection is there, and which.
    Transport { kind: &'static str, why: String },
    /// The session began anew.
    Restarted { why: &'static str },
    /// A player or a machine is there.
    Joined { fighter: u64, name: String, own: bool },
    /// A player or a machine is gone.
    Left { fighter: u64 },
    /// The server ends.
    Closing { within_ms: u64 },
    /// A shot: from where to where, and in how many milliseconds the picture is there.
    Fired { shooter: u64, own: bool, tick: u32, aim: f64, from: [f64; 2], to: [f64; 2], in_ms: f64 },
    /// It met a tank.
    Hit { shooter: u64, target: u64, tick: u32, in_ms: f64 },
    /// A tank has fewer hit points.
    Damage { target: u64, amount: u8, hp: u8, tick: u32 },
    /// A tank is a wreck.
    Death { fighter: u64, by: u64, tick: u32 },
    /// A tank is back.
    Respawn { fighter: u64, tick: u32 },
    /// The round that is on: played until `ends_ms` of the server's clock, or over. A draw has no winner.
    Round { number: u32, over: bool, winner: Option<u64>, ends_ms: f64 },
    /// A rocket was launched, or has ended, at a place: as predicted, confirmed or revoked.
    Rocket {
        id: u64,
        life: &'static str,
        certainty: &'static str,
        shooter: Option<u64>,
        own: bool,
        at: [f64; 2],
        heading: f64,
        cause: Option<&'static str>,
    },
    /// The own shot was not fired.
    Rejected { tick: u32, why: &'static str },
    /// Something went wrong.
    Error { text: String },
    /// So many were not taken in time and are gone: ask for the fighters.
    Missed { count: u64 },
}

/// What waits for the page, bounded: the oldest make room.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    waiting: VecDeque<Told>,
    missed: u64,
}

impl Mailbox {
    /// A hidden page takes nothing; what a busy room tells in a minute fits.
    const MAX: usize = 1_024;

    pub(crate) fn tell(&mut self, told: Told) {
        if self.waiting.len() >= Self::MAX {
            self.waiting.pop_front();
            self.missed += 1;
        }
        self.waiting.push_back(told);
    }

    /// Whether some were not taken in time.
    pub(crate) fn has_missed(&self) -> bool {
        self.missed > 0
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Everything, as a JSON array.
    pub(crate) fn take(&mut self) -> String {
        let missed = core::mem::take(&mut self.missed);
        let missed = (missed > 0).then_some(Told::Missed { count: missed });
        let all: Vec<Told> = missed.into_iter().chain(self.waiting.drain(..)).collect();
        serde_json::to_string(&all).unwrap_or_else(|_| "[]".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_bounded_and_said() {
        let mut mailbox = Mailbox::default();
        // The largest key: the page reads it exactly.
        let fighter = (1 << 49) - 1;
        for tick in 0..Mailbox::MAX as u32 + 2 {
            mailbox.tell(Told::Respawn { fighter, tick });
        }
        assert_eq!(mailbox.len(), Mailbox::MAX);
        let told = mailbox.take();
        let begins = r#"[{"type":"missed","count":2},{"type":"respawn","fighter":562949953421311,"tick":2},"#;
        assert!(told.starts_with(begins), "{}", told.get(..100).unwrap());
        assert_eq!(mailbox.take(), "[]");
    }
}
