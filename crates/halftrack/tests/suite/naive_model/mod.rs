//! The predictor against a model that is too simple to be wrong in the same way.
//!
//! The model keeps the full list of what it was told and starts over from the first line of it after every call.
//! It thinks in tick numbers and absolute microseconds, walks every moment of the sub-tick grid, and shares with
//! the product the game's `settle` and `substitute`, and nothing else.

mod model;

use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, CartBody};
use halftrack::{
    Body, BodyId, Cadence, Cause, Causes, Completeness, Driver, Epoch, Ignored, MoveInput, Neighbour, Origin,
    PredictConfig, Rate, Reconciler, ServerTime, Tick, TickInput, Timestamp, Upto,
};
use model::{Naive, Rules, Shown, State, TickShown, Told, Verdict, bits};
use proptest::prelude::*;

/// The product, told the same.
struct Product {
    reconciler: Reconciler<Cart>,
    cadence: Cadence,
}

impl Product {
    fn start(rules: Rules, now: u64, time: u64, state: &State) -> Self {
        let cadence = Cadence::new(Duration::from_micros(rules.cadence)).unwrap();
        let config = PredictConfig {
            cadence,
            max_pending: Duration::from_micros(rules.max_pending),
            resync_error: Duration::from_micros(rules.resync_error),
        };
        let (now, time) = (Timestamp::from_micros(now), ServerTime::from_micros(time));
        let reconciler = Reconciler::new(Arc::new(Cart), config, None, now, time, state).unwrap();
        Self { reconciler, cadence }
    }

    fn hear(&mut self, told: &Told) -> Option<Verdict> {
        let at = Timestamp::from_micros;
        match told {
            Told::Start { .. } => panic!("a list has one start"),
            Told::Update { now } => {
                self.reconciler.frame(at(*now));
            }
            Told::Input { now, input } => self.reconciler.set_input(at(*now), *input),
            Told::Rate { now, ppm } => self.reconciler.set_rate(at(*now), Rate::from_ppm(*ppm)),
            Told::Send => {
                let mut message = MoveInput::default();
                let inputs = self.reconciler.inputs(Upto::Open, &mut message.ticks);
                if inputs.completeness == Completeness::Closed {
                    return Some(Verdict::Sent(vec![]));
                }
                message.newest = inputs.newest;
                let sent = message.numbered().map(|(tick, input)| self.shown(tick, input, Origin::Recorded));
                return Some(Verdict::Sent(sent.collect()));
            }
            Told::State { now, target, state } => {
                self.reconciler.frame(at(*now));
                let before = bits(self.reconciler.predicted());
                return Some(
                    match self.reconciler.accept(at(*now), ServerTime::from_micros(*target), state) {
                        Err(Ignored::Stale { .. }) => Verdict::Ignored("stale"),
                        Err(Ignored::Duplicate { .. }) => Verdict::Ignored("duplicate"),
                        Err(_) => Verdict::Ignored("unknown"),
                        Ok(diagnosis) => Verdict::Accepted {
                            cause: diagnosis.cause,
                            resync: diagnosis.resync,
                            before,
                            replayed: u64::from(diagnosis.replayed_ticks),
                        },
                    },
                );
            }
        }
        None
    }

    fn shown(&self, tick: Tick, input: &TickInput<i8>, origin: Origin) -> TickShown {
        let start = self.cadence.start_of(tick).as_micros();
        let mut inputs = vec![(start, input.start())];
        inputs.extend(input.changes().map(|change| {
            let into = u64::try_from(self.cadence.offset_of(change.at).as_micros()).unwrap();
            (start + into, change.input)
        }));
        TickShown { tick: u64::from(tick.number()), own: origin == Origin::Recorded, inputs }
    }

    fn show(&self, verdict: Option<Verdict>) -> Shown {
        let predictor = self.reconciler.predictor();
        let pending =
            predictor.pending().map(|pending| self.shown(pending.tick, &pending.input, pending.origin));
        Shown {
            time: predictor.time().as_micros(),
            status: predictor.status(),
            predicted: bits(predictor.predicted()),
            baseline: u64::from(predictor.baseline().tick.number()),
            pending: pending.collect(),
            verdict,
        }
    }
}

/// How long until something is done.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Micros(u64),
    /// Until the n-th boundary from here, to the microsecond: where things go wrong by one.
    Boundary(u64),
    /// Until a moment of the sub-tick grid of the next tick.
    Moment(u64),
}

impl Wait {
    fn micros(self, time: u64, rules: Rules) -> u64 {
        let boundary = time.next_multiple_of(rules.cadence);
        match self {
            Self::Micros(micros) => micros,
            Self::Boundary(count) => boundary + count * rules.cadence - time,
            Self::Moment(index) => boundary + index * rules.cadence / 256 - time,
        }
    }
}

/// A line of a script: wait, then do.
#[derive(Clone, Debug)]
enum Line {
    Frame { wait: Wait },
    Backwards { by: u64 },
    Input { wait: Wait, input: i8 },
    Rate { wait: Wait, ppm: i32 },
    State { wait: Wait, line: StateLine },
    Send,
}

