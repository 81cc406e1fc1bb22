//! The player's client as a page uses it: the core's client, the bad network in between, the gun, the switches, and all
//! that is told of them. Knows neither transports nor the browser: bytes and time come in as arguments.

mod picture;

use core::f64::consts::TAU;
use core::time::Duration;
use std::sync::Arc;

use halftrack::client::{Client, ClientEvent};
use halftrack::session::{DisconnectReason, SessionState};
use halftrack::wire::control::Restart;
use halftrack::{BodyId, Driver, Link, SyncLink, Tick, Timestamp, Token};
use halftrack_flight::{FlightClient, FlightConfig};
use halftrack_netem::{NetemError, Passage};
use tanks::{Arena, CombatEvent, Fighter, TankInput, Tanks, Vitals};

use crate::diagnostics;
use crate::gauge::Gauge;
use crate::gun::{Gun, NotFired};
use crate::network::{Direction, LinkSettings, Network};
use crate::record::Record;
use crate::rockets::Rockets;
use crate::site::{Site, SiteError};
use crate::switches::{Drift, Mode, Part, Switches};
use crate::told::{Mailbox, Told};
use crate::view::{PathWish, View};

/// What the host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Make a connection, and say what became of it.
    Connect,
    /// Close the connection there is, when what waits for it is written.
    Close,
}

/// Where settings of the network hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// To the server.
    Up,
    /// From it.
    Down,
    /// Both.
    Both,
}

/// One player's client.
#[derive(Debug)]
pub struct Play {
    pub(crate) client: FlightClient<Tanks>,
    arena: Arc<Arena>,
    network: Network,
    now: Timestamp,
    connected: Option<Connected>,
    /// Why the server closed the newest connection, if it said so and the player is not in again.
    closed: Option<DisconnectReason>,
    tasks: Vec<Task>,
    /// Bytes that the host has been given and not written.
    backlog: usize,

    /// What the player wants, and from which open tick on it waits for the next.
    wish: TankInput,
    waits: Option<Tick>,
    gun: Gun,
    pub(crate) rockets: Rockets,
    switches: Switches,
    drift: Option<Drift>,

    vitals: Vitals,
    vitals_tick: Option<Tick>,
    /// Tanks that the world drives, in order.
    machines: Vec<BodyId>,
    /// Of each fighter the last shot: where to, and when the picture is there. As many as have ever fired here.
    shots: Vec<(Fighter, f64, Timestamp)>,
    died: Option<Timestamp>,
    mailbox: Mailbox,
    pub(crate) gauge: Gauge,
    pub(crate) record: Record,
    pub(crate) transport: Option<(&'static str, String)>,
    view: View,
    path: PathWish,
}

/// That there is a connection.
#[derive(Clone, Copy, Debug)]
struct Connected;

impl Play {
    /// The most that waits for the host to write it before the client is not asked for more: then newer input takes the
    /// place of older.
    const MAX_BACKLOG: usize = 16 * 1_024;
    const MAX_BACKLOG_SEGMENTS: usize = 64;
    /// Bytes of the flight recorder: a quarter of an hour among a few players, two minutes among two hundred.
    const FLIGHT_BYTES: usize = 2 << 20;
    /// A timer that is so late is one of a page that is hidden.
    const OVERDUE: Duration = Duration::from_millis(100);

    /// A player of this name on that site. `resume` is the token of an earlier page of the same player, if it saved one:
    /// see [`Self::resume_token`]. `seed` is for the dice of the bad network.
    ///
    /// # Errors
    /// When the site or the name cannot be.
    pub fn new(
        site: &Site,
        name: &str,
        credentials: Option<String>,
        resume: Option<Token>,
        seed: u64,
    ) -> Result<Self, SiteError> {
        let arena = Arc::new(site.arena()?);
        let mut config = site.client(&arena, name, credentials)?;
        config.session.resume = resume;
        let mut client = FlightClient::new(Client::new(config)?);
        let flight = FlightConfig { max_bytes: Self::FLIGHT_BYTES, ..FlightConfig::default() };
        client.record(flight, client.rules().setup())?;
        Ok(Self {
            client,
            arena,
            // The network that does nothing can be.
            network: Network::new(seed).map_err(|_| SiteError::Page { page: String::new() })?,
            now: Timestamp::ZERO,
            connected: None,
            closed: None,
            tasks: Vec::new(),
            backlog: 0,
            wish: TankInput::NEUTRAL,
            waits: None,
            gun: Gun::default(),
            rockets: Rockets::default(),
            switches: Switches::default(),
            drift: None,
            vitals: Vitals::default(),
            vitals_tick: None,
            machines: Vec::new(),
            shots: Vec::new(),
            died: None,
            mailbox: Mailbox::default(),
            gauge: Gauge::default(),
            record: Record::default(),
            transport: None,
            view: View::default(),
            path: PathWish::None,
        })
    }

