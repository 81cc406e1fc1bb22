//! Connections before their login, on real sockets: they make no room, and their traffic is counted from the first packet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::rig::{Host, Peer, certificate, login, loopback, shake_hands, soon, until};
use futures_util::{SinkExt as _, StreamExt as _};
use halftrack::session::DisconnectReason;
use halftrack::wire::FrameReader;
use halftrack::wire::control::{FromServer, Login, LoginRefused};
use halftrack_io::{
    Door, Endpoint, EndpointConfig, HttpServer, Limits, NoRoom, Room, RoomConfig, RoomHandle, RoomName,
    Rooms, WebSockets,
};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use web_transport_quinn::{Session, proto};

/// Rooms that note each question, and give every login the same answer.
struct Asked {
    answer: Result<RoomHandle, NoRoom>,
    names: Mutex<Vec<String>>,
    count: AtomicUsize,
}

impl Rooms for Asked {
    fn find(&self, name: &RoomName, login: &Login) -> Result<RoomHandle, NoRoom> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.names.lock().unwrap().push(format!("{} {name}", login.name));
        self.answer.clone()
    }
}

struct Server {
    rooms: Arc<Asked>,
    door: Door,
    endpoint: Endpoint,
    http: HttpServer,
}

impl Server {
    async fn start(answer: Result<RoomHandle, NoRoom>, limits: Limits) -> Self {
        let rooms = Arc::new(Asked { answer, names: Mutex::default(), count: AtomicUsize::new(0) });
        let door = Door::new(rooms.clone(), limits).unwrap();
        let endpoint =
            Endpoint::bind(loopback(), &certificate(), door.clone(), EndpointConfig::default()).unwrap();
        let routes = WebSockets::new(door.clone()).routes();
        let http = HttpServer::bind(loopback(), routes, door.clone()).await.unwrap();
        Self { rooms, door, endpoint, http }
    }

    async fn webtransport(&self, room: &str) -> Session {
        let address = self.endpoint.address();
        let (_, connection) = shake_hands(address, 64 * 1_024, b"h3").await;
        let url = url::Url::parse(&format!("https://{address}/room/{room}")).unwrap();
        soon("a session", Session::connect(connection, proto::ConnectRequest::new(url))).await.unwrap()
    }

    async fn stop(&self) {
        self.endpoint.stop().await;
        self.http.stop().await;
    }
}

/// A raw connection that has named its room.
async fn quic(server: &Server, room: &str) -> Peer {
    let mut peer = Peer::connect(server.endpoint.address(), 64 * 1_024).await;
    peer.write(&[&[u8::try_from(room.len()).unwrap()], room.as_bytes()].concat()).await;
    peer
}

/// The frame that a server sends before it closes.
fn refusal(bytes: &[u8]) -> FromServer {
    let (mut reader, mut rest) = (FrameReader::default(), bytes);
    FromServer::read(reader.next(&mut rest).unwrap().unwrap()).unwrap()
}

