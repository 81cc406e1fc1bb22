//! CLOCK-01, SESSION-05, SESSION-10 and STALE: the fields of a client that a message changes, and no others.
//!
//! The whole state of a client is compared before and after. `Debug` prints every field, private ones and those added
//! later included.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, CartBody, Rails};

use crate::rig::carts::{config, nothing, rig};
use crate::rig::{Rig, Way, ms};
use halftrack::client::{Client, ClientEvent};
use halftrack::server::{Events, Order, Room, ServerConfig, World};
use halftrack::session::{ClientSession, SessionConfig, SessionState};
use halftrack::wire::WireError;
use halftrack::wire::control::{Continuity, FromServer, HeartbeatReply, Login, LoginAccepted};
use halftrack::{
    Causes, MoveInput, PlayerId, PlayerName, Seq, ServerTime, SyncLink, TickInput, Timestamp, Token,
};

/// The fields of a struct and their values, from its pretty `Debug` output.
fn fields(debug: &str) -> BTreeMap<String, String> {
    let mut lines = debug.lines().skip(1).peekable();
    let indent = lines.peek().map_or(0, |line| line.len() - line.trim_start().len());
    let mut fields = BTreeMap::new();
    let mut name = String::new();
    for line in lines {
        let depth = line.len() - line.trim_start().len();
        if depth == indent
            && let Some((field, _)) = line.trim_start().split_once(": ")
        {
            field.clone_into(&mut name);
        }
        let value: &mut String = fields.entry(name.clone()).or_default();
        value.push_str(line);
        value.push('\n');
    }
    assert!(fields.len() > 3, "not the fields of a struct: {debug}");
    fields
}

/// The names of the fields that differ.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    assert!(before.keys().eq(after.keys()));
    before.iter().filter(|(name, value)| after[*name] != **value).map(|(name, _)| name.clone()).collect()
}

fn client_fields(client: &Client<Cart>) -> BTreeMap<String, String> {
    let mut all = fields(&format!("{client:#?}"));
    for part in ["timing", "sender", "own", "others"] {
        let part = all.remove(part).unwrap();
        all.extend(fields(&part));
    }
    // Memory that is used again, and means nothing between two calls.
    for scratch in ["section", "left_out", "message"] {
        all.remove(scratch).unwrap_or_else(|| panic!("no field is called {scratch}"));
    }
    all
}

/// A client that has driven for two seconds over a link of 30 ms each way, and the moment.
fn played(heartbeat: Duration) -> (Rig<Rails>, Timestamp) {
    let mut rig = rig();
    let mut config = config("Ada");
    (config.session.heartbeat, config.session.silence) = (heartbeat, heartbeat * 4);
    rig.join(config, Way::delayed(ms(30)));
    rig.run(ms(2_000), |_, now, client| client.set_input(now, 3));
    let now = rig.now + ms(7);
    let client = &mut rig.seats[0].client;
    assert_eq!(client.state(), SessionState::LoggedIn);
    // Timers that are due fire here, so that only the message under test changes anything.
    client.frame(now);
    while client.poll_datagram().is_some() || client.poll_stream(&mut vec![]) {}
    (rig, now)
}

fn reply(sent: Timestamp, server: ServerTime) -> Vec<u8> {
    let reply = HeartbeatReply {
        sent_micros: sent.as_micros(),
        held_micros: 0,
        server_micros: server.as_micros(),
        received: 0,
    };
    let mut bytes = vec![];
    assert!(FromServer::HeartbeatReply(reply).append_to(&mut bytes));
    bytes
}

