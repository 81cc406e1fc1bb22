//! How far ahead of the server's clock prediction should run: as little as lets input arrive in time.
//!
//! Every datagram that closes a tick would have needed prediction to be ahead by some amount to arrive just as its
//! tick is simulated: by what it was, less the margin that the server found. From the spread of those, the one is
//! chosen that costs least, when being ahead costs its time and being late costs [`LeadConfig::late_cost`]. A lost
//! datagram has no margin, so loss raises nothing.
//!
//! *Ahead* is measured against the caller's own clock, which only drifts, and not against the estimate of the
//! server's, which moves with every better sample: input timing then has no part in that estimate's errors. The lead
//! is the difference of the two. Knows margins, neither ticks nor packets.

use core::time::Duration;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::clock::lattice::Lattice;
use crate::clock::{Delivery, LeastCost, Rate, Steering, Urgency, signed_micros};
use crate::error::{ConfigError, time_within};
use crate::lane::Link;
use crate::seq::Seq;
use crate::time::Timestamp;

/// What a [`LeadController`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadConfig {
    /// What it costs to be late, as a time: the lead grows by up to this to save every datagram from being late.
    /// Default 300 ms, which fits wired to mobile. Less saves lead and costs corrections. From 10 ms to 1 s.
    pub late_cost: Duration,
    /// The same on a reliable link, where one lost segment holds up everything behind it until it is sent again, a quarter of
    /// a second later. Default 300 ms, at which the lead never covers a retransmission: where bodies meet, so long a lead
    /// costs more than it saves. With 5 s it does, on a link that loses 1 %: choose that for a game without contact
    /// (`docs/DECISIONS.md` has the figures). From 10 ms to 1 min.
    pub stream_late_cost: Duration,
    /// What is added to the least lead that is enough. Default 1 ms: clocks and threads are not exact. At most 100 ms.
    pub guard: Duration,
    /// The longest lead. Default 1 s: the server takes no input from further ahead. From 50 ms to 10 s.
    pub max_lead: Duration,
}

impl Default for LeadConfig {
    fn default() -> Self {
        Self {
            late_cost: Duration::from_millis(300),
            stream_late_cost: Duration::from_millis(300),
            guard: Duration::from_millis(1),
            max_lead: Duration::from_secs(1),
        }
    }
}

impl LeadConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let ms = Duration::from_millis;
        time_within("lead.late_cost", self.late_cost, ms(10), ms(1_000))?;
        time_within("lead.stream_late_cost", self.stream_late_cost, ms(10), ms(60_000))?;
        time_within("lead.guard", self.guard, ms(0), ms(100))?;
        time_within("lead.max_lead", self.max_lead, ms(50), ms(10_000))
    }
}

/// Chooses how far ahead prediction runs, and the rate at which it gets there.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{LeadConfig, LeadController, Rate, Seq, Timestamp};
///
/// let mut lead = LeadController::new(LeadConfig::default(), Duration::from_millis(60))?;
/// // The server's clock is 5 s ahead of ours; prediction was 60 ms ahead of that, and input came 20 ms early.
/// let server = 5_000_000;
/// lead.sent(Timestamp::ZERO, Seq::new(1), server + 60_000, server + 60_000);
/// lead.report(Seq::new(1), 20_000);
/// assert_eq!(lead.lead(server), Duration::from_millis(41), "40 ms would have been just enough");
/// assert!(lead.rate(server + 60_000, server) < Rate::ZERO, "time runs slower until it is there");
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeadController {
    config: LeadConfig,
    initial: Duration,
    /// Recent datagrams.
    sent: VecDeque<Sent>,
    /// How far ahead prediction should have been for them.
    needed: LeastCost,
    /// The same, but for what they waited for on this side.
    network: LeastCost,
    /// Frames, if input leaves only with them.
    lattice: Option<Lattice>,
    /// Of recent states: the end of their tick less what the caller's clock showed when they arrived.
    states: VecDeque<i64>,
    late: Urgency,
    steering: Steering,
    /// The link that input takes.
    link: Link,
}

