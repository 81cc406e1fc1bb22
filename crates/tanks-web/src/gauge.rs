//! What the client does not keep: how early its input came, how evenly snapshots come, and what traffic there was. Looks
//! at bytes on their way to the client, and changes none.

use halftrack::client::Client;
use halftrack::snapshot::{Header, TickFate, read_own};
use halftrack::wire::control::FromServer;
use halftrack::wire::{BitReader, FrameReader};
use halftrack::{Fate, Link, SyncLink, Tick, Timestamp};
use serde::Serialize;
use tanks::Tanks;

/// Traffic since the page was loaded.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Traffic {
    pub(crate) datagrams_up: u64,
    pub(crate) datagrams_down: u64,
    pub(crate) datagram_bytes_up: u64,
    pub(crate) datagram_bytes_down: u64,
    pub(crate) stream_bytes_up: u64,
    pub(crate) stream_bytes_down: u64,
    /// Datagrams that the browser was too busy for.
    pub(crate) datagrams_dropped: u64,
}

impl Traffic {
    pub(crate) fn bytes_up(&self) -> u64 {
        self.datagram_bytes_up + self.stream_bytes_up
    }

    pub(crate) fn bytes_down(&self) -> u64 {
        self.datagram_bytes_down + self.stream_bytes_down
    }
}

/// What the server did with the ticks of this player, each counted once, by the first word on it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct OwnTicks {
    /// Simulated with the input that was sent.
    pub(crate) as_sent: u64,
    /// Made up for, because input was late or lost.
    pub(crate) made_up: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    pub(crate) traffic: Traffic,
    pub(crate) ticks: OwnTicks,
    /// How early the newest input came that the server told of.
    pub(crate) margin_micros: Option<i64>,
    /// Mean deviation of arrivals, as RFC 3550 has it, microseconds.
    pub(crate) jitter_micros: f64,
    /// When the newest snapshot came.
    pub(crate) last_snapshot: Option<Timestamp>,
    transit: Option<i64>,
    newest: Option<Tick>,
    frames: FrameReader,
    told: Vec<TickFate>,
}

impl Gauge {
    /// The connection is another one.
    pub(crate) fn reset(&mut self) {
        self.frames = FrameReader::default();
        (self.margin_micros, self.jitter_micros, self.transit, self.newest) = (None, 0.0, None, None);
    }

    /// Bytes have come from the server.
    pub(crate) fn look(
        &mut self,
        now: Timestamp,
        client: &Client<Tanks>,
        sync_link: SyncLink,
        link: Link,
        bytes: &[u8],
    ) {
        match (link, sync_link) {
            (Link::Sync, _) => self.look_at_snapshot(now, client, bytes),
            // Without datagrams, snapshots come in the stream.
            (Link::Reliable, SyncLink::Absent) => {
                let mut frames = core::mem::take(&mut self.frames);
                let mut rest = bytes;
                while let Ok(Some(frame)) = frames.next(&mut rest) {
                    if let Ok(FromServer::PlayerState(snapshot)) = FromServer::read(frame) {
                        self.look_at_snapshot(now, client, &snapshot);
                    }
                }
                self.frames = frames;
            }
            (Link::Reliable, SyncLink::Present) => {}
        }
    }

    fn look_at_snapshot(&mut self, now: Timestamp, client: &Client<Tanks>, bytes: &[u8]) {
        let Some(reconciler) = client.reconciler() else { return };
        let baseline = reconciler.predictor().baseline();
        let mut bits = BitReader::new(bytes);
        let mut told = core::mem::take(&mut self.told);
        let read = Header::read((baseline.tick, baseline.epoch), &mut bits)
            .and_then(|header| read_own::<Tanks>(&mut told, &mut bits).map(|_| header));
        if let Ok(header) = read
            && self.newest.is_none_or(|newest| header.tick > newest)
        {
            self.count_fates(header.tick, &told);
            self.newest = Some(header.tick);
            self.last_snapshot = Some(now);
            let margin = header.echo.and_then(|echo| echo.newest).map(|margin| margin.micros);
            self.margin_micros = margin.or(self.margin_micros);
            let transit = signed(now.as_micros()) - signed(client.cadence().end_of(header.tick).as_micros());
            if let Some(last) = self.transit.replace(transit) {
                self.jitter_micros += ((transit - last).abs() as f64 - self.jitter_micros) / 16.0;
            }
        }
        self.told = told;
    }

    fn count_fates(&mut self, newest: Tick, told: &[TickFate]) {
        let fresh = self.newest.map_or(1, |known| newest.since(known));
        for fate in told.iter().rev().take(fresh as usize) {
            match fate.input {
                Fate::AsSent => self.ticks.as_sent += 1,
                _ => self.ticks.made_up += 1,
            }
        }
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
