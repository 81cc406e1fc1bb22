//! A checker for a game's own rules: does replay equal live play, to the bit, from every baseline?
//!
//! Put it into the game's tests. It finds what breaks prediction in practice: rules that are not pure, a settle
//! that is not idempotent, a pose that moves when it is not displaced.

use core::time::Duration;
use std::collections::VecDeque;

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::error::ConfigError;
use crate::game::{Game, Offset, Pose};
use crate::input::{PendingTick, TickInput};
use crate::predict::{Authority, PredictConfig, Predictor};
use crate::replay::Replay;
use crate::tick::{Epoch, Tick};
use crate::time::Timestamp;

/// One call of the game loop: time passes, then the player wants `input`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityFrame<I> {
    /// Time since the frame before.
    pub elapsed: Duration,
    /// The input from here on.
    pub input: I,
}

/// What was proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityReport {
    /// Frames played live.
    pub frames: u64,
    /// Ticks played live.
    pub ticks: u64,
    /// Times the present was rebuilt from an earlier state and came out equal.
    pub rebuilds: u64,
}

/// The first thing that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Disparity {
    /// The check could not be set up.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `advance` gave two results for the same arguments.
    #[error("advance is not a pure function: two calls with the same arguments differ in tick {tick}")]
    AdvanceNotPure {
        /// Where.
        tick: Tick,
    },
    /// `settle` changed a body it had settled.
    #[error("settle is not idempotent: settling the body after tick {tick} again changes it")]
    SettleNotIdempotent {
        /// Where.
        tick: Tick,
    },
    /// Rebuilding the present from an earlier state did not give the body that live play shows.
    #[error("at frame {frame}, replay from the state after tick {baseline} differs from live play")]
    ReplayDiffers {
        /// The frame, counted from zero.
        frame: u64,
        /// The tick whose state was the baseline.
        baseline: Tick,
    },
    /// A pose displaced by nothing is another pose.
    #[error("at frame {frame}, the pose displaced by a zero offset is not the same pose")]
    PoseNotStill {
        /// The frame, counted from zero.
        frame: u64,
    },
}

/// Plays `frames` live from `body`. After each of them the present is rebuilt from the state after every tick of
/// the last second, one increasing baseline after the other while later input stays pending: all must be equal
/// to the bit.
///
/// ```
/// use core::time::Duration;
/// use halftrack::cart::{Cart, CartBody, Rail};
/// use halftrack::{Cadence, ParityFrame, verify_parity};
///
/// let frames: Vec<_> = (0..100)
///     .map(|n| ParityFrame { elapsed: Duration::from_micros(16_667), input: if n % 10 < 5 { 8 } else { -3 } })
///     .collect();
/// let report = verify_parity::<Cart>(Cadence::default(), &CartBody::at(0.0), &Rail::default(), &frames)?;
/// assert_eq!(report.ticks, 33);
/// assert!(report.rebuilds > 1_000);
/// # Ok::<(), halftrack::Disparity>(())
/// ```
///
/// # Errors
/// The first [`Disparity`] found.
pub fn verify_parity<G: Game>(
    cadence: Cadence,
    body: &G::Body,
    surroundings: &G::Surroundings,
    frames: &[ParityFrame<G::Input>],
) -> Result<ParityReport, Disparity> {
    let mut live = Live::<G>::start(cadence, body, surroundings)?;
    let mut report = ParityReport::default();
    for frame in frames {
        report.ticks += live.play(frame)?;
        report.rebuilds += live.rebuild(report.frames)?;
        report.frames += 1;
    }
    Ok(report)
}

/// Live play, and a server that makes the same of the same input.
struct Live<G: Game> {
    /// Its baseline stays a second behind, so that there is something to replay.
    predictor: Predictor<G>,
    now: Timestamp,
    /// The states after every tick since that baseline.
    states: VecDeque<Authority<G>>,
}

impl<G: Game> Live<G> {
    const BEHIND: Duration = Duration::from_secs(1);

    fn start(cadence: Cadence, body: &G::Body, surroundings: &G::Surroundings) -> Result<Self, ConfigError> {
        let config = PredictConfig { cadence, ..PredictConfig::default() };
        let mut body = *body;
        G::settle(&mut body);
        let authority = Authority {
            epoch: Epoch::default(),
            tick: Tick::default(),
            body,
            surroundings: surroundings.clone(),
            causes: Causes::NONE,
        };
        let now = Timestamp::ZERO;
        let predictor = Predictor::new(config, now, cadence.end_of(authority.tick), &authority)?;
        Ok(Self { predictor, now, states: VecDeque::new() })
    }

    /// Plays one frame; gives the number of ticks that ended.
    fn play(&mut self, frame: &ParityFrame<G::Input>) -> Result<u64, Disparity> {
        let (mut left, mut ticks) = (frame.elapsed, 0);
        while !left.is_zero() {
            // A frame longer than the hold would be a stall, and that is not what is checked here.
            let piece = left.min(G::MAX_HOLD);
            left -= piece;
            self.now = self.now + piece;
            self.predictor.update(self.now);
            ticks += self.serve()?;
        }
        self.predictor.set_input(self.now, frame.input);
        Ok(ticks)
    }

    /// Simulates the ticks that have closed; gives their number.
    fn serve(&mut self) -> Result<u64, Disparity> {
        let newest = self.states.back().unwrap_or(self.predictor.baseline()).tick;
        let open = self.predictor.open_tick();
        let closed: Vec<_> =
            self.predictor.pending().filter(|at| at.tick > newest && at.tick < open).collect();
        for PendingTick { tick, input, .. } in &closed {
            let state = self.state_after(*tick, input)?;
            self.states.push_back(state);
        }
        while self.states.len() > self.predictor.cadence().ticks_in(Self::BEHIND) as usize {
            let oldest = self.states.pop_front();
            let accepted = oldest.map(|state| self.predictor.accept(self.now, self.predictor.time(), &state));
            debug_assert!(matches!(accepted, Some(Ok(_))), "states come in order");
        }
        Ok(closed.len() as u64)
    }

