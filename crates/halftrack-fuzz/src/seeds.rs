//! Where a corpus begins: real traffic of a room, and what people write.

use std::collections::BTreeMap;

use halftrack::server::{ServerConfig, World};
use halftrack::wire::control::{
    Closing, Continuity, FromClient, FromServer, Heartbeat, HeartbeatReply, Login, LoginAccepted,
    LoginRefused, PROTOCOL, PlayerLeft, Report, ReportedCounts, ReportedSizes, Restart, Resume, Welcome,
};
use halftrack::wire::{BitReader, BitWriter};
use halftrack::{Body, Input, PlayerId, PlayerName, Token};
use halftrack_flight::FlightConfig;
use halftrack_lab::SHIPPED;
use tanks::{About, Entity, TankInput, Tanks};

use crate::config::DEFAULT_FILE;
use crate::convoy::Convoy;
use crate::crowd::{crowd_seeds, read_own};
use crate::rig::{Packet, Rig, aim, shoot, stroll, tank_world};
use crate::wire::frames;

/// Seeds of a target, about: a corpus has 60 files, and most of them are to be found.
const MAX_SEEDS: usize = 20;

/// Inputs to begin with, each with its target.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = vec![];
    traffic(&mut seeds);
    convoy(&mut seeds);
    control(&mut seeds);
    text(&mut seeds);
    scripts(&mut seeds);
    reports(&mut seeds);
    seeds.extend(crowd_seeds().into_iter().map(|seed| ("crowd", seed)));
    thinned(seeds)
}

