//! What a room has counted. Plain numbers, copied out when somebody asks.

use core::time::Duration;

use halftrack::InputStats;
use halftrack::server::ServerStats;
use halftrack::session::DisconnectReason;

use crate::door::Closed;

/// How many, and how long all in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams, or pieces of a stream as they came or went.
    pub count: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes as u64;
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// How often something took how long: eight classes for each doubling, so a quantile is within an eighth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    classes: [u64; Self::CLASSES],
    count: u64,
    sum: Duration,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { classes: [0; Self::CLASSES], count: 0, sum: Duration::ZERO, longest: Duration::ZERO }
    }
}

impl Histogram {
    /// Up to a minute, in microseconds; beyond it, all in the last.
    const CLASSES: usize = 24 * 8;

    pub(crate) fn record(&mut self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let class = Self::class_of(micros).min(Self::CLASSES - 1);
        if let Some(count) = self.classes.get_mut(class) {
            *count += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(span);
        self.longest = self.longest.max(span);
    }

    /// Counts those of another in.
    pub fn merge(&mut self, other: &Self) {
        self.classes.iter_mut().zip(other.classes).for_each(|(sum, more)| *sum += more);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.longest = self.longest.max(other.longest);
    }

    /// Below eight, a class for each; above, the three bits behind the highest say which of the eight.
    fn class_of(micros: u64) -> usize {
        let octave = micros.max(1).ilog2();
        let class =
            if octave < 3 { micros } else { u64::from(octave - 2) * 8 + ((micros >> (octave - 3)) & 7) };
        usize::try_from(class).unwrap_or(usize::MAX)
    }

    /// The longest that falls into a class.
    fn end_of(class: usize) -> u64 {
        let class = class as u64;
        if class < 8 { class } else { ((8 + class % 8 + 1) << (class / 8 - 1)) - 1 }
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// For each class its end, and how many were so long or shorter.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.classes.iter().enumerate().scan(0, |seen, (class, count)| {
            *seen += count;
            Some((Duration::from_micros(Self::end_of(class)), *seen))
        })
    }

    /// The longest of all.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// So long or shorter were `percent` of them; rounded up to the end of a class.
    pub fn percentile(&self, percent: u8) -> Duration {
        let wanted = (self.count * u64::from(percent.min(100))).div_ceil(100);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return Duration::from_micros(Self::end_of(class)).min(self.longest);
            }
        }
        self.longest
    }
}

/// What a room has counted since it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoomStats {
    /// What the state machine has counted: ticks, logins, input, refusals.
    pub server: ServerStats,
    /// What became of players' input, as of the newest tick.
    pub input: InputStats,
    /// Players there, those who may come back included.
    pub players: usize,
    /// Of these, players whose connection is gone and who may come back.
    pub away: usize,
    /// Connections there are.
    pub connections: usize,
    /// Connections there have been.
    pub connected: u64,
    /// How long a tick took from waking up to the last byte handed out: what arrived, simulation, snapshots.
    pub tick_time: Histogram,
    /// How long after it was due a tick began.
    pub tick_delay: Histogram,
    /// Ticks that were not done when the next was due.
    pub overruns: u64,
    /// Times the room woke up.
    pub wakes: u64,
    /// The reliable lane, from peers.
    pub stream_in: Traffic,
    /// The reliable lane, to peers.
    pub stream_out: Traffic,
    /// The sync lane, from peers.
    pub datagrams_in: Traffic,
    /// The sync lane, to peers.
    pub datagrams_out: Traffic,
    /// Datagrams from peers that came faster than they were taken; dropped, oldest first.
    pub dropped_in: u64,
    /// Datagrams to peers that were replaced by a newer one before the link took them.
    pub dropped_out: u64,
    /// Connections that the peer or the network ended.
    pub cut: u64,
    closed: Closed,
}

