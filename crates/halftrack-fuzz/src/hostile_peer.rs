//! A script of packets, ticks and cuts against one live room, in which somebody else plays.
//!
//! The peers of the script say what they like, in any order. Nothing panics, everything stays within bounds, nobody is
//! faster or fires faster than the rules let them, and whoever plays by the rules does not notice.

use std::collections::BTreeMap;

use halftrack::client::{Client, ClientEvent};
use halftrack::server::{Server, ServerConfig, World};
use halftrack::session::{ConnectionId, SessionState};
use halftrack::wire::Frame;
use halftrack::wire::control::{
    FromClient, Heartbeat, Login, PROTOCOL, Report, ReportedCounts, ReportedSizes, Resume,
};
use halftrack::{
    Cause, Completeness, Driver, MoveInput, PlayerId, PlayerName, Pose as _, Seq, SyncLink, Tick, TickInput,
    Token, shared_hash,
};
use tanks::{Axis, CombatEvent, Entity, Fighter, Seen, ShootInput, Tank, TankInput, TankWorld, Tanks};

use crate::budget::within;
use crate::rig::{Rig, stroll, tank_world};
use crate::script::Script;

/// More do nothing that fewer cannot.
const MAX_ACTS: usize = 80;
const PEERS: usize = 3;
const CONFIG_CAPACITY: usize = 3;
const MAX_CONNECTIONS: usize = 4;
const MAX_STREAM_BYTES: usize = 16_384;
const MAX_DATAGRAM_BYTES: usize = 1_100;
/// Tanks that the world drives: they are in the way, and they shoot.
const MACHINES: u8 = 3;
/// What it takes at most for a tick: top speed, and being pushed; metres.
const MAX_STRIDE: f64 = (8.0 + 4.0) * 0.05 + 0.01;

/// A room, somebody who plays by the rules, and peers who do not.
struct Siege {
    rig: Rig,
    honest: ConnectionId,
    peers: [Peer; PEERS],
    /// The newest tick that was looked at.
    seen: Tick,
    /// Ticks of the honest one that had no input: those before it knew the server's time.
    held: u64,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    connection: Option<ConnectionId>,
    token: Token,
}

/// A script of packets against one live room.
pub fn hostile_peer(bytes: &[u8]) {
    within(8 << 20, || {
        let mut siege = Siege::new();
        let mut script = Script::new(bytes);
        for _ in 0..MAX_ACTS {
            if script.is_over() {
                break;
            }
            siege.act(&mut script);
            siege.check_bounds();
        }
        siege.wait(60);
        siege.check_honest();
    });
}

impl Siege {
    fn new() -> Self {
        let config = ServerConfig {
            capacity: CONFIG_CAPACITY,
            max_connections: MAX_CONNECTIONS,
            max_stream_bytes: MAX_STREAM_BYTES,
            max_datagram_bytes: MAX_DATAGRAM_BYTES,
            max_bodies: CONFIG_CAPACITY + usize::from(MACHINES),
            ..ServerConfig::default()
        };
        let mut rig = Rig::new(config, tank_world(MACHINES));
        rig.join("Honest");
        rig.run(60, stroll);
        let honest = rig.seats[0].connection.expect("it is in");
        let nobody = Peer { connection: None, token: Token::new([0; 16]) };
        let (seen, player) = (rig.server.tick(), rig.seats[0].client.player().expect("it is in"));
        let held = held(&rig.server, player);
        Self { rig, honest, peers: [nobody; PEERS], seen, held }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        let act = script.byte();
        let number = usize::from(act >> 4) % PEERS;
        let peer = self.peers[number];
        let Some(connection) = peer.connection else {
            if act & 15 == 0 {
                self.wait(script.below(32) + 1);
            } else {
                self.connect(number, if act & 1 == 0 { SyncLink::Absent } else { SyncLink::Present });
                // Most of what follows would be refused of somebody who is not in.
                if act & 2 == 0 {
                    self.log_in(number, script);
                }
            }
            return;
        };
        match act & 15 {
            0 | 1 => self.wait(script.below(32) + 1),
            2 => {
                self.rig.server.handle_disconnected(self.rig.now, connection);
                self.peers[number].connection = None;
            }
            3 => self.log_in(number, script),
            4 => self.rig.server.handle_stream(self.rig.now, connection, script.counted()),
            5 => self.rig.server.handle_datagram(self.rig.now, connection, script.counted()),
            6 => {
                let mut stream = vec![];
                if (Frame { kind: script.byte() % 8, body: script.counted() }).append_to(&mut stream) {
                    self.rig.server.handle_stream(self.rig.now, connection, &stream);
                }
            }
            7 => self.speak(connection, script),
            8 => self.echo_honest(connection, script),
            9 => self.read(connection),
            10..=12 => self.input(connection, script),
            _ => self.shoot(connection, script),
        }
        self.close();
    }

