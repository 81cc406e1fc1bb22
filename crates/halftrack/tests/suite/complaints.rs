//! What users of other netcode complain about, each as a test of ours: a server and clients of the cart game, in memory
//! and in virtual time. (What concerns remote players, codecs and hostile peers has its tests there.)

use std::time::Duration;

use crate::rig::carts::{config, config_at, rig, shuttle};
use crate::rig::{Rig, Way, ms};
use halftrack::cart::{Cart, Rails};
use halftrack::client::Client;
use halftrack::server::ServerConfig;
use halftrack::session::SessionState;
use halftrack::{Cadence, Cause, CorrectionStats, InputStats, Rate, Resync, SyncLink, Tick, Timestamp};

fn corrections(client: &Client<Cart>) -> CorrectionStats {
    *client.reconciler().expect("it predicts").stats()
}

fn counted(rig: &Rig<Rails>, seat: usize) -> InputStats {
    *rig.server.input_stats(rig.seats[seat].client.player().unwrap()).unwrap()
}

/// How far prediction is ahead of the server's true time.
fn lead_micros(rig: &Rig<Rails>, seat: usize) -> i64 {
    let seat = &rig.seats[seat];
    let predicted = seat.client.reconciler().unwrap().predictor().clock().at(seat.local(rig.now)).as_micros();
    predicted as i64 - rig.server.time(rig.now).as_micros() as i64
}

#[test]
fn input_is_not_late_at_low_rates_on_loopback() {
    for millis in [50, 66, 100, 200] {
        let cadence = Cadence::new(ms(millis)).unwrap();
        let mut rig = Rig::new(ServerConfig { cadence, ..ServerConfig::default() }, Rails::default(), 1);
        let seat = rig.join(config_at("Ada", cadence), Way::delayed(Duration::from_micros(50)));
        rig.run(Duration::from_secs(2), shuttle);
        let before = counted(&rig, seat);
        rig.run(Duration::from_secs(60), shuttle);
        let after = counted(&rig, seat);
        assert_eq!((after.held, after.late), (before.held, before.late), "at {millis} ms");
        let stats = corrections(&rig.seats[seat].client);
        assert_eq!((stats.eased, stats.snapped), (0, 0), "at {millis} ms: {stats:?}");
        assert!(lead_micros(&rig, seat) < 5_000, "and not bought with a tick of lead");
    }
}

#[test]
fn a_stall_of_the_server_leaves_no_runaway_clock() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.run(Duration::from_secs(3), shuttle);
    let usual = lead_micros(&rig, seat);
    rig.stalled_until = rig.now + Duration::from_secs(1);
    rig.run(Duration::from_secs(3), shuttle);
    assert_eq!(rig.server.stats().slips, 0, "a second is caught up with");
    let settled = lead_micros(&rig, seat);
    assert!((settled - usual).abs() < 3_000, "{settled} us of lead, {usual} before");
    rig.run(Duration::from_secs(10), shuttle);
    let client = &rig.seats[seat].client;
    assert_eq!(client.reconciler().unwrap().predictor().clock().rate(), Rate::ZERO, "it does not hunt");
    assert_eq!(corrections(client).of(Cause::Unexplained), 0);
}

#[test]
fn a_stall_beyond_two_seconds_is_a_new_epoch_and_a_resync() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.run(Duration::from_secs(3), shuttle);
    rig.stalled_until = rig.now + Duration::from_secs(3);
    rig.run(Duration::from_secs(6), shuttle);
    assert_eq!((rig.server.stats().slips, rig.server.epoch().number()), (1, 1));
    let reconciler = rig.seats[seat].client.reconciler().unwrap();
    assert!(
        reconciler.recent().any(|told| told.resync == Some(Resync::NewEpoch)),
        "{:?}",
        reconciler.stats()
    );
    assert_eq!(reconciler.stats().of(Cause::Unexplained), 0);
    let before = corrections(&rig.seats[seat].client);
    rig.run(Duration::from_secs(5), shuttle);
    let after = corrections(&rig.seats[seat].client);
    assert_eq!((after.eased, after.snapped), (before.eased, before.snapped), "and all is quiet again");
}

