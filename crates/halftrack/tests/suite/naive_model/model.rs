//! The model: a list, and the whole of it read anew every time.

use std::time::Duration;

use halftrack::cart::{Cart, CartBody};
use halftrack::{Authority, Body, Cause, Game, Resync, Status, Tick};

pub(crate) type State = Authority<Cart>;

/// Everything that can be said to a predictor. Times are the caller's clock, in microseconds.
#[derive(Clone, Debug)]
pub(crate) enum Told {
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
pub(crate) struct Rules {
    pub(crate) cadence: u64,
    pub(crate) max_pending: u64,
    pub(crate) resync_error: u64,
}

/// What the predictor must show.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) time: u64,
    pub(crate) status: Status,
    pub(crate) predicted: [u64; 3],
    pub(crate) baseline: u64,
    pub(crate) pending: Vec<TickShown>,
    /// Of the last thing told, if it was a state or a sending: what became of it.
    pub(crate) verdict: Option<Verdict>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TickShown {
    pub(crate) tick: u64,
    /// Whether it is the player's, or made up.
    pub(crate) own: bool,
    /// Every input in it, with the moment it begins.
    pub(crate) inputs: Vec<(u64, i8)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
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

pub(crate) fn bits(body: &CartBody) -> [u64; 3] {
    [body.x, body.wheel, body.speed].map(f64::to_bits)
}

/// The state of the world after reading the list from its beginning.
pub(crate) struct Naive {
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
    pub(crate) fn read(rules: Rules, list: &[Told]) -> Shown {
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
                self.stalled.push((tick, Cart.substitute(Some(self.wish_before(i128::MAX)), age)));
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
            // What was sent before a restart stays sent, unless the server's time has slipped.
            let earlier = self.restarted_through.filter(|_| resync != Some(Resync::NewEpoch));
            self.restarted_through = earlier.max(Some(open.max(self.first - 1)));
        } else {
            self.baseline = state.clone();
        }
        let (after, touched_after) = self.simulate();

        let mut causes = state.own.causes;
        if touched_before || touched_after {
            causes = causes.with(Cause::Collision);
        }
        if resync.is_some()
            || self.restarted_through.is_some_and(|through| u64::from(old.1.number()) < through)
        {
            causes = causes.with(Cause::Resync);
        }
        let moved = Cart.pose(&before) != Cart.pose(&after);
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
            return vec![(wanted * c, Cart.substitute(self.held.map(|(_, input)| input), age))];
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
        let mut body = self.baseline.own.body;
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
                    touched |= self.drive(&mut body, *input, until - from);
                }
            }
            if end == (tick + 1) * c {
                body.settle();
            }
        }
        (body, touched)
    }

    /// Moves the cart for `micros`; gives whether the cart of the baseline ahead of it stopped it.
    fn drive(&self, cart: &mut CartBody, input: i8, micros: u64) -> bool {
        let moved = f64::from(input) / 8.0 * cart.speed * (micros as f64 * 1e-6);
        cart.wheel += 0.1 * moved + 0.3 * moved * moved;
        cart.x += moved;
        let stop = self.baseline.others().first().map(|ahead| ahead.x).filter(|stop| cart.x > *stop);
        cart.x = stop.unwrap_or(cart.x);
        stop.is_some()
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
