//! A whole match in memory: the real server and two real clients, ten simulated minutes on a bad network, with
//! collisions, shots, deaths and respawns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::room_rig::{Dice, Rig, Way, ms};
use halftrack::client::{Client, ClientConfig, ClientEvent};
use halftrack::server::{Command, CommandRefused, Events, Order, Room, ServerConfig, World};
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack::{
    BodyId, Cadence, Cause, Causes, CorrectionStats, PlayerId, PlayerName, Replay, SyncLink, Tick, Timestamp,
};
use tanks::{
    Arena, Axis, CombatEvent, Entity, Fighter, HULL_RADIUS, Hull, MoveParams, Ray, Seen, ShootInput, Tank,
    TankCommand, TankInput, TankPose, TankWorld, TankWorldConfig, Tanks,
};

fn arena() -> Arc<Arena> {
    Arc::new(Arena::proving_ground())
}

fn config(name: &str) -> ClientConfig<Tanks> {
    let rules = Arc::new(Tanks::new(arena()));
    ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), rules)
}

fn world() -> TankWorld {
    TankWorld::new(TankWorldConfig { arena: arena(), seed: 3, ..TankWorldConfig::default() }).unwrap()
}

/// A hundred milliseconds there and back, jitter and loss.
const MOBILE: Way =
    Way { delay: Duration::from_millis(42), jitter: Duration::from_millis(16), loss: 0.01, duplicate: 0.0 };

/// A player of the test: wanders for a while, then goes for the other and shoots.
struct Bot {
    dice: Dice,
    wish: TankInput,
    /// When it thinks again.
    next: Timestamp,
    next_shot: Timestamp,
    /// What it believes that its shots hit, in order.
    believed: Vec<(ShootInput, Option<Fighter>)>,
}

impl Bot {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed),
            wish: TankInput::NEUTRAL,
            next: Timestamp::ZERO,
            next_shot: Timestamp::ZERO,
            believed: vec![],
        }
    }

    fn drive(&mut self, now: Timestamp, client: &mut Client<Tanks>) {
        let (Some(own), Some(tank)) = (client.player(), client.predicted().copied()) else { return };
        // What is drawn is what it goes by; whether that is alive, the server says.
        let other = client.remotes().iter().next();
        let alive = |id| client.drawn(id).is_some_and(Entity::is_alive);
        let other = other.map(|other| {
            let fighter = Fighter::of(other.id, other.driver);
            (fighter, other.visible, other.state.is_alive() && alive(other.id))
        });
        assert!(other.is_none_or(|(other, ..)| other != own.into()));
        if now >= self.next {
            // Twice a second, at moments that fall anywhere.
            self.next = now + ms(100 + self.dice.below(800));
            let hunting = (now.as_micros() / 15_000_000).is_multiple_of(2);
            self.wish = match other {
                Some((_, prey, _)) if hunting => self.towards(tank.tank().unwrap(), &prey),
                _ => self.anywhere(),
            };
        }
        client.set_input(now, self.wish);
        if let Some((prey, drawn, true)) = other.filter(|_| now >= self.next_shot && tank.is_alive()) {
            self.next_shot = now + ms(520 + self.dice.below(400));
            self.shoot(now, client, prey, &drawn);
        }
    }

    fn anywhere(&mut self) -> TankInput {
        let mut axis = || Axis::from_level(self.dice.below(33) as i8 - 16);
        TankInput { turn: axis(), throttle: axis(), rocket: 0 }
    }

    fn towards(&mut self, tank: &Tank, prey: &TankPose) -> TankInput {
        let turn = bearing(tank, prey) - tank.heading;
        let turn = turn - turn.round();
        TankInput { turn: Axis::from_unit((turn * 8.0) as f32).unwrap(), throttle: Axis::FULL, rocket: 0 }
    }

    fn shoot(&mut self, now: Timestamp, client: &mut Client<Tanks>, prey: Fighter, drawn: &TankPose) {
        let (Some(reconciler), Some((snapshot, at))) = (client.reconciler(), client.seen()) else { return };
        let tank = reconciler.predicted();
        let seen = Seen::new(client.cadence(), snapshot, at);
        let (tick, at) = ShootInput::grid(client.cadence(), reconciler.predictor().time());
        let aim = ((bearing(tank.tank().unwrap(), drawn) * 65_536.0).round() as i64 & 0xffff) as u16;
        let shot = ShootInput { tick, at, aim, seen };
        let ray = Ray::new([tank.pose().x, tank.pose().y], aim);
        let reach = ray.to_arena(&arena()).min(TankWorldConfig::default().range);
        let distance = ray.to_hull(Hull { x: drawn.x, y: drawn.y });
        let hit = distance.is_some_and(|distance| distance <= reach).then_some(prey);
        if client.order(now, &shot.encode()).is_ok() {
            self.believed.push((shot, hit));
        }
    }
}

