//! A sync link that exists but is dead: datagrams of one or both directions do not arrive while the reliable link lives.

use std::time::Duration;

use crate::rig::carts::{config, config_at, rig, shuttle};
use crate::rig::{Rig, Way, ms};
use halftrack::cart::{Cart, Rails};
use halftrack::client::Client;
use halftrack::server::ServerConfig;
use halftrack::session::SessionState;
use halftrack::{Cadence, Cause, DeliveryPolicy, Lane, Link, MessageKind, Status, SyncLink, Timestamp};

/// Plays for `span`, and checks that prediction never starves.
fn play(rig: &mut Rig<Rails>, span: Duration) {
    rig.run(span, |seat, now, client: &mut Client<Cart>| {
        shuttle(seat, now, client);
        if let Some(reconciler) = client.reconciler() {
            assert_eq!(reconciler.predictor().status(), Status::Predicting, "at {now:?}");
        }
        assert_eq!(client.state(), SessionState::LoggedIn, "at {now:?}");
    });
}

/// The links of input and of snapshots.
fn links(rig: &Rig<Rails>, seat: usize) -> (Link, Link) {
    let connection = rig.connection(seat).unwrap();
    let down = rig.server.link(connection, MessageKind::PlayerState).unwrap();
    (rig.seats[seat].client.link(MessageKind::MoveInput), down)
}

/// Whether input arrives by datagram at the server, and snapshots at the client.
fn arriving(rig: &Rig<Rails>, seat: usize) -> (bool, bool) {
    let connection = rig.connection(seat).unwrap();
    (rig.server.receives_datagrams(connection), rig.seats[seat].client.receives_datagrams())
}

fn one_player(delay: Duration) -> (Rig<Rails>, usize) {
    let mut rig = rig();
    let seat = rig.join(config("Ada"), Way::delayed(delay));
    rig.run(Duration::from_secs(3), shuttle);
    assert_eq!((links(&rig, seat), arriving(&rig, seat)), ((Link::Sync, Link::Sync), (true, true)));
    (rig, seat)
}

fn fallback(cut: bool) -> Link {
    if cut { Link::Reliable } else { Link::Sync }
}

#[test]
fn lane_11_a_dead_sync_link_is_noticed_within_a_second_and_its_return_too() {
    for (delay, cut) in [5, 40, 150]
        .into_iter()
        .flat_map(|delay| [(true, false), (false, true), (true, true)].map(|cut| (ms(delay), cut)))
    {
        let (mut rig, seat) = one_player(delay);
        rig.seats[seat].datagrams_cut = cut;
        play(&mut rig, ms(1_000));
        assert_eq!(arriving(&rig, seat), (!cut.0, !cut.1), "{delay:?} {cut:?}");
        // The other end hears of it one way later.
        play(&mut rig, delay);
        assert_eq!(links(&rig, seat), (fallback(cut.0), fallback(cut.1)), "{delay:?} {cut:?}");

        // Play goes on by the reliable link: every tick has its input, and every snapshot arrives.
        play(&mut rig, ms(1_000));
        let before = (*rig.seats[seat].client.stats(), rig.server.all_input_stats());
        play(&mut rig, Duration::from_secs(5));
        let after = (*rig.seats[seat].client.stats(), rig.server.all_input_stats());
        let snapshots = after.0.snapshots - before.0.snapshots;
        assert!((99..=101).contains(&snapshots), "{snapshots} snapshots in 5 s; {delay:?} {cut:?}");
        assert_eq!(after.1.held - before.1.held, 0, "{delay:?} {cut:?} {after:?}");
        assert_eq!(links(&rig, seat), (fallback(cut.0), fallback(cut.1)), "it stays so: {delay:?} {cut:?}");
        assert_eq!((after.0.sync_up_dead, after.0.sync_down_dead), (u64::from(cut.0), u64::from(cut.1)));
        let server = rig.server.stats();
        assert_eq!((server.sync_up_dead, server.sync_down_dead), (u64::from(cut.0), u64::from(cut.1)));

        rig.seats[seat].datagrams_cut = (false, false);
        play(&mut rig, ms(1_000) + delay);
        assert_eq!(arriving(&rig, seat), (true, true), "{delay:?} {cut:?}");
        assert_eq!(links(&rig, seat), (Link::Sync, Link::Sync), "{delay:?} {cut:?}");
        let stats = rig.seats[seat].client.reconciler().unwrap().stats();
        assert_eq!(stats.of(Cause::Unexplained), 0, "{delay:?} {cut:?} {stats:?}");
    }
}

