//! A tank world with a herd: bodies that no player owns. Some roam, the others stand.

use std::sync::Arc;

use halftrack::server::{Events, Order, Room, World};
use halftrack::wire::WireError;
use halftrack::wire::control::Login;
use halftrack::{BodyId, Driver, PlayerId};
use tanks::{Axis, Tank, TankInput, TankWorld, Tanks};

/// The bodies that no player owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Bodies that the world drives.
    pub(crate) movers: u16,
    /// Input changes of each, at random ticks.
    pub(crate) changes_per_second: f64,
    /// Bodies that stand.
    pub(crate) standing: u16,
    /// Of these: the world, which never drives them, or nothing.
    pub(crate) stander: Driver,
}

impl Kind {
    /// No herd.
    pub(crate) const NONE: Self =
        Self { movers: 0, changes_per_second: 0.0, standing: 0, stander: Driver::Nothing };

    /// All bodies.
    pub(crate) fn count(&self) -> u16 {
        self.movers + self.standing
    }
}

/// See the module.
pub(crate) struct Herd {
    world: TankWorld,
    kind: Kind,
    movers: Vec<BodyId>,
    dice: u64,
}

impl Herd {
    pub(crate) fn new(world: TankWorld, kind: Kind) -> Self {
        Self { world, kind, movers: vec![], dice: 0x2545_f491_4f6c_dd1d }
    }

    fn unit(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1u64 << 53) as f64
    }

    fn wish(&mut self) -> TankInput {
        let mut axis = || Axis::from_level((self.unit() * 33.0) as i8 - 16);
        let (turn, throttle) = (axis(), axis());
        TankInput { turn, throttle: if throttle == Axis::ZERO { Axis::FULL } else { throttle }, rocket: 0 }
    }

    /// Spawns the herd in rows over the whole arena, movers among standing ones.
    fn spawn(&mut self, room: &mut Room<'_, Tanks>) {
        let (count, [width, height]) = (self.kind.count(), self.world.config().arena.size());
        let rows = (1..).find(|rows| rows * rows >= count).expect("a square root");
        let place = |at: u16, side: f64| (f64::from(at) + 0.5) / f64::from(rows) * side * 0.96 - side * 0.48;
        for number in 0..count {
            // As many of the first `n` move as should of `n`.
            let share = |n: u16| u32::from(n) * u32::from(self.kind.movers) / u32::from(count);
            let moves = share(number + 1) > share(number);
            let driver = if moves { Driver::World } else { self.kind.stander };
            let tank = Tank::new(place(number % rows, width), place(number / rows, height), 0.0);
            let id = room.spawn(driver, tank.into()).expect("room for the herd");
            if moves {
                self.movers.push(id);
            }
        }
    }
}

impl World for Herd {
    type Game = Tanks;

    fn rules(&self) -> &Arc<Tanks> {
        self.world.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Tanks>) {
        if room.bodies().next().is_none() {
            self.spawn(room);
        }
        self.world.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.world.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Tanks>) -> Result<(), WireError> {
        self.world.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.world.resolve(room, events);
        let per_tick = self.kind.changes_per_second * room.cadence().interval().as_secs_f64();
        for at in 0..self.movers.len() {
            if self.unit() < per_tick {
                let wish = self.wish();
                room.drive(self.movers[at], wish).expect("a mover is there");
            }
        }
    }
}
