//! What has brought down other netcode, one by one.

use futures_util::SinkExt as _;
use halftrack::Token;
use halftrack::wire::BitWriter;
use halftrack::wire::control::{Continuity, Restart};
use tokio_tungstenite::tungstenite::Message;

use super::handshakes::{Proof, first_packets};
use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::{self, LoginBytes, varint};
use crate::dice::Dice;
use crate::metrics::Counter;
use crate::peer::{Login, Peer, socket_end, tcp, told, websocket};

attacks! { Guests:
    "slice-index", "datagrams whose counts point beyond their end" => slice_index;
    "reassembly-bomb", "messages that claim to be gigabytes long" => reassembly_bomb;
    "drive-another", "guessed tokens and taken names, to be somebody else" => drive_another;
    "far-future-tick", "input for ticks that are seconds to years ahead" => far_future_tick;
    "empty-packet", "packets of no length on both lanes, before and after login" => empty_packet;
    "spoofed-addresses", "first packets from thousands of addresses" => spoofed_addresses;
    "zero-size", "messages of no size without end: bytes that never add up" => zero_size;
}

async fn slice_index(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 300;
    let mut outcome = Outcome::default();
    let (peer, mut dice) = (Peer::enter(field, "slice").await?, Dice::new(field.seed));
    for number in 0..COUNT {
        let mut buffer = [0; 64];
        let mut bits = BitWriter::new(&mut buffer);
        bits.write(number as u32, 16);
        bits.write_flag(false);
        // More ticks than a message may hold, or more than are in it.
        bits.write(if number % 2 == 0 { 129 + dice.below(127) as u32 } else { 100 }, 8);
        bits.write(dice.next() as u32, 32);
        let length = bits.finish().unwrap_or(0) + dice.below(8);
        peer.datagram(buffer[..length].to_vec());
        pace(number).await;
    }
    outcome.sent("datagrams", COUNT);
    outcome.expect(Counter::dropped("malformed"), COUNT * 7 / 10);
    outcome.check(peer.is_open().await, "a datagram that means nothing is dropped, and closes nothing");
    peer.leave().await;
    Ok(outcome)
}

/// Slow enough not to be a flood: what comes faster than a room takes it in a tick is dropped, and not looked at.
pub(super) async fn pace(number: usize) {
    if number % 8 == 7 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn reassembly_bomb(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let login = LoginBytes::new(field, "bomb");
    let claims = |length: u64| {
        let mut body = vec![];
        varint(1, &mut body);
        varint(field.shared, &mut body);
        varint(length, &mut body);
        body.extend_from_slice(&[b'a'; 64]);
        bytes::frame(1, &body)
    };
    let mut credentials = login.body();
    credentials.pop();
    credentials.push(1);
    varint(u64::MAX, &mut credentials);
    let bombs = [
        vec![0xff, 0xff, 1],
        vec![0x02, 0x10, 1],
        claims(1 << 30),
        claims(1 << 62),
        claims(u64::MAX),
        bytes::frame(1, &credentials),
    ];
    for _ in 0..4 {
        for bomb in &bombs {
            let mut peer = Peer::connect(field).await?;
            peer.write(&[&[0][..], bomb].concat()).await;
            outcome.saw(told(peer.closed().await?));
            outcome.sent("claims", 1);
        }
    }
    outcome.expect(Counter::closed("malformed"), 4 * bombs.len());
    Ok(outcome)
}

async fn drive_another(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut dice = Dice::new(field.seed);
    let mut tokens = vec![Token::new([0; 16]), Token::new([0xff; 16])];
    for _ in 0..20 {
        let guess = dice.bytes(16);
        tokens.push(Token::new(guess.try_into().unwrap_or_default()));
    }
    for (number, token) in tokens.into_iter().enumerate() {
        let mut login = LoginBytes::new(field, &format!("thief {number}"));
        // Every other one as a process that has nothing but its token.
        let received = (number % 2 == 0).then(|| dice.next());
        (login.resume, login.received) = (Some(token), received);
        let mut peer = Peer::connect(field).await?;
        let answer = peer.log_in(&login).await?;
        let reclaimed = Continuity::Restarted(Restart::Reclaimed);
        let stolen = matches!(answer, Login::In { continuity, .. }
            if continuity == reclaimed || matches!(continuity, Continuity::Resumed { .. }));
        outcome.check(!stolen, "a guessed token opened somebody's session");
        outcome.saw(answer.told());
        outcome.sent("guessed tokens", 1);
        peer.leave().await;
    }
    for number in 0..crate::honest::COUNT {
        let mut peer = Peer::connect(field).await?;
        let answer = peer.log_in(&LoginBytes::new(field, &format!("Honest {number}"))).await?;
        outcome.check(matches!(answer, Login::Refused(_)), "a name that is taken was given again");
        outcome.saw(answer.told());
        outcome.sent("taken names", 1);
    }
    outcome.expect(Counter::REFUSED, crate::honest::COUNT);
    Ok(outcome)
}

async fn far_future_tick(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 200;
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "future").await?;
    for number in 0..COUNT {
        let now = peer.tick(field).number();
        let ahead = [now + 60, now + 10_000, u32::MAX - 1, u32::MAX][number % 4];
        let bytes = peer.input(field, |message| message.newest = halftrack::Tick::new(ahead));
        peer.datagram(bytes);
        pace(number).await;
    }
    outcome.sent("datagrams", COUNT);
    outcome.expect(Counter::missed("far_future"), COUNT);
    outcome.check(peer.is_open().await, "input that is too early is not taken, and closes nothing");
    peer.leave().await;
    Ok(outcome)
}

