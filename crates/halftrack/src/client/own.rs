//! The bodies that the player owns: their newest states, their prediction, and the reports of their corrections.
//!
//! All of them are predicted by the same input on the same clock. Each has its own baseline, correction and causes.

use core::time::Duration;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use super::fates::Fates;
use crate::cause::Cause;
use crate::game::Game;
use crate::id::BodyId;
use crate::input::{Inputs, TickInput, Upto};
use crate::predict::Authority;
use crate::reconcile::Reconciler;
use crate::sizes::CorrectionSizes;
use crate::snapshot::OwnBodies;
use crate::stats::{ByCause, CorrectionStats};
use crate::tick::{Epoch, Tick};
use crate::time::Timestamp;
use crate::wire::control::Report;

/// The bodies that the player owns.
#[derive_where(Debug)]
pub(super) struct Own<G: Game> {
    /// Epoch and tick of the newest state, also when the player owns no body.
    pub(super) newest: Option<(Epoch, Tick)>,
    /// In order of their spawn.
    pub(super) bodies: Vec<OwnBody<G>>,
    pub(super) fates: Fates,
    /// The player's newest wish.
    pub(super) wanted: G::Input,
    /// The open tick when it was last looked at.
    pub(super) open: Option<Tick>,
    /// When prediction was last restarted from authority.
    pub(super) resynced: Option<Timestamp>,
    /// Corrections of bodies that the player owns no more.
    pub(super) past: CorrectionStats,
    pub(super) reported: Reported,
    /// Scratch memory: the own bodies of a snapshot, and input that was taken already.
    pub(super) section: OwnBodies<G>,
    pub(super) known: Vec<BodyId>,
    pub(super) inputs: Vec<TickInput<G::Input>>,
}

/// A body that the player owns.
#[derive_where(Debug)]
pub(super) struct OwnBody<G: Game> {
    pub(super) id: BodyId,
    /// The newest state, and the bodies near it.
    pub(super) state: Authority<G>,
    /// None until the server's time is known.
    pub(super) reconciler: Option<Reconciler<G>>,
}

impl<G: Game> OwnBody<G> {
    /// The predicted state; until prediction begins, the server's.
    pub(super) fn predicted(&self) -> &G::Body {
        self.reconciler.as_ref().map_or(&self.state.body, Reconciler::predicted)
    }
}

/// The corrections that the server knows of.
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
            newest: None,
            bodies: Vec::new(),
            fates: Fates::default(),
            wanted: G::Input::default(),
            open: None,
            resynced: None,
            past: CorrectionStats::default(),
            reported: Reported::default(),
            section: OwnBodies::default(),
            known: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// The session begins anew.
    pub(super) fn forget(&mut self) {
        (self.newest, self.resynced) = (None, None);
        self.bodies.clear();
        self.fates.reset();
        self.past = CorrectionStats::default();
        self.reported = Reported::default();
    }

    /// The prediction of the first body. The clock and the input of all others are the same.
    pub(super) fn first(&self) -> Option<&Reconciler<G>> {
        self.bodies.first().and_then(|body| body.reconciler.as_ref())
    }

    /// The prediction of each body.
    pub(super) fn reconcilers(&self) -> impl Iterator<Item = &Reconciler<G>> {
        self.bodies.iter().filter_map(|body| body.reconciler.as_ref())
    }

    /// The same, to be changed: every call that moves time or input goes to all of them.
    pub(super) fn reconcilers_mut(&mut self) -> impl Iterator<Item = &mut Reconciler<G>> {
        self.bodies.iter_mut().filter_map(|body| body.reconciler.as_mut())
    }

    /// Replaces `into` by the recorded ticks that the server has not acknowledged: see [`Reconciler::inputs`].
    pub(super) fn take_inputs(&mut self, upto: Upto, into: &mut Vec<TickInput<G::Input>>) -> Option<Inputs> {
        let mut reconcilers = self.bodies.iter_mut().filter_map(|body| body.reconciler.as_mut());
        let inputs = reconcilers.next()?.inputs(upto, into);
        // Input that was sent is sealed in all of them.
        for reconciler in reconcilers {
            let same = reconciler.inputs(upto, &mut self.inputs);
            debug_assert!(same == inputs && self.inputs == *into, "all bodies have the same input");
        }
        Some(inputs)
    }

    /// Corrections of all bodies, those included that the player owns no more.
    pub(super) fn corrections(&self) -> CorrectionStats {
        let mut all = self.past;
        self.reconcilers().for_each(|reconciler| all.merge(reconciler.stats()));
        all
    }

    /// A report of the corrections since the last one, every two seconds and only if there were any.
    pub(super) fn report(&mut self, now: Timestamp) -> Option<Report> {
        const EVERY: Duration = Duration::from_secs(2);
        if now < self.reported.next || self.newest.is_none() {
            return None;
        }
        self.reported.next = now + EVERY;
        let stats = self.corrections();
        let (mut corrections, mut sizes) = (stats.causes, stats.sizes);
        // Whether input was late or lost is not settled yet for these.
        let recent = self.reconcilers().flat_map(Reconciler::recent);
        let lost = recent.filter(|diagnosis| diagnosis.cause == Some(Cause::LostInput));
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
