//! Worlds in which a player owns none, one or several bodies, and bodies come and go: every body is watched.

use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, CartBody};
use halftrack::client::ClientConfig;
use halftrack::server::{Events, Room, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{BodyId, Cadence, Cause, Causes, Driver, PlayerId, PlayerName, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_lab::{Happening, Lab, LabConfig, Measured, Rule, SeatConfig};
use halftrack_netem::LinkConfig;

/// Each player owns a cart, from time to time a second one, and now and then none at all. The world drives one cart, and
/// nothing drives another.
#[derive(Debug, Default)]
struct Shunting {
    rules: Arc<Cart>,
    players: Vec<PlayerId>,
    driven: Option<BodyId>,
    /// Moves the second cart of each player by a step of the grid now and then, and says nothing.
    meddles: bool,
}

/// Ticks of one turn: alone, with a second cart, and without any.
const TURN: u32 = 200;

impl Shunting {
    fn place(player: PlayerId, number: usize) -> f64 {
        f64::from(player.number()) * 400.0 + number as f64 * 150.0
    }

    fn turn(&mut self, player: PlayerId, room: &mut Room<'_, Cart>) {
        let owned = room.owned(player).to_vec();
        match room.tick().number() % TURN {
            60 if owned.len() == 1 => {
                let second = CartBody { speed: 5.0, ..CartBody::at(Self::place(player, 1)) };
                room.spawn(Driver::Player(player), second).unwrap();
            }
            120 if owned.len() == 2 => {
                // The first of them goes: the other is the first from here on.
                room.remove(owned[0]).unwrap();
            }
            160 => {
                for id in owned {
                    room.remove(id).unwrap();
                }
            }
            180 if owned.is_empty() => {
                room.spawn(Driver::Player(player), CartBody::at(Self::place(player, 0))).unwrap();
            }
            _ => {}
        }
        if self.meddles
            && room.tick().number().is_multiple_of(20)
            && let [_, second] = room.owned(player)[..]
        {
            let cart = *room.body(second).unwrap();
            let moved = CartBody { x: cart.x + 4.0 / 1024.0, ..cart };
            room.alter(second, moved, Causes::NONE).unwrap();
        }
    }
}

impl World for Shunting {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Cart>) {
        self.players.push(player);
        room.spawn(Driver::Player(player), CartBody::at(Self::place(player, 0))).unwrap();
    }

    fn leave(&mut self, player: PlayerId, _: &mut Room<'_, Cart>, _: &mut Events) {
        self.players.retain(|there| *there != player);
    }

    fn resolve(&mut self, room: &mut Room<'_, Cart>, _: &mut Events) {
        for player in self.players.clone() {
            self.turn(player, room);
        }
        let driven = *self.driven.get_or_insert_with(|| {
            room.spawn(Driver::Nothing, CartBody::at(-1_000.0)).unwrap();
            room.spawn(Driver::World, CartBody::at(-500.0)).unwrap()
        });
        let number = room.tick().number();
        if number.is_multiple_of(7) {
            room.drive(driven, if number.is_multiple_of(14) { 6 } else { -6 }).unwrap();
        }
        if number.is_multiple_of(90) {
            let back = CartBody::at(-500.0);
            room.alter(driven, back, Causes::NONE.with(Cause::Teleport)).unwrap();
        }
    }
}

fn run(meddles: bool, seed: u64) -> (Measured, usize) {
    let world = Shunting { meddles, ..Shunting::default() };
    let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), seed), world).unwrap();
    let link = LinkConfig {
        delay: Duration::from_millis(40),
        jitter: Duration::from_millis(8),
        loss: 0.02,
        burst: 2.0,
        ..LinkConfig::default()
    };
    for (name, turns) in [("Ada", 310_000), ("Bob", 530_000), ("Cid", 170_000)] {
        let client = ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Arc::new(Cart));
        let bot = move |now: Timestamp, _: &mut FlightClient<Cart>| {
            Some([8, -8, 3, 0, -3][now.as_micros() as usize / turns % 5])
        };
        lab.join(SeatConfig::new(client, link), Box::new(bot)).unwrap();
    }
    lab.schedule(Duration::from_secs(17), Happening::Leave(2, Duration::from_secs(2)));
    let mut several = 0;
    for _ in 0..400 {
        lab.run(Duration::from_millis(100));
        let clients = (0..lab.clients()).filter_map(|seat| lab.client(seat));
        several += clients.filter(|client| client.own().count() == 2).count();
    }
    lab.drain();
    (lab.measured(), several)
}

#[test]
fn bodies_that_come_and_go_break_no_rule() {
    for seed in 1..=4 {
        let (measured, several) = run(false, seed);
        assert_eq!(measured.invariants.violated, 0, "seed {seed}: {:?}", measured.invariants.list);
        assert_eq!(measured.own.by_cause.unexplained, 0, "seed {seed}: {:?}", measured.own);
        assert!(several > 200, "seed {seed}: players had two carts for {several} tenths of a second");
        assert!(
            measured.own.by_cause.lost_input + measured.own.by_cause.late_input > 0,
            "{:?}",
            measured.own
        );
        assert!(measured.remote.pose_error_m.p95 < 0.01, "seed {seed}: {:?}", measured.remote);
        assert!(measured.net.bytes_per_moving_entity > 0.0);
    }
}

#[test]
fn a_rule_that_only_the_server_has_for_the_second_body_is_found() {
    let (measured, _) = run(true, 1);
    assert!(measured.own.by_cause.unexplained > 5, "{:?}", measured.own.by_cause);
    let false_causes = measured.invariants.list.iter().filter(|found| found.rule == Rule::TrueCause).count();
    assert!(false_causes > 5, "{:?}", measured.invariants.list);
}
