//! Replays a report: the same calls to the same client, and the picture of each frame compared with its digest.

use core::fmt;
use std::sync::Arc;

use halftrack::client::{Client, ClientEvent};
use halftrack::session::DisconnectReason;
use halftrack::{ConfigError, Game, SyncLink, Timestamp};

use crate::bounded::{Bounded, ReadError};
use crate::call::Call;
use crate::report::{Report, Written};
use crate::shown::Shown;
use crate::write::append;

/// Why a report cannot be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlightError {
    /// The client's config cannot be read.
    #[error("the config in the report cannot be read: {0}")]
    Preface(#[source] ReadError),
    /// The client's config is out of range.
    #[error("the config in the report is out of range: {0}")]
    Config(#[from] ConfigError),
    /// The rules that you gave are not those that the client was recorded with.
    #[error("the report was recorded with other rules than these: use the program that wrote it")]
    Rules,
    /// The first key state cannot be read.
    #[error("the first state of the report cannot be read: {0}")]
    State(#[source] ReadError),
}

/// One step of a replay.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// [`Client::connect`].
    Connect,
    /// [`Client::logout`].
    Logout,
    /// [`Client::set_input`].
    Input,
    /// [`Client::order`], and the order's bytes.
    Order(usize),
    /// [`Client::handle_connected`].
    Connected(SyncLink),
    /// [`Client::handle_disconnected`].
    Disconnected(Option<DisconnectReason>),
    /// [`Client::handle_stream`], and the number of bytes.
    Stream(usize),
    /// [`Client::handle_datagram`], and the number of bytes.
    Datagram(usize),
    /// [`Client::handle_timeout`].
    Timeout,
    /// [`Client::frame`], and how its picture differs from the recorded one, if it does.
    Frame(Option<Difference>),
    /// [`Client::poll_event`]. `None` if an event was recorded and the replay has none.
    Event(Option<ClientEvent>),
    /// [`Client::poll_stream`], and the number of bytes.
    Written(usize),
    /// [`Client::poll_datagram`], and the number of bytes.
    Sent(usize),
    /// A key state, and how the replayed state differs from it, if it does. The replay goes on from the recorded one.
    Key(Option<Difference>),
    /// A call or a key state that cannot be read. It is the last step.
    Broken(ReadError),
}

/// A difference between the recording and its replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The frame, counted from one; for a key state, the last frame before it.
    pub frame: u64,
    /// The moment.
    pub at: Timestamp,
    /// Whether the visible pose of an own body differs.
    pub visible: bool,
    /// Whether an own body is predicted differently.
    pub predicted: bool,
    /// Whether other bodies are drawn differently.
    pub others: bool,
    /// Whether counts of corrections or the state of the session differ.
    pub counts: bool,
    /// For a key state, the first byte that differs.
    pub state: Option<usize>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(byte) = self.state {
            return write!(f, "the state after frame {} differs from byte {byte} on", self.frame);
        }
        let parts = [
            (self.visible, "the visible pose"),
            (self.predicted, "the predicted body"),
            (self.others, "others as drawn"),
            (self.counts, "counts of corrections or the session"),
        ];
        write!(f, "frame {} differs in", self.frame)?;
        let mut named = parts.iter().filter(|(differs, _)| *differs);
        named.try_for_each(|(_, part)| write!(f, " {part};"))
    }
}

/// Replays a report, call by call.
pub struct Replayer<'a, G: Game> {
    client: Client<G>,
    stretches: core::slice::Iter<'a, Written<'a>>,
    calls: Bounded<'a>,
    /// The moment of the last call.
    at: Timestamp,
    began: Timestamp,
    frames: u64,
    /// Frames with the recorded picture.
    exact: u64,
    first: Option<Difference>,
    broken: bool,
    // Scratch space.
    memory: Vec<u8>,
    stream: Vec<u8>,
}

impl<G: Game> fmt::Debug for Replayer<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, frames, exact, first, .. } = self;
        f.debug_struct("Replayer")
            .field("at", at)
            .field("frames", frames)
            .field("exact", exact)
            .field("first_difference", first)
            .finish_non_exhaustive()
    }
}

impl<'a, G: Game> Replayer<'a, G> {
    /// Builds the client as it was when the report begins. Build `rules` from [`Report::setup`].
    ///
    /// # Errors
    /// When the rules are not those of the recording, or the report begins with a state that no client can have.
    pub fn new(report: &'a Report<'a>, rules: Arc<G>) -> Result<Self, FlightError> {
        let preface = report.preface().map_err(FlightError::Preface)?;
        if !preface.is_of(&*rules) {
            return Err(FlightError::Rules);
        }
        let mut stretches = report.stretches().iter();
        let first = stretches.next().ok_or(FlightError::State(ReadError::Truncated))?;
        let mut client = Client::new(preface.config(rules))?;
        restore(&mut client, first.key).map_err(FlightError::State)?;
        Ok(Self {
            client,
            stretches,
            calls: Bounded::new(&first.calls),
            at: first.began,
            began: first.began,
            frames: 0,
            exact: 0,
            first: None,
            broken: false,
            memory: Vec::new(),
            stream: Vec::new(),
        })
    }

