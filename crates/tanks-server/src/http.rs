//! What is served by HTTP: health, metrics, what a client must know, the WebSocket, and the operator's part.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use halftrack_io::WebSockets;

use crate::admin;
use crate::app::App;
use crate::page;
use crate::site::Site;
use crate::words::Count;

/// Everything.
pub(crate) fn routes(app: &Arc<App>) -> Router {
    let sockets = WebSockets::new(app.door.clone());
    let config = app.config();
    let mut routes = probes().route(Site::PATH, get(site)).merge(admin::routes());
    if config.metrics.listen.is_none() {
        routes = routes.route("/metrics", get(metrics));
    }
    let routes = routes
        .with_state(Arc::clone(app))
        .merge(sockets.routes())
        .fallback_service(get(page::serve).with_state(Arc::clone(app)))
        .layer(middleware::from_fn_with_state(Arc::clone(app), keep_out));
    admin::guarded(routes, app)
}

/// The part for programs that watch the server, at an address of its own.
pub(crate) fn watching_routes(app: &Arc<App>) -> Router {
    probes().route("/metrics", get(metrics)).with_state(Arc::clone(app))
}

fn probes() -> Router<Arc<App>> {
    Router::new().route("/healthz", get(health)).route("/readyz", get(ready))
}

/// Whoever is banned gets nothing of what players need. What operators need is left: the address that somebody banned may
/// be their own proxy's, and they must be able to take it back.
async fn keep_out(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let operators = admin::is_admin(path) || ["/healthz", "/readyz", "/metrics"].contains(&path);
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    if !operators && peer.is_some_and(|ConnectInfo(peer)| app.door.is_banned(peer.ip())) {
        return (StatusCode::FORBIDDEN, "this address is banned\n").into_response();
    }
    next.run(request).await
}

/// Alive: every room ticks.
async fn health(State(app): State<Arc<App>>) -> Response {
    let stuck = app.lobby.stuck(Instant::now());
    if stuck.is_empty() {
        return (StatusCode::OK, "ok\n").into_response();
    }
    /// Names in the answer.
    const NAMED: usize = 8;
    let names: Vec<_> = stuck.iter().take(NAMED).map(ToString::to_string).collect();
    let (count, names) = (Count(stuck.len() as u64, "room"), names.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ticking: {count}: {names}\n")).into_response()
}

/// Ready: players are let in.
async fn ready(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    if app.is_ready() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "nobody new is let in\n")
    }
}

async fn metrics(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let Some(reader) = app.reader(peer.ip(), bearer(&headers)) else {
        tokio::time::sleep(admin::PAUSE).await;
        let asked = [(header::WWW_AUTHENTICATE, "Bearer")];
        let why = "send the header `Authorization: Bearer SECRET`, with the secret of metrics.secret_file\n";
        return (StatusCode::UNAUTHORIZED, asked, why).into_response();
    };
    let Some(text) = app.metrics(reader).await else {
        let why = "too many readers: try again in a second, or show a secret\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], why).into_response();
    };
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, Body::new(text)).into_response()
}

/// The secret of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

async fn site(State(app): State<Arc<App>>) -> Response {
    (JSON, app.site_json()).into_response()
}

/// JSON that no cache keeps.
const JSON: [(HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "application/json"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// `body` as JSON.
pub(crate) fn json(status: StatusCode, body: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(body) => (status, JSON, body).into_response(),
        Err(problem) => (StatusCode::INTERNAL_SERVER_ERROR, problem.to_string()).into_response(),
    }
}
