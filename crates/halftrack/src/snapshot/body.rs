//! One body in a snapshot, against a state of it that the receiver has.
//!
//! ```text
//! still        no bits at all: it was told nothing new and met nothing (the snapshot says which bodies are not)
//! otherwise:
//!   state      1   it met something since
//!     at       T   ticks after the baseline, less one, of the last time: T bits hold the number of ticks
//!     body         how it was after that tick, against the baseline
//!     same     1   its input at the end of that tick is that of the baseline's end
//!     input        if not
//!   per change since then:
//!     more     1   1
//!     tick     T   ticks after the baseline, less one
//!     at       8   moment of the sub-tick grid; 0 is the tick's start
//!     input
//!   more       1   0
//! ```
//!
//! Everything else follows: the receiver runs the rules from the last state it has, and arrives at the same bits.

use core::time::Duration;

use crate::cadence::{Cadence, SubTick};
use crate::cause::Causes;
use crate::game::Game;
use crate::input::TickInput;
use crate::replay::Replay;
use crate::snapshot::{BodyHistory, Course, TickRecord};
use crate::tick::Tick;
use crate::wire::{BitReader, BitWriter, Coded, WireError};

/// What a game with many bodies must tell besides its rules: what stands around a body, and how one is written
/// against one that the receiver has.
pub trait BodyCode: Game {
    /// Makes `around` what body `own` of `bodies` moves among for `span`: the world as it already is in `around`, and
    /// every other body that it could meet in that time. One that it could not may be left out, and the rest keep
    /// their order: whoever asks, for however long, the rules must make the same of it.
    fn surround(around: &mut Self::Surroundings, bodies: &[Self::Body], own: usize, span: Duration);

    /// A hash of everything about the rules and the world without bodies that both ends must share.
    fn shared(alone: &Self::Surroundings) -> u64;

    /// A body that both ends have without being told: what a body is written against when the receiver has none.
    fn blank() -> Self::Body;

