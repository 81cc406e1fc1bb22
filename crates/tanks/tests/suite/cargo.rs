//! Crates and platforms: pushed, carried, never inside a wall, and for a lone player predicted to the bit.

use std::sync::Arc;
use std::time::Duration;

use crate::range::{Range, forward, open_ground};
use crate::room_rig::{Dice, Rig, Way, ms};
use halftrack::client::ClientConfig;
use halftrack::server::ServerConfig;
use halftrack::{BodyId, Cadence, Cause, Causes, CorrectionStats, Driver, PlayerId, PlayerName};
use tanks::{
    Arena, Crate, Entity, HULL_RADIUS, Obstacle, Platform, Tank, TankCommand, TankInput, TankWorld,
    TankWorldConfig, Tanks,
};

fn place(range: &Range, id: BodyId) -> [f64; 2] {
    let pose = range.bodies.history(id).expect("is there").latest().pose();
    [pose.x, pose.y]
}

fn put(range: &mut Range, body: impl Into<Entity>) -> BodyId {
    range.bodies.spawn(Driver::Nothing, body.into()).expect("there is room")
}

#[test]
fn a_crate_rests_to_the_bit_until_it_is_pushed_and_slows_the_tank() {
    let mut range = Range::new(open_ground());
    let player = range.join_at(0.0, 0.0, 0.0);
    let id = put(&mut range, Crate::new(6.0, 0.0));
    range.quiet(40);
    assert_eq!(place(&range, id), [6.0, 0.0]);
    range.inputs.insert(player, forward());
    range.quiet(40);
    let (tank, crated) = (range.tank(player), place(&range, id));
    // 3 m at 8 m/s, and the rest at 40 % of that.
    assert!((8.0..9.0).contains(&tank.x), "{tank:?}");
    assert!(crated[0] > tank.x + 2.0, "{crated:?}");
    range.inputs.insert(player, TankInput::NEUTRAL);
    range.quiet(20);
    let rests = place(&range, id);
    range.quiet(40);
    assert_eq!(place(&range, id), rests);
    let way = (rests[0] - range.tank(player).x).hypot(rests[1] - range.tank(player).y);
    assert!(way > 2.0 * HULL_RADIUS - 0.01, "{way}");
}

#[test]
fn a_crate_at_a_wall_stops_a_tank() {
    let mut range = Range::new(open_ground());
    let player = range.join_at(40.0, 0.0, 0.0);
    let id = put(&mut range, Crate::new(46.0, 0.0));
    range.inputs.insert(player, forward());
    range.quiet(100);
    let (tank, [x, _]) = (range.tank(player), place(&range, id));
    assert!(x <= 50.0 - HULL_RADIUS && x - tank.x > 2.2, "{tank:?} behind a crate at {x}");
}

/// Tanks push crates wherever they want, at any cadence.
#[test]
fn crates_never_end_inside_walls() {
    for cadence in [16_667, 50_000, 200_000] {
        let cadence = Cadence::new(Duration::from_micros(cadence)).unwrap();
        let obstacles = vec![
            Obstacle::Block { min: [-1.0, -6.0], max: [-0.8, 6.0] },
            Obstacle::Pillar { center: [7.0, 3.0], radius: 1.0 },
        ];
        let arena = Arc::new(Arena::new([28.0, 22.0], obstacles).unwrap());
        let config = TankWorldConfig { arena: Arc::clone(&arena), crates: 6, platforms: 1, ..open_ground() };
        let mut range = Range::with(config, cadence);
        let players: Vec<_> = (0..4).map(|_| range.join()).collect();
        let (mut dice, mut moved) = (Dice(5), 0.0);
        let mut last = vec![];
        for tick in 0..3_000 {
            if tick % 20 == 0 {
                for player in &players {
                    let turn = (dice.unit() * 2.0 - 1.0) as f32;
                    range.inputs.insert(*player, TankInput::from_unit(turn, 1.0).unwrap());
                }
            }
            range.tick();
            let crates: Vec<_> = range
                .bodies
                .records()
                .filter_map(|(.., record)| record.after.as_crate().map(|cargo| [cargo.x, cargo.y]))
                .collect();
            assert_eq!(crates.len(), 6);
            for at in &crates {
                assert!(arena.clearance(*at) >= HULL_RADIUS, "{at:?} at tick {tick}");
            }
            let ways = crates
                .iter()
                .zip(&last)
                .map(|(now, then): (&[f64; 2], &[f64; 2])| (now[0] - then[0]).hypot(now[1] - then[1]));
            moved += ways
                .inspect(|way| {
                    let most = (4.0 + Platform::TOP_SPEED) * cadence.interval().as_secs_f64() + 0.01;
                    assert!(*way <= most, "{way} m in a tick");
                })
                .sum::<f64>();
            last = crates;
        }
        assert!(moved > 20.0, "they were pushed {moved} m");
    }
}

