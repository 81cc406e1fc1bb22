//! What bots have measured, under the names of the lab: `docs/LAB.md` defines each. What a client cannot know is not in it.

use halftrack_lab::{ByCause, Combat, Distribution, Findings, Samples, ShotCount};
use serde::Serialize;

use super::bot::Count;
use super::crowd::Outcome;
use super::scrape::ServerFigures;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// That were measured.
    pub(super) seconds: f64,
    pub(super) players: usize,
    pub(super) own: Own,
    pub(super) input: Input,
    pub(super) remote: Remote,
    pub(super) combat: Combat,
    pub(super) net: Net,
    pub(super) invariants: Invariants,
    pub(super) bots: Bots,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<ServerFigures>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Own {
    pub(super) ticks: u64,
    pub(super) mispredicted_ticks: u64,
    pub(super) mispredict_ratio: f64,
    pub(super) snaps: u64,
    pub(super) snaps_per_player_minute: f64,
    pub(super) corrections: u64,
    /// Those whose cause is none of collision, death, respawn and teleport.
    pub(super) corrections_outside_contact: u64,
    pub(super) correction_m: Distribution,
    pub(super) correction_deg: Distribution,
    pub(super) contact_correction_m: Distribution,
    pub(super) correction_speed_mps: Distribution,
    pub(super) offset_ms_to_converge: Distribution,
    pub(super) pending_ticks: Distribution,
    pub(super) by_cause: ByCause,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Input {
    pub(super) ticks: u64,
    pub(super) late_ratio: f64,
    pub(super) lost_ratio: f64,
    pub(super) held_ratio: f64,
    pub(super) lead_ms: Distribution,
    pub(super) margin_ms: Distribution,
    pub(super) action_to_screen_ms: Distribution,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Remote {
    pub(super) delay_ms: Distribution,
    pub(super) hold_ratio: f64,
    pub(super) rewinds: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Net {
    pub(super) up_bytes_per_s: f64,
    pub(super) down_bytes_per_s: f64,
    pub(super) check_failed: u64,
    /// How long the newest connection of each client took to be made.
    pub(super) connect_ms: Distribution,
    /// The shortest round trip of the last seconds, once a second for each client.
    pub(super) rtt_ms: Distribution,
    pub(super) disconnects: u64,
    pub(super) reconnects: u64,
}

/// This program itself.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Bots {
    /// Frames that were left out because there was no time for them, as a part of all.
    pub(super) missed_frame_ratio: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Invariants {
    pub(super) checked: u64,
    pub(super) violated: u64,
    pub(super) list: Vec<halftrack_lab::Violation>,
}

impl Report {
    /// Of `seconds` that were measured.
    pub(super) fn new(seconds: f64, outcome: &Outcome, server: Option<ServerFigures>) -> Self {
        let (players, findings) = (outcome.counts.len(), &outcome.findings);
        let present =
            outcome.counts.iter().map(|(before, after)| after.present.saturating_sub(before.present));
        let total = present.map(|present| present.as_secs_f64()).sum();
        Self {
            seconds,
            players,
            own: Own::new(findings, total / 60.0),
            input: Input::new(findings),
            remote: Remote::new(findings),
            combat: ShotCount::sum(
                outcome.counts.iter().map(|(before, after)| after.shots.since(before.shots)),
            ),
            net: Net::new(outcome, findings, total),
            invariants: Invariants::new(findings),
            bots: Bots::new(outcome),
            server,
        }
    }
}

impl Own {
    fn new(findings: &Findings, minutes: f64) -> Self {
        let own = findings.own(minutes);
        let ByCause { collision, death, respawn, teleport, .. } = own.by_cause;
        let outside = own.corrections.saturating_sub(collision + death + respawn + teleport);
        Self {
            ticks: own.ticks,
            mispredicted_ticks: own.mispredicted_ticks,
            mispredict_ratio: own.mispredict_ratio,
            snaps: own.snaps,
            snaps_per_player_minute: own.snaps_per_player_minute,
            corrections: own.corrections,
            corrections_outside_contact: outside,
            correction_m: own.correction_m,
            correction_deg: own.correction_deg,
            contact_correction_m: own.contact_correction_m,
            correction_speed_mps: own.correction_speed_mps,
            offset_ms_to_converge: own.offset_ms_to_converge,
            pending_ticks: own.pending_ticks,
            by_cause: own.by_cause,
        }
    }
}

impl Input {
    fn new(findings: &Findings) -> Self {
        let input = findings.input();
        Self {
            ticks: input.ticks,
            late_ratio: input.late_ratio,
            lost_ratio: input.lost_ratio,
            held_ratio: input.held_ratio,
            lead_ms: input.lead_ms,
            margin_ms: input.margin_ms,
            action_to_screen_ms: input.action_to_screen_ms,
        }
    }
}

impl Remote {
    fn new(findings: &Findings) -> Self {
        let remote = findings.remote();
        Self { delay_ms: remote.delay_ms, hold_ratio: remote.hold_ratio, rewinds: remote.rewinds }
    }
}

impl Net {
    /// `seconds` are those that all clients together were logged in for.
    fn new(outcome: &Outcome, findings: &Findings, seconds: f64) -> Self {
        let sum = |count| sum(outcome, count);
        let per_second = |bytes: u64| if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
        let mut connect_ms = Samples::default();
        for took in outcome.counts.iter().filter_map(|(_, after)| after.link.connect_time) {
            connect_ms.add(took.as_secs_f64() * 1e3);
        }
        Self {
            up_bytes_per_s: per_second(sum(Count::up_bytes)),
            down_bytes_per_s: per_second(sum(Count::down_bytes)),
            check_failed: findings.check_failed(),
            connect_ms: connect_ms.distribution(),
            rtt_ms: findings.rtt_ms().distribution(),
            disconnects: sum(|count| count.link.disconnects),
            reconnects: sum(|count| count.link.connects),
        }
    }
}

impl Bots {
    fn new(outcome: &Outcome) -> Self {
        let (drawn, missed) = (sum(outcome, |count| count.frames), sum(outcome, |count| count.missed_frames));
        Self { missed_frame_ratio: missed as f64 / (drawn + missed).max(1) as f64 }
    }
}

/// What was counted of all bots while measuring.
fn sum(outcome: &Outcome, count: fn(&Count) -> u64) -> u64 {
    outcome.counts.iter().map(|(before, after)| count(after).saturating_sub(count(before))).sum()
}

impl Invariants {
    fn new(findings: &Findings) -> Self {
        let found = findings.invariants();
        Self { checked: found.checked, violated: found.violated, list: found.list }
    }
}
