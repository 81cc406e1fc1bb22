//! The tank game behind the gate: the same world, a say in who comes in, and a count of its bodies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use halftrack::server::{Command, CommandRefused, Events, Order, Room, World};
use halftrack::wire::WireError;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::{Driver, PlayerId, PlayerName};
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
    bodies: Arc<BodyCount>,
    refused: Arc<AtomicU64>,
}

/// Bodies of one room, as of its newest tick with players. Read by the threads of `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct BodyCount([AtomicU64; 3]);

impl BodyCount {
    /// The drivers that bodies are counted by.
    pub(crate) const DRIVERS: [&str; 3] = ["player", "world", "nothing"];

    /// Bodies of each driver, in the order of [`Self::DRIVERS`].
    pub(crate) fn read(&self) -> [u64; 3] {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts the bodies of a room but for those of `leaver`, which go with it.
    fn count(&self, room: &Room<'_, Tanks>, leaver: Option<PlayerId>) {
        let mut counts = [0; 3];
        for (_, driver, _) in room.bodies() {
            match driver {
                Driver::Player(player) => counts[0] += u64::from(Some(player) != leaver),
                Driver::World => counts[1] += 1,
                Driver::Nothing => counts[2] += 1,
            }
        }
        self.0.iter().zip(counts).for_each(|(shown, count)| shown.store(count, Ordering::Relaxed));
    }
}

impl GatedWorld {
    /// `refused` counts players that had no place for a tank.
    pub(crate) fn new(tanks: TankWorld, gate: Arc<Gate>, room: RoomName, refused: Arc<AtomicU64>) -> Self {
        let (names, live, bodies) = (BTreeMap::new(), Arc::default(), Arc::default());
        Self { tanks, gate, room, names, live, bodies, refused }
    }

    /// The number of its bodies, from here on.
    pub(crate) fn bodies(&self) -> Arc<BodyCount> {
        Arc::clone(&self.bodies)
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

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        if self.is_live() {
            tracing::info!(room = %self.room, name = %login.name, id = player.number(), "a player joined");
        }
        self.names.insert(player, login.name.clone());
        self.tanks.join(player, login, room);
        if room.owned(player).is_empty() && self.is_live() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(room = %self.room, id = player.number(), "a player has no tank: raise limits.bodies_per_room");
        }
        self.bodies.count(room, None);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        let name = self.names.remove(&player);
        if self.is_live() {
            let name = name.as_ref().map_or("", PlayerName::as_str);
            tracing::info!(room = %self.room, name, id = player.number(), "a player left");
        }
        self.tanks.leave(player, room, events);
        self.bodies.count(room, Some(player));
    }

    fn restarted(&mut self, player: PlayerId) {
        self.tanks.restarted(player);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.tanks.order(order)
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        self.tanks.command(command)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.tanks.resolve(room, events);
        self.bodies.count(room, None);
    }

    fn digest(&self) -> u64 {
        self.tanks.digest()
    }
}
