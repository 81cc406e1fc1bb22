//! A script of packets against one live client: those of a real room, changed on their way, and others that no room
//! would send.
//!
//! Nothing panics, whatever is shown is a number, what waits is bounded. Where only datagrams were touched, and none that
//! was believed lied about the time, the client is back soon.

use std::collections::BTreeSet;
use std::sync::Arc;

use halftrack::client::ClientEvent;
use halftrack::server::{ServerConfig, World};
use halftrack::session::{DisconnectReason, SessionState};
use halftrack::snapshot::{self, Bodies, Header, OwnBodies, View};
use halftrack::wire::control::{
    Closing, Continuity, FromServer, HeartbeatReply, LoginAccepted, LoginRefused, PlayerJoined, PlayerLeft,
    Restart, Welcome,
};
use halftrack::wire::{BitReader, BitWriter, Frame};
use halftrack::{
    Body, BodyId, Cause, Causes, Driver, Epoch, Fate, PlayerId, PlayerName, Tick, TickInput, Token,
};
use tanks::{Axis, Entity, TankInput, TankPose, Tanks};

use crate::budget::within;
use crate::convoy::Convoy;
use crate::hostile_peer::is_same;
use crate::rig::{Rig, aim, shoot, stroll};
use crate::script::Script;
use crate::wire::frames;

const MAX_ACTS: usize = 80;
/// The client whose packets are touched. The other one is there to be seen.
const VICTIM: usize = 0;
/// The longest snapshot: not all bodies in full fit into one, so some come in pieces by the stream.
const MAX_DATAGRAM_BYTES: usize = 200;
/// Bytes of a forged full state at most.
const MAX_FORGED: usize = 3_000;
/// Bodies in a forged own section at most.
const MAX_OWNED: usize = 20;

