//! CADENCE: prediction accumulates elapsed time, all of it, once, on the server's grid.

use std::time::Duration;

use crate::rig::{Rig, bits, input, ms, us};
use halftrack::{Cadence, Completeness, Inputs, MoveInput, Rate, Tick, Upto};
use proptest::prelude::*;
use tanks::TankInput;

fn accumulated(rig: &Rig) -> Duration {
    rig.client.predictor().pending_steps().map(|(_, step)| step.span).sum()
}

/// Two tanks with the same input. One is drawn at every arrival and hears of no state: it knows the right pose of each
/// moment, and its recorded input makes the server's states. The other is drawn only afterwards, so that the state
/// itself must bring time up to its arrival.
#[test]
fn cadence_01_a_state_is_applied_on_top_of_all_time_up_to_its_arrival() {
    let mut reference = Rig::new(ms(80));
    let mut rig = Rig::new(ms(80));
    let mut states = 0;
    for round in 0..40u64 {
        let turn = [0.5, -0.25, 1.0][(round / 7) as usize % 3];
        let wait = us(7_001 + round * 613);
        for each in [&mut reference, &mut rig] {
            each.set(turn, 1.0);
            each.now = each.now + wait;
        }
        reference.frame(Duration::ZERO);
        if reference.time_now() > Cadence::default().end_of(reference.server.tick.next()) + ms(80) {
            reference.serve();
            // No call between `wait` and here: the time since the last round is in no frame.
            let diagnosis = rig.accept(&reference.server).expect("newer");
            states += 1;
            let predictor = rig.client.predictor();
            assert_eq!(predictor.time(), rig.time_now(), "time is brought to the arrival, round {round}");
            assert_eq!(diagnosis.cause, None, "and what is replayed is all of it: {diagnosis:?}");
            assert_eq!(bits(rig.predicted()), bits(reference.predicted()), "round {round}");
            let end = Cadence::default().end_of(rig.client.predictor().baseline().tick);
            assert_eq!(
                accumulated(&rig),
                rig.time_now().saturating_since(end),
                "from the baseline's end to now"
            );
        }
        // Later time starts from there.
        for each in [&mut reference, &mut rig] {
            each.frame(us(1_999));
        }
        assert_eq!(bits(rig.predicted()), bits(reference.predicted()), "round {round}");
    }
    assert!(states > 10, "{states} states");
}

#[test]
fn cadence_02_the_rate_of_calls_does_not_matter() {
    let play = |frames: &mut dyn Iterator<Item = Duration>| {
        let mut rig = Rig::new(ms(10));
        rig.set(0.25, 1.0);
        let end = rig.now + ms(1_000);
        while rig.now < end {
            let frame = frames.next().expect("endless").min(end.saturating_since(rig.now));
            rig.frame(frame);
        }
        (bits(rig.predicted()), accumulated(&rig))
    };
    let mut results = vec![];
    for hz in [50, 60, 144, 1000] {
        results.push(play(&mut std::iter::repeat(Duration::from_secs(1) / hz)));
    }
    results.push(play(&mut (1..).map(|n: u64| us(n * 7_919 % 35_000))));
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
    assert_eq!(results[0].1, ms(1_010), "a second and the lead, never 2.5 times that");
}

#[test]
fn cadence_02_a_slewed_clock_changes_the_pace_and_not_the_length_of_a_tick() {
    let mut rig = Rig::new(ms(10));
    rig.set(0.25, 1.0);
    rig.client.set_rate(rig.now, Rate::from_ppm(50_000));
    rig.play(ms(1_000));
    assert_eq!(accumulated(&rig), ms(1_060), "5 % more than has passed");
    let interval = Cadence::default().interval();
    let open = rig.client.predictor().open_tick();
    for tick in rig.client.predictor().pending().filter(|pending| pending.tick < open) {
        let spans: Duration = tick.input.steps(Cadence::default()).map(|step| step.span).sum();
        assert_eq!(spans, interval);
    }
}

#[test]
fn cadence_03_what_is_accumulated_is_what_is_replayed() {
    let mut rig = Rig::new(ms(49));
    rig.set(-0.5, 0.75);
    rig.frame(ms(1));
    for _ in 0..8 {
        rig.frame(us(12_500));
    }
    assert_eq!(accumulated(&rig), ms(150), "the substituted tick, and 100 ms");
    let baseline = rig.client.predictor().baseline();
    let mut replay = rig.replay(baseline);
    let mut ended = 0;
    for (_, step) in rig.client.predictor().pending_steps() {
        ended += replay.hold(step.input, step.span);
    }
    assert_eq!((ended, replay.phase()), (3, Duration::ZERO));
    assert_eq!(bits(replay.body().tank().unwrap()), bits(rig.predicted()));
}

