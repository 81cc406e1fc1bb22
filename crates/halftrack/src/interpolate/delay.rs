//! Which moment of server time other players are drawn at: as late a moment as lets most snapshots arrive first.
//!
//! A snapshot that arrives at local time `a` and tells of a tick that ended at server time `e` needed `a - e`: a number
//! on a scale that only drifts, since both clocks do, and in which the estimate of server time has no part. Just before
//! the next snapshot comes, the newest one is an interval old. So what is drawn is
//!
//! ```text
//! now - (one snapshot interval + the need with the least cost)
//! ```
//!
//! Only what has arrived is measured: a lost snapshot raises nothing. Knows arrivals and ticks, neither bodies nor
//! packets.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::clock::{LeastCost, PredictionClock, Rate, Steering, Urgency, signed_micros};
use crate::error::{ConfigError, count_within, time_within};
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp, signed_difference};

/// What a [`RenderClock`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayConfig {
    /// Ticks from one snapshot to the next. Default 1: the server tells of every tick. From 1 to 16; less than the
    /// server's own makes players go on by guess in every interval, more draws them later than need be.
    pub snapshot_every: u32,
    /// What a snapshot that comes too late costs, as a time: the delay grows by at most this to save every one from it.
    /// Default 150 ms, half of what late input costs: the rules bridge the moment until it comes, and are right unless
    /// the input changed. From 10 ms (jitter is seen) to 1 s (one bad minute is felt as lag).
    pub late_cost: Duration,
    /// What is added to the least delay that is enough. Default 1 ms: clocks and threads are not exact. At most 100 ms.
    pub guard: Duration,
    /// How far past the newest state a body may be drawn, by the rules with its last input held. Default 250 ms, as long
    /// as the server itself holds input that is missing: a wrong guess is then within what a correction eases. At most
    /// 1 s; zero draws nothing that was not told.
    pub max_extrapolate: Duration,
}

impl Default for DelayConfig {
    fn default() -> Self {
        Self {
            snapshot_every: 1,
            late_cost: Duration::from_millis(150),
            guard: Duration::from_millis(1),
            max_extrapolate: Duration::from_millis(250),
        }
    }
}

impl DelayConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let ms = Duration::from_millis;
        count_within("delay.snapshot_every", self.snapshot_every as usize, 1, 16)?;
        time_within("delay.late_cost", self.late_cost, ms(10), ms(1_000))?;
        time_within("delay.guard", self.guard, ms(0), ms(100))?;
        time_within("delay.max_extrapolate", self.max_extrapolate, ms(0), ms(1_000))
    }
}

/// The clock that other players are drawn by. It never runs backwards, and moves to where it should be by a bounded rate.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{Cadence, DelayConfig, RenderClock, ServerTime, Tick, Timestamp};
///
/// let mut clock = RenderClock::new(DelayConfig::default(), Cadence::default())?;
/// // Tick 9 ended at 500 ms of server time; it is 30 ms later that its snapshot is here.
/// let now = Timestamp::from_micros(7_000_000);
/// clock.arrived(now, Tick::new(9));
/// let server_now = ServerTime::from_micros(530_000);
/// assert_eq!(clock.frame(now), Some(ServerTime::from_micros(449_000)), "an interval and a guard before its end");
/// assert_eq!(clock.delay(server_now), Some(Duration::from_millis(81)));
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RenderClock {
    config: DelayConfig,
    cadence: Cadence,
    /// Local arrival less the end of the tick, of the snapshots that came.
    needed: LeastCost,
    late: Urgency,
    steering: Steering,
    /// Where drawing would be if everything had arrived.
    clock: Option<PredictionClock>,
    /// The end of the newest tick told of.
    newest: Option<ServerTime>,
    last_frame: Option<Timestamp>,
    /// What is drawn: never before what was.
    shown: Option<ServerTime>,
    steps: u64,
}

impl RenderClock {
    /// What is looked back on. Shorter does not see the rare late snapshot; longer remembers a bad minute for too long.
    const WINDOW: Duration = Duration::from_secs(12);
    /// An error above this is not worth catching up with.
    const STEP: i64 = 500_000;
    /// Who has drawn no frame for so long was not there when the snapshots came: they tell nothing of the network.
    const HITCH: Duration = Duration::from_millis(250);

