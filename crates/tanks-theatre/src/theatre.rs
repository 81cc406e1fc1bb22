//! A recorded match as a page shows it: a file, where in it one is, and how fast time goes. Bytes and time come in as
//! arguments; knows neither the browser nor what is drawn.

use core::time::Duration;
use std::sync::Arc;

use tanks::{About, Arena, CombatEvent, Fighter, MatchRefused, Phase, open_recording};

use crate::index::{Index, Limits};
use crate::moment::{Row, along, find, rows, way};
use crate::run::{Heard, Run, Tally, radians};
use crate::things::{Thing, things, turns};
use crate::told::{self, Ground, Standing, Told, json};
use crate::view::{self, Around, Bodies};

/// Whether time goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It does.
    Play,
    /// It stands.
    Pause,
}

/// A recorded match that is watched.
///
/// ```
/// use tanks_theatre::Theatre;
///
/// let refused = Theatre::open(b"holiday.jpg".to_vec()).unwrap_err();
/// assert_eq!(refused.to_string(), "this is no recording");
/// ```
#[derive(Debug)]
pub struct Theatre {
    about: About,
    arena: Arc<Arena>,
    index: Index,
    /// Microseconds: how long a tick is, and where on the time line the picture is.
    interval: u64,
    at: u64,
    /// The tick before the picture, as the time line counts them, and its number on the server.
    tick: u32,
    server_tick: u32,
    /// All tanks at its end, and at the end of the next one.
    before: Vec<Row>,
    after: Vec<Row>,
    /// The same of all other bodies.
    things_before: Vec<Thing>,
    things_after: Vec<Thing>,
    /// The match at the end of that next one; `None` until a tick was read.
    ahead: Option<Run>,
    wish: Wish,
    speed: f64,
    /// What happens between the two ticks and is not seen yet, by its moment.
    waiting: Vec<(u64, Told)>,
    /// What has been seen and the page has not asked for.
    told: Vec<Told>,
    view: Vec<f64>,
}

impl Theatre {
    /// The slowest and the fastest that time goes.
    pub const SPEEDS: (f64, f64) = (0.25, 8.0);
    /// Events that wait for the page; a page that does not look needs none.
    const MAX_TOLD: usize = 1_024;

    /// Opens a file. Nothing is read of it but its beginning: see [`Self::index_some`].
    ///
    /// # Errors
    /// When it is no recording, or of other rules.
    pub fn open(bytes: Vec<u8>) -> Result<Self, MatchRefused> {
        Self::with_limits(bytes, Limits::default())
    }

    /// The same, of which no more is kept than that.
    ///
    /// # Errors
    /// The same.
    pub fn with_limits(bytes: Vec<u8>, limits: Limits) -> Result<Self, MatchRefused> {
        let (about, playback) = open_recording(bytes)?;
        let arena = Arc::clone(&playback.stage().world().config().arena);
        let run = Run::new(playback);
        Ok(Self {
            about,
            arena,
            interval: run.interval(),
            index: Index::new(run, limits),
            at: 0,
            tick: 0,
            server_tick: 0,
            before: vec![],
            after: vec![],
            things_before: vec![],
            things_after: vec![],
            ahead: None,
            wish: Wish::Pause,
            speed: 1.0,
            waiting: vec![],
            told: vec![],
            view: vec![],
        })
    }

    /// Reads so many entries more of the file, or fewer when they take long. Gives whether something is left. What was read can be watched already.
    pub fn index_some(&mut self, entries: u32) -> bool {
        self.index.read_some(entries);
        if self.ahead.is_none() && self.index.reader().tick().is_some() {
            self.show(0);
        }
        !self.index.is_done()
    }

    /// How long the match is, as far as it was read: the ticks in which somebody was there.
    pub fn length(&self) -> Duration {
        Duration::from_micros(self.end())
    }

    /// Where in it the picture is.
    pub fn at(&self) -> Duration {
        Duration::from_micros(self.at)
    }

    /// Goes anywhere.
    pub fn seek(&mut self, at: Duration) {
        self.show(u64::try_from(at.as_micros()).unwrap_or(u64::MAX));
    }

    /// Whether time goes on, and who wishes so. At the end it begins anew.
    pub fn set_wish(&mut self, wish: Wish) {
        self.wish = wish;
        if wish == Wish::Play && self.index.is_done() && self.at >= self.end() {
            self.show(0);
        }
    }

    /// Whether time goes on.
    pub fn wish(&self) -> Wish {
        self.wish
    }

    /// How much faster than the wall's time goes, within [`Self::SPEEDS`].
    pub fn set_speed(&mut self, speed: f64) {
        let (slowest, fastest) = Self::SPEEDS;
        // What is no number is neither more nor less than anything.
        self.speed = if speed.is_nan() { 1.0 } else { speed.clamp(slowest, fastest) };
    }

