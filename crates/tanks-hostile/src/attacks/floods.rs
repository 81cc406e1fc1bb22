//! More than a peer may say, by every way there is to say it.

use std::iter::{once, repeat, repeat_n};
use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::web::WebTransport;
use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::{self, LoginBytes};
use crate::metrics::Counter;
use crate::peer::{PATIENCE, Peer, Socket, socket_end, tcp, told, websocket};

attacks! { Guests:
    "datagram-flood", "true input as fast as it can be sent" => datagram_flood;
    "stream-flood", "heartbeats as fast as they can be sent" => stream_flood;
    "websocket-flood", "pings, and messages, as fast as they can be sent" => websocket_flood;
    "websocket-continuations", "two players send empty continuation frames without end" => websocket_continuations;
    "websocket-fragments", "messages in fragments: a login, a message with pings between, a ping, one without an end" => websocket_fragments;
    "websocket-drip", "heartbeats, a byte at a time, as fast as bytes go" => websocket_drip;
    "capsule-flood", "what WebTransport itself reads, and no room ever sees" => capsule_flood;
    "datagrams-before-room", "datagrams as fast as they can be sent, by QUIC and WebTransport, without a login" => datagrams_before_room;
    "http3-grease", "frames of HTTP/3 that mean nothing, and that a reader must skip, without a session" => http3_grease;
    "http-flood", "requests without a pause on many connections" => http_flood;
}

/// Nothing here is worth more than this.
const MOST: usize = 50_000;

async fn datagram_flood(field: &Field) -> Result<Outcome, Failed> {
    const PEERS: usize = 8;
    let mut outcome = Outcome::default();
    for number in 0..PEERS {
        let mut peer = Peer::enter(field, &format!("flood {number}")).await?;
        let mut sent = 0;
        while sent < MOST && peer.connection.close_reason().is_none() {
            let bytes = peer.input(field, |_| ());
            peer.datagram(bytes);
            sent += 1;
            if sent % 64 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        outcome.sent("datagrams", sent);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::away("too_much"), PEERS);
    outcome.expect(Counter::closed("too_much"), PEERS);
    Ok(outcome)
}

async fn stream_flood(field: &Field) -> Result<Outcome, Failed> {
    const PEERS: usize = 8;
    let mut outcome = Outcome::default();
    for number in 0..PEERS {
        let mut peer = Peer::enter(field, &format!("flood {number}")).await?;
        let mut sent = 0;
        let many = bytes::heartbeats(200);
        while sent < MOST
            && timeout(PATIENCE, peer.send.write_all(&many)).await.is_ok_and(|sent| sent.is_ok())
        {
            sent += 200;
        }
        outcome.sent("heartbeats", sent);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("too_much"), PEERS);
    Ok(outcome)
}

async fn websocket_flood(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let messages = [
        ("pings", frame(PING, &[])),
        ("messages", frame(MESSAGE, &bytes::heartbeats(1))),
        ("pongs", frame(PONG, &[])),
    ];
    let count = messages.len();
    for (kind, message) in messages {
        let socket = player(field, &format!("flood of {kind}")).await?;
        let (sent, end) = flood(socket, repeat_n(&message[..], MOST)).await;
        outcome.sent("messages", sent);
        outcome.check(end == "closed with code 4012", format!("{kind}: {end}"));
        outcome.saw(end);
    }
    outcome.expect(Counter::away("too_much"), count);
    Ok(outcome)
}

/// A frame as a client sends it, with a mask of zeros; its payload is short.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u8;
    [&[first, 0x80 | length, 0, 0, 0, 0][..], payload].concat()
}

/// First bytes of frames: opcodes 0 (continuation), 2 (binary), 9 (ping) and 10 (pong), and whether it is the last of its
/// message.
const FIRST: u8 = 0x02;
const MORE: u8 = 0x00;
const LAST: u8 = 0x80;
const MESSAGE: u8 = 0x82;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A player by WebSocket, whose stream is in the attacker's hands.
async fn player(field: &Field, name: &str) -> Result<Socket, Failed> {
    let stream = tcp(field, field.source(), None).await?;
    stream.set_nodelay(true)?;
    let socket = websocket(field, stream, None).await?;
    let mut socket = socket.map_err(|status| format!("{name}: HTTP {status}"))?;
    socket.send(Message::binary(LoginBytes::new(field, name).frame())).await?;
    Ok(socket)
}

