//! What keeps a client going: it wakes when a tick ends, when something arrives and when the application acts, and makes
//! connections when the session asks for them. One task for each client.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use halftrack::client::{Client, ClientEvent};
use halftrack::session::{DisconnectReason, SessionEnd, SessionState};
use halftrack::{Game, Link, Timestamp};
use halftrack_flight::FlightClient;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

use crate::certificate::Trust;
use crate::client::between::{Between, Direction};
use crate::client::dial::{Dialled, dial};
use crate::client::{Inside, Shared};
use crate::clock::{instant_of, now};
use crate::error::IoError;
use crate::pipe::{Arrived, Bell, End, Patience, Pipe, Urgency};
use crate::target::Target;

/// A client that cannot write for so long has lost its server: its own silence of 4 s comes first.
const PATIENCE: Patience = Patience { stall: Duration::from_secs(5), linger: Duration::from_millis(500) };

struct Wake(Arc<Notify>);

impl Bell for Wake {
    fn ring(&self, _: Urgency) {
        self.0.notify_one();
    }
}

/// A connection and the task that moves its bytes.
struct Open {
    pipe: Arc<Pipe>,
    task: JoinHandle<()>,
}

pub(super) struct Drive<G: Game> {
    shared: Arc<Shared<G>>,
    target: Target,
    trust: Trust,
    between: Option<Box<dyn Between>>,
    open: Option<Open>,
    dialling: Option<(Timestamp, JoinHandle<Result<Dialled, IoError>>)>,
    /// Connections that say their last.
    closing: Vec<JoinHandle<()>>,
    arrivals: Vec<Arrived>,
}

