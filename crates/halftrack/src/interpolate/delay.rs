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

use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::clock::{LeastCost, PredictionClock, Rate, Steering, Urgency, signed_micros};
use crate::error::{ConfigError, count_within, time_within};
use crate::tick::Tick;
use crate::time::{ServerTime, Timestamp, signed_difference};

/// What a [`RenderClock`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayConfig {
    /// Ticks from one snapshot to the next. Default 1: the server tells of every tick. From 1 to 16; less than the
    /// server's own makes players go on by guess in every interval, more draws them later than need be.
    pub snapshot_every: u32,
    /// What a snapshot that comes too late costs, as a time: the delay grows by at most this to save every one from it.
    /// Default 360 ms: with less than half of that, jitter of some 60 ms and more is not worth waiting for, and most of what is drawn
    /// is a guess. From 10 ms to 1 s, at which one bad snapshot in twenty is felt as lag.
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
            late_cost: Duration::from_millis(360),
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RenderClock {
    config: DelayConfig,
    cadence: Cadence,
    /// Local arrival less the end of the tick, of the snapshots that came.
    needed: LeastCost,
    late: Urgency,
    steering: Steering,
    /// Where drawing would be if everything had arrived.
    clock: Option<PredictionClock>,
    /// No later moment is drawn: the end of the newest tick known, and the time that may be guessed beyond it.
    limit: Option<ServerTime>,
    last_frame: Option<Timestamp>,
    /// What is drawn: never before what was.
    shown: Option<ServerTime>,
    steps: u64,
}

