//! WebSockets below their messages, on real sockets: frames that no client of ours sends, and frames without end.

use std::time::Duration;

use crate::rig::{Host, corrections, drive_past, logged_in, login, soon, until};
use halftrack::session::DisconnectReason;
use halftrack_io::{Limits, RoomConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Headers of a request for a WebSocket, but for the first line and the empty last one.
const ASKING: &str = "Host: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A frame as a client sends it, with a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126);
    [&[first, 0x80 | length, 0, 0, 0, 0][..], payload].concat()
}

/// Sends a request with these headers, and `more` with it. Gives the socket and the head of the answer.
async fn ask(host: &Host, headers: &str, more: &[u8]) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(host.http.address()).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let request = format!("GET /ws HTTP/1.1\r\n{headers}\r\n");
    socket.write_all(&[request.as_bytes(), more].concat()).await.unwrap();
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon("an answer", socket.read_u8()).await.unwrap());
    }
    (socket, String::from_utf8(head).unwrap())
}

/// An open WebSocket as its bytes, on which somebody has logged in.
async fn open(host: &Host, name: &str) -> TcpStream {
    let (socket, head) = ask(host, ASKING, &frame(0x82, &login(name, None))).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.to_lowercase().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    until("the login", || host.names().iter().any(|each| each == name)).await;
    socket
}

/// Reads frames until a close frame, and gives its code.
async fn code(socket: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<u16> {
    loop {
        let first = soon("a frame", socket.read_u8()).await?;
        let second = socket.read_u8().await?;
        let length = match second {
            126 => usize::from(socket.read_u16().await?),
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        socket.read_exact(&mut payload).await?;
        if first == 0x88 {
            return Ok(u16::from_be_bytes([payload[0], payload[1]]));
        }
    }
}

/// Sends `bytes` again and again for as long as the socket takes them, and gives the code that it is closed with.
async fn flood(socket: TcpStream, bytes: &[u8]) -> std::io::Result<u16> {
    let (mut reader, mut writer) = socket.into_split();
    let sending = async {
        while writer.write_all(bytes).await.is_ok() {}
        core::future::pending::<()>().await;
    };
    tokio::select! {
        code = code(&mut reader) => code,
        () = sending => unreachable!("it does not end"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_below_the_messages_close_the_connection_and_others_play_on() {
    let host = Host::start(RoomConfig::default()).await;
    let healthy = host.websocket("Ada");
    logged_in(&healthy).await;
    healthy.set_input(8);
    let floods = [
        ("continuations of nothing", frame(0x00, &[]).repeat(1_000), 4_001),
        ("fragments", [frame(0x02, &[]), frame(0x00, &[]).repeat(1_000)].concat(), 4_001),
        ("the end of a message that never began", frame(0x80, &[]).repeat(1_000), 4_001),
        ("text", frame(0x81, b"hello"), 4_001),
        ("frames without a mask", vec![0x82, 0x00], 4_001),
        ("a frame that is longer than any", vec![0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0], 4_001),
        ("empty pings", frame(0x89, &[]).repeat(1_000), 4_012),
        ("pings of 125 bytes", frame(0x89, &[7; 125]).repeat(100), 4_012),
        ("empty pongs", frame(0x8a, &[]).repeat(1_000), 4_012),
        ("empty messages", frame(0x82, &[]).repeat(1_000), 4_012),
    ];
    for (number, (what, bytes, expected)) in floods.iter().enumerate() {
        let socket = open(&host, &format!("Eve {number}")).await;
        let code = flood(socket, bytes).await;
        assert_eq!(code.ok(), Some(*expected), "{what}");
    }
    let closed = |reason| host.room.stats().closed(reason);
    until("all are counted", || {
        closed(DisconnectReason::Malformed) == 6 && closed(DisconnectReason::TooMuch) == 4
    })
    .await;
    assert_eq!(host.door.stats().too_much, 4);
    until("their places are given back", || host.door.stats().connections == 1).await;
    drive_past(&healthy, 2.0).await;
    assert_eq!((corrections(&healthy), healthy.stats().disconnects), (0, 0));
    host.stop().await;
}

/// A flood that has not logged in, by a peer that reads only when its socket takes no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_before_its_login_hears_why_it_is_closed() {
    let host = Host::start(RoomConfig::default()).await;
    for (bytes, expected) in [(frame(0x00, &[]), 4_001), (frame(0x89, &[7; 100]), 4_012)] {
        let (mut socket, _) = ask(&host, ASKING, &[]).await;
        let (bytes, quiet) = (bytes.repeat(1_000), Duration::from_millis(100));
        while tokio::time::timeout(quiet, socket.write_all(&bytes)).await.is_ok_and(|written| written.is_ok())
        {
        }
        assert_eq!(code(&mut socket).await.ok(), Some(expected));
    }
    until("their places are given back", || host.door.stats().connections == 0).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_read_counts_also_when_it_is_of_one_byte() {
    // Two reads at once, and twenty a second.
    let limits = Limits { messages_per_second: 10, burst: Duration::from_millis(100), ..Limits::default() };
    let host = Host::start_with(limits).await;
    let mut socket = open(&host, "Eve").await;
    // One message that has no end yet: only its pieces can be counted.
    for byte in frame(0x82, &[7; 100]).iter().take(100) {
        let _ = socket.write_all(&[*byte]).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(code(&mut socket).await.unwrap(), 4_012);
    assert_eq!(host.door.stats().too_much, 1);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_is_none_is_refused() {
    let host = Host::start(RoomConfig::default()).await;
    let refused = [
        (ASKING.replace("WebSocket\r\n", "h2c\r\n"), "426"),
        (ASKING.replace("keep-alive, Upgrade", "keep-alive"), "426"),
        (ASKING.replace("Version: 13", "Version: 8"), "426"),
        (ASKING.replace("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ="), "400"),
        (ASKING.replace("dGhlIHNhbXBsZSBub25jZQ==", "no base64"), "400"),
        (format!("{ASKING}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), "400"),
        (format!("{ASKING}Origin: http://x\r\nOrigin: http://x\r\n"), "403"),
    ];
    for (headers, status) in refused {
        let (_, head) = ask(&host, &headers, &[]).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}\n{head}");
    }
    until("no places are kept", || host.door.stats().connections == 0).await;
    host.stop().await;
}
