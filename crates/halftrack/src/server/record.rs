//! What a server writes down, and how another one goes on from it.

use crate::error::ConfigError;
use crate::game::Game;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::record::{Difference, Entry, Header, Recorder, Recording, RecordingRefused, work_limit};
use crate::server::player::Player;
use crate::server::{Server, ServerConfig, Shown, World, player_in};
use crate::shared::shared_hash;
use crate::snapshot::BodyCode;
use crate::time::Timestamp;
use crate::wire::control::{Login, Report};

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
    /// What it makes of the recording is not what was recorded.
    #[error("tick {} comes out otherwise than it was recorded: go on with the version that recorded it", .0.tick.number())]
    Differs(Difference),
    /// It ended as it should: nobody waits for it.
    #[error("the recorded match is over")]
    Over,
}

/// The world of a match that is recorded cannot be changed by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the match is recorded, and a change by hand would not be in it: give a command, or stop recording first"
)]
pub struct WorldIsRecorded;

/// What a server that records keeps for that.
#[derive(Clone, Debug)]
pub(super) struct Writing<G: BodyCode> {
    recorder: Recorder<G>,
    /// Slips that have been written.
    slips: u64,
    /// Something follows from what was written since that is about to be sent.
    urgent: bool,
    /// Whose orders were written since.
    ordered: Vec<PlayerId>,
}

impl<G: BodyCode> Writing<G> {
    /// What the client of `player` has reported since the last time, as one entry. Reports come at the client's own
    /// pace; the recording takes one a second.
    fn write_report(&mut self, player: &mut Player<G>) {
        let report = core::mem::take(&mut player.report);
        if report != Report::default() {
            self.recorder.write(&Entry::reported(player.id, &report));
        }
    }
}

/// How a server comes to be that goes on from a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The run of the machine: see [`Header::run`].
    pub run: [u8; 16],
    /// Whether something that players were told after the recording's end is lost. They are told that they begin anew,
    /// and keep their bodies as they were then.
    pub rewound: bool,
}

impl<W: World> Server<W> {
    /// Reliable messages of a player after which it is written how many have arrived.
    const DELIVERED_EVERY: u64 = 256;

    /// Writes down the whole match from here on: nobody has come yet. Take what [`Self::poll_record`] gives before
    /// anything else is taken. While it records, the host changes the world by [`Self::command`] alone. Gives whether it
    /// does: with players in the room it is too late.
    pub fn record(&mut self, run: [u8; 16], about: Vec<u8>) -> bool {
        let begins = self.writing.is_none() && self.table.is_empty();
        if begins {
            let header = Header {
                shared: shared_hash::<W::Game>(self.config.cadence, self.stage.world.alone()),
                cadence_micros: self.config.cadence.micros(),
                first_tick: self.tick().number(),
                run,
                about,
            };
            // Nothing is written until somebody comes.
            let (recorder, slips) = (Recorder::new(&header), self.clock.slips());
            self.writing = Some(Writing { recorder, slips, urgent: false, ordered: vec![] });
        }
        begins
    }

    /// Appends to `into` what is to be written before anything else of this server is sent: what a client was told is
    /// then never lost with the process. Gives whether there was anything.
    pub fn poll_record(&mut self, into: &mut Vec<u8>) -> bool {
        let Some(writing) = &mut self.writing else { return false };
        // An order alone waits for its tick: nobody hears of it before.
        let urgent = core::mem::take(&mut writing.urgent);
        if urgent {
            writing.ordered.clear();
        }
        urgent && writing.recorder.take(into)
    }

    /// Stops writing: what was written cannot be gone on with.
    pub fn stop_recording(&mut self) {
        self.writing = None;
    }

