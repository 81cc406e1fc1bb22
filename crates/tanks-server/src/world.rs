//! The tank game behind the gate: the same world, and a say in who comes in.

use std::sync::Arc;

use halftrack::server::{Body, Events, Order, Room, World};
use halftrack::wire::WireError;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::{PlayerId, PlayerName};
use halftrack_io::RoomName;
use tanks::{Surroundings, TankWorld, Tanks};

use crate::gate::Gate;
use crate::token::Stay;

/// One room's world.
#[derive(Debug)]
pub(crate) struct GatedWorld {
    pub(crate) tanks: TankWorld,
    pub(crate) gate: Arc<Gate>,
    pub(crate) room: RoomName,
}

impl World for GatedWorld {
    type Game = Tanks;

    fn alone(&self) -> &Surroundings {
        self.tanks.alone()
    }

    fn admit(&mut self, login: &Login, resumes: Option<PlayerId>) -> Result<(), LoginRefused> {
        let stay = if resumes.is_some() { Stay::Resumes } else { Stay::Begins };
        self.gate.check(login, &self.room, stay)
    }

    fn join(&mut self, player: PlayerId, name: &PlayerName, room: &mut Room<'_, Tanks>) -> Body<Self> {
        self.tanks.join(player, name, room)
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.tanks.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_>) -> Result<(), WireError> {
        self.tanks.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.tanks.resolve(room, events);
    }

    fn digest(&self) -> u64 {
        self.tanks.digest()
    }
}
