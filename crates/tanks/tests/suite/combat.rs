//! Shots, deaths and respawns, as the server decides them.

use std::sync::Arc;
use std::time::Duration;

use crate::range::{Range, Told, aim, forward, hits, open_ground, rejection, turns_to_aim};
use halftrack::server::{Audience, World};
use halftrack::snapshot::{Bodies, Crowd, View};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{Cadence, Cause, PlayerId, Tick};
use tanks::{
    Arena, CombatEvent, Fighter, HULL_RADIUS, MoveParams, Obstacle, Phase, Rejection, RoundConfig, Seen,
    ShootInput, Tank, TankInput, TankWorld, TankWorldConfig, Tanks, WorldError,
};

const EAST: u16 = 0;
const NORTH: u16 = 16_384;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Two tanks that have stood for a second, twenty metres apart, one east of the other.
fn duel(config: TankWorldConfig) -> (Range, PlayerId, PlayerId) {
    let mut range = Range::new(config);
    let players = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, 0.0, 0.25));
    range.quiet(20);
    (range, players.0, players.1)
}

#[test]
fn combat_01_a_valid_shot_hits_damages_and_kills() {
    let (mut range, shooter, target) = duel(open_ground());
    for (shot, hp) in [75, 50, 25, 0].into_iter().enumerate() {
        let tick = range.newest().next();
        let told = range.shoot(shooter, EAST);
        let [(Audience::All, fired), (Audience::All, hit), (Audience::All, damage), ..] = told.as_slice()
        else {
            panic!("shot {shot}: {told:?}");
        };
        let CombatEvent::Fired { reach, .. } = *fired else { panic!("{fired:?}") };
        let by = Fighter::from(shooter);
        assert_eq!(*fired, CombatEvent::Fired { shooter: by, tick, at: 0, aim: EAST, reach });
        assert_eq!(reach.metres(), 20.0 - HULL_RADIUS);
        let whom = Fighter::from(target);
        assert_eq!(*hit, CombatEvent::Hit { shooter: by, target: whom, tick, at: 0 });
        assert_eq!(*damage, CombatEvent::DamageApplied { target: whom, amount: 25, hp, tick });
        assert_eq!(range.tank(target).hp, hp);
        if hp == 0 {
            assert_eq!(told[3..], [(Audience::All, CombatEvent::Death { fighter: whom, by, tick })]);
        } else {
            assert_eq!(told.len(), 3);
            range.quiet(9);
        }
    }
}

#[test]
fn the_last_shot_takes_no_more_than_there_is() {
    let (mut range, shooter, target) = duel(TankWorldConfig { damage: 60, ..open_ground() });
    let [first, second] = [40, 0].map(|hp| {
        let told = range.shoot(shooter, EAST);
        range.quiet(9);
        assert_eq!(range.tank(target).hp, hp);
        told
    });
    assert!(matches!(first[2].1, CombatEvent::DamageApplied { amount: 60, hp: 40, .. }), "{first:?}");
    assert!(matches!(second[2].1, CombatEvent::DamageApplied { amount: 40, hp: 0, .. }), "{second:?}");
}

#[test]
fn a_shot_that_meets_nobody_is_told_all_the_same() {
    let (mut range, shooter, target) = duel(TankWorldConfig { range: 30.0, ..open_ground() });
    let told = range.shoot(shooter, NORTH);
    let [(Audience::All, CombatEvent::Fired { reach, .. })] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(reach.metres(), 30.0);
    assert_eq!(range.tank(target).hp, Tank::MAX_HP);
    // Range ends where it ends: at 18.5 m is the hull.
    for (metres, hit) in [(18.5, 1), (18.499, 0)] {
        let (mut range, shooter, _) = duel(TankWorldConfig { range: metres, ..open_ground() });
        assert_eq!(hits(&range.shoot(shooter, EAST)).len(), hit, "{metres} m");
    }
}

#[test]
fn walls_stop_shots_and_wrecks_do_not() {
    let block = Obstacle::Block { min: [10.0, -1.0], max: [11.0, 1.0] };
    let arena = Arc::new(Arena::new([100.0, 100.0], vec![block]).unwrap());
    let (mut range, shooter, _) = duel(TankWorldConfig { arena, ..open_ground() });
    assert_eq!(hits(&range.shoot(shooter, EAST)), []);

    let mut range = Range::new(TankWorldConfig { damage: 100, ..open_ground() });
    let shooter = range.join_at(0.0, 0.0, 0.0);
    let [near, far] = [range.join_at(20.0, 0.0, 0.0), range.join_at(30.0, 0.0, 0.0)];
    range.quiet(20);
    assert_eq!(hits(&range.shoot(shooter, EAST)), [near]);
    range.quiet(9);
    assert_eq!(hits(&range.shoot(shooter, EAST)), [far], "through the wreck");
}

