//! One client's place in the lab: its clock, its frames, its connection and the four ways of it.

use std::time::Duration;

use derive_where::derive_where;
use halftrack::client::{Client, ClientConfig, LifeEvent};
use halftrack::session::{ConnectionId, DisconnectReason, SessionState};
use halftrack::{Game, PlayerId, Sampling, Status, SyncLink, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_netem::{DatagramLink, LinkConfig, NetemError, Passage, StreamLink};

use crate::bot::Bot;
use crate::check::Rule;
use crate::dice::Dice;
use crate::lab::{Cut, LabConfig, LabError};
use crate::pace::{FrameClock, Frames, LocalClock, Wake};
use crate::watch::{EmitWatch, GroupWatch, InputWatch, Note, OwnWatch, RemoteWatch};

/// What a client's place is built from.
#[derive_where(Clone, Debug)]
pub struct SeatConfig<G: Game> {
    /// The client.
    pub client: ClientConfig<G>,
    /// The way to the server.
    pub up: LinkConfig,
    /// The way from the server.
    pub down: LinkConfig,
    /// Whether there are datagrams. Default: present.
    pub sync_link: SyncLink,
    /// When it draws. Default 60 Hz.
    pub frames: Frames,
    /// When else it acts. Default: only then, as a page does.
    pub wake: Wake,
    /// Parts per million that its clock runs fast, from -10,000 to 10,000. Default 0.
    pub clock_ppm: i32,
}

impl<G: Game> SeatConfig<G> {
    /// A client with the same link both ways.
    pub fn new(client: ClientConfig<G>, link: LinkConfig) -> Self {
        Self {
            client,
            up: link,
            down: link,
            sync_link: SyncLink::Present,
            frames: Frames::Hz(60),
            wake: Wake::Frame,
            clock_ppm: 0,
        }
    }
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Way {
    config: LinkConfig,
    pub(crate) datagrams: DatagramLink,
    pub(crate) stream: StreamLink,
    passage: Passage,
    /// Datagrams alone are lost.
    datagrams_cut: bool,
}

impl Way {
    fn new(config: LinkConfig, dice: &mut Dice) -> Result<Self, NetemError> {
        let datagrams = DatagramLink::new(config, dice.roll())?;
        let stream = StreamLink::new(config, dice.roll())?;
        Ok(Self { config, datagrams, stream, passage: Passage::Open, datagrams_cut: false })
    }

    /// When something arrives.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let due = [self.datagrams.poll_timeout(), self.stream.poll_timeout()];
        due.into_iter().flatten().min()
    }

    pub(crate) fn clear(&mut self) {
        self.datagrams.clear();
        self.stream.clear();
    }

    fn set_passage(&mut self, now: Timestamp, passage: Passage) {
        self.passage = passage;
        self.stream.set_blocked(now, passage);
        self.set_datagrams_cut(now, self.datagrams_cut);
    }

    fn set_datagrams_cut(&mut self, now: Timestamp, cut: bool) {
        self.datagrams_cut = cut;
        self.datagrams.set_blocked(now, if cut { Passage::Blocked } else { self.passage });
    }

    /// Another one-way delay; none for what it was built with.
    fn set_delay(&mut self, delay: Option<Duration>) -> Result<(), NetemError> {
        let config = LinkConfig { delay: delay.unwrap_or(self.config.delay), ..self.config };
        self.datagrams.set_config(config)?;
        self.stream.set_config(config)
    }

    /// Loses nothing any more. The delay is again the one it was built with.
    fn stop_loss(&mut self) -> Result<(), NetemError> {
        self.config.loss = 0.0;
        self.set_delay(None)
    }
}

/// One client's place.
pub(crate) struct Seat<G: Game> {
    pub(crate) client: FlightClient<G>,
    pub(crate) bot: Box<dyn Bot<G>>,
    pub(crate) clock: LocalClock,
    pub(crate) frames: FrameClock,
    pub(crate) wake: Wake,
    pub(crate) sync_link: SyncLink,
    pub(crate) up: Way,
    pub(crate) down: Way,
    pub(crate) connection: Option<ConnectionId>,
    /// The server has closed the connection, which whoever does nothing hears of later: its last words, and why.
    pub(crate) closed: Option<(Vec<u8>, DisconnectReason)>,
    /// Who it was when it was last let in.
    pub(crate) player: Option<PlayerId>,
    /// When a connection that is being made is there.
    pub(crate) dialling: Option<Timestamp>,
    /// Neither frames nor arrivals until then.
    pub(crate) frozen_until: Timestamp,
    pub(crate) passage: Passage,
    pub(crate) own: OwnWatch<G>,
    pub(crate) input: InputWatch<G>,
    pub(crate) remote: RemoteWatch,
    pub(crate) emit: EmitWatch<G>,
    pub(crate) group: GroupWatch<G>,
    /// Scratch memory.
    lives: Vec<LifeEvent<G>>,
    pub(crate) recovery: Option<Recovery>,
    /// Whether it has ever predicted its own body.
    pub(crate) played: bool,
    /// Since when it has been logged in without that.
    idle_since: Option<Timestamp>,
    /// How often it woke by its own timeouts in this second of its clock.
    wakes: (u64, u32),
    /// When something is to be done here.
    pub(crate) due: Timestamp,
}

/// By when everything is to be as it was before something went wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub(crate) at: Timestamp,
    /// As it was: the lead beyond the link's delay, and how far others were drawn behind, milliseconds.
    excess_ms: f64,
    behind_ms: f64,
}

