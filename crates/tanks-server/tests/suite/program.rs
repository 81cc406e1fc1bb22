//! The program as an operator meets it: start, signals, mistakes, health, metrics, admin, tokens.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::rig::{Folder, Program, tanks, until};

#[test]
fn help_helps_on_every_command() {
    let said = tanks(&["--help"]);
    assert!(said.status.success());
    for command in ["play", "serve", "bots", "token"] {
        assert!(said.out.contains(command), "{}", said.out);
        let help = tanks(&[command, "--help"]);
        assert!(help.status.success() && help.out.contains("Usage: tanks"), "{}", help.out);
        assert!(help.out.contains("Example"), "{command} shows how it is used: {}", help.out);
    }
}

#[test]
fn the_printed_config_can_be_used() {
    let folder = Folder::new();
    let printed = tanks(&["serve", "--print-config"]);
    assert!(printed.status.success());
    let file = folder.write("tanks.toml", &printed.out);
    let checked = tanks(&["serve", "--check-config", "--config", file.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", checked.err);
}

#[test]
fn a_port_in_use_is_named_and_nothing_is_left() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    let said = tanks(&["serve", "--listen", &address]);
    assert_eq!(said.status.code(), Some(2));
    assert!(
        said.err.contains(&format!("{address} is in use")) && said.err.contains("choose another port"),
        "{}",
        said.err
    );
    drop(tcp);
    let udp = UdpSocket::bind(&address).unwrap();
    let said = tanks(&["serve", "--listen", &address]);
    assert_eq!(said.status.code(), Some(2));
    assert!(said.err.contains(&format!("{address} is in use")), "{}", said.err);
    drop(udp);
    let server = Program::serve_at(&address, &[]);
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn mistakes_of_the_config_and_its_files_are_told_with_what_to_do() {
    let folder = Folder::new();
    let refused = |text: &str, hints: &[&str]| {
        let file = folder.write("tanks.toml", text);
        let said = tanks(&["serve", "--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()]);
        assert_eq!(said.status.code(), Some(2), "{}", said.err);
        for hint in hints {
            assert!(said.err.contains(hint), "{hint:?} is not in: {}", said.err);
        }
    };
    refused("[rooms]\ncapacity = 9000\n", &["tanks.toml", "line 2", "from 1 to 4096"]);
    refused("[romms]\n", &["line 1", "romms", "--print-config"]);
    refused("[log]\nlevel = \"a=b=c\"\n", &["log.level"]);
    refused("[tls]\ncertificate = \"none.pem\"\nkey = \"none.pem\"\n", &["none.pem", "check the path"]);
    let no_pem = folder.write("no.pem", "hello");
    let no_pem = no_pem.to_str().unwrap();
    refused(&format!("[tls]\ncertificate = {no_pem:?}\nkey = {no_pem:?}\n"), &["no.pem", "PEM"]);
    refused(
        &format!("[auth]\nmode = \"tokens\"\npublic_key = {no_pem:?}\n"),
        &["no.pem", "tanks token --new-key"],
    );
    refused("[auth]\nmode = \"tokens\"\n", &["auth.public_key"]);
    refused(&format!("[admin]\nsecret_file = {no_pem:?}\n"), &["too short", "openssl rand"]);
    refused("[limits]\norigins = [\"example\"]\n", &["example", "https://"]);
    let said = tanks(&["serve", "--config", "no/such.toml"]);
    assert!(said.status.code() == Some(2) && said.err.contains("no/such.toml"), "{}", said.err);
}

#[test]
fn ctrl_c_ends_it_with_a_summary_and_frees_the_port() {
    let server = Program::serve(&[]);
    let address = server.address.clone();
    until("ticks", || server.metric("halftrack_room_ticks_total{room=\"main\"}") >= 3.0);
    let said = server.interrupt();
    assert!(said.status.success(), "{}", said.err);
    assert!(said.out.contains("ticks in 1 room") && said.out.contains("tick p99"), "{}", said.out);
    TcpListener::bind(&address).unwrap();
    UdpSocket::bind(&address).unwrap();
}

#[test]
fn health_readiness_config_and_metrics_are_served() {
    let server = Program::serve(&["rooms.capacity=7"]);
    assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 200));
    let site: serde_json::Value = serde_json::from_str(&server.get("/config.json").body).unwrap();
    assert_eq!(site["room_capacity"], 7);
    assert_eq!(
        site["quic"]["port"].as_u64().unwrap().to_string(),
        server.address.rsplit(':').next().unwrap()
    );
    assert_eq!(site["quic"]["certificate_hashes"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/no/such/page").status, 404);
    assert_eq!(server.ask("TRACE", "/", "", "").status, 405, "the page is there to be read");
    let metrics = server.get("/metrics");
    assert!(
        metrics.head.to_lowercase().contains("content-type: text/plain; version=0.0.4"),
        "{}",
        metrics.head
    );
    for name in [
        "halftrack_rooms 1",
        "halftrack_tick_seconds_bucket{le=\"+Inf\"}",
        "halftrack_corrections_total{cause=\"unexplained\"} 0",
        "halftrack_turned_away_total{reason=\"banned\"} 0",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
    ] {
        assert!(metrics.body.contains(name), "{name} is not in\n{}", metrics.body);
    }
    assert_eq!(server.admin("GET", "/admin/rooms", "whatever", "").status, 404, "there is no operator");
}

#[test]
fn metrics_have_a_secret_and_an_address_of_their_own_if_the_operator_wants() {
    let folder = Folder::new();
    let (metrics, admin) =
        (folder.write("metrics", "0123456789abcdef\n"), folder.write("admin", "fedcba9876543210\n"));
    let secrets = [
        format!("metrics.secret_file={}", metrics.display()),
        format!("admin.secret_file={}", admin.display()),
    ];
    let server = Program::serve(&[&secrets[0], &secrets[1]]);
    let closed = server.get("/metrics");
    assert_eq!((closed.status, closed.head.to_lowercase().contains("www-authenticate: bearer")), (401, true));
    assert_eq!(server.admin("GET", "/metrics", "fedcba987654321", "").status, 401);
    for secret in ["0123456789abcdef", "fedcba9876543210"] {
        assert!(server.admin("GET", "/metrics", secret, "").body.contains("halftrack_rooms 1"));
    }
    assert_eq!(
        server.admin("GET", "/admin/rooms", "0123456789abcdef", "").status,
        401,
        "it opens nothing else"
    );
    assert_eq!((server.get("/healthz").status, server.get("/config.json").status), (200, 200));
    drop(server);

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Program::serve(&[&format!("metrics.listen={free}")]);
    assert_eq!((server.get("/metrics").status, server.get("/healthz").status), (404, 200));
    let own =
        get_at(&free.to_string(), &["/metrics", "/healthz", "/readyz", "/config.json", "/admin/rooms", "/"]);
    assert_eq!(own, ["200", "200", "200", "404", "404", "404"]);
    let taken =
        Program::start(&["serve", "--listen", "127.0.0.1:0", "--set", &format!("metrics.listen={free}")])
            .end();
    assert!(!taken.status.success() && taken.err.contains(&free.to_string()), "{}", taken.err);
    assert!(server.interrupt().status.success());
    TcpListener::bind(free).unwrap();
}

/// Asks for all of `paths` at once on one connection, and gives the status of each answer.
fn get_at(address: &str, paths: &[&str]) -> Vec<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    for path in paths {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    }
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = vec![];
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].to_owned()).collect();
    assert_eq!(statuses.pop().as_deref(), Some("200"));
    statuses
}

#[test]
fn readers_of_metrics_are_bounded_and_the_operator_is_not_kept_out() {
    let folder = Folder::new();
    let secret = folder.write("admin", "fedcba9876543210\n");
    let server = Program::serve(&[&format!("admin.secret_file={}", secret.display())]);
    // All within the five seconds' worth of requests that an address has.
    let statuses = get_at(&server.address, &["/metrics"; 400]);
    let of = |wanted: &str| statuses.iter().filter(|status| *status == wanted).count();
    assert!(of("200") >= 32 && of("503") >= 1 && of("200") + of("503") == 400, "{statuses:?}");
    assert_eq!(server.admin("GET", "/metrics", "fedcba9876543210", "").status, 200);
}

/// A stranger that asks as often as its address may. Other readers are strangers too: there is no secret.
#[test]
fn one_address_does_not_use_up_the_metrics_of_others() {
    let server = Program::serve(&[]);
    let asking = AtomicBool::new(true);
    let address = &server.address;
    thread::scope(|scope| {
        scope.spawn(|| {
            while asking.load(Ordering::Relaxed) {
                // By the second address of this machine. 429 ends a connection, so not all are answered.
                let socket = socket_from([127, 0, 0, 2], address);
                let _ = socket.and_then(|mut stream| {
                    stream.write_all("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100).as_bytes())?;
                    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
                    std::io::copy(&mut stream, &mut std::io::sink())
                });
            }
        });
        let statuses: Vec<_> = (0..20)
            .map(|_| {
                thread::sleep(Duration::from_millis(100));
                server.get("/metrics").status
            })
            .collect();
        asking.store(false, Ordering::Relaxed);
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    });
}

/// A TCP connection from that address of this machine.
fn socket_from(source: [u8; 4], to: &str) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect(&to.parse::<SocketAddr>().map_err(std::io::Error::other)?.into())?;
    Ok(socket.into())
}

/// All connections that an address may have are taken, by a stranger that shares the operator's address.
#[test]
fn connections_to_the_players_port_take_nothing_from_the_address_of_metrics() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Program::serve(&[&format!("metrics.listen={free}"), "limits.connections_per_address=4"]);
    let silent: Vec<_> = (0..4).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    until("the players' port takes no more", || server.try_ask("GET", "/healthz", "", "").is_err());
    assert_eq!(get_at(&free.to_string(), &["/metrics"]), ["200"]);
    drop(silent);
}

