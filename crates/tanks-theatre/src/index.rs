//! The first reading of a file, in slices, so that a page goes on drawing: copies of the match to go back to, and what is
//! marked on the time line. Both are bounded, however long the file is.

use tanks::{CombatEvent, Fighter, Phase};

use crate::run::{Heard, Run};
use crate::told::Mark;

/// What is kept of a file, at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Ticks from one copy of the match to the next, as long as the file is short; more, when there would be too many
    /// copies. Default 200: going anywhere plays so many at most, which takes a few milliseconds.
    pub every: u32,
    /// Copies. Default 256: most of an hour before they get sparser.
    pub copies: usize,
    /// Tanks in all copies together. Default 8,192: each is kept with its last seconds, some 5 kB, and a phone has no
    /// more than this to give.
    pub tanks: usize,
    /// Marks on the time line. Default 20,000: more cannot be told from each other on any screen.
    pub marks: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { every: 200, copies: 256, tanks: 8_192, marks: 20_000 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Index {
    limits: Limits,
    /// Reads the file.
    reader: Run,
    done: bool,
    /// Where on the time line it first did not come out as it was recorded, microseconds.
    differs: Option<u64>,
    /// In order; the first is at the first tick.
    copies: Vec<Run>,
    every: u32,
    /// Tanks in all copies.
    tanks: usize,
    marks: Vec<Mark>,
    left_out: u64,
    /// The last round whose end has its mark.
    rounds: u32,
}

impl Index {
    /// Work of one slice: a few milliseconds.
    const SLICE: u64 = 1 << 18;

    pub(crate) fn new(reader: Run, limits: Limits) -> Self {
        Self {
            limits,
            reader,
            done: false,
            differs: None,
            copies: vec![],
            every: limits.every.max(1),
            tanks: 0,
            marks: vec![],
            left_out: 0,
            rounds: 0,
        }
    }

    /// Reads so many entries more, or fewer when they are much work: a page must go on drawing.
    pub(crate) fn read_some(&mut self, entries: u32) {
        let work = |reader: &Run| reader.playback().stage().work();
        let until = work(&self.reader).saturating_add(Self::SLICE);
        for _ in 0..entries {
            if work(&self.reader) > until {
                return;
            }
            let Some(heard) = self.reader.next() else {
                self.done = true;
                return;
            };
            let at = self.reader.ends();
            if self.differs.is_none() && self.reader.playback().differs().is_some() {
                self.differs = Some(at);
            }
            match heard {
                Heard::Tick => self.read_tick(at),
                Heard::Reported(player, corrections, snapped) => {
                    let fighter = Fighter::from(player);
                    let name = self.reader.name(fighter).into_owned();
                    let corrections =
                        corrections.iter().map(|(cause, count)| (cause.name(), *count)).collect();
                    let fighter = fighter.key();
                    self.mark(|at_ms| Mark::Report { at_ms, fighter, name, corrections, snapped }, at);
                }
                Heard::Recovered => self.mark(|at_ms| Mark::Recovered { at_ms }, at),
                Heard::Left(_) => self.mark_deaths(at),
                Heard::Joined(_) | Heard::Other => {}
            }
        }
    }

    fn mark_deaths(&mut self, at: u64) {
        let deaths = self.reader.events().filter_map(|event| match event {
            CombatEvent::Death { fighter, by, .. } => Some((fighter, by)),
            _ => None,
        });
        for (fighter, by) in deaths.collect::<Vec<_>>() {
            let [name, by_name] = [fighter, by].map(|fighter| self.reader.name(fighter).into_owned());
            let (fighter, by) = (fighter.key(), by.key());
            self.mark(|at_ms| Mark::Kill { at_ms, fighter, name, by, by_name }, at);
        }
    }

    fn mark_rounds(&mut self, at: u64) {
        let over = self.reader.events().find_map(|event| match event {
            CombatEvent::Round { number, phase: Phase::Over { winner }, .. } => Some((number, winner)),
            _ => None,
        });
        // A newcomer in a break hears of it again: the tick that ended the round comes first.
        if let Some((number, winner)) = over.filter(|(number, _)| *number > self.rounds) {
            self.rounds = number;
            let winner = winner.map(|winner| self.reader.name(winner).into_owned());
            self.mark(|at_ms| Mark::Round { at_ms, number, winner }, at);
        }
    }

    fn read_tick(&mut self, at: u64) {
        self.mark_deaths(at);
        self.mark_rounds(at);
        let tick = self.reader.tick();
        let last = self.copies.last().and_then(Run::tick);
        if last.zip(tick).is_none_or(|(last, tick)| tick - last >= self.every) {
            self.tanks += self.reader.here().len();
            self.copies.push(self.reader.clone());
            self.thin_out();
        }
    }

    /// Every other copy goes when there are too many.
    fn thin_out(&mut self) {
        while self.copies.len() > 2
            && (self.copies.len() > self.limits.copies || self.tanks > self.limits.tanks)
        {
            self.every = self.every.saturating_mul(2);
            let mut keep = false;
            self.copies.retain(|_| {
                keep = !keep;
                keep
            });
            self.tanks = self.copies.iter().map(|copy| copy.here().len()).sum();
        }
    }

    fn mark(&mut self, mark: impl FnOnce(f64) -> Mark, at: u64) {
        if self.marks.len() < self.limits.marks {
            self.marks.push(mark(at as f64 / 1e3));
        } else {
            self.left_out += 1;
        }
    }

    /// How far it was read.
    pub(crate) fn reader(&self) -> &Run {
        &self.reader
    }

    /// Whether all of it was read.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn differs(&self) -> Option<u64> {
        self.differs
    }

    /// The copy from which `tick` is reached soonest.
    pub(crate) fn nearest(&self, tick: u32) -> Option<&Run> {
        let after = self.copies.partition_point(|copy| copy.tick().is_none_or(|at| at <= tick));
        self.copies.get(after.checked_sub(1)?)
    }

    pub(crate) fn copies(&self) -> usize {
        self.copies.len()
    }

    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Marks that found no place.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }
}
