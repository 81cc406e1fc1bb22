//! Where a client is to connect to, as a person writes it. Does not connect.

use core::str::FromStr;

use crate::error::IoError;
use crate::rooms::RoomName;

/// How to get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Quic,
    WebSocket,
}

/// A server's address and a room of it: `quic://HOST:PORT`, `ws://HOST:PORT`, either with `/room/NAME` behind it.
///
/// ```
/// use halftrack_io::Target;
///
/// assert!("quic://127.0.0.1:7777/room/duel".parse::<Target>().is_ok());
/// assert!("ws://[::1]:7777".parse::<Target>().is_ok());
/// assert!("https://example.org/".parse::<Target>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub(crate) way: Way,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) room: RoomName,
}

impl FromStr for Target {
    type Err = IoError;

    fn from_str(text: &str) -> Result<Self, IoError> {
        let (scheme, rest) = text.split_once("://").ok_or(IoError::Url)?;
        let way = match scheme {
            "quic" => Way::Quic,
            "ws" => Way::WebSocket,
            _ => return Err(IoError::Url),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (host, port) = authority.rsplit_once(':').ok_or(IoError::Url)?;
        let port = port.parse().map_err(|_| IoError::Url)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(IoError::Url);
        }
        // Where the socket is served may be written out.
        let path = path.strip_prefix("/ws").filter(|_| way == Way::WebSocket).unwrap_or(path);
        let room = RoomName::of_path(path).ok_or(IoError::RoomName)?;
        Ok(Self { way, host: host.to_owned(), port, room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        let read = |text: &str| {
            let target: Target = text.parse().unwrap();
            (target.way, target.host, target.port, target.room.to_string())
        };
        assert_eq!(read("quic://127.0.0.1:7777"), (Way::Quic, "127.0.0.1".into(), 7_777, "main".into()));
        assert_eq!(read("quic://[::1]:1/room/a"), (Way::Quic, "::1".into(), 1, "a".into()));
        assert_eq!(read("ws://host:80/ws/room/b-1"), (Way::WebSocket, "host".into(), 80, "b-1".into()));
        assert_eq!(read("ws://host:80/ws"), (Way::WebSocket, "host".into(), 80, "main".into()));
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in
            ["", "host:1", "http://host:1", "quic://host", "quic://:1", "quic://host:70000", "quic://h:1/x"]
        {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
