//! The numbers of a [`super::SessionServer`], and its counters.

use core::time::Duration;

use crate::error::{ConfigError, count_within, time_within};
use crate::lane::DeliveryPolicy;
use crate::session::TableConfig;

/// The config of a [`super::SessionServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionServerConfig {
    /// Players, grace, silence and reliable logs.
    pub table: TableConfig,
    /// Connections at most, logged in or not. Default 256: a flood of connections that never log in must stay cheap.
    /// From 1 to 65,536.
    pub max_connections: usize,
    /// Time for a connection to log in. Default 5 s. From 100 ms to 1 min.
    pub login: Duration,
    /// Bytes that may wait for a peer that reads slowly. Default 256 KiB: beyond it the connection is closed. From
    /// 16 KiB to 64 MiB.
    pub max_stream_bytes: usize,
    /// Time between two input datagrams of a client. Default 50 ms. A sync link is dead after a silence of a few.
    pub datagram_interval: Duration,
    /// The lane of each kind of message.
    pub policy: DeliveryPolicy,
}

impl SessionServerConfig {
    /// The defaults, for ends that share this hash.
    pub fn new(shared: u64) -> Self {
        Self {
            table: TableConfig::new(shared),
            max_connections: 256,
            login: Duration::from_secs(5),
            max_stream_bytes: 256 * 1_024,
            datagram_interval: Duration::from_millis(50),
            policy: DeliveryPolicy::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let second = Duration::from_secs(1);
        count_within("sessions.max_connections", self.max_connections, 1, 65_536)?;
        time_within("sessions.login", self.login, second / 10, second * 60)?;
        count_within("sessions.max_stream_bytes", self.max_stream_bytes, 16_384, 1 << 26)?;
        time_within("sessions.datagram_interval", self.datagram_interval, Duration::ZERO, second * 60)?;
        self.policy.check()
    }
}

/// Counters of a [`super::SessionServer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Logins accepted, resumes included.
    pub logins: u64,
    /// Logins refused.
    pub refused: u64,
    /// Connections closed because of malformed or forbidden messages on the reliable lane.
    pub malformed_streams: u64,
    /// Connections closed because they read too slowly.
    pub too_slow: u64,
    /// Connections refused because there were too many.
    pub too_many_connections: u64,
    /// Times that a player's input stopped arriving by datagram while its reliable link lived.
    pub sync_up_dead: u64,
    /// Times that a client reported the same of snapshots.
    pub sync_down_dead: u64,
}
