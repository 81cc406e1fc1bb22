//! The WebSocket link, for whoever cannot have QUIC: reliable only, so sync traffic takes the stream too.
//!
//! A binary message is a piece of the reliable stream, cut anywhere. The close code is 4,000 plus that of the reason:
//! codes below are not an application's. Knows of HTTP who asks for a socket; the pages are the program's.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use halftrack::SyncLink;
use halftrack::session::DisconnectReason;
use halftrack::wire::control::Login;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite;

use crate::door::{Count, Door, Meter, Place, Proof, Refusal};
use crate::login::{LoginReader, TurnedAway};
use crate::origin::Origin;
use crate::pipe::{End, Pipe, Writing};
use crate::rooms::RoomName;

/// Codes from here on are an application's.
const FIRST_CODE: u16 = 4_000;
/// The longest message that is taken: a client of ours sends far shorter ones.
const MAX_MESSAGE: usize = 16 * 1_024;

/// Serves rooms by WebSocket.
///
/// A browser sends the origin of the page with its request: it is let in when that is the host and port which
/// it talks to, or one of [`Door::set_origins`]. Without this, any page that a player visits could play in
/// the player's name.
#[derive(Clone)]
pub struct WebSockets {
    door: Door,
    open: Arc<AtomicUsize>,
}

impl core::fmt::Debug for WebSockets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WebSockets").field("open", &self.connections()).finish_non_exhaustive()
    }
}

impl WebSockets {
    /// Connections through `door`.
    pub fn new(door: Door) -> Self {
        Self { door, open: Arc::default() }
    }

    /// `/ws` and `/ws/room/NAME`, to be merged into what else the program serves by an
    /// [`HttpServer`](crate::HttpServer). Another server must add the peer's address to requests, as
    /// `into_make_service_with_connect_info` does.
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

    fn accept(self, name: Option<RoomName>, asked: &Asked, upgrade: WebSocketUpgrade) -> Response {
        let peer = asked.peer;
        if !asked.is_welcome(&self.door) {
            self.door.count(|stats| stats.origin += 1);
            tracing::debug!(%peer, origin = ?asked.origin, "WebSocket refused: a page of another origin");
            let why = "this page is of another origin: the server's operator can allow it\n";
            return (StatusCode::FORBIDDEN, why).into_response();
        }
        let place = match self.door.admit(peer.ip(), Proof::Shown) {
            Ok(place) => place,
            Err(refusal) => {
                tracing::debug!(%peer, %refusal, "WebSocket refused");
                return (status_of(refusal), format!("{refusal}\n")).into_response();
            }
        };
        let count = Count::one(&self.open);
        let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
        upgrade.on_upgrade(async move |socket| {
            place.shaken();
            self.serve(name, socket, &place).await;
            drop((place, count));
        })
    }

    async fn serve(&self, name: Option<RoomName>, mut socket: WebSocket, place: &Place) {
        let (peer, meter) = (place.address(), place.meter());
        let entered = match name {
            Some(name) => self.enter(&name, &mut socket, place, &meter).await,
            None => Err(DisconnectReason::UnknownRoom.into()),
        };
        match entered {
            Ok(None) => self.door.count(|stats| stats.handshakes_failed += 1),
            Ok(Some((pipe, first))) => {
                tracing::debug!(%peer, link = "websocket", "connection made");
                pipe.deliver_stream(first).await;
                let end = run(socket, &pipe, &meter).await;
                tracing::debug!(%peer, link = "websocket", %end, "connection ended");
                pipe.end(end);
            }
            Err(away) => {
                tracing::debug!(%peer, link = "websocket", reason = %away.reason, "connection turned away");
                self.door.count_closed(away.reason);
                let farewell = async {
                    if !away.answer.is_empty() {
                        let _ = socket.send(Message::Binary(away.answer.into())).await;
                    }
                    let _ = socket.send(Message::close(away.reason)).await;
                };
                let _ = timeout(Duration::from_millis(500), farewell).await;
            }
        }
    }

