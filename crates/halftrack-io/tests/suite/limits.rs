//! What peers are allowed, on real sockets: how many, how fast, how much, from where, and that nobody else
//! notices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::rig::{
    Host, certificate, config, corrections, drive_past, heartbeats, logged_in, login, soon, until,
};
use futures_util::{SinkExt, StreamExt};
use halftrack::cart::Cart;
use halftrack::server::ServerConfig;
use halftrack::session::{DisconnectReason, SessionEnd, SessionState};
use halftrack_io::{ClientHandle, IoError, Limits, RoomConfig, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use web_transport_quinn::proto;

/// Waits until a client has been turned away.
async fn refused(client: &ClientHandle<Cart>) {
    until("a refusal", || client.last_error().is_some()).await;
    let problem = client.last_error().unwrap();
    assert!(matches!(*problem, IoError::Refused { .. }), "{problem}");
}

/// A WebSocket without anything of ours behind it; `origin` as a browser would send it.
async fn websocket(
    host: &Host,
    origin: Option<&str>,
) -> Result<WebSocketStream<TcpStream>, tungstenite::Error> {
    let address = host.http.address();
    let mut request = format!("ws://{address}/ws").into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    let socket = TcpStream::connect(address).await.unwrap();
    soon("an answer", client_async(request, socket)).await.map(|(socket, _)| socket)
}

/// Reads until the server closes, and gives its code.
async fn closed(
    stream: &mut (impl StreamExt<Item = Result<Message, tungstenite::Error>> + Unpin),
) -> Option<u16> {
    while let Some(Ok(message)) = soon("a message", stream.next()).await {
        if let Message::Close(close) = message {
            return close.map(|close| close.code.into());
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_so_many_connections_by_all_links_together() {
    let host = Host::start_with(Limits { max_per_address: 2, ..Limits::default() }).await;
    let (ada, bob) = (host.quic("Ada"), host.websocket("Bob"));
    logged_in(&ada).await;
    logged_in(&bob).await;
    let (eve, mallory) = (host.quic("Eve"), host.websocket("Mallory"));
    refused(&eve).await;
    refused(&mallory).await;
    let stats = host.door.stats();
    assert!(stats.address_full >= 2 && stats.full == 0 && stats.connections == 2, "{stats:?}");
    drop(mallory);
    drop(ada);
    logged_in(&eve).await;
    host.stop().await;
    until("all places are given back", || host.door.stats().connections == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_has_so_many_connections_by_all_links_together() {
    let host = Host::start_with(Limits { max_connections: 2, ..Limits::default() }).await;
    let (ada, bob) = (host.quic("Ada"), host.websocket("Bob"));
    logged_in(&ada).await;
    logged_in(&bob).await;
    for late in [host.quic("Eve"), host.websocket("Mallory")] {
        refused(&late).await;
    }
    let stats = host.door.stats();
    assert!(stats.full >= 2 && stats.address_full == 0, "{stats:?}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_have_a_rate_which_can_be_changed_while_running() {
    let limits = Limits { handshakes_per_second: 1, handshake_burst: 1, ..Limits::default() };
    let host = Host::start_with(limits).await;
    let clients = ["Ada", "Bob", "Cy", "Dan"].map(|name| host.quic(name));
    until("some come too fast", || host.door.stats().handshake_rate > 0).await;
    assert!(host.door.set_limits(Limits { handshake_burst: 0, ..limits }).is_err());
    assert_eq!(host.door.limits(), limits, "what is out of range changes nothing");
    host.door.set_limits(Limits::default()).unwrap();
    for client in &clients {
        logged_in(client).await;
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_datagrams_is_closed_and_others_play_on() {
    let host = Host::start(RoomConfig::default()).await;
    let healthy = host.quic("Ada");
    logged_in(&healthy).await;
    healthy.set_input(8);
    let mut flood = host.peer().await;
    flood.log_in("Eve", None).await;
    flood.token().await;
    while flood.connection.close_reason().is_none() {
        let _ = flood.connection.send_datagram(vec![0; 8].into());
        tokio::task::yield_now().await;
    }
    assert_eq!(flood.closed().await, Some(DisconnectReason::TooMuch));
    until("it is counted", || host.room.stats().closed(DisconnectReason::TooMuch) == 1).await;
    assert_eq!(host.door.stats().too_much, 1);
    until("nobody waits for it", || host.names() == ["Ada"]).await;
    drive_past(&healthy, 2.0).await;
    assert_eq!((corrections(&healthy), healthy.stats().disconnects), (0, 0));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_the_stream_is_closed_however_it_is_cut() {
    let host = Host::start(RoomConfig::default()).await;
    // Many messages in few pieces; few bytes of them, so it is their number that counts.
    let mut flood = host.peer().await;
    flood.log_in("Eve", None).await;
    let _ = flood.send.write_all(&heartbeats(1_300)).await;
    assert_eq!(flood.closed().await, Some(DisconnectReason::TooMuch));
    // The first part of a message for ever: bytes that are no message yet.
    host.door.set_limits(Limits { bytes_per_second: 1_024, ..Limits::default() }).unwrap();
    let mut flood = host.peer().await;
    let _ = flood.send.write_all(&[&[0, 0, 16][..], &[7; 4_000]].concat()).await;
    assert_eq!(flood.closed().await, Some(DisconnectReason::TooMuch));
    assert_eq!(host.door.stats().too_much, 2);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_a_websocket_is_closed_and_others_play_on() {
    let host = Host::start(RoomConfig::default()).await;
    let healthy = host.websocket("Ada");
    logged_in(&healthy).await;
    healthy.set_input(8);
    // Messages of no length are messages; so are pings, which never come to a room.
    for (name, message) in [("Eve", Message::binary(vec![])), ("Mallory", Message::Ping(vec![].into()))] {
        let (mut sink, mut stream) = websocket(&host, None).await.unwrap().split();
        sink.send(Message::binary(login(name, None))).await.unwrap();
        let flood = async {
            while sink.send(message.clone()).await.is_ok() {}
            core::future::pending::<()>().await;
        };
        let code = tokio::select! {
            code = closed(&mut stream) => code,
            () = flood => None,
        };
        assert_eq!(code, Some(4_012));
    }
    assert_eq!(host.door.stats().too_much, 2);
    drive_past(&healthy, 2.0).await;
    assert_eq!((corrections(&healthy), healthy.stats().disconnects), (0, 0));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_limits_hold_for_those_who_are_there_and_who_sends_too_much_does_not_come_back() {
    let host = Host::start(RoomConfig::default()).await;
    let clients = [host.quic("Ada"), host.websocket("Bob")];
    for client in &clients {
        logged_in(client).await;
    }
    let few = Limits { messages_per_second: 10, burst: Duration::from_millis(100), ..Limits::default() };
    host.door.set_limits(few).unwrap();
    for client in &clients {
        until("the end", || client.state() == SessionState::Failed(SessionEnd::TooMuch)).await;
        assert_eq!((client.last_close(), client.stats().connects), (Some(DisconnectReason::TooMuch), 1));
    }
    assert_eq!(host.room.stats().closed(DisconnectReason::TooMuch), 2);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_finish_a_handshake_is_closed() {
    let limits = Limits { handshake: Duration::from_millis(300), max_http: 2, ..Limits::default() };
    let host = Host::start_with(limits).await;
    let address = host.http.address();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    until("both are there", || host.door.stats().http_connections == 2).await;
    let mut third = TcpStream::connect(address).await.unwrap();
    assert!(soon("the third is too many", third.read_u8()).await.is_err());
    assert_eq!(host.door.stats().http_refused, 1);
    let drip = async {
        let head = b"GET / HTTP/1.1\r\nCookie: ".iter().chain(core::iter::repeat(&b'a'));
        for byte in head {
            if writer.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        core::future::pending::<()>().await;
    };
    let mut rest = vec![];
    tokio::select! {
        _ = soon("the end of the slow one", reader.read_to_end(&mut rest)) => {}
        () = drip => {}
    }
    let _ = soon("the end of the silent one", silent.read_to_end(&mut rest)).await;
    // The same by QUIC: connected, and then nothing.
    let peer = host.peer().await;
    assert_eq!(peer.closed().await, None);
    // And by WebTransport: a session without a stream, of a peer that closes nothing by itself.
    let (_endpoint, connection) = crate::rig::shake_hands(host.endpoint.address(), 64 * 1_024, b"h3").await;
    let (mut settings, mut control) = (proto::Settings::default(), connection.open_uni().await.unwrap());
    settings.enable_webtransport(1);
    settings.write(&mut control).await.unwrap();
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    let url = url::Url::parse(&format!("https://{}/", host.endpoint.address())).unwrap();
    proto::ConnectRequest::new(url).write(&mut send).await.unwrap();
    let end = soon("the end of the session", connection.closed()).await;
    assert!(matches!(end, quinn::ConnectionError::ApplicationClosed(_)), "it was left alone: {end}");
    until("all are counted", || host.door.stats().handshake_timeouts == 4).await;
    let player = host.websocket("Ada");
    logged_in(&player).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_to_be_proven_always_or_under_load() {
    let host = Host::start_with(Limits { retry_from: 0, ..Limits::default() }).await;
    let ada = host.quic("Ada");
    logged_in(&ada).await;
    assert!(host.door.stats().retries >= 1);
    host.stop().await;

    let host = Host::start_with(Limits { retry_from: 2, ..Limits::default() }).await;
    let _unfinished = (host.peer().await, host.peer().await);
    assert_eq!((host.door.stats().unfinished, host.door.stats().retries), (2, 0));
    let bob = host.quic("Bob");
    logged_in(&bob).await;
    assert!(host.door.stats().retries >= 1);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_banned_address_is_closed_and_refused_until_it_is_lifted() {
    let host = Host::start(RoomConfig::default()).await;
    let (ada, bob) = (host.quic("Ada"), host.websocket("Bob"));
    logged_in(&ada).await;
    logged_in(&bob).await;
    // From a player to an address, as an operator would.
    let player = ada.read(|client| client.player()).unwrap();
    let connection = host.room.with(move |server, _| server.connection_of(player)).unwrap().unwrap();
    let address = host.room.address(connection).unwrap();
    assert_eq!(address, IpAddr::V4(Ipv4Addr::LOCALHOST));
    host.door.ban(address, None).unwrap();
    for client in [&ada, &bob] {
        until("the end", || client.state() == SessionState::Failed(SessionEnd::Kicked)).await;
        assert_eq!((client.last_close(), client.stats().connects), (Some(DisconnectReason::Kicked), 1));
    }
    until("their players are gone", || host.names().is_empty()).await;
    assert_eq!(host.room.address(connection), None);
    let (eve, mallory) = (host.quic("Eve"), host.websocket("Mallory"));
    refused(&eve).await;
    refused(&mallory).await;
    let Err(tungstenite::Error::Http(answer)) = websocket(&host, None).await else { panic!("let in") };
    assert_eq!(answer.status(), 403);
    assert!(host.door.stats().banned >= 3 && host.door.stats().bans == 1);
    assert!(host.door.unban(address));
    logged_in(&eve).await;
    logged_in(&mallory).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_that_never_reads_is_closed_and_others_play_on() {
    // The room waits longer than the link: it is the link that must notice.
    let server = ServerConfig { max_stream_bytes: 16 << 20, ..ServerConfig::default() };
    let config = RoomConfig { server, stall: Duration::from_millis(500), ..RoomConfig::default() };
    // So that it can ask for more answers than all buffers on the way hold.
    let limits = Limits { messages_per_second: 1_000_000, bytes_per_second: 1 << 30, ..Limits::default() };
    let host = Host::build(crate::rig::loopback(), config, limits, certificate()).await.unwrap();
    let healthy = host.websocket("Ada");
    logged_in(&healthy).await;
    healthy.set_input(8);
    // Or its system reads megabytes in its stead.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let socket = socket.connect(host.http.address()).await.unwrap();
    let url = format!("ws://{}/ws", host.http.address());
    let (mut stalled, _) = client_async(url, socket).await.unwrap();
    stalled.send(Message::binary(login("Eve", None))).await.unwrap();
    let asking = async {
        while stalled.send(Message::binary(heartbeats(64))).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        core::future::pending::<()>().await;
    };
    let counted = until("it is counted", || host.room.stats().closed(DisconnectReason::TooSlow) == 1);
    tokio::select! {
        () = asking => {}
        () = counted => {}
    }
    assert_eq!(host.room.stats().server.too_slow, 0, "by the link, and not by the room");
    drive_past(&healthy, 2.0).await;
    assert_eq!((corrections(&healthy), healthy.stats().disconnects), (0, 0));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_port_serves_both_families() {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let host = Host::start_at(any, RoomConfig::default(), certificate()).await.unwrap();
    let (quic, http) = (host.endpoint.address().port(), host.http.address().port());
    let urls = [
        (format!("quic://127.0.0.1:{quic}"), IpAddr::V4(Ipv4Addr::LOCALHOST)),
        (format!("quic://[::1]:{quic}"), IpAddr::V6(Ipv6Addr::LOCALHOST)),
        (format!("ws://127.0.0.1:{http}"), IpAddr::V4(Ipv4Addr::LOCALHOST)),
        (format!("ws://[::1]:{http}"), IpAddr::V6(Ipv6Addr::LOCALHOST)),
    ];
    for (number, (url, from)) in urls.iter().enumerate() {
        let name = format!("player {number}");
        let client = connect::<Cart>(url.parse().unwrap(), host.trust(), config(&name)).unwrap();
        soon(url, client.logged_in()).await.unwrap();
        let player = client.read(|client| client.player()).unwrap();
        let connection = host.room.with(move |server, _| server.connection_of(player)).unwrap();
        assert_eq!(host.room.address(connection.unwrap()), Some(*from), "{url}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_another_origin_is_refused_unless_it_is_allowed() {
    let host = Host::start(RoomConfig::default()).await;
    let own = format!("http://{}", host.http.address());
    assert!(websocket(&host, None).await.is_ok(), "not a browser");
    assert!(websocket(&host, Some(&own)).await.is_ok());
    let foreign = "https://games.example.org";
    for origin in [foreign, "http://127.0.0.1", "null", "", "http://127.0.0.1:1"] {
        let Err(tungstenite::Error::Http(answer)) = websocket(&host, Some(origin)).await else {
            panic!("{origin} is let in")
        };
        assert_eq!(answer.status(), 403);
        let said = String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).into_owned();
        assert!(said.contains("another origin"), "{said}");
    }
    assert_eq!(host.door.stats().origin, 5);
    host.door.set_origins(vec![foreign.parse().unwrap()]);
    assert!(websocket(&host, Some(foreign)).await.is_ok());
    assert!(websocket(&host, Some("http://games.example.org")).await.is_err(), "by the other scheme");
    host.stop().await;
}

/// A session by WebTransport, as a browser makes it for a page of `origin`.
async fn webtransport(
    host: &Host,
    origin: Option<&str>,
) -> Result<web_transport_quinn::Session, web_transport_quinn::ClientError> {
    let address = host.endpoint.address();
    let (_, connection) = crate::rig::shake_hands(address, 64 * 1_024, b"h3").await;
    let url = url::Url::parse(&format!("https://{address}/")).unwrap();
    let mut request = proto::ConnectRequest::new(url);
    if let Some(origin) = origin {
        request = request.with_header("origin".parse().unwrap(), origin.parse().unwrap());
    }
    soon("an answer", web_transport_quinn::Session::connect(connection, request)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_another_origin_is_refused_by_webtransport_too() {
    let host = Host::start(RoomConfig::default()).await;
    let own = format!("http://{}", host.endpoint.address());
    assert!(webtransport(&host, None).await.is_ok(), "not a browser");
    assert!(webtransport(&host, Some(&own)).await.is_ok());
    let foreign = "https://games.example.org";
    for origin in [foreign, "null", "", "http://127.0.0.1:1"] {
        assert!(webtransport(&host, Some(origin)).await.is_err(), "{origin} is let in");
    }
    assert_eq!(host.door.stats().origin, 4);
    host.door.set_origins(vec![foreign.parse().unwrap()]);
    assert!(webtransport(&host, Some(foreign)).await.is_ok());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_reads_counts_as_well() {
    // A stream that means nothing, and is written without end: it is not read, so only packets tell of it. Those that are
    // sent in vain count, so that it cannot go on for ever either.
    let limits = Limits { messages_per_second: 10, bytes_per_second: 4_096, ..Limits::default() };
    let host = Host::start_with(limits).await;
    let mut peer = host.peer().await;
    peer.log_in("Eve", None).await;
    peer.token().await;
    let (mut idle, _recv) = peer.connection.open_bi().await.unwrap();
    let filling = async {
        while idle.write_all(&[0; 1_024]).await.is_ok() {}
        core::future::pending::<()>().await;
    };
    let closed = tokio::select! {
        closed = peer.closed() => closed,
        () = filling => None,
    };
    assert_eq!(closed, Some(DisconnectReason::TooMuch));
    host.stop().await;
}
