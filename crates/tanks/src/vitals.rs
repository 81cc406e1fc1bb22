//! Who lives, with how many hit points, and who has killed how often: as a client may show it.
//!
//! States and events take different lanes, so either may tell first; which of the two is newer is for their ticks to
//! say. Nothing here is predicted: all of it comes from the server.

use std::collections::BTreeMap;

use halftrack::Tick;

use crate::body::Tank;
use crate::fighter::Fighter;
use crate::message::{CombatEvent, Phase};

/// What a client knows of everybody's life.
///
/// ```
/// use halftrack::{PlayerId, Tick};
/// use tanks::{CombatEvent, Fighter, Vitals};
///
/// let (ada, bob) = (Fighter::from(PlayerId::new(1)), Fighter::from(PlayerId::new(2)));
/// let mut vitals = Vitals::default();
/// vitals.state(bob, Tick::new(40), 25);
/// vitals.event(&CombatEvent::Death { fighter: bob, by: ada, tick: Tick::new(41) });
/// vitals.state(bob, Tick::new(40), 25);
/// assert!(vitals.of(bob).is_some_and(|bob| !bob.is_alive()), "an older state brings nobody back");
/// assert_eq!(vitals.of(ada).map(|ada| ada.kills), Some(1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Vitals {
    fighters: BTreeMap<Fighter, Vital>,
    round: Option<RoundState>,
}

/// The round that is on, as a client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundState {
    /// The first round of a room is 1.
    pub number: u32,
    /// Whether it is played, or who won it.
    pub phase: Phase,
    /// The phase ends at the end of this tick.
    pub until: Tick,
}

/// What a client knows of one player's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vital {
    /// Hit points; `None` until somebody has told.
    pub hp: Option<u8>,
    /// Others whom it destroyed in this round, or since it came if that is later.
    pub kills: u32,
    /// Times that it was destroyed since then.
    pub deaths: u32,
    /// Who told the hit points, and of which tick's end.
    told: Option<(Tick, Teller)>,
}

/// A state knows the end of a tick; an event may be one of several on the way there. So of the same tick, the state
/// has the last word: greater is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Teller {
    Event,
    State,
}

impl Vital {
    /// Whether it has hit points, as far as is known: alive until somebody tells otherwise.
    pub fn is_alive(&self) -> bool {
        self.hp != Some(0)
    }

    fn tell(&mut self, hp: u8, told: (Tick, Teller)) {
        // Events of one tick come in order: the later one counts.
        if self.told.is_none_or(|known| known <= told) {
            (self.hp, self.told) = (Some(hp), Some(told));
        }
    }
}

impl Vitals {
    /// An authoritative state: how the player is at the end of `tick`. States of players who have left are not to be
    /// told here.
    pub fn state(&mut self, fighter: Fighter, tick: Tick, hp: u8) {
        self.vital(fighter).tell(hp, (tick, Teller::State));
    }

    /// An event, each once and in the order of the lane.
    pub fn event(&mut self, event: &CombatEvent) {
        match *event {
            CombatEvent::DamageApplied { target, hp, tick, .. } => {
                self.vital(target).tell(hp, (tick, Teller::Event));
            }
            CombatEvent::Death { fighter, by, tick } => {
                let dead = self.vital(fighter);
                dead.deaths = dead.deaths.saturating_add(1);
                dead.tell(0, (tick, Teller::Event));
                // A player that left in combat died by no shot: nobody is credited.
                if by != fighter {
                    let killer = self.vital(by);
                    killer.kills = killer.kills.saturating_add(1);
                }
            }
            CombatEvent::Respawn { fighter, tick } => {
                self.vital(fighter).tell(Tank::MAX_HP, (tick, Teller::Event));
            }
            CombatEvent::Score { fighter, kills, deaths } => {
                let vital = self.vital(fighter);
                (vital.kills, vital.deaths) = (kills, deaths);
            }
            CombatEvent::Round { number, phase, until, .. } => {
                if phase == Phase::Playing {
                    self.fighters.values_mut().for_each(|vital| (vital.kills, vital.deaths) = (0, 0));
                }
                self.round = Some(RoundState { number, phase, until });
            }
            // Cosmetics, and what concerns only the shooter's gun.
            CombatEvent::Fired { .. } | CombatEvent::Hit { .. } | CombatEvent::ShootRejected { .. } => {}
        }
    }