    /// A clock that shows nothing until a first snapshot has come.
    ///
    /// # Errors
    /// When a field of `config` is out of its range.
    pub fn new(config: DelayConfig, cadence: Cadence) -> Result<Self, ConfigError> {
        config.check()?;
        let ticks = cadence.ticks_in(Self::WINDOW) / config.snapshot_every;
        let window = usize::try_from(ticks).unwrap_or(usize::MAX).clamp(16, 256);
        Ok(Self {
            config,
            cadence,
            needed: LeastCost::new(config.late_cost, config.guard, window),
            late: Urgency::Calm,
            steering: Steering::Still,
            clock: None,
            newest: None,
            last_frame: None,
            shown: None,
            steps: 0,
        })
    }

    /// A snapshot of `tick` arrived at `now`, and was accepted.
    pub fn arrived(&mut self, now: Timestamp, tick: Tick) {
        // spec: REMOTE-02
        let end = self.cadence.end_of(tick);
        self.newest = self.newest.max(Some(end));
        let blind = self.last_frame.is_some_and(|last| now.saturating_since(last) > Self::HITCH);
        if blind && self.needed.target().is_some() {
            return;
        }
        let needed = signed_difference(now.as_micros(), end.as_micros());
        let in_force = self.clock.map(|clock| {
            let behind = signed_difference(now.as_micros(), clock.at(now).as_micros());
            behind.saturating_sub(self.interval())
        });
        self.late = match in_force {
            Some(in_force) if needed > in_force => Urgency::Late,
            _ => Urgency::Calm,
        };
        self.needed.add(needed);
    }

    /// Brings the clock to `now`. Gives the moment to draw; `None` before any snapshot.
    pub fn frame(&mut self, now: Timestamp) -> Option<ServerTime> {
        let now = self.last_frame.map_or(now, |last| last.max(now));
        self.last_frame = Some(now);
        let limit = self.newest? + self.config.max_extrapolate;
        let behind = self.interval().saturating_add(self.needed.target()?);
        let target = ServerTime::from_micros(now.as_micros().saturating_add_signed(behind.saturating_neg()));
        self.steer(now, target, limit);
        // spec: REMOTE-04
        let wanted = self.clock?.at(now).min(limit);
        self.shown = self.shown.max(Some(wanted));
        self.shown
    }

    /// Moves the clock towards `target`. Where nobody moves on the screen, because nothing newer is known than `limit`,
    /// it may as well be right at once.
    fn steer(&mut self, now: Timestamp, target: ServerTime, limit: ServerTime) {
        let Some(clock) = &mut self.clock else {
            self.clock = Some(PredictionClock::new(now, target));
            return;
        };
        let time = clock.at(now);
        // Above zero: less delay than there should be.
        let error = signed_difference(time.as_micros(), target.as_micros());
        if time > limit || error < -Self::STEP {
            *clock = PredictionClock::new(now, target);
            self.steering = Steering::Still;
            self.steps += u64::from(error < -Self::STEP);
            return;
        }
        let slower = self.steering.rate(error, self.needed.spread(), self.late);
        clock.set_rate(now, Rate::from_ppm(-slower.ppm()));
    }

    /// The moment that was drawn last.
    pub fn render_time(&self) -> Option<ServerTime> {
        self.shown
    }

    /// How long ago what is drawn was, when the server's clock shows `server_now`: one snapshot interval, the way of a
    /// snapshot, and what its jitter is worth.
    pub fn delay(&self, server_now: ServerTime) -> Option<Duration> {
        self.shown.map(|shown| server_now.saturating_since(shown))
    }

    /// The rate that the clock runs at.
    pub fn rate(&self) -> Rate {
        self.clock.map_or(Rate::ZERO, |clock| clock.rate())
    }

    /// How often drawing was set forward by more than half a second.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Forgets what was measured: the caller's clock has jumped, or the server's has slipped. What was drawn stays drawn,
    /// until what comes is newer.
    pub fn reset(&mut self) {
        self.needed.clear();
        self.clock = None;
        self.last_frame = None;
        self.late = Urgency::Calm;
        self.steering = Steering::Still;
    }

    fn interval(&self) -> i64 {
        signed_micros(self.cadence.span_of(self.config.snapshot_every))
    }
}
