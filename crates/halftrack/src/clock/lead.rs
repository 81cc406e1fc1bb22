//! How far ahead of the server's clock prediction should run: as little as lets input arrive in time.
//!
//! Every datagram that closes a tick would have needed some lead to arrive just as its tick is simulated: the lead
//! it was sent with, less the margin that the server found. From the spread of those, the lead is chosen that costs
//! least, when being ahead costs its time and being late costs [`LeadConfig::late_cost`]. A lost datagram has no
//! margin, so loss raises nothing. Knows margins, neither ticks nor packets.

use core::time::Duration;
use std::collections::VecDeque;

use crate::clock::Rate;
use crate::seq::Seq;
use crate::time::whole_micros;

/// What a [`LeadController`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadConfig {
    /// What it costs to be late, as a time: the lead grows by up to this to save every datagram from being late.
    /// Default 300 ms, which fits wired to mobile. Less saves lead and costs corrections.
    pub late_cost: Duration,
    /// What is added to the least lead that is enough. Default 1 ms: clocks and threads are not exact.
    pub guard: Duration,
    /// The longest lead. Default 1 s: the server takes no input from further ahead.
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

/// Chooses the lead, and the rate at which prediction time gets there.
///
/// ```
/// use core::time::Duration;
/// use halftrack::{LeadConfig, LeadController, Rate, Seq};
///
/// let mut lead = LeadController::new(LeadConfig::default(), Duration::from_millis(60));
/// // Sent with 60 ms of lead, and 20 ms early: 40 ms would have been just enough.
/// lead.sent(Seq::new(1), 60_000);
/// lead.report(Seq::new(1), 20_000);
/// assert_eq!(lead.target(), Duration::from_millis(41));
/// assert!(lead.rate(60_000) < Rate::ZERO, "time runs slower until it is there");
/// ```
#[derive(Clone, Debug)]
pub struct LeadController {
    config: LeadConfig,
    /// The lead that recent datagrams were sent with, in microseconds.
    sent: VecDeque<(Seq, i64)>,
    /// The lead that recent datagrams would have needed, oldest first.
    needed: VecDeque<i64>,
    /// The same, in order: kept to avoid taking memory on every report.
    sorted: Vec<i64>,
    target: Duration,
    late: Urgency,
}

/// Whether the newest input known of was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    Calm,
    Late,
}

impl LeadController {
    /// Datagrams whose fate may still be told: more than are ever on the way.
    const MAX_SENT: usize = 256;
    /// Datagrams that are looked back on: twelve seconds at the default cadence.
    const MAX_NEEDED: usize = 256;
    /// So many in a row that were late show that the route has changed for the worse.
    const WORSE: usize = 2;
    /// So many in a row that were far too early show that it has changed for the better.
    const BETTER: usize = 8;
    /// What is far too early, on top of twice the usual spread.
    const FAR: i64 = 20_000;
    /// Errors below this are not steered against: half a millisecond is nobody's trouble.
    const STILL: u64 = 500;
    /// An error above this is steered against at the full rate.
    const URGENT: u64 = 40_000;
    /// The usual rate.
    const GENTLE: i32 = 50_000;
    /// Parts per million for each microsecond of error: gone in about 0.4 s.
    const STEEPNESS: i64 = 5;

    /// Starts with the lead that a first round trip suggests, until input has arrived somewhere.
    pub fn new(config: LeadConfig, lead: Duration) -> Self {
        Self {
            config,
            sent: VecDeque::with_capacity(Self::MAX_SENT),
            needed: VecDeque::with_capacity(Self::MAX_NEEDED),
            sorted: Vec::with_capacity(Self::MAX_NEEDED),
            target: lead.min(config.max_lead),
            late: Urgency::Calm,
        }
    }

    /// A datagram that closes a tick was sent, with so much lead at the tick's end. Leave out those that were sent
    /// late by a hitch of the client's own: they tell nothing of the network.
    pub fn sent(&mut self, seq: Seq, lead_micros: i64) {
        if self.sent.len() >= Self::MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back((seq, lead_micros));
    }

    /// The server found datagram `seq` to be early by so much, or late if below zero. Told twice is told once.
    pub fn report(&mut self, seq: Seq, margin_micros: i64) {
        // spec: CLOCK-03
        let Some(index) = self.sent.iter().position(|(sent, _)| *sent == seq) else { return };
        let Some((_, lead)) = self.sent.remove(index) else { return };
        let needed = lead.saturating_sub(margin_micros);
        self.late = if margin_micros < 0 { Urgency::Late } else { Urgency::Calm };
        if self.needed.len() >= Self::MAX_NEEDED {
            self.needed.pop_front();
        }
        self.needed.push_back(needed);
        self.forget_another_route();
        self.choose();
    }

    /// What was measured before the route changed says nothing of the new one.
    fn forget_another_route(&mut self) {
        let target = i64::try_from(whole_micros(self.target)).unwrap_or(i64::MAX);
        let newest = |count: usize| self.needed.iter().rev().take(count).copied();
        let worse = self.needed.len() > Self::WORSE && newest(Self::WORSE).all(|needed| needed > target);
        let usual = self.sorted.get(self.sorted.len() / 2).copied().unwrap_or(target);
        let far = Self::FAR.saturating_add(target.saturating_sub(usual).max(0).saturating_mul(2));
        let early = target.saturating_sub(far);
        let better = self.needed.len() > Self::BETTER && newest(Self::BETTER).all(|needed| needed < early);
        let kept = match (worse, better) {
            (true, _) => Self::WORSE,
            (_, true) => Self::BETTER,
            _ => return,
        };
        self.needed.drain(..self.needed.len() - kept);
    }

    /// The lead with the least sum of itself and the cost of being late.
    fn choose(&mut self) {
        self.sorted.clear();
        self.sorted.extend(&self.needed);
        self.sorted.sort_unstable();
        let count = i64::try_from(self.sorted.len()).unwrap_or(i64::MAX).max(1);
        let late_cost = i64::try_from(whole_micros(self.config.late_cost)).unwrap_or(i64::MAX);
        let costs = self.sorted.iter().zip(1..).map(|(lead, in_time)| {
            let late = count - in_time;
            (lead.saturating_add(late_cost.saturating_mul(late) / count), *lead)
        });
        let Some((_, best)) = costs.min() else { return };
        let best = Duration::from_micros(u64::try_from(best).unwrap_or(0));
        self.target = best.saturating_add(self.config.guard).min(self.config.max_lead);
    }

    /// The lead to aim for.
    pub fn target(&self) -> Duration {
        self.target
    }

    /// The rate that takes prediction from a lead of so much to the target, without passing it.
    pub fn rate(&self, lead_micros: i64) -> Rate {
        let target = i64::try_from(whole_micros(self.target)).unwrap_or(i64::MAX);
        let error = target.saturating_sub(lead_micros);
        if error.unsigned_abs() < Self::STILL {
            return Rate::ZERO;
        }
        let hurry = error.unsigned_abs() > Self::URGENT || (self.late == Urgency::Late && error > 0);
        let limit = i64::from(if hurry { Rate::FASTEST.ppm() } else { Self::GENTLE });
        let ppm = error.saturating_mul(Self::STEEPNESS).clamp(-limit, limit);
        Rate::from_ppm(i32::try_from(ppm).unwrap_or(0))
    }
}
