//! Shots that the rules do not allow.

use std::time::Duration;

use halftrack::Tick;
use tanks::{CombatEvent, Fighter};

use crate::attack::{Failed, Field, Outcome, attacks};
use crate::bytes::{self, LoginBytes, varint};
use crate::metrics::Counter;
use crate::peer::{Login, Peer, told};

attacks! { Guests:
    "fire-rate", "a shot every few milliseconds, and many for the same moment" => fire_rate;
    "aim-cheats", "aims outside the circle, and a turret that spins between shots" => aim_cheats;
    "rewind-claims", "shots at what was never shown, long past, or not yet there" => rewind_claims;
    "seen-after-shot", "late shots that claim a snapshot of after their own moment" => seen_after_shot;
    "logout-to-reload", "a shot, a logout, and a login by the same name or another, again and again" => logout_to_reload;
    "logout-to-escape", "a logout right after a shot, and a login by the same name" => logout_to_escape;
}

/// Rejections and shots of one's own, counted.
fn count(outcome: &mut Outcome, events: &[CombatEvent]) -> usize {
    let mut fired = 0;
    for event in events {
        match event {
            CombatEvent::ShootRejected { why, .. } => outcome.saw(format!("rejected: {why}")),
            CombatEvent::Fired { .. } => fired += 1,
            _ => {}
        }
    }
    outcome.seen.add("fired", fired);
    fired
}

async fn fire_rate(field: &Field) -> Result<Outcome, Failed> {
    const COUNT: usize = 200;
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "gatling").await?;
    let begun = std::time::Instant::now();
    for number in 0..COUNT {
        let tick = peer.tick(field);
        let (next, at) = (Tick::new(tick.number() + 2), u8::try_from(number % 256).unwrap_or(0));
        peer.say(&bytes::shot(next, at, (number * 331) as u16, tick, 0)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let events = peer.combat(Duration::from_millis(600)).await;
    outcome.sent("shots", COUNT);
    let fired = count(&mut outcome, &events);
    // One at once, and one for every half second.
    let most = 2 + begun.elapsed().as_millis() as usize / 500;
    outcome.check(fired <= most, format!("{fired} shots were fired where {most} are allowed"));
    outcome.check(outcome.seen.of("rejected: cooling_down") > 0, "no shot was rejected as too soon");
    peer.leave().await;
    Ok(outcome)
}

async fn aim_cheats(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for aim in [65_536_u64, 1 << 32, u64::MAX] {
        let mut peer = Peer::enter(field, "askew").await?;
        let tick = u64::from(peer.tick(field).number());
        let mut body = vec![];
        for number in [tick, 0, aim, tick, 0] {
            varint(number, &mut body);
        }
        peer.write(&bytes::frame(4, &body)).await;
        outcome.sent("aims outside the circle", 1);
        outcome.saw(told(peer.closed().await?));
    }
    outcome.expect(Counter::closed("malformed"), 3);
    // Half a turn between two shots is what the rules allow: a turret has no weight, and who is hit is for the server to
    // find.
    let mut peer = Peer::enter(field, "spin").await?;
    for number in 0..3_u16 {
        let tick = peer.tick(field);
        peer.say(&bytes::shot(Tick::new(tick.number() + 2), 0, number.wrapping_mul(0x8000), tick, 0)).await;
        tokio::time::sleep(Duration::from_millis(550)).await;
    }
    outcome.sent("shots half a turn apart", 3);
    let events = peer.combat(Duration::from_millis(300)).await;
    count(&mut outcome, &events);
    peer.leave().await;
    Ok(outcome)
}

async fn rewind_claims(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "rewind").await?;
    // So that it has been sent snapshots from before the oldest shot.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let mut events = vec![];
    for number in 0..40_u32 {
        let tick = peer.tick(field);
        let at = |ahead: i64| Tick::new(u32::try_from(i64::from(tick.number()) + ahead).unwrap_or(0));
        let shot = match number % 5 {
            // Just outside what is allowed, and far outside.
            0 => bytes::shot(at(2), 0, 0, tick, 300_001),
            1 => bytes::shot(at(2), 1, 0, tick, u32::MAX),
            // Snapshots that nobody has been sent.
            2 => bytes::shot(at(2), 2, 0, at(50), 0),
            // Fired in the past, or in the future.
            3 => bytes::shot(at(-14), 0, 0, at(-16), 0),
            _ => bytes::shot(at(100), 0, 0, tick, 0),
        };
        peer.say(&shot).await;
        outcome.sent("shots", 1);
        events.extend(peer.combat(Duration::from_millis(20)).await);
    }
    events.extend(peer.combat(Duration::from_millis(300)).await);
    count(&mut outcome, &events);
    for why in ["claim_invalid", "too_early", "too_late"] {
        outcome.check(
            outcome.seen.of(&format!("rejected: {why}")) > 0,
            format!("nothing was rejected as {why}"),
        );
    }
    outcome.check(outcome.seen.of("fired") == 0, "a shot that could not be was fired");
    peer.leave().await;
    Ok(outcome)
}

