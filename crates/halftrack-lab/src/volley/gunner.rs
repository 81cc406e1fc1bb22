//! A bot that taps the trigger at random: once, in quick succession, and faster than frames.

use std::time::Duration;

use halftrack::Timestamp;
use halftrack::model::Presses;
use halftrack_flight::FlightClient;

use super::{Trigger, Volley};
use crate::bot::Bot;
use crate::dice::Dice;

/// A bot of [`Volley`].
#[derive(Clone, Debug)]
pub struct Gunner {
    dice: Dice,
    wish: Trigger,
    /// Fires from here on: whoever comes in takes a moment to know the network.
    ready: Option<Timestamp>,
    next_tap: Timestamp,
    next_turn: Timestamp,
    /// Taps to come, one in each frame.
    taps: u8,
    presses: u64,
}

impl Gunner {
    /// Waits for so long before it fires: the default of [`crate::LabConfig::warm_up`].
    pub(super) const WAITS: Duration = Duration::from_secs(3);

    /// A bot.
    pub fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed, "gunner"),
            wish: Trigger::default(),
            ready: None,
            next_tap: Timestamp::ZERO,
            next_turn: Timestamp::ZERO,
            taps: 0,
            presses: 0,
        }
    }

    fn press(&mut self) {
        self.wish.fire = Presses::next(self.wish.fire);
        self.presses += 1;
    }

    fn tap(&mut self, now: Timestamp) {
        self.next_tap = now + Duration::from_micros(50_000 + self.dice.below(300_000));
        match self.dice.below(10) {
            0..=4 => self.press(),
            // In the frames to come: three in a tick.
            5 | 6 => self.taps = 3,
            // Shorter than a frame: the frame finds them all.
            7 => (0..2).for_each(|_| self.press()),
            8 => (0..3).for_each(|_| self.press()),
            _ => {
                self.press();
                self.taps = 1;
            }
        }
    }
}

impl Bot<Volley> for Gunner {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Volley>) -> Option<Trigger> {
        let ready = *self.ready.get_or_insert(now + Self::WAITS);
        if now >= self.next_turn {
            self.next_turn = now + Duration::from_micros(100_000 + self.dice.below(800_000));
            self.wish.drive = self.dice.below(17) as i8 - 8;
        }
        if now >= ready && client.reconciler().is_some() {
            if let Some(left) = self.taps.checked_sub(1) {
                self.taps = left;
                self.press();
            } else if now >= self.next_tap {
                self.tap(now);
            }
        }
        Some(self.wish)
    }

    fn presses(&self) -> Option<u64> {
        Some(self.presses)
    }
}
