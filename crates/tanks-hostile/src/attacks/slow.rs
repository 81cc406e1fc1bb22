//! Peers that take their time: that do not read, hardly write, never answer, or open what they do not use.

use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use halftrack::wire::control::{FromClient, Heartbeat};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::{self, LoginBytes};
use crate::metrics::Counter;
use crate::peer::{PATIENCE, Peer, socket_end, tcp, told, websocket};

attacks! { Guests:
    "slow-reader", "asks for answers by both links, and reads none" => slow_reader;
    "slow-pages", "asks for the largest file of the page hundreds of times, and reads none of it" => slow_pages;
    "metrics-slow-readers", "a thousand readers ask for /metrics, and read none of it" => metrics_slow_readers;
    "slow-writer", "a login that comes a byte at a time, and a message that never ends" => slow_writer;
    "streams-without-end", "opens streams, fills them, drops them, and opens more" => streams_without_end;
    "never-acknowledges", "plays without ever saying what has arrived" => never_acknowledges;
    "silent-player", "logs in, and is not heard of again" => silent_player;
}

async fn slow_reader(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    // As many bytes as a login's answers take, and not much more.
    let mut peer = Peer::connect_from(field, field.source(), 6_000).await?;
    let login = LoginBytes::new(field, "deaf");
    peer.write(&[login.preamble(), login.frame()].concat()).await;
    let begun = Instant::now();
    let mut asked = 0;
    while begun.elapsed() < PATIENCE && peer.connection.close_reason().is_none() {
        // As much as one may say: the answers to it are what it does not read.
        if timeout(Duration::from_millis(50), peer.send.write_all(&bytes::heartbeats(25))).await.is_ok() {
            asked += 25;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    outcome.sent("heartbeats by QUIC", asked);
    outcome.saw(peer.end_within(PATIENCE).await);
    outcome.expect(Counter::closed("too_slow"), 1);
    // The systems on both ends take 300 KiB in its stead, which is half a minute of all that it may ask for.
    if field.is_long() {
        deaf_socket(field, &mut outcome).await?;
        outcome.expect(Counter::closed("too_slow"), 2);
    }
    Ok(outcome)
}

async fn deaf_socket(field: &Field, outcome: &mut Outcome) -> Result<(), Failed> {
    let stream = tcp(field, field.source(), Some(4_096)).await?;
    let Ok(mut socket) = websocket(field, stream, None).await? else { return Ok(()) };
    socket.send(Message::binary(LoginBytes::new(field, "deaf too").frame())).await?;
    let (before, begun) = (field.server.metrics()?, Instant::now());
    while begun.elapsed() < Duration::from_secs(60) {
        let message = Message::binary(bytes::heartbeats(110));
        match timeout(Duration::from_millis(100), socket.send(message)).await {
            Ok(Ok(())) => outcome.sent("heartbeats by WebSocket", 110),
            Ok(Err(_)) => break,
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        if field.server.metrics()?.moved(&before, &Counter::closed("too_slow")) > 0 {
            outcome.saw("the WebSocket too");
            break;
        }
    }
    Ok(())
}

async fn slow_pages(field: &Field) -> Result<Outcome, Failed> {
    const ADDRESSES: usize = 4;
    const EACH: usize = 200;
    let mut outcome = Outcome::default();
    let path = largest_file(field).await?;
    let mut held = vec![];
    for _ in 0..ADDRESSES {
        let source = field.source();
        for _ in 0..EACH {
            let mut stream = tcp(field, source, Some(4_096)).await?;
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await?;
            outcome.sent("requests", 1);
            held.push(stream);
        }
    }
    tokio::time::sleep(field.span).await;
    outcome.saw("kept for no longer than two minutes");
    Ok(outcome)
}

async fn metrics_slow_readers(field: &Field) -> Result<Outcome, Failed> {
    const ADDRESSES: usize = 5;
    const EACH: usize = 200;
    // The system keeps some answers for each: this is what the server itself would have to keep.
    const REQUESTS: usize = 20;
    let mut outcome = Outcome::default();
    // Each room makes the text longer.
    let mut players = vec![];
    for number in 0..7 {
        let mut player = Peer::connect(field).await?;
        let mut login = LoginBytes::new(field, "in a room");
        login.room = format!("metrics-{number}").into_bytes();
        player.log_in(&login).await?;
        players.push(player);
    }
    let requests = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(REQUESTS);
    let (mut held, pause) = (vec![], field.span / ADDRESSES as u32);
    for _ in 0..ADDRESSES {
        let source = field.source();
        for _ in 0..EACH {
            let mut stream = tcp(field, source, Some(4_096)).await?;
            stream.write_all(requests.as_bytes()).await?;
            outcome.sent("readers", 1);
            outcome.sent("requests", REQUESTS);
            held.push(stream);
        }
        // Over several seconds: each has another text.
        tokio::time::sleep(pause).await;
    }
    let answered = field.server.metrics().is_ok();
    outcome.check(answered, "the operator was not answered");
    outcome.saw(if answered { "the operator is answered" } else { "no answer" });
    drop(held);
    for player in players {
        player.leave().await;
    }
    Ok(outcome)
}

/// The wasm, whose name is in a script, whose name is in the page.
async fn largest_file(field: &Field) -> Result<String, Failed> {
    let (mut paths, mut next) = (vec!["/".to_owned()], 0);
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        if path.ends_with(".wasm") {
            return Ok(path);
        }
        let mut stream = tcp(field, field.source(), None).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = vec![];
        stream.read_to_end(&mut answer).await?;
        let text = String::from_utf8_lossy(&answer);
        for word in text.split(['"', '\'', '`', '\\']) {
            let name = word.rsplit('/').next().unwrap_or(word);
            let path = format!("/assets/{name}");
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            if plain && (name.ends_with(".js") || name.ends_with(".wasm")) && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    Err("the page has no wasm".into())
}

async fn slow_writer(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let login = LoginBytes::new(field, "drip");
    let mut drip = Peer::connect(field).await?;
    let mut endless = Peer::enter(field, "endless").await?;
    drip.write(&login.preamble()).await;
    // A frame of 4,000 bytes that has begun.
    endless.write(&[0xa0, 0x0f, 4]).await;
    let frame = login.frame();
    let begun = Instant::now();
    for byte in frame.iter().cycle().take(200) {
        let open = (drip.connection.close_reason().is_none(), endless.connection.close_reason().is_none());
        if open == (false, false) || begun.elapsed() > PATIENCE {
            break;
        }
        // Slow enough not to be done in time.
        if open.0 && begun.elapsed() < Duration::from_millis(400) * frame.len() as u32 {
            drip.write(&[*byte]).await;
        }
        endless.write(&[0]).await;
        outcome.sent("bytes, one at a time", 2);
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    outcome.saw(format!("the login: {}", drip.end_within(PATIENCE).await));
    outcome.saw(format!("the message: {}", endless.end_within(PATIENCE).await));
    outcome.expect(Counter::closed("login_timeout"), 1);
    outcome.expect(Counter::closed("silent"), 1);
    Ok(outcome)
}

async fn streams_without_end(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let peer = Peer::enter(field, "streams").await?;
    let (mut both, mut one) = (vec![], vec![]);
    let begun = Instant::now();
    while begun.elapsed() < field.span && peer.connection.close_reason().is_none() {
        let wait = Duration::from_millis(20);
        if let Ok(Ok((mut send, recv))) = timeout(wait, peer.connection.open_bi()).await {
            let _ = timeout(wait, send.write_all(&[0; 4_096])).await;
            outcome.sent("streams", 1);
            both.push((send, recv));
        }
        if let Ok(Ok(mut send)) = timeout(wait, peer.connection.open_uni()).await {
            let _ = timeout(wait, send.write_all(&[0; 4_096])).await;
            outcome.sent("streams", 1);
            one.push(send);
        }
        if both.len() >= 3 {
            // Dropped in the middle, to have their places again.
            for (mut send, mut recv) in both.drain(..) {
                let _ = (send.reset(0_u32.into()), recv.stop(0_u32.into()));
            }
        }
    }
    let streams = outcome.sent.of("streams");
    let end = peer.end_within(Duration::from_millis(300)).await;
    outcome.check(streams <= 1_200 || end != "still there", format!("{streams} streams were opened"));
    outcome.saw(end);
    Ok(outcome)
}

async fn never_acknowledges(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut peers = vec![];
    for number in 0..4 {
        peers.push(Peer::enter(field, &format!("never {number}")).await?);
    }
    let begun = Instant::now();
    let mut next = begun;
    while begun.elapsed() < field.span.max(Duration::from_secs(2)) {
        for peer in &mut peers {
            let bytes = peer.input(field, |message| message.ack = None);
            peer.datagram(bytes);
            outcome.sent("inputs without an acknowledgement", 1);
            let _ = timeout(Duration::from_millis(1), peer.hear()).await;
            if Instant::now() >= next {
                peer.say(&FromClient::Heartbeat(Heartbeat { sent_micros: 0, received: 0 })).await;
            }
        }
        if Instant::now() >= next {
            next = Instant::now() + Duration::from_secs(1);
        }
        tokio::time::sleep(Duration::from_millis(45)).await;
    }
    for peer in peers {
        let open = peer.is_open().await;
        outcome.saw(if open { "still there, told everything in full" } else { "gone" });
        peer.leave().await;
    }
    Ok(outcome)
}

async fn silent_player(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 8;
    let mut outcome = Outcome::default();
    let mut peers = vec![];
    for number in 0..COUNT {
        peers.push(Peer::enter(field, &format!("silent {number}")).await?);
    }
    outcome.sent("players", COUNT);
    let stream = tcp(field, field.source(), None).await?;
    let socket = websocket(field, stream, None).await?;
    for peer in peers {
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("silent"), COUNT);
    if let Ok(mut socket) = socket {
        outcome.sent("WebSockets without a login", 1);
        outcome.saw(socket_end(&mut socket).await);
        outcome.expect(Counter::closed("login_timeout"), 1);
    }
    Ok(outcome)
}
