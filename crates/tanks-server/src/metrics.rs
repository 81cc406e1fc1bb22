//! `/metrics`: what has been counted, as Prometheus reads it.
//!
//! Rooms and the door count for themselves, in plain numbers; this only writes them down for a reader. Every counter is a
//! sum over all rooms, those that are gone included: it never goes back. Rooms have a few series of their own, under names
//! that begin with `halftrack_room_`, as many rooms as `metrics.rooms` says: the length of the text does not grow with the
//! number of rooms.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use halftrack::session::DisconnectReason;
use halftrack::wire::control::PROTOCOL;
use halftrack::{CauseSizes, CorrectionSizes, SizeCounts};
use halftrack_io::{DoorStats, Histogram, RoomStats, Traffic};

use crate::lobby::Census;
use crate::process;
use crate::record::Counted;
use crate::world::BodyCount;

/// Of the program rather than of its rooms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Program {
    pub(crate) door: DoorStats,
    pub(crate) up: Duration,
    /// When it started, seconds since 1970.
    pub(crate) started: f64,
    pub(crate) draining: bool,
    /// If matches are written.
    pub(crate) recording: Option<Counted>,
}

/// The text.
pub(crate) fn write(census: &Census, program: &Program) -> String {
    let mut page = Page::default();
    let Census { rooms, made, removed, total, .. } = census;
    page.build();
    let draining = u8::from(program.draining);
    page.gauge(
        "halftrack_draining",
        "1 while the server lets no new player in, because it ends.",
        [("", draining)],
    );
    page.gauge("halftrack_rooms", "Rooms there are.", [("", rooms)]);
    page.counter("halftrack_rooms_made_total", "Rooms made.", [("", made)]);
    page.counter("halftrack_rooms_removed_total", "Rooms removed.", [("", removed)]);
    page.gauge(
        "halftrack_connections",
        "Connections by QUIC, WebTransport and WebSocket, those included that are still shaking hands.",
        [("", program.door.connections)],
    );
    page.gauge("halftrack_players", "Players, those included who may come back.", [("", total.players)]);
    page.gauge("halftrack_players_away", "Players who were cut and may come back.", [("", total.away)]);
    let bodies =
        BodyCount::DRIVERS.map(|driver| format!("driver=\"{driver}\"")).into_iter().zip(census.bodies);
    page.gauge("halftrack_bodies", "Bodies in all rooms, by their driver.", bodies);
    page.counter(
        "halftrack_bodies_refused_total",
        "Players without a body, because their room had as many as it takes.",
        [("", census.refused_bodies)],
    );
    page.recording(program.recording);
    page.counter("halftrack_logins_total", "Players let in.", [("", total.server.logins)]);
    let refused = total.server.refused + program.door.refused;
    page.counter("halftrack_refused_total", "Logins refused.", [("", refused)]);
    page.ticks(total);
    page.input(total);
    page.corrections(total);
    page.traffic(total);
    page.drops(total, &program.door);
    page.door(&program.door);
    page.rooms(census);
    page.process(program);
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
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family(name, help, "histogram");
        let shown = |end: Duration| (64..=524_287).contains(&end.as_micros());
        let classes =
            histogram.cumulative().enumerate().filter(|(class, (end, _))| class % 2 == 1 && shown(*end));
        for (_, (end, count)) in classes {
            // A class ends just below the next one's beginning.
            let end = (end + Duration::from_micros(1)).as_secs_f64();
            self.sample(&format!("{name}_bucket"), &format!("le=\"{end}\""), count);
        }
        let count = histogram.count();
        self.sample(&format!("{name}_bucket"), "le=\"+Inf\"", count);
        self.sample(&format!("{name}_sum"), "", histogram.sum().as_secs_f64());
        self.sample(&format!("{name}_count"), "", count);
    }

    fn build(&mut self) {
        let (version, rustc) = (env!("CARGO_PKG_VERSION"), env!("TANKS_RUSTC"));
        // Set where the program is built for others.
        let commit = option_env!("TANKS_COMMIT").unwrap_or("unknown");
        let labels =
            format!("version=\"{version}\",protocol=\"{PROTOCOL}\",rustc=\"{rustc}\",commit=\"{commit}\"");
        self.gauge("halftrack_build_info", "What this server is, in its labels; always 1.", [(labels, 1)]);
    }

    fn process(&mut self, program: &Program) {
        if let Some(cpu) = process::cpu_time() {
            self.counter("process_cpu_seconds_total", "CPU time of the process.", [("", cpu.as_secs_f64())]);
        }
        let numbers = [
            ("process_resident_memory_bytes", "Memory of the process.", process::resident_bytes()),
            ("process_threads", "Threads of the process.", process::threads()),
            ("process_open_fds", "File descriptors that are open: sockets and files.", process::open_fds()),
            ("process_max_fds", "File descriptors that may be open.", process::max_fds()),
        ];
        for (name, help, number) in numbers {
            if let Some(number) = number {
                self.gauge(name, help, [("", number)]);
            }
        }
        let started = [("", program.started)];
        self.gauge("process_start_time_seconds", "When the program started, seconds since 1970.", started);
        let up = [("", program.up.as_secs_f64())];
        self.gauge("process_uptime_seconds", "How long the program has run.", up);
    }

    fn recording(&mut self, recording: Option<Counted>) {
        let Some(recording) = recording else { return };
        self.counter("halftrack_recorded_bytes_total", "Bytes written of matches.", [("", recording.bytes)]);
        self.counter(
            "halftrack_recording_failures_total",
            "Matches that could not be written any more, and times that the disk did not take them.",
            [("", recording.failures)],
        );
        self.counter(
            "halftrack_recording_syncs_total",
            "Times that a match was put on the disk.",
            [("", recording.syncs)],
        );
    }

    fn ticks(&mut self, total: &RoomStats) {
        let server = &total.server;
        for (name, help, count) in [
            ("halftrack_ticks_total", "Ticks simulated.", server.ticks),
            ("halftrack_overruns_total", "Ticks that were not done when the next was due.", total.overruns),
            (
                "halftrack_catch_up_ticks_total",
                "Ticks simulated after a later one was due.",
                server.catch_up_ticks,
            ),
            ("halftrack_slips_total", "Stalls too long to be caught up with.", server.slips),
        ] {
            self.counter(name, help, [("", count)]);
        }
        self.histogram(
            "halftrack_tick_seconds",
            "From waking up for a tick to the last byte handed out.",
            &total.tick_time,
        );
        self.histogram(
            "halftrack_tick_delay_seconds",
            "How long after it was due a tick began.",
            &total.tick_delay,
        );
    }

    fn input(&mut self, total: &RoomStats) {
        self.counter(
            "halftrack_input_ticks_total",
            "Ticks of players, by whether all of their input was there in time.",
            fates(total).map(|(fate, count)| (format!("fate=\"{fate}\""), count)),
        );
        self.counter(
            "halftrack_input_missed_total",
            "Ticks of players whose input came too late, never, too far ahead, or after something else was used.",
            missed(total).map(|(reason, count)| (format!("reason=\"{reason}\""), count)),
        );
    }

    fn corrections(&mut self, total: &RoomStats) {
        let by_cause = total.server.reported;
        self.counter(
            "halftrack_corrections_total",
            "Corrections of predictions, as clients report them.",
            by_cause.iter().map(|(cause, count)| (format!("cause=\"{cause}\""), count)),
        );
        let snaps = [("", total.server.reported_snaps)];
        self.counter("halftrack_snaps_total", "Of these, the ones that jumped.", snaps);
        // spec: DIAG-03
        self.sizes(
            "halftrack_correction_meters",
            "How far corrections moved the predicted position, as clients report it.",
            &total.server.reported_sizes,
            |sizes| sizes.distance,
        );
        self.sizes(
            "halftrack_correction_radians",
            "How far corrections turned the predicted heading, as clients report it.",
            &total.server.reported_sizes,
            |sizes| sizes.angle,
        );
    }

    fn sizes(
        &mut self,
        name: &str,
        help: &str,
        by_cause: &CorrectionSizes,
        of: fn(CauseSizes) -> SizeCounts,
    ) {
        self.family(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        for (cause, sizes) in by_cause.iter() {
            let sizes = of(sizes);
            for (edge, count) in sizes.cumulative() {
                self.sample(&bucket, &format!("cause=\"{cause}\",le=\"{edge}\""), count);
            }
            let labels = format!("cause=\"{cause}\"");
            self.sample(&bucket, &format!("{labels},le=\"+Inf\""), sizes.count());
            self.sample(&format!("{name}_sum"), &labels, sizes.sum());
            self.sample(&format!("{name}_count"), &labels, sizes.count());
        }
    }

    fn traffic(&mut self, total: &RoomStats) {
        let label = |lane, way| format!("lane=\"{lane}\",direction=\"{way}\"");
        let bytes = ways(total).map(|(lane, way, traffic)| (label(lane, way), traffic.bytes));
        self.counter("halftrack_bytes_total", "Payload by lane.", bytes);
        let pieces = ways(total).map(|(lane, way, traffic)| (label(lane, way), traffic.count));
        self.counter("halftrack_pieces_total", "Datagrams, or pieces of a stream, by lane.", pieces);
        self.counter("halftrack_snapshots_total", "Snapshots written.", [("", total.server.snapshots)]);
        let full = [("", total.server.full_states)];
        self.counter(
            "halftrack_full_states_total",
            "Snapshots replaced by a full state on the reliable lane.",
            full,
        );
        let dead = [
            ("direction=\"up\"", total.server.sync_up_dead),
            ("direction=\"down\"", total.server.sync_down_dead),
        ];
        self.counter(
            "halftrack_sync_link_dead_total",
            "Times that datagrams of a player stopped arriving while its reliable link lived.",
            dead,
        );
    }

    /// Rooms one by one, as many as the config allows.
    fn rooms(&mut self, census: &Census) {
        if census.oldest.is_empty() {
            return;
        }
        let each = |value: fn(&RoomStats) -> u64| {
            census.oldest.iter().map(move |(room, stats)| (format!("room=\"{room}\""), value(stats)))
        };
        self.gauge(
            "halftrack_room_players",
            "Players in a room, those included who may come back.",
            each(|stats| stats.players as u64),
        );
        let counters: [RoomCounter; 5] = [
            ("halftrack_room_logins_total", "Players let into a room.", |stats| stats.server.logins),
            ("halftrack_room_ticks_total", "Ticks of a room.", |stats| stats.server.ticks),
            ("halftrack_room_overruns_total", "Ticks of a room that took too long.", |stats| stats.overruns),
            ("halftrack_room_slips_total", "Stalls of a room that were too long.", |stats| {
                stats.server.slips
            }),
            ("halftrack_room_snaps_total", "Corrections in a room that jumped.", |stats| {
                stats.server.reported_snaps
            }),
        ];
        for (name, help, value) in counters {
            self.counter(name, help, each(value));
        }
        self.family("halftrack_room_tick_seconds", "What the ticks of a room took.", "summary");
        for (room, stats) in &census.oldest {
            let (labels, took) = (format!("room=\"{room}\""), &stats.tick_time);
            self.sample("halftrack_room_tick_seconds_sum", &labels, took.sum().as_secs_f64());
            self.sample("halftrack_room_tick_seconds_count", &labels, took.count());
        }
        let labelled = |label: &'static str, values: fn(&RoomStats) -> Vec<(&'static str, u64)>| {
            census.oldest.iter().flat_map(move |(room, stats)| {
                let one = move |(value, count)| (format!("room=\"{room}\",{label}=\"{value}\""), count);
                values(stats).into_iter().map(one).collect::<Vec<_>>()
            })
        };
        self.counter(
            "halftrack_room_input_missed_total",
            "Ticks of a room's players whose input was not there in time.",
            labelled("reason", |stats| missed(stats).to_vec()),
        );
        self.counter(
            "halftrack_room_corrections_total",
            "Corrections in a room, as clients report them.",
            labelled("cause", |stats| {
                stats.server.reported.iter().map(|(cause, count)| (cause.name(), count)).collect()
            }),
        );
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

    fn drops(&mut self, total: &RoomStats, door: &DoorStats) {
        let server = &total.server;
        let reasons = [
            ("too_fast", total.dropped_in),
            ("replaced", total.dropped_out),
            ("stale", server.stale_inputs),
            ("malformed", server.malformed_datagrams),
            // Before a login, or without one.
            ("stray", server.stray_datagrams + door.stray_datagrams),
        ];
        let samples = reasons.map(|(reason, count)| (format!("reason=\"{reason}\""), count));
        self.counter("halftrack_dropped_total", "Datagrams dropped, by reason.", samples);
        self.counter(
            "halftrack_bad_acks_total",
            "Input messages that acknowledge what was never sent, or too long ago.",
            [("", server.bad_acks)],
        );
        let of = |reason: DisconnectReason| (reason.name(), total.closed(reason) + door.closed(reason));
        let closed = DisconnectReason::ALL.map(of).into_iter().chain([("cut", total.cut)]);
        let closed = closed.map(|(reason, count)| (format!("reason=\"{reason}\""), count));
        self.counter("halftrack_closed_total", "Connections ended, by reason.", closed);
    }
}