#[test]
fn clock_01_a_heartbeat_reply_feeds_the_clock_and_changes_nothing_else() {
    let (mut rig, now) = played(ms(1_000));
    let server = rig.server.time(now);
    let client = &mut rig.seats[0].client;
    assert_eq!(client.round_trip(), Some(ms(60)));
    let (before, estimate) = (client_fields(client), client.server_time(now + ms(1_000)).unwrap());
    // A round trip of 10 ms, better than all before it, which says that the server is 20 ms further on.
    client.handle_stream(now, &reply(now - ms(10), server + ms(15)));
    let after = client_fields(client);
    assert_eq!(changed(&before, &after), ["clock", "session"]);
    let session = changed(&fields(&before["session"]), &fields(&after["session"]));
    assert_eq!(session, ["heard", "round_trip"], "liveness and the round trip");
    assert_eq!(client.round_trip(), Some(ms(10)));
    let slewed = client.server_time(now + ms(1_000)).unwrap();
    let further = slewed.saturating_since(estimate);
    assert!(further.abs_diff(ms(20)) < ms(1), "and prediction reads the new estimate: {further:?}");
}

#[test]
fn clock_01_a_snapshot_feeds_the_clock_and_of_the_session_only_liveness() {
    let (mut rig, now) = played(ms(1_000));
    let connection = rig.connection(0).unwrap();
    let due = rig.server.poll_timeout().unwrap().max(now);
    rig.server.handle_timeout(due);
    let snapshot = rig.server.poll_datagram(connection).unwrap().to_vec();
    let client = &mut rig.seats[0].client;
    client.handle_timeout(due);
    let before = client_fields(client);
    client.handle_datagram(due, &snapshot);
    let after = client_fields(client);
    assert!(changed(&before, &after).contains(&"clock".to_owned()));
    assert_eq!(changed(&fields(&before["session"]), &fields(&after["session"])), ["heard"]);
}

/// The heartbeat is every 20 s here: the clock learns of a shorter route by snapshots alone.
#[test]
fn clock_01_snapshots_alone_keep_the_clock_right() {
    let (mut rig, _) = played(Duration::from_secs(20));
    let told = rig.seats[0].events.len();
    (rig.seats[0].up, rig.seats[0].down) = (Way::delayed(ms(5)), Way::delayed(ms(5)));
    rig.run(ms(8_000), nothing);
    let (now, seat) = (rig.now, &rig.seats[0]);
    // A snapshot rounds the time for which the server held an input.
    let round_trip = seat.client.round_trip().unwrap();
    assert!(round_trip.abs_diff(ms(10)) < ms(1), "{round_trip:?}");
    let (estimate, truth) = (seat.client.server_time(now).unwrap(), rig.server.time(now));
    assert!(estimate.abs_diff(truth) < ms(1), "{estimate:?} for {truth:?}");
    let session = seat.events[told..].iter().any(|event| matches!(event, ClientEvent::Session(_)));
    assert!(!session, "{:?}", &seat.events[told..]);
}

/// A session that was let in at zero and has three reliable messages under way.
fn logged_in() -> ClientSession {
    let config = SessionConfig::new(PlayerName::new("Ada").unwrap(), 77);
    let mut session = ClientSession::new(config).unwrap();
    session.connect(Timestamp::ZERO);
    session.handle_connected(Timestamp::ZERO);
    let accepted =
        LoginAccepted { player: PlayerId::new(3), token: Token::new([3; 16]), continuity: Continuity::New };
    session.handle_accepted(Timestamp::ZERO, &accepted);
    while session.poll_command().is_some() {}
    for message in [[1], [2], [3]] {
        session.log().push(&message).unwrap();
        while session.log().poll().is_some() {}
    }
    session
}

