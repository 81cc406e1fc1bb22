//! LANE and STALE-03: the link that each message really took, between a real client and a real server in memory.

use std::time::Duration;

use crate::rig::carts::{config, nothing, rig, shuttle};
use crate::rig::{Direction, Rig, Way, ms};
use halftrack::cart::{Cart, Rails};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Server, ServerConfig};
use halftrack::session::SessionState;
use halftrack::wire::FrameReader;
use halftrack::wire::control::FromClient;
use halftrack::{
    ConfigError, DeliveryPolicy, Lane, Link, MessageKind, MoveInput, PlayerId, SyncLink, Tick, Timestamp,
};

/// A room in which every kind of message is sent: logins, one of them refused, play, bells, corrections that are
/// reported, a player that leaves, a drain and a logout.
fn every_kind_of_message(sync_link: SyncLink) -> Rig<Rails> {
    let mut rig = rig();
    let way = Way { delay: ms(30), jitter: ms(40), loss: 0.2, duplicate: 0.0 };
    for name in ["Ada", "Bob"] {
        let seat = rig.join(config(name), way);
        rig.seats[seat].sync_link = sync_link;
    }
    rig.run(ms(1_000), shuttle);
    let impostor = rig.join(config("Ada"), Way::delayed(ms(10)));
    rig.seats[impostor].sync_link = sync_link;
    rig.run(Duration::from_secs(15), |seat, now, client| {
        shuttle(seat, now, client);
        let _ = client.order(now, &[1]);
    });
    let now = rig.now;
    rig.seats[1].client.logout(now);
    rig.run(ms(500), shuttle);
    rig.server.drain(Duration::from_secs(5));
    rig.run(ms(500), shuttle);
    let now = rig.now;
    rig.seats[0].client.logout(now);
    rig.run(ms(100), nothing);
    rig
}

fn kinds(rig: &Rig<Rails>, direction: Direction, link: Link) -> Vec<MessageKind> {
    let sent = |kind: &MessageKind| rig.seats.iter().any(|seat| seat.tap.count(direction, link, *kind) > 0);
    MessageKind::ALL.into_iter().filter(sent).collect()
}

const UP: [MessageKind; 5] = [
    MessageKind::ShootInput,
    MessageKind::Login,
    MessageKind::Logout,
    MessageKind::Heartbeat,
    MessageKind::Report,
];
const DOWN: [MessageKind; 8] = [
    MessageKind::CombatEvent,
    MessageKind::LoginAccepted,
    MessageKind::LoginRefused,
    MessageKind::Welcome,
    MessageKind::HeartbeatReply,
    MessageKind::Closing,
    MessageKind::PlayerJoined,
    MessageKind::PlayerLeft,
];

#[test]
fn lane_04_with_a_sync_link_input_and_states_are_datagrams_and_all_else_is_on_the_stream() {
    let rig = every_kind_of_message(SyncLink::Present);
    assert_eq!(kinds(&rig, Direction::Up, Link::Sync), [MessageKind::MoveInput]);
    assert_eq!(kinds(&rig, Direction::Down, Link::Sync), [MessageKind::PlayerState]);
    let (up, down) =
        (kinds(&rig, Direction::Up, Link::Reliable), kinds(&rig, Direction::Down, Link::Reliable));
    assert!(!up.contains(&MessageKind::MoveInput) && !down.contains(&MessageKind::PlayerState));
    assert_all_in(&UP, &up);
    assert_all_in(&DOWN, &down);
}

fn assert_all_in(wanted: &[MessageKind], sent: &[MessageKind]) {
    let missing: Vec<_> = wanted.iter().filter(|kind| !sent.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?} did not take the stream, {sent:?} did");
}

#[test]
fn lane_05_without_a_sync_link_every_message_is_on_the_stream() {
    let rig = every_kind_of_message(SyncLink::Absent);
    for direction in [Direction::Up, Direction::Down] {
        assert_eq!(kinds(&rig, direction, Link::Sync), []);
    }
    assert_all_in(&UP, &kinds(&rig, Direction::Up, Link::Reliable));
    assert_all_in(&[MessageKind::MoveInput], &kinds(&rig, Direction::Up, Link::Reliable));
    assert_all_in(&DOWN, &kinds(&rig, Direction::Down, Link::Reliable));
    assert_all_in(&[MessageKind::PlayerState], &kinds(&rig, Direction::Down, Link::Reliable));
}

