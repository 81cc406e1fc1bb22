//! What is served by HTTP: health, metrics, what a client must know, the WebSocket, and the operator's part.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use halftrack_io::WebSockets;

use crate::admin;
use crate::app::App;
use crate::page;
use crate::site::Site;

/// Everything.
pub(crate) fn routes(app: &Arc<App>) -> Router {
    let sockets = WebSockets::new(app.door.clone());
    let routes = Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route(Site::PATH, get(site))
        .merge(admin::routes())
        .with_state(Arc::clone(app))
        .merge(sockets.routes())
        .fallback_service(get(page::serve))
        .layer(middleware::from_fn_with_state(Arc::clone(app), keep_out));
    admin::guarded(routes, app)
}

/// Whoever is banned gets nothing of what players need. What operators need is left: the address that somebody banned may
/// be their own proxy's, and they must be able to take it back.
async fn keep_out(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let operators = path.starts_with("/admin/") || ["/healthz", "/readyz", "/metrics"].contains(&path);
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
    let names: Vec<_> = stuck.iter().map(ToString::to_string).collect();
    (StatusCode::SERVICE_UNAVAILABLE, format!("these rooms do not tick: {}\n", names.join(", ")))
        .into_response()
}

/// Ready: players are let in.
async fn ready(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    if app.is_ready() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "nobody new is let in\n")
    }
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics()).into_response()
}

async fn site(State(app): State<Arc<App>>) -> Response {
    json(StatusCode::OK, &app.site())
}

/// `body` as JSON that nobody keeps.
pub(crate) fn json(status: StatusCode, body: &impl serde::Serialize) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    match serde_json::to_vec(body) {
        Ok(body) => (status, headers, body).into_response(),
        Err(problem) => (StatusCode::INTERNAL_SERVER_ERROR, problem.to_string()).into_response(),
    }
}