async fn seen_after_shot(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut peer = Peer::enter(field, "oracle").await?;
    tokio::time::sleep(Duration::from_millis(800)).await;
    let mut events = vec![];
    for number in 0..10_u32 {
        // The snapshot was sent; the shot is of three ticks before it.
        let seen = Tick::new(peer.tick(field).number().saturating_sub(1));
        let shot = Tick::new(seen.number().saturating_sub(3));
        peer.say(&bytes::shot(shot, u8::try_from(number).unwrap_or(0), 0, seen, 0)).await;
        outcome.sent("shots", 1);
        events.extend(peer.combat(Duration::from_millis(60)).await);
    }
    events.extend(peer.combat(Duration::from_millis(300)).await);
    count(&mut outcome, &events);
    outcome
        .check(outcome.seen.of("rejected: claim_invalid") == 10, "a snapshot of after the shot was believed");
    peer.leave().await;
    Ok(outcome)
}

/// Orders a shot for the tick after next. Gives what the server says in the next 200 ms.
async fn shoot_once(peer: &mut Peer, field: &Field) -> Vec<CombatEvent> {
    let tick = peer.tick(field);
    peer.say(&bytes::shot(Tick::new(tick.number() + 2), 0, 0, tick, 0)).await;
    peer.combat(Duration::from_millis(200)).await
}

async fn logout_to_reload(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    for number in 0..8 {
        let name = if number < 4 { "reload".to_owned() } else { format!("reload {number}") };
        let mut peer = Peer::enter(field, &name).await?;
        let events = shoot_once(&mut peer, field).await;
        outcome.sent("shots right after a login", 1);
        let own = |event: &&CombatEvent| matches!(event, CombatEvent::ShootRejected { .. });
        let rejected: Vec<_> = events.iter().filter(own).copied().collect();
        count(&mut outcome, &rejected);
        outcome.check(!rejected.is_empty(), "a gun was loaded when its tank came");
        peer.leave().await;
    }
    Ok(outcome)
}

async fn logout_to_escape(field: &Field) -> Result<Outcome, Failed> {
    let mut outcome = Outcome::default();
    let mut witness = Peer::enter(field, "witness").await?;
    let mut peer = Peer::connect(field).await?;
    let login = LoginBytes::new(field, "escape");
    let Login::In { player, .. } = peer.log_in(&login).await? else {
        return Err("not let in".into());
    };
    tokio::time::sleep(Duration::from_millis(700)).await;
    let events = shoot_once(&mut peer, field).await;
    let own = Fighter::from(player);
    let fired = |event: &CombatEvent| matches!(event, CombatEvent::Fired { shooter, .. } if *shooter == own);
    outcome.check(events.iter().any(fired), "an honest shot was not fired");
    peer.leave().await;
    outcome.sent("logouts in combat", 1);
    let seen = witness.combat(Duration::from_millis(300)).await;
    let died = |event: &CombatEvent| matches!(event, CombatEvent::Death { fighter, .. } if *fighter == own);
    outcome.check(seen.iter().any(died), "a tank that left in combat did not die");
    // It comes back as a wreck: its shots are those of the dead.
    let mut again = Peer::enter(field, "escape").await?;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let events = shoot_once(&mut again, field).await;
    count(&mut outcome, &events);
    again.leave().await;
    outcome.check(outcome.seen.of("rejected: dead") == 1, "a tank that left in combat came back alive");
    witness.leave().await;
    Ok(outcome)
}
