//! What an operator may do by HTTP, with the secret: see who is there, kick, ban, drain, reload.
//!
//! ```text
//! GET  /admin/rooms                                    rooms and players
//! GET  /admin/bans                                     who is kept out, and for how long
//! POST /admin/kick    {"room": "main", "player": "Ada"}
//! POST /admin/ban     {"player": "Ada"} or {"address": "192.0.2.1"} or {"room": .., "player": .., "with_address": true};
//!                     "minutes": 60, or for good
//! POST /admin/unban   {"player": "Ada"} or {"address": "192.0.2.1"}
//! POST /admin/drain
//! POST /admin/reload
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use halftrack::PlayerName;
use halftrack_io::{RoomName, now};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::app::App;
use crate::http::{bearer, json};

type Shared = State<Arc<App>>;

/// What did not work, for whoever asked.
struct Refused(StatusCode, String);

impl axum::response::IntoResponse for Refused {
    fn into_response(self) -> Response {
        json(self.0, &json!({ "error": self.1 }))
    }
}

/// A wrong secret is answered after this.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

type Answer = Result<Response, Refused>;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/admin/rooms", get(rooms))
        .route("/admin/bans", get(bans))
        .route("/admin/kick", post(kick))
        .route("/admin/ban", post(ban))
        .route("/admin/unban", post(unban))
        .route("/admin/drain", post(drain))
        .route("/admin/reload", post(reload))
}

/// Lets through whoever has the secret.
pub(crate) async fn guard(State(app): Shared, request: Request, next: Next) -> Response {
    use axum::response::IntoResponse as _;
    if !request.uri().path().starts_with("/admin/") {
        return next.run(request).await;
    }
    if !app.has_operator() {
        let off = "there is no /admin: name a file with a secret as admin.secret_file";
        return Refused(StatusCode::NOT_FOUND, off.to_owned()).into_response();
    }
    if app.is_operator(bearer(request.headers())) {
        return next.run(request).await;
    }
    warn_of_guesses(app.up());
    tokio::time::sleep(PAUSE).await;
    Refused(StatusCode::UNAUTHORIZED, "send the header `Authorization: Bearer SECRET`".to_owned())
        .into_response()
}

/// A line a second at most: whoever guesses must not fill a disk with it.
fn warn_of_guesses(up: Duration) {
    /// Guesses since the last line, and the second of that line.
    static UNTOLD: AtomicU64 = AtomicU64::new(0);
    static TOLD: AtomicU64 = AtomicU64::new(0);
    UNTOLD.fetch_add(1, Ordering::Relaxed);
    let second = up.as_secs() + 1;
    if TOLD.swap(second, Ordering::Relaxed) != second {
        let guesses = UNTOLD.swap(0, Ordering::Relaxed);
        tracing::warn!(guesses, "somebody without the secret asked for /admin");
    }
}

/// The middleware that everything under /admin is behind.
pub(crate) fn guarded(routes: Router, app: &Arc<App>) -> Router {
    routes.layer(middleware::from_fn_with_state(Arc::clone(app), guard))
}

fn read<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Refused> {
    let refuse =
        |problem: serde_json::Error| Refused(StatusCode::BAD_REQUEST, format!("send JSON: {problem}"));
    serde_json::from_slice(body).map_err(refuse)
}

fn name(name: &str) -> Result<PlayerName, Refused> {
    PlayerName::new(name).map_err(|problem| Refused(StatusCode::BAD_REQUEST, problem.to_string()))
}

#[derive(Serialize)]
struct PlayerSeen {
    id: u16,
    name: String,
    /// The operator's to know: nowhere else is it told.
    address: Option<IpAddr>,
}

async fn rooms(State(app): Shared) -> Answer {
    let mut told = vec![];
    for (name, room) in app.lobby.rooms() {
        let lookup = Arc::clone(&room);
        // It waits for the room's thread.
        let seen = tokio::task::spawn_blocking(move || {
            lookup.with(|server, _| {
                let ids: Vec<_> = server.bodies().map(|(player, _)| player).collect();
                let seen = ids.into_iter().map(|id| {
                    (
                        id,
                        server.name(id).map(ToString::to_string).unwrap_or_default(),
                        server.connection_of(id),
                    )
                });
                seen.collect::<Vec<_>>()
            })
        });
        let Ok(Ok(seen)) = seen.await else { continue };
        let address = |connection| room.address(connection);
        let players: Vec<_> = seen
            .into_iter()
            .map(|(id, name, connection)| PlayerSeen {
                id: id.number(),
                name,
                address: connection.and_then(address),
            })
            .collect();
        let stats = room.stats();
        told.push(json!({
            "name": name.to_string(),
            "players": players,
            "connections": stats.connections,
            "ticks": stats.server.ticks,
            "tick_p99_us": u64::try_from(stats.tick_time.percentile(99).as_micros()).unwrap_or(u64::MAX),
        }));
    }
    Ok(json(StatusCode::OK, &told))
}

