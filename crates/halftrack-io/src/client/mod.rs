//! A client that runs by itself: the core's state machine, a link to its server, and a handle for the application.
//!
//! The application calls under a lock that the task behind it holds for microseconds: a frame needs its pose at once,
//! and what it reads besides is large and borrowed, which a channel could only copy.

mod between;
mod dial;
mod drive;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

pub use between::{Between, Direction};
use halftrack::client::{Client, ClientConfig, ClientEvent, OrderRefused};
use halftrack::session::{DisconnectReason, SessionState};
use halftrack::{Game, Link, PlayerId, Timestamp, Token};
use halftrack_flight::FlightClient;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, watch};

use crate::certificate::Trust;
use crate::client::drive::Drive;
use crate::clock::now;
use crate::error::IoError;
use crate::pipe::HandedOut;
use crate::room::Traffic;
use crate::target::Target;

/// What a client's link has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Connections made.
    pub connects: u64,
    /// Connections that ended.
    pub disconnects: u64,
    /// Connections that could not be made.
    pub failed: u64,
    /// How long the newest took to be made.
    pub connect_time: Option<Duration>,
    /// The reliable lane, from the server.
    pub stream_in: Traffic,
    /// The reliable lane, to the server.
    pub stream_out: Traffic,
    /// The sync lane, from the server.
    pub datagrams_in: Traffic,
    /// The sync lane, to the server.
    pub datagrams_out: Traffic,
    /// Datagrams from the server that came faster than they were taken; dropped, oldest first.
    pub dropped_in: u64,
    /// Datagrams that were replaced by a newer one before the link took them.
    pub dropped_out: u64,
}

impl LinkStats {
    fn down(&mut self, link: Link) -> &mut Traffic {
        match link {
            Link::Reliable => &mut self.stream_in,
            Link::Sync => &mut self.datagrams_in,
        }
    }

    fn handed(&mut self, handed: &HandedOut) {
        if handed.stream_bytes > 0 {
            self.stream_out.add(handed.stream_bytes);
        }
        if let Some(bytes) = handed.datagram_bytes {
            self.datagrams_out.add(bytes);
        }
        self.dropped_out += u64::from(handed.replaced);
    }
}

struct Inside<G: Game> {
    client: FlightClient<G>,
    events: VecDeque<ClientEvent>,
    stats: LinkStats,
    last_error: Option<Arc<IoError>>,
    last_close: Option<DisconnectReason>,
    /// The application has let go.
    left: bool,
    /// When the task behind it wakes up by itself.
    due: Option<Timestamp>,
}

impl<G: Game> Inside<G> {
    /// Events that wait for the application at most, oldest dropped first: as many as the core keeps.
    const MAX_EVENTS: usize = 16_384;

    /// Why a session that is over is over. A server that closed the connection and cannot be reached since has shut down:
    /// what it said comes before what dialling came to.
    fn why_out(&self, state: SessionState) -> Arc<IoError> {
        let closed = self.last_close.filter(|_| state == SessionState::TimedOut);
        match (state, closed, &self.last_error) {
            (SessionState::TimedOut, Some(reason), _) => Arc::new(IoError::Closed(reason)),
            (SessionState::Failed(_), ..) | (_, _, None) => Arc::new(IoError::Over(state)),
            (_, _, Some(error)) => Arc::clone(error),
        }
    }

    fn tell(&mut self, event: ClientEvent) {
        if self.events.len() >= Self::MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

struct Shared<G: Game> {
    inside: Mutex<Inside<G>>,
    bell: Arc<Notify>,
    state: watch::Sender<SessionState>,
}

impl<G: Game> Shared<G> {
    fn lock(&self) -> MutexGuard<'_, Inside<G>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_state(&self, inside: &Inside<G>) {
        let state = inside.client.state();
        self.state.send_if_modified(|shown| core::mem::replace(shown, state) != state);
    }
}

/// A player's connection to a server. Dropped, the player leaves.
pub struct ClientHandle<G: Game> {
    shared: Arc<Shared<G>>,
}

impl<G: Game> core::fmt::Debug for ClientHandle<G> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ClientHandle").field("state", &self.state()).finish_non_exhaustive()
    }
}

/// Connects to a server, and comes back to it by itself when the connection is cut, as the session's config says. Runs on
/// the tokio runtime that it is called in; where there is none, on a thread of its own.
///
/// # Errors
/// When a config is out of its range, or the system gives no thread. Whether the server was reached, and lets the player
/// in, shows later: see [`ClientHandle::logged_in`].
pub fn connect<G: Game>(
    target: Target,
    trust: Trust,
    config: ClientConfig<G>,
) -> Result<ClientHandle<G>, IoError>
where
    Client<G>: Send + 'static,
{
    start(target, trust, config, None)
}

/// The same with something in between.
///
/// # Errors
/// As [`connect`].
pub fn connect_through<G: Game>(
    target: Target,
    trust: Trust,
    config: ClientConfig<G>,
    between: Box<dyn Between>,
) -> Result<ClientHandle<G>, IoError>
where
    Client<G>: Send + 'static,
{
    start(target, trust, config, Some(between))
}

