//! The QUIC link: one ordered stream and datagrams, as WebTransport for browsers or raw under our own protocol name.
//!
//! A client opens the one stream. On a raw connection it begins with the preamble:
//!
//! ```text
//! length     1   of the room's name; zero means the room of those who ask for none
//! name           length bytes
//! ```
//!
//! This is the only file that sees the transport library's streams; it moves bytes between them and a [`Pipe`].

use core::future::{Future, pending};
use core::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use halftrack::SyncLink;
use halftrack::session::DisconnectReason;
use halftrack::wire::control::Login;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{IdleTimeout, TransportConfig, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use tokio::time::{sleep, timeout};
use web_transport_quinn::{RecvStream, SendStream, Session, SessionError, WebTransportError};

use crate::certificate::{Certificate, Shown, Trust};
use crate::door::Meter;
use crate::endpoint::EndpointConfig;
use crate::error::IoError;
use crate::login::{LoginReader, TurnedAway};
use crate::pipe::{End, Pipe, Writing};
use crate::rooms::RoomName;

/// The protocol name of raw connections. Its number goes up with [`halftrack::wire::control::PROTOCOL`].
pub(crate) const ALPN: &[u8] = b"halftrack/1";
/// That of WebTransport.
pub(crate) const ALPN_WEB: &[u8] = b"h3";
/// As much of the stream is read at once as the longest message.
const MAX_READ: usize = 4_100;

/// The same on both sides.
fn transport(idle: Duration) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        // Ours, and what a browser needs around it.
        .max_concurrent_bidi_streams(VarInt::from_u32(4))
        .max_concurrent_uni_streams(VarInt::from_u32(8))
        // Longer than a session is silent before it is given up: the session has the say.
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        // What a peer may make us keep: a stream that the room has not taken yet, and datagrams of a tick or two.
        .stream_receive_window(VarInt::from_u32(32 * 1_024))
        .receive_window(VarInt::from_u32(64 * 1_024))
        .datagram_receive_buffer_size(Some(64 * 1_024))
        // What a peer that does not read makes us keep. Of datagrams, only the newest are worth sending.
        .send_window(64 * 1_024)
        .datagram_send_buffer_size(3 * SyncLink::DATAGRAM_BYTES)
        // Nothing of ours is longer than what fits on every path.
        .mtu_discovery_config(None);
    transport
}

pub(crate) fn server_config(
    certificate: &Certificate,
    endpoint: &EndpointConfig,
) -> Result<quinn::ServerConfig, IoError> {
    let tls = certificate.tls(&[ALPN, ALPN_WEB])?;
    let crypto = QuicServerConfig::try_from(tls).map_err(|problem| IoError::Certificate(problem.into()))?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config
        .transport_config(Arc::new(transport(endpoint.idle)))
        .migration(endpoint.migration)
        // What comes before it is decided who may come in: that is decided at once, so nobody waits long, and what is kept
        // for them meanwhile need not be a hundred megabytes.
        .max_incoming(1_024)
        .incoming_buffer_size(16 * 1_024)
        .incoming_buffer_size_total(4 << 20);
    Ok(config)
}

/// With keys that last as long as the certificate: whoever was connected to a process that is no more is told so by the
/// next one, in one round trip, and need not find out by silence.
pub(crate) fn endpoint_config(certificate: &Certificate) -> quinn::EndpointConfig {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, certificate.secret());
    let derive = |what: &str| hmac::sign(&secret, what.as_bytes());
    let reset = hmac::Key::new(hmac::HMAC_SHA256, derive("stateless reset").as_ref());
    let ids = derive("connection ids").as_ref().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mut config = quinn::EndpointConfig::new(Arc::new(reset));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(ids)));
    config
}

pub(crate) fn client_config(trust: &Trust, idle: Duration) -> Result<(quinn::ClientConfig, Shown), IoError> {
    let (tls, shown) = trust.tls(ALPN)?;
    let crypto = QuicClientConfig::try_from(tls).map_err(|problem| IoError::Handshake(problem.into()))?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = transport(idle);
    // Until it is measured, a round trip is taken for this: a server that is just coming up is asked again after 0.3,
    // 0.9 and 2.1 s, not after 1 and 3.
    transport.initial_rtt(Duration::from_millis(100));
    config.transport_config(Arc::new(transport));
    Ok((config, shown))
}

