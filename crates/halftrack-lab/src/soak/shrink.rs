//! The shortest plan that still fails: shorter, fewer clients, machines and troubles, simpler links, until nothing can be
//! taken away. Knows nothing of what failing is.

use std::time::Duration;

use halftrack::{Cadence, SyncLink, Tick};
use halftrack_netem::LinkConfig;

use crate::lab::Happening;
use crate::pace::{Frames, Wake};
use crate::plan::{Plan, SeatPlan};

/// Takes away from `plan` whatever can be taken away so that it still fails. `fails` says when a plan does, counted from
/// its start, and may set the seed that shows it; none when it does not, or when there is no time to try any more.
pub fn shrink(plan: &Plan, mut fails: impl FnMut(&mut Plan) -> Option<Duration>) -> Plan {
    let mut least = plan.clone();
    // Each round may make room for another: without a client, its troubles go too.
    for _ in 0..MAX_ROUNDS {
        let before = least.to_text();
        for step in [leave_out_clients, leave_out_machines, leave_out_troubles, shorten, simplify, soften] {
            step(&mut least, &mut fails);
        }
        if least.to_text() == before {
            break;
        }
    }
    least
}

/// More than any plan has needed; each of them takes something away.
const MAX_ROUNDS: usize = 20;

type Fails<'a> = dyn FnMut(&mut Plan) -> Option<Duration> + 'a;

/// Takes `change` if the plan fails with it. One that changes nothing is not tried.
fn attempt(least: &mut Plan, fails: &mut Fails<'_>, change: impl FnOnce(&mut Plan)) -> bool {
    let mut tried = least.clone();
    change(&mut tried);
    if format!("{tried:?}") == format!("{least:?}") || tried.seats.is_empty() {
        return false;
    }
    let failed = fails(&mut tried).is_some();
    if failed {
        *least = tried;
    }
    failed
}

/// Ends soon after it has failed, or earlier.
fn shorten(least: &mut Plan, fails: &mut Fails<'_>) {
    if let Some(when) = fails(&mut least.clone()) {
        attempt(least, fails, |plan| plan.span = plan.span.min(seconds_up(when)));
    }
    for part in [2, 4, 8] {
        while attempt(least, fails, |plan| plan.span = seconds_up(plan.span - plan.span / part)) {}
    }
    while attempt(least, fails, |plan| {
        plan.span = plan.span.saturating_sub(Duration::from_secs(1)).max(Duration::from_secs(1));
    }) {}
}

/// Whole seconds, and one at least: what a plan can say.
fn seconds_up(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs_f64().ceil().max(1.0) as u64)
}

fn leave_out_troubles(least: &mut Plan, fails: &mut Fails<'_>) {
    let mut size = least.happenings.len();
    while size > 0 {
        let mut at = 0;
        while at < least.happenings.len() {
            let gone = attempt(least, fails, |plan| {
                let end = (at + size).min(plan.happenings.len());
                plan.happenings.drain(at..end);
            });
            at += if gone { 0 } else { size };
        }
        size /= 2;
    }
}

fn leave_out_clients(least: &mut Plan, fails: &mut Fails<'_>) {
    while least.seats.len() > 3 && attempt(least, fails, |plan| truncate(plan, plan.seats.len() / 2)) {}
    let mut index = least.seats.len();
    while index > 0 {
        index -= 1;
        if least.seats.len() > 1 {
            attempt(least, fails, |plan| leave_out_client(plan, index));
        }
    }
}

fn leave_out_machines(least: &mut Plan, fails: &mut Fails<'_>) {
    attempt(least, fails, |plan| plan.crates = 0);
    attempt(least, fails, |plan| plan.platforms = 0);
    attempt(least, fails, |plan| plan.machines = 0);
    while attempt(least, fails, |plan| plan.machines /= 2) {}
    while attempt(least, fails, |plan| plan.machines = plan.machines.saturating_sub(1)) {}
}

