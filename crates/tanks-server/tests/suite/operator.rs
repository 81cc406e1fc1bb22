//! The program in an operator's hands: pipes that close, ends and their reasons, kicks, bans and the log.

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::rig::{Folder, Program, Server, until};
use serde_json::Value;

const SECRET: &str = "0123456789abcdef0123";

fn serve(folder: &Folder, sets: &[&str]) -> Server {
    let file = folder.write("secret", SECRET);
    let secret = format!("admin.secret_file={}", file.display());
    let mut all = vec![secret.as_str()];
    all.extend(sets);
    Program::serve(&all)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|problem| panic!("{problem}: {text}"))
}

/// Players in all rooms, as /admin/rooms has them.
fn players(server: &Server) -> Vec<Value> {
    let rooms = json(&server.admin("GET", "/admin/rooms", SECRET, "").body);
    let rooms = rooms.as_array().unwrap().iter();
    rooms.flat_map(|room| room["players"].as_array().unwrap().clone()).collect()
}

/// Runs the program with standard output closed before it begins. Gives its code and what it wrote to standard error.
fn with_output_closed(arguments: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tanks"));
    command.args(arguments).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let ended = command.output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn every_command_ends_quietly_when_its_reader_has_gone() {
    let folder = Folder::new();
    let (records, flights) = (folder.path().join("records"), folder.path().join("flights"));
    let server = Program::serve(&[&format!("record.folder={}", records.display())]);
    let lossy = ["--delay-ms", "30", "--loss", "0.3", "--flight", flights.to_str().unwrap()];
    let ran = server.bots(2, 3, &lossy).end();
    assert!(ran.status.success(), "{}", ran.err);
    let url = server.url();
    let bots = ["bots", "--connect", &url, "--count", "1", "--seconds", "1", "--quiet"];
    assert_eq!(with_output_closed(&bots), (Some(0), String::new()));
    assert!(server.interrupt().status.success());
    let newest = |path: &std::path::Path, end: &str| {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let found = entries.map(|path| path.display().to_string()).find(|path| path.ends_with(end));
        found.unwrap_or_else(|| panic!("no {end} in {}", path.display()))
    };
    let (recorded, flight) = (newest(&records, ".htrec"), newest(&flights, ".flight"));
    let key = folder.path().join("key.pem");
    let key = key.to_str().unwrap();
    for arguments in [
        vec!["--help"],
        vec!["serve", "--print-config"],
        vec!["serve", "--check-config"],
        vec!["token", "--new-key", key],
        vec!["token", "--key", key, "--name", "Ada"],
        vec!["replay", &recorded],
        vec!["replay", "--json", &recorded, &recorded],
        vec!["replay", "--verify", &recorded],
        vec!["flight", &flight],
        vec!["flight", "--json", &flight],
    ] {
        let (code, said) = with_output_closed(&arguments);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{arguments:?}");
    }
    // As people meet it: the reader takes one line, and goes.
    let piped = format!("'{}' replay --json '{recorded}' | head -c 1", env!("CARGO_BIN_EXE_tanks"));
    let piped = Command::new("sh").args(["-c", &piped]).output().unwrap();
    assert_eq!((piped.stdout.as_slice(), piped.stderr.as_slice()), (b"{".as_slice(), b"".as_slice()));
}

#[test]
fn a_server_whose_log_is_read_by_nobody_serves_on() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tanks"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--set", "log.level=debug"]);
    let mut server = command.stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    let mut out = server.stdout.take().unwrap();
    let mut said = String::new();
    while !said.ends_with('\n') {
        let mut byte = [0];
        assert_eq!(out.read(&mut byte).unwrap(), 1, "it ended: {said}");
        said.push(char::from(byte[0]));
    }
    let url = said.trim().strip_prefix("serving on ").unwrap().to_owned();
    let bots = Program::start(&["bots", "--connect", &url, "--count", "1", "--seconds", "1"]).end();
    assert!(bots.status.success(), "{}", bots.err);
    let stop = format!("kill -INT {}", server.id());
    assert!(Command::new("sh").args(["-c", &stop]).status().unwrap().success());
    assert!(server.wait().unwrap().success());
}

#[test]
fn play_ends_at_once_on_sigterm_when_only_machines_are_there() {
    let play = ["play", "--machines", "3", "--listen", "127.0.0.1:0", "--set", "drain.seconds=600"];
    let server = Program::server(&play);
    let said = server.bots(1, 1, &[]).end();
    assert!(said.status.success(), "{}", said.err);
    until("the player has left", || server.players() == 0.0);
    assert_eq!(server.metric("halftrack_bodies{driver=\"player\"}"), 0.0);
    assert_eq!(server.metric("halftrack_bodies{driver=\"world\"}"), 3.0, "machines wait for the next one");
    server.program.signal("TERM");
    // 600 s are longer than a test waits.
    let said = server.program.end();
    assert!(said.status.success(), "{}", said.err);
    assert!(
        said.out.contains("3 machines wait for you") && said.out.contains("in 1 room, 1 login"),
        "{}",
        said.out
    );
}

