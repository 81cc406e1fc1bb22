//! Tanks that the world drives: they fight, and every check covers them as it covers the tanks of players.

use std::sync::Arc;
use std::time::Duration;

use halftrack::server::ServerConfig;
use halftrack::{BodyId, Cadence, Driver};
use halftrack_lab::tank::{Bots, TankGame};
use halftrack_lab::{Lab, LabConfig, Measured, Plan, SHIPPED, SeatConfig, tank_lab};
use halftrack_netem::LinkConfig;
use tanks::{TankWorld, TankWorldConfig};

fn machines(lab: &Lab<TankWorld>) -> Vec<BodyId> {
    let bodies = lab.server().bodies();
    bodies.filter(|(_, driver, _)| *driver == Driver::World).map(|(id, ..)| id).collect()
}

/// Plays a plan to its end. Nothing that must hold breaks, and every correction is explained.
fn play(plan: &Plan, seed: u64) -> (Lab<TankWorld>, Measured) {
    let mut lab = tank_lab(plan, seed).unwrap();
    lab.run(plan.span);
    lab.drain();
    let measured = lab.measured();
    assert_eq!(measured.invariants.violated, 0, "seed {seed}: {:?}", measured.invariants.list);
    assert_eq!(measured.own.by_cause.unexplained, 0, "seed {seed}");
    (lab, measured)
}

#[test]
fn machines_of_the_shipped_plan_fight_and_break_no_rule() {
    let text = SHIPPED.into_iter().find(|(name, _)| *name == "machines").unwrap().1;
    let mut plan = Plan::read(text).unwrap();
    assert_eq!((plan.seats.len(), plan.machines), (8, 6));
    plan.span = Duration::from_secs(20);
    for seed in 1..=2 {
        let (lab, measured) = play(&plan, seed);
        assert!(
            measured.combat.machine_hits > 0,
            "seed {seed}: no machine hit a player: {:?}",
            measured.combat
        );
        assert!(measured.combat.hits > 0 && measured.combat.agreed_ratio > 0.95, "{:?}", measured.combat);
        let machines = machines(&lab);
        assert_eq!(machines.len(), 6);
        for client in (0..lab.clients()).filter_map(|seat| lab.client(seat)) {
            let drawn: Vec<_> = client.remotes().iter().map(|other| (other.id, other.driver)).collect();
            assert_eq!(drawn.len(), 7 + 6, "seed {seed}: every other tank is drawn");
            assert!(machines.iter().all(|id| drawn.contains(&(*id, Driver::World))), "seed {seed}");
        }
    }
}

/// With one player, all others are machines: the figures of others are theirs alone.
#[test]
fn pictures_and_bytes_of_machines_are_measured() {
    let text = |machines| {
        format!(
            "name = \"alone\"\nseconds = 30\nplayers = 1\nmachines = {machines}\n[link]\ndelay_ms = 20\njitter_ms = 3\n\
             loss = 0.01"
        )
    };
    let (_, alone) = play(&Plan::read(&text(0)).unwrap(), 3);
    assert_eq!((alone.remote.contact_error_m.max, alone.net.bytes_per_moving_entity), (0.0, 0.0));
    assert_eq!((alone.own.by_cause.collision, alone.combat.machine_hits), (0, 0));
    let (lab, among) = play(&Plan::read(&text(15)).unwrap(), 3);
    assert_eq!(machines(&lab).len(), 15);
    assert_eq!(among.remote.pose_error_m.p95, 0.0, "drawn to the bit: {:?}", among.remote);
    // In a tick in which a machine was hit, it is drawn between two states.
    assert!((1e-6..0.1).contains(&among.remote.contact_error_m.max), "{:?}", among.remote);
    let bytes = among.net.bytes_per_moving_entity;
    assert!((1.0..40.0).contains(&bytes), "{:?}", among.net);
    assert!(among.net.down_bytes_per_s > alone.net.down_bytes_per_s + 50.0, "{:?}", among.net);
    assert!(among.combat.machine_hits > 0 && among.events.told > alone.events.told, "{:?}", among.combat);
}

/// One player rams machines that hardly hurt it. A collision is a true cause only if the truth has the machine near. The link
/// is slow: the input of a machine for the next tick is in each snapshot, and a prediction two ticks deep meets it exactly.
#[test]
fn corrections_by_contact_with_machines_are_found_true() {
    let game = TankGame::new(Bots::Brawl, 1).with_machines(8);
    let (arena, machines) = (Arc::clone(game.arena()), 8);
    let world = TankWorldConfig { arena, machines, damage: 1, seed: 4, ..TankWorldConfig::default() };
    let config = LabConfig { contact_reach: 8.0, ..LabConfig::new(ServerConfig::default(), 4) };
    let mut lab = Lab::new(config, TankWorld::new(world).unwrap()).unwrap();
    let link = LinkConfig { delay: Duration::from_millis(150), ..LinkConfig::default() };
    let seat = SeatConfig::new(game.client(0, Cadence::default()).unwrap(), link);
    lab.join(seat, game.bot(0, 4)).unwrap();
    lab.run(Duration::from_secs(60));
    lab.drain();
    let measured = lab.measured();
    assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
    let causes = measured.own.by_cause;
    assert!(causes.collision > 2 && causes.unexplained == 0, "{causes:?}");
}

/// A room without players sleeps: its machines stand, and are where they were when a player comes back.
#[test]
fn machines_sleep_while_no_player_is_there_and_go_on_afterwards() {
    let text = "name = \"empty for a while\"\nseconds = 20\nplayers = 1\nmachines = 5\n[link]\ndelay_ms = 15\n\
                [[event]]\nat_s = 6\nkind = \"leave\"\nclient = 0\nfor_s = 4";
    let plan = Plan::read(text).unwrap();
    let mut lab = tank_lab(&plan, 9).unwrap();
    let places = |lab: &Lab<TankWorld>| {
        let machines = lab.server().bodies().filter(|(_, driver, _)| *driver == Driver::World);
        machines
            .map(|(id, _, tank)| (id, tank.tank().unwrap().x.to_bits(), tank.tank().unwrap().y.to_bits()))
            .collect::<Vec<_>>()
    };
    lab.run(Duration::from_millis(6_500));
    assert_eq!(lab.server().players().count(), 0);
    let (before, tick) = (places(&lab), lab.server().tick());
    assert_eq!(before.len(), 5);
    lab.run(Duration::from_secs(3));
    assert!(lab.server().tick() > tick);
    assert_eq!(places(&lab), before);
    lab.run(Duration::from_millis(10_500));
    assert_eq!(lab.server().players().count(), 1);
    let after = places(&lab);
    assert!(after.iter().zip(&before).all(|(now, then)| now.0 == then.0), "the same machines");
    assert!(after.iter().zip(&before).any(|(now, then)| now != then), "and they drive again");
    lab.drain();
    let measured = lab.measured();
    assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
    assert_eq!(measured.own.by_cause.unexplained, 0);
}

#[test]
fn the_same_seed_gives_the_same_run_with_machines() {
    let text = "name = \"again\"\nseconds = 8\nplayers = 2\nmachines = 4\n[link]\ndelay_ms = 20\nloss = 0.01";
    let plan = Plan::read(text).unwrap();
    let runs = [7, 7, 8].map(|seed| play(&plan, seed).1);
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}
