//! What the server tells whoever wants to play: `/config.json`, as far as this client needs it.

use core::time::Duration;
use std::sync::Arc;

use halftrack::client::ClientConfig;
use halftrack::{Cadence, PlayerName};
use tanks::{Arena, Obstacle, Tanks};

use crate::json::{Json, JsonError};

/// A site as it is told. Keys that are not known are passed over: a newer server may say more.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// How long a tick is, microseconds.
    cadence_micros: u64,
    /// Of QUIC and WebTransport.
    port: u16,
    certificate_hashes: Vec<[u8; 32]>,
    /// The path of the WebSocket; a room is `/room/NAME` behind it.
    websocket: String,
    size: [f64; 2],
    obstacles: Vec<Obstacle>,
}

/// Why there is no client for a site.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// What the server told is not understood.
    #[error("config.json is not understood: {0}")]
    Config(#[from] JsonError),
    /// No arena is like that.
    #[error("the arena of config.json cannot be: {0}")]
    Arena(#[from] tanks::ArenaError),
    /// No server ticks like that, or another number is out of its range.
    #[error("config.json has a number that cannot be: {0}")]
    Number(#[from] halftrack::ConfigError),
    /// Nobody is called that.
    #[error("{0}")]
    Name(#[from] halftrack::NameRefused),
    /// No room is called that.
    #[error("a room name has 1 to 32 letters from a to z, digits, - or _")]
    Room,
    /// The page is somewhere that no server can be reached from.
    #[error("{page} is not the address of a page that a server gave out")]
    Page {
        /// Its address.
        page: String,
    },
}

/// Where a server is reached: the host that the page came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// For the WebSocket: `ws` or `wss`, and host and port as the page has them.
    socket: String,
    /// For WebTransport: the host alone.
    host: String,
    room: String,
}

impl Site {
    /// Reads what the server told.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn read(json: &str) -> Result<Self, SiteError> {
        let json = Json::read(json)?;
        let wrong = |key, expected| JsonError::Key { key, expected };
        let [quic, arena] = ["quic", "arena"].map(|key| json.get(key).unwrap_or(&Json::Null));
        // A float that is no number of microseconds or of a port saturates, and is refused further on.
        let cadence = json.get("cadence_us").and_then(Json::number);
        let port = quic.get("port").and_then(Json::number);
        let hashes = quic.get("certificate_hashes").and_then(Json::list);
        let hashes = hashes.ok_or(wrong("quic.certificate_hashes", "a list"))?;
        let websocket = json.get("websocket").and_then(Json::text);
        let size = arena.get("size").and_then(Json::pair);
        let obstacles = arena.get("obstacles").and_then(Json::list);
        let obstacles = obstacles.and_then(|list| list.iter().map(obstacle).collect());
        Ok(Self {
            cadence_micros: cadence.ok_or(wrong("cadence_us", "a number"))? as u64,
            port: port.ok_or(wrong("quic.port", "a number"))? as u16,
            certificate_hashes: hashes.iter().filter_map(|hash| bytes_of(hash.text()?)).collect(),
            websocket: websocket.ok_or(wrong("websocket", "a path"))?.to_owned(),
            size: size.ok_or(wrong("arena.size", "two numbers"))?,
            obstacles: obstacles.ok_or(wrong("arena.obstacles", "a list of blocks and pillars"))?,
        })
    }

    /// The arena, to the bit as the server has it.
    ///
    /// # Errors
    /// When no arena is like that.
    pub fn arena(&self) -> Result<Arena, SiteError> {
        Ok(Arena::new(self.size, self.obstacles.clone())?)
    }

    /// What a client is built from.
    pub(crate) fn client(
        &self,
        arena: &Arc<Arena>,
        name: &str,
        credentials: Option<String>,
    ) -> Result<ClientConfig<Tanks>, SiteError> {
        let cadence = Cadence::new(Duration::from_micros(self.cadence_micros))?;
        let rules = Arc::new(Tanks::new(Arc::clone(arena)));
        let mut config = ClientConfig::new(PlayerName::new(name)?, cadence, rules);
        config.session.credentials = credentials;
        // WebTransport where it is blocked takes its time to fail, and the other way is tried after it.
        config.session.login = Duration::from_secs(10);
        Ok(config)
    }

    /// SHA-256 of the certificates that the server shows; what is none is passed over.
    pub fn certificate_hashes(&self) -> &[[u8; 32]] {
        &self.certificate_hashes
    }

    /// Where WebTransport goes.
    pub fn transport_url(&self, address: &Address) -> String {
        format!("https://{}:{}/room/{}", address.host, self.port, address.room)
    }

    /// Where the WebSocket goes.
    pub fn socket_url(&self, address: &Address) -> String {
        format!("{}{}/room/{}", address.socket, self.websocket, address.room)
    }
}

impl Address {
    /// From the address of the page, `http://HOST:PORT/...` or `https://...`.
    ///
    /// # Errors
    /// When it is another, or when `room` has characters that no room name has: the server would only say that there is no
    /// such room.
    pub fn new(page: &str, room: &str) -> Result<Self, SiteError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !(1..=32).contains(&room.len()) || !room.bytes().all(plain) {
            return Err(SiteError::Room);
        }
        let refused = || SiteError::Page { page: page.to_owned() };
        let (scheme, rest) = page.split_once("://").ok_or_else(refused)?;
        let scheme = match scheme {
            "http" => "ws",
            "https" => "wss",
            _ => return Err(refused()),
        };
        let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty());
        let authority = authority.ok_or_else(refused)?;
        // In brackets there are colons that begin no port.
        let host_end = authority.rfind(']').map_or(authority.find(':'), |bracket| Some(bracket + 1));
        let host = host_end.and_then(|end| authority.get(..end)).unwrap_or(authority);
        // A server that is bound to 127.0.0.1 is not at ::1, which browsers may take `localhost` for.
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        Ok(Self { socket: format!("{scheme}://{authority}"), host: host.to_owned(), room: room.to_owned() })
    }
}

