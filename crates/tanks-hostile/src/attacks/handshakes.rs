//! Handshakes that never end, and packets that never begin one.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::{Endpoint, EndpointConfig, TokenStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Bytes;

use super::web::WebTransport;
use crate::attack::{Failed, Field, Outcome, attacks};
use crate::dice::Dice;
use crate::metrics::Counter;
use crate::peer::{PATIENCE, Peer, quic_config, tcp};

attacks! { Guests:
    "half-open-quic", "10,000 first packets of QUIC, and never a second" => half_open_quic;
    "forged-retry", "first packets with a proof of address that nobody gave" => forged_retry;
    "half-open-tcp", "10,000 TCP connections that say nothing" => half_open_tcp;
    "udp-garbage", "packets at the UDP port that are no QUIC" => udp_garbage;
    "slow-http", "requests that come a byte at a time" => slow_http;
    "silent-quic", "handshakes that are finished, by QUIC and WebTransport, and then nothing: no stream, no room, no login" => silent_quic;
}

/// A proof that somebody made up.
struct Forged;

impl TokenStore for Forged {
    fn insert(&self, _: &str, _: Bytes) {}

    fn take(&self, _: &str) -> Option<Bytes> {
        Some(Bytes::from_static(&[7; 64]))
    }
}

/// What first packets show of where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Missing,
    MadeUp,
}

