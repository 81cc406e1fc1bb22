//! Rockets: a press launches exactly one, with the same id on both ends; it hits, takes hit points and kills once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::range::{Range, open_ground};
use crate::room_rig::{Dice, Rig, Way, ms};
use halftrack::client::{Certainty, ClientConfig, Life};
use halftrack::model::Presses;
use halftrack::server::ServerConfig;
use halftrack::{BodyId, Cadence, Cause, Causes, PlayerName};
use tanks::{
    About, CombatEvent, Crate, Entity, Fighter, Rocket, TankInput, TankWorld, TankWorldConfig, Tanks,
    open_recording,
};

fn rockets(range: &Range) -> Vec<(BodyId, Rocket)> {
    let bodies = range.bodies.records();
    bodies.filter_map(|(id, _, record)| Some((id, *record.after.rocket()?))).collect()
}

fn press(range: &mut Range, player: halftrack::PlayerId) {
    let input = range.inputs.get_mut(&player).unwrap();
    *input = input.pressing(Presses::next(input.rocket));
}

#[test]
fn a_press_launches_one_rocket_and_a_press_while_reloading_none_ever() {
    let mut range = Range::new(open_ground());
    let player = range.join_at(0.0, 0.0, 0.25);
    press(&mut range, player);
    range.quiet(1);
    let born = rockets(&range);
    assert_eq!(born.len(), 1);
    // Born at the tick's start outside the hull, and on its way since.
    assert_eq!((born[0].1.x, born[0].1.heading), (0.0, 0.25));
    assert!((born[0].1.y - (1.8 + 1.1)).abs() < 0.001, "{born:?}");
    assert_eq!(born[0].1.left, Rocket::LIFE_MICROS - 50_000);
    press(&mut range, player);
    range.quiet(29);
    assert_eq!(rockets(&range).len(), 1, "the press came too early");
    range.quiet(8);
    assert_eq!(rockets(&range), [], "its time is over, and the early press was not kept");
    press(&mut range, player);
    range.quiet(1);
    assert_eq!(rockets(&range).len(), 1);
    assert_ne!(rockets(&range)[0].0, born[0].0);
}

#[test]
fn a_rocket_hits_once_and_three_of_them_kill() {
    let mut range = Range::new(open_ground());
    let (ada, bob) = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, 0.0, 0.0));
    for (nth, hp) in [(1, 60), (2, 20), (3, 0)] {
        press(&mut range, ada);
        let mut told = range.ticks(19);
        assert_eq!(rockets(&range), [], "it ended at the hull");
        let tick = match told.remove(0) {
            (_, CombatEvent::DamageApplied { target, amount, hp: left, tick }) => {
                assert_eq!((target, amount, left), (bob.into(), if hp == 0 { 20 } else { 40 }, hp));
                tick
            }
            other => panic!("{other:?}"),
        };
        let died = told.iter().map(|(_, event)| *event).collect::<Vec<_>>();
        let death = CombatEvent::Death { fighter: bob.into(), by: ada.into(), tick };
        assert_eq!(died, if nth == 3 { vec![death] } else { vec![] });
        range.quiet(12);
    }
    assert_eq!(range.tank(bob).hp, 0);
    assert!(range.tank(ada).is_alive(), "never its own tank");
    let told = range.ticks(60);
    assert!(matches!(told[0].1, CombatEvent::Respawn { .. }), "{told:?}");
    assert_eq!(rockets(&range), [], "who comes back launches nothing by old presses");
}

#[test]
fn a_crate_stops_a_rocket_and_a_wreck_launches_none() {
    let mut range = Range::new(open_ground());
    let (ada, bob) = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, 0.0, 0.0));
    let id = range.bodies.spawn(halftrack::Driver::Nothing, Entity::Crate(Crate::new(10.0, 0.5))).unwrap();
    press(&mut range, ada);
    range.quiet(20);
    assert_eq!((range.tank(bob).hp, rockets(&range)), (100, vec![]));
    let stays = *range.bodies.history(id).unwrap().latest();
    assert_eq!(stays, Entity::Crate(Crate::new(10.0, 0.5)), "it is not moved by that");
    let mut wreck = range.tank(ada);
    (wreck.hp, wreck.reload) = (0, 0);
    range.bodies.alter(range.id(ada), wreck.into(), Causes::NONE).unwrap();
    press(&mut range, ada);
    range.quiet(1);
    assert_eq!(rockets(&range), []);
    assert_eq!(range.tank(ada).presses, range.inputs[&ada].rocket, "the press is answered all the same");
}

#[test]
fn the_rocket_of_a_player_that_left_hits_and_is_credited_to_nobody() {
    let mut range = Range::new(open_ground());
    let (ada, bob) = (range.join_at(0.0, 0.0, 0.0), range.join_at(20.0, 0.0, 0.0));
    let mut weak = range.tank(bob);
    weak.hp = 30;
    range.bodies.alter(range.id(bob), weak.into(), Causes::NONE).unwrap();
    press(&mut range, ada);
    range.quiet(1);
    let left = range.leave(ada);
    assert!(matches!(left[0].1, CombatEvent::Death { .. }), "it left in combat: {left:?}");
    let told = range.ticks(19);
    let death = told.iter().find_map(|(_, event)| match event {
        CombatEvent::Death { fighter, by, .. } => Some((*fighter, *by)),
        _ => None,
    });
    assert_eq!(death, Some((Fighter::from(bob), Fighter::from(bob))), "{told:?}");
}

