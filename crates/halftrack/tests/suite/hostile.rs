//! Bad input against a live room: sequences of packets, not only single ones. Nothing panics, memory stays bounded, and
//! whoever plays by the rules does not notice.

use std::time::Duration;

use crate::rig::carts::{config, login, nothing, rig, shuttle};
use crate::rig::{Rig, Way, ms};
use halftrack::cart::{Cart, Rails};
use halftrack::client::Client;
use halftrack::server::{Server, ServerConfig};
use halftrack::session::{ConnectionId, DisconnectReason, SessionState};
use halftrack::wire::control::{FromClient, FromServer, Heartbeat, Report, Resume};
use halftrack::wire::{Frame, FrameReader};
use halftrack::{Cause, Completeness, MoveInput, Seq, SyncLink, Tick, TickInput, Timestamp, Token};
use proptest::prelude::*;

/// One thing that a peer may do.
#[derive(Clone, Debug)]
enum Act {
    Connect,
    Disconnect,
    Login {
        name: String,
        shared: bool,
        resume: bool,
    },
    Message(FromClient),
    RawStream(Vec<u8>),
    RawDatagram(Vec<u8>),
    Input {
        seq: u16,
        ahead: i32,
        ack: Option<i32>,
        inputs: Vec<i8>,
        open: bool,
    },
    /// The same with one byte changed or cut off.
    MutatedInput {
        seq: u16,
        at: prop::sample::Index,
        flip: u8,
        cut: bool,
    },
    Wait(u64),
}

fn any_act() -> impl Strategy<Value = Act> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..60);
    let message = prop_oneof![
        Just(FromClient::Logout(())),
        any::<(u64, u64)>()
            .prop_map(|(sent_micros, received)| FromClient::Heartbeat(Heartbeat { sent_micros, received })),
        (0u64..4).prop_map(|received| FromClient::Heartbeat(Heartbeat { sent_micros: 5, received })),
        any::<u8>().prop_map(|how| FromClient::ShootInput(vec![how])),
        bytes().prop_map(FromClient::ShootInput),
        bytes().prop_map(FromClient::MoveInput),
        any::<([u16; Cause::ALL.len()], u16)>().prop_map(|(corrections, snapped)| FromClient::Report(
            Report { corrections, snapped, sizes: vec![] }
        )),
    ];
    prop_oneof![
        2 => Just(Act::Connect),
        1 => Just(Act::Disconnect),
        3 => ("[a-z]{1,3}", prop::bool::weighted(0.9), any::<bool>())
            .prop_map(|(name, shared, resume)| Act::Login { name, shared, resume }),
        3 => message.prop_map(Act::Message),
        1 => bytes().prop_map(Act::RawStream),
        2 => bytes().prop_map(Act::RawDatagram),
        6 => (any::<u16>(), -60i32..60, prop::option::of(-80i32..20), prop::collection::vec(any::<i8>(), 0..40), any::<bool>())
            .prop_map(|(seq, ahead, ack, inputs, open)| Act::Input { seq, ahead, ack, inputs, open }),
        3 => (any::<u16>(), any::<prop::sample::Index>(), 1u8.., any::<bool>())
            .prop_map(|(seq, at, flip, cut)| Act::MutatedInput { seq, at, flip, cut }),
        4 => (1u64..400).prop_map(Act::Wait),
    ]
}

