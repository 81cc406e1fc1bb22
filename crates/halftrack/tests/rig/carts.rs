//! The cart game in the rig.

use std::sync::Arc;

use halftrack::cart::{Cart, Rails};
use halftrack::client::{Client, ClientConfig};
use halftrack::server::ServerConfig;
use halftrack::wire::control::{Login, PROTOCOL};
use halftrack::{Cadence, PlayerName, Timestamp, shared_hash};

use super::Rig;

pub(crate) fn config_at(name: &str, cadence: Cadence) -> ClientConfig<Cart> {
    ClientConfig::new(PlayerName::new(name).unwrap(), cadence, Arc::new(Cart))
}

pub(crate) fn config(name: &str) -> ClientConfig<Cart> {
    config_at(name, Cadence::default())
}

/// The first login of a client that has no session yet.
pub(crate) fn login(name: &str) -> Login {
    let name = PlayerName::new(name).unwrap();
    let shared = shared_hash(&Cart, Cadence::default());
    Login { protocol: PROTOCOL, shared, name, resume: None, credentials: None }
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