impl<G: Game> Drive<G>
where
    Client<G>: Send + 'static,
{
    pub(super) fn new(
        shared: Arc<Shared<G>>,
        target: Target,
        trust: Trust,
        between: Option<Box<dyn Between>>,
    ) -> Self {
        Self {
            shared,
            target,
            trust,
            between,
            open: None,
            dialling: None,
            closing: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let shared = self.shared.clone();
            let due = {
                let mut inside = shared.lock();
                let due = self.turn(&mut inside);
                inside.due = due;
                shared.show_state(&inside);
                if inside.left && self.open.is_none() {
                    break;
                }
                due
            };
            tokio::select! {
                () = shared.bell.notified() => {}
                () = until(due) => {}
                dialled = dialled(&mut self.dialling) => self.take_dialled(dialled),
            }
        }
        if let Some((_, task)) = self.dialling.take() {
            task.abort();
        }
        for task in self.closing {
            let _ = timeout(PATIENCE.linger * 3, task).await;
        }
    }

    /// Everything there is to do now. Gives when there will be more.
    fn turn(&mut self, inside: &mut Inside<G>) -> Option<Timestamp> {
        let now = now();
        self.receive(now, inside);
        if inside.left {
            inside.client.logout(now);
        }
        inside.client.handle_timeout(now);
        self.follow(now, inside);
        self.hand_out(now, inside);
        let between = self.between.as_ref().and_then(|between| between.poll_timeout());
        inside.client.poll_timeout().into_iter().chain(between).min()
    }

    fn receive(&mut self, now: Timestamp, inside: &mut Inside<G>) {
        let Some(open) = &self.open else { return };
        let (end, dropped) = open.pipe.take(&mut self.arrivals, |_, arrived| arrived);
        inside.stats.dropped_in += dropped;
        for arrived in self.arrivals.drain(..) {
            let (link, bytes) = match arrived {
                Arrived::Stream(bytes) => (Link::Reliable, bytes),
                Arrived::Datagram(bytes) => (Link::Sync, bytes),
            };
            inside.stats.down(link).add(bytes.len());
            match &mut self.between {
                Some(between) => between.send(now, Direction::Down, link, &bytes),
                None => inside.hear(now, link, &bytes),
            }
        }
        if let Some(end) = end {
            let reason = match end {
                End::Theirs(reason) => reason,
                End::Ours(_) => None,
            };
            self.forget_connection();
            inside.stats.disconnects += 1;
            inside.last_close = reason;
            inside.client.handle_disconnected(now, reason);
        }
    }

    /// Does what the session asks for; the rest is for the application.
    fn follow(&mut self, now: Timestamp, inside: &mut Inside<G>) {
        while let Some(event) = inside.client.poll_event() {
            match event {
                ClientEvent::Connect => {
                    self.forget_connection();
                    let task = tokio::spawn(dial(self.target.clone(), self.trust.clone()));
                    self.dialling = Some((now, task));
                }
                ClientEvent::Close => {
                    if let Some((_, task)) = self.dialling.take() {
                        task.abort();
                    }
                    if let Some(open) = &self.open {
                        let client = &mut inside.client;
                        open.pipe.close(farewell(client.state()), |into| client.poll_stream(into));
                    }
                    self.forget_connection();
                }
                event => inside.tell(event),
            }
        }
    }

    fn forget_connection(&mut self) {
        self.closing.retain(|task| !task.is_finished());
        self.closing.extend(self.open.take().map(|open| open.task));
        if let Some(between) = &mut self.between {
            between.reset();
        }
    }

    fn take_dialled(&mut self, dialled: Result<Dialled, IoError>) {
        let begun = self.dialling.take().map(|(begun, _)| begun);
        let shared = self.shared.clone();
        let (mut inside, now) = (shared.lock(), now());
        match dialled {
            Ok(dialled) => {
                let sync_link = dialled.sync_link();
                let pipe = Arc::new(Pipe::new(Box::new(Wake(shared.bell.clone())), PATIENCE));
                let task = tokio::spawn({
                    let pipe = pipe.clone();
                    async move { pipe.end(dialled.run(&pipe).await) }
                });
                self.open = Some(Open { pipe, task });
                inside.stats.connects += 1;
                inside.stats.connect_time = begun.map(|begun| now.saturating_since(begun));
                inside.client.handle_connected(now, sync_link);
            }
            Err(problem) => {
                inside.stats.failed += 1;
                let hopeless = problem.is_final();
                inside.last_error = Some(Arc::new(problem));
                if hopeless {
                    inside.client.logout(now);
                } else {
                    inside.client.handle_disconnected(now, None);
                }
            }
        }
    }

    fn hand_out(&mut self, now: Timestamp, inside: &mut Inside<G>) {
        let Some(open) = &self.open else { return };
        let Inside { client, stats, .. } = inside;
        match &mut self.between {
            None => {
                let datagram = client.poll_datagram().map(Bytes::copy_from_slice);
                let handed = open.pipe.hand_out(|into| client.poll_stream(into), datagram);
                stats.handed(&handed);
            }
            Some(between) => {
                if let Some(datagram) = client.poll_datagram() {
                    between.send(now, Direction::Up, Link::Sync, datagram);
                }
                let mut stream = vec![];
                if client.poll_stream(&mut stream) {
                    between.send(now, Direction::Up, Link::Reliable, &stream);
                }
                while let Some((direction, link, bytes)) = between.poll(now) {
                    match (direction, link) {
                        (Direction::Down, link) => hear(client, now, link, &bytes),
                        (Direction::Up, Link::Sync) => {
                            let handed = open.pipe.hand_out(|_| false, Some(Bytes::from(bytes)));
                            stats.handed(&handed);
                        }
                        (Direction::Up, Link::Reliable) => stats.handed(&open.pipe.append(&bytes)),
                    }
                }
            }
        }
    }
}

impl<G: Game> Inside<G> {
    fn hear(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        hear(&mut self.client, now, link, bytes);
    }
}

fn hear<G: Game>(client: &mut FlightClient<G>, now: Timestamp, link: Link, bytes: &[u8]) {
    match link {
        Link::Reliable => client.handle_stream(now, bytes),
        Link::Sync => client.handle_datagram(now, bytes),
    }
}

/// Why a client closes.
fn farewell(state: SessionState) -> DisconnectReason {
    match state {
        SessionState::Failed(SessionEnd::Broken) => DisconnectReason::Malformed,
        SessionState::LoggedOut | SessionState::Failed(_) => DisconnectReason::LoggedOut,
        _ => DisconnectReason::Silent,
    }
}

async fn until(due: Option<Timestamp>) {
    match due {
        Some(due) => sleep_until(instant_of(due).into()).await,
        None => core::future::pending().await,
    }
}

async fn dialled(
    dialling: &mut Option<(Timestamp, JoinHandle<Result<Dialled, IoError>>)>,
) -> Result<Dialled, IoError> {
    match dialling {
        Some((_, task)) => task.await.unwrap_or(Err(IoError::Timeout)),
        None => core::future::pending().await,
    }
}
