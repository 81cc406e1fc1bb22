//! The predictor against a model that is too simple to be wrong in the same way.
//!
//! The model keeps the full list of what it was told and starts over from the first line of it after every call.
//! It thinks in tick numbers and absolute microseconds, walks every moment of the sub-tick grid, and shares with
//! the product the game's `advance`, `settle` and `substitute`, and nothing else.

use std::time::Duration;

use halftrack::cart::{Cart, CartBody, Rail};
use halftrack::wire::{Completeness, MoveInput};
use halftrack::{
    Authority, Cadence, Cause, Causes, Contact, CorrectionConfig, Epoch, Game, Ignored, MotionLimits, Origin,
    PredictConfig, Rate, Reconciler, Resync, ServerTime, Status, Tick, TickInput, Timestamp,
};
use proptest::prelude::*;

type State = Authority<Cart>;

/// Everything that can be said to a predictor. Times are the caller's clock, in microseconds.
#[derive(Clone, Debug)]
enum Told {
    Start {
        now: u64,
        time: u64,
        state: State,
    },
    Update {
        now: u64,
    },
    Input {
        now: u64,
        input: i8,
    },
    Rate {
        now: u64,
        ppm: i32,
    },
    State {
        now: u64,
        target: u64,
        state: State,
    },
    /// The open tick is sent.
    Send,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    cadence: u64,
    max_pending: u64,
    resync_error: u64,
}

/// What the predictor must show.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    time: u64,
    status: Status,
    predicted: [u64; 3],
    baseline: u64,
    pending: Vec<TickShown>,
    /// Of the last thing told, if it was a state or a sending: what became of it.
    verdict: Option<Verdict>,
}

#[derive(Clone, Debug, PartialEq)]
struct TickShown {
    tick: u64,
    /// Whether it is the player's, or made up.
    own: bool,
    /// Every input in it, with the moment it begins.
    inputs: Vec<(u64, i8)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Ignored(&'static str),
    /// The open tick as it goes out, after those before it; nothing if it is not the player's.
    Sent(Vec<TickShown>),
    Accepted {
        cause: Option<Cause>,
        resync: Option<Resync>,
        before: [u64; 3],
        replayed: u64,
    },
}

fn bits(body: &CartBody) -> [u64; 3] {
    [body.x, body.wheel, body.speed].map(f64::to_bits)
}

/// The state of the world after reading the list from its beginning.
struct Naive {
    rules: Rules,
    latest_now: u64,
    /// Since the clock was last set: when, to what, and each rate with the moment it began.
    clock: (u64, u64, Vec<(u64, i64)>),
    time: u64,
    starved: bool,
    baseline: State,
    /// Every wish since the last start, with its moment in prediction time. The first has always been there.
    wishes: Vec<(i128, i8)>,
    /// The first tick that is the player's own, and the tick that prediction began with.
    first: u64,
    began: u64,
    held: Option<(u64, i8)>,
    /// Ticks that went by inside one call, and what stands for them.
    stalled: Vec<(u64, i8)>,
    /// Changes that were sent before they took effect: moment, and to what.
    sealed: Vec<(u64, i8)>,
    restarted_through: Option<u64>,
}

impl Naive {
    fn read(rules: Rules, list: &[Told]) -> Shown {
        let Some((Told::Start { now, time, state }, rest)) = list.split_first() else {
            panic!("a list begins with a start");
        };
        let mut naive = Self {
            rules,
            latest_now: *now,
            clock: (*now, *time, vec![(*now, 0)]),
            time: 0,
            starved: false,
            baseline: state.clone(),
            wishes: vec![(i128::MIN, 0)],
            first: 0,
            began: 0,
            held: None,
            stalled: vec![],
            sealed: vec![],
            restarted_through: None,
        };
        naive.start(*time);
        let mut verdict = None;
        for told in rest {
            verdict = naive.hear(told);
        }
        let (body, _) = naive.simulate();
        Shown {
            time: naive.time,
            status: if naive.starved { Status::Starved } else { Status::Predicting },
            predicted: bits(&body),
            baseline: u64::from(naive.baseline.tick.number()),
            pending: naive.pending(),
            verdict,
        }
    }

    fn hear(&mut self, told: &Told) -> Option<Verdict> {
        if let Told::Start { now, .. }
        | Told::Update { now }
        | Told::Input { now, .. }
        | Told::Rate { now, .. }
        | Told::State { now, .. } = told
        {
            self.latest_now = self.latest_now.max(*now);
        }
        match told {
            Told::Start { .. } => panic!("a list has one start"),
            Told::Rate { ppm, .. } => {
                self.clock.2.push((self.latest_now, i64::from((*ppm).clamp(-200_000, 200_000))));
            }
            Told::Update { .. } => self.pass(),
            Told::Send => return Some(Verdict::Sent(self.send())),
            Told::Input { input, .. } => {
                self.pass();
                self.wishes.push((i128::from(self.time), *input));
            }
            Told::State { target, state, .. } => {
                self.pass();
                return Some(self.hear_state(*target, state));
            }
        }
        None
    }