/// Sends first packets, each of another connection, `each` of them from one address, and hears nothing. Gives how many.
pub(super) async fn first_packets(
    field: &Field,
    count: usize,
    each: usize,
    proof: Proof,
) -> Result<usize, Failed> {
    /// So many a second, which is what a small server can be expected to be asked.
    const PER_SECOND: f64 = 4_000.0;
    let mut config = quic_config(b"halftrack/1", 65_536)?;
    if proof == Proof::MadeUp {
        config.token_store(Arc::new(Forged));
    }
    let address = field.address();
    let mut socket: Option<UdpSocket> = None;
    let (begun, mut sent) = (Instant::now(), 0);
    while sent < count {
        if sent % each.max(1) == 0 {
            socket = Some(UdpSocket::bind(SocketAddr::new(field.source(), 0))?);
        }
        // A fresh one each time: it would keep what it has begun.
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let (_, mut connection) = endpoint.connect(Instant::now(), config.clone(), address, "localhost")?;
        let mut packet = vec![];
        if connection.poll_transmit(Instant::now(), 1, &mut packet).is_some()
            && let Some(socket) = &socket
        {
            let _ = socket.send_to(&packet, address);
        }
        sent += 1;
        let due = Duration::from_secs_f64(sent as f64 / PER_SECOND);
        if let Some(wait) = due.checked_sub(begun.elapsed()) {
            tokio::time::sleep(wait).await;
        } else if sent % 32 == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(sent)
}

async fn half_open_quic(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 10_000;
    let mut outcome = Outcome::default();
    let sent = first_packets(field, COUNT, 50, Proof::Missing).await?;
    outcome.sent("first packets, 50 from an address", sent);
    let metrics = field.server.metrics()?;
    let (unfinished, connections) =
        (metrics.get("halftrack_handshakes"), metrics.get("halftrack_connections"));
    outcome.saw(format!("handshakes held: {unfinished}"));
    outcome.check(unfinished <= 64.0 || !field.server.is_ours(), format!("{unfinished} handshakes are held"));
    outcome.check(
        connections <= 128.0 || !field.server.is_ours(),
        format!("{connections} connections are held"),
    );
    outcome.expect(Counter::RETRIES, COUNT / 2);
    // Somebody new gets in meanwhile: at the cost of a round trip.
    let peer = Peer::enter(field, "newcomer").await;
    outcome.check(peer.is_ok(), "nobody new gets in");
    if let Ok(peer) = peer {
        outcome.saw("a newcomer let in");
        peer.leave().await;
    }
    Ok(outcome)
}

async fn forged_retry(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 1_000;
    let mut outcome = Outcome::default();
    let sent = first_packets(field, COUNT, 50, Proof::MadeUp).await?;
    outcome.sent("first packets", sent);
    let unfinished = field.server.metrics()?.get("halftrack_handshakes");
    outcome.saw(format!("handshakes held: {unfinished}"));
    outcome.check(unfinished <= 64.0 || !field.server.is_ours(), format!("{unfinished} handshakes are held"));
    Ok(outcome)
}

async fn half_open_tcp(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 10_000;
    const AT_ONCE: usize = 2_500;
    let mut outcome = Outcome::default();
    let mut held = vec![];
    let mut source = field.source();
    for number in 0..COUNT {
        if number % 200 == 0 {
            source = field.source();
        }
        if number % AT_ONCE == 0 {
            held.clear();
        }
        if let Ok(stream) = tcp(field, source, None).await {
            held.push(stream);
            outcome.sent("connections, 200 from an address", 1);
        }
    }
    outcome.expect(Counter::away("http_full"), COUNT / 4);
    Ok(outcome)
}

async fn udp_garbage(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut dice = Dice::new(field.seed);
    let (begun, mut sent) = (Instant::now(), 0_usize);
    while begun.elapsed() < field.span {
        let socket = UdpSocket::bind(SocketAddr::new(field.source(), 0))?;
        for _ in 0..40 {
            let mut packet = dice.bytes(16);
            packet.resize([0, 1, 20, 1_200, 1_400][dice.below(5)], 0xa5);
            // A long header of an unknown version asks for an answer; a short one for a reset.
            if let Some(first) = packet.first_mut() {
                *first = [0xc0, 0x40, 0x00, 0xff][dice.below(4)];
            }
            let _ = socket.send_to(&packet, field.address());
            sent += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    outcome.sent("packets", sent);
    outcome.expect_at_most(Counter::LOGINS, 0);
    Ok(outcome)
}

async fn slow_http(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 200;
    let mut outcome = Outcome::default();
    let source = field.source();
    let drips = (0..COUNT).map(|_| async {
        let stream = tcp(field, source, None).await.ok()?;
        let (mut reader, mut writer) = stream.into_split();
        let drip = async {
            let head = b"GET / HTTP/1.1\r\nCookie: ".iter().chain(core::iter::repeat(&b'a'));
            for byte in head {
                if writer.write_all(&[*byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
            core::future::pending::<()>().await;
        };
        let mut rest = vec![];
        tokio::select! {
            ended = timeout(PATIENCE, reader.read_to_end(&mut rest)) => ended.ok().map(|_| ()),
            () = drip => None,
        }
    });
    let ended = futures_util::future::join_all(drips).await.into_iter().flatten().count();
    outcome.sent("requests", COUNT);
    outcome.seen.add("closed", ended);
    outcome.check(ended == COUNT, format!("{} slow requests were kept", COUNT - ended));
    outcome.expect(Counter::away("handshake_timeout"), COUNT);
    Ok(outcome)
}

async fn silent_quic(field: &Field) -> Result<Outcome, Failed> {
    const EACH: usize = 10;
    let mut outcome = Outcome::default();
    let mut peers = vec![];
    for number in 0..3 * EACH {
        let mut peer = Peer::connect(field).await?;
        match number % 3 {
            0 => {}
            // Half of a room's name.
            1 => drop(peer.write(&[8, b'r', b'o']).await),
            _ => drop(peer.write(&[0]).await),
        }
        peers.push(peer);
    }
    let mut sessions = vec![];
    for _ in 0..EACH {
        sessions.push(WebTransport::open(field, None, "/").await?);
    }
    outcome.sent("connections", peers.len());
    outcome.sent("WebTransport sessions", sessions.len());
    for peer in peers {
        outcome.saw(peer.end_within(PATIENCE).await);
    }
    for session in sessions {
        // Before the transport itself gives up on it.
        let end = timeout(PATIENCE, session.connection.closed()).await;
        let closed = matches!(end, Ok(quinn::ConnectionError::ApplicationClosed(_)));
        outcome.saw(if closed { "session closed" } else { "still there" });
    }
    outcome.check(outcome.seen.of("still there") == 0, "a silent connection was kept");
    outcome.expect(Counter::away("handshake_timeout"), 3 * EACH);
    outcome.expect(Counter::closed("login_timeout"), EACH);
    Ok(outcome)
}
