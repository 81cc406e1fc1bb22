//! What an operator may do by HTTP, with the secret: see who is there, kick, ban, drain, reload.
//!
//! ```text
//! GET  /admin/rooms                                    rooms and players, with their addresses and round trips
//! GET  /admin/bans                                     names and addresses that are kept out, why, and until when
//! POST /admin/kick    {"player": "Ada"} or {"room": "main", "player": "Ada"}
//! POST /admin/ban     {"player": "Ada"} or {"address": "192.0.2.1"} or {"room": .., "player": .., "with_address": true};
//!                     "minutes": 60, or for good; "why" and "by" go to the log and the list, also for kick and unban
//! POST /admin/unban   {"player": "Ada"} or {"address": "192.0.2.1"}
//! POST /admin/drain
//! POST /admin/reload
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use halftrack::PlayerName;
use halftrack_io::{Room, RoomName};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::app::App;
use crate::bans::{Ban, Banned, Full, Kept};
use crate::http::{bearer, json};
use crate::token::seconds;
use crate::words::Date;
use crate::world::GatedWorld;

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

/// Everything that can be asked for, as the error for an unknown path lists it.
const PATHS: [(&str, &str); 7] = [
    ("GET", "/admin/rooms"),
    ("GET", "/admin/bans"),
    ("POST", "/admin/kick"),
    ("POST", "/admin/ban"),
    ("POST", "/admin/unban"),
    ("POST", "/admin/drain"),
    ("POST", "/admin/reload"),
];

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/admin/rooms", get(rooms).fallback(unknown))
        .route("/admin/bans", get(bans).fallback(unknown))
        .route("/admin/kick", post(kick).fallback(unknown))
        .route("/admin/ban", post(ban).fallback(unknown))
        .route("/admin/unban", post(unban).fallback(unknown))
        .route("/admin/drain", post(drain).fallback(unknown))
        .route("/admin/reload", post(reload).fallback(unknown))
        .route("/admin", any(unknown))
        .route("/admin/", any(unknown))
        .route("/admin/{*path}", any(unknown))
}

