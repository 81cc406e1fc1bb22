//! A server and a client of the cart game over real QUIC: `cargo run -p halftrack-io --example carts`.
//!
//! In a real game the two are two programs; the client gets the certificate's hash from the server's page.

use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, Rails};
use halftrack::client::ClientConfig;
use halftrack::{Cadence, PlayerName};
use halftrack_io::{Certificate, Door, Endpoint, EndpointConfig, Limits, Room, RoomConfig, Trust, connect};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server: a room on its own thread, a door with limits, and a port that leads to it.
    let certificate = Certificate::self_signed(&["localhost", "127.0.0.1"], Certificate::MAX_VALIDITY)?;
    let room = Room::start(RoomConfig::default(), Rails::default())?;
    let any_port = "127.0.0.1:0".parse()?;
    let door = Door::new(Arc::new(room.handle()), Limits::default())?;
    let endpoint = Endpoint::bind(any_port, &certificate, door, EndpointConfig::default())?;

    // The client: it connects, predicts and comes back by itself.
    let config = ClientConfig::new(PlayerName::new("Ada")?, Cadence::default(), Arc::new(Cart));
    let url = format!("quic://{}", endpoint.address());
    let client = connect::<Cart>(url.parse()?, Trust::Hashes(vec![certificate.hash()]), config)?;
    println!("player {} is in, by {url}", client.logged_in().await?);

    for frame in 0..180 {
        client.set_input(if frame < 120 { 8 } else { 0 });
        if let (Some(visible), 0) = (client.frame(), frame % 20) {
            let truth = room.with(|server, _| server.bodies().next().map_or(0.0, |(.., cart)| cart.x))?;
            println!("on screen {:6.2} m, on the server {truth:6.2} m", visible.x);
        }
        tokio::time::sleep(Duration::from_micros(16_667)).await;
    }
    println!("{:?}", client.read(|client| client.corrections()));
    println!("a tick took {:?} at worst", room.stats().tick_time.longest());

    room.stop();
    endpoint.stop().await;
    Ok(())
}