fn bearing(tank: &Tank, prey: &TankPose) -> f64 {
    (prey.y - tank.y).atan2(prey.x - tank.x) / std::f64::consts::TAU
}

/// Plays for so long; gives the rig and the bots.
fn play<W: World<Game = Tanks>>(world: W, seconds: u64, seed: u64) -> (Rig<W>, Vec<Bot>) {
    play_by(SyncLink::Present, world, seconds, seed)
}

fn play_by<W: World<Game = Tanks>>(
    sync_link: SyncLink,
    world: W,
    seconds: u64,
    seed: u64,
) -> (Rig<W>, Vec<Bot>) {
    let mut rig = Rig::new(ServerConfig::default(), world, seed);
    for name in ["Ada", "Bob"] {
        let seat = rig.join(config(name), MOBILE);
        rig.seats[seat].sync_link = sync_link;
    }
    let mut bots = vec![Bot::new(seed * 2 + 1), Bot::new(seed * 2 + 2)];
    rig.run(Duration::from_secs(seconds), |seat, now, client| bots[seat].drive(now, client));
    rig.run(Duration::from_secs(2), |_, now, client| client.set_input(now, TankInput::NEUTRAL));
    (rig, bots)
}

fn events<W: World>(rig: &Rig<W>, seat: usize) -> Vec<CombatEvent> {
    let told = rig.seats[seat].events.iter().filter_map(|event| match event {
        ClientEvent::Game(bytes) => Some(CombatEvent::decode(bytes).unwrap()),
        _ => None,
    });
    told.collect()
}

fn stats<W: World<Game = Tanks>>(rig: &Rig<W>, seat: usize) -> CorrectionStats {
    *rig.seats[seat].client.reconciler().unwrap().stats()
}

#[test]
fn ten_minutes_are_corrected_for_reasons_only_and_hits_agree() {
    let (rig, bots) = play(world(), 600, 11);
    let mut causes = [0u64; Cause::ALL.len()];
    for (seat, bot) in bots.iter().enumerate() {
        let stats = stats(&rig, seat);
        for ((_, count), all) in stats.by_cause().zip(&mut causes) {
            *all += count;
        }
        assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
        let client = &rig.seats[seat].client;
        assert_eq!(client.stats().check_failed, 0);
        // On-time input without interference: exactly zero. Nothing else is left unchanged.
        assert!(stats.unchanged > 10_000, "{stats:?}");

        // What the shooter believed to have hit is what the server found.
        let told = events(&rig, seat);
        let own = Fighter::from(client.player().unwrap());
        let (mut agreed, mut shots) = (0, 0);
        for (shot, believed) in &bot.believed {
            let fired = told.iter().any(|event| {
                matches!(event, CombatEvent::Fired { shooter, tick, at, .. } if (*shooter, *tick, *at) == (own, shot.tick, shot.at))
            });
            let hit = told.iter().find_map(|event| match event {
                CombatEvent::Hit { shooter, target, tick, at }
                    if (*shooter, *tick, *at) == (own, shot.tick, shot.at) =>
                {
                    Some(*target)
                }
                _ => None,
            });
            shots += usize::from(fired);
            agreed += usize::from(fired && hit == *believed);
        }
        // The few that do not agree were fired while being pushed, or at somebody who died meanwhile.
        assert!(shots > 500 && agreed * 1_000 >= shots * 995, "{agreed} of {shots} shots");
    }
    // Everybody hears the same, but for what is a player's own business.
    let public = |seat| {
        let told = events(&rig, seat).into_iter();
        told.filter(|event| !matches!(event, CombatEvent::ShootRejected { .. })).collect::<Vec<_>>()
    };
    assert_eq!(public(0), public(1));
    let count = |wanted: fn(&CombatEvent) -> bool| public(0).iter().filter(|event| wanted(event)).count();
    let deaths = count(|event| matches!(event, CombatEvent::Death { .. }));
    let respawns = count(|event| matches!(event, CombatEvent::Respawn { .. }));
    assert!(deaths > 5 && respawns > 5, "{deaths} deaths, {respawns} respawns");
    let named: Vec<_> = Cause::ALL.iter().zip(causes).collect();
    for cause in [Cause::Collision, Cause::Respawn] {
        assert!(causes[cause as usize] > 0, "{named:?}");
    }
}