fn truncate(plan: &mut Plan, players: usize) {
    while plan.seats.len() > players.max(1) {
        leave_out_client(plan, plan.seats.len() - 1);
    }
}

/// Whoever comes after it gets another number, and so do their troubles.
fn leave_out_client(plan: &mut Plan, gone: usize) {
    plan.seats.remove(gone);
    plan.happenings.retain(|(_, happening)| happening.client() != Some(gone));
    for (_, happening) in &mut plan.happenings {
        if let Some(client) = happening.client().filter(|client| *client > gone) {
            *happening = happening.of_client(client - 1);
        }
    }
}

/// What is not usual becomes usual: for all at once if that will do, else for whom it will do.
fn simplify(least: &mut Plan, fails: &mut Fails<'_>) {
    attempt(least, fails, |plan| plan.first_tick = Tick::default());
    attempt(least, fails, |plan| plan.cadence = Cadence::default());
    let ideal = |seat: &mut SeatPlan| *seat = SEAT;
    let plainly: [fn(&mut SeatPlan); 13] = [
        ideal,
        |seat| seat.frames = SEAT.frames,
        |seat| seat.wake = SEAT.wake,
        |seat| seat.clock_ppm = 0,
        |seat| seat.sync_link = SyncLink::Present,
        |seat| seat.link.rate_bits_per_second = None,
        |seat| seat.link.corrupt = 0.0,
        |seat| seat.link.duplicate = 0.0,
        |seat| seat.link.reorder = 0.0,
        |seat| seat.link.keep_order = false,
        |seat| seat.link.burst = 1.0,
        |seat| (seat.link.loss, seat.link.burst) = (0.0, 1.0),
        |seat| seat.link.jitter = Duration::ZERO,
    ];
    for change in plainly.into_iter().chain([(|seat| seat.link.delay = Duration::ZERO) as fn(&mut SeatPlan)])
    {
        if attempt(least, fails, |plan| plan.seats.iter_mut().for_each(change)) {
            continue;
        }
        for index in 0..least.seats.len() {
            attempt(least, fails, |plan| plan.seats.get_mut(index).into_iter().for_each(change));
        }
    }
}

const SEAT: SeatPlan = SeatPlan {
    link: LinkConfig {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        keep_order: false,
        loss: 0.0,
        burst: 1.0,
        reorder: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        rate_bits_per_second: None,
        max_queue_bytes: 1 << 20,
    },
    sync_link: SyncLink::Present,
    frames: Frames::Hz(60),
    wake: Wake::Frame,
    clock_ppm: 0,
};

