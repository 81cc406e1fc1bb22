//! Where a page comes from, as a browser says it of every WebSocket and WebTransport that the page opens. Does not
//! know who is let in.

use core::str::FromStr;

use crate::error::IoError;

/// The origin of a page: scheme, host and port, as in `https://example.org` or `http://localhost:8080`.
///
/// ```
/// use halftrack_io::Origin;
///
/// let origin: Origin = "https://Example.org:443".parse()?;
/// assert_eq!(origin, "https://example.org".parse()?);
/// assert!("example.org".parse::<Origin>().is_err() && "null".parse::<Origin>().is_err());
/// # Ok::<(), halftrack_io::IoError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whether the page came by HTTPS.
    secure: bool,
    /// In lower case, brackets of an IPv6 address included.
    host: String,
    port: u16,
}

impl Origin {
    /// Whether the page came from the host that it now talks to, as `host` of the request says it. By which
    /// scheme, only a proxy in front of us would know.
    pub(crate) fn is_of(&self, host: &str) -> bool {
        authority(host, self.default_port())
            .is_some_and(|(host, port)| host == self.host && port == self.port)
    }

    /// Whether the page came from the host whose UDP port it now talks to. The page's own port may be another there: that
    /// of a proxy for pages, which is the usual one. And `localhost` may be any of this machine's names: pages ask for
    /// `127.0.0.1` in its place, because that is where servers listen.
    pub(crate) fn is_beside(&self, authority: &str) -> bool {
        let is_here = |host: &str| ["localhost", "127.0.0.1", "[::1]"].contains(&host);
        let beside = |(host, port): (String, u16)| {
            let same_host = host == self.host || (is_here(&host) && is_here(&self.host));
            same_host && (port == self.port || self.port == self.default_port())
        };
        crate::origin::authority(authority, 443).is_some_and(beside)
    }

    fn default_port(&self) -> u16 {
        if self.secure { 443 } else { 80 }
    }
}

impl FromStr for Origin {
    type Err = IoError;

    fn from_str(text: &str) -> Result<Self, IoError> {
        let (scheme, rest) = text.split_once("://").ok_or(IoError::Origin)?;
        let (secure, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "https" => (true, 443),
            "http" => (false, 80),
            _ => return Err(IoError::Origin),
        };
        let (host, port) = authority(rest, default_port).ok_or(IoError::Origin)?;
        Ok(Self { secure, host, port })
    }
}

/// Host and port of `HOST` or `HOST:PORT`.
fn authority(text: &str, default_port: u16) -> Option<(String, u16)> {
    // Colons within brackets are the address's own.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, default_port),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_plain)).then(|| (host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_of_the_host_and_the_port_that_served_it() {
        let is_of = |origin: &str, host| origin.parse::<Origin>().unwrap().is_of(host);
        assert!(is_of("http://localhost:8080", "localhost:8080"));
        assert!(is_of("https://example.org", "EXAMPLE.org"));
        assert!(is_of("https://example.org", "example.org:443"));
        assert!(is_of("http://[::1]:8080", "[::1]:8080"));
        assert!(is_of("http://[::1]", "[::1]"));
        for host in ["localhost", "localhost:8081", "example.org:8080", "", ":8080", "localhost:8080:8080"] {
            assert!(!is_of("http://localhost:8080", host), "{host}");
        }
        assert!(!is_of("https://example.org", "example.org:80"));
        assert!(!is_of("http://example.org.evil.test", "example.org"));
    }

    #[test]
    fn a_page_is_beside_the_udp_port_of_its_host() {
        let is_beside = |origin: &str, authority| origin.parse::<Origin>().unwrap().is_beside(authority);
        assert!(is_beside("http://localhost:7777", "localhost:7777"));
        assert!(is_beside("http://localhost:7777", "127.0.0.1:7777"));
        assert!(is_beside("https://example.org", "example.org:7777"), "its page comes by a proxy");
        assert!(is_beside("https://example.org", "example.org"));
        for (origin, authority) in [
            ("http://localhost:5173", "localhost:7777"),
            ("http://127.0.0.2:7777", "127.0.0.1:7777"),
            ("https://example.org.evil.test", "example.org:7777"),
            ("https://evil.test", "example.org"),
        ] {
            assert!(!is_beside(origin, authority), "{origin} {authority}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in ["", "null", "example.org", "ws://example.org", "https://", "https://a/b", "http://a:b"] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
