//! Bodies that are no tanks, as they are drawn: rockets, crates and platforms, each once.

use core::time::Duration;

use halftrack::client::Client;
use halftrack::{BodyId, Driver, Member, Role};
use tanks::{Entity, Fighter, TankPose, Tanks};

use crate::switches::Mode;
use crate::view::{flag, sampling_flag};

/// Its number for the page, and its name.
pub(crate) fn kind(body: &Entity) -> Option<(f64, &'static str)> {
    match body {
        Entity::Tank(_) => None,
        Entity::Rocket(_) => Some((1.0, "rocket")),
        Entity::Crate(_) => Some((2.0, "crate")),
        Entity::Platform(_) => Some((3.0, "platform")),
    }
}

/// Its name, tanks included.
pub(crate) fn kind_name(body: &Entity) -> &'static str {
    kind(body).map_or("tank", |(_, name)| name)
}

/// A body that is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) id: BodyId,
    pub(crate) kind: f64,
    pub(crate) pose: TankPose,
    pub(crate) flags: u32,
    /// The fighter whose tank launched it.
    pub(crate) owner: Option<Fighter>,
    /// How far behind prediction time it is drawn, if it is predicted.
    pub(crate) lag: Option<Duration>,
    pub(crate) carrier: Option<BodyId>,
    /// The newest that the server told.
    pub(crate) told: Option<TankPose>,
}

/// The parts of the netcode that change where bodies are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) prediction: Mode,
    pub(crate) interpolation: Mode,
}

/// All that are drawn, in order of their ids: those that are predicted with the player's tank, and all others.
pub(crate) fn drawn(client: &Client<Tanks>, shown: Shown) -> Vec<Drawn> {
    let group = client.group().filter_map(|member| of_group(client, member, shown.prediction));
    let others = client.remotes().iter().filter_map(|other| {
        let raw = shown.interpolation == Mode::Off;
        let parent = client.crowd().body(other.id).and_then(|history| history.parent());
        let (owner, flags) = owner(client, parent);
        Some(Drawn {
            id: other.id,
            kind: kind(other.state)?.0,
            pose: if raw { other.state.pose() } else { other.visible },
            flags: flags | sampling_flag(other.sampling),
            owner,
            lag: None,
            carrier: other.carrier,
            told: Some(other.state.pose()),
        })
    });
    let mut all: Vec<Drawn> = group.chain(others).collect();
    all.sort_unstable_by_key(|body| body.id);
    all
}

fn of_group(client: &Client<Tanks>, member: &Member<Tanks>, prediction: Mode) -> Option<Drawn> {
    let told = client.authoritative(member.id()).map(|(_, body)| body.pose());
    let (owner, flags) = owner(client, member.parent());
    let leaving = if member.role() == Role::Leaving { flag::LEAVING } else { 0 };
    Some(Drawn {
        id: member.id(),
        kind: kind(member.predicted())?.0,
        // Without prediction nothing is drawn that the server has not told.
        pose: if prediction == Mode::Off { told? } else { *member.visible()? },
        flags: flags | flag::PREDICTED | leaving,
        owner,
        lag: Some(member.lag()),
        carrier: member.carrier(),
        told,
    })
}

/// The fighter in the tank that launched a rocket, and whether that is the own one, as a flag.
pub(crate) fn owner(client: &Client<Tanks>, parent: Option<BodyId>) -> (Option<Fighter>, u32) {
    let Some(parent) = parent else { return (None, 0) };
    let own = client.player().filter(|_| client.own().any(|(id, ..)| id == parent));
    if let Some(own) = own {
        return (Some(own.into()), flag::OWN);
    }
    let driver = client.crowd().body(parent).map_or(Driver::World, |history| history.driver());
    (Some(Fighter::of(parent, driver)), 0)
}
