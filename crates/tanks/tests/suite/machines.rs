//! Machines: tanks that the world drives, in a whole match in memory with real clients on a bad network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::room_rig::{Dice, Rig, Way, ms};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::record::{Entry, Playback, Recording};
use halftrack::server::{Events, Order, Recovery, Room, Server, ServerConfig, World};
use halftrack::session::SessionState;
use halftrack::snapshot::{Bodies, Course, Crowd, View};
use halftrack::wire::control::{Login, PROTOCOL};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{
    Body, BodyId, Cadence, Cause, Causes, Driver, Epoch, PlayerId, PlayerName, SyncLink, Tick, TickInput,
    Timestamp,
};
use tanks::{
    About, Axis, CombatEvent, Entity, Fighter, Phase, RoundConfig, Scores, Seen, ShootInput, Tank, TankInput,
    TankWorld, TankWorldConfig, Tanks, open_recording,
};

/// A hundred milliseconds there and back, jitter, loss and duplicates.
const BAD: Way =
    Way { delay: Duration::from_millis(42), jitter: Duration::from_millis(16), loss: 0.02, duplicate: 0.01 };
const RUN: [u8; 16] = [7; 16];
const MACHINES: u8 = 6;

fn world_config() -> TankWorldConfig {
    TankWorldConfig { seed: 3, machines: MACHINES, ..TankWorldConfig::default() }
}

fn client_config(name: &str) -> ClientConfig<Tanks> {
    let rules = Arc::new(Tanks::new(world_config().arena));
    ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), rules)
}

/// A recorded match. So many players are on their way into it.
fn recorded(server: ServerConfig, config: &TankWorldConfig, players: usize, seed: u64) -> Rig<TankWorld> {
    let mut rig = Rig::new(server, TankWorld::new(config.clone()).unwrap(), seed);
    assert!(rig.server.record(RUN, About::new("test", 1_700_000_000, config).encode()));
    for player in 0..players {
        rig.join(client_config(&format!("player {player}")), BAD);
    }
    rig
}

/// The hands of a player: drives anywhere, and shoots at the nearest tank that it sees alive.
struct Hands {
    dice: Dice,
    wish: TankInput,
    next: Timestamp,
    next_shot: Timestamp,
}

impl Hands {
    fn new(seed: u64) -> Self {
        let (next, next_shot) = (Timestamp::ZERO, Timestamp::ZERO);
        Self { dice: Dice(seed), wish: TankInput::NEUTRAL, next, next_shot }
    }

    fn all(players: u64) -> Vec<Self> {
        (1..=players).map(Self::new).collect()
    }

    fn drive(&mut self, now: Timestamp, client: &mut Client<Tanks>) {
        if now >= self.next {
            self.next = now + ms(100 + self.dice.below(900));
            let mut axis = || Axis::from_level(self.dice.below(33) as i8 - 16);
            self.wish = TankInput { turn: axis(), throttle: axis(), rocket: 0 };
        }
        client.set_input(now, self.wish);
        let (Some(reconciler), Some((snapshot, at))) = (client.reconciler(), client.seen()) else { return };
        let tank = reconciler.predicted();
        let ways = client.remotes().iter().filter(|other| other.state.is_alive());
        let ways = ways.map(|other| (other.visible.x - tank.pose().x, other.visible.y - tank.pose().y));
        let Some((x, y)) = ways.min_by(|one, other| one.0.hypot(one.1).total_cmp(&other.0.hypot(other.1)))
        else {
            return;
        };
        if now < self.next_shot || !tank.is_alive() || client.state() != SessionState::LoggedIn {
            return;
        }
        self.next_shot = now + ms(520 + self.dice.below(400));
        let (tick, grid) = ShootInput::grid(client.cadence(), reconciler.predictor().time());
        let aim = ((y.atan2(x) / std::f64::consts::TAU * 65_536.0).round() as i64 & 0xffff) as u16;
        let seen = Seen::new(client.cadence(), snapshot, at);
        let _ = client.order(now, &ShootInput { tick, at: grid, aim, seen }.encode());
    }
}