    fn wait(&mut self, steps: usize) {
        for _ in 0..steps {
            self.rig.step(&mut stroll);
            self.check_strides();
        }
    }

    fn connect(&mut self, number: usize, sync_link: SyncLink) {
        let (connection, token) = self.rig.new_connection();
        self.peers[number] = Peer { connection: Some(connection), token };
        self.rig.server.handle_connected(self.rig.now, connection, sync_link, token);
    }

    fn log_in(&mut self, number: usize, script: &mut Script<'_>) {
        let how = script.byte();
        let Some(connection) = self.peers[number].connection else { return };
        let shared = shared_hash(&**self.rig.server.world().rules(), self.rig.server.cadence());
        let name = ["Eve", "Mallory", "Honest", "Trudy"][usize::from(how & 3)];
        let token =
            if how & 16 == 0 { self.peers[script.below(PEERS)].token } else { self.peers[number].token };
        let resume =
            Resume { token, received: Some(u64::from(script.byte())).filter(|received| *received != 255) };
        let login = Login {
            protocol: if how & 0xc0 == 0xc0 { script.u16() } else { PROTOCOL },
            shared: if how & 0x30 == 0x30 { script.u64() } else { shared },
            name: PlayerName::new(name).expect("a good name"),
            resume: (how & 8 == 8).then_some(resume),
            credentials: (how & 4 == 4).then(|| "please".to_owned()),
        };
        self.say(connection, &FromClient::Login(login), script);
    }

    /// A control message.
    fn speak(&mut self, connection: ConnectionId, script: &mut Script<'_>) {
        let message = match script.byte() % 5 {
            0 => FromClient::Logout(()),
            1 => FromClient::Heartbeat(Heartbeat { sent_micros: script.u64(), received: script.u64() }),
            2 => FromClient::Heartbeat(Heartbeat { sent_micros: 1, received: u64::from(script.byte() % 8) }),
            3 => {
                let (claimed, snapped) = (script.u16(), script.u16());
                // Sizes of a liar, for a cause that there is or that there is not.
                let counts = ReportedCounts { classes: [claimed; 9], thousandths: u32::from(snapped) << 16 };
                let sizes = ReportedSizes { cause: (claimed % 10) as u8, distance: counts, angle: counts };
                FromClient::Report(Report { corrections: [claimed; 11], snapped, sizes: vec![sizes] })
            }
            _ => FromClient::ShootInput(script.counted().to_vec()),
        };
        self.say(connection, &message, script);
    }

    /// Says it, changed a little if the script likes.
    fn say(&mut self, connection: ConnectionId, message: &FromClient, script: &mut Script<'_>) {
        let mut stream = vec![];
        assert!(message.append_to(&mut stream));
        script.mutate(&mut stream);
        self.rig.server.handle_stream(self.rig.now, connection, &stream);
    }

    /// What the honest one has just said.
    fn echo_honest(&mut self, connection: ConnectionId, script: &mut Script<'_>) {
        let said = &self.rig.seats[0].up;
        let (datagram, stream) = (said.datagrams.back().cloned(), said.stream.back().cloned());
        if let Some((_, mut bytes)) = datagram.filter(|_| script.flag()) {
            script.mutate(&mut bytes);
            self.rig.server.handle_datagram(self.rig.now, connection, &bytes);
        } else if let Some((_, mut bytes)) = stream {
            script.mutate(&mut bytes);
            self.rig.server.handle_stream(self.rig.now, connection, &bytes);
        }
    }