#[test]
fn lane_05_a_match_without_a_sync_link_is_the_same_game() {
    let (rig, _) = play_by(SyncLink::Absent, world(), 90, 3);
    for seat in 0..2 {
        assert_eq!(rig.seats[seat].datagrams_down, 0);
        let stats = stats(&rig, seat);
        assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
        assert!(stats.unchanged > 1_000, "{stats:?}");
        let told = events(&rig, seat);
        let hits = told.iter().filter(|event| matches!(event, CombatEvent::Hit { .. })).count();
        assert!(hits > 5, "{hits} hits");
    }
}

/// The server moves tanks by rules that the client does not have: a millimetre now and then, and says nothing.
struct Drifting(TankWorld);

impl World for Drifting {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.0.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        self.0.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.0.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.0.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.0.resolve(room, events);
        let tanks: Vec<_> = room.bodies().map(|(id, _, tank)| (id, *tank)).collect();
        for (id, tank) in tanks {
            if room.tick().number().is_multiple_of(40) && tank.is_alive() {
                room.alter(
                    id,
                    Tank { x: tank.pose().x + Tank::GRID, ..tank.tank().copied().unwrap() }.into(),
                    Causes::NONE,
                )
                .unwrap();
            }
        }
    }
}

#[test]
fn a_wrong_rule_on_one_side_is_unexplained() {
    let (rig, _) = play(Drifting(world()), 60, 11);
    let unexplained: u64 = (0..2).map(|seat| stats(&rig, seat).of(Cause::Unexplained)).sum();
    assert!(unexplained > 10, "{:?}", stats(&rig, 0));
}

fn seat_of<W: World<Game = Tanks>>(rig: &Rig<W>, player: PlayerId) -> usize {
    rig.seats.iter().position(|seat| seat.client.player() == Some(player)).unwrap()
}

#[test]
fn server_08_dead_tanks_do_not_move_whatever_they_send() {
    let (mut rig, _) = play(world(), 1, 5);
    let full = TankInput { turn: Axis::ZERO, throttle: Axis::FULL, rocket: 0 };
    let mut dead = None;
    let mut bots = [Bot::new(1), Bot::new(2)];
    for _ in 0..1_200 {
        rig.run(ms(100), |seat, now, client| bots[seat].drive(now, client));
        let wreck = rig.server.bodies().find(|(.., tank)| !tank.is_alive());
        dead = wreck.map(|(id, driver, tank)| (id, driver.player().unwrap(), *tank));
        if dead.is_some() {
            break;
        }
    }
    let (id, player, wreck) = dead.expect("somebody is shot within two minutes");
    let seat = seat_of(&rig, player);
    rig.run(ms(2_000), |_, now, client| client.set_input(now, full));
    let stands = *rig.server.body(id, rig.server.tick()).unwrap();
    assert_eq!(
        (stands.pose().x, stands.pose().y, stands.pose().heading),
        (wreck.pose().x, wreck.pose().y, wreck.pose().heading)
    );
    // And the client predicts just that.
    assert_eq!(rig.seats[seat].client.predicted().unwrap().pose(), wreck.pose());
}

/// The changes of a tank in a tick, found by comparing the tank before and after, without the server's flags.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Happened {
    died: bool,
    came_back: bool,
    was_moved: bool,
    other_params: bool,
    /// It ended its move elsewhere than it would have alone in the arena.
    was_pushed: bool,
    /// Metres to the nearest other tank when the tick began.
    nearest: f64,
}

