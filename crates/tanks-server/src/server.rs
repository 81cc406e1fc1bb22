//! A server that runs: its sockets, its signals, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use halftrack_io::{Door, Endpoint, EndpointConfig, HttpServer, IoError, Limits};
use tokio::task::JoinHandle;

use crate::app::{App, Phase, Source, StartError};
use crate::config::Config;
use crate::http;
use crate::log::LogHandle;

/// See the module.
pub(crate) struct Server {
    app: Arc<App>,
    http: HttpServer,
    /// For programs that watch the server, if they have an address of their own.
    watching: Option<HttpServer>,
    tending: JoinHandle<()>,
    signals: Signals,
}

impl Server {
    /// Starts everything, or nothing: what was started is undone when something fails.
    pub(crate) async fn start(
        config: Config,
        source: Source,
        log: Option<LogHandle>,
    ) -> Result<Self, StartError> {
        // First: whoever sends one while it starts means it.
        let signals = Signals::new();
        let listen = config.listen;
        let endpoint =
            EndpointConfig { idle: config.limits.idle_s.seconds(), migration: config.limits.migration };
        let app = Arc::new(App::new(config, source, log)?);
        let watching = match app.config().metrics.listen {
            Some(address) => Some(watch_at(&app, address).await?),
            None => None,
        };
        let (http, endpoint) = bind(&app, listen, endpoint).await?;
        app.set_bound(endpoint);
        let tended = Arc::clone(&app);
        let tending = tokio::spawn(async move {
            let mut every = tokio::time::interval(Duration::from_secs(1));
            loop {
                every.tick().await;
                tended.tend();
                if let Some(recordings) = tended.recordings().map(Arc::clone) {
                    // It waits for the disk.
                    tokio::task::spawn_blocking(move || recordings.sync());
                }
            }
        });
        let server = Self { app, http, watching, tending, signals };
        tracing::info!(address = %server.address(), "listening");
        Ok(server)
    }

    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Where it listens, by TCP and UDP.
    pub(crate) fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Where to play: an address that a browser on this machine can open.
    pub(crate) fn url(&self) -> String {
        let address = self.address();
        let local = match address {
            SocketAddr::V4(v4) if v4.ip().is_unspecified() => {
                SocketAddr::from(([127, 0, 0, 1], address.port()))
            }
            SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
                SocketAddr::from(([127, 0, 0, 1], address.port()))
            }
            address => address,
        };
        format!("http://{local}")
    }

    /// Runs until it is to end, because a signal or an operator says so.
    pub(crate) async fn wait(&mut self) {
        let mut phases = self.app.phase();
        loop {
            let phase = *phases.borrow_and_update();
            let over = async {
                match phase {
                    Phase::Serving => core::future::pending().await,
                    Phase::Draining { until } => emptied(&self.app, until).await,
                    Phase::Stopping => {}
                }
            };
            tokio::select! {
                () = over => break,
                _ = phases.changed() => {}
                signal = self.signals.next() => obey(&self.app, signal),
            }
        }
    }

    /// Ends everything, in bounded time: players are told, ports are free when this returns.
    pub(crate) async fn stop(self) {
        self.app.stop();
        self.tending.abort();
        let lobby = Arc::clone(&self.app.lobby);
        // It waits for threads.
        let recordings = self.app.recordings().map(Arc::clone);
        let stop = move || {
            lobby.stop();
            if let Some(recordings) = recordings {
                recordings.sync();
            }
        };
        let _ = tokio::task::spawn_blocking(stop).await;
        let endpoint = async {
            if let Some(endpoint) = self.app.endpoint() {
                endpoint.stop().await;
            }
        };
        let watching = async {
            if let Some(watching) = &self.watching {
                watching.stop().await;
            }
        };
        tokio::join!(endpoint, self.http.stop(), watching);
        tracing::info!("stopped");
    }
}

/// The address of `metrics.listen`. It has a door of its own: players and strangers at the other one take nothing from it.
async fn watch_at(app: &Arc<App>, address: SocketAddr) -> Result<HttpServer, StartError> {
    let door = Door::new(Arc::clone(&app.lobby) as _, Limits::default())?;
    let server = HttpServer::bind(address, http::watching_routes(app), door).await?;
    tracing::info!(address = %server.address(), "listening for metrics");
    Ok(server)
}

/// Both sockets, with one number. When any number will do, one that is free for both has to be found.
async fn bind(
    app: &Arc<App>,
    listen: SocketAddr,
    config: EndpointConfig,
) -> Result<(HttpServer, Endpoint), StartError> {
    const TRIES: u32 = 16;
    let mut tried = 0;
    loop {
        tried += 1;
        let http = HttpServer::bind(listen, http::routes(app), app.door.clone()).await?;
        let address = SocketAddr::new(listen.ip(), http.address().port());
        let endpoint = app
            .with_certificate(|certificate| Endpoint::bind(address, certificate, app.door.clone(), config));
        match endpoint {
            Ok(endpoint) => return Ok((http, endpoint)),
            Err(IoError::AddressInUse { .. }) if listen.port() == 0 && tried < TRIES => http.stop().await,
            Err(problem) => {
                http.stop().await;
                return Err(problem.into());
            }
        }
    }
}

fn obey(app: &App, signal: Signal) {
    match signal {
        Signal::Stop => {
            tracing::info!("interrupted: stopping");
            app.stop();
        }
        Signal::Drain => app.drain(),
        Signal::Reload => match app.reload() {
            Ok(late) if late.is_empty() => tracing::info!("config, certificate and keys were read again"),
            Ok(late) => tracing::warn!(keys = ?late, "read again; these keys need a restart"),
            Err(problem) => tracing::error!(%problem, "nothing was changed"),
        },
    }
}

/// Waits until no player is connected, or the time is over. Players who are away may come back to the next server, if it
/// recovers the match; this one does not wait for them.
async fn emptied(app: &App, until: Instant) {
    while Instant::now() < until && app.lobby.present() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a person or the system wants of the program.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Stop,
    Drain,
    Reload,
}

/// Signals, listened for from the start: none is lost between two looks.
#[cfg(unix)]
struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let wanted = [
            (Signal::Stop, SignalKind::interrupt()),
            (Signal::Drain, SignalKind::terminate()),
            (Signal::Reload, SignalKind::hangup()),
        ];
        // Where the system gives none, it ends the program by itself.
        Self(wanted.into_iter().filter_map(|(means, kind)| Some((means, signal(kind).ok()?))).collect())
    }

    async fn next(&mut self) -> Signal {
        core::future::poll_fn(|context| {
            let heard = self
                .0
                .iter_mut()
                .find_map(|(means, stream)| stream.poll_recv(context).is_ready().then_some(*means));
            heard.map_or(core::task::Poll::Pending, core::task::Poll::Ready)
        })
        .await
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Stop,
            Err(_) => core::future::pending().await,
        }
    }
}