    /// So much time has passed on the wall.
    pub fn advance(&mut self, wall: Duration) {
        if self.wish == Wish::Pause || self.ahead.is_none() {
            return;
        }
        let moved = libm::round(wall.as_micros() as f64 * self.speed) as u64;
        let at = self.at.saturating_add(moved).min(self.end());
        while u64::from(self.tick) < at / self.interval {
            self.release(u64::MAX);
            self.step();
        }
        self.at = at;
        self.release(at);
        if self.index.is_done() && at >= self.end() {
            self.wish = Wish::Pause;
        }
    }

    /// The numbers of the picture: see `API.md`.
    pub fn frame(&mut self) -> &[f64] {
        let around = Around {
            at: self.at,
            tick_at: u64::from(self.tick) * self.interval,
            interval: self.interval,
            length: self.end(),
            tick: self.server_tick,
            pace: if self.wish == Wish::Play { self.speed } else { 0.0 },
            speed: self.speed,
            read: self.read(),
            events: self.told.len(),
        };
        let bodies =
            Bodies { tanks: [&self.before, &self.after], things: [&self.things_before, &self.things_after] };
        view::write(&mut self.view, &around, bodies);
        &self.view
    }

    /// Those numbers again.
    pub fn view(&self) -> &[f64] {
        &self.view
    }

    /// What has happened since the last call, as a JSON array. Going somewhere else forgets it.
    pub fn poll_events(&mut self) -> String {
        let told = json(&self.told);
        self.told.clear();
        told
    }

    /// Players and then machines that are there, each in order of number, as a JSON array.
    pub fn fighters(&self) -> String {
        let Some(run) = &self.ahead else { return "[]".to_owned() };
        let standing = |(fighter, tally): &(Fighter, Tally)| Standing {
            fighter: fighter.key(),
            name: run.name(*fighter),
            hp: find(&self.before, *fighter).map_or(0, |row| row.hp),
            kills: tally.kills,
            deaths: tally.deaths,
            shots: tally.shots,
            hits: tally.hits,
        };
        json(&run.here().iter().map(standing).collect::<Vec<_>>())
    }

    /// What is marked on the time line, from the mark of that number on, as a JSON array.
    pub fn marks(&self, from: usize) -> String {
        json(&self.index.marks().get(from..).unwrap_or_default())
    }

    /// What the file says about itself and what was found in it so far, as JSON.
    pub fn about(&self) -> String {
        let reader = self.index.reader();
        let damage = reader.playback().recording().damage().map(|damage| damage.to_string());
        let refused = || reader.playback().refused().map(|refused| refused.to_string());
        json(&told::About {
            room: &self.about.room,
            started: self.about.started,
            tick_ms: self.interval as f64 / 1e3,
            arena: Ground::of(&self.arena),
            damage: damage.or_else(refused),
            differs_ms: self.index.differs().map(|at| at as f64 / 1e3),
            marks_left_out: self.index.left_out(),
        })
    }

    /// Copies of the match that are kept to go back to. Bounded.
    pub fn copies(&self) -> usize {
        self.index.copies()
    }

    /// Share of the file that was read.
    fn read(&self) -> f64 {
        let recording = self.index.reader().playback().recording();
        if self.index.is_done() { 1.0 } else { recording.whole() as f64 / recording.len().max(1) as f64 }
    }

    fn end(&self) -> u64 {
        self.index.reader().ends()
    }

    /// The picture at `at`, as if it had been played up to there.
    fn show(&mut self, at: u64) {
        let at = at.min(self.end());
        let tick = u32::try_from(at / self.interval).unwrap_or(u32::MAX);
        let Some(copy) = self.index.nearest(tick) else { return };
        // What is being watched may be nearer than any copy.
        let watched = self.ahead.take().filter(|run| run.tick() >= copy.tick() && run.tick() <= Some(tick));
        let mut run = watched.unwrap_or_else(|| copy.clone());
        while run.tick() < Some(tick) && run.next().is_some() {}
        (self.at, self.tick, self.after) = (at, tick, rows(&run));
        self.things_after = things(&run);
        self.ahead = Some(run);
        self.told.clear();
        self.look_ahead();
        self.waiting.retain(|(moment, _)| *moment > at);
    }

    /// On to the next tick.
    fn step(&mut self) {
        self.tick += 1;
        self.look_ahead();
    }