#[test]
fn a_rocket_at_a_thin_wall_does_not_pass_it() {
    let wall = tanks::Obstacle::Block { min: [1.6, -10.0], max: [1.7, 10.0] };
    let arena = tanks::Arena::new([100.0, 100.0], vec![wall]).unwrap().into();
    let mut range = Range::new(TankWorldConfig { arena, ..open_ground() });
    let (ada, bob) = (range.join_at(0.0, 0.0, 0.0), range.join_at(6.0, 0.0, 0.0));
    press(&mut range, ada);
    range.quiet(30);
    assert_eq!(range.tank(bob).hp, 100);
}

/// What was told of emitted bodies on a client: each certainty once.
#[derive(Default)]
struct Heard {
    born: BTreeMap<BodyId, Vec<Certainty>>,
    ended: BTreeMap<BodyId, Vec<Certainty>>,
}

const BAD: Way =
    Way { delay: Duration::from_millis(40), jitter: Duration::from_millis(12), loss: 0.02, duplicate: 0.01 };

/// Players on a bad network launch rockets at each other, on screens that see each with the id of the server, once; and the
/// match plays back.
#[test]
fn rockets_have_one_id_on_both_ends_and_the_match_plays_back() {
    let config = TankWorldConfig {
        seed: 3,
        crates: 6,
        platforms: 2,
        machines: 2,
        machine_rockets: true,
        ..TankWorldConfig::default()
    };
    let mut rig = Rig::new(ServerConfig::default(), TankWorld::new(config.clone()).unwrap(), 5);
    assert!(rig.server.record([7; 16], About::new("test", 1_700_000_000, &config).encode()));
    for name in ["Ada", "Bob", "Cid"] {
        let rules = Tanks::new(config.arena.clone()).into();
        rig.join(ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), rules), BAD);
    }
    let mut heard: [Heard; 3] = Default::default();
    let mut pilots: Vec<_> = (0..3).map(|seat| (Dice(90 + seat), TankInput::NEUTRAL, 0u64)).collect();
    // On the server, by id: seen at the end of a tick.
    let mut flown = BTreeMap::<BodyId, u32>::new();
    for _ in 0..4_000 {
        rig.run(ms(15), |seat, now, client| {
            let (dice, wish, next) = &mut pilots[seat];
            if now.as_micros() >= *next {
                *next = now.as_micros() + 150_000 + dice.below(500_000);
                let presses = if dice.below(2) == 0 { Presses::next(wish.rocket) } else { wish.rocket };
                let mut axis = || (dice.unit() * 2.2 - 1.0) as f32;
                *wish = TankInput::from_unit(axis(), axis()).unwrap().pressing(presses);
            }
            client.set_input(now, *wish);
            while let Some(event) = client.poll_life() {
                let list = match event.life {
                    Life::Born => &mut heard[seat].born,
                    Life::Ended => &mut heard[seat].ended,
                };
                let told = list.entry(event.id).or_default();
                told.extend((!told.contains(&event.certainty)).then_some(event.certainty));
            }
        });
        for (id, _, body) in rig.server.bodies() {
            if body.rocket().is_some() {
                *flown.entry(id).or_default() += 1;
            }
        }
    }
    for seat in &rig.seats {
        let stats = seat.client.reconciler().unwrap().corrections();
        assert_eq!(stats.causes.of(Cause::Unexplained), 0, "{stats:?}");
        let group = seat.client.group_corrections();
        assert_eq!(group.causes.of(Cause::Unexplained), 0, "{group:?}");
    }
    assert!(flown.len() > 40, "{} rockets", flown.len());
    for (seat, heard) in heard.iter().enumerate() {
        let predicted = heard.born.values().filter(|told| told[0] == Certainty::Predicted).count();
        assert!(predicted > 10, "seat {seat}: {predicted} of {} predicted", heard.born.len());
        for (id, told) in heard.born.iter().chain(&heard.ended) {
            let both = [Certainty::Confirmed, Certainty::Revoked].iter().all(|each| told.contains(each));
            assert!(!both, "seat {seat}, {id}: {told:?}");
        }
        for (id, told) in &heard.born {
            let made = flown.contains_key(id);
            assert!(
                made || told.last() != Some(&Certainty::Confirmed) || heard.ended.contains_key(id),
                "{id}"
            );
        }
        let missed = flown.keys().filter(|id| !heard.born.contains_key(id)).count();
        assert!(missed <= 2, "seat {seat}: {missed} of {} never seen", flown.len());
    }
    rig.server.poll_record(&mut rig.record);
    let (about, mut playback) = open_recording(rig.record.clone()).unwrap();
    assert_eq!(about.config().unwrap().crates, 6);
    while playback.next().is_some() {}
    assert_eq!((playback.differs(), playback.recording().damage()), (None, None));
}

#[test]
fn machines_launch_rockets_if_they_may() {
    for machine_rockets in [false, true] {
        let config = TankWorldConfig { machines: 5, machine_rockets, ..TankWorldConfig::default() };
        let mut range = Range::new(config);
        range.join();
        let mut launched = 0;
        for _ in 0..1_200 {
            range.tick();
            launched += rockets(&range).iter().filter(|(_, rocket)| rocket.left >= 1_750_000).count();
        }
        assert!(if machine_rockets { launched > 5 } else { launched == 0 }, "{launched} launched");
    }
}