/// A client, and the enemy between it and its room.
struct Ambush {
    rig: Rig<Convoy>,
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
        let mut script = Script::new(bytes);
        let mut ambush = Ambush::new(if script.flag() { Convoy::WATCHER } else { "Victim" });
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
    fn new(victim: &str) -> Self {
        let config = ServerConfig { max_datagram_bytes: MAX_DATAGRAM_BYTES, ..ServerConfig::default() };
        let mut rig = Rig::new(config, Convoy::new(4));
        rig.join(victim);
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
                if (Frame { kind: 32 + script.byte() % 12, body: script.counted() }).append_to(&mut stream) {
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
        let message = match script.byte() % 11 {
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
            // A piece of a full state that was never announced, or of another one.
            8 => FromServer::Bodies(script.counted().to_vec()),
            _ => return self.welcome(script),
        };
        self.deliver(&message);
    }

    fn deliver(&mut self, message: &FromServer) {
        let mut stream = vec![];
        if message.append_to(&mut stream) {
            self.rig.seats[VICTIM].client.handle_stream(self.rig.now, &stream);
        }
    }

    /// A state to begin from: a length, which may be a lie, and pieces, which may be short, long, lost or out of order.
    fn welcome(&mut self, script: &mut Script<'_>) {
        let far = script.flag();
        let tick =
            if far { script.u32() } else { self.rig.server.tick().number() + u32::from(script.byte()) };
        let epoch = Epoch::new(script.byte().into());
        let mut bodies = vec![0; MAX_FORGED];
        let mut bits = BitWriter::new(&mut bodies);
        if script.flag() {
            self.crowd_in(script);
            self.forged.set_epoch(epoch);
            self.forged.write_full(&mut self.view, MAX_FORGED * 8, &mut bits);
        }
        let length = bits.finish().unwrap_or(0);
        bodies.truncate(length);
        let own =
            if script.flag() { script.counted().to_vec() } else { written(&self.own(script, false, 0)) };
        let how = script.byte();
        let length = match how & 3 {
            0 => script.u32(),
            1 => length as u32 / 2,
            _ => length as u32,
        };
        self.deliver(&FromServer::Welcome(Welcome { tick, epoch: epoch.number(), own, bodies: length }));
        let mut pieces: Vec<_> = bodies.chunks(usize::from(script.byte()) * 8 + 1).collect();
        if how & 4 == 4 {
            pieces.reverse();
        }
        if how & 8 == 8 {
            pieces.pop();
        }
        for piece in pieces.into_iter().take(64) {
            self.deliver(&FromServer::Bodies(piece.to_vec()));
        }
    }

    /// Strangers come into the forged room, wherever the script likes, and some go.
    fn crowd_in(&mut self, script: &mut Script<'_>) {
        for _ in 0..script.below(24) {
            let how = script.byte();
            let there: Vec<_> = self.forged.records().map(|(id, driver, _)| (id, driver)).collect();
            if how & 3 == 3 && !there.is_empty() {
                let (id, driver) = there[script.below(there.len())];
                match driver {
                    Driver::Player(player) if how & 4 == 4 => self.forged.leave(player),
                    Driver::World if how & 4 == 4 => {
                        let level = Axis::from_level((script.byte() % 33).cast_signed() - Axis::LEVELS);
                        let driven = self
                            .forged
                            .drive(id, TankInput { turn: level, throttle: level, rocket: how >> 4 });
                        assert_eq!(driven, Ok(()));
                    }
                    _ => assert!(self.forged.remove(id).is_ok(), "it was there"),
                }
                continue;
            }
            let Ok(body) = Entity::read(&Entity::blank(), &mut BitReader::new(script.bytes(9))) else {
                continue;
            };
            let driver = match how & 3 {
                0 => Driver::World,
                1 => Driver::Nothing,
                _ => {
                    // The victim's own number is among them.
                    let player = PlayerId::new(u16::from(script.byte() % 8));
                    if !self.forged.players().any(|there| there == player) {
                        self.forged.join(player);
                    }
                    Driver::Player(player)
                }
            };
            // A player has no place for a seventeenth.
            let _ = self.forged.spawn(driver, body);
        }
    }

    /// An own section: none, one or several ids of the room, of the forged room, or of nowhere; and `ticks` fates.
    fn own(&self, script: &mut Script<'_>, known: bool, ticks: usize) -> OwnBodies<Tanks> {
        let client = &self.rig.seats[VICTIM].client;
        let here: Vec<_> = client.own().map(|(id, ..)| id).collect();
        let others: Vec<_> = client.crowd().bodies().map(|(id, _)| id).collect();
        let forged: Vec<_> = self.forged.records().map(|(id, ..)| id).collect();
        let mut own = OwnBodies::<Tanks>::default();
        if known {
            own.ids.clone_from(&here);
        } else {
            for _ in 0..script.below(MAX_OWNED + 1) {
                let at = script.byte();
                let list = [&here, &others, &forged][usize::from(at) % 3];
                let listed = list.get(usize::from(at / 3) % list.len().max(1)).copied();
                // The same one twice is refused.
                own.ids.push(listed.unwrap_or(BodyId::new(at.into())));
            }
        }
        for _ in 0..own.ids.len() {
            let body = Entity::read(&Entity::blank(), &mut BitReader::new(script.bytes(12)));
            own.bodies.push(body.unwrap_or(Entity::blank()));
        }
        let fate = [Fate::AsSent, Fate::Held, Fate::Late, Fate::Lost][script.below(4)];
        let cause = [Cause::Teleport, Cause::Respawn, Cause::Death, Cause::Params, Cause::Collision];
        let causes = Causes::NONE.with(cause[script.below(cause.len())]);
        own.fates = vec![fate; ticks];
        own.causes =
            (0..ticks * own.ids.len()).map(|at| if at % 5 == 2 { causes } else { Causes::NONE }).collect();
        own
    }

    /// A snapshot that adds up, of a room that is not the client's.
    fn forge(&mut self, script: &mut Script<'_>) {
        self.crowd_in(script);
        let input = TickInput::steady(TankInput::from_unit(0.5, 1.0).expect("numbers"));
        for _ in 0..=script.below(5) {
            self.forged.advance(|_| input);
        }
        let ahead = script.byte().cast_signed();
        let newest = self.forged.tick().number().saturating_add_signed(ahead.into());
        let header = Header {
            tick: Tick::new(newest),
            epoch: Epoch::new(u32::from(script.byte() % 3)),
            late: script.flag().then(|| core::time::Duration::from_micros(script.u16().into())),
            echo: None,
        };
        let (known, ticks) = (script.flag(), script.below(64));
        let own = self.own(script, known, ticks);
        let mut buffer = [0; MAX_FORGED];
        let mut bits = BitWriter::new(&mut buffer);
        header.write(&mut bits);
        own.write(known, &mut bits);
        let room = (MAX_FORGED * 8).saturating_sub(bits.len_bits());
        self.forged.set_epoch(header.epoch);
        self.forged.write(&mut self.view, room, &mut bits);
        let Some(length) = bits.finish() else { return };
        if script.flag() {
            self.view.acknowledge(self.forged.tick());
        }
        self.rig.seats[VICTIM].client.handle_datagram(self.rig.now, &buffer[..length]);
    }

    /// Whether the client believes a time that has not come. Only the server can say so by an authenticated link.
    fn is_misled(&self) -> bool {
        let (server, client) = (&self.rig.server, &self.rig.seats[VICTIM].client);
        let ahead = |tick: Tick| tick > server.tick();
        let mut own = client.reconciler().into_iter().map(|known| known.predictor().baseline());
        own.any(|own| ahead(own.tick) || own.epoch != server.epoch())
            || client.crowd().newest().is_some_and(ahead)
    }

    /// Sooner or later it knows again what there is to know.
    fn check_recovery(&mut self) {
        assert_eq!(self.rig.server.command(Convoy::REST), Ok(()));
        let mut same = Ok(());
        for _ in 0..12 {
            self.wait(50);
            same = is_same(&self.rig, VICTIM);
            if same.is_ok() {
                break;
            }
        }
        let client = &self.rig.seats[VICTIM].client;
        assert_eq!((client.state(), same), (SessionState::LoggedIn, Ok(())));
        let own: Vec<_> = client.own().map(|(id, ..)| id).collect();
        assert!(client.remotes().iter().all(|remote| !own.contains(&remote.id)), "no body is drawn twice");
    }

    /// Poses are numbers, own bodies and memory are bounded.
    fn check(&mut self) {
        let seat = &mut self.rig.seats[VICTIM];
        let is_finite = |pose: &TankPose| [pose.x, pose.y, pose.heading].iter().all(|part| part.is_finite());
        let mut own = BTreeSet::new();
        for (id, body, reconciler) in seat.client.own() {
            assert!(own.insert(id), "{id} is owned twice");
            assert!([body.pose().x, body.pose().y, body.pose().heading].iter().all(|part| part.is_finite()));
            assert!(reconciler.and_then(|own| own.visible()).is_none_or(is_finite));
        }
        assert!(own.len() <= snapshot::MAX_OWNED);
        for remote in seat.client.remotes().iter() {
            assert!(is_finite(&remote.visible), "{remote:?}");
        }
        assert!(seat.up.datagrams.iter().all(|(_, bytes)| bytes.len() <= 1_100));
        assert!(seat.up.stream.iter().all(|(_, bytes)| bytes.len() <= 300_000));
        seat.events.retain(|event| !matches!(event, ClientEvent::Game(_)));
        assert!(seat.events.len() <= 4_096);
    }
}

fn written(own: &OwnBodies<Tanks>) -> Vec<u8> {
    let mut buffer = vec![0; MAX_FORGED];
    let mut bits = BitWriter::new(&mut buffer);
    own.write(false, &mut bits);
    let length = bits.finish().unwrap_or(0);
    buffer.truncate(length);
    buffer
}
