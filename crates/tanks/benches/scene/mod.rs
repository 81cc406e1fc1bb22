//! The situations that are measured: shared by the benches and the instruction count.

use std::sync::Arc;
use std::time::Duration;

use halftrack::{
    Actor, Authority, BodyId, Cadence, Driver, Epoch, Neighbour, PredictConfig, Reconciler, Role, ServerTime,
    Tick, Timestamp,
};
use tanks::{Arena, Crate, Tank, TankInput, Tanks};

/// Where the tank is and what it does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Far from everything, turning and driving, one step per tick.
    Open,
    /// Pressed into a corner between two walls and leaving it again, four steps per tick.
    Walls,
    /// The same, against something round.
    Pillar,
    /// In the open among seven crates of its group, three of which it pushes before itself.
    Group,
}

/// A controlled tank that has predicted for a while, and the state that arrives now.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) reconciler: Reconciler<Tanks>,
    pub(crate) now: Timestamp,
    pub(crate) target: ServerTime,
    pub(crate) state: Authority<Tanks>,
}

impl Scene {
    /// The arriving state leaves `pending` closed ticks to be replayed, and the open one.
    pub(crate) fn new(place: Place, pending: u32) -> Self {
        let cadence = Cadence::default();
        // Sixty ticks are three seconds: more than the default window.
        let config = PredictConfig { max_pending: Duration::from_secs(4), ..PredictConfig::default() };
        let arena = Arena::new([240.0, 240.0], Arena::proving_ground().obstacles().to_vec());
        let tank = match place {
            Place::Open => Tank::new(80.0, 80.0, 0.3),
            Place::Walls => Tank::new(19.0, 13.0, 0.9),
            Place::Pillar => Tank::new(14.1, 22.0, 0.5),
            Place::Group => Tank::new(80.0, 80.0, 0.0),
        };
        let rules = Arc::new(Tanks::new(Arc::new(arena.expect("the obstacles fit"))));
        let mut state = Authority::new(Epoch::default(), Tick::new(100), tank.into());
        if matches!(place, Place::Group) {
            let ahead = [82.2, 84.2, 86.2].map(|x| [x, 80.0]);
            let around = [[78.0, 84.0], [90.0, 77.0], [84.0, 83.0], [84.0, 77.0]];
            for (id, [x, y]) in (1..).zip(ahead.into_iter().chain(around)) {
                let who = Neighbour::new(BodyId::new(id), Driver::Nothing, Crate::new(x, y).into());
                state.push(Actor::new(Role::Group, who, state.tick));
            }
        }
        let time = cadence.end_of(state.tick) - Duration::from_millis(1);
        let mut now = Timestamp::ZERO;
        let mut reconciler =
            Reconciler::new(rules, config, None, now, time, &state).expect("the config is good");
        reconciler.set_input(now, input(place, 0));
        // Quarters of a tick; the last frame is in the middle of the open one.
        for quarter in 0..4 * pending + 6 {
            now = now + cadence.interval() / 4;
            reconciler.set_input(now, input(place, quarter));
        }
        state.tick = state.tick.next();
        let target = reconciler.predictor().time();
        Self { reconciler, now, target, state }
    }

    /// What is measured. Not inlined, so that an instruction count can tell it from the rest.
    #[inline(never)]
    pub(crate) fn reconcile(&mut self) -> u32 {
        let accepted = self.reconciler.accept(self.now, self.target, &self.state);
        accepted.map_or(0, |diagnosis| diagnosis.replayed_ticks)
    }
}

fn input(place: Place, quarter: u32) -> TankInput {
    let (turn, throttle) = match place {
        Place::Open => (0.5, 1.0),
        Place::Group => (0.0, 1.0),
        Place::Walls | Place::Pillar => {
            ([0.25, -0.25, 0.5][quarter as usize % 3], [1.0, 0.75, -0.25, 1.0][quarter as usize % 4])
        }
    };
    TankInput::from_unit(turn, throttle).expect("finite")
}
