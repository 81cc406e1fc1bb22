//! A crowd moved with its neighbours found along a line, against each held against each: the same to the bit.

use std::sync::Arc;

use halftrack::snapshot::{Bodies, BodyCode, Course};
use halftrack::{Cadence, Game, PlayerId, Replay, Tick, TickInput};
use tanks::{Arena, Axis, Surroundings, Tank, TankInput, Tanks};

/// So many in a square of 40 m: most of them touch somebody.
const TANKS: u16 = 60;

fn told(player: PlayerId, tick: u32) -> TickInput<TankInput> {
    let turn = i32::from(player.number()) * 7 + i32::try_from(tick).unwrap() / 9 * 5;
    let axis = |value: i32| Axis::from_level(i8::try_from(value % 33 - 16).unwrap());
    TickInput::steady(TankInput { throttle: axis(turn), turn: axis(turn / 3) })
}

#[test]
fn neighbours_along_a_line_are_those_that_are_found_one_by_one() {
    let cadence = Cadence::default();
    let alone = Surroundings::empty(Arc::new(Arena::new([40.0, 40.0], vec![]).unwrap()));
    let mut bodies = Bodies::<Tanks>::new(cadence, alone.clone(), Tick::new(0));
    let mut naive = vec![];
    for number in 0..TANKS {
        let place = |at: u16| f64::from(at) * 4.7 - 16.5;
        let mut tank = Tank::new(place(number % 8), place(number / 8), f64::from(number) / 60.0);
        Tanks::settle(&mut tank);
        bodies.join(PlayerId::new(number), Tanks::neutral(), tank);
        naive.push(tank);
    }
    let (mut around, mut met) = (alone.clone(), 0);
    for tick in 1..=600 {
        bodies.advance(|player| told(player, tick));
        let before = naive.clone();
        for (own, tank) in naive.iter_mut().enumerate() {
            Tanks::surround(&mut around, &before, own, cadence.interval());
            let input = told(PlayerId::new(u16::try_from(own).unwrap()), tick);
            let go = |among: &Surroundings| {
                let mut replay = Replay::<Tanks>::new(cadence, among, before[own]);
                replay.tick(&input);
                *replay.body()
            };
            *tank = go(&around);
            let (_, record) = bodies.actors().nth(own).unwrap();
            assert_eq!(record.after, *tank, "tank {own} in tick {tick}");
            let course = if go(&alone) == *tank { Course::Own } else { Course::Met };
            assert_eq!(record.course, course, "tank {own} in tick {tick}");
            met += u32::from(course == Course::Met);
        }
    }
    assert!(met > 1_000, "they met only {met} times");
}
