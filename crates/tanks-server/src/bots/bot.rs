//! One bot: a client on a real link, who plays, and what is looked at in it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use halftrack::client::{Client, ClientEvent};
use halftrack::session::SessionState;
use halftrack::{Cause, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_io::{ClientHandle, IoError, LinkStats, now};
use halftrack_lab::tank::{Brawler, Tourist};
use halftrack_lab::{Bot as Plays, Findings, FrameClock, ShotCount, Witness};
use tanks::{Arena, CombatEvent, TankInput, TankPose, Tanks};

use super::driver::Driver;
use super::error::BotsError;

/// How bots play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Play {
    /// They hunt the nearest player that has begun to play, ram, and shoot
    #[default]
    Brawl,
    /// They drive around where they came in, and never shoot
    Roam,
}

impl Play {
    pub(super) fn player(self, arena: &Arc<Arena>, seed: u64) -> Box<dyn Plays<Tanks>> {
        match self {
            Self::Brawl => Box::new(Driver::new(Brawler::new(Arc::clone(arena), seed).sparing_newcomers())),
            Self::Roam => Box::new(Driver::new(Roamer { seed, tourist: None })),
        }
    }
}

/// A tourist whose place is wherever it comes in.
struct Roamer {
    seed: u64,
    tourist: Option<(TankPose, Tourist)>,
}

impl Roamer {
    /// Metres. Nobody drives that far from its place: it came in somewhere else.
    const ELSEWHERE: f64 = 22.0;
}

impl Plays<Tanks> for Roamer {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        let tank = client.predicted()?;
        let here = TankPose { x: tank.pose().x, y: tank.pose().y, heading: tank.pose().heading };
        let near = |home: &TankPose| (home.x - here.x).hypot(home.y - here.y) < Self::ELSEWHERE;
        self.tourist.take_if(|(home, _)| !near(home));
        let (_, tourist) = self.tourist.get_or_insert_with(|| (here, Tourist::new(here, self.seed)));
        tourist.drive(now, client)
    }
}

/// What has been counted of one bot, or of many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) link: LinkStats,
    pub(super) shots: ShotCount,
    pub(super) kills: u64,
    /// Frames drawn, and frames left out because there was no time for them.
    pub(super) frames: u64,
    pub(super) missed_frames: u64,
    /// How long it was logged in.
    pub(super) present: Duration,
}

impl Count {
    pub(super) fn up_bytes(&self) -> u64 {
        self.link.stream_out.bytes + self.link.datagrams_out.bytes
    }

    pub(super) fn down_bytes(&self) -> u64 {
        self.link.stream_in.bytes + self.link.datagrams_in.bytes
    }
}

pub(super) struct Bot {
    handle: ClientHandle<Tanks>,
    player: Box<dyn Plays<Tanks>>,
    witness: Witness<Tanks>,
    frames: FrameClock,
    /// How far frames are apart at most.
    period: Duration,
    events: Vec<ClientEvent>,
    kills: u64,
    drawn: u64,
    missed: u64,
    present: Duration,
    /// The newest frame, if it was drawn while the bot was logged in.
    seen: Option<Timestamp>,
    /// When measuring began, and when it ended.
    pub(super) before: Option<Count>,
    pub(super) after: Option<Count>,
}

impl Bot {
    pub(super) fn new(
        handle: ClientHandle<Tanks>,
        player: Box<dyn Plays<Tanks>>,
        witness: Witness<Tanks>,
        (frames, period): (FrameClock, Duration),
    ) -> Self {
        Self {
            handle,
            player,
            witness,
            frames,
            period,
            events: Vec::new(),
            kills: 0,
            drawn: 0,
            missed: 0,
            present: Duration::ZERO,
            seen: None,
            before: None,
            after: None,
        }
    }

    /// When it draws next.
    pub(super) fn due(&self) -> Timestamp {
        self.frames.due()
    }