/// Writes all `pieces`, or as many as the socket takes, and reads meanwhile until the server closes. The close does not end
/// the writing. Gives the number of pieces and the end in words.
///
/// Half a second after its close frame the server resets a connection that is still written to. A peer that reads only
/// then must not write before it has read, not even the answer to a ping, or it learns nothing but the reset. Clients
/// read while they write; here the reading half also answers nothing, so no reset hides a close frame that has arrived.
async fn flood<'a>(socket: Socket, pieces: impl Iterator<Item = &'a [u8]>) -> (usize, String) {
    let (reader, mut writer) = socket.into_inner().into_split();
    let reader = tokio::io::join(reader, tokio::io::sink());
    let mut reader = WebSocketStream::from_raw_socket(reader, Role::Client, None).await;
    let mut sent = 0;
    let writing = async {
        for piece in pieces {
            if writer.write_all(piece).await.is_err() {
                break;
            }
            sent += 1;
            // A moment in which it is read: the system would else hand over many pieces at once.
            tokio::task::yield_now().await;
        }
    };
    let (end, _) = tokio::join!(socket_end(&mut reader), timeout(PATIENCE, writing));
    (sent, end)
}

async fn websocket_continuations(field: &Field) -> Result<Outcome, Failed> {
    const PEERS: usize = 2;
    const AT_ONCE: usize = 10_000;
    let over = Instant::now() + field.span;
    let flooding = (0..PEERS).map(|number| async move {
        let (frames, mut outcome) = (frame(MORE, &[]).repeat(AT_ONCE), Outcome::default());
        // A peer that is closed comes again.
        for time in 0.. {
            if Instant::now() >= over {
                break;
            }
            let mut socket = player(field, &format!("fragments {number} {time}")).await?;
            let _ = socket.get_mut().write_all(&frame(FIRST, &[])).await;
            let (sent, end) = flood(socket, repeat(&frames[..])).await;
            outcome.sent("frames", sent * AT_ONCE);
            outcome.sent("players", 1);
            outcome.saw(end);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok::<_, Failed>(outcome)
    });
    let mut outcome = Outcome::default();
    for flooded in futures_util::future::join_all(flooding).await {
        let flooded = flooded?;
        flooded.sent.0.iter().for_each(|(what, count)| outcome.sent(what, *count as usize));
        flooded.seen.0.iter().for_each(|(what, count)| outcome.seen.add(what.clone(), *count as usize));
    }
    let players = outcome.sent.of("players");
    outcome.check(outcome.seen.of("closed with code 4001") == players, "empty frames were not refused");
    outcome.expect(Counter::closed("malformed"), PEERS);
    Ok(outcome)
}

async fn websocket_fragments(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let login = LoginBytes::new(field, "in pieces").frame();
    let (begin, rest) = login.split_at(login.len() / 2);
    let messages = [
        [frame(FIRST, begin), frame(LAST, rest)].concat(),
        [frame(FIRST, &[]), frame(PING, &[]).repeat(1_000)].concat(),
        [frame(PING & !LAST, &[]), frame(LAST, &[])].concat(),
        [frame(FIRST, &[7; 100]), frame(MORE, &[7; 100]).repeat(1_000)].concat(),
        frame(LAST, &[7; 100]),
    ];
    let count = messages.len();
    for (number, message) in messages.into_iter().enumerate() {
        let socket = player(field, &format!("pieces {number}")).await?;
        let (sent, end) = flood(socket, once(&message[..])).await;
        outcome.sent("messages", sent);
        outcome.check(end == "closed with code 4001", format!("a message in fragments: {end}"));
        outcome.saw(end);
    }
    outcome.expect(Counter::closed("malformed"), count);
    Ok(outcome)
}

async fn websocket_drip(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let socket = player(field, "drip by socket").await?;
    let message = frame(MESSAGE, &bytes::heartbeats(1));
    let (sent, end) = flood(socket, message.chunks(1).cycle().take(40 * MOST)).await;
    outcome.sent("bytes", sent);
    outcome.check(end == "closed with code 4012", format!("bytes one at a time: {end}"));
    outcome.saw(end);
    outcome.expect(Counter::away("too_much"), 1);
    Ok(outcome)
}

async fn capsule_flood(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let logged = field.server.logged();
    let mut session = WebTransport::open(field, None, "/").await?;
    let login = LoginBytes::new(field, "capsules").frame();
    let (mut stream, _recv) = session.connection.open_bi().await?;
    // A stream of the session, as its first bytes say.
    stream.write_all(&[&[0x40, 0x41, 0x00][..], &login].concat()).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Frames of data, each with a capsule that nobody knows.
    let capsule = [0x00, 0x03, 0x40, 0x77, 0x00].repeat(400);
    let (begun, mut sent) = (Instant::now(), 0);
    while sent < 40 * MOST && begun.elapsed() < PATIENCE {
        match timeout(Duration::from_secs(1), session.send.write_all(&capsule)).await {
            Ok(Ok(())) => sent += 400,
            Ok(Err(_)) => break,
            Err(_) => {}
        }
    }
    outcome.sent("capsules", sent);
    let end = timeout(PATIENCE, session.connection.closed()).await;
    outcome.saw(if end.is_ok() { "closed" } else { "still there" });
    outcome.check(end.is_ok(), "what the transport reads was not counted");
    outcome.expect(Counter::away("too_much"), 1);
    let lines = field.server.logged() - logged;
    outcome.check(lines < 100, format!("{lines} lines were logged for it"));
    Ok(outcome)
}

/// How a connection ended, if the server ended it in time.
async fn end_of(connection: &quinn::Connection) -> String {
    match timeout(PATIENCE, connection.closed()).await {
        Ok(quinn::ConnectionError::ApplicationClosed(close)) => {
            format!("closed with code {}", close.error_code)
        }
        Ok(other) => format!("ended: {other}"),
        Err(_) => "still there".to_owned(),
    }
}

async fn datagrams_before_room(field: &Field) -> Result<Outcome, Failed> {
    const TIMES: usize = 4;
    /// What a connection sent in vain, at most, where nothing was counted before it named a room: a thousandth of that.
    const MOST_BYTES: u64 = 1 << 20;
    let mut outcome = Outcome::default();
    for number in 0..3 * TIMES {
        // No room; the name of a room; a handshake of HTTP/3 without a request.
        let (mut peer, mut web) = (None, None);
        let connection = if number % 3 < 2 {
            let mut raw = Peer::connect(field).await?;
            if number % 3 == 1 {
                raw.write(&[0]).await;
            }
            peer.insert(raw).connection.clone()
        } else {
            let (endpoint, connection) = WebTransport::shake_hands(field).await?;
            web = Some(endpoint);
            connection
        };
        let mut sent = 0;
        while sent < MOST && connection.send_datagram_wait(vec![0; 1_000].into()).await.is_ok() {
            sent += 1;
        }
        let bytes = connection.stats().udp_tx.bytes;
        outcome.sent("datagrams", sent);
        outcome.saw(end_of(&connection).await);
        outcome.check(bytes <= MOST_BYTES, format!("{bytes} bytes were taken without a login"));
        drop((peer, web));
    }
    let closed = outcome.seen.of("closed with code 12");
    outcome.check(closed == 3 * TIMES as u64, "datagrams without a login were not counted");
    outcome.expect(Counter::away("too_much"), 3 * TIMES);
    outcome.expect(Counter::closed("too_much"), 3 * TIMES);
    Ok(outcome)
}

async fn http3_grease(field: &Field) -> Result<Outcome, Failed> {
    const TIMES: usize = 8;
    const MOST_BYTES: usize = 64 << 20;
    let mut outcome = Outcome::default();
    let before = field.server.metrics()?.get("process_cpu_seconds_total");
    for _ in 0..TIMES {
        let (_endpoint, connection) = WebTransport::shake_hands(field).await?;
        let mut control = connection.open_uni().await?;
        control.write_all(&[0x00]).await?;
        // A reserved frame of no length: the shortest that must be skipped.
        let (frames, mut sent) = ([0x21, 0x00].repeat(2_000), 0);
        while sent < MOST_BYTES
            && timeout(PATIENCE, control.write_all(&frames)).await.is_ok_and(|written| written.is_ok())
        {
            sent += frames.len();
        }
        outcome.sent("frames", sent / 2);
        outcome.saw(end_of(&connection).await);
    }
    let closed = outcome.seen.of("closed with code 12");
    outcome.check(closed == TIMES as u64, "frames without a session were not counted");
    outcome.expect(Counter::away("too_much"), TIMES);
    let cpu = field.server.metrics()?.get("process_cpu_seconds_total") - before;
    outcome.saw(format!("{:.0} ms of the server's time", cpu * 1_000.0));
    Ok(outcome)
}

async fn http_flood(field: &Field) -> Result<Outcome, Failed> {
    const CONNECTIONS: usize = 32;
    let mut outcome = Outcome::default();
    let (source, over) = (field.source(), Instant::now() + field.span);
    let asking = (0..CONNECTIONS).map(|number| async move {
        let mut answers = 0_usize;
        let path = ["/", "/metrics", "/config.json", "/nothing"][number % 4];
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        let (mut stream, mut buffer) = (None, vec![0; 65_536]);
        while Instant::now() < over {
            // A hundred a second from each: thousands in all, and not what a network's whole width could do.
            tokio::time::sleep(Duration::from_millis(10)).await;
            let mut open = match stream.take() {
                Some(open) => open,
                None => match tcp(field, source, None).await {
                    Ok(open) => open,
                    Err(_) => continue,
                },
            };
            if open.write_all(request.as_bytes()).await.is_err() {
                continue;
            }
            // One answer is at least one piece; what matters is that the next is asked for at once.
            if let Ok(Ok(1..)) = timeout(Duration::from_secs(1), open.read(&mut buffer)).await {
                answers += 1;
                stream = Some(open);
            }
        }
        answers
    });
    let answers: usize = futures_util::future::join_all(asking).await.into_iter().sum();
    outcome.sent("requests", answers);
    outcome.saw("answered, and nobody else waits for it");
    outcome.check(answers > CONNECTIONS, "requests were not answered");
    outcome.expect(Counter::away("request_rate"), 1);
    Ok(outcome)
}
