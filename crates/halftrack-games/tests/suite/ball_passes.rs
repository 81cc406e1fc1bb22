//! A fast ball that comes and goes: it is drawn once in each frame, without a step, and never beyond a wall.

use std::sync::Arc;
use std::time::Duration;

use halftrack::client::Client;
use halftrack::server::{Events, Room, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{Body, Driver, PlayerId, Timestamp};
use halftrack_games::ball::{Ball, Football, PITCH, Pad, Player, Thing};
use halftrack_games::plane::Motion;
use halftrack_lab::{Dice, Lab, LabConfig};

use crate::footballer::{balls, unexplained};
use crate::rig::{Seated, link, seat, shared};

const SPEED: f64 = 15.0;

/// A ball that rolls to and fro along the pitch forever, and players that run along the southern wall.
struct Lane {
    rules: Arc<Football>,
    y: f64,
    way: f64,
    /// Whether players are without a body for two seconds of each ten.
    dies: bool,
    players: Vec<PlayerId>,
}

impl Lane {
    fn spawn(player: PlayerId, room: &mut Room<'_, Football>) {
        let x = f64::from(player.number() % 4) * 12.0 - 18.0;
        let motion = Motion { position: [x, -11.5], velocity: [0.0; 2] };
        room.spawn(Driver::Player(player), Thing::Player(Player { motion, ..Player::blank() })).unwrap();
    }
}

impl World for Lane {
    type Game = Football;

    fn rules(&self) -> &Arc<Football> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Football>) {
        if room.bodies().next().is_none() {
            let motion = Motion { position: [0.0, self.y], velocity: [self.way * SPEED, 0.0] };
            room.spawn(Driver::Nothing, Thing::Ball(Ball { motion, ..Ball::blank() })).unwrap();
        }
        self.players.push(player);
        Self::spawn(player, room);
    }

    fn resolve(&mut self, room: &mut Room<'_, Football>, _: &mut Events) {
        for player in self.players.iter().filter(|_| self.dies) {
            // One after the other.
            match (room.tick().number() + 37 * u32::from(player.number())) % 200 {
                160 => {
                    let body = room.owned(*player).first().copied();
                    body.map(|body| room.remove(body).unwrap());
                }
                199 if room.owned(*player).is_empty() => Self::spawn(*player, room),
                _ => {}
            }
        }
    }
}

#[derive(Default)]
struct Seen {
    frames: u64,
    /// Frames without a body of the player's own.
    without: u64,
    /// Times that the ball joined a group, or left it.
    turns: u64,
    /// The largest step, as a part of what speed and time explain.
    largest: f64,
    farthest: [f64; 2],
    faults: Vec<String>,
}

impl Seen {
    fn frame(
        &mut self,
        last: &mut Option<(Timestamp, [f64; 2], bool)>,
        now: Timestamp,
        client: &Client<Football>,
    ) {
        let drawn = balls(client);
        let (at, in_group) = match drawn[..] {
            [] if last.is_none() => return,
            [one] => one,
            _ => return self.faults.push(format!("{now:?}: drawn {} times: {drawn:?}", drawn.len())),
        };
        self.frames += 1;
        self.without += u64::from(client.predicted().is_none());
        for (farthest, place) in self.farthest.iter_mut().zip(at) {
            *farthest = farthest.max(place.abs());
        }
        if let Some((before, [x, y], was_in_group)) = last.replace((now, at, in_group)) {
            self.turns += u64::from(in_group != was_in_group);
            let seconds = now.saturating_since(before).as_secs_f64();
            let step = (at[0] - x).hypot(at[1] - y) - 1.0 / 1_024.0;
            // Draw time runs at 1.5 times the rate of time at most, and corrections are as fast as the body.
            let (slewed, corrected) = (1.5 * SPEED * seconds, SPEED * seconds);
            self.largest = self.largest.max(step / slewed);
            if step > slewed + corrected {
                let turn = if in_group == was_in_group { "stays" } else { "turns" };
                self.faults.push(format!("{now:?}, {turn}: from {x} {y} to {at:?}"));
            }
        }
    }
}

fn pass(plan: &str, seed: u64, dies: bool) -> Seen {
    let mut dice = Dice::new(seed, "lane");
    let (y, way) = (dice.below(6) as f64 - 8.0, if dice.below(2) == 0 { 1.0 } else { -1.0 });
    let rules = Arc::new(Football { friction: 0.0, goal: 0.0 });
    let config = LabConfig::new(ServerConfig::default(), seed);
    let mut lab =
        Lab::new(config, Lane { rules: Arc::clone(&rules), y, way, dies, players: Vec::new() }).unwrap();
    let seen = shared::<Seen>();
    for nth in 0..4 {
        let mut dice = Dice::new(seed * 10 + nth, "runner");
        let (mut until, mut pad) = (Timestamp::ZERO, Pad::default());
        let drive = move |now: Timestamp, _: &Client<Football>| {
            if now >= until {
                until = now + Duration::from_millis(200 + dice.below(1_500));
                pad.run = [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]][dice.below(3) as usize];
            }
            Some(pad)
        };
        let (seen, mut last) = (seen.clone(), None);
        let look = move |now: Timestamp, client: &Client<Football>| {
            seen.borrow_mut().frame(&mut last, now, client);
        };
        seat(&mut lab, &rules, link(plan), Seated { drive, look });
    }
    lab.run(Duration::from_secs(60));
    lab.drain();
    for client in (0..lab.clients()).filter_map(|seat| lab.client(seat)) {
        assert_eq!(unexplained(&client.corrections()) + unexplained(&client.group_corrections()), 0);
    }
    let measured = lab.measured();
    assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
    seen.take()
}

#[test]
fn a_ball_that_enters_and_leaves_the_group_is_drawn_without_a_step() {
    let mut turns = 0;
    for seed in 1..=6 {
        let seen = pass("transatlantic", seed, false);
        println!("{seed}: {} turns, largest step {}", seen.turns, seen.largest);
        assert!(seen.faults.is_empty(), "seed {seed}: {:#?}", seen.faults);
        // The prediction clock itself runs a little faster or slower; nothing else adds to that.
        assert!(seen.largest < 1.1, "seed {seed}: {}", seen.largest);
        let [x, y] = PITCH.map(|half| half - 0.25);
        assert!(seen.farthest[0] <= x && seen.farthest[1] <= y, "seed {seed}: {:?}", seen.farthest);
        assert!(seen.frames > 13_000, "seed {seed}: {} frames", seen.frames);
        turns += seen.turns;
    }
    assert!(turns > 500, "the ball joined or left a group {turns} times");
}

/// Without a body of its own a client predicts nothing, so others draw the ball on from where it was drawn.
#[test]
fn a_ball_goes_on_without_a_step_when_the_player_dies() {
    for seed in 1..=3 {
        let seen = pass("transatlantic", seed, true);
        println!("{seed}: {} turns, largest step {}", seen.turns, seen.largest);
        assert!(seen.faults.is_empty(), "seed {seed}: {:#?}", seen.faults);
        println!("{seed}: farthest {:?}", seen.farthest);
        assert!(seen.turns > 60 && seen.without > 2_000, "seed {seed}: {} turns", seen.turns);
    }
}
