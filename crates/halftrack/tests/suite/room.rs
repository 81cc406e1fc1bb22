//! A room as a whole: a server and clients of the cart game, in memory and in virtual time.

use std::time::Duration;

use crate::rig::carts::{config, login, nothing, rig, shuttle};
use crate::rig::{Rig, Way, ms};
use halftrack::cart::Rails;
use halftrack::client::ClientEvent;
use halftrack::record::Recording;
use halftrack::server::{Recovery, Server, ServerConfig};
use halftrack::session::{ConnectionId, DisconnectReason, SessionState};
use halftrack::wire::control::{FromClient, Heartbeat, Login, Resume};
use halftrack::{
    Cause, Completeness, CorrectionSizes, Driver, MoveInput, Seq, Status, SyncLink, Tick, TickInput,
    Timestamp, Token,
};

#[test]
fn one_round_trip_from_input_to_state() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(40)));
    rig.run(ms(1_000), |_, _, _| {});
    let client = &rig.seats[seat].client;
    assert_eq!(client.state(), SessionState::LoggedIn);
    let player = client.player().unwrap();
    let start = rig.server.bodies().next().unwrap().2.x;
    rig.run(ms(2_000), |_, now, client| client.set_input(now, 8));
    let server = rig.server.bodies().next().unwrap().2.x;
    assert!(server > start + 14.0, "the server moved it: {server}");
    let client = &rig.seats[seat].client;
    let own = rig.server.owned(player)[0];
    let (tick, told) = client.authoritative(own).unwrap();
    assert_eq!(Some(told), rig.server.body(own, tick), "and told so");
    let stats = client.reconciler().unwrap().stats();
    assert_eq!((stats.snapped, stats.eased), (0, 0), "{stats:?}");
    assert!(client.predicted().unwrap().x > server, "prediction is ahead");
}

#[test]
fn two_clients_on_a_bad_network_are_corrected_for_reasons_only() {
    let mut rig = rig();
    let way = Way { delay: ms(40), jitter: ms(20), loss: 0.02, duplicate: 0.01 };
    for name in ["Ada", "Bob"] {
        rig.join(config(name), way);
    }
    rig.run(Duration::from_secs(60), shuttle);
    for seat in &rig.seats {
        let stats = seat.client.reconciler().unwrap().stats();
        assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
        assert!(stats.unchanged > 1_000, "{stats:?} {:?}", seat.client.stats());
    }
}

#[test]
fn lane_05_the_room_works_without_a_sync_link() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.seats[seat].sync_link = SyncLink::Absent;
    rig.run(Duration::from_secs(5), shuttle);
    let seat = &rig.seats[seat];
    assert_eq!(seat.datagrams_down, 0);
    assert!(seat.client.stats().snapshots > 80, "{:?}", seat.client.stats());
    let stats = seat.client.reconciler().unwrap().stats();
    assert_eq!((stats.snapped, stats.eased), (0, 0), "{stats:?}");
    let heard = seat.events.iter().any(|event| matches!(event, ClientEvent::Joined(..)));
    assert!(heard);
}

#[test]
fn server_01_the_state_exists_from_login_on() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.run(ms(40), nothing);
    // The login has arrived, the answer has not.
    assert_eq!(rig.server.bodies().count(), 1, "before any input");
    assert_eq!(rig.seats[seat].client.predicted(), None);
    rig.run(ms(30), nothing);
    let told = rig.seats[seat].client.predicted().copied();
    assert_eq!(told.as_ref(), rig.server.bodies().next().map(|(.., body)| body));
}

/// A bare connection that a test speaks for.
struct Stranger {
    connection: ConnectionId,
    number: u64,
}

fn token(number: u64) -> Token {
    Token::new([number as u8; 16])
}

impl Stranger {
    fn connect(rig: &mut Rig<Rails>, number: u64) -> Self {
        let connection = ConnectionId::new(number);
        rig.server.handle_connected(rig.now, connection, SyncLink::Present, token(number));
        Self { connection, number }
    }

