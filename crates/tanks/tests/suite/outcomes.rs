//! Every order has exactly one outcome, in order, whatever is ordered and whenever it comes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::range::{Range, Told, aim};
use halftrack::server::Audience;
use halftrack::{Cadence, PlayerId, ServerTime, Tick};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tanks::{
    Arena, CombatEvent, Fighter, Obstacle, Phase, Rejection, RoundConfig, Seen, ShootInput, Tank, TankInput,
    TankWorldConfig,
};

const PLAYERS: u16 = 4;
const COOLDOWN: Duration = Duration::from_millis(60);

/// A small place with a pillar in its middle, where everybody shoots often and dies soon.
fn brawl() -> Range {
    let pillar = Obstacle::Pillar { center: [0.0, 0.0], radius: 1.0 };
    let arena = Arc::new(Arena::new([24.0, 20.0], vec![pillar]).unwrap());
    let respawn_after = Duration::from_millis(150);
    let config = TankWorldConfig {
        arena,
        damage: 50,
        cooldown: COOLDOWN,
        respawn_after,
        rounds: Some(RoundConfig { length: Duration::from_secs(10), pause: Duration::from_secs(1) }),
        ..TankWorldConfig::default()
    };
    let mut range = Range::new(config);
    for _ in 0..PLAYERS {
        range.join();
    }
    range.ticks(10);
    range
}

/// What one player does before some ticks pass.
#[derive(Clone, Copy, Debug)]
struct Act {
    player: u16,
    /// At whom, if not anywhere.
    at_whom: Option<u16>,
    aim: u16,
    ahead: i32,
    at: u8,
    ago: u32,
    before_micros: u32,
    drive: (i8, i8),
    pass: u32,
}

fn any_act() -> impl Strategy<Value = Act> {
    let who = (0..PLAYERS, prop::option::weighted(0.8, 0..PLAYERS));
    // Mostly for about now; some far too late or too early, some that claim too much.
    let ahead = prop_oneof![8 => -3i32..4, 2 => -14i32..26];
    let seen = (0u32..6, prop_oneof![9 => 0u32..250_000, 1 => 0u32..400_000]);
    let drive = (-1i8..=1, -1i8..=1);
    (who, any::<(u16, u8)>(), ahead, seen, drive, 0u32..3).prop_map(
        |((player, at_whom), (aim, at), ahead, (ago, before_micros), drive, pass)| Act {
            player,
            at_whom,
            aim,
            ahead,
            at,
            ago,
            before_micros,
            drive,
            pass,
        },
    )
}

/// What must be so, kept up from what is told.
#[derive(Default)]
struct Ledger {
    ordered: BTreeMap<Fighter, VecDeque<(Tick, u8)>>,
    fired: BTreeMap<Fighter, ServerTime>,
    hp: BTreeMap<Fighter, u8>,
    /// Kills and deaths.
    scores: BTreeMap<Fighter, (u32, u32)>,
    kinds: BTreeMap<&'static str, u32>,
    in_break: bool,
}

impl Ledger {
    /// Checks a tick's events against what was ordered and against each other.
    fn check(&mut self, told: &Told, range: &Range) -> Result<(), TestCaseError> {
        let mut latest: Option<(ServerTime, Fighter)> = None;
        let mut expected: Option<CombatEvent> = None;
        for (index, (audience, event)) in told.iter().enumerate() {
            let next = told.get(index + 1).map(|(_, event)| *event);
            // What must follow what was before it, follows at once.
            if let Some(expected) = expected.take() {
                prop_assert_eq!(*event, expected);
            }
            match *event {
                CombatEvent::Fired { shooter, tick, at, .. } => {
                    self.outcome(shooter, tick, at, "fired")?;
                    let moment = moment(tick, at);
                    prop_assert!(latest.is_none_or(|latest| latest < (moment, shooter)), "sorted");
                    latest = Some((moment, shooter));
                    let last = self.fired.insert(shooter, moment);
                    prop_assert!(last.is_none_or(|last| moment >= last + COOLDOWN));
                    prop_assert!(self.hp(shooter) > 0, "the dead do not shoot");
                    prop_assert!(!self.in_break, "guns are silent in a break");
                }
                CombatEvent::Hit { shooter, target, tick, at } => {
                    self.count("hit");
                    let before = index.checked_sub(1).and_then(|index| told.get(index));
                    let after_its_shot = matches!(before, Some((_, CombatEvent::Fired { shooter: by, tick: of, at: then, .. }))
                        if (*by, *of, *then) == (shooter, tick, at));
                    prop_assert!(after_its_shot && shooter != target);
                    let hp = self.hp(target);
                    prop_assert!(hp > 0, "the dead take no damage");
                    let (amount, tick) = (hp.min(50), range.newest());
                    expected = Some(CombatEvent::DamageApplied { target, amount, hp: hp - amount, tick });
                    prop_assert!(next.is_some());
                    self.hp.insert(target, hp - amount);
                    if hp == amount {
                        let by = shooter;
                        let death = CombatEvent::Death { fighter: target, by, tick };
                        prop_assert_eq!(told.get(index + 2).map(|(_, event)| *event), Some(death));
                    }
                }
                CombatEvent::DamageApplied { .. } => self.count("damage"),
                CombatEvent::Death { fighter, by, .. } => {
                    self.count("death");
                    prop_assert_eq!(self.hp(fighter), 0);
                    self.scores.entry(by).or_default().0 += 1;
                    self.scores.entry(fighter).or_default().1 += 1;
                }
                CombatEvent::Score { fighter, kills, deaths } => {
                    self.count("score");
                    let counted = self.scores.get(&fighter).copied().unwrap_or_default();
                    prop_assert_eq!(counted, (kills, deaths), "the score of {}", fighter);
                    if matches!(audience, Audience::Only(_)) {
                        continue;
                    }
                }
                CombatEvent::Respawn { fighter, tick } => {
                    self.count("respawn");
                    prop_assert_eq!((self.hp(fighter), tick), (0, range.newest()));
                    self.hp.insert(fighter, Tank::MAX_HP);
                }
                CombatEvent::Round { phase, .. } => {
                    self.count("round");
                    self.in_break = phase != Phase::Playing;
                    if phase == Phase::Playing {
                        self.scores.clear();
                        self.hp.clear();
                    }
                }
                CombatEvent::ShootRejected { tick, at, why } => {
                    let Audience::Only(player) = *audience else { panic!("told to all: {event:?}") };
                    self.outcome(player.into(), tick, at, why.name())?;
                    continue;
                }
            }
            prop_assert_eq!(*audience, Audience::All);
        }
        for number in 1..=PLAYERS {
            let player = PlayerId::new(number);
            prop_assert_eq!(range.tank(player).hp, self.hp(player.into()));
        }
        Ok(())
    }

