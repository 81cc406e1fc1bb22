//! What a server tells whoever wants to play on it: `/config.json`. Read by the page and by bots.

use halftrack_io::CertificateHash;
use serde::{Deserialize, Serialize};
use tanks::{Arena, ArenaError, Obstacle};

/// Everything a client must know before it connects. Keys that a reader does not know are passed over: a newer server may
/// say more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Site {
    /// Of the program.
    pub(crate) version: String,
    /// Of the wire.
    pub(crate) protocol: u16,
    /// How long a tick is, microseconds.
    pub(crate) cadence_us: u64,
    /// Whoever asks for no room comes here.
    pub(crate) default_room: String,
    /// Players in a room at most.
    pub(crate) room_capacity: usize,
    pub(crate) auth: Auth,
    pub(crate) quic: Quic,
    /// The path of the WebSocket, on the port that this came from; a room is `/room/NAME` behind it.
    pub(crate) websocket: String,
    pub(crate) arena: Ground,
}

/// Who is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Auth {
    /// Anybody.
    Guests,
    /// Whoever has a signed token.
    Tokens,
}

/// QUIC and WebTransport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quic {
    /// On the host that this came from.
    pub(crate) port: u16,
    /// SHA-256 of the certificates that the server shows, now and after the next change, in hexadecimal. Empty when it is
    /// signed by an authority that systems trust.
    pub(crate) certificate_hashes: Vec<String>,
}

impl Quic {
    /// The hashes; those that are none are passed over, and nobody is trusted for them.
    pub(crate) fn hashes(&self) -> Vec<CertificateHash> {
        self.certificate_hashes.iter().filter_map(|hash| hash.parse().ok()).collect()
    }
}

/// The arena as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ground {
    /// Metres east to west, and north to south.
    size: [f64; 2],
    obstacles: Vec<Stone>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stone {
    Block { min: [f64; 2], max: [f64; 2] },
    Pillar { center: [f64; 2], radius: f64 },
}

impl Ground {
    pub(crate) fn of(arena: &Arena) -> Self {
        let stone = |obstacle: &Obstacle| match *obstacle {
            Obstacle::Block { min, max } => Stone::Block { min, max },
            Obstacle::Pillar { center, radius } => Stone::Pillar { center, radius },
        };
        Self { size: arena.size(), obstacles: arena.obstacles().iter().map(stone).collect() }
    }

    pub(crate) fn build(&self) -> Result<Arena, ArenaError> {
        let obstacle = |stone: &Stone| match *stone {
            Stone::Block { min, max } => Obstacle::Block { min, max },
            Stone::Pillar { center, radius } => Obstacle::Pillar { center, radius },
        };
        Arena::new(self.size, self.obstacles.iter().map(obstacle).collect())
    }
}

impl Site {
    pub(crate) const PATH: &str = "/config.json";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_comes_back_to_the_bit() {
        for arena in [Arena::proving_ground(), Arena::open_ground(37)] {
            let told = serde_json::to_string(&Ground::of(&arena)).unwrap();
            let heard: Ground = serde_json::from_str(&told).unwrap();
            assert_eq!(heard.build().unwrap(), arena);
        }
    }
}