fn encode(message: &MoveInput<i8>) -> Vec<u8> {
    let mut buffer = vec![0; 2_000];
    let length = message.encode(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

fn input(
    server: &Server<Rails>,
    seq: u16,
    ahead: i32,
    ack: Option<i32>,
    inputs: &[i8],
    open: bool,
) -> Vec<u8> {
    let tick = |offset: i32| Tick::new(server.tick().number().saturating_add_signed(offset));
    encode(&MoveInput {
        seq: Seq::new(seq),
        ack: ack.map(tick),
        newest: Tick::new(tick(ahead).number().max(inputs.len() as u32)),
        completeness: if open { Completeness::Open } else { Completeness::Closed },
        ticks: inputs.iter().map(|input| TickInput::steady(*input)).collect(),
    })
}

/// A peer that does as it likes.
struct Vandal {
    connection: ConnectionId,
    next: u64,
    token: Option<Token>,
}

impl Vandal {
    fn act(&mut self, rig: &mut Rig<Rails>, act: &Act) {
        let (now, connection) = (rig.now, self.connection);
        match act {
            Act::Connect => {
                rig.server.handle_disconnected(now, connection);
                self.next += 1;
                self.connection = ConnectionId::new(self.next);
                let token = Token::new([self.next as u8; 16]);
                self.token = Some(token);
                rig.server.handle_connected(now, self.connection, SyncLink::Present, token);
            }
            Act::Disconnect => rig.server.handle_disconnected(now, connection),
            Act::Login { name, shared, resume } => {
                let token = self.token.filter(|_| *resume);
                let mut login = login(name);
                if !shared {
                    login.shared = 1;
                }
                login.resume = token.map(|token| Resume { token, received: Some(0) });
                self.say(rig, &FromClient::Login(login));
            }
            Act::Message(message) => self.say(rig, message),
            Act::RawStream(bytes) => rig.server.handle_stream(now, connection, bytes),
            Act::RawDatagram(bytes) => rig.server.handle_datagram(now, connection, bytes),
            Act::Input { seq, ahead, ack, inputs, open } => {
                let bytes = input(&rig.server, *seq, *ahead, *ack, inputs, *open);
                rig.server.handle_datagram(now, connection, &bytes);
            }
            Act::MutatedInput { seq, at, flip, cut } => {
                let mut bytes = input(&rig.server, *seq, 2, Some(-1), &[1, 2, 3], false);
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
                if *cut {
                    bytes.truncate(at);
                }
                rig.server.handle_datagram(now, connection, &bytes);
            }
            Act::Wait(millis) => rig.run(ms(*millis), shuttle),
        }
        // A vandal reads nothing, and is closed when it is to be.
        while let Some((closing, _)) = rig.server.poll_close() {
            rig.server.handle_closed(closing);
        }
    }

    fn say(&self, rig: &mut Rig<Rails>, message: &FromClient) {
        let mut bytes = vec![];
        if message.append_to(&mut bytes) {
            rig.server.handle_stream(rig.now, self.connection, &bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// A peer does as it likes while another plays: no panic, bounded, and the other is corrected by nothing.
    #[test]
    fn any_sequence_of_packets_leaves_the_room_whole(acts in prop::collection::vec(any_act(), 1..60)) {
        let mut rig = rig();
        let honest = rig.join(config("Honest"), Way::delayed(ms(20)));
        rig.run(ms(700), shuttle);
        let mut vandal = Vandal { connection: ConnectionId::new(5_000), next: 5_000, token: None };
        vandal.act(&mut rig, &Act::Connect);
        for act in &acts {
            vandal.act(&mut rig, act);
            prop_assert!(rig.server.connections().count() <= 3);
        }
        rig.run(ms(500), shuttle);
        let seat = &rig.seats[honest];
        prop_assert_eq!(seat.client.state(), SessionState::LoggedIn);
        prop_assert_eq!(seat.closed.len(), 0);
        let stats = seat.client.reconciler().unwrap().stats();
        prop_assert_eq!((stats.snapped, stats.of(halftrack::Cause::Unexplained)), (0, 0), "{:?}", stats);
        let player = seat.client.player().unwrap();
        prop_assert_eq!(rig.server.input_stats(player).unwrap().late, 0);
        prop_assert_eq!(seat.client.stats().check_failed, 0);
    }

    /// A server, or somebody in its place, says whatever it likes to a client that plays.
    #[test]
    fn any_bytes_leave_the_client_whole(
        packets in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..80), any::<prop::sample::Index>(), any::<u8>()), 1..40)
    ) {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(20)));
        rig.run(ms(700), shuttle);
        let connection = rig.connection(seat).unwrap();
        for (garbage, bytes, at, flip) in packets {
            rig.server.handle_timeout(rig.now);
            let told = rig.server.poll_datagram(connection).map(<[u8]>::to_vec);
            let packet = match told.filter(|_| !garbage) {
                // A true snapshot with one byte changed, and then whole.
                Some(mut told) => {
                    let whole = told.clone();
                    let at = at.index(told.len());
                    told[at] ^= flip;
                    rig.seats[seat].client.handle_datagram(rig.now, &told);
                    whole
                }
                None => bytes,
            };
            rig.seats[seat].client.handle_datagram(rig.now, &packet);
            let visible = rig.seats[seat].client.frame(rig.now).unwrap();
            prop_assert!(visible.x.is_finite());
            rig.run(ms(60), shuttle);
        }
        // A forged snapshot can be up to 64 ticks ahead, and true ones are stale until then: 3.2 s.
        rig.run(Duration::from_secs(4), shuttle);
        // It recovers: the newest state is the server's again.
        let client = &rig.seats[seat].client;
        let own = rig.server.owned(client.player().unwrap())[0];
        if client.state() == SessionState::LoggedIn {
            let (tick, body) = client.authoritative(own).unwrap();
            prop_assert_eq!(Some(body), rig.server.body(own, tick), "of {}", tick);
        }
    }

    /// Whoever drains the polls, in whatever order: the bytes on every link are the same.
    #[test]
    fn any_order_of_draining_gives_the_same_bytes(order in prop::collection::vec(0usize..6, 30..120)) {
        let mut plain = Drained::new();
        let mut shuffled = Drained::new();
        for (round, choice) in order.iter().enumerate() {
            for host in [&mut plain, &mut shuffled] {
                host.feed(round);
            }
            for link in 0..6 {
                plain.drain(link);
                shuffled.drain((link * 5 + choice) % 6);
            }
        }
        prop_assert_eq!(plain.out, shuffled.out);
    }
}

