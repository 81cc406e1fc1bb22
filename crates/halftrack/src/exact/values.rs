//! The core's plain values, written down: moments, numbers, names, causes, configs and counters.

use core::time::Duration;

use crate::cadence::{Cadence, SubTick};
use crate::cause::{Cause, Causes};
use crate::client::ClientStats;
use crate::clock::{ClockSample, LeadConfig, Rate};
use crate::exact::{Exact, Loader, Saver, exact, exact_enum};
use crate::flight::FlightGame;
use crate::game::{Contact, Offset};
use crate::id::{PlayerId, PlayerName};
use crate::input::{Margin, Origin, TickInput};
use crate::interpolate::{DelayConfig, RemoteStats, Sampling};
use crate::lane::{DeliveryPolicy, Lane, MessageKind, SyncLink};
use crate::predict::{PredictConfig, Resync, Status};
use crate::present::{CorrectionConfig, Outcome, Snap};
use crate::reconcile::Diagnosis;
use crate::seq::Seq;
use crate::session::{SessionEnd, SessionState};
use crate::snapshot::Course;
use crate::stats::{CorrectionStats, PredictStats};
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::control::LoginRefused;
use crate::wire::{Coded, WireError, read_tick, write_tick};

/// [`Exact`] by the number that a value is, and the value of a number.
macro_rules! exact_by {
    ($($type:ty: $number:ident, $new:expr;)*) => {$(
        impl Exact for $type {
            fn save(&self, to: &mut Saver) {
                self.$number().save(to);
            }

            fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
                $new(Exact::load(from)?).ok_or(WireError::Invalid { field: stringify!($type) })
            }
        }
    )*};
}

exact_by! {
    Timestamp: as_micros, |micros| Some(Timestamp::from_micros(micros));
    ServerTime: as_micros, |micros| Some(ServerTime::from_micros(micros));
    Tick: number, |number| Some(Tick::new(number));
    Epoch: number, |number| Some(Epoch::new(number));
    Seq: number, |number| Some(Seq::new(number));
    PlayerId: number, |number| Some(PlayerId::new(number));
    Rate: ppm, |ppm| Some(Rate::from_ppm(ppm)).filter(|rate| rate.ppm() == ppm);
    SubTick: index, SubTick::new;
    Causes: bits, Causes::from_bits;
    Cadence: interval, |interval: Duration| Cadence::new(interval).ok();
}

impl Exact for PlayerName {
    fn save(&self, to: &mut Saver) {
        to.list(self.as_str().as_bytes());
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        let invalid = WireError::Invalid { field: "name" };
        let name = core::str::from_utf8(from.list()?).map_err(|_| invalid)?;
        let loaded = Self::new(name).map_err(|_| invalid)?;
        if loaded.as_str() == name { Ok(loaded) } else { Err(invalid) }
    }
}

exact_enum!(Cause { Resync, Teleport, Respawn, Death, Params, Collision, LostInput, LateInput, Unexplained });
exact_enum!(Contact { Free, Touched });
exact_enum!(Course { Own, Met, Altered });
exact_enum!(Lane { ReliableOrdered, HighFrequencySync });
exact_enum!(Origin { Recorded, Substituted });
exact_enum!(Resync { NewEpoch, Silence, Overtaken, ClockError });
exact_enum!(Sampling { Exact, Interpolated, Extrapolated, Held });
exact_enum!(Snap { Cause, Size, Standstill, NotFinite });
exact_enum!(Status { Predicting, Starved });
exact_enum!(SyncLink { Present, Absent });

