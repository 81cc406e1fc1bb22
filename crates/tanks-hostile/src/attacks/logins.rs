//! Coming in too often, twice, under a name that is none, or into rooms without end.

use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use halftrack::Token;
use halftrack::session::DisconnectReason;
use halftrack::wire::control::{Continuity, FromClient, Heartbeat, LoginRefused, PROTOCOL};
use tokio_tungstenite::tungstenite::Message;

use super::web::WebTransport;
use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::LoginBytes;
use crate::metrics::Counter;
use crate::peer::{Login, PATIENCE, Peer, Socket, tcp, told, websocket_at};

attacks! { Guests:
    "login-flood", "one address logs in as fast as it can, always as somebody new" => login_flood;
    "login-twice", "a second login on a connection that is in" => login_twice;
    "wrong-version", "other versions, other rules" => wrong_version;
    "name-tricks", "names with control characters, bidi marks, nothing to see, piles of accents" => name_tricks;
    "reconnect-storm", "one session taken over by new connections again and again" => reconnect_storm;
    "kept-token", "logs in by a guest's name first, keeps the token, and uses it when the guest is in" => kept_token;
    "rooms-without-end", "a new room for every connection" => rooms_without_end;
    "rooms-by-quic", "connections by QUIC that each name a room, and do not log in" => rooms_by_quic;
    "rooms-by-webtransport", "WebTransport sessions that each name a room, and do not log in" => rooms_by_webtransport;
    "rooms-by-websocket", "WebSockets that each name a room, and do not log in" => rooms_by_websocket;
}

async fn login_flood(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 320;
    const AT_ONCE: usize = 8;
    let mut outcome = Outcome::default();
    let source = field.source();
    let mut peers = vec![];
    for wave in 0..COUNT / AT_ONCE {
        let knocks = (0..AT_ONCE).map(|number| async move {
            // Whoever is not heard at all is not waited for.
            let connecting = Peer::connect_from(field, source, 64 * 1_024);
            let mut peer = tokio::time::timeout(Duration::from_millis(400), connecting).await.ok()?.ok()?;
            let login = LoginBytes::new(field, &format!("flood {wave}.{number}"));
            let answer = peer.log_in(&login).await.ok()?;
            Some((peer, answer))
        });
        for knocked in futures_util::future::join_all(knocks).await {
            outcome.sent("connections from one address", 1);
            match knocked {
                Some((peer, answer)) => {
                    outcome.saw(answer.told());
                    peers.push(peer);
                }
                None => outcome.saw("not heard"),
            }
        }
    }
    outcome.check(outcome.seen.of("let in") <= 64, "more came in than the room has places");
    outcome.expect(Counter::REFUSED, 1);
    for peer in peers {
        if peer.connection.close_reason().is_none() {
            peer.leave().await;
        }
    }
    Ok(outcome)
}

async fn login_twice(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 10;
    let mut outcome = Outcome::default();
    for number in 0..COUNT {
        let mut peer = Peer::enter(field, &format!("first {number}")).await?;
        peer.write(&LoginBytes::new(field, &format!("second {number}")).frame()).await;
        outcome.sent("second logins", 1);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("malformed"), COUNT);
    Ok(outcome)
}

async fn wrong_version(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let ours = u64::from(PROTOCOL);
    let versions = [(ours - 1, field.shared), (ours + 1, field.shared), (65_535, 0)];
    for (protocol, shared) in versions.into_iter().chain([(ours, 0), (ours, !field.shared)]) {
        let mut peer = Peer::connect(field).await?;
        let login = LoginBytes { protocol, shared, ..LoginBytes::new(field, "other") };
        let answer = peer.log_in(&login).await?;
        outcome.sent("logins", 1);
        outcome.check(matches!(answer, Login::Refused(_)), "another version was let in");
        outcome.saw(answer.told());
    }
    outcome.expect(Counter::REFUSED, 5);
    Ok(outcome)
}

