//! What is logged of a connection, and at which level: where somebody is, only for whoever looks for it.

mod rig;

use std::net::{Ipv6Addr, SocketAddr};

use halftrack::session::DisconnectReason;
use halftrack_io::{RoomConfig, connect};
use rig::{Host, Log, Peer, certificate, config, heartbeats, logged_in, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_peers_are_for_debugging_only() {
    let log = Log::begin("halftrack_io=trace");
    // Where it listens may be told; the peers have another address.
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let host = Host::start_at(any, RoomConfig::default(), certificate()).await.unwrap();
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let mut peer = Peer::connect(local(host.endpoint.address().port()), 64 * 1_024).await;
    peer.log_in("Eve", None).await;
    peer.token().await;
    let _ = peer.send.write_all(&heartbeats(1_300)).await;
    assert_eq!(peer.closed().await, Some(DisconnectReason::TooMuch));
    let url = format!("ws://{}", local(host.http.address().port()));
    let client = connect(url.parse().unwrap(), host.trust(), config("Ada")).unwrap();
    logged_in(&client).await;
    host.door.ban("127.0.0.1".parse().unwrap(), None).unwrap();
    until("both ends are told", || {
        let ended = |line: &&String| line.contains("connection ended");
        log.lines().iter().filter(ended).count() == 2
    })
    .await;
    host.stop().await;

    let lines = log.lines();
    let (debug, other): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains(" DEBUG "));
    assert!(debug.iter().any(|line| line.contains("127.0.0.1") && line.contains("the peer sends too much")));
    assert!(debug.iter().any(|line| line.contains("127.0.0.1") && line.contains("removed by an operator")));
    assert!(other.iter().any(|line| line.contains("address banned")));
    assert!(other.iter().all(|line| !line.contains("127.0.0.1")), "{other:#?}");
}
