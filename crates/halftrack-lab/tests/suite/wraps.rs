//! Every number of the wire and the core that wraps, or ends, run across while people play: `docs/PROTOCOL.md` has the
//! list. The room of `endure` goes through most of them for days.

use std::time::Duration;

use halftrack::Tick;
use halftrack_lab::{Happening, Plan, judge, run_once, tank_lab};

fn plan(text: &str) -> Plan {
    Plan::read(text).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn ticks_pass_the_ends_of_their_bits() {
    // Half of the 16 bits of a snapshot, all of them, the sign of 32 bits, and the last wrap of the 16 before the end.
    for wrap in [1u32 << 15, 1 << 16, 3 << 16, 1 << 31, u32::MAX - (2 << 16) + 1] {
        let text = format!(
            "name = \"wrap\"\nseconds = 8\nplayers = 3\nfirst_tick = {}\nseed = 5\n[link]\ndelay_ms = 40\n\
             jitter_ms = 8\nloss = 0.02\n[[event]]\nat_s = 3.8\nkind = \"reconnect\"\nclient = 1\n[[event]]\nat_s = 3.9\n\
             kind = \"leave\"\nclient = 2\nfor_s = 0.3",
            wrap - 80
        );
        let measured = run_once(&plan(&text), 5).unwrap();
        assert_eq!(measured.invariants.violated, 0, "{wrap}: {:?}", measured.invariants.list);
        assert_eq!((measured.own.by_cause.unexplained, measured.events.lost), (0, 0), "{wrap}");
        assert!(measured.own.ticks > 250 && measured.events.told > 20, "{wrap}: {measured:?}");
    }
}

#[test]
fn a_room_ends_before_ticks_do() {
    let first = Tick::MAX_STATE.number() - 60;
    let text =
        format!("name = \"end\"\nseconds = 6\nplayers = 2\nfirst_tick = {first}\n[link]\ndelay_ms = 20");
    let mut lab = tank_lab(&plan(&text), 1).unwrap();
    lab.run(Duration::from_secs(2));
    assert!(lab.server().is_ready());
    lab.run(Duration::from_secs(4));
    assert!(!lab.server().is_ready(), "it has stopped");
    assert_eq!(lab.server().tick(), Tick::MAX_STATE);
    assert_eq!(lab.measured().invariants.violated, 0, "{:?}", lab.measured().invariants.list);
}

#[test]
fn epochs_pass_the_end_of_their_eight_bits() {
    let mut plan =
        plan("name = \"epochs\"\nplayers = 1\nframe_hz = 20\nbots = \"tour\"\n[link]\ndelay_ms = 10");
    let stall = Duration::from_millis(2_200);
    plan.happenings = (1..=260)
        .map(|number| (Duration::from_millis(3_000) * number, Happening::ServerStall(stall)))
        .collect();
    plan.span = Duration::from_secs(3 * 261 + 50);
    let (fault, _) = judge(&plan, false);
    assert_eq!(fault, None);
    let mut lab = tank_lab(&plan, plan.seed).unwrap();
    lab.run(plan.span);
    assert_eq!(lab.server().epoch().number(), 260, "each of them slipped");
    let client = lab.client(0).unwrap();
    let baseline = client.reconciler().unwrap().predictor().baseline();
    assert_eq!(baseline.epoch.number(), 260, "and the client has followed");
    assert!(lab.server().tick().since(baseline.tick) < 5);
}

#[test]
fn input_numbers_pass_the_end_of_their_sixteen_bits() {
    let text = "name = \"seq\"\nseconds = 340\nplayers = 1\ncadence_ms = 5\nframe_hz = 30\nwake = \"boundary\"\n\
                bots = \"tour\"\n[link]\ndelay_ms = 10\njitter_ms = 2\nloss = 0.01";
    let mut lab = tank_lab(&plan(text), 3).unwrap();
    lab.run(Duration::from_secs(340));
    let client = lab.client(0).unwrap();
    assert!(client.stats().inputs > 66_000, "{:?}", client.stats());
    let player = client.player().unwrap();
    let stats = lab.server().input_stats(player).unwrap();
    assert!(stats.held * 50 < stats.as_sent, "none of it was taken for old: {stats:?}");
    assert_eq!(lab.measured().invariants.violated, 0, "{:?}", lab.measured().invariants.list);
}