/// Plays for so long; gives control back after each tick.
fn play(
    rig: &mut Rig<TankWorld>,
    hands: &mut [Hands],
    seconds: u64,
    mut look: impl FnMut(&mut Rig<TankWorld>),
) {
    for _ in 0..seconds * 20 {
        rig.run(ms(50), |seat, now, client| hands[seat].drive(now, client));
        look(rig);
    }
}

fn events(rig: &Rig<TankWorld>, seat: usize) -> Vec<CombatEvent> {
    let game = |event: &ClientEvent| match event {
        ClientEvent::Game(bytes) => Some(CombatEvent::decode(bytes).unwrap()),
        _ => None,
    };
    rig.seats[seat].events.iter().filter_map(game).collect()
}

fn is_machine(fighter: Fighter) -> bool {
    fighter.player().is_none()
}

fn machines(server: &Server<TankWorld>) -> Vec<BodyId> {
    server.bodies().filter(|(_, driver, _)| *driver == Driver::World).map(|(id, ..)| id).collect()
}

/// Every body that a client has is as the server has it at that tick. Gives their number.
fn assert_decoded(rig: &Rig<TankWorld>, seat: usize) -> usize {
    let crowd = rig.seats[seat].client.crowd();
    let Some(tick) = crowd.newest() else { return 0 };
    let drivers: BTreeMap<_, _> = rig.server.bodies().map(|(id, driver, _)| (id, driver)).collect();
    for (id, history) in crowd.bodies() {
        let Some(truth) = rig.server.body(id, tick) else { continue };
        assert_eq!(history.get(tick).map(|record| &record.after), Some(truth), "{id} at {tick}");
        assert_eq!(drivers.get(&id).copied(), Some(history.driver()), "{id}");
    }
    crowd.bodies().count()
}

/// No snapshot was refused, and no correction is without a cause.
fn assert_sound(rig: &Rig<TankWorld>, seat: usize) {
    let client = &rig.seats[seat].client;
    let (stats, corrections) = (client.stats(), client.corrections());
    assert_eq!((stats.check_failed, stats.malformed), (0, 0), "seat {seat}: {stats:?}");
    assert_eq!(corrections.of(Cause::Unexplained), 0, "seat {seat}: {corrections:?}");
}

#[test]
fn machines_move_shoot_die_and_respawn_and_every_client_has_the_bodies_of_the_server() {
    let mut rig = recorded(ServerConfig::default(), &world_config(), 2, 11);
    let mut hands = Hands::all(2);
    let (mut compared, mut places) = (0, BTreeMap::<BodyId, BTreeSet<[i32; 2]>>::new());
    play(&mut rig, &mut hands, 240, |rig| {
        compared += (0..2).map(|seat| assert_decoded(rig, seat)).sum::<usize>();
        for (id, _, tank) in rig.server.bodies().filter(|(_, driver, _)| *driver == Driver::World) {
            places
                .entry(id)
                .or_default()
                .insert([tank.pose().x, tank.pose().y].map(|place| place as i32 / 8));
        }
    });
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
    assert!(compared > 2 * 8 * 20 * 230, "{compared} bodies were compared");
    assert_eq!(places.len(), usize::from(MACHINES));
    for (id, places) in places {
        assert!(places.len() > 10, "{id} was in {} places", places.len());
    }
    for seat in 0..2 {
        assert_sound(&rig, seat);
        let client = &rig.seats[seat].client;
        assert!(client.corrections().unchanged > 3_000, "{:?}", client.corrections());
        let drawn = client.remotes().iter().filter(|other| other.driver == Driver::World).count();
        assert_eq!(drawn, usize::from(MACHINES));
    }
    // Both hear the same of all fighters.
    let public = |seat| {
        let told = events(&rig, seat).into_iter();
        told.filter(|event| !matches!(event, CombatEvent::ShootRejected { .. })).collect::<Vec<_>>()
    };
    assert_eq!(public(0), public(1));
    let mut counts = BTreeMap::<_, u32>::new();
    for event in public(0) {
        let (kind, fighter) = match event {
            CombatEvent::Fired { shooter, .. } => ("fired", shooter),
            CombatEvent::Hit { shooter, .. } => ("hit", shooter),
            CombatEvent::DamageApplied { target, .. } => ("damaged", target),
            CombatEvent::Death { fighter, by, .. } => {
                *counts.entry(("kill", is_machine(by))).or_default() += 1;
                ("death", fighter)
            }
            CombatEvent::Respawn { fighter, .. } => ("respawn", fighter),
            _ => continue,
        };
        *counts.entry((kind, is_machine(fighter))).or_default() += 1;
    }
    for kind in ["fired", "hit", "damaged", "kill", "death", "respawn"] {
        for machine in [false, true] {
            let count = counts.get(&(kind, machine)).copied().unwrap_or_default();
            assert!(count > 3, "{kind}, of machines {machine}: {counts:?}");
        }
    }
}