/// The pending output of a client: the bytes and messages of its stream, and its datagrams.
fn take_output(client: &mut Client<Cart>) -> (Vec<u8>, Vec<FromClient>, Vec<Vec<u8>>) {
    let (mut bytes, mut reader) = (vec![], FrameReader::default());
    client.poll_stream(&mut bytes);
    let (mut rest, mut messages) = (bytes.as_slice(), vec![]);
    while let Some(frame) = reader.next(&mut rest).unwrap() {
        messages.push(FromClient::read(frame).unwrap());
    }
    let mut datagrams = vec![];
    while let Some(datagram) = client.poll_datagram() {
        datagrams.push(datagram.to_vec());
    }
    (bytes, messages, datagrams)
}

/// The bells that a seat has heard, in order.
fn bells(rig: &Rig<Rails>, seat: usize, ringer: PlayerId) -> Vec<u8> {
    let heard = rig.seats[seat].events.iter().filter_map(|event| match event {
        ClientEvent::Game(bytes) if bytes[..2] == ringer.number().to_le_bytes() => Some(bytes[2]),
        _ => None,
    });
    heard.collect()
}

/// The host takes nothing for five ticks. Of five inputs only the newest message is left; of five shots, all are.
#[test]
fn lane_07_five_shots_that_wait_are_all_sent_by_the_stream_while_newer_input_replaces_older() {
    for sync_link in [SyncLink::Present, SyncLink::Absent] {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(20)));
        rig.seats[seat].sync_link = sync_link;
        rig.run(ms(1_000), nothing);
        let client = &mut rig.seats[seat].client;
        let (player, mut now) = (client.player().unwrap(), rig.now);
        take_output(client);
        let sent_before = client.stats().inputs;
        for number in 0..5u8 {
            now = now + ms(50);
            client.set_input(now, i8::try_from(number).unwrap() + 1);
            client.order(now, &[number]).unwrap();
        }
        assert!(client.stats().inputs >= sent_before + 5, "each change made a message");
        let (bytes, messages, datagrams) = take_output(client);

        let shots = messages.iter().filter_map(|message| match message {
            FromClient::ShootInput(shot) => Some(shot.as_slice()),
            _ => None,
        });
        assert_eq!(shots.collect::<Vec<_>>(), [[0], [1], [2], [3], [4]], "{sync_link:?}");
        let on_stream = messages.iter().filter_map(|message| match message {
            FromClient::MoveInput(input) => Some(input.clone()),
            _ => None,
        });
        let (on_stream, mut newest) = (on_stream.collect::<Vec<_>>(), MoveInput::<i8>::default());
        let (expected, other) = match sync_link {
            SyncLink::Present => (&datagrams, &on_stream),
            SyncLink::Absent => (&on_stream, &datagrams),
        };
        assert_eq!((expected.len(), other.len()), (1, 0), "one input message, {sync_link:?}");
        newest.decode(&expected[0]).unwrap();
        assert_eq!(newest.ticks.last().unwrap().last(), 5, "and it has the newest wish");

        // The server acts on all five, in order.
        let connection = rig.connection(seat).unwrap();
        rig.now = now;
        rig.server.handle_stream(now, connection, &bytes);
        rig.run(ms(200), nothing);
        assert_eq!(bells(&rig, seat, player), [0, 1, 2, 3, 4], "{sync_link:?}");
    }
}

