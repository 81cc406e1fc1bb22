//! A rule that reads everything a [`Step`] says: server, prediction and the readers of snapshots must say the same.

use std::sync::Arc;
use std::time::Duration;

use crate::rig::{Rig, Way, ms};
use halftrack::cart::{Cart, CartBody, CartPose};
use halftrack::client::ClientConfig;
use halftrack::server::{Events, Order, Room, ServerConfig, World};
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack::{
    Body, Cadence, Cause, Driver, Game, MotionLimits, PlayerId, PlayerName, Reach, Step, Timestamp,
};

/// Enough that the broad phase sorts them, and that a short datagram does not hold them.
const TRAINS: u16 = 24;

/// Trains that are driven by a timetable as much as by their driver.
#[derive(Default)]
struct Trains;

impl Game for Trains {
    type Input = i8;
    type Body = CartBody;
    type Pose = CartPose;

    fn advance(&self, train: &mut CartBody, input: i8, step: &mut Step<'_, Self>) {
        let cadence = Cadence::default();
        assert_eq!(cadence.tick_at(step.time()), step.tick());
        assert_eq!(cadence.start_of(step.tick()) + step.into_tick(), step.time());
        // Every tick has a speed of its own, and so has every moment inside it.
        let tick = f64::from(step.tick().number() * 7 % 11) / 11.0;
        let moment = step.into_tick().as_secs_f64() * 20.0;
        let driven = train.x - step.own_at_start().x;
        train.x += (f64::from(input) * (0.2 + tick + moment) - driven) * step.seconds();
        let near = step.neighbours().iter().filter(|other| (other.x - train.x).abs() < 2.0);
        for other in near {
            train.wheel += 0.01 + (other.x - train.x) * step.seconds();
            step.touch(other.id);
        }
    }

    fn pose(&self, train: &CartBody) -> Option<CartPose> {
        Cart.pose(train)
    }

    fn limits(&self, train: &CartBody) -> MotionLimits {
        Cart.limits(train)
    }

    fn fingerprint(&self) -> u64 {
        1
    }

    fn reach(&self, train: &CartBody, span: Duration) -> Option<Reach> {
        Some(Reach::plane(train.x, 0.0, 1.0, 12.0 * span.as_secs_f64()))
    }
}

#[derive(Default)]
struct Depot {
    rules: Arc<Trains>,
}

impl World for Depot {
    type Game = Trains;

    fn rules(&self) -> &Arc<Trains> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Trains>) {
        let train = CartBody::at(f64::from(player.number()) * 3.0);
        room.spawn(Driver::Player(player), train).unwrap();
    }

    fn leave(&mut self, _: PlayerId, _: &mut Room<'_, Trains>, _: &mut Events) {}

    fn order(&mut self, _: Order<'_, Trains>) -> Result<(), WireError> {
        Ok(())
    }

    fn resolve(&mut self, _: &mut Room<'_, Trains>, _: &mut Events) {}
}

/// Over a bad network, in datagrams that hold all trains and in datagrams that do not.
#[test]
fn every_step_says_the_same_on_server_and_clients() {
    for max_datagram_bytes in [200, 1_100] {
        let server = ServerConfig { max_datagram_bytes, ..ServerConfig::default() };
        let mut rig = Rig::new(server, Depot::default(), 3);
        let way = Way { jitter: ms(15), loss: 0.03, ..Way::delayed(ms(40)) };
        for number in 0..TRAINS {
            let name = PlayerName::new(&format!("train {number}")).unwrap();
            rig.join(ClientConfig::new(name, Cadence::default(), Arc::default()), way);
            rig.run(ms(200), |_, _, _| {});
        }
        rig.run(Duration::from_secs(30), |seat, now: Timestamp, client| {
            let phase = now.as_micros() / 313_000 + seat as u64 * 3;
            client.set_input(now, [0, 3, 5, 0, -4, -4][(phase % 6) as usize]);
        });
        let mut exact = 0;
        for seat in &rig.seats {
            let (stats, corrections) = (seat.client.stats(), seat.client.reconciler().unwrap().stats());
            assert_eq!((stats.check_failed, stats.malformed), (0, 0), "{max_datagram_bytes}: {stats:?}");
            assert_eq!(corrections.of(Cause::Unexplained), 0, "{max_datagram_bytes}: {corrections:?}");
            exact += seat.client.remotes().stats().exact;
            for (id, ..) in rig.server.bodies() {
                let Some((tick, told)) = seat.client.authoritative(id) else { continue };
                if let Some(truth) = rig.server.body(id, tick) {
                    assert_eq!(told.digest(), truth.digest(), "{id} at {tick}");
                }
            }
        }
        assert!(exact > 10_000, "{exact} pictures by the rules");
    }
}
