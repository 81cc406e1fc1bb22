//! A script of packets against one live client: those of a real room, changed on their way, and others that no room
//! would send.
//!
//! Nothing panics, whatever is shown is a number, what waits is bounded. Where only datagrams were touched, and none that
//! was believed lied about the time, the client is back soon.

use std::sync::Arc;

use halftrack::client::ClientEvent;
use halftrack::server::{ServerConfig, World};
use halftrack::session::{DisconnectReason, SessionState};
use halftrack::snapshot::{Bodies, Header, TickFate, View, write_own};
use halftrack::wire::control::{
    Closing, Continuity, FromServer, HeartbeatReply, LoginAccepted, LoginRefused, PlayerJoined, PlayerLeft,
    Restart, Welcome,
};
use halftrack::wire::{BitReader, BitWriter, Frame};
use halftrack::{Body, Causes, Epoch, Fate, PlayerId, PlayerName, Tick, TickInput, Token};
use tanks::{Tank, TankInput, Tanks};

use crate::budget::within;
use crate::hostile_peer::is_same;
use crate::rig::{Rig, aim, shoot, stroll};
use crate::script::Script;
use crate::wire::frames;

const MAX_ACTS: usize = 80;
/// The one whose packets are touched; the other one is there to be told of.
const VICTIM: usize = 0;

/// A client, and whoever is between it and its room.
struct Ambush {
    rig: Rig,
    /// Packets that came by.
    kept: Vec<Vec<u8>>,
    /// Somebody else's room.
    forged: Bodies<Tanks>,
    view: View,
    /// Only datagrams were touched.
    gentle: bool,
}

/// A script of packets against one live client.
pub fn hostile_server(bytes: &[u8]) {
    within(48 << 20, || {
        let mut ambush = Ambush::new();
        let mut script = Script::new(bytes);
        for _ in 0..MAX_ACTS {
            if script.is_over() {
                break;
            }
            ambush.act(&mut script);
        }
        ambush.wait(20);
        if ambush.gentle && !ambush.is_misled() {
            ambush.check_recovery();
        }
    });
}

impl Ambush {
    fn new() -> Self {
        let mut rig = Rig::new(ServerConfig::default());
        rig.join("Victim");
        rig.join("Other");
        rig.run(40, stroll);
        let rules = Arc::clone(rig.server.world().rules());
        let forged = Bodies::new(rules, rig.server.cadence(), rig.server.tick());
        Self { rig, kept: vec![], forged, view: View::default(), gentle: true }
    }

