//! A client frame and a reconcile take no memory once they run.

mod rig;

use std::time::Duration;

use rig::{Rig, input, ms};
use tanks::{Arena, Hull, Surroundings, Tank};

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
