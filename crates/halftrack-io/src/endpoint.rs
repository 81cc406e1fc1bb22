//! The listening side of QUIC: browsers and native clients on one UDP port, each brought to the room it asks for.
//!
//! Knows the handshake and the way to a room, not what is said in it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::http::{StatusCode, header};
use halftrack::SyncLink;
use halftrack::session::DisconnectReason;
use halftrack::wire::control::Login;
use quinn::crypto::rustls::HandshakeData;
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, VarInt, ZeroRttAccepted};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use web_transport_quinn::{Request, Session};

use crate::certificate::Certificate;
use crate::clock::now;
use crate::door::{Count, Door, Meter, Place, Proof, Refusal};
use crate::error::IoError;
use crate::listen;
use crate::login::LoginReader;
use crate::origin::Origin;
use crate::quic::{self, QuicLink};
use crate::rooms::RoomName;
use crate::socket::{Handshake, Socket, Unproven};
use crate::watch::Watch;

/// What an [`Endpoint`] is built from. Whom it lets in is up to its [`Door`].
#[derive(Clone, Copy, Debug)]
pub struct EndpointConfig {
    /// After so long without a packet a connection is gone. Default 10 s, longer than a room's own silence of 6 s, which
    /// says why.
    pub idle: Duration,
    /// Whether a connection may go on from another address: a phone that changes networks, a router that forgets its
    /// table. Default true. The new address is checked like that of a new arrival. Otherwise packets from there are
    /// dropped, and the client has to connect again, after some seconds of silence.
    pub migration: bool,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self { idle: Duration::from_secs(10), migration: true }
    }
}