async fn bans(State(app): Shared) -> Answer {
    let seconds = |left: Option<Duration>| left.map(|left| left.as_secs());
    let named = |(name, left): (PlayerName, _)| json!({"player": name.to_string(), "seconds": seconds(left)});
    let players: Vec<_> = app.gate.banned().into_iter().map(named).collect();
    let left = |until: Option<halftrack::Timestamp>| until.map(|until| until.saturating_since(now()));
    let addresses: Vec<_> = app
        .door
        .bans()
        .into_iter()
        .map(|(address, until)| json!({"address": address.to_string(), "seconds": seconds(left(until))}))
        .collect();
    Ok(json(StatusCode::OK, &json!({ "players": players, "addresses": addresses })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whom {
    room: Option<String>,
    player: Option<String>,
    address: Option<IpAddr>,
    #[serde(default)]
    with_address: bool,
    minutes: Option<u64>,
}

/// Removes a player from wherever it is. Gives from how many rooms, and the addresses it came from.
async fn remove(app: &App, room: Option<&str>, player: &PlayerName) -> Result<(usize, Vec<IpAddr>), Refused> {
    let only = room.map(RoomName::new).transpose();
    let only = only.map_err(|problem| Refused(StatusCode::BAD_REQUEST, problem.to_string()))?;
    let (mut removed, mut addresses) = (0, vec![]);
    for (name, room) in app.lobby.rooms() {
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let (lookup, wanted) = (Arc::clone(&room), player.clone());
        let found = tokio::task::spawn_blocking(move || {
            lookup.with(move |server, _| {
                let mut ids = server.bodies().map(|(id, _)| id);
                let id = ids.find(|id| server.name(*id) == Some(&wanted))?;
                drop(ids);
                let connection = server.connection_of(id);
                Some((id, connection))
            })
        });
        let Ok(Ok(Some((id, connection)))) = found.await else { continue };
        addresses.extend(connection.and_then(|connection| room.address(connection)));
        let kick = tokio::task::spawn_blocking(move || room.with(move |server, _| server.kick(id)));
        let _ = kick.await;
        removed += 1;
    }
    Ok((removed, addresses))
}

async fn kick(State(app): Shared, body: Bytes) -> Answer {
    let whom: Whom = read(&body)?;
    let player =
        whom.player.as_deref().ok_or(Refused(StatusCode::BAD_REQUEST, "name a player".to_owned()))?;
    let player = name(player)?;
    let (removed, _) = remove(&app, whom.room.as_deref(), &player).await?;
    if removed == 0 {
        return Err(Refused(StatusCode::NOT_FOUND, format!("{player} is in no such room")));
    }
    tracing::info!(%player, "kicked by an operator");
    Ok(json(StatusCode::OK, &json!({ "kicked": removed })))
}

async fn ban(State(app): Shared, body: Bytes) -> Answer {
    let whom: Whom = read(&body)?;
    let span = whom.minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
    let full = || Refused(StatusCode::INSUFFICIENT_STORAGE, "too many are banned: unban some".to_owned());
    let mut addresses: Vec<_> = whom.address.into_iter().collect();
    let mut kicked = 0;
    if let Some(player) = &whom.player {
        let player = name(player)?;
        if !app.gate.ban(&player, span) {
            return Err(full());
        }
        let (removed, found) = remove(&app, whom.room.as_deref(), &player).await?;
        kicked = removed;
        if whom.with_address {
            addresses.extend(found);
        }
        tracing::info!(%player, "banned by an operator");
    } else if addresses.is_empty() {
        return Err(Refused(StatusCode::BAD_REQUEST, "name a player or an address".to_owned()));
    }
    for address in &addresses {
        let until = span.map(|span| now() + span);
        app.door.ban(*address, until).map_err(|_| full())?;
    }
    Ok(json(StatusCode::OK, &json!({ "kicked": kicked, "addresses": addresses.len() })))
}

async fn unban(State(app): Shared, body: Bytes) -> Answer {
    let whom: Whom = read(&body)?;
    let by_name = match &whom.player {
        Some(player) => app.gate.unban(&name(player)?),
        None => false,
    };
    let by_address = whom.address.is_some_and(|address| app.door.unban(address));
    if by_name || by_address {
        return Ok(json(StatusCode::OK, &json!({ "unbanned": true })));
    }
    Err(Refused(StatusCode::NOT_FOUND, "nobody of that name or address is banned".to_owned()))
}

async fn drain(State(app): Shared) -> Answer {
    app.drain();
    Ok(json(StatusCode::ACCEPTED, &json!({ "draining": true })))
}

async fn reload(State(app): Shared) -> Answer {
    match app.reload() {
        Ok(late) => Ok(json(StatusCode::OK, &json!({ "reloaded": true, "need_a_restart": late }))),
        Err(problem) => Err(Refused(StatusCode::UNPROCESSABLE_ENTITY, problem.to_string())),
    }
}
