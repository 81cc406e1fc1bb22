//! A bot that plays football, by what its client shows.

use std::time::Duration;

use halftrack::client::Client;
use halftrack::model::Presses;
use halftrack::{Cause, CorrectionStats, Timestamp};
use halftrack_games::ball::{Football, PITCH, Pad, Player, Thing};
use halftrack_lab::Dice;

/// Where the ball is drawn, and whether that is as a member of the group; once for each time that it is drawn.
pub(crate) fn balls(client: &Client<Football>) -> Vec<([f64; 2], bool)> {
    let group = client.group().filter(|member| matches!(member.predicted(), Thing::Ball(_)));
    let group = group.filter_map(|member| member.visible()).map(|pose| ([pose.x, pose.y], true));
    let remotes = client.remotes().iter().filter(|remote| matches!(remote.state, Thing::Ball(_)));
    group.chain(remotes.map(|remote| ([remote.visible.x, remote.visible.y], false))).collect()
}

pub(crate) struct Footballer {
    dice: Dice,
    pad: Pad,
    until: Timestamp,
    kicks_again: Timestamp,
    /// Presses so far.
    pub(crate) presses: u64,
}

impl Footballer {
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let (until, kicks_again) = (Timestamp::ZERO, Timestamp::ZERO);
        Self { dice: Dice::new(seed, name), pad: Pad::default(), until, kicks_again, presses: 0 }
    }

    /// Runs after the ball, and kicks it about.
    pub(crate) fn drive(&mut self, now: Timestamp, client: &Client<Football>) -> Option<Pad> {
        let Some(Thing::Player(own)) = client.predicted() else { return None };
        let (ball, _) = *balls(client).first()?;
        let between = |[x, y]: [f64; 2]| [x - own.motion.position[0], y - own.motion.position[1]];
        let way = between(ball);
        if way[0].hypot(way[1]) < 0.9 * Player::KICK_REACH && now >= self.kicks_again {
            self.kicks_again = now + Duration::from_millis(200 + self.dice.below(500));
            // Towards the goal, more or less. Now and then twice within a frame.
            let goal = if own.east { PITCH[0] } else { -PITCH[0] };
            let aside = self.dice.below(13) as f64 - 6.0;
            self.pad.run = unit(between([goal, aside]));
            // Other input follows in the same tick: the kick stays.
            self.until = now + Duration::from_millis(16);
            for _ in 0..1 + self.dice.below(5) / 4 {
                self.pad.kick = Presses::next(self.pad.kick);
                self.presses += 1;
            }
        } else if now >= self.until {
            self.until = now + Duration::from_millis(50 + self.dice.below(250));
            // From behind, so that it rolls towards the goal.
            let behind = if own.east { -0.8 } else { 0.8 };
            self.pad.run = unit([way[0] + behind, way[1]]);
        }
        Some(self.pad)
    }
}

/// A vector of this direction on the grid of the input.
fn unit([x, y]: [f64; 2]) -> [f64; 2] {
    let length = x.hypot(y).max(1e-9);
    [x, y].map(|part| (part / length * 16.0).round() / 16.0)
}

/// Corrections of any cause.
pub(crate) fn count(stats: &CorrectionStats) -> u64 {
    stats.by_cause().map(|(_, count)| count).sum()
}

pub(crate) fn unexplained(stats: &CorrectionStats) -> u64 {
    stats.of(Cause::Unexplained)
}
