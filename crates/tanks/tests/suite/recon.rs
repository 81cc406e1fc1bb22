//! RECON: authority is the baseline, pending input is replayed on it, and only the screen takes its time.

use std::time::Duration;

use crate::rig::{Rig, bits, ms};
use halftrack::{
    Authority, Cadence, Cause, ConfigError, Epoch, Ignored, Outcome, PendingTick, PredictConfig, Predictor,
    Resync, ServerTime, Snap, Status, Tick, Timestamp,
};
use tanks::{Tank, TankInput, Tanks};

/// 120 ms ahead, driving and turning for 400 ms; the server is at tick 102.
fn driving() -> Rig {
    let mut rig = Rig::new(ms(120));
    rig.set(0.25, 1.0);
    rig.play(ms(400));
    (0..2).for_each(|_| rig.serve());
    rig
}

fn distance(rig: &Rig) -> f64 {
    let (visible, predicted) = (rig.visible(), rig.predicted());
    (visible.x - predicted.x).hypot(visible.y - predicted.y)
}

#[test]
fn recon_01_a_state_is_the_baseline_and_pending_ticks_are_replayed_on_it() {
    let mut rig = driving();
    rig.server.own.body = Tank { x: 0.5, ..rig.server.own.body.tank().copied().unwrap() }.into();
    rig.server.own.causes = rig.server.own.causes.with(Cause::Collision);
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!(rig.client.predictor().baseline().own.body, rig.server.own.body);
    let mut by_hand = rig.replay(&rig.server);
    for (_, step) in rig.client.predictor().pending_steps() {
        by_hand.hold(step.input, step.span);
    }
    assert_eq!(bits(by_hand.body().tank().unwrap()), bits(rig.predicted()));
    assert_eq!(diagnosis.predicted_after, Some(rig.predicted().pose()));
    assert_eq!(diagnosis.replayed_ticks, 9);
    rig.play(ms(500));
    assert_eq!(rig.visible(), rig.predicted().pose(), "what presentation converges to");
}

/// The pending ticks, oldest first.
fn pending(rig: &Rig) -> Vec<PendingTick<TankInput>> {
    rig.client.predictor().pending().collect()
}

/// `state` with every pending step held on top of it, by hand.
fn rebuilt(rig: &Rig, state: &Authority<Tanks>) -> [u64; 3] {
    let mut replay = rig.replay(state);
    for (_, step) in rig.client.predictor().pending_steps() {
        replay.hold(step.input, step.span);
    }
    bits(replay.body().tank().unwrap())
}

/// The second state contradicts the first in position and heading: nothing of the first may be left in the second rebuild.
#[test]
fn recon_02_each_of_two_states_rebuilds_the_prediction_from_its_own_baseline() {
    let mut rig = driving();
    let before = bits(rig.predicted());
    let mut first = rig.server.clone();
    first.own.body.tank_mut().unwrap().x += 0.5;
    rig.serve();
    let mut second = rig.server.clone();
    second.own.body.tank_mut().unwrap().y += 0.25;
    second.own.body.tank_mut().unwrap().heading += 0.125;
    let all = pending(&rig);
    assert_eq!(all.first().map(|pending| pending.tick), Some(Tick::new(101)));

    rig.accept(&first).expect("newer");
    assert_eq!(pending(&rig), all[2..], "101 and 102 are gone, the rest is as it was");
    let after_first = bits(rig.predicted());
    assert_eq!(after_first, rebuilt(&rig, &first));
    assert_ne!(after_first, before, "the first state did correct");

    rig.accept(&second).expect("newer");
    assert_eq!(pending(&rig), all[3..], "103 too, and no other");
    assert_eq!(bits(rig.predicted()), rebuilt(&rig, &second));
    assert_ne!(bits(rig.predicted()), after_first, "so did the second");
    assert_eq!(rig.client.predictor().baseline().own.body, second.own.body);

    // The rest stays pending for the state after that.
    rig.server = second;
    rig.serve();
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!(diagnosis.cause, None, "the third state agrees with what was rebuilt from the second");
    assert_eq!(pending(&rig), all[4..]);
}

