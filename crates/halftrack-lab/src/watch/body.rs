//! One body of the player: the states that came of it, and its frames one after the other.

use std::time::Duration;

use derive_where::derive_where;
use halftrack::client::Client;
use halftrack::{
    BodyId, CorrectionConfig, Diagnosis, Epoch, Game, Member, Offset, Pose, Predictor, ServerTime, Tick,
    Timestamp,
};

use super::own::Claim;
use super::{Note, signed_ms};
use crate::check::Rule;

/// One body of the player.
#[derive_where(Debug)]
pub(super) struct BodyWatch<G: Game> {
    pub(super) id: BodyId,
    /// States and mispredictions that have been looked at.
    accepted: u64,
    mispredicted: u64,
    resyncs: u64,
    /// The tick of the newest of them.
    newest: Tick,
    /// When prediction last restarted.
    resync: Option<Timestamp>,
    frame: Option<Frame<G::Pose>>,
    /// Since when there has been an offset.
    offset_since: Option<Timestamp>,
    /// Where the body was first drawn.
    origin: Option<G::Pose>,
}

/// What was drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<P> {
    /// The correction config of the body as it was then.
    config: CorrectionConfig,
    local: Timestamp,
    pub(super) predicted: P,
    pub(super) visible: P,
    offset: Offset,
    deadline: Option<Timestamp>,
    accepted: u64,
    snapped: u64,
    server_time: Option<ServerTime>,
    epoch: Epoch,
}

impl<G: Game> BodyWatch<G> {
    /// The presenter's own allowance for a clock that runs fast.
    const SLACK: f64 = 1.25;

    /// Watches a body from its baseline on. States that it accepted before are not judged: the tick before the first of
    /// them is not known.
    pub(super) fn new(member: &Member<G>, predictor: &Predictor<G>) -> Self {
        Self {
            id: member.id(),
            accepted: member.accepted(),
            mispredicted: member.mispredicted(),
            resyncs: predictor.stats().resyncs,
            newest: predictor.baseline().tick,
            resync: None,
            frame: None,
            offset_since: None,
            origin: None,
        }
    }

    /// Whether the prediction is the one that is watched, as far as its counters tell.
    pub(super) fn is_of(&self, member: &Member<G>) -> bool {
        member.accepted() >= self.accepted
    }

    /// Something arrived: `claim` is called for what came of it. `lasting` is how long a restart shows.
    pub(super) fn states(
        &mut self,
        now: Timestamp,
        (member, predictor): (&Member<G>, &Predictor<G>),
        lasting: Duration,
        note: &mut Note<'_>,
        mut claim: impl FnMut(Claim),
    ) {
        let fresh = usize::try_from(member.accepted() - self.accepted).unwrap_or(usize::MAX);
        let mut wrong = member.mispredicted() - self.mispredicted;
        (self.accepted, self.mispredicted) = (member.accepted(), member.mispredicted());
        let resyncs = predictor.stats().resyncs;
        let recent = member.recent();
        let skipped = recent.len().saturating_sub(fresh);
        // So many at once that the first are not kept: one of these may have been the restart.
        if fresh > recent.len() && resyncs > self.resyncs {
            self.resync = Some(now);
        }
        self.resyncs = resyncs;
        for (left, diagnosis) in (0..fresh).rev().zip(recent.skip(skipped)) {
            // Several at once: the latest are taken to be the wrong ones.
            let mispredicted = wrong > left as u64;
            wrong -= u64::from(mispredicted);
            let after = core::mem::replace(&mut self.newest, diagnosis.server_tick);
            if diagnosis.resync.is_some() {
                self.resync = Some(now);
            }
            let resynced = self.resync.is_some_and(|at| now.saturating_since(at) <= lasting);
            if diagnosis.cause.is_some() || mispredicted {
                claim(self.claim(now, after, diagnosis, mispredicted, resynced, note));
            }
        }
    }

    fn claim(
        &self,
        now: Timestamp,
        after: Tick,
        diagnosis: &Diagnosis<G>,
        mispredicted: bool,
        resynced: bool,
        note: &mut Note<'_>,
    ) -> Claim {
        Claim {
            body: self.id,
            at: now,
            after,
            through: diagnosis.server_tick,
            cause: diagnosis.cause,
            outcome: diagnosis.outcome,
            distance: diagnosis.correction_distance,
            angle: diagnosis.correction_angle,
            at_s: note.at_s,
            mispredicted,
            resynced,
            measured: note.measuring,
        }
    }