async fn empty_packet(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 100;
    let mut outcome = Outcome::default();
    let mut stranger = Peer::connect(field).await?;
    stranger.write(&[0]).await;
    let peer = Peer::enter(field, "empty").await?;
    for number in 0..COUNT {
        stranger.datagram(vec![]);
        peer.datagram(vec![]);
        pace(number).await;
    }
    outcome.sent("empty datagrams", 2 * COUNT);
    outcome.expect(Counter::dropped("malformed"), COUNT * 7 / 10);
    outcome.check(peer.is_open().await, "an empty datagram is dropped, and closes nothing");
    // A frame of no length is none: nothing after it could be trusted.
    for mut peer in [stranger, peer] {
        peer.write(&[0, 0]).await;
        outcome.sent("empty frames", 1);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("malformed"), 2);
    let stream = tcp(field, field.source(), None).await?;
    if let Ok(mut socket) = websocket(field, stream, None).await? {
        for _ in 0..COUNT {
            socket.send(Message::binary(vec![])).await?;
        }
        outcome.sent("empty WebSocket messages", COUNT);
        socket.close(None).await?;
    }
    Ok(outcome)
}

async fn spoofed_addresses(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    // More than the table of addresses holds, if there is time for it.
    let (packets, connections) = if field.is_long() { (4_000, 18_000) } else { (1_000, 2_000) };
    let sent = first_packets(field, packets, 1, Proof::Missing).await?;
    outcome.sent("first packets, each from its own address", sent);
    let mut held = vec![];
    for number in 0..connections {
        held.push(tcp(field, field.source(), None).await?);
        if number % 64 == 63 {
            // Three thousand a second, which is more than a small server should ever be asked, and not all that there is.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        if number % 256 == 255 {
            held.clear();
        }
    }
    outcome.sent("TCP connections, each from its own address", connections);
    let known = field.server.metrics()?.get("halftrack_known_addresses");
    outcome.saw(format!("addresses remembered: {known}"));
    outcome.check(known <= 16_384.0, format!("{known} addresses are remembered"));
    outcome.expect(Counter::RETRIES, packets / 2);
    Ok(outcome)
}

async fn zero_size(field: &Field) -> Result<Outcome, Failed> {
    const MOST: usize = 5_000;
    let mut outcome = Outcome::default();
    let peer = Peer::enter(field, "zero datagrams").await?;
    let mut sent = 0;
    while sent < MOST && peer.connection.close_reason().is_none() {
        peer.datagram(vec![]);
        sent += 1;
        if sent % 16 == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    outcome.sent("empty datagrams", sent);
    outcome.saw(told(peer.closed().await?));
    let mut peer = Peer::enter(field, "zero frames").await?;
    let empty = bytes::frame(5, &[]).repeat(100);
    let mut sent = 0;
    while sent < MOST && peer.write(&empty).await {
        sent += 100;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    outcome.sent("empty frames", sent);
    outcome.saw(told(peer.closed().await?));
    let stream = tcp(field, field.source(), None).await?;
    if let Ok(mut socket) = websocket(field, stream, None).await? {
        let mut sent = 0;
        while sent < MOST && socket.send(Message::binary(vec![])).await.is_ok() {
            sent += 1;
        }
        outcome.sent("empty WebSocket messages", sent);
        outcome.saw(socket_end(&mut socket).await);
    }
    outcome.expect(Counter::away("too_much"), 3);
    Ok(outcome)
}