#[derive(Clone, Debug)]
struct StateLine {
    /// How many ticks before the open one; not above zero for states from the open tick or past it.
    behind: i64,
    /// How far the clock's target is from prediction time.
    error: i64,
    new_epoch: bool,
    /// The body: as predicted by nobody, moved by this many grid units.
    nudge: i32,
    blocked: bool,
    speed: u8,
    cause: Option<Cause>,
}

fn wait() -> impl Strategy<Value = Wait> {
    prop_oneof![
        2 => Just(Wait::Micros(0)),
        4 => (0u64..2_000).prop_map(Wait::Micros),
        10 => (1_000u64..40_000).prop_map(Wait::Micros),
        4 => (40_000u64..500_000).prop_map(Wait::Micros),
        1 => (500_000u64..5_000_000).prop_map(Wait::Micros),
        3 => (0u64..9).prop_map(Wait::Boundary),
        2 => (1u64..256).prop_map(Wait::Moment),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    let cause = prop::option::of(prop::sample::select(Cause::ALL.to_vec()));
    let behind = prop_oneof![8 => 1i64..12, 1 => -3i64..1, 1 => 12i64..100, 1 => Just(i64::MIN)];
    let error = prop_oneof![8 => -40_000i64..40_000, 1 => -900_000i64..900_000];
    let state = (behind, error, prop::bool::weighted(0.05), -2_000i32..2_000, any::<bool>(), 1u8..12, cause)
        .prop_map(|(behind, error, new_epoch, nudge, blocked, speed, cause)| StateLine {
            behind,
            error,
            new_epoch,
            nudge,
            blocked,
            speed,
            cause,
        });
    prop_oneof![
        5 => wait().prop_map(|wait| Line::Frame { wait }),
        1 => (0u64..100_000).prop_map(|by| Line::Backwards { by }),
        6 => (wait(), -8i8..=8).prop_map(|(wait, input)| Line::Input { wait, input }),
        1 => (wait(), -250_000i32..250_000).prop_map(|(wait, ppm)| Line::Rate { wait, ppm }),
        3 => Just(Line::Send),
        5 => (wait(), state).prop_map(|(wait, line)| Line::State { wait, line }),
    ]
}

/// What the script makes the caller say, given what the model shows.
fn say(line: &Line, now: &mut u64, shown: &Shown, last: &State, rules: Rules) -> Told {
    match line {
        Line::Send => return Told::Send,
        Line::Backwards { by } => return Told::Update { now: now.saturating_sub(*by) },
        Line::Frame { wait }
        | Line::Input { wait, .. }
        | Line::Rate { wait, .. }
        | Line::State { wait, .. } => {
            *now += wait.micros(shown.time, rules);
        }
    }
    let now = *now;
    match line {
        Line::Frame { .. } | Line::Backwards { .. } | Line::Send => Told::Update { now },
        Line::Input { input, .. } => Told::Input { now, input: *input },
        Line::Rate { ppm, .. } => Told::Rate { now, ppm: *ppm },
        Line::State { line, wait } => {
            // Where the clock will be, near enough: the state may then lie on either side of anything.
            let time = shown.time + wait.micros(shown.time, rules);
            let open = i64::try_from(time / rules.cadence).unwrap();
            let tick = match line.behind {
                i64::MIN => u32::MAX - 7,
                behind => u32::try_from((open - behind).max(0)).unwrap(),
            };
            let mut body =
                CartBody { speed: f64::from(line.speed), ..CartBody::at(f64::from(line.nudge) / 1024.0) };
            body.settle();
            let epoch = if line.new_epoch { Epoch::new(last.epoch.number() + 1) } else { last.epoch };
            let mut state =
                State::new(epoch, Tick::new(tick), body).among(line.blocked.then(|| ahead(body.x + 0.25)));
            state.own.causes = line.cause.into_iter().collect::<Causes>();
            Told::State { now, target: time.saturating_add_signed(line.error), state }
        }
    }
}

/// A cart that stands in the way.
fn ahead(x: f64) -> Neighbour<Cart> {
    Neighbour::new(BodyId::new(1), Driver::World, CartBody::at(x))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn recon_01_predictor_equals_the_naive_model_after_every_call(
        cadence in prop_oneof![3 => Just(50_000u64), 1 => Just(16_667u64), 2 => 5_000u64..=200_000],
        window in 2u64..30,
        resync_error in 50_000u64..600_000,
        lead in 0u64..400_000,
        script in prop::collection::vec(line(), 1..50),
    ) {
        let rules = Rules { cadence, max_pending: window * cadence + cadence / 3, resync_error };
        let mut now = 1_000;
        let mut last = State::new(Epoch::new(3), Tick::new(40), CartBody::at(0.0));
        let mut list = vec![Told::Start { now, time: 41 * cadence + lead, state: last.clone() }];
        let mut product = Product::start(rules, now, 41 * cadence + lead, &last);
        let mut shown = Naive::read(rules, &list);
        prop_assert_eq!(product.show(None), shown.clone(), "at the start");
        for line in &script {
            let told = say(line, &mut now, &shown, &last, rules);
            let verdict = product.hear(&told);
            list.push(told.clone());
            shown = Naive::read(rules, &list);
            prop_assert_eq!(product.show(verdict), shown.clone(), "after {:?}", list.last());
            if let (Told::State { state, .. }, Some(Verdict::Accepted { .. })) = (told, &shown.verdict) {
                last = state;
            }
        }
    }
}