    /// The open tick goes out, and with it a change at the next moment of the grid, which is then for good.
    fn send(&mut self) -> Vec<TickShown> {
        let mut sent = self.pending();
        sent.retain(|tick| tick.own);
        let open = self.time / self.rules.cadence;
        if self.starved || open < self.first {
            return vec![];
        }
        let start = open * self.rules.cadence;
        let moments = (1..256).map(|index| start + index * self.rules.cadence / 256);
        let next = moments.into_iter().find(|moment| *moment >= self.time);
        let coming = self.inputs_of(open).into_iter().find(|(at, _)| *at > start && Some(*at) == next);
        if let (Some(change), Some(last)) = (coming, sent.last_mut()) {
            self.sealed.push(change);
            last.inputs.push(change);
        }
        sent
    }

    /// Time passes up to the latest `now`.
    fn pass(&mut self) {
        if self.starved {
            return;
        }
        let (_, anchor, rates) = &self.clock;
        let mut millionths: i128 = 0;
        for (index, (from, rate)) in rates.iter().enumerate() {
            let until = rates.get(index + 1).map_or(self.latest_now, |next| next.0);
            millionths += i128::from(until - from) * i128::from(1_000_000 + rate);
        }
        let target = anchor + u64::try_from(millionths / 1_000_000).unwrap();

        // What goes by as a whole inside this one call is made up, as the server will have done.
        let c = self.rules.cadence;
        let open = self.time / c;
        let changed = self.inputs_of(open).iter().any(|(at, _)| *at > open * c && *at < self.time);
        let known = if changed { open } else { open.saturating_sub(1) };
        for tick in open + 1.. {
            if (tick + 1) * c > target || tick > self.last_tick() {
                break;
            }
            if tick >= self.first {
                let age = Duration::from_micros((tick - known) * c);
                self.stalled.push((tick, Cart::substitute(Some(self.wish_before(i128::MAX)), age)));
            }
        }
        self.go_to(target);
    }

    fn go_to(&mut self, target: u64) {
        let end = (self.last_tick() + 1) * self.rules.cadence;
        self.starved = target >= end;
        self.time = target.min(end);
    }

    /// The last tick of the window.
    fn last_tick(&self) -> u64 {
        u64::from(self.baseline.tick.number()) + self.rules.max_pending / self.rules.cadence
    }

    fn hear_state(&mut self, target: u64, state: &State) -> Verdict {
        let old = (self.baseline.epoch, self.baseline.tick);
        let new = (state.epoch, state.tick);
        if new < old {
            return Verdict::Ignored("stale");
        }
        if new == old {
            return Verdict::Ignored("duplicate");
        }
        if state.tick > Tick::MAX_STATE {
            return Verdict::Ignored("unknown");
        }
        let c = self.rules.cadence;
        let (before, touched_before) = self.simulate();
        let tick = u64::from(state.tick.number());
        let open = self.time / c;
        let resync = if new.0 != old.0 {
            Some(Resync::NewEpoch)
        } else if self.starved {
            Some(Resync::Silence)
        } else if tick >= open {
            Some(Resync::Overtaken)
        } else if target.abs_diff(self.time) > self.rules.resync_error {
            Some(Resync::ClockError)
        } else {
            None
        };
        if resync.is_some() {
            self.held = self.newest_own().or(self.held);
            self.baseline = state.clone();
            self.start(target);
            self.restarted_through = Some(open.max(self.first) - 1);
        } else {
            self.baseline = state.clone();
        }
        let (after, touched_after) = self.simulate();

        let mut causes = state.causes;
        if touched_before || touched_after {
            causes = causes.with(Cause::Collision);
        }
        if resync.is_some()
            || self.restarted_through.is_some_and(|through| u64::from(old.1.number()) < through)
        {
            causes = causes.with(Cause::Resync);
        }
        let moved = Cart::pose(&before) != Cart::pose(&after);
        let cause = moved.then(|| causes.foremost().unwrap_or(Cause::Unexplained));
        Verdict::Accepted { cause, resync, before: bits(&before), replayed: self.time / c - tick }
    }

    /// Prediction begins at `target`, from the baseline.
    fn start(&mut self, target: u64) {
        let c = self.rules.cadence;
        let began = u64::from(self.baseline.tick.number()) + 1;
        let time = target.max(began * c);
        self.clock = (self.latest_now, time, vec![(self.latest_now, 0)]);
        self.began = began;
        self.first = time.div_ceil(c);
        self.wishes = vec![(i128::MIN, self.wish_before(i128::MAX))];
        self.stalled.clear();
        self.sealed.clear();
        self.go_to(time);
    }

    /// The newest wish made before `moment`.
    fn wish_before(&self, moment: i128) -> i8 {
        self.wishes.iter().rev().find(|(at, _)| *at < moment || *at == i128::MIN).unwrap().1
    }

