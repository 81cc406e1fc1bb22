//! A server of the cart game on loopback, clients of ours, and peers that are not.
#![allow(dead_code, reason = "each test uses its own part of it")]

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use halftrack::cart::{Cart, Rails};
use halftrack::client::ClientConfig;
use halftrack::server::Server;
use halftrack::session::DisconnectReason;
use halftrack::wire::FrameReader;
use halftrack::wire::control::{FromClient, FromServer, Heartbeat, Login, PROTOCOL, Resume};
use halftrack::{Cadence, PlayerName, Token, shared_hash};
use halftrack_io::{
    Certificate, ClientHandle, Door, Endpoint, EndpointConfig, HttpServer, IoError, Journal, Limits, Room,
    RoomConfig, Trust, WebSockets, connect,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

/// Nothing here takes a tenth of it; a machine that is busy may.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("not in {PATIENCE:?}: {what}"))
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(what, wait).await;
}

/// The log of the process.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Collects the events that pass this filter. Once in a process.
    pub(crate) fn begin(filter: &str) -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        log
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(ToOwned::to_owned).collect()
    }
}

pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn certificate() -> Certificate {
    Certificate::self_signed(&["localhost", "127.0.0.1"], Certificate::MAX_VALIDITY).unwrap()
}

pub(crate) fn config(name: &str) -> ClientConfig<Cart> {
    ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Arc::new(Cart))
}

/// A room by every link.
pub(crate) struct Host {
    pub(crate) room: Arc<Room<Rails>>,
    pub(crate) certificate: Certificate,
    pub(crate) door: Door,
    pub(crate) endpoint: Endpoint,
    pub(crate) http: HttpServer,
}

impl Host {
    pub(crate) async fn start(config: RoomConfig) -> Self {
        Self::start_at(loopback(), config, certificate()).await.unwrap()
    }

    /// A room that is recorded.
    pub(crate) async fn recorded(journal: Box<dyn Journal>) -> Self {
        let room = Room::start_recorded(RoomConfig::default(), Some(journal), |config, now| {
            let mut server = Server::new(config, Rails::default(), now)?;
            assert!(server.record([0; 16], vec![]));
            Ok::<_, IoError>(server)
        });
        Self::around(room.unwrap(), loopback(), Limits::default(), certificate()).await.unwrap()
    }

    pub(crate) async fn start_with(limits: Limits) -> Self {
        Self::build(loopback(), RoomConfig::default(), limits, certificate()).await.unwrap()
    }

    pub(crate) async fn start_at(
        address: SocketAddr,
        config: RoomConfig,
        certificate: Certificate,
    ) -> Result<Self, IoError> {
        Self::build(address, config, Limits::default(), certificate).await
    }

    pub(crate) async fn build(
        address: SocketAddr,
        config: RoomConfig,
        limits: Limits,
        certificate: Certificate,
    ) -> Result<Self, IoError> {
        let room = Room::start(config, Rails::default())?;
        Self::around(room, address, limits, certificate).await
    }

    /// Everything around a room.
    pub(crate) async fn around(
        room: Room<Rails>,
        address: SocketAddr,
        limits: Limits,
        certificate: Certificate,
    ) -> Result<Self, IoError> {
        let room = Arc::new(room);
        let door = Door::new(Arc::new(room.handle()), limits)?;
        let endpoint = Endpoint::bind(address, &certificate, door.clone(), EndpointConfig::default())?;
        let routes = WebSockets::new(door.clone()).routes();
        let http = HttpServer::bind(SocketAddr::new(address.ip(), 0), routes, door.clone()).await?;
        Ok(Self { room, certificate, door, endpoint, http })
    }

    pub(crate) async fn stop(&self) {
        self.room.stop();
        self.endpoint.stop().await;
        self.http.stop().await;
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::Hashes(vec![self.certificate.hash()])
    }

    pub(crate) fn quic(&self, name: &str) -> ClientHandle<Cart> {
        let url = format!("quic://{}", self.endpoint.address());
        connect(url.parse().unwrap(), self.trust(), config(name)).unwrap()
    }

    pub(crate) fn websocket(&self, name: &str) -> ClientHandle<Cart> {
        let url = format!("ws://{}", self.http.address());
        connect(url.parse().unwrap(), self.trust(), config(name)).unwrap()
    }

