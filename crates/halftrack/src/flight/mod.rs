//! A client's flight recorder: everything that it was told, in a ring of bounded size, and reports that replay exactly.
//!
//! ```text
//!  host ──► Recorded<G> ──► Client<G>
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

use core::ops::{Deref, Range};

pub use replayer::{Difference, FlightError, Replayer, Step};
pub use report::{Damage, Report, ReportError};

use crate::client::{Client, ClientConfig, ClientEvent, OrderRefused};
use crate::error::{ConfigError, count_within, time_within};
use crate::flight::call::{Call, Shown};
use crate::flight::ring::Ring;
use crate::lane::SyncLink;
use crate::session::{DisconnectReason, SessionState};
use crate::snapshot::BodyCode;
use crate::time::Timestamp;
use crate::wire::{Frame, WireError};

pub use crate::exact::{Exact, Loader, Saver};

use core::time::Duration;

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

/// A client whose calls are recorded, or not. Everything that changes it goes through here; for the rest it is a
/// [`Client`].
///
/// ```
/// use halftrack::cart::{Cart, Rail};
/// use halftrack::client::ClientConfig;
/// use halftrack::flight::{FlightConfig, Recorded, Replayer, Report};
/// use halftrack::{Cadence, Game, MotionLimits, PlayerName, Timestamp};
///
/// # let limits = MotionLimits {
/// #     top_speed: 8.0, top_turn: 20.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4, max_hold: Cart::MAX_HOLD,
/// # };
/// let config = ClientConfig::new(PlayerName::new("Ada")?, Cadence::default(), Rail::default(), limits);
/// let mut client = Recorded::<Cart>::new(config, Some(FlightConfig::default()))?;
/// client.connect(Timestamp::ZERO);
/// client.frame(Timestamp::from_micros(16_667));
/// let bytes = client.report("it went through the wall").unwrap_or_default();
///
/// let report = Report::read(&bytes)?;
/// let mut replayer = Replayer::<Cart>::new(&report)?;
/// while replayer.step().is_some() {}
/// assert_eq!((replayer.frames(), replayer.first_difference()), (1, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recorded<G: FlightGame> {
    client: Client<G>,
    recorder: Option<Recorder>,
}

#[derive(Debug)]
struct Recorder {
    config: FlightConfig,
    /// The config, without what nobody else is to know.
    preface: Vec<u8>,
    ring: Ring,
    /// Where bytes of the stream are in the newest stretch, from the connection's beginning until the player is in: the
    /// token is among them, and must not stay there.
    login: Vec<Range<usize>>,
    /// Memory that is used again.
    shown: Saver,
}

impl<G: FlightGame> Recorded<G> {
    /// A client that nothing has been asked of, recorded if there is a config for it.
    ///
    /// # Errors
    /// When a config is out of its range.
    pub fn new(config: ClientConfig<G>, flight: Option<FlightConfig>) -> Result<Self, ConfigError> {
        let recorder = flight.map(|flight| Recorder::new(flight, &config)).transpose()?;
        Ok(Self { client: Client::new(config)?, recorder })
    }

    /// See [`Client::connect`].
    pub fn connect(&mut self, now: Timestamp) {
        self.note(now, &Call::Connect);
        self.client.connect(now);
    }

    /// See [`Client::logout`].
    pub fn logout(&mut self, now: Timestamp) {
        self.note(now, &Call::Logout);
        self.client.logout(now);
    }

    /// See [`Client::set_input`].
    pub fn set_input(&mut self, now: Timestamp, input: G::Input) {
        self.note(now, &Call::SetInput(input));
        self.client.set_input(now, input);
    }

    /// See [`Client::order`].
    ///
    /// # Errors
    /// When the player is not in, or too much is on its way already.
    pub fn order(&mut self, now: Timestamp, order: &[u8]) -> Result<(), OrderRefused> {
        self.note(now, &Call::Order(order));
        self.client.order(now, order)
    }

    /// See [`Client::handle_connected`].
    pub fn handle_connected(&mut self, now: Timestamp, sync_link: SyncLink) {
        self.note(now, &Call::Connected(sync_link));
        self.client.handle_connected(now, sync_link);
    }

