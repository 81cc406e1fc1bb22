//! An HTTP server for a program's routes, with a door in front of it. Knows what a request may cost, not what
//! it is for.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Request, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::{Either, ready};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::door::{Door, HttpPlace};
use crate::error::IoError;
use crate::listen;

/// Serves a program's routes by HTTP. Small writes leave at once. A connection that says nothing, or says it
/// slowly, is closed; see [`Limits`](crate::Limits).
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl HttpServer {
    /// How long requests that are being answered may take when it stops.
    const GRACE: Duration = Duration::from_secs(1);

    /// Serves `routes` at `address`; port 0 is any that is free, `[::]` is IPv6 and IPv4. Handlers find the
    /// peer's address as [`ConnectInfo<SocketAddr>`](ConnectInfo).
    ///
    /// # Errors
    /// When the address cannot be listened on, or there is no runtime. Nothing runs then.
    pub async fn bind(address: SocketAddr, routes: Router, door: Door) -> Result<Self, IoError> {
        let runtime = Handle::try_current().map_err(|_| IoError::NoRuntime)?;
        let failed = |source| IoError::listening(address, source);
        let listener = listen::tcp(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, "listening for HTTP");
        let (stop, stopped) = watch::channel(false);
        let task = runtime.spawn(accept(listener, routes, door, stopped));
        Ok(Self { address, stop, task: Mutex::new(Some(task)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening. Sockets of rooms end with their rooms. Again, it does nothing.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut task) = task
            && timeout(Self::GRACE, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// A system without file handles has some again after a moment.
const PAUSE: Duration = Duration::from_millis(100);

async fn accept(listener: TcpListener, routes: Router, door: Door, mut stopped: watch::Receiver<bool>) {
    // Dropped with this task, and with it what is still being answered.
    let mut serving = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = until(&mut stopped) => break,
            Some(_) = serving.join_next() => continue,
        };
        let Ok((socket, peer)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        // Nobody is told: a socket that is dropped costs least.
        let Some(place) = door.admit_http(peer.ip()) else {
            tracing::debug!(%peer, "HTTP connection refused: too many");
            continue;
        };
        // Of a socket for both families, IPv4 is shown as what it is.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let connection = Connection { peer, routes: routes.clone(), door: door.clone(), place };
        serving.spawn(connection.serve(socket, stopped.clone()));
    }
    drop(listener);
    while serving.join_next().await.is_some() {}
}

/// Waits until the server is stopped, or gone.
async fn until(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

struct Connection {
    peer: SocketAddr,
    routes: Router,
    door: Door,
    place: HttpPlace,
}

impl Connection {
    /// The longest that a connection may last which is no WebSocket: longer than any page takes, and bounded
    /// for whoever does not read it.
    const LIFE: Duration = Duration::from_secs(120);
    /// The longest head of a request; cookies of other programs on the same host may be in it.
    const MAX_HEAD: usize = 16 * 1_024;

    async fn serve(self, socket: TcpStream, mut stopped: watch::Receiver<bool>) {
        // Without it a socket still works, only later.
        let _ = socket.set_nodelay(true);
        let asked = AtomicBool::new(false);
        let routes = TowerToHyperService::new(self.routes.clone());
        let service = service_fn(|mut request: Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            if let Some(refusal) = self.refuse(&request) {
                return Either::Left(ready(Ok(refusal)));
            }
            request.extensions_mut().insert(ConnectInfo(self.peer));
            Either::Right(hyper::service::Service::call(&routes, request.map(Body::new)))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.door.limits().handshake)
            .max_buf_size(Self::MAX_HEAD)
            .serve_connection(TokioIo::new(socket), service)
            .with_upgrades();
        let mut connection = core::pin::pin!(connection);
        let end = tokio::select! {
            end = timeout(Self::LIFE, connection.as_mut()) => end,
            () = until(&mut stopped) => {
                connection.as_mut().graceful_shutdown();
                timeout(HttpServer::GRACE, connection).await
            }
        };
        // After the first request, silence is only a page that has been loaded.
        if let Ok(Err(problem)) = end
            && !asked.load(Ordering::Relaxed)
        {
            let slow = problem.is_timeout();
            self.door.count(|stats| {
                let count = if slow { &mut stats.handshake_timeouts } else { &mut stats.handshakes_failed };
                *count += 1;
            });
            tracing::debug!(peer = %self.peer, %problem, "HTTP connection ended before a request");
        }
    }

    /// The answer to a request that no route is to see. The connection ends with it.
    fn refuse(&self, request: &Request<Incoming>) -> Option<Response<Body>> {
        let last = (header::CONNECTION, "close");
        if !self.place.admit_request() {
            let headers = [last, (header::RETRY_AFTER, "1")];
            let why = "too many requests from this address: try again in a second\n";
            return Some((StatusCode::TOO_MANY_REQUESTS, headers, why).into_response());
        }
        (!names_one_host(request.version(), request.headers())).then(|| {
            (StatusCode::BAD_REQUEST, [last], "send one Host header, with a host and a port\n")
                .into_response()
        })
    }
}

/// Whether a request names one host, as RFC 9112 (3.2) asks for. A proxy and this server could otherwise read two different
/// ones out of the same request. HTTP/1.0 has requests without a host.
fn names_one_host(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).into_iter();
    let Some(host) = hosts.next() else { return version < Version::HTTP_11 };
    let authority = Authority::try_from(host.as_bytes());
    // An authority may have a user name before the host; a Host header may not.
    hosts.next().is_none() && authority.is_ok_and(|authority| !authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_host() {
        let named = |version, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, host.parse().unwrap());
            }
            names_one_host(version, &headers)
        };
        for host in ["x", "example.org", "example.org:7777", "127.0.0.1:1", "[::1]:7777"] {
            assert!(named(Version::HTTP_11, &[host]) && named(Version::HTTP_10, &[host]), "{host}");
            assert!(
                !named(Version::HTTP_11, &[host, host]) && !named(Version::HTTP_10, &[host, "y"]),
                "{host}"
            );
        }
        for host in ["", "a b", "a@b", "http://a", "a/b", "\u{e9}"] {
            assert!(!named(Version::HTTP_11, &[host]), "{host}");
        }
        assert!(!named(Version::HTTP_11, &[]) && named(Version::HTTP_10, &[]));
    }
}