#[test]
fn nothing_breaks_where_ticks_wrap_on_the_wire_or_end() {
    for first in [u32::from(u16::MAX) - 40, (1 << 24) - 40, (1 << 31) - 40] {
        let config_server = ServerConfig { first_tick: Tick::new(first), ..ServerConfig::default() };
        let mut rig = Rig::new(config_server, Rails::default(), 1);
        let way = Way { delay: ms(30), jitter: ms(10), loss: 0.02, duplicate: 0.0 };
        let seat = rig.join(config("Ada"), way);
        rig.run(Duration::from_secs(20), shuttle);
        let client = &rig.seats[seat].client;
        assert!(client.stats().snapshots > 350, "from tick {first}: {:?}", client.stats());
        assert_eq!(corrections(client).of(Cause::Unexplained), 0);
        assert_eq!(corrections(client).snapped, 0);
    }
    // The last ticks there are: the room ends, and says so.
    let last = Tick::new(Tick::MAX_STATE.number() - 100);
    let mut rig = Rig::new(ServerConfig { first_tick: last, ..ServerConfig::default() }, Rails::default(), 1);
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.run(Duration::from_secs(10), shuttle);
    assert_eq!((rig.server.tick(), rig.server.poll_timeout()), (Tick::MAX_STATE, None));
    assert_eq!(rig.seats[seat].closed.first(), Some(&halftrack::session::DisconnectReason::Stopped));
}

#[test]
fn the_lead_is_what_the_network_needs_and_not_seconds() {
    for delay in [1, 20, 75, 150] {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(delay)));
        rig.run(Duration::from_secs(4), shuttle);
        let lead = lead_micros(&rig, seat);
        let needed = delay as i64 * 1_000;
        assert!((needed..needed + 6_000).contains(&lead), "{lead} us of lead at {delay} ms one way");
    }
}

#[test]
fn a_suspended_tab_comes_back_within_two_seconds_without_growing() {
    for seconds in [1, 3, 20] {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
        let other = rig.join(config("Bob"), Way::delayed(ms(30)));
        rig.run(Duration::from_secs(3), shuttle);
        rig.seats[seat].frozen_until = rig.now + Duration::from_secs(seconds);
        rig.run(Duration::from_secs(seconds + 2), shuttle);
        let client = &rig.seats[seat].client;
        assert_eq!(client.state(), SessionState::LoggedIn, "after {seconds} s");
        assert_eq!(corrections(client).of(Cause::Unexplained), 0, "after {seconds} s");
        assert!(client.stats().events_dropped == 0);
        let (before, late) = (corrections(client), counted(&rig, seat).late);
        rig.run(Duration::from_secs(3), shuttle);
        let after = corrections(&rig.seats[seat].client);
        assert_eq!((after.eased, after.snapped), (before.eased, before.snapped), "after {seconds} s");
        assert_eq!(counted(&rig, seat).late, late, "after {seconds} s");
        let stats = corrections(&rig.seats[other].client);
        assert_eq!((stats.eased, stats.snapped), (0, 0), "and nobody else has noticed");
    }
}

#[test]
fn a_clock_that_jumps_is_recovered_from() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.run(Duration::from_secs(3), shuttle);
    // The client's own clock leaps ahead by three seconds, once. The estimate of the server's never runs backwards: it
    // stands until that is past, and what was sent for those ticks has its effect until they are.
    rig.seats[seat].clock_ahead = Duration::from_secs(3);
    rig.run(Duration::from_secs(7), shuttle);
    let stats = corrections(&rig.seats[seat].client);
    assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
    let lead = lead_micros(&rig, seat);
    assert!((28_000..38_000).contains(&lead), "{lead} us of lead");
    let (before, late) = (corrections(&rig.seats[seat].client), counted(&rig, seat).late);
    rig.run(Duration::from_secs(5), shuttle);
    let after = corrections(&rig.seats[seat].client);
    assert_eq!((after.eased, after.snapped), (before.eased, before.snapped), "{before:?} {after:?}");
    assert_eq!(counted(&rig, seat).late, late);
}

