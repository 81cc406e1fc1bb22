//! Packets that are none: garbage, cut, too long and changed ones, on both lanes, at every state of a session.

use futures_util::SinkExt as _;
use halftrack::Cause;
use halftrack::session::DisconnectReason;
use halftrack::wire::control::{FromClient, Heartbeat, Report};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;

use super::defects::pace;
use super::web::WebTransport;
use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::{self, LoginBytes};
use crate::dice::Dice;
use crate::metrics::Counter;
use crate::peer::{PATIENCE, Peer, socket_end, tcp, told, websocket};

attacks! { Guests:
    "stream-garbage", "random bytes on the stream: before the room is named, before login, in a session" => stream_garbage;
    "stream-truncated", "a login cut anywhere, and then the end" => stream_truncated;
    "stream-oversize", "frames longer than any may be, before login and in a session" => stream_oversize;
    "stream-mutated", "true messages with a bit turned over, before login and in a session" => stream_mutated;
    "wrong-direction", "messages that only a server sends, and kinds that nobody does" => wrong_direction;
    "datagram-garbage", "random datagrams of any length: without a room, before login, in a session, after logout" => datagram_garbage;
    "datagram-mutated", "true input with a bit turned over, or cut" => datagram_mutated;
    "webtransport-garbage", "garbage for HTTP/3, sessions that are none, datagrams of no session, paths that are no room" => webtransport_garbage;
    "websocket-garbage", "text, garbage, and frames that break the WebSocket itself" => websocket_garbage;
}

/// How far a session has come.
#[derive(Clone, Copy, Debug)]
enum State {
    Connected,
    InRoom,
    LoggedIn,
    LoggedOut,
}

impl State {
    async fn reach(self, field: &Field, name: &str) -> Result<Peer, Failed> {
        let mut peer = match self {
            Self::LoggedIn | Self::LoggedOut => return Peer::enter(field, name).await,
            Self::Connected | Self::InRoom => Peer::connect(field).await?,
        };
        if let Self::InRoom = self {
            peer.write(&[0]).await;
        }
        Ok(peer)
    }
}

async fn stream_garbage(field: &Field) -> Result<Outcome, Failed> {
    const EACH: usize = 12;
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    for state in [State::Connected, State::InRoom, State::LoggedIn] {
        for number in 0..EACH {
            let mut peer = state.reach(field, &format!("garbage {number}")).await?;
            // Longer than the longest frame, so that the first of them is whole.
            let more = dice.below(400);
            let garbage = dice.bytes(4_200 + more);
            peer.write(&garbage).await;
            outcome.sent("streams of garbage", 1);
            outcome.saw(peer.end_within(PATIENCE).await);
        }
    }
    outcome.check(outcome.seen.of("still there") == 0, "garbage did not end a connection");
    outcome.expect(Counter::closed("malformed"), 2 * EACH);
    Ok(outcome)
}

async fn stream_truncated(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let login = LoginBytes::new(field, "truncated");
    let whole = [login.preamble(), login.frame()].concat();
    for cut in (0..whole.len()).step_by(3) {
        let mut peer = Peer::connect(field).await?;
        peer.write(&whole[..cut]).await;
        let _ = peer.send.finish();
        outcome.sent("cut logins", 1);
        outcome.saw(peer.end_within(PATIENCE).await);
    }
    outcome.check(outcome.seen.of("still there") == 0, "a stream that ended did not end its connection");
    outcome.expect_at_most(Counter::LOGINS, 0);
    Ok(outcome)
}

async fn stream_oversize(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for state in [State::InRoom, State::LoggedIn] {
        for length in [4_098_u16, 5_000, 16_384, u16::MAX] {
            let mut peer = state.reach(field, &format!("oversize {length}")).await?;
            let mut frame = length.to_le_bytes().to_vec();
            frame.resize(usize::from(length) + 2, 3);
            peer.write(&frame).await;
            outcome.sent("frames too long", 1);
            let reason = peer.closed().await?;
            // The longest comes in so many packets that the meter may notice it before the room reads its length.
            let refused = reason == Some(DisconnectReason::Malformed)
                || (length == u16::MAX && reason == Some(DisconnectReason::TooMuch));
            outcome.check(refused, format!("a frame of {length} bytes was not refused"));
            outcome.saw(told(reason));
        }
    }
    outcome.expect(Counter::closed("malformed"), 6);
    Ok(outcome)
}

