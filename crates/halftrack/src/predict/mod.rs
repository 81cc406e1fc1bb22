//! Prediction of the player's bodies, and of their group, on the server's own cadence. Knows ticks and states, never packets.
//!
//! ```text
//! server time   |--- tick 41 ---|--- tick 42 ---|--- tick 43 ---|
//! input             A      | B        B         | B    |  C
//!                                               ^ baseline (state after 42)   ^ now = server time + lead
//! ```
//!
//! The predicted bodies are the baseline plus every pending tick. Between two states only the newest tick, the *open* one,
//! is evaluated anew on each call, from the bodies at its beginning: the same calls in the same order as a replay makes,
//! hence the same bits. [`Predictor`] keeps time and the player's input; `scene` moves the bodies.

mod authority;
mod config;
mod saved;
mod scene;
mod verdicts;

use core::time::Duration;
use std::sync::Arc;

pub use authority::{Actor, Authority, Rebuilt, Resync, Role, Status};
pub use config::PredictConfig;
pub(crate) use saved::SavedPrediction;
pub(crate) use scene::{Present, Scene};
use verdicts::Verdicts;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::{Cadence, SubTick};
use crate::cause::{Cause, Causes};
use crate::clock::{PredictionClock, Rate};
use crate::error::{ConfigError, Ignored};
use crate::game::Game;
use crate::id::BodyId;
use crate::input::{ClosedTick, Completeness, Hold, Inputs, Origin, Pending, PendingTick, TickInput, Upto};
use crate::model::Input;
use crate::stats::PredictStats;
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp, whole_micros};

/// The newest tick, still growing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "I: Input")]
pub(crate) struct OpenTick<I> {
    tick: Tick,
    input: TickInput<I>,
    origin: Origin,
    /// Whether it was sent as complete: nothing is added to it any more.
    seal: Seal,
}

/// A change of input that has not taken effect.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Scheduled<I> {
    at: SubTick,
    input: I,
    seal: Seal,
}

/// Whether a change to come can still be replaced by a newer wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Seal {
    Open,
    /// It is on its way to the server, which will not have it altered.
    Sent,
}

/// Predicts the bodies of a player, and those that are predicted together with them.
///
/// `update`, `set_input` and `accept` bring it to `now`, in any order and however often; getters tell what it
/// knows then. A `now` before an earlier one is taken as that and counted.
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
/// use halftrack::cart::{Cart, CartBody};
/// use halftrack::{Authority, Epoch, PredictConfig, Predictor, ServerTime, Tick, Timestamp};
///
/// let authority = Authority::new(Epoch::default(), Tick::new(9), CartBody::at(0.0));
/// let start = Timestamp::ZERO;
/// let server_time_plus_lead = ServerTime::from_micros(500_000);
/// let (rules, config) = (Arc::new(Cart), PredictConfig::default());
/// let mut predictor = Predictor::new(rules, config, start, server_time_plus_lead, &authority)?;
///
/// predictor.set_input(start, 8);
/// predictor.update(start + Duration::from_millis(100));
/// assert!((predictor.predicted().x - 0.8).abs() < 0.01);
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive_where(Clone, Debug)]
pub struct Predictor<G: Game> {
    #[derive_where(skip(Debug))]
    rules: Arc<G>,
    cadence: Cadence,
    resync_error: Duration,
    window_ticks: u32,

    clock: PredictionClock,
    /// The latest `now` of any call.
    now: Timestamp,
    /// Prediction time that the body has been brought to.
    time: ServerTime,
    status: Status,

    baseline: Authority<G>,
    pending: Pending<G::Input>,
    open: OpenTick<G::Input>,
    scene: Scene<G>,
    /// Of the bodies of the baseline, when it was accepted.
    verdicts: Verdicts<G>,

    /// What the application asked for last.
    wanted: G::Input,
    /// The change to come inside the open tick. Without one, what is wanted takes effect at its end.
    scheduled: Option<Scheduled<G::Input>>,
    /// When an input last took effect.
    last_change: Option<ServerTime>,
    /// The first tick whose input is recorded: the first full one after the start or a resync.
    first_recorded: Tick,
    /// The newest input recorded before that, which the server may still hold.
    held: Option<(Tick, G::Input)>,
    /// Ticks up to here were predicted across a restart.
    resync_through: Option<Tick>,
    stats: PredictStats,
}

