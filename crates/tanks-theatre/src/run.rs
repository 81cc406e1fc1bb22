//! A playback, and what is known of fighters besides their tanks. Knows ticks, not where on the screen they are.

use core::f64::consts::TAU;
use std::borrow::Cow;

use halftrack::record::Entry;
use halftrack::{Cause, Driver, PlayerId};
use tanks::{CombatEvent, Fighter, Phase, TankPlayback};

/// A match as far as it was played. A clone goes on from there.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    playback: TankPlayback,
    /// Ticks so far in which somebody was there. The others pass in no time: nobody wants to watch them.
    ticks: u32,
    /// In order. A list, because the code of a map is large and the page downloads it.
    here: Vec<(Fighter, Tally)>,
    /// The number of the round that is on; 0 before the first.
    round: u32,
}

/// Kills and deaths of this round, shots and hits since the fighter came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) kills: u32,
    pub(crate) deaths: u32,
    pub(crate) shots: u32,
    pub(crate) hits: u32,
    pub(crate) last_shot: Option<Shot>,
}

/// Where a shot went, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shot {
    /// Radians to the left of east.
    pub(crate) aim: f64,
    /// Microseconds of the time line.
    pub(crate) at: u64,
}

/// What was played.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// A tick: [`Run::events`] has what happened in it.
    Tick,
    Joined(PlayerId),
    /// A player left: [`Run::events`] has what happened by that.
    Left(PlayerId),
    /// What a client had to correct, by cause, and how many of these snapped.
    Reported(PlayerId, Vec<(Cause, u16)>, u16),
    /// The server ended without a word, and another went on.
    Recovered,
    Other,
}

impl Run {
    pub(crate) fn new(playback: TankPlayback) -> Self {
        Self { playback, ticks: 0, here: vec![], round: 0 }
    }

    /// Plays one entry; `None` at the end, or where it cannot be read any more.
    pub(crate) fn next(&mut self) -> Option<Heard> {
        let heard = match self.playback.next()? {
            Entry::Tick => {
                self.ticks = self.ticks.saturating_add(1);
                self.meet_machines();
                self.count();
                Heard::Tick
            }
            Entry::Joined { player, .. } => {
                self.forget(player.into());
                let at = self.here.partition_point(|(each, _)| *each < player.into());
                self.here.insert(at, (player.into(), Tally::default()));
                Heard::Joined(player)
            }
            Entry::Left { player } => {
                self.count();
                self.forget(player.into());
                Heard::Left(player)
            }
            Entry::Reported { player, corrections, snapped } => {
                // Each cause once: whoever wrote more meant no good.
                let known = corrections.iter().take(Cause::ALL.len());
                let known = known.filter_map(|(place, count)| Some((Entry::cause(*place)?, *count)));
                Heard::Reported(player, known.collect(), snapped)
            }
            Entry::Recovered { .. } => Heard::Recovered,
            _ => Heard::Other,
        };
        Some(heard)
    }

    fn forget(&mut self, fighter: Fighter) {
        self.here.retain(|(each, _)| *each != fighter);
    }

    /// Takes in machines that have come with this tick, and lets go of those that have gone.
    fn meet_machines(&mut self) {
        // Rockets, crates and platforms are no fighters.
        let bodies = || self.playback.stage().bodies();
        let machines =
            || bodies().filter(|(_, driver, body)| *driver == Driver::World && body.tank().is_some());
        // In order, as bodies are.
        let machines = || machines().map(|(id, driver, _)| Fighter::of(id, driver));
        let players = self.here.partition_point(|(fighter, _)| fighter.player().is_some());
        let known = self.here.iter().skip(players).map(|(fighter, _)| *fighter);
        if known.eq(machines()) {
            return;
        }
        let machines: Vec<_> = machines().map(|machine| (machine, self.tally(machine))).collect();
        self.here.truncate(players);
        self.here.extend(machines);
    }

