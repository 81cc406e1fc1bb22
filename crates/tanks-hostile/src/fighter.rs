//! Players with a client of ours, and gunners by raw connections around them: for attacks that must aim.
//!
//! Tanks come in far from each other, in an arena that is larger than a shot goes. So a crowd of gunners comes first, and
//! the [`Fighter`] that comes after them has some of them near. A gunner reads no snapshots: the fighter's client knows
//! the places of all.

use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::time::Duration;

use futures_util::future::join_all;
use halftrack::wire::control::FromClient;
use halftrack::{Cadence, PlayerId, ServerTime, Tick};
use halftrack_flight::FlightConfig;
use halftrack_io::ClientHandle;
use tanks::{Arena, CombatEvent, HULL_RADIUS, Ray, Rejection, Seen, ShootInput, Tank, Tanks};

use crate::attack::{Failed, Field};
use crate::bytes::{self, LoginBytes};
use crate::honest::{Driver, client};
use crate::peer::{Login, Peer, soon};

/// Frames are this far apart.
const FRAME: Duration = Duration::from_millis(8);
/// Metres that a shot goes.
const RANGE: f64 = 60.0;

/// A player whose client is ours. Dropped, it leaves.
pub(crate) struct Fighter {
    handle: ClientHandle<Tanks>,
    /// Drives its tank, if it is to move.
    driver: Option<Driver>,
    /// The positions of its tank in the last two seconds, by the server's time, the newest last.
    trail: VecDeque<(ServerTime, [f64; 2])>,
}