#[test]
fn recon_03_gameplay_reads_the_predicted_pose_while_the_visible_one_converges() {
    let mut rig = driving();
    rig.server.own.body.tank_mut().unwrap().x -= 0.5;
    rig.deliver().expect("newer");
    let mut truth = rig.client.predictor().clone();
    for _ in 0..10 {
        rig.frame(ms(16));
        truth.update(rig.now);
        assert_eq!(Some(rig.predicted()), truth.predicted().tank(), "presentation does not touch it");
        assert!(distance(&rig) > 0.001, "and is still on its way");
    }
}

#[test]
fn recon_04_a_residual_within_the_threshold_does_not_jump_and_converges() {
    let mut rig = driving();
    let before = rig.visible();
    rig.server.own.body.tank_mut().unwrap().x -= 0.5;
    rig.server.own.body.tank_mut().unwrap().heading += 0.01;
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!(diagnosis.outcome, Outcome::Eased);
    let after = rig.visible();
    assert!((after.x - before.x).abs() < 1e-9 && (after.y - before.y).abs() < 1e-9);
    assert!((after.heading - before.heading).abs() < 1e-9);
    let mut last = distance(&rig);
    for _ in 0..24 {
        rig.frame(ms(16));
        assert!(distance(&rig) < last, "closer with every frame");
        last = distance(&rig);
    }
    rig.frame(ms(16));
    assert_eq!(distance(&rig), 0.0, "and over after 400 ms");
}

#[test]
fn recon_05_a_residual_beyond_the_threshold_snaps_and_nothing_of_it_stays() {
    let mut rig = driving();
    rig.server.own.body.tank_mut().unwrap().x -= 0.5;
    rig.deliver().expect("newer");
    rig.frame(ms(16));
    assert!(distance(&rig) > 0.1, "a correction is under way");
    rig.serve();
    rig.server.own.body.tank_mut().unwrap().x += 20.0;
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!(diagnosis.outcome, Outcome::Snapped(Snap::Size));
    assert_eq!(rig.visible(), rig.predicted().pose(), "position and rotation, at once");
    assert_eq!(rig.client.presenter().expect("a tank is always drawn").deadline(), None);
    rig.frame(ms(16));
    assert_eq!(rig.visible(), rig.predicted().pose());
    rig.serve();
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!(diagnosis.cause, None, "prediction goes on from the rebuilt baseline");
}

#[test]
fn recon_06_the_window_is_bounded_and_prediction_stops_and_says_so() {
    let mut rig = Rig::new(ms(0));
    rig.set(0.0, 1.0);
    rig.play(ms(1_999));
    assert_eq!(rig.client.predictor().status(), Status::Predicting);
    rig.frame(ms(1));
    assert_eq!(rig.client.predictor().status(), Status::Starved);
    let stopped = bits(rig.predicted());
    rig.play(ms(10_000));
    assert_eq!(bits(rig.predicted()), stopped);
    assert_eq!(rig.client.predictor().pending().count(), 40, "two seconds, and no more memory");
    assert_eq!(rig.client.predictor().stats().starved, 1);

    rig.server.tick = Tick::new(341);
    rig.server.own.body = Tank::new(3.0, 0.0, 0.0).into();
    let diagnosis = rig.deliver().expect("authority returns");
    assert_eq!(diagnosis.resync, Some(Resync::Silence));
    assert_eq!(diagnosis.cause, Some(Cause::Resync));
    assert_eq!(rig.client.predictor().stats().resyncs, 1);
    assert_eq!(rig.client.predictor().status(), Status::Predicting);
    rig.play(ms(100));
    assert!(rig.predicted().x > 3.0, "the player still holds the throttle");
}

