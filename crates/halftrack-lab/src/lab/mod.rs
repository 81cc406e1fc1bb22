//! A server, its clients and the network between them, in one place and in virtual time.
//!
//! ```text
//!   Bot ─► Client ══ netem up ═══► Server<Recorded<World>> ─► Truth
//!            │  ▲                      │                        │
//!            │  └═══ netem down ═══════┘                        │
//!            └─► watch: own, input, remote ◄────────────────────┘─► Tally, Checks
//! ```
//!
//! Nothing of the netcode is replaced: bytes come out of the real polls and go into the real handlers. Time jumps from
//! one happening to the next, so whatever is due is done at its microsecond.

mod carry;
mod happen;

use std::collections::BTreeMap;
use std::time::Duration;

use halftrack::client::Client;
use halftrack::server::{CommandRefused, Server, ServerConfig, World};
use halftrack::{ConfigError, InputStats, PlayerId, Timestamp};
use halftrack_netem::NetemError;

use carry::Spoken;
pub use happen::{Cut, Happening};

use crate::bot::{Bot, ShotCount};
use crate::check::{Checks, Rule};
use crate::dice::Dice;
use crate::result::{Emit, Invariants, Measured};
use crate::samples::Samples;
use crate::seat::{Seat, SeatConfig};
use crate::tally::Tally;
use crate::trace::Trace;
use crate::truth::Recorded;
use crate::watch::EmitWatch;

/// What a [`Lab`] is built from.
#[derive(Clone, Copy, Debug)]
pub struct LabConfig {
    /// The server.
    pub server: ServerConfig,
    /// What all dice start from: the same seed, the same run.
    pub seed: u64,
    /// Numbers count from so long after the start. Default 3 s: whoever comes in takes a moment to know the network.
    pub warm_up: Duration,
    /// Two bodies further apart than this, in metres, cannot have touched on either side, old as what a client knows of
    /// others is: a correction that says so is then a false one. Default: any two can.
    pub contact_reach: f64,
    /// Whether the network may be bad beyond what a client can know. By datagrams, input that was late may then be put
    /// down as lost: the word that it came does not always arrive. Default no.
    pub rough: bool,
    /// How long [`Lab::drain`] waits at most. Default 10 s.
    pub drain: Duration,
}

impl LabConfig {
    /// The defaults, for a server and a seed.
    pub fn new(server: ServerConfig, seed: u64) -> Self {
        Self {
            server,
            seed,
            warm_up: Duration::from_secs(3),
            contact_reach: f64::INFINITY,
            rough: false,
            drain: Duration::from_secs(10),
        }
    }
}

/// What cannot be put into a lab.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The server or a client.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A link.
    #[error(transparent)]
    Link(#[from] NetemError),
    /// A clock that is no clock.
    #[error("clock_ppm is {got}; choose one from -10000 to 10000")]
    ClockPpm {
        /// Parts per million.
        got: i32,
    },
    /// A display that is none.
    #[error("frame_hz is {got}; choose one from 1 to 1000, or irregular frames")]
    FrameHz {
        /// Frames per second.
        got: u32,
    },
}