/// The tank game, and a log of [`Happened`] for each tank and tick.
struct Witness {
    world: TankWorld,
    before: BTreeMap<BodyId, Tank>,
    happened: BTreeMap<(BodyId, Tick), Happened>,
}

impl Witness {
    /// Whether others pushed a tank while it moved through the newest tick, and how near the nearest was.
    fn contact(&self, id: BodyId, room: &Room<'_, Tanks>) -> (bool, f64) {
        let start = self.before[&id];
        let record = room.history(id).unwrap().get(room.tick()).unwrap();
        let mut alone = Replay::new(&**self.world.rules(), room.cadence(), room.tick(), &[], start.into());
        alone.tick(&record.input);
        let others = self.before.iter().filter(|(other, _)| **other != id);
        let far = others.map(|(_, other)| (other.x - start.x).hypot(other.y - start.y));
        (*alone.body() != record.after, far.fold(f64::INFINITY, f64::min))
    }
}

impl World for Witness {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.world.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        self.world.join(player, login, room);
        let (id, tank) = room.body_of(player).unwrap();
        self.before.insert(id, (*tank).tank().copied().unwrap());
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.before.remove(&room.body_of(player).unwrap().0);
        self.world.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.world.order(order)
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        self.world.command(command)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let moved: Vec<_> = room.bodies().map(|(id, _, tank)| (id, *tank, self.contact(id, room))).collect();
        self.world.resolve(room, events);
        for (id, moved, (was_pushed, nearest)) in moved {
            let after = *room.body(id).unwrap();
            let came_back = !moved.is_alive() && after.is_alive();
            let happened = Happened {
                died: moved.is_alive() && !after.is_alive(),
                came_back,
                was_moved: !came_back && after.pose() != moved.pose(),
                other_params: after.tank().unwrap().params != moved.tank().unwrap().params,
                was_pushed,
                nearest,
            };
            self.happened.insert((id, room.tick()), happened);
            self.before.insert(id, after.tank().copied().unwrap());
        }
    }
}

/// Each accepted state names exactly the changes of its tick: none is missing, none is made up.
#[test]
fn server_09_each_state_names_the_collision_death_respawn_teleport_or_params_of_its_tick() {
    let witness = Witness { world: world(), before: BTreeMap::new(), happened: BTreeMap::new() };
    let mut rig = Rig::new(ServerConfig::default(), witness, 9);
    for name in ["Ada", "Bob"] {
        rig.join(config(name), Way::delayed(ms(20)));
    }
    let mut bots = [Bot::new(19), Bot::new(20)];
    let mut newest = [None; 2];
    let (mut states, mut counts, mut pushed) = (0, [0; 5], 0);
    // A state comes every 50 ms and is looked at before the next one comes.
    for step in 0..30_100u32 {
        rig.run(ms(5), |seat, now, client| bots[seat].drive(now, client));
        if step % 1_000 == 999 {
            let player = rig.seats[(step / 1_000 % 2) as usize].client.player().unwrap();
            let round = f64::from(step / 1_000);
            let teleport = TankCommand::Teleport { player, x: -40.0 + 2.0 * round, y: 28.0, heading: 0.1 };
            let params = MoveParams::new(6.0 + 0.1 * round, 0.3).unwrap();
            for command in [teleport, TankCommand::SetParams { player, params }] {
                rig.server.command(&command.encode()).unwrap();
            }
        }
        for (seat, newest) in newest.iter_mut().enumerate() {
            let client = &rig.seats[seat].client;
            let Some(baseline) = client.reconciler().map(|reconciler| reconciler.predictor().baseline())
            else {
                continue;
            };
            let previous = newest.replace(baseline.tick);
            if previous == *newest || previous.is_none() {
                continue;
            }
            assert_eq!(previous.map(Tick::next), *newest, "states of all ticks are looked at");
            let (player, causes) = (client.player().unwrap(), baseline.own.causes);
            let (id, ..) = client.own().next().unwrap();
            let happened = rig.server.world().happened[&(id, baseline.tick)];
            let place =
                format!("player {player:?}, tick {}: {causes:?}, {happened:?}", baseline.tick.number());
            // A respawn hides a teleport in the same tick.
            let was_moved =
                if happened.came_back { causes.contains(Cause::Teleport) } else { happened.was_moved };
            let told = [
                (Cause::Death, happened.died),
                (Cause::Respawn, happened.came_back),
                (Cause::Teleport, was_moved),
                (Cause::Params, happened.other_params),
            ];
            for (cause, truth) in told {
                assert_eq!(causes.contains(cause), truth, "{cause}: {place}");
            }
            let collision = causes.contains(Cause::Collision);
            assert!(collision || !happened.was_pushed, "a push is a collision: {place}");
            assert!(!collision || happened.nearest < 2.0 * HULL_RADIUS + 1.0, "nobody was near: {place}");
            states += 1;
            pushed += u32::from(happened.was_pushed);
            let all = told.map(|(_, truth)| truth).into_iter().chain([collision]);
            counts.iter_mut().zip(all).for_each(|(count, truth)| *count += u32::from(truth));
        }
    }
    let [deaths, respawns, teleports, params, collisions] = counts;
    let summary = format!("{counts:?}, {pushed} pushes in {states} states");
    assert!(states > 5_900 && deaths > 5 && respawns > 5 && collisions >= pushed && pushed > 50, "{summary}");
    // Thirty of each were asked for.
    assert!(teleports >= 25 && params >= 25, "{summary}");
}

