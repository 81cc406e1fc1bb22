//! The broad phase leaves out only bodies that make no difference: each tank moved among all others ends the same, to the
//! bit.

use std::sync::Arc;

use halftrack::snapshot::{Bodies, Course};
use halftrack::{Body, Cadence, Driver, Neighbour, PlayerId, Replay, Tick, TickInput};
use tanks::{Arena, Axis, Tank, TankInput, Tanks};

/// So many in a square of 40 m: most of them touch somebody.
const TANKS: u16 = 60;

fn told(player: PlayerId, tick: u32) -> TickInput<TankInput> {
    let turn = i32::from(player.number()) * 7 + i32::try_from(tick).unwrap() / 9 * 5;
    let axis = |value: i32| Axis::from_level(i8::try_from(value % 33 - 16).unwrap());
    TickInput::steady(TankInput { throttle: axis(turn), turn: axis(turn / 3), rocket: 0 })
}

#[test]
fn neighbours_within_reach_move_a_tank_like_all_others_do() {
    let cadence = Cadence::default();
    let rules = Arc::new(Tanks::new(Arc::new(Arena::new([40.0, 40.0], vec![]).unwrap())));
    let mut bodies = Bodies::new(Arc::clone(&rules), cadence, Tick::new(0));
    let mut naive = vec![];
    for number in 0..TANKS {
        let place = |at: u16| f64::from(at) * 4.7 - 16.5;
        let mut tank = Tank::new(place(number % 8), place(number / 8), f64::from(number) / 60.0);
        tank.settle();
        bodies.join(PlayerId::new(number));
        let id = bodies.spawn(Driver::Player(PlayerId::new(number)), tank.into()).unwrap();
        naive.push((id, PlayerId::new(number), tank));
    }
    // Each meets the others in order of their ids.
    naive.sort_unstable_by_key(|(id, ..)| *id);
    let ids: Vec<_> = naive.iter().map(|(id, ..)| *id).collect();
    let (players, mut naive): (Vec<_>, Vec<_>) =
        naive.into_iter().map(|(_, player, tank)| (player, tank)).unzip();
    let mut met = 0;
    for tick in 1..=600 {
        bodies.advance(|player| told(player, tick));
        let before = naive.clone();
        for (own, tank) in naive.iter_mut().enumerate() {
            let mut others: Vec<_> = before
                .iter()
                .zip(&ids)
                .map(|(tank, id)| Neighbour::new(*id, Driver::World, (*tank).into()))
                .collect();
            others.remove(own);
            let input = told(players[own], tick);
            let go = |others: &[Neighbour<Tanks>]| {
                let mut replay = Replay::new(&*rules, cadence, Tick::new(tick), others, before[own].into());
                replay.tick(&input);
                *replay.body()
            };
            *tank = go(&others).tank().copied().unwrap();
            let (.., record) = bodies.records().nth(own).unwrap();
            assert_eq!(record.after, (*tank).into(), "tank {own} in tick {tick}");
            let course = if go(&[]) == (*tank).into() { Course::Own } else { Course::Met };
            assert_eq!(record.course, course, "tank {own} in tick {tick}");
            met += u32::from(course == Course::Met);
        }
    }
    assert!(met > 1_000, "they met only {met} times");
}