    /// A player has gone for good.
    pub fn left(&mut self, fighter: Fighter) {
        self.fighters.remove(&fighter);
    }

    /// The round that is on, if the room has rounds.
    pub fn round(&self) -> Option<&RoundState> {
        self.round.as_ref()
    }

    /// What is known of a player.
    pub fn of(&self, fighter: Fighter) -> Option<&Vital> {
        self.fighters.get(&fighter)
    }

    /// Everybody, in order of player.
    pub fn iter(&self) -> impl Iterator<Item = (Fighter, &Vital)> {
        self.fighters.iter().map(|(fighter, vital)| (*fighter, vital))
    }

    fn vital(&mut self, fighter: Fighter) -> &mut Vital {
        self.fighters.entry(fighter).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Reach, Rejection};
    use halftrack::PlayerId;
    use proptest::prelude::*;

    const ADA: Fighter = Fighter::Player(PlayerId::new(1));
    const BOB: Fighter = Fighter::Player(PlayerId::new(2));

    fn damage(hp: u8, tick: u32) -> CombatEvent {
        CombatEvent::DamageApplied { target: BOB, amount: 25, hp, tick: Tick::new(tick) }
    }

    fn hp(vitals: &Vitals) -> Option<u8> {
        vitals.of(BOB).and_then(|bob| bob.hp)
    }

    #[test]
    fn the_newer_word_counts_whoever_says_it() {
        let mut vitals = Vitals::default();
        vitals.state(BOB, Tick::new(10), 100);
        vitals.event(&damage(75, 12));
        assert_eq!(hp(&vitals), Some(75), "an event is ahead of the states");
        vitals.state(BOB, Tick::new(11), 100);
        assert_eq!(hp(&vitals), Some(75), "an older state undoes nothing");
        vitals.state(BOB, Tick::new(12), 50);
        assert_eq!(hp(&vitals), Some(50), "of the same tick, the state has the last word");
        vitals.event(&damage(60, 12));
        assert_eq!(hp(&vitals), Some(50));
        vitals.state(BOB, Tick::new(20), 25);
        vitals.event(&damage(50, 19));
        assert_eq!(hp(&vitals), Some(25), "an older event undoes nothing");
    }

    #[test]
    fn several_events_of_a_tick_count_in_their_order() {
        let mut vitals = Vitals::default();
        vitals.event(&damage(25, 5));
        vitals.event(&damage(0, 5));
        vitals.event(&CombatEvent::Death { fighter: BOB, by: ADA, tick: Tick::new(5) });
        assert_eq!(hp(&vitals), Some(0));
        assert!(!vitals.of(BOB).unwrap().is_alive());
        vitals.event(&CombatEvent::Respawn { fighter: BOB, tick: Tick::new(65) });
        assert_eq!(hp(&vitals), Some(Tank::MAX_HP));
        let [ada, bob] = [ADA, BOB].map(|player| *vitals.of(player).unwrap());
        assert_eq!((ada.kills, ada.deaths, bob.kills, bob.deaths), (1, 0, 0, 1));
        assert!(ada.is_alive() && ada.hp.is_none(), "nobody has told of her");
    }

    #[test]
    fn a_late_death_is_counted_though_it_changes_no_life() {
        let mut vitals = Vitals::default();
        vitals.state(BOB, Tick::new(90), 100);
        vitals.event(&CombatEvent::Death { fighter: BOB, by: ADA, tick: Tick::new(20) });
        assert_eq!(hp(&vitals), Some(100));
        assert_eq!(vitals.of(BOB).unwrap().deaths, 1);
    }