impl<G: Game> Predictor<G> {
    /// Starts at `now` from `authority`, with `time` the server's time now plus the lead.
    ///
    /// Input is recorded from the first full tick on; until then the server's substitute is predicted.
    ///
    /// # Errors
    /// When a field of `config` is out of its range, or the state is of a tick that no server reaches.
    pub fn new(
        rules: Arc<G>,
        config: PredictConfig,
        now: Timestamp,
        time: ServerTime,
        authority: &Authority<G>,
    ) -> Result<Self, ConfigError> {
        Self::counting(rules, config, (now, time), authority, G::Input::default())
    }

    /// The same of a player that wants `wanted`: its counters of presses hold from the start, as at the server, which knows
    /// them from before when a player comes back.
    pub(crate) fn counting(
        rules: Arc<G>,
        config: PredictConfig,
        (now, time): (Timestamp, ServerTime),
        authority: &Authority<G>,
        wanted: G::Input,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let released = Some(wanted.released()).filter(|released| *released != G::Input::default());
        if authority.tick > Tick::MAX_STATE {
            return Err(ConfigError::UnknownTick { tick: authority.tick });
        }
        let window_ticks = config.cadence.ticks_in(config.max_pending);
        let open = OpenTick {
            tick: authority.tick.next(),
            input: TickInput::steady(G::Input::default()),
            origin: Origin::Substituted,
            seal: Seal::Open,
        };
        let scene = Scene::new(Arc::clone(&rules), config.cadence, authority);
        let mut predictor = Self {
            rules,
            cadence: config.cadence,
            resync_error: config.resync_error,
            window_ticks,
            clock: PredictionClock::new(now, time),
            now,
            time,
            status: Status::Predicting,
            baseline: authority.clone(),
            pending: Pending::with_limit(window_ticks as usize + 1),
            open,
            scene,
            verdicts: Verdicts::default(),
            wanted: G::Input::default(),
            scheduled: None,
            last_change: None,
            first_recorded: authority.tick,
            held: released.map(|released| (authority.tick, released)),
            resync_through: None,
            stats: PredictStats::default(),
        };
        predictor.restart(time);
        Ok(predictor)
    }

    /// Brings the predicted body to `now`.
    pub fn update(&mut self, now: Timestamp) -> Status {
        // spec: CADENCE-02
        let now = self.clamp(now);
        self.run_to(self.clock.at(now));
        self.status
    }

    /// The player wants `input` from `now` on: at the next moment of the sub-tick grid that is free.
    pub fn set_input(&mut self, now: Timestamp, mut input: G::Input) {
        // spec: CADENCE-04
        self.update(now);
        input.settle();
        if input == self.wanted {
            return;
        }
        self.wanted = input;
        let sent = self.scheduled.is_some_and(|scheduled| scheduled.seal == Seal::Sent);
        if !sent {
            self.schedule(self.phase());
        }
    }

    /// Lets what is wanted take effect as soon as it can, from `phase` on.
    fn schedule(&mut self, phase: u32) {
        self.scheduled = None;
        if self.wanted != self.open.input.last() {
            let at = self.next_free(phase);
            self.scheduled = at.map(|at| Scheduled { at, input: self.wanted, seal: Seal::Open });
            self.stats.delayed_changes += u64::from(at != self.cadence.moment_from(phase));
        }
    }

    /// Replaces `into` by the recorded ticks that the server has not acknowledged, oldest first.
    ///
    /// With [`Upto::Open`] the open tick is among them, and the change that is just about to take effect: no newer wish
    /// replaces that change any more. With [`Upto::Complete`] the open tick is complete: nothing is added to it any more,
    /// and a newer wish takes effect at its end. An open tick that is not recorded is left out.
    pub fn inputs(&mut self, upto: Upto, into: &mut Vec<TickInput<G::Input>>) -> Inputs {
        into.clear();
        let closed = self.pending.iter().map(|(_, closed)| closed);
        into.extend(closed.filter(|closed| closed.origin == Origin::Recorded).map(|closed| closed.input));
        if upto == Upto::Closed || self.open.origin == Origin::Substituted {
            let newest = self.pending.newest_tick().unwrap_or_default();
            return Inputs { newest, completeness: Completeness::Closed };
        }
        let mut open = self.open.input;
        let at_once = self.cadence.moment_from(self.phase());
        let is_told = |scheduled: &Scheduled<_>| upto == Upto::Complete || Some(scheduled.at) == at_once;
        if let Some(scheduled) = self.scheduled.as_mut().filter(|scheduled| is_told(scheduled))
            && open.change(scheduled.at, scheduled.input).is_ok()
        {
            scheduled.seal = Seal::Sent;
        }
        into.push(open);
        if upto == Upto::Complete {
            self.open.seal = Seal::Sent;
            return Inputs { newest: self.open.tick, completeness: Completeness::Closed };
        }
        Inputs { newest: self.open.tick, completeness: Completeness::Open }
    }