/// Writes which room is meant.
pub(crate) async fn write_preamble(send: &mut SendStream, room: &RoomName) -> Result<(), IoError> {
    let name = room.as_str().as_bytes();
    let mut preamble = vec![u8::try_from(name.len()).unwrap_or(0)];
    preamble.extend_from_slice(name);
    send.write_all(&preamble).await.map_err(|problem| IoError::Handshake(problem.into()))
}

/// Reads which room is meant.
pub(crate) async fn read_preamble(recv: &mut RecvStream) -> Result<RoomName, DisconnectReason> {
    let malformed = |_| DisconnectReason::Malformed;
    let mut length = [0];
    recv.read_exact(&mut length).await.map_err(malformed)?;
    let mut name = [0; RoomName::MAX_BYTES];
    let [length] = length.map(usize::from);
    let name = name.get_mut(..length).ok_or(DisconnectReason::Malformed)?;
    if name.is_empty() {
        return Ok(RoomName::default());
    }
    recv.read_exact(name).await.map_err(malformed)?;
    let name = core::str::from_utf8(name).map_err(|_| DisconnectReason::Malformed)?;
    RoomName::new(name).map_err(|_| DisconnectReason::Malformed)
}

/// A connection with its one stream.
pub(crate) struct QuicLink {
    pub(crate) session: Session,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    /// What has been read of the stream, for the room.
    pub(crate) first: LoginReader,
}

impl QuicLink {
    /// Reads the login. `None` when the stream ends before it, or the connection is gone.
    pub(crate) async fn read_login(&mut self, meter: &Meter) -> Result<Option<Login>, DisconnectReason> {
        while let Ok(Some(chunk)) = self.recv.read_chunk(MAX_READ, true).await {
            meter.stream(&chunk.bytes)?;
            if let Some(login) = self.first.take(&chunk.bytes)? {
                return Ok(Some(login));
            }
        }
        Ok(None)
    }

    /// Says why there is no room, and closes.
    pub(crate) async fn turn_away(mut self, away: TurnedAway, linger: Duration) {
        let written = timeout(linger, self.send.write_all(&away.answer)).await;
        if written.is_ok() {
            finish(&mut self.send, linger).await;
        }
        close(&self.session, away.reason, linger).await;
    }

    /// Moves bytes until the connection ends, or until `watch` gives a reason to close it.
    pub(crate) async fn run(
        mut self,
        pipe: &Pipe,
        meter: &Meter,
        watch: impl Future<Output = DisconnectReason>,
    ) -> End {
        let first = self.first.into_bytes();
        if !first.is_empty() {
            pipe.deliver_stream(first).await;
        }
        let linger = pipe.patience().linger;
        let session = &self.session;
        let mut reading = pin!(async {
            // A closed connection still holds the bytes that arrived before its end, such as a refusal or a logout. The
            // stream gives them first and then ends; nothing else may end the reading before it.
            let read = tokio::select! {
                read = read_stream(&mut self.recv, pipe, meter) => read,
                reason = read_datagrams(session, pipe, meter) => Err(reason),
                reason = watch => Err(reason),
                () = long_closed(session, linger) => Ok(()),
            };
            if let Err(reason) = read {
                close(session, reason, linger).await;
                return End::Ours(reason);
            }
            // The end of a stream comes before the end of its connection, which says why.
            let _ = timeout(linger, session.closed()).await;
            end_of(session)
        });
        let written = tokio::select! {
            end = write_stream(session, &mut self.send, pipe) => end,
            end = write_datagrams(session, pipe) => end,
            end = &mut reading => Some(end),
        };
        let end = match written {
            Some(end) => end,
            // The peer takes no more. Its last messages may still be there to read.
            None => timeout(linger, reading).await.unwrap_or_else(|_| end_of(session)),
        };
        // Whatever ended it: the peer is not left in doubt.
        close(&self.session, DisconnectReason::LoggedOut, linger).await;
        end
    }
}

