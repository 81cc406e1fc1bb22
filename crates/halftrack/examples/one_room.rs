//! A server and a client in one loop, 100 ms apart, without a socket: `cargo run -p halftrack --example one_room`.
//!
//! Bytes come out of `poll_*` and go into `handle_*` on the other side 50 ms later. A real program does the same with
//! sockets in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, Rails};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Server, ServerConfig};
use halftrack::session::ConnectionId;
use halftrack::{Cadence, Link, PlayerName, SyncLink, Timestamp, Token};

/// What is on its way: when it arrives, by which link, and the bytes.
#[derive(Default)]
struct Way(VecDeque<(Timestamp, Link, Vec<u8>)>);

impl Way {
    fn send(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        self.0.push_back((now + Duration::from_millis(50), link, bytes.to_vec()));
    }

    fn arrived(&mut self, now: Timestamp) -> Option<(Link, Vec<u8>)> {
        self.0.front().filter(|(at, ..)| *at <= now)?;
        self.0.pop_front().map(|(_, link, bytes)| (link, bytes))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut now, connection) = (Timestamp::ZERO, ConnectionId::new(1));
    let mut server = Server::new(ServerConfig::default(), Rails::default(), now)?;
    let config = ClientConfig::new(PlayerName::new("Ada")?, Cadence::default(), Arc::new(Cart));
    let mut client = Client::new(config)?;
    let (mut up, mut down) = (Way::default(), Way::default());
    client.connect(now);
    for frame in 0..300 {
        while let Some(event) = client.poll_event() {
            println!("{:4} ms: {event:?}", now.as_micros() / 1_000);
            if event == ClientEvent::Connect {
                server.handle_connected(now, connection, SyncLink::Present, Token::new([7; 16]));
                client.handle_connected(now, SyncLink::Present);
            }
        }
        while let Some((link, bytes)) = up.arrived(now) {
            match link {
                Link::Sync => server.handle_datagram(now, connection, &bytes),
                Link::Reliable => server.handle_stream(now, connection, &bytes),
            }
        }
        server.handle_timeout(now);
        while let Some((link, bytes)) = down.arrived(now) {
            match link {
                Link::Sync => client.handle_datagram(now, &bytes),
                Link::Reliable => client.handle_stream(now, &bytes),
            }
        }
        client.set_input(now, if frame < 150 { 8 } else { 0 });
        if let (Some(visible), 0) = (client.frame(now), frame % 30) {
            let truth = server.bodies().next().map_or(0.0, |(.., cart)| cart.x);
            println!(
                "{:4} ms: on screen {:6.2} m, on the server {truth:6.2} m",
                now.as_micros() / 1_000,
                visible.x
            );
        }
        let mut stream = vec![];
        if client.poll_stream(&mut stream) {
            up.send(now, Link::Reliable, &stream);
        }
        if let Some(bytes) = client.poll_datagram() {
            up.send(now, Link::Sync, bytes);
        }
        stream.clear();
        if server.poll_stream(connection, &mut stream) {
            down.send(now, Link::Reliable, &stream);
        }
        if let Some(bytes) = server.poll_datagram(connection) {
            down.send(now, Link::Sync, bytes);
        }
        now = now + Duration::from_micros(16_667);
    }
    let stats = client.reconciler().map(|reconciler| *reconciler.stats());
    println!("corrections: {stats:?}");
    Ok(())
}
