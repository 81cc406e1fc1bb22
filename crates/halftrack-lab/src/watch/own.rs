//! A player's own body: what is predicted and shown of it, and whether each correction happened for what it says.

use std::collections::VecDeque;
use std::time::Duration;

use derive_where::derive_where;
use halftrack::client::Client;
use halftrack::server::{Server, World};
use halftrack::{
    Cause, CorrectionConfig, Diagnosis, Epoch, Fate, Game, Offset, Outcome, PlayerId, Pose, PredictConfig,
    Reconciler, ServerTime, Tick, Timestamp,
};

use super::{Note, signed_ms};
use crate::check::Rule;
use crate::tally::Tally;
use crate::trace::TraceFrame;
use crate::truth::Recorded;

#[derive_where(Debug)]
pub(crate) struct OwnWatch<G: Game> {
    predict: PredictConfig,
    /// Bodies further apart than this cannot have touched, on either side. Metres.
    contact_reach: f64,
    /// Whether the word that input was late may be lost, as it may be on a bad network with datagrams.
    pub(crate) word_may_be_lost: bool,
    /// States and mispredictions that have been looked at.
    accepted: u64,
    mispredicted: u64,
    resyncs: u64,
    /// The tick of the newest of them.
    newest: Option<Tick>,
    /// When prediction last restarted.
    resync: Option<Timestamp>,
    claims: VecDeque<Claim>,
    frame: Option<Frame<G::Pose>>,
    /// Since when there has been an offset.
    offset_since: Option<Timestamp>,
    /// The lead of the last frame beyond the link's delay, milliseconds.
    pub(crate) excess_ms: Option<f64>,
    /// Where the body was first drawn.
    origin: Option<G::Pose>,
}

/// A correction, or a misprediction that needed none, until the server has had its last word.
#[derive(Clone, Copy, Debug)]
struct Claim {
    at: Timestamp,
    /// It is about the ticks after this one,
    after: Tick,
    /// up to this one.
    through: Tick,
    cause: Option<Cause>,
    outcome: Outcome,
    distance: f64,
    at_s: f64,
    mispredicted: bool,
    resynced: bool,
    measured: bool,
}

impl Claim {
    fn count(&self, tally: &mut Tally) {
        let Some(cause) = self.cause.filter(|_| self.measured) else { return };
        tally.corrections += 1;
        tally.count_cause(cause);
        let cut = matches!(cause, Cause::Respawn | Cause::Teleport | Cause::Resync);
        tally.snaps += u64::from(matches!(self.outcome, Outcome::Snapped(_)) && !cut);
    }
}

/// What was drawn.
#[derive(Clone, Copy, Debug)]
struct Frame<P> {
    /// The correction config of the body as it was then.
    config: CorrectionConfig,
    local: Timestamp,
    predicted: P,
    visible: P,
    offset: Offset,
    deadline: Option<Timestamp>,
    accepted: u64,
    snapped: u64,
    server_time: Option<ServerTime>,
    epoch: Epoch,
}

impl<G: Game> OwnWatch<G> {
    /// The presenter's own allowance for a clock that runs fast.
    const SLACK: f64 = 1.25;

    pub(crate) fn new(predict: PredictConfig, contact_reach: f64) -> Self {
        Self {
            predict,
            contact_reach,
            word_may_be_lost: false,
            accepted: 0,
            mispredicted: 0,
            resyncs: 0,
            newest: None,
            resync: None,
            claims: VecDeque::new(),
            frame: None,
            offset_since: None,
            excess_ms: None,
            origin: None,
        }
    }

    /// Watches a reconciler from its baseline on. States that it accepted before are not judged: the tick before the first
    /// of them is not known.
    fn begin(&mut self, reconciler: &Reconciler<G>) {
        let stats = reconciler.predictor().stats();
        (self.accepted, self.mispredicted, self.resyncs) =
            (stats.accepted, stats.mispredicted, stats.resyncs);
        self.newest = Some(reconciler.predictor().baseline().tick);
        self.claims.clear();
        (self.frame, self.offset_since, self.resync) = (None, None, None);
    }

    /// The session begins anew: what was claimed of the player that was is for nobody to judge.
    pub(crate) fn restarted(&mut self) {
        self.newest = None;
        self.claims.clear();
        (self.frame, self.offset_since, self.resync, self.excess_ms) = (None, None, None, None);
    }