/// Closes, if that has not been done, and gives the peer some time to hear it.
pub(crate) async fn close(session: &Session, reason: DisconnectReason, linger: Duration) {
    session.close(reason.code(), reason.to_string().as_bytes());
    if timeout(linger, session.closed()).await.is_err() {
        // A WebTransport session waits for its peer to close, for as long as the round trips that the peer makes it see.
        quinn::Connection::close(session, VarInt::from_u32(0), b"");
    }
}

/// Waits until a connection has been closed for `linger`.
async fn long_closed(session: &Session, linger: Duration) {
    session.closed().await;
    sleep(linger).await;
}

/// The end of a connection that its peer or the network ended.
fn end_of(session: &Session) -> End {
    End::Theirs(session.close_reason().as_ref().and_then(reason_of))
}

/// What the peer gave as its reason.
fn reason_of(error: &SessionError) -> Option<DisconnectReason> {
    match error {
        SessionError::WebTransportError(WebTransportError::Closed(code, _)) => {
            DisconnectReason::from_code(*code)
        }
        _ => None,
    }
}

async fn read_stream(recv: &mut RecvStream, pipe: &Pipe, meter: &Meter) -> Result<(), DisconnectReason> {
    while let Ok(Some(chunk)) = recv.read_chunk(MAX_READ, true).await {
        meter.stream(&chunk.bytes)?;
        pipe.deliver_stream(chunk.bytes).await;
    }
    Ok(())
}

/// Gives a reason to close, and nothing else: a connection that is gone shows at its stream, behind the unread bytes.
async fn read_datagrams(session: &Session, pipe: &Pipe, meter: &Meter) -> DisconnectReason {
    loop {
        match session.read_datagram().await {
            Ok(datagram) => {
                if let Err(reason) = meter.message(datagram.len()) {
                    return reason;
                }
                pipe.deliver_datagram(datagram);
            }
            Err(_) if session.close_reason().is_some() => return pending().await,
            // By WebTransport, a datagram of another session.
            Err(_) => return DisconnectReason::Malformed,
        }
    }
}

/// Ends the stream, and waits until the peer has all of it: a connection that is closed forgets what has not arrived.
async fn finish(send: &mut SendStream, linger: Duration) {
    let _ = send.finish();
    let _ = timeout(linger, send.stopped()).await;
}

/// Gives the end that it made, or none when the peer takes no more.
async fn write_stream(session: &Session, send: &mut SendStream, pipe: &Pipe) -> Option<End> {
    let (patience, mut buffer) = (pipe.patience(), vec![]);
    loop {
        let writing = pipe.next_stream(&mut buffer).await;
        let limit = if writing == Writing::Go { patience.stall } else { patience.linger };
        let written = timeout(limit, send.write_all(&buffer)).await;
        if let Writing::Close(reason) = writing {
            if written.is_ok() {
                finish(send, patience.linger).await;
            }
            close(session, reason, patience.linger).await;
            return Some(End::Ours(reason));
        }
        match written {
            Ok(Ok(())) => pipe.set_round_trip(session.rtt()),
            Ok(Err(_)) => return None,
            Err(_) => {
                close(session, DisconnectReason::TooSlow, patience.linger).await;
                return Some(End::Ours(DisconnectReason::TooSlow));
            }
        }
    }
}