#[test]
fn a_drain_does_not_wait_for_players_who_are_away() {
    let folder = Folder::new();
    let server = serve(&folder, &["drain.seconds=600", "rooms.grace_s=600", "limits.idle_s=2"]);
    let bots = server.bots(1, 600, &[]);
    until("a player", || server.players() >= 1.0);
    bots.kill();
    until("the player is away", || players(&server)[0]["away"] == true);
    assert_eq!(server.players(), 1.0, "it may come back");
    server.program.signal("TERM");
    assert!(server.program.end().status.success());
}

/// Ends a server on which two players are, and reads what they were told.
fn assert_told_of_the_end(signal: &str, link: Option<&str>) {
    let folder = Folder::new();
    let server = serve(&folder, &["drain.seconds=1"]);
    let bots = server.bots(2, 4, link.as_slice());
    until("two players", || server.players() >= 2.0);
    // The bots know it too by then, also on a busy machine.
    std::thread::sleep(std::time::Duration::from_secs(2));
    server.program.signal(signal);
    assert!(server.program.end().status.success());
    let said = bots.end();
    let told =
        "2 of 2 bots are not in any more: the server closed the connection: the server is shutting down";
    assert!(!said.status.success() && said.err.contains(told), "{signal} {link:?}: {}", said.err);
}

#[test]
fn players_are_told_of_a_shutdown() {
    assert_told_of_the_end("INT", None);
}

#[test]
fn players_by_websocket_are_told_of_a_shutdown() {
    assert_told_of_the_end("INT", Some("--websocket"));
}

#[test]
fn players_are_told_of_the_end_of_a_drain() {
    assert_told_of_the_end("TERM", None);
}

#[test]
fn a_player_is_told_of_a_kick() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let bots = server.bots(1, 4, &["--name-prefix", "Zed"]);
    until("a player", || server.players() >= 1.0);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let kicked = server.admin("POST", "/admin/kick", SECRET, r#"{"player": "Zed0"}"#);
    assert_eq!(kicked.status, 200, "{kicked:?}");
    let said = bots.end();
    let told = "1 of 1 bots are not in any more: the session is over: failed: removed by an operator";
    assert!(said.err.contains(told), "{}", said.err);
}

