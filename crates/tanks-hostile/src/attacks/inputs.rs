//! Input that says what is not so: other ticks, other answers, other numbers.

use std::time::{Duration, Instant};

use halftrack::wire::control::{FromClient, Heartbeat, Report};
use halftrack::{Cause, Tick, TickInput};
use tanks::{Axis, TankInput};

use super::defects::pace;
use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes;
use crate::metrics::Counter;
use crate::peer::{Peer, told};

attacks! { Guests:
    "past-ticks", "input for ticks that are over, to change what has happened" => past_ticks;
    "duplicate-ticks", "the same message again, and other input for the same tick" => duplicate_ticks;
    "not-a-number", "NaN and infinities wherever a number could be" => not_a_number;
    "false-acks", "acknowledges snapshots that were never sent" => false_acks;
    "forgetful-client", "acknowledges nothing, so that every snapshot has all bodies in full" => forgetful_client;
    "false-receipts", "says that more has arrived than was ever sent" => false_receipts;
    "false-reports", "reports corrections that never were" => false_reports;
    "report-flood", "reports as fast as they are taken, to fill the recording" => report_flood;
    "order-flood", "orders without end, to fill the recording" => order_flood;
}

const FULL: TankInput = TankInput { turn: Axis::FULL, throttle: Axis::FULL, rocket: 0 };

async fn past_ticks(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 200;
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "past").await?;
    for number in 0..COUNT {
        let now = peer.tick(field).number();
        let back = [2, 20, 64, 1_000][number % 4];
        let bytes = peer.input(field, |message| {
            message.newest = Tick::new(now.saturating_sub(back).max(128));
            message.ticks = vec![TickInput::steady(FULL); 100];
        });
        peer.datagram(bytes);
        pace(number).await;
    }
    outcome.sent("datagrams of 100 ticks", COUNT);
    outcome.check(peer.is_open().await, "input that is late is not simulated, and closes nothing");
    peer.leave().await;
    Ok(outcome)
}

async fn duplicate_ticks(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 200;
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "twice").await?;
    let same = peer.input(field, |_| ());
    for number in 0..COUNT {
        peer.datagram(same.clone());
        // A new message that says something else of a tick that was told already.
        let ahead = Tick::new(peer.tick(field).number() + 10);
        let other = peer.input(field, |message| {
            message.newest = ahead;
            let level = i8::try_from(number % 16).unwrap_or(0);
            let input = TankInput { turn: Axis::from_level(level), throttle: Axis::FULL, rocket: 0 };
            message.ticks = vec![TickInput::steady(input)];
        });
        peer.datagram(other);
        pace(2 * number + 1).await;
    }
    outcome.sent("datagrams sent again", COUNT);
    outcome.sent("ticks told otherwise", COUNT);
    outcome.expect(Counter::dropped("stale"), COUNT / 3);
    outcome.expect(Counter::missed("altered"), COUNT / 8);
    outcome.check(peer.is_open().await, "what was told before stays, and nothing is closed");
    peer.leave().await;
    Ok(outcome)
}

async fn not_a_number(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let singles = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let doubles = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let patterns = singles.map(|number| number.to_le_bytes().repeat(8));
    let patterns: Vec<_> =
        patterns.into_iter().chain(doubles.map(|number| number.to_le_bytes().repeat(5))).collect();
    let peer = Peer::enter(field, "NaN").await?;
    for (number, pattern) in patterns.iter().cycle().take(200).enumerate() {
        peer.datagram(pattern.clone());
        pace(number).await;
    }
    outcome.sent("datagrams", 200);
    outcome.expect(Counter::dropped("malformed"), 140);
    outcome.check(peer.is_open().await, "a datagram that means nothing closes nothing");
    peer.leave().await;
    for (number, pattern) in patterns.iter().enumerate() {
        let mut peer = Peer::enter(field, &format!("NaN {number}")).await?;
        peer.write(&bytes::frame(4, pattern)).await;
        outcome.sent("shots", 1);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("malformed"), patterns.len());
    Ok(outcome)
}