/// The same over cuts, stalls of the server, a frozen client, and a client without datagrams.
#[test]
fn clients_have_the_bodies_of_the_server_after_cuts_stalls_and_freezes() {
    for seed in 81..85 {
        let mut rig = recorded(ServerConfig::default(), &world_config(), 3, seed);
        rig.seats[2].sync_link = SyncLink::Absent;
        let mut hands = Hands::all(3);
        for round in 0..12 {
            match round % 4 {
                0 => rig.cut(round % 3),
                1 => rig.stalled_until = rig.now + ms(700),
                2 => rig.stalled_until = rig.now + ms(3_500),
                _ => rig.seats[round % 2].frozen_until = rig.now + ms(5_000),
            }
            play(&mut rig, &mut hands, 8, |rig| (0..3).for_each(|seat| _ = assert_decoded(rig, seat)));
            for seat in 0..3 {
                assert_eq!(rig.seats[seat].client.state(), SessionState::LoggedIn);
                assert_eq!(assert_decoded(&rig, seat), 3 + usize::from(MACHINES), "round {round}");
            }
        }
        (0..3).for_each(|seat| assert_sound(&rig, seat));
        assert!(rig.server.epoch() > Epoch::default(), "time slipped");
        assert_plays_back(&rig);
    }
}

/// Datagrams of the least length have no room for a burst of changes: machines then wait by turns.
#[test]
fn many_machines_in_short_datagrams_are_decoded_right() {
    let server = ServerConfig { max_datagram_bytes: 200, ..ServerConfig::default() };
    let mut rig = recorded(server, &TankWorldConfig { machines: 100, ..world_config() }, 2, 91);
    let (mut hands, mut partial, mut all) = (Hands::all(2), 0, 0);
    play(&mut rig, &mut hands, 60, |rig| {
        for seat in 0..2 {
            let known = assert_decoded(rig, seat);
            partial += u32::from((1..102).contains(&known));
            all += u32::from(known == 102);
        }
    });
    (0..2).for_each(|seat| assert_sound(&rig, seat));
    assert!(partial > 200 && all > 200, "{partial} snapshots of some, {all} of all");
    assert_plays_back(&rig);
}

/// A machine that dies, seen from the inside: it stands until it is back, and shoots no more.
#[test]
fn a_wreck_of_a_machine_stands_until_it_is_back() {
    let mut rig = recorded(ServerConfig::default(), &world_config(), 2, 5);
    let mut hands = Hands::all(2);
    let (mut wrecks, mut back) = (BTreeMap::<BodyId, (Tick, Tank)>::new(), 0);
    play(&mut rig, &mut hands, 90, |rig| {
        let (newest, machines) = (rig.server.tick(), machines(&rig.server));
        for id in machines {
            let tank = *rig.server.body(id, newest).unwrap();
            match wrecks.get(&id).copied() {
                Some((died, _)) if tank.is_alive() => {
                    assert!((59..=61).contains(&newest.since(died)), "back after three seconds");
                    assert_eq!(tank.tank().unwrap().hp, Tank::MAX_HP);
                    wrecks.remove(&id);
                    back += 1;
                }
                Some((_, wreck)) => assert_eq!(tank, wreck.into(), "a wreck stands"),
                None if !tank.is_alive() => _ = wrecks.insert(id, (newest, tank.tank().copied().unwrap())),
                None => {}
            }
        }
    });
    assert!(back > 3, "{back} machines came back");
}

