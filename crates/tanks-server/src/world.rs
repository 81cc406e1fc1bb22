//! The tank game behind the gate: the same world, and a say in who comes in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use halftrack::server::{BodyOf, Command, CommandRefused, Events, Order, Room, World};
use halftrack::wire::WireError;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::{PlayerId, PlayerName};
use halftrack_io::RoomName;
use tanks::{TankWorld, Tanks};

use crate::gate::Gate;
use crate::token::Stay;

/// One room's world.
#[derive(Debug)]
pub(crate) struct GatedWorld {
    pub(crate) tanks: TankWorld,
    pub(crate) gate: Arc<Gate>,
    pub(crate) room: RoomName,
    /// For the log, of players who are in.
    names: BTreeMap<PlayerId, PlayerName>,
    /// Set when the room runs. A recording that is played back to recover a match has been logged when it happened.
    live: Arc<AtomicBool>,
}

impl GatedWorld {
    pub(crate) fn new(tanks: TankWorld, gate: Arc<Gate>, room: RoomName) -> Self {
        Self { tanks, gate, room, names: BTreeMap::new(), live: Arc::default() }
    }

    /// What makes joins and leaves of this world be logged, once it is set.
    pub(crate) fn live(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.live)
    }

    fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }
}

impl World for GatedWorld {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.tanks.rules()
    }

    fn admit(&mut self, login: &Login, resumes: Option<PlayerId>) -> Result<(), LoginRefused> {
        let stay = if resumes.is_some() { Stay::Resumes } else { Stay::Begins };
        self.gate.check(login, &self.room, stay)
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) -> BodyOf<Self> {
        if self.is_live() {
            tracing::info!(room = %self.room, name = %login.name, id = player.number(), "a player joined");
        }
        self.names.insert(player, login.name.clone());
        self.tanks.join(player, login, room)
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let name = self.names.remove(&player);
        if self.is_live() {
            let name = name.as_ref().map_or("", PlayerName::as_str);
            tracing::info!(room = %self.room, name, id = player.number(), "a player left");
        }
        self.tanks.leave(player, room, events);
    }

    fn restarted(&mut self, player: PlayerId) {
        self.tanks.restarted(player);
    }

    fn order(&mut self, order: Order<'_>) -> Result<(), WireError> {
        self.tanks.order(order)
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        self.tanks.command(command)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.tanks.resolve(room, events);
    }

    fn digest(&self) -> u64 {
        self.tanks.digest()
    }
}