/// A server, its clients, and the network between them.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use halftrack::cart::{Cart, Rails};
/// use halftrack::client::ClientConfig;
/// use halftrack::server::ServerConfig;
/// use halftrack::{Cadence, PlayerName, Timestamp};
/// use halftrack_flight::FlightClient;
/// use halftrack_lab::{Lab, LabConfig, SeatConfig};
/// use halftrack_netem::LinkConfig;
///
/// let wifi = LinkConfig {
///     delay: Duration::from_millis(15),
///     jitter: Duration::from_millis(12),
///     loss: 0.01,
///     burst: 2.0,
///     ..LinkConfig::default()
/// };
/// let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), 7), Rails::default())?;
/// for name in ["Ada", "Bob"] {
///     let client = ClientConfig::new(PlayerName::new(name)?, Cadence::default(), Arc::new(Cart));
///     // Back and forth, without looking where it goes.
///     let bot = |now: Timestamp, _: &mut FlightClient<Cart>| Some([4, -4][now.as_micros() as usize / 730_000 % 2]);
///     lab.join(SeatConfig::new(client, wifi), Box::new(bot))?;
/// }
/// lab.run(Duration::from_secs(20));
/// lab.drain();
/// let measured = lab.measured();
/// assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
/// assert!(measured.own.mispredict_ratio < 0.02, "{:?}", measured.own);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lab<W: World> {
    config: LabConfig,
    start: Timestamp,
    now: Timestamp,
    server: Server<Recorded<W>>,
    /// The server does nothing until then.
    stalled_until: Timestamp,
    seats: Vec<Seat<W::Game>>,
    /// By when, and in the order in which they were scheduled.
    happenings: BTreeMap<(Timestamp, u64), Happening>,
    scheduled: u64,
    connections: u64,
    dice: Dice,
    tally: Tally,
    checks: Checks,
    /// What had been counted of each player's input when measuring began.
    before: BTreeMap<PlayerId, InputStats>,
    measuring: bool,
    /// When measuring ended.
    ended: Option<Timestamp>,
    /// What had been counted of input by then.
    final_stats: Option<InputStats>,
    trace: Option<Trace>,
    bytes: Vec<u8>,
}

impl<W: World> Lab<W> {
    /// A server, and nobody.
    ///
    /// # Errors
    /// When the server's config is out of range.
    pub fn new(config: LabConfig, world: W) -> Result<Self, LabError> {
        // Not at zero, so that nothing relies on it.
        let now = Timestamp::from_micros(12_345_678);
        let world = Recorded::new(world, config.server.cadence);
        Ok(Self {
            start: now,
            now,
            server: Server::new(config.server, world, now)?,
            stalled_until: now,
            seats: Vec::new(),
            happenings: BTreeMap::new(),
            scheduled: 0,
            connections: 0,
            dice: Dice::new(config.seed, "lab"),
            tally: Tally::default(),
            checks: Checks::default(),
            before: BTreeMap::new(),
            measuring: false,
            ended: None,
            final_stats: None,
            trace: None,
            bytes: Vec::new(),
            config,
        })
    }

    /// Adds a client, which connects at once. Gives its number, counted from zero.
    ///
    /// # Errors
    /// When a config is out of range.
    #[allow(clippy::needless_pass_by_value, reason = "a config is consumed by what is built from it")]
    pub fn join(
        &mut self,
        config: SeatConfig<W::Game>,
        bot: Box<dyn Bot<W::Game>>,
    ) -> Result<usize, LabError> {
        let mut dice = Dice::new(self.dice.roll(), "seat");
        let seat = Seat::new(&config, bot, self.now, &self.config, &mut dice)?;
        self.seats.push(seat);
        Ok(self.seats.len() - 1)
    }

    /// Lets something happen, so long after the start. What concerns a client that is not there is left out.
    pub fn schedule(&mut self, at: Duration, happening: Happening) {
        self.scheduled += 1;
        self.happenings.insert((self.start + at, self.scheduled), happening);
    }

