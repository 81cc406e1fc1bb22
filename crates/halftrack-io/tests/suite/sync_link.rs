//! Connections whose datagrams do not arrive, or that have none, on real QUIC.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::rig::{Host, client_config, config, drive_past, logged_in, login, loopback, soon, until};
use halftrack::cart::Cart;
use halftrack::session::SessionState;
use halftrack::wire::FrameReader;
use halftrack::wire::control::FromServer;
use halftrack::{Link, MessageKind, Status, Timestamp};
use halftrack_io::{Between, ClientHandle, Direction, RoomConfig, connect_through};

/// Drops datagrams of the directions that are cut; everything else passes at once.
#[derive(Clone, Default)]
struct Cut {
    up: Arc<AtomicBool>,
    down: Arc<AtomicBool>,
}

impl Cut {
    fn set(&self, up: bool, down: bool) {
        self.up.store(up, Ordering::Relaxed);
        self.down.store(down, Ordering::Relaxed);
    }
}

struct Cutter {
    cut: Cut,
    waiting: VecDeque<(Direction, Link, Vec<u8>)>,
    now: Timestamp,
}

impl Between for Cutter {
    fn send(&mut self, now: Timestamp, direction: Direction, link: Link, bytes: &[u8]) {
        self.now = now;
        let cut = match direction {
            Direction::Up => &self.cut.up,
            Direction::Down => &self.cut.down,
        };
        if link == Link::Reliable || !cut.load(Ordering::Relaxed) {
            self.waiting.push_back((direction, link, bytes.to_vec()));
        }
    }

    fn poll(&mut self, _: Timestamp) -> Option<(Direction, Link, Vec<u8>)> {
        self.waiting.pop_front()
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        (!self.waiting.is_empty()).then_some(self.now)
    }

    fn reset(&mut self) {
        self.waiting.clear();
    }
}

fn links(host: &Host, client: &ClientHandle<Cart>) -> (Link, Link) {
    let up = client.read(|client| client.link(MessageKind::MoveInput));
    let player = client.read(|client| client.player()).unwrap();
    let down = host.room.with(move |server, _| {
        let connection = server.connection_of(player).unwrap();
        server.link(connection, MessageKind::PlayerState).unwrap()
    });
    (up, down.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lane_11_a_quic_session_whose_datagrams_are_cut_plays_on_by_its_stream() {
    let host = Host::start(RoomConfig::default()).await;
    let cut = Cut::default();
    let cutter = Cutter { cut: cut.clone(), waiting: VecDeque::new(), now: Timestamp::ZERO };
    let url = format!("quic://{}", host.endpoint.address());
    let client =
        connect_through(url.parse().unwrap(), host.trust(), config("Ada"), Box::new(cutter)).unwrap();
    logged_in(&client).await;
    drive_past(&client, 2.0).await;
    assert_eq!(links(&host, &client), (Link::Sync, Link::Sync));

    for (up, down) in [(true, false), (false, true), (true, true)] {
        cut.set(up, down);
        let fallback = |cut| if cut { Link::Reliable } else { Link::Sync };
        let predicts = || {
            client.frame();
            let status = client.read(|client| client.reconciler().map(|own| own.predictor().status()));
            assert_eq!(status, Some(Status::Predicting), "it must not starve");
        };
        until("the fallback", || {
            predicts();
            links(&host, &client) == (fallback(up), fallback(down))
        })
        .await;
        // Snapshots go on, and the server goes on acting on input.
        let snapshots = client.read(|client| client.stats().snapshots);
        let inputs = host.room.stats().server.inputs;
        until("fifty ticks", || {
            predicts();
            client.read(|client| client.stats().snapshots) >= snapshots + 50
                && host.room.stats().server.inputs >= inputs + 50
        })
        .await;
        assert_eq!(links(&host, &client), (fallback(up), fallback(down)), "cut {up} {down}");
        drive_past(&client, 2.0).await;
        cut.set(false, false);
        until("the return", || {
            predicts();
            links(&host, &client) == (Link::Sync, Link::Sync)
        })
        .await;
    }
    assert_eq!((client.state(), client.stats().disconnects), (SessionState::LoggedIn, 0));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lane_05_a_peer_that_takes_no_datagrams_gets_snapshots_by_its_stream() {
    let host = Host::start(RoomConfig::default()).await;
    // Its transport parameters have no max_datagram_frame_size.
    let mut config = client_config(64 * 1_024, b"halftrack/1");
    let mut transport = quinn::TransportConfig::default();
    transport.datagram_receive_buffer_size(None);
    config.transport_config(Arc::new(transport));
    let endpoint = quinn::Endpoint::client(loopback()).unwrap();
    let connecting = endpoint.connect_with(config, host.endpoint.address(), "localhost").unwrap();
    let connection = soon("a connection", connecting).await.unwrap();
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&[vec![0], login("Eve", None)].concat()).await.unwrap();

    let (mut reader, mut states) = (FrameReader::default(), 0);
    while states < 5 {
        let chunk = soon("a snapshot", recv.read_chunk(4_096, true)).await.unwrap().unwrap();
        let mut bytes = &chunk.bytes[..];
        while let Some(frame) = reader.next(&mut bytes).unwrap() {
            states += u32::from(matches!(FromServer::read(frame).unwrap(), FromServer::PlayerState(_)));
        }
    }
    assert_eq!(host.room.stats().datagrams_out.count, 0);
    host.stop().await;
}
