//! What comes by way of browsers and HTTP: other sites' pages, paths, headers, the operator's door.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use web_transport_quinn::proto::{ConnectRequest, ConnectResponse, Settings};

use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::LoginBytes;
use crate::metrics::Counter;
use crate::peer::{PATIENCE, Peer, quic_config, soon, tcp, websocket};

attacks! { Guests:
    "cross-site-websocket", "a page of another site opens a WebSocket" => cross_site_websocket;
    "cross-site-webtransport", "a page of another site opens a WebTransport session" => cross_site_webtransport;
    "path-traversal", "paths that lead out of the page's folder" => path_traversal;
    "header-abuse", "heads without end, smuggled requests, versions and methods that are none" => header_abuse;
    "two-hosts", "requests with two hosts, with none, or with one that is none" => two_hosts;
    "metrics-pipelined", "eight readers ask for /metrics without waiting for an answer" => metrics_pipelined;
    "pages-pipelined", "eight connections ask for every page that is made when it is asked for, without waiting" => pages_pipelined;
    "metrics-hit-and-run", "asks for /metrics, and leaves before it can be written" => metrics_hit_and_run;
    "admin-guessing", "the operator's endpoint without the secret, or with a wrong one" => admin_guessing;
    "banned-address", "an address that an operator has banned comes by every way" => banned_address;
}

/// A WebTransport session whose parts are in the attacker's hands.
pub(super) struct WebTransport {
    pub(super) connection: quinn::Connection,
    /// The stream that the session was asked for by.
    pub(super) send: quinn::SendStream,
    _recv: quinn::RecvStream,
    _settings: (quinn::SendStream, quinn::RecvStream),
    _endpoint: quinn::Endpoint,
}

impl WebTransport {
    pub(super) async fn shake_hands(field: &Field) -> Result<(quinn::Endpoint, quinn::Connection), Failed> {
        let endpoint = quinn::Endpoint::client(SocketAddr::new(field.source(), 0))?;
        let connecting = endpoint.connect_with(quic_config(b"h3", 65_536)?, field.address(), "localhost")?;
        let connection = soon("a handshake", connecting).await??;
        Ok((endpoint, connection))
    }

    pub(super) async fn say_settings(stream: &mut quinn::SendStream) -> Result<(), Failed> {
        let mut settings = Settings::default();
        settings.enable_webtransport(1);
        Ok(settings.write(stream).await?)
    }

    pub(super) async fn open(field: &Field, origin: Option<&str>, path: &str) -> Result<Self, Failed> {
        let (endpoint, connection) = Self::shake_hands(field).await?;
        let mut own = connection.open_uni().await?;
        Self::say_settings(&mut own).await?;
        let mut theirs = soon("settings", connection.accept_uni()).await??;
        soon("settings", Settings::read(&mut theirs)).await??;
        let url: url::Url = format!("https://{}{path}", field.address()).parse()?;
        let mut request = ConnectRequest::new(url);
        if let Some(origin) = origin {
            request = request.with_header("origin".parse()?, origin.parse()?);
        }
        let (mut send, mut recv) = connection.open_bi().await?;
        request.write(&mut send).await?;
        soon("an answer", ConnectResponse::read(&mut recv)).await??;
        Ok(Self { connection, send, _recv: recv, _settings: (own, theirs), _endpoint: endpoint })
    }
}

/// Origins of pages that are not this server's.
fn foreign(field: &Field) -> [String; 7] {
    let port = field.address().port();
    [
        "https://evil.example".to_owned(),
        "null".to_owned(),
        String::new(),
        format!("http://127.0.0.1.evil.example:{port}"),
        format!("http://127.0.0.1:{}", port ^ 1),
        format!("ftp://127.0.0.1:{port}"),
        format!("http://evil.example@127.0.0.1:{port}"),
    ]
}

