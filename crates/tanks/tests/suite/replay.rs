//! REPLAY: replay is live play, to the bit.

use std::sync::Arc;
use std::time::Duration;

use crate::rig::{Rig, bits, input, ms, open_field, step, us};
use halftrack::{Body, Cadence, CheckPlan, Replay, Tick, TickInput, check_game};
use proptest::prelude::*;
use tanks::{Arena, Tank, TankInput, Tanks};

/// Plays `turn` and `throttle` live from the start of a tick for `span`, in uneven frames.
fn live(turn: f32, throttle: f32, span: Duration) -> Rig {
    let mut rig = Rig::new(ms(49));
    rig.set(turn, throttle);
    rig.frame(ms(1));
    let start = rig.now;
    for frame in [us(3_331), us(16_667), us(41_003), us(20_020)].into_iter().cycle() {
        let left = span - rig.now.saturating_since(start);
        rig.frame(frame.min(left));
        if left <= frame {
            return rig;
        }
    }
    rig
}

fn replayed(turn: f32, throttle: f32, span: Duration) -> (Tank, u64, Duration) {
    let (rules, tank) = (open_field(), Tank::new(0.0, 0.0, 0.0));
    let mut replay = Replay::new(&*rules, Cadence::default(), Tick::new(1), &[], tank.into());
    let ended = replay.hold(input(turn, throttle), span);
    ((*replay.body()).tank().copied().unwrap(), ended, replay.phase())
}

#[test]
fn replay_01_steady_input_is_three_cadence_substeps() {
    let (tank, ended, phase) = replayed(0.0, 1.0, ms(150));
    assert_eq!((ended, phase), (3, Duration::ZERO));
    assert_eq!(bits(&tank), bits(live(0.0, 1.0, ms(150)).predicted()));
    let mut by_hand = Tank::new(0.0, 0.0, 0.0);
    for _ in 0..3 {
        step(&open_field(), &mut by_hand, input(0.0, 1.0), ms(50));
        by_hand.settle();
    }
    assert_eq!(bits(&tank), bits(&by_hand));
    assert!((tank.x - 1.2).abs() < 0.002 && tank.y == 0.0, "8 m/s for 150 ms");
}

#[test]
fn replay_02_turning_steers_the_substeps_after_it() {
    let (tank, ended, _) = replayed(0.5, 1.0, ms(100));
    assert_eq!(ended, 2);
    assert_eq!(bits(&tank), bits(live(0.5, 1.0, ms(100)).predicted()));
    let mut by_hand = Tank::new(0.0, 0.0, 0.0);
    let mut headings = vec![];
    for _ in 0..2 {
        step(&open_field(), &mut by_hand, input(0.5, 1.0), ms(50));
        by_hand.settle();
        headings.push(by_hand.heading);
    }
    assert_eq!(bits(&tank), bits(&by_hand));
    assert!(headings[0] > 0.0 && headings[1] > headings[0]);
    let mut one_shot = Tank::new(0.0, 0.0, 0.0);
    step(&open_field(), &mut one_shot, input(0.5, 1.0), ms(100));
    assert_ne!(bits(&one_shot), bits(&tank), "one step of 100 ms is another path");
}

#[test]
fn replay_03_what_is_not_a_multiple_keeps_its_rest() {
    let (tank, ended, phase) = replayed(0.5, 1.0, ms(120));
    assert_eq!((ended, phase), (2, ms(20)));
    assert_eq!(bits(&tank), bits(live(0.5, 1.0, ms(120)).predicted()));
    let (still, ended, phase) = replayed(0.5, 1.0, Duration::ZERO);
    assert_eq!((bits(&still), ended, phase), (bits(&Tank::new(0.0, 0.0, 0.0)), 0, Duration::ZERO));
}

#[test]
fn replay_04_replaying_removes_nothing_but_what_is_acknowledged() {
    let mut rig = Rig::new(ms(120));
    rig.set(0.25, 1.0);
    rig.play(ms(400));
    (0..2).for_each(|_| rig.serve());
    let before: Vec<_> = rig.client.predictor().pending().filter(|at| at.tick > rig.server.tick).collect();
    rig.deliver().expect("newer");
    let after: Vec<_> = rig.client.predictor().pending().collect();
    assert_eq!(after, before, "unchanged, and in order");
    assert_eq!(after.first().map(|pending| pending.tick), Some(rig.server.tick.next()));
    assert_eq!(after.len(), 9, "103 to the open tick, 111");
}

#[test]
fn replay_05_recorded_play_gives_the_same_pose_however_often_it_is_replayed() {
    let mut rig = Rig::new(ms(80));
    for (turn, throttle) in [(0.0, 1.0), (1.0, 1.0), (-0.5, 0.25), (0.75, -1.0), (0.0, 0.0), (0.3, 0.9)] {
        rig.set(turn, throttle);
        rig.play(us(73_411));
    }
    let live = bits(rig.predicted());
    let baseline = rig.client.predictor().baseline().clone();
    for _ in 0..3 {
        let mut replay = rig.replay(&baseline);
        for (_, step) in rig.client.predictor().pending_steps() {
            replay.hold(step.input, step.span);
        }
        assert_eq!(bits(replay.body().tank().unwrap()), live);
    }
}