#[test]
fn a_shot_leaves_from_where_the_shooter_is_at_that_moment() {
    let mut range = Range::new(open_ground());
    let shooter = range.join_at(0.0, 0.0, 0.0);
    range.inputs.insert(shooter, forward());
    range.quiet(20);
    for (ahead, at) in [(1, 0), (1, 128), (1, 255), (-2, 77)] {
        let mut range = range.clone();
        let shot = range.shot(ahead, at, EAST);
        range.order(shooter, &shot);
        let told = range.tick();
        let x = range.tank_at(shooter, shot.moment(Cadence::default())).x;
        let [(_, CombatEvent::Fired { reach, .. })] = told.as_slice() else { panic!("{told:?}") };
        assert!((reach.metres() - (50.0 - x)).abs() <= 1.0 / 64.0, "at {at}: {} from {x}", reach.metres());
    }
}

/// The outcome of one shot, `ahead` ticks after the newest, in a copy of the range.
fn outcome(range: &Range, player: PlayerId, shot: &ShootInput) -> Option<Rejection> {
    let mut range = range.clone();
    range.order(player, shot);
    let told = range.ticks(shot.tick.since(range.newest()).clamp(1, 40));
    rejection(&told)
}

#[test]
fn combat_02_each_way_to_be_rejected_says_why() {
    let (mut range, shooter, _) = duel(open_ground());
    let shot = range.shot(1, 0, NORTH);
    let newest = range.newest();
    let by = |tick: u32, at: u8| {
        let snapshot = newest.min(Tick::new(tick - 1));
        ShootInput { tick: Tick::new(tick), at, seen: Seen { snapshot, before_micros: 0 }, ..shot }
    };
    let claim = |snapshot: Tick, before_micros| ShootInput { seen: Seen { snapshot, before_micros }, ..shot };
    let next = newest.number() + 1;
    let unsent = Tick::new(newest.number() - 64);
    // Each pair: just inside, just outside.
    let table = [
        (by(next, 0), None),
        // Looked at at the end of `next`: 500 ms before is the start of the tick nine before it.
        (by(next - 9, 0), None),
        (by(next - 10, 255), Some(Rejection::TooLate)),
        (by(next - 18, 0), Some(Rejection::TooLate)),
        (by(next + 21, 0), None),
        (by(next + 21, 1), Some(Rejection::TooEarly)),
        (by(u32::MAX, 255), Some(Rejection::TooEarly)),
        (claim(newest, 300_000), None),
        (claim(newest, 300_001), Some(Rejection::ClaimInvalid)),
        (claim(newest, u32::MAX), Some(Rejection::ClaimInvalid)),
        (claim(newest.next(), 0), Some(Rejection::ClaimInvalid)),
        (claim(unsent, 0), Some(Rejection::ClaimInvalid)),
        // A snapshot is there from the end of its tick on: not for a shot before that, whatever is drawn of it.
        (ShootInput { tick: newest.next(), at: 0, ..claim(newest, 0) }, None),
        (ShootInput { tick: newest, at: 255, ..claim(newest, 0) }, Some(Rejection::ClaimInvalid)),
        (ShootInput { tick: newest, at: 255, ..claim(newest, 100_000) }, Some(Rejection::ClaimInvalid)),
    ];
    for (shot, expected) in table {
        assert_eq!(outcome(&range, shooter, &shot), expected, "{shot:?} after {newest}");
    }

    assert_eq!(rejection(&range.shoot(shooter, NORTH)), None);
    let fired = range.newest().number();
    for (shot, expected) in [
        (by(fired, 0), Some(Rejection::NotNewer)),
        (by(fired - 1, 255), Some(Rejection::NotNewer)),
        (by(fired, 1), Some(Rejection::CoolingDown)),
        (by(fired + 9, 255), Some(Rejection::CoolingDown)),
        (by(fired + 10, 0), None),
    ] {
        assert_eq!(outcome(&range, shooter, &shot), expected, "{shot:?} after one at {fired}");
    }
}

#[test]
fn a_shot_is_not_newer_than_one_that_waits() {
    let (mut range, shooter, _) = duel(open_ground());
    let (waits, older) = (range.shot(5, 9, NORTH), range.shot(5, 9, EAST));
    range.order(shooter, &waits);
    range.order(shooter, &older);
    range.quiet(4);
    let told = range.tick();
    let rejected = CombatEvent::ShootRejected { tick: older.tick, at: 9, why: Rejection::NotNewer };
    assert!(matches!(told[0], (Audience::All, CombatEvent::Fired { aim: NORTH, .. })));
    assert_eq!(told[1..], [(Audience::Only(shooter), rejected)]);
}

#[test]
fn cooldown_counts_moments_and_not_arrivals() {
    let (mut range, shooter, _) = duel(open_ground());
    // Both come at once, and are 500 ms apart.
    let (first, second) = (range.shot(-7, 0, NORTH), range.shot(3, 0, NORTH));
    range.order(shooter, &first);
    range.order(shooter, &second);
    let told = range.ticks(3);
    assert_eq!(told.iter().filter(|(_, event)| matches!(event, CombatEvent::Fired { .. })).count(), 2);
}

#[test]
fn bytes_that_are_no_order_are_the_senders_fault() {
    let (mut range, shooter, _) = duel(open_ground());
    assert_eq!(range.order_bytes(shooter, &[]), Err(WireError::Truncated));
    assert_eq!(range.order_bytes(shooter, &[0xff; 30]), Err(WireError::Invalid { field: "shoot_input" }));
    range.quiet(3);
}