#[test]
fn lane_11_holds_at_the_slowest_and_the_quickest_cadence() {
    for millis in [5, 200] {
        let cadence = Cadence::new(ms(millis)).unwrap();
        let server = ServerConfig { cadence, ..ServerConfig::default() };
        let mut rig = Rig::new(server, Rails::default(), 3);
        let seat = rig.join(config_at("Ada", cadence), Way::delayed(ms(30)));
        rig.run(Duration::from_secs(3), shuttle);
        rig.seats[seat].datagrams_cut = (true, true);
        play(&mut rig, ms(1_000));
        assert_eq!(arriving(&rig, seat), (false, false), "{millis} ms");
        play(&mut rig, Duration::from_secs(3));
        rig.seats[seat].datagrams_cut = (false, false);
        play(&mut rig, ms(1_200));
        assert_eq!(links(&rig, seat), (Link::Sync, Link::Sync), "{millis} ms");
    }
}

#[test]
fn lane_11_probes_are_rare() {
    let (mut rig, seat) = one_player(ms(40));
    rig.seats[seat].datagrams_cut = (true, true);
    play(&mut rig, ms(1_500));
    let before = rig.seats[seat].datagrams_down;
    play(&mut rig, Duration::from_secs(10));
    let probes = rig.seats[seat].datagrams_down - before;
    assert!((30..=40).contains(&probes), "{probes} probes in 10 s");
}

#[test]
fn lane_11_loss_and_stalls_are_not_taken_for_a_dead_link() {
    let mut rig = rig();
    let way = Way { delay: ms(60), jitter: ms(50), loss: 0.1, duplicate: 0.01 };
    let seat = rig.join(config("Ada"), way);
    rig.run(Duration::from_secs(30), shuttle);
    // The client stalls, then the server, shortly and for so long that its time slips.
    for stall in [400, 900, 1_500, 3_500] {
        rig.seats[seat].frozen_until = rig.now + ms(stall);
        rig.run(Duration::from_secs(8), shuttle);
        rig.stalled_until = rig.now + ms(stall);
        rig.run(Duration::from_secs(8), shuttle);
    }
    assert_eq!(rig.seats[seat].client.state(), SessionState::LoggedIn);
    let (client, server) = (rig.seats[seat].client.stats(), rig.server.stats());
    assert_eq!((client.sync_up_dead, client.sync_down_dead), (0, 0), "{client:?}");
    assert_eq!((server.sync_up_dead, server.sync_down_dead), (0, 0), "{server:?}");
}

#[test]
fn lane_11_a_policy_without_datagrams_is_not_a_dead_link() {
    let policy = DeliveryPolicy::default()
        .with(MessageKind::MoveInput, Lane::ReliableOrdered)
        .with(MessageKind::PlayerState, Lane::ReliableOrdered);
    let mut rig = Rig::new(ServerConfig { policy, ..ServerConfig::default() }, Rails::default(), 3);
    let mut config = config("Ada");
    config.policy = policy;
    let seat = rig.join(config, Way::delayed(ms(30)));
    rig.run(Duration::from_secs(5), shuttle);
    assert_eq!(links(&rig, seat), (Link::Reliable, Link::Reliable));
    assert_eq!((rig.server.stats().sync_up_dead, rig.seats[seat].client.stats().sync_down_dead), (0, 0));
    assert_eq!(rig.seats[seat].datagrams_down, 0, "and there is nothing to probe");
}

#[test]
fn lane_11_another_connection_begins_with_its_sync_link() {
    let (mut rig, seat) = one_player(ms(20));
    rig.seats[seat].datagrams_cut = (true, true);
    play(&mut rig, ms(1_500));
    assert_eq!(links(&rig, seat), (Link::Reliable, Link::Reliable));
    rig.seats[seat].datagrams_cut = (false, false);
    rig.cut(seat);
    rig.run(ms(1_000), shuttle);
    assert_eq!(rig.seats[seat].client.state(), SessionState::LoggedIn);
    assert_eq!((links(&rig, seat), arriving(&rig, seat)), ((Link::Sync, Link::Sync), (true, true)));
    // And one without it stays without.
    rig.seats[seat].sync_link = SyncLink::Absent;
    rig.cut(seat);
    rig.run(ms(2_000), shuttle);
    assert_eq!((links(&rig, seat), arriving(&rig, seat)), ((Link::Reliable, Link::Reliable), (false, false)));
}

#[test]
fn lane_11_a_client_that_only_draws_notices_too() {
    let (mut rig, seat) = one_player(ms(40));
    rig.seats[seat].wakes = false;
    play(&mut rig, ms(500));
    rig.seats[seat].datagrams_cut = (true, true);
    let cut: Timestamp = rig.now;
    play(&mut rig, ms(1_000));
    assert_eq!(arriving(&rig, seat), (false, false), "a second after {cut:?}");
}
