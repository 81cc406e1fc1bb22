//! EMIT: emitted bodies end to end, over bad networks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::range::{Act, Gallery, Marksman, Range, act, config, gun_of};
use crate::rig::{Dice, Rig, Way, ms};
use halftrack::client::{Certainty, ClientConfig, Life};
use halftrack::record::{Playback, Recording};
use halftrack::server::{Recovery, Room, Server, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{
    Body, BodyId, Cadence, Cause, CheckPlan, Diagnosis, Driver, Game, MotionLimits, PlayerId, PlayerName,
    Pose2, Reach, Role, Step, check_game,
};

const TRANSATLANTIC: Way = Way { delay: millis(45), jitter: millis(8), loss: 0.01, duplicate: 0.01 };
const MOBILE: Way = Way { delay: millis(60), jitter: millis(60), loss: 0.08, duplicate: 0.02 };

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Players with a gun each, who look at every frame.
struct Battle {
    rig: Rig<Range>,
    players: Vec<Marksman>,
    dice: Dice,
}

impl Battle {
    fn new(rules: &Gallery, apart: f64, ways: &[Way], seed: u64) -> Self {
        let mut rig = Rig::new(ServerConfig::default(), Range::of(rules.clone(), apart), seed);
        assert!(rig.server.record([7; 16], vec![]));
        for (way, name) in ways.iter().zip(["Ada", "Bob", "Eve", "Joe"]) {
            rig.join(config(name, rules), *way);
            rig.run(ms(700), |_, _, _| {});
        }
        Self { players: vec![Marksman::default(); rig.seats.len()], rig, dice: Dice(seed ^ 0xe317) }
    }

    /// Each player taps about once in so many frames.
    fn play(&mut self, span: Duration, one_in: u64) {
        let Self { rig, players, dice, .. } = self;
        rig.run(span, |seat, now, client| {
            let player = &mut players[seat];
            player.look(now, client);
            if one_in > 0 && dice.below(one_in) == 0 {
                player.drive = i8::try_from(dice.below(17)).unwrap() - 8;
                player.tap(now, client);
            }
        });
    }

    fn calm(&mut self) {
        for seat in &mut self.rig.seats {
            (seat.up, seat.down) = (Way::delayed(ms(30)), Way::delayed(ms(30)));
        }
        self.play(Duration::from_secs(4), 0);
    }

    fn gun(&self, seat: usize) -> BodyId {
        gun_of(&self.rig, seat)
    }

    fn check(&self, context: &str) {
        for (seat, player) in self.players.iter().enumerate() {
            let context = format!("{context}, seat {seat}");
            player.assert_told_once(&context);
            let client = &self.rig.seats[seat].client;
            let (own, group) = (client.corrections(), client.group_corrections());
            let unexplained = (own.of(Cause::Unexplained), group.of(Cause::Unexplained));
            let odd = |diagnosis: &&Diagnosis<Gallery>| diagnosis.cause == Some(Cause::Unexplained);
            let odd: Vec<_> = client
                .reconciler()
                .into_iter()
                .flat_map(|known| known.recent_of_group().filter(odd))
                .collect();
            assert_eq!(unexplained, (0, 0), "{context}: {odd:#?}");
            assert_eq!(client.stats().check_failed, 0, "{context}");
            let there: BTreeSet<_> = client.crowd().bodies().map(|(id, _)| id).collect();
            assert_eq!(
                player.screen.keys().copied().collect::<BTreeSet<_>>(),
                there,
                "{context}: all are drawn"
            );
        }
    }
}

#[test]
fn emit_01_a_shot_is_on_screen_at_once_and_is_the_servers_body() {
    for (way, late) in [(Way::IDEAL, false), (TRANSATLANTIC, false), (MOBILE, true)] {
        let mut battle = Battle::new(&Gallery::default(), 400.0, &[way, Way::delayed(ms(20))], 5);
        battle.play(Duration::from_secs(12), 16);
        battle.calm();
        battle.check(&format!("{way:?}"));
        for seat in [0, 1] {
            let (gun, player) = (battle.gun(seat), &battle.players[seat]);
            let born = battle.rig.server.world().born_by(gun);
            assert!(born.len() > 20, "{}", born.len());
            assert_eq!(born, player.born_by(gun), "{way:?}: the same ids");
            for id in born {
                let told = &player.told[&id];
                // On a short way the state may be here before the next frame.
                let at_once = told[0] == (Life::Born, Certainty::Predicted, None);
                assert!(at_once || way.delay.is_zero(), "{way:?}: {told:?}");
            }
        }
        let other = &battle.players[1];
        let revoked = other.told.keys().filter(|id| other.is_revoked(**id)).count();
        assert_eq!(revoked, 0, "input that comes in time is played as it was sent");
        let stats = battle.rig.seats[0].client.stats();
        assert!(!late || stats.late + stats.lost > 0, "{stats:?}");
    }
}

/// The end of a predicted shell is drawn once, though others are drawn later.
#[test]
fn emit_04_a_body_that_ended_in_the_group_is_not_drawn_again() {
    for seed in 0..6 {
        let mut battle = Battle::new(&Gallery::default(), 400.0, &[MOBILE, TRANSATLANTIC], seed);
        let mut gone = BTreeSet::new();
        for _ in 0..40 {
            battle.play(ms(150), 12);
            let player = &battle.players[0];
            let over = |id: &BodyId| {
                let last = player.told.get(id).and_then(|told| told.last());
                last.is_some_and(|last| (last.0, last.1) == (Life::Ended, Certainty::Confirmed))
            };
            gone.extend(player.told.keys().filter(|id| over(id)).copied());
            let again: Vec<_> = gone.iter().filter(|id| player.screen.contains_key(id)).collect();
            assert_eq!(again, Vec::<&BodyId>::new(), "seed {seed}");
        }
        assert!(gone.len() > 30, "{}", gone.len());
    }
}

#[test]
fn emit_02_a_shot_that_was_played_late_is_one_body_with_a_named_correction() {
    let mut late = 0;
    for seed in 0..8 {
        let mut battle = Battle::new(&Gallery::default(), 400.0, &[Way::delayed(ms(40))], seed);
        for _ in 0..10 {
            battle.play(ms(800), 14);
            battle.rig.seats[0].up.delay = ms(140);
            battle.play(ms(150), 4);
            battle.rig.seats[0].up.delay = ms(40);
        }
        battle.calm();
        battle.check(&format!("seed {seed}"));
        let (gun, player) = (battle.gun(0), &battle.players[0]);
        assert_eq!(battle.rig.server.world().born_by(gun), player.born_by(gun));
        assert_eq!(player.born_by(gun).len(), player.presses as usize);
        let client = &battle.rig.seats[0].client;
        let causes = client.group_corrections();
        late += causes.of(Cause::LateInput) + causes.of(Cause::LostInput);
    }
    assert!(late > 50, "shells are corrected because their shots came late: {late}");
}

#[test]
fn emit_06_others_see_a_newborn_body_from_its_birth_on() {
    for (way, seed) in [(Way::IDEAL, 1), (TRANSATLANTIC, 2), (TRANSATLANTIC, 3)] {
        let rules = Gallery { life: 600_000, ..Gallery::default() };
        let mut battle = Battle::new(&rules, 60.0, &[Way::delayed(ms(20)), way], seed);
        battle.play(Duration::from_secs(10), 20);
        battle.calm();
        battle.check(&format!("{way:?}"));
        let (gun, viewer) = (battle.gun(0), &battle.players[1]);
        let born = battle.rig.server.world().born_by(gun);
        assert_eq!(viewer.born_by(gun), born, "{way:?}");
        assert!(born.len() > 15);
        let mut first = 0;
        for id in &born {
            let Some(seen) = viewer.seen.get(id) else {
                panic!("{id} was never drawn: {:?}", viewer.told[id])
            };
            let birth = viewer.births[id];
            assert_eq!(viewer.told[id].iter().filter(|told| told.0 == Life::Born).count(), 1);
            let shooter = battle.players[0].births[id];
            assert_eq!((birth.at, birth.body), (shooter.at, shooter.body), "{way:?}: the same birth");
            // In the first frame after it: two frames at the speed of a shell.
            first += usize::from(seen - birth.body.x() <= Gallery::SHELL / 30.0);
        }
        assert!(first * 10 >= born.len() * 9, "{way:?}: {first} of {}", born.len());
    }
}

#[test]
fn emit_07_a_shot_that_the_server_did_not_make_is_revoked_with_its_cause() {
    for (deed, cause) in [(Act::Kill(0), Cause::Death), (Act::Move(0, 90), Cause::Teleport)] {
        let mut revoked = 0;
        for seed in 0..10 {
            let mut battle = Battle::new(&Gallery::default(), 400.0, &[Way::delayed(ms(60)), MOBILE], seed);
            for round in 0..6 {
                battle.play(ms(913 + 7 * round), 10);
                act(&mut battle.rig, deed);
                // Shots that the client predicts meanwhile.
                battle.play(ms(400), 3);
                act(&mut battle.rig, Act::Revive(0));
                battle.play(ms(700), 0);
            }
            battle.calm();
            battle.check(&format!("{deed:?}, seed {seed}"));
            let (gun, player) = (battle.gun(0), &battle.players[0]);
            assert_eq!(battle.rig.server.world().born_by(gun), player.born_by(gun), "{deed:?}, seed {seed}");
            let causes: Vec<_> = player
                .told
                .iter()
                .filter_map(|(id, told)| {
                    let direct = player.parents[id] == Some(gun);
                    told.iter().find(|(life, certainty, _)| {
                        direct && (*life, *certainty) == (Life::Born, Certainty::Revoked)
                    })
                })
                .map(|(.., cause)| cause.unwrap())
                .collect();
            assert!(causes.iter().all(|each| *each == cause), "{deed:?}, seed {seed}: {causes:?}");
            revoked += causes.len();
        }
        // A gun that was moved fires all the same, from elsewhere.
        assert_eq!(revoked > 20, cause == Cause::Death, "{deed:?}: {revoked}");
    }
}

#[test]
fn emit_05_the_world_has_births_and_ends_with_moments_and_touched_bodies() {
    let mut battle = Battle::new(&Gallery::default(), 6.0, &[TRANSATLANTIC, TRANSATLANTIC, MOBILE], 9);
    battle.play(Duration::from_secs(15), 14);
    battle.calm();
    battle.check("guns in a row");
    let world = battle.rig.server.world();
    let guns: Vec<_> = (0..3).map(|seat| battle.gun(seat)).collect();
    let hits =
        world.ended.values().filter(|(.., touched)| touched.iter().any(|id| guns.contains(id))).count();
    assert!(hits > 20 && world.ended.len() > hits + 20, "{hits} of {}", world.ended.len());
    assert_eq!(world.born.len(), world.ended.len(), "nothing flies any more");
    for (id, (tick, at, touched)) in &world.ended {
        let over = battle.rig.server.cadence().start_of(*tick) + *at;
        for (seat, player) in battle.players.iter().enumerate() {
            let Some(end) = player.ends.get(id) else {
                panic!(
                    "seat {seat} was not told of {id}: {:?} {over:?} {:?}",
                    player.told.get(id),
                    world.born[id]
                )
            };
            assert_eq!(end.at, over, "seat {seat}: {id}");
            assert!(end.touched.is_empty() || end.touched.ids() == touched, "seat {seat}: {id}");
        }
    }
}

#[test]
fn emit_08_parents_that_are_removed_and_bodies_of_one_tick() {
    for seed in 0..10 {
        // Some live for less than a tick.
        let rules =
            Gallery { life: [20_000, 49_000, 90_000, 400_000][seed as usize % 4], ..Gallery::default() };
        let mut battle = Battle::new(&rules, 8.0, &[TRANSATLANTIC, MOBILE, Way::delayed(ms(30))], seed);
        for round in 0..8 {
            battle.play(ms(700), 5);
            let player = round % 3;
            act(&mut battle.rig, Act::Disarm(player));
            battle.play(ms(300 + 90 * seed), 5);
            act(&mut battle.rig, Act::Arm(player, i16::from(player) * 8));
        }
        battle.calm();
        battle.check(&format!("seed {seed}"));
        assert!(battle.rig.server.world().born.len() > 100);
        assert_eq!(battle.rig.server.bodies().count(), 3);
    }
}

#[test]
fn emit_09_recordings_with_emissions_verify_and_a_recovery_goes_on_with_their_ids() {
    for seed in 0..4 {
        let mut battle = Battle::new(&Gallery::default(), 6.0, &[TRANSATLANTIC, MOBILE], seed);
        for x in [2, 4] {
            act(&mut battle.rig, Act::Crate(x));
        }
        battle.play(Duration::from_secs(6), 6);
        let recorded = battle.rig.record.clone();
        let fresh = || Range::of(Gallery::default(), 6.0);
        let mut playback =
            Playback::new(Recording::<Gallery>::open(recorded.clone()).unwrap(), fresh()).unwrap();
        while playback.next().is_some() {}
        assert_eq!(playback.differs(), None);
        let born = battle.rig.server.world().born.clone();
        assert_eq!(playback.stage().world().born, born);
        assert!(playback.stage().bodies().eq(battle.rig.server.bodies()));
        assert!(born.len() > 40);
        // The process dies, and another goes on. Clients come back by themselves.
        let recovery = Recovery { run: [9; 16], rewound: false };
        let recording = Recording::<Gallery>::open(recorded).unwrap();
        let (server, _) =
            Server::recover(ServerConfig::default(), fresh(), battle.rig.now, recording, recovery).unwrap();
        assert!(server.bodies().eq(battle.rig.server.bodies()));
        battle.rig.replace(server);
        // Seldom enough that no tick has more shots than a body emits in one.
        battle.play(Duration::from_secs(8), 25);
        battle.calm();
        battle.check(&format!("seed {seed}"));
        for seat in 0..2 {
            let (gun, player) = (battle.gun(seat), &battle.players[seat]);
            let born = battle.rig.server.world().born_by(gun);
            assert_eq!((born.len(), &born), (player.presses as usize, &player.born_by(gun)), "seed {seed}");
        }
    }
}

/// Every body emits as many copies of itself as it can, in every step, for ever.
#[derive(Debug, Default)]
struct Flood;

impl Game for Flood {
    type Input = i8;
    type Body = Spore;
    type Pose = Pose2;

    fn advance(&self, spore: &mut Spore, input: i8, step: &mut Step<'_, Self>) {
        for nth in 0..12 {
            step.emit(Spore { x: spore.x + f64::from(nth) }, Duration::ZERO);
        }
        spore.x += f64::from(input) * step.seconds();
    }

    fn pose(&self, spore: &Spore) -> Option<Pose2> {
        Some(Pose2 { x: spore.x, y: 0.0, heading: 0.0 })
    }

    fn limits(&self, _: &Spore) -> MotionLimits {
        MotionLimits { top_speed: 200.0, top_turn: 1.0, grid_distance: 1.0 / 64.0, grid_angle: 1e-3 }
    }

    fn reach(&self, spore: &Spore, _: Duration) -> Option<Reach> {
        Some(Reach::plane(spore.x, 0.0, 0.1, 0.1))
    }

    fn predicts(&self, _: &Spore, _: &Spore) -> bool {
        true
    }

    fn fingerprint(&self) -> u64 {
        3
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Spore { x: 0.0 })]
struct Spore {
    #[grid(1/64, -4_000..=4_000)]
    x: f64,
}

#[derive(Debug, Default)]
struct Swamp(Arc<Flood>);

impl World for Swamp {
    type Game = Flood;

    fn rules(&self) -> &Arc<Flood> {
        &self.0
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Flood>) {
        room.spawn(Driver::Player(player), Spore { x: 0.0 }).unwrap();
    }
}

#[test]
fn emit_01_rules_that_emit_without_end_fill_neither_the_room_nor_a_client() {
    let server = ServerConfig { max_bodies: 40, ..ServerConfig::default() };
    let mut rig = Rig::new(server, Swamp::default(), 3);
    let name = PlayerName::new("Ada").unwrap();
    let seat = rig.join(ClientConfig::new(name, Cadence::default(), Arc::new(Flood)), Way::delayed(ms(60)));
    let mut frames = 0;
    rig.run(Duration::from_secs(2), |_, now, client| {
        client.frame(now);
        let mut events = 0;
        while client.poll_life().is_some() {
            events += 1;
        }
        // The player's own, 16 of its group and those that leave it, and those that are born before prediction time.
        let members = client.reconciler().map_or(0, |known| known.members().len());
        assert!(members <= 1 + 16 + 32 + 256 && events <= 4_096, "{members} members, {events} events");
        assert!(client.group().filter(|member| member.role() == Role::Group).count() <= 16 + 256);
        frames += usize::from(members > 0);
    });
    assert!(frames > 60);
    assert_eq!(rig.server.bodies().count(), 40);
    assert_eq!(rig.seats[seat].client.stats().check_failed, 0);
    let mistake = check_game(|| Flood, &CheckPlan::new(vec![Spore { x: 0.0 }], vec![0])).unwrap_err();
    assert!(mistake.to_string().starts_with("tick 1, body 0: "), "{mistake}");
}
