//! Addresses that are not what they seem: forged ones, and connections that go on from another.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::{Endpoint, EndpointConfig, TransportConfig};

use crate::attack::{Failed, Field, Outcome, attacks};
use crate::metrics::Counter;
use crate::peer::{PATIENCE, Peer, quic_config};

attacks! { Guests:
    "amplification", "first packets of QUIC of several sizes from an address that never answers, as a forged one would not" => amplification;
    "migrate-to-banned", "a player goes on from an address that is banned, and one is banned where it went" => migrate_to_banned;
    "migrate-past-limit", "players go on from an address that has as many connections as it may have" => migrate_past_limit;
}

/// A first packet of so many bytes, of a connection of its own.
fn first_packet(to: SocketAddr, bytes: u16) -> Result<Vec<u8>, Failed> {
    let mut config = quic_config(b"halftrack/1", 65_536)?;
    let mut transport = TransportConfig::default();
    transport.initial_mtu(bytes).min_mtu(bytes);
    config.transport_config(Arc::new(transport));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
    let (_, mut connection) = endpoint.connect(Instant::now(), config, to, "localhost")?;
    let mut packet = vec![];
    let _ = connection.poll_transmit(Instant::now(), 1, &mut packet).ok_or("no first packet")?;
    Ok(packet)
}

async fn amplification(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut sockets = vec![];
    for size in [1_200, 1_201, 1_252, 1_300, 1_400, 1_452] {
        let socket = UdpSocket::bind(SocketAddr::new(field.source(), 0))?;
        socket.set_nonblocking(true)?;
        socket.send_to(&first_packet(field.address(), size)?, field.address())?;
        outcome.sent("first packets", 1);
        sockets.push((usize::from(size), socket));
    }
    // The loss probes come after 1 s, and the server gives up after `limits.handshake_s`.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut worst: f64 = 0.0;
    for (size, socket) in sockets {
        let (mut buffer, mut sum) = ([0; 2_048], 0);
        while let Ok(bytes) = socket.recv(&mut buffer) {
            sum += bytes;
        }
        outcome.check(sum > 0, "no answer at all");
        outcome.check(sum <= 3 * size, format!("{sum} bytes were sent for {size}"));
        worst = worst.max(sum as f64 / size as f64);
    }
    outcome.saw(format!("at most {worst:.3} times as much"));
    outcome.expect(Counter::away("handshake_timeout"), 6);
    Ok(outcome)
}

fn ban(field: &Field, outcome: &mut Outcome, order: &str, address: IpAddr) -> Result<(), Failed> {
    let body = format!(r#"{{"address":"{address}"}}"#);
    let (status, _) = field.server.ask("POST", &format!("/admin/{order}"), &body)?;
    outcome.check(status == 200, format!("{order} was answered with {status}"));
    Ok(())
}

/// Waits until the operator sees a player at `address`.
async fn is_shown(field: &Field, address: IpAddr) -> Result<bool, Failed> {
    let (begun, wanted) = (Instant::now(), format!("\"{address}\""));
    while begun.elapsed() < PATIENCE {
        if field.server.ask("GET", "/admin/rooms", "")?.1.contains(&wanted) {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(false)
}

async fn migrate_to_banned(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    if !field.server.is_ours() {
        outcome.saw("left out: nobody here is its operator");
        return Ok(outcome);
    }
    let (banned, free) = (field.source(), field.source());
    ban(field, &mut outcome, "ban", banned)?;
    let mut peer = Peer::enter(field, "moves to banned").await?;
    peer.migrate(banned).await?;
    outcome.sent("migrations", 1);
    let end = peer.end_within(PATIENCE).await;
    outcome.check(end == "closed with code 8", format!("to a banned address: {end}"));
    outcome.saw(format!("to a banned address: {end}"));
    let mut peer = Peer::enter(field, "moves, is banned").await?;
    peer.migrate(free).await?;
    outcome.sent("migrations", 1);
    outcome.check(is_shown(field, free).await?, "the operator is not shown where the player is");
    ban(field, &mut outcome, "ban", free)?;
    let end = peer.end_within(PATIENCE).await;
    outcome.check(end == "closed with code 8", format!("banned where it went: {end}"));
    outcome.saw(format!("banned where it went: {end}"));
    for address in [banned, free] {
        ban(field, &mut outcome, "unban", address)?;
    }
    outcome.expect(Counter::closed("kicked"), 2);
    outcome.expect(Counter::away("banned"), 1);
    Ok(outcome)
}

async fn migrate_past_limit(field: &Field) -> Result<Outcome, Failed> {
    const FULL: usize = 256;
    const PLAYERS: usize = 4;
    let mut outcome = Outcome::default();
    let full = field.source();
    let mut players = vec![];
    for number in 0..PLAYERS {
        players.push(Peer::enter(field, &format!("moves {number}")).await?);
    }
    // They do not log in, and stay for `limits.handshake_s`. An address may begin as many handshakes at once.
    let open = || Peer::connect_from(field, full, 64 * 1_024);
    let (mut held, begun) = (vec![], Instant::now());
    while held.len() < FULL && begun.elapsed() < PATIENCE {
        let wanted = (FULL - held.len()).min(4);
        let opened = futures_util::future::join_all((0..wanted).map(|_| open())).await;
        let before = held.len();
        held.extend(opened.into_iter().filter_map(Result::ok));
        if held.len() == before {
            // Too fast: so many handshakes a second, and no more.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    outcome.sent("connections from one address", held.len());
    for player in &mut players {
        player.migrate(full).await?;
        outcome.sent("migrations", 1);
    }
    for player in players {
        let end = player.end_within(PATIENCE).await;
        outcome.check(end == "closed with code 9", format!("past the limit: {end}"));
        outcome.saw(format!("past the limit: {end}"));
    }
    outcome.expect(Counter::closed("too_many"), PLAYERS);
    drop(held);
    Ok(outcome)
}