#[test]
fn what_stands_on_a_platform_goes_with_it_and_never_drifts() {
    let mut range = Range::new(open_ground());
    let player = range.join_at(0.0, 0.0, 0.125);
    let ferry = Platform::new([-10.0, 0.0], [10.0, 4.0], 12_000_000);
    let now = range.now();
    let carrier = put(&mut range, ferry.moved_to(now));
    let [x, y] = place(&range, carrier);
    range.bodies.alter(range.id(player), Tank::new(x + 1.0, y - 1.0, 0.125).into(), Causes::NONE).unwrap();
    let cargo = put(&mut range, Crate::new(x - 2.5, y + 1.5));
    for _ in 0..3_000 {
        range.quiet(1);
        let [x, y] = ferry.at(range.now());
        assert_eq!(place(&range, carrier), [x, y], "it keeps its timetable");
        let tank = range.tank(player);
        assert_eq!([tank.x - x, tank.y - y], [1.0, -1.0]);
        let at = place(&range, cargo);
        assert_eq!([at[0] - x, at[1] - y], [-2.5, 1.5]);
    }
}

const LINKS: [Way; 2] = [
    Way { delay: Duration::from_millis(20), jitter: Duration::from_millis(3), loss: 0.0, duplicate: 0.0 },
    Way { delay: Duration::from_millis(50), jitter: Duration::from_millis(5), loss: 0.0, duplicate: 0.0 },
];

fn rig_of(config: &TankWorldConfig, way: Way) -> Rig<TankWorld> {
    let mut rig = Rig::new(ServerConfig::default(), TankWorld::new(config.clone()).unwrap(), 5);
    let rules = Tanks::new(Arc::clone(&config.arena)).into();
    rig.join(ClientConfig::new(PlayerName::new("Ada").unwrap(), Cadence::default(), rules), way);
    rig
}

/// The player that is alone in the room.
fn player(rig: &Rig<TankWorld>) -> PlayerId {
    rig.server.players().next().expect("is in")
}

fn teleport(rig: &mut Rig<TankWorld>, x: f64, y: f64, heading: f64) {
    let player = player(rig);
    rig.server.command(&TankCommand::Teleport { player, x, y, heading }.encode()).unwrap();
    rig.run(ms(1_500), |_, _, _| ());
}

/// Corrections so far of the own tank, and of the bodies that are predicted with it: those that changed anything.
fn corrected(rig: &Rig<TankWorld>) -> (u64, u64) {
    let changed = |stats: &CorrectionStats| stats.negligible + stats.eased + stats.snapped;
    let client = &rig.seats[0].client;
    (changed(&client.reconciler().unwrap().corrections()), changed(&client.group_corrections()))
}

/// Ticks in which the server had to make up input, or took it later than it was meant.
fn late(rig: &Rig<TankWorld>) -> u64 {
    rig.seats[0].client.stats().held
}

fn found(rig: &Rig<TankWorld>, what: impl Fn(&Entity) -> bool) -> (BodyId, Entity) {
    let found = rig.server.bodies().find(|(.., body)| what(body)).expect("there is one");
    (found.0, *found.2)
}

