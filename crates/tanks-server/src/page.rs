//! The page, out of the program itself: what `cargo xtask web` has built into `web/dist`.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use rust_embed::RustEmbed;

use crate::app::App;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Built;

/// For a build without it.
const MISSING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Halftrack tanks</title>\
    <p>The server runs, but this build has no page to play on: run <code>cargo xtask web</code> and build again. \
    There are <a href=\"/config.json\">config</a>, <a href=\"/metrics\">metrics</a> and <a href=\"/healthz\">health</a>.</p>";

/// Whether there is a page to play on.
pub(crate) fn is_built() -> bool {
    Built::get("index.html").is_some()
}

/// A file of the page, by its path.
pub(crate) async fn serve(State(app): State<Arc<App>>, uri: Uri) -> Response {
    answer(&uri, app.quic_port())
}

fn answer(uri: &Uri, quic_port: u16) -> Response {
    let path = match uri.path() {
        "/" => "index.html",
        path => path.trim_start_matches('/'),
    };
    let Some(file) = Built::get(path) else {
        return match path {
            "index.html" => Html(MISSING).into_response(),
            _ => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
        };
    };
    // Files in `assets` have a hash of what they hold in their names.
    let cache = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [
        (header::CONTENT_TYPE, kind_of(path)),
        (header::CACHE_CONTROL, cache),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        ),
    ];
    let policy = [(header::CONTENT_SECURITY_POLICY, policy(quic_port))];
    // Out of the program as it lies there: a copy for each request would be kept for as long as its reader likes.
    let data = match file.data {
        Cow::Borrowed(data) => Bytes::from_static(data),
        Cow::Owned(data) => data.into(),
    };
    (headers, policy, data).into_response()
}

/// What the page may load and do: its own scripts, styles and wasm, its picture in the tab, this server's HTTP and WebSocket
/// (`'self'`), and WebTransport at its QUIC port. The host is left open: the page asks 127.0.0.1 when it is opened at
/// localhost, and behind a proxy the port differs from that of the page.
fn policy(quic_port: u16) -> String {
    format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self' https://*:{quic_port}; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_page_is_served() {
        for path in
            ["/../Cargo.toml", "/..%2fCargo.toml", "//etc/passwd", "/assets/../../../Cargo.toml", "/assets"]
        {
            let answer = answer(&path.parse().unwrap(), 7_777);
            assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        }
        let answer = answer(&Uri::from_static("/"), 7_777);
        assert_eq!(answer.status(), StatusCode::OK);
        let html = answer.headers()[header::CONTENT_TYPE].to_str().unwrap();
        assert!(html.starts_with("text/html"));
    }

    #[test]
    fn the_page_may_load_nothing_from_elsewhere() {
        let answer = answer(&Uri::from_static("/"), 7_777);
        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        let mut directives = policy.split("; ").map(|directive| directive.split_once(' ').unwrap());
        assert_eq!(directives.next(), Some(("default-src", "'none'")));
        for (name, sources) in directives {
            let allowed: &[&str] = match name {
                "script-src" => &["'self'", "'wasm-unsafe-eval'"],
                "connect-src" => &["'self'", "https://*:7777"],
                "img-src" => &["'self'", "data:"],
                "base-uri" | "form-action" => &["'none'"],
                _ => &["'self'"],
            };
            assert!(sources.split(' ').eq(allowed.iter().copied()), "{name} {sources}");
        }
        assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(answer.headers()[header::REFERRER_POLICY], "no-referrer");
    }

    #[test]
    fn files_are_not_copied() {
        for path in Built::iter() {
            assert!(matches!(Built::get(&path).unwrap().data, Cow::Borrowed(_)), "{path}");
        }
    }

    #[test]
    fn files_are_told_what_they_are() {
        assert_eq!(kind_of("assets/a.wasm"), "application/wasm");
        assert_eq!(kind_of("what"), "application/octet-stream");
    }
}
