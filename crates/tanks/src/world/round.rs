//! Rounds: a match of a fixed length, a break in which the guns are silent, and the next match.
//!
//! ```text
//!      first player joins            length is over               pause is over
//!  idle ──────────────────► playing ───────────────► break, winner ───────────► playing, scores at zero
//!    ▲                         │                            │
//!    └────────────── the last player has left ──────────────┘
//! ```
//!
//! [`RoundClock`] counts ticks. The world acts on its [`Turn`]s.

use std::time::Duration;

use halftrack::{Cadence, Digest, Tick};

use crate::fighter::Fighter;
use crate::message::{CombatEvent, Phase};

/// How long rounds and breaks are. Checked by [`crate::TankWorld::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundConfig {
    /// From the first tick of a round to its end. Default 5 minutes: time to come back from a bad start, short enough to
    /// stay for one more. From 10 s to 24 hours.
    pub length: Duration,
    /// From the end of a round to the next one. Default 8 s: enough to read the scores. From 1 s to 5 minutes; a break of
    /// no length would never be seen.
    pub pause: Duration,
}

impl Default for RoundConfig {
    fn default() -> Self {
        Self { length: Duration::from_secs(300), pause: Duration::from_secs(8) }
    }
}

/// A change of phase at the end of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The first round since the room was empty begins: its players have just come.
    First,
    /// Another round begins: fresh tanks, scores at zero.
    Next,
    /// A round is over: the world names the winner with [`RoundClock::finish`].
    End,
}

/// The round that is on, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundClock {
    /// Rounds begun so far; the number of the one that is on.
    number: u32,
    on: Option<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    phase: Phase,
    /// The phase began at the end of this tick, and ends at the end of `until`.
    since: Tick,
    until: Tick,
}

impl RoundClock {
    /// Counts the tick that was just simulated.
    pub(super) fn tick(
        &mut self,
        config: RoundConfig,
        cadence: Cadence,
        tick: Tick,
        players: usize,
    ) -> Option<Turn> {
        // spec: COMBAT-12
        if players == 0 {
            self.on = None;
            return None;
        }
        match self.on {
            Some(round) if tick < round.until => None,
            Some(Round { phase: Phase::Playing, .. }) => {
                self.enter(Phase::Over { winner: None }, tick, cadence.ticks_in(config.pause));
                Some(Turn::End)
            }
            before => {
                self.number = self.number.saturating_add(1);
                self.enter(Phase::Playing, tick, cadence.ticks_in(config.length));
                Some(if before.is_some() { Turn::Next } else { Turn::First })
            }
        }
    }

    fn enter(&mut self, phase: Phase, since: Tick, ticks: u32) {
        let until = Tick::new(since.number().saturating_add(ticks.max(1)));
        self.on = Some(Round { phase, since, until });
    }

    /// Names the winner of the round that has just ended.
    pub(super) fn finish(&mut self, winner: Option<Fighter>) {
        if let Some(Round { phase: phase @ Phase::Over { .. }, .. }) = &mut self.on {
            *phase = Phase::Over { winner };
        }
    }

    /// Whether a gun may fire in a moment of `tick`: not in a break, and not in a tick from before this round.
    pub(super) fn is_open(&self, tick: Tick) -> bool {
        self.on.is_none_or(|round| round.phase == Phase::Playing && tick > round.since)
    }

    /// The round that is on, for clients.
    pub(super) fn event(&self) -> Option<CombatEvent> {
        let Round { phase, since, until } = self.on?;
        Some(CombatEvent::Round { number: self.number, phase, since, until })
    }

    pub(super) fn digest(&self, digest: Digest) -> Digest {
        let digest = digest.word(u64::from(self.number));
        let Some(Round { phase, since, until }) = self.on else { return digest };
        let phase = match phase {
            Phase::Playing => u64::MAX,
            Phase::Over { winner } => winner.map_or(u64::MAX - 1, |winner| winner.key()),
        };
        digest.word(phase).word(u64::from(since.number()) << 32 | u64::from(until.number()))
    }
}

/// The fighter with the most kills; of several, the one with the fewest deaths. `None` when no fighter has a kill, or when
/// the best are equal in both.
pub(super) fn winner(scores: impl Iterator<Item = (Fighter, u32, u32)>) -> Option<Fighter> {
    let mut best: Option<((u32, u32), Option<Fighter>)> = None;
    for (fighter, kills, deaths) in scores.filter(|(_, kills, _)| *kills > 0) {
        let rank = (kills, u32::MAX - deaths);
        best = match best {
            Some((first, _)) if rank < first => best,
            Some((first, _)) if rank == first => Some((rank, None)),
            _ => Some((rank, Some(fighter))),
        };
    }
    best.and_then(|(_, fighter)| fighter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack::PlayerId;

    fn player(number: u16) -> Fighter {
        Fighter::Player(PlayerId::new(number))
    }

    const CONFIG: RoundConfig =
        RoundConfig { length: Duration::from_secs(10), pause: Duration::from_secs(1) };

    fn turns(clock: &mut RoundClock, ticks: core::ops::Range<u32>, players: usize) -> Vec<(u32, Turn)> {
        let turn =
            |tick| clock.tick(CONFIG, Cadence::default(), Tick::new(tick), players).map(|turn| (tick, turn));
        ticks.filter_map(turn).collect()
    }

    #[test]
    fn rounds_and_breaks_follow_each_other_to_the_tick() {
        let mut clock = RoundClock::default();
        let expected = [(7, Turn::First), (207, Turn::End), (227, Turn::Next), (427, Turn::End)];
        assert_eq!(turns(&mut clock, 7..440, 1), expected);
        assert_eq!(clock.number, 2);
    }

    #[test]
    fn an_empty_room_calls_the_round_off_and_the_next_player_begins_another() {
        let mut clock = RoundClock::default();
        turns(&mut clock, 0..100, 2);
        assert_eq!(turns(&mut clock, 100..900, 0), []);
        assert_eq!(clock.event(), None);
        assert_eq!(turns(&mut clock, 900..901, 1), [(900, Turn::First)]);
        assert_eq!(clock.number, 2);
    }

    #[test]
    fn guns_are_silent_in_a_break_and_for_ticks_before_the_round() {
        let mut clock = RoundClock::default();
        assert!(clock.is_open(Tick::new(3)), "without rounds there is no break");
        turns(&mut clock, 7..8, 1);
        assert!(!clock.is_open(Tick::new(7)) && clock.is_open(Tick::new(8)));
        turns(&mut clock, 8..210, 1);
        assert!(!clock.is_open(Tick::new(206)) && !clock.is_open(Tick::new(211)));
    }

    #[test]
    fn most_kills_win_then_fewest_deaths_and_equals_share_nothing() {
        let of = |scores: &[(u16, u32, u32)]| {
            winner(scores.iter().map(|(number, kills, deaths)| (player(*number), *kills, *deaths)))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(1, 0, 0), (2, 0, 3)]), None, "nobody destroyed anybody");
        assert_eq!(of(&[(1, 2, 0), (2, 3, 9)]), Some(player(2)));
        assert_eq!(of(&[(1, 3, 2), (2, 3, 1), (3, 1, 0)]), Some(player(2)));
        assert_eq!(of(&[(1, 3, 1), (2, 3, 1), (3, 2, 0)]), None);
        assert_eq!(
            of(&[(1, 3, 1), (2, 3, 1), (3, 4, 9)]),
            Some(player(3)),
            "a later one can still be better"
        );
    }
}