/// A world with its bodies and one view, with nothing between them but the test.
struct Bench {
    world: TankWorld,
    bodies: Bodies<Tanks>,
    view: View,
    crowd: Crowd<Tanks>,
}

impl Bench {
    /// A room of one player, whose tank stands.
    fn new(config: TankWorldConfig) -> Self {
        let world = TankWorld::new(config).unwrap();
        let bodies = Bodies::new(Arc::clone(world.rules()), Cadence::default(), Tick::new(1_000));
        let crowd = Crowd::new(Arc::clone(world.rules()), Cadence::default());
        let mut bench = Self { world, bodies, view: View::default(), crowd };
        let (player, name) = (PlayerId::new(1), PlayerName::new("Ada").unwrap());
        let login = Login { protocol: PROTOCOL, shared: 0, name, resume: None, credentials: None };
        bench.bodies.join(player);
        bench.world.join(player, &login, &mut Room::new(Cadence::default(), &mut bench.bodies));
        bench
    }

    /// A tick. Gives its events.
    fn tick(&mut self) -> Vec<CombatEvent> {
        let mut events = Events::default();
        self.bodies.advance(|_| TickInput::steady(TankInput::NEUTRAL));
        self.world.resolve(&mut Room::new(Cadence::default(), &mut self.bodies), &mut events);
        events.iter().map(|(_, bytes)| CombatEvent::decode(bytes).unwrap()).collect()
    }

    /// The bits of the snapshot of the newest tick. The client has it at once, and says so.
    fn bits(&mut self) -> usize {
        let mut buffer = [0; 1_100];
        let mut bits = BitWriter::new(&mut buffer);
        self.bodies.write(&mut self.view, 8_800, &mut bits);
        let (written, length) = (bits.len_bits(), bits.finish().unwrap());
        let tick = self.bodies.tick();
        self.crowd.read(tick, &mut BitReader::new(&buffer[..length])).unwrap();
        assert!(self.view.acknowledge(tick));
        written
    }

    /// The machines whose input changed at the end of the newest tick, and the tanks that the world altered in it.
    fn changes(&self) -> (usize, usize) {
        let changed = self.bodies.records().filter(|(.., record)| record.held != record.input.last());
        let altered = self.bodies.records().filter(|(.., record)| record.course == Course::Altered);
        (changed.count(), altered.count())
    }
}

#[test]
fn changes_of_input_cost_bits_and_machines_that_go_on_cost_none() {
    // The base and its age, two flags of a room without turnover, three counts of zero, and the check.
    const STEADY: usize = 1 + 6 + 1 + 1 + 1 + 5 + 5 + 16;
    let mut bench = Bench::new(TankWorldConfig { machines: 40, ..world_config() });
    for _ in 0..3 {
        bench.tick();
        bench.bits();
    }
    let (mut steady, mut changed, mut bits) = (0, 0, 0);
    for _ in 0..400 {
        bench.tick();
        let ((changes, altered), written) = (bench.changes(), bench.bits());
        match (changes, altered) {
            (0, 0) => {
                assert_eq!(written, STEADY, "at tick {}", bench.bodies.tick());
                steady += 1;
            }
            (_, 0) => {
                // An input, and its place among forty.
                assert!(written <= STEADY + 6 + changes * 20, "{written} bits for {changes} changes");
                (changed, bits) = (changed + changes, bits + written - STEADY);
            }
            _ => assert!(written > STEADY),
        }
    }
    assert!(steady > 200 && changed > 500, "{steady} steady ticks, {changed} changes");
    assert!(bits < changed * 18, "{bits} bits for {changed} changes");
}

