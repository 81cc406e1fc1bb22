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

use crate::clock::lattice::Lattice;
use crate::clock::{LeastCost, Rate, Steering, Urgency, signed_micros};
use crate::error::{ConfigError, time_within};
use crate::exact::{exact, state};
use crate::seq::Seq;

/// What a [`LeadController`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadConfig {
    /// What it costs to be late, as a time: the lead grows by up to this to save every datagram from being late.
    /// Default 300 ms, which fits wired to mobile. Less saves lead and costs corrections. From 10 ms to 1 s.
    pub late_cost: Duration,
    /// What is added to the least lead that is enough. Default 1 ms: clocks and threads are not exact. At most 100 ms.
    pub guard: Duration,
    /// The longest lead. Default 1 s: the server takes no input from further ahead. From 50 ms to 10 s.
    pub max_lead: Duration,
}

impl Default for LeadConfig {
    fn default() -> Self {
        Self {
            late_cost: Duration::from_millis(300),
            guard: Duration::from_millis(1),
            max_lead: Duration::from_secs(1),
        }
    }
}

impl LeadConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let ms = Duration::from_millis;
        time_within("lead.late_cost", self.late_cost, ms(10), ms(1_000))?;
        time_within("lead.guard", self.guard, ms(0), ms(100))?;
        time_within("lead.max_lead", self.max_lead, ms(50), ms(10_000))
    }
}

/// Chooses how far ahead prediction runs, and the rate at which it gets there.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{LeadConfig, LeadController, Rate, Seq};
///
/// let mut lead = LeadController::new(LeadConfig::default(), Duration::from_millis(60))?;
/// // The server's clock is 5 s ahead of ours; prediction was 60 ms ahead of that, and input came 20 ms early.
/// let server = 5_000_000;
/// lead.sent(Seq::new(1), server + 60_000, server + 60_000);
/// lead.report(Seq::new(1), 20_000);
/// assert_eq!(lead.lead(server), Duration::from_millis(41), "40 ms would have been just enough");
/// assert!(lead.rate(server + 60_000, server) < Rate::ZERO, "time runs slower until it is there");
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
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
}

/// A datagram that closes a tick. Microseconds.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: Seq,
    /// How far prediction was ahead of the caller's clock.
    ahead: i64,
    /// The tick's end on the server's clock less when it was sent by the caller's.
    before_end: i64,
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
        })
    }

    /// A datagram that closes a tick was sent, with prediction time so far ahead of the caller's clock; `before_end_micros`
    /// is the end of the tick on the server's clock less what the caller's shows: as much, if it is sent just as the tick
    /// ends. Leave out those that were sent late by a hitch of the client's own: they tell nothing of the network.
    pub fn sent(&mut self, seq: Seq, ahead_micros: i64, before_end_micros: i64) {
        if self.sent.len() >= Self::MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { seq, ahead: ahead_micros, before_end: before_end_micros });
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
        let Some(Sent { ahead, before_end, .. }) = self.sent.remove(index) else { return };
        self.late = if margin_micros < 0 { Urgency::Late } else { Urgency::Calm };
        self.needed.add(ahead.saturating_sub(margin_micros));
        self.network.add(before_end.saturating_sub(margin_micros));
        let least = self.least();
        if let Some(lattice) = &mut self.lattice {
            lattice.choose(&self.network, least);
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

exact!([] Sent { seq, ahead, before_end });
state!([] LeadController { initial, sent, needed, network, lattice, states, late, steering } built { config });

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
            lead.sent(seq, 100_000, 100_000);
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
        lead.sent(Seq::new(1), 60_000, 60_000);
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

    proptest! {
        /// Whatever is reported: the target is within its bounds, and memory too.
        #[test]
        fn any_reports_leave_it_sane(reports in prop::collection::vec((any::<u16>(), any::<i64>(), any::<i64>()), 0..600)) {
            let mut lead = controller();
            for (seq, sent, margin) in reports {
                lead.sent(Seq::new(seq), sent, sent);
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