    /// Takes what the room has for it.
    fn read(&mut self, connection: ConnectionId) {
        let mut stream = vec![];
        self.rig.server.poll_stream(connection, &mut stream);
        assert!(stream.len() <= MAX_STREAM_BYTES + 2 * Frame::MAX_BODY, "{} bytes", stream.len());
        if let Some(datagram) = self.rig.server.poll_datagram(connection) {
            assert!(datagram.len() <= MAX_DATAGRAM_BYTES, "{} bytes", datagram.len());
        }
    }

    /// A tick near the newest one, mostly.
    fn tick(&self, script: &mut Script<'_>) -> Tick {
        let away = script.byte().cast_signed();
        let newest = self.rig.server.tick().number();
        Tick::new(if away == i8::MIN { script.u32() } else { newest.saturating_add_signed(i32::from(away)) })
    }

    fn input(&mut self, connection: ConnectionId, script: &mut Script<'_>) {
        let how = script.byte();
        let mut message = MoveInput::<TankInput> {
            seq: Seq::new(script.u16()),
            ack: (how & 1 == 1).then(|| self.tick(script)),
            newest: self.tick(script),
            completeness: if how & 2 == 2 { Completeness::Open } else { Completeness::Closed },
            ticks: vec![],
        };
        for _ in 0..how >> 2 {
            let levels = script.u16().to_le_bytes();
            let axis = |level: u8| Axis::from_level((level % 33).cast_signed() - Axis::LEVELS);
            let input =
                TankInput { turn: axis(levels[0]), throttle: axis(levels[1]), rocket: levels[0] / 33 };
            message.ticks.push(TickInput::steady(input));
        }
        let mut bytes = vec![0; 2_048];
        let length = message.encode(&mut bytes).expect("64 ticks fit");
        bytes.truncate(length);
        if how & 1 == 1 {
            script.mutate(&mut bytes);
        }
        if script.flag() {
            self.rig.server.handle_datagram(self.rig.now, connection, &bytes);
        } else {
            let mut stream = vec![];
            assert!(FromClient::MoveInput(bytes).append_to(&mut stream));
            self.rig.server.handle_stream(self.rig.now, connection, &stream);
        }
    }

    fn shoot(&mut self, connection: ConnectionId, script: &mut Script<'_>) {
        let tick = self.tick(script);
        let (at, aim) = (script.byte(), script.u16());
        let before_micros = u32::from(script.u16()) * 8;
        let shot = ShootInput { tick, at, aim, seen: Seen { snapshot: self.tick(script), before_micros } };
        self.say(connection, &FromClient::ShootInput(shot.encode()), script);
    }

    /// Peers are closed when they are to be; whoever plays by the rules never is.
    fn close(&mut self) {
        while let Some((connection, reason)) = self.rig.server.poll_close() {
            assert_ne!(connection, self.honest, "{reason:?}");
            self.rig.server.handle_closed(connection);
            for peer in self.peers.iter_mut().filter(|peer| peer.connection == Some(connection)) {
                peer.connection = None;
            }
        }
    }

    fn check_bounds(&mut self) {
        self.close();
        let server = &self.rig.server;
        assert!(server.connections().count() <= MAX_CONNECTIONS);
        assert!(server.players().count() <= CONFIG_CAPACITY);
        let machines = server.bodies().filter(|(_, driver, _)| *driver == Driver::World).count();
        assert_eq!(machines, usize::from(MACHINES));
        let owned: Vec<_> = server.players().map(|player| server.owned(player).len()).collect();
        assert!(owned.iter().all(|owned| *owned == 1), "{owned:?}");
        let tanks = server.bodies().filter(|(.., body)| body.tank().is_some()).count();
        assert_eq!(tanks, machines + owned.len());
        for peer in &mut self.peers {
            peer.connection = peer.connection.filter(|open| server.connections().any(|each| each == *open));
        }
    }

    /// Nobody goes further in a tick than a tank can.
    fn check_strides(&mut self) {
        let server = &self.rig.server;
        let newest = server.tick();
        if newest == self.seen {
            return;
        }
        self.seen = newest;
        let Some(before) = newest.previous() else { return };
        for (id, _, body) in server.bodies().filter(|(.., body)| body.tank().is_some()) {
            let Some(was) = server.body(id, before) else { continue };
            let stride = body.pose().offset_from(&was.pose()).distance();
            let is_back = !was.is_alive() && body.is_alive();
            assert!(is_back || stride <= MAX_STRIDE, "{id} goes {stride} m in a tick");
        }
    }

