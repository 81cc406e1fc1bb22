//! A client frame, a reconcile, drawing the others, a tick of the world without shots, and a server's tick and its
//! snapshots take no memory once they run.

mod range;
mod rig;

use std::time::Duration;

use halftrack::server::{Events, Room, World};
use halftrack::snapshot::{Bodies, Crowd, View};
use halftrack::wire::{BitReader, BitWriter};
use halftrack::{
    Cadence, Causes, DelayConfig, PlayerId, RemoteConfig, RemoteStats, Remotes, SubTick, Tick, TickInput,
    Timestamp,
};
use range::{Range, forward};
use rig::{Rig, correction, input, ms};
use tanks::{Arena, Hull, Surroundings, Tank, TankInput, TankWorldConfig, Tanks};

#[test]
fn steady_state_frames_and_reconciles_allocate_nothing() {
    let hulls = (0..20).map(|n| Hull { x: f64::from(n) * 4.0 - 40.0, y: 29.0 }).collect();
    let surroundings = Surroundings { arena: Arena::proving_ground().into(), hulls };
    let mut rig = Rig::with(ms(120), Tank::new(0.0, 20.0, 0.1), surroundings);
    rig.set(0.25, 1.0);
    // Until the list of recent diagnoses is full, and the states of the next second have come to be.
    for _ in 0..100 {
        rig.play(ms(50));
        rig.serve();
        rig.deliver().expect("newer");
    }
    rig.play(ms(1_000));
    let mut states = vec![];
    for _ in 0..20 {
        rig.serve();
        states.push(rig.server.clone());
    }

    let (mut frames, mut accepted) = (0, 0);
    let allocations = allocation_counter::measure(|| {
        for (round, state) in (0i8..).zip(&states) {
            for _ in 0..5 {
                rig.now = rig.now + Duration::from_millis(10);
                rig.client.set_input(rig.now, input(f32::from(round % 5) / 5.0, 1.0));
                rig.client.frame(rig.now);
                frames += 1;
            }
            let target = rig.client.predictor().time();
            accepted += u32::from(rig.client.accept(rig.now, target, state).is_ok());
        }
    });
    assert_eq!((frames, accepted), (100, 20));
    assert_eq!(allocations.count_total, 0);

    let cloned = allocation_counter::measure(|| drop(rig.client.clone()));
    assert!(cloned.count_total > 0, "the counter does count");
}

/// A hundred tanks in a crowd of which the client is told every tick but some.
#[test]
fn steady_state_frames_of_other_players_allocate_nothing() {
    let (cadence, alone) = (Cadence::default(), Surroundings::empty(Arena::proving_ground().into()));
    let mut bodies = Bodies::<Tanks>::new(cadence, alone.clone(), Tick::new(100));
    for number in 0..100 {
        let (x, y) = (f64::from(number % 10), f64::from(number / 10));
        bodies.join(PlayerId::new(number), input(0.0, 0.0), Tank::new(x * 5.0 - 25.0, y * 5.0 - 25.0, 0.1));
    }
    let (mut view, mut crowd) = (View::default(), Crowd::new(cadence, alone.clone()));
    let config = RemoteConfig { delay: DelayConfig::default(), correction: correction() };
    let mut remotes = Remotes::<Tanks>::new(config, cadence, alone).expect("a good config");
    let mut allocations = 0;
    for round in 0u16..100 {
        bodies.advance(|player| {
            let turn = f32::from((player.number() + round) % 7) / 7.0;
            TickInput::steady(input(turn, 1.0))
        });
        let mut buffer = [0; 8_000];
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(&mut view, 8_000 * 8, &mut bits);
        let length = bits.finish().expect("it fits");
        let now = Timestamp::from_micros(u64::from(round) * 50_000);
        let lost = round % 10 > 7;
        if !lost {
            crowd.read(bodies.tick(), &mut BitReader::new(&buffer[..length])).expect("newer");
            view.acknowledge(bodies.tick());
        }
        let drawn = allocation_counter::measure(|| {
            if !lost {
                remotes.accepted(now, bodies.tick());
            }
            for frame in 0..5 {
                remotes.frame(now + ms(frame * 10), Some(PlayerId::new(0)), &crowd);
            }
        });
        // Until everybody has come, and lists are as long as they get.
        allocations += if round < 20 { 0 } else { drawn.count_total };
    }
    let RemoteStats { exact, extrapolated, .. } = *remotes.stats();
    assert!(remotes.iter().count() == 99 && exact > 1_000 && extrapolated > 1_000);
    assert_eq!(allocations, 0);
}

