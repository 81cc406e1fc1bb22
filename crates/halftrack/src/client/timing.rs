//! Time as a client knows it: the server's clock, the lead of prediction, and the host's frames.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::pace::{Occasion, Pace};
use crate::cadence::Cadence;
use crate::clock::{ClockSample, LeadConfig, LeadController, ServerClock};
use crate::error::ConfigError;
use crate::input::Margin;
use crate::seq::Seq;
use crate::snapshot::Header;
use crate::time::{ServerTime, Timestamp, signed_difference};

/// Clock, lead and pace of one client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Timing {
    pub(super) clock: ServerClock,
    pub(super) lead: LeadController,
    pub(super) pace: Pace,
    /// Of the call at hand.
    #[serde(skip)]
    pub(super) occasion: Occasion,
    /// The margin of the newest input that the server reported on: how early it came.
    pub(super) margin: Option<Margin>,
    /// When a snapshot first echoed the newest input message that was ever echoed, and which one that is.
    pub(super) echoed: Timestamp,
    echo: Option<Seq>,
}

/// Whether the server's time went on, or jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    On,
    /// Arrivals that were measured before mean nothing.
    Jumped,
}

impl Timing {
    pub(super) fn new(lead: LeadConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            clock: ServerClock::default(),
            lead: LeadController::new(lead, Duration::ZERO)?,
            pace: Pace::default(),
            occasion: Occasion::Timeout,
            margin: None,
            echoed: Timestamp::ZERO,
            echo: None,
        })
    }

    /// The session begins anew.
    pub(super) fn forget(&mut self) {
        self.clock.reset();
        self.lead.reset();
        self.margin = None;
    }

    /// Starts the lead over, from the round trip: prediction begins.
    pub(super) fn begin(&mut self, lead: LeadConfig, cadence: Cadence) {
        let round_trip = self.clock.round_trip().unwrap_or_default();
        let lead = LeadController::new(lead, round_trip / 2 + cadence.interval() / 2);
        debug_assert!(lead.is_ok(), "configs have been checked");
        if let Ok(lead) = lead {
            self.lead = lead;
        }
    }

    /// Whether a loaded value can have been saved by one of this config.
    pub(super) fn is_sound(&self, lead: LeadConfig) -> bool {
        self.clock.is_sound() && self.lead.is_sound(lead)
    }

    /// The server's clock less ours, in microseconds.
    pub(super) fn server_offset(&self, now: Timestamp) -> Option<i64> {
        let server = i64::try_from(self.clock.at(now)?.as_micros()).ok()?;
        server.checked_sub(i64::try_from(now.as_micros()).ok()?)
    }

    /// Where prediction should be at `now`: the server's time plus the lead.
    pub(super) fn target(&self, now: Timestamp) -> Option<ServerTime> {
        let aim = self.lead.aim(self.server_offset(now)?);
        Some(ServerTime::from_micros(now.as_micros().saturating_add_signed(aim)))
    }

    /// The server's time jumped to that of a snapshot: older samples say nothing of it.
    pub(super) fn jump(&mut self, now: Timestamp, cadence: Cadence, header: &Header) {
        let round_trip = self.clock.round_trip().unwrap_or_default();
        self.clock.reset();
        self.lead.reset();
        self.clock.sample(ClockSample {
            sent: now - round_trip,
            held: Duration::ZERO,
            server: cadence.end_of(header.tick) + header.late.unwrap_or_default(),
            received: now,
        });
    }

    /// Takes the round trip of the echoed input message, which was `sent` then, and the margins of input.
    pub(super) fn take_echo(
        &mut self,
        now: Timestamp,
        cadence: Cadence,
        header: &Header,
        sent: impl FnOnce(Seq) -> Option<Timestamp>,
    ) -> Course {
        let steps = self.clock.steps();
        let Some(echo) = header.echo else { return Course::On };
        if self.echo.replace(echo.seq) != Some(echo.seq) {
            self.echoed = now;
        }
        if let (Some(sent), Some(held), Some(late)) = (sent(echo.seq), echo.held, header.late) {
            let server = cadence.end_of(header.tick) + late;
            self.clock.sample(ClockSample { sent, held, server, received: now });
        }
        let course = if self.clock.steps() == steps { Course::On } else { Course::Jumped };
        if course == Course::Jumped {
            self.lead.reset();
        }
        self.margin = echo.newest.or(self.margin);
        self.lead.arrived(signed_difference(cadence.end_of(header.tick).as_micros(), now.as_micros()));
        for margin in [echo.least, echo.newest].into_iter().flatten() {
            self.lead.report(margin.seq, margin.micros);
        }
        course
    }
}