/// The changes of a tick: microseconds into it, and throttle level.
fn changes(rig: &Rig, tick: u32) -> Vec<(u128, i8)> {
    let recorded = rig.recorded(Tick::new(tick)).expect("pending");
    let at = |change| Cadence::default().offset_of(change).as_micros();
    recorded.changes().map(|change| (at(change.at), change.input.throttle.level())).collect()
}

/// At the start of tick 103, driving at full throttle, nothing changed for a while.
fn driving() -> Rig {
    let mut rig = Rig::new(ms(49));
    rig.set(0.0, 1.0);
    rig.frame(ms(51));
    assert_eq!(rig.client.predictor().open_tick(), Tick::new(103));
    rig
}

#[test]
fn cadence_04_a_change_takes_effect_at_the_next_grid_moment() {
    let mut rig = driving();
    rig.frame(us(18_401));
    let before = bits(rig.predicted());
    rig.set(0.0, -1.0);
    assert_eq!(bits(rig.predicted()), before, "nothing shown is rewritten");
    let ahead = rig.predicted().x;
    rig.frame(us(16_667));
    assert!(rig.predicted().x < ahead, "the next frame shows it");
    // 18,401 us lie between moments 94 (18,359) and 95 (18,554).
    assert_eq!(changes(&rig, 103), [(18_554, -16)]);
    assert!(!changes(&rig, 103)[0].0.is_multiple_of(1_000), "the grid is finer than a millisecond");
}

#[test]
fn cadence_04_equal_quantised_input_makes_no_step() {
    let mut rig = driving();
    rig.frame(ms(10));
    rig.client.set_input(rig.now, input(0.001, 0.999));
    rig.frame(ms(10));
    assert_eq!(changes(&rig, 103), []);
}

#[test]
fn cadence_04_a_stick_cannot_use_up_a_tick_at_once() {
    let mut rig = driving();
    for level in (0..=15).rev() {
        rig.frame(ms(3));
        rig.client.set_input(rig.now, input(0.0, f32::from(level as i8) / 16.0));
    }
    rig.frame(ms(1));
    let moments: Vec<_> = changes(&rig, 103).into_iter().map(|(at, _)| at).collect();
    assert_eq!(moments.len(), 3);
    assert!(
        moments.windows(2).all(|pair| pair[1] - pair[0] >= 12_500),
        "a quarter of a tick apart: {moments:?}"
    );
    // Newest wins: at the third moment it was what the stick said then, and at the boundary likewise.
    assert_eq!(changes(&rig, 103).last().map(|(_, level)| *level), Some(7));
    rig.frame(ms(2));
    assert_eq!(rig.recorded(Tick::new(104)).map(|tick| tick.start().throttle.level()), Some(0));
}

#[test]
fn cadence_04_a_change_that_has_to_wait_is_counted() {
    let mut rig = driving();
    let delayed = |rig: &Rig| rig.client.predictor().stats().delayed_changes;
    let before = delayed(&rig);
    rig.frame(ms(5));
    rig.set(0.0, 0.5);
    assert_eq!(delayed(&rig), before, "nothing changed for a while: taken at once");
    rig.frame(ms(3));
    rig.set(0.0, 0.25);
    assert_eq!(delayed(&rig), before + 1, "a quarter of a tick has not passed");
    rig.frame(ms(3));
    rig.set(0.0, 0.125);
    assert_eq!(delayed(&rig), before + 2);
}

#[test]
fn cadence_04_of_two_wishes_at_one_moment_the_newest_wins() {
    // Moment 64 of the grid is at 12,500 us exactly: the first wish is made at it or before it, the second at it.
    for first in [12_500, 12_400] {
        let mut rig = driving();
        rig.frame(us(first));
        rig.set(0.0, 0.0);
        rig.frame(us(12_500 - first));
        rig.set(0.0, 0.5);
        rig.frame(ms(5));
        assert_eq!(changes(&rig, 103), [(12_500, 8)], "the first wish made at {first}");
    }
}

/// Fills in the inputs that the client would send.
fn fill(rig: &mut Rig, upto: Upto, message: &mut MoveInput<TankInput>) {
    let Inputs { newest, completeness } = rig.client.inputs(upto, &mut message.ticks);
    (message.newest, message.completeness) = (newest, completeness);
}

