//! A report for a terminal: what must be known first comes first.

use std::fmt::Write as _;

use halftrack_lab::Distribution;

use super::report::Report;
use crate::words::Count;

pub(super) fn table(report: &Report) -> String {
    let mut text = Text(String::new());
    let Report { seconds, players, own, input, remote, combat, net, invariants, bots, server } = report;
    let _ = writeln!(text.0, "\n{}, {seconds:.1} s measured\n", Count(*players as u64, "bot"));
    text.row("disconnects", &net.disconnects.to_string());
    text.row("reconnects", &net.reconnects.to_string());
    text.row("input late", &percent(input.late_ratio));
    text.row("input lost", &percent(input.lost_ratio));
    text.row("corrections outside contact", &own.corrections_outside_contact.to_string());
    text.row("  of no known cause", &own.by_cause.unexplained.to_string());
    text.row("corrections in all", &own.corrections.to_string());
    text.row("  by collision, death, respawn", &{
        let by = &own.by_cause;
        format!("{}, {}, {}", by.collision, by.death, by.respawn)
    });
    text.row("  snaps per player and minute", &number(own.snaps_per_player_minute));
    text.row("ticks mispredicted by late or lost input", &percent(own.mispredict_ratio));
    let violated = format!("{} of {}", invariants.violated, invariants.checked);
    text.row("checks failed", &violated);
    text.row("snapshots that did not add up", &net.check_failed.to_string());

    text.head();
    text.spread("round trip, ms", &net.rtt_ms);
    text.spread("connecting, ms", &net.connect_ms);
    text.spread("lead, ms", &input.lead_ms);
    text.spread("margin of input, ms", &input.margin_ms);
    text.spread("action to screen, ms", &input.action_to_screen_ms);
    text.spread("others drawn behind, ms", &remote.delay_ms);
    text.spread("pending ticks", &own.pending_ticks);
    text.spread("correction, m", &own.correction_m);
    text.spread("  in contact, m", &own.contact_correction_m);
    text.spread("  time to converge, ms", &own.offset_ms_to_converge);
    if let Some(ticks) = server.and_then(|server| server.tick_ms) {
        text.spread("server's tick, ms", &ticks);
    }

    text.0.push('\n');
    text.row("others by guess or standing", &percent(remote.hold_ratio));
    text.row("shots, of which hits", &format!("{}, {}", combat.shots, combat.hits));
    text.row("  as the screen showed", &percent(combat.agreed_ratio));
    text.row("up, bytes/s and client", &number(net.up_bytes_per_s));
    text.row("down, bytes/s and client", &number(net.down_bytes_per_s));
    match server {
        Some(server) => {
            if let Some(cpu) = server.tick_cpu_us {
                text.row("server's CPU for each tick, us", &number(cpu));
            }
            if let Some(bytes) = server.rss_bytes {
                text.row("server's memory, MB", &number(bytes as f64 / 1e6));
            }
        }
        None => text.row("server", "not told: it has no /metrics"),
    }
    if bots.missed_frame_ratio > 0.01 {
        let _ = writeln!(
            text.0,
            "\n  The bots themselves had no time for {} of their frames: figures say as much about this machine as about\n  \
             the server. Ask for fewer bots, a lower --frame-hz, or more --threads.",
            percent(bots.missed_frame_ratio)
        );
    }
    for found in &invariants.list {
        let client = found.client.map_or(String::new(), |client| format!(", bot {client}"));
        let _ =
            writeln!(text.0, "  VIOLATED {:?} at {:.3} s{client}: {}", found.rule, found.at_s, found.what);
    }
    text.0
}

struct Text(String);

impl Text {
    fn row(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "  {name:42}{value:>14}");
    }

    fn head(&mut self) {
        let _ = writeln!(self.0, "\n  {:42}{:>10}{:>10}{:>10}{:>10}", "", "p50", "p95", "p99", "max");
    }

    fn spread(&mut self, name: &str, told: &Distribution) {
        let [p50, p95, p99, max] = [told.p50, told.p95, told.p99, told.max].map(number);
        let _ = writeln!(self.0, "  {name:42}{p50:>10}{p95:>10}{p99:>10}{max:>10}");
    }
}

fn percent(ratio: f64) -> String {
    format!("{:.3} %", ratio * 100.0)
}

fn number(number: f64) -> String {
    match number {
        number if number.is_infinite() => "beyond".to_owned(),
        number if number.fract() == 0.0 && number.abs() < 1e12 => format!("{number}"),
        number if number.abs() < 0.1 => format!("{number:.4}"),
        number if number.abs() < 100.0 => format!("{number:.2}"),
        number => format!("{number:.0}"),
    }
}
