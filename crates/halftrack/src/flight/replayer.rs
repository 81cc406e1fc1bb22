//! A report, replayed: the same calls to the same client, and each frame held against what it showed then.

use core::fmt;

use crate::client::{Client, ClientEvent};
use crate::error::ConfigError;
use crate::exact::{Loader, Saver, State};
use crate::flight::FlightGame;
use crate::flight::call::{Call, Shown};
use crate::flight::report::{Report, Written};
use crate::lane::SyncLink;
use crate::session::DisconnectReason;
use crate::shared::shared_hash;
use crate::time::Timestamp;
use crate::wire::WireError;

/// Why a report cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlightError {
    /// What the client was built from is not understood.
    #[error("the config in the report means nothing: {0}")]
    Preface(#[source] WireError),
    /// No client is built from that.
    #[error("the config in the report cannot be: {0}")]
    Config(#[from] ConfigError),
    /// It was recorded by other rules.
    #[error("the report was recorded by other rules than this program's: use the one that wrote it")]
    Rules,
    /// The state that it begins with is none.
    #[error("the state that the report begins with means nothing: {0}")]
    State(#[source] WireError),
}

/// What happened in one step of a replay.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It was asked to connect.
    Connect,
    /// It was asked to leave.
    Logout,
    /// The player wanted something else.
    Input,
    /// An order was given, of so many bytes.
    Order(usize),
    /// A connection was made.
    Connected(SyncLink),
    /// It was gone, or could not be made.
    Disconnected(Option<DisconnectReason>),
    /// So many bytes of the stream arrived.
    Stream(usize),
    /// A datagram of so many bytes arrived.
    Datagram(usize),
    /// It was woken.
    Timeout,
    /// A frame was drawn. What differs from then, if anything does.
    Frame(Option<Difference>),
    /// The host was told; `None` where it was told something then and is not now.
    Event(Option<ClientEvent>),
    /// The host took so many bytes for the stream.
    Written(usize),
    /// The host took a datagram of so many bytes.
    Sent(usize),
    /// The state was written down then, and is the same now or not. The replay goes on from that of then.
    Key(Option<Difference>),
    /// From here on nothing can be read.
    Broken(WireError),
}

/// What is not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which frame, counted from one; of a state, the last one before it.
    pub frame: u64,
    /// When.
    pub at: Timestamp,
    /// Whether the visible pose differs.
    pub visible: bool,
    /// Whether the predicted body does.
    pub predicted: bool,
    /// Whether others as drawn do.
    pub others: bool,
    /// Whether counts of corrections or the state of the session do.
    pub counts: bool,
    /// Of a whole state: the first byte that differs.
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
#[derive(Debug)]
pub struct Replayer<'a, G: FlightGame> {
    client: Client<G>,
    stretches: core::slice::Iter<'a, Written<'a>>,
    calls: Loader<'a>,
    /// The moment of the last call.
    at: Timestamp,
    began: Timestamp,
    frames: u64,
    /// Frames that were as they had been.
    exact: u64,
    first: Option<Difference>,
    broken: bool,
    // Memory that is used again.
    memory: Saver,
    stream: Vec<u8>,
}

impl<'a, G: FlightGame> Replayer<'a, G> {
    /// The client as it was when the report begins.
    ///
    /// # Errors
    /// When it was another game, other rules, or what the report begins with means nothing.
    pub fn new(report: &'a Report<'a>) -> Result<Self, FlightError> {
        let config = report.config::<G>().map_err(FlightError::Preface)?;
        if config.session.shared != shared_hash::<G>(config.predict.cadence, &config.alone) {
            return Err(FlightError::Rules);
        }
        let mut stretches = report.stretches().iter();
        let first = stretches.next().ok_or(FlightError::State(WireError::Truncated))?;
        let mut client = Client::new(config)?;
        restore(&mut client, first.key).map_err(FlightError::State)?;
        Ok(Self {
            client,
            stretches,
            calls: Loader::new(&first.calls),
            at: first.began,
            began: first.began,
            frames: 0,
            exact: 0,
            first: None,
            broken: false,
            memory: Saver::default(),
            stream: Vec::new(),
        })
    }

    /// Makes the next call; `None` at the end.
    pub fn step(&mut self) -> Option<Step> {
        if self.broken {
            return None;
        }
        let step = if self.calls.left() == 0 {
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

    /// The next stretch begins with the state that the client has by now, or should have.
    fn begin(&mut self, next: &'a Written<'a>) -> Result<Step, WireError> {
        self.memory.clear();
        self.client.save_state(&mut self.memory);
        let (now, then) = (self.memory.as_bytes(), next.key);
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
        self.calls = Loader::new(&next.calls);
        self.at = next.began;
        Ok(Step::Key(differs))
    }

    fn call(&mut self) -> Result<Step, WireError> {
        let call = Call::<G>::load(&mut self.at, &mut self.calls)?;
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
                // Refused then, refused now.
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
                let then = Shown::load(&mut self.calls)?;
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

    /// The client as it is by now.
    pub fn client(&self) -> &Client<G> {
        &self.client
    }

    /// The moment of the last call, by the clock of whoever recorded it.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The moment that the report begins at.
    pub fn began(&self) -> Timestamp {
        self.began
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames so far that showed what they had shown.
    pub fn exact_frames(&self) -> u64 {
        self.exact
    }

    /// The first frame or state that is not as it was.
    pub fn first_difference(&self) -> Option<Difference> {
        self.first
    }
}

fn restore<G: FlightGame>(client: &mut Client<G>, key: &[u8]) -> Result<(), WireError> {
    let mut from = Loader::new(key);
    client.load_state(&mut from)?;
    from.finish()
}