/// Name, help and value of a counter of one room.
type RoomCounter = (&'static str, &'static str, fn(&RoomStats) -> u64);

/// Ticks of players, by whether their input was there.
fn fates(stats: &RoomStats) -> [(&'static str, u64); 2] {
    [("as_sent", stats.input.as_sent), ("held", stats.input.held)]
}

/// Ticks of players whose input was not there, or was not taken, by reason.
fn missed(stats: &RoomStats) -> [(&'static str, u64); 4] {
    let input = &stats.input;
    [("late", input.late), ("lost", input.lost), ("far_future", input.far_future), ("altered", input.altered)]
}

/// Lanes, directions, and what went there.
fn ways(stats: &RoomStats) -> [(&'static str, &'static str, Traffic); 4] {
    [
        ("reliable", "in", stats.stream_in),
        ("reliable", "out", stats.stream_out),
        ("sync", "in", stats.datagrams_in),
        ("sync", "out", stats.datagrams_out),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack_io::RoomName;
    use std::collections::BTreeSet;

    fn census(rooms: usize, shown: usize) -> Census {
        // As long as a name can be, and numbers of a server that has run for a month.
        let mut stats = RoomStats::default();
        (stats.players, stats.overruns) = (200, 123_456);
        stats.server.ticks = 51_840_000;
        stats.input.late = 123_456_789;
        let name = |room| RoomName::new(&format!("{room:032}")).unwrap();
        let oldest = (0..rooms.min(shown)).map(|room| (name(room), stats)).collect();
        let mut total = RoomStats::default();
        (0..rooms).for_each(|_| total.merge(&stats));
        let bodies = [200, 6, 0].map(|bodies| bodies * rooms as u64);
        Census { rooms, made: rooms as u64, removed: 0, bodies, refused_bodies: 2, total, oldest }
    }

    fn text(rooms: usize, shown: usize) -> String {
        write(&census(rooms, shown), &Program { recording: Some(Counted::default()), ..Program::default() })
    }

    #[test]
    fn every_line_is_one_that_prometheus_reads() {
        let text = text(3, 2);
        let (mut families, mut series) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                assert!(
                    families.insert(family.split(' ').next().unwrap().to_owned()),
                    "{line} is there twice"
                );
            } else if !line.starts_with("# HELP ") {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(series.insert(sample.to_owned()), "{line} is there twice");
                let name = sample.split('{').next().unwrap();
                let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                assert!(
                    families.contains(name) || base.is_some_and(|base| families.contains(base)),
                    "{line}"
                );
                let labels = sample.strip_prefix(name).unwrap();
                assert!(labels.is_empty() || (labels.starts_with("{") && labels.ends_with("\"}")), "{line}");
            }
        }
        for line in [
            "halftrack_ticks_total 155520000\n",
            "halftrack_players 600\n",
            "halftrack_bodies{driver=\"player\"} 600\n",
            "halftrack_bodies{driver=\"world\"} 18\n",
            "halftrack_bodies{driver=\"nothing\"} 0\n",
            "halftrack_bodies_refused_total 2\n",
            "halftrack_draining 0\n",
            "halftrack_corrections_total{cause=\"unexplained\"} 0\n",
            "halftrack_correction_meters_bucket{cause=\"late_input\",le=\"0.003\"} 0\n",
            "halftrack_correction_radians_count{cause=\"collision\"} 0\n",
            "halftrack_closed_total{reason=\"too_slow\"} 0\n",
            "halftrack_closed_total{reason=\"login_timeout\"} 0\n",
            "halftrack_room_ticks_total{room=\"00000000000000000000000000000001\"} 51840000\n",
        ] {
            assert!(text.contains(line), "no {line}");
        }
        assert!(!text.contains("00000000000000000000000000000002"), "two rooms have series of their own");
        assert!(text.contains("halftrack_build_info{version=\""));
    }

    #[test]
    fn a_thousand_rooms_are_a_small_text() {
        let (few, many) = (text(1, 0), text(1_000, 0));
        assert!(many.len() < 200_000, "{} bytes", many.len());
        assert_eq!(few.lines().count(), many.lines().count(), "it does not grow with the number of rooms");
        let shown = text(1_000, 64);
        assert!(shown.len() < 200_000, "{} bytes with 64 rooms one by one", shown.len());
    }
}