/// A target that drives north, twenty metres east of the shooter.
fn crossing() -> (Range, PlayerId, PlayerId) {
    let mut range = Range::new(open_ground());
    let (shooter, target) = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, -20.0, 0.25));
    range.inputs.insert(target, forward());
    range.quiet(50);
    (range, shooter, target)
}

/// Asserts that `shot` is tested against the target as it was `expected` before the shot: both edges of its hull are
/// hit just inside, and missed just outside.
fn assert_seen(range: &Range, shooter: PlayerId, target: PlayerId, shot: ShootInput, expected: Duration) {
    let told = |shot: &ShootInput| {
        let mut range = range.clone();
        range.order(shooter, shot);
        let told = range.tick();
        assert_eq!(rejection(&told), None);
        (hits(&told).len(), range)
    };
    let (_, after) = told(&shot);
    let moment = shot.moment(Cadence::default());
    let (from, at) = (after.tank_at(shooter, moment), after.tank_at(target, moment - expected));
    let (x, y) = (at.x - from.x, at.y - from.y);
    let (middle, half) = (y.atan2(x), (HULL_RADIUS / x.hypot(y)).asin());
    // 4 mm at twenty metres: half a millisecond of driving.
    let slack = 2e-4;
    for side in [-1.0, 1.0] {
        for (edge, hit) in [(half - slack, 1), (half + slack, 0)] {
            let aim = turns_to_aim((middle + side * edge) / std::f64::consts::TAU);
            let (hits, _) = told(&ShootInput { aim, ..shot });
            assert_eq!(hits, hit, "{:?}, expected {expected:?} before, side {side}", shot.seen);
        }
    }
}

#[test]
fn combat_03_others_are_hit_where_the_shooter_saw_them_within_bounds() {
    let (range, shooter, target) = crossing();
    let shot = range.shot(1, 0, EAST);
    let newest = range.newest().number();
    let seen = |ago: u32, before_micros| ShootInput {
        seen: Seen { snapshot: Tick::new(newest - ago), before_micros },
        ..shot
    };
    // The shot is fired at the end of the newest tick. Up to the cap, the claim is taken as it is; beyond, the cap.
    for micros in [0, 1_000, 49_999, 50_000, 123_456, 249_000, 250_000, 251_000, 300_000] {
        let expected = Duration::from_micros(micros.min(250_000).into());
        assert_seen(&range, shooter, target, seen(0, micros), expected);
    }
    assert_seen(&range, shooter, target, seen(3, 99_000), ms(249));
    assert_seen(&range, shooter, target, seen(3, 300_000), ms(250));
    assert_seen(&range, shooter, target, seen(20, 0), ms(250));
    // By the shot's own moment, not by when it is looked at.
    let inside = ShootInput { at: 128, ..seen(0, 100_000) };
    assert_seen(&range, shooter, target, inside, ms(125));
    let late = ShootInput { tick: Tick::new(newest - 5), ..seen(8, 30_000) };
    assert_seen(&range, shooter, target, late, ms(130));
}

/// A shot is decided at the end of the next tick. So one of `late` ticks before is that late and a tick: with its rewind, that
/// is 500 ms at most.
#[test]
fn combat_10_lateness_and_rewind_together_are_bounded() {
    let (range, shooter, target) = crossing();
    let newest = range.newest().number();
    for (late, rewind) in [(0, 250), (4, 250), (5, 200), (6, 150), (8, 50), (9, 0)] {
        let tick = Tick::new(newest - late + 1);
        let seen = Seen { snapshot: Tick::new(newest - late), before_micros: 300_000 };
        let shot = ShootInput { tick, seen, ..range.shot(1, 0, EAST) };
        assert_seen(&range, shooter, target, shot, ms(rewind));
        // A claim within the bound is taken as it is.
        let seen = Seen { before_micros: rewind as u32 * 1_000 / 2, ..seen };
        assert_seen(&range, shooter, target, ShootInput { seen, ..shot }, ms(rewind / 2));
    }
    let shot = ShootInput { tick: Tick::new(newest - 8), at: 255, ..range.shot(1, 0, EAST) };
    let seen = Seen { snapshot: Tick::new(newest - 9), before_micros: 0 };
    assert_eq!(outcome(&range, shooter, &ShootInput { seen, ..shot }), None);
    let shot = ShootInput {
        tick: Tick::new(newest - 9),
        seen: Seen { snapshot: Tick::new(newest - 10), ..seen },
        ..shot
    };
    assert_eq!(outcome(&range, shooter, &shot), Some(Rejection::TooLate));
}

