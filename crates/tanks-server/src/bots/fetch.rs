//! Asks a server for its pages, once each: what it is, and what it has counted.

use core::fmt;
use core::str::FromStr;
use std::io;
use std::time::Duration;

use halftrack::wire::control::PROTOCOL;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::error::BotsError;
use crate::site::Site;

/// Where a server's pages are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// As it is dialled: without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

impl FromStr for Base {
    type Err = BotsError;

    fn from_str(text: &str) -> Result<Self, BotsError> {
        if text.starts_with("https://") {
            return Err(BotsError::Https);
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#', '@']) {
            return Err(BotsError::Url);
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| BotsError::Url)?),
            _ => (authority, 80),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        if host.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(BotsError::Url);
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl Base {
    /// A page takes no longer, or nobody is there.
    const PATIENCE: Duration = Duration::from_secs(5);
    /// The longest page of ours is a tenth of this.
    const MAX_BYTES: usize = 4 << 20;

    /// Host and port as URLs have them.
    pub(crate) fn authority(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// What the server tells whoever wants to play.
    pub(crate) async fn site(&self) -> Result<Site, BotsError> {
        let (status, body) = self.get(Site::PATH).await?;
        if status != StatusCode::OK {
            let status = status.as_u16();
            return Err(BotsError::NotTanks { base: self.clone(), path: Site::PATH, status });
        }
        let site: Site = serde_json::from_slice(&body)
            .map_err(|source| BotsError::NotASite { base: self.clone(), source })?;
        if site.protocol != PROTOCOL {
            return Err(BotsError::Protocol { server: site.protocol, ours: PROTOCOL });
        }
        Ok(site)
    }

    /// A page as text, if it is there.
    pub(crate) async fn page(&self, path: &str) -> Result<Option<String>, BotsError> {
        let (status, body) = self.get(path).await?;
        Ok((status == StatusCode::OK).then(|| String::from_utf8_lossy(&body).into_owned()))
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), BotsError> {
        let slow = |_| BotsError::Slow { base: self.clone() };
        timeout(Self::PATIENCE, self.exchange(path)).await.map_err(slow)?
    }

    async fn exchange(&self, path: &str) -> Result<(StatusCode, Bytes), BotsError> {
        let nobody = |source: io::Error| BotsError::Nobody { base: self.clone(), source };
        let not_http = |source: hyper::Error| BotsError::NotHttp { base: self.clone(), source };
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(nobody)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(not_http)?;
        let driving = tokio::spawn(connection);
        let request = Request::get(path).header(HOST, self.authority()).body(Empty::<Bytes>::new());
        let request = request.map_err(|_| BotsError::Url)?;
        let response = sender.send_request(request).await.map_err(not_http)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), Self::MAX_BYTES).collect().await;
        driving.abort();
        let body = body.map_err(|_| BotsError::TooLong { base: self.clone() })?;
        Ok((status, body.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Base>().map(|base| base.authority()).ok();
        assert_eq!(read("http://127.0.0.1:7777"), Some("127.0.0.1:7777".to_owned()));
        assert_eq!(read("http://host:1/"), Some("host:1".to_owned()));
        assert_eq!(read("host:1"), Some("host:1".to_owned()));
        assert_eq!(read("http://[::1]:7777"), Some("[::1]:7777".to_owned()));
        assert_eq!(read("http://[::1]"), Some("[::1]:80".to_owned()));
        assert_eq!(read("http://host"), Some("host:80".to_owned()));
        for wrong in ["", "http://", "http://host:port", "ftp://host", "http://host/page", "http://:1", "::1"]
        {
            assert!(read(wrong).is_none(), "{wrong}");
        }
        assert!(matches!("https://host".parse::<Base>(), Err(BotsError::Https)));
    }
}
