//! The predicted group under watch: pushers and a crate that is predicted by whoever is near.

use std::sync::Arc;
use std::time::Duration;

use halftrack::client::ClientConfig;
use halftrack::server::{Events, Room, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{
    Body, Cadence, Causes, CheckPlan, Driver, Game, Input, MotionLimits, PlayerId, PlayerName, Pose2, Reach,
    Step, Timestamp, check_game,
};
use halftrack_flight::FlightClient;
use halftrack_lab::volley::{NETWORKS, Network};
use halftrack_lab::{Bot, Dice, Lab, LabConfig, Measured, Plan, Rule, SHIPPED, SeatConfig, run_once};
use halftrack_netem::LinkConfig;

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Wish {
    #[range(-6..=6)]
    x: i8,
    #[range(-6..=6)]
    y: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Thing { x: 0.0, y: 0.0, heavy: false })]
struct Thing {
    #[grid(1/1024, -200..=200)]
    x: f64,
    #[grid(1/1024, -200..=200)]
    y: f64,
    /// A crate: pushed, and never driven.
    heavy: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Push;

impl Push {
    const RADIUS: f64 = 1.0;
    const SPEED: f64 = 8.0;
    const EDGE: f64 = 60.0;
}

impl Game for Push {
    type Input = Wish;
    type Body = Thing;
    type Pose = Pose2;

    fn advance(&self, thing: &mut Thing, input: Wish, step: &mut Step<'_, Self>) {
        let seconds = step.seconds();
        if thing.heavy {
            let start = *step.own_at_start();
            for other in step.neighbours().iter().filter(|other| !other.body.heavy) {
                let (x, y) = (start.x - other.body.x, start.y - other.body.y);
                let away = (x * x + y * y).sqrt();
                if away < 2.0 * Self::RADIUS && away > 0.0 {
                    thing.x += x / away * Self::SPEED * seconds;
                    thing.y += y / away * Self::SPEED * seconds;
                    step.touch(other.id);
                }
            }
        } else {
            thing.x += f64::from(input.x) * seconds;
            thing.y += f64::from(input.y) * seconds;
        }
        thing.x = thing.x.clamp(-Self::EDGE, Self::EDGE);
        thing.y = thing.y.clamp(-Self::EDGE, Self::EDGE);
    }

    fn pose(&self, thing: &Thing) -> Option<Pose2> {
        Some(Pose2 { x: thing.x, y: thing.y, heading: 0.0 })
    }

    fn limits(&self, _: &Thing) -> MotionLimits {
        MotionLimits { top_speed: 17.0, top_turn: 1.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4 }
    }

    fn fingerprint(&self) -> u64 {
        1
    }

    fn reach(&self, thing: &Thing, span: Duration) -> Option<Reach> {
        let speed = if thing.heavy { 2.0 * Self::SPEED } else { 9.0 } + 0.2;
        Some(Reach::plane(thing.x, thing.y, Self::RADIUS, speed * span.as_secs_f64()))
    }

    fn predicts(&self, own: &Thing, other: &Thing) -> bool {
        !own.heavy && other.heavy
    }
}

#[derive(Debug, Default)]
struct Yard {
    rules: Arc<Push>,
    /// Moves the crate now and then, and says nothing.
    meddles: bool,
}

impl World for Yard {
    type Game = Push;

    fn rules(&self) -> &Arc<Push> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Push>) {
        if room.bodies().all(|(.., thing)| !thing.heavy) {
            room.spawn(Driver::Nothing, Thing { x: 0.0, y: 0.0, heavy: true }).unwrap();
        }
        let x = f64::from(player.number() % 2) * 12.0 - 6.0;
        room.spawn(Driver::Player(player), Thing { x, y: 0.3, heavy: false }).unwrap();
    }

    fn resolve(&mut self, room: &mut Room<'_, Push>, _: &mut Events) {
        if self.meddles && room.tick().number().is_multiple_of(30) {
            let found = room.bodies().find(|(.., thing)| thing.heavy).map(|(id, _, thing)| (id, *thing));
            let (id, thing) = found.unwrap();
            room.alter(id, Thing { x: thing.x * 0.9, ..thing }, Causes::NONE).unwrap();
        }
    }
}

/// Runs at the crate, through it and away, twice a second another way.
struct Pusher {
    dice: Dice,
    next: Timestamp,
    wish: Wish,
}

impl Bot<Push> for Pusher {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Push>) -> Option<Wish> {
        let own = *client.predicted()?;
        if now >= self.next {
            self.next = now + Duration::from_micros(250_000 + self.dice.below(500_000));
            let group = client.group().map(|member| *member.predicted());
            let remotes = client.remotes().iter().map(|remote| *remote.state);
            let target = group.chain(remotes).find(|thing| thing.heavy);
            let mut axis = || self.dice.below(13) as i8 - 6;
            let (x, y) = (axis(), axis());
            self.wish = match target.filter(|_| self.dice.below(4) > 0) {
                Some(target) => {
                    let toward = |to: f64, from: f64| ((to - from) * 4.0).clamp(-6.0, 6.0) as i8;
                    Wish { x: toward(target.x, own.x), y: toward(target.y, own.y) }
                }
                None => Wish { x, y },
            };
        }
        Some(self.wish)
    }
}