    fn say(&self, rig: &mut Rig<Rails>, message: &FromClient) {
        let mut bytes = vec![];
        assert!(message.append_to(&mut bytes));
        rig.server.handle_stream(rig.now, self.connection, &bytes);
    }

    fn login(name: &str) -> FromClient {
        Self::resume(name, None)
    }

    /// A login with the token of a session, if there is one.
    fn resume(name: &str, token: Option<Token>) -> FromClient {
        let resume = token.map(|token| Resume { token, received: Some(0) });
        FromClient::Login(Login { resume, ..login(name) })
    }

    /// The token of a session that began on this connection.
    fn token(&self) -> Token {
        token(self.number)
    }

    fn closed(&self, rig: &mut Rig<Rails>) -> Option<DisconnectReason> {
        let (connection, reason) = rig.server.poll_close()?;
        rig.server.handle_closed(connection);
        (connection == self.connection).then_some(reason)
    }
}

fn drive(seq: u16, newest: Tick, input: i8) -> Vec<u8> {
    let message = MoveInput {
        seq: Seq::new(seq),
        newest,
        ticks: vec![TickInput::steady(input)],
        completeness: Completeness::Closed,
        ..MoveInput::default()
    };
    let mut buffer = vec![0; 200];
    let length = message.encode(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

#[test]
fn server_02_each_player_is_validated_alone() {
    let mut rig = rig();
    let ada = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(Duration::from_secs(2), shuttle);
    let vandal = Stranger::connect(&mut rig, 900);
    vandal.say(&mut rig, &Stranger::login("Vandal"));
    let player = rig.server.player_of(vandal.connection).unwrap();
    // Duplicates, the far future, the past and a broken order: each is counted or refused, and nobody else notices.
    let tick = rig.server.tick();
    for (seq, newest) in
        [(5, tick.next()), (5, tick.next()), (6, Tick::new(tick.number() + 500)), (7, Tick::new(3))]
    {
        rig.server.handle_datagram(rig.now, vandal.connection, &drive(seq, newest, 8));
    }
    let counted = *rig.server.input_stats(player).unwrap();
    assert_eq!((counted.messages, counted.stale, counted.far_future), (3, 1, 1));
    vandal.say(&mut rig, &FromClient::ShootInput(vec![1, 2, 3]));
    assert_eq!(vandal.closed(&mut rig), Some(DisconnectReason::Malformed));
    rig.run(Duration::from_secs(2), shuttle);
    let seat = &rig.seats[ada];
    assert_eq!((seat.client.state(), seat.closed.len()), (SessionState::LoggedIn, 0));
    let stats = seat.client.reconciler().unwrap().stats();
    assert_eq!((stats.eased, stats.snapped), (0, 0), "{stats:?}");
}

#[test]
fn server_03_nobody_acts_for_another() {
    let mut rig = rig();
    rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(Duration::from_secs(1), nothing);
    let ada = rig.seats[0].client.player().unwrap();
    let place = *rig.server.bodies().next().unwrap().2;
    // Not logged in: a datagram is nobody's, and an order ends the connection.
    let stranger = Stranger::connect(&mut rig, 900);
    rig.server.handle_datagram(rig.now, stranger.connection, &drive(1, rig.server.tick().next(), 8));
    assert_eq!(rig.server.stats().stray_datagrams, 1);
    stranger.say(&mut rig, &FromClient::ShootInput(vec![1]));
    assert_eq!(stranger.closed(&mut rig), Some(DisconnectReason::Malformed));
    // Logged in: its input is its own, whatever it is about; no message names a player.
    let other = Stranger::connect(&mut rig, 901);
    other.say(&mut rig, &Stranger::login("Eve"));
    for seq in 1..20 {
        rig.server.handle_datagram(rig.now, other.connection, &drive(seq, rig.server.tick().next(), 8));
        rig.run(ms(50), nothing);
    }
    let [ada, eve] = [ada, rig.server.player_of(other.connection).unwrap()]
        .map(|player| rig.server.body_of(player).unwrap());
    assert_eq!(*ada, place, "Ada stands where she stood");
    assert!(eve.x > -10.0, "Eve drives");
    // To log in twice is no one's right.
    other.say(&mut rig, &Stranger::login("Mallory"));
    assert_eq!(other.closed(&mut rig), Some(DisconnectReason::Malformed));
}

#[test]
fn server_11_a_failed_start_leaves_nothing_and_a_stop_is_clean_twice() {
    let bad = ServerConfig { capacity: 0, ..ServerConfig::default() };
    let refused = Server::new(bad, Rails::default(), Timestamp::ZERO);
    assert_eq!(refused.unwrap_err().to_string(), "capacity is 0; choose one from 1 to 4096");

    let mut rig = rig();
    assert!(rig.server.is_ready());
    let seat = rig.join(config("Ada"), Way::delayed(ms(10)));
    rig.run(ms(500), nothing);
    rig.server.drain(Duration::from_secs(30));
    assert!(!rig.server.is_ready());
    let late = rig.join(config("Bob"), Way::delayed(ms(10)));
    rig.run(ms(500), nothing);
    assert_eq!(rig.seats[late].client.state().to_string(), "failed: the server is shutting down");
    assert_eq!(rig.seats[seat].client.state(), SessionState::LoggedIn, "those who are in play on");
    let told =
        rig.seats[seat].events.iter().any(|event| *event == ClientEvent::Closing(Duration::from_secs(30)));
    assert!(told, "they know that it ends: {:?}", rig.seats[seat].events);
    let ticks = rig.server.stats().ticks;
    rig.server.stop();
    rig.server.stop();
    assert_eq!(rig.server.poll_timeout(), None);
    rig.run(ms(100), nothing);
    assert_eq!(rig.seats[seat].closed, [DisconnectReason::Stopped]);
    assert_eq!((rig.server.stats().ticks, rig.server.connections().count()), (ticks, 0));
    let after = Stranger::connect(&mut rig, 900);
    assert_eq!(after.closed(&mut rig), Some(DisconnectReason::Stopped));
}

#[test]
fn lane_06_a_release_is_sent_at_once_and_is_sync_traffic() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, 8));
    let now = rig.now;
    let client = &mut rig.seats[seat].client;
    client.frame(now);
    while client.poll_datagram().is_some() {}
    client.set_input(now, 0);
    let mut message = MoveInput::<i8>::default();
    let sent = client.poll_datagram().expect("the release is a datagram of its own");
    message.decode(sent).unwrap();
    assert_eq!(message.completeness, Completeness::Open);
    assert_eq!(message.ticks.last().unwrap().last(), 0, "an explicit zero");
    assert!(!client.poll_stream(&mut vec![]), "and nothing on the reliable lane");
    // Nothing else is said, and still the server stops the cart.
    rig.run(ms(500), nothing);
    let before = rig.server.bodies().next().unwrap().2.x;
    rig.run(ms(200), nothing);
    assert_eq!(rig.server.bodies().next().unwrap().2.x, before);
}