impl Fighter {
    /// Logs in, and waits for its tank. Tries again for two seconds: a name that was left just now is still taken until the
    /// server has read the logout.
    pub(crate) async fn enter(field: &Field, room: &str, name: &str) -> Result<Self, Failed> {
        let target = format!("quic://{}/room/{room}", field.address());
        let mut tries = 0;
        let handle = loop {
            let handle = client(field, &target, name, None)?;
            match soon("a login", handle.logged_in()).await? {
                Ok(_) => break handle,
                Err(problem) if tries == 40 => return Err(format!("{name}: {problem}").into()),
                Err(_) => tries += 1,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let mut fighter = Self { handle, driver: None, trail: VecDeque::new() };
        let tank = async {
            while fighter.tank().is_none() {
                fighter.play(FRAME).await;
            }
        };
        soon("a tank", tank).await?;
        Ok(fighter)
    }

    pub(crate) fn with_driver(self) -> Self {
        Self { driver: Some(Driver::new(7)), ..self }
    }

    pub(crate) fn tank(&self) -> Option<Tank> {
        self.handle.read(|client| client.predicted()?.tank().copied())
    }

    /// The server's time, as far as it is known.
    pub(crate) fn server_time(&self) -> Option<ServerTime> {
        self.handle.act(|now, client| client.server_time(now))
    }

    /// Draws frames for `span`, and at least one.
    pub(crate) async fn play(&mut self, span: Duration) {
        let end = tokio::time::Instant::now() + span;
        loop {
            self.frame();
            if tokio::time::Instant::now() >= end {
                return;
            }
            tokio::time::sleep(FRAME).await;
        }
    }

    fn frame(&mut self) {
        while self.handle.poll_event().is_some() {}
        let driver = &mut self.driver;
        let here = self.handle.act(|now, client| {
            if let Some(driver) = driver {
                driver.drive(now, client);
            }
            client.frame(now);
            let time = client.reconciler()?.predictor().time();
            client.predicted().map(|tank| (time, [tank.pose().x, tank.pose().y]))
        });
        self.trail.extend(here);
        while self.trail.len() > 250 {
            self.trail.pop_front();
        }
    }

    /// Positions from `time` on.
    pub(crate) fn trail_from(&self, time: ServerTime) -> impl Iterator<Item = [f64; 2]> {
        self.trail.iter().filter(move |(at, _)| *at >= time).map(|(_, place)| *place)
    }

    /// The position of another player's tank.
    fn place_of(&self, player: PlayerId) -> Option<[f64; 2]> {
        self.handle.read(|client| {
            let (_, history) = client.bodies_of(player).next()?;
            let tank = history.latest();
            Some([tank.pose().x, tank.pose().y])
        })
    }

    /// Plays for `span` with a flight recorder on, and gives its report.
    pub(crate) async fn fly(&mut self, span: Duration) -> Result<Vec<u8>, Failed> {
        self.handle.act(|_, client| client.record(FlightConfig::default(), client.rules().setup()))?;
        self.play(span).await;
        Ok(self.handle.act(|_, client| client.flight_report("a bug")).ok_or("nothing was recorded")?)
    }

    /// Logs out. The name is free a moment later: see [`Self::enter`].
    pub(crate) async fn leave(self) {
        self.handle.logout();
        // The last message is written by the client's own task.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The outcome of a shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shot {
    Hit,
    Missed,
    Rejected(Rejection),
}

/// Players by raw connections, who stand where they came in.
pub(crate) struct Gunners(Vec<(PlayerId, Peer)>);

impl Gunners {
    /// So many that a newcomer has some within range, wherever it comes in.
    const COUNT: usize = 24;

    pub(crate) async fn enter(field: &Field, room: &str) -> Result<Self, Failed> {
        let mut gunners = vec![];
        for number in 0..Self::COUNT {
            let mut peer = Peer::connect(field).await?;
            let login = LoginBytes {
                room: room.as_bytes().to_vec(),
                ..LoginBytes::new(field, &format!("gun {number}"))
            };
            match peer.log_in(&login).await? {
                Login::In { player, .. } => gunners.push((player, peer)),
                other => return Err(format!("a gunner: {}", other.told()).into()),
            }
        }
        // So that they have been sent snapshots, and their guns are loaded.
        tokio::time::sleep(Duration::from_millis(600)).await;
        Ok(Self(gunners))
    }

    /// Says something by all of them: silent players are cut after a few seconds.
    pub(crate) async fn stay(&mut self) {
        for (_, peer) in &mut self.0 {
            peer.write(&bytes::heartbeats(1)).await;
        }
    }

    /// Gunners that `fighter` knows of, and their places.
    pub(crate) fn places(&self, fighter: &Fighter) -> Vec<(usize, [f64; 2])> {
        let place =
            |(number, (player, _)): (usize, &(PlayerId, Peer))| Some((number, fighter.place_of(*player)?));
        self.0.iter().enumerate().filter_map(place).collect()
    }

    /// Has a gunner shoot, and lets `fighter` play until the outcome is known.
    pub(crate) async fn shoot(
        &mut self,
        gunner: usize,
        shot: &ShootInput,
        fighter: &mut Fighter,
    ) -> Result<Shot, Failed> {
        let (player, peer) = self.0.get_mut(gunner).ok_or("no such gunner")?;
        if !peer.say(&FromClient::ShootInput(shot.encode())).await {
            return Err("a gunner was cut".into());
        }
        let (player, key, mut events) = (tanks::Fighter::from(*player), (shot.tick, shot.at), vec![]);
        let whom = fighter.handle.read(|client| client.player()).map(tanks::Fighter::from);
        for _ in 0..8 {
            let span = Duration::from_millis(150);
            events.extend(tokio::join!(peer.combat(span), fighter.play(span)).0);
            let outcome = events.iter().find_map(|event| match *event {
                CombatEvent::ShootRejected { tick, at, why } if (tick, at) == key => {
                    Some(Shot::Rejected(why))
                }
                CombatEvent::Fired { shooter, tick, at, .. } if (shooter, (tick, at)) == (player, key) => {
                    Some(Shot::Missed)
                }
                _ => None,
            });
            let Some(outcome) = outcome else { continue };
            let hit = events.iter().any(|event| {
                matches!(*event, CombatEvent::Hit { shooter, target, tick, at }
                    if (shooter, Some(target), (tick, at)) == (player, whom, key))
            });
            return Ok(if hit { Shot::Hit } else { outcome });
        }
        Err("a shot had no outcome".into())
    }

    pub(crate) async fn leave(self) {
        join_all(self.0.into_iter().map(|(_, peer)| peer.leave())).await;
    }
}

/// A shot fired at `moment`, by a player who saw the others as they were at `seen`.
pub(crate) fn shot(cadence: Cadence, moment: ServerTime, seen: ServerTime, aim: u16) -> ShootInput {
    let (tick, at) = ShootInput::grid(cadence, moment);
    // No snapshot is of after the shot.
    let newest = Tick::new(tick.number().saturating_sub(1));
    let snapshot = newest.min(cadence.tick_at(seen));
    ShootInput { tick, at, aim, seen: Seen::new(cadence, snapshot, seen) }
}

/// The direction from one place to another, in 1/65536 turn.
pub(crate) fn aim(from: [f64; 2], to: [f64; 2]) -> u16 {
    let turns = (to[1] - from[1]).atan2(to[0] - from[0]) / TAU;
    (turns * 65_536.0).rem_euclid(65_536.0) as u16
}

/// Whether a shot from `from` at `aim` gets as far as `to` before it meets a wall or one of the tanks at `others`.
pub(crate) fn reaches(
    arena: &Arena,
    others: &[(usize, [f64; 2])],
    from: [f64; 2],
    aim: u16,
    to: [f64; 2],
) -> bool {
    let far = |place: [f64; 2]| (place[0] - from[0]).hypot(place[1] - from[1]);
    let (distance, wall) = (far(to), Ray::new(from, aim).to_arena(arena).min(RANGE));
    let beside = |other: &(usize, [f64; 2])| {
        other.1 == from
            || far(other.1) > distance + HULL_RADIUS
            || passes_by(from, aim, other.1) > HULL_RADIUS + 0.1
    };
    distance > 3.0 * HULL_RADIUS && distance < wall && others.iter().all(beside)
}

/// Metres by which a shot from `from` at `aim` passes the middle of a hull at `place`. Infinite for one that is behind.
pub(crate) fn passes_by(from: [f64; 2], aim: u16, place: [f64; 2]) -> f64 {
    let (sin, cos) = (f64::from(aim) / 65_536.0 * TAU).sin_cos();
    let (x, y) = (place[0] - from[0], place[1] - from[1]);
    if x * cos + y * sin < 0.0 { f64::INFINITY } else { (y * cos - x * sin).abs() }
}