async fn false_acks(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 200;
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "acks").await?;
    for number in 0..COUNT {
        let now = peer.tick(field).number();
        let ack = [now + 100, 0, u32::MAX, now.saturating_sub(5_000)][number % 4];
        let bytes = peer.input(field, |message| message.ack = Some(Tick::new(ack)));
        peer.datagram(bytes);
        pace(number).await;
    }
    outcome.sent("datagrams", COUNT);
    outcome.expect(Counter::BAD_ACKS, COUNT / 4);
    outcome.check(peer.is_open().await, "an answer that cannot be is not believed, and closes nothing");
    peer.leave().await;
    Ok(outcome)
}

async fn forgetful_client(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 400;
    let (mut outcome, begun) = (Outcome::default(), Instant::now());
    let mut peer = Peer::enter(field, "forgetful").await?;
    for number in 0..COUNT {
        let bytes = peer.input(field, |message| message.ack = None);
        peer.datagram(bytes);
        pace(number).await;
    }
    outcome.sent("datagrams", COUNT);
    // One a second for a player whose snapshots have no room for all bodies.
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap_or(0);
    outcome.expect_at_most(Counter::FULL_STATES, seconds + 2);
    outcome.check(peer.is_open().await, "a client that needs everything in full closes nothing");
    peer.leave().await;
    Ok(outcome)
}

async fn false_receipts(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for received in [1_u64 << 20, u64::MAX] {
        let mut peer = Peer::enter(field, &format!("receipts {}", received % 7)).await?;
        peer.say(&FromClient::Heartbeat(Heartbeat { sent_micros: 0, received })).await;
        outcome.sent("heartbeats", 1);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("malformed"), 2);
    Ok(outcome)
}

async fn false_reports(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 200;
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "reports").await?;
    for number in 0..COUNT {
        peer.say(&FromClient::Report(Report {
            corrections: [u16::MAX; Cause::ALL.len()],
            snapped: u16::MAX,
            sizes: vec![],
        }))
        .await;
        pace(number).await;
    }
    outcome.sent("reports", COUNT);
    outcome.saw("believed by nobody but the operator's counters");
    outcome.check(peer.is_open().await, "a report is counted, and nothing depends on it");
    peer.leave().await;
    Ok(outcome)
}

async fn report_flood(field: &Field) -> Result<Outcome, Failed> {
    /// Reports that are sent at once, below the burst that a peer may send: enough to judge by, however short the attack.
    const AT_ONCE: usize = 1_000;
    /// Bytes of recording per report. An entry for each report would be 40 bytes and more. Folded to one a second, all of
    /// them together are below 500 bytes, and six honest players add less than 500 bytes a second.
    const BYTES_PER_REPORT: usize = 10;
    let (mut outcome, begun) = (Outcome::default(), Instant::now());
    let mut peer = Peer::enter(field, "reporter").await?;
    let report = FromClient::Report(Report {
        corrections: [u16::MAX; Cause::ALL.len()],
        snapped: u16::MAX,
        sizes: vec![],
    });
    let mut count = AT_ONCE;
    peer.write(&bytes::frame_of(&report).repeat(AT_ONCE)).await;
    let span = field.span.min(Duration::from_secs(5));
    while begun.elapsed() < span && peer.say(&report).await {
        count += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    outcome.sent("reports", count);
    outcome.expect(Counter::SNAPS, AT_ONCE * usize::from(u16::MAX));
    outcome.expect_at_most(Counter::RECORDED, count * BYTES_PER_REPORT);
    outcome.check(peer.is_open().await, "a report is counted, and nothing depends on it");
    peer.leave().await;
    Ok(outcome)
}

async fn order_flood(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 1_100;
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "gunner").await?;
    for number in 0..COUNT {
        let tick = peer.tick(field);
        let shot = bytes::shot(Tick::new(tick.number() + 2), 0, (number * 331) as u16, tick, u32::MAX);
        if !peer.is_open_now() || !peer.say(&shot).await {
            break;
        }
        outcome.sent("orders", 1);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    outcome.saw(told(peer.closed().await?));
    outcome.expect(Counter::closed("too_much"), 1);
    Ok(outcome)
}