/// A UDP port that serves rooms by WebTransport and by raw QUIC.
#[derive(Debug)]
pub struct Endpoint {
    /// Until it stops.
    quic: Mutex<Option<quinn::Endpoint>>,
    /// The port is free when nobody has this any more.
    socket: Weak<dyn AsyncUdpSocket>,
    proofs: Arc<Proofs>,
    config: EndpointConfig,
    address: SocketAddr,
    open: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Endpoint {
    /// How long connections may take to end when it stops: what they linger, and a little.
    const GRACE: Duration = Duration::from_secs(2);
    /// How often it looks whether they have.
    const LOOK: Duration = Duration::from_millis(5);

    /// Listens at `address` (port 0 is any that is free, `[::]` is IPv6 and IPv4) and brings whoever comes
    /// through `door` to a room.
    ///
    /// # Errors
    /// When the address cannot be listened on, the certificate cannot be used, or there is no runtime. Nothing runs then.
    pub fn bind(
        address: SocketAddr,
        certificate: &Certificate,
        door: Door,
        config: EndpointConfig,
    ) -> Result<Self, IoError> {
        let runtime = Handle::try_current().map_err(|_| IoError::NoRuntime)?;
        let server = quic::server_config(certificate, &config)?;
        let failed = |source| IoError::listening(address, source);
        let socket = listen::udp(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let socket = TokioRuntime.wrap_udp_socket(socket).map_err(failed)?;
        let (quic_config, held) = (quic::endpoint_config(certificate), Arc::downgrade(&socket));
        let socket = Arc::new(Socket::new(socket));
        let proofs = Arc::new(Proofs {
            unproven: socket.unproven(),
            always: AtomicBool::new(!certificate.fits_unproven()),
        });
        let quic = quinn::Endpoint::new_with_abstract_socket(
            quic_config,
            Some(server),
            socket,
            Arc::new(TokioRuntime),
        );
        let quic = quic.map_err(failed)?;
        let open = Arc::default();
        let accepting = runtime.spawn(accept(quic.clone(), door, Arc::clone(&open), Arc::clone(&proofs)));
        tracing::info!(%address, "listening for QUIC");
        Ok(Self { quic: Mutex::new(Some(quic)), socket: held, proofs, config, address, open, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections there are, those that are still shaking hands included.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Shows `certificate` to whoever comes from here on.
    ///
    /// # Errors
    /// When it cannot be used. The one before it is still shown.
    pub fn set_certificate(&self, certificate: &Certificate) -> Result<(), IoError> {
        let server = quic::server_config(certificate, &self.config)?;
        if let Some(quic) = &*self.quic.lock().unwrap_or_else(PoisonError::into_inner) {
            quic.set_server_config(Some(server));
            self.proofs.always.store(!certificate.fits_unproven(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Ends it, in bounded time: nobody new comes in; connections whose rooms have stopped hear why; what is left after
    /// 2 s is cut. Stop the rooms first. Again, it does nothing.
    pub async fn stop(&self) {
        self.accepting.abort();
        let Some(quic) = self.take() else { return };
        // Or handshakes that have not begun would wait.
        quic.set_server_config(None);
        self.until(|| self.connections() == 0).await;
        close(&quic);
        let _ = timeout(Self::GRACE, quic.wait_idle()).await;
        drop(quic);
        // Whoever waits for the port can have it when this returns.
        self.until(|| self.socket.strong_count() == 0).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        let wait = async {
            while !is_so() {
                tokio::time::sleep(Self::LOOK).await;
            }
        };
        let _ = timeout(Self::GRACE, wait).await;
    }

    fn take(&self) -> Option<quinn::Endpoint> {
        self.quic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some(quic) = self.take() {
            close(&quic);
        }
    }
}

fn close(quic: &quinn::Endpoint) {
    let reason = DisconnectReason::Stopped;
    quic.close(VarInt::from_u32(reason.code()), reason.to_string().as_bytes());
}

/// Which addresses have to be proven before their handshake, and which are during it.
struct Proofs {
    unproven: Arc<Unproven>,
    /// The certificate does not fit into what an unproven address may be sent.
    always: AtomicBool,
}

impl core::fmt::Debug for Proofs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Proofs").field("always", &self.always).finish_non_exhaustive()
    }
}

impl Proofs {
    /// Lets `incoming` begin its handshake. An address that is not proven yet is held to its allowance.
    fn admit(&self, incoming: &quinn::Incoming, door: &Door) -> Result<(Place, Option<Handshake>), Refusal> {
        let peer = incoming.remote_address();
        if incoming.remote_address_validated() {
            return Ok((door.admit(peer.ip(), Proof::Shown)?, None));
        }
        let admitted = if self.always.load(Ordering::Relaxed) {
            None
        } else {
            let place = door.admit(peer.ip(), Proof::Missing)?;
            self.unproven.begin(now(), peer).map(|handshake| (place, Some(handshake)))
        };
        admitted.ok_or_else(|| {
            door.count(|stats| stats.retries += 1);
            Refusal::Unproven
        })
    }
}

async fn accept(quic: quinn::Endpoint, door: Door, open: Arc<AtomicUsize>, proofs: Arc<Proofs>) {
    while let Some(incoming) = quic.accept().await {
        match proofs.admit(&incoming, &door) {
            Ok((place, handshake)) => {
                let count = Count::one(&open);
                let welcome = welcome(incoming, door.clone(), place, handshake);
                tokio::spawn(async move {
                    welcome.await;
                    drop(count);
                });
            }
            Err(refusal) => {
                let peer = incoming.remote_address().ip();
                tracing::debug!(%peer, %refusal, "QUIC connection refused");
                turn_away(incoming, refusal);
            }
        }
    }
}

/// Before anything is spent on it.
fn turn_away(incoming: quinn::Incoming, refusal: Refusal) {
    match refusal {
        // Nobody who has not shown an address has used up his retry.
        Refusal::Unproven => drop(incoming.retry()),
        // An honest peer sends its first packet again within a second, and may get in then; a flood gets no
        // answers.
        Refusal::TooFast => incoming.ignore(),
        Refusal::Banned | Refusal::Full | Refusal::AddressFull => incoming.refuse(),
    }
}

async fn welcome(incoming: quinn::Incoming, door: Door, place: Place, handshake: Option<Handshake>) {
    // The connection from its first packet on, and not only when its handshake is done: it is watched from there.
    let begun = incoming.accept().ok().and_then(|connecting| connecting.into_0rtt().ok());
    let Some((connection, shaken)) = begun else {
        door.count(|stats| stats.handshakes_failed += 1);
        return;
    };
    let meter = place.meter();
    let watch = Watch::new(&connection, &meter, &place);
    let arrived = tokio::select! {
        biased;
        reason = watch.newcomer() => Err(Miss::Flood(reason)),
        arrived = arrive(&connection, shaken, handshake, &door, &place, &meter) => arrived,
    };
    place.shaken();
    match arrived {
        Ok(arrival) => serve(arrival, &door, &place, &meter, &watch).await,
        Err(miss) => {
            tracing::debug!(peer = %place.address(), link = "quic", %miss, "connection came to nothing");
            miss.end(&connection, &door).await;
        }
    }
    // Letting go of a connection is not enough: a WebTransport session has a task of its own that holds on to it, for as
    // long as the peer likes and counted nowhere. A connection that is closed stays as it is.
    connection.close(VarInt::from_u32(0), b"");
}

/// A connection that has sent its login.
struct Arrival {
    room: RoomName,
    login: Login,
    link: Box<QuicLink>,
}

/// Why a connection ends before its login.
#[derive(Debug, thiserror::Error)]
enum Miss {
    #[error("the handshake failed")]
    Failed,
    #[error("the handshake took too long")]
    Slow,
    #[error("{1}")]
    Away(Box<Session>, DisconnectReason),
    /// It is closed at once, without time to hear why.
    #[error("{0}")]
    Flood(DisconnectReason),
}

impl Miss {
    async fn end(self, connection: &quinn::Connection, door: &Door) {
        match self {
            Self::Failed => door.count(|stats| stats.handshakes_failed += 1),
            Self::Slow => door.count(|stats| stats.handshake_timeouts += 1),
            Self::Away(session, reason) => {
                door.count_closed(reason);
                quic::close(&session, reason, LINGER).await;
            }
            Self::Flood(reason) => {
                door.count_closed(reason);
                connection.close(VarInt::from_u32(reason.code()), reason.to_string().as_bytes());
            }
        }
    }
}

/// Brings a connection to its login: the handshake, the name of the room, the first frame.
async fn arrive(
    connection: &quinn::Connection,
    shaken: ZeroRttAccepted,
    handshake: Option<Handshake>,
    door: &Door,
    place: &Place,
    meter: &Meter,
) -> Result<Arrival, Miss> {
    let meeting = async {
        // Nothing is sent or read before the handshake is done.
        shaken.await;
        if let Some(handshake) = handshake
            && connection.close_reason().is_none()
        {
            handshake.done();
        }
        meet(connection, door).await.ok_or(Miss::Failed)
    };
    let (session, asked) = timeout(door.limits().handshake, meeting).await.unwrap_or(Err(Miss::Slow))?;
    place.shaken();
    let (room, mut link) = asked.map_err(|reason| Miss::Away(Box::new(session.clone()), reason))?;
    let login = timeout(door.limits().handshake, link.read_login(meter)).await;
    match login.unwrap_or(Err(DisconnectReason::LoginTimeout)) {
        Ok(Some(login)) => Ok(Arrival { room, login, link }),
        Ok(None) => Err(Miss::Failed),
        Err(reason) => Err(Miss::Away(Box::new(session), reason)),
    }
}

/// The room that a peer asks for, and its stream; or why it gets none.
type Asked = Result<(RoomName, Box<QuicLink>), DisconnectReason>;

async fn meet(connection: &quinn::Connection, door: &Door) -> Option<(Session, Asked)> {
    if connection.close_reason().is_some() {
        return None;
    }
    let shaken = connection.handshake_data()?.downcast::<HandshakeData>().ok()?;
    let (session, asked) = if shaken.protocol.as_deref() == Some(quic::ALPN_WEB) {
        let request = Request::accept(connection.clone()).await.ok()?;
        if !is_welcome(&request, door) {
            refuse_page(request, door).await;
            return None;
        }
        let room = RoomName::of_path(request.url.path());
        // A browser is not told why a request was refused, but it is told a close code.
        (request.ok().await.ok()?, Some(room.ok_or(DisconnectReason::UnknownRoom)))
    } else {
        (Session::raw(connection.clone()), None)
    };
    if let Some(Err(reason)) = asked {
        return Some((session, Err(reason)));
    }
    let (send, mut recv) = session.accept_bi().await.ok()?;
    let asked = match asked {
        Some(asked) => asked,
        None => quic::read_preamble(&mut recv).await,
    };
    let first = LoginReader::default();
    let link = |room| (room, Box::new(QuicLink { session: session.clone(), send, recv, first }));
    let asked = asked.map(link);
    Some((session, asked))
}

/// Only browsers say which page asks, and no page can change it.
fn is_welcome(request: &Request, door: &Door) -> bool {
    let Some(origin) = request.headers.get(header::ORIGIN) else { return true };
    let own = |origin: &Origin| origin.is_beside(request.url.authority());
    // What is no text is some origin, and none of ours.
    let origin = origin.to_str().unwrap_or("").parse();
    origin.is_ok_and(|origin| own(&origin) || door.allows_origin(&origin))
}

async fn refuse_page(request: Request, door: &Door) {
    let connection = request.conn().clone();
    tracing::debug!(peer = %connection.remote_address().ip(), "WebTransport refused: a page of another origin");
    door.count(|stats| stats.origin += 1);
    // A connection that is dropped takes its answer with it.
    if request.reject(StatusCode::FORBIDDEN).await.is_ok() {
        let _ = timeout(LINGER, connection.closed()).await;
    }
}

/// How long a peer may take to hear why it is not let in.
const LINGER: Duration = Duration::from_millis(500);

async fn serve(arrival: Arrival, door: &Door, place: &Place, meter: &Meter, watch: &Watch<'_>) {
    let Arrival { room, login, link } = arrival;
    let sync_link = SyncLink::of_max_datagram(link.session.max_datagram_size());
    meter.logged_in();
    match door.enter(&room, &login, sync_link, place) {
        Ok(pipe) => {
            tracing::debug!(peer = %place.address(), link = "quic", "connection made");
            let end = link.run(&pipe, meter, watch.player()).await;
            tracing::debug!(peer = %place.address(), link = "quic", %end, "connection ended");
            pipe.end(end);
        }
        Err(away) => {
            tracing::debug!(peer = %place.address(), link = "quic", reason = %away.reason, "connection turned away");
            door.count_closed(away.reason);
            link.turn_away(away, LINGER).await;
        }
    }
}
