//! Peers that are none of our clients: raw connections by every link, which say what they are told to say.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use halftrack::session::DisconnectReason;
use halftrack::wire::FrameReader;
use halftrack::wire::control::{Continuity, FromClient, FromServer, LoginRefused};
use halftrack::{MoveInput, PlayerId, Tick, Token};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tanks::{CombatEvent, TankInput};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::attack::{Failed, Field};
use crate::bytes::{self, LoginBytes};

/// What a server answers takes no longer, even when this machine is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Failed> {
    timeout(PATIENCE, work).await.map_err(|_| format!("not in {PATIENCE:?}: {what}").into())
}

/// A QUIC client's config under this protocol name, that takes `window` bytes before it has read them.
pub(crate) fn quic_config(protocol: &[u8], window: u32) -> Result<quinn::ClientConfig, Failed> {
    static ANYBODY: OnceLock<Arc<Anybody>> = OnceLock::new();
    let anybody = ANYBODY.get_or_init(|| Arc::new(Anybody));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::<Anybody>::clone(anybody))
        .with_no_client_auth();
    tls.alpn_protocols = vec![protocol.to_vec()];
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(quinn::VarInt::from_u32(window));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// What a login came to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Login {
    In {
        player: PlayerId,
        token: Token,
        continuity: Continuity,
    },
    Refused(LoginRefused),
    /// Closed without a word, or with this code.
    Closed(Option<DisconnectReason>),
}

impl Login {
    pub(crate) fn told(&self) -> String {
        match self {
            Self::In { continuity: Continuity::Resumed { .. }, .. } => "resumed".to_owned(),
            Self::In { continuity: Continuity::Restarted(_), .. } => "let in as somebody new".to_owned(),
            Self::In { .. } => "let in".to_owned(),
            Self::Refused(why) => {
                format!("refused: {}", why.to_string().split(':').next().unwrap_or_default())
            }
            Self::Closed(reason) => told(*reason),
        }
    }
}

/// How the end of a connection is told.
pub(crate) fn told(reason: Option<DisconnectReason>) -> String {
    reason.map_or_else(|| "cut".to_owned(), |reason| format!("closed with code {}", reason.code()))
}

/// A connection by raw QUIC.
pub(crate) struct Peer {
    endpoint: quinn::Endpoint,
    pub(crate) connection: quinn::Connection,
    pub(crate) send: quinn::SendStream,
    pub(crate) recv: quinn::RecvStream,
    reader: FrameReader,
    /// The tick of the welcome, and when it came.
    welcome: Option<(Tick, Instant)>,
    seq: u16,
}

impl Peer {
    /// Connects from a new address.
    pub(crate) async fn connect(field: &Field) -> Result<Self, Failed> {
        Self::connect_from(field, field.source(), 64 * 1_024).await
    }

    pub(crate) async fn connect_from(field: &Field, source: IpAddr, window: u32) -> Result<Self, Failed> {
        let endpoint = quinn::Endpoint::client(SocketAddr::new(source, 0))?;
        let config = quic_config(b"halftrack/1", window)?;
        let connecting = endpoint.connect_with(config, field.address(), "localhost")?;
        let connection = soon("a handshake", connecting).await??;
        let (send, recv) = connection.open_bi().await?;
        let reader = FrameReader::default();
        Ok(Self { endpoint, connection, send, recv, reader, welcome: None, seq: 0 })
    }

    /// Goes on from another address, as a phone does that changes networks, and lets the server hear of it.
    pub(crate) async fn migrate(&mut self, address: IpAddr) -> Result<(), Failed> {
        self.endpoint.rebind(UdpSocket::bind(SocketAddr::new(address, 0))?)?;
        self.write(&bytes::heartbeats(1)).await;
        Ok(())
    }