#[test]
fn session_05_a_heartbeat_reply_brings_liveness_round_trip_and_acknowledgement_and_nothing_else() {
    let at = |millis: u64| Timestamp::from_micros(millis * 1_000);
    let reply = |sent: u64, received: u64| HeartbeatReply {
        sent_micros: sent * 1_000,
        held_micros: 3_000,
        server_micros: 9,
        received,
    };
    let mut session = logged_in();
    let look = |session: &ClientSession| fields(&format!("{session:#?}"));
    let before = look(&session);
    session.handle_heartbeat(at(53), &reply(0, 2));
    assert_eq!(changed(&before, &look(&session)), ["heard", "log", "round_trip"]);
    assert_eq!(session.round_trip(), Some(ms(50)), "without the 3 ms that the server held it");
    assert_eq!((session.log().acknowledged(), session.log().len().0), (2, 1), "two of three have arrived");

    // One that acknowledges nothing new leaves the log alone too.
    let before = look(&session);
    session.handle_heartbeat(at(3_900), &reply(3_840, 2));
    assert_eq!(changed(&before, &look(&session)), ["heard", "round_trip"]);

    // Liveness: the session is taken for cut 4 s after the last reply, not 4 s after the login.
    session.handle_timeout(at(7_899));
    assert_eq!(session.state(), SessionState::LoggedIn);
    session.handle_timeout(at(7_900));
    assert_eq!(session.state(), SessionState::Reconnecting);

    // It does not bring a session in that is not in.
    for connected in [false, true] {
        let mut session =
            ClientSession::new(SessionConfig::new(PlayerName::new("Ada").unwrap(), 77)).unwrap();
        if connected {
            session.connect(at(0));
            session.handle_connected(at(0));
        }
        let (state, before) = (session.state(), look(&session));
        session.handle_heartbeat(at(1), &reply(0, 0));
        assert_eq!((session.state(), session.player()), (state, None));
        assert_eq!(changed(&before, &look(&session)), ["heard", "round_trip"]);
    }
}

/// The client's side of the same: the reply comes by the stream of a client that is in, and is no event to the host.
#[test]
fn session_05_a_heartbeat_reply_is_no_event_for_the_host() {
    let (mut rig, now) = played(ms(1_000));
    let server = rig.server.time(now);
    let client = &mut rig.seats[0].client;
    client.handle_stream(now, &reply(now - ms(60), server - ms(30)));
    assert_eq!(client.poll_event(), None);
    assert!(!client.has_output());
    // Before the login it is counted and not used.
    let mut early = Client::<Cart>::new(config("Bob")).unwrap();
    early.connect(now);
    early.handle_connected(now, SyncLink::Present);
    early.handle_stream(now, &reply(now - ms(60), server));
    assert_eq!((early.state(), early.stats().early), (SessionState::LoginPending, 1));
    assert_eq!(early.server_time(now), None);
}

/// Two snapshots overtake each other on the way.
#[test]
fn stale_02_an_older_snapshot_changes_nothing_but_its_counter_and_liveness() {
    let (mut rig, now) = played(ms(1_000));
    let connection = rig.connection(0).unwrap();
    let mut due = now;
    let [older, newer] = [0, 1].map(|_| {
        due = rig.server.poll_timeout().unwrap().max(due);
        rig.server.handle_timeout(due);
        rig.server.poll_datagram(connection).unwrap().to_vec()
    });
    let own = rig.server.owned(rig.server.player_of(connection).unwrap())[0];
    let [before, after] = [rig.server.tick().previous().unwrap(), rig.server.tick()];
    assert_ne!(rig.server.body(own, before), rig.server.body(own, after), "they tell of different bodies");
    let client = &mut rig.seats[0].client;
    client.frame(due);
    client.handle_datagram(due, &newer);
    assert_eq!(client.authoritative(own).unwrap().0, rig.server.tick());
    let (before, stale) = (client_fields(client), client.stats().stale);
    for again in [&newer, &older] {
        client.handle_datagram(due, again);
    }
    assert_eq!(client.stats().stale, stale + 2);
    let after = client_fields(client);
    assert_eq!(changed(&before, &after), ["stats"], "no body, no prediction, no clock");
    // Later, it is a sign of life, of the session and of the sync link, and still no state.
    client.handle_datagram(due + ms(1), &older);
    let later = client_fields(client);
    assert_eq!(changed(&after, &later), ["now", "session", "stats", "watch"]);
    assert_eq!(changed(&fields(&after["session"]), &fields(&later["session"])), ["heard"]);
}