#[test]
fn machines_think_four_times_a_second_and_all_of_them_change_their_input() {
    let mut bench = Bench::new(world_config());
    let (mut ticks, mut movers) = (BTreeSet::new(), BTreeMap::<BodyId, u32>::new());
    for _ in 0..400 {
        bench.tick();
        for (id, _, record) in bench.bodies.records() {
            if record.held != record.input.last() {
                ticks.insert(bench.bodies.tick());
                *movers.entry(id).or_default() += 1;
            }
        }
    }
    assert!(ticks.len() <= 80, "twenty seconds have eighty thoughts: {}", ticks.len());
    assert_eq!(movers.len(), usize::from(MACHINES));
    assert!(movers.values().all(|changes| *changes > 5), "{movers:?}");
}

/// Every body: its id, its driver, and a hash of its state.
fn hashes<'a>(bodies: impl Iterator<Item = (BodyId, Driver, &'a Entity)>) -> Vec<(BodyId, Driver, u64)> {
    bodies.map(|(id, driver, tank)| (id, driver, tank.digest())).collect()
}

/// Plays the recording back: it does not differ, and ends with the bodies of the server.
fn assert_plays_back(rig: &Rig<TankWorld>) -> Scores {
    let (_, mut playback) = open_recording(rig.record.clone()).unwrap();
    let mut scores = Scores::default();
    while let Some(entry) = playback.next() {
        if matches!(entry, Entry::Tick | Entry::Left { .. }) {
            let events = playback.stage().events().iter();
            events.for_each(|(_, bytes)| scores.count(&CombatEvent::decode(bytes).unwrap()));
        }
        match entry {
            Entry::Joined { player, name, .. } => scores.joined(player, name),
            Entry::Left { player } => scores.left(player),
            _ => {}
        }
    }
    assert_eq!((playback.differs(), playback.recording().damage(), playback.refused()), (None, None, None));
    assert_eq!(playback.stage().tick(), rig.server.tick());
    assert_eq!(hashes(playback.stage().bodies()), hashes(rig.server.bodies()));
    scores
}

#[test]
fn a_recording_with_machines_plays_back_to_the_bit() {
    let mut rig =
        recorded(ServerConfig { body_key: [9; 16], ..ServerConfig::default() }, &world_config(), 2, 21);
    let (mut hands, mut live) = (Hands::all(2), BTreeMap::new());
    for milli in 0..60_000 {
        rig.run(ms(1), |seat, now, client| hands[seat].drive(now, client));
        live.entry(rig.server.tick()).or_insert_with(|| hashes(rig.server.bodies()));
        if milli == 40_000 {
            let now = rig.now;
            rig.seats[1].client.logout(now);
        }
    }
    let (_, mut playback) = open_recording(rig.record.clone()).unwrap();
    let mut compared = 0;
    while let Some(entry) = playback.next() {
        let live = live.get(&playback.stage().tick()).filter(|_| entry == Entry::Tick);
        if let Some(live) = live {
            assert_eq!(hashes(playback.stage().bodies()), *live, "tick {}", playback.stage().tick());
            compared += 1;
        }
    }
    assert!(compared > 1_150, "the bodies of {compared} ticks were compared");
    let scores = assert_plays_back(&rig);
    let ranked = scores.ranked();
    assert_eq!(ranked.len(), 2 + usize::from(MACHINES), "{ranked:?}");
    let played =
        |name: &str| ranked.iter().find(|score| score.name.as_str() == name).map(|score| score.shots);
    for id in machines(&rig.server) {
        let name = Fighter::Machine(id).machine_name().unwrap();
        assert!(played(&name).is_some_and(|shots| shots > 3), "{name}: {ranked:?}");
    }
}

