//! The tank game with every kind of body: players that own several tanks or none, tanks that the world drives, and tanks
//! that nothing drives. They come and go, so own sections and snapshots change in all ways.

use std::collections::BTreeSet;
use std::sync::Arc;

use halftrack::server::{Command, CommandRefused, Events, Order, Room, World};
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack::{BodyId, Driver, PlayerId};
use tanks::{HULL_RADIUS, Tank, TankWorld, Tanks};

use crate::rig::{tank_world, yard_world};

/// Ticks from one change to the next: longer than the way there and back.
const CHANGE: u32 = 14;
/// Tanks that a player owns at most, and tanks without a driver.
const MAX_OWNED: u32 = 3;
const PARKED: usize = 9;

/// See the module.
#[derive(Debug)]
pub(crate) struct Convoy {
    tanks: TankWorld,
    players: BTreeSet<PlayerId>,
    /// Tanks without a driver, oldest first.
    parked: Vec<BodyId>,
    /// No more tanks come or go.
    rests: bool,
}

impl Convoy {
    /// The name of a player that owns no body.
    pub(crate) const WATCHER: &str = "Watcher";
    /// The command after which no tank comes or goes, so that a mistake about one is not made good by the next change.
    pub(crate) const REST: &[u8] = b"rest";

    /// The game with so many machines.
    pub(crate) fn new(machines: u8) -> Self {
        let (players, parked) = (BTreeSet::new(), vec![]);
        Self { tanks: yard_world(machines), players, parked, rests: false }
    }

    /// The game as it is: one tank for each player, and no other.
    pub(crate) fn plain() -> Self {
        Self { tanks: tank_world(0), rests: true, ..Self::new(0) }
    }

    /// A tank of each player comes or goes, and so do tanks without a driver.
    fn change(&mut self, room: &mut Room<'_, Tanks>) {
        let turn = room.tick().number() / CHANGE;
        for player in &self.players {
            let owned = room.owned(*player);
            let wanted = 1 + (turn + u32::from(player.number())) % MAX_OWNED;
            match owned.last().copied() {
                // The first one is the game's.
                Some(last) if owned.len() > wanted as usize => {
                    let _ = room.remove(last);
                }
                Some(_) if owned.len() < wanted as usize => {
                    spawn(room, Driver::Player(*player));
                }
                _ => {}
            }
        }
        if turn % 3 == 1 && !self.parked.is_empty() {
            let _ = room.remove(self.parked.remove(0));
        } else {
            let wanted = PARKED - self.parked.len();
            self.parked.extend((0..wanted).map_while(|_| spawn(room, Driver::Nothing)));
        }
    }
}

/// A tank where there is room for one.
fn spawn(room: &mut Room<'_, Tanks>, driver: Driver) -> Option<BodyId> {
    let is_free = |x: f64, y: f64| {
        let mut others = room.bodies().map(|(.., body)| (body.pose().x - x).hypot(body.pose().y - y));
        room.rules().arena().clearance([x, y]) > HULL_RADIUS + 1.0
            && others.all(|way| way > 3.0 * HULL_RADIUS)
    };
    let grid = (-5..=5).flat_map(|y| (-8..=8).map(move |x| (f64::from(x) * 5.0, f64::from(y) * 5.0)));
    let (x, y) = grid.into_iter().find(|(x, y)| is_free(*x, *y))?;
    room.spawn(driver, Tank::new(x, y, 0.125).into()).ok()
}

impl World for Convoy {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.tanks.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        if login.name.as_str() != Self::WATCHER {
            self.tanks.join(player, login, room);
            self.players.insert(player);
        }
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.players.remove(&player);
        self.tanks.leave(player, room, events);
    }

    fn restarted(&mut self, player: PlayerId) {
        self.tanks.restarted(player);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.tanks.order(order)
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        if command.bytes == Self::REST {
            self.rests = true;
            return Ok(());
        }
        self.tanks.command(command)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.tanks.resolve(room, events);
        if !self.rests && room.tick().number().is_multiple_of(CHANGE) {
            self.change(room);
        }
    }

    fn digest(&self) -> u64 {
        self.tanks.digest()
    }
}
