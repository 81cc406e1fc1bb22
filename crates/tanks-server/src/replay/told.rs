//! A match in words: who came, who killed whom, and the score.

use std::fmt;

use halftrack::record::Entry;
use serde::Serialize;
use tanks::{About, CombatEvent, Fighter, Phase, Scores, TankPlayback};

use super::Outcome;
use crate::words::{Count, Date};

/// See the module.
pub(super) struct Told {
    room: String,
    started: u64,
    pub(super) kills: Vec<Kill>,
    rounds: Vec<RoundEnd>,
    pub(super) scores: Scores,
    /// Corrections that clients told of, and how many of these snapped.
    corrections: (u64, u64),
    restarts: Vec<f64>,
}

/// Somebody was killed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Kill {
    /// Seconds since the match began.
    pub(super) at: f64,
    /// None for a player that left in combat, when no attacker was to be credited.
    pub(super) killer: Option<String>,
    pub(super) killed: String,
}

/// A round was over.
#[derive(Clone, Debug, Serialize)]
struct RoundEnd {
    /// Seconds since the match began.
    at: f64,
    number: u32,
    /// None for a draw.
    winner: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    kills: u32,
    deaths: u32,
    shots: u32,
    hits: u32,
}

impl Told {
    pub(super) fn new(about: &About) -> Self {
        Self {
            room: about.room.clone(),
            started: about.started,
            kills: vec![],
            rounds: vec![],
            scores: Scores::default(),
            corrections: (0, 0),
            restarts: vec![],
        }
    }

    pub(super) fn hear(&mut self, entry: &Entry, playback: &TankPlayback) {
        match entry {
            Entry::Tick => self.count_all(playback),
            Entry::Joined { player, name, .. } => self.scores.joined(*player, name.clone()),
            Entry::Left { player } => {
                self.count_all(playback);
                self.scores.left(*player);
            }
            Entry::Reported { corrections, snapped, .. } => {
                self.corrections.0 += corrections.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
                self.corrections.1 += u64::from(*snapped);
            }
            Entry::Recovered { .. } => self.restarts.push(at(playback)),
            _ => {}
        }
    }

    fn count_all(&mut self, playback: &TankPlayback) {
        for (_, bytes) in playback.stage().events().iter() {
            if let Ok(event) = CombatEvent::decode(bytes) {
                self.count(&event, playback);
            }
        }
    }

    fn count(&mut self, event: &CombatEvent, playback: &TankPlayback) {
        self.scores.count(event);
        let name = |fighter: &Fighter| name_of(*fighter, playback);
        if let CombatEvent::Round { number, phase: Phase::Over { winner }, .. } = event
            // A newcomer in the break gets the same event.
            && self.rounds.last().is_none_or(|last| last.number < *number)
        {
            let winner = winner.as_ref().map(name);
            self.rounds.push(RoundEnd { at: at(playback), number: *number, winner });
        }
        if let CombatEvent::Death { fighter, by, .. } = event {
            self.kills.push(Kill {
                at: at(playback),
                killer: (by != fighter).then(|| name(by)),
                killed: name(fighter),
            });
        }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let row = |score: &'_ tanks::Score| (score.kills, score.deaths, score.shots, score.hits);
        let ranked = self.scores.ranked().into_iter();
        ranked
            .map(|score| {
                let (kills, deaths, shots, hits) = row(score);
                Row { name: score.name.as_str(), kills, deaths, shots, hits }
            })
            .collect()
    }

    pub(super) fn json(&self, outcome: &Outcome) -> serde_json::Result<String> {
        serde_json::to_string(&serde_json::json!({
            "room": self.room,
            "started": self.started,
            "started_at": Date(self.started).to_string(),
            "outcome": outcome,
            "kills": self.kills,
            "rounds": self.rounds,
            "scores": self.rows(),
            "corrections": self.corrections.0,
            "snapped": self.corrections.1,
        }))
    }
}

/// The name of a player, or of a machine.
fn name_of(fighter: Fighter, playback: &TankPlayback) -> String {
    let player = || playback.name(fighter.player()?).map(ToString::to_string);
    fighter.machine_name().or_else(player).unwrap_or("?".to_owned())
}

/// Seconds since the match began.
pub(super) fn at(playback: &TankPlayback) -> f64 {
    let first = playback.recording().header().first_tick;
    let ticks = playback.stage().tick().number().saturating_sub(first);
    playback.stage().cadence().span_of(ticks).as_secs_f64()
}

/// Minutes and seconds.
pub(super) fn clock(seconds: f64) -> String {
    format!("{:.0}:{:04.1}", (seconds / 60.0).floor(), seconds % 60.0)
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "room {}, began at {}", self.room, Date(self.started))?;
        for kill in &self.kills {
            match kill.killer.as_deref() {
                Some(killer) => writeln!(f, "{:>9}  {killer} killed {}", clock(kill.at), kill.killed)?,
                None => writeln!(f, "{:>9}  {} left in combat", clock(kill.at), kill.killed)?,
            }
        }
        for RoundEnd { at, number, winner } in &self.rounds {
            match winner {
                Some(winner) => writeln!(f, "{:>9}  {winner} won round {number}", clock(*at))?,
                None => writeln!(f, "{:>9}  round {number} was a draw", clock(*at))?,
            }
        }
        for at in &self.restarts {
            writeln!(f, "{:>9}  the server came back", clock(*at))?;
        }
        writeln!(f, "{:<24} {:>6} {:>6} {:>6} {:>6}", "player", "kills", "deaths", "shots", "hits")?;
        for Row { name, kills, deaths, shots, hits } in self.rows() {
            writeln!(f, "{name:<24} {kills:>6} {deaths:>6} {shots:>6} {hits:>6}")?;
        }
        let (corrections, snapped) = self.corrections;
        writeln!(f, "clients reported {}, {snapped} of them snapped", Count(corrections, "correction"))
    }
}