fn run(link: LinkConfig, players: usize, meddles: bool, seed: u64) -> Measured {
    let world = Yard { meddles, ..Yard::default() };
    let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), seed), world).unwrap();
    for index in 0..players {
        let name = PlayerName::new(&format!("Pusher {index}")).unwrap();
        let client = ClientConfig::new(name, Cadence::default(), Arc::new(Push));
        let dice = Dice::new(seed * 10 + index as u64, "pusher");
        let bot = Pusher { dice, next: Timestamp::ZERO, wish: Wish::default() };
        lab.join(SeatConfig::new(client, link), Box::new(bot)).unwrap();
    }
    lab.run(Duration::from_secs(40));
    lab.drain();
    lab.measured()
}

fn link(name: &str) -> LinkConfig {
    Network::shipped(name).unwrap().link
}

#[test]
fn the_rules_of_the_yard_hold() {
    let things = [(0.0, true), (1.5, false), (-1.5, false), (6.0, true)];
    let bodies = things.map(|(x, heavy)| Thing { x, y: 0.1, heavy }).to_vec();
    let inputs = [(0, 0), (6, 1), (-6, -1), (0, 6)].map(|(x, y)| Wish { x, y }).to_vec();
    check_game(|| Push, &CheckPlan::new(bodies, inputs)).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn a_lone_pusher_with_input_on_time_is_corrected_by_nothing() {
    for name in ["lan", "broadband"] {
        let measured = run(LinkConfig { loss: 0.0, ..link(name) }, 1, false, 2);
        assert_eq!(measured.input.held_ratio, 0.0, "{name}: {:?}", measured.input);
        assert_eq!(measured.group.corrections, 0, "{name}: {:?}", measured.group);
        assert_eq!(measured.group.correction_per_state_m.max, 0.0, "{name}");
        assert_eq!(measured.invariants.violated, 0, "{name}: {:?}", measured.invariants.list);
        assert!(measured.group.members.max >= 1.0, "{name}: {:?}", measured.group);
    }
}

/// Tanks: each player on a platform, and one alone with three crates, at the delay of each shipped network.
#[test]
fn riders_and_a_lone_pusher_with_input_on_time_are_corrected_by_nothing_on_every_network() {
    for name in NETWORKS {
        for shipped in ["riders", "pusher"] {
            let (_, text) = SHIPPED.iter().find(|(known, _)| *known == shipped).unwrap();
            let mut plan = Plan::read(text).unwrap();
            plan.span = Duration::from_secs(20);
            for seat in &mut plan.seats {
                seat.link = LinkConfig { delay: link(name).delay, ..LinkConfig::default() };
            }
            let measured = run_once(&plan, 3).unwrap();
            let context = format!("{shipped}, {name}: {:?} {:?}", measured.own, measured.group);
            assert_eq!(measured.input.held_ratio, 0.0, "{context}");
            assert_eq!((measured.own.corrections, measured.group.corrections), (0, 0), "{context}");
            assert_eq!(measured.group.correction_per_state_m.max, 0.0, "{context}");
            assert_eq!(measured.invariants.violated, 0, "{context}: {:?}", measured.invariants.list);
            assert!(measured.group.members.max >= 1.0, "{context}");
        }
    }
}

#[test]
fn two_pushers_are_corrected_for_true_reasons_and_the_crate_never_jumps() {
    let mut moved = 0;
    for name in NETWORKS {
        for seed in 1..=3 {
            let measured = run(link(name), 2, false, seed);
            let group = &measured.group;
            assert_eq!(group.by_cause.unexplained, 0, "{name}, seed {seed}: {group:?}");
            assert_eq!(group.steps, 0, "{name}, seed {seed}: {group:?} {:?}", measured.invariants.list);
            assert_eq!(
                measured.invariants.violated, 0,
                "{name}, seed {seed}: {:#?}",
                measured.invariants.list
            );
            moved += group.corrections;
            // A crate that lingers in the group is still pushed by the other player, who is far from this one.
            let next_door = name != "lan" || group.correction_m.p95 < 0.1;
            assert!(next_door, "{name}, seed {seed}: {group:?}");
        }
    }
    assert!(moved > 300, "{moved} corrections");
}

#[test]
fn a_world_that_moves_the_crate_is_named() {
    let measured = run(link("broadband"), 2, true, 1);
    let group = &measured.group;
    assert!(group.by_cause.world > 10, "{group:?}");
    assert_eq!(group.by_cause.unexplained, 0, "{group:?}");
    let false_causes = measured.invariants.list.iter().filter(|found| found.rule == Rule::TrueCause);
    assert_eq!(false_causes.count(), 0, "{:?}", measured.invariants.list);
}