    /// Hears what happened, does what it wants, and draws.
    pub(super) fn frame(&mut self, findings: &mut Findings) {
        while let Some(event) = self.handle.poll_event() {
            self.events.push(event);
        }
        self.note_presence(now());
        let Self { handle, player, witness, frames, events, kills, .. } = self;
        handle.act(|now, client| {
            for event in events.drain(..) {
                match event {
                    ClientEvent::Game(bytes) => {
                        *kills += u64::from(is_own_kill(client, &bytes));
                        player.hear(client, &bytes);
                    }
                    ClientEvent::Restarted(_) => witness.restarted(),
                    _ => {}
                }
            }
            if let Some(input) = player.drive(now, client) {
                client.set_input(now, input);
                witness.wishes(now, client, input);
            }
            client.frame(now);
            frames.drawn(now);
            witness.frame(now, client, findings);
        });
    }

    /// Frames and time count while it is logged in: of a bot that has ended, nothing says anything about the server.
    fn note_presence(&mut self, now: Timestamp) {
        if self.state() != SessionState::LoggedIn {
            self.seen = None;
            return;
        }
        let late = now.saturating_since(self.frames.due());
        self.drawn += 1;
        self.missed += u64::try_from(late.as_micros() / self.period.as_micros().max(1)).unwrap_or(0);
        if let Some(before) = self.seen.replace(now) {
            self.present += now.saturating_since(before);
        }
    }

    pub(super) fn count(&self) -> Count {
        let shots = self.player.combat().unwrap_or_default();
        Count {
            link: self.handle.stats(),
            shots,
            kills: self.kills,
            frames: self.drawn,
            missed_frames: self.missed,
            present: self.present,
        }
    }

    pub(super) fn state(&self) -> SessionState {
        self.handle.state()
    }

    /// Why it is not in, as far as is known.
    pub(super) fn problem(&self) -> Option<Arc<IoError>> {
        self.handle.problem()
    }

    /// Whether it will not come back. A client that cannot trust its server leaves by itself.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state(), SessionState::Failed(_) | SessionState::TimedOut | SessionState::LoggedOut)
    }

    /// Adds the corrections that there have been to `by_cause`, in the order of [`Cause::ALL`]; gives the ticks whose input
    /// was late.
    pub(super) fn add_corrections(&self, by_cause: &mut [u64; Cause::ALL.len()]) -> u64 {
        self.handle.read(|client| {
            let corrections = client.corrections();
            for (sum, (_, count)) in by_cause.iter_mut().zip(corrections.by_cause()) {
                *sum += count;
            }
            client.stats().late
        })
    }

    /// Writes down what it was told, if it was corrected for something that nobody but the network or the rules can have done.
    pub(super) fn write_flight(&self, folder: &Path) -> Result<(), BotsError> {
        let outside = [Cause::Resync, Cause::LostInput, Cause::LateInput, Cause::Unexplained];
        let report = self.handle.act(|_, client| {
            let stats = client.corrections();
            let counts = outside.map(|cause| (cause, stats.of(cause)));
            let counts = counts.iter().filter(|(_, count)| *count > 0);
            let note = counts.map(|(cause, count)| format!("{count} {cause}")).collect::<Vec<_>>().join(", ");
            let name = client.player().and_then(|player| client.name(player))?.to_string();
            let report = client.flight_report(&note).filter(|_| !note.is_empty())?;
            Some((name, report))
        });
        let Some((name, report)) = report else { return Ok(()) };
        let name: String = name.chars().map(|each| if each.is_alphanumeric() { each } else { '-' }).collect();
        let path = folder.join(format!("{name}.flight"));
        std::fs::write(&path, report).map_err(|source| BotsError::File { path, source })
    }

    pub(super) fn leave(&self) {
        self.handle.logout();
    }
}

fn is_own_kill(client: &Client<Tanks>, event: &[u8]) -> bool {
    let death = CombatEvent::decode(event);
    matches!(death, Ok(CombatEvent::Death { by, .. }) if by.player().is_some() && by.player() == client.player())
}
