//! The other bodies in a client: what snapshots say of them, and where they are drawn.

use core::time::Duration;
use std::sync::Arc;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use super::{ClientConfig, ClientStats};
use crate::error::ConfigError;
use crate::game::Game;
use crate::id::BodyId;
use crate::interpolate::{RemoteConfig, Remotes};
use crate::reconcile::Outside;
use crate::snapshot::{Crowd, SnapshotError};
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::{BitReader, WireError};

/// The other bodies.
#[derive_where(Debug)]
pub(super) struct Others<G: Game> {
    pub(super) crowd: Crowd<G>,
    pub(super) remotes: Remotes<G>,
    /// When a full state may be asked for again.
    pub(super) next_full_request: Timestamp,
    pub(super) needs_full: bool,
    /// The full state that is on its way.
    pub(super) full: Option<FullState>,
}

impl<G: Game> Others<G> {
    /// A full state is asked for no more often than this.
    const FULL_REQUEST: Duration = Duration::from_millis(250);

    pub(super) fn new(config: &ClientConfig<G>) -> Result<Self, ConfigError> {
        let remote = RemoteConfig { delay: config.delay, correction: config.correction };
        let cadence = config.predict.cadence;
        Ok(Self {
            crowd: Crowd::new(Arc::clone(&config.rules), cadence),
            remotes: Remotes::new(Arc::clone(&config.rules), remote, cadence)?,
            next_full_request: Timestamp::ZERO,
            needs_full: false,
            full: None,
        })
    }

    /// The session begins anew.
    pub(super) fn forget(&mut self, config: &ClientConfig<G>) {
        let fresh = Self::new(config);
        debug_assert!(fresh.is_ok(), "configs have been checked");
        if let Ok(fresh) = fresh {
            *self = Self { next_full_request: self.next_full_request, ..fresh };
        }
    }

    /// Reads the section of all bodies. Gives whether it adds up.
    pub(super) fn read(
        &mut self,
        (epoch, tick): (Epoch, Tick),
        bits: &mut BitReader<'_>,
        stats: &mut ClientStats,
    ) -> bool {
        self.crowd.set_epoch(epoch);
        let counter = match self.crowd.read(tick, bits) {
            Ok(()) => {
                self.remotes.learned();
                self.needs_full = false;
                return true;
            }
            Err(SnapshotError::MissingBaseline { .. }) => &mut stats.missing_baseline,
            Err(SnapshotError::CheckFailed) => &mut stats.check_failed,
            Err(SnapshotError::Wire(
                WireError::Truncated | WireError::Trailing | WireError::Invalid { .. },
            )) => &mut stats.malformed,
            Err(SnapshotError::Stale { .. }) => &mut stats.stale,
        };
        *counter += 1;
        self.needs_full = true;
        false
    }

    /// The newest snapshot that the server may build on; `None` asks for a full state.
    pub(super) fn acknowledge(&mut self, now: Timestamp, stats: &mut ClientStats) -> Option<Tick> {
        if self.needs_full && now >= self.next_full_request {
            self.next_full_request = now + Self::FULL_REQUEST;
            stats.full_requests += 1;
            return None;
        }
        self.crowd.newest()
    }
}

impl<G: Game> Outside<G> for Others<G> {
    fn pose(&mut self, id: BodyId, time: ServerTime) -> Option<G::Pose> {
        self.remotes.pose_at(&self.crowd, id, time)
    }

    fn visible(&self, id: BodyId) -> Option<G::Pose> {
        self.remotes.visible(id)
    }

    fn render_time(&self) -> Option<ServerTime> {
        self.remotes.render_time()
    }

    fn render_time_at(&self, now: Timestamp) -> Option<ServerTime> {
        self.remotes.clock().render_time_at(now)
    }
}

/// A full state that arrives in pieces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FullState {
    pub(super) epoch: Epoch,
    pub(super) tick: Tick,
    /// Bytes in all.
    pub(super) length: usize,
    /// The ones that have come.
    pub(super) bytes: Vec<u8>,
}

impl<G: Game> Others<G> {
    /// Begins to receive the state of all bodies at the end of `tick`, so many bytes of it.
    pub(super) fn begin_full(&mut self, (epoch, tick): (Epoch, Tick), length: usize) {
        self.full = Some(FullState { epoch, tick, length, bytes: Vec::new() });
    }

    /// Takes the next piece. Returns false when none is expected.
    pub(super) fn take_piece(&mut self, piece: &[u8], stats: &mut ClientStats) -> bool {
        let Some(mut full) = self.full.take() else { return false };
        full.bytes.extend_from_slice(piece);
        if full.bytes.len() < full.length {
            self.full = Some(full);
        } else if self.crowd.newest() < Some(full.tick) {
            self.read((full.epoch, full.tick), &mut BitReader::new(&full.bytes), stats);
        }
        true
    }
}
