//! What a server has done in its time, for the person who ends it.

use core::fmt;
use std::time::Duration;

use crate::app::App;
use crate::lobby::Census;
use crate::words::Count;

pub(crate) struct Summary {
    up: Duration,
    census: Census,
    cpu: Option<Duration>,
}

impl Summary {
    pub(crate) fn of(app: &App) -> Self {
        Self { up: app.up(), census: app.lobby.census(0), cpu: crate::process::cpu_time() }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Census { made, total, .. } = &self.census;
        writeln!(
            f,
            "ran for {:.1} s: {} in {}, {}",
            self.up.as_secs_f64(),
            Count(total.server.ticks, "tick"),
            Count(*made, "room"),
            Count(total.server.logins, "login")
        )?;
        let (time, late) = (total.tick_time.percentile(99), total.tick_delay.percentile(99));
        let overruns = total.overruns;
        writeln!(f, "tick p99 {time:?}, began late by p99 {late:?}, overruns {overruns}")?;
        let input = (total.input.as_sent + total.input.held).max(1);
        let missed = total.input.late + total.input.lost;
        writeln!(
            f,
            "input late or lost in {:.4} % of the players' ticks",
            missed as f64 * 100.0 / input as f64
        )?;
        write!(f, "corrections that clients reported:")?;
        let mut any = false;
        for cause in halftrack::Cause::ALL {
            let count = total.server.reported.of(cause);
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
