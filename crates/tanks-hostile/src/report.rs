//! What came of the attacks: a table for people, JSON for machines.

use std::time::Duration;

use serde_json::{Value, json};

use crate::attack::{Attack, Outcome};
use crate::honest::Noticed;

/// One attack, and what came of it.
pub(crate) struct Row {
    pub(crate) attack: &'static Attack,
    pub(crate) outcome: Outcome,
    /// Counters of the server that moved.
    pub(crate) answers: Vec<(String, u64)>,
    /// What honest players noticed of the last try, which is the one that is judged.
    pub(crate) noticed: Noticed,
    /// And of all tries together, which is what is told.
    pub(crate) noticed_in_all: Noticed,
    /// How often it was tried until honest players were not disturbed.
    pub(crate) tries: usize,
    /// What honest players suffered, if it is more than is promised.
    pub(crate) disturbed: Vec<String>,
    /// Before, at most, after; bytes.
    pub(crate) memory: [u64; 3],
    /// Lines that the server logged.
    pub(crate) lines: u64,
    pub(crate) took: Duration,
}

pub(crate) const HEAD: &str = "\
| attack | sent | answer | tries | corrections | late input | cut | memory MiB: before, most, after | |
|---|---|---|---|---|---|---|---|---|";

impl Row {
    pub(crate) fn is_good(&self) -> bool {
        self.outcome.wrong.is_empty() && self.disturbed.is_empty()
    }

    pub(crate) fn line(&self) -> String {
        let Self { attack, outcome, noticed_in_all: noticed, memory, .. } = self;
        let [before, most, after] = memory.map(|bytes| bytes as f64 / f64::from(1 << 20));
        format!(
            "| {} | {} | {} | {} | {} | {:.2} % | {} | {before:.0}, {most:.0}, {after:.0} | {} |",
            attack.name,
            outcome.sent,
            self.answer(),
            self.tries,
            noticed.corrections,
            noticed.late_percent(),
            noticed.disconnects,
            if self.is_good() { "ok" } else { "FAILED" },
        )
    }

    /// What was answered: what attackers were told, and what the server counted.
    fn answer(&self) -> String {
        const SHOWN: usize = 5;
        let seen = self.outcome.seen.0.iter().map(|(what, count)| match count {
            1 => what.clone(),
            count => format!("{count} x {what}"),
        });
        let counted = self.answers.iter().take(SHOWN).map(|(what, by)| format!("{what} +{by}"));
        let parts: Vec<_> = seen.chain(counted).collect();
        parts.join("; ")
    }

    /// What is wrong, line by line.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &String> {
        self.outcome.wrong.iter().chain(&self.disturbed)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "attack": self.attack.name,
            "what": self.attack.what,
            "sent": self.outcome.sent.0,
            "told": self.outcome.seen.0,
            "counted": self.answers.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "honest": noticed(&self.noticed_in_all),
            "honest_in_last_try": noticed(&self.noticed),
            "tries": self.tries,
            "memory_bytes": { "before": self.memory[0], "most": self.memory[1], "after": self.memory[2] },
            "log_lines": self.lines,
            "seconds": self.took.as_secs_f64(),
            "wrong": self.problems().collect::<Vec<_>>(),
        })
    }
}

pub(crate) fn noticed(noticed: &Noticed) -> Value {
    json!({
        "ticks": noticed.ticks,
        "late": noticed.late,
        "late_percent": noticed.late_percent(),
        "held": noticed.held,
        "corrections_outside_contact": noticed.corrections,
        "corrections_by_contact": noticed.contact,
        "unexplained": noticed.unexplained,
        "check_failed": noticed.check_failed,
        "disconnects": noticed.disconnects,
    })
}
