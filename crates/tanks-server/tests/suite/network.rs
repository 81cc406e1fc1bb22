//! Players on networks that are not ideal, over real sockets: what they see is what the lab says they see.
//!
//! Bounds are loose where a machine's own stalls count: nothing here is about how fast it is.

use crate::rig::{Folder, Program, Server, json, until};
use serde_json::Value;

const BAD: [&str; 6] = ["--delay-ms", "40", "--jitter-ms", "8", "--loss", "0.02"];

fn number(report: &Value, path: &str) -> f64 {
    let found = path.split('.').fold(report, |value, key| &value[key]);
    found.as_f64().unwrap_or_else(|| panic!("no {path} in {report:#}"))
}

fn play(server: &Server, folder: &Folder, name: &str, count: u32, seconds: u32, more: &[&str]) -> Program {
    let file = folder.path().join(name);
    let mut arguments = vec!["--json", file.to_str().unwrap(), "--name-prefix", name];
    arguments.extend(more);
    server.bots(count, seconds, &arguments)
}

fn check(folder: &Folder, name: &str, bots: Program) -> Value {
    let said = bots.end();
    assert!(said.status.success(), "{}{}", said.out, said.err);
    let report = json(&folder.path().join(name));
    assert_eq!(number(&report, "net.disconnects"), 0.0, "{report:#}");
    assert_eq!(number(&report, "net.check_failed"), 0.0, "{report:#}");
    assert_eq!(number(&report, "own.by_cause.unexplained"), 0.0, "{report:#}");
    assert_eq!(number(&report, "remote.rewinds"), 0.0, "{report:#}");
    assert!(number(&report, "combat.shots") > 0.0, "{report:#}");
    report
}

#[test]
fn sixteen_by_quic_on_a_bad_network() {
    let (server, folder) = (Program::serve(&["rooms.arena=proving-ground"]), Folder::new());
    let report = check(&folder, "quic", play(&server, &folder, "quic", 16, 8, &BAD));
    assert_eq!(number(&report, "players"), 16.0);
    // The shortest of a few seconds: two ways of 40 ms less two jitters each.
    assert!(number(&report, "net.rtt_ms.p50") >= 40.0, "{report:#}");
    assert!(number(&report, "input.lost_ratio") < 0.06, "{report:#}");
    assert!(number(&report, "own.ticks") > 16.0 * 8.0 * 15.0, "{report:#}");
    assert!(number(&report, "server.tick_ms.p50") > 0.0, "{report:#}");
    let said = server.interrupt();
    assert!(said.status.success());
}

#[test]
fn a_server_of_another_cadence_is_played_at_it() {
    let sets = ["rooms.arena=proving-ground", "rooms.cadence_ms=20"];
    let (server, folder) = (Program::serve(&sets), Folder::new());
    let site: Value = serde_json::from_str(&server.get("/config.json").body).unwrap();
    assert_eq!(site["cadence_us"], 20_000);
    let quic = play(&server, &folder, "quic", 3, 6, &BAD);
    let socket = play(&server, &folder, "socket", 3, 6, &["--websocket"]);
    for (name, bots) in [("quic", quic), ("socket", socket)] {
        let report = check(&folder, name, bots);
        // Fifty ticks a second, of which each player has most: at twenty there would be 360.
        assert!(number(&report, "own.ticks") > 3.0 * 6.0 * 30.0, "{report:#}");
    }
}

#[test]
fn lane_05_sixteen_by_websocket_on_a_bad_network() {
    let (server, folder) = (Program::serve(&["rooms.arena=proving-ground"]), Folder::new());
    let more = [&BAD[..], &["--websocket"]].concat();
    let report = check(&folder, "ws", play(&server, &folder, "ws", 16, 8, &more));
    assert_eq!(number(&report, "players"), 16.0);
    assert_eq!(server.metric("halftrack_pieces_total{lane=\"sync\",direction=\"out\"}"), 0.0);
}

#[test]
fn both_links_share_a_room_and_other_rooms_do_not_meet_them() {
    let (server, folder) = (Program::serve(&["rooms.arena=proving-ground"]), Folder::new());
    let quic = play(&server, &folder, "quic", 6, 6, &[]);
    let socket = play(&server, &folder, "socket", 6, 6, &["--websocket"]);
    let duel = play(&server, &folder, "duel", 2, 6, &["--room", "duel"]);
    until("twelve and two", || {
        server.players() == 12.0 && server.metric("halftrack_room_players{room=\"duel\"}") == 2.0
    });
    for (name, bots) in [("quic", quic), ("socket", socket), ("duel", duel)] {
        check(&folder, name, bots);
    }
    assert_eq!(server.metric("halftrack_rooms "), 2.0);
    assert!(server.metric("halftrack_bytes_total{lane=\"sync\",direction=\"in\"}") > 0.0);
}

#[test]
fn players_come_back_by_themselves_after_a_restart() {
    let folder = Folder::new();
    let keep = format!("tls.keep={}", folder.path().join("kept").display());
    let server = Program::serve(&[&keep]);
    let (address, file) = (server.address.clone(), folder.path().join("bots"));
    let bots = server.bots(4, 10, &["--json", file.to_str().unwrap()]);
    until("four", || server.players() == 4.0);
    server.program.kill();
    let server = Program::serve_at(&address, &[&keep]);
    until("four again", || server.players() == 4.0);
    let said = bots.end();
    assert!(said.status.success(), "{}{}", said.out, said.err);
    let report = json(&file);
    assert!(number(&report, "own.ticks") > 0.0, "{report:#}");
}