/// A change is told twice; whoever is cut in between does not ask without end to be woken for the second time.
#[test]
fn who_is_cut_or_has_left_is_not_woken_in_the_past() {
    for leaves in [false, true] {
        let mut rig = rig();
        rig.join(config("a"), Way::IDEAL);
        rig.run(ms(1_000), nothing);
        let now = rig.now;
        rig.seats[0].client.set_input(now, 5);
        if leaves {
            rig.seats[0].client.logout(now);
        } else {
            rig.cut(0);
        }
        for later in [ms(1), ms(20), ms(60)] {
            let client = &mut rig.seats[0].client;
            client.handle_timeout(now + later);
            assert!(client.poll_timeout().is_none_or(|due| due > now + later), "{leaves} {later:?}");
        }
    }
}

/// Rings of bells are orders and events: each is heard once by everybody, in order, whatever becomes of connections.
#[test]
fn orders_and_events_arrive_exactly_once_across_cuts() {
    let mut rig = rig();
    let way = Way { delay: ms(30), jitter: ms(10), loss: 0.05, duplicate: 0.05 };
    let seats = [rig.join(config("Ada"), way), rig.join(config("Bob"), way)];
    rig.run(Duration::from_secs(1), nothing);
    let mut rung = [0u8; 2];
    for round in 0..40 {
        let ringer = round % 2;
        for _ in 0..3 {
            if rig.seats[seats[ringer]].client.order(rig.now, &[rung[ringer]]).is_ok() {
                rung[ringer] += 1;
            }
        }
        rig.run(ms(130), shuttle);
        if round % 5 == 0 {
            rig.cut(seats[(round / 5) % 2]);
        }
        rig.run(ms(270), shuttle);
    }
    rig.run(Duration::from_secs(10), nothing);
    assert!(rung[0] > 20 && rung[1] > 20, "{rung:?}");
    for seat in &rig.seats {
        for (player, count) in [(0u8, rung[0]), (1, rung[1])] {
            let heard = seat.events.iter().filter_map(|event| match event {
                ClientEvent::Game(bytes) if bytes[0] == player => Some(bytes[2]),
                _ => None,
            });
            assert_eq!(heard.collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
        }
        assert_eq!(seat.client.reconciler().unwrap().stats().of(Cause::Unexplained), 0);
    }
}

#[test]
fn session_07_a_second_connection_with_the_token_supersedes_the_first() {
    let mut rig = rig();
    let first = Stranger::connect(&mut rig, 900);
    first.say(&mut rig, &Stranger::login("Ada"));
    let player = rig.server.player_of(first.connection).unwrap();
    let second = Stranger::connect(&mut rig, 901);
    second.say(&mut rig, &Stranger::resume("Ada", Some(first.token())));
    assert_eq!(
        rig.server.player_of(second.connection),
        Some(player),
        "the same player, by the newest connection"
    );
    assert_eq!(rig.server.connection_of(player), Some(second.connection));
    assert_eq!(first.closed(&mut rig), Some(DisconnectReason::Superseded));
    assert_eq!(rig.server.bodies().count(), 1);
    // What still comes by the old one is nobody's.
    rig.server.handle_datagram(rig.now, first.connection, &drive(1, rig.server.tick().next(), 8));
    assert_eq!(rig.server.stats().stray_datagrams, 1);
}

#[test]
fn session_12_a_kept_token_opens_nothing_after_the_next_login_by_name() {
    let mut rig = rig();
    assert!(rig.server.record([1; 16], vec![]));
    let thief = Stranger::connect(&mut rig, 900);
    thief.say(&mut rig, &Stranger::login("Ada"));
    rig.server.handle_disconnected(rig.now, thief.connection);
    let guest = Stranger::connect(&mut rig, 901);
    guest.say(&mut rig, &Stranger::login("Ada"));
    let player = rig.server.player_of(guest.connection).unwrap();
    assert_eq!(
        rig.server.bodies().map(|(_, driver, _)| driver).collect::<Vec<_>>(),
        [Driver::Player(player)],
        "one body, not two"
    );
    let again = Stranger::connect(&mut rig, 902);
    again.say(&mut rig, &Stranger::resume("Ada", Some(thief.token())));
    assert_eq!(again.closed(&mut rig), Some(DisconnectReason::Refused));
    assert_eq!(rig.server.connection_of(player), Some(guest.connection), "the guest plays on");

    // Bob says a word, Carol does not; then the server crashes.
    let [bob, carol] = [("Bob", 903), ("Carol", 904)].map(|(name, number)| {
        let stranger = Stranger::connect(&mut rig, number);
        stranger.say(&mut rig, &Stranger::login(name));
        stranger
    });
    let bob_is = rig.server.player_of(bob.connection);
    bob.say(&mut rig, &FromClient::Heartbeat(Heartbeat { sent_micros: 1, received: 0 }));
    rig.run(ms(60), nothing);
    let recording = Recording::open(rig.record.clone()).unwrap();
    let recovery = Recovery { run: [2; 16], rewound: false };
    let world = Rails::default();
    rig.server = Server::recover(ServerConfig::default(), world, rig.now, recording, recovery).unwrap().0;
    let mut log_in = |number, name, token: Option<Token>| {
        let stranger = Stranger::connect(&mut rig, number);
        stranger.say(&mut rig, &Stranger::resume(name, token));
        rig.server.player_of(stranger.connection).ok_or_else(|| stranger.closed(&mut rig))
    };
    assert!(log_in(905, "Ada", Some(thief.token())).is_ok(), "as a new Ada: the guest never spoke");
    assert_eq!(log_in(906, "Bob", None), Err(Some(DisconnectReason::Refused)), "Bob has his token");
    assert_eq!(log_in(907, "Bob", Some(bob.token())).ok(), bob_is);
    assert!(log_in(908, "Carol", None).is_ok(), "Carol's answer may be lost with the crash");
    assert_eq!(log_in(909, "Carol", Some(carol.token())), Err(Some(DisconnectReason::Refused)), "it is dead");
}

#[test]
fn session_09_who_was_away_for_too_long_is_told_and_begins_anew_from_full_state() {
    let mut rig = rig();
    let ada = rig.join(config("Ada"), Way::delayed(ms(10)));
    let bob = rig.join(config("Bob"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(1), shuttle);
    let (player, place) = (rig.seats[ada].client.player(), rig.server.bodies().count());
    rig.seats[ada].frozen_until = rig.now + Duration::from_secs(25);
    rig.cut(ada);
    for _ in 0..250 {
        for bell in 0..6 {
            rig.seats[bob].client.order(rig.now, &[bell]).unwrap();
        }
        rig.run(ms(100), |seat, now, client| {
            if seat == bob {
                shuttle(seat, now, client);
            }
        });
    }
    rig.seats[ada].events.clear();
    rig.run(Duration::from_secs(3), shuttle);
    let seat = &rig.seats[ada];
    let restarted = halftrack::wire::control::Restart::Overflow;
    assert!(
        seat.events.contains(&ClientEvent::Restarted(restarted)),
        "it is told by name: {:?}",
        seat.events
    );
    assert_eq!(
        (seat.client.state(), seat.client.player()),
        (SessionState::LoggedIn, player),
        "and is who it was"
    );
    assert_eq!(
        (seat.client.players().count(), seat.client.crowd().bodies().count()),
        (2, place),
        "from full state"
    );
    assert_eq!(seat.client.reconciler().unwrap().stats().of(Cause::Unexplained), 0);
    assert_eq!(corrections(&rig, bob), (0, 0), "the other has not noticed");
}

/// Whoever waits for its timeouts must be able to sleep: neither a cut nor a server that says nothing may keep it awake.
#[test]
fn a_client_that_can_do_nothing_does_not_ask_to_be_called_at_once() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(Duration::from_secs(2), shuttle);
    // A change was sent, and is to be sent again: but there is nobody to send it to any more.
    let now = rig.now;
    rig.seats[seat].client.set_input(now, 7);
    rig.cut(seat);
    let client = &mut rig.seats[seat].client;
    client.handle_timeout(now + ms(30));
    assert!(client.poll_timeout() > Some(now + ms(31)), "{:?} at {now:?}", client.poll_timeout());
    rig.run(Duration::from_secs(3), shuttle);
    // Nothing is heard for so long that prediction stands.
    rig.stalled_until = rig.now + Duration::from_secs(10);
    rig.run(ms(2_500), shuttle);
    let (now, client) = (rig.now, &mut rig.seats[seat].client);
    client.handle_timeout(now);
    assert_eq!(client.state(), SessionState::LoggedIn);
    assert!(client.poll_timeout() > Some(now + ms(1)), "{:?} at {now:?}", client.poll_timeout());
}

/// Snapshots have the low 16 bits of their tick: somebody who was away for more than half of these must not take them for
/// those of another round.
#[test]
fn whoever_was_away_for_longer_than_a_ticks_bits_comes_back() {
    let hour = Duration::from_secs(3_600);
    let server = ServerConfig { grace: hour, ..ServerConfig::default() };
    let mut rig = Rig::new(server, Rails::default(), 7);
    let mut client = config("Ada");
    client.session.grace = hour;
    let seat = rig.join(client, Way::delayed(ms(20)));
    rig.run(Duration::from_secs(2), shuttle);
    let player = rig.seats[seat].client.player();
    let away = Duration::from_millis(50) * 40_000;
    rig.seats[seat].frozen_until = rig.now + away;
    rig.run(away + Duration::from_secs(3), shuttle);
    let client = &rig.seats[seat].client;
    assert_eq!((client.state(), client.player()), (SessionState::LoggedIn, player));
    let known = client.reconciler().unwrap().predictor().baseline().tick;
    assert!(rig.server.tick().since(known) < 5, "it knows tick {known} of {}", rig.server.tick());
}

/// Guests until every number has been somebody's: the next ones are small again, and everybody still sees everybody.
#[test]
fn player_numbers_go_round_while_people_play() {
    let mut rig = rig();
    let ada = rig.join(config("Ada"), Way::delayed(ms(5)));
    rig.run(ms(500), shuttle);
    let mut bytes = vec![];
    assert!(
        FromClient::Login(login("Guest")).append_to(&mut bytes)
            && FromClient::Logout(()).append_to(&mut bytes)
    );
    for guest in 1..=65_534u64 {
        let connection = ConnectionId::new(1_000_000 + guest);
        rig.server.handle_connected(rig.now, connection, SyncLink::Absent, Token::new([9; 16]));
        rig.server.handle_stream(rig.now, connection, &bytes);
        while let Some((closed, _)) = rig.server.poll_close() {
            rig.server.handle_closed(closed);
        }
        // Who is there hears of each of them, and must have the time to.
        if guest % 100 == 0 {
            rig.run(ms(60), shuttle);
        }
    }
    let (bob, cid) =
        (rig.join(config("Bob"), Way::delayed(ms(5))), rig.join(config("Cid"), Way::delayed(ms(5))));
    rig.run(Duration::from_secs(4), shuttle);
    let numbers = [ada, bob, cid].map(|seat| rig.seats[seat].client.player().unwrap().number());
    assert_eq!(numbers, [0, 65_535, 1], "past the one who is there");
    for seat in [ada, bob, cid] {
        let client = &rig.seats[seat].client;
        assert_eq!((client.players().count(), client.remotes().iter().count()), (3, 2));
        assert_eq!((client.stats().check_failed, client.stats().malformed), (0, 0));
        assert_eq!(client.reconciler().unwrap().stats().of(Cause::Unexplained), 0);
    }
}

/// A full log refuses an order, and costs nothing else.
#[test]
fn an_order_too_many_does_not_cost_the_session() {
    let mut rig = rig();
    let mut small = config("Ada");
    small.session.max_log_messages = 2;
    let seat = rig.join(small, Way::delayed(ms(20)));
    rig.run(Duration::from_secs(1), nothing);
    let now = rig.now;
    let client = &mut rig.seats[seat].client;
    assert_eq!([1, 2, 3].map(|order| client.order(now, &[order]).is_ok()), [true, true, false]);
    rig.run(Duration::from_secs(2), nothing);
    rig.cut(seat);
    rig.run(Duration::from_secs(2), nothing);
    let now = rig.now;
    let client = &mut rig.seats[seat].client;
    assert_eq!(client.state(), SessionState::LoggedIn, "it came back");
    assert!(client.order(now, &[3]).is_ok(), "and orders are taken again");
}

/// A server whose time has slipped plays what is sent from then on, not what had been sent for the time that never came.
#[test]
fn server_07_after_a_slip_input_is_that_of_the_time_that_goes_on() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(Duration::from_secs(2), nothing);
    rig.stalled_until = rig.now + ms(2_600);
    rig.run(ms(2_599), |_, now, client| client.set_input(now, 8));
    assert_eq!(rig.server.stats().slips, 0);
    rig.run(ms(300), |_, now, client| client.set_input(now, 0));
    assert_eq!(rig.server.stats().slips, 1);
    let place = rig.server.bodies().next().unwrap().2.x;
    rig.run(ms(1_000), |_, now, client| client.set_input(now, 0));
    assert_eq!(rig.server.bodies().next().unwrap().2.x, place, "it stands, as its player wants");
    let stats = rig.seats[seat].client.reconciler().unwrap().stats();
    assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
}