#[test]
fn server_10_hit_points_are_in_the_later_states() {
    let mut rig = Rig::new(ServerConfig::default(), world(), 4);
    for name in ["Ada", "Bob"] {
        rig.join(config(name), MOBILE);
    }
    let mut bots = [Bot::new(21), Bot::new(22)];
    let (mut checked, mut seen) = (0, [0, 0]);
    for _ in 0..600 {
        rig.run(ms(100), |seat, now, client| bots[seat].drive(now, client));
        for (seat, seen) in seen.iter_mut().enumerate() {
            let told = events(&rig, seat);
            // The newest word on each player, by event, is what a state of that tick or a later one says.
            for event in told.get(*seen..).unwrap_or_default() {
                if let CombatEvent::DamageApplied { target, hp, tick, .. } = event
                    && let Some((id, _)) = rig.seats[seat].client.bodies_of(target.player().unwrap()).next()
                    && let Some((at, state)) = rig.seats[seat].client.authoritative(id)
                    && at == *tick
                {
                    assert_eq!(state.tank().unwrap().hp, *hp);
                    checked += 1;
                }
            }
            *seen = told.len();
            for (id, _, tank) in rig.server.bodies() {
                if let Some((at, state)) = rig.seats[seat].client.authoritative(id) {
                    let truth = rig.server.body(id, at).map(|tank| tank.tank().unwrap().hp);
                    assert_eq!(Some(state.tank().unwrap().hp), truth, "{tank:?}");
                }
            }
        }
    }
    assert!(checked > 3, "{checked}");
}

#[test]
fn teleports_and_parameters_snap_or_settle_and_leave_no_error() {
    let (mut rig, _) = play(world(), 2, 5);
    let player = rig.server.players().next().unwrap();
    let seat = seat_of(&rig, player);
    let drive = TankInput { turn: Axis::ZERO, throttle: Axis::FULL, rocket: 0 };
    for round in 0..40 {
        let place = [(-40.0, -28.0), (40.0, 28.0), (-40.0, 28.0)][round % 3];
        let teleport = TankCommand::Teleport { player, x: place.0, y: place.1, heading: 0.1 };
        rig.server.command(&teleport.encode()).unwrap();
        rig.run(ms(400), |_, now, client| client.set_input(now, drive));
        let params = MoveParams::new(4.0 + (round % 5) as f64, 0.3).unwrap();
        rig.server.command(&TankCommand::SetParams { player, params }.encode()).unwrap();
        rig.run(ms(1_200), |_, now, client| client.set_input(now, drive));
        let now = rig.now;
        let client = &mut rig.seats[seat].client;
        client.frame(now);
        let reconciler = client.reconciler().unwrap();
        assert_eq!(
            reconciler.visible().copied(),
            Some(reconciler.predicted().pose()),
            "round {round}: nothing is left of it"
        );
    }
    let stats = stats(&rig, seat);
    assert!(stats.of(Cause::Teleport) >= 39, "{stats:?}");
    assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
}
