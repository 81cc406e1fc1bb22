//! A session with emitted bodies and a predicted group replays exactly.
#![allow(dead_code, reason = "the range and its rig have more than this test uses")]

#[path = "../../halftrack/tests/suite/range.rs"]
mod range;
#[path = "../../halftrack/tests/rig/mod.rs"]
mod rig;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use halftrack::client::{Client, ClientEvent};
use halftrack::model::Presses;
use halftrack::server::{Server, ServerConfig};
use halftrack::session::ConnectionId;
use halftrack::{SyncLink, Timestamp, Token};
use halftrack_flight::{FlightClient, FlightConfig, Replayer, Report, Step};
use range::{Act, Gallery, Range, Trigger, config};
use rig::Dice;

const DELAY: Duration = Duration::from_millis(45);

/// Bytes on their way, oldest first.
type Way = VecDeque<(Timestamp, Vec<u8>)>;

fn arrived(way: &mut Way, now: Timestamp) -> Option<Vec<u8>> {
    way.front().filter(|(at, _)| *at <= now)?;
    way.pop_front().map(|(_, bytes)| bytes)
}

#[test]
fn flight_01_a_session_with_shots_and_a_group_replays_exactly() {
    for seed in 0..3 {
        let (rules, start) = (Gallery::default(), Timestamp::from_micros(5_000_000));
        let mut dice = Dice(seed);
        let world = Range::of(rules.clone(), 400.0);
        let mut server = Server::new(ServerConfig::default(), world, start).unwrap();
        let mut client = FlightClient::new(Client::new(config("Ada", &rules)).unwrap());
        // The ring is too small for the whole session, so that a replay begins with a key state in the middle of it.
        let small = FlightConfig { max_bytes: 256 << 10, key_every: Duration::from_secs(1) };
        client.record(small, vec![]).unwrap();
        client.connect(start);
        let connection = ConnectionId::new(1);
        let [mut up, mut up_stream, mut down, mut down_stream]: [Way; 4] = Default::default();
        let (mut fire, mut grouped, mut told) = (0, 0, 0);
        for millis in 1..15_000u64 {
            let now = start + Duration::from_millis(millis);
            if millis == 800 {
                for act in [Act::Crate(2), Act::Crate(-3), Act::Lift(1)] {
                    server.command(&act.bytes()).unwrap();
                }
            }
            server.handle_timeout(now);
            while let Some(bytes) = arrived(&mut up_stream, now) {
                server.handle_stream(now, connection, &bytes);
            }
            while let Some(bytes) = arrived(&mut up, now) {
                server.handle_datagram(now, connection, &bytes);
            }
            while let Some(bytes) = arrived(&mut down_stream, now) {
                client.handle_stream(now, &bytes);
            }
            while let Some(bytes) = arrived(&mut down, now) {
                client.handle_datagram(now, &bytes);
            }
            if client.poll_timeout().is_some_and(|due| now >= due) {
                client.handle_timeout(now);
            }
            if millis % 16 == 0 {
                if dice.below(9) == 0 {
                    fire = Presses::next(fire);
                }
                let drive = [0, 8, 3, -8, -2][(millis / 700 % 5) as usize];
                client.set_input(now, Trigger { drive, fire });
                client.frame(now);
                grouped += client.group().count();
                while client.poll_life().is_some() {
                    told += 1;
                }
            }
            while let Some(event) = client.poll_event() {
                if event == ClientEvent::Connect {
                    server.handle_connected(now, connection, SyncLink::Present, Token::new([9; 16]));
                    client.handle_connected(now, SyncLink::Present);
                }
            }
            let (at, mut bytes) = (now + DELAY, vec![]);
            if client.poll_stream(&mut bytes) {
                up_stream.push_back((at, core::mem::take(&mut bytes)));
            }
            if let Some(bytes) = client.poll_datagram().filter(|_| dice.below(12) > 0) {
                up.push_back((at, bytes.to_vec()));
            }
            if server.poll_stream(connection, &mut bytes) {
                down_stream.push_back((at, bytes));
            }
            while let Some(bytes) = server.poll_datagram(connection) {
                if dice.below(12) > 0 {
                    down.push_back((at, bytes.to_vec()));
                }
            }
        }
        assert!(grouped > 1_000 && told > 100, "seed {seed}: {grouped} members, {told} births and ends");
        let bytes = client.flight_report("").unwrap();
        let report = Report::read(&bytes).unwrap();
        let mut replayer = Replayer::new(&report, Arc::new(rules)).unwrap();
        let (mut keys, mut frames) = (0, 0);
        while let Some(step) = replayer.step() {
            match step {
                Step::Key(differs) => {
                    assert_eq!(differs, None, "seed {seed}");
                    keys += 1;
                }
                Step::Frame(differs) => {
                    assert_eq!(differs, None, "seed {seed}");
                    frames += 1;
                }
                Step::Broken(problem) => panic!("seed {seed}: {problem}"),
                _ => {}
            }
        }
        assert!(keys > 2 && frames > 100, "seed {seed}: {keys} key states, {frames} frames");
    }
}