    /// The token that brings the player back after a crash of the page, while there is a session. A secret.
    pub fn resume_token(&self) -> Option<Token> {
        self.client.resume_token()
    }

    /// Comes in.
    pub fn connect(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.client.connect(now);
        self.turn(now);
    }

    /// Leaves.
    pub fn logout(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.client.logout(now);
        self.turn(now);
    }

    /// The connection that was asked for is there: `kind` and `why` are for people.
    pub fn handle_connected(&mut self, now: Timestamp, sync_link: SyncLink, kind: &'static str, why: String) {
        let now = self.advance(now);
        self.network.clear();
        self.gauge.reset();
        (self.connected, self.backlog) = (Some(Connected), 0);
        self.transport = Some((kind, why.clone()));
        self.mailbox.tell(Told::Transport { kind, why });
        self.client.handle_connected(now, sync_link);
        self.turn(now);
    }

    /// The connection is gone, or could not be made; `reason` if the server said why, `problem` for people.
    pub fn handle_disconnected(
        &mut self,
        now: Timestamp,
        reason: Option<DisconnectReason>,
        problem: Option<String>,
    ) {
        let now = self.advance(now);
        self.network.clear();
        // A connection that could not be made says nothing of the one before it.
        if reason.is_some() || self.connected.is_some() {
            self.closed = reason;
        }
        (self.connected, self.transport) = (None, None);
        if let Some(text) = problem {
            self.mailbox.tell(Told::Error { text });
        }
        self.client.handle_disconnected(now, reason);
        self.turn(now);
    }

    /// Bytes have come.
    pub fn handle_bytes(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        let now = self.advance(now);
        let traffic = &mut self.gauge.traffic;
        match link {
            Link::Sync => {
                traffic.datagrams_down += 1;
                traffic.datagram_bytes_down += bytes.len() as u64;
            }
            Link::Reliable => traffic.stream_bytes_down += bytes.len() as u64,
        }
        if self.network.send(now, Direction::Down, link, bytes).is_err() {
            self.give_up(now);
        }
        self.turn(now);
    }

    /// Time has passed. Early, late and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.receive(now);
        self.client.handle_timeout(now);
        self.turn(now);
    }

    /// A frame is drawn at `now`: the numbers of [`Self::view`] are those of then.
    pub fn frame(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.receive(now);
        self.client.frame(now);
        self.turn(now);
        self.run_drift(now);
        // The session may have begun anew in this turn.
        self.look();
        if let Some(reconciler) = self.client.reconciler() {
            self.record.absorb(reconciler);
        }
        self.draw(now);
        if self.record.is_due(now) {
            let sample = self.sample(now);
            self.record.sample(now, sample);
        }
    }

    /// The player wants this from `now` on: -1 to 1, positive ahead and to the left.
    pub fn set_input(&mut self, now: Timestamp, throttle: f32, turn: f32) {
        let now = self.advance(now);
        // What is no number is no wish.
        let Ok(wish) = TankInput::from_unit(turn, throttle) else { return };
        self.wish_for(now, wish.pressing(self.wish.rocket));
    }

    /// The player pressed the rocket button at `now`, however shortly. What comes of it is told by the events: a tube that is
    /// not loaded launches nothing. Gives whether there is a tank that hears of it.
    pub fn press_rocket(&mut self, now: Timestamp) -> bool {
        let now = self.advance(now);
        let pressed = self.rockets.press(self.wish).filter(|_| self.client.reconciler().is_some());
        if let Some(wish) = pressed {
            self.wish_for(now, wish);
        }
        pressed.is_some()
    }

    fn wish_for(&mut self, now: Timestamp, wish: TankInput) {
        if wish == self.wish {
            return;
        }
        self.run_drift(now);
        self.wish = wish;
        let open = self.client.reconciler().map(|reconciler| reconciler.predictor().open_tick());
        self.waits = self.waits.or(open).filter(|_| self.switches.is_off(Part::SubTick));
        if self.waits.is_none() {
            self.client.set_input(now, wish);
        }
        self.turn(now);
    }