#[test]
fn a_clock_that_drifts_is_followed() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.seats[seat].clock_ppm = 200;
    rig.run(Duration::from_secs(120), shuttle);
    let stats = corrections(&rig.seats[seat].client);
    assert_eq!((stats.eased, stats.snapped), (0, 0), "{stats:?}");
    let lead = lead_micros(&rig, seat);
    assert!((28_000..38_000).contains(&lead), "{lead} us of lead");
}

#[test]
fn no_message_makes_a_rollback_longer_than_the_window() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(200)));
    rig.run(Duration::from_secs(5), shuttle);
    let reconciler = rig.seats[seat].client.reconciler().unwrap();
    assert!(reconciler.recent().all(|told| told.replayed_ticks <= 40));
}

#[test]
fn a_server_that_catches_up_tells_once_and_not_once_per_tick() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.run(Duration::from_secs(2), shuttle);
    let before = (rig.server.stats(), rig.seats[seat].datagrams_down);
    rig.stalled_until = rig.now + Duration::from_secs(1);
    rig.run(ms(1_010), shuttle);
    let after = (rig.server.stats(), rig.seats[seat].datagrams_down);
    assert_eq!(after.0.ticks - before.0.ticks, 20);
    assert_eq!(after.0.catch_up_ticks - before.0.catch_up_ticks, 19);
    assert_eq!(after.1 - before.1, 1);
}

/// Heartbeats that waited out the stall are answered before the first tick after it.
#[test]
fn a_server_whose_time_slipped_is_followed_within_two_seconds() {
    for late in 0..10 {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
        rig.run(ms(5_000 + late * 100), shuttle);
        let before = lead_micros(&rig, seat);
        rig.stalled_until = rig.now + Duration::from_secs(3);
        rig.run(Duration::from_secs(5), shuttle);
        assert_eq!(rig.server.stats().slips, 1);
        let lead = lead_micros(&rig, seat);
        assert!((lead - before).abs() < 15_000, "{lead} us of lead, {before} before it");
    }
}

#[test]
fn the_refresh_rate_changes_nothing() {
    for (micros, wakes) in [(33_333, false), (16_667, false), (6_944, true), (4_167, false), (1_000, true)] {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
        (rig.seats[seat].frame, rig.seats[seat].wakes) = (Duration::from_micros(micros), wakes);
        rig.run(Duration::from_secs(2), shuttle);
        let before = counted(&rig, seat);
        rig.run(Duration::from_secs(20), shuttle);
        let stats = corrections(&rig.seats[seat].client);
        assert_eq!((stats.eased, stats.snapped), (0, 0), "frames of {micros} us: {stats:?}");
        let late = counted(&rig, seat).held - before.held;
        assert!(late <= 2, "frames of {micros} us: {late} ticks held");
    }
}

/// On a short way the server's state of a tick is here before the frame that sends its input.
#[test]
fn a_client_that_acts_only_on_frames_is_heard_on_a_short_way_too() {
    for phase in 0..8 {
        let mut rig = rig();
        rig.run(Duration::from_micros(2_083 * phase), shuttle);
        let seat = rig.join(config("Ada"), Way::delayed(Duration::from_micros(500)));
        (rig.seats[seat].frame, rig.seats[seat].wakes) = (Duration::from_micros(16_667), false);
        rig.run(Duration::from_secs(5), shuttle);
        let before = counted(&rig, seat);
        rig.run(Duration::from_secs(10), shuttle);
        let unheard = counted(&rig, seat).lost - before.lost;
        assert!(unheard <= 4, "phase {phase}: {unheard} of 200 ticks never came by themselves");
    }
}

