//! What the parts of a running server share: rooms, the door, who is let in, and in which phase it is.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant, SystemTime};

use axum::body::Bytes;
use halftrack::wire::control::PROTOCOL;
use halftrack_io::{Certificate, Door, Endpoint, IoError, Limits, Origin};
use tokio::sync::watch;

use crate::bans::{Bans, BansError};
use crate::config::{self, Config, ConfigError};
use crate::exposition::{Exposition, Reader, Reading};
use crate::gate::Gate;
use crate::identity::Identity;
use crate::lobby::{Lobby, Past, RoomError};
use crate::log::{LevelError, LogHandle};
use crate::metrics::{self, Program};
use crate::record::{RecordError, Recordings};
use crate::secret::{Secret, SecretError};
use crate::site::{Ground, Quic, Site};
use crate::token::KeyError;

/// Why a server did not start, or did not take another config. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Io(#[from] IoError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Bans(#[from] BansError),
    #[error(transparent)]
    Level(#[from] LevelError),
    #[error("standard output cannot be written to: {0}")]
    Print(#[source] std::io::Error),
    #[error("limits: {0}")]
    Limit(#[from] halftrack::ConfigError),
    #[error(
        "limits.origins: {origin:?} is no origin: write it as https://example.org or http://localhost:5173"
    )]
    Origin { origin: String },
}

/// Where a config came from, to read it again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) file: Option<PathBuf>,
    pub(crate) sets: Vec<String>,
}

impl Source {
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        Config::load(self.file.as_deref(), &self.sets)
    }
}

/// What is asked of the server as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Serving,
    /// No new players; it ends when the last one has left or is cut, or then.
    Draining {
        until: Instant,
    },
    Stopping,
}

/// What shows that a request is an operator's.
struct Secrets {
    admin: Option<Secret>,
    metrics: Option<Secret>,
}

impl Secrets {
    fn read(config: &Config) -> Result<Self, SecretError> {
        let metrics = Secret::of(config.metrics.secret_file.as_deref())?;
        Ok(Self { admin: Secret::of(config.admin.secret_file.as_deref())?, metrics })
    }
}

/// See the module.
pub(crate) struct App {
    source: Source,
    config: Mutex<Config>,
    log: Option<LogHandle>,
    pub(crate) lobby: Arc<Lobby>,
    recordings: Option<Arc<Recordings>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) door: Door,
    pub(crate) bans: Bans,
    identity: Mutex<Identity>,
    secrets: RwLock<Secrets>,
    exposition: Arc<Exposition>,
    /// `/config.json`, until something changes that it says.
    site: Mutex<Option<Bytes>>,
    /// Once both sockets listen.
    endpoint: OnceLock<Endpoint>,
    phase: watch::Sender<Phase>,
    started: Instant,
    started_at: SystemTime,
}

impl App {
    /// Everything but the sockets.
    pub(crate) fn new(config: Config, source: Source, log: Option<LogHandle>) -> Result<Self, StartError> {
        let gate = Arc::new(Gate::new(&config.auth)?);
        let identity = Identity::new(&tls(&config), SystemTime::now())?;
        let secrets = Secrets::read(&config)?;
        let (limits, allowed) = (limits(&config), origins(&config)?);
        let recordings = config.record.folder.as_deref().map(Recordings::open).transpose()?.map(Arc::new);
        let past = if config.record.recover { Past::Recovered } else { Past::Left };
        let (rooms, gated) = (config.rooms.clone(), Arc::clone(&gate));
        let lobby = Lobby::new(rooms, &config.limits, gated, recordings.clone(), past)?;
        let lobby = Arc::new(lobby);
        let door = Door::new(Arc::clone(&lobby) as _, limits)?;
        door.set_origins(allowed);
        let bans = Bans::open(config.admin.state_folder.as_deref(), &gate, &door)?;
        Ok(Self {
            source,
            config: Mutex::new(config),
            log,
            lobby,
            recordings,
            gate,
            door,
            bans,
            identity: Mutex::new(identity),
            secrets: RwLock::new(secrets),
            exposition: Arc::default(),
            site: Mutex::default(),
            endpoint: OnceLock::new(),
            phase: watch::Sender::new(Phase::Serving),
            started: Instant::now(),
            started_at: SystemTime::now(),
        })
    }