    /// Something arrived: what came of it.
    pub(crate) fn states(&mut self, now: Timestamp, client: &Client<G>, note: &mut Note<'_>) {
        let Some(reconciler) = client.reconciler() else {
            self.newest = None;
            return;
        };
        let stats = reconciler.predictor().stats();
        if self.newest.is_none() || stats.accepted < self.accepted {
            self.begin(reconciler);
        }
        let fresh = usize::try_from(stats.accepted - self.accepted).unwrap_or(usize::MAX);
        let mut wrong = stats.mispredicted - self.mispredicted;
        (self.accepted, self.mispredicted) = (stats.accepted, stats.mispredicted);
        let recent = reconciler.recent();
        let skipped = recent.len().saturating_sub(fresh);
        // So many at once that the first are not kept: one of these may have been the restart.
        if fresh > recent.len() && stats.resyncs > self.resyncs {
            self.resync = Some(now);
        }
        self.resyncs = stats.resyncs;
        for (left, diagnosis) in (0..fresh).rev().zip(recent.skip(skipped)) {
            // Several at once: the latest are taken to be the wrong ones.
            let mispredicted = wrong > left as u64;
            wrong -= u64::from(mispredicted);
            self.state(now, diagnosis, mispredicted, note);
        }
    }

    /// A state came at `now`.
    fn state(&mut self, now: Timestamp, diagnosis: &Diagnosis<G>, mispredicted: bool, note: &mut Note<'_>) {
        let through = diagnosis.server_tick;
        let Some(after) = self.newest.replace(through) else { return };
        if diagnosis.resync.is_some() {
            self.resync = Some(now);
        }
        if diagnosis.cause.is_none() && !mispredicted {
            return;
        }
        let lasting = self.predict.max_pending * 2;
        self.claims.push_back(Claim {
            at: now,
            after,
            through,
            cause: diagnosis.cause,
            outcome: diagnosis.outcome,
            distance: diagnosis.correction_distance,
            at_s: note.at_s,
            mispredicted,
            resynced: self.resync.is_some_and(|at| now.saturating_since(at) <= lasting),
            measured: note.measuring,
        });
        let moved = !matches!(diagnosis.cause, None | Some(Cause::Respawn | Cause::Teleport));
        if moved && note.measuring {
            note.tally.correction_m.add(diagnosis.correction_distance);
            note.tally.correction_deg.add(diagnosis.correction_angle.to_degrees());
            if diagnosis.cause == Some(Cause::Collision) {
                note.tally.contact_correction_m.add(diagnosis.correction_distance);
            }
        }
    }

    /// The next claim that the server has had its last word on by `now`.
    fn ripe(&mut self, now: Timestamp, client: &Client<G>) -> Option<Claim> {
        // Late enough for the last word on held input, early enough for both sides to remember.
        let wait = Duration::from_millis(900).min(self.predict.cadence.span_of(48));
        self.claims.front().filter(|claim| now >= claim.at + wait)?;
        let mut claim = self.claims.pop_front()?;
        let mut recent = client.reconciler().into_iter().flat_map(Reconciler::recent);
        let last_word = recent.find(|told| told.server_tick == claim.through);
        claim.cause = last_word.map_or(claim.cause, |told| told.cause);
        Some(claim)
    }

    /// Counts what has become final by `now`, and holds each cause against the server's own record.
    pub(crate) fn judge<W: World<Game = G>>(
        &mut self,
        now: Timestamp,
        client: &Client<G>,
        server: &Server<Recorded<W>>,
        note: &mut Note<'_>,
    ) {
        while let Some(claim) = self.ripe(now, client)
            && let Some(player) = client.player()
        {
            self.judge_one(player, &claim, server, note);
        }
    }

    /// Counts what has become final by `now`, on the client's word.
    pub(crate) fn believe(&mut self, now: Timestamp, client: &Client<G>, tally: &mut Tally) {
        while let Some(claim) = self.ripe(now, client) {
            claim.count(tally);
        }
    }