    /// Runs the prediction clock at `rate` from `now` on.
    pub fn set_rate(&mut self, now: Timestamp, rate: Rate) {
        let now = self.clamp(now);
        self.clock.set_rate(now, rate);
    }

    /// Takes an authoritative state that arrived at `now`: the new baseline, on which everything pending is
    /// replayed. `target` is the server's time now plus the lead; it matters when prediction must restart.
    ///
    /// # Errors
    /// When the state is not newer than the baseline, or names a tick that cannot be: it is counted, and only
    /// time has moved on.
    pub fn accept(
        &mut self,
        now: Timestamp,
        target: ServerTime,
        authority: &Authority<G>,
    ) -> Result<Rebuilt<G>, Ignored> {
        // spec: CADENCE-01 (time up to now is accumulated first)
        self.update(now);
        self.refuse(authority)?;

        let before = *self.predicted();
        let resync = self.resync_needed(target, authority);
        self.verdicts.begin(&self.scene, self.baseline.tick, authority, resync);

        let previous = self.baseline.tick;
        self.baseline.clone_from(authority);
        match resync {
            Some(_) => {
                let interrupted = self.open.tick;
                self.restart(target);
                // The interrupted tick included: what was sent of it stays sent. So does what was sent before an earlier
                // restart, unless the server's time has slipped: then it plays nothing of that.
                let through = self.first_recorded.previous().max(Some(interrupted));
                let earlier = self.resync_through.filter(|_| resync != Some(Resync::NewEpoch));
                self.resync_through = earlier.max(through);
            }
            None => {
                self.pending.prune_through(authority.tick);
                self.replay();
            }
        }
        let resynced = self.resync_through.is_some_and(|through| previous < through);
        self.verdicts.end(&self.scene, &self.baseline, resynced.then_some(Cause::Resync));

        let own = self.verdicts.of(authority.own.id);
        let (expected, causes) = own.map_or((None, Causes::NONE), |own| (own.expected, own.causes));
        self.stats.accepted += 1;
        self.stats.resyncs += u64::from(resync.is_some());
        self.stats.mispredicted += u64::from(expected.is_some_and(|expected| expected != authority.own.body));
        Ok(Rebuilt {
            before,
            after: *self.predicted(),
            expected,
            causes,
            replayed_ticks: self.open.tick.since(authority.tick),
            resync,
        })
    }

    /// What had been predicted of a body of the baseline, and everything that may have corrected it; of a body that was
    /// emitted since, the causes of the body that emitted it.
    pub(crate) fn verdict(&self, id: BodyId, parent: Option<BodyId>) -> (Option<G::Body>, Causes) {
        let own = self.verdicts.of(id).map(|known| (known.expected, known.causes));
        own.unwrap_or_else(|| (None, self.verdicts.causes_of_newborn(&self.scene, id, parent)))
    }

    /// The bodies that are predicted.
    pub(crate) fn scene(&self) -> &Scene<G> {
        &self.scene
    }

    /// A body of the group at an earlier `time`, if that is after the baseline.
    pub(crate) fn member_at(&mut self, id: BodyId, time: ServerTime) -> Option<G::Body> {
        self.scene.at(id, time)
    }

    /// The body at the latest `now`: what gameplay reads.
    pub fn predicted(&self) -> &G::Body {
        // spec: RECON-03
        self.scene.predicted()
    }

    /// Prediction time at the latest `now`; where it stopped, when starved.
    pub fn time(&self) -> ServerTime {
        self.time
    }

    /// Whether it predicts.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The newest accepted state.
    pub fn baseline(&self) -> &Authority<G> {
        &self.baseline
    }

    /// The cadence.
    pub fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// The prediction clock.
    pub fn clock(&self) -> &PredictionClock {
        &self.clock
    }

    /// What it has counted.
    pub fn stats(&self) -> &PredictStats {
        &self.stats
    }

    /// The tick that is open now.
    pub fn open_tick(&self) -> Tick {
        self.open.tick
    }