    /// Makes the next call; `None` at the end.
    pub fn step(&mut self) -> Option<Step> {
        if self.broken {
            return None;
        }
        let step = if self.calls.rest().is_empty() {
            let next = self.stretches.next()?;
            self.begin(next)
        } else {
            self.call()
        };
        Some(step.unwrap_or_else(|problem| {
            self.broken = true;
            Step::Broken(problem)
        }))
    }

    /// Compares the client with the key state of the next stretch, and goes on from that.
    fn begin(&mut self, next: &'a Written<'a>) -> Result<Step, ReadError> {
        self.memory.clear();
        append(&self.client, &mut self.memory);
        let (now, then) = (self.memory.as_slice(), next.key);
        let same = now.iter().zip(then).take_while(|(now, then)| now == then).count();
        let differs = (now != then).then_some(Difference {
            frame: self.frames,
            at: next.began,
            visible: false,
            predicted: false,
            others: false,
            counts: false,
            state: Some(same),
        });
        restore(&mut self.client, next.key)?;
        self.first = self.first.or(differs);
        self.calls = Bounded::new(&next.calls);
        self.at = next.began;
        Ok(Step::Key(differs))
    }

    fn call(&mut self) -> Result<Step, ReadError> {
        let call = Call::<G::Input>::read(&mut self.at, &mut self.calls)?;
        let (client, now) = (&mut self.client, self.at);
        Ok(match call {
            Call::Connect => {
                client.connect(now);
                Step::Connect
            }
            Call::Logout => {
                client.logout(now);
                Step::Logout
            }
            Call::SetInput(input) => {
                client.set_input(now, input);
                Step::Input
            }
            Call::Order(order) => {
                // An order that was refused when it was recorded is refused again.
                let _ = client.order(now, order);
                Step::Order(order.len())
            }
            Call::Connected(sync_link) => {
                client.handle_connected(now, sync_link);
                Step::Connected(sync_link)
            }
            Call::Disconnected(reason) => {
                client.handle_disconnected(now, reason);
                Step::Disconnected(reason)
            }
            Call::Stream(bytes) => {
                client.handle_stream(now, bytes);
                Step::Stream(bytes.len())
            }
            Call::Datagram(bytes) => {
                client.handle_datagram(now, bytes);
                Step::Datagram(bytes.len())
            }
            Call::Timeout => {
                client.handle_timeout(now);
                Step::Timeout
            }
            Call::Frame => {
                client.frame(now);
                let then = Shown::read(&mut self.calls)?;
                Step::Frame(self.compare(then))
            }
            Call::PollEvent => Step::Event(client.poll_event()),
            Call::PollStream => {
                self.stream.clear();
                client.poll_stream(&mut self.stream);
                Step::Written(self.stream.len())
            }
            Call::PollDatagram => Step::Sent(client.poll_datagram().map_or(0, <[u8]>::len)),
        })
    }

    fn compare(&mut self, then: Shown) -> Option<Difference> {
        // spec: FLIGHT-01
        let now = Shown::of(&self.client, &mut self.memory);
        self.frames += 1;
        if now == then {
            self.exact += 1;
            return None;
        }
        let difference = Difference {
            frame: self.frames,
            at: self.at,
            visible: now.visible != then.visible,
            predicted: now.predicted != then.predicted,
            others: now.others != then.others,
            counts: now.counts != then.counts,
            state: None,
        };
        self.first = self.first.or(Some(difference));
        Some(difference)
    }

    /// The client after the last step.
    pub fn client(&self) -> &Client<G> {
        &self.client
    }

    /// The moment of the last call, by the clock of the recorded client.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The moment at which the report begins.
    pub fn began(&self) -> Timestamp {
        self.began
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames so far with the recorded picture.
    pub fn exact_frames(&self) -> u64 {
        self.exact
    }

    /// The first frame or key state that differs.
    pub fn first_difference(&self) -> Option<Difference> {
        self.first
    }
}

fn restore<G: Game>(client: &mut Client<G>, key: &[u8]) -> Result<(), ReadError> {
    let mut from = Bounded::new(key);
    client.restore(&mut from)?;
    from.finish()
}