async fn write_datagrams(session: &Session, pipe: &Pipe) -> Option<End> {
    loop {
        let datagram: Bytes = pipe.next_datagram().await;
        // One that cannot be sent is one that was lost; a connection that is gone shows at its stream.
        let _ = session.send_datagram(datagram);
        pipe.set_round_trip(session.rtt());
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use halftrack::wire::control::LoginRefused;

    use super::*;
    use crate::pipe::{Arrived, Bell, Patience, Urgency};

    struct Silent;

    impl Bell for Silent {
        fn ring(&self, _: Urgency) {}
    }

    /// No test waits for it.
    const PATIENCE: Patience = Patience { stall: Duration::from_secs(20), linger: Duration::from_secs(20) };

    /// A server that turns away each connection in the same way, and clients of it.
    struct Refusals {
        certificate: Certificate,
        server: quinn::Endpoint,
        client: quinn::Endpoint,
    }

    impl Refusals {
        fn start() -> Self {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let certificate =
                Certificate::self_signed(&["localhost", "127.0.0.1"], Certificate::MAX_VALIDITY).unwrap();
            let config = server_config(&certificate, &EndpointConfig::default()).unwrap();
            let server = quinn::Endpoint::server(config, any).unwrap();
            Self { certificate, server, client: quinn::Endpoint::client(any).unwrap() }
        }

        /// The link of a client that was turned away. All that the server sent has arrived, and nothing of it was read:
        /// so late does the task of a link run on a busy machine.
        async fn refused(&self, away: TurnedAway) -> QuicLink {
            let turning_away = async {
                let connection = self.server.accept().await.unwrap().await.unwrap();
                let session = Session::raw(connection);
                let (send, mut recv) = session.accept_bi().await.unwrap();
                read_preamble(&mut recv).await.unwrap();
                let link = QuicLink { session, send, recv, first: LoginReader::default() };
                link.turn_away(away, PATIENCE.linger).await;
            };
            let asking = async {
                let trust = Trust::Hashes(vec![self.certificate.hash()]);
                let (config, _) = client_config(&trust, PATIENCE.linger).unwrap();
                let server = self.server.local_addr().unwrap();
                let connection =
                    self.client.connect_with(config, server, "localhost").unwrap().await.unwrap();
                let session = Session::raw(connection);
                let (mut send, recv) = session.open_bi().await.unwrap();
                write_preamble(&mut send, &RoomName::default()).await.unwrap();
                session.closed().await;
                QuicLink { session, send, recv, first: LoginReader::default() }
            };
            tokio::join!(turning_away, asking).1
        }
    }

    /// Runs a client's link to its end, which takes `said` to the server. Gives the stream's bytes and the end.
    async fn heard(link: QuicLink, said: &[u8]) -> (Vec<u8>, End) {
        let pipe = Pipe::new(Box::new(Silent), PATIENCE);
        pipe.append(said);
        let meter = Meter::default();
        let mut running = pin!(link.run(&pipe, &meter, core::future::pending()));
        let (mut bytes, mut end) = (vec![], None);
        while end.is_none() {
            tokio::select! {
                biased;
                ended = &mut running => end = Some(ended),
                () = tokio::task::yield_now() => {}
            }
            let mut arrived = vec![];
            pipe.take(&mut arrived, |_, arrived| arrived);
            for arrived in arrived {
                if let Arrived::Stream(piece) = arrived {
                    bytes.extend_from_slice(&piece);
                }
            }
        }
        (bytes, end.unwrap())
    }

    /// Futures that are ready together are polled in a random order: one try proves nothing.
    const TRIES: usize = 24;

    #[tokio::test]
    async fn a_client_hears_why_its_login_is_refused_before_the_end() {
        let refusals = Refusals::start();
        let answer = TurnedAway::from(LoginRefused::NameTaken).answer;
        for said in [&[][..], b"a heartbeat"] {
            for number in 0..TRIES {
                let link = refusals.refused(LoginRefused::NameTaken.into()).await;
                let heard = heard(link, said).await;
                let end = End::Theirs(Some(DisconnectReason::Refused));
                assert_eq!(heard, (answer.clone(), end), "try {number}, {} bytes to say", said.len());
            }
        }
    }

    /// More than a pipe holds: the rest waits in the transport for the state machine.
    #[tokio::test]
    async fn a_stream_is_read_to_its_end_after_the_connection_is_gone() {
        let refusals = Refusals::start();
        let answer: Vec<u8> = (0..30_000).map(|number: u32| number.to_le_bytes()[0]).collect();
        for said in [&[][..], b"a heartbeat"] {
            let away = TurnedAway { reason: DisconnectReason::Kicked, answer: answer.clone() };
            let (bytes, end) = heard(refusals.refused(away).await, said).await;
            assert_eq!(end, End::Theirs(Some(DisconnectReason::Kicked)));
            assert_eq!(bytes.len(), answer.len(), "with {} bytes to say", said.len());
            assert!(bytes == answer, "in order");
        }
    }
}
