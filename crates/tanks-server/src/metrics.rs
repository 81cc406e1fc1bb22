//! `/metrics`: what has been counted, as Prometheus reads it.
//!
//! Rooms and the door count for themselves, in plain numbers; this only writes them down, when somebody asks.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use halftrack::session::DisconnectReason;
use halftrack_io::{DoorStats, Histogram, RoomName, RoomStats};

use crate::process;
use crate::record::Counted;

/// Of the program rather than of a room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Program {
    pub(crate) rooms_made: u64,
    pub(crate) rooms_removed: u64,
    pub(crate) door: DoorStats,
    pub(crate) up: Duration,
    /// If matches are written.
    pub(crate) recording: Option<Counted>,
}

/// The text.
pub(crate) fn write(rooms: &[(RoomName, RoomStats)], program: Program) -> String {
    let mut page = Page::default();
    page.gauge("halftrack_rooms", "Rooms there are.", [("", rooms.len())]);
    page.counter("halftrack_rooms_made_total", "Rooms made.", [("", program.rooms_made)]);
    page.counter("halftrack_rooms_removed_total", "Rooms removed.", [("", program.rooms_removed)]);
    page.gauge(
        "halftrack_connections",
        "Connections by QUIC, WebTransport and WebSocket, those included that are still shaking hands.",
        [("", program.door.connections)],
    );
    if let Some(recording) = program.recording {
        page.counter("halftrack_recorded_bytes_total", "Bytes written of matches.", [("", recording.bytes)]);
        page.counter(
            "halftrack_recording_failures_total",
            "Matches that could not be written any more, and times that the disk did not take them.",
            [("", recording.failures)],
        );
        page.counter(
            "halftrack_recording_syncs_total",
            "Times that a match was put on the disk.",
            [("", recording.syncs)],
        );
    }
    let each = |value: fn(&RoomStats) -> u64| {
        rooms.iter().map(move |(room, stats)| (format!("room=\"{room}\""), value(stats)))
    };
    page.gauge(
        "halftrack_players",
        "Players in a room, those included who may come back.",
        each(|stats| stats.players as u64),
    );
    page.counter("halftrack_logins_total", "Players let in.", each(|stats| stats.server.logins));
    // Without a room: refused before one was made.
    let early = [(String::new(), program.door.refused)];
    let refused = each(|stats| stats.server.refused).chain(early);
    page.counter("halftrack_refused_total", "Logins refused.", refused);
    page.counter("halftrack_ticks_total", "Ticks simulated.", each(|stats| stats.server.ticks));
    page.counter(
        "halftrack_overruns_total",
        "Ticks that were not done when the next was due.",
        each(|stats| stats.overruns),
    );
    page.counter(
        "halftrack_catch_up_ticks_total",
        "Ticks simulated after a later one was due.",
        each(|stats| stats.server.catch_up_ticks),
    );
    page.counter(
        "halftrack_slips_total",
        "Stalls too long to be caught up with.",
        each(|stats| stats.server.slips),
    );
    page.histograms(
        "halftrack_tick_seconds",
        "From waking up for a tick to the last byte handed out.",
        rooms.iter().map(|(room, stats)| (room, &stats.tick_time)),
    );
    page.histograms(
        "halftrack_tick_delay_seconds",
        "How long after it was due a tick began.",
        rooms.iter().map(|(room, stats)| (room, &stats.tick_delay)),
    );
    page.input(rooms);
    page.corrections(rooms);
    page.traffic(rooms);
    page.drops(rooms, &program.door);
    page.door(&program.door);
    if let Some(cpu) = process::cpu_time() {
        page.counter("process_cpu_seconds_total", "CPU time of the process.", [("", cpu.as_secs_f64())]);
    }
    if let Some(bytes) = process::resident_bytes() {
        page.gauge("process_resident_memory_bytes", "Memory of the process.", [("", bytes)]);
    }
    if let Some(threads) = process::threads() {
        page.gauge("process_threads", "Threads of the process.", [("", threads)]);
    }
    page.gauge("process_uptime_seconds", "How long the program has run.", [("", program.up.as_secs_f64())]);
    page.0
}