    /// Shoots at `aim`, radians to the left of east. Gives how many metres the shot goes by what the screen shows.
    ///
    /// # Errors
    /// When there is nothing to shoot with.
    pub fn fire(&mut self, now: Timestamp, aim: f64) -> Result<f64, NotFired> {
        let now = self.advance(now);
        let units = (aim / TAU * 65_536.0).round();
        if !units.is_finite() {
            return Err(NotFired::NotIn);
        }
        let reach = self.gun.fire(now, &mut self.client, &self.arena, units.rem_euclid(65_536.0) as u16)?;
        if let Some(own) = self.client.player() {
            self.note_shot(own.into(), aim, now);
        }
        self.turn(now);
        Ok(reach)
    }

    /// Turns a part of the netcode on or off.
    pub fn set_switch(&mut self, now: Timestamp, part: Part, mode: Mode) {
        let now = self.advance(now);
        self.switches.set(part, mode);
        match (part, mode) {
            (Part::Reconciliation, Mode::Off) => self.drift = Drift::begin(&self.client),
            (Part::Reconciliation, Mode::On) => self.drift = None,
            (Part::SubTick, Mode::On) if self.waits.take().is_some() => self.client.set_input(now, self.wish),
            _ => {}
        }
        self.turn(now);
    }

    /// Changes the bad network.
    ///
    /// # Errors
    /// When a number is out of its range; the error says which, and what to give instead.
    pub fn set_link(&mut self, ways: Ways, settings: &LinkSettings) -> Result<(), NetemError> {
        let config = settings.config();
        config.check()?;
        let directions: &[Direction] = match ways {
            Ways::Up => &[Direction::Up],
            Ways::Down => &[Direction::Down],
            Ways::Both => &[Direction::Up, Direction::Down],
        };
        directions.iter().try_for_each(|direction| self.network.set(*direction, config))
    }

    /// Begins or ends a partition.
    pub fn set_passage(&mut self, now: Timestamp, passage: Passage) {
        let now = self.advance(now);
        self.network.set_passage(now, passage);
        self.turn(now);
    }

    /// Whether the view has the path of what the server has not answered.
    pub fn show_path(&mut self, mode: Mode) {
        self.path = if mode == Mode::On { PathWish::Wanted } else { PathWish::None };
    }

    /// What the host has been given and not yet written, in bytes.
    pub fn set_backlog(&mut self, bytes: usize) {
        self.backlog = bytes;
    }

    /// A datagram was not written because the browser was too busy.
    pub fn count_dropped(&mut self) {
        self.gauge.traffic.datagrams_dropped += 1;
    }

    /// What the host is to do next.
    pub fn poll_task(&mut self) -> Option<Task> {
        if self.tasks.is_empty() { None } else { Some(self.tasks.remove(0)) }
    }

    /// What is to be written next.
    pub fn poll_bytes(&mut self, now: Timestamp) -> Option<(Link, Vec<u8>)> {
        let now = self.advance(now);
        let (link, bytes) = self.network.poll(now, Direction::Up)?;
        let traffic = &mut self.gauge.traffic;
        match link {
            Link::Sync => {
                traffic.datagrams_up += 1;
                traffic.datagram_bytes_up += bytes.len() as u64;
            }
            Link::Reliable => traffic.stream_bytes_up += bytes.len() as u64,
        }
        Some((link, bytes))
    }