impl<G: Game> Seat<G> {
    pub(crate) fn new(
        config: &SeatConfig<G>,
        bot: Box<dyn Bot<G>>,
        now: Timestamp,
        lab: &LabConfig,
        dice: &mut Dice,
    ) -> Result<Self, LabError> {
        if !(-10_000..=10_000).contains(&config.clock_ppm) {
            return Err(LabError::ClockPpm { got: config.clock_ppm });
        }
        if let Frames::Hz(got) = config.frames
            && !(1..=1_000).contains(&got)
        {
            return Err(LabError::FrameHz { got });
        }
        // Nobody's clock shows what the server's does.
        let clock =
            LocalClock { ahead: Duration::from_micros(dice.below(1_000_000_000)), ppm: config.clock_ppm };
        let local = clock.local(now);
        let mut client = FlightClient::new(Client::new(config.client.clone())?);
        client.connect(local);
        let predict = config.client.predict;
        let mut own = OwnWatch::new(predict, lab.contact_reach);
        // A reliable link has told that input is late as soon as it was.
        own.word_may_be_lost = lab.rough && config.sync_link == SyncLink::Present;
        Ok(Self {
            client,
            bot,
            clock,
            frames: FrameClock::new(config.frames, local, dice.clone()),
            wake: config.wake,
            sync_link: config.sync_link,
            up: Way::new(config.up, dice)?,
            down: Way::new(config.down, dice)?,
            connection: None,
            closed: None,
            player: None,
            dialling: None,
            frozen_until: now,
            passage: Passage::Open,
            own,
            input: InputWatch::new(predict.cadence),
            remote: RemoteWatch::new(predict.cadence, config.client.delay),
            emit: EmitWatch::new(),
            group: GroupWatch::new(predict, lab.contact_reach),
            lives: Vec::new(),
            recovery: None,
            played: false,
            idle_since: None,
            wakes: (0, 0),
            due: now,
        })
    }

    /// What the client's own clock shows.
    pub(crate) fn local(&self, now: Timestamp) -> Timestamp {
        self.clock.local(now)
    }

    /// Finds out when something is to be done here, after `now`.
    pub(crate) fn schedule(&mut self, now: Timestamp, server_stalled_until: Timestamp) {
        let woken = self.client.poll_timeout().filter(|_| self.wake == Wake::Boundary);
        let own = woken.into_iter().fold(self.frames.due(), Timestamp::min);
        let mut due = self.clock.global(own);
        if let Some(arrival) = self.down.due() {
            due = due.min(arrival);
        }
        if let Some(there) = self.dialling.filter(|_| self.passage == Passage::Open) {
            due = due.min(there);
        }
        due = due.max(self.frozen_until);
        // What arrives by a connection that is no more is for nobody.
        if let Some(arrival) = self.up.due().filter(|_| self.connection.is_some()) {
            due = due.min(arrival.max(server_stalled_until));
        }
        // What is due now has been done; a timeout that has passed is for the next microsecond.
        self.due = due.max(now + Duration::from_micros(1));
    }

    /// Far more than ticks, their repeated changes and heartbeats are at any cadence.
    pub(crate) const MAX_WAKES: u32 = 2_000;

    /// It wakes at `local`. Gives how often it has in this second.
    pub(crate) fn woken(&mut self, local: Timestamp) -> u32 {
        let second = local.as_micros() / 1_000_000;
        self.wakes = (second, if self.wakes.0 == second { self.wakes.1 + 1 } else { 1 });
        self.wakes.1
    }

    /// What the server said last, and that it closed the connection, if it did.
    pub(crate) fn hear_of_the_end(&mut self, now: Timestamp) {
        if let Some((last_words, reason)) = self.closed.take() {
            let local = self.local(now);
            self.client.handle_stream(local, &last_words);
            self.client.handle_disconnected(local, Some(reason));
        }
    }

    /// Nothing gets through any more, or everything does again.
    pub(crate) fn set_passage(&mut self, now: Timestamp, passage: Passage) {
        self.passage = passage;
        self.up.set_passage(now, passage);
        self.down.set_passage(now, passage);
    }

    /// Datagrams are lost in these directions, and in no others.
    pub(crate) fn cut_datagrams(&mut self, now: Timestamp, cut: Option<Cut>) {
        self.up.set_datagrams_cut(now, matches!(cut, Some(Cut::Up | Cut::Both)));
        self.down.set_datagrams_cut(now, matches!(cut, Some(Cut::Down | Cut::Both)));
    }

    pub(crate) fn stop_loss(&mut self) -> Result<(), NetemError> {
        self.up.stop_loss()?;
        self.down.stop_loss()
    }

