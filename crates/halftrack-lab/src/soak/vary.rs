//! Other plans of the same kind: the network, the crowd, the clock and what goes wrong, at random within ranges that a
//! session must survive. `docs/LAB.md` has the ranges.

use std::time::Duration;

use halftrack::{Cadence, SyncLink, Tick};
use halftrack_netem::LinkConfig;

use crate::dice::Dice;
use crate::lab::{Cut, Happening};
use crate::pace::{Frames, Wake};
use crate::plan::{Plan, SeatPlan};
use crate::tank::Bots;

/// After the last trouble there is so much time for everything to be well again: longer than the longest pause before
/// coming back, and the name of somebody whose leaving was not heard is free again.
const TAIL: Duration = Duration::from_secs(50);
/// Cadences in microseconds; the usual one is usual here too.
const CADENCES: [u64; 10] = [5_000, 10_000, 16_667, 20_000, 33_333, 50_000, 50_000, 50_000, 100_000, 200_000];
/// A server catches up with a stall of so long; after a longer one its time slips.
const CAUGHT_UP: Duration = Duration::from_secs(2);
/// Where a number that is made of ticks wraps, or may be thought to.
const WRAPS: [u32; 6] = [1 << 15, 1 << 16, 1 << 17, 1 << 24, 1 << 31, u32::MAX - (2 << 16)];

/// Another plan, made of `plan` by dice: now and then it is the plan itself.
pub(crate) fn vary(plan: &Plan, dice: &mut Dice) -> Plan {
    let mut varied = plan.clone();
    varied.expect.clear();
    (varied.runs, varied.seed) = (1, dice.roll() >> 1);
    if one_in(dice, 6) {
        return varied;
    }
    if one_in(dice, 2)
        && let Ok(cadence) = Cadence::new(Duration::from_micros(pick(dice, &CADENCES)))
    {
        varied.cadence = cadence;
    }
    if one_in(dice, 5) {
        varied.bots = Bots::Tour;
    }
    vary_crowd(&mut varied, dice);
    vary_machines(&mut varied, dice);
    varied.seats.iter_mut().for_each(|seat| vary_seat(seat, dice));
    vary_troubles(&mut varied, dice);
    if one_in(dice, 2) {
        let ticks = varied.cadence.ticks_in(varied.span);
        let before = u32::try_from(dice.below(u64::from(ticks))).unwrap_or(0);
        varied.first_tick = Tick::new(pick(dice, &WRAPS).saturating_sub(before));
    }
    varied
}

/// Whom a number of players costs: what a client does grows with the others, so a crowd has less time.
fn vary_crowd(plan: &mut Plan, dice: &mut Dice) {
    let Some(usual) = plan.seats.first().copied() else { return };
    let players = match dice.below(16) {
        0 | 1 => 1,
        2 => 13 + dice.below(28),
        _ => 2 + dice.below(7),
    };
    plan.seats.resize(usize::try_from(players).unwrap_or(1), usual);
    let seconds = if players > 12 { 10 + dice.below(10) } else { 10 + dice.below(80) };
    plan.span = Duration::from_secs(seconds);
}

/// Tourists meet nobody.
fn vary_machines(plan: &mut Plan, dice: &mut Dice) {
    if one_in(dice, 3) {
        plan.machines = u8::try_from(1 + dice.below(12)).unwrap_or(1);
    }
    if plan.bots == Bots::Tour {
        plan.machines = 0;
    }
}

fn vary_seat(seat: &mut SeatPlan, dice: &mut Dice) {
    // Whatever else its link is like: a client without datagrams is as common as one with them.
    seat.sync_link = if one_in(dice, 2) { SyncLink::Absent } else { SyncLink::Present };
    if one_in(dice, 2) {
        return;
    }
    let delay_ms = dice.unit() * pick(dice, &[5.0, 50.0, 250.0]);
    let jitter_ms = dice.unit() * pick(dice, &[0.0, 5.0, 60.0]);
    let some = |dice: &mut Dice, most: f64| if one_in(dice, 2) { 0.0 } else { dice.unit() * most };
    seat.link = LinkConfig {
        delay: Duration::from_micros((delay_ms * 1e3) as u64),
        jitter: Duration::from_micros((jitter_ms * 1e3) as u64),
        keep_order: one_in(dice, 3),
        loss: some(dice, 0.2),
        burst: 1.0 + some(dice, 6.0),
        reorder: some(dice, 0.1),
        duplicate: some(dice, 0.1),
        corrupt: some(dice, 0.02),
        rate_bits_per_second: one_in(dice, 6).then(|| 256_000 + dice.below(2_000_000)),
        ..LinkConfig::default()
    };
    seat.frames = match pick(dice, &[0, 20, 30, 60, 60, 144]) {
        0 => Frames::Irregular,
        hz => Frames::Hz(hz),
    };
    seat.wake = if one_in(dice, 2) { Wake::Boundary } else { Wake::Frame };
    seat.clock_ppm = i32::try_from(dice.below(1_001)).unwrap_or(0) - 500;
}

