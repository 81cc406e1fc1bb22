//! The rules by themselves: [`check_game`] plays both games.

use halftrack::{Body, CheckPlan, check_game};
use halftrack_games::ball::{self, Ball, Football, Player, Thing};
use halftrack_games::hover::{self, Craft, Hover};
use halftrack_games::plane::Motion;

#[test]
fn hover_is_checked() {
    let craft = |x: f64, y: f64, mass| Craft { mass, ..Craft::at([x, y]) };
    let bodies =
        vec![craft(-4.0, 0.0, 1.0), craft(0.0, 0.5, 2.0), craft(4.0, 1.0, 1.0), craft(2.0, 6.0, 4.0)];
    let pads = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (1.0, -0.5), (-1.0, 0.25)];
    let inputs: Vec<_> =
        pads.iter().map(|(thrust, turn)| hover::Pad { thrust: *thrust, turn: *turn }).collect();
    // A small rink: they meet each other and the walls all the time.
    for seed in 1..=2 {
        let plan = CheckPlan { seed, ticks: 600, ..CheckPlan::new(bodies.clone(), inputs.clone()) };
        let report = check_game(|| Hover { rink: 7.0, ..Hover::default() }, &plan).unwrap();
        assert!(report.contacts > 40, "{report:?}");
        assert_eq!(report.constant_fields.len(), 0, "{report:?}");
    }
}

#[test]
fn ball_is_checked() {
    let at = |x: f64, y: f64| Motion { position: [x, y], velocity: [0.0; 2] };
    let player = |x: f64, y: f64, east| Thing::Player(Player { motion: at(x, y), east, ..Player::blank() });
    let ball = |motion| Thing::Ball(Ball { motion, ..Ball::blank() });
    let mut bodies = vec![
        Thing::Score([0, 3]),
        ball(at(0.0, 0.0)),
        ball(Motion { velocity: [9.0, -4.0], ..at(0.0, 1.0) }),
    ];
    for nth in 0..8 {
        bodies.push(player(f64::from(nth % 4) * 3.0 - 5.0, f64::from(nth / 4) * 2.0 - 1.0, nth % 2 == 0));
    }
    let inputs: Vec<_> = (0u8..12)
        .map(|nth| {
            let run = [[0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.25, -0.5]][usize::from(nth % 4)];
            ball::Pad { run, kick: nth }
        })
        .collect();
    for seed in 1..=2 {
        let plan = CheckPlan { seed, ticks: 600, ..CheckPlan::new(bodies.clone(), inputs.clone()) };
        let report = check_game(Football::default, &plan).unwrap();
        assert!(report.contacts > 10, "{report:?}");
    }
}