    /// A peer that is in, in the room of those who ask for none.
    pub(crate) async fn enter(field: &Field, name: &str) -> Result<Self, Failed> {
        let mut peer = Self::connect(field).await?;
        match peer.log_in(&LoginBytes::new(field, name)).await? {
            Login::In { .. } => Ok(peer),
            other => Err(format!("{name}: {}", other.told()).into()),
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        timeout(PATIENCE, self.send.write_all(bytes)).await.is_ok_and(|written| written.is_ok())
    }

    pub(crate) async fn say(&mut self, message: &FromClient) -> bool {
        self.write(&bytes::frame_of(message)).await
    }

    pub(crate) fn datagram(&self, bytes: Vec<u8>) -> bool {
        self.connection.send_datagram(bytes.into()).is_ok()
    }

    /// Logs in, into the room that `login` names, and waits for the answer.
    pub(crate) async fn log_in(&mut self, login: &LoginBytes) -> Result<Login, Failed> {
        let said = [login.preamble(), login.frame()].concat();
        if !self.write(&said).await {
            return Ok(Login::Closed(self.closed().await?));
        }
        self.answer().await
    }

    /// Reads until a login has been answered.
    pub(crate) async fn answer(&mut self) -> Result<Login, Failed> {
        let mut accepted = None;
        loop {
            for message in self.hear().await? {
                match message {
                    FromServer::LoginAccepted(told) => {
                        let (player, token, continuity) = (told.player, told.token, told.continuity);
                        accepted = Some(Login::In { player, token, continuity });
                    }
                    FromServer::LoginRefused(why) => return Ok(Login::Refused(why)),
                    FromServer::Welcome(welcome) => {
                        self.welcome = Some((Tick::new(welcome.tick), Instant::now()));
                    }
                    _ => {}
                }
            }
            if self.welcome.is_some()
                && let Some(accepted) = accepted
            {
                return Ok(accepted);
            }
            if let Some(reason) = self.connection.close_reason() {
                return Ok(Login::Closed(reason_of(&reason)));
            }
        }
    }

    /// What the server says next; nothing when the stream is over.
    pub(crate) async fn hear(&mut self) -> Result<Vec<FromServer>, Failed> {
        let chunk = soon("an answer", self.recv.read_chunk(4_096, true)).await?;
        let Ok(Some(chunk)) = chunk else {
            let _ = soon("the end", self.connection.closed()).await?;
            return Ok(vec![]);
        };
        let (mut rest, mut heard) = (&chunk.bytes[..], vec![]);
        while let Some(frame) = self.reader.next(&mut rest)? {
            heard.push(FromServer::read(frame)?);
        }
        Ok(heard)
    }

    /// Everything that the server says about combat in `span`.
    pub(crate) async fn combat(&mut self, span: Duration) -> Vec<CombatEvent> {
        let mut events = vec![];
        let listening = async {
            while let Ok(heard) = self.hear().await {
                if heard.is_empty() && self.connection.close_reason().is_some() {
                    break;
                }
                let heard = heard.iter().filter_map(|message| match message {
                    FromServer::CombatEvent(bytes) => CombatEvent::decode(bytes).ok(),
                    _ => None,
                });
                events.extend(heard);
            }
        };
        let _ = timeout(span, listening).await;
        events
    }

    /// The tick that the server has about now.
    pub(crate) fn tick(&self, field: &Field) -> Tick {
        let Some((tick, at)) = self.welcome else { return Tick::new(0) };
        let passed = at.elapsed().as_micros() / field.cadence.interval().as_micros();
        Tick::new(tick.number().saturating_add(u32::try_from(passed).unwrap_or(0)))
    }

    /// An input message with the next number; `change` makes it what it is to be.
    pub(crate) fn input(&mut self, field: &Field, change: impl FnOnce(&mut MoveInput<TankInput>)) -> Vec<u8> {
        self.seq = self.seq.wrapping_add(1);
        bytes::input(self.seq, Tick::new(self.tick(field).number() + 3), change)
    }

    pub(crate) fn is_open_now(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    /// Whether it is still connected after a moment in which an answer could have come.
    pub(crate) async fn is_open(&self) -> bool {
        timeout(Duration::from_millis(200), self.connection.closed()).await.is_err()
    }

    /// Waits for the end, and gives its reason.
    pub(crate) async fn closed(&self) -> Result<Option<DisconnectReason>, Failed> {
        Ok(reason_of(&soon("the end", self.connection.closed()).await?))
    }

    /// The end, if it comes within `span`; in words.
    pub(crate) async fn end_within(&self, span: Duration) -> String {
        match timeout(span, self.connection.closed()).await {
            Ok(reason) => told(reason_of(&reason)),
            Err(_) => "still there".to_owned(),
        }
    }

    /// Leaves as one should.
    pub(crate) async fn leave(mut self) {
        self.say(&FromClient::Logout(())).await;
        let _ = timeout(Duration::from_secs(1), self.connection.closed()).await;
    }
}

fn reason_of(error: &quinn::ConnectionError) -> Option<DisconnectReason> {
    match error {
        quinn::ConnectionError::ApplicationClosed(close) => {
            u32::try_from(close.error_code.into_inner()).ok().and_then(DisconnectReason::from_code)
        }
        _ => None,
    }
}

/// A TCP connection from that address; with a small buffer, its system does not read in its stead.
pub(crate) async fn tcp(field: &Field, source: IpAddr, buffer: Option<u32>) -> Result<TcpStream, Failed> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(SocketAddr::new(source, 0))?;
    Ok(soon("a connection", socket.connect(field.address())).await??)
}

/// A WebSocket without anything of ours behind it.
pub(crate) type Socket = WebSocketStream<TcpStream>;

/// Opens one; `origin` as a browser would say it.
pub(crate) async fn websocket(
    field: &Field,
    stream: TcpStream,
    origin: Option<&str>,
) -> Result<Result<Socket, u16>, Failed> {
    websocket_at(field, stream, "/ws", origin).await
}

/// The same at this path.
pub(crate) async fn websocket_at(
    field: &Field,
    stream: TcpStream,
    path: &str,
    origin: Option<&str>,
) -> Result<Result<Socket, u16>, Failed> {
    let mut request = format!("ws://{}{path}", field.address()).into_client_request()?;
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse()?);
    }
    match soon("an answer", client_async(request, stream)).await? {
        Ok((socket, _)) => Ok(Ok(socket)),
        Err(tungstenite::Error::Http(answer)) => Ok(Err(answer.status().as_u16())),
        Err(problem) => Err(problem.into()),
    }
}

/// Reads until the server closes; in words.
pub(crate) async fn socket_end<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>) -> String {
    use futures_util::StreamExt as _;
    let reading = async {
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Close(close) = message {
                return close.map(|close| u16::from(close.code));
            }
        }
        None
    };
    match timeout(PATIENCE, reading).await {
        Ok(Some(code)) => format!("closed with code {code}"),
        Ok(None) => "cut".to_owned(),
        Err(_) => "still there".to_owned(),
    }
}

/// An attacker believes anybody.
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
