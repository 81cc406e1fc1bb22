//! The WebSocket link, for whoever cannot have QUIC: reliable only, so sync traffic takes the stream too.
//!
//! A binary message is a piece of the reliable stream, cut anywhere. The close code is 4,000 plus that of the reason:
//! codes below are not an application's. Knows of HTTP who asks for a socket; the pages are the program's.

mod frames;
mod handshake;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use halftrack::SyncLink;
use halftrack::session::DisconnectReason;
use halftrack::wire::control::Login;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::task::coop::consume_budget;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use crate::clock::now;
use crate::door::{Count, Door, Meter, Place, Proof, Refusal};
use crate::login::{LoginReader, TurnedAway};
use crate::pipe::{End, Pipe, Writing};
use crate::rooms::RoomName;
pub(crate) use frames::Refused;
use frames::{Guarded, MAX_PAYLOAD};
use handshake::{Asked, Upgrade};

/// Codes from here on are an application's.
const FIRST_CODE: u16 = 4_000;
/// How long a peer that is turned away may take to read why.
const LINGER: Duration = Duration::from_millis(500);
/// Bytes that the library reads at a time. Messages are short; the library's default of 128 KiB is kept per connection.
const READ_BUFFER: usize = 4 * 1_024;

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

    fn accept(self, name: Option<RoomName>, asked: &Asked, upgrade: Upgrade) -> Response {
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
        let (answer, stream) = upgrade.answer();
        tokio::spawn(async move {
            if let Ok(stream) = stream.await {
                place.shaken();
                self.serve(name, stream, &place).await;
            }
            drop((place, count));
        });
        answer
    }

    async fn serve(
        &self,
        name: Option<RoomName>,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        place: &Place,
    ) {
        let (peer, meter, refused) = (place.address(), place.meter(), Refused::default());
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .max_message_size(Some(MAX_PAYLOAD))
            .max_frame_size(Some(MAX_PAYLOAD));
        let stream = Guarded::new(stream, &meter, &refused);
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        let entered = match name {
            Some(name) => tokio::select! {
                entered = self.enter(&name, &mut socket, place, &meter) => entered,
                reason = refused.reason() => Err(reason.into()),
            },
            None => Err(DisconnectReason::UnknownRoom.into()),
        };
        match entered {
            Ok(None) => self.door.count(|stats| stats.handshakes_failed += 1),
            Ok(Some((pipe, first))) => {
                tracing::debug!(%peer, link = "websocket", "connection made");
                pipe.deliver_stream(first).await;
                let end = run(socket, &pipe, &meter, &refused).await;
                tracing::debug!(%peer, link = "websocket", %end, "connection ended");
                pipe.end(end);
            }
            Err(away) => {
                tracing::debug!(%peer, link = "websocket", reason = %away.reason, "connection turned away");
                self.door.count_closed(away.reason);
                let saying = async {
                    if !away.answer.is_empty() {
                        let _ = socket.send(Message::Binary(away.answer.into())).await;
                    }
                    farewell(socket, away.reason).await;
                };
                let _ = timeout(LINGER, saying).await;
            }
        }
    }

    /// Reads the login, and brings the connection to its room. `None` when the peer has gone.
    async fn enter<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        name: &RoomName,
        socket: &mut WebSocketStream<S>,
        place: &Place,
        meter: &Meter,
    ) -> Result<Option<(Arc<Pipe>, Bytes)>, TurnedAway> {
        let mut first = LoginReader::default();
        let login = timeout(self.door.limits().handshake, read_login(socket, &mut first, meter)).await;
        let Some(login) = login.unwrap_or(Err(DisconnectReason::LoginTimeout))? else { return Ok(None) };
        meter.logged_in();
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

async fn upgrade_default(State(sockets): State<WebSockets>, asked: Asked, upgrade: Upgrade) -> Response {
    sockets.accept(Some(RoomName::default()), &asked, upgrade)
}

async fn upgrade(
    State(sockets): State<WebSockets>,
    Path(name): Path<String>,
    asked: Asked,
    upgrade: Upgrade,
) -> Response {
    // One that cannot be a name is a room that is not there: the code says so, as on every other link.
    sockets.accept(RoomName::new(&name).ok(), &asked, upgrade)
}

fn code_of(reason: DisconnectReason) -> u16 {
    FIRST_CODE + u16::try_from(reason.code()).unwrap_or(0)
}

fn reason_of(code: u16) -> Option<DisconnectReason> {
    code.checked_sub(FIRST_CODE).and_then(|code| DisconnectReason::from_code(u32::from(code)))
}

fn close(reason: DisconnectReason) -> Message {
    Message::Close(Some(CloseFrame { code: code_of(reason).into(), reason: reason.to_string().into() }))
}

/// Moves bytes until the connection ends or is [`Refused`]: the same for the server's sockets and the client's.
pub(crate) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    pipe: &Pipe,
    meter: &Meter,
    refused: &Refused,
) -> End {
    let (mut sink, mut stream) = socket.split();
    let patience = pipe.patience();
    let closing = {
        let mut reading = core::pin::pin!(read(&mut stream, pipe, meter));
        let written = tokio::select! {
            end = &mut reading => match end {
                Ok(reason) => return End::Theirs(reason),
                Err(reason) => {
                    // The rest of a flood is neither parsed nor counted again.
                    refused.set(reason);
                    Some(reason)
                }
            },
            reason = write(&mut sink, pipe) => reason,
            reason = refused.reason() => Some(reason),
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
    // They are halves of one socket: this gives it back.
    if let Ok(socket) = sink.reunite(stream) {
        let _ = timeout(patience.linger, farewell(socket, closing)).await;
    }
    End::Ours(closing)
}

/// Writes the close frame, ends the writing half, and reads until the peer has closed too. Without the reading a socket is
/// dropped with unread bytes: the system then resets the connection, and drops a close frame that has not arrived.
/// The end of the writing half lets a peer go at once that waits for it: a refused peer gets no other answer.
///
/// Give it a timeout: a refused peer is read no further than [`Guarded`] allows, and then has that long to read the close
/// frame.
async fn farewell<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    reason: DisconnectReason,
) {
    let _ = socket.send(close(reason)).await;
    let _ = socket.get_mut().shutdown().await;
    while let Some(Ok(message)) = socket.next().await {
        if message.is_close() {
            break;
        }
        consume_budget().await;
    }
}

/// The first frame, which is to be a login. `None` when the peer has gone.
async fn read_login<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    first: &mut LoginReader,
    meter: &Meter,
) -> Result<Option<Login>, DisconnectReason> {
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(bytes) => {
                meter.stream(&bytes)?;
                if let Some(login) = first.take(&bytes)? {
                    return Ok(Some(login));
                }
            }
            Message::Close(_) => break,
            Message::Text(_) => return Err(DisconnectReason::Malformed),
            Message::Ping(bytes) | Message::Pong(bytes) => meter.message(bytes.len())?,
            Message::Frame(_) => {}
        }
        consume_budget().await;
    }
    Ok(None)
}