#[test]
fn recon_06_a_deep_rollback_is_never_dropped() {
    let mut rig = Rig::new(ms(0));
    rig.set(0.5, 1.0);
    rig.play(ms(1_990));
    rig.serve();
    rig.server.own.body.tank_mut().unwrap().x += 1.0;
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!((diagnosis.resync, diagnosis.replayed_ticks), (None, 39));
    assert!((diagnosis.correction_distance - 1.0).abs() < 0.05);
}

/// Accepts a state with this target, after 400 ms of play, and gives what became of it.
fn resync_of(change: impl Fn(&mut Rig) -> ServerTime) -> (Rig, Option<Resync>) {
    let mut rig = driving();
    let target = change(&mut rig);
    let state = rig.server.clone();
    let diagnosis = rig.client.accept(rig.now, target, &state).expect("newer");
    (rig, diagnosis.resync)
}

#[test]
fn recon_06_a_clock_error_resyncs_just_beyond_its_limit_and_not_at_it() {
    for (error, resync) in [(500_000, None), (500_001, Some(Resync::ClockError))] {
        let (_, ahead) = resync_of(|rig| rig.time_now() + Duration::from_micros(error));
        let (_, behind) = resync_of(|rig| rig.time_now() - Duration::from_micros(error));
        assert_eq!((ahead, behind), (resync, resync), "at {error} us");
    }
}

#[test]
fn recon_06_a_state_of_the_open_tick_resyncs_and_of_the_one_before_does_not() {
    // The open tick is 111.
    for (tick, resync) in [(110, None), (111, Some(Resync::Overtaken)), (900, Some(Resync::Overtaken))] {
        let (rig, became) = resync_of(|rig| {
            rig.server.tick = Tick::new(tick);
            rig.time_now()
        });
        assert_eq!(became, resync, "tick {tick}");
        assert!(rig.client.predictor().open_tick() > Tick::new(tick), "the state is in the past now");
    }
}

#[test]
fn recon_06_a_new_time_epoch_resyncs_and_an_old_one_is_stale() {
    let (mut rig, became) = resync_of(|rig| {
        rig.server.epoch = Epoch::new(1);
        rig.time_now()
    });
    assert_eq!(became, Some(Resync::NewEpoch));
    rig.server.epoch = Epoch::new(0);
    rig.server.tick = Tick::new(5_000);
    assert!(matches!(rig.deliver(), Err(Ignored::Stale { .. })));
}

#[test]
fn recon_06_a_resync_clears_what_is_pending_and_sets_the_clock() {
    let (mut rig, _) = resync_of(|rig| rig.time_now() + ms(700));
    let predictor = rig.client.predictor();
    // 101 * 50 ms + 120 ms lead + 400 ms of play + 700 ms.
    assert_eq!(predictor.time(), ServerTime::from_micros(5_050_000 + 1_220_000));
    assert_eq!(predictor.baseline().tick, Tick::new(102));
    let own: Vec<_> = predictor.pending().filter(|at| at.origin == halftrack::Origin::Recorded).collect();
    assert_eq!(own, [], "nothing but substitutes until the first full tick");
    let first = predictor.open_tick().next();
    rig.play(ms(100));
    let own = rig.client.predictor().pending().find(|at| at.origin == halftrack::Origin::Recorded);
    assert_eq!(own.map(|pending| pending.tick), Some(first));
}

#[test]
fn recon_06_after_a_resync_the_gap_is_filled_as_the_server_fills_it() {
    // The clock jumps by 600 ms: the server holds the last input for 250 ms, then nothing.
    let (rig, _) = resync_of(|rig| rig.time_now() + ms(600));
    let gap: Vec<_> = rig.client.predictor().pending().map(|at| at.input.start().throttle.level()).collect();
    // The open tick was 111; the state's is 102. Held up to 116, neutral from 117 on.
    let held = (103..=116).map(|_| 16);
    let neutral = (117..=123).map(|_| 0);
    assert_eq!(gap, held.chain(neutral).collect::<Vec<_>>());
}

