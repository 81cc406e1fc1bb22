//! A recorded match of tanks: how its world was made, and who did what in it.
//!
//! The format is the core's; here is what this game puts into its header, and how a shot is kept, lowest bit first:
//!
//! ```text
//! long        1   the order follows as it came: its length in 13 bits, and its bytes
//! otherwise:
//!   ahead     6   ticks from the newest one to the shot's, with a sign
//!   at        8
//!   aim      16
//!   behind    6   ticks from the snapshot to the newest tick
//!   before   19   us
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use halftrack::record::{Playback, Recording, RecordingRefused};
use halftrack::wire::{BitReader, BitWriter, WireError, read_bytes, write_bytes};
use halftrack::{PlayerId, PlayerName, Tick};
use serde::{Deserialize, Serialize};

use crate::arena::{Arena, ArenaError, Obstacle};
use crate::body::{MoveParams, ParamsError};
use crate::fighter::Fighter;
use crate::message::{CombatEvent, Seen, ShootInput};
use crate::world::{RoundConfig, TankWorld, TankWorldConfig, WorldError};

/// A match that happens again.
pub type TankPlayback = Playback<TankWorld>;

/// What a recording says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The room it was played in.
    pub room: String,
    /// When it began, seconds since 1970.
    pub started: u64,
    world: WorldCode,
}

/// A [`TankWorldConfig`] as it is written. Times in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct WorldCode {
    params: (u16, u16),
    damage: u8,
    cooldown: u64,
    respawn_after: u64,
    range: f64,
    max_rewind: u64,
    history: u64,
    claim: u64,
    /// Length and pause.
    rounds: Option<(u64, u64)>,
    machines: u8,
    machine_rockets: bool,
    crates: u8,
    platforms: u8,
    seed: u64,
    size: [f64; 2],
    obstacles: Vec<Obstacle>,
}