fn obstacle(json: &Json) -> Option<Obstacle> {
    if let Some(block) = json.get("block") {
        return Some(Obstacle::Block { min: block.get("min")?.pair()?, max: block.get("max")?.pair()? });
    }
    let pillar = json.get("pillar")?;
    Some(Obstacle::Pillar { center: pillar.get("center")?.pair()?, radius: pillar.get("radius")?.number()? })
}

fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if !hex.is_ascii() || hex.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn told() -> String {
        let hash = "0f".repeat(32);
        format!(
            r#"{{"version":"0.1.0","protocol":1,"cadence_us":50000,"default_room":"main","room_capacity":16,
            "auth":"guests","quic":{{"port":4433,"certificate_hashes":["{hash}","none"]}},"websocket":"/ws",
            "arena":{{"size":[96.0,64.0],"obstacles":[{{"block":{{"min":[-8.1,-2.0],"max":[-2.0,3.0]}}}},
            {{"pillar":{{"center":[6.0,-4.0],"radius":1.5}}}}]}},"news":"passed over"}}"#
        )
    }

    #[test]
    fn a_site_is_understood() {
        let site = Site::read(&told()).unwrap();
        assert_eq!(site.certificate_hashes(), [[15; 32]]);
        let blocks = vec![
            Obstacle::Block { min: [-8.1, -2.0], max: [-2.0, 3.0] },
            Obstacle::Pillar { center: [6.0, -4.0], radius: 1.5 },
        ];
        assert_eq!(site.arena().unwrap(), Arena::new([96.0, 64.0], blocks).unwrap());
        let error = Site::read("{}").unwrap_err().to_string();
        assert!(error.contains("quic.certificate_hashes"), "{error}");
    }

    #[test]
    fn addresses_follow_the_page() {
        let site = Site::read(&told()).unwrap();
        let urls = |page| {
            let address = Address::new(page, "duel").unwrap();
            (site.transport_url(&address), site.socket_url(&address))
        };
        let here =
            ("https://127.0.0.1:4433/room/duel".to_owned(), "ws://localhost:8080/ws/room/duel".to_owned());
        assert_eq!(urls("http://localhost:8080/?name=Ada"), here);
        let there =
            ("https://play.example:4433/room/duel".to_owned(), "wss://play.example/ws/room/duel".to_owned());
        assert_eq!(urls("https://play.example/"), there);
        let six = ("https://[::1]:4433/room/duel".to_owned(), "ws://[::1]:80/ws/room/duel".to_owned());
        assert_eq!(urls("http://[::1]:80"), six);
        for page in ["file:///index.html", "about:blank", "http://", ""] {
            assert!(Address::new(page, "main").is_err(), "{page}");
        }
    }

    #[test]
    fn a_bad_room_name_says_which_characters_are_allowed() {
        let longest = "a".repeat(32);
        for room in ["main", "duel-7", "A_b", &longest] {
            assert!(Address::new("http://localhost/", room).is_ok(), "{room}");
        }
        for room in ["", "my room", "r\u{e4}ume", "a/b", "a%20", &format!("{longest}a")] {
            let problem = Address::new("http://localhost/", room).unwrap_err().to_string();
            assert!(problem.contains("letters from a to z, digits, - or _"), "{room}: {problem}");
        }
    }
}
