//! Whether datagrams arrive, judged by the end that should receive them. Knows times, not contents.
//!
//! A sync link can exist and be dead: a middlebox drops datagrams while the stream of the same connection lives. Silence
//! alone does not show that. The peer, this host or the whole path may have stalled, and then the stream is silent too. So
//! a verdict needs a sign of life of the peer on the reliable link, and time for a datagram to arrive after that sign.
//!
//! ```text
//!   newest datagram ──── PATIENCE ───► suspect: ask for a sign of life ─── sign ──── grace ───► dead
//!         ▲                                                                                      │
//!         └────────────────────────── two datagrams within RETURN ◄──────────────────────────────┘
//! ```

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Silence after which datagrams are suspected to be lost. With a round trip of 300 ms and the grace, a dead link is
/// noticed within a second; on a short way, ten datagrams of 50 ms must be lost in a row.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);

/// The time that datagrams get after a sign of life, at least: one and a half of their intervals if that is longer.
const GRACE: Duration = Duration::from_millis(200);

/// How often a sender whose datagrams do not arrive sends one all the same, so that the peer can notice their return.
/// Probes are whole messages: a path that drops only long datagrams is dead for them.
pub(crate) const PROBE: Duration = Duration::from_millis(250);

/// Two datagrams within this time end a fallback: two probes in a row, with room for jitter. One may be a stray.
const RETURN: Duration = Duration::from_millis(650);

/// Judges whether the datagrams of one direction arrive.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SyncWatch {
    /// When the newest datagram arrived, or the watch began.
    heard: Timestamp,
    /// The first sign of life of the peer after that, unless it was too soon to mean anything. Stays until the first
    /// datagram after a verdict.
    sign: Option<Timestamp>,
    dead: bool,
    grace: Duration,
}

impl SyncWatch {
    /// A watch over one datagram per `interval`. They are taken to arrive until the watch has seen otherwise.
    pub(crate) fn new(now: Timestamp, interval: Duration) -> Self {
        Self { heard: now, sign: None, dead: false, grace: GRACE.max(interval * 3 / 2) }
    }

    pub(crate) const fn is_dead(&self) -> bool {
        self.dead
    }

    /// A datagram arrived. Gives whether that ends a fallback.
    pub(crate) fn datagram(&mut self, now: Timestamp) -> bool {
        let returns = self.dead && self.sign.is_none() && now.saturating_since(self.heard) <= RETURN;
        self.dead &= !returns;
        (self.heard, self.sign) = (now, None);
        returns
    }

    /// The peer showed by the reliable link that it was alive at `now`. Half of the patience tells a stream that is a
    /// little quicker than datagrams from one that is alone.
    pub(crate) fn peer_is_alive(&mut self, now: Timestamp) {
        if !self.dead && self.sign.is_none() && now >= self.heard + PATIENCE / 2 {
            self.sign = Some(now);
        }
    }

    /// When the verdict falls, unless a datagram arrives before. `None` without a sign of life.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let sign = self.sign.filter(|_| !self.dead)?;
        Some((sign + self.grace).max(self.heard + PATIENCE + self.grace))
    }

    /// Gives whether the datagrams are found dead at `now`, once.
    pub(crate) fn falls_silent(&mut self, now: Timestamp) -> bool {
        let falls = self.deadline().is_some_and(|deadline| now >= deadline);
        self.dead |= falls;
        falls
    }

    /// From when on a sign of life should be asked for, if no datagram arrives before. `None` while dead.
    pub(crate) fn suspects_from(&self) -> Option<Timestamp> {
        (!self.dead).then(|| self.heard + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(5_000_000 + millis * 1_000)
    }

    #[test]
    fn lane_11_silence_with_a_sign_of_life_is_a_dead_link_and_silence_alone_is_not() {
        let mut watch = SyncWatch::new(at(0), Duration::from_millis(50));
        assert!(!watch.falls_silent(at(60_000)), "both links are silent: that is for the session to notice");
        // A sign of life, and then nothing.
        watch.peer_is_alive(at(60_000));
        assert_eq!(watch.deadline(), Some(at(60_200)));
        assert!(!watch.falls_silent(at(60_199)));
        assert!(watch.falls_silent(at(60_200)));
        assert!(watch.is_dead() && !watch.falls_silent(at(60_201)), "once");
    }

    #[test]
    fn lane_11_a_live_stream_is_no_evidence_before_the_patience_is_over() {
        let mut watch = SyncWatch::new(at(0), Duration::from_millis(50));
        watch.peer_is_alive(at(149));
        assert_eq!(watch.deadline(), None, "datagrams may be 149 ms slower than the stream");
        watch.peer_is_alive(at(150));
        assert_eq!(watch.deadline(), Some(at(500)), "patience and grace after the last datagram");
        watch.peer_is_alive(at(499));
        assert_eq!(watch.deadline(), Some(at(500)), "later signs do not put it off");
        assert!(!watch.datagram(at(499)), "nothing had been found dead");
        assert_eq!(watch.deadline(), None);
    }

    #[test]
    fn lane_11_the_grace_is_longer_than_a_slow_tick() {
        let mut watch = SyncWatch::new(at(0), Duration::from_millis(200));
        watch.peer_is_alive(at(400));
        assert_eq!(watch.deadline(), Some(at(700)));
    }

    #[test]
    fn lane_11_two_datagrams_in_a_row_end_a_fallback_and_one_stray_does_not() {
        let mut watch = SyncWatch::new(at(0), Duration::from_millis(50));
        watch.peer_is_alive(at(300));
        assert!(watch.falls_silent(at(600)));
        assert_eq!((watch.suspects_from(), watch.deadline()), (None, None));
        watch.peer_is_alive(at(700));
        assert!(!watch.datagram(at(700)), "the first");
        assert!(!watch.datagram(at(1_351)), "651 ms later it is a first one again");
        assert!(watch.datagram(at(2_001)), "650 ms after the one before");
        assert!(!watch.is_dead());
        assert_eq!(watch.suspects_from(), Some(at(2_301)));
    }
}