    fn check_honest(&mut self) {
        let (server, seat) = (&self.rig.server, &self.rig.seats[0]);
        let client = &seat.client;
        assert_eq!((client.state(), seat.closed.len()), (SessionState::LoggedIn, 0));
        let player = client.player().expect("it is in");
        // All that others can do to it: be in its way, and shoot it.
        let theirs = [Cause::Collision, Cause::Death, Cause::Respawn];
        let stats = client.reconciler().expect("it predicts").stats();
        for (cause, count) in stats.by_cause() {
            assert!(theirs.contains(&cause) || count == 0, "{count} times {cause:?}");
        }
        assert_eq!(held(server, player), self.held, "all of its input counts");
        let counted = client.stats();
        assert_eq!((counted.malformed, counted.check_failed, counted.mispredicted), (0, 0, 0));
        assert_eq!(is_same(&self.rig, 0), Ok(()));
        check_fire(&seat.events, server.cadence());
    }
}

fn held(server: &Server<TankWorld>, player: PlayerId) -> u64 {
    server.input_stats(player).expect("it plays").held
}

/// Whether a client knows the players and the bodies of the room, to the bit; its mistake, if not.
pub(crate) fn is_same<W: World<Game = Tanks>>(rig: &Rig<W>, seat: usize) -> Result<(), String> {
    is_same_room(&rig.server, &rig.seats[seat].client)
}

/// The same of any client.
pub(crate) fn is_same_room<W: World<Game = Tanks>>(
    server: &Server<W>,
    client: &Client<Tanks>,
) -> Result<(), String> {
    let there: Vec<_> = server.players().map(|player| (player, server.name(player))).collect();
    let told: Vec<_> = client.players().map(|(player, name)| (player, Some(name))).collect();
    if told != there {
        return Err(format!("{there:?} are there, and it knows {told:?}"));
    }
    // Rockets come and go in the ticks between the newest snapshot and the server's newest tick.
    let lasts = |body: &Entity| body.rocket().is_none();
    let there = server.bodies().filter(|(.., body)| lasts(body));
    let there: Vec<_> = there.map(|(id, driver, _)| (id, driver)).collect();
    let told = client.crowd().bodies().filter(|(_, history)| lasts(history.latest()));
    let told: Vec<_> = told.map(|(id, history)| (id, history.driver())).collect();
    if told != there {
        return Err(format!("{there:?} are there, and it knows {told:?}"));
    }
    for (id, _) in there {
        let told = client.authoritative(id);
        if told.is_none_or(|(tick, body)| server.body(id, tick) != Some(body)) {
            return Err(format!("{id} at {}: it knows {told:?}", server.tick()));
        }
    }
    let owned = client.player().map(|player| server.owned(player)).unwrap_or_default();
    let own: Vec<_> = client.own().map(|(id, ..)| id).collect();
    if own != owned {
        return Err(format!("it owns {owned:?}, and it knows {own:?}"));
    }
    Ok(())
}

/// Nobody fires faster than a gun cools down.
fn check_fire(events: &[ClientEvent], cadence: halftrack::Cadence) {
    let mut last: BTreeMap<Fighter, ShootInput> = BTreeMap::new();
    for event in events {
        let ClientEvent::Game(bytes) = event else { continue };
        match CombatEvent::decode(bytes).expect("the server makes sense") {
            CombatEvent::Fired { shooter, tick, at, aim, .. } => {
                let seen = Seen { snapshot: tick, before_micros: 0 };
                let shot = ShootInput { tick, at, aim, seen };
                if let Some(before) = last.insert(shooter, shot) {
                    let pause = shot.moment(cadence).saturating_since(before.moment(cadence));
                    assert!(pause.as_millis() >= 500, "{shooter} fires again after {pause:?}");
                }
            }
            CombatEvent::DamageApplied { amount, hp, .. } => assert!(amount + hp <= Tank::MAX_HP),
            _ => {}
        }
    }
}