    /// Reads the login, and brings the connection to its room. `None` when the peer has gone.
    async fn enter(
        &self,
        name: &RoomName,
        socket: &mut WebSocket,
        place: &Place,
        meter: &Meter,
    ) -> Result<Option<(Arc<Pipe>, Bytes)>, TurnedAway> {
        let mut first = LoginReader::default();
        let login = timeout(self.door.limits().handshake, read_login(socket, &mut first, meter)).await;
        let Some(login) = login.unwrap_or(Err(DisconnectReason::LoginTimeout))? else { return Ok(None) };
        let pipe = self.door.enter(name, &login, SyncLink::Absent, place)?;
        Ok(Some((pipe, first.into_bytes())))
    }
}

fn status_of(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::Banned | Refusal::Unproven => StatusCode::FORBIDDEN,
        Refusal::TooFast | Refusal::AddressFull => StatusCode::TOO_MANY_REQUESTS,
        Refusal::Full => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// What a request says about who makes it.
struct Asked {
    peer: SocketAddr,
    host: Option<String>,
    /// Only browsers send one, and no page can change it.
    origin: Option<String>,
}

impl Asked {
    fn is_welcome(&self, door: &Door) -> bool {
        let Some(origin) = &self.origin else { return true };
        let own = |origin: &Origin| self.host.as_ref().is_some_and(|host| origin.is_of(host));
        origin.parse().is_ok_and(|origin| own(&origin) || door.allows_origin(&origin))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| *peer);
        // Whoever has no address could not be counted.
        let Some(peer) = peer else {
            let why = "this server does not say where its peers are\n";
            return Err((StatusCode::INTERNAL_SERVER_ERROR, why).into_response());
        };
        // What is no text is some origin, and none of ours.
        let text = |name| {
            let value: Option<&HeaderValue> = parts.headers.get(name);
            value.map(|value| value.to_str().unwrap_or("").to_owned())
        };
        Ok(Self { peer, host: text(header::HOST), origin: text(header::ORIGIN) })
    }
}

async fn upgrade_default(
    State(sockets): State<WebSockets>,
    asked: Asked,
    upgrade: WebSocketUpgrade,
) -> Response {
    sockets.accept(Some(RoomName::default()), &asked, upgrade)
}

async fn upgrade(
    State(sockets): State<WebSockets>,
    Path(name): Path<String>,
    asked: Asked,
    upgrade: WebSocketUpgrade,
) -> Response {
    // One that cannot be a name is a room that is not there: the code says so, as on every other link.
    sockets.accept(RoomName::new(&name).ok(), &asked, upgrade)
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
    /// Answered by the library, or of no use; so many bytes.
    Other(usize),
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
            other => Opened::Other(other.into_data().len()),
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
            other => Opened::Other(other.into_data().len()),
        }
    }
}

/// Moves bytes until the connection ends: the same for the server's sockets and the client's.
pub(crate) async fn run<S, M, E>(socket: S, pipe: &Pipe, meter: &Meter) -> End
where
    M: SocketMessage,
    S: Stream<Item = Result<M, E>> + Sink<M>,
{
    let (mut sink, mut stream) = socket.split();
    let patience = pipe.patience();
    let closing = {
        let mut reading = core::pin::pin!(read(&mut stream, pipe, meter));
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

/// `None` when the peer has gone.
async fn read_login(
    socket: &mut WebSocket,
    first: &mut LoginReader,
    meter: &Meter,
) -> Result<Option<Login>, DisconnectReason> {
    while let Some(Ok(message)) = socket.next().await {
        match message.open() {
            Opened::Bytes(bytes) => {
                meter.stream(&bytes)?;
                if let Some(login) = first.take(&bytes)? {
                    return Ok(Some(login));
                }
            }
            Opened::Other(bytes) => meter.message(bytes)?,
            Opened::Close(_) => break,
            Opened::Text => return Err(DisconnectReason::Malformed),
        }
    }
    Ok(None)
}

async fn read<M: SocketMessage, E>(
    stream: &mut (impl Stream<Item = Result<M, E>> + Unpin),
    pipe: &Pipe,
    meter: &Meter,
) -> Result<Option<DisconnectReason>, DisconnectReason> {
    while let Some(Ok(message)) = stream.next().await {
        match message.open() {
            Opened::Bytes(bytes) => {
                meter.stream(&bytes)?;
                pipe.deliver_stream(bytes).await;
            }
            Opened::Close(code) => return Ok(code.and_then(reason_of)),
            Opened::Other(bytes) => meter.message(bytes)?,
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
}