#[test]
fn what_is_sent_is_what_is_recorded_and_not_acknowledged() {
    let mut rig = driving();
    let mut message = MoveInput::default();
    rig.play(ms(130));
    fill(&mut rig, Upto::Closed, &mut message);
    assert_eq!((message.newest, message.completeness), (Tick::new(104), Completeness::Closed));
    // Tick 101 was under way when prediction began: nothing was recorded for it.
    let sent: Vec<_> = message.numbered().map(|(tick, input)| (tick, *input)).collect();
    let recorded: Vec<_> =
        (102..=104).map(Tick::new).map(|tick| (tick, rig.recorded(tick).expect("pending"))).collect();
    assert_eq!(sent, recorded);

    rig.set(0.5, 1.0);
    fill(&mut rig, Upto::Open, &mut message);
    assert_eq!((message.newest, message.completeness), (Tick::new(105), Completeness::Open));
    let open = message.ticks.last().expect("the open one");
    assert_eq!(open.last(), input(0.5, 1.0), "the change goes out with it");
    (0..3).for_each(|_| rig.serve());
    rig.deliver().expect("newer");
    fill(&mut rig, Upto::Closed, &mut message);
    assert_eq!(message.numbered().map(|(tick, _)| tick).collect::<Vec<_>>(), [Tick::new(104)]);
}

#[test]
fn cadence_04_a_tick_that_was_sent_as_complete_takes_no_more_changes() {
    let mut rig = driving();
    let mut message = MoveInput::default();
    rig.frame(us(20_333));
    rig.set(0.5, 1.0);
    // A change that has yet to take effect goes out with it.
    fill(&mut rig, Upto::Complete, &mut message);
    assert_eq!((message.newest, message.completeness), (Tick::new(103), Completeness::Closed));
    let sent = *message.ticks.last().expect("the open one");
    assert_eq!(sent.last(), input(0.5, 1.0));
    for wish in [-1.0, 0.25, -0.5] {
        rig.frame(us(3_000));
        rig.set(wish, 0.0);
    }
    rig.frame(ms(50));
    assert_eq!(rig.recorded(Tick::new(103)), Some(sent), "it ends as it was sent");
    let next = rig.recorded(Tick::new(104)).expect("pending");
    assert_eq!(next.start(), input(-0.5, 0.0), "and the newest wish takes effect at its end");
    fill(&mut rig, Upto::Complete, &mut message);
    assert!(message.newest > Tick::new(103), "the next one is open again");
}

#[test]
fn cadence_04_a_wish_taken_back_before_its_moment_leaves_no_step() {
    let mut rig = driving();
    rig.frame(us(12_501));
    rig.set(0.0, 0.0);
    rig.set(0.0, 1.0);
    rig.frame(ms(5));
    assert_eq!(changes(&rig, 103), []);
}

#[test]
fn cadence_04_the_grid_instant_is_the_same_on_the_server() {
    let mut rig = driving();
    rig.frame(us(20_333));
    rig.set(1.0, 0.5);
    rig.play(ms(130));
    let live = bits(rig.predicted());
    for _ in 0..3 {
        rig.serve();
    }
    let diagnosis = rig.deliver().expect("newer");
    assert_eq!(
        (diagnosis.cause, diagnosis.correction_distance, diagnosis.correction_angle),
        (None, 0.0, 0.0)
    );
    assert_eq!(bits(rig.predicted()), live);
}

proptest! {
    /// Any partition into calls, any input: the same bits, and every microsecond accounted for.
    #[test]
    fn cadence_02_any_partition_into_calls_gives_the_same_bits(
        inputs in prop::collection::vec((0u64..900_000, -16i8..=16, -16i8..=16), 0..20),
        extra in prop::collection::vec(0u64..900_000, 0..60),
    ) {
        let run = |extra: &[u64]| {
            let mut rig = Rig::new(ms(25));
            let start = rig.now;
            let mut calls: Vec<(u64, Option<(i8, i8)>)> =
                inputs.iter().map(|(at, turn, throttle)| (*at, Some((*turn, *throttle)))).collect();
            calls.extend(extra.iter().map(|at| (*at, None)));
            calls.extend((0..10).map(|n| (n * 100_000, None)));
            calls.sort_by_key(|call| call.0);
            for (at, wish) in calls {
                rig.now = start + us(at);
                match wish {
                    Some((turn, throttle)) => rig.set(f32::from(turn) / 16.0, f32::from(throttle) / 16.0),
                    None => rig.frame(Duration::ZERO),
                }
            }
            rig.now = start + us(900_000);
            rig.frame(Duration::ZERO);
            (bits(rig.predicted()), accumulated(&rig))
        };
        let few = run(&[]);
        prop_assert_eq!(run(&extra), few);
        prop_assert_eq!(few.1, ms(925));
    }
}
