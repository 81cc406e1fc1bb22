//! The attacks, a file for each family. Each is bounded in count and time, and talks to this machine only.

mod addresses;
mod combat;
mod defects;
mod duels;
mod files;
mod floods;
mod handshakes;
mod inputs;
mod logins;
mod packets;
mod slow;
mod tokens;
mod web;

use crate::attack::Attack;

/// All of them, in the order in which they are run.
pub(crate) fn all() -> impl Iterator<Item = &'static Attack> {
    let families = [
        defects::ATTACKS,
        packets::ATTACKS,
        inputs::ATTACKS,
        combat::ATTACKS,
        duels::ATTACKS,
        logins::ATTACKS,
        handshakes::ATTACKS,
        addresses::ATTACKS,
        slow::ATTACKS,
        floods::ATTACKS,
        web::ATTACKS,
        files::ATTACKS,
        tokens::ATTACKS,
    ];
    families.into_iter().flatten()
}
