//! The tank rules under the public checker: a crowd in the proving ground, with walls, hulls, wrecks, crates, rockets and
//! platforms.

use halftrack::{CheckPlan, check_game};
use tanks::{Arena, Crate, Entity, MoveParams, Platform, Rocket, Tank, TankInput, Tanks};

/// Tanks of two kinds and a wreck, a few centimetres apart: all touch each other as soon as they move.
fn crowd() -> Vec<Entity> {
    let quick = MoveParams::new(14.0, 0.6).unwrap();
    let place = |number: u32| {
        let (column, row) = (f64::from(number % 4), f64::from(number / 4));
        Tank::new(-34.0 + column * 3.1, 18.0 + row * 3.1, f64::from(number) / 12.0)
    };
    let mut tanks: Vec<_> = (0..12).map(place).collect();
    for tank in tanks.iter_mut().step_by(3) {
        tank.params = quick;
    }
    tanks[5].hp = 0;
    tanks[6].hp = 40;
    tanks[7].reload = Rocket::RELOAD_MICROS;
    tanks.into_iter().map(Entity::from).collect()
}

/// Crates among the crowd and beside a wall, platforms below them, and rockets that fly at them.
fn things() -> Vec<Entity> {
    let crates = [(-31.5, 15.2), (-28.4, 15.2), (-20.5, 22.0), (-45.9, 25.0), (-36.9, 19.0)];
    let platforms = [([-36.0, 20.0], [-24.0, 20.0], 9_000_000), ([-28.0, 14.0], [-28.0, 28.0], 11_000_000)];
    let rocket = |x, heading| Rocket { x, y: 19.5, heading, left: Rocket::LIFE_MICROS };
    let crates = crates.into_iter().map(|(x, y)| Crate::new(x, y).into());
    let platforms = platforms.into_iter().map(|(from, to, period)| Platform::new(from, to, period).into());
    crates.chain(platforms).chain([rocket(-44.0, 0.0).into(), rocket(0.0, 0.45).into()]).collect()
}

fn wishes() -> Vec<TankInput> {
    let wishes = [(0.0, 1.0), (0.5, 1.0), (-1.0, 0.75), (0.25, -0.5), (1.0, 1.0), (0.0, 0.0), (-0.5, -1.0)];
    let wish = |(turn, throttle)| TankInput::from_unit(turn, throttle).unwrap();
    (0..).zip(wishes).map(|(rocket, sticks)| wish(sticks).pressing(rocket % 3)).collect()
}

#[test]
fn tank_rules_pass_in_a_crowd_in_the_proving_ground() {
    let plan = CheckPlan::new(crowd(), wishes());
    let report = check_game(|| Tanks::new(Arena::proving_ground().into()), &plan).unwrap();
    println!("{report:?}");
    assert!(report.contacts > 200, "they met only {} times", report.contacts);
    assert!(report.rebuilds > 10_000, "{report:?}");
    assert_eq!(report.constant_fields, []);
}

#[test]
fn tank_rules_pass_with_every_kind_of_body() {
    for (cadence, ticks) in [(16_667, 300), (50_000, 150), (200_000, 60)] {
        let bodies: Vec<_> = crowd().into_iter().chain(things()).collect();
        let cadence = halftrack::Cadence::new(std::time::Duration::from_micros(cadence)).unwrap();
        let plan = CheckPlan { cadence, ticks, ..CheckPlan::new(bodies, wishes()) };
        let report = check_game(|| Tanks::new(Arena::proving_ground().into()), &plan).unwrap();
        println!("{report:?}");
        assert!(report.contacts > 500, "they met only {} times", report.contacts);
        assert_eq!(report.constant_fields, []);
    }
}

/// More tanks than the simulator tests in pairs: sweep-and-prune finds the neighbours.
#[test]
fn tank_rules_pass_with_enough_tanks_for_the_sweep() {
    let tank = |number: u32| {
        let place = |at: u32| f64::from(at) * 3.6 - 12.0;
        let (x, y) = (place(number % 8), place(number / 8));
        if number % 7 == 3 {
            Crate::new(x, y).into()
        } else {
            Tank::new(x, y, f64::from(number) / 48.0).into()
        }
    };
    let plan = CheckPlan { ticks: 40, ..CheckPlan::new((0..48).map(tank).collect(), wishes()) };
    let rules = || Tanks::new(Arena::new([30.0, 30.0], vec![]).unwrap().into());
    let report = check_game(rules, &plan).unwrap();
    assert!(report.contacts > 500, "they met only {} times", report.contacts);
}