    /// Every tick after the baseline, oldest first; the last is the open one.
    pub fn pending(&self) -> impl Iterator<Item = PendingTick<G::Input>> + '_ {
        let closed = self.pending.iter().map(|(tick, closed)| PendingTick {
            tick,
            input: closed.input,
            origin: closed.origin,
        });
        let open = PendingTick { tick: self.open.tick, input: self.open.input, origin: self.open.origin };
        let predicting = self.status == Status::Predicting;
        closed.chain(predicting.then_some(open))
    }

    /// Every step after the baseline, oldest first; the last one has grown up to now. Their spans add up to the
    /// prediction time that has passed since the baseline.
    pub fn pending_steps(&self) -> impl Iterator<Item = (Tick, Hold<G::Input>)> + '_ {
        let (cadence, open, phase) = (self.cadence, self.open.tick, self.phase());
        self.pending().flat_map(move |pending| {
            let end = if pending.tick == open { phase } else { cadence.micros() };
            pending.input.steps_until(cadence, end).map(move |step| (pending.tick, step))
        })
    }

    /// The newest moment that it was brought to.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    fn clamp(&mut self, now: Timestamp) -> Timestamp {
        self.stats.backwards += u64::from(now < self.now);
        self.now = self.now.max(now);
        self.now
    }

    /// Microseconds into the open tick.
    fn phase(&self) -> u32 {
        self.phase_at(self.time)
    }

    /// Microseconds from the open tick's start to `time`, at most the cadence.
    fn phase_at(&self, time: ServerTime) -> u32 {
        let into = time.saturating_since(self.cadence.start_of(self.open.tick));
        u32::try_from(whole_micros(into))
            .map_or(self.cadence.micros(), |into| into.min(self.cadence.micros()))
    }

    /// The first moment of the open tick, at or after `phase`, at which a change is free to be taken.
    fn next_free(&self, phase: u32) -> Option<SubTick> {
        let complete = self.open.seal == Seal::Sent || self.open.input.is_full();
        if self.open.origin == Origin::Substituted || complete {
            return None;
        }
        // A quarter of a tick between two changes: a stick that moves on every frame spreads its three over the
        // tick, and is then at most a quarter of a tick behind.
        let spacing = Duration::from_micros(u64::from(self.cadence.micros().div_ceil(4)));
        let paced = self.last_change.map_or(0, |change| self.phase_at(change + spacing));
        self.cadence.moment_from(phase.max(paced))
    }

    fn run_to(&mut self, target: ServerTime) {
        if self.status == Status::Starved || target <= self.time {
            return;
        }
        // What the server knows when this call begins: closed ticks are sent at once, and so is a change.
        let unchanged = self.open.input.changes().next().is_none() && self.open.seal == Seal::Open;
        let known = self.open.tick.number().saturating_sub(u32::from(unchanged));
        loop {
            let reached = self.phase_at(target);
            match self.scheduled {
                Some(change) if self.cadence.micros_of(change.at) < reached => self.take_change(change),
                _ if reached < self.cadence.micros() => break,
                _ => {
                    self.close_tick();
                    if !self.open_next(target, Tick::new(known)) {
                        return;
                    }
                }
            }
        }
        self.time = target;
        self.evaluate();
    }

    /// Ends the open step where the change is; its input goes on from there.
    fn take_change(&mut self, Scheduled { at, input, .. }: Scheduled<G::Input>) {
        self.scheduled = None;
        if self.open.input.change(at, input).is_ok() {
            self.last_change = Some(self.cadence.start_of(self.open.tick) + self.cadence.offset_of(at));
            // What was wished for after it was sent has waited for this.
            self.schedule(self.cadence.micros_of(at));
        }
    }

    /// Ends the open tick.
    fn close_tick(&mut self) {
        let OpenTick { input, origin, .. } = self.open;
        self.scene.close([&input]);
        self.pending.push(ClosedTick { input, origin });
    }

    /// Opens the tick after the one just closed, in a call that goes on to `target`; `known` is the newest tick
    /// whose input the server can know. Gives false when that is beyond the prediction window.
    fn open_next(&mut self, target: ServerTime, known: Tick) -> bool {
        let previous = self.open.input.last();
        let tick = self.open.tick.next();
        // spec: RECON-06
        let starved = tick.since(self.baseline.tick) > self.window_ticks;
        let origin =
            if starved || tick < self.first_recorded { Origin::Substituted } else { Origin::Recorded };
        let input = match origin {
            Origin::Substituted => self.substitute(tick),
            // The whole tick went by inside this call, so nothing of it was shown and none of it will arrive in
            // time: the server will have made it up, and so do we.
            Origin::Recorded if self.cadence.end_of(tick) <= target => {
                let age = self.cadence.span_of(tick.since(known));
                let input = self.rules.substitute(Some(self.wanted), age);
                self.stats.stalled_ticks += u64::from(input != self.wanted);
                input
            }
            Origin::Recorded => self.wanted,
        };
        let start = self.cadence.start_of(tick);
        if origin == Origin::Recorded && input != previous {
            self.last_change = Some(start);
        }
        self.scheduled = None;
        self.open = OpenTick { tick, input: TickInput::steady(input), origin, seal: Seal::Open };
        if starved {
            self.status = Status::Starved;
            self.stats.starved += 1;
            self.time = start;
            self.evaluate();
        }
        !starved
    }

    /// What stands in for the input of `tick`, which was not recorded.
    fn substitute(&self, tick: Tick) -> G::Input {
        let age = self.held.map_or(Duration::MAX, |(held, _)| self.cadence.span_of(tick.since(held)));
        self.rules.substitute(self.held.map(|(_, input)| input), age)
    }

    /// Brings the bodies from the beginning of the open tick to the present.
    fn evaluate(&mut self) {
        let phase = self.phase();
        self.scene.evaluate(&self.open.input, phase);
    }

    fn refuse(&mut self, authority: &Authority<G>) -> Result<(), Ignored> {
        // spec: STALE-02
        let tick = authority.tick;
        let (epoch, baseline) = (self.baseline.epoch, self.baseline.tick);
        let (ignored, counter) = match (authority.epoch, tick).cmp(&(epoch, baseline)) {
            core::cmp::Ordering::Less => (Ignored::Stale { tick, baseline }, &mut self.stats.stale),
            core::cmp::Ordering::Equal => (Ignored::Duplicate { tick }, &mut self.stats.duplicate),
            core::cmp::Ordering::Greater if tick > Tick::MAX_STATE => {
                (Ignored::UnknownTick { tick }, &mut self.stats.unknown_tick)
            }
            core::cmp::Ordering::Greater => return Ok(()),
        };
        *counter += 1;
        Err(ignored)
    }

    fn resync_needed(&self, target: ServerTime, authority: &Authority<G>) -> Option<Resync> {
        // spec: RECON-06
        if authority.epoch != self.baseline.epoch {
            Some(Resync::NewEpoch)
        } else if self.status == Status::Starved {
            Some(Resync::Silence)
        } else if authority.tick >= self.open.tick {
            Some(Resync::Overtaken)
        } else if target.abs_diff(self.time) > self.resync_error {
            Some(Resync::ClockError)
        } else {
            None
        }
    }

    /// Rebuilds everything after the baseline.
    fn replay(&mut self) {
        // spec: RECON-01, REPLAY-05
        self.scene.restart(&self.baseline);
        self.scene.close(self.pending.iter().map(|(_, tick)| &tick.input));
        self.evaluate();
    }

    /// Starts over from the baseline: the clock at `target`, and nothing pending but substitutes up to it.
    fn restart(&mut self, target: ServerTime) {
        let baseline = self.baseline.tick;
        // The state after a tick exists, so the server's clock has passed its end.
        let time = target.max(self.cadence.end_of(baseline));
        self.held = self.newest_recorded().or(self.held);
        self.first_recorded = self.cadence.first_tick_from(time);
        self.clock = PredictionClock::new(self.now, time);
        self.last_change = None;
        self.status = Status::Predicting;
        self.pending.restart(baseline.next());
        self.time = self.cadence.end_of(baseline);
        self.open.tick = baseline;
        self.open.input = TickInput::steady(self.wanted);
        self.scene.restart(&self.baseline);
        if self.open_next(time, baseline) {
            self.run_to(time);
            self.evaluate();
        }
    }

    /// The newest tick with the player's own input, and the input it ends with.
    fn newest_recorded(&self) -> Option<(Tick, G::Input)> {
        match self.open.origin {
            Origin::Recorded => Some((self.open.tick, self.open.input.last())),
            Origin::Substituted => {
                let newest = self.pending.newest().filter(|newest| newest.origin == Origin::Recorded);
                newest.and_then(|newest| Some((self.open.tick.previous()?, newest.input.last())))
            }
        }
    }
}
