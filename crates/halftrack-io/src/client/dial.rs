//! Makes a connection to a server, once. Does not know when to, or when again.

use core::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::PoisonError;
use std::time::Duration;

use halftrack::SyncLink;
use quinn::TransportErrorCode;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite};
use web_transport_quinn::Session;

use crate::certificate::Trust;
use crate::door::Meter;
use crate::error::IoError;
use crate::login::LoginReader;
use crate::pipe::{End, Pipe};
use crate::quic::{self, QuicLink};
use crate::target::{Target, Way};
use crate::websocket::{self, Refused};

/// A connection that was made.
pub(super) enum Dialled {
    /// The endpoint lives as long as its connection.
    Quic(quinn::Endpoint, Box<QuicLink>),
    WebSocket(Box<WebSocketStream<TcpStream>>),
}

impl Dialled {
    pub(super) fn sync_link(&self) -> SyncLink {
        match self {
            Self::Quic(_, link) => SyncLink::of_max_datagram(link.session.max_datagram_size()),
            Self::WebSocket(_) => SyncLink::Absent,
        }
    }

    /// Moves bytes until the connection ends.
    pub(super) async fn run(self, pipe: &Pipe) -> End {
        match self {
            Self::Quic(endpoint, link) => {
                let end = link.run(pipe, &Meter::default(), core::future::pending()).await;
                // What was said last is still in there.
                let _ = timeout(pipe.patience().linger, endpoint.wait_idle()).await;
                end
            }
            Self::WebSocket(socket) => {
                websocket::run(*socket, pipe, &Meter::default(), &Refused::default()).await
            }
        }
    }
}

/// A server that does not answer at all is given up after so long; the session tries again.
const PATIENCE: Duration = Duration::from_secs(5);
/// As long as the server's own.
const IDLE: Duration = Duration::from_secs(10);

/// What a QUIC server says that takes nobody.
const REFUSED: TransportErrorCode = TransportErrorCode::CONNECTION_REFUSED;
/// And one of HTTP: forbidden, too many requests, unavailable.
const REFUSALS: [u16; 3] = [403, 429, 503];

pub(super) async fn dial(target: Target, trust: Trust) -> Result<Dialled, IoError> {
    let dialling = async {
        let addresses =
            lookup_host((target.host.as_str(), target.port)).await.map_err(IoError::UnknownHost)?;
        let mut failure = IoError::Timeout;
        for address in addresses {
            match dial_at(&target, &trust, address).await {
                Err(problem) if !problem.is_final() => failure = problem,
                dialled => return dialled,
            }
        }
        Err(failure)
    };
    in_time(dialling).await
}

async fn in_time<T>(work: impl Future<Output = Result<T, IoError>>) -> Result<T, IoError> {
    timeout(PATIENCE, work).await.unwrap_or(Err(IoError::Timeout))
}

async fn dial_at(target: &Target, trust: &Trust, address: SocketAddr) -> Result<Dialled, IoError> {
    match target.way {
        Way::Quic => dial_quic(target, trust, address).await,
        Way::WebSocket => dial_websocket(target, address).await,
    }
}

async fn dial_quic(target: &Target, trust: &Trust, address: SocketAddr) -> Result<Dialled, IoError> {
    let (config, shown) = quic::client_config(trust, IDLE)?;
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let endpoint = quinn::Endpoint::client(any).map_err(|source| IoError::listening(any, source))?;
    let connecting = endpoint
        .connect_with(config, address, &target.host)
        .map_err(|problem| IoError::Handshake(problem.into()))?;
    let connection = connecting.await.map_err(|problem| {
        let found = shown.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (found, problem) {
            (Some(found), _) => IoError::WrongCertificate { found },
            (None, quinn::ConnectionError::TimedOut) => IoError::Timeout,
            (None, quinn::ConnectionError::ConnectionClosed(close)) if close.error_code == REFUSED => {
                IoError::Refused { address }
            }
            (None, problem @ quinn::ConnectionError::TransportError(_)) => IoError::Handshake(problem.into()),
            (None, problem) => IoError::Unreachable { address, source: problem.into() },
        }
    })?;
    let session = Session::raw(connection);
    let failed = |problem: web_transport_quinn::SessionError| IoError::Handshake(problem.into());
    let (mut send, recv) = session.open_bi().await.map_err(failed)?;
    quic::write_preamble(&mut send, &target.room).await?;
    Ok(Dialled::Quic(endpoint, Box::new(QuicLink { session, send, recv, first: LoginReader::default() })))
}

async fn dial_websocket(target: &Target, address: SocketAddr) -> Result<Dialled, IoError> {
    let unreachable = |source: std::io::Error| IoError::Unreachable { address, source: source.into() };
    let socket = TcpStream::connect(address).await.map_err(unreachable)?;
    socket.set_nodelay(true).map_err(unreachable)?;
    let url = format!("ws://{address}/ws/room/{}", target.room);
    let shaken = client_async(url, socket).await;
    let (socket, _) = shaken.map_err(|problem| match problem {
        tungstenite::Error::Http(answer) if REFUSALS.contains(&answer.status().as_u16()) => {
            IoError::Refused { address }
        }
        problem => IoError::Handshake(problem.into()),
    })?;
    Ok(Dialled::WebSocket(Box::new(socket)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::certificate::Certificate;
    use crate::endpoint::EndpointConfig;

    /// A server that shakes hands, takes datagrams into a buffer of so many bytes, and does nothing else.
    fn server(certificate: &Certificate, datagram_buffer: Option<usize>) -> quinn::Endpoint {
        let mut config = quic::server_config(certificate, &EndpointConfig::default()).unwrap();
        let mut transport = quinn::TransportConfig::default();
        transport.datagram_receive_buffer_size(datagram_buffer);
        config.transport_config(Arc::new(transport));
        quinn::Endpoint::server(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap()
    }

    #[tokio::test]
    async fn lane_05_a_server_that_takes_no_datagrams_has_no_sync_link() {
        let certificate =
            Certificate::self_signed(&["localhost", "127.0.0.1"], Certificate::MAX_VALIDITY).unwrap();
        for (buffer, link) in [(None, SyncLink::Absent), (Some(64 * 1_024), SyncLink::Present)] {
            let server = server(&certificate, buffer);
            let target: Target = format!("quic://{}", server.local_addr().unwrap()).parse().unwrap();
            let accept = tokio::spawn(async move {
                let connection = server.accept().await.unwrap().await.unwrap();
                connection.closed().await;
            });
            let dialled = dial(target, Trust::Hashes(vec![certificate.hash()])).await.unwrap();
            assert_eq!(dialled.sync_link(), link, "{buffer:?}");
            drop(dialled);
            accept.await.unwrap();
        }
    }
}
