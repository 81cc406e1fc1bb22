//! Playing over real sockets on loopback: every link, and together.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::rig::{Host, config, corrections, drive_past, logged_in, soon, until};
use halftrack::cart::Cart;
use halftrack::client::{Client, ClientEvent};
use halftrack::record::Recording;
use halftrack::session::SessionState;
use halftrack::{Link, SyncLink, Tick, Timestamp};
use halftrack_io::{Between, Direction, Journal, RoomConfig, connect, connect_through, now};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_native_client_logs_in_drives_and_sees_itself() {
    let host = Host::start(RoomConfig::default()).await;
    let client = host.quic("Ada");
    logged_in(&client).await;
    drive_past(&client, 4.0).await;
    let own = client.read(|client| {
        let (id, ..) = client.own().next()?;
        client.authoritative(id).map(|(_, cart)| cart.x)
    });
    assert!(own.unwrap() > 0.0, "the server's state of it has come back");
    let (link, room) = (client.stats(), host.room.stats());
    assert!(link.datagrams_in.count > 0 && link.datagrams_out.count > 0, "{link:?}");
    assert!(room.datagrams_in.count > 0 && room.datagrams_out.count > 0 && room.stream_in.bytes > 0);
    assert_eq!((room.connections, room.players, room.server.logins), (1, 1, 1));
    assert!(room.tick_time.count() > 0 && room.tick_time.percentile(99) <= room.tick_time.longest());
    drop(client);
    until("the player leaves", || host.room.stats().players == 0).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lane_05_a_client_with_nothing_but_a_websocket_plays() {
    let host = Host::start(RoomConfig::default()).await;
    let client = host.websocket("Ada");
    logged_in(&client).await;
    drive_past(&client, 4.0).await;
    let (link, room) = (client.stats(), host.room.stats());
    assert_eq!((link.datagrams_in.count, link.datagrams_out.count, room.datagrams_out.count), (0, 0, 0));
    assert!(client.read(|client| client.stats().snapshots) > 0 && room.server.inputs > 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_by_different_links_share_a_room() {
    let host = Host::start(RoomConfig::default()).await;
    let quick = host.quic("Ada");
    logged_in(&quick).await;
    let plain = host.websocket("Bob");
    logged_in(&plain).await;
    for (client, other) in [(&quick, "Bob"), (&plain, "Ada")] {
        until("they see each other", || {
            client.frame();
            client.read(|client| client.players().any(|(_, name)| name.as_str() == other))
                && client.read(|client| client.crowd().bodies().count()) == 2
        })
        .await;
    }
    quick.order(&[7]).unwrap();
    until("a bell is heard", || {
        std::iter::from_fn(|| plain.poll_event()).any(|event| event == ClientEvent::Game(vec![0, 0, 7]))
    })
    .await;
    drive_past(&quick, 2.0).await;
    assert_eq!((corrections(&quick), corrections(&plain)), (0, 0));
    host.stop().await;
}

/// What a browser does, by the same library's client: an HTTP/3 session, one stream, datagrams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webtransport_session_comes_in_by_the_same_port() {
    let host = Host::start(RoomConfig::default()).await;
    let native = host.quic("Ada");
    logged_in(&native).await;

    let hash = host.certificate.hash().bytes().to_vec();
    let browser =
        web_transport_quinn::ClientBuilder::new().with_server_certificate_hashes(vec![hash]).unwrap();
    let url: url::Url = format!("https://{}/room/main", host.endpoint.address()).parse().unwrap();
    let session = soon("a session", browser.connect(url)).await.unwrap();
    let (mut send, mut recv) = soon("a stream", session.open_bi()).await.unwrap();

    let mut client = Client::<halftrack::cart::Cart>::new(config("Eve")).unwrap();
    client.connect(now());
    client.handle_connected(now(), SyncLink::Present);
    let mut login = vec![];
    assert!(client.poll_stream(&mut login));
    send.write_all(&login).await.unwrap();
    while client.state() != SessionState::LoggedIn {
        let chunk = soon("an answer", recv.read_chunk(4_096, true)).await.unwrap().unwrap();
        client.handle_stream(now(), &chunk.bytes);
    }
    while client.stats().snapshots == 0 {
        let datagram = soon("a snapshot", session.read_datagram()).await.unwrap();
        client.handle_datagram(now(), &datagram);
    }
    assert_eq!(host.names(), ["Ada", "Eve"]);

    host.room.with(|server, _| server.players().last().map(|last| server.kick(last))).unwrap();
    let end = soon("the end", session.closed()).await.to_string();
    assert!(end.contains("code=8"), "{end}");
    host.stop().await;
}

/// Everything 20 ms later.
#[derive(Default)]
struct Delay(VecDeque<(Timestamp, Direction, Link, Vec<u8>)>);

impl Between for Delay {
    fn send(&mut self, now: Timestamp, direction: Direction, link: Link, bytes: &[u8]) {
        self.0.push_back((now + Duration::from_millis(20), direction, link, bytes.to_vec()));
    }

    fn poll(&mut self, now: Timestamp) -> Option<(Direction, Link, Vec<u8>)> {
        self.0.front().filter(|(due, ..)| *due <= now)?;
        self.0.pop_front().map(|(_, direction, link, bytes)| (direction, link, bytes))
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.0.front().map(|(due, ..)| *due)
    }

    fn reset(&mut self) {
        self.0.clear();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_between_a_client_and_its_link_is_passed_both_ways() {
    let host = Host::start(RoomConfig::default()).await;
    let url = format!("quic://{}", host.endpoint.address());
    let client =
        connect_through(url.parse().unwrap(), host.trust(), config("Ada"), Box::<Delay>::default()).unwrap();
    logged_in(&client).await;
    drive_past(&client, 4.0).await;
    let round_trip = client.read(Client::round_trip).unwrap();
    assert!(round_trip >= Duration::from_millis(40), "{round_trip:?}");
    host.stop().await;
}

/// A program without a runtime: the client has a thread of its own.
#[test]
fn a_client_needs_no_runtime_of_the_programs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let host = runtime.block_on(Host::start(RoomConfig::default()));
    let url = format!("quic://{}", host.endpoint.address());
    let client = connect::<halftrack::cart::Cart>(url.parse().unwrap(), host.trust(), config("Ada")).unwrap();
    runtime.block_on(logged_in(&client));
    drop(client);
    runtime.block_on(until("the player leaves", || host.room.stats().players == 0));
    runtime.block_on(host.stop());
}

/// A journal that stops taking anything, once it is told to: the room waits for it.
struct Stuck {
    file: Vec<u8>,
    /// Whether it is to get stuck, and the newest tick that it was given when it did.
    state: Arc<Mutex<(bool, Option<Tick>)>>,
}

impl Journal for Stuck {
    fn write(&mut self, bytes: &[u8]) -> bool {
        self.file.extend_from_slice(bytes);
        if self.state.lock().unwrap().0 {
            let mut recording = Recording::<Cart>::open(self.file.clone()).unwrap();
            while recording.next().is_some() {}
            self.state.lock().unwrap().1 = Some(recording.tick());
            while self.state.lock().unwrap().0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        true
    }
}

/// What is not written is not sent: whatever the process dies of, the recording has all that anybody was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_of_a_tick_before_it_is_written() {
    let state = Arc::new(Mutex::new((false, None)));
    let host = Host::recorded(Box::new(Stuck { file: vec![], state: Arc::clone(&state) })).await;
    let client = host.quic("Ada");
    logged_in(&client).await;
    let newest = || client.read(|client| client.crowd().newest());
    until("snapshots come", || newest().is_some()).await;
    for _ in 0..5 {
        state.lock().unwrap().0 = true;
        until("it is stuck", || state.lock().unwrap().1.is_some()).await;
        let writing = state.lock().unwrap().1.take();
        // Whatever was sent before has arrived by then.
        tokio::time::sleep(Duration::from_millis(60)).await;
        let told = newest();
        state.lock().unwrap().0 = false;
        assert!(told < writing, "{told:?} was told, and {writing:?} is being written");
        until("it goes on", || newest() >= writing).await;
    }
    host.stop().await;
}