async fn stream_mutated(field: &Field) -> Result<Outcome, Failed> {
    const EACH: usize = 24;
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    for number in 0..EACH {
        let login = LoginBytes::new(field, &format!("mutant {number}"));
        let mut peer = Peer::connect(field).await?;
        let changed = dice.flip(&login.frame());
        peer.write(&[&[0][..], &changed].concat()).await;
        // So that a length that has grown is filled.
        peer.write(&[0; 4_200]).await;
        outcome.sent("changed logins", 1);
        outcome.saw(peer.end_within(PATIENCE).await);
    }
    let mut peer = Peer::enter(field, "mutants").await?;
    for number in 0..4 * EACH {
        let tick = peer.tick(field);
        let message = match number % 3 {
            0 => FromClient::Heartbeat(Heartbeat { sent_micros: dice.next(), received: 0 }),
            1 => bytes::shot(tick, 7, 9, tick, 0),
            _ => FromClient::Report(Report { corrections: [1; Cause::ALL.len()], snapped: 1, sizes: vec![] }),
        };
        let changed = dice.flip(&bytes::frame_of(&message));
        if !peer.write(&changed).await || !peer.is_open_now() {
            peer = Peer::enter(field, &format!("mutants {number}")).await?;
        }
        outcome.sent("changed messages", 1);
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    // However far into a frame the last change has led.
    peer.write(&[0; 4_200]).await;
    outcome.saw(told(peer.closed().await?));
    outcome.expect(Counter::closed("malformed"), EACH / 2);
    Ok(outcome)
}

async fn wrong_direction(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let kinds = (33..=43).chain([0, 7, 44, 255]);
    for (number, kind) in kinds.enumerate() {
        let state = if number % 2 == 0 { State::LoggedIn } else { State::InRoom };
        let mut peer = state.reach(field, &format!("server {kind}")).await?;
        peer.write(&bytes::frame(kind, &[1; 16])).await;
        outcome.sent("frames", 1);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("malformed"), 15);
    Ok(outcome)
}

async fn datagram_garbage(field: &Field) -> Result<Outcome, Failed> {
    const EACH: usize = 200;
    // More is more than a connection may send before its login, and another attack.
    const BEFORE_LOGIN: usize = 40;
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    for state in [State::Connected, State::InRoom, State::LoggedIn, State::LoggedOut] {
        let mut peer = state.reach(field, "noise").await?;
        let newcomer = matches!(state, State::Connected | State::InRoom);
        let count = if newcomer { BEFORE_LOGIN } else { EACH };
        if let State::LoggedOut = state {
            peer.say(&FromClient::Logout(())).await;
        }
        let longest = peer.connection.max_datagram_size().unwrap_or(1_100);
        for number in 0..count {
            let length = if number % 8 == 0 { longest } else { dice.below(longest + 1) };
            // What is counted by bytes is another attack.
            peer.datagram(dice.bytes(length.min(if number % 8 == 0 { longest } else { 200 })));
            pace(number).await;
        }
        outcome.sent("datagrams", count);
        if !matches!(state, State::LoggedOut) {
            outcome.check(peer.is_open().await, "datagrams that mean nothing are dropped, and close nothing");
        }
        if let State::LoggedIn = state {
            peer.leave().await;
        }
    }
    outcome.expect(Counter::dropped("malformed"), EACH * 6 / 10);
    outcome.expect(Counter::dropped("stray"), BEFORE_LOGIN);
    Ok(outcome)
}

async fn datagram_mutated(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 400;
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    let mut peer = Peer::enter(field, "mutated input").await?;
    for number in 0..COUNT {
        let whole = peer.input(field, |message| message.ack = Some(message.newest));
        let changed = if number % 2 == 0 { dice.flip(&whole) } else { dice.cut(&whole) };
        peer.datagram(changed);
        pace(number).await;
    }
    outcome.sent("datagrams", COUNT);
    outcome.expect(Counter::dropped("malformed"), COUNT / 5);
    outcome.check(peer.is_open().await, "input that is changed on the way is dropped, and closes nothing");
    peer.leave().await;
    Ok(outcome)
}

async fn webtransport_garbage(field: &Field) -> Result<Outcome, Failed> {
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    for number in 0..12 {
        let (_endpoint, connection) = WebTransport::shake_hands(field).await?;
        let garbage = dice.bytes(2_000);
        // Settings that are none, or true ones and a request that is none. The server may have had enough of it meanwhile.
        let said = async {
            let mut settings = connection.open_uni().await?;
            if number % 2 == 0 {
                settings.write_all(&garbage).await?;
            } else {
                WebTransport::say_settings(&mut settings).await?;
            }
            let (mut request, recv) = connection.open_bi().await?;
            request.write_all(&garbage).await?;
            request.finish()?;
            Ok::<_, Failed>((settings, recv))
        };
        let _streams = said.await;
        outcome.sent("connections", 1);
        outcome.saw(format!("garbage: {}", ended(&connection).await));
    }
    for path in [
        "/room/",
        "/room/a/b",
        "/room/%2e%2e",
        "/admin/rooms",
        "/room/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        let session = WebTransport::open(field, None, path).await?;
        outcome.sent("paths", 1);
        outcome.saw(format!("path: {}", ended(&session.connection).await));
    }
    let session = WebTransport::open(field, None, "/").await?;
    let (mut stream, _recv) = session.connection.open_bi().await?;
    stream.write_all(&[&[0x40, 0x41, 0x00][..], &LoginBytes::new(field, "session").frame()].concat()).await?;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    session.connection.send_datagram(vec![0x3f; 40].into())?;
    outcome.sent("datagrams of another session", 1);
    outcome.saw(format!("datagram: {}", ended(&session.connection).await));
    let kept = outcome.seen.0.keys().any(|what| what.ends_with("still there"));
    outcome.check(!kept, "a broken session was kept");
    outcome.expect(Counter::away("handshake_failed"), 1);
    Ok(outcome)
}

/// How a connection ended that has no codes of ours.
async fn ended(connection: &quinn::Connection) -> &'static str {
    match tokio::time::timeout(PATIENCE, connection.closed()).await {
        Ok(_) => "closed",
        Err(_) => "still there",
    }
}