#[test]
fn a_kick_says_whether_the_room_or_the_player_is_missing() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let said = |body: &str| {
        let answer = server.admin("POST", "/admin/kick", SECRET, body);
        (answer.status, json(&answer.body)["error"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(said(r#"{"player": "Ada"}"#), (404, "no player Ada is in any room".to_owned()));
    assert_eq!(
        said(r#"{"player": "Ada", "room": "main"}"#),
        (404, "no player Ada is in room main".to_owned())
    );
    let missing = (404, "there is no room duel; there are: main".to_owned());
    assert_eq!(said(r#"{"player": "Ada", "room": "duel"}"#), missing);
    let long = "x".repeat(201);
    assert_eq!(said(&format!(r#"{{"player": "Ada", "why": "{long}"}}"#)).0, 400);
}

#[test]
fn unknown_admin_paths_and_methods_are_answered_with_the_known_ones() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    for path in ["/admin", "/admin/", "/admin/room", "/admin/rooms/main"] {
        for method in ["GET", "POST", "DELETE"] {
            let answer = server.admin(method, path, SECRET, "");
            let error = json(&answer.body)["error"].as_str().unwrap().to_owned();
            assert_eq!(answer.status, 404, "{method} {path}");
            assert!(error.contains("GET /admin/rooms") && error.contains("POST /admin/reload"), "{error}");
        }
        assert_eq!(server.get(path).status, 401, "{path}: without the secret nothing is said");
    }
    let answer = server.admin("GET", "/admin/kick", SECRET, "");
    assert_eq!(
        (answer.status, json(&answer.body)["error"].as_str().unwrap()),
        (405, "/admin/kick is asked with POST, not GET")
    );
}

#[test]
fn operators_see_round_trips_and_the_log_has_joins_and_leaves() {
    let folder = Folder::new();
    let mut server = serve(&folder, &[]);
    for (link, name) in [(None, "quick"), (Some("--websocket"), "web")] {
        let flags: Vec<_> = ["--name-prefix", name].into_iter().chain(link).collect();
        let bots = server.bots(1, 600, &flags);
        until("a round trip", || {
            let found = players(&server);
            found.iter().any(|player| player["ping_ms"].as_f64().is_some_and(|ping| ping < 2_000.0))
        });
        bots.signal("INT");
        bots.end();
        until("nobody", || server.players() == 0.0);
    }
    let log = server.program.log();
    for name in ["quick0", "web0"] {
        let lines =
            |what: &str| log.lines().filter(|line| line.contains(what) && line.contains(name)).count();
        assert_eq!((lines("a player joined"), lines("a player left")), (1, 1), "{log}");
    }
}

#[test]
fn bans_survive_a_restart_and_the_log_says_who_and_why() {
    let folder = Folder::new();
    let state = format!("admin.state_folder={}", folder.path().join("state").display());
    let mut server = serve(&folder, &[&state]);
    let ban = r#"{"player": "Mallory0", "why": "aimbot, seen in main", "by": "Kim", "minutes": 60}"#;
    let answer = server.admin("POST", "/admin/ban", SECRET, ban);
    assert_eq!((answer.status, json(&answer.body)["survives_restart"].clone()), (200, Value::Bool(true)));
    let answer = server.admin("POST", "/admin/ban", SECRET, r#"{"address": "192.0.2.7"}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    let log = server.program.log();
    let line = log.lines().find(|line| line.contains("banned by an operator")).unwrap();
    for word in ["Mallory0", "aimbot, seen in main", "Kim", "UTC"] {
        assert!(line.contains(word), "{line}");
    }
    // However it ends.
    server.program.kill();

    let server = serve(&folder, &[&state]);
    let bans = json(&server.admin("GET", "/admin/bans", SECRET, "").body);
    let (player, address) = (&bans["players"][0], &bans["addresses"][0]);
    assert_eq!((player["player"].as_str(), player["by"].as_str()), (Some("Mallory0"), Some("Kim")));
    assert!(
        player["until"].as_str().unwrap().ends_with(" UTC") && player["seconds"].as_u64().unwrap() > 3_000
    );
    assert_eq!((address["address"].as_str(), &address["until"]), (Some("192.0.2.7"), &Value::Null));
    let refused = server.bots(1, 1, &["--name-prefix", "Mallory"]).end();
    assert!(!refused.status.success() && refused.err.contains("does not let you in"), "{}", refused.err);
    let lifted = server.admin("POST", "/admin/unban", SECRET, r#"{"player": "Mallory0"}"#);
    assert_eq!(lifted.status, 200, "{lifted:?}");
    assert!(server.interrupt().status.success());

    let server = serve(&folder, &[&state]);
    assert!(server.bots(1, 1, &["--name-prefix", "Mallory"]).end().status.success());
    drop(server);
    folder.write("state/bans.json", "[]");
    let said = crate::rig::tanks(&["serve", "--listen", "127.0.0.1:0", "--set", &state]);
    assert_eq!(said.status.code(), Some(2));
    assert!(said.err.contains("bans.json") && said.err.contains("mend it"), "{}", said.err);
}

#[test]
fn counters_survive_their_room_and_are_in_the_summary() {
    let server = Program::serve(&["rooms.empty_s=0", "rooms.grace_s=0", "metrics.rooms=1"]);
    assert!(server.bots(3, 1, &["--room", "duel"]).end().status.success());
    until("the room is gone", || server.metric("halftrack_rooms ") == 1.0);
    let text = server.get("/metrics").body;
    assert_eq!(server.metric("halftrack_logins_total "), 3.0);
    assert!(server.metric("halftrack_bytes_total{lane=\"sync\",direction=\"in\"}") > 0.0);
    assert!(server.metric("halftrack_closed_total{reason=\"logged_out\"}") >= 3.0, "{text}");
    assert_eq!(server.metric("halftrack_rooms_removed_total "), 1.0);
    assert!(text.contains("halftrack_room_players{room=\"main\"}") && !text.contains("duel"), "{text}");
    for (series, least) in [
        ("halftrack_build_info{version=\"", 1.0),
        ("process_start_time_seconds", 1.7e9),
        ("process_open_fds", 5.0),
        ("process_max_fds", 64.0),
    ] {
        assert!(server.metric(series) >= least, "{series}");
    }
    assert_eq!(server.metric("halftrack_draining"), 0.0);
    let said = server.interrupt();
    assert!(said.out.contains("in 2 rooms, 3 logins"), "{}", said.out);
}

#[test]
fn a_server_that_drains_says_so_to_whoever_watches_it() {
    let server = Program::serve(&["drain.seconds=600"]);
    let bots = server.bots(1, 600, &[]);
    until("a player", || server.players() >= 1.0);
    server.program.signal("TERM");
    until("draining", || server.metric("halftrack_draining") == 1.0);
    bots.signal("INT");
    assert!(server.program.end().status.success());
    bots.end();
}