#[test]
fn the_clock_does_not_depend_on_the_reliable_lane() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(30)));
    rig.run(Duration::from_secs(2), shuttle);
    // Heartbeats take a second more from here on, each way; states do not.
    let player = rig.seats[seat].client.player().unwrap();
    let before = lead_micros(&rig, seat);
    rig.seats[seat].stream_lag = Duration::from_secs(1);
    for _ in 0..10 {
        rig.run(Duration::from_secs(1), shuttle);
        assert!((lead_micros(&rig, seat) - before).abs() < 2_000);
    }
    let stats = rig.server.input_stats(player).unwrap();
    assert_eq!(stats.late, 0);
    assert_eq!(corrections(&rig.seats[seat].client).of(Cause::Unexplained), 0);
}

#[test]
fn the_reliable_lane_does_not_hold_up_play_under_loss() {
    let mut rig = rig();
    let way = Way { delay: ms(40), jitter: ms(10), loss: 0.05, duplicate: 0.0 };
    let seat = rig.join(config("Ada"), way);
    rig.run(Duration::from_secs(1), shuttle);
    let mut bells = 0;
    rig.run(Duration::from_secs(30), |seat, now, client| {
        shuttle(seat, now, client);
        if client.order(now, &[1]).is_ok() {
            bells += 1;
        }
    });
    let stats = corrections(&rig.seats[seat].client);
    assert_eq!((stats.snapped, stats.of(Cause::Unexplained)), (0, 0), "{stats:?}");
    let wrong = stats.eased as f64 / (stats.unchanged + stats.eased) as f64;
    assert!(wrong < 0.02, "{stats:?}");
    assert!(bells > 1_000);
}

#[test]
fn the_same_without_a_sync_link_is_slower_and_not_wrong() {
    let mut rig = rig();
    let way = Way { delay: ms(40), jitter: ms(10), loss: 0.02, duplicate: 0.0 };
    let seat = rig.join(config("Ada"), way);
    rig.seats[seat].sync_link = SyncLink::Absent;
    rig.run(Duration::from_secs(30), shuttle);
    let stats = corrections(&rig.seats[seat].client);
    assert_eq!(stats.of(Cause::Unexplained), 0, "{stats:?}");
    assert!(rig.seats[seat].client.stats().snapshots > 400, "{:?}", rig.seats[seat].client.stats());
}

#[test]
fn speed_hacks_are_impossible_by_construction() {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(ms(10)));
    rig.run(Duration::from_secs(1), |_, now: Timestamp, client| client.set_input(now, 8));
    let (start, tick) = (rig.server.bodies().next().unwrap().2.x, rig.server.tick());
    // It claims that its time runs five times as fast: it is still one tick of input per tick of time.
    for step in 0..400u64 {
        let fast = rig.now + ms(10 * step);
        rig.seats[seat].client.frame(fast);
        rig.run(ms(2), |_, _, _| {});
    }
    let moved = rig.server.bodies().next().unwrap().2.x - start;
    let time = f64::from(rig.server.tick().since(tick)) * 0.05;
    assert!(moved <= 8.0 * time + 0.01, "{moved} m in {time} s");
}

#[test]
fn a_client_that_acts_only_on_frames_needs_no_longer_a_lead() {
    for (delay, micros) in [(1, 16_667), (20, 16_667), (40, 33_333), (40, 6_944), (20, 20_000), (400, 16_667)]
    {
        let mut rig = rig();
        let seat = rig.join(config("Ada"), Way::delayed(ms(delay)));
        (rig.seats[seat].frame, rig.seats[seat].wakes) = (Duration::from_micros(micros), false);
        rig.run(Duration::from_secs(4), shuttle);
        let late = counted(&rig, seat).held;
        rig.run(Duration::from_secs(20), shuttle);
        // Where frames and ticks meet anew each time, one or two are found out the hard way.
        assert!(counted(&rig, seat).held <= late + 2, "{delay} ms, frames of {micros} us");
        let lead = lead_micros(&rig, seat);
        assert!(
            lead < delay as i64 * 1_000 + 7_000,
            "{lead} us of lead at {delay} ms, frames of {micros} us"
        );
        let stats = corrections(&rig.seats[seat].client);
        assert_eq!((stats.eased, stats.snapped), (0, 0), "{stats:?}");
    }
}
