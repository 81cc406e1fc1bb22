//! Watches a QUIC connection from its first packet: how much its peer sends, and from which address.
//!
//! The transport receives more than a link reads: handshake packets, HTTP/3 frames without meaning, capsules, streams
//! that are never accepted, packets of acknowledgements alone. All of that costs time, so all of it counts.

use core::future::poll_fn;
use core::task::Poll;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use halftrack::session::DisconnectReason;
use tokio::time::{MissedTickBehavior, interval};

use crate::door::{Meter, Place, Received};

/// See the module.
pub(crate) struct Watch<'a> {
    connection: &'a quinn::Connection,
    meter: &'a Meter,
    place: &'a Place,
    /// Path responses that had arrived when the peer was last seen at its known address.
    responses: AtomicU64,
}

impl<'a> Watch<'a> {
    /// How often a connection is looked at when nothing wakes its task. A flood that is not read is closed after this.
    const LOOK: Duration = Duration::from_millis(250);
    /// The same for a newcomer, whose allowance is used up sooner.
    const LOOK_AT_NEWCOMER: Duration = Duration::from_millis(50);

    pub(crate) fn new(connection: &'a quinn::Connection, meter: &'a Meter, place: &'a Place) -> Self {
        Self { connection, meter, place, responses: AtomicU64::new(0) }
    }

    /// Ends with the reason to close a connection that has not logged in. Datagrams have no meaning yet: they are
    /// dropped and counted. Poll it before the future that reads: each time the task wakes, the peer's allowance is
    /// checked first.
    pub(crate) async fn newcomer(&self) -> DisconnectReason {
        let mut timer = interval(Self::LOOK_AT_NEWCOMER);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let over = poll_fn(|context| {
            while timer.poll_tick(context).is_ready() {}
            self.look().map_or_else(Poll::Ready, |()| Poll::Pending)
        });
        let drop_datagrams = async {
            while self.connection.read_datagram().await.is_ok() {
                self.place.count_stray();
            }
            core::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            reason = over => reason,
            () = drop_datagrams => DisconnectReason::TooMuch,
        }
    }

    /// Ends with the reason to close a connection that is in a room.
    pub(crate) async fn player(&self) -> DisconnectReason {
        loop {
            tokio::time::sleep(Self::LOOK).await;
            if let Err(reason) = self.look() {
                return reason;
            }
        }
    }

    fn look(&self) -> Result<(), DisconnectReason> {
        let stats = self.connection.stats();
        self.meter.transport(Received { packets: stats.udp_rx.datagrams, bytes: stats.udp_rx.bytes })?;
        self.follow(stats.frame_rx.path_response)
    }

    /// Follows the peer to another address. The transport uses a new address at once and asks it for a path response;
    /// only then does the peer count there. So a forged source address takes no place from its owner.
    fn follow(&self, responses: u64) -> Result<(), DisconnectReason> {
        let address = self.connection.remote_address().ip().to_canonical();
        if address == self.place.address() {
            self.responses.store(responses, Ordering::Relaxed);
        } else if responses > self.responses.load(Ordering::Relaxed) {
            self.place.move_to(address)?;
        }
        Ok(())
    }
}
