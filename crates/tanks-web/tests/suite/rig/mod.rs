//! A server and pages in virtual time. Connections are ideal: what is bad about the network is in each page.
#![allow(dead_code, reason = "each test uses its own part of it")]

use std::sync::Arc;
use std::time::Duration;

use halftrack::server::{Server, ServerConfig};
use halftrack::session::{ConnectionId, DisconnectReason};
use halftrack::{Link, SyncLink, Timestamp, Token};
use serde_json::Value;
use tanks::{Arena, TankWorld, TankWorldConfig};
use tanks_web::{Play, Site, Task};

/// Where numbers are in the view: see `API.md`.
pub(crate) const STATE: usize = 2;
pub(crate) const OWN: usize = 3;
pub(crate) const TANKS: usize = 4;
pub(crate) const POINTS: usize = 6;
pub(crate) const FLAGS: usize = 8;
pub(crate) const DRAWN: usize = 10;
pub(crate) const VISIBLE: usize = 13;
pub(crate) const PREDICTED: usize = 16;
pub(crate) const AUTHORITATIVE: usize = 19;
pub(crate) const OPEN_TICK: usize = 34;
pub(crate) const ROUND_TRIP: usize = 36;
pub(crate) const MARGIN: usize = 39;
pub(crate) const CORRECTIONS: usize = 42;
pub(crate) const TANK: usize = 16;
const BODIES: usize = 52;
const BODY: usize = 12;
pub(crate) const LOGGED_IN: f64 = 3.0;

const SIDE: f64 = 120.0;

pub(crate) struct Page {
    pub(crate) play: Play,
    connection: Option<ConnectionId>,
    sync_link: SyncLink,
    pub(crate) events: Vec<Value>,
    /// Whether it draws.
    pub(crate) frames: Frames,
    next_frame: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    /// 60 a second, and timers.
    Shown,
    /// None, and a timer a second.
    Hidden,
}

pub(crate) struct Rig {
    pub(crate) server: Server<TankWorld>,
    pub(crate) pages: Vec<Page>,
    pub(crate) now: Timestamp,
    connections: u64,
}

impl Page {
    pub(crate) fn at(&self, index: usize) -> f64 {
        self.play.view().get(index).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn pose(&self, index: usize) -> [f64; 3] {
        [self.at(index), self.at(index + 1), self.at(index + 2)]
    }

    /// The rows of tanks.
    pub(crate) fn tanks(&self) -> Vec<Vec<f64>> {
        let (count, start) = (self.at(TANKS) as usize, self.at(TANKS + 1) as usize);
        self.play.view()[start..start + count * TANK].chunks(TANK).map(<[f64]>::to_vec).collect()
    }

    /// The rows of other bodies.
    pub(crate) fn bodies(&self) -> Vec<Vec<f64>> {
        let (count, start) = (self.at(BODIES) as usize, self.at(BODIES + 1) as usize);
        self.play.view()[start..start + count * BODY].chunks(BODY).map(<[f64]>::to_vec).collect()
    }

    pub(crate) fn told(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    pub(crate) fn diagnostics(&self) -> Value {
        serde_json::from_str(&self.play.diagnostics()).unwrap()
    }
}

pub(crate) fn away(one: [f64; 3], other: [f64; 3]) -> f64 {
    (one[0] - other[0]).hypot(one[1] - other[1])
}

impl Rig {
    /// Pages of so many players who are in and see each other.
    pub(crate) fn new(players: usize, sync_link: SyncLink) -> Self {
        Self::with_machines(players, 0, sync_link)
    }

    /// The same, with so many tanks that the world drives.
    pub(crate) fn with_machines(players: usize, machines: u8, sync_link: SyncLink) -> Self {
        let mut rig = Self::arriving_at(ServerConfig::default(), players, machines, sync_link);
        rig.run(1_500);
        let tanks = players as f64 + f64::from(machines);
        for page in &rig.pages {
            assert_eq!((page.at(STATE), page.at(TANKS)), (LOGGED_IN, tanks), "{:?}", page.events);
        }
        rig
    }

    /// The same, among so many crates and platforms.
    pub(crate) fn with_things(players: usize, crates: u8, platforms: u8) -> Self {
        let config = TankWorldConfig { crates, platforms, ..TankWorldConfig::default() };
        let mut rig = Self::in_world(ServerConfig::default(), &config, players, SyncLink::Present);
        rig.run(1_500);
        rig
    }

    /// Pages of so many players who connect now.
    pub(crate) fn arriving(players: usize, sync_link: SyncLink) -> Self {
        Self::arriving_at(ServerConfig::default(), players, 0, sync_link)
    }

    /// The same, at a server of that config with so many tanks that the world drives.
    pub(crate) fn arriving_at(
        server: ServerConfig,
        players: usize,
        machines: u8,
        sync_link: SyncLink,
    ) -> Self {
        let config = TankWorldConfig { machines, crates: 0, platforms: 0, ..TankWorldConfig::default() };
        Self::in_world(server, &config, players, sync_link)
    }

    fn in_world(server: ServerConfig, config: &TankWorldConfig, players: usize, sync_link: SyncLink) -> Self {
        let arena = Arc::new(Arena::new([SIDE, SIDE], vec![]).unwrap());
        let config = TankWorldConfig { arena, ..config.clone() };
        let now = Timestamp::from_micros(1_000_000);
        let server = Server::new(server, TankWorld::new(config).unwrap(), now).unwrap();
        let mut rig = Self { server, pages: vec![], now, connections: 0 };
        for player in 0..players {
            rig.open(&format!("Player {player}"), None, sync_link);
        }
        rig
    }

    /// Another page, which comes in; with the token that an earlier page of that player saved, if there is one.
    pub(crate) fn open(&mut self, name: &str, resume: Option<Token>, sync_link: SyncLink) -> usize {
        let site = format!(
            r#"{{"cadence_us":50000,"quic":{{"port":1,"certificate_hashes":[]}},"websocket":"/ws",
            "arena":{{"size":[{SIDE},{SIDE}],"obstacles":[]}}}}"#
        );
        let (site, seed) = (Site::read(&site).unwrap(), 7 + self.pages.len() as u64);
        let mut play = Play::new(&site, name, None, resume, seed).unwrap();
        play.connect(self.now);
        let (events, frames, next_frame) = (vec![], Frames::Shown, self.now);
        self.pages.push(Page { play, connection: None, sync_link, events, frames, next_frame });
        self.pages.len() - 1
    }

