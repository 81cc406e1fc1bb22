//! A client's flight recorder: everything that it was told, in a ring of bounded size, and reports that replay exactly.
//!
//! ```text
//!  host ──► Client<G>
//!               │ every call, its moment and its bytes; what each frame showed, as a digest
//!               ▼
//!            Ring: | key state, calls | key state, calls | key state, calls ...     the oldest are dropped
//!               │
//!  report() ────┴─► bytes ──► Replayer<G>: the same calls to the same client, each frame held against its digest
//! ```
//!
//! A client is a pure function of its calls, so the calls and the state before them are all that there is to know. Not
//! written are secrets: neither credentials nor the token of the session. Knows neither files nor sockets.

mod call;
mod replayer;
mod report;
mod ring;

use core::fmt;
use core::ops::Range;
use core::time::Duration;

pub use replayer::{Difference, FlightError, Replayer, Step};
pub use report::{Damage, Report, ReportError};

use crate::client::Client;
use crate::error::{ConfigError, count_within, time_within};
pub(crate) use crate::flight::call::Call;
use crate::flight::call::Shown;
use crate::flight::ring::Ring;
use crate::session::SessionState;
use crate::snapshot::BodyCode;
use crate::time::Timestamp;
use crate::wire::{Frame, WireError};

pub use crate::exact::{Exact, Loader, Saver};

/// What a game must tell for its clients to be recorded: its bodies and poses to the bit, and its world.
pub trait FlightGame: BodyCode<Body: Exact, Pose: Exact> {
    /// Writes the world without bodies.
    fn save_world(alone: &Self::Surroundings, to: &mut Saver);

    /// Reads it.
    ///
    /// # Errors
    /// When the bytes end too early, or no world is like that.
    fn load_world(from: &mut Loader<'_>) -> Result<Self::Surroundings, WireError>;
}

/// What a recorder keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightConfig {
    /// Bytes that are kept at most. Default 4 MiB: half an hour among a few players, five minutes among two hundred.
    /// From 256 KiB, below which a key state of a full room leaves no room for calls, to 256 MiB.
    pub max_bytes: usize,
    /// How often a key state is taken. Default 15 s: with more of them less is lost when the oldest is dropped, and more
    /// room is taken by them. From 1 s to 10 min. It is also taken when an eighth of the ring has been written since the last.
    pub key_every: Duration,
}

impl Default for FlightConfig {
    fn default() -> Self {
        Self { max_bytes: 4 << 20, key_every: Duration::from_secs(15) }
    }
}

impl FlightConfig {
    fn check(&self) -> Result<(), ConfigError> {
        count_within("flight.max_bytes", self.max_bytes, 256 << 10, 256 << 20)?;
        time_within("flight.key_every", self.key_every, Duration::from_secs(1), Duration::from_secs(600))
    }
}

/// What the recorder has at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightStats {
    /// Bytes in the ring.
    pub bytes: usize,
    /// Key states in it.
    pub keys: usize,
    /// Bytes of the newest key state.
    pub key_bytes: usize,
    /// The moment that a report would begin at.
    pub since: Option<Timestamp>,
    /// Times that the oldest stretch was dropped to make room.
    pub dropped: u64,
    /// Times that everything was dropped because no key state could be taken for too long.
    pub blanks: u64,
}

