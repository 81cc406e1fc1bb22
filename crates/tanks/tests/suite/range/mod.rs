//! A shooting range: a world, its bodies and what each player has been shown, with nothing between them but the test.
#![allow(dead_code, reason = "each test uses the part that it needs")]

use std::collections::BTreeMap;
use std::sync::Arc;

use halftrack::server::{Audience, Events, Order, Room, Shown, World};
use halftrack::snapshot::{Bodies, View};
use halftrack::wire::control::{Login, PROTOCOL};
use halftrack::wire::{BitWriter, WireError};
use halftrack::{BodyId, Cadence, Causes, PlayerId, PlayerName, ServerTime, Tick, TickInput};
use tanks::{
    Arena, CombatEvent, Rejection, Seen, ShootInput, Tank, TankInput, TankWorld, TankWorldConfig, Tanks,
};

/// What was told in a tick, and to whom.
pub(crate) type Told = Vec<(Audience, CombatEvent)>;

/// Open ground all around, nothing to hide behind, and shots that reach everywhere.
pub(crate) fn open_ground() -> TankWorldConfig {
    let arena = Arc::new(Arena::new([100.0, 100.0], vec![]).expect("a good arena"));
    TankWorldConfig { arena, range: 200.0, ..TankWorldConfig::default() }
}

pub(crate) fn forward() -> TankInput {
    TankInput::from_unit(0.0, 1.0).expect("finite")
}

/// The direction from one point to another, on the grid of aims.
pub(crate) fn aim(from: &Tank, to: [f64; 2]) -> u16 {
    turns_to_aim((to[1] - from.y).atan2(to[0] - from.x) / std::f64::consts::TAU)
}

pub(crate) fn turns_to_aim(turns: f64) -> u16 {
    ((turns.rem_euclid(1.0) * 65_536.0).round() as u32 % 65_536) as u16
}

#[derive(Clone)]
pub(crate) struct Range {
    pub(crate) world: TankWorld,
    pub(crate) bodies: Bodies<Tanks>,
    pub(crate) inputs: BTreeMap<PlayerId, TankInput>,
    views: BTreeMap<PlayerId, View>,
    cadence: Cadence,
}

impl Range {
    pub(crate) fn new(config: TankWorldConfig) -> Self {
        Self::with(config, Cadence::default())
    }

    pub(crate) fn with(config: TankWorldConfig, cadence: Cadence) -> Self {
        let world = TankWorld::new(config).expect("a good config");
        let bodies = Bodies::new(Arc::clone(world.rules()), cadence, Tick::new(1_000));
        Self { world, bodies, inputs: BTreeMap::new(), views: BTreeMap::new(), cadence }
    }

    /// The next player, wherever the world puts it.
    pub(crate) fn join(&mut self) -> PlayerId {
        self.join_named(&format!("player {}", self.views.len() + 1))
    }

    /// The next player, by this name, wherever the world puts it.
    pub(crate) fn join_named(&mut self, name: &str) -> PlayerId {
        let player = PlayerId::new(self.views.len() as u16 + 1);
        let name = PlayerName::new(name).expect("a name");
        let login = Login { protocol: PROTOCOL, shared: 0, name, resume: None, credentials: None };
        self.bodies.join(player);
        self.world.join(player, &login, &mut Room::new(self.cadence, &mut self.bodies));
        self.views.insert(player, View::default());
        self.inputs.insert(player, TankInput::NEUTRAL);
        player
    }

    /// The next player, at this place.
    pub(crate) fn join_at(&mut self, x: f64, y: f64, heading: f64) -> PlayerId {
        let player = self.join();
        self.bodies.alter(self.id(player), Tank::new(x, y, heading).into(), Causes::NONE).expect("is here");
        player
    }

    /// A player leaves. Gives what the others hear of that.
    pub(crate) fn leave(&mut self, player: PlayerId) -> Told {
        let mut events = Events::default();
        self.world.leave(player, &mut Room::new(self.cadence, &mut self.bodies), &mut events);
        self.bodies.leave(player);
        self.inputs.remove(&player);
        without_scores(read(&events))
    }

    /// Simulates a tick: everybody moves, the world decides, everybody is sent a snapshot. Gives what is told but for scores,
    /// which follow each death.
    pub(crate) fn tick(&mut self) -> Told {
        without_scores(self.tick_with_scores())
    }