    fn outcome(
        &mut self,
        fighter: Fighter,
        tick: Tick,
        at: u8,
        kind: &'static str,
    ) -> Result<(), TestCaseError> {
        let first = self.ordered.get_mut(&fighter).and_then(VecDeque::pop_front);
        prop_assert_eq!(first, Some((tick, at)), "an outcome of {} out of order", fighter);
        self.count(kind);
        Ok(())
    }

    fn count(&mut self, kind: &'static str) {
        *self.kinds.entry(kind).or_default() += 1;
    }

    fn hp(&self, fighter: Fighter) -> u8 {
        self.hp.get(&fighter).copied().unwrap_or(Tank::MAX_HP)
    }
}

fn moment(tick: Tick, at: u8) -> ServerTime {
    let seen = Seen { snapshot: tick, before_micros: 0 };
    ShootInput { tick, at, aim: 0, seen }.moment(Cadence::default())
}

/// Plays a script, checks every tick of it, and gives everything that was told.
fn play(acts: &[Act]) -> Result<(Told, Ledger), TestCaseError> {
    let (mut range, mut ledger, mut all) = (brawl(), Ledger::default(), Told::new());
    for act in acts {
        let player = PlayerId::new(act.player + 1);
        let (turn, throttle) = act.drive;
        let input = TankInput::from_unit(turn.into(), throttle.into()).unwrap();
        range.inputs.insert(player, input);
        let aim = act.at_whom.filter(|whom| *whom != act.player).map_or(act.aim, |whom| {
            let whom = range.tank(PlayerId::new(whom + 1));
            aim(&range.tank(player), [whom.x, whom.y])
        });
        let shot = range.shot(act.ahead, act.at, aim);
        // Mostly the newest that there was at the moment of the shot, or one before it; some claim a later one.
        let newest = if act.ago == 5 { range.newest() } else { shot.seen.snapshot };
        let seen =
            Seen { snapshot: Tick::new(newest.number() - act.ago % 5), before_micros: act.before_micros };
        let shot = ShootInput { seen, ..shot };
        range.order(player, &shot);
        ledger.ordered.entry(player.into()).or_default().push_back((shot.tick, shot.at));
        for _ in 0..act.pass {
            let told = range.tick();
            ledger.check(&told, &range)?;
            all.extend(told);
        }
    }
    // What waited for its tick has come to it by now.
    for _ in 0..30 {
        let told = range.tick();
        ledger.check(&told, &range)?;
        all.extend(told);
    }
    prop_assert!(ledger.ordered.values().all(VecDeque::is_empty), "no outcome: {:?}", ledger.ordered);
    Ok((all, ledger))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn combat_05_every_order_has_one_outcome_and_all_come_in_order(acts in prop::collection::vec(any_act(), 1..150)) {
        let (told, _) = play(&acts)?;
        let (again, _) = play(&acts)?;
        prop_assert_eq!(told, again, "the same orders, the same events");
    }
}

#[test]
fn the_scripts_make_everything_happen() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let acts = prop::collection::vec(any_act(), 3_000).new_tree(&mut runner).unwrap().current();
    let (_, ledger) = play(&acts).unwrap();
    let rejections = Rejection::ALL.map(Rejection::name);
    for kind in ["fired", "hit", "damage", "death", "respawn", "round"].into_iter().chain(rejections) {
        assert!(ledger.kinds.contains_key(kind), "{kind}: {:?}", ledger.kinds);
    }
}