    fn wait(&mut self, steps: usize) {
        for _ in 0..steps {
            self.rig.step(&mut stroll);
            self.check();
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        let now = self.rig.now;
        let act = script.byte() % 16;
        self.gentle &= act < 8;
        let seat = &mut self.rig.seats[VICTIM];
        match act {
            0 | 1 => self.wait(script.below(24) + 1),
            2 | 3 => {
                if let Some((_, bytes)) = seat.down.datagrams.back_mut() {
                    self.kept.push(bytes.clone());
                    script.mutate(bytes);
                }
            }
            4 => seat.down.datagrams.clear(),
            5 => seat.client.handle_datagram(now, script.counted()),
            6 => {
                if !self.kept.is_empty() {
                    let mut bytes = self.kept[script.below(self.kept.len())].clone();
                    script.mutate(&mut bytes);
                    seat.client.handle_datagram(now, &bytes);
                }
            }
            7 => {
                if let Some(aim) = aim(&seat.client) {
                    shoot(now, &mut seat.client, aim);
                }
            }
            8 => {
                if let Some((_, bytes)) = seat.down.stream.back_mut() {
                    script.mutate(bytes);
                }
            }
            9 => self.change_frame(script),
            10 => {
                let mut stream = vec![];
                if (Frame { kind: 32 + script.byte() % 11, body: script.counted() }).append_to(&mut stream) {
                    seat.client.handle_stream(now, &stream);
                }
            }
            11 | 12 => self.say(script),
            13 | 14 => self.forge(script),
            _ => match script.byte() % 4 {
                0 => self.rig.now = now + core::time::Duration::from_secs(u64::from(script.byte())),
                1 => seat.client.logout(now),
                2 => seat.client.connect(now),
                _ => {
                    let reason = DisconnectReason::from_code(script.byte().into());
                    seat.client.handle_disconnected(now, reason);
                }
            },
        }
        self.check();
    }

    /// Something else in a frame of the stream that is under way.
    fn change_frame(&mut self, script: &mut Script<'_>) {
        let Some((_, bytes)) = self.rig.seats[VICTIM].down.stream.back_mut() else { return };
        let mut under_way = frames(bytes);
        if under_way.is_empty() {
            return;
        }
        let chosen = script.below(under_way.len());
        script.mutate(&mut under_way[chosen]);
        let mut stream = vec![];
        for frame in &under_way {
            if let Some((kind, body)) = frame.split_first() {
                let _ = Frame { kind: *kind, body }.append_to(&mut stream);
            }
        }
        *bytes = stream;
    }

    /// A control message.
    fn say(&mut self, script: &mut Script<'_>) {
        let player = PlayerId::new(script.u16() % 300);
        let message = match script.byte() % 10 {
            0 => {
                let continuity = match script.byte() % 4 {
                    0 => Continuity::New,
                    1 => Continuity::Resumed { received: u64::from(script.byte()) },
                    2 => Continuity::Resumed { received: script.u64() },
                    _ => Continuity::Restarted(Restart::Overflow),
                };
                let token = Token::new([script.byte(); 16]);
                FromServer::LoginAccepted(LoginAccepted { player, token, continuity })
            }
            1 => FromServer::LoginRefused(LoginRefused::Full),
            2 => FromServer::HeartbeatReply(HeartbeatReply {
                sent_micros: script.u64(),
                held_micros: script.u32(),
                server_micros: script.u64(),
                received: u64::from(script.byte()),
            }),
            3 => FromServer::HeartbeatReply(HeartbeatReply {
                sent_micros: self.rig.now.as_micros().saturating_sub(script.u32().into()),
                held_micros: script.u16().into(),
                server_micros: self.rig.server.time(self.rig.now).as_micros() + u64::from(script.u32()),
                received: 0,
            }),
            4 => FromServer::CombatEvent(script.counted().to_vec()),
            5 => {
                let name = PlayerName::new("Ghost").expect("a good name");
                FromServer::PlayerJoined(PlayerJoined { player, name })
            }
            6 => FromServer::PlayerLeft(PlayerLeft { player }),
            7 => FromServer::Closing(Closing { within_millis: script.u32() }),
            _ => self.welcome(script),
        };
        let mut stream = vec![];
        if message.append_to(&mut stream) {
            let seat = &mut self.rig.seats[VICTIM];
            seat.client.handle_stream(self.rig.now, &stream);
        }
    }

    fn welcome(&mut self, script: &mut Script<'_>) -> FromServer {
        let far = script.flag();
        let tick =
            if far { script.u32() } else { self.rig.server.tick().number() + u32::from(script.byte()) };
        let mut bodies = vec![0; 3_000];
        let mut bits = BitWriter::new(&mut bodies);
        if script.flag() {
            self.crowd_in(script);
            self.forged.write_full(&mut self.view, 3_000 * 8, &mut bits);
        }
        let length = bits.finish().unwrap_or(0);
        bodies.truncate(length);
        let body = if script.flag() { script.counted().to_vec() } else { written(&Tank::new(1.0, 2.0, 0.5)) };
        FromServer::Welcome(Welcome { tick, epoch: script.byte().into(), body, bodies })
    }

    /// Strangers come into the forged room, wherever the script likes, and some go.
    fn crowd_in(&mut self, script: &mut Script<'_>) {
        let there: Vec<_> = self.forged.actors().map(|(player, _)| player).collect();
        for _ in 0..script.below(24) {
            let player = PlayerId::new(script.u16());
            if there.contains(&player) || self.forged.history(player).is_some() {
                self.forged.leave(player);
            } else if let Ok(body) = Tank::read(&Tank::blank(), &mut BitReader::new(script.bytes(9))) {
                self.forged.join(player, TankInput::NEUTRAL, body);
            }
        }
    }

    /// A snapshot that adds up, of a room that is not the client's.
    fn forge(&mut self, script: &mut Script<'_>) {
        self.crowd_in(script);
        let input = TickInput::steady(tanks::TankInput::from_unit(0.5, 1.0).expect("numbers"));
        for _ in 0..=script.below(5) {
            self.forged.advance(|_| input);
        }
        let ahead = script.byte().cast_signed();
        let newest = self.forged.tick().number().saturating_add_signed(ahead.into());
        let own = Tank::read(&Tank::blank(), &mut BitReader::new(script.bytes(12)));
        let fate = [Fate::AsSent, Fate::Held, Fate::Late, Fate::Lost][script.below(4)];
        let fates = vec![TickFate { input: fate, world: Causes::NONE }; script.below(64)];
        let header = Header {
            tick: Tick::new(newest),
            epoch: Epoch::new(u32::from(script.byte() % 3)),
            late: script.flag().then(|| core::time::Duration::from_micros(script.u16().into())),
            echo: None,
        };
        let mut buffer = [0; 1_100];
        let mut bits = BitWriter::new(&mut buffer);
        header.write(&mut bits);
        write_own::<Tanks>(&own.unwrap_or(Tank::blank()), fates.iter().copied(), &mut bits);
        let room = 1_100 * 8 - bits.len_bits();
        self.forged.write(&mut self.view, room, &mut bits);
        let length = bits.finish().expect("what is written fits");
        if script.flag() {
            self.view.acknowledge(self.forged.tick());
        }
        self.rig.seats[VICTIM].client.handle_datagram(self.rig.now, &buffer[..length]);
    }

    /// Whether the client was told of a time that has not come. It believes that: nobody but the server can say so by an
    /// authenticated link.
    fn is_misled(&self) -> bool {
        let (server, client) = (&self.rig.server, &self.rig.seats[VICTIM].client);
        let own = client.reconciler().map(|own| own.predictor().baseline());
        let ahead = |tick: Tick| tick > server.tick();
        own.is_some_and(|own| ahead(own.tick) || own.epoch != server.epoch())
            || client.crowd().newest().is_some_and(ahead)
    }

    /// Sooner or later it knows again what there is to know.
    fn check_recovery(&mut self) {
        let mut same = Ok(());
        for _ in 0..12 {
            self.wait(50);
            same = is_same(&self.rig, VICTIM);
            if same.is_ok() {
                break;
            }
        }
        assert_eq!((self.rig.seats[VICTIM].client.state(), same), (SessionState::LoggedIn, Ok(())));
    }

    /// What is shown is a number, and what waits is bounded.
    fn check(&mut self) {
        let seat = &mut self.rig.seats[VICTIM];
        let shown = seat.client.reconciler().map(|own| *own.visible());
        assert!(shown.is_none_or(|pose| [pose.x, pose.y, pose.heading].iter().all(|part| part.is_finite())));
        for remote in seat.client.remotes().iter() {
            let pose = remote.visible;
            assert!([pose.x, pose.y, pose.heading].iter().all(|part| part.is_finite()));
        }
        assert!(seat.up.datagrams.iter().all(|(_, bytes)| bytes.len() <= 1_100));
        assert!(seat.up.stream.iter().all(|(_, bytes)| bytes.len() <= 300_000));
        seat.events.retain(|event| !matches!(event, ClientEvent::Game(_)));
        assert!(seat.events.len() <= 4_096);
    }
}

fn written(body: &Tank) -> Vec<u8> {
    let mut buffer = [0; 32];
    let mut bits = BitWriter::new(&mut buffer);
    let mut body = *body;
    body.settle();
    body.write(&Tank::blank(), &mut bits);
    let length = bits.finish().expect("a tank is short");
    buffer[..length].to_vec()
}
