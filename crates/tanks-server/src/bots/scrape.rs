//! What a server says of itself at `/metrics`: Prometheus text, of which a few lines matter here.

use halftrack_lab::Distribution;
use serde::Serialize;

/// What a server had counted at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scrape {
    ticks: Option<f64>,
    cpu_seconds: Option<f64>,
    rss_bytes: Option<f64>,
    /// Upper edges in seconds and how many ticks took no longer, in order.
    tick_seconds: Vec<(f64, f64)>,
}

/// The server over the span that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct ServerFigures {
    /// CPU time of the whole process for each tick of the room, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tick_cpu_us: Option<f64>,
    /// How long ticks took in all rooms, rounded up to the edge of a class; none (`null`) beyond the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tick_ms: Option<Distribution>,
    /// Memory at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rss_bytes: Option<u64>,
}

impl Scrape {
    pub(super) const PATH: &str = "/metrics";

    /// Reads what concerns `room`, or all rooms where nothing is said of one. Lines that are none of ours, or mean nothing, are passed over.
    pub(super) fn read(text: &str, room: &str) -> Self {
        let (mut scrape, mut own_ticks) = (Self::default(), None);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some(Sample { name, labels, value }) = Sample::read(line) else { continue };
            match name {
                // The room's own, where the server shows them: `metrics.rooms`.
                "halftrack_room_ticks_total" if label(labels, "room") == Some(room) => {
                    own_ticks = Some(value);
                }
                "halftrack_ticks_total" => scrape.ticks = Some(value),
                "halftrack_tick_seconds_bucket" => {
                    let edge = label(labels, "le").and_then(|edge| match edge {
                        "+Inf" => Some(f64::INFINITY),
                        edge => edge.parse().ok(),
                    });
                    scrape.tick_seconds.extend(edge.map(|edge| (edge, value)));
                }
                "process_cpu_seconds_total" => scrape.cpu_seconds = Some(value),
                "process_resident_memory_bytes" => scrape.rss_bytes = Some(value),
                _ => {}
            }
        }
        scrape.ticks = own_ticks.or(scrape.ticks);
        scrape.tick_seconds.sort_by(|one, other| one.0.total_cmp(&other.0));
        scrape
    }

    /// What happened since `before`.
    pub(super) fn since(&self, before: &Self) -> ServerFigures {
        let ticks = self.ticks.zip(before.ticks).map(|(now, before)| now - before);
        let cpu = self.cpu_seconds.zip(before.cpu_seconds).map(|(now, before)| now - before);
        let tick_cpu_us = cpu.zip(ticks.filter(|ticks| *ticks > 0.0)).map(|(cpu, ticks)| cpu * 1e6 / ticks);
        let counts: Vec<_> = self
            .tick_seconds
            .iter()
            .map(|(edge, count)| {
                let known = before.tick_seconds.iter().find(|(known, _)| known == edge);
                (*edge, count - known.map_or(0.0, |known| known.1))
            })
            .collect();
        ServerFigures {
            tick_cpu_us,
            tick_ms: by_classes(&counts),
            rss_bytes: self.rss_bytes.map(|bytes| bytes as u64),
        }
    }
}

/// The distribution of ticks, of which so many took no longer than each edge.
fn by_classes(counts: &[(f64, f64)]) -> Option<Distribution> {
    let all = counts.last().map(|last| last.1).filter(|all| *all > 0.0)?;
    let rank = |share: f64| {
        let wanted = (share * all).ceil();
        let class = counts.iter().find(|(_, count)| *count >= wanted);
        class.map_or(f64::INFINITY, |(edge, _)| edge * 1e3)
    };
    Some(Distribution { p50: rank(0.5), p95: rank(0.95), p99: rank(0.99), max: rank(1.0) })
}

struct Sample<'a> {
    name: &'a str,
    labels: &'a str,
    value: f64,
}

impl<'a> Sample<'a> {
    /// `name{labels} value`, with or without labels and a time behind it. Labels of ours have neither spaces nor braces
    /// in them.
    fn read(line: &'a str) -> Option<Self> {
        let (series, rest) = match line.split_once('}') {
            Some((series, rest)) => (series, rest),
            None => line.split_once(' ')?,
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Self { name: name.trim(), labels, value })
    }
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"
# HELP halftrack_ticks_total Ticks.
# TYPE halftrack_ticks_total counter
halftrack_ticks_total 107
halftrack_room_ticks_total{room="main"} 100
halftrack_room_ticks_total{room="duel"} 7
halftrack_tick_seconds_bucket{le="0.001"} 90
halftrack_tick_seconds_bucket{le="0.002"} 100
halftrack_tick_seconds_bucket{le="+Inf"} 100
process_cpu_seconds_total 1.5
process_resident_memory_bytes 1000000 1700000000000
this is nothing
"#;
    const AFTER: &str = r#"
halftrack_room_ticks_total{room="main"} 300
halftrack_ticks_total 607
halftrack_tick_seconds_sum 0.3
halftrack_tick_seconds_bucket{le="0.001"} 190
halftrack_tick_seconds_bucket{le="0.002"} 298
halftrack_tick_seconds_bucket{le="+Inf"} 300
process_cpu_seconds_total 1.75
process_resident_memory_bytes 2e6
"#;

    #[test]
    fn figures_are_those_of_the_span_between_and_of_the_room() {
        let (before, after) = (Scrape::read(BEFORE, "main"), Scrape::read(AFTER, "main"));
        assert_eq!(before.ticks, Some(100.0));
        let told = after.since(&before);
        assert_eq!(told.tick_cpu_us, Some(1_250.0));
        assert_eq!(told.rss_bytes, Some(2_000_000));
        // Of 200 ticks 100 took up to 1 ms, 198 up to 2 ms; the last two took longer than any edge says.
        let ticks = Distribution { p50: 1.0, p95: 2.0, p99: 2.0, max: f64::INFINITY };
        assert_eq!(told.tick_ms, Some(ticks));
        let json = serde_json::to_value(told).unwrap();
        assert!(json["tick_ms"]["max"].is_null());
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let told = Scrape::read("", "main").since(&Scrape::default());
        assert_eq!(told, ServerFigures { tick_cpu_us: None, tick_ms: None, rss_bytes: None });
        assert_eq!(serde_json::to_string(&told).unwrap(), "{}");
        let other = Scrape::read(AFTER, "other").since(&Scrape::read(BEFORE, "other"));
        assert_eq!(other.tick_cpu_us, Some(500.0), "a room without series of its own: all rooms together");
    }
}
