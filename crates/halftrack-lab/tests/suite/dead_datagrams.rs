//! Only datagrams are lost, and the stream lives: play goes on, and nothing that must hold breaks.

use std::time::Duration;

use halftrack::{Link, MessageKind, Status};
use halftrack_lab::{Plan, SHIPPED, tank_lab};

const CUTS: &str = "name = \"dead datagrams\"\nseconds = 30\nplayers = 4\n[link]\ndelay_ms = 40\njitter_ms = 5\n\
                    loss = 0.01\n[[event]]\nat_s = 10\nkind = \"datagrams_cut\"\nclient = 0\nfor_s = 9\n\
                    [[event]]\nat_s = 10\nkind = \"datagrams_cut\"\nclient = 1\nfor_s = 9\nway = \"up\"\n\
                    [[event]]\nat_s = 10\nkind = \"datagrams_cut\"\nclient = 2\nfor_s = 9\nway = \"down\"";

#[test]
fn lane_11_players_without_datagrams_play_on_by_the_stream_and_return() {
    let plan = Plan::read(CUTS).unwrap();
    for seed in 1..=3 {
        let mut lab = tank_lab(&plan, seed).unwrap();
        let link = |lab: &halftrack_lab::Lab<_>, client: usize| {
            let client = lab.client(client).unwrap();
            let starved = client.reconciler().unwrap().predictor().status() != Status::Predicting;
            assert!(!starved, "seed {seed}: prediction starves");
            (client.link(MessageKind::MoveInput), client.receives_datagrams())
        };
        lab.run(Duration::from_millis(9_900));
        assert!((0..4).all(|client| link(&lab, client) == (Link::Sync, true)), "seed {seed}");
        // A second to notice, and the way of the word.
        lab.run(Duration::from_millis(1_200));
        for _ in 0..70 {
            let found = [0, 1, 2, 3].map(|client| link(&lab, client));
            let dead =
                [(Link::Reliable, false), (Link::Reliable, true), (Link::Sync, false), (Link::Sync, true)];
            assert_eq!(found, dead, "seed {seed} at {:?}", lab.elapsed());
            lab.run(Duration::from_millis(100));
        }
        lab.run(Duration::from_millis(11_900));
        assert!((0..4).all(|client| link(&lab, client) == (Link::Sync, true)), "seed {seed}");
        lab.drain();
        let measured = lab.measured();
        assert_eq!(measured.invariants.violated, 0, "seed {seed}: {:?}", measured.invariants.list);
    }
}

/// How often datagrams were found dead in a run of a plan, by either end.
fn found_dead(text: &str, seed: u64) -> u64 {
    let plan = Plan::read(text).unwrap();
    let mut lab = tank_lab(&plan, seed).unwrap();
    lab.run(plan.span);
    let clients = (0..lab.clients()).filter_map(|client| lab.client(client));
    let down: u64 = clients.map(|client| client.stats().sync_down_dead).sum();
    down + lab.server().stats().sync_up_dead
}

#[test]
fn lane_11_bad_networks_stalls_and_partitions_are_not_dead_datagrams() {
    // On mobile a burst lasts for half a second once in ten minutes of a direction: while it does, the link is dead.
    for (name, most) in [("wifi", 0), ("mobile", 2), ("stalls", 0)] {
        let text = SHIPPED.into_iter().find(|(shipped, _)| *shipped == name).unwrap().1;
        let found = found_dead(text, 1);
        assert!(found <= most, "{name}: {found} times");
    }
    let partitions = "name = \"partitions\"\nseconds = 25\nplayers = 3\n[link]\ndelay_ms = 40\nloss = 0.02\n\
                      [[event]]\nat_s = 6\nkind = \"partition\"\nfor_s = 0.7\n[[event]]\nat_s = 10\n\
                      kind = \"partition\"\nfor_s = 1.5\n[[event]]\nat_s = 16\nkind = \"partition\"\nfor_s = 3";
    assert_eq!((1..=4).map(|seed| found_dead(partitions, seed)).sum::<u64>(), 0);
}