    /// Simulates a tick, and gives all that is told in it.
    pub(crate) fn tick_with_scores(&mut self) -> Told {
        let inputs = &self.inputs;
        self.bodies.advance(|player| TickInput::steady(inputs.get(&player).copied().unwrap_or_default()));
        let mut events = Events::default();
        self.world.resolve(&mut Room::new(self.cadence, &mut self.bodies), &mut events);
        for view in self.views.values_mut() {
            let mut buffer = [0; 1_100];
            self.bodies.write(view, 8_800, &mut BitWriter::new(&mut buffer));
        }
        read(&events)
    }

    /// So many ticks, in which nothing is to be told.
    pub(crate) fn quiet(&mut self, ticks: u32) {
        for _ in 0..ticks {
            assert_eq!(self.tick(), []);
        }
    }

    /// So many ticks, and whatever is told in them.
    pub(crate) fn ticks(&mut self, ticks: u32) -> Told {
        (0..ticks).flat_map(|_| self.tick()).collect()
    }

    pub(crate) fn order(&mut self, player: PlayerId, shot: &ShootInput) {
        self.order_bytes(player, &shot.encode()).expect("an order");
    }

    pub(crate) fn order_bytes(&mut self, player: PlayerId, bytes: &[u8]) -> Result<(), WireError> {
        // As a server answers: the order claims to have seen one snapshot.
        let claim = ShootInput::decode(bytes).map(|shot| shot.seen.snapshot);
        let shown = Shown::recorded(claim.is_ok_and(|tick| self.views[&player].was_sent(tick)));
        let order = Order { player, newest: self.newest(), bytes, shown };
        self.world.order(order)
    }

    /// Orders a shot for the start of the next tick at whom the shooter sees right now, and gives what is told of it.
    pub(crate) fn shoot(&mut self, player: PlayerId, aim: u16) -> Told {
        let shot = self.shot(1, 0, aim);
        self.order(player, &shot);
        self.tick()
    }

    /// A shot so many ticks after the newest, by a client that has the newest snapshot there is at that moment and draws it
    /// as it is.
    pub(crate) fn shot(&self, ahead: i32, at: u8, aim: u16) -> ShootInput {
        let tick = Tick::new(self.newest().number().saturating_add_signed(ahead));
        let snapshot = self.newest().min(tick.previous().unwrap_or_default());
        ShootInput { tick, at, aim, seen: Seen { snapshot, before_micros: 0 } }
    }

    pub(crate) fn newest(&self) -> Tick {
        self.bodies.tick()
    }

    pub(crate) fn now(&self) -> ServerTime {
        self.cadence.end_of(self.newest())
    }

    /// The body of a player.
    pub(crate) fn id(&self, player: PlayerId) -> BodyId {
        *self.bodies.owned(player).first().expect("is here")
    }

    pub(crate) fn tank(&self, player: PlayerId) -> Tank {
        (*self.bodies.history(self.id(player)).expect("is here").latest()).tank().copied().unwrap()
    }

    /// The causes of the newest tick.
    pub(crate) fn causes(&self, player: PlayerId) -> Causes {
        self.bodies
            .history(self.id(player))
            .and_then(|history| history.get(self.newest()))
            .expect("is here")
            .causes
    }

    /// A tank at a moment, exactly.
    pub(crate) fn tank_at(&self, player: PlayerId, time: ServerTime) -> Tank {
        let tick = self.cadence.tick_at(time);
        let into = time.saturating_since(self.cadence.start_of(tick));
        self.bodies.clone().body_at(self.id(player), tick, into).expect("is kept").tank().copied().unwrap()
    }
}

fn read(events: &Events) -> Told {
    events.iter().map(|(audience, bytes)| (audience, CombatEvent::decode(bytes).expect("an event"))).collect()
}

fn without_scores(told: Told) -> Told {
    told.into_iter().filter(|(_, event)| !matches!(event, CombatEvent::Score { .. })).collect()
}

/// The players that were hit. No machine is on the range.
pub(crate) fn hits(told: &Told) -> Vec<PlayerId> {
    let target = |event: &CombatEvent| match event {
        CombatEvent::Hit { target, .. } => Some(target.player().expect("a player")),
        _ => None,
    };
    told.iter().filter_map(|(_, event)| target(event)).collect()
}

/// Why the only order of a tick was rejected, if it was; it had an outcome in any case.
pub(crate) fn rejection(told: &Told) -> Option<Rejection> {
    match told.first() {
        Some((Audience::Only(_), CombatEvent::ShootRejected { why, .. })) => {
            assert_eq!(told.len(), 1, "{told:?}");
            Some(*why)
        }
        Some((Audience::All, CombatEvent::Fired { .. })) => None,
        other => panic!("no outcome: {other:?}"),
    }
}
