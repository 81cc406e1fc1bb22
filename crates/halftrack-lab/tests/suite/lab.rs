//! The lab finds what it is there to find: a world with a rule that the clients do not have.

use std::sync::Arc;
use std::time::Duration;

use halftrack::server::{Events, Order, Room, ServerConfig, World};
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack::{Cadence, Causes, PlayerId};
use halftrack_lab::tank::{Bots, TankGame};
use halftrack_lab::{Lab, LabConfig, Rule, SeatConfig};
use halftrack_netem::LinkConfig;
use tanks::{Tank, TankWorld, Tanks};

/// Moves every tank by a millimetre now and then, and says nothing.
struct Drifting(TankWorld);

impl World for Drifting {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.0.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        self.0.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.0.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.0.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.0.resolve(room, events);
        let bodies: Vec<_> = room.bodies().map(|(id, _, tank)| (id, *tank)).collect();
        for (id, tank) in bodies {
            if room.tick().number().is_multiple_of(40) && tank.is_alive() {
                room.alter(
                    id,
                    Tank { x: tank.tank().unwrap().x + Tank::GRID, ..tank.tank().copied().unwrap() }.into(),
                    Causes::NONE,
                )
                .unwrap();
            }
        }
    }
}

fn run<W: World<Game = Tanks>>(world: impl Fn(TankWorld) -> W) -> halftrack_lab::Measured {
    let game = TankGame::new(Bots::Brawl, 2);
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), 5), world(game.world(5))).unwrap();
    for index in 0..2 {
        let client = game.client(index, Cadence::default()).unwrap();
        lab.join(SeatConfig::new(client, link), game.bot(index, 5)).unwrap();
    }
    lab.run(Duration::from_secs(20));
    lab.drain();
    lab.measured()
}

#[test]
fn a_rule_that_only_the_server_has_is_found() {
    let measured = run(Drifting);
    assert!(measured.own.by_cause.unexplained > 5, "{:?}", measured.own.by_cause);
    let false_causes = measured.invariants.list.iter().filter(|found| found.rule == Rule::TrueCause).count();
    assert!(false_causes > 5, "{:?}", measured.invariants.list);
}

#[test]
fn a_world_that_plays_by_the_rules_is_not_blamed() {
    let measured = run(|world| world);
    assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
    assert_eq!(measured.own.by_cause.unexplained, 0);
    assert!(measured.combat.shots > 10 && measured.events.told > 20, "{measured:?}");
}