#[test]
fn rewind_is_a_time_at_every_cadence() {
    for cadence in [5, 16, 100, 200] {
        let cadence = Cadence::new(ms(cadence)).unwrap();
        let mut range = Range::with(open_ground(), cadence);
        let (shooter, target) = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, -45.0, 0.25));
        range.inputs.insert(target, forward());
        // As fast as any: who is near the ray is not to be ruled out by how it stood six metres ago.
        range.world.set_params(target, MoveParams::new(30.0, 0.3).unwrap()).unwrap();
        range.ticks(cadence.ticks_in(ms(2_400)));
        let drawn = range.now() - ms(240);
        let shot = ShootInput {
            seen: Seen::new(cadence, range.newest(), drawn),
            aim: aim(&range.tank(shooter), [20.0, range.tank_at(target, drawn).y - 1.4]),
            ..range.shot(1, 0, EAST)
        };
        range.order(shooter, &shot);
        assert_eq!(hits(&range.tick()), [target], "{cadence:?}");
    }
}

/// A shot at a place, by somebody who drew the others as they were `before` the end of the newest snapshot.
fn shot_at(range: &Range, shooter: PlayerId, place: [f64; 2], ahead: i32, before: Duration) -> ShootInput {
    let shot = range.shot(ahead, 0, aim(&range.tank(shooter), place));
    let drawn = range.now() - before;
    ShootInput { seen: Seen::new(Cadence::default(), shot.seen.snapshot, drawn), ..shot }
}

fn who_is_hit(range: &Range, shooter: PlayerId, shot: &ShootInput) -> Vec<PlayerId> {
    let mut range = range.clone();
    range.order(shooter, shot);
    let told = range.tick();
    assert_eq!(rejection(&told), None);
    hits(&told)
}

#[test]
fn combat_04_nobody_is_hit_across_death_respawn_or_teleport() {
    let old = [20.0, 0.0];
    let config = TankWorldConfig { damage: 100, respawn_after: ms(100), ..open_ground() };
    let (mut range, shooter, target) = duel(config);
    let third = range.join_at(20.0, 20.0, 0.0);
    range.quiet(20);
    let control = shot_at(&range, shooter, old, 1, ms(200));
    assert_eq!(who_is_hit(&range, shooter, &control), [target], "it would be hit there");

    // Dead: not even by a shot of before, at where it stood alive.
    let south = aim(&range.tank(third), old);
    assert_eq!(hits(&range.shoot(third, south)), [target]);
    let late = shot_at(&range, shooter, old, -3, ms(250));
    assert_eq!(who_is_hit(&range, shooter, &late), []);
    let told = range.ticks(2);
    assert!(matches!(told.as_slice(), [(_, CombatEvent::Respawn { .. })]), "{told:?}");

    // Back: only where it is since then, and only by shots since then.
    let new = [range.tank(target).x, range.tank(target).y];
    for (place, ahead, expected) in [
        (old, 1, vec![]),
        (new, 1, vec![target]),
        (old, 0, vec![]),
        (new, 0, vec![]),
        (old, -4, vec![]),
        (new, -4, vec![]),
    ] {
        let shot = shot_at(&range, shooter, place, ahead, ms(250));
        assert_eq!(who_is_hit(&range, shooter, &shot), expected, "at {place:?}, {ahead} ticks ahead");
    }
    assert_across_teleport();
}

fn assert_across_teleport() {
    let (mut range, shooter, target) = duel(open_ground());
    let (old, new) = ([20.0, 0.0], [20.0, 30.0]);
    range.world.teleport(target, new[0], new[1], 0.5).unwrap();
    let same_tick = shot_at(&range, shooter, old, 1, ms(200));
    assert_eq!(who_is_hit(&range, shooter, &same_tick), [target], "it is gone only at the end of the tick");
    range.quiet(1);
    for (place, ahead, expected) in
        [(old, 1, vec![]), (new, 1, vec![target]), (old, 0, vec![]), (new, 0, vec![]), (old, -3, vec![])]
    {
        let shot = shot_at(&range, shooter, place, ahead, ms(200));
        assert_eq!(who_is_hit(&range, shooter, &shot), expected, "at {place:?}, {ahead} ticks ahead");
    }
    range.quiet(5);
    let shot = shot_at(&range, shooter, new, 1, ms(250));
    assert_eq!(who_is_hit(&range, shooter, &shot), [target], "long after, as ever");
}

#[test]
fn who_came_after_what_was_seen_is_not_hit() {
    let (mut range, shooter, _) = duel(open_ground());
    let newcomer = range.join_at(0.0, 20.0, 0.0);
    range.quiet(2);
    let shot = |before| shot_at(&range, shooter, [0.0, 20.0], 1, before);
    assert_eq!(who_is_hit(&range, shooter, &shot(ms(100))), [newcomer]);
    assert_eq!(who_is_hit(&range, shooter, &shot(ms(101))), []);
}