    /// Links lose nothing from now on. Jitter and reordering stay; delays are again those they were built with.
    ///
    /// # Errors
    /// Never for links that could be built.
    pub fn stop_loss(&mut self) -> Result<(), NetemError> {
        self.seats.iter_mut().try_for_each(Seat::stop_loss)
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let next = self.next();
            if next > end {
                break;
            }
            self.now = next.max(self.now);
            self.step();
        }
        self.now = end;
    }

    /// Ends measuring, and lets players stand until everything that happened has been told, for as long as
    /// [`LabConfig::drain`] at most. An event that has not been told by then is lost, unless it is still on its way.
    pub fn drain(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(self.now);
        self.measuring = false;
        let through = self.server.tick();
        let stats = self.input_stats();
        let until = self.now + self.config.drain;
        while self.now < until {
            let told = |player| self.server.world().truth().untold(player, through) == 0;
            if self.seats.iter().filter_map(|seat| seat.client.player()).all(told) {
                break;
            }
            self.run(Duration::from_millis(250));
        }
        for seat in self.seats.iter().filter(|seat| seat.has_heard_all()) {
            let player = seat.client.player();
            let lost = player.map_or(0, |player| self.server.world().truth().untold(player, through));
            self.tally.events.lost += lost as u64;
        }
        self.final_stats = Some(stats);
        // What was emitted ends, and the last word on all input is heard.
        if !self.server.world().truth().emissions().is_empty() {
            self.run(EmitWatch::<W::Game>::KEPT + Duration::from_secs(1));
        }
    }

    /// How much has happened that clients have not been told yet.
    pub fn untold(&self) -> usize {
        let (truth, through) = (self.server.world().truth(), self.server.tick());
        let players = self.seats.iter().filter_map(|seat| seat.client.player());
        players.map(|player| truth.untold(player, through)).sum()
    }

    /// What has been measured.
    pub fn measured(&self) -> Measured {
        let end = self.ended.unwrap_or(self.now);
        let stats = self.final_stats.unwrap_or_else(|| self.input_stats());
        let seconds =
            end.saturating_since(self.start + self.config.warm_up).as_secs_f64() * self.seats.len() as f64;
        let check_failed = self.seats.iter().map(|seat| seat.client.stats().check_failed).sum();
        let mut checks = self.checks.clone();
        let whole = (end.saturating_since(self.start).as_secs_f64(), None);
        checks.check(check_failed == 0, whole, Rule::Check, || {
            format!("{check_failed} snapshots did not add up")
        });
        if self.must_have_played(end) {
            let idle = self.nobody_played();
            checks.check(idle.is_none(), whole, Rule::Plays, || {
                format!("nobody played: {}", idle.unwrap_or_default())
            });
        }
        let mut emit = self.tally.emit();
        if self.ended.is_some() {
            self.count_presses(&mut emit, whole, &mut checks);
        }
        let events = self.tally.events;
        checks.check(events.lost + events.duplicated == 0, whole, Rule::EventsOnce, || format!("{events:?}"));
        Measured {
            seconds: whole.0,
            players: self.seats.len(),
            own: self.tally.own(stats.as_sent + stats.held, seconds / 60.0),
            input: self.tally.input(&stats),
            remote: self.tally.remote(),
            emit,
            group: self.tally.group(),
            combat: ShotCount::sum(self.seats.iter().filter_map(|seat| seat.bot.combat())),
            net: self.tally.net(seconds, check_failed),
            events,
            invariants: Invariants { checked: checks.checked, violated: checks.violated, list: checks.list },
        }
    }

    /// Holds presses against what the server emitted, where each press emits one body.
    fn count_presses(&self, emit: &mut Emit, at: (f64, Option<usize>), checks: &mut Checks) {
        for seat in &self.seats {
            let (Some(presses), Some(player)) = (seat.bot.presses(), seat.client.player()) else { continue };
            let shots = self.server.world().truth().emitted_by(player);
            emit.lost += presses.saturating_sub(shots);
            emit.doubled += shots.saturating_sub(presses);
            checks.check(presses == shots, at, Rule::EmittedOnce, || {
                format!("player {player} pressed {presses} times, and the server emitted {shots} bodies")
            });
        }
    }

    /// How often the bots have pressed the button that emits, where they say so.
    pub fn presses(&self) -> u64 {
        self.seats.iter().filter_map(|seat| seat.bot.presses()).sum()
    }

    /// Frames from each press to the first one that draws the newborn body: see [`Measured::emit`].
    pub fn frames_to_screen(&self) -> &Samples {
        &self.tally.frames_to_screen
    }

    /// Whether there was time to play until `end`. A run that is over was too short if there was not, and shows nothing. On
    /// a rough network that is another matter, except in a room for days.
    fn must_have_played(&self, end: Timestamp) -> bool {
        let within = if self.config.rough { Self::PLAYS_AT_LAST } else { Seat::<W::Game>::PLAYS_WITHIN };
        let is_over = self.ended.is_some() && !self.config.rough;
        is_over || end.saturating_since(self.start) >= within
    }

    /// Longer than any network of a soak is bad.
    const PLAYS_AT_LAST: Duration = Duration::from_secs(600);

    /// Why the run shows nothing; `None` when a player moved its body, and clients were sent that.
    pub(crate) fn nobody_played(&self) -> Option<String> {
        if self.seats.is_empty() {
            return Some("there is no client".to_owned());
        }
        let states = || {
            let states: Vec<_> = self.seats.iter().map(|seat| seat.client.state().to_string()).collect();
            states.join(", ")
        };
        if self.seats.iter().all(|seat| seat.client.stats().snapshots == 0) {
            return Some(format!("no snapshot came; the clients are {}", states()));
        }
        if !self.seats.iter().any(|seat| seat.played) {
            return Some(format!("no client predicts its body; they are {}", states()));
        }
        let moved = self.server.world().truth().player_moved();
        (!moved).then(|| "no player ever moved".to_owned())
    }

    /// Writes down what a client goes through from here on.
    pub fn start_trace(&mut self, client: usize) {
        self.trace = Some(Trace { client, ..Trace::default() });
    }

    /// What was written down.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// From when on numbers count.
    pub fn warm_up(&self) -> Duration {
        self.config.warm_up
    }

    /// How long the lab has run.
    pub fn elapsed(&self) -> Duration {
        self.now.saturating_since(self.start)
    }

    /// The server.
    pub fn server(&self) -> &Server<Recorded<W>> {
        &self.server
    }

    /// Gives the world a command, as a host does.
    ///
    /// # Errors
    /// When the world does not obey it.
    pub fn command(&mut self, bytes: &[u8]) -> Result<(), CommandRefused> {
        self.server.command(bytes)
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.seats.len()
    }

    /// A client, if there is one of that number.
    pub fn client(&self, seat: usize) -> Option<&Client<W::Game>> {
        self.seats.get(seat).map(|seat| &*seat.client)
    }

    /// What has been counted of everybody's input since measuring began.
    fn input_stats(&self) -> InputStats {
        let players = self.seats.iter().filter_map(|seat| seat.client.player());
        let stats = players.filter_map(|player| Some((player, self.server.input_stats(player)?)));
        stats.fold(InputStats::default(), |sum, (player, stats)| {
            let before = self.before.get(&player).copied().unwrap_or_default();
            InputStats {
                as_sent: sum.as_sent + stats.as_sent.saturating_sub(before.as_sent),
                held: sum.held + stats.held.saturating_sub(before.held),
                late: sum.late + stats.late.saturating_sub(before.late),
                lost: sum.lost + stats.lost.saturating_sub(before.lost),
                ..sum
            }
        })
    }
}