/// A datagram that closes a tick. Microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sent {
    seq: Seq,
    at: Timestamp,
    /// How far prediction was ahead of the caller's clock.
    ahead: i64,
    /// The tick's end on the server's clock less when it was sent by the caller's.
    before_end: i64,
}

impl LeadController {
    /// Whether a loaded controller can have been saved by one of this config.
    pub(crate) fn is_sound(&self, config: LeadConfig) -> bool {
        let Ok(mut fresh) = Self::new(config, self.initial) else { return false };
        fresh.set_link(self.link);
        self.config == config
            && self.sent.len() <= Self::MAX_SENT
            && self.states.len() <= Self::MAX_STATES
            && self.needed.is_sound(&fresh.needed)
            && self.network.is_sound(&fresh.network)
            && self.lattice.as_ref().is_none_or(Lattice::is_sound)
    }
}

impl LeadController {
    /// Datagrams whose fate may still be told: more than are ever on the way.
    const MAX_SENT: usize = 256;
    /// States that are looked back on.
    const MAX_STATES: usize = 64;
    /// How long after the end of its tick a state should arrive at the earliest, by prediction time.
    const CLEAR_OF_STATES: i64 = 3_000;
    /// Datagrams that are looked back on: twelve seconds at the default cadence.
    const MAX_NEEDED: usize = 256;
    /// On a reliable link, where what is late is rarer and comes in runs: fifty seconds.
    const MAX_STREAM: usize = 1_024;

