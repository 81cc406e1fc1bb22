//! Recovery: a server that goes on from the recording of one that crashed.

use crate::error::ConfigError;
use crate::input::TickInput;
use crate::record::{Difference, Entry, Recording, RecordingRefused, work_limit};
use crate::server::record::MatchRecorder;
use crate::server::{Server, ServerConfig, Shown, World};
use crate::session::DisconnectReason;
use crate::shared::shared_hash;
use crate::time::Timestamp;
use crate::wire::control::Login;

/// Why a server cannot go on from a recording.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverRefused {
    /// The server's config.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The recording.
    #[error(transparent)]
    Recording(#[from] RecordingRefused),
    /// A tick does not come out as it was recorded.
    #[error("tick {} comes out otherwise than it was recorded: go on with the version that recorded it", .0.tick.number())]
    Differs(Difference),
    /// The match ended in order: there is nothing to recover.
    #[error("the recorded match is over")]
    Over,
}

/// The circumstances of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The run of the machine: see [`crate::record::Header::run`].
    pub run: [u8; 16],
    /// Whether messages that were sent after the end of the recording are lost. Clients then restart, with the bodies of
    /// the recording's end.
    pub rewound: bool,
}

impl<W: World> Server<W> {
    /// A server that goes on where `recording` ends, at `now`, and records on. No time passes in between, but a new epoch
    /// begins; every player is away, and may resume within the grace. Give it `world` as it was when the recording
    /// began. Returns the recording too, read to its end: cut off an incomplete last frame before you write on.
    ///
    /// # Errors
    /// When the config or the recording does not allow it. Nothing was started.
    pub fn recover(
        mut config: ServerConfig,
        world: W,
        now: Timestamp,
        mut recording: Recording<W::Game>,
        recovery: Recovery,
    ) -> Result<(Self, Recording<W::Game>), RecoverRefused> {
        if shared_hash(&**world.rules(), config.cadence) != recording.header().shared {
            return Err(RecordingRefused::Rules.into());
        }
        config.first_tick = recording.tick();
        config.body_key = recording.header().body_key;
        let mut server = Self::new(config, world, now)?;
        server.stage.bodies.set_limits(recording.header().limits());
        // One epoch for each slip and each recovery.
        let mut epochs = 0;
        while let Some(entry) = recording.next() {
            let limit = work_limit(recording.whole());
            server.stage.limit_work(limit);
            match entry {
                Entry::Commanded { bytes } if server.stage.command(&bytes).is_err() => {
                    let tick = server.tick();
                    return Err(RecoverRefused::Differs(Difference { tick, player: None }));
                }
                Entry::Tick => server.tick_again(now, &recording)?,
                Entry::Passed { ticks } => server.stage.pass(ticks),
                Entry::Slipped | Entry::Recovered { .. } => epochs += 1,
                Entry::Check { digest } if server.stage.digest() != digest => {
                    let tick = server.tick();
                    return Err(RecoverRefused::Differs(Difference { tick, player: None }));
                }
                Entry::Ended => return Err(RecoverRefused::Over),
                entry => server.hear_again(now, &entry),
            }
            if server.stage.work() > limit {
                return Err(RecordingRefused::Work { tick: server.tick() }.into());
            }
        }
        server.stage.limit_work(u64::MAX);
        server.clock.go_on(now, server.stage.tick(), epochs + 1);
        server.sessions.all_away(now, recovery.rewound);
        // Input is expected from here on, not from the tick that each player joined in.
        let fresh: Vec<_> =
            server.players.iter().filter_map(|player| server.fresh_player(player.id)).collect();
        server.players.iter_mut().zip(fresh).for_each(|(player, fresh)| *player = fresh);
        // A counter that fell back to zero would look like more presses.
        for (player, input, _) in server.stage.told() {
            if let Some(player) = server.players.get_mut(player) {
                player.queue.go_on(input.last());
            }
        }
        server.recorder = MatchRecorder::recovered(recording.go_on(), recovery);
        Ok((server, recording))
    }

    fn tick_again(&mut self, now: Timestamp, recording: &Recording<W::Game>) -> Result<(), RecoverRefused> {
        let mut told = recording.told().iter();
        let tick = recording.tick();
        self.stage.advance(|player| {
            let found = told.find(|(there, ..)| *there == player);
            found.map_or_else(TickInput::default, |(_, input, _)| *input)
        });
        if let Some(differs) = recording.differs_from(&self.stage) {
            return Err(RecoverRefused::Differs(Difference { tick, player: differs.player() }));
        }
        self.tell_events(now);
        Ok(())
    }

    fn hear_again(&mut self, now: Timestamp, entry: &Entry) {
        if let Entry::Ordered { player, .. }
        | Entry::OrderedUnseen { player, .. }
        | Entry::Restarted { player }
        | Entry::Reported { player, .. }
        | Entry::Delivered { player, .. } = entry
        {
            self.sessions.confirm(*player);
        }
        match entry {
            Entry::Joined { player, name, token, claims } => {
                self.sessions.restore(now, *player, name.clone(), *token);
                let login = Login::recorded(self.sessions.shared(), name.clone(), claims.clone());
                self.join_again(now, *player, &login);
            }
            Entry::Left { player } => self.sessions.remove(*player, DisconnectReason::LoggedOut),
            Entry::Ordered { player, bytes } | Entry::OrderedUnseen { player, bytes } => {
                self.sessions.count_order(*player);
                let shown = Shown::recorded(matches!(entry, Entry::Ordered { .. }));
                // Malformed orders had no effect when recorded; ignore them again.
                let _ = self.stage.order(*player, bytes, shown);
            }
            Entry::Restarted { player } => {
                self.sessions.restart(*player);
                self.stage.restarted(*player);
                self.send_roster(now, *player);
            }
            Entry::Delivered { player, received } => self.sessions.deliver(*player, *received),
            _ => {}
        }
        self.route_all(now);
    }
}