    /// The process of a page ends without a word; the server is not told.
    pub(crate) fn crash(&mut self, index: usize) -> Play {
        self.pages.remove(index).play
    }

    /// So many milliseconds.
    pub(crate) fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now = self.now + Duration::from_millis(1);
            self.server.handle_timeout(self.now);
            for index in 0..self.pages.len() {
                self.turn(index);
            }
        }
    }

    /// Drops the connection of a page.
    pub(crate) fn cut(&mut self, index: usize) {
        if let Some(connection) = self.pages[index].connection.take() {
            self.server.handle_disconnected(self.now, connection);
            self.pages[index].play.handle_disconnected(self.now, None, None);
        }
    }

    fn turn(&mut self, index: usize) {
        let (now, page) = (self.now, &mut self.pages[index]);
        if page.frames == Frames::Shown && now >= page.next_frame {
            page.next_frame = page.next_frame.max(now) + Duration::from_millis(16);
            page.play.frame(now);
            let events: Vec<Value> = serde_json::from_str(&page.play.poll_events()).unwrap();
            page.events.extend(events);
        }
        let throttled = page.frames == Frames::Hidden && !now.as_micros().is_multiple_of(1_000_000);
        if !throttled && page.play.poll_timeout().is_some_and(|due| now >= due) {
            page.play.handle_timeout(now);
        }
        while let Some(task) = page.play.poll_task() {
            if let Some(old) = page.connection.take() {
                self.server.handle_stream(now, old, &page.play.last_words());
                self.server.handle_disconnected(now, old);
            }
            if task == Task::Connect {
                self.connections += 1;
                let connection = ConnectionId::new(self.connections);
                let token = Token::new(u128::from(self.connections).to_le_bytes());
                self.server.handle_connected(now, connection, page.sync_link, token);
                page.connection = Some(connection);
                page.play.handle_connected(now, page.sync_link, "rig", "there is no other".to_owned());
            }
        }
        let Some(connection) = page.connection else { return };
        while let Some((link, bytes)) = page.play.poll_bytes(now) {
            match link {
                Link::Sync => self.server.handle_datagram(now, connection, &bytes),
                Link::Reliable => self.server.handle_stream(now, connection, &bytes),
            }
        }
        let mut stream = vec![];
        if self.server.poll_stream(connection, &mut stream) {
            page.play.handle_bytes(now, Link::Reliable, &stream);
        }
        if let Some(datagram) = self.server.poll_datagram(connection).map(<[u8]>::to_vec) {
            page.play.handle_bytes(now, Link::Sync, &datagram);
        }
        if let Some((closing, reason)) = self.server.poll_close() {
            self.server.handle_closed(closing);
            self.close(closing, reason);
        }
    }

    fn close(&mut self, connection: ConnectionId, reason: DisconnectReason) {
        let now = self.now;
        for page in self.pages.iter_mut().filter(|page| page.connection == Some(connection)) {
            page.connection = None;
            page.play.handle_disconnected(now, Some(reason), None);
        }
    }
}
