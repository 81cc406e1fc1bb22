//! Where a corpus begins: real traffic of a room, and what people write.

use halftrack::server::ServerConfig;
use halftrack::wire::control::{
    Closing, Continuity, FromClient, FromServer, Heartbeat, HeartbeatReply, Login, LoginAccepted, LoginRefused,
    PROTOCOL, PlayerLeft, Report, Restart, Resume,
};
use halftrack::{PlayerId, PlayerName, Token};
use halftrack_lab::SHIPPED;

use crate::config::DEFAULT_FILE;
use crate::crowd::crowd_seeds;
use crate::rig::{Packet, Rig, aim, shoot, stroll};
use crate::wire::frames;

/// Inputs to begin with, each with its target.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = vec![];
    traffic(&mut seeds);
    control(&mut seeds);
    text(&mut seeds);
    seeds.extend(crowd_seeds().into_iter().map(|seed| ("crowd", seed)));
    seeds
}

/// Three who play and shoot for some seconds; one of them leaves.
fn traffic(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let mut rig = Rig::new(ServerConfig::default());
    rig.record = Some(vec![]);
    for name in ["Ada", "Bob", "Čeněk"] {
        rig.join(name);
    }
    for round in 0..20 {
        rig.run(40, stroll);
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
            Packet::DatagramDown(bytes) => seeds.push(("snapshot", [near.clone(), bytes].concat())),
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
                    if let Ok(FromServer::Welcome(welcome)) = read(&frame) {
                        seeds.push(("body", [welcome.body.clone(), welcome.body].concat()));
                    }
                    seeds.push(("from_server", frame));
                }
            }
        }
    }
}

fn read(frame: &[u8]) -> Result<FromServer, halftrack::wire::WireError> {
    FromServer::read(halftrack::wire::Frame { kind: frame[0], body: &frame[1..] })
}

/// Messages that are rare.
fn control(seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let name = PlayerName::new("Ada").expect("a good name");
    let (token, player) = (Token::new([7; 16]), PlayerId::new(300));
    let resume = Some(Resume { token, received: 300 });
    let credentials = Some("secret".to_owned());
    let client = [
        FromClient::Login(Login { protocol: PROTOCOL, shared: 1 << 60, name, resume, credentials }),
        FromClient::Logout(()),
        FromClient::Heartbeat(Heartbeat { sent_micros: 1 << 40, received: 5 }),
        FromClient::Report(Report { corrections: [0, 1, 2, 3, 4, 5, 6, 700, 0], snapped: 9 }),
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
    let names = ["Ada", "  Ada ", "duel-7", "Čeněk 🚜", "a\u{202e}b", "https://Example.org:443", "http://[::1]:80"];
    seeds.extend(names.map(|name| ("names", name.as_bytes().to_vec())));
    seeds.extend(SHIPPED.iter().map(|(_, plan)| ("plan", plan.as_bytes().to_vec())));
    seeds.push(("config", DEFAULT_FILE.as_bytes().to_vec()));
    let sets = ["rooms.capacity=64", "log.format=json\nlisten=[::]:1", "auth.mode=tokens", "tls.names=[\"a\"]"];
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
