//! A game that panics ends its own room, and nothing else.

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::{SinkExt as _, StreamExt as _};
use halftrack::PlayerId;
use halftrack::cart::{Cart, Rails};
use halftrack::server::{Events, Order, Room as Bodies, World};
use halftrack::session::DisconnectReason;
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack_io::{
    Door, Endpoint, EndpointConfig, HttpServer, IoError, Limits, Room, RoomConfig, RoomName, Trust,
    WebSockets, connect,
};
use rig::{Log, Peer, certificate, config, corrections, drive_past, logged_in, login, loopback, soon, until};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

/// Rails on which the end of a tick panics.
struct Cracked {
    rails: Rails,
    at: Arc<AtomicU32>,
}

impl World for Cracked {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        self.rails.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Bodies<'_, Cart>) {
        self.rails.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Bodies<'_, Cart>, events: &mut Events) {
        self.rails.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Cart>) -> Result<(), WireError> {
        self.rails.order(order)
    }

    fn resolve(&mut self, room: &mut Bodies<'_, Cart>, events: &mut Events) {
        self.rails.resolve(room, events);
        let tick = room.tick().number();
        assert!(tick != self.at.load(Ordering::Relaxed), "the rail of tick {tick} is cracked");
    }
}

fn named(name: &str) -> RoomConfig {
    RoomConfig { name: RoomName::new(name).unwrap(), ..RoomConfig::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_that_panics_ends_its_room_by_name_and_the_next_room_plays_on() {
    let log = Log::begin("halftrack_io=trace");
    let at = Arc::new(AtomicU32::new(u32::MAX));
    let cracked =
        Room::start(named("cracked"), Cracked { rails: Rails::default(), at: Arc::clone(&at) }).unwrap();
    let whole = Room::start(named("whole"), Rails::default()).unwrap();
    let rooms = [("cracked", cracked.handle()), ("whole", whole.handle())];
    let find = move |name: &RoomName| {
        let found = rooms.iter().find(|(there, _)| *there == name.as_str());
        found.map(|(_, room)| room.clone())
    };
    let door = Door::new(Arc::new(find), Limits::default()).unwrap();
    let certificate = certificate();
    let endpoint = Endpoint::bind(loopback(), &certificate, door.clone(), EndpointConfig::default()).unwrap();
    let routes = WebSockets::new(door.clone()).routes();
    let http = HttpServer::bind(loopback(), routes, door.clone()).await.unwrap();
    let enter = |name: &str, link: &str, room: &str| {
        let address = if link == "quic" { endpoint.address() } else { http.address() };
        let url = format!("{link}://{address}/room/{room}");
        connect(url.parse().unwrap(), Trust::Hashes(vec![certificate.hash()]), config(name)).unwrap()
    };
    let (client, healthy) = (enter("Ada", "quic", "cracked"), enter("Cleo", "quic", "whole"));
    logged_in(&client).await;
    logged_in(&healthy).await;
    // A client comes back by itself, and is turned away then. These two hear the first end only.
    let cracked_login = |name: &str| [&b"\x07cracked"[..], &login(name, None)].concat();
    let mut raw = Peer::connect(endpoint.address(), 64 * 1_024).await;
    raw.write(&cracked_login("Bob")).await;
    raw.token().await;
    let stream = TcpStream::connect(http.address()).await.unwrap();
    let url = format!("ws://{}/ws/room/cracked", http.address());
    let mut socket = client_async(url, stream).await.unwrap().0;
    socket.send(Message::binary(login("Dora", None))).await.unwrap();
    until("all are in", || (cracked.stats().players, cracked.stats().connections) == (3, 3)).await;

    let now = cracked.with(|server, _| server.tick()).unwrap();
    let last = now.number() + 10;
    at.store(last, Ordering::Relaxed);
    assert_eq!(raw.closed().await, Some(DisconnectReason::RoomFailed));
    let closed = async {
        loop {
            match socket.next().await.unwrap().unwrap() {
                Message::Close(frame) => break frame.map(|frame| u16::from(frame.code)),
                _ => continue,
            }
        }
    };
    assert_eq!(soon("the end of the socket", closed).await, Some(4_014));
    until("the end", || client.last_close() == Some(DisconnectReason::RoomFailed)).await;
    until("the room has ended", || cracked.handle().is_ended()).await;
    assert!(matches!(cracked.with(|_, _| ()), Err(IoError::RoomEnded)));
    // Waits for its thread.
    cracked.stop();
    let stats = cracked.stats();
    assert_eq!((stats.players, stats.away, stats.connections), (0, 0, 0));
    assert_eq!(stats.closed(DisconnectReason::RoomFailed), 3, "each connection once");

    // The error names the room, the tick and the panic; there is no other one.
    let lines = log.lines();
    let errors: Vec<_> = lines.iter().filter(|line| line.contains("ERROR")).collect();
    let [error] = errors[..] else { panic!("{errors:#?}") };
    for part in ["room=cracked", &format!("tick={last}"), &format!("the rail of tick {last} is cracked")] {
        assert!(error.contains(part), "{part}: {error}");
    }

    // The other room plays on, and lets players in.
    let before = whole.with(|server, _| server.tick()).unwrap();
    drive_past(&healthy, 4.0).await;
    assert_eq!((corrections(&healthy), healthy.stats().disconnects, healthy.last_close()), (0, 0, None));
    assert!(whole.with(|server, _| server.tick()).unwrap() > before);
    let late = enter("Eve", "ws", "whole");
    logged_in(&late).await;
    assert_eq!(whole.with(|server, _| server.players().count()).unwrap(), 2);
    // The broken one turns newcomers away with the same reason.
    let mut late = Peer::connect(endpoint.address(), 64 * 1_024).await;
    late.write(&cracked_login("Fay")).await;
    assert_eq!(late.closed().await, Some(DisconnectReason::RoomFailed));

    whole.stop();
    endpoint.stop().await;
    http.stop().await;
}