impl RenderClock {
    /// Whether a loaded clock can have been saved by one that was built like `fresh`.
    pub(crate) fn is_sound(&self, fresh: &Self) -> bool {
        let same = self.config == fresh.config && self.cadence == fresh.cadence;
        same && self.needed.is_sound(&fresh.needed)
            && self.clock.as_ref().is_none_or(PredictionClock::is_sound)
    }
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
            limit: None,
            last_frame: None,
            shown: None,
            steps: 0,
        })
    }

    /// A snapshot of `tick` arrived at `now`, and was accepted.
    pub fn arrived(&mut self, now: Timestamp, tick: Tick) {
        // spec: REMOTE-02
        let end = self.cadence.end_of(tick);
        self.limit = self.limit.max(Some(end + self.guessed_beyond(now, end)));
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

    /// How long after `end` may be guessed, when the snapshot of the tick that ended then arrives at `now`.
    ///
    /// One that comes after all of that time has passed shows nothing but itself. The picture stands already, and the
    /// server may have stood as long: its time slips after a stall, and a guess would lie in its future.
    fn guessed_beyond(&self, now: Timestamp, end: ServerTime) -> Duration {
        // spec: REMOTE-04
        let all = self.config.max_extrapolate;
        let passed = self.clock.map_or(Duration::ZERO, |clock| clock.at(now).saturating_since(end));
        if passed > all { Duration::ZERO } else { all }
    }

    /// Brings the clock to `now`. Gives the moment to draw; `None` before any snapshot.
    pub fn frame(&mut self, now: Timestamp) -> Option<ServerTime> {
        let now = self.last_frame.map_or(now, |last| last.max(now));
        let blind = self.last_frame.is_some_and(|last| now.saturating_since(last) > Self::HITCH);
        self.last_frame = Some(now);
        let limit = self.limit?;
        let behind = self.interval().saturating_add(self.needed.target()?);
        let target = ServerTime::from_micros(now.as_micros().saturating_add_signed(behind.saturating_neg()));
        // Whoever did not look ran on at the rate of the last frame: past where it should be, and past the server itself.
        if blind && self.clock.is_some_and(|clock| clock.at(now) > target) {
            self.clock = Some(PredictionClock::new(now, target));
            self.steering = Steering::Still;
        }
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

    /// The moment that a frame at `now` would draw.
    pub(crate) fn render_time_at(&self, now: Timestamp) -> Option<ServerTime> {
        let wanted = self.clock?.at(now).min(self.limit?);
        self.shown.max(Some(wanted))
    }

    /// The moment that is due to be drawn at `now`, were everything here in time: what is drawn waits behind it where
    /// nothing newer is known.
    pub fn due(&self, now: Timestamp) -> Option<ServerTime> {
        self.clock.map(|clock| clock.at(now))
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000;

    fn clock() -> RenderClock {
        RenderClock::new(DelayConfig::default(), Cadence::default()).unwrap()
    }

    /// Runs from one local time to another, both in milliseconds, at 100 frames per second; the snapshot of the tick that
    /// ended at server time `t` arrives at local time `t + late`. Gives the render time less local time after each frame.
    fn run(clock: &mut RenderClock, millis: core::ops::Range<u64>, late: u64) -> Vec<i64> {
        let mut behind = vec![];
        for now in millis {
            let at = Timestamp::from_micros(now * MS);
            if now >= late && (now - late).is_multiple_of(50) && now > late {
                clock.arrived(at, Tick::new(u32::try_from((now - late) / 50).unwrap() - 1));
            }
            if now.is_multiple_of(10)
                && let Some(shown) = clock.frame(at)
            {
                behind.push(signed_difference(shown.as_micros(), at.as_micros()));
            }
        }
        behind
    }

    #[test]
    fn a_hitch_while_catching_up_does_not_lead_into_the_future() {
        let mut clock = clock();
        run(&mut clock, 0..3_000, 100);
        // The way is shorter from here on: the clock runs fast.
        run(&mut clock, 3_000..3_400, 5);
        assert!(clock.rate().ppm() > 10_000, "{:?}", clock.rate());
        // Nothing is drawn for a second, while snapshots come.
        for now in (3_405..4_400).step_by(50) {
            let tick = u32::try_from((now - 5) / 50).unwrap() - 1;
            clock.arrived(Timestamp::from_micros(now * MS), Tick::new(tick));
        }
        let shown = clock.frame(Timestamp::from_micros(4_400 * MS)).unwrap();
        assert!(shown.as_micros() <= (4_400 - 50) * MS, "drawn at {shown:?}, when it is 4.4 s");
    }

    #[test]
    fn remote_04_a_snapshot_that_comes_after_the_picture_stands_shows_nothing_beyond_itself() {
        // Ticks end every 50 ms and arrive 30 ms later; drawing is 81 ms behind that. The snapshot of the tick that ends
        // at 3 s is held back, and with it all that follow.
        let drawn_after = |held_back_ms: u64| {
            let mut clock = clock();
            run(&mut clock, 0..3_000, 30);
            let arrival = 3_000 + held_back_ms;
            for now in (3_000..arrival).step_by(10) {
                clock.frame(Timestamp::from_micros(now * MS));
            }
            clock.arrived(Timestamp::from_micros(arrival * MS), Tick::new(59));
            let shown = (arrival..arrival + 400).step_by(10);
            shown.filter_map(|now| clock.frame(Timestamp::from_micros(now * MS))).max().unwrap()
        };
        // The tick before it ended at 2.95 s: a guess of 250 ms leads to 3.2 s.
        assert_eq!(
            drawn_after(331),
            ServerTime::from_micros(3_250 * MS),
            "3.0 s is 250 ms behind what is due"
        );
        assert_eq!(drawn_after(332), ServerTime::from_micros(3_200 * MS), "it is 251 ms behind");
        // As long as the server's own stall may have been: its time may be no further than that of the snapshot.
        assert_eq!(drawn_after(2_600), ServerTime::from_micros(3_200 * MS));
    }

    #[test]
    fn every_field_holds_just_inside_and_not_just_outside() {
        let ms = Duration::from_millis;
        let micro = Duration::from_micros(1);
        let of = |change: fn(&mut DelayConfig, Duration), value: Duration| {
            let mut config = DelayConfig::default();
            change(&mut config, value);
            RenderClock::new(config, Cadence::default()).map(|_| ())
        };
        type Change = fn(&mut DelayConfig, Duration);
        let fields: [(&str, Change, Duration, Duration); 3] = [
            ("delay.late_cost", |config, value| config.late_cost = value, ms(10), ms(1_000)),
            ("delay.guard", |config, value| config.guard = value, ms(0), ms(100)),
            ("delay.max_extrapolate", |config, value| config.max_extrapolate = value, ms(0), ms(1_000)),
        ];
        for (field, change, min, max) in fields {
            assert_eq!((of(change, min), of(change, max)), (Ok(()), Ok(())), "{field}");
            let refused = |got| Err(ConfigError::Span { field, got, min, max });
            assert_eq!(of(change, max + micro), refused(max + micro));
            if !min.is_zero() {
                assert_eq!(of(change, min - micro), refused(min - micro));
            }
        }
        for (every, good) in [(0, false), (1, true), (16, true), (17, false)] {
            let config = DelayConfig { snapshot_every: every, ..DelayConfig::default() };
            assert_eq!(RenderClock::new(config, Cadence::default()).is_ok(), good, "{every}");
        }
    }

    #[test]
    fn nothing_is_shown_before_a_snapshot() {
        let mut clock = clock();
        assert_eq!(clock.frame(Timestamp::from_micros(5)), None);
        assert_eq!((clock.render_time(), clock.delay(ServerTime::from_micros(9))), (None, None));
    }

    #[test]
    fn snapshots_that_come_less_often_are_waited_for() {
        let config = DelayConfig { snapshot_every: 3, ..DelayConfig::default() };
        let mut clock = RenderClock::new(config, Cadence::default()).unwrap();
        clock.arrived(Timestamp::from_micros(1_000 * MS), Tick::new(9));
        assert_eq!(clock.frame(Timestamp::from_micros(1_000 * MS)), Some(ServerTime::from_micros(349 * MS)));
    }

    #[test]
    fn the_window_is_a_time_at_every_cadence() {
        for (millis, window) in [(5, 256), (50, 240), (200, 60)] {
            let cadence = Cadence::new(Duration::from_millis(millis)).unwrap();
            let mut clock = RenderClock::new(DelayConfig::default(), cadence).unwrap();
            for number in 0..300 {
                clock.arrived(Timestamp::ZERO + cadence.span_of(number), Tick::new(number));
            }
            assert_eq!(clock.needed.len(), window, "at {millis} ms");
        }
    }

    /// A server that could not catch up lets its clock slip: its ticks come five seconds later from then on.
    #[test]
    fn remote_02_a_slipped_server_is_followed_with_and_without_being_told() {
        for told in [true, false] {
            let mut clock = clock();
            assert_eq!(run(&mut clock, 1_000..10_000, 30).last(), Some(&-81_000));
            run(&mut clock, 10_000..15_000, 9_999_999);
            if told {
                clock.reset();
            }
            let behind = run(&mut clock, 15_000..17_000, 5_030);
            let right = behind.iter().position(|behind| *behind == -5_081_000).unwrap();
            assert!(right <= 60, "told {told}: right after {right} frames");
            assert_eq!(behind.last(), Some(&-5_081_000));
        }
    }

    #[test]
    fn remote_02_drawing_is_set_forward_only_by_more_than_half_a_second() {
        let mut clock = clock();
        run(&mut clock, 1_000..10_000, 480);
        run(&mut clock, 10_000..20_000, 30);
        assert_eq!(clock.steps(), 0, "450 ms are caught up with");
        run(&mut clock, 20_000..30_000, 30 + 600);
        let behind = run(&mut clock, 30_000..32_000, 30);
        assert_eq!((clock.steps(), behind.last()), (1, Some(&-81_000)), "600 ms are not");
    }

    #[test]
    fn a_clock_that_has_jumped_is_forgotten() {
        let mut clock = clock();
        run(&mut clock, 1_000..10_000, 30);
        clock.reset();
        let now = Timestamp::from_micros(2_000 * MS);
        clock.arrived(now, Tick::new(199));
        assert_eq!(clock.frame(now), Some(ServerTime::from_micros(9_949 * MS)));
    }

    #[test]
    fn remote_02_a_hitch_of_the_clients_own_is_not_put_down_to_the_network() {
        let mut clock = clock();
        run(&mut clock, 1_000..10_000, 30);
        // For 400 ms nobody looks; then eight snapshots are there at once.
        let now = Timestamp::from_micros(10_400 * MS);
        for tick in 199..=206 {
            clock.arrived(now, Tick::new(tick));
        }
        assert_eq!(clock.frame(now), Some(ServerTime::from_micros(10_319 * MS)));
        assert!(run(&mut clock, 10_401..12_000, 30).iter().all(|behind| *behind == -81_000));
    }

    #[test]
    fn remote_02_the_delay_grows_faster_than_it_shrinks() {
        let frames = |from: u64, to: u64| {
            let mut clock = clock();
            run(&mut clock, 1_000..10_000, from);
            let target = -51_000 - i64::try_from(to * MS).unwrap();
            let behind = run(&mut clock, 10_000..30_000, to);
            behind.iter().position(|behind| (behind - target).abs() < 3_000).unwrap()
        };
        let (grown, shrunk) = (frames(30, 60), frames(60, 30));
        assert!(grown <= 60, "right after {grown} frames of 10 ms");
        assert!(shrunk > 100, "right after {shrunk} frames of 10 ms");
    }

    #[test]
    fn remote_02_it_runs_at_most_a_fifth_fast_or_slow() {
        let mut clock = clock();
        let mut shown = vec![];
        for (from, late) in [(1_000, 30), (6_000, 230), (11_000, 30)] {
            shown.extend(run(&mut clock, from..from + 5_000, late));
        }
        let fastest = shown.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        let slowest = shown.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
        assert_eq!((fastest, slowest), (2_000, -2_000), "of the ten milliseconds of a frame");
    }
}
