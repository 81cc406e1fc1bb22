//! [`Member`]: one body of the predicted group on screen, and the corrections of it.

use core::time::Duration;
use std::collections::VecDeque;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use super::draw_time::{Aim, DrawTime};
use super::{Diagnosis, Reconciler};
use crate::cause::Cause;
use crate::game::{Game, MotionLimits, Neighbour};
use crate::id::{BodyId, Driver};
use crate::model::{Body, Offset, Pose};
use crate::predict::Role;
use crate::present::{Corrections, Outcome, Presenter};
use crate::stats::CorrectionStats;
use crate::tick::Tick;
use crate::time::Timestamp;

/// A body that is predicted: one that the player owns, or one of its group.
///
/// [`crate::client::Client::own`] and [`crate::client::Client::group`] list them.
#[derive_where(Clone, Debug)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Member<G: Game> {
    /// The body at prediction time.
    pub(super) who: Neighbour<G>,
    pub(super) role: Role,
    pub(super) draw: DrawTime,
    /// None while the body is not drawn.
    pub(super) presenter: Option<Presenter<G::Pose>>,
    /// Limits of the newest state: the presenter's config follows from them.
    pub(super) limits: MotionLimits,
    /// Kept for bodies that the player owns.
    pub(super) recent: VecDeque<Diagnosis<G>>,
    pub(super) stats: CorrectionStats,
    /// States accepted, and those among them that were not, to the bit, what had been predicted of their tick.
    pub(super) accepted: u64,
    pub(super) mispredicted: u64,
    pub(super) jumps: u64,
    /// The body that carries it, the displacement by that, and where it is drawn then.
    pub(super) carrier: Option<BodyId>,
    pub(super) shift: Offset,
    pub(super) carried: Option<G::Pose>,
    /// It is in the newest prediction.
    #[serde(skip)]
    pub(super) is_present: bool,
}

impl<G: Game> Member<G> {
    /// Whether a loaded member can have been saved by one.
    pub(super) fn is_sound(&self) -> bool {
        let sound =
            |presenter: &Presenter<G::Pose>| presenter.is_sound() && presenter.config().check().is_ok();
        self.who.body.check().is_ok() && self.presenter.as_ref().is_none_or(sound)
    }

    /// A body that is drawn at prediction time, at `pose`.
    pub(super) fn new(
        corrections: &Corrections<G>,
        now: Timestamp,
        (who, role): (Neighbour<G>, Role),
        pose: Option<G::Pose>,
    ) -> Self {
        let limits = corrections.limits(&who.body);
        let config = corrections.of(&who.body);
        Self {
            who,
            role,
            draw: DrawTime::behind(now, Duration::ZERO),
            presenter: pose.map(|pose| Presenter::at_rest(config, now, pose)),
            limits,
            recent: VecDeque::with_capacity(if role == Role::Own { Reconciler::<G>::RECENT } else { 0 }),
            stats: CorrectionStats::default(),
            accepted: 0,
            mispredicted: 0,
            jumps: 0,
            carrier: None,
            shift: Offset::ZERO,
            carried: None,
            is_present: true,
        }
    }

    /// The same of a body that joins the group: until now it was drawn at `visible`, so far behind prediction time.
    #[must_use]
    pub(super) fn joining(mut self, now: Timestamp, visible: G::Pose, behind: Duration) -> Self {
        self.presenter = self.presenter.map(|presenter| presenter.drawn_at(visible));
        self.draw = DrawTime::behind(now, behind);
        self
    }

    pub(super) fn take_role(&mut self, role: Role) {
        self.role = role;
        self.draw.aim(if role == Role::Leaving { Aim::Past } else { Aim::Present });
    }

    /// Keeps the presenter to the limits of a newer state.
    pub(super) fn limit(&mut self, corrections: &Corrections<G>, body: &G::Body) {
        let limits = corrections.limits(body);
        if limits != self.limits {
            self.limits = limits;
            if let Some(presenter) = &mut self.presenter {
                presenter.limit(corrections.of(body));
            }
        }
    }