    /// A peer under our protocol name that does what a test says.
    pub(crate) async fn peer(&self) -> Peer {
        Peer::connect(self.endpoint.address(), 64 * 1_024).await
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.room.with(|server, _| {
            server.players().filter_map(|player| server.name(player)).map(ToString::to_string).collect()
        });
        names.unwrap()
    }
}

pub(crate) async fn logged_in(client: &ClientHandle<Cart>) {
    soon("login", client.logged_in()).await.unwrap();
}

/// Drives up to `metres`, frame by frame.
pub(crate) async fn drive_past(client: &ClientHandle<Cart>, metres: f64) {
    let start = Mutex::new(None);
    client.set_input(8);
    until("driving", || {
        let Some(pose) = client.frame() else { return false };
        pose.x - *start.lock().unwrap().get_or_insert(pose.x) > metres
    })
    .await;
}

/// What was corrected on screen, in all.
pub(crate) fn corrections(client: &ClientHandle<Cart>) -> u64 {
    let all = client.read(|client| client.corrections());
    all.eased + all.snapped
}

/// A login as it is written to the stream.
pub(crate) fn login(name: &str, resume: Option<Token>) -> Vec<u8> {
    let login = Login {
        protocol: PROTOCOL,
        shared: shared_hash(&Cart, Cadence::default()),
        name: PlayerName::new(name).unwrap(),
        resume: resume.map(|token| Resume { token, received: Some(0) }),
        credentials: None,
    };
    let mut bytes = vec![];
    assert!(FromClient::Login(login).append_to(&mut bytes));
    bytes
}

/// So many heartbeats: the shortest messages that are answered.
pub(crate) fn heartbeats(count: usize) -> Vec<u8> {
    let mut bytes = vec![];
    for _ in 0..count {
        assert!(FromClient::Heartbeat(Heartbeat { sent_micros: 1, received: 0 }).append_to(&mut bytes));
    }
    bytes
}

/// A QUIC client under this protocol name, which trusts any server.
pub(crate) fn client_config(window_bytes: u32, protocol: &[u8]) -> quinn::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    tls.alpn_protocols = vec![protocol.to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(quinn::VarInt::from_u32(window_bytes));
    config.transport_config(Arc::new(transport));
    config
}

/// A QUIC connection under this protocol name, to whomever.
pub(crate) async fn shake_hands(
    address: SocketAddr,
    window_bytes: u32,
    protocol: &[u8],
) -> (quinn::Endpoint, quinn::Connection) {
    let config = client_config(window_bytes, protocol);
    let endpoint = quinn::Endpoint::client(loopback()).unwrap();
    let connection = endpoint.connect_with(config, address, "localhost").unwrap().await.unwrap();
    (endpoint, connection)
}

/// Raw QUIC under our protocol name, without anything of ours behind it.
pub(crate) struct Peer {
    pub(crate) endpoint: quinn::Endpoint,
    pub(crate) connection: quinn::Connection,
    pub(crate) send: quinn::SendStream,
    pub(crate) recv: quinn::RecvStream,
    reader: FrameReader,
}

impl Peer {
    pub(crate) async fn connect(address: SocketAddr, window_bytes: u32) -> Self {
        let (endpoint, connection) = shake_hands(address, window_bytes, b"halftrack/1").await;
        let (send, recv) = connection.open_bi().await.unwrap();
        Self { endpoint, connection, send, recv, reader: FrameReader::default() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.send.write_all(bytes).await.unwrap();
    }

    /// The room of those who ask for none, and a login.
    pub(crate) async fn log_in(&mut self, name: &str, resume: Option<Token>) {
        let bytes = [vec![0], login(name, resume)].concat();
        self.write(&bytes).await;
    }

    /// Reads until it is let in.
    pub(crate) async fn token(&mut self) -> Token {
        loop {
            let chunk = soon("an answer", self.recv.read_chunk(4_096, true)).await.unwrap().unwrap();
            let mut bytes = &chunk.bytes[..];
            while let Some(frame) = self.reader.next(&mut bytes).unwrap() {
                if let FromServer::LoginAccepted(accepted) = FromServer::read(frame).unwrap() {
                    return accepted.token;
                }
            }
        }
    }

    /// Waits for the end, and gives its code.
    pub(crate) async fn closed(&self) -> Option<DisconnectReason> {
        match soon("the end", self.connection.closed()).await {
            quinn::ConnectionError::ApplicationClosed(close) => {
                DisconnectReason::from_code(u32::try_from(close.error_code.into_inner()).unwrap())
            }
            _ => None,
        }
    }
}

/// A peer of a test believes anybody.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