/// A playback drives machines by their minds: their inputs and shots are not in the recording. Reports of the player that
/// they push, and of the events that it has, are.
#[test]
fn machines_take_next_to_no_bytes_of_a_recording() {
    let [without, with] = [0, 40].map(|machines| {
        let config = TankWorldConfig { machines, ..world_config() };
        let mut rig = recorded(ServerConfig::default(), &config, 1, 71);
        rig.run(Duration::from_secs(60), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
        assert_plays_back(&rig);
        rig.record.len()
    });
    assert!(with < without + 60 * 5, "{without} bytes without machines, {with} with them");
}

#[test]
fn a_server_goes_on_from_a_recording_with_machines() {
    let mut rig =
        recorded(ServerConfig { body_key: [9; 16], ..ServerConfig::default() }, &world_config(), 2, 31);
    let mut hands = Hands::all(2);
    play(&mut rig, &mut hands, 20, |_| ());
    for _ in 0..2 {
        let recording = Recording::open(rig.record.clone()).unwrap();
        let recovery = Recovery { run: [8; 16], rewound: false };
        let world = TankWorld::new(world_config()).unwrap();
        // Another key and another limit: those of the recording count.
        let config = ServerConfig { body_key: [1; 16], max_bodies: 3, ..ServerConfig::default() };
        let (server, read) = Server::recover(config, world, rig.now, recording, recovery).unwrap();
        assert_eq!(hashes(server.bodies()), hashes(rig.server.bodies()));
        assert_eq!((server.tick(), read.damage()), (rig.server.tick(), None));
        let before = machines(&server);
        rig.replace(server);
        play(&mut rig, &mut hands, 20, |rig| (0..2).for_each(|seat| _ = assert_decoded(rig, seat)));
        assert_eq!(machines(&rig.server), before, "the same machines");
        for seat in 0..2 {
            assert_eq!(rig.seats[seat].client.state(), SessionState::LoggedIn);
            assert_eq!(assert_decoded(&rig, seat), 8);
            assert_sound(&rig, seat);
        }
    }
    assert_plays_back(&rig);
}

/// A world that moves one machine by the smallest distance there is, once.
struct Changed {
    world: TankWorld,
    at: Tick,
    machine: BodyId,
}

impl World for Changed {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.world.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        self.world.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.world.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.world.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.world.resolve(room, events);
        if room.tick() == self.at {
            let tank = *room.body(self.machine).unwrap();
            room.alter(
                self.machine,
                Tank { x: tank.pose().x + Tank::GRID, ..tank.tank().copied().unwrap() }.into(),
                Causes::NONE,
            )
            .unwrap();
        }
    }

    fn digest(&self) -> u64 {
        self.world.digest()
    }
}

#[test]
fn a_machine_that_differs_in_a_playback_is_found_and_no_player_is_blamed() {
    let mut rig = recorded(ServerConfig::default(), &world_config(), 2, 41);
    let mut hands = Hands::all(2);
    play(&mut rig, &mut hands, 15, |_| ());
    let (mut all, mut soon) = (0, 0);
    for machine in machines(&rig.server) {
        for at in (20..240).step_by(20).map(Tick::new) {
            let recording = Recording::open(rig.record.clone()).unwrap();
            let changed = Changed { world: TankWorld::new(world_config()).unwrap(), at, machine };
            let mut playback = Playback::new(recording, changed).unwrap();
            while playback.next().is_some() {}
            // The whole hash of every second finds it at the latest, unless a wall has pushed the tank back.
            let Some(differs) = playback.differs() else { continue };
            all += 1;
            assert_eq!(differs.player, None, "from tick {at}: {differs:?}");
            assert!(differs.tick >= at && differs.tick.since(at) <= 20, "from tick {at}: {differs:?}");
            soon += u32::from(differs.tick.since(at) < 4);
        }
    }
    assert!(all >= 60 && soon * 10 >= all * 9, "{soon} of {all} within four ticks");
}

