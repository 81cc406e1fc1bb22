//! What is added up over all clients of a run.

use halftrack::{Cause, InputStats};

use crate::result::{ByCause, Emit, Events, Group, Input, Net, Own, Remote};
use crate::samples::Samples;

/// Numbers of all clients, from when measuring began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) mispredicted_ticks: u64,
    pub(crate) snaps: u64,
    pub(crate) corrections: u64,
    pub(crate) by_cause: ByCause,
    pub(crate) correction_m: Samples,
    pub(crate) correction_deg: Samples,
    pub(crate) contact_correction_m: Samples,
    pub(crate) correction_speed_mps: Samples,
    pub(crate) offset_ms_to_converge: Samples,
    pub(crate) pending_ticks: Samples,

    pub(crate) lead_ms: Samples,
    pub(crate) excess_lead_ms: Samples,
    pub(crate) margin_ms: Samples,
    pub(crate) action_to_screen_ms: Samples,
    pub(crate) action_to_server_ms: Samples,

    pub(crate) delay_ms: Samples,
    pub(crate) pose_error_m: Samples,
    pub(crate) pose_error_deg: Samples,
    pub(crate) contact_error_m: Samples,
    pub(crate) pictures: u64,
    pub(crate) guessed: u64,
    pub(crate) rewinds: u64,

    /// Its distributions are empty: they are those of the samples.
    pub(crate) emit: Emit,
    pub(crate) frames_to_screen: Samples,
    pub(crate) group: Group,
    pub(crate) members: Samples,
    pub(crate) group_correction_m: Samples,
    pub(crate) correction_per_state_m: Samples,
    pub(crate) draw_lag_ms: Samples,

    pub(crate) up_bytes: u64,
    pub(crate) down_bytes: u64,
    pub(crate) snapshot_bytes: u64,
    pub(crate) moving_entities: u64,
    pub(crate) events: Events,
}

impl Tally {
    /// That of others as well.
    pub(crate) fn append(&mut self, other: Self) {
        self.mispredicted_ticks += other.mispredicted_ticks;
        self.snaps += other.snaps;
        self.corrections += other.corrections;
        self.correction_m.append(other.correction_m);
        self.correction_deg.append(other.correction_deg);
        self.contact_correction_m.append(other.contact_correction_m);
        self.correction_speed_mps.append(other.correction_speed_mps);
        self.offset_ms_to_converge.append(other.offset_ms_to_converge);
        self.pending_ticks.append(other.pending_ticks);
        self.lead_ms.append(other.lead_ms);
        self.excess_lead_ms.append(other.excess_lead_ms);
        self.margin_ms.append(other.margin_ms);
        self.action_to_screen_ms.append(other.action_to_screen_ms);
        self.action_to_server_ms.append(other.action_to_server_ms);
        self.delay_ms.append(other.delay_ms);
        self.pose_error_m.append(other.pose_error_m);
        self.pose_error_deg.append(other.pose_error_deg);
        self.contact_error_m.append(other.contact_error_m);
        self.pictures += other.pictures;
        self.guessed += other.guessed;
        self.rewinds += other.rewinds;
        self.emit.add(&other.emit);
        self.frames_to_screen.append(other.frames_to_screen);
        self.group.add(&other.group);
        self.members.append(other.members);
        self.group_correction_m.append(other.group_correction_m);
        self.correction_per_state_m.append(other.correction_per_state_m);
        self.draw_lag_ms.append(other.draw_lag_ms);
        self.up_bytes += other.up_bytes;
        self.down_bytes += other.down_bytes;
        self.snapshot_bytes += other.snapshot_bytes;
        self.moving_entities += other.moving_entities;
        self.by_cause.add(&other.by_cause);
        self.events.told += other.events.told;
        self.events.lost += other.events.lost;
        self.events.duplicated += other.events.duplicated;
    }

    pub(crate) fn count_cause(&mut self, cause: Cause) {
        self.by_cause.count(cause);
    }

    /// `minutes` are those of all players together.
    pub(crate) fn own(&self, ticks: u64, minutes: f64) -> Own {
        Own {
            ticks,
            mispredicted_ticks: self.mispredicted_ticks,
            mispredict_ratio: ratio(self.mispredicted_ticks, ticks),
            snaps: self.snaps,
            snaps_per_player_minute: if minutes > 0.0 { self.snaps as f64 / minutes } else { 0.0 },
            corrections: self.corrections,
            correction_m: self.correction_m.distribution(),
            correction_deg: self.correction_deg.distribution(),
            contact_correction_m: self.contact_correction_m.distribution(),
            contact_m_per_player_minute: if minutes > 0.0 {
                self.contact_correction_m.sum() / minutes
            } else {
                0.0
            },
            correction_speed_mps: self.correction_speed_mps.distribution(),
            offset_ms_to_converge: self.offset_ms_to_converge.distribution(),
            pending_ticks: self.pending_ticks.distribution(),
            by_cause: self.by_cause,
        }
    }

    pub(crate) fn input(&self, stats: &InputStats) -> Input {
        let ticks = stats.as_sent + stats.held;
        Input {
            ticks,
            late_ratio: ratio(stats.late, ticks),
            lost_ratio: ratio(stats.lost, ticks),
            held_ratio: ratio(stats.held, ticks),
            lead_ms: self.lead_ms.distribution(),
            excess_lead_ms: self.excess_lead_ms.distribution(),
            margin_ms: self.margin_ms.distribution(),
            action_to_screen_ms: self.action_to_screen_ms.distribution(),
            action_to_server_ms: self.action_to_server_ms.distribution(),
        }
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote {
            delay_ms: self.delay_ms.distribution(),
            pose_error_m: self.pose_error_m.distribution(),
            pose_error_deg: self.pose_error_deg.distribution(),
            contact_error_m: self.contact_error_m.distribution(),
            hold_ratio: ratio(self.guessed, self.pictures),
            rewinds: self.rewinds,
        }
    }

    pub(crate) fn emit(&self) -> Emit {
        Emit { frames_to_screen: self.frames_to_screen.distribution(), ..self.emit }
    }

    pub(crate) fn group(&self) -> Group {
        Group {
            members: self.members.distribution(),
            correction_m: self.group_correction_m.distribution(),
            correction_per_state_m: self.correction_per_state_m.distribution(),
            draw_lag_ms: self.draw_lag_ms.distribution(),
            ..self.group
        }
    }

    /// `seconds` are those of all clients together.
    pub(crate) fn net(&self, seconds: f64, check_failed: u64) -> Net {
        let per_second = |bytes: u64| if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
        Net {
            up_bytes_per_s: per_second(self.up_bytes),
            down_bytes_per_s: per_second(self.down_bytes),
            bytes_per_moving_entity: ratio(self.snapshot_bytes, self.moving_entities),
            check_failed,
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