#[test]
fn recon_06_one_call_longer_than_the_hold_records_neutral_ticks() {
    let mut rig = Rig::new(ms(100));
    rig.set(0.0, 1.0);
    rig.play(ms(200));
    // The open tick is 107, 0 ms into it; what the server knows last is 106.
    assert_eq!(rig.client.predictor().open_tick(), Tick::new(107));
    rig.frame(ms(449));
    let level = |tick| rig.recorded(Tick::new(tick)).map(|input| input.start().throttle.level());
    assert_eq!(level(111), Some(16), "250 ms after 106");
    assert_eq!(level(112), Some(0), "300 ms after 106: beyond the hold");
    assert_eq!(level(114), Some(0));
    assert_eq!(level(115), Some(16), "the open tick is the player's again");
    assert_eq!(rig.client.predictor().stats().stalled_ticks, 3);
}

#[test]
fn stale_02_an_older_state_rewinds_nothing() {
    let mut rig = driving();
    let older = rig.server.clone();
    rig.serve();
    rig.deliver().expect("newer");
    let (predicted, visible) = (bits(rig.predicted()), rig.visible());
    let pending = rig.client.predictor().pending().count();
    let stale = Ignored::Stale { tick: Tick::new(102), baseline: Tick::new(103) };
    assert_eq!(rig.accept(&older), Err(stale));
    assert_eq!((bits(rig.predicted()), rig.visible()), (predicted, visible));
    assert_eq!(rig.client.predictor().pending().count(), pending);
    assert_eq!(rig.client.predictor().baseline().tick, Tick::new(103));
}

#[test]
fn the_last_tick_that_a_server_can_reach_works_and_the_next_is_refused() {
    let first = |tick| {
        let Rig { rules, server: mut state, .. } = Rig::new(ms(0));
        state.tick = tick;
        let time = Cadence::default().end_of(tick);
        Predictor::new(rules, PredictConfig::default(), Timestamp::ZERO, time, &state)
    };
    let mut last = first(Tick::MAX_STATE).expect("the last one");
    for millis in (0..5_000).step_by(16) {
        last.update(Timestamp::ZERO + ms(millis));
    }
    assert_eq!(last.status(), Status::Starved, "there is room for a full window after it");
    let beyond = Tick::MAX_STATE.next();
    assert_eq!(first(beyond).err(), Some(ConfigError::UnknownTick { tick: beyond }));
    assert_eq!(first(Tick::MAX).err(), Some(ConfigError::UnknownTick { tick: Tick::MAX }));
}

#[test]
fn bad_states_and_backward_time_are_counted_and_change_nothing() {
    let mut rig = driving();
    rig.deliver().expect("newer");
    rig.frame(ms(0));
    let shown = (bits(rig.predicted()), rig.visible(), rig.client.predictor().time());
    assert_eq!(rig.deliver(), Err(Ignored::Duplicate { tick: Tick::new(102) }));
    rig.server.tick = Tick::new(101);
    let stale = Ignored::Stale { tick: Tick::new(101), baseline: Tick::new(102) };
    assert_eq!(rig.deliver(), Err(stale));
    rig.server.tick = Tick::MAX;
    assert_eq!(rig.deliver(), Err(Ignored::UnknownTick { tick: Tick::MAX }));
    let now = rig.now;
    rig.now = now - ms(50);
    rig.client.frame(rig.now);
    rig.set(0.0, 1.0);
    assert_eq!((bits(rig.predicted()), rig.visible(), rig.client.predictor().time()), shown);
    let stats = rig.client.predictor().stats();
    assert_eq!((stats.duplicate, stats.stale, stats.unknown_tick, stats.backwards), (1, 1, 1, 2));
    assert_eq!(stats.accepted, 1);
    rig.server.tick = Tick::new(103);
    rig.deliver().expect("newer, though the clock went back");
    assert_eq!(rig.client.predictor().stats().backwards, 3, "one call is counted once");
}
