//! Two teams of bots: every kick counts once, goals happen, and every correction has its cause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use halftrack::client::Client;
use halftrack::server::{Events, Room, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{Cause, PlayerId, Timestamp};
use halftrack_games::ball::{Ball, Football, Match, Player, Thing};
use halftrack_lab::{Lab, LabConfig};

use crate::footballer::{Footballer, balls};
use crate::rig::{Seated, link, seat, shared};

/// A match, and what happened in it by the server's own bodies.
#[derive(Default)]
struct Watched {
    game: Match,
    /// Kicks that each player's body has shown.
    kicks: BTreeMap<PlayerId, u64>,
    /// The count of kicks that the ball must have after the next tick.
    expected: Option<u16>,
    kicked: u64,
    wrong: u64,
    goals: [u32; 2],
}

impl World for Watched {
    type Game = Football;

    fn rules(&self) -> &Arc<Football> {
        self.game.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Football>) {
        self.game.join(player, login, room);
    }

    fn resolve(&mut self, room: &mut Room<'_, Football>, events: &mut Events) {
        self.game.resolve(room, events);
        let ball = |thing: &Thing| if let Thing::Ball(ball) = thing { Some(*ball) } else { None };
        let ball: Ball = room.bodies().find_map(|(.., thing)| ball(thing)).unwrap();
        self.wrong += u64::from(self.expected.is_some_and(|expected| expected != ball.kicked));
        let mut due = 0;
        for (_, driver, thing) in room.bodies() {
            match thing {
                Thing::Player(Player { motion, kicks, .. }) => {
                    *self.kicks.entry(driver.player().unwrap()).or_default() += u64::from(*kicks);
                    let [[x, y], [ball_x, ball_y]] = [motion.position, ball.motion.position];
                    if (x - ball_x).hypot(y - ball_y) <= Player::KICK_REACH {
                        due += u16::from(*kicks);
                    }
                }
                Thing::Score(goals) => self.goals = *goals,
                Thing::Ball(_) => {}
            }
        }
        self.kicked += u64::from(due);
        self.expected = Some(ball.kicked.wrapping_add(due));
    }
}

#[derive(Default)]
struct Seen {
    presses: BTreeMap<usize, u64>,
    frames: u64,
    frames_in_group: u64,
    not_once: u64,
    outside: f64,
}

fn play(plan: &str, seed: u64, bots: usize) {
    let config = LabConfig::new(ServerConfig::default(), seed);
    let rules = Arc::new(Football { goal: 5.0, ..Football::default() });
    let game = Match { rules: Arc::clone(&rules) };
    let mut lab = Lab::new(config, Watched { game, ..Watched::default() }).unwrap();
    let seen = shared::<Seen>();
    for nth in 0..bots {
        let mut footballer = Footballer::new(seed * 100 + nth as u64, "footballer");
        let noted = seen.clone();
        let drive = move |now: Timestamp, client: &Client<Football>| {
            let pad = footballer.drive(now, client);
            noted.borrow_mut().presses.insert(nth, footballer.presses);
            pad
        };
        let (noted, mut was_drawn) = (seen.clone(), false);
        let look = move |_: Timestamp, client: &Client<Football>| {
            let drawn = balls(client);
            was_drawn |= !drawn.is_empty();
            let mut noted = noted.borrow_mut();
            noted.frames += u64::from(was_drawn);
            noted.not_once += u64::from(was_drawn && drawn.len() != 1);
            noted.frames_in_group += u64::from(drawn.iter().any(|(_, in_group)| *in_group));
            for ([x, y], _) in drawn {
                noted.outside = noted.outside.max(x.abs() - 19.75).max(y.abs() - 11.75);
            }
        };
        seat(&mut lab, &rules, link(plan), Seated { drive, look });
    }
    lab.run(Duration::from_secs(40));
    lab.drain();
    // The last presses are still on their way.
    lab.run(Duration::from_secs(1));
    let (measured, seen) = (lab.measured(), seen.take());
    assert_eq!(measured.invariants.violated, 0, "{plan} {seed}: {:?}", measured.invariants.list);
    assert_eq!(measured.net.check_failed, 0, "{plan} {seed}");
    let mut causes = [0; Cause::ALL.len()];
    for client in (0..bots).filter_map(|seat| lab.client(seat)) {
        for (count, (_, more)) in causes.iter_mut().zip(client.group_corrections().by_cause()) {
            *count += more;
        }
    }
    let world = lab.server().world().world();
    println!(
        "{plan} {seed}: goals {:?}, {} kicks of {} presses, drawn {} m beyond the walls at most",
        world.goals,
        world.kicked,
        seen.presses.values().sum::<u64>(),
        seen.outside,
    );
    let unexplained = [measured.own.by_cause.unexplained, causes[Cause::Unexplained as usize]];
    assert_eq!(unexplained, [0, 0], "{plan} {seed}: {:?} {causes:?}", measured.own.by_cause);
    for (seat, presses) in &seen.presses {
        let player = lab.client(*seat).unwrap().player().unwrap();
        assert_eq!(world.kicks.get(&player), Some(presses), "{plan} {seed}: kicks of seat {seat}");
    }
    assert_eq!(world.wrong, 0, "{plan} {seed}: the ball got other kicks than were shown to it");
    assert!(world.kicked > 20 && world.goals.iter().sum::<u32>() > 0, "{plan} {seed}: {:?}", world.goals);
    assert_eq!(seen.not_once, 0, "{plan} {seed}: frames in which the ball was not drawn once");
    assert!(seen.frames_in_group > 1_000, "{plan} {seed}");
}

#[test]
fn teams_play_on_a_wireless_network() {
    play("wifi", 1, 8);
    play("wifi", 2, 12);
}

#[test]
fn teams_play_on_phones() {
    play("mobile", 1, 8);
    play("mobile", 3, 12);
}
