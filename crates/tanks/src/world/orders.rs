//! The shots that one player has ordered and that have no outcome yet, in the order they came.
//!
//! What is refused keeps its place in the queue, so that a player's outcomes come in the order of its orders. Knows
//! moments, not bodies.

use std::collections::VecDeque;
use std::time::Duration;

use halftrack::wire::WireError;
use halftrack::{Cadence, Digest, ServerTime, Tick};

use crate::fighter::Fighter;
use crate::message::{Rejection, ShootInput};

/// How far ahead of the newest tick a shot may be: what the server takes of movement input too.
const MAX_AHEAD: Duration = Duration::from_secs(1);
/// Shots of a player that wait for their tick. At the default cooldown three fit into a second; what is over is a
/// flood.
const MAX_WAITING: usize = 4;
/// Orders without an outcome. Somebody who clicks at every frame of a stall of two seconds has not half as many.
const MAX_ORDERS: usize = 512;

/// A player's orders.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    /// In the order they came. Those that wait have strictly increasing moments.
    queue: VecDeque<Order>,
    /// When the last shot was fired.
    fired: Option<ServerTime>,
    /// When the gun is loaded for the first time in its life or in a round.
    loaded_at: ServerTime,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    shot: ShootInput,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Not looked at yet.
    Arrived(Snapshot),
    /// For its tick.
    Waits,
    /// For those before it to have their outcome.
    Refused(Rejection),
}

/// Whether the snapshot that a shot claims was sent to the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Snapshot {
    Sent,
    NeverSent,
}

/// An order whose outcome is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// By moment, then by fighter, then as they came. What is refused goes right after what it came after.
    key: (ServerTime, Fighter, usize),
    pub(super) shot: ShootInput,
    /// Why not, if that is known already.
    pub(super) refused: Option<Rejection>,
}

impl Due {
    pub(super) fn key(&self) -> (ServerTime, Fighter, usize) {
        self.key
    }

    pub(super) fn fighter(&self) -> Fighter {
        self.key.1
    }
}

impl Orders {
    /// Those of a player whose gun is loaded from `moment` on.
    pub(super) fn loaded_at(moment: ServerTime) -> Self {
        Self { queue: VecDeque::new(), fired: None, loaded_at: moment }
    }

    /// The gun is loaded again from `moment` on. Shots that wait keep their place.
    pub(super) fn reload(&mut self, moment: ServerTime) {
        self.loaded_at = moment;
    }

    /// When the last shot was fired.
    pub(super) fn fired(&self) -> Option<ServerTime> {
        self.fired
    }

    /// An order has come. What it says about what was seen is checked against what has been shown by now.
    pub(super) fn push(&mut self, shot: ShootInput, snapshot: Snapshot) -> Result<(), WireError> {
        if self.queue.len() >= MAX_ORDERS {
            return Err(WireError::Invalid { field: "shoot_input.count" });
        }
        self.queue.push_back(Order { shot, stage: Stage::Arrived(snapshot) });
        Ok(())
    }

    /// Looks at what has come since the last time, at the end of `newest`.
    pub(super) fn judge(&mut self, cadence: Cadence, newest: Tick, claim: Duration) {
        let horizon = cadence.end_of(newest) + MAX_AHEAD;
        let (mut latest, mut waiting) = (self.fired, 0);
        for order in &mut self.queue {
            let moment = order.shot.moment(cadence);
            if let Stage::Arrived(snapshot) = order.stage {
                // spec: COMBAT-02
                let before = Duration::from_micros(order.shot.seen.before_micros.into());
                order.stage = if moment > horizon {
                    Stage::Refused(Rejection::TooEarly)
                } else if latest.is_some_and(|latest| moment <= latest) {
                    Stage::Refused(Rejection::NotNewer)
                } else if snapshot == Snapshot::NeverSent
                    || before > claim
                    || cadence.end_of(order.shot.seen.snapshot) > moment
                {
                    // A snapshot of a later tick than the shot's moment cannot have been on the screen then.
                    Stage::Refused(Rejection::ClaimInvalid)
                } else if waiting >= MAX_WAITING && order.shot.tick > newest {
                    Stage::Refused(Rejection::CoolingDown)
                } else {
                    Stage::Waits
                };
            }
            if let Stage::Waits = order.stage {
                latest = Some(moment);
                waiting += usize::from(order.shot.tick > newest);
            }
        }
    }

    /// Takes out what is due at the end of `newest`.
    pub(super) fn take_due(&mut self, fighter: Fighter, cadence: Cadence, newest: Tick, due: &mut Vec<Due>) {
        let mut latest = ServerTime::ZERO;
        while let Some(Order { shot, stage }) = self.queue.front().copied() {
            let refused = match stage {
                Stage::Refused(why) => Some(why),
                Stage::Waits if shot.tick <= newest => None,
                Stage::Waits | Stage::Arrived(_) => break,
            };
            if refused.is_none() {
                latest = shot.moment(cadence);
            }
            due.push(Due { key: (latest, fighter, due.len()), shot, refused });
            self.queue.pop_front();
        }
    }