fn start<G: Game>(
    target: Target,
    trust: Trust,
    config: ClientConfig<G>,
    between: Option<Box<dyn Between>>,
) -> Result<ClientHandle<G>, IoError>
where
    Client<G>: Send + 'static,
{
    let mut client = FlightClient::new(Client::new(config)?);
    client.connect(now());
    let state = watch::Sender::new(client.state());
    let inside = Inside {
        client,
        events: VecDeque::new(),
        stats: LinkStats::default(),
        last_error: None,
        last_close: None,
        left: false,
        due: None,
    };
    let shared = Arc::new(Shared { inside: Mutex::new(inside), bell: Arc::default(), state });
    let drive = Drive::new(shared.clone(), target, trust, between);
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(drive.run())),
        Err(_) => {
            let runtime = Builder::new_current_thread().enable_all().build().map_err(IoError::Thread)?;
            let thread = thread::Builder::new().name("halftrack client".to_owned());
            thread.spawn(move || runtime.block_on(drive.run())).map_err(IoError::Thread)?;
        }
    }
    Ok(ClientHandle { shared })
}

impl<G: Game> ClientHandle<G> {
    /// A task that wakes so much later than it should is in time: timers are no finer.
    const NEAR: Duration = Duration::from_micros(500);

    /// The player wants `input` from now on.
    pub fn set_input(&self, input: G::Input) {
        self.act(|now, client| client.set_input(now, input));
    }

    /// A frame is drawn now. Gives the player's visible pose, once there is one.
    pub fn frame(&self) -> Option<G::Pose> {
        self.act(|now, client| client.frame(now))
    }

    /// Gives an order: reliably, in order, exactly once.
    ///
    /// # Errors
    /// When the player is not in, too much is on its way already, or the order is too long.
    pub fn order(&self, order: &[u8]) -> Result<(), OrderRefused> {
        self.act(|now, client| client.order(now, order))
    }

    /// Leaves.
    pub fn logout(&self) {
        self.act(|now, client| client.logout(now));
    }

    /// Connects again after the session was over.
    pub fn reconnect(&self) {
        self.shared.lock().last_error = None;
        self.act(|now, client| client.connect(now));
    }

    /// Reads whatever the client knows. It is locked meanwhile: copy, and draw afterwards.
    pub fn read<R>(&self, read: impl FnOnce(&Client<G>) -> R) -> R {
        read(&self.shared.lock().client)
    }

    /// The token that brings this player back after a crash of this process: save it once the player is in, and give it to
    /// the next process as `config.session.resume` of [`connect`]. None when there is no session to come back to. It is a
    /// secret: its holder is the player. [`Token::reveal`] and [`str::parse`] make text of it and back.
    pub fn resume_token(&self) -> Option<Token> {
        self.read(Client::resume_token)
    }

    /// What happened, in order: players that came and went, events of the game, where the session is.
    pub fn poll_event(&self) -> Option<ClientEvent> {
        self.shared.lock().events.pop_front()
    }

    /// Where the session is.
    pub fn state(&self) -> SessionState {
        self.shared.lock().client.state()
    }

    /// Waits until the player is in.
    ///
    /// # Errors
    /// When the session is over: why, as far as is known.
    pub async fn logged_in(&self) -> Result<PlayerId, Arc<IoError>> {
        let mut states = self.shared.state.subscribe();
        loop {
            let state = *states.borrow_and_update();
            if let Some(outcome) = self.outcome(state) {
                return outcome;
            }
            if states.changed().await.is_err() {
                return Err(Arc::new(IoError::Over(state)));
            }
        }
    }

    /// What became of logging in, once something has.
    fn outcome(&self, state: SessionState) -> Option<Result<PlayerId, Arc<IoError>>> {
        let inside = self.shared.lock();
        match state {
            SessionState::LoggedIn => inside.client.player().map(Ok),
            SessionState::Failed(_) | SessionState::TimedOut | SessionState::LoggedOut => {
                Some(Err(inside.why_out(state)))
            }
            _ => None,
        }
    }

    /// Why the player is not in, as far as is known: what the server said of the session or of the newest connection, or
    /// why no connection could be made. `None` while the player is in or on its way.
    pub fn problem(&self) -> Option<Arc<IoError>> {
        let inside = self.shared.lock();
        match inside.client.state() {
            SessionState::Idle | SessionState::LoggedIn => None,
            SessionState::Connecting | SessionState::LoginPending | SessionState::Reconnecting => {
                let closed = inside.last_close.map(|reason| Arc::new(IoError::Closed(reason)));
                closed.or_else(|| inside.last_error.clone())
            }
            state => Some(inside.why_out(state)),
        }
    }

    /// Why the newest connection that could not be made could not be.
    pub fn last_error(&self) -> Option<Arc<IoError>> {
        self.shared.lock().last_error.clone()
    }

    /// Why the server closed the newest connection that ended, if it said so.
    pub fn last_close(&self) -> Option<DisconnectReason> {
        self.shared.lock().last_close
    }

    /// What the link has counted.
    pub fn stats(&self) -> LinkStats {
        self.shared.lock().stats
    }

    /// Does several things at one moment, and sends what comes of them: a frame with everything that belongs to it costs
    /// one lock and one wake-up instead of one each. The client is locked meanwhile. Events are not to be taken from it
    /// here: [`Self::poll_event`] has them. [`FlightClient::record`] starts its flight recorder.
    pub fn act<R>(&self, act: impl FnOnce(Timestamp, &mut FlightClient<G>) -> R) -> R {
        let mut inside = self.shared.lock();
        let done = act(now(), &mut inside.client);
        self.shared.show_state(&inside);
        // The task is woken only for what it would otherwise be too late for: most frames have nothing to send.
        let due = inside.due.map(|due| due - Self::NEAR);
        let sooner = inside.client.poll_timeout().is_some_and(|next| due.is_none_or(|due| next < due));
        let wake = sooner || inside.client.has_output();
        drop(inside);
        if wake {
            self.shared.bell.notify_one();
        }
        done
    }
}

impl<G: Game> Drop for ClientHandle<G> {
    fn drop(&mut self) {
        self.shared.lock().left = true;
        self.shared.bell.notify_one();
    }
}