impl Exact for Outcome {
    fn save(&self, to: &mut Saver) {
        match self {
            Self::Unchanged => to.byte(0),
            Self::Negligible => to.byte(1),
            Self::Eased => to.byte(2),
            Self::Snapped(snap) => {
                to.byte(3);
                snap.save(to);
            }
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        match from.byte()? {
            0 => Ok(Self::Unchanged),
            1 => Ok(Self::Negligible),
            2 => Ok(Self::Eased),
            3 => Snap::load(from).map(Self::Snapped),
            _ => Err(WireError::Invalid { field: "outcome" }),
        }
    }
}

impl Exact for SessionState {
    fn save(&self, to: &mut Saver) {
        match self {
            Self::Idle => to.byte(0),
            Self::Connecting => to.byte(1),
            Self::LoginPending => to.byte(2),
            Self::LoggedIn => to.byte(3),
            Self::Reconnecting => to.byte(4),
            Self::TimedOut => to.byte(5),
            Self::LoggedOut => to.byte(6),
            Self::Failed(end) => {
                to.byte(7);
                end.save(to);
            }
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        Ok(match from.byte()? {
            0 => Self::Idle,
            1 => Self::Connecting,
            2 => Self::LoginPending,
            3 => Self::LoggedIn,
            4 => Self::Reconnecting,
            5 => Self::TimedOut,
            6 => Self::LoggedOut,
            7 => Self::Failed(SessionEnd::load(from)?),
            _ => return Err(WireError::Invalid { field: "session" }),
        })
    }
}

impl Exact for SessionEnd {
    fn save(&self, to: &mut Saver) {
        match self {
            Self::Superseded => to.byte(0),
            Self::Kicked => to.byte(1),
            Self::UnknownRoom => to.byte(2),
            Self::TooMuch => to.byte(3),
            Self::Broken => to.byte(4),
            Self::Refused(refused) => {
                to.byte(5);
                refused.save(to);
            }
            Self::BodyTooLong => to.byte(6),
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        Ok(match from.byte()? {
            0 => Self::Superseded,
            1 => Self::Kicked,
            2 => Self::UnknownRoom,
            3 => Self::TooMuch,
            4 => Self::Broken,
            5 => Self::Refused(LoginRefused::load(from)?),
            6 => Self::BodyTooLong,
            _ => return Err(WireError::Invalid { field: "session end" }),
        })
    }
}

impl Exact for LoginRefused {
    fn save(&self, to: &mut Saver) {
        match self {
            Self::Rules => to.byte(0),
            Self::NameTaken => to.byte(1),
            Self::Full => to.byte(2),
            Self::CredentialsNeeded => to.byte(3),
            Self::CredentialsInvalid => to.byte(4),
            Self::Draining => to.byte(5),
            Self::Banned => to.byte(6),
            Self::Protocol { server } => {
                to.byte(7);
                server.save(to);
            }
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        Ok(match from.byte()? {
            0 => Self::Rules,
            1 => Self::NameTaken,
            2 => Self::Full,
            3 => Self::CredentialsNeeded,
            4 => Self::CredentialsInvalid,
            5 => Self::Draining,
            6 => Self::Banned,
            7 => Self::Protocol { server: u16::load(from)? },
            _ => return Err(WireError::Invalid { field: "refusal" }),
        })
    }
}

/// As the wire has it: an input is quantised, so that is exact.
impl<I: Coded + Copy + PartialEq> Exact for TickInput<I> {
    fn save(&self, to: &mut Saver) {
        to.bits(|bits| write_tick(bits, None, self));
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        from.bits(|bits| read_tick(bits, None))
    }
}

impl Exact for DeliveryPolicy {
    fn save(&self, to: &mut Saver) {
        MessageKind::ALL.iter().for_each(|kind| self.lane(*kind).save(to));
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, WireError> {
        MessageKind::ALL
            .iter()
            .try_fold(Self::default(), |policy, kind| Ok(policy.with(*kind, Lane::load(from)?)))
    }
}

exact!([] Offset { position, rotation });
exact!([] Margin { seq, micros });
exact!([] ClockSample { sent, held, server, received });
exact!([] LeadConfig { late_cost, stream_late_cost, guard, max_lead });
exact!([] DelayConfig { snapshot_every, late_cost, guard, max_extrapolate });
exact!([] PredictConfig { cadence, max_pending, resync_error });
exact!([] CorrectionConfig {
    snap_distance,
    snap_angle,
    cap_speed,
    cap_turn,
    budget,
    max_budget,
    escalate_after,
    slow_tau,
    fast_tau,
    deadband_distance,
    deadband_angle,
    top_speed,
    top_turn,
});
exact!([] PredictStats {
    accepted,
    stale,
    duplicate,
    unknown_tick,
    backwards,
    mispredicted,
    resyncs,
    starved,
    stalled_ticks,
    delayed_changes,
});
exact!([] CorrectionStats { causes, unchanged, negligible, eased, snapped, sizes });
exact!([] RemoteStats {
    frames,
    backwards,
    exact,
    interpolated,
    extrapolated,
    held,
    eased,
    snapped,
    joins,
    leaves,
});
exact!([] ClientStats {
    snapshots,
    stale,
    early,
    malformed,
    missing_baseline,
    check_failed,
    full_requests,
    ticks,
    held,
    late,
    lost,
    mispredicted,
    inputs,
    eager_inputs,
    backwards,
    events_dropped,
    sync_down_dead,
    sync_up_dead,
});
exact!([G: FlightGame] Diagnosis<G> {
    at,
    server_tick,
    authoritative,
    predicted_before,
    predicted_after,
    correction_distance,
    correction_angle,
    cause,
    outcome,
    replayed_ticks,
    resync,
});