#[test]
fn lane_08_each_end_sends_by_its_hosts_policy() {
    let by_default = DeliveryPolicy::default();
    let input_reliable = by_default.with(MessageKind::MoveInput, Lane::ReliableOrdered);
    let states_reliable = by_default.with(MessageKind::PlayerState, Lane::ReliableOrdered);
    let cases = [
        (by_default, by_default, Link::Sync, Link::Sync),
        (input_reliable, by_default, Link::Reliable, Link::Sync),
        (by_default, states_reliable, Link::Sync, Link::Reliable),
        (input_reliable, states_reliable, Link::Reliable, Link::Reliable),
        // A policy binds the end that sends, not the other one.
        (states_reliable, input_reliable, Link::Sync, Link::Sync),
    ];
    for (client, server, up, down) in cases {
        let mut rig =
            Rig::new(ServerConfig { policy: server, ..ServerConfig::default() }, Rails::default(), 7);
        let seat = rig.join(ClientConfig { policy: client, ..config("Ada") }, Way::delayed(ms(20)));
        rig.run(Duration::from_secs(3), shuttle);
        let seat = &rig.seats[seat];
        let other = |link| if link == Link::Sync { Link::Reliable } else { Link::Sync };
        let sent = |direction, link, kind| seat.tap.count(direction, link, kind);
        assert!(sent(Direction::Up, up, MessageKind::MoveInput) > 50, "input by {up:?}");
        assert_eq!(sent(Direction::Up, other(up), MessageKind::MoveInput), 0, "input by {up:?} alone");
        assert!(sent(Direction::Down, down, MessageKind::PlayerState) > 50, "states by {down:?}");
        assert_eq!(
            sent(Direction::Down, other(down), MessageKind::PlayerState),
            0,
            "states by {down:?} alone"
        );
        // And the game is the same by either link.
        let taken = rig.server.input_stats(seat.client.player().unwrap()).unwrap();
        assert!(taken.as_sent > 50 && seat.client.stats().snapshots > 50, "{taken:?} by {up:?} and {down:?}");
        let stats = seat.client.reconciler().unwrap().stats();
        assert_eq!((stats.snapped, stats.eased), (0, 0), "{stats:?} by {up:?} and {down:?}");
    }
}

#[test]
fn lane_10_a_policy_that_could_not_be_obeyed_is_refused_by_client_and_server() {
    for kind in MessageKind::ALL {
        let policy = DeliveryPolicy::default().with(kind, Lane::HighFrequencySync);
        let client = Client::new(ClientConfig { policy, ..config("Ada") }).map(|_| ());
        let server = ServerConfig { policy, ..ServerConfig::default() };
        let server = Server::new(server, Rails::default(), Timestamp::ZERO).map(|_| ());
        let sync = matches!(kind, MessageKind::MoveInput | MessageKind::PlayerState);
        let expected = if sync { Ok(()) } else { Err(ConfigError::Lane { kind }) };
        assert_eq!((client, server), (expected, expected), "{kind:?}");
    }
    assert_eq!(
        ConfigError::Lane { kind: MessageKind::ShootInput }.to_string(),
        "policy: ShootInput must take the reliable lane; only MoveInput and PlayerState may take the sync lane"
    );
}

/// Shots and events by a stream that lags behind the datagrams: each one is older than input and states that have been
/// accepted before it arrives, and none is dropped for that.
#[test]
fn stale_03_shots_and_events_older_than_accepted_input_and_states_all_arrive() {
    let mut rig = rig();
    let way = Way { delay: ms(20), jitter: ms(120), loss: 0.0, duplicate: 0.2 };
    let seats = [rig.join(config("Ada"), way), rig.join(config("Bob"), way)];
    for seat in seats {
        rig.seats[seat].stream_lag = ms(400);
    }
    rig.run(ms(3_000), shuttle);
    let ada = rig.seats[seats[0]].client.player().unwrap();
    // When each bell was rung, by the client's prediction, and how many each seat has heard.
    let (mut rung, mut heard): (Vec<Tick>, _) = (vec![], [0; 2]);
    for step in 0..500 {
        if step % 10 == 0 && rung.len() < 30 {
            let now = rig.now;
            let client = &mut rig.seats[seats[0]].client;
            client.order(now, &[u8::try_from(rung.len()).unwrap()]).unwrap();
            rung.push(client.reconciler().unwrap().predictor().open_tick());
        }
        rig.run(ms(10), shuttle);
        for (seat, heard) in seats.iter().zip(&mut heard) {
            let bells = bells(&rig, *seat, ada);
            let applied = rig.seats[*seat].client.reconciler().unwrap().predictor().baseline().tick;
            for bell in &bells[*heard..] {
                assert!(
                    applied > rung[usize::from(*bell)],
                    "a newer state was applied before bell {bell} came"
                );
            }
            *heard = bells.len();
        }
    }
    let all: Vec<u8> = (0..30).collect();
    for seat in seats {
        assert_eq!(bells(&rig, seat, ada), all, "each once and in order");
        let client = &rig.seats[seat].client;
        assert_eq!(client.state(), SessionState::LoggedIn);
        assert!(client.stats().stale > 0, "the filter was at work on states: {:?}", client.stats());
    }
    assert!(rig.server.stats().stale_inputs > 0, "and on input: {:?}", rig.server.stats());
}