    fn state_after(&self, tick: Tick, input: &TickInput<G::Input>) -> Result<Authority<G>, Disparity> {
        let before = self.states.back().unwrap_or(self.predictor.baseline());
        let run = || {
            let mut replay = Replay::<G>::new(self.predictor.cadence(), &before.surroundings, before.body);
            replay.tick(input);
            *replay.body()
        };
        let body = run();
        if G::digest(&body) != G::digest(&run()) {
            return Err(Disparity::AdvanceNotPure { tick });
        }
        let mut settled = body;
        G::settle(&mut settled);
        if G::digest(&body) != G::digest(&settled) {
            return Err(Disparity::SettleNotIdempotent { tick });
        }
        Ok(Authority { tick, body, ..before.clone() })
    }

    /// Rebuilds the present from each state in turn; gives their number.
    fn rebuild(&self, frame: u64) -> Result<u64, Disparity> {
        let live = self.predictor.predicted();
        let mut rebuilt = self.predictor.clone();
        for state in &self.states {
            let accepted = rebuilt.accept(self.now, rebuilt.time(), state);
            debug_assert!(accepted.is_ok(), "states come in order");
            if G::digest(rebuilt.predicted()) != G::digest(live) {
                return Err(Disparity::ReplayDiffers { frame, baseline: state.tick });
            }
        }
        let pose = G::pose(live);
        if pose.displaced(&Offset::ZERO) != pose {
            return Err(Disparity::PoseNotStill { frame });
        }
        Ok(self.states.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody, CartPose, Rail};
    use crate::game::Contact;
    use core::cell::Cell;

    fn frames() -> Vec<ParityFrame<i8>> {
        let input = |n: u64| i8::try_from(n * 7 % 17).unwrap() - 8;
        (0..200)
            .map(|n| ParityFrame { elapsed: Duration::from_micros(n * n % 40_001), input: input(n) })
            .collect()
    }

    fn verify<G: Game<Input = i8, Body = CartBody, Surroundings = Rail>>() -> Result<ParityReport, Disparity>
    {
        verify_parity::<G>(Cadence::default(), &CartBody::at(0.0), &Rail { blocked_at: Some(1.5) }, &frames())
    }

    #[test]
    fn good_rules_pass_and_long_frames_are_cut() {
        let report = verify::<Cart>().unwrap();
        assert_eq!(report.frames, 200);
        assert!(report.rebuilds > 1_500, "{report:?}");
        let long = [ParityFrame { elapsed: Duration::from_secs(5), input: 3 }; 3];
        let report = verify_parity::<Cart>(Cadence::default(), &CartBody::at(0.0), &Rail::default(), &long);
        assert_eq!(report.map(|report| report.ticks), Ok(300));
    }

    /// A cart with one rule broken.
    macro_rules! broken_cart {
        ($name:ident { $($broken:item)* }) => {
            #[derive(Clone, Copy, Debug, PartialEq)]
            struct $name;
            impl $name { $($broken)* }
            impl Game for $name {
                type Input = i8;
                type Body = CartBody;
                type Surroundings = Rail;
                type Pose = StickyPose;
                fn neutral() -> i8 { 0 }
                fn advance(body: &mut CartBody, input: i8, span: Duration, rail: &Rail) -> Contact {
                    Self::spoil_advance(body);
                    Cart::advance(body, input, span, rail)
                }
                fn settle(body: &mut CartBody) {
                    Cart::settle(body);
                    Self::spoil_settle(body);
                }
                fn pose(body: &CartBody) -> StickyPose {
                    StickyPose { inner: Cart::pose(body), creep: Self::CREEP }
                }
                fn digest(body: &CartBody) -> u64 { Cart::digest(body) }
            }
        };
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct StickyPose {
        inner: CartPose,
        creep: f64,
    }

    impl Pose for StickyPose {
        fn offset_from(&self, other: &Self) -> Offset {
            self.inner.offset_from(&other.inner)
        }
        fn displaced(&self, offset: &Offset) -> Self {
            let mut moved = *self;
            moved.inner = self.inner.displaced(offset);
            moved.inner.x += self.creep;
            moved
        }
    }

    thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });

    broken_cart!(Impure {
        const CREEP: f64 = 0.0;
        fn spoil_advance(body: &mut CartBody) {
            let calls = CALLS.get() + 1;
            CALLS.set(calls);
            body.x += f64::from(calls) * 0.01;
        }
        fn spoil_settle(_: &mut CartBody) {}
    });

    broken_cart!(Unsettled {
        const CREEP: f64 = 0.0;
        fn spoil_advance(_: &mut CartBody) {}
        fn spoil_settle(body: &mut CartBody) {
            body.x *= 0.99;
        }
    });

    broken_cart!(Creeping {
        const CREEP: f64 = 0.001;
        fn spoil_advance(_: &mut CartBody) {}
        fn spoil_settle(_: &mut CartBody) {}
    });

    #[test]
    fn broken_rules_are_found() {
        assert!(matches!(verify::<Impure>(), Err(Disparity::AdvanceNotPure { .. })));
        assert!(matches!(verify::<Unsettled>(), Err(Disparity::SettleNotIdempotent { .. })));
        assert_eq!(verify::<Creeping>(), Err(Disparity::PoseNotStill { frame: 0 }));
    }
}