    fn count(&mut self) {
        let begins = self.begins();
        let events: Vec<CombatEvent> = self.events().collect();
        for event in events {
            let at = self.moment(&event, begins);
            let mut add = |fighter: Fighter, what: &dyn Fn(&mut Tally)| {
                if let Some((_, tally)) = self.place(fighter).ok().and_then(|at| self.here.get_mut(at)) {
                    what(tally);
                }
            };
            match event {
                CombatEvent::Fired { shooter, aim, .. } => add(shooter, &|tally| {
                    tally.shots += 1;
                    tally.last_shot = Some(Shot { aim: radians(aim), at });
                }),
                CombatEvent::Hit { shooter, .. } => add(shooter, &|tally| tally.hits += 1),
                CombatEvent::Death { fighter, by, .. } => {
                    add(fighter, &|tally| tally.deaths += 1);
                    if by != fighter {
                        add(by, &|tally| tally.kills += 1);
                    }
                }
                // One for each newcomer in a round, too: only the change to another one counts.
                CombatEvent::Round { number, phase: Phase::Playing, .. } if number != self.round => {
                    self.round = number;
                    self.here.iter_mut().for_each(|(_, tally)| (tally.kills, tally.deaths) = (0, 0));
                }
                _ => {}
            }
        }
    }

    /// When an event of the newest tick is seen, microseconds of the time line. A shot that came too late for its own tick
    /// is seen as soon as it is known; what it does is of the tick's end.
    pub(crate) fn moment(&self, event: &CombatEvent, begins: u64) -> u64 {
        let interval = self.interval();
        match *event {
            CombatEvent::Fired { tick, at, .. } | CombatEvent::Hit { tick, at, .. } => {
                let into = if tick == self.playback.stage().tick() { u64::from(at) } else { 0 };
                (begins + interval * into / 256).min(self.ends())
            }
            _ => self.ends(),
        }
    }

    /// What happened in the newest tick.
    pub(crate) fn events(&self) -> impl Iterator<Item = CombatEvent> + '_ {
        let events = self.playback.stage().events();
        events.iter().filter_map(|(_, bytes)| CombatEvent::decode(bytes).ok())
    }

    /// The newest tick that was played, as the time line counts them: the first is 0. `None` before it.
    pub(crate) fn tick(&self) -> Option<u32> {
        self.ticks.checked_sub(1)
    }

    /// How long a tick is, microseconds.
    pub(crate) fn interval(&self) -> u64 {
        u64::try_from(self.playback.stage().cadence().interval().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    /// Where on the time line the newest tick ends, microseconds.
    pub(crate) fn ends(&self) -> u64 {
        u64::from(self.tick().unwrap_or(0)) * self.interval()
    }

    /// And where it begins.
    pub(crate) fn begins(&self) -> u64 {
        self.ends().saturating_sub(self.interval())
    }

    /// Players and then machines that are there, each in order of number, and their tallies.
    pub(crate) fn here(&self) -> &[(Fighter, Tally)] {
        &self.here
    }

    pub(crate) fn tally(&self, fighter: Fighter) -> Tally {
        let known = self.place(fighter).ok().and_then(|at| self.here.get(at));
        known.map(|(_, tally)| *tally).unwrap_or_default()
    }

    /// The index of a fighter in the list, or where it belongs.
    fn place(&self, fighter: Fighter) -> Result<usize, usize> {
        self.here.binary_search_by_key(&fighter, |(each, _)| *each)
    }

    pub(crate) fn name(&self, fighter: Fighter) -> Cow<'_, str> {
        let name = fighter.player().and_then(|player| self.playback.name(player));
        let machine = || fighter.machine_name().map_or(Cow::Borrowed("?"), Cow::Owned);
        name.map_or_else(machine, |name| Cow::Borrowed(name.as_str()))
    }

    pub(crate) fn playback(&self) -> &TankPlayback {
        &self.playback
    }
}

/// From 1/65536 turn.
pub(crate) fn radians(aim: u16) -> f64 {
    f64::from(aim) / 65_536.0 * TAU
}