#[test]
fn replay_06_increasing_baselines_over_the_same_pending_input_are_deterministic() {
    let mut rig = Rig::new(ms(80));
    rig.set(0.5, 1.0);
    rig.play(ms(600));
    let live = bits(rig.predicted());
    let wrong = |x: f64| Tank::new(x, 1.0, 0.25);
    let mut once = vec![];
    for _ in 0..2 {
        let mut client = rig.client.clone();
        let mut results = vec![];
        for (tick, x) in [(102, 5.0), (104, -3.0), (107, 0.5)] {
            let mut state = rig.server.clone();
            (state.tick, state.own.body) = (Tick::new(tick), wrong(x).into());
            client.accept(rig.now, rig.time_now(), &state).expect("newer");
            results.push(bits(client.predicted().tank().unwrap()));
        }
        if once.is_empty() {
            once = results;
        } else {
            assert_eq!(once, results, "each rebuild depends on its baseline alone");
        }
    }
    for _ in 0..5 {
        rig.serve();
        rig.deliver().expect("newer");
        assert_eq!(bits(rig.predicted()), live, "true states change nothing");
    }
}

#[test]
fn replay_07_heading_moves_before_position_and_axes_clamp() {
    let mut tank = Tank::new(0.0, 0.0, 0.0);
    let turn_speed = tank.params.turn_speed();
    step(&open_field(), &mut tank, input(1.0, 1.0), ms(50));
    let heading = turn_speed * 0.05;
    assert!((tank.heading - heading).abs() < 1e-12);
    let angle = heading * std::f64::consts::TAU;
    assert!((tank.x - 0.4 * angle.cos()).abs() < 1e-12, "along the heading that it ends with");
    assert!((tank.y - 0.4 * angle.sin()).abs() < 1e-12);
    assert_eq!(input(5.0, -7.0), input(1.0, -1.0));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(TankInput::from_unit(bad, 0.0).is_err() && TankInput::from_unit(0.0, bad).is_err());
    }
    let mut wreck = Tank { hp: 0, ..Tank::new(1.0, 2.0, 0.5) };
    step(&open_field(), &mut wreck, input(1.0, 1.0), ms(50));
    assert_eq!(wreck, Tank { hp: 0, ..Tank::new(1.0, 2.0, 0.5) }, "a wreck does not move");
}

#[test]
fn a_settled_tank_at_rest_is_a_fixed_point_also_against_a_wall() {
    let rules = Tanks::new(Arena::proving_ground().into());
    let mut tank = Tank::new(0.0, 20.0, 0.1);
    let mut replay = Replay::new(&rules, Cadence::default(), Tick::new(1), &[], tank.into());
    let mut at_walls = 0;
    for tick in 0..200 {
        replay.tick(&TickInput::steady(input([0.0, 0.25, -0.25][tick % 3], 1.0)));
        tank = (*replay.body()).tank().copied().unwrap();
        let mut at_rest = tank;
        step(&rules, &mut at_rest, TankInput::NEUTRAL, ms(50));
        at_rest.settle();
        assert_eq!(bits(&at_rest), bits(&tank), "after tick {tick}");
        at_walls += u32::from(rules.arena().clearance([tank.x, tank.y]) < tanks::HULL_RADIUS + 0.005);
    }
    assert!(at_walls > 50, "it was at a wall for {at_walls} ticks");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The tank rules under the public checker: walls, hulls, any cadence and frame rate.
    #[test]
    fn replay_06_tank_rules_pass_the_checker(
        micros in prop_oneof![Just(50_000u64), 5_000u64..=200_000],
        frame in 1_000u64..50_000,
        tanks in prop::collection::vec((-40.0f64..40.0, -25.0f64..25.0, 0.0f64..1.0), 1..6),
        wishes in prop::collection::vec((-16i8..=16, -16i8..=16), 1..12),
        seed in any::<u64>(),
    ) {
        let arena = Arc::new(Arena::proving_ground());
        let plan = CheckPlan {
            cadence: Cadence::new(us(micros)).unwrap(),
            ticks: 20,
            frame: us(frame),
            seed,
            ..CheckPlan::new(
                tanks.into_iter().map(|(x, y, heading)| Tank::new(x, y, heading).into()).collect(),
                wishes.into_iter().map(|(turn, throttle)| input(f32::from(turn) / 16.0, f32::from(throttle) / 16.0)).collect(),
            )
        };
        check_game(|| Tanks::new(Arc::clone(&arena)), &plan).unwrap();
    }

    /// No tank ends up in a wall, however it is driven and cut into steps.
    #[test]
    fn a_tank_never_enters_a_wall(
        start in (-44.0f64..44.0, -28.0f64..28.0, 0.0f64..1.0),
        drive in prop::collection::vec((1u64..200_000, -16i8..=16, -16i8..=16), 1..200),
    ) {
        let rules = Tanks::new(Arena::proving_ground().into());
        let arena = rules.arena();
        prop_assume!(arena.clearance([start.0, start.1]) > 1.51);
        let tank = Tank::new(start.0, start.1, start.2);
        let mut replay = Replay::new(&rules, Cadence::default(), Tick::new(1), &[], tank.into());
        for (span, turn, throttle) in drive {
            replay.hold(input(f32::from(turn) / 16.0, f32::from(throttle) / 16.0), us(span));
            let tank = replay.body();
            let clearance = arena.clearance([tank.pose().x, tank.pose().y]);
            prop_assert!(clearance >= tanks::HULL_RADIUS, "{clearance} m left at {:?}", tank);
        }
    }
}