#[test]
fn a_round_gives_machines_fresh_tanks_and_one_of_them_can_win() {
    let rounds = RoundConfig { length: Duration::from_secs(20), pause: Duration::from_secs(2) };
    let mut bench = Bench::new(TankWorldConfig {
        rounds: Some(rounds),
        damage: 50,
        respawn_after: ms(5_000),
        ..world_config()
    });
    let (mut winners, mut fresh, mut wrecks, mut in_break) = (0, 0, 0, false);
    for _ in 0..10 * 22 * 20 {
        let before: BTreeMap<_, _> =
            bench.bodies.records().map(|(id, _, record)| (id, record.after)).collect();
        let told = bench.tick();
        bench.bits();
        for event in &told {
            match event {
                CombatEvent::Round { phase: Phase::Over { winner }, .. } => {
                    winners += u32::from(winner.is_some_and(is_machine));
                    in_break = true;
                }
                CombatEvent::Round { number, phase: Phase::Playing, .. } => {
                    in_break = false;
                    for (id, driver, record) in bench.bodies.records().filter(|_| *number > 1) {
                        assert_eq!(record.after.tank().unwrap().hp, Tank::MAX_HP, "{id}");
                        assert!(record.causes.contains(Cause::Respawn), "{id}: {:?}", record.causes);
                        let (then, now) = (before[&id], record.after);
                        assert!(
                            (then.pose().x - now.pose().x).hypot(then.pose().y - now.pose().y) > 1.0,
                            "{id}: a fresh place"
                        );
                        fresh += u32::from(driver == Driver::World);
                        wrecks += u32::from(!then.is_alive());
                    }
                }
                CombatEvent::Fired { .. } => assert!(!in_break, "guns are silent in a break"),
                _ => {}
            }
        }
    }
    assert_eq!(fresh, 9 * u32::from(MACHINES), "nine rounds after the first");
    assert!(winners > 3 && wrecks > 0, "{winners} machines won, {wrecks} wrecks");
}

#[test]
fn without_a_player_nothing_is_simulated_and_machines_stand_where_they_were() {
    let mut rig = recorded(ServerConfig::default(), &world_config(), 0, 51);
    rig.run(Duration::from_secs(5), |_, _, _| ());
    assert_eq!(rig.server.bodies().count(), 0, "machines come with the first player");
    rig.join(client_config("Ada"), BAD);
    let mut hands = Hands::all(1);
    play(&mut rig, &mut hands, 10, |_| ());
    assert_eq!(machines(&rig.server).len(), usize::from(MACHINES));
    let now = rig.now;
    rig.seats[0].client.logout(now);
    rig.run(Duration::from_secs(1), |_, _, _| ());
    let (asleep, tick, length) = (hashes(rig.server.bodies()), rig.server.tick(), rig.record.len());
    assert_eq!(asleep.len(), usize::from(MACHINES));
    rig.run(Duration::from_secs(600), |_, _, _| ());
    assert_eq!(hashes(rig.server.bodies()), asleep);
    assert_eq!((rig.server.tick().since(tick), rig.record.len()), (12_000, length));
    // They go on from there with the next player, and so does a playback.
    let now = rig.now;
    rig.seats[0].client.connect(now);
    while rig.server.players().next().is_none() {
        rig.run(ms(1), |_, _, _| ());
    }
    let woken = hashes(rig.server.bodies());
    assert_eq!(woken.len(), 1 + usize::from(MACHINES));
    assert!(asleep.iter().all(|body| woken.contains(body)), "nothing moves before a tick with a player");
    play(&mut rig, &mut hands, 10, |rig| _ = assert_decoded(rig, 0));
    assert_eq!(assert_decoded(&rig, 0), 1 + usize::from(MACHINES));
    let ids: BTreeSet<_> = asleep.iter().map(|(id, ..)| *id).collect();
    assert_eq!(machines(&rig.server).into_iter().collect::<BTreeSet<_>>(), ids, "the same machines");
    assert!(hashes(rig.server.bodies()).iter().all(|body| !asleep.contains(body)), "and they move");
    assert_sound(&rig, 0);
    assert_plays_back(&rig);
}