async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    pipe: &Pipe,
    meter: &Meter,
) -> Result<Option<DisconnectReason>, DisconnectReason> {
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Binary(bytes) => {
                meter.stream(&bytes)?;
                pipe.deliver_stream(bytes).await;
            }
            Message::Close(close) => return Ok(close.and_then(|close| reason_of(close.code.into()))),
            Message::Text(_) => return Err(DisconnectReason::Malformed),
            // The library answers it.
            Message::Ping(bytes) => meter.message(bytes.len())?,
            Message::Pong(bytes) => {
                meter.message(bytes.len())?;
                pipe.take_pong(now(), &bytes);
            }
            Message::Frame(_) => {}
        }
        // Messages that are buffered already cost no budget to read: without this one socket could keep a thread.
        consume_budget().await;
    }
    Ok(None)
}

/// Gives the reason for which to close, or none when the socket is gone.
async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    pipe: &Pipe,
) -> Option<DisconnectReason> {
    let (patience, mut buffer) = (pipe.patience(), vec![]);
    loop {
        let writing = pipe.next_stream(&mut buffer).await;
        let limit = if writing == Writing::Go { patience.stall } else { patience.linger };
        let sending = async {
            for piece in buffer.chunks(MAX_PAYLOAD) {
                sink.feed(Message::Binary(Bytes::copy_from_slice(piece))).await?;
            }
            // Behind what is written anyway: a ping costs no packet of its own.
            if let Some(ping) = pipe.next_ping(now()) {
                sink.feed(Message::Ping(Bytes::copy_from_slice(&ping))).await?;
            }
            sink.flush().await
        };
        let written = timeout(limit, sending).await;
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
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::pipe::{Bell, Patience, Urgency};

    struct Silent;

    impl Bell for Silent {
        fn ring(&self, _: Urgency) {}
    }

    #[tokio::test]
    async fn a_long_stream_is_cut_into_messages_that_the_other_side_takes() {
        let patience = Patience { stall: Duration::from_secs(9), linger: Duration::from_secs(9) };
        let (pipe, meter, refused) =
            (Pipe::new(Box::new(Silent), patience), Meter::default(), Refused::default());
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let client = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
        // As much as a session keeps to say again after a cut.
        pipe.append(&[7; 64 * 1_024]);
        pipe.close(DisconnectReason::LoggedOut, |_| false);
        let theirs = Guarded::new(theirs, &meter, &refused);
        let mut server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
        let mut lengths = vec![];
        let reading = async {
            while let Some(Ok(Message::Binary(bytes))) = server.next().await {
                lengths.push(bytes.len());
            }
        };
        let written = async {
            let (mut sink, _stream) = client.split();
            write(&mut sink, &pipe).await
        };
        let (_, reason) = tokio::join!(reading, written);
        assert_eq!((reason, lengths), (Some(DisconnectReason::LoggedOut), vec![MAX_PAYLOAD; 4]));
    }

    #[tokio::test]
    async fn a_refused_peer_reads_its_close_frame_and_then_the_end_while_the_server_still_waits() {
        let patience = Patience { stall: Duration::from_secs(9), linger: Duration::from_secs(9) };
        let (pipe, meter, refused) =
            (Pipe::new(Box::new(Silent), patience), Meter::default(), Refused::default());
        let (mut peer, stream) = tokio::io::duplex(1 << 10);
        let stream = Guarded::new(stream, &meter, &refused);
        let server = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        let mut running = core::pin::pin!(run(server, &pipe, &meter, &refused));
        // A continuation of nothing.
        peer.write_all(&[0x00, 0x80, 0, 0, 0, 0]).await.unwrap();
        let mut heard = vec![];
        tokio::select! {
            end = &mut running => panic!("{end:?}: its peer has not closed"),
            read = peer.read_to_end(&mut heard) => assert!(read.is_ok()),
        }
        let code = code_of(DisconnectReason::Malformed).to_be_bytes();
        assert_eq!((heard[0], &heard[2..4]), (0x88, &code[..]), "the close frame, and nothing before it");
        drop(peer);
        assert_eq!(running.await, End::Ours(DisconnectReason::Malformed));
    }

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
