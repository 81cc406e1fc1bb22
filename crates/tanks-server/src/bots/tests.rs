//! Bots against a server in the same process: a room, its links and its pages, put together from the library.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use clap::Parser;
use halftrack::Cadence;
use halftrack::server::ServerConfig;
use halftrack::wire::control::PROTOCOL;
use halftrack_io::{
    Certificate, Door, Endpoint, EndpointConfig, HttpServer, Limits, Room, RoomConfig, RoomName, WebSockets,
};
use serde_json::Value;
use tanks::{Arena, TankWorld, TankWorldConfig};

use super::company::Way;
use super::fetch::Base;
use super::{BotsError, Company, Options, Ran, run};
use crate::bots::company::CompanyConfig;
use crate::scratch::Folder;
use crate::site::{Auth, Ground, Quic, Site};

struct Host {
    room: Arc<Room<TankWorld>>,
    endpoint: Endpoint,
    http: HttpServer,
    site: Site,
}

impl Host {
    /// `alter` may make the server tell something else of itself than is so.
    async fn start(alter: impl FnOnce(&mut Site)) -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let arena = Arc::new(Arena::proving_ground());
        let world = TankWorldConfig { arena: Arc::clone(&arena), ..TankWorldConfig::default() };
        let server = ServerConfig::default();
        let room = Room::start(
            RoomConfig { server, ..RoomConfig::default() },
            TankWorld::new(world).expect("the arena has places"),
        );
        let room = Arc::new(room.unwrap());
        let certificate = Certificate::self_signed(&["localhost"], Certificate::MAX_VALIDITY).unwrap();
        let door = Door::new(Arc::new(room.handle()), Limits::default()).unwrap();
        let endpoint =
            Endpoint::bind(loopback, &certificate, door.clone(), EndpointConfig::default()).unwrap();
        let mut site = Site {
            version: "0.0.0".to_owned(),
            protocol: PROTOCOL,
            cadence_us: u64::try_from(Cadence::default().interval().as_micros()).unwrap(),
            default_room: RoomName::default().as_str().to_owned(),
            room_capacity: server.capacity,
            auth: Auth::Guests,
            quic: Quic {
                port: endpoint.address().port(),
                certificate_hashes: vec![certificate.hash().to_string()],
            },
            websocket: "/ws".to_owned(),
            arena: Ground::of(&arena),
        };
        alter(&mut site);
        let (told, counted) = (serde_json::to_string(&site).unwrap(), Arc::clone(&room));
        let metrics = move || {
            let ticks = counted.stats().server.ticks;
            let cpu = ticks as f64 * 1e-4;
            core::future::ready(format!(
                "# TYPE halftrack_ticks_total counter\nhalftrack_ticks_total {ticks}\n\
                 halftrack_tick_seconds_bucket{{le=\"0.001\"}} {ticks}\n\
                 halftrack_tick_seconds_bucket{{le=\"+Inf\"}} {ticks}\n\
                 process_cpu_seconds_total {cpu}\nprocess_resident_memory_bytes 1048576\n"
            ))
        };
        let routes = Router::new()
            .route(Site::PATH, get(move || core::future::ready(told.clone())))
            .route("/metrics", get(metrics))
            .merge(WebSockets::new(door.clone()).routes());
        let http = HttpServer::bind(loopback, routes, door).await.unwrap();
        Self { room, endpoint, http, site }
    }

    fn base(&self) -> Base {
        format!("http://{}", self.http.address()).parse().unwrap()
    }

    async fn stop(&self) {
        self.room.stop();
        self.endpoint.stop().await;
        self.http.stop().await;
    }

    /// What `tanks bots` does with these flags.
    async fn bots(&self, flags: &str) -> Result<Ran, BotsError> {
        let options = parse(&format!("--connect {} --quiet {flags}", self.base()));
        run(&options, core::future::pending()).await
    }
}

#[derive(Parser)]
struct Parsed {
    #[command(flatten)]
    options: Options,
}