    /// Writes `body`, settled, so that whoever has `baseline` can read it.
    fn write_body(body: &Self::Body, baseline: &Self::Body, bits: &mut BitWriter<'_>);

    /// Reads it. Gives settled bodies only.
    ///
    /// # Errors
    /// When the bits end too early or mean nothing.
    fn read_body(baseline: &Self::Body, bits: &mut BitReader<'_>) -> Result<Self::Body, WireError>;
}

/// What a body did since the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing that the rules do not foresee.
    Still,
    /// Something; it has been written.
    Changed,
}

/// Bits for a number of ticks after the baseline, less one.
fn tick_bits(ticks: u32) -> u32 {
    u32::BITS - ticks.saturating_sub(1).leading_zeros()
}

/// Writes what happened to a body after `baseline`, unless nothing did. Gives `None` when the baseline is not kept, and
/// whether anything was written.
pub fn encode_body<G: BodyCode>(
    history: &BodyHistory<G>,
    baseline: Tick,
    bits: &mut BitWriter<'_>,
) -> Option<Told> {
    let known = history.get(baseline)?;
    let ticks = history.newest().since(baseline);
    let width = tick_bits(ticks);
    let last_met = history.after(baseline).rev().find(|(_, record)| record.course != Course::Own);
    let mut current = known.input.last();
    let start = last_met.map_or(baseline, |(tick, _)| tick);
    let changed = |current: G::Input, record: &TickRecord<G>| record.input != TickInput::steady(current);
    // Until the first change every tick is what the one before it ended with.
    let any_change = history.after(start).any(|(_, record)| changed(current, record));
    if last_met.is_none() && !any_change {
        return Some(Told::Still);
    }
    bits.write_flag(last_met.is_some());
    if let Some((tick, record)) = last_met {
        bits.write(tick.since(baseline) - 1, width);
        G::write_body(&record.after, &known.after, bits);
        let same = record.input.last() == current;
        bits.write_flag(same);
        if !same {
            current = record.input.last();
            current.write(bits);
        }
    }
    for (tick, record) in history.after(start) {
        let mut write = |at: u32, input: G::Input| {
            bits.write_flag(true);
            bits.write(tick.since(baseline) - 1, width);
            bits.write(at, 8);
            input.write(bits);
        };
        if record.input.start() != current {
            write(0, record.input.start());
        }
        for change in record.input.changes() {
            write(u32::from(change.at.index()), change.input);
        }
        current = record.input.last();
    }
    bits.write_flag(false);
    Some(Told::Changed)
}

/// A body as a snapshot tells it.
#[derive(Clone, Debug)]
pub struct DecodedBody<G: Game> {
    /// The first tick that is known of it: the one after the baseline, or the last in which it met something.
    pub first: Tick,
    /// That tick and those after it, up to the snapshot's.
    pub records: Vec<TickRecord<G>>,
}

/// Reads what happened to a body in the `ticks` ticks after `baseline`, which the receiver has as `known`, and runs the
/// rules on it. `told` says whether there is anything to read.
///
/// # Errors
/// When the bits end too early or mean nothing.
pub fn decode_body<G: BodyCode>(
    cadence: Cadence,
    alone: &G::Surroundings,
    baseline: Tick,
    known: &TickRecord<G>,
    ticks: u32,
    told: Told,
    bits: &mut BitReader<'_>,
) -> Result<DecodedBody<G>, WireError> {
    let invalid = |field| WireError::Invalid { field };
    let width = tick_bits(ticks);
    let mut start = Start::<G> { after: 0, body: known.after, input: known.input.last() };
    let mut changes = Changes { ticks: Vec::with_capacity(ticks as usize) };
    let mut met = None;
    if told == Told::Changed {
        if bits.read_flag()? {
            let at = bits.read(width)?;
            if at >= ticks {
                return Err(invalid("body.at"));
            }
            start.after = at + 1;
            start.body = G::read_body(&known.after, bits)?;
            if !bits.read_flag()? {
                start.input = G::Input::read(bits)?;
            }
            met = Some(TickRecord {
                input: TickInput::steady(start.input),
                after: start.body,
                course: Course::Altered,
                causes: Causes::NONE,
            });
        }
        changes.read(bits, width, start.after, ticks, start.input)?;
    }
    changes.fill(ticks - start.after, start.input);

    let mut replay = Replay::<G>::new(cadence, alone, start.body);
    let mut records: Vec<_> = met.into_iter().collect();
    for input in changes.ticks {
        replay.tick(&input);
        records.push(TickRecord { input, after: *replay.body(), course: Course::Own, causes: Causes::NONE });
    }
    let known_from = if met.is_some() { start.after } else { 1 };
    Ok(DecodedBody { first: Tick::new(baseline.number().saturating_add(known_from)), records })
}

/// Where the rules take over: so many ticks after the baseline.
struct Start<G: Game> {
    after: u32,
    body: G::Body,
    input: G::Input,
}

/// The inputs of ticks, one after the other.
struct Changes<I> {
    ticks: Vec<TickInput<I>>,
}

impl<I: Coded + Copy + PartialEq> Changes<I> {
    /// What the last tick so far ended with.
    fn last(&self, input: I) -> I {
        self.ticks.last().map_or(input, TickInput::last)
    }

    /// Makes it `count` ticks long.
    fn fill(&mut self, count: u32, input: I) {
        let last = self.last(input);
        self.ticks.resize(count as usize, TickInput::steady(last));
    }

