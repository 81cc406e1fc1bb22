//! DIAG: what every accepted state did, as data.

use crate::rig::{Rig, ms};
use halftrack::{Cause, Outcome, Reconciler, Tick};
use tanks::Tanks;

#[test]
fn diag_01_an_accepted_state_tells_everything_it_did() {
    let mut rig = Rig::new(ms(120));
    rig.set(0.25, 1.0);
    rig.play(ms(400));
    (0..2).for_each(|_| rig.serve());
    rig.server.own.body.tank_mut().unwrap().x += 0.3;
    rig.server.own.causes = rig.server.own.causes.with(Cause::Collision);
    let before = rig.predicted().pose();
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!((diagnosis.server_tick, diagnosis.acknowledged_tick()), (Tick::new(102), Tick::new(102)));
    assert_eq!(diagnosis.at, rig.now);
    assert_eq!(diagnosis.authoritative, Some(rig.server.own.body.pose()));
    assert_eq!(diagnosis.predicted_before, Some(before));
    assert_eq!(diagnosis.predicted_after, Some(rig.predicted().pose()));
    assert!((diagnosis.correction_distance - 0.3).abs() < 0.01);
    assert_eq!(diagnosis.correction_angle, 0.0);
    assert_eq!(diagnosis.cause, Some(Cause::Collision));
    assert_eq!(diagnosis.outcome, Outcome::Eased);
    assert_eq!(diagnosis.replayed_ticks, 9);
    assert_eq!(diagnosis.resync, None);
}

#[test]
fn diag_02_diagnoses_and_counts_are_there_to_be_read() {
    let mut rig = Rig::new(ms(120));
    rig.set(0.25, 1.0);
    let mut given = vec![];
    for round in 0..100 {
        rig.play(ms(50));
        rig.serve();
        if round % 10 == 3 {
            rig.server.own.body.tank_mut().unwrap().y += 0.2;
            rig.server.own.causes = rig.server.own.causes.with(Cause::LateInput);
        }
        given.push(rig.deliver().expect("newer"));
    }
    let recent: Vec<_> = rig.client.recent().copied().collect();
    assert_eq!(recent, given[given.len() - Reconciler::<Tanks>::RECENT..], "the latest, oldest first");
    let stats = rig.client.stats();
    assert_eq!(stats.of(Cause::LateInput), 10);
    assert_eq!(stats.of(Cause::Unexplained), 0);
    assert_eq!(stats.by_cause().map(|(_, count)| count).sum::<u64>(), 10);
    assert_eq!((stats.unchanged, stats.eased, stats.snapped, stats.negligible), (90, 10, 0, 0));
    let predict = rig.client.predictor().stats();
    assert_eq!((predict.accepted, predict.mispredicted, predict.resyncs), (100, 10, 0));
}