    /// Whether the gun is ready at `moment`.
    pub(super) fn is_ready(&self, moment: ServerTime, cooldown: Duration) -> bool {
        moment >= self.ready_at(cooldown)
    }

    /// When the gun is ready next.
    pub(super) fn ready_at(&self, cooldown: Duration) -> ServerTime {
        self.fired.map_or(self.loaded_at, |fired| self.loaded_at.max(fired + cooldown))
    }

    /// And what it has of orders.
    pub(super) fn digest(&self, digest: Digest) -> Digest {
        let fired = self.fired.map_or(u64::MAX, ServerTime::as_micros);
        let each = |digest: Digest, Order { shot, .. }: &Order| {
            digest.word(u64::from(shot.tick.number()) << 32 | u64::from(shot.at) << 16 | u64::from(shot.aim))
        };
        self.queue.iter().fold(digest.word(fired).word(self.loaded_at.as_micros()), each)
    }

    /// A shot was fired at `moment`.
    pub(super) fn fire(&mut self, moment: ServerTime) {
        self.fired = Some(moment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Seen;
    use halftrack::PlayerId;

    fn player(number: u16) -> Fighter {
        Fighter::Player(PlayerId::new(number))
    }

    const NEWEST: Tick = Tick::new(100);

    fn shot(tick: u32, at: u8) -> ShootInput {
        ShootInput {
            tick: Tick::new(tick),
            at,
            aim: 0,
            seen: Seen { snapshot: Tick::new(0), before_micros: 0 },
        }
    }

    fn outcomes(orders: &mut Orders, newest: Tick) -> Vec<(u32, Option<Rejection>)> {
        let (cadence, mut due) = (Cadence::default(), vec![]);
        orders.judge(cadence, newest, Duration::from_millis(300));
        orders.take_due(player(1), cadence, newest, &mut due);
        due.iter().map(|due| (due.shot.tick.number(), due.refused)).collect()
    }

    #[test]
    fn what_is_refused_waits_for_what_came_before_it() {
        let mut orders = Orders::loaded_at(ServerTime::ZERO);
        for tick in [102, 101, 103] {
            orders.push(shot(tick, 0), Snapshot::Sent).unwrap();
        }
        assert_eq!(outcomes(&mut orders, NEWEST), []);
        assert_eq!(outcomes(&mut orders, NEWEST.next()), []);
        let second = outcomes(&mut orders, Tick::new(102));
        assert_eq!(second, [(102, None), (101, Some(Rejection::NotNewer))]);
        assert_eq!(outcomes(&mut orders, Tick::new(103)), [(103, None)]);
    }

    #[test]
    fn a_handful_waits_and_no_more() {
        let mut orders = Orders::loaded_at(ServerTime::ZERO);
        for tick in 101..=106 {
            orders.push(shot(tick, 0), Snapshot::Sent).unwrap();
        }
        let over = Some(Rejection::CoolingDown);
        let all = outcomes(&mut orders, NEWEST).into_iter().chain(outcomes(&mut orders, Tick::new(200)));
        assert_eq!(
            all.collect::<Vec<_>>(),
            [(101, None), (102, None), (103, None), (104, None), (105, over), (106, over)]
        );
    }

    #[test]
    fn the_horizon_is_a_second_to_the_microsecond() {
        let refused = vec![(121, Some(Rejection::TooEarly))];
        for (at, now) in [(0, vec![]), (1, refused)] {
            let mut orders = Orders::loaded_at(ServerTime::ZERO);
            orders.push(shot(121, at), Snapshot::Sent).unwrap();
            assert_eq!(outcomes(&mut orders, NEWEST), now);
        }
    }

    #[test]
    fn a_flood_is_the_senders_fault() {
        let mut orders = Orders::loaded_at(ServerTime::ZERO);
        for _ in 0..MAX_ORDERS {
            assert!(orders.push(shot(1, 0), Snapshot::Sent).is_ok());
        }
        assert_eq!(
            orders.push(shot(1, 0), Snapshot::Sent),
            Err(WireError::Invalid { field: "shoot_input.count" })
        );
    }

    #[test]
    fn the_gun_is_ready_after_its_cooldown_and_not_before() {
        let mut orders = Orders::loaded_at(ServerTime::ZERO);
        let (at, cooldown) = (ServerTime::from_micros(5_000_000), Duration::from_millis(500));
        assert!(orders.is_ready(at, cooldown));
        orders.fire(at);
        assert!(orders.is_ready(at + cooldown, cooldown));
        assert!(!orders.is_ready(at + cooldown - Duration::from_micros(1), cooldown));
    }
}
