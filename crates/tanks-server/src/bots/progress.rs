//! One line that says how it goes: written over again on a terminal, now and then where lines are kept.

use std::io::{IsTerminal, Write as _, stderr};
use std::time::Duration;

use halftrack::Timestamp;
use halftrack_io::now;

use super::company::Summary;

#[derive(Debug)]
pub(super) struct Progress {
    kind: Kind,
    next: Timestamp,
    start: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Quiet,
    Terminal,
    Lines,
}

/// Whether to say anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Quiet,
    Usual,
}

impl Progress {
    pub(super) fn new(voice: Voice) -> Self {
        let kind = match voice {
            Voice::Quiet => Kind::Quiet,
            Voice::Usual if stderr().is_terminal() => Kind::Terminal,
            Voice::Usual => Kind::Lines,
        };
        Self { kind, next: Timestamp::ZERO, start: now() }
    }

    /// Says it, if it is time to.
    pub(super) fn show(&mut self, what: &str, summary: &Summary) {
        let now = now();
        if self.kind == Kind::Quiet || now < self.next {
            return;
        }
        let Summary { players, ended, disconnects, late_ticks, .. } = summary;
        let seconds = now.saturating_since(self.start).as_secs_f64();
        let line = format!(
            "{seconds:6.1} s  {what}: {players} in, {ended} ended, {disconnects} disconnects, {} corrections, \
             {late_ticks} ticks late",
            summary.corrections()
        );
        // Nobody reads it: nothing is lost.
        let _ = match self.kind {
            Kind::Terminal => write!(stderr(), "\r{line}\x1b[K").and_then(|()| stderr().flush()),
            _ => writeln!(stderr(), "{line}"),
        };
        self.next = now + Duration::from_millis(if self.kind == Kind::Terminal { 200 } else { 5_000 });
    }

    /// What comes next on a terminal is not to stand behind it.
    pub(super) fn end(&self) {
        if self.kind == Kind::Terminal {
            let _ = write!(stderr(), "\r\x1b[K").and_then(|()| stderr().flush());
        }
    }
}