    /// Draws the body at `pose`.
    pub(super) fn draw(&mut self, corrections: &Corrections<G>, now: Timestamp, pose: Option<G::Pose>) {
        let Some(pose) = pose else {
            (self.presenter, self.carried) = (None, None);
            return;
        };
        let body = &self.who.body;
        let presenter =
            self.presenter.get_or_insert_with(|| Presenter::at_rest(corrections.of(body), now, pose));
        if self.draw.is_present() {
            presenter.frame(now, pose);
        } else {
            // Snapshots may not know the way that it has gone.
            let outcome = presenter.slew(now, pose);
            self.jumps += u64::from(matches!(outcome, Outcome::Snapped(_)));
        }
        self.displace();
    }

    /// Keeps a diagnosis.
    pub(super) fn note(&mut self, diagnosis: Diagnosis<G>) {
        if self.recent.len() >= Reconciler::<G>::RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(diagnosis);
    }

    /// A correction by the state of `tick` that was put down to lost input was one of `cause`.
    pub(super) fn revise(&mut self, tick: Tick, cause: Cause) {
        let told = self.recent.iter_mut().find(|diagnosis| diagnosis.server_tick == tick);
        if let Some(told) = told.filter(|told| told.cause == Some(Cause::LostInput)) {
            told.cause = Some(cause);
            let (distance, angle) = (told.correction_distance, told.correction_angle);
            self.stats.revise((Cause::LostInput, cause), distance, angle);
        }
    }

    /// Whether it leaves the group, and has come to the moment at which bodies outside are drawn: so far behind prediction
    /// time.
    pub(super) fn has_left(&self, render: Option<Duration>) -> bool {
        self.role == Role::Leaving && self.draw.has_left(render)
    }

    /// The id of the body.
    pub fn id(&self) -> BodyId {
        self.who.id
    }

    /// The source of its input.
    pub fn driver(&self) -> Driver {
        self.who.driver
    }

    /// The body that emitted it.
    pub fn parent(&self) -> Option<BodyId> {
        self.who.parent
    }

    /// Its part in the prediction.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The body at prediction time: read it for gameplay.
    pub fn predicted(&self) -> &G::Body {
        // spec: RECON-03
        &self.who.body
    }

    /// The visible pose: the predicted one at its draw time, plus what is left of a correction, and where its carrier is drawn
    /// if it has one. `None` for a body that is not drawn.
    pub fn visible(&self) -> Option<&G::Pose> {
        self.carried.as_ref().or_else(|| self.base())
    }

    /// The same without the way of its carrier.
    pub(crate) fn base(&self) -> Option<&G::Pose> {
        self.presenter.as_ref().map(Presenter::visible)
    }

    /// Draws it displaced by the way of its carrier.
    pub(crate) fn carry(&mut self, carrier: Option<BodyId>, shift: &Offset) {
        (self.carrier, self.shift) = (carrier, *shift);
        self.displace();
    }

    fn displace(&mut self) {
        let shift = self.shift;
        self.carried = self.base().filter(|_| shift != Offset::ZERO).map(|base| base.displaced(&shift));
    }

    /// The body of the prediction that carries it: see [`Game::carries`].
    pub fn carrier(&self) -> Option<BodyId> {
        self.carrier
    }

    /// How far behind prediction time it is drawn. Zero for bodies that the player owns; a body that joins the group, or
    /// leaves it, is on the way between render time and prediction time.
    pub fn lag(&self) -> Duration {
        self.draw.lag()
    }

    /// The presentation inside; `None` for a body that is not drawn.
    pub fn presenter(&self) -> Option<&Presenter<G::Pose>> {
        self.presenter.as_ref()
    }

    /// The latest diagnoses of a body that the player owns, oldest first, at most [`super::Reconciler::RECENT`]. For the
    /// bodies of the group see [`super::Reconciler::recent_of_group`].
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = &Diagnosis<G>> + ExactSizeIterator {
        // spec: DIAG-02
        self.recent.iter()
    }

    /// How many corrections of each cause there have been, and what became of them.
    pub fn stats(&self) -> &CorrectionStats {
        &self.stats
    }

    /// States that were accepted since it joined the prediction.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Those among them that were not, to the bit, what had been predicted of their tick.
    pub fn mispredicted(&self) -> u64 {
        self.mispredicted
    }

    /// Times that it was drawn elsewhere at once while its draw time was on the way, or when it joined the group: snapshots
    /// that were late or lost had the way between, and it was too far to be eased.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }
}
