//! What must always hold, and where it did not.

use serde::Serialize;

/// Something that must always hold and did not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    /// Seconds from the start of the run.
    pub at_s: f64,
    /// Whose client; none when it is the server's.
    pub client: Option<usize>,
    /// Which of them.
    pub rule: Rule,
    /// What was found.
    pub what: String,
}

/// What must always hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// The visible pose does not jump, except on a snap.
    NoJump,
    /// Corrections keep to their speed.
    CorrectionSpeed,
    /// Corrections are over by their deadline.
    CorrectionDeadline,
    /// Neither server time nor anybody drawn goes backwards.
    NoRewind,
    /// Nothing is shown before it has happened.
    NothingFromTheFuture,
    /// Reliable events come once and in order.
    EventsOnce,
    /// Whatever waits, waits within bounds.
    Bounds,
    /// Every pose is made of numbers.
    Finite,
    /// What a correction is put down to has happened.
    TrueCause,
    /// The two ends agree about everybody else.
    Check,
    /// Two seconds after something went wrong, everything is as it was before.
    Recovered,
    /// The same seed gives the same run.
    Repeatable,
    /// A client that is logged in plays; and somebody does.
    Plays,
    /// Every emission is there once: none is lost, doubled, or taken back for no reason.
    EmittedOnce,
    /// Every body is drawn once in a frame, and moves on when it joins the predicted group or leaves it.
    DrawnOnce,
}

/// Counts checks, and keeps the first that failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    pub(crate) checked: u64,
    pub(crate) violated: u64,
    pub(crate) list: Vec<Violation>,
}

impl Checks {
    /// More than anybody reads.
    const MAX_LISTED: usize = 50;

    /// Those of another as well.
    pub(crate) fn append(&mut self, other: Self) {
        self.checked += other.checked;
        self.violated += other.violated;
        let room = Self::MAX_LISTED.saturating_sub(self.list.len());
        self.list.extend(other.list.into_iter().take(room));
    }

    /// Counts a check; `what` says what was found instead.
    pub(crate) fn check(
        &mut self,
        holds: bool,
        (at_s, client): (f64, Option<usize>),
        rule: Rule,
        what: impl FnOnce() -> String,
    ) {
        self.checked += 1;
        if !holds {
            self.violated += 1;
            // The first of each rule is always listed: one that breaks often must not hide the others.
            if self.list.len() < Self::MAX_LISTED || self.list.iter().all(|listed| listed.rule != rule) {
                self.list.push(Violation { at_s, client, rule, what: what() });
            }
        }
    }
}
