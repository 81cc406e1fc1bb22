//! The rooms: found by name, made on demand, removed when they have been empty for a while.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use halftrack::server::{RecoverRefused, Recovery, Server, ServerConfig};
use halftrack::wire::control::{Login, LoginRefused, PROTOCOL};
use halftrack::{Timestamp, shared_hash};
use halftrack_io::{IoError, Journal, NoRoom, Room, RoomConfig, RoomHandle, RoomName, RoomStats, Rooms, now};
use ring::rand::{SecureRandom, SystemRandom};
use tanks::{Arena, TankWorld, TankWorldConfig, Tanks, WorldError};

use crate::config;
use crate::gate::Gate;
use crate::record::{RecordError, Recordings, Unfinished};
use crate::token::Stay;
use crate::world::{BodyCount, GatedWorld};

/// A room that could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RoomError {
    #[error(transparent)]
    Io(#[from] IoError),
    #[error("the arena cannot be played in: {0}; choose another as rooms.arena")]
    World(#[from] WorldError),
    #[error(transparent)]
    Config(#[from] halftrack::ConfigError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Recover(#[from] RecoverRefused),
    #[error("the recording cannot be gone on with: {0}")]
    GoOn(#[from] io::Error),
    #[error("the match was played in another arena: set rooms.arena as it was then")]
    OtherArena,
}

/// What becomes of matches that never ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// They stay files.
    Left,
    /// They go on, in rooms of their names.
    Recovered,
}

/// See the module.
pub(crate) struct Lobby {
    gate: Arc<Gate>,
    arena: Arc<Arena>,
    /// The hash of the rules that every room here plays by.
    shared: u64,
    recordings: Option<Arc<Recordings>>,
    /// Players of all rooms that had no place for a tank.
    refused_bodies: Arc<AtomicU64>,
    inside: Mutex<Inside>,
}

struct Inside {
    config: config::Rooms,
    /// Bodies of a room at most.
    max_bodies: usize,
    stall: Duration,
    rooms: BTreeMap<RoomName, Open>,
    /// Nobody new is let in, and no room is made.
    closed: bool,
    made: u64,
    removed: u64,
    /// What rooms have counted that are no more.
    past: RoomStats,
    /// Rooms that were removed and have not ended yet: they still count for themselves.
    ending: Vec<Arc<Room<GatedWorld>>>,
}

/// What the rooms have counted at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    /// Rooms there are.
    pub(crate) rooms: usize,
    pub(crate) made: u64,
    pub(crate) removed: u64,
    /// Bodies in all rooms, in the order of [`BodyCount::DRIVERS`].
    pub(crate) bodies: [u64; 3],
    /// Players that had no place for a tank.
    pub(crate) refused_bodies: u64,
    /// Sums over all rooms, those that are gone included.
    pub(crate) total: RoomStats,
    /// The oldest rooms, as many as were asked for.
    pub(crate) oldest: Vec<(RoomName, RoomStats)>,
}

impl Inside {
    /// The room of that name, unless it has ended.
    fn existing(&self, name: &RoomName) -> Option<RoomHandle> {
        self.rooms.get(name).map(|open| open.room.handle()).filter(|room| !room.is_ended())
    }
}

struct Open {
    /// Counts up from room to room.
    number: u64,
    room: Arc<Room<GatedWorld>>,
    bodies: Arc<BodyCount>,
    empty_since: Option<Instant>,
    /// Its newest tick when that was last looked at, and since when it has been that.
    ticks: u64,
    stuck_since: Option<Instant>,
}

impl Lobby {
    /// A room that has not ticked for so long is stuck: longer than the longest stall that is caught up with.
    const STUCK: Duration = Duration::from_secs(5);
    /// A room whose first login came to nothing ends so soon: the peer left at once, or the room refused it.
    const UNUSED: Duration = Duration::from_secs(2);

    /// With the default room in it, and the matches of `recordings` that never ended if they are to be recovered. Matches
    /// are written there.
    pub(crate) fn new(
        config: config::Rooms,
        limits: &config::Limits,
        gate: Arc<Gate>,
        recordings: Option<Arc<Recordings>>,
        past: Past,
    ) -> Result<Self, RoomError> {
        let arena = Arc::new(config.arena.build());
        let default = config.default.clone();
        let shared = shared_hash(&Tanks::new(Arc::clone(&arena)), config.cadence());
        let inside = Inside {
            config,
            max_bodies: limits.bodies_per_room.count(),
            stall: limits.stall_s.seconds(),
            rooms: BTreeMap::new(),
            closed: false,
            made: 0,
            removed: 0,
            past: RoomStats::default(),
            ending: vec![],
        };
        let (refused_bodies, inside) = (Arc::default(), Mutex::new(inside));
        let lobby = Self { gate, arena, shared, recordings, refused_bodies, inside };
        if past == Past::Recovered {
            lobby.recover()?;
        }
        // Afterwards: a room that is recovered is not made before.
        let mut inside = lobby.inside();
        if !inside.rooms.contains_key(&default) {
            lobby.open(&mut inside, &default)?;
        }
        drop(inside);
        Ok(lobby)
    }

    /// Brings back the rooms whose matches never ended, as they were when they were last written. What cannot be brought
    /// back is told, and left as it is.
    fn recover(&self) -> Result<(), RoomError> {
        let Some(recordings) = &self.recordings else { return Ok(()) };
        for found in recordings.unfinished()? {
            let mut inside = self.inside();
            match self.reopen(&mut inside, recordings, &found) {
                Ok((tick, players, rewound)) => tracing::info!(
                    room = %found.room, file = %found.path.display(), tick, players, rewound, "a match goes on"
                ),
                Err(RoomError::Recover(RecoverRefused::Over)) => {}
                Err(problem) => tracing::error!(
                    room = %found.room, file = %found.path.display(), %problem, "a match cannot go on"
                ),
            }
        }
        Ok(())
    }

    /// Whether a room that does not exist would let this login in.
    fn check(&self, name: &RoomName, login: &Login) -> Result<(), LoginRefused> {
        if login.protocol != PROTOCOL {
            return Err(LoginRefused::Protocol { server: PROTOCOL });
        }
        if login.shared != self.shared {
            return Err(LoginRefused::Rules);
        }
        self.gate.check(login, name, Stay::Begins)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    fn open(&self, inside: &mut Inside, name: &RoomName) -> Result<RoomHandle, RoomError> {
        let config = TankWorldConfig {
            arena: Arc::clone(&self.arena),
            rounds: inside.config.rounds(),
            machines: inside.config.machines(),
            machine_rockets: true,
            crates: inside.config.crates(),
            platforms: inside.config.platforms(),
            seed: seed(),
            ..TankWorldConfig::default()
        };
        let recording = self.recordings.as_ref().map(|recordings| {
            let (file, about) = recordings.begin(name, &config);
            (Box::new(file) as Box<dyn Journal>, about, recordings.run())
        });
        let world = self.world(name, config)?;
        world.live().store(true, Ordering::Relaxed);
        let bodies = world.bodies();
        let (journal, recorded) = match recording {
            Some((journal, about, run)) => (Some(journal), Some((about, run))),
            None => (None, None),
        };
        let room = self.start(inside, name, bodies, journal, |config, now| {
            let mut server = Server::new(config, world, now)?;
            if let Some((about, run)) = recorded {
                server.record(run, about.encode());
            }
            Ok(server)
        })?;
        tracing::info!(room = %name, "a room was made");
        Ok(room)
    }

    /// A room as it was recorded: its newest tick, its players, and whether something of it is lost.
    fn reopen(
        &self,
        inside: &mut Inside,
        recordings: &Arc<Recordings>,
        found: &Unfinished,
    ) -> Result<(u32, usize, bool), RoomError> {
        let config = found
            .about
            .config()
            .map_err(|source| RecordError::Refused { path: found.path.clone(), source })?;
        // Everybody who comes is told of one arena.
        if config.arena != self.arena {
            return Err(RoomError::OtherArena);
        }
        let recovery = Recovery { run: recordings.run(), rewound: found.is_rewound(recordings.run()) };
        let world = self.world(&found.room, config)?;
        let (live, bodies) = (world.live(), world.bodies());
        let recording = found.recording().map_err(RecoverRefused::from)?;
        // Read to its end before a file is touched: what cannot go on is left as it is.
        let (server, read) = Server::recover(self.server(inside), world, now(), recording, recovery)?;
        let (tick, players) = (server.tick().number(), server.players().count());
        live.store(true, Ordering::Relaxed);
        let file = recordings.go_on(found, read.whole())?;
        self.start(inside, &found.room, bodies, Some(Box::new(file)), |_, _| Ok(server))?;
        Ok((tick, players, recovery.rewound))
    }

    fn world(&self, room: &RoomName, config: TankWorldConfig) -> Result<GatedWorld, RoomError> {
        let tanks = TankWorld::new(config)?;
        let (gate, refused) = (Arc::clone(&self.gate), Arc::clone(&self.refused_bodies));
        Ok(GatedWorld::new(tanks, gate, room.clone(), refused))
    }

    fn server(&self, inside: &Inside) -> ServerConfig {
        let config = &inside.config;
        ServerConfig {
            cadence: config.cadence(),
            capacity: config.capacity(),
            max_bodies: inside.max_bodies,
            // Those who log in and those who look for a place come on top.
            max_connections: config.capacity() + config.capacity() / 2 + 16,
            grace: config.grace(),
            // Ten times what a gun fires: each order is in the recording.
            orders_per_second: 20,
            ..ServerConfig::default()
        }
    }

    fn start(
        &self,
        inside: &mut Inside,
        name: &RoomName,
        bodies: Arc<BodyCount>,
        journal: Option<Box<dyn Journal>>,
        make: impl FnOnce(ServerConfig, Timestamp) -> Result<Server<GatedWorld>, RoomError>,
    ) -> Result<RoomHandle, RoomError> {
        let (server, stall) = (self.server(inside), inside.stall);
        let config = RoomConfig { name: name.clone(), server, stall, ..RoomConfig::default() };
        let room = Room::start_recorded(config, journal, make)?;
        let handle = room.handle();
        let (room, number) = (Arc::new(room), inside.made);
        let open = Open { number, room, bodies, empty_since: None, ticks: 0, stuck_since: None };
        if let Some(old) = inside.rooms.insert(name.clone(), open) {
            // It had ended by itself, and was not tended since.
            old.room.stop();
            inside.past.merge(&old.room.stats().past());
            inside.removed += 1;
        }
        inside.made += 1;
        Ok(handle)
    }

    /// Goes by another config for what comes later.
    pub(crate) fn reload(&self, config: config::Rooms, limits: &config::Limits) {
        let mut inside = self.inside();
        (inside.config, inside.max_bodies) = (config, limits.bodies_per_room.count());
    }

    /// The room of that name, if there is one.
    #[cfg(test)]
    pub(crate) fn get(&self, name: &RoomName) -> Option<Arc<Room<GatedWorld>>> {
        self.inside().rooms.get(name).map(|open| Arc::clone(&open.room))
    }

    /// Every room, by name.
    pub(crate) fn rooms(&self) -> Vec<(RoomName, Arc<Room<GatedWorld>>)> {
        self.inside().rooms.iter().map(|(name, open)| (name.clone(), Arc::clone(&open.room))).collect()
    }

    /// What all rooms have counted together, and the `oldest` of them each.
    pub(crate) fn census(&self, oldest: usize) -> Census {
        let inside = self.inside();
        let mut total = inside.past;
        inside.ending.iter().for_each(|room| total.merge(&room.stats().past()));
        inside.rooms.values().for_each(|open| total.merge(&open.room.stats()));
        let mut bodies = [0; 3];
        for open in inside.rooms.values() {
            bodies.iter_mut().zip(open.bodies.read()).for_each(|(sum, more)| *sum += more);
        }
        let mut by_age: Vec<_> = inside.rooms.iter().collect();
        by_age.sort_by_key(|(_, open)| open.number);
        let shown = by_age.into_iter().take(oldest);
        Census {
            rooms: inside.rooms.len(),
            made: inside.made,
            removed: inside.removed,
            bodies,
            refused_bodies: self.refused_bodies.load(Ordering::Relaxed),
            total,
            oldest: shown.map(|(name, open)| (name.clone(), open.room.stats())).collect(),
        }
    }

    /// Players in all rooms whose connection is there. Players who may come back are away, and not counted.
    pub(crate) fn present(&self) -> usize {
        let total = self.census(0).total;
        total.players.saturating_sub(total.away)
    }

    /// Looks after the rooms: to be called every second or so. Those that have been empty for long enough end; a room
    /// that has ended by itself is forgotten, and the default one made anew.
    pub(crate) fn tend(&self, now: Instant) {
        let mut ended = vec![];
        {
            let mut inside = self.inside();
            let (patience, default) = (inside.config.empty(), inside.config.default.clone());
            inside.rooms.retain(|name, open| {
                let stats = open.room.stats();
                if stats.server.ticks != open.ticks {
                    (open.ticks, open.stuck_since) = (stats.server.ticks, None);
                } else {
                    open.stuck_since = open.stuck_since.or(Some(now));
                }
                if stats.players + stats.connections > 0 {
                    open.empty_since = None;
                } else {
                    open.empty_since = open.empty_since.or(Some(now));
                }
                let broken = open.room.handle().is_ended();
                // A room that nobody has entered has nothing to wait for.
                let patience = if stats.server.logins == 0 { patience.min(Self::UNUSED) } else { patience };
                let empty =
                    open.empty_since.is_some_and(|since| now.saturating_duration_since(since) >= patience);
                // A match ends when everybody has gone, also in the room that is always there.
                let played = self.recordings.is_some() && stats.server.logins > 0;
                let goes = broken || (empty && (*name != default || played));
                if goes {
                    ended.push((name.clone(), broken, Arc::clone(&open.room)));
                }
                !goes
            });
            inside.removed += ended.len() as u64;
            inside.ending.extend(ended.iter().map(|(.., room)| Arc::clone(room)));
            if !inside.closed
                && !inside.rooms.contains_key(&default)
                && let Err(problem) = self.open(&mut inside, &default)
            {
                tracing::error!(room = %default, %problem, "the default room cannot be made again");
            }
        }
        for (name, broken, room) in ended {
            if broken {
                tracing::error!(room = %name, "a room has ended by itself");
            } else {
                tracing::info!(room = %name, "an empty room was removed");
            }
            room.stop();
            let mut inside = self.inside();
            inside.ending.retain(|other| !Arc::ptr_eq(other, &room));
            inside.past.merge(&room.stats().past());
        }
    }

    /// The rooms that do not tick any more.
    pub(crate) fn stuck(&self, now: Instant) -> Vec<RoomName> {
        let stuck = |open: &Open| {
            open.stuck_since.is_some_and(|since| now.saturating_duration_since(since) >= Self::STUCK)
        };
        self.inside().rooms.iter().filter(|(_, open)| stuck(open)).map(|(name, _)| name.clone()).collect()
    }

    /// Lets nobody new in, and tells everybody that it ends.
    pub(crate) fn drain(&self, within: Duration) {
        self.inside().closed = true;
        for (_, room) in self.rooms() {
            room.drain(within);
        }
    }

    /// Ends every room.
    pub(crate) fn stop(&self) {
        self.inside().closed = true;
        for (_, room) in self.rooms() {
            room.stop();
        }
    }
}

impl Rooms for Lobby {
    fn find(&self, name: &RoomName, login: &Login) -> Result<RoomHandle, NoRoom> {
        // A login that names no room means the default one, whatever it is called here.
        let name =
            if *name == RoomName::default() { self.inside().config.default.clone() } else { name.clone() };
        if let Some(room) = self.inside().existing(&name) {
            return Ok(room);
        }
        // Without the lock: a signature takes its time.
        self.check(&name, login).map_err(NoRoom::Refused)?;
        let mut inside = self.inside();
        // Another login may have made it meanwhile.
        if let Some(room) = inside.existing(&name) {
            return Ok(room);
        }
        if inside.closed {
            return Err(NoRoom::Refused(LoginRefused::Draining));
        }
        if inside.rooms.len() >= inside.config.max() {
            return Err(NoRoom::Unknown);
        }
        self.open(&mut inside, &name).map_err(|problem| {
            tracing::error!(room = %name, %problem, "a room cannot be made");
            NoRoom::Unknown
        })
    }
}

/// Where a world's dice start from.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness a match is as good, only not a new one.
    let _ = SystemRandom::new().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use halftrack::session::ConnectionId;
    use halftrack::wire::control::FromClient;
    use halftrack::{PlayerName, SyncLink, Token};

    fn lobby(sets: &[&str]) -> Lobby {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        lobby_of(Config::load(None, &sets).unwrap())
    }

    fn lobby_of(config: Config) -> Lobby {
        let gate = Arc::new(Gate::new(&config.auth).unwrap());
        Lobby::new(config.rooms, &config.limits, gate, None, Past::Left).unwrap()
    }

    /// Logs a player in.
    fn enter(lobby: &Lobby, number: u64, name: &str) {
        let name = PlayerName::new(name).unwrap();
        let login = FromClient::Login(Login { name, ..login(lobby) });
        let room = lobby.get(&RoomName::default()).unwrap();
        let entered = room.with(move |server, now| {
            let (peer, mut bytes) = (ConnectionId::new(number), vec![]);
            assert!(login.append_to(&mut bytes));
            server.handle_connected(now, peer, SyncLink::Absent, Token::new([number as u8; 16]));
            server.handle_stream(now, peer, &bytes);
        });
        entered.unwrap();
    }

    fn leave(lobby: &Lobby, number: u64) {
        let room = lobby.get(&RoomName::default()).unwrap();
        let left = room.with(move |server, now| {
            let (peer, mut bytes) = (ConnectionId::new(number), vec![]);
            assert!(FromClient::Logout(()).append_to(&mut bytes));
            server.handle_stream(now, peer, &bytes);
        });
        left.unwrap();
    }

    fn until_bodies(lobby: &Lobby, bodies: [u64; 3]) {
        let begun = Instant::now();
        while lobby.census(0).bodies != bodies {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", lobby.census(0).bodies);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn machines_come_with_the_first_player_and_stay_when_the_last_one_leaves() {
        let lobby = lobby(&["rooms.machines=4", "rooms.crates=3"]);
        assert_eq!(lobby.census(0).bodies, [0; 3], "an empty room sleeps");
        // Three crates and two platforms.
        enter(&lobby, 1, "Ada");
        until_bodies(&lobby, [1, 4, 5]);
        enter(&lobby, 2, "Bob");
        until_bodies(&lobby, [2, 4, 5]);
        leave(&lobby, 1);
        leave(&lobby, 2);
        until_bodies(&lobby, [0, 4, 5]);
        let begun = Instant::now();
        while lobby.present() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "machines are no players");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(lobby.census(0).refused_bodies, 0);
    }

    #[test]
    fn a_player_without_a_place_for_a_tank_is_counted() {
        let mut config = Config::load(None, &[]).unwrap();
        // No config that is read says so.
        config.limits.bodies_per_room = config::Within(1);
        let lobby = lobby_of(config);
        enter(&lobby, 1, "Ada");
        enter(&lobby, 2, "Bob");
        until_bodies(&lobby, [1, 0, 0]);
        assert_eq!(lobby.census(0).refused_bodies, 1);
    }

    /// Rooms made and removed.
    fn turnover(lobby: &Lobby) -> (u64, u64) {
        let census = lobby.census(0);
        (census.made, census.removed)
    }

    fn names(lobby: &Lobby) -> Vec<String> {
        lobby.rooms().iter().map(|(name, _)| name.to_string()).collect()
    }

    fn login(lobby: &Lobby) -> Login {
        let name = PlayerName::new("Ada").unwrap();
        Login { protocol: PROTOCOL, shared: lobby.shared, name, resume: None, credentials: None }
    }

    fn find(lobby: &Lobby, name: &str) -> Result<RoomHandle, NoRoom> {
        lobby.find(&RoomName::new(name).unwrap(), &login(lobby))
    }

    #[test]
    fn rooms_are_made_on_demand_up_to_a_number() {
        let lobby = lobby(&["rooms.max=2", "rooms.default=hall"]);
        assert_eq!(names(&lobby), ["hall"]);
        assert!(find(&lobby, "main").is_ok(), "a login that names no room comes to the hall");
        assert!(find(&lobby, "duel").is_ok() && find(&lobby, "duel").is_ok());
        assert_eq!(names(&lobby), ["duel", "hall"]);
        assert_eq!(find(&lobby, "third").err(), Some(NoRoom::Unknown));
        assert_eq!(turnover(&lobby), (2, 0));
    }

    #[test]
    fn a_room_is_made_only_for_a_login_that_it_would_let_in() {
        let lobby = lobby(&[]);
        let (duel, good) = (RoomName::new("duel").unwrap(), login(&lobby));
        assert!(lobby.gate.ban(&PlayerName::new("Eve").unwrap(), None));
        let refused = [
            (Login { protocol: 9, ..good.clone() }, LoginRefused::Protocol { server: PROTOCOL }),
            (Login { shared: !good.shared, ..good.clone() }, LoginRefused::Rules),
            (Login { name: PlayerName::new("Eve").unwrap(), ..good.clone() }, LoginRefused::Banned),
        ];
        for (login, why) in refused {
            assert_eq!(lobby.find(&duel, &login).err(), Some(NoRoom::Refused(why)));
        }
        assert_eq!((names(&lobby), turnover(&lobby)), (vec!["main".to_owned()], (1, 0)));
        assert!(lobby.find(&duel, &good).is_ok());
    }

    #[test]
    fn a_room_without_a_token_is_not_made() {
        let folder = crate::scratch::Folder::new();
        let public = crate::token::write_new_pair(&folder.path().join("key.pem")).unwrap();
        let lobby = lobby(&["auth.mode=tokens", &format!("auth.public_key={}", public.display())]);
        let needed = NoRoom::Refused(LoginRefused::CredentialsNeeded);
        assert_eq!(find(&lobby, "duel").err(), Some(needed));
        assert_eq!(names(&lobby), ["main"]);
        assert!(find(&lobby, "main").is_ok(), "a room that exists answers for itself");
    }

    #[test]
    fn an_empty_room_goes_and_the_default_one_stays() {
        let lobby = lobby(&["rooms.empty_s=30"]);
        let duel = find(&lobby, "duel").unwrap();
        let start = Instant::now();
        lobby.tend(start);
        lobby.tend(start + Duration::from_millis(1_999));
        assert_eq!(names(&lobby), ["duel", "main"]);
        lobby.tend(start + Duration::from_secs(2));
        assert_eq!(names(&lobby), ["main"], "no login was accepted there");
        assert!(duel.is_ended());
        assert_eq!(turnover(&lobby), (2, 1));
    }

    #[test]
    fn a_room_that_was_played_in_stays_longer() {
        let lobby = lobby(&["rooms.empty_s=30", "rooms.grace_s=0"]);
        find(&lobby, "duel").unwrap();
        let room = lobby.get(&RoomName::new("duel").unwrap()).unwrap();
        let login = FromClient::Login(login(&lobby));
        let played = room.with(move |server, now| {
            let (peer, mut bytes) = (ConnectionId::new(1), vec![]);
            assert!(login.append_to(&mut bytes));
            server.handle_connected(now, peer, SyncLink::Absent, Token::new([1; 16]));
            server.handle_stream(now, peer, &bytes);
            server.handle_disconnected(now, peer);
            server.stats().logins
        });
        assert_eq!(played.unwrap(), 1);
        while room.stats().players > 0 || room.stats().server.logins == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let start = Instant::now();
        lobby.tend(start);
        lobby.tend(start + Duration::from_secs(29));
        assert_eq!(names(&lobby), ["duel", "main"]);
        let before = lobby.census(9);
        assert_eq!((before.rooms, before.total.server.logins, before.oldest.len()), (2, 1, 2));
        assert_eq!(before.oldest[0].0, RoomName::default(), "the oldest first");
        lobby.tend(start + Duration::from_secs(30));
        assert_eq!(names(&lobby), ["main"]);
        let after = lobby.census(9);
        assert_eq!((after.rooms, after.oldest.len(), after.total.players), (1, 1, 0));
        assert_eq!(after.total.server.logins, 1, "a login is counted when its room is gone");
        assert!(after.total.server.ticks >= before.total.server.ticks, "and so are its ticks");
        assert_eq!(after.total.connected, before.total.connected);
    }

    #[test]
    fn a_room_that_is_replaced_is_counted_too() {
        let lobby = lobby(&[]);
        let main = lobby.get(&RoomName::default()).unwrap();
        main.stop();
        let ticks = main.stats().server.ticks;
        assert!(find(&lobby, "main").is_ok(), "a login finds another in its place");
        assert!(lobby.census(0).total.server.ticks >= ticks);
        assert_eq!(turnover(&lobby), (2, 1));
    }

    #[test]
    fn a_room_that_ended_by_itself_is_replaced() {
        let lobby = lobby(&[]);
        lobby.get(&RoomName::default()).unwrap().stop();
        lobby.tend(Instant::now());
        assert!(!lobby.get(&RoomName::default()).unwrap().handle().is_ended());
    }

    #[test]
    fn a_lobby_that_closes_makes_no_rooms() {
        let lobby = lobby(&[]);
        lobby.drain(Duration::from_secs(1));
        let draining = NoRoom::Refused(LoginRefused::Draining);
        assert_eq!(find(&lobby, "duel").err(), Some(draining));
        assert!(find(&lobby, "main").is_ok(), "those who were cut may come back");
        lobby.stop();
        assert_eq!(find(&lobby, "main").err(), Some(draining));
        lobby.tend(Instant::now());
        assert_eq!(lobby.rooms().len(), 0);
    }
}