impl RoomStats {
    /// Counts what another room has counted in: sums over rooms, those that are gone included.
    pub fn merge(&mut self, other: &Self) {
        // All of them are named: one that is added is not forgotten.
        let Self {
            server,
            input,
            players,
            away,
            connections,
            connected,
            tick_time,
            tick_delay,
            overruns,
            wakes,
            stream_in,
            stream_out,
            datagrams_in,
            datagrams_out,
            dropped_in,
            dropped_out,
            cut,
            closed,
        } = other;
        self.server.merge(server);
        self.input = self.input.plus(input);
        self.players += players;
        self.away += away;
        self.connections += connections;
        self.connected += connected;
        self.tick_time.merge(tick_time);
        self.tick_delay.merge(tick_delay);
        self.overruns += overruns;
        self.wakes += wakes;
        self.stream_in.merge(stream_in);
        self.stream_out.merge(stream_out);
        self.datagrams_in.merge(datagrams_in);
        self.datagrams_out.merge(datagrams_out);
        self.dropped_in += dropped_in;
        self.dropped_out += dropped_out;
        self.cut += cut;
        self.closed.merge(closed);
    }

    /// What is left of a room that is gone: its counters, and nothing that is there.
    #[must_use]
    pub fn past(&self) -> Self {
        Self { players: 0, away: 0, connections: 0, ..*self }
    }

    /// Connections that were closed by this side, for that reason.
    pub fn closed(&self, reason: DisconnectReason) -> u64 {
        self.closed.count(reason)
    }

    pub(crate) fn count_closed(&mut self, reason: DisconnectReason) {
        self.closed.add(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_is_in_a_class_that_ends_within_an_eighth_of_it() {
        let mut last = 0;
        for micros in (0..5_000).chain([65_535, 65_536, 1_000_000, 59_999_999]) {
            let class = Histogram::class_of(micros);
            let end = Histogram::end_of(class);
            assert!(class >= last && end >= micros && end <= micros + micros / 8, "{micros}: {class}, {end}");
            last = class;
        }
        assert!(Histogram::class_of(60_000_000) < Histogram::CLASSES * 2);
    }

    #[test]
    fn percentiles_are_of_what_was_recorded() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(99), Duration::ZERO);
        for millis in 1..=100 {
            histogram.record(Duration::from_millis(millis));
        }
        let near = |percent, millis: u64| {
            let found = histogram.percentile(percent);
            let (least, most) = (Duration::from_millis(millis), Duration::from_millis(millis * 9 / 8));
            assert!(found >= least && found <= most, "{percent} %: {found:?}");
        };
        near(50, 50);
        near(99, 99);
        assert_eq!(histogram.percentile(100), Duration::from_millis(100));
        histogram.record(Duration::from_secs(3_600));
        assert_eq!((histogram.count(), histogram.longest()), (101, Duration::from_secs(3_600)));
        assert_eq!(histogram.sum(), Duration::from_millis(5_050) + Duration::from_secs(3_600));
        assert_eq!(histogram.cumulative().last().map(|(_, count)| count), Some(101));
        let up_to =
            |millis| histogram.cumulative().take_while(move |(end, _)| *end <= Duration::from_millis(millis));
        assert_eq!(up_to(66).last(), Some((Duration::from_micros(65_535), 65)));
    }

    #[test]
    fn sums_over_rooms_have_everything_once_and_a_room_that_is_gone_has_no_players() {
        let mut one = RoomStats { players: 3, away: 1, connections: 2, overruns: 5, ..RoomStats::default() };
        one.server.logins = 7;
        one.tick_time.record(Duration::from_millis(2));
        one.stream_in.add(100);
        one.count_closed(DisconnectReason::Kicked);
        let mut sum = one.past();
        assert_eq!((sum.players, sum.away, sum.connections), (0, 0, 0));
        sum.merge(&one);
        assert_eq!((sum.players, sum.away, sum.connections, sum.overruns), (3, 1, 2, 10));
        assert_eq!((sum.server.logins, sum.closed(DisconnectReason::Kicked)), (14, 2));
        assert_eq!((sum.tick_time.count(), sum.tick_time.sum()), (2, Duration::from_millis(4)));
        assert_eq!((sum.stream_in.bytes, sum.stream_in.count), (200, 2));
    }

    #[test]
    fn closes_are_counted_by_reason() {
        let mut stats = RoomStats::default();
        stats.count_closed(DisconnectReason::TooSlow);
        assert_eq!(stats.closed(DisconnectReason::TooSlow), 1);
        assert_eq!(stats.closed(DisconnectReason::Kicked), 0);
    }
}
