//! A client frame, a reconcile and a tick of the world without shots take no memory once they run.

mod range;
mod rig;

use std::time::Duration;

use halftrack::server::{Events, Room, World};
use halftrack::{Cadence, TickInput};
use range::{Range, forward};
use rig::{Rig, input, ms};
use tanks::{Arena, Hull, Surroundings, Tank, TankWorldConfig};

#[test]
fn steady_state_frames_and_reconciles_allocate_nothing() {
    let hulls = (0..20).map(|n| Hull { x: f64::from(n) * 4.0 - 40.0, y: 29.0 }).collect();
    let surroundings = Surroundings { arena: Arena::proving_ground().into(), hulls };
    let mut rig = Rig::with(ms(120), Tank::new(0.0, 20.0, 0.1), surroundings);
    rig.set(0.25, 1.0);
    // Until the list of recent diagnoses is full, and the states of the next second have come to be.
    for _ in 0..100 {
        rig.play(ms(50));
        rig.serve();
        rig.deliver().expect("newer");
    }
    rig.play(ms(1_000));
    let mut states = vec![];
    for _ in 0..20 {
        rig.serve();
        states.push(rig.server.clone());
    }

    let (mut frames, mut accepted) = (0, 0);
    let allocations = allocation_counter::measure(|| {
        for (round, state) in (0i8..).zip(&states) {
            for _ in 0..5 {
                rig.now = rig.now + Duration::from_millis(10);
                rig.client.set_input(rig.now, input(f32::from(round % 5) / 5.0, 1.0));
                rig.client.frame(rig.now);
                frames += 1;
            }
            let target = rig.client.predictor().time();
            accepted += u32::from(rig.client.accept(rig.now, target, state).is_ok());
        }
    });
    assert_eq!((frames, accepted), (100, 20));
    assert_eq!(allocations.count_total, 0);

    let cloned = allocation_counter::measure(|| drop(rig.client.clone()));
    assert!(cloned.count_total > 0, "the counter does count");
}

#[test]
fn ticks_of_the_world_without_shots_allocate_nothing() {
    let mut range = Range::new(TankWorldConfig { damage: 100, ..TankWorldConfig::default() });
    let players: Vec<_> = (0..30).map(|_| range.join()).collect();
    for (player, aim) in players.iter().zip((0..=u16::MAX).step_by(2_000)) {
        range.inputs.insert(*player, forward());
        range.shoot(*player, aim);
    }
    range.ticks(80);
    let mut events = Events::default();
    for _ in 0..100 {
        range.bodies.advance(|_| TickInput::steady(forward()));
        let mut room = Room::new(Cadence::default(), &mut range.bodies);
        let world = &mut range.world;
        let allocations = allocation_counter::measure(|| world.resolve(&mut room, &mut events));
        assert_eq!(allocations.count_total, 0);
    }
}
