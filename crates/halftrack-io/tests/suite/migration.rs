//! QUIC connections that go on from another address, on real sockets: bans and limits follow them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::rig::{Host, Peer, certificate, heartbeats, loopback, soon, until};
use halftrack::cart::Rails;
use halftrack::session::DisconnectReason;
use halftrack_io::{Door, Endpoint, EndpointConfig, Limits, Room, RoomConfig};

fn home() -> IpAddr {
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

fn away() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))
}

/// A peer that is in.
async fn enter(host: &Host, name: &str) -> Peer {
    let mut peer = host.peer().await;
    peer.log_in(name, None).await;
    peer.token().await;
    peer
}

/// Goes on from `address`, as a phone does that changes networks, and lets the server hear of it.
async fn migrate(peer: &mut Peer, address: IpAddr) {
    let socket = UdpSocket::bind(SocketAddr::new(address, 0)).unwrap();
    peer.endpoint.rebind(socket).unwrap();
    peer.write(&heartbeats(1)).await;
}

/// Waits for the answer to a heartbeat. Panics when the connection is closed instead.
async fn round_trip(peer: &mut Peer) {
    peer.write(&heartbeats(1)).await;
    soon("an answer", peer.recv.read_chunk(4_096, true)).await.expect("a connection").expect("an answer");
}

/// Forwards the packets of one client to `server`, from [`home`] or, while it forges, from [`away`]. Packets to `away` are
/// lost, as they are for a sender with a forged source address.
struct Relay {
    address: SocketAddr,
    forges: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Relay {
    async fn start(server: SocketAddr) -> Self {
        let bind = |address| tokio::net::UdpSocket::bind(SocketAddr::new(address, 0));
        let (front, back, forged) = (bind(home()).await, bind(home()).await, bind(away()).await);
        let (front, back, forged) = (front.unwrap(), back.unwrap(), forged.unwrap());
        let address = front.local_addr().unwrap();
        let forges = Arc::new(AtomicBool::new(false));
        let forging = forges.clone();
        let task = tokio::spawn(async move {
            let (mut up, mut down, mut client) = ([0; 2_048], [0; 2_048], None);
            loop {
                tokio::select! {
                    packet = front.recv_from(&mut up) => {
                        let (length, from) = packet.unwrap();
                        client = Some(from);
                        let by = if forging.load(Ordering::Relaxed) { &forged } else { &back };
                        by.send_to(&up[..length], server).await.unwrap();
                    }
                    packet = back.recv_from(&mut down) => {
                        let (length, _) = packet.unwrap();
                        // The player does not hear of it: it would answer the server's question to its old address.
                        if let Some(client) = client.filter(|_| !forging.load(Ordering::Relaxed)) {
                            front.send_to(&down[..length], client).await.unwrap();
                        }
                    }
                }
            }
        });
        Self { address, forges, task }
    }
}

/// Where the server says that the only player is.
fn shown(host: &Host) -> Option<IpAddr> {
    let connection = host.room.with(|server, _| {
        let player = server.players().next()?;
        server.connection_of(player)
    });
    host.room.address(connection.unwrap()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_who_migrates_is_shown_and_banned_at_the_new_address() {
    let host = Host::start(RoomConfig::default()).await;
    let mut peer = enter(&host, "Ada").await;
    assert_eq!(shown(&host), Some(home()));
    migrate(&mut peer, away()).await;
    until("the server follows", || shown(&host) == Some(away())).await;
    assert_eq!((host.door.stats().moved, host.door.stats().connections), (1, 1));
    // The old address is somebody else's now: a ban of it closes nothing.
    host.door.ban(home(), None).unwrap();
    for _ in 0..3 {
        round_trip(&mut peer).await;
    }
    assert!(host.door.unban(home()));
    host.door.ban(away(), None).unwrap();
    assert_eq!(peer.closed().await, Some(DisconnectReason::Kicked));
    until("the place is given back", || host.door.stats().connections == 0).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_who_migrates_to_a_banned_address_is_closed() {
    let host = Host::start(RoomConfig::default()).await;
    let mut peer = enter(&host, "Ada").await;
    host.door.ban(away(), None).unwrap();
    migrate(&mut peer, away()).await;
    assert_eq!(peer.closed().await, Some(DisconnectReason::Kicked));
    until("the player is removed", || host.names().is_empty()).await;
    let stats = host.door.stats();
    assert_eq!((stats.moved, stats.banned), (0, 1));
    until("the end is counted", || host.room.stats().closed(DisconnectReason::Kicked) == 1).await;
    // The same before its login.
    let mut newcomer = host.peer().await;
    newcomer.write(&[0]).await;
    newcomer.endpoint.rebind(UdpSocket::bind(SocketAddr::new(away(), 0)).unwrap()).unwrap();
    newcomer.write(&[0x20]).await;
    assert_eq!(newcomer.closed().await, Some(DisconnectReason::Kicked));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_does_not_answer_moves_no_player() {
    let host = Host::start(RoomConfig::default()).await;
    // A ban of the forged address would close the player that were moved there.
    host.door.ban(away(), None).unwrap();
    let relay = Relay::start(host.endpoint.address()).await;
    let mut peer = Peer::connect(relay.address, 64 * 1_024).await;
    peer.log_in("Ada", None).await;
    peer.token().await;
    relay.forges.store(true, Ordering::Relaxed);
    peer.write(&heartbeats(1)).await;
    // Longer than the server goes without a look at the address.
    tokio::time::sleep(Duration::from_millis(700)).await;
    relay.forges.store(false, Ordering::Relaxed);
    round_trip(&mut peer).await;
    assert_eq!((shown(&host), host.door.stats().moved), (Some(home()), 0));
    assert_eq!(host.door.stats().banned, 0);
    relay.task.abort();
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_takes_no_more_by_migration_than_by_arrival() {
    let host = Host::start_with(Limits { max_per_address: 1, ..Limits::default() }).await;
    let mut first = enter(&host, "Ada").await;
    migrate(&mut first, away()).await;
    until("the server follows", || host.door.stats().moved == 1).await;
    // Its place at home is free.
    let mut second = enter(&host, "Bob").await;
    migrate(&mut second, away()).await;
    assert_eq!(second.closed().await, Some(DisconnectReason::TooMany));
    assert_eq!(host.door.stats().address_full, 1);
    until("the place is given back", || host.door.stats().connections == 1).await;
    first.write(&heartbeats(1)).await;
    assert_eq!(first.connection.close_reason(), None);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migration_can_be_refused() {
    let room = Room::start(RoomConfig::default(), Rails::default()).unwrap();
    let door = Door::new(Arc::new(room.handle()), Limits::default()).unwrap();
    let config = EndpointConfig { migration: false, idle: Duration::from_secs(2) };
    let endpoint = Endpoint::bind(loopback(), &certificate(), door.clone(), config).unwrap();
    let mut peer = Peer::connect(endpoint.address(), 64 * 1_024).await;
    peer.log_in("Ada", None).await;
    peer.token().await;
    migrate(&mut peer, away()).await;
    // Nothing that comes from there is heard; the session ends by silence, and its player may come back.
    let end = soon("the end", peer.connection.closed()).await;
    assert!(!matches!(end, quinn::ConnectionError::ApplicationClosed(_)), "{end}");
    assert_eq!(door.stats().moved, 0);
    room.stop();
    endpoint.stop().await;
}