    /// Reads changes in the ticks `after .. ticks` after the baseline. Each must come after the one before it and change
    /// something.
    fn read(
        &mut self,
        bits: &mut BitReader<'_>,
        width: u32,
        after: u32,
        ticks: u32,
        input: I,
    ) -> Result<(), WireError> {
        let invalid = Err(WireError::Invalid { field: "body.change" });
        while bits.read_flag()? {
            let tick = bits.read(width)?;
            let at = u8::try_from(bits.read(8)?).unwrap_or(0);
            let to = I::read(bits)?;
            let index = tick.checked_sub(after).filter(|_| tick < ticks);
            let Some(index) = index else { return invalid };
            if to == self.last(input) || (index as usize) + 1 < self.ticks.len() {
                return invalid;
            }
            let begun = self.ticks.len() > index as usize;
            match SubTick::new(at) {
                None if begun => return invalid,
                None => {
                    self.fill(index, input);
                    self.ticks.push(TickInput::steady(to));
                }
                Some(at) => {
                    self.fill(index + 1, input);
                    let changed = self.ticks.last_mut().is_some_and(|tick| tick.change(at, to).is_ok());
                    if !changed {
                        return invalid;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody, Rail};
    use crate::wire::move_input_tests::any_tick;
    use proptest::prelude::*;

    const OPEN: Rail = Rail { blocked_at: None };

    fn record(history: &BodyHistory<Cart>, tick: Tick) -> TickRecord<Cart> {
        *history.get(tick).unwrap()
    }

    /// A body that was told these inputs from tick 101 on, and was pushed by the world where a distance is given.
    fn history(told: &[(TickInput<i8>, Option<i16>)]) -> BodyHistory<Cart> {
        let mut history = BodyHistory::new(Tick::new(100), TickInput::steady(0), CartBody::at(0.0));
        for (input, pushed) in told {
            let mut replay =
                Replay::<Cart>::new(Cadence::default(), &OPEN, record(&history, history.newest()).after);
            replay.tick(input);
            let mut after = *replay.body();
            after.x += f64::from(pushed.unwrap_or(0)) / 1024.0;
            Cart::settle(&mut after);
            let course = if after == *replay.body() { Course::Own } else { Course::Altered };
            history.push(TickRecord { input: *input, after, course, causes: Causes::NONE });
        }
        history
    }

    fn encode(history: &BodyHistory<Cart>, baseline: Tick) -> (Told, Vec<u8>, usize) {
        let mut buffer = [0; 1_100];
        let mut bits = BitWriter::new(&mut buffer);
        let told = encode_body(history, baseline, &mut bits).unwrap();
        let count = bits.len_bits();
        let length = bits.finish().unwrap();
        (told, buffer[..length].to_vec(), count)
    }

    fn decode(
        history: &BodyHistory<Cart>,
        baseline: Tick,
        told: Told,
        bytes: &[u8],
    ) -> Result<DecodedBody<Cart>, WireError> {
        let ticks = history.newest().since(baseline);
        let mut bits = BitReader::new(bytes);
        let known = record(history, baseline);
        let body = decode_body(Cadence::default(), &OPEN, baseline, &known, ticks, told, &mut bits)?;
        bits.finish().map(|()| body)
    }

    fn steady(input: i8, ticks: usize) -> Vec<(TickInput<i8>, Option<i16>)> {
        vec![(TickInput::steady(input), None); ticks]
    }

    #[test]
    fn a_body_that_goes_on_needs_no_bits_and_a_change_needs_its_own() {
        let mut told = steady(5, 10);
        let going_on = history(&told);
        assert_eq!(encode(&going_on, Tick::new(105)), (Told::Still, vec![], 0));
        let decoded = decode(&going_on, Tick::new(105), Told::Still, &[]).unwrap();
        assert_eq!((decoded.first, decoded.records.len()), (Tick::new(106), 5));
        told[8].0.change(SubTick::new(77).unwrap(), -3).unwrap();
        told[9].0 = TickInput::steady(-3);
        let changed = history(&told);
        // No state; one change: more, tick of 3, moment, input; no more.
        assert_eq!(encode(&changed, Tick::new(107)).2, 1 + (1 + 2 + 8 + 8) + 1);
    }

    #[test]
    fn interference_is_told_as_state() {
        let mut told = steady(5, 6);
        told[3].1 = Some(200);
        let history = history(&told);
        let (said, bytes, _) = encode(&history, Tick::new(102));
        let decoded = decode(&history, Tick::new(102), said, &bytes).unwrap();
        assert_eq!(decoded.first, Tick::new(104), "what was before is not worth telling");
        assert_eq!(decoded.records.last().unwrap().after, record(&history, Tick::new(106)).after);
    }

    #[test]
    fn a_baseline_that_is_not_kept_is_told() {
        let history = history(&steady(5, 70));
        let mut buffer = [0; 100];
        let oldest = Tick::new(170 - 63);
        assert!(encode_body(&history, oldest, &mut BitWriter::new(&mut buffer)).is_some());
        let gone = oldest.previous().unwrap();
        assert!(encode_body(&history, gone, &mut BitWriter::new(&mut buffer)).is_none());
        let future = Tick::new(171);
        assert!(encode_body(&history, future, &mut BitWriter::new(&mut buffer)).is_none());
    }

    fn any_told() -> impl Strategy<Value = Vec<(TickInput<i8>, Option<i16>)>> {
        let input = prop_oneof![6 => Just(None), 2 => any_tick().prop_map(Some)];
        let pushed = prop::option::weighted(0.1, -3_000i16..3_000);
        prop::collection::vec((input, pushed), 1..40).prop_map(|ticks| {
            let mut held = 0;
            let told = ticks.into_iter().map(|(input, pushed)| {
                let input = input.unwrap_or(TickInput::steady(held));
                held = input.last();
                (input, pushed)
            });
            told.collect()
        })
    }

    proptest! {
        /// From any baseline, whatever happened: the receiver arrives at the same bits in every tick that it is told of.
        #[test]
        fn what_is_decoded_is_what_happened(told in any_told(), back in 1u32..40) {
            let history = history(&told);
            let back = back.min(u32::try_from(told.len()).unwrap());
            let baseline = Tick::new(history.newest().number() - back);
            let (said, bytes, _) = encode(&history, baseline);
            let decoded = decode(&history, baseline, said, &bytes).unwrap();
            let last = decoded.first.number() + u32::try_from(decoded.records.len()).unwrap() - 1;
            prop_assert_eq!(Tick::new(last), history.newest());
            for (index, got) in decoded.records.iter().enumerate() {
                let want = record(&history, Tick::new(decoded.first.number() + u32::try_from(index).unwrap()));
                prop_assert_eq!(Cart::digest(&got.after), Cart::digest(&want.after));
                prop_assert_eq!(got.input.last(), want.input.last());
                if want.course == Course::Own {
                    prop_assert_eq!(got.input, want.input);
                }
                prop_assert!(got.course == Course::Own || index == 0);
            }
        }

        /// Any bits are a body or an error, in bounded time and memory.
        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..100), ticks in 1u32..64) {
            let known = TickRecord { input: TickInput::steady(3), after: CartBody::at(1.0), course: Course::Own, causes: Causes::NONE };
            let mut bits = BitReader::new(&bytes);
            let decoded = decode_body::<Cart>(
                Cadence::default(), &OPEN, Tick::new(100), &known, ticks, Told::Changed, &mut bits,
            );
            if let Ok(decoded) = decoded {
                prop_assert!(decoded.records.len() <= ticks as usize);
            }
        }

        #[test]
        fn mutated_bodies_are_read_or_refused(told in any_told(), at in any::<prop::sample::Index>(), flip in 1u8..) {
            let history = history(&told);
            let (said, mut bytes, _) = encode(&history, Tick::new(100));
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
                let _ = decode(&history, Tick::new(100), said, &bytes);
                bytes.truncate(at);
                let _ = decode(&history, Tick::new(100), said, &bytes);
            }
        }
    }
}
