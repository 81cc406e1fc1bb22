//! The opening handshake of a WebSocket: the request as it is asked for, and the stream behind the answer.
//!
//! By hand, because a ready-made extractor hands out messages and keeps the stream under them to itself, where
//! [`Guarded`](super::frames::Guarded) has to be.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::door::Door;
use crate::origin::Origin;

/// Who asks, as the request says it.
pub(super) struct Asked {
    pub(super) peer: SocketAddr,
    host: Option<String>,
    /// Only browsers send one, and no page can change it.
    pub(super) origin: Option<String>,
}

impl Asked {
    pub(super) fn is_welcome(&self, door: &Door) -> bool {
        let Some(origin) = &self.origin else { return true };
        let own = |origin: &Origin| self.host.as_ref().is_some_and(|host| origin.is_of(host));
        origin.parse().is_ok_and(|origin| own(&origin) || door.allows_origin(&origin))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| *peer);
        // A peer without an address could not be counted.
        let Some(peer) = peer else {
            let why = "this server does not say where its peers are\n";
            return Err((StatusCode::INTERNAL_SERVER_ERROR, why).into_response());
        };
        // Text that is not readable, and two values, are an origin that is not ours.
        let text = |name: HeaderName| {
            let mut values = parts.headers.get_all(name).iter();
            let first: Option<&HeaderValue> = values.next();
            let one = first.filter(|_| values.next().is_none());
            first.map(|_| one.and_then(|value| value.to_str().ok()).unwrap_or("").to_owned())
        };
        Ok(Self { peer, host: text(header::HOST), origin: text(header::ORIGIN) })
    }
}

/// A request that asks for a WebSocket as RFC 6455 (4.2.1) says.
pub(super) struct Upgrade {
    accept: String,
    stream: OnUpgrade,
}

impl Upgrade {
    /// The answer, and the stream as soon as the answer has been written.
    pub(super) fn answer(self) -> (Response, impl Future<Output = hyper::Result<TokioIo<Upgraded>>>) {
        let headers = [
            (header::CONNECTION, "upgrade".to_owned()),
            (header::UPGRADE, "websocket".to_owned()),
            (header::SEC_WEBSOCKET_ACCEPT, self.accept),
        ];
        let stream = self.stream;
        let answer = (StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response();
        (answer, async { stream.await.map(TokioIo::new) })
    }
}

/// Whether `headers` list `token` under `name`; upper and lower case are the same.
fn lists(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
}

/// The one value of a header; none when there are several.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let headers = &parts.headers;
        let no_upgrade = || {
            let asked = [(header::CONNECTION, "upgrade"), (header::UPGRADE, "websocket")];
            let why = "this path is a WebSocket: ask for an upgrade to it\n";
            (StatusCode::UPGRADE_REQUIRED, asked, why).into_response()
        };
        if !lists(headers, header::CONNECTION, "upgrade") || !lists(headers, header::UPGRADE, "websocket") {
            return Err(no_upgrade());
        }
        if only(headers, header::SEC_WEBSOCKET_VERSION) != Some("13") {
            let version = [(header::SEC_WEBSOCKET_VERSION, "13")];
            return Err(
                (StatusCode::UPGRADE_REQUIRED, version, "send Sec-WebSocket-Version: 13\n").into_response()
            );
        }
        let key = only(headers, header::SEC_WEBSOCKET_KEY);
        let is_key = |key: &&str| BASE64.decode(key.as_bytes()).is_ok_and(|key| key.len() == 16);
        let Some(key) = key.filter(is_key) else {
            let why = "send one Sec-WebSocket-Key: 16 bytes in base64\n";
            return Err((StatusCode::BAD_REQUEST, why).into_response());
        };
        let accept = derive_accept_key(key.as_bytes());
        let stream = parts.extensions.remove::<OnUpgrade>().ok_or_else(no_upgrade)?;
        Ok(Self { accept, stream })
    }
}