/// Whether a path is the operator's.
pub(crate) fn is_admin(path: &str) -> bool {
    path.strip_prefix("/admin").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Lets through whoever has the secret.
pub(crate) async fn guard(State(app): Shared, request: Request, next: Next) -> Response {
    use axum::response::IntoResponse as _;
    if !is_admin(request.uri().path()) {
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
    /// Only operators are told: nothing else shows it.
    address: Option<IpAddr>,
    /// Its connection is gone, and it may come back.
    away: bool,
    /// The round trip as this side's transport measures it; none while the player is away or just came.
    ping_ms: Option<f64>,
}

async fn rooms(State(app): Shared) -> Answer {
    let mut told = vec![];
    for (name, room) in app.lobby.rooms() {
        let lookup = Arc::clone(&room);
        // It waits for the room's thread.
        let seen = tokio::task::spawn_blocking(move || {
            lookup.with(|server, _| {
                let seen = server.players().map(|id| {
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
        let players: Vec<_> = seen
            .into_iter()
            .map(|(id, name, connection)| PlayerSeen {
                id: id.number(),
                name,
                address: connection.and_then(|connection| room.address(connection)),
                away: connection.is_none(),
                ping_ms: connection
                    .and_then(|connection| room.round_trip(connection))
                    .map(|span| (span.as_secs_f64() * 1e4).round() / 10.0),
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
    let now = seconds(SystemTime::now());
    let (mut players, mut addresses) = (vec![], vec![]);
    for Ban { whom, since, until, why, by } in app.bans.all() {
        let mut entry = json!({
            "since": Date(since).to_string(),
            "until": until.map(|until| Date(until).to_string()),
            "seconds": until.map(|until| until.saturating_sub(now)),
            "why": why,
            "by": by,
        });
        match whom {
            Banned::Player(name) => {
                entry["player"] = json!(name.to_string());
                players.push(entry);
            }
            Banned::Address(address) => {
                entry["address"] = json!(address);
                addresses.push(entry);
            }
        }
    }
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
    /// For the log and the list of bans.
    why: Option<String>,
    by: Option<String>,
}

impl Whom {
    /// Characters of a reason or of an operator's name.
    const MAX_WORDS: usize = 200;

    fn read(body: &Bytes) -> Result<Self, Refused> {
        let whom: Self = read(body)?;
        let is_bad =
            |words: &String| words.chars().count() > Self::MAX_WORDS || words.chars().any(char::is_control);
        if [&whom.why, &whom.by].into_iter().flatten().any(is_bad) {
            let most = Self::MAX_WORDS;
            return Err(bad(format!(
                "why and by have at most {most} characters, none of them a control character"
            )));
        }
        Ok(whom)
    }

    fn why(&self) -> &str {
        self.why.as_deref().unwrap_or("not given")
    }

    fn by(&self) -> &str {
        self.by.as_deref().unwrap_or("not given")
    }

    /// The rooms that are meant: the one that is named, or all.
    fn rooms(&self, app: &App) -> Result<Vec<Named>, Refused> {
        let rooms = app.lobby.rooms();
        let Some(only) = &self.room else { return Ok(rooms) };
        let only = RoomName::new(only).map_err(|problem| bad(problem.to_string()))?;
        if !rooms.iter().any(|(name, _)| *name == only) {
            /// Names in the answer.
            const NAMED: usize = 8;
            let names: Vec<_> = rooms.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
            let more = if rooms.len() > NAMED { ", ..." } else { "" };
            let there = format!("there is no room {only}; there are: {}{more}", names.join(", "));
            return Err(Refused(StatusCode::NOT_FOUND, there));
        }
        Ok(rooms.into_iter().filter(|(name, _)| *name == only).collect())
    }
}

fn bad(problem: String) -> Refused {
    Refused(StatusCode::BAD_REQUEST, problem)
}

type Named = (RoomName, Arc<Room<GatedWorld>>);

/// Removes a player from these rooms. Gives the names of those that it was in, and the addresses it came from.
async fn remove(rooms: Vec<Named>, player: &PlayerName) -> (Vec<RoomName>, Vec<IpAddr>) {
    let (mut removed, mut addresses) = (vec![], vec![]);
    for (name, room) in rooms {
        let (lookup, wanted) = (Arc::clone(&room), player.clone());
        let found = tokio::task::spawn_blocking(move || {
            lookup.with(move |server, _| {
                let id = server.players().find(|id| server.name(*id) == Some(&wanted))?;
                let connection = server.connection_of(id);
                Some((id, connection))
            })
        });
        let Ok(Ok(Some((id, connection)))) = found.await else { continue };
        addresses.extend(connection.and_then(|connection| room.address(connection)));
        let kick = tokio::task::spawn_blocking(move || room.with(move |server, _| server.kick(id)));
        let _ = kick.await;
        removed.push(name);
    }
    (removed, addresses)
}

async fn kick(State(app): Shared, body: Bytes) -> Answer {
    let whom = Whom::read(&body)?;
    let player = whom.player.as_deref().ok_or_else(|| bad("name a player".to_owned()))?;
    let player = name(player)?;
    let rooms = whom.rooms(&app)?;
    let (removed, _) = remove(rooms, &player).await;
    if removed.is_empty() {
        let place = whom.room.as_ref().map_or_else(|| "any room".to_owned(), |room| format!("room {room}"));
        return Err(Refused(StatusCode::NOT_FOUND, format!("no player {player} is in {place}")));
    }
    for room in &removed {
        tracing::info!(%room, %player, why = whom.why(), by = whom.by(), "kicked by an operator");
    }
    Ok(json(StatusCode::OK, &json!({ "kicked": removed.len() })))
}

async fn ban(State(app): Shared, body: Bytes) -> Answer {
    let whom = Whom::read(&body)?;
    let player = whom.player.as_deref().map(name).transpose()?;
    let rooms = whom.rooms(&app)?;
    let mut addresses: Vec<_> = whom.address.into_iter().collect();
    if player.is_none() && addresses.is_empty() {
        return Err(bad("name a player or an address".to_owned()));
    }
    let since = seconds(SystemTime::now());
    let until = whom.minutes.map(|minutes| since.saturating_add(minutes.saturating_mul(60)));
    let ban = |banned| Ban { whom: banned, since, until, why: whom.why.clone(), by: whom.by.clone() };
    let (mut kicked, mut kept) = (0, Kept::Yes);
    let until = until.map_or_else(|| "for good".to_owned(), |until| Date(until).to_string());
    if let Some(player) = player {
        kept = enter(&app, ban(Banned::Player(player.clone()))).await?;
        let (removed, found) = remove(rooms, &player).await;
        kicked = removed.len();
        if whom.with_address {
            addresses.extend(found);
        }
        tracing::info!(%player, why = whom.why(), by = whom.by(), until, kicked, "banned by an operator");
    }
    for address in &addresses {
        if enter(&app, ban(Banned::Address(*address))).await? == Kept::No {
            kept = Kept::No;
        }
        tracing::info!(why = whom.why(), by = whom.by(), until, "an address was banned by an operator");
        tracing::debug!(%address, "an address was banned by an operator");
    }
    let answer =
        json!({ "kicked": kicked, "addresses": addresses.len(), "survives_restart": kept == Kept::Yes });
    Ok(json(StatusCode::OK, &answer))
}

/// Puts a ban on the list.
async fn enter(app: &Arc<App>, ban: Ban) -> Result<Kept, Refused> {
    let app = Arc::clone(app);
    // It waits for the disk.
    match tokio::task::spawn_blocking(move || app.bans.ban(ban)).await {
        Ok(Ok(kept)) => Ok(kept),
        Ok(Err(Full)) => {
            Err(Refused(StatusCode::INSUFFICIENT_STORAGE, "too many are banned: unban some".to_owned()))
        }
        Err(problem) => Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, problem.to_string())),
    }
}

async fn unban(State(app): Shared, body: Bytes) -> Answer {
    let whom = Whom::read(&body)?;
    let player = whom.player.as_deref().map(name).transpose()?.map(Banned::Player);
    let mut kept = None;
    for banned in player.into_iter().chain(whom.address.map(Banned::Address)) {
        let (lift, lifted) = (Arc::clone(&app), banned.clone());
        // It waits for the disk.
        let done = tokio::task::spawn_blocking(move || lift.bans.unban(&lifted)).await.ok().flatten();
        let Some(done) = done else { continue };
        match &banned {
            Banned::Player(player) => {
                tracing::info!(%player, why = whom.why(), by = whom.by(), "unbanned by an operator");
            }
            Banned::Address(_) => {
                tracing::info!(why = whom.why(), by = whom.by(), "an address was unbanned by an operator");
            }
        }
        kept = Some(kept.filter(|kept| *kept == Kept::No).unwrap_or(done));
    }
    let kept =
        kept.ok_or_else(|| Refused(StatusCode::NOT_FOUND, "no such name or address is banned".to_owned()))?;
    Ok(json(StatusCode::OK, &json!({ "unbanned": true, "survives_restart": kept == Kept::Yes })))
}

/// What there is, for a path that is none of it or is asked in another way.
async fn unknown(request: Request) -> Refused {
    let (method, path) = (request.method(), request.uri().path());
    let known = PATHS.iter().find(|(_, known)| *known == path);
    match known {
        Some((with, _)) => {
            Refused(StatusCode::METHOD_NOT_ALLOWED, format!("{path} is asked with {with}, not {method}"))
        }
        None => {
            let paths: Vec<_> = PATHS.iter().map(|(method, path)| format!("{method} {path}")).collect();
            Refused(StatusCode::NOT_FOUND, format!("there is no such path; there are: {}", paths.join(", ")))
        }
    }
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
