//! A native client whose process crashed comes back in another one, with the token that the first one saved.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::rig::{Host, config, drive_past, logged_in, soon, until};
use halftrack::cart::Cart;
use halftrack::client::{ClientConfig, ClientEvent};
use halftrack::session::{DisconnectReason, SessionEnd, SessionState};
use halftrack::wire::control::{LoginRefused, Restart};
use halftrack::{Link, PlayerId, Timestamp, Token};
use halftrack_io::{Between, ClientHandle, Direction, RoomConfig, connect, connect_through};

/// Passes everything on at once, until the process behind it is as good as gone: then nothing, in either direction.
#[derive(Default)]
struct Fuse {
    blown: Arc<AtomicBool>,
    under_way: VecDeque<(Direction, Link, Vec<u8>)>,
}

impl Between for Fuse {
    fn send(&mut self, _: Timestamp, direction: Direction, link: Link, bytes: &[u8]) {
        if !self.blown.load(Ordering::SeqCst) {
            self.under_way.push_back((direction, link, bytes.to_vec()));
        }
    }

    fn poll(&mut self, _: Timestamp) -> Option<(Direction, Link, Vec<u8>)> {
        self.under_way.pop_front()
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }

    fn reset(&mut self) {
        self.under_way.clear();
    }
}

fn with_token(name: &str, token: Option<Token>) -> ClientConfig<Cart> {
    let mut config = config(name);
    config.session.resume = token;
    config
}

fn quic(host: &Host, config: ClientConfig<Cart>) -> ClientHandle<Cart> {
    connect(format!("quic://{}", host.endpoint.address()).parse().unwrap(), host.trust(), config).unwrap()
}

fn restart(client: &ClientHandle<Cart>) -> Option<Restart> {
    let mut events = std::iter::from_fn(|| client.poll_event());
    events.find_map(|event| if let ClientEvent::Restarted(why) = event { Some(why) } else { None })
}

/// The place of the only cart of the room, which is the player's.
fn place(host: &Host, player: PlayerId) -> f64 {
    let found =
        host.room.with(move |server, _| (server.bodies().count(), server.body_of(player).map(|cart| cart.x)));
    let (carts, place) = found.unwrap();
    assert_eq!(carts, 1);
    place.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_13_a_new_client_process_with_the_saved_token_gets_its_body_back() {
    // A stalled machine must not cost the stranger its refusal: a client that hears only the end comes back, and then takes
    // the name for its own until its grace is over.
    let host = Host::start(RoomConfig { linger: Duration::from_secs(10), ..RoomConfig::default() }).await;
    let fuse = Fuse::default();
    let blown = fuse.blown.clone();
    let target = format!("quic://{}", host.endpoint.address()).parse().unwrap();
    let first = connect_through(target, host.trust(), config("Ada"), Box::new(fuse)).unwrap();
    logged_in(&first).await;
    drive_past(&first, 4.0).await;
    let saved = first.resume_token().unwrap().reveal();
    let player = first.read(|client| client.player()).unwrap();
    // The process is gone without a word: not even its handle is dropped.
    blown.store(true, Ordering::SeqCst);
    std::mem::forget(first);

    let stranger = quic(&host, config("Ada"));
    assert!(soon("the answer", stranger.logged_in()).await.is_err());
    let taken = SessionEnd::Refused(LoginRefused::NameTaken);
    assert_eq!((stranger.state(), stranger.stats().connects), (SessionState::Failed(taken), 1));

    let before = place(&host, player);
    let second = quic(&host, with_token("Ada", saved.parse().ok()));
    logged_in(&second).await;
    assert_eq!(
        (second.read(|client| client.player()), restart(&second)),
        (Some(player), Some(Restart::Reclaimed))
    );
    assert_eq!(
        (host.names(), place(&host, player) >= before),
        (vec!["Ada".to_owned()], true),
        "one cart, its own"
    );
    until("the old connection is closed", || host.room.stats().closed(DisconnectReason::Superseded) == 1)
        .await;
    drive_past(&second, 2.0).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_13_a_token_that_the_server_does_not_know_is_a_new_login_with_a_reason() {
    let host = Host::start(RoomConfig::default()).await;
    let client = quic(&host, with_token("Ada", Some(Token::new([3; 16]))));
    logged_in(&client).await;
    assert_eq!(restart(&client), Some(Restart::Unknown));
    drive_past(&client, 1.0).await;
    host.stop().await;
}
