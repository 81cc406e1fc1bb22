//! Flight reports: any bytes as a file; and a report whose checks are made good again, whatever is in its sections.

use halftrack::Digest;
use halftrack::flight::{Replayer, Report};
use tanks::Tanks;

use crate::budget::within;
use crate::script::Script;

/// Magic and version.
const HEADER: usize = 18;
/// Kind, length and check of a section.
const SECTION: usize = 13;

/// A flight report, or what is taken for one.
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

/// The reader takes what is whole, and the replayer comes to an end.
fn replay(file: &[u8]) {
    let Ok(report) = Report::read(file) else { return };
    assert!(report.key_bytes() <= file.len() && report.keys() <= file.len());
    let Ok(mut replayer) = Replayer::<Tanks>::new(&report) else { return };
    let mut steps = 0;
    while replayer.step().is_some() {
        steps += 1;
        assert!(steps <= file.len() + 1, "every step reads a byte at least");
    }
    assert!(replayer.exact_frames() <= replayer.frames());
    assert!(replayer.step().is_none(), "the end stays the end");
}

/// Gives every section the check that its contents need, as far as their lengths go.
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

/// As `docs/FLIGHT.md` has it.
fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    whole.word(rest).word(bytes.len() as u64).finish()
}