    /// Starts with the lead that a first round trip suggests, until input has arrived somewhere.
    ///
    /// # Errors
    /// When a field of `config` is out of its range.
    pub fn new(config: LeadConfig, lead: Duration) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            initial: lead,
            sent: VecDeque::with_capacity(Self::MAX_SENT),
            needed: LeastCost::new(config.late_cost, config.guard, Self::MAX_NEEDED),
            network: LeastCost::new(config.late_cost, config.guard, Self::MAX_NEEDED),
            lattice: None,
            states: VecDeque::with_capacity(Self::MAX_STATES),
            late: Urgency::Calm,
            steering: Steering::Still,
            link: Link::Sync,
        })
    }

    /// Input takes this link from here on. What was measured of the other one is a first guess for it.
    pub fn set_link(&mut self, link: Link) {
        if self.link != link {
            self.link = link;
            let delivery = match link {
                Link::Reliable => {
                    Delivery::InOrder { late_cost: self.config.stream_late_cost, window: Self::MAX_STREAM }
                }
                Link::Sync => {
                    Delivery::AnyOrder { late_cost: self.config.late_cost, window: Self::MAX_NEEDED }
                }
            };
            self.needed.set_delivery(delivery);
            self.network.set_delivery(delivery);
        }
    }

    /// A datagram that closes a tick was sent at `now`, with prediction time so far ahead of the caller's clock; `before_end_micros`
    /// is the end of the tick on the server's clock less what the caller's shows: as much, if it is sent just as the tick
    /// ends. Leave out those that were sent late by a hitch of the client's own: they tell nothing of the network.
    pub fn sent(&mut self, now: Timestamp, seq: Seq, ahead_micros: i64, before_end_micros: i64) {
        if self.sent.len() >= Self::MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { seq, at: now, ahead: ahead_micros, before_end: before_end_micros });
        if let Some(lattice) = &mut self.lattice {
            lattice.sent(before_end_micros);
        }
    }

    /// A state has arrived whose tick ended at a time of the server's clock that is `end_micros` ahead of what the
    /// caller's shows: prediction must not be behind it.
    pub fn arrived(&mut self, end_micros: i64) {
        if self.states.len() >= Self::MAX_STATES {
            self.states.pop_front();
        }
        self.states.push_back(end_micros);
    }

    /// No lead below this one is safe: a state would be of a tick that prediction has not ended yet.
    fn least(&self) -> i64 {
        let newest = self.states.iter().max().copied().unwrap_or(i64::MIN);
        newest.saturating_add(Self::CLEAR_OF_STATES)
    }

    /// Input leaves only with frames, which are so far apart; `None` when it leaves as soon as its tick ends, or when
    /// frames keep no time.
    pub fn set_frames(&mut self, period: Option<Duration>) {
        match (&mut self.lattice, period) {
            (_, None) => self.lattice = None,
            (Some(lattice), Some(period)) => lattice.set_period(period),
            (None, Some(period)) => self.lattice = Some(Lattice::new(period)),
        }
    }

    /// The server found datagram `seq` to be early by so much, or late if below zero. Told twice is told once.
    pub fn report(&mut self, seq: Seq, margin_micros: i64) {
        // spec: CLOCK-03
        let Some(index) = self.sent.iter().position(|sent| sent.seq == seq) else { return };
        let Some(sent) = self.sent.remove(index) else { return };
        self.late = if margin_micros < 0 { Urgency::Late } else { Urgency::Calm };
        self.learn(sent, margin_micros);
        if self.link == Link::Reliable && margin_micros < 0 {
            self.learn_blocked(index, sent, margin_micros);
        }
        let least = self.least();
        if let Some(lattice) = &mut self.lattice {
            lattice.choose(&self.network, least);
        }
    }

    fn learn(&mut self, sent: Sent, margin: i64) {
        self.needed.add(sent.ahead.saturating_sub(margin));
        self.network.add(sent.before_end.saturating_sub(margin));
    }

    /// A stream that held up a message until it was late held up those behind it: they arrived together with it. The server
    /// reports two margins at a time, so without this a retransmission would count as two messages, however many it hit.
    fn learn_blocked(&mut self, from: usize, first: Sent, margin: i64) {
        let transit = first.before_end.saturating_sub(margin);
        let Some(usual) = self.network.usual() else { return };
        while let Some(next) = self.sent.get(from).copied() {
            let later = signed_micros(next.at.saturating_since(first.at));
            let waited = transit.saturating_sub(later);
            // A message that could not have been there by then was not held up.
            if waited <= usual {
                return;
            }
            self.sent.remove(from);
            self.learn(next, next.before_end.saturating_sub(waited));
        }
    }

    fn target(&self) -> Option<i64> {
        let by_frames = self.lattice.as_ref().and_then(Lattice::target);
        by_frames.or(self.needed.target())
    }

    /// How far ahead of the caller's clock prediction should be, when the server's is `server_micros` ahead of it:
    /// between that and the longest lead.
    pub fn aim(&self, server_micros: i64) -> i64 {
        let (initial, longest) = (signed_micros(self.initial), signed_micros(self.config.max_lead));
        let target = self.target().unwrap_or(server_micros.saturating_add(initial));
        target.clamp(server_micros, server_micros.saturating_add(longest))
    }

    /// The lead to aim for, when the server's clock is `server_micros` ahead of the caller's.
    pub fn lead(&self, server_micros: i64) -> Duration {
        Duration::from_micros(self.aim(server_micros).abs_diff(server_micros))
    }

    /// Forgets what was measured: the caller's clock or the server's has jumped.
    pub fn reset(&mut self) {
        self.sent.clear();
        self.needed.clear();
        self.network.clear();
        self.states.clear();
        if let Some(lattice) = &mut self.lattice {
            lattice.clear();
        }
        self.late = Urgency::Calm;
    }

    /// The rate that takes prediction from `ahead_micros` to the aim, without passing it.
    pub fn rate(&mut self, ahead_micros: i64, server_micros: i64) -> Rate {
        let error = self.aim(server_micros).saturating_sub(ahead_micros);
        self.steering.rate(error, self.needed.spread(), self.late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn controller() -> LeadController {
        LeadController::new(LeadConfig::default(), Duration::from_millis(60)).unwrap()
    }

    /// Datagrams that would have needed these leads, in microseconds.
    fn feed(lead: &mut LeadController, first: u16, needed: impl IntoIterator<Item = i64>) -> u16 {
        let mut seq = Seq::new(first);
        for needed in needed {
            lead.sent(Timestamp::ZERO, seq, 100_000, 100_000);
            lead.report(seq, 100_000 - needed);
            seq = seq.next();
        }
        seq.number()
    }

    /// The server's clock is as the caller's.
    fn target(lead: &LeadController) -> i64 {
        lead.aim(0)
    }

    #[test]
    fn one_in_a_hundred_is_let_go_when_it_costs_too_much() {
        // One of a hundred costs 3 ms to be late.
        let rare = |late: i64| (0..100).map(move |n| if n == 50 { 40_000 + late } else { 40_000 });
        let mut lead = controller();
        feed(&mut lead, 0, rare(2_900));
        assert_eq!(target(&lead), 43_900, "worth 2.9 ms");
        let mut lead = controller();
        feed(&mut lead, 0, rare(3_100));
        assert_eq!(target(&lead), 41_000, "not worth 3.1");
    }

    #[test]
    fn two_late_in_a_row_raise_it_at_once_and_one_does_not() {
        let mut lead = controller();
        let seq = feed(&mut lead, 0, [40_000; 100]);
        let seq = feed(&mut lead, seq, [120_000]);
        assert_eq!(target(&lead), 41_000);
        feed(&mut lead, seq, [118_000]);
        assert_eq!(target(&lead), 121_000);
    }

    #[test]
    fn eight_far_too_early_lower_it_and_seven_do_not() {
        let mut lead = controller();
        let seq = feed(&mut lead, 0, [120_000; 100]);
        let seq = feed(&mut lead, seq, [40_000; 7]);
        assert_eq!(target(&lead), 121_000);
        feed(&mut lead, seq, [40_000]);
        assert_eq!(target(&lead), 41_000);
    }

    #[test]
    fn a_little_early_is_learnt_slowly() {
        let mut lead = controller();
        let seq = feed(&mut lead, 0, [50_000; 100]);
        feed(&mut lead, seq, [40_000; 20]);
        assert_eq!(target(&lead), 51_000, "ten milliseconds may be chance");
    }

    #[test]
    fn a_report_counts_once_and_only_for_what_was_sent() {
        let mut lead = controller();
        lead.sent(Timestamp::ZERO, Seq::new(1), 60_000, 60_000);
        lead.report(Seq::new(2), -90_000);
        assert_eq!(target(&lead), 60_000, "nobody sent that");
        lead.report(Seq::new(1), 20_000);
        lead.report(Seq::new(1), -90_000);
        assert_eq!((target(&lead), lead.needed.len()), (41_000, 1));
    }

    #[test]
    fn the_lead_stays_within_its_bounds() {
        let mut lead = controller();
        feed(&mut lead, 0, [5_000_000; 4]);
        assert_eq!(lead.lead(0), Duration::from_secs(1));
        assert_eq!(lead.lead(4_900_000), Duration::from_micros(101_000));
        let mut lead = controller();
        feed(&mut lead, 0, [i64::MIN / 2, -30_000]);
        assert_eq!(lead.lead(0), Duration::ZERO);
        let far = LeadController::new(LeadConfig::default(), Duration::MAX).unwrap();
        assert_eq!(far.lead(0), Duration::from_secs(1));
    }

    #[test]
    fn until_input_has_arrived_and_after_a_reset_the_first_guess_holds() {
        let mut lead = controller();
        assert_eq!((lead.aim(7_000), lead.lead(7_000)), (67_000, Duration::from_millis(60)));
        feed(&mut lead, 0, [40_000; 5]);
        assert_eq!(target(&lead), 41_000);
        lead.reset();
        assert_eq!(target(&lead), 60_000);
    }

    #[test]
    fn rates_are_gentle_unless_it_is_urgent() {
        let mut lead = controller();
        feed(&mut lead, 0, [59_000; 20]);
        let ppm = |lead: &mut LeadController, error: i64| lead.rate(60_000i64.saturating_sub(error), 0).ppm();
        assert_eq!((ppm(&mut lead, 1_000), ppm(&mut lead, -2_000)), (0, 0), "at rest it stays");
        assert_eq!(ppm(&mut lead, 1_001), 5_005);
        assert_eq!(ppm(&mut lead, 500), 2_500, "on its way it goes on");
        assert_eq!(ppm(&mut lead, 499), 0);
        assert_eq!(ppm(&mut lead, -2_001), -10_005);
        assert_eq!((ppm(&mut lead, 40_000), ppm(&mut lead, -40_000)), (50_000, -50_000));
        assert_eq!((ppm(&mut lead, 40_001), ppm(&mut lead, -40_001)), (200_000, -200_000));
        assert_eq!((ppm(&mut lead, i64::MAX), ppm(&mut lead, i64::MIN)), (200_000, -200_000));
        feed(&mut lead, 100, [101_000]);
        assert_eq!(ppm(&mut lead, 30_000), 150_000, "late: up as fast as need be");
        assert_eq!(ppm(&mut lead, -30_000), -50_000, "but not down");
    }

    /// A stream that takes 40 ms and sends a tick every 50 ms. Every hundredth message is lost and sent again 280 ms later;
    /// those behind it arrive with it. The server reports the newest margin and the least of each such burst.
    fn stream(lead: &mut LeadController, seconds: u16) {
        lead.set_link(Link::Reliable);
        let mut burst: Vec<(Seq, i64)> = vec![];
        for number in 0..seconds * 20 {
            let (seq, sent) = (Seq::new(number), i64::from(number) * 50_000);
            let at = Timestamp::from_micros(u64::from(number) * 50_000);
            // Prediction is 60 ms ahead, and each tick is sent as it ends.
            lead.sent(at, seq, 60_000, 60_000);
            let lost = i64::from(number / 100 * 100) * 50_000 + 320_000;
            let arrival = if number >= 100 { (sent + 40_000).max(lost) } else { sent + 40_000 };
            let margin = sent + 60_000 - arrival;
            burst.push((seq, margin));
            if arrival == sent + 40_000 {
                let first = burst.iter().min_by_key(|(_, margin)| *margin).copied();
                for (seq, margin) in first.into_iter().chain(burst.last().copied()) {
                    lead.report(seq, margin);
                }
                burst.clear();
            }
        }
    }

    #[test]
    fn a_retransmission_counts_as_all_the_messages_that_it_held_up() {
        let mut lead = controller();
        stream(&mut lead, 60);
        let late = lead.needed.late_cost_at(61_000);
        // Six of a hundred took 80 ms or more, of which the server reported one: 300 ms times 6 %.
        assert!((16_000..=18_000).contains(&late), "{late} us");
        assert_eq!(target(&lead), 41_000, "by default no retransmission is waited for");
    }

    #[test]
    fn a_lead_that_covers_retransmissions_is_a_matter_of_their_price() {
        let config = LeadConfig { stream_late_cost: Duration::from_secs(6), ..LeadConfig::default() };
        let mut lead = LeadController::new(config, Duration::from_millis(60)).unwrap();
        stream(&mut lead, 60);
        assert_eq!(target(&lead), 321_000, "the way, and a retransmission");
        // It stays there through a stretch without losses, and datagrams do not know of it.
        let seq = feed(&mut lead, 30_000, [40_000; 20]);
        assert_eq!(target(&lead), 321_000);
        lead.set_link(Link::Sync);
        feed(&mut lead, seq, [40_000; 100]);
        assert_eq!(target(&lead), 41_000);
    }

    proptest! {
        /// Whatever is reported: the target is within its bounds, and memory too.
        #[test]
        fn any_reports_leave_it_sane(reports in prop::collection::vec((any::<u16>(), any::<i64>(), any::<i64>()), 0..600)) {
            let mut lead = controller();
            for (seq, sent, margin) in reports {
                lead.sent(Timestamp::ZERO, Seq::new(seq), sent, sent);
                lead.report(Seq::new(seq ^ (margin as u16 & 1)), margin);
                let rate = lead.rate(sent, margin);
                prop_assert!(rate >= Rate::SLOWEST && rate <= Rate::FASTEST);
                prop_assert!(lead.lead(margin) <= Duration::from_secs(1));
                prop_assert!(lead.sent.len() <= LeadController::MAX_SENT);
                prop_assert!(lead.needed.len() <= LeadController::MAX_NEEDED);
            }
        }
    }
}
