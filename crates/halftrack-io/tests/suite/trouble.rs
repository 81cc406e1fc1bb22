//! What goes wrong on real sockets, and that nobody else notices.

use std::time::Duration;

use crate::rig::{Host, Peer, certificate, config, corrections, drive_past, logged_in, login, soon, until};
use halftrack::session::{DisconnectReason, SessionEnd, SessionState};
use halftrack_io::{CertificateHash, HttpServer, IoError, RoomConfig, Trust, WebSockets, connect};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_reads_is_closed_and_others_play_on() {
    let config = RoomConfig { stall: Duration::from_millis(500), ..RoomConfig::default() };
    let host = Host::start(config).await;
    let healthy = host.quic("Ada");
    logged_in(&healthy).await;
    healthy.set_input(8);
    // So small a window that not even the welcome fits.
    let mut stalled = Peer::connect(host.endpoint.address(), 16).await;
    stalled.log_in("Eve", None).await;
    assert_eq!(stalled.closed().await, Some(DisconnectReason::TooSlow));
    until("it is counted", || host.room.stats().closed(DisconnectReason::TooSlow) == 1).await;
    drive_past(&healthy, 2.0).await;
    assert_eq!(corrections(&healthy), 0);
    assert_eq!(healthy.stats().disconnects, 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_03_what_is_no_protocol_closes_the_connection_and_nothing_else() {
    let host = Host::start(RoomConfig::default()).await;
    let healthy = host.quic("Ada");
    logged_in(&healthy).await;
    // A frame of no length; a preamble that names no room; one that goes on too long.
    for bytes in [&[0, 0, 0, 0][..], &[3, b'.', b'.', b'/'], &[33]] {
        let mut peer = host.peer().await;
        peer.write(bytes).await;
        assert_eq!(peer.closed().await, Some(DisconnectReason::Malformed), "{bytes:?}");
    }
    let mut peer = host.peer().await;
    peer.write(&[&b"\x04duel"[..], &login("Eve", None)].concat()).await;
    assert_eq!(peer.closed().await, Some(DisconnectReason::UnknownRoom));
    let (door, room) = (host.door.stats(), host.room.stats());
    assert_eq!(
        (door.closed(DisconnectReason::Malformed), door.closed(DisconnectReason::UnknownRoom)),
        (3, 1)
    );
    assert_eq!((room.connected, room.server.malformed_streams), (1, 0), "none of them came to the room");
    drive_past(&healthy, 1.0).await;
    assert_eq!((corrections(&healthy), host.names()), (0, vec!["Ada".to_owned()]));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_07_the_superseded_are_told_by_code() {
    let host = Host::start(RoomConfig::default()).await;
    let mut first = host.peer().await;
    first.log_in("Ada", None).await;
    let token = first.token().await;
    let mut second = host.peer().await;
    second.log_in("Ada", Some(token)).await;
    assert_eq!(second.token().await, token);
    assert_eq!(first.closed().await, Some(DisconnectReason::Superseded));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kicked_are_told_by_every_link_and_do_not_come_back() {
    let host = Host::start(RoomConfig::default()).await;
    for client in [host.quic("Ada"), host.websocket("Bob")] {
        logged_in(&client).await;
        let player = client.read(|client| client.player()).unwrap();
        host.room.with(move |server, _| server.kick(player)).unwrap();
        until("the end", || client.state() == SessionState::Failed(SessionEnd::Kicked)).await;
        assert_eq!((client.last_close(), client.stats().connects), (Some(DisconnectReason::Kicked), 1));
    }
    // A client may know before its connection is counted.
    until("both are counted", || host.room.stats().closed(DisconnectReason::Kicked) == 2).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_is_not_there_ends_the_session_by_every_link() {
    let host = Host::start(RoomConfig::default()).await;
    let urls = [
        format!("quic://{}/room/none", host.endpoint.address()),
        format!("ws://{}/room/none", host.http.address()),
    ];
    for url in urls {
        let client = connect(url.parse().unwrap(), host.trust(), config("Ada")).unwrap();
        let problem = soon(&url, client.logged_in()).await.unwrap_err();
        assert_eq!(problem.to_string(), "the session is over: failed: there is no such room", "{url}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_certificate_than_the_trusted_one_is_refused() {
    let host = Host::start(RoomConfig::default()).await;
    let url = format!("quic://{}", host.endpoint.address());
    let trust = Trust::Hashes(vec![CertificateHash::of(b"another")]);
    let client = connect(url.parse().unwrap(), trust, config("Ada")).unwrap();
    let problem = soon("an error", client.logged_in()).await.unwrap_err();
    let found = host.certificate.hash();
    assert!(problem.to_string().contains(&found.to_string()), "{problem}");
    assert!(matches!(*problem, IoError::WrongCertificate { .. }));
    assert_eq!((client.stats().failed, client.stats().connects), (1, 0), "trying again would be no use");

    // By authorities, one that vouches for itself is nobody.
    let client = connect(url.parse().unwrap(), Trust::System, config("Ada")).unwrap();
    until("an error", || client.last_error().is_some()).await;
    assert!(matches!(*client.last_error().unwrap(), IoError::Handshake(_)));
    assert_eq!(host.room.stats().connected, 0);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_is_named_and_nothing_is_left_running() {
    let host = Host::start(RoomConfig::default()).await;
    let taken = host.endpoint.address();
    let Err(problem) = Host::start_at(taken, RoomConfig::default(), certificate()).await else {
        panic!("two on one port")
    };
    let said = problem.to_string();
    assert_eq!(said, format!("{taken} is in use: stop the program that has it, or choose another port"));

    let routes = WebSockets::new(host.door.clone()).routes();
    let problem = HttpServer::bind(host.http.address(), routes, host.door.clone()).await.unwrap_err();
    assert!(matches!(problem, IoError::AddressInUse { .. }), "{problem}");

    let client = host.quic("Ada");
    logged_in(&client).await;
    host.stop().await;
    // Whoever waited for the port can have it.
    Host::start_at(taken, RoomConfig::default(), certificate()).await.unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_comes_back_to_a_server_that_was_restarted() {
    let old = Host::start(RoomConfig::default()).await;
    let (address, client) = (old.endpoint.address(), old.quic("Ada"));
    logged_in(&client).await;
    drive_past(&client, 1.0).await;
    old.stop().await;
    until("the cut", || client.state() != SessionState::LoggedIn).await;
    assert_eq!(client.last_close(), Some(DisconnectReason::Stopped));
    let Host { certificate, endpoint, .. } = old;
    drop(endpoint);
    let new = Host::start_at(address, RoomConfig::default(), certificate).await.unwrap();
    logged_in(&client).await;
    drive_past(&client, 1.0).await;
    assert_eq!((client.stats().connects, new.room.stats().server.logins), (2, 1));
    new.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_11_a_stop_tells_everybody_and_again_does_nothing() {
    let host = Host::start(RoomConfig::default()).await;
    let (one, other) = (host.quic("Ada"), host.websocket("Bob"));
    logged_in(&one).await;
    logged_in(&other).await;
    host.room.drain(Duration::from_secs(1));
    let late = host.quic("Eve");
    let problem = soon("a refusal", late.logged_in()).await.unwrap_err();
    assert!(problem.to_string().contains("shutting down"), "{problem}");
    for _ in 0..2 {
        host.stop().await;
    }
    for client in [one, other] {
        until("the end", || client.last_close() == Some(DisconnectReason::Stopped)).await;
    }
    assert!(host.room.handle().is_ended() && host.room.with(|_, _| ()).is_err());
    assert_eq!((host.endpoint.connections(), host.room.stats().connections), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_that_panics_ends_its_room_and_leaves_nobody_waiting() {
    let host = Host::start(RoomConfig::default()).await;
    let client = host.quic("Ada");
    logged_in(&client).await;
    let answer = host.room.with(|_, _| assert_eq!(1, 2, "on purpose"));
    assert!(matches!(answer, Err(IoError::RoomEnded)));
    until("the end", || client.last_close() == Some(DisconnectReason::RoomFailed)).await;
    host.stop().await;
}