fn vary_troubles(plan: &mut Plan, dice: &mut Dice) {
    let players = plan.seats.len();
    plan.happenings.retain(|_| false);
    let count = if one_in(dice, 4) { 0 } else { dice.below(10) };
    let span_ms = u64::try_from(plan.span.as_millis()).unwrap_or(u64::MAX);
    for _ in 0..count {
        let at = Duration::from_millis(dice.below(span_ms));
        let client = usize::try_from(dice.below(players as u64)).unwrap_or(0);
        let long = pick(dice, &[300, 3_000, 12_000, 40_000]);
        let span = Duration::from_millis(1 + dice.below(long));
        let happening = match dice.below(8) {
            0 => Happening::ServerStall(span.min(CAUGHT_UP)),
            1 => Happening::ServerStall(CAUGHT_UP + Duration::from_millis(dice.below(3_000))),
            2 => Happening::ClientStall(client, span),
            3 => Happening::Partition(client, span),
            4 => Happening::RouteChange(client, Duration::from_millis(dice.below(400)), span),
            5 => Happening::Leave(client, span.min(Duration::from_secs(10))),
            6 => Happening::DatagramsCut(client, pick(dice, &[Cut::Up, Cut::Down, Cut::Both]), span),
            _ => Happening::Reconnect(client),
        };
        plan.happenings.push((at, happening));
    }
    // Everything is to be well at the end: there must have been time for it.
    let over = plan.happenings.iter().map(|(at, happening)| *at + happening.span()).max();
    plan.span = over.map_or(plan.span, |over| plan.span.max(over + TAIL));
}

fn one_in(dice: &mut Dice, count: u64) -> bool {
    dice.below(count) == 0
}

fn pick<T: Copy, const N: usize>(dice: &mut Dice, from: &[T; N]) -> T {
    from[usize::try_from(dice.below(N as u64)).unwrap_or(0).min(N - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SHIPPED;

    #[test]
    fn reliable_links_slips_and_stalls_are_as_common_as_anything_else() {
        let plan = Plan::read(SHIPPED[1].1).unwrap();
        let (mut seats, mut reliable) = (0, 0);
        let mut troubles = [0u32; 8];
        for number in 0..2_000 {
            let varied = vary(&plan, &mut Dice::new(number, "common"));
            seats += varied.seats.len();
            reliable += varied.seats.iter().filter(|seat| seat.sync_link == SyncLink::Absent).count();
            for (_, happening) in &varied.happenings {
                let kind = match happening {
                    Happening::ServerStall(span) if *span > CAUGHT_UP => 0,
                    Happening::ServerStall(_) => 1,
                    Happening::ClientStall(..) => 2,
                    Happening::Partition(..) => 3,
                    Happening::RouteChange(..) => 4,
                    Happening::Leave(..) => 5,
                    Happening::DatagramsCut(..) => 6,
                    _ => 7,
                };
                troubles[kind] += 1;
            }
        }
        // A sixth of all plans are as they are shipped: with datagrams, and no trouble.
        assert!((0.35..0.5).contains(&(reliable as f64 / seats as f64)), "{reliable} of {seats}");
        let most = troubles.iter().max().unwrap();
        assert!(troubles.iter().all(|count| count * 5 > most * 4), "{troubles:?}");
    }

    #[test]
    fn machines_are_in_some_plans_and_never_among_tourists() {
        let plan = Plan::read(SHIPPED[1].1).unwrap();
        let varied: Vec<_> = (0..600).map(|number| vary(&plan, &mut Dice::new(number, "machines"))).collect();
        let with = varied.iter().filter(|plan| plan.machines > 0).count();
        assert!((100..300).contains(&with), "{with} of 600");
        assert!(
            varied.iter().all(|plan| plan.machines <= 12 && (plan.bots == Bots::Brawl || plan.machines == 0))
        );
    }

    #[test]
    fn what_comes_out_is_a_plan_that_can_be_read() {
        let shipped: Vec<_> = SHIPPED.into_iter().map(|(_, text)| Plan::read(text).unwrap()).collect();
        for number in 0..300 {
            let mut dice = Dice::new(number, "vary");
            let varied = vary(&shipped[number as usize % shipped.len()], &mut dice);
            let text = varied.to_text();
            let again = Plan::read(&text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
            assert_eq!(format!("{again:?}"), format!("{varied:?}"), "a finding can be run again");
        }
    }
}
