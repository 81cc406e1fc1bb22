//! The WebSocket link, for whoever cannot have QUIC: reliable only, so sync traffic takes the stream too.
//!
//! A binary message is a piece of the reliable stream, cut anywhere. The close code is 4,000 plus that of the reason:
//! codes below are not an application's. Serves HTTP no further than that: the pages are the program's.

use core::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use halftrack::SyncLink;
use halftrack::session::DisconnectReason;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite;

use crate::error::IoError;
use crate::pipe::{End, Pipe, Writing};
use crate::rooms::{RoomName, Rooms};

/// Codes from here on are an application's.
const FIRST_CODE: u16 = 4_000;
/// The longest message that is taken: a client of ours sends far shorter ones.
const MAX_MESSAGE: usize = 16 * 1_024;

/// Serves rooms by WebSocket.
#[derive(Clone)]
pub struct WebSockets {
    rooms: Arc<dyn Rooms>,
    max_connections: usize,
    open: Arc<AtomicUsize>,
}

impl core::fmt::Debug for WebSockets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WebSockets").field("open", &self.connections()).finish_non_exhaustive()
    }
}

impl WebSockets {
    /// Connections to these rooms, `max_connections` at a time.
    pub fn new(rooms: Arc<dyn Rooms>, max_connections: usize) -> Self {
        Self { rooms, max_connections, open: Arc::default() }
    }

    /// `/ws` and `/ws/room/NAME`, to be merged into what else the program serves.
    pub fn routes(&self) -> Router {
        Router::new()
            .route("/ws", get(upgrade_default))
            .route("/ws/room/{name}", get(upgrade))
            .with_state(self.clone())
    }

    /// Connections there are.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn accept(self, name: Option<RoomName>, upgrade: WebSocketUpgrade) -> Response {
        let place = Place::take(&self.open, self.max_connections);
        let Some(place) = place else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
        let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
        upgrade.on_upgrade(async move |socket| {
            self.serve(name, socket).await;
            drop(place);
        })
    }

    async fn serve(&self, name: Option<RoomName>, socket: WebSocket) {
        let room = name.and_then(|name| self.rooms.find(&name)).ok_or(DisconnectReason::UnknownRoom);
        match room.and_then(|room| room.enter(SyncLink::Absent)) {
            Ok(pipe) => pipe.end(run(socket, &pipe).await),
            Err(reason) => {
                let (mut sink, _) = socket.split();
                let _ = timeout(Duration::from_millis(500), sink.send(Message::close(reason))).await;
            }
        }
    }
}