/// A server with three bare connections, and everything that came out of it by each link.
struct Drained {
    server: Server<Rails>,
    now: Timestamp,
    out: [Vec<u8>; 6],
}

impl Drained {
    fn new() -> Self {
        let now = Timestamp::from_micros(1_000);
        let mut server = Server::new(ServerConfig::default(), Rails::default(), now).unwrap();
        for number in 0..3u64 {
            let connection = ConnectionId::new(number);
            server.handle_connected(now, connection, SyncLink::Present, Token::new([number as u8; 16]));
            let mut bytes = vec![];
            let login = login(&format!("player {number}"));
            assert!(FromClient::Login(login).append_to(&mut bytes));
            server.handle_stream(now, connection, &bytes);
        }
        Self { server, now, out: Default::default() }
    }

    fn feed(&mut self, round: usize) {
        self.now = self.now + ms(17);
        let connection = ConnectionId::new(round as u64 % 3);
        let bytes = input(&self.server, round as u16, 2, None, &[(round % 7) as i8], false);
        self.server.handle_datagram(self.now, connection, &bytes);
        let mut bytes = vec![];
        if round.is_multiple_of(4) {
            assert!(FromClient::ShootInput(vec![round as u8]).append_to(&mut bytes));
            let heartbeat = Heartbeat { sent_micros: round as u64, received: 0 };
            assert!(FromClient::Heartbeat(heartbeat).append_to(&mut bytes));
            self.server.handle_stream(self.now, connection, &bytes);
        }
        self.server.handle_timeout(self.now);
    }

    fn drain(&mut self, link: usize) {
        let connection = ConnectionId::new(link as u64 / 2);
        if link.is_multiple_of(2) {
            self.server.poll_stream(connection, &mut self.out[link]);
        } else if let Some(bytes) = self.server.poll_datagram(connection) {
            self.out[link].extend_from_slice(bytes);
        }
    }
}

#[test]
fn a_snapshot_with_a_forged_epoch_does_not_make_true_ones_stale() {
    for (flip, garbled) in [(1, false), (14, false), (0x7f, false), (14, true)] {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(20)));
        rig.run(ms(700), shuttle);
        let connection = rig.connection(seat).unwrap();
        rig.now = rig.now + ms(50);
        rig.server.handle_timeout(rig.now);
        let mut forged = rig.server.poll_datagram(connection).unwrap().to_vec();
        forged[2] ^= flip;
        if garbled {
            let last = forged.len() - 1;
            forged[last] ^= 0x55;
        }
        let client = &mut rig.seats[seat].client;
        client.handle_datagram(rig.now, &forged);
        assert_eq!(client.reconciler().unwrap().predictor().baseline().epoch, rig.server.epoch());
        rig.run(ms(500), shuttle);
        let newest = rig.seats[seat].client.crowd().newest().unwrap();
        assert!(rig.server.tick().since(newest) <= 2, "{newest} of {}", rig.server.tick());
    }
}

/// Whoever acknowledges nothing and asks for everything all the time is told everything by the stream now and then only.
#[test]
fn asking_for_everything_is_answered_no_more_than_once_a_second() {
    let small = ServerConfig { max_datagram_bytes: 200, ..ServerConfig::default() };
    let mut rig = Rig::new(small, Rails::default(), 3);
    for number in 0..40 {
        rig.join(config(&format!("player {number}")), Way::IDEAL);
    }
    rig.run(Duration::from_secs(3), nothing);
    let before = rig.server.stats().full_states;
    let connection = rig.connection(0).unwrap();
    for round in 0..200u16 {
        let bytes = input(&rig.server, 1_000 + round, 1, None, &[1], false);
        rig.server.handle_datagram(rig.now, connection, &bytes);
        rig.run(ms(50), nothing);
    }
    let told = rig.server.stats().full_states - before;
    assert!(told <= 10, "{told} times in ten seconds");
    let there = rig.server.bodies().count();
    assert!(rig.seats[1..].iter().all(|seat| seat.client.crowd().bodies().count() == there));
}

