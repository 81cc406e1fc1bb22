//! A client that can record itself.

use core::fmt;
use core::ops::Deref;

use halftrack::client::{Client, ClientEvent, LifeEvent, OrderRefused};
use halftrack::session::DisconnectReason;
use halftrack::{ConfigError, Game, SyncLink, Timestamp};

use crate::call::Call;
use crate::recorder::Recorder;
use crate::{FlightConfig, FlightStats};

/// A [`Client`] that records every call that changes it, once you ask for it with [`Self::record`].
///
/// Use it like the client inside: the calls that change a client are repeated here, and [`Deref`] gives all that only
/// read it. There is no `DerefMut`: a call that is not recorded would spoil the recording. Without a recorder each call
/// costs one comparison.
///
/// ```
/// use std::sync::Arc;
/// use halftrack::cart::Cart;
/// use halftrack::client::{Client, ClientConfig};
/// use halftrack::{Cadence, PlayerName, Timestamp};
/// use halftrack_flight::{FlightClient, FlightConfig, Replayer, Report};
///
/// let config = ClientConfig::new(PlayerName::new("Ada")?, Cadence::default(), Arc::new(Cart));
/// let mut client = FlightClient::new(Client::new(config)?);
/// client.record(FlightConfig::default(), vec![])?;
/// client.connect(Timestamp::ZERO);
/// client.frame(Timestamp::from_micros(16_667));
/// let bytes = client.flight_report("it went through the wall").unwrap_or_default();
///
/// let report = Report::read(&bytes)?;
/// // A cart needs no setup. Other games build their rules from `report.setup()`.
/// let mut replayer = Replayer::new(&report, Arc::new(Cart))?;
/// while replayer.step().is_some() {}
/// assert_eq!((replayer.frames(), replayer.first_difference()), (1, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FlightClient<G: Game> {
    client: Client<G>,
    /// Boxed: most clients have none.
    recorder: Option<Box<Recorder>>,
}

impl<G: Game> Deref for FlightClient<G> {
    type Target = Client<G>;

    fn deref(&self) -> &Client<G> {
        &self.client
    }
}

impl<G: Game> fmt::Debug for FlightClient<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.flight_stats();
        f.debug_struct("FlightClient").field("client", &self.client).field("recorder", &stats).finish()
    }
}

impl<G: Game> From<Client<G>> for FlightClient<G> {
    fn from(client: Client<G>) -> Self {
        Self::new(client)
    }
}

/// Recording.
impl<G: Game> FlightClient<G> {
    /// A client that records nothing yet.
    pub fn new(client: Client<G>) -> Self {
        Self { client, recorder: None }
    }

    /// Records every call from here on. An earlier recording is dropped.
    ///
    /// `setup` are bytes of your choice from which your game's rules can be built again, such as the arena. They are
    /// part of every report, as [`Report::setup`](crate::Report::setup). The recorder does not look into them.
    ///
    /// # Errors
    /// When a field of `flight` is out of range.
    pub fn record(&mut self, flight: FlightConfig, setup: Vec<u8>) -> Result<(), ConfigError> {
        flight.check()?;
        self.recorder = Some(Box::new(Recorder::new(flight, &self.client, setup)));
        Ok(())
    }

    /// The recording as one file that replays exactly, with a note for its readers. `None` when nothing is recorded. It
    /// is little longer than [`FlightConfig::max_bytes`] and the setup at most.
    pub fn flight_report(&mut self, note: &str) -> Option<Vec<u8>> {
        let recorder = self.recorder.as_mut()?;
        Some(recorder.report(&self.client, note))
    }

    /// The state of the recorder; `None` when nothing is recorded.
    pub fn flight_stats(&self) -> Option<FlightStats> {
        self.recorder.as_ref().map(|recorder| recorder.stats())
    }

    /// The client without its recorder.
    pub fn into_inner(self) -> Client<G> {
        self.client
    }

    /// A call is about to be made. Not inlined: it is in every call, and a web page is downloaded.
    #[inline(never)]
    fn note(&mut self, now: Timestamp, call: &Call<'_, G::Input>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.call(&self.client, now, call);
        }
    }

    /// Something was taken.
    #[inline(never)]
    fn note_taken(&mut self, call: &Call<'_, G::Input>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.taken::<G>(call);
        }
    }
}

/// The calls that change a client.
impl<G: Game> FlightClient<G> {
    /// [`Client::connect`].
    pub fn connect(&mut self, now: Timestamp) {
        self.note(now, &Call::Connect);
        self.client.connect(now);
    }

    /// [`Client::logout`].
    pub fn logout(&mut self, now: Timestamp) {
        self.note(now, &Call::Logout);
        self.client.logout(now);
    }

    /// [`Client::set_input`].
    pub fn set_input(&mut self, now: Timestamp, input: G::Input) {
        self.note(now, &Call::SetInput(input));
        self.client.set_input(now, input);
    }

    /// [`Client::order`].
    ///
    /// # Errors
    /// As there.
    pub fn order(&mut self, now: Timestamp, order: &[u8]) -> Result<(), OrderRefused> {
        self.note(now, &Call::Order(order));
        self.client.order(now, order)
    }

    /// [`Client::handle_connected`].
    pub fn handle_connected(&mut self, now: Timestamp, sync_link: SyncLink) {
        self.note(now, &Call::Connected(sync_link));
        self.client.handle_connected(now, sync_link);
    }

    /// [`Client::handle_disconnected`].
    pub fn handle_disconnected(&mut self, now: Timestamp, reason: Option<DisconnectReason>) {
        self.note(now, &Call::Disconnected(reason));
        self.client.handle_disconnected(now, reason);
    }

    /// [`Client::handle_stream`].
    pub fn handle_stream(&mut self, now: Timestamp, bytes: &[u8]) {
        self.note(now, &Call::Stream(bytes));
        self.client.handle_stream(now, bytes);
    }

    /// [`Client::handle_datagram`].
    pub fn handle_datagram(&mut self, now: Timestamp, bytes: &[u8]) {
        self.note(now, &Call::Datagram(bytes));
        self.client.handle_datagram(now, bytes);
    }

    /// [`Client::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.note(now, &Call::Timeout);
        self.client.handle_timeout(now);
    }

    /// [`Client::frame`].
    pub fn frame(&mut self, now: Timestamp) -> Option<G::Pose> {
        self.note(now, &Call::Frame);
        let pose = self.client.frame(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.drawn(&self.client);
        }
        pose
    }

    /// [`Client::poll_event`].
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let event = self.client.poll_event();
        if event.is_some() {
            self.note_taken(&Call::PollEvent);
        }
        event
    }

    /// [`Client::poll_life`]. It is not recorded: what it takes follows from the calls that are, and changes nothing else.
    pub fn poll_life(&mut self) -> Option<LifeEvent<G>> {
        self.client.poll_life()
    }

    /// [`Client::poll_stream`].
    pub fn poll_stream(&mut self, into: &mut Vec<u8>) -> bool {
        let any = self.client.poll_stream(into);
        if any {
            self.note_taken(&Call::PollStream);
        }
        any
    }

    /// [`Client::poll_datagram`].
    pub fn poll_datagram(&mut self) -> Option<&[u8]> {
        let datagram = self.client.poll_datagram();
        if let (Some(_), Some(recorder)) = (datagram, &mut self.recorder) {
            recorder.taken::<G>(&Call::PollDatagram);
        }
        datagram
    }
}