fn parse(flags: &str) -> Options {
    Parsed::try_parse_from(["bots"].into_iter().chain(flags.split_whitespace())).unwrap().options
}

/// Every name in a result.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(parts) => {
            for (key, part) in parts {
                paths(part, &format!("{path}.{key}"), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_come_play_measure_and_leave() {
    let host = Host::start(|_| {}).await;
    let file = std::env::temp_dir().join(format!("tanks-bots-{}.json", std::process::id()));
    let ran = host.bots(&format!("--count 6 --seconds 4 --json {}", file.display())).await.unwrap();
    let report = &ran.report;
    assert_eq!((ran.ended, report.players, report.net.disconnects), (0, 6, 0));
    assert_eq!((report.own.by_cause.unexplained, report.net.check_failed), (0, 0), "{:?}", report.own);
    assert_eq!(report.invariants.violated, 0, "{:?}", report.invariants.list);
    assert!(report.seconds >= 4.0);
    // 480 ticks of six players; a machine that is busy loses some.
    assert!((200..700).contains(&report.own.ticks), "{}", report.own.ticks);
    assert_eq!(report.own.ticks, report.input.ticks);
    assert!(report.combat.shots > 0 && report.net.up_bytes_per_s > 0.0 && report.net.rtt_ms.p50 > 0.0);
    let server = report.server.expect("it has metrics");
    assert!(server.tick_cpu_us.is_some_and(|cpu| (cpu - 100.0).abs() < 1e-3), "{server:?}");
    assert_eq!(server.tick_ms.map(|ticks| ticks.p99), Some(1.0));

    // Whatever the lab has too is called the same; and nothing is told that a client cannot know.
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let lab = serde_json::to_value(halftrack_lab::Measured::default()).unwrap();
    let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
    paths(&told, "", &mut ours);
    paths(&lab, "", &mut theirs);
    let new: Vec<_> = ours.difference(&theirs).collect();
    let extra = ["corrections_outside_contact", "connect_ms", "rtt_ms", "disconnects", "reconnects"];
    let known = |path: &&String| {
        path.starts_with(".server.")
            || path.starts_with(".bots.")
            || extra.iter().any(|name| path.split('.').any(|part| part == *name))
    };
    assert!(new.iter().all(known), "{new:?}");
    let hidden = ["excess_lead_ms", "action_to_server_ms", "pose_error", "contact_error", "moving_entity"];
    assert!(!ours.iter().any(|path| hidden.iter().any(|name| path.contains(name))), "{ours:?}");
    for path in
        [".own.by_cause.lost_input", ".own.correction_m.p95", ".input.margin_ms.p50", ".remote.rewinds"]
    {
        assert!(ours.contains(path), "{path}");
    }

    // Everybody has left by itself, and not by silence.
    assert_eq!(host.room.stats().players, 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_network_is_explained() {
    let host = Host::start(|_| {}).await;
    let folder = Folder::new();
    let flags = "--count 4 --seconds 4 --delay-ms 40 --jitter-ms 5 --loss 0.01 --frame-hz 0 --flight";
    let ran = host.bots(&format!("{flags} {}", folder.path().display())).await;
    let report = ran.unwrap().report;
    // Whoever was corrected by the network says what it was told.
    for file in std::fs::read_dir(folder.path()).unwrap() {
        crate::flight::tests::replays_exactly(&file.unwrap().path());
    }
    assert_eq!((report.own.by_cause.unexplained, report.net.check_failed), (0, 0), "{:?}", report.own);
    // There and back; the clients' own estimate is of the shortest.
    assert!(report.net.rtt_ms.p50 > 50.0, "{:?}", report.net.rtt_ms);
    assert!(report.input.lead_ms.p50 > 25.0, "{:?}", report.input.lead_ms);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_come_by_websocket_and_from_several_threads() {
    let host = Host::start(|_| {}).await;
    let ran =
        host.bots("--count 4 --seconds 3 --websocket --threads 2 --play roam --room main").await.unwrap();
    assert_eq!((ran.ended, ran.report.players, ran.report.net.check_failed), (0, 4, 0));
    assert_eq!((ran.report.own.by_cause.unexplained, ran.report.combat.shots), (0, 0));
    assert!(ran.report.own.ticks > 100);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_play_is_told_why() {
    let said = |ran: Result<Ran, BotsError>| ran.unwrap_err().to_string();
    let host = Host::start(|_| {}).await;
    let full = said(host.bots("--count 1000").await);
    assert!(full.contains("a room of this server holds 100"), "{full}");
    let nowhere = said(host.bots("--room nowhere --count 2 --seconds 1").await);
    assert!(nowhere.contains("there is no such room"), "{nowhere}");
    let hash = "00".repeat(32);
    let wrong = said(host.bots(&format!("--trust-hash {hash} --count 1 --seconds 1")).await);
    assert!(wrong.contains("which is not trusted"), "{wrong}");
    let base = host.base();
    host.stop().await;
    let nobody = said(host.bots("--count 1").await);
    assert!(nobody.contains(&format!("nobody answers at {base}: is `tanks serve` running")), "{nobody}");

    let other = Host::start(|site| site.protocol = PROTOCOL + 1).await;
    assert!(said(other.bots("").await).contains("version"));
    other.stop().await;
    let closed = Host::start(|site| site.auth = Auth::Tokens).await;
    assert!(said(closed.bots("").await).contains("--token"));
    closed.stop().await;

    let nowhere = Door::new(Arc::new(|_: &RoomName| None), Limits::default()).unwrap();
    let pages =
        HttpServer::bind(SocketAddr::from(([127, 0, 0, 1], 0)), Router::new(), nowhere).await.unwrap();
    let options = parse(&format!("--connect http://{}", pages.address()));
    let stranger = said(run(&options, core::future::pending()).await);
    assert!(stranger.contains("has no /config.json (HTTP 404)"), "{stranger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_early_gets_what_was_measured() {
    let host = Host::start(|_| {}).await;
    let options = parse(&format!("--connect {} --quiet --count 2 --seconds 600", host.base()));
    let stop = Box::pin(tokio::time::sleep(Duration::from_secs(5)));
    let ran = run(&options, stop).await.unwrap();
    assert!(ran.report.seconds < 60.0 && ran.report.own.ticks > 0, "{:?}", ran.report);
    let stop = Box::pin(tokio::time::sleep(Duration::from_millis(200)));
    assert!(matches!(run(&options, stop).await, Err(BotsError::Stopped)));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_company_plays_until_it_is_stopped() {
    let host = Host::start(|_| {}).await;
    let config = CompanyConfig::new(&host.base(), &host.site, None, Way::Quic).unwrap();
    let company = Company::start(CompanyConfig { count: 3, ..config }).unwrap();
    let patience = async {
        while company.summary().shots == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), patience).await.expect("they shoot");
    let summary = company.summary();
    company.measured().unwrap();
    assert_eq!((summary.players, summary.ended, summary.disconnects), (3, 0, 0), "{summary:?}");
    assert!(summary.hits <= summary.shots && summary.corrections() >= summary.by_cause[0]);
    assert_eq!(host.room.stats().players, 0, "they have left");
    host.stop().await;
}

#[test]
fn flags_are_what_they_say() {
    let options = parse("--count 3 --delay-ms 20 --loss 0.5 --burst 2 --room duel -q");
    assert!(options.quiet && options.room.is_some());
    for wrong in [
        "--count 0",
        "--seconds -1",
        "--frame-hz 2000",
        "--room a/b",
        "--play chess",
        "--trust-hash 00",
        "--rate 0",
    ] {
        let parsed = Parsed::try_parse_from(["bots"].into_iter().chain(wrong.split_whitespace()));
        assert!(parsed.is_err(), "{wrong}");
    }
}
