//! Flight reports: any bytes as a file, and any sections with checks that match.

use std::sync::Arc;

use halftrack::Digest;
use halftrack_flight::{Replayer, Report};
use tanks::Tanks;

use crate::budget::within;
use crate::script::Script;

/// Magic and version.
const HEADER: usize = 18;
/// Kind, length and check of a section.
const SECTION: usize = 13;

/// Reads and replays a flight report, or bytes that are none.
pub fn flight(bytes: &[u8]) {
    within((16 << 20) + 64 * bytes.len(), || {
        let mut script = Script::new(bytes);
        let sealed = script.flag();
        let mut file = script.rest().to_vec();
        if sealed {
            seal(&mut file);
        }
        replay(&file);
    });
}

/// Reader and replayer come to an end.
fn replay(file: &[u8]) {
    let Ok(report) = Report::read(file) else { return };
    assert!(report.key_bytes() <= file.len() && report.keys() <= file.len());
    let Ok(rules) = Tanks::from_setup(report.setup()) else { return };
    let Ok(mut replayer) = Replayer::new(&report, Arc::new(rules)) else { return };
    let mut steps = 0;
    while replayer.step().is_some() {
        steps += 1;
        assert!(steps <= file.len() + 1, "every step reads a byte at least");
    }
    assert!(replayer.exact_frames() <= replayer.frames());
    assert!(replayer.step().is_none(), "the end stays the end");
}

/// Corrects the check of every section, up to the first whose length is wrong.
fn seal(file: &mut [u8]) {
    let mut at = HEADER;
    while let Some(head) = file.get(at..at + SECTION) {
        let (kind, length) = (head[0], u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize);
        let Some(contents) = file.get(at + SECTION..).and_then(|rest| rest.get(..length)) else { return };
        let check = digest(contents) ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        file[at + 5..at + SECTION].copy_from_slice(&check.to_le_bytes());
        at += SECTION + length;
    }
}

/// The check of `docs/FLIGHT.md`.
fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    whole.word(rest).word(bytes.len() as u64).finish()
}