/// Each player's messages are numbered on their own: a high number of one is no reason to drop a low one of another.
#[test]
fn stale_01_a_high_number_of_one_player_drops_no_message_of_another() {
    let mut rig = rig();
    let seats = ["Ada", "Bob"].map(|name| rig.join(config(name), Way::delayed(ms(20))));
    rig.run(ms(1_000), nothing);
    let now = rig.now;
    let [ada, bob] = seats.map(|seat| rig.connection(seat).unwrap());
    let stats = |rig: &Rig<Rails>, seat: usize| {
        let player = rig.seats[seat].client.player().unwrap();
        let stats = rig.server.input_stats(player).unwrap();
        (stats.messages, stats.stale)
    };
    let send = |rig: &mut Rig<Rails>, connection, seq: u16| {
        let tick = rig.server.tick().next();
        let ticks = vec![TickInput::steady(1)];
        let message = MoveInput { seq: Seq::new(seq), newest: tick, ticks, ..MoveInput::default() };
        let mut bytes = vec![0; 200];
        let length = message.encode(&mut bytes).unwrap();
        rig.server.handle_datagram(now, connection, &bytes[..length]);
    };
    let before = [0, 1].map(|seat| stats(&rig, seat));
    send(&mut rig, ada, 20_000);
    send(&mut rig, bob, 1_000);
    send(&mut rig, ada, 19_999);
    send(&mut rig, bob, 1_001);
    assert_eq!(
        stats(&rig, 0),
        (before[0].0 + 1, before[0].1 + 1),
        "only Ada's second message is older than one of hers"
    );
    assert_eq!(stats(&rig, 1), (before[1].0 + 2, before[1].1));
}

/// Carts as in [`Rails`], each with a speed of its own.
struct Geared(Rails);

impl World for Geared {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        self.0.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Cart>) {
        let speed = if login.name.as_str() == "Ada" { 3.5 } else { 6.25 };
        self.0.join(player, login, room);
        let (id, cart) = room.body_of(player).map(|(id, cart)| (id, *cart)).unwrap();
        room.alter(id, CartBody { speed, ..cart }, Causes::NONE).unwrap();
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Cart>, events: &mut Events) {
        self.0.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Cart>) -> Result<(), WireError> {
        self.0.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Cart>, events: &mut Events) {
        self.0.resolve(room, events);
    }
}

/// Speeds that the rules do not have by default: they can only come from the server, with the welcome.
#[test]
fn session_10_prediction_moves_by_the_speed_that_the_server_gave_at_login() {
    let mut rig = Rig::new(ServerConfig::default(), Geared(Rails::default()), 7);
    for (seat, name, speed) in [(0, "Ada", 3.5), (1, "Bob", 6.25)] {
        rig.join(config(name), Way::delayed(ms(30)));
        while rig.seats[seat].client.predicted().is_none() {
            rig.run(ms(1), nothing);
        }
        let client = &rig.seats[seat].client;
        assert_eq!(client.stats().snapshots, 0, "the welcome has come, and no state yet");
        assert_eq!(client.predicted().map(|cart| cart.speed), Some(speed), "{name}");
    }
    rig.run(ms(1_000), nothing);
    // Backwards: no cart is in the way there.
    let before = [0, 1].map(|seat| rig.seats[seat].client.predicted().unwrap().x);
    rig.run(ms(1_000), |_, now, client| client.set_input(now, -8));
    for (seat, speed) in [(0, 3.5), (1, 6.25)] {
        let client = &rig.seats[seat].client;
        let moved = before[seat] - client.predicted().unwrap().x;
        assert!((moved - speed).abs() < 0.05 * speed, "{moved} m in a second at {speed} m/s");
        let stats = client.reconciler().unwrap().stats();
        assert_eq!((stats.eased, stats.snapped), (0, 0), "the server moved it as far: {stats:?}");
        assert!(stats.unchanged > 20, "{stats:?}");
    }
}
