//! A bot's hand on the stick: what it wants, at the pace of a thumb.
//!
//! The lab's bots jump from one wish to the next, which is the hardest input there is and right for measuring. On a
//! screen it looks like the jitter that prediction is there to avoid: a tank that reverses within two frames.

use std::time::Duration;

use halftrack::Timestamp;
use halftrack::client::Client;
use halftrack_flight::FlightClient;
use halftrack_lab::{Bot as Plays, ShotCount};
use tanks::{Axis, TankInput, Tanks};

/// A bot that plays like `inner`, and moves its stick like a person.
pub(super) struct Driver<B> {
    inner: B,
    stick: Stick,
}

impl<B> Driver<B> {
    pub(super) fn new(inner: B) -> Self {
        Self { inner, stick: Stick::default() }
    }
}

impl<B: Plays<Tanks>> Plays<Tanks> for Driver<B> {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        self.inner.drive(now, client).map(|wish| self.stick.towards(now, wish))
    }

    fn hear(&mut self, client: &Client<Tanks>, event: &[u8]) {
        self.inner.hear(client, event);
    }

    fn combat(&self) -> Option<ShotCount> {
        self.inner.combat()
    }
}

/// Both axes, each on its way to what is wanted.
#[derive(Debug, Default)]
struct Stick {
    at: Option<Timestamp>,
    turn: i8,
    throttle: i8,
}

impl Stick {
    /// A thumb takes a third of a second from one end of an axis to the other.
    const REVERSAL: Duration = Duration::from_millis(320);
    /// From one movement to the next. A movement in each frame would be a message in each frame, several times what a
    /// player's stick sends.
    const EVERY: Duration = Duration::from_millis(50);
    /// Levels in one movement: 32 of them are a reversal.
    const LEVELS: i8 =
        (2 * Axis::LEVELS as i32 * Self::EVERY.as_millis() as i32 / Self::REVERSAL.as_millis() as i32) as i8;

    fn towards(&mut self, now: Timestamp, wish: TankInput) -> TankInput {
        if self.at.is_none_or(|at| now >= at + Self::EVERY) {
            let step = |at: i8, wish: Axis| at + (wish.level() - at).clamp(-Self::LEVELS, Self::LEVELS);
            let moved = (step(self.turn, wish.turn), step(self.throttle, wish.throttle));
            if moved != (self.turn, self.throttle) {
                self.at = Some(now);
            }
            (self.turn, self.throttle) = moved;
        }
        TankInput { turn: Axis::from_level(self.turn), throttle: Axis::from_level(self.throttle), rocket: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: TankInput = TankInput { turn: Axis::FULL, throttle: Axis::FULL, rocket: 0 };

    fn back() -> TankInput {
        let full_back = Axis::from_level(-Axis::LEVELS);
        TankInput { turn: full_back, throttle: full_back, rocket: 0 }
    }

    #[test]
    fn no_axis_reverses_within_two_frames_at_any_frame_rate() {
        for hz in [30u64, 60, 144, 1_000] {
            let (mut stick, mut drawn) = (Stick::default(), vec![]);
            for frame in 0..hz * 4 {
                // A wish that flips every second, and one that trembles in every frame.
                let second = frame / hz;
                let flips = if second.is_multiple_of(2) { FULL } else { back() };
                let wish = if second == 3 && frame.is_multiple_of(2) { FULL } else { flips };
                let input = stick.towards(Timestamp::from_micros(frame * 1_000_000 / hz), wish);
                drawn.push([input.turn.level(), input.throttle.level()]);
            }
            for frames in drawn.windows(3) {
                for axis in 0..2 {
                    let moved = (frames[2][axis] - frames[0][axis]).unsigned_abs();
                    assert!(moved <= 2 * Stick::LEVELS.unsigned_abs(), "{hz} Hz: {frames:?}");
                }
            }
            let second = usize::try_from(hz).unwrap();
            assert_eq!(drawn[second - 1], [Axis::LEVELS; 2], "a wish is reached");
            assert_eq!(drawn[2 * second - 1], [-Axis::LEVELS; 2], "and so is its opposite");
        }
    }

    #[test]
    fn a_reversal_takes_as_long_as_it_says() {
        let mut stick = Stick::default();
        let at = |millis: u64| Timestamp::from_micros(millis * 1_000);
        for millis in 0..1_000 {
            stick.towards(at(millis), FULL);
        }
        let arrived = (1_000..2_000).find(|millis| stick.towards(at(*millis), back()) == back()).unwrap();
        assert!((250..=400).contains(&(arrived - 1_000)), "{arrived}");
    }
}