/// Some of each target: of every kind of message, which the first byte says, about as many, evenly from its first to its
/// last.
fn thinned(seeds: Vec<(&'static str, Vec<u8>)>) -> Vec<(&'static str, Vec<u8>)> {
    let mut by_target = BTreeMap::<_, BTreeMap<_, Vec<_>>>::new();
    for (target, seed) in seeds {
        let same_kind = by_target.entry(target).or_default().entry(seed.first().copied()).or_default();
        if !same_kind.contains(&seed) {
            same_kind.push(seed);
        }
    }
    let mut few = vec![];
    for (target, kinds) in by_target {
        let each = MAX_SEEDS.div_ceil(kinds.len());
        for seeds in kinds.values() {
            let (count, last) = (seeds.len().min(each), seeds.len() - 1);
            let places = (0..count).map(|number| number * last / (count - 1).max(1));
            few.extend(places.map(|place| (target, seeds[place].clone())));
        }
    }
    few
}

/// Three who play and shoot for some seconds among machines; one of them leaves.
fn traffic(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let mut rig = Rig::new(ServerConfig::default(), tank_world(2));
    rig.server.record([7; 16], About::new("fuzz", 1, rig.server.world().config()).encode());
    let mut file = vec![0];
    play(&mut rig, seeds, |rig| {
        rig.server.poll_record(&mut file);
    });
    seeds.push(("recording", file));
}

/// The same with every kind of body, in snapshots that have no room for all of them.
fn convoy(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let config = ServerConfig { max_datagram_bytes: 200, ..ServerConfig::default() };
    play(&mut Rig::new(config, Convoy::new(4)), seeds, |_| ());
}

fn play<W: World<Game = Tanks>>(
    rig: &mut Rig<W>,
    seeds: &mut Vec<(&'static str, Vec<u8>)>,
    mut after: impl FnMut(&mut Rig<W>),
) {
    rig.record = Some(vec![]);
    for name in ["Ada", "Bob", "Čeněk"] {
        rig.join(name);
    }
    for round in 0..20 {
        rig.run(40, stroll);
        after(rig);
        for seat in &mut rig.seats {
            if let Some(aim) = aim(&seat.client) {
                shoot(rig.now, &mut seat.client, aim);
            }
        }
        if round == 15 {
            rig.seats[2].client.logout(rig.now);
        }
    }
    let mut record = rig.record.take().unwrap_or_default();
    // The beginning has everything that happens once; of the rest some are enough.
    let mut number = 0;
    record.retain(|packet| {
        number += 1;
        number < 60 || number % 97 == 0 || matches!(packet, Packet::StreamUp(_) | Packet::StreamDown(_))
    });
    let near = [rig.server.tick().number().to_le_bytes(), [0; 4]].concat();
    for packet in record {
        match packet {
            Packet::DatagramUp(bytes) => seeds.push(("move_input", bytes)),
            Packet::DatagramDown(bytes) => {
                // Of a client that knows the ids of one to three bodies.
                let known = seeds.len() as u8 % 3 + 1;
                seeds.push(("snapshot", [&*near, &[known], &bytes].concat()));
            }
            Packet::StreamUp(stream) => {
                seeds.push(("frame", [vec![6], stream.clone()].concat()));
                for frame in frames(&stream) {
                    if frame[0] == 4 {
                        seeds.push(("combat", [&[0], &frame[1..]].concat()));
                    }
                    seeds.push(("from_client", frame));
                }
            }
            Packet::StreamDown(stream) => {
                for frame in frames(&stream) {
                    if frame[0] == 36 {
                        seeds.push(("combat", [&[1], &frame[1..]].concat()));
                    }
                    if let Ok(FromServer::Welcome(welcome)) = read(&frame)
                        && let Some(own) = read_own(&[], &mut BitReader::new(&welcome.own))
                    {
                        seeds.extend(own.bodies.iter().map(|tank| ("body", body_seed(tank))));
                    }
                    seeds.push(("from_server", frame));
                }
            }
        }
    }
}

/// A tank, the same tank against it, and an input.
fn body_seed(tank: &Entity) -> Vec<u8> {
    let mut buffer = [0; 64];
    let mut bits = BitWriter::new(&mut buffer);
    tank.write(&Entity::blank(), &mut bits);
    tank.write(tank, &mut bits);
    TankInput::default().write(&mut bits);
    let length = bits.finish().expect("two tanks are short");
    buffer[..length].to_vec()
}

fn read(frame: &[u8]) -> Result<FromServer, halftrack::wire::WireError> {
    FromServer::read(halftrack::wire::Frame { kind: frame[0], body: &frame[1..] })
}

/// A client's report of two seconds, as it is, and with checks that are made good again.
fn reports(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let mut rig = Rig::new(ServerConfig::default(), tank_world(2));
    for name in ["Ada", "Bob"] {
        let seat = rig.join(name);
        let client = &mut rig.seats[seat].client;
        let recorded = client.record(FlightConfig::default(), client.rules().setup());
        assert!(recorded.is_ok(), "{recorded:?}");
    }
    rig.run(200, stroll);
    let report = rig.seats[0].client.flight_report("seed").unwrap_or_default();
    seeds.extend([0, 1].map(|sealed| ("flight", [&[sealed], report.as_slice()].concat())));
}

/// Messages that are rare.
fn control(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let name = PlayerName::new("Ada").expect("a good name");
    let (token, player) = (Token::new([7; 16]), PlayerId::new(300));
    let resume = Some(Resume { token, received: Some(300) });
    let credentials = Some("secret".to_owned());
    let counts = ReportedCounts { classes: [1, 0, 2, 0, 0, 300, 0, 0, 4], thousandths: 70_000 };
    let sizes = vec![ReportedSizes { cause: 7, distance: counts, angle: counts }];
    let client = [
        FromClient::Login(Login { protocol: PROTOCOL, shared: 1 << 60, name, resume, credentials }),
        FromClient::Logout(()),
        FromClient::Heartbeat(Heartbeat { sent_micros: 1 << 40, received: 5 }),
        FromClient::Report(Report { corrections: [0, 1, 2, 3, 4, 5, 6, 700, 0, 9, 10], snapped: 9, sizes }),
    ];
    let accepted = |continuity| FromServer::LoginAccepted(LoginAccepted { player, token, continuity });
    let server = [
        accepted(Continuity::New),
        accepted(Continuity::Resumed { received: 70_000 }),
        accepted(Continuity::Restarted(Restart::Overflow)),
        FromServer::LoginRefused(LoginRefused::Protocol { server: 2 }),
        FromServer::LoginRefused(LoginRefused::Banned),
        FromServer::HeartbeatReply(HeartbeatReply {
            sent_micros: 1,
            held_micros: 2,
            server_micros: 1 << 50,
            received: 9,
        }),
        FromServer::PlayerLeft(PlayerLeft { player }),
        FromServer::Welcome(Welcome { tick: 70_000, epoch: 3, own: vec![0, 0], bodies: 9_000 }),
        FromServer::Bodies(vec![0; 40]),
        FromServer::Closing(Closing { within_millis: 30_000 }),
    ];
    let mut stream = vec![];
    client.iter().for_each(|message| assert!(message.append_to(&mut stream)));
    seeds.extend(frames(&stream).into_iter().map(|frame| ("from_client", frame)));
    stream.clear();
    server.iter().for_each(|message| assert!(message.append_to(&mut stream)));
    seeds.extend(frames(&stream).into_iter().map(|frame| ("from_server", frame)));
    seeds.push(("frame", [vec![200], stream].concat()));
}

/// What people, pages and files say.
fn text(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let names =
        ["Ada", "  Ada ", "duel-7", "Čeněk 🚜", "a\u{202e}b", "https://Example.org:443", "http://[::1]:80"];
    seeds.extend(names.map(|name| ("names", name.as_bytes().to_vec())));
    seeds.extend(SHIPPED.iter().map(|(_, plan)| ("plan", plan.as_bytes().to_vec())));
    seeds.push(("config", DEFAULT_FILE.as_bytes().to_vec()));
    let sets =
        ["rooms.capacity=64", "log.format=json\nlisten=[::]:1", "auth.mode=tokens", "tls.names=[\"a\"]"];
    seeds.extend(sets.map(|set| ("config", set.as_bytes().to_vec())));
    let json = [
        r#"{"cadence_us":50000,"quic":{"port":7777,"certificate_hashes":["0f"]},"websocket":"/ws","arena":{"size":[80,60.5],"obstacles":[{"block":{"min":[-1,-2],"max":[3,4]}},{"pillar":{"center":[9,9],"radius":1.5}}]}}"#,
        r#"{"a":[null,true,false,-2.5e1,"\u00e4\n\"\\"],"a":{}}"#,
        "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    ];
    seeds.extend(json.map(|json| ("json", json.as_bytes().to_vec())));
    let tokens: [&[u8]; 5] = [
        b"\0eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJBZGEiLCJleHAiOjE4MDAwMDAwNjB9.AAAA",
        b"\0eyJhbGciOiJub25lIn0.e30.",
        b"\x01\x3c\x03Ada\x01duel",
        b"\x01\x3c\x03Ada\x00",
        b"\x02\x01\x05\x00\x03\x01",
    ];
    seeds.extend(tokens.map(|token| ("token", token.to_vec())));
}

/// Scripts that get somewhere: each act as its module reads it.
fn scripts(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    const LOGIN: [u8; 4] = [0x01, 0x10, 0, 0];
    const WAIT: [u8; 2] = [0x00, 5];
    let mut plays = LOGIN.to_vec();
    for round in 0..12u8 {
        // Four ticks up to two ahead, by datagram; and a shot.
        plays.extend([0x0a, 4 << 2, round + 1, 0, 2, 16, 32, 16, 32, 20, 30, 20, 30, 1]);
        plays.extend(WAIT);
        plays.extend([0x0d, 0, 9, round, round * 20, 0, 30, 0xfe, 0]);
        plays.extend([0x09]);
    }
    let mut resumes = LOGIN.to_vec();
    for how in [0x18, 0x19, 0x58] {
        resumes.extend(WAIT);
        resumes.extend([0x02, 0x03, how, 0, 0]);
        resumes.extend([0x07, 2, 3, 0, 0x08, 1, 0]);
    }
    let crowd =
        [0x01, 0x10, 0, 0, 0x11, 0x11, 0, 0, 0x21, 0x13, 0, 0, 0x00, 30, 0x07, 0, 0, 0x17, 3, 1, 1, 0];
    seeds.extend([plays, resumes, crowd.to_vec()].map(|script| ("hostile_peer", script)));

    let mut file = vec![1, 0, 3, 4, 0, 9, 3, 9, 0, 9, 0];
    for round in 0..10 {
        file.extend([1, 0x7f, 0x3c, 3, 4, 8, 11, round, 9, 3, 0x80, 0x80, 1, round, 0xf0, 0xa2, 4, 0, 0, 0]);
    }
    seeds.push(("recording", file));

    let links: [u8; 12] = [0, 20, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0];
    let mut fight = [&[1, 0], &links[..8], &[0], &links[..8], &[0]].concat();
    let mut trouble = [&[2, 0, 0x35, 60, 5, 3, 0x35, 60, 5, 3, 0x10], &links[..8], &[7][..]].concat();
    for round in 0..10u8 {
        fight.extend([0x04, 20, 30, 0x14, 8, 30, 0x07, 0x17, 0x00, 200]);
        trouble.extend([0x04, round, 30, 0x17, 0x00, 90, 0x09 + round % 6, 40, 30, 1, 0x01, 100]);
    }
    trouble.extend([0x1f, 0x00, 255]);
    seeds.extend([fight, trouble].map(|script| ("bad_network", script)));

    seeds.extend([0, 1].map(|watcher| ("hostile_server", touched(watcher))));
    seeds.extend([0, 1].map(|watcher| ("hostile_server", forged(watcher))));
}

/// Datagrams that are changed, and sent again changed, to a player or a watcher.
fn touched(watcher: u8) -> Vec<u8> {
    let mut script = vec![watcher];
    for round in 0..10 {
        script.extend([0x00, 3]);
        script.extend([0x02, 1, round * 3, 0, 4, 1 << (round % 8)]);
        script.extend([0x06, round, 1, 0, 0, 0, 0]);
        script.push(0x07);
    }
    script
}

/// Snapshots and full states that add up, of a room with every kind of body, and own sections of several ids.
fn forged(watcher: u8) -> Vec<u8> {
    let mut script = vec![watcher];
    for round in 0..8 {
        script.extend([0x00, 3, 0x0d]);
        script.extend(strangers(round));
        // Ticks, ticks ahead, epoch, not late; the ids are not known.
        script.extend([2, round + 9, round % 2, 0, 0, 9]);
        script.extend(own(round));
        // Acknowledged.
        script.push(1);
        // A welcome that is near, of the same room, in pieces: whole, reversed, short.
        script.extend([0x0b, 5, 0, 10, 0, round, round % 2, 1]);
        script.extend(strangers(round + 1));
        script.push(0);
        script.extend(own(round));
        script.extend([2 + (round % 4) * 4, round * 2]);
        // A piece of nothing, and a frame that is changed on its way.
        script.extend([0x0b, 5, 0, 8, 3, round, 0, 0, 0x09, 0, 1, 3, 0, 4, 1]);
    }
    script
}

/// A tank of each kind comes into the forged room, and one goes.
fn strangers(round: u8) -> Vec<u8> {
    let place = [round, 7, round * 20, 1, 0, 0, 0, 0, 0];
    let (machine, parked) = ([&[0], &place[..]].concat(), [&[1], &place[..]].concat());
    let owned = [&[2], &place[..], &[round % 4]].concat();
    [&[4][..], &machine, &parked, &owned, &[3, round]].concat()
}

/// Own bodies: as many as the round says, of every list, each with its state; then a fate and a cause.
fn own(round: u8) -> Vec<u8> {
    let count = round % 4;
    let mut own = vec![count];
    own.extend((0..count).map(|place| place + round * 3));
    own.extend((0..count).flat_map(|place| [round, place, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    own.extend([round, round]);
    own
}
