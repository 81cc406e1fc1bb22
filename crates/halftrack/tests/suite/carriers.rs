//! Bodies that are carried: a ferry that runs on a timetable, and carts on it.

use std::sync::Arc;
use std::time::Duration;

use crate::rig::{Rig, Way, ms};
use halftrack::client::{Client, ClientConfig};
use halftrack::server::{Room, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{
    Body, Cadence, Cause, Driver, Game, MotionLimits, PlayerId, PlayerName, Pose, Reach, ServerTime, Step,
    Timestamp,
};

/// A cart, or the ferry.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Thing { x: 0.0, ferry: false })]
struct Thing {
    #[grid(1/1024, -512..=511)]
    x: f64,
    ferry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Place {
    #[x]
    x: f64,
}

#[derive(Debug)]
struct Ferry;

const SPEED: f64 = 4.0;
const LENGTH: f64 = 6.0;

/// To and fro between 0 and 40 m.
fn timetable(time: ServerTime) -> f64 {
    let way = time.as_micros() as f64 * 1e-6 * SPEED;
    let part = way % 80.0;
    if part < 40.0 { part } else { 80.0 - part }
}

impl Game for Ferry {
    type Input = i8;
    type Body = Thing;
    type Pose = Place;

    fn advance(&self, thing: &mut Thing, input: i8, step: &mut Step<'_, Self>) {
        let (from, to) = (timetable(step.time()), timetable(step.time() + step.span()));
        if thing.ferry {
            thing.x = to;
            return;
        }
        if step.neighbours().iter().any(|other| self.carries(&other.body, step.own_at_start())) {
            thing.x += to - from;
        }
        thing.x += f64::from(input) * 0.5 * step.seconds();
    }

    fn pose(&self, thing: &Thing) -> Option<Place> {
        Some(Place { x: thing.x })
    }

    fn limits(&self, _: &Thing) -> MotionLimits {
        MotionLimits { top_speed: 9.0, top_turn: 0.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4 }
    }

    fn fingerprint(&self) -> u64 {
        7
    }

    fn reach(&self, thing: &Thing, span: Duration) -> Option<Reach> {
        Some(Reach::plane(thing.x, 0.0, LENGTH, 9.0 * span.as_secs_f64()))
    }

    fn predicts(&self, _: &Thing, other: &Thing) -> bool {
        other.ferry
    }

    fn carries(&self, other: &Thing, thing: &Thing) -> bool {
        other.ferry && !thing.ferry && (0.0..LENGTH).contains(&(thing.x - other.x))
    }
}

struct Harbour(Arc<Ferry>);

impl World for Harbour {
    type Game = Ferry;

    fn rules(&self) -> &Arc<Ferry> {
        &self.0
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Ferry>) {
        let now = timetable(room.cadence().end_of(room.tick()));
        if room.bodies().count() == 0 {
            room.spawn(Driver::Nothing, Thing { x: now, ferry: true }).unwrap();
        }
        let aboard = room.bodies().count() as f64;
        room.spawn(Driver::Player(player), Thing { x: now + aboard, ferry: false }).unwrap();
    }
}

fn config(name: &str) -> ClientConfig<Ferry> {
    ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Arc::new(Ferry))
}

/// Where the ferry and the cart of another player are drawn.
fn drawn(client: &Client<Ferry>) -> Option<(f64, f64)> {
    let ferry = client.group().find(|member| member.predicted().ferry)?;
    let other = client.remotes().iter().find(|remote| remote.driver.player().is_some())?;
    Some((ferry.visible()?.x, other.visible.x))
}

fn stand(_: usize, _: Timestamp, _: &mut Client<Ferry>) {}

#[test]
fn group_07_a_rider_is_drawn_on_its_carrier_and_corrected_by_nothing() {
    let mut rig = Rig::new(ServerConfig::default(), Harbour(Arc::new(Ferry)), 3);
    let ada = rig.join(config("Ada"), Way::delayed(ms(60)));
    let bob = rig.join(config("Bob"), Way::delayed(ms(60)));
    rig.run(Duration::from_secs(3), stand);
    let mut apart = vec![];
    for _ in 0..1_500 {
        rig.run(ms(8), stand);
        let now = rig.seats[ada].local(rig.now);
        rig.seats[ada].client.frame(now);
        let client = &rig.seats[ada].client;
        let (ferry, other) = drawn(client).expect("the ferry is in the group, and Bob is drawn");
        apart.push(other - ferry);
        let carrier = client.remotes().iter().find_map(|remote| remote.carrier);
        assert_eq!(carrier, client.group().next().map(|ferry| ferry.id()));
    }
    // Bob stands two metres from the ferry's end, but for the grid: each tick rounds his place by up to half a step. Without the
    // carrier he would be drawn where he was 200 ms ago: 0.8 m off.
    assert!(apart.windows(2).all(|pair| (pair[1] - pair[0]).abs() < 0.001), "{apart:?}");
    assert!(apart.iter().all(|apart| (apart - 2.0).abs() < 0.1), "{apart:?}");
    for seat in [ada, bob] {
        let client = &rig.seats[seat].client;
        let (own, group) = (client.corrections(), client.group_corrections());
        assert!(own.unchanged > 200 && group.unchanged > 200, "{own:?} {group:?}");
        for cause in Cause::ALL {
            assert_eq!((own.of(cause), group.of(cause)), (0, 0), "{cause}");
        }
    }
}

/// Bob steps off while Ada rides on: his picture slides, and makes no step.
#[test]
fn group_07_a_rider_that_steps_off_slides_to_its_own_place() {
    let mut rig = Rig::new(ServerConfig::default(), Harbour(Arc::new(Ferry)), 3);
    let ada = rig.join(config("Ada"), Way::delayed(ms(60)));
    rig.join(config("Bob"), Way::delayed(ms(60)));
    rig.run(Duration::from_secs(3), stand);
    let (mut before, mut largest, mut rode, mut left) = (None::<f64>, 0.0f64, false, false);
    for _ in 0..600 {
        rig.run(ms(8), |seat, now, client| client.set_input(now, if seat == 1 { 8 } else { 0 }));
        let now = rig.seats[ada].local(rig.now);
        rig.seats[ada].client.frame(now);
        let client = &rig.seats[ada].client;
        let Some((_, other)) = drawn(client) else { continue };
        let rides = client.remotes().iter().any(|remote| remote.carrier.is_some());
        rode |= rides;
        left |= rode && !rides;
        if let Some(before) = before {
            largest = largest.max((other - before).abs());
        }
        before = Some(other);
    }
    // He moves at up to 8 m/s, and slides 0.8 m within a quarter of a second: at first by 0.05 m in a frame.
    assert!(rode && left && largest < 8.0 * 0.008 + 0.06, "rode: {rode}, left: {left}, {largest} m");
}
