//! One player alone with the ball: nobody interferes, so nothing is ever corrected.

use std::sync::Arc;
use std::time::Duration;

use halftrack::client::Client;
use halftrack::server::ServerConfig;
use halftrack::{Fate, Tick, Timestamp};
use halftrack_games::ball::{Football, Match, Thing};
use halftrack_lab::{Lab, LabConfig};
use halftrack_netem::LinkConfig;

use crate::footballer::{Footballer, balls, count, unexplained};
use crate::rig::{Seated, link, seat, shared, steady};

/// A state that was accepted: the ticks that it settled, and the bodies that it corrected.
#[derive(Clone, Copy)]
struct Accepted {
    after: Tick,
    through: Tick,
    corrections: u64,
}

#[derive(Default)]
struct Alone {
    accepted: Vec<Accepted>,
    last: Option<Tick>,
    corrections: u64,
    frames_in_group: u64,
    presses: u64,
}

/// What came of a minute alone with the ball.
struct Outcome {
    alone: Alone,
    /// States all of whose ticks were simulated as they were sent; and others.
    states: [u64; 2],
    /// Corrections by these.
    corrected: [u64; 2],
    /// Kicks that the ball got.
    kicked: u16,
    unexplained: u64,
    held: u64,
}

impl Outcome {
    fn print(&self, plan: &str) {
        let Self { alone, states, corrected, kicked, held, .. } = self;
        let presses = alone.presses;
        println!(
            "{plan}: {states:?} states in time and not, corrected {corrected:?}; {held} ticks held, {kicked} kicks of {presses}"
        );
    }
}

fn alone(link: LinkConfig, seed: u64) -> Outcome {
    // Without goals: a kick-off is the world's doing.
    let rules = Arc::new(Football { goal: 0.0, ..Football::default() });
    let config = LabConfig::new(ServerConfig::default(), seed);
    let mut lab = Lab::new(config, Match { rules: Arc::clone(&rules) }).unwrap();
    let shared = shared::<Alone>();
    let mut footballer = Footballer::new(seed, "alone");
    let (noted, mut began) = (shared.clone(), None);
    let drive = move |now: Timestamp, client: &Client<Football>| {
        // The first ticks of a session may be late: the link is not known yet.
        let began = *began.get_or_insert(now);
        let pad = footballer.drive(now, client).filter(|_| now >= began + Duration::from_secs(2));
        noted.borrow_mut().presses = footballer.presses;
        pad
    };
    let noted = shared.clone();
    let look = move |_: Timestamp, client: &Client<Football>| {
        let mut noted = noted.borrow_mut();
        noted.frames_in_group += u64::from(balls(client).iter().any(|(_, in_group)| *in_group));
        let Some(through) = client.reconciler().map(|reconciler| reconciler.predictor().baseline().tick)
        else {
            return;
        };
        let corrections = count(&client.corrections()) + count(&client.group_corrections());
        // Several states in one frame are taken as one.
        let after = noted.last.replace(through).unwrap_or(through);
        if after < through {
            let corrections = corrections - noted.corrections;
            noted.accepted.push(Accepted { after, through, corrections });
        }
        noted.corrections = corrections;
    };
    seat(&mut lab, &rules, link, Seated { drive, look });
    let (mut states, mut corrected) = ([0, 0], [0, 0]);
    for _ in 0..240 {
        lab.run(Duration::from_millis(250));
        let Some(player) = lab.client(0).unwrap().player() else { continue };
        let accepted = std::mem::take(&mut shared.borrow_mut().accepted);
        for Accepted { after, through, corrections } in accepted {
            let ticks = after.number() + 1..=through.number();
            let as_sent =
                ticks.map(Tick::new).all(|tick| lab.server().fate(player, tick) == Some(Fate::AsSent));
            states[usize::from(!as_sent)] += 1;
            corrected[usize::from(!as_sent)] += corrections;
        }
    }
    let ball = lab.server().bodies().find_map(|(.., thing)| match thing {
        Thing::Ball(ball) => Some(*ball),
        _ => None,
    });
    let client = lab.client(0).unwrap();
    let unexplained = unexplained(&client.corrections()) + unexplained(&client.group_corrections());
    let held = lab.server().all_input_stats().held;
    let measured = lab.measured();
    assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
    Outcome { alone: shared.take(), states, corrected, kicked: ball.unwrap().kicked, unexplained, held }
}

#[test]
fn a_player_alone_with_the_ball_is_never_corrected_on_a_steady_network() {
    for plan in ["lan", "broadband", "transatlantic", "wifi", "mobile"] {
        let told = alone(steady(plan), 1);
        told.print(plan);
        assert_eq!(told.corrected, [0, 0], "{plan}");
        assert_eq!(told.unexplained, 0, "{plan}");
        assert!(told.states[0] > 1_000 && told.kicked > 10 && told.alone.frames_in_group > 1_000, "{plan}");
    }
}

#[test]
fn a_player_alone_with_the_ball_is_corrected_only_for_late_input() {
    for plan in ["lan", "broadband", "transatlantic", "wifi", "mobile"] {
        for seed in 1..=2 {
            let told = alone(link(plan), seed);
            told.print(plan);
            assert_eq!(told.corrected[0], 0, "{plan} {seed}: corrected although all input was in time");
            assert_eq!(told.unexplained, 0, "{plan} {seed}");
            assert!(
                told.states[0] > 900 && told.kicked > 10 && told.alone.frames_in_group > 1_000,
                "{plan} {seed}"
            );
        }
    }
}