/// A file that no match can be made of.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatchRefused {
    /// It is no recording, or not one for this program.
    #[error(transparent)]
    Recording(#[from] RecordingRefused),
    /// It is a recording of something else.
    #[error("the recording is not of a match of tanks")]
    Foreign,
    /// An arena that cannot be.
    #[error("the recorded arena cannot be: {0}")]
    Arena(#[from] ArenaError),
    /// Tanks that cannot be.
    #[error("the recorded tanks cannot be: {0}")]
    Params(#[from] ParamsError),
    /// A world that cannot be.
    #[error("the recorded world cannot be: {0}")]
    World(#[from] WorldError),
}

impl About {
    /// Of a world made of `config`.
    pub fn new(room: &str, started: u64, config: &TankWorldConfig) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let world = WorldCode {
            params: config.params.units(),
            damage: config.damage,
            cooldown: micros(config.cooldown),
            respawn_after: micros(config.respawn_after),
            range: config.range,
            max_rewind: micros(config.max_rewind),
            history: micros(config.history),
            claim: micros(config.claim),
            rounds: config.rounds.map(|rounds| (micros(rounds.length), micros(rounds.pause))),
            machines: config.machines,
            machine_rockets: config.machine_rockets,
            crates: config.crates,
            platforms: config.platforms,
            seed: config.seed,
            size: config.arena.size(),
            obstacles: config.arena.obstacles().to_vec(),
        };
        Self { room: room.to_owned(), started, world }
    }

    /// For a recording's header.
    pub fn encode(&self) -> Vec<u8> {
        // The most obstacles there can be take less than this.
        let mut buffer = vec![0; 16_384];
        let length = postcard::to_slice(self, &mut buffer).map_or(0, |written| written.len());
        buffer.truncate(length);
        buffer
    }

    /// From there.
    ///
    /// # Errors
    /// When it is of another game.
    pub fn decode(bytes: &[u8]) -> Result<Self, MatchRefused> {
        postcard::from_bytes(bytes).map_err(|_| MatchRefused::Foreign)
    }

    /// What the world was made of.
    ///
    /// # Errors
    /// When no arena or no tank can be so.
    pub fn config(&self) -> Result<TankWorldConfig, MatchRefused> {
        let world = &self.world;
        Ok(TankWorldConfig {
            arena: Arc::new(Arena::new(world.size, world.obstacles.clone())?),
            params: MoveParams::from_units(world.params)?,
            damage: world.damage,
            cooldown: Duration::from_micros(world.cooldown),
            respawn_after: Duration::from_micros(world.respawn_after),
            range: world.range,
            max_rewind: Duration::from_micros(world.max_rewind),
            history: Duration::from_micros(world.history),
            claim: Duration::from_micros(world.claim),
            rounds: world.rounds.map(|(length, pause)| RoundConfig {
                length: Duration::from_micros(length),
                pause: Duration::from_micros(pause),
            }),
            machines: world.machines,
            machine_rockets: world.machine_rockets,
            crates: world.crates,
            platforms: world.platforms,
            seed: world.seed,
        })
    }
}

/// Opens a recorded match, at its beginning.
///
/// # Errors
/// When it is none, or of other rules.
pub fn open_recording(bytes: impl Into<Arc<[u8]>>) -> Result<(About, TankPlayback), MatchRefused> {
    let recording = Recording::open(bytes)?;
    let about = About::decode(&recording.header().about)?;
    let world = TankWorld::new(about.config()?)?;
    Ok((about, Playback::new(recording, world)?))
}

const AHEAD_BITS: u32 = 6;
const BEHIND_BITS: u32 = 6;
const BEFORE_BITS: u32 = 19;

/// A shot as it is kept: seven bytes, if it is one that an honest client fires.
pub(crate) fn write_order(order: &[u8], newest: Tick, bits: &mut BitWriter<'_>) {
    let shot = ShootInput::decode(order).ok();
    match shot.and_then(|shot| Some((shot, distances(&shot, newest)?))) {
        Some((shot, (ahead, behind))) => {
            bits.write_flag(false);
            bits.write_signed(ahead, AHEAD_BITS);
            bits.write(u32::from(shot.at), 8);
            bits.write(u32::from(shot.aim), 16);
            bits.write(behind, BEHIND_BITS);
            bits.write(shot.seen.before_micros, BEFORE_BITS);
        }
        None => {
            bits.write_flag(true);
            write_bytes(order, bits);
        }
    }
}

/// From the newest tick to the shot's, and from its snapshot's to the newest, if the shot can be short.
fn distances(shot: &ShootInput, newest: Tick) -> Option<(i32, u32)> {
    let ahead = i64::from(shot.tick.number()) - i64::from(newest.number());
    let behind = newest.number().checked_sub(shot.seen.snapshot.number())?;
    let half = 1 << (AHEAD_BITS - 1);
    let fits = (-half..half).contains(&ahead)
        && behind >> BEHIND_BITS == 0
        && shot.seen.before_micros >> BEFORE_BITS == 0;
    i32::try_from(ahead).ok().filter(|_| fits).map(|ahead| (ahead, behind))
}

pub(crate) fn read_order(newest: Tick, bits: &mut BitReader<'_>) -> Result<Vec<u8>, WireError> {
    if bits.read_flag()? {
        return read_bytes(bits);
    }
    let tick = newest.number().checked_add_signed(bits.read_signed(AHEAD_BITS)?);
    let at = u8::try_from(bits.read(8)?).unwrap_or(0);
    let aim = u16::try_from(bits.read(16)?).unwrap_or(0);
    let snapshot = newest.number().checked_sub(bits.read(BEHIND_BITS)?);
    let before_micros = bits.read(BEFORE_BITS)?;
    let (tick, snapshot) = tick.zip(snapshot).ok_or(WireError::Invalid { field: "shoot_input.tick" })?;
    let seen = Seen { snapshot: Tick::new(snapshot), before_micros };
    Ok(ShootInput { tick: Tick::new(tick), at, aim, seen }.encode())
}

/// The deeds of one fighter in a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    /// The fighter's name.
    pub name: PlayerName,
    /// Tanks that it destroyed.
    pub kills: u32,
    /// Times that it was destroyed.
    pub deaths: u32,
    /// Shots that it fired.
    pub shots: u32,
    /// Shots that hit a tank.
    pub hits: u32,
}

/// The deeds of all fighters, those that left included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    here: BTreeMap<Fighter, Score>,
    gone: Vec<Score>,
}

impl Scores {
    /// A player came.
    pub fn joined(&mut self, player: PlayerId, name: PlayerName) {
        self.left(player);
        self.here.insert(player.into(), Score { name, kills: 0, deaths: 0, shots: 0, hits: 0 });
    }

    /// A player went.
    pub fn left(&mut self, player: PlayerId) {
        self.gone.extend(self.here.remove(&player.into()));
    }