async fn cross_site_websocket(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for origin in foreign(field) {
        let stream = tcp(field, field.source(), None).await?;
        let opened = websocket(field, stream, Some(&origin)).await?;
        outcome.sent("requests", 1);
        outcome.check(opened.is_err(), format!("a page of {origin:?} was let in"));
        outcome.saw(opened.map_or_else(|status| format!("HTTP {status}"), |_| "let in".to_owned()));
    }
    let stream = tcp(field, field.source(), None).await?;
    let own = websocket(field, stream, Some(&format!("http://{}", field.address()))).await?;
    outcome.check(own.is_ok(), "the server's own page was refused");
    outcome.expect(Counter::away("origin"), 7);
    Ok(outcome)
}

async fn cross_site_webtransport(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for origin in foreign(field) {
        let opened = WebTransport::open(field, Some(&origin), "/").await;
        outcome.sent("requests", 1);
        outcome.check(opened.is_err(), format!("a page of {origin:?} was let in"));
        outcome.saw(if opened.is_err() { "HTTP 403" } else { "let in" });
    }
    let own = WebTransport::open(field, Some(&format!("http://{}", field.address())), "/").await;
    outcome.check(own.is_ok(), "the server's own page was refused");
    outcome.expect(Counter::away("origin"), 7);
    Ok(outcome)
}

/// Sends `request` as it is, and gives the status of the answer; none when there is none.
async fn ask(field: &Field, source: IpAddr, request: &[u8]) -> Result<(Option<u16>, String), Failed> {
    let mut stream = tcp(field, source, None).await?;
    // Whoever refuses does not read to the end.
    let _ = timeout(Duration::from_secs(2), stream.write_all(request)).await;
    let mut answer = vec![];
    let _ = timeout(PATIENCE, (&mut stream).take(1 << 20).read_to_end(&mut answer)).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status, text))
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").into_bytes()
}

fn told(status: Option<u16>) -> String {
    status.map_or_else(|| "closed without an answer".to_owned(), |status| format!("HTTP {status}"))
}

async fn path_traversal(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let source = field.source();
    let paths = [
        "/../Cargo.toml",
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/%252e%252e/etc/passwd",
        "//etc/passwd",
        "/assets/../../Cargo.toml",
        "/assets/..\\..\\Cargo.toml",
        "/assets/%00",
        "/index.html%00.png",
        "/.git/config",
        "/assets/",
        "/ws/room/../../admin/rooms",
        "/ws/room/..%2f..%2fmain",
        "/./admin/rooms",
        "//admin/rooms",
        "/ADMIN/rooms",
        "/admin%2frooms",
        "http://evil.example/etc/passwd",
        "*",
    ];
    for path in paths {
        let (status, text) = ask(field, source, &get(path)).await?;
        outcome.sent("paths", 1);
        let leaked = text.contains("root:") || text.contains("[workspace]") || text.contains("\"players\"");
        outcome.check(!leaked && status != Some(200), format!("{path} was answered with {}", told(status)));
        outcome.saw(told(status));
    }
    Ok(outcome)
}