/// A place among those that are open at the same time.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    pub(crate) fn take(open: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |count| (count < most).then_some(count + 1);
        open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(open.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn upgrade_default(State(sockets): State<WebSockets>, upgrade: WebSocketUpgrade) -> Response {
    sockets.accept(Some(RoomName::default()), upgrade)
}

async fn upgrade(
    State(sockets): State<WebSockets>,
    Path(name): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Response {
    // One that cannot be a name is a room that is not there: the code says so, as on every other link.
    sockets.accept(RoomName::new(&name).ok(), upgrade)
}

/// Serves a program's routes by HTTP. Small writes leave at once.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    stop: Arc<Notify>,
    task: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl HttpServer {
    /// How long requests that are being answered may take when it stops.
    const GRACE: Duration = Duration::from_secs(1);

    /// Serves `routes` at `address`; port 0 is any that is free.
    ///
    /// # Errors
    /// When the address cannot be listened on, or there is no runtime. Nothing runs then.
    pub async fn bind(address: SocketAddr, routes: Router) -> Result<Self, IoError> {
        let failed = |source| IoError::listening(address, source);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let listener = listener.tap_io(|socket| {
            // Without it a socket still works, only later.
            let _ = socket.set_nodelay(true);
        });
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let serving =
            axum::serve(listener, routes).with_graceful_shutdown(async move { stopped.notified().await });
        let task = tokio::spawn(async move {
            let _ = serving.into_future().await;
        });
        Ok(Self { address, stop, task: std::sync::Mutex::new(Some(task)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening. Sockets of rooms end with their rooms. Again, it does nothing.
    pub async fn stop(&self) {
        self.stop.notify_one();
        let task = self.task.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(mut task) = task
            && timeout(Self::GRACE, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

/// A message of one of the two libraries.
pub(crate) trait SocketMessage: Sized {
    fn binary(bytes: Bytes) -> Self;
    fn close(reason: DisconnectReason) -> Self;
    fn open(self) -> Opened;
}

/// What a message is to us.
pub(crate) enum Opened {
    Bytes(Bytes),
    Close(Option<u16>),
    /// Answered by the library, or of no use.
    Other,
    /// What nobody of ours sends.
    Text,
}

fn code_of(reason: DisconnectReason) -> u16 {
    FIRST_CODE + u16::try_from(reason.code()).unwrap_or(0)
}

fn reason_of(code: u16) -> Option<DisconnectReason> {
    code.checked_sub(FIRST_CODE).and_then(|code| DisconnectReason::from_code(u32::from(code)))
}

impl SocketMessage for Message {
    fn binary(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }

    fn close(reason: DisconnectReason) -> Self {
        Self::Close(Some(CloseFrame { code: code_of(reason), reason: reason.to_string().into() }))
    }

    fn open(self) -> Opened {
        match self {
            Self::Binary(bytes) => Opened::Bytes(bytes),
            Self::Close(close) => Opened::Close(close.map(|close| close.code)),
            Self::Text(_) => Opened::Text,
            _ => Opened::Other,
        }
    }
}

impl SocketMessage for tungstenite::Message {
    fn binary(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }

    fn close(reason: DisconnectReason) -> Self {
        let close = tungstenite::protocol::CloseFrame {
            code: code_of(reason).into(),
            reason: reason.to_string().into(),
        };
        Self::Close(Some(close))
    }

    fn open(self) -> Opened {
        match self {
            Self::Binary(bytes) => Opened::Bytes(bytes),
            Self::Close(close) => Opened::Close(close.map(|close| close.code.into())),
            Self::Text(_) => Opened::Text,
            _ => Opened::Other,
        }
    }
}

/// Moves bytes until the connection ends: the same for the server's sockets and the client's.
pub(crate) async fn run<S, M, E>(socket: S, pipe: &Pipe) -> End
where
    M: SocketMessage,
    S: Stream<Item = Result<M, E>> + Sink<M>,
{
    let (mut sink, mut stream) = socket.split();
    let patience = pipe.patience();
    let closing = {
        let mut reading = core::pin::pin!(read(&mut stream, pipe));
        let written = tokio::select! {
            end = &mut reading => match end {
                Ok(reason) => return End::Theirs(reason),
                Err(reason) => Some(reason),
            },
            reason = write(&mut sink, pipe) => reason,
        };
        match written {
            Some(reason) => reason,
            None => {
                // The socket is gone; what the peer said last may still be there to read.
                let last = timeout(patience.linger, reading).await;
                return End::Theirs(last.ok().and_then(Result::ok).flatten());
            }
        }
    };
    let farewell = async {
        let _ = sink.send(M::close(closing)).await;
        // The other side answers; a socket that is dropped before that may take our last words with it.
        while let Some(Ok(message)) = stream.next().await {
            if matches!(message.open(), Opened::Close(_)) {
                break;
            }
        }
    };
    let _ = timeout(patience.linger, farewell).await;
    End::Ours(closing)
}

async fn read<M: SocketMessage, E>(
    stream: &mut (impl Stream<Item = Result<M, E>> + Unpin),
    pipe: &Pipe,
) -> Result<Option<DisconnectReason>, DisconnectReason> {
    while let Some(Ok(message)) = stream.next().await {
        match message.open() {
            Opened::Bytes(bytes) => pipe.deliver_stream(bytes).await,
            Opened::Close(code) => return Ok(code.and_then(reason_of)),
            Opened::Other => {}
            Opened::Text => return Err(DisconnectReason::Malformed),
        }
    }
    Ok(None)
}

/// Gives the reason for which to close, or none when the socket is gone.
async fn write<M: SocketMessage>(sink: &mut (impl Sink<M> + Unpin), pipe: &Pipe) -> Option<DisconnectReason> {
    let (patience, mut buffer) = (pipe.patience(), vec![]);
    loop {
        let writing = pipe.next_stream(&mut buffer).await;
        let limit = if writing == Writing::Go { patience.stall } else { patience.linger };
        let written = if buffer.is_empty() {
            Ok(Ok(()))
        } else {
            timeout(limit, sink.send(M::binary(Bytes::copy_from_slice(&buffer)))).await
        };
        match (written, writing) {
            (_, Writing::Close(reason)) => return Some(reason),
            (Err(_), Writing::Go) => return Some(DisconnectReason::TooSlow),
            (Ok(Err(_)), Writing::Go) => return None,
            (Ok(Ok(())), Writing::Go) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_code_that_an_application_may_use() {
        for reason in DisconnectReason::ALL {
            assert!((4_000..5_000).contains(&code_of(reason)));
            assert_eq!(reason_of(code_of(reason)), Some(reason));
        }
        for code in [0, 1_000, 1_006, 4_000, 4_999] {
            assert_eq!(reason_of(code), None);
        }
    }

    #[test]
    fn places_are_given_back() {
        let open = Arc::default();
        let first = Place::take(&open, 1);
        assert!(first.is_some() && Place::take(&open, 1).is_none());
        drop(first);
        assert!(Place::take(&open, 1).is_some());
    }
}