    /// The inputs of a tick, each with the moment it begins, as far as wishes are known.
    fn inputs_of(&self, wanted: u64) -> Vec<(u64, i8)> {
        let c = self.rules.cadence;
        if wanted < self.first {
            let age = self
                .held
                .map_or(Duration::MAX, |(tick, _)| Duration::from_micros(wanted.saturating_sub(tick) * c));
            return vec![(wanted * c, Cart::substitute(self.held.map(|(_, input)| input), age))];
        }
        // Pacing looks back: walk every tick from the first on.
        let mut last_change: Option<u64> = None;
        let mut current = match self.first.checked_sub(1) {
            Some(before) if self.first > self.began => self.inputs_of(before)[0].1,
            _ => self.wishes[0].1,
        };
        for tick in self.first.. {
            let start = tick * c;
            let stalled = self.stalled.iter().find(|(at, _)| *at == tick).map(|(_, input)| *input);
            let input = stalled.unwrap_or_else(|| self.wish_before(i128::from(start)));
            if input != current {
                last_change = Some(start);
            }
            current = input;
            let mut inputs = vec![(start, current)];
            for moment in (1..256).map(|index| start + index * c / 256) {
                let sealed = self.sealed.iter().find(|(at, _)| *at == moment).map(|(_, input)| *input);
                let wish = sealed.unwrap_or_else(|| self.wish_before(i128::from(moment) + 1));
                let paced = last_change.is_none_or(|last| moment >= last + c.div_ceil(4));
                if stalled.is_none() && wish != current && inputs.len() <= 3 && paced {
                    inputs.push((moment, wish));
                    current = wish;
                    last_change = Some(moment);
                }
            }
            if tick == wanted {
                return inputs;
            }
        }
        unreachable!("the walk ends at the tick that is wanted");
    }

    /// From the baseline to the present, tick by tick.
    fn simulate(&self) -> (CartBody, bool) {
        let c = self.rules.cadence;
        let mut body = self.baseline.body;
        let mut touched = false;
        for tick in u64::from(self.baseline.tick.number()) + 1.. {
            let end = ((tick + 1) * c).min(self.time);
            if end <= tick * c {
                break;
            }
            let inputs = self.inputs_of(tick);
            for (index, (from, input)) in inputs.iter().enumerate() {
                let until = inputs.get(index + 1).map_or(end, |next| next.0).min(end);
                if until > *from {
                    let span = Duration::from_micros(until - from);
                    touched |= Cart::advance(&mut body, *input, span, &self.baseline.surroundings)
                        == Contact::Touched;
                }
            }
            if end == (tick + 1) * c {
                Cart::settle(&mut body);
            }
        }
        (body, touched)
    }

    fn pending(&self) -> Vec<TickShown> {
        let open = self.time / self.rules.cadence;
        let first = u64::from(self.baseline.tick.number()) + 1;
        let last = if self.starved { open } else { open + 1 };
        let shown = |tick| TickShown { tick, own: tick >= self.first, inputs: self.taken(tick) };
        (first..last).map(shown).collect()
    }

    /// The inputs of a tick that have taken effect by now.
    fn taken(&self, tick: u64) -> Vec<(u64, i8)> {
        let inputs = self.inputs_of(tick);
        let start = inputs[0].0;
        inputs.into_iter().filter(|(from, _)| *from == start || *from < self.time).collect()
    }

    fn newest_own(&self) -> Option<(u64, i8)> {
        let open = self.time / self.rules.cadence;
        let newest = if self.starved { open - 1 } else { open };
        let exists = newest >= self.first && newest > u64::from(self.baseline.tick.number());
        exists.then(|| (newest, self.taken(newest).last().unwrap().1))
    }
}

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
        let limits = MotionLimits {
            top_speed: 8.0,
            top_turn: 20.0,
            grid_distance: 1.0 / 1024.0,
            grid_angle: 1e-4,
            max_hold: Cart::MAX_HOLD,
        };
        let correction = CorrectionConfig::for_motion(limits, cadence);
        let (now, time) = (Timestamp::from_micros(now), ServerTime::from_micros(time));
        Self { reconciler: Reconciler::new(config, correction, now, time, state).unwrap(), cadence }
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
                if !self.reconciler.write_open(&mut message) {
                    return Some(Verdict::Sent(vec![]));
                }
                assert_eq!(message.completeness, Completeness::Open);
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
            Cart::settle(&mut body);
            let state = State {
                epoch: if line.new_epoch { Epoch::new(last.epoch.number() + 1) } else { last.epoch },
                tick: Tick::new(tick),
                body,
                surroundings: Rail { blocked_at: line.blocked.then_some(body.x + 0.25) },
                causes: line.cause.into_iter().collect::<Causes>(),
            };
            Told::State { now, target: time.saturating_add_signed(line.error), state }
        }
    }
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
        let mut last = State {
            epoch: Epoch::new(3),
            tick: Tick::new(40),
            body: CartBody::at(0.0),
            surroundings: Rail::default(),
            causes: Causes::NONE,
        };
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