/// What happens when.
impl<W: World> Lab<W> {
    /// When something is to be done.
    fn next(&self) -> Timestamp {
        let server = self.server.poll_timeout().map(|due| due.max(self.stalled_until));
        let happening = self.happenings.keys().next().map(|(at, _)| *at);
        let warm = (!self.measuring && self.ended.is_none()).then(|| self.start + self.config.warm_up);
        let seats = self.seats.iter().map(|seat| seat.due);
        seats.chain(server).chain(happening).chain(warm).min().unwrap_or(Timestamp::from_micros(u64::MAX))
    }

    /// Does what is due.
    fn step(&mut self) {
        if !self.measuring && self.ended.is_none() && self.now >= self.start + self.config.warm_up {
            self.measuring = true;
            let players = self.seats.iter().filter_map(|seat| seat.client.player());
            let stats = players.filter_map(|player| Some((player, *self.server.input_stats(player)?)));
            self.before = stats.collect();
        }
        while let Some(entry) = self.happenings.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let happening = entry.remove();
            self.happen(happening);
        }
        let mut spoken = Spoken::Nothing;
        if self.now >= self.stalled_until {
            for index in 0..self.seats.len() {
                spoken = spoken.max(self.deliver_up(index));
            }
            if self.server.poll_timeout().is_some_and(|due| self.now >= due) {
                self.server.handle_timeout(self.now);
                spoken = Spoken::Everything;
            }
        }
        for index in 0..self.seats.len() {
            if self.seats[index].due <= self.now {
                spoken = spoken.max(self.act(index));
            }
        }
        if spoken > Spoken::Nothing {
            self.close();
            for index in 0..self.seats.len() {
                self.carry_down(index, spoken);
            }
        }
        for seat in &mut self.seats {
            if seat.due <= self.now || spoken > Spoken::Nothing {
                seat.schedule(self.now, self.stalled_until);
            }
        }
    }
}