/// What is told of every call of a client.
pub(crate) trait Recorder<G: BodyCode>: Send + Sync {
    /// A call is about to be made.
    fn call(&mut self, client: &Client<G>, now: Timestamp, call: &Call<'_, G>);
    /// A frame has been drawn.
    fn shown(&mut self, client: &Client<G>);
    /// Something was taken.
    fn taken(&mut self, call: &Call<'_, G>);
    fn report(&mut self, client: &Client<G>, note: &str) -> Vec<u8>;
    fn stats(&self) -> FlightStats;
}

impl<G: BodyCode> fmt::Debug for dyn Recorder<G> {
    /// No more than that there is one: a ring is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl<G: FlightGame> Client<G> {
    /// Records everything from here on; what was recorded before is forgotten.
    ///
    /// ```
    /// use halftrack::cart::{Cart, Rail};
    /// use halftrack::client::{Client, ClientConfig};
    /// use halftrack::flight::{FlightConfig, Replayer, Report};
    /// use halftrack::{Cadence, Game, MotionLimits, PlayerName, Timestamp};
    ///
    /// # let limits = MotionLimits {
    /// #     top_speed: 8.0, top_turn: 20.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4, max_hold: Cart::MAX_HOLD,
    /// # };
    /// let config = ClientConfig::new(PlayerName::new("Ada")?, Cadence::default(), Rail::default(), limits);
    /// let mut client = Client::<Cart>::new(config)?;
    /// client.record(FlightConfig::default())?;
    /// client.connect(Timestamp::ZERO);
    /// client.frame(Timestamp::from_micros(16_667));
    /// let bytes = client.flight_report("it went through the wall").unwrap_or_default();
    ///
    /// let report = Report::read(&bytes)?;
    /// let mut replayer = Replayer::<Cart>::new(&report)?;
    /// while replayer.step().is_some() {}
    /// assert_eq!((replayer.frames(), replayer.first_difference()), (1, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a field of `flight` is out of its range.
    pub fn record(&mut self, flight: FlightConfig) -> Result<(), ConfigError> {
        flight.check()?;
        self.set_recorder(Box::new(FlightRecorder {
            config: flight,
            preface: report::preface(self.config()),
            ring: Ring::new(flight.max_bytes),
            login: Vec::new(),
            shown: Saver::default(),
        }));
        Ok(())
    }
}

struct FlightRecorder {
    config: FlightConfig,
    /// The client's config, without what nobody else is to know.
    preface: Vec<u8>,
    ring: Ring,
    /// Where bytes of the stream are in the newest stretch, from the connection's beginning until the player is in: the
    /// token is among them, and must not stay there.
    login: Vec<Range<usize>>,
    /// Memory that is used again.
    shown: Saver,
}

impl<G: FlightGame> Recorder<G> for FlightRecorder {
    fn call(&mut self, client: &Client<G>, now: Timestamp, call: &Call<'_, G>) {
        self.settle(client);
        if self.ring.wants_key(now, self.config.key_every) && client.is_at_rest() {
            self.ring.begin(now, self.config.key_every, client);
        }
        self.ring.call(Some(now), call);
        if let (Call::Stream(bytes), SessionState::LoginPending) = (call, client.state()) {
            self.login.push(self.ring.newest(bytes.len()));
        }
    }

    fn shown(&mut self, client: &Client<G>) {
        let shown = Shown::of(client, &mut self.shown);
        self.ring.append(|to| shown.save(to));
    }

    fn taken(&mut self, call: &Call<'_, G>) {
        self.ring.call(None, call);
    }

    fn report(&mut self, client: &Client<G>, note: &str) -> Vec<u8> {
        // Whatever has come of a login that is under way stays unread as well.
        let hidden = self.settle(client);
        report::write(&self.preface, note, &self.ring, &hidden)
    }

    fn stats(&self) -> FlightStats {
        self.ring.stats()
    }
}

impl FlightRecorder {
    /// Hides the token in what was written down of a login that is over: as a whole, or what there is of it in a message
    /// that was cut. Of a login that is not over, gives where it must not be read.
    fn settle<G: FlightGame>(&mut self, client: &Client<G>) -> Vec<usize> {
        // spec: FLIGHT-02
        if self.login.is_empty() {
            return Vec::new();
        }
        let cut = Self::unfinished(&self.login, client.unfinished());
        if client.state() == SessionState::LoginPending {
            return cut;
        }
        let login = core::mem::take(&mut self.login);
        match (client.state(), client.token()) {
            // The message that is not complete is another, and will be.
            (SessionState::LoggedIn, Some(token)) => self.ring.hide(&login, token.as_bytes()),
            _ => self.ring.blacken(&cut),
        }
        Vec::new()
    }

    /// Where the last so many bytes of a login are, but for the header of their message: it is never complete, so nobody
    /// reads what is behind.
    fn unfinished(login: &[Range<usize>], count: usize) -> Vec<usize> {
        let places: Vec<usize> = login.iter().cloned().flatten().collect();
        let begins = places.len().saturating_sub(count);
        places.into_iter().skip(begins + Frame::HEADER).collect()
    }
}
