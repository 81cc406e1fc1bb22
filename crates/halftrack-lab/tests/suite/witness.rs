//! Figures of clients on real networks: only of those that are in the game.

use std::sync::Arc;
use std::time::Duration;

use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Server, ServerConfig};
use halftrack::session::{ConnectionId, SessionState};
use halftrack::{Cadence, PlayerName, SyncLink, Timestamp, Token};
use halftrack_lab::{Findings, Witness};
use tanks::{TankInput, TankWorld, TankWorldConfig, Tanks};

/// Two players for 5 s; then one of them is removed, and both draw for 20 s more.
#[test]
fn a_client_that_was_removed_is_in_no_figure() {
    let world = TankWorldConfig::default();
    let (arena, start) = (Arc::clone(&world.arena), Timestamp::from_micros(9_000_000));
    let mut server = Server::new(ServerConfig::default(), TankWorld::new(world).unwrap(), start).unwrap();
    let mut findings = Findings::default();
    let mut seats: Vec<_> = ["Ada", "Bob"]
        .into_iter()
        .enumerate()
        .map(|(index, name)| {
            let (name, rules) = (PlayerName::new(name).unwrap(), Arc::new(Tanks::new(Arc::clone(&arena))));
            let config = ClientConfig::new(name, Cadence::default(), rules);
            let witness = Witness::new(index, &config);
            let mut client = Client::<Tanks>::new(config).unwrap();
            client.connect(start);
            (client, witness)
        })
        .collect();
    for step in 0..6_250u64 {
        let now = start + Duration::from_millis(4 * step);
        server.handle_timeout(now);
        if step == 250 {
            findings.begin();
        }
        if step == 1_250 {
            let bob = seats[1].0.player().unwrap();
            server.kick(bob);
        }
        for (number, (client, witness)) in (1u64..).zip(&mut seats) {
            let connection = ConnectionId::new(number);
            client.set_input(now, TankInput::from_unit(0.3, 1.0).unwrap());
            client.frame(now);
            witness.frame(now, client, &mut findings);
            while let Some(event) = client.poll_event() {
                if event == ClientEvent::Connect {
                    let token = Token::new(u128::from(number).to_le_bytes());
                    server.handle_connected(now, connection, SyncLink::Present, token);
                    client.handle_connected(now, SyncLink::Present);
                }
            }
            let mut stream = vec![];
            client.poll_stream(&mut stream);
            server.handle_stream(now, connection, &stream);
            if let Some(datagram) = client.poll_datagram() {
                server.handle_datagram(now, connection, datagram);
            }
            stream.clear();
            server.poll_stream(connection, &mut stream);
            client.handle_stream(now, &stream);
            if let Some(datagram) = server.poll_datagram(connection) {
                client.handle_datagram(now, datagram);
            }
        }
        if let Some((connection, reason)) = server.poll_close() {
            let seat = &mut seats[usize::from(connection == ConnectionId::new(2))];
            seat.0.handle_disconnected(now, Some(reason));
            server.handle_closed(connection);
        }
    }
    assert!(matches!(seats[1].0.state(), SessionState::Failed(_)), "{}", seats[1].0.state());
    assert_eq!(seats[0].0.state(), SessionState::LoggedIn);
    let remote = findings.remote();
    assert!(remote.delay_ms.max > 0.0, "what Ada and Bob drew together counts: {remote:?}");
    // Bob's picture stood still for 20 s.
    assert!(remote.delay_ms.max < 500.0, "{remote:?}");
    assert!(findings.input().ticks > 400, "Ada plays on: {:?}", findings.input());
}