#[test]
fn sigterm_drains_and_ends_when_the_last_has_left() {
    let mut server = Program::serve(&["drain.seconds=60"]);
    let bots = server.bots(2, 8, &[]);
    until("two players", || server.players() >= 2.0);
    server.program.signal("TERM");
    until("not ready", || server.get("/readyz").status == 503);
    assert_eq!(server.get("/healthz").status, 200);
    let late = server.bots(1, 1, &[]).end();
    assert!(!late.status.success(), "{}", late.out);
    assert!(late.err.contains("shutting down"), "{}", late.err);
    assert!(server.program.is_running(), "two still play");
    bots.end();
    let said = server.program.end();
    assert!(said.status.success(), "{}", said.err);
    assert!(said.out.contains("2 logins"), "{}", said.out);
}

#[test]
fn a_drain_takes_no_longer_than_it_is_allowed_to() {
    let server = Program::serve(&["drain.seconds=1"]);
    let bots = server.bots(1, 600, &[]);
    until("a player", || server.players() >= 1.0);
    server.program.signal("TERM");
    assert!(server.program.end().status.success());
    bots.kill();
}

#[test]
fn an_operator_sees_kicks_and_bans() {
    let folder = Folder::new();
    let secret = "0123456789abcdef0123";
    let file = folder.write("secret", secret);
    let server = Program::serve(&[&format!("admin.secret_file={}", file.display())]);
    assert_eq!(server.get("/admin/rooms").status, 401);
    assert_eq!(server.admin("GET", "/admin/rooms", "0123456789abcdef0124", "").status, 401);
    let bots = server.bots(2, 600, &["--name-prefix", "Zed"]);
    until("two players", || server.players() >= 2.0);
    let rooms: serde_json::Value =
        serde_json::from_str(&server.admin("GET", "/admin/rooms", secret, "").body).unwrap();
    let players = rooms[0]["players"].as_array().unwrap();
    let name = players[0]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("Zed"), "{rooms}");
    assert_eq!(players[0]["address"], "127.0.0.1");
    for bad in ["", "{}", "[]", r#"{"player": "\u0007"}"#, r#"{"who": "x"}"#] {
        assert_eq!(server.admin("POST", "/admin/kick", secret, bad).status, 400, "{bad}");
    }
    let nobody = server.admin("POST", "/admin/kick", secret, r#"{"player": "Nobody"}"#);
    assert_eq!(nobody.status, 404, "{nobody:?}");
    let kicked =
        server.admin("POST", "/admin/kick", secret, &format!(r#"{{"room":"main","player":"{name}"}}"#));
    assert_eq!(kicked.status, 200, "{kicked:?}");
    until("one is left", || server.players() <= 1.0);
    let by_name = server.admin("POST", "/admin/ban", secret, r#"{"player": "Mallory0", "minutes": 5}"#);
    assert_eq!(by_name.status, 200, "{by_name:?}");
    let refused = server.bots(1, 1, &["--name-prefix", "Mallory"]).end();
    assert!(!refused.status.success() && refused.err.contains("does not let you in"), "{}", refused.err);
    let banned = server.admin("POST", "/admin/ban", secret, r#"{"address": "127.0.0.1", "minutes": 5}"#);
    assert_eq!(banned.status, 200, "{banned:?}");
    until("nobody is left", || server.players() == 0.0);
    for path in ["/", "/config.json", "/ws"] {
        assert_eq!(server.get(path).status, 403, "{path} is for players");
    }
    bots.kill();
    let bans = server.admin("GET", "/admin/bans", secret, "").body;
    assert!(bans.contains("Mallory0") && bans.contains("127.0.0.1"), "{bans}");
    let unbanned = server.admin("POST", "/admin/unban", secret, r#"{"address": "127.0.0.1"}"#);
    assert_eq!(unbanned.status, 200);
    assert!(server.bots(1, 1, &[]).end().status.success());
    let mut program = server.program;
    let log = program.log();
    let told = log.lines().filter(|line| !line.contains("listening")).any(|line| line.contains("127.0.0.1"));
    assert!(!told, "addresses of players are told at debug only:\n{log}");
}

#[test]
fn tokens_are_asked_for_and_checked() {
    let folder = Folder::new();
    let key = folder.path().join("key.pem");
    let (key, public) = (key.to_str().unwrap(), folder.path().join("key.pub.pem"));
    assert!(tanks(&["token", "--new-key", key]).status.success());
    let made = tanks(&["token", "--key", key, "--name", "Ada", "--minutes", "5"]);
    assert!(made.status.success() && made.out.matches('.').count() == 2, "{}{}", made.out, made.err);
    let other = folder.path().join("other.pem");
    let other = other.to_str().unwrap();
    assert!(tanks(&["token", "--new-key", other]).status.success());
    let mut server = Program::serve(&["auth.mode=tokens", &format!("auth.public_key={}", public.display())]);
    let without = server.bots(1, 1, &[]).end();
    assert!(!without.status.success() && without.err.contains("--token-key"), "{}", without.err);
    let forged = server.bots(1, 1, &["--token-key", other]).end();
    assert!(!forged.status.success() && forged.err.contains("credentials are not valid"), "{}", forged.err);
    let good = server.bots(3, 1, &["--token-key", key]).end();
    assert!(good.status.success(), "{}{}", good.out, good.err);
    let log = server.program.log();
    assert!(log.contains("a token was refused") && !log.contains("eyJ"), "no token is logged:\n{log}");
}

#[test]
fn sighup_reads_the_config_again_and_a_bad_one_changes_nothing() {
    let folder = Folder::new();
    let file = folder.write("tanks.toml", "[rooms]\nmax = 2\n");
    let mut server =
        Program::server(&["serve", "--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()]);
    fs::write(&file, "[limits]\nmessages_per_s = 1\n").unwrap();
    server.program.signal("HUP");
    until("a refusal", || server.program.log().contains("nothing was changed"));
    fs::write(&file, "[rooms]\nmax = 2\narena = \"proving-ground\"\n[log]\nlevel = \"debug\"\n").unwrap();
    server.program.signal("HUP");
    until("a reload", || server.program.log().contains("rooms.arena"));
    assert_eq!(server.get("/healthz").status, 200);
    let said = server.interrupt();
    assert!(said.status.success());
}

#[test]
fn logs_are_json_on_demand() {
    let server = Program::serve(&["log.format=json"]);
    let said = server.interrupt();
    assert!(said.err.lines().count() >= 2, "{}", said.err);
    for line in said.err.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["level"].is_string() && event["message"].is_string(), "{line}");
    }
}

#[test]
fn both_families_are_served_by_one_address() {
    let server = Program::serve_at("[::]:0", &[]);
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "[::1]"] {
        let url = format!("http://{host}:{port}");
        let said = tanks(&["bots", "--connect", &url, "--count", "1", "--seconds", "1"]);
        assert!(said.status.success(), "{host}: {}{}", said.out, said.err);
    }
}

#[test]
fn play_is_the_default_and_ends_with_a_summary() {
    let cases = [
        (&[][..], 6.0, "6 machines wait"),
        (&["play"], 6.0, "6 machines wait"),
        (&["play", "--machines", "3"], 3.0, "3 machines wait"),
        (&["play", "--set", "rooms.machines=1"], 1.0, "1 machine waits"),
        (&["play", "--set", "rooms.machines=5", "--machines", "0"], 0.0, "0 machines wait"),
    ];
    for (arguments, machines, line) in cases {
        let server = Program::server(arguments);
        let bots = server.bots(1, 60, &[]);
        let bodies = |driver: &str| server.metric(&format!("halftrack_bodies{{driver=\"{driver}\"}}"));
        until("a player among machines", || (bodies("player"), bodies("world")) == (1.0, machines));
        assert_eq!((server.players(), server.metric("halftrack_bodies_refused_total")), (1.0, 0.0));
        let said = server.interrupt();
        assert!(said.status.success(), "{}", said.err);
        assert!(said.out.contains(line) && said.out.contains("corrections"), "{}", said.out);
        bots.kill();
    }
    for refused in ["-1", "101"] {
        let said = tanks(&["play", "--machines", refused]);
        assert_eq!(said.status.code(), Some(2), "{}", said.err);
    }
}