#[test]
fn of_two_who_shoot_each_other_the_earlier_moment_wins() {
    let config = TankWorldConfig { damage: 100, ..open_ground() };
    for (ats, dead, rejected) in [([10, 11], 1, Some(1)), ([11, 10], 0, Some(0)), ([10, 10], 1, Some(1))] {
        let (mut range, one, other) = duel(config.clone());
        let players = [one, other];
        for (player, (at, aim)) in players.into_iter().zip(ats.into_iter().zip([EAST, 32_768])) {
            let shot = range.shot(1, at, aim);
            range.order(player, &shot);
        }
        let told = range.tick();
        assert!(!range.tank(players[dead]).is_alive() && range.tank(players[1 - dead]).is_alive());
        let of_the_dead: Vec<_> = told.iter().filter(|(audience, _)| *audience != Audience::All).collect();
        assert_eq!(of_the_dead.len(), 1, "{told:?}");
        let (audience, CombatEvent::ShootRejected { why: Rejection::Dead, .. }) = of_the_dead[0] else {
            panic!("{told:?}");
        };
        assert_eq!(Some(*audience), rejected.map(|index: usize| Audience::Only(players[index])));
    }
}

#[test]
fn combat_06_cosmetics_decide_nothing() {
    let (range, shooter, _) = duel(open_ground());
    // A shot says where to and what was seen; there is no room in it for what was hit.
    let shot = range.shot(3, 0, EAST);
    let mut claims = shot.encode();
    claims.push(2);
    assert_eq!(range.clone().order_bytes(shooter, &claims), Err(WireError::Trailing));
    // When it arrives is not part of it either: early, just in time or late, the same comes of it.
    let outcomes = [0, 1, 2, 3, 6].map(|wait| {
        let mut range = range.clone();
        let mut told = range.ticks(wait);
        range.order(shooter, &shot);
        told.extend(range.ticks(9 - wait));
        told.into_iter()
            .map(|(audience, event)| match event {
                // Takes effect when it is looked at.
                CombatEvent::DamageApplied { target, amount, hp, .. } => {
                    (audience, CombatEvent::DamageApplied { target, amount, hp, tick: shot.tick })
                }
                event => (audience, event),
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(outcomes[0].len(), 3);
    assert!(outcomes.iter().all(|told| *told == outcomes[0]), "{outcomes:?}");
}

#[test]
fn combat_07_the_dead_neither_move_nor_shoot_and_come_back() {
    let params = MoveParams::new(12.0, 0.5).unwrap();
    let (mut range, shooter, target) = duel(TankWorldConfig { damage: 100, ..open_ground() });
    range.world.set_params(target, params).unwrap();
    range.quiet(1);
    range.shoot(shooter, EAST);
    let wreck = range.tank(target);
    assert_eq!(wreck.hp, 0);
    range.inputs.insert(target, TankInput::from_unit(1.0, 1.0).unwrap());
    // 3 s are 60 ticks: nothing for 59 of them but a refusal.
    for tick in 1..60 {
        let shot = range.shot(if tick % 2 == 0 { 1 } else { -1 }, 3, EAST);
        if tick % 7 == 0 {
            range.order(target, &shot);
            assert_eq!(rejection(&range.tick()), Some(Rejection::Dead));
        } else {
            range.quiet(1);
        }
        assert_eq!(range.tank(target), wreck);
    }
    let told = range.tick();
    let respawn = CombatEvent::Respawn { fighter: target.into(), tick: range.newest() };
    assert_eq!(told, [(Audience::All, respawn)]);
    let fresh = range.tank(target);
    assert_eq!((fresh.hp, fresh.params), (Tank::MAX_HP, params));
    let away = (fresh.x - range.tank(shooter).x).hypot(fresh.y - range.tank(shooter).y);
    assert!(away >= 4.0 * HULL_RADIUS && open_ground().arena.clearance([fresh.x, fresh.y]) >= HULL_RADIUS);
    let causes = range.causes(target);
    assert!(causes.contains(Cause::Respawn) && !causes.contains(Cause::Death));

    // From its earlier life it cannot shoot, from this one it can.
    let earlier = range.shot(0, 0, EAST);
    assert_eq!(outcome(&range, target, &earlier), Some(Rejection::Dead));
    assert_eq!(outcome(&range, target, &range.shot(1, 0, EAST)), None);
    range.quiet(1);
    assert_ne!(range.tank(target).heading, fresh.heading, "and drives again");
}

#[test]
fn nobody_shoots_from_an_earlier_life_however_short_the_death() {
    let config = TankWorldConfig { damage: 100, respawn_after: ms(50), ..open_ground() };
    let (mut range, shooter, target) = duel(config);
    let before = range.shot(1, 0, NORTH);
    range.shoot(shooter, EAST);
    let told = range.tick();
    assert!(matches!(told.as_slice(), [(_, CombatEvent::Respawn { .. })]), "{told:?}");
    assert_eq!(outcome(&range, target, &before), Some(Rejection::Dead));
}

#[test]
fn combat_08_fewer_hit_points_are_in_the_later_states() {
    let (mut range, shooter, target) = duel(open_ground());
    let (mut view, mut crowd) =
        (View::default(), Crowd::new(Arc::clone(range.world.rules()), Cadence::default()));
    let id = range.id(target);
    let mut state = |bodies: &mut Bodies<Tanks>| {
        let (mut buffer, tick) = ([0; 1_100], bodies.tick());
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(&mut view, 8_800, &mut bits);
        let length = bits.finish().unwrap();
        crowd.read(tick, &mut BitReader::new(&buffer[..length])).unwrap();
        view.acknowledge(tick);
        crowd.body(id).unwrap().get(tick).unwrap().after
    };
    assert_eq!(state(&mut range.bodies).tank().unwrap().hp, 100);
    let before = range.tank(target);
    range.shoot(shooter, EAST);
    assert_eq!(state(&mut range.bodies), Tank { hp: 75, ..before }.into());
    let causes = range.causes(target);
    assert!(causes.is_empty(), "fewer hit points alone explain no correction, and need none");
    for _ in 0..20 {
        range.quiet(1);
        assert_eq!(state(&mut range.bodies).tank().unwrap().hp, 75);
    }
}

#[test]
fn hosts_move_tanks_and_change_how_they_move_at_the_end_of_a_tick() {
    let (mut range, player, _) = duel(open_ground());
    let params = MoveParams::new(3.0, 0.1).unwrap();
    range.world.teleport(player, 9.0, 9.0, 0.5).unwrap();
    range.world.teleport(player, -30.0, 12.5, -0.25).unwrap();
    range.world.set_params(player, params).unwrap();
    assert_eq!(range.tank(player).x, 0.0, "not before");
    range.quiet(1);
    let tank = range.tank(player);
    assert_eq!((tank.x, tank.y, tank.heading, tank.params), (-30.0, 12.5, 0.75, params));
    let causes = |range: &Range| range.causes(player);
    assert!(causes(&range).contains(Cause::Teleport) && causes(&range).contains(Cause::Params));
    range.quiet(1);
    assert!(causes(&range).is_empty(), "once");

    let nobody = PlayerId::new(99);
    assert_eq!(range.world.teleport(nobody, 0.0, 0.0, 0.0), Err(WorldError::NoSuchPlayer));
    assert_eq!(range.world.set_params(nobody, params), Err(WorldError::NoSuchPlayer));
    for (x, y, heading) in [(48.6, 0.0, 0.0), (0.0, -60.0, 0.0), (0.0, 0.0, f64::INFINITY)] {
        assert_eq!(range.world.teleport(player, x, y, heading), Err(WorldError::Place { x, y }));
    }
    assert!(range.world.teleport(player, f64::NAN, 0.0, 0.0).is_err());
    assert!(range.world.teleport(player, 48.4, 0.0, 0.0).is_ok());
}

#[test]
fn who_leaves_is_forgotten_with_all_its_orders() {
    let (mut range, shooter, target) = duel(open_ground());
    let shot = range.shot(2, 0, EAST);
    range.order(shooter, &shot);
    range.leave(shooter);
    range.quiet(5);
    assert_eq!(range.tank(target).hp, 100);
    range.order(shooter, &shot);
    range.quiet(5);
}

#[test]
fn those_who_come_stand_apart_and_free() {
    let mut range = Range::new(TankWorldConfig::default());
    let arena = Arena::proving_ground();
    let players: Vec<_> = (0..40).map(|_| range.join()).collect();
    let tanks: Vec<_> = players.iter().map(|player| range.tank(*player)).collect();
    for (index, tank) in tanks.iter().enumerate() {
        assert!(arena.clearance([tank.x, tank.y]) >= HULL_RADIUS);
        for other in &tanks[..index] {
            assert!((tank.x - other.x).hypot(tank.y - other.y) >= 4.0 * HULL_RADIUS);
        }
    }
    range.quiet(3);
    let stays = |(player, tank): (&PlayerId, &Tank)| {
        let now = range.tank(*player);
        now == Tank { reload: now.reload, ..*tank }
    };
    assert!(players.iter().zip(&tanks).all(stays), "settled, and in nobody's way");
}

/// Damages `target` by so many shots of `shooter`, a cooldown apart. Gives the events of the last one.
fn hit_times(
    range: &mut Range,
    shooter: PlayerId,
    target: PlayerId,
    times: u32,
) -> Vec<(Audience, CombatEvent)> {
    let mut told = vec![];
    for _ in 0..times {
        range.ticks(9);
        let at = range.tank(target);
        let towards = aim(&range.tank(shooter), [at.x, at.y]);
        told = range.shoot(shooter, towards);
        assert_eq!(hits(&told), [target]);
    }
    told
}

#[test]
fn combat_09_leaving_in_combat_is_a_death_and_the_kill_is_the_attackers() {
    let (mut range, shooter, target) = duel(open_ground());
    hit_times(&mut range, shooter, target, 1);
    // Three seconds after the hit, less a tick: still in combat. A tick later it is over.
    for (ticks, dies) in [(59, true), (60, false)] {
        let mut range = range.clone();
        range.quiet(ticks);
        let death = CombatEvent::Death { fighter: target.into(), by: shooter.into(), tick: range.newest() };
        let expected = if dies { vec![(Audience::All, death)] } else { vec![] };
        assert_eq!(range.leave(target), expected, "{ticks} ticks later");
    }
    // The shooter was not hit: its death is nobody's kill.
    let mut fled = range.clone();
    let death = CombatEvent::Death { fighter: shooter.into(), by: shooter.into(), tick: fled.newest() };
    assert_eq!(fled.leave(shooter), [(Audience::All, death)]);
    // Nor is that of a tank whose attacker has left.
    let death = CombatEvent::Death { fighter: target.into(), by: target.into(), tick: fled.newest() };
    assert_eq!(fled.leave(target), [(Audience::All, death)]);
    // A tank that neither fired nor was hit leaves in peace, and so does a wreck.
    let bystander = range.join();
    assert_eq!(range.leave(bystander), []);
    hit_times(&mut range, shooter, target, 3);
    assert_eq!(range.leave(target), [], "it has died already");
}

#[test]
fn combat_09_a_tank_that_comes_back_is_as_it_was_left() {
    let (mut range, shooter, target) = duel(open_ground());
    hit_times(&mut range, shooter, target, 3);
    assert_eq!(range.tank(target).hp, 25);
    // Out of combat: the same hit points, until the respawn time is over.
    let mut later = range.clone();
    later.quiet(60);
    assert_eq!(later.leave(target), []);
    for (away, hp) in [(0, 25), (59, 25), (60, 100)] {
        let mut range = later.clone();
        range.quiet(away);
        let again = range.join_named("player 2");
        assert_eq!(range.tank(again).hp, hp, "after {away} ticks");
        let other = range.join_named("somebody else");
        assert_eq!(range.tank(other).hp, Tank::MAX_HP);
    }
    // In combat: a wreck, which respawns when its time is over and not before.
    assert_eq!(range.leave(target).len(), 1);
    range.quiet(20);
    let again = range.join_named("player 2");
    assert_eq!(range.tank(again).hp, 0);
    range.quiet(1);
    assert_eq!(rejection(&range.clone().shoot(again, EAST)), Some(Rejection::Dead));
    range.quiet(9);
    // Leaving as a wreck is no second death, and wins no time.
    assert_eq!(range.leave(again), []);
    let again = range.join_named("player 2");
    range.quiet(29);
    assert_eq!(range.tank(again).hp, 0);
    let back = CombatEvent::Respawn { fighter: again.into(), tick: range.newest().next() };
    assert_eq!(range.tick(), [(Audience::All, back)]);
    assert_eq!(range.tank(again).hp, Tank::MAX_HP);
}

#[test]
fn combat_09_no_name_reloads_the_gun_by_coming_again() {
    for renamed in [false, true] {
        let mut range = Range::new(TankWorldConfig { respawn_after: ms(1), ..open_ground() });
        let (mut fired, mut player) = (0, range.join_named("gatling"));
        // Five seconds: a shot in every tick, and a fresh tank whenever one was fired.
        for number in 0..100 {
            let shots = range.shoot(player, NORTH);
            if shots.iter().any(|(_, event)| matches!(event, CombatEvent::Fired { .. })) {
                fired += 1;
                range.leave(player);
                let name = if renamed { format!("gatling {number}") } else { "gatling".to_owned() };
                player = range.join_named(&name);
            }
        }
        assert!((5..=10).contains(&fired), "{fired} shots in five seconds, renamed: {renamed}");
    }
}

#[test]
fn combat_11_a_newcomer_gets_the_scores_of_the_room() {
    let (mut range, shooter, target) = duel(open_ground());
    let before = hit_times(&mut range, shooter, target, 3);
    assert!(before.iter().all(|(_, event)| !matches!(event, CombatEvent::Death { .. })));
    let east = aim(&range.tank(shooter), [range.tank(target).x, range.tank(target).y]);
    range.quiet(12);
    let shot = range.shot(1, 0, east);
    range.order(shooter, &shot);
    let score =
        |player: PlayerId, kills, deaths| CombatEvent::Score { fighter: player.into(), kills, deaths };
    let scores = |told: &Told| -> Told {
        told.iter().filter(|(_, event)| matches!(event, CombatEvent::Score { .. })).copied().collect()
    };
    // Both are told to all, after the death itself.
    let told = range.tick_with_scores();
    let both = [(Audience::All, score(target, 0, 1)), (Audience::All, score(shooter, 1, 0))];
    assert_eq!(told[told.len() - 2..], both, "{told:?}");
    // A newcomer gets the totals once, and only of players that have any.
    let newcomer = range.join();
    let totals = [(shooter, 1, 0), (target, 0, 1)]
        .map(|(player, kills, deaths)| (Audience::Only(newcomer), score(player, kills, deaths)));
    assert_eq!(range.tick_with_scores(), totals);
    assert_eq!(range.tick_with_scores(), []);
    // And again when its client begins anew, as a reloaded page does.
    range.world.restarted(newcomer);
    assert_eq!(range.tick_with_scores(), totals);
    // Players that have left are in no totals.
    range.leave(target);
    let next = range.join();
    assert_eq!(scores(&range.tick_with_scores()), [(Audience::Only(next), score(shooter, 1, 0))]);
}

/// Rounds of ten seconds (200 ticks), and breaks of one (20).
fn with_rounds() -> TankWorldConfig {
    let rounds = RoundConfig { length: Duration::from_secs(10), pause: Duration::from_secs(1) };
    TankWorldConfig { rounds: Some(rounds), damage: 100, ..open_ground() }
}

/// Plays until the round changes its phase, and gives that event.
fn next_phase(range: &mut Range) -> CombatEvent {
    for _ in 0..400 {
        let told = range.tick();
        if let Some((audience, event)) =
            told.iter().find(|(_, event)| matches!(event, CombatEvent::Round { .. }))
        {
            assert_eq!(*audience, Audience::All, "{told:?}");
            return *event;
        }
    }
    panic!("the phase never changed");
}

#[test]
fn combat_12_a_round_ends_on_its_tick_names_its_winner_and_the_next_begins_at_zero() {
    let mut range = Range::new(with_rounds());
    let (ada, bob) = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, 0.0, 0.25));
    let begun = range.newest().next();
    let first = CombatEvent::Round {
        number: 1,
        phase: Phase::Playing,
        since: begun,
        until: Tick::new(begun.number() + 200),
    };
    assert_eq!(range.tick()[0], (Audience::All, first));
    assert_eq!(
        [ada, bob].map(|player| range.tank(player).x),
        [0.0, 20.0],
        "the first round moves no newcomer"
    );
    hit_times(&mut range, ada, bob, 1);
    assert!(!range.tank(bob).is_alive());

    let CombatEvent::Round { number, phase, since, until } = next_phase(&mut range) else { unreachable!() };
    assert_eq!((number, phase), (1, Phase::Over { winner: Some(ada.into()) }));
    assert_eq!((since, until), (Tick::new(begun.number() + 200), Tick::new(begun.number() + 220)));

    // A newcomer in the break gets the round and the scores that made the winner.
    let late = range.join();
    let told = range.tick_with_scores();
    let only: Vec<_> =
        told.iter().filter(|(to, _)| *to == Audience::Only(late)).map(|(_, event)| *event).collect();
    let over = CombatEvent::Round { number, phase, since, until };
    let scores = [(ada, 1, 0), (bob, 0, 1)].map(|(player, kills, deaths)| CombatEvent::Score {
        fighter: Fighter::from(player),
        kills,
        deaths,
    });
    assert_eq!(only, [&[over], &scores[..]].concat());

    // A tank that is a wreck when the next round begins is back by it, and nobody has a score.
    let places = [ada, bob].map(|player| (range.tank(player).x, range.tank(player).y));
    let next = next_phase(&mut range);
    let end = Tick::new(until.number() + 200);
    assert_eq!(next, CombatEvent::Round { number: 2, phase: Phase::Playing, since: until, until: end });
    for (player, place) in [ada, bob].into_iter().zip(places) {
        let tank = range.tank(player);
        assert_eq!(tank.hp, Tank::MAX_HP);
        assert_ne!((tank.x, tank.y), place, "a fresh place");
        assert!(range.causes(player).contains(Cause::Respawn), "{:?}", range.causes(player));
    }
    range.world.restarted(ada);
    let told = range.tick_with_scores();
    assert_eq!(told, [(Audience::Only(ada), next)], "no scores from the round before");
}

#[test]
fn combat_12_guns_are_silent_in_a_break_and_shots_of_the_last_round_are_over() {
    let mut range = Range::new(with_rounds());
    let (ada, bob) = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, 0.0, 0.25));
    next_phase(&mut range);
    next_phase(&mut range);
    let told = range.shoot(ada, EAST);
    assert_eq!(rejection(&told), Some(Rejection::RoundOver), "in the break");
    assert_eq!(range.tank(bob).hp, Tank::MAX_HP);
    // Ordered in the break for its last tick, and looked at in the next round.
    let CombatEvent::Round { since, .. } = next_phase(&mut range) else { unreachable!() };
    assert_eq!(since, range.newest());
    let late = range.shot(0, 0, EAST);
    range.order(ada, &late);
    assert_eq!(rejection(&range.tick()), Some(Rejection::RoundOver), "fired before the round");
    assert_eq!(rejection(&range.shoot(ada, EAST)), Some(Rejection::CoolingDown), "not loaded yet");
    range.quiet(9);
    assert_eq!(rejection(&range.shoot(ada, EAST)), None);
}

#[test]
fn combat_12_an_empty_room_has_no_round() {
    let mut range = Range::new(with_rounds());
    let ada = range.join();
    range.tick();
    range.leave(ada);
    range.quiet(500);
    range.join();
    let told = range.tick();
    assert!(matches!(told[0].1, CombatEvent::Round { number: 2, phase: Phase::Playing, .. }), "{told:?}");
}

#[test]
fn combat_12_lengths_of_rounds_are_bounded() {
    let build = |length, pause| {
        let rounds = RoundConfig { length: Duration::from_secs(length), pause: Duration::from_secs(pause) };
        TankWorld::new(TankWorldConfig { rounds: Some(rounds), ..open_ground() }).map(|_| ())
    };
    for (length, pause, good) in [
        (10, 1, true),
        (86_400, 300, true),
        (9, 8, false),
        (86_401, 8, false),
        (300, 0, false),
        (300, 301, false),
    ] {
        assert_eq!(build(length, pause).is_ok(), good, "{length} {pause}");
    }
}
