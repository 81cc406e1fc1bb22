//! The tank rules under the public checker: a crowd in the proving ground, with walls, hulls and wrecks.

use halftrack::{CheckPlan, check_game};
use tanks::{Arena, Entity, MoveParams, Tank, TankInput, Tanks};

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
    tanks.into_iter().map(Entity::from).collect()
}

fn wishes() -> Vec<TankInput> {
    let wishes = [(0.0, 1.0), (0.5, 1.0), (-1.0, 0.75), (0.25, -0.5), (1.0, 1.0), (0.0, 0.0), (-0.5, -1.0)];
    wishes.into_iter().map(|(turn, throttle)| TankInput::from_unit(turn, throttle).unwrap()).collect()
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

/// More tanks than the simulator tests in pairs: sweep-and-prune finds the neighbours.
#[test]
fn tank_rules_pass_with_enough_tanks_for_the_sweep() {
    let tank = |number: u32| {
        let place = |at: u32| f64::from(at) * 3.6 - 12.0;
        Entity::from(Tank::new(place(number % 8), place(number / 8), f64::from(number) / 48.0))
    };
    let plan = CheckPlan { ticks: 100, ..CheckPlan::new((0..48).map(tank).collect(), wishes()) };
    let rules = || Tanks::new(Arena::new([30.0, 30.0], vec![]).unwrap().into());
    let report = check_game(rules, &plan).unwrap();
    assert!(report.contacts > 500, "they met only {} times", report.contacts);
}