async fn name_tricks(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let long = "a".repeat(25);
    let names: [&[u8]; 20] = [
        b"",
        b"   ",
        b"a\0b",
        b"a\nb",
        b"a\x1b[31mb",
        b"a\x7fb",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        long.as_bytes(),
        "evil\u{202e}eman".as_bytes(),
        "a\u{2066}b".as_bytes(),
        "a\u{200b}b".as_bytes(),
        "a\u{200d}b".as_bytes(),
        "Honest\u{a0}0".as_bytes(),
        "\u{3164}".as_bytes(),
        "\u{2800}\u{2800}".as_bytes(),
        "a\u{fe0f}".as_bytes(),
        "a\u{e0041}".as_bytes(),
        "\u{301}\u{301}a".as_bytes(),
        "a\u{300}\u{301}\u{302}\u{303}\u{304}".as_bytes(),
    ];
    for name in names {
        let mut peer = Peer::connect(field).await?;
        let login = LoginBytes { name: name.to_vec(), ..LoginBytes::new(field, "") };
        let answer = peer.log_in(&login).await?;
        outcome.sent("names", 1);
        let refused = matches!(answer, Login::Closed(Some(DisconnectReason::Malformed)) | Login::Refused(_));
        outcome.check(refused, format!("{:?} was let in", String::from_utf8_lossy(name)));
        outcome.saw(answer.told());
    }
    outcome.expect(Counter::closed("malformed"), names.len());
    outcome.expect_at_most(Counter::LOGINS, 0);
    Ok(outcome)
}

async fn reconnect_storm(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 150;
    let mut outcome = Outcome::default();
    let mut peer = Peer::connect(field).await?;
    let mut login = LoginBytes::new(field, "storm");
    let Login::In { player, token, .. } = peer.log_in(&login).await? else {
        return Err("the first login was refused".into());
    };
    login.resume = Some(token);
    for number in 0..COUNT {
        let mut next = Peer::connect(field).await?;
        let answer = next.log_in(&login).await?;
        outcome.sent("connections", 1);
        outcome.saw(answer.told());
        let same = matches!(answer, Login::In { player: again, continuity: Continuity::Resumed { .. }, .. } if again == player);
        outcome.check(same, format!("connection {number} did not come back to the same player"));
        if number % 3 == 0 {
            // Cut, without a word.
            drop(peer);
        } else {
            outcome.saw(format!("the one before: {}", peer.end_within(Duration::from_secs(2)).await));
        }
        peer = next;
    }
    outcome.expect(Counter::closed("superseded"), COUNT / 3);
    peer.leave().await;
    Ok(outcome)
}

async fn kept_token(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 10;
    let mut outcome = Outcome::default();
    for number in 0..COUNT {
        let mut login = LoginBytes::new(field, &format!("guest {number}"));
        let mut thief = Peer::connect(field).await?;
        let Login::In { token, .. } = thief.log_in(&login).await? else {
            return Err("the attacker's own login was refused".into());
        };
        // It goes without a word.
        drop(thief);
        let (mut guest, own) = log_in_when_free(field, &login).await?;
        outcome.check(own != token, "the guest was given the token that the attacker kept");
        login.resume = Some(token);
        let mut thief = Peer::connect(field).await?;
        let answer = thief.log_in(&login).await?;
        outcome.sent("kept tokens", 1);
        outcome.saw(answer.told());
        outcome.check(matches!(answer, Login::Refused(_)), format!("the kept token: {}", answer.told()));
        // The guest is still heard, and still answered.
        let alive = guest.say(&heartbeat()).await && !guest.hear().await?.is_empty();
        outcome.check(alive, "the guest was closed");
        guest.leave().await;
    }
    outcome.expect(Counter::REFUSED, COUNT);
    outcome.expect_at_most(Counter::closed("superseded"), 0);
    Ok(outcome)
}

/// Logs in as soon as the server has noticed that the connection before is gone. Gives the peer and its token.
async fn log_in_when_free(field: &Field, login: &LoginBytes) -> Result<(Peer, Token), Failed> {
    let began = Instant::now();
    loop {
        let mut peer = Peer::connect(field).await?;
        match peer.log_in(login).await? {
            Login::In { token, .. } => return Ok((peer, token)),
            Login::Refused(LoginRefused::NameTaken) if began.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            other => return Err(other.told().into()),
        }
    }
}

fn heartbeat() -> FromClient {
    FromClient::Heartbeat(Heartbeat { sent_micros: 1, received: 0 })
}

async fn rooms_without_end(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 40;
    let mut outcome = Outcome::default();
    let mut peers = vec![];
    for number in 0..COUNT {
        let mut peer = Peer::connect(field).await?;
        let mut login = LoginBytes::new(field, "squatter");
        login.room = format!("room-{number}").into_bytes();
        let answer = peer.log_in(&login).await?;
        outcome.sent("rooms asked for", 1);
        outcome.saw(answer.told());
        peers.push(peer);
    }
    let rooms = field.server.metrics()?.get("halftrack_rooms");
    outcome.saw(format!("rooms: {rooms}"));
    outcome.check(rooms <= 8.0 || !field.server.is_ours(), format!("{rooms} rooms were made"));
    outcome.check(outcome.seen.of("closed with code 11") > 0, "no room was refused");
    for peer in peers {
        peer.leave().await;
    }
    Ok(outcome)
}