async fn websocket_garbage(field: &Field) -> Result<Outcome, Failed> {
    let (mut outcome, mut dice) = (Outcome::default(), Dice::new(field.seed));
    let login = LoginBytes::new(field, "socket").frame();
    let messages = [
        vec![Message::text("hello")],
        vec![Message::binary(dice.bytes(4_200))],
        vec![Message::binary(login.clone()), Message::text("hello")],
        vec![Message::binary(login.clone()), Message::binary(vec![0xff; 8])],
        vec![Message::binary(vec![0; 40_000])],
    ];
    for messages in messages {
        let stream = tcp(field, field.source(), None).await?;
        let Ok(mut socket) = websocket(field, stream, None).await? else { continue };
        for message in messages {
            let _ = socket.send(message).await;
        }
        outcome.sent("sockets", 1);
        outcome.saw(socket_end(&mut socket).await);
    }
    // Below the library: a frame without a mask, reserved bits, a length of exabytes, a ping that is too long.
    let ping = [&[0x89, 0xfe, 0x10, 0x00, 1, 2, 3, 4][..], &[0; 0x1000]].concat();
    let frames: [&[u8]; 4] = [
        &[0x82, 0x01, 0x00],
        &[0xf2, 0x81, 1, 2, 3, 4, 5],
        &[0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4],
        &ping,
    ];
    for frame in frames {
        let stream = tcp(field, field.source(), None).await?;
        let Ok(mut socket) = websocket(field, stream, None).await? else { continue };
        let _ = socket.get_mut().write_all(frame).await;
        outcome.sent("broken frames", 1);
        outcome.saw(socket_end(&mut socket).await);
    }
    outcome.check(outcome.seen.of("still there") == 0, "a broken socket was kept");
    outcome.expect(Counter::closed("malformed"), 3);
    Ok(outcome)
}