    /// The last words before the connection is closed: no network in between can hold them.
    pub fn last_words(&mut self) -> Vec<u8> {
        let mut words = vec![];
        self.client.poll_stream(&mut words);
        words
    }

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        [self.client.poll_timeout(), self.network.poll_timeout()].into_iter().flatten().min()
    }

    /// Where the session is.
    pub fn state(&self) -> SessionState {
        self.client.state()
    }

    /// The numbers of the last frame.
    pub fn view(&self) -> &[f64] {
        self.view.numbers()
    }

    /// What has happened since the last call, as a JSON array.
    pub fn poll_events(&mut self) -> String {
        // The change of round may be among the events that are gone.
        if let Some(round) = self.vitals.round().filter(|_| self.mailbox.has_missed()) {
            self.mailbox.tell(diagnostics::round(&self.client, round));
        }
        self.mailbox.take()
    }

    /// Something that the player should read.
    pub fn tell_error(&mut self, text: String) {
        self.mailbox.tell(Told::Error { text });
    }

    /// Players and machines that are there, as a JSON array.
    pub fn fighters(&self) -> String {
        diagnostics::fighters(&self.client, &self.vitals, &self.machines)
    }

    /// Numbers for plots, as JSON.
    pub fn diagnostics(&self) -> String {
        diagnostics::now(self, self.sample(self.now))
    }

    /// The whole session in numbers, as JSON.
    pub fn export(&self) -> String {
        diagnostics::export(self, self.sample(self.now))
    }

    /// A bug report of the last minutes that replays exactly (`docs/FLIGHT.md`). `note` is for its readers.
    pub fn report(&mut self, note: &str) -> Vec<u8> {
        self.client.flight_report(note).unwrap_or_default()
    }

    /// Never back: a frame's time may lie before that of what arrived just before it.
    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// Everything that can happen by itself at `now`.
    fn turn(&mut self, now: Timestamp) {
        self.receive(now);
        // The client tells hosts that wake up in time from those that only draw. In a hidden page neither frames nor
        // timers come as they should: then it is what arrives that keeps it going.
        if self.client.poll_timeout().is_some_and(|due| now >= due + Self::OVERDUE) {
            self.client.handle_timeout(now);
        }
        let open = self.client.reconciler().map(|reconciler| reconciler.predictor().open_tick());
        if self.waits.is_some() && open > self.waits {
            self.waits = None;
            self.client.set_input(now, self.wish);
        }
        // Machines are known before the events that name them.
        self.look();
        self.hear(now);
        if let Some(wish) = self.rockets.join(&self.client, self.wish) {
            self.wish = wish;
            self.client.set_input(now, wish);
        }
        while let Some(event) = self.client.poll_life() {
            let told = self.rockets.hear(&self.client, &event);
            self.mailbox.tell(told);
        }
        self.gun.see(&self.client);
        self.hand_out(now);
    }

    fn receive(&mut self, now: Timestamp) {
        while let Some((link, bytes)) = self.network.poll(now, Direction::Down) {
            match link {
                Link::Sync => self.client.handle_datagram(now, &bytes),
                Link::Reliable => self.client.handle_stream(now, &bytes),
            }
            self.gauge.look(now, &self.client);
        }
    }

    fn hand_out(&mut self, now: Timestamp) {
        if self.connected.is_none() {
            return;
        }
        let mut sent = Ok(());
        if let Some(datagram) = self.client.poll_datagram() {
            sent = self.network.send(now, Direction::Up, Link::Sync, datagram);
        }
        let segments = self.network.stream_backlog();
        if self.backlog < Self::MAX_BACKLOG && segments < Self::MAX_BACKLOG_SEGMENTS {
            let mut stream = vec![];
            if self.client.poll_stream(&mut stream) {
                sent = sent.and(self.network.send(now, Direction::Up, Link::Reliable, &stream));
            }
        }
        if sent.is_err() {
            self.give_up(now);
        }
    }

    /// A stream that lost bytes cannot go on.
    fn give_up(&mut self, now: Timestamp) {
        self.tasks.push(Task::Close);
        self.handle_disconnected(
            now,
            None,
            Some("too much was on its way: the connection was cut".to_owned()),
        );
    }

    /// What the client has to say.
    fn hear(&mut self, now: Timestamp) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Connect => self.tasks.push(Task::Connect),
                ClientEvent::Close => {
                    self.tasks.push(Task::Close);
                    (self.connected, self.transport) = (None, None);
                    self.network.clear();
                }
                ClientEvent::Session(state) => {
                    if state == SessionState::LoggedIn {
                        self.closed = None;
                    }
                    let closed = self.closed.filter(|_| diagnostics::is_out(state));
                    let text = closed.map_or_else(|| state.to_string(), |reason| reason.to_string());
                    let (state, why) = (diagnostics::state_name(state), closed.map(DisconnectReason::name));
                    self.mailbox.tell(Told::State { state, text, why });
                }
                ClientEvent::Restarted(why) => {
                    self.forget();
                    let why = match why {
                        Restart::Unknown => "unknown",
                        Restart::Overflow => "overflow",
                        Restart::Rewound => "rewound",
                        Restart::Reclaimed => "reclaimed",
                    };
                    self.mailbox.tell(Told::Restarted { why });
                }
                ClientEvent::Joined(player, name) => {
                    let (own, name) = (self.client.player() == Some(player), name.as_str().to_owned());
                    self.mailbox.tell(Told::Joined { fighter: Fighter::from(player).key(), name, own });
                }
                ClientEvent::Left(player) => self.forget_fighter(player.into()),
                ClientEvent::Closing(within) => {
                    let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
                    self.mailbox.tell(Told::Closing { within_ms });
                }
                ClientEvent::Game(bytes) => {
                    if let Ok(event) = CombatEvent::decode(&bytes) {
                        self.hear_combat(now, &event);
                    }
                }
                _ => {}
            }
        }
    }

    fn hear_combat(&mut self, now: Timestamp, event: &CombatEvent) {
        self.vitals.event(event);
        self.gun.hear(&self.client, event);
        let own = self.client.player().map(Fighter::from);
        match *event {
            CombatEvent::Fired { shooter, .. } if Some(shooter) != own => {
                let aim = diagnostics::aim_of(event).unwrap_or_default();
                let shown = now + diagnostics::picture_in(&self.client, event);
                self.note_shot(shooter, aim, shown);
            }
            CombatEvent::Death { fighter, .. } if Some(fighter) == own => self.died = Some(now),
            CombatEvent::Respawn { fighter, .. } if Some(fighter) == own => self.died = None,
            _ => {}
        }
        if let Some(told) = diagnostics::combat(&self.client, self.own_pose(), event) {
            self.mailbox.tell(told);
        }
    }

    fn note_shot(&mut self, shooter: Fighter, aim: f64, shown: Timestamp) {
        self.shots.retain(|(each, ..)| *each != shooter);
        self.shots.push((shooter, aim, shown));
    }

    fn forget_fighter(&mut self, fighter: Fighter) {
        self.vitals.left(fighter);
        self.shots.retain(|(shooter, ..)| *shooter != fighter);
        self.mailbox.tell(Told::Left { fighter: fighter.key() });
    }

    /// The session begins anew: nothing known of others and of the gun holds. The server sends states and scores again.
    fn forget(&mut self) {
        for id in core::mem::take(&mut self.machines) {
            self.forget_fighter(Fighter::Machine(id));
        }
        self.vitals = Vitals::default();
        self.shots.clear();
        self.gun.reset();
        self.rockets.forget();
        (self.vitals_tick, self.died, self.waits) = (None, None, None);
        self.drift = None;
    }

    /// Reads the newest snapshot: hit points, and machines that have come or gone.
    fn look(&mut self) {
        let newest = self.client.crowd().newest();
        let Some(tick) = newest.filter(|_| newest != self.vitals_tick) else { return };
        self.vitals_tick = newest;
        for (id, history) in self.client.crowd().bodies() {
            let fighter = Fighter::of(id, history.driver());
            // A player that has left may still be in an older snapshot.
            let here = fighter.player().is_none_or(|player| self.client.name(player).is_some());
            // Rockets, crates and platforms are no fighters.
            if history.latest().tank().is_none() {
                continue;
            }
            if let Some(tank) = history.get(tick).filter(|_| here).and_then(|record| record.after.tank()) {
                self.vitals.state(fighter, tick, tank.hp);
            }
            if let (Driver::World, Err(at)) = (history.driver(), self.machines.binary_search(&id)) {
                self.machines.insert(at, id);
                let name = fighter.machine_name().unwrap_or_default();
                self.mailbox.tell(Told::Joined { fighter: fighter.key(), name, own: false });
            }
        }
        while let Some(at) = self.machines.iter().position(|id| self.client.crowd().is_gone(*id)) {
            let id = self.machines.remove(at);
            self.forget_fighter(Fighter::Machine(id));
        }
    }

    fn run_drift(&mut self, now: Timestamp) {
        if self.drift.is_none() && self.switches.is_off(Part::Reconciliation) {
            self.drift = Drift::begin(&self.client);
        }
        let time = self.client.reconciler().map(|reconciler| reconciler.predictor().clock().at(now));
        if let (Some(drift), Some(time)) = (&mut self.drift, time) {
            drift.run(&self.client, time, self.wish);
        }
    }
}