async fn header_abuse(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let source = field.source();
    let host = "Host: x\r\n";
    let long = "a".repeat(64 * 1_024);
    let many: String = (0..2_000).map(|number| format!("X-{number}: a\r\n")).collect();
    let requests = [
        format!("GET / HTTP/1.1\r\n{host}Cookie: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}{many}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host}X : a\r\n\r\n"),
        format!("GET / HTTP/9.9\r\n{host}\r\n"),
        format!("{long} / HTTP/1.1\r\n{host}\r\n"),
        format!("GET  /  HTTP/1.1\r\n{host}\r\n"),
        "\0\0\0\0\0\0\0\0\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("POST /metrics HTTP/1.1\r\n{host}Content-Length: 10\r\nContent-Length: 20\r\n\r\n0123456789"),
        format!("POST / HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n"),
        format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
        format!(
            "POST /metrics HTTP/1.1\r\n{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
             GET /admin/rooms HTTP/1.1\r\n{host}\r\n"
        ),
        format!(
            "GET /ws HTTP/1.1\r\n{host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 7\r\n\r\n"
        ),
        format!("GET /ws HTTP/1.1\r\n{host}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
        format!("CONNECT evil.example:443 HTTP/1.1\r\n{host}\r\n"),
        format!("TRACE / HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
    ];
    for request in requests {
        let asking = ask(field, source, request.as_bytes());
        // Some wait for a body that does not come: the server does too, no longer than it takes anybody.
        let answer = timeout(Duration::from_secs(4), asking).await;
        let (status, text) = match answer {
            Ok(answer) => answer?,
            Err(_) => (None, String::new()),
        };
        outcome.sent("requests", 1);
        outcome.check(!text.contains("\"players\""), "a smuggled request was answered");
        outcome.check(
            status.is_none_or(|status| status < 500),
            format!("the server failed with {}", told(status)),
        );
        outcome.saw(told(status));
    }
    // More than an operator would ever send, without the secret.
    let body = format!(
        "POST /admin/kick HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: 4000000\r\n\r\n{long}"
    );
    let (status, _) = ask(field, source, body.as_bytes()).await?;
    outcome.sent("requests", 1);
    outcome.saw(told(status));
    Ok(outcome)
}

async fn two_hosts(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let (source, own) = (field.source(), field.address());
    let hosts = [
        String::new(),
        format!("Host: {own}\r\nHost: evil.example\r\n"),
        format!("Host: evil.example\r\nHost: {own}\r\n"),
        format!("Host: {own}\r\nhost: {own}\r\n"),
        "Host:\r\n".to_owned(),
        "Host: a b\r\n".to_owned(),
        format!("Host: evil.example@{own}\r\n"),
        format!("Host: http://{own}/\r\n"),
        "Host: \u{fffd}\r\n".to_owned(),
    ];
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://evil.example\r\n";
    for hosts in hosts {
        for (path, more) in
            [("/", "Connection: close\r\n"), ("/config.json", "Connection: close\r\n"), ("/ws", upgrade)]
        {
            let request = format!("GET {path} HTTP/1.1\r\n{hosts}{more}\r\n");
            let (status, _) = ask(field, source, request.as_bytes()).await?;
            outcome.sent("requests", 1);
            outcome.check(status == Some(400), format!("{}: {request}", told(status)));
            outcome.saw(told(status));
        }
    }
    Ok(outcome)
}

async fn metrics_pipelined(field: &Field) -> Result<Outcome, Failed> {
    pipelined(field, &["/metrics"]).await
}

async fn pages_pipelined(field: &Field) -> Result<Outcome, Failed> {
    pipelined(field, &["/config.json", "/healthz", "/readyz", "/", "/nothing"]).await
}

/// Eight readers, each at its own address, that always have more requests on their way than were answered.
async fn pipelined(field: &Field, paths: &[&str]) -> Result<Outcome, Failed> {
    const READERS: usize = 8;
    const AT_ONCE: usize = 100;
    let mut outcome = Outcome::default();
    let requests: String = paths
        .iter()
        .cycle()
        .take(AT_ONCE)
        .map(|path| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
        .collect();
    let (requests, over) = (requests.as_bytes(), Instant::now() + field.span);
    let asking = (0..READERS).map(|_| async move {
        let (source, mut asked, mut bytes, mut refused) = (field.source(), 0, 0_usize, false);
        while Instant::now() < over {
            let Ok(mut stream) = tcp(field, source, None).await else { break };
            let (mut reader, mut writer) = stream.split();
            let writing = async {
                let mut asked = 0;
                while Instant::now() < over && writer.write_all(requests).await.is_ok() {
                    asked += AT_ONCE;
                }
                asked
            };
            let reading = async {
                let (mut buffer, mut bytes, mut refused) = (vec![0; 65_536], 0, false);
                while let Ok(Ok(count @ 1..)) =
                    timeout(Duration::from_secs(1), reader.read(&mut buffer)).await
                {
                    bytes += count;
                    // The last answer of a connection, which is short.
                    let end = buffer[count.saturating_sub(400)..count].windows(12);
                    refused |= end.into_iter().any(|bytes| bytes == b"HTTP/1.1 429");
                    if Instant::now() > over {
                        break;
                    }
                }
                (bytes, refused)
            };
            let (more, (read, was_refused)) =
                tokio::join!(async { timeout(field.span, writing).await.unwrap_or(0) }, reading);
            (asked, bytes, refused) = (asked + more, bytes + read, refused | was_refused);
            // An address that is refused comes again at once, and not as fast as a machine can.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (asked, bytes, refused)
    });
    for (asked, bytes, refused) in futures_util::future::join_all(asking).await {
        outcome.sent("requests", asked);
        outcome.sent("kB of answers", bytes / 1_000);
        outcome.saw(if refused { "HTTP 429" } else { "everything was answered, or cut" });
    }
    outcome.expect(Counter::away("request_rate"), READERS);
    Ok(outcome)
}

async fn metrics_hit_and_run(field: &Field) -> Result<Outcome, Failed> {
    const ADDRESSES: usize = 8;
    let mut outcome = Outcome::default();
    let over = Instant::now() + field.span;
    let asking = (0..ADDRESSES).map(|_| async move {
        let (source, mut asked) = (field.source(), 0);
        while Instant::now() < over {
            if let Ok(mut stream) = tcp(field, source, None).await {
                let _ = stream.write_all(&get("/metrics")).await;
                asked += 1;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        asked
    });
    for asked in futures_util::future::join_all(asking).await {
        outcome.sent("requests", asked);
    }
    outcome.saw("no answer is waited for");
    // An address makes 200 connections a second here, and each of them a request.
    outcome.expect(Counter::away("request_rate"), if field.is_long() { ADDRESSES } else { 0 });
    Ok(outcome)
}

async fn admin_guessing(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let source = field.source();
    let guesses = [
        "",
        "Bearer ",
        "Bearer wrong",
        "Basic YTpi",
        "bearer the-suite-knows-it-and-no-attacker",
        "Bearer \t",
    ];
    let mut requests = vec![];
    for path in ["rooms", "bans"] {
        for guess in guesses.iter().cycle().take(30) {
            requests.push(format!(
                "GET /admin/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {guess}\r\n\r\n"
            ));
        }
    }
    for path in ["kick", "ban", "unban", "drain", "reload"] {
        requests.push(format!(
            "POST /admin/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
        ));
    }
    let logged = field.server.logged();
    let asking = requests.iter().map(|request| ask(field, source, request.as_bytes()));
    for (request, answer) in requests.iter().zip(futures_util::future::join_all(asking).await) {
        let (status, _) = answer?;
        outcome.sent("requests", 1);
        outcome.check(matches!(status, Some(401 | 404)), format!("{}: {request}", told(status)));
        outcome.saw(told(status));
    }
    let lines = field.server.logged() - logged;
    outcome.check(lines < 10, format!("{lines} lines were logged for it"));
    Ok(outcome)
}

async fn banned_address(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    if !field.server.is_ours() {
        outcome.saw("left out: nobody here is its operator");
        return Ok(outcome);
    }
    let source = field.source();
    let mut peer = Peer::connect_from(field, source, 65_536).await?;
    peer.log_in(&LoginBytes::new(field, "banned")).await?;
    let (status, _) = field.server.ask("POST", "/admin/ban", &format!(r#"{{"address":"{source}"}}"#))?;
    outcome.check(status == 200, format!("the ban was answered with {status}"));
    outcome.saw(format!("who was in: {}", peer.end_within(PATIENCE).await));
    for _ in 0..5 {
        for path in ["/", "/config.json", "/ws"] {
            let (status, _) = ask(field, source, &get(path)).await?;
            outcome.sent("requests", 1);
            outcome.check(status == Some(403), format!("{path} was answered with {}", told(status)));
            outcome.saw(told(status));
        }
        let again = Peer::connect_from(field, source, 65_536).await;
        outcome.sent("connections", 1);
        outcome.check(again.is_err(), "a banned address was let in");
        outcome.saw(if again.is_err() { "QUIC refused" } else { "let in" });
    }
    outcome.expect(Counter::closed("kicked"), 1);
    outcome.expect(Counter::away("banned"), 5);
    field.server.ask("POST", "/admin/unban", &format!(r#"{{"address":"{source}"}}"#))?;
    Ok(outcome)
}