    /// A server that goes on where `recording` ends, at `now`, and writes on. Time does not pass in between, but a new
    /// epoch begins; every player is away, and may come back within the grace. `world` is as it was when the recording
    /// began. Gives the recording too, read to its end: the host cuts off what is not whole before it writes on.
    ///
    /// # Errors
    /// Why not. Nothing was started.
    pub fn recover(
        mut config: ServerConfig,
        world: W,
        now: Timestamp,
        mut recording: Recording<W::Game>,
        recovery: Recovery,
    ) -> Result<(Self, Recording<W::Game>), RecoverRefused> {
        if shared_hash::<W::Game>(config.cadence, world.alone()) != recording.header().shared {
            return Err(RecordingRefused::Rules.into());
        }
        config.first_tick = recording.tick();
        let mut server = Self::new(config, world, now)?;
        // An epoch for every time that this server's time was not that of the one before.
        let mut epochs = 0;
        while let Some(entry) = recording.next() {
            let limit = work_limit(recording.whole());
            server.stage.limit_work(limit);
            match entry {
                Entry::Commanded { bytes } if server.stage.command(&bytes).is_err() => {
                    let tick = server.tick();
                    return Err(RecoverRefused::Differs(Difference { tick, player: None }));
                }
                Entry::Tick => server.tick_again(&recording)?,
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
        server.table.all_away(now, recovery.rewound);
        // Their input is awaited from here on, not from when they came.
        let players = server.players.iter().filter_map(|player| server.fresh_player(player.id));
        server.players = players.collect();
        let entry = Entry::Recovered { rewound: recovery.rewound, run: recovery.run };
        let mut recorder = recording.go_on();
        recorder.write(&entry);
        server.writing =
            Some(Writing { recorder, slips: server.clock.slips(), urgent: true, ordered: vec![] });
        Ok((server, recording))
    }

    fn tick_again(&mut self, recording: &Recording<W::Game>) -> Result<(), RecoverRefused> {
        let mut told = recording.told().iter();
        let tick = recording.tick();
        self.stage.advance(|player| {
            let found = told.find(|(there, ..)| *there == player);
            found.map_or(TickInput::steady(W::Game::neutral()), |(_, input, _)| *input)
        });
        if let Some(player) = recording.differs_from(self.stage.digests()) {
            return Err(RecoverRefused::Differs(Difference { tick, player: Some(player) }));
        }
        self.tell_events();
        Ok(())
    }

    fn hear_again(&mut self, now: Timestamp, entry: &Entry) {
        if let Entry::Ordered { player, .. }
        | Entry::OrderedUnseen { player, .. }
        | Entry::Restarted { player }
        | Entry::Reported { player, .. }
        | Entry::Delivered { player, .. } = entry
        {
            self.table.confirm(*player);
        }
        match entry {
            Entry::Joined { player, name, token, claims } => {
                self.table.restore(now, *player, name.clone(), *token);
                let login = Login::recorded(self.table.shared(), name.clone(), claims.clone());
                self.begin(*player, &login);
            }
            Entry::Left { player } => self.remove_player(*player),
            Entry::Ordered { player, bytes } | Entry::OrderedUnseen { player, bytes } => {
                if let Some(session) = self.table.get_mut(*player) {
                    session.log().receive();
                }
                let shown = Shown::recorded(matches!(entry, Entry::Ordered { .. }));
                // One that is none changes nothing, now as then.
                let _ = self.stage.order(*player, bytes, shown);
            }
            Entry::Restarted { player } => {
                self.table.restart(*player);
                self.stage.restarted(*player);
                self.tell_who_is_there(*player);
            }
            Entry::Delivered { player, received } => {
                if let Some(session) = self.table.get_mut(*player) {
                    session.log().deliver(*received);
                }
            }
            _ => {}
        }
    }

    pub(super) fn write_entry(&mut self, entry: impl FnOnce() -> Entry) {
        if let Some(writing) = &mut self.writing {
            let entry = entry();
            match &entry {
                Entry::Ordered { player, .. } | Entry::OrderedUnseen { player, .. } => {
                    writing.ordered.push(*player);
                }
                Entry::Delivered { .. } => {}
                // A command shows in the next tick at the earliest, and is written with it. Without players no tick is.
                Entry::Commanded { .. } => writing.urgent |= self.table.is_empty(),
                _ => writing.urgent = true,
            }
            writing.recorder.write(&entry);
        }
    }

    /// Whether another command fits into the frame that is written next.
    pub(super) fn has_room_for_command(&self) -> bool {
        self.writing.as_ref().is_none_or(|writing| writing.recorder.has_room_for(Self::MAX_COMMAND_BYTES))
    }

    /// The match is over: if nobody ever came, there was none.
    pub(super) fn write_end(&mut self) {
        if self.writing.as_ref().is_some_and(|writing| writing.recorder.is_blank()) {
            self.writing = None;
        }
        self.write_entry(|| Entry::Ended);
    }

    /// A player is about to be told how many of its orders have come.
    pub(super) fn write_orders_of(&mut self, player: PlayerId) {
        if let Some(writing) = &mut self.writing {
            writing.urgent |= writing.ordered.contains(&player);
        }
    }

    /// The newest tick, and every second a hash of everything.
    pub(super) fn write_tick(&mut self) {
        let Some(writing) = &mut self.writing else { return };
        if self.table.is_empty() {
            writing.recorder.tick_of_nobody();
            return;
        }
        writing.urgent = true;
        writing.recorder.tick(self.stage.bodies.told());
        let second = self.config.cadence.ticks_in(core::time::Duration::from_secs(1)).max(1);
        if self.stage.tick().number().is_multiple_of(second) {
            writing.recorder.write(&Entry::Check { digest: self.stage.digest() });
            for player in &mut self.players {
                writing.write_report(player);
            }
        }
    }

    /// The last report of a player that leaves.
    pub(super) fn write_report_of(&mut self, player: PlayerId) {
        let Some(writing) = &mut self.writing else { return };
        if let Some(player) = player_in(&mut self.players, player) {
            writing.write_report(player);
        }
    }

    /// Time slipped, if it did.
    pub(super) fn write_slips(&mut self) {
        let slips = self.clock.slips();
        if let Some(writing) = &mut self.writing {
            while writing.slips < slips {
                writing.slips += 1;
                writing.recorder.write(&Entry::Slipped);
            }
        }
    }

    /// A player is known to have so many reliable messages; the `first` of a log that it has not heard of before counts.
    pub(super) fn write_delivered(&mut self, player: PlayerId, before: u64, received: u64, first: bool) {
        if first || received / Self::DELIVERED_EVERY > before / Self::DELIVERED_EVERY {
            self.write_entry(|| Entry::Delivered { player, received });
        }
    }
}