/// The player gets onto a platform and drives around on it, and is carried.
#[test]
fn a_rider_is_corrected_by_exactly_zero_and_stays_on_the_platform() {
    for way in LINKS {
        let config = TankWorldConfig { platforms: 1, ..TankWorldConfig::default() };
        let mut rig = rig_of(&config, way);
        rig.run(ms(3_000), |_, _, _| ());
        let (_, body) = found(&rig, |body| body.platform().is_some());
        let ferry = *body.platform().unwrap();
        let cadence = Cadence::default();
        let at = ferry.at(cadence.end_of(rig.server.tick().next()));
        teleport(&mut rig, at[0], at[1], 0.3);
        let (before, held) = (corrected(&rig), late(&rig));
        let mut rode = 0;
        for step in 0..3_000u32 {
            rig.run(ms(10), |_, now, client| {
                // Turns all the time, and drives a little to and fro.
                let throttle = if step / 40 % 2 == 0 { 0.1 } else { -0.1 };
                client.set_input(now, TankInput::from_unit(0.5, throttle).unwrap());
            });
            let (_, tank) = found(&rig, |body| body.tank().is_some());
            let [x, y] = ferry.at(cadence.end_of(rig.server.tick()));
            assert!(
                (tank.pose().x - x).abs() <= Platform::HALF && (tank.pose().y - y).abs() <= Platform::HALF,
                "it fell off at step {step}"
            );
            rode +=
                u32::from(rig.seats[0].client.group().any(|member| member.predicted().platform().is_some()));
        }
        assert_eq!((corrected(&rig), late(&rig)), (before, held), "{way:?}");
        assert!(rode > 2_900, "the platform is predicted with it: {rode}");
    }
}

/// The player pushes a crate around, into walls and along them.
#[test]
fn a_lone_pusher_is_corrected_by_exactly_zero() {
    for way in LINKS {
        let config = TankWorldConfig { crates: 3, ..TankWorldConfig::default() };
        let mut rig = rig_of(&config, way);
        rig.run(ms(3_000), |_, _, _| ());
        let (id, cargo) = found(&rig, |body| body.as_crate().is_some());
        let start = cargo.pose();
        let (before, held) = (corrected(&rig), late(&rig));
        let (mut pushed, mut last) = (0.0, start);
        for _ in 0..6_000 {
            rig.run(ms(10), |_, now, client| {
                let Some(tank) = client.predicted().and_then(Entity::tank).copied() else { return };
                let to = client.crowd().body(id).map_or(start, |history| history.latest().pose());
                let bearing = (to.y - tank.y).atan2(to.x - tank.x) / std::f64::consts::TAU;
                let error = bearing - tank.heading;
                let error = error - error.round();
                let throttle = if error.abs() < 0.1 { 1.0 } else { 0.2 };
                client.set_input(now, TankInput::from_unit((error * 8.0) as f32, throttle).unwrap());
            });
            let here = rig.server.body(id, rig.server.tick()).unwrap().pose();
            pushed += (here.x - last.x).hypot(here.y - last.y);
            last = here;
        }
        println!("pushed {pushed:.1} m; {:?}", rig.seats[0].client.group_corrections());
        assert!(pushed > 5.0, "{pushed} m");
        assert_eq!((corrected(&rig), late(&rig)), (before, held), "{way:?}");
        let stats = rig.seats[0].client.group_corrections();
        assert_eq!(stats.causes.of(Cause::Unexplained), 0, "{stats:?}");
        assert!(stats.unchanged > 500, "it was predicted: {stats:?}");
    }
}

/// Crates and platforms cost no bits while nobody touches them.
#[test]
fn a_room_with_things_costs_no_more_than_one_without() {
    let steady = |crates, platforms| {
        let mut rig =
            rig_of(&TankWorldConfig { crates, platforms, ..TankWorldConfig::default() }, Way::IDEAL);
        rig.run(ms(5_000), |_, _, _| ());
        let before = rig.seats[0].bytes_down;
        rig.run(ms(10_000), |_, _, _| ());
        rig.seats[0].bytes_down - before
    };
    let (without, with) = (steady(0, 0), steady(20, 2));
    // A byte here and there: counts of more bodies, and ids where joint sections begin.
    assert!(with <= without + 400, "{with} bytes with, {without} without");
}

#[test]
fn crates_and_platforms_come_once_and_where_there_is_room() {
    let mut range = Range::new(TankWorldConfig { crates: 12, platforms: 3, ..TankWorldConfig::default() });
    range.join();
    range.quiet(3);
    let all: Vec<Entity> = range.bodies.records().map(|(.., record)| record.after).collect();
    assert_eq!(all.iter().filter(|body| body.as_crate().is_some()).count(), 12);
    assert_eq!(all.iter().filter(|body| body.platform().is_some()).count(), 3);
    let hulls: Vec<_> = all.iter().filter(|body| body.platform().is_none()).map(|body| body.pose()).collect();
    for (nth, one) in hulls.iter().enumerate() {
        assert!(
            hulls[..nth].iter().all(|other| (one.x - other.x).hypot(one.y - other.y) > 3.0 * HULL_RADIUS)
        );
    }
}
