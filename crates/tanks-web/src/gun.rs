//! The player's gun as far as it can be foretold: whether it is ready, and where a shot would end on what the screen
//! shows. The server decides.

use core::time::Duration;

use halftrack::client::Client;
use halftrack::{PlayerId, ServerTime, Tick, Timestamp};
use halftrack_flight::FlightClient;
use tanks::{
    Arena, CombatEvent, Entity, Hull, Phase, Ray, Rejection, Seen, ShootInput, TankWorldConfig, Tanks,
};

/// Why no shot was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFired {
    /// The player is not in, or sees nothing yet.
    NotIn,
    /// The gun is not ready.
    CoolingDown,
    /// The tank is a wreck.
    Dead,
    /// Too much is on its way to the server already.
    Full,
    /// A break between two rounds.
    RoundOver,
}

impl NotFired {
    /// What the page is told in place of a distance.
    pub const fn code(self) -> f64 {
        match self {
            Self::NotIn => -1.0,
            Self::CoolingDown => -2.0,
            Self::Dead => -3.0,
            Self::Full => -4.0,
            Self::RoundOver => -5.0,
        }
    }
}

/// What is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Gun {
    cooldown: Duration,
    range: f64,
    /// The shots that decide when it is ready: the last that is known to be fired, or is on its way.
    fired: Option<Shot>,
    before: Option<Shot>,
    /// The player, and when its tank came or the round began. The gun is loaded one cooldown after that.
    came: Option<(PlayerId, ServerTime)>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shot {
    tick: Tick,
    at: u8,
    moment: ServerTime,
}

impl Default for Gun {
    fn default() -> Self {
        let world = TankWorldConfig::default();
        Self {
            cooldown: world.cooldown,
            range: world.range,
            fired: None,
            before: None,
            came: None,
            phase: Phase::Playing,
        }
    }
}

impl Gun {
    /// Orders a shot at `aim` (1/65536 turn). Gives how many metres it goes by what the screen shows.
    pub(crate) fn fire(
        &mut self,
        now: Timestamp,
        client: &mut FlightClient<Tanks>,
        arena: &Arena,
        aim: u16,
    ) -> Result<f64, NotFired> {
        let (Some(reconciler), Some((snapshot, drawn))) = (client.reconciler(), client.seen()) else {
            return Err(NotFired::NotIn);
        };
        let Some(tank) = reconciler.predicted().tank() else { return Err(NotFired::NotIn) };
        self.see(client);
        if !tank.is_alive() {
            return Err(NotFired::Dead);
        }
        if self.phase != Phase::Playing {
            return Err(NotFired::RoundOver);
        }
        let seen = Seen::new(client.cadence(), snapshot, drawn);
        let (tick, at) = ShootInput::grid(client.cadence(), reconciler.predictor().time());
        let order = ShootInput { tick, at, aim, seen };
        let moment = order.moment(client.cadence());
        if !self.left(moment).is_zero() {
            return Err(NotFired::CoolingDown);
        }
        let ray = Ray::new([tank.x, tank.y], aim);
        let wall = ray.to_arena(arena).min(self.range);
        let alive = |id| client.drawn(id).is_some_and(Entity::is_alive);
        let others = client.remotes().iter().filter(|other| other.state.is_alive() && alive(other.id));
        let hulls = others.filter_map(|other| ray.to_hull(Hull { x: other.visible.x, y: other.visible.y }));
        let reach = hulls.fold(wall, f64::min);
        client.order(now, &order.encode()).map_err(|_| NotFired::Full)?;
        self.before = self.fired.replace(Shot { tick, at, moment });
        Ok(reach)
    }

    /// Notes when the player's tank came: by the first snapshot of its session.
    pub(crate) fn see(&mut self, client: &Client<Tanks>) {
        let (Some(player), Some(tick)) = (client.player(), client.crowd().newest()) else { return };
        if self.came.is_none_or(|(known, _)| known != player) {
            self.came = Some((player, client.cadence().end_of(tick)));
        }
    }

    /// How long until it is ready, at `time` of prediction.
    pub(crate) fn left(&self, time: ServerTime) -> Duration {
        let waits_for = self.fired.map(|shot| shot.moment).max(self.came.map(|(_, came)| came));
        waits_for.map_or(Duration::ZERO, |moment| (moment + self.cooldown).saturating_since(time))
    }

    pub(crate) fn cooldown(&self) -> Duration {
        self.cooldown
    }

    /// A shot that was not fired does not make one wait, unless another one was the reason. A new round loads the gun anew.
    pub(crate) fn hear(&mut self, client: &Client<Tanks>, event: &CombatEvent) {
        if let CombatEvent::Round { phase, since, .. } = *event {
            self.begin_phase(client.player(), phase, client.cadence().end_of(since));
        }
        self.take_back(event);
    }

    fn begin_phase(&mut self, player: Option<PlayerId>, phase: Phase, since: ServerTime) {
        self.phase = phase;
        if phase == Phase::Playing {
            // A player that came later waits for its own tank.
            let came = self.came.filter(|(known, _)| Some(*known) == player).map(|(_, came)| came);
            self.came = player.map(|player| (player, came.map_or(since, |came| came.max(since))));
        }
    }

    fn take_back(&mut self, event: &CombatEvent) {
        if let CombatEvent::ShootRejected { tick, at, why } = *event
            && why != Rejection::CoolingDown
            && self.fired.is_some_and(|shot| (shot.tick, shot.at) == (tick, at))
        {
            self.fired = self.before.take();
        }
    }

    /// The session begins anew.
    pub(crate) fn reset(&mut self) {
        (self.fired, self.before, self.came, self.phase) = (None, None, None, Phase::Playing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shot_that_was_refused_leaves_the_gun_as_it_was() {
        let time = |ms: u64| ServerTime::from_micros(ms * 1_000);
        let shot = |number, ms| Shot { tick: Tick::new(number), at: 3, moment: time(ms) };
        let mut gun = Gun { fired: Some(shot(20, 1_000)), ..Gun::default() };
        gun.before = gun.fired.replace(shot(30, 1_500));
        assert_eq!(gun.left(time(1_600)), Duration::from_millis(400));
        let refused = |number, why| CombatEvent::ShootRejected { tick: Tick::new(number), at: 3, why };
        gun.take_back(&refused(29, Rejection::TooLate));
        gun.take_back(&refused(30, Rejection::CoolingDown));
        assert_eq!(gun.left(time(1_600)), Duration::from_millis(400), "another shot, or it does cool down");
        gun.take_back(&refused(30, Rejection::TooLate));
        assert_eq!(gun.left(time(1_600)), Duration::ZERO);
        assert_eq!(gun.left(time(1_400)), Duration::from_millis(100), "the one before still counts");
    }

    #[test]
    fn a_new_round_loads_the_gun_and_a_break_silences_it() {
        let time = |ms: u64| ServerTime::from_micros(ms * 1_000);
        let (own, mut gun) = (Some(PlayerId::new(3)), Gun::default());
        gun.begin_phase(own, Phase::Over { winner: None }, time(900));
        assert_eq!((gun.phase, gun.came), (Phase::Over { winner: None }, None));
        gun.begin_phase(own, Phase::Playing, time(1_000));
        assert_eq!((gun.phase, gun.left(time(1_100))), (Phase::Playing, Duration::from_millis(400)));
        // Its own tank came later than the round: that counts.
        gun.came = Some((PlayerId::new(3), time(5_000)));
        gun.begin_phase(own, Phase::Playing, time(1_000));
        assert_eq!(gun.left(time(5_100)), Duration::from_millis(400));
    }
}