#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    fn family(&mut self, name: &str, help: &str, kind: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    pub(crate) fn counter<L: AsRef<str>, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) {
        self.family(name, help, "counter");
        for (labels, value) in samples {
            self.sample(name, labels.as_ref(), value);
        }
    }

    fn gauge<L: AsRef<str>, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) {
        self.family(name, help, "gauge");
        for (labels, value) in samples {
            self.sample(name, labels.as_ref(), value);
        }
    }

    /// Four buckets for each doubling from 64 us to 0.5 s: a quantile is within a quarter.
    fn histograms<'a>(
        &mut self,
        name: &str,
        help: &str,
        rooms: impl Iterator<Item = (&'a RoomName, &'a Histogram)>,
    ) {
        self.family(name, help, "histogram");
        for (room, histogram) in rooms {
            let shown = |end: Duration| (64..=524_287).contains(&end.as_micros());
            let classes =
                histogram.cumulative().enumerate().filter(|(class, (end, _))| class % 2 == 1 && shown(*end));
            for (_, (end, count)) in classes {
                // A class ends just below the next one's beginning.
                let end = (end + Duration::from_micros(1)).as_secs_f64();
                self.sample(&format!("{name}_bucket"), &format!("room=\"{room}\",le=\"{end}\""), count);
            }
            let count = histogram.count();
            self.sample(&format!("{name}_bucket"), &format!("room=\"{room}\",le=\"+Inf\""), count);
            self.sample(&format!("{name}_sum"), &format!("room=\"{room}\""), histogram.sum().as_secs_f64());
            self.sample(&format!("{name}_count"), &format!("room=\"{room}\""), count);
        }
    }

    fn input(&mut self, rooms: &[(RoomName, RoomStats)]) {
        let samples = rooms.iter().flat_map(|(room, stats)| {
            let input = &stats.input;
            let fates = [("as_sent", input.as_sent), ("held", input.held)];
            fates.map(|(fate, count)| (format!("room=\"{room}\",fate=\"{fate}\""), count))
        });
        self.counter(
            "halftrack_input_ticks_total",
            "Ticks of players, by whether all of their input was there in time.",
            samples,
        );
        let samples = rooms.iter().flat_map(|(room, stats)| {
            let input = &stats.input;
            let reasons = [
                ("late", input.late),
                ("lost", input.lost),
                ("far_future", input.far_future),
                ("altered", input.altered),
            ];
            reasons.map(|(reason, count)| (format!("room=\"{room}\",reason=\"{reason}\""), count))
        });
        self.counter(
            "halftrack_input_missed_total",
            "Ticks of players whose input came too late, never, too far ahead, or after something else was used.",
            samples,
        );
    }

    fn corrections(&mut self, rooms: &[(RoomName, RoomStats)]) {
        let samples = rooms.iter().flat_map(|(room, stats)| {
            let reported = stats.server.reported;
            let labelled = |(cause, count)| (format!("room=\"{room}\",cause=\"{cause}\""), count);
            reported.iter().map(labelled).collect::<Vec<(String, u64)>>()
        });
        self.counter(
            "halftrack_corrections_total",
            "Corrections of predictions, as clients report them.",
            samples,
        );
        let snaps =
            rooms.iter().map(|(room, stats)| (format!("room=\"{room}\""), stats.server.reported_snaps));
        self.counter("halftrack_snaps_total", "Of these, the ones that jumped.", snaps);
    }

    fn traffic(&mut self, rooms: &[(RoomName, RoomStats)]) {
        let ways = |stats: &RoomStats| {
            [
                ("reliable", "in", stats.stream_in),
                ("reliable", "out", stats.stream_out),
                ("sync", "in", stats.datagrams_in),
                ("sync", "out", stats.datagrams_out),
            ]
        };
        let label = |room: &RoomName, lane: &str, way: &str| {
            format!("room=\"{room}\",lane=\"{lane}\",direction=\"{way}\"")
        };
        let bytes = rooms.iter().flat_map(|(room, stats)| {
            ways(stats).map(|(lane, way, traffic)| (label(room, lane, way), traffic.bytes))
        });
        self.counter("halftrack_bytes_total", "Payload by lane.", bytes);
        let pieces = rooms.iter().flat_map(|(room, stats)| {
            ways(stats).map(|(lane, way, traffic)| (label(room, lane, way), traffic.count))
        });
        self.counter("halftrack_pieces_total", "Datagrams, or pieces of a stream, by lane.", pieces);
        let snapshots =
            rooms.iter().map(|(room, stats)| (format!("room=\"{room}\""), stats.server.snapshots));
        self.counter("halftrack_snapshots_total", "Snapshots written.", snapshots);
    }

    fn door(&mut self, door: &DoorStats) {
        let reasons = [
            ("full", door.full),
            ("address_full", door.address_full),
            ("handshake_rate", door.handshake_rate),
            ("banned", door.banned),
            ("origin", door.origin),
            ("http_full", door.http_refused),
            ("request_rate", door.request_rate),
            ("handshake_timeout", door.handshake_timeouts),
            ("handshake_failed", door.handshakes_failed),
            ("too_much", door.too_much),
        ];
        self.counter(
            "halftrack_turned_away_total",
            "Connections that came to nothing or were ended at the door, by reason.",
            reasons.map(|(reason, count)| (format!("reason=\"{reason}\""), count)),
        );
        self.counter(
            "halftrack_retries_total",
            "Peers that had to prove their address.",
            [("", door.retries)],
        );
        self.counter(
            "halftrack_migrations_total",
            "Connections that went on from another address.",
            [("", door.moved)],
        );
        self.gauge("halftrack_handshakes", "Handshakes that are not finished.", [("", door.unfinished)]);
        self.gauge("halftrack_http_connections", "HTTP connections.", [("", door.http_connections)]);
        self.gauge("halftrack_known_addresses", "Addresses that are remembered.", [("", door.addresses)]);
        self.gauge("halftrack_banned_addresses", "Addresses that are kept out.", [("", door.bans)]);
    }

    /// What came before a login has no room, and is counted without one.
    fn drops(&mut self, rooms: &[(RoomName, RoomStats)], door: &DoorStats) {
        let samples = rooms.iter().flat_map(|(room, stats)| {
            let server = &stats.server;
            let reasons = [
                ("too_fast", stats.dropped_in),
                ("replaced", stats.dropped_out),
                ("stale", server.stale_inputs),
                ("malformed", server.malformed_datagrams),
                ("stray", server.stray_datagrams),
            ];
            reasons.map(|(reason, count)| (format!("room=\"{room}\",reason=\"{reason}\""), count))
        });
        let samples = samples.chain([("reason=\"stray\"".to_owned(), door.stray_datagrams)]);
        self.counter("halftrack_dropped_total", "Datagrams dropped, by reason.", samples);
        let bad_acks = rooms.iter().map(|(room, stats)| (format!("room=\"{room}\""), stats.server.bad_acks));
        self.counter(
            "halftrack_bad_acks_total",
            "Input messages that acknowledge what was never sent, or too long ago.",
            bad_acks,
        );
        let closed = rooms.iter().flat_map(|(room, stats)| {
            let of = |reason: DisconnectReason| {
                (format!("room=\"{room}\",reason=\"{}\"", reason_name(reason)), stats.closed(reason))
            };
            let cut = (format!("room=\"{room}\",reason=\"cut\""), stats.cut);
            DisconnectReason::ALL.map(of).into_iter().chain([cut]).collect::<Vec<_>>()
        });
        let early = DisconnectReason::ALL
            .map(|reason| (format!("reason=\"{}\"", reason_name(reason)), door.closed(reason)));
        self.counter("halftrack_closed_total", "Connections ended, by reason.", closed.chain(early));
    }
}