    /// Plays the tick that follows on [`Self::tick`], at whose end `ahead` stands.
    fn look_ahead(&mut self) {
        core::mem::swap(&mut self.before, &mut self.after);
        core::mem::swap(&mut self.things_before, &mut self.things_after);
        let Some(mut run) = self.ahead.take() else { return };
        self.server_tick = run.playback().stage().tick().number();
        self.waiting.clear();
        let begins = u64::from(self.tick) * self.interval;
        loop {
            match run.next() {
                Some(Heard::Tick) => {
                    (self.after, self.things_after) = (rows(&run), things(&run));
                    turns(&run).into_iter().for_each(|(at, told)| self.wait(begins + at, told));
                    let machines: Vec<Told> = machines(&run, &self.before, &self.after).collect();
                    machines.into_iter().for_each(|told| self.wait(begins, told));
                    self.hear(&run, begins);
                    break;
                }
                Some(heard) => {
                    if let Heard::Left(_) = heard {
                        self.hear(&run, begins);
                    }
                    if let Some(told) = around_ticks(&run, heard) {
                        self.wait(begins, told);
                    }
                }
                // Nothing moves any more.
                None => {
                    self.after.clone_from(&self.before);
                    self.things_after.clone_from(&self.things_before);
                    break;
                }
            }
        }
        self.ahead = Some(run);
    }

    /// What happens in the tick that was just played.
    fn hear(&mut self, run: &Run, begins: u64) {
        for event in run.events() {
            let moment = run.moment(&event, begins);
            let share = moment.saturating_sub(begins) as f64 / self.interval as f64;
            if let Some(told) = self.tell(&event, share) {
                self.wait(moment, told);
            }
        }
    }

    /// Keeps the order of moments, and of what has the same moment.
    fn wait(&mut self, moment: u64, told: Told) {
        let at = self.waiting.partition_point(|(other, _)| *other <= moment);
        self.waiting.insert(at, (moment, told));
    }

    fn tell(&self, event: &CombatEvent, share: f64) -> Option<Told> {
        let told = match *event {
            CombatEvent::Fired { shooter, aim, reach, .. } => {
                let after = find(&self.after, shooter);
                let from = find(&self.before, shooter).or(after)?;
                let pose = along(&from.pose, way(from, after, self.interval as f64 / 1e6), share);
                let (from, aim) = ([pose.x, pose.y], radians(aim));
                let (sin, cos) = libm::sincos(aim);
                let to = [from[0] + cos * reach.metres(), from[1] + sin * reach.metres()];
                Told::Fired { shooter: shooter.key(), aim, from, to }
            }
            CombatEvent::Hit { shooter, target, .. } => {
                Told::Hit { shooter: shooter.key(), target: target.key() }
            }
            CombatEvent::DamageApplied { target, amount, .. } => {
                Told::Damage { target: target.key(), amount }
            }
            CombatEvent::Death { fighter, by, .. } => Told::Death { fighter: fighter.key(), by: by.key() },
            CombatEvent::Respawn { fighter, .. } => Told::Respawn { fighter: fighter.key() },
            CombatEvent::Round { number, phase, .. } => match phase {
                Phase::Playing => Told::Round { number, over: false, winner: None },
                Phase::Over { winner } => {
                    Told::Round { number, over: true, winner: winner.map(Fighter::key) }
                }
            },
            CombatEvent::ShootRejected { .. } | CombatEvent::Score { .. } => return None,
        };
        Some(told)
    }

    /// What waits for a moment up to `at` is told.
    fn release(&mut self, at: u64) {
        let due = self.waiting.partition_point(|(moment, _)| *moment <= at);
        self.told.extend(self.waiting.drain(..due).map(|(_, told)| told));
        let over = self.told.len().saturating_sub(Self::MAX_TOLD);
        self.told.drain(..over);
    }
}

/// Machines that come and go with a tick. Players do so between ticks.
fn machines<'a>(run: &'a Run, before: &'a [Row], after: &'a [Row]) -> impl Iterator<Item = Told> + 'a {
    let only_in = |these: &'a [Row], others: &'a [Row]| {
        let machines = these.iter().map(|row| row.fighter).filter(|fighter| fighter.player().is_none());
        machines.filter(move |machine| find(others, *machine).is_none())
    };
    let joined = only_in(after, before)
        .map(|machine| Told::Joined { fighter: machine.key(), name: run.name(machine).into_owned() });
    joined.chain(only_in(before, after).map(|machine| Told::Left { fighter: machine.key() }))
}

/// What is told of between two ticks.
fn around_ticks(run: &Run, heard: Heard) -> Option<Told> {
    match heard {
        Heard::Joined(player) => {
            let fighter = Fighter::from(player);
            Some(Told::Joined { fighter: fighter.key(), name: run.name(fighter).into_owned() })
        }
        Heard::Left(player) => Some(Told::Left { fighter: Fighter::from(player).key() }),
        Heard::Reported(player, corrections, snapped) => {
            let corrections = corrections.iter().map(|(cause, count)| (cause.name(), *count)).collect();
            Some(Told::Report { fighter: Fighter::from(player).key(), corrections, snapped })
        }
        Heard::Tick | Heard::Recovered | Heard::Other => None,
    }
}
