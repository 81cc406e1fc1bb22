//! The cart game in the rig.

use halftrack::cart::{Cart, Rail, Rails};
use halftrack::client::{Client, ClientConfig};
use halftrack::server::ServerConfig;
use halftrack::{Cadence, Game, MotionLimits, PlayerName, Timestamp};

use super::Rig;

pub(crate) fn limits() -> MotionLimits {
    MotionLimits {
        top_speed: 8.0,
        top_turn: 20.0,
        grid_distance: 1.0 / 1024.0,
        grid_angle: 1e-4,
        max_hold: Cart::MAX_HOLD,
    }
}

pub(crate) fn config_at(name: &str, cadence: Cadence) -> ClientConfig<Cart> {
    ClientConfig::new(PlayerName::new(name).unwrap(), cadence, Rail::default(), limits())
}

pub(crate) fn config(name: &str) -> ClientConfig<Cart> {
    config_at(name, Cadence::default())
}

pub(crate) fn rig() -> Rig<Rails> {
    Rig::new(ServerConfig::default(), Rails::default(), 7)
}

/// Back and forth, each in its own stretch, changing at moments that fall anywhere in a tick.
pub(crate) fn shuttle(seat: usize, now: Timestamp, client: &mut Client<Cart>) {
    let phase = now.as_micros() / 313_000 + seat as u64 * 3;
    let input = [0, 3, 5, 0, -4, -4][(phase % 6) as usize];
    client.set_input(now, input);
}

pub(crate) fn nothing(_: usize, _: Timestamp, _: &mut Client<Cart>) {}
