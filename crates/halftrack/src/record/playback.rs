//! A recording played back: the same world, told the same.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::id::{PlayerId, PlayerName};
use crate::input::TickInput;
use crate::record::entry::{Entry, work_limit};
use crate::record::reader::{Recording, RecordingRefused};
use crate::shared::shared_hash;
use crate::snapshot::BodyKey;
use crate::tick::Tick;
use crate::wire::control::Login;
use crate::world::{Shown, Stage, World};

/// Where a playback was not what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The first tick of which that is known.
    pub tick: Tick,
    /// The player whose bodies differ. `None` when a body that no player owns differs, or the world behind the bodies.
    pub player: Option<PlayerId>,
}

/// A match that happens again. A clone goes on from the same tick: whoever wants to go back keeps one.
///
/// See [`crate::server::Server::record`] for how one is made.
#[derive(Clone, Debug)]
pub struct Playback<W: World> {
    recording: Recording<W::Game>,
    stage: Stage<W>,
    names: BTreeMap<PlayerId, PlayerName>,
    /// Left in the entry that was played last: its name is there until the next one.
    left: Option<PlayerId>,
    differs: Option<Difference>,
    /// Work is bounded by the size of the recording.
    bounded: bool,
    refused: Option<RecordingRefused>,
}

impl<W: World> Playback<W> {
    /// A body that differs shows within this time, but for one case in a million: ten ticks of 50 ms, two bits each.
    const SOON: Duration = Duration::from_millis(500);

    /// `recording` in a world that is as the recorded one was when it began.
    ///
    /// # Errors
    /// When it is of other rules.
    pub fn new(recording: Recording<W::Game>, world: W) -> Result<Self, RecordingRefused> {
        if shared_hash(&**world.rules(), recording.cadence()) != recording.header().shared {
            return Err(RecordingRefused::Rules);
        }
        let header = recording.header();
        let (key, limits) = (BodyKey::new(header.body_key), header.limits());
        let stage = Stage::new(recording.cadence(), world, recording.tick(), key, limits);
        Ok(Self {
            recording,
            stage,
            names: BTreeMap::new(),
            left: None,
            differs: None,
            bounded: true,
            refused: None,
        })
    }

    /// Plays on, however much work the recording asks for.
    #[must_use]
    pub fn unbounded(mut self) -> Self {
        self.bounded = false;
        self
    }

    /// Plays the next entry, and gives it. `None` at the end, where the recording is damaged, and where it is refused: see
    /// [`Self::refused`]. After [`Entry::Tick`] and [`Entry::Left`], [`Stage::events`] has the events of it.
    #[allow(clippy::should_implement_trait, reason = "after an entry, it has more to tell than an item")]
    pub fn next(&mut self) -> Option<Entry> {
        if let Some(left) = self.left.take() {
            self.names.remove(&left);
        }
        if self.refused.is_some() {
            return None;
        }
        let entry = self.recording.next()?;
        let limit = if self.bounded { work_limit(self.recording.whole()) } else { u64::MAX };
        self.stage.limit_work(limit);
        match &entry {
            Entry::Tick => self.tick(),
            Entry::Passed { ticks } => self.stage.pass(*ticks),
            Entry::Joined { player, name, claims, .. } => {
                let shared = self.recording.header().shared;
                self.stage.join(*player, &Login::recorded(shared, name.clone(), claims.clone()));
                self.names.insert(*player, name.clone());
            }
            Entry::Left { player } => {
                self.stage.leave(*player);
                self.left = Some(*player);
            }
            Entry::Restarted { player } => self.stage.restarted(*player),
            // The world obeyed it when it was recorded.
            Entry::Commanded { bytes } if self.stage.command(bytes).is_err() => self.differ(None),
            // Malformed orders had no effect when recorded; they have none again.
            Entry::Ordered { player, bytes } => {
                let _ = self.stage.order(*player, bytes, Shown::recorded(true));
            }
            Entry::OrderedUnseen { player, bytes } => {
                let _ = self.stage.order(*player, bytes, Shown::recorded(false));
            }
            Entry::Check { digest } if self.stage.digest() != *digest => self.differ(None),
            _ => {}
        }
        if self.stage.work() > limit {
            self.refused = Some(RecordingRefused::Work { tick: self.stage.tick() });
            return None;
        }
        Some(entry)
    }

    fn tick(&mut self) {
        let mut told = self.recording.told().iter();
        self.stage.advance(|player| {
            let found = told.find(|(there, ..)| *there == player);
            found.map_or_else(TickInput::default, |(_, input, _)| *input)
        });
        if let Some(differs) = self.recording.differs_from(&self.stage) {
            self.differ(differs.player());
        }
    }

    fn differ(&mut self, player: Option<PlayerId>) {
        // spec: RECORD-02
        let tick = self.stage.tick();
        let first = self.differs.get_or_insert(Difference { tick, player });
        // Two bits of a body can be alike by chance where the whole hash differs: the ticks after it show whose body it is.
        if self.stage.cadence().span_of(tick.since(first.tick)) < Self::SOON {
            first.player = first.player.or(player);
        }
    }

    /// The match as it stands.
    pub fn stage(&self) -> &Stage<W> {
        &self.stage
    }

    /// What is read.
    pub fn recording(&self) -> &Recording<W::Game> {
        &self.recording
    }

    /// The name of a player who is there, or who left in the entry that was played last.
    pub fn name(&self, player: PlayerId) -> Option<&PlayerName> {
        self.names.get(&player)
    }

    /// Why nothing more of it is played, though more is there.
    pub fn refused(&self) -> Option<RecordingRefused> {
        self.refused
    }

    /// Where it first was not what was recorded.
    pub fn differs(&self) -> Option<Difference> {
        self.differs
    }
}