    #[test]
    fn a_score_sets_the_room_totals_and_later_deaths_add_to_them() {
        let mut vitals = Vitals::default();
        vitals.event(&CombatEvent::Score { fighter: ADA, kills: 7, deaths: 2 });
        vitals.event(&CombatEvent::Death { fighter: BOB, by: ADA, tick: Tick::new(9) });
        let totals = |vitals: &Vitals, player| vitals.of(player).map(|vital| (vital.kills, vital.deaths));
        assert_eq!((totals(&vitals, ADA), totals(&vitals, BOB)), (Some((8, 2)), Some((0, 1))));
        vitals.event(&CombatEvent::Score { fighter: ADA, kills: 8, deaths: 2 });
        assert_eq!(totals(&vitals, ADA), Some((8, 2)), "the same death is not counted twice");
    }

    #[test]
    fn a_new_round_sets_scores_to_zero_and_its_end_keeps_them() {
        let mut vitals = Vitals::default();
        let round = |phase, until| CombatEvent::Round {
            number: 2,
            phase,
            since: Tick::new(9),
            until: Tick::new(until),
        };
        vitals.event(&CombatEvent::Score { fighter: ADA, kills: 7, deaths: 2 });
        vitals.event(&round(Phase::Over { winner: Some(ADA) }, 20));
        assert_eq!(vitals.of(ADA).map(|ada| ada.kills), Some(7), "the break shows the scores of the round");
        assert_eq!(vitals.round().map(|round| round.phase), Some(Phase::Over { winner: Some(ADA) }));
        vitals.event(&round(Phase::Playing, 40));
        assert_eq!(vitals.of(ADA).map(|ada| (ada.kills, ada.deaths)), Some((0, 0)));
        assert_eq!(vitals.round().map(|round| (round.number, round.until)), Some((2, Tick::new(40))));
    }

    #[test]
    fn cosmetics_change_nothing_and_who_left_is_forgotten() {
        let mut vitals = Vitals::default();
        let (tick, at) = (Tick::new(9), 0);
        vitals.event(&CombatEvent::Fired { shooter: ADA, tick, at, aim: 0, reach: Reach::from_metres(9.0) });
        vitals.event(&CombatEvent::Hit { shooter: ADA, target: BOB, tick, at });
        vitals.event(&CombatEvent::ShootRejected { tick, at, why: Rejection::Dead });
        assert_eq!(vitals.iter().count(), 0);
        vitals.state(BOB, tick, 100);
        vitals.left(BOB);
        assert_eq!(vitals.of(BOB), None);
    }

    proptest! {
        /// Whatever the two lanes make of the order between them, the end is the same.
        #[test]
        fn lanes_may_overtake_each_other(cuts in prop::collection::vec((0u8..=100, any::<bool>()), 1..12), seed in any::<u64>()) {
            let events: Vec<_> = (0..).zip(&cuts).filter(|(_, (_, changes))| *changes).collect();
            let (mut vitals, mut dice) = (Vitals::default(), seed);
            let (mut states, mut events) = ((0..).zip(&cuts).peekable(), events.into_iter().peekable());
            while states.peek().is_some() || events.peek().is_some() {
                dice = dice.rotate_left(1);
                let from_states = if events.peek().is_none() { true } else { states.peek().is_some() && dice & 1 == 0 };
                if from_states {
                    let (tick, (hp, _)) = states.next().unwrap();
                    vitals.state(BOB, Tick::new(tick), *hp);
                } else {
                    let (tick, (hp, _)) = events.next().unwrap();
                    vitals.event(&damage(*hp, tick));
                }
            }
            prop_assert_eq!(hp(&vitals), cuts.last().map(|(hp, _)| *hp));
        }
    }
}