/// What cannot go becomes less, and a rounder number.
fn soften(least: &mut Plan, fails: &mut Fails<'_>) {
    let tenth = |span: Duration| Duration::from_millis(span.as_millis() as u64 / 100 * 100);
    for index in 0..least.happenings.len() {
        let change = |plan: &mut Plan, change: &dyn Fn(Duration, Happening) -> (Duration, Happening)| {
            plan.happenings
                .get_mut(index)
                .into_iter()
                .for_each(|(at, what)| (*at, *what) = change(*at, *what));
        };
        while attempt(least, fails, |plan| {
            change(plan, &|at, what| (at, what.lasting(tenth(what.span() / 2))));
        }) {}
        while attempt(least, fails, |plan| change(plan, &|at, what| (tenth(at / 2), what))) {}
        attempt(least, fails, |plan| change(plan, &|at, what| (tenth(at), what.lasting(tenth(what.span())))));
    }
    let gentler: [fn(&mut LinkConfig); 3] = [
        |link| link.loss = (link.loss * 50.0).floor() / 100.0,
        |link| link.delay = Duration::from_millis(link.delay.as_millis() as u64 / 2),
        |link| link.jitter = Duration::from_millis(link.jitter.as_millis() as u64 / 2),
    ];
    for change in gentler {
        while attempt(least, fails, |plan| plan.seats.iter_mut().for_each(|seat| change(&mut seat.link))) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;
    use crate::plan::SHIPPED;
    use crate::runs::run_once;
    use crate::soak::vary::vary;

    /// A failure that needs two clients, loss on the second, and its reconnect after four seconds.
    fn planted(plan: &mut Plan) -> Option<Duration> {
        let lossy = plan.seats.get(1).is_some_and(|seat| seat.link.loss >= 0.04);
        let four = Duration::from_secs(4);
        let cut = plan.happenings.iter().find(|(at, what)| *what == Happening::Reconnect(1) && *at >= four);
        cut.filter(|(at, _)| lossy && *at < plan.span).map(|(at, _)| *at + Duration::from_millis(1_500))
    }

    #[test]
    fn a_planted_failure_is_shrunk_to_what_it_needs() {
        let mut found = 0;
        for number in 0..200 {
            let plan = Plan::read(SHIPPED[number as usize % SHIPPED.len()].1).unwrap();
            let mut plan = vary(&plan, &mut Dice::new(number, "shrink"));
            if planted(&mut plan).is_none() {
                continue;
            }
            found += 1;
            let least = shrink(&plan, planted);
            assert_eq!(least.seats.len(), 2, "{}", least.to_text());
            assert_eq!(least.seats[0], SEAT);
            let expected =
                SeatPlan { link: LinkConfig { loss: least.seats[1].link.loss, ..SEAT.link }, ..SEAT };
            assert_eq!(least.seats[1], expected);
            assert!((0.04..0.09).contains(&expected.link.loss), "{}", expected.link.loss);
            let [(at, Happening::Reconnect(1))] = least.happenings[..] else { panic!("{}", least.to_text()) };
            assert!(at >= Duration::from_secs(4) && at < Duration::from_secs(8), "{at:?}");
            assert_eq!(least.span, Duration::from_secs(at.as_secs() + 1));
            assert_eq!((least.first_tick, least.cadence), (Tick::default(), Cadence::default()));
            assert_eq!(least.machines, 0);
        }
        assert!(found >= 2, "{found} plans had it in them");
    }

    #[test]
    fn machines_that_a_failure_needs_are_left_in() {
        let plan = Plan::read("name = \"m\"\nplayers = 3\nmachines = 11").unwrap();
        let least = shrink(&plan, |plan| (plan.machines >= 3).then_some(Duration::from_secs(1)));
        assert_eq!((least.machines, least.seats.len()), (3, 1));
    }

    #[test]
    fn what_the_lab_itself_shows_is_shrunk_to_its_cause() {
        let text = "name = \"many troubles\"\nseconds = 14\nplayers = 3\n[link]\ndelay_ms = 30\njitter_ms = 4\n\
                    loss = 0.02\n[[event]]\nat_s = 3\nkind = \"reconnect\"\n[[event]]\nat_s = 5\n\
                    kind = \"server_stall\"\nfor_s = 2.6\n[[event]]\nat_s = 9\nkind = \"route_change\"\nclient = 1\n\
                    for_s = 2\ndelay_ms = 90";
        // That the server's time slipped is no failure, but here it is taken for one: only one of these can do it.
        let slipped = |plan: &mut Plan| {
            let mut lab = crate::runs::tank_lab(plan, plan.seed).ok()?;
            crate::runs::play(plan, &mut lab);
            (lab.server().stats().slips > 0).then(|| lab.elapsed())
        };
        let least = shrink(&Plan::read(text).unwrap(), slipped);
        assert_eq!((least.seats.len(), least.seats[0]), (1, SEAT), "{}", least.to_text());
        assert!(matches!(least.happenings[..], [(_, Happening::ServerStall(_))]), "{}", least.to_text());
        assert!(least.span <= Duration::from_secs(3), "{}", least.to_text());
        // And what is told can be run as it stands.
        let again = Plan::read(&least.to_text()).unwrap();
        assert!(run_once(&again, again.seed).is_ok());
        assert!(slipped(&mut again.clone()).is_some());
    }
}
