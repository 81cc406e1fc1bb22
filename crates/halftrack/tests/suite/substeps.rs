//! REPLAY-03: no loop runs one substep too many or too few. A game that only writes down what it is asked.

use std::time::Duration;

use halftrack::serde::{Deserialize, Serialize};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{Body, Cadence, FieldError, Game, MotionLimits, Offset, Pose, Replay, Settling, Step, Tick};
use proptest::prelude::*;

struct Tape {
    /// Microseconds of a tick.
    cadence: u64,
}

/// What has been asked of it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "halftrack::serde")]
struct Written {
    substeps: u64,
    micros: u64,
    shortest: Option<u64>,
    longest: u64,
    settles: u64,
    /// Microseconds since the last settle.
    in_tick: u64,
}

impl Pose for Written {
    fn offset_from(&self, _: &Self) -> Offset {
        Offset::ZERO
    }
    fn displaced(&self, _: &Offset) -> Self {
        *self
    }
}

impl Game for Tape {
    type Input = ();
    type Body = Written;
    type Pose = Written;

    fn advance(&self, written: &mut Written, (): (), step: &mut Step<'_, Self>) {
        let micros = u64::try_from(step.span().as_micros()).unwrap();
        assert_eq!(step.into_tick(), Duration::from_micros(written.in_tick));
        assert_eq!(step.tick(), Tick::new(1 + u32::try_from(written.settles).unwrap()));
        written.substeps += 1;
        written.micros += micros;
        written.in_tick += micros;
        written.shortest = Some(written.shortest.map_or(micros, |shortest| shortest.min(micros)));
        written.longest = written.longest.max(micros);
        assert!(written.in_tick <= self.cadence, "a substep crossed the end of its tick");
    }

    fn pose(&self, written: &Written) -> Option<Written> {
        Some(*written)
    }

    fn limits(&self, _: &Written) -> MotionLimits {
        MotionLimits { top_speed: 1.0, top_turn: 1.0, grid_distance: 1.0, grid_angle: 1.0 }
    }

    fn fingerprint(&self) -> u64 {
        self.cadence
    }
}

/// Counts its settles, and is never sent.
impl Body for Written {
    const SCHEMA: u64 = 0;
    const MAX_BITS: usize = 0;

    fn blank() -> Self {
        Self::default()
    }

    fn settle(&mut self) -> Settling {
        self.settles += 1;
        self.in_tick = 0;
        Settling::default()
    }

    fn check(&self) -> Result<(), FieldError> {
        Ok(())
    }

    fn write(&self, _: &Self, _: &mut BitWriter<'_>) {}

    fn read(baseline: &Self, _: &mut BitReader<'_>) -> Result<Self, WireError> {
        Ok(*baseline)
    }

    fn digest(&self) -> u64 {
        self.micros
    }
}

/// From `phase` into a tick, holds for `span`, and checks every number against arithmetic.
fn check(cadence: u64, phase: u64, span: u64) {
    let micros = Duration::from_micros;
    let (rules, span_of_tick) = (Tape { cadence }, Cadence::new(micros(cadence)).unwrap());
    let mut replay = Replay::new(&rules, span_of_tick, Tick::new(1), &[], Written::default());
    replay.hold((), micros(phase));
    let before = *replay.body();
    let ended = replay.hold((), micros(span));
    let after = *replay.body();

    let end = phase + span;
    let context = format!("C = {cadence}, phase {phase}, {span} us");
    assert_eq!(after.micros - before.micros, span, "{context}");
    assert_eq!(ended, end / cadence, "{context}");
    assert_eq!(after.settles - before.settles, end / cadence, "{context}");
    assert_eq!(replay.phase(), micros(end % cadence), "{context}");
    // A substep per tick that is touched; none for an empty span.
    let touched = if span == 0 { 0 } else { end.div_ceil(cadence) - phase / cadence };
    assert_eq!(after.substeps - before.substeps, touched, "{context}");
    assert_ne!(after.shortest, Some(0), "{context}");
    assert!(after.longest <= cadence, "{context}");
}

#[test]
fn replay_03_every_boundary_and_a_microsecond_to_either_side() {
    for cadence in (5_000u64..=200_000).step_by(1_000).chain([16_667, 33_333]) {
        for ticks in 0..=6 {
            for phase in [0, 1, cadence / 3, cadence - 1] {
                for beside in [-1, 0, 1] {
                    let Some(span) = (ticks * cadence).checked_add_signed(beside) else { continue };
                    check(cadence, phase, span);
                    check(cadence, phase, (span + cadence - phase) % (7 * cadence));
                }
            }
        }
    }
    check(50_000, 0, 120_000);
    check(50_000, 0, 0);
}

proptest! {
    #[test]
    fn replay_03_any_span_from_any_phase(cadence in 5_000u64..=200_000, phase in 0u64..200_000, span in 0u64..5_000_000) {
        check(cadence, phase % cadence, span);
    }
}