    pub(crate) fn set_delay(&mut self, delay: Option<Duration>) -> Result<(), NetemError> {
        self.up.set_delay(delay)?;
        self.down.set_delay(delay)
    }

    /// How long a connection takes to be made: there and back.
    pub(crate) fn round_trip(&self) -> Duration {
        self.up.datagrams.mean_delay() + self.down.datagrams.mean_delay()
    }

    /// The mean way of the link, in microseconds: up, and down.
    pub(crate) fn ways_us(&self) -> (u64, u64) {
        let micros = |way: &Way| u64::try_from(way.datagrams.mean_delay().as_micros()).unwrap_or(u64::MAX);
        (micros(&self.up), micros(&self.down))
    }

    /// Whether nothing that the server has sent reliably can still arrive. A client that is cut hears the rest when it
    /// resumes; one that has left does not.
    pub(crate) fn has_heard_all(&self) -> bool {
        let logged_in = self.client.state() == SessionState::LoggedIn;
        logged_in && self.connection.is_some() && self.down.stream.under_way() == 0
    }

    /// Something goes wrong here until `over`: two seconds later nobody should know.
    pub(crate) fn shaken(&mut self, over: Timestamp) {
        let at = over + Duration::from_secs(2);
        match (&mut self.recovery, self.own.excess_ms.zip(self.remote.behind_ms)) {
            // Shaken again before it was over: what was usual is what was usual before.
            (Some(recovery), _) => recovery.at = recovery.at.max(at),
            (recovery, Some((excess_ms, behind_ms))) => {
                *recovery = Some(Recovery { at, excess_ms, behind_ms });
            }
            (None, None) => {}
        }
    }

    /// Whether all is as it was, if it should be by now. A player that `owns` no body has nothing to predict.
    pub(crate) fn recovered(&mut self, now: Timestamp, owns: bool, note: &mut Note<'_>) {
        let Some(before) = self.recovery.take_if(|recovery| now >= recovery.at) else { return };
        let near =
            |now: Option<f64>, before: f64| now.is_some_and(|now| (now - before).abs() <= Self::USUAL_MS);
        let predicting =
            self.client.reconciler().is_some_and(|own| own.predictor().status() == Status::Predicting);
        let (excess, behind) = (self.own.excess_ms, self.remote.behind_ms);
        let holds = self.client.state() == SessionState::LoggedIn
            && (!owns || (predicting && near(excess, before.excess_ms)))
            && near(behind, before.behind_ms)
            && !self.client.remotes().iter().any(|remote| remote.sampling == Sampling::Held);
        note.check(holds, Rule::Recovered, || {
            format!(
                "{:?}; lead {excess:?} ms, others {behind:?} ms behind; before: {before:?}",
                self.client.state()
            )
        });
    }

    /// Whether the client plays, if it has been logged in for long enough. Checked until it has played once, and failed
    /// once for each login: what stops it later is for the other rules. A player that `owns` no body has nothing to play
    /// with. On a rough network anything may take longer.
    pub(crate) fn plays(&mut self, now: Timestamp, owns: bool, rough: bool, note: &mut Note<'_>) {
        if self.played {
            return;
        }
        self.played = self.client.reconciler().is_some();
        let idle = self.client.state() == SessionState::LoggedIn && owns && !self.played;
        if !idle {
            self.idle_since = None;
            return;
        }
        let since = *self.idle_since.get_or_insert(now);
        if now.saturating_since(since) >= Self::PLAYS_WITHIN && !rough {
            self.idle_since = Some(Timestamp::from_micros(u64::MAX));
            note.check(false, Rule::Plays, || {
                format!(
                    "logged in for {:?}, and predicts nothing: {:?}",
                    Self::PLAYS_WITHIN,
                    self.client.stats()
                )
            });
        }
    }

    /// From logging in to playing takes a welcome and two snapshots. On a stream that loses the first of them four times
    /// in a row (a round trip of 470 ms: 0.7 + 1.3 + 2.7 + 5.4 s) that is ten seconds.
    pub(crate) const PLAYS_WITHIN: Duration = Duration::from_secs(10);

    /// A lead and a delay that differ by no more than this are the usual ones. Milliseconds: half a tick.
    const USUAL_MS: f64 = 25.0;

    /// A client that was let in as another player shares nothing with the session before.
    pub(crate) fn note_session(&mut self) {
        let player = self.client.player();
        if player.is_some() && player != self.player {
            self.player = player;
            self.restarted();
        }
    }

    /// The session begins anew.
    pub(crate) fn restarted(&mut self) {
        self.own.restarted();
        self.input.restarted();
        self.remote.restarted();
        self.emit.restarted();
        self.group.restarted();
    }

    /// Something arrived, or a frame was drawn: takes what the client tells of emitted bodies.
    pub(crate) fn hear_of_lives(&mut self, now: Timestamp, note: &mut Note<'_>) {
        let mut told = core::mem::take(&mut self.lives);
        told.extend(core::iter::from_fn(|| self.client.poll_life()));
        self.emit.hear(now, &self.client, told.drain(..), note);
        self.lives = told;
    }
}
