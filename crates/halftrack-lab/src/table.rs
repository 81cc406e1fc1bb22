//! Results for a terminal.

use std::fmt::Write as _;

use serde_json::Value;

use crate::runs::{PlanResult, number_at};

/// What is shown of a plan: path, and what it is called.
pub(crate) const ROWS: [(&str, &str); 40] = [
    ("own.mispredict_ratio", "ticks mispredicted by late or lost input"),
    ("own.snaps_per_player_minute", "snaps per player and minute"),
    ("own.corrections", "corrections"),
    ("own.correction_m.p95", "  size, m p95"),
    ("own.contact_correction_m.p95", "  size in contact, m p95"),
    ("own.contact_m_per_player_minute", "  in contact, m per player and minute"),
    ("own.correction_speed_mps.max", "  speed, m/s max"),
    ("own.offset_ms_to_converge.p95", "  time to converge, ms p95"),
    ("own.by_cause.unexplained", "  unexplained"),
    ("own.pending_ticks.p50", "pending ticks p50"),
    ("input.late_ratio", "input late"),
    ("input.lost_ratio", "input lost"),
    ("input.lead_ms.p50", "lead, ms p50"),
    ("input.excess_lead_ms.p50", "  beyond the link's delay, ms p50"),
    ("input.margin_ms.p50", "  margin, ms p50"),
    ("input.action_to_screen_ms.max", "action to screen, ms max"),
    ("input.action_to_server_ms.p50", "action to server, ms p50"),
    ("remote.delay_ms.p50", "others drawn behind, ms p50"),
    ("remote.hold_ratio", "  by guess or standing"),
    ("remote.pose_error_m.p99", "  off the truth, m p99"),
    ("remote.contact_error_m.p99", "  the same in contact, m p99"),
    ("combat.shots", "shots"),
    ("combat.agreed_ratio", "  as the screen showed"),
    ("emit.shots", "bodies emitted"),
    ("emit.lost", "  lost"),
    ("emit.doubled", "  doubled"),
    ("emit.unmatched", "  unmatched"),
    ("emit.revoked", "  births revoked"),
    ("emit.frames_to_screen.p99", "  frames to the screen, p99"),
    ("group.members.p95", "members of the group p95"),
    ("group.corrections", "  corrections"),
    ("group.correction_per_state_m.p95", "  size per state, m p95"),
    ("group.by_cause.unexplained", "  unexplained"),
    ("group.steps", "  steps on joining and leaving"),
    ("net.up_bytes_per_s", "up, bytes/s and client"),
    ("net.down_bytes_per_s", "down, bytes/s and client"),
    ("net.bytes_per_moving_entity", "  for each moving body, bytes"),
    ("events.lost", "events lost"),
    ("events.duplicated", "events duplicated"),
    ("invariants.violated", "invariants violated"),
];

/// A table of every plan, and what is wrong, if anything is.
pub fn table(results: &[PlanResult]) -> String {
    let mut text = String::new();
    for result in results {
        let PlanResult { plan, seed, seconds, players, machines, runs, .. } = result;
        let last = seed + runs.len().saturating_sub(1) as u64;
        let machines = if *machines > 0 { format!("{machines} machines, ") } else { String::new() };
        let _ = writeln!(text, "\n{plan}: {players} players, {machines}{seconds} s, seeds {seed} to {last}");
        let _ = writeln!(text, "  {:44}{:>14}{:>14}", "", "worst", "median");
        for (path, name) in ROWS {
            // Classic plans have neither.
            let absent = |part: &str| {
                path.starts_with(part) && number_at(&result.worst, part_count(part)) == Some(0.0)
            };
            if absent("emit.") || absent("group.") {
                continue;
            }
            let (worst, median) = (number_at(&result.worst, path), number_at(&result.median, path));
            let _ = writeln!(text, "  {name:44}{:>14}{:>14}", shown(worst), shown(median));
        }
        for (seed, found) in result.violations() {
            let client = found.client.map_or("the server".to_owned(), |client| format!("client {client}"));
            let _ = writeln!(
                text,
                "  VIOLATED {:?} at {:.3} s of seed {seed}, {client}: {}",
                found.rule, found.at_s, found.what
            );
        }
        for failure in &result.failed {
            let bounds = [
                failure.min.map(|min| format!("at least {min}")),
                failure.max.map(|max| format!("at most {max}")),
            ];
            let bounds: Vec<_> = bounds.into_iter().flatten().collect();
            let (path, seed) = (&failure.path, failure.seed);
            let _ = writeln!(
                text,
                "  FAILED {path} is {} at seed {seed}; expected {}",
                failure.got,
                bounds.join(", ")
            );
        }
    }
    text
}

/// The number that is zero where a plan has nothing of a part of the result.
fn part_count(part: &str) -> &'static str {
    if part == "emit." { "emit.shots" } else { "group.members.max" }
}

pub(crate) fn shown(number: Option<f64>) -> String {
    match number {
        None => "-".to_owned(),
        Some(number) if number.fract() == 0.0 && number.abs() < 1e12 => format!("{number}"),
        Some(number) if number.abs() < 0.1 => format!("{number:.5}"),
        Some(number) if number.abs() < 100.0 => format!("{number:.3}"),
        Some(number) => format!("{number:.1}"),
    }
}

/// Two result files side by side: the worst of every number that differs.
///
/// # Errors
/// When one of them is no result.
pub fn compare(before: &Value, after: &Value) -> Result<String, NotAResult> {
    let plans = |value: &Value| value.get("plans").and_then(Value::as_array).cloned().ok_or(NotAResult);
    let (before, after) = (plans(before)?, plans(after)?);
    let mut text = String::new();
    for plan in &after {
        let name = plan.get("plan").and_then(Value::as_str).ok_or(NotAResult)?;
        let old = before.iter().find(|old| old.get("plan").and_then(Value::as_str) == Some(name));
        let Some(old) = old else {
            let _ = writeln!(text, "\n{name}: only in the second");
            continue;
        };
        let (mut old_numbers, mut numbers) = (Vec::new(), Vec::new());
        flatten(old.get("worst").unwrap_or(&Value::Null), "", &mut old_numbers);
        flatten(plan.get("worst").unwrap_or(&Value::Null), "", &mut numbers);
        let _ = writeln!(text, "\n{name}\n  {:44}{:>14}{:>14}{:>10}", "worst", "before", "after", "");
        for (path, number) in numbers {
            let old = old_numbers.iter().find(|(known, _)| *known == path).map(|(_, number)| *number);
            if old == Some(number) {
                continue;
            }
            let change = old.filter(|old| *old != 0.0).map(|old| (number / old - 1.0) * 100.0);
            let change = change.map_or(String::new(), |change| format!("{change:+.1} %"));
            let _ = writeln!(text, "  {path:44}{:>14}{:>14}{change:>10}", shown(old), shown(Some(number)));
        }
    }
    Ok(text)
}

/// A file that is not what `run --json` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a result as `run --json` writes it")]
pub struct NotAResult;

fn flatten(value: &Value, path: &str, numbers: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(parts) => {
            for (key, part) in parts {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(part, &path, numbers);
            }
        }
        other => numbers.extend(other.as_f64().map(|number| (path.to_owned(), number))),
    }
}
