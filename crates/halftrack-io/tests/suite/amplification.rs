//! First packets of QUIC from addresses that never answer, on real sockets: the server sends them at most three times as
//! much.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rig::{Host, certificate, logged_in, loopback, until};
use halftrack_io::{Certificate, Limits, RoomConfig};
use quinn_proto::{Endpoint, EndpointConfig, TransportConfig};

/// A first packet of so many bytes, of a connection of its own.
fn first_packet(to: SocketAddr, bytes: u16) -> Vec<u8> {
    let mut config = crate::rig::client_config(64 * 1_024, b"halftrack/1");
    let mut transport = TransportConfig::default();
    transport.initial_mtu(bytes).min_mtu(bytes);
    config.transport_config(Arc::new(transport));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
    let (_, mut connection) = endpoint.connect(Instant::now(), config, to, "localhost").unwrap();
    let mut packet = vec![];
    assert!(connection.poll_transmit(Instant::now(), 1, &mut packet).is_some());
    assert_eq!(packet.len(), usize::from(bytes));
    packet
}

/// Sends a first packet, and never another. Gives the socket that answers come to.
fn begin(host: &Host, bytes: u16) -> UdpSocket {
    let socket = UdpSocket::bind(loopback()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let to = host.endpoint.address();
    assert_eq!(socket.send_to(&first_packet(to, bytes), to).unwrap(), usize::from(bytes));
    socket
}

/// Everything that has come.
fn datagrams(socket: &UdpSocket) -> Vec<usize> {
    let mut buffer = [0; 2_048];
    core::iter::from_fn(|| socket.recv(&mut buffer).ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_never_answers_is_sent_at_most_three_times_as_much() {
    // Long enough for the loss probes: after 1 s, and after 3 s.
    let limits = Limits { handshake: Duration::from_secs(5), ..Limits::default() };
    let host = Host::start_with(limits).await;
    let sizes = [1_200, 1_201, 1_252, 1_300, 1_400];
    let sockets = sizes.map(|size| (size, begin(&host, size)));
    until("the server gives up on all", || host.door.stats().handshake_timeouts == sizes.len() as u64).await;
    host.stop().await;
    for (size, socket) in sockets {
        let came = datagrams(&socket);
        let sum: usize = came.iter().sum();
        assert!(sum <= 3 * usize::from(size), "{sum} bytes for {size}: {came:?}");
        assert!(came.len() > 2, "the first flight, and a loss probe: {came:?}");
    }
}

/// A certificate whose chain has so many others behind it.
fn chain(folder: &Path, others: usize) -> Certificate {
    let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
    certificate().write_pem_files(&chain, &key).unwrap();
    let mut text = std::fs::read_to_string(&chain).unwrap();
    for _ in 0..others {
        let other = folder.join("other.pem");
        certificate().write_pem_files(&other, &folder.join("other.key")).unwrap();
        text.push_str(&std::fs::read_to_string(&other).unwrap());
    }
    std::fs::write(&chain, text).unwrap();
    Certificate::from_pem_files(&chain, &key).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_chain_is_shown_only_to_a_proven_address() {
    let folder = std::env::temp_dir().join(format!("halftrack-chain-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let long = chain(&folder, 12);
    let host = Host::start_at(loopback(), RoomConfig::default(), long).await.unwrap();
    let socket = begin(&host, 1_200);
    until("a proof is asked for", || host.door.stats().retries == 1).await;
    let player = host.quic("Ada");
    logged_in(&player).await;
    assert_eq!(host.door.stats().retries, 2);
    let came = datagrams(&socket);
    assert!(came.iter().sum::<usize>() < 1_200, "{came:?}");
    // With a short one, nobody has to.
    host.endpoint.set_certificate(&chain(&folder, 0)).unwrap();
    begin(&host, 1_200);
    until("a handshake begins", || host.door.stats().unfinished == 1).await;
    assert_eq!(host.door.stats().retries, 2);
    std::fs::remove_dir_all(&folder).unwrap();
    host.stop().await;
}