/// As in `TooSlow`: `too_slow`.
pub(crate) fn reason_name(reason: DisconnectReason) -> String {
    let mut name = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_one_that_prometheus_reads() {
        let rooms = [
            (RoomName::default(), RoomStats::default()),
            (RoomName::new("duel").unwrap(), RoomStats::default()),
        ];
        let text = write(&rooms, Program::default());
        let mut families = std::collections::BTreeSet::new();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                assert!(
                    families.insert(family.split(' ').next().unwrap().to_owned()),
                    "{line} is there twice"
                );
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let name = series.split('{').next().unwrap();
                let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                assert!(
                    families.contains(name) || base.is_some_and(|base| families.contains(base)),
                    "{line}"
                );
                let labels = series.strip_prefix(name).unwrap();
                assert!(labels.is_empty() || (labels.starts_with("{") && labels.ends_with("\"}")), "{line}");
            }
        }
        assert!(text.contains("halftrack_ticks_total{room=\"duel\"} 0\n"));
        assert!(text.contains("halftrack_corrections_total{room=\"main\",cause=\"unexplained\"} 0\n"));
        assert!(text.contains("halftrack_closed_total{room=\"main\",reason=\"too_slow\"} 0\n"));
        assert!(text.contains("halftrack_closed_total{reason=\"login_timeout\"} 0\n"));
        assert!(text.contains("halftrack_refused_total 0\n"));
    }
}
