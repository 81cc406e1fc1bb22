//! The server's recorder: subscribes to a match, and writes the part of it that a playback or a recovery needs.

use core::time::Duration;
use std::collections::BTreeMap;

use derive_where::derive_where;

use crate::game::Game;
use crate::id::{PlayerId, Token};
use crate::record::{Entry, Header, Recorder};
use crate::server::{Recovery, Stage, World};
use crate::wire::control::{Login, Report};

/// The world of a match that is recorded cannot be changed by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the match is recorded, and a change by hand would not be in it: give a command, or stop recording first"
)]
pub struct WorldIsRecorded;

/// Something that happened in a match. The server notes it before it sends anything that follows from it.
pub(super) enum Happened<'a, W: World> {
    /// A player joined with the login that the world was given.
    Joined { player: PlayerId, token: Token, login: &'a Login },
    /// A player came back, and its reliable messages are numbered anew.
    Restarted { player: PlayerId },
    /// A player came back, and is about to receive the number of its orders that arrived. `confirms` when it is the
    /// first sign that its client has the token.
    Resumed { player: PlayerId, confirms: bool },
    /// The first message of a session arrived.
    Confirmed { player: PlayerId },
    /// A client acknowledged reliable messages, and is about to receive the number of its orders that arrived.
    Acknowledged { player: PlayerId, received: u64, received_before: u64, first: bool },
    /// A player left for good.
    Left { player: PlayerId },
    /// A player's order arrived; empty if it was malformed. `seen` is false when it claims a snapshot that was never sent.
    Ordered { player: PlayerId, bytes: &'a [u8], seen: bool },
    /// A client reported its corrections.
    Reported { player: PlayerId, report: &'a Report },
    /// The world obeyed a command of the host.
    Commanded { bytes: &'a [u8] },
    /// The server's time slipped.
    Slipped,
    /// A tick was simulated.
    Ticked { stage: &'a Stage<W> },
    /// The match is over.
    Ended,
}

/// Records a match, if the host wants it.
#[derive_where(Clone, Debug)]
pub(super) struct MatchRecorder<G: Game>(Option<Writing<G>>);

#[derive_where(Clone, Debug)]
struct Writing<G: Game> {
    recorder: Recorder<G>,
    /// Something was written that clients are about to hear of.
    urgent: bool,
    /// Players whose orders were written since the last frame.
    ordered: Vec<PlayerId>,
    /// Sums of the reports that are not written yet. Clients report at their own pace; the recording takes one a second.
    reports: BTreeMap<PlayerId, Report>,
}

impl<G: Game> MatchRecorder<G> {
    /// Acknowledged messages of a player between two entries about them.
    const DELIVERED_EVERY: u64 = 256;

    pub(super) fn off() -> Self {
        Self(None)
    }

    /// A recording that begins. Its header is written with the first player that joins.
    pub(super) fn new(header: &Header) -> Self {
        Self(Some(Writing::new(Recorder::new(header))))
    }

    /// A recording that goes on after a crash.
    pub(super) fn recovered(recorder: Recorder<G>, recovery: Recovery) -> Self {
        let mut writing = Writing::new(recorder);
        writing.write_now(&Entry::Recovered { rewound: recovery.rewound, run: recovery.run });
        Self(Some(writing))
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether so many more bytes fit into the next frame.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.0.as_ref().is_none_or(|writing| writing.recorder.has_room_for(bytes))
    }

    /// See [`super::Server::poll_record`].
    pub(super) fn poll(&mut self, into: &mut Vec<u8>) -> bool {
        let Some(writing) = &mut self.0 else { return false };
        // An order alone waits for its tick: no client hears of it before.
        let urgent = core::mem::take(&mut writing.urgent);
        if urgent {
            writing.ordered.clear();
        }
        urgent && writing.recorder.take(into)
    }

    /// Writes down something that happened.
    pub(super) fn note<W: World<Game = G>>(&mut self, happened: &Happened<'_, W>) {
        let Some(writing) = &mut self.0 else { return };
        match *happened {
            Happened::Joined { player, token, login } => {
                let (name, claims) = (login.name.clone(), login.credentials.clone());
                writing.write_now(&Entry::Joined { player, name, token, claims });
            }
            Happened::Restarted { player } => writing.write_now(&Entry::Restarted { player }),
            Happened::Resumed { player, confirms } => {
                if confirms {
                    writing.write(&Entry::Delivered { player, received: 0 });
                }
                writing.count_orders(player);
            }
            Happened::Confirmed { player } => writing.write(&Entry::Delivered { player, received: 0 }),
            Happened::Acknowledged { player, received, received_before, first } => {
                let blocks = |messages: u64| messages / Self::DELIVERED_EVERY;
                if first || blocks(received) > blocks(received_before) {
                    writing.write(&Entry::Delivered { player, received });
                }
                writing.count_orders(player);
            }
            Happened::Left { player } => {
                writing.write_report(player);
                writing.reports.remove(&player);
                writing.write_now(&Entry::Left { player });
            }
            Happened::Ordered { player, bytes, seen } => {
                writing.ordered.push(player);
                let bytes = bytes.to_vec();
                writing.write(&if seen {
                    Entry::Ordered { player, bytes }
                } else {
                    Entry::OrderedUnseen { player, bytes }
                });
            }
            Happened::Reported { player, report } => writing.reports.entry(player).or_default().add(report),
            Happened::Commanded { bytes } => {
                // A command shows in the next tick at the earliest, and is written with it. An empty room writes no ticks.
                writing.urgent |= writing.recorder.is_empty();
                writing.write(&Entry::Commanded { bytes: bytes.to_vec() });
            }
            Happened::Slipped => writing.write(&Entry::Slipped),
            Happened::Ticked { stage } => writing.tick(stage),
            // Without a single player there was no match.
            Happened::Ended if writing.recorder.is_blank() => self.0 = None,
            Happened::Ended => writing.write_now(&Entry::Ended),
        }
    }
}

impl<G: Game> Writing<G> {
    fn new(recorder: Recorder<G>) -> Self {
        Self { recorder, urgent: false, ordered: Vec::new(), reports: BTreeMap::new() }
    }

    fn write(&mut self, entry: &Entry) {
        self.recorder.write(entry);
    }

    /// Writes an entry that clients are about to hear of.
    fn write_now(&mut self, entry: &Entry) {
        self.urgent = true;
        self.write(entry);
    }

    /// A client is about to receive the number of its orders: those must be in the recording.
    fn count_orders(&mut self, player: PlayerId) {
        self.urgent |= self.ordered.contains(&player);
    }

    /// The newest tick, and every second a hash of everything.
    fn tick<W: World<Game = G>>(&mut self, stage: &Stage<W>) {
        if self.recorder.is_empty() {
            self.recorder.tick_of_nobody();
            return;
        }
        self.urgent = true;
        self.recorder.tick(stage.told(), stage.digest_of_others());
        let second = stage.cadence().ticks_in(Duration::from_secs(1)).max(1);
        if stage.tick().number().is_multiple_of(second) {
            self.write(&Entry::Check { digest: stage.digest() });
            let players: Vec<_> = self.reports.keys().copied().collect();
            players.into_iter().for_each(|player| self.write_report(player));
        }
    }

    /// The reports of a player since its last entry, as one.
    fn write_report(&mut self, player: PlayerId) {
        let report = self.reports.get_mut(&player).map(core::mem::take).unwrap_or_default();
        if report != Report::default() {
            self.write(&Entry::reported(player, &report));
        }
    }
}
