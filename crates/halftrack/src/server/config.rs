//! The numbers of a server, and the check that they make sense.

use core::time::Duration;

use crate::cadence::Cadence;
use crate::error::{ConfigError, count_within, time_within};
use crate::id::BodyId;
use crate::lane::{DeliveryPolicy, SyncLink};
use crate::session::{SessionServerConfig, TableConfig};
use crate::snapshot::{BodyLimits, MAX_OWNED, SNAPSHOT_REST_BYTES};
use crate::tick::Tick;
use crate::wire::Frame;

/// What a [`crate::server::Server`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// How long a tick is. Both ends must share it.
    pub cadence: Cadence,
    /// The tick that the room has just ended when it begins. Default zero.
    pub first_tick: Tick,
    /// Players at most, those who may come back included. Default 100. From 1 to 4,096: a snapshot names bodies in
    /// one datagram, and far more than that would wait for seconds.
    pub capacity: usize,
    /// Bodies at most, of players and of the world together. Default 1,024: about 6 KiB of history each at 20 Hz. From 1 to
    /// 16,384.
    pub max_bodies: usize,
    /// The secret from which the ids of bodies are made: 16 random bytes, fresh for each match. With a key that clients
    /// know, such as the default of zeros, an id tells the order in which bodies came. A recording keeps it.
    pub body_key: [u8; 16],
    /// Connections at most, logged in or not. Default 256: a room of logins that come to nothing must not cost more.
    pub max_connections: usize,
    /// How long a connection may take to log in. Default 5 s.
    pub login: Duration,
    /// How long a player who was cut may come back. Default 30 s.
    pub grace: Duration,
    /// After so long without a word a connection is taken for cut. Default 6 s, longer than the client's own.
    pub silence: Duration,
    /// The longest stall of the server that is caught up with, tick by tick. Default 2 s: beyond it time slips, and a
    /// new epoch begins. From one tick to 10 s.
    pub max_catch_up: Duration,
    /// How far ahead of the newest tick input is taken. Default 1 s.
    pub horizon: Duration,
    /// The longest snapshot. Default 1,100 bytes, which fit into one datagram on every path. From 200 to 16,384, and at
    /// least 64 more than the longest body ([`crate::Body::MAX_BITS`]), so that the player's own body always fits.
    pub max_datagram_bytes: usize,
    /// The most that waits for a peer that reads slowly. Default 256 KiB: beyond it the connection is closed.
    pub max_stream_bytes: usize,
    /// Orders that a player may send per second in the long run; up to 512 of them may come at once. Default
    /// 1,000, which bounds nothing that the links do not bound. Each order has an outcome and is in the recording, so a
    /// host that records sets what its game needs; a player that sends more is closed as one that sends too much. From
    /// 1 to 1,000.
    pub orders_per_second: u32,
    /// Which lane each kind of message takes.
    pub policy: DeliveryPolicy,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            cadence: Cadence::default(),
            first_tick: Tick::default(),
            capacity: 100,
            max_bodies: 1_024,
            body_key: [0; 16],
            max_connections: 256,
            login: Duration::from_secs(5),
            grace: Duration::from_secs(30),
            silence: Duration::from_secs(6),
            max_catch_up: Duration::from_secs(2),
            horizon: Duration::from_secs(1),
            max_datagram_bytes: SyncLink::DATAGRAM_BYTES,
            max_stream_bytes: 256 * 1_024,
            orders_per_second: 1_000,
            policy: DeliveryPolicy::default(),
        }
    }
}

impl ServerConfig {
    /// The part of the sessions, for ends that share this hash.
    pub(super) fn sessions(&self, shared: u64) -> SessionServerConfig {
        let table = TableConfig {
            capacity: self.capacity,
            grace: self.grace,
            silence: self.silence,
            ..TableConfig::new(shared)
        };
        SessionServerConfig {
            table,
            max_connections: self.max_connections,
            login: self.login,
            max_stream_bytes: self.max_stream_bytes,
            datagram_interval: self.cadence.interval(),
            policy: self.policy,
        }
    }