    /// A frame was drawn at `local`. Returns it, and where the body was first drawn; nothing for a body that is not drawn.
    pub(super) fn frame(
        &mut self,
        local: Timestamp,
        client: &Client<G>,
        member: &Member<G>,
        note: &mut Note<'_>,
    ) -> Option<(Frame<G::Pose>, G::Pose)> {
        let before = self.frame.take();
        let drawn = Self::drawn(local, client, member)?;
        let finite = drawn.visible.offset_from(&drawn.predicted).is_finite();
        note.check(finite, Rule::Finite, || format!("{} is drawn at {:?}", self.id, drawn.visible));
        if let Some(before) = before.filter(|before| drawn.accepted >= before.accepted) {
            Self::compare(&before, &drawn, note);
        }
        self.time_offset(before.as_ref(), &drawn, note);
        self.frame = Some(drawn);
        let origin = *self.origin.get_or_insert(drawn.visible);
        Some((drawn, origin))
    }

    /// No frame is drawn of it.
    pub(super) fn hide(&mut self) {
        self.frame = None;
    }

    fn drawn(local: Timestamp, client: &Client<G>, member: &Member<G>) -> Option<Frame<G::Pose>> {
        let (predictor, presenter) = (client.reconciler()?.predictor(), member.presenter()?);
        Some(Frame {
            local,
            config: *presenter.config(),
            predicted: client.rules().pose(member.predicted())?,
            visible: *presenter.visible(),
            offset: presenter.offset(),
            deadline: presenter.deadline(),
            accepted: member.accepted(),
            snapped: member.stats().snapped,
            server_time: client.server_time(local),
            epoch: predictor.baseline().epoch,
        })
    }

    /// Two frames in a row.
    fn compare(before: &Frame<G::Pose>, drawn: &Frame<G::Pose>, note: &mut Note<'_>) {
        let config = &drawn.config;
        let span = drawn.local.saturating_since(before.local).as_secs_f64();
        let states = drawn.accepted - before.accepted;
        let snapped = drawn.snapped != before.snapped;
        if !snapped {
            let moved = drawn.visible.offset_from(&before.visible);
            let slack = 2.0 * (states + 1) as f64;
            let way =
                (config.top_speed * Self::SLACK + config.cap_speed) * span + slack * config.deadband_distance;
            let turn =
                (config.top_turn * Self::SLACK + config.cap_turn) * span + slack * config.deadband_angle;
            note.check(moved.distance() <= way && moved.angle() <= turn, Rule::NoJump, || {
                format!("moved by {:.4} m and {:.4} rad in {span:.4} s", moved.distance(), moved.angle())
            });
        }
        // Where prediction itself was pushed further than the body can go, the tail is a new one, and the screen stands.
        let pushed = drawn.predicted.offset_from(&before.predicted);
        let by_itself = pushed.distance() <= config.top_speed * Self::SLACK * span
            && pushed.angle() <= config.top_turn * Self::SLACK * span;
        if states == 0 && before.offset != Offset::ZERO && by_itself {
            let gone = before.offset.distance() - drawn.offset.distance();
            let turned = before.offset.angle() - drawn.offset.angle();
            let keeps = gone <= config.cap_speed * span + 1e-6 && turned <= config.cap_turn * span + 1e-6;
            note.check(keeps, Rule::CorrectionSpeed, || {
                format!("{gone:.4} m and {turned:.4} rad of offset went in {span:.4} s")
            });
            let over = before.deadline.is_none_or(|deadline| drawn.local < deadline)
                || drawn.offset == Offset::ZERO
                || drawn.deadline != before.deadline;
            note.check(over, Rule::CorrectionDeadline, || {
                format!("{:?} is left after {:?}", drawn.offset, before.deadline)
            });
            if note.measuring && span > 0.0 {
                note.tally.correction_speed_mps.add((gone / span).max(0.0));
            }
        }
        let times = before.server_time.zip(drawn.server_time);
        let backwards = drawn.epoch == before.epoch && times.is_some_and(|(before, now)| now < before);
        note.check(!backwards, Rule::NoRewind, || {
            format!("server time went from {:?} to {:?}", before.server_time, drawn.server_time)
        });
    }

    /// How long there is an offset.
    fn time_offset(&mut self, before: Option<&Frame<G::Pose>>, drawn: &Frame<G::Pose>, note: &mut Note<'_>) {
        if drawn.offset != Offset::ZERO {
            self.offset_since = self.offset_since.or(Some(drawn.local));
        } else if let Some(since) = self.offset_since.take()
            && note.measuring
            && before.is_some_and(|before| before.snapped == drawn.snapped)
        {
            note.tally.offset_ms_to_converge.add(signed_ms(since.as_micros(), drawn.local.as_micros()));
        }
    }
}