/// A link by which a room can be named.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Quic,
    WebTransport,
    WebSocket,
}

/// A connection that has named a room, and says no more.
#[expect(dead_code, reason = "held so that the connection stays open")]
pub(super) enum Named {
    Quic(Peer),
    WebTransport(WebTransport, quinn::SendStream),
    WebSocket(Socket),
}

impl Way {
    /// Names `room`, and sends `bytes` after it.
    pub(super) async fn name(self, field: &Field, room: &str, bytes: &[u8]) -> Result<Named, Failed> {
        match self {
            Self::Quic => {
                let mut peer = Peer::connect(field).await?;
                let length = u8::try_from(room.len())?;
                peer.write(&[&[length], room.as_bytes(), bytes].concat()).await;
                Ok(Named::Quic(peer))
            }
            Self::WebTransport => {
                let session = WebTransport::open(field, None, &format!("/room/{room}")).await?;
                let (mut send, _) = session.connection.open_bi().await?;
                // A stream of the session, as its first bytes say.
                send.write_all(&[&[0x40, 0x41, 0x00], bytes].concat()).await?;
                Ok(Named::WebTransport(session, send))
            }
            Self::WebSocket => {
                let stream = tcp(field, field.source(), None).await?;
                let opened = websocket_at(field, stream, &format!("/ws/room/{room}"), None).await?;
                let mut socket = opened.map_err(|status| format!("HTTP {status}"))?;
                if !bytes.is_empty() {
                    socket.send(Message::binary(bytes.to_vec())).await?;
                }
                Ok(Named::WebSocket(socket))
            }
        }
    }
}

/// Names far more rooms than there may be, and sends `bytes` in each: none must be made. Then `good` logs in, into a room
/// of its own, while all of them are still connected. Gives the connections.
pub(super) async fn squat(
    field: &Field,
    outcome: &mut Outcome,
    way: Way,
    bytes: &[u8],
    good: &LoginBytes,
) -> Result<Vec<Named>, Failed> {
    const COUNT: usize = 40;
    // The text of the metrics is up to a second old.
    const TEXT: Duration = Duration::from_millis(1_100);
    tokio::time::sleep(TEXT).await;
    let before = field.server.metrics()?;
    let mut held = vec![];
    for number in 0..COUNT {
        held.push(way.name(field, &format!("squat-{number}"), bytes).await?);
        outcome.sent("rooms named", 1);
    }
    tokio::time::sleep(TEXT).await;
    let after = field.server.metrics()?;
    let made = after.get("halftrack_rooms_made_total") - before.get("halftrack_rooms_made_total");
    outcome.check(made == 0.0, format!("{made} rooms were made without a login"));
    let series = after.series().saturating_sub(before.series());
    outcome.check(series == 0, format!("{series} metric series were made without a login"));
    let mut player = Peer::connect(field).await?;
    let answer = player.log_in(good).await?;
    outcome.check(matches!(answer, Login::In { .. }), format!("a good login got no room: {}", answer.told()));
    outcome.saw(format!("a good login: {}", answer.told()));
    player.leave().await;
    Ok(held)
}

async fn rooms_named(field: &Field, way: Way) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut good = LoginBytes::new(field, "good");
    // Rooms of earlier attacks end soon.
    let patience = tokio::time::Instant::now() + Duration::from_secs(8);
    while field.server.metrics()?.get("halftrack_rooms") > 1.0 && tokio::time::Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Silence, and half of a login.
    let login = good.frame();
    let mut held = vec![];
    for (number, bytes) in [&[][..], &login[..login.len() / 2]].into_iter().enumerate() {
        good.room = format!("good-{way:?}-{number}").into_bytes();
        held.extend(squat(field, &mut outcome, way, bytes, &good).await?);
    }
    // After `limits.handshake_s` they are closed.
    tokio::time::sleep(Duration::from_secs(3)).await;
    outcome.expect(Counter::closed("login_timeout"), held.len());
    Ok(outcome)
}

async fn rooms_by_quic(field: &Field) -> Result<Outcome, Failed> {
    rooms_named(field, Way::Quic).await
}

async fn rooms_by_webtransport(field: &Field) -> Result<Outcome, Failed> {
    rooms_named(field, Way::WebTransport).await
}

async fn rooms_by_websocket(field: &Field) -> Result<Outcome, Failed> {
    rooms_named(field, Way::WebSocket).await
}