fn corrections(rig: &Rig<Rails>, seat: usize) -> (u64, u64) {
    let stats = rig.seats[seat].client.reconciler().unwrap().stats();
    (stats.eased, stats.snapped)
}

#[test]
fn diag_03_what_clients_report_is_what_they_corrected_in_number_and_size_cause_by_cause() {
    let mut rig = rig();
    let rough = Way { jitter: ms(60), loss: 0.4, ..Way::delayed(ms(40)) };
    for name in ["Ada", "Bob", "Eve"] {
        rig.join(config(name), rough);
    }
    rig.run(Duration::from_secs(40), shuttle);
    for seat in &mut rig.seats {
        (seat.up, seat.down) = (Way::delayed(ms(40)), Way::delayed(ms(40)));
    }
    // Time for the last word on held input, and for the last report.
    rig.run(Duration::from_secs(8), nothing);
    let stats = rig.server.stats();
    for cause in Cause::ALL {
        let corrected = rig.seats.iter().map(|seat| seat.client.reconciler().unwrap().stats().of(cause));
        assert_eq!(stats.reported.of(cause), corrected.sum::<u64>(), "{cause}");
    }
    let mut sizes = CorrectionSizes::default();
    rig.seats.iter().for_each(|seat| sizes.merge(&seat.client.reconciler().unwrap().stats().sizes));
    assert_eq!(stats.reported_sizes, sizes);
    for (cause, sizes) in stats.reported_sizes.iter() {
        let count = stats.reported.of(cause);
        assert_eq!((sizes.distance.count(), sizes.angle.count()), (count, count), "{cause}");
    }
    let sum = |cause| stats.reported_sizes.of(cause).distance.sum();
    assert!(sum(Cause::LostInput) + sum(Cause::LateInput) > 0.1, "{stats:?}");
    let snapped = rig.seats.iter().map(|seat| seat.client.reconciler().unwrap().stats().snapped);
    assert_eq!(stats.reported_snaps, snapped.sum::<u64>());
    assert!(stats.reported.of(Cause::LostInput) + stats.reported.of(Cause::LateInput) > 10, "{stats:?}");
    let input = rig.server.all_input_stats();
    rig.server.kick(rig.seats[0].client.player().unwrap());
    assert_eq!(rig.server.all_input_stats(), input, "whoever is gone still counts");
}

/// No snapshot comes, so the open tick does not end: that is no reason to be called without a pause.
#[test]
fn a_client_that_hears_nothing_is_called_a_few_times_a_second() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(20)));
    rig.run(ms(1_000), shuttle);
    let client = &mut rig.seats[seat].client;
    let (mut now, mut calls) = (rig.now, 0);
    // Until the silence is taken for a cut.
    while let Some(due) = client.poll_timeout().filter(|due| *due < rig.now + ms(3_500)) {
        now = now.max(due);
        client.handle_timeout(now);
        calls += 1;
    }
    assert_eq!(client.reconciler().unwrap().predictor().status(), Status::Starved);
    assert!((40..100).contains(&calls), "{calls} calls in 3.5 s");
}
