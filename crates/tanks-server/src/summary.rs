//! What a server has done in its time, for the person who ends it.

use core::fmt;
use std::time::Duration;

use halftrack_io::{Histogram, RoomName, RoomStats};

use crate::app::App;

pub(crate) struct Summary {
    up: Duration,
    rooms: Vec<(RoomName, RoomStats)>,
    cpu: Option<Duration>,
}

impl Summary {
    pub(crate) fn of(app: &App) -> Self {
        Self { up: app.up(), rooms: app.lobby.stats(), cpu: crate::process::cpu_time() }
    }

    fn sum(&self, value: impl Fn(&RoomStats) -> u64) -> u64 {
        self.rooms.iter().map(|(_, stats)| value(stats)).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ticks, logins) = (self.sum(|stats| stats.server.ticks), self.sum(|stats| stats.server.logins));
        writeln!(
            f,
            "ran for {:.1} s: {ticks} ticks in {} rooms, {logins} logins",
            self.up.as_secs_f64(),
            self.rooms.len()
        )?;
        let worst = |of: fn(&RoomStats) -> &Histogram| {
            let p99 = self.rooms.iter().map(|(_, stats)| of(stats).percentile(99)).max();
            p99.unwrap_or_default()
        };
        let (time, late) = (worst(|stats| &stats.tick_time), worst(|stats| &stats.tick_delay));
        let overruns = self.sum(|stats| stats.overruns);
        writeln!(f, "tick p99 {time:?}, began late by p99 {late:?}, overruns {overruns}")?;
        let input = self.sum(|stats| stats.input.as_sent + stats.input.held).max(1);
        let missed = self.sum(|stats| stats.input.late + stats.input.lost);
        writeln!(
            f,
            "input late or lost in {:.4} % of the players' ticks",
            missed as f64 * 100.0 / input as f64
        )?;
        write!(f, "corrections that clients reported:")?;
        let mut any = false;
        for cause in halftrack::Cause::ALL {
            let count = self.sum(|stats| stats.server.reported.of(cause));
            if count > 0 {
                write!(f, " {cause} {count}")?;
                any = true;
            }
        }
        writeln!(f, "{}", if any { "" } else { " none" })?;
        if let Some(cpu) = self.cpu {
            writeln!(f, "CPU {:.1} s", cpu.as_secs_f64())?;
        }
        Ok(())
    }
}