    pub(crate) fn config(&self) -> Config {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn identity(&self) -> MutexGuard<'_, Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with_certificate<R>(&self, with: impl FnOnce(&Certificate) -> R) -> R {
        with(self.identity().certificate())
    }

    /// Both sockets listen: whoever comes is let in.
    pub(crate) fn set_bound(&self, endpoint: Endpoint) {
        drop(self.endpoint.set(endpoint));
        self.forget_site();
    }

    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.get()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.endpoint().is_some() && *self.phase.borrow() == Phase::Serving
    }

    /// Where matches are written, if they are.
    pub(crate) fn recordings(&self) -> Option<&Arc<Recordings>> {
        self.recordings.as_ref()
    }

    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    pub(crate) fn up(&self) -> Duration {
        self.started.elapsed()
    }

    fn secrets(&self) -> RwLockReadGuard<'_, Secrets> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `secret` is the operator's; nothing is, if there is none.
    pub(crate) fn is_operator(&self, secret: Option<&str>) -> bool {
        self.secrets().admin.as_ref().zip(secret).is_some_and(|(known, secret)| known.is(secret))
    }

    pub(crate) fn has_operator(&self) -> bool {
        self.secrets().admin.is_some()
    }

    /// As whom a request from `peer` with this secret may read `/metrics`; none when it may not.
    pub(crate) fn reader(&self, peer: IpAddr, secret: Option<&str>) -> Option<Reader> {
        let secrets = self.secrets();
        let known = [&secrets.metrics, &secrets.admin].into_iter().flatten();
        let is_known = secret.is_some_and(|secret| known.into_iter().any(|known| known.is(secret)));
        match (is_known, &secrets.metrics) {
            (true, _) => Some(Reader::Trusted),
            (false, None) => Some(Reader::Stranger(peer)),
            (false, Some(_)) => None,
        }
    }

    /// Lets no new player in, and ends when no player is connected any more, or in due time.
    pub(crate) fn drain(&self) {
        let span = self.config().drain.span();
        let begins = self.phase.send_if_modified(|phase| {
            let serving = *phase == Phase::Serving;
            if serving {
                *phase = Phase::Draining { until: Instant::now() + span };
            }
            serving
        });
        if begins {
            tracing::info!(seconds = span.as_secs(), players = self.lobby.present(), "draining");
            self.lobby.drain(span);
        }
    }

    /// Ends at once.
    pub(crate) fn stop(&self) {
        self.phase.send_replace(Phase::Stopping);
    }

    /// What `/config.json` says, as it is sent. Made when something has changed, and shared by all who ask.
    pub(crate) fn site_json(&self) -> Bytes {
        let mut site = self.site.lock().unwrap_or_else(PoisonError::into_inner);
        site.get_or_insert_with(|| serde_json::to_vec(&self.site()).unwrap_or_default().into()).clone()
    }

    fn forget_site(&self) {
        *self.site.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The UDP port of QUIC and WebTransport.
    pub(crate) fn quic_port(&self) -> u16 {
        self.endpoint().map_or_else(|| self.config().listen.port(), |endpoint| endpoint.address().port())
    }

    pub(crate) fn site(&self) -> Site {
        let config = self.config();
        Site {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            cadence_us: u64::try_from(config.rooms.cadence().interval().as_micros()).unwrap_or(0),
            default_room: config.rooms.default.to_string(),
            room_capacity: config.rooms.capacity(),
            auth: config.auth.mode,
            quic: Quic {
                port: self.quic_port(),
                certificate_hashes: self.identity().hashes().iter().map(ToString::to_string).collect(),
            },
            websocket: "/ws".to_owned(),
            arena: Ground::of(self.lobby.arena()),
        }
    }

    /// What `/metrics` says, for one more reader; none when it has as many as it may have.
    pub(crate) async fn metrics(self: &Arc<Self>, reader: Reader) -> Option<Reading> {
        let this = Arc::clone(self);
        self.exposition.read(reader, Instant::now(), move || this.write_metrics()).await
    }

    fn write_metrics(&self) -> String {
        let recording = self.recordings.as_ref().map(|recordings| recordings.counts().read());
        let since_1970 = self.started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let program = Program {
            door: self.door.stats(),
            up: self.up(),
            started: since_1970.as_secs_f64(),
            draining: *self.phase.borrow() != Phase::Serving,
            recording,
        };
        metrics::write(&self.lobby.census(self.config().metrics.rooms.count()), &program)
    }

    /// What is to be done every second: rooms looked after, a certificate changed in good time.
    pub(crate) fn tend(&self) {
        self.lobby.tend(Instant::now());
        let mut identity = self.identity();
        match identity.rotate(SystemTime::now()) {
            Ok(false) => {}
            Ok(true) => match self.show(identity.certificate()) {
                Ok(()) => tracing::info!("the next certificate is shown from here on"),
                Err(problem) => tracing::error!(%problem, "the next certificate cannot be shown"),
            },
            Err(problem) => tracing::error!(%problem, "no new certificate can be made"),
        }
        drop(identity);
        // Certificates are announced before they are shown: it is made anew every second that somebody asks.
        self.forget_site();
    }

    /// Reads config, certificate, keys and secret again. All of it holds from here on, or nothing does. Gives the keys
    /// that need a restart.
    pub(crate) fn reload(&self) -> Result<Vec<&'static str>, StartError> {
        let fresh = self.source.load()?;
        let old = self.config();
        let secrets = Secrets::read(&fresh)?;
        let (limits, origins) = (limits(&fresh), origins(&fresh)?);
        limits.check()?;
        let self_made = fresh.tls.certificate.is_none() && old.tls == fresh.tls;
        let identity = if self_made { None } else { Some(Identity::new(&tls(&fresh), SystemTime::now())?) };
        if let Some(log) = &self.log {
            log.reload(&fresh.log)?;
        }
        self.gate.reload(&fresh.auth)?;
        if let Some(identity) = identity {
            self.show(identity.certificate())?;
            *self.identity() = identity;
        }
        self.door.set_limits(limits)?;
        self.door.set_origins(origins);
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = secrets;
        let late = [
            ("listen", old.listen != fresh.listen),
            ("log.format", old.log.format != fresh.log.format),
            ("rooms.cadence_ms", old.rooms.cadence() != fresh.rooms.cadence()),
            ("rooms.arena", old.rooms.arena != fresh.rooms.arena),
            ("rooms.default", old.rooms.default != fresh.rooms.default),
            ("record.folder", old.record.folder != fresh.record.folder),
            ("admin.state_folder", old.admin.state_folder != fresh.admin.state_folder),
            ("metrics.listen", old.metrics.listen != fresh.metrics.listen),
            ("limits.idle_s", old.limits.idle_s != fresh.limits.idle_s),
            ("limits.migration", old.limits.migration != fresh.limits.migration),
            ("limits.stall_s", old.limits.stall_s != fresh.limits.stall_s),
        ];
        // What everybody must share stays as it was, until a restart.
        let mut config = fresh;
        config.listen = old.listen;
        config.rooms.keep(&old.rooms);
        self.lobby.reload(config.rooms.clone(), &config.limits);
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
        self.forget_site();
        Ok(late.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect())
    }

    fn show(&self, certificate: &Certificate) -> Result<(), IoError> {
        self.endpoint().map_or(Ok(()), |endpoint| endpoint.set_certificate(certificate))
    }
}

/// A server that is to come back must be known again: without another place, its certificate is kept with the matches.
fn tls(config: &Config) -> config::Tls {
    let beside = config.record.folder.as_ref().map(|folder| folder.join("certificates"));
    config::Tls { keep: config.tls.keep.clone().or(beside), ..config.tls.clone() }
}

fn limits(config: &Config) -> Limits {
    let limits = &config.limits;
    let defaults = Limits::default();
    let handshakes = limits.handshakes_per_address_per_s.count();
    Limits {
        max_connections: limits.connections.count(),
        max_per_address: limits.connections_per_address.count(),
        handshakes_per_second: handshakes,
        handshake_burst: handshakes.saturating_mul(5),
        handshake: limits.handshake_s.seconds(),
        requests_per_second: limits.requests_per_address_per_s.count(),
        retry_from: limits.retry_above_handshakes.count(),
        messages_per_second: limits.messages_per_s.count(),
        bytes_per_second: limits.bytes_per_s.count(),
        ..defaults
    }
}

fn origins(config: &Config) -> Result<Vec<Origin>, StartError> {
    let read = |origin: &String| origin.parse().map_err(|_| StartError::Origin { origin: origin.clone() });
    config.limits.origins.iter().map(read).collect()
}