    /// Counts an event. A machine is in from its first one on.
    pub fn count(&mut self, event: &CombatEvent) {
        match event {
            CombatEvent::Fired { shooter, .. } => self.add(*shooter, |score| &mut score.shots),
            CombatEvent::Hit { shooter, .. } => self.add(*shooter, |score| &mut score.hits),
            CombatEvent::Death { fighter, by, .. } => {
                self.add(*fighter, |score| &mut score.deaths);
                if by != fighter {
                    self.add(*by, |score| &mut score.kills);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, fighter: Fighter, counter: fn(&mut Score) -> &mut u32) {
        let machine = fighter.machine_name().and_then(|name| PlayerName::new(&name).ok());
        if let Some(name) = machine {
            let fresh = || Score { name, kills: 0, deaths: 0, shots: 0, hits: 0 };
            self.here.entry(fighter).or_insert_with(fresh);
        }
        if let Some(score) = self.here.get_mut(&fighter) {
            *counter(score) += 1;
        }
    }

    /// The score of a fighter in the match.
    pub fn get(&self, fighter: Fighter) -> Option<&Score> {
        self.here.get(&fighter)
    }

    /// All scores, the best first.
    pub fn ranked(&self) -> Vec<&Score> {
        let mut all: Vec<_> = self.here.values().chain(&self.gone).collect();
        all.sort_by_key(|score| (core::cmp::Reverse(score.kills), score.deaths));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Reach;
    use halftrack::BodyId;
    use proptest::prelude::*;

    #[test]
    fn what_a_recording_says_about_its_world_makes_the_same_world() {
        let rounds = Some(RoundConfig::default());
        let config = TankWorldConfig {
            seed: 77,
            damage: 30,
            rounds,
            machines: 9,
            machine_rockets: true,
            crates: 5,
            platforms: 2,
            ..TankWorldConfig::default()
        };
        let about = About::new("hall", 5, &config);
        let again = About::decode(&about.encode()).unwrap();
        assert_eq!(again, about);
        assert_eq!(format!("{:?}", again.config().unwrap()), format!("{config:?}"));
        assert_eq!(About::decode(b"carts"), Err(MatchRefused::Foreign));
    }

    #[test]
    fn scores_outlive_those_who_leave() {
        let (mut scores, name) = (Scores::default(), |name| PlayerName::new(name).unwrap());
        let (a, b, tick) = (PlayerId::new(1), PlayerId::new(2), Tick::new(9));
        scores.joined(a, name("a"));
        scores.joined(b, name("b"));
        scores.count(&CombatEvent::Death { fighter: a.into(), by: b.into(), tick });
        scores.left(b);
        scores.joined(b, name("c"));
        let ranked: Vec<_> = scores.ranked().iter().map(|score| (score.name.as_str(), score.kills)).collect();
        assert_eq!(ranked, [("b", 1), ("c", 0), ("a", 0)]);
        assert_eq!(scores.get(a.into()).map(|score| score.deaths), Some(1));
    }

    #[test]
    fn a_machine_has_a_score_from_its_first_event_on() {
        let (mut scores, ada, tick) = (Scores::default(), PlayerId::new(1), Tick::new(9));
        let machine = Fighter::Machine(BodyId::new(71 * 16 + 1));
        scores.joined(ada, PlayerName::new("Ada").unwrap());
        assert_eq!(scores.get(machine), None);
        scores.count(&CombatEvent::Hit { shooter: machine, target: ada.into(), tick, at: 0 });
        scores.count(&CombatEvent::Death { fighter: ada.into(), by: machine, tick });
        let score = scores.get(machine).map(|score| (score.name.as_str(), score.kills, score.hits));
        assert_eq!(score, Some(("Badger-71", 1, 1)));
        scores.count(&CombatEvent::Fired {
            shooter: PlayerId::new(2).into(),
            tick,
            at: 0,
            aim: 0,
            reach: Reach::from_metres(1.0),
        });
        assert_eq!(scores.ranked().len(), 2, "a player that never came has no score");
    }

    fn packed(order: &[u8], newest: u32) -> Vec<u8> {
        let mut buffer = [0; 100];
        let mut bits = BitWriter::new(&mut buffer);
        write_order(order, Tick::new(newest), &mut bits);
        let length = bits.finish().unwrap();
        buffer[..length].to_vec()
    }

    fn unpacked(packed: &[u8], newest: u32) -> Result<Vec<u8>, WireError> {
        read_order(Tick::new(newest), &mut BitReader::new(packed))
    }

    proptest! {
        #[test]
        fn shots_survive_packing(
            (newest, tick, snapshot) in (any::<u32>(), any::<u32>(), any::<u32>()),
            (near, behind) in (-40i32..40, 0u32..80),
            (at, aim, before_micros, honest) in (any::<u8>(), any::<u16>(), 0u32..600_000, any::<bool>()),
        ) {
            let seen = if honest { newest.saturating_sub(behind) } else { snapshot };
            let tick = if honest { newest.saturating_add_signed(near) } else { tick };
            let seen = Seen { snapshot: Tick::new(seen), before_micros };
            let order = ShootInput { tick: Tick::new(tick), at, aim, seen }.encode();
            let packed = packed(&order, newest);
            prop_assert_eq!(unpacked(&packed, newest), Ok(order.clone()));
            let usual = honest && (-32..32).contains(&near) && behind < 64 && before_micros < 1 << 19;
            prop_assert!(packed.len() == 7 || !usual);
        }

        #[test]
        fn whatever_is_no_shot_comes_back_as_it_was(order in prop::collection::vec(any::<u8>(), 0..40), newest in any::<u32>()) {
            let again = unpacked(&packed(&order, newest), newest).unwrap();
            prop_assert!(again == order || ShootInput::decode(&again) == ShootInput::decode(&order));
        }

        #[test]
        fn any_bytes_are_read_as_something_or_as_an_error(packed in prop::collection::vec(any::<u8>(), 0..12), newest in any::<u32>()) {
            let _ = unpacked(&packed, newest);
        }
    }
}