async fn websocket(server: &Server, room: &str) -> WebSocketStream<TcpStream> {
    let address = server.http.address();
    let stream = TcpStream::connect(address).await.unwrap();
    client_async(format!("ws://{address}/ws/room/{room}"), stream).await.unwrap().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rooms_are_asked_for_only_with_a_login() {
    let room = Room::start(RoomConfig::default(), halftrack::cart::Rails::default()).unwrap();
    let limits = Limits { handshake: Duration::from_millis(300), ..Limits::default() };
    let server = Server::start(Ok(room.handle()), limits).await;
    // By each link: silence, half a login, and then a login as it should be.
    let whole = login("Ada", None);
    for piece in [&[][..], &whole[..whole.len() - 1]] {
        let mut raw = quic(&server, "a").await;
        raw.write(piece).await;
        let session = server.webtransport("b").await;
        let (mut send, _recv) = session.open_bi().await.unwrap();
        send.write_all(piece).await.unwrap();
        let mut socket = websocket(&server, "c").await;
        if !piece.is_empty() {
            socket.send(Message::binary(piece.to_vec())).await.unwrap();
        }
        assert_eq!(raw.closed().await, Some(DisconnectReason::LoginTimeout));
        soon("the end of the session", session.closed()).await;
        let closed = soon("the end of the socket", socket.next()).await.unwrap().unwrap();
        assert!(matches!(closed, Message::Close(Some(frame)) if u16::from(frame.code) == 4_002));
    }
    assert_eq!(server.rooms.count.load(Ordering::Relaxed), 0, "{:?}", server.rooms.names);
    assert_eq!(room.stats().connected, 0);
    until("all are counted", || server.door.stats().closed(DisconnectReason::LoginTimeout) == 6).await;
    let (mut raw, session) = (quic(&server, "a").await, server.webtransport("b").await);
    raw.write(&login("Ada", None)).await;
    raw.token().await;
    let (mut send, mut recv) = session.open_bi().await.unwrap();
    send.write_all(&login("Bob", None)).await.unwrap();
    assert!(soon("an answer", recv.read_chunk(4_096, true)).await.unwrap().is_some());
    let mut socket = websocket(&server, "c").await;
    socket.send(Message::binary(login("Cy", None))).await.unwrap();
    assert!(matches!(soon("an answer", socket.next()).await, Some(Ok(Message::Binary(_)))));
    assert_eq!(*server.rooms.names.lock().unwrap(), ["Ada a", "Bob b", "Cy c"]);
    until("all are in", || (room.stats().server.logins, room.stats().connected) == (3, 3)).await;
    room.stop();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_gets_no_room_hears_why_by_every_link() {
    let why = LoginRefused::CredentialsNeeded;
    let server = Server::start(Err(NoRoom::Refused(why)), Limits::default()).await;
    let mut raw = quic(&server, "a").await;
    raw.write(&login("Ada", None)).await;
    let answer = soon("an answer", raw.recv.read_to_end(1_024)).await.unwrap();
    assert_eq!(refusal(&answer), FromServer::LoginRefused(why));
    assert_eq!(raw.closed().await, Some(DisconnectReason::Refused));
    let session = server.webtransport("b").await;
    let (mut send, mut recv) = session.open_bi().await.unwrap();
    send.write_all(&login("Bob", None)).await.unwrap();
    let answer = soon("an answer", recv.read_to_end(1_024)).await.unwrap();
    assert_eq!(refusal(&answer), FromServer::LoginRefused(why));
    let mut socket = websocket(&server, "c").await;
    socket.send(Message::binary(login("Cy", None))).await.unwrap();
    let Some(Ok(Message::Binary(answer))) = soon("an answer", socket.next()).await else {
        panic!("no answer")
    };
    assert_eq!(refusal(&answer), FromServer::LoginRefused(why));
    let closed = soon("the end", socket.next()).await.unwrap().unwrap();
    assert!(matches!(closed, Message::Close(Some(frame)) if u16::from(frame.code) == 4_003));
    until("all are counted", || server.door.stats().refused == 3).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_before_a_login_are_counted() {
    const MOST: usize = 100_000;
    let host = Host::start(RoomConfig::default()).await;
    let mut peers = [host.peer().await, host.peer().await];
    // The second has named its room.
    peers[1].write(&[0]).await;
    for (number, peer) in peers.iter().enumerate() {
        let mut sent = 0;
        while sent < MOST && peer.connection.send_datagram_wait(vec![0; 1_000].into()).await.is_ok() {
            sent += 1;
        }
        assert_eq!(peer.closed().await, Some(DisconnectReason::TooMuch), "connection {number}: {sent} sent");
        // An allowance of 32 KiB, what is on its way, and a look each 50 ms: not a thousand kilobytes.
        assert!(sent < 10_000, "connection {number}: {sent} sent");
    }
    // A few are dropped, and close nothing.
    let mut honest = host.peer().await;
    for _ in 0..20 {
        honest.connection.send_datagram(vec![0; 100].into()).unwrap();
    }
    honest.log_in("Ada", None).await;
    honest.token().await;
    let stats = host.door.stats();
    assert_eq!((stats.too_much, stats.closed(DisconnectReason::TooMuch)), (2, 2));
    assert!(stats.stray_datagrams > 0, "{stats:?}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_frames_before_a_session_are_counted() {
    const MOST: usize = 20_000_000;
    let host = Host::start(RoomConfig::default()).await;
    let (_endpoint, connection) = shake_hands(host.endpoint.address(), 64 * 1_024, b"h3").await;
    let mut control = connection.open_uni().await.unwrap();
    // A control stream, and then reserved frames of no length, which a reader must skip.
    control.write_all(&[0x00]).await.unwrap();
    let (frames, mut sent) = ([0x21, 0x00].repeat(1_000), 0);
    while sent < MOST && soon("a write", control.write_all(&frames)).await.is_ok() {
        sent += frames.len();
    }
    match soon("the end", connection.closed()).await {
        quinn::ConnectionError::ApplicationClosed(close) => {
            assert_eq!(
                close.error_code.into_inner(),
                u64::from(DisconnectReason::TooMuch.code()),
                "{sent} sent"
            );
        }
        other => panic!("{other}: {sent} sent"),
    }
    assert_eq!(host.door.stats().too_much, 1);
    host.stop().await;
}
