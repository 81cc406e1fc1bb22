//! CORR: corrections are bounded, one at a time, and each has a name that is true.

use std::time::Duration;

use crate::rig::{Rig, correction, ms, us};
use halftrack::{
    BodyId, Cause, Causes, CorrectionConfig, Driver, Neighbour, Outcome, Pose, Presenter, Snap, Tick,
    TickInput, Timestamp,
};
use proptest::prelude::*;
use tanks::{MoveParams, Tank, TankPose};

fn pose(x: f64, y: f64, heading: f64) -> TankPose {
    TankPose { x, y, heading }
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

#[test]
fn corr_01_acknowledging_removes_exactly_the_ticks_up_to_it() {
    let mut rig = Rig::new(ms(120));
    rig.set(0.0, 1.0);
    rig.play(ms(400));
    let ticks = |rig: &Rig| rig.client.predictor().pending().map(|at| at.tick.number()).collect::<Vec<_>>();
    assert_eq!(ticks(&rig), (101..=111).collect::<Vec<_>>());
    for (acknowledged, first) in [(101, 102), (105, 106), (110, 111)] {
        rig.server.tick = Tick::new(acknowledged);
        rig.deliver().expect("newer");
        assert_eq!(ticks(&rig), (first..=111).collect::<Vec<_>>());
    }
}

#[test]
fn corr_02_position_and_rotation_converge_without_a_snap_by_the_deadline() {
    let mut presenter = Presenter::new(correction(), at(0), pose(0.0, 0.0, 0.0)).expect("a good config");
    let target = pose(0.6, -0.8, 0.05);
    assert_eq!(presenter.correct(at(0), target, Some(Cause::LateInput)), Outcome::Eased);
    assert_eq!(presenter.deadline(), Some(at(400_000)));
    let (mut distance, mut angle) = (1.0, 0.05 * std::f64::consts::TAU);
    for frame in 1..25 {
        presenter.frame(at(frame * 16_000), target);
        let offset = presenter.offset();
        assert!(offset.distance() < distance && offset.angle() < angle, "both shrink");
        (distance, angle) = (offset.distance(), offset.angle());
    }
    presenter.frame(at(399_999), target);
    assert_ne!(*presenter.visible(), target);
    presenter.frame(at(400_000), target);
    assert_eq!(*presenter.visible(), target);
    assert_eq!(presenter.deadline(), None);
}

#[test]
fn corr_02_the_largest_eased_offset_takes_longer_and_keeps_the_cap() {
    let config = correction();
    let mut presenter = Presenter::new(config, at(0), pose(0.0, 0.0, 0.0)).expect("a good config");
    let target = pose(config.snap_distance, 0.0, 0.0);
    assert_eq!(presenter.correct(at(0), target, Some(Cause::LostInput)), Outcome::Eased, "just inside");
    let deadline = presenter.deadline().expect("under way");
    assert_eq!(deadline.as_micros(), 750_000, "4.8 m at 0.8 * 8 m/s");
    let mut last = presenter.offset().distance();
    for step in 1..=750 {
        presenter.frame(at(step * 1_000), target);
        let left = presenter.offset().distance();
        assert!(last - left <= config.cap_speed * 0.001 + 1e-9);
        last = left;
    }
    assert_eq!(last, 0.0);
}

#[test]
fn corr_03_a_new_residual_replaces_the_one_under_way() {
    let mut presenter = Presenter::new(correction(), at(0), pose(0.0, 0.0, 0.0)).expect("a good config");
    presenter.correct(at(0), pose(0.5, 0.0, 0.0), Some(Cause::LateInput));
    presenter.frame(at(100_000), pose(0.5, 0.0, 0.0));
    let visible = *presenter.visible();
    presenter.correct(at(100_000), pose(0.5, 0.3, 0.0), Some(Cause::LateInput));
    assert!(presenter.visible().offset_from(&visible).distance() < 1e-12, "the visible pose stays");
    let expected = visible.offset_from(&pose(0.5, 0.3, 0.0));
    assert!((presenter.offset().distance() - expected.distance()).abs() < 1e-12, "one offset, not two");
    assert_eq!(presenter.deadline(), Some(at(500_000)));
    assert_eq!(presenter.frame(at(500_000), pose(0.5, 0.3, 0.0)), pose(0.5, 0.3, 0.0));
}

#[test]
fn corr_03_a_state_that_changes_nothing_does_not_prolong_a_correction() {
    let mut presenter = Presenter::new(correction(), at(0), pose(0.0, 0.0, 0.0)).expect("a good config");
    presenter.correct(at(0), pose(0.5, 0.0, 0.0), Some(Cause::LateInput));
    for state in 1..=7 {
        let now = at(state * 50_000);
        presenter.frame(now, pose(0.5, 0.0, 0.0));
        assert_eq!(presenter.correct(now, pose(0.5, 0.0, 0.0), None), Outcome::Unchanged);
        assert_eq!(presenter.deadline(), Some(at(400_000)), "no standing error");
    }
}

/// What happens to a presenter whose prediction jumps by this much, for this cause.
fn jump(by: TankPose, cause: Cause) -> (Outcome, bool) {
    let mut presenter = Presenter::new(correction(), at(0), pose(0.0, 0.0, 0.0)).expect("a good config");
    let outcome = presenter.correct(at(0), by, Some(cause));
    (outcome, *presenter.visible() == by && presenter.deadline().is_none())
}

#[test]
fn corr_04_position_or_rotation_beyond_its_threshold_snaps_both() {
    let CorrectionConfig { snap_distance, snap_angle, .. } = correction();
    let turns = snap_angle / std::f64::consts::TAU;
    let snapped = (Outcome::Snapped(Snap::Size), true);
    assert_eq!(jump(pose(snap_distance * 0.9999, 0.0, 0.0), Cause::LateInput), (Outcome::Eased, false));
    assert_eq!(jump(pose(snap_distance * 1.0001, 0.0, 0.01), Cause::LateInput), snapped);
    assert_eq!(jump(pose(0.1, 0.0, turns * 0.9999), Cause::LateInput), (Outcome::Eased, false));
    assert_eq!(jump(pose(0.1, 0.0, -turns * 1.0001), Cause::LateInput), snapped);
    assert_eq!(jump(pose(f64::NAN, 0.0, 0.0), Cause::LateInput).0, Outcome::Snapped(Snap::NotFinite));
}

#[test]
fn corr_04_respawn_and_teleport_snap_whatever_their_size() {
    for cause in Cause::ALL {
        let snaps = matches!(cause, Cause::Respawn | Cause::Teleport);
        let expected = if snaps { (Outcome::Snapped(Snap::Cause), true) } else { (Outcome::Eased, false) };
        assert_eq!(jump(pose(0.1, 0.0, 0.0), cause), expected, "{cause}");
    }
}

/// States that leave a residual of `ahead(milliseconds)` metres every 50 ms; gives when it snapped.
fn standstill(config: CorrectionConfig, ahead: impl Fn(u64) -> Option<f64>) -> Option<u64> {
    let mut presenter = Presenter::new(config, at(0), pose(0.0, 0.0, 0.0)).expect("a good config");
    let mut predicted = pose(0.0, 0.0, 0.0);
    for millis in (0..4_000).step_by(50) {
        let now = at(millis * 1_000);
        presenter.frame(now, predicted);
        let visible = *presenter.visible();
        let Some(ahead) = ahead(millis) else { continue };
        predicted = pose(visible.x + ahead, 0.0, 0.0);
        match presenter.correct(now, predicted, Some(Cause::LateInput)) {
            Outcome::Eased => {}
            Outcome::Snapped(Snap::Standstill) => return Some(millis),
            other => panic!("{other:?} at {millis} ms"),
        }
    }
    None
}

#[test]
fn corr_04_an_episode_that_does_not_converge_for_two_budgets_snaps() {
    let half_a_metre = |_| Some(0.5);
    assert_eq!(standstill(correction(), half_a_metre), Some(850), "the first state after more than 800 ms");
}

#[test]
fn corr_06_an_episode_cannot_be_starved_of_its_end() {
    // Once, a state leaves a tenth; residuals alternate in sign; they shrink a little from state to state.
    let smaller_once = |millis| Some(if millis == 400 { 0.05 } else { 0.5 });
    let alternating = |millis| Some(if millis % 100 == 0 { 0.5 } else { -0.4 });
    let shrinking = |millis| Some(1.0 - millis as f64 / 2_000.0);
    assert_eq!(standstill(correction(), smaller_once), Some(850));
    assert_eq!(standstill(correction(), alternating), Some(850));
    assert_eq!(standstill(correction(), shrinking), Some(850));
}

#[test]
fn corr_06_an_episode_ends_at_zero_or_when_it_has_been_small_for_a_budget() {
    // Half a metre, then nothing for as long as a correction takes, again and again.
    assert_eq!(standstill(correction(), |millis| (millis % 450 == 0).then_some(0.5)), None);
    // Never at zero, but below a quarter of the first residual for a budget: the episode after it is another.
    let small = |millis| match millis {
        0 => Some(1.0),
        1..=600 => Some(0.2),
        _ => Some(0.5),
    };
    assert_eq!(standstill(correction(), small), Some(1_300), "small from 50 to 450 ms, and 800 ms more");
    // A little more than a quarter is not small.
    assert_eq!(standstill(correction(), |millis| Some(if millis == 0 { 1.0 } else { 0.26 })), Some(850));
}

#[test]
fn corr_06_the_time_to_escalation_is_configurable() {
    let half_a_metre = |_| Some(0.5);
    for (budgets, at) in [(1.0, 450), (3.0, 1_250), (5.5, 2_250)] {
        let config = CorrectionConfig { escalate_after: budgets, ..correction() };
        assert_eq!(standstill(config, half_a_metre), Some(at), "{budgets} budgets of 400 ms");
    }
}

#[test]
fn a_residual_within_the_deadband_is_taken_at_once() {
    let grid = Tank::GRID;
    assert_eq!(jump(pose(grid * 0.999, 0.0, 0.0), Cause::LateInput), (Outcome::Negligible, true));
    assert_eq!(jump(pose(grid * 1.001, 0.0, 0.0), Cause::LateInput), (Outcome::Eased, false));
    assert_eq!(jump(pose(0.0, 0.0, Tank::HEADING_GRID * 1.001), Cause::LateInput), (Outcome::Eased, false));
}

#[test]
fn a_jump_that_no_tank_can_make_is_eased_too() {
    let start = pose(0.0, 0.0, 0.0);
    let mut presenter = Presenter::new(correction(), at(0), start).expect("a good config");
    // 8 m/s for 100 ms, a quarter more, and a grid unit.
    assert_eq!(presenter.frame(at(100_000), pose(1.0, 0.0, 0.0)), pose(1.0, 0.0, 0.0));
    let after = presenter.frame(at(200_000), pose(2.01, 0.0, 0.0));
    assert!((after.x - 1.0).abs() < 1e-9, "it stays where it was: {after:?}");
    assert!(presenter.deadline().is_some());
    let turned = presenter.frame(at(201_000), pose(2.01, 0.0, 0.1)).heading;
    assert!(turned.abs() < 1e-9);
}

/// Drives for a while; then the server does something, and the next state tells.
fn diagnose(act: impl Fn(&mut Rig)) -> (Option<Cause>, f64) {
    let mut rig = Rig::new(ms(120));
    rig.set(0.25, 1.0);
    rig.play(ms(400));
    (0..2).for_each(|_| rig.serve());
    rig.deliver().expect("newer");
    rig.set(-0.5, 0.5);
    rig.play(ms(100));
    act(&mut rig);
    let diagnosis = rig.deliver().expect("newer");
    (diagnosis.cause, diagnosis.correction_distance)
}

#[test]
fn corr_05_input_on_time_without_interference_is_corrected_by_exactly_zero() {
    assert_eq!(diagnose(|rig| (0..6).for_each(|_| rig.serve())), (None, 0.0));
}

#[test]
fn corr_05_every_correction_names_what_the_server_did() {
    for cause in [Cause::LateInput, Cause::LostInput] {
        let (named, size) = diagnose(|rig| {
            (0..7).for_each(|_| rig.serve());
            (0..2).for_each(|_| rig.serve_without_input(cause));
        });
        assert!(size > 0.0);
        assert_eq!(named, Some(cause));
    }
    type Change = fn(&mut Tank);
    let changes: [(Cause, Change); 5] = [
        (Cause::Death, |tank| tank.hp = 0),
        (Cause::Respawn, |tank| *tank = Tank::new(50.0, 50.0, 0.0)),
        (Cause::Teleport, |tank| tank.y += 30.0),
        (Cause::Params, |tank| tank.params = MoveParams::new(3.0, 0.1).expect("in range")),
        (Cause::Collision, |tank| tank.x -= 0.2),
    ];
    for (cause, change) in changes {
        let (named, size) = diagnose(|rig| {
            rig.serve();
            change(rig.server.own.body.tank_mut().unwrap());
            rig.server.own.causes = rig.server.own.causes.with(cause);
        });
        assert!(size > 0.0, "{cause}");
        assert_eq!(named, Some(cause));
    }
}

#[test]
fn corr_05_a_hull_that_only_the_client_touched_is_a_collision() {
    let beside = |rig: &Rig, ahead: f64| {
        let tank = rig.predicted();
        let angle = tank.heading * std::f64::consts::TAU;
        let hull = Tank::new(tank.x + ahead * angle.cos(), tank.y + ahead * angle.sin(), 0.0);
        vec![Neighbour::new(BodyId::new(1), Driver::World, hull.into())]
    };
    let mut rig = Rig::new(ms(120));
    rig.set(0.0, 1.0);
    rig.play(ms(300));
    rig.serve();
    // The client learns of a hull in its way: the rebuilt prediction touches it.
    rig.surround(beside(&rig, 1.0));
    let diagnosis = rig.deliver().expect("newer");
    assert!(diagnosis.correction_distance > 0.0);
    assert_eq!(diagnosis.cause, Some(Cause::Collision), "the server said nothing of one");
    // And then that it has gone: the prediction before touched it.
    rig.surround(vec![]);
    rig.serve();
    let diagnosis = rig.deliver().expect("newer");
    assert!(diagnosis.correction_distance > 0.0);
    assert_eq!(diagnosis.cause, Some(Cause::Collision));
}

#[test]
fn corr_05_a_wrong_rule_on_one_side_is_unexplained() {
    // The server's tanks drive a little faster than the client was told.
    let (cause, size) = diagnose(|rig| {
        rig.serve();
        let tick = rig.server.tick.next();
        let input: TickInput<_> = rig.recorded(tick).expect("pending");
        let params = rig.server.own.body.tank().unwrap().params;
        rig.server.own.body.tank_mut().unwrap().params = MoveParams::new(8.5, 0.3125).expect("in range");
        let mut replay = rig.replay(&rig.server);
        replay.tick(&input);
        rig.server.own.body = Tank { params, ..(*replay.body()).tank().copied().unwrap() }.into();
        rig.server.tick = tick;
        rig.server.own.causes = Causes::NONE;
    });
    assert!(size > 0.0);
    assert_eq!(cause, Some(Cause::Unexplained));
}

#[test]
fn corr_05_after_a_resync_the_gap_is_put_down_to_it() {
    let mut rig = Rig::new(ms(120));
    rig.set(0.25, 1.0);
    rig.play(ms(400));
    rig.serve();
    let target = rig.time_now() + ms(600);
    let state = rig.server.clone();
    rig.client.accept(rig.now, target, &state).expect("newer");
    let first = rig.client.predictor().open_tick().next();
    rig.play(ms(200));
    // The server simulated the gap otherwise than the client made it up.
    rig.server.tick = Tick::new(first.number() - 1);
    rig.server.own.body.tank_mut().unwrap().x += 1.0;
    assert_eq!(rig.deliver().expect("newer").cause, Some(Cause::Resync));
    // From the first recorded tick on, that is no excuse.
    rig.server.tick = first;
    rig.server.own.body.tank_mut().unwrap().x += 1.0;
    assert_eq!(rig.deliver().expect("newer").cause, Some(Cause::Unexplained));
}

proptest! {
    /// The contract, over any play of corrections and frames.
    #[test]
    fn corr_02_the_contract_holds_over_any_history(
        script in prop::collection::vec(
            (1u64..60_000, prop::option::weighted(0.3, (-3.0f64..3.0, -3.0f64..3.0, -0.5f64..0.5))),
            1..120,
        ),
    ) {
        let config = correction();
        let (mut now, mut predicted) = (0, pose(0.0, 0.0, 0.0));
        let mut presenter = Presenter::new(config, at(0), predicted).unwrap();
        for (wait, residual) in script {
            let (before, deadline) = (presenter.offset(), presenter.deadline());
            now += wait;
            presenter.frame(at(now), predicted);
            let after = presenter.offset();
            let seconds = us(wait).as_secs_f64();
            prop_assert!(after.is_finite());
            prop_assert!(after.distance() <= before.distance() && after.angle() <= before.angle());
            let speed = |from: f64, to: f64| (from - to) / seconds;
            prop_assert!(speed(before.distance(), after.distance()) <= config.cap_speed * (1.0 + 1e-6) + 1e-9);
            prop_assert!(speed(before.angle(), after.angle()) <= config.cap_turn * (1.0 + 1e-6) + 1e-9);
            if deadline.is_some_and(|deadline| deadline <= at(now)) {
                prop_assert_eq!((after.distance(), after.angle()), (0.0, 0.0));
                prop_assert_eq!(*presenter.visible(), predicted);
            }
            if let Some((x, y, turn)) = residual {
                let visible = *presenter.visible();
                predicted = pose(predicted.x + x, predicted.y + y, predicted.heading + turn);
                let outcome = presenter.correct(at(now), predicted, Some(Cause::LateInput));
                let jumped = presenter.visible().offset_from(&visible);
                match outcome {
                    Outcome::Snapped(_) => prop_assert_eq!(*presenter.visible(), predicted),
                    _ => prop_assert!(jumped.distance() <= config.deadband_distance + 1e-9),
                }
                let offset = presenter.offset();
                prop_assert!(offset.distance() <= config.snap_distance && offset.angle() <= config.snap_angle);
                let budget = presenter.deadline().map_or(Duration::ZERO, |end| end.saturating_since(at(now)));
                prop_assert!(budget <= config.max_budget);
            }
        }
    }
}