    fn judge_one<W: World<Game = G>>(
        &self,
        player: PlayerId,
        claim: &Claim,
        server: &Server<Recorded<W>>,
        note: &mut Note<'_>,
    ) {
        let ticks = claim.after.number() + 1..=claim.through.number();
        let fates: Vec<_> = ticks.filter_map(|tick| server.fate(player, Tick::new(tick))).collect();
        let truth = server.world().truth();
        let world = truth.causes(player, claim.after, claim.through);
        let had = |wanted: &[Fate]| fates.iter().any(|fate| wanted.contains(fate));
        if claim.measured {
            let by_input = world.is_empty() && had(&[Fate::Held, Fate::Late, Fate::Lost]) && !claim.resynced;
            note.tally.mispredicted_ticks += u64::from(claim.mispredicted && by_input);
        }
        claim.count(note.tally);
        let Some(cause) = claim.cause else { return };
        if claim.measured
            && let Some(trace) = &mut note.trace
        {
            trace.corrections.push((claim.at_s, claim.distance, cause));
        }
        let lookback = Tick::new(claim.after.number().saturating_sub(8));
        // A state that was under way for so long that nobody remembers is for nobody to judge.
        let forgotten = fates.len() < claim.through.since(claim.after) as usize;
        let long_ago = !truth.remembers(player, claim.after.next());
        let holds = match cause {
            Cause::Resync => claim.resynced,
            Cause::LateInput => had(&[Fate::Late]) || forgotten,
            Cause::LostInput => {
                had(&[Fate::Held, Fate::Lost]) || forgotten || (self.word_may_be_lost && had(&[Fate::Late]))
            }
            Cause::Collision => {
                let nearest = || truth.nearest(player, lookback, claim.through);
                world.contains(cause) || long_ago || nearest() <= self.contact_reach
            }
            Cause::Teleport | Cause::Respawn | Cause::Death | Cause::Params => {
                world.contains(cause) || long_ago
            }
            _ => false,
        };
        note.check(holds, Rule::TrueCause, || {
            format!(
                "a correction of ticks {} to {} is put down to {cause}; the server did {world:?} to it and has {fates:?}",
                claim.after.next(),
                claim.through,
            )
        });
    }

    /// A frame was drawn at `local`, when the server's clock showed `time`; `way_us` is the link's mean delay.
    pub(crate) fn frame(
        &mut self,
        (local, time, newest): (Timestamp, ServerTime, Tick),
        way_us: u64,
        client: &Client<G>,
        note: &mut Note<'_>,
    ) {
        let Some(reconciler) = client.reconciler() else {
            (self.frame, self.excess_ms) = (None, None);
            return;
        };
        let (predictor, presenter) = (reconciler.predictor(), reconciler.presenter());
        let baseline = predictor.baseline();
        let drawn = Frame {
            local,
            config: *presenter.config(),
            predicted: client.rules().pose(predictor.predicted()),
            visible: *reconciler.visible(),
            offset: presenter.offset(),
            deadline: presenter.deadline(),
            accepted: predictor.stats().accepted,
            snapped: reconciler.stats().snapped,
            server_time: client.server_time(local),
            epoch: baseline.epoch,
        };
        let pending = predictor.open_tick().since(baseline.tick);
        let window = self.predict.cadence.ticks_in(self.predict.max_pending) + 1;
        note.check(pending <= window, Rule::Bounds, || format!("{pending} ticks are pending"));
        let stats = client.stats();
        note.check(stats.events_dropped == 0 && stats.backwards == 0, Rule::Bounds, || format!("{stats:?}"));
        let finite = drawn.visible.offset_from(&drawn.predicted).is_finite();
        note.check(finite, Rule::Finite, || format!("drawn at {:?}", drawn.visible));
        note.check(baseline.tick <= newest, Rule::NothingFromTheFuture, || {
            format!("a state of tick {}, when the newest is {newest}", baseline.tick)
        });
        if let Some(before) = self.frame.filter(|before| drawn.accepted >= before.accepted) {
            self.compare(&before, &drawn, note);
        }
        self.time_offset(&drawn, note);
        self.frame = Some(drawn);
        let lead = signed_ms(time.as_micros(), predictor.clock().at(local).as_micros());
        let excess = lead - way_us as f64 / 1e3;
        self.excess_ms = Some(excess);
        if note.measuring {
            note.tally.lead_ms.add(lead);
            note.tally.excess_lead_ms.add(excess);
            note.tally.pending_ticks.add(f64::from(pending));
            let origin = *self.origin.get_or_insert(drawn.visible);
            if let Some(trace) = &mut note.trace {
                let place = |pose: &G::Pose| {
                    let [x, y, _] = pose.offset_from(&origin).position;
                    [x, y]
                };
                trace.frames.push(TraceFrame {
                    at_s: note.at_s,
                    predicted: place(&drawn.predicted),
                    visible: place(&drawn.visible),
                    authoritative: place(&client.rules().pose(&baseline.body)),
                    lead_ms: lead,
                    ..TraceFrame::default()
                });
            }
        }
    }

    /// Two frames in a row.
    fn compare(&self, before: &Frame<G::Pose>, drawn: &Frame<G::Pose>, note: &mut Note<'_>) {
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
    fn time_offset(&mut self, drawn: &Frame<G::Pose>, note: &mut Note<'_>) {
        if drawn.offset != Offset::ZERO {
            self.offset_since = self.offset_since.or(Some(drawn.local));
        } else if let Some(since) = self.offset_since.take()
            && note.measuring
            && self.frame.is_some_and(|before| before.snapped == drawn.snapped)
        {
            note.tally.offset_ms_to_converge.add(signed_ms(since.as_micros(), drawn.local.as_micros()));
        }
    }
}