#[test]
fn ticks_of_the_world_without_shots_allocate_nothing() {
    let mut range = Range::new(TankWorldConfig { damage: 100, ..TankWorldConfig::default() });
    let players: Vec<_> = (0..30).map(|_| range.join()).collect();
    for (player, aim) in players.iter().zip((0..=u16::MAX).step_by(2_000)) {
        range.inputs.insert(*player, forward());
        range.shoot(*player, aim);
    }
    range.ticks(80);
    let mut events = Events::default();
    for _ in 0..100 {
        range.bodies.advance(|_| TickInput::steady(forward()));
        let mut room = Room::new(Cadence::default(), &mut range.bodies);
        let world = &mut range.world;
        let allocations = allocation_counter::measure(|| world.resolve(&mut room, &mut events));
        assert_eq!(allocations.count_total, 0);
    }
}

/// A tick of fifty tanks, most of them in each other's way, told to ten clients whose acknowledgements are from 2 to 6 ticks
/// old.
fn serve(bodies: &mut Bodies<Tanks>, views: &mut [View]) -> usize {
    let number = bodies.tick().next().number();
    bodies.advance(|player| {
        let wish = |round: u32| {
            let stick = |step: u32| (step % 33) as f32 / 16.0 - 1.0;
            let step = round * 7 + u32::from(player.number()) * 5;
            input(stick(step), stick(step / 3))
        };
        let phase = (number + u32::from(player.number())) % 10;
        let round = (number + u32::from(player.number())) / 10;
        let mut told = TickInput::steady(wish(round - u32::from(phase == 0)));
        if phase == 0 {
            told.change(SubTick::new(77).expect("inside the tick"), wish(round)).expect("the first");
        }
        told
    });
    // One is shot at, now and then twice within the time of an acknowledgement.
    let hurt = PlayerId::new((number / 40 % 50) as u16);
    if number % 20 < 3 {
        let tank = bodies.history(hurt).and_then(|history| history.get(bodies.tick())).expect("there").after;
        bodies.alter(hurt, Tank { hp: 100 - (number % 3) as u8, ..tank }, Causes::NONE);
    }
    let mut buffer = [0; 1_100];
    let mut written = 0;
    for (late, view) in (2..).zip(views) {
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(view, 1_100 * 8, &mut bits);
        written += bits.finish().expect("it fits");
        view.acknowledge(Tick::new(number.saturating_sub(late % 5)));
    }
    written
}

#[test]
fn steady_state_ticks_and_snapshots_allocate_nothing() {
    let alone = Surroundings::empty(Arena::proving_ground().into());
    let mut bodies = Bodies::<Tanks>::new(Cadence::default(), alone, Tick::new(100));
    for number in 0..50u16 {
        let (x, y) = (f64::from(number % 10) * 4.0 - 20.0, f64::from(number / 10) * 4.0 - 10.0);
        bodies.join(PlayerId::new(number), TankInput::NEUTRAL, Tank::new(x, y, 0.0));
    }
    let mut views = vec![View::default(); 10];
    for _ in 0..200 {
        serve(&mut bodies, &mut views);
    }
    let mut written = 0;
    let allocations = allocation_counter::measure(|| {
        written = (0..100).map(|_| serve(&mut bodies, &mut views)).sum();
    });
    assert!(written > 100 * 10 * 20, "something is told");
    assert_eq!(allocations.count_total, 0);
}
