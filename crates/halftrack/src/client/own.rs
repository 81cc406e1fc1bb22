//! The player's own body in a client: its newest state, its prediction, and the reports of its corrections.

use core::time::Duration;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use super::fates::Fates;
use crate::cause::Cause;
use crate::game::Game;
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::sizes::CorrectionSizes;
use crate::snapshot::TickFate;
use crate::stats::ByCause;
use crate::tick::Tick;
use crate::time::Timestamp;
use crate::wire::control::Report;

/// The player's own body.
#[derive_where(Debug)]
pub(super) struct Own<G: Game> {
    /// The newest state, and the bodies near it.
    pub(super) state: Option<Authority<G>>,
    pub(super) reconciler: Option<Reconciler<G>>,
    pub(super) fates: Fates,
    /// The player's newest wish.
    pub(super) wanted: G::Input,
    /// The open tick when it was last looked at.
    pub(super) open: Option<Tick>,
    /// When prediction was last restarted from authority.
    pub(super) resynced: Option<Timestamp>,
    pub(super) reported: Reported,
    /// Scratch memory: the fates of a snapshot.
    pub(super) told: Vec<TickFate>,
}

/// The corrections that the server has been told of, of the present reconciler.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reported {
    corrections: ByCause,
    sizes: CorrectionSizes,
    snapped: u64,
    next: Timestamp,
}

impl<G: Game> Own<G> {
    pub(super) fn new() -> Self {
        Self {
            state: None,
            reconciler: None,
            fates: Fates::default(),
            wanted: G::Input::default(),
            open: None,
            resynced: None,
            reported: Reported::default(),
            told: Vec::new(),
        }
    }

    /// The session begins anew.
    pub(super) fn forget(&mut self) {
        (self.state, self.reconciler, self.resynced) = (None, None, None);
        self.fates.reset();
        self.reported = Reported::default();
    }

    /// A report of the corrections since the last one, every two seconds and only if there were any.
    pub(super) fn report(&mut self, now: Timestamp) -> Option<Report> {
        const EVERY: Duration = Duration::from_secs(2);
        let reconciler = self.reconciler.as_ref().filter(|_| now >= self.reported.next)?;
        self.reported.next = now + EVERY;
        let stats = reconciler.stats();
        let (mut corrections, mut sizes) = (stats.causes, stats.sizes);
        // Whether input was late or lost is not settled yet for these.
        let lost = reconciler.recent().filter(|diagnosis| diagnosis.cause == Some(Cause::LostInput));
        for diagnosis in lost.filter(|diagnosis| self.fates.is_unsettled(diagnosis.server_tick)) {
            corrections.reduce(Cause::LostInput, 1);
            let (distance, angle) = (diagnosis.correction_distance, diagnosis.correction_angle);
            sizes.forget(Cause::LostInput, distance, angle);
        }
        let snapped = u16::try_from(stats.snapped.saturating_sub(self.reported.snapped)).unwrap_or(u16::MAX);
        let corrections = corrections.take_since(&mut self.reported.corrections);
        let sizes = sizes.take_since(&mut self.reported.sizes);
        self.reported.snapped += u64::from(snapped);
        Some(Report { corrections, snapped, sizes }).filter(|report| *report != Report::default())
    }
}
