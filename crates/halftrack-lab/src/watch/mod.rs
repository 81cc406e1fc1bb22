//! What is looked at in one client: its own bodies, its input on the way, what is emitted, the group that is predicted with
//! its own bodies, and the others as it draws them.
//!
//! Only looks: a client that is watched does what it would do without.

mod body;
mod emit;
mod group;
mod input;
mod own;
mod remote;

pub(crate) use emit::EmitWatch;
pub(crate) use group::GroupWatch;
pub(crate) use input::InputWatch;
pub(crate) use own::OwnWatch;
pub(crate) use remote::RemoteWatch;

use crate::check::{Checks, Rule};
use crate::tally::Tally;
use crate::trace::Trace;

/// Where findings go.
pub(crate) struct Note<'a> {
    pub(crate) tally: &'a mut Tally,
    pub(crate) checks: &'a mut Checks,
    /// Whether numbers count already. Checks always do.
    pub(crate) measuring: bool,
    /// The same of emissions, which count until everything that happened has been told.
    pub(crate) counting: bool,
    pub(crate) at_s: f64,
    pub(crate) client: usize,
    /// This client's run, if it is written down.
    pub(crate) trace: Option<&'a mut Trace>,
}

impl Note<'_> {
    pub(crate) fn check(&mut self, holds: bool, rule: Rule, what: impl FnOnce() -> String) {
        self.checks.check(holds, (self.at_s, Some(self.client)), rule, what);
    }
}

/// Milliseconds from one moment to another, below zero when it is before it.
pub(crate) fn signed_ms(from: u64, to: u64) -> f64 {
    let size = from.abs_diff(to) as f64 / 1e3;
    if to >= from { size } else { -size }
}