    /// The most bodies, for bodies of at most so many bits each.
    pub(super) fn body_limits(&self, body_bits: usize) -> BodyLimits {
        // All bodies of a player are in one datagram, and in one frame of the stream.
        let room = self.max_datagram_bytes.min(Frame::MAX_BODY).saturating_sub(SNAPSHOT_REST_BYTES) * 8;
        let owned = room / (body_bits + BodyId::BITS as usize);
        BodyLimits { max_bodies: self.max_bodies, max_owned: owned.clamp(1, MAX_OWNED) }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        count_within("capacity", self.capacity, 1, 4_096)?;
        count_within("max_bodies", self.max_bodies, 1, 16_384)?;
        count_within("max_connections", self.max_connections, self.capacity, 65_536)?;
        count_within("max_datagram_bytes", self.max_datagram_bytes, 200, 16_384)?;
        count_within("max_stream_bytes", self.max_stream_bytes, 16_384, 1 << 26)?;
        count_within("orders_per_second", self.orders_per_second as usize, 1, 1_000)?;
        let (tick, second) = (self.cadence.interval(), Duration::from_secs(1));
        time_within("login", self.login, Duration::from_millis(100), second * 60)?;
        time_within("grace", self.grace, Duration::ZERO, second * 3_600)?;
        time_within("silence", self.silence, second, second * 60)?;
        time_within("max_catch_up", self.max_catch_up, tick, second * 10)?;
        time_within("horizon", self.horizon, tick, second * 5)?;
        self.policy.check()?;
        if self.first_tick > Tick::MAX_STATE {
            return Err(ConfigError::UnknownTick { tick: self.first_tick });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_just_inside_and_not_just_outside() {
        let with = |change: fn(&mut ServerConfig)| {
            let mut config = ServerConfig::default();
            change(&mut config);
            config.check()
        };
        let micro = Duration::from_micros(1);
        assert_eq!(with(|_| ()), Ok(()));
        let good: [fn(&mut ServerConfig); 12] = [
            |config| config.max_bodies = 1,
            |config| config.max_bodies = 16_384,
            |config| config.orders_per_second = 1,
            |config| config.orders_per_second = 1_000,
            |config| config.capacity = 1,
            |config| (config.capacity, config.max_connections) = (4_096, 4_096),
            |config| config.max_datagram_bytes = 200,
            |config| config.max_catch_up = Duration::from_millis(50),
            |config| config.max_catch_up = Duration::from_secs(10),
            |config| config.horizon = Duration::from_millis(50),
            |config| config.silence = Duration::from_secs(1),
            |config| config.first_tick = Tick::MAX_STATE,
        ];
        for change in good {
            assert_eq!(with(change), Ok(()));
        }
        let bad: [fn(&mut ServerConfig); 13] = [
            |config| config.max_bodies = 0,
            |config| config.max_bodies = 16_385,
            |config| config.orders_per_second = 0,
            |config| config.orders_per_second = 1_001,
            |config| config.capacity = 0,
            |config| (config.capacity, config.max_connections) = (4_097, 4_097),
            |config| config.max_connections = 99,
            |config| config.max_datagram_bytes = 199,
            |config| config.max_stream_bytes = 16_383,
            |config| config.login = Duration::from_micros(99_999),
            |config| config.horizon = Duration::from_micros(49_999),
            |config| config.silence = Duration::from_micros(999_999),
            |config| config.first_tick = Tick::MAX_STATE.next(),
        ];
        for change in bad {
            assert!(with(change).is_err());
        }
        let config =
            ServerConfig { max_catch_up: Duration::from_secs(10) + micro, ..ServerConfig::default() };
        let said = config.check().unwrap_err().to_string();
        assert_eq!(said, "max_catch_up is 10.000001s; choose one from 50ms to 10s");
    }
}