#[test]
fn a_full_room_has_fewer_machines_and_players_watch_until_there_is_a_tank_for_them() {
    let config = ServerConfig { max_bodies: 4, ..ServerConfig::default() };
    let rounds = Some(RoundConfig::default());
    let mut rig = recorded(config, &TankWorldConfig { rounds, ..world_config() }, 1, 61);
    let mut hands = Hands::all(5);
    play(&mut rig, &mut hands, 2, |_| ());
    assert_eq!(machines(&rig.server).len(), 3, "one place is Ada's");
    for name in ["Bob", "Cleo"] {
        rig.join(client_config(name), BAD);
    }
    play(&mut rig, &mut hands, 60, |rig| {
        (0..3).for_each(|seat| _ = assert_decoded(rig, seat));
        // A shot without a tank comes to nothing, and is no offence.
        let (tick, now) = (rig.server.tick(), rig.now);
        if tick.number().is_multiple_of(20) && rig.seats[1].client.state() == SessionState::LoggedIn {
            let shot = ShootInput { tick, at: 0, aim: 0, seen: Seen { snapshot: tick, before_micros: 0 } };
            rig.seats[1].client.order(now, &shot.encode()).unwrap();
        }
    });
    assert_eq!((rig.server.players().count(), rig.server.bodies().count()), (3, 4));
    for seat in 1..3 {
        let client = &rig.seats[seat].client;
        assert_eq!(client.state(), SessionState::LoggedIn);
        assert_eq!(
            (client.own().count(), client.predicted(), client.reconciler().is_some()),
            (0, None, false)
        );
        assert_eq!(rig.server.owned(client.player().unwrap()), []);
        // It sees the match: all four, drawn, with all their events.
        assert_eq!((assert_decoded(&rig, seat), client.remotes().iter().count()), (4, 4));
        let told = events(&rig, seat);
        assert!(told.iter().any(|event| matches!(event, CombatEvent::Hit { .. })));
        assert!(told.iter().any(|event| matches!(event, CombatEvent::Round { .. })), "the round");
        assert!(told.iter().any(|event| matches!(event, CombatEvent::Score { .. })), "scores");
        let stats = client.stats();
        assert!(stats.snapshots > 1_100, "{stats:?}");
        assert!(stats.full_requests < 5, "{stats:?}");
    }
    // A watcher acknowledges its snapshots, so they are as short as those of a player.
    let mean = |rig: &Rig<TankWorld>, seat: usize| {
        let seat = &rig.seats[seat];
        seat.bytes_down as f64 / seat.datagrams_down as f64
    };
    assert!(mean(&rig, 1) < mean(&rig, 0), "{} and {}", mean(&rig, 1), mean(&rig, 0));
    // A watcher leaves. Then the player with the tank does: its place is the other watcher's.
    let now = rig.now;
    rig.seats[2].client.logout(now);
    play(&mut rig, &mut hands, 2, |_| ());
    let now = rig.now;
    rig.seats[0].client.logout(now);
    play(&mut rig, &mut hands, 5, |_| ());
    assert_eq!((rig.server.players().count(), machines(&rig.server).len()), (1, 3));
    assert_eq!(assert_decoded(&rig, 1), 4);
    assert_eq!(rig.seats[1].client.own().count(), 1);
    assert!(rig.seats[1].client.reconciler().is_some_and(|own| own.visible().is_some()), "drawn");
    // It leaves the room to the machines, and Dora sees them.
    let now = rig.now;
    rig.join(client_config("Dora"), BAD);
    play(&mut rig, &mut hands, 2, |_| ());
    rig.seats[1].client.logout(now);
    play(&mut rig, &mut hands, 5, |_| ());
    assert_eq!(rig.seats[3].client.own().count(), 1);
    for seat in 0..3 {
        assert_sound(&rig, seat);
    }
    assert_plays_back(&rig);
}