#[test]
fn empty_packets_and_lying_lengths_are_refused() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::IDEAL);
    rig.run(ms(300), nothing);
    let connection = rig.connection(seat).unwrap();
    rig.server.handle_datagram(rig.now, connection, &[]);
    rig.server.handle_stream(rig.now, connection, &[]);
    assert_eq!(rig.server.stats().malformed_datagrams, 1);
    rig.seats[seat].client.handle_datagram(rig.now, &[]);
    rig.seats[seat].client.handle_stream(rig.now, &[]);
    assert_eq!(rig.seats[seat].client.stats().malformed, 1);
    // A frame that claims 64 KiB: refused before anything is held of it.
    rig.server.handle_stream(rig.now, connection, &[0xff, 0xff, 3]);
    let (closing, reason) = rig.server.poll_close().unwrap();
    assert_eq!((closing, reason), (connection, DisconnectReason::Malformed));
    assert_eq!(rig.server.bodies().count(), 0, "whoever is told not to come back is not waited for");
}

#[test]
fn a_peer_that_never_reads_is_closed_and_costs_bounded_memory() {
    let mut rig = Rig::new(
        ServerConfig {
            max_stream_bytes: 16_384,
            silence: Duration::from_secs(60),
            ..ServerConfig::default()
        },
        Rails::default(),
        3,
    );
    rig.join(config("Ada"), Way::delayed(ms(10)));
    rig.run(ms(300), nothing);
    let connection = ConnectionId::new(700);
    rig.server.handle_connected(rig.now, connection, SyncLink::Present, Token::new([7; 16]));
    let mut bytes = vec![];
    assert!(FromClient::Login(login("Slow")).append_to(&mut bytes));
    rig.server.handle_stream(rig.now, connection, &bytes);
    let mut closed = None;
    for _ in 0..400 {
        for bell in 0..10 {
            let _ = rig.seats[0].client.order(rig.now, &[bell]);
        }
        rig.run(ms(50), nothing);
        if rig.server.player_of(connection).is_none() {
            closed = Some(rig.now);
            break;
        }
    }
    assert!(closed.is_some(), "it is not waited for");
    assert_eq!(rig.seats[0].client.state(), SessionState::LoggedIn, "others do not notice");
    assert_eq!(rig.server.stats().too_slow, 1);
}

#[test]
fn a_room_of_connections_that_never_log_in_is_bounded_and_emptied() {
    let mut rig =
        Rig::new(ServerConfig { max_connections: 100, ..ServerConfig::default() }, Rails::default(), 3);
    for number in 0..1_000 {
        rig.server.handle_connected(
            rig.now,
            ConnectionId::new(10_000 + number),
            SyncLink::Present,
            Token::new([1; 16]),
        );
        while let Some((closing, reason)) = rig.server.poll_close() {
            assert_eq!(reason, DisconnectReason::TooMany);
            rig.server.handle_closed(closing);
        }
    }
    assert_eq!(rig.server.connections().count(), 100);
    rig.run(Duration::from_secs(6), nothing);
    assert_eq!(rig.server.connections().count(), 0);
    let seat = rig.join(config("Ada"), Way::IDEAL);
    rig.run(ms(300), nothing);
    assert_eq!(rig.seats[seat].client.state(), SessionState::LoggedIn);
}

#[test]
fn a_client_that_never_acknowledges_gets_full_states_and_bounded_memory() {
    let mut rig = rig();
    for name in ["Ada", "Bob", "Cid"] {
        rig.join(config(name), Way::delayed(ms(10)));
    }
    let way = Way { loss: 1.0, ..Way::delayed(ms(10)) };
    let deaf = rig.join(config("Deaf"), Way::delayed(ms(10)));
    rig.run(ms(500), shuttle);
    // Nothing reaches it any more but what is reliable.
    rig.seats[deaf].down = way;
    rig.seats[deaf].down.loss = 0.999;
    rig.run(Duration::from_secs(20), shuttle);
    for seat in &rig.seats[..3] {
        let stats = seat.client.reconciler().unwrap().stats();
        assert_eq!((stats.eased, stats.snapped), (0, 0), "{stats:?}");
    }
    rig.seats[deaf].down = Way::delayed(ms(10));
    rig.run(Duration::from_secs(3), shuttle);
    let client: &Client<Cart> = &rig.seats[deaf].client;
    assert_eq!(client.crowd().bodies().count(), 4, "and it recovers when it can be reached");
}

#[test]
fn frames_of_the_other_direction_are_refused() {
    let mut stream = vec![];
    assert!(Frame { kind: 36, body: &[1] }.append_to(&mut stream));
    let (mut reader, mut rest) = (FrameReader::default(), stream.as_slice());
    let frame = reader.next(&mut rest).unwrap().unwrap();
    assert!(FromClient::read(frame).is_err() && FromServer::read(frame).is_ok());
}
