//! Short versions of every shipped plan: nothing that must hold breaks, and the same seed gives the same result.

use std::time::Duration;

use halftrack_lab::{Plan, SHIPPED, run_plans, table};

/// The plan as it is shipped, cut to what a test may take.
fn short((name, text): (&str, &str)) -> Plan {
    let mut plan = Plan::read(text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    assert_eq!(plan.name, name);
    // What goes wrong must have its time.
    let last = plan.happenings.iter().map(|(at, _)| *at).max();
    plan.span = plan.span.min(last.map_or(Duration::from_secs(12), |at| at + Duration::from_secs(4)));
    plan.seats.truncate(24);
    plan.runs = 1;
    if plan.seats.len() > 8 {
        plan.span = Duration::from_secs(6);
    }
    // What the whole plan reaches, a short one need not.
    plan.expect.clear();
    plan
}

#[test]
fn every_shipped_plan_holds_what_must_hold_and_repeats_itself() {
    let plans: Vec<_> = SHIPPED.into_iter().map(short).collect();
    let results = run_plans(&plans, 2, |_| ()).unwrap();
    assert_eq!(results.len(), SHIPPED.len());
    for (plan, result) in plans.iter().zip(&results) {
        assert!(result.is_good(), "{}", table(std::slice::from_ref(result)));
        let measured = &result.runs[0].measured;
        assert!(measured.invariants.checked > 1_000, "{}", result.plan);
        assert_eq!(measured.own.by_cause.unexplained, 0);
        // Tourists do not shoot.
        let shoots =
            matches!(plan.bots, halftrack_lab::tank::Bots::Brawl | halftrack_lab::tank::Bots::Rockets);
        assert!(measured.own.ticks > 0 && (measured.combat.shots > 0) == shoots, "{}", result.plan);
        assert!(measured.remote.pose_error_m.p50 < 0.01, "{}", result.plan);
    }
}

#[test]
fn seeds_differ() {
    let mut plan = short(SHIPPED[3]);
    (plan.runs, plan.span) = (2, Duration::from_secs(5));
    let results = run_plans(&[plan], 2, |_| ()).unwrap();
    let [one, other] = &results[0].runs[..] else { panic!("two runs") };
    assert_eq!((one.seed, other.seed), (1, 2));
    assert_ne!(one.measured, other.measured);
}

#[test]
fn tourists_never_meet() {
    let mut plan = short(SHIPPED[4]);
    (plan.bots, plan.span) = (halftrack_lab::tank::Bots::Tour, Duration::from_secs(30));
    let results = run_plans(&[plan], 2, |_| ()).unwrap();
    let measured = &results[0].runs[0].measured;
    assert!(results[0].is_good(), "{}", table(&results));
    assert_eq!((measured.own.by_cause.collision, measured.combat.shots), (0, 0));
}

#[test]
fn an_expectation_that_fails_names_its_seed() {
    let text = "name = \"hopeful\"\nseconds = 4\nplayers = 2\nseed = 7\nruns = 2\n[link]\ndelay_ms = 40\n\
                [expect]\n\"input.lead_ms.p50\" = { max = 1.0 }";
    let results = run_plans(&[Plan::read(text).unwrap()], 2, |_| ()).unwrap();
    assert!(!results[0].is_good());
    assert!(matches!(&results[0].failed[..], [failed] if [7, 8].contains(&failed.seed) && failed.got > 40.0));
}
