//! When ticks are due: the server's own time, exact whatever the caller's elapsed time is, and what a stall does to it.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};

/// The clock that ticks are simulated by.
#[derive(Clone, Copy, Debug)]
pub(super) struct TickClock {
    cadence: Cadence,
    max_catch_up: Duration,
    /// The server's time was `origin_time` at `origin`.
    origin: Timestamp,
    origin_time: ServerTime,
    /// The latest `now` of any call.
    now: Timestamp,
    newest: Tick,
    epoch: Epoch,
    slips: u64,
    backwards: u64,
}

impl TickClock {
    /// At `now`, tick `newest` has just ended.
    pub(super) fn new(cadence: Cadence, max_catch_up: Duration, now: Timestamp, newest: Tick) -> Self {
        Self {
            cadence,
            max_catch_up,
            origin: now,
            origin_time: cadence.end_of(newest),
            now,
            newest,
            epoch: Epoch::default(),
            slips: 0,
            backwards: 0,
        }
    }

    /// `now`, or the latest there has been, if that is later.
    pub(super) fn clamp(&mut self, now: Timestamp) -> Timestamp {
        self.backwards += u64::from(now < self.now);
        self.now = self.now.max(now);
        self.now
    }

    /// The latest `now` of any call.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The server's time at `now`.
    pub(super) fn time(&self, now: Timestamp) -> ServerTime {
        self.origin_time + now.saturating_since(self.origin)
    }

    /// Whether the server is further behind at `now` than is caught up with: its time is about to slip.
    pub(super) fn slips_at(&self, now: Timestamp) -> bool {
        let behind = self.time(now).saturating_since(self.cadence.end_of(self.newest));
        behind > self.max_catch_up + self.cadence.interval()
    }

    /// How many ticks are due at `now`. After a stall that is too long to be caught up with, time slips: one is, and a
    /// new epoch begins.
    pub(super) fn due(&mut self, now: Timestamp) -> u32 {
        // spec: SERVER-06, SERVER-07
        let behind = self.time(now).saturating_since(self.cadence.end_of(self.newest));
        if self.slips_at(now) {
            self.slips += 1;
            self.epoch = Epoch::new(self.epoch.number().saturating_add(1));
            (self.origin, self.origin_time) = (now, self.cadence.end_of(self.newest.next()));
            return 1;
        }
        self.cadence.ticks_in(behind)
    }

    /// At `now`, tick `newest` has just ended, so many epochs later.
    pub(super) fn go_on(&mut self, now: Timestamp, newest: Tick, epochs: u32) {
        (self.origin, self.origin_time, self.newest) = (now, self.cadence.end_of(newest), newest);
        self.epoch = Epoch::new(self.epoch.number().saturating_add(epochs));
    }

    /// The next tick has been simulated.
    pub(super) fn simulated(&mut self) {
        self.newest = self.newest.next();
    }

    /// Whether more than one tick is due at `now`: the server, not the network, is behind.
    pub(super) fn is_behind(&self, now: Timestamp) -> bool {
        self.time(now) >= self.cadence.end_of(self.newest.next().next())
    }

    /// When the next tick is due.
    pub(super) fn next_due(&self) -> Timestamp {
        self.origin + self.cadence.end_of(self.newest.next()).saturating_since(self.origin_time)
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) fn slips(&self) -> u64 {
        self.slips
    }

    pub(super) fn backwards(&self) -> u64 {
        self.backwards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock() -> TickClock {
        TickClock::new(Cadence::default(), Duration::from_secs(2), Timestamp::ZERO, Tick::new(9))
    }

    fn run(clock: &mut TickClock, now: Timestamp) -> u32 {
        let due = clock.due(now);
        (0..due).for_each(|_| clock.simulated());
        due
    }

    #[test]
    fn server_07_a_stall_is_caught_up_with_up_to_two_seconds_and_beyond_it_time_slips() {
        let just_inside = Timestamp::from_micros(2_050_000);
        let mut caught_up = clock();
        assert_eq!((run(&mut caught_up, just_inside), caught_up.epoch()), (41, Epoch::new(0)));
        assert_eq!(caught_up.next_due(), Timestamp::from_micros(2_100_000));

        let just_outside = just_inside + Duration::from_micros(1);
        let mut slipped = clock();
        assert!(!clock().slips_at(just_inside) && slipped.slips_at(just_outside));
        assert_eq!((run(&mut slipped, just_outside), slipped.epoch()), (1, Epoch::new(1)));
        assert_eq!(slipped.newest, Tick::new(10), "no tick is left out");
        assert!(!slipped.slips_at(just_outside), "once");
        assert_eq!(
            slipped.next_due(),
            just_outside + Duration::from_millis(50),
            "and the cadence goes on from here"
        );
        assert_eq!(slipped.slips(), 1);
    }

    proptest! {
        /// However the caller divides time, each tick comes once, when it is due.
        #[test]
        fn server_06_the_cadence_is_exact_whatever_the_elapsed_time(steps in prop::collection::vec(0u64..200_000, 1..200)) {
            let mut clock = clock();
            let (mut now, mut ticks) = (Timestamp::ZERO, 0);
            for step in steps {
                now = now + Duration::from_micros(step);
                ticks += u64::from(run(&mut clock, now));
                prop_assert_eq!(ticks, now.as_micros() / 50_000);
                prop_assert!(clock.next_due() > now);
                prop_assert_eq!(clock.next_due().as_micros() % 50_000, 0);
            }
        }
    }
}