    /// See [`Client::handle_disconnected`].
    pub fn handle_disconnected(&mut self, now: Timestamp, reason: Option<DisconnectReason>) {
        self.note(now, &Call::Disconnected(reason));
        self.client.handle_disconnected(now, reason);
    }

    /// See [`Client::handle_stream`].
    pub fn handle_stream(&mut self, now: Timestamp, bytes: &[u8]) {
        self.note(now, &Call::Stream(bytes));
        if let (SessionState::LoginPending, Some(recorder)) = (self.client.state(), &mut self.recorder) {
            recorder.login.push(recorder.ring.newest(bytes.len()));
        }
        self.client.handle_stream(now, bytes);
    }

    /// See [`Client::handle_datagram`].
    pub fn handle_datagram(&mut self, now: Timestamp, bytes: &[u8]) {
        self.note(now, &Call::Datagram(bytes));
        self.client.handle_datagram(now, bytes);
    }

    /// See [`Client::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.note(now, &Call::Timeout);
        self.client.handle_timeout(now);
    }

    /// See [`Client::frame`].
    pub fn frame(&mut self, now: Timestamp) -> Option<G::Pose> {
        self.note(now, &Call::Frame);
        let pose = self.client.frame(now);
        if let Some(recorder) = &mut self.recorder {
            let shown = Shown::of(&self.client, &mut recorder.shown);
            recorder.ring.append(|to| shown.save(to));
        }
        pose
    }

    /// See [`Client::poll_event`].
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let event = self.client.poll_event();
        if event.is_some() {
            self.note_poll(&Call::PollEvent);
        }
        event
    }

    /// See [`Client::poll_stream`].
    pub fn poll_stream(&mut self, into: &mut Vec<u8>) -> bool {
        let any = self.client.poll_stream(into);
        if any {
            self.note_poll(&Call::PollStream);
        }
        any
    }

    /// See [`Client::poll_datagram`].
    pub fn poll_datagram(&mut self) -> Option<&[u8]> {
        let datagram = self.client.poll_datagram();
        if let (Some(_), Some(recorder)) = (datagram, &mut self.recorder) {
            recorder.ring.call(None, &Call::<G>::PollDatagram);
        }
        datagram
    }

    /// What happened of late, as one piece that replays exactly; `note` is for whoever reads it. `None` when nothing is
    /// recorded. At most as long as the ring, and a little.
    pub fn report(&mut self, note: &str) -> Option<Vec<u8>> {
        let recorder = self.recorder.as_mut()?;
        // Whatever has come of a login that is under way stays unread as well.
        let hidden = recorder.settle(&self.client);
        Some(report::write(&recorder.preface, note, &recorder.ring, &hidden))
    }

    /// What is recorded at the moment; `None` when nothing is.
    pub fn flight_stats(&self) -> Option<FlightStats> {
        self.recorder.as_ref().map(|recorder| recorder.ring.stats())
    }

    /// A call is about to be made.
    fn note(&mut self, now: Timestamp, call: &Call<'_, G>) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.settle(&self.client);
        if recorder.ring.wants_key(now, recorder.config.key_every) && self.client.is_at_rest() {
            recorder.ring.begin(now, recorder.config.key_every, &self.client);
        }
        recorder.ring.call(Some(now), call);
    }

    /// Something was taken.
    fn note_poll(&mut self, call: &Call<'_, G>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.ring.call(None, call);
        }
    }
}

impl Recorder {
    fn new<G: FlightGame>(flight: FlightConfig, client: &ClientConfig<G>) -> Result<Self, ConfigError> {
        flight.check()?;
        let (preface, ring) = (report::preface(client), Ring::new(flight.max_bytes));
        Ok(Self { config: flight, preface, ring, login: Vec::new(), shown: Saver::default() })
    }

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

/// For everything that changes nothing.
impl<G: FlightGame> Deref for Recorded<G> {
    type Target = Client<G>;

    fn deref(&self) -> &Client<G> {
        &self.client
    }
}
