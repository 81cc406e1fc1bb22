//! A controlled tank and the server that simulates it, with nothing between them but the test.
#![allow(dead_code, reason = "each test uses the part that it needs")]

use std::sync::Arc;
use std::time::Duration;

use halftrack::{
    Authority, Body, Cadence, Cause, Causes, CorrectionConfig, Diagnosis, Epoch, Game, Ignored, Neighbour,
    PredictConfig, Reconciler, Replay, ServerTime, Tick, TickInput, Timestamp,
};
use tanks::{Arena, Entity, Tank, TankInput, TankPose, Tanks};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub(crate) fn input(turn: f32, throttle: f32) -> TankInput {
    TankInput::from_unit(turn, throttle).expect("finite")
}

pub(crate) fn open_field() -> Arc<Tanks> {
    Arc::new(Tanks::new(Arc::new(Arena::new([1000.0, 1000.0], vec![]).expect("a good arena"))))
}

/// One step of the rules. The body is not settled after it: the step lies inside a tick of 200 ms.
pub(crate) fn step(rules: &Tanks, tank: &mut Tank, input: TankInput, span: Duration) {
    let cadence = Cadence::new(ms(200)).expect("in range");
    let mut replay = Replay::new(rules, cadence, Tick::new(1), &[], (*tank).into());
    assert_eq!(replay.hold(input, span), 0, "the tick does not end");
    *tank = (*replay.body()).tank().copied().unwrap();
}

/// Everything that moves, bit by bit.
pub(crate) fn bits(tank: &Tank) -> [u64; 3] {
    [tank.x, tank.y, tank.heading].map(f64::to_bits)
}

pub(crate) fn correction() -> CorrectionConfig {
    let rules = open_field();
    CorrectionConfig::for_motion(rules.limits(&Entity::blank()), rules.max_hold(), Cadence::default())
}

pub(crate) struct Rig {
    pub(crate) rules: Arc<Tanks>,
    pub(crate) client: Reconciler<Tanks>,
    pub(crate) now: Timestamp,
    /// The newest state that the server has.
    pub(crate) server: Authority<Tanks>,
    /// The bodies that stand around it.
    neighbours: Vec<Neighbour<Tanks>>,
    /// The newest input that the server knows, and its tick.
    known: Option<(Tick, TankInput)>,
}

impl Rig {
    /// Tick 100 has just been simulated, and its state arrives; prediction is `lead` ahead of its end.
    pub(crate) fn new(lead: Duration) -> Self {
        Self::with(lead, Tank::new(0.0, 0.0, 0.0), open_field(), vec![])
    }

    pub(crate) fn with(
        lead: Duration,
        mut body: Tank,
        rules: Arc<Tanks>,
        neighbours: Vec<Neighbour<Tanks>>,
    ) -> Self {
        body.settle();
        let server =
            Authority::new(Epoch::default(), Tick::new(100), body.into()).among(neighbours.iter().copied());
        let now = Timestamp::from_micros(7_000_000);
        let time = Cadence::default().end_of(server.tick) + lead;
        let (predict, correction) = (PredictConfig::default(), Some(correction()));
        let client = Reconciler::new(Arc::clone(&rules), predict, correction, now, time, &server)
            .expect("good configs");
        Self { rules, client, now, server, neighbours, known: None }
    }

    /// One frame, `span` later.
    pub(crate) fn frame(&mut self, span: Duration) {
        self.now = self.now + span;
        self.client.frame(self.now);
    }

    /// Frames at 60 Hz for `span`.
    pub(crate) fn play(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.frame(us(16_667).min(end.saturating_since(self.now)));
        }
    }

    pub(crate) fn set(&mut self, turn: f32, throttle: f32) {
        self.client.set_input(self.now, input(turn, throttle));
    }

    /// What the client has for `tick`.
    pub(crate) fn recorded(&self, tick: Tick) -> Option<TickInput<TankInput>> {
        self.client.predictor().pending().find(|pending| pending.tick == tick).map(|pending| pending.input)
    }

    /// The server simulates its next tick with what the client recorded for it.
    pub(crate) fn serve(&mut self) {
        let tick = self.server.tick.next();
        let input = self.recorded(tick).expect("the client has predicted this tick");
        self.known = Some((tick, input.last()));
        self.simulate(&input, Causes::NONE);
    }

    /// The server simulates its next tick without the client's input.
    pub(crate) fn serve_without_input(&mut self, cause: Cause) {
        let tick = self.server.tick.next();
        let cadence = Cadence::default();
        let age = self.known.map_or(Duration::MAX, |(known, _)| cadence.span_of(tick.since(known)));
        let input = self.rules.substitute(self.known.map(|(_, input)| input), age);
        self.simulate(&TickInput::steady(input), Causes::NONE.with(cause));
    }

    fn simulate(&mut self, input: &TickInput<TankInput>, causes: Causes) {
        let mut replay = self.replay(&self.server);
        replay.tick(input);
        let after = *replay.body();
        self.server.own.body = after;
        self.server.tick = self.server.tick.next();
        self.server.own.causes = self.server.own.causes.union(causes);
    }

    /// From `state` on, by the rules of both.
    pub(crate) fn replay<'a>(&'a self, state: &'a Authority<Tanks>) -> Replay<'a, Tanks> {
        Replay::new(&self.rules, Cadence::default(), state.tick.next(), &self.neighbours, state.own.body)
    }

    /// Other bodies stand around it from now on.
    pub(crate) fn surround(&mut self, neighbours: Vec<Neighbour<Tanks>>) {
        let Authority { epoch, tick, own, .. } = self.server;
        self.server = Authority::of(epoch, tick, own).among(neighbours.iter().copied());
        self.neighbours = neighbours;
    }

    /// The newest state arrives; the server starts a new list of causes.
    pub(crate) fn deliver(&mut self) -> Result<Diagnosis<Tanks>, Ignored> {
        let state = self.server.clone();
        self.server.own.causes = Causes::NONE;
        self.accept(&state)
    }

    pub(crate) fn accept(&mut self, state: &Authority<Tanks>) -> Result<Diagnosis<Tanks>, Ignored> {
        let target = self.time_now();
        self.client.accept(self.now, target, state)
    }

    /// Prediction time at `now`, which a right clock agrees with.
    pub(crate) fn time_now(&self) -> ServerTime {
        self.client.predictor().clock().at(self.now)
    }

    pub(crate) fn predicted(&self) -> &Tank {
        self.client.predicted().tank().unwrap()
    }

    /// The pose on the screen.
    pub(crate) fn visible(&self) -> TankPose {
        *self.client.visible().expect("a tank is always drawn")
    }
}
