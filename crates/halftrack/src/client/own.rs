//! The bodies that the player owns and the group around them: their newest states, their prediction, and the reports of
//! their corrections.
//!
//! All of them are predicted together. Each has its own correction and causes.

use core::time::Duration;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use super::fates::Fates;
use super::group::Group;
use crate::cause::Cause;
use crate::game::Game;
use crate::id::BodyId;
use crate::input::{Inputs, TickInput, Upto};
use crate::predict::Authority;
use crate::reconcile::{Member, Reconciler};
use crate::sizes::CorrectionSizes;
use crate::snapshot::OwnBodies;
use crate::stats::{ByCause, CorrectionStats};
use crate::tick::{Epoch, Tick};
use crate::time::Timestamp;
use crate::wire::control::Report;

/// The bodies that the player owns, and the group that is predicted with them.
#[derive_where(Debug)]
pub(super) struct Own<G: Game> {
    /// Epoch and tick of the newest state, also when the player owns no body.
    pub(super) newest: Option<(Epoch, Tick)>,
    /// The player's bodies in order of their spawn.
    pub(super) ids: Vec<BodyId>,
    /// The newest state of them, of the group and of the bodies near it. None while the player owns no body.
    pub(super) state: Option<Authority<G>>,
    /// None until the server's time is known, and while the player owns no body.
    pub(super) reconciler: Option<Reconciler<G>>,
    pub(super) group: Group<G>,
    pub(super) fates: Fates,
    /// The player's newest wish.
    pub(super) wanted: G::Input,
    /// The open tick when it was last looked at.
    pub(super) open: Option<Tick>,
    /// When prediction was last restarted from authority.
    pub(super) resynced: Option<Timestamp>,
    /// Corrections of earlier predictions: the player owned no body for a while.
    pub(super) past: CorrectionStats,
    pub(super) past_group: CorrectionStats,
    pub(super) reported: Reported,
    /// Scratch memory: the own bodies of a snapshot.
    pub(super) section: OwnBodies<G>,
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
            ids: Vec::new(),
            state: None,
            reconciler: None,
            group: Group::new(),
            fates: Fates::default(),
            wanted: G::Input::default(),
            open: None,
            resynced: None,
            past: CorrectionStats::default(),
            past_group: CorrectionStats::default(),
            reported: Reported::default(),
            section: OwnBodies::default(),
        }
    }

    /// The session begins anew.
    pub(super) fn forget(&mut self) {
        (self.newest, self.resynced) = (None, None);
        self.ids.clear();
        (self.state, self.reconciler) = (None, None);
        self.group.forget();
        self.fates.reset();
        (self.past, self.past_group) = (CorrectionStats::default(), CorrectionStats::default());
        self.reported = Reported::default();
    }

    /// The predicted state of a body that the player owns; until prediction begins, the server's.
    pub(super) fn predicted(&self, id: BodyId) -> Option<&G::Body> {
        let predicted = self.reconciler.as_ref().and_then(|known| known.member(id)).map(Member::predicted);
        predicted.or_else(|| self.state.as_ref()?.get(id).map(|actor| &actor.who.body))
    }

    /// Ends prediction: the player owns no body any more.
    pub(super) fn end_prediction(&mut self) {
        self.state = None;
        if let Some(reconciler) = self.reconciler.take() {
            self.past.merge(&reconciler.corrections());
            self.past_group.merge(reconciler.group_corrections());
        }
    }

    /// Replaces `into` by the recorded ticks that the server has not acknowledged: see [`Reconciler::inputs`].
    pub(super) fn take_inputs(&mut self, upto: Upto, into: &mut Vec<TickInput<G::Input>>) -> Option<Inputs> {
        Some(self.reconciler.as_mut()?.inputs(upto, into))
    }

    /// Corrections of all bodies, those included that the player owns no more.
    pub(super) fn corrections(&self) -> CorrectionStats {
        let mut all = self.past;
        self.reconciler.iter().for_each(|reconciler| all.merge(&reconciler.corrections()));
        all
    }

    /// Corrections of the bodies of the group that the player does not own.
    pub(super) fn group_corrections(&self) -> CorrectionStats {
        let mut all = self.past_group;
        self.reconciler.iter().for_each(|reconciler| all.merge(reconciler.group_corrections()));
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
        let members = self.reconciler.iter().flat_map(Reconciler::members);
        let recent = members.flat_map(Member::recent);
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
